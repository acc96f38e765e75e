//! Answers from the files of a store.
//!
//! `query` has the questions about one URL ([`Links`](crate::Links)), `drive` answers the questions of several steps
//! ([`answer_of`](crate::answer_of)), and [`question`] has their form as lines of JSON. `reader` answers the questions
//! from decoded `blocks`. [`scan`] streams the records of a partition, [`rows`] the records of a row, and `pages` the
//! records of all rows together. `diff` compares two epochs, and `between` compares two dates. `spellings` finds all
//! URLs of one page. `check` proves that a store keeps its promises.

pub(crate) mod between;
pub(crate) mod blocks;
pub(crate) mod cached;
pub(crate) mod check;
pub(crate) mod dates;
pub(crate) mod diff;
pub(crate) mod drive;
pub(crate) mod pages;
pub(crate) mod query;
pub mod question;
pub(crate) mod reader;
pub mod rows;
pub mod scan;
pub(crate) mod spellings;
