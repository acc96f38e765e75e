//! Questions about the surroundings of a page.
//!
//! - [`referrers`]: the pages in a [`scope`] that link to a target, and since when; [`tally`] counts them.
//! - [`neighbourhood`]: the URLs one or two links away, with times, as a [`network`] of URLs or of groups
//!   ([`folding`]).
//! - [`ways`]: the paths of links from one page to another.
//! - [`deaths`]: the pages that died, and the pages that still link to them.
//!
//! [`top`] keeps the first rows of an order.

pub mod deaths;
pub mod folding;
pub mod neighbourhood;
pub mod network;
pub mod referrers;
pub mod scope;
pub mod tally;
pub mod top;
pub mod ways;
