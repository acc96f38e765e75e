//! The way into the crate: a list of inputs, and a reader of captures for each.

use crate::{Capture, Error, Tally};
use std::path::PathBuf;

/// A file, or a part of one, that one worker reads on its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Input {
    /// The file; `-` is standard input.
    pub path: PathBuf,
    /// The part of it.
    pub part: Part,
    /// Size in bytes (of the part, roughly), for sharing out work and for progress; 0 where unknown.
    pub bytes: u64,
}

/// Which part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// All of it.
    Whole,
    /// One row group of a Parquet file.
    RowGroup(usize),
}

/// Which links of a page count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkKinds {
    /// `a`, `area`, `frame` and `iframe`.
    pub anchors: bool,
    /// `Location` of 3xx responses (which then are captures) and `<meta http-equiv=refresh>`.
    pub redirects: bool,
    /// Everything else that a page names: images, scripts, style sheets, forms, objects, media.
    pub embeds: bool,
    /// Heritrix `outlink:` lines of `metadata` records.
    pub outlinks: bool,
}

impl Default for LinkKinds {
    fn default() -> Self {
        LinkKinds { anchors: true, redirects: false, embeds: false, outlinks: false }
    }
}

/// A source of captures.
pub trait CaptureReader: Send {
    /// Reads the next capture into `capture`, replacing what it held; `false` at the end of the input.
    /// What is damaged or left out on the way is counted in `tally`.
    ///
    /// # Errors
    /// Only where the input cannot be read at all (an I/O error); damage inside it is counted and passed over.
    fn read(&mut self, capture: &mut Capture, tally: &mut Tally) -> Result<bool, Error>;
}

/// Expands files, directories (all files below, hidden ones left out), globs and `-` into inputs, sorted, each once.
/// Parquet files come apart into row groups.
///
/// # Errors
/// A path or pattern that names nothing, or a directory that cannot be read.
pub fn inputs(paths: &[PathBuf]) -> Result<Vec<Input>, Error> {
    let _ = paths;
    Ok(Vec::new())
}

/// Opens an input; its format is told by its first bytes, not by its name.
///
/// # Errors
/// The file cannot be opened or read. A file of unknown format is no error: it gives no capture and counts as
/// [`crate::Finding::UnknownFormat`].
pub fn open(input: &Input, kinds: LinkKinds) -> Result<Box<dyn CaptureReader>, Error> {
    let _ = kinds;
    Err(Error::io(&input.path, std::io::ErrorKind::Unsupported.into()))
}
