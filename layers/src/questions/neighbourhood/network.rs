//! The links around a page, by the indexes of their nodes, and the resulting neighbourhood of URLs or groups of URLs.

use std::cmp::Reverse;

use super::folding::Grain;
use super::{Edge, NeighbourhoodQuestion};
use crate::record::uid::Uid;

/// The index of no node.
const NOWHERE: usize = usize::MAX;
/// The end of a stretch that no capture ends.
const OPEN: i64 = i64::MAX;

/// The nodes that were found around a page, and the links between them.
#[derive(Clone, Debug)]
pub struct Network {
    question: NeighbourhoodQuestion,
    nodes: Vec<Uid>,
    /// The links, in order.
    edges: Vec<Edge>,
    left_out: usize,
    unread: usize,
    unknown: Vec<Uid>,
}

/// A neighbourhood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Neighbourhood {
    /// The nodes of the answer, rising: indexes in [`Network::nodes`], or groups.
    pub nodes: Vec<usize>,
    /// The index of the centre in `nodes`.
    pub centre: usize,
    /// The links between the nodes in order, by indexes in `nodes`. Stretches of one link do not touch.
    pub edges: Vec<Edge>,
    /// The number of nodes that are left out.
    pub left_out: usize,
}

impl Network {
    /// Creates a network from links in order, in slices of one source each. `left_out` nodes are missing.
    pub(super) fn new(question: NeighbourhoodQuestion, pages: &[&[Edge<Uid>]], left_out: usize) -> Self {
        let mut nodes: Vec<Uid> = pages.iter().map(|links| links[0].source).chain([question.centre]).collect();
        nodes.extend(pages.iter().flat_map(|links| links.iter().map(|link| link.target)));
        nodes.sort_unstable();
        nodes.dedup();
        let place = |uid: Uid| nodes.binary_search(&uid).unwrap_or(NOWHERE);
        let mut edges = Vec::with_capacity(pages.iter().map(|links| links.len()).sum());
        for links in pages {
            let source = place(links[0].source);
            edges.extend(links.iter().map(|link| link.between(source, place(link.target))));
        }
        Self { question, nodes, edges, left_out, unread: 0, unknown: Vec::new() }
    }

    /// The same network, which may miss the links of `unread` pages of the first ring, and links of `unknown` pages.
    pub(super) fn but_for(self, unread: usize, unknown: Vec<Uid>) -> Self {
        Self { unread, unknown, ..self }
    }

    /// All nodes that were found, rising.
    pub fn nodes(&self) -> &[Uid] {
        &self.nodes
    }

    /// The number of pages of the first ring that were not read, so that their links are missing.
    pub fn unread(&self) -> usize {
        self.unread
    }

    /// The pages in the centre and in the first ring that were read and may have more links, rising: at the date of
    /// the question, or in any capture.
    pub fn unknown(&self) -> &[Uid] {
        &self.unknown
    }

    /// The neighbourhood with URLs as nodes.
    pub fn by_page(&self) -> Neighbourhood {
        let edges = united(self.edges.clone(), self.question.at.is_some());
        self.neighbourhood(self.centre(), self.nodes.len(), &edges)
    }

    /// The neighbourhood with groups of URLs, such as hosts, as nodes. `groups` has the number of the group for each of
    /// [`Network::nodes`]. Links within a group are left out. Stretches of links between two groups are united. A link
    /// of a page of the first ring counts while the page is around. The links that stand at a date are therefore the
    /// answer as of that date.
    pub fn by_group(&self, grain: Grain, groups: &[usize]) -> Neighbourhood {
        let mut edges = Vec::with_capacity(self.edges.len());
        let add = |edge: Edge| {
            let (source, target) = (groups[edge.source], groups[edge.target]);
            if source != target {
                edges.push(edge.between(source, target));
            }
        };
        if grain == Grain::Page || self.question.at.is_some() {
            self.edges.iter().copied().for_each(add);
        } else {
            self.while_around(add);
        }
        let count = groups.iter().max().map_or(0, |last| last + 1);
        self.neighbourhood(groups[self.centre()], count, &united(edges, self.question.at.is_some()))
    }

    fn centre(&self) -> usize {
        self.nodes.binary_search(&self.question.centre).unwrap_or_default()
    }

    /// Calls `add` with the parts of links during which their sources are around the centre.
    fn while_around(&self, mut add: impl FnMut(Edge)) {
        let centre = self.centre();
        let mut around: Vec<(usize, i64, i64)> = Vec::new();
        for edge in self.edges.iter().filter(|edge| edge.source == centre || edge.target == centre) {
            let page = if edge.source == centre { edge.target } else { edge.source };
            around.push((page, edge.from, edge.until.unwrap_or(OPEN)));
            around.extend(edge.unknown.map(|since| (page, since, OPEN)));
        }
        around.sort_unstable();
        around.dedup_by(|next, last| {
            let is_one = next.0 == last.0 && next.1 <= last.2;
            last.2 = if is_one { last.2.max(next.2) } else { last.2 };
            is_one
        });
        for links in self.edges.chunk_by(|one, next| one.source == next.source) {
            let page = links[0].source;
            let begin = around.partition_point(|stretch| stretch.0 < page);
            let stretches = &around[begin..begin + around[begin..].partition_point(|stretch| stretch.0 == page)];
            for &link in links {
                if page == centre || link.target == centre {
                    add(link);
                } else {
                    within(link, stretches, &mut add);
                }
            }
        }
    }

    /// Chooses the nodes: first the longest-lived of the first ring, then the longest-lived of the second ring. Returns
    /// the nodes with the links between them. `edges` must be in order, by numbers below `count`.
    fn neighbourhood(&self, centre: usize, count: usize, edges: &[Edge]) -> Neighbourhood {
        let horizon = edges.iter().map(|edge| edge.until.unwrap_or(edge.from)).max().unwrap_or_default();
        let life = |edge: &Edge| edge.until.unwrap_or(horizon).max(edge.from + 1) - edge.from;
        // A life of 0 marks a node that was not found; every other life is at least 1 second.
        let (mut near, mut far) = (vec![0; count], vec![0; count]);
        for edge in edges {
            match (edge.source == centre, edge.target == centre) {
                (true, _) => near[edge.target] += life(edge),
                (_, true) => near[edge.source] += life(edge),
                _ => far[edge.target] += life(edge),
            }
        }
        far.iter_mut().zip(&near).filter(|(_, near)| **near > 0).for_each(|(far, _)| *far = 0);
        let found = 1 + near.iter().chain(&far).filter(|&&life| life > 0).count();
        let mut nodes = vec![centre];
        nodes.extend(longest(&near, self.question.near_max()));
        nodes.extend(longest(&far, self.question.limit.saturating_sub(nodes.len())));
        nodes.sort_unstable();
        let mut places = vec![NOWHERE; count];
        nodes.iter().enumerate().for_each(|(place, &node)| places[node] = place);
        let is_kept = |edge: &&Edge| places[edge.source] != NOWHERE && places[edge.target] != NOWHERE;
        let kept = edges.iter().filter(is_kept).map(|edge| edge.between(places[edge.source], places[edge.target]));
        Neighbourhood {
            edges: kept.collect(),
            centre: places[centre],
            left_out: self.left_out + found - nodes.len(),
            nodes,
        }
    }
}

/// The `count` nodes with the longest lives, among nodes with a life above 0. If lives are equal, lower nodes come
/// first.
fn longest(lives: &[i64], count: usize) -> impl Iterator<Item = usize> {
    let lived = lives.iter().enumerate().filter(|(_, life)| **life > 0);
    let mut nodes: Vec<(Reverse<i64>, usize)> = lived.map(|(node, &life)| (Reverse(life), node)).collect();
    if count < nodes.len() {
        nodes.select_nth_unstable(count);
        nodes.truncate(count);
    }
    nodes.into_iter().map(|(_, node)| node)
}

/// Calls `add` with the parts of a link in stretches of time. The stretches are in order and do not touch. If the link
/// is unknown and the last stretch is open, the last part is unknown to this day, at the earliest from the begin of
/// that stretch. If the link stood in no stretch, an unknown part is added instead.
fn within(link: Edge, stretches: &[(usize, i64, i64)], mut add: impl FnMut(Edge)) {
    let until = link.until.unwrap_or(OPEN);
    let unknown = link.unknown.zip(stretches.last()).filter(|(_, last)| last.2 == OPEN);
    let unknown = unknown.map(|(since, last)| since.max(last.1));
    let parts = stretches.iter().filter(|stretch| stretch.1 < until && link.from < stretch.2);
    let part = |stretch: &(usize, i64, i64)| {
        let end = until.min(stretch.2);
        Edge { from: link.from.max(stretch.1), until: (end < OPEN).then_some(end), unknown: None, ..link }
    };
    let mut waiting = None;
    for next in parts.map(part) {
        if let Some(edge) = waiting.replace(next) {
            add(edge);
        }
    }
    let alone = unknown.map(|since| Edge { from: since, until: None, ..link });
    if let Some(last) = waiting.or(alone) {
        add(Edge { unknown, ..last });
    }
}

/// Sorts links, and joins stretches of one link that meet.
///
/// - A link stands if one of its stretches stands. A link is unknown if one of its stretches is unknown and none
///   stands; the last stretch says so.
/// - Over all dates, a link that is unknown from its first second on adds no stretch beside stretches that stood.
/// - As of a date, one stretch that stands is enough, and the unknown stretches beside it are left out.
fn united(mut edges: Vec<Edge>, has_date: bool) -> Vec<Edge> {
    edges.sort_unstable();
    let ends = |edge: &Edge| (edge.source, edge.target);
    let mut united: Vec<Edge> = Vec::with_capacity(edges.len());
    for of_pair in edges.chunk_by(|one, next| ends(one) == ends(next)) {
        let stands = of_pair.iter().any(|edge| edge.unknown.is_none() && (has_date || edge.until.is_none()));
        let unknown = unknown_of_all(of_pair).filter(|_| !stands);
        let before = united.len();
        let counts = |edge: &&Edge| if has_date { !stands || edge.unknown.is_none() } else { is_certain(edge) };
        for &edge in of_pair.iter().filter(counts) {
            let end = |edge: &Edge| edge.until.unwrap_or(OPEN);
            match united[before..].last_mut() {
                Some(last) if edge.from <= end(last) => {
                    last.until = if end(last) >= end(&edge) { last.until } else { edge.until };
                }
                _ => united.push(edge),
            }
        }
        if let (Some(since), true) = (unknown, united.len() == before) {
            united.push(Edge { from: since, until: None, ..of_pair[0] });
        }
        let last = united.len() - 1;
        for (at, edge) in united.iter_mut().enumerate().skip(before) {
            edge.unknown = unknown.filter(|_| has_date || at == last);
        }
    }
    united
}

/// Whether the link ever stood for certain.
fn is_certain(edge: &Edge) -> bool {
    edge.unknown.is_none_or(|since| edge.from < since)
}

/// Since when the links between two nodes are unknown together, if none of them stands for certain: since one of them
/// is unknown and no other one stands any more.
fn unknown_of_all(edges: &[Edge]) -> Option<i64> {
    let since = edges.iter().filter_map(|edge| edge.unknown).min()?;
    let stood_until = edges.iter().filter_map(|edge| match edge.unknown {
        Some(unknown) => is_certain(edge).then_some(edge.until.map_or(unknown, |until| until.min(unknown))),
        None => edge.until,
    });
    Some(stood_until.fold(since, i64::max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_groups_are_those_of_their_pages_together() {
        // For hosts, one page with a link that stands is enough. If two links are unknown, the link that stood longer
        // counts.
        let pair = |from, until, unknown| Edge { source: 0, target: 1, from, until, unknown };
        let open = [pair(10, None, Some(30)), pair(20, None, Some(50))];
        assert_eq!(united(open.to_vec(), false), [pair(10, None, Some(50))]);
        let known = [pair(10, None, Some(30)), pair(20, None, None)];
        assert_eq!(united(known.to_vec(), false), [pair(10, None, None)]);
        assert_eq!(united(vec![pair(10, None, Some(30)), pair(20, Some(40), None)], false), [pair(10, None, Some(40))]);
        assert_eq!(united(vec![pair(10, Some(15), Some(30)), pair(20, None, None)], true), [pair(20, None, None)]);
        // A link that ended and is unknown since then says so at the last stretch of all.
        let ended = [pair(10, Some(15), Some(30)), pair(20, Some(25), None), pair(40, Some(50), None)];
        assert_eq!(united(ended[..2].to_vec(), false), [pair(10, Some(15), None), pair(20, Some(25), Some(30))]);
        assert_eq!(united(ended.to_vec(), false).last(), Some(&pair(40, Some(50), Some(50))));
    }

    #[test]
    fn a_link_counts_while_its_source_is_around() {
        let link = |from, until, unknown| Edge { source: 3, target: 4, from, until, unknown };
        let parts = |link, stretches: &[(i64, i64)]| {
            let mut parts = Vec::new();
            let stretches: Vec<(usize, i64, i64)> = stretches.iter().map(|&(from, until)| (3, from, until)).collect();
            within(link, &stretches, |part| parts.push(part));
            parts
        };
        let whole = link(10, Some(50), None);
        assert_eq!(parts(whole, &[(0, 60)]), [whole]);
        assert_eq!(parts(whole, &[(0, 20), (30, OPEN)]), [link(10, Some(20), None), link(30, Some(50), None)]);
        assert_eq!(parts(whole, &[(0, 10), (50, 60)]), []);
        let open = link(10, None, Some(40));
        assert_eq!(parts(open, &[(20, OPEN)]), [link(20, None, Some(40))]);
        assert_eq!(parts(open, &[(20, 30), (60, OPEN)]), [link(20, Some(30), None), link(60, None, Some(60))]);
        assert_eq!(parts(open, &[(20, 50)]), [link(20, Some(50), None)]);
        // The link had ended before its source came, and it is unknown whether the link stands again.
        assert_eq!(parts(link(10, Some(15), Some(40)), &[(20, OPEN)]), [link(40, None, Some(40))]);
        assert_eq!(parts(link(10, Some(15), Some(40)), &[(20, 30)]), []);
    }
}
