//! Strata: one record holds all of a page: links, captures, and which link was in which capture.
//!
//! Strata are a codec for the lists of a cell, with or without time. Measures against size, by gain: a record is coded
//! against a neighbour before or after it (`references`). Lists store no length and end with a symbol; groups of up to
//! 8 records share one length, and reading a record passes over the records before it in its group (`blocks`). Codes
//! depend on what was coded before (`symbols`). Presence is coded as exceptions to the presence of the neighbour
//! (`presence`). Timestamps come from a dictionary (`times`). Measures for speed: each symbol takes one table look-up,
//! a group is found by a sum over at most 15 lengths, and answers for windows in which nothing changes skip presence.
//!
//! ```text
//! lengths     of the four parts that follow, 64 bits each, in bytes
//! tables      first number, nodes, records, longest list, most captures of a record (each: 6 bits for its width less
//!             1, and its bits); depth (7 bits), timed (1 bit), the power of two that is the records of a group (3
//!             bits);
//!             codes (`symbols`), layout (`blocks`), with time the times (`times`)
//! ranks       unless every node has a record (`ranks`)
//! pointers    to blocks
//! blocks      groups of records: head (shape and captures, length, events; only with time), links (`links`), presence
//!             (`presence`)
//! ```
//!
//! A record of shape 0, still, has neither events nor presence, and ends with its links. Presence by rows, shapes 1 and
//! 2, ends itself, so that readers pass over a short record as over its links. Records of shape 2 and by columns, shape
//! 3, have a length, the number of bits after it. The last record of a full group has no length, and its links need no
//! end symbol unless presence follows: the bits end with the group. If groups have one record, this holds for all
//! records.
//!
//! Numbers are little-endian, and bits are read from the lowest bit of a byte on. Decoding a list reads at most depth +
//! 1 records, and passes over at most 7 records for each. Damaged bytes give an error or a wrong list; no list is
//! longer than the longest list in the head.

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
mod visits;

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use crate::coding::bits::BitReader;
use crate::error::Damage;
use crate::links::lists::Sizes;
use crate::links::scratch::bytes_of;
use crate::mapped::guard::Section;

use blocks::Blocks;
use links::Opening;
pub(crate) use scan::Ring;
use scan::{Below, Reference};
use symbols::{Context, Tables};
use times::{List, Times};
use webstrata_layers::Captures;

pub(crate) use encode::{HELD_BYTES_MAX, NodeList, encode_numbered, encode_streamed};
pub use encode::{Profile, encode_lists, encode_pages};
pub(crate) use timed::Phased;
use timed::{Phases, ROWS, STILL};

/// The farthest neighbour that may be a reference.
const WINDOW_MAX: usize = 64;
/// The deepest chain of references that the reader accepts.
const DEPTH_MAX: u8 = 8;
/// The largest number of records in a group.
const GROUP_MAX: usize = 8;
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
    /// The number of records in a group is 2 to this power.
    group_bits: u32,
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

/// Whether a record is the last of a full group, so that the bits of the group end with the record.
#[inline]
fn is_last(record: usize, group_bits: u32) -> bool {
    (record + 1).is_multiple_of(1 << group_bits)
}

/// A record and its node.
#[derive(Clone, Copy, Default)]
struct RecordAt {
    index: usize,
    node: usize,
}

/// What a record says about the next one in its group.
#[derive(Clone, Copy, Debug)]
struct Before {
    /// The context of the opening of the next record.
    opening: Context,
    /// The place of the list of captures: 0 if the list is explicit, or 1 + place in the dictionary.
    list: u64,
}

impl Before {
    /// Before the first record of a group.
    const NOTHING: Self = Self { opening: Context::Opening, list: 0 };
}

/// Where the bits of a record begin, and where those of its group end.
#[derive(Clone, Copy, Debug)]
struct Place {
    index: usize,
    start: u64,
    end: u64,
    before: Before,
}

/// A record after its head was read. Its links are next.
struct Head<'a> {
    bits: BitReader<'a>,
    end: u64,
    record: RecordAt,
    place: Place,
    /// The number of its node among the links.
    node_number: u64,
    /// See [`Shape`](record::Shape).
    shape: usize,
    /// See [`Before::list`].
    list: u64,
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
        let group_bits = u32::try_from(head.read(3)).unwrap_or(0);
        if records > nodes
            || 1 << group_bits > GROUP_MAX
            || depth_max > DEPTH_MAX
            || first.checked_add(nodes as u64).is_none()
        {
            return Err(Damage::Outside { part: PART, value: records as u64, bound: nodes as u64 });
        }
        let tables = Tables::load(&mut head)?;
        let layout = Blocks::load(&mut head, records.div_ceil(1 << group_bits), blocks - pointers)?;
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
            group_bits,
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

    /// The length of the longest list.
    pub(crate) fn links_max(&self) -> usize {
        self.links_max
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

    /// The bytes of the blocks of records. Only the bytes of a group that [`Self::begin`] found may be read.
    #[inline]
    fn records(&self) -> &[u8] {
        self.data.bytes()
    }

    /// Finds a record and checks its bytes. `near` is a place in its group, not after the record, if one is known;
    /// `list` is a buffer.
    #[inline]
    fn begin(&self, record: RecordAt, near: Option<Place>, list: &mut List) -> Result<Head<'_>, Damage> {
        let place = match near {
            Some(place) => {
                #[expect(clippy::cast_possible_truncation, reason = "the bits of a place are inside the records")]
                self.data.check((place.start / 8) as usize, place.end.div_ceil(8) as usize)?;
                place
            }
            None => {
                let group = record.index >> self.group_bits;
                let (start, end) = self.layout.locate(group, &self.index[self.pointers..], &self.data)?;
                Place { index: group << self.group_bits, start, end, before: Before::NOTHING }
            }
        };
        let mut bits = BitReader::new(self.records(), place.start);
        let mut before = place.before;
        for _ in place.index..record.index {
            before = self.pass(&mut bits, place.end, before, list)?;
        }
        let place = Place { index: record.index, start: bits.position().min(place.end), before, ..place };
        Ok(Head { bits, end: place.end, record, place, node_number: self.numbering.of(record.node), shape: 0, list: 0 })
    }

    /// Passes over a record that is not the last of its group, which ends at `end`. Returns what it says about the next
    /// record.
    #[inline]
    fn pass<'a>(
        &'a self,
        bits: &mut BitReader<'a>,
        end: u64,
        before: Before,
        list: &mut List,
    ) -> Result<Before, Damage> {
        let (mut phases, mut place) = (None, 0);
        if let Some(times) = &self.times {
            let shape;
            (shape, place) = Times::head(&self.tables, bits, before.list);
            if shape > ROWS {
                let length = self.tables.numbers(Context::Length).number(bits);
                *bits = BitReader::new(self.records(), bits.position().saturating_add(length).min(end));
                return Ok(Before { list: place, ..Before::NOTHING });
            }
            let captures = times.list(&self.tables, bits, place, list)?;
            if shape != STILL {
                let mut count = 1;
                self.events(bits, captures, |_| count += 1);
                phases = Some(count);
            }
        }
        let (opening, rest) = links::pass(&self.tables, bits, end, before.opening)?;
        if let Some(phases) = phases {
            presence::pass_rows(&self.tables, bits, end, opening.reference.is_some(), rest, phases)?;
        }
        Ok(Before { opening: opening.after(), list: place })
    }

    /// Reads the events of a record with these captures. Calls `visit` with the index of each among known captures.
    #[inline]
    fn events(&self, bits: &mut BitReader<'_>, captures: Captures<'_>, mut visit: impl FnMut(u32)) {
        let flags = self.tables.plain(Context::Events);
        let known = captures.times.len() - captures.blank.len();
        let mut from = 1u32;
        while (from as usize) < known {
            let mut eight = flags.read(bits);
            while eight != 0 {
                let event = from + eight.trailing_zeros();
                if (event as usize) < known {
                    visit(event);
                }
                eight &= eight - 1;
            }
            from += 8;
        }
    }

    /// Finds a record and reads everything before its links.
    #[inline]
    fn head<'a: 'b, 'b>(
        &'a self,
        record: RecordAt,
        list: &'b mut List,
        events: &mut Vec<u32>,
    ) -> Result<(Head<'a>, Captures<'b>), Damage> {
        self.head_near(record, None, list, events)
    }

    /// Like [`Self::head`], from a place in the group of the record, not after the record.
    #[inline]
    fn head_near<'a: 'b, 'b>(
        &'a self,
        record: RecordAt,
        near: Option<Place>,
        list: &'b mut List,
        events: &mut Vec<u32>,
    ) -> Result<(Head<'a>, Captures<'b>), Damage> {
        let mut head = self.begin(record, near, list)?;
        let Some(times) = &self.times else { return Ok((head, Captures::default())) };
        (head.shape, head.list) = Times::head(&self.tables, &mut head.bits, head.place.before.list);
        if head.shape > ROWS && !is_last(record.index, self.group_bits) {
            let length = self.tables.numbers(Context::Length).number(&mut head.bits);
            head.end = head.bits.position().saturating_add(length).min(head.end);
        }
        let captures = times.list(&self.tables, &mut head.bits, head.list, list)?;
        events.clear();
        if head.shape != STILL {
            self.events(&mut head.bits, captures, |event| events.push(event));
        }
        Ok((head, captures))
    }

    /// How the links of a record begin, and its reference.
    #[inline(always)]
    fn opening(&self, head: &mut Head<'_>, depth: usize) -> Result<(Opening, Option<Reference>), Damage> {
        let opening = Opening::read(&self.tables, &mut head.bits, head.end, head.place.before.opening);
        let Some(slot) = opening.reference else { return Ok((opening, None)) };
        match references::neighbour(head.record.index, slot, self.records)
            .filter(|_| depth < usize::from(self.depth_max))
        {
            Some(index) => Ok((opening, Some(Reference { index, of: head.record }))),
            None => Err(Damage::Outside { part: PART, value: slot as u64, bound: self.records as u64 }),
        }
    }

    /// Reads the links of a record after its head was read. `rest` is a buffer, for links that are not copied
    /// if the record has a reference. Returns where the links end, and how they begin.
    fn links(
        &self,
        mut head: Head<'_>,
        depth: usize,
        (rest, below): (&mut Vec<u64>, &mut (impl Below + ?Sized)),
        links: &mut Vec<u64>,
    ) -> Result<(u64, Opening), Damage> {
        let (opening, reference) = self.opening(&mut head, depth)?;
        let Some(reference) = reference else {
            self.rest(&mut head, opening, 0, links)?;
            return Ok((head.bits.position(), opening));
        };
        below.links(self, reference, depth + 1, links)?;
        if !opening.all {
            links::read_copies(&self.tables, &mut head.bits, head.end, links);
        }
        self.rest(&mut head, opening, links.len(), rest)?;
        links::merge(links, rest);
        Ok((head.bits.position(), opening))
    }

    /// Reads the links that are not copied, after `copied` links that are.
    #[inline(always)]
    fn rest(
        &self,
        Head { bits, end, node_number, .. }: &mut Head<'_>,
        opening: Opening,
        copied: usize,
        rest: &mut Vec<u64>,
    ) -> Result<(), Damage> {
        let links_max = self.links_max.saturating_sub(copied);
        links::read_rest(&self.tables, bits, *end, *node_number, opening, links_max, rest)
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
