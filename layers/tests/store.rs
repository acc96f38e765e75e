//! Commits, crashes, locks and damage: what a store must survive, and what it must reject.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod files;
mod small_store;

use files::files_below;
use std::fs;
use std::path::Path;

use small_store::{Captures, Model, links};
use webstrata_layers::*;

fn model() -> Model {
    let captures = Captures::from([
        ((0, 1_146_441_600), links(&[1, 2, 3])),
        ((0, 1_149_120_000), links(&[1, 3])),
        ((0, 1_149_120_001), None),
        ((0, 1_151_712_000), links(&[1, 2])),
        ((2, 1_149_120_000), links(&[0, 2, 3])),
        ((3, 1_149_120_000), None),
    ]);
    Model::new(captures, 6, RangeLength::Month)
}

/// Asks questions until each file was read.
fn ask_all(dir: &Path) -> Result<(), Error> {
    let reader = Reader::new(Store::open(dir)?, 1 << 20);
    for uid in 0..6 {
        reader.uid(&Model::url(uid))?;
        reader.url(Uid(uid))?;
        reader.captures(Uid(uid))?;
        reader.lifespans(Uid(uid))?;
        reader.page_with_evidence(Uid(uid))?;
        for window in [Window::ALWAYS, Window::as_of(1_149_120_000)] {
            reader.out_links(Uid(uid), window)?;
            reader.in_links(Uid(uid), window, Precision::Exact)?;
        }
    }
    Ok(())
}

#[test]
fn the_same_rows_give_the_same_bytes() {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    dirs.iter().for_each(|dir| model().write(dir.path(), 2));
    let [a, b] = dirs.each_ref().map(|dir| files_below(dir.path()));
    assert_eq!(a.len(), 2 * 8 + 3);
    for (a, b) in a.iter().zip(&b) {
        assert_eq!(fs::read(a).unwrap(), fs::read(b).unwrap(), "{}", a.display());
    }
}

#[test]
fn a_second_epoch_keeps_the_first() {
    let dir = tempfile::tempdir().unwrap();
    model().write(dir.path(), 1);
    Model::new(Captures::new(), 2, RangeLength::Year).write(dir.path(), 1);
    let store = Store::open(dir.path()).unwrap();
    assert_eq!((store.manifest().epoch, store.manifest().counts.urls, store.manifest().rows[0].row), (2, 2, 2));
    let first = Store::open_epoch(dir.path(), 1).unwrap();
    assert_eq!((first.manifest().epoch, first.manifest().counts), (1, model().counts()));
    assert_eq!(first.manifest().counts.first_time, Some(1_146_441_600));
}

#[test]
fn what_dead_writers_leave_is_invisible_and_goes() {
    const DRAFT: &str = ".CURRENT.7-0.webstrata-draft";
    let dir = tempfile::tempdir().unwrap();
    let dead = |current: Option<&str>| {
        let writer = StoreWriter::open(dir.path(), "test", None).unwrap();
        let epoch = model().write_row(&writer, 2);
        let row = epoch.rows[0].row;
        match current {
            None => drop(writer),
            // The writer died between the manifest and CURRENT.
            Some(current) => {
                writer.commit(epoch).unwrap();
                fs::write(dir.path().join("CURRENT"), current).unwrap();
            }
        }
        fs::write(dir.path().join(DRAFT), "9").unwrap();
        row
    };
    assert_eq!(dead(None), 1);
    assert!(matches!(Store::open(dir.path()), Err(Error::NotAStore { .. })));
    // The row of the dead writer is removed, so its number is used again.
    model().write(dir.path(), 1);
    assert_eq!(dead(None), 2);
    assert_eq!(Store::open(dir.path()).unwrap().manifest().epoch, 1);
    let current = fs::read_to_string(dir.path().join("CURRENT")).unwrap();
    assert_eq!(dead(Some(&current)), 2);
    let store = Store::open(dir.path()).unwrap();
    assert_eq!((store.manifest().epoch, store.manifest().rows[0].row), (1, 1));
    let writer = StoreWriter::open(dir.path(), "test", None).unwrap();
    assert!(!dir.path().join("rows/000002").exists() && !dir.path().join("epochs/000002.json").exists());
    assert!(dir.path().join("rows/000001").exists());
    let epoch = model().write_row(&writer, 1);
    assert_eq!(writer.commit(epoch).unwrap(), 2);
    assert!(!dir.path().join(DRAFT).exists());
    assert!(check(dir.path()).unwrap().is_sound());
}

#[test]
fn one_writer_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let writer = StoreWriter::open(dir.path(), "test", None).unwrap();
    assert!(matches!(StoreWriter::open(dir.path(), "test", None), Err(Error::Locked { .. })));
    drop(writer);
    StoreWriter::open(dir.path(), "test", None).unwrap();
}

#[test]
fn places_that_are_no_store() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(Store::open(dir.path()), Err(Error::NotAStore { .. })));
    assert!(matches!(Store::open(dir.path().join("missing")), Err(Error::NotAStore { .. })));
    fs::write(dir.path().join("thesis.txt"), "").unwrap();
    assert!(matches!(StoreWriter::open(dir.path(), "test", None),
            Err(Error::NotEmpty { found, .. }) if found == "thesis.txt"));
    assert!(dir.path().join("thesis.txt").exists());
    assert!(matches!(StoreWriter::open(dir.path().join("thesis.txt"), "test", None), Err(Error::NotADirectory { .. })));
}

/// Writes a manifest, and a CURRENT that names it as if it were committed.
fn put_manifest(dir: &Path, text: &str) {
    fs::write(dir.join("epochs/000001.json"), text).unwrap();
    fs::write(dir.join("CURRENT"), format!("1 {}\n", Digest::of(text.as_bytes()))).unwrap();
}

#[test]
fn manifests_that_lie_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    model().write(dir.path(), 2);
    let good = fs::read_to_string(dir.path().join("epochs/000001.json")).unwrap();
    let open = |text: &str| {
        put_manifest(dir.path(), text);
        Store::open(dir.path()).map(|_| ())
    };
    let with = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        open(&good.replacen(from, to, 1))
    };
    open(&good).unwrap();
    let newer = with("\"format\": 5", "\"format\": 7").unwrap_err();
    assert!(matches!(newer, Error::NewerFormat { found: 7, known: 5, .. }));
    assert!(
        newer.to_string().ends_with("has format 7; this program reads formats up to 5: install a newer version"),
        "{newer}"
    );
    // A newer format may have other fields, but the error still names the version.
    assert!(matches!(open("{\"format\": 6, \"strata\": []}"), Err(Error::NewerFormat { found: 6, .. })));
    let older = with("\"format\": 5", "\"format\": 1").unwrap_err();
    assert!(older.to_string().ends_with("has format 1; this program reads format 5: build the store again"), "{older}");
    for (from, to) in [
        ("rows/000001/url/part-00000", "rows/../../url/part-00000"),
        ("rows/000001/url/part-00000", "/rows/000001/url/part-00000"),
        ("rows/000001/url/part-00000", "rows//url/part-00000"),
        ("rows/000001/url/part-00000", "c:/url/part-00000"),
        ("rows/000001/url/part-00000", "rows/000001/url/part-00001"),
        ("\"layer\": \"ol\"", "\"layer\": \"il\""),
        ("\"epoch\": 1", "\"epoch\": 2"),
        ("\"urls\": 6", "\"urls\": 5"),
        ("\"first_uid\": 3", "\"first_uid\": 4"),
        ("\"first_record\": 0", "\"first_record\": 1"),
        ("\"first_record\": 3", "\"first_record\": 7"),
        ("\"first_key\": \"", "\"first_key\": \"x"),
        ("\"first_key\": \"636f6d", "\"first_key\": \"ff6f6d"),
    ] {
        assert!(matches!(with(from, to), Err(Error::BadManifest { .. })), "{from} {to}");
    }
    assert!(matches!(with("\"layer\": \"ol\"", "\"layer\": \"xx\""), Err(Error::ManifestSyntax { .. })));
    assert!(matches!(open("{"), Err(Error::ManifestSyntax { .. })));
}

#[test]
fn no_changed_byte_of_a_manifest_or_of_current_is_believed() {
    let dir = tempfile::tempdir().unwrap();
    model().write(dir.path(), 2);
    model().write(dir.path(), 1);
    for name in ["epochs/000001.json", "epochs/000002.json", "CURRENT"] {
        let path = dir.path().join(name);
        let good = fs::read(&path).unwrap();
        let open = || Store::open_epoch(dir.path(), 1).and_then(|first| Ok((first, Store::open(dir.path())?)));
        open().unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] = if bad[at].is_ascii_digit() { b'0' + (bad[at] - b'0' + 1) % 10 } else { bad[at] ^ 1 };
            // The newline at the end of CURRENT has no meaning.
            if name == "CURRENT" && at + 1 == good.len() {
                continue;
            }
            fs::write(&path, &bad).unwrap();
            assert!(open().is_err(), "{name}, byte {at}");
        }
        for end in [0, 1, good.len() / 2] {
            fs::write(&path, &good[..end]).unwrap();
            assert!(open().is_err(), "{name}, {end} bytes");
            assert!(
                StoreWriter::open(dir.path(), "test", None).is_err(),
                "rows must not be removed on a broken {name}"
            );
        }
        fs::write(&path, &good).unwrap();
    }
    let current = fs::read_to_string(dir.path().join("CURRENT")).unwrap();
    for text in
        ["one", "+1", "1", &format!("1 {}", &current[2..]), &current.replace(' ', "  "), &current.to_uppercase()]
    {
        fs::write(dir.path().join("CURRENT"), text).unwrap();
        let is_refused =
            matches!(Store::open(dir.path()), Err(Error::BadCurrent { .. } | Error::DamagedManifest { .. }));
        assert!(is_refused || *text == current, "{text}");
    }
    assert!(dir.path().join("rows/000001/url/part-00000.parquet").exists());
}

#[test]
fn a_store_in_anothers_place_is_not_taken_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("store");
    let models = [model(), Model::new(Captures::new(), 2, RangeLength::Year)];
    let known = [&models[0], &models[1], &models[0]].map(|model| {
        if place.exists() {
            fs::remove_dir_all(&place).unwrap();
        }
        model.write(&place, 1);
        Store::open(&place).unwrap()
    });
    assert_eq!(known[0].id(), known[2].id(), "the same captures are the same store");
    assert_eq!(Store::open_known(&place, known[0].id()).unwrap().id(), known[0].id());
    let other = Store::open_known(&place, known[1].id()).unwrap_err();
    assert!(matches!(&other, Error::Replaced { found: Some(found), .. } if *found == known[0].id()), "{other}");
    models[1].write(&place, 1);
    let later = Store::open(&place).unwrap();
    assert!(later.follows(known[0].id()) && later.follows(later.id()) && !later.follows(known[1].id()));
    let gone = EpochId { epoch: 9, ..later.id() };
    assert!(matches!(Store::open_known(&place, gone), Err(Error::Replaced { found: None, .. })));
}

#[test]
fn a_reader_whose_store_is_built_anew_answers_as_before_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("store");
    let first = model();
    first.write(&place, 2);
    let reader = Reader::new(Store::open(&place).unwrap(), 0);
    let before: Vec<_> = (0..reader.urls()).map(|uid| reader.out_links(Uid(uid), Window::ALWAYS).unwrap()).collect();
    // The new store has files of the same sizes and columns, with other times and links.
    for _ in 0..2 {
        fs::remove_dir_all(&place).unwrap();
        Model::new(Captures::new(), 2, RangeLength::Year).write(&place, 2);
        for (uid, links) in (0..).zip(&before) {
            match reader.out_links(Uid(uid), Window::ALWAYS) {
                Ok(got) => assert_eq!(got, *links),
                Err(error) => assert!(matches!(error, Error::Exchanged { .. } | Error::Io { .. }), "{error}"),
            }
        }
    }
    // In files that were not opened before, the checksum shows the change.
    let late = Reader::new(Store::open(&place).unwrap(), 0);
    fs::remove_dir_all(&place).unwrap();
    first.write(&place, 2);
    assert!((0..late.urls()).all(|uid| late.url(Uid(uid)).is_err()));
}

#[test]
fn a_commit_of_files_that_are_not_there_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    model().write(dir.path(), 1);
    for truncate in [false, true] {
        let writer = StoreWriter::open(dir.path(), "test", None).unwrap();
        let epoch = model().write_row(&writer, 1);
        let path = dir.path().join(&epoch.rows[0].partitions[0].files[2].path);
        if truncate {
            fs::write(&path, "PAR1").unwrap()
        } else {
            fs::remove_file(&path).unwrap()
        }
        let error = writer.commit(epoch).unwrap_err();
        assert!(matches!(error, Error::Io { path: at, .. } | Error::Size { path: at, .. } if at == path));
        assert_eq!(Store::open(dir.path()).unwrap().manifest().epoch, 1);
    }
}

#[test]
fn every_flipped_byte_is_found_and_none_panics() {
    let dir = tempfile::tempdir().unwrap();
    model().write(dir.path(), 1);
    ask_all(dir.path()).unwrap();
    for path in files_below(&dir.path().join("rows")) {
        let good = fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= [0x01, 0x80, 0xff][at % 3];
            fs::write(&path, &bad).unwrap();
            let wrong = |error: &Error| matches!(error, Error::Checksum { path: at, .. } if *at == path);
            assert!(ask_all(dir.path()).is_err_and(|error| wrong(&error)));
            if at % 16 == 0 {
                let report = check(dir.path()).unwrap();
                assert!(report.problems.len() == 1 && wrong(&report.problems[0]), "{:?}", report.problems);
            }
        }
        for length in [0, 4, good.len() / 2, good.len() - 1] {
            fs::write(&path, &good[..length]).unwrap();
            assert!(matches!(ask_all(dir.path()), Err(Error::Size { .. })));
            let report = check(dir.path()).unwrap();
            assert!(matches!(&report.problems[..], [Error::Size { .. }]), "{:?}", report.problems);
        }
        fs::remove_file(&path).unwrap();
        assert!(matches!(ask_all(dir.path()), Err(Error::Io { path: at, .. }) if at == path));
        assert!(!check(dir.path()).unwrap().is_sound());
        fs::write(&path, &good).unwrap();
    }
    assert!(check(dir.path()).unwrap().is_sound());
}

#[test]
fn writers_refuse_disorder_with_both_values() {
    let dir = tempfile::tempdir().unwrap();
    let writer = StoreWriter::open(dir.path(), "test", None).unwrap();
    let row = writer.begin_row().unwrap();
    let text = |result: Result<(), Error>| result.unwrap_err().to_string();
    let mut urls = UrlWriter::create(&row, 0).unwrap();
    urls.push(Uid(4), "http://example.com/b", "com,example)/b").unwrap();
    assert_eq!(text(urls.push(Uid(6), "http://example.com/c", "x")), "UID out of order: 6 after 4");
    assert_eq!(text(urls.push(Uid(4), "http://example.com/c", "x")), "UID out of order: 4 after 4");
    let disorder = "key of URL out of order: http://example.com/a after http://example.com/b";
    assert_eq!(text(urls.push(Uid(5), "http://example.com/a", "x")), disorder);
    assert!(matches!(urls.push(Uid(5), "http://example.com/b", "x"), Err(Error::OutOfOrder { .. })));
    assert!(matches!(urls.push(Uid(5), "", "x"), Err(Error::EmptyUrl { uid: Uid(5) })));
    urls.push(Uid(5), "http://example.com/c", "com,example)/c").unwrap();
    assert_eq!(urls.finish().unwrap()[0].rows, 2);

    let page = Page { uid: Uid(7), timestamps: vec![1], links: [1].map(Uid).to_vec(), ..Page::default() };
    let none = Evidence::default();
    let mut out = OutlinksWriter::create(&row, 0).unwrap();
    out.push(&page, &none).unwrap();
    assert_eq!(text(out.push(&page, &none)), "UID out of order: 7 after 7");
    assert_eq!(text(out.push(&Page { uid: Uid(3), ..page.clone() }, &none)), "UID out of order: 3 after 7");
    let bad = text(out.push(&Page { uid: Uid(8), links: [5, 4].map(Uid).to_vec(), ..page }, &none));
    assert_eq!(bad, "record of UID 8: link 4 after 5");

    let record = InLinks { uid: Uid(7), ranges: vec![0], sources: [1].map(Uid).to_vec(), changes: vec![] };
    let mut into = InlinksWriter::create(&row, 0).unwrap();
    into.push(&record).unwrap();
    // A URL may have several in-link records.
    into.push(&record).unwrap();
    assert_eq!(text(into.push(&InLinks { uid: Uid(6), ..record.clone() })), "UID out of order: 6 after 7");
    let bad = text(into.push(&InLinks { uid: Uid(9), ranges: vec![5, 1], ..record }));
    assert_eq!(bad, "record of UID 9: time 1 after 5");
}

#[cfg(target_os = "linux")]
#[test]
fn a_device_in_the_place_of_a_layer_is_refused_with_its_path() {
    let dir = tempfile::tempdir().unwrap();
    let writer = StoreWriter::open(dir.path(), "test", None).unwrap();
    let row = writer.begin_row().unwrap();
    fs::create_dir_all(row.path().join("ol")).unwrap();
    let path = row.path().join("ol/part-00000.parquet");
    std::os::unix::fs::symlink("/dev/full", &path).unwrap();
    let error = OutlinksWriter::create(&row, 0).map(drop).unwrap_err();
    assert!(matches!(&error, Error::Io { path: at, .. } if *at == path), "{error}");
    assert!(error.to_string().contains("device"), "{error}");
}
