//! A page over time, and a URL's in-links over time: one record of the three out-side or in-side layers.
//!
//! The types that writers take and readers give. [`Page::flaw`] and [`InLinks::flaw`] say which invariant a record
//! breaks; writers refuse such records, readers and `check` report them. Cost: one pass over the record.

use std::convert::Infallible;

use crate::record::capture::Captures;
use crate::record::capture::captures_in;
use crate::record::presence::{self, Change};
use crate::record::time::Window;
use crate::record::uid::Uid;

/// One page over all its captures: a record of OL, TS and BV together (Avcular & Suel 2011, section 4).
///
/// `L` says what numbers its URLs: UIDs in a store, numbers of a cell in its link stores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page<L = Uid> {
    /// The page.
    pub uid: L,
    /// Times of its captures, seconds since 1970, rising, each once; never empty.
    pub timestamps: Vec<i64>,
    /// Indexes of the captures whose links are unknown, rising.
    pub unknown: Vec<u32>,
    /// The union of the links of all captures, rising, each once; each is in at least one known capture.
    pub links: Vec<L>,
    /// Which link was in which capture, see [`crate::record::presence`]; sorted by (link, capture), never at an unknown
    /// capture.
    pub changes: Vec<Change>,
}

/// What linked to one URL, by time range: a record of IL, TR and IBV together. `L` as in [`Page`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InLinks<L = Uid> {
    /// The URL that is linked to.
    pub uid: L,
    /// Starts of the time ranges in which at least one of its sources had a capture with the link, seconds since
    /// 1970, rising; never empty.
    pub ranges: Vec<i64>,
    /// The pages that ever linked to it, rising, each once; never empty.
    pub sources: Vec<L>,
    /// Which source linked to it in which range, coded as [`Page::changes`] with sources for links and ranges for
    /// captures.
    pub changes: Vec<Change>,
}

/// An invariant that a record breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// A page without a capture, or in-links without a range.
    #[error("no timestamp")]
    NoTimes,
    /// In-links without a source.
    #[error("no source")]
    NoSources,
    /// Timestamps or range starts out of order, or one twice.
    #[error("time {got} after {previous}")]
    Times {
        /// The time before.
        previous: i64,
        /// The time found.
        got: i64,
    },
    /// A time that milliseconds cannot hold in 64 bits, or that is no whole second.
    #[error("time {0} is not a whole second that 64 bits of milliseconds can hold")]
    TimeOutside(i64),
    /// Links or sources out of order, or one twice.
    #[error("link {got} after {previous}")]
    Links {
        /// The link before.
        previous: u64,
        /// The link found.
        got: u64,
    },
    /// Indexes of unknown captures out of order, outside the captures, or an empty list that is not null.
    #[error("unknown capture {0} is out of order or outside the captures")]
    Unknown(u32),
    /// Changes out of order, outside the matrix, or at an unknown capture.
    #[error("change of link {} at capture {} is out of order, outside or at an unknown capture", .0.link, .0.capture)]
    Change(Change),
    /// Digests that are not one a capture, or all of them 0.
    #[error("{0} digests, which are not one a capture, or all 0")]
    Digests(usize),
    /// A revisit out of order or outside the captures, or its links out of order.
    #[error("revisit at capture {0} is out of order or outside the captures, or its links are out of order")]
    Revisit(u32),
    /// A link in no known capture, or a source in no range.
    #[error("link number {0} is in no known capture")]
    NeverPresent(u32),
    /// A range with no source.
    #[error("range number {0} has no source")]
    EmptyRange(u32),
    /// More links, captures or changes than 32 bits number.
    #[error("more links, captures or changes than 32 bits number")]
    TooLarge,
}

impl<L> Page<L> {
    /// The same page, its URLs numbered otherwise; `number` keeps their order.
    pub fn renumbered<M>(self, mut number: impl FnMut(L) -> M) -> Page<M> {
        self.try_renumbered(|id| Ok::<_, Infallible>(number(id))).unwrap_or_else(|never| match never {})
    }

    /// As [`Page::renumbered`].
    ///
    /// # Errors
    /// The first of `number`.
    pub fn try_renumbered<M, E>(self, mut number: impl FnMut(L) -> Result<M, E>) -> Result<Page<M>, E> {
        let Self { uid, timestamps, unknown, links, changes } = self;
        let uid = number(uid)?;
        Ok(Page { uid, timestamps, unknown, links: links.into_iter().map(number).collect::<Result<_, _>>()?, changes })
    }
}

impl<L: Copy + Ord + Into<u64>> Page<L> {
    /// The first invariant that this record breaks.
    pub fn flaw(&self) -> Option<Flaw> {
        times_flaw(&self.timestamps)
            .or_else(|| rising_flaw(&self.links))
            .or_else(|| {
                let rising = self.unknown.windows(2).find(|pair| pair[0] >= pair[1]).map(|pair| pair[1]);
                let outside = || self.unknown.last().copied().filter(|&last| last as usize >= self.timestamps.len());
                rising.or_else(outside).map(Flaw::Unknown)
            })
            .or_else(|| changes_flaw(&self.changes, self.links.len(), self.timestamps.len(), &self.unknown))
            .or_else(|| never_present(&self.changes, self.links.len(), self.timestamps.len(), &self.unknown))
    }

    /// Replaces the contents of `links` by its links in a window.
    pub fn links_in(&self, window: Window, links: &mut Vec<L>) {
        links.clear();
        self.links_within(captures_in(&self.timestamps, &self.unknown, window).as_slice(), links);
    }

    /// Appends its links in any of these stretches of captures, each given by its first and its last one.
    pub fn links_within(&self, stretches: &[(u32, u32)], links: &mut Vec<L>) {
        let stretch = |at| links.extend_from_slice(&self.links[at]);
        presence::visit_in(&self.changes, self.links.len(), stretches, stretch);
    }

    /// Whether it has a link in a window.
    pub fn has_link(&self, link: L, window: Window) -> bool {
        self.has_link_within(link, captures_in(&self.timestamps, &self.unknown, window))
    }

    /// Whether it has a link in any of these stretches of captures, each given by its first and its last one.
    pub fn has_link_within(&self, link: L, stretches: impl IntoIterator<Item = (u32, u32)>) -> bool {
        let Ok(at) = self.links.binary_search(&link) else { return false };
        let start = self.changes.partition_point(|change| (change.link as usize) < at);
        let count = self.changes[start..].partition_point(|change| change.link as usize == at);
        let link_changes = &self.changes[start..start + count];
        stretches.into_iter().any(|(first, last)| presence::any_in(link_changes, first, last))
    }

    /// Its captures.
    pub fn captures(&self) -> Captures<'_> {
        Captures { times: &self.timestamps, unknown: &self.unknown }
    }

    /// How often a link was in a known capture, all links together.
    pub fn occurrences(&self) -> u64 {
        let captures = u32::try_from(self.timestamps.len()).unwrap_or(u32::MAX);
        let known = (self.timestamps.len() - self.unknown.len()) as u64;
        let mut count = known * self.links.len() as u64;
        for (_, link_changes) in presence::by_link(&self.changes) {
            let present = presence::intervals(link_changes, captures)
                .iter()
                .map(|&(first, last)| self.known_between(first, last))
                .sum::<u64>();
            count -= known - present;
        }
        count
    }

    /// Whether the links of a capture are known. Cost: a search among the captures of unknown links.
    pub fn is_known(&self, capture: u32) -> bool {
        self.unknown.binary_search(&capture).is_err()
    }

    /// How many of the captures `first..=last` are known.
    pub fn known_between(&self, first: u32, last: u32) -> u64 {
        let unknown = self.unknown.partition_point(|&at| at <= last) - self.unknown.partition_point(|&at| at < first);
        u64::from(last - first) + 1 - unknown as u64
    }
}

impl<L> InLinks<L> {
    /// The same record, its URLs numbered otherwise; `number` keeps their order.
    pub fn renumbered<M>(self, mut number: impl FnMut(L) -> M) -> InLinks<M> {
        self.try_renumbered(|id| Ok::<_, Infallible>(number(id))).unwrap_or_else(|never| match never {})
    }

    /// As [`InLinks::renumbered`].
    ///
    /// # Errors
    /// The first of `number`.
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

    /// The first range without a source: where no source stays without change, each range needs one from the runs.
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

fn changes_flaw(changes: &[Change], links: usize, captures: usize, unknown: &[u32]) -> Option<Flaw> {
    let disorder = changes.windows(2).find(|pair| pair[0] >= pair[1]).map(|pair| pair[1]);
    let wrong = |change: &&Change| {
        change.link as usize >= links
            || change.capture as usize >= captures
            || (!unknown.is_empty() && unknown.binary_search(&change.capture).is_ok())
    };
    disorder.or_else(|| changes.iter().find(wrong).copied()).map(Flaw::Change)
}

/// The first link that is in no known capture; changes are in order and inside the matrix.
fn never_present(changes: &[Change], links: usize, captures: usize, unknown: &[u32]) -> Option<Flaw> {
    if links > 0 && unknown.len() >= captures {
        return Some(Flaw::NeverPresent(0));
    }
    let first_known = (0u32..).zip(unknown).take_while(|(at, unknown)| at == *unknown).count();
    presence::by_link(changes)
        // Changes are at known captures only, so a second change, or a first after a known capture, means presence.
        .find(|(_, link_changes)| link_changes.len() == 1 && link_changes[0].capture as usize <= first_known)
        .map(|(link, _)| Flaw::NeverPresent(link))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(link: u32, capture: u32) -> Change {
        Change { link, capture }
    }

    fn page() -> Page {
        Page {
            uid: Uid(1),
            timestamps: vec![10, 20, 30, 40],
            unknown: vec![0, 2],
            links: [3, 5].map(Uid).to_vec(),
            changes: vec![change(1, 1), change(1, 3)],
        }
    }

    #[test]
    fn a_sound_page() {
        assert_eq!(page().flaw(), None);
        // Link 3 in both known captures, link 5 in the last one only.
        assert_eq!(page().occurrences(), 3);
    }

    #[test]
    fn each_broken_invariant_is_named() {
        type Break = fn(&mut Page);
        let cases: [(Break, Flaw); 10] = [
            (|p| p.timestamps.clear(), Flaw::NoTimes),
            (|p| p.timestamps[1] = 10, Flaw::Times { previous: 10, got: 10 }),
            (|p| p.timestamps[3] = i64::MAX, Flaw::TimeOutside(i64::MAX)),
            (|p| p.links[1] = Uid(3), Flaw::Links { previous: 3, got: 3 }),
            (|p| p.unknown[1] = 4, Flaw::Unknown(4)),
            (|p| p.unknown[1] = 0, Flaw::Unknown(0)),
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
        let all_unknown = Page { unknown: vec![0, 1, 2, 3], changes: vec![], ..page() };
        assert_eq!(all_unknown.flaw(), Some(Flaw::NeverPresent(0)));
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
