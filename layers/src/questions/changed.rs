//! The links of a page that differ between two dates, or the pages that began or ceased to link to a URL.
//!
//! A link that is there at one date is gained or lost only if it is known that the page lacks it at the other: the
//! capture that decides then is whole ([`crate::read::dates`] has the same rule for all pages of a store). Cost: the
//! links at both dates. With in-links, if the graph has unknown links, also the captures of each page that links at
//! only one of the dates.

use std::collections::HashSet;

use super::{Ask, Direction, Facts, Given, Precision, Program, Question, Rest};
use crate::record::capture::is_unknown;
use crate::record::time::{AsOf, Window};
use crate::record::uid::{Uid, in_order};
use crate::word::words;

/// The out-links or in-links of one URL that differ between two dates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangedLinks {
    /// The links at the second date only, rising.
    pub gained: Vec<Uid>,
    /// The links at the first date only, rising.
    pub lost: Vec<Uid>,
    /// What is unknown, rising: for out-links, the page itself, if a capture that decides leaves links unknown; for
    /// in-links, pages that link to the URL at one date, and may link at the other.
    pub unknown: Vec<Uid>,
}

/// How a link differs between two dates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkChange {
    /// It is there at the second date only.
    Gained,
    /// It is there at the first date only.
    Lost,
    /// It is there at one date, and unknown at the other.
    Unknown,
}

words!(LinkChange { Gained = "gained", Lost = "lost", Unknown = "unknown" });

impl ChangedLinks {
    /// The changes in order of UIDs. For out-links, only known changes are listed.
    pub fn changes(&self, is_inward: bool) -> Vec<(Uid, LinkChange)> {
        let unknown = if is_inward { &self.unknown[..] } else { &[] };
        let lists =
            [(&self.gained[..], LinkChange::Gained), (&self.lost, LinkChange::Lost), (unknown, LinkChange::Unknown)];
        let mut changes: Vec<(Uid, LinkChange)> =
            lists.iter().flat_map(|&(links, change)| links.iter().map(move |&link| (link, change))).collect();
        changes.sort_unstable_by_key(|&(link, _)| link);
        changes
    }
}

impl ChangedLinks {
    /// All links that differ, gained or lost, rising.
    pub fn links(&self) -> Vec<Uid> {
        let mut links = [&self.gained[..], &self.lost].concat();
        links.sort_unstable();
        links
    }

    /// The part that begins at UID `first` and has at most `links_max` links.
    #[must_use]
    pub fn part(mut self, first: Uid, links_max: usize) -> Self {
        let links = self.links();
        let begin = links.partition_point(|&link| link < first);
        let end = links.get(begin.saturating_add(links_max)).copied();
        for links in [&mut self.gained, &mut self.lost, &mut self.unknown] {
            links.retain(|&link| first <= link && end.is_none_or(|end| link < end));
        }
        self
    }
}

/// The links of one list that the other list lacks; both lists rise.
pub(crate) fn without(list: &[Uid], other: &[Uid]) -> Vec<Uid> {
    let mut others = other.iter().copied().peekable();
    let is_missing = |&link: &Uid| {
        while others.next_if(|&other| other < link).is_some() {}
        others.peek() != Some(&link)
    };
    list.iter().copied().filter(is_missing).collect()
}

/// The question, about several URLs.
#[derive(Debug)]
pub struct Changed {
    uids: Vec<Uid>,
    is_inward: bool,
    dates: [AsOf; 2],
    part: (Uid, usize),
    /// The URLs without an answer as of each date.
    open: [Rest; 2],
    /// The links as of the first date.
    before: Vec<Vec<Uid>>,
    changed: Vec<ChangedLinks>,
    /// The pages whose captures decide whether differences are known.
    in_doubt: Option<Rest>,
    /// The pages whose links are unknown as of each date.
    unknown: [HashSet<Uid>; 2],
}

impl Changed {
    /// Asks about the links of pages, or with `is_inward` about the pages that link to URLs.
    pub fn new(uids: &[Uid], is_inward: bool, dates: [AsOf; 2]) -> Self {
        Self::part(uids, is_inward, dates, (Uid(0), usize::MAX))
    }

    /// The same, for at most `links_max` links of each URL, from the UID `first` on. Only captures of this part are
    /// asked for.
    pub fn part(uids: &[Uid], is_inward: bool, dates: [AsOf; 2], (first, links_max): (Uid, usize)) -> Self {
        Self {
            uids: uids.to_vec(),
            is_inward,
            dates,
            part: (first, links_max),
            open: [Rest::of(uids.to_vec()), Rest::of(uids.to_vec())],
            before: Vec::with_capacity(uids.len()),
            changed: Vec::with_capacity(uids.len()),
            in_doubt: None,
            unknown: Default::default(),
        }
    }
}

impl Program for Changed {
    fn asks(&mut self, facts: Facts) -> Option<Ask<'_>> {
        if !self.is_inward {
            // Before the links, so that a part has as many known differences as it may have.
            let uids = &self.uids;
            let pages = || if facts.has_unknown { in_order(uids.clone()) } else { Vec::new() };
            let in_doubt = self.in_doubt.get_or_insert_with(|| Rest::of(pages()));
            if !in_doubt.is_done() {
                return self.in_doubt.as_ref().map(|in_doubt| Ask::Captures(in_doubt.items()));
            }
        }
        if let Some((open, date)) = self.open.iter().zip(self.dates).find(|(open, _)| !open.is_done()) {
            let direction = if self.is_inward { Direction::In(Precision::Exact) } else { Direction::Out };
            return Some(Ask::Links(open.items(), direction, Window::AsOf(date)));
        }
        let in_doubt = self.in_doubt.get_or_insert_with(|| {
            let differing = || in_order(self.changed.iter().flat_map(ChangedLinks::links).collect());
            Rest::of(if facts.has_unknown { differing() } else { Vec::new() })
        });
        (!in_doubt.is_done()).then(|| Ask::Captures(in_doubt.items()))
    }

    fn take(&mut self, given: Given) {
        match (given, &mut self.in_doubt) {
            (Given::Lists(links), _) if !self.open[0].is_done() => {
                self.before.extend(links.iter().map(<[Uid]>::to_vec));
                self.open[0].done(links.len());
            }
            (Given::Lists(links), _) => {
                for after in links.iter() {
                    let before = std::mem::take(&mut self.before[self.changed.len()]);
                    let uid = self.uids[self.changed.len()];
                    let is_open = |date: usize| !self.is_inward && self.unknown[date].contains(&uid);
                    // A link that is gained is absent at the first date, and one that is lost at the second.
                    let gained = if is_open(0) { Vec::new() } else { without(after, &before) };
                    let lost = if is_open(1) { Vec::new() } else { without(&before, after) };
                    let changed = ChangedLinks { gained, lost, unknown: Vec::new() };
                    self.changed.push(changed.part(self.part.0, self.part.1));
                }
                self.open[1].done(links.len());
            }
            (Given::Captures(captures), Some(in_doubt)) => {
                for (&page, captures) in in_doubt.done(captures.len()).iter().zip(captures.iter()) {
                    for (unknown, date) in self.unknown.iter_mut().zip(self.dates) {
                        if is_unknown(captures, Window::AsOf(date)) {
                            unknown.insert(page);
                        }
                    }
                }
            }
            _ => {}
        }
    }

    fn bytes(&self) -> usize {
        let changed: usize = self.changed.iter().map(|changed| changed.gained.len() + changed.lost.len()).sum();
        let before: usize = self.before.iter().map(Vec::len).sum();
        size_of::<Uid>() * (before + 3 * changed)
    }
}

impl Question for Changed {
    /// The differences of each URL.
    type Answer = Vec<ChangedLinks>;

    fn answer(self) -> Vec<ChangedLinks> {
        let Self { uids, is_inward, unknown: [before, after], .. } = self;
        let known = |(mut changed, uid): (ChangedLinks, Uid)| {
            let ChangedLinks { gained, lost, unknown } = &mut changed;
            if !is_inward {
                unknown.extend([&before, &after].iter().any(|is_open| is_open.contains(&uid)).then_some(uid));
                return changed;
            }
            for (pages, is_open) in [(gained, &before), (lost, &after)] {
                unknown.extend(pages.iter().copied().filter(|page| is_open.contains(page)));
                pages.retain(|page| !is_open.contains(page));
            }
            unknown.sort_unstable();
            changed
        };
        self.changed.into_iter().zip(uids).map(known).collect()
    }
}
