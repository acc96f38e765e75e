//! What a store says of a page, and of several rows together: the records, without a file.
//!
//! A [`page`] is a URL's [`capture`]s and links; [`presence`] tells which link was in which capture, [`status`] what
//! the server answered. [`precedence`] decides which row's captures count where several rows have a page, and [`join`]
//! makes one record of them; [`form`] has how captures spell links; [`removal`] says what is taken out. [`key`] orders
//! URLs and says which of them a question means, [`time`] has windows and ranges, [`sample`] draws a few of many links,
//! [`backlink`] tells when a page linked to a target, [`batch`] holds many answers.

pub mod backlink;
pub mod batch;
pub mod capture;
pub mod form;
pub mod join;
pub mod key;
pub mod page;
pub mod precedence;
pub mod presence;
pub mod removal;
pub mod sample;
pub mod status;
pub mod time;
pub mod uid;
