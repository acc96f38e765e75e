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
//! | folder | what |
//! |---|---|
//! | [`record`] | pages, presence of links, what several rows say together, keys, times |
//! | [`file`](mod@file) | schemas, and one writer a file |
//! | [`location`] | where a store lies: a directory or a bucket, and files that are whole or not there |
//! | [`store`] | epochs and commits, identities, leases, garbage collection, translations of UIDs |
//! | [`read`] | questions and their answers, scans, differences between epochs, checks |

mod error;
pub mod file;
pub mod format;
pub mod location;
mod names;
pub mod read;
pub mod record;
pub mod store;

pub use crate::file::evidence::{Evidence, Revisit};
pub use crate::file::helpers::{Attending, Helpers};
pub use crate::file::inlinks::InlinksWriter;
pub use crate::file::outlinks::OutlinksWriter;
pub use crate::file::schema::Layer;
pub use crate::file::url::{UrlWriter, url_in_row};
pub use crate::location::draft::Draft;
pub use crate::read::check::{CheckReport, check};
pub use crate::read::diff::{CaptureChange, ChangedCapture, ChangedPage, Changes, Diff};
pub use crate::read::query::{Direction, Lifespan, Links, Precision, lifespans_of};
pub use crate::read::reader::Reader;
pub use crate::record::batch::Batch;
pub use crate::record::capture::{CaptureTime, captures_in};
pub use crate::record::key::{key, url_of_key};
pub use crate::record::page::{Flaw, InLinks, Page};
pub use crate::record::presence::{Change, PresenceError};
pub use crate::record::sample::{Sample, Sampling};
pub use crate::record::time::{
    RangeLength, TIMES, Window, WindowError, as_of, format_iso, format_time, interval, parse_time,
};
pub use crate::store::identity::{Digest, EpochId, NotAnIdentity};
pub use crate::store::inputs::{InputRecord, read_inputs, write_inputs};
pub use crate::store::lease::Lease;
pub use crate::store::manifest::history::{Origin, PastEpoch, TranslationEntry};
pub use crate::store::manifest::{
    Counts, FileEntry, InputsEntry, Manifest, NewEpoch, PartitionEntry, Provenance, RowEntry,
};
pub use crate::store::notes::{HeldNote, Notes};
pub use crate::store::translation::{Translation, TranslationWriter, Translations};
pub use error::{Damage, Error};
pub use location::Location;
pub use store::{Effort, RowDir, Store, StoreWriter, store_around, verify_file};
