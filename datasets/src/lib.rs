//! Readers of crawl files. Each reader turns one file into captures: a page, a time and the links.
//!
//! ```text
//! paths -> inputs -> open: [compressed] -> [detect] -> one reader a format -> Capture -> [interner] -> fingerprints
//! ```
//!
//! | module | task |
//! |---|---|
//! | `input`, `release`, `reader` | the entry points: [`inputs`], [`open`], [`CaptureReader`]; format detection |
//! | `files` | decompresses a file; its beginning, its lines, and the members of a ZIP |
//! | `formats` | one reader for each format |
//! | `page` | finds the links of a document: charset, tags, attributes |
//! | `url` | makes canonical URLs, fingerprints and urlkeys |
//! | `capture` | the capture that every reader returns, with its date and digest |
//! | `generate` | generates crawls, as inputs and as files |
//! | `tally`, `error` | counts damage and omissions; errors |
//! | [`probe`] | reads damaged bytes, for tests and fuzzing |
//!
//! ```
//! use webstrata_datasets::{Capture, Finding, LinkKinds, Tally, inputs, open};
//!
//! // A crawl as JSON lines. The last line ends too early.
//! let dir = tempfile::tempdir()?;
//! let file = dir.path().join("crawl.jsonl");
//! std::fs::write(&file, concat!(
//!     r#"{"url": "http://example.org/", "ts": "20080601120000", "links": ["/about", "http://example.com/"]}"#,
//!     "\n",
//!     r#"{"url": "http://example.org/about", "ts": "20080601120"#,
//! ))?;
//!
//! let (mut capture, mut tally, mut captures) = (Capture::default(), Tally::default(), 0);
//! for input in inputs(&[file])? {
//!     let mut reader = open(&input, LinkKinds::default())?;
//!     while reader.read(&mut capture, &mut tally)? {
//!         assert_eq!((capture.url.as_str(), capture.time), ("http://example.org/", 1_212_321_600));
//!         assert_eq!(capture.links.iter().collect::<Vec<_>>(), ["/about", "http://example.com/"]);
//!         captures += 1;
//!     }
//! }
//! // Damage is counted with its place, and ends nothing.
//! assert_eq!((captures, tally.counts().collect::<Vec<_>>()), (1, vec![(Finding::BadJson, 1)]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod capture;
mod error;
mod files;
mod formats;
pub mod generate;
mod input;
mod page;
pub mod probe;
mod reader;
mod release;
mod tally;
mod url;

pub use crate::capture::cut::Cut;
pub use crate::capture::date::TIMES;
pub use crate::capture::dictionary::Dictionary;
pub use crate::url::form::Form;
pub use crate::url::interner::{Base, Fingerprint, Interner};
pub use crate::url::reference::{URL_BYTES, URL_BYTES_MAX};
pub use capture::{Capture, Content, Digest, Profile, Revisit, Texts};
pub use error::Error;
pub use files::hashed::{DigestCell, InputDigest};
pub use files::spool::Spill;
pub use files::zip::Member;
pub use formats::cc_graph::ranks::{HostRank, RankReader};
pub use formats::wacz::missing_containers;
pub use generate::{GenerateOptions, Generator};
pub use input::{Input, InputSplit, generated};
pub use reader::{
    CaptureReader, LinkKinds, NameList, ReadOptions, graph_inputs, inputs, names_in, open, open_metered, ranks_in,
    without_secrets,
};
pub use release::{GraphPart, Release, Www};
pub use tally::{EXAMPLES_PER_KIND_MAX, Example, Finding, Tally};
pub use webstrata_url::surt;
