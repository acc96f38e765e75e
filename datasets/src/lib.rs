//! Crawl files in, captures out. (WARC, WAT, ARC, links files, tables.)

mod arc;
mod aut_csv;
mod capture;
mod charset;
mod compressed;
mod detect;
mod document;
mod error;
mod html;
mod http;
mod jsonl;
mod lga;
mod links_file;
mod reader;
mod record;
mod tables;
mod tally;
mod warc;
mod wat;

pub use capture::{Capture, Content, Digest, Profile, Revisit, Texts};
pub use error::Error;
pub use reader::{CaptureReader, Input, LinkKinds, Part, inputs, open};
pub use tally::{EXAMPLES_PER_KIND_MAX, Example, Finding, Tally};
