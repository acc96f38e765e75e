//! The column of UIDs that every layer begins with, decoded from a row group.

use std::ops::Deref;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, RecordBatch};
use arrow_buffer::ScalarBuffer;

use crate::error::Damage;
use crate::record::uid::Uid;

/// UIDs in the memory of a column.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct UidColumn(pub(crate) ScalarBuffer<u64>);

impl Deref for UidColumn {
    type Target = [Uid];

    fn deref(&self) -> &[Uid] {
        Uid::slice(&self.0)
    }
}

/// The UIDs of a row group, from its first column. Checks that they rise (repetitions are allowed if `repeats`) and
/// that none is null. Errors: the row in the group, and the damage.
pub(crate) fn uids_of(batch: &RecordBatch, repeats: bool) -> Result<UidColumn, (u64, Damage)> {
    let uids = batch.column(0).as_primitive_opt::<UInt64Type>().filter(|uids| uids.null_count() == 0);
    let uids = uids.map(|uids| uids.values().clone()).ok_or((0, Damage::Null))?;
    match uids.windows(2).position(|pair| pair[0] > pair[1] || (!repeats && pair[0] == pair[1])) {
        Some(at) => Err((at as u64 + 1, Damage::Order { previous: uids[at], got: uids[at + 1] })),
        None => Ok(UidColumn(uids)),
    }
}
