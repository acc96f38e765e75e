//! Strata: one record holds all of a page: links, captures, and which link was in which capture.
//!
//! Strata are a codec for the lists of a cell, with or without time. Measures against size, by gain: a record is coded
//! against a neighbour before or after it (`references`). Lists store no length and end with the record (`blocks`).
//! Presence is coded as exceptions to the presence of the neighbour (`presence`). Timestamps come from a dictionary
//! (`times`). Measures for speed: each symbol takes one table look-up, a block has 16 records, and answers for windows
//! in which nothing changes skip presence.
//!
//! ```text
//! lengths     of the four parts that follow, 64 bits each, in bytes
//! tables      first number, nodes, records, longest list, most captures of a record (each: 6 bits for its width less
//!             1, and its bits); depth (7 bits), timed (1 bit);
//!             codes (`symbols`), layout (`blocks`), with time the times (`times`)
//! ranks       unless every node has a record (`ranks`)
//! pointers    to blocks
//! blocks      records: head (captures, shape, events; only with time), links (`links`), presence (`presence`)
//! ```
//!
//! Numbers are little-endian, and bits are read from the lowest bit of a byte on. Decoding a list reads at most depth +
//! 1 records. Damaged bytes give an error or a wrong list; no list is longer than the longest list in the head.

mod blocks;
mod encode;
mod links;
mod presence;
pub(crate) mod ranks;
mod record;
mod references;
mod scan;
mod store;
mod symbols;
#[cfg(test)]
mod tests;
mod timed;
mod times;

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use crate::coding::bits::BitReader;
use crate::error::Damage;
use crate::links::lists::Sizes;
use crate::links::scratch::bytes_of;
use crate::mapped::guard::Section;

use blocks::Blocks;
use scan::Below;
pub(crate) use scan::Ring;
use symbols::{Context, Tables};
use times::{List, Times};
use webstrata_layers::Captures;

pub(crate) use encode::{NodeList, encode_numbered, encode_streamed};
pub use encode::{Profile, encode_lists, encode_pages};
pub(crate) use timed::Phased;
use timed::Phases;

/// The farthest neighbour that may be a reference.
const WINDOW_MAX: usize = 32;
/// The deepest chain of references that the reader accepts.
const DEPTH_MAX: u8 = 8;
const PART: &str = "strata";

/// The number of strata that were opened.
static OPENED: AtomicU64 = AtomicU64::new(0);

/// Encoded lists, ready to answer.
pub struct Strata {
    /// The number of these strata among all that were opened, from 1 on. Buffers that know decoded records tell strata
    /// apart by it.
    opened: u64,
    /// Everything before the blocks of records.
    index: Bytes,
    /// The blocks of records. Reads check them.
    data: Section,
    first: u64,
    nodes: usize,
    records: usize,
    links_max: usize,
    depth_max: u8,
    tables: Tables,
    layout: Blocks,
    times: Option<Times>,
    numbering: Numbering,
    /// The offsets of the parts.
    ranks: usize,
    pointers: usize,
}

/// The numbers of nodes among links, if links are not numbers of nodes: `first`, and the rank of the node, without its
/// lowest bits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbering {
    /// The lowest number.
    pub(crate) first: u64,
    /// The ranks of nodes; `None` if each node is its own rank.
    pub(crate) ranks: Option<Bytes>,
    /// The number of low bits that are left out.
    pub(crate) shift: u32,
}

impl Numbering {
    /// The number of a node, or the number that it would have if it had a rank.
    #[inline]
    pub(crate) fn of(&self, node: usize) -> u64 {
        let rank = match &self.ranks {
            None => node,
            Some(ranks) => ranks::rank(ranks, node).map_or(0, |(before, _)| before),
        };
        self.first + (rank as u64 >> self.shift)
    }
}

/// The buffers for one level of references.
#[derive(Default)]
struct Level {
    list: List,
    /// Indexes of the events among known captures.
    events: Vec<u32>,
    rest: Vec<u64>,
    phases: Phases,
}

/// The buffers for decoding strata.
#[derive(Default)]
pub(crate) struct StrataBuffers {
    /// One level for each record of a chain of references.
    levels: Vec<Level>,
    /// The masks of the answer's links.
    masks: Vec<u64>,
    /// The links of a page, and the times of its known captures.
    links: Vec<u64>,
    known: Vec<i64>,
}

impl StrataBuffers {
    /// The approximate bytes of memory that the longest lists of links and captures take.
    pub(crate) fn bytes(&self) -> usize {
        let list = |(times, blank): &List| bytes_of(times) + bytes_of(blank);
        let level =
            |level: &Level| list(&level.list) + bytes_of(&level.events) + bytes_of(&level.rest) + level.phases.bytes();
        let Self { levels, masks, links, known } = self;
        levels.iter().map(level).sum::<usize>() + bytes_of(masks) + bytes_of(links) + bytes_of(known)
    }
}

/// A record and its node.
#[derive(Clone, Copy)]
struct RecordAt {
    index: usize,
    node: usize,
}

/// A record after its head was read.
struct Head<'a> {
    bits: BitReader<'a>,
    end: u64,
    record: RecordAt,
    /// The number of its node among the links.
    node_number: u64,
    /// 0: still, 1: rows, 2: columns.
    shape: usize,
}

impl Strata {
    /// Opens the bytes that an encoder wrote.
    ///
    /// # Errors
    /// Bytes whose parts do not fit together.
    pub fn open(bytes: Bytes) -> Result<Self, Damage> {
        Self::open_section(&bytes.into(), None)
    }

    /// Opens a section of an image. Without `numbering`, links are numbers of nodes.
    pub(crate) fn open_section(section: &Section, numbering: Option<Numbering>) -> Result<Self, Damage> {
        let bytes = section.bytes();
        let mut lengths = BitReader::new(bytes, 0);
        let mut end = 32usize;
        let mut next = || {
            let start = end;
            let length = lengths.read_wide(64);
            end = usize::try_from(length).ok().and_then(|length| start.checked_add(length)).unwrap_or(usize::MAX);
            if end <= bytes.len() { Ok(start) } else { Err(Damage::Ends { part: PART }) }
        };
        let (tables_at, ranks, pointers, blocks) = (next()?, next()?, next()?, next()?);
        if end != bytes.len() {
            return Err(Damage::Outside { part: PART, value: end as u64, bound: bytes.len() as u64 });
        }
        let mut head = BitReader::new(&bytes[..ranks], tables_at as u64 * 8);
        let first = head.read_sized();
        let mut count = || usize::try_from(head.read_sized()).unwrap_or(usize::MAX);
        let (nodes, records, links_max, captures_max) = (count(), count(), count(), count());
        let depth_max = u8::try_from(head.read(7)).unwrap_or(u8::MAX);
        let timed = head.read(1) == 1;
        if records > nodes || depth_max > DEPTH_MAX || first.checked_add(nodes as u64).is_none() {
            return Err(Damage::Outside { part: PART, value: records as u64, bound: nodes as u64 });
        }
        let tables = Tables::load(&mut head)?;
        let layout = Blocks::load(&mut head, records, blocks - pointers)?;
        let times = if timed { Some(Times::load(&tables, &mut head, captures_max)?) } else { None };
        if records < nodes {
            ranks::check(&bytes[ranks..pointers], nodes, records)?;
        }
        if head.overran() {
            return Err(Damage::Ends { part: PART });
        }
        Ok(Self {
            opened: OPENED.fetch_add(1, Ordering::Relaxed) + 1,
            index: section.resident(bytes.slice(..blocks)),
            data: section.starting_at(blocks),
            first,
            nodes,
            records,
            links_max,
            depth_max,
            tables,
            layout,
            times,
            numbering: numbering.unwrap_or(Numbering { first, ..Numbering::default() }),
            ranks,
            pointers,
        })
    }

    /// The number of records, and the ranks of the nodes that have one; `None` if all nodes have.
    pub(crate) fn nodes_with_records(&self) -> (usize, Option<Bytes>) {
        (self.records, (self.records < self.nodes).then(|| self.index.slice(self.ranks..self.pointers)))
    }

    /// The levels for the records that an answer needs.
    #[inline]
    fn enough<'a>(&self, levels: &'a mut Vec<Level>) -> &'a mut [Level] {
        levels.resize_with(usize::from(self.depth_max) + 1, Level::default);
        levels
    }

    /// The record of a node; `None` if the node has none.
    #[inline]
    fn find_record(&self, node: usize) -> Result<Option<RecordAt>, Damage> {
        if node >= self.nodes {
            return Err(Damage::Outside { part: PART, value: node as u64, bound: self.nodes as u64 });
        }
        let dense = self.records == self.nodes;
        let index = if dense { Some(node) } else { ranks::record_of(&self.index[self.ranks..self.pointers], node) };
        Ok(index.map(|index| RecordAt { index, node }))
    }

    /// The record with this index, found from a record near it.
    #[inline]
    fn near(&self, record: RecordAt, index: usize) -> RecordAt {
        let dense = self.records == self.nodes;
        let ranks = &self.index[self.ranks..self.pointers];
        let node = if dense { Some(index) } else { ranks::node_near(ranks, (record.index, record.node), index) };
        RecordAt { index, node: node.unwrap_or(0) }
    }

    /// The bytes of the blocks of records. Only the bytes of a record that [`Self::begin`] found may be read.
    #[inline]
    fn records(&self) -> &[u8] {
        self.data.bytes()
    }

    /// Finds a record and checks its bytes.
    #[inline]
    fn begin(&self, record: RecordAt) -> Result<Head<'_>, Damage> {
        let (start, end) = self.layout.locate(record.index, &self.index[self.pointers..], &self.data)?;
        Ok(Head {
            bits: BitReader::new(self.records(), start),
            end,
            record,
            node_number: self.numbering.of(record.node),
            shape: 0,
        })
    }

    /// Finds a record and reads everything before its links.
    #[inline]
    fn head<'a: 'b, 'b>(
        &'a self,
        record: RecordAt,
        list: &'b mut List,
        events: &mut Vec<u32>,
    ) -> Result<(Head<'a>, Captures<'b>), Damage> {
        let mut head = self.begin(record)?;
        let Some(times) = &self.times else { return Ok((head, Captures::default())) };
        let captures = times.list(&self.tables, &mut head.bits, list)?;
        head.shape = self.tables.plain(Context::Shape).read(&mut head.bits);
        events.clear();
        if head.shape != 0 {
            let flags = self.tables.plain(Context::Events);
            let known = captures.times.len() - captures.blank.len();
            let mut from = 1u32;
            while (from as usize) < known {
                let mut eight = flags.read(&mut head.bits);
                while eight != 0 {
                    let event = from + eight.trailing_zeros();
                    if (event as usize) < known {
                        events.push(event);
                    }
                    eight &= eight - 1;
                }
                from += 8;
            }
        }
        Ok((head, captures))
    }

    /// The reference of a record, and whether all links of the reference are copied.
    #[inline(always)]
    fn reference(&self, head: &mut Head<'_>, depth: usize) -> Result<Option<(RecordAt, bool)>, Damage> {
        if head.bits.position() >= head.end {
            return Ok(None);
        }
        let symbol = self.tables.plain(Context::Reference).read(&mut head.bits);
        let Some(symbol) = symbol.checked_sub(1) else { return Ok(None) };
        match references::neighbour(head.record.index, symbol / 2, self.records)
            .filter(|_| depth < usize::from(self.depth_max))
        {
            Some(reference) => Ok(Some((self.near(head.record, reference), symbol % 2 == 1))),
            None => Err(Damage::Outside { part: PART, value: symbol as u64, bound: self.records as u64 }),
        }
    }

    /// Reads the links of a record after its head was read. `rest` is a buffer. Returns where presence begins.
    fn links(
        &self,
        mut head: Head<'_>,
        depth: usize,
        (rest, below): (&mut Vec<u64>, &mut (impl Below + ?Sized)),
        links: &mut Vec<u64>,
    ) -> Result<u64, Damage> {
        match self.reference(&mut head, depth)? {
            None => {
                links::read_rest(
                    &self.tables,
                    &mut head.bits,
                    head.end,
                    head.node_number,
                    false,
                    self.links_max,
                    links,
                )?;
            }
            Some((reference, all)) => {
                below.links(self, reference, depth + 1, links)?;
                if !all {
                    links::read_copies(&self.tables, &mut head.bits, links);
                }
                links::read_rest(&self.tables, &mut head.bits, head.end, head.node_number, true, self.links_max, rest)?;
                links::merge(links, rest);
            }
        }
        Ok(head.bits.position())
    }

    /// The links of a record.
    fn links_of(
        &self,
        record: RecordAt,
        depth: usize,
        levels: &mut [Level],
        links: &mut Vec<u64>,
    ) -> Result<(), Damage> {
        links.clear();
        let Some((level, below)) = levels.split_first_mut() else { return Err(Damage::Ends { part: PART }) };
        let (head, _) = self.head(record, &mut level.list, &mut level.events)?;
        self.links(head, depth, (&mut level.rest, below), links).map(|_| ())
    }
}

impl Strata {
    /// Calls `visit` with each node and its list, in order of nodes.
    ///
    /// # Errors
    /// Damaged bytes.
    fn scan_lists(&self, visit: &mut dyn FnMut(usize, &[u64])) -> Result<(), Damage> {
        let mut ring = Ring::default();
        for node in 0..self.nodes {
            match self.find_record(node)? {
                Some(record) => visit(node, ring.list(self, record)?),
                None => visit(node, &[]),
            }
        }
        Ok(())
    }

    /// The size of the parts in bytes.
    pub(crate) fn sizes(&self) -> Sizes {
        Sizes {
            data: self.data.bytes().len() as u64,
            index: (self.index.len() - self.ranks) as u64,
            tables: self.ranks as u64,
        }
    }
}
