//! The rows of one row group of the three layers of a side: out-links (ol, ts, bv) or in-links (il, tr, ibv).
//!
//! Collects records up to the bounds of a row group and turns them into columns. A row group ends after [`ROWS_MAX`]
//! rows, or before the row that would bring the values (links, times, bytes of changes) above [`VALUES_MAX`]. The
//! bounds therefore follow from the rows alone, and memory is some 50 MB at most. A larger single record is a row group
//! by itself.

use std::sync::Arc;

use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{
    Array, ArrayRef, BinaryArray, ListArray, PrimitiveArray, TimestampMillisecondArray, UInt16Array, UInt32Array,
    UInt64Array,
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::ArrowError;

use crate::file::schema;
use crate::record::page::Flaw;
use crate::record::presence::{self, Change};
use crate::record::status::StatusChange;
use crate::record::uid::Uid;

/// The most rows of a row group.
pub(crate) const ROWS_MAX: usize = 1 << 16;
/// The most links, times and bytes of changes of a row group, together.
pub(crate) const VALUES_MAX: usize = 1 << 21;

/// Lists of values, one after the other.
pub(crate) struct Lists<T> {
    /// The ends of the lists, after a 0.
    ends: Vec<i32>,
    pub(crate) values: Vec<T>,
    /// For each list, whether it is not null.
    valid: Vec<bool>,
}

impl<T: Copy> Lists<T> {
    pub(crate) fn new() -> Self {
        Self { ends: vec![0], values: Vec::new(), valid: Vec::new() }
    }

    /// Ends a list. The caller has pushed the values of the list to `values`.
    pub(crate) fn end(&mut self) -> Result<(), Flaw> {
        let end = i32::try_from(self.values.len()).map_err(|_| Flaw::TooLarge)?;
        self.valid.push(self.ends.last() != Some(&end));
        self.ends.push(end);
        Ok(())
    }

    pub(crate) fn push(&mut self, values: &[T]) -> Result<(), Flaw> {
        self.values.extend_from_slice(values);
        self.end()
    }

    /// Returns the offsets, the values and which lists are not null. Empties the lists.
    pub(crate) fn take(&mut self) -> (OffsetBuffer<i32>, Vec<T>, Vec<bool>) {
        let Self { ends, values, valid } = std::mem::replace(self, Self::new());
        (OffsetBuffer::new(ScalarBuffer::from(ends)), values, valid)
    }
}

/// The records of a row group that is not full yet.
pub(crate) struct Records {
    uids: Vec<Uid>,
    links: Lists<Uid>,
    times: Lists<i64>,
    blank: Lists<u32>,
    status_captures: Lists<u32>,
    statuses: Lists<u16>,
    changes: Lists<u8>,
    coded: Vec<u8>,
}

/// One record of a side, borrowed.
pub(crate) struct Record<'a> {
    pub(crate) uid: Uid,
    pub(crate) links: &'a [Uid],
    pub(crate) times: &'a [i64],
    pub(crate) blank: &'a [u32],
    pub(crate) changes: &'a [Change],
    pub(crate) statuses: &'a [StatusChange],
}

/// The columns of a row group.
pub(crate) struct Columns {
    pub(crate) uids: ArrayRef,
    pub(crate) links: ArrayRef,
    pub(crate) times: ArrayRef,
    pub(crate) blank: ArrayRef,
    pub(crate) status_captures: ArrayRef,
    pub(crate) statuses: ArrayRef,
    pub(crate) changes: ArrayRef,
}

impl Records {
    pub(crate) fn new() -> Self {
        Self {
            uids: Vec::new(),
            links: Lists::new(),
            times: Lists::new(),
            blank: Lists::new(),
            status_captures: Lists::new(),
            statuses: Lists::new(),
            changes: Lists::new(),
            coded: Vec::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.uids.is_empty()
    }

    /// Adds a record. If the record would make the row group too large, first returns the columns of the records before
    /// it.
    pub(crate) fn push(&mut self, record: &Record<'_>) -> Result<Option<Result<Columns, ArrowError>>, Flaw> {
        self.coded.clear();
        presence::encode(record.changes, record.times.len(), &mut self.coded);
        let values = record.links.len() + record.times.len() + self.coded.len();
        let held = self.links.values.len() + self.times.values.len() + self.changes.values.len();
        let full = self.uids.len() == ROWS_MAX || held.saturating_add(values) > VALUES_MAX;
        let columns = (full && !self.is_empty()).then(|| self.take());
        self.uids.push(record.uid);
        self.links.push(record.links)?;
        for &time in record.times {
            self.times.values.push(time.checked_mul(1000).ok_or(Flaw::TimeOutside(time))?);
        }
        self.times.end()?;
        self.blank.push(record.blank)?;
        for change in record.statuses {
            self.status_captures.values.push(change.capture);
            self.statuses.values.push(change.status.number());
        }
        self.status_captures.end()?;
        self.statuses.end()?;
        self.changes.push(&self.coded)?;
        Ok(columns)
    }

    /// Returns the columns of the records. Empties the records.
    pub(crate) fn take(&mut self) -> Result<Columns, ArrowError> {
        let uids = Arc::new(column(std::mem::take(&mut self.uids)));
        let (ends, values, _) = self.links.take();
        let links = list(ends, column(values), None)?;
        let (ends, values, _) = self.times.take();
        let times = list(ends, TimestampMillisecondArray::from(values).with_data_type(schema::time()), None)?;
        let indexes = |lists: &mut Lists<u32>| {
            let (ends, values, valid) = lists.take();
            list(ends, UInt32Array::from(values), Some(NullBuffer::from(valid)))
        };
        let (blank, status_captures) = (indexes(&mut self.blank)?, indexes(&mut self.status_captures)?);
        let (ends, values, valid) = self.statuses.take();
        let statuses = list(ends, UInt16Array::from(values), Some(NullBuffer::from(valid)))?;
        let (ends, values, valid) = self.changes.take();
        let changes = BinaryArray::try_new(ends, Buffer::from_vec(values), Some(NullBuffer::from(valid)))?;
        Ok(Columns { uids, links, times, blank, status_captures, statuses, changes: Arc::new(changes) })
    }
}

/// A column of UIDs, in the same memory.
pub(crate) fn column(uids: Vec<Uid>) -> UInt64Array {
    UInt64Array::from(Uid::into_numbers(uids))
}

/// A column of lists.
pub(crate) fn list<T: ArrowPrimitiveType>(
    ends: OffsetBuffer<i32>,
    values: PrimitiveArray<T>,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, ArrowError> {
    let element = schema::element(values.data_type().clone());
    Ok(Arc::new(ListArray::try_new(element, ends, Arc::new(values), nulls)?))
}
