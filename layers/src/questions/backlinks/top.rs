//! The first rows in an order, while many rows arrive. Memory depends only on the number of requested rows.
//!
//! Cost: a search among the kept rows for each row that is kept; a comparison for every other row.

use std::collections::BinaryHeap;

/// The place of a row in an order. Places compare in the same way as the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(pub [u64; 3]);

/// A number that rises with the time.
pub(crate) fn rising(time: i64) -> u64 {
    time.cast_unsigned() ^ (1 << 63)
}

/// A row with its place in the requested order.
#[derive(Debug)]
struct Placed<R>(Place, R);

impl<R> PartialEq for Placed<R> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<R> Eq for Placed<R> {}

impl<R> PartialOrd for Placed<R> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<R> Ord for Placed<R> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}

/// The first rows after a place.
#[derive(Debug)]
pub(crate) struct Top<R> {
    after: Option<Place>,
    limit: usize,
    /// The kept rows; the top of the heap is the row that comes last.
    rows: BinaryHeap<Placed<R>>,
    /// The number of rows after the place, kept or not.
    count: u64,
}

impl<R> Top<R> {
    /// Starts without rows, and will keep at most `limit` rows.
    pub(crate) fn new(after: Option<Place>, limit: usize) -> Self {
        Self { after, limit, rows: BinaryHeap::new(), count: 0 }
    }

    /// Adds a row. Returns the row that is not kept, if there is one: this row, or the row that this row replaces.
    pub(crate) fn put(&mut self, place: Place, row: R) -> Option<R> {
        if self.after.is_some_and(|after| place <= after) {
            return Some(row);
        }
        self.count += 1;
        if self.rows.len() < self.limit {
            self.rows.push(Placed(place, row));
            return None;
        }
        match self.rows.peek_mut() {
            Some(mut last) if place < last.0 => Some(std::mem::replace(&mut *last, Placed(place, row)).1),
            _ => Some(row),
        }
    }

    /// The number of kept rows.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The kept rows, in order, and the number of rows after the last one.
    pub(crate) fn finish(self) -> (Vec<R>, u64) {
        let left = self.count - self.rows.len() as u64;
        (self.rows.into_sorted_vec().into_iter().map(|Placed(_, row)| row).collect(), left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pages_of_rows_are_the_rows_in_order(
            places in prop::collection::btree_set(prop::array::uniform3(0..4_u64), 0..40), limit in 1..9_usize,
            seed in any::<u64>(),
        ) {
            let mut mixed: Vec<[u64; 3]> = places.iter().copied().collect();
            mixed.sort_by_key(|[a, b, c]| (a * 37 + b * 11 + c * 5).wrapping_mul(seed | 1));
            let (mut found, mut after) = (Vec::new(), None);
            loop {
                let mut top = Top::new(after, limit);
                let kept = mixed.iter().filter(|&&place| top.put(Place(place), place).is_none()).count();
                let (rows, left) = top.finish();
                prop_assert!(rows.len() <= kept && rows.len() <= limit);
                found.extend_from_slice(&rows);
                prop_assert_eq!(left, (places.len() - found.len()) as u64);
                let Some(&last) = rows.last() else { break };
                after = Some(Place(last));
            }
            prop_assert_eq!(found, places.into_iter().collect::<Vec<_>>());
        }
    }
}
