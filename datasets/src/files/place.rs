//! Where the bytes of an input are: standard input, a file of this machine, or a file on another machine.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use webstrata_remote::{Address, Object};

use crate::files::source::{Source, version_of};

/// The path that means standard input.
const STDIN: &str = "-";

/// The place of the bytes of an input.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// The file; `-` is standard input. For a file on another machine, its address without secrets.
    pub(crate) path: PathBuf,
    remote: Option<RemoteFile>,
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
        Place { path: path.to_owned(), remote: None }
    }

    /// A file on another machine.
    pub(crate) fn of_object(object: &Object) -> Self {
        let address = object.address();
        let (bytes, version, has_ranges) = (object.bytes(), object.version().to_owned(), object.has_ranges());
        let file = RemoteFile { address: address.clone(), bytes, version, has_ranges };
        Place { path: address.to_string().into(), remote: Some(file) }
    }

    pub(crate) fn is_stdin(&self) -> bool {
        self.path.as_os_str() == STDIN
    }

    /// Whether the bytes can be read again from the beginning. Those of standard input and of pipes cannot.
    pub(crate) fn is_file(&self) -> bool {
        self.remote.is_some() || !self.is_stdin() && self.path.is_file()
    }

    /// The bytes by range. Only a file has ranges.
    pub(crate) fn source(&self) -> io::Result<Source> {
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
}
