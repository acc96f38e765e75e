//! A sequence of byte strings written once and read once in the same order: in memory up to a bound, then in an
//! unnamed temporary file.

use crate::Error;
use crate::external_sort::Spill;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::sync::atomic::Ordering::Relaxed;
use tempfile::SpooledTempFile;

/// The writing side.
pub(crate) struct Spool {
    spill: Spill,
    file: BufWriter<SpooledTempFile>,
    bytes: u64,
    records: u64,
}

impl Spool {
    pub(crate) fn new(spill: &Spill, bytes_max: usize) -> Self {
        let file = BufWriter::with_capacity(64 << 10, tempfile::spooled_tempfile_in(bytes_max, &spill.directory));
        Spool { spill: spill.clone(), file, bytes: 0, records: 0 }
    }

    /// Adds a record and returns its number, from 0.
    pub(crate) fn push(&mut self, record: &[u8]) -> Result<u64, Error> {
        let length = record.len().to_le_bytes();
        self.file.write_all(&length).and_then(|()| self.file.write_all(record)).map_err(|e| self.spill.error(e))?;
        self.bytes += record.len() as u64 + 8;
        self.records += 1;
        Ok(self.records - 1)
    }

    /// Ends the writing.
    pub(crate) fn finish(self) -> Result<SpoolReader, Error> {
        let spill = self.spill;
        let mut file = self.file.into_inner().map_err(|error| spill.error(error.into_error()))?;
        if file.is_rolled() {
            spill.bytes.fetch_add(self.bytes, Relaxed);
        }
        file.seek(SeekFrom::Start(0)).map_err(|error| spill.error(error))?;
        let file = BufReader::with_capacity(64 << 10, file);
        Ok(SpoolReader { spill, file, records: self.records, record: Vec::new() })
    }
}

/// The reading side.
pub(crate) struct SpoolReader {
    spill: Spill,
    file: BufReader<SpooledTempFile>,
    records: u64,
    record: Vec<u8>,
}

impl SpoolReader {
    /// The next record, or `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, Error> {
        if self.records == 0 {
            return Ok(None);
        }
        self.records -= 1;
        let mut length = [0; size_of::<usize>()];
        self.file.read_exact(&mut length).map_err(|error| self.spill.error(error))?;
        self.record.resize(usize::from_le_bytes(length), 0);
        self.file.read_exact(&mut self.record).map_err(|error| self.spill.error(error))?;
        Ok(Some(&self.record))
    }
}
