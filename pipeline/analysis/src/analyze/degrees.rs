//! `degrees`: how many URLs each page links to at a date, and how many pages link to each URL. One pass over the links.

use super::slice::Slice;
use super::{Found, Ground};
use webstrata_pipeline::engine::job::Stopped;

pub(super) fn degrees(ground: &mut Ground<'_>, slice: &Slice) -> Result<Found, Stopped> {
    let into = in_degrees(ground, slice)?;
    Ok(Found::of_worker().with("in_degree", into).with("out_degree", slice.graph.out_degrees()))
}

/// How many pages link to each URL of this worker.
pub(super) fn in_degrees(ground: &mut Ground<'_>, slice: &Slice) -> Result<Vec<u64>, Stopped> {
    slice.push(ground, 0, |_, _| 1, |a: u64, b| a + b)
}
