//! Stores with intact files that break a promise: `check` must name each problem.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod small_store;

use small_store::{Captures, Model, links};
use webstrata_layers::overview::{Lives, Numbers, Overview};
use webstrata_layers::*;

const MONTH: i64 = 30 * 86_400;

fn model() -> Model {
    let captures = Captures::from([
        ((0, 5), links(&[1, 2])),
        ((0, MONTH + 5), links(&[1])),
        ((2, 7), links(&[1, 4])),
        ((2, MONTH), None),
        ((4, 9), links(&[4])),
    ]);
    Model::new(captures, 5, RangeLength::Days(30))
}

/// Commits a store with these changes of layers and manifest, and returns the problems that `check` finds.
fn problems(spoil: impl FnOnce(&mut Model), spoil_epoch: impl FnOnce(&mut NewEpoch)) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let mut model = model();
    spoil(&mut model);
    let writer = StoreWriter::open(dir.path(), "test", None).unwrap();
    let mut epoch = model.write_row(&writer, 2);
    spoil_epoch(&mut epoch);
    writer.commit(epoch).unwrap();
    let report = check(dir.path()).unwrap();
    assert_eq!(report.is_sound(), report.problems.is_empty());
    let root = format!("{}/", dir.path().display());
    report.problems.iter().map(|problem| problem.to_string().replace(&root, "")).collect()
}

fn spoiled(spoil: impl FnOnce(&mut Model)) -> Vec<String> {
    problems(spoil, |_| {})
}

#[test]
fn a_sound_store_has_no_problem() {
    assert_eq!(spoiled(|_| {}), [""; 0]);
}

#[test]
fn in_links_that_do_not_mirror_out_links() {
    let lost = spoiled(|model| drop(model.in_links.pop()));
    assert_eq!(lost, ["in-links do not mirror out-links: 4 triples of source, link and time range against 6"]);
    // The number of triples is the same, but a source differs. Then a range differs.
    let other = spoiled(|model| model.in_links[1].sources[0] = Uid(3));
    assert_eq!(other, ["in-links do not mirror out-links: 6 triples of source, link and time range against 6"]);
    let other = spoiled(|model| model.in_links[1].ranges[0] = MONTH);
    assert_eq!(other, ["in-links do not mirror out-links: 6 triples of source, link and time range against 6"]);
}

#[test]
fn ranges_that_start_nowhere() {
    let found = spoiled(|model| model.in_links[0].ranges[0] = 1);
    assert_eq!(found[0], "rows/000001/il/part-00000.parquet, row 0: time 1 is not the start of a range");
}

#[test]
fn uids_outside() {
    let found = spoiled(|model| model.pages[0].links[1] = Uid(9));
    assert_eq!(found[0], "rows/000001/ol/part-00000.parquet, row 0: UID 9 is outside 0..5");
    // The partitions have the UIDs 0..2 and 2..5. Move a page of the second partition to the first.
    let found = problems(
        |_| {},
        |epoch| {
            let [first, second] = &mut epoch.rows[0].partitions[..] else { panic!() };
            for at in 1..5 {
                std::mem::swap(&mut first.files[at], &mut second.files[at]);
                std::mem::swap(&mut first.files[at].partition, &mut second.files[at].partition);
            }
        },
    );
    assert_eq!(found[0], "rows/000001/ol/part-00001.parquet, row 0: UID 2 is outside 0..2");
}

#[test]
fn manifests_that_count_wrong() {
    let found = problems(|_| {}, |epoch| epoch.rows[0].counts.occurrences += 1);
    assert!(found.len() == 1 && found[0].starts_with("row 1: the manifest has the counts "), "{found:?}");
    let found = problems(|_| {}, |epoch| epoch.rows[0].counts.last_time = None);
    assert!(found.len() == 1 && found[0].starts_with("row 1: the manifest has the counts "), "{found:?}");
}

#[test]
fn first_keys_that_are_not_the_first_keys() {
    let found = problems(|_| {}, |epoch| epoch.rows[0].partitions[1].first_key.push_str("00"));
    let place = "rows/000001/url/part-00001.parquet, row 0: ";
    assert_eq!(found, [format!("{place}the key of \"http://example.com/2\" does not come after that of \"\"")]);
}

#[test]
fn files_that_are_of_another_layer() {
    let found = problems(
        |_| {},
        |epoch| {
            let files = &mut epoch.rows[0].partitions[0].files;
            let (ol, il) = (files[1].clone(), files[5].clone());
            // Both layers have the same columns, so only the graph shows the mistake.
            files[1] = FileEntry { layer: Layer::Ol, ..il };
            files[5] = FileEntry { layer: Layer::Il, ..ol };
        },
    );
    assert!(!found.is_empty());
    let found = problems(
        |model| model.in_links.clear(),
        |epoch| {
            let files = &mut epoch.rows[0].partitions[0].files;
            let (ts, bv) = (files[2].clone(), files[3].clone());
            files[2] = FileEntry { layer: Layer::Ts, ..bv };
            files[3] = FileEntry { layer: Layer::Bv, ..ts };
        },
    );
    assert!(found[0].starts_with("rows/000001/bv/part-00000.parquet: expected columns "), "{found:?}");
}

#[test]
fn every_byte_of_the_files_beside_the_layers_counts() {
    let dir = tempfile::tempdir().unwrap();
    let writer = StoreWriter::open(dir.path(), "test", None).unwrap();
    let epoch = model().write_row(&writer, 2);
    writer.commit(epoch).unwrap();
    let store = Store::open(dir.path()).unwrap();
    let overview = Overview {
        of: store.id(),
        first_year: 1970,
        all: Numbers::of_years(1),
        lives: Lives::default(),
        hosts_captured: 1,
        hosts: Vec::new(),
        domains: Vec::new(),
    };
    overview.write(store.location()).unwrap();
    let notes = Notes::of(store.location(), Sealed::Watches);
    notes.hold("top").unwrap().write(b"{\"k\":100}\n").unwrap();
    let report = check(dir.path()).unwrap();
    assert!(report.is_sound() && report.unread.is_nothing(), "{report:?}");
    for (name, remedy) in [("overviews/000001.json", "webstrata overview"), ("watches/top.json", "--forget")] {
        let path = dir.path().join(name);
        let sound = std::fs::read(&path).unwrap();
        let digits: Vec<usize> = (0..sound.len()).filter(|&at| sound[at].is_ascii_digit()).collect();
        for &at in &digits {
            let mut other = sound.clone();
            other[at] = b'0' + (other[at] - b'0' + 1) % 10;
            std::fs::write(&path, &other).unwrap();
            let report = check(dir.path()).unwrap();
            let [problem] = &report.problems[..] else { panic!("{name}, byte {at}: {report:?}") };
            let problem = problem.to_string();
            assert!(problem.contains(name) && problem.contains(remedy), "{problem}");
            let read = match name {
                "watches/top.json" => notes.read("top").map(drop),
                _ => Overview::read(&store).map(drop),
            };
            assert_eq!(read.unwrap_err().to_string(), problem);
        }
        std::fs::write(&path, &sound).unwrap();
    }
    assert_eq!(Overview::read(&store).unwrap(), Some(overview));
}

#[test]
fn earlier_epochs_are_checked_when_asked_for_and_named_when_not() {
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let writer = StoreWriter::open(dir.path(), "test", None).unwrap();
        let epoch = model().write_row(&writer, 2);
        writer.commit(epoch).unwrap();
    }
    // Two partitions of eight layers are not in the second epoch.
    let report = check(dir.path()).unwrap();
    assert_eq!((&report.epochs[..], report.unread.files, &report.unread.epochs[..]), (&[2][..], 16, &[1][..]));
    let all = check_all(dir.path()).unwrap();
    assert!(all.is_sound() && all.unread.is_nothing() && all.epochs == [2, 1], "{all:?}");
    assert_eq!((all.files, all.counts), (2 * report.files, report.counts));
    let path = dir.path().join("rows/000001/ts/part-00000.parquet");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[20] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    assert!(check(dir.path()).unwrap().is_sound());
    let found = check_all(dir.path()).unwrap();
    assert!(found.problems_found == 1 && found.problems[0].to_string().contains("rows/000001/ts/part-00000"));
    // Both checks read the manifest of the earlier epoch.
    let path = dir.path().join("epochs/000001.json");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("captures", "capturez", 1)).unwrap();
    for found in [check(dir.path()).unwrap(), check_all(dir.path()).unwrap()] {
        assert!(found.problems[0].to_string().contains("epochs/000001.json is damaged"), "{found:?}");
    }
    std::fs::write(&path, text).unwrap();
    // No answer needs files that no epoch names. The report lists them as not read.
    std::fs::write(dir.path().join("notes.txt"), "mine").unwrap();
    std::fs::create_dir_all(dir.path().join("rows/000009")).unwrap();
    assert_eq!(check_all(dir.path()).unwrap().unread.unnamed, ["notes.txt", "rows/000009"]);
}
