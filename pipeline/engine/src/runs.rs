//! Records in files, which are written once, in order, and read once, alone or merged.
//!
//! A run is a file of records in the format of [`crate::wire::append`]. [`Runs`] names the runs of one
//! collection, and a checkpoint keeps nothing else of the collection. Readers return records from their buffer without
//! copying them.
//!
//! Memory: `WRITE_BYTES` a writer, and `READ_BYTES` a run that is read (more if one record is larger). At most
//! [`RUNS_MAX`] runs are read at once.

use crate::Error;
use crate::scratch::Scratch;
use crate::state::{Run, Runs};
use crate::wire::{self, Record};
use std::cmp::Ordering;
use std::fs::File;
use std::io::{Read, Write};

/// The maximum number of runs that are merged at once; more runs are merged in passes.
pub(crate) const RUNS_MAX: usize = 64;
/// The size of the write buffer of a run.
const WRITE_BYTES: usize = 256 << 10;
/// The size of the read buffer of a run.
const READ_BYTES: usize = 128 << 10;

impl Runs {
    /// Returns the number of records.
    pub fn records(&self) -> u64 {
        self.0.iter().map(|run| run.records).sum()
    }

    /// Returns the number of bytes.
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(|run| run.bytes).sum()
    }

    /// Removes the files.
    pub(crate) fn remove(self, scratch: &Scratch) -> Result<(), Error> {
        self.0.iter().try_for_each(|run| scratch.remove(&run.name))
    }

    /// Merges runs until at most [`RUNS_MAX`] are left, the smallest first.
    pub(crate) fn compact(&mut self, what: &str, scratch: &Scratch) -> Result<(), Error> {
        while self.0.len() > RUNS_MAX {
            self.0.sort_by_key(|run| std::cmp::Reverse(run.bytes));
            let merged = self.0.split_off(self.0.len() - RUNS_MAX);
            self.0.push(Runs(merged).merged(what, scratch)?);
        }
        Ok(())
    }

    /// Merges all runs into one run and removes the files of the old runs.
    pub(crate) fn merged(self, what: &str, scratch: &Scratch) -> Result<Run, Error> {
        let mut writer = RunWriter::create(what, scratch)?;
        let mut merge = Merge::open(&self, scratch)?;
        while let Some((key, payload)) = merge.next()? {
            writer.push(key, payload)?;
        }
        self.remove(scratch)?;
        writer.finish()
    }
}

/// Writes a run.
pub struct RunWriter {
    scratch: Scratch,
    file: File,
    run: Run,
    buffer: Vec<u8>,
}

impl RunWriter {
    /// Begins a run.
    pub fn create(what: &str, scratch: &Scratch) -> Result<Self, Error> {
        let (name, file) = scratch.create(what)?;
        let buffer = Vec::with_capacity(WRITE_BYTES);
        Ok(RunWriter { scratch: scratch.clone(), file, run: Run { name, bytes: 0, records: 0 }, buffer })
    }

    /// Adds a record and returns its number, from 0.
    #[inline]
    pub fn push(&mut self, key: &[u8], payload: &[u8]) -> Result<u64, Error> {
        if self.buffer.len() + key.len() + payload.len() + wire::HEADER_BYTES_MAX > WRITE_BYTES {
            self.flush()?;
        }
        wire::append(&mut self.buffer, key, payload);
        self.run.records += 1;
        Ok(self.run.records - 1)
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.file.write_all(&self.buffer).map_err(|source| self.scratch.error(source))?;
        self.run.bytes += self.buffer.len() as u64;
        self.scratch.count_written(self.buffer.len());
        self.buffer.clear();
        Ok(())
    }

    /// Ends the run.
    pub fn finish(mut self) -> Result<Run, Error> {
        self.flush()?;
        Ok(self.run)
    }
}

/// Reads a run from its first record to its last.
pub struct RunReader {
    scratch: Scratch,
    file: File,
    /// The number of bytes of the run that are not yet in the buffer.
    bytes_left: u64,
    buffer: Vec<u8>,
    /// The places in the buffer where the current record and the next record begin.
    at: usize,
    next: usize,
    /// The place where the key of the current record begins, and the length of the key.
    key: usize,
    key_length: usize,
}

impl RunReader {
    /// Opens a run.
    pub fn open(run: &Run, scratch: &Scratch) -> Result<Self, Error> {
        let file = scratch.open_file(&run.name, run.bytes)?;
        let (scratch, buffer) = (scratch.clone(), Vec::new());
        Ok(RunReader { scratch, file, bytes_left: run.bytes, buffer, at: 0, next: 0, key: 0, key_length: 0 })
    }

    /// Moves to the next record. Returns `false` at the end.
    pub fn advance(&mut self) -> Result<bool, Error> {
        self.at = self.next;
        loop {
            let mut rest = &self.buffer[self.at..];
            if !rest.is_empty() && (rest.len() >= wire::HEADER_BYTES_MAX || self.bytes_left == 0) {
                let before = rest.len();
                let (key_length, payload_length) = (wire::take_usize(&mut rest), wire::take_usize(&mut rest));
                if rest.len() >= key_length + payload_length {
                    self.key = self.at + before - rest.len();
                    self.key_length = key_length;
                    self.next = self.key + key_length + payload_length;
                    return Ok(true);
                }
                self.fill(wire::HEADER_BYTES_MAX + key_length + payload_length)?;
            } else if self.bytes_left == 0 {
                return Ok(false);
            } else {
                self.fill(READ_BYTES)?;
            }
        }
    }

    /// Moves the rest of the buffer to the front, and reads until the buffer holds `bytes_min` bytes or all that is
    /// left.
    fn fill(&mut self, bytes_min: usize) -> Result<(), Error> {
        self.buffer.drain(..self.at);
        self.at = 0;
        let held = self.buffer.len();
        let count =
            usize::try_from(self.bytes_left).unwrap_or(usize::MAX).min(bytes_min.max(READ_BYTES).saturating_sub(held));
        if count == 0 {
            return Err(Error::Internal("a temporary file ends inside a record"));
        }
        self.buffer.resize(held + count, 0);
        self.file.read_exact(&mut self.buffer[held..]).map_err(|source| self.scratch.error(source))?;
        self.bytes_left -= count as u64;
        self.scratch.count_read(count);
        Ok(())
    }

    /// Returns the current record.
    #[inline]
    pub fn record(&self) -> Record<'_> {
        self.record_bytes().split_at(self.key_length)
    }

    /// Returns key and payload of the current record together.
    #[inline]
    fn record_bytes(&self) -> &[u8] {
        &self.buffer[self.key..self.next]
    }

    /// Moves to the next record and returns this record; `None` at the end.
    #[expect(clippy::should_implement_trait, reason = "records borrow from it")]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, Error> {
        Ok(if self.advance()? { Some(self.record()) } else { None })
    }
}

/// The first bytes of the current record of a run.
#[derive(Clone, Copy)]
struct Head {
    // Not a pair, which would be padded.
    first: u128,
    next: u64,
    run: usize,
}

impl Head {
    #[inline]
    fn of(record: &[u8], run: usize) -> Self {
        let (first, next) = wire::first_bytes(record);
        Self { first, next, run }
    }
}

/// A merge of runs, by key and payload.
pub struct Merge {
    runs: Vec<RunReader>,
    /// A heap of the runs that are not at their end, with the first bytes of their current records. The run with the
    /// least record comes first.
    heap: Vec<Head>,
    consumed: bool,
}

impl Merge {
    /// Opens runs to read them as one.
    pub fn open(runs: &Runs, scratch: &Scratch) -> Result<Self, Error> {
        let mut merge = Merge { runs: Vec::new(), heap: Vec::new(), consumed: false };
        for run in &runs.0 {
            let mut reader = RunReader::open(run, scratch)?;
            if reader.advance()? {
                merge.heap.push(Head::of(reader.record_bytes(), merge.runs.len()));
                merge.runs.push(reader);
            }
        }
        (0..merge.heap.len() / 2).rev().for_each(|node| merge.sift_down(node));
        Ok(merge)
    }

    #[inline]
    fn less(&self, one: Head, other: Head) -> bool {
        match (one.first, one.next).cmp(&(other.first, other.next)) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => self.runs[one.run].record_bytes() < self.runs[other.run].record_bytes(),
        }
    }

    fn sift_down(&mut self, mut node: usize) {
        loop {
            let (left, right) = (2 * node + 1, 2 * node + 2);
            if left >= self.heap.len() {
                return;
            }
            let right_is_less = right < self.heap.len() && self.less(self.heap[right], self.heap[left]);
            let child = if right_is_less { right } else { left };
            if !self.less(self.heap[child], self.heap[node]) {
                return;
            }
            self.heap.swap(node, child);
            node = child;
        }
    }

    /// Moves past the record that was returned last.
    fn settle(&mut self) -> Result<(), Error> {
        if std::mem::take(&mut self.consumed)
            && let Some(&Head { run, .. }) = self.heap.first()
        {
            if self.runs[run].advance()? {
                self.heap[0] = Head::of(self.runs[run].record_bytes(), run);
            } else {
                self.heap.swap_remove(0);
            }
            self.sift_down(0);
        }
        Ok(())
    }

    /// Returns the record that [`Merge::next`] will return.
    pub fn peek(&mut self) -> Result<Option<Record<'_>>, Error> {
        self.settle()?;
        Ok(self.heap.first().map(|head| self.runs[head.run].record()))
    }

    /// Returns the next record; `None` at the end.
    #[expect(clippy::should_implement_trait, reason = "records borrow from it")]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, Error> {
        self.settle()?;
        self.consumed = true;
        Ok(self.heap.first().map(|head| self.runs[head.run].record()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_any_size_come_back_in_order_and_merge() {
        let dir = tempfile::tempdir().unwrap();
        let scratch = Scratch::temporary(dir.path());
        let records: Vec<(Vec<u8>, Vec<u8>)> = (0..2_000usize)
            .map(|n| (format!("{n:06}").into_bytes(), vec![7; if n % 500 == 3 { 300_000 } else { n % 90 }]))
            .collect();
        let mut writers: Vec<RunWriter> = (0..3).map(|_| RunWriter::create("test", &scratch).unwrap()).collect();
        for (number, (key, payload)) in records.iter().enumerate() {
            writers[number * number % 3].push(key, payload).unwrap();
        }
        let runs = Runs(writers.into_iter().map(|writer| writer.finish().unwrap()).collect());
        assert_eq!(runs.records(), 2_000);
        let merged = Runs(vec![runs.merged("test", &scratch).unwrap()]);
        let mut merge = Merge::open(&merged, &scratch).unwrap();
        for (key, payload) in &records {
            assert_eq!(merge.peek().unwrap(), Some((&key[..], &payload[..])));
            assert_eq!(merge.next().unwrap(), Some((&key[..], &payload[..])));
        }
        assert_eq!(merge.next().unwrap(), None);
        merged.remove(&scratch).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_run_that_was_cut_short_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let scratch = Scratch::temporary(dir.path());
        let mut writer = RunWriter::create("test", &scratch).unwrap();
        writer.push(b"key", b"payload").unwrap();
        let mut run = writer.finish().unwrap();
        run.bytes += 1;
        assert!(RunReader::open(&run, &scratch).is_err());
    }
}
