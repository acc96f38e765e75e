//! Pages as plain lists, capture by capture, and their answers by plain loops. Encodings are compared with these.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use webstrata_cells::Number;
use webstrata_layers::{Change, InLinks, Lifespan, Page, RangeLength, Window};

/// A capture: its time, and its links if they are known.
pub(super) type Capture = (i64, Option<Rc<[u64]>>);

/// Pages, capture by capture.
pub(super) struct Plain {
    /// The first UID of the cell, and the number of its URLs. All are nodes, so each UID is its own number.
    pub(super) first: u64,
    pub(super) nodes: usize,
    /// Pages of this cell and of other cells. UIDs and times rise.
    pub(super) pages: Vec<(u64, Vec<Capture>)>,
    /// For each URL, its sources and the ranges in which they link to it.
    pub(super) sources: BTreeMap<u64, BTreeMap<u64, BTreeSet<i64>>>,
}

pub(super) const RANGE: RangeLength = RangeLength::Days(10);

impl Plain {
    pub(super) fn new(first: u64, nodes: usize, pages: Vec<(u64, Vec<Capture>)>) -> Self {
        let mut sources: BTreeMap<u64, BTreeMap<u64, BTreeSet<i64>>> = BTreeMap::new();
        for (page, captures) in &pages {
            for (time, links) in captures {
                for &link in links.iter().flat_map(|links| links.iter()) {
                    sources.entry(link).or_default().entry(*page).or_default().insert(RANGE.start(*time));
                }
            }
        }
        Self { first, nodes, pages, sources }
    }

    pub(super) fn uids(&self) -> std::ops::Range<u64> {
        self.first..self.first + self.nodes as u64
    }

    /// The pages with records in the cell.
    pub(super) fn own(&self) -> impl Iterator<Item = &(u64, Vec<Capture>)> {
        self.pages.iter().filter(|(uid, _)| self.uids().contains(uid))
    }
}

pub(super) fn union(captures: &[Capture]) -> Vec<u64> {
    let all: BTreeSet<u64> = captures.iter().filter_map(|(_, links)| links.as_deref()).flatten().copied().collect();
    all.into_iter().collect()
}

pub(super) fn links_in(captures: &[Capture], window: Window) -> Vec<u64> {
    match window {
        Window::Seen { from, to } => {
            let inside: Vec<Capture> =
                captures.iter().filter(|(time, _)| from <= *time && *time <= to).cloned().collect();
            union(&inside)
        }
        Window::AsOf(at) => {
            let latest = captures.iter().rfind(|(time, _)| *time <= at.time);
            latest.and_then(|(_, links)| links.as_deref()).unwrap_or_default().to_vec()
        }
    }
}

pub(super) fn lifespans(captures: &[Capture]) -> Vec<Lifespan<Number>> {
    let mut spans = Vec::new();
    for link in union(captures) {
        let mut open: Option<Lifespan<Number>> = None;
        for (time, links) in captures.iter().filter_map(|(time, links)| Some((*time, links.as_deref()?))) {
            if links.binary_search(&link).is_err() {
                spans.extend(open.take());
            } else {
                let first = open.map_or(time, |lifespan| lifespan.first);
                open = Some(Lifespan { link: Number(link), first, last: time });
            }
        }
        spans.extend(open);
    }
    spans
}

/// The changes in the presence of each of `items`, over `count` places. `there` returns `None` for unknown places.
fn changes(items: usize, count: usize, there: impl Fn(usize, usize) -> Option<bool>) -> Vec<Change> {
    let mut changes = Vec::new();
    let number = |at: usize| u32::try_from(at).unwrap();
    for item in 0..items {
        let mut before = true;
        for at in 0..count {
            let Some(now) = there(item, at) else { continue };
            if now != before {
                changes.push(Change { link: number(item), capture: number(at) });
            }
            before = now;
        }
    }
    changes
}

pub(super) fn page_of(uid: u64, captures: &[Capture]) -> Page<u64> {
    let links = union(captures);
    let there = |link: usize, at: usize| captures[at].1.as_ref().map(|own| own.binary_search(&links[link]).is_ok());
    let changes = changes(links.len(), captures.len(), there);
    let blank = (0u32..).zip(captures).filter(|(_, (_, links))| links.is_none()).map(|(at, _)| at).collect();
    let timestamps = captures.iter().map(|(time, _)| *time).collect();
    let page = Page { uid, timestamps, blank, links, changes, statuses: vec![] };
    assert_eq!(page.flaw(), None);
    page
}

pub(super) fn in_links_of(uid: u64, sources: &BTreeMap<u64, BTreeSet<i64>>) -> InLinks<u64> {
    let ranges: BTreeSet<i64> = sources.values().flatten().copied().collect();
    let ranges: Vec<i64> = ranges.into_iter().collect();
    let sets: Vec<&BTreeSet<i64>> = sources.values().collect();
    let changes = changes(sets.len(), ranges.len(), |source, at| Some(sets[source].contains(&ranges[at])));
    let record = InLinks { uid, ranges, sources: sources.keys().copied().collect(), changes };
    assert_eq!(record.flaw(), None);
    record
}
