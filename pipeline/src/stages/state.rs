//! The state of a worker of a build or an update after each stage.

use serde::{Deserialize, Serialize};
use webstrata_layers::held::HeldEntry;
use webstrata_layers::{FileEntry, InputRecord};

use crate::row::RowState;
use webstrata_engine::{JobState, Runs};

/// See the head of this file. The comment of each collection names the stage that makes it and the stage that takes it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct BuildState {
    pub(crate) row: RowState,
    /// The number of captures that were read.
    pub(crate) captures_read: u64,
    /// The inputs that this worker has read.
    pub(crate) inputs: Vec<InputRecord>,
    /// The number of captures that the store already had.
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
    /// The number of pages and records of all workers with links that are left out: `pages` to `sources`.
    pub(crate) left_out: u64,
    /// UID records of the fingerprints that this worker owns: `uids` to `replace`.
    pub(crate) uids: Runs,
    /// Page records of the partitions that this worker writes: `replace` to `outlinks`.
    pub(crate) page_records: Runs,
    /// Held URLs, in order of their numbers on this worker: `uids` to `held`. At most one run.
    pub(crate) held_urls: Runs,
    /// Links of pages to held URLs: `outlinks` to `held`.
    pub(crate) held_links: Runs,
    /// The files of held links that this worker has written.
    pub(crate) held: Vec<HeldEntry>,
    /// In-link records of the partitions that this worker writes: `outlinks` to `inlinks`.
    pub(crate) in_links: Runs,
}

impl JobState for BuildState {
    fn collections(&self) -> Vec<&Runs> {
        let Self {
            captures, urls, sample, pages, requests, uids, page_records, in_links, held_urls, held_links, ..
        } = self;
        vec![captures, urls, sample, pages, requests, uids, page_records, in_links, held_urls, held_links]
    }

    fn files(&self) -> &[FileEntry] {
        &self.row.files
    }
}
