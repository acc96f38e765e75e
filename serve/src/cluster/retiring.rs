//! The epochs that a server answers, and when the server gives up the other epochs.
//!
//! An epoch is answered for a grace period after the next epoch is current. An epoch that takes something out of the
//! store ([`webstrata_layers::Provenance`]) gives earlier epochs no grace. Once it is current, no question gets an
//! answer from an earlier epoch. The cells of earlier epochs stay for [`PARTING`] only, for calls that still run.
//!
//! Until such an epoch is current, the epoch before it is answered, for a bounded time. If the server cannot get the
//! cells of the new epoch in that time, it answers nothing, rather than data that was taken out. The time counts from
//! when this server first knew of the epoch, from the store or from another server.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use webstrata_layers::log::log;
use webstrata_layers::{Error, Store};

use super::{Cluster, State, blocking};

/// How long the cells of an epoch stay after a later epoch took something out.
pub(super) const PARTING: Duration = Duration::from_secs(1);
/// How long an epoch that takes something out waits for all its replicas, once it has one replica of each cell.
pub(super) const URGENCY: Duration = Duration::from_secs(3);

/// The last epoch that took something out of answers.
pub(super) fn removed_in(store: &Store) -> u64 {
    store.manifest().provenance.removed_in.unwrap_or(0)
}

/// Epochs before this one are retired.
fn retires_before(store: &Store) -> u64 {
    store.manifest().provenance.retires_before.unwrap_or(0)
}

impl State {
    /// The first epoch that does not contain the data that the current epoch took out.
    fn first_clean(&self) -> u64 {
        self.stores.range(..=self.current).map(|(_, store)| retires_before(store)).max().unwrap_or(0)
    }

    /// The newest epoch that takes something out, if this server knows of one.
    pub(super) fn removal(&self) -> Option<u64> {
        let opened = self.stores.values().map(|store| removed_in(store));
        opened.chain(self.told.map(|(first, _)| first)).max().filter(|&first| first > 0)
    }

    /// Since when this server has known of data that must be taken out and is still answered.
    fn late_since(&self) -> Option<Instant> {
        let coming = self.stores.iter().filter(|(_, store)| removed_in(store) > self.current);
        let opened = coming.filter_map(|(epoch, _)| self.opened.get(epoch).copied());
        opened.chain(self.told.filter(|(first, _)| *first > self.current).map(|(_, since)| since)).min()
    }

    /// The epochs that are answered: the first and the current; `(0, 0)` for none.
    pub(super) fn answered(&self, removal_max: Duration) -> (u64, u64) {
        let is_late = self.late_since().is_some_and(|since| since.elapsed() >= removal_max);
        if is_late { (0, 0) } else { (self.first_clean(), self.current) }
    }

    /// Gives up the epochs whose time is over. The caller drops the returned epochs once their images are gone.
    pub(super) fn retire(&mut self, grace: Duration) -> Vec<Arc<Store>> {
        let first = self.first_clean();
        let stays = |epoch: u64| if epoch < first { grace.min(PARTING) } else { grace };
        let ended = self.superseded.iter().filter(|&(&epoch, since)| since.elapsed() >= stays(epoch));
        let ended: Vec<u64> = ended.map(|(&epoch, _)| epoch).collect();
        let mut gone = Vec::new();
        for epoch in ended {
            tracing::info!(epoch, "retired an epoch");
            gone.extend(self.stores.remove(&epoch));
            self.superseded.remove(&epoch);
            self.opened.remove(&epoch);
            self.relinquished.remove(&epoch);
            self.retired = epoch.max(self.retired);
        }
        gone
    }
}

/// At the start of a server, removes the images of rows that belong to no epoch that may be answered. Something may
/// have been taken out of the store while the server was down.
pub(super) async fn forget_retired(cluster: &Arc<Cluster>) {
    let cluster = cluster.clone();
    let forgotten = blocking(move || {
        let newest = Store::open(&cluster.location)?;
        let mut rows = BTreeSet::new();
        for committed in log(cluster.location.clone())? {
            let manifest = committed?.manifest;
            if !newest.manifest().has_retired(manifest.epoch) {
                rows.extend(manifest.rows.iter().map(|row| row.row));
            }
        }
        let kept = cluster.shelf.keep(&|row, _| rows.contains(&row));
        kept.map_err(|error| Error::Elsewhere(Box::new(error)))
    });
    match forgotten.await {
        Ok(Ok(bytes)) if bytes > 0 => tracing::info!(bytes, "removed images of retired epochs"),
        Ok(Err(error)) => tracing::warn!(%error, "cannot look for images of retired epochs"),
        _ => {}
    }
}
