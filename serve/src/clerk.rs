//! The clerk: the client library, which knows which server holds which cell (Najork 2009, section 3).
//!
//! ```text
//! batch --> [Pinned: links, urls] questions to cells --> [call] in parallel, with retries --> answers joined
//!                                    ^
//!              [watching] the map, from any server, whenever the map changes
//! ```
//!
//! A clerk is cheap to clone, and all clones share connections and the map. Questions are asked of a [`Pinned`] epoch;
//! the answers are correct for that epoch, however the cluster changes meanwhile. Each call has a deadline. Until then
//! the clerk retries and hedges: a server that fails or is slow is replaced by the next replica. Dropping a call
//! cancels its questions. Each server has a clerk for callers without one, and answers for its cells without a network,
//! and for all cells if no other server answers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use webstrata_layers::Uid;

use tokio::sync::watch;
use tokio::time::Instant;
use tonic::Status;
use tonic::transport::Channel;

use crate::dial::{Dialer, Peer};
use crate::guard::memory::Budget;
use crate::map::{Graph, Map};
use crate::protocol::proto::cells_client::CellsClient;
use crate::protocol::proto::links_client::LinksClient;
use crate::protocol::proto::{
    Answer, CellName, Question, RelinquishRequest, RequestRequest, StatsRequest, StatsResponse, TranslateUidsRequest,
};
use crate::protocol::status::{Reason, refuse};

mod backlinks;
mod call;
mod drive;
mod hosts;
mod links;
mod neighbourhood;
mod pages;
mod pinned;
mod remote;
mod spellings;
mod split;
mod texts;
mod urls;
mod watching;

pub use backlinks::{BacklinkAnswer, BacklinkQuestion};
pub(crate) use links::UidInWindow;
pub use neighbourhood::{NeighbourhoodAnswer, Node};
pub use pinned::Pinned;
pub use remote::{Refused, Remote};
pub(crate) use texts::Texts;
pub(crate) use watching::WAIT;

/// The options of a clerk.
#[derive(Clone, Debug)]
pub struct ClerkOptions {
    /// The longest time of a call.
    pub deadline: Duration,
    /// At the start: how long to try if no server can be reached. A server that can be reached but is not ready is
    /// awaited until the deadline.
    pub patience: Duration,
    /// After this time without an answer, the clerk also asks a second replica (hedging).
    pub hedge: Duration,
    /// How long a failed server is asked last.
    pub suspect: Duration,
}

impl Default for ClerkOptions {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(10),
            patience: Duration::from_secs(1),
            hedge: Duration::from_millis(40),
            suspect: Duration::from_secs(2),
        }
    }
}

/// The numbers of retries and hedges of a clerk.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClerkCounts {
    /// Retries at another server after a failure.
    pub retries: u64,
    /// Hedges: questions to a second server because the first was slow.
    pub hedges: u64,
}

/// Answers for the cells of a server inside the process of the server.
pub(crate) trait LocalCells: Send + Sync {
    /// The answers to questions about these cells, in order.
    fn ask(&self, questions: Vec<Question>) -> futures_util::future::BoxFuture<'static, Result<Vec<Answer>, Status>>;

    /// Asks for a cell that no server answers for. If this server can make the cell, a later map lists it as a holder
    /// of the cell.
    fn need(&self, cell: CellName);
}

/// A client of a cluster.
#[derive(Clone)]
pub struct Clerk {
    shared: Arc<ClerkState>,
    options: ClerkOptions,
}

struct ClerkState {
    map: watch::Receiver<Arc<Map>>,
    dialer: Dialer,
    peers: Mutex<HashMap<String, Peer>>,
    /// The addresses of failed servers. For each: until when the clerk asks it last, and whether it was found to be
    /// silent.
    suspects: Mutex<HashMap<String, (Instant, bool)>>,
    counts: Mutex<ClerkCounts>,
    /// The allowance for hedges, in tenths of a hedge, so that hedges stay a small share of all questions.
    allowance: Mutex<u32>,
    remembered: Mutex<backlinks::remembered::Remembered>,
    /// The name and the cells of the server that the clerk belongs to, if any.
    local: Local,
    /// The memory of the calls of that server.
    budget: Budget,
    /// The task that updates the map; it ends with the last clone.
    watching: Option<watching::Watching>,
}

impl Clerk {
    /// Connects to the cluster that has servers at these addresses (host:port, one is enough). Returns when the first
    /// server answers.
    ///
    /// # Errors
    /// The error of each server: UNAVAILABLE if no server can be reached within [`ClerkOptions::patience`], or if no
    /// server answers within the deadline; INVALID_ARGUMENT for text that is not an address.
    pub async fn connect(addresses: &[String], dialer: Dialer, options: ClerkOptions) -> Result<Self, Status> {
        let (watching, map) = watching::Watching::start(addresses.to_vec(), dialer.clone(), &options).await?;
        let shared = ClerkState::of(map, dialer, (None, Budget::default()), Some(watching));
        Ok(Self { shared: Arc::new(shared), options })
    }

    /// The clerk of a server.
    pub(crate) fn of_server(
        map: watch::Receiver<Arc<Map>>,
        dialer: Dialer,
        options: ClerkOptions,
        (local, budget): ((String, Arc<dyn LocalCells>), Budget),
    ) -> Self {
        let shared = Arc::new(ClerkState::of(map, dialer, (Some(local), budget), None));
        tokio::spawn(backlinks::remembered::forget_retired(Arc::downgrade(&shared)));
        Self { shared, options }
    }

    /// The same clerk with another deadline for each call.
    #[must_use]
    pub fn with_deadline(&self, deadline: Duration) -> Self {
        Self { shared: self.shared.clone(), options: ClerkOptions { deadline, ..self.options.clone() } }
    }

    /// The newest known map.
    pub fn map(&self) -> Arc<Map> {
        self.shared.map.borrow().clone()
    }

    /// The retries and hedges so far.
    pub fn counts(&self) -> ClerkCounts {
        *lock(&self.shared.counts)
    }

    /// Pins the current epoch or a given epoch, to ask questions about it.
    ///
    /// # Errors
    /// EPOCH_RETIRED, EPOCH_UNKNOWN; NOT_READY if no epoch is ready yet.
    pub fn at(&self, epoch: Option<u64>) -> Result<Pinned, Status> {
        let map = self.map();
        let charge = self.shared.budget.charge_of_call();
        graph_of(&map, epoch).map(|graph| Pinned { clerk: self.clone(), graph, map, charge })
    }

    /// Like [`Clerk::at`], but waits until the deadline for an epoch that is not served yet.
    ///
    /// # Errors
    /// See [`Clerk::at`].
    pub async fn at_last(&self, epoch: Option<u64>) -> Result<Pinned, Status> {
        let deadline = Instant::now() + self.options.deadline;
        let mut maps = self.shared.map.clone();
        loop {
            let status = match self.at(epoch) {
                Ok(pinned) => return Ok(pinned),
                Err(status) => status,
            };
            if !matches!(Reason::of(&status), Some(Reason::NotReady | Reason::EpochUnknown)) {
                return Err(status);
            }
            match tokio::time::timeout_at(deadline, maps.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return Err(status),
            }
        }
    }

    /// Translates UIDs from one epoch to another (0: the current epoch); `None` for URLs that the other epoch lacks.
    ///
    /// # Errors
    /// NO_TRANSLATION, and the errors of calls.
    pub async fn translate(&self, from: u64, to: u64, uids: &[Uid]) -> Result<Vec<Option<Uid>>, Status> {
        let request = TranslateUidsRequest { from, to, uids: Uid::numbers(uids).to_vec() };
        let answer = self.anywhere(|mut client| {
            let request = self.timed(request.clone());
            async move { client.translate_uids(request).await }
        });
        let answer = answer.await?;
        Ok(answer.uids_plus_one.into_iter().map(|uid| uid.checked_sub(1).map(Uid)).collect())
    }

    /// Counts of the graph, its servers and cells, for an epoch (0: the current epoch).
    ///
    /// # Errors
    /// The errors of calls.
    pub async fn stats(&self, epoch: u64) -> Result<StatsResponse, Status> {
        let stats = |mut client: LinksClient<Authorized>| {
            let request = self.timed(StatsRequest { epoch });
            async move { client.stats(request).await }
        };
        self.anywhere(stats).await
    }

    /// Loads an epoch (0: the current epoch) into memory. Returns the number of its cells.
    ///
    /// # Errors
    /// The errors of calls.
    pub async fn request(&self, epoch: u64) -> Result<u32, Status> {
        let request = |mut client: LinksClient<Authorized>| {
            let request = self.timed(RequestRequest { epoch, here: false });
            async move { client.request(request).await }
        };
        Ok(self.anywhere(request).await?.cells)
    }

    /// Allows the cluster to unload an epoch (0: the current epoch) from memory.
    ///
    /// # Errors
    /// The errors of calls.
    pub async fn relinquish(&self, epoch: u64) -> Result<(), Status> {
        let relinquish = |mut client: LinksClient<Authorized>| {
            let request = self.timed(RelinquishRequest { epoch, here: false });
            async move { client.relinquish(request).await }
        };
        self.anywhere(relinquish).await.map(drop)
    }
}

impl Clerk {
    /// Tells all other servers whether an epoch should be in memory, and waits for them. Servers that fail are ignored,
    /// because this is a hint.
    pub(crate) async fn tell_others(&self, epoch: u64, in_memory: bool) {
        let map = self.map();
        let own_name = self.shared.local.as_ref().map(|(name, _)| name.as_str());
        let others = map.servers.iter().filter(|server| Some(server.name.as_str()) != own_name);
        let calls = others.map(|server| async {
            let mut client = self.shared.links(&server.address)?;
            if in_memory {
                client.request(self.timed(RequestRequest { epoch, here: true })).await.map(drop)
            } else {
                client.relinquish(self.timed(RelinquishRequest { epoch, here: true })).await.map(drop)
            }
        });
        for failed in futures_util::future::join_all(calls).await.into_iter().filter_map(Result::err) {
            tracing::debug!(status = %failed, epoch, wanted = in_memory, "cannot tell a server about an epoch");
        }
    }
}

/// A connection that sends the token and the trace.
pub(crate) type Authorized = tonic::service::interceptor::InterceptedService<Channel, crate::guard::Caller>;

/// The name of the server that a clerk lives in, and its cells; `None` in a client.
type Local = Option<(String, Arc<dyn LocalCells>)>;

impl ClerkState {
    fn of(
        map: watch::Receiver<Arc<Map>>,
        dialer: Dialer,
        (local, budget): (Local, Budget),
        watching: Option<watching::Watching>,
    ) -> Self {
        Self {
            map,
            dialer,
            peers: Mutex::default(),
            suspects: Mutex::default(),
            counts: Mutex::default(),
            allowance: Mutex::new(100),
            remembered: Mutex::default(),
            local,
            budget,
            watching,
        }
    }

    fn channel(&self, address: &str) -> Result<Channel, Status> {
        let mut peers = lock(&self.peers);
        if let Some(peer) = peers.get_mut(address) {
            return peer.channel(&self.dialer);
        }
        let mut peer = self.dialer.peer(address)?;
        let channel = peer.channel(&self.dialer);
        // A restarted server may have a new address, so connections to old addresses must be dropped.
        let map = self.map.borrow().clone();
        peers.retain(|known, _| map.servers.iter().any(|server| server.address == *known));
        peers.insert(address.to_owned(), peer);
        channel
    }

    fn cells(&self, address: &str) -> Result<CellsClient<Authorized>, Status> {
        let channel = self.channel(address)?;
        let client = CellsClient::with_interceptor(channel, self.dialer.caller());
        Ok(client.max_decoding_message_size(usize::MAX).max_encoding_message_size(usize::MAX))
    }

    fn links(&self, address: &str) -> Result<LinksClient<Authorized>, Status> {
        let channel = self.channel(address)?;
        let client = LinksClient::with_interceptor(channel, self.dialer.caller());
        Ok(client.max_decoding_message_size(usize::MAX).max_encoding_message_size(usize::MAX))
    }
}

/// The rows of a served epoch.
pub(crate) fn graph_of(map: &Map, epoch: Option<u64>) -> Result<Arc<Graph>, Status> {
    let epoch = epoch.filter(|&epoch| epoch > 0).unwrap_or(map.current);
    if let Some(graph) = map.epochs.get(&epoch).filter(|_| map.current > 0) {
        return Ok(graph.clone());
    }
    let current = map.current;
    if current == 0 {
        return Err(refuse(Reason::NotReady, "no epoch is ready yet; retry", &[]));
    }
    let oldest = map.epochs.keys().next().copied().unwrap_or(current);
    if epoch > current {
        let message = format!("epoch {epoch} is not served yet; the current epoch is {current}");
        return Err(refuse(Reason::EpochUnknown, message, &[("epoch", epoch), ("current", current)]));
    }
    let message =
        format!("epoch {epoch} is no longer served; epochs {oldest} to {current} are (TranslateUids maps UIDs)");
    let metadata = [("epoch", epoch), ("oldest", oldest), ("current", current)];
    Err(refuse(Reason::EpochRetired, message, &metadata))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // A poisoned lock is safe to use: every statement leaves valid state behind it.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
