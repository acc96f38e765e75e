//! The links of a page that differ between two dates, or the pages that began or ceased to link to a URL.
//!
//! The links of a page with unknown links at one of the dates are neither gained nor lost ([`crate::read::dates`] has
//! the same rule for all pages of a store). Cost: the links at both dates. With in-links, if the graph has unknown
//! links, also the captures of each page that links at only one of the dates.

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
    /// Pages with unknown links at one of the dates, rising: for out-links, the page itself; for in-links, pages that
    /// link to the URL at the other date.
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
    /// The changes in order of UIDs. For out-links no change is unknown: the links of a page are unknown together.
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
    unknown: HashSet<Uid>,
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
            unknown: HashSet::new(),
        }
    }
}

impl Program for Changed {
    fn asks(&mut self, facts: Facts) -> Option<Ask<'_>> {
        if let Some((open, date)) = self.open.iter().zip(self.dates).find(|(open, _)| !open.is_done()) {
            let direction = if self.is_inward { Direction::In(Precision::Exact) } else { Direction::Out };
            return Some(Ask::Links(open.items(), direction, Window::AsOf(date)));
        }
        let in_doubt = self.in_doubt.get_or_insert_with(|| {
            Rest::of(match self.is_inward {
                _ if !facts.has_unknown => Vec::new(),
                true => in_order(self.changed.iter().flat_map(ChangedLinks::links).collect()),
                false => in_order(self.uids.clone()),
            })
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
                    let (gained, lost) = (without(after, &before), without(&before, after));
                    let changed = ChangedLinks { gained, lost, unknown: Vec::new() };
                    self.changed.push(changed.part(self.part.0, self.part.1));
                }
                self.open[1].done(links.len());
            }
            (Given::Captures(captures), Some(in_doubt)) => {
                for (&page, captures) in in_doubt.done(captures.len()).iter().zip(captures.iter()) {
                    if self.dates.iter().any(|&date| is_unknown(captures, date)) {
                        self.unknown.insert(page);
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
        let Self { uids, is_inward, unknown, .. } = self;
        let known = |(mut changed, uid): (ChangedLinks, Uid)| {
            if !is_inward {
                let is_unknown = unknown.contains(&uid);
                return if is_unknown { ChangedLinks { unknown: vec![uid], ..Default::default() } } else { changed };
            }
            changed.unknown = changed.links().into_iter().filter(|page| unknown.contains(page)).collect();
            changed.gained.retain(|page| !unknown.contains(page));
            changed.lost.retain(|page| !unknown.contains(page));
            changed
        };
        self.changed.into_iter().zip(uids).map(known).collect()
    }
}
