//! A page over time, and the in-links of a URL over time. Each is one record of three layers: of the out-link layers,
//! or of the in-link layers.
//!
//! Writers take these types, and readers return them. [`Page::flaw`] and [`InLinks::flaw`] return the invariant that a
//! record breaks. Writers reject such records; readers and `check` report them. Cost: one pass over the record.

pub(crate) mod counts;
pub(crate) mod evidence;

use std::convert::Infallible;
use std::ops::Range;

use crate::record::capture::Captures;
use crate::record::presence::{self, Change};
use crate::record::status::{self, Failures, Status, StatusChange};
use crate::record::time::{RangeLength, Window};
use crate::record::uid::Uid;

/// One page over all its captures: a record of OL, TS and BV together (Avcular & Suel 2011, section 4).
///
/// `L` is the type of the numbers of URLs: UIDs in a store, numbers of a cell in its link stores.
///
/// ```
/// use webstrata_layers::{Change, Page, Uid, Window};
///
/// // Three captures. Link 7 is in all of them. Link 9 is missing from the first one, and present from the second on.
/// let changes = vec![Change { link: 1, capture: 0 }, Change { link: 1, capture: 1 }];
/// let (timestamps, links) = (vec![100, 200, 300], vec![Uid(7), Uid(9)]);
/// let page = Page { uid: Uid(3), timestamps, links, changes, ..Page::default() };
/// assert_eq!(page.flaw(), None);
///
/// let mut links = Vec::new();
/// page.links_in(Window::as_of(150), &mut links);
/// assert_eq!(links, [Uid(7)]);
/// assert!(page.has_link(Uid(9), Window::Seen { from: 150, to: 250 }));
/// assert_eq!(page.occurrences(), 5);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page<L = Uid> {
    /// The number of the page.
    pub uid: L,
    /// The times of its captures, seconds since 1970, rising, each once; never empty.
    pub timestamps: Vec<i64>,
    /// The indexes of the blank captures, rising: their links are unknown, or they are failures. `changes` says nothing
    /// of these captures.
    pub blank: Vec<u32>,
    /// The union of the links of all captures, rising, each once; each is in at least one capture that is not blank.
    pub links: Vec<L>,
    /// Which link was in which capture, see [`crate::record::presence`]; sorted by (link, capture), never at a blank
    /// capture.
    pub changes: Vec<Change>,
    /// The captures at which the status changes, rising.
    pub statuses: Vec<StatusChange>,
}

/// The pages that linked to one URL, by time range: a record of IL, TR and IBV together. `L` as in [`Page`].
///
/// ```
/// use webstrata_layers::{Change, InLinks, Uid};
///
/// // Page 4 linked in both ranges, page 6 only in the first one.
/// let changes = vec![Change { link: 1, capture: 1 }];
/// let record = InLinks { uid: Uid(1), ranges: vec![0, 86_400], sources: vec![Uid(4), Uid(6)], changes };
/// assert_eq!(record.flaw(), None);
///
/// let mut stretches = Vec::new();
/// record.each_stretch(|source, ranges| stretches.push((record.sources[source], ranges)));
/// assert_eq!(stretches, [(Uid(4), 0..2), (Uid(6), 0..1)]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InLinks<L = Uid> {
    /// The URL that is linked to.
    pub uid: L,
    /// The starts of the time ranges in which at least one source had a capture with the link, seconds since 1970,
    /// rising; never empty.
    pub ranges: Vec<i64>,
    /// The pages that ever linked to the URL, rising, each once; never empty.
    pub sources: Vec<L>,
    /// Which source linked to the URL in which range. Coded as [`Page::changes`], with sources for links and ranges for
    /// captures.
    pub changes: Vec<Change>,
}

impl<L> InLinks<L> {
    /// The record of a URL whose sources are known one by one: rising, each with the starts of the ranges in which it
    /// links, rising. A source without ranges is left out. `None` if no source is left.
    ///
    /// ```
    /// use webstrata_layers::{Change, InLinks, Uid};
    ///
    /// let sources = [(Uid(4), vec![0, 86_400]), (Uid(5), vec![]), (Uid(6), vec![0])];
    /// let record = InLinks::of_sources(Uid(1), sources).expect("two sources link");
    /// assert_eq!((record.ranges, record.sources), (vec![0, 86_400], vec![Uid(4), Uid(6)]));
    /// assert_eq!(record.changes, [Change { link: 1, capture: 1 }]);
    /// ```
    pub fn of_sources(uid: L, sources: impl IntoIterator<Item = (L, Vec<i64>)>) -> Option<Self> {
        let linking: Vec<_> = sources.into_iter().filter(|(_, starts)| !starts.is_empty()).collect();
        let mut ranges: Vec<i64> = linking.iter().flat_map(|(_, starts)| starts).copied().collect();
        ranges.sort_unstable();
        ranges.dedup();
        let index = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let mut changes = Vec::new();
        for (link, (_, starts)) in (0..).zip(&linking) {
            // Where the last stretch ended. Each source is present before its first change.
            let mut end = 0;
            for at in starts.iter().map(|start| ranges.partition_point(|range| range < start)) {
                if at > end {
                    changes.extend([end, at].map(|at| Change { link, capture: index(at) }));
                }
                end = at + 1;
            }
            if end < ranges.len() {
                changes.push(Change { link, capture: index(end) });
            }
        }
        let sources: Vec<L> = linking.into_iter().map(|(source, _)| source).collect();
        (!sources.is_empty()).then_some(Self { uid, ranges, sources, changes })
    }

    /// Calls `visit` with the index of each source and each stretch of ranges in which the source links, in order.
    pub fn each_stretch(&self, mut visit: impl FnMut(usize, Range<usize>)) {
        let mut changes = self.changes.iter().peekable();
        for source in 0..self.sources.len() {
            let mut since = Some(0);
            while let Some(change) = changes.next_if(|change| change.link as usize == source) {
                let range = change.capture as usize;
                since = match since {
                    None => Some(range),
                    Some(first) => {
                        if first < range {
                            visit(source, first..range);
                        }
                        None
                    }
                };
            }
            if let Some(first) = since.filter(|&first| first < self.ranges.len()) {
                visit(source, first..self.ranges.len());
            }
        }
    }

    /// For each source, the number of seconds that it linked in total, at the precision of time ranges.
    pub fn lives(&self, in_range: RangeLength) -> Vec<i64> {
        let mut lives = vec![0; self.sources.len()];
        let end = |range: usize| in_range.end(self.ranges[range]);
        self.each_stretch(|source, ranges| lives[source] += end(ranges.end - 1) - self.ranges[ranges.start]);
        lives
    }
}

/// An invariant that a record breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// A page has no capture, or in-links have no range.
    #[error("no timestamp")]
    NoTimes,
    /// In-links have no source.
    #[error("no source")]
    NoSources,
    /// Timestamps or range starts are out of order, or one occurs twice.
    #[error("time {got} after {previous}")]
    Times {
        /// The time before.
        previous: i64,
        /// The time found.
        got: i64,
    },
    /// Milliseconds cannot hold a time in 64 bits, or a time is not a whole second.
    #[error("time {0} is not a whole second that 64 bits of milliseconds can hold")]
    TimeOutside(i64),
    /// Links or sources are out of order, or one occurs twice.
    #[error("link {got} after {previous}")]
    Links {
        /// The link before.
        previous: u64,
        /// The link found.
        got: u64,
    },
    /// Indexes of blank captures are out of order or outside the captures.
    #[error("blank capture {0} is out of order or outside the captures")]
    Blank(u32),
    /// A change of status is out of order, outside the captures, to the same status, or to a number that no status has.
    #[error("status of capture {0} is out of order, outside the captures, no change, or no status")]
    Status(u32),
    /// A failure is not blank.
    #[error("capture {0} is a failure, and not blank")]
    Failure(u32),
    /// Changes are out of order, outside the matrix, or at a blank capture.
    #[error("change of link {} at capture {} is out of order, outside or at a blank capture", .0.link, .0.capture)]
    Change(Change),
    /// The number of digests differs from the number of captures, or all digests are 0.
    #[error("{0} digests, which are not one a capture, or all 0")]
    Digests(usize),
    /// A revisit is out of order or outside the captures, or its links are out of order.
    #[error("revisit at capture {0} is out of order or outside the captures, or its links are out of order")]
    Revisit(u32),
    /// A payload is out of order, outside the captures or at a revisit, its digest is 0 or, as the first one, not the
    /// digest of the capture, or its links are out of order or not links of the page.
    #[error("payload at capture {0} is out of order, outside, at a revisit, or its digest or links are not valid")]
    Payload(u32),
    /// The forms do not fit the links.
    #[error("the forms are not those of the links")]
    Forms,
    /// A link is in no capture, or a source is in no range.
    #[error("link number {0} is in no capture")]
    NeverPresent(u32),
    /// A range has no source.
    #[error("range number {0} has no source")]
    EmptyRange(u32),
    /// There are more links, captures or changes than 32 bits can number.
    #[error("more links, captures or changes than 32 bits number")]
    TooLarge,
}

impl<L> Page<L> {
    /// The same page with other numbers of URLs. `number` must keep their order.
    pub fn renumbered<M>(self, mut number: impl FnMut(L) -> M) -> Page<M> {
        self.try_renumbered(|id| Ok::<_, Infallible>(number(id))).unwrap_or_else(|never| match never {})
    }

    /// As [`Page::renumbered`], with a `number` that may fail.
    ///
    /// # Errors
    /// The first error of `number`.
    pub fn try_renumbered<M, E>(self, mut number: impl FnMut(L) -> Result<M, E>) -> Result<Page<M>, E> {
        let Self { uid, timestamps, blank, links, changes, statuses } = self;
        let uid = number(uid)?;
        let links = links.into_iter().map(number).collect::<Result<_, _>>()?;
        Ok(Page { uid, timestamps, blank, links, changes, statuses })
    }
}

impl<L: Copy + Ord + Into<u64>> Page<L> {
    /// The first invariant that this record breaks.
    pub fn flaw(&self) -> Option<Flaw> {
        times_flaw(&self.timestamps)
            .or_else(|| rising_flaw(&self.links))
            .or_else(|| {
                let rising = self.blank.windows(2).find(|pair| pair[0] >= pair[1]).map(|pair| pair[1]);
                let outside = || self.blank.last().copied().filter(|&last| last as usize >= self.timestamps.len());
                rising.or_else(outside).map(Flaw::Blank)
            })
            .or_else(|| status::flaw(&self.statuses, self.timestamps.len()).map(Flaw::Status))
            .or_else(|| self.failures().find(|at| self.blank.binary_search(at).is_err()).map(Flaw::Failure))
            .or_else(|| changes_flaw(&self.changes, self.links.len(), self.timestamps.len(), &self.blank))
            .or_else(|| never_present(&self.changes, self.links.len(), self.timestamps.len(), &self.blank))
    }

    /// Replaces the contents of `links` by the page's links in a window.
    pub fn links_in(&self, window: Window, links: &mut Vec<L>) {
        links.clear();
        self.links_within(self.captures().selected(window).as_slice(), links);
    }

    /// Appends the page's links in any of these stretches of captures. A stretch is given by its first and its last
    /// capture.
    pub fn links_within(&self, stretches: &[(u32, u32)], links: &mut Vec<L>) {
        let stretch = |at| links.extend_from_slice(&self.links[at]);
        presence::visit_in(&self.changes, self.links.len(), stretches, stretch);
    }

    /// Whether the page has a link in a window.
    pub fn has_link(&self, link: L, window: Window) -> bool {
        self.has_link_within(link, self.captures().selected(window))
    }

    /// Whether the page has a link in any of these stretches of captures. A stretch is given by its first and last
    /// capture.
    pub fn has_link_within(&self, link: L, stretches: impl IntoIterator<Item = (u32, u32)>) -> bool {
        let Some(changes) = self.changes_of(link) else { return false };
        stretches.into_iter().any(|(first, last)| presence::any_in(changes, first, last))
    }

    /// The changes of a link; `None` if the page never has the link.
    fn changes_of(&self, link: L) -> Option<&[Change]> {
        let at = self.links.binary_search(&link).ok()?;
        let start = self.changes.partition_point(|change| (change.link as usize) < at);
        let count = self.changes[start..].partition_point(|change| change.link as usize == at);
        Some(&self.changes[start..start + count])
    }

    /// The starts of the time ranges in which the page has a link, rising, as in-link records have them.
    pub fn ranges_of(&self, link: L, length: RangeLength) -> Vec<i64> {
        let Some(changes) = self.changes_of(link) else { return Vec::new() };
        let intervals = presence::intervals(changes, u32::try_from(self.timestamps.len()).unwrap_or(u32::MAX));
        let present = intervals.into_iter().flat_map(|(first, last)| first..=last);
        let mut ranges: Vec<i64> = present
            .filter(|&capture| !self.is_blank(capture))
            .map(|capture| length.start(self.timestamps[capture as usize]))
            .collect();
        ranges.dedup();
        ranges
    }

    /// The captures of the page.
    pub fn captures(&self) -> Captures<'_> {
        Captures { times: &self.timestamps, blank: &self.blank, statuses: &self.statuses }
    }

    /// The number of pairs of a link and a capture with this link. Blank captures do not count.
    pub fn occurrences(&self) -> u64 {
        let captures = u32::try_from(self.timestamps.len()).unwrap_or(u32::MAX);
        let marked = (self.timestamps.len() - self.blank.len()) as u64;
        let mut count = marked * self.links.len() as u64;
        for (_, link_changes) in presence::by_link(&self.changes) {
            let present = presence::intervals(link_changes, captures)
                .iter()
                .map(|&(first, last)| self.marked_between(first, last))
                .sum::<u64>();
            count -= marked - present;
        }
        count
    }

    /// Whether a capture is blank: the presence matrix says nothing of it. Cost: a search among the blank captures.
    pub fn is_blank(&self, capture: u32) -> bool {
        self.blank.binary_search(&capture).is_ok()
    }

    /// Whether the links of a capture are known, or those that were found if it is cut. The links of a failure are
    /// known: it has none.
    pub fn is_known(&self, capture: u32) -> bool {
        !self.is_blank(capture) || self.status(capture).is_failure()
    }

    /// Whether a capture tells which links the page lacks from then on. It does if it is whole, or if it is a failure
    /// that ends the page ([`Failures::End`]).
    pub fn tells(&self, capture: u32) -> bool {
        let status = self.status(capture);
        self.is_known(capture) && !status.is_cut() && Failures::End.counts(status)
    }

    /// The captures that are failures, rising.
    pub fn failures(&self) -> impl Iterator<Item = u32> + '_ {
        status::failures(&self.statuses, u32::try_from(self.timestamps.len()).unwrap_or(u32::MAX))
    }

    /// The status of a capture.
    pub fn status(&self, capture: u32) -> Status {
        status::status_at(&self.statuses, capture)
    }

    /// The number of captures in `first..=last` that are not blank.
    pub fn marked_between(&self, first: u32, last: u32) -> u64 {
        let blank = self.blank.partition_point(|&at| at <= last) - self.blank.partition_point(|&at| at < first);
        u64::from(last - first) + 1 - blank as u64
    }
}

impl<L> InLinks<L> {
    /// The same record with other numbers of URLs. `number` must keep their order.
    pub fn renumbered<M>(self, mut number: impl FnMut(L) -> M) -> InLinks<M> {
        self.try_renumbered(|id| Ok::<_, Infallible>(number(id))).unwrap_or_else(|never| match never {})
    }

    /// As [`InLinks::renumbered`], with a `number` that may fail.
    ///
    /// # Errors
    /// The first error of `number`.
    pub fn try_renumbered<M, E>(self, mut number: impl FnMut(L) -> Result<M, E>) -> Result<InLinks<M>, E> {
        let Self { uid, ranges, sources, changes } = self;
        let uid = number(uid)?;
        Ok(InLinks { uid, ranges, sources: sources.into_iter().map(number).collect::<Result<_, _>>()?, changes })
    }
}

impl<L: Copy + Ord + Into<u64>> InLinks<L> {
    /// The first invariant that this record breaks.
    pub fn flaw(&self) -> Option<Flaw> {
        times_flaw(&self.ranges)
            .or_else(|| self.sources.is_empty().then_some(Flaw::NoSources))
            .or_else(|| rising_flaw(&self.sources))
            .or_else(|| changes_flaw(&self.changes, self.sources.len(), self.ranges.len(), &[]))
            .or_else(|| never_present(&self.changes, self.sources.len(), self.ranges.len(), &[]))
            .or_else(|| self.empty_range())
    }

    /// The first range without a source. A source without changes is in all ranges, so then no range is empty.
    fn empty_range(&self) -> Option<Flaw> {
        let changed = presence::by_link(&self.changes).count();
        if changed < self.sources.len() {
            return None;
        }
        let ranges = u32::try_from(self.ranges.len()).ok()?;
        let mut depth = vec![0i64; self.ranges.len() + 1];
        for (_, link_changes) in presence::by_link(&self.changes) {
            for (first, last) in presence::intervals(link_changes, ranges) {
                depth[first as usize] += 1;
                depth[last as usize + 1] -= 1;
            }
        }
        let mut present = 0;
        (0..ranges)
            .find(|&at| {
                present += depth[at as usize];
                present == 0
            })
            .map(Flaw::EmptyRange)
    }
}

fn times_flaw(times: &[i64]) -> Option<Flaw> {
    if times.is_empty() {
        return Some(Flaw::NoTimes);
    }
    if u32::try_from(times.len()).is_err() {
        return Some(Flaw::TooLarge);
    }
    let disorder = times.windows(2).find(|pair| pair[0] >= pair[1]);
    let outside = || [times[0], times[times.len() - 1]].into_iter().find(|time| time.checked_mul(1000).is_none());
    disorder.map(|pair| Flaw::Times { previous: pair[0], got: pair[1] }).or_else(|| outside().map(Flaw::TimeOutside))
}

fn rising_flaw<L: Copy + Ord + Into<u64>>(links: &[L]) -> Option<Flaw> {
    if u32::try_from(links.len()).is_err() {
        return Some(Flaw::TooLarge);
    }
    let disorder = links.windows(2).find(|pair| pair[0] >= pair[1]);
    disorder.map(|pair| Flaw::Links { previous: pair[0].into(), got: pair[1].into() })
}

fn changes_flaw(changes: &[Change], links: usize, captures: usize, blank: &[u32]) -> Option<Flaw> {
    let disorder = changes.windows(2).find(|pair| pair[0] >= pair[1]).map(|pair| pair[1]);
    let wrong = |change: &&Change| {
        change.link as usize >= links
            || change.capture as usize >= captures
            || (!blank.is_empty() && blank.binary_search(&change.capture).is_ok())
    };
    disorder.or_else(|| changes.iter().find(wrong).copied()).map(Flaw::Change)
}

/// The first link that is in no capture. Changes must be in order and inside the matrix.
fn never_present(changes: &[Change], links: usize, captures: usize, blank: &[u32]) -> Option<Flaw> {
    if links > 0 && blank.len() >= captures {
        return Some(Flaw::NeverPresent(0));
    }
    let first_marked = (0u32..).zip(blank).take_while(|(at, blank)| at == *blank).count();
    presence::by_link(changes)
        // No change is at a blank capture, so a second change, or a first change after a capture that is not blank,
        // means presence.
        .find(|(_, link_changes)| link_changes.len() == 1 && link_changes[0].capture as usize <= first_marked)
        .map(|(link, _)| Flaw::NeverPresent(link))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(link: u32, capture: u32) -> Change {
        Change { link, capture }
    }

    fn status(capture: u32, code: u16) -> StatusChange {
        StatusChange { capture, status: Status::new(code).unwrap() }
    }

    fn page() -> Page {
        Page {
            uid: Uid(1),
            timestamps: vec![10, 20, 30, 40],
            blank: vec![0, 2],
            links: [3, 5].map(Uid).to_vec(),
            changes: vec![change(1, 1), change(1, 3)],
            statuses: vec![],
        }
    }

    #[test]
    fn a_sound_page() {
        assert_eq!(page().flaw(), None);
        // Link 3 is in both captures that are not blank, link 5 only in the last one.
        assert_eq!(page().occurrences(), 3);
    }

    #[test]
    fn each_broken_invariant_is_named() {
        type Break = fn(&mut Page);
        let cases: [(Break, Flaw); 13] = [
            (|p| p.timestamps.clear(), Flaw::NoTimes),
            (|p| p.timestamps[1] = 10, Flaw::Times { previous: 10, got: 10 }),
            (|p| p.timestamps[3] = i64::MAX, Flaw::TimeOutside(i64::MAX)),
            (|p| p.links[1] = Uid(3), Flaw::Links { previous: 3, got: 3 }),
            (|p| p.blank[1] = 4, Flaw::Blank(4)),
            (|p| p.blank[1] = 0, Flaw::Blank(0)),
            (|p| p.statuses = vec![status(1, 404)], Flaw::Failure(1)),
            (|p| p.statuses = vec![status(0, 200)], Flaw::Status(0)),
            (|p| p.statuses = vec![status(0, 404), status(4, 200)], Flaw::Status(4)),
            (|p| p.changes[1] = change(1, 2), Flaw::Change(change(1, 2))),
            (|p| p.changes[1] = change(2, 1), Flaw::Change(change(2, 1))),
            (|p| p.changes.reverse(), Flaw::Change(change(1, 1))),
            (|p| p.changes.truncate(1), Flaw::NeverPresent(1)),
        ];
        for (break_it, flaw) in cases {
            let mut broken = page();
            break_it(&mut broken);
            assert_eq!(broken.flaw(), Some(flaw), "{broken:?}");
        }
        let all_blank = Page { blank: vec![0, 1, 2, 3], changes: vec![], ..page() };
        assert_eq!(all_blank.flaw(), Some(Flaw::NeverPresent(0)));
    }

    #[test]
    fn in_links_need_a_source_in_every_range() {
        let record = InLinks {
            uid: Uid(1),
            ranges: vec![0, 100, 200],
            sources: [4, 6].map(Uid).to_vec(),
            changes: vec![change(0, 1)],
        };
        assert_eq!(record.flaw(), None);
        let gap = InLinks { changes: vec![change(0, 1), change(1, 1), change(1, 2)], ..record.clone() };
        assert_eq!(gap.flaw(), Some(Flaw::EmptyRange(1)));
        assert_eq!(InLinks { sources: vec![], changes: vec![], ..record.clone() }.flaw(), Some(Flaw::NoSources));
        assert_eq!(InLinks { changes: vec![change(1, 0)], ..record }.flaw(), Some(Flaw::NeverPresent(1)));
    }
}
