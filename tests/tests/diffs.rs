//! Compares the changes between epochs of random histories with the changes between sets.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use webstrata_engine::Progress;
use webstrata_layers::{CaptureChange, Changes, Diff, Error, Links, Reader, Store, Uid, gc};
use webstrata_pipeline::{BuildOptions, MergeOptions, build, merge};
use webstrata_tests::crawls::{Crawl, Random, Size};
use webstrata_tests::oracle::{Oracle, Time, When};
use webstrata_tests::stores::{options, run_options};

const SMALL: Size = Size { pages: 40, captures: 400, links: 10 };
const PARTITION_URLS: u64 = 40;

fn add(store: &Path, input: &Path) {
    let mut options = options(store, vec![input.to_owned()]);
    (options.update, options.partition_urls) = (store.exists(), Some(PARTITION_URLS));
    build(&options, &Progress::default()).unwrap();
}

fn merge_newest(store: &Path, rows: Option<usize>) {
    let options = MergeOptions { rows, partition_urls: Some(PARTITION_URLS), ..MergeOptions::new(run_options(store)) };
    merge(&options, &Progress::default()).unwrap();
}

fn current(store: &Path) -> u64 {
    Store::open(store).unwrap().manifest().epoch
}

fn reader(store: &Path, epoch: u64) -> Reader {
    Reader::new(Store::open_epoch(store, epoch).unwrap(), 1 << 20)
}

/// The changes of a page: whether it is new; its changed captures; the links gained; the links lost.
type Page<'a> = (bool, Vec<(Time, bool, CaptureChange)>, BTreeSet<&'a str>, BTreeSet<&'a str>);

/// The changes of a page by the oracle; `None` if nothing has changed.
fn changed<'a>(before: &'a Oracle, after: &'a Oracle, page: &str) -> Option<Page<'a>> {
    let old: BTreeMap<Time, bool> = before.captures(page).into_iter().collect();
    let mut captures = Vec::new();
    for (time, known) in after.captures(page) {
        let at = When::AsOf(time);
        let change = match (old.get(&time), known) {
            (None, _) => CaptureChange::New,
            (Some(false), true) => CaptureChange::Known,
            (Some(true), false) => CaptureChange::Unknown,
            (Some(true), true) if before.out_links(page, at) != after.out_links(page, at) => CaptureChange::Links,
            _ => continue,
        };
        captures.push((time, known, change));
    }
    let [was, is] = [before, after].map(|oracle| oracle.out_links(page, When::Seen(Time::MIN, Time::MAX)));
    let (gained, lost) = (&is - &was, &was - &is);
    let is_same = captures.is_empty() && gained.is_empty() && lost.is_empty();
    (!is_same).then_some((old.is_empty(), captures, gained, lost))
}

/// Compares two epochs. Returns the number of captures by kind of change.
fn compare(store: &Path, (from, before): (u64, &Oracle), (to, after): (u64, &Oracle)) -> Changes {
    let (older, newer) = (reader(store, from), reader(store, to));
    let mut expected: BTreeMap<&str, Page<'_>> =
        after.urls().into_iter().filter_map(|url| Some((url, changed(before, after, url)?))).collect();
    let (mut changes, mut last) = (Changes::default(), None);
    for page in Diff::between(&older, &newer).unwrap() {
        let page = page.unwrap();
        assert!(last.replace(page.uid) < Some(page.uid), "{from} to {to}: pages do not rise");
        changes.add(&page);
        let url = newer.url(page.uid).unwrap();
        let (is_new, captures, gained, lost) =
            expected.remove(url.as_str()).unwrap_or_else(|| panic!("{from} to {to}: {url} is the same: {page:?}"));
        let got: Vec<_> = page.captures.iter().map(|own| (own.time, own.known, own.change)).collect();
        assert_eq!((page.is_new, got), (is_new, captures), "{from} to {to}: {url}");
        let texts = |links: &[Uid], reader: &Reader| -> BTreeSet<String> {
            links.iter().map(|&link| reader.url(link).unwrap()).collect()
        };
        assert!(texts(&page.gained, &newer).iter().eq(&gained), "{from} to {to}: {url}: {gained:?}");
        assert!(texts(&page.lost, &older).iter().eq(&lost), "{from} to {to}: {url}: {lost:?}");
    }
    assert_eq!(expected, BTreeMap::new(), "{from} to {to}");
    changes
}

#[test]
fn epochs_differ_as_the_oracle_says() {
    let mut all = [Changes::default(); 2];
    for seed in 0..6u64 {
        let revisits = seed % 2 == 1;
        let dir = tempfile::tempdir().unwrap();
        let (store, path) = (dir.path().join("store"), dir.path().join("batch"));
        let crawl = if revisits { Crawl::with_revisits(seed, SMALL) } else { Crawl::random(seed, SMALL) };
        let records =
            if revisits { crawl.warc() } else { crawl.json_lines().into_iter().map(|line| line + "\n").collect() };
        let mut random = Random(seed);
        let batches = 2 + random.below(4);
        let batch_of: Vec<u64> = records.iter().map(|_| random.below(batches)).collect();
        let mut epochs: Vec<(u64, Oracle)> = Vec::new();
        for batch in 0..batches {
            let own = (0..records.len()).filter(|&at| batch_of[at] == batch);
            fs::write(&path, own.map(|at| records[at].as_str()).collect::<String>()).unwrap();
            add(&store, &path);
            let known = (0..records.len()).filter(|&at| batch_of[at] <= batch).collect();
            epochs.push((current(&store), crawl.oracle_of(&known)));
            if random.once_in(2) {
                merge_newest(&store, [None, Some(2)][usize::from(random.once_in(2))]);
                let (epoch, oracle) = (current(&store), epochs[epochs.len() - 1].1.clone());
                epochs.push((epoch, oracle));
            }
        }
        epochs.dedup_by_key(|epoch| epoch.0);
        for (at, (to, after)) in epochs.iter().enumerate() {
            for (from, before) in &epochs[..=at] {
                let changes = compare(&store, (*from, before), (*to, after));
                let sum = &mut all[usize::from(revisits)];
                sum.new_pages += changes.new_pages;
                sum.new_captures += changes.new_captures;
                sum.now_known += changes.now_known;
                sum.other_links += changes.other_links;
            }
        }
    }
    let [plain, revisits] = all;
    assert!(plain.new_pages > 0 && plain.new_captures > 0 && plain.other_links > 0, "{plain:?}");
    assert!(revisits.now_known > 0, "{revisits:?}");
}

#[test]
fn epochs_that_cannot_be_compared_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let (store, path) = (dir.path().join("store"), dir.path().join("batch"));
    let lines = Crawl::random(7, SMALL).json_lines();
    let (first, second) = lines.split_at(lines.len() / 2);
    fs::write(&path, first.join("\n")).unwrap();
    add(&store, &path);
    fs::write(&path, second.join("\n")).unwrap();
    add(&store, &path);
    let [one, two] = [1, 2].map(|epoch| reader(&store, epoch));
    assert!(matches!(Diff::between(&two, &one), Err(Error::MissingEpoch { epoch: 2, .. })));
    let again = BuildOptions { replace: true, ..options(&store, vec![path]) };
    build(&again, &Progress::default()).unwrap();
    let three = reader(&store, 3);
    assert!(matches!(Diff::between(&two, &three), Err(Error::ReplacedBetween { from: 2, first: 3, .. })));
    drop((one, two));
    gc::collect(&store, "test", 1).unwrap();
    assert!(matches!(Store::open_epoch(&store, 2), Err(Error::RetiredEpoch { epoch: 2, current: 3, .. })));
}
