//! The links of a worker's pages, as UIDs: at one date, or at many.
//!
//! A worker has the pages of a range of UIDs, in the order of the store. [`Timed`] holds their links at all dates that
//! are asked for, each with the dates at which it is there, so that the layers are read once; [`Timed::at`] gives those
//! of one date.
//!
//! Memory: 4 bytes a link, 8 a page; of many dates 4 bytes more a link and stretch of dates in which it is there. URLs
//! are numbered by 32 bits.

use super::Ground;
use std::ops::Range;
use webstrata_layers::record::presence;
use webstrata_layers::{Page, Uid, Window, captures_in};
use webstrata_pipeline::engine::job::Stopped;

/// Dates from the first to the last of a stretch.
type Dates = (u16, u16);

/// Links of a worker's pages at many dates. Links are UIDs, or what stands for them.
pub(super) struct Timed<L = u32> {
    uids: Range<Uid>,
    pages: Vec<u32>,
    starts: Vec<usize>,
    /// Rising in each page; a link that is there again after a gap stands there again.
    links: Vec<L>,
    /// As long as `links`; empty where there is one date.
    dates: Vec<Dates>,
    dates_all: usize,
}

/// Links of a worker's pages at one date. Links are UIDs, or what stands for them.
pub(super) struct Adjacency<L = u32> {
    /// The UIDs of this worker.
    pub(super) uids: Range<Uid>,
    /// Pages with links, rising, as UIDs from the first one of this worker on.
    pub(super) pages: Vec<u32>,
    /// Where the links of each page begin; one more at the end.
    pub(super) starts: Vec<usize>,
    /// Links, rising in each page.
    pub(super) links: Vec<L>,
}

/// A number that is below 2^32, since UIDs are (see [`super::analyze`]).
#[expect(clippy::cast_possible_truncation, reason = "stores with more URLs are refused at the start")]
pub(super) fn low(number: u64) -> u32 {
    number as u32
}

/// Reads the links of this worker's pages in these windows.
pub(super) fn read(ground: &Ground<'_>, windows: &[Window]) -> Result<Timed, Stopped> {
    let uids = ground.my_uids();
    // About as many as there will be: all links of the store, shared out.
    let share = ground.store.store().manifest().counts.links / ground.ranges.len() as u64;
    let links = Vec::with_capacity(usize::try_from(share).unwrap_or(0));
    let (pages, starts, dates) = (Vec::new(), vec![0], Vec::new());
    let mut timed = Timed { uids: uids.clone(), pages, starts, links, dates, dates_all: windows.len() };
    let mut page_links = Vec::new();
    ground.each_page(|page| {
        match windows {
            [window] => {
                page.links_in(*window, &mut page_links);
                timed.links.extend(page_links.iter().map(|&link| low(link.0)));
            }
            windows => timed.add_dated(page, windows),
        }
        if timed.links.len() > *timed.starts.last().unwrap_or(&0) {
            timed.pages.push(low(page.uid - uids.start));
            timed.starts.push(timed.links.len());
        }
        Ok(())
    })?;
    Ok(timed)
}

impl Timed {
    /// Adds the links of a page with the dates at which they are there.
    fn add_dated(&mut self, page: &Page, windows: &[Window]) {
        // Dates at which a capture is selected, with its index; stretches of dates without a gap.
        let selected: Vec<(u16, (u32, u32))> = (0u16..)
            .zip(windows)
            .filter_map(|(date, &window)| Some((date, captures_in(&page.timestamps, &page.unknown, window)?)))
            .collect();
        if selected.is_empty() {
            return;
        }
        let captures = u32::try_from(page.timestamps.len()).unwrap_or(u32::MAX);
        let mut changes_by_link: Vec<&[presence::Change]> = vec![&[]; page.links.len()];
        for (link, changes) in presence::by_link(&page.changes) {
            changes_by_link[link as usize] = changes;
        }
        for (&link, changes) in page.links.iter().zip(changes_by_link) {
            let stretches = presence::intervals(changes, captures);
            let mut open: Option<Dates> = None;
            for &(date, (first, last)) in &selected {
                // Stretches are few; the last one that begins not after the window's end is the only one that can
                // reach into it.
                let at = stretches.partition_point(|stretch| stretch.0 <= last);
                if at == 0 || stretches[at - 1].1 < first {
                    continue;
                }
                open = match open {
                    Some((since, until)) if until + 1 == date => Some((since, date)),
                    Some(dates) => {
                        self.links.push(low(link.0));
                        self.dates.push(dates);
                        Some((date, date))
                    }
                    None => Some((date, date)),
                };
            }
            if let Some(dates) = open {
                self.links.push(low(link.0));
                self.dates.push(dates);
            }
        }
    }
}

impl<L: Copy> Timed<L> {
    /// The same with other names of the URLs that are linked to, and what else `rename` gives. It must give as many
    /// links as it gets, in the same order.
    pub(super) fn with_links<M, T>(
        self,
        rename: impl FnOnce(Vec<L>) -> Result<(Vec<M>, T), Stopped>,
    ) -> Result<(Timed<M>, T), Stopped> {
        let Self { uids, pages, starts, links, dates, dates_all } = self;
        let (links, named) = rename(links)?;
        Ok((Timed { uids, pages, starts, links, dates, dates_all }, named))
    }

    /// The links at a date of many.
    pub(super) fn at(&self, date: usize) -> Adjacency<L> {
        let is_present = |at: usize| {
            let (first, last) = self.dates[at];
            usize::from(first) <= date && date <= usize::from(last)
        };
        let (mut pages, mut starts, mut links) = (Vec::with_capacity(self.pages.len()), vec![0], Vec::new());
        for (&page, bounds) in self.pages.iter().zip(self.starts.windows(2)) {
            links.extend((bounds[0]..bounds[1]).filter(|&at| is_present(at)).map(|at| self.links[at]));
            if links.len() > *starts.last().unwrap_or(&0) {
                pages.push(page);
                starts.push(links.len());
            }
        }
        Adjacency { uids: self.uids.clone(), pages, starts, links }
    }

    /// The links at the only date, or at one of many.
    pub(super) fn into_at(self, date: usize) -> Adjacency<L> {
        if self.dates_all > 1 {
            return self.at(date);
        }
        let Self { uids, pages, starts, links, .. } = self;
        Adjacency { uids, pages, starts, links }
    }
}

impl<L> Adjacency<L> {
    /// Number of URLs of this worker.
    pub(super) fn urls(&self) -> usize {
        usize::try_from(self.uids.end - self.uids.start).unwrap_or(usize::MAX)
    }

    /// The UID of the page with this index in `pages`.
    pub(super) fn uid(&self, page: usize) -> u32 {
        low(self.uids.start.0) + self.pages[page]
    }

    /// The links of the page with this index in `pages`.
    pub(super) fn links_of(&self, page: usize) -> &[L] {
        &self.links[self.starts[page]..self.starts[page + 1]]
    }

    /// Number of links of each URL of this worker.
    pub(super) fn out_degrees(&self) -> Vec<u64> {
        let mut degrees = vec![0; self.urls()];
        for (at, &page) in self.pages.iter().enumerate() {
            degrees[page as usize] = self.links_of(at).len() as u64;
        }
        degrees
    }
}
