//! The bytes of an input by range, wherever they are: a file of this machine, or an object on another machine.
//!
//! Cost: at single places, one request for each 64 KiB of an object that were not read lately. In order
//! ([`Source::reader`]), an object has several requests in flight.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use bytes::Bytes;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, Length};
use rawzip::{FileReader, RangeReader, ReaderAt};
use webstrata_remote::Object;

/// The bytes that are read at once from a file of this machine.
const FILE_STEP: u64 = 64 << 10;
/// The bytes that are read at once from an object: a request takes as long as many bytes.
const OBJECT_STEP: u64 = 1 << 20;

/// The bytes of an input. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    File {
        file: Arc<FileReader>,
        bytes: u64,
        /// The time of the last change.
        version: Arc<str>,
    },
    Object(Arc<Object>),
}

impl Source {
    /// The bytes of a regular file.
    pub(crate) fn of_file(file: File) -> io::Result<Self> {
        let found = file.metadata()?;
        let (bytes, version) = (found.len(), version_of(&found).into());
        Ok(Source::File { file: Arc::new(file.into()), bytes, version })
    }

    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Source::File { bytes, .. } => *bytes,
            Source::Object(object) => object.bytes(),
        }
    }

    /// A text that changes when the bytes change; empty if there is none.
    pub(crate) fn version(&self) -> &str {
        match self {
            Source::File { version, .. } => version,
            Source::Object(object) => object.version(),
        }
    }

    /// Whether ranges can be read: a server may know only whole files.
    pub(crate) fn has_ranges(&self) -> bool {
        match self {
            Source::File { .. } => true,
            Source::Object(object) => object.has_ranges(),
        }
    }

    /// The bytes that a reader should ask for at once.
    pub(crate) fn step(&self) -> u64 {
        match self {
            Source::File { .. } => FILE_STEP,
            Source::Object(_) => OBJECT_STEP,
        }
    }

    /// Reads a range in order.
    pub(crate) fn reader(&self, range: Range<u64>) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Source::File { .. } => Box::new(RangeReader::new(self.clone(), range)),
            Source::Object(object) => Box::new(object.reader(range)?),
        })
    }

    /// All bytes of a range; fewer at the end of the input.
    pub(crate) fn read(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.read_into(&mut bytes, range).map(|()| bytes)
    }

    /// As [`read`](Self::read), and replaces the bytes in a buffer.
    pub(crate) fn read_into(&self, buffer: &mut Vec<u8>, range: Range<u64>) -> io::Result<()> {
        let wanted = range.end.min(self.bytes()).saturating_sub(range.start);
        buffer.resize(usize::try_from(wanted).unwrap_or(usize::MAX), 0);
        let mut read = 0;
        while read < buffer.len() {
            match self.read_at(&mut buffer[read..], range.start + read as u64)? {
                0 => break,
                count => read += count,
            }
        }
        buffer.truncate(read);
        Ok(())
    }
}

/// The time at which a file was changed last, as text; empty if the system does not tell.
pub(crate) fn version_of(file: &Metadata) -> String {
    let changed = file.modified().ok().and_then(|changed| changed.duration_since(UNIX_EPOCH).ok());
    changed.map_or_else(String::new, |changed| format!("{changed:?}"))
}

impl ReaderAt for Source {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        match self {
            Source::File { file, .. } => file.read_at(buffer, offset),
            Source::Object(object) => object.read_at(buffer, offset),
        }
    }
}

impl Length for Source {
    fn len(&self) -> u64 {
        self.bytes()
    }
}

impl ChunkReader for Source {
    type T = RangeReader<Source>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(RangeReader::new(self.clone(), start..self.bytes()))
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let bytes = self.read(start..start.saturating_add(length as u64));
        let bytes = bytes.map_err(|error| ParquetError::External(Box::new(error)))?;
        if bytes.len() == length { Ok(bytes.into()) } else { Err(ParquetError::EOF("the file is cut off".to_owned())) }
    }
}
