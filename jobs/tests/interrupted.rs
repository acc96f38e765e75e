//! A signal that ends a command while it writes leaves no draft, for every command and signal.

#![cfg(unix)]

mod commands;

use commands::{command, succeeds};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Commands that write: the name, a command line that takes a while, and whether a draft exists for most of that time.
const WRITING: [(&str, &str, bool); 21] = [
    ("generate", "generate uk:occurrences=5000000 --out {}/out/x.jsonl", true),
    ("generate", "generate uk:occurrences=5000000 --out {}/out/x.warc.gz", true),
    ("generate", "generate uk:occurrences=5000000 --out {}/out/x.parquet", true),
    ("cells", "cells {}/store --codec CODEC", true),
    ("export", "export {}/store --urls --out {}/out/a.csv", true),
    ("export", "export {}/store --urls --parts -w 2 --out {}/out/parts", true),
    ("export", "export {}/store --out {}/out/a.gexf", true),
    ("watch", "watch {}/store degrees --as SIGNAL --whole --out {}/out/tables", true),
    ("analyze", "analyze {}/store pagerank --at 2007 --out {}/out/ranks.parquet", false),
    ("analyze", "analyze {}/store growth --out {}/out/growth.csv --report {}/out/report.json", false),
    ("fold", "fold {}/store --period month --out {}/out/fold.csv", false),
    ("sql", "sql {}/store --out {}/out/views.sql", false),
    ("overview", "overview {}/store", false),
    ("build", "build --generate hard:occurrences=200000 --out {}/out/new", false),
    ("build", "build --replace --out {}/other {}/crawl.jsonl", false),
    ("update", "update {}/other {}/crawl.jsonl", false),
    ("merge", "merge {}/other --rows all", false),
    ("remove", "remove {}/other --host a.example", false),
    ("gc", "gc {}/other --keep 1", false),
    ("demo", "demo --dir {}/out/demo", false),
    ("serve", "serve {}/store --listen 127.0.0.1:0 --data {}/out/served", true),
];

/// Commands that write no file.
const READING: [&str; 16] = [
    "completions",
    "info",
    "check",
    "log",
    "links",
    "backlinks",
    "deaths",
    "neighbourhood",
    "ways",
    "captures",
    "timemap",
    "uids",
    "diff",
    "query",
    "bench",
    "help",
];

/// A command that has a draft only for a moment is interrupted this time after its start.
const MOMENT: Duration = Duration::from_millis(60);
/// The time within which a draft must appear, and a command must end.
const PATIENCE: Duration = Duration::from_secs(60);

/// The drafts in a directory and its subdirectories.
fn drafts(directory: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(directory).into_iter().flatten().map_while(Result::ok) {
        if entry.file_name().to_string_lossy().ends_with(".webstrata-draft") {
            found.insert(entry.path().display().to_string());
        } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(drafts(&entry.path()));
        }
    }
    found
}

#[test]
fn no_draft_is_left_by_a_command_that_is_interrupted() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path();
    fs::write(dir.join("crawl.jsonl"), r#"{"url":"http://a.example/","ts":"2006","links":["http://b.example/"]}"#)
        .unwrap();
    succeeds(dir, "build --generate hard:occurrences=600000 --out {}/store");
    succeeds(dir, "build --out {}/other {}/crawl.jsonl");
    for (signal, codec) in [("INT", "csr"), ("TERM", "strata")] {
        for (name, line, has_draft) in WRITING {
            let _ = fs::remove_dir_all(dir.join("out"));
            fs::create_dir(dir.join("out")).unwrap();
            let line = line.replace("CODEC", codec).replace("SIGNAL", signal);
            assert_eq!(line.split(' ').next(), Some(name));
            let mut child = command(dir, &line).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            let started = Instant::now();
            let is_time = || if has_draft { !drafts(dir).is_empty() } else { started.elapsed() > MOMENT };
            while !is_time() && child.try_wait().unwrap().is_none() {
                assert!(started.elapsed() < PATIENCE, "{line}: no draft");
                thread::sleep(Duration::from_millis(1));
            }
            if child.try_wait().unwrap().is_some() {
                assert!(!has_draft, "{line}: it was over too soon");
            } else {
                let pid = child.id().to_string();
                assert!(Command::new("kill").args([&format!("-{signal}"), &pid]).status().unwrap().success());
            }
            let asked = Instant::now();
            while child.try_wait().unwrap().is_none() {
                assert!(asked.elapsed() < PATIENCE, "{line}: it does not end");
                thread::sleep(Duration::from_millis(1));
            }
            assert_eq!(drafts(dir), BTreeSet::new(), "{line}, after SIG{signal}");
        }
    }
}

#[test]
fn every_command_is_known_to_write_or_not_to() {
    let place = tempfile::tempdir().unwrap();
    let help = succeeds(place.path(), "--help");
    let listed = help.lines().take_while(|line| !line.starts_with("Options:"));
    let listed = listed.filter_map(|line| line.strip_prefix("  ")).filter_map(|line| line.split(' ').next());
    let listed: BTreeSet<&str> = listed.filter(|name| !name.is_empty()).collect();
    let known: BTreeSet<&str> = WRITING.iter().map(|(name, ..)| *name).chain(READING).collect();
    assert!(listed.len() > 20 && listed.is_subset(&known), "{:?}", listed.difference(&known));
}
