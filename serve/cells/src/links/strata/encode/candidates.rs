//! Selects the neighbours of each record that are worth weighing as its reference: neighbours that share most of its
//! links.
//!
//! Reads the lists of links of consecutive records, and returns a few slots (see [`neighbour`]) for each record. The
//! exact cost of a pair depends on codes and presence and is expensive to compute. The number of shared links is
//! computed for all pairs of a window at once. For each recent link, a table has one bit for each of the 64 records
//! before the last record with the link: whether that record has the link too. The bits of all links of a record are
//! summed by place, 64 sums at a time, in a number held as planes of bits. The table is small and forgets links that
//! fall on the same slot, so counts may be too low; they serve for ranking only. Cost: some nanoseconds a link, and a
//! tenth of a microsecond a record. Source: adding bits by planes, as in Harley's and Seal's count of bits (Warren,
//! Hacker's Delight, 5-1).

use crate::links::strata::WINDOW_MAX;
use crate::links::strata::references::neighbour;

/// The number of slots of the table; a power of two.
const SLOTS: usize = 1 << 14;
/// The number of planes of a sum. Larger sums wrap.
const PLANES: usize = 24;
/// The gain of a shared link, relative to a cost of 1 for a link of the reference that is not shared.
const GAIN: i64 = 6;
/// The largest total cost of links that are not shared: flags in a row take little room.
const ALONE_MAX: i64 = 64;

/// The slots of each record.
pub(super) struct Candidates {
    slots: Vec<u8>,
    ends: Vec<usize>,
}

impl Candidates {
    /// Finds at most `kept` slots a record, within `window`.
    pub(super) fn find<'a>(lists: impl Iterator<Item = &'a [u64]> + Clone, window: usize, kept: usize) -> Self {
        let lengths: Vec<usize> = lists.clone().map(<[u64]>::len).collect();
        let shared = shared(lists, window);
        let mut found = Self { slots: Vec::new(), ends: Vec::with_capacity(lengths.len()) };
        let mut ranked: Vec<(i64, u8)> = Vec::new();
        for record in 0..lengths.len() {
            ranked.clear();
            for slot in 0u8..2 * u8::try_from(window).unwrap_or(0) {
                let Some(other) = neighbour(record, usize::from(slot), lengths.len()) else { continue };
                let (earlier, later) = (record.min(other), record.max(other));
                let both = i64::from(shared[later * window + (later - earlier - 1)]);
                if both > 0 {
                    let alone = i64::try_from(lengths[other]).unwrap_or(i64::MAX) - both;
                    ranked.push((alone.min(ALONE_MAX) - GAIN * both, slot));
                }
            }
            if ranked.len() > kept {
                ranked.select_nth_unstable(kept);
                ranked.truncate(kept);
            }
            found.slots.extend(ranked.iter().map(|&(_, slot)| slot));
            found.ends.push(found.slots.len());
        }
        found
    }

    /// The slots of a record.
    pub(super) fn of(&self, record: usize) -> &[u8] {
        let start = record.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.slots[start..self.ends[record]]
    }
}

/// A link that occurred recently.
#[derive(Clone, Copy)]
struct Recent {
    link: u64,
    record: u32,
    /// The records before `record` that have the link, one bit a record, the nearest lowest.
    before: u64,
}

/// The number of links that each record shares with each of the `window` records before it, the nearest first.
fn shared<'a>(lists: impl Iterator<Item = &'a [u64]>, window: usize) -> Vec<u32> {
    let mut recent = vec![Recent { link: u64::MAX, record: 0, before: 0 }; SLOTS];
    let mut shared = Vec::new();
    for (record, links) in (0u32..).zip(lists) {
        let mut planes = [0u64; PLANES];
        for &link in links {
            let slot = (link.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize & (SLOTS - 1);
            let held = &mut recent[slot];
            let before = if held.link == link { since(held.before, record.saturating_sub(held.record)) } else { 0 };
            *held = Recent { link, record, before };
            let mut carry = before;
            for plane in &mut planes {
                if carry == 0 {
                    break;
                }
                (*plane, carry) = (*plane ^ carry, *plane & carry);
            }
        }
        let sum = |distance: usize| {
            planes.iter().enumerate().fold(0, |sum, (at, plane)| sum | u32::from(plane >> distance & 1 == 1) << at)
        };
        shared.extend((0..window.min(WINDOW_MAX)).map(sum));
    }
    shared
}

/// The bits of `before` as seen `steps` records later, with a bit for the record itself.
fn since(before: u64, steps: u32) -> u64 {
    (before << 1 | 1).checked_shl(steps.saturating_sub(1)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shared_links_are_counted(
            lists in proptest::collection::vec(proptest::collection::btree_set(0u64..60, 0..20), 0..100),
            window in 1usize..=WINDOW_MAX,
        ) {
            let lists: Vec<Vec<u64>> = lists.into_iter().map(|list| list.into_iter().collect()).collect();
            let shared = shared(lists.iter().map(Vec::as_slice), window);
            for (record, links) in lists.iter().enumerate() {
                for step in 1..=window.min(record) {
                    let expected = links.iter().filter(|link| lists[record - step].contains(link)).count();
                    prop_assert_eq!(shared[record * window + step - 1] as usize, expected);
                }
            }
        }
    }
}
