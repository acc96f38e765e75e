//! The lifespans of links: consecutive captures that had a link.
//!
//! A lifespan begins with a capture that has the link, and ends before the next capture that is known to lack it. So
//! captures with unknown links and cut captures without the link neither begin nor end a lifespan. The same holds for
//! failures of the server; other failures end a lifespan ([`Failures::End`](crate::record::status::Failures::End)).
//!
//! A *run* is a part of a lifespan: it also ends before a cut capture without the link. In a run, each capture has the
//! link, apart from captures with unknown links and failures of the server.

use std::ops::Range;

use super::{Captures, gone_after, telling};
use crate::record::page::Page;
use crate::record::presence::Change;
use crate::record::uid::Uid;

/// Captures that had a link, without a capture between them that is known to lack it.
///
/// ```
/// use webstrata_layers::{Captures, Change, Lifespan, Uid, lifespans_of};
///
/// // A link that is in the first capture, and again in the third and the fourth one.
/// let captures = Captures { times: &[100, 200, 300, 400], ..Captures::default() };
/// let changes = [1, 2].map(|capture| Change { link: 0, capture });
/// let mut lifespans = Vec::new();
/// lifespans_of(captures, &[Uid(9)], changes.into_iter(), &mut lifespans);
/// assert_eq!(lifespans, [(100, 100), (300, 400)].map(|(first, last)| Lifespan { link: Uid(9), first, last }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lifespan<L = Uid> {
    /// The link.
    pub link: L,
    /// Time of the first of the captures.
    pub first: i64,
    /// Time of the last of the captures.
    pub last: i64,
}

/// Which spans of links are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spans {
    /// Lifespans.
    Lifespans,
    /// Runs.
    Runs,
}

impl Spans {
    /// Appends the spans of the links of a page, in order of links.
    pub fn of_page<L: Copy + Ord + Into<u64>>(self, page: &Page<L>, spans: &mut Vec<Lifespan<L>>) {
        let changes = page.changes.iter().copied();
        match self {
            Spans::Lifespans => lifespans_of(page.captures(), &page.links, changes, spans),
            Spans::Runs => runs_of(page.captures(), &page.links, changes, spans),
        }
    }
}

/// Appends the lifespans of links, in order of links. The changes must be sorted.
pub fn lifespans_of<L: Copy + PartialEq>(
    captures: Captures<'_>,
    links: &[L],
    changes: impl Iterator<Item = Change>,
    lifespans: &mut Vec<Lifespan<L>>,
) {
    if !captures.has_cut() {
        return runs_of(captures, links, changes, lifespans);
    }
    let mut runs = Vec::new();
    runs_of(captures, links, changes, &mut runs);
    unite(&mut runs, &telling(&captures.iter().collect::<Vec<_>>()));
    lifespans.append(&mut runs);
}

/// Joins runs to lifespans. `telling` has the captures that tell which links the page lacks
/// ([`telling`](super::telling)). The first of them after a run either lacks the link, or begins the next run.
pub(crate) fn unite<L: Copy + PartialEq>(runs: &mut Vec<Lifespan<L>>, telling: &[i64]) {
    runs.dedup_by(|run, before| {
        let goes_on = before.link == run.link && gone_after(telling, before.last).is_none_or(|gone| run.first <= gone);
        if goes_on {
            before.last = run.last;
        }
        goes_on
    });
}

/// Appends the runs of links, in order of links. The changes must be sorted.
pub fn runs_of<L: Copy>(
    captures: Captures<'_>,
    links: &[L],
    changes: impl Iterator<Item = Change>,
    lifespans: &mut Vec<Lifespan<L>>,
) {
    let times = captures.times;
    let ends = captures.ends();
    let mut changes = changes.peekable();
    for (at, &link) in (0u32..).zip(links) {
        let mut add_lifespan = |first: usize, end: usize| {
            let alive = captures.between_ends(&ends, first, end.min(times.len()));
            let lifespan = |(first, last)| Lifespan { link, first: times[first as usize], last: times[last as usize] };
            lifespans.extend(alive.map(lifespan));
        };
        let mut since = Some(0);
        while let Some(change) = changes.next_if(|change| change.link <= at) {
            let capture = change.capture as usize;
            since = match since {
                None => Some(capture),
                Some(first) => {
                    add_lifespan(first, capture);
                    None
                }
            };
        }
        since.into_iter().for_each(|first| add_lifespan(first, times.len()));
    }
}

/// Replaces the contents of `times` by the runs of a page's links to a target, given the runs of all its links in
/// order. Returns the number of URLs of the target that the page ever linked to.
pub fn times_of(lifespans: &[Lifespan], target: &[Range<Uid>], times: &mut Vec<(i64, i64)>) -> u64 {
    times.clear();
    let (mut targets, mut before) = (0, None);
    for uids in target {
        let first = lifespans.partition_point(|lifespan| lifespan.link < uids.start);
        for lifespan in lifespans[first..].iter().take_while(|lifespan| lifespan.link < uids.end) {
            targets += u64::from(before != Some(lifespan.link));
            before = Some(lifespan.link);
            times.push((lifespan.first, lifespan.last));
        }
    }
    targets
}
