//! The on-disk contract of Webstrata: layers of Parquet files that hold a link graph over time, and the way to ask
//! them.
//!
//! ```text
//! pages, in-links, URLs --> [url, outlinks, inlinks writers] --> rows/NNNNNN/{url,ol,ts,bv,rv,il,tr,ibv}/part-*.parquet
//!                                 [StoreWriter::commit] --> epochs/NNNNNN.json, then CURRENT
//! questions --> [Reader: Links] --> [Store] --> those files
//! ```
//!
//! The files themselves are specified in [`format`](mod@format). Memory: writers hold one row group, readers what they
//! are allowed to.
//!
//! Map: [`mod@key`] the order of URLs; [`time`] windows and ranges; [`page`] the records, [`presence`] which link when;
//! [`schema`] the layers and columns; `parquet` the only file that knows Parquet; `records` rows of one row group; `url`,
//! `outlinks` and `inlinks` (both on `side`) one writer a file, `evidence` what revisits refer to; `location` where a store
//! lies, `directory` and `bucket` what they can do, `body` the bytes of a file there; [`manifest`] and [`store`] epochs and
//! commits; `history` what a manifest says of earlier epochs, [`translation`] their UIDs, [`lease`] and [`gc`] how long they
//! stay, [`log`](mod@log) which there are; [`notes`] what programs keep beside them; [`regular`] how files are opened,
//! [`draft`] files that are whole or not there; [`query`] the questions, [`sample`] a few of many links, [`batch`] many
//! answers, `read` their answers from files, `blocks` decoded row groups, [`precedence`] which row's captures count,
//! [`join`] records of several rows as one; [`scan`] streams of a partition's records, [`rows`] of a row's, [`pages`] of all
//! rows together; [`diff`] what an epoch has that another had not; [`mod@check`] proves that a store keeps its promises.

pub mod batch;
mod blocks;
mod body;
#[cfg(feature = "s3")]
mod bucket;
pub mod check;
pub mod diff;
mod directory;
pub mod draft;
mod error;
mod evidence;
pub mod format;
pub mod gc;
mod helpers;
mod history;
mod identity;
mod inlinks;
mod inputs;
pub mod join;
pub mod key;
pub mod lease;
mod location;
pub mod log;
pub mod manifest;
pub mod notes;
mod outlinks;
pub mod page;
pub mod pages;
mod parquet;
pub mod precedence;
pub mod presence;
pub mod query;
mod read;
mod records;
pub mod regular;
pub mod rows;
pub mod sample;
pub mod scan;
pub mod schema;
mod side;
pub mod store;
pub mod time;
pub mod translation;
mod url;

pub use batch::Batch;
pub use check::{CheckReport, check};
pub use diff::{CaptureChange, ChangedCapture, ChangedPage, Changes, Diff};
pub use draft::Draft;
pub use error::{Damage, Error};
pub use evidence::{Evidence, Revisit};
pub use helpers::{Attending, Helpers};
pub use history::{Origin, PastEpoch, TranslationEntry};
pub use identity::{Digest, EpochId, NotAnIdentity};
pub use inlinks::InlinksWriter;
pub use inputs::{InputRecord, InputsEntry, read_inputs, write_inputs};
pub use key::{key, url_of_key};
pub use lease::Lease;
pub use location::Location;
pub use manifest::{Counts, FileEntry, Manifest, NewEpoch, PartitionEntry, Provenance, RowEntry};
pub use notes::{HeldNote, Notes};
pub use outlinks::OutlinksWriter;
pub use page::{Flaw, InLinks, Page};
pub use presence::{Change, PresenceError};
pub use query::{CaptureTime, Direction, Lifespan, Links, Precision, captures_in, lifespans_of};
pub use read::Reader;
pub use sample::{Sample, Sampling};
pub use schema::Layer;
pub use store::{Effort, RowDir, Store, StoreWriter, store_around, verify_file};
pub use time::{RangeLength, TIMES, Window, WindowError, as_of, format_iso, format_time, interval, parse_time};
pub use translation::{Translation, TranslationWriter, Translations};
pub use url::{UrlWriter, url_in_row};
