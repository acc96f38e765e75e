//! The nodes of the graph at a date ([`crate::nodes`]), shared out among workers as their pages are.
//!
//! Each worker knows which URLs its links lead to, anywhere in the store, and tells the workers that have these.
//! Memory: a bit a URL of the store, in each worker. Cost: a pass over the links, and two exchanges of that bit.

use super::exchange::{exchange, from_bytes, sums, to_bytes};
use super::{Ground, NodeRule};
use crate::nodes::Nodes;
use webstrata_layers::{Links, Uid};
use webstrata_pipeline::engine::job::Stopped;

/// See the head of this file.
pub(super) struct SharedNodes {
    /// Those among this worker's URLs.
    mine: Nodes,
    /// How many all workers have.
    pub(super) count: u64,
    /// Those of all workers, in worker 0.
    pub(super) all: Option<Nodes>,
}

impl SharedNodes {
    /// Nodes are these pages of this worker, and what these links lead to; or all URLs, where that is the rule.
    pub(super) fn of(
        ground: &mut Ground<'_>,
        alive: impl Iterator<Item = Uid>,
        links: impl Iterator<Item = u32>,
    ) -> Result<Self, Stopped> {
        let my_uids = ground.my_uids();
        if ground.nodes == NodeRule::All {
            return Self::shared(ground, Nodes::all(&my_uids));
        }
        let mut linked = Nodes::none(&Uid::below(ground.store.urls()));
        links.for_each(|link| linked.insert(Uid(link.into())));
        let outgoing = ground.ranges.iter().map(|uids| to_bytes(linked.words_of(uids))).collect();
        drop(linked);
        let mut mine = Nodes::none(&my_uids);
        alive.for_each(|uid| mine.insert(uid));
        for bytes in exchange(ground, outgoing)? {
            mine.unite(my_uids.start, &from_bytes::<u64>(&bytes));
        }
        Self::shared(ground, mine)
    }

    fn shared(ground: &mut Ground<'_>, mine: Nodes) -> Result<Self, Stopped> {
        let [count] = sums(ground, [mine.len() as f64])?;
        let mut outgoing = vec![Vec::new(); ground.worker.peers()];
        outgoing[0] = to_bytes(mine.words_of(&ground.my_uids()));
        let received = exchange(ground, outgoing)?;
        let all = (ground.worker.index() == 0).then(|| {
            let mut all = Nodes::none(&Uid::below(ground.store.urls()));
            for (uids, bytes) in ground.ranges.iter().zip(&received) {
                all.unite(uids.start, &from_bytes::<u64>(bytes));
            }
            all
        });
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts of less than 2^32 URLs")]
        Ok(Self { mine, count: count as u64, all })
    }

    /// Whether a URL of this worker is a node; `index` counts from its first one.
    pub(super) fn holds(&self, first: Uid, index: usize) -> bool {
        self.mine.holds(first + index as u64)
    }
}
