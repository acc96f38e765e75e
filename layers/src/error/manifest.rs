//! The contradictions that a manifest can have.

use crate::record::removal::SelectedBy;
use crate::record::uid::Uid;

/// A contradiction in a manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestFlaw {
    /// A path is absolute, leaves the store, or is not plain.
    #[error("path {0:?} is not a plain relative path inside the store")]
    Path(String),
    /// A path is named twice.
    #[error("file {0:?} is named twice")]
    Twice(String),
    /// A partition lacks a layer, or its files are of other layers or partitions, or in another order.
    #[error("row {row}, partition {partition}: not one file a layer, in order")]
    Files {
        /// The row.
        row: u32,
        /// The partition.
        partition: u32,
    },
    /// The layers of one partition differ in their numbers of rows.
    #[error("row {row}, partition {partition}: the layers differ in rows")]
    Rows {
        /// The row.
        row: u32,
        /// The partition.
        partition: u32,
    },
    /// Rows or partitions do not number UIDs without gaps.
    #[error("row {row}: UID {got} where {expected} is expected")]
    Uids {
        /// The row.
        row: u32,
        /// The UID that follows from the numbers before.
        expected: u64,
        /// The UID in the manifest.
        got: u64,
    },
    /// The records of partitions do not begin at UID 0, do not rise, or pass the end of the row.
    #[error("row {row}, partition {partition}: records from UID {got} on are not in order")]
    Records {
        /// The row.
        row: u32,
        /// The partition.
        partition: u32,
        /// The UID in the manifest.
        got: Uid,
    },
    /// A first key is not hexadecimal, or does not rise.
    #[error("row {row}, partition {partition}: first key {key:?} is no key or does not rise")]
    FirstKey {
        /// The row.
        row: u32,
        /// The partition.
        partition: u32,
        /// The key.
        key: String,
    },
    /// The counts are not the sums of their parts.
    #[error("the counts are not the sums of their parts")]
    Counts,
    /// The earlier epochs are not numbered consecutively, or a translation does not begin at the epoch before.
    #[error("the history of its UIDs does not fit its epochs and rows")]
    History,
    /// A removal of a prefix has no length, or another removal has one.
    #[error("a removal by {}: {} length of a prefix", .0.name(), if *.0 == SelectedBy::Prefix { "no" } else { "a" })]
    Removal(SelectedBy),
    /// The manifest says that epochs after its own are retired.
    #[error("it says that epochs before {0} are retired")]
    Retired(u64),
    /// The number in the manifest differs from the number in the name of the file.
    #[error("it says that it is epoch {0}")]
    Epoch(u64),
}
