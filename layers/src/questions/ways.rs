//! The shortest ways (paths of links) from one page to another as of a date.
//!
//! ```text
//! from ->  pages one link on, two links on ... --> they meet <-- pages one link back, two links back ... <- to
//! ```
//!
//! The search continues from the end with fewer pages in its last step, one step at a time. A page with unknown links
//! may link to any other page. If no way is found, there may therefore be a way over each such page that is reached
//! from the first page ([`Ways::unknown`]). If the store has unknown links, the search then continues from the first
//! page to find all these pages. Memory: the reached pages, bounded by [`PAGES_MAX`]. Cost: the links of all these
//! pages. Without a way, also the links of [`DOUBTED_MAX`] pages.

use std::collections::HashMap;

use super::unknown::Unknown;
use super::{Ask, Direction, Facts, Given, Precision, Program, Question, Rest};
use crate::record::batch::Batch;
use crate::record::time::{AsOf, Window};
use crate::record::uid::{Uid, in_order};

/// The search is cut off when both ends have reached more than this number of pages.
const PAGES_MAX: usize = 1 << 18;
/// The most pages that are reached from the first page to find pages with unknown links.
const DOUBTED_MAX: usize = 1 << 14;

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
    /// The pages that are farthest away. While their links come, the pages without links yet.
    edge: Rest,
    /// The pages that the links of the edge reached.
    next: Vec<Uid>,
    depth: usize,
}

impl End {
    fn of(page: Uid) -> Self {
        let (reached, edge) = (HashMap::from([(page, (0, Vec::new()))]), Rest::of(vec![page]));
        Self { reached, edge, next: Vec::new(), depth: 0 }
    }

    /// Takes the links of the first pages of the edge. After the last page, the reached pages are the edge.
    fn step(&mut self, lists: &Batch<Uid>) {
        for (&page, links) in self.edge.done(lists.len()).iter().zip(lists.iter()) {
            for &link in links {
                let (depth, nearer) = self.reached.entry(link).or_insert_with(|| {
                    self.next.push(link);
                    (self.depth + 1, Vec::new())
                });
                if *depth == self.depth + 1 {
                    nearer.push(page);
                }
            }
        }
        if self.edge.is_done() {
            self.depth += 1;
            self.next.sort_unstable();
            self.edge = Rest::of(std::mem::take(&mut self.next));
        }
    }

    /// The pages that are farthest away.
    fn edge(&self) -> &[Uid] {
        self.edge.items()
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

/// The question: a search from both ends.
#[derive(Debug)]
pub struct WaySearch {
    ends: [End; 2],
    as_of: AsOf,
    links_max: usize,
    count: usize,
    is_backward: bool,
    is_cut: bool,
    /// Whether links are not available, which ends the search.
    is_over: bool,
    /// Whether the links of some pages of the edge are here, and of others not.
    is_between: bool,
    /// Whether the store has unknown links.
    has_unknown: bool,
    /// Whether there is no way, and the search continues for pages with unknown links.
    is_doubting: bool,
    /// The question which of the pages reached from the first page have unknown links.
    unknown: Option<Unknown>,
}

impl WaySearch {
    /// The most links of a way, unless the question sets a number.
    pub const LINKS: u8 = 6;
    /// The greatest number of links that a question may set.
    pub const LINKS_MAX: u8 = 20;
    /// The most ways of an answer, unless the question sets a number.
    pub const WAYS: u64 = 10;
    /// The most ways of one answer.
    pub const WAYS_MAX: u64 = 1000;

    /// Asks for ways as of a time, at most `count`, of at most `links_max` links.
    pub fn new((from, to): (Uid, Uid), as_of: AsOf, links_max: usize, count: usize) -> Self {
        Self {
            ends: [End::of(from), End::of(to)],
            as_of,
            links_max,
            count,
            is_backward: false,
            is_cut: false,
            is_over: false,
            is_between: false,
            has_unknown: false,
            is_doubting: false,
            unknown: None,
        }
    }

    /// Chooses the end from which the search continues. Returns false at the end of the search.
    fn continues(&mut self) -> bool {
        if self.is_over || self.is_between {
            return !self.is_over;
        }
        if !self.is_doubting {
            if self.goes_on() {
                let [ahead, behind] = &self.ends;
                self.is_backward = behind.edge().len() < ahead.edge().len();
                return true;
            }
            self.is_doubting = self.has_unknown && self.met().is_empty();
        }
        let ahead = &self.ends[0];
        if !self.is_doubting || ahead.edge().is_empty() || ahead.depth + 1 >= self.links_max {
            return false;
        }
        if ahead.reached.len() > DOUBTED_MAX {
            self.is_cut = true;
            return false;
        }
        self.is_backward = false;
        true
    }

    /// Whether there may be a way that is not found yet.
    fn goes_on(&mut self) -> bool {
        let [ahead, behind] = &self.ends;
        let is_bounded =
            ahead.depth + behind.depth >= self.links_max || ahead.reached.len().min(behind.reached.len()) > PAGES_MAX;
        let has_ended = self.is_cut || ahead.edge().is_empty() || behind.edge().is_empty() || !self.met().is_empty();
        self.is_cut |= is_bounded && !has_ended;
        !has_ended && !is_bounded
    }

    /// The pages of the last step that the other end reaches, too.
    fn met(&self) -> Vec<Uid> {
        if self.is_doubting {
            return Vec::new();
        }
        let [ahead, behind] = &self.ends;
        let (edge, other) = if self.is_backward { (behind.edge(), ahead) } else { (ahead.edge(), behind) };
        edge.iter().copied().filter(|page| other.reached.contains_key(page)).collect()
    }

    /// The pages that were reached from the first page, if no way was found and links are unknown.
    fn doubts(&self) -> Vec<Uid> {
        let is_asked = self.has_unknown && self.met().is_empty();
        let reached = self.ends[0].reached.iter().filter(|(_, (depth, _))| is_asked && *depth < self.links_max);
        in_order(reached.map(|(&page, _)| page).collect())
    }

    /// The ways that were found.
    fn ways(&self) -> Ways {
        let ([ahead, behind], count) = (&self.ends, self.count);
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

impl Program for WaySearch {
    fn asks(&mut self, facts: Facts) -> Option<Ask<'_>> {
        self.has_unknown = facts.has_unknown;
        if self.unknown.is_none() && !self.continues() {
            self.unknown = Some(Unknown::new(&self.doubts(), Direction::Out, Window::AsOf(self.as_of)));
        }
        if let Some(unknown) = &mut self.unknown {
            return unknown.asks(facts);
        }
        let direction = if self.is_backward { Direction::In(Precision::Exact) } else { Direction::Out };
        Some(Ask::Links(self.ends[usize::from(self.is_backward)].edge(), direction, Window::AsOf(self.as_of)))
    }

    fn take(&mut self, given: Given) {
        match (given, &mut self.unknown) {
            (given, Some(unknown)) => unknown.take(given),
            (Given::Lists(lists), None) => {
                let end = &mut self.ends[usize::from(self.is_backward)];
                let depth = end.depth;
                end.step(&lists);
                self.is_between = end.depth == depth;
            }
            _ => {}
        }
    }

    /// A page with more links than an answer may have ends the search.
    fn skip(&mut self) -> bool {
        (self.is_cut, self.is_over) = (true, true);
        self.unknown.is_none()
    }

    fn bytes(&self) -> usize {
        let reached: usize = self.ends.iter().map(|end| 64 * end.reached.len()).sum();
        reached + self.unknown.as_ref().map_or(0, Unknown::bytes)
    }
}

impl Question for WaySearch {
    type Answer = Ways;

    fn answer(self) -> Ways {
        let ways = self.ways();
        Ways {
            unknown: self.unknown.map(|unknown| in_order(unknown.answer().into_values())).unwrap_or_default(),
            ..ways
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::time::RangeLength;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    type Graph = BTreeMap<u64, BTreeSet<u64>>;

    fn search(from: u64, to: u64, links_max: usize) -> WaySearch {
        WaySearch::new((Uid(from), Uid(to)), AsOf::new(0), links_max, 1000)
    }

    fn searched(graph: &Graph, from: u64, to: u64, links_max: usize) -> Ways {
        run(graph, search(from, to, links_max), false).ways()
    }

    /// Runs the search to its end, with the links of two pages at a time.
    fn run(graph: &Graph, mut search: WaySearch, has_unknown: bool) -> WaySearch {
        let facts = Facts { has_unknown, in_range: RangeLength::Month };
        while let Some(Ask::Links(pages, direction, _)) = search.asks(facts) {
            let mut lists = Batch::default();
            for page in pages.iter().take(2) {
                let ahead = || graph.get(&page.0).into_iter().flatten().copied();
                let behind = || graph.iter().filter(|(_, links)| links.contains(&page.0)).map(|(page, _)| *page);
                let list: Vec<Uid> =
                    if direction == Direction::Out { ahead().map(Uid).collect() } else { behind().map(Uid).collect() };
                lists.push(&list);
            }
            search.take(Given::Lists(lists));
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
            let found = run(&graph, search(from, to, links_max), true);
            let known = searched(&graph, from, to, links_max);
            prop_assert_eq!(&found.ways().ways, &known.ways);
            let mut reached = BTreeSet::from([from]);
            for _ in 1..links_max {
                reached.extend(reached.clone().iter().flat_map(|page| graph.get(page).cloned().unwrap_or_default()));
            }
            let expected = if known.links.is_some() { BTreeSet::new() } else { reached };
            prop_assert_eq!(found.doubts(), expected.into_iter().map(Uid).collect::<Vec<_>>());
        }
    }
}
