//! Keeps links that were taken out of the store for a period out of revisits.
//!
//! A link is kept out of the records of inputs as they are read ([`crate::stages::ingest`]). A revisit in the period of
//! a rule may have the links of a capture before or after the period, and those are known only here. A rule without a
//! period needs nothing: no capture has such a link any more. A held link has no UID yet, and is kept out when it gets
//! one: the update that releases it writes the revisit again.
//!
//! Cost: nothing without rules for periods; else the links of the pages that have revisits in such a period, and the
//! URLs of these links.

use crate::Error;
use crate::stages::held::links::is_held;
use crate::stages::page_links::{links_at, woven};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use webstrata_layers::record::form::link_of;
use webstrata_layers::record::key::key_of;
use webstrata_layers::{Evidence, Page, Removals, Uid};

/// The removals of a store that take out links for a period.
pub(super) struct Periods(Option<Removals>);

impl Periods {
    pub(super) fn of(removals: &Removals) -> Self {
        let has_period = removals.iter().any(|rule| rule.of_targets() && (rule.from.is_some() || rule.to.is_some()));
        Self(has_period.then(|| removals.clone()))
    }

    /// Takes links out of the revisits of a formed page. `url_of` gives the URL of a UID. Returns the number of links
    /// that were taken out, each capture by itself.
    pub(super) fn keep_out(
        &self,
        page: &mut Page,
        evidence: &Evidence,
        mut url_of: impl FnMut(Uid) -> Result<String, Error>,
    ) -> Result<u64, Error> {
        let Some(removals) = &self.0 else { return Ok(0) };
        let is_within = |time| removals.iter().any(|rule| rule.of_targets() && rule.covers(time));
        let captures = evidence.revisits.iter().map(|revisit| revisit.capture);
        let captures: Vec<u32> =
            captures.filter(|&at| !page.is_blank(at) && is_within(page.timestamps[at as usize])).collect();
        if captures.is_empty() {
            return Ok(0);
        }
        let (mut rules, mut taken) = (BTreeMap::new(), 0);
        let mut links: Vec<(u32, Vec<Uid>)> = Vec::new();
        for (at, &time) in (0u32..).zip(&page.timestamps).filter(|(at, _)| !page.is_blank(*at)) {
            let mut left = links_at(page, at);
            if captures.binary_search(&at).is_ok() {
                let before = left.len();
                for &link in left.iter().filter(|link| !is_held(**link)) {
                    if let Entry::Vacant(free) = rules.entry(link) {
                        free.insert(removals.of(&key_of(&url_of(link_of(link))?)));
                    }
                }
                let of = |link: &Uid| rules.get(link).into_iter().flatten();
                left.retain(|link| !of(link).any(|rule| rule.of_targets() && rule.covers(time)));
                taken += (before - left.len()) as u64;
            }
            links.push((at, left));
        }
        if taken > 0 {
            (page.links, page.changes) = woven(&links);
        }
        Ok(taken)
    }
}
