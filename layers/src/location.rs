//! The location of a store: [`Location`], a directory or a prefix of names in an S3 bucket, and the operations of each.
//!
//! ```text
//! crawl/store, file:///archive/store      a directory (`directory`)
//! s3://bucket/archive/store               objects in a bucket (`bucket`), with the cargo feature `remote`
//! ```
//!
//! Both hold the same files under the same names with the same bytes, except for `LOCK`. Names are relative, with `/`.
//! These invariants hold for both:
//!
//! - A file written by `Storage::create` or `Storage::replace` is complete and durable when the call returns.
//! - If several callers use `Storage::create` with one name, one of them wins.
//! - A reader of a replaced file sees the old file or the new file.
//! - `Storage::replace_version` writes nothing if another writer has written the file meanwhile.
//!
//! Calls block.

pub(crate) mod body;
#[cfg(feature = "remote")]
mod bucket;
pub(crate) mod directory;
pub(crate) mod draft;
pub(crate) mod lease;
pub(crate) mod names;
pub mod regular;

use std::collections::hash_map::RandomState;
use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::hash::{BuildHasher, Hasher};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use crate::error::Error;
use crate::location::body::Body;
use crate::location::directory::Directory;
use crate::location::lease::{Leased, Retiring};

/// The operations that a store needs from its location.
pub(crate) trait Storage: Send + Sync {
    /// The directory, if the location is a directory on this machine.
    fn directory(&self) -> Option<&Path>;

    /// The name of a file in messages; in a directory, also the path of the file. The location itself for an empty
    /// name.
    fn path(&self, name: &str) -> PathBuf;

    /// Prepares the location for a store. Returns whether it created anything.
    fn prepare(&self) -> Result<bool, Error>;

    /// Undoes [`Storage::lock`], and [`Storage::prepare`] if that call has `made` the location and it is still empty.
    fn forsake(&self, made: bool) -> Result<(), Error>;

    /// The contents of a small file; `None` if there is no such file.
    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error>;

    /// A layer file, to be read from its place or from memory.
    fn body(&self, name: &str) -> Result<Body, Error>;

    /// Writes a small file. If there is such a file already, returns `false` and changes nothing.
    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, Error>;

    /// Writes a small file, and replaces an existing file.
    fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), Error>;

    /// The contents of a small file, as [`Storage::read`], and its version.
    fn read_version(&self, name: &str) -> Result<(Option<Vec<u8>>, Version), Error>;

    /// Writes a small file if the file still has this version. Returns the new version, or `None` if the file has
    /// changed: then nothing is written. A directory has no versions: the lock of the system keeps other writers away.
    fn replace_version(&self, name: &str, bytes: &[u8], version: &Version) -> Result<Option<Version>, Error>;

    /// The names of the files and directories directly inside a directory; none if the directory is missing.
    fn names(&self, dir: &str) -> Result<Vec<String>, Error>;

    /// Removes a file durably. A missing file is not an error.
    fn remove(&self, name: &str) -> Result<(), Error>;

    /// Removes a directory with its contents. A missing directory is not an error.
    fn remove_all(&self, dir: &str) -> Result<(), Error>;

    /// Begins a layer file. Returns the file, and the path for its errors: the file itself, or `staging` for a
    /// temporary file.
    fn begin(&self, name: &str, staging: &Path) -> Result<(File, PathBuf), Error>;

    /// Puts a layer file that was begun in its place, and replaces an existing file.
    fn finish(&self, name: &str, file: File) -> Result<(), Error>;

    /// Makes layer files durable, with all their parent directories. Each file must have the given size.
    fn settle(&self, files: &[(&str, u64)]) -> Result<(), Error>;

    /// The time at which a file was written, in seconds since 1970; `None` if there is no such file.
    fn modified(&self, name: &str) -> Result<Option<i64>, Error>;

    /// Takes a lease on an epoch. [`crate::location::lease`] explains leases.
    fn lease(&self, epoch: u64) -> Result<Leased, Error>;

    /// Whether a reader has a lease on an epoch now.
    fn is_leased(&self, epoch: u64) -> Result<bool, Error>;

    /// Descriptions of the holders of leases on an epoch, if the location knows them.
    fn holders(&self, epoch: u64) -> Result<Vec<String>, Error>;

    /// Prevents new leases on an epoch with a manifest until the result is dropped; `None` if a reader has a lease.
    fn retire(&self, epoch: u64) -> Result<Option<Retiring>, Error>;

    /// Takes the lock of the writer; a store has one writer. If the lock outlives a process, then so that another
    /// writer gets it when it has not been renewed for a time.
    fn lock(&self, owner: &str) -> Result<Box<dyn Lock>, Error>;

    /// Takes the lock `name` of a note; see [`crate::store::notes`].
    fn hold(&self, name: &str) -> Result<Box<dyn Lock>, Error>;
}

/// A lock, which is released when this value is dropped.
pub(crate) trait Lock: Send + Sync {
    /// Fails if the lock is no longer held.
    fn check(&self) -> Result<(), Error>;

    /// How many writers were given up, one after the other, before this one took the lock over. Each of them may be
    /// stalled, and go on.
    fn given_up(&self) -> u32 {
        0
    }

    /// Forgets the writers that were given up: a row was committed that has a greater number than any row of theirs.
    fn committed(&self) {}
}

/// The version of a small file, by which a writer sees that another one has written the file meanwhile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Version {
    /// Whether there is a file.
    exists: bool,
    /// The ETag and the version that the server gave.
    tags: [Option<String>; 2],
}

/// A random name, so that the names of two processes differ: of two containers, too, in which numbers of processes and
/// of boots repeat.
pub fn unique() -> String {
    format!("{:016x}", RandomState::new().build_hasher().finish())
}

/// The location of a store. Cheap to clone.
#[derive(Clone)]
pub struct Location {
    storage: Arc<dyn Storage>,
}

impl Location {
    /// Parses a location: a path, `file:///path`, or `s3://bucket/prefix`.
    ///
    /// The usual environment variables configure an S3 location: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and
    /// `AWS_REGION`. Servers other than Amazon's also need `AWS_ENDPOINT_URL`, and `AWS_ALLOW_HTTP=true` if they have
    /// no TLS. This call sends no request.
    ///
    /// # Errors
    /// Other schemes; URLs without path or bucket; `s3://` if the program was built without the feature `remote`.
    pub fn parse(text: impl AsRef<OsStr>) -> Result<Self, Error> {
        let path = Path::new(text.as_ref());
        let Some(text) = path.to_str() else { return Ok(path.into()) };
        let is_scheme = |scheme: &str| {
            scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        };
        match text.split_once("://").filter(|(scheme, _)| is_scheme(scheme)) {
            None if text.is_empty() => Err(bad(text, "it is empty")),
            None => Ok(path.into()),
            Some(("file", rest)) => Ok(file_path(text, rest)?.into()),
            Some(("s3", rest)) => s3(text, rest),
            Some((scheme, _)) => Err(Error::UnknownScheme { location: text.to_owned(), scheme: scheme.to_owned() }),
        }
    }

    /// The directory, if the location is a directory on this machine.
    pub fn directory(&self) -> Option<&Path> {
        self.storage.directory()
    }

    /// A location for tests: objects in the memory of this process. They are lost with the last clone.
    #[cfg(feature = "remote")]
    pub fn in_memory() -> Self {
        Self { storage: Arc::new(crate::location::bucket::Bucket::in_memory()) }
    }

    pub(crate) fn storage(&self) -> &dyn Storage {
        &*self.storage
    }

    /// The name of a file in messages; see [`Storage::path`].
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.storage.path(name)
    }
}

fn bad(location: &str, why: &'static str) -> Error {
    Error::BadLocation { location: location.to_owned(), why }
}

/// The path of a `file` URL. `rest` is the text after `file://`.
fn file_path(url: &str, rest: &str) -> Result<PathBuf, Error> {
    let path = rest.strip_prefix("localhost").filter(|path| path.starts_with('/')).unwrap_or(rest);
    if !path.starts_with('/') {
        return Err(bad(url, "the path of a file URL starts with / (file:///path)"));
    }
    if path.contains(['?', '#']) {
        return Err(bad(url, "a file URL has no query and no fragment (? is %3F, # is %23)"));
    }
    let (mut decoded, mut bytes) = (Vec::new(), path.bytes());
    while let Some(byte) = bytes.next() {
        let mut digit = || bytes.next().and_then(|byte| char::from(byte).to_digit(16));
        decoded.push(if byte == b'%' {
            let pair = digit().zip(digit()).and_then(|(high, low)| u8::try_from(high << 4 | low).ok());
            pair.ok_or_else(|| bad(url, "a % is not followed by two hexadecimal digits"))?
        } else {
            byte
        });
    }
    let decoded = String::from_utf8(decoded).map_err(|_| bad(url, "the path is not UTF-8"))?;
    Ok(PathBuf::from(decoded))
}

#[cfg(feature = "remote")]
fn s3(url: &str, rest: &str) -> Result<Location, Error> {
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket.is_empty() {
        return Err(bad(url, "it names no bucket (s3://bucket/prefix)"));
    }
    Ok(Location { storage: Arc::new(crate::location::bucket::Bucket::open(bucket, prefix)?) })
}

#[cfg(not(feature = "remote"))]
fn s3(url: &str, _: &str) -> Result<Location, Error> {
    Err(Error::WithoutRemote { location: url.to_owned() })
}

impl FromStr for Location {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text)
    }
}

/// A path is always a directory, even if it looks like a URL.
impl From<PathBuf> for Location {
    fn from(path: PathBuf) -> Self {
        Self { storage: Arc::new(Directory(path)) }
    }
}

impl From<&PathBuf> for Location {
    fn from(path: &PathBuf) -> Self {
        path.clone().into()
    }
}

impl From<&Path> for Location {
    fn from(path: &Path) -> Self {
        path.to_owned().into()
    }
}

impl From<&Location> for Location {
    fn from(location: &Location) -> Self {
        location.clone()
    }
}

/// The location as a person writes it.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path("").display().fmt(f)
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Location({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_file_urls_are_directories() {
        for (text, path) in [
            ("store", "store"),
            ("/archive/a store", "/archive/a store"),
            ("./s3://x", "./s3://x"),
            ("c:/store", "c:/store"),
            ("file:///archive/a%20store", "/archive/a store"),
            ("file://localhost/%E2%82%AC", "/\u{20ac}"),
        ] {
            let location = Location::parse(text).unwrap();
            assert_eq!(location.directory(), Some(Path::new(path)), "{text}");
            assert_eq!(location.to_string(), path);
        }
    }

    #[test]
    fn other_locations_are_refused_with_the_reason() {
        let text = |location: &str| Location::parse(location).unwrap_err().to_string();
        assert_eq!(
            text("gs://bucket/x"),
            "gs://bucket/x: unknown scheme \"gs\"; expected a path, file:///path or s3://bucket/prefix"
        );
        for (wrong, why) in [
            ("", "it is empty"),
            ("file://store", "starts with /"),
            ("file://machine/store", "starts with /"),
            ("file:///store?x", "%3F"),
            ("file:///a%2", "hexadecimal"),
            ("file:///a%zz", "hexadecimal"),
            ("file:///a%ff", "UTF-8"),
        ] {
            let text = text(wrong);
            assert!(text.starts_with(wrong) && text.contains(why), "{text}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_path_that_is_no_text_is_a_directory() {
        use std::os::unix::ffi::OsStrExt;
        let path = OsStr::from_bytes(b"a\xff");
        assert_eq!(Location::parse(path).unwrap().directory(), Some(Path::new(path)));
    }

    #[cfg(not(feature = "remote"))]
    #[test]
    fn without_the_feature_an_s3_location_says_how_to_get_it() {
        let error = Location::parse("s3://bucket/x").unwrap_err();
        assert!(matches!(error, Error::WithoutRemote { .. }));
        let text = error.to_string();
        assert!(text.starts_with("s3://bucket/x: ") && text.contains("--features remote"), "{text}");
    }

    #[cfg(feature = "remote")]
    #[test]
    fn with_the_feature_an_s3_location_is_a_bucket_and_a_prefix() {
        for (text, shown) in
            [("s3://bucket", "s3://bucket"), ("s3://bucket/", "s3://bucket"), ("s3://bucket/a/b/", "s3://bucket/a/b")]
        {
            let location = Location::parse(text).unwrap();
            assert_eq!((location.to_string().as_str(), location.directory()), (shown, None));
        }
        for wrong in ["s3://", "s3:///x", "s3://bucket/a//b", "s3://bucket/../b"] {
            assert!(matches!(Location::parse(wrong), Err(Error::BadLocation { .. })), "{wrong}");
        }
    }
}
