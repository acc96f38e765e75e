//! Answers from the files of a store.
//!
//! [`query`] has the questions about one URL ([`query::Links`]), [`mod@drive`] answers the questions of several steps,
//! and [`question`] has their form as lines of JSON. `reader` answers the questions from decoded `blocks`, and [`several`]
//! joins what several rows have of a page. [`scan`] streams the records of a partition, [`rows`] the records of a row, and [`pages`] the records of all rows together.
//! [`diff`] compares two epochs, and [`between`] compares two dates. [`spellings`] finds all URLs of one page.
//! [`check`] proves that a store keeps its promises.

pub mod between;
pub(crate) mod blocks;
pub(crate) mod cached;
pub mod check;
pub mod dates;
pub mod diff;
pub mod drive;
pub mod pages;
pub mod query;
pub mod question;
pub(crate) mod reader;
pub mod rows;
pub mod scan;
pub mod several;
pub mod spellings;
