//! Keeps captures and links that were taken out of the store out of the inputs, so that a later crawl does not bring
//! them back.
//!
//! Rules select URLs by key, and this stage names URLs by fingerprint. The key of a URL is known when the text of the
//! URL is seen, and keys that a rule selects are kept with the rules. Such a URL may be kept out in one place and not
//! in another: as a page, as a link, or at some times only. The URL is therefore sent each time that it is named in a
//! way that is not kept out.
//!
//! Memory: the keys of the URLs that were read and that rules select.

use std::collections::HashMap;
use webstrata_layers::{RemovalRule, Removals};

/// A URL that a rule selects.
pub(super) struct Named {
    pub(super) key: Box<[u8]>,
    rules: Vec<RemovalRule>,
}

impl Named {
    /// Whether the URL is kept out of a capture of this second: as the page if `is_page`, otherwise as a link.
    pub(super) fn is_kept_out(&self, is_page: bool, time: i64) -> bool {
        let means = |rule: &&RemovalRule| if is_page { rule.of_pages() } else { rule.of_targets() };
        self.rules.iter().filter(means).any(|rule| rule.covers(time))
    }
}

/// The removals of a store, and the URLs that they select; see the head of this file.
pub(super) struct KeptOut {
    removals: Removals,
    named: HashMap<u128, Named>,
    /// The times in seconds at which the set of rules that hold changes, ascending.
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

    /// Whether a rule selects the URL with this key. If so, the URL is kept.
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

    /// Returns the URL with this fingerprint, if a rule selects the URL.
    pub(super) fn of(&self, fingerprint: u128) -> Option<&Named> {
        if self.named.is_empty() { None } else { self.named.get(&fingerprint) }
    }

    /// Whether there are no rules.
    pub(super) fn is_empty(&self) -> bool {
        self.removals.is_empty()
    }

    /// Whether a rule holds only for a period.
    pub(super) fn has_periods(&self) -> bool {
        !self.bounds.is_empty()
    }

    /// Returns a number for the period of this time, in which the same rules hold; 0 if all rules always hold.
    pub(super) fn period(&self, time: i64) -> u128 {
        self.bounds.partition_point(|&bound| bound <= time) as u128
    }
}
