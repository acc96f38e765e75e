//! The nodes of the graph at a date ([`crate::nodes`]), divided among workers in the same way as pages.
//!
//! Each worker knows the URLs that its links lead to, anywhere in the store, and tells the workers that own these URLs.
//! Memory: one bit for each URL of the store, in each worker. Cost: a pass over the links, and two exchanges of these
//! bits.

use super::exchange::{exchange, from_bytes, sums, to_bytes};
use super::{AnalysisContext, NodeRule};
use crate::nodes::Nodes;
use webstrata_engine::Stopped;
use webstrata_layers::{Links, Uid};

/// The nodes of the graph at a date, as one worker knows them.
pub(super) struct SharedNodes {
    /// The nodes among this worker's URLs.
    mine: Nodes,
    /// The number of nodes of all workers.
    pub(super) count: u64,
    /// The nodes of all workers, in worker 0 only.
    pub(super) all: Option<Nodes>,
}

impl SharedNodes {
    /// Returns the nodes: these pages of this worker and the URLs that these links lead to, or all URLs if the rule
    /// says so.
    pub(super) fn of(
        context: &mut AnalysisContext<'_>,
        alive: impl Iterator<Item = Uid>,
        links: impl Iterator<Item = u32>,
    ) -> Result<Self, Stopped> {
        let my_uids = context.my_uids();
        if context.nodes == NodeRule::All {
            return Self::shared(context, Nodes::all(&my_uids));
        }
        let mut linked = Nodes::none(&Uid::below(context.store.urls()));
        links.for_each(|link| linked.insert(Uid(link.into())));
        let outgoing = context.ranges.iter().map(|uids| to_bytes(linked.words_of(uids))).collect();
        drop(linked);
        let mut mine = Nodes::none(&my_uids);
        alive.for_each(|uid| mine.insert(uid));
        for bytes in exchange(context, outgoing)? {
            mine.unite(my_uids.start, &from_bytes::<u64>(&bytes));
        }
        Self::shared(context, mine)
    }

    fn shared(context: &mut AnalysisContext<'_>, mine: Nodes) -> Result<Self, Stopped> {
        let [count] = sums(context, [mine.len() as f64])?;
        let mut outgoing = vec![Vec::new(); context.worker.peers()];
        outgoing[0] = to_bytes(mine.words_of(&context.my_uids()));
        let received = exchange(context, outgoing)?;
        let all = (context.worker.index() == 0).then(|| {
            let mut all = Nodes::none(&Uid::below(context.store.urls()));
            for (uids, bytes) in context.ranges.iter().zip(&received) {
                all.unite(uids.start, &from_bytes::<u64>(bytes));
            }
            all
        });
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts of less than 2^32 URLs")]
        Ok(Self { mine, count: count as u64, all })
    }

    /// Whether a URL of this worker is a node. `first` is the first UID of the worker, and `index` counts from it.
    pub(super) fn holds(&self, first: Uid, index: usize) -> bool {
        self.mine.holds(first + index as u64)
    }
}
