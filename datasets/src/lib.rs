//! Crawl files in, captures out: the readers of everything that holds links with a page and a time.
//!
//! ```text
//! paths -> inputs -> open: [compressed] -> [detect] -> one reader a format -> Capture -> [interner] -> fingerprints
//! ```
//!
//! | module | what |
//! |---|---|
//! | `input`, `reader` | the way in: [`inputs`], [`open`], [`CaptureReader`] |
//! | `files` | bytes of a file whatever its container, and which format they are |
//! | `formats` | one reader a format |
//! | `page` | links of a document, by way of its character set and tags |
//! | `url` | what a URL is, its fingerprint, its urlkey |
//! | `capture` | what leaves a reader, with dates and digests |
//! | `generate` | made-up crawls, as inputs and as files |
//! | `tally`, `error` | damage and omissions, counted; errors |

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
pub use crate::url::interner::{Base, Fingerprint, Interner};
pub use crate::url::reference::{URL_BYTES, URL_BYTES_MAX};
pub use crate::url::surt::surt;
pub use capture::{Capture, Content, Dictionary, Digest, Profile, Revisit, Texts};
pub use error::Error;
pub use generate::{GenerateOptions, Generator};
pub use input::{Input, InputSplit, generated};
pub use reader::{CaptureReader, LinkKinds, inputs, open, open_counting};
pub use tally::{EXAMPLES_PER_KIND_MAX, Example, Finding, Tally};
