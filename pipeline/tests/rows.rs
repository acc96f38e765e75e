//! Jobs one after the other: whatever order captures come in, rows merge to the bytes of one build, with partitions of
//! the size that was said when the store was built.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use webstrata_layers::read::check;
use webstrata_layers::{Links, Reader, Removal, RemovedAs, Selection, Store, Window};
use webstrata_pipeline::{
    BuildOptions, BuildReport, Error, MergeOptions, Progress, RemoveOptions, RunOptions, build, merge, remove,
};

/// A capture: page, second, links.
type Capture = (usize, i64, BTreeSet<usize>);

fn url(number: usize) -> String {
    format!("http://h{}.example/{number}", number % 7)
}

/// Captures of twelve pages, whose links go to pages and to sixty other URLs.
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

/// Begins a store with partitions of this size, or adds to it without saying any.
fn add(store: &Path, input: PathBuf, workers: usize, partition_urls: u64) -> BuildReport {
    let mut options = BuildOptions::new(RunOptions::new(store), vec![input]);
    options.run.workers = workers;
    options.update = store.exists();
    options.partition_urls = (!options.update).then_some(partition_urls);
    let report = build(&options, &Progress::default()).unwrap();
    sound(store);
    report
}

fn merged(store: &Path, rows: Option<usize>) {
    let options = MergeOptions { run: RunOptions::new(store), rows, partition_urls: None };
    merge(&options, &Progress::default()).unwrap();
    sound(store);
}

fn sound(store: &Path) {
    let checked = check::check(store).unwrap();
    assert!(checked.is_sound(), "{:?}", checked.problems);
}

/// The files of the only row.
fn row_bytes(store: &Path) -> BTreeMap<String, Vec<u8>> {
    let opened = Store::open(store).unwrap();
    let [row] = &opened.manifest().rows[..] else { panic!("{} rows", opened.manifest().rows.len()) };
    let files = row.partitions.iter().flat_map(|partition| &partition.files);
    let content = |path: &str| fs::read(store.join(path)).unwrap();
    files.map(|file| (format!("{}/{}", file.layer, file.partition), content(&file.path))).collect()
}

/// The URLs that each page ever linked to.
fn answers(captures: &[Capture]) -> BTreeMap<String, BTreeSet<String>> {
    let mut links: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (page, _, own) in captures {
        links.entry(url(*page)).or_default().extend(own.iter().map(|&link| url(link)));
    }
    links
}

fn assert_answers(store: &Path, captures: &[Capture]) {
    let reader = Reader::new(Store::open(store).unwrap(), 16 << 20);
    let expected = answers(captures);
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
    for seed in 0..8 {
        let dir = tempfile::tempdir().unwrap();
        let (store, once) = (dir.path().join("store"), dir.path().join("once"));
        let partition_urls = if seed % 3 == 0 { 1 << 19 } else { 12 };
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
            add(&store, path.clone(), workers, partition_urls);
            known.extend_from_slice(batch);
            assert_answers(&store, &known);
            if random.bool() {
                merged(&store, Some(2));
                assert_answers(&store, &known);
            }
            if number > 0 {
                let again = add(&store, path, workers, partition_urls);
                assert_eq!((again.counts.captures, again.counts.urls), (0, 0), "seed {seed}, batch {number}");
                assert_eq!(again.captures_stored, batch.len() as u64, "seed {seed}, batch {number}");
            }
        }
        merged(&store, None);
        add(&once, input(dir.path(), "all.jsonl", &all), 1, partition_urls);
        let (got, expected) = (row_bytes(&store), row_bytes(&once));
        assert!(partition_urls > 12 || expected.len() > 8 * 2, "{} files", expected.len());
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

#[test]
fn a_build_over_a_store_is_refused_unless_it_replaces_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let path = input(dir.path(), "one.jsonl", &captures(1));
    add(&store, path.clone(), 1, 1 << 19);
    let mut again = BuildOptions::new(RunOptions::new(&store), vec![path]);
    let error = build(&again, &Progress::default()).unwrap_err();
    assert!(matches!(error, Error::StoreExists { epoch: 1, .. }), "{error}");
    again.replace = true;
    assert_eq!(build(&again, &Progress::default()).unwrap().epoch, 2);
    assert_answers(&store, &captures(1));
}
