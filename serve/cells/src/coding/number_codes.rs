//! Codes for kinds of numbers: each kind has a Huffman code that fits its numbers.
//!
//! A number is a symbol of the code of its kind and raw bits ([`crate::coding::magnitudes`]). `D` is the number of bits
//! of the largest numbers that are symbols themselves, and `KINDS` the number of kinds.

use super::bits::{BitReader, BitWriter};
use super::huffman::{BITS_MAX, Code, Decoder};
use super::magnitudes::{number_of, symbol_of, symbols};
use crate::error::Damage;

/// Codes for writing.
pub(crate) struct NumberCodes<const D: u32, const KINDS: usize>([Code; KINDS]);

impl<const D: u32, const KINDS: usize> NumberCodes<D, KINDS> {
    /// Fits codes to the numbers that `visit_all` calls its argument with: the kind of each, and the number.
    pub(crate) fn fit(visit_all: impl FnOnce(&mut dyn FnMut(usize, u64))) -> Self {
        let mut counts: [Vec<u64>; KINDS] = std::array::from_fn(|_| vec![0; symbols::<D>(64)]);
        visit_all(&mut |kind, number| counts[kind][symbol_of::<D>(number).0] += 1);
        Self(counts.map(|counts| {
            let used = counts.iter().rposition(|&count| count > 0).map_or(1, |last| last + 1);
            Code::fit(&counts[..used], BITS_MAX)
        }))
    }

    /// Writes the codes.
    pub(crate) fn store(&self, out: &mut BitWriter) {
        self.0.iter().for_each(|code| code.store(out));
    }

    /// Writes a number.
    pub(crate) fn write(&self, kind: usize, number: u64, out: &mut BitWriter) {
        let (symbol, raw) = symbol_of::<D>(number);
        self.0[kind].write(symbol, out);
        out.write_wide(number & ((1 << raw) - 1), raw);
    }
}

/// Codes for reading.
#[derive(Debug)]
pub(crate) struct NumberDecoders<const D: u32, const KINDS: usize>([Decoder; KINDS]);

impl<const D: u32, const KINDS: usize> Default for NumberDecoders<D, KINDS> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Decoder::default()))
    }
}

impl<const D: u32, const KINDS: usize> NumberDecoders<D, KINDS> {
    /// Reads the codes that [`NumberCodes::store`] wrote.
    ///
    /// # Errors
    /// Damaged bytes.
    pub(crate) fn load(bits: &mut BitReader<'_>) -> Result<Self, Damage> {
        let mut decoders = Self::default();
        for decoder in &mut decoders.0 {
            *decoder = Decoder::load(bits, symbols::<D>(64), BITS_MAX)?;
        }
        Ok(decoders)
    }

    /// Reads a number. It takes at least one bit.
    pub(crate) fn read(&self, kind: usize, bits: &mut BitReader<'_>) -> u64 {
        let (before, raw) = number_of::<D>(self.0[kind].read(bits));
        before << raw | bits.read_wide(raw)
    }
}
