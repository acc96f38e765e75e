//! The content of a store, epoch by epoch: a random crawl in batches, an oracle for each number of batches, and for
//! each epoch its URLs by UID, as the layers have them.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use crate::crawls::{Crawl, Random, Size};
use crate::oracle::{Oracle, Time};
use crate::stores::options;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use webstrata_engine::Progress;
use webstrata_layers::{Links, Reader, Store, Uid};
use webstrata_pipeline::build;

/// A crawl in batches, in its own directory.
pub struct Story {
    dir: TempDir,
    /// The oracle at index `n` knows the first `n + 1` batches.
    oracles: Vec<Oracle>,
    /// All URLs of the whole crawl.
    pub urls: Vec<String>,
    /// The times of all captures.
    pub times: Vec<Time>,
    partition_urls: u64,
    epochs: Mutex<HashMap<u64, Arc<Known>>>,
}

/// The content of an epoch.
pub struct Known {
    /// The number of the epoch.
    pub epoch: u64,
    batch: usize,
    /// The URLs, by UID.
    pub urls: Vec<String>,
    /// The UIDs, by URL.
    pub uids: HashMap<String, Uid>,
}

impl Story {
    /// Writes the batches, and builds a store from the first batch.
    ///
    /// # Panics
    /// If a batch cannot be written, or the store cannot be built.
    pub fn new(seed: u64, size: Size, batches: u64, partition_urls: u64) -> Story {
        let dir = tempfile::tempdir().unwrap();
        let crawl = Crawl::with_revisits(seed, size);
        let records = crawl.warc();
        let mut random = Random(seed);
        let mut parts = vec![BTreeSet::new(); usize::try_from(batches).unwrap()];
        for capture in 0..records.len() {
            let batch = random.below(batches);
            parts[usize::try_from(batch).unwrap()].insert(capture);
        }
        let (mut known, mut oracles) = (BTreeSet::new(), Vec::new());
        for (number, batch) in parts.iter().enumerate() {
            let text: String = batch.iter().map(|&at| records[at].as_str()).collect();
            std::fs::write(dir.path().join(format!("batch-{number}")), text).unwrap();
            known.extend(batch);
            oracles.push(crawl.oracle_of(&known));
        }
        let last: &Oracle = oracles.last().unwrap();
        let urls = last.urls().into_iter().map(str::to_owned).collect();
        let times = last.times().into_iter().collect();
        let story = Story { dir, oracles, urls, times, partition_urls, epochs: Mutex::default() };
        story.build(0);
        story
    }

    /// The directory of the story. The store is `store` in this directory.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The path of the store.
    pub fn store(&self) -> PathBuf {
        self.dir().join("store")
    }

    /// Adds a batch to the store, in this process.
    ///
    /// # Panics
    /// If the build fails.
    pub fn build(&self, batch: u64) {
        let mut options = options(&self.store(), vec![self.dir().join(format!("batch-{batch}"))]);
        options.update = batch > 0;
        options.partition_urls = Some(self.partition_urls);
        build(&options, &Progress::default()).unwrap();
    }

    /// The content of an epoch. The first call for an epoch is slow.
    ///
    /// # Panics
    /// If the store does not have the epoch, or the epoch lacks URLs of its batches.
    pub fn known(&self, epoch: u64) -> Arc<Known> {
        let mut epochs = self.epochs.lock().unwrap();
        if let Some(known) = epochs.get(&epoch) {
            return known.clone();
        }
        let reader = Reader::new(Store::open_epoch(self.store(), epoch).unwrap(), 16 << 20);
        let updates: u64 = reader.store().manifest().rows.iter().map(|row| row.updates).sum();
        let every = Uid::each(Uid::below(reader.urls()));
        let urls: Vec<String> = every.clone().map(|uid| reader.url(uid).unwrap()).collect();
        let uids: HashMap<String, Uid> = urls.iter().cloned().zip(every).collect();
        let known = Arc::new(Known { epoch, batch: usize::try_from(updates - 1).unwrap(), urls, uids });
        assert!(
            self.oracle(&known).urls().iter().all(|url| known.uids.contains_key(*url)),
            "epoch {epoch} lacks URLs of its batches"
        );
        epochs.insert(epoch, known.clone());
        known
    }

    /// The oracle of an epoch.
    pub fn oracle(&self, known: &Known) -> &Oracle {
        &self.oracles[known.batch]
    }
}
