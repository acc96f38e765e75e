//! The names of files and directories in a store, relative to the store; [`format`](mod@crate::format) describes them.

pub(crate) const CURRENT: &str = "CURRENT";
pub(crate) const LOCK: &str = "LOCK";
pub(crate) const EPOCHS: &str = "epochs";
pub(crate) const ROWS: &str = "rows";
pub(crate) const LEASES: &str = "leases";

pub(crate) fn row_name(row: u32) -> String {
    format!("{ROWS}/{row:06}")
}

pub(crate) fn manifest_name(epoch: u64) -> String {
    format!("{EPOCHS}/{epoch:06}.json")
}

/// The directory of the leases on an epoch in S3.
#[cfg(feature = "remote")]
pub(crate) fn lease_dir(epoch: u64) -> String {
    format!("{LEASES}/{epoch:06}")
}
