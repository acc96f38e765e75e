//! `/v1/stats`, `/v1/topology`, `/v1/epochs`: counts of the store, and the servers that hold each cell. [`overview`]
//! has the store by year.

use axum::Json;
use axum::extract::{RawQuery, State};
use schemars::JsonSchema;
use serde::Serialize;
use webstrata_layers::answers::Time;

use super::Refused;
use super::describe::{Call, call};
use super::question::parameters::EPOCH;
use super::question::params::Params;
use crate::clerk::graph_of;
use crate::protocol::proto::{Cell, CellStats, Counts, Epoch, Row, Server, ServerStats};
use crate::shared::Shared;
use webstrata_cells::image::label::number_range;

pub(super) mod overview;

pub(super) const STATS: Call = call::<Stats>("stats", "Counts of the graph, its servers and cells.", &[EPOCH]);
pub(super) const TOPOLOGY: Call = call::<Topology>("topology", "The servers, and which server holds which cells.", &[]);
pub(super) const EPOCHS: Call = call::<Epochs>("epochs", "The current epoch, and all epochs that are served.", &[]);

/// Counts of cells. A page in two rows of the store counts twice, and so may its links.
#[derive(Serialize, JsonSchema)]
struct CellCounts {
    /// URLs.
    urls: u64,
    /// Pages.
    pages: u64,
    /// Captures.
    captures: u64,
    /// Pairs of a page and a link.
    links: u64,
    /// The most links of a page.
    max_out_degree: u64,
    /// The most pages that link to a URL.
    max_in_degree: u64,
    /// Bytes of memory.
    bytes: u64,
}

impl From<Option<Counts>> for CellCounts {
    fn from(counts: Option<Counts>) -> Self {
        let counts = counts.unwrap_or_default();
        Self {
            urls: counts.urls,
            pages: counts.pages,
            captures: counts.captures,
            links: counts.links,
            max_out_degree: counts.max_out_degree,
            max_in_degree: counts.max_in_degree,
            bytes: counts.bytes,
        }
    }
}

/// Counts of an epoch, its servers and cells.
#[derive(Serialize, JsonSchema)]
pub(super) struct Stats {
    /// The epoch.
    epoch: u64,
    /// The counts of all cells together.
    total: CellCounts,
    /// The servers.
    servers: Vec<StatsOfServer>,
    /// The cells.
    cells: Vec<StatsOfCell>,
}

/// A server.
#[derive(Serialize, JsonSchema)]
struct StatsOfServer {
    /// The address of the server.
    server: String,
    /// How many cells it has.
    cells: u32,
    /// The counts of its cells.
    counts: CellCounts,
}

/// A cell: one partition of one row.
#[derive(Serialize, JsonSchema)]
struct StatsOfCell {
    /// The row of the store.
    row: u32,
    /// The partition of the row.
    partition: u32,
    /// The lowest UID of its URLs.
    min_uid: u64,
    /// The highest UID.
    max_uid: u64,
    /// Its counts.
    counts: CellCounts,
}

/// The servers of a cluster, and the cells that each of them holds.
#[derive(Serialize, JsonSchema)]
pub(super) struct Topology {
    /// The epoch of answers.
    epoch: u64,
    /// The newest epoch of the store, which servers may still be loading.
    newest: u64,
    /// Cells that are not yet on all servers on which they are placed.
    unsettled: u64,
    /// The epochs that are served.
    epochs: Vec<ServedEpoch>,
    /// The servers.
    servers: Vec<ServerName>,
    /// The rows of the store.
    rows: Vec<ServedRow>,
}

/// An epoch that is served.
#[derive(Serialize, JsonSchema)]
struct ServedEpoch {
    /// The epoch.
    epoch: u64,
    /// Its URLs.
    urls: u64,
    /// The length of the time ranges of in-links.
    in_range: Option<String>,
    /// Its rows.
    rows: Vec<u32>,
}

/// A server of a cluster.
#[derive(Serialize, JsonSchema)]
struct ServerName {
    /// The name.
    name: String,
    /// The address.
    address: String,
}

/// A row of the store.
#[derive(Serialize, JsonSchema)]
struct ServedRow {
    /// The number of the row.
    row: u32,
    /// The first UID after those of the row.
    end_uid: u64,
    /// The first capture, if the row has captures.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_time: Option<Time>,
    /// The last capture, if the row has captures.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_time: Option<Time>,
    /// The cells of the row.
    cells: Vec<ServedCell>,
}

/// A cell of a row.
#[derive(Serialize, JsonSchema)]
struct ServedCell {
    /// The partition.
    partition: u32,
    /// The first UID.
    first_uid: u64,
    /// URLs.
    urls: u64,
    /// The names of the servers that have the cell.
    servers: Vec<String>,
}

/// The epochs that are served.
#[derive(Serialize, JsonSchema)]
pub(super) struct Epochs {
    /// The current epoch.
    epoch: u64,
    /// All epochs that are served.
    epochs: Vec<u64>,
}

/// `/v1/stats`.
pub(super) async fn stats(State(shared): State<Shared>, RawQuery(query): RawQuery) -> Result<Json<Stats>, Refused> {
    let params = Params::of(query.as_deref(), STATS.parameters)?;
    let stats = shared.stats(params.epoch()?).await?;
    let server = |server: ServerStats| StatsOfServer {
        server: server.server,
        cells: server.cells,
        counts: server.counts.into(),
    };
    let cell = |cell: CellStats| {
        let name = cell.cell.unwrap_or_default();
        let (row, partition) = (name.row, name.partition);
        StatsOfCell { row, partition, min_uid: cell.min_uid, max_uid: cell.max_uid, counts: cell.counts.into() }
    };
    Ok(Json(Stats {
        epoch: stats.epoch,
        total: stats.total.into(),
        servers: stats.servers.into_iter().map(server).collect(),
        cells: stats.cells.into_iter().map(cell).collect(),
    }))
}

/// `/v1/topology`.
pub(super) async fn topology(
    State(shared): State<Shared>,
    RawQuery(query): RawQuery,
) -> Result<Json<Topology>, Refused> {
    Params::of(query.as_deref(), TOPOLOGY.parameters)?;
    let topology = shared.topology().borrow().clone();
    graph_of(&shared.clerk.map(), None)?;
    let epoch = |epoch: &Epoch| ServedEpoch {
        epoch: epoch.epoch,
        urls: epoch.urls,
        in_range: number_range(epoch.in_range).map(|range| range.to_string()),
        rows: epoch.rows.clone(),
    };
    let server = |server: &Server| ServerName { name: server.name.clone(), address: server.address.clone() };
    let cell = |cell: &Cell| {
        let name = |index: &u32| topology.servers.get(usize::try_from(*index).ok()?).map(|server| server.name.clone());
        let servers = cell.servers.iter().filter_map(name).collect();
        ServedCell { partition: cell.partition, first_uid: cell.first_uid, urls: cell.urls, servers }
    };
    let row = |row: &Row| {
        let has_captures = row.first_time <= row.last_time;
        ServedRow {
            row: row.row,
            end_uid: row.end_uid,
            first_time: has_captures.then_some(Time(row.first_time)),
            last_time: has_captures.then_some(Time(row.last_time)),
            cells: row.cells.iter().map(cell).collect(),
        }
    };
    let counts = *shared.cluster.counts().borrow();
    Ok(Json(Topology {
        epoch: topology.current,
        newest: counts.newest,
        unsettled: counts.unsettled,
        epochs: topology.epochs.iter().map(epoch).collect(),
        servers: topology.servers.iter().map(server).collect(),
        rows: topology.rows.iter().map(row).collect(),
    }))
}

/// `/v1/epochs`.
pub(super) async fn epochs(State(shared): State<Shared>, RawQuery(query): RawQuery) -> Result<Json<Epochs>, Refused> {
    Params::of(query.as_deref(), EPOCHS.parameters)?;
    let map = shared.clerk.map();
    graph_of(&map, None)?;
    Ok(Json(Epochs { epoch: map.current, epochs: map.epochs.keys().copied().collect() }))
}
