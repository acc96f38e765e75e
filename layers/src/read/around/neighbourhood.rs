//! The neighbourhood of a page: what it links to or what links to it, what those link to, and when.
//!
//! ```text
//! lifespans and in-links of the page --> Surroundings::near --[lifespans of each]--> add --> by_page, by_group
//! ```
//!
//! Who asks a store, or servers, gives [`Surroundings`] what it asks for; so the rule stands once. A link stands from
//! the first capture that has it until the first one after that shows its page without it. Across captures with unknown
//! links it goes on; if no later capture tells, the link is *unknown* from then on, also one that had ended. As of a
//! date, the links are those that stand; if it is unknown then what a page links to ([`is_unknown`]), each link that it
//! ever had is there as unknown, with the latest stretch that began until then, or the first one. The first ring is
//! what the page ever linked to and what ever linked to it; the second is what pages of the first link to. Links of a
//! node to itself are left out. Of more nodes than an answer has room for, it has those whose links stood longest.
//! Memory: [`LINKS_MAX`] links. Cost: the lifespans of the pages of the first ring.
//!
//! [`is_unknown`]: crate::record::capture::is_unknown

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use crate::error::Error;
use crate::read::query::{Direction, Lifespan, Links, Precision};
use crate::read::spellings::in_order;
use crate::record::backlink::Backlink;
use crate::record::capture::{CaptureTime, Linking, gone_after, telling, unknown_since};
use crate::record::page::InLinks;
use crate::record::time::{AsOf, RangeLength, Window};
use crate::record::uid::Uid;

/// The most nodes of an answer over a network.
pub const NODES_MAX: u64 = 100_000;

/// The most links that are read; further pages of the first ring are not read.
pub const LINKS_MAX: usize = 1 << 19;

/// Which neighbourhood is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Near {
    /// The page in the middle.
    pub centre: Uid,
    /// Whether the answer has the second ring.
    pub is_wide: bool,
    /// Only links that stand at this time; `None`: all that ever stood.
    pub at: Option<i64>,
    /// The most nodes in the answer, the centre included.
    pub limit: usize,
}

impl Near {
    /// The most nodes of the first ring.
    fn near_max(self) -> usize {
        if self.is_wide { self.limit.div_ceil(2) } else { self.limit.saturating_sub(1) }
    }

    fn stands(self, from: i64, until: Option<i64>) -> bool {
        self.at.is_none_or(|at| from <= at && until.is_none_or(|until| at < until))
    }

    /// Since when it is unknown what a page links to, as of the date or to this day.
    fn unknown_since(self, captures: &[CaptureTime]) -> Option<i64> {
        unknown_since(captures, AsOf::new(self.at.unwrap_or(i64::MAX)))
    }

    /// The window in which sources of the centre are asked for.
    pub fn window(self) -> Window {
        self.at.map_or(Window::ALWAYS, |at| Window::AsOf(AsOf::new(at)))
    }
}

/// A link between two nodes and when it stood. `N`: what a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge<N = usize> {
    /// The node that links.
    pub source: N,
    /// The node that is linked to.
    pub target: N,
    /// The first second.
    pub from: i64,
    /// The first second at which it no longer stood; `None` if no capture shows that.
    pub until: Option<i64>,
    /// Since when it is unknown whether it stands, as of the date of the question, or to this day; `None` where that is
    /// known.
    pub unknown: Option<i64>,
}

impl<N> Edge<N> {
    /// Whether it stands as of the date of the question, or to this day.
    pub fn linking(&self, at: Option<i64>) -> Linking {
        match (self.unknown, at.or(self.until)) {
            (Some(_), _) => Linking::Unknown,
            (None, Some(at)) if self.until.is_some_and(|until| until <= at) => Linking::No,
            _ => Linking::Yes,
        }
    }
}

/// A neighbourhood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Neighbourhood {
    /// Which of the nodes that were found are in the answer, rising: places of [`Surroundings::nodes`], or groups.
    pub nodes: Vec<usize>,
    /// The place of the centre in `nodes`.
    pub centre: usize,
    /// The links between them in order, by places in `nodes`. Stretches of one link do not touch.
    pub edges: Vec<Edge>,
    /// How many nodes are left out.
    pub left_out: usize,
}

/// A neighbourhood as it is found.
#[derive(Clone, Debug)]
pub struct Surroundings {
    question: Near,
    near: Vec<Uid>,
    left_out: usize,
    edges: Vec<Edge<Uid>>,
    unread: usize,
}

impl Surroundings {
    /// From the lifespans and captures of the centre, and the pages that link to it.
    pub fn new(question: Near, own: (&[Lifespan], &[CaptureTime]), sources: Sources) -> Self {
        let Sources { pages, left_out } = sources;
        let mut found = Self { question, near: Vec::new(), left_out, edges: Vec::new(), unread: 0 };
        found.add(question.centre, own.0, own.1);
        let mut lives: HashMap<Uid, i64> = pages.into_iter().map(|(life, page)| (page, life)).collect();
        let (telling, unknown) = (telling(own.1), question.unknown_since(own.1));
        let is_unknown = unknown.is_some() && question.at.is_some();
        let stands = |run: &&Lifespan| is_unknown || question.stands(run.first, gone_after(&telling, run.last));
        for run in own.0.iter().filter(stands) {
            *lives.entry(run.link).or_default() += run.last - run.first + 1;
        }
        lives.remove(&question.centre);
        let mut near: Vec<(Reverse<i64>, Uid)> = lives.into_iter().map(|(page, life)| (Reverse(life), page)).collect();
        near.sort_unstable();
        // Targets of the centre are nodes in any case, and counted with these.
        let cut = near.split_off(near.len().min(question.near_max()));
        let targets: HashSet<Uid> = found.edges.iter().map(|edge| edge.target).collect();
        found.left_out += cut.iter().filter(|(_, page)| !targets.contains(page)).count();
        found.near = near.into_iter().map(|(_, page)| page).collect();
        found
    }

    /// The pages of the first ring, whose lifespans and captures are to be added: the longest-lived first.
    pub fn near(&self) -> &[Uid] {
        &self.near
    }

    /// Adds the links of a page.
    pub fn add(&mut self, page: Uid, lifespans: &[Lifespan], captures: &[CaptureTime]) {
        let question = self.question;
        let (telling, unknown) = (telling(captures), question.unknown_since(captures));
        let edge = |run: &Lifespan, unknown| {
            let until = gone_after(&telling, run.last);
            Edge { source: page, target: run.link, from: run.first, until, unknown }
        };
        let others = lifespans.chunk_by(|one, next| one.link == next.link).filter(|runs| runs[0].link != page);
        match (question.at, unknown) {
            (Some(at), Some(_)) => {
                let chosen = |runs: &[Lifespan]| runs.partition_point(|run| run.first <= at).saturating_sub(1);
                self.edges.extend(others.map(|runs| edge(&runs[chosen(runs)], unknown)));
            }
            // What is unknown to this day is said at the last stretch, whether that one has ended or not.
            _ => self.edges.extend(others.flat_map(|runs| {
                let of_run = |(at, run)| edge(run, unknown.filter(|_| at + 1 == runs.len()));
                let stands = |edge: &Edge<Uid>| question.stands(edge.from, edge.until);
                runs.iter().enumerate().map(of_run).filter(stands).collect::<Vec<_>>()
            })),
        }
    }

    /// Whether no further pages are to be added.
    pub fn is_full(&self) -> bool {
        self.edges.len() >= LINKS_MAX
    }

    /// Says that pages of the first ring were not added.
    pub fn skip(&mut self, pages: usize) {
        self.unread += pages;
    }

    /// How many pages of the first ring were not added, so that what they link to is missing.
    pub fn unread(&self) -> usize {
        self.unread
    }

    /// All nodes that were found, rising.
    pub fn nodes(&self) -> Vec<Uid> {
        let ends = self.edges().into_iter().flat_map(|edge| [edge.source, edge.target]);
        let mut nodes: Vec<Uid> = ends.chain([self.question.centre]).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// The links of the centre and of the pages of the first ring. A record of in-links may name a page that does not
    /// link to the centre; its links do not count.
    fn edges(&self) -> Vec<&Edge<Uid>> {
        let centre = self.question.centre;
        let mut near = HashSet::from([centre]);
        for edge in &self.edges {
            if edge.source == centre {
                near.insert(edge.target);
            } else if edge.target == centre {
                near.insert(edge.source);
            }
        }
        let is_shown =
            |edge: &&Edge<Uid>| near.contains(&edge.source) && (self.question.is_wide || near.contains(&edge.target));
        self.edges.iter().filter(is_shown).collect()
    }

    /// The neighbourhood whose nodes are URLs.
    pub fn by_page(&self) -> Neighbourhood {
        let nodes = self.nodes();
        self.by_group(&nodes, &(0..nodes.len()).collect::<Vec<_>>())
    }

    /// The neighbourhood whose nodes are groups of URLs, as hosts: for each of [`Surroundings::nodes`] the number of
    /// its group. Links within a group are left out; stretches of links between two groups are united.
    pub fn by_group(&self, nodes: &[Uid], groups: &[usize]) -> Neighbourhood {
        let group = |uid: Uid| nodes.binary_search(&uid).map_or(usize::MAX, |place| groups[place]);
        let centre = group(self.question.centre);
        let edges = self.edges().into_iter().map(|edge| {
            let (source, target) = (group(edge.source), group(edge.target));
            Edge { source, target, from: edge.from, until: edge.until, unknown: edge.unknown }
        });
        let edges = united(edges.filter(|edge| edge.source != edge.target).collect(), self.question.at.is_some());
        let kept = self.kept(centre, &edges);
        let place = |node: usize| kept.nodes.binary_search(&node).ok();
        let between = edges
            .into_iter()
            .filter_map(|edge| Some(Edge { source: place(edge.source)?, target: place(edge.target)?, ..edge }));
        Neighbourhood { edges: between.collect(), centre: place(centre).unwrap_or_default(), ..kept }
    }

    /// Chooses the nodes: the longest-lived of the first ring, then those of the second.
    fn kept(&self, centre: usize, edges: &[Edge]) -> Neighbourhood {
        let horizon = edges.iter().map(|edge| edge.until.unwrap_or(edge.from)).max().unwrap_or_default();
        let life = |edge: &Edge| edge.until.unwrap_or(horizon).max(edge.from + 1) - edge.from;
        let (mut near, mut far) = (HashMap::<usize, i64>::new(), HashMap::<usize, i64>::new());
        for edge in edges {
            match (edge.source == centre, edge.target == centre) {
                (true, _) => *near.entry(edge.target).or_default() += life(edge),
                (_, true) => *near.entry(edge.source).or_default() += life(edge),
                _ => *far.entry(edge.target).or_default() += life(edge),
            }
        }
        far.retain(|node, _| !near.contains_key(node));
        let (near_count, far_count) = (near.len(), far.len());
        let mut nodes = vec![centre];
        nodes.extend(longest(near, self.question.near_max()));
        nodes.extend(longest(far, self.question.limit.saturating_sub(nodes.len())));
        nodes.sort_unstable();
        let left_out = self.left_out + (1 + near_count + far_count - nodes.len());
        Neighbourhood { nodes, left_out, ..Neighbourhood::default() }
    }
}

/// The nodes with the longest lives; of equal ones the first.
fn longest(lives: HashMap<usize, i64>, count: usize) -> impl Iterator<Item = usize> {
    let mut nodes: Vec<(Reverse<i64>, usize)> = lives.into_iter().map(|(node, life)| (Reverse(life), node)).collect();
    nodes.sort_unstable();
    nodes.truncate(count);
    nodes.into_iter().map(|(_, node)| node)
}

/// Links in order; stretches of one link that meet are one. It stands if one of them does, and is unknown if that is so
/// of one and none stands; the last stretch says so. As of a date one that stands is enough, and the unknown ones
/// beside it are left out.
fn united(mut edges: Vec<Edge>, has_date: bool) -> Vec<Edge> {
    edges.sort_unstable();
    let ends = |edge: &Edge| (edge.source, edge.target);
    let mut united: Vec<Edge> = Vec::with_capacity(edges.len());
    for of_pair in edges.chunk_by(|one, next| ends(one) == ends(next)) {
        let stands = of_pair.iter().any(|edge| edge.unknown.is_none() && (has_date || edge.until.is_none()));
        let unknown = unknown_of_all(of_pair).filter(|_| !stands);
        let before = united.len();
        for &edge in of_pair.iter().filter(|edge| !(has_date && stands) || edge.unknown.is_none()) {
            let end = |edge: &Edge| edge.until.unwrap_or(i64::MAX);
            match united[before..].last_mut() {
                Some(last) if edge.from <= end(last) => {
                    last.until = if end(last) >= end(&edge) { last.until } else { edge.until };
                }
                _ => united.push(edge),
            }
        }
        let last = united.len() - 1;
        for (at, edge) in united.iter_mut().enumerate().skip(before) {
            edge.unknown = unknown.filter(|_| has_date || at == last);
        }
    }
    united
}

/// Since when links between two nodes, of which none stands for certain, are unknown together: since one of them is,
/// and no other stands any more.
fn unknown_of_all(edges: &[Edge]) -> Option<i64> {
    let since = edges.iter().filter_map(|edge| edge.unknown).min()?;
    let stood_until = edges.iter().filter_map(|edge| match edge.unknown {
        Some(unknown) => (edge.from <= unknown).then_some(edge.until.map_or(unknown, |until| until.min(unknown))),
        None => edge.until,
    });
    Some(stood_until.fold(since, i64::max))
}

/// Pages that link to a URL, each with how long its link stood in all, roughly.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    pages: Vec<(i64, Uid)>,
    left_out: usize,
}

impl Sources {
    /// The longest-lived sources of a record of in-links, of those that `links` names (rising; `None`: all).
    pub fn of(record: &InLinks, in_range: RangeLength, links: Option<&[Uid]>, question: Near) -> Self {
        let lives = record.lives(in_range);
        let is_asked = |page: &Uid| links.is_none_or(|links| links.binary_search(page).is_ok());
        let pages = lives.into_iter().zip(record.sources.iter().copied()).filter(|(_, page)| is_asked(page)).collect();
        let mut sources = Self { pages, left_out: 0 };
        sources.cut(question);
        sources
    }

    /// Adds a source, given when it linked; the longest-lived ones stay. So a hub is read one source after the other.
    pub fn add(&mut self, page: Uid, backlink: &Backlink, question: Near) {
        if question.at.is_some_and(|at| backlink.links_at(at) == Linking::No) {
            return;
        }
        let life = backlink.stays.iter().map(|stay| stay.last - stay.first + 1).sum();
        self.pages.push((life, page));
        if self.pages.len() >= 2 * question.near_max().max(1) {
            self.cut(question);
        }
    }

    /// Leaves out those for which there is no room.
    pub fn cut(&mut self, question: Near) {
        let Self { pages, left_out } = self;
        pages.sort_unstable_by_key(|&(life, page)| (Reverse(life), page));
        *left_out += pages.len().saturating_sub(question.near_max());
        pages.truncate(question.near_max());
    }
}

/// The surroundings of a page in a graph.
///
/// # Errors
/// As of all questions.
pub fn surroundings(links: &dyn Links, question: Near) -> Result<Surroundings, Error> {
    let (mut lifespans, mut captures) = (Vec::new(), Vec::new());
    let centre = question.centre;
    let asked = match question.at {
        Some(at) => {
            let direction = Direction::In(Precision::Exact);
            let mut asked = links.links(centre, direction, question.window())?;
            asked.extend(links.unknown(centre, direction, AsOf::new(at))?);
            Some(in_order(asked))
        }
        None => None,
    };
    let record = links.in_record(centre)?;
    let sources = record.map(|record| Sources::of(&record, links.in_range(), asked.as_deref(), question));
    links.lifespans_into(centre, &mut lifespans)?;
    links.captures_into(centre, &mut captures)?;
    let mut found = Surroundings::new(question, (&lifespans, &captures), sources.unwrap_or_default());
    for (read, page) in found.near().to_vec().into_iter().enumerate() {
        if found.is_full() {
            found.skip(found.near().len() - read);
            break;
        }
        links.lifespans_into(page, &mut lifespans)?;
        links.captures_into(page, &mut captures)?;
        found.add(page, &lifespans, &captures);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(link: u64, first: i64, last: i64) -> Lifespan {
        Lifespan { link: Uid(link), first, last }
    }

    fn captures(times: &[i64]) -> Vec<CaptureTime> {
        let capture = |&time: &i64| CaptureTime { time, known: true, status: crate::record::status::Status::OK };
        times.iter().map(capture).collect()
    }

    /// Page 5 links to 1 until 30 and to 9; page 9 links to 7 and back; page 2 links to 5, long.
    fn found(is_wide: bool, at: Option<i64>, limit: usize) -> Surroundings {
        let question = Near { centre: Uid(5), is_wide, at, limit };
        let sources = Sources { pages: vec![(1000, Uid(2)), (1, Uid(9))], left_out: 3 };
        let own = captures(&[10, 20, 30]);
        let mut found = Surroundings::new(question, (&[run(1, 10, 20), run(9, 20, 30)], &own), sources);
        for page in found.near().to_vec() {
            match page.0 {
                2 => found.add(page, &[run(5, 0, 40), run(8, 0, 0)], &captures(&[0, 40])),
                9 => found.add(page, &[run(5, 15, 15), run(5, 35, 35), run(7, 15, 35)], &captures(&[15, 25, 35])),
                _ => {}
            }
        }
        found
    }

    #[test]
    fn rings_and_times_are_those_of_the_links() {
        let wide = found(true, None, 100);
        assert_eq!(wide.nodes(), [1, 2, 5, 7, 8, 9].map(Uid));
        let around = wide.by_page();
        assert_eq!((around.nodes.len(), around.centre, around.left_out), (6, 2, 3));
        let edge = |source, target, from, until| Edge { source, target, from, until, unknown: None };
        let expected = [
            edge(1, 2, 0, None),
            edge(1, 4, 0, Some(40)),
            edge(2, 0, 10, Some(30)),
            edge(2, 5, 20, None),
            edge(5, 2, 15, Some(25)),
            edge(5, 2, 35, None),
            edge(5, 3, 15, None),
        ];
        assert_eq!(around.edges, expected);
        let narrow = found(false, None, 100).by_page();
        assert_eq!((narrow.nodes.as_slice(), narrow.edges.len()), (&[0, 1, 2, 3][..], 5));
    }

    #[test]
    fn at_a_date_only_what_stands_is_there() {
        let at = found(true, Some(30), 100);
        assert_eq!(at.nodes(), [2, 5, 7, 8, 9].map(Uid));
        assert_eq!(found(true, Some(24), 100).nodes(), [1, 2, 5, 7, 8, 9].map(Uid));
    }

    #[test]
    fn links_of_unknown_captures_are_unknown() {
        let mut own = captures(&[10, 20, 30, 40, 50]);
        (own[2].known, own[4].known) = (false, false);
        // Page 5 links to 1 until it lacks the link at 40, and to 9 from 20 on; its captures of 30 and 50 are unknown.
        let runs = [run(1, 10, 20), run(9, 20, 40)];
        let found = |at| {
            let question = Near { centre: Uid(5), is_wide: false, at, limit: 100 };
            Surroundings::new(question, (&runs, &own), Sources::default()).by_page().edges
        };
        let edge = |target, from, until, unknown| Edge { source: 1, target, from, until, unknown };
        assert_eq!(found(None), [edge(0, 10, Some(40), Some(50)), edge(2, 20, None, Some(50))]);
        assert_eq!(found(Some(35)), [edge(0, 10, Some(40), Some(30)), edge(2, 20, None, Some(30))]);
        assert_eq!(found(Some(60)), [edge(0, 10, Some(40), Some(50)), edge(2, 20, None, Some(50))]);
        assert_eq!(found(Some(45)), [Edge { source: 0, ..edge(1, 20, None, None) }]);
        let linking = |at: Option<i64>| found(at).iter().map(|edge| edge.linking(at)).collect::<Vec<_>>();
        assert_eq!(linking(None), [Linking::Unknown; 2]);
        assert_eq!((linking(Some(45)), linking(Some(35))), (vec![Linking::Yes], vec![Linking::Unknown; 2]));
        // Of hosts, one page that stands is enough, and of two that are unknown the one that stood for longer counts.
        let pair = |from, until, unknown| Edge { source: 0, target: 1, from, until, unknown };
        let open = [pair(10, None, Some(30)), pair(20, None, Some(50))];
        assert_eq!(united(open.to_vec(), false), [pair(10, None, Some(50))]);
        let known = [pair(10, None, Some(30)), pair(20, None, None)];
        assert_eq!(united(known.to_vec(), false), [pair(10, None, None)]);
        assert_eq!(united(vec![pair(10, None, Some(30)), pair(20, Some(40), None)], false), [pair(10, None, Some(40))]);
        assert_eq!(united(vec![pair(10, Some(15), Some(30)), pair(20, None, None)], true), [pair(20, None, None)]);
        // What ended and is unknown since says so at the last stretch of all.
        let ended = [pair(10, Some(15), Some(30)), pair(20, Some(25), None), pair(40, Some(50), None)];
        assert_eq!(united(ended[..2].to_vec(), false), [pair(10, Some(15), None), pair(20, Some(25), Some(30))]);
        assert_eq!(united(ended.to_vec(), false).last(), Some(&pair(40, Some(50), Some(50))));
    }

    #[test]
    fn the_longest_lived_nodes_have_room() {
        let small = found(true, None, 3);
        assert_eq!(small.near(), [2, 9].map(Uid));
        let around = small.by_page();
        let uids: Vec<Uid> = around.nodes.iter().map(|&node| small.nodes()[node]).collect();
        assert_eq!((uids, around.left_out), ([2, 5, 9].map(Uid).to_vec(), 6));
    }

    #[test]
    fn groups_are_nodes_and_their_links_are_united() {
        let found = found(true, None, 100);
        // 1 and 9 are one host, 5 and 7 another.
        let around = found.by_group(&found.nodes(), &[0, 1, 2, 2, 3, 0]);
        assert_eq!((around.nodes.as_slice(), around.centre), (&[0, 1, 2, 3][..], 2));
        let of =
            |source, target| around.edges.iter().filter(move |edge| (edge.source, edge.target) == (source, target));
        assert_eq!(of(2, 0).map(|edge| (edge.from, edge.until)).collect::<Vec<_>>(), [(10, None)]);
        assert_eq!(of(0, 2).map(|edge| (edge.from, edge.until)).collect::<Vec<_>>(), [(15, None)]);
        assert_eq!(around.edges.len(), 4);
    }
}
