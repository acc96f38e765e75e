//! Which record each record is coded against: a local search over the costs of all pairs in a window.
//!
//! Reads the cost of each record alone and against each neighbour, before and after it; gives each record's reference. The
//! references form a forest of bounded depth, so that decoding a list touches at most `depth + 1` records. The best forest is
//! hard to find (Adler & Mitzenmacher 2001); greedy choices, then moves that lower the sum, come close. Each move pays for
//! itself, or is taken back. Memory: four
//! bytes a pair; some ten nanoseconds a pair.

/// Cost of a pair that shares nothing.
pub(super) const NEVER: u32 = u32::MAX;

/// What records cost, in bits.
pub(super) struct Costs {
    /// Neighbours on each side that may be references.
    pub(super) window: usize,
    /// Without a reference.
    pub(super) alone: Vec<u32>,
    /// Against each neighbour: `2 * window` slots a record, see [`neighbour`].
    pub(super) pairs: Vec<u32>,
}

/// The record that a slot means: 0 is the one before, 1 the one after, 2 the second before, and so on.
#[inline]
pub(super) fn neighbour(record: usize, slot: usize, records: usize) -> Option<usize> {
    let distance = slot / 2 + 1;
    if slot.is_multiple_of(2) {
        record.checked_sub(distance)
    } else {
        Some(record + distance).filter(|&other| other < records)
    }
}

/// The slot of `to`, another record, as seen from `from`.
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
        for record in 0..forest.records() {
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
    (0..forest.records())
        .map(|record| forest.parent[record].map(|parent| u8::try_from(slot(record, parent)).unwrap_or(0)))
        .collect()
}

/// Passes over the records, at most.
const PASSES: usize = 4;

struct Forest<'a> {
    costs: &'a Costs,
    depth_max: u8,
    parent: Vec<Option<usize>>,
    /// Records between this and its root.
    depth: Vec<u8>,
    children: Vec<Vec<usize>>,
    /// Bits of what was chosen.
    total: u64,
    /// Records that were moved, with their references before, since the last kept move.
    journal: Vec<(usize, Option<usize>)>,
}

impl<'a> Forest<'a> {
    fn new(costs: &'a Costs, depth_max: u8) -> Self {
        let records = costs.alone.len();
        let total = costs.alone.iter().map(|&bits| u64::from(bits)).sum();
        Self {
            costs,
            depth_max,
            parent: vec![None; records],
            depth: vec![0; records],
            children: vec![Vec::new(); records],
            total,
            journal: Vec::new(),
        }
    }

    fn records(&self) -> usize {
        self.parent.len()
    }

    /// Greedy: the pairs that gain most, first.
    fn begin(&mut self) {
        let mut gains: Vec<(u32, usize, usize)> = Vec::new();
        for record in 0..self.records() {
            let start = gains.len();
            for slot in 0..2 * self.costs.window {
                let Some(other) = neighbour(record, slot, self.records()) else { continue };
                let cost = self.pair(record, other);
                if cost < self.costs.alone[record] {
                    gains.push((self.costs.alone[record] - cost, record, other));
                }
            }
            gains[start..].sort_unstable_by(|a, b| b.cmp(a));
            gains.truncate(start + 8);
        }
        gains.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.cmp(b)));
        for (_, record, other) in gains {
            if self.parent[record].is_none()
                && self.depth[other] + 1 + self.height(record) <= self.depth_max
                && !self.hangs_on(other, record)
            {
                self.attach(record, Some(other));
            }
        }
    }

    fn pair(&self, record: usize, reference: usize) -> u32 {
        self.costs.pairs[record * 2 * self.costs.window + slot(record, reference)]
    }

    fn cost(&self, record: usize, parent: Option<usize>) -> u32 {
        parent.map_or(self.costs.alone[record], |parent| self.pair(record, parent))
    }

    fn current(&self, record: usize) -> u32 {
        self.cost(record, self.parent[record])
    }

    /// Records between this and the farthest that hangs on it.
    fn height(&self, record: usize) -> u8 {
        self.children[record].iter().map(|&child| self.height(child) + 1).max().unwrap_or(0)
    }

    fn hangs_on(&self, mut record: usize, ancestor: usize) -> bool {
        loop {
            if record == ancestor {
                return true;
            }
            match self.parent[record] {
                Some(parent) => record = parent,
                None => return false,
            }
        }
    }

    /// The cheapest place for a record with `height` under it, on a record at `deepest` or above that is not `without`;
    /// what hangs on the record is left out.
    fn best(&self, record: usize, height: u8, deepest: u8, without: Option<usize>) -> (u32, Option<usize>) {
        let mut best = (self.costs.alone[record], None);
        let own = &self.costs.pairs[record * 2 * self.costs.window..][..2 * self.costs.window];
        for (slot, &cost) in own.iter().enumerate() {
            if cost >= best.0 {
                continue;
            }
            let Some(other) = neighbour(record, slot, self.records()) else { continue };
            let fits = self.depth[other] <= deepest
                && self.depth[other] + 1 + height <= self.depth_max
                && Some(other) != without
                && (height == 0 || !self.hangs_on(other, record));
            if fits {
                best = (cost, Some(other));
            }
        }
        best
    }

    fn sink(&mut self, record: usize, depth: u8) {
        self.depth[record] = depth;
        for at in 0..self.children[record].len() {
            self.sink(self.children[record][at], depth + 1);
        }
    }

    fn attach(&mut self, record: usize, parent: Option<usize>) {
        self.journal.push((record, self.parent[record]));
        self.hang(record, parent);
    }

    fn hang(&mut self, record: usize, parent: Option<usize>) {
        self.total = self.total + u64::from(self.cost(record, parent)) - u64::from(self.current(record));
        if let Some(before) = self.parent[record] {
            self.children[before].retain(|&child| child != record);
        }
        self.parent[record] = parent;
        if let Some(parent) = parent {
            self.children[parent].push(record);
        }
        let depth = parent.map_or(0, |parent| self.depth[parent] + 1);
        if depth != self.depth[record] {
            self.sink(record, depth);
        }
    }

    /// Makes moves, and takes them back unless they lower the sum.
    fn attempt(&mut self, moves: impl FnOnce(&mut Self)) -> bool {
        let (mark, before) = (self.journal.len(), self.total);
        moves(self);
        if self.total < before {
            return true;
        }
        while self.journal.len() > mark {
            if let Some((record, parent)) = self.journal.pop() {
                self.hang(record, parent);
            }
        }
        false
    }

    /// Moves a record, and what hangs on it, to its cheapest place.
    fn settle(&mut self, record: usize) {
        let (cost, parent) = self.best(record, self.height(record), self.depth_max, None);
        if cost < self.current(record) {
            self.attach(record, parent);
        }
    }

    /// Hangs a record on another, which must lie above the greatest depth. What would come to lie too deep finds another
    /// place; where the other hangs on the record, that branch is cut off first.
    fn pull(&mut self, record: usize, parent: usize) {
        let mut branch = parent;
        while let Some(above) = self.parent[branch] {
            if above == record {
                self.attach(branch, None);
                break;
            }
            branch = above;
        }
        let mut loose = Vec::new();
        self.shed(record, self.depth[parent] + 1, &mut loose);
        self.attach(record, Some(parent));
        loose.into_iter().for_each(|other| self.settle(other));
        self.settle(branch);
    }

    fn shed(&mut self, record: usize, depth: u8, loose: &mut Vec<usize>) {
        for child in self.children[record].clone() {
            if depth + 1 > self.depth_max {
                self.attach(child, None);
                loose.push(child);
            } else {
                self.shed(child, depth + 1, loose);
            }
        }
    }

    /// As [`Self::lift`], and neighbours bring what hangs on them or leave it behind.
    fn rally(&mut self, record: usize) {
        for depth in 0..self.depth[record] {
            let (_, parent) = match depth {
                0 => (0, None),
                _ => self.best(record, 0, depth - 1, None),
            };
            if parent.is_some_and(|parent| self.hangs_on(parent, record)) {
                continue;
            }
            let lifted = self.attempt(|forest| {
                forest.attach(record, parent);
                for slot in 0..2 * forest.costs.window {
                    let Some(other) = neighbour(record, slot, forest.records()) else { continue };
                    let gains =
                        forest.parent[other] != Some(record) && forest.pair(other, record) < forest.current(other);
                    if gains && forest.depth[record] < forest.depth_max {
                        forest.attempt(|forest| forest.pull(other, record));
                    }
                }
            });
            if lifted {
                return;
            }
        }
    }

    /// Lifts a record nearer to a root, where neighbours that gain may hang on it.
    fn lift(&mut self, record: usize) {
        for depth in 0..self.depth[record] {
            let (cost, parent) = match depth {
                0 => (self.costs.alone[record], None),
                _ => self.best(record, 0, depth - 1, None),
            };
            let loss = u64::from(cost) - u64::from(self.current(record).min(cost));
            let mut gain = 0;
            let mut joining = Vec::new();
            for slot_of in 0..2 * self.costs.window {
                let Some(other) = neighbour(record, slot_of, self.records()) else { continue };
                let (now, then) = (self.current(other), self.pair(other, record));
                let joins = then < now
                    && Some(other) != parent
                    && !parent.is_some_and(|parent| self.hangs_on(parent, other))
                    && self.parent[other] != Some(record)
                    && depth + 1 + self.height(other) <= self.depth_max;
                if joins {
                    gain += u64::from(now - then);
                    joining.push(other);
                }
            }
            let hangs = parent.is_some_and(|parent| self.hangs_on(parent, record));
            if gain <= loss || hangs {
                continue;
            }
            // One that joins may leave another no room, so that the sum of gains is not reached.
            let lifted = self.attempt(|forest| {
                forest.attach(record, parent);
                for other in joining {
                    let fits = forest.depth[record] + 1 + forest.height(other) <= forest.depth_max
                        && !forest.hangs_on(record, other);
                    if fits && forest.pair(other, record) < forest.current(other) {
                        forest.attach(other, Some(record));
                    }
                }
            });
            if lifted {
                return;
            }
        }
    }

    /// Sends what hangs on a record to the next best places, so that the record may hang on another.
    fn dissolve(&mut self, record: usize) {
        if self.children[record].is_empty() {
            return;
        }
        let (cost, parent) = self.best(record, 0, self.depth_max, None);
        if parent.is_some_and(|parent| self.hangs_on(parent, record)) {
            return;
        }
        let gain = u64::from(self.current(record).saturating_sub(cost));
        if gain == 0 {
            return;
        }
        let children = self.children[record].clone();
        let mut loss = 0;
        for &child in &children {
            let (elsewhere, _) = self.best(child, self.height(child), self.depth_max, Some(record));
            loss += u64::from(elsewhere.saturating_sub(self.current(child)));
            if loss >= gain {
                return;
            }
        }
        self.attempt(|forest| {
            for child in children {
                let (_, place) = forest.best(child, forest.height(child), forest.depth_max, Some(record));
                forest.attach(child, place);
            }
            forest.settle(record);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn total(costs: &Costs, chosen: &[Option<u8>]) -> u64 {
        let cost = |(record, slot): (usize, &Option<u8>)| match slot {
            None => costs.alone[record],
            Some(slot) => costs.pairs[record * 2 * costs.window + usize::from(*slot)],
        };
        chosen.iter().enumerate().map(cost).map(u64::from).sum()
    }

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
            let pairs = (0..records * 2 * window).map(|at| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(at as u64 * 2 + 1);
                if neighbour(at / (2 * window), at % (2 * window), records).is_none() { NEVER } else { (state >> 33) as u32 % 120 }
            }).collect();
            let costs = Costs { window, alone, pairs };
            let chosen = choose(&costs, depth_max);
            for record in 0..records {
                prop_assert!(depth(&chosen, record) <= usize::from(depth_max));
            }
            let none = total(&costs, &vec![None; records]);
            prop_assert!(total(&costs, &chosen) <= none);
        }
    }
}
