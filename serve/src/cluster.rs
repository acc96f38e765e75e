//! The cluster as one server sees it: the live servers, the cells placed on and held by this server, and the epochs.
//!
//! ```text
//! [members] the pairs that servers publish --+--> [keeper] missing cells ----> [fetch] cells --> held
//! store: CURRENT, manifests -----------------+                                                     |
//!                                            +--> [survey] the map, the current epoch <------------+
//! ```
//!
//! There is no leader: every server decides for itself, from the gossip of all servers. [`placement`] assigns cells to
//! servers. A server fetches the cells placed on it, and keeps a cell placed elsewhere until the other servers have the
//! cell. An epoch becomes current when all its cells are on the servers they are placed on; from then on `replicas - 1`
//! servers may die. The epoch is still served for a grace period after the next epoch is current.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tonic::Status;
use webstrata_layers::{Error as LayersError, Location, Store, Translations, Uid};

use crate::clerk::{Pinned, graph_of};
use crate::dial::Dialer;
use crate::guard::limits::Bounds;
use crate::guard::panics::caught;
use crate::held::Held;
use crate::map::Map;
use crate::protocol::proto::{CellName, TopologyResponse};
use crate::protocol::status::{other_store, status_of};
use webstrata_cells::Encodings;
use webstrata_cells::Shelf;
use webstrata_cells::disk::load::Options as CellOptions;

mod agreement;
mod fetch;
mod keeper;
mod members;
mod names;
pub mod placement;
mod readiness;
mod retiring;
mod scrub;
mod survey;

use agreement::{Agreement, REPLICAS};
use members::Members;
use readiness::Lacks;
use scrub::Scrubbed;

/// How a server takes part in a cluster.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// The name of the server, the same after a restart; empty: the address.
    pub name: String,
    /// The address that other servers can reach; port 0: the port where the server listens.
    pub address: SocketAddr,
    /// Servers to join, as host:port. Empty: the server begins a new cluster.
    pub join: Vec<String>,
    /// The name of the cluster. Servers of other clusters are refused.
    pub cluster: String,
    /// The number of servers that hold each cell. If most servers of the cluster have another number, their number
    /// counts.
    pub replicas: usize,
    /// The most bytes of cells in memory. Cells that do not fit stay mapped.
    pub memory: u64,
    /// The one epoch to serve; `None`: the newest epoch, and each newer epoch that appears.
    pub epoch: Option<u64>,
    /// The directory of the images of cells.
    pub data: PathBuf,
    /// The interval between checks of the store for a new epoch.
    pub watch: Duration,
    /// How long an epoch is served after the next epoch is current.
    pub grace: Duration,
    /// After an epoch appeared that takes something out of the store: how long the epoch before it is still answered
    /// while the cells of the new epoch are being loaded. After that, nothing is answered until they are loaded.
    pub removal_max: Duration,
    /// How long a cell placed elsewhere is kept, and how long the members must be stable before cells move.
    pub settle: Duration,
    /// The interval between rounds of gossip.
    pub gossip: Duration,
    /// Bytes of cells and layers that the scrub reads in a second; 0: no scrub.
    pub scrub: u64,
    /// How the server makes cells that no server has.
    pub cells: CellOptions,
    /// The encodings of links that images may have.
    pub encodings: Encodings,
}

impl ClusterOptions {
    /// Options for a server with its images in this directory. The server begins a cluster with two replicas, and other
    /// servers reach it at the address where it listens. All other options have the defaults of `webstrata serve`.
    #[must_use]
    pub fn new(data: impl Into<PathBuf>) -> Self {
        Self {
            name: String::new(),
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            join: Vec::new(),
            cluster: "webstrata".to_owned(),
            replicas: 2,
            memory: 4 << 30,
            epoch: None,
            data: data.into(),
            watch: Duration::from_secs(2),
            grace: Duration::from_secs(60),
            removal_max: Duration::from_secs(60),
            settle: Duration::from_secs(3),
            gossip: Duration::from_millis(200),
            scrub: 8 << 20,
            cells: CellOptions::default(),
            encodings: Encodings::STRATA,
        }
    }
}

/// One server's view of its cluster.
pub struct Cluster {
    options: ClusterOptions,
    location: Location,
    /// The identity of the store, as in messages.
    store: String,
    /// Set when the server must stop: the store was replaced by another store, or another server has its name.
    exchanged: watch::Sender<Option<String>>,
    dialer: Dialer,
    shelf: Shelf,
    members: Members,
    held: ArcSwap<Held>,
    state: Mutex<State>,
    topology: watch::Sender<Arc<TopologyResponse>>,
    maps: watch::Sender<Arc<Map>>,
    counts: watch::Sender<KeeperCounts>,
    /// The reasons why the server is not ready.
    lacks: watch::Sender<Lacks>,
    /// The last translation that a call asked for. It may be large. A call holds the lock while it reads the
    /// translation, so the translation is read only once.
    translations: Arc<tokio::sync::Mutex<Option<EpochTranslations>>>,
    /// The bytes that the scrub has read, and the damage that it has found.
    scrubbed: Scrubbed,
    /// The points on which servers of the cluster disagree.
    agreement: watch::Sender<Agreement>,
    /// Wakes the keeper.
    wake: Notify,
}

/// The counts of the keeper's finished and remaining work, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeeperCounts {
    /// Cells in memory, and in mapped files.
    pub cells: [u64; 2],
    /// The bytes of the cells in memory, and in mapped files.
    pub bytes: [u64; 2],
    /// Cells placed on this server that it does not hold yet.
    pub missing: u64,
    /// Cells of served epochs that are not yet on all servers they are placed on.
    pub unsettled: u64,
    /// The unsettled cells of the current epoch only. Each server retires earlier epochs at its own time.
    pub unsettled_now: u64,
    /// Cells that must still move between memory and mapped files.
    pub moving: u64,
    /// The number of requests to load or unload epochs that the keeper has seen.
    pub wishes: u64,
    /// Bytes of images fetched from other servers.
    pub fetched_bytes: u64,
    /// Cells made from layers.
    pub made: u64,
    /// Failed attempts to make or fetch a cell.
    pub failed: u64,
    /// Cells dropped because their images changed on the disk.
    pub damaged: u64,
    /// Files of the store that the scrub finds damaged.
    pub damaged_files: u64,
    /// Bytes that the scrub has read.
    pub scrubbed_bytes: u64,
    /// Live servers.
    pub servers: u64,
    /// The current epoch.
    pub current: u64,
    /// The newest epoch of the store.
    pub newest: u64,
    /// The newest epoch that a live server serves or loads.
    pub heard: u64,
    /// The number of replicas of each cell.
    pub replicas: u64,
    /// Servers whose view of the cluster differs from this server's view.
    pub differing: u64,
}

/// The later and the earlier of two epochs, and the translation between them.
type EpochTranslations = ((u64, u64), Translations);

#[derive(Default)]
struct State {
    /// Epochs that are served or being loaded, each with its lease.
    stores: BTreeMap<u64, Arc<Store>>,
    current: u64,
    /// When each epoch stopped being current.
    superseded: BTreeMap<u64, Instant>,
    /// When each epoch began to be loaded.
    opened: BTreeMap<u64, Instant>,
    /// The newest epoch that takes something out, according to other servers, and since when this server has known of
    /// it.
    told: Option<(u64, Instant)>,
    /// Epochs up to this number are no longer served.
    retired: u64,
    /// Epochs whose cells need not be in memory.
    relinquished: BTreeSet<u64>,
    /// The number of changes to `relinquished`.
    wishes: u64,
    /// Cells, by row and partition, that questions wait for because no server answers for them.
    needed: BTreeSet<(u32, u32)>,
    leaving: bool,
}

impl Cluster {
    /// Opens the store, joins the cluster, and keeps the cells placed on this server until `stop` is dropped or true.
    ///
    /// # Errors
    /// The store or the directory of images does not open.
    pub async fn start(
        location: Location,
        options: ClusterOptions,
        bounds: Bounds,
        dialer: Dialer,
        stop: watch::Receiver<bool>,
    ) -> Result<Arc<Self>, Status> {
        let (path, epoch) = (location.clone(), options.epoch);
        let store = blocking(move || match epoch {
            Some(epoch) => Store::open_epoch(path, epoch),
            None => Store::open(path),
        });
        let store = store.await?.map_err(|error| status_of(&error))?;
        let shelf = Shelf::open(options.data.clone(), options.encodings).map_err(|error| {
            Status::internal(format!("{error}; --data DIR names a directory for the copies of cells"))
        })?;
        let member = members::MemberOptions {
            name: options.name.clone(),
            address: options.address,
            seeds: options.join.clone(),
            cluster: options.cluster.clone(),
            store: store.root().to_string(),
            interval: options.gossip,
        };
        let pairs = BTreeMap::from([(REPLICAS.to_owned(), options.replicas.to_string())]);
        let members = Members::join(&member, dialer.clone(), pairs).await?;
        let root = member.store;
        let mut state = State::default();
        state.opened.insert(store.manifest().epoch, Instant::now());
        state.stores.insert(store.manifest().epoch, Arc::new(store));
        let held = Held { bounds, ..Held::default() };
        let cluster = Arc::new(Self {
            options,
            location,
            store: root,
            exchanged: watch::Sender::default(),
            dialer,
            shelf,
            members,
            held: ArcSwap::from_pointee(held),
            state: Mutex::new(state),
            topology: watch::Sender::default(),
            maps: watch::Sender::default(),
            counts: watch::Sender::default(),
            lacks: watch::Sender::new(Lacks { epoch: true, ..Lacks::default() }),
            translations: Arc::default(),
            scrubbed: Scrubbed::default(),
            agreement: watch::Sender::default(),
            wake: Notify::new(),
        });
        tokio::spawn(scrub::scrub(cluster.clone(), stop.clone()));
        tokio::spawn(keeper::keep(cluster.clone(), stop));
        Ok(cluster)
    }

    /// The cells that this server holds.
    pub fn held(&self) -> Arc<Held> {
        self.held.load_full()
    }

    /// The newest map, as a message.
    pub fn topology(&self) -> watch::Receiver<Arc<TopologyResponse>> {
        self.topology.subscribe()
    }

    /// The newest map, for look-ups.
    pub fn maps(&self) -> watch::Receiver<Arc<Map>> {
        self.maps.subscribe()
    }

    /// The counts of the keeper.
    pub fn counts(&self) -> watch::Receiver<KeeperCounts> {
        self.counts.subscribe()
    }

    /// Whether the server is ready. Three conditions must hold:
    ///
    /// - An epoch is served.
    /// - All cells placed on this server are here. Once this was true, it is enough that calls are answered without the
    ///   missing cells.
    /// - The server is in the cluster that it should join, if that cluster exists.
    ///
    /// # Errors
    /// The missing condition, as a message.
    pub fn readiness(&self) -> Result<(), String> {
        let leaving = self.state().leaving;
        let lacks = Lacks { leaving, ..self.lacks.borrow().clone() };
        match self.outcast() {
            _ if leaving => Err(lacks.to_string()),
            Some(why) => Err(why),
            None if lacks.is_nothing() => Ok(()),
            None => Err(lacks.to_string()),
        }
    }

    /// The problems of a server that is ready, for people, one line each: cells that are still loaded, files that the
    /// scrub finds damaged, disagreements between servers, and servers that TLS keeps from being called.
    pub fn notes(&self) -> String {
        let distrusted = self.distrusted().into_iter().map(|(address, why)| format!("TLS: {address}: {why}\n"));
        let distrusted: String = distrusted.collect();
        format!("{}{}{}{distrusted}", self.lacks.borrow().note(), self.scrubbed, *self.agreement.borrow())
    }

    /// The servers that TLS keeps from being called, each with the reason.
    pub fn distrusted(&self) -> Vec<(String, String)> {
        self.dialer.distrusted()
    }

    /// The reason why this server is outside the cluster that it should join; `None` if the server is inside. The
    /// server is alone, and it refuses or is refused by a server of that cluster. Or another server has the right to
    /// its name. Or TLS keeps it from most other servers.
    fn outcast(&self) -> Option<String> {
        if let Some((address, true)) = self.agreement.borrow().namesake {
            return Some(format!("the server at {address} has the name of this one: give each its own --name"));
        }
        let is_alone = !self.options.join.is_empty() && self.counts.borrow().servers <= 1;
        if let Some((peer, why)) = self.members.refusal().filter(|_| is_alone) {
            return Some(format!("this server could not join its cluster: {peer}: {why}"));
        }
        let distrusted = self.distrusted();
        let (address, why) = distrusted.first()?;
        let own = self.options.address.to_string();
        let topology = self.topology.borrow().clone();
        let mut others: BTreeSet<&str> = topology.servers.iter().map(|server| server.address.as_str()).collect();
        others.extend(distrusted.iter().map(|(address, _)| address.as_str()));
        others.remove(own.as_str());
        let (lost, all) = (distrusted.len(), others.len());
        (2 * lost > all).then(|| format!("TLS keeps this server from {lost} of {all} other servers: {address}: {why}"))
    }

    /// Returns when the server must stop, with the reason: the served store was replaced by another store, or another
    /// server has the name of this server.
    pub async fn exchanged(&self) -> String {
        let mut exchanged = self.exchanged.subscribe();
        match exchanged.wait_for(Option::is_some).await {
            Ok(found) => found.clone().unwrap_or_default(),
            // Cannot happen: the sender lives as long as `self`.
            Err(_) => std::future::pending().await,
        }
    }

    /// The interval between rounds of gossip.
    pub(crate) fn gossip_interval(&self) -> Duration {
        self.options.gossip
    }

    /// The identity of the store, as in messages.
    pub fn store(&self) -> &str {
        &self.store
    }

    /// Refuses calls about another store. A call that names no store is accepted.
    ///
    /// # Errors
    /// OTHER_STORE.
    pub fn admit(&self, store: &str) -> Result<(), Status> {
        if store.is_empty() || store == self.store { Ok(()) } else { Err(other_store(store, &self.store)) }
    }

    /// Records that a peer serves another store.
    pub fn refused(&self, peer: SocketAddr, store: &str) {
        self.members.refuse(peer, &format!("it serves another store: {store}, not {}", self.store));
    }

    /// Takes in a gossip message from another server.
    ///
    /// # Errors
    /// The message is not valid, or not of this cluster.
    pub fn gossip(&self, from: SocketAddr, message: &[u8]) -> Result<(), String> {
        self.members.take(from, message)
    }

    /// The image file of a cell made from these layers, if this server has it.
    pub fn image(&self, cell: CellName, source: u64) -> Option<PathBuf> {
        let held = self.held();
        let held_cell = held.rows.get(&cell.row)?.cell(cell.partition).ok()?.clone();
        if held_cell.label().source != source {
            return None;
        }
        let store = self.newest_with(cell.row)?;
        self.shelf.image(Some(&store), cell.row, cell.partition, source).ok().flatten()
    }

    /// Whether anything was ever taken out of the store.
    pub fn has_removals(&self) -> bool {
        self.state().removal().is_some()
    }

    /// The store at an epoch that is served or being loaded.
    pub fn epoch_store(&self, epoch: u64) -> Option<Arc<Store>> {
        self.state().stores.get(&epoch).cloned()
    }

    /// Translates UIDs from one epoch to another (0: the current epoch). Returns the numbers of both epochs, and the
    /// UIDs; `None` for URLs that the other epoch lacks.
    ///
    /// # Errors
    /// NO_TRANSLATION, UNKNOWN_UID; EPOCH_UNKNOWN or EPOCH_RETIRED if the later epoch is not served.
    pub async fn translate(&self, from: u64, to: u64, uids: Vec<Uid>) -> Result<(u64, u64, Vec<Option<Uid>>), Status> {
        let map = self.maps.borrow().clone();
        let named = |epoch: u64| if epoch == 0 { map.current } else { epoch };
        let (from, to) = (named(from), named(to));
        let newest = graph_of(&map, Some(from.max(to)))?.epoch;
        let store = self.epoch_store(newest);
        let store = store.ok_or_else(|| Status::unavailable(format!("epoch {newest} is being retired; retry")))?;
        let mut kept = self.translations.clone().lock_owned().await;
        let translated = blocking(move || {
            let between = match &*kept {
                Some((pair, between)) if *pair == (newest, from.min(to)) => between,
                _ => &kept.insert(((newest, from.min(to)), Translations::between(&store, from.min(to))?)).1,
            };
            uids.into_iter().map(|uid| between.translate(uid, from > to)).collect::<Result<_, LayersError>>()
        });
        let translated = translated.await?.map_err(|error| status_of(&error))?;
        Ok((from, to, translated))
    }

    /// Marks whether an epoch should be in memory. If it should, waits until its cells are loaded. Returns the number
    /// of its cells.
    ///
    /// # Errors
    /// The server shuts down. The deadline of the caller ends the wait.
    pub async fn hold(&self, pinned: &Pinned, in_memory: bool) -> Result<u32, Status> {
        let cells = pinned.graph().rows.iter().map(|row| row.cells.len()).sum::<usize>();
        let wish = {
            let mut state = self.state();
            if in_memory {
                state.relinquished.remove(&pinned.epoch());
            } else {
                state.relinquished.insert(pinned.epoch());
            }
            state.wishes += 1;
            state.wishes
        };
        self.wake.notify_one();
        if in_memory {
            let mut counts = self.counts();
            let is_done = |counts: &KeeperCounts| counts.wishes >= wish && counts.missing == 0 && counts.moving == 0;
            let done = counts.wait_for(is_done).await;
            done.map_err(|_| Status::unavailable("the server is shutting down"))?;
        }
        Ok(u32::try_from(cells).unwrap_or(u32::MAX))
    }

    /// Announces that this server leaves. Returns when the remaining servers hold every replica of every cell, so that
    /// one of them may die right away, or when the time is over.
    pub async fn leave(&self, within: Duration) {
        self.state().leaving = true;
        self.wake.notify_one();
        // Wait for two rounds of gossip: earlier counts do not know that this server leaves.
        tokio::time::sleep(2 * self.options.gossip).await;
        let mut counts = self.counts();
        let _ = tokio::time::timeout(within, counts.wait_for(|counts| counts.unsettled == 0)).await;
        self.members.leave().await;
    }

    /// Asks the keeper for a cell that no server answers for.
    pub(crate) fn need(&self, cell: CellName) {
        if self.state().needed.insert((cell.row, cell.partition)) {
            self.wake.notify_one();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A poisoned lock is safe to use: every statement leaves valid state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest open epoch that has a row.
    fn newest_with(&self, row: u32) -> Option<Arc<Store>> {
        let state = self.state();
        let has_row = |store: &&Arc<Store>| store.manifest().rows.iter().any(|entry| entry.row == row);
        state.stores.values().rev().find(has_row).cloned()
    }
}

/// Runs blocking work on a separate thread.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Status> {
    let work = tokio::task::spawn_blocking(|| caught(&"work on the store", work));
    work.await.map_err(|_| Status::unavailable("the server stops"))?
}
