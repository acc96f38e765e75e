//! Times and presence in plain arrays, beside any encoding of links: the time of encodings without time.
//!
//! A record is the data of a node over time, without its links (see [`Page`]; for in-links, ranges replace captures and
//! sources replace links). Nodes without times have no record.
//!
//! ```text
//! words       number of nodes; the least time, in seconds
//! arrays      seven, one after the other, each: number of values, bytes a value (1 to 8), as words; then the values
//!   0 1 2     ends of times, of blank captures, of changes: the values of a node go from the end of the node before to
//!             the end of the node; a value a node, or no values if no node has any
//!   3         times, in seconds after the least
//!   4         blank captures, as indexes in the node's times
//!   5 6       changes, sorted: indexes in the node's links, and in its times
//! ```
//!
//! Words are 64 bits. All numbers are little-endian, and each array is as narrow as its largest value allows. An
//! example with two nodes: the first has captures at 100 and 130 and two links. The second link appears with the second
//! capture, which gives changes of link 1 at captures 0 and 1. The second node has no record:
//!
//! ```text
//! 2 100 | 2 1: 02 02 | 0 1: | 2 1: 02 02 | 2 1: 00 1e | 0 1: | 2 1: 01 01 | 2 1: 00 01
//! ```
//!
//! Cost: an answer reads one record. Source: the plain form of the layers of Avcular & Suel 2011, section 4.

use std::ops::Range;

use bytes::Bytes;
use webstrata_layers::{Change, Page};

use webstrata_cells::Damage;
use webstrata_cells::coding::sections::{Sections, no_such_node, push_words};
use webstrata_cells::links::scratch::StoreScratch;

const PART: &str = "plain times";

/// Collects records and writes them.
#[derive(Default)]
pub(crate) struct SideWriter {
    ends: [Vec<u64>; 3],
    times: Vec<i64>,
    blank: Vec<u64>,
    links: Vec<u64>,
    captures: Vec<u64>,
}

impl SideWriter {
    /// Adds the record of the next node; `None` if the node has none.
    pub(crate) fn push(&mut self, page: Option<&Page<u64>>) {
        if let Some(page) = page {
            self.times.extend_from_slice(&page.timestamps);
            self.blank.extend(page.blank.iter().map(|&at| u64::from(at)));
            self.links.extend(page.changes.iter().map(|change| u64::from(change.link)));
            self.captures.extend(page.changes.iter().map(|change| u64::from(change.capture)));
        }
        let ends = [self.times.len(), self.blank.len(), self.links.len()];
        self.ends.iter_mut().zip(ends).for_each(|(all, end)| all.push(end as u64));
    }

    /// The encoded bytes.
    pub(crate) fn finish(self) -> Vec<u8> {
        let mut out = Vec::new();
        let least = self.times.iter().copied().min().unwrap_or(0);
        push_words(&mut out, &[self.ends[0].len() as u64, least.cast_unsigned()]);
        for ends in &self.ends {
            let any = ends.last().is_some_and(|&end| end > 0);
            push_array(&mut out, if any { ends } else { &[] });
        }
        let times: Vec<u64> = self.times.iter().map(|time| time.abs_diff(least)).collect();
        [times, self.blank, self.links, self.captures].iter().for_each(|values| push_array(&mut out, values));
        out
    }
}

fn push_array(out: &mut Vec<u8>, values: &[u64]) {
    let widest = values.iter().copied().max().unwrap_or(0);
    let width = (8 - widest.leading_zeros() as usize / 8).max(1);
    push_words(out, &[values.len() as u64, width as u64]);
    values.iter().for_each(|value| out.extend_from_slice(&value.to_le_bytes()[..width]));
}

/// Values of a fixed width.
struct Array {
    bytes: Bytes,
    width: usize,
}

impl Array {
    fn take(sections: &mut Sections) -> Result<Self, Damage> {
        let (values, width) = (sections.length()?, sections.word_within(8)?);
        if width == 0 {
            return Err(Damage::Outside { part: PART, value: 0, bound: 8 });
        }
        let width = usize::try_from(width).unwrap_or(8);
        Ok(Self { bytes: sections.take(values, width)?, width })
    }

    fn len(&self) -> usize {
        self.bytes.len() / self.width
    }

    /// The values in a range that [`Side::range`] returned.
    #[inline]
    fn values(&self, range: Range<usize>) -> impl ExactSizeIterator<Item = u64> + '_ {
        let bytes = self.bytes.get(range.start * self.width..range.end * self.width).unwrap_or_default();
        bytes.chunks_exact(self.width).map(|bytes| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        })
    }
}

/// Times and presence, ready to answer.
pub(crate) struct Side {
    nodes: usize,
    least: i64,
    ends: [Array; 3],
    times: Array,
    blank: Array,
    links: Array,
    captures: Array,
}

impl Side {
    /// Opens the bytes that [`SideWriter`] wrote.
    ///
    /// # Errors
    /// Parts that do not fit together.
    pub(crate) fn open(bytes: Bytes) -> Result<Self, Damage> {
        let mut sections = Sections::new(bytes, PART);
        let (nodes, least) = (sections.length()?, sections.word()?.cast_signed());
        let mut array = || Array::take(&mut sections);
        let ends = [array()?, array()?, array()?];
        let (times, blank, links, captures) = (array()?, array()?, array()?, array()?);
        let rest = sections.rest().len() as u64;
        if rest > 0 {
            return Err(Damage::Outside { part: PART, value: rest, bound: 0 });
        }
        for (ends, values) in ends.iter().zip([&times, &blank, &links]) {
            let expected = if values.len() == 0 { 0 } else { nodes };
            if ends.len() != expected {
                return Err(Damage::Outside { part: PART, value: ends.len() as u64, bound: expected as u64 });
            }
        }
        if links.len() != captures.len() {
            return Err(Damage::Outside { part: PART, value: captures.len() as u64, bound: links.len() as u64 });
        }
        Ok(Self { nodes, least, ends, times, blank, links, captures })
    }

    /// The number of nodes.
    pub(crate) fn nodes(&self) -> usize {
        self.nodes
    }

    /// The range of the values of a node.
    #[inline]
    fn range(&self, node: usize, ends: &Array, values: &Array) -> Result<Range<usize>, Damage> {
        if node >= self.nodes {
            return Err(no_such_node(node, self.nodes));
        }
        if values.len() == 0 {
            return Ok(0..0);
        }
        let mut both = ends.values(node.saturating_sub(1)..node + 1);
        let mut next = || both.next().and_then(|end| usize::try_from(end).ok()).unwrap_or(usize::MAX);
        let start = if node == 0 { 0 } else { next() };
        let end = next();
        if start > end || end > values.len() {
            return Err(Damage::Outside { part: PART, value: end as u64, bound: values.len() as u64 });
        }
        Ok(start..end)
    }

    /// The times of a node; none if the node has no record.
    #[inline]
    pub(crate) fn times(&self, node: usize) -> Result<impl ExactSizeIterator<Item = i64> + '_, Damage> {
        let times = self.times.values(self.range(node, &self.ends[0], &self.times)?);
        Ok(times.map(|time| self.least.wrapping_add_unsigned(time)))
    }

    /// Replaces the times and the blank captures in `captures` by those of a node.
    pub(crate) fn captures(&self, node: usize, captures: &mut StoreScratch) -> Result<(), Damage> {
        captures.times.clear();
        captures.times.extend(self.times(node)?);
        captures.blank.clear();
        let blank = self.blank.values(self.range(node, &self.ends[1], &self.blank)?);
        captures.blank.extend(blank.map(narrow));
        Ok(())
    }

    /// The changes of a node.
    #[inline]
    pub(crate) fn changes(&self, node: usize) -> Result<impl ExactSizeIterator<Item = Change> + '_, Damage> {
        let range = self.range(node, &self.ends[2], &self.links)?;
        let both = self.links.values(range.clone()).zip(self.captures.values(range));
        Ok(both.map(|(link, capture)| Change { link: narrow(link), capture: narrow(capture) }))
    }

    /// The bytes of values, and of the ends that lead to them.
    pub(crate) fn sizes(&self) -> (u64, u64) {
        let bytes = |array: &Array| array.bytes.len() as u64;
        let values = [&self.times, &self.blank, &self.links, &self.captures].map(bytes).iter().sum();
        (values, self.ends.iter().map(bytes).sum())
    }
}

/// An index. A value above 32 bits is damage, and becomes an index that is never valid.
fn narrow(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_as_documented() {
        let at = |capture| Change { link: 1, capture };
        let page =
            Page { timestamps: vec![100, 130], links: vec![4, 5], changes: vec![at(0), at(1)], ..Page::default() };
        let mut writer = SideWriter::default();
        writer.push(Some(&page));
        writer.push(None);
        let bytes = writer.finish();
        let mut expected = Vec::new();
        push_words(&mut expected, &[2, 100]);
        for (values, array) in
            [(2, &[2, 2][..]), (0, &[]), (2, &[2, 2]), (2, &[0, 30]), (0, &[]), (2, &[1, 1]), (2, &[0, 1])]
        {
            push_words(&mut expected, &[values, 1]);
            expected.extend_from_slice(array);
        }
        assert_eq!(bytes, expected);

        let side = Side::open(bytes.into()).unwrap();
        let mut captures = StoreScratch::default();
        side.captures(0, &mut captures).unwrap();
        assert_eq!((&captures.times[..], &captures.blank[..]), (&[100, 130][..], &[][..]));
        assert!(side.changes(0).unwrap().eq(page.changes));
        assert_eq!(side.times(1).unwrap().len(), 0);
        assert!(side.times(2).is_err());
    }

    #[test]
    fn widths_are_those_of_the_largest_values() {
        let mut writer = SideWriter::default();
        let times = vec![i64::MIN / 1000, 0, i64::MAX / 1000];
        writer.push(Some(&Page { timestamps: times.clone(), blank: vec![1], ..Page::default() }));
        let side = Side::open(writer.finish().into()).unwrap();
        assert_eq!((side.times.width, side.blank.width), (7, 1));
        assert!(side.times(0).unwrap().eq(times));
    }
}
