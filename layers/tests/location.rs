//! One store in each kind of location: rows that are kept and continued, locks and their messages, and several
//! processes that write one row. With the feature `remote`, the tests also run on an object store in memory.
//! `tests/interop/s3.py` tests a store on a server.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod places;
mod small_store;

use std::collections::BTreeSet;
use std::fs;

use places::places;
use small_store::{Captures, Model, links};
use webstrata_layers::*;

fn model() -> Model {
    let captures = Captures::from([
        ((0, 1_146_441_600), links(&[1, 2, 3])),
        ((0, 1_149_120_000), links(&[1, 3])),
        ((2, 1_149_120_000), links(&[0, 2, 3])),
        ((3, 1_149_120_000), None),
    ]);
    Model::new(captures, 6, RangeLength::Month)
}

fn answers(location: &Location, memory_max: usize) -> Vec<String> {
    let reader = Reader::new(Store::open(location).unwrap(), memory_max);
    let of_uid = |uid: u64| {
        let url = reader.url(Uid(uid)).unwrap();
        assert_eq!(reader.uid(&url).unwrap(), Some(Uid(uid)));
        let at = Window::as_of(1_149_120_000);
        let sources = reader.in_links(Uid(uid), at, Precision::Exact).unwrap();
        format!(
            "{url} {:?} {:?} {sources:?}",
            reader.captures(Uid(uid)).unwrap(),
            reader.out_links(Uid(uid), at).unwrap()
        )
    };
    (0..6).map(of_uid).collect()
}

#[test]
fn a_store_answers_alike_wherever_it_lies() {
    let (_dir, places) = places();
    let mut all = BTreeSet::new();
    for place in &places {
        model().write(place, 2);
        assert!(check(place).unwrap().is_sound());
        // Without memory, the reader keeps nothing from one question to the next.
        all.insert(answers(place, 1 << 20));
        all.insert(answers(place, 0));
    }
    assert_eq!(all.len(), 1, "{all:?}");
}

#[test]
fn a_kept_row_survives_and_is_continued_with_the_same_bytes() {
    let (_dir, places) = places();
    for place in &places {
        model().write(place, 2);
        let written = {
            let writer = StoreWriter::open(place, "job 1", None).unwrap();
            model().write_row(&writer, 2)
        };
        let row = written.rows[0].row;
        assert_eq!(row, 2);
        // Beside it, write another row that is not kept.
        let writer = StoreWriter::open(place, "job 1", Some(row)).unwrap();
        let other = model().write_row(&writer, 1);
        assert_eq!(other.rows[0].row, 3, "a new row must not get the number of the kept one");
        drop(writer);

        let writer = StoreWriter::open(place, "job 1", Some(row)).unwrap();
        let resumed = writer.resume_row(row).unwrap();
        assert_eq!((resumed.row(), resumed.path()), (row, format!("{place}/rows/000002").into()));
        // Write the partitions again, over the files that are there.
        let again = model().write_into(&[resumed], 2);
        assert_eq!(again, written);
        assert_eq!(writer.commit(written).unwrap(), 2);
        assert!(check(place).unwrap().is_sound());
        let writer = StoreWriter::open(place, "job 2", None).unwrap();
        assert_eq!(writer.begin_row().unwrap().row(), 3, "the row beside it is gone");
    }
}

#[test]
fn rows_that_cannot_be_continued() {
    let (_dir, places) = places();
    for place in &places {
        model().write(place, 1);
        let writer = StoreWriter::open(place, "job", Some(1)).unwrap();
        let text = |row| writer.resume_row(row).unwrap_err().to_string();
        assert_eq!(text(1), format!("row 1 of {place} cannot be continued: an epoch has it"));
        assert_eq!(text(2), format!("row 2 of {place} cannot be continued: it was not kept when the store was opened"));
    }
}

#[test]
fn what_was_not_kept_is_gone() {
    let (_dir, places) = places();
    for place in &places {
        let writer = StoreWriter::open(place, "job", None).unwrap();
        let written = model().write_row(&writer, 2);
        drop(writer);
        let writer = StoreWriter::open(place, "job", None).unwrap();
        let error = writer.commit(written).unwrap_err();
        assert!(matches!(&error, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound), "{error}");
        assert!(matches!(Store::open(place), Err(Error::NotAStore { .. })));
    }
}

#[test]
fn many_processes_write_one_row() {
    let (dir, places) = places();
    for place in &places {
        let writer = StoreWriter::open(place, "job", None).unwrap();
        let first = writer.begin_row().unwrap();
        let staging = dir.path().join("staging");
        fs::create_dir_all(&staging).unwrap();
        let rows = [first.clone(), RowDir::open(place, first.row(), &staging)];
        let epoch = model().write_into(&rows, 3);
        assert_eq!(url_in_row(&rows[0], 1, 2, Uid(3)).unwrap(), Model::url(3));
        writer.commit(epoch).unwrap();
        assert!(check(place).unwrap().is_sound());
        assert!(!staging.exists() || fs::read_dir(&staging).unwrap().next().is_none());
    }
}

#[test]
fn the_lock_says_who_has_it() {
    let (_dir, places) = places();
    for place in &places {
        let writer = StoreWriter::open(place, "a long job of three hosts", None).unwrap();
        let error = StoreWriter::open(place, "b", None).unwrap_err();
        let Error::Locked { owner, lease, .. } = &error else { panic!("{error}") };
        assert_eq!((owner.as_str(), lease.is_some()), ("a long job of three hosts", place.directory().is_none()));
        let text = error.to_string();
        let start = format!("{place}/LOCK is locked by another writer: a long job of three hosts");
        assert!(text.starts_with(&start), "{text}");
        let hint = format!(
            "; if that job has died, run the command again 15 minutes after its end, or remove {place}/LOCK first"
        );
        assert_eq!(text.ends_with(&hint), place.directory().is_none(), "{text}");
        drop(writer);
        let writer = StoreWriter::open(place, "b", None).unwrap();
        let error = StoreWriter::open(place, "c", None).unwrap_err();
        assert!(matches!(&error, Error::Locked { owner, .. } if owner == "b"), "{error}");
        drop(writer);
        if let Some(dir) = place.directory() {
            assert_eq!(fs::read(dir.join("LOCK")).unwrap(), b"");
        }
    }
}

#[test]
fn notes_are_written_by_who_holds_them_and_are_no_part_of_the_store() {
    let (_dir, places) = places();
    for place in &places {
        model().write(place, 1);
        let notes = Notes::of(place, Sealed::Watches);
        assert_eq!((notes.names().unwrap(), notes.read("top").unwrap()), (vec![], None));
        let held = notes.hold("top").unwrap();
        assert!(notes.names().unwrap().is_empty(), "a lock is no note");
        held.write(b"one").unwrap();
        held.write(b"two").unwrap();
        notes.hold("all").unwrap().write(b"").unwrap();
        assert_eq!(
            (notes.names().unwrap(), notes.read("top").unwrap()),
            (vec!["all".into(), "top".into()], Some(b"two".to_vec()))
        );
        assert_eq!(notes.path("top").display().to_string(), format!("{place}/watches/top.json"));
        // The next process that asks is rejected in a directory, and gets the note in S3.
        match notes.hold("top") {
            Err(Error::Locked { path, .. }) => {
                assert!(place.directory().is_some() && path.ends_with("watches/top.lock"));
                held.remove().unwrap();
            }
            Ok(next) => {
                assert!(place.directory().is_none());
                let error = held.write(b"three").unwrap_err();
                assert!(matches!(error, Error::LockLost { .. }), "{error}");
                assert!(matches!(held.remove(), Err(Error::LockLost { .. })));
                next.remove().unwrap();
            }
            Err(error) => panic!("{error}"),
        }
        assert_eq!(notes.names().unwrap(), ["all"]);
        drop(notes.hold("top").unwrap());
        // Writers, collections and checks ignore notes.
        model().write(place, 1);
        gc::collect(place, "gc", 1).unwrap();
        assert!(check(place).unwrap().is_sound());
        assert_eq!(notes.names().unwrap(), ["all"]);
    }
}

#[test]
fn two_writers_never_make_the_same_epoch() {
    let dir = tempfile::tempdir().unwrap();
    model().write(dir.path(), 1);
    let writer = StoreWriter::open(dir.path(), "job", None).unwrap();
    let epoch = model().write_row(&writer, 1);
    let path = dir.path().join("epochs/000002.json");
    fs::write(&path, "made by somebody else").unwrap();
    assert!(matches!(writer.commit(epoch), Err(Error::EpochTaken { path: at }) if at == path));
    assert_eq!(fs::read_to_string(&path).unwrap(), "made by somebody else");
    assert_eq!(Store::open(dir.path()).unwrap().manifest().epoch, 1);
}

#[test]
fn a_store_is_found_by_its_file_url() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a store");
    let url = format!("file://{}", path.display().to_string().replace(' ', "%20"));
    let place: Location = url.parse().unwrap();
    model().write(&place, 1);
    assert_eq!(answers(&place, 1 << 20), answers(&path.as_path().into(), 1 << 20));
}

/// Tests of a lock that outlives its process.
#[cfg(feature = "remote")]
mod in_objects {
    use super::*;

    #[test]
    fn the_same_job_takes_its_own_lock_over() {
        let place = Location::in_memory();
        let killed = StoreWriter::open(&place, "job 7", None).unwrap();
        let written = model().write_row(&killed, 2);
        std::mem::forget(killed);
        assert!(matches!(StoreWriter::open(&place, "job 8", None), Err(Error::Locked { .. })));
        let writer = StoreWriter::open(&place, "job 7", Some(1)).unwrap();
        writer.resume_row(1).unwrap();
        writer.commit(written).unwrap();
        assert!(check(&place).unwrap().is_sound());
        StoreWriter::open(&place, "job 8", None).unwrap();
    }

    #[test]
    fn a_writer_that_lost_its_lock_commits_nothing() {
        let place = Location::in_memory();
        let slow = StoreWriter::open(&place, "slow", None).unwrap();
        let written = model().write_row(&slow, 1);
        // Somebody thinks that the writer is dead and takes the lock over with the same text. Then another writer gets
        // the lock.
        drop(StoreWriter::open(&place, "slow", Some(1)).unwrap());
        let other = StoreWriter::open(&place, "other", Some(1)).unwrap();
        let error = slow.commit(written).unwrap_err();
        assert!(matches!(&error, Error::LockLost { owner, .. } if owner == "other"), "{error}");
        assert!(matches!(Store::open(&place), Err(Error::NotAStore { .. })));
        // The slow writer did not remove the lock of the other one.
        assert!(matches!(StoreWriter::open(&place, "third", None), Err(Error::Locked { .. })));
        drop(other);
    }
}
