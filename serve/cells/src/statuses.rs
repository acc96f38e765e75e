//! The statuses of a cell's captures: a record for each page with a change of status, in order of nodes.
//!
//! ```text
//! words       number of records, number of statuses, bytes of the codes
//! statuses    the distinct statuses, the most frequent first, 16 bits each
//! codes       Huffman codes of gaps, of counts, of first changes and of other changes; zeros up to a byte
//! skips       of every 32nd record, beginning with the first: its node, and its first bit in the records (64 bits
//!             each)
//! records     each: gap, the nodes since the record before it (at a skip 0); count, the number of changes less 1; the
//!             changes
//! ```
//!
//! A change is the number of captures since the change before it, times the number of statuses, plus the index of its
//! status. Before the first change, counting starts at capture 0. A number is a symbol of its code and raw bits
//! ([`crate::coding::number_codes`], with `D` = 5). Words and statuses are little-endian. A cell in which all captures
//! have the status 200 has no bytes. An example: the page of node 3 has status 404 from capture 2 on and status 200
//! from capture 4 on; the page of node 5 has status 404 from capture 0 on. The statuses are 404 (index 0) and 200
//! (index 1), so the changes of node 3 are 2 * 2 + 0 and 2 * 2 + 1, and the change of node 5 is 0. The gaps are 0 and
//! 2, the counts less 1 are 1 and 0, the first changes are 4 and 0, and the other change is 5. Each code has one or
//! two symbols, each of one bit.
//!
//! ```text
//! words 2 2 13 | 94 01 c8 00 | 03 20 00 42 00 44 14 80 00 09 03 00 14 | words 3 0 | 16
//! ```
//!
//! Memory: tables of some 100 KB at most besides the bytes. Cost: a search among the skips, then a pass over at most 31
//! records.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;
use webstrata_layers::{Status, StatusChange};

use crate::coding::bits::{BitReader, BitWriter};
use crate::coding::number_codes::{NumberCodes, NumberDecoders};
use crate::coding::sections::{Sections, push_words};
use crate::error::Damage;
use crate::numbers::Node;

const PART: &str = "statuses";
/// The number of records from one skip to the next.
const SKIP: usize = 32;
/// Numbers of up to this many bits are symbols themselves.
const DIRECT_BITS: u32 = 5;
/// The number of words of a skip.
const SKIP_WORDS: usize = 2;

/// The kinds of numbers, each with a code.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Gap,
    Count,
    First,
    Other,
}

impl Kind {
    const COUNT: usize = 4;

    /// The kind of a change of a record.
    fn of_change(is_first: bool) -> Self {
        if is_first { Kind::First } else { Kind::Other }
    }
}

/// Collects the changes of pages and writes them.
#[derive(Debug, Default)]
pub(crate) struct StatusesWriter {
    records: Vec<(Node, Vec<StatusChange>)>,
}

impl StatusesWriter {
    /// Adds the changes of a page. Pages come in order of nodes.
    pub(crate) fn push(&mut self, node: Node, changes: &[StatusChange]) {
        if !changes.is_empty() {
            self.records.push((node, changes.to_vec()));
        }
    }

    /// The distinct statuses, the most frequent first.
    fn statuses(&self) -> Vec<Status> {
        let mut counts: BTreeMap<Status, u64> = BTreeMap::new();
        for change in self.records.iter().flat_map(|(_, changes)| changes) {
            *counts.entry(change.status).or_default() += 1;
        }
        let mut statuses: Vec<(Status, u64)> = counts.into_iter().collect();
        statuses.sort_by_key(|&(status, count)| (std::cmp::Reverse(count), status.number()));
        statuses.into_iter().map(|(status, _)| status).collect()
    }

    /// Calls `visit` with the numbers of each record.
    fn each_number(&self, statuses: &[Status], mut visit: impl FnMut(usize, Kind, u64)) {
        let indexes: BTreeMap<Status, u64> = statuses.iter().copied().zip(0..).collect();
        let mut before = Node(0);
        for (at, (node, changes)) in self.records.iter().enumerate() {
            let gap = if at % SKIP == 0 { 0 } else { node.0 - before.0 };
            visit(at, Kind::Gap, gap as u64);
            visit(at, Kind::Count, changes.len() as u64 - 1);
            let mut capture = 0;
            for (number, change) in changes.iter().enumerate() {
                let index = indexes.get(&change.status).copied().unwrap_or(0);
                let value = u64::from(change.capture - capture) * statuses.len() as u64 + index;
                visit(at, Kind::of_change(number == 0), value);
                capture = change.capture;
            }
            before = *node;
        }
    }

    /// The encoded bytes.
    pub(crate) fn finish(&self) -> Vec<u8> {
        if self.records.is_empty() {
            return Vec::new();
        }
        let statuses = self.statuses();
        let codes = NumberCodes::<DIRECT_BITS, { Kind::COUNT }>::fit(|visit| {
            self.each_number(&statuses, |_, kind, number| visit(kind as usize, number));
        });
        let mut stored = BitWriter::default();
        codes.store(&mut stored);
        let stored = stored.into_bytes();
        let (mut skips, mut records) = (Vec::new(), BitWriter::default());
        self.each_number(&statuses, |at, kind, number| {
            if at % SKIP == 0 && matches!(kind, Kind::Gap) {
                skips.extend([self.records[at].0.0 as u64, records.len()]);
            }
            codes.write(kind as usize, number, &mut records);
        });
        let mut out = Vec::new();
        push_words(&mut out, &[self.records.len() as u64, statuses.len() as u64, stored.len() as u64]);
        statuses.iter().for_each(|status| out.extend_from_slice(&status.number().to_le_bytes()));
        out.extend(stored);
        push_words(&mut out, &skips);
        out.extend(records.into_bytes());
        out
    }
}

/// A stretch of records from one skip to the next, read record by record.
struct Stretch<'a> {
    bits: BitReader<'a>,
    /// The number of the skip.
    at: usize,
    /// The node of the record that was read last.
    node: usize,
    /// The number of records that are left.
    left: usize,
}

/// Statuses, ready to answer.
#[derive(Debug, Default)]
pub(crate) struct Statuses {
    statuses: Vec<Status>,
    codes: NumberDecoders<DIRECT_BITS, { Kind::COUNT }>,
    count: usize,
    skips: Bytes,
    records: Bytes,
}

impl Statuses {
    /// Opens the bytes that [`StatusesWriter`] wrote.
    ///
    /// # Errors
    /// Parts that do not fit together.
    pub(crate) fn open(bytes: Bytes) -> Result<Self, Damage> {
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        let mut sections = Sections::new(bytes, PART);
        let (count, statuses, stored) = (sections.length()?, sections.length()?, sections.length()?);
        let read = sections.take(statuses, 2)?;
        let read = read.chunks_exact(2).map(|code| u16::from_le_bytes([code[0], code[1]]));
        let status =
            |code| Status::stored(code).ok_or(Damage::Outside { part: PART, value: u64::from(code), bound: 999 });
        let statuses = read.map(status).collect::<Result<Vec<_>, _>>()?;
        let stored = sections.take(stored, 1)?;
        let codes = NumberDecoders::load(&mut BitReader::new(&stored, 0))?;
        let skips = sections.take(count.div_ceil(SKIP), 8 * SKIP_WORDS)?;
        if count == 0 || statuses.is_empty() {
            return Err(Damage::Ends { part: PART });
        }
        Ok(Self { statuses, codes, count, skips, records: sections.rest() })
    }

    /// Whether all captures have the status 200.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Replaces the contents of `changes` by the changes of status of a node. Empty if all its captures have the status
    /// 200.
    ///
    /// # Errors
    /// Damaged bytes.
    pub(crate) fn changes(&self, node: Node, changes: &mut Vec<StatusChange>) -> Result<(), Damage> {
        changes.clear();
        let Some(mut stretch) = self.stretch_with(node) else { return Ok(()) };
        while self.next(&mut stretch, changes)? {
            match stretch.node.cmp(&node.0) {
                Ordering::Less => {}
                Ordering::Equal => return Ok(()),
                Ordering::Greater => break,
            }
        }
        changes.clear();
        Ok(())
    }

    /// Calls `visit` with each of these nodes that has a failure, in rising order. Cost: a search, and the records
    /// between them.
    ///
    /// # Errors
    /// Damaged bytes.
    pub(crate) fn failing(&self, nodes: Range<Node>, visit: &mut dyn FnMut(Node)) -> Result<(), Damage> {
        if self.is_empty() || nodes.is_empty() {
            return Ok(());
        }
        // The first record of the cell may come after the first node.
        let mut stretch = self.stretch_with(nodes.start).unwrap_or_else(|| self.stretch(0));
        let mut changes = Vec::new();
        loop {
            while self.next(&mut stretch, &mut changes)? {
                if stretch.node >= nodes.end.0 {
                    return Ok(());
                }
                if stretch.node >= nodes.start.0 && changes.iter().any(|change| change.status.is_failure()) {
                    visit(Node(stretch.node));
                }
            }
            if stretch.at + 1 >= self.count.div_ceil(SKIP) {
                return Ok(());
            }
            stretch = self.stretch(stretch.at + 1);
        }
    }

    /// A word of the skips.
    fn skip(&self, at: usize, word: usize) -> u64 {
        let word = self.skips.get(8 * (SKIP_WORDS * at + word)..).and_then(|rest| rest.first_chunk());
        word.map_or(0, |word| u64::from_le_bytes(*word))
    }

    /// The node of a skip.
    fn node(&self, at: usize) -> usize {
        usize::try_from(self.skip(at, 0)).unwrap_or(usize::MAX)
    }

    /// The stretch of a skip.
    fn stretch(&self, at: usize) -> Stretch<'_> {
        let bits = BitReader::new(&self.records, self.skip(at, 1));
        Stretch { bits, at, node: self.node(at), left: (self.count - SKIP * at).min(SKIP) }
    }

    /// The stretch that has the record of a node if the node has one; `None` for a node before all records.
    fn stretch_with(&self, node: Node) -> Option<Stretch<'_>> {
        let (mut low, mut high) = (0, self.count.div_ceil(SKIP));
        while low < high {
            let middle = low.midpoint(high);
            if self.node(middle) <= node.0 { low = middle + 1 } else { high = middle }
        }
        low.checked_sub(1).map(|at| self.stretch(at))
    }

    fn number(&self, kind: Kind, bits: &mut BitReader<'_>) -> u64 {
        self.codes.read(kind as usize, bits)
    }

    /// Reads the next record of a stretch: its node, and its changes into `changes`. Returns `false` at the end.
    fn next(&self, stretch: &mut Stretch<'_>, changes: &mut Vec<StatusChange>) -> Result<bool, Damage> {
        changes.clear();
        let Stretch { bits, node, left, .. } = stretch;
        let Some(rest) = left.checked_sub(1) else { return Ok(false) };
        *left = rest;
        *node = node.saturating_add(usize::try_from(self.number(Kind::Gap, bits)).unwrap_or(usize::MAX));
        let (later, statuses, mut capture) = (self.number(Kind::Count, bits), self.statuses.len() as u64, 0u64);
        // Each change takes a bit.
        if later >= bits.left() {
            return Err(Damage::Ends { part: PART });
        }
        for number in 0..=later {
            let value = self.number(Kind::of_change(number == 0), bits);
            let at = usize::try_from(value % statuses).unwrap_or(usize::MAX);
            let status = *self.statuses.get(at).ok_or(Damage::Ends { part: PART })?;
            capture = capture.saturating_add(value / statuses);
            let bound = u64::from(u32::MAX);
            let index = u32::try_from(capture).map_err(|_| Damage::Outside { part: PART, value: capture, bound })?;
            changes.push(StatusChange { capture: index, status });
        }
        if bits.overran() { Err(Damage::Ends { part: PART }) } else { Ok(true) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn change(capture: u32, code: u16) -> StatusChange {
        StatusChange { capture, status: Status::new(code).unwrap() }
    }

    #[test]
    fn bytes_are_as_documented() {
        let mut writer = StatusesWriter::default();
        writer.push(Node(3), &[change(2, 404), change(4, 200)]);
        writer.push(Node(4), &[]);
        writer.push(Node(5), &[change(0, 404)]);
        let mut expected = Vec::new();
        push_words(&mut expected, &[2, 2, 13]);
        expected.extend([0x94, 0x01, 0xc8, 0x00]);
        expected.extend([3, 0x20, 0, 0x42, 0, 0x44, 0x14, 0x80, 0, 9, 3, 0, 0x14]);
        push_words(&mut expected, &[3, 0]);
        // From the lowest bit on: gap 0, count 1, changes 4 and 5; gap 2, count 0, change 0.
        expected.push(0b001_0110);
        assert_eq!(writer.finish(), expected);
        assert!(StatusesWriter::default().finish().is_empty());
        assert!(Statuses::open(Bytes::new()).unwrap().is_empty());
    }

    proptest! {
        #[test]
        fn changes_come_back(
            pages in proptest::collection::btree_map(
                0usize..500,
                proptest::collection::btree_map(0u32..2000, 100u16..=999, 0..8),
                0..200,
            ),
        ) {
            let changes = |page: &BTreeMap<u32, u16>| -> Vec<StatusChange> {
                page.iter().map(|(&at, &code)| change(at, code)).collect()
            };
            let mut writer = StatusesWriter::default();
            pages.iter().for_each(|(&node, page)| writer.push(Node(node), &changes(page)));
            let store = Statuses::open(writer.finish().into()).unwrap();
            let mut found = vec![change(7, 500)];
            for (first, end) in [(0, 501), (17, 18), (40, 40), (100, 333), (490, 600)] {
                let mut failing = Vec::new();
                store.failing(Node(first)..Node(end), &mut |node| failing.push(node.0)).unwrap();
                let fails = |page: &BTreeMap<u32, u16>| page.values().any(|&code| code >= 400);
                let expected = pages.range(first..end).filter(|(_, page)| fails(page)).map(|(&node, _)| node);
                prop_assert_eq!(failing, expected.collect::<Vec<_>>());
            }
            for node in 0..501 {
                store.changes(Node(node), &mut found).unwrap();
                prop_assert_eq!(&found, &pages.get(&node).map(changes).unwrap_or_default(), "node {}", node);
            }
        }

        #[test]
        fn damaged_bytes_are_errors_or_other_changes_and_never_a_panic(
            flips in proptest::collection::vec((0usize..400, 1u8..=255), 1..4),
            cut in 0usize..400,
        ) {
            let mut writer = StatusesWriter::default();
            (0..40).for_each(|node| writer.push(Node(3 * node), &[change(1, 404), change(200, 200), change(300, 503)]));
            let mut bytes = writer.finish();
            let length = bytes.len();
            flips.iter().for_each(|(at, flip)| bytes[at % length] ^= flip);
            bytes.truncate(length - cut % length);
            if let Ok(store) = Statuses::open(bytes.into()) {
                let mut found = Vec::new();
                (0..130).for_each(|node| { let _ = store.changes(Node(node), &mut found); });
                let _ = store.failing(Node(5)..Node(300), &mut |_| {});
            }
        }
    }
}
