//! The nybble code (Randall et al., *The Link Database*, section 3.2). A number is cut into groups of 3 bits, the
//! lowest first. Each group is in a nybble above a stop bit, which is 1 in the last nybble. Numbers that may be
//! negative carry their sign in the lowest bit.
//!
//! 28 is the nybbles 1000 0111; as a signed number it is 0000 1111; -6 is 1010 0011. Any 64-bit number has a code, of
//! at most 22 nybbles.

use webstrata_cells::coding::bits::{BitReader, BitWriter};

/// The nybbles of the longest code.
const NYBBLES_MAX: u32 = 22;
/// The stop bits of the nybbles that one peek returns.
const STOPS: u64 = 0x0011_1111_1111_1111;

/// Puts the sign below the magnitude. Differences of 64-bit UIDs wrap around, so all 2^64 values occur. The one value
/// whose magnitude does not fit in 63 bits takes the place of the negative zero.
pub(super) fn fold(value: i64) -> u64 {
    value.unsigned_abs() << 1 | u64::from(value < 0)
}

/// The inverse of [`fold`].
pub(super) fn unfold(folded: u64) -> i64 {
    match folded {
        1 => i64::MIN,
        _ if folded & 1 == 1 => -((folded >> 1).cast_signed()),
        _ => (folded >> 1).cast_signed(),
    }
}

/// The number of bits of a number's code.
pub(super) fn bits(value: u64) -> u32 {
    (64 - (value | 1).leading_zeros()).div_ceil(3) * 4
}

/// Writes a number.
pub(super) fn write(mut value: u64, out: &mut BitWriter) {
    while value > 7 {
        out.write((value & 7) << 1, 4);
        value >>= 3;
    }
    out.write(value << 1 | 1, 4);
}

/// Reads a number. Bits that are not a code give some number, in a bounded number of steps.
#[inline]
pub(super) fn read(bits: &mut BitReader<'_>) -> u64 {
    let word = bits.peek();
    let stops = word & STOPS;
    if stops == 0 {
        return read_wide(bits);
    }
    let length = stops.trailing_zeros() + 4;
    bits.skip(length);
    gather(word & ((1 << length) - 1))
}

/// Drops the stop bit of each nybble: 3 bits of 4, then 6 of 8, 12 of 16, 24 of 32.
#[inline]
fn gather(word: u64) -> u64 {
    let word = word >> 1 & 0x7777_7777_7777_7777;
    let word = word & 0x0707_0707_0707_0707 | word >> 1 & 0x3838_3838_3838_3838;
    let word = word & 0x003f_003f_003f_003f | word >> 2 & 0x0fc0_0fc0_0fc0_0fc0;
    let word = word & 0x0000_0fff_0000_0fff | word >> 4 & 0x00ff_f000_00ff_f000;
    word & 0x00ff_ffff | word >> 8 & 0xffff_ff00_0000
}

#[cold]
fn read_wide(bits: &mut BitReader<'_>) -> u64 {
    let mut value = 0u64;
    for at in 0..NYBBLES_MAX {
        let nybble = bits.read(4);
        value |= (nybble >> 1) << (3 * at);
        if nybble & 1 == 1 {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(value: u64) -> Vec<u8> {
        let mut out = BitWriter::default();
        write(value, &mut out);
        out.into_bytes()
    }

    #[test]
    fn the_examples_of_the_paper() {
        // The lower nybble of a byte is the first.
        assert_eq!(written(28), [0b0111_1000]);
        assert_eq!(written(fold(28)), [0b1111_0000]);
        assert_eq!(written(fold(-6)), [0b0011_1010]);
    }

    proptest! {
        #[test]
        fn numbers_come_back(value: u64, shift in 0u32..64, after: u8) {
            let value = value >> shift;
            let mut out = BitWriter::default();
            write(value, &mut out);
            prop_assert_eq!(out.len(), u64::from(bits(value)));
            prop_assert!(bits(value) <= 4 * NYBBLES_MAX);
            out.write(u64::from(after), 8);
            let bytes = out.into_bytes();
            let mut reader = BitReader::new(&bytes, 0);
            prop_assert_eq!(read(&mut reader), value);
            prop_assert_eq!(reader.read(8), u64::from(after));
            prop_assert_eq!(fold(unfold(value)), value);
        }
    }
}
