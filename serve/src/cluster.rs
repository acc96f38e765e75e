//! The cluster as one server sees it: who is there, which cells it should have and has, which epochs are answered.
//!
//! ```text
//! [members] what servers say of themselves --+--> [keeper] what is missing --> [fetch] cells --> held
//! store: CURRENT, manifests -----------------+                                                     |
//!                                            +--> [survey] the map, the current epoch <------------+
//! ```
//!
//! Every server decides for itself, from what all say: nobody leads. Cells belong to servers by [`placement`]; each
//! server gets those that belong to it and keeps others until whose they are have them. An epoch becomes current when
//! all its cells are where they belong, so that from then on `replicas - 1` servers may die; it stays answered for a
//! while after the next one is current.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tonic::Status;
use webstrata_layers::{Error as LayersError, Location, Store, Translations};

use crate::clerk::{Pinned, graph_of};
use crate::dial::Dialer;
use crate::guard::limits::Bounds;
use crate::held::Held;
use crate::map::Map;
use crate::protocol::proto::{CellName, TopologyResponse};
use crate::protocol::status::{other_store, status_of};
use webstrata_cells::Encodings;
use webstrata_cells::Shelf;
use webstrata_cells::image::load::Options as CellOptions;

mod fetch;
mod keeper;
mod members;
pub mod placement;
mod readiness;
mod survey;

use members::Members;
use readiness::Lacks;

/// How a server takes part in a cluster.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// Its name, the same after a restart; empty: its address.
    pub name: String,
    /// Where others reach it; port 0: that where it listens.
    pub address: SocketAddr,
    /// Servers to ask first: host:port. None: it begins a cluster of its own.
    pub join: Vec<String>,
    /// Servers of other clusters are not let in.
    pub cluster: String,
    /// Servers that have each cell.
    pub replicas: usize,
    /// Bytes of cells in memory, at most; what does not fit stays mapped.
    pub memory: u64,
    /// The one epoch to answer; otherwise the newest, and each newer one.
    pub epoch: Option<u64>,
    /// Where images of cells are kept.
    pub data: PathBuf,
    /// Between looks at the store for a new epoch.
    pub watch: Duration,
    /// How long an epoch is answered after the next one is current.
    pub grace: Duration,
    /// How long a cell is kept that belongs to others, and members are let come before cells move.
    pub settle: Duration,
    /// Between rounds of gossip.
    pub gossip: Duration,
    /// How cells are made that nobody has.
    pub cells: CellOptions,
    /// The encodings of links that images may have.
    pub encodings: Encodings,
}

impl ClusterOptions {
    /// A server that keeps images of cells in this directory, is reached where it listens, and begins a cluster of two
    /// replicas; all else as `webstrata serve` has it.
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
            settle: Duration::from_secs(3),
            gossip: Duration::from_millis(200),
            cells: CellOptions::default(),
            encodings: Encodings::STRATA,
        }
    }
}

/// One server's view of its cluster.
pub struct Cluster {
    options: ClusterOptions,
    location: Location,
    /// Which store it is, as it travels.
    store: String,
    /// That the store was exchanged for another one, when that is found out.
    exchanged: watch::Sender<Option<String>>,
    dialer: Dialer,
    shelf: Shelf,
    members: Members,
    held: ArcSwap<Held>,
    state: Mutex<State>,
    topology: watch::Sender<Arc<TopologyResponse>>,
    maps: watch::Sender<Arc<Map>>,
    counts: watch::Sender<KeeperCounts>,
    /// What is missing for it to be ready.
    lacks: watch::Sender<Lacks>,
    /// What was asked for last; held while it is read, since it may be large, so that it is read once.
    translations: Arc<tokio::sync::Mutex<Option<Between>>>,
    /// Wakes the keeper.
    wake: Notify,
}

/// What the keeper has done and has to do; for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeeperCounts {
    /// Cells in memory, and in mapped files.
    pub cells: [u64; 2],
    /// Their bytes.
    pub bytes: [u64; 2],
    /// Cells that belong here and are not here yet.
    pub missing: u64,
    /// Cells of epochs that are answered, here or elsewhere, that are not yet on all servers that they belong to.
    pub unsettled: u64,
    /// Cells that are here, in memory or mapped, and should be in the other.
    pub moving: u64,
    /// How many wishes to have epochs in memory or not have been seen.
    pub wishes: u64,
    /// Bytes of images that came from other servers.
    pub fetched_bytes: u64,
    /// Cells made from layers.
    pub made: u64,
    /// How often a cell could not be made or brought.
    pub failed: u64,
    /// Live servers.
    pub servers: u64,
    /// The current epoch.
    pub current: u64,
    /// The newest epoch of the store.
    pub newest: u64,
}

/// The later and the earlier of two epochs, and the way between them.
type Between = ((u64, u64), Translations);

#[derive(Default)]
struct State {
    /// Epochs that are answered or being loaded, each with its lease.
    stores: BTreeMap<u64, Arc<Store>>,
    current: u64,
    /// Since when an epoch is no longer current.
    superseded: BTreeMap<u64, Instant>,
    /// Since when a newer epoch is loaded.
    opened: BTreeMap<u64, Instant>,
    /// No epoch up to this one is answered any more.
    retired: u64,
    /// Epochs whose cells need not be in memory.
    relinquished: BTreeSet<u64>,
    /// How often that was changed.
    wishes: u64,
    leaving: bool,
}

impl Cluster {
    /// Opens the store, joins the cluster, and keeps what belongs here until `stop` is dropped or true.
    ///
    /// # Errors
    /// A store or a directory of images that does not open.
    pub async fn start(
        location: Location,
        options: ClusterOptions,
        bounds: Bounds,
        dialer: Dialer,
        stop: watch::Receiver<bool>,
    ) -> Result<Arc<Self>, Status> {
        let (place, epoch) = (location.clone(), options.epoch);
        let store = blocking(move || match epoch {
            Some(epoch) => Store::open_epoch(place, epoch),
            None => Store::open(place),
        });
        let store = store.await?.map_err(|error| status_of(&error))?;
        let shelf = Shelf::open(options.data.clone(), options.encodings)
            .map_err(|error| Status::internal(error.to_string()))?;
        let member = members::MemberOptions {
            name: options.name.clone(),
            address: options.address,
            seeds: options.join.clone(),
            cluster: options.cluster.clone(),
            store: store.root().to_string(),
            interval: options.gossip,
        };
        let members = Members::join(&member, dialer.clone(), BTreeMap::new()).await?;
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
            wake: Notify::new(),
        });
        tokio::spawn(keeper::keep(cluster.clone(), stop));
        Ok(cluster)
    }

    /// The cells that this server has.
    pub fn held(&self) -> Arc<Held> {
        self.held.load_full()
    }

    /// The newest map, as it travels.
    pub fn topology(&self) -> watch::Receiver<Arc<TopologyResponse>> {
        self.topology.subscribe()
    }

    /// The newest map, as it is looked up.
    pub fn maps(&self) -> watch::Receiver<Arc<Map>> {
        self.maps.subscribe()
    }

    /// What the keeper has done.
    pub fn counts(&self) -> watch::Receiver<KeeperCounts> {
        self.counts.subscribe()
    }

    /// Whether there is an epoch that is answered, and all cells of it that belong here are here; and the server is in
    /// the cluster that it was to join, where that is there.
    ///
    /// # Errors
    /// What is missing, in words.
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

    /// Why this server is not in the cluster that it was to join: a server there refuses it, or is refused, and it is
    /// alone.
    fn outcast(&self) -> Option<String> {
        let is_alone = !self.options.join.is_empty() && self.counts.borrow().servers <= 1;
        let (peer, why) = self.members.refusal().filter(|_| is_alone)?;
        Some(format!("this server could not join its cluster: {peer}: {why}"))
    }

    /// Returns when another store is in the place of the one that is served, and says what was found.
    pub async fn exchanged(&self) -> String {
        let mut exchanged = self.exchanged.subscribe();
        match exchanged.wait_for(Option::is_some).await {
            Ok(found) => found.clone().unwrap_or_default(),
            // The sender lives as long as this.
            Err(_) => std::future::pending().await,
        }
    }

    /// Which store it is, as it travels.
    pub fn store(&self) -> &str {
        &self.store
    }

    /// Refuses who asks about another store; who does not say which one is trusted.
    ///
    /// # Errors
    /// OTHER_STORE.
    pub fn admit(&self, store: &str) -> Result<(), Status> {
        if store.is_empty() || store == self.store { Ok(()) } else { Err(other_store(store, &self.store)) }
    }

    /// Remembers a server of another store.
    pub fn refused(&self, peer: SocketAddr, store: &str) {
        self.members.refuse(peer, &format!("it serves another store: {store}, not {}", self.store));
    }

    /// Takes in a message of the membership.
    ///
    /// # Errors
    /// One that is none.
    pub fn gossip(&self, from: SocketAddr, message: &[u8]) -> Result<(), String> {
        self.members.take(from, message)
    }

    /// The file of a cell of these layers, where it is here.
    pub fn image(&self, cell: CellName, source: u64) -> Option<PathBuf> {
        let held = self.held();
        let own = held.rows.get(&cell.row)?.cell(cell.partition).ok()?.clone();
        if own.label().source != source {
            return None;
        }
        let store = self.newest_with(cell.row)?;
        self.shelf.image(Some(&store), cell.row, cell.partition, source).ok().flatten()
    }

    /// UIDs of one epoch in another; 0 is the current one. Gives the epochs, too.
    ///
    /// # Errors
    /// NO_TRANSLATION, UNKNOWN_UID; EPOCH_UNKNOWN or EPOCH_RETIRED where the later of the epochs is not answered.
    pub async fn translate(&self, from: u64, to: u64, uids: Vec<u64>) -> Result<(u64, u64, Vec<Option<u64>>), Status> {
        let map = self.maps.borrow().clone();
        let named = |epoch: u64| if epoch == 0 { map.current } else { epoch };
        let (from, to) = (named(from), named(to));
        let newest = graph_of(&map, Some(from.max(to)))?.epoch;
        let store = self.state().stores.get(&newest).cloned();
        let store = store.ok_or_else(|| Status::unavailable(format!("epoch {newest} is being retired; retry")))?;
        let mut kept = self.translations.clone().lock_owned().await;
        let translated = blocking(move || {
            let between = match &*kept {
                Some((pair, between)) if *pair == (newest, from.min(to)) => between,
                _ => &kept.insert(((newest, from.min(to)), Translations::between(&store, from.min(to))?)).1,
            };
            let manifest = store.manifest();
            let past = manifest.history.iter().find(|past| past.epoch == from);
            let urls = past.map_or(manifest.counts.urls, |past| past.urls);
            if let Some(&uid) = uids.iter().find(|&&uid| uid >= urls) {
                return Err(LayersError::UnknownUid { uid, epoch: from, urls });
            }
            let turn = |uid| if from < to { between.forward(uid) } else { between.backward(uid) };
            Ok(uids.into_iter().map(turn).collect())
        });
        let translated = translated.await?.map_err(|error| status_of(&error))?;
        Ok((from, to, translated))
    }

    /// Says whether an epoch is wanted in memory, and waits until its cells are where that puts them. Gives their
    /// number.
    ///
    /// # Errors
    /// The caller's deadline ends the waiting.
    pub async fn hold(&self, pinned: &Pinned, wanted: bool) -> Result<u32, Status> {
        let cells = pinned.graph().rows.iter().map(|row| row.cells.len()).sum::<usize>();
        let wish = {
            let mut state = self.state();
            if wanted {
                state.relinquished.remove(&pinned.epoch());
            } else {
                state.relinquished.insert(pinned.epoch());
            }
            state.wishes += 1;
            state.wishes
        };
        self.wake.notify_one();
        if wanted {
            let mut counts = self.counts();
            let is_done = |counts: &KeeperCounts| counts.wishes >= wish && counts.missing == 0 && counts.moving == 0;
            let done = counts.wait_for(is_done).await;
            done.map_err(|_| Status::unavailable("the server is shutting down"))?;
        }
        Ok(u32::try_from(cells).unwrap_or(u32::MAX))
    }

    /// Says that this server goes, and returns when those that stay have all cells, each as often as it should be
    /// there, so that one of them may die at once; or at the end of the time.
    pub async fn leave(&self, within: Duration) {
        self.state().leaving = true;
        self.wake.notify_one();
        // The counts that say so are those of after this.
        tokio::time::sleep(2 * self.options.gossip).await;
        let mut counts = self.counts();
        let _ = tokio::time::timeout(within, counts.wait_for(|counts| counts.unsettled == 0)).await;
        self.members.leave().await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The state is whole after every statement.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest of the open epochs that have a row.
    fn newest_with(&self, row: u32) -> Option<Arc<Store>> {
        let state = self.state();
        let with = |store: &&Arc<Store>| store.manifest().rows.iter().any(|own| own.row == row);
        state.stores.values().rev().find(with).cloned()
    }
}

/// Runs what blocks.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Status> {
    tokio::task::spawn_blocking(work).await.map_err(|_| Status::internal("a task of the server panicked; see its log"))
}
