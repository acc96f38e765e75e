//! Leases: a reader that has an epoch open keeps [`crate::store::gc`] from removing it.
//!
//! In a directory, a lease on epoch 7 is a shared lock of the operating system on `epochs/000007.json`. The lock ends
//! with the last [`Lease`], or with the process, however the process ends. A collection that retires epoch 7 takes the
//! exclusive lock before it looks, and holds it until the manifest is gone.
//!
//! In S3, a lease on epoch 7 is an object `leases/000007/reader-*`, which is written again every minute. The lease ends
//! with the last [`Lease`], or 15 minutes after the object was last written. A collection that retires epoch 7 puts the
//! object `leases/000007/retired` before it looks, and keeps it until the manifest is gone.
//!
//! A reader reads CURRENT, takes its lease on that epoch, and then reads the manifest. If its lease was there before
//! the collection looked, the epoch stays. If the collection came first, the reader finds that the manifest is gone, or
//! finds the object `retired`. (In a directory the reader waits for the lock, which is held for the time of removing
//! one file.) Then the reader reads CURRENT again, which never names a retired epoch. The lock is on the manifest
//! itself, so a reader in a directory needs no right to write there, and there is nothing to clean up. In S3, each side
//! writes its object, the lease or `retired`, before it looks for the object of the other side. So at least one side
//! sees the other; both may give way. Only the server's clock counts for the age of a lease: the time when `retired`
//! was written.
//!
//! A process that is forked from this one shares its locks until it executes another program.
//!
//! A reader that cannot have a lease (a bucket that it may not write to, a file system without locks) reads without a
//! lease. Its files may be removed while it reads; then the read fails and names the missing file.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// Keeps an epoch from being removed, for as long as any clone lives.
#[derive(Clone)]
pub struct Lease {
    _hold: Arc<dyn Any + Send + Sync>,
}

impl Lease {
    /// A lease that ends when `hold` is dropped.
    pub(crate) fn new(hold: impl Any + Send + Sync) -> Self {
        Self { _hold: Arc::new(hold) }
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lease")
    }
}

/// The result of asking for a lease.
pub(crate) enum Leased {
    /// A lease: if the manifest is there now, the epoch stays.
    Held(Lease),
    /// No lease, and a retry will not help.
    Unable,
    /// No lease: the epoch is retired.
    Gone,
}

/// Keeps readers from taking leases on an epoch until it is dropped. The manifest of the epoch is removed meanwhile.
pub(crate) struct Retiring {
    _hold: Box<dyn Any + Send + Sync>,
}

impl Retiring {
    pub(crate) fn new(hold: impl Any + Send + Sync) -> Self {
        Self { _hold: Box::new(hold) }
    }
}
