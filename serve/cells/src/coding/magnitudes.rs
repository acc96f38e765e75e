//! Numbers as symbols and raw bits, so that a code has few symbols, whatever the numbers.
//!
//! A number below `2^D` is its own symbol. Of a larger number, whose highest bit is bit e, the symbol is
//! `2^D + 2 (e - D)` plus the bit after the highest, and the other e - 1 bits are raw. With `D` = 4, 13 is the symbol
//! 13, and 45, which is 101101 in binary, is the symbol 18 and the four raw bits 1101.

/// The number of symbols for numbers of at most `bits` bits.
pub(crate) const fn symbols<const D: u32>(bits: u32) -> usize {
    (1 << D) + 2 * (bits - D) as usize
}

/// The symbol of a number, and the number of raw bits that follow: the lowest of the number.
#[inline]
pub(crate) fn symbol_of<const D: u32>(number: u64) -> (usize, u32) {
    #[expect(clippy::cast_possible_truncation, reason = "both are below 2^12")]
    if number >> D == 0 {
        (number as usize, 0)
    } else {
        let exponent = number.ilog2();
        let after = (number >> (exponent - 1) & 1) as usize;
        ((1 << D) + 2 * (exponent - D) as usize + after, exponent - 1)
    }
}

/// The numbers with a symbol: what is before their raw bits, and the number of raw bits.
#[inline]
pub(crate) fn number_of<const D: u32>(symbol: usize) -> (u64, u32) {
    #[expect(clippy::cast_possible_truncation, reason = "a symbol stands for at most 64 bits")]
    match symbol.checked_sub(1 << D) {
        None => (symbol as u64, 0),
        Some(large) => (2 + large as u64 % 2, large as u32 / 2 + D - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn comes_back<const D: u32>(number: u64) -> bool {
        let (symbol, raw) = symbol_of::<D>(number);
        let (before, bits) = number_of::<D>(symbol);
        symbol < symbols::<D>(64) && raw == bits && before << bits | number & ((1 << bits) - 1) == number
    }

    proptest! {
        #[test]
        fn numbers_come_back(number: u64, shift in 0u32..64) {
            prop_assert!(comes_back::<4>(number >> shift) && comes_back::<5>(number >> shift));
        }
    }

    #[test]
    fn the_symbols_are_as_documented() {
        assert_eq!((symbol_of::<4>(13), symbol_of::<4>(45)), ((13, 0), (18, 4)));
        assert_eq!((symbol_of::<4>(u64::MAX).0 + 1, symbols::<4>(64)), (136, 136));
        assert!((0..70_000).all(comes_back::<4>) && (0..70_000).all(comes_back::<5>));
    }
}
