//! External sort of records, each a key and a payload, both byte strings.
//!
//! Order: by the bytes of key and payload, one after the other, unsigned. The keys of one sorter are all of one length, or
//! none is the beginning of another, so records are in order of their keys and equal keys lie together; and the result
//! depends on the set of records alone.
//!
//! Records arrive in blocks (the blocks of the exchange are kept as they are, nothing is copied) or one by one. When
//! blocks and index pass the budget, they are sorted and written as a run to an unnamed temporary file; at the end all
//! runs and what is left in memory are merged.
//!
//! A record stands in a block and in a run as: length of the key, length of the payload (LEB128), key, payload.
//!
//! Memory: the budget, plus one block, plus at the merge [`RUN_BUFFER_BYTES`] a run and at most [`RUNS_MAX`] runs
//! (more are merged into one first). Cost: one write and one read of what does not fit; twice for more than
//! `RUNS_MAX` budgets of data.

use crate::{Error, wire};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Runs that are merged at once.
const RUNS_MAX: usize = 64;
/// Read buffer of a run.
const RUN_BUFFER_BYTES: usize = 64 << 10;
/// Size of the blocks that hold records pushed one by one.
const BLOCK_BYTES: usize = 64 << 10;

/// Where temporary files go, and how many bytes went there.
#[derive(Clone, Debug)]
pub(crate) struct Spill {
    pub(crate) directory: PathBuf,
    pub(crate) bytes: Arc<AtomicU64>,
}

impl Spill {
    /// A temporary file without a name: it is gone when the process ends, however it ends.
    pub(crate) fn file(&self) -> Result<File, Error> {
        tempfile::tempfile_in(&self.directory).map_err(|source| self.error(source))
    }

    pub(crate) fn error(&self, source: std::io::Error) -> Error {
        Error::Spill { directory: self.directory.clone(), source }
    }
}

/// A record: its key and its payload.
pub(crate) type Record<'a> = (&'a [u8], &'a [u8]);

/// Takes the first record off `bytes`: key and payload together, and the length of the key.
#[inline]
fn split<'a>(bytes: &mut &'a [u8]) -> (&'a [u8], usize) {
    let key_length = wire::take_usize(bytes);
    let payload_length = wire::take_usize(bytes);
    let (record, rest) = bytes.split_at(key_length + payload_length);
    *bytes = rest;
    (record, key_length)
}

/// Appends a record to a block.
#[inline]
pub(crate) fn append(block: &mut Vec<u8>, key: &[u8], payload: &[u8]) {
    wire::put(block, key.len() as u64);
    wire::put(block, payload.len() as u64);
    block.extend_from_slice(key);
    block.extend_from_slice(payload);
}

/// Calls `each` with every record of a block.
pub(crate) fn for_each(block: &[u8], mut each: impl FnMut(&[u8], &[u8])) {
    let mut rest = block;
    while !rest.is_empty() {
        let (record, key_length) = split(&mut rest);
        let (key, payload) = record.split_at(key_length);
        each(key, payload);
    }
}

/// Bytes of a record that stand in its entry.
const ENTRY_BYTES: usize = 24;

/// The first bytes of a record, which mostly decide, and where it lies. A record of at most [`ENTRY_BYTES`] is all here:
/// its block is [`Entry::HERE`], its place its length and that of its key.
#[derive(Clone, Copy)]
struct Entry {
    first: u128,
    next: u64,
    block: u32,
    place: u32,
}

impl Entry {
    const HERE: u32 = u32::MAX;

    #[inline]
    fn new(record: &[u8], key_length: usize, block: u32, place: u32) -> Self {
        let mut bytes = [0; ENTRY_BYTES];
        match record.first_chunk() {
            Some(whole) => bytes = *whole,
            None => bytes[..record.len()].copy_from_slice(record),
        }
        let mut rest = &bytes[..];
        let first = u128::from_be_bytes(wire::take_array(&mut rest));
        let next = u64::from_be_bytes(wire::take_array(&mut rest));
        if record.len() > ENTRY_BYTES {
            return Entry { first, next, block, place };
        }
        let lengths = [record.len(), key_length].map(|length| u16::try_from(length).unwrap_or(u16::MAX));
        Entry { first, next, block: Self::HERE, place: u32::from(lengths[0]) << 16 | u32::from(lengths[1]) }
    }

    /// The record, if it is all here; its bytes go to `bytes`.
    #[inline]
    fn here<'a>(&self, bytes: &'a mut [u8; ENTRY_BYTES]) -> Option<Record<'a>> {
        if self.block != Self::HERE {
            return None;
        }
        bytes[..16].copy_from_slice(&self.first.to_be_bytes());
        bytes[16..].copy_from_slice(&self.next.to_be_bytes());
        let [length, key_length] = [self.place >> 16, self.place & 0xffff].map(|length| length as usize);
        Some(bytes[..length].split_at(key_length))
    }
}

/// Collects records; see the head of this file.
pub(crate) struct Sorter {
    spill: Spill,
    bytes_max: usize,
    bytes: usize,
    blocks: Vec<Vec<u8>>,
    open: Vec<u8>,
    index: Vec<Entry>,
    runs: Vec<File>,
}

impl Sorter {
    pub(crate) fn new(spill: &Spill, bytes_max: usize) -> Self {
        Sorter {
            spill: spill.clone(),
            bytes_max,
            bytes: 0,
            blocks: Vec::new(),
            open: Vec::new(),
            index: Vec::new(),
            runs: Vec::new(),
        }
    }

    /// Adds one record.
    pub(crate) fn push(&mut self, key: &[u8], payload: &[u8]) -> Result<(), Error> {
        append(&mut self.open, key, payload);
        if self.open.len() >= BLOCK_BYTES {
            let block = std::mem::take(&mut self.open);
            self.push_block(block)?;
        }
        Ok(())
    }

    /// Adds all records of a block of at most 4 GiB.
    pub(crate) fn push_block(&mut self, block: Vec<u8>) -> Result<(), Error> {
        let number =
            u32::try_from(self.blocks.len()).map_err(|_| Error::Internal("more than 2^32 blocks in memory"))?;
        let (mut rest, mut needed) = (&block[..], false);
        while !rest.is_empty() {
            let offset = block.len() - rest.len();
            let (record, key_length) = split(&mut rest);
            let offset = u32::try_from(offset).map_err(|_| Error::Internal("a block of more than 4 GiB"))?;
            needed |= record.len() > ENTRY_BYTES;
            self.index.push(Entry::new(record, key_length, number, offset));
        }
        if needed {
            self.bytes += block.capacity();
            self.blocks.push(block);
        }
        if self.bytes + self.index.len() * size_of::<Entry>() > self.bytes_max {
            self.write_run()?;
        }
        Ok(())
    }

    /// A record that is not all in its entry: key and payload together, and the length of the key.
    fn whole(&self, entry: Entry) -> (&[u8], usize) {
        split(&mut &self.blocks[entry.block as usize][entry.place as usize..])
    }

    #[inline]
    fn record<'a>(&'a self, entry: Entry, bytes: &'a mut [u8; ENTRY_BYTES]) -> Record<'a> {
        entry.here(bytes).unwrap_or_else(|| {
            let (record, key_length) = self.whole(entry);
            record.split_at(key_length)
        })
    }

    /// The order of two records whose first bytes agree, with zeros where a record ends.
    fn compare_rest(&self, a: Entry, b: Entry) -> Ordering {
        match (a.block == Entry::HERE, b.block == Entry::HERE) {
            (true, true) => a.place.cmp(&b.place),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => self.whole(a).0.cmp(self.whole(b).0),
        }
    }

    fn sort(&mut self) {
        let mut index = std::mem::take(&mut self.index);
        index.sort_unstable_by(|&a, &b| match (a.first, a.next).cmp(&(b.first, b.next)) {
            Ordering::Equal => self.compare_rest(a, b),
            unequal => unequal,
        });
        self.index = index;
    }

    fn write_run(&mut self) -> Result<(), Error> {
        self.sort();
        let mut run = RunWriter::new(&self.spill)?;
        let mut bytes = [0; ENTRY_BYTES];
        for &entry in &self.index {
            let (key, payload) = self.record(entry, &mut bytes);
            run.push(key, payload)?;
        }
        self.runs.push(run.finish()?);
        self.index.clear();
        self.blocks.clear();
        self.bytes = 0;
        if self.runs.len() >= RUNS_MAX {
            let mut merged = RunWriter::new(&self.spill)?;
            let mut merge = Merge::new(std::mem::take(&mut self.runs), &self.spill)?;
            while let Some((key, payload)) = merge.next()? {
                merged.push(key, payload)?;
            }
            self.runs.push(merged.finish()?);
        }
        Ok(())
    }

    /// Ends the collection; the records then come in order.
    pub(crate) fn finish(mut self) -> Result<Sorted, Error> {
        let open = std::mem::take(&mut self.open);
        if !open.is_empty() {
            self.push_block(open)?;
        }
        if self.runs.is_empty() {
            self.sort();
            return Ok(Sorted::Memory { sorter: self, next: 0, bytes: [0; ENTRY_BYTES] });
        }
        if !self.index.is_empty() {
            self.write_run()?;
        }
        Ok(Sorted::Runs(Merge::new(self.runs, &self.spill)?))
    }
}

struct RunWriter {
    spill: Spill,
    file: BufWriter<File>,
    header: Vec<u8>,
    bytes: u64,
}

impl RunWriter {
    fn new(spill: &Spill) -> Result<Self, Error> {
        let file = BufWriter::with_capacity(256 << 10, spill.file()?);
        Ok(RunWriter { spill: spill.clone(), file, header: Vec::new(), bytes: 0 })
    }

    fn push(&mut self, key: &[u8], payload: &[u8]) -> Result<(), Error> {
        self.header.clear();
        wire::put(&mut self.header, key.len() as u64);
        wire::put(&mut self.header, payload.len() as u64);
        for part in [&self.header[..], key, payload] {
            self.file.write_all(part).map_err(|source| self.spill.error(source))?;
            self.bytes += part.len() as u64;
        }
        Ok(())
    }

    fn finish(self) -> Result<File, Error> {
        self.spill.bytes.fetch_add(self.bytes, Relaxed);
        let mut file = self.file.into_inner().map_err(|error| self.spill.error(error.into_error()))?;
        file.seek(SeekFrom::Start(0)).map_err(|source| self.spill.error(source))?;
        Ok(file)
    }
}

/// One run being read, standing at a record.
struct Run {
    file: BufReader<File>,
    record: Vec<u8>,
    key_length: usize,
}

impl Run {
    /// Goes to the next record; `false` at the end.
    fn advance(&mut self) -> std::io::Result<bool> {
        if self.file.fill_buf()?.is_empty() {
            return Ok(false);
        }
        let mut number = || -> std::io::Result<usize> {
            let (mut number, mut shift) = (0, 0);
            loop {
                let mut byte = [0];
                self.file.read_exact(&mut byte)?;
                number |= usize::from(byte[0] & 0x7f) << shift;
                if byte[0] < 0x80 {
                    return Ok(number);
                }
                shift += 7;
            }
        };
        let (key_length, payload_length) = (number()?, number()?);
        self.record.resize(key_length + payload_length, 0);
        self.file.read_exact(&mut self.record)?;
        self.key_length = key_length;
        Ok(true)
    }

    fn record(&self) -> Record<'_> {
        self.record.split_at(self.key_length)
    }
}

impl PartialEq for Run {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Run {}
impl PartialOrd for Run {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Run {
    fn cmp(&self, other: &Self) -> Ordering {
        self.record.cmp(&other.record)
    }
}

/// A merge of runs.
pub(crate) struct Merge {
    spill: Spill,
    heap: BinaryHeap<Reverse<Run>>,
    consumed: bool,
}

impl Merge {
    fn new(runs: Vec<File>, spill: &Spill) -> Result<Self, Error> {
        let mut heap = BinaryHeap::with_capacity(runs.len());
        for file in runs {
            let file = BufReader::with_capacity(RUN_BUFFER_BYTES, file);
            let mut run = Run { file, record: Vec::new(), key_length: 0 };
            if run.advance().map_err(|source| spill.error(source))? {
                heap.push(Reverse(run));
            }
        }
        Ok(Merge { spill: spill.clone(), heap, consumed: false })
    }

    /// Moves past the record that was handed out last.
    fn settle(&mut self) -> Result<(), Error> {
        if self.consumed
            && let Some(mut first) = self.heap.peek_mut()
            && !first.0.advance().map_err(|source| self.spill.error(source))?
        {
            PeekMut::pop(first);
        }
        self.consumed = false;
        Ok(())
    }

    fn peek(&mut self) -> Result<Option<Record<'_>>, Error> {
        self.settle()?;
        Ok(self.heap.peek().map(|Reverse(run)| run.record()))
    }

    fn next(&mut self) -> Result<Option<Record<'_>>, Error> {
        self.settle()?;
        self.consumed = true;
        Ok(self.heap.peek().map(|Reverse(run)| run.record()))
    }
}

/// Records in order.
pub(crate) enum Sorted {
    /// All of them were in memory.
    Memory {
        /// The sorted collection.
        sorter: Sorter,
        /// The next entry of its index.
        next: usize,
        /// The record handed out, where it is all in its entry.
        bytes: [u8; ENTRY_BYTES],
    },
    /// They are merged from files.
    Runs(Merge),
}

impl Sorted {
    /// The next record, key and payload, or `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Record<'_>>, Error> {
        match self {
            Sorted::Memory { sorter, next, bytes } => {
                let entry = sorter.index.get(*next).copied();
                *next += 1;
                Ok(entry.map(|entry| sorter.record(entry, bytes)))
            }
            Sorted::Runs(merge) => merge.next(),
        }
    }

    /// The record that [`Sorted::next`] will give.
    pub(crate) fn peek(&mut self) -> Result<Option<Record<'_>>, Error> {
        match self {
            Sorted::Memory { sorter, next, bytes } => {
                Ok(sorter.index.get(*next).copied().map(|entry| sorter.record(entry, bytes)))
            }
            Sorted::Runs(merge) => merge.peek(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Owned = (Vec<u8>, Vec<u8>);

    fn sorted(records: &[Owned], bytes_max: usize) -> (Vec<Owned>, u64) {
        let spill = Spill { directory: std::env::temp_dir(), bytes: Arc::default() };
        let mut sorter = Sorter::new(&spill, bytes_max);
        let mut block = Vec::new();
        for (key, payload) in records {
            append(&mut block, key, payload);
            if block.len() > 100 {
                sorter.push_block(std::mem::take(&mut block)).unwrap();
            }
        }
        let mut rest = &block[..];
        while !rest.is_empty() {
            let (record, key_length) = split(&mut rest);
            let (key, payload) = record.split_at(key_length);
            sorter.push(key, payload).unwrap();
        }
        let (mut sorted, mut all) = (sorter.finish().unwrap(), Vec::new());
        while let Some((key, payload)) = sorted.next().unwrap() {
            all.push((key.to_vec(), payload.to_vec()));
        }
        (all, spill.bytes.load(Relaxed))
    }

    proptest! {
        #[test]
        fn memory_and_disk_give_the_sorted_records(
            mut records in prop::collection::vec((prop::collection::vec(0u8..2, 18), prop::collection::vec(0u8..2, 0..9)), 0..400),
        ) {
            let (in_memory, spilled) = sorted(&records, 1 << 30);
            prop_assert_eq!(spilled, 0);
            // A budget of one byte makes every block a run, so that runs are also merged in passes.
            let (on_disk, spilled) = sorted(&records, 1);
            prop_assert!(records.is_empty() || spilled > 0);
            records.sort();
            prop_assert_eq!(&in_memory, &records);
            prop_assert_eq!(&on_disk, &records);
        }
    }
}
