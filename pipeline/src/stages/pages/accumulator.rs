//! Folds the captures of one page into one page over time: the core of stage 2, without a dataflow.
//!
//! Reads the captures of a page in order of time, each with its set of links. Returns timestamps, the union of the
//! links, and the changes between captures (the OL, TS and BV of Avcular & Suel 2011, section 4, still with
//! fingerprints for UIDs). Captures in one second are one capture with the union of their links. Among records without
//! a date, only the newest is used, and only if its second has no other capture; the unused records are counted. Links
//! of revisits are unknown here, because revisits may refer to captures of the store. The data to find these captures
//! goes with the page ([`crate::stages::outlinks::revisits`]). Only a revisit of another URL has the links that were
//! lent to it ([`crate::stages::ingest`]), if no other record of its second has links. If the links of a capture are
//! not the links of one digest, the links of each digest go with the page, too
//! ([`crate::stages::pages::accumulator::parts`]).
//!
//! If the links of a page take more than [`VALUES_MAX`] values, all its captures have unknown links
//! ([`crate::stages::large_pages`]). No number of captures is too large.
//!
//! Memory: 18 bytes a capture of one page, 8 more with digests; the links of the captures within a budget, and beyond
//! the budget on disk ([`crate::stages::pages::accumulator::large`]); and the finished record. Cost: linear in the
//! links of the captures, 16 bytes a link, since 98 % of the links of a capture are in the next one, and one comparison
//! of memory finds equal lists.

mod large;
mod moments;
mod parts;

use crate::Error;
use crate::stages::held::links::Accumulated;
use crate::stages::ingest::known_links::hash_of;
use crate::stages::large_pages::{REVISIT_VALUES, VALUES_MAX};
use crate::stages::page_record::RevisitLink;
use crate::stages::pages::accumulator::large::LargeAccumulator;
use crate::stages::pages::accumulator::moments::Moments;
use crate::stages::pages::accumulator::parts::Parts;
use crate::stages::records::{kind, short, without_form};
use std::collections::HashMap;
use std::ops::Range;
use webstrata_engine::{Scratch, wire};
use webstrata_layers::record::join::counted;
use webstrata_layers::{Change, Evidence, Revisit, Status, StatusChange, push_status, revisit_order};

/// The approximate size of an entry of the small tables, in bytes.
const SMALL_BYTES: usize = 64;

/// A page over time with fingerprints for UIDs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AccumulatedPage {
    pub(crate) fingerprint: u128,
    /// The times of the captures, ascending, each once.
    pub(crate) timestamps: Vec<i64>,
    /// The indexes of captures with unknown links and of failures, ascending.
    pub(crate) blank: Vec<u32>,
    /// The captures at which the status changes.
    pub(crate) statuses: Vec<StatusChange>,
    /// The fingerprints of the links with forms, ascending, each once.
    pub(crate) links: Vec<u128>,
    /// The changes, sorted by (link, capture).
    pub(crate) changes: Vec<Change>,
    /// The digests, the payloads and the revisits; links of payloads are indexes into `links`, links of revisits are
    /// indexes into `revisit_links`.
    pub(crate) evidence: Evidence<RevisitLink>,
    /// The fingerprints of the links of revisits, ascending, each once.
    pub(crate) revisit_links: Vec<u128>,
    /// The links of the page that the store has held.
    pub(crate) held: Accumulated,
    /// Whether the links of the page are left out.
    pub(crate) is_left_out: bool,
}

/// The revisits of one second: the least in their order ([`revisit_order`]), with the links of all.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AccumulatedRevisit {
    digest: u64,
    revisit: Revisit<u128>,
}

/// Accumulates page after page, and reuses its buffers.
pub(crate) struct PageAccumulator {
    /// The approximate memory that a page may take, in bytes.
    bytes_max: usize,
    moments: Moments,
    links: Vec<u128>,
    /// The link sets of records that contain their links, as ranges of [`PageAccumulator::links`].
    sets: Vec<Range<usize>>,
    /// The captures that have the links of another capture: number of the moment, hash of the links.
    same: Vec<(usize, u128)>,
    events: Vec<(u128, u32)>,
    /// The links of the records of this second that have another status than 200.
    targets: Vec<u128>,
    /// The links of each second by digest.
    parts: Parts,
    /// The bytes that say how new the last record without a date in this second is, and whether the record counts.
    undated: (Vec<u8>, bool),
    /// The number of records without a date that did not count, over all pages.
    pub(crate) older_undated: u64,
    /// The number of revisits with links, and of lent links, that did not count beside other records of their second,
    /// over all pages.
    pub(crate) displaced: u64,
    scratch: Scratch,
    /// The links on disk, if they do not fit into memory.
    large: Option<LargeAccumulator>,
    values_max: usize,
    /// The number of values of revisits and of their links.
    revisit_values: usize,
    /// Whether the page has too many revisits, whatever its links are.
    is_too_large: bool,
    /// The links of the page that the store has held.
    held: Accumulated,
}

impl PageAccumulator {
    pub(crate) fn new(bytes_max: usize, scratch: &Scratch) -> Self {
        PageAccumulator {
            bytes_max,
            moments: Moments::default(),
            links: Vec::new(),
            sets: Vec::new(),
            same: Vec::new(),
            events: Vec::new(),
            targets: Vec::new(),
            parts: Parts::default(),
            undated: (Vec::new(), false),
            older_undated: 0,
            displaced: 0,
            scratch: scratch.clone(),
            large: None,
            values_max: VALUES_MAX,
            revisit_values: 0,
            is_too_large: false,
            held: Accumulated::default(),
        }
    }

    /// Adds a capture record of the page. Records must come in the order of their bytes: times do not descend, and in a
    /// second the records without a date come after the dated records with links, the newest first.
    ///
    /// # Errors
    /// Temporary files cannot be written or read.
    pub(crate) fn add(&mut self, time: i64, mut payload: &[u8]) -> Result<(), Error> {
        let [kind] = wire::take_array(&mut payload);
        match kind {
            kind::NAME => payload.clone_into(&mut self.held.key),
            kind::HELD => self.held.add(payload),
            kind => self.add_capture(kind, time, payload)?,
        }
        Ok(())
    }

    fn add_capture(&mut self, kind: u8, time: i64, mut payload: &[u8]) -> Result<(), Error> {
        let undated = (kind == kind::UNDATED).then(|| wire::take_falling(&mut payload));
        let status = match kind {
            kind::STATUS | kind::UNDATED | kind::LENT => {
                Status::stored(u16::from_be_bytes(wire::take_array(&mut payload)))
            }
            _ => None,
        };
        let status = status.unwrap_or(Status::OK);
        let digest = short(u128::from_be_bytes(wire::take_array(&mut payload)));
        if self.moments.times.last() != Some(&time) {
            self.end_second()?;
            // The order of captures in one second has no meaning, so the size is checked only after whole seconds.
            self.is_too_large |= self.revisit_values + self.parts.values > self.values_max;
            self.moments.push(time);
            self.undated.0.clear();
        }
        if let Some(undated) = undated
            && !self.counts(undated)
        {
            return Ok(());
        }
        let number = self.moments.len() - 1;
        let said = self.moments.said[number];
        if kind == kind::LENT {
            // The records before this record have decided which revisit the capture is.
            let revisit = self.moments.last_revisit();
            let revisit = revisit.filter(|last| last.revisit.elsewhere && last.digest == digest);
            if revisit.is_none() || said.is_known {
                self.displaced += u64::from(!payload.is_empty());
                return Ok(());
            }
            self.moments.said[number].lent = said.lent.into_iter().chain([status]).min();
            if self.is_too_large {
                return Ok(());
            }
            self.add_set_of(number, payload)?;
            return self.go_to_disk_if_full();
        }
        self.revisit_values -= self.moments.last_revisit_values();
        let own = (!is_silent(kind, payload)).then_some(status);
        let least = said.status.into_iter().chain(own).min();
        if said.status.zip(least).is_some_and(|(before, least)| least < before) {
            self.moments.set_last_digest(0);
            self.parts.forget_digests();
            self.moments.said[number].is_known = false;
        }
        if said.status.is_none() && least.is_some() {
            let silent = self.moments.take_last_revisit();
            self.displaced += u64::from(silent.is_some_and(|silent| !silent.revisit.links.is_empty()));
        }
        self.moments.said[number].status = least;
        if !counted(own, least) {
            self.displaced += u64::from(own.is_none() && payload.len() > SAID_BYTES);
            self.revisit_values += self.moments.last_revisit_values();
            return Ok(());
        }
        let is_least = matches!(kind, kind::LINKS | kind::SAME | kind::STATUS | kind::UNDATED) && least == Some(status);
        if is_least {
            let digests = [self.moments.digest(number), digest].into_iter().filter(|&digest| digest != 0);
            self.moments.set_last_digest(digests.min().unwrap_or(0));
            self.moments.said[number].is_known = !status.is_failure();
        }
        self.revisit_values += self.moments.last_revisit_values();
        // `is_known` decides whether a record without a date counts, also for a page that is too large.
        if self.is_too_large {
            return Ok(());
        }
        let of_part = if is_least { digest } else { 0 };
        if kind == kind::SAME {
            let links = u128::from_be_bytes(wire::take_array(&mut payload));
            self.parts.of(of_part).same.push(links);
            match &mut self.large {
                Some(large) => large.add_same(index(number), links)?,
                None => self.same.push((number, links)),
            }
            return self.go_to_disk_if_full();
        }
        if status.is_failure() {
            self.parts.of(of_part);
            return Ok(());
        }
        if status != Status::OK {
            // A later record may say that the capture is a revisit.
            self.targets.extend(each(payload));
            self.parts.of(of_part).extend(each(payload));
            return Ok(());
        }
        let has_links = matches!(kind, kind::LINKS | kind::UNDATED);
        let (referred, [without_status]): ([u8; 8], [u8; 1]) = match has_links {
            true => ([0; 8], [0]),
            false => (wire::take_array(&mut payload), wire::take_array(&mut payload)),
        };
        if has_links {
            if kind == kind::LINKS
                && let Some(large) = &mut self.large
            {
                large.add_set(payload)?;
            }
            let start = self.links.len();
            self.parts.of(of_part).extend(each(payload));
            self.add_set_of(number, payload)?;
            if kind == kind::LINKS && self.large.is_none() {
                self.sets.push(start..start + payload.len() / size_of::<u128>());
            }
            return self.go_to_disk_if_full();
        }
        let revisit = Revisit {
            capture: 0,
            not_modified: kind == kind::NOT_MODIFIED,
            without_status: without_status == 1,
            elsewhere: kind == kind::ELSEWHERE,
            referred: (referred != [0; 8]).then(|| wire::key_time(referred)),
            links: each(payload).collect(),
        };
        let mut revisit = AccumulatedRevisit { digest, revisit };
        self.revisit_values -= self.moments.last_revisit_values();
        if let Some(other) = self.moments.take_last_revisit() {
            let mut links = [&revisit.revisit.links[..], &other.revisit.links].concat();
            links.sort_unstable();
            links.dedup();
            let order = |one: &AccumulatedRevisit| revisit_order(&one.revisit, one.digest);
            revisit = if order(&other) < order(&revisit) { other } else { revisit };
            revisit.revisit.links = links;
        }
        self.moments.push_revisit(revisit);
        self.revisit_values += self.moments.last_revisit_values();
        Ok(())
    }

    /// Ends the last second: all its records have been added.
    fn end_second(&mut self) -> Result<(), Error> {
        self.add_targets()?;
        let last = self.moments.said.last().filter(|said| said.is_known || said.status.is_some_and(Status::is_failure));
        let capture = last.map(|_| index(self.moments.len() - 1));
        if last.is_some_and(|said| said.is_known)
            && let Some(revisit) = self.moments.last_revisit().filter(|revisit| !revisit.revisit.links.is_empty())
        {
            self.parts.of(0).extend(revisit.revisit.links.iter().copied());
        }
        self.parts.end(capture);
        Ok(())
    }

    /// Gives the last capture the links of its records with another status than 200: its own links if such a record has
    /// the least status, otherwise links of the revisit's own.
    fn add_targets(&mut self) -> Result<(), Error> {
        let mut targets = std::mem::take(&mut self.targets);
        targets.sort_unstable();
        targets.dedup();
        if targets.is_empty() || self.is_too_large {
            return Ok(());
        }
        let number = self.moments.len() - 1;
        if self.moments.said[number].is_known {
            self.add_set_of(number, &targets.iter().flat_map(|link| link.to_be_bytes()).collect::<Vec<_>>())?;
            return self.go_to_disk_if_full();
        }
        self.revisit_values -= self.moments.last_revisit_values();
        if let Some(mut revisit) = self.moments.take_last_revisit() {
            revisit.revisit.links.extend(targets.into_iter().map(without_form));
            revisit.revisit.links.sort_unstable();
            revisit.revisit.links.dedup();
            self.moments.push_revisit(revisit);
        }
        self.revisit_values += self.moments.last_revisit_values();
        Ok(())
    }

    /// Whether a record without a date counts: only the first record of its second counts, with all its parts.
    fn counts(&mut self, undated: &[u8]) -> bool {
        if self.undated.0 != undated {
            self.undated = (undated.to_vec(), self.moments.said.last().is_some_and(|said| !said.is_known));
            self.older_undated += u64::from(!self.undated.1);
        }
        self.undated.1
    }

    /// Moves the links to disk if they take more than the budget.
    fn go_to_disk_if_full(&mut self) -> Result<(), Error> {
        let bytes = self.links.len() * size_of::<u128>() + (self.sets.len() + self.same.len()) * SMALL_BYTES;
        if self.large.is_some() || bytes <= self.bytes_max {
            return Ok(());
        }
        let mut large = LargeAccumulator::new(&self.scratch, self.bytes_max);
        for number in 0..self.moments.len() {
            large.add(index(number), self.links[self.moments.links(number)].iter().copied())?;
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
        self.moments.forget_links();
        self.large = Some(large);
        Ok(())
    }

    /// Adds the links of a record to the links of a capture.
    fn add_set_of(&mut self, number: usize, payload: &[u8]) -> Result<(), Error> {
        let links = each(payload);
        if let Some(large) = &mut self.large {
            return large.add(index(number), links);
        }
        let start = self.links.len();
        self.links.extend(links);
        self.add_links(number, start..self.links.len());
        Ok(())
    }

    /// Adds links, which are sorted and in memory, to the links of a capture.
    fn add_links(&mut self, number: usize, added: Range<usize>) {
        let before = self.moments.links(number);
        let all = if before.is_empty() || self.links[before.clone()] == self.links[added.clone()] {
            added
        } else {
            self.union(before, added)
        };
        self.moments.set_links(number, all);
    }

    /// Gives links to the captures that have the links of another capture; a record of the page contains these links.
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
        for part in &mut self.parts.kept {
            let sets = std::mem::take(&mut part.same).into_iter().filter_map(|hash| by_hash.get(&hash));
            sets.for_each(|set| part.payload.links.extend(&self.links[set.clone()]));
        }
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

    /// Ends the page and prepares for the next page.
    ///
    /// # Errors
    /// Temporary files cannot be written or read.
    pub(crate) fn finish(&mut self, fingerprint: u128, page: &mut AccumulatedPage) -> Result<(), Error> {
        self.end_second()?;
        page.fingerprint = fingerprint;
        std::mem::swap(&mut page.timestamps, &mut self.moments.times);
        page.blank.clear();
        page.statuses.clear();
        for (capture, said) in (0u32..).zip(&self.moments.said) {
            push_status(&mut page.statuses, capture, said.lent.or(said.status).unwrap_or(Status::OK));
        }
        page.links.clear();
        page.changes.clear();
        page.is_left_out = self.is_too_large || !self.finish_links(page)?;
        if page.is_left_out {
            page.blank = (0u32..).zip(&page.timestamps).map(|(capture, _)| capture).collect();
            (page.links, page.changes) = (Vec::new(), Vec::new());
            (page.evidence, page.revisit_links) = (Evidence::default(), Vec::new());
            self.held.forget_links();
        }
        page.held.clear();
        std::mem::swap(&mut page.held, &mut self.held);
        self.moments.clear();
        self.links.clear();
        self.sets.clear();
        self.same.clear();
        self.events.clear();
        self.parts.clear();
        self.large = None;
        self.revisit_values = 0;
        self.is_too_large = false;
        Ok(())
    }

    /// Makes links, changes and evidence. Returns whether they fit into a record.
    fn finish_links(&mut self, page: &mut AccumulatedPage) -> Result<bool, Error> {
        if !self.same.is_empty() {
            self.resolve_same();
        }
        self.gather_evidence(page)?;
        page.blank
            .extend((0u32..).zip(&self.moments.said).filter(|(_, said)| !said.has_links()).map(|(number, _)| number));
        let revisits: usize = page.evidence.revisits.iter().map(|revisit| REVISIT_VALUES + revisit.links.len()).sum();
        let Some(values_left) = self.values_max.checked_sub(revisits) else { return Ok(false) };
        if let Some(large) = self.large.take() {
            let known: Vec<bool> = self.moments.said.iter().map(|said| said.has_links()).collect();
            return Ok(
                large.finish(&known, values_left, page, &mut self.parts.kept)? && self.parts.gather(page, values_left)
            );
        }
        let mut before: Option<&[u128]> = None;
        let mut first: &[u128] = &[];
        let mut first_known = 0;
        let known = (0u32..).zip(&self.moments.said).filter(|(_, said)| said.has_links());
        for number in known.map(|(number, _)| number) {
            let links = &self.links[self.moments.links(number as usize)];
            match before {
                None => (first, first_known) = (links, number),
                Some(before) if before == links => {}
                Some(before) => differences(before, links, |link| self.events.push((link, number))),
            }
            if self.events.len() > values_left {
                return Ok(false);
            }
            before = Some(links);
        }
        self.events.sort_unstable();
        merge_events(first, first_known, &self.events, page);
        Ok(self.parts.gather(page, values_left))
    }

    /// Makes the evidence of the page. If a revisit is in the same second as a capture, the links of its record become
    /// links of the capture. If a revisit was lent links, the links of its record are added to the lent links.
    fn gather_evidence(&mut self, page: &mut AccumulatedPage) -> Result<(), Error> {
        let AccumulatedPage { evidence: Evidence { digests, revisits, payloads, .. }, revisit_links, .. } = page;
        digests.clear();
        revisits.clear();
        payloads.clear();
        revisit_links.clear();
        if self.moments.has_evidence() {
            digests.extend((0..self.moments.said.len()).map(|number| self.moments.digest(number)));
        }
        for (capture, revisit) in std::mem::take(&mut self.moments.revisits) {
            let number = capture as usize;
            let said = self.moments.said[number];
            if said.has_links() {
                if let Some(large) = &mut self.large {
                    large.add(capture, revisit.revisit.links.iter().copied())?;
                } else if !revisit.revisit.links.is_empty() {
                    let start = self.links.len();
                    self.links.extend(&revisit.revisit.links);
                    self.links[start..].sort_unstable();
                    self.add_links(number, start..self.links.len());
                }
            }
            if !said.is_known && said.status.is_none_or(|status| !status.is_failure()) {
                digests[number] = revisit.digest;
                revisit_links.extend(&revisit.revisit.links);
                self.moments.revisits.push((capture, revisit));
            }
        }
        revisit_links.sort_unstable();
        revisit_links.dedup();
        if digests.iter().all(|&digest| digest == 0) {
            digests.clear();
        }
        for (capture, AccumulatedRevisit { revisit, .. }) in &self.moments.revisits {
            let index = |link: &u128| RevisitLink(revisit_links.binary_search(link).map_or(u64::MAX, |at| at as u64));
            let mut links: Vec<RevisitLink> = revisit.links.iter().map(index).collect();
            links.sort_unstable();
            links.dedup();
            let Revisit { not_modified, without_status, elsewhere, referred, .. } = *revisit;
            revisits.push(Revisit { capture: *capture, not_modified, without_status, elsewhere, referred, links });
        }
        Ok(())
    }
}

/// The bytes of a revisit between its digest and its links: the time, and whether there is no status.
const SAID_BYTES: usize = 9;

/// Whether a record says nothing about the status: a revisit with an identical digest and without a status. `payload`
/// begins after the digest.
fn is_silent(kind: u8, payload: &[u8]) -> bool {
    matches!(kind, kind::IDENTICAL | kind::NOT_MODIFIED | kind::ELSEWHERE) && payload.get(SAID_BYTES - 1) == Some(&1)
}

/// Returns the links of a record.
fn each(links: &[u8]) -> impl Iterator<Item = u128> + '_ {
    links.as_chunks::<16>().0.iter().map(|link| u128::from_be_bytes(*link))
}

/// Calls `each` with every link that is in only one of two sorted lists.
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

/// Converts the index of a link or a capture; no record has more of them than fit into 32 bits.
fn index(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Writes links and changes, given the links of the first known capture and the sorted changes after it.
fn merge_events(mut first: &[u128], first_known: u32, events: &[(u128, u32)], page: &mut AccumulatedPage) {
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
            // Before the first known capture a link counts as present, but that capture does not have this link.
            page.changes.push(Change { link: number, capture: first_known });
        }
        page.changes.extend(changed.iter().map(|&(_, capture)| Change { link: number, capture }));
    }
    page.links.extend_from_slice(first);
}

#[cfg(test)]
mod tests;
