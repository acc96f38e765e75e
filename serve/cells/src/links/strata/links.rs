//! The links of one record: copied links of the reference, and the rest as gaps.
//!
//! ```text
//! reference   0, or 1 + 2 slot + (1 if all of it is copied)
//! copies      unless all are copied: eight flags a symbol, one flag a link of the reference
//! rest        the first link as zigzag of (link - number of the node), then gaps less 1, or "k >= 2 links in a row";
//!             ends with the record, or with an end symbol where presence follows
//! ```
//!
//! The number of links is not stored. Slots are defined in [`crate::links::strata::references`]: 0 is the record
//! before, 1 the one after. Gaps are between links of the rest only, also across copied links. Sources: Boldi & Vigna,
//! The WebGraph Framework I (2004) for copying and gaps; here references go both ways and flags are coded in eights.

use crate::coding::bits::BitReader;
use crate::error::Damage;

use super::symbols::{Context, Sink, Tables, Token};

/// The links of a record compared with the links of its reference.
#[derive(Default)]
pub(super) struct Split {
    /// For each link of the reference, whether it is copied, eight a byte, the first lowest.
    flags: Vec<u8>,
    /// Indexes of the links that are copied: in the record, and in the reference.
    pub(super) copied: Vec<(u32, u32)>,
    /// Links that are not copied, and their indexes.
    rest: Vec<u64>,
    pub(super) rest_at: Vec<u32>,
}

impl Split {
    /// Compares two rising lists.
    pub(super) fn set(&mut self, links: &[u64], reference: &[u64]) {
        self.flags.clear();
        self.flags.resize(reference.len().div_ceil(8), 0);
        self.copied.resize(links.len(), (0, 0));
        self.rest.resize(links.len(), 0);
        self.rest_at.resize(links.len(), 0);
        let (mut index, mut reference_index, mut copied, mut rest) = (0, 0, 0, 0);
        // Each step writes all lists it may have to write, so no branch depends on the links.
        while let (Some(&link), Some(&reference_link)) = (links.get(index), reference.get(reference_index)) {
            self.flags[reference_index / 8] |= u8::from(link == reference_link) << (reference_index % 8);
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
        let (all, used) = (self.all(reference), reference.len() % 8);
        if let Some(last) = self.flags.last_mut().filter(|_| used > 0 && !all) {
            // Flags beyond the end repeat the last flag: the most likely symbol.
            if *last >> (used - 1) & 1 == 1 {
                *last |= 0xff << used;
            }
        }
    }

    /// Whether all links of the reference are copied.
    pub(super) fn all(&self, reference: &[u64]) -> bool {
        self.copied.len() == reference.len()
    }
}

/// The index of a link as 32 bits.
#[inline]
fn narrow(at: usize) -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "lists of 2^32 links would not fit the memory of a cell")]
    let index = at as u32;
    index
}

/// Writes a record's links. `reference` is the slot, the split, and whether all links are copied. Without a reference,
/// all of `links` is rest.
pub(super) fn write<S: Sink>(
    sink: &mut S,
    node_number: u64,
    links: &[u64],
    reference: Option<(usize, &Split, bool)>,
    end: bool,
) {
    let rest = match reference {
        None => {
            sink.symbol(Context::Reference, 0);
            links
        }
        Some((slot, split, all)) => {
            sink.symbol(Context::Reference, 1 + 2 * slot + usize::from(all));
            if !all {
                split.flags.iter().for_each(|&flags| sink.symbol(Context::Copies, usize::from(flags)));
            }
            &split.rest
        }
    };
    let copying = reference.is_some();
    let mut context = if copying { Context::FirstCopying } else { Context::FirstAlone };
    let Some((&first, mut links)) = rest.split_first() else {
        if end {
            sink.gap_end(context);
        }
        return;
    };
    sink.number(context, zigzag(first.wrapping_sub(node_number)));
    let mut before = first;
    context = Context::next(copying, 0);
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
        context = Context::next(copying, gap);
    }
    if end {
        sink.gap_end(context);
    }
}

/// Reads the rest into `rest`, up to its end symbol or to `end`, the record's last bit. Reads at most `links_max`
/// links.
#[inline]
pub(super) fn read_rest(
    tables: &Tables,
    bits: &mut BitReader<'_>,
    end: u64,
    node_number: u64,
    copying: bool,
    links_max: usize,
    rest: &mut Vec<u64>,
) -> Result<(), Damage> {
    rest.clear();
    if bits.position() >= end {
        return Ok(());
    }
    let first = tables.numbers(if copying { Context::FirstCopying } else { Context::FirstAlone });
    let Token::Gap(first) = first.read(bits) else { return Ok(()) };
    let mut before = node_number.wrapping_add(unzigzag(first));
    rest.push(before);
    let near = tables.numbers(Context::next(copying, 0));
    let far = tables.numbers(Context::next(copying, 8));
    let mut table = near;
    while bits.position() < end {
        match table.read(bits) {
            Token::Gap(gap) => {
                before = before.wrapping_add(gap).wrapping_add(1);
                rest.push(before);
                table = if gap >= 8 { far } else { near };
            }
            Token::Run(run) => {
                let links_left = links_max.saturating_sub(rest.len());
                if usize::try_from(run).map_or(true, |run| run > links_left) {
                    return Err(Damage::Outside { part: super::PART, value: run, bound: links_left as u64 });
                }
                rest.extend((1..=run).map(|step| before.wrapping_add(step)));
                before = before.wrapping_add(run);
                table = near;
            }
            Token::End => return Ok(()),
        }
    }
    Ok(())
}

/// Keeps, in place, the copied links of a reference.
#[inline]
pub(super) fn read_copies(tables: &Tables, bits: &mut BitReader<'_>, links: &mut Vec<u64>) {
    let flags = tables.plain(Context::Copies);
    let len = links.len();
    links.resize(len.next_multiple_of(8), 0);
    let (mut kept, mut from) = (0, 0);
    while from < len {
        let mut eight = flags.read(bits);
        if len - from < 8 {
            eight &= (1 << (len - from)) - 1;
        }
        // Without branches: each link is written to the place of the next kept link.
        for at in from..from + 8 {
            links[kept] = links[at];
            kept += eight & 1;
            eight >>= 1;
        }
        from += 8;
    }
    links.truncate(kept);
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
pub(super) fn read_copies_with(tables: &Tables, bits: &mut BitReader<'_>, links: &mut Vec<u64>, masks: &mut Vec<u64>) {
    let flags = tables.plain(Context::Copies);
    let len = links.len();
    links.resize(len.next_multiple_of(8), 0);
    masks.resize(links.len(), 0);
    let mut kept = 0;
    for from in (0..len).step_by(8) {
        let mut eight = flags.read(bits);
        if len - from < 8 {
            eight &= (1 << (len - from)) - 1;
        }
        for at in from..from + 8 {
            links[kept] = links[at];
            masks[kept] = masks[at];
            kept += eight & 1;
            eight >>= 1;
        }
    }
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
fn unzigzag(number: u64) -> u64 {
    (number >> 1) ^ (number & 1).wrapping_neg()
}
