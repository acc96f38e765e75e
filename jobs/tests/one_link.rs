//! Whether a page links to a URL, by every way to ask. All ways must give the same answer: yes, no or unknown. The test
//! asks layers, cells and a server, with one row and with several.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod commands;
mod servers;

use commands::{command, run, succeeds};
use serde_json::Value;
use servers::Server;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use webstrata_layers::{AsOf, Direction, Linking, Links, Precision, RangeLength, Window, parse_time};
use webstrata_tests::raw::Raw;
use webstrata_tests::rows::{Captures, Rows, Said};
use webstrata_tests::suite::Asked;

const PAGE: &str = "http://page.example/";
const TARGET: &str = "http://target.example/";

/// The dates of the questions, and the right answers: before the page was captured, while it links, while its latest
/// capture has unknown links, after it has lost the link, and while its links are unknown again.
const ANSWERS: [(&str, Linking); 5] = [
    ("2007", Linking::No),
    ("2008", Linking::Yes),
    ("2010", Linking::Unknown),
    ("2012", Linking::No),
    ("2014", Linking::Unknown),
];

fn said(time: &str, said: Said) -> Captures {
    Captures::from([((PAGE.to_owned(), parse_time(time, false).unwrap()), said)])
}

/// Writes a store with the captures of the page, in one row or each in its own row.
fn store(dir: &Path, is_one_row: bool) {
    let to_target = Said::Links(BTreeSet::from([TARGET.to_owned(), "http://other.example/".to_owned()]));
    let elsewhere = Said::Links(BTreeSet::from(["http://other.example/".to_owned()]));
    let captures = [
        said("20080601", to_target),
        said("20100601", Said::Unknown),
        said("20120601", elsewhere),
        said("20140601", Said::Unknown),
    ];
    let rows = match is_one_row {
        true => vec![captures.into_iter().flatten().collect()],
        false => captures.to_vec(),
    };
    let bare = vec![BTreeSet::new(); rows.len()];
    Rows { rows, bare }.write(&dir.join("store"), 1, RangeLength::Month);
}

fn state(is_there: bool, is_unknown: bool) -> Linking {
    match (is_there, is_unknown) {
        (true, false) => Linking::Yes,
        (false, false) => Linking::No,
        (false, true) => Linking::Unknown,
        (true, true) => panic!("both there and unknown"),
    }
}

fn word(value: &Value) -> Linking {
    [Linking::Yes, Linking::No, Linking::Unknown].into_iter().find(|own| value == own.name()).unwrap()
}

/// Whether a list has a URL.
fn has(list: &Value, url: &str) -> bool {
    list.as_array().is_some_and(|list| list.iter().any(|own| own == url))
}

/// The state of the link in an answer with links, outward or inward.
fn of_links(answer: &Value, is_inward: bool) -> Linking {
    let url = if is_inward { PAGE } else { TARGET };
    let is_unknown = answer["unknown"] == true || has(&answer["unknown"], url);
    state(has(&answer["links"], url), is_unknown)
}

/// The state of the link in JSON lines with the field `links`. Without a line about the link, the state is no.
fn of_lines(text: &str, is_of_link: impl Fn(&Value) -> bool) -> Linking {
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut own = lines.filter(is_of_link);
    own.next().map_or(Linking::No, |line| word(&line["links"]))
}

/// The state of the link in the column `links` of a table of pages or links. Without a row about the page, the state is
/// no.
fn of_table(text: &str) -> Linking {
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let place = lines.next().unwrap().into_iter().position(|name| name == "links").unwrap();
    let own = lines.find(|line| line[0] == PAGE || (line[2] == PAGE && line[3] == TARGET));
    own.map_or(Linking::No, |line| word(&Value::from(line[place])))
}

/// Each way to ask on the command line, with its answer.
fn of_commands(dir: &Path, source: &str, at: &str) -> Vec<(String, Linking)> {
    let mut said = Vec::new();
    let mut note = |line: String, linking: Linking| said.push((line, linking));
    for (direction, url) in [("", PAGE), (" --in", TARGET)] {
        let line = format!("links {source} {url}{direction} --at {at}");
        let answer = serde_json::from_str(&succeeds(dir, &format!("{line} --format json"))).unwrap();
        note(format!("{line} --format json"), of_links(&answer, !direction.is_empty()));
        let output = run(dir, &line);
        let (text, notes) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        let own = if direction.is_empty() { TARGET } else { PAGE };
        note(line, state(text.lines().any(|line| line == own), notes.contains("unknown")));
        let line = format!("links {source} {url}{direction} --match surt --at {at} --format json");
        let answer = serde_json::from_str(&succeeds(dir, &line)).unwrap();
        note(line, of_links(&answer, !direction.is_empty()));
        let way = if direction.is_empty() { "out" } else { "in" };
        let question = format!(r#"{{"op":"links","url":"{url}","direction":"{way}","at":"{at}"}}"#);
        let mut asking = command(dir, &format!("query {source}"));
        let mut asking = asking.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        asking.stdin.take().unwrap().write_all(question.as_bytes()).unwrap();
        let answer = serde_json::from_slice(&asking.wait_with_output().unwrap().stdout).unwrap();
        note(format!("query {source}: {question}"), of_links(&answer, way == "in"));
    }
    let line = format!("backlinks {source} {TARGET} --to {at}");
    let text = succeeds(dir, &format!("{line} --format json"));
    note(format!("{line} --format json"), of_lines(&text, |line| line["page"] == PAGE));
    note(format!("{line} --format csv"), of_table(&succeeds(dir, &format!("{line} --format csv"))));
    let text = succeeds(dir, &line);
    let row = text.lines().find(|row| row.ends_with(PAGE));
    let sign = row.map_or(' ', |row| row.chars().nth(22).unwrap());
    note(line, state(sign == '+', sign == '?'));
    let line = format!("neighbourhood {source} {TARGET} --at {at}");
    let text = succeeds(dir, &format!("{line} --format json"));
    note(format!("{line} --format json"), of_lines(&text, |line| line["target"] == TARGET));
    note(format!("{line} --format csv"), of_table(&succeeds(dir, &format!("{line} --format csv"))));
    let text = succeeds(dir, &line);
    let row = text.lines().find(|row| row.ends_with(&format!("{PAGE} -> {TARGET}")));
    note(line, state(row.is_some_and(|row| !row.contains('?')), row.is_some_and(|row| row.contains('?'))));
    let line = format!("ways {source} {PAGE} {TARGET} --at {at}");
    let answer = run(dir, &format!("{line} --format json"));
    let answer: Value = serde_json::from_slice(&answer.stdout).unwrap();
    note(format!("{line} --format json"), state(!answer["links"].is_null(), !answer["unknown"].is_null()));
    let output = run(dir, &line);
    let notes = String::from_utf8(output.stderr).unwrap();
    note(line, state(output.status.success(), notes.contains("unknown whether")));
    said
}

/// Each way to ask a server over HTTP and gRPC, with its answer.
fn of_server(server: &Server, at: &str) -> Vec<(String, Linking)> {
    let get = |path: &str| -> Value {
        let (status, body) = server.get(path).unwrap();
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    };
    let mut said = Vec::new();
    let mut note = |path: &str, linking: Linking| said.push((path.to_owned(), linking));
    for (direction, url) in [("out", PAGE), ("in", TARGET)] {
        for matched in ["exact", "surt"] {
            let path = format!("/v1/links?url={url}&direction={direction}&at={at}&match={matched}");
            note(&path, of_links(&get(&path), direction == "in"));
        }
        let path = format!("/v1/links?url={url}&direction={direction}&at={at}&match=host");
        let items = get(&path);
        let item = items["items"].as_array().unwrap().iter().find(|item| item["url"] == url);
        note(&path, item.map_or(Linking::No, |item| of_links(item, direction == "in")));
    }
    let path = format!("/v1/backlinks?url={TARGET}&match=exact&to={at}");
    let rows = get(&path);
    note(&path, rows["rows"].as_array().unwrap().first().map_or(Linking::No, |row| word(&row["links"])));
    let path = format!("/v1/neighbourhood?url={TARGET}&at={at}");
    let columns = &get(&path)["links"];
    let is_there = columns["source"].as_array().is_some_and(|links| !links.is_empty());
    let is_unknown = !columns["unknown"][0].is_null();
    note(&path, state(is_there && !is_unknown, is_unknown));
    let path = format!("/v1/ways?url={PAGE}&target={TARGET}&at={at}");
    let answer = get(&path);
    note(&path, state(!answer["links"].is_null(), !answer["unknown"].is_null()));
    let as_of = AsOf::new(parse_time(at, true).unwrap());
    for limit in [0, 1] {
        let mut raw = Raw::connect(&server.address.to_string());
        raw.limit = limit;
        let [page, target] = [PAGE, TARGET].map(|url| raw.uid(url).unwrap().unwrap());
        for (direction, uid, other) in [(Direction::Out, page, target), (Direction::In(Precision::Exact), target, page)]
        {
            let links = raw.links(uid, direction, Window::AsOf(as_of)).unwrap();
            let unknown = raw.unknown(uid, direction, Window::AsOf(as_of)).unwrap();
            note(&format!("gRPC {direction:?} {limit}"), state(links.contains(&other), unknown.contains(&page)));
        }
    }
    said
}

fn check(what: &str, at: &str, right: Linking, said: &[(String, Linking)]) {
    for (way, linking) in said {
        assert_eq!(*linking, right, "{what}, {at}: {way}");
    }
}

#[test]
fn every_way_to_ask_about_a_link_gives_one_answer() {
    for is_one_row in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        store(dir.path(), is_one_row);
        let rows = if is_one_row { "one row" } else { "several rows" };
        let mut asked = 0;
        for (at, right) in ANSWERS {
            let said = of_commands(dir.path(), "{}/store", at);
            check(&format!("layers of {rows}"), at, right, &said);
            asked += said.len();
        }
        succeeds(dir.path(), "cells {}/store");
        for (at, right) in ANSWERS {
            check(&format!("cells of {rows}"), at, right, &of_commands(dir.path(), "{}/store", at));
        }
        let words = "serve {}/store --listen 127.0.0.1:0 --data {}/data --settle 0.1 --gossip 0.1";
        let server = Server::start(&mut command(dir.path(), words), dir.path().join("log"));
        server.until(200);
        let source = format!("--server {}", server.address);
        for (at, right) in ANSWERS {
            check(&format!("a server of {rows}"), at, right, &of_commands(dir.path(), &source, at));
            check(&format!("a server of {rows}"), at, right, &of_server(&server, at));
        }
        assert_eq!(asked, 5 * 16);
    }
}
