//! The links of the previous captures of pages. Most captures have the same links as the capture before, and then the
//! links are neither looked up nor sent again.
//!
//! Each page has one slot: a hash of its link texts as they were in the file, a hash of the resulting links, and the
//! counts of texts that were left out. The slots are direct-mapped, so a page may be forgotten. Its links are then
//! looked up again, with the same result. Memory: 64 bytes a slot.

use webstrata_datasets::{Dictionary, Finding, Tally};
use xxhash_rust::xxh3::xxh3_128;

/// Returns the hash that refers to a set of links, given as they are in a capture record.
pub(crate) fn hash_of(links: &[u8]) -> u128 {
    xxh3_128(links)
}

/// The number of link texts that are not links, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Missed([u32; Missed::KINDS.len()]);

impl Missed {
    const KINDS: [Finding; 4] = [Finding::BadLink, Finding::OtherLinkScheme, Finding::LongLink, Finding::RemovedLink];

    pub(crate) fn add(&mut self, finding: Finding) {
        if let Some(at) = Self::KINDS.iter().position(|&kind| kind == finding) {
            self.0[at] += 1;
        }
    }

    pub(crate) fn count(self, tally: &mut Tally) {
        Self::KINDS.into_iter().zip(self.0).for_each(|(kind, times)| tally.count_many(kind, times.into()));
    }
}

/// The result of looking up the link texts of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// The [`hash_of`] the links.
    pub(crate) links: u128,
    pub(crate) missed: Missed,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    page: u128,
    texts: u128,
    known: Known,
}

/// The links of the previous captures of pages; see the head of this file.
pub(crate) struct KnownLinks(Vec<Slot>);

impl KnownLinks {
    pub(crate) fn new(bytes: usize) -> Self {
        let slots = (bytes / size_of::<Slot>()).max(2).next_power_of_two() / 2;
        KnownLinks(vec![Slot::default(); slots])
    }

    fn slot(&mut self, page: u128) -> &mut Slot {
        let mask = self.0.len() - 1;
        // The lowest bits of a fingerprint are reserved for a form, and the upper half decides the worker, so neither
        // is used.
        &mut self.0[(page >> 32) as usize & mask]
    }

    /// Returns the result for these texts, if the page had the same texts last.
    pub(crate) fn of(&mut self, page: u128, texts: u128) -> Option<Known> {
        let slot = self.slot(page);
        (slot.page == page && slot.texts == texts).then_some(slot.known)
    }

    /// Keeps the result for texts. Returns whether the page had the same links before.
    pub(crate) fn keep(&mut self, page: u128, texts: u128, known: Known) -> bool {
        let before = std::mem::replace(self.slot(page), Slot { page, texts, known });
        before.page == page && before.known.links == known.links
    }
}

/// The fingerprints of the texts of one dictionary that are known and are the same for every page.
///
/// Memory: 16 bytes a text of a dictionary, which the reader holds in memory as a whole.
#[derive(Default)]
pub(crate) struct Memo {
    dictionary: u64,
    /// The fingerprints by key; 0 if unknown.
    fingerprints: Vec<u128>,
}

impl Memo {
    /// Forgets all fingerprints if they belong to another dictionary.
    pub(crate) fn turn_to(&mut self, dictionary: &Dictionary) {
        if self.dictionary != dictionary.id() {
            self.dictionary = dictionary.id();
            if dictionary.len() <= self.fingerprints.capacity() {
                self.fingerprints.clear();
                self.fingerprints.resize(dictionary.len(), 0);
            } else {
                // The system hands out zeros, so that keys which never occur take no memory.
                self.fingerprints = vec![0; dictionary.len()];
            }
        }
    }

    /// Returns the fingerprint of a key, if known.
    #[inline]
    pub(crate) fn get(&self, key: u64) -> Option<u128> {
        let known = usize::try_from(key).ok().and_then(|key| self.fingerprints.get(key).copied());
        known.filter(|&fingerprint| fingerprint != 0)
    }

    /// Keeps the fingerprint of a key, if the text of the key has the same meaning on every page.
    pub(crate) fn keep(&mut self, key: u64, text: &str, fingerprint: u128) {
        let is_absolute = text.starts_with("http://") || text.starts_with("https://");
        if let Some(slot) = usize::try_from(key).ok().and_then(|key| self.fingerprints.get_mut(key))
            && is_absolute
        {
            *slot = fingerprint;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stages::records::{owner, without_form};

    #[test]
    fn a_page_is_known_until_another_takes_its_slot() {
        let mut known = KnownLinks::new(256);
        let links = Known { links: 9, missed: Missed([1, 2, 3, 4]) };
        assert_eq!(known.of(7, 3), None);
        assert!(!known.keep(7, 3, links));
        assert_eq!(known.of(7, 3), Some(links));
        assert_eq!(known.of(7, 4), None);
        assert!(known.keep(7, 4, links), "other texts, the same links");
        assert!(!known.keep(7 + (1 << 64), 4, links), "another page in the same slot");
        assert_eq!(known.of(7, 4), None);
    }

    #[test]
    fn pages_of_a_worker_spread_over_all_slots() {
        let mut known = KnownLinks::new(1024 * size_of::<Slot>());
        let pages = (0..10_000u64).map(|page| without_form(xxh3_128(&page.to_le_bytes())));
        let pages: Vec<u128> = pages.filter(|&page| owner(page, 2) == 1).take(50).collect();
        for &page in &pages {
            known.keep(page, 1, Known::default());
        }
        assert!(pages.iter().filter(|&&page| known.of(page, 1).is_some()).count() > 40);
    }

    #[test]
    fn only_absolute_texts_are_kept_for_all_pages() {
        let mut memo = Memo { dictionary: 1, fingerprints: vec![0; 2] };
        memo.keep(0, "http://a.example/", 5);
        memo.keep(1, "a.html", 6);
        memo.keep(u64::MAX, "http://a.example/", 7);
        assert_eq!([0, 1, 2, u64::MAX].map(|key| memo.get(key)), [Some(5), None, None, None]);
    }
}
