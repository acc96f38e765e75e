//! Connected URLs: sets that grow together, shared by the workers of a process.
//!
//! Every URL points to a URL that is not greater, and the least URL of a set points to itself. Threads join sets
//! concurrently without locks: a thread replaces a root only by a lesser URL, and only if it is still a root. Memory: 4
//! bytes for each URL of the store, in each process. Cost: a few steps per join.

use super::AnalysisContext;
use super::exchange::{Number, exchange};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use webstrata_engine::Stopped;

/// The parent of each URL.
pub(super) struct UnionFind(Vec<AtomicU32>);

impl UnionFind {
    /// Returns URLs that are not connected.
    pub(super) fn new(urls: u32) -> Self {
        Self((0..urls).map(AtomicU32::new).collect())
    }

    /// Returns the least URL that is known to be connected with this URL.
    pub(super) fn find(&self, mut uid: u32) -> u32 {
        loop {
            let parent = self.0[uid as usize].load(Relaxed);
            let above = self.0[parent as usize].load(Relaxed);
            if parent == above {
                return parent;
            }
            // Halves the path for later calls. The exchange may fail because of another thread. That thread has then
            // shortened the path, too.
            let _ = self.0[uid as usize].compare_exchange_weak(parent, above, Relaxed, Relaxed);
            uid = above;
        }
    }

    /// Connects two URLs.
    pub(super) fn join(&self, one: u32, other: u32) {
        let (mut one, mut other) = (one, other);
        loop {
            (one, other) = (self.find(one), self.find(other));
            if one == other {
                return;
            }
            let (least, greatest) = (one.min(other), one.max(other));
            if self.0[greatest as usize].compare_exchange(greatest, least, Relaxed, Relaxed).is_ok() {
                return;
            }
        }
    }

    /// Brings the joins of other processes to worker 0, which then has all joins. All workers call this function when
    /// they have made their joins. No worker may read the sets before this call.
    pub(super) fn unite(&self, context: &mut AnalysisContext<'_>) -> Result<(), Stopped> {
        // After this call, no worker changes the sets any more.
        context.wait()?;
        let (index, peers) = (context.worker.index(), context.worker.peers());
        let mut outgoing = vec![Vec::new(); peers];
        if index > 0 && index.is_multiple_of(context.job.workers()) {
            for (uid, parent) in (0u32..).zip(&self.0) {
                let parent = parent.load(Relaxed);
                if parent != uid {
                    uid.put(&mut outgoing[0]);
                    parent.put(&mut outgoing[0]);
                }
            }
        }
        for bytes in exchange(context, outgoing)? {
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let (uid, parent) = (u32::take(&mut rest), u32::take(&mut rest));
                self.join(uid, parent);
            }
        }
        Ok(())
    }

    /// Returns, for each URL, the least URL that is connected with it.
    pub(super) fn labels(&self) -> Vec<u32> {
        let mut labels: Vec<u32> = Vec::with_capacity(self.0.len());
        for (uid, parent) in (0u32..).zip(&self.0) {
            // A parent is less than the URL, so the label of the parent is already there.
            let parent = parent.load(Relaxed);
            labels.push(if parent == uid { uid } else { labels[parent as usize] });
        }
        labels
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn joins_of_two_threads_are_those_of_one(pairs in proptest::collection::vec((0u32..60, 0u32..60), 0..80)) {
            let shared = UnionFind::new(60);
            let (ours, theirs) = pairs.split_at(pairs.len() / 2);
            std::thread::scope(|scope| {
                for half in [ours, theirs] {
                    scope.spawn(|| half.iter().for_each(|&(one, other)| shared.join(one, other)));
                }
            });
            let mut labels: Vec<u32> = (0..60).collect();
            for &(one, other) in &pairs {
                let (a, b) = (labels[one as usize], labels[other as usize]);
                labels.iter_mut().filter(|label| **label == a.max(b)).for_each(|label| *label = a.min(b));
            }
            prop_assert_eq!(shared.labels(), labels);
        }
    }
}
