//! Leases: a reader that has an epoch open keeps [`crate::store::gc`] from removing it.
//!
//! In a directory, a lease on epoch 7 is a shared lock of the operating system on `epochs/000007.json`. The lock ends
//! with the last [`Lease`], or with the process, however the process ends. A collection that retires epoch 7 holds the
//! exclusive lock from before it looks until the manifest is gone.
//!
//! In S3, a lease on epoch 7 is an object `leases/000007/reader-*`, which is written again every minute. The lease ends
//! with the last [`Lease`], or 15 minutes after the object was last written. A collection that retires epoch 7 puts the
//! object `leases/000007/retired` before it looks, and keeps it until the manifest is gone.
//!
//! A reader reads CURRENT, takes its lease on that epoch, and then reads the manifest. Either its lease was there
//! before the retirer looked, so the epoch stays; or the retirer came first, and the reader finds the manifest gone (in
//! a directory it waits for the lock, which is held for the time of removing one file) or the object `retired`. Then it
//! reads CURRENT again, which never names a retired epoch. The lock is on the manifest itself, so a reader in a
//! directory needs no right to write there, and there is nothing to clean up. In S3, lease and `retired` are each
//! written before the other is looked for, so at least one side sees the other; both may give way. The age of a lease
//! is told by the server's clock alone: that of `retired`.
//!
//! A child that a process forks has its locks, too, until it runs a program of its own.
//!
//! A reader that can have no lease (a bucket that it may not write to, a file system without locks) reads without: what
//! it reads may be removed, and then it fails with the file that is missing.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// A hold on an epoch, for as long as any clone lives.
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

/// What a reader that asked for a lease has got.
pub(crate) enum Leased {
    /// The lease: if the manifest is there now, the epoch stays.
    Held(Lease),
    /// Nothing, and it never will.
    Unable,
    /// Nothing: the epoch is retired.
    Gone,
}

/// Keeps leases from an epoch until it is dropped; its manifest is removed meanwhile.
pub(crate) struct Retiring {
    _hold: Box<dyn Any + Send + Sync>,
}

impl Retiring {
    pub(crate) fn new(hold: impl Any + Send + Sync) -> Self {
        Self { _hold: Box::new(hold) }
    }
}
