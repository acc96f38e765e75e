//! What can go wrong with a store: one error type, with the data to find the place.

use std::io;
use std::path::{Path, PathBuf};

use crate::record::page::Flaw;
use crate::record::presence::PresenceError;
use crate::record::uid::Uid;
use crate::store::identity::{Digest, EpochId};
use crate::store::manifest::{Counts, ManifestFlaw};

/// What can go wrong with a store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What answers in place of the layers, a cell for example, failed.
    #[error(transparent)]
    Elsewhere(Box<dyn std::error::Error + Send + Sync>),
    /// The operating system refused to read, write, sync, rename or lock.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file or directory; a URL for one in S3, as in all errors.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A layer file is not readable as Parquet, or could not be written as such.
    #[error("{path}: {source}", path = path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// What the Parquet library said.
        source: Box<parquet::errors::ParquetError>,
    },
    /// A writer was given a value that does not come after the one before it.
    #[error("{what} out of order: {got} after {previous}")]
    OutOfOrder {
        /// What is ordered: `UID` or `URL key of`.
        what: &'static str,
        /// The value before.
        previous: String,
        /// The value given.
        got: String,
    },
    /// A writer was given a record that breaks an invariant.
    #[error("record of UID {uid}: {flaw}")]
    BadRecord {
        /// The record.
        uid: Uid,
        /// The invariant.
        flaw: Flaw,
    },
    /// A writer was given a URL without text or without urlkey.
    #[error("UID {uid} has an empty URL or urlkey")]
    EmptyUrl {
        /// The URL's UID.
        uid: Uid,
    },
    /// The directory has no CURRENT file.
    #[error(
        "{path} is not a store ({}); `webstrata build --out STORE INPUT...` makes one",
        if matches!(path.try_exists(), Ok(false)) { "there is no such directory" } else { "it has no CURRENT file" },
        path = path.display()
    )]
    NotAStore {
        /// The directory.
        path: PathBuf,
    },
    /// A store is to be written where a file is.
    #[error("{path} is a file, and a store is a directory", path = path.display())]
    NotADirectory {
        /// The file.
        path: PathBuf,
    },
    /// A store is to be written inside another one.
    #[error(
        "{path} is inside the store {store}; choose a path outside the store",
        path = path.display(), store = store.display()
    )]
    InsideStore {
        /// Where it was to be.
        path: PathBuf,
        /// The store that is there.
        store: PathBuf,
    },
    /// A new store cannot be made in a directory that holds other things.
    #[error(
        "{path} is not empty and not a store: it contains {found:?}; choose another directory",
        path = path.display()
    )]
    NotEmpty {
        /// The directory.
        path: PathBuf,
        /// One of the things.
        found: String,
    },
    /// CURRENT names no epoch.
    #[error("{path} contains {text:?}; expected the number and the digest of an epoch", path = path.display())]
    BadCurrent {
        /// The CURRENT file.
        path: PathBuf,
        /// Its start.
        text: String,
    },
    /// A manifest is not the one that CURRENT, or the manifest of a later epoch, names.
    #[error(
        "{path} is damaged: digest {got}, expected {expected}; restore the file from a backup, \
         or build the store again",
        path = path.display()
    )]
    DamagedManifest {
        /// The manifest.
        path: PathBuf,
        /// What the store names.
        expected: Digest,
        /// That of the file.
        got: Digest,
    },
    /// A file that was opened before is another one now.
    #[error(
        "{path} was replaced while it was in use: the store was rebuilt, or files were copied over it; \
         start again with the present store",
        path = path.display()
    )]
    Exchanged {
        /// The file.
        path: PathBuf,
    },
    /// The store that the caller knows is gone, and another one is in its place.
    #[error(
        "{path} is another store now: epoch {} was {}, {}; start again with the new store",
        known.epoch, known.digest,
        found.map_or("and no longer exists".to_owned(), |found| format!("and is {}", found.digest)),
        path = path.display()
    )]
    Replaced {
        /// The store.
        path: PathBuf,
        /// The epoch that the caller knows.
        known: EpochId,
        /// The epoch of that number; `None` where there is none.
        found: Option<EpochId>,
    },
    /// CURRENT, or the caller, names an epoch that has no manifest.
    #[error("{path} has no epoch {epoch}", path = path.display())]
    MissingEpoch {
        /// The store.
        path: PathBuf,
        /// The epoch.
        epoch: u64,
    },
    /// The caller names an epoch that was removed after later ones had come.
    #[error("epoch {epoch} of {path} is retired; the current one is {current}", path = path.display())]
    RetiredEpoch {
        /// The store.
        path: PathBuf,
        /// The epoch asked.
        epoch: u64,
        /// The current one.
        current: u64,
    },
    /// Two epochs cannot be compared: all was built anew between them.
    #[error(
        "{path}: epoch {first} replaced everything that the store had (a build with --replace), so there is nothing \
         to compare between epoch {from} and later epochs; compare epochs from {first} on",
        path = path.display()
    )]
    ReplacedBetween {
        /// The store.
        path: PathBuf,
        /// The earlier epoch.
        from: u64,
        /// The epoch that was built anew.
        first: u64,
    },
    /// UIDs of an epoch cannot be translated: all was built anew since.
    #[error(
        "{path} cannot translate UIDs of epoch {from}: epoch {first} replaced the store and gave all URLs new UIDs",
        path = path.display()
    )]
    NoTranslation {
        /// The store.
        path: PathBuf,
        /// The epoch asked.
        from: u64,
        /// The first epoch whose UIDs can be translated.
        first: u64,
    },
    /// A manifest is not JSON, or not of the expected shape.
    #[error("{path}: {source}", path = path.display())]
    ManifestSyntax {
        /// The manifest.
        path: PathBuf,
        /// Where and what.
        source: serde_json::Error,
    },
    /// A small file beside the layers, an overview or a watch, is not as it was written.
    #[error("{path} is damaged: {flaw}; {remedy}", path = path.display())]
    Unsealed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        flaw: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A manifest contradicts itself.
    #[error("{path}: {flaw}", path = path.display())]
    BadManifest {
        /// The manifest.
        path: PathBuf,
        /// The contradiction.
        flaw: ManifestFlaw,
    },
    /// The store was written by a later version.
    #[error(
        "{path} has format {found}; this program reads formats up to {known}: install a newer version",
        path = path.display()
    )]
    NewerFormat {
        /// The manifest.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format known here.
        known: u32,
    },
    /// The store was written by an earlier version, whose format is no longer read.
    #[error(
        "{path} has format {found}; this program reads format {known}: build the store again",
        path = path.display()
    )]
    OlderFormat {
        /// The manifest.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The format known here.
        known: u32,
    },
    /// Another writer has the store open, or another process a note.
    #[error("{path} is locked by another writer{}", holder(owner, path, *outlives), path = path.display())]
    Locked {
        /// The lock.
        path: PathBuf,
        /// What the other writer says of itself.
        owner: String,
        /// Whether the lock stays when its writer is killed.
        outlives: bool,
    },
    /// The lock was removed or taken while this process worked.
    #[error("{path} is no longer held by this process{}", holder(owner, path, false), path = path.display())]
    LockLost {
        /// The lock.
        path: PathBuf,
        /// What its new holder says of itself; empty where there is none.
        owner: String,
    },
    /// The manifest of the next epoch is there already: another writer made it meanwhile.
    #[error(
        "{path} exists already: another writer has committed this epoch; run the command again",
        path = path.display()
    )]
    EpochTaken {
        /// The manifest.
        path: PathBuf,
    },
    /// A row is to be continued that an epoch has, or that was not kept when the store was opened.
    #[error("row {row} of {path} cannot be continued: {why}", path = path.display())]
    CannotResume {
        /// The store.
        path: PathBuf,
        /// The row.
        row: u32,
        /// Why not.
        why: &'static str,
    },
    /// A location is no path and no URL of a known form.
    #[error("{location}: unknown scheme {scheme:?}; expected a path, file:///path or s3://bucket/prefix")]
    UnknownScheme {
        /// As it was given.
        location: String,
        /// The scheme.
        scheme: String,
    },
    /// A location of a known scheme makes no sense.
    #[error("{location}: {why}")]
    BadLocation {
        /// As it was given.
        location: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A location in S3, and the program was built without it.
    #[error("{location}: this program was built without S3; build it with `cargo install --path jobs --features s3`")]
    WithoutS3 {
        /// As it was given.
        location: String,
    },
    /// A file has not the bytes that the manifest says it has.
    #[error("{path}: expected checksum {expected}, got {got}", path = path.display())]
    Checksum {
        /// The file.
        path: PathBuf,
        /// The manifest's.
        expected: String,
        /// The file's.
        got: String,
    },
    /// A file has not the size that the manifest says it has.
    #[error("{path}: expected {expected} bytes, got {got}", path = path.display())]
    Size {
        /// The file.
        path: PathBuf,
        /// The manifest's.
        expected: u64,
        /// The file's.
        got: u64,
    },
    /// A layer file has other columns or types than the format says.
    #[error("{path}: expected columns {expected}, got {got}", path = path.display())]
    Schema {
        /// The file.
        path: PathBuf,
        /// The format's.
        expected: String,
        /// The file's.
        got: String,
    },
    /// A record in a file breaks an invariant.
    #[error("{path}, row {row}: {damage}", path = path.display())]
    Damaged {
        /// The file (of the layers of a page: the one with the links).
        path: PathBuf,
        /// The row in the file.
        row: u64,
        /// The invariant.
        damage: Damage,
    },
    /// The UID names no URL of this epoch.
    #[error("unknown UID {uid}: epoch {epoch} has {urls} URLs")]
    UnknownUid {
        /// The UID.
        uid: Uid,
        /// The epoch asked.
        epoch: u64,
        /// How many URLs it has.
        urls: u64,
    },
    /// The counts of a row in the manifest are not those of its files.
    #[error("row {row}: the manifest has the counts {expected:?}, the files have {got:?}")]
    Counts {
        /// The row.
        row: u32,
        /// The manifest's.
        expected: Box<Counts>,
        /// The files'.
        got: Box<Counts>,
    },
    /// The in-link layers do not mirror the out-link layers.
    #[error("in-links do not mirror out-links: {in_links} triples of source, link and time range against {out_links}")]
    NotMirrored {
        /// Triples of the out side.
        out_links: u64,
        /// Triples of the in side.
        in_links: u64,
    },
}

/// What is wrong with a record read from a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// The record breaks an invariant of its type.
    #[error("{0}")]
    Record(#[from] Flaw),
    /// Presence changes do not decode.
    #[error("{0}")]
    Presence(#[from] PresenceError),
    /// UIDs do not rise.
    #[error("UID {got} after {previous}")]
    Order {
        /// The UID before.
        previous: u64,
        /// The UID found.
        got: u64,
    },
    /// UIDs of the url layer are not dense.
    #[error("UID {got} where {expected} is expected")]
    NotDense {
        /// The UID that comes next.
        expected: u64,
        /// The UID found.
        got: u64,
    },
    /// Layers that belong together have different UIDs, rows or row groups here.
    #[error("the layers are not aligned here")]
    NotAligned,
    /// Keys do not rise, or the first key of a partition is not the manifest's.
    #[error("the key of {got:?} does not come after that of {previous:?}")]
    Keys {
        /// The URL before.
        previous: String,
        /// The URL found.
        got: String,
    },
    /// Empty URL or urlkey.
    #[error("empty URL or urlkey")]
    EmptyUrl,
    /// A UID outside the URLs of the store, or of the partition.
    #[error("UID {uid} is outside {first}..{end}")]
    UidOutside {
        /// The UID.
        uid: Uid,
        /// First of the UIDs that may stand here.
        first: Uid,
        /// One past the last.
        end: Uid,
    },
    /// A required value is missing.
    #[error("a required value is null")]
    Null,
    /// A list of no unknown captures, or of no changes, that is empty and not null.
    #[error("an empty value where null is expected")]
    EmptyNotNull,
    /// The range start is not the start of a range of the manifest's length.
    #[error("time {0} is not the start of a range")]
    NotRangeStart(i64),
}

/// Who has a lock, and what to do about it.
fn holder(owner: &str, path: &Path, outlives: bool) -> String {
    let who = if owner.is_empty() { String::new() } else { format!(": {owner}") };
    let what = if outlives {
        format!("; if that job has died, remove {} and run the command again", path.display())
    } else {
        String::new()
    };
    who + &what
}

impl Error {
    /// Whether a file of the store is not as it was written: to ask again is of no use until somebody has mended it.
    pub fn is_damage(&self) -> bool {
        matches!(
            self,
            Self::Checksum { .. }
                | Self::Size { .. }
                | Self::Damaged { .. }
                | Self::DamagedManifest { .. }
                | Self::BadCurrent { .. }
                | Self::BadManifest { .. }
                | Self::ManifestSyntax { .. }
                | Self::Schema { .. }
                | Self::Parquet { .. }
                | Self::Unsealed { .. }
        )
    }

    /// For `map_err` after a call to the operating system.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Error + '_ {
        move |source| Error::Io { path: path.to_owned(), source }
    }

    /// For `map_err` after a call to the Parquet library; errors of the system under it come out as such.
    pub(crate) fn parquet(path: &Path) -> impl FnOnce(parquet::errors::ParquetError) -> Error + '_ {
        move |source| match source {
            parquet::errors::ParquetError::External(inner) => match inner.downcast::<io::Error>() {
                Ok(source) => Error::Io { path: path.to_owned(), source: *source },
                Err(inner) => Error::Parquet {
                    path: path.to_owned(),
                    source: Box::new(parquet::errors::ParquetError::External(inner)),
                },
            },
            source => Error::Parquet { path: path.to_owned(), source: Box::new(source) },
        }
    }

    /// For `map_err` after building or reading arrays.
    pub(crate) fn arrow(path: &Path) -> impl FnOnce(arrow_schema::ArrowError) -> Error + '_ {
        move |source| Error::parquet(path)(source.into())
    }
}
