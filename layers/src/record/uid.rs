//! The number of a URL in a store, as a type.
//!
//! UIDs are dense: the `n` URLs of an epoch have the UIDs `0..n`, and each row has an interval of UIDs. A UID is valid
//! in one epoch; [`crate::store::translation`] translates UIDs from one epoch to another. Every other number of a URL
//! (in a cell, a standing result, an export) has another type, so that no list can hold numbers of two kinds.

use std::fmt;
use std::num::ParseIntError;
use std::ops::{Add, AddAssign, Range, Sub};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// The number of a URL in an epoch of a store. It is serialised as a number.
///
/// ```
/// use webstrata_layers::Uid;
///
/// let first = Uid(40);
/// assert_eq!((first + 2, Uid(42) - first), (Uid(42), 2));
/// assert_eq!(Uid::each(first..first + 2).collect::<Vec<_>>(), [Uid(40), Uid(41)]);
/// assert_eq!(serde_json::to_string(&first).unwrap(), "40");
/// ```
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    JsonSchema,
    Deserialize,
    FromBytes,
    IntoBytes,
    Immutable,
)]
#[repr(transparent)]
#[serde(transparent)]
pub struct Uid(pub u64);

impl Uid {
    /// The UIDs of an interval, rising.
    pub fn each(interval: Range<Self>) -> impl ExactSizeIterator<Item = Self> + DoubleEndedIterator + Clone {
        // No caller reaches the end of an interval of more UIDs than `usize` can count.
        let count = usize::try_from(interval.end.0.saturating_sub(interval.start.0)).unwrap_or(usize::MAX);
        (0..count).map(move |at| interval.start + at as u64)
    }

    /// The UIDs of an epoch with `urls` URLs.
    pub fn below(urls: u64) -> Range<Self> {
        Self(0)..Self(urls)
    }

    /// Views a column of numbers as UIDs. Cost: nothing.
    pub fn slice(numbers: &[u64]) -> &[Self] {
        zerocopy::transmute_ref!(numbers)
    }

    /// Converts a list of numbers to UIDs, in the same memory.
    pub fn of_numbers(numbers: Vec<u64>) -> Vec<Self> {
        numbers.into_iter().map(Self).collect()
    }

    /// Converts a list of UIDs to numbers, in the same memory.
    pub fn into_numbers(uids: Vec<Self>) -> Vec<u64> {
        uids.into_iter().map(|uid| uid.0).collect()
    }

    /// Views UIDs as a column of numbers. Cost: nothing.
    pub fn numbers(uids: &[Self]) -> &[u64] {
        zerocopy::transmute_ref!(uids)
    }

    /// The UID plus `count`, or the greatest UID if the sum needs more than 64 bits.
    #[inline]
    pub fn saturating_add(self, count: u64) -> Self {
        Self(self.0.saturating_add(count))
    }

    /// The position of the UID in an interval that begins with `first`; `None` if the UID is below `first`.
    #[inline]
    pub fn after(self, first: Self) -> Option<usize> {
        usize::try_from(self.0.checked_sub(first.0)?).ok()
    }
}

impl From<Uid> for u64 {
    #[inline]
    fn from(uid: Uid) -> Self {
        uid.0
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Uid {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        text.parse().map(Self)
    }
}

impl Add<u64> for Uid {
    type Output = Self;

    #[inline]
    fn add(self, count: u64) -> Self {
        Self(self.0 + count)
    }
}

impl AddAssign<u64> for Uid {
    #[inline]
    fn add_assign(&mut self, count: u64) {
        self.0 += count;
    }
}

/// The number of UIDs from `first` up to this UID.
impl Sub for Uid {
    type Output = u64;

    #[inline]
    fn sub(self, first: Self) -> u64 {
        self.0 - first.0
    }
}

/// Sorts UIDs and removes duplicates. Lists that follow one another, each in order, are merged. Takes time in
/// proportion to the UIDs if they are close together: at least one in 64 on average.
pub fn in_order(mut uids: Vec<Uid>) -> Vec<Uid> {
    let (Some(&first), Some(&last)) = (uids.iter().min(), uids.iter().max()) else { return uids };
    let words = (last - first) / 64 + 1;
    if words > uids.len() as u64 {
        // The stable sort finds stretches in order.
        uids.sort();
        uids.dedup();
        return uids;
    }
    let mut found = vec![0u64; usize::try_from(words).unwrap_or(usize::MAX)];
    for &uid in &uids {
        let at = uid - first;
        found[usize::try_from(at / 64).unwrap_or(usize::MAX)] |= 1 << (at % 64);
    }
    uids.clear();
    for (word, mut left) in (0..).zip(found) {
        while left != 0 {
            uids.push(first + 64 * word + u64::from(left.trailing_zeros()));
            left &= left - 1;
        }
    }
    uids
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn uids_come_in_order_once() {
        for span in [1, 2, 63, 64, 65, 1000, 64 * 300, 64 * 301, u64::MAX - 5] {
            for count in [0, 1, 2, 300] {
                let scattered = |at: u64| Uid(5 + at.wrapping_mul(0x9e37_79b9_7f4a_7c15) % span);
                let uids: Vec<Uid> = (0..count).map(scattered).collect();
                let expected: Vec<Uid> = uids.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
                assert_eq!(in_order(uids), expected, "{count} of {span}");
            }
        }
        assert_eq!(in_order(vec![Uid(u64::MAX), Uid(0), Uid(u64::MAX)]), [Uid(0), Uid(u64::MAX)]);
    }
}
