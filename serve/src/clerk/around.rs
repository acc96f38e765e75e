//! Questions about the surroundings of a page ([`webstrata_layers::read::around`] has the rules).

pub(super) mod backlinks;
pub(super) mod deaths;
pub(super) mod neighbourhood;
mod unknown;
mod ways;
