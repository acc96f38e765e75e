//! The in-links of a cell: strata of sources by time range, without the changes that all links of a source share.
//!
//! A source without a capture in a range has no links in that range. For each source in this cell, the ranges in which
//! the source links to any URL of the cell are therefore stored once (`activity`). In all other ranges, the presence of
//! a link may keep its previous value, so most changes vanish. A source has a link in a range if the phase of the link
//! says so and the source is active in the range. Answers equal the answers of the layers, and no source is looked up
//! for them.
//!
//! ```text
//! lengths     number of starts in the table, number of sets, bits of a set number, length of ranks in bytes, number of
//!             active sources, length of table and sets in bytes (64 bits each)
//! table       all starts of ranges, rising: the first, and the differences of the others (each: 6 bits for its width
//!             less 1, and its bits); or empty
//! sets        unless the table is empty, the codes of two kinds of runs ([`crate::coding::number_codes`], with `D` =
//!             4), and the distinct sets of ranges: runs of places in the table that are not in the set, and that are,
//!             in turn; the first may be empty; zeros up to a byte
//! ranks       which nodes are active sources
//! numbers     the set of each active source, packed
//! strata      the records
//! ```

mod activity;

use std::ops::Range;

use bytes::Bytes;
use webstrata_layers::record::presence;
use webstrata_layers::{Change, InLinks, Page};

use crate::coding::bits::BitReader;
use crate::coding::sections::Sections;
use crate::error::Damage;
use crate::links::codec::LinkCodec;
use crate::links::lists::Sizes;
use crate::links::scratch::{StoreScratch, bytes_of};
use crate::links::strata::ranks::{self, Nodes};
use crate::links::strata::{Numbering, Phased, Profile, Strata, StrataBuffers, encode_numbered};
use crate::mapped::guard::Section;
use crate::numbers::{Node, Number};

use activity::Activity;

const PART: &str = "backward store";
/// Words of lengths before the parts.
const HEAD_WORDS: usize = 6;
/// The largest size in memory of the sets of ranges of all nodes, in bytes.
pub(crate) const SETS_BYTES_MAX: usize = 128 << 20;

/// Encodes the in-links of `count` of the `nodes` nodes of a cell. The UIDs of the records are rising numbers from
/// `first` on, below `first + nodes`.
///
/// # Errors
/// The errors of the iterators that `records` returns. `records` is called more than once.
pub fn encode<'a, E: 'a>(
    first: Number,
    (nodes, count): (usize, usize),
    records: &dyn Fn() -> Box<dyn Iterator<Item = Result<InLinks<Number>, E>> + 'a>,
    profile: Profile,
) -> Result<Vec<u8>, E> {
    encode_within(SETS_BYTES_MAX, first, (nodes, count), records, profile)
}

fn encode_within<'a, E: 'a>(
    sets_bytes_max: usize,
    first: Number,
    (nodes, count): (usize, usize),
    records: &dyn Fn() -> Box<dyn Iterator<Item = Result<InLinks<Number>, E>> + 'a>,
    profile: Profile,
) -> Result<Vec<u8>, E> {
    let activity = Activity::of(first, nodes, records, sets_bytes_max)?;
    let (mut out, ranks) = activity.store();
    let ranking = Ranking { first, nodes: nodes as u64, active: ranks::count(&ranks) as u64 };
    let pages = || -> Box<dyn Iterator<Item = Result<Page<u64>, E>> + '_> {
        Box::new(records().map(|record| {
            let Page { uid, timestamps, blank, links, changes, statuses } = activity.loosen(record?);
            let links = links.into_iter().map(|source| ranking.rank(source, &ranks).0).collect();
            Ok(Page { uid: uid.0, timestamps, blank, links, changes, statuses })
        }))
    };
    let numbering = ranking.numbering(ranks.clone().into());
    let strata = encode_numbered(first.0, (nodes, count), &pages, &numbering, profile)?;
    out.extend(strata);
    Ok(out)
}

/// The number of a source among sources, as the strata store it. The active sources of this cell are numbered by their
/// place among the active sources, from `first` on. Sources in other cells keep their order around them. Gaps therefore
/// count sources, and not all URLs, of which few are pages.
#[derive(Clone, Copy)]
struct Rank(u64);

/// The conversion between the numbers of a cell and the ranks of its sources.
#[derive(Clone, Copy)]
struct Ranking {
    first: Number,
    nodes: u64,
    active: u64,
}

impl Ranking {
    /// The ranks as strata take them.
    fn numbering(self, ranks: Bytes) -> Numbering {
        Numbering { first: self.first.0, ranks: Some(ranks), shift: 0 }
    }

    /// The rank that a node has, or would have if it were an active source.
    fn of_node(self, node: usize, ranks: &[u8]) -> Rank {
        Rank(self.first.0 + ranks::rank(ranks, node).map_or(0, |(before, _)| before) as u64)
    }

    /// The rank of a source.
    fn rank(self, Number(source): Number, ranks: &[u8]) -> Rank {
        match source.checked_sub(self.first.0) {
            None => Rank(source),
            Some(node) if node < self.nodes => self.of_node(usize::try_from(node).unwrap_or(usize::MAX), ranks),
            Some(_) => Rank(source - self.nodes + self.active),
        }
    }

    /// The index of a source among the active sources of the cell; `None` for a source in another cell.
    #[inline]
    fn active_index(self, Rank(rank): Rank) -> Option<usize> {
        let active_index = rank.checked_sub(self.first.0)?;
        if active_index < self.active { usize::try_from(active_index).ok() } else { None }
    }

    /// The source of a rank.
    #[inline]
    fn source(self, Rank(rank): Rank, nodes: &mut Nodes<'_>) -> Number {
        match rank.checked_sub(self.first.0) {
            None => Number(rank),
            Some(active_index) if active_index < self.active => {
                let node =
                    usize::try_from(active_index).ok().and_then(|active_index| nodes.node(active_index)).unwrap_or(0);
                Number(self.first.0 + node as u64)
            }
            Some(_) => Number(rank.wrapping_sub(self.active).wrapping_add(self.nodes)),
        }
    }
}

/// The in-links of a cell, ready to answer.
pub struct Backward {
    ranking: Ranking,
    table: Vec<i64>,
    words: usize,
    sets: Vec<u64>,
    /// The bytes of table and sets, as they are stored.
    stored: usize,
    width: u32,
    ranks: Bytes,
    numbers: Bytes,
    strata: Strata,
}

/// The ranges that a question asks for, and the ranges that lie wholly in its window, each as first and last index.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// All wanted ranges.
    pub ranges: (usize, usize),
    /// The ranges whose sources need no further check.
    pub inner: Option<(usize, usize)>,
}

impl Wanted {
    /// The first and the last wanted range, each only if it is not an inner range, and whether any other wanted range
    /// is not an inner range.
    pub fn edges(self) -> ([Option<usize>; 2], bool) {
        let ((first, last), inner) = (self.ranges, self.inner.filter(|(first, last)| first <= last));
        let edge = |range: usize| inner.is_none_or(|(from, to)| range < from || range > to).then_some(range);
        let middle = inner.map_or(last - first > 1, |(from, to)| from > first + 1 || to + 1 < last);
        ([edge(first), edge(last)], middle)
    }
}

/// In which wanted ranges a source links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The source links in an inner range.
    Inner,
    /// The source links in no inner range. It links in the first wanted range, in the last, or in both. If more than
    /// these two ranges are not inner, both flags are set for a link in any wanted range.
    Edges([bool; 2]),
    /// The store has no times: the source may link in any range, or in none.
    Perhaps,
}

/// Buffers for one answer, reused from answer to answer.
#[derive(Default)]
pub(crate) struct AnswerBuffers {
    phased: Phased,
    table_indexes: Vec<usize>,
    inner: Cut,
    edges: [Cut; 2],
}

impl AnswerBuffers {
    /// The bytes of memory that the longest lists take.
    pub(crate) fn bytes(&self) -> usize {
        self.phased.bytes() + bytes_of(&self.table_indexes)
    }
}

impl Backward {
    /// Opens the bytes that [`encode`] wrote for a cell of `nodes` nodes from number `first` on.
    ///
    /// # Errors
    /// Bytes whose parts do not fit together.
    pub fn open(bytes: Bytes, first: Number, nodes: usize) -> Result<Self, Damage> {
        Self::open_section(&bytes.into(), first, nodes)
    }

    /// Opens a section of an image: see [`Self::open`].
    pub(crate) fn open_section(section: &Section, first: Number, nodes: usize) -> Result<Self, Damage> {
        let mut sections = Sections::new(section.bytes().clone(), PART);
        let (ranges, sets) = (sections.length()?, sections.length()?);
        let (width, ranks) = (sections.word_within(64)?, sections.length()?);
        // A source is a node. Its set number takes no bits if all sources have one set, so the length of the bytes
        // gives no bound.
        let sources = sections.word_within(nodes as u64)?;
        let stored = sections.length()?;
        let (table, sets) = activity::load_sets(&sections.take(stored, 1)?, ranges, sets)?;
        let ranks = section.resident(sections.take(ranks, 1)?);
        let packed = sources.checked_mul(width).and_then(|bits| usize::try_from(bits.div_ceil(8)).ok());
        let numbers = section.resident(sections.take(packed.ok_or(Damage::Ends { part: PART })?, 1)?);
        let strata = section.starting_at(section.bytes().len() - sections.rest().len());
        let words = table.len().div_ceil(64);
        if !table.is_sorted_by(|a, b| a < b) {
            return Err(Damage::Outside { part: PART, value: sets.len() as u64, bound: words as u64 });
        }
        ranks::check(&ranks, nodes, usize::try_from(sources).unwrap_or(usize::MAX))?;
        let ranking = Ranking { first, nodes: nodes as u64, active: sources };
        let strata = Strata::open_section(&strata, Some(ranking.numbering(ranks.clone())))?;
        let width = u32::try_from(width).unwrap_or(64);
        Ok(Self { ranking, table, words, sets, stored, width, ranks, numbers, strata })
    }

    /// The size of the parts in bytes. The data that sources share counts as tables.
    pub fn sizes(&self) -> Sizes {
        let Sizes { data, index, tables } = self.strata.sizes();
        Sizes {
            data,
            index,
            tables: tables + (8 * HEAD_WORDS + self.stored + self.ranks.len() + self.numbers.len()) as u64,
        }
    }

    /// The set of ranges in which a source links to any URL of the cell. `None` for a source in another cell, and if
    /// there are no sets.
    #[inline]
    fn set_of(&self, rank: Rank) -> Option<&[u64]> {
        let active_index = self.ranking.active_index(rank).filter(|_| self.words > 0)?;
        let set = BitReader::new(&self.numbers, active_index as u64 * u64::from(self.width)).read_wide(self.width);
        self.sets.get(usize::try_from(set).ok()?.checked_mul(self.words)?..)?.get(..self.words)
    }

    /// Calls `visit` with each source of a node that links in the selected ranges, in rising order, and with the ranges
    /// in which the source links. `select_ranges` gets the list of ranges of the node and selects some of them (`None`:
    /// no ranges).
    ///
    /// # Errors
    /// A node outside the cell, and damaged bytes.
    pub(crate) fn sources(
        &self,
        node: Node,
        (strata, answer): (&mut StrataBuffers, &mut AnswerBuffers),
        select_ranges: impl FnOnce(&[i64]) -> Option<Wanted>,
        visit: &mut dyn FnMut(Number, Found),
    ) -> Result<(), Damage> {
        let AnswerBuffers { phased, table_indexes, inner, edges } = answer;
        let by_masks = self.strata.phased(node.0, strata, phased)?;
        let Some(selected) = select_ranges(&phased.times) else { return Ok(()) };
        let (count, last) = (phased.times.len(), selected.ranges.1);
        if last >= count || selected.ranges.0 > last {
            return Err(Damage::Outside { part: PART, value: last as u64, bound: count as u64 });
        }
        let mut nodes = Nodes::new(&self.ranks);
        if selected.inner == Some((0, count - 1)) {
            phased.links.iter().for_each(|&rank| visit(self.ranking.source(Rank(rank), &mut nodes), Found::Inner));
            return Ok(());
        }
        if !by_masks {
            return self.sources_slowly(node, selected, visit);
        }
        table_indexes.clear();
        table_indexes.extend(phased.times.iter().map(|start| self.table.binary_search(start).unwrap_or(0)));
        let cut = |cut: &mut Cut, ranges| cut.set(phased, table_indexes, ranges, self.words);
        cut(inner, selected.inner);
        let (edge_ranges, middle) = selected.edges();
        let ranges = if middle {
            [Some(selected.ranges), None]
        } else {
            edge_ranges.map(|edge| edge.map(|range| (range, range)))
        };
        edges.iter_mut().zip(ranges).for_each(|(edge, ranges)| cut(edge, ranges));
        for (&rank, &mask) in phased.links.iter().zip(&phased.masks) {
            let set = self.set_of(Rank(rank));
            let found = if inner.links_in(mask, set) {
                Found::Inner
            } else {
                let [first, last] = [edges[0].links_in(mask, set), edges[1].links_in(mask, set)];
                if !first && !last {
                    continue;
                }
                Found::Edges(if middle { [true; 2] } else { [first, last] })
            };
            visit(self.ranking.source(Rank(rank), &mut nodes), found);
        }
        Ok(())
    }

    /// Calls `visit` with each source that links to a node in any range, in rising order. Memory: eight bytes a source;
    /// presence is not decoded.
    pub(crate) fn each_source(
        &self,
        node: Node,
        scratch: &mut StoreScratch,
        ranks: &mut Vec<u64>,
        visit: &mut dyn FnMut(Number),
    ) -> Result<(), Damage> {
        self.strata.list(node.0, scratch, ranks)?;
        let mut nodes = Nodes::new(&self.ranks);
        ranks.iter().for_each(|&rank| visit(self.ranking.source(Rank(rank), &mut nodes)));
        Ok(())
    }

    /// Calls `visit` with each source that links to one of these nodes in any range, at least once. Memory: a bit for
    /// each active source, if there is a node for each 64 of them.
    pub(crate) fn each_source_of(
        &self,
        nodes: Range<Node>,
        scratch: &mut StoreScratch,
        visit: &mut dyn FnMut(Number),
    ) -> Result<(), Damage> {
        let mut pages = Nodes::new(&self.ranks);
        // A site links to itself most: its pages are the sources of many nodes.
        let words = usize::try_from(self.ranking.active.div_ceil(64)).unwrap_or(usize::MAX);
        let mut visited = vec![0u64; if words <= nodes.end.0.saturating_sub(nodes.start.0) { words } else { 0 }];
        let mut visit = |rank: u64| {
            let active_index = self.ranking.active_index(Rank(rank));
            if let Some((at, word)) = active_index.and_then(|at| Some((at, visited.get_mut(at / 64)?))) {
                if *word >> (at % 64) & 1 == 1 {
                    return;
                }
                *word |= 1 << (at % 64);
            }
            visit(self.ranking.source(Rank(rank), &mut pages));
        };
        scratch.near.each_link(&self.strata, nodes.start.0..nodes.end.0, &mut visit)
    }

    fn sources_slowly(&self, node: Node, selected: Wanted, visit: &mut dyn FnMut(Number, Found)) -> Result<(), Damage> {
        let Some(record) = self.record(node)? else { return Ok(()) };
        let links_in = |link_changes: &[Change], (first, last): (usize, usize)| {
            let bound = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
            presence::any_in(link_changes, bound(first), bound(last))
        };
        let (edges, middle) = selected.edges();
        let mut changes = presence::by_link(&record.changes).peekable();
        for (at, &source) in (0u32..).zip(&record.sources) {
            let link_changes =
                changes.next_if(|(link, _)| *link == at).map_or(&[][..], |(_, link_changes)| link_changes);
            if selected.inner.is_some_and(|inner| inner.0 <= inner.1 && links_in(link_changes, inner)) {
                visit(source, Found::Inner);
            } else if links_in(link_changes, selected.ranges) {
                let edge =
                    |edge: Option<usize>| middle || edge.is_some_and(|range| links_in(link_changes, (range, range)));
                visit(source, Found::Edges(edges.map(edge)));
            }
        }
        Ok(())
    }

    /// The record of a node as in the layers; `None` if nothing links to the node.
    ///
    /// # Errors
    /// See `Self::sources`.
    pub fn record(&self, node: Node) -> Result<Option<InLinks<Number>>, Damage> {
        let Some(page) = self.strata.page(node.0)? else { return Ok(None) };
        let table_indexes: Vec<usize> =
            page.timestamps.iter().map(|start| self.table.binary_search(start).unwrap_or(0)).collect();
        let count = u32::try_from(table_indexes.len()).unwrap_or(u32::MAX);
        let mut changes = Vec::new();
        let mut loose_changes = presence::by_link(&page.changes).peekable();
        for (link, &rank) in (0u32..).zip(&page.links) {
            let link_changes =
                loose_changes.next_if(|(at, _)| *at == link).map_or(&[][..], |(_, link_changes)| link_changes);
            let Some(set) = self.set_of(Rank(rank)) else {
                changes.extend_from_slice(link_changes);
                continue;
            };
            let mut stretches = presence::intervals(link_changes, count).into_iter().peekable();
            let mut before = true;
            for (range, &table_index) in (0u32..).zip(&table_indexes) {
                while stretches.next_if(|&(_, to)| to < range).is_some() {}
                let is_present = stretches.peek().is_some_and(|&(from, _)| from <= range);
                let now = is_present && set[table_index / 64] >> (table_index % 64) & 1 == 1;
                if now != before {
                    changes.push(Change { link, capture: range });
                }
                before = now;
            }
        }
        let mut nodes = Nodes::new(&self.ranks);
        let sources = page.links.iter().map(|&rank| self.ranking.source(Rank(rank), &mut nodes)).collect();
        Ok(Some(InLinks { uid: Number(page.uid), ranges: page.timestamps, sources, changes }))
    }
}

/// An interval of a record's ranges, as phases with the table indexes of their ranges. No source links in an empty
/// interval.
#[derive(Default)]
struct Cut {
    /// The phases with a range in the interval, one bit a phase.
    phases: u64,
    /// The bits of the table indexes of all these phases together, in words.
    all: Vec<u64>,
    /// The bits of the table indexes of each phase, one phase after the other.
    each: Vec<u64>,
    words: usize,
}

impl Cut {
    /// Sets the interval to the ranges from a first to a last one, or to the empty interval. `table_indexes` has the
    /// index in the table of each range.
    fn set(&mut self, phased: &Phased, table_indexes: &[usize], ranges: Option<(usize, usize)>, words: usize) {
        (self.phases, self.words) = (0, words);
        self.all.clear();
        self.each.clear();
        let Some((first, last)) = ranges.filter(|(first, last)| first <= last) else { return };
        let phase = |range: usize| phased.events.partition_point(|&event| event as usize <= range);
        let (from, to) = (phase(first), phase(last));
        self.phases = (from..=to).fold(0u64, |all, phase| all | 1 << (phase & 63));
        if words == 0 {
            return;
        }
        self.all.resize(words, 0);
        self.each.resize((to - from + 1) * words, 0);
        for (range, &table_index) in (first..=last).zip(&table_indexes[first..]) {
            let (word, bit) = (table_index / 64, 1 << (table_index % 64));
            self.all[word] |= bit;
            self.each[(phase(range) - from) * words + word] |= bit;
        }
    }

    /// Whether a source with the phases of `mask`, active in `set`, links in this interval.
    #[inline]
    fn links_in(&self, mask: u64, set: Option<&[u64]>) -> bool {
        let shared_phases = mask & self.phases;
        if shared_phases == 0 {
            return false;
        }
        let Some(set) = set else { return true };
        let active = |bits: &[u64]| bits.iter().zip(set).fold(0, |met, (bits, set)| met | bits & set) != 0;
        if shared_phases == self.phases {
            return active(&self.all);
        }
        let from = self.phases.trailing_zeros();
        let mut rest = shared_phases;
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
mod tests;
