//! The epochs of a server: opens the epochs of the store and of other servers, and chooses the current epoch.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::time::Instant;
use webstrata_layers::{Error, Store};

use super::super::blocking;
use super::super::retiring::{URGENCY, removed_in};
use super::super::survey::{Holders, Survey};
use super::{Keeper, PATIENCE};

impl Keeper {
    /// Takes in the epochs that other servers know of. A newer epoch makes this server look at the store at once. An
    /// epoch that takes something out is recorded.
    pub(super) fn listen(&mut self, survey: &Survey) {
        if survey.epochs().last().is_some_and(|id| id.epoch > self.newest.epoch) {
            self.looked = None;
        }
        let first = survey.removed_in();
        let mut state = self.cluster.state();
        if first > state.removal().unwrap_or(0) {
            state.told = Some((first, Instant::now()));
        }
    }

    /// Opens a new epoch of the store in the background.
    pub(super) async fn open_epochs(&mut self) {
        if let Some(opening) = self.opening.take() {
            if !opening.is_finished() {
                self.opening = Some(opening);
                return;
            }
            match opening.await {
                Ok(Ok(Some(store))) => self.add(store),
                Ok(Ok(None)) => {}
                Ok(Err(error @ (Error::Replaced { .. } | Error::RetiredEpoch { .. }))) => {
                    tracing::error!(%error, "what this server serves is no more; it stops");
                    self.cluster.exchanged.send_replace(Some(error.to_string()));
                }
                Ok(Err(error)) => tracing::warn!(%error, "cannot read the store"),
                Err(error) => tracing::error!(%error, "reading the store panicked"),
            }
        }
        let due = self.looked.is_none_or(|looked| looked.elapsed() >= self.cluster.options.watch);
        if due {
            self.looked = Some(Instant::now());
            let (location, known, only) = (self.cluster.location.clone(), self.newest, self.cluster.options.epoch);
            self.opening = Some(tokio::spawn(async move {
                let opened = blocking(move || {
                    let store = Store::open(&location)?;
                    if !store.follows(known) {
                        let found = store.manifest().past(known.epoch);
                        let found = found.or((store.id().epoch == known.epoch).then_some(store.id()));
                        return Err(Error::Replaced { path: location.to_string().into(), known, found });
                    }
                    if let Some(epoch) = only.filter(|&epoch| store.manifest().has_retired(epoch)) {
                        let current = store.id().epoch;
                        return Err(Error::RetiredEpoch { path: location.to_string().into(), epoch, current });
                    }
                    Ok((store.id() != known && only.is_none()).then_some(store))
                });
                opened.await.map_err(|_| Error::Elsewhere("a task of the server panicked; see its log".into()))?
            }));
        }
    }

    /// Opens epochs that other servers serve, so that this server's map covers them.
    pub(super) async fn open_others(&mut self, survey: &Survey) {
        let (retired, known): (u64, BTreeSet<u64>) = {
            let state = self.cluster.state();
            (state.retired, state.stores.keys().copied().collect())
        };
        let unopened = survey.epochs().into_iter().filter(|id| id.epoch > retired && !known.contains(&id.epoch));
        for id in unopened.filter(|id| id.epoch < self.counts.newest).collect::<Vec<_>>() {
            let (location, epoch) = (self.cluster.location.clone(), id.epoch);
            match blocking(move || Store::open_known(location, id)).await {
                Ok(Ok(store)) => self.add(store),
                // The map must not name an epoch that is gone.
                Ok(Err(Error::RetiredEpoch { .. } | Error::MissingEpoch { .. })) => {
                    self.cluster.state().retired = epoch.max(retired);
                }
                // The next check tries again.
                Ok(Err(error)) => tracing::warn!(epoch, %error, "cannot open an epoch that peers serve"),
                Err(status) => tracing::warn!(epoch, %status, "cannot open an epoch that peers serve"),
            }
        }
    }

    fn add(&mut self, store: Store) {
        let epoch = store.manifest().epoch;
        self.newest = self.newest.max(store.id());
        let mut state = self.cluster.state();
        if state.stores.insert(epoch, Arc::new(store)).is_none() {
            tracing::info!(epoch, "loading an epoch");
            state.opened.insert(epoch, Instant::now());
            if epoch < state.current {
                state.superseded.insert(epoch, Instant::now());
            }
        }
    }

    /// Chooses the current epoch, which never goes back. Every cell of the epoch must be on some server. In addition,
    /// the cells are on all servers they are placed on, another server calls the epoch current, or the epoch was opened
    /// more than [`PATIENCE`] ago. The newest such epoch is chosen.
    pub(super) fn choose(&mut self, stores: &[Arc<Store>], survey: &Survey, holders: &BTreeMap<u32, Vec<Holders>>) {
        let (published, is_calm) = (survey.current(), self.is_calm());
        let mut state = self.cluster.state();
        let mut late = None;
        self.counts.heard = survey.epochs().last().map_or(0, |id| id.epoch).max(published);
        self.counts.newest = state.stores.keys().next_back().copied().unwrap_or(0).max(self.counts.newest);
        for store in stores.iter().rev() {
            let epoch = store.manifest().epoch;
            if epoch <= state.current {
                break;
            }
            let cells = || store.manifest().rows.iter().filter_map(|row| holders.get(&row.row)).flatten();
            let is_complete = cells().all(|cell| !cell.ready.is_empty());
            let is_settled = || cells().all(Holders::is_settled);
            let patience = if removed_in(store) > state.current { URGENCY } else { PATIENCE };
            let is_overdue = state.opened.get(&epoch).is_some_and(|opened| opened.elapsed() > patience);
            if is_complete && (is_calm && is_settled() || epoch <= published || is_overdue) {
                tracing::info!(epoch, "an epoch became current");
                if epoch > published && !is_settled() {
                    late = Some((epoch, cells().flat_map(Holders::lacking).collect::<BTreeSet<usize>>()));
                }
                let old: Vec<u64> = state.stores.keys().copied().filter(|&older| older < epoch).collect();
                let now = Instant::now();
                old.into_iter().for_each(|older| _ = state.superseded.entry(older).or_insert(now));
                state.current = epoch;
                break;
            }
        }
        self.counts.current = state.answered(self.cluster.options.removal_max).1;
        drop(state);
        if let Some((epoch, servers)) = late {
            let servers: Vec<&str> = servers.iter().map(|&server| survey.servers[server].name.as_str()).collect();
            let servers = servers.join(", ");
            tracing::warn!(epoch, servers, "an epoch became current late: these servers still lack cells of it");
        }
    }
}
