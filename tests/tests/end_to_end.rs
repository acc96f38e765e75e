//! Builds stores from crawl files and compares their answers with the oracle. The store is the same for any workers,
//! files and memory.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};
use tempfile::TempDir;
use webstrata_datasets::{Finding, LinkKinds};
use webstrata_engine::{Error as JobError, Progress};
use webstrata_layers::{Effort, Links, Window, parse_time};
use webstrata_pipeline::{BuildOptions, Error, MergeOptions, build, merge};
use webstrata_tests::crawls::{Crawl, Random, Size};
use webstrata_tests::stores::{assert_answers, bytes, options, reader, row_bytes, run_options, totals};

const SMALL: Size = Size { pages: 60, captures: 700, links: 14 };
const LARGER: Size = Size { pages: 400, captures: 4000, links: 25 };

fn temporary() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Writes each part of a crawl to a file.
fn files(dir: &Path, prefix: &str, ending: &str, parts: &[&[String]]) -> Vec<PathBuf> {
    let write = |(index, part): (usize, &&[String])| {
        let path = dir.join(format!("{prefix}{index}.{ending}"));
        fs::write(&path, part.concat()).unwrap();
        path
    };
    parts.iter().enumerate().map(write).collect()
}

fn lines(crawl: &Crawl) -> Vec<String> {
    crawl.json_lines().into_iter().map(|line| line + "\n").collect()
}

/// The store keeps the newest record and not the union of the records, because nobody has seen these links together. A
/// capture with a date is not changed.
#[test]
fn of_undated_records_of_a_page_the_newest_file_counts() {
    let dir = temporary();
    let texts = [
        ("a", "http://a.example/\n http://new.example/\n"),
        ("b", "http://a.example/\n http://old.example/\nhttp://a.example/ 2008 http://dated.example/\n"),
        ("c", "http://a.example/\n http://older.example/\nhttp://b.example/\n http://only.example/\n"),
    ];
    let mut inputs = Vec::new();
    for (age, (name, text)) in texts.into_iter().enumerate() {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        let modified = UNIX_EPOCH + Duration::from_secs(1_000_000 - age as u64);
        fs::File::options().append(true).open(&path).unwrap().set_modified(modified).unwrap();
        inputs.push(path);
    }
    for workers in [1, 3] {
        let store = dir.path().join(format!("store{workers}"));
        let mut options = options(&store, inputs.clone());
        options.run.workers = workers;
        let report = build(&options, &Progress::default()).unwrap();
        assert_eq!((report.tally.of(Finding::OlderUndated), report.tally.damaged()), (2, 0));
        let links = reader(&store);
        let at = |page: &str, time| {
            let uid = links.uid(page).unwrap().unwrap();
            let found = links.out_links(uid, Window::Seen { from: time, to: time }).unwrap();
            found.into_iter().map(|uid| links.url(uid).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(at("http://a.example/", 0), ["http://new.example/"]);
        assert_eq!(at("http://b.example/", 0), ["http://only.example/"]);
        assert_eq!(at("http://a.example/", parse_time("2008", false).unwrap()), ["http://dated.example/"]);
    }
}

#[test]
fn random_crawls_are_answered_as_the_oracle_answers() {
    for seed in 0..6 {
        let dir = temporary();
        let crawl = Crawl::random(seed, SMALL);
        let lines = lines(&crawl);
        let inputs = files(dir.path(), "part", "jsonl", &[&lines[..200], &lines[200..]]);
        let store = dir.path().join("store");
        let report = build(&options(&store, inputs), &Progress::default()).unwrap();
        assert_eq!(totals(&report.counts), crawl.oracle().totals(), "seed {seed}");
        assert_eq!(report.tally.damaged(), 0, "seed {seed}: {:?}", report.tally);
        assert_answers(&store, &crawl.oracle());
    }
}

#[test]
fn revisits_take_the_links_that_they_refer_to() {
    for seed in 10..13 {
        let dir = temporary();
        let crawl = Crawl::with_revisits(seed, SMALL);
        let records = crawl.warc();
        // Revisits are in another file than their originals, and before it.
        let inputs = files(dir.path(), "crawl", "warc", &[&records[350..], &records[..350]]);
        let store = dir.path().join("store");
        let report = build(&options(&store, inputs), &Progress::default()).unwrap();
        assert_eq!(report.tally.damaged(), 0, "seed {seed}: {:?}", report.tally);
        assert_answers(&store, &crawl.oracle());
    }
}

#[test]
fn captures_of_any_status_are_answered_as_the_oracle_answers() {
    for seed in 40..46 {
        let dir = temporary();
        let revisits = seed % 2 == 1;
        let crawl = Crawl::with_failures(seed, SMALL, revisits);
        let (records, ending) = if revisits { (crawl.warc(), "warc") } else { (lines(&crawl), "jsonl") };
        let inputs = files(dir.path(), "crawl", ending, &[&records[350..], &records[..350]]);
        let store = dir.path().join("store");
        let mut options = options(&store, inputs);
        options.kinds = Some(LinkKinds { redirects: true, ..LinkKinds::default() });
        let report = build(&options, &Progress::default()).unwrap();
        assert_eq!(report.tally.damaged(), 0, "seed {seed}: {:?}", report.tally);
        assert!(report.counts.failed_captures > 50, "seed {seed}: {:?}", report.counts);
        assert_answers(&store, &crawl.oracle());
    }
}

#[test]
fn the_store_is_the_same_for_any_workers_and_any_files() {
    let dir = temporary();
    let mut lines = lines(&Crawl::random(21, LARGER));
    let one = files(dir.path(), "one", "jsonl", &[&lines]);
    let reference = dir.path().join("reference");
    build(&options(&reference, one.clone()), &Progress::default()).unwrap();
    let expected = bytes(&reference);
    assert!(expected.keys().any(|path| path.starts_with("rows")));

    Random(3).shuffle(&mut lines);
    let thirds: Vec<&[String]> = lines.chunks(lines.len() / 3 + 1).collect();
    let mut split = files(dir.path(), "split", "jsonl", &thirds);
    split.reverse();
    for workers in [1, 2, 4] {
        for (name, inputs) in [("one", &one), ("split", &split)] {
            let store = dir.path().join(format!("{name}-{workers}"));
            let mut options = options(&store, inputs.clone());
            options.run.workers = workers;
            build(&options, &Progress::default()).unwrap();
            assert_same(&expected, &bytes(&store), &format!("{name}, {workers} workers"));
        }
    }
}

fn assert_same<N: Ord + Debug>(expected: &BTreeMap<N, Vec<u8>>, got: &BTreeMap<N, Vec<u8>>, what: &str) {
    assert!(expected.keys().eq(got.keys()), "{what}: {:?}, expected {:?}", got.keys(), expected.keys());
    for (path, content) in expected {
        assert!(content == &got[path], "{what}: {path:?} differs");
    }
}

#[test]
fn a_small_memory_budget_goes_to_disk_and_changes_nothing() {
    let dir = temporary();
    let (roomy, tight) = (dir.path().join("roomy"), dir.path().join("tight"));
    let spill = dir.path().join("spill");
    fs::create_dir(&spill).unwrap();
    let mut options = options(&roomy, Vec::new());
    options.generate = vec!["hard:occurrences=2500000,seed=22".parse().unwrap()];
    options.run.spill = Some(spill.clone());
    options.run.workers = 2;
    build(&options, &Progress::default()).unwrap();
    options.run.store = tight.as_path().into();
    options.run.memory_max = 1 << 20;
    let Err(Error::Job(JobError::TooLittleMemory { needed, .. })) = build(&options, &Progress::default()) else {
        panic!("two workers cannot work in a mebibyte");
    };
    // With the minimum of memory, each worker sorts in 16 MiB, which gives several runs of captures.
    options.run.memory_max = needed;
    build(&options, &Progress::default()).unwrap();
    assert_same(&bytes(&roomy), &bytes(&tight), "tight memory");
    assert_eq!(fs::read_dir(&spill).unwrap().count(), 0, "temporary files are left");
}

#[test]
fn seldom_linked_urls_are_left_out_on_request() {
    let dir = temporary();
    let crawl = Crawl::random(23, SMALL);
    let inputs = files(dir.path(), "crawl", "jsonl", &[&lines(&crawl)]);
    let store = dir.path().join("store");
    let mut options = options(&store, inputs);
    options.min_sources = Some(4);
    build(&options, &Progress::default()).unwrap();
    let fewer = crawl.oracle().with_min_sources(4);
    assert!(fewer.totals().urls < crawl.oracle().totals().urls);
    assert_answers(&store, &fewer);
}

#[test]
fn every_length_of_in_link_ranges_gives_the_same_answers() {
    let dir = temporary();
    let crawl = Crawl::random(24, SMALL);
    let inputs = files(dir.path(), "crawl", "jsonl", &[&lines(&crawl)]);
    for length in ["day", "year", "10"] {
        let store = dir.path().join(length);
        let mut options = options(&store, inputs.clone());
        options.in_range = length.parse().unwrap();
        build(&options, &Progress::default()).unwrap();
        assert_answers(&store, &crawl.oracle());
    }
}

#[test]
fn many_partitions_answer_as_one() {
    let dir = temporary();
    let crawl = Crawl::random(25, LARGER);
    let inputs = files(dir.path(), "crawl", "jsonl", &[&lines(&crawl)]);
    let store = dir.path().join("store");
    let mut options = options(&store, inputs);
    options.partition_urls = Some(100);
    options.run.workers = 2;
    let report = build(&options, &Progress::default()).unwrap();
    assert!(report.partitions >= 8, "{} partitions", report.partitions);
    assert_answers(&store, &crawl.oracle());
}

#[test]
fn a_second_build_is_refused_unless_it_may_replace_the_first() {
    let dir = temporary();
    let store = dir.path().join("store");
    let crawls = [31, 32].map(|seed| Crawl::random(seed, SMALL));
    let [first, second] = [0, 1].map(|at| {
        let inputs = files(dir.path(), &format!("crawl{at}-"), "jsonl", &[&lines(&crawls[at])]);
        options(&store, inputs)
    });
    assert_eq!(build(&first, &Progress::default()).unwrap().epoch, 1);
    let before = bytes(&store);
    for again in [&first, &second] {
        let error = build(again, &Progress::default()).unwrap_err();
        assert!(matches!(error, Error::StoreExists { epoch: 1, .. }), "{error}");
        assert!(error.to_string().contains("`webstrata update ") && error.to_string().contains("--replace"), "{error}");
        assert_same(&before, &bytes(&store), "after a build that was refused");
    }
    assert_answers(&store, &crawls[0].oracle());
    let replacing = BuildOptions { replace: true, ..second };
    assert_eq!(build(&replacing, &Progress::default()).unwrap().epoch, 2);
    assert_answers(&store, &crawls[1].oracle());
    // If there is no store, nothing is replaced.
    let elsewhere = dir.path().join("elsewhere");
    let made = BuildOptions { run: run_options(&elsewhere), ..replacing };
    assert_eq!(build(&made, &Progress::default()).unwrap().epoch, 1);
}

#[test]
fn a_compact_merge_of_one_row_or_several_has_the_bytes_of_a_compact_build() {
    let dir = temporary();
    let lines = lines(&Crawl::random(33, LARGER));
    let (one, other) = lines.split_at(lines.len() / 2);
    let path = |name: &str| dir.path().join(name);
    let all = files(dir.path(), "all", "jsonl", &[&lines]);
    let halves = [files(dir.path(), "one", "jsonl", &[one]), files(dir.path(), "other", "jsonl", &[other])];
    let made = |name: &str, inputs: &[PathBuf], effort| {
        let update = path(name).exists();
        let options = BuildOptions { update, effort, ..options(&path(name), inputs.to_vec()) };
        build(&options, &Progress::default()).unwrap();
    };
    let merged = |name: &str, effort| {
        let options = MergeOptions { effort, ..MergeOptions::new(run_options(&path(name))) };
        let report = merge(&options, &Progress::default()).unwrap();
        (report.rows, row_bytes(&path(name)))
    };
    made("compact", &all, Effort::Compact);
    let expected = row_bytes(&path("compact"));
    made("single", &all, Effort::Quick);
    assert_eq!(merged("single", Effort::Quick).0, 0);
    let quick = row_bytes(&path("single"));
    halves.iter().for_each(|half| made("several", half, Effort::Quick));
    for (name, rows) in [("single", 1), ("several", 2)] {
        let (found, bytes) = merged(name, Effort::Compact);
        assert_eq!(found, rows, "{name}");
        assert_same(&expected, &bytes, name);
    }
    let size = |bytes: &BTreeMap<String, Vec<u8>>| bytes.values().map(Vec::len).sum::<usize>();
    assert!(size(&expected) < size(&quick), "{} {}", size(&expected), size(&quick));
}

/// A WARC record with an HTTP block.
fn record(kind: &str, url: &str, time: &str, digest: &str, more: &str, block: &str) -> String {
    format!(
        "WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\nWARC-Date: {time}\r\n\
         WARC-Payload-Digest: {digest}\r\n\
         {more}Content-Type: application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n{block}\r\n\r\n",
        block.len()
    )
}

/// A revisit under another URL takes the links of the original, resolved against the URL of the revisit, in whichever
/// file the original is.
#[test]
fn relative_links_of_a_borrowed_page_are_those_of_the_borrower() {
    let dir = temporary();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";
    let body = format!("{head}<a href=next.html>next</a> <a href=http://other.example/>other</a>");
    let digest = "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ";
    let profile = "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\n\
                   WARC-Refers-To-Target-URI: http://a.example/dir/page\r\n\
                   WARC-Refers-To-Date: 2006-05-01T00:00:00Z\r\n";
    let lost = profile.replace("a.example", "lost.example");
    let revisits = [
        record("revisit", "http://b.example/page", "2006-06-01T00:00:00Z", digest, profile, head),
        record(
            "revisit",
            "http://c.example/page",
            "2006-06-01T00:00:00Z",
            "sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
            &lost,
            head,
        ),
    ];
    // The revisit of c.example refers to another page at a certain second. c.example itself has a capture in the same
    // second, which is not the original of the revisit.
    let other = format!("{head}<a href=http://wrong.example/>wrong</a>");
    let original = [
        record("response", "http://a.example/dir/page", "2006-05-01T00:00:00Z", digest, "", &body),
        record(
            "response",
            "http://c.example/page",
            "2006-05-01T00:00:00Z",
            "sha1:BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB",
            "",
            &other,
        ),
    ];
    for workers in [1, 2] {
        let inputs = files(dir.path(), &format!("crawl{workers}-"), "warc", &[&revisits, &original]);
        let store = dir.path().join(format!("store{workers}"));
        let mut options = options(&store, inputs);
        options.run.workers = workers;
        build(&options, &Progress::default()).unwrap();
        let mut oracle = webstrata_tests::oracle::Oracle::default();
        let (may, june) = (1_146_441_600, 1_149_120_000);
        oracle.add("http://a.example/dir/page", may, ["http://a.example/dir/next.html", "http://other.example/"]);
        oracle.add("http://b.example/page", june, ["http://b.example/next.html", "http://other.example/"]);
        oracle.add("http://c.example/page", may, ["http://wrong.example/"]);
        oracle.add_unknown("http://c.example/page", june);
        assert_answers(&store, &oracle);
    }
}
