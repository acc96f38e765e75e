//! Why a server is not ready to be asked, in words: what `/readyz` shows and its log says.

use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

/// A cell that could not be made or brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CellFailure {
    /// Its row.
    pub(super) row: u32,
    /// Its partition.
    pub(super) partition: u32,
    /// How often it was tried.
    pub(super) tries: u32,
    /// Why it failed last.
    pub(super) why: String,
    /// How long after that it is tried again.
    pub(super) wait: Duration,
    /// When that is.
    pub(super) again: Instant,
}

/// What a server lacks; nothing where it is ready.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Lacks {
    /// It is about to end.
    pub(super) leaving: bool,
    /// There is no epoch that it answers.
    pub(super) epoch: bool,
    /// So many cells that belong here are not here.
    pub(super) cells: u64,
    /// One of these that was tried in vain.
    pub(super) failed: Option<CellFailure>,
}

impl Lacks {
    /// Whether it lacks nothing.
    pub(super) fn is_nothing(&self) -> bool {
        !self.leaving && !self.epoch && self.cells == 0
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
            Self { cells: missing @ 1.., .. } => write!(formatter, "{missing} cells are still being loaded"),
            Self { epoch: true, .. } => {
                formatter.write_str("no epoch has all its cells on the servers of the cluster yet")
            }
            _ => formatter.write_str("nothing"),
        }
    }
}
