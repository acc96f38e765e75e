//! Sealed files: small JSON files of a store that no manifest names. The last line of each has its digest.
//!
//! ```text
//! STORE/overviews/000004.json     {"of":{"epoch":4, ...}, ...}
//!                                 {"digest":"0123456789abcdef0123456789abcdef"}
//! ```
//!
//! The digest is the XXH3-128 of the file's name in the store, a newline, and the bytes before the last line. So a
//! reader detects a changed byte, and a file in the place of another file. A reader of JSON values (jq) can still read
//! both lines. All files that manifests do not name and that the program reads again go through this module. Manifests
//! have the checksums of all files that they name. Memory: the file.

use crate::error::Error;
use crate::identity::Digest;
use crate::location::Location;

/// The text before the digest in the last line, and the text after it.
const SEAL: [&str; 2] = ["{\"digest\":\"", "\"}\n"];
const DIGITS: usize = 32;

/// The kinds of sealed files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sealed {
    /// Overviews of epochs; see [`crate::overview`].
    Overviews,
    /// The states of watches; see [`Notes`](crate::Notes).
    Watches,
}

impl Sealed {
    /// All kinds.
    pub const ALL: [Self; 2] = [Self::Overviews, Self::Watches];

    /// The directory in the store.
    pub(crate) const fn directory(self) -> &'static str {
        match self {
            Self::Overviews => "overviews",
            Self::Watches => "watches",
        }
    }

    /// The command that repairs a damaged file, for messages.
    fn remedy(self) -> &'static str {
        match self {
            Self::Overviews => "`webstrata overview STORE` makes it anew",
            Self::Watches => "`webstrata watch STORE NAME --forget` removes it; then start the watch again",
        }
    }

    /// The names in the store of all files of this kind, in order.
    pub(crate) fn names(self, store: &Location) -> Result<Vec<String>, Error> {
        let mut names = store.storage().names(self.directory())?;
        names.retain(|name| name.ends_with(".json"));
        names.sort_unstable();
        Ok(names.iter().map(|name| format!("{}/{name}", self.directory())).collect())
    }

    /// Reads a file of this kind and removes the seal; `None` if there is no such file.
    pub(crate) fn read(self, store: &Location, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let Some(mut bytes) = store.storage().read(name)? else { return Ok(None) };
        let length = open(name, &bytes).map_err(|flaw| self.damaged(store, name, flaw))?;
        bytes.truncate(length);
        Ok(Some(bytes))
    }

    /// Writes `json`, which must end with a newline, with its seal. Replaces an existing file.
    pub(crate) fn write(self, store: &Location, name: &str, json: &[u8]) -> Result<(), Error> {
        let [before, after] = SEAL;
        let seal = format!("{before}{}{after}", digest(name, json));
        store.storage().replace(name, &[json, seal.as_bytes()].concat())
    }

    /// The error for a damaged file.
    pub(crate) fn damaged(self, store: &Location, name: &str, flaw: impl Into<String>) -> Error {
        Error::Unsealed { path: store.path(name), flaw: flaw.into(), remedy: self.remedy() }
    }
}

fn digest(name: &str, json: &[u8]) -> Digest {
    Digest::of(&[name.as_bytes(), b"\n", json].concat())
}

/// Checks the seal, and returns the number of bytes before it.
fn open(name: &str, bytes: &[u8]) -> Result<usize, String> {
    let [before, after] = SEAL;
    let length = bytes.len().checked_sub(before.len() + DIGITS + after.len());
    let parts = length.and_then(|length| {
        let (json, seal) = bytes.split_at(length);
        let digits = seal.strip_prefix(before.as_bytes())?.strip_suffix(after.as_bytes())?;
        Some((json, std::str::from_utf8(digits).ok()?.parse::<Digest>().ok()?))
    });
    let Some((json, expected)) = parts else { return Err("it does not end with a digest".to_owned()) };
    let got = digest(name, json);
    if got == expected { Ok(json.len()) } else { Err(format!("digest {got}, expected {expected}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_change_breaks_the_seal() {
        let dir = tempfile::tempdir().unwrap();
        let (place, kind) = (Location::from(dir.path()), Sealed::Watches);
        let (name, json) = ("watches/top.json", b"{\"k\":17}\n");
        assert!(kind.read(&place, name).unwrap().is_none());
        kind.write(&place, name, json).unwrap();
        assert_eq!(kind.read(&place, name).unwrap().as_deref(), Some(&json[..]));
        assert_eq!(kind.names(&place).unwrap(), [name]);
        let path = dir.path().join(name);
        let sound = std::fs::read(&path).unwrap();
        let values = serde_json::Deserializer::from_slice(&sound).into_iter::<serde_json::Value>();
        assert_eq!(values.map(Result::unwrap).count(), 2);
        let refused = |bytes: &[u8], name: &str| {
            std::fs::write(dir.path().join(name), bytes).unwrap();
            let error = kind.read(&place, name).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("--forget"), "{error}");
        };
        for at in 0..sound.len() {
            refused(&sound[..at], name);
            let mut other = sound.clone();
            other[at] ^= 1;
            refused(&other, name);
        }
        // A file in the place of another one.
        refused(&sound, "watches/hosts.json");
    }
}
