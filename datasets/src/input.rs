//! What one worker reads on its own: a file, a part of one, or a part of a made-up crawl.

use std::path::PathBuf;

use crate::generate::{GenerateOptions, Share};

/// A file, a part of one, or a part of a made-up crawl, that one worker reads on its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Input {
    /// The file; `-` is standard input, `generate:` and the options a made-up crawl.
    pub path: PathBuf,
    /// The part of it.
    pub part: InputSplit,
    /// Size in bytes (of the part, roughly), for sharing out work and for progress; 0 where unknown.
    pub bytes: u64,
}

/// Which part of a file or of a made-up crawl.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InputSplit {
    /// All of it.
    Whole,
    /// One row group of a Parquet file.
    RowGroup(usize),
    /// Some hosts of a made-up crawl; there is no file.
    Generated(Share),
}

/// A made-up crawl as inputs, each to be read on its own.
pub fn generated(options: GenerateOptions) -> Vec<Input> {
    let path = PathBuf::from(format!("generate:{options}"));
    let input = |(share, bytes)| Input { path: path.clone(), part: InputSplit::Generated(share), bytes };
    Share::parts(options).into_iter().map(input).collect()
}
