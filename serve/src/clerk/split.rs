//! A batch as questions to cells: which of its items go to which cell, and where the answer to each of them stands.

use crate::clerk::call::Part;
use crate::map::Graph;
use crate::proto::CellName;
use crate::proto::question::Question as Asked;

/// Where an answer to an item stands.
#[derive(Clone, Copy)]
pub(super) struct Spot {
    /// The item.
    pub(super) item: usize,
    /// The question.
    pub(super) part: usize,
    /// The place in its answer.
    pub(super) at: usize,
}

/// The items of one question.
pub(super) struct Share {
    /// Place of the row, from the oldest on.
    pub(super) row: usize,
    pub(super) cell: CellName,
    pub(super) items: Vec<usize>,
}

/// Items by cell.
pub(super) struct Split<'a> {
    graph: &'a Graph,
    /// For each row and cell, the number of its question plus one.
    numbers: Vec<Vec<usize>>,
    pub(super) shares: Vec<Share>,
    /// In the order in which items were added.
    pub(super) spots: Vec<Spot>,
}

impl<'a> Split<'a> {
    pub(super) fn of(graph: &'a Graph) -> Self {
        let numbers = graph.rows.iter().map(|row| vec![0; row.cells.len()]).collect();
        Self { graph, numbers, shares: Vec::new(), spots: Vec::new() }
    }

    /// Asks a cell about an item.
    pub(super) fn add(&mut self, row: usize, place: usize, item: usize) {
        let number = &mut self.numbers[row][place];
        if *number == 0 {
            let map = &self.graph.rows[row];
            let cell = CellName { row: map.row, partition: map.cells[place].partition };
            self.shares.push(Share { row, cell, items: Vec::new() });
            *number = self.shares.len();
        }
        let part = *number - 1;
        let items = &mut self.shares[part].items;
        self.spots.push(Spot { item, part, at: items.len() });
        items.push(item);
    }

    /// The questions.
    pub(super) fn parts(&self, mut question: impl FnMut(&Share) -> Asked) -> Vec<Part> {
        self.shares.iter().map(|share| Part { cell: share.cell, question: question(share) }).collect()
    }

    /// The spots of each of so many items; items were added in order.
    pub(super) fn by_item(&self, items: usize) -> impl Iterator<Item = (usize, &[Spot])> {
        let mut rest = &self.spots[..];
        (0..items).map(move |item| {
            let (own, after) = rest.split_at(rest.iter().take_while(|spot| spot.item == item).count());
            rest = after;
            (item, own)
        })
    }
}

/// Where lists of these lengths begin and end.
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
