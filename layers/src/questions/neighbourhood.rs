//! The neighbourhood of a page: the pages that it links to or that link to it, the links of these pages, and the times.
//!
//! ```text
//! runs and in-links of the page --> Surroundings::near --[runs of each]--> add --> finish --> Network
//! ```
//!
//! [`NeighbourhoodQuestion`] is asked, [`Surroundings`] gathers, and [`Network`] joins the results.
//!
//! - A link stands from the first capture that has the link until the next capture that shows the page without it. The
//!   link continues across captures that leave it unknown. If no later capture tells, the link is *unknown* from then
//!   on, even if it had ended before.
//! - As of a date, the links are the links that stand. If the capture that decides leaves links of a page unknown, the
//!   answer has each link that the page ever had, and that was not found then, as unknown, with the latest stretch that
//!   began by then, or else the first stretch.
//! - The first ring has the URLs that the page ever linked to and the pages that ever linked to it. The second ring has
//!   the URLs that pages of the first ring link to. Links of a node to itself are left out.
//! - A page in the centre or in the first ring may have more links if a capture leaves its links unknown: the capture
//!   that decides as of a date, or any capture.
//! - If there are more nodes than the answer has room for, the answer has the nodes whose links stood longest.
//!
//! Memory: [`LINKS_MAX`] links. Cost: the lifespans of the pages of the first ring.

pub(crate) mod folding;
pub(crate) mod network;

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use self::network::Network;
use super::backlinks::Walk;
use super::backlinks::scope::Scope;
use super::unknown::Unknown;
use super::{Ask, Direction, Facts, Given, Precision, Program, Question, Rest};
use crate::record::backlink::Backlink;
use crate::record::capture::lifespan::{Lifespan, unite};
use crate::record::capture::{CaptureTime, Linking, Unclear, gone_after, is_unknown, telling};
use crate::record::page::InLinks;
use crate::record::time::{AsOf, RangeLength, Window};
use crate::record::uid::{Uid, in_order};

/// The most links that are read. The remaining pages of the first ring are not read.
const LINKS_MAX: usize = 1 << 19;

/// The question for a neighbourhood.
#[derive(Clone, Copy, Debug)]
pub struct NeighbourhoodQuestion {
    /// The page in the middle.
    pub centre: Uid,
    /// Whether the answer has the second ring.
    pub is_wide: bool,
    /// Only links that stand at this time; `None` for all links that ever stood.
    pub at: Option<i64>,
    /// The most nodes in the answer, the centre included.
    pub limit: usize,
}

impl NeighbourhoodQuestion {
    /// The most nodes of the first ring.
    fn near_max(self) -> usize {
        if self.is_wide { self.limit.div_ceil(2) } else { self.limit.saturating_sub(1) }
    }

    fn stands(self, from: i64, until: Option<i64>) -> bool {
        self.at.is_none_or(|at| from <= at && until.is_none_or(|until| at < until))
    }

    /// The window of the question for sources of the centre.
    pub fn window(self) -> Window {
        self.at.map_or(Window::ALWAYS, |at| Window::AsOf(AsOf::new(at)))
    }
}

/// A link between two nodes, with the time in which it stood. `N` is the type of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge<N = usize> {
    /// The node that links.
    pub source: N,
    /// The node that the link leads to.
    pub target: N,
    /// The first second of the link.
    pub from: i64,
    /// The first second at which the link no longer stood; `None` if no capture shows an end.
    pub until: Option<i64>,
    /// Since when it is unknown whether the link stands, as of the date of the question, or to this day; `None` if it
    /// is known.
    pub unknown: Option<i64>,
}

impl<N> Edge<N> {
    /// The same link between other nodes.
    pub(super) fn between<M>(&self, source: M, target: M) -> Edge<M> {
        Edge { source, target, from: self.from, until: self.until, unknown: self.unknown }
    }

    /// Whether the link stands as of the date of the question, or to this day.
    pub fn linking(&self, at: Option<i64>) -> Linking {
        match (self.unknown, at.or(self.until)) {
            (Some(_), _) => Linking::Unknown,
            (None, Some(at)) if self.until.is_some_and(|until| until <= at) => Linking::No,
            _ => Linking::Yes,
        }
    }
}

/// The links of a page over time.
struct Told<'a> {
    /// Their runs, in order of links.
    runs: &'a [Lifespan],
    telling: Vec<i64>,
    /// The captures that leave links unknown, as of the date of the question, or to this day.
    unclear: Unclear,
    at: i64,
}

impl<'a> Told<'a> {
    fn of(question: NeighbourhoodQuestion, runs: &'a [Lifespan], captures: &[CaptureTime]) -> Self {
        let at = question.at.unwrap_or(i64::MAX);
        Self { runs, telling: telling(captures), unclear: Unclear::of(captures, AsOf::new(at)), at }
    }

    /// Calls `visit` with the lifespans of each link, and with the time since when it is unknown whether the page has
    /// the link.
    fn each(&self, mut visit: impl FnMut(&[Lifespan], Option<i64>)) {
        for runs in self.runs.chunk_by(|one, next| one.link == next.link) {
            let begun = runs.partition_point(|run| run.first <= self.at);
            let latest = begun.checked_sub(1).map(|at| (runs[at].first, runs[at].last));
            let mut lifespans = runs.to_vec();
            unite(&mut lifespans, &self.telling);
            visit(&lifespans, self.unclear.since(latest));
        }
    }

    /// The first second at which a link no longer stood, given the last capture of its lifespan.
    fn until(&self, last: i64) -> Option<i64> {
        gone_after(&self.telling, last)
    }
}

/// A neighbourhood that is being gathered.
#[derive(Clone, Debug)]
pub(crate) struct Surroundings {
    question: NeighbourhoodQuestion,
    near: Vec<Uid>,
    left_out: usize,
    edges: Vec<Edge<Uid>>,
    unread: usize,
    /// The pages whose links were added, and that may have more.
    unknown: Vec<Uid>,
}

impl Surroundings {
    /// Starts from the runs and captures of the centre, and the pages that link to it.
    pub(crate) fn new(question: NeighbourhoodQuestion, own: (&[Lifespan], &[CaptureTime]), sources: Sources) -> Self {
        let Sources { pages, left_out } = sources;
        let (near, edges, unknown) = (Vec::new(), Vec::new(), Vec::new());
        let mut found = Self { question, near, left_out, edges, unread: 0, unknown };
        found.add(question.centre, own.0, own.1);
        let mut lives: HashMap<Uid, i64> = pages.into_iter().map(|(life, page)| (page, life)).collect();
        let told = Told::of(question, own.0, own.1);
        told.each(|lifespans, unknown| {
            let is_unknown = unknown.is_some() && question.at.is_some();
            let stands = |life: &&Lifespan| is_unknown || question.stands(life.first, told.until(life.last));
            for life in lifespans.iter().filter(stands) {
                *lives.entry(life.link).or_default() += life.last - life.first + 1;
            }
        });
        lives.remove(&question.centre);
        let mut near: Vec<(Reverse<i64>, Uid)> = lives.into_iter().map(|(page, life)| (Reverse(life), page)).collect();
        near.sort_unstable();
        // Targets of the centre are nodes in any case, so they are not counted as left out here.
        let cut = near.split_off(near.len().min(question.near_max()));
        let targets: HashSet<Uid> = found.edges.iter().map(|edge| edge.target).collect();
        found.left_out += cut.iter().filter(|(_, page)| !targets.contains(page)).count();
        found.near = near.into_iter().map(|(_, page)| page).collect();
        found
    }

    /// The pages of the first ring, the longest-lived first. The caller adds their lifespans and captures.
    pub(crate) fn near(&self) -> &[Uid] {
        &self.near
    }

    /// Adds the links of a page, given their runs and the captures.
    pub(crate) fn add(&mut self, page: Uid, runs: &[Lifespan], captures: &[CaptureTime]) {
        let (question, edges) = (self.question, &mut self.edges);
        if is_unknown(captures, question.window()) {
            self.unknown.push(page);
        }
        let told = Told::of(question, runs, captures);
        let edge = |life: &Lifespan, unknown| Edge {
            source: page,
            target: life.link,
            from: life.first,
            until: told.until(life.last),
            unknown,
        };
        told.each(|lifespans, unknown| {
            if lifespans[0].link == page {
                return;
            }
            if let (Some(at), Some(_)) = (question.at, unknown) {
                let begun = lifespans.partition_point(|life| life.first <= at);
                edges.push(edge(&lifespans[begun.saturating_sub(1)], unknown));
                return;
            }
            // If the link is unknown to this day, the last stretch says so, whether it has ended or not.
            let of_life = |(at, life)| edge(life, unknown.filter(|_| at + 1 == lifespans.len()));
            let stands = |edge: &Edge<Uid>| question.stands(edge.from, edge.until);
            edges.extend(lifespans.iter().enumerate().map(of_life).filter(stands));
        });
    }

    /// Whether the caller should add no further pages.
    pub(crate) fn is_full(&self) -> bool {
        self.edges.len() >= LINKS_MAX
    }

    /// Records that this number of pages of the first ring was not added.
    pub(crate) fn skip(&mut self, pages: usize) {
        self.unread += pages;
    }

    /// Returns the links of the centre and of the pages of the first ring. A record of in-links may name a page that
    /// does not link to the centre; the links of such a page do not count.
    pub(crate) fn finish(mut self) -> Network {
        let centre = self.question.centre;
        let ends = self.edges.iter().filter_map(|edge| match (edge.source == centre, edge.target == centre) {
            (true, _) => Some(edge.target),
            (_, true) => Some(edge.source),
            _ => None,
        });
        let near: HashSet<Uid> = ends.chain([centre]).collect();
        if !self.question.is_wide {
            self.edges.retain(|edge| near.contains(&edge.target));
        }
        // The links of each page were added together and in order.
        let pages = self.edges.chunk_by(|one, next| one.source == next.source);
        let mut pages: Vec<&[Edge<Uid>]> = pages.filter(|edges| near.contains(&edges[0].source)).collect();
        pages.sort_unstable_by_key(|edges| edges[0].source);
        self.unknown.retain(|page| near.contains(page));
        self.unknown.sort_unstable();
        Network::new(self.question, &pages, self.left_out).but_for(self.unread, self.unknown)
    }
}

/// Pages that link to a URL, each with the rough total time of its link.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources {
    pages: Vec<(i64, Uid)>,
    left_out: usize,
}

impl Sources {
    /// The longest-lived sources in a record of in-links. `links` restricts the sources (rising; `None` for all).
    pub(crate) fn of(
        record: &InLinks,
        in_range: RangeLength,
        links: Option<&[Uid]>,
        question: NeighbourhoodQuestion,
    ) -> Self {
        let lives = record.lives(in_range);
        let is_asked = |page: &Uid| links.is_none_or(|links| links.binary_search(page).is_ok());
        let pages = lives.into_iter().zip(record.sources.iter().copied()).filter(|(_, page)| is_asked(page)).collect();
        let mut sources = Self { pages, left_out: 0 };
        sources.cut(question);
        sources
    }

    /// Adds a source, given its backlink, and keeps the longest-lived sources. So a hub is read source by source.
    pub(crate) fn add(&mut self, page: Uid, backlink: &Backlink, question: NeighbourhoodQuestion) {
        if question.at.is_some_and(|at| backlink.links_at(at) == Linking::No) {
            return;
        }
        let life = backlink.stays.iter().map(|stay| stay.last - stay.first + 1).sum();
        self.pages.push((life, page));
        if self.pages.len() >= 2 * question.near_max().max(1) {
            self.cut(question);
        }
    }

    /// Drops the sources for which there is no room.
    pub(crate) fn cut(&mut self, question: NeighbourhoodQuestion) {
        let Self { pages, left_out } = self;
        pages.sort_unstable_by_key(|&(life, page)| (Reverse(life), page));
        *left_out += pages.len().saturating_sub(question.near_max());
        pages.truncate(question.near_max());
    }
}

/// The question.
#[derive(Debug)]
pub struct NeighbourhoodSearch {
    question: NeighbourhoodQuestion,
    /// The length of the time ranges of the record.
    in_range: RangeLength,
    sources: Sources,
    /// The pages that may link to the centre at the date of the question, rising; `None` for all pages.
    linking: Option<Vec<Uid>>,
    record: Option<Arc<InLinks>>,
    step: Step,
}

#[derive(Debug)]
enum Step {
    /// The in-link record of the centre.
    Record,
    /// The pages that link to the centre one by one, with the next row: the record is too large.
    Walk(Walk, usize),
    /// The pages that link at the date, and those of which it is unknown.
    Linking,
    Unknown(Unknown),
    /// The runs of the centre.
    Centre,
    /// The runs of the first ring.
    Ring(Surroundings, Rest),
}

impl NeighbourhoodSearch {
    /// The most nodes of an answer that is sent over a network.
    pub const NODES_MAX: u64 = 100_000;

    /// Asks about a page.
    pub fn new(question: NeighbourhoodQuestion) -> Self {
        let in_range = RangeLength::Month;
        let (sources, linking, record, step) = (Sources::default(), None, None, Step::Record);
        Self { question, in_range, sources, linking, record, step }
    }

    /// The step after the pages that link to the centre.
    fn centre(&mut self) -> Step {
        if let Some(record) = self.record.take() {
            self.sources = Sources::of(&record, self.in_range, self.linking.as_deref(), self.question);
        }
        self.sources.cut(self.question);
        Step::Centre
    }
}

impl Program for NeighbourhoodSearch {
    fn asks(&mut self, facts: Facts) -> Option<Ask<'_>> {
        self.in_range = facts.in_range;
        let is_done = match &mut self.step {
            Step::Walk(walk, row) => {
                while walk.is_over(*row) && *row < walk.rows() {
                    *row += 1;
                }
                walk.has_begun() && *row == walk.rows()
            }
            Step::Unknown(unknown) => unknown.asks(facts).is_none(),
            _ => false,
        };
        if is_done {
            if let Step::Unknown(unknown) = std::mem::replace(&mut self.step, Step::Centre) {
                let known = self.linking.take().unwrap_or_default();
                self.linking = Some(in_order([known, unknown.answer().into_values()].concat()));
            }
            self.step = self.centre();
        }
        let centre = std::slice::from_ref(&self.question.centre);
        match &mut self.step {
            Step::Record => Some(Ask::InRecord(self.question.centre)),
            Step::Walk(walk, row) => walk.asks(*row),
            Step::Linking => Some(Ask::Links(centre, Direction::In(Precision::Exact), self.question.window())),
            Step::Unknown(unknown) => unknown.asks(facts),
            Step::Centre => Some(Ask::Lives(centre)),
            Step::Ring(found, rest) => (!rest.is_done() && !found.is_full()).then(|| Ask::Lives(rest.items())),
        }
    }

    fn take(&mut self, given: Given) {
        match (&mut self.step, given) {
            (Step::Record, Given::Record(record)) => {
                self.record = record;
                self.step = if self.question.at.is_some() { Step::Linking } else { self.centre() };
            }
            (Step::Walk(walk, row), given) => {
                for (page, backlink) in walk.take(*row, given) {
                    self.sources.add(page, &backlink, self.question);
                }
            }
            (Step::Linking, Given::Lists(links)) => {
                self.linking = Some(links.values().to_vec());
                let (centre, at) = ([self.question.centre], self.question.at.unwrap_or(i64::MAX));
                let direction = Direction::In(Precision::Exact);
                self.step = Step::Unknown(Unknown::new(&centre, direction, Window::AsOf(AsOf::new(at))));
            }
            (Step::Unknown(unknown), given) => unknown.take(given),
            (Step::Centre, Given::Lives(lifespans, captures)) => {
                let own = (lifespans.values(), captures.values());
                let found = Surroundings::new(self.question, own, std::mem::take(&mut self.sources));
                let rest = Rest::of(found.near().to_vec());
                self.step = Step::Ring(found, rest);
            }
            (Step::Ring(found, rest), Given::Lives(lifespans, captures)) => {
                let lives = lifespans.iter().zip(captures.iter());
                for (&page, (lifespans, captures)) in rest.done(lifespans.len()).iter().zip(lives) {
                    if found.is_full() {
                        found.skip(1);
                    } else {
                        found.add(page, lifespans, captures);
                    }
                }
            }
            _ => {}
        }
    }

    fn skip(&mut self) -> bool {
        match &mut self.step {
            Step::Record => {
                self.step =
                    Step::Walk(Walk::new(vec![self.question.centre..self.question.centre + 1], Scope::default()), 0)
            }
            Step::Ring(found, rest) => {
                found.skip(1);
                rest.done(1);
            }
            _ => return false,
        }
        true
    }

    fn bytes(&self) -> usize {
        let inner = match &self.step {
            Step::Walk(walk, _) => walk.bytes(),
            Step::Unknown(unknown) => unknown.bytes(),
            Step::Ring(found, _) => size_of_val(&*found.edges),
            _ => 0,
        };
        inner + size_of::<(i64, Uid)>() * self.sources.pages.len() + 8 * self.linking.as_ref().map_or(0, Vec::len)
    }
}

impl Question for NeighbourhoodSearch {
    type Answer = Network;

    fn answer(self) -> Network {
        let (mut found, unread) = match self.step {
            Step::Ring(found, rest) => (found, rest.items().len()),
            _ => (Surroundings::new(self.question, (&[], &[]), self.sources), 0),
        };
        found.skip(unread);
        found.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::folding::Grain;
    use super::*;

    fn run(link: u64, first: i64, last: i64) -> Lifespan {
        Lifespan { link: Uid(link), first, last }
    }

    fn captures(times: &[i64]) -> Vec<CaptureTime> {
        let capture = |&time: &i64| CaptureTime { time, known: true, status: crate::record::status::Status::OK };
        times.iter().map(capture).collect()
    }

    /// Page 5 links to 1 until 30 and to 9. Page 9 links to 7 and to 5. Page 2 links to 5 for a long time.
    fn gathered(is_wide: bool, at: Option<i64>, limit: usize) -> Surroundings {
        let question = NeighbourhoodQuestion { centre: Uid(5), is_wide, at, limit };
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

    fn found(is_wide: bool, at: Option<i64>, limit: usize) -> Network {
        gathered(is_wide, at, limit).finish()
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
        // Page 5 links to 1 until it lacks the link at 40, and to 9 from 20 on. Its captures at 30 and 50 have unknown
        // links.
        let runs = [run(1, 10, 20), run(9, 20, 40)];
        let network = |at| {
            let question = NeighbourhoodQuestion { centre: Uid(5), is_wide: false, at, limit: 100 };
            Surroundings::new(question, (&runs, &own), Sources::default()).finish()
        };
        let found = |at| network(at).by_page().edges;
        for (at, unknown) in [(None, true), (Some(35), true), (Some(45), false), (Some(60), true)] {
            assert_eq!(network(at).unknown(), [Uid(5)].get(..usize::from(unknown)).unwrap(), "{at:?}");
        }
        let edge = |target, from, until, unknown| Edge { source: 1, target, from, until, unknown };
        assert_eq!(found(None), [edge(0, 10, Some(40), Some(50)), edge(2, 20, None, Some(50))]);
        assert_eq!(found(Some(35)), [edge(0, 10, Some(40), Some(30)), edge(2, 20, None, Some(30))]);
        assert_eq!(found(Some(60)), [edge(0, 10, Some(40), Some(50)), edge(2, 20, None, Some(50))]);
        assert_eq!(found(Some(45)), [Edge { source: 0, ..edge(1, 20, None, None) }]);
        let linking = |at: Option<i64>| found(at).iter().map(|edge| edge.linking(at)).collect::<Vec<_>>();
        assert_eq!(linking(None), [Linking::Unknown; 2]);
        assert_eq!((linking(Some(45)), linking(Some(35))), (vec![Linking::Yes], vec![Linking::Unknown; 2]));
    }

    #[test]
    fn the_longest_lived_nodes_have_room() {
        assert_eq!(gathered(true, None, 3).near(), [2, 9].map(Uid));
        let small = found(true, None, 3);
        let around = small.by_page();
        let uids: Vec<Uid> = around.nodes.iter().map(|&node| small.nodes()[node]).collect();
        assert_eq!((uids, around.left_out), ([2, 5, 9].map(Uid).to_vec(), 6));
    }

    #[test]
    fn groups_are_nodes_and_their_links_are_united() {
        let found = found(true, None, 100);
        // 1 and 9 are one host, 5 and 7 another.
        let around = found.by_group(Grain::Host, &[0, 1, 2, 2, 3, 0]);
        assert_eq!((around.nodes.as_slice(), around.centre), (&[0, 1, 2, 3][..], 2));
        let of =
            |source, target| around.edges.iter().filter(move |edge| (edge.source, edge.target) == (source, target));
        assert_eq!(of(2, 0).map(|edge| (edge.from, edge.until)).collect::<Vec<_>>(), [(10, None)]);
        assert_eq!(of(0, 2).map(|edge| (edge.from, edge.until)).collect::<Vec<_>>(), [(15, None)]);
        assert_eq!(around.edges.len(), 4);
    }
}
