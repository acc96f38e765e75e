//! The presence of the links of a record over time: phases, and one bit a link and phase.
//!
//! An *event* is a known capture, other than the first, in which any link of the page appears or disappears. Events cut
//! the known captures into *phases*, in which nothing changes. A record with at most 64 phases stores a mask of phases
//! for each link, by *rows*:
//!
//! ```text
//! copied links   predicted from the reference's mask, moved to the record's phases by time; the exceptions as gaps
//!                with an end
//! class          of each exception and each other link: 0 in all phases, 1 as the link coded before, 2 from phase p
//!                on, 3 up to p, 4 from p for n phases, 5 any mask; p and n as truncated binary
//! ```
//!
//! A record with more phases, or with a smaller encoding this way, is stored by *columns*: flags of the links of phase
//! 0, eight a symbol, then for each event the links that change, as gaps with an end. Source: Boldi, Santini & Vigna, A
//! Large Time-Aware Web Graph (2008) for labels of links in time. The prediction from the reference is new here.

use crate::coding::bits::BitReader;
use crate::error::Damage;

use super::symbols::{Context, Sink, Tables, Token, read_below};

/// The largest number of phases in a mask.
pub(super) const PHASES_MAX: usize = 64;

/// The mask with all of `phases` phases, 1 to 64.
#[inline]
pub(super) fn full(phases: usize) -> u64 {
    !0 >> ((64 - phases) & 63)
}

/// The mask of phases `first..=last`.
#[inline]
pub(super) fn between(first: usize, last: usize) -> u64 {
    full(last + 1) & (!0 << (first & 63))
}

/// Translates masks over a reference's phases into masks over the record's phases: the state of the reference when each
/// phase of the record begins.
pub(super) struct PhaseMap {
    /// The reference's phase for each phase of the record. Empty if both have the same phases.
    phases: Vec<u8>,
    full_from: u64,
    full_to: u64,
    /// The last mask that was translated, before and after translation.
    last: (u64, u64),
}

impl Default for PhaseMap {
    fn default() -> Self {
        Self { phases: Vec::new(), full_from: 1, full_to: 1, last: (1, 1) }
    }
}

impl PhaseMap {
    /// Sets the starts of the phases of the reference (`from`) and of the record (`to`), at most 64 each.
    pub(super) fn set(&mut self, from: &[i64], to: &[i64]) {
        self.full_from = full(from.len());
        self.full_to = full(to.len());
        self.last = (self.full_from, self.full_to);
        self.phases.clear();
        if from == to || from.is_empty() {
            return;
        }
        let mut at = 0u8;
        for &start in to {
            while from.get(usize::from(at) + 1).is_some_and(|&next| next <= start) {
                at += 1;
            }
            self.phases.push(at);
        }
    }

    /// Translates masks in place.
    #[inline]
    pub(super) fn translate_all(&mut self, masks: &mut [u64]) {
        if !self.phases.is_empty() {
            masks.iter_mut().for_each(|mask| *mask = self.translate(*mask));
        }
    }

    #[inline]
    pub(super) fn translate(&mut self, mask: u64) -> u64 {
        if self.phases.is_empty() {
            return mask;
        }
        if mask == self.full_from {
            return self.full_to;
        }
        if mask != self.last.0 {
            let bit = |(at, &phase): (usize, &u8)| (mask >> (phase & 63) & 1) << at;
            self.last = (mask, self.phases.iter().enumerate().map(bit).fold(0, |all, bit| all | bit));
        }
        self.last.1
    }
}

/// The bits of a mask of `phases` phases, at most 64.
#[inline]
fn bits_of(phases: usize) -> u32 {
    u32::try_from(phases).unwrap_or(64)
}

/// Writes the class of a mask that is not 0. `before` is the mask coded before.
#[inline]
fn write_class<S: Sink>(sink: &mut S, context: Context, mask: u64, before: u64, phases: usize) {
    let all = full(phases);
    let events = phases as u64 - 1;
    let (start, end) = (u64::from(mask.trailing_zeros()), 64 - u64::from(mask.leading_zeros()));
    if mask == all {
        sink.symbol(context, 0);
    } else if mask == before {
        sink.symbol(context, 1);
    } else if u64::from(mask.count_ones()) != end - start {
        sink.symbol(context, 5);
        sink.raw(mask, bits_of(phases));
    } else if end == phases as u64 {
        sink.symbol(context, 2);
        sink.below(start - 1, events);
    } else if start == 0 {
        sink.symbol(context, 3);
        sink.below(end - 1, events);
    } else {
        sink.symbol(context, 4);
        sink.below(start - 1, events - 1);
        sink.below(end - start - 1, events - start);
    }
}

#[inline]
fn read_class(tables: &Tables, bits: &mut BitReader<'_>, context: Context, before: u64, phases: usize) -> u64 {
    let all = full(phases);
    let events = phases as u64 - 1;
    match tables.plain(context).read(bits) {
        0 => all,
        1 => before,
        2 => all & (!0 << ((read_below(bits, events.max(1)) + 1) & 63)),
        3 => !0 >> (63 - (read_below(bits, events.max(1)) & 63)),
        4 => {
            let start = read_below(bits, events.saturating_sub(1).max(1)) + 1;
            let length = read_below(bits, events.saturating_sub(start).max(1)) + 1;
            !0 >> (64 - length.clamp(1, 64)) << (start & 63) & all
        }
        _ => bits.read_wide(bits_of(phases)) & all,
    }
}

/// Writes masks by rows. `predicted` has the masks that the reference predicts for the copied links, if it predicts
/// any.
pub(super) fn write_rows<S: Sink>(
    sink: &mut S,
    copied: &[u64],
    predicted: Option<&[u64]>,
    rest: &[u64],
    phases: usize,
) {
    let mut before = full(phases);
    let mut class = |sink: &mut S, context, mask| {
        write_class(sink, context, mask, before, phases);
        before = mask;
    };
    match predicted {
        Some(predicted) => {
            let mut same = 0;
            for (&mask, &expected) in copied.iter().zip(predicted) {
                if mask == expected {
                    same += 1;
                } else {
                    sink.number(Context::Exceptions, same);
                    same = 0;
                    class(sink, Context::ClassCopied, mask);
                }
            }
            if !copied.is_empty() {
                sink.number_end(Context::Exceptions);
            }
        }
        None => copied.iter().for_each(|&mask| class(sink, Context::ClassOwn, mask)),
    }
    rest.iter().for_each(|&mask| class(sink, Context::ClassOwn, mask));
}

/// Reads masks by rows. Corrects `copied`, which holds the predictions if `predicted`. Replaces the contents of `rest`
/// by the masks of `rest_len` other links.
pub(super) fn read_rows(
    tables: &Tables,
    bits: &mut BitReader<'_>,
    copied: &mut [u64],
    predicted: bool,
    rest: &mut Vec<u64>,
    rest_len: usize,
    phases: usize,
) {
    let mut before = full(phases);
    if predicted {
        let exceptions = tables.numbers(Context::Exceptions);
        let mut at = 0usize;
        while !copied.is_empty() {
            let Token::Gap(same) = exceptions.read(bits) else { break };
            at = at.saturating_add(usize::try_from(same).unwrap_or(usize::MAX));
            let Some(mask) = copied.get_mut(at) else { break };
            before = read_class(tables, bits, Context::ClassCopied, before, phases);
            *mask = before;
            at += 1;
        }
    } else {
        for mask in copied {
            before = read_class(tables, bits, Context::ClassOwn, before, phases);
            *mask = before;
        }
    }
    rest.clear();
    for _ in 0..rest_len {
        before = read_class(tables, bits, Context::ClassOwn, before, phases);
        rest.push(before);
    }
}

/// Presence by columns: the links of phase 0, and which links each event changes.
#[derive(Clone, Debug, Default)]
pub(super) struct Columns {
    initial: Vec<bool>,
    /// The links that events change, rising within each event.
    changed: Vec<u32>,
    /// The ends of the events' links in `changed`.
    ends: Vec<usize>,
}

impl Columns {
    /// The columns of changes, each a phase and a link. Links rise.
    pub(super) fn of(links: usize, phases: usize, changes: impl Iterator<Item = (usize, u32)> + Clone) -> Self {
        let mut initial = vec![true; links];
        let mut ends = vec![0; phases + 1];
        for (phase, link) in changes.clone() {
            ends[phase] += 1;
            initial[link as usize] &= phase > 0;
        }
        // First the start of each phase; the next loop advances it to the end.
        let mut sum = 0;
        ends.iter_mut().for_each(|end| sum += std::mem::replace(end, sum));
        let mut changed = vec![0; sum];
        for (phase, link) in changes {
            changed[ends[phase]] = link;
            ends[phase] += 1;
        }
        ends.pop();
        Self { initial, changed, ends }
    }

    /// The approximate bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        self.initial.len() + 4 * self.changed.len() + 8 * self.ends.len()
    }
}

pub(super) fn write_columns<S: Sink>(sink: &mut S, columns: &Columns) {
    for flags in columns.initial.chunks(8) {
        let last = flags.last() == Some(&true);
        let flag = |at: usize| usize::from(flags.get(at).copied().unwrap_or(last)) << at;
        sink.symbol(Context::Initial, (0..8).map(flag).sum());
    }
    for event in columns.ends.windows(2) {
        let mut next = 0;
        for &link in &columns.changed[event[0]..event[1]] {
            sink.number(Context::Column, u64::from(link - next));
            next = link + 1;
        }
        sink.number_end(Context::Column);
    }
}

/// Reads columns. Calls `initial` for each link of phase 0, then `change` with the phase of each event and each link
/// that the event changes.
pub(super) fn read_columns(
    tables: &Tables,
    bits: &mut BitReader<'_>,
    links: usize,
    phases: usize,
    mut initial: impl FnMut(usize),
    mut change: impl FnMut(usize, usize),
) -> Result<(), Damage> {
    let flags = tables.plain(Context::Initial);
    for from in (0..links).step_by(8) {
        let mut eight = flags.read(bits);
        while eight != 0 {
            let link = from + eight.trailing_zeros() as usize;
            if link < links {
                initial(link);
            }
            eight &= eight - 1;
        }
    }
    let gaps = tables.numbers(Context::Column);
    for phase in 1..phases {
        if bits.overran() {
            return Err(Damage::Ends { part: "strata presence" });
        }
        let mut next = 0usize;
        while let Token::Gap(gap) = gaps.read(bits) {
            let link = next.saturating_add(usize::try_from(gap).unwrap_or(usize::MAX));
            if link >= links {
                return Err(Damage::Outside { part: "strata presence", value: gap, bound: links as u64 });
            }
            change(phase, link);
            next = link + 1;
        }
    }
    Ok(())
}
