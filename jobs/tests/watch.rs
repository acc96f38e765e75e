//! `webstrata watch` as a process beside updates and merges. A watch that is killed and started again writes the same
//! as an undisturbed watch, and its output agrees with the captures.
//!
//! `WEBSTRATA_SEED` (1) is the seed of the moments of kills, and so of the data written by then.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod commands;

use commands::{command, run, succeeds};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use webstrata_tests::crawls::{Crawl, Random, Size};
use webstrata_tests::number;
use webstrata_tests::oracle::{Time, When};

const BATCHES: usize = 6;

fn start(dir: &Path, line: &str) -> Child {
    command(dir, line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn fails(dir: &Path, line: &str, code: i32) -> String {
    let output = run(dir, line);
    assert_eq!(output.status.code(), Some(code), "{line}: {output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// A running watch.
struct Watch(Child, BufReader<ChildStdout>);

impl Watch {
    fn start(dir: &Path, line: &str) -> Self {
        let mut child = start(dir, line);
        let said = BufReader::new(child.stdout.take().unwrap());
        Self(child, said)
    }

    /// The next line of its output.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.1.read_line(&mut line).unwrap();
        line
    }

    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// Ends the watch with a signal.
    fn end(mut self) {
        let id = self.0.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        assert_eq!(self.0.wait().unwrap().code(), Some(0));
    }
}

fn current(dir: &Path) -> u64 {
    fs::read_to_string(dir.join("store/CURRENT")).unwrap().split_once(' ').unwrap().0.parse().unwrap()
}

/// The last epoch that a watch has written.
fn written(dir: &Path, name: &str) -> Option<u64> {
    let file = fs::read(dir.join(format!("store/watches/{name}.json"))).unwrap();
    // The digest follows the JSON value.
    let first = serde_json::Deserializer::from_slice(&file).into_iter::<Value>().next();
    first.unwrap().unwrap()["epoch"]["epoch"].as_u64()
}

/// Waits until a watch has written the current epoch.
fn wait_for(dir: &Path, name: &str) {
    let end = Instant::now() + Duration::from_secs(60);
    while written(dir, name) != Some(current(dir)) {
        assert!(Instant::now() < end, "{name} stays at epoch {:?}", written(dir, name));
        thread::sleep(Duration::from_millis(5));
    }
}

/// The tables of a watch: the bytes, by the rest of the file name behind the watch's name.
fn tables(dir: &Path, name: &str) -> BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let table = |path: std::path::PathBuf| {
        let file = path.file_name().unwrap().to_str().unwrap().strip_prefix(name)?.to_owned();
        Some((file, fs::read(path).unwrap()))
    };
    files.filter_map(table).collect()
}

#[test]
fn a_watch_beside_updates_and_merges_killed_and_started_again() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let seed = number("WEBSTRATA_SEED", 1);
    let mut random = Random(seed);
    let crawl = Crawl::random(1, Size { pages: 60, captures: 600, links: 8 });
    let mut batches = vec![String::new(); BATCHES];
    for (at, line) in crawl.json_lines().into_iter().enumerate() {
        batches[at % BATCHES] += &format!("{line}\n");
    }
    for (at, batch) in batches.iter().enumerate() {
        fs::write(dir.join(format!("{at}.jsonl")), batch).unwrap();
    }
    let update = |batch: usize| format!("update {{}}/store {{}}/{batch}.jsonl -w 1");
    succeeds(dir, "build --out {}/store {}/0.jsonl -w 1");
    let first = "watch {}/store degrees --out {}/tables --whole --interval 0.005 -w 2";
    let mut watch = Watch::start(dir, first);
    assert!(watch.line().starts_with("epoch 1: "), "the first result is that of the first epoch");
    succeeds(dir, &update(1));
    // Killed at a random moment of the update, or soon after.
    let mut updating = start(dir, &update(2));
    thread::sleep(Duration::from_millis(random.below(500)));
    watch.kill();
    assert!(updating.wait().unwrap().success());
    succeeds(dir, &update(3));
    let watch = Watch::start(dir, "watch {}/store degrees --interval 0.005");
    succeeds(dir, &update(4));
    // Killed after everything was written, or before the last epoch was written.
    let epoch = current(dir) - random.below(2);
    let end = Instant::now() + Duration::from_secs(60);
    while written(dir, "degrees").unwrap() < epoch {
        assert!(Instant::now() < end);
        thread::sleep(Duration::from_millis(1));
    }
    watch.kill();
    let watch = Watch::start(dir, "watch {}/store degrees --interval 0.005 -w 1");
    succeeds(dir, "merge {}/store -w 1");
    succeeds(dir, &update(5));
    wait_for(dir, "degrees");
    watch.end();
    succeeds(dir, "watch {}/store degrees --as again --from 1 --once --whole --out {}/again");
    let (got, expected) = (tables(&dir.join("tables"), "degrees"), tables(&dir.join("again"), "again"));
    assert!(got.keys().eq(expected.keys()), "{:?}, expected {:?}", got.keys(), expected.keys());
    assert_eq!(got.len() as u64, 2 * current(dir) - 1);
    for (name, bytes) in expected {
        // The footers name the same epoch and watch.
        assert!(got[&name] == bytes, "{name} is not what an undisturbed watch writes");
    }
    let left: Vec<_> = fs::read_dir(dir.join("tables")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let drafts = left.iter().filter(|name| name.to_str().unwrap().starts_with('.')).count();
    assert!(drafts <= 2, "more drafts than kills: {left:?}");
    assert!(succeeds(dir, "check {}/store").contains("sound"));
    // The sum of the lines of a third watch agrees with the captures.
    let lines = succeeds(dir, "watch {}/store degrees --as lines --from 1 --once");
    let mut degrees: BTreeMap<String, Value> = BTreeMap::new();
    for line in lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        if let Some(url) = line["url"].as_str() {
            let before = degrees.insert(url.to_owned(), line["is"].clone());
            assert!(line.get("was").is_none_or(|was| *was == before.unwrap_or_default()), "{line}");
        }
    }
    degrees.retain(|_, value| !value.is_null());
    let oracle = crawl.oracle();
    let latest = When::AsOf(Time::MAX);
    let mut expected: BTreeMap<String, Value> = BTreeMap::new();
    let linked: BTreeSet<&str> = oracle.urls();
    for url in linked {
        let (out, into) = (oracle.out_links(url, latest).len(), oracle.in_links(url, latest).len());
        if out + into > 0 {
            expected.insert(url.to_owned(), json!({"out": out, "in": into}));
        }
    }
    assert_eq!(degrees, expected);
}

/// A directory with epoch 1 of `store`: `a` links to `b`.
fn small() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let line = r#"{"url":"http://a.example/","ts":"20060115120000","links":["http://b.example/"]}"#;
    fs::write(dir.path().join("crawl.jsonl"), line).unwrap();
    succeeds(dir.path(), "build --out {}/store {}/crawl.jsonl");
    dir
}

fn parsed(lines: &str) -> Vec<Value> {
    let mut lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    lines.iter_mut().filter_map(|line| line.as_object_mut()).for_each(|line| drop(line.remove("seconds")));
    lines
}

#[test]
fn lines_say_what_has_come_and_gone() {
    let dir = small();
    let dir = dir.path();
    let a = "http://a.example/";
    let begun = parsed(&succeeds(dir, "watch {}/store newlinks --domain B.example --as alerts --once"));
    let end = |epoch: u64, since: Option<u64>, rows: u64| -> Value {
        let table = Value::Null;
        json!({"epoch": epoch, "since": since, "rows": rows, "table": table})
    };
    assert_eq!(begun, [json!({"epoch": 1, "page": a, "link": "http://b.example/"}), end(1, None, 1)]);
    succeeds(dir, "watch {}/store top --k 1 --once");
    let more = [
        r#"{"url":"http://a.example/","ts":"20060215120000","links":["http://www.b.example/x","http://c.example/"]}"#,
        r#"{"url":"http://c.example/","ts":"20060215120000","links":["http://c.example/"]}"#,
    ];
    fs::write(dir.join("more.jsonl"), more.join("\n")).unwrap();
    succeeds(dir, "update {}/store {}/more.jsonl --no-merge");
    let alerts = parsed(&succeeds(dir, "watch {}/store alerts --once"));
    let gained = json!({"epoch": 2, "page": a, "link": "http://www.b.example/x", "change": "gained"});
    assert_eq!(alerts, [gained, end(2, Some(1), 1)]);
    let top = parsed(&succeeds(dir, "watch {}/store top --once"));
    let gone = json!({"epoch": 2, "url": "http://b.example/", "is": null, "was": {"in": 1}});
    let come = json!({"epoch": 2, "url": "http://c.example/", "is": {"in": 2}, "was": null});
    assert_eq!(top, [gone, come, end(2, Some(1), 2)]);
    assert_eq!(succeeds(dir, "watch {}/store alerts --once"), "", "nothing has come since");
    succeeds(dir, "merge {}/store");
    assert_eq!(parsed(&succeeds(dir, "watch {}/store top --once")), [end(3, Some(2), 0)]);
    let listed = succeeds(dir, "watch {}/store");
    let listed: Vec<_> = listed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(listed, ["name written result", "alerts epoch 2 newlinks --domain b.example", "top epoch 3 top --k 1"]);
    let listed = parsed(&succeeds(dir, "watch {}/store --format json"));
    assert_eq!(listed[1]["watch"]["standing"], json!({"kind": "top", "k": 1}));
}

/// A removal deletes the epochs before it, so a watch that did not run then gives the whole result, and goes on.
#[test]
fn a_watch_goes_on_after_a_removal() {
    let dir = small();
    let dir = dir.path();
    let more = |name: &str, page: &str, link: &str| {
        let line =
            format!(r#"{{"url":"http://{page}.example/","ts":"20060215120000","links":["http://{link}.example/"]}}"#);
        fs::write(dir.join(name), line).unwrap();
    };
    more("more.jsonl", "c", "b");
    more("last.jsonl", "d", "b");
    succeeds(dir, "watch {}/store newlinks --domain b.example --as alerts --once");
    succeeds(dir, "watch {}/store degrees --out {}/tables --once");
    succeeds(dir, "update {}/store {}/more.jsonl");
    succeeds(dir, "remove {}/store --host a.example");
    let removed = current(dir);
    let output = run(dir, "watch {}/store alerts --once");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("a removal deleted epoch 1, so the changes since then"), "{said}");
    let whole = parsed(&String::from_utf8(output.stdout).unwrap());
    let row = json!({"epoch": removed, "page": "http://c.example/", "link": "http://b.example/"});
    assert_eq!(whole, [row, json!({"epoch": removed, "since": null, "rows": 1, "table": null})]);
    assert_eq!(written(dir, "alerts"), Some(removed));
    succeeds(dir, "watch {}/store degrees --once");
    assert!(dir.join(format!("tables/degrees-{removed:06}.parquet")).exists());
    succeeds(dir, "update {}/store {}/last.jsonl --no-merge");
    let gained = parsed(&succeeds(dir, "watch {}/store alerts --once"));
    let change =
        json!({"epoch": removed + 1, "page": "http://d.example/", "link": "http://b.example/", "change": "gained"});
    assert_eq!(gained[0], change);
}

#[test]
fn a_result_that_outgrows_its_memory_ends_and_goes_on_with_more() {
    let dir = small();
    let dir = dir.path();
    succeeds(dir, "watch {}/store components --out {}/tables --memory 48M --once");
    succeeds(dir, "update {}/store --generate irregular:occurrences=1000000,seed=3 --no-merge");
    succeeds(dir, "update {}/store --generate hard:occurrences=1000,seed=4 --no-merge");
    let error = fails(dir, "watch {}/store components --memory 48M --once", 1);
    assert!(error.contains("has grown to") && error.contains("48 MiB"), "{error}");
    assert_eq!(written(dir, "components"), Some(current(dir) - 1), "what fits in time is written");
    succeeds(dir, "watch {}/store components --memory 1G --once");
    assert_eq!(written(dir, "components"), Some(current(dir)));
}

#[test]
fn what_cannot_be_watched_is_said() {
    let dir = small();
    let dir = dir.path();
    assert!(fails(dir, "watch {}/nothing degrees", 1).contains("is not a store"));
    assert!(!dir.join("nothing").exists());
    assert!(fails(dir, "watch {}/store nobody", 1).contains("there is no watch nobody"));
    assert!(!dir.join("store/watches").exists());
    fails(dir, "watch {}/store degrees --k 3", 2);
    fails(dir, "watch {}/store newlinks --host not/one", 2);
    fails(dir, "watch {}/store degrees --as ../x", 2);
    assert!(fails(dir, "watch {}/store components --memory 1", 1).contains("use more"));
    assert!(succeeds(dir, "watch {}/store components --once --forget").is_empty());
    succeeds(dir, "watch {}/store hosts --unit domain --once");
    assert!(
        fails(dir, "watch {}/store hosts --unit host", 1).contains("exists with other options: hosts --unit domain")
    );
    assert!(fails(dir, "watch {}/store hosts --out {}", 1).contains("--forget"));
    let mut running = Watch::start(dir, "watch {}/store degrees");
    running.line();
    assert!(fails(dir, "watch {}/store degrees", 1).contains("another process watches this result"));
    running.end();
    // The build replaced the data of epoch 1, and epoch 2 has other UIDs.
    succeeds(dir, "build --replace --out {}/store {}/crawl.jsonl");
    let error = fails(dir, "watch {}/store hosts --once", 1);
    assert!(error.contains("the changes since epoch 1 are no longer known; use --anew"), "{error}");
    succeeds(dir, "gc {}/store --keep 1");
    let error = fails(dir, "watch {}/store hosts --once", 1);
    assert!(error.contains("--anew") && error.contains("is retired"), "{error}");
    let begun = parsed(&succeeds(dir, "watch {}/store hosts --once --anew"));
    assert_eq!(begun[0], json!({"epoch": 2, "source": "a.example", "target": "b.example", "is": {"links": 1}}));
    fs::write(dir.join("store/watches/hosts.json"), "{}").unwrap();
    let error = fails(dir, "watch {}/store hosts --once", 1);
    assert!(error.contains("hosts.json is damaged") && error.contains("--forget"), "{error}");
    let said = fails(dir, "watch {}/store", 1);
    assert!(said.contains("hosts.json is damaged"), "{said}");
    fails(dir, "check {}/store", 1);
    succeeds(dir, "watch {}/store hosts --forget");
    assert!(succeeds(dir, "check {}/store").contains("sound"));
}
