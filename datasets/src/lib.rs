//! Crawl files in, captures out: the readers of everything that holds links with a page and a time.
//!
//! ```text
//! paths -> inputs -> open: [compressed] -> [detect] -> one reader a format -> Capture -> [interner] -> fingerprints
//! ```
//!
//! | file | what |
//! |---|---|
//! | `reader` | the way in: [`inputs`], [`open`], [`CaptureReader`] |
//! | `compressed`, `detect` | bytes of a file whatever its container, and which format they are |
//! | `warc`, `arc`, `wat` | records of crawlers, by way of `record`, `http`, `document`, `charset`, `html` and `tags` |
//! | `jsonl`, `links_file`, `aut_csv`, `tables`, `lga` | captures and link tables, by way of `lines` and `long_line` |
//! | `capture`, `overflow`, `digest`, `date` | what leaves a reader |
//! | `url`, `interner`, `surt` | what a URL is, its fingerprint, its urlkey |
//! | `generate` | made-up crawls, as inputs and as files |
//! | `tally`, `error` | damage and omissions, counted; errors |

mod arc;
mod aut_csv;
mod capture;
mod charset;
mod compressed;
mod date;
mod detect;
mod digest;
mod document;
mod error;
pub mod generate;
mod html;
mod http;
mod interner;
mod jsonl;
mod lga;
mod lines;
mod links_file;
mod long_line;
mod overflow;
mod reader;
mod record;
mod surt;
mod tables;
mod tags;
mod tally;
mod url;
mod warc;
mod wat;

pub use self::url::{URL_BYTES, URL_BYTES_MAX, canonical};
pub use capture::{Capture, Content, Dictionary, Digest, Profile, Revisit, Texts};
pub use date::TIMES;
pub use error::Error;
pub use generate::{GenerateOptions, Generator};
pub use interner::{Base, Fingerprint, Interner};
pub use reader::{CaptureReader, Input, LinkKinds, Part, inputs, open, open_counting};
pub use surt::surt;
pub use tally::{EXAMPLES_PER_KIND_MAX, Example, Finding, Tally};
