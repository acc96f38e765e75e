//! Splits a batch into questions to cells, and records the position of the answer to each item. All items of one cell
//! and one window are one question.

use webstrata_layers::Window;

use crate::clerk::call::CellQuestion;
use crate::map::Graph;
use crate::protocol::proto::CellName;
use crate::protocol::proto::question::Question as QuestionKind;

/// The position of an answer to an item.
#[derive(Clone, Copy)]
pub(super) struct ItemPosition {
    /// The index of the item.
    pub(super) item: usize,
    /// The index of the question.
    pub(super) question: usize,
    /// The index in the answer to the question.
    pub(super) index: usize,
}

/// The items of one question.
pub(super) struct QuestionItems {
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
    indexes: Vec<Vec<Vec<(Window, usize)>>>,
    pub(super) questions: Vec<QuestionItems>,
    /// The positions, in the order in which items were added.
    pub(super) positions: Vec<ItemPosition>,
}

impl<'a> Split<'a> {
    pub(super) fn of(graph: &'a Graph) -> Self {
        let indexes = graph.rows.iter().map(|row| vec![Vec::new(); row.cells.len()]).collect();
        Self { graph, indexes, questions: Vec::new(), positions: Vec::new() }
    }

    /// Asks a cell about an item.
    pub(super) fn add(&mut self, row: usize, cell: usize, item: usize) {
        self.add_in(row, cell, Window::ALWAYS, item);
    }

    /// Asks a cell about an item in a window.
    pub(super) fn add_in(&mut self, row: usize, cell: usize, window: Window, item: usize) {
        let indexes = &mut self.indexes[row][cell];
        // Consecutive items mostly have the same window.
        let known = indexes.iter().rev().find(|(known, _)| *known == window).map(|&(_, question)| question);
        let question = known.unwrap_or_else(|| {
            let map = &self.graph.rows[row];
            let cell = CellName { row: map.row, partition: map.cells[cell].partition };
            indexes.push((window, self.questions.len()));
            self.questions.push(QuestionItems { row, cell, window, items: Vec::new() });
            self.questions.len() - 1
        });
        let items = &mut self.questions[question].items;
        self.positions.push(ItemPosition { item, question, index: items.len() });
        items.push(item);
    }

    /// The questions to cells, given the question about the items of one cell.
    pub(super) fn cell_questions(&self, mut ask: impl FnMut(&QuestionItems) -> QuestionKind) -> Vec<CellQuestion> {
        let questions = self.questions.iter();
        questions.map(|items| CellQuestion { cell: items.cell, question: ask(items) }).collect()
    }

    /// The positions of the answers to each item, given the number of items. The items must have been added in order.
    pub(super) fn by_item(&self, items: usize) -> impl Iterator<Item = (usize, &[ItemPosition])> {
        let mut rest = &self.positions[..];
        (0..items).map(move |item| {
            let (positions, after) = rest.split_at(rest.iter().take_while(|position| position.item == item).count());
            rest = after;
            (item, positions)
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
