//! Jobs one after the other: in whatever order captures arrive, rows merge to the bytes of one build. Partitions keep
//! the size that was given when the store was built, also if URLs with few sources are left out.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use webstrata_engine::{Progress, RunOptions};
use webstrata_layers::{Links, Reader, Removal, RemovedAs, Selection, Store, Window, check};
use webstrata_pipeline::{BuildOptions, BuildReport, Error, MergeOptions, RemoveOptions, build, merge, remove};

/// A capture: page, second, links.
type Capture = (usize, i64, BTreeSet<usize>);

fn url(number: usize) -> String {
    format!("http://h{}.example/{number}", number % 7)
}

/// Returns captures of twelve pages, with links to pages and to sixty other URLs.
fn captures(seed: u64) -> Vec<Capture> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut taken = BTreeSet::new();
    let one = |random: &mut fastrand::Rng| {
        let links = (0..random.usize(..9)).map(|_| random.usize(..72)).collect();
        (random.usize(..12), 1_000_000_000 + random.i64(0..400) * 86_400, links)
    };
    let all: Vec<Capture> = (0..150).map(|_| one(&mut random)).collect();
    all.into_iter().filter(|(page, time, _)| taken.insert((*page, *time))).collect()
}

fn input(dir: &Path, name: &str, captures: &[Capture]) -> PathBuf {
    let line = |(page, time, links): &Capture| {
        let links: Vec<String> = links.iter().map(|&link| format!("\"{}\"", url(link))).collect();
        format!("{{\"url\":\"{}\",\"ts\":{time},\"links\":[{}]}}\n", url(*page), links.join(","))
    };
    let path = dir.join(name);
    fs::write(&path, captures.iter().map(line).collect::<String>()).unwrap();
    path
}

/// The options that a store is built with.
#[derive(Clone, Copy)]
struct Said {
    partition_urls: u64,
    min_sources: u64,
}

const PLAIN: Said = Said { partition_urls: 1 << 19, min_sources: 0 };

/// Builds a store with options, or adds to the store without options.
fn add(store: &Path, input: PathBuf, workers: usize, said: Said) -> BuildReport {
    let mut options = BuildOptions::new(RunOptions::new(store), vec![input]);
    options.run.workers = workers;
    options.update = store.exists();
    options.partition_urls = (!options.update).then_some(said.partition_urls);
    options.min_sources = (!options.update).then_some(said.min_sources);
    let report = build(&options, &Progress::default()).unwrap();
    sound(store);
    report
}

fn merged(store: &Path, rows: Option<usize>) {
    let options = MergeOptions { rows, ..MergeOptions::new(RunOptions::new(store)) };
    merge(&options, &Progress::default()).unwrap();
    sound(store);
}

fn sound(store: &Path) {
    let checked = check(store).unwrap();
    assert!(checked.is_sound(), "{:?}", checked.problems);
}

/// Returns the files of the only row, and the files of held links.
fn row_bytes(store: &Path) -> BTreeMap<String, Vec<u8>> {
    let opened = Store::open(store).unwrap();
    let [row] = &opened.manifest().rows[..] else { panic!("{} rows", opened.manifest().rows.len()) };
    let files = row.partitions.iter().flat_map(|partition| &partition.files);
    let content = |path: &str| fs::read(store.join(path)).unwrap();
    let layers = files.map(|file| (format!("{}/{}", file.layer, file.partition), content(&file.path)));
    let held = opened.manifest().provenance.held.iter();
    layers
        .chain(held.map(|entry| (entry.path.replacen(|c: char| c.is_ascii_digit(), "", 6), content(&entry.path))))
        .collect()
}

/// Returns the URLs that each page ever linked to, without URLs that are not pages and have fewer than `least` sources.
fn answers(captures: &[Capture], least: u64) -> BTreeMap<String, BTreeSet<String>> {
    let mut links: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (page, _, own) in captures {
        links.entry(url(*page)).or_default().extend(own.iter().map(|&link| url(link)));
    }
    let mut sources: BTreeMap<String, u64> = BTreeMap::new();
    links.values().flatten().for_each(|link| *sources.entry(link.clone()).or_default() += 1);
    let pages: BTreeSet<String> = links.keys().cloned().collect();
    links.values_mut().for_each(|links| links.retain(|link| pages.contains(link) || sources[link] >= least));
    links
}

fn assert_answers(store: &Path, captures: &[Capture], least: u64) {
    let reader = Reader::new(Store::open(store).unwrap(), 16 << 20);
    let expected = answers(captures, least);
    let urls: BTreeSet<&String> = expected.keys().chain(expected.values().flatten()).collect();
    assert_eq!(reader.urls(), urls.len() as u64);
    for (page, links) in &expected {
        let uid = reader.uid(page).unwrap().expect("a page of the store");
        let got: BTreeSet<String> =
            reader.urls_of(&reader.out_links(uid, Window::ALWAYS).unwrap()).unwrap().into_iter().collect();
        assert_eq!(got, *links, "{page}");
    }
}

#[test]
fn rows_come_to_the_bytes_of_one_build() {
    for seed in 0..12 {
        let dir = tempfile::tempdir().unwrap();
        let (store, once) = (dir.path().join("store"), dir.path().join("once"));
        let partition_urls = if seed % 3 == 0 { 1 << 19 } else { 12 };
        let min_sources = if seed < 6 { 0 } else { 2 + seed % 5 };
        let said = Said { partition_urls, min_sources };
        let mut random = fastrand::Rng::with_seed(100 + seed);
        let all = captures(seed);
        let mut batches = vec![Vec::new(); 2 + random.usize(..4)];
        for capture in &all {
            let batch = random.usize(..batches.len());
            batches[batch].push(capture.clone());
        }
        let mut known = Vec::new();
        for (number, batch) in batches.iter().filter(|batch| !batch.is_empty()).enumerate() {
            let path = input(dir.path(), &format!("batch-{number}.jsonl"), batch);
            let workers = 1 + random.usize(..2);
            add(&store, path.clone(), workers, said);
            known.extend_from_slice(batch);
            assert_answers(&store, &known, min_sources);
            if random.bool() {
                merged(&store, Some(2));
                assert_answers(&store, &known, min_sources);
            }
            if number > 0 {
                let again = add(&store, path, workers, said);
                assert_eq!((again.counts.captures, again.counts.urls), (0, 0), "seed {seed}, batch {number}");
                assert_eq!(again.captures_stored, batch.len() as u64, "seed {seed}, batch {number}");
            }
        }
        merged(&store, None);
        add(&once, input(dir.path(), "all.jsonl", &all), 1, said);
        let (got, expected) = (row_bytes(&store), row_bytes(&once));
        assert!(partition_urls > 12 || expected.len() > 8, "{} files", expected.len());
        assert!(got.keys().eq(expected.keys()), "seed {seed}: {:?}, expected {:?}", got.keys(), expected.keys());
        expected.iter().for_each(|(name, content)| assert!(got[name] == *content, "seed {seed}: {name} differs"));
        // A removal keeps the size of partitions, and so does the merge after it.
        let partitions = |store: &Path| Store::open(store).unwrap().manifest().rows[0].partitions.len();
        let rule =
            Removal { select: Selection::Url(url(3)), removed_as: RemovedAs::Both, from: None, to: None, reason: None };
        let before = partitions(&store);
        remove(
            &RemoveOptions { run: RunOptions::new(&store), rules: vec![rule], keep_names: false },
            &Progress::default(),
        )
        .unwrap();
        merged(&store, None);
        assert!(partitions(&store) + 1 >= before, "seed {seed}: {} of {before}", partitions(&store));
    }
}

/// Returns rules for pages, for links and for both, some for a period.
fn rules(random: &mut fastrand::Rng) -> Vec<Removal> {
    let rule = |random: &mut fastrand::Rng| {
        let removed_as = [RemovedAs::Page, RemovedAs::Target, RemovedAs::Both][random.usize(..3)];
        let from = random.bool().then(|| 1_000_000_000 + random.i64(0..300) * 86_400);
        let to = from.map(|from| from + 100 * 86_400);
        Removal { select: Selection::Url(url(random.usize(..72))), removed_as, from, to, reason: None }
    };
    (0..4).map(|_| rule(random)).collect()
}

/// Returns the captures without the captures and links that rules take out.
fn without(captures: &[Capture], rules: &[Removal]) -> Vec<Capture> {
    let is_out = |number: usize, time: i64, means: fn(&Removal) -> bool| {
        let selects = |rule: &&Removal| rule.select == Selection::Url(url(number)) && means(rule);
        rules.iter().filter(selects).any(|rule| rule.covers(time))
    };
    let left = captures.iter().filter(|(page, time, _)| !is_out(*page, *time, Removal::of_pages));
    let links = |(page, time, links): &Capture| {
        let links = links.iter().filter(|&&link| !is_out(link, *time, Removal::of_targets));
        (*page, *time, links.copied().collect())
    };
    left.map(links).collect()
}

#[test]
fn what_is_held_and_taken_out_comes_to_the_bytes_of_a_build_without_it() {
    for seed in 0..10 {
        let dir = tempfile::tempdir().unwrap();
        let (store, once) = (dir.path().join("store"), dir.path().join("once"));
        let mut random = fastrand::Rng::with_seed(200 + seed);
        let said = Said { partition_urls: if seed % 3 == 0 { 1 << 19 } else { 12 }, min_sources: 3 + seed % 4 };
        let all = captures(300 + seed);
        let (mut known, mut out) = (Vec::new(), Vec::new());
        for (number, batch) in all.chunks(40).enumerate() {
            let path = input(dir.path(), &format!("batch-{number}.jsonl"), batch);
            add(&store, path, 1 + random.usize(..2), said);
            known.extend_from_slice(batch);
            if number % 2 == 1 {
                let rules = rules(&mut random);
                out.extend(rules.clone());
                let options = RemoveOptions { run: RunOptions::new(&store), rules, keep_names: false };
                remove(&options, &Progress::default()).unwrap();
                sound(&store);
            }
            if random.bool() {
                merged(&store, Some(2));
            }
            if random.u8(..3) == 0 {
                merged(&store, None);
            }
        }
        merged(&store, None);
        add(&once, input(dir.path(), "all.jsonl", &without(&known, &out)), 1, said);
        let (got, expected) = (row_bytes(&store), row_bytes(&once));
        assert!(expected.keys().any(|name| name.starts_with("held")), "seed {seed}: nothing is held");
        assert!(got.keys().eq(expected.keys()), "seed {seed}: {:?}, expected {:?}", got.keys(), expected.keys());
        expected.iter().for_each(|(name, content)| assert!(got[name] == *content, "seed {seed}: {name} differs"));
    }
}

#[test]
fn a_build_over_a_store_is_refused_unless_it_replaces_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let path = input(dir.path(), "one.jsonl", &captures(1));
    add(&store, path.clone(), 1, PLAIN);
    let mut again = BuildOptions::new(RunOptions::new(&store), vec![path]);
    let error = build(&again, &Progress::default()).unwrap_err();
    assert!(matches!(error, Error::StoreExists { epoch: 1, .. }), "{error}");
    again.replace = true;
    assert_eq!(build(&again, &Progress::default()).unwrap().epoch, 2);
    assert_answers(&store, &captures(1), 0);
}
