//! One record before it is written: a page, or the in-links of a URL, with its presence cut into phases.

use webstrata_layers::{Change, Page};

use crate::links::strata::Before;
use crate::links::strata::links::{self, Split};
use crate::links::strata::presence::{self, Columns, PHASES_MAX, PhaseMap};
use crate::links::strata::symbols::{Context, Cost, Model, Sink};
use crate::links::strata::times::{List, TimesWriter};

/// How the presence of a record is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Shape {
    /// No event: every link is in every known capture.
    Still = 0,
    Rows = 1,
    /// By rows, and the record has a length.
    LongRows = 2,
    Columns = 3,
}

/// A record by rows of at least this many bits has a length. A length takes about eight bits; without it, readers pass
/// over the record symbol by symbol.
const LONG: u32 = 96;

/// The place of a record in its group.
#[derive(Clone, Copy)]
pub(super) struct Spot {
    pub(super) before: Before,
    /// Whether the bits of the group end with the record: it neither has a length nor says where its links end.
    pub(super) last: bool,
}

/// A record, ready to be written.
#[derive(Default)]
pub(super) struct Record {
    pub(super) node_number: u64,
    pub(super) links: Vec<u64>,
    /// The captures, if the cell has time.
    pub(super) captures: Option<List>,
    // If nothing changes, the following fields are empty, except `starts`.
    /// A flag for each known capture after the first: whether the capture is an event.
    events: Vec<bool>,
    /// The times at which phases begin.
    starts: Vec<i64>,
    /// A mask of phases for each link. Empty if there are more than 64 phases.
    masks: Vec<u64>,
    columns: Columns,
}

impl Record {
    /// A record without time.
    pub(super) fn timeless(node_number: u64, links: Vec<u64>) -> Self {
        Self { node_number, links, starts: vec![0], ..Self::default() }
    }

    /// The record of a sound page. `node_number` is the number of its node among the links.
    pub(super) fn of(page: Page<u64>, node_number: u64) -> Self {
        let page_known = |at: u32| page.blank.is_empty() || page.blank.binary_search(&at).is_err();
        let known = page.timestamps.iter().zip(0u32..).filter(|&(_, at)| page_known(at)).map(|(&time, _)| time);
        if page.changes.is_empty() {
            let starts = known.take(1).collect();
            return Self {
                node_number,
                links: page.links,
                captures: Some((page.timestamps, page.blank)),
                starts,
                ..Self::default()
            };
        }
        let known: Vec<i64> = known.collect();
        let index = |capture: u32| capture as usize - page.blank.partition_point(|&blank| blank < capture);
        let mut events = vec![false; known.len().saturating_sub(1)];
        for change in &page.changes {
            if let Some(event) = index(change.capture).checked_sub(1) {
                events[event] = true;
            }
        }
        // The phase of each known capture.
        let mut phase_of = vec![0usize; known.len()];
        let mut starts: Vec<i64> = known.first().copied().into_iter().collect();
        for at in 1..known.len() {
            phase_of[at] = phase_of[at - 1] + usize::from(events[at - 1]);
            if events[at - 1] {
                starts.push(known[at]);
            }
        }
        let phases = starts.len();
        let mut masks =
            vec![presence::full(phases.clamp(1, PHASES_MAX)); if phases <= PHASES_MAX { page.links.len() } else { 0 }];
        let phase_of = |change: &Change| phase_of[index(change.capture)];
        for change in &page.changes {
            if let Some(mask) = masks.get_mut(change.link as usize) {
                *mask ^= presence::full(phases) & (!0 << phase_of(change));
            }
        }
        let columns =
            Columns::of(page.links.len(), phases, page.changes.iter().map(|change| (phase_of(change), change.link)));
        Self {
            node_number,
            links: page.links,
            captures: Some((page.timestamps, page.blank)),
            events,
            starts,
            masks,
            columns,
        }
    }

    /// The approximate bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        let captures = self.captures.as_ref().map_or(0, |(times, blank)| 8 * times.len() + 4 * blank.len());
        let phases = self.events.len() + 8 * (self.starts.len() + self.masks.len());
        size_of::<Self>() + 8 * self.links.len() + captures + phases + self.columns.bytes()
    }

    fn phases(&self) -> usize {
        self.starts.len().max(1)
    }

    fn is_still(&self) -> bool {
        // If a link is missing in the first phase, the page has an event in which the link appears.
        self.phases() == 1
    }

    /// Writes the events, eight flags a symbol.
    fn write_events<S: Sink>(&self, sink: &mut S) {
        for flags in self.events.chunks(8) {
            let last = flags.last() == Some(&true);
            let flag = |at: usize| usize::from(flags.get(at).copied().unwrap_or(last)) << at;
            sink.symbol(Context::Events, (0..8).map(flag).sum());
        }
    }

    /// Writes the part after the links, by rows. `reference` is the reference and the split that the links were written
    /// with.
    fn write_rows<S: Sink>(&self, reference: Option<(&Self, &Split)>, buffers: &mut RecordBuffers, sink: &mut S) {
        let Some((reference, split)) = reference else {
            return presence::write_rows(sink, None, &self.masks, self.phases());
        };
        buffers.predicted.clear();
        if reference.is_still() || !reference.masks.is_empty() {
            buffers.phase_map.set(&reference.starts, &self.starts);
            let mask = |&(_, from): &(u32, u32)| reference.masks.get(from as usize).copied().unwrap_or(1);
            let phase_map = &mut buffers.phase_map;
            buffers.predicted.extend(split.copied.iter().map(mask).map(|mask| phase_map.translate(mask)));
        } else {
            // A reference with too many phases predicts that links are in all phases.
            buffers.predicted.resize(split.copied.len(), presence::full(self.phases()));
        }
        buffers.copied.clear();
        buffers.copied.extend(split.copied.iter().map(|&(link, _)| self.masks[link as usize]));
        buffers.rest.clear();
        buffers.rest.extend(split.rest_at.iter().map(|&link| self.masks[link as usize]));
        presence::write_rows(sink, Some((&buffers.copied, &buffers.predicted)), &buffers.rest, self.phases());
    }

    /// Writes the whole record; `reference` is a slot and the record there. Returns what it says about the next
    /// record.
    pub(super) fn write<S: Sink>(
        &self,
        times: Option<&TimesWriter>,
        reference: Option<(usize, &Self)>,
        spot: Spot,
        model: &Model,
        buffers: &mut RecordBuffers,
        sink: &mut S,
    ) -> Before {
        let mut split = std::mem::take(&mut buffers.split);
        if let Some((_, reference)) = reference {
            split.set(&self.links, &reference.links);
        }
        let shape = if self.is_still() {
            Shape::Still
        } else if self.masks.is_empty() {
            Shape::Columns
        } else {
            let mut rows = Cost { model, bits: 0 };
            self.write_rows(reference.map(|(_, reference)| (reference, &split)), buffers, &mut rows);
            if self.columns_bits(model) < rows.bits { Shape::Columns } else { Shape::Rows }
        };
        let mut shaped = Shaped { record: self, shape, times, reference, split: &split, before: spot.before.opening };
        if shape == Shape::Rows && !spot.last {
            let mut record = Cost { model, bits: 0 };
            shaped.write(true, buffers, &mut record);
            if record.bits >= LONG {
                shaped.shape = Shape::LongRows;
            }
        }
        let shape = shaped.shape;
        let list = match (&self.captures, times) {
            (Some(list), Some(times)) => times.head(shape as usize, list, spot.before.list, sink),
            _ => 0,
        };
        let has_length = matches!(shape, Shape::LongRows | Shape::Columns) && !spot.last;
        if has_length {
            let mut length = Cost { model: sink.codes().unwrap_or(model), bits: 0 };
            shaped.write(true, buffers, &mut length);
            sink.number(Context::Length, u64::from(length.bits));
        }
        let after = shaped.write(!spot.last || shape != Shape::Still, buffers, sink);
        buffers.split = split;
        // Readers pass over a record with a length without reading its links.
        Before { opening: if has_length { Context::Opening } else { after }, list }
    }

    fn columns_bits(&self, model: &Model) -> u32 {
        let mut columns = Cost { model, bits: 0 };
        presence::write_columns(&mut columns, &self.columns);
        columns.bits
    }

    /// The bits of links and presence without a reference, and the bits of presence by columns, which uses no
    /// reference.
    pub(super) fn bits_alone(&self, spot: Spot, model: &Model, buffers: &mut RecordBuffers) -> (u32, u32) {
        let mut cost = Cost { model, bits: 0 };
        links::write(
            &mut cost,
            self.node_number,
            &self.links,
            None,
            spot.before.opening,
            !spot.last || !self.is_still(),
        );
        if self.is_still() {
            return (cost.bits, 0);
        }
        let columns = self.columns_bits(model);
        let mut rows = Cost { model, bits: 0 };
        if self.masks.is_empty() {
            rows.bits = columns;
        } else {
            self.write_rows(None, buffers, &mut rows);
        }
        (cost.bits + rows.bits.min(columns), columns)
    }

    /// The bits of links and presence against a reference. `None` if the two share no links, or if the bits reach
    /// `bits_max`.
    pub(super) fn bits_against(
        &self,
        (slot, reference): (usize, &Self),
        spot: Spot,
        columns: u32,
        bits_max: u32,
        model: &Model,
        buffers: &mut RecordBuffers,
    ) -> Option<u32> {
        let mut split = std::mem::take(&mut buffers.split);
        split.set(&self.links, &reference.links);
        let mut cost = Cost { model, bits: 0 };
        if !split.copied.is_empty() {
            let ends = !spot.last || !self.is_still();
            links::write(&mut cost, self.node_number, &self.links, Some((slot, &split)), spot.before.opening, ends);
            if cost.bits < bits_max && !self.is_still() {
                let mut rows = Cost { model, bits: 0 };
                if self.masks.is_empty() {
                    rows.bits = columns;
                } else {
                    self.write_rows(Some((reference, &split)), buffers, &mut rows);
                }
                cost.bits += rows.bits.min(columns);
            }
        }
        let shares = !split.copied.is_empty();
        buffers.split = split;
        (shares && cost.bits < bits_max).then_some(cost.bits)
    }
}

/// A record, and how it is written.
struct Shaped<'a> {
    record: &'a Record,
    shape: Shape,
    times: Option<&'a TimesWriter>,
    reference: Option<(usize, &'a Record)>,
    split: &'a Split,
    before: Context,
}

impl Shaped<'_> {
    /// Writes what follows the shape. `ends` says that more bits follow the links.
    fn write<S: Sink>(&self, ends: bool, buffers: &mut RecordBuffers, sink: &mut S) -> Context {
        let Self { record, shape, times, reference, split, before } = *self;
        if let (Some(list), Some(times)) = (&record.captures, times) {
            times.list(list, sink);
        }
        if shape != Shape::Still {
            record.write_events(sink);
        }
        let how = reference.map(|(slot, _)| (slot, split));
        let after = links::write(sink, record.node_number, &record.links, how, before, ends);
        match shape {
            Shape::Still => {}
            Shape::Rows | Shape::LongRows => {
                record.write_rows(reference.map(|(_, reference)| (reference, split)), buffers, sink);
            }
            Shape::Columns => presence::write_columns(sink, &record.columns),
        }
        after
    }
}

/// Buffers for writing, reused from record to record.
#[derive(Default)]
pub(super) struct RecordBuffers {
    split: Split,
    copied: Vec<u64>,
    predicted: Vec<u64>,
    rest: Vec<u64>,
    phase_map: PhaseMap,
}
