//! Where the bytes of an input are: standard input, a file of this machine, or a file on another machine.

use std::cmp::Ordering;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use webstrata_remote::{Address, Object};

use crate::Error;
use crate::files::source::{Source, version_of};
use crate::files::spool::{Spill, Spool};

/// The path that means standard input.
const STDIN: &str = "-";

/// The place of the bytes of an input.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// The file; `-` is standard input. For a file on another machine, its address without secrets.
    pub(crate) path: PathBuf,
    remote: Option<RemoteFile>,
    copy: Copy,
}

/// The copy of bytes that can be read only once. It says where bytes are kept, and never which bytes.
#[derive(Clone, Debug, Default)]
struct Copy(Option<Spool>);

impl PartialEq for Copy {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Copy {}

impl PartialOrd for Copy {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Copy {
    fn cmp(&self, _: &Self) -> Ordering {
        Ordering::Equal
    }
}

/// A file on another machine, as it was when it was found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RemoteFile {
    address: Address,
    bytes: u64,
    version: String,
    has_ranges: bool,
}

impl Place {
    /// A path of this machine.
    pub(crate) fn of_path(path: &Path) -> Self {
        Place { path: path.to_owned(), remote: None, copy: Copy::default() }
    }

    /// A file on another machine.
    pub(crate) fn of_object(object: &Object) -> Self {
        let address = object.address();
        let (bytes, version, has_ranges) = (object.bytes(), object.version().to_owned(), object.has_ranges());
        let file = RemoteFile { address: address.clone(), bytes, version, has_ranges };
        Place { path: address.to_string().into(), remote: Some(file), copy: Copy::default() }
    }

    pub(crate) fn is_stdin(&self) -> bool {
        self.path.as_os_str() == STDIN
    }

    /// Whether the bytes can be read again from the beginning. Those of standard input and of pipes cannot, unless they
    /// are copied.
    pub(crate) fn is_file(&self) -> bool {
        self.remote.is_some() || self.copy.0.is_some() || !self.is_stdin() && self.path.is_file()
    }

    /// The place, with a copy in temporary files if its bytes can be read only once. Nobody waits here.
    pub(crate) fn kept(&self, spill: &Spill) -> Result<Self, Error> {
        if self.is_file() {
            return Ok(self.clone());
        }
        let place = self.clone();
        let copy = Copy(Some(Spool::begin(move || place.reader(), spill)?));
        Ok(Self { copy, ..self.clone() })
    }

    /// Whether the bytes are copied while they are read.
    pub(crate) fn is_copied(&self) -> bool {
        self.copy.0.is_some()
    }

    /// The bytes by range. Only a file has ranges. The bytes of a copy are there when all are copied.
    pub(crate) fn source(&self) -> io::Result<Source> {
        if let Some(spool) = &self.copy.0 {
            return spool.source();
        }
        match &self.remote {
            None => Source::of_file(File::open(&self.path)?),
            Some(file) => {
                let object = Object::known(&file.address, file.bytes, &file.version, file.has_ranges)?;
                Ok(Source::Object(Arc::new(object)))
            }
        }
    }

    /// The bytes in order.
    pub(crate) fn reader(&self) -> io::Result<Box<dyn Read + Send>> {
        if let Some(spool) = &self.copy.0 {
            return Ok(spool.reader());
        }
        match &self.remote {
            Some(_) => self.source().and_then(|source| source.reader(0..source.bytes())),
            None if self.is_stdin() => Ok(Box::new(io::stdin())),
            None => Ok(Box::new(File::open(&self.path)?)),
        }
    }

    /// The first bytes in order, perhaps more. A file on another machine gives no more than these.
    pub(crate) fn beginning(&self, bytes: u64) -> io::Result<Box<dyn Read + Send>> {
        match &self.remote {
            Some(file) if file.has_ranges => self.source()?.reader(0..bytes.min(file.bytes)),
            _ => self.reader(),
        }
    }

    /// A text that changes when the file changes: the time of its last change, or what its server says. Empty if there
    /// is no such text.
    pub(crate) fn version(&self) -> String {
        match &self.remote {
            Some(file) => file.version.clone(),
            None => std::fs::metadata(&self.path).map_or_else(|_| String::new(), |found| version_of(&found)),
        }
    }

    /// What is the same for all names of one pipe or device: `-`, `/dev/stdin` and `/dev/fd/0` are one. `None` for
    /// regular files, and where the system does not say.
    pub(crate) fn stream(&self) -> Option<(u64, u64)> {
        let found = if self.is_stdin() { of_stdin() } else { std::fs::metadata(&self.path).ok() };
        found.filter(|found| !found.is_file()).and_then(|found| identity(&found))
    }
}

#[cfg(unix)]
fn identity(found: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((found.dev(), found.ino()))
}

#[cfg(unix)]
fn of_stdin() -> Option<Metadata> {
    use std::os::fd::AsFd;
    File::from(io::stdin().as_fd().try_clone_to_owned().ok()?).metadata().ok()
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> Option<(u64, u64)> {
    None
}

#[cfg(not(unix))]
fn of_stdin() -> Option<Metadata> {
    None
}
