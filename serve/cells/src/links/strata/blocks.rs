//! The places of groups of records: blocks of 16 groups, each block with the lengths of its groups.
//!
//! ```text
//! pointers   one a block: every 32nd absolute in 40 bits, the others relative to it in `width` bytes
//! block      lengths' extra bits, the last group's first | class word | groups | zeros up to a byte
//! ```
//!
//! A pointer leads to the class word: 16 classes of 4 bits, the first group lowest. A class has a base and a number of
//! extra bits; the length of a group in bits is base + extra. Groups follow in order, without gaps. The 16 classes are
//! fitted to the lengths of the cell, so that extra bits take the least room. Finding a group costs a sum over the
//! lengths before it in its block.
//!
//! A length takes some 10 bits with its share of the pointer, for a group of 8 records as for one of a single record.
//! Records that end themselves cost about 2 bits each instead.

use crate::coding::bits::{BitReader, BitWriter};
use crate::error::Damage;
use crate::mapped::guard::Section;

/// The number of groups in a block.
pub(super) const BLOCK: usize = 16;
/// The number of blocks between absolute pointers.
const SPAN: usize = 32;
/// The largest size of the extra bits of a block in bytes: 31 bits a group.
const EXTRAS_BYTES_MAX: usize = 31 * BLOCK / 8 + 1;
/// The size of an absolute pointer in bytes.
const ABSOLUTE: usize = 5;
const PART: &str = "strata blocks";

/// A class of lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Class {
    base: u32,
    bits: u32,
}

/// The classes that represent these lengths with the fewest extra bits.
fn fit(buckets: &[Bucket]) -> [Class; 16] {
    let count = buckets.len();
    // The first bucket that a class from `base` on does not cover completely.
    let end_of = |base: u32, bits: u32| {
        buckets.partition_point(|bucket| u64::from(bucket.longest) < u64::from(base) + (1 << bits))
    };
    // best[k][i]: the fewest bits for the buckets from i on in k classes; choice: the bits of the first of these
    // classes.
    let mut best = vec![vec![u64::MAX; count + 1]; 17];
    let mut choice = vec![vec![0u32; count + 1]; 17];
    best.iter_mut().for_each(|costs| costs[count] = 0);
    let mut sums = vec![0u64];
    buckets.iter().for_each(|bucket| sums.push(sums[sums.len() - 1] + bucket.count));
    for from in (0..count).rev() {
        for bits in 0..=31 {
            let end = end_of(buckets[from].shortest, bits);
            if end == from {
                continue;
            }
            let pointer_bits = (sums[end] - sums[from]) * u64::from(bits);
            for classes in 1..=16 {
                let cost = best[classes - 1][end].saturating_add(pointer_bits);
                if cost < best[classes][from] {
                    best[classes][from] = cost;
                    choice[classes][from] = bits;
                }
            }
            if end == count {
                break;
            }
        }
    }
    let mut classes = [Class::default(); 16];
    let mut from = 0;
    for (at, class) in classes.iter_mut().enumerate().take_while(|_| count > 0) {
        if from == count {
            break;
        }
        *class = Class { base: buckets[from].shortest, bits: choice[16 - at][from] };
        from = end_of(class.base, class.bits);
    }
    classes
}

/// Collects lengths of groups and lays the groups out.
#[derive(Default)]
pub(super) struct BlocksWriter {
    /// The length of each group in bits.
    lengths: Vec<u32>,
}

/// The header for reading a layout.
pub(super) struct LayoutHeader {
    classes: [Class; 16],
    width: usize,
}

impl LayoutHeader {
    /// Writes the header that [`Blocks::load`] reads: 16 bases and numbers of extra bits, and the width of relative
    /// pointers.
    pub(super) fn store(&self, out: &mut BitWriter) {
        for class in self.classes {
            out.write_sized(u64::from(class.base));
            out.write(u64::from(class.bits), 5);
        }
        out.write(self.width as u64, 4);
    }
}

/// The parts of a layout.
pub(super) struct Layout {
    pub(super) header: LayoutHeader,
    pub(super) pointers: Vec<u8>,
    pub(super) blocks: Vec<u8>,
}

impl BlocksWriter {
    /// Adds the length of a group that was written.
    pub(super) fn push(&mut self, bits: u32) {
        self.lengths.push(bits);
    }

    /// Lays out the groups that were written one after the other into `groups`.
    pub(super) fn finish(self, groups: &[u8]) -> Layout {
        let classes = fit(&buckets(&self.lengths));
        let mut blocks = Vec::new();
        let mut starts = Vec::new();
        let mut source = BitReader::new(groups, 0);
        for lengths in self.lengths.chunks(BLOCK) {
            let class_of = |&length: &u32| {
                let fits = |class: &Class| length >= class.base && u64::from(length - class.base) < 1 << class.bits;
                // The narrowest class that fits. The fit gives each length a class.
                (0..16).filter(|&at| fits(&classes[at])).min_by_key(|&at| classes[at].bits).unwrap_or(15)
            };
            let chosen: Vec<usize> = lengths.iter().map(class_of).collect();
            let mut extras = BitWriter::default();
            let total: u32 = chosen.iter().map(|&class| classes[class].bits).sum();
            extras.write(0, (8 - total % 8) % 8);
            for (&class, &length) in chosen.iter().zip(lengths).rev() {
                extras.write_wide(u64::from(length - classes[class].base), classes[class].bits);
            }
            blocks.extend(extras.into_bytes());
            starts.push(blocks.len() as u64);
            let word = chosen.iter().enumerate().fold(0u64, |word, (at, &class)| word | (class as u64) << (4 * at));
            let mut out = BitWriter::default();
            out.write_wide(word, 64);
            for &length in lengths {
                let mut rest = length;
                while rest > 0 {
                    let step = rest.min(56);
                    out.write(source.read(step), step);
                    rest -= step;
                }
            }
            blocks.extend(out.into_bytes());
        }
        let farthest = starts.chunks(SPAN).map(|span| span[span.len() - 1] - span[0]).max().unwrap_or(0);
        let width = (8 - farthest.leading_zeros() as usize / 8).max(1);
        let mut pointers = Vec::new();
        for span in starts.chunks(SPAN) {
            pointers.extend_from_slice(&span[0].to_le_bytes()[..ABSOLUTE]);
            for start in &span[1..] {
                pointers.extend_from_slice(&(start - span[0]).to_le_bytes()[..width]);
            }
        }
        Layout { header: LayoutHeader { classes, width }, pointers, blocks }
    }
}

/// Lengths that the fit treats together: up to 127 each length alone, larger lengths 64 buckets an octave.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    shortest: u32,
    longest: u32,
    count: u64,
}

fn buckets(lengths: &[u32]) -> Vec<Bucket> {
    let mut sorted = lengths.to_vec();
    sorted.sort_unstable();
    let mantissa = |length: u32| length >> (32 - length.leading_zeros()).saturating_sub(7);
    let octave = |length: u32| length.leading_zeros();
    let same = |a: &u32, b: &u32| octave(*a) == octave(*b) && mantissa(*a) == mantissa(*b);
    let bucket = |same: &[u32]| Bucket { shortest: same[0], longest: same[same.len() - 1], count: same.len() as u64 };
    sorted.chunk_by(same).map(bucket).collect()
}

/// Two consecutive classes.
#[derive(Clone, Copy, Debug)]
struct Pair {
    /// The sum of both bases.
    base: u32,
    /// The extra bits of both, at most 62.
    bits: u8,
    /// The extra bits of the second class.
    second: u8,
}

/// Finds groups by their index.
pub(super) struct Blocks {
    classes: [Class; 16],
    /// Pairs by byte of the class word.
    pairs: Vec<Pair>,
    width: usize,
    groups: usize,
}

impl Blocks {
    /// Reads the header of a layout of `groups` groups, and checks the size of the pointers.
    pub(super) fn load(header: &mut BitReader<'_>, groups: usize, pointers: usize) -> Result<Self, Damage> {
        let mut classes = [Class::default(); 16];
        for class in &mut classes {
            *class = Class {
                base: u32::try_from(header.read_sized()).unwrap_or(0),
                bits: u32::try_from(header.read(5)).unwrap_or(0),
            };
        }
        let width = usize::try_from(header.read(4)).unwrap_or(0);
        let blocks = groups.div_ceil(BLOCK);
        let expected = blocks.div_ceil(SPAN) * ABSOLUTE + (blocks - blocks.div_ceil(SPAN)) * width;
        if header.overran() || !(1..=8).contains(&width) || expected != pointers {
            return Err(Damage::Outside { part: PART, value: pointers as u64, bound: expected as u64 });
        }
        let pair = |byte: usize| {
            let (first, second) = (classes[byte % 16], classes[byte / 16]);
            let byte = |bits: u32| u8::try_from(bits).unwrap_or(0);
            Pair {
                base: first.base.saturating_add(second.base),
                bits: byte(first.bits + second.bits),
                second: byte(second.bits),
            }
        };
        Ok(Self { classes, pairs: (0..256).map(pair).collect(), width, groups })
    }

    /// The first bit and the end bit of a group in the blocks. Checks all bytes between them, and the bytes that
    /// locate the group.
    #[inline]
    pub(super) fn locate(&self, group: usize, pointers: &[u8], section: &Section) -> Result<(u64, u64), Damage> {
        let blocks: &[u8] = section.bytes();
        if group >= self.groups {
            return Err(Damage::Outside { part: PART, value: group as u64, bound: self.groups as u64 });
        }
        let block = group / BLOCK;
        let first = block / SPAN * (ABSOLUTE + (SPAN - 1) * self.width);
        let mut offset = number(pointers, first, ABSOLUTE);
        if !block.is_multiple_of(SPAN) {
            offset += number(pointers, first + ABSOLUTE + (block % SPAN - 1) * self.width, self.width);
        }
        let offset = usize::try_from(offset).ok().filter(|&offset| offset <= blocks.len());
        if let Some(offset) = offset {
            section.check(offset.saturating_sub(EXTRAS_BYTES_MAX), offset.saturating_add(size_of::<u64>()))?;
        }
        let (before, after) = offset.map_or((&[][..], &[][..]), |offset| blocks.split_at(offset));
        let mut word = u64::from_le_bytes(*after.first_chunk::<8>().ok_or(Damage::Ends { part: PART })?);
        // Extra bits are taken from the class word backwards, the highest bit of `extras` first.
        let start = before.len() as u64 * 8;
        let mut extras =
            before.last_chunk::<8>().map_or_else(|| last_bits(before, start), |last| u64::from_le_bytes(*last));
        let (mut bits_left, mut taken) = (64, 0);
        let mut take = |bits: u32| {
            if bits > bits_left {
                extras = last_bits(before, start.saturating_sub(taken));
                bits_left = 64;
            }
            let extra = (extras >> 1) >> (63 - bits);
            extras <<= bits;
            bits_left -= bits;
            taken += u64::from(bits);
            extra
        };
        let mut at = start + 64;
        // Each step takes two groups.
        for _ in 0..group % BLOCK / 2 {
            let Pair { base, bits, second } = self.pairs[(word & 0xff) as usize];
            let extra = take(u32::from(bits));
            at += u64::from(base) + (extra >> second) + (extra & ((1 << second) - 1));
            word >>= 8;
        }
        let mut length = |word: u64, mask: u32| {
            let class = self.classes[(word & 15) as usize];
            u64::from(class.base & mask) + take(class.bits & mask)
        };
        // Half of the groups are second in a pair; masks avoid a branch.
        let odd = u32::from(!group.is_multiple_of(2));
        at += length(word, odd.wrapping_neg());
        let end = at + length(word >> (4 * odd), !0);
        if end > blocks.len() as u64 * 8 {
            return Err(Damage::Ends { part: PART });
        }
        #[expect(clippy::cast_possible_truncation, reason = "both are inside the blocks")]
        section.check((at / 8) as usize, end.div_ceil(8) as usize)?;
        Ok((at, end))
    }
}

/// The 64 bits before bit `end`, the last bit highest; zeros before the beginning.
#[cold]
fn last_bits(bytes: &[u8], end: u64) -> u64 {
    match end.checked_sub(64) {
        Some(start) => BitReader::new(bytes, start).read_wide(64),
        None => BitReader::new(bytes, 0)
            .read_wide(u32::try_from(end).unwrap_or(0))
            .checked_shl(u32::try_from(64 - end).unwrap_or(0))
            .unwrap_or(0),
    }
}

/// A little-endian number of `width` bytes; 0 beyond the end.
#[inline]
fn number(bytes: &[u8], at: usize, width: usize) -> u64 {
    let word = match bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        Some(word) => u64::from_le_bytes(*word),
        None => {
            let mut word = [0; 8];
            let rest = bytes.get(at..).unwrap_or_default();
            word[..rest.len()].copy_from_slice(rest);
            u64::from_le_bytes(word)
        }
    };
    if width < 8 { word & ((1 << (8 * width)) - 1) } else { word }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn groups_are_found(
            lengths in proptest::collection::vec(prop_oneof![0u32..60, 0u32..5000, 100_000u32..200_000], 0..700)
        ) {
            let mut groups = BitWriter::default();
            let mut writer = BlocksWriter::default();
            for (at, &length) in (0u64..).zip(&lengths) {
                for bit in 0..length {
                    groups.write((at ^ u64::from(bit)) & 1, 1);
                }
                writer.push(length);
            }
            let layout = writer.finish(&groups.into_bytes());
            let mut header = BitWriter::default();
            layout.header.store(&mut header);
            let header = header.into_bytes();
            let mut header = BitReader::new(&header, 0);
            let blocks = Blocks::load(&mut header, lengths.len(), layout.pointers.len()).unwrap();
            let section = Section::from(bytes::Bytes::from(layout.blocks.clone()));
            for (at, &length) in lengths.iter().enumerate() {
                let (start, end) = blocks.locate(at, &layout.pointers, &section).unwrap();
                prop_assert_eq!(end - start, u64::from(length));
                let mut bits = BitReader::new(&layout.blocks, start);
                for bit in 0..length.min(70) {
                    prop_assert_eq!(bits.read(1), (at as u64 ^ u64::from(bit)) & 1);
                }
            }
            prop_assert!(blocks.locate(lengths.len(), &layout.pointers, &section).is_err());
        }
    }
}
