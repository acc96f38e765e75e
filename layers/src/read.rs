//! Answers from a store's files.
//!
//! [`query`] has the questions ([`query::Links`]), [`question`] their form as lines of JSON; `reader` answers them from
//! decoded `blocks`; [`scan`] streams the records of a partition, [`rows`] those of a row, [`pages`] those of all rows
//! together; [`diff`] tells what an epoch has that another had not, [`between`] the same of two dates, [`spellings`]
//! asks all URLs of one page together, [`around`] tells who links to a page, what is near it, and which pages died, and
//! [`check`] proves that a store keeps its promises.

pub mod around;
pub mod between;
pub(crate) mod blocks;
pub(crate) mod cached;
pub mod check;
pub mod dates;
pub mod diff;
pub mod pages;
pub mod query;
pub mod question;
pub(crate) mod reader;
pub mod rows;
pub mod scan;
pub mod spellings;
