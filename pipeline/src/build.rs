//! The jobs `build` and `update`: crawl files in, one row of layers and a new epoch out.
//!
//! ```text
//! inputs -> ingest -> pages -> (sources) -> uids -> replace -> outlinks -> inlinks -> commit
//! ```
//!
//! The same set of captures gives the same bytes whatever the number of workers and processes and the order of the
//! inputs: everything is sorted by keys that come from the data, and partitions follow from the set of URLs.
//!
//! A build makes a row of its own. An update adds one to those of the store: `uids` finds the UIDs of URLs that the store
//! knows and numbers the others on, `outlinks` compares pages with what the store has of them ([`crate::stages::outlinks::revisits`]).

use crate::engine::job::Stopped;
use crate::engine::state::State;
use crate::engine::{self, Committing, Context, Identity, RunOptions, Work};
use crate::meaning::{Given, Meaning};
use crate::stages::ingest::{Inputs, ingest, share};
use crate::stages::inlinks::inlinks;
use crate::stages::outlinks::outlinks;
use crate::stages::pages::pages;
use crate::stages::replace::replace;
use crate::stages::sources::sources;
use crate::stages::uids::uids;
use crate::{Error, Progress};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;
use timely::worker::Worker;
use webstrata_datasets::{GenerateOptions, Input, LinkKinds, Tally};
use webstrata_layers::{
    Counts, Effort, Links, NewEpoch, PartitionEntry, Provenance, RangeLength, Reader, RowEntry, Store, write_inputs,
};

/// What to build, from what, with what.
#[derive(Clone, Debug)]
pub struct BuildOptions {
    /// Where and with what. A build into a store that is there makes a new epoch, which replaces what the old one answers.
    pub run: RunOptions,
    /// Crawl files, directories of them, patterns, or `-`; every process of a cluster is given the same.
    pub inputs: Vec<PathBuf>,
    /// Made-up crawls to read besides.
    pub generate: Vec<GenerateOptions>,
    /// Whether to add a row to what the store has: an update.
    pub update: bool,
    /// Which links of a page count; `None` for anchors, of an update for what the store has.
    pub kinds: Option<LinkKinds>,
    /// Bytes of a URL, at most; pages and links that are longer are left out. `None` for [`webstrata_datasets::URL_BYTES`], of
    /// an update for what the store has.
    pub url_bytes_max: Option<usize>,
    /// Length of the time ranges of in-links; of an update that of the store.
    pub in_range: RangeLength,
    /// URLs that were never captured and that fewer pages link to are left out; 0 and 1 leave out none; `None` for 0, of an
    /// update for what the store has. An update counts its own pages, and leaves out none that the store knows.
    pub min_sources: Option<u64>,
    /// About how many URLs make a partition; `None` for [`crate::PARTITION_URLS`].
    pub partition_urls: Option<u64>,
}

/// What a build did, all processes together.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BuildReport {
    /// The new epoch; of an update that had nothing new the one before.
    pub epoch: u64,
    /// What the new row holds.
    pub counts: Counts,
    /// What the inputs held besides captures.
    pub tally: Tally,
    /// How many partitions the row has.
    pub partitions: usize,
    /// Work (URLs, out-links and in-links) of the partition with most of it, over the mean.
    pub largest_over_mean: f64,
    /// Captures that were read.
    pub captures_read: u64,
    /// Captures, by page and second, that the store had already.
    pub captures_stored: u64,
}

/// What a build and an update do.
struct Build {
    /// As they were given.
    paths: Vec<PathBuf>,
    inputs: Arc<Inputs>,
    update: bool,
    meaning: Meaning,
    in_range: RangeLength,
    partition_urls: Option<u64>,
}

impl Build {
    fn in_range(&self, context: &Context) -> RangeLength {
        context.base.as_ref().map_or(self.in_range, |base| base.in_range())
    }
}

impl Work for Build {
    type Report = BuildReport;

    const NAME: &'static str = "build";

    const STAGES: &'static [&'static str] = &["ingest", "pages", "sources", "uids", "replace", "outlinks", "inlinks"];

    fn reads_store(&self) -> bool {
        self.update
    }

    fn effort(&self, _: Option<&Reader>) -> Effort {
        if self.update { Effort::Quick } else { Effort::Thorough }
    }

    fn input_bytes(&self, stage: &str, state: &State) -> u64 {
        match stage {
            "pages" => state.captures.bytes(),
            "uids" => state.urls.bytes(),
            "replace" => state.requests.bytes() + state.uids.bytes() + state.pages.bytes(),
            "outlinks" => state.page_records.bytes(),
            "inlinks" => state.in_links.bytes(),
            _ => 0,
        }
    }

    fn run(&self, worker: &mut Worker, context: &Context, stage: &str, state: &mut State) -> Result<(), Stopped> {
        let job = &context.job;
        match stage {
            "ingest" => ingest(worker, job, &self.inputs, state),
            "pages" => pages(worker, job, state),
            // URLs that only links name which are left out are none of the store.
            "sources" if self.meaning.min_sources > 1 || state.left_out > 0 => {
                sources(worker, context, self.meaning.min_sources, state)
            }
            "uids" => uids(worker, context, self.partition_urls, state),
            "replace" => replace(worker, context, state),
            "outlinks" => outlinks(worker, context, self.in_range(context), state),
            "inlinks" => inlinks(worker, context, state),
            _ => Ok(()),
        }
    }

    fn commit(&self, writer: Committing, context: &Context, states: &[State]) -> Result<BuildReport, Error> {
        let (mut tally, mut captures_read, mut captures_stored) = (Tally::default(), 0, 0);
        for state in states {
            tally.add(state.tally.clone());
            captures_read += state.captures_read;
            captures_stored += state.captures_stored;
        }
        if captures_read == 0 && tally.counts().all(|(finding, _)| finding.is_damage()) {
            if let Committing::Open(writer) = writer {
                writer.abandon(&context.row)?;
            }
            let first = tally.examples().into_iter().cloned().collect();
            return Err(Error::NothingRead {
                paths: self.paths.clone(),
                inputs: states.iter().map(|state| state.inputs.len() as u64).sum(),
                first,
            });
        }
        let (entry, largest_over_mean) = row_of(context, 1, states);
        let (counts, partitions) = (entry.counts, entry.partitions.len());
        let epoch = match writer {
            Committing::Done(epoch) => epoch,
            // Nothing that the store did not have: its epoch stays.
            Committing::Open(writer) if self.update && counts.pages == 0 && counts.urls == 0 => {
                let epoch = writer.current().map_or(0, |id| id.epoch);
                writer.abandon(&context.row)?;
                epoch
            }
            Committing::Open(writer) => {
                let manifest = context.base.as_ref().map(|base| base.store().manifest());
                let (mut rows, mut inputs) = manifest.map_or_else(Default::default, |manifest| {
                    (manifest.rows.clone(), manifest.provenance.inputs.clone())
                });
                rows.push(entry);
                let read = states.iter().flat_map(|state| state.inputs.clone()).collect();
                inputs.push(write_inputs(&context.row, read)?);
                let version = env!("CARGO_PKG_VERSION").to_owned();
                let provenance = Provenance { version, options: self.meaning.options(), inputs };
                writer.commit(NewEpoch { rows, in_range: self.in_range(context), provenance, translation: None })?
            }
        };
        Ok(BuildReport { epoch, counts, tally, partitions, largest_over_mean, captures_read, captures_stored })
    }
}

/// The row of all workers' files, and the work of its largest partition over the mean.
pub(crate) fn row_of(context: &Context, updates: u64, states: &[State]) -> (RowEntry, f64) {
    let (mut counts, none) = (Counts::default(), State::default());
    let first = states.first().unwrap_or(&none);
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
        for file in &state.files {
            partitions[file.partition as usize].files.push(file.clone());
        }
    }
    for partition in &mut partitions {
        partition.files.sort_by_key(|file| file.layer);
    }
    let mut work = vec![0; partitions.len()];
    for (&partition, own) in states.iter().flat_map(|state| &state.work) {
        work[partition as usize] += own;
    }
    let (largest, all) = (work.iter().max().copied().unwrap_or(0), work.iter().sum::<u64>().max(1));
    let largest_over_mean = largest as f64 * work.len() as f64 / all as f64;
    let first_uid = first.offsets.0.first().copied().unwrap_or(0);
    counts.urls = first.offsets.0.last().copied().unwrap_or(0) - first_uid;
    let row = context.row.row();
    (RowEntry { row, first_uid, urls: counts.urls, updates, partitions, counts }, largest_over_mean)
}

/// Builds a store, or adds a row to one; see the head of this file and [`engine::run`].
///
/// # Errors
/// Inputs that are not there or cannot be read, a store that another process writes, a full disk, a process that has gone;
/// no store to update; inputs without a record that can be read ([`Error::NothingRead`]), of which no store and no epoch is
/// made. Damage inside inputs is counted in the report. After an error the store answers as before, and the same call goes
/// on after the last finished stage.
pub fn build(options: &BuildOptions, progress: &Progress) -> Result<BuildReport, Error> {
    let &BuildOptions { ref run, update, kinds, url_bytes_max, in_range, min_sources, partition_urls, .. } = options;
    let given = Given { kinds, min_sources, url_bytes_max };
    let meaning = if update {
        let store = Store::open(&run.store)?;
        Meaning::of_store(&run.store, &store.manifest().provenance.options, given)?
    } else {
        given.or(Meaning::default())
    };
    let (process, processes) = run.cluster.as_ref().map_or((0, 1), |it| (it.process, it.hosts.len()));
    let mut inputs = webstrata_datasets::inputs(&options.inputs)?;
    inputs.extend(options.generate.iter().flat_map(|&crawl| webstrata_datasets::generate::inputs(crawl)));
    if inputs.is_empty() {
        return Err(Error::NothingRead { paths: options.inputs.clone(), inputs: 0, first: Vec::new() });
    }
    let files: Vec<_> = inputs.iter().map(|input| (&input.path, &input.part, input.bytes)).collect();
    let identity = Identity {
        bytes: format!("{update} {meaning:?} {in_range:?} {partition_urls:?} {files:?}"),
        times: times(&inputs),
    };
    let inputs = share(inputs, process, processes);
    progress.set_inputs(inputs.len() as u64, inputs.iter().map(|input| input.bytes).sum());
    let work = Build {
        paths: options.inputs.clone(),
        inputs: Arc::new(Inputs { inputs, meaning, next: 0.into() }),
        update,
        meaning,
        in_range,
        partition_urls,
    };
    engine::run(work, &identity, run, progress)
}

/// When inputs were changed.
fn times(inputs: &[Input]) -> String {
    let changed: Vec<_> = inputs
        .iter()
        .map(|input| {
            let changed = std::fs::metadata(&input.path).and_then(|file| file.modified()).ok();
            changed.and_then(|changed| changed.duration_since(UNIX_EPOCH).ok())
        })
        .collect();
    // Standard input cannot be known to be the same.
    let once = inputs.iter().any(|input| input.path == Path::new("-")).then(std::time::SystemTime::now);
    format!("{changed:?} {once:?}")
}
