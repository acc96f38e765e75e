//! External sort of records. A record is a key and a payload, both byte strings.
//!
//! Order: by the unsigned bytes of key and payload together. In one sorter, either all keys have the same length or no
//! key is a prefix of another key. Records are therefore in the order of their keys, and equal keys are adjacent. The
//! result depends only on the set of records.
//!
//! Records arrive in blocks or one by one. Blocks of the exchange are kept without a copy. When blocks and index exceed
//! the budget, the sorter sorts the records and writes a run ([`crate::runs`]). If another stage reads the
//! records, they end in runs ([`Sorter::into_runs`]). If the same stage reads the records, they are merged from runs,
//! or stay in memory if they fit ([`Sorter::finish`]).
//!
//! Memory: the budget, one block, and a writer or the readers of a merge. Cost: one write and one read of the data that
//! does not fit. Beyond [`crate::runs::RUNS_MAX`] budgets of data, each further factor of
//! [`crate::runs::RUNS_MAX`] costs one more write and read.

use crate::Error;
use crate::meter;
use crate::runs::{Merge, RunWriter};
use crate::scratch::Scratch;
use crate::state::Runs;
use crate::wire::{self, Record, append, first_bytes, split};
use std::cell::RefCell;
use std::cmp::Ordering;
use std::rc::Rc;

/// The size of the blocks for records that are pushed one by one.
const BLOCK_BYTES: usize = 64 << 10;
/// The number of entries of a new index.
const INDEX_MIN: usize = 1 << 10;

/// The number of bytes of a record that its entry contains.
const ENTRY_BYTES: usize = wire::FIRST_BYTES;
/// From this number of records with the same bytes on, their entries take the bytes that follow, so that not each
/// comparison looks for two records in memory. Entries take no bytes after [`DEPTH_MAX`].
const MANY: usize = 8;
const DEPTH_MAX: usize = 10 * ENTRY_BYTES;

/// The first bytes of a record, which usually decide the order, and the place of the record. An entry contains a whole
/// record of at most [`ENTRY_BYTES`]: then the block is [`Entry::INLINE`], and the offset holds the lengths of the
/// record and of its key.
#[derive(Clone, Copy)]
struct Entry {
    // Not a pair, which would be padded.
    first: u128,
    next: u64,
    block: u32,
    offset: u32,
}

impl Entry {
    const INLINE: u32 = u32::MAX;

    #[inline]
    fn new(record: &[u8], key_length: usize, block: u32, offset: u32) -> Self {
        let (first, next) = first_bytes(record);
        if record.len() > ENTRY_BYTES {
            return Entry { first, next, block, offset };
        }
        let lengths = [record.len(), key_length].map(|length| u16::try_from(length).unwrap_or(u16::MAX));
        Entry { first, next, block: Self::INLINE, offset: u32::from(lengths[0]) << 16 | u32::from(lengths[1]) }
    }

    #[inline]
    fn first_bytes(&self) -> (u128, u64) {
        (self.first, self.next)
    }

    fn is_inline(&self) -> bool {
        self.block == Self::INLINE
    }

    /// Returns the record, written to `bytes`, if the entry contains the whole record.
    #[inline]
    fn inline_record<'a>(&self, bytes: &'a mut [u8; ENTRY_BYTES]) -> Option<Record<'a>> {
        if !self.is_inline() {
            return None;
        }
        bytes[..16].copy_from_slice(&self.first.to_be_bytes());
        bytes[16..].copy_from_slice(&self.next.to_be_bytes());
        let [length, key_length] = [self.offset >> 16, self.offset & 0xffff].map(|length| length as usize);
        Some(bytes[..length].split_at(key_length))
    }
}

/// Collects and sorts records; see the head of this file.
pub struct Sorter {
    scratch: Scratch,
    /// The kind of the records, for the names of files.
    what: &'static str,
    bytes_max: usize,
    bytes: usize,
    blocks: Vec<Vec<u8>>,
    open: Vec<u8>,
    index: Vec<Entry>,
    runs: Runs,
    gives_back: bool,
}

impl Sorter {
    /// A sorter that holds at most `bytes_max` bytes in memory, and writes further records to runs named `what`.
    pub fn new(scratch: &Scratch, what: &'static str, bytes_max: usize) -> Self {
        Sorter {
            scratch: scratch.clone(),
            what,
            bytes_max,
            bytes: 0,
            blocks: Vec::new(),
            open: Vec::new(),
            index: Vec::new(),
            runs: Runs::default(),
            gives_back: false,
        }
    }

    /// Makes the sorter give free memory back to the system after each run, for stages that need memory for more than
    /// sorting. Blocks use free places in turn, so in time they would touch all memory that earlier stages freed.
    pub fn giving_back(self) -> Self {
        Sorter { gives_back: true, ..self }
    }

    /// Adds one record.
    pub fn push(&mut self, key: &[u8], payload: &[u8]) -> Result<(), Error> {
        append(&mut self.open, key, payload);
        if self.open.len() >= BLOCK_BYTES {
            let block = std::mem::take(&mut self.open);
            self.push_block(block)?;
        }
        Ok(())
    }

    /// Adds all records of a block of at most 4 GiB.
    pub fn push_block(&mut self, block: Vec<u8>) -> Result<(), Error> {
        let too_many = |_| Error::Internal("more than 2^32 blocks in memory");
        let number = u32::try_from(self.blocks.len()).map_err(too_many)?;
        let (mut rest, mut needed) = (&block[..], false);
        while !rest.is_empty() {
            if self.index.len() == self.index.capacity() && !self.grow(block.capacity()) {
                // The rest of this block goes into the next run.
                let rest = rest.to_vec();
                if needed {
                    self.blocks.push(block);
                }
                self.write_run()?;
                return self.push_block(rest);
            }
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
        if self.bytes + self.index.capacity() * size_of::<Entry>() > self.bytes_max {
            self.write_run()?;
        }
        Ok(())
    }

    /// Makes room in the index. Returns `false` if the budget has no room beside a block of `block` bytes.
    fn grow(&mut self, block: usize) -> bool {
        let added = (self.index.capacity() / 2).max(INDEX_MIN);
        let bytes = (self.index.capacity() + added) * size_of::<Entry>();
        if !self.index.is_empty() && self.bytes + block + bytes > self.bytes_max {
            return false;
        }
        self.index.reserve_exact(added);
        true
    }

    /// Returns a record that its entry does not contain: key and payload together, and the length of the key.
    fn stored_record(&self, entry: Entry) -> (&[u8], usize) {
        split(&mut &self.blocks[entry.block as usize][entry.offset as usize..])
    }

    #[inline]
    fn record<'a>(&'a self, entry: Entry, bytes: &'a mut [u8; ENTRY_BYTES]) -> Record<'a> {
        entry.inline_record(bytes).unwrap_or_else(|| {
            let (record, key_length) = self.stored_record(entry);
            record.split_at(key_length)
        })
    }

    /// Compares two records with equal first bytes, where a record that ends early counts as padded with zeros.
    fn compare_rest(&self, a: Entry, b: Entry) -> Ordering {
        match (a.is_inline(), b.is_inline()) {
            (true, true) => a.offset.cmp(&b.offset),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => self.stored_record(a).0.cmp(self.stored_record(b).0),
        }
    }

    fn sort(&mut self) {
        let mut index = std::mem::take(&mut self.index);
        self.sort_from(&mut index, 0);
        self.index = index;
    }

    /// Sorts entries whose records have the same bytes before `depth`, and that hold the bytes from `depth` on.
    fn sort_from(&self, entries: &mut [Entry], depth: usize) {
        entries.sort_unstable_by_key(Entry::first_bytes);
        for equal in entries.chunk_by_mut(|one, other| one.first_bytes() == other.first_bytes()) {
            if equal.len() < MANY || depth == DEPTH_MAX || equal.iter().any(Entry::is_inline) {
                equal.sort_unstable_by(|&a, &b| self.compare_rest(a, b));
                continue;
            }
            let depth = depth + ENTRY_BYTES;
            for entry in &mut *equal {
                let rest = self.stored_record(*entry).0.get(depth..).unwrap_or_default();
                (entry.first, entry.next) = first_bytes(rest);
            }
            self.sort_from(equal, depth);
        }
    }

    fn write_run(&mut self) -> Result<(), Error> {
        self.sort();
        let mut run = RunWriter::create(self.what, &self.scratch)?;
        let mut bytes = [0; ENTRY_BYTES];
        for &entry in &self.index {
            let (key, payload) = self.record(entry, &mut bytes);
            run.push(key, payload)?;
        }
        self.runs.0.push(run.finish()?);
        // The memory of an index that was too long for its blocks is better used for blocks.
        let used = self.index.len();
        self.index.clear();
        self.index.shrink_to(used.max(self.index.capacity() / 2));
        self.blocks.clear();
        self.bytes = 0;
        if self.gives_back {
            meter::give_back();
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), Error> {
        let open = std::mem::take(&mut self.open);
        if open.is_empty() { Ok(()) } else { self.push_block(open) }
    }

    /// Ends the collection and returns the records in files, for another stage.
    pub fn into_runs(mut self) -> Result<Runs, Error> {
        self.close()?;
        if !self.index.is_empty() {
            self.write_run()?;
        }
        self.runs.compact(self.what, &self.scratch)?;
        Ok(self.runs)
    }

    /// Ends the collection and returns the records in order. The files of runs are removed as soon as they are open.
    pub fn finish(mut self) -> Result<Sorted, Error> {
        self.close()?;
        if self.runs.0.is_empty() {
            self.sort();
            return Ok(Sorted::Memory { sorter: self, next: 0, bytes: [0; ENTRY_BYTES] });
        }
        let scratch = self.scratch.clone();
        let runs = self.into_runs()?;
        let merge = Merge::open(&runs, &scratch)?;
        runs.remove(&scratch)?;
        Ok(Sorted::Runs(merge))
    }
}

/// A sorter that a dataflow fills.
pub struct Collector(Rc<RefCell<Option<Sorter>>>);

impl Collector {
    /// Wraps a sorter.
    pub fn new(sorter: Sorter) -> Self {
        Collector(Rc::new(RefCell::new(Some(sorter))))
    }

    /// Returns a consumer that adds the blocks that reach a worker.
    pub fn consumer(&self) -> impl FnMut(Vec<u8>) -> Result<(), Error> + use<> {
        let sorter = Rc::clone(&self.0);
        move |block| sorter.borrow_mut().as_mut().map_or(Ok(()), |sorter| sorter.push_block(block))
    }

    /// Returns the sorter after the end of the dataflow.
    pub fn into_inner(self) -> Result<Sorter, Error> {
        self.0.take().ok_or(Error::Internal("a sorter is used after its end"))
    }
}

/// Records in order.
pub enum Sorted {
    /// All records are in memory.
    Memory {
        /// The sorted collection.
        sorter: Sorter,
        /// The next entry of the index.
        next: usize,
        /// The record that was returned last, if its entry contains the whole record.
        bytes: [u8; ENTRY_BYTES],
    },
    /// The records are merged from files.
    Runs(Merge),
}

impl Sorted {
    /// Returns the records of runs that an earlier stage left. The files stay until the stage is done.
    pub fn of(runs: &Runs, scratch: &Scratch) -> Result<Sorted, Error> {
        Ok(Sorted::Runs(Merge::open(runs, scratch)?))
    }

    /// Returns the next record as key and payload; `None` at the end.
    #[expect(clippy::should_implement_trait, reason = "records borrow from it")]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, Error> {
        match self {
            Sorted::Memory { sorter, next, bytes } => {
                let entry = sorter.index.get(*next).copied();
                *next += 1;
                Ok(entry.map(|entry| sorter.record(entry, bytes)))
            }
            Sorted::Runs(merge) => merge.next(),
        }
    }

    /// Returns the record that [`Sorted::next`] will return.
    pub fn peek(&mut self) -> Result<Option<Record<'_>>, Error> {
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
        let dir = tempfile::tempdir().unwrap();
        let scratch = Scratch::temporary(dir.path());
        let mut sorter = Sorter::new(&scratch, "test", bytes_max);
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
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "files that are read are gone");
        (all, scratch.written())
    }

    proptest! {
        #[test]
        fn memory_and_disk_give_the_sorted_records(
            mut records in prop::collection::vec(
                (prop::collection::vec(0u8..2, 18), prop::collection::vec(0u8..2, 0..9)), 0..400
            ),
            alike in prop::collection::vec((0usize..400, 0usize..400), 0..60),
        ) {
            // Records that are alike in many bytes.
            let payload = |(zeros, ones)| [vec![0; zeros], vec![1; ones]].concat();
            records.extend(alike.into_iter().map(|counts| (vec![0; 18], payload(counts))));
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
