//! `degrees`: the number of URLs that each page links to at a date, and the number of pages that link to each URL. One
//! pass over the links.

use super::slice::Slice;
use super::{Found, Ground};
use webstrata_engine::Stopped;

pub(super) fn degrees(ground: &mut Ground<'_>, slice: &Slice) -> Result<Found, Stopped> {
    let into = in_degrees(ground, slice)?;
    Ok(Found::of_worker().with("in_degree", into).with("out_degree", slice.graph.out_degrees()))
}

/// Returns the number of pages that link to each URL of this worker.
pub(super) fn in_degrees(ground: &mut Ground<'_>, slice: &Slice) -> Result<Vec<u64>, Stopped> {
    slice.push(ground, 0, |_, _| 1, |a: u64, b| a + b)
}
