//! Questions about what is around a page: who links to it, what is one or two links away, and ways to other pages.

pub(super) mod backlinks;
pub(super) mod neighbourhood;
pub(super) mod ways;
