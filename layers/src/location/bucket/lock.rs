//! The lock of the writer in S3: the object `LOCK`, a lease that its holder renews as long as it lives.
//!
//! ```text
//! build 5d41402abc4b2a76b9719d911017c592 8f1c3a5be2d40967    the name of the holder
//! given up 0                                                 how many writers before it were given up
//! written 17                                                 how often the holder has written the object
//! ```
//!
//! Every write is on condition that the object is the one that the writer has read or written before (`If-Match`), or
//! that there is none (`If-None-Match: *`). The number of writes makes every ETag a new one. A holder that was stalled
//! can therefore not renew a lock that another writer has taken over, however long it was stalled. Only such a write
//! shows that the lock is held, so [`Lock::check`] is one. At its end, a holder writes an object without a name.
//!
//! A writer that was given up may go on to write the files of a row. The next writers leave out that number: as many
//! numbers as writers were given up, until one of them commits a row. Then the object has no text at all. If somebody
//! has removed the object, nobody knows how many writers may go on, and a random number of numbers is left out.
//!
//! A writer takes the lock if there is no object or no text, if the text begins with its own name, or if the object was
//! not written for [`DEAD_AFTER`]. The age is by the clock of the server, and decides only whether somebody waits:
//! a holder that was given up too early fails at its next check. A job that resumes has its old name.
//!
//! A server that ignores conditions cannot keep two writers apart. Each writer tries the server when it takes the lock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use super::*;
use crate::location::names::{CURRENT, LEASES, LOCK};

/// How often the holder writes the lock.
pub(super) const RENEWED_EVERY: Duration = Duration::from_secs(60);
/// A lock that was not written for this time is given up.
pub(super) const DEAD_AFTER: Duration = Duration::from_secs(15 * 60);
/// How long a holder at its end tries to release the lock.
const RELEASE_MAX: Duration = Duration::from_secs(10);

/// The text of the object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Text {
    owner: String,
    given_up: u32,
    written: u64,
}

impl Text {
    fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let mut lines = text.lines().map(str::trim);
        let owner = lines.next().unwrap_or_default().to_owned();
        let number = |line: Option<&str>| line.and_then(|line| line.rsplit_once(' ')?.1.parse().ok()).unwrap_or(0);
        let given_up = u32::try_from(number(lines.next())).unwrap_or(u32::MAX);
        Self { owner, given_up, written: number(lines.next()) }
    }

    fn bytes(&self) -> Vec<u8> {
        format!("{}\ngiven up {}\nwritten {}\n", self.owner, self.given_up, self.written).into_bytes()
    }
}

/// The last write of the holder.
struct Written {
    text: Text,
    version: Version,
}

/// The lock, shared by its holder and the task that renews it.
struct Held {
    bucket: Bucket,
    written: Mutex<Written>,
    is_lost: AtomicBool,
}

impl Held {
    /// Writes the lock again. Returns whether it was still held.
    async fn renew(&self) -> Answer<bool> {
        let mut written = self.written.lock().await;
        let mut text = written.text.clone();
        text.written += 1;
        if self.is_lost.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let Some(version) = self.bucket.put_version(&self.bucket.key(LOCK), &text.bytes(), &written.version).await?
        else {
            self.is_lost.store(true, Ordering::Relaxed);
            return Ok(false);
        };
        *written = Written { text, version };
        Ok(true)
    }
}

/// The lock of the writer. It is released when this value is dropped.
pub(super) struct BucketLock {
    held: Arc<Held>,
    given_up: u32,
    has_committed: AtomicBool,
    renewal: JoinHandle<()>,
}

impl Lock for BucketLock {
    fn check(&self) -> Result<(), Error> {
        let bucket = &self.held.bucket;
        if bucket.wait(LOCK, self.held.renew())? {
            return Ok(());
        }
        let owner = bucket.read(LOCK)?.map(|bytes| Text::parse(&bytes).owner).unwrap_or_default();
        Err(Error::LockLost { path: bucket.path(LOCK), owner })
    }

    fn given_up(&self) -> u32 {
        self.given_up
    }

    fn committed(&self) {
        self.has_committed.store(true, Ordering::Relaxed);
    }
}

impl Drop for BucketLock {
    fn drop(&mut self) {
        let Ok(runtime) = runtime() else { return };
        let (held, renewal) = (Arc::clone(&self.held), self.renewal.abort_handle());
        let given_up = if self.has_committed.load(Ordering::Relaxed) { 0 } else { self.given_up };
        let release = async move {
            // The renewal may be writing at this moment.
            let written = held.written.lock().await;
            renewal.abort();
            let text = Text { owner: String::new(), given_up, written: written.text.written + 1 };
            let text = if given_up == 0 { Vec::new() } else { text.bytes() };
            held.bucket.put_version(&held.bucket.key(LOCK), &text, &written.version).await
        };
        // A lock that stays is given up after [`DEAD_AFTER`].
        let _ = runtime.block_on(async { tokio::time::timeout(RELEASE_MAX, release).await });
    }
}

/// A random number from 1 to 65,536, so that two writers seldom have the same.
fn any_number() -> u32 {
    let random = u32::from_str_radix(&unique()[..4], 16);
    random.unwrap_or(0) + 1
}

impl Bucket {
    /// See [`Storage::lock`].
    pub(super) fn take_lock(
        &self,
        owner: &str,
        renewed_every: Duration,
        dead_after: Duration,
    ) -> Result<BucketLock, Error> {
        let owner = owner.trim().to_owned();
        let written = loop {
            let (found, version) = self.read_version(LOCK)?;
            let is_removed = found.is_none() && self.read(CURRENT)?.is_some();
            let found = found.map(|bytes| Text::parse(&bytes)).unwrap_or_default();
            let is_free = found.owner.is_empty() || found.owner == owner;
            if !is_free && !self.is_given_up(dead_after)? {
                return Err(Error::Locked { path: self.path(LOCK), owner: found.owner, lease: Some(dead_after) });
            }
            let given_up = if is_removed { any_number() } else { found.given_up + u32::from(!is_free) };
            // A number that no stalled writer of this name has.
            let text = Text { owner: owner.clone(), given_up, written: found.written + 1 };
            if let Some(version) = self.replace_version(LOCK, &text.bytes(), &version)? {
                break Written { text, version };
            }
            // Another writer was faster, or the holder has written.
        };
        self.try_conditions(&written)?;
        let given_up = written.text.given_up;
        let held =
            Arc::new(Held { bucket: self.clone(), written: Mutex::new(written), is_lost: AtomicBool::new(false) });
        let has_committed = AtomicBool::new(false);
        let renewed = Arc::clone(&held);
        let renew = async move {
            loop {
                tokio::time::sleep(renewed_every).await;
                // After an error the next write may succeed. A lock that was lost stays lost.
                if let Ok(false) = renewed.renew().await {
                    return;
                }
            }
        };
        let runtime = runtime().map_err(|source| Error::Io { path: self.path(LOCK), source })?;
        Ok(BucketLock { held, given_up, has_committed, renewal: runtime.spawn(renew) })
    }

    /// Whether the lock was not written for a time, by the clock of the server.
    fn is_given_up(&self, dead_after: Duration) -> Result<bool, Error> {
        let Some(written) = self.modified(LOCK)? else { return Ok(true) };
        let clock = format!("{LEASES}/clock-{}", unique());
        self.replace(&clock, b"")?;
        let now = self.modified(&clock)?;
        self.remove(&clock)?;
        let age = now.map_or(0, |now| now.saturating_sub(written));
        Ok(u64::try_from(age).is_ok_and(|age| age >= dead_after.as_secs()))
    }

    /// Writes the lock under two conditions that do not hold. A server that accepts one of them ignores conditions.
    fn try_conditions(&self, written: &Written) -> Result<(), Error> {
        let mut text = written.text.clone();
        // Other bytes than those of the lock: a condition that fails is then no lost answer.
        text.written += 1;
        let other = Version { exists: true, tags: [Some(format!("\"{}{}\"", unique(), unique())), None] };
        for (version, condition) in [(other, "If-Match"), (Version::default(), "If-None-Match")] {
            if self.replace_version(LOCK, &text.bytes(), &version)?.is_some() {
                self.replace(LOCK, b"")?;
                return Err(Error::Unconditional { path: self.path(LOCK), condition });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn a_lock_is_taken_over_when_its_holder_is_given_up_and_the_holder_is_told() {
        let bucket = Bucket::in_memory();
        let first = bucket.take_lock("one", LONG, LONG).unwrap();
        first.check().unwrap();
        let refused = bucket.take_lock("two", LONG, LONG).err();
        assert!(matches!(refused, Some(Error::Locked { owner, .. }) if owner == "one"));
        let second = bucket.take_lock("two", LONG, Duration::ZERO).unwrap();
        assert_eq!((first.given_up(), second.given_up()), (0, 1));
        for _ in 0..2 {
            assert!(matches!(first.check(), Err(Error::LockLost { owner, .. }) if owner == "two"));
        }
        drop(first);
        second.check().unwrap();
        // The first writer may still go on, until a row is committed.
        drop(second);
        assert_eq!(bucket.names("leases").unwrap(), [] as [&str; 0]);
        let third = bucket.take_lock("three", LONG, LONG).unwrap();
        assert_eq!(third.given_up(), 1);
        third.committed();
        drop(third);
        assert_eq!(bucket.read(LOCK).unwrap().as_deref(), Some(b"".as_slice()));
        assert_eq!(bucket.take_lock("four", LONG, LONG).unwrap().given_up(), 0);
    }

    #[test]
    fn after_a_lock_of_a_store_was_removed_nobody_knows_how_many_writers_may_go_on() {
        let bucket = Bucket::in_memory();
        assert_eq!(bucket.take_lock("one", LONG, LONG).unwrap().given_up(), 0, "a new store");
        bucket.replace(CURRENT, b"1").unwrap();
        let given_up = || {
            bucket.remove(LOCK).unwrap();
            bucket.take_lock("two", LONG, LONG).unwrap().given_up()
        };
        let numbers: std::collections::BTreeSet<u32> = (0..8).map(|_| given_up()).collect();
        assert!(numbers.len() > 1 && numbers.iter().all(|number| (1..=65_536).contains(number)), "{numbers:?}");
    }

    #[test]
    fn a_job_that_was_killed_finds_its_lock() {
        let bucket = Bucket::in_memory();
        std::mem::forget(bucket.take_lock("one", LONG, LONG).unwrap());
        let again = bucket.take_lock("one", LONG, LONG).unwrap();
        again.check().unwrap();
        assert_eq!(again.given_up(), 0);
        // Somebody removes the object.
        bucket.remove(LOCK).unwrap();
        assert!(matches!(again.check(), Err(Error::LockLost { owner, .. }) if owner.is_empty()));
    }

    #[test]
    fn a_lock_is_written_again() {
        let bucket = Bucket::in_memory();
        let lock = bucket.take_lock("one", Duration::from_millis(1), LONG).unwrap();
        let written = || Text::parse(&bucket.read(LOCK).unwrap().unwrap()).written;
        let (first, start) = (written(), std::time::Instant::now());
        while written() < first + 3 {
            assert!(start.elapsed() < Duration::from_secs(60), "it was never written again");
        }
        lock.check().unwrap();
    }

    #[test]
    fn a_version_is_replaced_once() {
        let bucket = Bucket::in_memory();
        let (none, version) = bucket.read_version("x").unwrap();
        assert_eq!(none, None);
        let first = bucket.replace_version("x", b"1", &version).unwrap().unwrap();
        assert_eq!(bucket.replace_version("x", b"2", &version).unwrap(), None);
        let second = bucket.replace_version("x", b"2", &first).unwrap().unwrap();
        assert_eq!(bucket.replace_version("x", b"3", &first).unwrap(), None);
        // As if the answer to the first attempt was lost.
        assert_eq!(bucket.replace_version("x", b"2", &first).unwrap(), Some(second));
        assert_eq!(bucket.read("x").unwrap().as_deref(), Some(b"2".as_slice()));
    }
}
