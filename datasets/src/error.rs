//! The errors of reading crawl files.

use std::path::{Path, PathBuf};

/// Why an input cannot be read. Damage inside an input is not an error, see [`crate::Tally`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file system returned an error.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A path is a URL.
    #[error(
        "{}: inputs are files of this machine; download the file first, or pipe it in with - as the input: \
         curl -s URL | webstrata build --out STORE -",
        path.display()
    )]
    NotLocal {
        /// The URL.
        path: PathBuf,
    },
    /// A path or pattern names no file.
    #[error("{}: no such file", path.display())]
    NoSuchFile {
        /// The path or pattern.
        path: PathBuf,
    },
}

impl Error {
    /// An I/O error at a path.
    pub fn io(path: &Path, source: std::io::Error) -> Self {
        Error::Io { path: path.to_owned(), source }
    }
}
