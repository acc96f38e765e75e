//! The errors of a store: one error type, with the data to find the place.

pub(crate) mod manifest;

use std::io;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;

use crate::error::manifest::ManifestFlaw;
use crate::identity::{Digest, EpochId};
use crate::record::page::Flaw;
use crate::record::page::counts::Counts;
use crate::record::presence::PresenceError;
use crate::record::uid::Uid;

/// The errors of a store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A source of answers other than the layers failed, for example a cell.
    #[error(transparent)]
    Elsewhere(Box<dyn std::error::Error + Send + Sync>),
    /// The operating system refused to read, write, sync, rename or lock.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file or directory. In S3, this is a URL, as in all errors.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A layer file is not readable as Parquet, or could not be written as Parquet.
    #[error("{path}: {source}", path = path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// The error of the Parquet library.
        source: Box<ParquetError>,
    },
    /// A writer got a value that does not come after the value before.
    #[error("{what} out of order: {got} after {previous}")]
    OutOfOrder {
        /// The values that are ordered: `UID` or `URL key of`.
        what: &'static str,
        /// The value before.
        previous: String,
        /// The value that the writer got.
        got: String,
    },
    /// A writer got a record that breaks an invariant.
    #[error("record of UID {uid}: {flaw}")]
    BadRecord {
        /// The UID of the record.
        uid: Uid,
        /// The invariant.
        flaw: Flaw,
    },
    /// A writer got a URL without text or without urlkey.
    #[error("UID {uid} has an empty URL or urlkey")]
    EmptyUrl {
        /// The UID of the URL.
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
    /// A store cannot be written to a path where a file is.
    #[error("{path} is a file, and a store is a directory", path = path.display())]
    NotADirectory {
        /// The file.
        path: PathBuf,
    },
    /// A store cannot be written inside another store.
    #[error(
        "{path} is inside the store {store}; choose a path outside the store",
        path = path.display(), store = store.display()
    )]
    InsideStore {
        /// The path for the new store.
        path: PathBuf,
        /// The store that contains the path.
        store: PathBuf,
    },
    /// A new store cannot be made in a directory that holds other files.
    #[error(
        "{path} is not empty and not a store: it contains {found:?}; choose another directory",
        path = path.display()
    )]
    NotEmpty {
        /// The directory.
        path: PathBuf,
        /// The name of one of these files.
        found: String,
    },
    /// CURRENT does not name an epoch.
    #[error("{path} contains {text:?}; expected the number and the digest of an epoch", path = path.display())]
    BadCurrent {
        /// The CURRENT file.
        path: PathBuf,
        /// The first bytes of the file.
        text: String,
    },
    /// A manifest differs from the one that CURRENT, or the manifest of a later epoch, names.
    #[error(
        "{path} is damaged: digest {got}, expected {expected}; restore the file from a backup, \
         or build the store again",
        path = path.display()
    )]
    DamagedManifest {
        /// The manifest.
        path: PathBuf,
        /// The digest that the store names.
        expected: Digest,
        /// The digest of the file.
        got: Digest,
    },
    /// A file was replaced by another one after it was opened.
    #[error(
        "{path} was replaced while it was in use: the store was rebuilt, or files were copied over it; \
         start again with the present store",
        path = path.display()
    )]
    Exchanged {
        /// The file.
        path: PathBuf,
    },
    /// Another store is in the place of the store that the caller knows.
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
        /// The epoch with this number in the store that is there now; `None` if there is no such epoch.
        found: Option<EpochId>,
    },
    /// CURRENT or the caller names an epoch that has no manifest.
    #[error("{path} has no epoch {epoch}", path = path.display())]
    MissingEpoch {
        /// The store.
        path: PathBuf,
        /// The epoch.
        epoch: u64,
    },
    /// The caller names an epoch that is retired: it was removed, or a later epoch took something out.
    #[error("epoch {epoch} of {path} is retired; the current one is {current}", path = path.display())]
    RetiredEpoch {
        /// The store.
        path: PathBuf,
        /// The epoch that the caller asked for.
        epoch: u64,
        /// The current epoch.
        current: u64,
    },
    /// Two epochs cannot be compared: the store was built from scratch between them.
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
        /// The epoch that was built from scratch.
        first: u64,
    },
    /// UIDs of an epoch cannot be translated: the store was built from scratch since then.
    #[error(
        "{path} cannot translate UIDs of epoch {from}: epoch {first} replaced the store and gave all URLs new UIDs",
        path = path.display()
    )]
    NoTranslation {
        /// The store.
        path: PathBuf,
        /// The epoch that the caller asked for.
        from: u64,
        /// The first epoch whose UIDs can be translated.
        first: u64,
    },
    /// A manifest is not JSON, or has other fields or types than expected.
    #[error("{path}: {source}", path = path.display())]
    ManifestSyntax {
        /// The manifest.
        path: PathBuf,
        /// The error of the JSON parser, with its place.
        source: serde_json::Error,
    },
    /// A small file beside the layers (an overview or a watch) does not match its digest, or is not valid.
    #[error("{path} is damaged: {flaw}; {remedy}", path = path.display())]
    Unsealed {
        /// The file.
        path: PathBuf,
        /// The flaw of the file.
        flaw: String,
        /// The advice to the user.
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
        /// The format of the manifest.
        found: u32,
        /// The newest format that this program knows.
        known: u32,
    },
    /// The store was written by an earlier version, in a format that this program no longer reads.
    #[error(
        "{path} has format {found}; this program reads format {known}: build the store again",
        path = path.display()
    )]
    OlderFormat {
        /// The manifest.
        path: PathBuf,
        /// The format of the manifest.
        found: u32,
        /// The format that this program knows.
        known: u32,
    },
    /// Another writer has the store open, or another process holds the note.
    #[error("{path} is locked by another writer{}", holder(owner, path, *lease), path = path.display())]
    Locked {
        /// The lock.
        path: PathBuf,
        /// The text by which the other writer names itself.
        owner: String,
        /// How long the lock outlives a writer that is killed; `None` if it ends with the writer.
        lease: Option<std::time::Duration>,
    },
    /// The lock was removed or taken over while this process worked. Nothing was committed.
    #[error(
        "{path} is no longer held by this process{}; run the command again when no other writer is at work",
        holder(owner, path, None),
        path = path.display()
    )]
    LockLost {
        /// The lock.
        path: PathBuf,
        /// The text by which the new holder names itself; empty if there is no new holder.
        owner: String,
    },
    /// The server of a bucket writes objects although a condition does not hold, so it cannot keep two writers apart.
    #[error(
        "{path}: the server ignores {condition} when it writes an object, so another writer could destroy the store; \
         write to a server that supports conditional writes, or build in a directory and copy the store",
        path = path.display()
    )]
    Unconditional {
        /// The lock.
        path: PathBuf,
        /// The header that the server ignores.
        condition: &'static str,
    },
    /// The manifest of the next epoch exists already: another writer created it meanwhile.
    #[error(
        "{path} exists already: another writer has committed this epoch; run the command again",
        path = path.display()
    )]
    EpochTaken {
        /// The manifest.
        path: PathBuf,
    },
    /// A row cannot be continued: an epoch has it, or it was not kept when the store was opened.
    #[error("row {row} of {path} cannot be continued: {why}", path = path.display())]
    CannotResume {
        /// The store.
        path: PathBuf,
        /// The row.
        row: u32,
        /// The reason.
        why: &'static str,
    },
    /// A location is neither a path nor a URL of a known scheme.
    #[error("{location}: unknown scheme {scheme:?}; expected a path, file:///path or s3://bucket/prefix")]
    UnknownScheme {
        /// The location as given.
        location: String,
        /// The scheme.
        scheme: String,
    },
    /// A location has a known scheme but is not valid.
    #[error("{location}: {why}")]
    BadLocation {
        /// The location as given.
        location: String,
        /// The flaw of the location.
        why: &'static str,
    },
    /// The location is in S3, and the program was built without S3.
    #[error(
        "{location}: this program was built without S3; build it with `cargo install --path jobs --features remote`"
    )]
    WithoutRemote {
        /// The location as given.
        location: String,
    },
    /// The checksum of a file differs from the checksum in the manifest.
    #[error("{path}: expected checksum {expected}, got {got}", path = path.display())]
    Checksum {
        /// The file.
        path: PathBuf,
        /// The checksum in the manifest.
        expected: String,
        /// The checksum of the file.
        got: String,
    },
    /// The size of a file differs from the size in the manifest.
    #[error("{path}: expected {expected} bytes, got {got}", path = path.display())]
    Size {
        /// The file.
        path: PathBuf,
        /// The size in the manifest.
        expected: u64,
        /// The size of the file.
        got: u64,
    },
    /// A layer file has other columns or types than the format requires.
    #[error("{path}: expected columns {expected}, got {got}", path = path.display())]
    Schema {
        /// The file.
        path: PathBuf,
        /// The columns of the format.
        expected: String,
        /// The columns of the file.
        got: String,
    },
    /// A record in a file breaks an invariant.
    #[error("{path}, row {row}: {damage}", path = path.display())]
    Damaged {
        /// The file; of the layers of a page, the file with the links.
        path: PathBuf,
        /// The row in the file.
        row: u64,
        /// The invariant that is broken.
        damage: Damage,
    },
    /// The UID names no URL of this epoch.
    #[error("unknown UID {uid}: epoch {epoch} has {urls} URLs")]
    UnknownUid {
        /// The UID.
        uid: Uid,
        /// The epoch that the caller asked for.
        epoch: u64,
        /// The number of URLs of the epoch.
        urls: u64,
    },
    /// The counts of a row in the manifest differ from the counts of its files.
    #[error("row {row}: the manifest has the counts {expected:?}, the files have {got:?}")]
    Counts {
        /// The row.
        row: u32,
        /// The counts in the manifest.
        expected: Box<Counts>,
        /// The counts of the files.
        got: Box<Counts>,
    },
    /// The in-link layers do not mirror the out-link layers.
    #[error("in-links do not mirror out-links: {in_links} triples of source, link and time range against {out_links}")]
    NotMirrored {
        /// The number of triples in the out-link layers.
        out_links: u64,
        /// The number of triples in the in-link layers.
        in_links: u64,
    },
}

/// The flaws of a record that was read from a file.
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
        /// The UID that is expected.
        expected: u64,
        /// The UID found.
        got: u64,
    },
    /// Layers that belong together differ in UIDs, rows or row groups here.
    #[error("the layers are not aligned here")]
    NotAligned,
    /// Keys do not rise, or the first key of a partition differs from the first key in the manifest.
    #[error("the key of {got:?} does not come after that of {previous:?}")]
    Keys {
        /// The URL before.
        previous: String,
        /// The URL found.
        got: String,
    },
    /// A URL or urlkey is empty.
    #[error("empty URL or urlkey")]
    EmptyUrl,
    /// A UID is outside the URLs of the store, or of the partition.
    #[error("UID {uid} is outside {first}..{end}")]
    UidOutside {
        /// The UID.
        uid: Uid,
        /// The first UID that may be here.
        first: Uid,
        /// The UID after the last one that may be here.
        end: Uid,
    },
    /// A required value is missing.
    #[error("a required value is null")]
    Null,
    /// A list of captures or changes is empty and not null, or the reverse.
    #[error("an empty value where null is expected")]
    EmptyNotNull,
    /// A range does not start where a range of the manifest's length starts.
    #[error("time {0} is not the start of a range")]
    NotRangeStart(i64),
}

/// The holder of a lock and advice to the user, as the end of a message.
fn holder(owner: &str, path: &Path, lease: Option<std::time::Duration>) -> String {
    let who = if owner.is_empty() { String::new() } else { format!(": {owner}") };
    let what = lease.map(|lease| {
        format!(
            "; if that job has died, run the command again {} minutes after its end, or remove {} first",
            lease.as_secs() / 60,
            path.display()
        )
    });
    who + &what.unwrap_or_default()
}

impl Error {
    /// Whether the error means that a file of the store is damaged. A retry fails until somebody repairs the file.
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

    /// For `map_err` after a call to the Parquet library. Errors of the operating system below the library become
    /// [`Error::Io`].
    pub(crate) fn parquet(path: &Path) -> impl FnOnce(ParquetError) -> Error + '_ {
        move |source| match system_error(source) {
            Ok(source) => Error::Io { path: path.to_owned(), source },
            Err(source) => Error::Parquet { path: path.to_owned(), source: Box::new(source) },
        }
    }

    /// For `map_err` after building or reading arrays.
    pub(crate) fn arrow(path: &Path) -> impl FnOnce(arrow_schema::ArrowError) -> Error + '_ {
        move |source| Error::parquet(path)(source.into())
    }
}

/// Returns the error of the system that an error of Parquet holds, or else the error of Parquet.
///
/// # Errors
/// The error itself, if the system did not give it.
pub fn system_error(error: ParquetError) -> Result<io::Error, ParquetError> {
    match error {
        ParquetError::External(inner) => {
            inner.downcast::<io::Error>().map(|inner| *inner).map_err(ParquetError::External)
        }
        error => Err(error),
    }
}
