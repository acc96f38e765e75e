//! A server: cells of a store, the two gRPC services, and the same questions over HTTP, behind one port.
//!
//! ```text
//! caller --> [guards] --> [links] questions of everybody --> clerk --+--> other servers
//!        \-> [http]  -----------------------------------------/      +--> [cells] its own cells
//! store --> [cluster: keeper] which cells to have --> cells --> map --> clerk
//! ```
//!
//! Map: `links` answers the service `Links` by the server's own clerk; `cells` the service `Cells` from what it holds.

use std::sync::Arc;

use tokio::sync::watch;

use crate::clerk::Clerk;
use crate::cluster::Cluster;
use crate::guard::limits::Bounds;
use crate::protocol::proto::TopologyResponse;

mod cells;
mod links;
mod run;

pub use cells::CellsService;
pub use links::LinksService;
pub use run::{Alone, Server, ServerError, ServerOptions};

/// What the services share.
#[derive(Clone)]
pub struct Shared {
    /// Asks this server and the others.
    pub clerk: Clerk,
    /// Which cells are where.
    pub cluster: Arc<Cluster>,
    /// What one call may ask for.
    pub bounds: Bounds,
}

impl Shared {
    /// The newest map, as it travels.
    pub fn topology(&self) -> watch::Receiver<Arc<TopologyResponse>> {
        self.cluster.topology()
    }
}
