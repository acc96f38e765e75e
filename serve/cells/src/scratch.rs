//! The memory that answers are made in. Callers pass it in and reuse it for the next answer.
//!
//! A [`Scratch`] belongs to one caller at a time. It holds nothing that outlives a call, so any scratch works with any
//! cell, and a new one gives the same answers. [`Scratch::lend`] keeps one scratch for each thread, for callers that
//! cannot keep one themselves. It drops a scratch that has become large.

use std::cell::Cell;
use std::ops::Range;

use webstrata_layers::{CaptureTime, Lifespan, StatusChange, Uid};

use crate::links::backward::Found;
use crate::links::scratch::{StoreScratch, bytes_of};
use crate::links::strata::Ring;
use crate::numbers::Number;

/// The buffers in which cells and rows make answers.
#[derive(Default)]
pub struct Scratch {
    pub(crate) store: StoreScratch,
    /// The links of a node, as numbers in the cell.
    pub(crate) numbers: Vec<Number>,
    /// The lifespans of the links of a node.
    pub(crate) lifespans: Vec<Lifespan<Number>>,
    /// The ranges of links asked for.
    pub(crate) ranges: Vec<Range<Number>>,
    /// The lifespans of links with UIDs.
    pub(crate) links: Vec<Lifespan>,
    /// The first and last times of links to a target.
    pub(crate) times: Vec<(i64, i64)>,
    /// The captures of a node.
    pub(crate) captures: Vec<CaptureTime>,
    /// The captures at which the statuses of a node change.
    pub(crate) statuses: Vec<StatusChange>,
    /// Indexes of sources that may or may not link in a window, and what their in-links say.
    pub(crate) unsure: Vec<(usize, Found)>,
}

/// The buffers for questions to the cells of several rows.
#[derive(Default)]
pub(crate) struct RowsScratch {
    /// The buffers for the row that is asked.
    pub(crate) row: Scratch,
    /// The answer of that row.
    pub(crate) links: Vec<Uid>,
    /// A list that is only counted.
    pub(crate) counted: Vec<Uid>,
    /// The key of a URL.
    pub(crate) key: Vec<u8>,
}

thread_local! {
    static KEPT: Cell<Option<Box<RowsScratch>>> = const { Cell::new(None) };
}

impl Scratch {
    /// Lends `ask` the scratch of this thread. A nested call gets a new scratch.
    pub fn lend<T>(ask: impl FnOnce(&mut Self) -> T) -> T {
        RowsScratch::lend(|scratch| ask(&mut scratch.row))
    }
}

impl RowsScratch {
    /// Like [`Scratch::lend`].
    pub(crate) fn lend<T>(ask: impl FnOnce(&mut Self) -> T) -> T {
        let mut scratch = KEPT.take().unwrap_or_default();
        let answer = ask(&mut scratch);
        KEPT.set((scratch.bytes() <= KEPT_BYTES).then_some(scratch));
        answer
    }

    fn bytes(&self) -> usize {
        let Self { row, links, counted, key } = self;
        row.bytes() + bytes_of(links) + bytes_of(counted) + key.capacity()
    }
}

impl Scratch {
    /// Frees the records that were kept for questions about pages near those of the last question.
    pub fn forget_near(&mut self) {
        self.store.near = Ring::default();
    }
}

/// The largest scratch that a thread keeps, in bytes. The memory for a hub's answer is freed with the answer.
const KEPT_BYTES: usize = 3 << 20;

impl Scratch {
    fn bytes(&self) -> usize {
        let Self { store, numbers, lifespans, ranges, links, times, captures, statuses, unsure } = self;
        store.bytes()
            + bytes_of(numbers)
            + bytes_of(lifespans)
            + bytes_of(ranges)
            + bytes_of(links)
            + bytes_of(times)
            + bytes_of(captures)
            + bytes_of(statuses)
            + bytes_of(unsure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_little_of_what_a_large_answer_needed() {
        let capacity = || Scratch::lend(|scratch| scratch.numbers.capacity());
        Scratch::lend(|scratch| scratch.numbers.reserve(1000));
        assert!(capacity() >= 1000);
        Scratch::lend(|scratch| scratch.numbers.reserve(KEPT_BYTES));
        assert_eq!(capacity(), 0);
    }
}
