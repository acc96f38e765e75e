//! Random numbers that are the same on every machine: SplitMix64, integers only.

/// A stream of numbers.
pub(super) struct Random(u64);

impl Random {
    /// The stream for one thing of the model, named by `keys`.
    pub(super) fn of(seed: u64, keys: &[u64]) -> Self {
        let mut random = Random(seed);
        for key in keys {
            random.0 = random.next() ^ key.wrapping_mul(0xd6e8_feb8_6659_fd93);
        }
        random
    }

    /// Any number.
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, or 0 if `end` is 0.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        u64::try_from((u128::from(self.next()) * u128::from(end)) >> 64).unwrap_or(0)
    }

    /// A number below `end`. Small numbers are more frequent.
    pub(super) fn small_below(&mut self, end: u64) -> u64 {
        let end = self.below(end) + 1;
        self.below(end)
    }

    /// True `of_ten_thousand` times out of ten thousand.
    pub(super) fn chance(&mut self, of_ten_thousand: u64) -> bool {
        self.below(10_000) < of_ten_thousand
    }
}
