//! `diff --from-date`, `links --changed` and `links --in --first` as a user runs them, from layers and from cells.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod commands;

use commands::{run, succeeds};
use serde_json::{Value, json};
use std::fs;

/// `a` loses a link and gains one, `b` goes, `c` comes; `d.example`, then `www.d.example` link to `x`.
const LINES: [&str; 7] = [
    r#"{"url":"http://a.example/","ts":"20070615120000","links":["http://x.example/","http://y.example/"]}"#,
    r#"{"url":"http://a.example/","ts":"20090615120000","links":["http://y.example/","http://z.example/"]}"#,
    r#"{"url":"http://b.example/","ts":"20080101120000","links":["http://x.example/"]}"#,
    r#"{"url":"http://b.example/","ts":"20090101120000","links":[],"status":404}"#,
    r#"{"url":"http://c.example/","ts":"20090101120000","links":["http://x.example/"]}"#,
    r#"{"url":"http://d.example/","ts":"20060101120000","links":["http://x.example/"]}"#,
    r#"{"url":"http://www.d.example/","ts":"20060201120000","links":["http://x.example/"]}"#,
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
fn a_diff_of_two_dates() {
    let dir = built();
    let shown = succeeds(dir.path(), "diff {}/store --from-date 2008 --to-date 2009 --pages --links");
    let expected = [
        "~ http://a.example/",
        "+ http://a.example/ http://z.example/",
        "- http://a.example/ http://x.example/",
        "- http://b.example/",
        "- http://b.example/ http://x.example/",
        "+ http://c.example/",
        "+ http://c.example/ http://x.example/",
    ];
    assert_eq!(lines(&shown)[..7], expected);
    let counts: Vec<_> = shown.lines().skip(8).map(|line| line.split_whitespace().last().unwrap()).collect();
    assert_eq!(counts, ["1", "1", "1", "0", "2", "2"], "{shown}");
    // With `ignore`, a failure does not end the page. With `--max-age`, a capture that is too old ends the page.
    let line = "diff {}/store --from-date 2008 --to-date 2009 --failures ignore --domain b.example --format json";
    let shown: Value = serde_json::from_str(&succeeds(dir.path(), line)).unwrap();
    let none = json!({"pages_gained": 0, "pages_lost": 0, "pages_changed": 0, "pages_unknown": 0, "links_gained": 0,
                      "links_lost": 0});
    assert_eq!(shown["changes"], none);
    let line = "diff {}/store --from-date 2006 --to-date 2008 --max-age 1y --host d.example --pages";
    assert_eq!(lines(&succeeds(dir.path(), line))[0], "- http://d.example/");
    for (wrong, what) in [
        ("diff {}/store --from-date 2009 --to-date 2008", "the first date is later"),
        ("diff {}/store --from-date 2009", "--to-date"),
        ("diff {}/store --host a.example", "need dates"),
        ("diff {}/store --max-age 1y", "need a date"),
        ("diff {}/store --from-date 2008 --to-date 2009 --from 1", "cannot be used with"),
    ] {
        let output = run(dir.path(), wrong);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && error.contains(what), "{wrong}: {error}");
    }
}

#[test]
fn links_of_one_url_between_dates_and_the_first() {
    let dir = built();
    for form in ["layers", "cells"] {
        if form == "cells" {
            succeeds(dir.path(), "cells {}/store");
        }
        let ask = |words: &str| succeeds(dir.path(), &format!("links {{}}/store {words}"));
        let shown = ask("http://a.example/ --changed 2008 2009");
        assert_eq!(lines(&shown), ["+ http://z.example/", "- http://x.example/"], "{form}");
        let shown = ask("http://x.example/ --in --changed 2008 2009");
        assert_eq!(lines(&shown), ["+ http://c.example/", "- http://a.example/", "- http://b.example/"], "{form}");
        let shown: Value = serde_json::from_str(&ask("http://a.example/ --changed 2009 2010 --format json")).unwrap();
        assert_eq!((&shown["changes"], shown.get("unknown")), (&json!([]), None), "{form}");
        let shown = ask("http://x.example/ --in --first --limit 3");
        let expected = [
            "first                 page",
            "2006-01-01T12:00:00Z  http://d.example/",
            "2006-02-01T12:00:00Z  http://www.d.example/",
            "2007-06-15T12:00:00Z  http://a.example/",
        ];
        assert_eq!(lines(&shown), expected, "{form}");
        assert!(ask("http://x.example/ --in --first --limit 0").lines().count() > 4, "{form}");
        let shown = ask("http://x.example/ --in --first --unit domain --limit 2");
        let expected = [
            "first                 domain     page",
            "2006-01-01T12:00:00Z  d.example  http://d.example/",
            "2007-06-15T12:00:00Z  a.example  http://a.example/",
        ];
        assert_eq!(lines(&shown), expected, "{form}");
        let shown = ask("http://x.example/ --in --first --unit host --limit 2");
        let expected = [
            "first                 host           page",
            "2006-01-01T12:00:00Z  d.example      http://d.example/",
            "2006-02-01T12:00:00Z  www.d.example  http://www.d.example/",
        ];
        assert_eq!(lines(&shown), expected, "{form}");
    }
    for wrong in ["http://x.example/ --first", "http://x.example/ --changed 2009 2008", "http://x.example/ --limit 3"] {
        assert_eq!(run(dir.path(), &format!("links {{}}/store {wrong}")).status.code(), Some(2), "{wrong}");
    }
}
