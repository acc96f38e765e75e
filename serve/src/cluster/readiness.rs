//! Why a server is not ready: the message of `/readyz`.
//!
//! A server becomes ready with all its cells. After that, it stays ready as long as calls can be answered: if a server
//! dies or a new epoch comes, all servers load cells at the same time, and a load balancer must not lose all of them.

use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

/// A cell that could not be made or fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CellFailure {
    /// The row of the cell.
    pub(super) row: u32,
    /// The partition of the cell.
    pub(super) partition: u32,
    /// The number of failed attempts.
    pub(super) tries: u32,
    /// The error of the last attempt.
    pub(super) why: String,
    /// The wait between the last attempt and the next.
    pub(super) wait: Duration,
    /// The time of the next attempt.
    pub(super) again: Instant,
}

/// The reasons why a server is not ready.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Lacks {
    /// The server is shutting down.
    pub(super) leaving: bool,
    /// The server serves no epoch yet.
    pub(super) epoch: bool,
    /// The number of cells placed on this server that it does not hold yet.
    pub(super) cells: u64,
    /// Whether calls are answered without these cells: the server was ready before, and either other servers have the
    /// cells, or no answered epoch needs them.
    pub(super) is_spared: bool,
    /// The number of these cells that were here until their images changed on the disk.
    pub(super) damaged: u64,
    /// One of these cells whose last attempt failed, if there is one.
    pub(super) failed: Option<CellFailure>,
}

impl Lacks {
    /// Whether the server lacks nothing that calls need.
    pub(super) fn is_nothing(&self) -> bool {
        !self.leaving && !self.epoch && (self.cells == 0 || self.is_spared)
    }

    /// The line of `/readyz` about cells that are missing although the server is ready. Empty if no cell is missing or
    /// the server is not ready.
    pub(super) fn note(&self) -> String {
        if self.is_nothing() && self.cells > 0 {
            format!("cells: {self}; calls are answered without them\n")
        } else {
            String::new()
        }
    }
}

impl fmt::Display for Lacks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self { failed: Some(CellFailure { row, partition, tries, why, wait, .. }), cells, .. } => write!(
                formatter,
                "{cells} cells are missing; row {row}, partition {partition} failed {tries} times, next retry \
                 after {} s: {why}",
                wait.as_secs()
            ),
            Self { leaving: true, .. } => formatter.write_str("the server is shutting down"),
            Self { cells: missing @ 1.., damaged: damaged @ 1.., .. } => write!(
                formatter,
                "{missing} cells are still being loaded, {damaged} of them anew because their images were damaged"
            ),
            Self { cells: missing @ 1.., .. } => write!(formatter, "{missing} cells are still being loaded"),
            Self { epoch: true, .. } => {
                formatter.write_str("no epoch has all its cells on the servers of the cluster yet")
            }
            _ => formatter.write_str("nothing"),
        }
    }
}
