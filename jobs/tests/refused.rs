//! Commands when the operating system refuses something. The refusals are real: devices, limits, and paths that are
//! taken. `tests/interop/faults.py` injects all other refusals.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod commands;

use commands::{command, run, succeeds};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// A store of one page.
fn store(dir: &Path) {
    let page = r#"{"url":"http://a.example/","ts":"20060115120000","links":["http://b.example/x"]}"#;
    fs::write(dir.join("crawl.jsonl"), page).unwrap();
    succeeds(dir, "build --out {}/store {}/crawl.jsonl");
}

/// Asserts that a command failed with one error, which has all these parts in this order.
fn says(output: &Output, parts: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr);
    let errors: Vec<&str> = said.lines().filter(|line| line.starts_with("error: ")).collect();
    let [error] = errors[..] else { panic!("{said}") };
    assert_eq!(output.status.code(), Some(1), "{said}");
    let mut rest = error;
    for part in parts {
        let (_, after) = rest.split_once(part).unwrap_or_else(|| panic!("{part:?} is not in {rest:?}: {error}"));
        rest = after;
    }
}

const AGAIN: &str = "and run the same command again";

#[test]
fn a_disk_that_fails_is_named_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    // The memory of the process at the address 0 is a file that cannot be read, as on a failing disk.
    let output = run(dir.path(), "build --out {}/store /proc/self/mem");
    says(&output, &["/proc/self/mem: ", "Input/output error", "check that disk", AGAIN]);
    store(dir.path());
    let output = run(dir.path(), "export {}/store --format csv --out /dev/full");
    says(&output, &["/dev/full", "No space left", "free some space there", AGAIN]);
}

/// Runs a command that may have at most `files` open files.
fn with_few_files(dir: &Path, files: u32, line: &str) -> Output {
    let command = command(dir, line);
    let mut limited = Command::new("sh");
    limited.args(["-c", &format!("ulimit -n {files}; exec \"$@\""), "sh"]).env("TMPDIR", dir);
    limited.arg(command.get_program()).args(command.get_args()).output().unwrap()
}

#[test]
fn too_few_files_are_named_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    store(dir.path());
    let output = with_few_files(dir.path(), 4, "links {}/store http://a.example/");
    says(&output, &[dir.path().to_str().unwrap(), "Too many open files", "ulimit -n", AGAIN]);
}

/// A file that cannot be opened does not count as damage, whatever part of an input is in the file: columns of a table,
/// the texts of a graph, the target of a symbolic link.
#[test]
fn too_few_files_lose_no_capture() {
    let dir = tempfile::tempdir().unwrap();
    let crawls = dir.path().join("crawls");
    fs::create_dir(&crawls).unwrap();
    fs::write(crawls.join("graph.json"), r#"{"id":1,"timestamp":"20060130204826","outlink_ids":[2]}"#).unwrap();
    let map = "{\"url\":\"http://a.example/\",\"id\":1}\n{\"url\":\"http://b.example/\",\"id\":2}\n";
    fs::write(crawls.join("map.json"), map).unwrap();
    succeeds(dir.path(), "generate hard:occurrences=300,seed=2 --out {}/crawls/table.parquet");
    succeeds(dir.path(), "generate uk:occurrences=60 --out {}/elsewhere.jsonl");
    std::os::unix::fs::symlink("../elsewhere.jsonl", crawls.join("link.jsonl")).unwrap();
    let build = |store: &str| format!("build -w 1 --memory 300M --out {{}}/{store} {{}}/crawls");
    let counts = |store: &str| {
        let info = succeeds(dir.path(), &format!("info {{}}/{store} --format json"));
        let info = serde_json::from_str::<serde_json::Value>(&info).unwrap();
        (info["counts"].clone(), info["provenance"]["inputs"].clone())
    };
    succeeds(dir.path(), &build("whole"));
    let mut refused = 0;
    for files in 4.. {
        let output = with_few_files(dir.path(), files, &build("store"));
        if output.status.success() {
            break;
        }
        says(&output, &["Too many open files", AGAIN]);
        refused += 1;
    }
    assert!(refused > 5, "{refused}");
    assert_eq!(counts("store"), counts("whole"));
}

/// `cells` without the overview is incomplete and fails. `overview` still answers if it cannot keep the overview.
#[test]
fn an_overview_that_cannot_be_written_fails_cells_and_not_overview() {
    let dir = tempfile::tempdir().unwrap();
    store(dir.path());
    // The symbolic link leads nowhere, so no directory can be made there.
    std::os::unix::fs::symlink("nowhere", dir.path().join("store/overviews")).unwrap();
    let output = run(dir.path(), "cells {}/store");
    says(&output, &["no overview was written", "store/overviews"]);
    let output = run(dir.path(), "overview {}/store");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("note: the overview is not kept"), "{said}");
    assert!(!output.stdout.is_empty());
    fs::remove_file(dir.path().join("store/overviews")).unwrap();
    succeeds(dir.path(), "cells {}/store");
    assert!(dir.path().join("store/overviews/000001.json").exists());
}

/// A `watch --forget` that was stopped between its two files can be run again.
#[test]
fn forgetting_a_watch_goes_on_where_it_was_stopped() {
    let dir = tempfile::tempdir().unwrap();
    store(dir.path());
    succeeds(dir.path(), "watch {}/store top --once");
    let watches = dir.path().join("store/watches");
    fs::remove_file(watches.join("top.json")).unwrap();
    succeeds(dir.path(), "watch {}/store top --forget");
    assert_eq!(fs::read_dir(&watches).unwrap().count(), 0);
    says(&run(dir.path(), "watch {}/store top --forget"), &["there is no watch top"]);
}

/// A removal that was stopped after its first epoch, and is run again, ends at the same epoch as an undisturbed
/// removal.
#[test]
fn a_removal_goes_on_where_it_was_stopped() {
    let dir = tempfile::tempdir().unwrap();
    store(dir.path());
    let removal = "--host b.example --reason case-17";
    succeeds(dir.path(), &format!("remove {{}}/store --no-merge {removal}"));
    succeeds(dir.path(), &format!("remove {{}}/store {removal}"));
    let stopped = succeeds(dir.path(), "info {}/store --format json");
    fs::remove_dir_all(dir.path().join("store")).unwrap();
    store(dir.path());
    succeeds(dir.path(), &format!("remove {{}}/store {removal}"));
    let whole = succeeds(dir.path(), "info {}/store --format json");
    let epoch = |info: &str| serde_json::from_str::<serde_json::Value>(info).unwrap()["epoch"].clone();
    assert_eq!(epoch(&stopped), epoch(&whole));
    assert_eq!(epoch(&whole), 3);
}
