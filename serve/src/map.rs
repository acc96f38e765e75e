//! The map of a cluster: its epochs, their rows and cells, and which servers hold which cells.
//!
//! A map is made from the message [`TopologyResponse`]; servers make the message from manifests and from gossip. A map
//! is immutable, and a change makes a new map with another version. The look-up of a UID or a key is a binary search in
//! each row. Memory: about 100 bytes a cell, and the first key of the cell.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use webstrata_layers::record::precedence::Overlaps;
use webstrata_layers::{RangeLength, Uid, Window};

use crate::protocol::proto::{CellName, Server, TopologyResponse};
use webstrata_cells::image::label::number_range;

/// The servers of a cluster, and the cells that each server holds.
#[derive(Debug, Default)]
pub struct Map {
    /// The version. Maps with different versions are different.
    pub version: u64,
    /// The identity of the store; empty if unknown.
    pub store: String,
    /// The current epoch, which questions without an epoch are about; 0 if there is none yet.
    pub current: u64,
    /// The names and addresses of the servers.
    pub servers: Vec<Server>,
    /// The served epochs.
    pub epochs: BTreeMap<u64, Arc<Graph>>,
    /// The rows of all epochs, by number.
    pub rows: HashMap<u32, Arc<RowMap>>,
}

/// The rows of one epoch.
#[derive(Debug)]
pub struct Graph {
    /// The number of the epoch.
    pub epoch: u64,
    /// The number of URLs; all UIDs are below it.
    pub urls: u64,
    /// The length of the time ranges of in-links.
    pub in_range: RangeLength,
    /// The rows, oldest first.
    pub rows: Vec<Arc<RowMap>>,
    /// The times in which captures of more than one row may lie.
    pub overlaps: Overlaps,
    /// Whether a row has a capture with a status of 400 or above, or one that is removed.
    pub has_failures: bool,
    /// Whether a row takes out content of older rows.
    pub removes: bool,
    /// Whether a row has a capture with unknown links.
    pub has_unknown: bool,
}

/// The cells of one row.
#[derive(Debug, Default)]
pub struct RowMap {
    /// The number of the row.
    pub row: u32,
    /// The UID after the last URL of the row. The row has no records from this UID on.
    pub end_uid: Uid,
    /// The times of the first and the last capture. If the row has no captures, the first time is later.
    pub times: (i64, i64),
    /// Whether the row has a capture with a status of 400 or above, or one that is removed.
    pub has_failures: bool,
    /// Whether the row takes out content of older rows.
    pub removes: bool,
    /// Whether the row has a capture with unknown links.
    pub has_unknown: bool,
    /// The cells, in order of UIDs.
    pub cells: Vec<CellMap>,
    /// The first key and the index of each cell that has URLs.
    keys: Vec<(Vec<u8>, usize)>,
}

/// One cell, and the servers that hold it.
#[derive(Debug)]
pub struct CellMap {
    /// The partition of the cell.
    pub partition: u32,
    /// The UIDs of the cell's URLs.
    pub urls: Range<Uid>,
    /// The UIDs that may have records in the cell.
    pub records: Range<Uid>,
    /// The indexes of the servers that have the cell, in the order in which to ask them.
    pub servers: Vec<usize>,
}

impl Map {
    /// Makes a map from a message. Indexes of unknown servers are skipped.
    pub fn of(topology: TopologyResponse) -> Self {
        let servers = topology.servers.len();
        let rows: HashMap<u32, Arc<RowMap>> =
            topology.rows.into_iter().map(|row| (row.row, Arc::new(RowMap::of(row, servers)))).collect();
        let graph = |epoch: crate::protocol::proto::Epoch| {
            let rows: Vec<_> = epoch.rows.iter().filter_map(|row| rows.get(row).cloned()).collect();
            let in_range = number_range(epoch.in_range).unwrap_or(RangeLength::Month);
            (epoch.epoch, Arc::new(Graph::of(epoch.epoch, epoch.urls, in_range, rows)))
        };
        Self {
            version: topology.version,
            store: topology.store,
            current: topology.current,
            servers: topology.servers,
            epochs: topology.epochs.into_iter().map(graph).collect(),
            rows,
        }
    }

    /// The servers that hold a cell, in the order in which to ask them.
    pub fn holders(&self, cell: CellName) -> impl Iterator<Item = &Server> {
        let row = self.rows.get(&cell.row);
        let cell_map = row.and_then(|row| {
            let index = row.cells.binary_search_by_key(&cell.partition, |known| known.partition).ok()?;
            row.cells.get(index)
        });
        cell_map.into_iter().flat_map(|known| &known.servers).filter_map(|&index| self.servers.get(index))
    }

    /// The index of a server.
    pub fn server(&self, name: &str) -> Option<usize> {
        self.servers.iter().position(|server| server.name == name)
    }
}

impl Graph {
    /// An epoch with these rows, oldest first.
    pub fn of(epoch: u64, urls: u64, in_range: RangeLength, rows: Vec<Arc<RowMap>>) -> Self {
        let removes = rows.iter().any(|row| row.removes);
        let overlaps = Overlaps::of(&rows.iter().map(|row| row.times).collect::<Vec<_>>(), removes);
        let has_failures = rows.iter().any(|row| row.has_failures);
        let has_unknown = rows.iter().any(|row| row.has_unknown);
        Self { epoch, urls, in_range, rows, overlaps, has_failures, removes, has_unknown }
    }
}

impl RowMap {
    fn of(row: crate::protocol::proto::Row, servers: usize) -> Self {
        let mut row_map = Self {
            row: row.row,
            end_uid: Uid(row.end_uid),
            times: (row.first_time, row.last_time),
            has_failures: row.has_failures,
            removes: row.removes,
            has_unknown: row.has_unknown,
            cells: Vec::with_capacity(row.cells.len()),
            keys: Vec::new(),
        };
        for cell in row.cells {
            let known = cell.servers.iter().filter_map(|&index| usize::try_from(index).ok());
            let known = known.filter(|&index| index < servers);
            let cell_map = CellMap {
                partition: cell.partition,
                urls: Uid(cell.first_uid)..Uid(cell.first_uid).saturating_add(cell.urls),
                records: Uid(cell.first_record)..Uid(cell.end_record),
                servers: known.collect(),
            };
            if cell.urls > 0 {
                row_map.keys.push((cell.first_key, row_map.cells.len()));
            }
            row_map.cells.push(cell_map);
        }
        row_map
    }

    /// Whether captures of the row may affect the answer for a window.
    pub fn overlaps(&self, window: Window) -> bool {
        window.overlaps(self.times)
    }

    /// The index of the cell that may have the record of a UID, if any.
    pub fn cell_of(&self, uid: Uid) -> Option<usize> {
        let index = self.cells.partition_point(|cell| cell.records.end <= uid);
        self.cells.get(index).filter(|cell| cell.records.start <= uid).map(|_| index)
    }

    /// The index of the cell that has the URL of a UID.
    pub fn cell_of_url(&self, uid: Uid) -> Option<usize> {
        let index = self.cells.partition_point(|cell| cell.urls.end <= uid);
        self.cells.get(index).filter(|cell| cell.urls.start <= uid).map(|_| index)
    }

    /// The index of the only cell that may have a key.
    pub fn cell_of_key(&self, key: &[u8]) -> Option<usize> {
        let after = self.keys.partition_point(|(first, _)| first.as_slice() <= key);
        after.checked_sub(1).map(|index| self.keys[index].1)
    }

    /// The indexes of the cells that may have keys with this prefix.
    pub fn cells_of_prefix(&self, prefix: &[u8]) -> impl Iterator<Item = usize> {
        // The last cell that begins before the prefix may end inside the prefix.
        let start = self.keys.partition_point(|(first, _)| first.as_slice() < prefix).saturating_sub(1);
        let may_match = move |(first, _): &&(Vec<u8>, usize)| first.as_slice() <= prefix || first.starts_with(prefix);
        self.keys[start..].iter().take_while(may_match).map(|&(_, cell)| cell)
    }
}
