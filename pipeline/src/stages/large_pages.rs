//! Pages that are too large: which these are, and what a store has of them.
//!
//! The links of a page take at most [`VALUES_MAX`] values in its record, as many as a row group of layers: so every
//! stage, every merge and every reader can hold them. Of a page that would have more, the links of all captures are
//! unknown. What is left out follows from the captures alone, never from the memory that is there. Captures, their
//! times and statuses are always kept, however many there are.
//!
//! Such a page is known by captures of unknown links that are no revisits; it stays one whatever is added, since more
//! captures never make a record smaller. So the rows of updates, each within the bound, come to the same as one build
//! when they are merged.

use crate::Error;
use crate::row::{Offsets, url_of};
use webstrata_datasets::{Finding, Tally};
use webstrata_layers::{Evidence, Page, Reader, RowDir};

/// Values that the links of a page take, at most: links, changes, and for each revisit [`REVISIT_VALUES`] and its own
/// links.
pub(crate) const VALUES_MAX: usize = 1 << 21;
/// What a revisit takes more than a capture, in values, besides its own links.
pub(crate) const REVISIT_VALUES: usize = 8;

/// Values that the links of a page take.
pub(crate) fn values(page: &Page, evidence: &Evidence) -> usize {
    let revisits = evidence.revisits.iter().map(|revisit| REVISIT_VALUES + revisit.links.len());
    page.links.len() + page.changes.len() + revisits.sum::<usize>()
}

/// Whether the links of a page were left out.
pub(crate) fn is_left_out(page: &Page, evidence: &Evidence) -> bool {
    page.blank.iter().any(|&capture| !page.is_known(capture) && evidence.revisit(capture).is_none())
}

/// Leaves out the links of a page.
pub(crate) fn leave_out(page: &mut Page, evidence: &mut Evidence) {
    page.blank = (0u32..).zip(&page.timestamps).map(|(capture, _)| capture).collect();
    page.links = Vec::new();
    page.changes = Vec::new();
    *evidence = Evidence::default();
}

/// Leaves out the links of a page that is too large, and counts it, by name, if that was done now or before.
pub(crate) fn check(
    page: &mut Page,
    evidence: &mut Evidence,
    tally: &mut Tally,
    (row, base, offsets): (&RowDir, Option<&Reader>, &Offsets),
) -> Result<bool, Error> {
    let is_now = values(page, evidence) > VALUES_MAX;
    if is_now {
        leave_out(page, evidence);
    }
    if is_now || is_left_out(page, evidence) {
        tally.name(Finding::LargePage, url_of(row, base, offsets, page.uid)?);
    }
    Ok(is_now)
}
