//! A store in an S3 bucket: files are objects with names under a prefix. Only with the feature `remote`.
//!
//! Objects appear complete or not at all. Layer files are written to unnamed files in a staging directory, which
//! disappear with the process. A finished file is uploaded: in one request up to [`PART_BYTES`], else in parts,
//! [`PARTS_AT_ONCE`] at a time. Objects are fetched in the same parts. The writer's lock is an object, too
//! ([`lock`]), and so are leases of readers ([`leases`]). The lock of a note ([`crate::store::notes`]) belongs to the
//! last process that took it.
//!
//! What decides between two writers is put on a condition, which the server checks: that there is no object yet
//! (`If-None-Match: *`), or that the object still has the ETag that the writer has read (`If-Match`).
//!
//! Memory: small objects, and objects that are fetched whole; for uploads, the parts in flight. Requests, connections
//! and retries are those of crawl files on other machines ([`webstrata_remote`]).

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::future::Future;
use std::io::{self, ErrorKind, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::memory::InMemory;
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutPayload, PutResult, UpdateVersion, WriteMultipart};
use webstrata_remote::{fetch, runtime};

use crate::error::Error;
use crate::location::body::Body;
use crate::location::lease::{Leased, Retiring};
use crate::location::{Lock, Storage, Version, unique};

mod leases;
mod lock;

/// Bytes of a request that fetches or uploads a part of an object; more if an object would have too many parts.
const PART_BYTES: u64 = 8 << 20;
/// The number of parts of one object in flight.
const PARTS_AT_ONCE: usize = 4;
/// The most parts of one object (S3 allows 10,000).
const PARTS_MAX: u64 = 9_000;

/// The objects of a bucket under a prefix.
#[derive(Clone)]
pub(crate) struct Bucket {
    objects: Arc<dyn ObjectStore>,
    /// `s3://bucket/prefix`, for messages.
    url: String,
    prefix: Key,
}

type Answer<T> = Result<T, object_store::Error>;

impl Bucket {
    /// A bucket on the server that the environment configures.
    pub(crate) fn open(bucket: &str, prefix: &str) -> Result<Self, Error> {
        let url = format!("s3://{bucket}/{prefix}").trim_end_matches('/').to_owned();
        let why = "its prefix has empty names, \".\", \"..\" or control characters";
        let prefix = Key::parse(prefix).map_err(|_| Error::BadLocation { location: url.clone(), why })?;
        let objects = webstrata_remote::bucket(bucket);
        let objects = objects.map_err(|source| Error::Io { path: url.clone().into(), source })?;
        Ok(Self { objects, url, prefix })
    }

    /// Objects in memory, for tests.
    pub(crate) fn in_memory() -> Self {
        Self { objects: Arc::new(InMemory::new()), url: "s3://memory".to_owned(), prefix: Key::ROOT }
    }

    fn key(&self, name: &str) -> Key {
        name.split('/').filter(|part| !part.is_empty()).fold(self.prefix.clone(), |key, part| key.join(part))
    }

    /// Runs requests about a file and waits for the answer.
    fn wait<T, E: Into<io::Error>>(
        &self,
        name: &str,
        requests: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Error> {
        let answer = runtime().and_then(|runtime| runtime.block_on(requests).map_err(Into::into));
        answer.map_err(|source| Error::Io { path: self.path(name), source })
    }

    /// The text of the holder of a lock.
    fn holder(&self, lock: &str) -> Result<Option<String>, Error> {
        Ok(self.read(lock)?.map(|text| String::from_utf8_lossy(&text).trim().to_owned()))
    }

    /// Sizes of the objects below a directory, by key.
    async fn sizes(&self, dir: &str) -> Answer<BTreeMap<Key, u64>> {
        let objects = self.objects.list(Some(&self.key(dir)));
        objects.map_ok(|object| (object.location, object.size)).try_collect().await
    }

    /// See [`Storage::replace_version`].
    async fn put_version(&self, key: &Key, bytes: &[u8], version: &Version) -> Answer<Option<Version>> {
        let [e_tag, number] = version.tags.clone();
        let mode = match version.exists {
            true => PutMode::Update(UpdateVersion { e_tag, version: number }),
            false => PutMode::Create,
        };
        match self.objects.put_opts(key, PutPayload::from(bytes.to_vec()), mode.into()).await {
            Ok(PutResult { e_tag, version, .. }) => Ok(Some(Version { exists: true, tags: [e_tag, version] })),
            Err(
                object_store::Error::Precondition { .. }
                | object_store::Error::AlreadyExists { .. }
                | object_store::Error::NotFound { .. },
            ) => {
                // The answer to the first attempt may have been lost on the way, and then the object is this one.
                let Some(got) = found(self.objects.get(key).await)? else { return Ok(None) };
                let tags = [got.meta.e_tag.clone(), got.meta.version.clone()];
                Ok((got.bytes().await? == bytes).then_some(Version { exists: true, tags }))
            }
            Err(error) => Err(error),
        }
    }

    async fn fetch(&self, key: &Key) -> Answer<Vec<u8>> {
        let size = self.objects.head(key).await?.size;
        let step = usize::try_from(PART_BYTES).unwrap_or(usize::MAX);
        let starts = (0..size).step_by(step);
        let parts = starts.map(|start| fetch(&*self.objects, key, start..size.min(start + PART_BYTES)));
        let mut parts = stream::iter(parts).buffered(PARTS_AT_ONCE);
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
        while let Some(part) = parts.try_next().await? {
            bytes.extend_from_slice(&part);
        }
        Ok(bytes)
    }

    async fn upload(&self, key: &Key, mut file: File) -> io::Result<()> {
        file.rewind()?;
        let size = file.metadata()?.len();
        let part_bytes = PART_BYTES.max(size / PARTS_MAX + 1);
        let mut next = || -> io::Result<Bytes> {
            let mut part = Vec::new();
            (&mut file).take(part_bytes).read_to_end(&mut part)?;
            Ok(part.into())
        };
        if size <= PART_BYTES {
            self.objects.put(key, PutPayload::from(next()?)).await?;
            return Ok(());
        }
        let upload = self.objects.put_multipart(key).await?;
        let mut upload = WriteMultipart::new_with_chunk_size(upload, usize::try_from(part_bytes).unwrap_or(usize::MAX));
        loop {
            let free = upload.wait_for_capacity(PARTS_AT_ONCE).await;
            match free.map_err(io::Error::from).and_then(|()| next()) {
                Ok(part) if part.is_empty() => break,
                Ok(part) => upload.put(part),
                Err(error) => {
                    // Parts that stay are invisible. The first error is the one to report.
                    let _ = upload.abort().await;
                    return Err(error);
                }
            }
        }
        upload.finish().await?;
        Ok(())
    }
}

/// Turns a missing object into `None`.
fn found<T>(answer: Answer<T>) -> Answer<Option<T>> {
    match answer {
        Err(object_store::Error::NotFound { .. }) => Ok(None),
        answer => answer.map(Some),
    }
}

impl Storage for Bucket {
    fn directory(&self) -> Option<&Path> {
        None
    }

    fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.url.clone().into() } else { format!("{}/{name}", self.url).into() }
    }

    fn prepare(&self) -> Result<bool, Error> {
        Ok(false)
    }

    /// The lock is removed when its writer drops it.
    fn forsake(&self, _: bool) -> Result<(), Error> {
        Ok(())
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let key = self.key(name);
        self.wait(name, async { found(self.fetch(&key).await) })
    }

    fn body(&self, name: &str) -> Result<Body, Error> {
        let bytes = self.wait(name, self.fetch(&self.key(name)))?;
        Ok(Body::Fetched(bytes.into()))
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, Error> {
        let (key, payload) = (self.key(name), PutPayload::from(bytes.to_vec()));
        self.wait(name, async {
            match self.objects.put_opts(&key, payload, PutMode::Create.into()).await {
                Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
                answer => answer.map(|_| true),
            }
        })
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        self.wait(name, self.objects.put(&self.key(name), PutPayload::from(bytes.to_vec()))).map(|_| ())
    }

    fn read_version(&self, name: &str) -> Result<(Option<Vec<u8>>, Version), Error> {
        let key = self.key(name);
        let read = async {
            let Some(got) = found(self.objects.get(&key).await)? else { return Ok((None, Version::default())) };
            let tags = [got.meta.e_tag.clone(), got.meta.version.clone()];
            Ok::<_, object_store::Error>((Some(got.bytes().await?.to_vec()), Version { exists: true, tags }))
        };
        self.wait(name, read)
    }

    fn replace_version(&self, name: &str, bytes: &[u8], version: &Version) -> Result<Option<Version>, Error> {
        self.wait(name, self.put_version(&self.key(name), bytes, version))
    }

    fn names(&self, dir: &str) -> Result<Vec<String>, Error> {
        let key = self.key(dir);
        let list = self.wait(dir, self.objects.list_with_delimiter(Some(&key)))?;
        let keys = list.common_prefixes.into_iter().chain(list.objects.into_iter().map(|object| object.location));
        Ok(keys.filter_map(|key| key.filename().map(str::to_owned)).collect())
    }

    fn remove(&self, name: &str) -> Result<(), Error> {
        let key = self.key(name);
        self.wait(name, async { found(self.objects.delete(&key).await) }).map(|_| ())
    }

    fn remove_all(&self, dir: &str) -> Result<(), Error> {
        self.wait(dir, async {
            let keys = self.sizes(dir).await?.into_keys().map(Ok);
            self.objects.delete_stream(stream::iter(keys).boxed()).try_for_each(|_| async { Ok(()) }).await
        })
    }

    fn begin(&self, _: &str, staging: &Path) -> Result<(File, PathBuf), Error> {
        Ok((tempfile::tempfile_in(staging).map_err(Error::io(staging))?, staging.to_owned()))
    }

    fn finish(&self, name: &str, file: File) -> Result<(), Error> {
        self.wait(name, self.upload(&self.key(name), file))
    }

    /// Objects are durable once they are uploaded, so this compares only their sizes.
    fn settle(&self, files: &[(&str, u64)]) -> Result<(), Error> {
        let dirs: BTreeSet<&str> =
            files.iter().filter_map(|(name, _)| name.rsplit_once('/')).map(|(dir, _)| dir).collect();
        let mut sizes = BTreeMap::new();
        for dir in dirs {
            sizes.extend(self.wait(dir, self.sizes(dir))?);
        }
        for &(name, expected) in files {
            let path = self.path(name);
            match sizes.get(&self.key(name)) {
                Some(&got) if got == expected => {}
                Some(&got) => return Err(Error::Size { path, expected, got }),
                None => return Err(Error::Io { path, source: ErrorKind::NotFound.into() }),
            }
        }
        Ok(())
    }

    fn modified(&self, name: &str) -> Result<Option<i64>, Error> {
        let key = self.key(name);
        let head = self.wait(name, async { found(self.objects.head(&key).await) })?;
        Ok(head.map(|object| object.last_modified.timestamp()))
    }

    fn lease(&self, epoch: u64) -> Result<Leased, Error> {
        self.take_lease(epoch, leases::RENEWED_EVERY)
    }

    fn is_leased(&self, epoch: u64) -> Result<bool, Error> {
        self.has_lease(epoch)
    }

    fn holders(&self, epoch: u64) -> Result<Vec<String>, Error> {
        self.lease_holders(epoch)
    }

    fn retire(&self, epoch: u64) -> Result<Option<Retiring>, Error> {
        self.retire_after(epoch, leases::DEAD_AFTER)
    }

    fn lock(&self, owner: &str) -> Result<Box<dyn Lock>, Error> {
        Ok(Box::new(self.take_lock(owner, lock::RENEWED_EVERY, lock::DEAD_AFTER)?))
    }

    fn hold(&self, name: &str) -> Result<Box<dyn Lock>, Error> {
        let owner = format!("process {}, {}", std::process::id(), unique());
        self.replace(name, owner.as_bytes())?;
        Ok(Box::new(NoteLock { bucket: self.clone(), name: name.to_owned(), owner }))
    }
}

/// The lock of a note: an object with the text of its holder.
struct NoteLock {
    bucket: Bucket,
    name: String,
    owner: String,
}

impl Lock for NoteLock {
    fn check(&self) -> Result<(), Error> {
        match self.bucket.holder(&self.name)? {
            Some(holder) if holder == self.owner => Ok(()),
            holder => Err(Error::LockLost { path: self.bucket.path(&self.name), owner: holder.unwrap_or_default() }),
        }
    }
}

impl Drop for NoteLock {
    fn drop(&mut self) {
        if self.check().is_ok() {
            // If the server is unreachable, the lock stays, and the next holder takes it over.
            let _ = self.bucket.remove(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn objects_of_any_size_come_back() {
        let (bucket, staging) = (Bucket::in_memory(), tempfile::tempdir().unwrap());
        let all: Vec<u8> = (0..2 * PART_BYTES + 12_345).map(|at| at.to_le_bytes()[(at % 3) as usize]).collect();
        let part = usize::try_from(PART_BYTES).unwrap();
        for size in [0, 1, part - 1, part, part + 1, 2 * part, all.len()] {
            let (mut file, _) = bucket.begin("a/b", staging.path()).unwrap();
            file.write_all(&all[..size]).unwrap();
            bucket.finish("a/b", file).unwrap();
            assert!(bucket.read("a/b").unwrap().unwrap() == all[..size], "{size} bytes");
            bucket.settle(&[("a/b", size as u64)]).unwrap();
            assert!(matches!(bucket.settle(&[("a/b", 7)]), Err(Error::Size { expected: 7, .. })));
        }
        assert!(bucket.settle(&[("a/c", 0)]).is_err());
        assert_eq!(std::fs::read_dir(staging.path()).unwrap().count(), 0);
    }

    #[test]
    fn names_are_those_right_inside() {
        let bucket = Bucket::in_memory();
        for name in ["LOCK", "rows/000001/ol/x", "rows/000001/ts/x", "rows/000002/ol/x", "rowsx/y"] {
            assert!(bucket.create(name, b"1").unwrap());
            assert!(!bucket.create(name, b"2").unwrap());
        }
        let sorted = |dir| {
            let mut names = bucket.names(dir).unwrap();
            names.sort();
            names
        };
        assert_eq!(sorted(""), ["LOCK", "rows", "rowsx"]);
        assert_eq!(sorted("rows"), ["000001", "000002"]);
        bucket.remove_all("rows/000001").unwrap();
        bucket.remove("missing").unwrap();
        assert_eq!((sorted("rows"), sorted("missing")), (vec!["000002".to_owned()], vec![]));
        assert_eq!(bucket.read("LOCK").unwrap().as_deref(), Some(b"1".as_slice()));
        bucket.replace("LOCK", b"3").unwrap();
        assert_eq!(bucket.read("LOCK").unwrap().as_deref(), Some(b"3".as_slice()));
        assert_eq!(bucket.read("missing").unwrap(), None);
    }
}
