//! Leases in S3: objects that their readers write again as long as they live. [`crate::location::lease`] has the rules.

use std::time::Duration;

use chrono::{DateTime, Utc};
use object_store::ObjectMeta;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::*;
use crate::location::lease::Lease;
use crate::location::names::lease_dir;

/// How often a reader writes its lease.
pub(super) const RENEWED_EVERY: Duration = Duration::from_secs(60);
/// A lease that was not written for this time is dead.
pub(super) const DEAD_AFTER: Duration = Duration::from_secs(15 * 60);
/// How long a reader at its end waits for its lease to be removed.
const REMOVAL_MAX: Duration = Duration::from_secs(5);
const RETIRED: &str = "retired";
const READER: &str = "reader-";

/// A lease: an object that is written again until this value is dropped.
struct BucketLease {
    bucket: Bucket,
    key: Key,
    renewal: Option<JoinHandle<()>>,
}

impl Drop for BucketLease {
    fn drop(&mut self) {
        let Ok(runtime) = runtime() else { return };
        let (bucket, key, renewal) = (self.bucket.clone(), self.key.clone(), self.renewal.take());
        let removal = async move {
            if let Some(renewal) = renewal {
                renewal.abort();
                // The renewal may be writing at this moment. It must not write after the removal.
                let _ = renewal.await;
            }
            // A lease that stays dies after [`DEAD_AFTER`].
            let _ = tokio::time::timeout(REMOVAL_MAX, bucket.objects.delete(&key)).await;
        };
        // Asynchronous code must not wait.
        if Handle::try_current().is_ok() {
            runtime.spawn(removal);
        } else {
            runtime.block_on(removal);
        }
    }
}

/// The object `retired` of an epoch. It is removed when this value is dropped, together with dead leases.
struct BucketRetiring {
    bucket: Bucket,
    dir: String,
}

impl Drop for BucketRetiring {
    fn drop(&mut self) {
        // The next collection removes objects that stay.
        let _ = self.bucket.remove_all(&self.dir);
    }
}

impl Bucket {
    fn payload() -> PutPayload {
        PutPayload::from(format!("process {}\n", std::process::id()).into_bytes())
    }

    /// See [`Storage::lease`].
    pub(super) fn take_lease(&self, epoch: u64, renewed_every: Duration) -> Result<Leased, Error> {
        let dir = lease_dir(epoch);
        let name = format!("{dir}/{READER}{}", unique());
        let key = self.key(&name);
        let written = self.wait(&name, async {
            match self.objects.put(&key, Self::payload()).await {
                Ok(_) => Ok(true),
                Err(object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. }) => {
                    Ok(false)
                }
                Err(error) => Err(error),
            }
        })?;
        if !written {
            return Ok(Leased::Unable);
        }
        let mut lease = BucketLease { bucket: self.clone(), key: key.clone(), renewal: None };
        if self.read(&format!("{dir}/{RETIRED}"))?.is_some() {
            return Ok(Leased::Gone);
        }
        let objects = Arc::clone(&self.objects);
        let renew = async move {
            loop {
                tokio::time::sleep(renewed_every).await;
                // A failed write is tried again long before the lease is dead.
                let _ = objects.put(&key, Self::payload()).await;
            }
        };
        let runtime = runtime().map_err(|source| Error::Io { path: self.path(&name), source })?;
        lease.renewal = Some(runtime.spawn(renew));
        Ok(Leased::Held(Lease::new(lease)))
    }

    /// The objects in the directory of the leases of an epoch.
    fn leases(&self, epoch: u64) -> Result<Vec<ObjectMeta>, Error> {
        let dir = lease_dir(epoch);
        self.wait(&dir, self.objects.list(Some(&self.key(&dir))).try_collect())
    }

    fn any_alive(objects: &[ObjectMeta], now: DateTime<Utc>, dead_after: Duration) -> bool {
        let is_lease = |object: &ObjectMeta| object.location.filename().is_some_and(|name| name.starts_with(READER));
        let age = |object: &ObjectMeta| now.signed_duration_since(object.last_modified).to_std().unwrap_or_default();
        objects.iter().any(|object| is_lease(object) && age(object) < dead_after)
    }

    /// See [`Storage::is_leased`]. Uses the clock of this machine, so the result is only a forecast.
    pub(super) fn has_lease(&self, epoch: u64) -> Result<bool, Error> {
        Ok(Self::any_alive(&self.leases(epoch)?, Utc::now(), DEAD_AFTER))
    }

    /// See [`Storage::holders`]: the text of each reader, and the age of its lease.
    pub(super) fn lease_holders(&self, epoch: u64) -> Result<Vec<String>, Error> {
        let now = Utc::now();
        let objects = self.leases(epoch)?.into_iter();
        let leases = objects.filter(|object| object.location.filename().is_some_and(|name| name.starts_with(READER)));
        leases
            .map(|object| {
                let name = format!("{}/{}", lease_dir(epoch), object.location.filename().unwrap_or_default());
                let text = self.read(&name)?.unwrap_or_default();
                let age = now.signed_duration_since(object.last_modified).num_seconds();
                Ok(format!("{} ({name}, written {age} s ago)", String::from_utf8_lossy(&text).trim()))
            })
            .collect()
    }

    /// See [`Storage::retire`].
    pub(super) fn retire_after(&self, epoch: u64, dead_after: Duration) -> Result<Option<Retiring>, Error> {
        let dir = lease_dir(epoch);
        let name = format!("{dir}/{RETIRED}");
        self.replace(&name, b"")?;
        let objects = self.leases(epoch)?;
        let retired_mark = objects.iter().find(|object| object.location == self.key(&name));
        let missing = || Error::Io { path: self.path(&name), source: ErrorKind::NotFound.into() };
        let now = retired_mark.ok_or_else(missing)?.last_modified;
        if Self::any_alive(&objects, now, dead_after) {
            self.remove(&name)?;
            return Ok(None);
        }
        Ok(Some(Retiring::new(BucketRetiring { bucket: self.clone(), dir })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(leased: Leased) -> Option<Lease> {
        match leased {
            Leased::Held(lease) => Some(lease),
            _ => None,
        }
    }

    #[test]
    fn a_lease_keeps_its_epoch_until_its_last_clone_goes() {
        let bucket = Bucket::in_memory();
        let lease = held(bucket.lease(7).unwrap()).unwrap();
        let second = held(bucket.lease(7).unwrap()).unwrap();
        assert_eq!(bucket.leases(7).unwrap().len(), 2);
        assert!(bucket.is_leased(7).unwrap() && !bucket.is_leased(8).unwrap());
        assert!(bucket.retire(7).unwrap().is_none());
        let holders = bucket.holders(7).unwrap();
        let process = format!("process {} (leases/000007/reader-", std::process::id());
        assert!(holders.len() == 2 && holders.iter().all(|holder| holder.starts_with(&process)), "{holders:?}");
        drop((lease.clone(), second));
        assert!(bucket.retire(7).unwrap().is_none());
        assert_eq!(bucket.leases(7).unwrap().len(), 1, "what said retired must be gone");
        drop(lease);
        let retiring = bucket.retire(7).unwrap().unwrap();
        assert!(matches!(bucket.lease(7).unwrap(), Leased::Gone));
        drop(retiring);
        assert_eq!(bucket.names("leases").unwrap(), [] as [&str; 0]);
        assert!(held(bucket.lease(7).unwrap()).is_some(), "it was given up");
    }

    #[test]
    fn a_lease_that_nobody_writes_dies() {
        let bucket = Bucket::in_memory();
        let killed = held(bucket.lease(7).unwrap()).unwrap();
        std::mem::forget(killed);
        assert!(bucket.retire_after(7, Duration::from_secs(3600)).unwrap().is_none());
        drop(bucket.retire_after(7, Duration::ZERO).unwrap().unwrap());
        assert_eq!(bucket.names("leases").unwrap(), [] as [&str; 0], "it went with the epoch");
    }

    #[test]
    fn a_lease_is_written_again() {
        let bucket = Bucket::in_memory();
        let lease = held(bucket.take_lease(7, Duration::from_millis(1)).unwrap()).unwrap();
        let written = || bucket.leases(7).unwrap().first().map(|object| object.last_modified);
        let first = written();
        let start = std::time::Instant::now();
        while written() == first {
            assert!(start.elapsed() < Duration::from_secs(60), "it was never written again");
        }
        drop(lease);
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(written(), None);
    }

    #[test]
    fn a_lease_may_end_in_asynchronous_code() {
        let bucket = Bucket::in_memory();
        let lease = held(bucket.lease(7).unwrap()).unwrap();
        let end = async { drop(lease) };
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(end);
        let start = std::time::Instant::now();
        while bucket.is_leased(7).unwrap() {
            assert!(start.elapsed() < Duration::from_secs(60), "it was never removed");
        }
    }
}
