//! Reads a small graph ([`super::graph`] specifies its bits): the list of one page, or the lists of all its sources.

use super::graph::{Codes, GROUP, Kind, PART, WIDTH_BITS};
use crate::codec::escaped::EscapedDecoder;
use crate::codec::nybble::unfold;
use webstrata_cells::Damage;
use webstrata_cells::coding::bits::BitReader;

/// A graph in bits.
#[derive(Debug)]
pub(super) struct Graph<'a> {
    /// The bytes with the bits of all graphs.
    pub(super) data: &'a [u8],
    pub(super) codes: &'a Codes<EscapedDecoder>,
    /// The number of pages of the supernode that links come from.
    pub(super) pages: usize,
    /// Whether the links stay in that supernode.
    pub(super) inner: bool,
    /// The longest chain of references.
    pub(super) depth_max: usize,
}

/// The places of the records of a graph.
#[derive(Debug)]
pub(super) struct Records {
    count: usize,
    /// The width of the stored start of a group.
    width: u32,
    /// The start of the stored starts of groups, and the start of the records after them.
    places_start: u64,
    records: u64,
}

/// Lists that were decoded before, by source; empty if none are kept.
pub(super) type Kept = Vec<Option<Vec<usize>>>;

fn outside(value: u64, bound: usize) -> Damage {
    Damage::Outside { part: PART, value, bound: bound as u64 }
}

impl<'a> Graph<'a> {
    /// A page's place among the sources, and the records; `None` if the page is not a source.
    pub(super) fn source(&self, mut bits: BitReader<'a>, page: usize) -> Result<Option<(usize, Records)>, Damage> {
        let count = self.codes.read_within(Kind::Sources, self.pages, &mut bits)?;
        if count == 0 {
            return Ok(None);
        }
        let mut index = (count == self.pages).then_some(page);
        if count < self.pages && bits.read(1) == 1 {
            let mut before = 0;
            let mut words = bits;
            for _ in 0..page / 32 {
                before += words.read(32).count_ones() as usize;
            }
            let flags = words.peek() & ((2u64 << (page % 32)) - 1);
            if flags >> (page % 32) == 1 {
                index = Some(before + flags.count_ones() as usize - 1);
            }
            bits = self.at(bits.position() + self.pages as u64);
        } else if count < self.pages {
            let mut next = 0;
            for at in 0..count {
                next += self.codes.read_within(Kind::Sources, self.pages, &mut bits)?;
                if next == page {
                    index = Some(at);
                } else if next > page && index.is_none() {
                    break;
                }
                next += 1;
            }
        }
        Ok(index.filter(|&index| index < count).map(|index| (index, self.records(count, bits))))
    }

    /// The pages of all sources, and the records.
    pub(super) fn sources(&self, mut bits: BitReader<'a>) -> Result<(Vec<usize>, Records), Damage> {
        let count = self.codes.read_within(Kind::Sources, self.pages, &mut bits)?;
        let mut sources: Vec<usize> = Vec::with_capacity(count);
        if count == self.pages {
            sources.extend(0..count);
        } else if count > 0 && bits.read(1) == 1 {
            sources.extend((0..self.pages).filter(|_| bits.read(1) == 1));
            sources.truncate(count);
        } else {
            let mut next = 0;
            for _ in 0..count {
                next += self.codes.read_within(Kind::Sources, self.pages, &mut bits)?;
                sources.push(next);
                next += 1;
            }
        }
        let count = sources.len();
        if let Some(&page) = sources.last().filter(|&&page| page >= self.pages) {
            return Err(outside(page as u64, self.pages));
        }
        Ok((sources, self.records(count, bits)))
    }

    fn at(&self, position: u64) -> BitReader<'a> {
        BitReader::new(self.data, position)
    }

    /// The records after the sources.
    fn records(&self, count: usize, mut bits: BitReader<'_>) -> Records {
        let width = if count > GROUP { u32::try_from(bits.read(WIDTH_BITS)).unwrap_or(0) } else { 0 };
        let places_start = bits.position();
        let records = places_start + (count.div_ceil(GROUP) as u64).saturating_sub(1) * u64::from(width);
        Records { count, width, places_start, records }
    }

    /// The bits of a record.
    fn record(&self, records: &Records, at: usize) -> BitReader<'a> {
        let group = at / GROUP;
        let offset = match group.checked_sub(1) {
            None => 0,
            Some(before) => {
                self.at(records.places_start + before as u64 * u64::from(records.width)).read_wide(records.width)
            }
        };
        let mut bits = self.at(records.records.saturating_add(offset));
        let start = group * GROUP;
        // The group has the lengths of all its records, except the last record of all.
        let lengths = GROUP.min(records.count - 1 - start);
        let mut before = 0u64;
        for record in start..start + lengths {
            let length = self.codes.read(Kind::Length, &mut bits);
            before = before.saturating_add(if record < at { length } else { 0 });
        }
        self.at(bits.position().saturating_add(before))
    }

    /// Decodes the list of source `at`, as local places among `targets` pages.
    pub(super) fn list(
        &self,
        records: &Records,
        at: usize,
        targets: usize,
        kept: &mut Kept,
        links: &mut Vec<usize>,
    ) -> Result<(), Damage> {
        self.list_in(records, at, targets, 0, kept, links)
    }

    fn list_in(
        &self,
        records: &Records,
        at: usize,
        targets: usize,
        depth: usize,
        kept: &mut Kept,
        links: &mut Vec<usize>,
    ) -> Result<(), Damage> {
        links.clear();
        if let Some(Some(list)) = kept.get(at) {
            links.extend_from_slice(list);
            return Ok(());
        }
        let mut bits = self.record(records, at);
        let reference = self.codes.read(Kind::Reference, &mut bits);
        if reference != 0 {
            let other = i64::try_from(at).ok().and_then(|at| at.checked_add(unfold(reference)));
            let other = other.and_then(|other| usize::try_from(other).ok()).filter(|&other| other < records.count);
            let other = other.ok_or_else(|| outside(reference, records.count))?;
            if depth >= self.depth_max {
                return Err(outside(depth as u64, self.depth_max));
            }
            self.list_in(records, other, targets, depth + 1, kept, links)?;
            let shared = self.share(&mut bits, links)?;
            links.truncate(shared);
        }
        self.push_rest(bits, at, targets, links)?;
        if let Some(list) = kept.get_mut(at) {
            *list = Some(links.clone());
        }
        Ok(())
    }

    /// Inserts the links that are not shared among the shared links.
    fn push_rest(
        &self,
        mut bits: BitReader<'_>,
        at: usize,
        targets: usize,
        links: &mut Vec<usize>,
    ) -> Result<(), Damage> {
        let shared = links.len();
        let count = self.codes.read_within(Kind::LinkCount, targets, &mut bits)?;
        let mut next = 0;
        for number in 0..count {
            let value = self.codes.read(if number == 0 { Kind::First } else { Kind::Gap }, &mut bits);
            let link = match number {
                0 if self.inner => i64::try_from(at).ok().and_then(|at| at.checked_add(unfold(value))),
                _ => i64::try_from(value).ok().and_then(|value| value.checked_add(next)),
            };
            let link = link.and_then(|link| usize::try_from(link).ok()).filter(|&link| link < targets);
            let link = link.ok_or_else(|| outside(value, targets))?;
            links.push(link);
            next = i64::try_from(link).unwrap_or(i64::MAX) + 1;
        }
        if shared > 0 && count > 0 {
            links.sort_unstable();
        }
        if links.len() > targets {
            return Err(outside(links.len() as u64, targets));
        }
        Ok(())
    }

    /// Moves the shared links to the front. Returns their number.
    fn share(&self, bits: &mut BitReader<'_>, links: &mut [usize]) -> Result<usize, Damage> {
        let mut kept = 0;
        if bits.read(1) == 0 {
            for at in 0..links.len() {
                links[kept] = links[at];
                kept += usize::from(bits.read(1) == 1);
            }
            return Ok(kept);
        }
        let run_count = self.codes.read_within(Kind::RunCount, links.len() + 1, bits)?;
        let mut from = 0;
        for run in 0..=run_count {
            let length = if run < run_count {
                self.codes.read_within(Kind::Run, links.len() - from, bits)?
            } else {
                links.len() - from
            };
            if run.is_multiple_of(2) {
                links.copy_within(from..from + length, kept);
                kept += length;
            }
            from += length;
        }
        Ok(kept)
    }
}
