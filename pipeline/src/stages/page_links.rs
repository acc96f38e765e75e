//! The links of a page capture by capture, and a page from such links.

use webstrata_layers::record::join::{Contribution, Weave};
use webstrata_layers::record::presence;
use webstrata_layers::{Change, Page, Uid};

/// Returns the links of a capture, as the page has them: with or without forms. The capture must not be blank.
pub(crate) fn links_at(page: &Page, capture: u32) -> Vec<Uid> {
    let present = presence::in_any(&page.changes, page.links.len(), capture, capture);
    present.into_iter().map(|at| page.links[at as usize]).collect()
}

/// Returns the links and the changes of a page, given the links of each capture that is not blank.
pub(crate) fn woven(captures: &[(u32, Vec<Uid>)]) -> (Vec<Uid>, Vec<Change>) {
    let contributions: Vec<Contribution<'_>> = captures.iter().map(|(_, links)| Contribution::always(links)).collect();
    let mut weave = Weave::default();
    captures.iter().enumerate().for_each(|(at, &(capture, _))| weave.push(capture, &[(at, 0)]));
    weave.links(&contributions)
}
