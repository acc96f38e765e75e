//! The bytes of a layer file, where they lie: a file on this machine, or what was fetched of an object.
//!
//! Memory: nothing for a file; the whole object for what was fetched, until the last clone goes.

use std::io::Read;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

use crate::error::Error;
use crate::regular;

/// The bytes of a layer file.
#[derive(Clone)]
pub(crate) enum Body {
    /// Read from the disk when needed; no file is kept open (stores have more files than systems open).
    File(PathBuf),
    /// In memory, whole.
    #[cfg(feature = "s3")]
    Fetched(bytes::Bytes),
}

impl Body {
    /// The size of the file; `path` is for messages.
    pub(crate) fn len(&self, path: &Path) -> Result<u64, Error> {
        match self {
            Body::File(file) => Ok(std::fs::metadata(file).map_err(Error::io(path))?.len()),
            #[cfg(feature = "s3")]
            Body::Fetched(bytes) => Ok(bytes.len() as u64),
        }
    }

    /// Bytes of memory that it takes.
    pub(crate) fn held(&self) -> usize {
        match self {
            Body::File(_) => 0,
            #[cfg(feature = "s3")]
            Body::Fetched(bytes) => bytes.len(),
        }
    }

    /// Compares with size and checksum of the manifest. Cost: reads all.
    pub(crate) fn verify(&self, path: &Path, bytes: u64, checksum: &str) -> Result<(), Error> {
        let got = self.len(path)?;
        if got != bytes {
            return Err(Error::Size { path: path.to_owned(), expected: bytes, got });
        }
        let mut hash = Xxh3::new();
        match self {
            Body::File(file) => {
                let (mut file, mut block) = (regular::open(file).map_err(Error::io(path))?, vec![0u8; 1 << 17]);
                loop {
                    let read = file.read(&mut block).map_err(Error::io(path))?;
                    if read == 0 {
                        break;
                    }
                    hash.update(&block[..read]);
                }
            }
            #[cfg(feature = "s3")]
            Body::Fetched(bytes) => hash.update(bytes),
        }
        let got = format!("{:016x}", hash.digest());
        if got == checksum {
            Ok(())
        } else {
            Err(Error::Checksum { path: path.to_owned(), expected: checksum.to_owned(), got })
        }
    }
}
