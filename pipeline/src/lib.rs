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
//!
//! ```
//! use webstrata_layers::{Store, check};
//! use webstrata_engine::{Progress, RunOptions};
//! use webstrata_pipeline::{BuildOptions, MergeOptions, build, merge};
//!
//! let dir = tempfile::tempdir()?;
//! let crawl = |name: &str, line: &str| std::fs::write(dir.path().join(name), line).map(|()| dir.path().join(name));
//! let june = crawl("june.jsonl", r#"{"url": "http://example.org/", "ts": "200806", "links": ["/about"]}"#)?;
//! let july = crawl("july.jsonl", r#"{"url": "http://example.org/about", "ts": "200807", "links": ["/"]}"#)?;
//!
//! // The first crawl makes a store with one row, and the next crawl adds a row. A merge makes one row of both.
//! let run = RunOptions::new(dir.path().join("store"));
//! let progress = Progress::default();
//! build(&BuildOptions::new(run.clone(), vec![june]), &progress)?;
//! let report = build(&BuildOptions { update: true, ..BuildOptions::new(run.clone(), vec![july]) }, &progress)?;
//! assert_eq!((report.epoch, report.counts.captures), (2, 1));
//! let merged = merge(&MergeOptions::new(run.clone()), &progress)?;
//! assert_eq!((merged.epoch, merged.rows), (3, 2));
//! assert_eq!(Store::open(&run.store)?.manifest().rows.len(), 1);
//! assert!(check(&run.store)?.is_sound());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod build;
mod error;
mod meaning;
mod merge;
mod remove;
mod row;
mod stages;

pub use build::{BuildOptions, BuildReport, GraphOptions, build, ranks};
pub use error::Error;
pub use meaning::Digests;
pub use merge::{MergeOptions, MergeReport, merge, scheduled};
pub use remove::{RemoveOptions, RemoveReport, Removed, remove};
pub use stages::partition::{PARTITION_URLS, PARTITIONS};
