//! The state that the gRPC services and HTTP share: the clerk, the cluster and the limits, and how an epoch is pinned.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tonic::Status;

use crate::clerk::{Clerk, Pinned};
use crate::cluster::{Cluster, KeeperCounts};
use crate::guard::limits::Bounds;
use crate::protocol::proto::{CellName, Counts, ServerStats, StatsResponse, TopologyResponse};

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

    /// The counts of an epoch (0: the current epoch): of each cell, of each server, and of all cells.
    ///
    /// # Errors
    /// An epoch that cannot be pinned, and cells that no server answers for.
    pub(crate) async fn stats(&self, epoch: u64) -> Result<StatsResponse, Status> {
        self.bounds.admit(1)?;
        let pinned = self.pinned(epoch).await?;
        let cells = pinned.counts().await?;
        let map = self.clerk.map();
        let mut servers: Vec<ServerStats> = map
            .servers
            .iter()
            .map(|server| ServerStats { server: server.name.clone(), counts: Some(Counts::default()), cells: 0 })
            .collect();
        let by_name: HashMap<_, _> =
            cells.iter().filter_map(|cell| cell.cell.map(|name| ((name.row, name.partition), cell))).collect();
        for row in &pinned.graph().rows {
            for cell in &row.cells {
                let Some(stats) = by_name.get(&(row.row, cell.partition)) else { continue };
                let holders = map.holders(CellName { row: row.row, partition: cell.partition });
                for holder in holders.filter_map(|server| map.server(&server.name)) {
                    servers[holder].cells += 1;
                    if let (Some(sum), Some(counts)) = (&mut servers[holder].counts, &stats.counts) {
                        add(sum, counts);
                    }
                }
            }
        }
        let mut total = Counts::default();
        cells.iter().filter_map(|cell| cell.counts.as_ref()).for_each(|counts| add(&mut total, counts));
        Ok(StatsResponse { epoch: pinned.epoch(), total: Some(total), servers, cells })
    }
}

/// Adds counts to a sum.
fn add(sum: &mut Counts, counts: &Counts) {
    sum.urls += counts.urls;
    sum.pages += counts.pages;
    sum.captures += counts.captures;
    sum.links += counts.links;
    sum.max_out_degree = sum.max_out_degree.max(counts.max_out_degree);
    sum.max_in_degree = sum.max_in_degree.max(counts.max_in_degree);
    sum.bytes += counts.bytes;
}
