//! Lists in order, all or some that are near one another: each record is decoded once.
//!
//! References are at most [`WINDOW_MAX`] records away. A list that is needed again is therefore among the lists of some
//! hundred records around the current one, which a ring keeps. A ring also knows where the next record of a group
//! begins, and passes over none if it reads them in order. Memory: [`BYTES_MAX`], and the records of one chain.

use std::ops::Range;

use webstrata_layers::Captures;

use crate::coding::bits::BitReader;
use crate::error::Damage;
use crate::links::scratch::bytes_of;

use super::presence;
use super::symbols::Context;
use super::timed::{Phases, ROWS, STILL};
use super::times::List;
use super::{GROUP_MAX, Level, Place, RecordAt, Strata, WINDOW_MAX, is_last};

/// The approximate number of bytes that a ring keeps.
const BYTES_MAX: usize = 2 << 20;
/// The number of groups with a known place: twice the groups within the farthest reference.
const PLACES: usize = 2 * WINDOW_MAX / GROUP_MAX;

/// The records that a record refers to.
pub(super) trait Below {
    /// Replaces the contents of `links` by the links of a reference.
    fn links(&mut self, strata: &Strata, reference: RecordAt, depth: usize, links: &mut Vec<u64>)
    -> Result<(), Damage>;

    /// Replaces the contents of the two lists by the links of a reference and their masks of phases. Returns `false`,
    /// and no masks, if there are too many phases.
    fn masks(
        &mut self,
        strata: &Strata,
        reference: RecordAt,
        depth: usize,
        lists: (&mut Vec<u64>, &mut Vec<u64>),
    ) -> Result<bool, Damage>;

    /// The starts of the phases of the reference whose masks were asked for last.
    fn starts(&self) -> &[i64];
}

/// Decodes references where they are needed, and keeps none.
impl Below for [Level] {
    fn links(
        &mut self,
        strata: &Strata,
        reference: RecordAt,
        depth: usize,
        links: &mut Vec<u64>,
    ) -> Result<(), Damage> {
        strata.links_of(reference, depth, self, links)
    }

    fn masks(
        &mut self,
        strata: &Strata,
        reference: RecordAt,
        depth: usize,
        (links, masks): (&mut Vec<u64>, &mut Vec<u64>),
    ) -> Result<bool, Damage> {
        strata.masks(reference, depth, self, links, masks)
    }

    fn starts(&self) -> &[i64] {
        self.first().map_or(&[], |level| &level.phases.starts)
    }
}

/// What is kept of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Kept {
    #[default]
    Links,
    /// Also captures and masks of phases.
    All,
}

/// A decoded record.
#[derive(Default)]
pub(super) struct Decoded {
    /// The strata and the index of the record; strata 0 if nothing is decoded.
    of: (u64, usize),
    kept: Kept,
    pub(super) links: Vec<u64>,
    /// The captures, the indexes of events among known captures, and the starts of the phases; if masks are kept.
    times: List,
    pub(super) events: Vec<u32>,
    starts: Vec<i64>,
    /// The masks of phases of the links; without meaning if there are too many phases.
    pub(super) masks: Vec<u64>,
    pub(super) has_masks: bool,
}

impl Decoded {
    /// The captures of the record.
    pub(super) fn captures(&self) -> Captures<'_> {
        Captures { times: &self.times.0, blank: &self.times.1, statuses: &[] }
    }

    fn bytes(&self) -> usize {
        let Self { links, times: (times, blank), events, starts, masks, .. } = self;
        bytes_of(links) + bytes_of(times) + bytes_of(blank) + bytes_of(events) + bytes_of(starts) + bytes_of(masks)
    }
}

/// The records around the current one, indexed by record modulo their number.
#[derive(Default)]
pub(crate) struct Ring {
    records: Vec<Decoded>,
    /// The bytes of all records.
    bytes: usize,
    /// The place of the reference whose masks were asked for last.
    last: usize,
    /// The last place known in each of some groups, and its strata, indexed by group modulo their number.
    places: [Option<(u64, Place)>; PLACES],
    /// Buffers for what is not kept.
    list: List,
    /// One for each record of a chain that is not being decoded.
    phases: Vec<Phases>,
}

impl Ring {
    /// The approximate bytes of memory that the records take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes + bytes_of(&self.records) + self.phases.iter().map(Phases::bytes).sum::<usize>()
    }

    /// The links of a record. Decodes the record, and the records that it refers to, unless the ring has them.
    pub(super) fn list(&mut self, strata: &Strata, record: RecordAt) -> Result<&[u64], Damage> {
        let at = self.prepare(strata).decode(strata, (record, Kept::Links), 0)?;
        Ok(&self.records[at].links)
    }

    /// Calls `visit` with each link of these nodes, at least once. Links that the list before has are left out.
    pub(crate) fn each_link(
        &mut self,
        strata: &Strata,
        nodes: Range<usize>,
        visit: &mut dyn FnMut(u64),
    ) -> Result<(), Damage> {
        let mut before: Vec<u64> = Vec::new();
        for node in nodes {
            let Some(record) = strata.find_record(node)? else { continue };
            let links = self.list(strata, record)?;
            let mut known = before.iter().copied().peekable();
            for &link in links {
                while known.next_if(|&known| known < link).is_some() {}
                if known.peek() != Some(&link) {
                    visit(link);
                }
            }
            before.clear();
            before.extend_from_slice(links);
        }
        Ok(())
    }

    /// A record with masks. Decodes the record, and the records that it refers to, unless the ring has them.
    pub(super) fn record(&mut self, strata: &Strata, record: RecordAt) -> Result<&Decoded, Damage> {
        let at = self.prepare(strata).decode(strata, (record, Kept::All), 0)?;
        Ok(&self.records[at])
    }

    /// Makes room for the records of a chain, and keeps the memory small.
    fn prepare(&mut self, strata: &Strata) -> &mut Self {
        if self.bytes() > BYTES_MAX {
            (self.records, self.phases, self.bytes) = Default::default();
        }
        // No two records of a chain share a place.
        let places = (WINDOW_MAX * (usize::from(strata.depth_max) + 2)).next_power_of_two();
        if self.records.len() < places {
            self.records.resize_with(places, Decoded::default);
        }
        self
    }

    /// Returns the place of a record.
    fn decode(&mut self, strata: &Strata, (record, kept): (RecordAt, Kept), depth: usize) -> Result<usize, Damage> {
        let (at, of) = (record.index % self.records.len(), (strata.opened, record.index));
        if self.records[at].of == of && self.records[at].kept >= kept {
            return Ok(at);
        }
        // After damage, nothing may be taken for the record.
        let mut decoded = std::mem::take(&mut self.records[at]);
        self.bytes -= decoded.bytes();
        let near = self.near(strata, record);
        let (head, captures) = strata.head_near(record, near, &mut self.list, &mut decoded.events)?;
        let (place, end, shape) = (head.place, head.end, head.shape);
        let mut phases = self.phases.pop().unwrap_or_default();
        phases.starts = std::mem::take(&mut decoded.starts);
        if kept == Kept::All {
            phases.set(captures, &decoded.events);
            let (times, blank) = &mut decoded.times;
            times.clear();
            times.extend_from_slice(captures.times);
            blank.clear();
            blank.extend_from_slice(captures.blank);
        }
        let (links, masks) = (&mut decoded.links, &mut decoded.masks);
        let is_last = is_last(record.index, strata.group_bits);
        let (start, before) = if kept == Kept::All {
            let (has_masks, next) = strata.masks_after(head, depth, (&mut phases, self), links, masks)?;
            decoded.has_masks = has_masks;
            next
        } else {
            let (after, opening) = strata.links(head, depth, (&mut phases.rest, self), links)?;
            match shape {
                STILL => (after, opening.after()),
                ROWS if !is_last => {
                    let copying = opening.reference.is_some();
                    let own = if copying { &phases.rest } else { &*links };
                    let mut bits = BitReader::new(strata.records(), after);
                    let (own, phases) = (own.len() as u64, decoded.events.len() + 1);
                    presence::pass_rows(&strata.tables, &mut bits, end, copying, own, phases)?;
                    (bits.position(), opening.after())
                }
                _ => (end, Context::Opening),
            }
        };
        decoded.starts = std::mem::take(&mut phases.starts);
        self.phases.push(phases);
        let next = Place { index: record.index + 1, start, before, ..place };
        self.note(strata, if is_last { place } else { next });
        (decoded.of, decoded.kept) = (of, kept);
        self.bytes += decoded.bytes();
        self.records[at] = decoded;
        Ok(at)
    }

    /// A place in the group of a record, not after the record, if one is known.
    fn near(&self, strata: &Strata, record: RecordAt) -> Option<Place> {
        if strata.group_bits == 0 {
            return None;
        }
        let group = record.index >> strata.group_bits;
        let (of, place) = self.places[group % PLACES]?;
        let is_near = place.index >> strata.group_bits == group && place.index <= record.index;
        (of == strata.opened && is_near).then_some(place)
    }

    /// Keeps a place. Groups of one record need none.
    fn note(&mut self, strata: &Strata, place: Place) {
        if strata.group_bits > 0 {
            self.places[(place.index >> strata.group_bits) % PLACES] = Some((strata.opened, place));
        }
    }
}

/// Keeps references, since they are needed again.
impl Below for Ring {
    fn links(
        &mut self,
        strata: &Strata,
        reference: RecordAt,
        depth: usize,
        links: &mut Vec<u64>,
    ) -> Result<(), Damage> {
        let at = self.decode(strata, (reference, Kept::Links), depth)?;
        links.clear();
        links.extend_from_slice(&self.records[at].links);
        Ok(())
    }

    fn masks(
        &mut self,
        strata: &Strata,
        reference: RecordAt,
        depth: usize,
        (links, masks): (&mut Vec<u64>, &mut Vec<u64>),
    ) -> Result<bool, Damage> {
        self.last = self.decode(strata, (reference, Kept::All), depth)?;
        let decoded = &self.records[self.last];
        links.clear();
        links.extend_from_slice(&decoded.links);
        masks.clear();
        masks.extend_from_slice(&decoded.masks);
        Ok(decoded.has_masks)
    }

    fn starts(&self) -> &[i64] {
        &self.records[self.last].starts
    }
}
