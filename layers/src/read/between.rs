//! The pages of a store that differ from one date to another ([`crate::read::dates`] has the rule).
//!
//! UIDs rise; times are seconds, UTC. Cost: one pass over the records of pages in ranges of UIDs, which both dates are
//! answered from; row groups outside of the ranges are not read. Memory: see [`crate::read::pages`].

use std::ops::Range;

use crate::error::Error;
use crate::read::dates::{PageBetween, Standing};
use crate::read::pages::Pages;
use crate::read::reader::Reader;
use crate::record::capture::CaptureTime;
use crate::record::page::Page;
use crate::record::time::{AsOf, Window};
use crate::record::uid::Uid;

/// A stream of the pages of some UIDs that differ from one date to another; see the head of this file. Errors are files
/// that cannot be read, do not have their checksum, or hold a record that is not sound; the first one ends it.
pub struct Between<'a> {
    dates: [AsOf; 2],
    pages: Vec<Pages<'a>>,
    page: Page,
    links: [Vec<Uid>; 2],
}

impl Reader {
    /// The pages of ranges of UIDs that differ from one date to another, range by range, each in order.
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
            // The same capture has the same links.
            let is_same = deciding[0] == deciding[1] && deciding[0].is_none_or(|at| page.is_known(at));
            if is_same {
                continue;
            }
            let standings = deciding.map(|at| {
                Standing::of(at.map(|at| CaptureTime {
                    time: captures.times[at as usize],
                    known: page.is_known(at),
                    status: captures.status(at),
                }))
            });
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
