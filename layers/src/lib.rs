//! The on-disk format of Webstrata: layers of Parquet files that hold a link graph over time, and the readers that
//! answer questions from these files.
//!
//! ```text
//! pages, in-links, URLs --> [writers of layers] --> rows/NNNNNN/{url,ol,ts,bv,rv,il,tr,ibv}/part-*.parquet
//!                         [StoreWriter::commit] --> epochs/NNNNNN.json, then CURRENT
//! questions --> [Reader: Links] --> [Store] --> those files
//! ```
//!
//! [`format`](mod@format) specifies the files. Memory: writers hold one row group, and readers hold what their caller
//! allows.
//!
//! | folder | contents |
//! |---|---|
//! | [`record`] | pages, presence of links, the union of several rows, keys, times |
//! | [`file`](mod@file) | schemas, and one writer a file |
//! | [`location`] | the location of a store: a directory or a bucket, and files that are complete or absent |
//! | [`store`] | epochs and commits, identities, leases, garbage collection, translations of UIDs |
//! | [`read`] | questions and their answers, scans, differences between epochs, checks |
//! | [`probe`] | reads damaged bytes, for tests and fuzzing |
//!
//! # Example
//!
//! ```
//! use webstrata_layers::*;
//!
//! // A store of two URLs. One is a page: its capture of 2008 links to the other URL, its capture of 2009 to nothing.
//! let dir = tempfile::tempdir()?;
//! let time = |text| parse_time(text, false).expect("a time");
//! let (timestamps, changes) = (vec![time("20080601"), time("20090601")], vec![Change { link: 0, capture: 1 }]);
//! let page = Page { uid: Uid(1), timestamps, links: vec![Uid(0)], changes, ..Page::default() };
//! let ranges = vec![RangeLength::Month.start(time("20080601"))];
//! let linked = InLinks { uid: Uid(0), ranges, sources: vec![Uid(1)], changes: vec![] };
//!
//! let writer = StoreWriter::open(dir.path(), "example", None)?;
//! let row = writer.begin_row()?;
//! let mut urls = UrlWriter::create(&row, 0)?;
//! urls.push(Uid(0), "http://example.com/", "com,example)/")?;
//! urls.push(Uid(1), "http://example.org/", "org,example)/")?;
//! let first_key = urls.first_key();
//! let mut out = OutlinksWriter::create(&row, 0)?;
//! out.push(&page, &Evidence::default())?;
//! let mut into = InlinksWriter::create(&row, 0)?;
//! into.push(&linked)?;
//! let files = [urls.finish()?, out.finish()?, into.finish()?].concat();
//! let (first_uid, first_record) = (Uid(0), Uid(0));
//! let partitions = vec![PartitionEntry { partition: 0, first_uid, urls: 2, first_record, first_key, files }];
//! let mut counts = Counts { urls: 2, ..Counts::default() };
//! counts.add_page(&page);
//! let (row, updates, removes, elsewhere) = (row.row(), 1, false, 0);
//! let rows = vec![RowEntry { row, first_uid, urls: 2, updates, removes, elsewhere, partitions, counts }];
//! let (in_range, provenance) = (RangeLength::Month, Provenance::default());
//! writer.commit(NewEpoch { rows, in_range, provenance, translation: None })?;
//!
//! // The answers of the store.
//! let reader = Reader::new(Store::open(dir.path())?, 64 << 20);
//! let page = reader.uid("http://example.org/")?.expect("a URL of the store");
//! let links = reader.out_links(page, Window::Seen { from: time("2008"), to: time("2009") })?;
//! assert_eq!(reader.urls_of(&links)?, ["http://example.com/"]);
//! assert!(reader.out_links(page, Window::as_of(time("2010")))?.is_empty());
//! assert_eq!(reader.in_links(links[0], Window::ALWAYS, Precision::Exact)?, [page]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod counted;
mod error;
pub mod file;
pub mod format;
pub mod location;
mod names;
pub mod probe;
pub mod read;
pub mod record;
pub mod store;

pub use crate::counted::counted;
pub use crate::file::evidence::{Evidence, Revisit};
pub use crate::file::helpers::{Attending, Helpers};
pub use crate::file::inlinks::InlinksWriter;
pub use crate::file::outlinks::OutlinksWriter;
pub use crate::file::schema::Layer;
pub use crate::file::url::{UrlWriter, url_in_row};
pub use crate::location::draft::Draft;
pub use crate::read::around::deaths::{DeadPage, DeathCount, Deaths, DeathsAsked, Linkers, Toll};
pub use crate::read::around::folding::{Folding, Grain};
pub use crate::read::around::neighbourhood::{Edge, Near, Surroundings, surroundings};
pub use crate::read::around::network::Network;
pub use crate::read::around::referrers::{Event, Order, Referrer, ReferringHost, Unit};
pub use crate::read::around::scope::Scope;
pub use crate::read::around::tally::{Ranked, Ranking, Tally};
pub use crate::read::around::top::Place;
pub use crate::read::around::ways::{Search, Ways, ways};
pub use crate::read::between::Between;
pub use crate::read::check::{CheckReport, Unread, check, check_all};
pub use crate::read::dates::{ChangedLinks, DateChanges, PageBetween, PageChange};
pub use crate::read::diff::{CaptureChange, ChangedCapture, ChangedPage, Changes, Diff};
pub use crate::read::query::{Direction, Lifespan, Links, Precision, lifespans_of};
pub use crate::read::reader::Reader;
pub use crate::read::spellings::Spelled;
pub use crate::record::backlink::{Backlink, Began, Period, Series, Stay};
pub use crate::record::batch::Batch;
pub use crate::record::capture::fate::Death;
pub use crate::record::capture::{CaptureTime, Captures, Linking, PageState};
pub use crate::record::key::matching::{Lookup, Match};
pub use crate::record::key::{key, url_of_key};
pub use crate::record::page::{Flaw, InLinks, Page};
pub use crate::record::presence::{Change, PresenceError};
pub use crate::record::removal::{KeyHash, NotAHost, Removal, RemovalRule, Removals, RemovedAs, SelectedBy, Selection};
pub use crate::record::sample::{Sample, Sampling};
pub use crate::record::status::{Failures, Status};
pub use crate::record::time::text::{TimeError, parse_age, parse_time};
pub use crate::record::time::{
    AsOf, RangeLength, TIMES, Window, WindowError, as_of, format_digits, format_time, interval,
};
pub use crate::record::uid::Uid;
pub use crate::store::identity::{Digest, EpochId, NotAnIdentity};
pub use crate::store::inputs::{InputRecord, read_inputs, write_inputs};
pub use crate::store::lease::Lease;
pub use crate::store::manifest::history::{Origin, PastEpoch, TranslationEntry};
pub use crate::store::manifest::{
    Counts, FileEntry, InputsEntry, Manifest, NewEpoch, PartitionEntry, Provenance, RowEntry,
};
pub use crate::store::notes::{HeldNote, Notes};
pub use crate::store::sealed::Sealed;
pub use crate::store::translation::{Translation, TranslationWriter, Translations};
pub use error::{Damage, Error};
pub use location::Location;
pub use store::{Effort, RowDir, Store, StoreWriter, store_around, verify_file};
