//! The row that a job writes: what its workers have made of it, and how it stands in the manifest.

use crate::Error;
use crate::engine::Context;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use webstrata_datasets::Tally;
use webstrata_layers::{Counts, FileEntry, Links, PartitionEntry, Reader, RowDir, RowEntry, Uid, url_in_row};

/// What a worker has written of the row.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct RowState {
    /// The UIDs of all partitions, once they are given.
    pub(crate) offsets: Offsets,
    /// The UIDs whose records are in them.
    pub(crate) records: Offsets,
    /// Counts of what this worker wrote; all but the number of URLs.
    pub(crate) counts: Counts,
    /// Captures of it that are revisits of other URLs.
    pub(crate) elsewhere: u64,
    /// URLs, out-links and in-links by partition, all together, of what this worker wrote.
    pub(crate) work: BTreeMap<u32, u64>,
    /// First keys of the partitions that this worker wrote, as the manifest has them.
    pub(crate) first_keys: BTreeMap<u32, String>,
    /// Files of layers that this worker wrote.
    pub(crate) files: Vec<FileEntry>,
    /// What was met in the inputs besides captures, and what was left out.
    pub(crate) tally: Tally,
}

/// First UIDs of the partitions; the last number is the UID after their last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Offsets(pub(crate) Vec<Uid>);

impl Offsets {
    /// How many partitions there are.
    pub(crate) fn partitions(&self) -> usize {
        self.0.len() - 1
    }

    /// The partition of a UID.
    pub(crate) fn of(&self, uid: Uid) -> usize {
        self.0.partition_point(|&first| first <= uid) - 1
    }

    /// The worker that writes URLs and out-links of a partition.
    pub(crate) fn worker(partition: usize, workers: usize) -> usize {
        partition % workers
    }

    /// The worker that writes in-links of a partition: another one, so that few partitions keep more workers busy.
    pub(crate) fn inlinks_worker(partition: usize, workers: usize) -> usize {
        (partition + 1) % workers
    }
}

/// The places of one worker's share among `count`.
pub(crate) fn share(count: u64, index: usize, peers: usize) -> Range<u64> {
    let (index, peers) = (index as u64, peers as u64);
    let bound = |worker: u64| worker * (count / peers) + worker.min(count % peers);
    bound(index)..bound(index + 1)
}

/// The row of all workers' files, and the work of its largest partition over the mean.
pub(crate) fn row_of(context: &Context, updates: u64, states: &[&RowState]) -> (RowEntry, f64) {
    let (mut counts, mut elsewhere, none) = (Counts::default(), 0, RowState::default());
    let first = states.first().copied().unwrap_or(&none);
    let mut partitions: Vec<PartitionEntry> = (0u32..)
        .zip(first.offsets.0.windows(2).zip(&first.records.0))
        .map(|(partition, (bounds, &first_record))| PartitionEntry {
            partition,
            first_uid: bounds[0],
            urls: bounds[1] - bounds[0],
            first_record,
            first_key: states.iter().find_map(|state| state.first_keys.get(&partition)).cloned().unwrap_or_default(),
            files: Vec::new(),
        })
        .collect();
    for state in states {
        counts.add(&state.counts);
        elsewhere += state.elsewhere;
        for file in &state.files {
            partitions[file.partition as usize].files.push(file.clone());
        }
    }
    for partition in &mut partitions {
        partition.files.sort_by_key(|file| file.layer);
    }
    let mut work = vec![0; partitions.len()];
    for (&partition, added) in states.iter().flat_map(|state| &state.work) {
        work[partition as usize] += added;
    }
    let (largest, all) = (work.iter().max().copied().unwrap_or(0), work.iter().sum::<u64>().max(1));
    let largest_over_mean = largest as f64 * work.len() as f64 / all as f64;
    let first_uid = first.offsets.0.first().copied().unwrap_or_default();
    counts.urls = first.offsets.0.last().copied().unwrap_or_default() - first_uid;
    let row = context.row.row();
    let entry = RowEntry { row, first_uid, urls: counts.urls, updates, removes: false, elsewhere, partitions, counts };
    (entry, largest_over_mean)
}

/// The number of a partition as files and manifests have it.
pub(crate) fn partition_number(partition: usize) -> Result<u32, Error> {
    u32::try_from(partition).map_err(|_| Error::Internal("more than 2^32 partitions"))
}

/// The URL of a UID of the row that is being written, or of the store, for messages.
pub(crate) fn url_of(row: &RowDir, base: Option<&Reader>, offsets: &Offsets, uid: Uid) -> Result<String, Error> {
    if let Some(base) = base.filter(|base| uid.0 < base.urls()) {
        return Ok(base.url(uid)?);
    }
    let partition = offsets.of(uid);
    let urls = offsets.0[partition + 1] - offsets.0[partition];
    Ok(url_in_row(row, partition_number(partition)?, urls, uid)?)
}
