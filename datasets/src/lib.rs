//! Readers of crawl files. Each reader turns one file into captures: a page, a time and the links.
//!
//! ```text
//! paths -> inputs -> open: [compressed] -> [detect] -> one reader a format -> Capture -> [interner] -> fingerprints
//! ```
//!
//! | module | task |
//! |---|---|
//! | `input`, `reader` | the entry points: [`inputs`], [`open`], [`CaptureReader`]; format detection |
//! | `files` | decompresses a file; its beginning and its lines |
//! | `formats` | one reader for each format |
//! | `page` | finds the links of a document: charset, tags, attributes |
//! | `url` | makes canonical URLs, fingerprints and urlkeys |
//! | `capture` | the capture that every reader returns, with its date and digest |
//! | `generate` | generates crawls, as inputs and as files |
//! | `tally`, `error` | counts damage and omissions; errors |

mod capture;
mod error;
mod files;
mod formats;
pub mod generate;
mod input;
mod page;
mod reader;
mod tally;
mod url;

pub use crate::capture::date::TIMES;
pub use crate::url::form::Form;
pub use crate::url::interner::{Base, Fingerprint, Interner};
pub use crate::url::reference::{URL_BYTES, URL_BYTES_MAX};
pub use capture::{Capture, Content, Dictionary, Digest, Profile, Revisit, Texts};
pub use error::Error;
pub use files::hashed::{DigestCell, InputDigest};
pub use generate::{GenerateOptions, Generator};
pub use input::{Input, InputSplit, generated};
pub use reader::{CaptureReader, LinkKinds, inputs, open, open_metered};
pub use tally::{EXAMPLES_PER_KIND_MAX, Example, Finding, Tally};
pub use webstrata_url::surt;
