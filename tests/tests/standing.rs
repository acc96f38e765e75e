//! Standing results over random stores that are updated and merged. At every epoch, a result is equal to a plain
//! recomputation from the layers, with one worker and two, whenever the watch began.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::Duration;
use webstrata_analysis::Fold;
use webstrata_analysis::standing::{Changeset, Event, FollowOptions, Standing, Start, Value, follow};
use webstrata_engine::{Error, Progress};
use webstrata_layers::record::key::host_of;
use webstrata_layers::{CaptureTime, Failures, Links, Reader, Removal, RemovedAs, Selection, Store, Uid, Window, gc};
use webstrata_pipeline::{MergeOptions, RemoveOptions, build, merge, remove};
use webstrata_tests::crawls::{Crawl, Random, Size, digits};
use webstrata_tests::rows::{Rows, Said, Shape};
use webstrata_tests::stores::{options, run_options};
use webstrata_url::domain_of;

const SMALL: Size = Size { pages: 40, captures: 300, links: 8 };
const SHAPE: Shape = Shape { rows: 6, pages: 20, captures: 30, links: 6, in_order: false };

/// A result: the value of each key.
type Result = BTreeMap<[String; 2], Value>;

fn add(store: &Path, text: &str) {
    let path = store.with_extension("batch");
    fs::write(&path, text).unwrap();
    let mut options = options(store, vec![path]);
    (options.update, options.partition_urls) = (store.exists(), Some(40));
    build(&options, &Progress::default()).unwrap();
}

fn merge_newest(store: &Path, rows: Option<usize>) {
    let options = MergeOptions { rows, partition_urls: Some(40), ..MergeOptions::new(run_options(store)) };
    merge(&options, &Progress::default()).unwrap();
}

/// Makes a store with epochs of all kinds. For even seeds, later batches repeat captures with other links, so that
/// links and then URLs go for good. For odd seeds, some captures are revisits whose originals come later or never.
fn make(store: &Path, seed: u64) {
    let mut random = Random(seed);
    let batches: Vec<String> = if seed.is_multiple_of(2) {
        let rows = Rows::random(seed, SHAPE).rows;
        let line = |((page, time), said): (&(String, i64), &Said)| {
            let (links, status) = match said {
                Said::Links(links) | Said::Cut(links) => (links.iter().collect(), 200),
                Said::Failure(status) => (Vec::new(), *status),
                Said::Unknown => return None,
            };
            let capture = json!({"url": page, "ts": digits(*time), "links": links, "status": status});
            Some(format!("{capture}\n"))
        };
        rows.iter().map(|row| row.iter().filter_map(line).collect()).collect()
    } else {
        let records = Crawl::with_failures(seed, SMALL, true).warc();
        let mut batches = vec![String::new(); 5];
        records.iter().for_each(|record| batches[usize::try_from(random.below(5)).unwrap()] += record);
        batches
    };
    for batch in batches.iter().filter(|batch| !batch.is_empty()) {
        add(store, batch);
        if random.once_in(4) {
            take_out(store, &mut random);
        }
        if random.once_in(2) {
            merge_newest(store, [None, Some(2)][usize::from(random.once_in(2))]);
        }
    }
}

/// Removes some URLs from the store.
fn take_out(store: &Path, random: &mut Random) {
    let epoch = reader(store, current(store));
    let rule = |_| {
        let select = Selection::Url(epoch.url(Uid(random.below(epoch.urls()))).unwrap());
        Removal { select, removed_as: RemovedAs::Both, from: None, to: None, reason: None }
    };
    let rules = (0..3).map(rule).collect();
    remove(&RemoveOptions { run: run_options(store), rules, keep_names: false }, &Progress::default()).unwrap();
}

fn reader(store: &Path, epoch: u64) -> Reader {
    Reader::new(Store::inspect(store, epoch).unwrap(), 1 << 20)
}

fn current(store: &Path) -> u64 {
    Store::open(store).unwrap().manifest().epoch
}

/// All pairs of a page and a link: from the page's latest capture that is whole and not a failure of the server, or
/// from all captures.
fn pairs(epoch: &Reader, latest: bool) -> BTreeSet<(String, String)> {
    let mut pairs = BTreeSet::new();
    for uid in Uid::each(Uid::below(epoch.urls())) {
        let tells = |capture: &&CaptureTime| capture.is_whole() && Failures::End.counts(capture.status);
        let window = match epoch.captures(uid).unwrap().iter().rev().find(tells) {
            _ if !latest => Window::ALWAYS,
            Some(&CaptureTime { time, .. }) => Window::Seen { from: time, to: time },
            None => continue,
        };
        for link in epoch.out_links(uid, window).unwrap() {
            pairs.insert((epoch.url(uid).unwrap(), epoch.url(link).unwrap()));
        }
    }
    pairs
}

/// The result at an epoch, from all its links. Here, any URL of a component may name the component: see [`unnamed`].
fn recomputed(standing: &Standing, epoch: &Reader) -> Result {
    let pairs = pairs(epoch, !matches!(standing, Standing::NewLinks { .. }));
    let of_url = |url: &str| [url.to_owned(), String::new()];
    let mut degrees: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for (page, link) in &pairs {
        degrees.entry(page).or_default().0 += 1;
        degrees.entry(link).or_default().1 += 1;
    }
    match standing {
        Standing::Degrees => {
            degrees.iter().map(|(url, &(out, into))| (of_url(url), Value::Degrees { out, into })).collect()
        }
        Standing::Top { k } => {
            let mut into: Vec<u64> = degrees.values().map(|degrees| degrees.1).filter(|&into| into > 0).collect();
            into.sort_unstable_by(|a, b| b.cmp(a));
            let last = into.get(usize::try_from(*k).unwrap() - 1).or(into.last()).copied().unwrap_or(1);
            let top = degrees.iter().filter(|(_, degrees)| degrees.1 >= last.max(1));
            top.map(|(url, degrees)| (of_url(url), Value::Into(degrees.1))).collect()
        }
        Standing::Components => {
            let mut of: BTreeMap<&str, &str> = degrees.keys().map(|&url| (url, url)).collect();
            let mut moved = true;
            while moved {
                moved = false;
                for (page, link) in &pairs {
                    let least = of[page.as_str()].min(of[link.as_str()]);
                    for url in [page, link] {
                        moved |= of.insert(url, least) != Some(least);
                    }
                }
            }
            of.iter().map(|(url, name)| (of_url(url), Value::Component((*name).to_owned()))).collect()
        }
        Standing::Hosts { unit } => {
            let part = |url: &str| {
                let host = host_of(url).unwrap();
                if *unit == Fold::Domain { domain_of(host) } else { host }.to_owned()
            };
            let mut links: BTreeMap<[String; 2], u64> = BTreeMap::new();
            pairs.iter().for_each(|(page, link)| *links.entry([part(page), part(link)]).or_default() += 1);
            links.into_iter().map(|(key, links)| (key, Value::Links(links))).collect()
        }
        Standing::NewLinks { host, subdomains } => {
            let is_watched = |link: &str| {
                let own = host_of(link).unwrap();
                own == host || (*subdomains && own.ends_with(&format!(".{host}")))
            };
            let watched = pairs.into_iter().filter(|(_, link)| is_watched(link));
            watched.map(|(page, link)| ([page, link], Value::There)).collect()
        }
    }
}

/// Names each component by its first URL. The name in the result must be a URL of the component.
fn unnamed(result: &Result) -> Result {
    let mut sets: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (key, value) in result {
        let Value::Component(name) = value else { return result.clone() };
        sets.entry(name).or_default().insert(&key[0]);
    }
    let named = sets.into_iter().flat_map(|(name, urls)| {
        assert!(urls.contains(name), "{name} names a component that it is not in");
        let first = urls.first().copied().unwrap().to_owned();
        urls.into_iter().map(move |url| ([url.to_owned(), String::new()], Value::Component(first.clone())))
    });
    named.collect()
}

/// The output of a run: each part with its rows in order, and the result after each epoch.
#[derive(Default)]
struct Told {
    parts: Vec<(Changeset, Vec<webstrata_analysis::standing::ChangedRow>)>,
    results: BTreeMap<u64, Result>,
}

/// Follows a store to its end, and applies each change to the known result.
fn told(store: &Path, standing: &Standing, start: Start, workers: usize, known: Result) -> Told {
    let options = FollowOptions {
        store: store.into(),
        standing: standing.clone(),
        start,
        until: None,
        once: true,
        whole: true,
        every: Duration::from_millis(1),
        workers,
        memory_max: 1 << 30,
    };
    let (mut told, mut result) = (Told::default(), known);
    follow::<Error>(&options, &Progress::default(), |event| {
        match event {
            Event::Begin(part) => told.parts.push((part, Vec::new())),
            Event::Rows(rows) => told.parts.last_mut().unwrap().1.extend(rows),
            Event::End { rows, .. } => {
                let (part, own) = told.parts.last().unwrap();
                assert_eq!(rows, own.len() as u64);
                if part.since.is_some() {
                    for row in own {
                        assert_ne!(row.before, row.after, "{standing} at {part:?}: {:?}", row.key);
                        let before = match row.after.clone() {
                            Some(after) => result.insert(row.key.clone(), after),
                            None => result.remove(&row.key),
                        };
                        assert_eq!(before, row.before, "{standing} at {part:?}: {:?}", row.key);
                    }
                } else {
                    let whole = own.iter().map(|row| (row.key.clone(), row.after.clone().unwrap()));
                    let whole: Result = whole.collect();
                    if told.parts.len() > 1 {
                        assert_eq!(whole, result, "{standing} at {part:?}");
                    }
                    result = whole;
                }
                told.results.insert(part.id.epoch, result.clone());
            }
        }
        Ok(())
    })
    .unwrap();
    told
}

fn all() -> Vec<Standing> {
    let newlinks = |host: &str, subdomains| Standing::NewLinks { host: host.to_owned(), subdomains };
    vec![
        Standing::Degrees,
        Standing::Top { k: 1 },
        Standing::Top { k: 7 },
        Standing::Top { k: 10_000 },
        Standing::Components,
        Standing::Hosts { unit: Fold::Host },
        Standing::Hosts { unit: Fold::Domain },
        newlinks("a.example", false),
        newlinks("a.example", true),
        newlinks("nowhere.example", false),
    ]
}

#[test]
fn every_epoch_has_what_a_recomputation_says() {
    let (mut lost, mut merged) = (0, 0);
    for seed in 0..4u64 {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        make(&store, seed);
        let last = current(&store);
        // A run skips epochs that a later removal retired, except the first epoch.
        let first = Store::open(&store).unwrap().manifest().provenance.retires_before.unwrap_or(1);
        let mut results = Vec::new();
        for standing in all() {
            let followed = [1].into_iter().chain(first.max(2)..=last);
            let expected: Vec<(u64, Result)> =
                followed.map(|epoch| (epoch, unnamed(&recomputed(&standing, &reader(&store, epoch))))).collect();
            let runs = [1, 2].map(|workers| told(&store, &standing, Start::At(1), workers, Result::new()));
            assert_eq!(runs[0].parts, runs[1].parts, "{standing}: two workers tell something else than one");
            assert!(runs[0].results.keys().eq(expected.iter().map(|(epoch, _)| epoch)));
            for (epoch, expected) in &expected {
                assert_eq!(unnamed(&runs[0].results[epoch]), *expected, "seed {seed}, {standing}, epoch {epoch}");
            }
            // A run that begins later, or goes on, gives the same output.
            let middle = first + seed % (last + 1 - first);
            let later = told(&store, &standing, Start::At(middle), 1, Result::new());
            assert!(later.results.iter().all(|(epoch, result)| runs[0].results[epoch] == *result));
            let known = runs[0].results[&middle].clone();
            let resumed =
                told(&store, &standing, Start::After(Store::open_epoch(&store, middle).unwrap().id()), 2, known);
            let after = runs[0].parts.iter().filter(|(part, _)| part.id.epoch > middle);
            assert!(resumed.parts.iter().eq(after), "{standing}: going on after {middle} is not the same");
            for (part, rows) in &runs[0].parts {
                lost += rows.iter().filter(|row| row.after.is_none()).count();
                merged += usize::from(part.since.is_some() && rows.is_empty());
            }
            let [one, _] = runs;
            results.push((standing, one.results));
        }
        // A run skips epochs that no longer exist. A lease keeps the first epoch for the run that goes on from it.
        let lease = reader(&store, 1);
        gc::collect(&*store, "test", 1).unwrap();
        for (standing, results) in results {
            let jumped =
                told(&store, &standing, Start::After(Store::inspect(&*store, 1).unwrap().id()), 1, results[&1].clone());
            assert_eq!(
                jumped.parts[0].0,
                Changeset { id: Store::open_epoch(&store, last).unwrap().id(), since: Some(1) }
            );
            assert_eq!(jumped.results[&last], results[&last], "seed {seed}, {standing}");
        }
        drop(lease);
    }
    assert!(lost > 50 && merged > 5, "{lost} rows went, {merged} epochs changed nothing");
}
