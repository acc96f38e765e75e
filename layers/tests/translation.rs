//! UIDs through merges: chains of epochs compared with plain maps, the contents of files, invalid shifts, and damage.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod plain_rows;

use std::collections::BTreeMap;
use std::fs;

use plain_rows::*;
use proptest::prelude::*;
use webstrata_layers::*;

#[derive(Clone, Debug)]
enum Step {
    Update {
        urls: usize,
    },
    /// Merges the newest rows into one. `seed` gives the order of URLs and, with `drops`, selects URLs to drop.
    Merge {
        rows: usize,
        seed: u64,
        drops: bool,
    },
    Rebuild {
        urls: usize,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let merge =
        (1..4usize, any::<u64>(), any::<bool>()).prop_map(|(rows, seed, drops)| Step::Merge { rows, seed, drops });
    let step = prop_oneof![
        5 => (0..12usize).prop_map(|urls| Step::Update { urls }),
        5 => merge,
        1 => (0..12usize).prop_map(|urls| Step::Rebuild { urls }),
    ];
    prop::collection::vec(step, 1..8)
}

/// Numbers that look random and are the same in every run.
fn mixed(number: u64, seed: u64) -> u64 {
    (number ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_chain_of_epochs_translates_as_plain_maps_do(steps in steps()) {
        let dir = tempfile::tempdir().unwrap();
        let place = Location::from(dir.path());
        // The rows, each as a list of names. A UID is a position in the list of all rows.
        let (mut rows, mut next) = (vec![vec![0u64, 1, 2]], 3u64);
        rebuild(&place, 3);
        let mut epochs = vec![rows.concat()];
        let mut first = 1;
        for step in steps {
            let mut fresh = |urls: usize| -> Vec<u64> {
                next += urls as u64;
                (next - urls as u64..next).collect()
            };
            let epoch = match step {
                Step::Update { urls } => {
                    rows.push(fresh(urls));
                    update(&place, urls as u64)
                }
                Step::Rebuild { urls } => {
                    rows = vec![fresh(urls)];
                    first = epochs.len() as u64 + 1;
                    rebuild(&place, urls as u64)
                }
                Step::Merge { rows: newest, seed, drops } => {
                    let kept = rows.len().saturating_sub(newest);
                    let before = rows.concat();
                    let mut merged = rows.split_off(kept).concat();
                    // Most shifts should have several UIDs.
                    merged.sort_by_key(|&name| (mixed(name / 3, seed), name));
                    merged.retain(|&name| !drops || !mixed(name, !seed).is_multiple_of(4));
                    let below: usize = rows.iter().map(Vec::len).sum();
                    let place_of: BTreeMap<u64, usize> =
                        merged.iter().enumerate().map(|(at, &name)| (name, below + at)).collect();
                    let new = |old: usize| place_of.get(&before[old]).map(|&new| new as u64);
                    let runs = (below..before.len()).filter_map(|old| Some((old as u64, new(old)?, 1)));
                    let runs: Vec<_> = runs.collect();
                    let urls = merged.len() as u64;
                    rows.push(merged);
                    merge(&place, kept, urls, &runs)
                }
            };
            epochs.push(rows.concat());
            prop_assert_eq!(epoch, epochs.len() as u64);
        }
        let store = Store::open(&place).unwrap();
        let now = epochs.last().unwrap();
        for (from, then) in (1..).zip(&epochs) {
            let way = Translations::between(&store, from);
            if from < first {
                let wrong = way.unwrap_err();
                prop_assert!(matches!(wrong, Error::NoTranslation { first: named, .. } if named == first), "{}", wrong);
                continue;
            }
            let way = way.unwrap();
            let expected = |from: &[u64], to: &[u64], uid: u64| {
                let name = from.get(usize::try_from(uid).unwrap())?;
                to.iter().position(|other| other == name).map(|at| Uid(at as u64))
            };
            for uid in 0..then.len().max(now.len()) as u64 + 3 {
                prop_assert_eq!(way.forward(Uid(uid)), expected(then, now, uid), "{} from {}", uid, from);
                prop_assert_eq!(way.backward(Uid(uid)), expected(now, then, uid), "{} to {}", uid, from);
            }
            prop_assert_eq!((way.forward(Uid(u64::MAX)), way.backward(Uid(u64::MAX))), (None, None));
        }
        prop_assert!(check(&place).unwrap().is_sound());
    }
}

/// Epoch 1 has UIDs 0 to 2, and epoch 2 adds 3 to 5. Epoch 3 has the second row in another order, without UID 4.
fn merged() -> (tempfile::TempDir, Location) {
    merged_by(&[(3, 4, 1), (5, 3, 1)])
}

/// As [`merged`], with these valid or invalid shifts from epoch 2 to 3.
fn merged_by(runs: &[(u64, u64, u64)]) -> (tempfile::TempDir, Location) {
    let dir = tempfile::tempdir().unwrap();
    let place = Location::from(dir.path());
    update(&place, 3);
    update(&place, 3);
    assert_eq!(merge(&place, 1, 2, runs), 3);
    (dir, place)
}

/// If these bytes change, the format or the encoder has changed.
#[test]
fn a_translation_has_always_the_same_bytes() {
    let (_dir, place) = merged();
    let store = Store::open(&place).unwrap();
    let entry = store.manifest().translations().next().unwrap();
    assert_eq!((entry.rows, entry.bytes, entry.checksum.as_str()), (2, 357, "f3b23e4a7e58fe03"));
}

#[test]
fn runs_that_touch_are_one() {
    let (dir, place) = merged();
    update(&place, 200_000);
    let runs = [(3, 10, 2), (5, 12, 0), (5, 12, 3), (8, 16, 4), (20, 20, 100)];
    merge(&place, 0, 200_000, &runs);
    let store = Store::open(&place).unwrap();
    let entry = store.manifest().translations().last().unwrap();
    assert_eq!((entry.rows, entry.below, entry.path.as_str()), (3, Uid(0), "translations/000005.parquet"));
    assert_eq!(fs::metadata(dir.path().join(&entry.path)).unwrap().len(), entry.bytes);
    let way = Translations::between(&store, 4).unwrap();
    for (old, new) in [(3, 10), (4, 11), (5, 12), (7, 14), (8, 16), (11, 19), (20, 20), (119, 119)] {
        assert_eq!((way.forward(Uid(old)), way.backward(Uid(new))), (Some(Uid(new)), Some(Uid(old))));
    }
    for (old, new) in [(2, 9), (12, 15), (19, 0), (120, 120), (200_004, 200_004)] {
        assert_eq!((way.forward(Uid(old)), way.backward(Uid(new))), (None, None), "{old} {new}");
    }
}

#[test]
fn many_row_groups_come_back() {
    let (_dir, place) = merged();
    let urls = 200_000;
    update(&place, urls);
    // UIDs are swapped in pairs, so each UID is a shift.
    let runs: Vec<_> = (0..urls).map(|at| (5 + at, 5 + (at ^ 1), 1)).collect();
    merge(&place, 2, urls, &runs);
    let store = Store::open(&place).unwrap();
    let entry = store.manifest().translations().last().unwrap();
    assert!(entry.rows == urls && entry.bytes < urls, "{entry:?}");
    let way = Translations::between(&store, 4).unwrap();
    assert!((0..urls).all(|at| way.forward(Uid(5 + at)) == Some(Uid(5 + (at ^ 1)))
        && way.backward(Uid(5 + at)) == Some(Uid(5 + (at ^ 1)))));
    assert_eq!((way.forward(Uid(4)), way.backward(Uid(4))), (Some(Uid(4)), Some(Uid(4))));
}

#[test]
fn runs_in_disorder_are_refused() {
    let (_dir, place) = merged();
    let row = writer(&place).begin_row().unwrap();
    let mut file = TranslationWriter::create(&row, Uid(10)).unwrap();
    let mut text = |old, new, count| file.push(old, new, count).err().map(|error| error.to_string());
    assert_eq!(text(Uid(12), Uid(100), 3), None);
    assert_eq!(text(Uid(14), Uid(200), 3), Some("UID out of order: 14 after 14".to_owned()));
    assert_eq!(text(Uid(3), Uid(200), 3), Some("UID out of order: 3 after 14".to_owned()));
    assert_eq!(text(Uid(20), Uid(9), 1), Some("UID out of order: 9 after 10".to_owned()));
    assert!(text(Uid(20), Uid(u64::MAX), 1).is_some() && text(Uid(u64::MAX - 1), Uid(30), 2).is_some());
    assert_eq!((text(Uid(15), Uid(10), 1), text(Uid(16), Uid(11), u64::MAX - 16)), (None, None));
}

#[test]
fn epochs_without_a_way_are_named() {
    let (_dir, place) = merged();
    let between = |from| Translations::between(&Store::open(&place).unwrap(), from);
    for from in [0, 4, u64::MAX] {
        assert!(matches!(between(from), Err(Error::MissingEpoch { epoch, .. }) if epoch == from));
    }
    assert_eq!(between(1).unwrap().backward(Uid(3)), None, "it came after epoch 1");
    assert_eq!(between(2).unwrap().backward(Uid(3)), Some(Uid(5)));
    assert_eq!(rebuild(&place, 6), 4);
    let text = between(3).unwrap_err().to_string();
    let expected =
        format!("{place} cannot translate UIDs of epoch 3: epoch 4 replaced the store and gave all URLs new UIDs");
    assert_eq!(text, expected);
    assert_eq!(between(4).unwrap().forward(Uid(5)), Some(Uid(5)));
    // An open epoch does not see later epochs.
    let second = Store::open_epoch(&place, 3).unwrap();
    assert_eq!(Translations::between(&second, 1).unwrap().forward(Uid(2)), Some(Uid(2)));
}

#[test]
fn a_commit_takes_only_the_translation_of_its_merge() {
    let (_dir, place) = merged();
    let commit = |below: u64, kept: usize, path: Option<&str>| {
        let writer = writer(&place);
        let mut rows = rows_of(&place);
        let row = writer.begin_row().unwrap();
        let translation = TranslationWriter::create(&row, Uid(below)).unwrap();
        let mut translation = translation.finish().unwrap();
        translation.path = path.map_or(translation.path, str::to_owned);
        rows.truncate(kept);
        rows.push(plain_row(&row, if kept == 0 { 0 } else { 3 }, 1));
        writer.commit(epoch_of(rows, Some(translation)))
    };
    let of_the_merge_before = Some("translations/000003.parquet");
    for (below, kept, path) in [(3, 1, of_the_merge_before), (4, 1, None), (3, 0, None)] {
        let error = commit(below, kept, path).unwrap_err();
        let flaw = ManifestFlaw::History;
        assert!(matches!(&error, Error::BadManifest { flaw: found, .. } if *found == flaw), "{error}");
    }
    assert_eq!(commit(3, 1, None).unwrap(), 4);
}

#[test]
fn translations_of_dead_writers_go_but_for_the_one_that_is_kept() {
    let (dir, place) = merged();
    let names = || {
        let names = fs::read_dir(dir.path().join("translations")).unwrap();
        let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let dead = |keep| {
        let writer = StoreWriter::open(&place, "test", keep).unwrap();
        let row = writer.begin_row().unwrap();
        TranslationWriter::create(&row, Uid(0)).unwrap().finish().unwrap();
        row.row()
    };
    fs::write(dir.path().join("translations/notes.txt"), "mine").unwrap();
    let row = dead(None);
    let with = ["000003.parquet", "000004.parquet", "notes.txt"];
    assert_eq!(names(), with);
    drop(StoreWriter::open(&place, "test", Some(row)).unwrap());
    assert_eq!(names(), with);
    drop(writer(&place));
    assert_eq!(names(), ["000003.parquet", "notes.txt"]);
    assert_eq!(Translations::between(&Store::open(&place).unwrap(), 2).unwrap().forward(Uid(3)), Some(Uid(4)));
}

#[test]
fn every_flipped_byte_of_a_translation_is_found() {
    let (dir, place) = merged();
    let path = dir.path().join("translations/000003.parquet");
    let good = fs::read(&path).unwrap();
    let store = Store::open(&place).unwrap();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x21;
        fs::write(&path, &bad).unwrap();
        let error = Translations::between(&store, 2).unwrap_err();
        assert!(matches!(&error, Error::Checksum { path: found, .. } if *found == path), "{error}");
    }
    let report = check(&place).unwrap();
    assert!(matches!(&report.problems[..], [Error::Checksum { path: found, .. }] if *found == path));
    fs::write(&path, &good[..9]).unwrap();
    assert!(matches!(Translations::between(&store, 1), Err(Error::Size { .. })));
    fs::remove_file(&path).unwrap();
    assert!(matches!(Translations::between(&store, 1), Err(Error::Io { path: found, .. }) if found == path));
    assert_eq!(Translations::between(&store, 3).unwrap().forward(Uid(4)), Some(Uid(4)), "it needs no file");
}

/// The checksums of these files are right, but the contents contradict the epochs.
#[test]
fn runs_that_cannot_be_are_damage() {
    // Epoch 2 has UIDs 0 to 5, and epoch 3 has 0 to 4. UID 3 is the first UID of the merged row.
    for (runs, expected) in [
        (vec![(3, 3, 2), (5, 4, 1)], "row 1: UID 4 after 4"),
        (vec![(5, 3, 2)], "row 0: UID 6 is outside 3..6"),
        (vec![(3, 4, 2)], "row 0: UID 5 is outside 3..5"),
    ] {
        let (_dir, place) = merged_by(&runs);
        let store = Store::open(&place).unwrap();
        let text = Translations::between(&store, 2).unwrap_err().to_string();
        assert!(text.ends_with(expected), "{text}");
    }
}
