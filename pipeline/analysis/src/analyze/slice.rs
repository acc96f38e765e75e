//! The links of a worker's pages at one date, as numbers of *mirrors*. Mirrors are the distinct URLs that the pages
//! link to; any worker may own them.
//!
//! Most links stay with the worker, because pages of a host are neighbours. A computation sends one value per mirror to
//! the worker that owns the URL ([`Slice::push`]), or gets one value per mirror from that worker ([`Slice::pull`]). It
//! never sends one value per link. The mirrors cover all dates, so workers agree on them once. Memory: 8 bytes per
//! mirror, and 1.5 bits per URL of the store while mirrors are found.

use super::AnalysisContext;
use super::adjacency::{Adjacency, Timed, low};
use super::exchange::{Number, exchange, from_bytes, to_bytes};
use std::ops::Range;
use std::sync::Arc;
use webstrata_engine::Stopped;
use webstrata_layers::Links;
use webstrata_layers::Uid;

/// The slices at many dates.
pub(super) struct TimedSlice {
    timed: Timed<Mirror>,
    mirrors: Arc<Mirrors>,
}

/// The slice of a worker at one date: its links as mirrors, and the mirrors.
pub(super) struct Slice {
    pub(super) graph: Adjacency<Mirror>,
    pub(super) mirrors: Arc<Mirrors>,
}

/// The number of a mirror: its index among the mirrors of the worker, in the order of UIDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mirror(u32);

impl Mirror {
    /// Returns the number as an index into values by mirror.
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The URLs that the pages of a worker link to.
pub(super) struct Mirrors {
    /// The UIDs of the mirrors, rising.
    pub(super) uids: Vec<u32>,
    /// The index in `uids` at which the URLs of each worker begin, and the length of `uids` at the end.
    pub(super) cuts: Vec<usize>,
    /// For each worker, the URLs of this worker that are mirrors there, as UIDs counted from the first UID of this
    /// worker.
    pub(super) requested: Vec<Vec<u32>>,
}

impl Mirrors {
    /// Finds the mirrors of links that are given as UIDs. Returns the mirror of each link, in the same order and
    /// memory.
    pub(super) fn of(context: &mut AnalysisContext<'_>, links: Vec<u32>) -> Result<(Vec<Mirror>, Arc<Self>), Stopped> {
        let (links, uids) = ranked(links, context.store.urls());
        let cut = |range: &Range<Uid>| uids.partition_point(|&uid| u64::from(uid) < range.start.0);
        let mut cuts: Vec<usize> = context.ranges.iter().map(cut).collect();
        cuts.push(uids.len());
        // Each worker receives the list of its URLs that have mirrors here.
        let first = |peer: usize| context.ranges[peer].start.0;
        let outgoing = (0..cuts.len() - 1).map(|peer| {
            let indexes = uids[cuts[peer]..cuts[peer + 1]].iter().map(|&uid| low(u64::from(uid) - first(peer)));
            to_bytes(&indexes.collect::<Vec<u32>>())
        });
        let outgoing = outgoing.collect();
        let requested = exchange(context, outgoing)?.iter().map(|bytes| from_bytes(bytes)).collect();
        Ok((links, Arc::new(Self { uids, cuts, requested })))
    }
}

/// Returns the rank of each UID among the distinct UIDs, and the distinct UIDs. Makes two passes over the links, and
/// one over a bit for each URL.
fn ranked(links: Vec<u32>, urls: u64) -> (Vec<Mirror>, Vec<u32>) {
    let mut bits = vec![0u64; usize::try_from(urls.div_ceil(64)).unwrap_or(usize::MAX)];
    for &link in &links {
        bits[link as usize / 64] |= 1 << (link % 64);
    }
    let distinct = bits.iter().map(|word| word.count_ones() as usize).sum();
    let (mut uids, mut ranks) = (Vec::with_capacity(distinct), Vec::with_capacity(bits.len()));
    for (at, &word) in bits.iter().enumerate() {
        ranks.push(low(uids.len() as u64));
        let mut rest = word;
        while rest != 0 {
            uids.push(low(at as u64 * 64) + rest.trailing_zeros());
            rest &= rest - 1;
        }
    }
    let mirror = |link: u32| {
        let word = link as usize / 64;
        Mirror(ranks[word] + (bits[word] & ((1 << (link % 64)) - 1)).count_ones())
    };
    (links.into_iter().map(mirror).collect(), uids)
}

impl TimedSlice {
    /// Finds the mirrors of all links.
    pub(super) fn of(context: &mut AnalysisContext<'_>, timed: Timed) -> Result<Self, Stopped> {
        let (timed, mirrors) = timed.with_links(|links| Mirrors::of(context, links))?;
        Ok(Self { timed, mirrors })
    }

    /// Returns the slice at one of several dates.
    pub(super) fn at(&self, date: usize) -> Slice {
        Slice { graph: self.timed.at(date), mirrors: Arc::clone(&self.mirrors) }
    }

    /// Returns the slice at the only date, or at one of several dates.
    pub(super) fn into_at(self, date: usize) -> Slice {
        Slice { graph: self.timed.into_at(date), mirrors: self.mirrors }
    }
}

impl Slice {
    /// Sends a value of each page along its links. Returns, for each URL of this worker, the join of the values that
    /// reached the URL, or `zero` if no value did.
    pub(super) fn push<T: Number>(
        &self,
        context: &mut AnalysisContext<'_>,
        zero: T,
        of_page: impl Fn(usize, u32) -> T,
        join: impl Fn(T, T) -> T,
    ) -> Result<Vec<T>, Stopped> {
        let mirrors = &*self.mirrors;
        let mut sums = vec![zero; mirrors.uids.len()];
        for (at, &page) in self.graph.pages.iter().enumerate() {
            let value = of_page(at, page);
            for &link in self.graph.links_of(at) {
                let sum = &mut sums[link.index()];
                *sum = join(*sum, value);
            }
        }
        self.settle(context, &sums, zero, join)
    }

    /// Sends the value of each mirror to the worker that owns its URL. Returns, for each URL of this worker, the join
    /// of the values of its mirrors, or `zero` if the URL has no mirror.
    pub(super) fn settle<T: Number>(
        &self,
        context: &mut AnalysisContext<'_>,
        values: &[T],
        zero: T,
        join: impl Fn(T, T) -> T,
    ) -> Result<Vec<T>, Stopped> {
        let mirrors = &*self.mirrors;
        let mut reached = vec![zero; self.graph.urls()];
        let mut receive = |indexes: &[u32], values: &mut dyn Iterator<Item = T>| {
            for (&index_of_url, value) in indexes.iter().zip(values) {
                let all = &mut reached[index_of_url as usize];
                *all = join(*all, value);
            }
        };
        let index = context.worker.index();
        let outgoing = mirrors.cuts.windows(2).enumerate().map(|(peer, cut)| {
            let peer_values = &values[cut[0]..cut[1]];
            if peer == index { Vec::new() } else { to_bytes(peer_values) }
        });
        let outgoing = outgoing.collect();
        for (peer, bytes) in exchange(context, outgoing)?.into_iter().enumerate() {
            let indexes = &mirrors.requested[peer];
            if peer == index {
                let my_values = &values[mirrors.cuts[index]..mirrors.cuts[index + 1]];
                receive(indexes, &mut my_values.iter().copied());
            } else {
                receive(indexes, &mut from_bytes::<T>(&bytes).into_iter());
            }
        }
        Ok(reached)
    }

    /// Returns the value of each mirror. `values` has the values of the URLs of this worker.
    pub(super) fn pull<T: Number>(&self, context: &mut AnalysisContext<'_>, values: &[T]) -> Result<Vec<T>, Stopped> {
        let mirrors = &*self.mirrors;
        let index = context.worker.index();
        let of =
            |indexes: &[u32]| indexes.iter().map(|&index_of_url| values[index_of_url as usize]).collect::<Vec<T>>();
        let outgoing = mirrors
            .requested
            .iter()
            .enumerate()
            .map(|(peer, indexes)| if peer == index { Vec::new() } else { to_bytes(&of(indexes)) });
        let outgoing = outgoing.collect();
        let mut all = Vec::with_capacity(mirrors.uids.len());
        for (peer, bytes) in exchange(context, outgoing)?.into_iter().enumerate() {
            if peer == index {
                all.extend(of(&mirrors.requested[peer]));
            } else {
                all.extend(from_bytes::<T>(&bytes));
            }
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranks_are_those_among_distinct_uids(links in proptest::collection::vec(0u32..5000, 0..300)) {
            let (mirrors, uids) = ranked(links.clone(), 5000);
            let distinct: std::collections::BTreeSet<u32> = links.iter().copied().collect();
            prop_assert_eq!(&uids, &distinct.into_iter().collect::<Vec<_>>());
            for (link, mirror) in links.iter().zip(mirrors) {
                prop_assert_eq!(uids[mirror.index()], *link);
            }
        }
    }
}
