//! Pages that are too large: the rule that decides, and the data that a store has about them.
//!
//! The links of a page take at most [`VALUES_MAX`] values in its record, as many as a row group of layers. Every stage,
//! merge and reader can therefore hold them. If a page would have more values, the links of all its captures are
//! unknown. The captures alone decide whether links are left out, never the available memory. Captures with their times
//! and statuses are always kept, however many they are.
//!
//! Such a page is recognized by captures with unknown links that are not revisits. The page stays too large whatever is
//! added, because more captures never make a record smaller. When rows of updates are merged, each within the bound,
//! the result is therefore the same as one build.

use crate::Error;
use crate::row::{Offsets, url_of};
use webstrata_datasets::{Finding, Tally};
use webstrata_layers::{Evidence, Page, Reader, RowDir};

/// The maximum number of values that the links of a page take: links, changes, and for each revisit and each payload
/// [`REVISIT_VALUES`] and the links of its record.
pub(crate) const VALUES_MAX: usize = 1 << 21;
/// The number of values that a revisit or a payload takes more than a capture, in addition to its own links.
pub(crate) const REVISIT_VALUES: usize = 8;

/// Returns the number of values that the links of a page take.
pub(crate) fn values(page: &Page, evidence: &Evidence) -> usize {
    let revisits = evidence.revisits.iter().map(|revisit| REVISIT_VALUES + revisit.links.len());
    let payloads = evidence.payloads.iter().map(|payload| REVISIT_VALUES + payload.links.len());
    page.links.len() + page.changes.len() + revisits.chain(payloads).sum::<usize>()
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

/// Leaves out the links of a page that is too large. Counts the page by name if its links are left out now or were left
/// out before. Returns whether the links are left out now.
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
