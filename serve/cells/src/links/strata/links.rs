//! The links of one record: copied links of the reference, and the rest as gaps.
//!
//! ```text
//! opening     0 without links; 1 without a reference; else 2 + 4 (symbol of the slot) + 2 (if all links of the
//!             reference are copied) + 1 (if there is no rest), and the raw bits of the slot
//! copies      unless all are copied: the number of links of the reference that are copied at first, then turns. A turn
//!             is 16 n + c: n links are not copied, then c are. 15 means 15 and what follows as a number; c = 0 means
//!             all links up to the end, and the turn 0 that no other link is copied. Either ends the copies
//! rest        the first link as zigzag of (link - number of the node), then gaps less 1, or "k >= 2 links in a row";
//!             ends with an end symbol, or where the bits of the record end
//! ```
//!
//! The number of links is not stored. Each part ends itself, so that a reader passes over a record without its
//! reference. Where the bits end with the links, an empty rest has no symbol. Slots are defined in
//! [`crate::links::strata::references`]: 0 is the record before, 1 the one after. Gaps are between links of the rest
//! only, also across copied links. Sources: Boldi & Vigna, The WebGraph Framework I (2004) for copying and gaps; here
//! references go both ways, and two runs of the copies are one symbol.

use std::ops::Range;

use crate::coding::bits::BitReader;
use crate::coding::magnitudes::{number_of, symbol_of};
use crate::error::Damage;

use super::symbols::{Context, DIRECT_BITS, FIRST, Numbers, SECOND, Sink, Tables, Token, step_after};

/// How the links of a record begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Opening {
    /// The slot of the reference.
    pub(super) reference: Option<usize>,
    /// Whether all links of the reference are copied.
    pub(super) all: bool,
    /// Whether the record may have links that are not copied.
    pub(super) rest: bool,
}

impl Opening {
    fn write<S: Sink>(self, context: Context, sink: &mut S) {
        let Some(slot) = self.reference else { return sink.symbol(context, usize::from(self.rest)) };
        let (symbol, bits) = symbol_of::<DIRECT_BITS>(slot as u64);
        sink.symbol(context, 2 + 4 * symbol + 2 * usize::from(self.all) + usize::from(!self.rest));
        sink.raw(slot as u64 & ((1 << bits) - 1), bits);
    }

    /// Reads an opening. A record without bits has no links.
    #[inline(always)]
    pub(super) fn read(tables: &Tables, bits: &mut BitReader<'_>, end: u64, context: Context) -> Self {
        let symbol = if bits.position() < end { tables.plain(context).read(bits) } else { 0 };
        let Some(other) = symbol.checked_sub(2) else { return Self { reference: None, all: false, rest: symbol == 1 } };
        let (base, shift) = number_of::<DIRECT_BITS>(other / 4);
        #[expect(clippy::cast_possible_truncation, reason = "the slots of an opening are below 128")]
        let slot = (base << shift | bits.read(shift)) as usize;
        Self { reference: Some(slot), all: other & 2 != 0, rest: other & 1 == 0 }
    }

    /// The context of the opening of the next record.
    #[inline(always)]
    pub(super) fn after(self) -> Context {
        match self {
            Self { reference: None, rest: false, .. } => Context::AfterNone,
            Self { reference: None, .. } => Context::AfterAlone,
            Self { all: false, .. } => Context::AfterPart,
            Self { .. } => Context::AfterAll,
        }
    }
}

/// The links of a record compared with the links of its reference.
#[derive(Default)]
pub(super) struct Split {
    /// Indexes of the links that are copied: in the record, and in the reference.
    pub(super) copied: Vec<(u32, u32)>,
    /// Links that are not copied, and their indexes.
    rest: Vec<u64>,
    pub(super) rest_at: Vec<u32>,
    /// The number of links of the reference.
    reference_len: usize,
}

impl Split {
    /// Compares two rising lists.
    pub(super) fn set(&mut self, links: &[u64], reference: &[u64]) {
        self.reference_len = reference.len();
        self.copied.resize(links.len(), (0, 0));
        self.rest.resize(links.len(), 0);
        self.rest_at.resize(links.len(), 0);
        let (mut index, mut reference_index, mut copied, mut rest) = (0, 0, 0, 0);
        // Each step writes all lists it may have to write, so no branch depends on the links.
        while let (Some(&link), Some(&reference_link)) = (links.get(index), reference.get(reference_index)) {
            self.copied[copied] = (narrow(index), narrow(reference_index));
            copied += usize::from(link == reference_link);
            self.rest[rest] = link;
            self.rest_at[rest] = narrow(index);
            rest += usize::from(link < reference_link);
            index += usize::from(link <= reference_link);
            reference_index += usize::from(reference_link <= link);
        }
        self.copied.truncate(copied);
        self.rest.truncate(rest);
        self.rest.extend_from_slice(&links[index..]);
        self.rest_at.truncate(rest);
        self.rest_at.extend((index..links.len()).map(narrow));
    }

    /// Whether all links of the reference are copied.
    fn all(&self) -> bool {
        self.copied.len() == self.reference_len
    }

    /// Writes which links are copied, unless all are.
    fn write_copies<S: Sink>(&self, sink: &mut S) {
        let mut rest = self.copied.as_slice();
        let mut run = |next: usize| {
            let run = rest.iter().zip(next..).take_while(|&(&(_, at), next)| at as usize == next).count();
            rest = &rest[run..];
            (run, rest.first().map(|&(_, at)| at as usize))
        };
        let (mut next, mut after) = run(0);
        sink.number(Context::Copied, next as u64);
        while let Some(from) = after {
            let copied;
            (copied, after) = run(from);
            let (not, to_end) = (from - next, from + copied == self.reference_len);
            sink.symbol(Context::Turn, TURN_MAX.min(not) << 4 | if to_end { 0 } else { TURN_MAX.min(copied) });
            if let Some(more) = not.checked_sub(TURN_MAX) {
                sink.number(Context::TurnMore, more as u64);
            }
            if to_end {
                return;
            }
            if let Some(more) = copied.checked_sub(TURN_MAX) {
                sink.number(Context::TurnMore, more as u64);
            }
            next = from + copied;
        }
        sink.symbol(Context::Turn, 0);
    }
}

/// The largest number in a turn. It also stands for larger numbers; what they have more follows.
const TURN_MAX: usize = 15;

/// The index of a link as 32 bits.
#[inline]
fn narrow(at: usize) -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "lists of 2^32 links would not fit the memory of a cell")]
    let index = at as u32;
    index
}

/// Writes a record's links. `reference` is the slot and the split. Without a reference, all of `links` is rest.
/// `before` is the context of the opening, and `ends` says that more bits follow the links. Returns the context of the
/// opening of the next record.
pub(super) fn write<S: Sink>(
    sink: &mut S,
    node_number: u64,
    links: &[u64],
    reference: Option<(usize, &Split)>,
    before: Context,
    ends: bool,
) -> Context {
    let rest = reference.map_or(links, |(_, split)| &split.rest);
    let opening = Opening {
        reference: reference.map(|(slot, _)| slot),
        all: reference.is_some_and(|(_, split)| split.all()),
        // The end of a record needs no symbol if the bits end there.
        rest: !ends || !rest.is_empty(),
    };
    opening.write(before, sink);
    if let Some((_, split)) = reference.filter(|_| !opening.all) {
        split.write_copies(sink);
    }
    let Some((&first, mut links)) = rest.split_first() else { return opening.after() };
    let copying = reference.is_some();
    sink.number(Context::gap(copying, FIRST), zigzag(first.wrapping_sub(node_number)));
    let mut before = first;
    let mut context = Context::gap(copying, SECOND);
    while let Some(&link) = links.first() {
        let mut run = 0;
        while links.get(run) == Some(&(before + 1 + run as u64)) {
            run += 1;
        }
        let gap = if run >= 2 {
            sink.run(context, run as u64);
            before += run as u64;
            links = &links[run..];
            0
        } else {
            let gap = link - before - 1;
            sink.number(context, gap);
            before = link;
            links = &links[1..];
            gap
        };
        context = Context::gap(copying, step_after(gap));
    }
    if ends {
        sink.gap_end(context);
    }
    opening.after()
}

/// Reads the rest, up to its end symbol or to `end`, the record's last bit. Calls `visit` with the first of one or more
/// links in a row, and with their number.
#[inline(always)]
fn rest(
    tables: &Tables,
    bits: &mut BitReader<'_>,
    end: u64,
    node_number: u64,
    copying: bool,
    mut visit: impl FnMut(u64, u64) -> Result<(), Damage>,
) -> Result<(), Damage> {
    if bits.position() >= end {
        return Ok(());
    }
    let gaps = tables.gaps(copying);
    let mut before = node_number.wrapping_add(unzigzag(gaps.at(FIRST).number(bits)));
    visit(before, 1)?;
    let mut table = gaps.at(SECOND);
    while bits.position() < end {
        match table.read(bits) {
            Token::Gap(gap) => {
                before = before.wrapping_add(gap).wrapping_add(1);
                visit(before, 1)?;
                table = gaps.at(step_after(gap));
            }
            Token::Run(run) => {
                visit(before.wrapping_add(1), run)?;
                before = before.wrapping_add(run);
                table = gaps.at(step_after(0));
            }
            Token::End => return Ok(()),
        }
    }
    Ok(())
}

/// Reads the rest into `links`: at most `links_max` links.
#[inline]
pub(super) fn read_rest(
    tables: &Tables,
    bits: &mut BitReader<'_>,
    end: u64,
    node_number: u64,
    opening: Opening,
    links_max: usize,
    links: &mut Vec<u64>,
) -> Result<(), Damage> {
    links.clear();
    if !opening.rest {
        return Ok(());
    }
    rest(tables, bits, end, node_number, opening.reference.is_some(), |first, count| {
        if count == 1 {
            links.push(first);
            return Ok(());
        }
        let links_left = links_max.saturating_sub(links.len());
        if usize::try_from(count).map_or(true, |count| count > links_left) {
            return Err(Damage::Outside { part: super::PART, value: count, bound: links_left as u64 });
        }
        links.extend((0..count).map(|step| first.wrapping_add(step)));
        Ok(())
    })?;
    let found = links.len();
    if found > links_max {
        return Err(Damage::Outside { part: super::PART, value: found as u64, bound: links_max as u64 });
    }
    Ok(())
}

/// Passes over the links of a record. Returns how they begin, and the number of links that are not copied.
#[inline]
pub(super) fn pass(
    tables: &Tables,
    bits: &mut BitReader<'_>,
    end: u64,
    before: Context,
) -> Result<(Opening, u64), Damage> {
    let opening = Opening::read(tables, bits, end, before);
    if opening.reference.is_some() && !opening.all {
        copies(tables, bits, end, usize::MAX, |_, _| {});
    }
    let mut rest_len = 0u64;
    if opening.rest {
        rest(tables, bits, end, 0, opening.reference.is_some(), |_, count| {
            rest_len = rest_len.saturating_add(count);
            Ok(())
        })?;
    }
    Ok((opening, rest_len))
}

/// Reads which of `len` links of the reference are copied. Calls `copy` with each run of these links, and with the
/// number of links copied before it. Returns the number of copied links.
#[inline(always)]
fn copies(
    tables: &Tables,
    bits: &mut BitReader<'_>,
    end: u64,
    len: usize,
    mut copy: impl FnMut(Range<usize>, usize),
) -> usize {
    let number =
        |table: Numbers<'_>, bits: &mut BitReader<'_>| usize::try_from(table.number(bits)).unwrap_or(usize::MAX);
    let (turns, more) = (tables.plain(Context::Turn), tables.numbers(Context::TurnMore));
    let of_turn = |few: usize, bits: &mut BitReader<'_>| {
        if few == TURN_MAX { number(more, bits).saturating_add(few) } else { few }
    };
    let mut run = number(tables.numbers(Context::Copied), bits);
    let (mut at, mut kept) = (0usize, 0);
    loop {
        let to = at.saturating_add(run).min(len);
        copy(at..to, kept);
        kept += to - at;
        let turn = if bits.position() < end { turns.read(bits) } else { 0 };
        if turn == 0 {
            return kept;
        }
        at = to.saturating_add(of_turn(turn >> 4, bits)).min(len);
        if turn & TURN_MAX == 0 {
            copy(at..len, kept);
            return kept + (len - at);
        }
        run = of_turn(turn & TURN_MAX, bits);
    }
}

/// Keeps, in place, the copied links of a reference.
#[inline]
pub(super) fn read_copies(tables: &Tables, bits: &mut BitReader<'_>, end: u64, links: &mut Vec<u64>) {
    let kept = copies(tables, bits, end, links.len(), |run, to| copy_down(links, run, to));
    links.truncate(kept);
}

/// Copies a run of values to a place before it.
#[inline(always)]
fn copy_down(values: &mut [u64], run: Range<usize>, to: usize) {
    if run.start != to {
        for (from, to) in run.zip(to..) {
            values[to] = values[from];
        }
    }
}

/// Merges `rest` into `links`, both rising.
#[inline]
pub(super) fn merge(links: &mut Vec<u64>, rest: &[u64]) {
    if rest.is_empty() {
        return;
    }
    let (mut unmerged, mut to) = (links.len(), links.len() + rest.len());
    links.resize(to, 0);
    // Merges from the end, so that links before the whole rest stay in place. The rest has few links, far apart, so
    // that the comparisons are predicted well.
    for &link in rest.iter().rev() {
        while unmerged > 0 && links[unmerged - 1] > link {
            to -= 1;
            unmerged -= 1;
            links[to] = links[unmerged];
        }
        to -= 1;
        links[to] = link;
    }
}

/// Like [`read_copies`], with a mask for each link. Masks may be absent.
#[inline]
pub(super) fn read_copies_with(
    tables: &Tables,
    bits: &mut BitReader<'_>,
    end: u64,
    links: &mut Vec<u64>,
    masks: &mut Vec<u64>,
) {
    masks.resize(links.len(), 0);
    let kept = copies(tables, bits, end, links.len(), |run, to| {
        copy_down(links, run.clone(), to);
        copy_down(masks, run, to);
    });
    links.truncate(kept);
    masks.truncate(kept);
}

/// Like [`merge`], with a mask for each link.
#[inline]
pub(super) fn merge_with(links: &mut Vec<u64>, masks: &mut Vec<u64>, rest: &[u64], rest_masks: &[u64]) {
    let (mut unmerged, mut to) = (links.len(), links.len() + rest.len());
    links.resize(to, 0);
    masks.resize(to, 0);
    for (&link, &mask) in rest.iter().zip(rest_masks).rev() {
        while unmerged > 0 && links[unmerged - 1] > link {
            to -= 1;
            unmerged -= 1;
            (links[to], masks[to]) = (links[unmerged], masks[unmerged]);
        }
        to -= 1;
        (links[to], masks[to]) = (link, mask);
    }
}

/// A signed difference as a number: 0, -1, 1, -2, ... become 0, 1, 2, 3, ...
#[inline]
pub(super) fn zigzag(difference: u64) -> u64 {
    (difference << 1) ^ ((difference as i64 >> 63) as u64)
}

/// The difference of a zigzag number, wrapping.
#[inline]
pub(super) fn unzigzag(number: u64) -> u64 {
    (number >> 1) ^ (number & 1).wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::super::symbols::{Model, Writer};
    use super::*;
    use crate::coding::bits::BitWriter;
    use proptest::prelude::*;

    /// Rising lists with rows and large gaps.
    fn list() -> impl Strategy<Value = Vec<u64>> {
        let row = (0u64..400, 1u64..30).prop_map(|(first, count)| (first..first + count).collect::<Vec<_>>());
        let far = (0u64..1 << 45).prop_map(|link| vec![link]);
        proptest::collection::vec(prop_oneof![row, far], 0..12).prop_map(|parts| {
            let mut all = parts.concat();
            all.sort_unstable();
            all.dedup();
            all
        })
    }

    proptest! {
        #[test]
        fn links_come_back_and_are_passed_over(
            (links, reference) in (list(), list()),
            keeps in proptest::collection::vec(any::<bool>(), 40),
            shares: bool,
            slot in 0usize..128,
            node_number in 0u64..1 << 40,
            alone: bool,
            ends: bool,
        ) {
            let mut links = links;
            if shares {
                let kept = reference.iter().zip(keeps.iter().cycle()).filter(|(_, keep)| **keep);
                links.extend(kept.map(|(link, _)| link));
                links.sort_unstable();
                links.dedup();
            }
            let mut split = Split::default();
            split.set(&links, &reference);
            let model = Model::usual();
            let mut stored = BitWriter::default();
            model.store(&mut stored);
            let stored = stored.into_bytes();
            let tables = Tables::load(&mut BitReader::new(&stored, 0)).unwrap();
            let mut writer = Writer { model, out: BitWriter::default() };
            let how = (!alone).then_some((slot, &split));
            let after = write(&mut writer, node_number, &links, how, Context::AfterPart, ends);
            let end = writer.out.len();
            // More bits follow, unless the bits end with the links.
            writer.out.write(0x5555, 16);
            let bytes = writer.out.into_bytes();
            let limit = if ends { end + 16 } else { end };

            let mut bits = BitReader::new(&bytes, 0);
            let opening = Opening::read(&tables, &mut bits, limit, Context::AfterPart);
            prop_assert_eq!((opening.reference, opening.after()), ((!alone).then_some(slot), after));
            let mut found = if alone { Vec::new() } else { reference };
            let mut masks: Vec<u64> = found.iter().map(|link| link ^ 1).collect();
            if opening.reference.is_some() && !opening.all {
                let (mut again, mut same) = (bits, found.clone());
                read_copies(&tables, &mut again, limit, &mut same);
                read_copies_with(&tables, &mut bits, limit, &mut found, &mut masks);
                prop_assert_eq!((same, again.position()), (found.clone(), bits.position()));
            }
            prop_assert!(found.iter().zip(&masks).all(|(link, mask)| link ^ 1 == *mask) && found.len() == masks.len());
            let mut rest = Vec::new();
            read_rest(&tables, &mut bits, limit, node_number, opening, links.len(), &mut rest).unwrap();
            merge(&mut found, &rest);
            prop_assert_eq!((found, bits.position()), (links, end));
            let mut bits = BitReader::new(&bytes, 0);
            let (passed, rest_len) = pass(&tables, &mut bits, limit, Context::AfterPart).unwrap();
            prop_assert_eq!((passed.after(), rest_len), (after, rest.len() as u64));
            prop_assert_eq!(bits.position(), end);
            if let Some(fewer) = rest.len().checked_sub(1) {
                let mut bits = BitReader::new(&bytes, 0);
                let opening = Opening::read(&tables, &mut bits, limit, Context::AfterPart);
                if opening.reference.is_none() {
                    prop_assert!(read_rest(&tables, &mut bits, limit, node_number, opening, fewer, &mut rest).is_err());
                }
            }
        }
    }
}
