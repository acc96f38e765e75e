//! Samples of links: a few of many, drawn where the links are.
//!
//! The sample of a list of UIDs has the `count` UIDs with the least hashes, in order of UIDs. A seed selects the hash,
//! so the same seed gives the same sample ([`Sampling::seed`] selects the seed where none is given).
//!
//! *Consistent*: the hash is of the link alone, so lists that share links have samples that share links. Of the `count`
//! least of two samples together, the share that is in both samples estimates the share that is in both lists
//! (Jaccard), without bias. *Random*: the hash is of the link and the page, so samples of different pages are
//! independent.
//!
//! Cost: linear in the list, no memory. Source: Najork 2009, section 3 (the call); Broder, Charikar, Frieze &
//! Mitzenmacher 2000 (min-wise permutations); the hash is SplitMix64 (Steele, Lea & Flood 2014), a permutation of 64
//! bits.

use crate::record::uid::Uid;
use std::hash::{BuildHasher, Hasher, RandomState};

/// How links are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sampling {
    /// Alike from lists that are alike.
    #[default]
    Consistent,
    /// Anew for each page.
    Random,
}

impl Sampling {
    /// The seed of a sample: the one that is given; else 0, so that consistent samples of different questions are
    /// alike, or at random another one each time.
    pub fn seed(self, chosen: Option<u64>) -> u64 {
        chosen.unwrap_or_else(|| match self {
            Sampling::Consistent => 0,
            // Each state has keys of its own, which come from the system's random numbers.
            Sampling::Random => RandomState::new().build_hasher().finish(),
        })
    }
}

/// What sample is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Links, at most.
    pub count: usize,
    /// How they are drawn.
    pub sampling: Sampling,
    /// Another seed, another sample.
    pub seed: u64,
}

impl Sample {
    /// Reduces the rising links of a page to the sample of them, rising.
    pub fn draw(&self, uid: Uid, links: &mut Vec<Uid>) {
        if self.count >= links.len() {
            return;
        }
        let salt = mix(match self.sampling {
            Sampling::Consistent => self.seed,
            Sampling::Random => mix(self.seed) ^ uid.0,
        });
        if self.count > 0 {
            links.select_nth_unstable_by_key(self.count - 1, |&link| mix(link.0 ^ salt));
        }
        links.truncate(self.count);
        links.sort_unstable();
    }
}

/// A permutation of 64 bits that looks like none.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn draw(sample: Sample, uid: Uid, links: &BTreeSet<Uid>) -> Vec<Uid> {
        let mut links: Vec<Uid> = links.iter().copied().collect();
        sample.draw(uid, &mut links);
        links
    }

    proptest! {
        #[test]
        fn a_sample_is_the_links_of_least_hash(
            links in proptest::collection::btree_set(any::<u64>().prop_map(Uid), 0..60),
            count in 0usize..70,
            seed: u64,
            uid in any::<u64>().prop_map(Uid),
        ) {
            for sampling in [Sampling::Consistent, Sampling::Random] {
                let sample = draw(Sample { count, sampling, seed }, uid, &links);
                prop_assert_eq!(sample.len(), count.min(links.len()));
                prop_assert!(sample.is_sorted_by(|a, b| a < b) && sample.iter().all(|link| links.contains(link)));
                // Without what is left out, nothing else is drawn: the sample depends on an order of all links.
                let kept: BTreeSet<Uid> = sample.iter().copied().collect();
                let more = Sample { count: count + 1, sampling, seed };
                prop_assert!(draw(more, uid, &links).iter().filter(|link| !kept.contains(link)).count() <= 1);
                let one = links.iter().find(|link| !kept.contains(link)).copied();
                let fewer: BTreeSet<Uid> = links.iter().copied().filter(|link| Some(*link) != one).collect();
                prop_assert_eq!(&draw(Sample { count, sampling, seed }, uid, &fewer), &sample);
            }
        }
    }

    /// Of the least of two samples together, the share in both.
    fn likeness(sample: Sample, pages: [(Uid, &BTreeSet<Uid>); 2]) -> f64 {
        let [one, other] = pages.map(|(uid, links)| draw(sample, uid, links));
        let all: BTreeSet<Uid> = one.iter().chain(&other).copied().collect();
        let least = draw(sample, pages[0].0, &all);
        let both = least.iter().filter(|link| one.contains(link) && other.contains(link)).count();
        both as f64 / least.len() as f64
    }

    #[test]
    fn consistent_samples_are_as_alike_as_the_lists() {
        // Lists of neighbours, as UIDs of a site are; 0, 20, 50, 80 % of all links are in both.
        for (shift, expected) in [(1000, 0.0), (667, 0.2), (333, 0.5), (111, 0.8)] {
            let thousand = |first| Uid::each(first..first + 1000).collect();
            let (one, other) = (thousand(Uid(5000)), thousand(Uid(5000 + shift)));
            let mut sum = [0.0; 2];
            for seed in 0..200 {
                for (sum, sampling) in sum.iter_mut().zip([Sampling::Consistent, Sampling::Random]) {
                    *sum += likeness(Sample { count: 100, sampling, seed }, [(Uid(1), &one), (Uid(2), &other)]) / 200.0;
                }
            }
            // One sample's share is off by 5 % (one sigma), the mean of 200 by 0.4 %.
            assert!((sum[0] - expected).abs() < 0.02, "{shift}: {} for {expected}", sum[0]);
            assert!(shift == 1000 || sum[1] < expected / 2.0, "{shift}: {} at random", sum[1]);
        }
    }

    #[test]
    fn only_random_samples_have_another_seed_each_time() {
        for sampling in [Sampling::Consistent, Sampling::Random] {
            assert_eq!(sampling.seed(Some(7)), 7);
            let seeds: BTreeSet<u64> = (0..100).map(|_| sampling.seed(None)).collect();
            assert_eq!(seeds.len(), if sampling == Sampling::Random { 100 } else { 1 });
        }
    }

    #[test]
    fn every_link_is_drawn_as_often_as_any_other() {
        let links: BTreeSet<Uid> = Uid::each(Uid::below(50)).collect();
        for sampling in [Sampling::Consistent, Sampling::Random] {
            let mut drawn = [0u32; 50];
            for seed in 0..5000 {
                let sample = draw(Sample { count: 10, sampling, seed }, Uid(7), &links);
                sample.into_iter().for_each(|link| drawn[usize::try_from(link.0).unwrap()] += 1);
            }
            // 1,000 each, 28 a sigma.
            assert!(drawn.iter().all(|times| (860..1140).contains(times)), "{drawn:?}");
        }
    }
}
