//! Crawl files in, captures out. (WARC, WAT, ARC, links files, tables.)

mod capture;
mod error;
mod reader;
mod tally;

pub use capture::{Capture, Content, Digest, Profile, Revisit, Texts};
pub use error::Error;
pub use reader::{CaptureReader, Input, LinkKinds, Part, inputs, open};
pub use tally::{EXAMPLES_PER_KIND_MAX, Example, Finding, Tally};
