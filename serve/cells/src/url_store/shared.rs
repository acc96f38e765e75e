//! The code of shared lengths.
//!
//! An entry shares about as much as the entry before. It therefore stores the change d of the shared length, as 2 d, or
//! as -2 d - 1 if d is below 0. A value is a symbol of a code of [`crate::coding::huffman`] and raw bits
//! ([`crate::coding::magnitudes`], with `D` = 5).

use super::KEY_BYTES_MAX;
use crate::coding::bits::{BitReader, BitWriter};
use crate::coding::huffman::{Code, Decoder};
use crate::coding::magnitudes::{number_of, symbol_of, symbols};
use crate::error::Damage;

/// Values of up to this many bits are symbols themselves.
const DIRECT_BITS: u32 = 5;
/// The number of symbols: a value has at most 26 bits.
const SYMBOLS: usize = symbols::<DIRECT_BITS>(26);
/// The longest code in bits. Its table takes 1 KiB in memory.
const BITS_MAX: u32 = 9;

/// The symbol of a change, and the bits that follow: their value and their number.
fn symbol(before: usize, shared: usize) -> (usize, u64, u32) {
    let value = if shared < before { 2 * (before - shared) - 1 } else { 2 * (shared - before) } as u64;
    let (symbol, raw) = symbol_of::<DIRECT_BITS>(value);
    (symbol, value & ((1 << raw) - 1), raw)
}

/// How often each symbol occurs.
#[derive(Debug)]
pub(super) struct Counts([u64; SYMBOLS]);

impl Counts {
    pub(super) fn new() -> Self {
        Self([0; SYMBOLS])
    }

    /// Counts an entry that shares `shared` bytes after one that shares `before` bytes.
    pub(super) fn add(&mut self, before: usize, shared: usize) {
        self.0[symbol(before, shared).0] += 1;
    }

    pub(super) fn fit(&self) -> Writer {
        Writer(Code::fit(&self.0, BITS_MAX))
    }
}

/// Writes shared lengths.
#[derive(Debug)]
pub(super) struct Writer(Code);

impl Writer {
    /// Writes the code itself.
    pub(super) fn store(&self, out: &mut BitWriter) {
        self.0.store(out);
    }

    /// Writes a shared length. Returns whether it has a code; if not, nothing is written.
    pub(super) fn write(&self, before: usize, shared: usize, out: &mut BitWriter) -> bool {
        let (symbol, more, bits) = symbol(before, shared);
        let is_known = self.0.has(symbol);
        if is_known {
            self.0.write(symbol, out);
            out.write(more, bits);
        }
        is_known
    }
}

/// Reads shared lengths.
#[derive(Clone, Debug)]
pub(super) struct Reader(Decoder);

impl Reader {
    /// Reads the code itself.
    ///
    /// # Errors
    /// Bytes that are no code.
    pub(super) fn load(bits: &mut BitReader<'_>) -> Result<Self, Damage> {
        Decoder::load(bits, SYMBOLS, BITS_MAX).map(Self)
    }

    /// The size in memory in bytes.
    pub(super) fn memory(&self) -> usize {
        self.0.memory()
    }

    /// The number of bytes that an entry shares after one that shares `before` bytes, and how many bits this takes, at
    /// most 33; `None` if no key has so many.
    #[inline]
    pub(super) fn look(&self, before: usize, bits: u64) -> (Option<usize>, u32) {
        let (symbol, length) = self.0.look(bits);
        let (value, more) = if symbol < 1 << DIRECT_BITS { (symbol, 0) } else { large(symbol, bits >> length) };
        // Without a branch, because the sign is hard to predict. A sum below 0 is above every length of a key.
        let shared = before.wrapping_add((value >> 1) ^ (value & 1).wrapping_neg());
        ((shared <= KEY_BYTES_MAX).then_some(shared), length + more)
    }
}

/// A value of more than five bits, and how many of its bits follow the code.
#[cold]
fn large(symbol: usize, bits: u64) -> (usize, u32) {
    let (value, raw) = number_of::<DIRECT_BITS>(symbol);
    (usize::try_from(value << raw | bits & ((1 << raw) - 1)).unwrap_or(0), raw)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn length() -> impl Strategy<Value = usize> {
        prop_oneof![0usize..40, 0usize..3000, 0usize..=KEY_BYTES_MAX, Just(KEY_BYTES_MAX)]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(lengths in proptest::collection::vec(length(), 1..50)) {
            let pairs = || std::iter::once(0).chain(lengths.iter().copied()).zip(lengths.iter().copied());
            let mut counts = Counts::new();
            pairs().for_each(|(before, shared)| counts.add(before, shared));
            let (writer, mut out) = (counts.fit(), BitWriter::default());
            writer.store(&mut out);
            prop_assert!(pairs().all(|(before, shared)| writer.write(before, shared, &mut out)));
            let bytes = out.into_bytes();
            let mut bits = BitReader::new(&bytes, 0);
            let reader = Reader::load(&mut bits).unwrap();
            for (before, shared) in pairs() {
                let (read, length) = reader.look(before, bits.peek());
                prop_assert_eq!(read, Some(shared));
                prop_assert!(length <= 33);
                bits.skip(length);
            }
            prop_assert!(!bits.overran());
        }
    }
}
