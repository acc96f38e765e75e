//! From pages to supernodes and back (the PageID index of *Representing Web Graphs*, section 3.3).
//!
//! The paper numbers pages by supernode, so that a supernode is an interval of numbers. Here UIDs are given, so the
//! index is the permutation between the two. An interval of pages ([`super::partition`]) is one supernode and costs
//! nothing more, or is divided into several clusters. A divided interval has, for each page, the cluster of the page,
//! and, for each cluster, the offsets of its pages in the interval; both in as few bits as possible. Pages after the
//! nodes of the cell are the targets of links that leave the cell.
//!
//! Bytes: for each interval and one end, its first page, the first of its clusters, and the start of its bits; for each
//! cluster its supernode; for each supernode its interval, the start of the offsets of its pages in the bits, the
//! number of its pages, and the start of its graphs; all these in 4 or 8 bytes; then the bits.

use bytes::Bytes;

use super::partition::PageInterval;
use webstrata_cells::Damage;
use webstrata_cells::coding::bits::{BitReader, BitWriter};
use webstrata_cells::coding::sections::{Sections, push_wide, push_words, wide_at, width_of};

const PART: &str = "pages of an S-Node";
const HEADER: usize = 32;

/// The width in bits of numbers below `bound`.
fn width_below(bound: usize) -> u32 {
    usize::BITS - bound.saturating_sub(1).leading_zeros()
}

/// Writes intervals. Cluster `at`, counted over all intervals, is supernode `numbers[at]`. The graphs of a supernode
/// begin at `graphs[supernode]`.
pub(super) fn write(intervals: &[PageInterval], numbers: &[usize], graphs: &[u64], out: &mut Vec<u8>) {
    let mut bits = BitWriter::default();
    let (mut interval_words, mut supernodes) = (Vec::new(), vec![[0u64; 4]; numbers.len()]);
    let mut cluster = 0;
    for (number, interval) in intervals.iter().enumerate() {
        interval_words.extend([interval.start as u64, cluster as u64, bits.len()]);
        let mut cluster_of = vec![0u64; interval.end - interval.start];
        for (at, members) in interval.clusters.iter().enumerate() {
            members.iter().for_each(|&page| cluster_of[page - interval.start] = at as u64);
        }
        let is_divided = interval.clusters.len() > 1;
        if is_divided {
            cluster_of.iter().for_each(|&at| bits.write(at, width_below(interval.clusters.len())));
        }
        for members in &interval.clusters {
            let supernode = numbers[cluster];
            supernodes[supernode] = [number as u64, bits.len(), members.len() as u64, graphs[supernode]];
            if is_divided {
                let offsets = members.iter().map(|&page| (page - interval.start) as u64);
                offsets.for_each(|offset| bits.write(offset, width_below(interval.end - interval.start)));
            }
            cluster += 1;
        }
    }
    interval_words.extend([intervals.last().map_or(0, |interval| interval.end as u64), cluster as u64, bits.len()]);
    let bits = bits.into_bytes();
    let words = || {
        let numbers = numbers.iter().map(|&number| number as u64);
        interval_words.iter().copied().chain(numbers).chain(supernodes.iter().flatten().copied())
    };
    let width = width_of(words().max().unwrap_or(0));
    push_words(out, &[intervals.len() as u64, numbers.len() as u64, width as u64, bits.len() as u64]);
    words().for_each(|word| push_wide(out, word, width));
    out.extend_from_slice(&bits);
}

/// The index, ready to answer.
#[derive(Clone, Debug)]
pub(super) struct Pages {
    intervals: usize,
    supernodes: usize,
    width: usize,
    words: Bytes,
    bits: Bytes,
}

/// A supernode.
#[derive(Clone, Copy, Debug)]
pub(super) struct Supernode {
    /// The first page of the supernode, or of its interval.
    start: usize,
    /// The number of pages.
    pub(super) count: usize,
    /// The start of its pages in the bits, and their width. The width is 0 if the supernode is its whole interval.
    page_bits: u64,
    page_width: u32,
    /// The start of its graphs.
    pub(super) graphs: u64,
}

impl Pages {
    /// Reads the index from the sections. Intervals have at most `pages_max` pages, of `pages` in all.
    pub(super) fn take(sections: &mut Sections, pages: usize, pages_max: usize) -> Result<Self, Damage> {
        let (intervals, supernodes) = (sections.length()?, sections.length()?);
        let width = if sections.word_within(8)? == 4 { 4 } else { 8 };
        let bits = sections.length()?;
        let words = sections.take((intervals + 1) * 3 + supernodes * 5, width)?;
        let pages_index = Self { intervals, supernodes, width, words, bits: sections.take(bits, 1)? };
        let (mut before, outside) =
            (0, |value: usize| Damage::Outside { part: PART, value: value as u64, bound: pages as u64 });
        for interval in 0..=intervals {
            let start = pages_index.word(interval * 3)?;
            if start < before || start - before > pages_max || interval == 0 && start != 0 {
                return Err(outside(start));
            }
            before = start;
        }
        if before != pages {
            return Err(outside(before));
        }
        Ok(pages_index)
    }

    /// The number of supernodes.
    pub(super) fn supernodes(&self) -> usize {
        self.supernodes
    }

    /// The size in bytes.
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
        let at = (self.intervals + 1) * 3 + self.supernodes + number * 4;
        let (interval, page_bits, count, graphs) =
            (self.word(at)?, self.word(at + 1)?, self.word(at + 2)?, self.word(at + 3)?);
        if interval >= self.intervals {
            return Err(outside(interval, self.intervals));
        }
        let (start, end) = (self.word(interval * 3)?, self.word(interval * 3 + 3)?);
        if count > end - start {
            return Err(outside(count, end - start));
        }
        let page_width = if count == end - start { 0 } else { width_below(end - start) };
        Ok(Supernode { start, count, page_bits: page_bits as u64, page_width, graphs: graphs as u64 })
    }

    /// A page of a supernode, by its local place.
    #[inline]
    pub(super) fn page(&self, supernode: &Supernode, local: usize) -> usize {
        if supernode.page_width == 0 {
            return supernode.start + local;
        }
        let at = supernode.page_bits.saturating_add(local as u64 * u64::from(supernode.page_width));
        supernode.start.saturating_add(self.field(at, supernode.page_width))
    }

    /// The last interval that starts at a page or before it. Starts rise.
    fn interval(&self, page: usize) -> Result<usize, Damage> {
        let (mut low, mut high) = (0, self.intervals);
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

    /// The end of the interval of a page, and the supernodes that the interval is divided into.
    pub(super) fn interval_of(&self, page: usize) -> Result<(usize, Vec<usize>), Damage> {
        let interval = self.interval(page)?;
        let (from, end, to) =
            (self.word(interval * 3 + 1)?, self.word(interval * 3 + 3)?, self.word(interval * 3 + 4)?);
        let supernodes = (from..to.min(self.supernodes)).map(|cluster| self.word((self.intervals + 1) * 3 + cluster));
        Ok((end, supernodes.collect::<Result<_, _>>()?))
    }

    /// The supernode of a page, with its number, and the page's local place.
    pub(super) fn find(&self, page: usize) -> Result<(usize, Supernode, usize), Damage> {
        let low = self.interval(page)?;
        let (start, first_supernode, bits) = (self.word(low * 3)?, self.word(low * 3 + 1)?, self.word(low * 3 + 2)?);
        let count = self.word(low * 3 + 4)?.saturating_sub(first_supernode);
        let width = width_below(count);
        let offset = page.saturating_sub(start);
        let cluster = if width == 0 {
            0
        } else {
            self.field((bits as u64).saturating_add(offset as u64 * u64::from(width)), width)
        };
        let cluster = first_supernode.saturating_add(cluster);
        if cluster >= self.supernodes {
            return Err(Damage::Outside { part: PART, value: cluster as u64, bound: self.supernodes as u64 });
        }
        let number = self.word((self.intervals + 1) * 3 + cluster)?;
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
