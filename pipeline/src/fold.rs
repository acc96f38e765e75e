//! One page's captures into one page over time: the heart of stage 2, without a dataflow.
//!
//! Reads the captures of a page in the order of time, each with its set of links; gives timestamps, the union of the
//! links, and the changes between captures (the OL, TS and BV of Avcular & Suel 2011, section 4, still with
//! fingerprints for UIDs). Captures in one second are one capture with the union of their links. Of records without a date
//! the newest counts, and only where there is no other of that second; the rest are counted. Links of revisits are
//! unknown here: what they refer to may be in the store, so what is needed to find it goes with the page
//! ([`crate::revisits`]).
//!
//! Memory: all captures of one page. Cost: linear in their links, 16 bytes a link, since 98 % of the links of a capture
//! are in the next one and equal lists are told by one comparison of memory.

use crate::ingest::kind;
use crate::known_links::hash_of;
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
}

/// The captures of one second.
struct Moment {
    time: i64,
    /// Links in [`Fold::links`]; `None` where all are revisits.
    links: Option<Range<usize>>,
    /// The least digest of those that are no revisits; 0 without one.
    digest: u64,
    revisit: Option<FoldedRevisit>,
    /// How new the record is whose links these are, where it has no date.
    undated: Option<Vec<u8>>,
    /// Some record of it has a date.
    dated: bool,
}

impl Moment {
    /// Whether a record counts beside those before it, and which of these now counts no more.
    fn takes(&mut self, undated: Option<&[u8]>) -> (bool, bool) {
        if undated.is_some() && (self.dated || self.undated.as_deref() >= undated) {
            return (false, false);
        }
        self.dated |= undated.is_none();
        let before = std::mem::replace(&mut self.undated, undated.map(<[u8]>::to_vec)).is_some();
        if before {
            self.links = None;
        }
        (true, before)
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
    /// Records without a date that did not count, of all pages.
    pub(crate) older_undated: u64,
}

impl Fold {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Fold {
            bytes_max,
            moments: Vec::new(),
            links: Vec::new(),
            sets: Vec::new(),
            same: Vec::new(),
            events: Vec::new(),
            older_undated: 0,
        }
    }

    /// Adds a capture record of the page; times must not fall.
    ///
    /// # Errors
    /// [`Error::PageTooLarge`] where the captures of the page so far pass the bound.
    pub(crate) fn add(&mut self, page: u128, time: i64, mut payload: &[u8]) -> Result<(), Error> {
        let captures = self.moments.len();
        let bytes = (self.links.len() + payload.len() / size_of::<u128>()) * size_of::<u128>()
            + captures * size_of::<Moment>()
            + self.same.len() * SMALL_BYTES;
        if bytes > self.bytes_max {
            let page = format!("the page of fingerprint {page:032x}");
            return Err(Error::PageTooLarge { page, captures, bytes: self.bytes_max });
        }
        let [kind] = wire::take_array(&mut payload);
        let digest = short(u128::from_be_bytes(wire::take_array(&mut payload)));
        if self.moments.last().is_none_or(|last| last.time != time) {
            let (links, revisit, undated) = (None, None, None);
            self.moments.push(Moment { time, links, digest: 0, revisit, undated, dated: false });
        }
        let number = self.moments.len() - 1;
        let moment = &mut self.moments[number];
        if matches!(kind, kind::LINKS | kind::SAME | kind::UNDATED) {
            let undated = (kind == kind::UNDATED).then(|| {
                let len = wire::take_usize(&mut payload);
                let (undated, links) = payload.split_at(len);
                payload = links;
                undated
            });
            let (counts, replaces) = moment.takes(undated);
            self.older_undated += u64::from(!counts) + u64::from(replaces);
            if !counts {
                return Ok(());
            }
        }
        if matches!(kind, kind::LINKS | kind::SAME) {
            moment.digest = [moment.digest, digest].into_iter().filter(|&digest| digest != 0).min().unwrap_or(0);
        }
        if kind == kind::SAME {
            self.same.push((number, u128::from_be_bytes(wire::take_array(&mut payload))));
            return Ok(());
        }
        let has_links = matches!(kind, kind::LINKS | kind::UNDATED);
        let referred: [u8; 8] = if has_links { [0; 8] } else { wire::take_array(&mut payload) };
        let links = payload.as_chunks::<16>().0.iter().map(|link| u128::from_be_bytes(*link));
        if has_links {
            let start = self.links.len();
            self.links.extend(links);
            let own = start..self.links.len();
            if kind == kind::LINKS {
                self.sets.push(own.clone());
            }
            self.add_links(number, own);
        } else {
            let time = (referred != [0; 8]).then(|| wire::key_time(referred));
            let not_modified = kind == kind::NOT_MODIFIED;
            let mut revisit = FoldedRevisit { not_modified, digest, time, own: links.collect() };
            if let Some(other) = moment.revisit.take() {
                let own = [&revisit.own[..], &other.own].concat();
                revisit = FoldedRevisit { own, ..revisit.min(other) };
            }
            moment.revisit = Some(revisit);
        }
        Ok(())
    }

    fn add_links(&mut self, number: usize, own: Range<usize>) {
        let all = match self.moments[number].links.take() {
            Some(before) if self.links[before.clone()] != self.links[own.clone()] => self.union(before, own),
            _ => own,
        };
        self.moments[number].links = Some(all);
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
    pub(crate) fn finish(&mut self, fingerprint: u128, page: &mut FoldedPage) {
        if !self.same.is_empty() {
            self.resolve_same();
        }
        self.gather_evidence(page);
        page.fingerprint = fingerprint;
        page.timestamps.clear();
        page.unknown.clear();
        page.links.clear();
        page.changes.clear();
        self.events.clear();
        let mut before: Option<(u32, &[u128])> = None;
        let mut first: &[u128] = &[];
        let mut first_known = 0;
        for (number, moment) in (0u32..).zip(&self.moments) {
            page.timestamps.push(moment.time);
            let Some(links) = &moment.links else {
                page.unknown.push(number);
                continue;
            };
            let links = &self.links[links.clone()];
            match before {
                None => (first, first_known) = (links, number),
                Some((_, before)) if before == links => {}
                Some((_, before)) => differences(before, links, |link| self.events.push((link, number))),
            }
            before = Some((number, links));
        }
        self.events.sort_unstable();
        merge_events(first, first_known, &self.events, page);
        self.moments.clear();
        self.links.clear();
        self.sets.clear();
    }

    /// What captures say of one another; links that revisits have beside a capture in the same second are that capture's.
    fn gather_evidence(&mut self, page: &mut FoldedPage) {
        let FoldedPage { evidence: Evidence { digests, revisits }, own, .. } = page;
        digests.clear();
        revisits.clear();
        own.clear();
        for number in 0..self.moments.len() {
            if self.moments[number].links.is_some()
                && let Some(revisit) = self.moments[number].revisit.take()
            {
                let start = self.links.len();
                self.links.extend(&revisit.own);
                self.links[start..].sort_unstable();
                self.add_links(number, start..self.links.len());
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
            let FoldedRevisit { not_modified, time: referred, .. } = *revisit;
            revisits.push(Revisit { capture, not_modified, referred, links });
        }
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

/// An index of a link; a capture of 2^32 links does not fit into memory long before this.
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
        let (mut fold, mut page) = (Fold::new(1 << 20), FoldedPage::default());
        captures.iter().for_each(|(time, payload)| fold.add(7, *time, payload).unwrap());
        fold.finish(7, &mut page);
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

    #[test]
    fn of_records_without_a_date_the_newest_counts() {
        let undated = |age: &str, links: &[u128]| {
            let mut record = vec![kind::UNDATED];
            record.extend([0; 16]);
            wire::put(&mut record, age.len() as u64);
            record.extend(age.as_bytes());
            record.extend(&payload(kind::LINKS, 0, None, links)[17..]);
            (0, record)
        };
        let dated = (0, payload(kind::LINKS, 0, None, &[9]));
        let other = (7, payload(kind::LINKS, 0, None, &[8]));
        for (records, links, older) in [
            (vec![undated("b", &[1, 2])], vec![1, 2], 0),
            (vec![undated("a", &[1, 2]), undated("b", &[3]), undated("ab", &[4])], vec![3], 2),
            (vec![undated("b", &[3]), undated("ab", &[4]), undated("a", &[1, 2])], vec![3], 2),
            (vec![undated("a", &[1]), undated("b", &[])], vec![], 1),
            (vec![undated("a", &[1]), dated.clone(), undated("b", &[2])], vec![9], 2),
            (vec![dated.clone(), undated("b", &[2]), dated], vec![9], 1),
        ] {
            let (mut fold, mut page) = (Fold::new(1 << 20), FoldedPage::default());
            let records = records.into_iter().chain([other.clone()]);
            records.for_each(|(time, payload)| fold.add(7, time, &payload).unwrap());
            fold.finish(7, &mut page);
            assert_eq!((links_at(&page, 0), links_at(&page, 7)), (Some(links), Some(vec![8])));
            assert_eq!(fold.older_undated, older);
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

    #[test]
    fn a_page_that_does_not_fit_is_an_error() {
        let mut fold = Fold::new(10_000);
        let added = (0..1_000).try_for_each(|time| fold.add(9, time, &payload(kind::LINKS, 0, None, &[4, 5])));
        assert!(matches!(added, Err(Error::PageTooLarge { captures: 50..500, .. })), "{added:?}");
    }
}
