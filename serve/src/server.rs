//! A server: cells of a store, two gRPC services, and the same questions over HTTP, all on one port.
//!
//! ```text
//! caller --> [guards] --> [links] questions of everybody --> clerk --+--> other servers
//!        \-> [http]  -----------------------------------------/      +--> [cells] cells held here
//! store --> [cluster: keeper] which cells to have --> cells --> map --> clerk
//! ```
//!
//! Map: `links` answers the service `Links` with the server's clerk; `cells` answers the service `Cells` from the cells
//! that the server holds; `run` starts and ends the server.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tonic::Status;

use crate::clerk::{Clerk, Pinned};
use crate::cluster::{Cluster, KeeperCounts};
use crate::guard::limits::Bounds;
use crate::protocol::proto::TopologyResponse;

mod around;
mod backlinks;
mod cells;
mod deaths;
mod links;
mod run;

pub use cells::CellsService;
pub use links::LinksService;
pub use run::{Alone, Server, ServerError, ServerOptions};

/// The state that the services share.
#[derive(Clone)]
pub struct Shared {
    /// The clerk, which asks this server and all other servers.
    pub clerk: Clerk,
    /// The cluster: which server holds which cells.
    pub cluster: Arc<Cluster>,
    /// The limits on one call.
    pub bounds: Bounds,
    /// The properties of answers over HTTP.
    pub(crate) http: Arc<HttpManner>,
}

/// The properties of answers over HTTP.
pub(crate) struct HttpManner {
    /// The prefix of the URLs of mementos.
    pub(crate) replay: String,
    /// The URL at which callers reach the server; `None`: the host that the caller names.
    pub(crate) public_url: Option<String>,
    /// The sources of the pages that may show the explorer in a frame, as content security policies name them.
    pub(crate) frames: String,
    /// `http` or `https`.
    pub(crate) scheme: &'static str,
    /// Whether each answer is for one caller only.
    pub(crate) is_private: bool,
}

/// How long a call waits for an epoch that is being loaded.
const PATIENCE: Duration = Duration::from_secs(2);
/// The rounds of gossip within which this server hears of an epoch that another server has.
const ROUNDS: u32 = 3;

impl Shared {
    /// Pins the epoch to ask (0: the current epoch). Another server may already serve the next epoch, so that the
    /// caller knows it. If this server has heard of the epoch, the call waits until it is loaded, at most [`PATIENCE`].
    /// If the epoch is the next one and this server has not heard of it, the call waits to hear of it, at most
    /// [`ROUNDS`] of gossip. Later epochs cannot exist yet.
    pub(crate) async fn pinned(&self, epoch: u64) -> Result<Pinned, Status> {
        let mut counts = self.cluster.counts();
        let current = self.clerk.map().current;
        let knows = |counts: &KeeperCounts| epoch <= counts.newest.max(counts.heard).max(current);
        let newest = {
            let counts = counts.borrow();
            counts.newest.max(counts.heard).max(current)
        };
        if epoch.checked_sub(1) == Some(newest) {
            let _ = tokio::time::timeout(ROUNDS * self.cluster.gossip_interval(), counts.wait_for(knows)).await;
        }
        if knows(&self.cluster.counts().borrow()) {
            let pinned = self.clerk.with_deadline(PATIENCE).at_last(Some(epoch)).await?;
            return self.clerk.at(Some(pinned.epoch()));
        }
        self.clerk.at(Some(epoch))
    }

    /// The newest map, as a message.
    pub fn topology(&self) -> watch::Receiver<Arc<TopologyResponse>> {
        self.cluster.topology()
    }
}
