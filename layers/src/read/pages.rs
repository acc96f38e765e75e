//! The pages of a store one by one, in order, joined over all rows, for analyses and exports.
//!
//! A stream ([`Pages`]) reads all rows side by side and joins the records of one UID ([`crate::record::join`]). Memory:
//! a row group of each row, and one page. Each row group of the range is read at most once. A stream ends after its
//! first error.

use std::ops::Range;

use crate::error::Error;
use crate::read::cached::Kind;
use crate::read::reader::Reader;
use crate::read::rows::Records;
use crate::record::join;
use crate::record::join::{has_removed, without_removed};
use crate::record::page::Page;
use crate::record::page::evidence::Evidence;
use crate::record::uid::Uid;

impl Reader {
    /// The pages with a UID in a range, in order.
    pub fn pages(&self, uids: Range<Uid>) -> Pages<'_> {
        self.pages_of(0..self.rows(), uids)
    }

    /// The same from some rows alone: each page joins the records in these rows.
    pub fn pages_of(&self, rows: impl IntoIterator<Item = usize>, uids: Range<Uid>) -> Pages<'_> {
        let row = |row| (self.row_records(row, uids.clone(), Kind::Out), None);
        Pages { rows: rows.into_iter().map(row).collect(), begun: false }
    }

    /// Splits the UIDs of the store into `parts` consecutive ranges with about the same number of pages each. The
    /// ranges cover all UIDs. They begin where row groups begin, so that each row group is read for one range.
    ///
    /// # Errors
    /// Errors of the storage.
    pub fn ranges(&self, parts: usize) -> Result<Vec<Range<Uid>>, Error> {
        let mut groups = Vec::new();
        for row in 0..self.rows() {
            groups.extend(self.row_groups(row)?.into_iter().map(|(first, _, pages)| (first, pages)));
        }
        groups.sort_unstable();
        let all: usize = groups.iter().map(|(_, pages)| pages).sum();
        let end = Uid(self.store().manifest().counts.urls);
        let (mut ranges, mut start, mut seen) = (Vec::with_capacity(parts), Uid(0), 0);
        for (first, pages) in groups {
            while ranges.len() + 1 < parts && seen * parts >= all * (ranges.len() + 1) {
                ranges.push(start..first);
                start = first;
            }
            seen += pages;
        }
        while ranges.len() + 1 < parts {
            ranges.push(start..end);
            start = end;
        }
        ranges.push(start..end);
        Ok(ranges)
    }
}

/// A stream of pages; see the head of this file.
pub struct Pages<'a> {
    /// The rows, each with the UID of its current record.
    rows: Vec<(Records<'a>, Option<Uid>)>,
    begun: bool,
}

impl Pages<'_> {
    /// Reads the next page into `page` and reuses its memory. Returns whether there was a page.
    ///
    /// # Errors
    /// Files that cannot be read, files with a wrong checksum, damaged records. The contents of `page` are then
    /// unspecified.
    pub fn read(&mut self, page: &mut Page) -> Result<bool, Error> {
        let read = self.advance(page);
        if read.is_err() {
            self.rows.clear();
        }
        read
    }

    fn advance(&mut self, page: &mut Page) -> Result<bool, Error> {
        if !self.begun {
            self.begun = true;
            self.rows.iter_mut().try_for_each(advance)?;
        }
        // A page whose captures were all removed is skipped.
        while let Some(uid) = self.rows.iter().filter_map(|(_, head)| *head).min() {
            if self.take(uid, page)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Joins the records of a UID, which is the current record of some rows, into `page`. Returns whether a capture is
    /// left.
    fn take(&mut self, uid: Uid, page: &mut Page) -> Result<bool, Error> {
        let mut uid_rows = self.rows.iter_mut().filter(|(_, head)| *head == Some(uid));
        let (Some(first), second) = (uid_rows.next(), uid_rows.next()) else { return Ok(false) };
        let Some(second) = second else {
            first.0.read(|view| view.page_into(page))?;
            advance(first)?;
            if has_removed(page) {
                let left = without_removed(std::mem::take(page), &mut Evidence::default());
                return Ok(left.map(|left| *page = left).is_some());
            }
            return Ok(true);
        };
        let mut pages = Vec::new();
        for row in [first, second].into_iter().chain(uid_rows) {
            pages.extend(row.0.read(|view| view.page())?);
            advance(row)?;
        }
        let joined = join::pages(&pages.iter().collect::<Vec<_>>());
        Ok(joined.map(|joined| *page = joined.page).is_some())
    }
}

fn advance((records, head): &mut (Records<'_>, Option<Uid>)) -> Result<(), Error> {
    *head = records.advance()?;
    Ok(())
}

/// Errors: see [`Pages::read`].
impl Iterator for Pages<'_> {
    type Item = Result<Page, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut page = Page::default();
        self.read(&mut page).map(|read| read.then_some(page)).transpose()
    }
}
