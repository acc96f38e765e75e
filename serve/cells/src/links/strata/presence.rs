//! The presence of the links of a record over time: phases, and one bit a link and phase.
//!
//! An *event* is a known capture, other than the first, in which any link of the page appears or disappears. Events cut
//! the known captures into *phases*, in which nothing changes. A record with at most 64 phases stores a mask of phases
//! for each link, by *rows*:
//!
//! ```text
//! copied links   exceptions with an end, if the record has a reference: the links whose mask is not the reference's
//!                mask, moved to the record's phases by time
//! other links    exceptions: the links that are not in all phases; no end follows if the last link is an exception
//! exception      8 n + 1 + class: after n links that are no exceptions. 15 means 15 and what follows as a number. The
//!                end is 0
//! class          0 in all phases, 1 as the exception before, 2 from phase p on, 3 up to p, 4 from p for n phases, 5
//!                any mask; p and n as truncated binary
//! ```
//!
//! A reference with more phases predicts that links are in all phases.
//!
//! A record with more phases, or with a smaller encoding this way, is stored by *columns*: flags of the links of phase
//! 0, eight a symbol, then for each event the links that change, as gaps with an end. Source: Boldi, Santini & Vigna, A
//! Large Time-Aware Web Graph (2008) for labels of links in time. The prediction from the reference is new here.

use crate::coding::bits::BitReader;
use crate::error::Damage;

use super::symbols::{Context, Sink, Tables, Token, read_below};

const PART: &str = "strata presence";
/// The largest number of phases in a mask.
pub(super) const PHASES_MAX: usize = 64;

/// Checks that a record by rows has no more phases than a mask.
#[inline]
pub(super) fn check_rows(phases: usize) -> Result<(), Damage> {
    if phases > PHASES_MAX {
        return Err(Damage::Outside { part: PART, value: phases as u64, bound: PHASES_MAX as u64 });
    }
    Ok(())
}

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

/// The largest number of links before an exception in its symbol. It also stands for larger numbers; what they have
/// more follows.
const SAME_MAX: usize = 15;
/// The number of symbols of exceptions.
pub(super) const EXCEPTIONS: usize = 8 * (SAME_MAX + 1);
/// The symbol after the last exception.
const EXCEPTIONS_END: usize = 0;

/// The class of a mask that is not 0. `before` is the mask coded before.
#[inline]
fn class_of(mask: u64, before: u64, phases: usize) -> usize {
    let (start, end) = (mask.trailing_zeros(), 64 - mask.leading_zeros());
    if mask == full(phases) {
        0
    } else if mask == before {
        1
    } else if mask.count_ones() != end - start {
        5
    } else if end == bits_of(phases) {
        2
    } else if start == 0 {
        3
    } else {
        4
    }
}

/// Writes the mask of a class.
#[inline]
fn write_mask<S: Sink>(sink: &mut S, class: usize, mask: u64, phases: usize) {
    let events = phases as u64 - 1;
    let (start, end) = (u64::from(mask.trailing_zeros()), 64 - u64::from(mask.leading_zeros()));
    match class {
        0 | 1 => {}
        2 => sink.below(start - 1, events),
        3 => sink.below(end - 1, events),
        4 => {
            sink.below(start - 1, events - 1);
            sink.below(end - start - 1, events - start);
        }
        _ => sink.raw(mask, bits_of(phases)),
    }
}

#[inline]
fn read_mask(bits: &mut BitReader<'_>, class: usize, before: u64, phases: usize) -> u64 {
    let all = full(phases);
    let events = phases as u64 - 1;
    match class {
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

/// Writes masks by rows. `copied` has the masks of the copied links and those predicted for them, if the record has a
/// reference.
pub(super) fn write_rows<S: Sink>(sink: &mut S, copied: Option<(&[u64], &[u64])>, own: &[u64], phases: usize) {
    let all = full(phases);
    let mut before = all;
    let mut exceptions = |sink: &mut S, context, links: &mut dyn Iterator<Item = (u64, u64)>, ends: bool| {
        let mut same = 0;
        for (mask, predicted) in links {
            if mask == predicted {
                same += 1;
                continue;
            }
            let class = class_of(mask, before, phases);
            sink.symbol(context, SAME_MAX.min(same) << 3 | (1 + class));
            if let Some(more) = same.checked_sub(SAME_MAX) {
                sink.number(Context::ExceptionMore, more as u64);
            }
            write_mask(sink, class, mask, phases);
            (before, same) = (mask, 0);
        }
        if ends || same > 0 {
            sink.symbol(context, EXCEPTIONS_END);
        }
    };
    if let Some((copied, predicted)) = copied {
        let links = &mut copied.iter().copied().zip(predicted.iter().copied());
        exceptions(sink, Context::ExceptionCopied, links, true);
    }
    exceptions(sink, Context::ExceptionOwn, &mut own.iter().map(|&mask| (mask, all)), false);
}

/// Reads the next exception: returns the number of links before it that are as predicted, and replaces `before` by its
/// mask. `None` after the last exception.
#[inline]
fn read_exception(
    tables: &Tables,
    bits: &mut BitReader<'_>,
    context: Context,
    before: &mut u64,
    phases: usize,
) -> Option<u64> {
    let symbol = tables.plain(context).read(bits);
    let class = (symbol & 7).checked_sub(1)?;
    let few = symbol >> 3;
    let more = if few == SAME_MAX { tables.numbers(Context::ExceptionMore).number(bits) } else { 0 };
    *before = read_mask(bits, class, *before, phases);
    Some(more.saturating_add(few as u64))
}

/// Reads the exceptions among `len` links. `before` is the mask read before. Calls `visit` with each link that is an
/// exception and its mask, until it returns `false`. If `ends`, an end follows also the last link.
#[inline(always)]
fn exceptions(
    tables: &Tables,
    bits: &mut BitReader<'_>,
    (context, before, phases): (Context, &mut u64, usize),
    (len, ends): (usize, bool),
    mut visit: impl FnMut(usize, u64) -> bool,
) {
    let mut at = 0usize;
    while ends || at < len {
        let Some(same) = read_exception(tables, bits, context, before, phases) else { break };
        at = at.saturating_add(usize::try_from(same).unwrap_or(usize::MAX));
        if at >= len || !visit(at, *before) {
            break;
        }
        at += 1;
    }
}

/// Reads masks by rows. Corrects `copied`, which holds the predictions, if the record has a reference. Replaces the
/// contents of `own` by the masks of `own_len` other links.
pub(super) fn read_rows(
    tables: &Tables,
    bits: &mut BitReader<'_>,
    copied: Option<&mut [u64]>,
    (own, own_len): (&mut Vec<u64>, usize),
    phases: usize,
) {
    let all = full(phases);
    let mut before = all;
    let mut correct = |masks: &mut [u64], context, ends: bool| {
        exceptions(tables, bits, (context, &mut before, phases), (masks.len(), ends), |at, mask| {
            masks[at] = mask;
            true
        });
    };
    if let Some(copied) = copied {
        correct(copied, Context::ExceptionCopied, true);
    }
    own.clear();
    own.resize(own_len, all);
    correct(own, Context::ExceptionOwn, false);
}

/// A link of a record by rows.
#[derive(Clone, Copy)]
pub(super) enum LinkAt {
    /// The index among the copied links, and the mask predicted for the link.
    Copied(usize, u64),
    /// The index among the other links.
    Own(usize),
}

/// Reads the mask of one link by rows. The record has `copied` copied links, if it has a reference, and `own` others.
pub(super) fn read_row(
    tables: &Tables,
    bits: &mut BitReader<'_>,
    (copied, own): (Option<usize>, usize),
    link: LinkAt,
    phases: usize,
) -> u64 {
    let all = full(phases);
    let mut before = all;
    let (wanted, mut mask) = match link {
        LinkAt::Copied(at, predicted) => (at, predicted),
        LinkAt::Own(at) => (at, all),
    };
    let is_copied = matches!(link, LinkAt::Copied(..));
    if let Some(copied) = copied {
        exceptions(tables, bits, (Context::ExceptionCopied, &mut before, phases), (copied, true), |at, of_link| {
            if is_copied && at == wanted {
                mask = of_link;
            }
            !is_copied || at < wanted
        });
    }
    if !is_copied {
        exceptions(tables, bits, (Context::ExceptionOwn, &mut before, phases), (own, false), |at, of_link| {
            if at == wanted {
                mask = of_link;
            }
            at < wanted
        });
    }
    mask
}

/// Passes over masks by rows, up to `end` at most: of a record with a reference if `copying`, and with `own_len` links
/// that are not copied.
#[inline]
pub(super) fn pass_rows(
    tables: &Tables,
    bits: &mut BitReader<'_>,
    end: u64,
    copying: bool,
    own_len: u64,
    phases: usize,
) -> Result<(), Damage> {
    check_rows(phases)?;
    let mut exception = |context| {
        if bits.position() < end { read_exception(tables, bits, context, &mut 0, phases) } else { None }
    };
    while copying && exception(Context::ExceptionCopied).is_some() {}
    let mut at = 0u64;
    while at < own_len
        && let Some(same) = exception(Context::ExceptionOwn)
    {
        at = at.saturating_add(same).saturating_add(1);
    }
    Ok(())
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

/// Reads the masks of at most 64 phases by columns. Calls `flip` with links and the phases from which on their presence
/// turns, any number of times for each link. At first, no link is present.
pub(super) fn each_flip(
    tables: &Tables,
    bits: &mut BitReader<'_>,
    links: usize,
    phases: usize,
    flip: impl FnMut(usize, u64),
) -> Result<(), Damage> {
    let (all, flip) = (full(phases), std::cell::RefCell::new(flip));
    let flip = |link: usize, phase: usize| flip.borrow_mut()(link, all & (!0 << phase));
    read_columns(tables, bits, links, phases, |link| flip(link, 0), |phase, link| flip(link, phase))
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
            return Err(Damage::Ends { part: PART });
        }
        let mut next = 0usize;
        while let Token::Gap(gap) = gaps.read(bits) {
            let link = next.saturating_add(usize::try_from(gap).unwrap_or(usize::MAX));
            if link >= links {
                return Err(Damage::Outside { part: PART, value: gap, bound: links as u64 });
            }
            change(phase, link);
            next = link + 1;
        }
    }
    Ok(())
}
