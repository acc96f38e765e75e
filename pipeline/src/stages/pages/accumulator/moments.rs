//! The captures of a page while they are accumulated, second by second: one column for each fact about the captures.
//!
//! A page may have millions of captures, and all of them are in memory. Every capture therefore takes only 18 bytes:
//! time, status, and the number of its set of links. Digests take 8 more bytes a capture, once a capture of the page
//! has one. Facts about few captures are in separate lists, with the numbers of the captures. Captures come in order of
//! time. Only the last capture changes, except that the links of any capture may change.

use super::AccumulatedRevisit;
use crate::stages::large_pages::REVISIT_VALUES;
use std::ops::Range;
use webstrata_layers::Status;

/// The facts about a capture from its records.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Said {
    /// The least status of the records, where a revisit has 200; `None` if no record gives one.
    pub(super) status: Option<Status>,
    /// Whether a record is neither a revisit nor a failure.
    pub(super) is_known: bool,
    /// The least status of the captures that lent links to the capture, which is a revisit then.
    pub(super) lent: Option<Status>,
}

impl Said {
    /// Whether the capture has known links.
    pub(super) fn has_links(self) -> bool {
        self.is_known || self.lent.is_some()
    }
}

/// The captures of a page, by number; see the head of this file.
#[derive(Default)]
pub(super) struct Moments {
    /// The times, ascending.
    pub(super) times: Vec<i64>,
    pub(super) said: Vec<Said>,
    /// For each capture, the index of its links in `ranges` plus 1; 0 for no links.
    sets: Vec<u32>,
    /// The places of links in [`super::PageAccumulator::links`]. Equal neighbours are stored once.
    ranges: Vec<(usize, u32)>,
    /// The least digest of the records that count and are not revisits; 0 if there is none. Captures after the last
    /// capture with a digest have no entry.
    digests: Vec<u64>,
    /// The revisits, by the number of their capture.
    pub(super) revisits: Vec<(u32, AccumulatedRevisit)>,
}

impl Moments {
    pub(super) fn len(&self) -> usize {
        self.times.len()
    }

    pub(super) fn push(&mut self, time: i64) {
        self.times.push(time);
        self.said.push(Said::default());
        self.sets.push(0);
    }

    pub(super) fn clear(&mut self) {
        let Self { times, said, sets, ranges, digests, revisits } = self;
        times.clear();
        said.clear();
        sets.clear();
        ranges.clear();
        digests.clear();
        revisits.clear();
    }

    /// Returns the place of the links of a capture.
    pub(super) fn links(&self, number: usize) -> Range<usize> {
        let set = self.sets[number] as usize;
        let (first, count) = set.checked_sub(1).map_or((0, 0), |set| self.ranges[set]);
        first..first + count as usize
    }

    pub(super) fn set_links(&mut self, number: usize, links: Range<usize>) {
        let range = (links.start, u32::try_from(links.len()).unwrap_or(u32::MAX));
        if links.is_empty() {
            self.sets[number] = 0;
            return;
        }
        if self.ranges.last() != Some(&range) {
            self.ranges.push(range);
        }
        self.sets[number] = u32::try_from(self.ranges.len()).unwrap_or(u32::MAX);
    }

    /// Forgets the links of all captures.
    pub(super) fn forget_links(&mut self) {
        self.sets.fill(0);
        self.ranges.clear();
    }

    /// Whether a capture has a digest, or is a revisit.
    pub(super) fn has_evidence(&self) -> bool {
        !self.digests.is_empty() || !self.revisits.is_empty()
    }

    pub(super) fn digest(&self, number: usize) -> u64 {
        self.digests.get(number).copied().unwrap_or(0)
    }

    /// Sets the digest of the last capture.
    pub(super) fn set_last_digest(&mut self, digest: u64) {
        if digest != 0 || self.digests.len() == self.len() {
            self.digests.resize(self.len(), 0);
            self.digests.last_mut().into_iter().for_each(|last| *last = digest);
        }
    }

    /// Returns the revisit of the last capture.
    pub(super) fn last_revisit(&self) -> Option<&AccumulatedRevisit> {
        self.revisits.last().filter(|(number, _)| *number as usize + 1 == self.len()).map(|(_, revisit)| revisit)
    }

    /// Takes the revisit of the last capture.
    pub(super) fn take_last_revisit(&mut self) -> Option<AccumulatedRevisit> {
        self.last_revisit()?;
        self.revisits.pop().map(|(_, revisit)| revisit)
    }

    /// Adds the revisit of the last capture, which must not have a revisit yet.
    pub(super) fn push_revisit(&mut self, revisit: AccumulatedRevisit) {
        self.revisits.push((u32::try_from(self.len() - 1).unwrap_or(u32::MAX), revisit));
    }

    /// Returns the number of values of the last capture's revisit in its record; 0 if a capture of the second is not a
    /// revisit.
    pub(super) fn last_revisit_values(&self) -> usize {
        let is_other = |said: &Said| said.is_known || said.status.is_some_and(Status::is_failure);
        let revisit = self.last_revisit().filter(|_| !self.said.last().is_some_and(is_other));
        revisit.map_or(0, |revisit| REVISIT_VALUES + revisit.revisit.links.len())
    }
}
