//! The entry of a layer file: what a writer returns, and what the manifest of an epoch says about the file.

use serde::{Deserialize, Serialize};

use crate::file::schema::Layer;

/// A file of one layer and partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// The layer.
    pub layer: Layer,
    /// The partition.
    pub partition: u32,
    /// Path relative to the store, with `/`.
    pub path: String,
    /// The number of rows of the Parquet file.
    pub rows: u64,
    /// The size of the file in bytes.
    pub bytes: u64,
    /// XXH3-64 of the file, 16 hexadecimal digits.
    pub checksum: String,
}
