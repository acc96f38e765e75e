//! The statuses of a cell's captures: a record for each page with a change of status, in order of nodes.
//!
//! ```text
//! words       number of records, number of statuses
//! statuses    the distinct statuses, the most frequent first, 16 bits each
//! skips       of every 16th record, beginning with the first: its node, and its offset in the records (32 bits
//!             each)
//! records     each: the nodes since the record before it (at a skip 0), the bytes of the rest, the changes
//! ```
//!
//! A change is the number of captures since the change before it, times the number of statuses, plus the index of its
//! status. Before the first change, counting starts at capture 0. Records are in LEB128, all other numbers
//! little-endian. A cell in which all captures have the status 200 has no bytes. An example: the page of node 3 has
//! status 404 from capture 2 on and status 200 from capture 4 on; the page of node 5 has status 404 from capture 0 on.
//! The statuses are 404 (index 0) and 200 (index 1), so the changes of node 3 are 2 * 2 + 0 and 2 * 2 + 1, and the
//! change of node 5 is 0.
//!
//! ```text
//! 2 2 | 94 01 c8 00 | 03 00 00 00 00 00 00 00 | 00 02 04 05 | 02 01 00
//! ```
//!
//! Memory: none besides the bytes. Cost: a search among the skips, then a pass over at most 15 records.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;
use webstrata_layers::{Status, StatusChange};

use crate::coding::sections::{Sections, push_words};
use crate::error::Damage;
use crate::numbers::Node;

const PART: &str = "statuses";
/// The number of records from one skip to the next.
const SKIP: usize = 16;

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

    /// The encoded bytes.
    ///
    /// # Errors
    /// A node, or an offset in the records, that does not fit in 32 bits.
    pub(crate) fn finish(&self) -> Result<Vec<u8>, Damage> {
        if self.records.is_empty() {
            return Ok(Vec::new());
        }
        let mut counts: BTreeMap<Status, u64> = BTreeMap::new();
        for change in self.records.iter().flat_map(|(_, changes)| changes) {
            *counts.entry(change.status).or_default() += 1;
        }
        let mut statuses: Vec<(Status, u64)> = counts.into_iter().collect();
        statuses.sort_by_key(|&(status, count)| (std::cmp::Reverse(count), status));
        let indexes: BTreeMap<Status, u64> = (0..).zip(&statuses).map(|(at, (status, _))| (*status, at)).collect();
        let narrow = |value: usize| {
            let outside = Damage::Outside { part: PART, value: value as u64, bound: u64::from(u32::MAX) };
            u32::try_from(value).map_err(|_| outside)
        };
        let (mut skips, mut bytes, mut record) = (Vec::new(), Vec::new(), Vec::new());
        let mut before = 0;
        for (at, (node, changes)) in self.records.iter().enumerate() {
            if at % SKIP == 0 {
                before = node.0;
                skips.extend_from_slice(&narrow(node.0)?.to_le_bytes());
                skips.extend_from_slice(&narrow(bytes.len())?.to_le_bytes());
            }
            record.clear();
            let mut capture = 0;
            for change in changes {
                let index = indexes.get(&change.status).copied().unwrap_or(0);
                put(&mut record, u64::from(change.capture - capture) * statuses.len() as u64 + index);
                capture = change.capture;
            }
            put(&mut bytes, (node.0 - before) as u64);
            put(&mut bytes, record.len() as u64);
            bytes.extend_from_slice(&record);
            before = node.0;
        }
        let mut out = Vec::new();
        push_words(&mut out, &[self.records.len() as u64, statuses.len() as u64]);
        statuses.iter().for_each(|(status, _)| out.extend_from_slice(&status.code().to_le_bytes()));
        out.extend_from_slice(&skips);
        out.extend_from_slice(&bytes);
        Ok(out)
    }
}

fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}

fn take(bytes: &mut &[u8]) -> Result<u64, Damage> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or(Damage::Ends { part: PART })?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(Damage::Ends { part: PART })
}

/// A stretch of records: the node of its skip, the bytes of the records up to the next skip, and the index of the skip.
type Stretch<'a> = (usize, &'a [u8], usize);

/// The next record of a stretch; `node` becomes the node of that record. `None` at the end.
fn next<'a>(node: &mut usize, rest: &mut &'a [u8]) -> Result<Option<&'a [u8]>, Damage> {
    if rest.is_empty() {
        return Ok(None);
    }
    *node = node.saturating_add(usize::try_from(take(rest)?).unwrap_or(usize::MAX));
    let length = usize::try_from(take(rest)?).unwrap_or(usize::MAX);
    let (record, after) = rest.split_at_checked(length).ok_or(Damage::Ends { part: PART })?;
    *rest = after;
    Ok(Some(record))
}

/// Statuses, ready to answer.
#[derive(Debug, Default)]
pub(crate) struct Statuses {
    statuses: Vec<Status>,
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
        let (records, statuses) = (sections.length()?, sections.length()?);
        let codes = sections.take(statuses, 2)?;
        let codes = codes.chunks_exact(2).map(|code| u16::from_le_bytes([code[0], code[1]]));
        let status =
            |code| Status::stored(code).ok_or(Damage::Outside { part: PART, value: u64::from(code), bound: 999 });
        let statuses = codes.map(status).collect::<Result<Vec<_>, _>>()?;
        let skips = sections.take(records.div_ceil(SKIP), 8)?;
        Ok(Self { statuses, skips, records: sections.rest() })
    }

    /// Whether all captures have the status 200.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.skips.is_empty()
    }

    /// Replaces the contents of `changes` by the changes of status of a node. Empty if all its captures have the status
    /// 200.
    ///
    /// # Errors
    /// Damaged bytes.
    pub(crate) fn changes(&self, node: Node, changes: &mut Vec<StatusChange>) -> Result<(), Damage> {
        changes.clear();
        let Some((mut found, mut rest, _)) = self.stretch_with(node)? else { return Ok(()) };
        while let Some(record) = next(&mut found, &mut rest)? {
            match found.cmp(&node.0) {
                Ordering::Less => {}
                Ordering::Equal => return self.decode(record, changes),
                Ordering::Greater => break,
            }
        }
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
        let (mut found, mut rest, mut stretch) = match self.stretch_with(nodes.start)? {
            Some(stretch) => stretch,
            None => self.stretch(0)?,
        };
        let mut changes = Vec::new();
        loop {
            while let Some(record) = next(&mut found, &mut rest)? {
                if found >= nodes.end.0 {
                    return Ok(());
                }
                changes.clear();
                self.decode(record, &mut changes)?;
                if found >= nodes.start.0 && changes.iter().any(|change| change.status.is_failure()) {
                    visit(Node(found));
                }
            }
            if stretch + 1 >= self.stretches() {
                return Ok(());
            }
            (found, rest, stretch) = self.stretch(stretch + 1)?;
        }
    }

    /// The number of stretches.
    fn stretches(&self) -> usize {
        self.skips.len() / 8
    }

    /// The node of a skip, and its offset in the records.
    fn skip(&self, at: usize) -> (usize, usize) {
        let word = |at: usize| self.skips[at..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word));
        (word(8 * at) as usize, word(8 * at + 4) as usize)
    }

    /// The stretch of a skip.
    fn stretch(&self, at: usize) -> Result<Stretch<'_>, Damage> {
        let (node, start) = self.skip(at);
        let end = if at + 1 < self.stretches() { self.skip(at + 1).1 } else { self.records.len() };
        Ok((node, self.records.get(start..end).ok_or(Damage::Ends { part: PART })?, at))
    }

    /// The stretch that has the record of a node if the node has one; `None` for a node before all records.
    fn stretch_with(&self, node: Node) -> Result<Option<Stretch<'_>>, Damage> {
        let (mut low, mut high) = (0, self.stretches());
        while low < high {
            let middle = low.midpoint(high);
            if self.skip(middle).0 <= node.0 { low = middle + 1 } else { high = middle }
        }
        low.checked_sub(1).map(|at| self.stretch(at)).transpose()
    }

    fn decode(&self, mut record: &[u8], changes: &mut Vec<StatusChange>) -> Result<(), Damage> {
        let (count, mut capture) = (self.statuses.len() as u64, 0u64);
        while !record.is_empty() {
            let value = take(&mut record)?;
            let at = usize::try_from(value.checked_rem(count).unwrap_or(0)).unwrap_or(usize::MAX);
            let status = *self.statuses.get(at).ok_or(Damage::Ends { part: PART })?;
            capture = capture.saturating_add(value / count);
            let bound = u64::from(u32::MAX);
            let index = u32::try_from(capture).map_err(|_| Damage::Outside { part: PART, value: capture, bound })?;
            changes.push(StatusChange { capture: index, status });
        }
        Ok(())
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
        push_words(&mut expected, &[2, 2]);
        expected.extend([0x94, 0x01, 0xc8, 0x00, 3, 0, 0, 0, 0, 0, 0, 0, 0, 2, 4, 5, 2, 1, 0]);
        assert_eq!(writer.finish().unwrap(), expected);
        assert!(StatusesWriter::default().finish().unwrap().is_empty());
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
            let store = Statuses::open(writer.finish().unwrap().into()).unwrap();
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
            let mut bytes = writer.finish().unwrap();
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
