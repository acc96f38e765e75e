//! Errors of cells. Errors in the bytes of an image are small values, because they are on the path of every answer.
//! Others are about files.

use std::io;
use std::path::PathBuf;

use webstrata_layers::Uid;

/// An encoding behind a feature that this binary was built without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this binary was built without the encoding {codec}; to add it: \
     cargo install --locked --path jobs --features {feature}"
)]
pub struct Absent {
    /// The encoding.
    pub codec: &'static str,
    /// The feature.
    pub feature: &'static str,
}

/// An image is not as its format requires. Images carry checksums, so the file was damaged after it was verified, or no
/// encoder wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// A part ends inside a value.
    #[error("{part} ends inside a value")]
    Ends {
        /// The part of the image.
        part: &'static str,
    },
    /// A value is outside the range that its place allows.
    #[error("{part}: {value} is outside its bound {bound}")]
    Outside {
        /// The part of the image.
        part: &'static str,
        /// The value found.
        value: u64,
        /// The largest value allowed, or the end of the allowed range.
        bound: u64,
    },
    /// A record breaks an invariant.
    #[error("{part}: {flaw}")]
    Record {
        /// The part of the image.
        part: &'static str,
        /// The invariant.
        flaw: webstrata_layers::Flaw,
    },
    /// A block of a mapped image has changed since it was opened.
    #[error("block {block} of the image has changed since it was opened")]
    Changed {
        /// The block, of 4 KiB.
        block: u64,
    },
    /// The disk does not return a block of a mapped image, or the file has become shorter.
    #[error("the system cannot read block {block} of the image")]
    Unreadable {
        /// The block, of 4 KiB. If many blocks are read at once, the first of them.
        block: u64,
    },
    /// The file of a mapped image is shorter than when it was opened.
    #[error("the image was cut off while it was in use")]
    Cut,
    /// This binary cannot tell whether the bytes are sound.
    #[error(transparent)]
    Absent(Absent),
}

/// Errors of cells and their files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused to read, write, rename or map.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A file that is not an image of a cell, or not a complete one.
    #[error("{path}: {what}; run `webstrata cells` to write the image again", path = path.display())]
    Image {
        /// The file.
        path: PathBuf,
        /// The flaw.
        what: &'static str,
    },
    /// An image of another version.
    #[error(
        "{path} has version {got}, expected {expected}; run `webstrata cells` to write the image again",
        path = path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// The version of the file.
        got: u32,
        /// The version that this crate reads.
        expected: u32,
    },
    /// Damaged bytes inside an image.
    #[error("{path}: {damage}", path = path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage.
        damage: Damage,
    },
    /// A cell that differs from the layers that it names.
    #[error(
        "{path}: the {part} differ from the layers; remove the file and run `webstrata cells`",
        path = path.display()
    )]
    Differs {
        /// The file.
        path: PathBuf,
        /// The part that differs: URLs, out-links, in-links or counts.
        part: &'static str,
    },
    /// A cell that was made from layers other than those of the store's epoch.
    #[error(
        "{path} was written from other layers; run `webstrata cells` to write the image again",
        path = path.display()
    )]
    OtherLayers {
        /// The file.
        path: PathBuf,
    },
    /// An image that was just written and differs from the layers. It was removed.
    #[error(
        "row {row}, partition {partition}: the cell does not read back as it was written, and was removed: {why}; \
         please report this defect; until it is fixed, use another encoding: `webstrata cells --codec csr`"
    )]
    ReadBack {
        /// The row.
        row: u32,
        /// The partition.
        partition: u32,
        /// The difference.
        why: Box<Error>,
    },
    /// An error of the store.
    #[error(transparent)]
    Layers(#[from] webstrata_layers::Error),
    /// URLs that cannot be encoded.
    #[error("URLs of the cell: {0}")]
    Urls(#[from] UrlsError),
    /// Links that the encoding cannot hold.
    #[error(transparent)]
    Links(#[from] EncodeError),
    /// A URL that links lead to or come from has no record in the same row.
    #[error(
        "row {row}, partition {partition}: the layers ol and il do not mirror each other at UID {uid}; \
         run `webstrata check` for details"
    )]
    Unmatched {
        /// The row.
        row: u32,
        /// The partition.
        partition: u32,
        /// The URL.
        uid: Uid,
    },
    /// A cell that is not held here. Another server has it.
    #[error("the cell of row {row}, partition {partition} is on another server")]
    NotHere {
        /// The row.
        row: u32,
        /// The partition.
        partition: u32,
    },
    /// A directory that cannot be a server's directory of cells.
    #[error("{path}: {what}", path = path.display())]
    Shelf {
        /// The directory.
        path: PathBuf,
        /// The reason, and what to do.
        what: &'static str,
    },
    /// The bytes that a peer sent are not the requested image.
    #[error(
        "the cell of row {row}, partition {partition}, received from another server: {what}; \
         fetch it from a third server, or write it from the layers"
    )]
    Received {
        /// The row.
        row: u32,
        /// The partition.
        partition: u32,
        /// The flaw.
        what: &'static str,
    },
    /// A store without a local directory in which images could be.
    #[error(
        "cells are written beside the layers in a local directory; {path} is not a local directory",
        path = path.display()
    )]
    NoDirectory {
        /// The store.
        path: PathBuf,
    },
}

/// A cell that a row does not hold. A small value, because it is on the path of every answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Away {
    pub(crate) row: u32,
    pub(crate) partition: u32,
}

impl From<Away> for Error {
    fn from(Away { row, partition }: Away) -> Self {
        Self::NotHere { row, partition }
    }
}

impl From<Away> for webstrata_layers::Error {
    #[cold]
    fn from(away: Away) -> Self {
        Self::Elsewhere(Box::new(Error::from(away)))
    }
}

/// Keys that cannot be encoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlsError {
    /// A key that is not above the one before it.
    #[error("keys out of order: {:?} after {:?}", got.escape_ascii().to_string(), previous.escape_ascii().to_string())]
    OutOfOrder {
        /// The key before.
        previous: Vec<u8>,
        /// The key that is not above it.
        got: Vec<u8>,
    },
    /// A key of more than 16 MiB.
    #[error("a key of {bytes} bytes is too long")]
    TooLong {
        /// The length of the key in bytes.
        bytes: usize,
    },
    /// A number of keys a block outside 4 to 64.
    #[error("{block} keys a block: only 4 to 64 can be")]
    Block {
        /// The number of keys a block that was requested.
        block: usize,
    },
    /// The second pass over the keys gave other keys than the first.
    #[error("the second pass over the keys gave other keys than the first")]
    Changed,
    /// More than 4 GiB in one part of the image.
    #[error("a part of the image would exceed 4 GiB")]
    Full,
}

/// Lists that an encoding cannot hold.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// A link is too large.
    #[error("link {link} is too large: {codec} holds numbers below {bound}; choose another encoding")]
    Wide {
        /// The encoding.
        codec: &'static str,
        /// The link.
        link: u64,
        /// The end of the allowed range.
        bound: u64,
    },
    /// An encoding library failed.
    #[error("{codec} cannot encode the lists")]
    Library {
        /// The encoding.
        codec: &'static str,
        /// The error of the library.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// This binary does not have the encoder.
    #[error(transparent)]
    Absent(#[from] Absent),
}
