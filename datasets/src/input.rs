//! The unit of work of one reader: a file, a row group of a Parquet file, a crawl file in a WACZ, or some hosts of a
//! generated crawl.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::files::place::Place;
use crate::files::spool::Spill;
use crate::files::zip::Member;
use crate::generate::{GenerateOptions, Share};
use crate::release::GraphPart;

/// The unit of work of one reader: a file, a row group of a Parquet file, a crawl file in a WACZ, or some hosts of a
/// generated crawl.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Input {
    /// Where the bytes are.
    pub(crate) place: Place,
    /// The part of the file.
    pub part: InputSplit,
    /// The approximate size of the part in bytes, for sharing out work and for progress; 0 if unknown.
    pub bytes: u64,
}

impl Input {
    /// The whole of a file of this machine, or of standard input.
    pub(crate) fn of_path(path: &Path) -> Self {
        Input { place: Place::of_path(path), part: InputSplit::Whole, bytes: 0 }
    }

    /// The file; `-` is standard input, `generate:` and the options a generated crawl. For a file on another machine,
    /// its address without secrets.
    pub fn path(&self) -> &Path {
        &self.place.path
    }

    /// Whether the input can be read only once, as standard input, pipes and devices can.
    pub fn is_read_once(&self) -> bool {
        self.part == InputSplit::Whole && !self.place.is_file()
    }

    /// The input as one that can be read any number of times. The bytes of an input that can be read only once are
    /// copied to temporary files while they are read for the first time. The copy is gone when the last clone of the
    /// returned input is dropped. Opening the input waits for nobody, reading it waits for bytes.
    ///
    /// # Errors
    /// The temporary file cannot be created.
    pub fn kept(&self, spill: &Spill) -> Result<Self, Error> {
        let place = if self.is_read_once() { self.place.kept(spill)? } else { self.place.clone() };
        Ok(Self { place, ..self.clone() })
    }

    /// A text that changes when the file changes: the time of its last change, or what its server says. Empty for an
    /// input without such a text.
    pub fn version(&self) -> String {
        self.place.version()
    }

    /// The name in reports: `FILE`, `FILE#2` for the third row group, or `FILE!archive/data.warc.gz`.
    pub fn name(&self) -> PathBuf {
        let mut name = OsString::from(self.path());
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

/// A generated crawl as inputs that can be read independently.
pub fn generated(options: GenerateOptions) -> Vec<Input> {
    let path = PathBuf::from(format!("generate:{options}"));
    let place = Place::of_path(&path);
    let input = |(share, bytes)| Input { place: place.clone(), part: InputSplit::Generated(share), bytes };
    Share::parts(options).into_iter().map(input).collect()
}
