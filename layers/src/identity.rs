//! Identities by content: they distinguish epochs that have the same number.
//!
//! The identity of an epoch is its number and the digest of its manifest. The manifest has the digests of all earlier
//! epochs. A store that was removed and rebuilt, or restored from a backup and updated again, therefore gets other
//! identities. A store that was built from the same captures gets the same. `CURRENT` holds an identity as text: `7
//! 0123456789abcdef0123456789abcdef`.
//!
//! Digests have 128 bits (XXH3). They detect damage and mix-ups, but they do not protect against someone who forges a
//! store.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

/// The digest of some content, in 128 bits; as text 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(u128);

impl Digest {
    /// The digest of bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(xxh3_128(bytes))
    }

    /// The digest of texts, one after the other.
    pub(crate) fn of_all(texts: impl Iterator<Item = String>) -> Self {
        let mut hash = Xxh3::new();
        texts.for_each(|text| hash.update(text.as_bytes()));
        Self(hash.digest128())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The error for a text that is not a digest, or not the identity of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an identity: expected 32 hexadecimal digits in lower case, after a number for that of an epoch")]
pub struct NotAnIdentity;

impl FromStr for Digest {
    type Err = NotAnIdentity;

    fn from_str(text: &str) -> Result<Self, NotAnIdentity> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let digits = (text.len() == 32 && text.bytes().all(is_digit)).then_some(text);
        digits.and_then(|digits| u128::from_str_radix(digits, 16).ok()).map(Self).ok_or(NotAnIdentity)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'a> Deserialize<'a> for Digest {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The identity of an epoch, which tells it from the epochs of other stores.
///
/// ```
/// use webstrata_layers::EpochId;
///
/// // The text of `CURRENT`.
/// let text = "7 0123456789abcdef0123456789abcdef";
/// let id: EpochId = text.parse()?;
/// assert_eq!((id.epoch, id.to_string().as_str()), (7, text));
/// # Ok::<(), webstrata_layers::NotAnIdentity>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct EpochId {
    /// The number of the epoch.
    pub epoch: u64,
    /// The digest of the bytes of its manifest.
    #[schemars(with = "String")]
    pub digest: Digest,
}

impl fmt::Display for EpochId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.epoch, self.digest)
    }
}

impl FromStr for EpochId {
    type Err = NotAnIdentity;

    fn from_str(text: &str) -> Result<Self, NotAnIdentity> {
        let (epoch, digest) = text.split_once(' ').ok_or(NotAnIdentity)?;
        let is_number = epoch.bytes().all(|byte| byte.is_ascii_digit());
        let epoch = epoch.parse().ok().filter(|_| is_number).ok_or(NotAnIdentity)?;
        Ok(Self { epoch, digest: digest.parse()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_come_back_from_their_text() {
        let id = EpochId { epoch: 7, digest: Digest::of(b"a manifest") };
        assert_eq!(id.to_string().parse(), Ok(id));
        let json = serde_json::to_string(&id).unwrap();
        assert_eq!(serde_json::from_str::<EpochId>(&json).unwrap(), id);
    }

    #[test]
    fn what_is_not_written_so_is_no_identity() {
        let digest = Digest::of(b"");
        for text in ["", "7", "7 ", &format!("+7 {digest}"), &format!(" 7 {digest}"), &format!("7  {digest}")] {
            assert_eq!(text.parse::<EpochId>(), Err(NotAnIdentity), "{text:?}");
        }
        for text in
            [&digest.to_string()[1..], &format!("{digest}0"), &digest.to_string().to_uppercase(), &"+".repeat(32)]
        {
            assert_eq!(text.parse::<Digest>(), Err(NotAnIdentity), "{text:?}");
        }
    }
}
