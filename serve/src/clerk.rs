//! The clerk: asks a cluster, knowing which server has which cell (Najork 2009, section 3).
//!
//! ```text
//! batch --> [Pinned: links, urls] questions to cells --> [call] side by side, again where one fails --> answers put together
//!                                    ^
//!              [watch] the map, from any server, whenever it changes
//! ```
//!
//! A clerk is cheap to clone, and all clones share connections and the map. Questions are asked of a [`Pinned`] epoch,
//! and are right for that epoch however the cluster changes meanwhile. Each call has a deadline, within which a server
//! that fails or is slow is replaced by the next that has the cell; dropping the call cancels what it asked. Servers
//! use the same code for callers that have no clerk, and answer for their own cells without a network.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tonic::Status;
use tonic::transport::Channel;

use crate::dial::Dialer;
use crate::map::{Graph, Map};
use crate::protocol::proto::cells_client::CellsClient;
use crate::protocol::proto::links_client::LinksClient;
use crate::protocol::proto::{
    Answer, Question, RelinquishRequest, RequestRequest, StatsRequest, StatsResponse, TranslateUidsRequest,
};
use crate::protocol::status::{Reason, refuse};

mod call;
mod links;
mod lists;
mod pages;
mod pinned;
mod remote;
mod split;
mod texts;
mod urls;
mod watching;

pub(crate) use links::At;
pub use pinned::Pinned;
pub use remote::{Refused, Remote};
pub(crate) use texts::Texts;
pub(crate) use watching::WAIT;

/// How a clerk behaves.
#[derive(Clone, Debug)]
pub struct ClerkOptions {
    /// A call ends by then.
    pub deadline: Duration,
    /// At the start, how long servers are tried none of which can be reached. One that can be, and is not ready yet, is
    /// waited for until the deadline.
    pub patience: Duration,
    /// A server that has not answered after this time is not waited for alone.
    pub hedge: Duration,
    /// A server that failed is asked last for so long.
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

/// How often a clerk had to help itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClerkCounts {
    /// Questions asked again, of another server.
    pub retries: u64,
    /// Questions asked of a second server because the first was slow.
    pub hedges: u64,
}

/// What answers for the cells of a server inside its own process.
pub(crate) trait Own: Send + Sync {
    /// The answers to questions about its own cells, in order.
    fn ask(&self, questions: Vec<Question>) -> futures_util::future::BoxFuture<'static, Result<Vec<Answer>, Status>>;
}

/// A client of a cluster.
#[derive(Clone)]
pub struct Clerk {
    shared: Arc<Shared>,
    options: ClerkOptions,
}

struct Shared {
    map: watch::Receiver<Arc<Map>>,
    dialer: Dialer,
    channels: Mutex<HashMap<String, Channel>>,
    /// Until when servers that failed are asked last, by address.
    suspects: Mutex<HashMap<String, Instant>>,
    counts: Mutex<ClerkCounts>,
    /// Hedges that may be asked, in tenths: so that they stay a small share of all questions.
    allowance: Mutex<u32>,
    /// The server that this is the clerk of.
    own: Option<(String, Arc<dyn Own>)>,
    /// What watches the map ends with the last clone.
    watching: Option<watching::Watching>,
}

impl Clerk {
    /// A clerk of the cluster that has servers at these addresses (host:port, one is enough), as soon as one of them
    /// answers.
    ///
    /// # Errors
    /// What each of them said: UNAVAILABLE where none can be reached for as long as [`ClerkOptions::patience`], or
    /// where none answers within the deadline; INVALID_ARGUMENT for what is no address.
    pub async fn connect(addresses: &[String], dialer: Dialer, options: ClerkOptions) -> Result<Self, Status> {
        let (watching, map) = watching::Watching::start(addresses.to_vec(), dialer.clone(), &options).await?;
        Ok(Self { shared: Arc::new(Shared::of(map, dialer, None, Some(watching))), options })
    }

    /// The clerk of a server.
    pub(crate) fn of_server(
        map: watch::Receiver<Arc<Map>>,
        dialer: Dialer,
        options: ClerkOptions,
        own: (String, Arc<dyn Own>),
    ) -> Self {
        Self { shared: Arc::new(Shared::of(map, dialer, Some(own), None)), options }
    }

    /// The same clerk with another deadline for each call.
    #[must_use]
    pub fn with_deadline(&self, deadline: Duration) -> Self {
        Self { shared: self.shared.clone(), options: ClerkOptions { deadline, ..self.options.clone() } }
    }

    /// The map as it is known now.
    pub fn map(&self) -> Arc<Map> {
        self.shared.map.borrow().clone()
    }

    /// How often it had to ask again.
    pub fn counts(&self) -> ClerkCounts {
        *lock(&self.shared.counts)
    }

    /// The current epoch, or a given one, to ask questions of.
    ///
    /// # Errors
    /// EPOCH_RETIRED, EPOCH_UNKNOWN; NOT_READY where there is no epoch yet.
    pub fn at(&self, epoch: Option<u64>) -> Result<Pinned, Status> {
        let map = self.map();
        graph_of(&map, epoch).map(|graph| Pinned { clerk: self.clone(), graph, map })
    }

    /// As [`Clerk::at`], but waits until the deadline for an epoch that is not there yet.
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

    /// UIDs of one epoch in another (0: the current one); `None` for URLs that are not there.
    ///
    /// # Errors
    /// NO_TRANSLATION, and what calls fail with.
    pub async fn translate(&self, from: u64, to: u64, uids: &[u64]) -> Result<Vec<Option<u64>>, Status> {
        let request = TranslateUidsRequest { from, to, uids: uids.to_vec() };
        let answer = self.anywhere(|mut client| {
            let request = self.timed(request.clone());
            async move { client.translate_uids(request).await }
        });
        let answer = answer.await?;
        Ok(answer.uids_plus_one.into_iter().map(|uid| uid.checked_sub(1)).collect())
    }

    /// Counts of the graph, its servers and cells; 0: of the current epoch.
    ///
    /// # Errors
    /// What calls fail with.
    pub async fn stats(&self, epoch: u64) -> Result<StatsResponse, Status> {
        let stats = |mut client: LinksClient<Authorized>| {
            let request = self.timed(StatsRequest { epoch });
            async move { client.stats(request).await }
        };
        self.anywhere(stats).await
    }

    /// Brings an epoch into memory; gives the number of cells. 0: the current epoch.
    ///
    /// # Errors
    /// What calls fail with.
    pub async fn request(&self, epoch: u64) -> Result<u32, Status> {
        let request = |mut client: LinksClient<Authorized>| {
            let request = self.timed(RequestRequest { epoch, here: false });
            async move { client.request(request).await }
        };
        Ok(self.anywhere(request).await?.cells)
    }

    /// Says that an epoch need not be in memory. 0: the current epoch.
    ///
    /// # Errors
    /// What calls fail with.
    pub async fn relinquish(&self, epoch: u64) -> Result<(), Status> {
        let relinquish = |mut client: LinksClient<Authorized>| {
            let request = self.timed(RelinquishRequest { epoch, here: false });
            async move { client.relinquish(request).await }
        };
        self.anywhere(relinquish).await.map(drop)
    }
}

impl Clerk {
    /// Tells all servers but its own whether an epoch is wanted in memory, and waits until it is so. Those that do not
    /// answer are not waited for, since it is a hint.
    pub(crate) async fn tell_others(&self, epoch: u64, wanted: bool) {
        let map = self.map();
        let own = self.shared.own.as_ref().map(|(name, _)| name.as_str());
        let others = map.servers.iter().filter(|server| Some(server.name.as_str()) != own);
        let told = others.map(|server| async {
            let mut client = self.shared.links(&server.address)?;
            if wanted {
                client.request(self.timed(RequestRequest { epoch, here: true })).await.map(drop)
            } else {
                client.relinquish(self.timed(RelinquishRequest { epoch, here: true })).await.map(drop)
            }
        });
        for failed in futures_util::future::join_all(told).await.into_iter().filter_map(Result::err) {
            tracing::debug!(status = %failed, epoch, wanted, "cannot tell a server about an epoch");
        }
    }
}

/// A connection with what it takes to be let in.
pub(crate) type Authorized = tonic::service::interceptor::InterceptedService<Channel, crate::guard::Caller>;

impl Shared {
    fn of(
        map: watch::Receiver<Arc<Map>>,
        dialer: Dialer,
        own: Option<(String, Arc<dyn Own>)>,
        watching: Option<watching::Watching>,
    ) -> Self {
        Self {
            map,
            dialer,
            channels: Mutex::default(),
            suspects: Mutex::default(),
            counts: Mutex::default(),
            allowance: Mutex::new(100),
            own,
            watching,
        }
    }

    fn channel(&self, address: &str) -> Result<Channel, Status> {
        let mut channels = lock(&self.channels);
        if let Some(channel) = channels.get(address) {
            return Ok(channel.clone());
        }
        let channel = self.dialer.dial(address)?;
        // Who starts again may have another address, and would leave a connection behind each time.
        let map = self.map.borrow().clone();
        channels.retain(|known, _| map.servers.iter().any(|server| server.address == *known));
        channels.insert(address.to_owned(), channel.clone());
        Ok(channel)
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

/// The rows of an epoch that is answered.
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
    // What is behind these locks is whole after every statement.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
