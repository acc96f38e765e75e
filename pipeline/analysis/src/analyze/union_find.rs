//! Which URLs are connected: sets that grow together, shared by the workers of a process.
//!
//! Every URL points to one that is not above it, and the least of a set to itself. Threads join sets at the same time
//! without locks: a root is only ever replaced by a lesser one, and only where it still is a root. Memory: 4 bytes a
//! URL of the store in each process. Cost: a few steps a join.

use super::Ground;
use super::exchange::{Number, exchange};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use webstrata_pipeline::engine::job::Stopped;

/// See the head of this file.
pub(super) struct UnionFind(Vec<AtomicU32>);

impl UnionFind {
    /// URLs that are not connected.
    pub(super) fn new(urls: u32) -> Self {
        Self((0..urls).map(AtomicU32::new).collect())
    }

    /// The least URL that is known to be connected with this one.
    pub(super) fn find(&self, mut uid: u32) -> u32 {
        loop {
            let parent = self.0[uid as usize].load(Relaxed);
            let above = self.0[parent as usize].load(Relaxed);
            if parent == above {
                return parent;
            }
            // Halves the way for whoever comes next. It may lose against another thread, which has then shortened it,
            // too.
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

    /// Brings what other processes have joined to worker 0, where it is whole then. All workers call it when they have
    /// joined what they had; none of them may read before.
    pub(super) fn unite(&self, ground: &mut Ground<'_>) -> Result<(), Stopped> {
        // Nobody is at it any more when this returns.
        ground.wait()?;
        let (index, peers) = (ground.worker.index(), ground.worker.peers());
        let mut outgoing = vec![Vec::new(); peers];
        if index > 0 && index.is_multiple_of(ground.job.workers()) {
            for (uid, parent) in (0u32..).zip(&self.0) {
                let parent = parent.load(Relaxed);
                if parent != uid {
                    uid.put(&mut outgoing[0]);
                    parent.put(&mut outgoing[0]);
                }
            }
        }
        for bytes in exchange(ground, outgoing)? {
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let (uid, parent) = (u32::take(&mut rest), u32::take(&mut rest));
                self.join(uid, parent);
            }
        }
        Ok(())
    }

    /// The least URL connected with each.
    pub(super) fn labels(&self) -> Vec<u32> {
        let mut labels: Vec<u32> = Vec::with_capacity(self.0.len());
        for (uid, parent) in (0u32..).zip(&self.0) {
            // A parent is lesser, so its label is there already.
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
