//! The questions that every form of a graph answers: trait [`Links`], with the answers about time written once.
//!
//! Reads pages and in-link records from whoever implements the trait; gives UIDs, rising, and seconds, UTC. Captures whose links
//! are unknown never give links. Source: Avcular & Suel 2011, section 7 (the calls), DESIGN 5.2 (the three questions of time).

use std::sync::Arc;

use crate::error::Error;
use crate::page::{InLinks, Page};
use crate::presence::{self, Change};
use crate::time::{RangeLength, Window};

/// A capture of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureTime {
    /// When, in seconds.
    pub time: i64,
    /// Whether its links are known.
    pub known: bool,
}

/// Consecutive known captures that had a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lifespan {
    /// The link.
    pub link: u64,
    /// Time of the first of the captures.
    pub first: i64,
    /// Time of the last of them.
    pub last: i64,
}

/// How right answers about in-links are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// As right as out-links: each source is asked.
    Exact,
    /// To the time ranges of the in-link layers: maybe sources too many, never too few.
    Range,
}

/// A link graph over time.
pub trait Links {
    /// The epoch in which its UIDs are true.
    fn epoch(&self) -> u64;

    /// The UID of a URL (WHATWG-serialised, without fragment).
    ///
    /// # Errors
    /// What the storage refuses; so in all calls.
    fn uid(&self, url: &str) -> Result<Option<u64>, Error>;

    /// The URL of a UID.
    ///
    /// # Errors
    /// [`Error::UnknownUid`], here and in all calls that take a UID.
    fn url(&self, uid: u64) -> Result<String, Error>;

    /// The page, or `None` when the URL was never captured.
    ///
    /// # Errors
    /// See [`Links::url`].
    fn page(&self, uid: u64) -> Result<Option<Arc<Page>>, Error>;

    /// What linked to the URL, or `None` when nothing ever did.
    ///
    /// # Errors
    /// See [`Links::url`].
    fn in_record(&self, uid: u64) -> Result<Option<Arc<InLinks>>, Error>;

    /// The length of the time ranges of in-link records.
    fn in_range(&self) -> RangeLength;

    /// The captures of the page, in order of time.
    ///
    /// # Errors
    /// See [`Links::url`].
    fn captures(&self, uid: u64) -> Result<Vec<CaptureTime>, Error> {
        let Some(page) = self.page(uid)? else { return Ok(Vec::new()) };
        let mut unknown = page.unknown.iter().peekable();
        let capture = |(at, &time): (u32, &i64)| CaptureTime { time, known: unknown.next_if_eq(&&at).is_none() };
        Ok((0..).zip(&page.timestamps).map(capture).collect())
    }

    /// The links of the page in the window.
    ///
    /// # Errors
    /// See [`Links::url`].
    fn out_links(&self, uid: u64, window: Window) -> Result<Vec<u64>, Error> {
        let Some(page) = self.page(uid)? else { return Ok(Vec::new()) };
        let Some((first, last)) = captures_in(&page.timestamps, &page.unknown, window) else {
            return Ok(Vec::new());
        };
        if page.changes.is_empty() {
            return Ok(page.links.clone());
        }
        let present = presence::in_any(&page.changes, page.links.len(), first, last);
        Ok(present.into_iter().map(|at| page.links[at as usize]).collect())
    }

    /// Whether the page has the link in the window.
    ///
    /// # Errors
    /// See [`Links::url`].
    fn has_link(&self, uid: u64, link: u64, window: Window) -> Result<bool, Error> {
        let Some(page) = self.page(uid)? else { return Ok(false) };
        let Ok(at) = page.links.binary_search(&link) else { return Ok(false) };
        let Some((first, last)) = captures_in(&page.timestamps, &page.unknown, window) else { return Ok(false) };
        Ok(presence::any_in(changes_of(&page.changes, at), first, last))
    }

    /// The pages that link to the URL in the window: those whose [`Links::out_links`] have it.
    ///
    /// # Errors
    /// See [`Links::url`].
    fn in_links(&self, uid: u64, window: Window, precision: Precision) -> Result<Vec<u64>, Error> {
        let Some(record) = self.in_record(uid)? else { return Ok(Vec::new()) };
        // A source that has the link at some time has it in the range of that time.
        let (from, to) = match window {
            Window::Seen { from, to } if from > to => return Ok(Vec::new()),
            Window::Seen { from, to } => (from, to),
            Window::AsOf(time) => (i64::MIN, time),
        };
        let length = self.in_range();
        let first = record.ranges.partition_point(|&start| length.end(start) < from);
        let Some((first, last)) = whole(first, record.ranges.partition_point(|&start| start <= to)) else {
            return Ok(Vec::new());
        };
        let present = presence::in_any(&record.changes, record.sources.len(), first, last);
        let mut sources: Vec<u64> = present.into_iter().map(|at| record.sources[at as usize]).collect();
        if precision == Precision::Exact {
            let mut failed = None;
            sources.retain(|&source| {
                failed.is_none()
                    && self.has_link(source, uid, window).unwrap_or_else(|error| {
                        failed = Some(error);
                        false
                    })
            });
            failed.map_or(Ok(()), Err)?;
        }
        Ok(sources)
    }

    /// For each link of the page, in order, the runs of consecutive known captures that had it. Captures of unknown links
    /// neither make nor break a run.
    ///
    /// # Errors
    /// See [`Links::url`].
    fn lifespans(&self, uid: u64) -> Result<Vec<Lifespan>, Error> {
        let Some(page) = self.page(uid)? else { return Ok(Vec::new()) };
        let captures = u32::try_from(page.timestamps.len()).unwrap_or(u32::MAX);
        let mut spans = Vec::with_capacity(page.links.len());
        for (at, &link) in page.links.iter().enumerate() {
            for (first, last) in presence::runs(changes_of(&page.changes, at), captures) {
                let known = known_ends(first as usize, last as usize + 1, &page.unknown);
                spans.extend(known.map(|(first, last)| Lifespan {
                    link,
                    first: page.timestamps[first as usize],
                    last: page.timestamps[last as usize],
                }));
            }
        }
        Ok(spans)
    }
}

/// The changes of one link.
fn changes_of(changes: &[Change], link: usize) -> &[Change] {
    let first = changes.partition_point(|change| (change.link as usize) < link);
    let count = changes[first..].partition_point(|change| change.link as usize == link);
    &changes[first..first + count]
}

/// The captures that a window selects, as first and last index, both known; unknown ones between them carry the bits of a
/// selected one. `None` when no known capture is selected. `times` and `unknown` rise.
pub fn captures_in(times: &[i64], unknown: &[u32], window: Window) -> Option<(u32, u32)> {
    let (first, end) = match window {
        Window::Seen { from, to } => {
            (times.partition_point(|&time| time < from), times.partition_point(|&time| time <= to))
        }
        Window::AsOf(time) => {
            let end = times.partition_point(|&other| other <= time);
            (end.checked_sub(1)?, end)
        }
    };
    known_ends(first, end, unknown)
}

/// The first and the last known capture of `first..end`.
fn known_ends(first: usize, end: usize, unknown: &[u32]) -> Option<(u32, u32)> {
    let (mut first, mut last) = whole(first, end)?;
    if !unknown.is_empty() {
        let is_unknown = |at: u32| unknown.binary_search(&at).is_ok();
        while is_unknown(first) {
            if first == last {
                return None;
            }
            first += 1;
        }
        while is_unknown(last) {
            last -= 1;
        }
    }
    Some((first, last))
}

/// `first..end` as first and last, where it is not empty.
fn whole(first: usize, end: usize) -> Option<(u32, u32)> {
    if first >= end {
        return None;
    }
    Some((u32::try_from(first).ok()?, u32::try_from(end - 1).ok()?))
}
