//! The unit of work of one reader: a file, a row group of a Parquet file, or some hosts of a generated crawl.

use std::path::PathBuf;

use crate::generate::{GenerateOptions, Share};

/// The unit of work of one reader: a file, a row group of a Parquet file, or some hosts of a generated crawl.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Input {
    /// The file; `-` is standard input, `generate:` and the options a generated crawl.
    pub path: PathBuf,
    /// The part of the file.
    pub part: InputSplit,
    /// The approximate size of the part in bytes, for sharing out work and for progress; 0 if unknown.
    pub bytes: u64,
}

/// The part of a file or of a generated crawl.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InputSplit {
    /// The whole file.
    Whole,
    /// One row group of a Parquet file.
    RowGroup(usize),
    /// Some hosts of a generated crawl, which has no file.
    Generated(Share),
}

/// A generated crawl as inputs that can be read independently.
pub fn generated(options: GenerateOptions) -> Vec<Input> {
    let path = PathBuf::from(format!("generate:{options}"));
    let input = |(share, bytes)| Input { path: path.clone(), part: InputSplit::Generated(share), bytes };
    Share::parts(options).into_iter().map(input).collect()
}
