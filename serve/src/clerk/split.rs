//! Splits a batch into questions to cells, and records where the answer to each item stands. All items of one cell and
//! one window are one question.

use webstrata_layers::Window;

use crate::clerk::call::CellQuestion;
use crate::map::Graph;
use crate::protocol::proto::CellName;
use crate::protocol::proto::question::Question as QuestionKind;

/// The position of an answer to an item.
#[derive(Clone, Copy)]
pub(super) struct Spot {
    /// The index of the item.
    pub(super) item: usize,
    /// The index of the question.
    pub(super) part: usize,
    /// The index in the answer to the question.
    pub(super) at: usize,
}

/// The items of one question.
pub(super) struct Share {
    /// The index of the row, oldest first.
    pub(super) row: usize,
    pub(super) cell: CellName,
    /// The window; all time if the question has no window.
    pub(super) window: Window,
    pub(super) items: Vec<usize>,
}

/// Items by cell.
pub(super) struct Split<'a> {
    graph: &'a Graph,
    /// For each row and cell, the index of the question for each window.
    numbers: Vec<Vec<Vec<(Window, usize)>>>,
    pub(super) shares: Vec<Share>,
    /// In the order in which items were added.
    pub(super) spots: Vec<Spot>,
}

impl<'a> Split<'a> {
    pub(super) fn of(graph: &'a Graph) -> Self {
        let numbers = graph.rows.iter().map(|row| vec![Vec::new(); row.cells.len()]).collect();
        Self { graph, numbers, shares: Vec::new(), spots: Vec::new() }
    }

    /// Asks a cell about an item.
    pub(super) fn add(&mut self, row: usize, place: usize, item: usize) {
        self.add_at(row, place, Window::ALWAYS, item);
    }

    /// Asks a cell about an item in a window.
    pub(super) fn add_at(&mut self, row: usize, place: usize, window: Window, item: usize) {
        let numbers = &mut self.numbers[row][place];
        // Consecutive items mostly have the same window.
        let known = numbers.iter().rev().find(|(own, _)| *own == window).map(|&(_, part)| part);
        let part = known.unwrap_or_else(|| {
            let map = &self.graph.rows[row];
            let cell = CellName { row: map.row, partition: map.cells[place].partition };
            numbers.push((window, self.shares.len()));
            self.shares.push(Share { row, cell, window, items: Vec::new() });
            self.shares.len() - 1
        });
        let items = &mut self.shares[part].items;
        self.spots.push(Spot { item, part, at: items.len() });
        items.push(item);
    }

    /// The questions.
    pub(super) fn parts(&self, mut question: impl FnMut(&Share) -> QuestionKind) -> Vec<CellQuestion> {
        self.shares.iter().map(|share| CellQuestion { cell: share.cell, question: question(share) }).collect()
    }

    /// The spots of each item, given the number of items. The items must have been added in order.
    pub(super) fn by_item(&self, items: usize) -> impl Iterator<Item = (usize, &[Spot])> {
        let mut rest = &self.spots[..];
        (0..items).map(move |item| {
            let (own, after) = rest.split_at(rest.iter().take_while(|spot| spot.item == item).count());
            rest = after;
            (item, own)
        })
    }
}

/// The boundaries of consecutive lists of these lengths.
pub(super) fn bounds(counts: &[u32]) -> Vec<usize> {
    let mut ends = Vec::with_capacity(counts.len() + 1);
    ends.push(0);
    let mut end = 0;
    ends.extend(counts.iter().map(|&count| {
        end += count as usize;
        end
    }));
    ends
}
