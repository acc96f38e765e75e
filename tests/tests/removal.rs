//! Captures and links that were removed from a store are gone. Every way to ask hides them at once. A merge of all rows
//! removes them from the files, which then have the bytes of a build without them. A later crawl does not bring them
//! back.
//!
//! `WEBSTRATA_QUESTIONS` sets the number of questions in each way; the default is some hundreds.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use webstrata_codecs::CodecTag;
use webstrata_datasets::LinkKinds;
use webstrata_engine::Progress;
use webstrata_layers::{Links, Removal, RemovedAs, Selection, Store, Uid, check};
use webstrata_pipeline::{MergeOptions, RemoveOptions, Removed, build, merge, remove};
use webstrata_tests::crawls::{Crawl, Random, Size, url};
use webstrata_tests::oracle::Oracle;
use webstrata_tests::stores::{assert_cells, compare_url, options, reader, row_bytes, run_options, windows};
use webstrata_tests::ways::ask;
use webstrata_tests::{number, seeds};

const SMALL: Size = Size { pages: 60, captures: 700, links: 14 };

/// A URL without scheme and port.
fn bare(url: &str) -> String {
    let rest = url.split("://").nth(1).unwrap();
    let (authority, path) = rest.split_at(rest.find('/').unwrap());
    format!("{}{path}", authority.split(':').next().unwrap())
}

/// Whether a rule selects a URL. This version compares texts.
fn selects(select: &Selection, url: &str) -> bool {
    let host = bare(url).split('/').next().unwrap().to_owned();
    match select {
        Selection::Url(text) => text == url,
        Selection::Host(text) => *text == host,
        Selection::Domain(text) => *text == host || host.ends_with(&format!(".{text}")),
        Selection::Prefix(text) => bare(url).starts_with(&bare(text)),
    }
}

/// Random rules over a crawl.
fn rules(random: &mut Random, crawl: &Crawl, count: u64) -> Vec<Removal> {
    let times: Vec<i64> = crawl.captures.iter().map(|capture| capture.time).collect();
    let rule = |random: &mut Random| {
        let select = match random.below(8) {
            0 => Selection::Host((*random.pick(&["a.example", "nobody.example", "b.a.example"])).to_owned()),
            1 => Selection::Domain((*random.pick(&["a.example", "example-a.org"])).to_owned()),
            2 => Selection::Prefix(format!("http://www.example.org/d{}", random.below(3))),
            _ => Selection::Url(url(random.below(SMALL.pages * 3))),
        };
        let removed_as = *random.pick(&[RemovedAs::Page, RemovedAs::Target, RemovedAs::Both]);
        let (one, other) = (*random.pick(&times), *random.pick(&times));
        let from = random.once_in(3).then_some(one.min(other));
        let to = random.once_in(3).then_some(one.max(other));
        Removal { select, removed_as, from, to, reason: random.once_in(2).then(|| "a test".to_owned()) }
    };
    (0..count).map(|_| rule(random)).collect()
}

/// Whether rules remove a URL as a page, and as a target, in a capture of a second.
fn takes_out(rules: &[Removal], url: &str, time: i64) -> (bool, bool) {
    let holds = |rule: &&Removal| {
        selects(&rule.select, url) && rule.from.is_none_or(|from| from <= time) && rule.to.is_none_or(|to| time <= to)
    };
    let found: Vec<_> = rules.iter().filter(holds).map(|rule| rule.removed_as).collect();
    (found.iter().any(|of| *of != RemovedAs::Target), found.iter().any(|of| *of != RemovedAs::Page))
}

fn without(oracle: &Oracle, rules: &[Removal]) -> Oracle {
    oracle.without(|url, time| takes_out(rules, url, time).0, |url, time| takes_out(rules, url, time).1)
}

fn take_out(store: &Path, rules: &[Removal], workers: usize) -> Removed {
    let mut run = run_options(store);
    run.workers = workers;
    let report =
        remove(&RemoveOptions { run, rules: rules.to_vec(), keep_names: false }, &Progress::default()).unwrap();
    sound(store);
    report.removed
}

fn merge_rows(store: &Path, rows: Option<usize>, workers: usize) {
    let mut run = run_options(store);
    run.workers = workers;
    merge(&MergeOptions { rows, ..MergeOptions::new(run) }, &Progress::default()).unwrap();
    sound(store);
}

fn sound(store: &Path) {
    let checked = check(store).unwrap();
    assert!(checked.is_sound(), "{:?}", checked.problems);
}

/// Captures of redirects have one link, which is the target of the redirect.
const REDIRECTS: LinkKinds = LinkKinds { anchors: true, redirects: true, embeds: false, outlinks: false, via: false };

fn add(store: &Path, lines: &str, workers: usize, with_removed: bool) {
    let path = store.with_file_name("lines.jsonl");
    fs::write(&path, lines).unwrap();
    let mut options = options(store, vec![path]);
    options.update = store.exists();
    options.kinds = (!options.update).then_some(REDIRECTS);
    options.run.workers = workers;
    options.partition_urls = (!options.update).then_some(40);
    options.with_removed = with_removed;
    build(&options, &Progress::default()).unwrap();
    sound(store);
}

/// Asks about every URL of the store and of the oracle. If `whole` is set, the store must have no other URLs.
fn assert_hidden(store: &Path, oracle: &Oracle, whole: bool) {
    let reader = reader(store);
    let mut urls: BTreeSet<String> = oracle.urls().into_iter().map(str::to_owned).collect();
    if whole {
        assert_eq!(reader.urls(), urls.len() as u64);
    }
    urls.extend(Uid::each(Uid::below(reader.urls())).map(|uid| reader.url(uid).unwrap()));
    for url in &urls {
        if let Err(difference) = compare_url(&reader, oracle, url, &windows(oracle, url)) {
            panic!("{difference}");
        }
    }
}

#[test]
fn what_is_taken_out_is_gone_whatever_comes_before_and_after() {
    let mut taken = Removed::default();
    for seed in 0..10u64 {
        let mut random = Random(seed);
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        let crawl = if seed < 5 { Crawl::random(seed, SMALL) } else { Crawl::with_failures(seed, SMALL, false) };
        let lines = crawl.json_lines();
        let workers = 1 + usize::try_from(seed % 2).unwrap();
        let mut batches = vec![BTreeSet::new(); 5];
        for line in 0..lines.len() {
            batches[random.index(5)].insert(line);
        }
        let (mut known, mut all_rules): (BTreeSet<usize>, Vec<Removal>) = Default::default();
        for (step, batch) in batches.into_iter().enumerate() {
            let text: String = batch.iter().map(|&line| format!("{}\n", lines[line])).collect();
            known.extend(batch);
            add(&store, &text, workers, false);
            let oracle = || crawl.oracle_of(&known);
            assert_hidden(&store, &without(&oracle(), &all_rules), false);
            if step % 2 == 1 {
                let more = rules(&mut random, &crawl, 1 + seed % 4);
                let removed = take_out(&store, &more, workers);
                (taken.captures, taken.occurrences) =
                    (taken.captures + removed.captures, taken.occurrences + removed.occurrences);
                all_rules.extend(more);
                assert_hidden(&store, &without(&oracle(), &all_rules), false);
            }
            if random.once_in(3) {
                merge_rows(&store, Some(2), workers);
                assert_hidden(&store, &without(&oracle(), &all_rules), false);
            }
        }
        let left = without(&crawl.oracle(), &all_rules);
        if seed % 3 == 0 {
            assert_cells(&store, &left, CodecTag::Strata);
        }
        merge_rows(&store, None, workers);
        assert_hidden(&store, &left, true);
        assert!(!Store::open(&store).unwrap().manifest().removes());
        let once = dir.path().join("once");
        let without_it = crawl
            .without(|url, time| takes_out(&all_rules, url, time).0, |url, time| takes_out(&all_rules, url, time).1);
        add(&once, &(without_it.json_lines().join("\n") + "\n"), 1, false);
        same_bytes(seed, &row_bytes(&store), &row_bytes(&once));
        // A new build with `replace` still keeps the removed captures out. An update with `with_removed` brings
        // everything back.
        let everything = lines.join("\n") + "\n";
        fs::write(dir.path().join("all.jsonl"), &everything).unwrap();
        let mut anew = options(&store, vec![dir.path().join("all.jsonl")]);
        anew.partition_urls = Some(40);
        anew.kinds = Some(REDIRECTS);
        anew.replace = true;
        build(&anew, &Progress::default()).unwrap();
        same_bytes(seed, &row_bytes(&store), &row_bytes(&once));
        add(&store, &everything, workers, true);
        assert_hidden(&store, &crawl.oracle(), true);
    }
    assert!(taken.captures > 500 && taken.occurrences > 500, "{taken:?}");
}

fn same_bytes(seed: u64, got: &BTreeMap<String, Vec<u8>>, expected: &BTreeMap<String, Vec<u8>>) {
    assert!(got.keys().eq(expected.keys()), "seed {seed}: {:?}, expected {:?}", got.keys(), expected.keys());
    expected.iter().for_each(|(file, content)| assert!(got[file] == *content, "seed {seed}: {file} differs"));
}

#[test]
fn every_way_to_ask_hides_what_a_row_takes_out() {
    for seed in seeds(20..26) {
        let mut random = Random(seed);
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        let crawl = Crawl::with_failures(seed, SMALL, false);
        let lines = crawl.json_lines();
        for half in [&lines[..300], &lines[300..]] {
            add(&store, &(half.join("\n") + "\n"), 1, false);
        }
        let all_rules = rules(&mut random, &crawl, 8);
        take_out(&store, &all_rules, 2);
        let left = without(&crawl.oracle(), &all_rules);
        let questions = number("WEBSTRATA_QUESTIONS", 200);
        ask("3 rows, the last of which takes out", &store, &left, questions, seed);
        merge_rows(&store, None, 2);
        ask("merged", &store, &left, questions, seed);
    }
}

/// Earlier revisits keep their links. A later revisit does not find a removed original.
#[test]
fn revisits_of_what_is_taken_out() {
    for seed in seeds(30..36) {
        let mut random = Random(seed);
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        let crawl = Crawl::with_failures(seed, SMALL, true);
        let warc = dir.path().join("crawl.warc");
        fs::write(&warc, crawl.warc().concat()).unwrap();
        let mut whole = options(&store, vec![warc]);
        whole.kinds = Some(REDIRECTS);
        build(&whole, &Progress::default()).unwrap();
        let all_rules = rules(&mut random, &crawl, 6);
        take_out(&store, &all_rules, 2);
        let left = without(&crawl.oracle(), &all_rules);
        assert_hidden(&store, &left, false);
        merge_rows(&store, None, 2);
        assert_hidden(&store, &left, true);
    }
}

/// The page and its removal are in one row, which no older row shares; an older page keeps the URL in the store.
#[test]
fn what_is_taken_out_stays_gone_when_the_newest_rows_are_merged_first() {
    for to in [None, Some(1_200_000_000)] {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        let page = |name: &str, link: &str| {
            format!(
                "{{\"url\":\"http://{name}.example/\",\"ts\":\"20060101\",\"links\":[\"http://{link}.example/\"]}}\n"
            )
        };
        add(&store, &page("old", "gone"), 1, false);
        add(&store, &(page("gone", "old") + &page("new", "old")), 1, false);
        let select = Selection::Url("http://gone.example/".to_owned());
        take_out(&store, &[Removal { select, removed_as: RemovedAs::Page, from: None, to, reason: None }], 1);
        for rows in [Some(2), None] {
            merge_rows(&store, rows, 1);
            let reader = reader(&store);
            let uid = reader.uid("http://gone.example/").unwrap().unwrap();
            assert_eq!(reader.captures(uid).unwrap(), []);
            assert!(reader.page(uid).unwrap().is_none());
        }
        assert_eq!(Store::open(&store).unwrap().manifest().counts.pages, 2);
    }
}
