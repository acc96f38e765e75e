//! Epochs as a user sees them: the log of commits; the epochs that garbage collection removes, and the epochs that it
//! keeps for readers in other processes; UIDs of epochs before a merge.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod commands;
#[path = "../../layers/tests/plain_rows/mod.rs"]
mod plain_rows;

use commands::command;
use plain_rows::plain_row;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use webstrata_layers::*;

const CRAWL: &str = r#"{"url":"http://a.example/","ts":"20060115120000","links":["http://b.example/"]}"#;

/// Until a child runs its own program, it shares the open files of this process, and with them locks and leases. So no
/// child starts while a test itself has a store open.
fn no_child_starts() -> MutexGuard<'static, ()> {
    static STARTS: Mutex<()> = Mutex::new(());
    STARTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a command with pipes for standard output and standard error.
fn start(command: &mut Command) -> Child {
    let _starts = no_child_starts();
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn succeeds(dir: &Path, line: &str) -> String {
    let output = start(&mut command(dir, line)).wait_with_output().unwrap();
    assert!(output.status.success(), "{line}: {output:?}");
    text(&output.stdout)
}

fn fails(dir: &Path, line: &str) -> String {
    let output = start(&mut command(dir, line)).wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{line}: {output:?}");
    text(&output.stderr).trim_start_matches("error: ").trim_end().to_owned()
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// A directory with `crawl.jsonl`, and epoch 1 of `store` built from the crawl.
fn built() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("crawl.jsonl"), CRAWL).unwrap();
    succeeds(dir.path(), "build --out {}/store {}/crawl.jsonl");
    dir
}

/// Commits an epoch in which one row of `urls` URLs replaces the rows from `first` on, with a translation if `runs` is
/// not empty. Returns the number of the epoch.
fn commit(store: &Path, first: usize, urls: u64, runs: &[(u64, u64, u64)]) -> u64 {
    let _starts = no_child_starts();
    let writer = StoreWriter::open(store, "test", None).unwrap();
    let mut rows = Store::open(store).unwrap().manifest().rows.clone();
    rows.truncate(first);
    let below = Uid(rows.iter().map(|row| row.urls).sum());
    let row = writer.begin_row().unwrap();
    let translation = (!runs.is_empty()).then(|| {
        let mut translation = TranslationWriter::create(&row, below).unwrap();
        runs.iter().for_each(|&(old, new, count)| translation.push(Uid(old), Uid(new), count).unwrap());
        translation.finish().unwrap()
    });
    rows.push(plain_row(&row, below.0, urls));
    let inputs = Store::open(store).unwrap().manifest().provenance.inputs.clone();
    let provenance = Provenance { version: "test".to_owned(), inputs, ..Provenance::default() };
    writer.commit(NewEpoch { rows, in_range: RangeLength::Month, provenance, translation }).unwrap()
}

/// Epoch 1 has UIDs 0 and 1. Epoch 2 has three more. In epoch 3, the second row has another order and lacks UID 3.
/// Epoch 4 has one more.
fn four_epochs() -> TempDir {
    let dir = built();
    let store = dir.path().join("store");
    commit(&store, 1, 3, &[]);
    commit(&store, 1, 2, &[(2, 3, 1), (4, 2, 1)]);
    assert_eq!(commit(&store, 2, 1, &[]), 4);
    dir
}

#[test]
fn the_log_shows_every_epoch() {
    let dir = four_epochs();
    let shown = succeeds(dir.path(), "log {}/store");
    assert!(shown.lines().all(|line| line.len() <= 80), "{shown}");
    let lines: Vec<Vec<&str>> = shown.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["epoch", "committed", "origin", "inputs", "rows", "URLs", "captures", "links"]);
    let without_time: Vec<String> = lines[1..].iter().map(|line| [&line[..1], &line[2..]].concat().join(" ")).collect();
    assert_eq!(without_time, ["4 updated 1 3 5 1 1", "3 merged 1 2 4 1 1", "2 updated 1 2 5 1 1", "1 built 1 1 2 1 1"]);
    assert!(lines[1..].iter().all(|line| parse_time(line[1], false).is_ok()), "{shown}");
    let shown: Vec<Value> = succeeds(dir.path(), "log {}/store --format json").lines().map(json_of).collect();
    assert_eq!(
        (&shown[1]["epoch"], &shown[1]["rows"], &shown[1]["origin"]),
        (&json!(3), &json!([1, 3]), &json!("merged"))
    );
    assert_eq!((&shown[3]["inputs"], &shown[3]["counts"]["urls"]), (&json!(1), &json!(2)));
    assert!(shown[0]["committed"].as_str() >= shown[3]["committed"].as_str());
    assert!(fails(dir.path(), "log {}/nothing").contains("nothing is not a store"));
}

#[test]
fn the_log_shows_what_was_read() {
    let dir = four_epochs();
    std::fs::write(dir.path().join("more.jsonl"), CRAWL.replace("2006", "2007").replace("a.example", "new.example"))
        .unwrap();
    succeeds(dir.path(), "update {}/store {}/more.jsonl --no-merge");
    let shown: Vec<Value> = succeeds(dir.path(), "log {}/store --inputs --format json").lines().map(json_of).collect();
    let newest = &shown[shown.len() - 1];
    let name = dir.path().join("more.jsonl");
    let bytes = std::fs::read(&name).unwrap();
    let digest = format!("{:032x}", xxhash_rust::xxh3::xxh3_128(&bytes));
    let time = "2007-01-15T12:00:00Z";
    let bytes = bytes.len();
    let want = json!({
        "name": name.to_str(), "bytes": bytes, "captures": 1, "first": time, "last": time, "digest": digest,
    });
    assert_eq!(*newest, want);
    let lines = succeeds(dir.path(), "log {}/store --inputs");
    assert_eq!(lines.lines().count(), shown.len() + 1);
    let last: Vec<&str> = lines.lines().last().unwrap().split_whitespace().collect();
    assert_eq!(last, ["1", time, time, &bytes.to_string(), &digest, name.to_str().unwrap()]);
    // An earlier epoch lists the inputs up to this epoch. After a merge, all inputs are still listed.
    assert_eq!(succeeds(dir.path(), "log {}/store --inputs --epoch 1").lines().count(), 2);
    succeeds(dir.path(), "merge {}/store --rows all");
    assert_eq!(succeeds(dir.path(), "log {}/store --inputs"), lines);
    assert!(fails(dir.path(), "log {}/store --inputs --epoch 99").contains("99"));
}

#[test]
fn uids_go_through_merges_and_back() {
    let dir = four_epochs();
    let uids = |line: &str| succeeds(dir.path(), &format!("uids {{}}/store {line}"));
    assert_eq!(uids("--translate 2 0 1 2 3 4"), "0\n1\n3\n-\n2\n");
    assert_eq!(uids("--translate 2 --back 0 1 2 3 4"), "0\n1\n4\n2\n-\n");
    assert_eq!(uids("--translate 1 --back 1 2"), "1\n-\n");
    assert_eq!(uids("--translate 4 4"), "4\n");
    for (line, said) in [
        ("--translate 4 5", "unknown UID 5: epoch 4 has 5 URLs"),
        ("--translate 2 5", "unknown UID 5: epoch 2 has 5 URLs"),
        ("--translate 2 --back 5", "unknown UID 5: epoch 4 has 5 URLs"),
    ] {
        assert!(fails(dir.path(), &format!("uids {{}}/store {line}")).contains(said), "{line}");
    }
    let json = "{\"translated\":3,\"uid\":2}\n{\"translated\":null,\"uid\":3}\n";
    assert_eq!(uids("--translate 2 --format json 2 3"), json);
    // The epochs themselves may no longer exist.
    succeeds(dir.path(), "gc {}/store --keep 1");
    let from_input = |input: &[u8]| -> Output {
        let mut child = start(command(dir.path(), "uids {}/store --translate 2").stdin(Stdio::piped()));
        child.stdin.take().unwrap().write_all(input).unwrap();
        child.wait_with_output().unwrap()
    };
    let output = from_input(b"4\n 2 \r\n3");
    assert!(output.status.success() && output.stdout == b"2\n3\n-\n", "{output:?}");
    let output = from_input(b"");
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    for (input, line, stands) in [
        (&b"4\nfour\n"[..], "line 2: not a UID: \"four\"", "2\n"),
        (b"-1", "line 1: not a UID: \"-1\"", ""),
        (b"1\n2\n\xff", "line 3", "1\n3\n"),
    ] {
        let output = from_input(input);
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(1), stands));
        assert!(text(&output.stderr).contains(line), "{output:?}");
    }
    assert!(fails(dir.path(), "uids {}/store --translate 5 1").ends_with("store has no epoch 5"));
    succeeds(dir.path(), "build --replace --out {}/store {}/crawl.jsonl");
    let error = fails(dir.path(), "uids {}/store --translate 4 1");
    assert!(
        error.ends_with("cannot translate UIDs of epoch 4: epoch 5 replaced the store and gave all URLs new UIDs"),
        "{error}"
    );
}

#[test]
fn a_collection_says_what_it_does() {
    let dir = four_epochs();
    succeeds(dir.path(), "cells {}/store --codec link3");
    fs::create_dir(dir.path().join("store/cells/000002")).unwrap();
    let expected = |verb: &str| {
        format!(
            "{}/store: the current epoch is 4\n  {verb} epochs         1-2\n  {verb} rows           2\n  \
             {verb} cells of rows  2\n  {verb} translations   none\n  {verb} in all         ",
            dir.path().display()
        )
    };
    let shown = |line: &str| {
        succeeds(dir.path(), line)
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect::<Vec<_>>()
            .join("\n")
    };
    let squeezed = |text: String| {
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>().join("\n")
    };
    let dry = shown("gc {}/store --dry-run");
    assert!(dry.starts_with(&squeezed(expected("would remove"))), "{dry}");
    assert!(dry.ends_with("\nkept epochs 3-4\nkept for readers none"), "{dry}");
    assert!(dir.path().join("store/rows/000002").exists());
    let json = json_of(&succeeds(dir.path(), "gc {}/store --dry-run --format json"));
    let bytes = json["removed"]["bytes"].as_u64().unwrap();
    assert!(bytes > 1000);
    let removed = json!({"epochs": [1, 2], "rows": [2], "cells": [2], "translations": [], "bytes": bytes});
    assert_eq!((&json["dry_run"], &json["kept"], &json["removed"]), (&json!(true), &json!([3, 4]), &removed));
    let done = shown("gc {}/store");
    assert!(done.starts_with(&squeezed(expected("removed"))), "{done}");
    for gone in ["rows/000002", "cells/000002", "epochs/000001.json", "epochs/000002.json"] {
        assert!(!dir.path().join("store").join(gone).exists(), "{gone}");
    }
    assert!(succeeds(dir.path(), "check {}/store").contains("sound"));
    let again = json_of(&succeeds(dir.path(), "gc {}/store --format json"));
    assert_eq!(again["removed"], json!({"epochs": [], "rows": [], "cells": [], "translations": [], "bytes": 0}));
    let writer = StoreWriter::open(dir.path().join("store"), "a long build", None).unwrap();
    let error = fails(dir.path(), "gc {}/store --keep 1");
    assert!(error.ends_with("LOCK is locked by another writer: a long build"), "{error}");
    drop(writer);
    assert!(fails(dir.path(), "gc {}/nothing").contains("nothing is not a store"));
    assert!(!dir.path().join("nothing").exists());
}

#[test]
fn a_diff_shows_what_an_epoch_added() {
    let dir = built();
    let lines = [
        r#"{"url":"http://a.example/","ts":"20060115120000","links":["http://c.example/"]}"#,
        r#"{"url":"http://a.example/","ts":"20060215120000","links":["http://b.example/"]}"#,
        r#"{"url":"http://b.example/","ts":"20060215120000","links":[]}"#,
    ];
    fs::write(dir.path().join("more.jsonl"), lines.join("\n")).unwrap();
    succeeds(dir.path(), "update {}/store {}/more.jsonl");
    let shown = succeeds(dir.path(), "diff {}/store --from 1 --captures --links");
    let (lines, counts) = shown.split_once(&format!("{}/store: epoch 1 to 3\n", dir.path().display())).unwrap();
    let expected = [
        "~ http://a.example/ 2006-01-15T12:00:00Z  other links",
        "+ http://a.example/ 2006-02-15T12:00:00Z",
        "+ http://a.example/ http://c.example/",
        "+ http://b.example/ 2006-02-15T12:00:00Z",
    ];
    assert_eq!(lines.lines().collect::<Vec<_>>(), expected);
    let counts: Vec<_> = counts.lines().map(|line| line.split_whitespace().last().unwrap()).collect();
    assert_eq!(counts, ["1", "2", "0", "0", "0", "0", "1", "1", "0"], "{shown}");
    let shown = succeeds(dir.path(), "diff {}/store --from 1 --to 2 --captures --links --format json");
    let shown: Vec<Value> = shown.lines().map(json_of).collect();
    let page = "http://a.example/";
    assert_eq!(shown[0], json!({"page": page, "time": "2006-01-15T12:00:00Z", "capture": "links", "known": true}));
    assert_eq!(shown[2], json!({"page": page, "link": "http://c.example/", "change": "gained"}));
    let last = shown.last().unwrap();
    assert_eq!((&last["from"], &last["to"], &last["changes"]["pages"]), (&json!(1), &json!(2), &json!(2)));
    // Epoch 3 merged the rows of epoch 2. The diff of the current epoch still shows the changes of the update, and the
    // diff of epochs 2 and 3 is empty.
    let latest = succeeds(dir.path(), "diff {}/store --captures --links");
    assert_eq!(latest.lines().take(4).collect::<Vec<_>>(), expected);
    let merged = succeeds(dir.path(), "diff {}/store --from 2 --captures --links");
    let (title, counts) = merged.split_once('\n').unwrap();
    assert!(title.ends_with("epoch 2 to 3") && counts.lines().all(|line| line.ends_with(" 0")), "{merged:?}");
    assert!(fails(dir.path(), "diff {}/store --to 1").contains("epoch 1 is the first epoch"));
    assert!(fails(dir.path(), "diff {}/store --from 4").contains("has no epoch 4"));
    let usage = start(&mut command(dir.path(), "diff {}/store --from 2 --to 1")).wait_with_output().unwrap();
    assert_eq!(usage.status.code(), Some(2), "{usage:?}");
    succeeds(dir.path(), "build --replace --out {}/store {}/more.jsonl");
    let error = fails(dir.path(), "diff {}/store");
    assert!(error.contains("epoch 4 replaced everything that the store had (a build with --replace)"), "{error}");
    succeeds(dir.path(), "gc {}/store --keep 1");
    let error = fails(dir.path(), "diff {}/store");
    assert!(error.contains("epoch 3 of ") && error.ends_with("is retired; the current one is 4"), "{error}");
}

/// A process that has the current epoch open, and answers questions.
struct Asking(Child, BufReader<std::process::ChildStdout>);

impl Asking {
    fn start(dir: &Path) -> Self {
        let mut child = start(command(dir, "query {}/store").stdin(Stdio::piped()));
        let answers = BufReader::new(child.stdout.take().unwrap());
        let mut asking = Self(child, answers);
        asking.ask();
        asking
    }

    fn ask(&mut self) {
        let question = r#"{"id":1,"op":"links","url":"http://a.example/","from":"2006","to":"2006"}"#;
        writeln!(self.0.stdin.as_mut().unwrap(), "{question}").unwrap();
        let mut answer = String::new();
        self.1.read_line(&mut answer).unwrap();
        assert_eq!(json_of(&answer)["links"], json!(["http://b.example/"]), "{answer}");
    }
}

#[test]
fn an_epoch_stays_for_a_process_that_reads_it_until_that_ends() {
    for (cells, kill) in [(false, false), (false, true), (true, true)] {
        let dir = built();
        if cells {
            succeeds(dir.path(), "cells {}/store");
        }
        let mut reader = Asking::start(dir.path());
        succeeds(dir.path(), "build --replace --out {}/store {}/crawl.jsonl");
        let gc =
            |options: &str| json_of(&succeeds(dir.path(), &format!("gc {{}}/store --keep 1 --format json{options}")));
        for options in [" --dry-run", "", ""] {
            let collected = gc(options);
            assert_eq!((&collected["kept_for_readers"], &collected["removed"]["epochs"]), (&json!([1]), &json!([])));
        }
        assert_eq!(dir.path().join("store/cells/000001").exists(), cells);
        reader.ask();
        let shown = succeeds(dir.path(), "gc {}/store --keep 1");
        assert!(shown.contains("kept for readers") && shown.ends_with(" 1\n"), "{shown}");
        if kill {
            reader.0.kill().unwrap();
        } else {
            drop(reader.0.stdin.take());
        }
        reader.0.wait().unwrap();
        let collected = gc("");
        assert_eq!((&collected["kept_for_readers"], &collected["removed"]["rows"]), (&json!([]), &json!([1])));
        assert_eq!(collected["removed"]["cells"], if cells { json!([1]) } else { json!([]) });
        assert!(succeeds(dir.path(), "check {}/store").contains("sound"));
    }
}

#[test]
fn a_collection_killed_at_any_moment_leaves_whole_epochs() {
    let dir = built();
    let store = dir.path().join("store");
    let mut stopped_midway = 0;
    for round in 0..4 {
        let current = (0..8).fold(0, |_, _| commit(&store, 0, 1, &[]));
        let oldest = fs::read_dir(store.join("epochs")).unwrap().map(|entry| entry.unwrap().path()).min().unwrap();
        let mut child = start(&mut command(dir.path(), "gc {}/store --keep 1"));
        while oldest.exists() && child.try_wait().unwrap().is_none() {
            std::hint::spin_loop();
        }
        std::thread::sleep(Duration::from_micros(1500 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        let starts = no_child_starts();
        let mut left = 0;
        for epoch in 1..=current {
            match Store::open_epoch(&store, epoch) {
                Ok(opened) => {
                    opened.manifest().files().for_each(|file| opened.verify(file).unwrap());
                    left += 1;
                }
                // Oldest first.
                Err(Error::RetiredEpoch { current: named, .. }) => assert_eq!((named, left), (current, 0)),
                Err(error) => panic!("{error}"),
            }
        }
        drop(starts);
        assert!(left >= 1);
        let rows = || fs::read_dir(store.join("rows")).unwrap().count();
        stopped_midway += u32::from(left > 1 || rows() > 1);
        succeeds(dir.path(), "gc {}/store --keep 1");
        assert_eq!(rows(), 1);
    }
    assert!(stopped_midway > 0, "every collection was over before it was killed");
    assert!(succeeds(dir.path(), "check {}/store").contains("sound"));
}
