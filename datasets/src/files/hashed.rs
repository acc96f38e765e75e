//! The digest of an input, made while the input is read: XXH3-128 of the bytes of the file, compressed or not. The
//! program `xxhsum -H2` prints the same digest for a file.
//!
//! Cost: some gigabytes a second. A source that is not read to its end has no digest.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use xxhash_rust::xxh3::Xxh3;

use crate::files::source::Source;

/// The digest and the size of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputDigest {
    /// The XXH3-128 of all bytes.
    pub xxh3: u128,
    /// The number of bytes.
    pub bytes: u64,
}

/// The digest of an input, once the input was read to its end.
pub type DigestCell = Arc<OnceLock<InputDigest>>;

/// A source of bytes that computes its digest.
pub(crate) struct Hashed<R> {
    source: R,
    hasher: Box<Xxh3>,
    bytes: u64,
    digest: DigestCell,
}

impl<R: Read> Hashed<R> {
    pub(crate) fn new(source: R, digest: DigestCell) -> Self {
        Self { source, hasher: Box::new(Xxh3::new()), bytes: 0, digest }
    }
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.hasher.update(&buffer[..count]);
        self.bytes += count as u64;
        if count == 0 && !buffer.is_empty() {
            self.digest.get_or_init(|| InputDigest { xxh3: self.hasher.digest128(), bytes: self.bytes });
        }
        Ok(count)
    }
}

/// The digest of a part of an input.
pub(crate) fn digest_of(source: &Source, part: Range<u64>) -> io::Result<InputDigest> {
    let digest = DigestCell::default();
    let mut source = Hashed::new(source.reader(part)?, Arc::clone(&digest));
    let mut buffer = vec![0; 256 << 10];
    while source.read(&mut buffer)? > 0 {}
    digest.get().copied().ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use xxhash_rust::xxh3::xxh3_128;

    #[test]
    fn a_digest_is_of_all_bytes_or_absent() {
        let bytes: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
        let digest = DigestCell::default();
        let mut source = Hashed::new(&bytes[..], Arc::clone(&digest));
        source.read_exact(&mut vec![0; bytes.len()]).unwrap();
        assert_eq!(digest.get(), None, "nobody has seen the end");
        assert_eq!(source.read(&mut [0; 8]).unwrap(), 0);
        let whole = InputDigest { xxh3: xxh3_128(&bytes), bytes: bytes.len() as u64 };
        assert_eq!(digest.get(), Some(&whole));
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, &bytes).unwrap();
        let source = Source::of_file(file).unwrap();
        assert_eq!(digest_of(&source, 0..bytes.len() as u64).unwrap(), whole);
        let part = digest_of(&source, 1000..5000).unwrap();
        assert_eq!(part, InputDigest { xxh3: xxh3_128(&bytes[1000..5000]), bytes: 4000 });
    }
}
