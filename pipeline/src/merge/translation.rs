//! How UIDs are replaced, in little memory.
//!
//! Runs of UIDs that stay together, in order of the old ones, coded as differences in blocks of [`BLOCK`]; a look-up is a
//! binary search among the blocks and a pass over one. Memory: some 4 bytes a run, and 2 for its share of a block.

use crate::wire;
use std::ops::Range;

/// Runs of a block.
const BLOCK: usize = 16;

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct Translation {
    /// UIDs below stay what they are.
    below: u64,
    /// Of the first run of each block: old and new UID.
    firsts: Vec<(u64, u64)>,
    /// Where each block begins in `coded`.
    starts: Vec<usize>,
    /// Of each run: old UIDs since the end of the one before, difference of the new UID to the end of the one before, UIDs.
    coded: Vec<u8>,
    runs: usize,
    /// The ends of the last run, old and new.
    ends: (u64, u64),
}

/// A run: its first old UID, what that becomes, how many UIDs it has.
type Run = (u64, u64, u64);

impl Translation {
    pub(super) fn new(below: u64) -> Self {
        Self { below, ..Self::default() }
    }

    /// Adds a run whose old UIDs are above those before it.
    pub(super) fn push(&mut self, old: u64, new: u64, count: u64) {
        if self.runs.is_multiple_of(BLOCK) {
            self.firsts.push((old, new));
            self.starts.push(self.coded.len());
            self.ends = (old, new);
        }
        wire::put(&mut self.coded, old - self.ends.0);
        wire::put_signed(&mut self.coded, new.wrapping_sub(self.ends.1).cast_signed());
        wire::put(&mut self.coded, count);
        self.ends = (old + count, new + count);
        self.runs += 1;
    }

    /// The runs of a block.
    fn block(&self, block: usize) -> impl Iterator<Item = Run> {
        let (mut old, mut new) = self.firsts[block];
        let end = self.starts.get(block + 1).copied().unwrap_or(self.coded.len());
        let mut bytes = &self.coded[self.starts[block]..end];
        std::iter::from_fn(move || {
            if bytes.is_empty() {
                return None;
            }
            old += wire::take(&mut bytes);
            new = new.wrapping_add(wire::take_signed(&mut bytes).cast_unsigned());
            let count = wire::take(&mut bytes);
            let run = (old, new, count);
            (old, new) = (old + count, new + count);
            Some(run)
        })
    }

    /// The last run that begins at `old` or before.
    fn run_of(&self, old: u64) -> Option<Run> {
        let block = self.firsts.partition_point(|first| first.0 <= old).checked_sub(1)?;
        self.block(block).take_while(|run| run.0 <= old).last()
    }

    /// What a UID becomes; `None` where it is dropped.
    #[cfg(test)]
    fn get(&self, old: u64) -> Option<u64> {
        Looking::new(self).get(old)
    }

    /// The first old UID of a row, whose UIDs are given, that becomes `new` or more; the end of the row where there is none.
    pub(super) fn first_at_least(&self, row: Range<u64>, new: u64) -> u64 {
        // Inside a row new UIDs rise with old ones.
        let (mut low, mut high) = (row.start, row.end);
        while low < high {
            let middle = low.midpoint(high);
            let becomes = match self.run_of(middle) {
                Some((old, first, count)) if old + count > row.start => first + (middle - old).min(count),
                _ => 0,
            };
            // A UID that is dropped counts as the one after the last that is not.
            if becomes < new { low = middle + 1 } else { high = middle }
        }
        low
    }
}

/// Looks up UID after UID; those near the one before are found at once.
pub(super) struct Looking<'a> {
    translation: &'a Translation,
    run: Run,
}

impl<'a> Looking<'a> {
    pub(super) fn new(translation: &'a Translation) -> Self {
        Self { translation, run: (0, 0, 0) }
    }

    /// What a UID becomes; `None` where it is dropped.
    #[inline]
    pub(super) fn get(&mut self, old: u64) -> Option<u64> {
        if old < self.translation.below {
            return Some(old);
        }
        if old.wrapping_sub(self.run.0) >= self.run.2 {
            self.run = self.translation.run_of(old)?;
        }
        let (first, new, count) = self.run;
        let distance = old - first;
        (distance < count).then(|| new + distance)
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
            const BELOW: u64 = 7;
            let mut rows: Vec<Vec<Option<u64>>> = vec![Vec::new(); 3];
            let mut next = BELOW;
            for (owner, kept) in owners {
                rows[owner].push(kept.then_some(next));
                next += u64::from(kept);
            }
            let mut translation = Translation::new(BELOW);
            let mut open: Option<Run> = None;
            let all: Vec<Option<u64>> = rows.iter().flatten().copied().collect();
            for (old, new) in (BELOW..).zip(&all) {
                let Some(new) = *new else { continue };
                match &mut open {
                    Some((first, becomes, count)) if *first + *count == old && *becomes + *count == new => *count += 1,
                    open => {
                        open.replace((old, new, 1)).into_iter().for_each(|(old, new, count)| translation.push(old, new, count));
                    }
                }
            }
            open.into_iter().for_each(|(old, new, count)| translation.push(old, new, count));
            let mut looking = Looking::new(&translation);
            for (old, new) in (0..BELOW).map(|uid| (uid, Some(uid))).chain((BELOW..).zip(all.clone())) {
                prop_assert_eq!(translation.get(old), new, "{}", old);
                prop_assert_eq!(looking.get(old), new);
            }
            let mut start = BELOW;
            for row in rows {
                let uids = start..start + row.len() as u64;
                for wanted in BELOW..next + 2 {
                    let got = translation.first_at_least(uids.clone(), wanted);
                    // All before it are dropped or lie below; it is the end, or leads to what is not below.
                    let before = (uids.start..got).filter_map(|old| translation.get(old));
                    prop_assert!(before.max().is_none_or(|new| new < wanted), "{} {}", got, wanted);
                    let after = (got..uids.end).filter_map(|old| translation.get(old));
                    prop_assert!(after.min().is_none_or(|new| new >= wanted), "{} {}", got, wanted);
                }
                start = uids.end;
            }
        }
    }
}
