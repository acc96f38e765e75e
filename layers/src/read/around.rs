//! Questions about what is around a page: [`referrers`], who links to a target and since when, of the pages in a
//! [`scope`], counted by [`tally`]; [`neighbourhood`], what is one or two links away, and when, a [`network`] of URLs
//! or of groups of them by [`folding`]; [`ways`], how one page leads to another; [`deaths`], which pages died, and who
//! still links to them. [`top`] keeps the first rows of an order.

pub mod deaths;
pub mod folding;
pub mod neighbourhood;
pub mod network;
pub mod referrers;
pub mod scope;
pub mod tally;
pub mod top;
pub mod ways;
