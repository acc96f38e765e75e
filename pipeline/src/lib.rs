//! Turns crawl files into layers: the jobs that build link graphs of web archives, on [`webstrata_engine`].
//!
//! ```text
//!            by hash of the page          by hash of the URL         by range of the key
//! inputs -> ingest ------------> pages ---------------> replace ----------------> outlinks -> inlinks -> epoch
//!              \ URL texts                                 ^  (fingerprint, UID)
//!               +------> sample -----> uids ---------------+
//!                                      by range of the key
//! ```
//!
//! The jobs follow Avcular & Suel (2011, section 3: partitioning, UID assignment, replacement; section 4: layers), in
//! another order. Captures are accumulated into pages first, because consecutive captures share 98 % of their links.
//! Each distinct link of a page is then replaced once. Link texts do not travel with every link: each URL becomes a
//! 128-bit fingerprint where it is read, and its text travels once.
//!
//! | module | contents |
//! |---|---|
//! | `build`, [`meaning`](crate::BuildOptions) | the jobs build and update, and the options that change their layers |
//! | `stages` | one stage a file |
//! | `row` | the row that a job writes, in the states of workers and in the manifest |
//! | `merge` | the job merge: its stages, and how it replaces UIDs |
//! | `remove` | the job remove: a row that takes captures and links out |
//! | `error` | the reasons why a job ends without a store |

mod build;
mod error;
mod meaning;
mod merge;
mod remove;
mod row;
mod stages;

pub use build::{BuildOptions, BuildReport, build};
pub use error::Error;
pub use merge::{MergeOptions, MergeReport, merge, scheduled};
pub use remove::{RemoveOptions, RemoveReport, Removed, remove};
pub use stages::partition::{PARTITION_URLS, PARTITIONS};
