//! One page's captures into one page over time: the heart of stage 2, without a dataflow.
//!
//! Reads the captures of a page in the order of time, each with its set of links; gives timestamps, the union of the
//! links, and the changes between captures (the OL, TS and BV of Avcular & Suel 2011, section 4, still with
//! fingerprints for UIDs). Captures in one second are one capture with the union of their links. Of records without a date
//! the newest counts, and only where there is no other of that second; the rest are counted. Links of revisits are
//! unknown here: what they refer to may be in the store, so what is needed to find it goes with the page
//! ([`crate::revisits`]).
//!
//! A page whose record would have more than [`VALUES_MAX`] values has captures of unknown links alone ([`crate::large_pages`]).
//!
//! Memory: the captures of one page within a budget, beyond it their links go to disk ([`crate::large_fold`]); and what the
//! record takes. Cost: linear in their links, 16 bytes a link, since 98 % of the links of a capture
//! are in the next one and equal lists are told by one comparison of memory.

use crate::ingest::kind;
use crate::known_links::hash_of;
use crate::large_fold::LargeFold;
use crate::large_pages::{REVISIT_VALUES, VALUES_MAX};
use crate::scratch::Scratch;
use crate::{Error, wire};
use std::collections::HashMap;
use std::ops::Range;
use webstrata_layers::presence::Change;
use webstrata_layers::{Evidence, Revisit};

/// What an entry of the small tables takes, about.
const SMALL_BYTES: usize = 64;

/// A page over time with fingerprints for UIDs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FoldedPage {
    pub(crate) fingerprint: u128,
    /// Rising, each once.
    pub(crate) timestamps: Vec<i64>,
    /// Indexes of captures with unknown links, rising.
    pub(crate) unknown: Vec<u32>,
    /// Fingerprints, rising, each once.
    pub(crate) links: Vec<u128>,
    /// By (link, capture).
    pub(crate) changes: Vec<Change>,
    /// Digests and revisits; links of revisits are indexes into `own`.
    pub(crate) evidence: Evidence,
    /// Fingerprints of the links that revisits have of their own, rising, each once.
    pub(crate) own: Vec<u128>,
    /// Its links are left out.
    pub(crate) is_left_out: bool,
}

/// The captures of one second.
struct Moment {
    time: i64,
    /// Whether some capture is no revisit.
    is_known: bool,
    /// Its links in [`Fold::links`], where these are in memory.
    first: usize,
    count: u32,
    /// The least digest of those that are no revisits; 0 without one.
    digest: u64,
    revisit: Option<Box<FoldedRevisit>>,
}

impl Moment {
    fn links(&self) -> Range<usize> {
        self.first..self.first + self.count as usize
    }

    /// Values of the revisit in its record: none where a capture of the second is no revisit.
    fn revisit_values(&self) -> usize {
        let revisit = self.revisit.as_ref().filter(|_| !self.is_known);
        revisit.map_or(0, |revisit| REVISIT_VALUES + revisit.own.len())
    }
}

/// The revisits of one second: the least of them, and the own links of all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FoldedRevisit {
    not_modified: bool,
    digest: u64,
    time: Option<i64>,
    own: Vec<u128>,
}

/// What is kept of a digest.
fn short(digest: u128) -> u64 {
    let [high, low] = [digest >> 64, digest & u128::from(u64::MAX)];
    u64::try_from(high ^ low).unwrap_or(0)
}

/// Folds page after page; keeps its buffers.
pub(crate) struct Fold {
    /// Bytes that a page may take, about.
    bytes_max: usize,
    moments: Vec<Moment>,
    links: Vec<u128>,
    /// The link sets of records that hold theirs, in [`Fold::links`].
    sets: Vec<Range<usize>>,
    /// Captures that have the links of another one: number of the moment, hash of the links.
    same: Vec<(usize, u128)>,
    events: Vec<(u128, u32)>,
    /// How new the record without a date is that came last in this second, and whether it counts.
    undated: (Vec<u8>, bool),
    /// Records without a date that did not count, of all pages.
    pub(crate) older_undated: u64,
    scratch: Scratch,
    /// Where links are that do not fit.
    large: Option<LargeFold>,
    values_max: usize,
    /// Values of revisits and of their own links.
    revisit_values: usize,
    /// The page has too many captures and revisits, whatever its links are.
    is_too_large: bool,
}

impl Fold {
    pub(crate) fn new(bytes_max: usize, scratch: &Scratch) -> Self {
        Fold {
            bytes_max,
            moments: Vec::new(),
            links: Vec::new(),
            sets: Vec::new(),
            same: Vec::new(),
            events: Vec::new(),
            undated: (Vec::new(), false),
            older_undated: 0,
            scratch: scratch.clone(),
            large: None,
            values_max: VALUES_MAX,
            revisit_values: 0,
            is_too_large: false,
        }
    }

    /// Adds a capture record of the page, in the order of their bytes: times do not fall, and in a second those without a
    /// date come last, the newest first.
    ///
    /// # Errors
    /// What the disk refuses.
    pub(crate) fn add(&mut self, time: i64, mut payload: &[u8]) -> Result<(), Error> {
        let [kind] = wire::take_array(&mut payload);
        let undated = (kind == kind::UNDATED).then(|| wire::take_falling(&mut payload));
        let digest = short(u128::from_be_bytes(wire::take_array(&mut payload)));
        if self.moments.last().is_none_or(|last| last.time != time) {
            // The captures of one second come in an order that says nothing: only whole seconds count.
            self.is_too_large |= self.moments.len() + self.revisit_values > self.values_max;
            if self.moments.len() > self.values_max {
                return Ok(());
            }
            let none = Moment { time, is_known: false, first: 0, count: 0, digest: 0, revisit: None };
            self.moments.push(none);
            self.undated.0.clear();
        }
        if let Some(undated) = undated
            && !self.counts(undated)
        {
            return Ok(());
        }
        if self.is_too_large {
            return Ok(());
        }
        let number = self.moments.len() - 1;
        let moment = &mut self.moments[number];
        self.revisit_values -= moment.revisit_values();
        if matches!(kind, kind::LINKS | kind::SAME | kind::UNDATED) {
            moment.digest = [moment.digest, digest].into_iter().filter(|&digest| digest != 0).min().unwrap_or(0);
            moment.is_known = true;
        }
        self.revisit_values += moment.revisit_values();
        if kind == kind::SAME {
            let links = u128::from_be_bytes(wire::take_array(&mut payload));
            match &mut self.large {
                Some(large) => large.add_same(index(number), links)?,
                None => self.same.push((number, links)),
            }
            return self.go_to_disk_if_full();
        }
        let has_links = matches!(kind, kind::LINKS | kind::UNDATED);
        let referred: [u8; 8] = if has_links { [0; 8] } else { wire::take_array(&mut payload) };
        let links = payload.as_chunks::<16>().0.iter().map(|link| u128::from_be_bytes(*link));
        if has_links {
            if let Some(large) = &mut self.large {
                large.add(index(number), links)?;
                return if kind == kind::LINKS { large.add_set(payload) } else { Ok(()) };
            }
            let start = self.links.len();
            self.links.extend(links);
            let own = start..self.links.len();
            if kind == kind::LINKS {
                self.sets.push(own.clone());
            }
            self.add_links(number, own);
            return self.go_to_disk_if_full();
        }
        let time = (referred != [0; 8]).then(|| wire::key_time(referred));
        let not_modified = kind == kind::NOT_MODIFIED;
        let mut revisit = FoldedRevisit { not_modified, digest, time, own: links.collect() };
        self.revisit_values -= moment.revisit_values();
        if let Some(other) = moment.revisit.take() {
            let mut own = [&revisit.own[..], &other.own].concat();
            own.sort_unstable();
            own.dedup();
            revisit = FoldedRevisit { own, ..revisit.min(*other) };
        }
        moment.revisit = Some(Box::new(revisit));
        self.revisit_values += moment.revisit_values();
        Ok(())
    }

    /// Whether a record without a date counts: the first of its second does, in all its parts.
    fn counts(&mut self, undated: &[u8]) -> bool {
        if self.undated.0 != undated {
            self.undated = (undated.to_vec(), self.moments.last().is_some_and(|moment| !moment.is_known));
            self.older_undated += u64::from(!self.undated.1);
        }
        self.undated.1
    }

    /// Has links go to disk that take more than the budget.
    fn go_to_disk_if_full(&mut self) -> Result<(), Error> {
        let bytes = self.links.len() * size_of::<u128>() + (self.sets.len() + self.same.len()) * SMALL_BYTES;
        if self.large.is_some() || bytes <= self.bytes_max {
            return Ok(());
        }
        let mut large = LargeFold::new(&self.scratch, self.bytes_max);
        for (number, moment) in (0u32..).zip(&self.moments) {
            large.add(number, self.links[moment.links()].iter().copied())?;
        }
        let mut bytes = Vec::new();
        for set in self.sets.drain(..) {
            bytes.clear();
            bytes.extend(self.links[set].iter().flat_map(|link| link.to_be_bytes()));
            large.add_set(&bytes)?;
        }
        for (number, links) in self.same.drain(..) {
            large.add_same(index(number), links)?;
        }
        self.links = Vec::new();
        self.moments.iter_mut().for_each(|moment| moment.count = 0);
        self.large = Some(large);
        Ok(())
    }

    /// Adds links, sorted and in memory, to those of a capture.
    fn add_links(&mut self, number: usize, own: Range<usize>) {
        let before = self.moments[number].links();
        let all = if before.is_empty() || self.links[before.clone()] == self.links[own.clone()] {
            own
        } else {
            self.union(before, own)
        };
        (self.moments[number].first, self.moments[number].count) = (all.start, index(all.len()));
    }

    /// Gives captures that have the links of another one those links, which some record of the page holds.
    fn resolve_same(&mut self) {
        let mut bytes = Vec::new();
        let by_hash: HashMap<u128, Range<usize>> = self
            .sets
            .iter()
            .map(|set| {
                bytes.clear();
                bytes.extend(self.links[set.clone()].iter().flat_map(|link| link.to_be_bytes()));
                (hash_of(&bytes), set.clone())
            })
            .collect();
        for (number, hash) in std::mem::take(&mut self.same) {
            if let Some(set) = by_hash.get(&hash) {
                self.add_links(number, set.clone());
            }
        }
    }

    fn union(&mut self, one: Range<usize>, other: Range<usize>) -> Range<usize> {
        let start = self.links.len();
        self.links.extend_from_within(one);
        self.links.extend_from_within(other);
        self.links[start..].sort_unstable();
        let mut kept = start;
        for next in start..self.links.len() {
            if kept == start || self.links[kept - 1] != self.links[next] {
                self.links[kept] = self.links[next];
                kept += 1;
            }
        }
        self.links.truncate(kept);
        start..kept
    }

    /// Ends the page and makes ready for the next one.
    ///
    /// # Errors
    /// What the disk refuses.
    pub(crate) fn finish(&mut self, fingerprint: u128, page: &mut FoldedPage) -> Result<(), Error> {
        page.fingerprint = fingerprint;
        page.timestamps.clear();
        page.timestamps.extend(self.moments.iter().map(|moment| moment.time));
        page.unknown.clear();
        page.links.clear();
        page.changes.clear();
        page.is_left_out = self.is_too_large || !self.finish_links(page)?;
        if page.is_left_out {
            page.timestamps.truncate(self.values_max);
            page.unknown = (0u32..).zip(&page.timestamps).map(|(capture, _)| capture).collect();
            (page.links, page.changes) = (Vec::new(), Vec::new());
            (page.evidence, page.own) = (Evidence::default(), Vec::new());
        }
        self.moments.clear();
        self.links.clear();
        self.sets.clear();
        self.same.clear();
        self.events.clear();
        self.large = None;
        self.revisit_values = 0;
        self.is_too_large = false;
        Ok(())
    }

    /// Makes links, changes and evidence; whether they fit into a record.
    fn finish_links(&mut self, page: &mut FoldedPage) -> Result<bool, Error> {
        if !self.same.is_empty() {
            self.resolve_same();
        }
        self.gather_evidence(page)?;
        page.unknown.extend((0u32..).zip(&self.moments).filter(|(_, own)| !own.is_known).map(|(number, _)| number));
        let revisits: usize = page.evidence.revisits.iter().map(|own| REVISIT_VALUES + own.links.len()).sum();
        let Some(most) = self.values_max.checked_sub(self.moments.len() + revisits) else { return Ok(false) };
        if let Some(large) = self.large.take() {
            let known: Vec<bool> = self.moments.iter().map(|moment| moment.is_known).collect();
            return large.finish(&known, most, page);
        }
        let mut before: Option<&[u128]> = None;
        let mut first: &[u128] = &[];
        let mut first_known = 0;
        for (number, moment) in (0u32..).zip(&self.moments).filter(|(_, moment)| moment.is_known) {
            let links = &self.links[moment.links()];
            match before {
                None => (first, first_known) = (links, number),
                Some(before) if before == links => {}
                Some(before) => differences(before, links, |link| self.events.push((link, number))),
            }
            if self.events.len() > most {
                return Ok(false);
            }
            before = Some(links);
        }
        self.events.sort_unstable();
        merge_events(first, first_known, &self.events, page);
        Ok(page.links.len() + page.changes.len() <= most)
    }

    /// What captures say of one another; links that revisits have beside a capture in the same second are that capture's.
    fn gather_evidence(&mut self, page: &mut FoldedPage) -> Result<(), Error> {
        let FoldedPage { evidence: Evidence { digests, revisits }, own, .. } = page;
        digests.clear();
        revisits.clear();
        own.clear();
        for number in 0..self.moments.len() {
            if self.moments[number].is_known
                && let Some(revisit) = self.moments[number].revisit.take()
            {
                if let Some(large) = &mut self.large {
                    large.add(index(number), revisit.own.iter().copied())?;
                } else if !revisit.own.is_empty() {
                    let start = self.links.len();
                    self.links.extend(&revisit.own);
                    self.links[start..].sort_unstable();
                    self.add_links(number, start..self.links.len());
                }
            }
            let moment = &self.moments[number];
            digests.push(moment.revisit.as_ref().map_or(moment.digest, |revisit| revisit.digest));
            own.extend(moment.revisit.iter().flat_map(|revisit| &revisit.own));
        }
        own.sort_unstable();
        own.dedup();
        if digests.iter().all(|&digest| digest == 0) {
            digests.clear();
        }
        for (capture, moment) in (0u32..).zip(&self.moments) {
            let Some(revisit) = &moment.revisit else { continue };
            let index = |link: &u128| own.binary_search(link).map_or(u64::MAX, |at| at as u64);
            let mut links: Vec<u64> = revisit.own.iter().map(index).collect();
            links.sort_unstable();
            links.dedup();
            let FoldedRevisit { not_modified, time: referred, .. } = **revisit;
            revisits.push(Revisit { capture, not_modified, referred, links });
        }
        Ok(())
    }
}

/// Calls `each` with what is in one sorted list only.
fn differences(mut one: &[u128], mut other: &[u128], mut each: impl FnMut(u128)) {
    loop {
        match (one.split_first(), other.split_first()) {
            (Some((a, one_rest)), Some((b, other_rest))) => match a.cmp(b) {
                std::cmp::Ordering::Equal => (one, other) = (one_rest, other_rest),
                std::cmp::Ordering::Less => {
                    each(*a);
                    one = one_rest;
                }
                std::cmp::Ordering::Greater => {
                    each(*b);
                    other = other_rest;
                }
            },
            _ => {
                one.iter().chain(other).for_each(|&link| each(link));
                return;
            }
        }
    }
}

/// An index of a link or a capture; so many fit into no record.
fn index(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Writes links and changes from the links of the first known capture and the sorted changes after it.
fn merge_events(mut first: &[u128], first_known: u32, events: &[(u128, u32)], page: &mut FoldedPage) {
    for changed in events.chunk_by(|a, b| a.0 == b.0) {
        let link = changed[0].0;
        let stable = first.partition_point(|&other| other < link);
        page.links.extend_from_slice(&first[..stable]);
        first = &first[stable..];
        let number = index(page.links.len());
        page.links.push(link);
        if first.first() == Some(&link) {
            first = &first[1..];
        } else {
            // Before the first known capture a link counts as present, and this one was not in it.
            page.changes.push(Change { link: number, capture: first_known });
        }
        page.changes.extend(changed.iter().map(|&(_, capture)| Change { link: number, capture }));
    }
    page.links.extend_from_slice(first);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn payload(kind: u8, digest: u128, referred: Option<i64>, links: &[u128]) -> Vec<u8> {
        let mut payload = vec![kind];
        payload.extend(digest.to_be_bytes());
        if kind != kind::LINKS {
            payload.extend(referred.map_or([0; 8], wire::time_key));
        }
        let links: BTreeSet<_> = links.iter().collect();
        payload.extend(links.into_iter().flat_map(|link| link.to_be_bytes()));
        payload
    }

    fn fold(captures: &[(i64, Vec<u8>)]) -> FoldedPage {
        fold_within(captures, 1 << 20, VALUES_MAX)
    }

    fn fold_within(captures: &[(i64, Vec<u8>)], bytes_max: usize, values_max: usize) -> FoldedPage {
        let directory = tempfile::tempdir().unwrap();
        let mut fold = Fold { values_max, ..Fold::new(bytes_max, &Scratch::temporary(directory.path())) };
        let mut page = FoldedPage::default();
        // A page before leaves nothing for the next one.
        for _ in 0..2 {
            captures.iter().for_each(|(time, payload)| fold.add(*time, payload).unwrap());
            fold.finish(7, &mut page).unwrap();
        }
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        page
    }

    /// The links of every capture, read off the changes bit by bit; `None` where they are unknown.
    fn unfold(page: &FoldedPage) -> Vec<(i64, Option<BTreeSet<u128>>)> {
        let mut present = vec![true; page.links.len()];
        (0u32..)
            .zip(&page.timestamps)
            .map(|(capture, &time)| {
                for change in page.changes.iter().filter(|change| change.capture == capture) {
                    present[change.link as usize] ^= true;
                }
                let links = page.links.iter().zip(&present).filter(|(_, here)| **here).map(|(link, _)| *link).collect();
                (time, (!page.unknown.contains(&capture)).then_some(links))
            })
            .collect()
    }

    proptest! {
        #[test]
        fn folding_keeps_every_capture(
            captures in prop::collection::vec((0i64..12, prop::collection::vec(0u128..9, 0..6)), 1..20),
        ) {
            let mut expected = BTreeMap::<i64, BTreeSet<u128>>::new();
            for (time, links) in &captures {
                expected.entry(*time).or_default().extend(links);
            }
            let mut records: Vec<_> =
                captures.iter().map(|(time, links)| (*time, payload(kind::LINKS, 0, None, links))).collect();
            records.sort();
            let page = fold(&records);
            prop_assert!(page.links.is_sorted_by(|a, b| a < b));
            prop_assert!(page.changes.is_sorted_by(|a, b| a < b));
            let all: BTreeSet<u128> = expected.values().flatten().copied().collect();
            prop_assert_eq!(&page.links, &all.into_iter().collect::<Vec<_>>());
            let expected: Vec<_> = expected.into_iter().map(|(time, links)| (time, Some(links))).collect();
            prop_assert_eq!(unfold(&page), expected);
        }
    }

    fn links_at(page: &FoldedPage, time: i64) -> Option<Vec<u128>> {
        let (_, links) = unfold(page).into_iter().find(|(at, _)| *at == time).unwrap();
        links.map(|links| links.into_iter().collect())
    }

    #[test]
    fn the_same_links_stand_in_another_record() {
        let links = payload(kind::LINKS, 1, None, &[4, 5]);
        let mut same = vec![kind::SAME];
        same.extend(2u128.to_be_bytes());
        same.extend(hash_of(&links[17..]).to_be_bytes());
        let page = fold(&[
            (10, same.clone()),
            (20, links),
            (30, payload(kind::LINKS, 0, None, &[6])),
            (40, payload(kind::LINKS, 0, None, &[7])),
            (40, same),
        ]);
        assert_eq!(links_at(&page, 10), Some(vec![4, 5]));
        assert_eq!(links_at(&page, 20), Some(vec![4, 5]));
        assert_eq!(links_at(&page, 30), Some(vec![6]));
        assert_eq!(links_at(&page, 40), Some(vec![4, 5, 7]), "captures of one second have the links of both");
        assert_eq!(page.evidence, Evidence { digests: vec![2, 1, 0, 2], revisits: vec![] });
    }

    /// A record without a date.
    fn undated(age: &str, links: &[u128]) -> (i64, Vec<u8>) {
        let mut record = vec![kind::UNDATED];
        wire::put_falling(&mut record, age.as_bytes());
        record.extend(&payload(kind::LINKS, 0, None, links)[1..]);
        (0, record)
    }

    #[test]
    fn of_records_without_a_date_the_newest_counts() {
        let dated = (0, payload(kind::LINKS, 0, None, &[9]));
        let other = (7, payload(kind::LINKS, 0, None, &[8]));
        for (records, links, older) in [
            (vec![undated("b", &[1, 2])], vec![1, 2], 0),
            (vec![undated("a", &[1, 2]), undated("b", &[3]), undated("ab", &[4])], vec![3], 2),
            (vec![undated("b", &[3]), undated("ab", &[4]), undated("a", &[1, 2])], vec![3], 2),
            (vec![undated("b", &[3]), undated("a", &[1]), undated("b", &[4]), undated("a", &[5])], vec![3, 4], 1),
            (vec![undated("a", &[1]), undated("b", &[])], vec![], 1),
            (vec![undated("a", &[1]), dated.clone(), undated("b", &[2])], vec![9], 2),
            (vec![dated.clone(), undated("b", &[2]), dated], vec![9], 1),
        ] {
            let mut records: Vec<_> = records.into_iter().chain([other.clone()]).collect();
            records.sort();
            for bytes_max in [0, 1 << 20] {
                let directory = tempfile::tempdir().unwrap();
                let mut fold = Fold::new(bytes_max, &Scratch::temporary(directory.path()));
                let mut page = FoldedPage::default();
                records.iter().for_each(|(time, payload)| fold.add(*time, payload).unwrap());
                fold.finish(7, &mut page).unwrap();
                assert_eq!((links_at(&page, 0), links_at(&page, 7)), (Some(links.clone()), Some(vec![8])));
                assert_eq!(fold.older_undated, older);
            }
        }
    }

    #[test]
    fn revisits_are_kept_with_all_that_they_say() {
        let page = fold(&[
            (10, payload(kind::LINKS, 9, None, &[4])),
            (20, payload(kind::IDENTICAL, 7, Some(10), &[6, 5])),
            (20, payload(kind::IDENTICAL, 8, None, &[6, 3])),
            (30, payload(kind::NOT_MODIFIED, 0, None, &[])),
        ]);
        assert_eq!((links_at(&page, 20), links_at(&page, 30)), (None, None));
        assert_eq!((&page.unknown, &page.own), (&vec![1, 2], &vec![3, 5, 6]));
        assert_eq!(page.links, [4], "links of a revisit are not yet links of the page");
        let revisit = |capture, not_modified, referred, links: &[u64]| Revisit {
            capture,
            not_modified,
            referred,
            links: links.to_vec(),
        };
        let revisits = vec![revisit(1, false, Some(10), &[0, 1, 2]), revisit(2, true, None, &[])];
        assert_eq!(page.evidence, Evidence { digests: vec![9, 7, 0], revisits });
    }

    #[test]
    fn a_capture_and_a_revisit_in_one_second_are_one_capture() {
        let page = fold(&[
            (10, payload(kind::LINKS, 1, None, &[4])),
            (20, payload(kind::LINKS, 2, None, &[6])),
            (20, payload(kind::IDENTICAL, 1, None, &[7])),
        ]);
        assert_eq!(links_at(&page, 20), Some(vec![6, 7]));
        assert_eq!(page.evidence, Evidence { digests: vec![1, 2], revisits: vec![] });
    }

    /// Captures of all kinds, in order of time, as records of links, of hashes of links and of revisits.
    fn records() -> impl Strategy<Value = Vec<(i64, Vec<u8>)>> {
        let capture = (0i64..9, 0u8..5, 0u128..3, prop::collection::vec(0u128..7, 0..5));
        prop::collection::vec(capture, 1..24).prop_map(|captures| {
            let sets: Vec<_> = captures.iter().map(|capture| payload(kind::LINKS, 0, None, &capture.3)).collect();
            let record = |(number, (time, kind, digest, links)): (usize, &(i64, u8, u128, Vec<u128>))| {
                let payload = match kind {
                    0 => payload(kind::IDENTICAL, *digest, Some(*time), &links[..links.len().min(2)]),
                    1 => payload(kind::NOT_MODIFIED, *digest, None, &[]),
                    3 if *digest == 2 => undated(["a", "b", "bc"][number % 3], links).1,
                    2 if captures[number / 2].1 > 2 => {
                        let hash = hash_of(&sets[number / 2][17..]).to_be_bytes();
                        [&[kind::SAME][..], &digest.to_be_bytes(), &hash].concat()
                    }
                    _ => payload(kind::LINKS, *digest, None, links),
                };
                (*time, payload)
            };
            let mut records: Vec<_> = captures.iter().enumerate().map(record).collect();
            records.sort();
            records
        })
    }

    proptest! {
        #[test]
        fn disk_and_memory_fold_alike(records in records(), values_max in 1usize..60) {
            let in_memory = fold_within(&records, 1 << 20, VALUES_MAX);
            prop_assert_eq!(&fold_within(&records, 0, VALUES_MAX), &in_memory);
            let small = fold_within(&records, 1 << 20, values_max);
            prop_assert_eq!(&fold_within(&records, 0, values_max), &small);
            prop_assert_eq!(&fold_within(&records, 100, values_max), &small);
            let FoldedPage { links, timestamps, changes, evidence, .. } = &in_memory;
            let own: usize = evidence.revisits.iter().map(|own| REVISIT_VALUES + own.links.len()).sum();
            let fits = links.len() + timestamps.len() + changes.len() + own <= values_max;
            prop_assert!(!in_memory.is_left_out);
            let expected = if fits { in_memory } else { left_out(&records, values_max) };
            prop_assert_eq!(small, expected);
        }
    }

    /// What is kept of a page that is too large.
    fn left_out(records: &[(i64, Vec<u8>)], values_max: usize) -> FoldedPage {
        let mut timestamps: Vec<i64> = records.iter().map(|record| record.0).collect();
        timestamps.dedup();
        timestamps.truncate(values_max);
        let unknown = (0..u32::try_from(timestamps.len()).unwrap()).collect();
        FoldedPage { fingerprint: 7, timestamps, unknown, is_left_out: true, ..FoldedPage::default() }
    }

    #[test]
    fn many_captures_of_one_second_are_one_in_little_memory() {
        let record = |number: u128| (5, payload(kind::LINKS, 0, None, &[1, 1000 + number % 500]));
        let page = fold_within(&(0..20_000).map(record).collect::<Vec<_>>(), 10_000, VALUES_MAX);
        assert_eq!((page.timestamps.len(), page.links.len(), page.changes.len()), (1, 501, 0));
    }
}
