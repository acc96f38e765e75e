//! The scrub: a task that slowly reads the served data again, mapped cells and the layers of the served epochs. It
//! finds damage in data that nobody asks for.
//!
//! A mapped cell is compared block by block. A damaged cell is flagged, and the keeper drops the cell and makes it
//! again. A layer file is compared with its checksum. A server cannot make a layer file again, so the file is named in
//! the log, in `/readyz` and in a metric until it is sound again. Layers in S3 are not read, because each pass would
//! fetch the store. Memory: a block. Pace: [`ClusterOptions::scrub`](super::ClusterOptions::scrub) bytes a second, over
//! all files.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use super::{Cluster, blocking};
use webstrata_cells::mapped::guard::BLOCK;

/// The number of blocks of a cell that are compared at once.
const BLOCKS_AT_ONCE: usize = 64;
/// The shortest time from the end of a pass to the next pass.
const PAUSE: Duration = Duration::from_secs(1);
/// The number of damaged files that `/readyz` names.
const FILES_SHOWN: usize = 5;

/// The bytes that the scrub has read, and the damage that it has found.
#[derive(Default)]
pub(super) struct Scrubbed {
    bytes: AtomicU64,
    /// Damaged files of the store, by path, each with the description of its damage.
    damaged: Mutex<BTreeMap<String, String>>,
}

impl Scrubbed {
    fn damaged(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        // A poisoned lock is safe to use: every statement leaves a valid map.
        self.damaged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of damaged files, and the number of bytes that were read.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.damaged().len() as u64, self.bytes.load(Ordering::Relaxed))
    }
}

/// The damaged files, one line each.
impl fmt::Display for Scrubbed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let damaged = self.damaged();
        damaged.values().take(FILES_SHOWN).try_for_each(|why| writeln!(f, "damaged: {why}"))?;
        match damaged.len().checked_sub(FILES_SHOWN) {
            Some(more @ 1..) => writeln!(f, "damaged: {more} more files; see `webstrata check`"),
            _ => Ok(()),
        }
    }
}

/// Scrubs until the server stops.
pub(super) async fn scrub(cluster: Arc<Cluster>, mut stop: watch::Receiver<bool>) {
    if cluster.options.scrub == 0 {
        return;
    }
    let passes = async {
        loop {
            sleep(PAUSE).await;
            cells(&cluster).await;
            layers(&cluster).await;
        }
    };
    tokio::select! {
        () = passes => {}
        _ = stop.wait_for(|stopped| *stopped) => {}
    }
}

/// Counts bytes, and waits for as long as they take at the pace of the scrub.
async fn pace(cluster: &Cluster, bytes: u64) {
    cluster.scrubbed.bytes.fetch_add(bytes, Ordering::Relaxed);
    sleep(Duration::from_secs_f64(bytes as f64 / cluster.options.scrub as f64)).await;
}

/// Compares the mapped cells. No cell is held for longer than one step, so that a cell that is dropped meanwhile is
/// freed.
async fn cells(cluster: &Cluster) {
    let labels: Vec<_> = {
        let held = cluster.held();
        held.rows.values().flat_map(|row| row.cells()).map(|cell| *cell.label()).collect()
    };
    for label in labels {
        let mut block = 0;
        while let Some(cell) =
            cluster.held().rows.get(&label.row).and_then(|row| row.cell(label.partition).ok().cloned())
            && block < cell.guard().blocks()
            && !cell.is_damaged()
        {
            let blocks = block..block + BLOCKS_AT_ONCE;
            // The cell flags its own damage.
            let _ = blocking(move || cell.verify(blocks).is_ok()).await;
            pace(cluster, (BLOCKS_AT_ONCE * BLOCK) as u64).await;
            block += BLOCKS_AT_ONCE;
        }
    }
}

/// Compares the layer files of all served epochs. No lease is held between two files.
async fn layers(cluster: &Cluster) {
    let mut files = BTreeMap::new();
    for (&epoch, store) in cluster.state().stores.iter().filter(|(_, store)| store.location().directory().is_some()) {
        files.extend(store.manifest().files().map(|entry| (entry.path.clone(), (epoch, entry.clone()))));
    }
    for (path, (epoch, entry)) in &files {
        let (Some(store), file) = (cluster.epoch_store(*epoch), entry.clone()) else { continue };
        let Ok(verified) = blocking(move || store.verify(&file)).await else { continue };
        match verified {
            Ok(()) => _ = cluster.scrubbed.damaged().remove(path),
            // An epoch that was retired meanwhile may be gone.
            Err(error) if cluster.epoch_store(*epoch).is_some() => {
                let why = format!("{error}; restore the file from a backup, or build the store again");
                if cluster.scrubbed.damaged().insert(path.clone(), why.clone()).is_none() {
                    tracing::error!(epoch, "a file of the store is damaged: {why}");
                }
            }
            Err(_) => {}
        }
        pace(cluster, entry.bytes).await;
    }
    cluster.scrubbed.damaged().retain(|path, _| files.contains_key(path));
}
