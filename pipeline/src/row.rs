//! The row that a job writes: the parts that workers have written, and the entry in the manifest.

use crate::Error;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use webstrata_datasets::Tally;
use webstrata_engine::Context;
use webstrata_layers::{Counts, FileEntry, Links, PartitionEntry, Reader, RowDir, RowEntry, Uid, url_in_row};

/// The part of the row that one worker has written.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct RowState {
    /// The first UIDs of all partitions, once they are assigned.
    pub(crate) offsets: Offsets,
    /// The bounds of the UIDs whose records are in the partitions.
    pub(crate) records: Offsets,
    /// The counts of the files that this worker wrote, except the number of URLs.
    pub(crate) counts: Counts,
    /// The number of captures, among these, that are revisits of other URLs.
    pub(crate) elsewhere: u64,
    /// Whether a revisit lost links that were lent to it ([`RowEntry::displaces`]).
    pub(crate) displaces: bool,
    /// The number of URLs, out-links and in-links that this worker wrote, added up by partition.
    pub(crate) work: BTreeMap<u32, u64>,
    /// The first keys of the partitions that this worker wrote, in the form of the manifest.
    pub(crate) first_keys: BTreeMap<u32, String>,
    /// The files of layers that this worker wrote.
    pub(crate) files: Vec<FileEntry>,
    /// The findings in the inputs, and what was left out.
    pub(crate) tally: Tally,
}

/// The first UIDs of the partitions, followed by the UID after the last partition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Offsets(pub(crate) Vec<Uid>);

impl Offsets {
    /// Returns the number of partitions.
    pub(crate) fn partitions(&self) -> usize {
        self.0.len() - 1
    }

    /// Returns the partition of a UID.
    pub(crate) fn of(&self, uid: Uid) -> usize {
        self.0.partition_point(|&first| first <= uid) - 1
    }

    /// Returns the worker that writes the URLs and out-links of a partition.
    pub(crate) fn worker(partition: usize, workers: usize) -> usize {
        partition % workers
    }

    /// Returns the worker that writes the in-links of a partition. This is another worker, so that few partitions keep
    /// more workers busy.
    pub(crate) fn inlinks_worker(partition: usize, workers: usize) -> usize {
        (partition + 1) % workers
    }
}

/// Returns the places of one worker's share among `count` places.
pub(crate) fn share(count: u64, index: usize, peers: usize) -> Range<u64> {
    let (index, peers) = (index as u64, peers as u64);
    let bound = |worker: u64| worker * (count / peers) + worker.min(count % peers);
    bound(index)..bound(index + 1)
}

/// Returns the row with the files of all workers, and the work of its largest partition divided by the mean.
pub(crate) fn row_of(context: &Context, updates: u64, states: &[&RowState]) -> (RowEntry, f64) {
    let (mut counts, mut elsewhere, mut displaces, none) = (Counts::default(), 0, false, RowState::default());
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
        displaces |= state.displaces;
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
    let (row, urls, removes) = (context.row.row(), counts.urls, false);
    let entry = RowEntry { row, first_uid, urls, updates, removes, displaces, elsewhere, partitions, counts };
    (entry, largest_over_mean)
}

/// Returns the number of a partition in the form that files and manifests use.
pub(crate) fn partition_number(partition: usize) -> Result<u32, Error> {
    u32::try_from(partition).map_err(|_| Error::Internal("more than 2^32 partitions"))
}

/// Returns the URL of a UID of the new row or of the store, for messages.
pub(crate) fn url_of(row: &RowDir, base: Option<&Reader>, offsets: &Offsets, uid: Uid) -> Result<String, Error> {
    if let Some(base) = base.filter(|base| uid.0 < base.urls()) {
        return Ok(base.url(uid)?);
    }
    let partition = offsets.of(uid);
    let urls = offsets.0[partition + 1] - offsets.0[partition];
    Ok(url_in_row(row, partition_number(partition)?, urls, uid)?)
}
