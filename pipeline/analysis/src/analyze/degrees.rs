//! `degrees`: the number of URLs that each page links to at a date, and the number of pages that link to each URL. One
//! pass over the links.

use super::slice::Slice;
use super::{AnalysisContext, Found};
use webstrata_engine::Stopped;

pub(super) fn degrees(context: &mut AnalysisContext<'_>, slice: &Slice) -> Result<Found, Stopped> {
    let into = in_degrees(context, slice)?;
    Ok(Found::of_worker().with("in_degree", into).with("out_degree", slice.graph.out_degrees()))
}

/// Returns the number of pages that link to each URL of this worker.
pub(super) fn in_degrees(context: &mut AnalysisContext<'_>, slice: &Slice) -> Result<Vec<u64>, Stopped> {
    slice.push(context, 0, |_, _| 1, |a: u64, b| a + b)
}
