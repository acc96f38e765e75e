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
use crate::cluster::Cluster;
use crate::guard::limits::Bounds;
use crate::protocol::proto::TopologyResponse;

mod around;
mod backlinks;
mod cells;
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
    /// How answers over HTTP are.
    pub(crate) http: Arc<HttpManner>,
}

/// How answers over HTTP are.
pub(crate) struct HttpManner {
    /// What URLs of mementos begin with.
    pub(crate) replay: String,
    /// Where callers reach the server; `None`: at the host that they name.
    pub(crate) public_url: Option<String>,
    /// `http` or `https`.
    pub(crate) scheme: &'static str,
    /// Whether answers are for one caller alone.
    pub(crate) is_private: bool,
}

/// How long a call waits for an epoch that this server does not know yet.
const PATIENCE: Duration = Duration::from_secs(2);

impl Shared {
    /// Pins the epoch to ask (0: the current epoch). The next epoch may already be served by another server, from which
    /// the caller knows it, so a call waits for it, at most [`PATIENCE`]. Later epochs cannot exist yet.
    pub(crate) async fn pinned(&self, epoch: u64) -> Result<Pinned, Status> {
        let newest = self.cluster.counts().borrow().newest;
        if epoch <= newest.max(self.clerk.map().current) + 1 {
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
