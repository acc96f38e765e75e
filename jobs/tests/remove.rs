//! `remove` and `check --removed` as a user runs them: removed data stays out, and wrong arguments remove nothing.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod commands;

use commands::{run, succeeds};
use serde_json::{Value, json};
use std::fs;

const LINES: [&str; 3] = [
    r#"{"url":"http://a.example/","ts":"20080101120000","links":["http://b.example/","http://c.example/"]}"#,
    r#"{"url":"http://b.example/","ts":"20080101120000","links":["http://a.example/"]}"#,
    r#"{"url":"http://b.example/","ts":"20100101120000","links":["http://d.example/"]}"#,
];

fn built() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("crawl.jsonl"), LINES.join("\n")).unwrap();
    succeeds(dir.path(), "build --out {}/store {}/crawl.jsonl");
    dir
}

#[test]
fn what_is_found_in_many_places_is_cut_for_people_and_whole_for_programs() {
    let dir = tempfile::tempdir().unwrap();
    let urls: Vec<String> = (0..50).map(|number| format!("http://a.example/{number}")).collect();
    let line = |url: &String| format!("{{\"url\":\"{url}\",\"ts\":\"2008\",\"links\":[]}}\n");
    fs::write(dir.path().join("crawl.jsonl"), urls.iter().map(line).collect::<String>()).unwrap();
    fs::write(dir.path().join("list.txt"), urls.join("\n")).unwrap();
    succeeds(dir.path(), "build --out {}/store {}/crawl.jsonl");
    let found = |line: &str| String::from_utf8(run(dir.path(), line).stdout).unwrap();
    let text = found("check {}/store --removed {}/list.txt");
    let all: Value = serde_json::from_str(&found("check {}/store --removed {}/list.txt --format json")).unwrap();
    let count = all["found"].as_array().unwrap().len();
    assert!(count >= 50, "{all}");
    let more = format!("and {} more; --format json lists all of them", count - 20);
    assert_eq!((text.lines().count(), text.lines().nth(20)), (22, Some(&*more)), "{text}");
    // The first key of a partition is shown as a key, and not as digits.
    let of_manifest = all["found"].as_array().unwrap().iter().find(|place| place["file"] == "the manifest of epoch 1");
    assert!(of_manifest.unwrap()["url"].as_str().unwrap().starts_with("key example,a,)/"), "{all}");
}

#[test]
fn a_page_is_taken_out_and_stays_out() {
    let dir = built();
    fs::write(dir.path().join("list.txt"), "http://b.example/\nhttp://d.example/\n").unwrap();
    assert!(!run(dir.path(), "check {}/store --removed {}/list.txt").status.success());
    let shown = succeeds(dir.path(), "remove {}/store --url b.example --format json --no-merge");
    let shown: Value = serde_json::from_str(shown.lines().next().unwrap()).unwrap();
    let counts = ["epoch", "pages", "captures", "sources", "occurrences"].map(|name| shown[name].clone());
    assert_eq!(counts, [2, 1, 2, 1, 1].map(|count| json!(count)));
    assert_eq!(succeeds(dir.path(), "links {}/store http://a.example/"), "http://c.example/\n");
    assert_eq!(succeeds(dir.path(), "links {}/store http://d.example/ --in"), "");
    assert_eq!(succeeds(dir.path(), "captures {}/store http://b.example/"), "");
    assert!(succeeds(dir.path(), "log {}/store").contains("removed"));
    succeeds(dir.path(), "merge {}/store --rows all");
    let output = run(dir.path(), "links {}/store http://b.example/");
    assert!(String::from_utf8(output.stderr).unwrap().contains("not in the store"));
    let updated = succeeds(dir.path(), "update {}/store {}/crawl.jsonl");
    assert!(updated.contains("removed capture") && updated.contains("removed link"), "{updated}");
    assert_eq!(succeeds(dir.path(), "uids {}/store --all"), "0 http://a.example/\n1 http://c.example/\n");
    // The files of the epoch before the merge still have the page.
    assert!(!run(dir.path(), "check {}/store --removed {}/list.txt").status.success());
    assert!(!run(dir.path(), "check {}/store --removed").status.success());
    let finished = succeeds(dir.path(), "remove {}/store --finish");
    assert!(finished.contains("no file contains what 2 rules removed"), "{finished}");
    let checked = succeeds(dir.path(), "check {}/store --removed {}/list.txt");
    assert!(checked.contains("no file contains any of the 2 URLs"), "{checked}");
    // The store does not keep the names of removed URLs.
    let listed = succeeds(dir.path(), "remove {}/store --list");
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let rules: Vec<_> = listed.lines().skip(1).map(words).collect();
    let is_hidden = |rule: &Vec<String>| rule[0] == "url" && rule[1].len() == 64 && rule[2] == "both";
    assert!(rules.len() == 2 && rules.iter().all(is_hidden), "{listed}");
    let manifests = fs::read_dir(dir.path().join("store/epochs")).unwrap();
    let [manifest] = &manifests.map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap()).collect::<Vec<_>>()[..]
    else {
        panic!("one epoch")
    };
    assert!(manifest.contains("\"hash\"") && !manifest.contains("b.example"), "{manifest}");
    succeeds(dir.path(), "update {}/store --with-removed {}/crawl.jsonl");
    assert_eq!(succeeds(dir.path(), "captures {}/store http://b.example/").lines().count(), 2);
}

#[test]
fn a_period_and_links_alone() {
    let dir = built();
    succeeds(dir.path(), "remove {}/store --host b.example --as page --to 2009 --reason order --keep-names");
    assert_eq!(succeeds(dir.path(), "captures {}/store http://b.example/"), "2010-01-01T12:00:00Z 200\n");
    assert_eq!(succeeds(dir.path(), "links {}/store http://b.example/ --in"), "http://a.example/\n");
    succeeds(dir.path(), "remove {}/store --prefix http://b.example/ --as target --keep-names");
    assert_eq!(succeeds(dir.path(), "links {}/store http://b.example/ --in"), "");
    let listed = succeeds(dir.path(), "remove {}/store --list");
    let expected = [
        "selects  name or hash       as      from  to                    reason",
        "host     b.example          page    -     2009-12-31T23:59:59Z  order",
        "prefix   http://b.example/  target  -     -",
    ];
    assert_eq!(listed.lines().collect::<Vec<_>>(), expected);
    // A rule that matches nothing now also applies to later inputs.
    let shown = succeeds(dir.path(), "remove {}/store --domain nobody.example");
    assert!(shown.contains("nothing in the store matches"), "{shown}");
}

/// A list of URLs may be cut from a crawl file, with bytes that are not UTF-8.
#[test]
fn a_list_has_the_bytes_that_crawl_files_have() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    let lines = ["\u{e9}", "\u{e8}"].map(|byte| format!("http://a.example/{byte} 2008 http://a.example/x\n")).concat();
    let latin1 =
        |text: &str| -> Vec<u8> { text.chars().map(|letter| u8::try_from(u32::from(letter)).unwrap()).collect() };
    fs::write(path.join("crawl.links"), latin1(&lines)).unwrap();
    fs::write(path.join("list.txt"), latin1("http://a.example/\u{e9}\n")).unwrap();
    succeeds(path, "build --out {}/store {}/crawl.links");
    succeeds(path, "remove {}/store --urls {}/list.txt");
    assert_eq!(succeeds(path, "uids {}/store"), "0 http://a.example/%E8\n");
    succeeds(path, "check {}/store --removed {}/list.txt");
}

#[test]
fn wrong_arguments_take_out_nothing() {
    let dir = built();
    fs::write(dir.path().join("bad.txt"), "http://a.example/\n\nftp://b/\n").unwrap();
    for (line, what) in [
        ("remove {}/store", "say what to remove"),
        ("remove {}/store --host a_b/c", "not the name of a host"),
        ("remove {}/store --prefix example.org", "not a URL with its scheme: \"example.org\""),
        ("remove {}/store --url ftp://a/", "invalid URL"),
        ("remove {}/store --urls {}/bad.txt", "line 3 of"),
        ("remove {}/store --urls {}/none.txt", "reading"),
        ("remove {}/store --url a.example --from 2009 --to 2008", "--from is later than --to"),
        ("remove {}/none --url a.example", "not a store"),
        ("remove {}/store --finish --url a.example", "cannot be used with"),
        ("check {}/store --removed {}/bad.txt", "line 3 of"),
    ] {
        let output = run(dir.path(), line);
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && text.contains(what), "{line}: {text}");
    }
    assert_eq!(succeeds(dir.path(), "log {}/store").lines().count(), 2, "one epoch");
}

#[test]
fn links_that_are_held_are_taken_out_of_their_files() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    // One page links to a URL that is removed, and a page that is removed links to another URL.
    let lines = [
        r#"{"url":"http://a.example/","ts":"20080101120000","links":["http://secret.example/x","http://c.example/"]}"#,
        r#"{"url":"http://b.example/","ts":"20080101120000","links":["http://d.example/"]}"#,
    ];
    fs::write(path.join("in.jsonl"), lines.map(|line| format!("{line}\n")).concat()).unwrap();
    fs::write(path.join("list"), "http://secret.example/x\nhttp://b.example/\n").unwrap();
    succeeds(path, "build --out {}/store --min-sources 2 {}/in.jsonl");
    let found = run(path, "check {}/store --removed {}/list");
    let text = String::from_utf8(found.stdout).unwrap();
    assert!(!found.status.success() && text.contains("held/000001-00000.parquet: http://secret.example/x"), "{text}");
    succeeds(path, "remove {}/store --host secret.example");
    succeeds(path, "remove {}/store --url http://b.example/");
    let clean = succeeds(path, "check {}/store --removed {}/list");
    assert!(clean.contains("no file contains"), "{clean}");
    succeeds(path, "check {}/store");
    // The other links are still held.
    let more = r#"{"url":"http://e.example/","ts":"20080201120000","links":["http://c.example/","http://d.example/"]}"#;
    fs::write(path.join("more.jsonl"), format!("{more}\n")).unwrap();
    succeeds(path, "update {}/store {}/more.jsonl");
    assert_eq!(succeeds(path, "links {}/store http://a.example/"), "http://c.example/\n");
    assert_eq!(succeeds(path, "links {}/store http://e.example/"), "http://c.example/\n");
}

#[test]
fn tables_by_period_begin_and_end_with_captures_that_are_there() {
    let dir = tempfile::tempdir().unwrap();
    let line =
        |host: &str, year| json!({"url": format!("http://{host}.example/"), "ts": year, "links": []}).to_string();
    let lines = [line("z", "2004"), line("a", "2006"), line("z", "2008")];
    fs::write(dir.path().join("crawl.jsonl"), lines.join("\n")).unwrap();
    succeeds(dir.path(), "build --out {}/store {}/crawl.jsonl");
    let tables = || {
        let growth = succeeds(dir.path(), "analyze {}/store growth --period year --out -");
        let overview: Value = serde_json::from_str(&succeeds(dir.path(), "overview {}/store --format json")).unwrap();
        let years = overview["overview"]["all"]["captures"].as_array().unwrap().len();
        (growth.lines().count() - 1, overview["overview"]["first_year"].as_i64().unwrap(), years)
    };
    assert_eq!(tables(), (5, 2004, 5));
    succeeds(dir.path(), "remove {}/store --host z.example --as both --no-merge");
    assert_eq!(tables(), (1, 2006, 1));
    succeeds(dir.path(), "remove {}/store --host a.example --as both --no-merge");
    assert_eq!(tables(), (0, 0, 0), "no capture is left");
}
