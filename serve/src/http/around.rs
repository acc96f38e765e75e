//! Questions about the surroundings of a page: pages that link to it, pages one or two links away, ways to other pages,
//! and pages that died.

pub(super) mod backlinks;
pub(super) mod deaths;
pub(super) mod neighbourhood;
pub(super) mod ways;
