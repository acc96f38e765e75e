//! Answers about time from strata: the links of a window, and whole pages.
//!
//! A window that covers all phases of a record needs only the links, and so does a record in which nothing changes. By
//! rows, a window is an AND with each link's mask. By columns, it is the state when the window begins and the links
//! that appear in it.

use webstrata_layers::{Captures, Change, Page, Window};

use crate::coding::bits::BitReader;
use crate::error::Damage;

use super::links::Opening;
use super::presence::{self, PHASES_MAX, PhaseMap};
use super::scan::Decoded;
use super::symbols::Context;
use super::{Below, Head, Level, PART, RecordAt, Strata, StrataBuffers, links};
use crate::links::scratch::bytes_of;
use crate::links::strata::record::Shape;

pub(super) const STILL: usize = Shape::Still as usize;
pub(super) const ROWS: usize = Shape::Rows as usize;
pub(super) const COLUMNS: usize = Shape::Columns as usize;

/// The captures of a window, as phases.
#[derive(Clone, Copy)]
struct Span {
    first: usize,
    last: usize,
}

impl Span {
    /// The phases of the captures that a window selects; `None` if the window selects no known capture.
    #[inline]
    fn of(captures: Captures<'_>, events: &[u32], window: Window) -> Option<Self> {
        let (first, last) = captures.selected(window)?;
        let phase = |capture: u32| {
            let blank = captures.blank.partition_point(|&blank| blank < capture);
            let known = capture as usize - blank;
            events.partition_point(|&event| event as usize <= known)
        };
        Some(Self { first: phase(first), last: phase(last) })
    }
}

impl Decoded {
    /// Whether the captures of a window have a phase of this mask.
    pub(super) fn is_in(&self, mask: u64, window: Window) -> bool {
        let span = Span::of(self.captures(), &self.events, window);
        span.is_some_and(|span| mask & presence::between(span.first, span.last.min(PHASES_MAX - 1)) != 0)
    }
}

impl Head<'_> {
    /// Where the next record of the group begins, after presence by rows was read.
    fn after_rows(&self, opening: Opening) -> (u64, Context) {
        if self.shape == ROWS { (self.bits.position(), opening.after()) } else { (self.end, Context::Opening) }
    }
}

/// The phases of a record, and buffers for its masks.
#[derive(Default)]
pub(super) struct Phases {
    /// The times at which phases begin.
    pub(super) starts: Vec<i64>,
    pub(super) rest: Vec<u64>,
    rest_masks: Vec<u64>,
    phase_map: PhaseMap,
}

impl Phases {
    /// The bytes of memory that the longest lists take.
    pub(super) fn bytes(&self) -> usize {
        bytes_of(&self.starts) + bytes_of(&self.rest) + bytes_of(&self.rest_masks)
    }

    /// Sets the starts of the phases.
    pub(super) fn set(&mut self, captures: Captures<'_>, events: &[u32]) {
        starts_of(captures, events, &mut self.starts);
    }
}

/// Replaces the contents of `starts` by the starts of the phases. Each phase but the first begins with an event, an
/// index among known captures.
pub(super) fn starts_of(captures: Captures<'_>, events: &[u32], starts: &mut Vec<i64>) {
    starts.clear();
    let Captures { times, blank, .. } = captures;
    if blank.is_empty() {
        starts.extend(times.first());
        starts.extend(events.iter().filter_map(|&event| times.get(event as usize)));
        return;
    }
    let known = (0u32..).zip(times).filter(|(at, _)| blank.binary_search(at).is_err());
    let mut events = events.iter().peekable();
    for (at, (_, &time)) in (0u32..).zip(known) {
        if at == 0 || events.next_if_eq(&&at).is_some() {
            starts.push(time);
        }
    }
}

impl Strata {
    /// Replaces the contents of `links` by the links of a node in the window.
    ///
    /// # Errors
    /// A node outside the cell, and damaged bytes.
    pub(crate) fn window(
        &self,
        node: usize,
        window: Window,
        StrataBuffers { levels, masks, .. }: &mut StrataBuffers,
        links: &mut Vec<u64>,
    ) -> Result<(), Damage> {
        links.clear();
        let Some(record) = self.find_record(node)? else { return Ok(()) };
        match self.enough(levels).split_first_mut() {
            Some((level, below)) => self.window_of(record, window, (level, below), links, masks),
            None => Ok(()),
        }
    }

    fn window_of(
        &self,
        record: RecordAt,
        window: Window,
        (level, below): (&mut Level, &mut [Level]),
        links: &mut Vec<u64>,
        masks: &mut Vec<u64>,
    ) -> Result<(), Damage> {
        let (head, captures) = self.head(record, &mut level.list, &mut level.events)?;
        let Some(span) = Span::of(captures, &level.events, window) else { return Ok(()) };
        let covers_all = span.first == 0 && span.last == level.events.len();
        if head.shape == STILL || covers_all {
            return self.links(head, 0, (&mut level.rest, below), links).map(|_| ());
        }
        if head.shape != COLUMNS {
            level.phases.set(captures, &level.events);
            self.masks_after(head, 0, (&mut level.phases, below), links, masks)?;
            let window_phases = presence::between(span.first, span.last.min(PHASES_MAX - 1));
            let mut kept = 0;
            for at in 0..links.len().min(masks.len()) {
                links[kept] = links[at];
                kept += usize::from(masks[at] & window_phases != 0);
            }
            links.truncate(kept);
            return Ok(());
        }
        let (after, _) = self.links(head, 0, (&mut level.rest, below), links)?;
        let mut bits = BitReader::new(self.records(), after);
        let words = links.len().div_ceil(64);
        // Three sets of flags: the links of phase 0, the links that changed an odd number of times up to the window,
        // and the links that change in the window. A link that changes in the window is present before or after the
        // change.
        masks.clear();
        masks.resize(3 * words, 0);
        let (initial, rest) = masks.split_at_mut(words);
        let (turned, changing) = rest.split_at_mut(words);
        let phases = level.events.len() + 1;
        let first = |link: usize| initial[link / 64] |= 1 << (link % 64);
        presence::read_columns(&self.tables, &mut bits, links.len(), phases, first, |phase, link| {
            let bit = 1u64 << (link % 64);
            if phase <= span.first {
                turned[link / 64] ^= bit;
            } else if phase <= span.last {
                changing[link / 64] |= bit;
            }
        })?;
        let mut kept = 0;
        for at in 0..links.len() {
            let word = at / 64;
            let is_present = (initial[word] ^ turned[word] | changing[word]) >> (at % 64) & 1 == 1;
            links[kept] = links[at];
            kept += usize::from(is_present);
        }
        links.truncate(kept);
        Ok(())
    }

    /// Reads links and their masks of phases. Returns `false`, and no masks, if there are too many phases. Leaves the
    /// starts of the phases in the first level.
    pub(super) fn masks(
        &self,
        record: RecordAt,
        depth: usize,
        levels: &mut [Level],
        links: &mut Vec<u64>,
        masks: &mut Vec<u64>,
    ) -> Result<bool, Damage> {
        let Some((level, below)) = levels.split_first_mut() else { return Err(Damage::Ends { part: PART }) };
        let (head, captures) = self.head(record, &mut level.list, &mut level.events)?;
        level.phases.set(captures, &level.events);
        Ok(self.masks_after(head, depth, (&mut level.phases, below), links, masks)?.0)
    }

    /// Like [`Self::masks`], for a record after its head was read. Also returns where the next record of the group
    /// begins, and the context of its opening.
    pub(super) fn masks_after(
        &self,
        mut head: Head<'_>,
        depth: usize,
        (record_phases, below): (&mut Phases, &mut (impl Below + ?Sized)),
        links: &mut Vec<u64>,
        masks: &mut Vec<u64>,
    ) -> Result<(bool, (u64, Context)), Damage> {
        let phases = record_phases.starts.len().max(1);
        masks.clear();
        if head.shape == STILL {
            let (after, opening) = self.links(head, depth, (&mut record_phases.rest, below), links)?;
            // A record in which nothing changes has one phase.
            masks.resize(links.len(), 1);
            return Ok((true, (after, opening.after())));
        }
        if head.shape == COLUMNS {
            let next = (head.end, Context::Opening);
            let (after, _) = self.links(head, depth, (&mut record_phases.rest, below), links)?;
            if phases > PHASES_MAX {
                return Ok((false, next));
            }
            let mut bits = BitReader::new(self.records(), after);
            masks.resize(links.len(), 0);
            presence::each_flip(&self.tables, &mut bits, links.len(), phases, |link, phases| masks[link] ^= phases)?;
            return Ok((true, next));
        }
        presence::check_rows(phases)?;
        let (opening, reference) = self.opening(&mut head, depth)?;
        let Some(reference) = reference else {
            self.rest(&mut head, opening, 0, links)?;
            presence::read_rows(&self.tables, &mut head.bits, None, (masks, links.len()), phases);
            return Ok((true, head.after_rows(opening)));
        };
        let predicted = below.masks(self, reference, depth + 1, (links, masks))?;
        if !opening.all {
            links::read_copies_with(&self.tables, &mut head.bits, head.end, links, masks);
        }
        if predicted {
            record_phases.phase_map.set(below.starts(), &record_phases.starts);
            record_phases.phase_map.translate_all(masks);
        } else {
            masks.clear();
        }
        masks.resize(links.len(), presence::full(phases));
        self.rest(&mut head, opening, links.len(), &mut record_phases.rest)?;
        let rest = record_phases.rest.len();
        let rest_masks = (&mut record_phases.rest_masks, rest);
        presence::read_rows(&self.tables, &mut head.bits, Some(masks), rest_masks, phases);
        links::merge_with(links, masks, &record_phases.rest, &record_phases.rest_masks);
        Ok((true, head.after_rows(opening)))
    }

    /// The whole record of a node; `None` if the node has none.
    ///
    /// # Errors
    /// See `Self::window`, and an unsound record.
    pub fn page(&self, node: usize) -> Result<Option<Page<u64>>, Damage> {
        let Some(record) = self.find_record(node)? else { return Ok(None) };
        let mut levels = Vec::new();
        let levels = self.enough(&mut levels);
        let (mut links, mut masks, mut changes) = (Vec::new(), Vec::new(), Vec::new());
        let mut level = Level::default();
        let (head, captures) = self.head(record, &mut level.list, &mut level.events)?;
        // The capture with which each phase begins.
        let known: Vec<u32> = (0u32..)
            .zip(captures.times)
            .map(|(at, _)| at)
            .filter(|at| captures.blank.binary_search(at).is_err())
            .collect();
        let phases = level.events.len() + 1;
        let mut begins: Vec<u32> = known.first().copied().into_iter().collect();
        begins.extend(level.events.iter().filter_map(|&event| known.get(event as usize)));
        // Damaged events may lie beyond the captures.
        begins.resize(phases, begins.last().copied().unwrap_or(0));
        let number = |link: usize| u32::try_from(link).unwrap_or(u32::MAX);
        if head.shape == STILL || phases <= PHASES_MAX {
            self.masks(record, 0, levels, &mut links, &mut masks)?;
            if head.shape != STILL {
                for (link, &mask) in masks.iter().enumerate() {
                    // A link counts as present before the first capture.
                    let mut turns = (mask ^ (mask << 1 | 1)) & presence::full(phases);
                    while turns != 0 {
                        let phase = turns.trailing_zeros() as usize;
                        changes.push(Change { link: number(link), capture: begins[phase] });
                        turns &= turns - 1;
                    }
                }
            }
        } else {
            let (after, _) = self.links(head, 0, (&mut level.rest, levels), &mut links)?;
            let mut bits = BitReader::new(self.records(), after);
            let mut absent = vec![true; links.len()];
            let link_changes = &mut changes;
            let later =
                |phase: usize, link: usize| link_changes.push(Change { link: number(link), capture: begins[phase] });
            presence::read_columns(&self.tables, &mut bits, links.len(), phases, |link| absent[link] = false, later)?;
            let first = absent.iter().enumerate().filter(|(_, absent)| **absent);
            changes.extend(first.map(|(link, _)| Change { link: number(link), capture: begins[0] }));
            changes.sort_unstable();
        }
        let (timestamps, blank) = (captures.times.to_vec(), captures.blank.to_vec());
        let uid = self.first + node as u64;
        Ok(Some(Page { uid, timestamps, blank, links, changes, statuses: Vec::new() }))
    }
}

/// A record with a mask of phases for each link.
#[derive(Default)]
pub(crate) struct Phased {
    pub(crate) times: Vec<i64>,
    /// The captures with which the phases after the first begin. No capture is blank.
    pub(crate) events: Vec<u32>,
    pub(crate) links: Vec<u64>,
    pub(crate) masks: Vec<u64>,
}

impl Phased {
    /// The bytes of memory that the lists take.
    pub(crate) fn bytes(&self) -> usize {
        let Self { times, events, links, masks } = self;
        bytes_of(times) + bytes_of(events) + bytes_of(links) + bytes_of(masks)
    }
}

impl Strata {
    /// Reads a record without blank captures. Returns `false`, and no masks, if there are too many phases.
    pub(crate) fn phased(
        &self,
        node: usize,
        StrataBuffers { levels, .. }: &mut StrataBuffers,
        out: &mut Phased,
    ) -> Result<bool, Damage> {
        out.times.clear();
        out.events.clear();
        out.links.clear();
        out.masks.clear();
        let Some(record) = self.find_record(node)? else { return Ok(true) };
        let Some((level, below)) = self.enough(levels).split_first_mut() else { return Ok(false) };
        let (head, captures) = self.head(record, &mut level.list, &mut out.events)?;
        out.times.extend_from_slice(captures.times);
        level.phases.set(captures, &out.events);
        Ok(self.masks_after(head, 0, (&mut level.phases, below), &mut out.links, &mut out.masks)?.0)
    }
}
