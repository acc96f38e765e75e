//! Huffman codes for numbers without a bound. A number below the last symbol is a symbol. The last symbol is an escape,
//! which is followed by a nybble code of the number less the last symbol.

use super::nybble;
use webstrata_cells::Damage;
use webstrata_cells::coding::bits::{BitReader, BitWriter};
use webstrata_cells::coding::huffman::{Code, Decoder};

/// The number of times that each symbol occurs.
#[derive(Clone, Debug)]
pub(super) struct Counts(Vec<u64>);

impl Counts {
    /// Counts of `symbols` symbols, all 0.
    pub(super) fn new(symbols: usize) -> Self {
        Self(vec![0; symbols])
    }

    /// A guess before counts are known: each symbol occurs, and small ones far more often.
    pub(super) fn guess(symbols: usize) -> Self {
        Self((1..=symbols as u64).map(|at| 1 + (1 << 30) / (at * at)).collect())
    }

    /// Counts a number.
    pub(super) fn add(&mut self, value: u64) {
        let last = self.0.len() - 1;
        self.0[usize::try_from(value).map_or(last, |value| value.min(last))] += 1;
    }

    /// The optimal code.
    pub(super) fn fit(&self, bits_max: u32) -> Escaped {
        Escaped { code: Code::fit(&self.0, bits_max), last: self.0.len() - 1 }
    }

    /// The optimal code without an escape, if all numbers are symbols.
    pub(super) fn fit_plain(&self, bits_max: u32) -> Escaped {
        Escaped { code: Code::fit(&self.0, bits_max), last: usize::MAX }
    }
}

/// A code for writing.
#[derive(Clone, Debug)]
pub(super) struct Escaped {
    code: Code,
    /// The escape; `usize::MAX` if there is none.
    last: usize,
}

impl Escaped {
    fn symbol(&self, value: u64) -> usize {
        usize::try_from(value).map_or(self.last, |value| value.min(self.last))
    }

    /// The bits of a number. A large value if its symbol was never counted.
    pub(super) fn bits(&self, value: u64) -> u32 {
        let symbol = self.symbol(value);
        let code_bits = if self.code.has(symbol) { self.code.bits(symbol) } else { 24 };
        if symbol == self.last { code_bits + nybble::bits(value - self.last as u64) } else { code_bits }
    }

    /// Writes a number whose symbol was counted.
    pub(super) fn write(&self, value: u64, out: &mut BitWriter) {
        let symbol = self.symbol(value);
        self.code.write(symbol, out);
        if symbol == self.last {
            nybble::write(value - self.last as u64, out);
        }
    }

    /// Writes the code itself.
    pub(super) fn store(&self, out: &mut BitWriter) {
        self.code.store(out);
    }
}

/// A code for reading.
#[derive(Clone, Debug)]
pub(super) struct EscapedDecoder {
    decoder: Decoder,
    last: usize,
}

impl EscapedDecoder {
    /// Reads the code that [`Escaped::store`] wrote, of at most `symbols` symbols.
    pub(super) fn load(stored: &mut BitReader<'_>, symbols: usize, bits_max: u32) -> Result<Self, Damage> {
        Ok(Self { decoder: Decoder::load(stored, symbols, bits_max)?, last: symbols - 1 })
    }

    /// Reads a code without an escape.
    pub(super) fn load_plain(stored: &mut BitReader<'_>, symbols: usize, bits_max: u32) -> Result<Self, Damage> {
        Ok(Self { decoder: Decoder::load(stored, symbols, bits_max)?, last: usize::MAX })
    }

    /// Reads the next number.
    #[inline]
    pub(super) fn read(&self, bits: &mut BitReader<'_>) -> u64 {
        let symbol = self.decoder.read(bits);
        if symbol == self.last { nybble::read(bits).saturating_add(symbol as u64) } else { symbol as u64 }
    }
}
