//! The pages of a store that differ between two dates ([`crate::read::dates`] has the rule).
//!
//! UIDs rise, and times are seconds, UTC. Cost: one pass over the records of pages in ranges of UIDs; one pass answers
//! for both dates. Row groups outside of the ranges are not read. Memory: see [`crate::read::pages`].

use std::ops::Range;

use crate::error::Error;
use crate::read::dates::{PageBetween, Standing};
use crate::read::pages::Pages;
use crate::read::reader::Reader;
use crate::record::capture::CaptureTime;
use crate::record::page::Page;
use crate::record::time::{AsOf, Window};
use crate::record::uid::Uid;

/// A stream of the pages in some ranges of UIDs that differ between two dates; see the head of this file. The stream
/// ends after the first error. Errors: files that cannot be read, files with a wrong checksum, damaged records.
pub struct Between<'a> {
    dates: [AsOf; 2],
    pages: Vec<Pages<'a>>,
    page: Page,
    links: [Vec<Uid>; 2],
}

impl Reader {
    /// The pages in ranges of UIDs that differ between two dates, range by range, each range in order.
    pub fn between(&self, dates: [AsOf; 2], uids: impl IntoIterator<Item = Range<Uid>>) -> Between<'_> {
        let mut pages: Vec<Pages<'_>> = uids.into_iter().map(|uids| self.pages(uids)).collect();
        pages.reverse();
        Between { dates, pages, page: Page::default(), links: Default::default() }
    }
}

impl Between<'_> {
    fn advance(&mut self) -> Result<Option<PageBetween>, Error> {
        while let Some(pages) = self.pages.last_mut() {
            if !pages.read(&mut self.page)? {
                self.pages.pop();
                continue;
            }
            let (page, captures) = (&self.page, self.page.captures());
            let deciding = self.dates.map(|date| captures.deciding(date));
            // If the same capture decides at both dates, the links are the same.
            let decides = deciding.map(|at| {
                at.map(|at| CaptureTime {
                    time: captures.times[at as usize],
                    known: page.is_known(at),
                    status: captures.status(at),
                })
            });
            if decides[0] == decides[1] && decides[0].is_none_or(|capture| capture.is_whole()) {
                continue;
            }
            let standings = decides.map(Standing::of);
            for (links, date) in self.links.iter_mut().zip(self.dates) {
                links.clear();
                page.links_in(Window::AsOf(date), links);
            }
            let [before, after] = &self.links;
            if let Some(page) = PageBetween::new(page.uid, standings, [before, after]) {
                return Ok(Some(page));
            }
        }
        Ok(None)
    }
}

impl Iterator for Between<'_> {
    type Item = Result<PageBetween, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let page = self.advance();
        if page.is_err() {
            self.pages.clear();
        }
        page.transpose()
    }
}
