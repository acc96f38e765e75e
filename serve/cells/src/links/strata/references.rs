//! Selects the record that each record is coded against: a local search over the costs of pairs.
//!
//! The input is the cost of each record alone and against some neighbours, before and after it. The result is the
//! reference of each record. The references form a forest of bounded depth, so that decoding a list reads at most
//! `depth + 1` records. Finding the best forest is hard (Adler & Mitzenmacher 2001). Greedy choices, and then moves
//! that lower the sum, come close. A move that does not lower the sum is undone. Memory: 16 bytes a pair. Time: about
//! 10 nanoseconds a pair.

/// The costs of records, in bits.
#[derive(Default)]
pub(super) struct Costs {
    /// The cost without a reference.
    alone: Vec<u32>,
    /// The costs against other records, if lower: the pairs of the first record, cheapest first, then of the next.
    pairs: Vec<Pair>,
    ends: Vec<usize>,
}

/// A record that may be a reference, or a record that may have it as reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    bits: u32,
    other: u32,
}

impl Costs {
    /// Adds the next record: its cost alone, and its costs against others.
    pub(super) fn push(&mut self, alone: u32, others: impl Iterator<Item = (usize, u32)>) {
        let start = self.pairs.len();
        let pair = |(other, bits)| Pair { bits, other: u32::try_from(other).unwrap_or(u32::MAX) };
        self.pairs.extend(others.filter(|&(_, bits)| bits < alone).map(pair));
        self.pairs[start..].sort_unstable();
        self.ends.push(self.pairs.len());
        self.alone.push(alone);
    }

    fn of(&self, record: usize) -> &[Pair] {
        &self.pairs[range(&self.ends, record)]
    }

    /// The same pairs by reference: for each record, the records that gain from it as reference.
    fn turned(&self) -> (Vec<Pair>, Vec<usize>) {
        let mut ends = vec![0; self.alone.len() + 1];
        self.pairs.iter().for_each(|pair| ends[pair.other as usize + 1] += 1);
        for at in 1..ends.len() {
            ends[at] += ends[at - 1];
        }
        let mut turned = vec![Pair { bits: 0, other: 0 }; self.pairs.len()];
        for (record, other) in (0..self.alone.len()).zip(0u32..) {
            for pair in self.of(record) {
                let end = &mut ends[pair.other as usize];
                turned[*end] = Pair { bits: pair.bits, other };
                *end += 1;
            }
        }
        (turned, ends)
    }
}

/// The range of the `at`-th list among lists that end at `ends`.
fn range(ends: &[usize], at: usize) -> std::ops::Range<usize> {
    at.checked_sub(1).map_or(0, |before| ends[before])..ends[at]
}

/// The record that a slot denotes: 0 is the one before, 1 the one after, 2 the second before, and so on.
#[inline]
pub(super) fn neighbour(record: usize, slot: usize, records: usize) -> Option<usize> {
    let distance = slot / 2 + 1;
    if slot.is_multiple_of(2) {
        record.checked_sub(distance)
    } else {
        Some(record + distance).filter(|&other| other < records)
    }
}

/// The slot that denotes `to` as seen from `from`. `to` is another record.
#[inline]
fn slot(from: usize, to: usize) -> usize {
    if to < from { 2 * (from - to - 1) } else { 2 * (to - from - 1) + 1 }
}

/// Chooses a reference, as a slot, for each record.
pub(super) fn choose(costs: &Costs, depth_max: u8) -> Vec<Option<u8>> {
    let mut forest = Forest::new(costs, depth_max);
    forest.begin();
    for pass in 0..PASSES {
        let before = forest.total;
        for record in 0..forest.chosen.len() {
            forest.settle(record);
            if pass == 0 {
                forest.lift(record);
                forest.dissolve(record);
            } else {
                forest.rally(record);
            }
            forest.journal.clear();
        }
        if (before - forest.total) * 300 < forest.total {
            break;
        }
    }
    let slot = |(record, reference): (usize, &ChosenReference)| {
        reference.parent.map(|parent| u8::try_from(slot(record, parent as usize)).unwrap_or(0))
    };
    forest.chosen.iter().enumerate().map(slot).collect()
}

/// The largest number of passes over the records.
const PASSES: usize = 4;
/// The number of pairs of a record that the greedy choice considers.
const FIRST: usize = 8;

/// The reference of a record, and the cost of the record with this reference.
#[derive(Clone, Copy)]
struct ChosenReference {
    bits: u32,
    parent: Option<u32>,
}

struct Forest<'a> {
    costs: &'a Costs,
    /// For each record, the records that gain from it as reference: see [`Costs::turned`].
    turned: (Vec<Pair>, Vec<usize>),
    depth_max: u8,
    chosen: Vec<ChosenReference>,
    /// The number of references from this record to its root.
    depth: Vec<u8>,
    children: Vec<Vec<u32>>,
    /// The bits of all chosen references.
    total: u64,
    /// Records that were moved since the last kept move, with their earlier places.
    journal: Vec<(usize, ChosenReference)>,
}

impl<'a> Forest<'a> {
    fn new(costs: &'a Costs, depth_max: u8) -> Self {
        let records = costs.alone.len();
        Self {
            costs,
            turned: costs.turned(),
            depth_max,
            chosen: costs.alone.iter().map(|&bits| ChosenReference { bits, parent: None }).collect(),
            depth: vec![0; records],
            children: vec![Vec::new(); records],
            total: costs.alone.iter().map(|&bits| u64::from(bits)).sum(),
            journal: Vec::new(),
        }
    }

    /// Greedy choice: the pairs with the largest gain first.
    fn begin(&mut self) {
        let mut gains: Vec<(u32, u32, Pair)> = Vec::new();
        for (record, &alone) in (0u32..).zip(&self.costs.alone) {
            let pairs = self.costs.of(record as usize).iter().take(FIRST);
            gains.extend(pairs.map(|&pair| (alone - pair.bits, record, pair)));
        }
        gains.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
        for (_, record, Pair { bits, other }) in gains {
            let (record, parent) = (record as usize, other as usize);
            if self.chosen[record].parent.is_none()
                && self.depth[parent] + 1 + self.height(record) <= self.depth_max
                && !self.hangs_on(parent, record)
            {
                self.attach(record, ChosenReference { bits, parent: Some(other) });
            }
        }
    }

    fn alone(&self, record: usize) -> ChosenReference {
        ChosenReference { bits: self.costs.alone[record], parent: None }
    }

    fn bits(&self, record: usize) -> u32 {
        self.chosen[record].bits
    }

    fn parent(&self, record: usize) -> Option<usize> {
        self.chosen[record].parent.map(|parent| parent as usize)
    }

    /// The length of the longest chain of records below this record.
    fn height(&self, record: usize) -> u8 {
        self.children[record].iter().map(|&child| self.height(child as usize) + 1).max().unwrap_or(0)
    }

    fn hangs_on(&self, mut record: usize, ancestor: usize) -> bool {
        loop {
            if record == ancestor {
                return true;
            }
            match self.parent(record) {
                Some(parent) => record = parent,
                None => return false,
            }
        }
    }

    /// The cheapest place for a record with a subtree of `height`: on a record at depth `deepest` or above, but not on
    /// `without` and not on a record in the subtree.
    fn best(&self, record: usize, height: u8, deepest: u8, without: Option<usize>) -> ChosenReference {
        let fits = |pair: &&Pair| {
            let other = pair.other as usize;
            self.depth[other] <= deepest
                && self.depth[other] + 1 + height <= self.depth_max
                && Some(other) != without
                && (height == 0 || !self.hangs_on(other, record))
        };
        let best = self.costs.of(record).iter().find(fits);
        best.map_or(self.alone(record), |pair| ChosenReference { bits: pair.bits, parent: Some(pair.other) })
    }

    fn sink(&mut self, record: usize, depth: u8) {
        self.depth[record] = depth;
        for at in 0..self.children[record].len() {
            self.sink(self.children[record][at] as usize, depth + 1);
        }
    }

    fn attach(&mut self, record: usize, reference: ChosenReference) {
        self.journal.push((record, self.chosen[record]));
        self.hang(record, reference);
    }

    fn hang(&mut self, record: usize, reference: ChosenReference) {
        self.total = self.total + u64::from(reference.bits) - u64::from(self.bits(record));
        let child_number = u32::try_from(record).unwrap_or(u32::MAX);
        if let Some(before) = self.parent(record) {
            self.children[before].retain(|&child| child != child_number);
        }
        self.chosen[record] = reference;
        let parent = self.parent(record);
        if let Some(parent) = parent {
            self.children[parent].push(child_number);
        }
        let depth = parent.map_or(0, |parent| self.depth[parent] + 1);
        if depth != self.depth[record] {
            self.sink(record, depth);
        }
    }

    /// Makes moves, and undoes the moves unless they lower the sum.
    fn attempt(&mut self, moves: impl FnOnce(&mut Self)) -> bool {
        let (mark, before) = (self.journal.len(), self.total);
        moves(self);
        if self.total < before {
            return true;
        }
        while self.journal.len() > mark {
            if let Some((record, reference)) = self.journal.pop() {
                self.hang(record, reference);
            }
        }
        false
    }

    /// Moves a record with its subtree to its cheapest place.
    fn settle(&mut self, record: usize) {
        // Usually no place is cheaper.
        if self.costs.of(record).first().is_none_or(|pair| pair.bits >= self.bits(record)) {
            return;
        }
        let reference = self.best(record, self.height(record), self.depth_max, None);
        if reference.bits < self.bits(record) {
            self.attach(record, reference);
        }
    }

    /// Hangs a record on `parent`, whose depth must be below the maximum. Records that would be too deep find another
    /// place. If `parent` is in the subtree of the record, that branch is cut off first.
    fn pull(&mut self, record: usize, bits: u32, parent: usize) {
        let mut branch = parent;
        while let Some(above) = self.parent(branch) {
            if above == record {
                self.attach(branch, self.alone(branch));
                break;
            }
            branch = above;
        }
        let mut detached = Vec::new();
        self.shed(record, self.depth[parent] + 1, &mut detached);
        self.attach(record, ChosenReference { bits, parent: u32::try_from(parent).ok() });
        detached.into_iter().for_each(|other| self.settle(other));
        self.settle(branch);
    }

    fn shed(&mut self, record: usize, depth: u8, detached: &mut Vec<usize>) {
        for child in self.children[record].clone() {
            let child = child as usize;
            if depth + 1 > self.depth_max {
                self.attach(child, self.alone(child));
                detached.push(child);
            } else {
                self.shed(child, depth + 1, detached);
            }
        }
    }

    /// The cheapest place for a record at `depth` or above; `None` if that place is in the record's subtree.
    fn higher(&self, record: usize, depth: u8) -> Option<ChosenReference> {
        let reference = match depth.checked_sub(1) {
            None => self.alone(record),
            Some(deepest) => self.best(record, 0, deepest, None),
        };
        let hangs = reference.parent.is_some_and(|parent| self.hangs_on(parent as usize, record));
        (!hangs).then_some(reference)
    }

    /// Like [`Self::lift`], but neighbours bring their subtrees with them or leave them behind.
    fn rally(&mut self, record: usize) {
        for depth in 0..self.depth[record] {
            let Some(reference) = self.higher(record, depth) else { continue };
            let lifted = self.attempt(|forest| {
                forest.attach(record, reference);
                for at in range(&forest.turned.1, record) {
                    let Pair { bits, other } = forest.turned.0[at];
                    let other = other as usize;
                    let gains = bits < forest.bits(other) && forest.parent(other) != Some(record);
                    if gains && forest.depth[record] < forest.depth_max {
                        forest.attempt(|forest| forest.pull(other, bits, record));
                    }
                }
            });
            if lifted {
                return;
            }
        }
    }

    /// Lifts a record towards the root, if neighbours that then hang on it gain more.
    fn lift(&mut self, record: usize) {
        for depth in 0..self.depth[record] {
            let Some(reference) = self.higher(record, depth) else { continue };
            let parent = reference.parent.map(|parent| parent as usize);
            let loss = u64::from(reference.bits.saturating_sub(self.bits(record)));
            let mut gain = 0;
            let mut joining = Vec::new();
            for &Pair { bits, other } in &self.turned.0[range(&self.turned.1, record)] {
                let other = other as usize;
                let joins = bits < self.bits(other)
                    && Some(other) != parent
                    && !parent.is_some_and(|parent| self.hangs_on(parent, other))
                    && self.parent(other) != Some(record)
                    && depth + 1 + self.height(other) <= self.depth_max;
                if joins {
                    gain += u64::from(self.bits(other) - bits);
                    joining.push((other, bits));
                }
            }
            if gain <= loss {
                continue;
            }
            // A record that joins may leave no room for another, so the sum of gains may not be reached.
            let lifted = self.attempt(|forest| {
                forest.attach(record, reference);
                for (other, bits) in joining {
                    let fits = forest.depth[record] + 1 + forest.height(other) <= forest.depth_max
                        && !forest.hangs_on(record, other);
                    if fits && bits < forest.bits(other) {
                        forest.attach(other, ChosenReference { bits, parent: u32::try_from(record).ok() });
                    }
                }
            });
            if lifted {
                return;
            }
        }
    }

    /// Moves the children of a record to their next best places, so that the record may hang on another.
    fn dissolve(&mut self, record: usize) {
        if self.children[record].is_empty() {
            return;
        }
        let reference = self.best(record, 0, self.depth_max, None);
        let gain = u64::from(self.bits(record).saturating_sub(reference.bits));
        if gain == 0 || reference.parent.is_some_and(|parent| self.hangs_on(parent as usize, record)) {
            return;
        }
        let children = self.children[record].clone();
        let mut loss = 0;
        for &child in &children {
            let child = child as usize;
            let elsewhere = self.best(child, self.height(child), self.depth_max, Some(record));
            loss += u64::from(elsewhere.bits.saturating_sub(self.bits(child)));
            if loss >= gain {
                return;
            }
        }
        self.attempt(|forest| {
            for child in children {
                let child = child as usize;
                let reference = forest.best(child, forest.height(child), forest.depth_max, Some(record));
                forest.attach(child, reference);
            }
            forest.settle(record);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn depth(chosen: &[Option<u8>], record: usize) -> usize {
        let parent = |at: usize| chosen[at].and_then(|slot| neighbour(at, usize::from(slot), chosen.len()));
        std::iter::successors(Some(record), |&at| parent(at)).take(chosen.len() + 1).count() - 1
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]
        #[test]
        fn forests_are_shallow_and_no_dearer_than_none(
            alone in proptest::collection::vec(50u32..100, 1..60),
            seed: u64,
            window in 1usize..5,
            depth_max in 0u8..4,
        ) {
            let records = alone.len();
            let mut state = seed | 1;
            let mut costs = Costs::default();
            let mut all = Vec::new();
            for (record, &alone) in alone.iter().enumerate() {
                let pairs: Vec<_> = (0..2 * window).map(|slot| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(slot as u64 * 2 + 1);
                    (slot, (state >> 33) as u32 % 120)
                }).collect();
                let others = pairs.iter().filter_map(|&(slot, bits)| Some((neighbour(record, slot, records)?, bits)));
                costs.push(alone, others);
                all.push(pairs);
            }
            let chosen = choose(&costs, depth_max);
            for record in 0..records {
                prop_assert!(depth(&chosen, record) <= usize::from(depth_max));
            }
            let cost = |(record, slot): (usize, &Option<u8>)| {
                slot.map_or(alone[record], |slot| all[record][usize::from(slot)].1)
            };
            let total: u64 = chosen.iter().enumerate().map(cost).map(u64::from).sum();
            prop_assert!(total <= alone.iter().copied().map(u64::from).sum());
        }
    }
}
