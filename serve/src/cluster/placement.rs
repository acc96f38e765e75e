//! Placement of the cells of a row on servers: rendezvous hashing (Thaler & Ravishankar 1998) with bounded loads
//! (Mirrokni et al. 2018).
//!
//! Each pair of a cell and a server has a score. A cell is placed on the servers with the highest scores that have
//! capacity, in this order. Cells are placed one after the other. A server has capacity for a cell if its load with the
//! cell is at most the mean load plus the larger of one cell and a tenth of its final share. Few cells are therefore
//! spread as evenly as possible, and with many cells the bound changes almost no placement.
//!
//! Servers that know the same members compute the same placement without communication. A new member takes cells
//! evenly from all others. The cells of a lost member go to the next servers in their orders. With many cells, nothing
//! else moves; with few cells, a cell that was displaced by the bound may move too.
//!
//! Rows are placed independently, so a new row moves no cell of another row. Cost: one hash for each pair.

use std::cmp::Reverse;

use webstrata_layers::PartitionEntry;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A cell to place.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// The partition of the cell.
    pub partition: u32,
    /// The load of the cell, in any unit.
    pub weight: u64,
}

impl Load {
    /// The load of a partition: the bytes of its layers.
    pub fn of(partition: &PartitionEntry) -> Self {
        Self { partition: partition.partition, weight: partition.files.iter().map(|file| file.bytes).sum() }
    }
}

/// The loads of the servers, and their bound.
struct Capacity {
    loads: Vec<u64>,
    /// The sum of all loads so far.
    placed: u64,
    takers: u64,
    /// How far a load may exceed the mean load so far.
    slack: u64,
}

impl Capacity {
    /// Capacities for this many copies of each cell.
    fn new(cells: &[Load], servers: usize, takers: usize, copies: usize) -> Self {
        let all: u64 = cells.iter().map(|cell| cell.weight).sum::<u64>() * copies as u64;
        let (takers, heaviest) = ((takers as u64).max(1), cells.iter().map(|cell| cell.weight).max().unwrap_or(0));
        Self { loads: vec![0; servers], placed: 0, takers, slack: (all / takers / 10).max(heaviest) }
    }

    fn has(&self, server: usize, weight: u64) -> bool {
        self.loads[server] + weight <= self.placed / self.takers + self.slack
    }

    fn add(&mut self, server: usize, weight: u64) {
        self.loads[server] += weight;
        self.placed += weight;
    }

    /// The first server with capacity, or the server with the smallest load if none has capacity.
    fn choose(&self, servers: &[usize], weight: u64) -> Option<usize> {
        let first = servers.iter().copied().find(|&server| self.has(server, weight));
        first.or_else(|| servers.iter().copied().min_by_key(|&server| self.loads[server]))
    }
}

/// For each cell of a row, all `servers` by index, and how many of them the cell is placed on: first these servers (at
/// most `copies`), then the others in the order of their scores. Cells are placed only on servers that accept cells
/// (`takes`). The first server of a cell is asked first, so the first servers are spread evenly too.
///
/// ```
/// use webstrata_serve::cluster::placement::{Load, place};
///
/// let cells: Vec<Load> = (0..30).map(|partition| Load { partition, weight: 1 }).collect();
/// let first = |servers: &[&str]| -> Vec<String> {
///     let placed = place(1, &cells, servers, &vec![true; servers.len()], 2);
///     placed.iter().map(|(order, _)| servers[order[0]].to_owned()).collect()
/// };
/// let before = first(&["a:7400", "b:7400", "c:7400"]);
/// for server in ["a:7400", "b:7400", "c:7400"] {
///     assert!((8..=12).contains(&before.iter().filter(|first| *first == server).count()));
/// }
/// // Every server computes the same placement, in whatever order it has met the others.
/// assert_eq!(first(&["c:7400", "a:7400", "b:7400"]), before);
/// ```
pub fn place(
    row: u32,
    cells: &[Load],
    servers: &[impl AsRef<str>],
    takes: &[bool],
    copies: usize,
) -> Vec<(Vec<usize>, usize)> {
    let takers = takes.iter().filter(|&&takes| takes).count();
    let copies = copies.min(takers);
    let mut all = Capacity::new(cells, servers.len(), takers, copies);
    let mut first = Capacity::new(cells, servers.len(), takers, 1.min(copies));
    let mut placed: Vec<(Vec<usize>, usize)> = vec![(Vec::new(), copies); cells.len()];
    // Heavy cells first: light cells fill the remaining capacity.
    let mut order: Vec<usize> = (0..cells.len()).collect();
    order.sort_by_key(|&cell| (Reverse(cells[cell].weight), cells[cell].partition));
    for cell in order {
        let Load { partition, weight } = cells[cell];
        let mut ranked = rank(row, partition, servers);
        let mut chosen = Vec::with_capacity(servers.len());
        while chosen.len() < copies {
            let free: Vec<usize> =
                ranked.iter().copied().filter(|server| takes[*server] && !chosen.contains(server)).collect();
            let Some(server) = all.choose(&free, weight) else { break };
            all.add(server, weight);
            chosen.push(server);
        }
        if let Some(server) = first.choose(&chosen, weight) {
            first.add(server, weight);
            chosen.retain(|&other| other != server);
            chosen.insert(0, server);
        }
        ranked.retain(|server| !chosen.contains(server));
        chosen.append(&mut ranked);
        placed[cell].0 = chosen;
    }
    placed
}

/// The indexes of `servers` in the order of their scores for a cell.
fn rank(row: u32, partition: u32, servers: &[impl AsRef<str>]) -> Vec<usize> {
    let cell = u64::from(row) << 32 | u64::from(partition);
    let mut scores: Vec<(u64, usize)> = servers
        .iter()
        .enumerate()
        .map(|(index, name)| (xxh3_64_with_seed(name.as_ref().as_bytes(), cell), index))
        .collect();
    // Names are unique, so they break ties of hashes.
    scores.sort_unstable_by(|one, other| {
        other.0.cmp(&one.0).then_with(|| servers[one.1].as_ref().cmp(servers[other.1].as_ref()))
    });
    scores.into_iter().map(|(_, index)| index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("10.0.0.{number}:7400")).collect()
    }

    fn equal(cells: u32) -> Vec<Load> {
        (0..cells).map(|partition| Load { partition, weight: 7 }).collect()
    }

    /// The servers that each cell belongs to.
    fn of(row: u32, cells: &[Load], servers: usize, copies: usize) -> Vec<Vec<usize>> {
        let placed = place(row, cells, &names(servers), &vec![true; servers], copies);
        placed.into_iter().map(|(own, copies)| own[..copies].to_vec()).collect()
    }

    fn loads(placed: &[Vec<usize>], servers: usize) -> Vec<usize> {
        (0..servers).map(|at| placed.iter().filter(|own| own.contains(&at)).count()).collect()
    }

    #[test]
    fn many_cells_are_spread_evenly_and_move_only_to_who_comes() {
        let (before, after) = (of(1, &equal(3000), 3, 2), of(1, &equal(3000), 6, 2));
        let mut moved = 0;
        for (before, after) in before.iter().zip(&after) {
            for at in after {
                moved += u32::from(!before.contains(at));
                assert!(*at >= 3 || before.contains(at), "a cell moved to one that was there");
            }
        }
        // Each server holds about 1,000 cells, with a standard deviation of 29. Half of all 6,000 copies are on the new
        // servers.
        assert!(loads(&after, 6).iter().all(|cells| (880..=1100).contains(cells)), "{:?}", loads(&after, 6));
        assert!((2800..3200).contains(&moved), "{moved}");
    }

    #[test]
    fn few_cells_are_spread_as_evenly_as_they_can_be() {
        let mut others = 0;
        for row in 0..200 {
            let placed = of(row, &equal(14), 5, 2);
            let loads = loads(&placed, 5);
            assert!(loads.iter().all(|cells| (4..=7).contains(cells)), "row {row}: {loads:?}");
            let first = |at: usize| placed.iter().filter(|own| own[0] == at).count();
            assert!((0..5).all(|at| (1..=4).contains(&first(at))), "row {row}: {placed:?}");
            // A new server takes its share, and some cells move because of the bound.
            let grown = of(row, &equal(14), 6, 2);
            let moved = |at: &usize, before: &Vec<usize>| !before.contains(at) && *at < 5;
            others += grown
                .iter()
                .zip(&placed)
                .map(|(own, old)| own.iter().filter(|at| moved(at, old)).count())
                .sum::<usize>();
        }
        assert!(others <= 200 * 8, "of 28 copies {} moved between those that were there", others as f64 / 200.0);
    }

    #[test]
    fn the_heavy_ones_go_apart() {
        let cells: Vec<Load> =
            (0..9).map(|partition| Load { partition, weight: if partition % 3 == 0 { 1000 } else { 1 } }).collect();
        for row in 0..100 {
            let placed = of(row, &cells, 3, 1);
            let heavy = |at: usize| (0..9).step_by(3).filter(|&cell| placed[cell][0] == at).count();
            assert!((0..3).all(|at| heavy(at) == 1), "row {row}: {placed:?}");
        }
    }

    #[test]
    fn the_order_of_members_does_not_matter() {
        let names = names(5);
        let mut turned = names.clone();
        turned.reverse();
        let by_name = |names: &[String]| -> Vec<Vec<String>> {
            let placed = place(2, &equal(40), names, &[true; 5], 2);
            placed.into_iter().map(|(own, _)| own.into_iter().map(|at| names[at].clone()).collect()).collect()
        };
        assert_eq!(by_name(&names), by_name(&turned));
    }

    proptest! {
        #[test]
        fn each_server_stands_once_and_those_that_take_none_have_none(
            weights in proptest::collection::vec(prop_oneof![Just(0u64), 0u64..9, Just(1 << 40)], 0..30),
            takes in proptest::collection::vec(any::<bool>(), 0..7),
            copies in 0usize..5,
        ) {
            let cells: Vec<Load> =
                (0..).zip(&weights).map(|(partition, &weight)| Load { partition, weight }).collect();
            let placed = place(3, &cells, &names(takes.len()), &takes, copies);
            prop_assert_eq!(placed.len(), cells.len());
            for (own, belongs) in placed {
                prop_assert_eq!(belongs, copies.min(takes.iter().filter(|&&takes| takes).count()));
                prop_assert!(own[..belongs].iter().all(|&at| takes[at]));
                let mut all = own;
                all.sort_unstable();
                prop_assert_eq!(all, (0..takes.len()).collect::<Vec<_>>());
            }
        }
    }
}
