//! Samples of links: some links of a longer list, drawn where the links are.
//!
//! The sample of a list of UIDs has the `count` UIDs with the least hashes, in order of UIDs. A seed selects the hash,
//! so the same seed gives the same sample. [`Sampling::seed`] selects a seed if the caller gives none.
//!
//! *Consistent*: the hash depends on the link alone, so lists that share links have samples that share links. Two
//! samples estimate how similar their lists are (Jaccard), without bias: take the `count` links with the least hashes
//! of both samples together. The share of these links that both samples have estimates the share of links that both
//! lists have. *Random*: the hash depends on the link and the page, so samples of different pages are independent.
//!
//! Cost: linear in the list, no memory. Source: Najork 2009, section 3 (the call); Broder, Charikar, Frieze &
//! Mitzenmacher 2000 (min-wise permutations). The hash is SplitMix64 (Steele, Lea & Flood 2014), a permutation of 64
//! bits.

use crate::record::uid::Uid;
use std::hash::{BuildHasher, Hasher, RandomState};

/// How links are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sampling {
    /// Lists that are alike give samples that are alike.
    #[default]
    Consistent,
    /// Each page gives an independent sample.
    Random,
}

impl Sampling {
    /// The seed of a sample: `chosen` if given. Otherwise 0 for consistent samples, so that samples of different
    /// questions are alike, and a random seed for random samples.
    pub fn seed(self, chosen: Option<u64>) -> u64 {
        chosen.unwrap_or_else(|| match self {
            Sampling::Consistent => 0,
            // Each `RandomState` has different keys, which come from the system's random numbers.
            Sampling::Random => RandomState::new().build_hasher().finish(),
        })
    }
}

/// The size of a sample, and how its links are drawn.
///
/// ```
/// use webstrata_layers::{Sample, Sampling, Uid};
///
/// let sample = Sample { count: 3, sampling: Sampling::Consistent, seed: 0 };
/// let (mut one, mut other): (Vec<Uid>, Vec<Uid>) = ((0..100).map(Uid).collect(), (0..100).map(Uid).collect());
/// sample.draw(Uid(7), &mut one);
/// sample.draw(Uid(8), &mut other);
/// // Equal lists give equal samples, whatever page they are of.
/// assert_eq!((one.len(), &one), (3, &other));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The number of links, at most.
    pub count: usize,
    /// How the links are drawn.
    pub sampling: Sampling,
    /// The seed: another seed gives another sample.
    pub seed: u64,
}

impl Sample {
    /// Reduces the rising links of a page to a sample of these links, rising.
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

/// A permutation of 64 bits that looks random.
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
                // The sample depends on an order of all links, so removing a link that was not drawn changes nothing.
                let kept: BTreeSet<Uid> = sample.iter().copied().collect();
                let more = Sample { count: count + 1, sampling, seed };
                prop_assert!(draw(more, uid, &links).iter().filter(|link| !kept.contains(link)).count() <= 1);
                let one = links.iter().find(|link| !kept.contains(link)).copied();
                let fewer: BTreeSet<Uid> = links.iter().copied().filter(|link| Some(*link) != one).collect();
                prop_assert_eq!(&draw(Sample { count, sampling, seed }, uid, &fewer), &sample);
            }
        }
    }

    /// The estimated similarity of two pages: of the least links of both samples together, the share that both samples
    /// have.
    fn likeness(sample: Sample, pages: [(Uid, &BTreeSet<Uid>); 2]) -> f64 {
        let [one, other] = pages.map(|(uid, links)| draw(sample, uid, links));
        let all: BTreeSet<Uid> = one.iter().chain(&other).copied().collect();
        let least = draw(sample, pages[0].0, &all);
        let both = least.iter().filter(|link| one.contains(link) && other.contains(link)).count();
        both as f64 / least.len() as f64
    }

    #[test]
    fn consistent_samples_are_as_alike_as_the_lists() {
        // The lists are runs of UIDs, like the URLs of a site. They share 0, 20, 50 or 80 % of all links.
        for (shift, expected) in [(1000, 0.0), (667, 0.2), (333, 0.5), (111, 0.8)] {
            let thousand = |first| Uid::each(first..first + 1000).collect();
            let (one, other) = (thousand(Uid(5000)), thousand(Uid(5000 + shift)));
            let mut sum = [0.0; 2];
            for seed in 0..200 {
                for (sum, sampling) in sum.iter_mut().zip([Sampling::Consistent, Sampling::Random]) {
                    *sum += likeness(Sample { count: 100, sampling, seed }, [(Uid(1), &one), (Uid(2), &other)]) / 200.0;
                }
            }
            // The share in one sample is off by 5 % (one sigma), and the mean of 200 samples by 0.4 %.
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
            // Each link is drawn 1,000 times; sigma is 28.
            assert!(drawn.iter().all(|times| (860..1140).contains(times)), "{drawn:?}");
        }
    }
}
