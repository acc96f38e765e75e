//! The pages, hosts or domains that linked to a target, and when ([`mod@crate::record::backlink`] has the rule).
//!
//! ```text
//! target --[Walk: pages that may link, part by part]--> when each linked, its host --> [`tally`] --> answer
//! ```
//!
//! The target is a list of intervals of UIDs. [`scope`] says which pages count, [`referrers`] which rows are selected
//! and in which order, and [`top`] keeps the first rows of an order. The pages come in order of UIDs, for each row of
//! URLs apart, because the count joins the hosts of several rows. Memory: the pages of one part, and the rows of the
//! answer, however many pages link.

pub(crate) mod referrers;
pub(crate) mod scope;
pub(crate) mod tally;
pub(crate) mod top;

use std::ops::Range;

use self::scope::Scope;
use self::tally::{Ranked, Ranking, Tally};
use super::{Ask, Facts, Given, Program, Question, Rest};
use crate::record::backlink::Backlink;
use crate::record::uid::Uid;

/// A page that links, with its times.
pub type LinkingPage = (Uid, Backlink);

/// The way through the pages in a scope that link to a target, row by row.
#[derive(Debug)]
pub(super) struct Walk {
    target: Vec<Range<Uid>>,
    scope: Scope,
    /// The rows of URLs; `None` before they are known.
    rows: Option<Vec<Row>>,
}

/// The way through one row.
#[derive(Debug)]
struct Row {
    /// The interval in which there may be pages of the scope that were not asked for.
    uids: Range<Uid>,
    /// Pages that link at range precision, and whose backlinks were not asked for.
    sources: Rest,
}

impl Walk {
    pub(super) fn new(target: Vec<Range<Uid>>, scope: Scope) -> Self {
        Self { target, scope, rows: None }
    }

    pub(super) fn has_begun(&self) -> bool {
        self.rows.is_some()
    }

    /// The number of rows.
    pub(super) fn rows(&self) -> usize {
        self.rows.as_ref().map_or(0, Vec::len)
    }

    /// Whether all pages of a row were given.
    pub(super) fn is_over(&self, row: usize) -> bool {
        let row = self.rows.as_ref().and_then(|rows| rows.get(row));
        row.is_some_and(|row| row.sources.is_done() && row.uids.is_empty())
    }

    /// What is asked for the next pages of a row that is not over.
    pub(super) fn asks(&self, row: usize) -> Option<Ask<'_>> {
        let Some(rows) = &self.rows else { return Some(Ask::Rows) };
        let Row { uids, sources } = rows.get(row)?;
        if !sources.is_done() {
            return Some(Ask::Backlinks(sources.items(), &self.target));
        }
        // If all pages count, a part that reaches into other rows is of use there.
        let last = if self.scope.within.is_none() { rows.last()? } else { &rows[row] };
        Some(Ask::Sources(&self.target, uids.start..last.uids.end.max(uids.end)))
    }

    /// Takes the answer, and returns the pages that link, if the answer has the next ones.
    pub(super) fn take(&mut self, row: usize, given: Given) -> Vec<LinkingPage> {
        match (given, &mut self.rows) {
            (Given::Rows(rows), walk) => {
                let row = |uids| Row { uids: self.scope.span(uids), sources: Rest::default() };
                *walk = Some(rows.into_iter().map(row).collect());
                Vec::new()
            }
            (Given::Part(sources, next), Some(rows)) => {
                let Some(start) = rows.get(row).map(|row| row.uids.start) else { return Vec::new() };
                for Row { uids, sources: own } in &mut rows[row..] {
                    let end = next.map_or(uids.end, |next| next.min(uids.end));
                    if uids.start < start || uids.start >= end {
                        continue;
                    }
                    let place = |uid: Uid| sources.partition_point(|&source| source < uid);
                    let part = sources[place(uids.start)..place(end)].iter().copied();
                    own.add(part.filter(|&page| self.scope.has(page)));
                    uids.start = end;
                }
                Vec::new()
            }
            (Given::Backlinks(pages, linking), Some(rows)) => {
                rows[row].sources.done(pages);
                linking
            }
            _ => Vec::new(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.rows.iter().flatten().map(|row| size_of_val(row.sources.items())).sum()
    }
}

/// The question which pages linked, with the times of each.
#[derive(Debug)]
pub struct Backlinks {
    walk: Walk,
    row: usize,
    pages: Vec<LinkingPage>,
    /// The bytes of `pages`.
    held: usize,
}

impl Backlinks {
    /// Asks about the URLs of these UIDs.
    pub fn new(target: &[Range<Uid>], scope: &Scope) -> Self {
        Self { walk: Walk::new(target.to_vec(), scope.clone()), row: 0, pages: Vec::new(), held: 0 }
    }
}

impl Program for Backlinks {
    fn asks(&mut self, _: Facts) -> Option<Ask<'_>> {
        while self.walk.is_over(self.row) {
            self.row += 1;
        }
        self.walk.asks(self.row)
    }

    fn take(&mut self, given: Given) {
        let linking = self.walk.take(self.row, given);
        let bytes = |(_, backlink): &LinkingPage| size_of::<LinkingPage>() + size_of_val(&*backlink.stays);
        self.held += linking.iter().map(bytes).sum::<usize>();
        self.pages.extend(linking);
    }

    fn bytes(&self) -> usize {
        self.walk.bytes() + self.held
    }
}

impl Question for Backlinks {
    /// The pages, in order of UIDs.
    type Answer = Vec<LinkingPage>;

    fn answer(self) -> Vec<LinkingPage> {
        self.pages
    }
}

/// Linking pages of one row, and stretches of them that have one host.
#[derive(Clone, Debug, Default)]
pub struct LinkingPart {
    /// The index of the row.
    pub row: usize,
    /// The pages, in order of UIDs.
    pub pages: Vec<LinkingPage>,
    /// Hosts, each with the number of its pages.
    pub hosts: Vec<(String, u64)>,
}

/// The most pages of a row that are asked for at once if other rows may have pages of the same hosts: they wait for
/// these.
const WAITING: usize = 1 << 14;

/// The question which pages, hosts or domains linked, counted, selected and ordered.
pub struct Referrers {
    walk: Walk,
    ranking: Ranking,
    tally: Option<Tally>,
    /// The row whose pages are asked for.
    row: usize,
    kept: Option<Vec<LinkingPart>>,
    kept_max: usize,
}

impl Referrers {
    /// The most rows of one answer over a network.
    pub const ROWS_MAX: u64 = 10_000;

    /// Asks about the URLs of these UIDs.
    pub fn new(target: &[Range<Uid>], scope: &Scope, ranking: Ranking) -> Self {
        let walk = Walk::new(target.to_vec(), scope.clone());
        Self { walk, ranking, tally: None, row: 0, kept: None, kept_max: 0 }
    }

    /// Keeps all linking pages, if they are at most `pages_max`, for another question about the same target.
    #[must_use]
    pub fn keeping(self, pages_max: usize) -> Self {
        Self { kept: Some(Vec::new()), kept_max: pages_max, ..self }
    }

    /// The kept pages, after the last step; `None` if they were too many.
    pub fn kept(&mut self) -> Option<Vec<LinkingPart>> {
        self.kept.take()
    }

    /// The answer from pages that an earlier question kept, for a store with `rows` rows of URLs.
    pub fn ranked(ranking: Ranking, rows: usize, kept: &[LinkingPart]) -> Ranked {
        let mut tally = Tally::new(ranking, rows);
        for LinkingPart { row, pages, hosts } in kept {
            tally.feed(*row, pages.iter().cloned(), hosts.iter().cloned());
        }
        (0..rows).for_each(|row| tally.feed(row, [], []));
        tally.finish()
    }

    /// Hands pages to the count.
    fn feed(&mut self, pages: Vec<LinkingPage>, hosts: Vec<(String, u64)>) {
        let row = self.row;
        if let Some(kept) = &mut self.kept {
            kept.push(LinkingPart { row, pages: pages.clone(), hosts: hosts.clone() });
            if kept.iter().map(|part| part.pages.len()).sum::<usize>() > self.kept_max {
                self.kept = None;
            }
        }
        if let Some(tally) = &mut self.tally {
            tally.feed(row, pages, hosts);
        }
    }
}

impl Program for Referrers {
    fn asks(&mut self, _: Facts) -> Option<Ask<'_>> {
        let Some(tally) = &mut self.tally else { return Some(Ask::Rows) };
        while let Some(row) = tally.needs() {
            if !self.walk.is_over(row) {
                self.row = row;
                let most = if self.walk.rows() > 1 { WAITING } else { usize::MAX };
                return self.walk.asks(row).map(|ask| match ask {
                    Ask::Backlinks(pages, target) => Ask::Referrers(&pages[..pages.len().min(most)], target),
                    ask => ask,
                });
            }
            // Without pages, the row ends.
            tally.feed(row, [], []);
        }
        None
    }

    fn take(&mut self, given: Given) {
        match given {
            Given::Rows(rows) => {
                self.tally = Some(Tally::new(self.ranking, rows.len()));
                self.walk.take(0, Given::Rows(rows));
            }
            Given::Referrers(pages, linking, hosts) => {
                let linking = self.walk.take(self.row, Given::Backlinks(pages, linking));
                // A call without pages would end the row.
                if !linking.is_empty() {
                    self.feed(linking, hosts);
                }
            }
            given => drop(self.walk.take(self.row, given)),
        }
    }

    fn bytes(&self) -> usize {
        self.walk.bytes() + self.tally.as_ref().map_or(0, Tally::bytes)
    }
}

impl Question for Referrers {
    type Answer = Ranked;

    fn answer(self) -> Ranked {
        self.tally.map(Tally::finish).unwrap_or_default()
    }
}
