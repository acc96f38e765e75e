//! The bytes of a layer file: a file on this machine, or the contents of a fetched object.
//!
//! Memory: none for a file; the whole object for a fetched object, until the last clone is dropped.

use std::fs::{File, Metadata};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use xxhash_rust::xxh3::Xxh3;

use crate::error::Error;
use crate::location::regular;

/// The bytes of a layer file. After the first read, by this value or a clone, every later read gives bytes of the same
/// file or an error, because a store may be removed and rebuilt while it is read.
#[derive(Clone)]
pub(crate) enum Body {
    /// Read from the disk when needed. No file is kept open, because stores have more files than systems allow to open.
    File(Arc<FileBody>),
    /// The whole contents in memory.
    #[cfg(feature = "remote")]
    Fetched(bytes::Bytes),
}

/// A file on this machine.
pub(crate) struct FileBody {
    path: PathBuf,
    /// The identity of the file when it was first opened.
    seen: OnceLock<FileId>,
}

/// The properties that distinguish a file from another file with the same name.
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
    /// Opens the file. Fails if it is not the file that was opened before.
    pub(crate) fn open(&self) -> Result<File, Error> {
        let file = regular::open(&self.path).map_err(Error::io(&self.path))?;
        let id = FileId::of(&file.metadata().map_err(Error::io(&self.path))?);
        if *self.seen.get_or_init(|| id) == id { Ok(file) } else { Err(Error::Exchanged { path: self.path.clone() }) }
    }
}

impl Body {
    /// The body of a file on this machine.
    pub(crate) fn of_file(path: PathBuf) -> Self {
        Self::File(Arc::new(FileBody { path, seen: OnceLock::new() }))
    }

    /// The size of the file; `path` is for messages.
    pub(crate) fn len(&self, path: &Path) -> Result<u64, Error> {
        match self {
            Body::File(file) => Ok(file.open()?.metadata().map_err(Error::io(path))?.len()),
            #[cfg(feature = "remote")]
            Body::Fetched(bytes) => Ok(bytes.len() as u64),
        }
    }

    /// The bytes of memory that this value takes.
    pub(crate) fn held(&self) -> usize {
        match self {
            Body::File(_) => 0,
            #[cfg(feature = "remote")]
            Body::Fetched(bytes) => bytes.len(),
        }
    }

    /// Compares size and checksum with the manifest. Cost: reads the whole file.
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
            #[cfg(feature = "remote")]
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
