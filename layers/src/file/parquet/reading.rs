//! Reads files for the Parquet library, and keeps errors of the operating system.
//!
//! The library turns an error of the operating system into text. The caller would then mistake a disk that does not
//! answer for a damaged file. This module therefore keeps the error and returns it in place of the error of the
//! library.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, Length};

use crate::error::Error;
use crate::location::body::Body;

/// Passes the bytes of a file to `read`. If the operating system failed, returns its error.
pub(super) fn reading<T>(path: &Path, body: &Body, read: impl FnOnce(Reading) -> Result<T, Error>) -> Result<T, Error> {
    let source = match body {
        Body::File(file) => {
            let file = file.open()?;
            let len = file.metadata().map_err(Error::io(path))?.len();
            Source::File { file, len }
        }
        #[cfg(feature = "remote")]
        Body::Fetched(bytes) => Source::Fetched(bytes.clone()),
    };
    let refused = Refused::default();
    let result = read(Reading { source, refused: refused.clone() });
    result.map_err(|error| refused.take().map_or(error, Error::io(path)))
}

/// The bytes of a file, in the form that the library reads.
pub(super) struct Reading {
    source: Source,
    refused: Refused,
}

enum Source {
    File {
        file: File,
        len: u64,
    },
    #[cfg(feature = "remote")]
    Fetched(Bytes),
}

impl Length for Reading {
    fn len(&self) -> u64 {
        match &self.source {
            Source::File { len, .. } => *len,
            #[cfg(feature = "remote")]
            Source::Fetched(bytes) => bytes.len() as u64,
        }
    }
}

impl ChunkReader for Reading {
    type T = Box<dyn Read>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        match &self.source {
            Source::File { file, .. } => {
                let reader = at(file, start).map_err(|error| self.refused.keep(error))?;
                Ok(Box::new(BufReader::new(Kept { reader, refused: self.refused.clone() })))
            }
            #[cfg(feature = "remote")]
            Source::Fetched(bytes) => Ok(Box::new(bytes.get_read(start)?)),
        }
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        match &self.source {
            Source::File { file, .. } => {
                let mut bytes = Vec::with_capacity(length);
                let read = at(file, start).and_then(|file| file.take(length as u64).read_to_end(&mut bytes));
                match read.map_err(|error| self.refused.keep(error))? {
                    read if read == length => Ok(bytes.into()),
                    read => {
                        Err(ParquetError::EOF(format!("{length} bytes are expected at {start}, and {read} are there")))
                    }
                }
            }
            #[cfg(feature = "remote")]
            Source::Fetched(bytes) => bytes.get_bytes(start, length),
        }
    }
}

fn at(file: &File, start: u64) -> io::Result<File> {
    let mut file = file.try_clone()?;
    file.seek(SeekFrom::Start(start))?;
    Ok(file)
}

/// The first error of the operating system.
#[derive(Clone, Default)]
struct Refused(Arc<Mutex<Option<io::Error>>>);

impl Refused {
    /// Keeps an error, and returns another error of the same kind for the library.
    fn keep(&self, error: io::Error) -> io::Error {
        let kind = error.kind();
        if kind != ErrorKind::Interrupted
            && let Ok(mut first) = self.0.lock()
        {
            first.get_or_insert(error);
        }
        kind.into()
    }

    fn take(&self) -> Option<io::Error> {
        self.0.lock().ok().and_then(|mut first| first.take())
    }
}

/// A file that keeps its errors.
struct Kept {
    reader: File,
    refused: Refused,
}

impl Read for Kept {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer).map_err(|error| self.refused.keep(error))
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    /// Reading the memory of this process at 0 is an input/output error. No other file gives this error reliably.
    #[test]
    fn a_disk_that_does_not_answer_is_no_damage() {
        let path = Path::new("/proc/self/mem");
        let body = Body::of_file(path.to_owned());
        let read = |reading: Reading| {
            assert!(reading.get_bytes(0, 8).is_err());
            let reading = Reading { source: Source::File { file: File::open(path).unwrap(), len: 1 << 10 }, ..reading };
            ParquetRecordBatchReaderBuilder::try_new(reading).map(drop).map_err(Error::parquet(path))
        };
        let error = reading(path, &body, read).unwrap_err();
        assert!(!error.is_damage(), "{error}");
        assert_eq!(error.to_string(), "/proc/self/mem: Input/output error (os error 5)");
    }
}
