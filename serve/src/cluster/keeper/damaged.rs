//! Cells whose images change on the disk while they are served. The keeper drops these cells, so that they are made
//! again.
//!
//! A cell finds damage when it is read by a question or by the scrub. The keeper looks for damaged cells at each of its
//! checks. Running questions keep the damaged image mapped, and they fail.

use std::time::Duration;

use tokio::time::Instant;

use super::{AGAIN, DOUBLINGS_MAX, Keeper};

/// The interval after which blocks of mapped cells are compared again at the next read.
const RECHECK: Duration = Duration::from_secs(10);

/// The number of times that a cell is made again at once. Each time that the count of damages grows by this number adds
/// [`AGAIN`] to the wait.
const TIMES_AT_ONCE: u32 = 8;

impl Keeper {
    /// Drops the cells whose images were found to have changed, so that they are made again. Has the blocks of the
    /// other cells compared again at the next read, at most every [`RECHECK`].
    pub(super) async fn drop_damaged(&mut self) {
        let held = self.cluster.held();
        let cells = || held.rows.values().flat_map(|row| row.cells());
        if self.rechecked.elapsed() >= RECHECK {
            self.rechecked = Instant::now();
            cells().for_each(|cell| cell.guard().recheck());
        }
        let mut damaged = Vec::new();
        for cell in cells().filter(|cell| cell.is_damaged()) {
            let (name, path) = ((cell.label().row, cell.label().partition), cell.path().display());
            let times = self.damages.entry(name).or_default();
            *times += 1;
            // The wait grows, so that a disk that damages all written data is not written to without end.
            let wait = AGAIN * (*times / TIMES_AT_ONCE).min(1 << DOUBLINGS_MAX);
            self.again.insert(name, Instant::now() + wait);
            self.counts.damaged += 1;
            let (row, partition, times) = (name.0, name.1, *times);
            tracing::error!(
                row,
                partition,
                times,
                "the image of a cell has changed on the disk and is made anew: check the disk of {path}"
            );
            damaged.push(name);
        }
        // A removal also clears the shelf. Before the first check is over, the keeper does not know which images of an
        // earlier process are wanted.
        if !damaged.is_empty() {
            self.remove(&damaged).await;
        }
    }
}
