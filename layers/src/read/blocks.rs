//! Decoded row groups (the records of one side, or URLs) as compact arrays, and a cache bounded by bytes.
//!
//! Reads the row groups of aligned layers together (through `parquet`). A [`Block`] concatenates lists and keeps their
//! ends, and keeps changes encoded. A block therefore takes little more memory than the values. Decoding checks these
//! invariants: the layers have the same UIDs, rising (in-links may repeat a UID); no value is null unless the format
//! allows it; times are whole seconds.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{TimestampMillisecondType, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ListArray, RecordBatch, StringArray};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};

use crate::error::{Damage, Error};
use crate::file::parquet::LayerFile;
use crate::file::uids::{UidColumn, uids_of};
use crate::record::capture::Captures;
use crate::record::page::{Flaw, InLinks, Page};
use crate::record::presence::{self, Change};
use crate::record::status::{Status, StatusChange};
use crate::record::uid::Uid;

/// A row group of one side.
pub(crate) struct Block {
    uids: UidColumn,
    link_ends: OffsetBuffer<i32>,
    links: UidColumn,
    time_ends: OffsetBuffer<i32>,
    /// Seconds.
    times: Vec<i64>,
    /// The other columns of captures; only for out-links.
    captures: Option<CaptureColumns>,
    change_ends: OffsetBuffer<i32>,
    changes: Vec<u8>,
}

/// The columns of captures in a row group, except their times.
struct CaptureColumns {
    blank_ends: OffsetBuffer<i32>,
    blank: ScalarBuffer<u32>,
    status_ends: OffsetBuffer<i32>,
    statuses: Vec<StatusChange>,
}

/// The times of a row group of ts, without the other columns.
pub(crate) struct TimesBlock {
    uids: UidColumn,
    ends: OffsetBuffer<i32>,
    /// Milliseconds.
    times: ScalarBuffer<i64>,
}

impl TimesBlock {
    /// Reads the times of a row group of ts, without the other columns.
    pub(crate) fn read(file: &LayerFile, group: usize) -> Result<Self, Error> {
        let batch = file.read(group, 2)?;
        let first_row = file.groups[group].first_row;
        let null = || file.damaged(first_row, Damage::Null);
        let uids = uids_of(&batch, false).map_err(|(row, damage)| file.damaged(first_row + row, damage))?;
        let lists = batch.column(1).as_list_opt::<i32>().ok_or_else(null)?;
        let times = lists.values().as_primitive_opt::<TimestampMillisecondType>().ok_or_else(null)?;
        Ok(Self { uids, ends: lists.offsets().clone(), times: times.values().clone() })
    }

    /// Approximate bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        8 * (self.uids.len() + self.times.len()) + 4 * self.ends.len()
    }

    /// The UID of each row, and the times of its captures in seconds.
    pub(crate) fn captures(&self) -> impl Iterator<Item = (Uid, Vec<i64>)> {
        let times = |row| slice(&self.times, &self.ends, row).iter().map(|time| time.div_euclid(1000)).collect();
        self.uids.iter().copied().zip((0..self.uids.len()).map(times))
    }

    /// The times of the captures of a UID, in seconds; `None` if the UID has no record.
    pub(crate) fn times(&self, uid: Uid) -> Option<impl Iterator<Item = i64>> {
        let row = self.uids.binary_search(&uid).ok()?;
        Some(slice(&self.times, &self.ends, row).iter().map(|time| time.div_euclid(1000)))
    }
}

/// One record of a block.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) uid: Uid,
    pub(crate) links: &'a [Uid],
    pub(crate) times: &'a [i64],
    pub(crate) blank: &'a [u32],
    pub(crate) statuses: &'a [StatusChange],
    /// The encoded changes.
    pub(crate) changes: &'a [u8],
}

impl Block {
    /// Reads and decodes a row group of three aligned layers.
    pub(crate) fn read(files: [&LayerFile; 3], group: usize) -> Result<Self, Error> {
        let Some(first_row) = files[0].groups.get(group).map(|group| group.first_row) else {
            return Err(files[0].damaged(0, Damage::NotAligned));
        };
        if files.iter().any(|file| file.groups != files[0].groups) {
            return Err(files[0].damaged(first_row, Damage::NotAligned));
        }
        let [links, times, changes] = files.map(|file| file.read(group, usize::MAX));
        Self::decode([links?, times?, changes?])
            .map_err(|(file, row, damage)| files[file].damaged(first_row + row, damage))
    }

    /// Errors: the layer (0 to 2), the row in the group, and the damage.
    fn decode([links, times, changes]: [RecordBatch; 3]) -> Result<Self, (usize, u64, Damage)> {
        let null = |file| move || (file, 0, Damage::Null);
        // Only times of captures have further columns.
        let repeats = times.num_columns() < 3;
        let uids = |batch: &RecordBatch, file| uids_of(batch, repeats).map_err(|(row, damage)| (file, row, damage));
        let first = uids(&links, 0)?;
        for (file, batch) in [(1, &times), (2, &changes)] {
            let other = uids(batch, file)?;
            if other != first {
                let at = other.iter().zip(first.iter()).position(|(a, b)| a != b).unwrap_or(0);
                return Err((file, at as u64, Damage::NotAligned));
            }
        }

        let link_lists = links.column(1).as_list_opt::<i32>().ok_or_else(null(0))?;
        let link_values = link_lists.values().as_primitive_opt::<UInt64Type>().ok_or_else(null(0))?;
        let time_lists = times.column(1).as_list_opt::<i32>().ok_or_else(null(1))?;
        let time_values = time_lists.values().as_primitive_opt::<TimestampMillisecondType>().ok_or_else(null(1))?;
        let time_ends = time_lists.offsets().clone();
        if let Some(at) = time_values.values().iter().position(|time| time % 1000 != 0) {
            let row = time_ends.iter().skip(1).take_while(|&&end| end as usize <= at).count();
            return Err((1, row as u64, Flaw::TimeOutside(time_values.value(at)).into()));
        }
        let captures = (!repeats).then(|| CaptureColumns::of(&times)).transpose()?;
        let coded = changes.column(1).as_binary_opt::<i32>().ok_or_else(null(2))?;
        empty_is_null(2, coded.offsets(), coded)?;
        Ok(Self {
            uids: first,
            link_ends: link_lists.offsets().clone(),
            links: UidColumn(link_values.values().clone()),
            time_ends,
            times: time_values.values().iter().map(|time| time / 1000).collect(),
            captures,
            change_ends: coded.offsets().clone(),
            changes: coded.value_data().to_vec(),
        })
    }

    /// Approximate bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        let captures = self.captures.as_ref().map_or(0, CaptureColumns::bytes);
        let lists = 8 * (self.uids.len() + self.links.len() + self.times.len()) + 12 * self.uids.len();
        lists + captures + self.changes.len() + size_of::<Self>()
    }

    pub(crate) fn len(&self) -> usize {
        self.uids.len()
    }

    /// The rows with a UID.
    pub(crate) fn rows_of(&self, uid: Uid) -> Range<usize> {
        let first = self.uids.partition_point(|&other| other < uid);
        first..first + self.uids[first..].iter().take_while(|&&other| other == uid).count()
    }

    /// The UID of a row.
    pub(crate) fn uid(&self, row: usize) -> Uid {
        self.uids[row]
    }

    /// The record of a row.
    pub(crate) fn view(&self, row: usize) -> View<'_> {
        let (blank, statuses): (&[u32], &[StatusChange]) =
            self.captures.as_ref().map_or((&[], &[]), |captures| captures.of_row(row));
        View {
            uid: self.uids[row],
            links: slice(&self.links, &self.link_ends, row),
            times: slice(&self.times, &self.time_ends, row),
            blank,
            statuses,
            changes: slice(&self.changes, &self.change_ends, row),
        }
    }
}

impl CaptureColumns {
    /// Decodes the columns of a row group of ts. Errors: see [`Block::decode`].
    fn of(times: &RecordBatch) -> Result<Self, (usize, u64, Damage)> {
        let null = || (1, 0, Damage::Null);
        let lists = |at: usize| -> Result<&ListArray, _> {
            let lists = times.columns().get(at).and_then(|column| column.as_list_opt::<i32>()).ok_or_else(null)?;
            empty_is_null(1, lists.offsets(), lists)?;
            Ok(lists)
        };
        let (blank, captures, codes) = (lists(2)?, lists(3)?, lists(4)?);
        let indexes = |lists: &ListArray| -> Result<ScalarBuffer<u32>, _> {
            Ok(lists.values().as_primitive_opt::<UInt32Type>().ok_or_else(null)?.values().clone())
        };
        let code_values = codes.values().as_primitive_opt::<UInt16Type>().ok_or_else(null)?.values();
        let (status_ends, status_captures) = (captures.offsets(), indexes(captures)?);
        let row_of = |at: usize| status_ends.iter().skip(1).take_while(|&&end| end as usize <= at).count() as u64;
        if let Some(row) = status_ends.iter().zip(codes.offsets().iter()).position(|(one, other)| one != other) {
            return Err((1, row.saturating_sub(1) as u64, Damage::NotAligned));
        }
        let changes = status_captures.iter().zip(code_values).enumerate().map(|(at, (&capture, &code))| {
            let status = Status::stored(code).ok_or_else(|| (1, row_of(at), Flaw::Status(capture).into()))?;
            Ok(StatusChange { capture, status })
        });
        Ok(Self {
            blank_ends: blank.offsets().clone(),
            blank: indexes(blank)?,
            status_ends: status_ends.clone(),
            statuses: changes.collect::<Result<_, _>>()?,
        })
    }

    fn of_row(&self, row: usize) -> (&[u32], &[StatusChange]) {
        (slice(&self.blank, &self.blank_ends, row), slice(&self.statuses, &self.status_ends, row))
    }

    fn bytes(&self) -> usize {
        4 * (self.blank_ends.len() + self.blank.len() + self.status_ends.len()) + size_of_val(&self.statuses[..])
    }
}

impl<'a> View<'a> {
    /// The captures of the record.
    pub(crate) fn captures(&self) -> Captures<'a> {
        Captures { times: self.times, blank: self.blank, statuses: self.statuses }
    }

    /// The changes of one link, by its number. Changes of earlier links are decoded and dropped; later ones are not
    /// decoded.
    pub(crate) fn changes_of(&self, link: usize) -> Result<Vec<Change>, Damage> {
        let mut link_changes = Vec::new();
        for change in presence::decoded(self.changes, self.links.len(), self.times.len()) {
            let change = change?;
            match (change.link as usize).cmp(&link) {
                Ordering::Less => {}
                Ordering::Equal => link_changes.push(change),
                Ordering::Greater => break,
            }
        }
        Ok(link_changes)
    }

    /// The record as a page, decoded and checked.
    pub(crate) fn page(&self) -> Result<Page, Damage> {
        let mut page = Page::default();
        self.page_into(&mut page)?;
        Ok(page)
    }

    /// Like [`View::page`], in the memory of an existing page.
    pub(crate) fn page_into(&self, page: &mut Page) -> Result<(), Damage> {
        page.uid = self.uid;
        replace(&mut page.timestamps, self.times);
        replace(&mut page.blank, self.blank);
        replace(&mut page.statuses, self.statuses);
        replace(&mut page.links, self.links);
        self.changes_into(&mut page.changes)?;
        page.flaw().map_or(Ok(()), |flaw| Err(flaw.into()))
    }

    fn changes_into(&self, changes: &mut Vec<Change>) -> Result<(), Damage> {
        changes.clear();
        Ok(presence::decode(self.changes, self.links.len(), self.times.len(), changes)?)
    }

    /// The record as in-links, decoded and checked.
    pub(crate) fn in_links(&self) -> Result<InLinks, Damage> {
        let mut changes = Vec::new();
        self.changes_into(&mut changes)?;
        let record = InLinks { uid: self.uid, ranges: self.times.to_vec(), sources: self.links.to_vec(), changes };
        record.flaw().map_or(Ok(()), Err)?;
        Ok(record)
    }
}

fn replace<T: Copy>(held: &mut Vec<T>, by: &[T]) {
    held.clear();
    held.extend_from_slice(by);
}

/// The values of a row. Arrow has checked that the ends rise and are inside `values`.
fn slice<'a, T>(values: &'a [T], ends: &OffsetBuffer<i32>, row: usize) -> &'a [T] {
    &values[ends[row].unsigned_abs() as usize..ends[row + 1].unsigned_abs() as usize]
}

/// Fails if an empty list is not null, or if a null list is not empty.
fn empty_is_null(file: usize, ends: &OffsetBuffer<i32>, lists: &dyn Array) -> Result<(), (usize, u64, Damage)> {
    let wrong = (0..lists.len()).find(|&row| (ends[row] == ends[row + 1]) != lists.is_null(row));
    wrong.map_or(Ok(()), |row| Err((file, row as u64, Damage::EmptyNotNull)))
}

/// A row group of the url layer.
pub(crate) struct UrlBlock {
    first_uid: Uid,
    urls: StringArray,
    /// The urlkeys, if the caller asked for them.
    surts: Option<StringArray>,
}

impl UrlBlock {
    /// Reads and decodes a row group; checks that UIDs are dense.
    pub(crate) fn read(file: &LayerFile, group: usize, with_surts: bool) -> Result<Self, Error> {
        let first_row = file.groups[group].first_row;
        let batch = file.read(group, if with_surts { 3 } else { 2 })?;
        let damaged = |row: u64, damage| file.damaged(first_row + row, damage);
        let text = |at: usize| -> Result<StringArray, Error> {
            let texts = batch.column(at).as_string_opt::<i32>().filter(|texts| texts.null_count() == 0);
            texts.cloned().ok_or_else(|| damaged(0, Damage::Null))
        };
        let uids = batch.column(0).as_primitive_opt::<UInt64Type>().filter(|uids| uids.null_count() == 0);
        let uids = uids.ok_or_else(|| damaged(0, Damage::Null))?.values();
        let first_uid = uids[0];
        for (row, &got) in (0u64..).zip(uids.iter()) {
            let expected = first_uid.wrapping_add(row);
            if got != expected {
                return Err(damaged(row, Damage::NotDense { expected, got }));
            }
        }
        let surts = if with_surts { Some(text(2)?) } else { None };
        Ok(Self { first_uid: Uid(first_uid), urls: text(1)?, surts })
    }

    /// Approximate bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.urls.get_array_memory_size() + self.surts.as_ref().map_or(0, Array::get_array_memory_size)
    }

    pub(crate) fn len(&self) -> usize {
        self.urls.len()
    }

    pub(crate) fn first_uid(&self) -> Uid {
        self.first_uid
    }

    /// The URL of a UID, if the UID is in this row group.
    pub(crate) fn url(&self, uid: Uid) -> Option<&str> {
        let row = uid.after(self.first_uid).filter(|&row| row < self.len())?;
        Some(self.urls.value(row))
    }

    /// The urlkey of a UID, if the UID is in this row group and the urlkeys were read.
    pub(crate) fn surt(&self, uid: Uid) -> Option<&str> {
        let row = uid.after(self.first_uid).filter(|&row| row < self.len())?;
        self.surts.as_ref().map(|surts| surts.value(row))
    }
}

/// The values that were used last, bounded by bytes. A single value may be larger than the bound.
pub(crate) struct Cache<K, V> {
    bytes_max: usize,
    /// The number of values that are kept even if they exceed the bound.
    values_min: usize,
    bytes: usize,
    clock: u64,
    held: HashMap<K, Held<V>>,
    /// The keys, by the time of the last use.
    by_use: BTreeMap<u64, K>,
}

struct Held<V> {
    value: V,
    bytes: usize,
    used: u64,
}

impl<K: Copy + Eq + Hash, V: Clone> Cache<K, V> {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, values_min: 0, bytes: 0, clock: 0, held: HashMap::new(), by_use: BTreeMap::new() }
    }

    /// The same cache, which keeps at least `values_min` values even if they exceed the bound.
    pub(crate) fn keeping(self, values_min: usize) -> Self {
        Self { values_min, ..self }
    }

    pub(crate) fn get(&mut self, key: K) -> Option<V> {
        let held = self.held.get_mut(&key)?;
        self.clock += 1;
        self.by_use.remove(&held.used);
        self.by_use.insert(self.clock, key);
        held.used = self.clock;
        Some(held.value.clone())
    }

    /// Adds a value. First drops the least recently used values until there is room.
    pub(crate) fn put(&mut self, key: K, value: V, bytes: usize) {
        self.remove(key);
        while self.bytes.saturating_add(bytes) > self.bytes_max && self.held.len() >= self.values_min.max(1) {
            let Some((_, &oldest)) = self.by_use.first_key_value() else { break };
            self.remove(oldest);
        }
        self.clock += 1;
        self.bytes += bytes;
        self.by_use.insert(self.clock, key);
        self.held.insert(key, Held { value, bytes, used: self.clock });
    }

    fn remove(&mut self, key: K) {
        if let Some(held) = self.held.remove(&key) {
            self.by_use.remove(&held.used);
            self.bytes -= held.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Cache;

    #[test]
    fn the_cache_drops_what_was_not_used_for_longest() {
        let mut cache = Cache::new(100);
        cache.put(1, "one", 40);
        cache.put(2, "two", 40);
        assert_eq!(cache.get(1), Some("one"));
        cache.put(3, "three", 40);
        assert_eq!((cache.get(1), cache.get(2), cache.get(3)), (Some("one"), None, Some("three")));
        cache.put(3, "again", 60);
        assert_eq!((cache.get(1), cache.get(3), cache.bytes), (Some("one"), Some("again"), 100));
        let mut few = Cache::new(10).keeping(2);
        (1..4).for_each(|key| few.put(key, key, 40));
        assert_eq!((few.get(1), few.get(2), few.get(3)), (None, Some(2), Some(3)));
        cache.put(4, "large", 500);
        assert_eq!((cache.get(1), cache.get(3), cache.get(4), cache.bytes), (None, None, Some("large"), 500));
    }
}
