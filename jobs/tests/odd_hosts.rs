//! Hosts that are no plain names, and URLs with user info: every question, removal, analysis and export counts such a
//! URL for the host of the URL standard.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod commands;
mod servers;

use commands::{command, run, succeeds};
use serde_json::{Value, json};
use servers::Server;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::Path;

/// Hosts as URLs spell them.
const HOSTS: [&str; 22] = [
    "plain.example",
    "www.plain.example",
    "a!b.example",
    "a$b.example",
    "a&b.example",
    "a'b.example",
    "(a).example",
    "*.example",
    "a+b.example",
    "a,b.example",
    "a;b.example",
    "a=b.example",
    "~a.example",
    "{a}.example",
    "`a.example",
    "[2001:db8::7]",
    "[::1]",
    "192.0.2.7",
    "_a.example",
    "-a-.example",
    ".a.example",
    "a..b.example",
];

/// Pages of each host, with and without user info and a port, that link to one target.
fn built(dir: &Path) {
    let line =
        |url: String| json!({"url": url, "ts": "20080101120000", "links": ["http://target.example/"]}).to_string();
    let of_host = |host: &&str| {
        let urls = [format!("http://{host}/p"), format!("http://u:w@{host}:81/q"), format!("https://u@{host}/d/r")];
        urls.map(line)
    };
    let lines: Vec<String> = HOSTS.iter().flat_map(of_host).collect();
    // Two rows: the hosts of both are joined.
    fs::write(dir.join("one.jsonl"), lines[..30].join("\n")).unwrap();
    fs::write(dir.join("two.jsonl"), lines[30..].join("\n")).unwrap();
    succeeds(dir, "build --out {}/store {}/one.jsonl");
    succeeds(dir, "update {}/store --no-merge {}/two.jsonl");
}

fn names(rows: impl IntoIterator<Item = Value>) -> BTreeMap<String, u64> {
    let named = |row: Value| (row["name"].as_str().unwrap().to_owned(), row["pages"].as_u64().unwrap());
    rows.into_iter().map(named).collect()
}

/// The text of a file that gzip has compressed.
fn text_of(path: &Path) -> String {
    let mut text = String::new();
    flate2::read::GzDecoder::new(fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    text
}

#[test]
fn every_answer_names_the_host_of_the_standard() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    built(dir);
    let right: BTreeMap<String, u64> = HOSTS.iter().map(|host| ((*host).to_owned(), 3)).collect();
    let lines = succeeds(dir, "backlinks {}/store http://target.example/ --unit host --limit 0 --format json");
    assert_eq!(names(lines.lines().map(|line| serde_json::from_str(line).unwrap())), right);
    let folded = succeeds(dir, "fold {}/store --unit host --out -");
    let sources: BTreeSet<&str> = folded.lines().skip(1).map(|line| line.split(",").nth(1).unwrap()).collect();
    assert!(sources.contains("plain.example") && sources.len() == HOSTS.len(), "{folded}");
    for host in HOSTS {
        let urls = succeeds(dir, &format!("uids {{}}/store --host={host}"));
        let is_of = |line: &str| line.contains(&format!("//{host}")) || line.contains(&format!("@{host}"));
        assert!(urls.lines().count() == 3 && urls.lines().all(is_of), "{host}: {urls}");
        let line = format!("backlinks {{}}/store http://target.example/ --source http://{host}/ --source-match host");
        let rows = succeeds(dir, &(line + " --format json"));
        assert_eq!(rows.lines().count(), 3, "{host}: {rows}");
    }
    let domain = succeeds(dir, "uids {}/store --domain plain.example");
    assert_eq!(domain.lines().count(), 6, "{domain}");
    let below = succeeds(dir, "uids {}/store --prefix http://plain.example/d/");
    assert!(below.lines().count() == 1 && below.contains("https://u@plain.example/d/r"), "{below}");
    let spelled = succeeds(dir, "captures {}/store http://plain.example:81/q --match surt");
    assert!(spelled.contains("http://u:w@plain.example:81/q"), "{spelled}");
    succeeds(dir, "cells {}/store");
    let server =
        Server::start(&mut command(dir, "serve {}/store --listen 127.0.0.1:0 --data {}/data"), dir.join("log"));
    server.until(200);
    let get = |path: &str| serde_json::from_str::<Value>(&server.get(path).unwrap().1).unwrap();
    let answer = get("/v1/backlinks?url=http://target.example/&match=exact&unit=host&limit=0");
    assert_eq!(names(answer["rows"].as_array().unwrap().clone()), right);
    let suggested = get("/v1/suggest?q=%5B2001:db8&limit=5");
    assert_eq!(suggested["hosts"], json!([{"host": "[2001:db8::7]", "urls": 3}]));
    succeeds(dir, "export {}/store --what hosts --format cc-graph --out {}/graph");
    let vertices = text_of(&dir.join("graph/vertices.txt.gz"));
    let reversed: BTreeSet<&str> = vertices.lines().map(|line| line.split('\t').nth(1).unwrap()).collect();
    for name in ["192.0.2.7", "[2001:db8::7]", "example.plain.www", "example.a,b", "example.target"] {
        assert!(reversed.contains(name), "{name}: {vertices}");
    }
}

#[test]
fn a_removal_takes_out_every_url_of_a_host() {
    for (option, gone) in [
        ("--host plain.example", 3),
        ("--domain plain.example", 6),
        ("--prefix http://plain.example/", 3),
        ("--prefix https://other:word@plain.example:82/d", 1),
        ("--host [::1]", 3),
        ("--domain a,b.example", 3),
        ("--host 192.0.2.7", 3),
        ("--url http://u:w@plain.example:81/q", 1),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        built(dir);
        let before = succeeds(dir, "uids {}/store --all");
        let said = succeeds(dir, &format!("remove {{}}/store {option}"));
        assert!(said.contains("no file contains what 1 rule removed"), "{option}: {said}");
        let after = succeeds(dir, "uids {}/store --all");
        assert_eq!(after.lines().count() + gone, before.lines().count(), "{option}: {after}");
        let urls = |listed: &str| listed.lines().map(|line| line.split_once(' ').unwrap().1.to_owned()).collect();
        let (before, after): (BTreeSet<String>, BTreeSet<String>) = (urls(&before), urls(&after));
        let taken: Vec<&str> = before.difference(&after).map(String::as_str).collect();
        fs::write(dir.join("taken.txt"), taken.join("\n") + "\n").unwrap();
        succeeds(dir, "check {}/store --removed {}/taken.txt");
        // No file of the store has the text.
        for url in &taken {
            let found = std::process::Command::new("grep").args(["-rF", "--", url]).arg(dir.join("store")).output();
            assert!(found.unwrap().stdout.is_empty(), "{option}: {url}");
        }
        succeeds(dir, "update {}/store {}/one.jsonl {}/two.jsonl");
        let again: BTreeSet<String> = urls(&succeeds(dir, "uids {}/store --all"));
        assert_eq!(again, after, "{option}: a later input brings nothing back");
        let listed = succeeds(dir, "remove {}/store --list");
        assert_eq!(listed.lines().count(), 2, "{option}: {listed}");
    }
    let dir = tempfile::tempdir().unwrap();
    built(dir.path());
    for wrong in ["remove {}/store --host u@plain.example", "uids {}/store --host [::1]:81", "uids {}/store --host ::1"]
    {
        let output = run(dir.path(), wrong);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains("not the name of a host"), "{wrong}: {said}");
    }
}
