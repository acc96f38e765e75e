//! The counts of pages, captures and links of a row, and their sums over the rows of an epoch.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::record::capture::Captures;
use crate::record::page::Page;
use crate::record::status::{Cut, Status};
use crate::record::time::RangeLength;

/// The counts of a row or of an epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// URLs: pages and link targets.
    pub urls: u64,
    /// URLs with at least one capture.
    pub pages: u64,
    /// Captures.
    pub captures: u64,
    /// Captures whose links are unknown.
    pub unknown_captures: u64,
    /// Captures whose bodies were not read whole, by reason.
    #[serde(default, skip_serializing_if = "CutCaptures::is_empty")]
    pub cut_captures: CutCaptures,
    /// Captures with a status of 400 or above.
    pub failed_captures: u64,
    /// Pairs of a page and a link that any of its captures has.
    pub links: u64,
    /// Triples of a page, a known capture and a link of this capture.
    pub occurrences: u64,
    /// Time of the first capture; `null` without captures.
    pub first_time: Option<i64>,
    /// Time of the last capture; `null` without captures.
    pub last_time: Option<i64>,
}

/// The number of cut captures by reason, in the order of [`Cut::ALL`]. In JSON, an object with the reasons that occur.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CutCaptures([u64; Cut::ALL.len()]);

impl CutCaptures {
    /// Whether no capture is cut.
    pub fn is_empty(&self) -> bool {
        self.sum() == 0
    }

    /// The number of all cut captures.
    pub fn sum(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The reasons that occur, with their numbers.
    pub fn reasons(&self) -> impl Iterator<Item = (Cut, u64)> {
        Cut::ALL.into_iter().zip(self.0).filter(|(_, count)| *count > 0)
    }

    fn add(&mut self, reason: Cut, count: u64) {
        let known = Cut::ALL.into_iter().zip(&mut self.0).find(|(cut, _)| *cut == reason);
        known.into_iter().for_each(|(_, known)| *known = known.saturating_add(count));
    }
}

impl Serialize for CutCaptures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.reasons())
    }
}

impl<'de> Deserialize<'de> for CutCaptures {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut all = Self::default();
        BTreeMap::<Cut, u64>::deserialize(deserializer)?.into_iter().for_each(|(reason, count)| all.add(reason, count));
        Ok(all)
    }
}

impl Counts {
    /// The first second of each range, from the range of the first capture to the range of the last one.
    pub fn periods(&self, length: RangeLength) -> Vec<i64> {
        let times = self.first_time.zip(self.last_time);
        times.into_iter().flat_map(|(first, last)| length.starts(first, last)).collect()
    }

    /// Counts a page with its captures and links, but not its URL.
    pub fn add_page(&mut self, page: &Page) {
        let failures = page.failures().count() as u64;
        let mut cut_captures = CutCaptures::default();
        let captures = Some(page.captures()).filter(|captures| captures.has_cut());
        for capture in captures.into_iter().flat_map(Captures::iter).filter(|capture| capture.known) {
            capture.status.reason().into_iter().for_each(|reason| cut_captures.add(reason, 1));
        }
        let removed = page.failures().filter(|&at| page.status(at) == Status::REMOVED).count() as u64;
        self.add(&Counts {
            urls: 0,
            pages: 1,
            captures: page.timestamps.len() as u64 - removed,
            unknown_captures: page.blank.len() as u64 - failures,
            cut_captures,
            failed_captures: failures - removed,
            links: page.links.len() as u64,
            occurrences: page.occurrences(),
            first_time: page.timestamps.first().copied(),
            last_time: page.timestamps.last().copied(),
        });
    }

    /// Whether there are captures that leave links unknown: their links are unknown, or they are cut.
    pub fn has_unknown(&self) -> bool {
        self.unknown_captures > 0 || !self.cut_captures.is_empty()
    }

    /// Adds other counts to these counts. A page or link that is in both counts twice.
    pub fn add(&mut self, other: &Counts) {
        self.urls = self.urls.saturating_add(other.urls);
        self.pages = self.pages.saturating_add(other.pages);
        self.captures = self.captures.saturating_add(other.captures);
        self.unknown_captures = self.unknown_captures.saturating_add(other.unknown_captures);
        other.cut_captures.reasons().for_each(|(reason, count)| self.cut_captures.add(reason, count));
        self.failed_captures = self.failed_captures.saturating_add(other.failed_captures);
        self.links = self.links.saturating_add(other.links);
        self.occurrences = self.occurrences.saturating_add(other.occurrences);
        self.first_time = self.first_time.into_iter().chain(other.first_time).min();
        self.last_time = self.last_time.into_iter().chain(other.last_time).max();
    }
}
