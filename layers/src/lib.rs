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
//! | [`record`] | captures, presence of links, the union of several rows, keys |
//! | [`read`] | scans of partitions and rows, and questions as lines of JSON |
//! | [`answers`] | answers as programs read them, with URLs and times as text |
//! | [`overview`], [`held`] | files of a store beside its layers: an overview of the graph, and links that wait |
//! | [`log`](mod@log), [`gc`], [`beside`] | the epochs of a store, the removal of old ones, and files of no row |
//! | [`regular`] | files that must be regular files |
//! | [`probe`] | reads damaged bytes, for tests and fuzzing |
//!
//! Everything else has one path, at the root: the [`Store`] and its [`Location`], the writers of layers, the [`Reader`]
//! and its [`Links`], and the questions of several steps, as programs without input and output ([`Program`]).
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
//! let (row, updates, removes, displaces, elsewhere) = (row.row(), 1, false, false, 0);
//! let rows = vec![RowEntry { row, first_uid, urls: 2, updates, removes, displaces, elsewhere, partitions, counts }];
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

pub mod answers;
mod counted;
mod error;
pub(crate) mod file;
pub mod format;
mod identity;
pub(crate) mod location;
pub mod probe;
pub(crate) mod questions;
pub mod read;
pub mod record;
pub(crate) mod store;
mod word;

pub use crate::counted::counted;
pub use crate::file::entry::FileEntry;
pub use crate::file::helpers::{Attending, Helpers};
pub use crate::file::inlinks::InlinksWriter;
pub use crate::file::outlinks::OutlinksWriter;
pub use crate::file::parquet::lent::Lent;
pub use crate::file::row_dir::{Effort, RowDir};
pub use crate::file::schema::Layer;
pub use crate::file::url::{UrlWriter, url_in_row};
pub use crate::identity::{Digest, EpochId, NotAnIdentity};
pub use crate::location::draft::Draft;
pub use crate::location::lease::Lease;
pub use crate::questions::backlinks::referrers::{Event, Order, Referrer, ReferringHost, Unit};
pub use crate::questions::backlinks::scope::Scope;
pub use crate::questions::backlinks::tally::{Ranked, Ranking};
pub use crate::questions::backlinks::top::Place;
pub use crate::questions::backlinks::{Backlinks, LinkingPage, LinkingPart, Referrers};
pub use crate::questions::changed::{Changed, ChangedLinks, LinkChange};
pub use crate::questions::dead_links::{DeadLink, DeadLinkSearch, DeadLinks};
pub use crate::questions::deaths::{DeadPage, DeathSearch, Deaths, DeathsAsked, Linkers, StillLinking, Toll};
pub use crate::questions::first::First;
pub use crate::questions::last_known::LastKnown;
pub use crate::questions::neighbourhood::folding::{Folding, Grain, Groups};
pub use crate::questions::neighbourhood::network::{Neighbourhood, Network};
pub use crate::questions::neighbourhood::{Edge, NeighbourhoodQuestion, NeighbourhoodSearch};
pub use crate::questions::page::{PageLinks, captures_of_page};
pub use crate::questions::unknown::Unknown;
pub use crate::questions::ways::{WaySearch, Ways};
pub use crate::questions::{Ask, Direction, Facts, Given, Precision, Program, Question, Way};
pub use crate::read::between::Between;
pub use crate::read::check::{CheckReport, Unread, check, check_all};
pub use crate::read::dates::{DateChanges, PageBetween, PageChange};
pub use crate::read::diff::{CaptureChange, ChangedCapture, ChangedPage, Changes, Diff};
pub use crate::read::drive::answer_of;
pub use crate::read::pages::Pages;
pub use crate::read::query::{Links, keep_linking, still_linking};
pub use crate::read::reader::Reader;
pub use crate::read::spellings::{KeyOrder, Spelled, only_captured};
pub use crate::record::backlink::{Backlink, Began, Period, Series, Stay};
pub use crate::record::batch::Batch;
pub use crate::record::capture::captures::{CaptureTime, Captures, CapturesBuf, Linking, PageState};
pub use crate::record::capture::lifespan::{Lifespan, Spans, lifespans_of, runs_of, times_of};
pub use crate::record::key::matching::{Lookup, Match};
pub use crate::record::page::counts::{Counts, CutCaptures};
pub use crate::record::page::evidence::{Evidence, Payload, Revisit, revisit_order};
pub use crate::record::page::{Flaw, InLinks, Page};
pub use crate::record::presence::change::{Change, PresenceError};
pub use crate::record::removal::{KeyHash, NotAHost, Removal, RemovalRule, Removals, RemovedAs, SelectedBy, Selection};
pub use crate::record::sample::{Sample, Sampling};
pub use crate::record::status::{Cut, Failures, FailuresError, Status, StatusChange, push_status, status_stretches};
pub use crate::record::time::text::{TIME_FORMS, TimeError, counts_from_now, parse_age, parse_time};
pub use crate::record::time::{
    AsOf, RangeLength, RangeLengthError, TIMES, Window, WindowError, format_digits, format_time, interval,
};
pub use crate::record::uid::{Uid, in_order};
pub use crate::store::inputs::{InputRecord, read_inputs, write_inputs};
pub use crate::store::manifest::history::{Origin, PastEpoch, TranslationEntry};
pub use crate::store::manifest::{InputsEntry, Manifest, NewEpoch, PartitionEntry, Provenance, RowEntry};
pub use crate::store::notes::{HeldNote, Notes};
pub use crate::store::sealed::Sealed;
pub use crate::store::translation::{Translation, TranslationWriter, Translations};
pub use error::manifest::ManifestFlaw;
pub use error::{Damage, Error, system_error};
pub use location::{Location, regular, unique};
pub use store::{Store, StoreWriter, beside, gc, held, log, overview, store_around, verify_file};
pub use word::Word;
