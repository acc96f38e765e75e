//! Two columns of numbers at the start of a block. For each entry but the first, they hold how many bytes it shares
//! with the entry before, and the length of its stored rest. From the columns alone, a reader finds any entry and skips
//! most.
//!
//! ```text
//! 1 byte     w | v << 4: widths in bits of the two columns; 15 means 32
//! LEB128     least shared length
//! LEB128     length of the first entry's rest
//! w bits x (n - 1)   shared length, less the least
//! v bits x (n - 1)   length of the rest
//! ```
//!
//! Bits lie lowest first, without a gap between the columns, and the last byte is filled with zeros. Lengths are in
//! units of the data that follows (nibbles or bytes). Reading stays inside the bytes; beyond their end are zeros.

use crate::coding::bits::BitWriter;

/// The largest number of keys in a block.
pub(super) const BLOCK_MAX: usize = 64;
/// The width for values that need more bits than a half byte can say, and its code.
const WIDE: (u32, u8) = (32, 15);

/// The columns of one block, and the bytes from the start of the block on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Columns<'a> {
    pub(super) bytes: &'a [u8],
    /// The start of each column in bits, and its width.
    shared: (usize, u32),
    rest: (usize, u32),
    /// The least length that an entry shares.
    pub(super) shared_least: usize,
    /// The length of the first entry's rest.
    pub(super) first: usize,
    /// The offset of the byte after the columns.
    pub(super) end: usize,
}

impl<'a> Columns<'a> {
    /// Reads the header of a block of `entries` entries.
    #[inline]
    pub(super) fn read(bytes: &'a [u8], entries: usize) -> Self {
        let head = word(bytes, 0);
        let (w, v) = (width(head & 0xf), width(head >> 4 & 0xf));
        let ((shared_least, first), at) = if head & 0x80_8000 == 0 {
            (((head >> 8 & 0x7f) as usize, (head >> 16 & 0x7f) as usize), 3)
        } else {
            let (least, at) = leb128(bytes, 1);
            let (first, at) = leb128(bytes, at);
            ((least, first), at)
        };
        let shared = at * 8;
        let rest = shared + (entries - 1) * w as usize;
        let end = (rest + (entries - 1) * v as usize).div_ceil(8);
        Self { bytes, shared: (shared, w), rest: (rest, v), shared_least, first, end }
    }

    /// The number of bytes that entry `entry`, from 1, shares with the entry before.
    #[inline]
    pub(super) fn shared(&self, entry: usize) -> usize {
        self.shared_least + field(self.bytes, self.shared, entry - 1)
    }

    /// The length of the rest of entry `entry`, from 1.
    #[inline]
    pub(super) fn rest(&self, entry: usize) -> usize {
        field(self.bytes, self.rest, entry - 1)
    }
}

/// Writes the columns of a block, entry by entry (`shared`, `rest`); the first entry's `shared` is not written.
pub(super) fn write(entries: &[(usize, usize)], out: &mut Vec<u8>) {
    let (first, others) = entries.split_first().map_or((0, entries), |(first, others)| (first.1, others));
    let least = others.iter().map(|&(shared, _)| shared).min().unwrap_or(0);
    let (w, w_code) = width_for(others.iter().map(|&(shared, _)| shared - least).max());
    let (v, v_code) = width_for(others.iter().map(|&(_, rest)| rest).max());
    out.push(w_code | v_code << 4);
    write_leb128(least, out);
    write_leb128(first, out);
    let mut bits = BitWriter::default();
    others.iter().for_each(|&(shared, _)| bits.write((shared - least) as u64, w));
    others.iter().for_each(|&(_, rest)| bits.write(rest as u64, v));
    out.extend(bits.into_bytes());
}

/// The width for values up to `max`, and its code of half a byte.
pub(super) fn width_for(max: Option<usize>) -> (u32, u8) {
    let bits = usize::BITS - max.unwrap_or(0).leading_zeros();
    u8::try_from(bits).ok().filter(|&bits| bits < WIDE.1).map_or(WIDE, |code| (bits, code))
}

/// The width for a code of half a byte.
#[inline]
pub(super) fn width(code: u64) -> u32 {
    if code == u64::from(WIDE.1) { WIDE.0 } else { (code & 0xf) as u32 }
}

/// Value `index` of a column with this begin in bits and this width, at most 32.
#[inline]
pub(super) fn field(bytes: &[u8], (start, width): (usize, u32), index: usize) -> usize {
    let bit = start + index * width as usize;
    #[expect(clippy::cast_possible_truncation, reason = "the mask leaves at most 32 bits")]
    let value = (word(bytes, bit >> 3) >> (bit & 7) & ((1 << width) - 1)) as usize;
    value
}

/// The eight bytes from `at` on, with zeros beyond the end.
#[inline]
pub(super) fn word(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        Some(word) => u64::from_le_bytes(*word),
        None => word_at_end(bytes, at),
    }
}

#[cold]
fn word_at_end(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or_default();
    let mut word = [0; 8];
    word[..rest.len()].copy_from_slice(rest);
    u64::from_le_bytes(word)
}

/// A number of at most 32 bits in LEB128 from `at` on, and the offset after it.
#[inline]
pub(super) fn leb128(bytes: &[u8], mut at: usize) -> (usize, usize) {
    let mut value = 0;
    for shift in [0, 7, 14, 21, 28] {
        let byte = bytes.get(at).copied().unwrap_or(0);
        value |= usize::from(byte & 0x7f) << shift;
        at += 1;
        if byte < 0x80 {
            break;
        }
    }
    (value & 0xffff_ffff, at)
}

/// Writes a number below 2^32.
pub(super) fn write_leb128(mut value: usize, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(u8::try_from(value & 0x7f).unwrap_or(0) | 0x80);
        value >>= 7;
    }
    out.push(u8::try_from(value).unwrap_or(0));
}

/// At least seven nibbles from `nibble` on, lowest first, with zeros beyond the end.
#[inline]
pub(super) fn nibbles(bytes: &[u8], nibble: usize) -> u32 {
    let word = match bytes.get(nibble / 2..).and_then(|rest| rest.first_chunk()) {
        Some(word) => u32::from_le_bytes(*word),
        None => (word_at_end(bytes, nibble / 2) & 0xffff_ffff) as u32,
    };
    word >> (nibble % 2 * 4)
}
