//! Which servers a cell belongs to: rendezvous hashing (Thaler & Ravishankar 1998).
//!
//! Each pair of a cell and a server has a score; a cell belongs to the servers of highest score, in that order. So all servers
//! that know the same members agree without a word, a member that comes takes its share from all others alike, and one that
//! goes leaves each of its cells to the next in line: nothing else moves. Cost: a hash for each pair.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The places of `servers`, by name, in the order in which a cell belongs to them.
pub fn rank(row: u32, partition: u32, servers: &[impl AsRef<str>]) -> Vec<usize> {
    let cell = u64::from(row) << 32 | u64::from(partition);
    let mut scores: Vec<(u64, usize)> =
        servers.iter().enumerate().map(|(at, name)| (xxh3_64_with_seed(name.as_ref().as_bytes(), cell), at)).collect();
    // Names differ, so their order settles what hashes do not.
    scores.sort_unstable_by(|one, other| {
        other.0.cmp(&one.0).then_with(|| servers[one.1].as_ref().cmp(servers[other.1].as_ref()))
    });
    scores.into_iter().map(|(_, at)| at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("10.0.0.{number}:7400")).collect()
    }

    #[test]
    fn cells_are_spread_evenly_and_move_only_to_who_comes() {
        let (three, six) = (names(3), names(6));
        let (mut load, mut moved) = ([0u32; 6], 0);
        for cell in 0..3000 {
            let (before, after) = (rank(1, cell, &three), rank(1, cell, &six));
            for &at in &after[..2] {
                load[at] += 1;
                moved += u32::from(!before[..2].contains(&at));
                assert!(at >= 3 || before[..2].contains(&at), "cell {cell} moved to one that was there");
            }
        }
        // 1,000 each, 29 a sigma; half of all 6,000 copies are at the new ones.
        assert!(load.iter().all(|cells| (880..1120).contains(cells)), "{load:?}");
        assert!((2800..3200).contains(&moved), "{moved}");
    }

    #[test]
    fn the_order_of_members_does_not_matter() {
        let names = names(5);
        let mut turned = names.clone();
        turned.reverse();
        for cell in 0..100 {
            let by_name =
                |names: &[String]| rank(2, cell, names).iter().map(|&at| names[at].clone()).collect::<Vec<_>>();
            assert_eq!(by_name(&names), by_name(&turned));
        }
    }
}
