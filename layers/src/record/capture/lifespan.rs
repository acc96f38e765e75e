//! The lifespans of links: runs of consecutive known captures that had a link.
//!
//! Captures with unknown links neither begin nor end a lifespan. The same holds for failures of the server; other
//! failures end a lifespan ([`Failures::End`](crate::record::status::Failures::End)).

use std::ops::Range;

use super::Captures;
use crate::record::presence::Change;
use crate::record::uid::Uid;

/// Consecutive known captures that had a link.
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

/// Appends the lifespans of links, in order of links. The changes must be sorted.
pub fn lifespans_of<L: Copy>(
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

/// Replaces the contents of `times` by the lifespans of a page's links to a target, given the lifespans of all its
/// links in order. Returns the number of URLs of the target that the page ever linked to.
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
