//! Where one partition of the key order ends and the next begins.
//!
//! The super-sample of Avcular & Suel (2011, section 3) is taken by hash: the [`SAMPLE_MAX`] URLs with the smallest
//! fingerprints. It depends on the set of URLs alone, not on workers or the order of files, and its largest
//! fingerprint tells how many distinct URLs there are, within about 1 / sqrt(SAMPLE_MAX). Boundaries are a
//! systematic sample of the sorted super-sample.

use crate::Error;
use crate::job::{Job, Stopped};
use crate::runs::{Merge, RunWriter, Runs};
use crate::scratch::Scratch;
use crate::shuffle::shuffle;
use crate::wire::{self, for_each};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use timely::worker::Worker;

/// URLs of a super-sample.
const SAMPLE_MAX: usize = 1 << 15;

/// The URLs with the smallest fingerprints among those offered.
#[derive(Default)]
pub(crate) struct Sample {
    keys: BTreeMap<u128, Box<[u8]>>,
}

impl Sample {
    pub(crate) fn offer(&mut self, fingerprint: u128, key: &[u8]) {
        let full = self.keys.len() >= SAMPLE_MAX;
        if full && self.keys.last_key_value().is_some_and(|(&largest, _)| fingerprint > largest) {
            return;
        }
        self.keys.entry(fingerprint).or_insert_with(|| key.into());
        if self.keys.len() > SAMPLE_MAX {
            self.keys.pop_last();
        }
    }

    /// The sample as a file: key = fingerprint, payload = URL key.
    pub(crate) fn into_runs(self, scratch: &Scratch) -> Result<Runs, Error> {
        let mut run = RunWriter::create("sample", scratch)?;
        for (fingerprint, key) in &self.keys {
            run.push(&fingerprint.to_be_bytes(), key)?;
        }
        Ok(Runs(vec![run.finish()?]))
    }

    /// How many distinct URLs were offered, about; exactly where they all fit into the sample.
    fn distinct(&self) -> u64 {
        match self.keys.last_key_value() {
            Some((&largest, _)) if self.keys.len() >= SAMPLE_MAX => {
                let part = (largest >> 64) as f64 / 2f64.powi(64);
                #[expect(clippy::cast_possible_truncation, reason = "a rounded estimate")]
                let distinct = ((SAMPLE_MAX - 1) as f64 / part.max(f64::MIN_POSITIVE)) as u64;
                distinct
            }
            _ => self.keys.len() as u64,
        }
    }

    /// The first keys of the partitions after the first.
    fn boundaries(self, partition_urls: u64) -> Boundaries {
        let wanted = self.distinct().div_ceil(partition_urls.max(1));
        let partitions = usize::try_from(wanted).unwrap_or(usize::MAX).clamp(1, self.keys.len().max(1));
        let mut keys: Vec<_> = self.keys.into_values().collect();
        keys.sort_unstable();
        let mut firsts: Vec<_> = (1..partitions).map(|part| keys[part * keys.len() / partitions].clone()).collect();
        firsts.dedup();
        Boundaries { firsts }
    }
}

/// The ranges of the key order, the same on every worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Boundaries {
    firsts: Vec<Box<[u8]>>,
}

impl Boundaries {
    /// How many partitions there are.
    pub(crate) fn partitions(&self) -> usize {
        self.firsts.len() + 1
    }

    /// The partition of a key.
    pub(crate) fn of(&self, key: &[u8]) -> usize {
        self.firsts.partition_point(|first| **first <= *key)
    }
}

/// Joins the samples of all workers into the boundaries of partitions of about `partition_urls` URLs.
pub(crate) fn boundaries(
    worker: &mut Worker,
    job: &Job,
    sample: &Runs,
    partition_urls: u64,
) -> Result<Boundaries, Stopped> {
    let mut sample = job.check(Merge::open(sample, job.scratch()))?;
    let joined = Rc::new(RefCell::new(Sample::default()));
    let heard = Rc::clone(&joined);
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
                heard.borrow_mut().offer(fingerprint, key);
            });
            Ok(())
        },
    )?;
    Ok(joined.take().boundaries(partition_urls))
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
        let up = sample_of(0..100_000).boundaries(7_000);
        let down = sample_of((0..100_000).rev().chain(0..50_000)).boundaries(7_000);
        assert_eq!(up, down);
    }

    #[test]
    fn partitions_have_about_the_size_asked_for() {
        let boundaries = sample_of(0..200_000).boundaries(10_000);
        assert!((19..=21).contains(&boundaries.partitions()), "{}", boundaries.partitions());
        let mut sizes = vec![0; boundaries.partitions()];
        (0..200_000).for_each(|number| sizes[boundaries.of(format!("{number:09}").as_bytes())] += 1);
        assert!(sizes.iter().all(|&size| (7_000..13_000).contains(&size)), "{sizes:?}");
    }

    #[test]
    fn few_urls_are_one_partition_and_none_is_one_too() {
        assert_eq!(sample_of(0..5).boundaries(1_000).partitions(), 1);
        assert_eq!(Sample::default().boundaries(1_000).partitions(), 1);
        assert_eq!(sample_of(0..5).boundaries(1).partitions(), 5);
    }
}
