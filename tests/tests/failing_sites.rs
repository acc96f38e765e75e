//! Pages that fail, die and come back, by every way to ask: generated crawls with deaths, as JSON lines and as WARC,
//! and real sites with made-up failures. Captures arrive in batches in any order and are merged, and the merged store
//! has the bytes of one build.
//!
//! `WEBSTRATA_QUESTIONS` sets the number of questions in each way; the default is some hundreds.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use flate2::read::MultiGzDecoder;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, BufWriter, Read};
use std::path::{Path, PathBuf};
use webstrata_datasets::generate::write_warc;
use webstrata_datasets::{GenerateOptions, Generator};
use webstrata_engine::Progress;
use webstrata_layers::{Links, Uid, Window, parse_time};
use webstrata_pipeline::{MergeOptions, build, merge};
use webstrata_tests::crawls::Random;
use webstrata_tests::number;
use webstrata_tests::oracle::Oracle;
use webstrata_tests::stores::{options, reader, row_bytes, run_options, totals};
use webstrata_tests::ways::ask;
use webstrata_url::canonical;

/// The number of batches of a crawl.
const BATCHES: u64 = 4;

fn questions(default: u64) -> u64 {
    number("WEBSTRATA_QUESTIONS", default)
}

/// Adds the capture of a JSON line.
fn add(oracle: &mut Oracle, line: &Value) {
    let bare = |url: &str| url.split('#').next().unwrap_or_default().to_owned();
    let (page, time) = (bare(line["url"].as_str().unwrap()), parse_time(line["ts"].as_str().unwrap(), false).unwrap());
    let links: Vec<String> =
        line["links"].as_array().unwrap().iter().map(|link| bare(link.as_str().unwrap())).collect();
    match line["status"].as_u64().and_then(|status| u16::try_from(status).ok()) {
        Some(status) if status >= 400 => oracle.add_failure(status, &page, time),
        Some(status) => oracle.add_with(status, &page, time, links.iter().map(String::as_str)),
        None => oracle.add(&page, time, links.iter().map(String::as_str)),
    }
}

/// Builds a store from random batches, and merges its rows at the end. The store must then have the bytes of one build.
/// Asks the store in every way, before and after the merge.
fn check(name: &str, lines: &[Value], seed: u64) {
    let dir = tempfile::tempdir().unwrap();
    let mut random = Random(seed);
    let mut oracle = Oracle::default();
    lines.iter().for_each(|line| add(&mut oracle, line));
    let mut batches: Vec<String> = (0..BATCHES).map(|_| String::new()).collect();
    for line in lines {
        let batch = usize::try_from(random.below(BATCHES)).unwrap();
        batches[batch].push_str(&format!("{line}\n"));
    }
    let whole = dir.path().join("whole.jsonl");
    fs::write(&whole, batches.concat()).unwrap();
    let once = dir.path().join("once");
    build(&options(&once, vec![whole]), &Progress::default()).unwrap();
    let store = dir.path().join("store");
    for (number, batch) in batches.iter().enumerate() {
        let path = dir.path().join(format!("{number}.jsonl"));
        fs::write(&path, batch).unwrap();
        let mut options = options(&store, vec![path]);
        options.update = number > 0;
        build(&options, &Progress::default()).unwrap();
    }
    ask(&format!("{name}, {BATCHES} rows"), &store, &oracle, questions(200), seed);
    merge(&MergeOptions::new(run_options(&store)), &Progress::default()).unwrap();
    let (got, expected) = (row_bytes(&store), row_bytes(&once));
    assert!(got.keys().eq(expected.keys()), "{name}: {:?}, expected {:?}", got.keys(), expected.keys());
    expected.iter().for_each(|(file, content)| assert!(got[file] == *content, "{name}: {file} differs"));
    ask(&format!("{name}, merged"), &store, &oracle, questions(200), seed + 1);
}

/// The captures of a generated crawl, as JSON lines.
fn generated(crawl: GenerateOptions) -> Vec<Value> {
    let mut text = Vec::new();
    webstrata_datasets::generate::write_jsonl(&mut text, &mut Generator::new(crawl)).unwrap();
    String::from_utf8(text).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn generated_crawls_with_deaths() {
    for (crawl, seed) in
        [("uk:occurrences=40000,months=14,deaths=400", 1), ("irregular:occurrences=20000,months=24,deaths=2500", 2)]
    {
        check(crawl, &generated(crawl.parse().unwrap()), seed);
    }
}

#[test]
fn warcs_with_failures() {
    let dir = tempfile::tempdir().unwrap();
    let crawl: GenerateOptions = "hard:occurrences=30000,months=8,deaths=600".parse().unwrap();
    let (warc, store) = (dir.path().join("crawl.warc.gz"), dir.path().join("store"));
    let mut file = BufWriter::new(fs::File::create(&warc).unwrap());
    write_warc(&mut file, &mut Generator::new(crawl)).unwrap();
    drop(file);
    build(&options(&store, vec![warc]), &Progress::default()).unwrap();
    let mut oracle = Oracle::default();
    generated(crawl).iter().for_each(|line| add(&mut oracle, line));
    assert_eq!(totals(&reader(&store).store().manifest().counts), oracle.totals());
    ask("WARC", &store, &oracle, questions(200), 3);
}

/// The captures of a site. About every seventh capture is made a failure, and one page of five dies.
fn made_to_fail(path: &Path) -> Vec<Value> {
    let mut random = Random(7);
    let lines = BufReader::new(MultiGzDecoder::new(fs::File::open(path).unwrap())).lines();
    let mut captures: Vec<Value> = lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    for capture in &mut captures {
        let page = Random(capture["url"].as_str().unwrap().bytes().map(u64::from).sum()).draw();
        let late = capture["ts"].as_str().unwrap() > "2012";
        let status = match (page.is_multiple_of(5) && late, random.below(14)) {
            (true, 0..12) => Some(*random.pick(&[404, 410])),
            (_, 0) => Some(503),
            (_, 1) => Some(*random.pick(&[404, 429, 500])),
            _ => None,
        };
        if let Some(status) = status {
            (capture["status"], capture["links"]) = (json!(status), json!([]));
        }
    }
    captures
}

#[test]
#[ignore = "needs the shared test data: WEBSTRATA_SHARED=DIR cargo test --test failing_sites -- --ignored"]
fn real_sites_made_to_fail() {
    for site in ["couchdb", "httpd", "openbsd-ru"] {
        let path: PathBuf = webstrata_tests::shared("data/real").join(format!("{site}.captures.jsonl.gz"));
        check(site, &made_to_fail(&path), 11);
    }
}

/// The made-up failure of a page's capture at a second; `None` if the capture does not fail.
fn made_failure(url: &str, time: i64) -> Option<u16> {
    let mut random = Random(url.bytes().fold(time.unsigned_abs(), |sum, byte| sum.wrapping_mul(31) + u64::from(byte)));
    random.once_in(6).then(|| *random.pick(&[404, 410, 404, 503]))
}

/// A WARC of responses with status 200, with made-up failures: the status code is replaced in place. Also returns the
/// number of failures.
fn warc_made_to_fail(path: &Path) -> (Vec<u8>, u64) {
    let (mut bytes, mut failed) = (Vec::new(), 0);
    MultiGzDecoder::new(fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    let find = |bytes: &[u8], what: &[u8], from: usize| {
        bytes[from..].windows(what.len()).position(|own| own == what).map(|at| from + at)
    };
    let mut at = 0;
    while let Some(start) = find(&bytes, b"WARC-Type: response", at) {
        let (begin, end) = (
            bytes[..start].windows(7).rposition(|own| own == b"WARC/1.").unwrap(),
            find(&bytes, b"\r\n\r\n", start).unwrap(),
        );
        let header = String::from_utf8(bytes[begin..end].to_vec()).unwrap();
        let field = |name: &str| header.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
        let url = canonical(None, field("WARC-Target-URI:").trim_matches(['<', '>'])).unwrap();
        let time = parse_time(field("WARC-Date:"), false).unwrap();
        let code = end + b"\r\n\r\nHTTP/1.1 ".len();
        assert_eq!(&bytes[code..code + 3], b"200", "{header}");
        if let Some(status) = made_failure(&url, time) {
            bytes[code..code + 3].copy_from_slice(status.to_string().as_bytes());
            failed += 1;
        }
        at = end;
    }
    (bytes, failed)
}

/// Real WARCs. Their content is read from a store built without the failures; other tests check the answers of such
/// stores.
#[test]
#[ignore = "needs the shared test data: WEBSTRATA_SHARED=DIR cargo test --test failing_sites -- --ignored"]
fn real_warcs_made_to_fail() {
    for name in ["gcc-captures-19980213160752-00000", "httpd-captures-20210625161834-00000"] {
        let dir = tempfile::tempdir().unwrap();
        let warc = webstrata_tests::shared("data/real/warc").join(format!("{name}.warc.gz"));
        let (whole, store) = (dir.path().join("whole"), dir.path().join("store"));
        build(&options(&whole, vec![warc.clone()]), &Progress::default()).unwrap();
        let (bytes, failed) = warc_made_to_fail(&warc);
        assert!(failed > 50, "{failed}");
        let path = dir.path().join("made.warc");
        fs::write(&path, bytes).unwrap();
        build(&options(&store, vec![path]), &Progress::default()).unwrap();
        let (as_it_was, mut oracle) = (reader(&whole), Oracle::default());
        for uid in Uid::each(Uid::below(as_it_was.urls())) {
            let url = as_it_was.url(uid).unwrap();
            for capture in as_it_was.captures(uid).unwrap() {
                let window = Window::Seen { from: capture.time, to: capture.time };
                let links = as_it_was.urls_of(&as_it_was.out_links(uid, window).unwrap()).unwrap();
                match made_failure(&url, capture.time) {
                    Some(status) => oracle.add_failure(status, &url, capture.time),
                    None => oracle.add(&url, capture.time, links.iter().map(String::as_str)),
                }
            }
        }
        assert_eq!(totals(&reader(&store).store().manifest().counts), oracle.totals());
        ask(name, &store, &oracle, questions(200), 5);
    }
}
