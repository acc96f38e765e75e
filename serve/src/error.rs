//! What can be wrong with the bytes of an image: small values, because they travel on the path of every answer.

/// An image does not hold what its form promises. Images carry checksums, so this means a file that was damaged after it
/// was verified, or one that no encoder wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// A part ends inside a value.
    #[error("{part} ends inside a value")]
    Ends {
        /// The part of the image.
        part: &'static str,
    },
    /// A value is outside what its place allows.
    #[error("{part}: {value} is outside its bound {bound}")]
    Outside {
        /// The part of the image.
        part: &'static str,
        /// The value found.
        value: u64,
        /// The largest value allowed, or the end of the allowed range.
        bound: u64,
    },
}

/// Lists that an encoding cannot hold.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// A UID is too large.
    #[error("UID {uid} is too large; {codec} holds UIDs below {bound}")]
    Wide {
        /// The encoding.
        codec: &'static str,
        /// The UID.
        uid: u64,
        /// The end of the allowed range.
        bound: u64,
    },
    /// A library that encodes failed.
    #[error("{codec} cannot encode the lists")]
    Library {
        /// The encoding.
        codec: &'static str,
        /// What it said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
