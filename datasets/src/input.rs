//! The unit of work of one reader: a file, a row group of a Parquet file, a crawl file in a WACZ, or some hosts of a
//! generated crawl.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use webstrata_remote::{Address, Object};

use crate::files::source::{Source, version_of};
use crate::generate::{GenerateOptions, Share};
use crate::release::GraphPart;

/// The unit of work of one reader: a file, a row group of a Parquet file, a crawl file in a WACZ, or some hosts of a
/// generated crawl.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Input {
    /// The file; `-` is standard input, `generate:` and the options a generated crawl. For a file on another machine,
    /// its address without secrets.
    pub path: PathBuf,
    /// The file on another machine.
    pub(crate) remote: Option<RemoteFile>,
    /// The part of the file.
    pub part: InputSplit,
    /// The approximate size of the part in bytes, for sharing out work and for progress; 0 if unknown.
    pub bytes: u64,
}

/// A file on another machine, as it was when it was found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RemoteFile {
    address: Address,
    bytes: u64,
    version: String,
    has_ranges: bool,
}

impl RemoteFile {
    pub(crate) fn of(object: &Object, address: &Address) -> Self {
        let (bytes, version, has_ranges) = (object.bytes(), object.version().to_owned(), object.has_ranges());
        RemoteFile { address: address.clone(), bytes, version, has_ranges }
    }
}

impl Input {
    /// The whole of a file of this machine.
    pub(crate) fn of_file(path: &Path) -> Self {
        Input { path: path.to_owned(), remote: None, part: InputSplit::Whole, bytes: 0 }
    }

    /// The bytes of the file, by range. An input that is not a regular file has none.
    pub(crate) fn source(&self) -> io::Result<Source> {
        match &self.remote {
            None => Source::of_file(File::open(&self.path)?),
            Some(file) => {
                let object = Object::known(&file.address, file.bytes, &file.version, file.has_ranges)?;
                Ok(Source::Object(Arc::new(object)))
            }
        }
    }

    /// A text that changes when the file changes: the time of its last change, or what its server says. Empty for an
    /// input without such a text.
    pub fn version(&self) -> String {
        if let Some(file) = &self.remote {
            return file.version.clone();
        }
        std::fs::metadata(&self.path).map_or_else(|_| String::new(), |found| version_of(&found))
    }

    /// The name in reports: `FILE`, `FILE#2` for the third row group, or `FILE!archive/data.warc.gz`.
    pub fn name(&self) -> PathBuf {
        let mut name = OsString::from(&self.path);
        match &self.part {
            InputSplit::RowGroup(group) => name.push(format!("#{group}")),
            InputSplit::Member(member) => name.push(format!("!{}", member.name)),
            InputSplit::Whole | InputSplit::Archive | InputSplit::Graph(_) | InputSplit::Generated(_) => {}
        }
        name.into()
    }

    /// Gives back the memory that all readers of a release of a web graph share. Call this after the last reader: a
    /// later reader would load the hosts again.
    pub fn forget(&self) {
        if let InputSplit::Graph(part) = &self.part {
            part.release.forget();
        }
    }
}

/// The part of a file or of a generated crawl.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InputSplit {
    /// The whole file.
    Whole,
    /// A ZIP archive itself, without its crawl files. Its reader has no captures: it counts the damage of the archive,
    /// and names the archives that it requires.
    Archive,
    /// One row group of a Parquet file.
    RowGroup(usize),
    /// A crawl file in a WACZ.
    Member(Member),
    /// A file of a release of a web graph.
    Graph(GraphPart),
    /// Some hosts of a generated crawl, which has no file.
    Generated(Share),
}

/// A member of a ZIP archive: where its bytes lie in the file, and what they must be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    /// The name in the archive, `archive/data.warc.gz`; in a WACZ in a WACZ, `inner.wacz!archive/data.warc.gz`.
    pub name: String,
    /// The offset of the stored bytes in the file.
    pub offset: u64,
    /// The number of stored bytes.
    pub stored_bytes: u64,
    /// Whether the stored bytes are deflated.
    pub is_deflated: bool,
    /// The number of bytes, inflated.
    pub bytes: u64,
    /// The CRC-32 of the bytes, inflated.
    pub crc32: u32,
    /// The SHA-256 of the bytes, inflated, if the description of the archive gives it.
    pub sha256: Option<[u8; 32]>,
}

/// A generated crawl as inputs that can be read independently.
pub fn generated(options: GenerateOptions) -> Vec<Input> {
    let path = PathBuf::from(format!("generate:{options}"));
    let input = |(share, bytes)| Input { path: path.clone(), remote: None, part: InputSplit::Generated(share), bytes };
    Share::parts(options).into_iter().map(input).collect()
}
