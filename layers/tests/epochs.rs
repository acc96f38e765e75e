//! Leases and collections: what a collection removes and keeps, wherever it stops, and that no reader ever notices it.
//! With the feature `remote`, the tests also run on an object store in memory.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod places;
mod plain_rows;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use places::places;
use plain_rows::*;
use webstrata_layers::gc::{Collected, collect, foretell};
use webstrata_layers::log::log;
use webstrata_layers::*;

/// Epochs 1 to 5. Rows: 1; 1 2; 1 3 (2 merged); 1 3 4; 5 (all merged).
fn five_epochs(place: &Location) {
    update(place, 3);
    update(place, 3);
    merge(place, 1, 3, &[(3, 5, 1), (4, 3, 2)]);
    update(place, 2);
    merge(place, 0, 8, &[(0, 0, 8)]);
}

/// The numbers of the epochs that can be opened. Checks all files of each.
fn whole_epochs(place: &Location) -> Vec<u64> {
    let of_epoch = |epoch| match Store::open_epoch(place, epoch) {
        Ok(store) => {
            store.manifest().files().for_each(|file| store.verify(file).unwrap());
            let first = store.manifest().lineage().first().map_or(epoch, |past| past.epoch);
            Translations::between(&store, first).unwrap();
            Some(epoch)
        }
        Err(Error::RetiredEpoch { epoch: named, .. }) => {
            assert_eq!(named, epoch);
            None
        }
        Err(error) => panic!("{error}"),
    };
    let current = Store::open(place).unwrap().manifest().epoch;
    (1..=current).filter_map(of_epoch).collect()
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names.into_iter().map(|name| name.into_string().unwrap()).collect()
}

#[test]
fn old_epochs_go_with_all_that_only_they_had() {
    let (_dir, places) = places();
    for place in &places {
        five_epochs(place);
        let size = |epoch: u64, row: usize| -> u64 {
            let store = Store::open_epoch(place, epoch).unwrap();
            store.manifest().rows[row].partitions[0].files.iter().map(|file| file.bytes).sum()
        };
        let bytes = size(2, 1);
        let expected = Collected {
            current: 5,
            kept: vec![3, 4, 5],
            removed: vec![1, 2],
            rows: vec![2],
            bytes,
            ..Collected::default()
        };
        assert_eq!(foretell(place, 3).unwrap(), expected);
        assert_eq!(whole_epochs(place), [1, 2, 3, 4, 5], "nothing was removed yet");
        assert_eq!(collect(place, "gc", 3).unwrap(), expected);
        assert_eq!(whole_epochs(place), [3, 4, 5]);
        let error = Store::open_epoch(place, 2).unwrap_err();
        assert_eq!(error.to_string(), format!("epoch 2 of {place} is retired; the current one is 5"));
        for never in [0, 6] {
            assert!(matches!(Store::open_epoch(place, never), Err(Error::MissingEpoch { .. })));
        }
        // A second collection removes nothing, and a writer finds nothing to remove.
        let again = Collected { removed: vec![], rows: vec![], bytes: 0, ..expected };
        assert_eq!(collect(place, "gc", 3).unwrap(), again);
        drop(writer(place));
        let bytes = size(3, 0) + size(3, 1) + size(4, 2);
        let last = collect(place, "gc", 0).unwrap();
        assert_eq!((last.kept, last.removed, last.rows, last.bytes), (vec![5], vec![3, 4], vec![1, 3, 4], bytes));
        // Translations outlive their epochs.
        let way = Translations::between(&Store::open(place).unwrap(), 2).unwrap();
        assert_eq!(
            (way.forward(Uid(3)), way.forward(Uid(4)), way.backward(Uid(7))),
            (Some(Uid(5)), Some(Uid(3)), None)
        );
        // After a build from scratch, they go with the last epoch that named them.
        rebuild(place, 1);
        let last = collect(place, "gc", 1).unwrap();
        let translations = ["translations/000003.parquet", "translations/000005.parquet"];
        assert_eq!(
            (last.removed, last.rows, last.translations),
            (vec![5], vec![5], translations.map(str::to_owned).to_vec())
        );
        assert!(check(place).unwrap().is_sound());
        assert_eq!(update(place, 2), 7);
    }
}

#[test]
fn an_epoch_stays_while_a_reader_has_it_open() {
    let (_dir, places) = places();
    for place in &places {
        five_epochs(place);
        let second = Store::open_epoch(place, 2).unwrap();
        let current = Store::open(place).unwrap();
        assert!(second.lease().is_some() && current.lease().is_some());
        update(place, 1);
        let expected = Collected {
            current: 6,
            kept: vec![6],
            leased: vec![2, 5],
            removed: vec![1, 3, 4],
            rows: vec![3, 4],
            ..Collected::default()
        };
        let without_bytes = |collected: Collected| Collected { bytes: 0, ..collected };
        assert_eq!(without_bytes(foretell(place, 1).unwrap()), expected);
        assert_eq!(without_bytes(collect(place, "gc", 1).unwrap()), expected);
        assert_eq!(whole_epochs(place), [2, 5, 6]);
        // A clone keeps the epoch, too.
        let clone = second.clone();
        drop((second, current));
        assert_eq!(collect(place, "gc", 1).unwrap().removed, [5]);
        clone.manifest().files().for_each(|file| clone.verify(file).unwrap());
        drop(clone);
        assert_eq!(collect(place, "gc", 1).unwrap().removed, [2]);
        assert_eq!(whole_epochs(place), [6]);
    }
}

#[test]
fn readers_never_see_a_collection() {
    let (_dir, places) = places();
    for place in &places {
        update(place, 4);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let readers: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        let mut epochs = BTreeSet::new();
                        while !done.load(Ordering::Relaxed) {
                            let store = Store::open(place).unwrap();
                            let manifest = store.manifest();
                            manifest.files().for_each(|file| store.verify(file).unwrap());
                            epochs.insert(manifest.epoch);
                            // The epoch before is complete, or retired.
                            let older = manifest.epoch.saturating_sub(1).max(1);
                            match Store::open_epoch(place, older) {
                                Ok(store) => store.manifest().files().for_each(|file| store.verify(file).unwrap()),
                                Err(Error::RetiredEpoch { epoch, .. }) => assert_eq!(epoch, older),
                                Err(error) => panic!("{error}"),
                            }
                            foretell(place, 1).map(drop).or_else(expect_gone).unwrap();
                        }
                        epochs.len()
                    })
                })
                .collect();
            let mut removed = 0;
            for _ in 0..20 {
                rebuild(place, 3);
                removed += collect(place, "gc", 1).unwrap().removed.len();
            }
            done.store(true, Ordering::Relaxed);
            let seen: Vec<usize> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
            assert!(removed > 3 && seen.iter().all(|&epochs| epochs > 2), "{removed} {seen:?}");
        });
        assert_eq!(collect(place, "gc", 1).unwrap().kept, [21]);
        assert_eq!(whole_epochs(place), [21]);
    }
}

/// A dry run takes no lock, so its files may be removed meanwhile.
fn expect_gone(error: Error) -> Result<(), Error> {
    match &error {
        Error::MissingEpoch { .. } => Ok(()),
        Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    }
}

#[test]
fn a_collection_that_stopped_anywhere_is_finished_by_the_next() {
    // The removals of a collection, in order. Each run stops after one more of them.
    let steps = [
        "epochs/000001.json",
        "epochs/000002.json",
        "epochs/000003.json",
        "epochs/000004.json",
        "rows/000001/url",
        "rows/000001",
        "rows/000002",
        "rows/000003/ol/part-00000.parquet",
        "cells/000001",
    ];
    for done in 0..=steps.len() {
        for by_writer in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let place = Location::from(dir.path());
            five_epochs(&place);
            rebuild(&place, 2);
            for row in ["000001", "000003", "000006"] {
                fs::create_dir_all(dir.path().join("cells").join(row)).unwrap();
            }
            for step in &steps[..done] {
                let path = dir.path().join(step);
                if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
            }
            let before = whole_epochs(&place);
            assert_eq!(before, (1 + done.min(4) as u64..=6).collect::<Vec<_>>());
            if by_writer {
                drop(writer(&place));
                assert_eq!(whole_epochs(&place), before);
            }
            collect(&place, "gc", 2).unwrap();
            assert_eq!(whole_epochs(&place), [5, 6]);
            assert_eq!(names(&dir.path().join("rows")), ["000005", "000006"]);
            assert_eq!(names(&dir.path().join("cells")), ["000006"]);
            assert_eq!(names(&dir.path().join("epochs")), ["000005.json", "000006.json"]);
            assert_eq!(names(&dir.path().join("translations")).len(), 2, "epoch 5 names them");
        }
    }
}

#[test]
fn a_job_that_was_killed_can_go_on_after_a_collection() {
    let (_dir, places) = places();
    for place in &places {
        five_epochs(place);
        let entry = plain_row(&writer(place).begin_row().unwrap(), 0, 8);
        let kept = entry.row;
        let opened = StoreWriter::open(place, "test", Some(kept)).unwrap();
        let translation =
            TranslationWriter::create(&opened.resume_row(kept).unwrap(), Uid(0)).unwrap().finish().unwrap();
        drop(opened);
        let collected = collect(place, "gc", 1).unwrap();
        assert_eq!((collected.rows, collected.translations), (vec![1, 2, 3, 4], vec![]));
        let opened = StoreWriter::open(place, "test", Some(kept)).unwrap();
        assert_eq!(opened.commit(epoch_of(vec![entry], Some(translation))).unwrap(), 6);
        assert!(check(place).unwrap().is_sound());
    }
}

#[test]
fn collections_and_writers_wait_for_each_other() {
    let (_dir, places) = places();
    for place in &places {
        assert!(matches!(collect(place, "gc", 1), Err(Error::NotAStore { .. })));
        assert!(matches!(foretell(place, 1), Err(Error::NotAStore { .. })));
        if let Some(dir) = place.directory() {
            assert!(!dir.exists(), "a collection made a directory");
        }
        five_epochs(place);
        let opened = StoreWriter::open(place, "a build", None).unwrap();
        let error = collect(place, "gc", 1).unwrap_err();
        assert!(matches!(&error, Error::Locked { owner, .. } if owner == "a build"), "{error}");
        assert_eq!(foretell(place, 1).unwrap().removed, [1, 2, 3, 4]);
        drop(opened);
        assert_eq!(whole_epochs(place), [1, 2, 3, 4, 5]);
        collect(place, "gc", 1).unwrap();
        drop(writer(place));
    }
}

#[test]
fn a_manifest_that_cannot_be_read_stops_a_collection_before_it_begins() {
    let dir = tempfile::tempdir().unwrap();
    let place = Location::from(dir.path());
    five_epochs(&place);
    fs::write(dir.path().join("epochs/000003.json"), "{").unwrap();
    assert!(matches!(collect(&place, "gc", 1), Err(Error::DamagedManifest { .. })));
    assert_eq!(names(&dir.path().join("epochs")).len(), 5);
    assert_eq!(names(&dir.path().join("rows")).len(), 5);
}

#[test]
fn the_log_has_the_epochs_that_are_left() {
    let (_dir, places) = places();
    for place in &places {
        assert!(matches!(log(place).map(drop), Err(Error::NotAStore { .. })));
        five_epochs(place);
        collect(place, "gc", 3).unwrap();
        let epochs: Vec<_> = log(place).unwrap().collect::<Result<_, _>>().unwrap();
        let shown: Vec<_> = epochs.iter().map(|epoch| (epoch.manifest.epoch, epoch.manifest.origin())).collect();
        assert_eq!(shown, [(5, Origin::Merged), (4, Origin::Updated), (3, Origin::Merged)]);
        let now = chrono::Utc::now().timestamp();
        assert!(epochs.iter().all(|epoch| (now - 600..=now).contains(&epoch.time)), "{now}");
        assert!(epochs.is_sorted_by_key(|epoch| -epoch.time));
    }
}

/// The reader may read the store, but may not write to it.
#[cfg(unix)]
#[test]
fn a_reader_without_the_right_to_write_has_a_lease() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let place = Location::from(dir.path());
    five_epochs(&place);
    let set = |mode: [u32; 2]| {
        let epochs = dir.path().join("epochs");
        for name in names(&epochs) {
            fs::set_permissions(epochs.join(name), fs::Permissions::from_mode(mode[0])).unwrap();
        }
        fs::set_permissions(&epochs, fs::Permissions::from_mode(mode[1])).unwrap();
    };
    set([0o444, 0o555]);
    let store = Store::open_epoch(&place, 2).unwrap();
    assert!(store.lease().is_some());
    set([0o644, 0o755]);
    assert_eq!(collect(&place, "gc", 1).unwrap().leased, [2]);
}
