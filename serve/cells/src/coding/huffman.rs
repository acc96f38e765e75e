//! Canonical Huffman codes of bounded length, written lowest bit first, decoded by one table look-up.
//!
//! [`Code`] is fitted to counts (package-merge: Larmore & Hirschberg 1990) and writes symbols. Its lengths are stored
//! in the image, and [`Decoder::load`] rebuilds the table from them. A stored code is complete: each pattern of bits is
//! a symbol, so decoding cannot fail and takes at least one bit a symbol. Among codes of equal length, codes rise with
//! their symbols.

use crate::coding::bits::{BitReader, BitWriter};
use crate::error::Damage;

/// The longest code in bits that fits a table entry.
pub const BITS_MAX: u32 = 15;
/// The largest number of symbols of a code: an entry has 12 bits for the symbol.
pub const SYMBOLS_MAX: usize = 1 << 12;
const PART: &str = "Huffman code";

/// A code for writing.
///
/// ```
/// use webstrata_cells::coding::bits::{BitReader, BitWriter};
/// use webstrata_cells::coding::huffman::{BITS_MAX, Code, Decoder};
///
/// let code = Code::fit(&[90, 5, 0, 5], BITS_MAX);
/// assert_eq!((code.bits(0), code.bits(1), code.has(2)), (1, 2, false));
/// let mut out = BitWriter::default();
/// code.store(&mut out);
/// [3, 0, 0, 1].iter().for_each(|&symbol| code.write(symbol, &mut out));
/// let bytes = out.into_bytes();
/// let mut bits = BitReader::new(&bytes, 0);
/// let decoder = Decoder::load(&mut bits, 4, BITS_MAX)?;
/// assert_eq!([(); 4].map(|()| decoder.read(&mut bits)), [3, 0, 0, 1]);
/// # Ok::<(), webstrata_cells::Damage>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Code {
    /// The bits of each symbol's code; 0 if the symbol does not occur.
    lengths: Vec<u8>,
    /// The code of each symbol, the first bit lowest.
    codes: Vec<u16>,
}

impl Code {
    /// Fits the shortest code of at most `bits_max` bits to symbols that occur `counts` times. At least one symbol gets
    /// a code.
    ///
    /// Panics if `bits_max` bits cannot tell the symbols apart.
    pub fn fit(counts: &[u64], bits_max: u32) -> Self {
        assert!(bits_max <= BITS_MAX && counts.len() <= SYMBOLS_MAX && !counts.is_empty(), "a code out of bounds");
        let used = counts.iter().filter(|&&count| count > 0).count();
        let mut lengths = vec![0u8; counts.len()];
        match used {
            0 => lengths[0] = 1,
            1 => lengths.iter_mut().zip(counts).filter(|(_, count)| **count > 0).for_each(|(length, _)| *length = 1),
            _ => package_merge(counts, bits_max, &mut lengths),
        }
        let codes = canonical(&lengths);
        Self { lengths, codes }
    }

    /// The bits of a symbol's code; 0 if it has none.
    pub fn bits(&self, symbol: usize) -> u32 {
        u32::from(self.lengths[symbol])
    }

    /// Whether the symbol has a code.
    pub fn has(&self, symbol: usize) -> bool {
        self.lengths.get(symbol).is_some_and(|&length| length > 0)
    }

    /// Writes a symbol that has a code.
    pub fn write(&self, symbol: usize, out: &mut BitWriter) {
        debug_assert!(self.has(symbol), "symbol {symbol} has no code");
        out.write(u64::from(self.codes[symbol]), u32::from(self.lengths[symbol]));
    }

    /// Writes the code itself: 13 bits for the number of symbols, then the length of each symbol's code in 4 bits. A
    /// length of 0 is followed by 4 bits, and means 1 to 16 symbols without a code: the 4 bits hold their number less
    /// 1.
    pub fn store(&self, out: &mut BitWriter) {
        out.write(self.lengths.len() as u64, 13);
        let mut at = 0;
        while at < self.lengths.len() {
            let length = self.lengths[at];
            out.write(u64::from(length), 4);
            at += 1;
            if length == 0 {
                let run = self.lengths[at..].iter().take(15).take_while(|&&next| next == 0).count();
                out.write(run as u64, 4);
                at += run;
            }
        }
    }
}

/// The lengths of an optimal code in which no length exceeds `bits_max`. At least two counts are not 0.
fn package_merge(counts: &[u64], bits_max: u32, lengths: &mut [u8]) {
    let mut leaves: Vec<(u64, usize)> =
        counts.iter().enumerate().filter(|(_, count)| **count > 0).map(|(symbol, &count)| (count, symbol)).collect();
    leaves.sort_unstable();
    assert!(leaves.len() <= 1 << bits_max, "{} symbols in {bits_max} bits", leaves.len());
    // Each level has items by weight: leaves, and pairs of the level below.
    let mut levels: Vec<Vec<(u64, Option<usize>)>> = Vec::new();
    for _ in 0..bits_max {
        let pairs = levels.last().map_or(&[][..], |below| below.as_slice()).chunks_exact(2);
        let pairs = pairs.map(|pair| (pair[0].0.saturating_add(pair[1].0), None));
        let leaf_items = leaves.iter().map(|&(count, symbol)| (count, Some(symbol)));
        let mut items: Vec<_> = leaf_items.chain(pairs).collect();
        items.sort_by_key(|&(weight, _)| weight);
        levels.push(items);
    }
    // The 2n - 2 lightest items of the top level are taken. Each pair taken means two items of the level below.
    let mut taken = 2 * leaves.len() - 2;
    for level in levels.iter().rev() {
        let mut pairs = 0;
        for &(_, symbol) in level.iter().take(taken) {
            match symbol {
                Some(symbol) => lengths[symbol] += 1,
                None => pairs += 1,
            }
        }
        taken = 2 * pairs;
    }
}

/// The codes by length, then by symbol, each with its first bit lowest.
fn canonical(lengths: &[u8]) -> Vec<u16> {
    let mut order: Vec<usize> = (0..lengths.len()).filter(|&symbol| lengths[symbol] > 0).collect();
    order.sort_by_key(|&symbol| (lengths[symbol], symbol));
    let mut codes = vec![0; lengths.len()];
    let (mut next, mut length_before) = (0u32, 0);
    for symbol in order {
        let length = lengths[symbol];
        next <<= length - length_before;
        length_before = length;
        codes[symbol] = u16::try_from(next.reverse_bits() >> (32 - u32::from(length))).unwrap_or(0);
        next += 1;
    }
    codes
}

/// A code for reading.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    /// For each pattern of `bits` bits: symbol << 4 | length.
    table: Vec<u16>,
    mask: u64,
}

impl Decoder {
    /// Reads the code that [`Code::store`] wrote: a complete code of at most `bits_max` bits with at most `symbols_max`
    /// symbols.
    ///
    /// # Errors
    /// Any other code.
    pub fn load(stored: &mut BitReader<'_>, symbols_max: usize, bits_max: u32) -> Result<Self, Damage> {
        let outside = |value: u64, bound: u64| Damage::Outside { part: PART, value, bound };
        let count = stored.read(13);
        let symbols = usize::try_from(count).unwrap_or(usize::MAX);
        if symbols == 0 || symbols > symbols_max.min(SYMBOLS_MAX) {
            return Err(outside(count, symbols_max as u64));
        }
        let mut lengths = Vec::with_capacity(symbols + 16);
        while lengths.len() < symbols {
            let length = u8::try_from(stored.read(4)).unwrap_or(0);
            let run = if length == 0 { usize::try_from(stored.read(4)).unwrap_or(0) + 1 } else { 1 };
            lengths.resize(lengths.len() + run, length);
        }
        if stored.overran() {
            return Err(Damage::Ends { part: PART });
        }
        let bits = lengths.iter().copied().max().map_or(0, u32::from);
        if lengths.len() != symbols || bits > bits_max.min(BITS_MAX) {
            return Err(outside(u64::from(bits), u64::from(bits_max)));
        }
        let used = lengths.iter().filter(|&&length| length > 0).count();
        let filled: u64 =
            lengths.iter().filter(|&&length| length > 0).map(|&length| 1u64 << (bits - u32::from(length))).sum();
        // A single symbol has a code of one bit, and the other pattern also means that symbol.
        if bits == 0 || (filled != 1 << bits && !(used == 1 && bits == 1)) {
            return Err(outside(filled, 1 << bits));
        }
        let codes = canonical(&lengths);
        let mut table = vec![0u16; 1 << bits];
        for (symbol, &length) in (0u16..).zip(&lengths).filter(|(_, length)| **length > 0) {
            let step = if used == 1 { 1 } else { 1usize << length };
            let mut at = if used == 1 { 0 } else { usize::from(codes[usize::from(symbol)]) };
            while at < table.len() {
                table[at] = symbol << 4 | u16::from(length);
                at += step;
            }
        }
        Ok(Self { table, mask: (1 << bits) - 1 })
    }

    /// The size in memory in bytes.
    pub fn memory(&self) -> usize {
        self.table.len() * size_of::<u16>()
    }

    /// Reads the next symbol.
    #[inline]
    pub fn read(&self, bits: &mut BitReader<'_>) -> usize {
        let (symbol, length) = self.look(bits.peek());
        bits.skip(length);
        symbol
    }

    /// The first symbol of `bits`, and the length of its code.
    #[inline]
    pub fn look(&self, bits: u64) -> (usize, u32) {
        #[expect(clippy::cast_possible_truncation, reason = "the mask keeps the index inside the table")]
        let entry = self.table[(bits & self.mask) as usize];
        (usize::from(entry >> 4), u32::from(entry & 15))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn load(code: &Code) -> Decoder {
        let mut stored = BitWriter::default();
        code.store(&mut stored);
        let length = stored.len();
        let bytes = stored.into_bytes();
        let mut reader = BitReader::new(&bytes, 0);
        let decoder = Decoder::load(&mut reader, SYMBOLS_MAX, BITS_MAX).unwrap();
        assert_eq!(reader.position(), length);
        decoder
    }

    #[test]
    fn the_code_of_fibonacci_counts_is_as_long_as_allowed_and_optimal() {
        let counts = [1, 1, 2, 3, 5, 8, 13, 21];
        let cost = |code: &Code| -> u64 { (0..8).map(|at| counts[at] * u64::from(code.bits(at))).sum() };
        let free = Code::fit(&counts, 15);
        assert_eq!((0..8).map(|at| free.bits(at)).max(), Some(7));
        // The sum of all merges of Huffman's algorithm: 2 + 4 + 7 + 12 + 20 + 33 + 54.
        assert_eq!(cost(&free), 132);
        let bound = Code::fit(&counts, 4);
        assert_eq!((0..8).map(|at| bound.bits(at)).max(), Some(4));
        assert!(cost(&bound) > 132 && cost(&bound) < 3 * 54);
    }

    #[test]
    fn a_damaged_code_is_an_error() {
        let mut stored = BitWriter::default();
        // Three symbols of two bits leave a pattern without a symbol.
        stored.write(3, 13);
        (0..3).for_each(|_| stored.write(2, 4));
        let bytes = stored.into_bytes();
        assert!(Decoder::load(&mut BitReader::new(&bytes, 0), 10, 15).is_err());
        assert!(Decoder::load(&mut BitReader::new(&[], 0), 10, 15).is_err());
    }

    proptest! {
        #[test]
        fn symbols_come_back(
            counts in proptest::collection::vec(prop_oneof![Just(0u64), 1u64..1000], 1..300), seed: u64
        ) {
            let code = Code::fit(&counts, 11);
            let decoder = load(&code);
            let symbols: Vec<usize> = (0..counts.len()).filter(|&symbol| code.has(symbol)).collect();
            let pick = |at: u64| (seed ^ at.wrapping_mul(0x9e37_79b9_7f4a_7c15)) % symbols.len() as u64;
            let picks: Vec<usize> = (0..50u64).map(|at| symbols[usize::try_from(pick(at)).unwrap()]).collect();
            let mut writer = BitWriter::default();
            picks.iter().for_each(|&symbol| code.write(symbol, &mut writer));
            let bytes = writer.into_bytes();
            let mut reader = BitReader::new(&bytes, 0);
            for &symbol in &picks {
                prop_assert_eq!(decoder.read(&mut reader), symbol);
            }
        }
    }
}
