//! The keeper: the task that maintains the cells placed on this server and this server's view of the cluster. The
//! keeper checks everything again whenever something may have changed.
//!
//! Each check opens new epochs of the store, reads the gossip of all servers, chooses the current epoch, and retires
//! old epochs. Then it starts to get missing cells, drops cells that the servers they are placed on have, and publishes
//! changes. Slow work runs in separate tasks, a few at a time.

mod agreement;
mod damaged;
mod epochs;
mod needed;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tonic::Status;
use webstrata_layers::{EpochId, Error, Store};

use super::fetch::{Brought, bring};
use super::members::Member;
use super::readiness::{CellFailure, Lacks};
use super::retiring::forget_retired;
use super::survey::{Holders, Layout, REMOVED, Survey, epoch_of, epochs_of, layouts, pairs_of};
use super::{Cluster, KeeperCounts, blocking};
use crate::map::Map;
use crate::protocol::proto::{CellName, TopologyResponse};
use webstrata_cells::Row;
use webstrata_cells::image::Residence;

/// The number of cells that are made or fetched at the same time. The same number is allowed in addition for cells that
/// questions wait for.
const AT_ONCE: usize = 2;
/// The wait after the first failure to get a cell. Each further failure doubles it, at most `DOUBLINGS_MAX` times.
const AGAIN: Duration = Duration::from_secs(1);
const DOUBLINGS_MAX: u32 = 5;
/// How long the other replicas wait for the first replica to make a cell, and how long an epoch waits for all replicas.
const PATIENCE: Duration = Duration::from_secs(30);

/// A cell, by row and partition.
type CellKey = (u32, u32);

/// The result of a task that gets a cell.
struct Loaded {
    name: CellKey,
    residence: Residence,
    brought: Result<Option<Brought>, Status>,
}

struct Keeper {
    cluster: Arc<Cluster>,
    /// The rows of all open epochs, by number.
    layouts: BTreeMap<u32, Layout>,
    loads: JoinSet<Loaded>,
    loading: BTreeSet<CellKey>,
    /// When to look again for cells that another server makes.
    again: BTreeMap<CellKey, Instant>,
    /// Cells that could not be made or fetched so far.
    failures: BTreeMap<CellKey, CellFailure>,
    /// The cells that this server holds: in memory or mapped, and their bytes.
    held: BTreeMap<CellKey, (Residence, u64)>,
    /// The number of times that the image of each cell was found damaged. A listed cell that is missing is missing for
    /// this reason.
    damages: BTreeMap<CellKey, u32>,
    /// When the blocks of mapped cells were last marked to be compared again.
    rechecked: Instant,
    /// Cells to drop because the servers that they are placed on have them, and since when.
    spare: BTreeMap<CellKey, Instant>,
    /// The members, and since when they have not changed.
    members: (Vec<String>, Instant),
    /// The last published pairs of each known server, and when the server was last found alive. Old entries are
    /// dropped.
    heard: BTreeMap<String, (Member, Instant)>,
    looked: Option<Instant>,
    opening: Option<tokio::task::JoinHandle<Result<Option<Store>, Error>>>,
    missing_since: BTreeMap<CellKey, Instant>,
    /// The number of missing cells that an answered epoch needs and no other live server has.
    needed: u64,
    /// Whether the server has had all its cells once.
    was_ready: bool,
    /// Whether the lack of other servers has been logged.
    alone: bool,
    counts: KeeperCounts,
    version: u64,
    /// The newest epoch that was opened.
    newest: EpochId,
    /// Whether an image came for a row that is no longer wanted.
    is_littered: bool,
    /// The number of replicas of each cell.
    replicas: usize,
    /// Servers whose view of the cluster differs from this server's view, and since when.
    differing: BTreeMap<String, Instant>,
    /// When the keeper began; and another server that has the name of this server, and since when.
    begun: Instant,
    namesake: Option<(SocketAddr, Instant)>,
    /// Whether this server has its seat: it has run for some rounds of gossip without meeting another server of its
    /// name.
    has_seat: bool,
}

/// The version of maps. It starts at the time in microseconds, so that a restarted server never reuses a version.
static VERSION: AtomicU64 = AtomicU64::new(0);

/// Runs the keeper until it is stopped.
pub(super) async fn keep(cluster: Arc<Cluster>, mut stop: watch::Receiver<bool>) {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    VERSION.fetch_max(u64::try_from(now.as_micros()).unwrap_or(0), Ordering::Relaxed);
    let newest = cluster.state().stores.values().next_back().map(|store| store.id());
    // Cannot be missing: the cluster starts with one epoch.
    let Some(newest) = newest else { return };
    let mut keeper = Keeper {
        layouts: BTreeMap::new(),
        loads: JoinSet::new(),
        loading: BTreeSet::new(),
        again: BTreeMap::new(),
        failures: BTreeMap::new(),
        held: BTreeMap::new(),
        damages: BTreeMap::new(),
        rechecked: Instant::now(),
        spare: BTreeMap::new(),
        members: (Vec::new(), Instant::now()),
        heard: BTreeMap::new(),
        looked: None,
        opening: None,
        missing_since: BTreeMap::new(),
        needed: 0,
        was_ready: false,
        alone: false,
        counts: KeeperCounts::default(),
        version: 0,
        newest,
        is_littered: false,
        replicas: cluster.options.replicas,
        differing: BTreeMap::new(),
        begun: Instant::now(),
        namesake: None,
        has_seat: false,
        cluster: cluster.clone(),
    };
    forget_retired(&cluster).await;
    let tick = cluster.options.gossip.min(Duration::from_millis(200));
    loop {
        keeper.look().await;
        tokio::select! {
            () = sleep(tick) => {}
            () = cluster.wake.notified() => {}
            () = cluster.members.changed() => {}
            Some(done) = keeper.loads.join_next(), if !keeper.loads.is_empty() => {
                if let Ok(done) = done {
                    keeper.take(done);
                }
            }
            changed = stop.changed() => if changed.is_err() || *stop.borrow() { return },
        }
    }
}

/// The rows of an epoch.
fn rows_of(store: &Arc<Store>) -> Vec<u32> {
    store.manifest().rows.iter().map(|row| row.row).collect()
}

impl Keeper {
    async fn look(&mut self) {
        self.open_epochs().await;
        let survey = self.survey().await;
        self.listen(&survey);
        let stores: Vec<Arc<Store>> = self.cluster.state().stores.values().cloned().collect();
        for layout in stores.iter().flat_map(|store| layouts(store)) {
            self.layouts.entry(layout.row).or_insert(layout);
        }
        self.open_others(&survey).await;
        self.agree(&survey);
        let replicas = self.replicas;
        let holders: BTreeMap<u32, Vec<Holders>> =
            self.layouts.values().map(|layout| (layout.row, survey.holders(layout, replicas))).collect();
        self.choose(&stores, &survey, &holders);
        self.drop_damaged().await;
        self.retire().await;
        self.bring(&survey, &holders);
        self.drop_spare(&survey, &holders).await;
        self.count(&survey, &holders);
        self.compare(&survey);
        self.look_for_namesakes().await;
        self.publish_lacks();
        self.publish(&survey).await;
    }

    /// Publishes what the server still lacks to be ready.
    fn publish_lacks(&mut self) {
        let missing = self.missing_since.keys().filter(|name| !self.held.contains_key(name));
        let failed = missing.filter_map(|name| self.failures.get(name)).next().cloned();
        let (epoch, cells) = (self.counts.current == 0, self.counts.missing);
        let damaged = self.damages.keys().filter(|name| self.missing_since.contains_key(name)).count() as u64;
        let is_spared = self.was_ready && self.needed == 0;
        let lacks = Lacks { leaving: false, epoch, cells, is_spared, damaged, failed };
        self.was_ready |= lacks.is_nothing();
        self.cluster.lacks.send_replace(lacks);
    }

    /// Surveys the live servers, and the servers that were alive until just now. A server that is paused or too busy
    /// hears from no other server for a moment. Its map keeps the silent servers, to be asked last.
    async fn survey(&mut self) -> Survey {
        let (options, leaving) = (&self.cluster.options, self.cluster.state().leaving);
        let mut live = self.cluster.members.live().await;
        for this_server in live.iter_mut().filter(|member| leaving && member.name == options.name) {
            this_server.pairs.insert("leaving".to_owned(), "1".to_owned());
        }
        live.retain(|member| self.is_kin(member));
        let names: Vec<String> = live.iter().map(|member| member.name.clone()).collect();
        let now = Instant::now();
        if names != self.members.0 {
            self.tell_members(&names);
            self.members = (names, now);
        }
        self.heard.extend(live.iter().map(|member| (member.name.clone(), (member.clone(), now))));
        let forget = 2 * options.settle + 10 * options.gossip;
        self.heard.retain(|_, (_, heard)| now.duration_since(*heard) < forget);
        let silent = self.heard.values().filter(|(_, heard)| *heard < now).map(|(member, _)| member.clone());
        Survey::of(live, silent.collect())
    }

    /// Logs which other servers came and went.
    fn tell_members(&self, names: &[String]) {
        let (own, before) = (&self.cluster.options.name, &self.members.0);
        for server in names.iter().filter(|name| *name != own && !before.contains(name)) {
            tracing::info!(server, "a server is in the cluster");
        }
        for server in before.iter().filter(|name| *name != own && !names.contains(name)) {
            if self.heard.get(server).is_some_and(|(member, _)| member.pairs.contains_key("leaving")) {
                tracing::info!(server, "a server left the cluster");
            } else {
                tracing::warn!(server, "a server no longer answers; other servers get its cells");
            }
        }
    }

    /// Whether the epochs of a member agree with this server's store. Epochs that this server does not know are not
    /// compared. Two copies of a store that are updated separately have the same first epochs.
    fn is_kin(&self, member: &Member) -> bool {
        let state = self.cluster.state();
        let Some(newest) = state.stores.values().next_back() else { return true };
        let id_of =
            |epoch: u64| if epoch == newest.id().epoch { Some(newest.id()) } else { newest.manifest().past(epoch) };
        let differing = epochs_of(&member.pairs)
            .find_map(|theirs| id_of(theirs.epoch).filter(|ours| *ours != theirs).map(|ours| (ours, theirs)));
        if let Some((ours, theirs)) = differing {
            let why = format!("its epoch {} has digest {}, not {}", ours.epoch, theirs.digest, ours.digest);
            self.cluster.members.refuse(member.address, &why);
        }
        differing.is_none()
    }

    /// Whether the members have been stable for long enough to act. A server that joins a cluster waits for the other
    /// servers before it acts alone.
    fn is_calm(&self) -> bool {
        let options = &self.cluster.options;
        let begins = options.join.is_empty() && self.cluster.state().current == 0;
        begins || self.members.1.elapsed() >= options.settle
    }

    /// The rows of the epochs that are answered.
    fn answered(&self) -> BTreeSet<u32> {
        let state = self.cluster.state();
        state.stores.range(..=state.current).flat_map(|(_, store)| rows_of(store)).collect()
    }

    /// Updates the counts.
    fn count(&mut self, survey: &Survey, holders: &BTreeMap<u32, Vec<Holders>>) {
        let answered = self.answered();
        let current = {
            let state = self.cluster.state();
            state.stores.get(&state.current).map(rows_of).unwrap_or_default()
        };
        let unsettled = |rows: &mut dyn Iterator<Item = &u32>| {
            rows.filter_map(|row| holders.get(row)).flatten().filter(|cell| !cell.is_settled()).count() as u64
        };
        self.counts.unsettled = unsettled(&mut answered.iter());
        self.counts.unsettled_now = unsettled(&mut current.iter());
        self.counts.servers = survey.live() as u64;
        let is_alone = survey.live() <= 1 && !self.cluster.options.join.is_empty() && self.is_calm();
        if is_alone && !self.alone {
            let join = self.cluster.options.join.join(", ");
            tracing::warn!(join, "no other server answers; this server is alone and keeps asking these");
        }
        self.alone = is_alone;
        for residence in [Residence::Memory, Residence::Mapped] {
            let cells = self.held.values().filter(|(known, _)| *known == residence);
            let index = usize::from(residence == Residence::Mapped);
            self.counts.cells[index] = cells.clone().count() as u64;
            self.counts.bytes[index] = cells.map(|(_, bytes)| bytes).sum();
        }
        (self.counts.damaged_files, self.counts.scrubbed_bytes) = self.cluster.scrubbed.counts();
    }

    /// Retires old epochs, and drops the rows that only these epochs had. The leases of the epochs end last, so a task
    /// that waits for the leases finds no image here.
    async fn retire(&mut self) {
        let (rows, retired) = self.rows_left();
        self.layouts.retain(|row, _| rows.contains(row));
        self.again.retain(|(row, _), _| rows.contains(row));
        self.damages.retain(|(row, _), _| rows.contains(row));
        self.failures.retain(|(row, _), _| rows.contains(row));
        self.missing_since.retain(|(row, _), _| rows.contains(row));
        let unneeded: Vec<CellKey> = self.held.keys().copied().filter(|(row, _)| !rows.contains(row)).collect();
        if !unneeded.is_empty() || std::mem::take(&mut self.is_littered) {
            self.remove(&unneeded).await;
        }
        drop(retired);
    }

    /// Retires epochs after their grace period. Returns the rows of the remaining epochs, and the retired epochs.
    fn rows_left(&self) -> (BTreeSet<u32>, Vec<Arc<Store>>) {
        let mut state = self.cluster.state();
        let retired = state.retire(self.cluster.options.grace);
        (state.stores.values().flat_map(|store| store.manifest().rows.iter().map(|row| row.row)).collect(), retired)
    }

    /// Starts to get the cells placed on this server that are missing, or that must move to or from memory.
    fn bring(&mut self, survey: &Survey, holders: &BTreeMap<u32, Vec<Holders>>) {
        let this_server = survey.servers.iter().position(|server| server.name == self.cluster.options.name);
        let Some(this_server) = this_server else { return };
        let (leaving, wishes) = {
            let state = self.cluster.state();
            (state.leaving, state.wishes)
        };
        // Members often join one after the other; acting at once would send cells twice.
        let is_calm = self.is_calm();
        let (mut missing, mut moving, mut starts, now) = (0, 0, Vec::new(), Instant::now());
        let (answered, mut needed) = (self.answered(), 0);
        let mut since_before = std::mem::take(&mut self.missing_since);
        let mut memory: u64 =
            self.held.values().filter(|(residence, _)| *residence == Residence::Memory).map(|(_, bytes)| bytes).sum();
        for (&row, cells) in holders {
            let Some(layout) = self.layouts.get(&row) else { continue };
            let relaxed = self.is_relinquished(row);
            for (partition, cell) in layout.partitions().zip(cells) {
                let name = (row, partition);
                let Some(rank) = cell.placed.iter().position(|&server| server == this_server) else { continue };
                let current = self.held.get(&name).copied();
                let fits = current.is_none_or(|(now_in, bytes)| {
                    now_in == Residence::Memory || memory + bytes <= self.cluster.options.memory
                });
                let residence = if rank == 0 && !relaxed && fits && memory < self.cluster.options.memory {
                    Residence::Memory
                } else {
                    Residence::Mapped
                };
                if current.is_some_and(|(now_in, _)| now_in == residence) {
                    continue;
                }
                missing += u64::from(current.is_none());
                let is_elsewhere = cell.ready.iter().any(|&server| server != this_server);
                needed += u64::from(current.is_none() && answered.contains(&row) && !is_elsewhere);
                moving += u64::from(current.is_some());
                let since = since_before.remove(&name).unwrap_or(now);
                self.missing_since.insert(name, since);
                let waits = self.again.get(&name).is_some_and(|&again| now < again)
                    || self.failures.get(&name).is_some_and(|failure| now < failure.again);
                if leaving
                    || !is_calm
                    || waits
                    || self.loads.len() + starts.len() >= AT_ONCE
                    || !self.loading.insert(name)
                {
                    continue;
                }
                if let (Residence::Memory, Some((_, bytes))) = (residence, current) {
                    memory += bytes;
                }
                let from = cell
                    .ready
                    .iter()
                    .filter(|&&server| server != this_server)
                    .map(|&server| survey.servers[server].address.clone());
                let may_make = rank == 0 || since.elapsed() > PATIENCE;
                starts.push((name, residence, from.collect(), may_make));
            }
        }
        for (name, residence, from, may_make) in starts {
            self.start(name, residence, from, may_make);
        }
        self.bring_needed();
        self.needed = needed;
        (self.counts.missing, self.counts.moving, self.counts.wishes) = (missing, moving, wishes);
    }

    fn is_relinquished(&self, row: u32) -> bool {
        let state = self.cluster.state();
        let has_row = |store: &Arc<Store>| store.manifest().rows.iter().any(|entry| entry.row == row);
        let is_wanted = |(epoch, store): (&u64, &Arc<Store>)| has_row(store) && !state.relinquished.contains(epoch);
        !state.relinquished.is_empty() && !state.stores.iter().any(is_wanted)
    }

    fn start(&mut self, name: CellKey, residence: Residence, from: Vec<String>, may_make: bool) {
        let Some(store) = self.cluster.newest_with(name.0) else {
            self.loading.remove(&name);
            return;
        };
        let cluster = self.cluster.clone();
        self.loads.spawn(async move {
            let cell = CellName { row: name.0, partition: name.1 };
            let brought = bring(cluster, store, cell, residence, from, may_make).await;
            Loaded { name, residence, brought }
        });
    }

    fn take(&mut self, done: Loaded) {
        let Loaded { name, residence, brought } = done;
        self.loading.remove(&name);
        match brought {
            Ok(Some(Brought { cell, fetched_bytes, is_made })) => {
                self.counts.fetched_bytes += fetched_bytes;
                self.counts.made += u64::from(is_made);
                self.again.remove(&name);
                self.failures.remove(&name);
                let bytes = cell.bytes();
                let entry = self
                    .cluster
                    .newest_with(name.0)
                    .and_then(|store| store.manifest().rows.iter().find(|row| row.row == name.0).map(Row::of));
                // The row may have been retired meanwhile. Its image must not stay then.
                let Some(empty) = entry else {
                    self.is_littered = true;
                    return;
                };
                let mut held = crate::held::Held::clone(&self.cluster.held.load());
                let row = held.rows.get(&name.0).map_or(empty, |row| Row::clone(row));
                held.rows.insert(name.0, Arc::new(row.with(Arc::new(cell))));
                self.cluster.held.store(Arc::new(held));
                self.held.insert(name, (residence, bytes));
            }
            Ok(None) => _ = self.again.insert(name, Instant::now() + AGAIN / 4),
            Err(status) => {
                self.counts.failed += 1;
                let tries = self.failures.get(&name).map_or(0, |failure| failure.tries) + 1;
                let wait = AGAIN * (1 << (tries - 1).min(DOUBLINGS_MAX));
                let ((row, partition), why) = (name, status.message());
                tracing::warn!(
                    row,
                    partition,
                    tries,
                    ?wait,
                    why,
                    "cannot make or fetch a cell; it will be tried again"
                );
                let (why, again) = (why.to_owned(), Instant::now() + wait);
                self.failures.insert(name, CellFailure { row, partition, tries, why, wait, again });
            }
        }
    }

    /// Drops cells that other servers hold instead, after clerks have had time to learn of the move.
    async fn drop_spare(&mut self, survey: &Survey, holders: &BTreeMap<u32, Vec<Holders>>) {
        let this_server = survey.servers.iter().position(|server| server.name == self.cluster.options.name);
        let mut unneeded = Vec::new();
        let calm = self.is_calm();
        for (&row, cells) in holders {
            let Some(layout) = self.layouts.get(&row) else { continue };
            for (partition, cell) in layout.partitions().zip(cells) {
                let name = (row, partition);
                let belongs = this_server.is_none_or(|this_server| cell.placed.contains(&this_server));
                if belongs || !cell.is_settled() || cell.placed.is_empty() || !calm || !self.held.contains_key(&name) {
                    self.spare.remove(&name);
                } else if self.spare.entry(name).or_insert_with(Instant::now).elapsed() >= self.cluster.options.settle {
                    unneeded.push(name);
                }
            }
        }
        if !unneeded.is_empty() {
            self.remove(&unneeded).await;
        }
    }

    async fn remove(&mut self, names: &[CellKey]) {
        let mut held = crate::held::Held::clone(&self.cluster.held.load());
        for name in names {
            self.held.remove(name);
            self.spare.remove(name);
            if let Some(row) = held.rows.remove(&name.0) {
                let row = Row::clone(&row).without(name.1);
                if row.cells().next().is_some() {
                    held.rows.insert(name.0, Arc::new(row));
                }
            }
        }
        self.cluster.held.store(Arc::new(held));
        // Images of an earlier process that are still to be loaded are kept too.
        let names = self.held.keys().chain(&self.loading).chain(self.missing_since.keys());
        let kept: BTreeSet<CellKey> = names.copied().collect();
        let cluster = self.cluster.clone();
        // Open questions keep their cells mapped. No load may begin during the clean-up.
        let removed = blocking(move || cluster.shelf.keep(&|row, partition| kept.contains(&(row, partition)))).await;
        if let Ok(Err(error)) = removed {
            tracing::warn!(%error, "cannot remove old images");
        }
    }

    /// Publishes changes in gossip and in the map.
    async fn publish(&mut self, survey: &Survey) {
        let agreed = self.pairs(survey);
        let (pairs, topology) = {
            let state = self.cluster.state();
            let epochs: Vec<EpochId> = state.stores.values().map(|store| store.id()).collect();
            let held = self.cluster.held.load();
            let partitions = |layout: &Layout| -> BTreeSet<u32> {
                let row = held.rows.get(&layout.row);
                row.into_iter().flat_map(|row| row.cells()).map(|cell| cell.label().partition).collect()
            };
            let rows: Vec<(&Layout, BTreeSet<u32>)> = self.layouts.values().map(|row| (row, partitions(row))).collect();
            let mut pairs = pairs_of(state.current, &epochs, &rows, state.leaving);
            pairs.extend(state.removal().map(|first| (REMOVED.to_owned(), first.to_string())));
            pairs.extend(agreed);
            let (first, current) = state.answered(self.cluster.options.removal_max);
            let replicas = self.replicas;
            let topology = TopologyResponse {
                version: 0,
                current,
                // An epoch that is still being loaded is not served, and neither is an epoch from which something was
                // taken out.
                epochs: state.stores.range(first..=current).map(|(_, store)| epoch_of(store)).collect(),
                servers: survey.servers.clone(),
                rows: self.layouts.values().map(|row| Survey::row(row, &survey.holders(row, replicas))).collect(),
                store: self.cluster.store.clone(),
            };
            (pairs, topology)
        };
        self.cluster.members.publish(&pairs).await;
        let version = self.version;
        let is_new =
            version == 0 || (TopologyResponse { version, ..topology.clone() }) != **self.cluster.topology.borrow();
        if is_new {
            self.version = VERSION.fetch_add(1, Ordering::Relaxed) + 1;
            let topology = TopologyResponse { version: self.version, ..topology };
            self.cluster.maps.send_replace(Arc::new(Map::of(topology.clone())));
            self.cluster.topology.send_replace(Arc::new(topology));
        }
        let counts = self.counts;
        self.cluster.counts.send_if_modified(|old| std::mem::replace(old, counts) != counts);
    }
}
