//! What was taken out of the store, as captures are read: a later crawl does not bring it back.
//!
//! Rules select URLs by key, and URLs are known here by fingerprint. The key of a URL is seen when the URL is; those
//! that some rule selects are kept, with the rules. Whether such a URL is one of the store depends on what it is named
//! as, and when: so it is sent on each time that it is named otherwise than as what is kept out.
//!
//! Memory: the keys of the URLs that rules select, as far as they were read.

use std::collections::HashMap;
use webstrata_layers::{RemovalRule, Removals};

/// A URL that some rule selects.
pub(super) struct Named {
    pub(super) key: Box<[u8]>,
    rules: Vec<RemovalRule>,
}

impl Named {
    /// Whether it is not to be read as a page, or else as a link, in a capture of this second.
    pub(super) fn is_kept_out(&self, is_page: bool, time: i64) -> bool {
        let means = |rule: &&RemovalRule| if is_page { rule.of_pages() } else { rule.of_targets() };
        self.rules.iter().filter(means).any(|rule| rule.covers(time))
    }
}

/// See the head of this file.
pub(super) struct KeptOut {
    removals: Removals,
    named: HashMap<u128, Named>,
    /// Seconds from which on other rules hold than before, rising.
    bounds: Vec<i64>,
}

impl KeptOut {
    pub(super) fn new(removals: &Removals) -> Self {
        let ends = removals.iter().flat_map(|rule| [rule.from, rule.to.and_then(|to| to.checked_add(1))]);
        let mut bounds: Vec<i64> = ends.flatten().collect();
        bounds.sort_unstable();
        bounds.dedup();
        Self { removals: removals.clone(), named: HashMap::new(), bounds }
    }

    /// Whether some rule selects the URL with this key; then it is kept.
    pub(super) fn is_named(&mut self, fingerprint: u128, key: &[u8]) -> bool {
        if self.removals.is_empty() {
            return false;
        }
        let rules: Vec<RemovalRule> = self.removals.of(key).into_iter().cloned().collect();
        let is_named = !rules.is_empty();
        if is_named {
            self.named.entry(fingerprint).or_insert_with(|| Named { key: key.into(), rules });
        }
        is_named
    }

    /// The URL with this fingerprint, if some rule selects it.
    pub(super) fn of(&self, fingerprint: u128) -> Option<&Named> {
        if self.named.is_empty() { None } else { self.named.get(&fingerprint) }
    }

    /// Whether some rule holds at some times only.
    pub(super) fn has_periods(&self) -> bool {
        !self.bounds.is_empty()
    }

    /// A number for the times in which the same rules hold as at this one; 0 where all always hold.
    pub(super) fn period(&self, time: i64) -> u128 {
        self.bounds.partition_point(|&bound| bound <= time) as u128
    }
}
