//! The graph in memory: cells, their files, and answers from them.
//!
//! A cell is one partition of one row, compressed: a URL store, a forward and a backward link store. An image is the
//! file of a cell. The image is mapped into memory and answers without a decode pass.
//!
//! ```text
//! layers --> [disk::load: url_store, numbers, links] --> [image] --> [Cells: Links] --> answers in the process
//!                                                       [disk::shelf] --> a server's own
//! ```
//!
//! | folder | contents |
//! |---|---|
//! | [`coding`] | bits, Huffman codes, words and sections |
//! | [`links`] | link stores, their encodings, and strata |
//! | [`url_store`], [`numbers`] | URLs and their keys, and the numbers of records inside a cell |
//! | `statuses` | the HTTP statuses of captures other than 200 |
//! | [`mapped`] | mapped files, checked where they are read |
//! | [`image`] | the file of a cell |
//! | [`cells`] | answers from a cell, from the cells of a row that are held, from all cells of an epoch |
//! | [`disk`] | images on disk: written from layers, kept in a shelf, checked |
//! | [`scratch`] | the memory that answers are made in |
//! | [`mod@bench`] | the duration of questions |
//!
//! Callers pass encodings other than strata as [`links::encoding::Encodings`]; this crate depends on none of them.
//!
//! ```
//! use webstrata_cells::Cells;
//! use webstrata_cells::image::Residence;
//! use webstrata_cells::image::label::partitions;
//! use webstrata_cells::disk::load::{Options, write_cell};
//! use webstrata_cells::links::encoding::Encodings;
//! use webstrata_layers::{Direction, Links, Precision, Store, Window};
//! # use webstrata_engine::{Progress, RunOptions};
//! # use webstrata_pipeline::{BuildOptions, build};
//! # let dir = tempfile::tempdir()?;
//! # let (crawl, path) = (dir.path().join("crawl.jsonl"), dir.path().join("store"));
//! # let capture = r#"{"url": "http://example.org/", "ts": "2008", "links": ["http://example.com/"]}"#;
//! # std::fs::write(&crawl, capture)?;
//! # build(&BuildOptions::new(RunOptions::new(&path), vec![crawl]), &Progress::default())?;
//!
//! // `path` is a store in which http://example.org/ links to http://example.com/.
//! let store = Store::open(&path)?;
//! for (row, partition) in partitions(&store) {
//!     write_cell(&store, &path, row, partition, Options::default())?;
//! }
//! let cells = Cells::open(&store, Residence::Mapped, Encodings::STRATA)?.expect("an image of each partition");
//! let target = cells.uid("http://example.com/")?.expect("a URL of the store");
//! assert_eq!(cells.urls_of(&cells.in_links(target, Window::ALWAYS, Precision::Exact)?)?, ["http://example.org/"]);
//! assert_eq!(cells.degree(target, Direction::Out, Window::ALWAYS)?, 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod bench;
pub mod cells;
pub mod coding;
pub mod disk;
mod error;
pub mod image;
pub mod links;
pub mod mapped;
pub mod numbers;
pub mod scratch;
mod statuses;
pub mod url_store;

pub use cells::Cells;
pub use cells::cell::Cell;
pub use cells::row::Row;
pub use disk::shelf::Shelf;
pub use error::{Absent, Damage, EncodeError, Error, UrlsError};
pub use links::encoding::{Encoding, Encodings, Tag};
pub use numbers::{Node, Number};
pub use scratch::Scratch;
