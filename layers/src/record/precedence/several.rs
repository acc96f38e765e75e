//! The links of a page that has a record in several rows.
//!
//! [`precedence`] has the rule: the windows about which each row is asked. This file asks the rows, for each form of
//! graph with the rows at hand ([`PageInRow`]: layers and cells). A cluster asks the rows about many pages in one call,
//! by the same rule.
//! Cost: captures are read only if a newer row may replace a capture in the window.

use crate::record::capture::captures::{Captures, CapturesBuf};
use crate::record::precedence::{self, Overlaps, unite};
use crate::record::time::Window;
use crate::record::uid::Uid;

/// The record of a page in one row. The row answers alone.
pub trait PageInRow {
    /// The memory for answers.
    type Scratch;

    /// The errors of the storage.
    type Error;

    /// Whether a capture of the record may have a status other than 200.
    fn has_statuses(&self) -> bool;

    /// The captures that may decide about the window, and maybe others. Without statuses, the latest capture up to the
    /// time of the question is enough.
    ///
    /// # Errors
    /// Errors of the storage, here and in all methods.
    fn captures(
        &self,
        window: Window,
        has_statuses: bool,
        scratch: &mut Self::Scratch,
    ) -> Result<RowCaptures<'_>, Self::Error>;

    /// Replaces the contents of `links` by the links of the page in any of the windows, rising.
    ///
    /// # Errors
    /// See [`PageInRow::captures`].
    fn links_in(
        &self,
        windows: &[Window],
        scratch: &mut Self::Scratch,
        links: &mut Vec<Uid>,
    ) -> Result<(), Self::Error>;

    /// Whether the page has the link in any of the windows.
    ///
    /// # Errors
    /// See [`PageInRow::captures`].
    fn has_link_in(&self, link: Uid, windows: &[Window], scratch: &mut Self::Scratch) -> Result<bool, Self::Error>;
}

/// Captures that the record has in memory, or a copy of captures.
pub enum RowCaptures<'a> {
    /// Captures in the memory of the record.
    Held(Captures<'a>),
    /// A copy.
    Copied(CapturesBuf),
}

impl RowCaptures<'_> {
    fn view(&self) -> Captures<'_> {
        match self {
            RowCaptures::Held(captures) => *captures,
            RowCaptures::Copied(captures) => captures.view(),
        }
    }
}

/// The records of a page, the oldest row first, and the times in which the rows may replace captures of each other.
pub struct PageInRows<'a, P> {
    /// The records.
    pub pages: &'a [P],
    /// The times.
    pub overlaps: &'a Overlaps,
}

impl<'a, P: PageInRow> PageInRows<'a, P> {
    /// Replaces the contents of `links` by the links of the page in the window, rising. `of_row` is a buffer.
    ///
    /// # Errors
    /// Errors of the storage.
    pub fn links_into(
        &self,
        window: Window,
        scratch: &mut P::Scratch,
        (of_row, links): (&mut Vec<Uid>, &mut Vec<Uid>),
    ) -> Result<(), P::Error> {
        let captures = self.captures(window, scratch)?;
        let captures = views(&captures);
        links.clear();
        for (row, page) in self.pages.iter().enumerate() {
            if asking(&captures, row, window, |windows| page.links_in(windows, scratch, of_row))?.is_some() {
                unite(links, of_row);
            }
        }
        Ok(())
    }

    /// Whether the page has the link in the window. Asks the newest row first.
    ///
    /// # Errors
    /// Errors of the storage.
    pub fn has_link(&self, link: Uid, window: Window, scratch: &mut P::Scratch) -> Result<bool, P::Error> {
        let captures = self.captures(window, scratch)?;
        self.row_has_link(&views(&captures), link, window, scratch)
    }

    /// Whether the page has the link in the window, given that one of the rows alone has it: in the window, or, as of a
    /// time, at any time. Links are read only if they are needed.
    ///
    /// # Errors
    /// Errors of the storage.
    pub fn still_has_link(&self, link: Uid, window: Window, scratch: &mut P::Scratch) -> Result<bool, P::Error> {
        let captures = self.captures(window, scratch)?;
        let captures = views(&captures);
        let all_count = matches!(window, Window::Seen { .. }) && precedence::all_count(&captures, window);
        Ok(all_count || self.row_has_link(&captures, link, window, scratch)?)
    }

    fn row_has_link(
        &self,
        captures: &[Captures<'_>],
        link: Uid,
        window: Window,
        scratch: &mut P::Scratch,
    ) -> Result<bool, P::Error> {
        for (row, page) in self.pages.iter().enumerate().rev() {
            if asking(captures, row, window, |windows| page.has_link_in(link, windows, scratch))? == Some(true) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The captures of each row that may decide about the window; empty if the answers of all rows are valid.
    fn captures(&self, window: Window, scratch: &mut P::Scratch) -> Result<Vec<RowCaptures<'a>>, P::Error> {
        if self.overlaps.none_in(window) {
            return Ok(Vec::new());
        }
        let has_statuses = self.pages.iter().any(P::has_statuses);
        self.pages.iter().map(|page| page.captures(window, has_statuses, scratch)).collect()
    }
}

fn views<'a>(captures: &'a [RowCaptures<'_>]) -> Vec<Captures<'a>> {
    captures.iter().map(RowCaptures::view).collect()
}

/// Asks a row about its windows; `None` if it has none. Without `captures`, the row is asked about `window`.
fn asking<T, E>(
    captures: &[Captures<'_>],
    row: usize,
    window: Window,
    ask: impl FnOnce(&[Window]) -> Result<T, E>,
) -> Result<Option<T>, E> {
    if captures.is_empty() {
        return ask(&[window]).map(Some);
    }
    let windows = precedence::windows(captures, row, window);
    (!windows.is_empty()).then(|| ask(&windows)).transpose()
}
