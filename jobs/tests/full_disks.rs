//! Builds, updates and merges on disks that are too small for the store or for temporary files. The error names the
//! full place and what to do, the store stays unchanged, and with more room the same command succeeds. Exports and
//! analyses name the full place, and leave nothing there.
//!
//! The disks are small file systems in memory, made by `mounts`. The tests are ignored by default.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod commands;
mod histories;
mod mounts;

use commands::{command, run, succeeds};
use histories::{Expected, Histories, JOBS, Job, current, nothing_is_left, whole_epochs};
use mounts::{Disk, with_own_mounts};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The number of steps between no room and the room that a job needs.
const STEPS: u64 = 8;

/// The exit code of a command, and the last line of its standard error.
fn end(mut command: Command) -> (Option<i32>, String) {
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), said.lines().last().unwrap_or_default().to_owned())
}

/// Asserts that a command failed because this place is full, and that the error says what to do.
fn is_full((code, error): &(Option<i32>, String), place: &Path, advice: &str) {
    assert_eq!(*code, Some(1), "{error}");
    assert!(error.starts_with("error: ") && error.contains("No space left"), "{error}");
    assert!(error.contains(place.to_str().unwrap()) && error.contains(advice), "{error}");
}

fn undisturbed(histories: &Histories, job: &Job) -> Expected {
    histories.copy(job.base, "undisturbed");
    let store = histories.path("undisturbed");
    let first = current(&store);
    assert_eq!(end(histories.job(job, &store, &histories.path("spill"), 1)).0, Some(0));
    let expected = Expected::of(&store, first);
    fs::remove_dir_all(store).unwrap();
    expected
}

#[test]
#[ignore = "mounts small file systems (Linux, unshare): cargo test --test full_disks -- --ignored"]
fn a_full_disk_of_a_build_leaves_the_old_epoch() {
    with_own_mounts("a_full_disk_of_a_build_leaves_the_old_epoch", || {
        let dir = tempfile::tempdir().unwrap();
        let disk = Disk::mount(dir.path().join("disk"), 128);
        let page = r#"{"url":"http://a.example/","ts":"20060115120000","links":["http://b.example/x"]}"#;
        fs::write(dir.path().join("crawl.jsonl"), page).unwrap();
        succeeds(dir.path(), "build --out {}/disk/store {}/crawl.jsonl");
        let before = succeeds(dir.path(), "info {}/disk/store");
        succeeds(dir.path(), "generate uk:occurrences=500000,seed=3 --out {}/large.jsonl");
        let output = run(dir.path(), "build --replace --out {}/disk/store {}/large.jsonl");
        let said = String::from_utf8(output.stderr).unwrap();
        // On a slow machine, standard error also has lines of progress.
        let errors: Vec<&str> = said.lines().filter(|line| line.starts_with("error: ")).collect();
        let [error] = errors[..] else { panic!("{said}") };
        is_full(&(output.status.code(), error.to_owned()), &disk.0.join("store"), "");
        assert_eq!(succeeds(dir.path(), "info {}/disk/store"), before);
        succeeds(dir.path(), "check {}/disk/store");
    });
}

#[test]
#[ignore = "mounts small file systems (Linux, unshare): cargo test --test full_disks -- --ignored"]
fn a_full_disk_of_the_copy_of_a_pipe() {
    with_own_mounts("a_full_disk_of_the_copy_of_a_pipe", || {
        let dir = tempfile::tempdir().unwrap();
        let disk = Disk::mount(dir.path().join("disk"), 256);
        succeeds(dir.path(), "generate uk:occurrences=200000,seed=3 --out {}/large.jsonl");
        let mut build = command(dir.path(), "build --out {}/store --spill {}/disk -");
        build.stdin(fs::File::open(dir.path().join("large.jsonl")).unwrap());
        is_full(&end(build), &disk.0, "choose another directory with --spill");
        assert!(!dir.path().join("store").exists());
        assert_eq!(fs::read_dir(&disk.0).unwrap().count(), 0, "files are left");
    });
}

#[test]
#[ignore = "mounts small file systems (Linux, unshare): cargo test --test full_disks -- --ignored"]
fn a_full_disk_of_a_store() {
    with_own_mounts("a_full_disk_of_a_store", || {
        let histories = Histories::new();
        for job in JOBS.iter().filter(|job| job.works) {
            let expected = undisturbed(&histories, job);
            let disk = Disk::mount(histories.path("disk"), 1 << 20);
            let (store, spill) = (histories.path("disk/store"), histories.path("spill"));
            let run = || end(histories.job(job, &store, &spill, 1));
            // Measures the space that the job needs, and then restores the store.
            histories.copy(job.base, "disk/store");
            let before = disk.used();
            assert_eq!(run().0, Some(0));
            let needed = disk.used() - before;
            fs::remove_dir_all(&store).unwrap();
            histories.copy(job.base, "disk/store");
            let mut failed = 0;
            for step in 0..=STEPS {
                disk.resize((before + needed * step / STEPS).max(disk.used()));
                let ended = run();
                if ended.0 == Some(0) {
                    break;
                }
                is_full(&ended, &store, "free some space there and run the same command again");
                expected.inspect(&store);
                failed += 1;
            }
            assert!(failed >= STEPS / 2, "{}: the disk was full only {failed} times", job.name);
            disk.resize(1 << 20);
            assert_eq!(run().0, Some(0));
            expected.is_done(&store, &spill);
            nothing_is_left(&store);
        }
    });
}

#[test]
#[ignore = "mounts small file systems (Linux, unshare): cargo test --test full_disks -- --ignored"]
fn a_full_disk_can_be_collected() {
    with_own_mounts("a_full_disk_can_be_collected", || {
        let histories = Histories::new();
        let disk = Disk::mount(histories.path("disk"), 1 << 20);
        let store = histories.path("disk/store");
        histories.copy("merged", "disk/store");
        let first = current(&store);
        disk.resize(disk.used());
        let written = fs::write(histories.path("disk/file"), "some");
        assert!(written.is_err(), "the disk is not full");
        histories.succeeds("gc STORE --keep 1", "disk/store");
        assert_eq!(whole_epochs(&store), [first]);
        fs::write(histories.path("disk/file"), "some").unwrap();
    });
}

#[test]
#[ignore = "mounts small file systems (Linux, unshare): cargo test --test full_disks -- --ignored"]
fn a_full_disk_of_temporary_files() {
    with_own_mounts("a_full_disk_of_temporary_files", || {
        let histories = Histories::new();
        for job in JOBS.iter().filter(|job| job.works) {
            let expected = undisturbed(&histories, job);
            histories.copy(job.base, "store");
            let store = histories.path("store");
            let disk = Disk::mount(histories.path("spill"), 4);
            let run = || end(histories.job(job, &store, &disk.0, 1));
            let (mut failed, mut kib) = (0, 4);
            let done = loop {
                let ended = run();
                if ended.0 == Some(0) {
                    break ended;
                }
                is_full(
                    &ended,
                    &disk.0,
                    "free some space there, or choose another directory with --spill, and run the same",
                );
                expected.inspect(&store);
                failed += 1;
                kib += kib.max(64) / 4;
                disk.resize(kib);
            };
            assert!(failed > 1, "{}: {failed} failures, {done:?}", job.name);
            expected.is_done(&store, &disk.0);
            nothing_is_left(&store);
            fs::remove_dir_all(&store).unwrap();
        }
    });
}

/// The results of exports and analyses: the error names the place, and nothing half-written is left there.
#[test]
#[ignore = "mounts small file systems (Linux, unshare): cargo test --test full_disks -- --ignored"]
fn a_full_disk_of_results() {
    const RESULTS: [&str; 18] = [
        "export STORE --out OUT.parquet",
        "export STORE --out OUT.csv --urls",
        "export STORE --out OUT.arrow --what events",
        "export STORE --out OUT.parquet --what nodes",
        "export STORE --out OUT.parquet --what layers",
        "export STORE --out OUT.csv --what hosts",
        "export STORE --out OUT --parts -w 2",
        "export STORE --out OUT.graphml",
        "export STORE --out OUT.gexf",
        "export STORE --out OUT.mtx",
        "export STORE --out OUT.tsv --format networkit",
        "export STORE --out OUT --format webgraph",
        "export STORE --out OUT --format cc-graph",
        "export STORE --out OUT --format cc-graph --by domain",
        "export STORE --out OUT --format neo4j",
        "export STORE --out OUT --format icebug",
        "analyze STORE degrees --out OUT.parquet",
        "fold STORE --unit prefix:1 --period month --out OUT.csv",
    ];
    with_own_mounts("a_full_disk_of_results", || {
        let place = tempfile::tempdir().unwrap();
        let disk = Disk::mount(place.path().join("disk"), 1 << 20);
        let (store, out) = (place.path().join("store"), disk.0.join("out"));
        let webstrata = |words: &str| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_webstrata"));
            let words = words.replace("OUT", out.to_str().unwrap()).replace("STORE", store.to_str().unwrap());
            command.args(words.split(' '));
            end(command)
        };
        // So many hosts that each file of a result has several pages.
        let crawl = place.path().join("crawl.jsonl");
        let mut captures = String::new();
        for (page, month) in (0..6000).flat_map(|page| [(page, 1), (page, 2)]) {
            let links = (1..8).map(|link| format!("\"http://host-{}.example/{link}\"", page * link * month % 5987));
            let links = links.collect::<Vec<_>>().join(",");
            captures +=
                &format!("{{\"url\":\"http://host-{page}.example/\",\"ts\":\"20080{month}\",\"links\":[{links}]}}\n");
        }
        fs::write(&crawl, captures).unwrap();
        assert_eq!(webstrata(&format!("build --out STORE {}", crawl.display())).0, Some(0));
        let files = || fs::read_dir(&disk.0).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
        for words in RESULTS {
            assert_eq!(webstrata(words).0, Some(0), "{words}");
            let needed = disk.used();
            assert!(needed > 8, "{words} takes {needed} KiB");
            for path in files() {
                if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
            }
            for part in [0, 4, 7] {
                // The size is a multiple of 4 KiB pages. A result has several pages.
                disk.resize((needed * part / 32 * 4).max(4));
                is_full(&webstrata(words), &disk.0, "free some space there and run the same command again");
                assert!(files().is_empty(), "{words} leaves {:?}", files());
            }
            disk.resize(1 << 20);
        }
    });
}
