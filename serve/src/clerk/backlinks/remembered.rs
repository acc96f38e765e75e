//! The targets of backlinks that were asked for last, with the pages that link to them.
//!
//! Memory: [`REMEMBERED_PAGES`] pages of about 200 bytes.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Weak};

use webstrata_layers::{LinkingPart, Scope, Uid};

use crate::clerk::{ClerkState, lock};

/// The key of a target in [`Remembered`]: the store, the epoch, the UIDs and the scope.
#[derive(PartialEq, Eq)]
pub(in crate::clerk) struct TargetKey {
    pub(in crate::clerk) store: String,
    pub(in crate::clerk) epoch: u64,
    pub(in crate::clerk) target: Vec<Range<Uid>>,
    pub(in crate::clerk) scope: Scope,
}

/// All pages that link to a target.
type Parts = Vec<LinkingPart>;

/// The linking pages of the targets that were asked for last, the latest target at the end. Only targets with few pages
/// are remembered.
#[derive(Default)]
pub(in crate::clerk) struct Remembered(VecDeque<(TargetKey, Arc<Parts>)>);

impl Remembered {
    pub(in crate::clerk) fn get(&mut self, key: &TargetKey) -> Option<Arc<Parts>> {
        let at = self.0.iter().position(|(known, _)| known == key)?;
        let entry = self.0.remove(at)?;
        let found = entry.1.clone();
        self.0.push_back(entry);
        Some(found)
    }

    pub(in crate::clerk) fn put(&mut self, key: TargetKey, parts: Arc<Parts>) {
        self.0.retain(|(known, _)| *known != key);
        self.0.push_back((key, parts));
        let pages = |entries: &VecDeque<(TargetKey, Arc<Parts>)>| {
            entries.iter().flat_map(|(_, parts)| &**parts).map(|part| part.pages.len()).sum::<usize>()
        };
        while self.0.len() > REMEMBERED_TARGETS || pages(&self.0) > REMEMBERED_PAGES && !self.0.is_empty() {
            self.0.pop_front();
        }
    }
}

/// Forgets the targets of epochs that are no longer served, whenever the map changes.
pub(in crate::clerk) async fn forget_retired(clerk: Weak<ClerkState>) {
    let Some(mut maps) = clerk.upgrade().map(|shared| shared.map.clone()) else { return };
    while maps.changed().await.is_ok() {
        let Some(shared) = clerk.upgrade() else { return };
        let map = maps.borrow_and_update().clone();
        lock(&shared.remembered).0.retain(|(known, _)| map.epochs.contains_key(&known.epoch));
    }
}

/// The most remembered targets, the most pages of one remembered target, and the most pages of all remembered targets.
/// A page takes about 200 bytes.
const REMEMBERED_TARGETS: usize = 32;
pub(in crate::clerk) const TARGET_PAGES: usize = 1 << 14;
const REMEMBERED_PAGES: usize = 1 << 17;
