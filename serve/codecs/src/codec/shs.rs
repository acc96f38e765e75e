//! Lists as gaps in variable bytes or nybbles (Najork, *The Scalable Hyperlink Store*, HT 2009, section 3, "Link store
//! cells").
//!
//! The numbers of a list are the number of its links, the difference of the first link from the UID of the node with
//! the sign moved to the lowest bit, and the difference of each other link from the one before. A number takes as many
//! units as it needs without leading zeros, at least one, the lowest first. Units lie in containers of 64 bits. A
//! container of nybbles has 12 nybbles, from the lowest bits on, then 12 bits, which are 1 for the last unit of a
//! number, then in 4 bits how many of the 12 units are unused. The paper gives no layout for bytes; here a container
//! has 7 bytes and 7 bits, and one bit is 0. A number may begin in one container and end in another. The lists of
//! `stride` nodes (k in the paper) share an index entry, and begin in a new container.
//!
//! Bytes: a header of five words (nodes, first UID, stride, bits a unit, bytes an index entry; 4 or 8 bytes), the
//! index: the number of each block's first container, then containers. A look-up walks half a block on average.

use bytes::Bytes;

use webstrata_cells::Damage;
use webstrata_cells::coding::sections::{Sections, no_such_node, push_wide, push_words, wide_at, width_of};
use webstrata_cells::links::codec::LinkCodec;
use webstrata_cells::links::lists::{Lists, Sizes};
use webstrata_cells::links::scratch::StoreScratch;

const PART: &str = "containers";
const HEADER: usize = 40;
/// The default for k: the paper finds sizes within 10 % of the least from 16 on.
pub const STRIDE: usize = 16;

/// The unit of a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seven units in a container.
    Byte,
    /// Twelve units in a container.
    Nybble,
}

impl Unit {
    const fn bits(self) -> u32 {
        match self {
            Unit::Byte => 8,
            Unit::Nybble => 4,
        }
    }

    /// The number of units of a container.
    const fn count(self) -> u32 {
        match self {
            Unit::Byte => 7,
            Unit::Nybble => 12,
        }
    }
}

/// Moves the sign of a difference to the lowest bit.
fn fold(value: i64) -> u64 {
    (value << 1 ^ value >> 63).cast_unsigned()
}

fn unfold(folded: u64) -> i64 {
    (folded >> 1).cast_signed() ^ -(folded & 1).cast_signed()
}

/// Writes containers.
#[derive(Debug)]
struct Writer {
    unit: Unit,
    containers: Vec<u64>,
    /// The open container, and the number of its units so far.
    open: u64,
    units: u32,
}

impl Writer {
    fn push(&mut self, mut value: u64) {
        let (bits, count) = (self.unit.bits(), self.unit.count());
        loop {
            let rest = value >> bits;
            self.open |= (value & ((1 << bits) - 1)) << (self.units * bits);
            self.open |= u64::from(rest == 0) << (count * bits + self.units);
            self.units += 1;
            if self.units == count {
                self.end_block();
            }
            if rest == 0 {
                break;
            }
            value = rest;
        }
    }

    /// Ends the open container.
    fn end_block(&mut self) {
        if self.units > 0 {
            if self.unit == Unit::Nybble {
                self.open |= u64::from(self.unit.count() - self.units) << 60;
            }
            self.containers.push(self.open);
            (self.open, self.units) = (0, 0);
        }
    }
}

/// Encodes lists. The default for `stride` is [`STRIDE`].
///
/// Panics if `stride` is 0.
pub fn encode(lists: &Lists, unit: Unit, stride: usize) -> Vec<u8> {
    let mut writer = Writer { unit, containers: Vec::new(), open: 0, units: 0 };
    let mut index = Vec::with_capacity(lists.nodes().div_ceil(stride));
    for (node, uid) in (0..lists.nodes()).zip(lists.first..) {
        if node.is_multiple_of(stride) {
            writer.end_block();
            index.push(writer.containers.len() as u64);
        }
        let list = lists.list(node);
        writer.push(list.len() as u64);
        if let Some(&first) = list.first() {
            writer.push(fold(first.wrapping_sub(uid).cast_signed()));
            list.windows(2).for_each(|pair| writer.push(pair[1] - pair[0]));
        }
    }
    writer.end_block();
    let width = width_of(writer.containers.len() as u64);
    let mut out = Vec::with_capacity(HEADER + index.len() * width + writer.containers.len() * 8);
    let (nodes, stride) = (lists.nodes() as u64, stride as u64);
    push_words(&mut out, &[nodes, lists.first, stride, u64::from(unit.bits()), width as u64]);
    index.into_iter().for_each(|entry| push_wide(&mut out, entry, width));
    push_words(&mut out, &writer.containers);
    out
}

/// Reads numbers.
#[derive(Debug)]
struct Reader<'a, const BITS: u32, const COUNT: u32> {
    /// The containers after the open one.
    rest: &'a [[u8; 8]],
    /// The units that were not read yet, the next one lowest, and their last-unit bits.
    payload: u64,
    lasts: u64,
    units: u32,
}

impl<'a, const BITS: u32, const COUNT: u32> Reader<'a, BITS, COUNT> {
    fn new(containers: &'a [[u8; 8]]) -> Self {
        Self { rest: containers, payload: 0, lasts: 0, units: 0 }
    }

    /// Opens the next container.
    #[inline]
    fn next(&mut self) -> Result<(), Damage> {
        let (container, rest) = self.rest.split_first().ok_or(Damage::Ends { part: PART })?;
        let word = u64::from_le_bytes(*container);
        self.rest = rest;
        self.payload = word & ((1 << (BITS * COUNT)) - 1);
        self.lasts = word >> (BITS * COUNT) & ((1 << COUNT) - 1);
        // These are the 4 bits above 12 nybbles and their bits. Above 7 bytes and their bits is only a 0.
        let unused = u32::try_from(word >> ((BITS + 1) * COUNT)).unwrap_or(COUNT);
        self.units = COUNT.saturating_sub(unused);
        Ok(())
    }

    #[inline]
    fn read(&mut self) -> Result<u64, Damage> {
        let (mut value, mut shift) = (0u64, 0u32);
        loop {
            if self.units == 0 {
                self.next()?;
            }
            let units = (self.lasts.trailing_zeros() + 1).min(self.units);
            let payload = self.payload & ((1 << (units * BITS)) - 1);
            if shift >= 64 {
                return Err(Damage::Outside { part: PART, value: u64::from(shift), bound: 64 });
            }
            value |= payload << shift;
            shift += units * BITS;
            let last = units > 0 && self.lasts >> (units - 1) & 1 == 1;
            self.payload >>= units * BITS;
            self.lasts >>= units;
            self.units -= units;
            if last {
                return Ok(value);
            }
        }
    }

    /// Skips numbers, a container at a time if all numbers that end there are skipped.
    fn skip(&mut self, mut count: u64) -> Result<(), Damage> {
        loop {
            let numbers_ended = u64::from((self.lasts & ((1 << self.units) - 1)).count_ones());
            if numbers_ended >= count {
                return (0..count).try_for_each(|_| self.read().map(|_| ()));
            }
            count -= numbers_ended;
            self.next()?;
        }
    }

    /// Appends a list of `count` links.
    fn links(&mut self, count: u64, uid: u64, links: &mut Vec<u64>) -> Result<(), Damage> {
        let max_count = u64::from(self.units) + self.rest.len() as u64 * u64::from(COUNT);
        let Some(capacity) = usize::try_from(count).ok().filter(|_| count <= max_count) else {
            return Err(Damage::Outside { part: PART, value: count, bound: max_count });
        };
        if capacity > 0 {
            links.reserve(capacity);
            let mut link = uid.wrapping_add_signed(unfold(self.read()?));
            links.push(link);
            for _ in 1..capacity {
                link = link.wrapping_add(self.read()?);
                links.push(link);
            }
        }
        Ok(())
    }
}

/// Lists in containers, ready to answer.
#[derive(Clone, Debug)]
pub struct Shs {
    nodes: usize,
    first: u64,
    stride: usize,
    unit: Unit,
    entry_bytes: usize,
    index: Bytes,
    containers: Bytes,
}

impl Shs {
    /// Opens the bytes that [`encode`] wrote.
    ///
    /// # Errors
    /// A header that does not fit the bytes.
    pub fn open(bytes: Bytes) -> Result<Self, Damage> {
        let mut sections = Sections::new(bytes, PART);
        let (nodes, first, stride) = (sections.length()?, sections.word()?, sections.length()?);
        let outside = |value, bound| Err(Damage::Outside { part: PART, value, bound });
        let unit = match sections.word()? {
            8 => Unit::Byte,
            4 => Unit::Nybble,
            bits => return outside(bits, 8),
        };
        let entry_bytes = match sections.word()? {
            4 => 4,
            8 => 8,
            bytes => return outside(bytes, 8),
        };
        if stride == 0 {
            return outside(0, 1);
        }
        let index = sections.take(nodes.div_ceil(stride), entry_bytes)?;
        let containers = sections.rest();
        // Each list has at least one number, and each number at least one unit.
        let max_nodes = containers.len() as u64 / 8 * u64::from(unit.count());
        if nodes as u64 > max_nodes {
            return outside(nodes as u64, max_nodes);
        }
        Ok(Self { nodes, first, stride, unit, entry_bytes, index, containers })
    }

    /// The containers from the block of a node on.
    fn block(&self, node: usize) -> Result<&[[u8; 8]], Damage> {
        let entry = wide_at(&self.index, node / self.stride, self.entry_bytes).filter(|_| node < self.nodes);
        let entry = entry.ok_or_else(|| no_such_node(node, self.nodes))?;
        let containers = self.containers.as_chunks().0;
        let outside = Damage::Outside { part: PART, value: entry, bound: containers.len() as u64 };
        usize::try_from(entry).ok().and_then(|entry| containers.get(entry..)).ok_or(outside)
    }

    /// Finds a node's list. Returns a reader at its first link, and the number of its links.
    fn find<'a, const BITS: u32, const COUNT: u32>(
        &'a self,
        node: usize,
    ) -> Result<(Reader<'a, BITS, COUNT>, u64), Damage> {
        let mut reader = Reader::new(self.block(node)?);
        let mut count = reader.read()?;
        for _ in 0..node % self.stride {
            reader.skip(count)?;
            count = reader.read()?;
        }
        Ok((reader, count))
    }

    fn list_in<const BITS: u32, const COUNT: u32>(&self, node: usize, links: &mut Vec<u64>) -> Result<(), Damage> {
        let (mut reader, count) = self.find::<BITS, COUNT>(node)?;
        reader.links(count, self.first.wrapping_add(node as u64), links)
    }

    fn scan_in<const BITS: u32, const COUNT: u32>(&self, visit: &mut dyn FnMut(usize, &[u64])) -> Result<(), Damage> {
        let mut links = Vec::new();
        let mut reader = Reader::<BITS, COUNT>::new(&[]);
        for (node, uid) in (0..self.nodes).zip(self.first..) {
            if node.is_multiple_of(self.stride) {
                reader = Reader::new(self.block(node)?);
            }
            links.clear();
            let count = reader.read()?;
            reader.links(count, uid, &mut links)?;
            visit(node, &links);
        }
        Ok(())
    }
}

impl LinkCodec for Shs {
    fn nodes(&self) -> usize {
        self.nodes
    }

    fn list(&self, node: usize, _: &mut StoreScratch, links: &mut Vec<u64>) -> Result<(), Damage> {
        links.clear();
        match self.unit {
            Unit::Byte => self.list_in::<8, 7>(node, links),
            Unit::Nybble => self.list_in::<4, 12>(node, links),
        }
    }

    fn degree(&self, node: usize) -> Result<usize, Damage> {
        let count = match self.unit {
            Unit::Byte => self.find::<8, 7>(node)?.1,
            Unit::Nybble => self.find::<4, 12>(node)?.1,
        };
        let outside = Damage::Outside { part: PART, value: count, bound: self.containers.len() as u64 };
        usize::try_from(count).map_err(|_| outside)
    }

    fn scan(&self, visit: &mut dyn FnMut(usize, &[u64])) -> Result<(), Damage> {
        match self.unit {
            Unit::Byte => self.scan_in::<8, 7>(visit),
            Unit::Nybble => self.scan_in::<4, 12>(visit),
        }
    }

    fn sizes(&self) -> Sizes {
        Sizes { data: self.containers.len() as u64, index: self.index.len() as u64, tables: HEADER as u64 }
    }
}
