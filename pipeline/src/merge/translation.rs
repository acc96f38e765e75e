//! The replacement of UIDs, in little memory and with few steps for a look-up.
//!
//! Old UIDs are divided into blocks of 256. A block has its runs of UIDs that stay together, and a look-up searches
//! these runs. Memory: 9 bytes a run and 8 bytes a block. A row that is merged with small rows has few runs.

use std::ops::Range;
use webstrata_layers::Uid;

/// The number of bits of an old UID that give the place in a block.
const BLOCK_BITS: u32 = 8;
/// The new UID of UIDs that are dropped.
const DROPPED: Uid = Uid(u64::MAX);

/// The replacement of UIDs; see the head of this file.
#[derive(Debug, Default)]
pub(super) struct Translation {
    /// UIDs below this UID do not change.
    below: Uid,
    /// The index of the first run of each block.
    starts: Vec<usize>,
    /// For each run: the place of its first UID in the block, and the new UID of this UID.
    firsts: Vec<u8>,
    news: Vec<Uid>,
    /// The old UID after the last run.
    end: Uid,
}

impl Translation {
    pub(super) fn new(below: Uid) -> Self {
        Self { below, end: below, ..Self::default() }
    }

    /// Adds a run. Its old UIDs must be above the UIDs of all earlier runs; UIDs between the runs are dropped.
    pub(super) fn push(&mut self, old: Uid, new: Uid, count: u64) {
        self.extend(old, DROPPED);
        self.extend(old + count, new);
    }

    /// Sets the new UIDs of the old UIDs from the end of the last run up to `end`.
    fn extend(&mut self, end: Uid, mut new: Uid) {
        while self.end < end {
            let offset = self.end - self.below;
            let in_block = offset & ((1 << BLOCK_BITS) - 1);
            if in_block == 0 {
                self.starts.push(self.news.len());
            }
            self.firsts.push(in_block as u8);
            self.news.push(new);
            let count = (end - self.end).min((1 << BLOCK_BITS) - in_block);
            self.end += count;
            new = if new == DROPPED { DROPPED } else { new + count };
        }
    }

    /// Returns the new UID of a UID; `None` if the UID is dropped.
    #[inline]
    pub(super) fn get(&self, old: Uid) -> Option<Uid> {
        let Some(offset) = old.0.checked_sub(self.below.0) else { return Some(old) };
        let block = usize::try_from(offset >> BLOCK_BITS).ok()?;
        let start = *self.starts.get(block)?;
        let end = self.starts.get(block + 1).copied().unwrap_or(self.news.len());
        let in_block = (offset & ((1 << BLOCK_BITS) - 1)) as u8;
        let block_firsts = &self.firsts[start..end];
        let run = block_firsts.partition_point(|&first| first <= in_block).checked_sub(1)?;
        let new = self.news[start + run];
        (new != DROPPED && old < self.end).then(|| new + u64::from(in_block - block_firsts[run]))
    }

    /// Returns the first old UID of a row that becomes `new` or more; the end of the row if no UID does. `row` is the
    /// range of the row's UIDs.
    pub(super) fn first_at_least(&self, row: Range<Uid>, new: Uid) -> Uid {
        // Inside a row, new UIDs ascend with old UIDs, except for dropped UIDs. For a dropped UID, the next UID that is
        // kept counts.
        let kept = |old: Uid| Uid::each(old..row.end).find_map(|old| Some((old, self.get(old)?)));
        let (mut low, mut high) = (row.start, row.end);
        while low < high {
            let middle = low + (high - low) / 2;
            match kept(middle) {
                Some((old, becomes)) if becomes < new => low = old + 1,
                _ => high = middle,
            }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Rows of URLs that are merged in random order, some dropped; the oldest row stays.
        #[test]
        fn every_uid_is_found(owners in prop::collection::vec((0usize..3, prop::bool::weighted(0.9)), 0..300)) {
            const BELOW: Uid = Uid(7);
            let mut rows: Vec<Vec<Option<Uid>>> = vec![Vec::new(); 3];
            let mut next = BELOW;
            for (owner, kept) in owners {
                rows[owner].push(kept.then_some(next));
                next += u64::from(kept);
            }
            let mut translation = Translation::new(BELOW);
            let mut open: Option<(Uid, Uid, u64)> = None;
            let all: Vec<Option<Uid>> = rows.iter().flatten().copied().collect();
            let from_below = Uid::each(BELOW..BELOW + all.len() as u64);
            for (old, new) in from_below.clone().zip(&all) {
                let Some(new) = *new else { continue };
                match &mut open {
                    Some((first, becomes, count)) if *first + *count == old && *becomes + *count == new => *count += 1,
                    open => {
                        let before = open.replace((old, new, 1));
                        before.into_iter().for_each(|(old, new, count)| translation.push(old, new, count));
                    }
                }
            }
            open.into_iter().for_each(|(old, new, count)| translation.push(old, new, count));
            for (old, new) in Uid::each(Uid(0)..BELOW).map(|uid| (uid, Some(uid))).chain(from_below.zip(all.clone())) {
                prop_assert_eq!(translation.get(old), new, "{}", old);
            }
            let mut start = BELOW;
            for row in rows {
                let uids = start..start + row.len() as u64;
                for wanted in Uid::each(BELOW..next + 2) {
                    let got = translation.first_at_least(uids.clone(), wanted);
                    // All UIDs before `got` are dropped or have new UIDs below `wanted`; UIDs from `got` on are dropped
                    // or have new UIDs from `wanted` on.
                    let before = Uid::each(uids.start..got).filter_map(|old| translation.get(old));
                    prop_assert!(before.max().is_none_or(|new| new < wanted), "{} {}", got, wanted);
                    let after = Uid::each(got..uids.end).filter_map(|old| translation.get(old));
                    prop_assert!(after.min().is_none_or(|new| new >= wanted), "{} {}", got, wanted);
                }
                start = uids.end;
            }
        }
    }
}
