//! The bytes of a layer file, where they lie: a file on this machine, or what was fetched of an object.
//!
//! Memory: nothing for a file; the whole object for what was fetched, until the last clone goes.

use std::fs::{File, Metadata};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use xxhash_rust::xxh3::Xxh3;

use crate::error::Error;
use crate::location::regular;

/// The bytes of a layer file. What was read of it once, by this value or a clone, is what is read of it ever after, or
/// an error is: a store may be removed and built anew under its readers.
#[derive(Clone)]
pub(crate) enum Body {
    /// Read from the disk when needed; no file is kept open (stores have more files than systems open).
    File(Arc<FileBody>),
    /// In memory, whole.
    #[cfg(feature = "s3")]
    Fetched(bytes::Bytes),
}

/// A file on this machine.
pub(crate) struct FileBody {
    path: PathBuf,
    /// Which file it was when it was first opened.
    seen: OnceLock<FileId>,
}

/// What tells a file from another one of its name.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FileId {
    bytes: u64,
    modified: Option<SystemTime>,
    inode: u64,
}

impl FileId {
    fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(metadata);
        #[cfg(not(unix))]
        let inode = 0;
        Self { bytes: metadata.len(), modified: metadata.modified().ok(), inode }
    }
}

impl FileBody {
    /// Opens the file: the one that was opened before.
    pub(crate) fn open(&self) -> Result<File, Error> {
        let file = regular::open(&self.path).map_err(Error::io(&self.path))?;
        let id = FileId::of(&file.metadata().map_err(Error::io(&self.path))?);
        if *self.seen.get_or_init(|| id) == id { Ok(file) } else { Err(Error::Exchanged { path: self.path.clone() }) }
    }
}

impl Body {
    /// That of a file on this machine.
    pub(crate) fn of_file(path: PathBuf) -> Self {
        Self::File(Arc::new(FileBody { path, seen: OnceLock::new() }))
    }

    /// The size of the file; `path` is for messages.
    pub(crate) fn len(&self, path: &Path) -> Result<u64, Error> {
        match self {
            Body::File(file) => Ok(file.open()?.metadata().map_err(Error::io(path))?.len()),
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
                let (mut file, mut block) = (file.open()?, vec![0u8; 1 << 17]);
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
