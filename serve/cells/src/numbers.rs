//! The numbers of URLs inside a cell, and the UIDs that are its nodes.
//!
//! A cell has the records of an interval of UIDs. In the oldest row of a store, each UID of the interval is a node. A
//! later row has records of few URLs of the earlier rows. There, the nodes are the UIDs with a record, numbered in
//! order, and other UIDs take no room. Link stores use numbers only. Node `i` has the number `first + i`, where `first`
//! is the first UID of the interval. A UID below the interval is its own number, and UIDs above the interval follow the
//! nodes. Numbers therefore keep the order of UIDs, and near URLs have near numbers. If all UIDs are nodes, each UID is
//! its own number. Each link of a page of a row has in-links in that row, so each link has a number. The UIDs of the
//! interval without a record, which have no number, never occur in links.
//!
//! If all UIDs are nodes, nothing is stored. Otherwise, the UIDs of the nodes less `first`, rising, are stored as
//! follows (Elias 1974, Fano 1971):
//!
//! ```text
//! words       number of nodes; low bits of each (below 64); length of the high parts in words
//! high parts  bit `value >> low + i` is set for each node `i`
//! low parts   the low bits of each, packed
//! ```
//!
//! An example: the nodes 3, 4 and 13 of 16. Two low bits; high parts 0, 1 and 3, so bits 0, 2 and 5 of one word; low
//! parts 3, 0 and 1. A node takes about two bits, and one bit more each time the UIDs without a record double. Opening
//! scans the high parts once and notes the place of every 128th set bit and of every 128th clear bit: one bit of memory
//! a node. From a noted place, a number or a UID is a few words away.

use std::ops::Range;

use bytes::Bytes;
use webstrata_layers::Uid;

use crate::coding::bits::{BitReader, BitWriter};
use crate::coding::sections::{Sections, push_words};
use crate::error::Damage;

const PART: &str = "numbers of URLs";

/// The index of a record in a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node(pub usize);

/// The number of a URL inside a cell, as the lists of its link stores hold it. Valid in that cell only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Number(pub u64);

impl From<Number> for u64 {
    #[inline]
    fn from(number: Number) -> Self {
        number.0
    }
}

impl Number {
    /// Fills a list by a decoder of plain numbers, and keeps the memory of the list.
    #[inline]
    pub fn fill<T>(list: &mut Vec<Self>, decode: impl FnOnce(&mut Vec<u64>) -> T) -> T {
        list.clear();
        let mut plain: Vec<u64> = std::mem::take(list).into_iter().map(u64::from).collect();
        let decoded = decode(&mut plain);
        *list = plain.into_iter().map(Self).collect();
        decoded
    }
}

/// Encodes which UIDs of an interval are nodes. The UIDs rise and lie in the interval.
pub fn encode(uids: &[Uid], interval: &Range<Uid>) -> Vec<u8> {
    let span = interval.end - interval.start;
    if uids.len() as u64 == span {
        return Vec::new();
    }
    let low = (span / (uids.len() as u64).max(1)).max(1).ilog2();
    let index = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    let bits = index(span >> low).saturating_add(uids.len() + 1);
    let high: Vec<usize> = (0..).zip(uids).map(|(at, &uid)| at + index((uid - interval.start) >> low)).collect();
    let mut words = vec![0u64; bits.div_ceil(64)];
    high.iter().for_each(|bit| words[bit / 64] |= 1 << (bit % 64));
    let mut out = Vec::new();
    push_words(&mut out, &[uids.len() as u64, u64::from(low), words.len() as u64]);
    push_words(&mut out, &words);
    let mut lows = BitWriter::default();
    uids.iter().for_each(|&uid| lows.write_wide((uid - interval.start) & ((1 << low) - 1), low));
    out.extend(lows.into_bytes());
    out
}

/// Bits, found by their rank among set bits or among clear bits.
struct Bits {
    words: Bytes,
    /// The places of every [`STEP`]th clear bit, and of every [`STEP`]th set bit.
    samples: [Vec<u64>; 2],
}

/// The number of bits from one noted place to the next.
const STEP: usize = 128;

impl Bits {
    /// Takes bits in whole words. Also returns the number of set bits.
    fn new(words: Bytes) -> (Self, usize) {
        let (mut samples, mut counts) = ([Vec::new(), Vec::new()], [0, 0]);
        for (at, word) in (0u64..).zip(words.as_chunks::<8>().0) {
            let word = u64::from_le_bytes(*word);
            for (kind, bits) in [!word, word].into_iter().enumerate() {
                let next = samples[kind].len() * STEP - counts[kind];
                counts[kind] += bits.count_ones() as usize;
                // A word has no more bits than lie between two samples.
                if samples[kind].len() * STEP < counts[kind] {
                    samples[kind].push(64 * at + u64::from(select(bits, next)));
                }
            }
        }
        (Self { words, samples }, counts[1])
    }

    #[inline]
    fn word(&self, at: usize) -> u64 {
        let word = self.words.get(8 * at..).and_then(|rest| rest.first_chunk::<8>());
        word.map_or(0, |word| u64::from_le_bytes(*word))
    }

    /// The place of the set bit with `before` set bits before it, or of the clear bit with `before` clear bits before
    /// it. `None` if there is no such bit.
    #[inline]
    fn find(&self, set: bool, before: usize) -> Option<usize> {
        let sample = usize::try_from(*self.samples[usize::from(set)].get(before / STEP)?).ok()?;
        let flip = if set { 0 } else { !0 };
        let (mut at, mut bits_left) = (sample / 64, before % STEP);
        let mut word = (self.word(at) ^ flip) & (!0 << (sample % 64));
        loop {
            let count = word.count_ones() as usize;
            if bits_left < count {
                return Some(64 * at + select(word, bits_left) as usize);
            }
            bits_left -= count;
            at += 1;
            if 8 * at >= self.words.len() {
                return None;
            }
            word = self.word(at) ^ flip;
        }
    }

    /// The number of consecutive set bits from a place on.
    #[inline]
    fn run_from(&self, start: usize) -> usize {
        let mut end = start;
        loop {
            // Beyond the last word, no bit is set.
            let run = (!(self.word(end / 64) >> (end % 64))).trailing_zeros() as usize;
            end += run;
            if run == 0 || !end.is_multiple_of(64) {
                return end - start;
            }
        }
    }
}

/// The place of the set bit with `rank` set bits below it. The word has more than `rank` set bits.
#[inline]
fn select(mut word: u64, rank: usize) -> u32 {
    let (mut bits_left, mut position) = (u32::try_from(rank).unwrap_or(0), 0);
    for width in [32, 16, 8] {
        let below = (word & ((1 << width) - 1)).count_ones();
        if bits_left >= below {
            (bits_left, position, word) = (bits_left - below, position + width, word >> width);
        }
    }
    for _ in 0..bits_left {
        word &= word - 1;
    }
    position + word.trailing_zeros()
}

/// The UIDs of nodes, less the first UID of the interval.
struct Sorted {
    low: u32,
    high: Bits,
    lows: Bytes,
}

impl Sorted {
    #[inline]
    fn low_of(&self, node: usize) -> u64 {
        BitReader::new(&self.lows, node as u64 * u64::from(self.low)).read_wide(self.low)
    }

    /// The node of a value, or as an error the first node above the value. The error is [`usize::MAX`] if all high
    /// parts are below the value's.
    fn search(&self, value: u64) -> Result<usize, usize> {
        let high = usize::try_from(value >> self.low).map_err(|_| usize::MAX)?;
        // The bits of a high part follow the clear bit that ends the high part before it.
        let begin = match high.checked_sub(1) {
            None => 0,
            Some(before) => self.high.find(false, before).ok_or(usize::MAX)? + 1,
        };
        let mut nodes = begin - high..begin - high + self.high.run_from(begin);
        let low_bits = value & ((1 << self.low) - 1);
        while !nodes.is_empty() {
            let middle = nodes.start.midpoint(nodes.end);
            let found = self.low_of(middle);
            if found == low_bits {
                return Ok(middle);
            }
            nodes = if found < low_bits { middle + 1..nodes.end } else { nodes.start..middle };
        }
        Err(nodes.start)
    }
}

/// The numbers of a cell.
///
/// ```
/// use webstrata_cells::numbers::{Numbers, encode};
/// use webstrata_cells::{Node, Number};
/// use webstrata_layers::Uid;
///
/// // A cell of a later row: of the sixteen UIDs from 100, three have a record.
/// let (uids, interval) = ([Uid(103), Uid(104), Uid(113)], Uid(100)..Uid(116));
/// let numbers = Numbers::open(encode(&uids, &interval).into(), interval)?;
/// assert_eq!((numbers.node(Uid(104)), numbers.node(Uid(105))), (Some(Node(1)), None));
/// let number = numbers.number(Uid(113)).expect("a UID with a record");
/// assert_eq!((number, numbers.uid(number)), (Number(numbers.first().0 + 2), Uid(113)));
/// # Ok::<(), webstrata_cells::Damage>(())
/// ```
pub struct Numbers {
    interval: Range<Uid>,
    nodes: usize,
    /// `None` if all UIDs of the interval are nodes.
    sorted: Option<Sorted>,
}

impl Numbers {
    /// Opens the bytes that [`encode`] wrote for an interval.
    ///
    /// # Errors
    /// Bytes whose parts do not fit together.
    pub fn open(bytes: Bytes, interval: Range<Uid>) -> Result<Self, Damage> {
        let span = interval.end.0.saturating_sub(interval.start.0);
        let bound = usize::try_from(span).map_err(|_| Damage::Outside { part: PART, value: span, bound: 0 })?;
        if bytes.is_empty() {
            return Ok(Self { interval, nodes: bound, sorted: None });
        }
        let mut sections = Sections::new(bytes, PART);
        let (nodes, low, words) = (sections.length()?, sections.word_within(63)?, sections.length()?);
        if nodes > bound {
            return Err(Damage::Outside { part: PART, value: nodes as u64, bound: span });
        }
        let (high, set) = Bits::new(sections.take(words, 8)?);
        if set != nodes {
            return Err(Damage::Outside { part: PART, value: set as u64, bound: nodes as u64 });
        }
        let low = u32::try_from(low).unwrap_or(0);
        let size = (nodes as u64 * u64::from(low)).div_ceil(8);
        let lows = sections.rest();
        if lows.len() as u64 != size {
            return Err(Damage::Outside { part: PART, value: lows.len() as u64, bound: size });
        }
        Ok(Self { interval, nodes, sorted: Some(Sorted { low, high, lows }) })
    }

    /// The number of node 0.
    pub fn first(&self) -> Number {
        // UIDs below the interval are their own numbers.
        Number(self.interval.start.0)
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.nodes
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The node of a UID; `None` for a UID outside the interval or without a record.
    #[inline]
    pub fn node(&self, uid: Uid) -> Option<Node> {
        let at = uid.after(self.interval.start).filter(|_| uid < self.interval.end)?;
        match &self.sorted {
            None => Some(Node(at)),
            Some(sorted) => sorted.search(at as u64).ok().map(Node),
        }
    }

    /// The nodes of the UIDs of a range.
    pub fn nodes_in(&self, uids: &Range<Uid>) -> Range<Node> {
        let node = |uid: Uid| {
            let number = self.lower_bound(uid.clamp(self.interval.start, self.interval.end));
            Node(usize::try_from(number.0 - self.interval.start.0).unwrap_or(usize::MAX).min(self.nodes))
        };
        node(uids.start)..node(uids.end)
    }

    /// The number of a UID; `None` for a UID of the interval without a record.
    #[inline]
    pub fn number(&self, uid: Uid) -> Option<Number> {
        if self.sorted.is_none() || uid < self.interval.start {
            return Some(Number(uid.0));
        }
        if uid >= self.interval.end {
            return Some(Number(uid.0 - (self.interval.end - self.interval.start) + self.nodes as u64));
        }
        self.node(uid).map(|Node(node)| Number(self.interval.start.0 + node as u64))
    }

    /// The lowest number of any UID at or above this UID.
    pub fn lower_bound(&self, uid: Uid) -> Number {
        match &self.sorted {
            Some(sorted) if self.interval.contains(&uid) => {
                let at = sorted.search(uid - self.interval.start).unwrap_or_else(|above| above.min(self.nodes));
                Number(self.interval.start.0 + at as u64)
            }
            _ if self.sorted.is_none() || uid < self.interval.start => Number(uid.0),
            _ => Number(uid.0 - (self.interval.end - self.interval.start) + self.nodes as u64),
        }
    }

    /// The UID of a number.
    pub fn uid(&self, number: Number) -> Uid {
        self.uids().of(number)
    }

    /// A translator for many numbers.
    #[inline]
    pub fn uids(&self) -> Uids<'_> {
        Uids { numbers: self, word_index: 0, word: 0, node: usize::MAX }
    }

    /// Replaces the contents of `uids` by the UIDs of rising numbers.
    #[inline]
    pub fn uids_into(&self, numbers: &[Number], uids: &mut Vec<Uid>) {
        uids.clear();
        if self.sorted.is_none() {
            uids.extend(numbers.iter().map(|number| Uid(number.0)));
        } else {
            let mut translator = self.uids();
            uids.extend(numbers.iter().map(|&number| translator.of(number)));
        }
    }
}

/// A translator from numbers to UIDs. Numbers that are a little above the previous one are cheapest.
pub struct Uids<'a> {
    numbers: &'a Numbers,
    /// The index of a word of the high parts, and the rest of the word: the bit of `node`, and the bits above.
    word_index: usize,
    word: u64,
    node: usize,
}

/// The number of nodes up to which the translator steps node by node.
const NEAR: usize = 24;

impl Uids<'_> {
    /// The UID of a number.
    #[inline]
    pub fn of(&mut self, Number(number): Number) -> Uid {
        let Some(sorted) = &self.numbers.sorted else { return Uid(number) };
        let Range { start, end } = self.numbers.interval;
        let Some(node) = number.checked_sub(start.0) else { return Uid(number) };
        match usize::try_from(node).ok().filter(|&node| node < self.numbers.nodes) {
            Some(node) => {
                let high = self.bit(&sorted.high, node).saturating_sub(node) as u64;
                Uid(start.0.wrapping_add(high << sorted.low | sorted.low_of(node)))
            }
            None => Uid(number.wrapping_sub(self.numbers.nodes as u64).wrapping_add(end - start)),
        }
    }

    /// The bit of a node in the high parts.
    #[inline]
    fn bit(&mut self, high: &Bits, node: usize) -> usize {
        if node.checked_sub(self.node).is_some_and(|passed| passed < NEAR) {
            while self.node < node || self.word == 0 {
                if self.word == 0 {
                    // The high parts have one set bit for each node, so another one follows.
                    self.word_index += 1;
                    self.word = high.word(self.word_index);
                } else {
                    self.word &= self.word - 1;
                    self.node += 1;
                }
            }
        } else {
            let bit = high.find(true, node).unwrap_or(0);
            (self.word_index, self.node) = (bit / 64, node);
            self.word = high.word(self.word_index) & (!0 << (bit % 64));
        }
        64 * self.word_index + self.word.trailing_zeros() as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bytes_are_as_documented() {
        let bytes = encode(&[103, 104, 113].map(Uid), &(Uid(100)..Uid(116)));
        let mut expected = Vec::new();
        push_words(&mut expected, &[3, 2, 1, 0b10_0101]);
        expected.push(0b01_0011);
        assert_eq!(bytes, expected);
        assert!(encode(&[5, 6].map(Uid), &(Uid(5)..Uid(7))).is_empty());
    }

    #[test]
    fn few_of_many_take_few_bytes() {
        let uids: Vec<Uid> = (0..10_000).map(|at| Uid(at * 100 + at % 83)).collect();
        let bytes = encode(&uids, &(Uid(0)..Uid(1_000_000))).len();
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
            let interval = Uid(first)..Uid(first + span);
            let uids: Vec<Uid> = some.iter().map(|at| Uid(first + at)).collect();
            let numbers = Numbers::open(encode(&uids, &interval).into(), interval.clone()).unwrap();
            prop_assert_eq!(numbers.len(), uids.len());
            let near = uids.iter().flat_map(|&Uid(uid)| [uid.saturating_sub(1), uid, uid + 1].map(Uid));
            for uid in near.chain([Uid(0), Uid(first), interval.end, interval.end + 7]) {
                prop_assert_eq!(numbers.node(uid), uids.binary_search(&uid).ok().map(Node));
            }
            let after = Uid::each(interval.end..interval.end + 9);
            let known: Vec<Uid> = Uid::each(Uid(0)..Uid(first)).chain(uids.iter().copied()).chain(after).collect();
            let all: Vec<Number> = known.iter().map(|&uid| numbers.number(uid).unwrap()).collect();
            prop_assert!(all.iter().copied().eq((0..known.len() as u64).map(Number)));
            for uid in Uid::each(Uid(0)..Uid(first)).chain(uids.iter().flat_map(|&uid| [uid, uid + 1])) {
                let below = known.partition_point(|&other| other < uid);
                prop_assert_eq!(numbers.lower_bound(uid), Number(below as u64), "of {}", uid);
            }
            let mut back = Vec::new();
            numbers.uids_into(&all, &mut back);
            prop_assert_eq!(back, known);
        }

        #[test]
        fn damaged_bytes_give_errors_or_other_numbers(
            edits in proptest::collection::vec((0usize..400, any::<u8>()), 1..4),
            cut in 0usize..400,
        ) {
            let uids: Vec<Uid> = (0..300).map(|at| Uid(50 + at * at)).collect();
            let mut bytes = encode(&uids, &(Uid(0)..Uid(100_000)));
            let len = bytes.len();
            edits.into_iter().for_each(|(at, value)| bytes[at % len] = value);
            bytes.truncate(len - cut.saturating_sub(300).min(len - 1));
            if let Ok(numbers) = Numbers::open(bytes.into(), Uid(0)..Uid(100_000)) {
                for number in (0..100_100).step_by(7) {
                    let _ = (numbers.node(Uid(number)), numbers.number(Uid(number)), numbers.uid(Number(number)));
                }
            }
        }
    }
}
