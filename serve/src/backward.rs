//! What links to the URLs of a cell: strata of sources by time range, made smaller by what every source has in common.
//!
//! A source without a capture in a range has no link in it, whatever it links to. So for the sources that lie in the cell
//! itself the ranges in which they link to anything here are kept once (`activity`), and the presence of each of their links is
//! free to stay as it was in the other ranges: most changes vanish. A source has a link in a range when its phase says so and the
//! source is active. Answers are those of the layers; no source is looked up for them.
//!
//! ```text
//! lengths     of table and sets in 64-bit words, bits of a set number, length of ranks in bytes (64 bits each)
//! table       all starts of ranges, rising (64 bits each)
//! sets        distinct sets of ranges, one bit a place in the table (whole 64-bit words)
//! ranks       which nodes are active sources
//! numbers     the set of each active source, packed
//! strata      the records
//! ```

use std::collections::HashMap;

use bytes::Bytes;
use webstrata_layers::{Change, InLinks, Page, presence};

use crate::bits::{BitReader, BitWriter};
use crate::codec::strata::ranks::{self, Nodes};
use crate::codec::strata::{Phased, Profile, Strata, encode_numbered};
use crate::codec::{LinkCodec, Sizes};
use crate::error::Damage;

const PART: &str = "backward store";

/// Encodes the in-links of `count` of the `nodes` URLs of a cell: rising UIDs from `first` on, below `first + nodes`.
///
/// # Errors
/// Those of the iterators that `records` gives; it is asked for them more than once.
pub fn encode<'a, E: 'a>(
    first: u64,
    (nodes, count): (usize, usize),
    records: &dyn Fn() -> Box<dyn Iterator<Item = Result<InLinks, E>> + 'a>,
    profile: Profile,
) -> Result<Vec<u8>, E> {
    let activity = Activity::of(first, nodes, records)?;
    let (mut out, ranks) = activity.store();
    let numbering = Numbering { first, nodes: nodes as u64, active: ranks::count(&ranks) as u64 };
    let pages = || -> Box<dyn Iterator<Item = Result<Page, E>> + '_> {
        Box::new(records().map(|record| {
            let mut page = activity.loosen(record?);
            page.links.iter_mut().for_each(|source| *source = numbering.number(*source, &ranks));
            Ok(page)
        }))
    };
    let own = |node| first + ranks::rank(&ranks, node).map_or(0, |(before, _)| before) as u64;
    let strata = encode_numbered(first, (nodes, count), &pages, &own, profile)?;
    out.extend(strata);
    Ok(out)
}

/// Numbers of sources: those of other cells keep their order around the active ones here, which are `first` and their rank. So
/// gaps are counted in sources, not in URLs of which few are pages.
#[derive(Clone, Copy)]
struct Numbering {
    first: u64,
    nodes: u64,
    active: u64,
}

impl Numbering {
    /// The number of a source.
    fn number(self, source: u64, ranks: &[u8]) -> u64 {
        match source.checked_sub(self.first) {
            None => source,
            Some(node) if node < self.nodes => {
                let rank = usize::try_from(node).ok().and_then(|node| ranks::rank(ranks, node));
                self.first + rank.map_or(0, |(before, _)| before) as u64
            }
            Some(_) => source - self.nodes + self.active,
        }
    }

    /// The rank of a number, where it is an active source of the cell.
    #[inline]
    fn rank(self, number: u64) -> Option<usize> {
        let rank = number.checked_sub(self.first)?;
        if rank < self.active { usize::try_from(rank).ok() } else { None }
    }

    /// The source of a number.
    #[inline]
    fn source(self, number: u64, nodes: &mut Nodes<'_>) -> u64 {
        match number.checked_sub(self.first) {
            None => number,
            Some(rank) if rank < self.active => {
                self.first + usize::try_from(rank).ok().and_then(|rank| nodes.node(rank)).unwrap_or(0) as u64
            }
            Some(_) => number.wrapping_sub(self.active).wrapping_add(self.nodes),
        }
    }
}

/// Sets of `words` words each, in `wanted` words each; what is cut off must be 0.
fn resized(sets: &[u64], words: usize, wanted: usize) -> Vec<u64> {
    let kept = words.min(wanted);
    let mut resized = vec![0; sets.len() / words * wanted];
    // No words are wanted where there are no sets.
    for (to, from) in resized.chunks_exact_mut(wanted.max(1)).zip(sets.chunks_exact(words)) {
        to[..kept].copy_from_slice(&from[..kept]);
    }
    resized
}

/// When the sources in a cell link to anything in it.
struct Activity {
    first: u64,
    table: Vec<i64>,
    words: usize,
    /// Words of each node's set.
    sets: Vec<u64>,
}

impl Activity {
    fn of<'a, E: 'a>(
        first: u64,
        nodes: usize,
        records: &dyn Fn() -> Box<dyn Iterator<Item = Result<InLinks, E>> + 'a>,
    ) -> Result<Self, E> {
        // Starts, rising, each with its place: in order of appearance at first.
        let mut table: Vec<(i64, usize)> = Vec::new();
        let (mut words, mut sets) = (1, vec![0; nodes]);
        let mut places = Vec::new();
        for record in records() {
            let record = record?;
            places.clear();
            for &start in &record.ranges {
                let at = table.binary_search_by_key(&start, |&(start, _)| start).unwrap_or_else(|at| {
                    table.insert(at, (start, table.len()));
                    at
                });
                places.push(table[at].1);
            }
            if table.len() > 64 * words {
                let wider = table.len().div_ceil(64).next_power_of_two();
                sets = resized(&sets, words, wider);
                words = wider;
            }
            let all = places.iter().fold(vec![0u64; words], |mut all, &place| {
                all[place / 64] |= 1 << (place % 64);
                all
            });
            let count = u32::try_from(places.len()).unwrap_or(u32::MAX);
            let mut changes = presence::by_link(&record.changes).peekable();
            for (at, &source) in (0u32..).zip(&record.sources) {
                let changed = changes.next_if(|(link, _)| *link == at);
                let node = source.checked_sub(first).and_then(|node| usize::try_from(node).ok());
                let Some(node) = node.filter(|&node| node < nodes) else { continue };
                let set = &mut sets[node * words..][..words];
                match changed {
                    None => set.iter_mut().zip(&all).for_each(|(word, all)| *word |= all),
                    Some((_, changes)) => {
                        for (from, to) in presence::runs(changes, count) {
                            for &place in &places[from as usize..=to as usize] {
                                set[place / 64] |= 1 << (place % 64);
                            }
                        }
                    }
                }
            }
        }
        // By time.
        let fewest = table.len().div_ceil(64);
        if table.iter().enumerate().any(|(at, &(_, place))| at != place) {
            let mut by_place = vec![0; table.len()];
            table.iter().enumerate().for_each(|(at, &(_, place))| by_place[place] = at);
            let mut sorted = vec![0; words];
            for set in sets.chunks_exact_mut(words).filter(|set| set.iter().any(|&word| word != 0)) {
                sorted.fill(0);
                for (place, &at) in by_place.iter().enumerate() {
                    sorted[at / 64] |= (set[place / 64] >> (place % 64) & 1) << (at % 64);
                }
                set.copy_from_slice(&sorted);
            }
        }
        let sets = if words == fewest { sets } else { resized(&sets, words, fewest) };
        Ok(Self { first, table: table.into_iter().map(|(start, _)| start).collect(), words: fewest, sets })
    }

    fn node_of(&self, source: u64) -> Option<usize> {
        let node = usize::try_from(source.checked_sub(self.first)?).ok()?;
        (self.words > 0 && node < self.sets.len() / self.words).then_some(node)
    }

    fn places(&self, ranges: &[i64]) -> Vec<usize> {
        ranges.iter().map(|start| self.table.binary_search(start).unwrap_or(0)).collect()
    }

    /// The record with changes only where its sources are active.
    fn loosen(&self, record: InLinks) -> Page {
        let places = self.places(&record.ranges);
        let count = u32::try_from(places.len()).unwrap_or(u32::MAX);
        let mut changes = Vec::new();
        for (link, own) in presence::by_link(&record.changes) {
            let source = record.sources.get(link as usize).copied();
            let Some(node) = source.and_then(|source| self.node_of(source)) else {
                changes.extend_from_slice(own);
                continue;
            };
            let set = &self.sets[node * self.words..][..self.words];
            let mut runs = presence::runs(own, count).into_iter().peekable();
            let mut before = None;
            for (range, &place) in (0u32..).zip(&places) {
                if set[place / 64] >> (place % 64) & 1 == 0 {
                    continue;
                }
                while runs.next_if(|&(_, to)| to < range).is_some() {}
                let now = runs.peek().is_some_and(|&(from, _)| from <= range);
                match before {
                    // Until the source is first active its links count as they are then.
                    None if !now => changes.push(Change { link, capture: 0 }),
                    Some(before) if before != now => changes.push(Change { link, capture: range }),
                    _ => {}
                }
                before = Some(now);
            }
        }
        Page { uid: record.uid, timestamps: record.ranges, unknown: Vec::new(), links: record.sources, changes }
    }

    /// The parts before the strata; and the ranks again.
    fn store(&self) -> (Vec<u8>, Vec<u8>) {
        let mut numbers: HashMap<&[u64], usize> = HashMap::new();
        let (mut distinct, mut of_source, mut sources) = (Vec::new(), Vec::new(), Vec::new());
        for (node, set) in self.sets.chunks_exact(self.words.max(1)).enumerate() {
            if set.iter().any(|&word| word != 0) {
                let next = numbers.len();
                of_source.push(*numbers.entry(set).or_insert_with(|| {
                    distinct.extend_from_slice(set);
                    next
                }));
                sources.push(node);
            }
        }
        let width = usize::BITS - numbers.len().saturating_sub(1).leading_zeros();
        let nodes = self.sets.len() / self.words.max(1);
        let ranks = ranks::encode(&sources, nodes);
        let mut out = Vec::new();
        for value in
            [self.table.len() as u64, distinct.len() as u64, u64::from(width), ranks.len() as u64, sources.len() as u64]
        {
            out.extend_from_slice(&value.to_le_bytes());
        }
        self.table.iter().for_each(|start| out.extend_from_slice(&start.to_le_bytes()));
        distinct.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
        out.extend_from_slice(&ranks);
        let mut packed = BitWriter::default();
        of_source.iter().for_each(|&number| packed.write_wide(number as u64, width));
        out.extend(packed.into_bytes());
        (out, ranks)
    }
}

/// The in-links of a cell, ready to answer.
pub struct Backward {
    numbering: Numbering,
    table: Vec<i64>,
    words: usize,
    sets: Vec<u64>,
    width: u32,
    bytes: Bytes,
    ranks: usize,
    numbers: usize,
    strata_at: usize,
    strata: Strata,
}

/// The ranges that a question asks for, as first and last index, and those that lie wholly in its window.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// All.
    pub ranges: (usize, usize),
    /// Those whose sources need no further look.
    pub inner: Option<(usize, usize)>,
}

impl Wanted {
    /// The first and the last wanted range where they are not inner ones, and whether there are other ones that are not.
    pub(crate) fn edges(self) -> ([Option<usize>; 2], bool) {
        let ((first, last), inner) = (self.ranges, self.inner.filter(|(first, last)| first <= last));
        let edge = |range: usize| inner.is_none_or(|(from, to)| range < from || range > to).then_some(range);
        let middle = inner.map_or(last - first > 1, |(from, to)| from > first + 1 || to + 1 < last);
        ([edge(first), edge(last)], middle)
    }
}

/// What the ranges of a source say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It links in an inner range.
    Inner,
    /// It links in no inner range, but in the first wanted one, the last one, or both; or in any, which both stand for where
    /// there are more ranges that are not inner.
    Edges([bool; 2]),
}

/// Room for one answer, used again and again.
#[derive(Default)]
pub struct Room {
    phased: Phased,
    places: Vec<usize>,
    inner: Cut,
    edges: [Cut; 2],
}

impl Backward {
    /// Opens what [`encode`] wrote for a cell of `nodes` nodes from UID `first` on.
    ///
    /// # Errors
    /// Bytes whose parts do not fit together.
    pub fn open(bytes: Bytes, first: u64, nodes: usize) -> Result<Self, Damage> {
        let mut head = BitReader::new(&bytes, 0);
        let mut part = |unit: usize| {
            let length = usize::try_from(head.read_wide(64)).ok().filter(|&length| length <= bytes.len());
            length.and_then(|length| length.checked_mul(unit)).ok_or(Damage::Ends { part: PART })
        };
        let (table_len, sets_len, width, ranks_len, sources) = (part(8)?, part(8)?, part(1)?, part(1)?, part(1)?);
        let width = u32::try_from(width).ok().filter(|&width| width <= 64);
        let width = width.ok_or(Damage::Outside { part: PART, value: 0, bound: 64 })?;
        let sets = 40 + table_len;
        let ranks = sets + sets_len;
        let numbers = ranks + ranks_len;
        let strata_at = numbers + (sources * width as usize).div_ceil(8);
        if strata_at > bytes.len() {
            return Err(Damage::Ends { part: PART });
        }
        let words_at = |range: std::ops::Range<usize>| {
            bytes[range].chunks_exact(8).map(|word| word.first_chunk::<8>().map_or(0, |word| u64::from_le_bytes(*word)))
        };
        let table: Vec<i64> = words_at(40..sets).map(u64::cast_signed).collect();
        let words = table.len().div_ceil(64);
        if !table.is_sorted_by(|a, b| a < b) || (words > 0 && sets_len / 8 % words != 0) {
            return Err(Damage::Outside { part: PART, value: sets_len as u64, bound: words as u64 });
        }
        ranks::check(&bytes[ranks..numbers], nodes, sources)?;
        let strata = Strata::open_numbered(bytes.slice(strata_at..), Some(bytes.slice(ranks..numbers)))?;
        let sets = words_at(sets..ranks).collect();
        let numbering = Numbering { first, nodes: nodes as u64, active: sources as u64 };
        Ok(Self { numbering, table, words, sets, width, ranks, numbers, strata_at, strata, bytes })
    }

    /// Where the bytes are; what all sources have in common counts as tables.
    pub fn sizes(&self) -> Sizes {
        let Sizes { data, index, tables } = self.strata.sizes();
        Sizes { data, index, tables: tables + self.strata_at as u64 }
    }

    /// When the source of a number links to anything here; `None` for one of another cell.
    #[inline]
    fn set_of(&self, number: u64) -> Option<&[u64]> {
        let rank = self.numbering.rank(number).filter(|_| self.words > 0)?;
        let numbers = &self.bytes[self.numbers..self.strata_at];
        let set = BitReader::new(numbers, rank as u64 * u64::from(self.width)).read_wide(self.width);
        self.sets.get(usize::try_from(set).ok()?.checked_mul(self.words)?..)?.get(..self.words)
    }

    /// Calls `visit` with each source of a node, rising, that links in the ranges `wanted` of its list of ranges (`None`: it
    /// asks for none), and in which of them.
    ///
    /// # Errors
    /// A node outside the cell, and damaged bytes.
    pub fn sources(
        &self,
        node: usize,
        room: &mut Room,
        wanted: impl FnOnce(&[i64]) -> Option<Wanted>,
        visit: &mut dyn FnMut(u64, Found),
    ) -> Result<(), Damage> {
        let by_masks = self.strata.phased(node, &mut room.phased)?;
        let phased = &room.phased;
        let Some(wanted) = wanted(&phased.times) else { return Ok(()) };
        let (count, last) = (phased.times.len(), wanted.ranges.1);
        if last >= count || wanted.ranges.0 > last {
            return Err(Damage::Outside { part: PART, value: last as u64, bound: count as u64 });
        }
        let mut nodes = Nodes::new(&self.bytes[self.ranks..self.numbers]);
        if wanted.inner == Some((0, count - 1)) {
            phased.links.iter().for_each(|&number| visit(self.numbering.source(number, &mut nodes), Found::Inner));
            return Ok(());
        }
        if !by_masks {
            return self.sources_slowly(node, wanted, visit);
        }
        if self.words == 0 {
            return Err(Damage::Ends { part: PART });
        }
        let Room { phased, places, inner, edges } = room;
        places.clear();
        places.extend(phased.times.iter().map(|start| self.table.binary_search(start).unwrap_or(0)));
        let cut = |cut: &mut Cut, ranges| cut.set(phased, places, ranges, self.words);
        cut(inner, wanted.inner);
        let (own, middle) = wanted.edges();
        let ranges = if middle { [Some(wanted.ranges), None] } else { own.map(|own| own.map(|range| (range, range))) };
        edges.iter_mut().zip(ranges).for_each(|(edge, ranges)| cut(edge, ranges));
        for (&number, &mask) in phased.links.iter().zip(&phased.masks) {
            let set = self.set_of(number);
            let found = if inner.meets(mask, set) {
                Found::Inner
            } else {
                let [first, last] = [edges[0].meets(mask, set), edges[1].meets(mask, set)];
                if !first && !last {
                    continue;
                }
                Found::Edges(if middle { [true; 2] } else { [first, last] })
            };
            visit(self.numbering.source(number, &mut nodes), found);
        }
        Ok(())
    }

    fn sources_slowly(&self, node: usize, wanted: Wanted, visit: &mut dyn FnMut(u64, Found)) -> Result<(), Damage> {
        let Some(record) = self.record(node)? else { return Ok(()) };
        let meets = |own: &[Change], (first, last): (usize, usize)| {
            let bound = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
            presence::any_in(own, bound(first), bound(last))
        };
        let (edges, middle) = wanted.edges();
        let mut changes = presence::by_link(&record.changes).peekable();
        for (at, &source) in (0u32..).zip(&record.sources) {
            let own = changes.next_if(|(link, _)| *link == at).map_or(&[][..], |(_, own)| own);
            if wanted.inner.is_some_and(|inner| inner.0 <= inner.1 && meets(own, inner)) {
                visit(source, Found::Inner);
            } else if meets(own, wanted.ranges) {
                let edge = |edge: Option<usize>| middle || edge.is_some_and(|range| meets(own, (range, range)));
                visit(source, Found::Edges(edges.map(edge)));
            }
        }
        Ok(())
    }

    /// The record of a node as the layers have it; `None` where nothing links to it.
    ///
    /// # Errors
    /// See [`Self::sources`].
    pub fn record(&self, node: usize) -> Result<Option<InLinks>, Damage> {
        let Some(page) = self.strata.page(node)? else { return Ok(None) };
        let places: Vec<usize> =
            page.timestamps.iter().map(|start| self.table.binary_search(start).unwrap_or(0)).collect();
        let count = u32::try_from(places.len()).unwrap_or(u32::MAX);
        let mut changes = Vec::new();
        let mut loose = presence::by_link(&page.changes).peekable();
        for (link, &number) in (0u32..).zip(&page.links) {
            let own = loose.next_if(|(at, _)| *at == link).map_or(&[][..], |(_, own)| own);
            let Some(set) = self.set_of(number) else {
                changes.extend_from_slice(own);
                continue;
            };
            let mut runs = presence::runs(own, count).into_iter().peekable();
            let mut before = true;
            for (range, &place) in (0u32..).zip(&places) {
                while runs.next_if(|&(_, to)| to < range).is_some() {}
                let there = runs.peek().is_some_and(|&(from, _)| from <= range);
                let now = there && set[place / 64] >> (place % 64) & 1 == 1;
                if now != before {
                    changes.push(Change { link, capture: range });
                }
                before = now;
            }
        }
        let mut nodes = Nodes::new(&self.bytes[self.ranks..self.numbers]);
        let sources = page.links.iter().map(|&number| self.numbering.source(number, &mut nodes)).collect();
        Ok(Some(InLinks { uid: page.uid, ranges: page.timestamps, sources, changes }))
    }
}

/// A part of a record's ranges, as phases with the places of their ranges; nothing meets none.
#[derive(Default)]
struct Cut {
    /// Phases with a range in the part.
    phases: u64,
    /// Words of places of all of these phases together.
    all: Vec<u64>,
    /// Those of each, one after the other.
    each: Vec<u64>,
    words: usize,
}

impl Cut {
    /// Cuts out the ranges from a first to a last one, if there are any; each lies at its place.
    fn set(&mut self, phased: &Phased, places: &[usize], ranges: Option<(usize, usize)>, words: usize) {
        (self.phases, self.words) = (0, words);
        self.all.clear();
        self.each.clear();
        let Some((first, last)) = ranges.filter(|(first, last)| first <= last) else { return };
        let phase = |range: usize| phased.events.partition_point(|&event| event as usize <= range);
        let (from, to) = (phase(first), phase(last));
        self.phases = (from..=to).fold(0u64, |all, phase| all | 1 << (phase & 63));
        self.all.resize(words, 0);
        self.each.resize((to - from + 1) * words, 0);
        for (range, &place) in (first..=last).zip(&places[first..]) {
            let (word, bit) = (place / 64, 1 << (place % 64));
            self.all[word] |= bit;
            self.each[(phase(range) - from) * words + word] |= bit;
        }
    }

    /// Whether a source with these phases, active in `set`, links in this part.
    #[inline]
    fn meets(&self, mask: u64, set: Option<&[u64]>) -> bool {
        let there = mask & self.phases;
        if there == 0 {
            return false;
        }
        let Some(set) = set else { return true };
        let active = |bits: &[u64]| bits.iter().zip(set).fold(0, |met, (bits, set)| met | bits & set) != 0;
        if there == self.phases {
            return active(&self.all);
        }
        let from = self.phases.trailing_zeros();
        let mut rest = there;
        while rest != 0 {
            if active(&self.each[(rest.trailing_zeros() - from) as usize * self.words..][..self.words]) {
                return true;
            }
            rest &= rest - 1;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell_bench::Random;
    use std::convert::Infallible;

    const FIRST: u64 = 50;
    const NODES: usize = 300;

    /// In-links of half the nodes, from nodes here and elsewhere, over up to 90 ranges.
    fn records() -> Vec<InLinks> {
        let mut random = Random::new(9);
        let mut all = Vec::new();
        for node in (0..NODES as u64).step_by(2) {
            let count = 1 + random.below(90);
            let ranges: Vec<i64> =
                (0..count).map(|range| 86_400 * i64::try_from(range * 3 + node % 3).unwrap()).collect();
            let mut sources: Vec<u64> = (0..1 + random.below(15)).map(|_| random.below(500)).collect();
            sources.sort_unstable();
            sources.dedup();
            let mut changes = Vec::new();
            // The first source is in all ranges, so none is empty.
            for link in (0u32..).take(sources.len()).skip(1) {
                let from = u32::try_from(random.below(count)).unwrap();
                if from > 0 {
                    changes.push(Change { link, capture: 0 });
                    changes.push(Change { link, capture: from });
                }
                if u64::from(from) + 1 < count && random.below(2) == 0 {
                    changes.push(Change { link, capture: from + 1 });
                }
            }
            let record = InLinks { uid: FIRST + node, ranges, sources, changes };
            assert_eq!(record.flaw(), None, "{record:?}");
            all.push(record);
        }
        all
    }

    fn encoded(records: &[InLinks]) -> Vec<u8> {
        let again =
            || -> Box<dyn Iterator<Item = Result<InLinks, Infallible>>> { Box::new(records.iter().cloned().map(Ok)) };
        match encode(FIRST, (NODES, records.len()), &again, Profile::ARCHIVE) {
            Ok(bytes) => bytes,
            Err(never) => match never {},
        }
    }

    #[test]
    fn records_come_back_and_sources_by_range_are_theirs() {
        let records = records();
        let backward = Backward::open(Bytes::from(encoded(&records)), FIRST, NODES).unwrap();
        let mut room = Room::default();
        for record in &records {
            let node = usize::try_from(record.uid - FIRST).unwrap();
            assert_eq!(backward.record(node).unwrap().as_ref(), Some(record));
            let last = record.ranges.len() - 1;
            for (from, to) in [(0, last), (0, 0), (last / 2, last), (last / 3, last / 2)] {
                let mut found = Vec::new();
                let wanted = |_: &[i64]| Some(Wanted { ranges: (from, to), inner: Some((from, to)) });
                backward.sources(node, &mut room, wanted, &mut |source, _| found.push(source)).unwrap();
                let bound = |at: usize| u32::try_from(at).unwrap();
                let present = presence::in_any(&record.changes, record.sources.len(), bound(from), bound(to));
                let expected: Vec<u64> = present.into_iter().map(|at| record.sources[at as usize]).collect();
                assert_eq!(found, expected, "{from} to {to} of {record:?}");
            }
        }
        assert_eq!(backward.record(1).unwrap(), None);
    }

    #[test]
    fn damaged_bytes_give_errors_or_other_answers() {
        let whole = encoded(&records());
        let (mut random, mut room) = (Random::new(3), Room::default());
        for _ in 0..2000 {
            let mut bytes = whole.clone();
            for _ in 0..=random.below(3) {
                // Heads, tables and sets most often.
                let end = if random.below(2) == 0 { 1000 } else { bytes.len() as u64 };
                let at = usize::try_from(random.below(end)).unwrap();
                bytes[at] ^= 1 << random.below(8);
            }
            let Ok(backward) = Backward::open(Bytes::from(bytes), FIRST, NODES) else { continue };
            for node in (0..NODES).step_by(6) {
                let _ = backward.record(node);
                let half = |ranges: &[i64]| Some(Wanted { ranges: (0, ranges.len() / 2), inner: None });
                let _ = backward.sources(node, &mut room, half, &mut |_, _| {});
            }
        }
    }
}
