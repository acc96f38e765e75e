//! The second questions to rows about pages that several rows have, after the captures of the rows were compared.
//!
//! [`precedence`](webstrata_layers::record::precedence) gives for each row the windows about which it is asked alone.
//! If the only one is the window of the question, the first answer of the row is valid.

use tonic::Status;
use webstrata_layers::{Uid, Window};

use super::{UidInWindow, distinct};
use crate::clerk::pinned::Pinned;
use crate::clerk::split::{ItemPosition, Split};
use crate::map::Graph;

/// The most windows about which one row is asked for one page. More windows would cost more than the whole page.
const PARTS_MAX: usize = 4;

/// The items of a batch for which the captures of rows were compared.
pub(in crate::clerk) struct Parts<'a> {
    graph: &'a Graph,
    compared: Vec<Compared>,
}

/// An item, its page and window, and the windows about which each row is asked alone.
struct Compared {
    item: usize,
    page: Uid,
    window: Window,
    rows: Vec<(usize, Vec<Window>)>,
}

/// The questions after captures were compared.
pub(in crate::clerk) struct PartQuestions<'a> {
    pub(in crate::clerk) split: Split<'a>,
    /// The item of each question to a row, and the question.
    pub(in crate::clerk) items: Vec<(usize, UidInWindow)>,
    /// The items with too many questions to one row, rising. The whole page answers these.
    pub(in crate::clerk) whole: Vec<usize>,
}

impl<'a> Parts<'a> {
    fn of(&self, item: usize) -> Option<&Compared> {
        self.compared.binary_search_by_key(&item, |compared| compared.item).ok().map(|at| &self.compared[at])
    }

    /// Whether the captures of several rows were compared for an item.
    pub(in crate::clerk) fn are_compared(&self, item: usize) -> bool {
        self.of(item).is_some()
    }

    /// Whether the answer of a row about the window of an item is valid.
    pub(in crate::clerk) fn is_valid(&self, item: usize, row: usize) -> bool {
        self.of(item).is_none_or(|Compared { window, rows, .. }| {
            rows.iter().any(|(known, windows)| *known == row && windows[..] == [*window])
        })
    }

    /// The questions to rows with first answers that are not valid, for items and rows with `is_asked`.
    pub(in crate::clerk) fn asked(&self, is_asked: impl Fn(usize, usize) -> bool) -> PartQuestions<'a> {
        let mut asked = PartQuestions { split: Split::of(self.graph), items: Vec::new(), whole: Vec::new() };
        for &Compared { item, page, window, ref rows } in &self.compared {
            let rows = || rows.iter().filter(|(row, windows)| windows[..] != [window] && is_asked(item, *row));
            if rows().any(|(_, windows)| windows.len() > PARTS_MAX) {
                asked.whole.push(item);
                continue;
            }
            for (row, windows) in rows() {
                let Some(cell) = self.graph.rows[*row].cell_of(page) else { continue };
                for &part in windows {
                    asked.split.add_in(*row, cell, part, asked.items.len());
                    asked.items.push((item, (page, part)));
                }
            }
        }
        asked
    }
}

impl Pinned {
    /// Compares the captures of rows for items about which several rows were asked, if a row may replace captures of
    /// another row. Captures are asked for only if they matter: `is_open` says so, given the answers of the rows. As of
    /// a time, they also matter if there are failures: a row may decide by a capture that another row has replaced by a
    /// failure, or has taken out.
    pub(in crate::clerk) async fn parts(
        &self,
        items: &[UidInWindow],
        split: &Split<'_>,
        is_open: impl Fn(usize, &[ItemPosition]) -> bool,
    ) -> Result<Parts<'_>, Status> {
        let mut open = Vec::new();
        for (item, positions) in split.by_item(items.len()) {
            let window = items[item].1;
            let may_replace = positions.len() > 1 && !self.graph.overlaps.none_in(window);
            let is_as_of = matches!(window, Window::AsOf(_));
            if may_replace && (is_as_of && self.graph.has_failures || is_open(item, positions)) {
                open.push(item);
            }
        }
        let captures = self.captures_by_row(&distinct(open.iter().map(|&item| items[item].0))).await?;
        let compared = open.into_iter().map(|item| {
            let (page, window) = items[item];
            let rows = captures.get(&page).map(|captures| captures.windows(window)).unwrap_or_default();
            Compared { item, page, window, rows }
        });
        Ok(Parts { graph: &self.graph, compared: compared.collect() })
    }
}
