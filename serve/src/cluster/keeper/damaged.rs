//! Cells whose images change on the disk while they are served: they are dropped, so that they are made anew.
//!
//! Cells find by themselves that they are damaged, when they are read and when the scrub reads them; the keeper looks
//! at each of its checks. What was mapped stays so for questions that run, and these fail.

use std::time::Duration;

use tokio::time::Instant;

use super::{AGAIN, DOUBLINGS_MAX, Keeper};

/// How often blocks of mapped cells are compared again when they are read.
const RECHECK: Duration = Duration::from_secs(10);

/// So often a cell is made anew at once; then each time so often adds [`AGAIN`] to the wait.
const TIMES_AT_ONCE: u32 = 8;

impl Keeper {
    /// Drops the cells whose images were found to have changed, so that they are made anew, and has blocks of the
    /// others compared again when they are read next.
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
            // A disk that damages all that is written to it is not written to without end.
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
        // A removal also clears the shelf. Images of an earlier process are not known to be wanted before the first
        // look is over.
        if !damaged.is_empty() {
            self.remove(&damaged).await;
        }
    }
}
