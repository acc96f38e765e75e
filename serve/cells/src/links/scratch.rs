//! The buffers in which link stores decode. Callers pass them in and reuse them for the next answer.

use crate::links::backward::AnswerBuffers;
use crate::links::strata::{Ring, StrataBuffers};

/// The buffers in which link stores decode: see [`crate::links::encoding`].
#[derive(Default)]
pub struct StoreScratch {
    pub(crate) strata: StrataBuffers,
    pub(crate) answer: AnswerBuffers,
    /// The records of pages near one another.
    pub(crate) near: Ring,
    /// Times of captures or of ranges. This field and the next two are for stores of other crates.
    pub times: Vec<i64>,
    /// Indexes of blank captures.
    pub blank: Vec<u32>,
    /// A list of links.
    pub links: Vec<u64>,
}

impl StoreScratch {
    /// The approximate bytes of memory that the buffers take.
    pub(crate) fn bytes(&self) -> usize {
        let Self { strata, answer, near, times, blank, links } = self;
        strata.bytes() + answer.bytes() + near.bytes() + bytes_of(times) + bytes_of(blank) + bytes_of(links)
    }
}

/// The bytes of memory that a vector takes.
pub(crate) fn bytes_of<T>(values: &Vec<T>) -> usize {
    values.capacity() * size_of::<T>()
}
