//! Bits in bytes: the lowest bit of a byte comes first. [`BitWriter`] appends. [`BitReader`] reads from any bit and
//! stays inside its bytes: beyond the end it reads zeros, and [`BitReader::overran`] returns true.

/// Appends bits to bytes.
///
/// ```
/// use webstrata_cells::coding::bits::{BitReader, BitWriter};
///
/// let mut out = BitWriter::default();
/// out.write(5, 3);
/// out.write_sized(1000);
/// assert_eq!(out.len(), 3 + 6 + 10);
/// let bytes = out.into_bytes();
/// let mut bits = BitReader::new(&bytes, 0);
/// assert_eq!((bits.read(3), bits.read_sized(), bits.overran()), (5, 1000, false));
/// ```
#[derive(Clone, Debug, Default)]
pub struct BitWriter {
    bytes: Vec<u8>,
    /// Bits not yet in `bytes`, the first lowest.
    held: u64,
    /// The number of bits in `held`; below 8 between calls.
    count: u32,
}

impl BitWriter {
    /// The number of bits written so far.
    pub fn len(&self) -> u64 {
        self.bytes.len() as u64 * 8 + u64::from(self.count)
    }

    /// Whether no bits were written.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends the `count` low bits of `value` (at most 56). The other bits must be 0.
    pub fn write(&mut self, value: u64, count: u32) {
        debug_assert!(count <= 56 && (value >> count) == 0, "{value} in {count} bits");
        self.held |= value << self.count;
        self.count += count;
        while self.count >= 8 {
            self.bytes.push((self.held & 0xff) as u8);
            self.held >>= 8;
            self.count -= 8;
        }
    }

    /// Appends the `count` low bits of `value` (at most 64).
    pub fn write_wide(&mut self, value: u64, count: u32) {
        let low = count.min(32);
        self.write(value & ((1u64 << low) - 1), low);
        if count > 32 {
            self.write(value >> 32, count - 32);
        }
    }

    /// Appends a number after its width: 6 bits for the number of bits less 1, then those bits.
    pub fn write_sized(&mut self, value: u64) {
        let bits = (64 - value.leading_zeros()).max(1);
        self.write(u64::from(bits - 1), 6);
        self.write_wide(value, bits);
    }

    /// Fills the last byte with zeros.
    pub fn align(&mut self) {
        if self.count > 0 {
            self.bytes.push((self.held & 0xff) as u8);
            self.held = 0;
            self.count = 0;
        }
    }

    /// The bytes, the last one filled with zeros.
    pub fn into_bytes(mut self) -> Vec<u8> {
        self.align();
        self.bytes
    }
}

/// Reads bits from bytes.
#[derive(Clone, Copy, Debug)]
pub struct BitReader<'a> {
    bytes: &'a [u8],
    /// The place of the next bit.
    at: u64,
}

impl<'a> BitReader<'a> {
    /// Starts at bit `at`.
    pub fn new(bytes: &'a [u8], at: u64) -> Self {
        Self { bytes, at }
    }

    /// The place of the next bit.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// Whether bits beyond the end were read.
    pub fn overran(&self) -> bool {
        self.at > self.bytes.len() as u64 * 8
    }

    /// The number of bits that are left.
    pub fn left(&self) -> u64 {
        (self.bytes.len() as u64 * 8).saturating_sub(self.at)
    }

    /// At least 56 bits from the next one on, with zeros beyond the end. Does not advance.
    #[inline]
    pub fn peek(&self) -> u64 {
        let byte = usize::try_from(self.at >> 3).unwrap_or(usize::MAX);
        let word = match self.bytes.get(byte..).and_then(|rest| rest.first_chunk::<8>()) {
            Some(word) => u64::from_le_bytes(*word),
            None => self.peek_end(byte),
        };
        word >> (self.at & 7)
    }

    #[cold]
    fn peek_end(&self, byte: usize) -> u64 {
        let mut word = [0; 8];
        let rest = self.bytes.get(byte..).unwrap_or_default();
        word[..rest.len()].copy_from_slice(rest);
        u64::from_le_bytes(word)
    }

    /// Skips `count` bits, usually after [`Self::peek`].
    #[inline]
    pub fn skip(&mut self, count: u32) {
        self.at += u64::from(count);
    }

    /// Reads `count` bits, at most 56.
    #[inline]
    pub fn read(&mut self, count: u32) -> u64 {
        let value = self.peek() & ((1u64 << count) - 1);
        self.skip(count);
        value
    }

    /// Reads a number that [`BitWriter::write_sized`] wrote.
    pub fn read_sized(&mut self) -> u64 {
        let bits = self.read(6);
        // Six bits fit in 32.
        self.read_wide(u32::try_from(bits).unwrap_or(0) + 1)
    }

    /// Reads `count` bits, at most 64.
    #[inline]
    pub fn read_wide(&mut self, count: u32) -> u64 {
        let low = self.read(count.min(32));
        if count > 32 { low | self.read(count - 32) << 32 } else { low }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(values in proptest::collection::vec((any::<u64>(), 0u32..=64), 0..100)) {
            let mask = |count: u32| u64::MAX.checked_shr(64 - count).unwrap_or(0);
            let values: Vec<_> = values.into_iter().map(|(value, count)| (value & mask(count), count)).collect();
            let mut writer = BitWriter::default();
            for &(value, count) in &values {
                writer.write_wide(value, count);
            }
            let bits = writer.len();
            let bytes = writer.into_bytes();
            let mut reader = BitReader::new(&bytes, 0);
            for &(value, count) in &values {
                prop_assert_eq!(reader.read_wide(count), value);
            }
            prop_assert_eq!(reader.position(), bits);
            prop_assert!(!reader.overran());
            reader.skip(64);
            prop_assert_eq!(reader.read(56), 0);
            prop_assert!(reader.overran());
        }
    }
}
