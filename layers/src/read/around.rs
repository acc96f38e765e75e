//! Questions about what is around a page: [`referrers`], who links to a target and since when, of the pages in a
//! [`scope`], counted by [`tally`]; [`neighbourhood`], what is one or two links away, and when; [`ways`], how one page
//! leads to another.

pub mod neighbourhood;
pub mod referrers;
pub mod scope;
pub mod tally;
pub mod ways;
