//! The boundaries between the partitions of the key order.
//!
//! The super-sample of Avcular & Suel (2011, section 3) is taken by hash: the [`SAMPLE_MAX`] URLs with the smallest
//! fingerprints. The sample depends only on the set of URLs, not on workers or the order of files. Its largest
//! fingerprint gives the number of distinct URLs, within about 1 / sqrt(SAMPLE_MAX). Boundaries are a systematic sample
//! of the sorted super-sample, weighted by work: a URL counts for itself, for the pages that link to it and for the
//! URLs that it links to. The owners of the fingerprints know this work. Their requests are sorted by fingerprint, so
//! the requests for sampled URLs come first. A large host may be split, a URL may not.
//!
//! By default, a row has [`PARTITIONS`] partitions. The row has fewer partitions if these would be smaller than the
//! lower bound of [`PARTITION_URLS`], and more if these would be larger than the upper bound. The servers of a small
//! cluster therefore share even a row that would fit into one partition.
//!
//! Memory: [`SAMPLE_MAX`] keys of [`KEY_BYTES_MAX`] bytes. A URL with a longer key counts and begins no partition.

use crate::Error;
use crate::stages::records::Request;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;
use std::rc::Rc;
use timely::worker::Worker;
use webstrata_engine::{
    Job, Merge, RunWriter, Runs, Scratch, Stopped, shuffle,
    wire::{self, for_each},
};
use webstrata_layers::Uid;

/// The number of partitions of a row, unless they would be too small.
pub const PARTITIONS: u64 = 8;
/// The approximate number of URLs in a partition by default. A smaller partition would cost more in files and
/// dictionaries than it is worth, and a larger partition is much to send when a server is gone.
pub const PARTITION_URLS: RangeInclusive<u64> = 1 << 13..=1 << 19;

/// The number of URLs in a super-sample.
const SAMPLE_MAX: usize = 1 << 15;
/// The maximum length of a key that may begin a partition, in bytes.
const KEY_BYTES_MAX: usize = 512;

/// The URLs with the smallest fingerprints among those offered.
#[derive(Default)]
pub(crate) struct Sample {
    /// The keys by fingerprint; empty if the key is too long.
    keys: BTreeMap<u128, Box<[u8]>>,
}

impl Sample {
    /// Whether a fingerprint may be in the sample.
    pub(crate) fn may_have(&self, fingerprint: u128) -> bool {
        let full = self.keys.len() >= SAMPLE_MAX;
        !full || self.keys.last_key_value().is_some_and(|(&largest, _)| fingerprint <= largest)
    }

    /// Whether a fingerprint is in the sample.
    pub(crate) fn has(&self, fingerprint: u128) -> bool {
        self.keys.contains_key(&fingerprint)
    }

    pub(crate) fn offer(&mut self, fingerprint: u128, key: &[u8]) {
        if !self.may_have(fingerprint) {
            return;
        }
        let key = if key.len() > KEY_BYTES_MAX { &[] } else { key };
        self.keys.entry(fingerprint).or_insert_with(|| key.into());
        if self.keys.len() > SAMPLE_MAX {
            self.keys.pop_last();
        }
    }

    /// Writes the sample to a file: key = fingerprint, payload = URL key.
    pub(crate) fn into_runs(self, scratch: &Scratch) -> Result<Runs, Error> {
        let mut run = RunWriter::create("sample", scratch)?;
        for (fingerprint, key) in &self.keys {
            run.push(&fingerprint.to_be_bytes(), key)?;
        }
        Ok(Runs(vec![run.finish()?]))
    }

    /// Returns about how many distinct URLs were offered; the exact number if all of them fit into the sample.
    fn distinct(&self) -> u64 {
        match self.keys.last_key_value() {
            Some((&largest, _)) if self.keys.len() >= SAMPLE_MAX => {
                let sampled_share = (largest >> 64) as f64 / 2f64.powi(64);
                #[expect(clippy::cast_possible_truncation, reason = "a rounded estimate")]
                let distinct = ((SAMPLE_MAX - 1) as f64 / sampled_share.max(f64::MIN_POSITIVE)) as u64;
                distinct
            }
            _ => self.keys.len() as u64,
        }
    }

    /// Returns the first keys of all partitions except the first. `weights` are the weights of the sampled URLs.
    pub(crate) fn boundaries(self, partition_urls: Option<u64>, weights: &Weights) -> Boundaries {
        let partitions = partitions_for(self.distinct(), partition_urls);
        let partitions = partitions.clamp(1, self.keys.len().max(1) as u64);
        let weight = |fingerprint| 1 + weights.get(fingerprint).copied().unwrap_or(0);
        let kept = self.keys.iter().filter(|(_, key)| !key.is_empty());
        let mut keys: Vec<_> = kept.map(|(fingerprint, key)| (key, weight(fingerprint))).collect();
        keys.sort_unstable();
        let all: u64 = keys.iter().map(|(_, weight)| weight).sum();
        let (mut firsts, mut before) = (Vec::new(), 0);
        for (key, weight) in keys {
            // The partition in which the middle of the URL's weight falls.
            let position = u128::from(before + weight / 2) * u128::from(partitions) / u128::from(all);
            if position > firsts.len() as u128 {
                firsts.push(key.clone());
            }
            before += weight;
        }
        Boundaries { firsts }
    }
}

/// Returns the number of partitions for `urls` URLs: of about `partition_urls` each, or by default as the head of this
/// file says.
fn partitions_for(urls: u64, partition_urls: Option<u64>) -> u64 {
    let spread = (urls / PARTITION_URLS.start()).min(PARTITIONS);
    partition_urls.map_or_else(
        || spread.max(urls.div_ceil(*PARTITION_URLS.end())),
        |partition_urls| urls.div_ceil(partition_urls.max(1)),
    )
}

/// The ranges of the key order, the same on every worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Boundaries {
    firsts: Vec<Box<[u8]>>,
}

impl Boundaries {
    /// Returns the boundaries of partitions that begin with these keys; the first partition has no key in the list.
    pub(crate) fn of_keys(firsts: Vec<Box<[u8]>>) -> Self {
        Self { firsts }
    }

    /// Returns the first keys of all partitions except the first.
    pub(crate) fn firsts(&self) -> impl Iterator<Item = &[u8]> {
        self.firsts.iter().map(|first| &**first)
    }

    /// Returns the same keys as a list.
    pub(crate) fn keys(self) -> Vec<Box<[u8]>> {
        self.firsts
    }

    /// Returns the number of partitions.
    pub(crate) fn partitions(&self) -> usize {
        self.firsts.len() + 1
    }

    /// Returns the partition of a key.
    pub(crate) fn of(&self, key: &[u8]) -> usize {
        self.firsts.partition_point(|first| **first <= *key)
    }
}

/// The work of the sampled URLs, by fingerprint.
pub(crate) type Weights = HashMap<u128, u64>;

/// Joins the samples of all workers into the boundaries of partitions, which have about `partition_urls` URLs on
/// average and as nearly the same work as possible. `requests` are the requests of this worker. Also returns the
/// weights of the sample.
pub(crate) fn boundaries(
    worker: &mut Worker,
    job: &Job,
    sample: &Runs,
    requests: &Runs,
    partition_urls: Option<u64>,
) -> Result<(Boundaries, Weights), Stopped> {
    let sample = join_sample(worker, job, sample)?;
    let my_weights = job.check(weights(job, &sample, requests))?;
    let weights = share_weights(worker, job, my_weights)?;
    Ok((sample.boundaries(partition_urls, &weights), weights))
}

/// Joins the samples of all workers.
pub(crate) fn join_sample(worker: &mut Worker, job: &Job, sample: &Runs) -> Result<Sample, Stopped> {
    let mut sample = job.check(Merge::open(sample, job.scratch()))?;
    let joined = Rc::new(RefCell::new(Sample::default()));
    let received = Rc::clone(&joined);
    shuffle(
        worker,
        job,
        "sample",
        move |outbox| {
            let Some((fingerprint, key)) = sample.next()? else { return Ok(false) };
            outbox.send_to_all(fingerprint, key);
            Ok(true)
        },
        move |block| {
            for_each(&block, |mut fingerprint, key| {
                let fingerprint = u128::from_be_bytes(wire::take_array(&mut fingerprint));
                received.borrow_mut().offer(fingerprint, key);
            });
            Ok(())
        },
    )?;
    Ok(joined.take())
}

/// Sends the weights that this worker knows to every worker, and returns the weights of all workers.
pub(crate) fn share_weights(worker: &mut Worker, job: &Job, my_weights: Vec<(u128, u64)>) -> Result<Weights, Stopped> {
    let mut my_weights = my_weights.into_iter();
    let all = Rc::new(RefCell::new(Weights::new()));
    let received = Rc::clone(&all);
    shuffle(
        worker,
        job,
        "sample",
        move |outbox| {
            let Some((fingerprint, weight)) = my_weights.next() else { return Ok(false) };
            outbox.send_to_all(&fingerprint.to_be_bytes(), &weight.to_be_bytes());
            Ok(true)
        },
        move |block| {
            for_each(&block, |mut fingerprint, mut weight| {
                let fingerprint = u128::from_be_bytes(wire::take_array(&mut fingerprint));
                let weight = u64::from_be_bytes(wire::take_array(&mut weight));
                *received.borrow_mut().entry(fingerprint).or_default() += weight;
            });
            Ok(())
        },
    )?;
    Ok(all.take())
}

/// Cuts the UIDs below `end` into `partitions` intervals with about the same work, given some UIDs with their work. A
/// row that also has records of URLs of older rows uses these bounds for its records.
pub(crate) fn record_bounds(mut sampled: Vec<(Uid, u64)>, partitions: usize, end: Uid) -> Vec<Uid> {
    sampled.sort_unstable();
    let all: u64 = sampled.iter().map(|(_, weight)| weight).sum();
    let (mut bounds, mut before) = (vec![Uid(0)], 0);
    for (uid, weight) in sampled {
        let position = u128::from(before + weight / 2) * partitions as u128 / u128::from(all.max(1));
        if position >= bounds.len() as u128 && bounds.len() < partitions {
            bounds.push(uid);
        }
        before += weight;
    }
    bounds.resize(partitions, end);
    bounds.push(end);
    bounds
}

/// Returns the number of in-links and out-links of the sampled URLs that this worker owns by fingerprint.
fn weights(job: &Job, sample: &Sample, requests: &Runs) -> Result<Vec<(u128, u64)>, Error> {
    let mut weights: Vec<(u128, u64)> = Vec::new();
    let Some((&largest, _)) = sample.keys.last_key_value() else { return Ok(weights) };
    let mut requests = Merge::open(requests, job.scratch())?;
    let mut last = None;
    while let Some((mut fingerprint, payload)) = requests.next()? {
        let fingerprint = u128::from_be_bytes(wire::take_array(&mut fingerprint));
        if fingerprint > largest {
            break;
        }
        if last != Some(fingerprint) {
            last = Some(fingerprint);
            job.go_on()?;
            if sample.keys.get(&fingerprint).is_some_and(|key| !key.is_empty()) {
                weights.push((fingerprint, 0));
            }
        }
        if let Some((_, weight)) = weights.last_mut().filter(|(sampled, _)| *sampled == fingerprint) {
            *weight += Request::read(payload).weight();
        }
    }
    Ok(weights)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scattered(number: u64) -> u128 {
        u128::from(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)) << 64 | u128::from(number)
    }

    fn sample_of(numbers: impl Iterator<Item = u64>) -> Sample {
        let mut sample = Sample::default();
        numbers.for_each(|number| sample.offer(scattered(number), format!("{number:09}").as_bytes()));
        sample
    }

    #[test]
    fn boundaries_do_not_depend_on_order_and_repetition() {
        let up = sample_of(0..100_000).boundaries(Some(7_000), &HashMap::new());
        let down = sample_of((0..100_000).rev().chain(0..50_000)).boundaries(Some(7_000), &HashMap::new());
        assert_eq!(up, down);
    }

    #[test]
    fn partitions_have_about_the_size_asked_for() {
        let boundaries = sample_of(0..200_000).boundaries(Some(10_000), &HashMap::new());
        assert!((19..=21).contains(&boundaries.partitions()), "{}", boundaries.partitions());
        let mut sizes = vec![0; boundaries.partitions()];
        (0..200_000).for_each(|number| sizes[boundaries.of(format!("{number:09}").as_bytes())] += 1);
        assert!(sizes.iter().all(|&size| (7_000..13_000).contains(&size)), "{sizes:?}");
    }

    #[test]
    fn few_urls_are_one_partition_and_none_is_one_too() {
        assert_eq!(sample_of(0..5).boundaries(Some(1_000), &HashMap::new()).partitions(), 1);
        assert_eq!(Sample::default().boundaries(Some(1_000), &HashMap::new()).partitions(), 1);
        assert_eq!(sample_of(0..5).boundaries(Some(1), &HashMap::new()).partitions(), 5);
        for (urls, partitions) in [(0, 0), (9000, 1), (17_000, 2), (1 << 17, 8), (1 << 22, 8), (1 << 24, 32)] {
            assert_eq!(partitions_for(urls, None), partitions, "{urls}");
        }
    }

    #[test]
    fn long_keys_count_and_begin_no_partition() {
        let mut sample = Sample::default();
        let key = |number: u64| format!("{number:09}{}", "x".repeat(if number.is_multiple_of(3) { 0 } else { 60_000 }));
        (0..600).for_each(|number| sample.offer(scattered(number), key(number).as_bytes()));
        assert!(
            sample.keys.values().all(|key| key.len() <= KEY_BYTES_MAX)
                && sample.keys.values().filter(|key| !key.is_empty()).count() == 200
        );
        let boundaries = sample.boundaries(Some(60), &HashMap::new());
        assert_eq!(boundaries.partitions(), 10);
        assert!(boundaries.firsts().all(|first| first.len() == 9));
    }

    #[test]
    fn heavy_urls_get_smaller_partitions() {
        let sample = sample_of(0..10_000);
        // The first tenth has nine tenths of the work.
        let weights = (0..1_000).map(|number| (scattered(number), 80)).collect();
        let boundaries = sample.boundaries(Some(1_000), &weights);
        assert_eq!(boundaries.partitions(), 10);
        let mut work = vec![0; 10];
        (0..10_000).for_each(|number| {
            work[boundaries.of(format!("{number:09}").as_bytes())] += if number < 1_000 { 81 } else { 1 };
        });
        assert!(work.iter().all(|work| (8_500..9_500).contains(work)), "{work:?}");
    }

    #[test]
    fn records_are_cut_by_their_work() {
        // UIDs from 1000 on have a tenth of the work.
        let sampled = (0..2000).rev().map(|uid| (Uid(uid), if uid < 1000 { 9 } else { 1 })).collect();
        let bounds = record_bounds(sampled, 10, Uid(5000));
        assert_eq!(bounds.len(), 11);
        assert!(bounds.is_sorted() && bounds[0] == Uid(0) && bounds[10] == Uid(5000));
        assert!(bounds[1..9].iter().zip(1..).all(|(&bound, at)| bound.0.abs_diff(at * 111) < 5), "{bounds:?}");
        assert_eq!(record_bounds(vec![], 3, Uid(7)), [0, 7, 7, 7].map(Uid));
        assert_eq!(record_bounds(vec![(Uid(5), 1)], 1, Uid(7)), [0, 7].map(Uid));
    }

    #[test]
    fn one_url_with_most_of_the_work_is_a_partition_at_most() {
        let boundaries = sample_of(0..100).boundaries(Some(10), &HashMap::from([(scattered(50), 1_000_000)]));
        assert!((2..=10).contains(&boundaries.partitions()), "{}", boundaries.partitions());
    }
}
