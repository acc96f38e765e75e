//! `--match surt`, the note about other spellings, and the meaning of a bare host, as a user runs them.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod commands;

use commands::{run, succeeds};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::process::Stdio;

const LINES: [&str; 4] = [
    r#"{"url":"http://a.example/","ts":"20080101120000","links":["http://b.example/","http://both.example/"]}"#,
    r#"{"url":"https://www.a.example/","ts":"20100101120000","links":["http://c.example/","https://both.example/"]}"#,
    r#"{"url":"https://www.b.example/","ts":"20100101120000","links":["http://A.example/?"]}"#,
    r#"{"url":"https://both.example/","ts":"20100101120000","links":[]}"#,
];

fn built() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("crawl.jsonl"), LINES.join("\n")).unwrap();
    succeeds(dir.path(), "build --out {}/store {}/crawl.jsonl");
    dir
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().collect()
}

#[test]
fn spellings_of_a_page_are_asked_together() {
    let dir = built();
    for step in ["layers", "cells"] {
        if step == "cells" {
            succeeds(dir.path(), "cells {}/store");
        }
        let all = succeeds(dir.path(), "links {}/store a.example --match surt");
        let expected = ["http://b.example/", "http://both.example/", "https://both.example/", "http://c.example/"];
        assert_eq!(lines(&all), expected, "{step}");
        let before = succeeds(dir.path(), "links {}/store a.example --match surt --at 2009");
        assert_eq!(lines(&before), expected[..2]);
        assert_eq!(succeeds(dir.path(), "links {}/store a.example --match surt --at 2011 --count"), "2\n");
        let into = succeeds(dir.path(), "links {}/store a.example --match surt --in");
        assert_eq!(lines(&into), ["https://www.b.example/"]);
        // Links to `http://A.example/?` are links to a spelling of the page; the own pages of the target do not count.
        let into = succeeds(dir.path(), "backlinks {}/store http://www.a.example/ --match surt --format csv");
        assert!(into.contains("https://www.b.example/") && into.lines().count() == 2, "{into}");
        let of =
            "backlinks {}/store http://both.example/ --source http://www.a.example/ --source-match surt --format csv";
        assert_eq!(lines(&succeeds(dir.path(), of))[1..].len(), 1, "{step}");
        let of = "backlinks {}/store both.example --source a.example --source-match surt --format csv";
        assert_eq!(lines(&succeeds(dir.path(), of))[1..].len(), 2, "{step}");
        // A source that is not in the store has no rows.
        let of = "backlinks {}/store both.example --source nobody.example --source-match surt --format csv";
        assert_eq!(lines(&succeeds(dir.path(), of)).len(), 1, "{step}");
        let captures = succeeds(dir.path(), "captures {}/store http://www.a.example/ --match surt");
        let expected =
            ["2008-01-01T12:00:00Z 200 http://a.example/", "2010-01-01T12:00:00Z 200 https://www.a.example/"];
        assert_eq!(lines(&captures), expected);
        let line = "links {}/store https://a.example/ --match surt --at 2011 --format json";
        let shown: Value = serde_json::from_str(&succeeds(dir.path(), line)).unwrap();
        let spellings = json!(["http://a.example/", "http://a.example/?", "https://www.a.example/"]);
        assert_eq!(shown["spellings"], spellings);
        assert_eq!(shown["links"], json!(["https://both.example/", "http://c.example/"]));
    }
}

#[test]
fn who_asks_one_spelling_hears_of_the_others() {
    let dir = built();
    let output = run(dir.path(), "links {}/store http://a.example/");
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("2 more spellings of this page; --match surt asks all"), "{text}");
    let shown: Value =
        serde_json::from_str(&succeeds(dir.path(), "captures {}/store http://a.example/ --format json")).unwrap();
    assert_eq!(shown["other_spellings"], json!(2));
    // If the plain URL is not in the store or was never captured, a bare host means a captured spelling with `www.` or
    // https.
    for (bare, meant) in [("both.example", "https://both.example/"), ("www.a.example", "https://www.a.example/")] {
        let line = format!("captures {{}}/store {bare} --format json");
        let shown: Value = serde_json::from_str(&succeeds(dir.path(), &line)).unwrap();
        assert_eq!(shown["url"], json!(meant));
    }
    for (line, what) in [
        ("links {}/store nobody.example --match surt", "no spelling of http://nobody.example/"),
        ("links {}/store a.example --match surt --first --in", "--match surt does not go with --first"),
        ("links {}/store a.example --match near", "possible values: exact, surt"),
    ] {
        let output = run(dir.path(), line);
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && text.contains(what), "{line}: {text}");
    }
}

#[test]
fn question_lines_may_ask_all_spellings() {
    let dir = built();
    let mut query = commands::command(dir.path(), "query {}/store");
    let mut child = query.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let questions = [
        json!({"id": 1, "op": "links", "url": "http://a.example/", "match": "surt", "at": "2009"}),
        json!({"id": 2, "op": "captures", "url": "http://a.example/", "match": "surt"}),
        json!({"id": 3, "op": "links", "url": "http://nobody.example/", "match": "surt"}),
    ];
    let text = questions.map(|question| format!("{question}\n")).concat();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let answers: Vec<Value> =
        output.stdout.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
    assert_eq!(answers[0]["links"], json!(["http://b.example/", "http://both.example/"]));
    assert_eq!(answers[1]["urls"], json!(["http://a.example/", "https://www.a.example/"]));
    assert_eq!(answers[2]["error"], json!("url not in store"));
}
