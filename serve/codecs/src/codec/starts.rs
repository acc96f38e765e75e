//! Compressed starts (Randall et al., *The Link Database*, section 3.3): the places of the bits of each list.
//!
//! The paper numbers URLs by classes of degree, so that the lists of a class are together. For every P = 16 of them it
//! stores a base and 16 offsets, of 8 bits in the lowest class and 16 in the middle one; the highest class has plain
//! starts. Here UIDs are given, so 16 neighbours share a class: the narrowest of 8, 16, 32 and 64 bits that holds the
//! length of each of their lists. With 8 bits a list costs 12 bits of index, as in the paper.
//!
//! Bytes: a directory with one word for 16 nodes (the class in the two lowest bits, above it the offset in the data in
//! bytes), and the data: for 16 nodes their 16 lengths, in units of 1 or 4 bits, in 1, 2, 4 or 8 bytes each, then their
//! lists, bit after bit, padded to a whole byte. Lengths after the last node are 0.

use bytes::Bytes;

use webstrata_cells::Damage;
use webstrata_cells::coding::bits::{BitReader, BitWriter};
use webstrata_cells::coding::sections::{Sections, no_such_node};

const PART: &str = "starts of lists";
/// The number of lists that share a base.
const GROUP: usize = 16;

/// Appends lists.
#[derive(Debug)]
pub(super) struct StartsWriter {
    /// The unit of lengths in bits.
    unit: u32,
    directory: Vec<u8>,
    data: Vec<u8>,
    /// The lists of the open group.
    lists: BitWriter,
    /// The lengths of these lists in units.
    lengths: Vec<u64>,
    /// The start of the open list in `lists`.
    start: u64,
}

impl StartsWriter {
    /// A writer that pads lists to `unit` bits.
    pub(super) fn new(unit: u32) -> Self {
        let lists = BitWriter::default();
        Self { unit, directory: Vec::new(), data: Vec::new(), lists, lengths: Vec::with_capacity(GROUP), start: 0 }
    }

    /// The writer for the bits of the next list.
    pub(super) fn bits(&mut self) -> &mut BitWriter {
        &mut self.lists
    }

    /// Ends a list.
    pub(super) fn end_list(&mut self) {
        let unit = u64::from(self.unit);
        while !(self.lists.len() - self.start).is_multiple_of(unit) {
            self.lists.write(0, 1);
        }
        self.lengths.push((self.lists.len() - self.start) / unit);
        self.start = self.lists.len();
        if self.lengths.len() == GROUP {
            self.end_group();
        }
    }

    fn end_group(&mut self) {
        let longest = self.lengths.iter().copied().max().unwrap_or(0);
        let class = (0..3).find(|class| longest >> (8 << class) == 0).unwrap_or(3);
        let start = self.data.len() as u64;
        self.directory.extend_from_slice(&(start << 2 | class).to_le_bytes());
        self.lengths.resize(GROUP, 0);
        for length in self.lengths.drain(..) {
            self.data.extend_from_slice(&length.to_le_bytes()[..1 << class]);
        }
        self.data.append(&mut std::mem::take(&mut self.lists).into_bytes());
        self.start = 0;
    }

    /// The directory and the data.
    pub(super) fn finish(mut self) -> (Vec<u8>, Vec<u8>) {
        if !self.lengths.is_empty() {
            self.end_group();
        }
        (self.directory, self.data)
    }
}

/// Finds lists by node.
#[derive(Clone, Debug)]
pub(super) struct Starts {
    nodes: usize,
    unit: u32,
    directory: Bytes,
    data: Bytes,
}

impl Starts {
    /// Reads the directory of `nodes` lists from the sections, and the rest as the data.
    pub(super) fn take(mut sections: Sections, nodes: usize, unit: u32) -> Result<Self, Damage> {
        let directory = sections.take(nodes.div_ceil(GROUP), 8)?;
        Ok(Self { nodes, unit, directory, data: sections.rest() })
    }

    /// The number of lists.
    pub(super) fn nodes(&self) -> usize {
        self.nodes
    }

    /// The offset of a group of nodes in the data, and its class.
    #[inline]
    fn group(&self, group: usize) -> Option<(usize, u32)> {
        let entry = self.directory.get(group * 8..)?.first_chunk().map(|entry| u64::from_le_bytes(*entry))?;
        Some((usize::try_from(entry >> 2).ok()?, (entry & 3) as u32))
    }

    /// The bits of a node's list, and their end.
    #[inline]
    pub(super) fn find(&self, node: usize) -> Result<(BitReader<'_>, u64), Damage> {
        if node >= self.nodes {
            return Err(no_such_node(node, self.nodes));
        }
        let ends = Damage::Ends { part: PART };
        let (offset, class) = self.group(node / GROUP).ok_or(ends)?;
        let lengths = self.data.get(offset..).and_then(|rest| rest.get(..GROUP << class)).ok_or(ends)?;
        let within = node % GROUP;
        let (before, length) = match class {
            0 => {
                let before = lengths[..within].iter().map(|&length| u64::from(length)).sum();
                (before, u64::from(lengths[within]))
            }
            1 => sum(lengths, within, |length| u64::from(u16::from_le_bytes(length))),
            2 => sum(lengths, within, |length| u64::from(u32::from_le_bytes(length))),
            _ => sum(lengths, within, u64::from_le_bytes),
        };
        let unit = u64::from(self.unit);
        let start = ((offset + lengths.len()) as u64 * 8).saturating_add(before.saturating_mul(unit));
        let end = start.saturating_add(length.saturating_mul(unit));
        if end > self.data.len() as u64 * 8 {
            return Err(ends);
        }
        Ok((BitReader::new(&self.data, start), end))
    }

    /// The bytes of lists, and the bytes of directory and lengths.
    pub(super) fn sizes(&self) -> (u64, u64) {
        let groups = (0..self.directory.len() / 8).filter_map(|group| self.group(group));
        let lengths = groups.map(|(_, class)| (GROUP << class) as u64).sum::<u64>().min(self.data.len() as u64);
        (self.data.len() as u64 - lengths, self.directory.len() as u64 + lengths)
    }
}

/// The sum of the lengths before index `within`, and the length there.
fn sum<const N: usize>(lengths: &[u8], within: usize, read: impl Fn([u8; N]) -> u64) -> (u64, u64) {
    let lengths = lengths.as_chunks().0;
    let before = lengths[..within].iter().fold(0, |sum: u64, &length| sum.saturating_add(read(length)));
    (before, read(lengths[within]))
}
