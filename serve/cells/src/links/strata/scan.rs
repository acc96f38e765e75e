//! Lists in order, all or some that are near one another: each record is decoded once.
//!
//! References are at most [`WINDOW_MAX`] records away. A list that is needed again is therefore among the lists of some
//! hundred records around the current one, which a ring keeps. A ring also knows where the next record of a group
//! begins, and passes over none if it reads them in order. If one link of a record is asked about, only the mask of
//! this link is read, through the records below. Memory: [`BYTES_MAX`], and the records of one chain.

use std::ops::Range;

use webstrata_layers::{Captures, Window};

use crate::coding::bits::BitReader;
use crate::error::Damage;
use crate::links::scratch::bytes_of;

use super::presence::{self, LinkAt, PHASES_MAX, PhaseMap};
use super::references;
use super::symbols::Context;
use super::timed::{COLUMNS, Phases, ROWS, STILL, starts_of};
use super::times::List;
use super::{Before, GROUP_MAX, Level, PART, Place, RecordAt, Strata, WINDOW_MAX, is_last};

/// The approximate number of bytes that a ring keeps.
const BYTES_MAX: usize = 2 << 20;
/// The number of links that most records do not exceed.
const LINKS_USUAL: usize = 64;
/// The number of groups with a known place: twice the groups within the farthest reference.
const PLACES: usize = 2 * WINDOW_MAX / GROUP_MAX;

/// A record that another record refers to. Its node is found only if the record is decoded.
#[derive(Clone, Copy)]
pub(super) struct Reference {
    pub(super) index: usize,
    /// The record that refers to it.
    pub(super) of: RecordAt,
}

impl Reference {
    /// A record as the reference of itself, where a chain begins.
    fn to(record: RecordAt) -> Self {
        Self { index: record.index, of: record }
    }

    fn find(self, strata: &Strata) -> RecordAt {
        if self.index == self.of.index { self.of } else { strata.near(self.of, self.index) }
    }
}

/// The records that a record refers to.
pub(super) trait Below {
    /// Replaces the contents of `links` by the links of a reference.
    fn links(
        &mut self,
        strata: &Strata,
        reference: Reference,
        depth: usize,
        links: &mut Vec<u64>,
    ) -> Result<(), Damage>;

    /// Replaces the contents of the two lists by the links of a reference and their masks of phases. Returns `false`,
    /// and no masks, if there are too many phases.
    fn masks(
        &mut self,
        strata: &Strata,
        reference: Reference,
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
        reference: Reference,
        depth: usize,
        links: &mut Vec<u64>,
    ) -> Result<(), Damage> {
        strata.links_of(reference.find(strata), depth, self, links)
    }

    fn masks(
        &mut self,
        strata: &Strata,
        reference: Reference,
        depth: usize,
        (links, masks): (&mut Vec<u64>, &mut Vec<u64>),
    ) -> Result<bool, Damage> {
        strata.masks(reference.find(strata), depth, self, links, masks)
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
    /// The strata, 0 if nothing is decoded, and the record.
    of: u64,
    record: RecordAt,
    kept: Kept,
    shape: usize,
    /// Where the record begins.
    place: Option<Place>,
    pub(super) links: Vec<u64>,
    /// If only links are kept: where they end, the record that this one refers to, and the links that are not copied
    /// from there.
    links_end: u64,
    reference: Option<usize>,
    rest: Vec<u64>,
    /// The indexes of events among known captures.
    pub(super) events: Vec<u32>,
    /// The captures and the starts of the phases; without meaning unless `has_times`.
    times: List,
    starts: Vec<i64>,
    has_times: bool,
    /// The masks of phases of the links; without meaning if there are too many phases.
    pub(super) masks: Vec<u64>,
    pub(super) has_masks: bool,
}

impl Decoded {
    /// The captures of the record.
    pub(super) fn captures(&self) -> Captures<'_> {
        Captures { times: &self.times.0, blank: &self.times.1, statuses: &[] }
    }

    fn is(&self, strata: &Strata, index: usize) -> bool {
        self.of == strata.opened && self.record.index == index
    }

    fn set_times(&mut self, captures: Captures<'_>) {
        let (times, blank) = &mut self.times;
        times.clear();
        times.extend_from_slice(captures.times);
        blank.clear();
        blank.extend_from_slice(captures.blank);
        starts_of(captures, &self.events, &mut self.starts);
        self.has_times = true;
    }

    fn bytes(&self) -> usize {
        let Self { links, rest, times: (times, blank), events, starts, masks, .. } = self;
        let lists = bytes_of(links) + bytes_of(rest) + bytes_of(masks);
        lists + bytes_of(times) + bytes_of(blank) + bytes_of(events) + bytes_of(starts)
    }
}

/// The records around the current one, indexed by record modulo their number.
#[derive(Default)]
pub(crate) struct Ring {
    records: Vec<Option<Box<Decoded>>>,
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
    phase_map: PhaseMap,
}

impl Ring {
    /// The approximate bytes of memory that the records take.
    pub(crate) fn bytes(&self) -> usize {
        let records = self.records.len() * size_of::<Decoded>();
        self.bytes + records + self.phases.iter().map(Phases::bytes).sum::<usize>()
    }

    /// The links of a record. Decodes the record, and the records that it refers to, unless the ring has them.
    pub(super) fn list(&mut self, strata: &Strata, record: RecordAt) -> Result<&[u64], Damage> {
        Ok(&self.prepare(strata).decode(strata, (Reference::to(record), Kept::Links), 0)?.links)
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
        self.prepare(strata).decode(strata, (Reference::to(record), Kept::All), 0)
    }

    /// Whether a record has a link in the window; `None` if it has too many phases for masks.
    pub(super) fn links_in(
        &mut self,
        strata: &Strata,
        record: RecordAt,
        link: u64,
        window: Window,
    ) -> Result<Option<bool>, Damage> {
        let Some(mask) = self.prepare(strata).mask(strata, Reference::to(record), 0, link)? else { return Ok(None) };
        if mask == 0 {
            return Ok(Some(false));
        }
        Ok(Some(self.with_times(strata, record.index)?.is_in(mask, window)))
    }

    /// Makes room for the records of a chain, and keeps the memory small.
    fn prepare(&mut self, strata: &Strata) -> &mut Self {
        if self.bytes() > BYTES_MAX {
            (self.records, self.phases, self.bytes) = Default::default();
        }
        // No two records of a chain share a place.
        let places = (WINDOW_MAX * (usize::from(strata.depth_max) + 2)).next_power_of_two();
        if self.records.len() < places {
            self.records.resize_with(places, || None);
        }
        self
    }

    /// The place of a record in the ring.
    fn at(&self, index: usize) -> usize {
        index & (self.records.len() - 1)
    }

    /// Decodes a record, unless the ring has it.
    fn decode(
        &mut self,
        strata: &Strata,
        (reference, kept): (Reference, Kept),
        depth: usize,
    ) -> Result<&Decoded, Damage> {
        let at = self.at(reference.index);
        // After damage, nothing may be taken for the record.
        let mut decoded = self.records[at].take().unwrap_or_default();
        if decoded.is(strata, reference.index) && decoded.kept >= kept {
            return Ok(self.records[at].insert(decoded));
        }
        self.bytes -= decoded.bytes();
        // Lists rarely have to move while they grow.
        decoded.links.clear();
        decoded.links.reserve(LINKS_USUAL);
        let record = reference.find(strata);
        let near = self.near(strata, record);
        let (head, captures) = strata.head_near(record, near, &mut self.list, &mut decoded.events)?;
        let (place, list) = (head.place, head.list);
        (decoded.shape, decoded.place, decoded.has_times) = (head.shape, Some(place), false);
        let is_last = is_last(record.index, strata.group_bits);
        let (start, opening) = match kept {
            Kept::Links => {
                let (end, shape) = (head.end, head.shape);
                let Decoded { links, rest, events, links_end, reference, .. } = &mut *decoded;
                let (after, opening) = strata.links(head, depth, (rest, self), links)?;
                *links_end = after;
                *reference =
                    opening.reference.and_then(|slot| references::neighbour(record.index, slot, strata.records));
                match shape {
                    STILL => (after, opening.after()),
                    ROWS if !is_last => {
                        let mut bits = BitReader::new(strata.records(), after);
                        let copying = opening.reference.is_some();
                        let own = if copying { rest.len() } else { links.len() } as u64;
                        presence::pass_rows(&strata.tables, &mut bits, end, copying, own, events.len() + 1)?;
                        (bits.position(), opening.after())
                    }
                    _ => (end, Context::Opening),
                }
            }
            Kept::All => {
                decoded.set_times(captures);
                let mut phases = self.phases.pop().unwrap_or_default();
                phases.starts = std::mem::take(&mut decoded.starts);
                let lists = (&mut decoded.links, &mut decoded.masks);
                let (has_masks, next) = strata.masks_after(head, depth, (&mut phases, self), lists.0, lists.1)?;
                decoded.has_masks = has_masks;
                decoded.starts = std::mem::take(&mut phases.starts);
                self.phases.push(phases);
                next
            }
        };
        let next = Place { index: record.index + 1, start, before: Before { opening, list }, ..place };
        self.note(strata, if is_last { place } else { next });
        (decoded.of, decoded.record, decoded.kept) = (strata.opened, record, kept);
        self.bytes += decoded.bytes();
        Ok(self.records[at].insert(decoded))
    }

    /// The mask of the phases in which a record has a link; `None` if the record has too many phases. Of the records
    /// below, only their links are decoded, and the masks up to this link are passed over.
    fn mask(&mut self, strata: &Strata, reference: Reference, depth: usize, link: u64) -> Result<Option<u64>, Damage> {
        let decoded = self.decode(strata, (reference, Kept::Links), depth)?;
        let Ok(at) = decoded.links.binary_search(&link) else { return Ok(Some(0)) };
        let phases = decoded.events.len() + 1;
        let mut bits = BitReader::new(strata.records(), decoded.links_end);
        if decoded.kept == Kept::All {
            return Ok(decoded.masks.get(at).copied().filter(|_| decoded.has_masks));
        } else if decoded.shape == STILL {
            return Ok(Some(1));
        } else if decoded.shape == COLUMNS {
            if phases > PHASES_MAX {
                return Ok(None);
            }
            let mut mask = 0;
            let turn = |turned: usize, phases: u64| mask ^= if turned == at { phases } else { 0 };
            presence::each_flip(&strata.tables, &mut bits, decoded.links.len(), phases, turn)?;
            return Ok(Some(mask));
        }
        presence::check_rows(phases)?;
        let Some(index) = decoded.reference else {
            let lens = (None, decoded.links.len());
            return Ok(Some(presence::read_row(&strata.tables, &mut bits, lens, LinkAt::Own(at), phases)));
        };
        let lens = (Some(decoded.links.len().saturating_sub(decoded.rest.len())), decoded.rest.len());
        let link_at = match decoded.rest.binary_search(&link) {
            Ok(own) => LinkAt::Own(own),
            Err(before) => {
                let below = Reference { index, of: decoded.record };
                let predicted = match self.mask(strata, below, depth + 1, link)? {
                    Some(mask) => self.moved(strata, mask, index, reference.index)?,
                    None => presence::full(phases),
                };
                LinkAt::Copied(at.saturating_sub(before), predicted)
            }
        };
        Ok(Some(presence::read_row(&strata.tables, &mut bits, lens, link_at, phases)))
    }

    /// Moves a mask from the phases of one record to those of another.
    fn moved(&mut self, strata: &Strata, mask: u64, from: usize, to: usize) -> Result<u64, Damage> {
        self.with_times(strata, from)?;
        self.with_times(strata, to)?;
        let [from, to] = [from, to].map(|index| self.at(index));
        if let (Some(from), Some(to)) = (&self.records[from], &self.records[to]) {
            self.phase_map.set(&from.starts, &to.starts);
        }
        Ok(self.phase_map.translate(mask))
    }

    /// A record that the ring has, with its captures.
    fn with_times(&mut self, strata: &Strata, index: usize) -> Result<&Decoded, Damage> {
        let at = self.at(index);
        let mut decoded = self.records[at].take().unwrap_or_default();
        if !decoded.has_times && decoded.is(strata, index) {
            self.bytes -= decoded.bytes();
            let (_, captures) = strata.head_near(decoded.record, decoded.place, &mut self.list, &mut decoded.events)?;
            decoded.set_times(captures);
            self.bytes += decoded.bytes();
        }
        Ok(self.records[at].insert(decoded))
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
        reference: Reference,
        depth: usize,
        links: &mut Vec<u64>,
    ) -> Result<(), Damage> {
        let decoded = self.decode(strata, (reference, Kept::Links), depth)?;
        links.clear();
        links.extend_from_slice(&decoded.links);
        Ok(())
    }

    fn masks(
        &mut self,
        strata: &Strata,
        reference: Reference,
        depth: usize,
        (links, masks): (&mut Vec<u64>, &mut Vec<u64>),
    ) -> Result<bool, Damage> {
        self.decode(strata, (reference, Kept::All), depth)?;
        // Only now: the records below were asked for in between.
        self.last = self.at(reference.index);
        let Some(decoded) = &self.records[self.last] else { return Err(Damage::Ends { part: PART }) };
        links.clear();
        links.extend_from_slice(&decoded.links);
        masks.clear();
        masks.extend_from_slice(&decoded.masks);
        Ok(decoded.has_masks)
    }

    fn starts(&self) -> &[i64] {
        self.records[self.last].as_ref().map_or(&[], |decoded| &decoded.starts)
    }
}
