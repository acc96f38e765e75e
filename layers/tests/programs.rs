//! Drives programs without files, threads and servers, over a small graph in memory. Each question has the same answer,
//! however few items a step is about.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use proptest::prelude::*;
use std::ops::Range;
use webstrata_layers::{
    AsOf, Ask, Backlink, Backlinks, Batch, CaptureTime, Change, Changed, DeadLinkSearch, DeathSearch, DeathsAsked,
    Direction, Event, Facts, First, Given, Lifespan, NeighbourhoodQuestion, NeighbourhoodSearch, Order, Page,
    PageLinks, Precision, Question, RangeLength, Ranking, Referrers, Scope, Spans, Status, StillLinking, Uid, Unit,
    Unknown, WaySearch, Window, push_status, times_of,
};

/// The number of URLs; the first half is one row, the second half another.
const URLS: u64 = 10;
const LAST: i64 = 7;

/// The content of a capture.
#[derive(Clone, Debug)]
enum Shows {
    Links(Vec<u64>),
    Unknown,
    Failure,
}

/// The captures of each URL, one a second.
#[derive(Clone, Debug)]
struct Graph(Vec<Page>);

fn page(uid: u64, captures: &[Option<Shows>]) -> Page {
    let mut page = Page { uid: Uid(uid), ..Page::default() };
    let captures: Vec<(i64, &Shows)> =
        (0..).zip(captures).filter_map(|(time, shows)| Some((time, shows.as_ref()?))).collect();
    let mut links: Vec<u64> = captures.iter().flat_map(|(_, shows)| linked(shows)).copied().collect();
    links.sort_unstable();
    links.dedup();
    let mut before = vec![true; links.len()];
    for (at, (time, shows)) in (0..).zip(captures) {
        page.timestamps.push(time);
        let status = if matches!(shows, Shows::Failure) { Status::new(404).unwrap() } else { Status::OK };
        push_status(&mut page.statuses, at, status);
        let Shows::Links(own) = shows else {
            page.blank.push(at);
            continue;
        };
        for ((number, link), before) in (0..).zip(&links).zip(&mut before) {
            if own.contains(link) != *before {
                page.changes.push(Change { link: number, capture: at });
                *before = !*before;
            }
        }
    }
    page.links = links.into_iter().map(Uid).collect();
    page.changes.sort_unstable();
    // A URL without captures is no page, and has no record.
    assert!(page.timestamps.is_empty() || page.flaw().is_none(), "{:?}", page.flaw());
    page
}

fn linked(shows: &Shows) -> &[u64] {
    if let Shows::Links(links) = shows { links } else { &[] }
}

fn graph() -> impl Strategy<Value = Graph> {
    let links = proptest::collection::vec(0..URLS, 0..4);
    let shows = prop_oneof![
        2 => Just(None),
        6 => links.prop_map(|links| Some(Shows::Links(links))),
        1 => Just(Some(Shows::Unknown)),
        1 => Just(Some(Shows::Failure)),
    ];
    let captures = proptest::collection::vec(shows, usize::try_from(LAST).unwrap());
    let pages = proptest::collection::vec(captures, usize::try_from(URLS).unwrap());
    pages.prop_map(|pages| Graph((0..).zip(&pages).map(|(uid, captures)| page(uid, captures)).collect()))
}

impl Graph {
    fn page(&self, uid: Uid) -> &Page {
        &self.0[usize::try_from(uid.0).unwrap()]
    }

    fn links(&self, uid: Uid, direction: Direction, window: Window) -> Vec<Uid> {
        let mut links = Vec::new();
        match direction {
            Direction::Out => self.page(uid).links_in(window, &mut links),
            Direction::In(_) => {
                links.extend(self.0.iter().filter(|page| page.has_link(uid, window)).map(|page| page.uid));
            }
        }
        links
    }

    fn captures(&self, uid: Uid) -> Vec<CaptureTime> {
        self.page(uid).captures().iter().collect()
    }

    fn spans(&self, uid: Uid, spans: Spans) -> Vec<Lifespan> {
        let mut found = Vec::new();
        spans.of_page(self.page(uid), &mut found);
        found
    }

    fn backlink(&self, uid: Uid, target: &[Range<Uid>]) -> Backlink {
        let mut times = Vec::new();
        let mut backlink =
            Backlink { targets: times_of(&self.spans(uid, Spans::Runs), target, &mut times), ..Backlink::default() };
        if !times.is_empty() {
            backlink.set(self.captures(uid), &mut times);
        }
        backlink
    }

    /// The answer about at most `most` items. `None`: the answer would be too large.
    fn given(&self, ask: &Ask<'_>, most: usize) -> Option<Given> {
        fn batch<T: Clone>(items: &[Uid], most: usize, of: impl Fn(Uid) -> Vec<T>) -> Batch<T> {
            let mut lists = Batch::default();
            items.iter().take(most).for_each(|&uid| lists.push(&of(uid)));
            lists
        }
        Some(match *ask {
            Ask::Rows => Given::Rows(vec![Uid(0)..Uid(URLS / 2), Uid(URLS / 2)..Uid(URLS)]),
            Ask::Links(items, direction, window) => {
                Given::Lists(batch(items, most, |uid| self.links(uid, direction, window)))
            }
            Ask::Degrees(items, direction, window) => {
                let degree = |&uid: &Uid| self.links(uid, direction, window).len() as u64;
                Given::Counts(items.iter().take(most).map(degree).collect())
            }
            Ask::Begin(items, direction, window, first) => {
                let all = batch(items, most, |uid| self.links(uid, direction, window));
                let mut begun = Batch::default();
                all.iter().for_each(|links| begun.push(&links[..links.len().min(first)]));
                Given::Begun(begun, all.iter().map(|links| links.len() as u64).collect())
            }
            Ask::Captures(pages) => Given::Captures(batch(pages, most, |uid| self.captures(uid))),
            Ask::Lifespans(pages) => Given::Lifespans(batch(pages, most, |uid| self.spans(uid, Spans::Lifespans))),
            Ask::Lives(pages) => Given::Lives(
                batch(pages, most, |uid| self.spans(uid, Spans::Runs)),
                batch(pages, most, |uid| self.captures(uid)),
            ),
            Ask::Backlinks(pages, target) => {
                let pages = &pages[..pages.len().min(most)];
                let linking = pages.iter().map(|&page| (page, self.backlink(page, target)));
                Given::Backlinks(pages.len(), linking.filter(|(_, linking)| !linking.stays.is_empty()).collect())
            }
            Ask::Referrers(pages, target) => {
                let Some(Given::Backlinks(pages, linking)) = self.given(&Ask::Backlinks(pages, target), most) else {
                    return None;
                };
                let hosts = linking.iter().map(|(page, _)| (format!("h{}.example", page.0 / 3), 1)).collect();
                Given::Referrers(pages, linking, hosts)
            }
            Ask::Sources(target, ref uids) => {
                let links = |page: Uid| {
                    let links = self.links(page, Direction::Out, Window::ALWAYS);
                    target.iter().any(|uids| links.iter().any(|link| uids.contains(link)))
                };
                let sources: Vec<Uid> = Uid::each(uids.clone()).filter(|&page| links(page)).take(most).collect();
                let next = sources.last().filter(|_| sources.len() == most).map_or(uids.end, |&last| last + 1);
                Given::Part(sources, Some(next))
            }
            Ask::Failing(ref uids) => {
                let end = uids.end.min(uids.start.saturating_add(most as u64));
                let fails = |&page: &Uid| self.captures(page).iter().any(|capture| capture.status.is_failure());
                Given::Part(Uid::each(uids.start..end).filter(fails).collect(), (end < uids.end).then_some(end))
            }
            Ask::InRecord(_) => return None,
        })
    }

    fn answer<Q: Question>(&self, mut question: Q, most: usize) -> Q::Answer {
        let facts = Facts { has_unknown: true, in_range: RangeLength::Month };
        while let Some(ask) = question.asks(facts) {
            match self.given(&ask, most) {
                Some(given) => question.take(given),
                None => assert!(question.skip()),
            }
        }
        question.answer()
    }
}

proptest! {
    #[test]
    fn answers_do_not_depend_on_the_size_of_the_steps(
        graph in graph(), uid in 0..URLS, other in 0..URLS, at in 0..LAST, later in 0..LAST, is_inward: bool,
        is_wide: bool, unit in prop_oneof![Just(Unit::Page), Just(Unit::Host)],
    ) {
        let uids = [Uid(uid), Uid(other)];
        let dates = [at.min(later), at.max(later)].map(AsOf::new);
        let direction = if is_inward { Direction::In(Precision::Exact) } else { Direction::Out };
        let target = [Uid(uid)..Uid(uid) + 1, Uid(URLS - 1)..Uid(URLS)];
        let target = if uid == URLS - 1 { &target[..1] } else { &target };
        let within = is_wide.then(|| vec![Uid(1)..Uid(3), Uid(6)..Uid(9)]);
        let scope = Scope { within, except: vec![Uid(2)..Uid(3)] };
        let order = if is_inward { Order::Most } else { Order::Last };
        let ranking = Ranking {
            unit, domain_of: |host| host, period: RangeLength::Month, event: Event::Any, interval: (0, LAST), order,
            after: None, limit: 3,
        };
        let asked = DeathsAsked {
            interval: (0, LAST), missing: is_inward, still: is_wide, status: None, period: RangeLength::Month, order,
            after: None, limit: 3,
        };
        let near = NeighbourhoodQuestion { centre: uids[0], is_wide, at: is_inward.then_some(at), limit: 5 };
        let all = [Uid(0)..Uid(4), Uid(4)..Uid(URLS)];
        let every: Vec<Uid> = Uid::each(Uid::below(URLS)).collect();
        let answers = |most: usize| {
            let network = graph.answer(NeighbourhoodSearch::new(near), most);
            let answers = (
                graph.answer(Unknown::new(&every, direction, Window::AsOf(dates[0])), most).values().to_vec(),
                graph.answer(Changed::new(&uids, is_inward, dates), most),
                (graph.answer(First::new(&uids), most), graph.answer(DeadLinkSearch::new(uids[0], dates[1]), most)),
                graph.answer(PageLinks::new(&uids, direction, Window::AsOf(dates[1])), most),
                graph.answer(Backlinks::new(target, &scope), most),
                graph.answer(WaySearch::new((uids[0], uids[1]), dates[0], 6, 20), most),
                graph.answer(DeathSearch::new(&all, asked), most),
                graph.answer(StillLinking::new(&every, 2), most),
            );
            let ranked = graph.answer(Referrers::new(target, &scope, ranking), most);
            (answers, (ranked.periods, ranked.pages, ranked.total, ranked.selected, ranked.left, ranked.rows),
             (network.nodes().to_vec(), network.by_page()))
        };
        let whole = answers(usize::MAX);
        for most in [1, 2, 3] {
            prop_assert_eq!(&answers(most), &whole, "{} items a step", most);
        }
        // Each page of the scope has its own backlink.
        let alone = every.iter().filter(|&&page| scope.has(page)).map(|&page| (page, graph.backlink(page, target)));
        let alone: Vec<_> = alone.filter(|(_, backlink)| !backlink.stays.is_empty()).collect();
        prop_assert_eq!(&whole.0.4, &alone);
    }
}
