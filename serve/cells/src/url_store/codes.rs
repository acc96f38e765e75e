//! The codes of tokens.
//!
//! They are canonical Huffman codes of at most 16 bits, the first bit lowest. Tokens are numbered by the length of
//! their code, the shortest first. The 256 values of the first eight bits are *slots*, in the order of the reversed
//! bits: the code of the first token begins with zeros. A code of n bits, up to 8, has `2^(8 - n)` slots. A longer code
//! shares its slot with others of equal length. There, the bits after the eighth are a number, the lowest bit first,
//! which is added to the number of the slot's first token.
//!
//! The number of codes of a length n above 8 is therefore a multiple of `2^(n - 8)`, except for the longest. A code
//! then takes two look-ups, in the slots and in the tokens, and the length of the code is known after the first. URLs
//! take 0.4 % more bits than the entropy of their tokens. The codes of [`crate::coding::huffman`] are for fewer
//! symbols: their tables would be too large.

use super::tokens::Trained;

/// The longest code in bits.
pub(super) const BITS_MAX: usize = 16;
/// The number of bits that lead to a slot.
const SLOT_BITS: usize = 8;
/// The number of slots.
pub(super) const SLOTS: usize = 1 << SLOT_BITS;

/// The number of codes of each length in bits; none has 0 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lengths(pub(super) [usize; BITS_MAX + 1]);

/// A table that reads codes.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    /// For each value of the first eight bits: number of the first token << 13 | mask of the bits after these << 5 |
    /// length of the code. Slots without codes have one bit and the number after the last token.
    slots: [u32; SLOTS],
}

impl Slots {
    /// The number of the token whose code comes next, and the length of the code in bits, 1 to 16.
    #[inline]
    pub(super) fn look(&self, bits: u64) -> (usize, u32) {
        #[expect(clippy::cast_possible_truncation, reason = "a code has 16 bits")]
        let bits = bits as u32;
        let slot = self.slots[(bits & 0xff) as usize];
        (((slot >> 13) + (slot >> 5 & bits >> 8 & 0xff)) as usize, slot & 0x1f)
    }
}

impl Lengths {
    /// Fits lengths to counts that fall, at most 2^16.
    pub(super) fn fit(counts: &[u64]) -> Self {
        let mut lengths = [0; BITS_MAX + 1];
        huffman(counts).into_iter().for_each(|bits| lengths[bits.clamp(1, BITS_MAX)] += 1);
        // Clamped codes may take too much room. Then the longest codes that can grow do.
        let mut room: usize = (1..=BITS_MAX).map(|bits| lengths[bits] << (BITS_MAX - bits)).sum();
        while room > 1 << BITS_MAX {
            let Some(bits) = (1..BITS_MAX).rev().find(|&bits| lengths[bits] > 0) else { break };
            lengths[bits] -= 1;
            lengths[bits + 1] += 1;
            room -= 1 << (BITS_MAX - bits - 1);
        }
        // What does not fill a slot gets the next length. The slots suffice: only the last one is rounded up.
        for bits in SLOT_BITS + 1..BITS_MAX {
            if lengths[bits + 1..].iter().any(|&count| count > 0) {
                let more = lengths[bits] % (1 << (bits - SLOT_BITS));
                lengths[bits] -= more;
                lengths[bits + 1] += more;
            }
        }
        Self(lengths)
    }

    /// The length of the code of each number in bits.
    pub(super) fn each(&self) -> impl Iterator<Item = usize> {
        self.0.into_iter().enumerate().flat_map(|(bits, count)| std::iter::repeat_n(bits, count))
    }

    /// The table; `None` if the codes need more slots than there are.
    pub(super) fn slots(&self) -> Option<Slots> {
        let entry = |number: usize, bits: usize| {
            let mask = (1usize << bits.saturating_sub(SLOT_BITS)) - 1;
            u32::try_from(number << 13 | mask << 5 | bits).ok()
        };
        let mut slots = [entry(self.0.iter().sum(), 1)?; SLOTS];
        let (mut next, mut number) = (0, 0);
        for (bits, &count) in self.0.iter().enumerate().skip(1) {
            for first in (0..count).step_by(1 << bits.saturating_sub(SLOT_BITS)) {
                for _ in 0..1 << SLOT_BITS.saturating_sub(bits) {
                    *slots.get_mut(reversed(next)?)? = entry(number + first, bits)?;
                    next += 1;
                }
            }
            number += count;
        }
        Some(Slots { slots })
    }

    /// The code of each number, and its length in bits.
    fn codes(&self) -> Vec<(u32, u32)> {
        let (mut codes, mut slot) = (Vec::new(), 0);
        for (bits, &count) in self.0.iter().enumerate().skip(1) {
            let in_slot = 1 << bits.saturating_sub(SLOT_BITS);
            for index in 0..count {
                let first = reversed(slot).unwrap_or(0) & ((1 << bits.min(SLOT_BITS)) - 1);
                let code = first | (index % in_slot) << SLOT_BITS;
                codes.push((u32::try_from(code).unwrap_or(0), u32::try_from(bits).unwrap_or(0)));
                if index % in_slot == in_slot - 1 || index + 1 == count {
                    slot += 1 << SLOT_BITS.saturating_sub(bits);
                }
            }
        }
        codes
    }
}

/// The code of each token, and its length in bits.
pub(super) fn codes(tokens: &Trained) -> Vec<(u32, u32)> {
    let mut lengths = Lengths::default();
    tokens.iter().for_each(|&(_, bits)| lengths.0[bits] += 1);
    let (codes, mut numbers, mut first) = (lengths.codes(), [0; BITS_MAX + 1], 0);
    for (number, count) in numbers.iter_mut().zip(lengths.0) {
        *number = first;
        first += count;
    }
    let code_of = |&(_, bits): &(_, usize)| {
        numbers[bits] += 1;
        codes[numbers[bits] - 1]
    };
    tokens.iter().map(code_of).collect()
}

/// The value of the first eight bits of a slot; `None` beyond the last slot.
fn reversed(slot: usize) -> Option<usize> {
    u8::try_from(slot).ok().map(|slot| usize::from(slot.reverse_bits()))
}

/// The lengths of a Huffman code without a bound, for counts that fall. A count of 0 is taken for 1.
fn huffman(counts: &[u64]) -> Vec<usize> {
    if counts.len() < 2 {
        return vec![1; counts.len()];
    }
    // The leaves, least first, then the inner nodes, whose counts rise as they are made. The least nodes without a
    // parent are therefore the next leaf and the next inner node.
    let leaves = counts.len();
    let mut nodes: Vec<u64> = counts.iter().rev().map(|&count| count.max(1)).collect();
    let mut parents = vec![0; 2 * leaves - 1];
    let (mut leaf, mut inner) = (0, leaves);
    while nodes.len() < parents.len() {
        let mut count = 0u64;
        for _ in 0..2 {
            let take_leaf = leaf < leaves && nodes.get(inner).is_none_or(|&other| nodes[leaf] <= other);
            let next = if take_leaf { &mut leaf } else { &mut inner };
            count = count.saturating_add(nodes[*next]);
            parents[*next] = nodes.len();
            *next += 1;
        }
        nodes.push(count);
    }
    let mut depths = vec![0; parents.len()];
    for node in (0..parents.len() - 1).rev() {
        depths[node] = depths[parents[node]] + 1;
    }
    depths[..leaves].iter().rev().copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_code_of_fibonacci_counts_is_optimal() {
        let counts = [21, 13, 8, 5, 3, 2, 1, 1];
        let lengths = Lengths::fit(&counts);
        // The sum of all merges of Huffman's algorithm: 2 + 4 + 7 + 12 + 20 + 33 + 54.
        assert_eq!(lengths.each().zip(counts).map(|(bits, count)| bits as u64 * count).sum::<u64>(), 132);
        assert_eq!(Lengths::fit(&[]).each().count(), 0);
        assert_eq!(Lengths::fit(&[7]).each().collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn codes_that_need_too_many_slots_have_no_table() {
        for (bits, count) in [(1, 3), (8, 257), (16, (1 << 16) + 1)] {
            let mut lengths = Lengths::default();
            lengths.0[bits] = count;
            assert!(lengths.slots().is_none(), "{count} of {bits} bits");
            lengths.0[bits] = count - 1;
            assert!(lengths.slots().is_some());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn what_is_written_is_read(
            base in 2u64..9, count in 0u32..60, flat in 0usize..30_000,
        ) {
            // Counts that fall fast, then a long tail.
            let falling = (0..count).rev().map(|power| base.saturating_pow(power));
            let counts: Vec<u64> = falling.chain(std::iter::repeat_n(1, flat)).collect();
            let lengths = Lengths::fit(&counts);
            prop_assert_eq!(lengths.each().count(), counts.len());
            let slots = lengths.slots().unwrap();
            for ((number, (code, bits)), length) in lengths.codes().into_iter().enumerate().zip(lengths.each()) {
                prop_assert_eq!(bits as usize, length);
                for after in [0, u64::MAX] {
                    prop_assert_eq!(slots.look(u64::from(code) | after << bits), (number, bits));
                }
            }
        }
    }
}
