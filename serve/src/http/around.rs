//! Questions about what is around a page: who links to it, what is one or two links away, ways to other pages, and
//! pages that died.

pub(super) mod backlinks;
pub(super) mod deaths;
pub(super) mod neighbourhood;
pub(super) mod ways;
