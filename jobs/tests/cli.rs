//! The binary as a user runs it: help, right and wrong arguments, and its messages when something goes wrong.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod commands;

use commands::{run, succeeds};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const SUBCOMMANDS: [&str; 17] = [
    "build",
    "cells",
    "info",
    "check",
    "log",
    "gc",
    "links",
    "captures",
    "timemap",
    "uids",
    "query",
    "export",
    "sql",
    "generate",
    "demo",
    "bench",
    "bench codecs",
];

const CRAWL: &str = concat!(
    r#"{"url":"http://a.example/","ts":"20060115120000","#,
    r#""links":["http://b.example/x","http://a.example/#top"]}"#,
    "\n",
    r#"{"url":"http://a.example/","ts":"20070115120000","links":["http://b.example/x","http://c.example/"]}"#,
    "\n",
    r#"{"url":"https://d.example/","ts":"20060601000000","links":["http://b.example/x"]}"#,
    "\n",
);

fn webstrata<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_webstrata"));
    command.args(args);
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The only line of the error, without `error: `.
fn fails(dir: &Path, line: &str, code: i32) -> String {
    let output = run(dir, line);
    assert_eq!(output.status.code(), Some(code), "{line}: {output:?}");
    let error = text(&output.stderr);
    if code == 1 {
        assert!(error.starts_with("error: ") && error.lines().count() == 1, "{line}: {error}");
    }
    error.trim_start_matches("error: ").trim_end().to_owned()
}

/// A directory with `crawl.jsonl`, and `store` built from the crawl.
fn built() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("crawl.jsonl"), CRAWL).unwrap();
    succeeds(dir.path(), "build --out {}/store {}/crawl.jsonl");
    dir
}

#[test]
fn help_fits_in_80_columns_and_exits_with_0() {
    let dir = tempfile::tempdir().unwrap();
    let pages = SUBCOMMANDS.iter().flat_map(|name| [format!("{name} --help"), format!("{name} -h")]);
    for line in pages.chain(["--help".into(), "-h".into()]) {
        let help = succeeds(dir.path(), &line);
        assert!(help.contains("Usage: webstrata"), "{line}");
        let wide: Vec<_> = help.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(wide.is_empty(), "{line}: {wide:?}");
        assert!(help.contains("xample"), "{line}: no example");
    }
    assert!(succeeds(dir.path(), "--version").starts_with("webstrata "));
}

#[test]
fn wrong_command_lines_exit_with_2() {
    let dir = built();
    for line in [
        "",
        "nonsense",
        "build --out {}/x",
        "build {}/crawl.jsonl",
        "build --out {}/x --memory lots {}/crawl.jsonl",
        "build --out {}/x -w 0 {}/crawl.jsonl",
        "build --out {}/x --links everything {}/crawl.jsonl",
        "build --out {}/x --in-range fortnight {}/crawl.jsonl",
        "links {}/store http://a.example/ --at 2006 --from 2005",
        "links {}/store http://a.example/ --at tomorrow",
        "links {}/store http://a.example/ --range-precision",
        "links {}/store http://a.example/ --from 2007 --to 2006",
        "export {}/store",
        "export {}/store --what nodes --format gexf --out {}/x",
        "export {}/store --what layers --out -",
        "export {}/store --names aut --format mtx --out {}/x",
        "export {}/store --unit host --out {}/x",
        "export {}/store --what events --at 2006 --out {}/x",
        "export {}/store --from 2007 --to 2006 --out {}/x",
        "export {}/store --format webgraph --out {}/x.y",
        "export {}/store --format mtx --parts --out {}/x",
        "export {}/store --what hosts --parts --out {}/x",
        "timemap {}/store http://a.example/ --from 2007 --to 2006",
        "generate uk:months=0",
        "generate uk:occurrences=many",
        "generate --as parquet",
        "gc {}/store --keep 0",
        "uids {}/store 5",
        "uids {}/store --back",
        "uids {}/store --translate 1 --all",
        "uids {}/store --translate 1 --host a.example",
        "uids {}/store --translate one",
    ] {
        let error = fails(dir.path(), line, 2);
        assert!(!error.is_empty(), "{line}");
    }
    assert!(!dir.path().join("x").exists(), "a wrong command line left a store");
}

#[test]
fn links_at_times() {
    let dir = built();
    let links = |options: &str| succeeds(dir.path(), &format!("links {{}}/store http://a.example/{options}"));
    assert_eq!(links(" --from 2006 --to 2006"), "http://a.example/\nhttp://b.example/x\n");
    assert_eq!(links(" --at 20070115120000"), "http://b.example/x\nhttp://c.example/\n");
    assert_eq!(links(" --at 20070115115959"), "http://a.example/\nhttp://b.example/x\n");
    assert_eq!(links(" --from 2008"), "");
    assert_eq!(links("#fragment --to 2006-12-31T23:59:59Z"), "http://a.example/\nhttp://b.example/x\n");
    let lifespans = "first                 last                  link
2006-01-15T12:00:00Z  2006-01-15T12:00:00Z  http://a.example/
2006-01-15T12:00:00Z  2007-01-15T12:00:00Z  http://b.example/x
2007-01-15T12:00:00Z  2007-01-15T12:00:00Z  http://c.example/
";
    // Times as people write them.
    for at in ["2006/12/31", "20061231", "2006-12-31T23:59+0000"] {
        assert_eq!(links(&format!(" --at {at}")), "http://a.example/\nhttp://b.example/x\n");
    }
    assert_eq!(links(" --from -1y"), "");
    assert_eq!(links(" --at yesterday"), "http://b.example/x\nhttp://c.example/\n");
    assert_eq!(links(" --lifespans"), lifespans);
    let sources = |options: &str| succeeds(dir.path(), &format!("links {{}}/store http://b.example/x --in{options}"));
    assert_eq!(sources(""), "http://a.example/\nhttps://d.example/\n");
    assert_eq!(sources(" --from 2007"), "http://a.example/\n");
    let lifespans = sources(" --lifespans --to 200603");
    assert_eq!(lifespans.lines().nth(1), Some("2006-01-15T12:00:00Z  2007-01-15T12:00:00Z  http://a.example/"));
    let json = links(" --at 2006 --format json");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["at"], "2006-12-31T23:59:59Z");
    assert_eq!(json["links"], serde_json::json!(["http://a.example/", "http://b.example/x"]));
    assert_eq!(
        succeeds(dir.path(), "captures {}/store http://a.example/"),
        "2006-01-15T12:00:00Z 200\n2007-01-15T12:00:00Z 200\n"
    );
    assert_eq!((links(" --count"), links(" --sample 5")), ("3\n".to_owned(), links("")));
    assert_eq!(links(" --sample 2").lines().count(), 2);
    assert_eq!(succeeds(dir.path(), "uids {}/store"), "0 http://a.example/\n3 https://d.example/\n");
    let uids = |options: &str| succeeds(dir.path(), &format!("uids {{}}/store{options}"));
    assert_eq!(uids(" --all --host B.example"), "1 http://b.example/x\n");
    assert_eq!(uids(" --host b.example"), "");
    assert_eq!(uids(" --all --domain example").lines().count(), 4);
    assert_eq!(uids(" --prefix http://d.example/ --to 2006"), "3 https://d.example/\n");
    assert!(fails(dir.path(), "uids {}/store --host b.example/x", 2).contains("name of a host"));
    fails(dir.path(), "uids {}/store --host b.example --domain b.example", 2);
    let json = succeeds(dir.path(), "uids {}/store --from 2007 --format json");
    assert_eq!(json, "{\"epoch\":1,\"uid\":0,\"url\":\"http://a.example/\"}\n");
}

#[test]
fn cells_answer_as_the_layers_while_they_are_of_them() {
    let dir = built();
    let questions = [
        "links {}/store http://a.example/ --at 20070115120000",
        "links {}/store http://a.example/ --lifespans",
        "links {}/store http://b.example/x --in",
        "captures {}/store http://a.example/",
        "links {}/store http://a.example/ --count",
        "links {}/store http://a.example/ --sample 2 --seed 7",
        "links {}/store http://b.example/x --in --sample 1 --random --seed 7",
        "uids {}/store",
        "uids {}/store --from 2007 --format json",
    ];
    let answers = || questions.map(|question| succeeds(dir.path(), question));
    let of_layers = answers();
    assert!(fails(dir.path(), "bench cells {}/store", 1).contains("webstrata cells"));
    let report = succeeds(dir.path(), "cells {}/store --codec strata-speed");
    assert!(report.starts_with("1 cell of epoch 1, 1 of them made now\n"), "{report}");
    let again = succeeds(dir.path(), "cells {}/store --codec strata-speed");
    assert_eq!(again, report.replacen("1 of them", "0 of them", 1));
    assert_eq!(answers(), of_layers);
    assert!(succeeds(dir.path(), "bench cells {}/store --questions 10").contains("| URL to UID |"));

    // A damaged image is an error. Writing the cells again repairs it.
    let image = dir.path().join("store/cells/000001/part-00000.cell");
    let mut damaged = fs::read(&image).unwrap();
    let last = damaged.len() / 2;
    damaged[last] ^= 1;
    fs::write(&image, &damaged).unwrap();
    assert!(fails(dir.path(), questions[0], 1).contains("write the image again"));
    succeeds(dir.path(), "cells {}/store --codec link3");
    assert_eq!(answers(), of_layers);

    // The update has its own cell beside the existing cell.
    fs::write(dir.path().join("later.jsonl"), CRAWL.replace("2007", "2009")).unwrap();
    succeeds(dir.path(), "update {}/store --no-merge {}/later.jsonl");
    let of_layers = answers();
    let report = succeeds(dir.path(), "cells {}/store --codec link3");
    assert!(report.starts_with("2 cells of epoch 2, 1 of them made now\n"), "{report}");
    assert_eq!(answers(), of_layers);
    assert!(succeeds(dir.path(), "bench cells {}/store --questions 10").contains("| URL to UID |"));

    // Another build has other layers, and its answers do not come from the old cells.
    fs::write(dir.path().join("more.jsonl"), CRAWL.replace("c.example", "new.example")).unwrap();
    succeeds(dir.path(), "build --replace --out {}/store {}/more.jsonl");
    assert!(succeeds(dir.path(), questions[0]).contains("new.example"));
}

#[test]
fn exports_go_to_files_and_to_standard_output() {
    let dir = built();
    let events = succeeds(dir.path(), "export {}/store --what events --urls --out - --from 2007");
    let expected = "src,dst,timestamp,present\n\
        http://a.example/,http://a.example/,2007-01-15T12:00:00Z,false\n\
        http://a.example/,http://c.example/,2007-01-15T12:00:00Z,true\n";
    assert_eq!(events, expected);
    let told = succeeds(dir.path(), "export {}/store --out {}/edges.parquet");
    assert!(told.contains("edges.parquet: 4 rows, epoch 1"), "{told}");
    assert_eq!(&fs::read(dir.path().join("edges.parquet")).unwrap()[..4], b"PAR1");
    // The file extension selects the format.
    succeeds(dir.path(), "export {}/store --at 2006 --out {}/links.mtx");
    assert!(fs::read_to_string(dir.path().join("links.mtx")).unwrap().starts_with("%%MatrixMarket"));
    let error = fails(dir.path(), "export {}/store --what nodes --format gexf --out {}/x", 2);
    assert!(error.contains("parquet, csv, arrow"), "{error}");
    let error = fails(dir.path(), "export {}/store --out {}/none/x.csv", 1);
    assert!(error.contains("none") && error.contains("cannot be written"), "{error}");
    let mut child = webstrata(["export", "--out", "-", "--names", "aut"])
        .arg(dir.path().join("store"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn views_name_the_files_of_the_store_and_timemaps_its_captures() {
    let dir = built();
    let views = succeeds(dir.path(), "sql {}/store");
    let files = views.matches("/rows/000001/").count();
    assert_eq!(files, 5, "{views}");
    assert!(!views.contains("{url}") && views.contains("VIEW link_intervals"), "{views}");
    assert_eq!(succeeds(dir.path(), "sql {}/store --dialect duckdb --out -"), views);
    let map = succeeds(dir.path(), "timemap {}/store a.example/ --replay http://w.example/ --format text --from 2007");
    assert_eq!(map, "http://w.example/20070115120000/http://a.example/\n");
    let error = fails(dir.path(), "timemap {}/store http://b.example/x", 1);
    assert!(error.contains("no capture"), "{error}");
}

#[test]
fn views_for_spark_name_the_same_files_and_wrong_ones_are_refused() {
    let dir = built();
    let views = succeeds(dir.path(), "sql {}/store --dialect spark");
    let names = |views: &str| {
        let words: Vec<&str> = views.split_whitespace().collect();
        let view = |at: usize| words.get(at + 1).copied().unwrap_or_default().to_owned();
        (0..words.len()).filter(|&at| words.get(at) == Some(&"VIEW")).map(view).collect::<Vec<_>>()
    };
    for view in ["urls", "pages", "captures", "links", "link_intervals", "link_captures"] {
        let duckdb = succeeds(dir.path(), "sql {}/store");
        assert!(names(&views).contains(&view.to_owned()) && names(&duckdb).contains(&view.to_owned()), "{view}");
    }
    let place = dir.path().canonicalize().unwrap();
    for layer in ["url", "ol", "ts", "bv", "rv"] {
        let file = format!("(path 'file://{}/store/rows/000001/{layer}/part-00000.parquet');", place.display());
        assert!(views.contains(&file), "{file}: {views}");
        assert!(!views.contains(&format!("{{{layer}}}")), "{views}");
    }
    assert_eq!(succeeds(dir.path(), "sql {}/store --dialect spark --out {}/views.sql"), "");
    assert_eq!(fs::read_to_string(dir.path().join("views.sql")).unwrap(), views);
    // Special characters of SQL texts and of file patterns are escaped.
    fs::rename(dir.path().join("store"), dir.path().join("it's{a}[b]*")).unwrap();
    let views = succeeds(dir.path(), "sql {}/it's{a}[b]* --dialect spark");
    assert!(views.contains(r"/it\'s\\{a\\}\\[b\\]\\*/rows/000001/ol/"), "{views}");
    let error = fails(dir.path(), "sql {}/store --dialect sqlite", 2);
    assert!(error.contains("duckdb, spark"), "{error}");
    let error = fails(dir.path(), "sql {}/it's{a}[b]* --out {}/none/views.sql", 1);
    assert!(error.contains("none") && error.contains("cannot be written"), "{error}");
    assert!(!dir.path().join("none").exists());
}

#[test]
fn a_url_that_is_not_there_gets_a_hint() {
    let dir = built();
    assert_eq!(succeeds(dir.path(), "captures {}/store d.example/"), "2006-06-01T00:00:00Z 200\n");
    let error = fails(dir.path(), "links {}/store http://d.example/", 1);
    assert_eq!(error, "http://d.example/ is not in the store, but https://d.example/ is");
    let error = fails(dir.path(), "links {}/store http://www.a.example/", 1);
    assert!(error.ends_with(", but http://a.example/ is"), "{error}");
    let error = fails(dir.path(), "links {}/store nowhere.example", 1);
    assert!(error.contains("nowhere.example is not in the store"), "{error}");
    let error = fails(dir.path(), "links {}/store ftp://a.example/", 1);
    assert!(error.contains("ftp://a.example/"), "{error}");
    let output = run(dir.path(), "captures {}/store http://c.example/");
    assert!(output.status.success() && text(&output.stderr).contains("never captured"), "{output:?}");
}

#[test]
fn a_benchmark_of_encodings_says_which_one_it_measures() {
    let dir = built();
    let store = dir.path().join("store");
    let mut command = webstrata(["bench".as_ref(), "codecs".as_ref(), store.as_os_str()]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let said = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    // The whole benchmark takes a minute.
    let steps: Vec<String> = said.take(3).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(steps[0], format!("note: reading {}", store.display()));
    for (number, step) in (1..).zip(&steps[1..]) {
        let begin = format!("note: store, forward: codec {number} of ");
        let count = step.strip_prefix(&begin).and_then(|rest| rest.split_once(": ")).map(|(count, _)| count.parse());
        assert!(matches!(count, Some(Ok(10u32..))), "{steps:?}");
    }
}

#[test]
fn questions_as_json_lines() {
    let dir = built();
    let questions = r#"{"id":1,"op":"links","url":"http://a.example/","direction":"out","from":"2006","to":"2006"}
{"id":"two","op":"links","url":"http://b.example/x","direction":"in","at":"20061231235959"}
{"id":3,"op":"captures","url":"http://a.example/"}
{"id":4,"op":"captures","url":"http://not-in-store.example/"}

not a question
{"id":6,"op":"guess","url":"http://a.example/"}
{"id":7,"op":"links","url":"http://a.example/","at":"soon"}
{"id":8,"op":"links","url":"http://a.example/","from":"2007"}
{"id":9,"op":"links","url":"http://a.example/","from":"2007","to":"2006"}
{"id":10,"op":"captures","url":"a.example"}
{"id":11,"op":"links","url":"d.example","direction":"in"}
{"id":12,"op":"captures","url":"not-in-store.example"}
{"id":13,"op":"captures","url":"ftp://a.example/"}"#;
    let store = dir.path().join("store");
    let mut child =
        webstrata(["query".as_ref(), store.as_os_str()]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(questions.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let answers: Vec<serde_json::Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let expected = serde_json::json!([
        {"id": 1, "epoch": 1, "links": ["http://a.example/", "http://b.example/x"]},
        {"id": "two", "epoch": 1, "links": ["http://a.example/", "https://d.example/"]},
        {"id": 3, "epoch": 1, "captures": ["2006-01-15T12:00:00Z", "2007-01-15T12:00:00Z"]},
        {"id": 4, "epoch": 1, "error": "url not in store"},
    ]);
    assert_eq!(serde_json::json!(answers[..4]), expected);
    assert_eq!(answers[4]["line"], 6);
    assert_eq!((&answers[5]["id"], &answers[6]["id"]), (&6.into(), &7.into()));
    assert!(answers[4..7].iter().all(|answer| answer["error"].is_string()), "{answers:?}");
    assert_eq!(answers[7]["links"], serde_json::json!(["http://b.example/x", "http://c.example/"]));
    let backwards = "from 2007-01-01T00:00:00Z is later than to 2006-12-31T23:59:59Z";
    assert_eq!((&answers[8]["id"], &answers[8]["error"]), (&9.into(), &backwards.into()));
    // Without a scheme, the URL is found as `links` finds it.
    assert_eq!(answers[9]["captures"], answers[2]["captures"]);
    assert!(answers[10]["links"].is_array(), "{answers:?}");
    assert_eq!(answers[11], serde_json::json!({"id": 12, "epoch": 1, "error": "url not in store"}));
    assert_eq!((&answers[12]["id"], answers[12]["error"].is_string()), (&13.into(), true));
}

#[test]
fn a_program_can_ask_one_question_after_another() {
    let dir = built();
    let store = dir.path().join("store");
    let mut child =
        webstrata(["query".as_ref(), store.as_os_str()]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut ask, mut answers) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    for id in 0..3 {
        writeln!(ask, r#"{{"id":{id},"op":"captures","url":"http://a.example/"}}"#).unwrap();
        let mut answer = String::new();
        // This call would wait forever if the answer stayed in a buffer.
        answers.read_line(&mut answer).unwrap();
        assert!(answer.contains(&format!("\"id\":{id}")), "{answer}");
    }
    drop(ask);
    assert!(child.wait().unwrap().success());
}

#[test]
fn info_and_check_of_a_sound_store() {
    let dir = built();
    let info: serde_json::Value = serde_json::from_str(&succeeds(dir.path(), "info {}/store --format json")).unwrap();
    let counts = &info["counts"];
    for (name, count) in [("urls", 4), ("pages", 2), ("captures", 3), ("links", 4), ("occurrences", 5)] {
        assert_eq!(counts[name], count, "{name} in {counts}");
    }
    assert_eq!(info["epoch"], 1);
    assert!(succeeds(dir.path(), "info {}/store").contains("from 2006-01-15T12:00:00Z to 2007-01-15T12:00:00Z"));
    assert!(succeeds(dir.path(), "check {}/store").contains("sound"));
}

#[test]
fn check_finds_damage() {
    let dir = built();
    let damaged = parquet_files(&dir.path().join("store"));
    let path = damaged.iter().find(|path| path.to_string_lossy().contains("/ol/")).expect("an out-link layer");
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    fs::write(path, bytes).unwrap();
    let output = run(dir.path(), "check {}/store");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!((text(&output.stdout) + &text(&output.stderr)).contains("ol/part-"), "{output:?}");
}

fn parquet_files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(parquet_files(&path));
        } else if path.extension().is_some_and(|ending| ending == "parquet") {
            found.push(path);
        }
    }
    found
}

#[test]
fn what_cannot_be_read_is_named() {
    let dir = built();
    let error = fails(dir.path(), "build --out {}/other {}/missing.warc.gz", 1);
    assert!(error.contains("missing.warc.gz"), "{error}");
    assert!(run(dir.path(), "info {}/other").status.code() == Some(1), "a failed build left a store");
    for line in ["info {}/nothing", "check {}/nothing", "links {}/nothing http://a.example/", "query {}/nothing"] {
        let error = fails(dir.path(), line, 1);
        assert!(error.contains("nothing"), "{line}: {error}");
    }
    fs::create_dir(dir.path().join("empty")).unwrap();
    let error = fails(dir.path(), "info {}/empty", 1);
    assert!(error.contains("not a store"), "{error}");
}

#[test]
fn a_store_of_a_newer_format_is_refused() {
    let dir = built();
    let manifest = dir.path().join("store/epochs/000001.json");
    let mut value: serde_json::Value = serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
    value["format"] = 99.into();
    fs::write(&manifest, value.to_string()).unwrap();
    let digest = webstrata_layers::Digest::of(value.to_string().as_bytes());
    fs::write(dir.path().join("store/CURRENT"), format!("1 {digest}\n")).unwrap();
    for line in ["info {}/store", "links {}/store http://a.example/", "build --out {}/store {}/crawl.jsonl"] {
        let error = fails(dir.path(), line, 1);
        assert!(error.contains("99") && error.contains("format"), "{line}: {error}");
    }
}

#[test]
fn damage_is_reported_and_is_an_error_only_when_strict() {
    let dir = tempfile::tempdir().unwrap();
    let broken = CRAWL.replacen(r#""links":["#, r#""links":!["#, 1);
    fs::write(dir.path().join("broken.jsonl"), broken).unwrap();
    let report = succeeds(dir.path(), "build --out {}/store {}/broken.jsonl");
    assert!(report.contains("bad JSON") && report.contains("broken.jsonl 0"), "{report}");
    let report: serde_json::Value =
        serde_json::from_str(&succeeds(dir.path(), "build --out {}/json {}/broken.jsonl --format json")).unwrap();
    assert_eq!((&report["damaged"], &report["counts"]["captures"]), (&1.into(), &2.into()));
    assert_eq!(report["damaged_places"][0]["kind"], "bad JSON");
    let error = fails(dir.path(), "build --out {}/strict --strict {}/broken.jsonl", 1);
    assert!(error.contains("1 damaged"), "{error}");
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let mut child =
        webstrata(["generate", "uk:occurrences=300000"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(line.starts_with('{') && output.status.success() && output.stderr.is_empty(), "{line} {output:?}");
}

#[test]
fn the_demo_shows_commands_that_work() {
    let dir = tempfile::tempdir().unwrap();
    let shown = succeeds(dir.path(), "demo --dir {}/demo");
    let commands: Vec<_> = shown.lines().filter_map(|line| line.strip_prefix("$ webstrata ")).collect();
    assert_eq!(commands.len(), 2, "{shown}");
    let answer = succeeds(dir.path(), &commands[1].replace('\'', ""));
    assert!(shown.contains(&answer) && answer.lines().count() == 14, "{answer}");
    assert!(shown.lines().count() <= 30 && answer.lines().all(|line| line.chars().count() <= 80), "{shown}");
    let next: Vec<_> = shown.lines().skip_while(|line| !line.starts_with("Try next")).skip(2).collect();
    for command in &next[..2] {
        let command = command.trim().strip_prefix("webstrata ").expect("a command");
        assert!(!succeeds(dir.path(), &command.replace('\'', "")).is_empty(), "{command}");
    }
    assert!(succeeds(dir.path(), "demo --dir {}/demo").contains("--replace"), "a second demo begins again");
}

/// Writes a crawl that takes a while to build.
fn larger_crawl(dir: &Path) {
    succeeds(dir, "generate uk:occurrences=500000,seed=3 --out {}/large.jsonl");
}

#[test]
#[cfg(unix)]
fn a_build_killed_at_any_moment_leaves_the_old_epoch_or_none() {
    use std::os::unix::process::ExitStatusExt;
    let dir = built();
    larger_crawl(dir.path());
    let start = Instant::now();
    succeeds(dir.path(), "build --out {}/whole {}/large.jsonl");
    let whole = start.elapsed();
    let mut killed = 0;
    for round in 0..8u32 {
        let fresh = format!("fresh-{round}");
        for store in ["store", &fresh] {
            let before = run(dir.path(), &format!("info {{}}/{store} --format json"));
            let words =
                ["build".to_owned(), "--replace".into(), "--out".into(), dir.path().join(store).display().to_string()];
            let crawl = dir.path().join("large.jsonl").display().to_string();
            let mut child = webstrata(words.into_iter().chain([crawl]))
                .env("TMPDIR", dir.path())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(whole * (2 * round + 1) / 16 + Duration::from_millis(u64::from(round)));
            child.kill().unwrap();
            if child.wait().unwrap().signal().is_none() {
                continue;
            }
            killed += 1;
            let after = run(dir.path(), &format!("info {{}}/{store} --format json"));
            if after.status.success() && after.stdout != before.stdout {
                // The build was killed after the new epoch was there, so this epoch must be whole.
                assert!(text(&after.stdout).contains("\"occurrences\""));
            } else {
                assert_eq!(after.status.code(), before.status.code(), "{after:?}");
            }
            if after.status.success() {
                succeeds(dir.path(), &format!("check {{}}/{store}"));
            }
        }
    }
    assert!(killed >= 4, "only {killed} builds were killed in time");
    succeeds(dir.path(), "build --replace --out {}/store {}/large.jsonl");
    succeeds(dir.path(), "check {}/store");
}
