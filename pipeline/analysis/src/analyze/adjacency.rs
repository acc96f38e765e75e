//! The links of a worker's pages, as UIDs: at one date, or at many.
//!
//! A worker has the pages of a range of UIDs, in the order of the store. [`Timed`] holds the links of the pages at all
//! requested dates, and each link has the dates at which it is there. The layers are therefore read once. [`Timed::at`]
//! returns the links of one date.
//!
//! Memory: 4 bytes per link and 12 per page. With several dates, each entry takes 4 bytes more, and a link or a page
//! has one entry for each stretch of dates in which it is there. URLs are numbered by 32 bits.

use super::AnalysisContext;
use std::ops::Range;
use webstrata_engine::Stopped;
use webstrata_layers::record::presence;
use webstrata_layers::{Change, Page, PageState, Uid, Window};

/// The first and the last date of a stretch.
type Dates = (u16, u16);

/// The links of a worker's pages at many dates, as UIDs or as mirrors.
pub(super) struct Timed<L = u32> {
    uids: Range<Uid>,
    pages: Vec<u32>,
    starts: Vec<usize>,
    /// The links, rising in each page. A link that returns after a gap has another entry.
    links: Vec<L>,
    /// The dates of each link. Empty if there is one date.
    dates: Vec<Dates>,
    dates_all: usize,
    /// The pages that are there ([`webstrata_layers::Captures::is_alive`]), numbered as in `pages`. A page that returns
    /// after a gap has another entry.
    alive: Vec<u32>,
    /// The dates of each page in `alive`. Empty if there is one date.
    alive_dates: Vec<Dates>,
    /// The pages that have failed, at a date or before it, and their states. `marked_dates` has the dates of each
    /// entry.
    marked: Vec<(u32, PageState)>,
    marked_dates: Vec<Dates>,
}

/// The links of a worker's pages at one date, as UIDs or as mirrors.
pub(super) struct Adjacency<L = u32> {
    /// The UIDs of this worker.
    pub(super) uids: Range<Uid>,
    /// The pages with links, rising, as UIDs counted from the first UID of this worker.
    pub(super) pages: Vec<u32>,
    /// The index in `links` at which the links of each page begin, and the length of `links` at the end.
    pub(super) starts: Vec<usize>,
    /// The links, rising in each page.
    pub(super) links: Vec<L>,
    /// The pages that are there at the date, with or without links, rising, numbered as in `pages`.
    pub(super) alive: Vec<u32>,
    /// The pages that have failed, at the date or before it, and their states.
    pub(super) marked: Vec<(u32, PageState)>,
}

/// Converts a number that is below 2^32, as all UIDs are (see [`super::analyze`]).
#[expect(clippy::cast_possible_truncation, reason = "stores with more URLs are refused at the start")]
pub(super) fn low(number: u64) -> u32 {
    number as u32
}

/// Reads the links of this worker's pages in these windows.
pub(super) fn read(context: &AnalysisContext<'_>, windows: &[Window]) -> Result<Timed, Stopped> {
    read_and_visit(context, windows, |_| {})
}

/// As [`read`], and calls `visit` with each page.
pub(super) fn read_and_visit(
    context: &AnalysisContext<'_>,
    windows: &[Window],
    mut visit: impl FnMut(&Page),
) -> Result<Timed, Stopped> {
    let uids = context.my_uids();
    // An estimate of the number of links: an equal share of all links of the store.
    let share = context.store.store().manifest().counts.links / context.ranges.len() as u64;
    let links = Vec::with_capacity(usize::try_from(share).unwrap_or(0));
    let (pages, starts, dates, dates_all) = (Vec::new(), vec![0], Vec::new(), windows.len());
    let (alive, alive_dates, marked, marked_dates) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let first = uids.start;
    let mut timed = Timed { uids, pages, starts, links, dates, dates_all, alive, alive_dates, marked, marked_dates };
    let mut page_links = Vec::new();
    context.each_page(|page| {
        visit(page);
        match windows {
            [window] => {
                page.links_in(*window, &mut page_links);
                timed.links.extend(page_links.iter().map(|&link| low(link.0)));
                let number = low(page.uid - first);
                timed.alive.extend(page.captures().is_alive(*window).then_some(number));
                timed.marked.extend(mark(page, *window).map(|state| (number, state)));
            }
            windows => timed.add_dated(page, windows),
        }
        if timed.links.len() > *timed.starts.last().unwrap_or(&0) {
            timed.pages.push(low(page.uid - first));
            timed.starts.push(timed.links.len());
        }
        Ok(())
    })?;
    Ok(timed)
}

impl Timed {
    /// Adds the links of a page with the dates at which they are there.
    fn add_dated(&mut self, page: &Page, windows: &[Window]) {
        let number = low(page.uid - self.uids.start);
        let is_alive = |window: &&Window| page.captures().is_alive(**window);
        let dates_alive = (0u16..).zip(windows).filter(|(_, window)| is_alive(window)).map(|(date, _)| date);
        for stretch in without_gaps(dates_alive) {
            self.alive.push(number);
            self.alive_dates.push(stretch);
        }
        if !page.statuses.is_empty() {
            let marks: Vec<_> = windows.iter().map(|&window| mark(page, window)).collect();
            for state in [PageState::Back, PageState::Gone, PageState::Missing] {
                let dates = (0u16..).zip(&marks).filter(|(_, mark)| **mark == Some(state)).map(|(date, _)| date);
                for stretch in without_gaps(dates) {
                    self.marked.push((number, state));
                    self.marked_dates.push(stretch);
                }
            }
        }
        // The dates at which the window selects captures, with the indexes of the first and the last of these captures.
        let selected: Vec<(u16, (u32, u32))> = (0u16..)
            .zip(windows)
            .filter_map(|(date, &window)| Some((date, page.captures().selected(window)?)))
            .collect();
        if selected.is_empty() {
            return;
        }
        let captures = u32::try_from(page.timestamps.len()).unwrap_or(u32::MAX);
        let mut changes_by_link: Vec<&[Change]> = vec![&[]; page.links.len()];
        for (link, changes) in presence::by_link(&page.changes) {
            changes_by_link[link as usize] = changes;
        }
        for (&link, changes) in page.links.iter().zip(changes_by_link) {
            let stretches = presence::intervals(changes, captures);
            let has_link = |(first, last): (u32, u32)| {
                // There are few stretches. It is enough to test the last stretch that begins at or before the end of
                // the window: if an earlier stretch reaches into the window, so does this one.
                let at = stretches.partition_point(|stretch| stretch.0 <= last);
                at > 0 && stretches[at - 1].1 >= first
            };
            let dates = selected.iter().filter(|(_, captures)| has_link(*captures)).map(|&(date, _)| date);
            for stretch in without_gaps(dates) {
                self.links.push(low(link.0));
                self.dates.push(stretch);
            }
        }
    }
}

/// Returns the state of a page that has failed as of a time; `None` for other pages.
fn mark(page: &Page, window: Window) -> Option<PageState> {
    let Window::AsOf(as_of) = window else { return None };
    page.captures().state(as_of).filter(|state| *state != PageState::Alive)
}

/// Groups rising dates into stretches without gaps.
fn without_gaps(dates: impl Iterator<Item = u16>) -> impl Iterator<Item = Dates> {
    let mut dates = dates.peekable();
    std::iter::from_fn(move || {
        let first = dates.next()?;
        let mut last = first;
        while let Some(next) = dates.next_if(|&next| next == last + 1) {
            last = next;
        }
        Some((first, last))
    })
}

impl<L: Copy> Timed<L> {
    /// Replaces the links by the links that `rename` returns, and passes its other result on. `rename` must return as
    /// many links as it gets, in the same order.
    pub(super) fn with_links<M, T>(
        self,
        rename: impl FnOnce(Vec<L>) -> Result<(Vec<M>, T), Stopped>,
    ) -> Result<(Timed<M>, T), Stopped> {
        let Self { uids, pages, starts, links, dates, dates_all, alive, alive_dates, marked, marked_dates } = self;
        let (links, named) = rename(links)?;
        Ok((Timed { uids, pages, starts, links, dates, dates_all, alive, alive_dates, marked, marked_dates }, named))
    }

    /// Returns the links at one of several dates.
    pub(super) fn at(&self, date: usize) -> Adjacency<L> {
        let holds = |(first, last): Dates| usize::from(first) <= date && date <= usize::from(last);
        let (mut pages, mut starts, mut links) = (Vec::with_capacity(self.pages.len()), vec![0], Vec::new());
        for (&page, bounds) in self.pages.iter().zip(self.starts.windows(2)) {
            links.extend((bounds[0]..bounds[1]).filter(|&at| holds(self.dates[at])).map(|at| self.links[at]));
            if links.len() > *starts.last().unwrap_or(&0) {
                pages.push(page);
                starts.push(links.len());
            }
        }
        let alive = self.alive.iter().zip(&self.alive_dates).filter(|(_, dates)| holds(**dates)).map(|(&page, _)| page);
        let marked =
            self.marked.iter().zip(&self.marked_dates).filter(|(_, dates)| holds(**dates)).map(|(&mark, _)| mark);
        let (alive, marked) = (alive.collect(), marked.collect());
        Adjacency { uids: self.uids.clone(), pages, starts, links, alive, marked }
    }

    /// Returns the links at the only date, or at one of several dates.
    pub(super) fn into_at(self, date: usize) -> Adjacency<L> {
        if self.dates_all > 1 {
            return self.at(date);
        }
        let Self { uids, pages, starts, links, alive, marked, .. } = self;
        Adjacency { uids, pages, starts, links, alive, marked }
    }
}

impl<L> Adjacency<L> {
    /// Returns the number of URLs of this worker.
    pub(super) fn urls(&self) -> usize {
        usize::try_from(self.uids.end - self.uids.start).unwrap_or(usize::MAX)
    }

    /// Returns the UID of the page with this index in `pages`.
    pub(super) fn uid(&self, page: usize) -> u32 {
        low(self.uids.start.0) + self.pages[page]
    }

    /// Returns the links of the page with this index in `pages`.
    pub(super) fn links_of(&self, page: usize) -> &[L] {
        &self.links[self.starts[page]..self.starts[page + 1]]
    }

    /// Returns the number of links of each URL of this worker.
    pub(super) fn out_degrees(&self) -> Vec<u64> {
        let mut degrees = vec![0; self.urls()];
        for (at, &page) in self.pages.iter().enumerate() {
            degrees[page as usize] = self.links_of(at).len() as u64;
        }
        degrees
    }
}
