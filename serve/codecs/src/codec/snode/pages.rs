//! From pages to supernodes and back (the PageID index of *Representing Web Graphs*, section 3.3).
//!
//! The paper numbers pages by supernode, so that a supernode is a range of numbers. Here UIDs are given, so the index
//! is the permutation between them: a range of pages ([`super::partition`]) is one supernode and costs nothing more, or
//! is parted into several, and then there are for each page the part that it is in, and for each part the places of its
//! pages in the range, both in as many bits as they need. Pages behind the nodes of the cell are the links that leave
//! it.
//!
//! Bytes: for each range and one end, first page, first of its parts, and where its bits begin; for each part its
//! supernode; for each supernode its range, where the places of its pages begin in the bits, its pages, and where its
//! graphs begin; all these in 4 or 8 bytes; then the bits.

use bytes::Bytes;

use super::partition::Range;
use webstrata_cells::Damage;
use webstrata_cells::coding::bits::{BitReader, BitWriter};
use webstrata_cells::coding::sections::{Sections, push_wide, push_words, wide_at, width_of};

const PART: &str = "pages of an S-Node";
const HEADER: usize = 32;

/// Bits of numbers below `bound`.
fn width_below(bound: usize) -> u32 {
    usize::BITS - bound.saturating_sub(1).leading_zeros()
}

/// Writes ranges whose part `at`, counted over all ranges, is supernode `numbers[at]`, and whose graphs begin at
/// `graphs[supernode]`.
pub(super) fn write(ranges: &[Range], numbers: &[usize], graphs: &[u64], out: &mut Vec<u8>) {
    let mut bits = BitWriter::default();
    let (mut range_words, mut supernodes) = (Vec::new(), vec![[0u64; 4]; numbers.len()]);
    let mut part = 0;
    for (number, range) in ranges.iter().enumerate() {
        range_words.extend([range.start as u64, part as u64, bits.len()]);
        let mut part_of = vec![0u64; range.end - range.start];
        for (at, members) in range.parts.iter().enumerate() {
            members.iter().for_each(|&page| part_of[page - range.start] = at as u64);
        }
        let parted = range.parts.len() > 1;
        if parted {
            part_of.iter().for_each(|&at| bits.write(at, width_below(range.parts.len())));
        }
        for members in &range.parts {
            let supernode = numbers[part];
            supernodes[supernode] = [number as u64, bits.len(), members.len() as u64, graphs[supernode]];
            if parted {
                let offsets = members.iter().map(|&page| (page - range.start) as u64);
                offsets.for_each(|offset| bits.write(offset, width_below(range.end - range.start)));
            }
            part += 1;
        }
    }
    range_words.extend([ranges.last().map_or(0, |range| range.end as u64), part as u64, bits.len()]);
    let bits = bits.into_bytes();
    let words = || {
        let numbers = numbers.iter().map(|&number| number as u64);
        range_words.iter().copied().chain(numbers).chain(supernodes.iter().flatten().copied())
    };
    let width = width_of(words().max().unwrap_or(0));
    push_words(out, &[ranges.len() as u64, numbers.len() as u64, width as u64, bits.len() as u64]);
    words().for_each(|word| push_wide(out, word, width));
    out.extend_from_slice(&bits);
}

/// The index, opened.
#[derive(Clone, Debug)]
pub(super) struct Pages {
    ranges: usize,
    supernodes: usize,
    width: usize,
    words: Bytes,
    bits: Bytes,
}

/// A supernode.
#[derive(Clone, Copy, Debug)]
pub(super) struct Supernode {
    /// Its first page, or that of its range.
    start: usize,
    /// Pages.
    pub(super) count: usize,
    /// Where in the bits its pages are, and how wide; 0 where it is its range.
    places: u64,
    place_bits: u32,
    /// Where its graphs begin.
    pub(super) graphs: u64,
}

impl Pages {
    /// Takes the index off the parts; ranges have at most `pages_max` pages, of `pages` in all.
    pub(super) fn take(sections: &mut Sections, pages: usize, pages_max: usize) -> Result<Self, Damage> {
        let (ranges, supernodes) = (sections.length()?, sections.length()?);
        let width = if sections.word_within(8)? == 4 { 4 } else { 8 };
        let bits = sections.length()?;
        let words = sections.take((ranges + 1) * 3 + supernodes * 5, width)?;
        let pages_index = Self { ranges, supernodes, width, words, bits: sections.take(bits, 1)? };
        let (mut before, outside) =
            (0, |value: usize| Damage::Outside { part: PART, value: value as u64, bound: pages as u64 });
        for range in 0..=ranges {
            let start = pages_index.word(range * 3)?;
            if start < before || start - before > pages_max || range == 0 && start != 0 {
                return Err(outside(start));
            }
            before = start;
        }
        if before != pages {
            return Err(outside(before));
        }
        Ok(pages_index)
    }

    /// Number of supernodes.
    pub(super) fn supernodes(&self) -> usize {
        self.supernodes
    }

    /// Bytes.
    pub(super) fn len(&self) -> usize {
        HEADER + self.words.len() + self.bits.len()
    }

    fn word(&self, at: usize) -> Result<usize, Damage> {
        let word = wide_at(&self.words, at, self.width).and_then(|word| usize::try_from(word).ok());
        word.ok_or(Damage::Ends { part: PART })
    }

    fn field(&self, at: u64, width: u32) -> usize {
        usize::try_from(BitReader::new(&self.bits, at).read(width.min(56))).unwrap_or(usize::MAX)
    }

    /// A supernode by its number.
    pub(super) fn supernode(&self, number: usize) -> Result<Supernode, Damage> {
        let outside =
            |value: usize, bound: usize| Damage::Outside { part: PART, value: value as u64, bound: bound as u64 };
        if number >= self.supernodes {
            return Err(outside(number, self.supernodes));
        }
        let at = (self.ranges + 1) * 3 + self.supernodes + number * 4;
        let (range, places, count, graphs) =
            (self.word(at)?, self.word(at + 1)?, self.word(at + 2)?, self.word(at + 3)?);
        if range >= self.ranges {
            return Err(outside(range, self.ranges));
        }
        let (start, end) = (self.word(range * 3)?, self.word(range * 3 + 3)?);
        if count > end - start {
            return Err(outside(count, end - start));
        }
        let place_bits = if count == end - start { 0 } else { width_below(end - start) };
        Ok(Supernode { start, count, places: places as u64, place_bits, graphs: graphs as u64 })
    }

    /// A page of a supernode by its local place.
    #[inline]
    pub(super) fn page(&self, supernode: &Supernode, local: usize) -> usize {
        if supernode.place_bits == 0 {
            return supernode.start + local;
        }
        let at = supernode.places.saturating_add(local as u64 * u64::from(supernode.place_bits));
        supernode.start.saturating_add(self.field(at, supernode.place_bits))
    }

    /// The last range that starts at a page or before; starts rise.
    fn range(&self, page: usize) -> Result<usize, Damage> {
        let (mut low, mut high) = (0, self.ranges);
        while high - low > 1 {
            let middle = usize::midpoint(low, high);
            if self.word(middle * 3)? <= page {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// Where the range of a page ends, and the supernodes that it is parted into.
    pub(super) fn range_of(&self, page: usize) -> Result<(usize, Vec<usize>), Damage> {
        let range = self.range(page)?;
        let (from, end, to) = (self.word(range * 3 + 1)?, self.word(range * 3 + 3)?, self.word(range * 3 + 4)?);
        let parts = (from..to.min(self.supernodes)).map(|part| self.word((self.ranges + 1) * 3 + part));
        Ok((end, parts.collect::<Result<_, _>>()?))
    }

    /// The supernode of a page, with its number, and the page's local place.
    pub(super) fn find(&self, page: usize) -> Result<(usize, Supernode, usize), Damage> {
        let low = self.range(page)?;
        let (start, first_supernode, bits) = (self.word(low * 3)?, self.word(low * 3 + 1)?, self.word(low * 3 + 2)?);
        let count = self.word(low * 3 + 4)?.saturating_sub(first_supernode);
        let width = width_below(count);
        let offset = page.saturating_sub(start);
        let part = if width == 0 {
            0
        } else {
            self.field((bits as u64).saturating_add(offset as u64 * u64::from(width)), width)
        };
        let part = first_supernode.saturating_add(part);
        if part >= self.supernodes {
            return Err(Damage::Outside { part: PART, value: part as u64, bound: self.supernodes as u64 });
        }
        let number = self.word((self.ranges + 1) * 3 + part)?;
        let supernode = self.supernode(number)?;
        let (mut low, mut high) = (0, supernode.count);
        while high - low > 1 {
            let middle = usize::midpoint(low, high);
            if self.page(&supernode, middle) <= page {
                low = middle;
            } else {
                high = middle;
            }
        }
        if supernode.count == 0 || self.page(&supernode, low) != page {
            return Err(Damage::Outside { part: PART, value: page as u64, bound: supernode.count as u64 });
        }
        Ok((number, supernode, low))
    }
}
