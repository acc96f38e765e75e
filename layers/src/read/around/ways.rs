//! The shortest ways (paths of links) from one page to another as of a date.
//!
//! ```text
//! from ->  pages one link on, two links on ... --> they meet <-- pages one link back, two links back ... <- to
//! ```
//!
//! The search continues from the end with fewer pages in its last step, one step at a time ([`Search::asks`]). The
//! caller, which asks a store or servers, supplies the links. A page with unknown links may link to any other page. If
//! no way is found, there may therefore be a way over each such page that is reached from the first page
//! ([`Ways::unknown`]). If the store has unknown links, the search then continues from the first page to find all these
//! pages. Memory: the reached pages, bounded by [`PAGES_MAX`]. Cost: the links of all these pages. Without a way, also
//! the links of [`DOUBTED_MAX`] pages.

use std::collections::HashMap;

use crate::error::Error;
use crate::read::query::{Direction, Links, Precision};
use crate::read::spellings::in_order;
use crate::record::time::{AsOf, Window};
use crate::record::uid::Uid;

/// The search is cut off when both ends have reached more than this number of pages.
pub const PAGES_MAX: usize = 1 << 18;
/// The most pages that are reached from the first page to find pages with unknown links.
pub const DOUBTED_MAX: usize = 1 << 14;
/// The most links of a way, unless the question sets a number. [`LINKS_MAX`] is the greatest number that it may set.
pub const LINKS: u8 = 6;
/// See [`LINKS`].
pub const LINKS_MAX: u8 = 20;
/// The most ways of an answer, unless the question sets a number.
pub const WAYS: u64 = 10;
/// The most ways of one answer.
pub const WAYS_MAX: u64 = 1000;

/// The ways between two pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ways {
    /// The shortest ways, each with both ends, in order of UIDs, up to the number in the question. Empty if there is no
    /// way.
    pub ways: Vec<Vec<Uid>>,
    /// The number of links of a shortest way; `None` if no way was found.
    pub links: Option<usize>,
    /// Whether the search ended at a bound, so that there may be a longer way.
    pub is_cut: bool,
    /// If no way was found, the pages over which there may be one, rising: pages that were reached from the first page
    /// and have unknown links as of the time.
    pub unknown: Vec<Uid>,
}

/// The pages that were reached from one end.
#[derive(Debug)]
struct End {
    /// For each page, its distance in links, and the pages one link nearer to the end.
    reached: HashMap<Uid, (usize, Vec<Uid>)>,
    /// The pages that are farthest away.
    edge: Vec<Uid>,
    depth: usize,
}

impl End {
    fn of(page: Uid) -> Self {
        Self { reached: HashMap::from([(page, (0, Vec::new()))]), edge: vec![page], depth: 0 }
    }

    fn step<'a>(&mut self, links: impl Iterator<Item = &'a [Uid]>) {
        self.depth += 1;
        let mut edge = Vec::new();
        for (page, links) in std::mem::take(&mut self.edge).into_iter().zip(links) {
            for &link in links {
                let (depth, nearer) = self.reached.entry(link).or_insert_with(|| {
                    edge.push(link);
                    (self.depth, Vec::new())
                });
                if *depth == self.depth {
                    nearer.push(page);
                }
            }
        }
        edge.sort_unstable();
        self.edge = edge;
    }

    /// For each way from `page` to the end, the pages on the way without `page` itself. At most `count` ways.
    fn ways_home(&self, page: Uid, count: usize) -> Vec<Vec<Uid>> {
        let mut ways = Vec::new();
        let mut open = vec![(page, Vec::new())];
        while let Some((page, way)) = open.pop() {
            let nearer = self.reached.get(&page).map_or(&[][..], |(_, nearer)| nearer);
            if nearer.is_empty() {
                ways.push(way);
                if ways.len() == count {
                    break;
                }
                continue;
            }
            for &next in nearer.iter().rev() {
                let mut way = way.clone();
                way.push(next);
                open.push((next, way));
            }
        }
        ways
    }
}

/// A search from both ends.
#[derive(Debug)]
pub struct Search {
    ends: [End; 2],
    links_max: usize,
    is_backward: bool,
    is_cut: bool,
    /// Whether the store has unknown links.
    has_unknown: bool,
    /// Whether there is no way, and the search continues for pages with unknown links.
    is_doubting: bool,
}

impl Search {
    /// Begins a search for ways of at most `links_max` links. `has_unknown` says whether the store has unknown links.
    pub fn new(from: Uid, to: Uid, links_max: usize, has_unknown: bool) -> Self {
        let ends = [End::of(from), End::of(to)];
        Self { ends, links_max, is_backward: false, is_cut: false, has_unknown, is_doubting: false }
    }

    /// The pages from which the search continues, and whether it needs their in-links. `None` at the end of the search.
    pub fn asks(&mut self) -> Option<(&[Uid], bool)> {
        if !self.is_doubting {
            if self.goes_on() {
                let [ahead, behind] = &self.ends;
                self.is_backward = behind.edge.len() < ahead.edge.len();
                return Some((&self.ends[usize::from(self.is_backward)].edge, self.is_backward));
            }
            self.is_doubting = self.has_unknown && self.met().is_empty();
        }
        let ahead = &self.ends[0];
        if !self.is_doubting || ahead.edge.is_empty() || ahead.depth + 1 >= self.links_max {
            return None;
        }
        if ahead.reached.len() > DOUBTED_MAX {
            self.is_cut = true;
            return None;
        }
        self.is_backward = false;
        Some((&self.ends[0].edge, false))
    }

    /// Whether there may be a way that is not found yet.
    fn goes_on(&mut self) -> bool {
        let [ahead, behind] = &self.ends;
        let is_bounded =
            ahead.depth + behind.depth >= self.links_max || ahead.reached.len().min(behind.reached.len()) > PAGES_MAX;
        let has_ended = self.is_cut || ahead.edge.is_empty() || behind.edge.is_empty() || !self.met().is_empty();
        self.is_cut |= is_bounded && !has_ended;
        !has_ended && !is_bounded
    }

    /// Adds the links of the pages from [`Search::asks`], in the order of these pages.
    pub fn add<'a>(&mut self, links: impl Iterator<Item = &'a [Uid]>) {
        self.ends[usize::from(self.is_backward)].step(links);
    }

    /// Ends the search because links are not available.
    pub fn cut(&mut self) {
        self.is_cut = true;
    }

    /// The pages of the last step that the other end reaches, too.
    fn met(&self) -> Vec<Uid> {
        if self.is_doubting {
            return Vec::new();
        }
        let [ahead, behind] = &self.ends;
        let (edge, other) = if self.is_backward { (&behind.edge, ahead) } else { (&ahead.edge, behind) };
        edge.iter().copied().filter(|page| other.reached.contains_key(page)).collect()
    }

    /// The pages that were reached from the first page, if no way was found. The caller finds out for which of them the
    /// links are unknown ([`Links::unknown`]).
    pub fn doubts(&self) -> Vec<Uid> {
        let is_asked = self.has_unknown && self.met().is_empty();
        let reached = self.ends[0].reached.iter().filter(|(_, (depth, _))| is_asked && *depth < self.links_max);
        in_order(reached.map(|(&page, _)| page).collect())
    }

    /// The ways that were found, at most `count`.
    pub fn ways(&self, count: usize) -> Ways {
        let [ahead, behind] = &self.ends;
        let mut ways = Vec::new();
        let met = self.met();
        for &page in &met {
            let rests = behind.ways_home(page, count);
            for start in ahead.ways_home(page, count) {
                let way = |rest: &Vec<Uid>| start.iter().rev().chain([&page]).chain(rest).copied().collect::<Vec<_>>();
                ways.extend(rests.iter().map(way).take(count - ways.len()));
            }
        }
        ways.sort_unstable();
        let links = (!met.is_empty()).then(|| ahead.depth + behind.depth);
        Ways { ways, links, is_cut: self.is_cut, unknown: Vec::new() }
    }
}

/// The shortest ways from one page to another as of a time, at most `count`, of at most `links_max` links.
///
/// # Errors
/// See [`crate::Links::url`].
pub fn ways(
    links: &dyn Links,
    (from, to): (Uid, Uid),
    as_of: AsOf,
    links_max: usize,
    count: usize,
) -> Result<Ways, Error> {
    let mut search = Search::new(from, to, links_max, links.has_unknown());
    while let Some((pages, is_backward)) = search.asks() {
        let direction = if is_backward { Direction::In(Precision::Exact) } else { Direction::Out };
        let lists = pages.iter().map(|&page| links.links(page, direction, Window::AsOf(as_of)));
        let lists = lists.collect::<Result<Vec<_>, _>>()?;
        search.add(lists.iter().map(Vec::as_slice));
    }
    let mut unknown = Vec::new();
    for page in search.doubts() {
        unknown.extend(links.unknown(page, Direction::Out, as_of)?);
    }
    Ok(Ways { unknown: in_order(unknown), ..search.ways(count) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    type Graph = BTreeMap<u64, BTreeSet<u64>>;

    fn searched(graph: &Graph, from: u64, to: u64, links_max: usize) -> Ways {
        search(graph, Search::new(Uid(from), Uid(to), links_max, false)).ways(1000)
    }

    /// Runs the search to its end.
    fn search(graph: &Graph, mut search: Search) -> Search {
        while let Some((pages, is_backward)) = search.asks() {
            let list = |page: &Uid| -> Vec<Uid> {
                let ahead = || graph.get(&page.0).into_iter().flatten().copied();
                let behind = || graph.iter().filter(|(_, links)| links.contains(&page.0)).map(|(page, _)| *page);
                if is_backward { behind().map(Uid).collect() } else { ahead().map(Uid).collect() }
            };
            let lists: Vec<Vec<Uid>> = pages.iter().map(list).collect();
            search.add(lists.iter().map(Vec::as_slice));
        }
        search
    }

    /// All ways of exactly `links` links, by brute force.
    fn tried(graph: &Graph, from: u64, to: u64, links: usize) -> Vec<Vec<Uid>> {
        let mut ways = vec![vec![from]];
        for _ in 0..links {
            let on = |way: Vec<u64>| {
                let next = graph.get(way.last().unwrap_or(&0)).into_iter().flatten();
                next.map(|next| [&way[..], &[*next]].concat()).collect::<Vec<_>>()
            };
            ways = ways.into_iter().flat_map(on).collect();
        }
        ways.retain(|way| way.last() == Some(&to));
        ways.into_iter().map(|way| way.into_iter().map(Uid).collect()).collect()
    }

    proptest! {
        #[test]
        fn ways_are_the_shortest_ones(
            edges in proptest::collection::btree_set((0..8_u64, 0..8_u64), 0..20), from in 0..8_u64, to in 0..8_u64,
        ) {
            let mut graph = Graph::new();
            edges.into_iter().for_each(|(source, target)| { graph.entry(source).or_default().insert(target); });
            let found = searched(&graph, from, to, 6);
            let expected = (0..=6).map(|links| tried(&graph, from, to, links)).find(|ways| !ways.is_empty());
            let links = expected.as_ref().map(|ways| ways[0].len() - 1);
            prop_assert_eq!(&found.ways, &expected.unwrap_or_default());
            prop_assert_eq!(found.links, links);
        }
    }

    #[test]
    fn a_search_ends_at_its_bound_and_says_so() {
        let chain: Graph = (0..9).map(|page| (page, BTreeSet::from([page + 1]))).collect();
        assert_eq!(searched(&chain, 0, 9, 9).links, Some(9));
        let cut = searched(&chain, 0, 9, 8);
        assert_eq!((cut.ways.len(), cut.links, cut.is_cut), (0, None, true));
        let none = searched(&chain, 9, 0, 8);
        assert_eq!((none.links, none.is_cut), (None, false));
        assert_eq!(searched(&chain, 3, 3, 8).ways, [[Uid(3)]]);
    }

    proptest! {
        /// An unknown way goes over a page that the first page leads to. It does not matter what leads to the last
        /// page.
        #[test]
        fn without_a_way_the_doubts_are_the_pages_that_the_first_one_leads_to(
            edges in proptest::collection::btree_set((0..8_u64, 0..8_u64), 0..20), from in 0..8_u64, to in 0..8_u64,
            links_max in 1..7_usize,
        ) {
            let mut graph = Graph::new();
            edges.into_iter().for_each(|(source, target)| { graph.entry(source).or_default().insert(target); });
            let found = search(&graph, Search::new(Uid(from), Uid(to), links_max, true));
            let known = searched(&graph, from, to, links_max);
            prop_assert_eq!(&found.ways(1000).ways, &known.ways);
            let mut reached = BTreeSet::from([from]);
            for _ in 1..links_max {
                reached.extend(reached.clone().iter().flat_map(|page| graph.get(page).cloned().unwrap_or_default()));
            }
            let expected = if known.links.is_some() { BTreeSet::new() } else { reached };
            prop_assert_eq!(found.doubts(), expected.into_iter().map(Uid).collect::<Vec<_>>());
        }
    }
}
