//! Crawl files in, captures out. (WARC, WAT, ARC, links files, tables.)

mod aut_csv;
mod capture;
mod date;
mod digest;
mod error;
pub mod generate;
mod generate_write;
mod interner;
mod jsonl;
mod lga;
mod lines;
mod links_file;
mod reader;
mod surt;
mod tables;
mod tally;
mod url;

pub use self::url::canonical;
pub use capture::{Capture, Content, Digest, Profile, Revisit, Texts};
pub use error::Error;
pub use generate::{GenerateOptions, Generator};
pub use interner::{Base, Fingerprint, Interner};
pub use reader::{CaptureReader, Input, LinkKinds, Part, inputs, open};
pub use surt::surt;
pub use tally::{EXAMPLES_PER_KIND_MAX, Example, Finding, Tally};
