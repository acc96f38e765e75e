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

use tokio::sync::watch;

use crate::clerk::Clerk;
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

impl Shared {
    /// The newest map, as a message.
    pub fn topology(&self) -> watch::Receiver<Arc<TopologyResponse>> {
        self.cluster.topology()
    }
}
