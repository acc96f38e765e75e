//! The counts of pages, captures and links of a row, and their sums over the rows of an epoch.

use serde::{Deserialize, Serialize};

use crate::record::page::Page;
use crate::record::status::Status;
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

impl Counts {
    /// The first second of each range, from the range of the first capture to the range of the last one.
    pub fn periods(&self, length: RangeLength) -> Vec<i64> {
        let times = self.first_time.zip(self.last_time);
        times.into_iter().flat_map(|(first, last)| length.starts(first, last)).collect()
    }

    /// Counts a page with its captures and links, but not its URL.
    pub fn add_page(&mut self, page: &Page) {
        let failures = page.failures().count() as u64;
        let removed = page.failures().filter(|&at| page.status(at) == Status::REMOVED).count() as u64;
        self.add(&Counts {
            urls: 0,
            pages: 1,
            captures: page.timestamps.len() as u64 - removed,
            unknown_captures: page.blank.len() as u64 - failures,
            failed_captures: failures - removed,
            links: page.links.len() as u64,
            occurrences: page.occurrences(),
            first_time: page.timestamps.first().copied(),
            last_time: page.timestamps.last().copied(),
        });
    }

    /// Whether there are captures with unknown links.
    pub fn has_unknown(&self) -> bool {
        self.unknown_captures > 0
    }

    /// Adds other counts to these counts. A page or link that is in both counts twice.
    pub fn add(&mut self, other: &Counts) {
        self.urls = self.urls.saturating_add(other.urls);
        self.pages = self.pages.saturating_add(other.pages);
        self.captures = self.captures.saturating_add(other.captures);
        self.unknown_captures = self.unknown_captures.saturating_add(other.unknown_captures);
        self.failed_captures = self.failed_captures.saturating_add(other.failed_captures);
        self.links = self.links.saturating_add(other.links);
        self.occurrences = self.occurrences.saturating_add(other.occurrences);
        self.first_time = self.first_time.into_iter().chain(other.first_time).min();
        self.last_time = self.last_time.into_iter().chain(other.last_time).max();
    }
}
