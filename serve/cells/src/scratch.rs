//! Memory that answers are made in: handed in by whoever asks, and used again for the next answer.
//!
//! A [`Scratch`] belongs to one caller at a time. It holds nothing that outlives a call, so any scratch does for any
//! cell, and a new one gives the same answers. [`Scratch::lend`] keeps one for each thread, for callers that have
//! nowhere to keep their own, and nothing of it that is large.

use std::cell::Cell;
use std::ops::Range;

use webstrata_layers::record::status::StatusChange;
use webstrata_layers::{CaptureTime, Lifespan, Uid};

use crate::links::backward::AnswerBuffers;
use crate::links::strata::StrataBuffers;
use crate::numbers::Number;

/// What link stores decode in: see [`crate::links::encoding`].
#[derive(Default)]
pub struct StoreScratch {
    pub(crate) strata: StrataBuffers,
    pub(crate) answer: AnswerBuffers,
    /// Times of captures or of ranges, for stores of other crates; so are the next two.
    pub times: Vec<i64>,
    /// Indexes of blank captures.
    pub blank: Vec<u32>,
    /// A list of links.
    pub links: Vec<u64>,
}

/// What cells and rows make answers in.
#[derive(Default)]
pub struct Scratch {
    pub(crate) store: StoreScratch,
    /// The links of a node, as the store of the cell numbers them.
    pub(crate) numbers: Vec<Number>,
    /// The lifespans of the links of a node.
    pub(crate) lifespans: Vec<Lifespan<Number>>,
    /// Ranges of links that are asked for.
    pub(crate) ranges: Vec<Range<Number>>,
    /// The same, with UIDs, and of those to a target the times alone.
    pub(crate) links: Vec<Lifespan>,
    /// See `links`.
    pub(crate) times: Vec<(i64, i64)>,
    /// The captures of a node.
    pub(crate) captures: Vec<CaptureTime>,
    /// Where their statuses change.
    pub(crate) statuses: Vec<StatusChange>,
    /// Places of sources that may link in a window or not, and in which edges of the window they link.
    pub(crate) unsure: Vec<(usize, [bool; 2])>,
}

/// What cells of several rows are asked with.
#[derive(Default)]
pub(crate) struct RowsScratch {
    /// For the row that is asked.
    pub(crate) row: Scratch,
    /// What that row says.
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
    /// Lends `ask` the scratch of this thread. A call within a call gets a new one.
    pub fn lend<T>(ask: impl FnOnce(&mut Self) -> T) -> T {
        RowsScratch::lend(|scratch| ask(&mut scratch.row))
    }
}

impl RowsScratch {
    /// As [`Scratch::lend`].
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

/// What a thread keeps of a scratch, at most. What a hub needed goes back when its answer is made.
const KEPT_BYTES: usize = 1 << 20;

/// Bytes that a vector holds.
pub(crate) fn bytes_of<T>(values: &Vec<T>) -> usize {
    values.capacity() * size_of::<T>()
}

impl Scratch {
    fn bytes(&self) -> usize {
        let Self { store, numbers, lifespans, ranges, links, times, captures, statuses, unsure } = self;
        let StoreScratch { strata, answer, times: store_times, blank, links: store_links } = store;
        strata.bytes()
            + answer.bytes()
            + bytes_of(store_times)
            + bytes_of(blank)
            + bytes_of(store_links)
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
