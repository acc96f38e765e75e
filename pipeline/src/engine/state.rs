//! What a worker has when a stage ends: all that the stages after it need, and what a killed job goes on from.
//!
//! Each stage takes the collections that it reads out of the state and puts in those that it makes. Records stand in files
//! of the scratch directory and are only named here; the state itself is small, and is written as JSON.

use crate::engine::job::{Job, Stopped};
use crate::engine::runs::{Run, Runs};
use crate::engine::shuffle::shuffle;
use crate::stages::uids::Offsets;
use crate::{Error, engine};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use timely::worker::Worker;
use webstrata_datasets::Tally;
use webstrata_layers::{Counts, EpochId, FileEntry, InputRecord};

/// See the head of this file; each collection names the stage that makes it and the one that takes it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct State {
    /// How many stages are done.
    pub(crate) stages: usize,
    /// What was met in the inputs besides captures.
    pub(crate) tally: Tally,
    /// Captures that were read.
    pub(crate) captures_read: u64,
    /// The inputs that this worker has read.
    pub(crate) inputs: Vec<InputRecord>,
    /// Captures that the store had already.
    pub(crate) captures_stored: u64,
    /// Capture records of the pages that this worker owns: `ingest` to `pages`.
    pub(crate) captures: Runs,
    /// URL records of what this worker has read, with repetitions: `ingest` to `uids`.
    pub(crate) urls: Runs,
    /// The sample of these URLs: `ingest` to `uids`.
    pub(crate) sample: Runs,
    /// Pages in order of their number on this worker: `pages` to `replace`. One run, not sorted, without keys.
    pub(crate) pages: Runs,
    /// Requests for the fingerprints that this worker owns: `pages` to `replace`.
    pub(crate) requests: Runs,
    /// Pages whose links are left out, of all workers: `pages` to `sources`.
    pub(crate) left_out: u64,
    /// UID records of the fingerprints that this worker owns: `uids` to `replace`.
    pub(crate) uids: Runs,
    /// The UIDs of all partitions: from `uids` on.
    pub(crate) offsets: Offsets,
    /// The UIDs whose records are in them: from `uids` on.
    pub(crate) records: Offsets,
    /// Page records of the partitions that this worker writes: `replace` to `outlinks`.
    pub(crate) page_records: Runs,
    /// In-link records of the partitions that this worker writes: `outlinks` to `inlinks`.
    pub(crate) in_links: Runs,
    /// Of a merge: first keys of its partitions but the first, and UIDs that nothing uses: `sample` to `urls`.
    pub(crate) boundaries: Vec<Box<[u8]>>,
    pub(crate) unused: Vec<u64>,
    /// How many these were, on one of the workers.
    pub(crate) dropped: u64,
    /// Of a merge: how UIDs are replaced, the same on every worker: from `urls` on.
    pub(crate) translation: Runs,
    /// Of a merge: how many rows become one.
    pub(crate) rows_merged: usize,
    /// Counts of what this worker wrote; all but the number of URLs.
    pub(crate) counts: Counts,
    /// URLs, out-links and in-links by partition, all together, of what this worker wrote.
    pub(crate) work: BTreeMap<u32, u64>,
    /// First keys of the partitions that this worker wrote, as the manifest has them.
    pub(crate) first_keys: BTreeMap<u32, String>,
    /// Files of layers that this worker wrote.
    pub(crate) files: Vec<FileEntry>,
}

impl State {
    /// The files that the state names.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &Run> {
        let State { captures, urls, sample, pages, requests, uids, page_records, in_links, translation, .. } = self;
        [captures, urls, sample, pages, requests, uids, page_records, in_links, translation]
            .into_iter()
            .flat_map(|runs| &runs.0)
    }

    /// The runs of `self` that `other` does not name.
    pub(crate) fn without(&self, other: &State) -> Runs {
        let others: BTreeSet<&str> = other.runs().map(|run| run.name.as_str()).collect();
        Runs(self.runs().filter(|run| !others.contains(run.name.as_str())).cloned().collect())
    }
}

/// Where all workers of a job go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    /// The row that the job writes.
    pub(crate) row: u32,
    /// The epoch that was current when it began.
    pub(crate) base: Option<EpochId>,
    /// How many stages are done.
    pub(crate) stages: usize,
}

/// Agrees with all workers on the last stage that every one of them has finished. `row` and `base` are what this process
/// knows of the job (process 0 decides), `stages` those after which this worker has a state, as a set of bits.
pub(crate) fn agree(
    worker: &mut Worker,
    job: &Job,
    row: u32,
    base: Option<EpochId>,
    stages: u64,
) -> Result<Start, Stopped> {
    let heard = engine::gather(worker, job, None, &(worker.index(), (row, base), stages))?;
    let first = heard.iter().min_by_key(|(index, ..)| *index).map_or((0, None), |(_, known, _)| *known);
    let common = heard.iter().fold(u64::MAX, |common, (_, _, stages)| common & stages);
    let same_row = heard.iter().all(|(_, known, _)| *known == first);
    let common = if same_row { common } else { common & 1 };
    let stages = job.check(common.checked_ilog2().ok_or(Error::LostState))? as usize;
    Ok(Start { row: first.0, base: first.1, stages })
}

/// Waits until all workers are here.
pub(crate) fn wait_for_all(worker: &mut Worker, job: &Job) -> Result<(), Stopped> {
    shuffle(worker, job, "wait", |_| Ok(false), |_| Ok(()))
}
