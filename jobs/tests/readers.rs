//! Readers that ask all the time, while a writer updates a store, merges its rows and removes its old epochs. Every
//! answer is compared with an oracle of the batches in the epoch that the reader has open.
//!
//! `WEBSTRATA_UPDATES` (4) is the number of updates, `WEBSTRATA_QUESTIONS` (2000) the number of questions of each of
//! two readers, and `WEBSTRATA_SEED` (1) selects the crawl. A longer run: `WEBSTRATA_UPDATES=16
//! WEBSTRATA_QUESTIONS=20000 cargo test --release -p webstrata --test readers`.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![expect(clippy::print_stdout, reason = "what chance has come to")]

mod commands;

use commands::succeeds;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use webstrata_layers::check;
use webstrata_layers::{Links, Reader, Store};
use webstrata_tests::crawls::{Crawl, Random, Size};
use webstrata_tests::number;
use webstrata_tests::oracle::Oracle;
use webstrata_tests::stores::compare_url;

const SMALL: Size = Size { pages: 60, captures: 900, links: 12 };
/// The memory of a reader, for the blocks of some partitions. A reader that keeps its epoch for long has less memory,
/// so that it reads the files again and again.
const MEMORY: usize = 64 << 10;
/// The questions of one comparison: captures, links in both directions, in-links by range, lifespans.
const QUESTIONS_AT_ONCE: u64 = 5;
/// The number of epochs that pass while a reader keeps one epoch for long.
const LONG: u64 = 3;

/// The right answers, and the state of the store while it is written.
struct Story {
    /// The oracle at index `n` knows the first `n + 1` batches. Beside each oracle are its URLs.
    oracles: Vec<(Oracle, BTreeSet<String>)>,
    urls: Vec<String>,
    times: Vec<i64>,
    /// The latest epoch, and whether it is the last one.
    epoch: AtomicU64,
    done: AtomicBool,
    /// The number of batches in each epoch, from its writer and from its readers.
    written: Mutex<BTreeMap<u64, u64>>,
    found: Mutex<BTreeMap<u64, u64>>,
}

/// Sets a flag at the end, even if a test fails.
struct AtTheEnd<'a>(&'a AtomicBool);

impl Drop for AtTheEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Writes a crawl in random batches, each in a file, and makes an oracle for each number of batches.
fn story(dir: &Path, seed: u64, revisits: bool) -> Story {
    let crawl = if revisits { Crawl::with_revisits(seed, SMALL) } else { Crawl::random(seed, SMALL) };
    let records: Vec<String> =
        if revisits { crawl.warc() } else { crawl.json_lines().into_iter().map(|line| line + "\n").collect() };
    let mut random = Random(seed);
    let mut batches = vec![BTreeSet::new(); usize::try_from(number("WEBSTRATA_UPDATES", 4) + 1).unwrap()];
    for capture in 0..records.len() {
        let batch = random.below(batches.len() as u64);
        batches[usize::try_from(batch).unwrap()].insert(capture);
    }
    let (mut known, mut oracles) = (BTreeSet::new(), Vec::new());
    for (number, batch) in batches.iter().enumerate() {
        let text: String = batch.iter().map(|&at| records[at].as_str()).collect();
        fs::write(dir.join(format!("batch-{number}")), text).unwrap();
        known.extend(batch);
        let oracle = crawl.oracle_of(&known);
        let urls: BTreeSet<String> = oracle.urls().into_iter().map(str::to_owned).collect();
        oracles.push((oracle, urls));
    }
    let (last, urls) = oracles.last().unwrap();
    let (times, urls) = (last.times().into_iter().collect(), urls.iter().cloned().collect());
    let (written, found) = (Mutex::new(BTreeMap::from([(1, 0)])), Mutex::default());
    Story { oracles, urls, times, epoch: 1.into(), done: false.into(), written, found }
}

/// Runs a command on the store, and returns the lines that it prints.
fn run(dir: &Path, words: &str) -> Vec<Value> {
    succeeds(dir, words).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

impl Story {
    /// Adds batch after batch, and keeps only the current epoch and the epochs that readers have open. Returns the
    /// epochs kept for readers.
    fn write(&self, dir: &Path) -> BTreeSet<u64> {
        let _done = AtTheEnd(&self.done);
        let mut leased = BTreeSet::new();
        for batch in 1..self.oracles.len() {
            let workers = 1 + batch % 2;
            let update = format!("update {{}}/store {{}}/batch-{batch} -w {workers} --partition-urls 40 --format json");
            for made in run(dir, &update) {
                let epoch = made["epoch"].as_u64().unwrap();
                assert_eq!(self.written.lock().unwrap().insert(epoch, batch as u64), None, "epoch {epoch} comes twice");
                self.epoch.store(epoch, SeqCst);
            }
            let collected = &run(dir, "gc {}/store --keep 1 --format json")[0];
            leased.extend(collected["kept_for_readers"].as_array().unwrap().iter().filter_map(Value::as_u64));
        }
        leased
    }

    /// Opens epoch after epoch and asks, until there have been enough questions and the writer is done. Sometimes an
    /// epoch is kept for long. Returns the number of questions.
    fn read(&self, mut store: Store, mut long: bool, seed: u64) -> u64 {
        let (mut random, mut asked) = (Random(seed), 0);
        let (location, questions) = (store.location().clone(), number("WEBSTRATA_QUESTIONS", 2000));
        loop {
            self.read_epoch(store, long, &mut random, &mut asked);
            if self.done.load(SeqCst) && asked >= questions {
                return asked;
            }
            (store, long) = (Store::open(&location).unwrap(), random.once_in(50));
        }
    }

    /// Asks some questions about one epoch.
    fn read_epoch(&self, store: Store, mut long: bool, random: &mut Random, asked: &mut u64) {
        let reader = Reader::new(store, if long { MEMORY / 4 } else { MEMORY });
        let epoch = reader.epoch();
        let batch = reader.store().manifest().rows.iter().map(|row| row.updates).sum::<u64>() - 1;
        let before = self.found.lock().unwrap().insert(epoch, batch);
        assert!(before.is_none_or(|before| before == batch), "epoch {epoch} has {batch} batches, and had {before:?}");
        let (oracle, urls) = &self.oracles[usize::try_from(batch).unwrap()];
        assert_eq!(reader.urls(), urls.len() as u64, "epoch {epoch}");
        let mut left = 1 + random.below(40);
        while left > 0 || long {
            left = left.saturating_sub(1);
            let url = random.pick(&self.urls);
            if urls.contains(url) {
                let compared = compare_url(&reader, oracle, url, &[random.when(&self.times)]);
                compared.unwrap_or_else(|difference| panic!("epoch {epoch}, batch {batch}: {difference}"));
                *asked += QUESTIONS_AT_ONCE;
            } else {
                assert_eq!(reader.uid(url).unwrap(), None, "epoch {epoch} has {url}");
                *asked += 1;
            }
            if long && (self.epoch.load(SeqCst) >= epoch + LONG || self.done.load(SeqCst)) {
                // From now on, the epoch exists only for this reader.
                (long, left) = (false, left.max(20));
            }
        }
    }
}

#[test]
fn readers_see_one_epoch_each_and_no_wrong_answer() {
    let seed = number("WEBSTRATA_SEED", 1);
    for revisits in [false, true] {
        let temporary = tempfile::tempdir().unwrap();
        let dir = temporary.path();
        let story = story(dir, seed, revisits);
        run(dir, "build --out {}/store {}/batch-0 --partition-urls 40 --format json");
        let (leased, asked) = thread::scope(|scope| {
            let start = |long| {
                let (story, first) = (&story, Store::open(dir.join("store")).unwrap());
                scope.spawn(move || story.read(first, long, 2 * seed + u64::from(long)))
            };
            let readers = [true, false].map(start);
            let leased = story.write(dir);
            (leased, readers.map(|reader| reader.join().unwrap()))
        });
        let (written, found) = (story.written.lock().unwrap(), story.found.lock().unwrap());
        println!("{asked:?} questions in epochs {:?} of {}; kept for readers: {leased:?}", found.keys(), written.len());
        for (epoch, batch) in found.iter() {
            assert_eq!(written.get(epoch), Some(batch), "epoch {epoch}");
        }
        assert!(leased.contains(&1) && found.len() > 1, "{leased:?} {found:?}");
        // Nobody reads any more.
        let collected = &run(dir, "gc {}/store --keep 1 --format json")[0];
        assert_eq!(collected["kept_for_readers"].as_array().map(Vec::len), Some(0));
        assert_eq!(fs::read_dir(dir.join("store/epochs")).unwrap().count(), 1);
        assert!(check(dir.join("store")).unwrap().is_sound());
    }
}
