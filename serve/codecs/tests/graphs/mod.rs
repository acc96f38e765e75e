//! Graphs for tests: arbitrary lists, uniform lists, and lists that copy from earlier ones as on the web.

use proptest::prelude::*;
use std::collections::BTreeSet;
use webstrata_cells::bench::Random;
use webstrata_cells::links::lists::Lists;

/// Arbitrary lists, with UIDs far apart and near.
pub(crate) fn lists() -> impl Strategy<Value = Vec<Vec<u64>>> {
    let uid = prop_oneof![0u64..100, 0u64..1 << 20, 0u64..1 << 40, (1u64 << 40)..(1 << 40) + 500, 0u64..1 << 61];
    let list = proptest::collection::btree_set(uid, 0..20).prop_map(|list| list.into_iter().collect());
    proptest::collection::vec(prop_oneof![Just(Vec::new()), list], 0..60)
}

/// Lists of links drawn uniformly.
pub(crate) fn uniform(seed: u64, nodes: usize, first: u64) -> Lists {
    let (mut random, mut lists) = (Random::new(seed), Lists { first, ..Lists::default() });
    for _ in 0..nodes {
        let list: BTreeSet<u64> = (0..random.below(30)).map(|_| random.below(1 << 34)).collect();
        lists.push(&list.into_iter().collect::<Vec<_>>());
    }
    lists
}

/// Lists that take most of their links from an earlier list. Other links are near the node, in runs, or far away.
pub(crate) fn clustered(seed: u64, nodes: usize, first: u64) -> Lists {
    let (mut random, mut lists) = (Random::new(seed), Lists { first, ..Lists::default() });
    for (at, node) in (0..nodes).zip(0u64..) {
        let mut list = BTreeSet::new();
        if at > 0 && random.below(4) > 0 {
            let old = lists.list(at - 1 - random.index(at.min(9))).to_vec();
            list.extend(old.into_iter().filter(|_| random.below(8) > 0));
        }
        for _ in 0..random.below(6) {
            let near = first + node.saturating_sub(random.below(60)) + random.below(60);
            list.extend(near..near + 1 + random.below(5));
        }
        if random.below(3) == 0 {
            list.insert(random.below(1 << 42));
        }
        if random.below(10) == 0 {
            list.clear();
        }
        lists.push(&list.into_iter().collect::<Vec<_>>());
    }
    lists
}
