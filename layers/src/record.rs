//! The records of a store, without a file: one page or URL in one row, and in several rows together.
//!
//! A `page` has the [`capture`]s and links of a URL, and the evidence for its revisits. [`presence`] tells which link
//! was in which capture, and `status` has the answers of the server. If several rows have a page, [`precedence`]
//! decides which captures count, and [`join`] makes one record. [`form`] has how captures spell links. `removal` has
//! the rules that take captures and links out. [`key`] orders URLs and selects the URLs that a question means. `time`
//! has windows and ranges, and `sample` draws some of many links. `backlink` tells when a page linked to a target.
//! `batch` holds many answers.
//!
//! The types that most questions need are at the root of the crate; the public modules have the functions.

pub(crate) mod backlink;
pub(crate) mod batch;
pub mod capture;
pub mod form;
pub mod join;
pub mod key;
pub(crate) mod page;
pub mod precedence;
pub mod presence;
pub(crate) mod removal;
pub(crate) mod sample;
pub(crate) mod status;
pub(crate) mod time;
pub(crate) mod uid;
