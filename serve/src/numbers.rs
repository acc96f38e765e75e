//! The numbers of URLs inside a cell: which UIDs are its nodes.
//!
//! A cell has the records of the UIDs of an interval. In a store's oldest row each of them is a node. A later row has records
//! of few URLs of the rows before it; then the nodes are the UIDs that have a record, numbered in order, and the others take
//! no room. Link stores know numbers alone: node `i` is `first + i`, where `first` is the first UID of the interval; UIDs
//! below it are their own numbers, and those above the interval follow the nodes. So numbers keep the order of UIDs, near
//! URLs have near numbers, and where all UIDs are nodes each UID is its own number. What a page of a row links to has
//! in-links in that row, so each link has a number: the other UIDs of the interval, which have none, are never met.
//!
//! Nothing is kept where all UIDs are nodes. Otherwise, for the nodes' UIDs less `first`, rising (Elias 1974, Fano 1971):
//!
//! ```text
//! words       number of nodes; low bits of each (below 64); bits of the high parts
//! high parts  bit `value >> low + i` is set for each node `i`; as `ranks` of strata
//! low parts   the low bits of each, packed
//! ```
//!
//! For example nodes at 3, 4 and 13 of 16: two low bits; high parts 0, 1 and 3, so bits 0, 2 and 5 of 8; low parts 3, 0, 1.
//! It takes some 2.1 bits a node, and one for each time that the UIDs without a record double. A UID is found by bisection, the
//! UIDs of rising numbers one after the other.

use std::ops::Range;

use bytes::Bytes;

use crate::bits::{BitReader, BitWriter};
use crate::codec::parts::{Parts, push_words};
use crate::codec::strata::ranks::{self, Nodes};
use crate::error::Damage;

const PART: &str = "numbers of URLs";

/// Which UIDs of an interval are nodes, as bytes; the UIDs rise and lie in the interval.
pub(crate) fn encode(uids: &[u64], interval: &Range<u64>) -> Vec<u8> {
    let span = interval.end - interval.start;
    if uids.len() as u64 == span {
        return Vec::new();
    }
    let low = (span / (uids.len() as u64).max(1)).max(1).ilog2();
    let place = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    let bits = place(span >> low).saturating_add(uids.len() + 1);
    let high: Vec<usize> = (0..).zip(uids).map(|(at, uid)| at + place((uid - interval.start) >> low)).collect();
    let mut out = Vec::new();
    push_words(&mut out, &[uids.len() as u64, u64::from(low), bits as u64]);
    out.extend(ranks::encode(&high, bits));
    let mut lows = BitWriter::default();
    uids.iter().for_each(|uid| lows.write_wide((uid - interval.start) & ((1 << low) - 1), low));
    out.extend(lows.into_bytes());
    out
}

/// The UIDs of nodes, less the first of the interval.
struct Sorted {
    low: u32,
    high: Bytes,
    lows: Bytes,
}

impl Sorted {
    fn low_of(&self, node: usize) -> u64 {
        BitReader::new(&self.lows, node as u64 * u64::from(self.low)).read_wide(self.low)
    }

    /// The node of a value.
    fn find(&self, value: u64) -> Option<usize> {
        let high = usize::try_from(value >> self.low).ok()?;
        // The bits of one high part follow the bit that ends the one before it.
        let begin = match high.checked_sub(1) {
            None => 0,
            Some(before) => ranks::absent_of(&self.high, before)? + 1,
        };
        let mut nodes = begin - high..begin - high + ranks::run_from(&self.high, begin);
        let wanted = value & ((1 << self.low) - 1);
        while !nodes.is_empty() {
            let middle = nodes.start.midpoint(nodes.end);
            let own = self.low_of(middle);
            if own == wanted {
                return Some(middle);
            }
            nodes = if own < wanted { middle + 1..nodes.end } else { nodes.start..middle };
        }
        None
    }
}

/// The numbers of a cell.
pub(crate) struct Numbers {
    interval: Range<u64>,
    nodes: usize,
    /// `None` where all UIDs of the interval are nodes.
    sorted: Option<Sorted>,
}

impl Numbers {
    /// Opens what [`encode`] wrote for an interval.
    ///
    /// # Errors
    /// Bytes whose parts do not fit together.
    pub(crate) fn open(bytes: Bytes, interval: Range<u64>) -> Result<Self, Damage> {
        let span = interval.end.saturating_sub(interval.start);
        let bound = usize::try_from(span).map_err(|_| Damage::Outside { part: PART, value: span, bound: 0 })?;
        if bytes.is_empty() {
            return Ok(Self { interval, nodes: bound, sorted: None });
        }
        let mut parts = Parts::new(bytes, PART);
        let (nodes, low, bits) = (parts.length()?, parts.word_within(63)?, parts.length()?);
        if nodes > bound {
            return Err(Damage::Outside { part: PART, value: nodes as u64, bound: span });
        }
        let high = parts.take(ranks::bytes(bits), 1)?;
        ranks::check(&high, bits, nodes)?;
        let low = u32::try_from(low).unwrap_or(0);
        let size = (nodes as u64 * u64::from(low)).div_ceil(8);
        let lows = parts.rest();
        if lows.len() as u64 != size {
            return Err(Damage::Outside { part: PART, value: lows.len() as u64, bound: size });
        }
        Ok(Self { interval, nodes, sorted: Some(Sorted { low, high, lows }) })
    }

    /// How many nodes there are.
    pub(crate) fn len(&self) -> usize {
        self.nodes
    }

    /// The node of a UID; `None` for one outside the interval or without a record.
    #[inline]
    pub(crate) fn node(&self, uid: u64) -> Option<usize> {
        let at = uid.checked_sub(self.interval.start).filter(|_| uid < self.interval.end)?;
        match &self.sorted {
            None => usize::try_from(at).ok(),
            Some(sorted) => sorted.find(at),
        }
    }

    /// The number of a UID; `None` for one of the interval without a record.
    #[inline]
    pub(crate) fn number(&self, uid: u64) -> Option<u64> {
        if self.sorted.is_none() || uid < self.interval.start {
            return Some(uid);
        }
        if uid >= self.interval.end {
            return Some(uid - (self.interval.end - self.interval.start) + self.nodes as u64);
        }
        self.node(uid).map(|node| self.interval.start + node as u64)
    }

    /// Turns numbers, best rising ones, into UIDs.
    pub(crate) fn uids(&self) -> Uids<'_> {
        let sorted = self.sorted.as_ref().map(|sorted| (sorted, Nodes::new(&sorted.high)));
        Uids { first: self.interval.start, absent: self.interval.end - self.interval.start, nodes: self.nodes, sorted }
    }

    /// Turns rising numbers into UIDs, in place.
    #[inline]
    pub(crate) fn turn(&self, numbers: &mut [u64]) {
        if self.sorted.is_some() {
            let mut uids = self.uids();
            numbers.iter_mut().for_each(|number| *number = uids.of(*number));
        }
    }
}

/// The way from numbers to UIDs.
pub(crate) struct Uids<'a> {
    first: u64,
    /// UIDs of the interval.
    absent: u64,
    nodes: usize,
    sorted: Option<(&'a Sorted, Nodes<'a>)>,
}

impl Uids<'_> {
    /// The UID of a number.
    #[inline]
    pub(crate) fn of(&mut self, number: u64) -> u64 {
        let Some((sorted, high)) = &mut self.sorted else { return number };
        let Some(node) = number.checked_sub(self.first) else { return number };
        match usize::try_from(node).ok().filter(|&node| node < self.nodes) {
            Some(node) => {
                let high = high.node(node).map_or(0, |bit| bit.saturating_sub(node)) as u64;
                self.first.wrapping_add(high << sorted.low | sorted.low_of(node))
            }
            None => number.wrapping_sub(self.nodes as u64).wrapping_add(self.absent),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bytes_are_as_documented() {
        let bytes = encode(&[103, 104, 113], &(100..116));
        let mut expected = Vec::new();
        push_words(&mut expected, &[3, 2, 8]);
        expected.extend([0, 0, 0, 0, 0b10_0101]);
        expected.extend([0; 63]);
        expected.push(0b01_0011);
        assert_eq!(bytes, expected);
        assert!(encode(&[5, 6], &(5..7)).is_empty());
    }

    #[test]
    fn few_of_many_take_few_bytes() {
        let uids: Vec<u64> = (0..10_000).map(|at| at * 100 + at % 83).collect();
        let bytes = encode(&uids, &(0..1_000_000)).len();
        assert!(bytes < 11_000, "{bytes}");
    }

    proptest! {
        #[test]
        fn numbers_keep_order_and_lead_back(
            first in 0u64..1000,
            (span, some) in prop_oneof![Just(40u64), Just(3000), Just(1 << 40)].prop_flat_map(|span| {
                (Just(span), proptest::collection::btree_set(prop_oneof![0..span, 0..span.min(90)], 0..200))
            }),
        ) {
            let interval = first..first + span;
            let uids: Vec<u64> = some.iter().map(|at| first + at).collect();
            let numbers = Numbers::open(encode(&uids, &interval).into(), interval.clone()).unwrap();
            prop_assert_eq!(numbers.len(), uids.len());
            let near = uids.iter().flat_map(|&uid| [uid.saturating_sub(1), uid, uid + 1]);
            for uid in near.chain([0, first, interval.end, interval.end + 7]) {
                prop_assert_eq!(numbers.node(uid), uids.binary_search(&uid).ok());
            }
            let known: Vec<u64> = (0..first).chain(uids.iter().copied()).chain(interval.end..interval.end + 9).collect();
            let mut own: Vec<u64> = known.iter().map(|&uid| numbers.number(uid).unwrap()).collect();
            prop_assert!(own.iter().copied().eq(0..known.len() as u64));
            numbers.turn(&mut own);
            prop_assert_eq!(own, known);
        }

        #[test]
        fn damaged_bytes_give_errors_or_other_numbers(
            edits in proptest::collection::vec((0usize..400, any::<u8>()), 1..4),
            cut in 0usize..400,
        ) {
            let uids: Vec<u64> = (0..300).map(|at| 50 + at * at).collect();
            let mut bytes = encode(&uids, &(0..100_000));
            let len = bytes.len();
            edits.into_iter().for_each(|(at, value)| bytes[at % len] = value);
            bytes.truncate(len - cut.saturating_sub(300).min(len - 1));
            if let Ok(numbers) = Numbers::open(bytes.into(), 0..100_000) {
                let mut back = numbers.uids();
                for number in (0..100_100).step_by(7) {
                    let _ = (numbers.node(number), numbers.number(number), back.of(number));
                }
            }
        }
    }
}
