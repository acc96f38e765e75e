//! The job `build`: crawl files in, one row of layers and a new epoch out.
//!
//! ```text
//! inputs -> ingest -> pages -> (sources) -> sample -> uids -> replace -> outlinks -> inlinks -> commit
//! ```
//!
//! Every worker runs the stages one after the other; what a stage leaves on a worker is the input of the next one. The
//! same set of captures gives the same bytes whatever the number of workers and the order of the inputs: everything is
//! sorted by keys that come from the data, and partitions follow from the set of URLs. Until the commit nothing of a
//! row can be seen, and a row without a commit is removed by the next writer.

use crate::external_sort::Spill;
use crate::ingest::{Ingested, Inputs, ingest};
use crate::job::{Job, Stopped};
use crate::outlinks::{Outlinks, outlinks};
use crate::pages::{Pages, pages};
use crate::partition::boundaries;
use crate::replace::replace;
use crate::shuffle::guarded;
use crate::sources::{Kept, sources};
use crate::uids::{Uids, uids};
use crate::{Error, Progress, inlinks};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use timely::worker::Worker;
use timely::{CommunicationConfig, WorkerConfig};
use webstrata_datasets::{LinkKinds, Tally};
use webstrata_layers::{
    Counts, FileEntry, Location, NewEpoch, PartitionEntry, Provenance, RangeLength, RowDir, RowEntry, StoreWriter,
};

/// What to build, from what, with what.
#[derive(Clone, Debug)]
pub struct BuildOptions {
    /// Crawl files, directories of them, patterns, or `-`.
    pub inputs: Vec<PathBuf>,
    /// Directory of the store; a store that is there gets a new epoch, which replaces what the old one answers.
    pub store: Location,
    /// Worker threads, at least 1.
    pub workers: usize,
    /// Bytes that sorting and buffering may take, all workers together.
    pub memory_max: usize,
    /// Where temporary files go; the system's directory for them where `None`.
    pub spill: Option<PathBuf>,
    /// Which links of a page count.
    pub kinds: LinkKinds,
    /// Length of the time ranges of in-links.
    pub in_range: RangeLength,
    /// URLs that were never captured and that fewer pages link to are left out; 0 and 1 leave out none.
    pub min_sources: u64,
    /// About how many URLs make a partition.
    pub partition_urls: u64,
    /// What to record of the program that asks, as name and value.
    pub provenance: BTreeMap<String, String>,
}

/// URLs of a partition, where nothing else is asked for.
pub const PARTITION_URLS: u64 = 4 << 20;

/// What a build did.
#[derive(Clone, Debug)]
pub struct BuildReport {
    /// The new epoch.
    pub epoch: u64,
    /// What the new row holds.
    pub counts: Counts,
    /// What the inputs held besides captures.
    pub tally: Tally,
    /// How many partitions the row has.
    pub partitions: usize,
    /// URLs of the largest partition over the mean.
    pub largest_over_mean: f64,
    /// Wall time.
    pub seconds: f64,
    /// Bytes written to temporary files.
    pub spilled_bytes: u64,
}

/// What one worker brings home.
struct Part {
    tally: Tally,
    counts: Counts,
    firsts: Vec<u64>,
    urls: Vec<(usize, String, Vec<FileEntry>)>,
    files: Vec<(usize, Vec<FileEntry>)>,
}

/// What all workers know.
struct Plan {
    job: Job,
    inputs: Arc<Inputs>,
    in_range: RangeLength,
    min_sources: u64,
    partition_urls: u64,
    row: RowDir,
}

fn work(worker: &mut Worker, plan: &Plan) -> Result<Part, Stopped> {
    let Plan { job, inputs, in_range, row, .. } = plan;
    let enter = |stage| job.progress().enter(stage);
    enter("ingest");
    let Ingested { captures, urls, sample, tally } = ingest(worker, job, inputs)?;
    enter("pages");
    let Pages { pages, requests } = pages(worker, job, captures)?;
    let (urls, sample, requests) = if plan.min_sources > 1 {
        enter("sources");
        let Kept { urls, sample, requests } = sources(worker, job, urls, requests, plan.min_sources)?;
        (urls, sample, requests)
    } else {
        (urls, sample, requests)
    };
    enter("uids");
    let boundaries = boundaries(worker, job, sample, plan.partition_urls)?;
    let Uids { uids, offsets, written } = uids(worker, job, urls, &boundaries, row)?;
    enter("replace");
    let pages = replace(worker, job, Pages { pages, requests }, uids, &offsets, row)?;
    enter("outlinks");
    let Outlinks { inlinks, mut files, counts } = outlinks(worker, job, pages, &offsets, *in_range, row)?;
    enter("inlinks");
    let records = job.check(inlinks.finish())?;
    files.extend(inlinks::inlinks((worker.index(), worker.peers()), job, records, &offsets, row)?);
    Ok(Part { tally, counts, firsts: offsets.0, urls: written, files })
}

/// Runs the workers of a job and gathers what they bring.
fn run(plan: Plan, workers: usize) -> Result<Vec<Part>, Error> {
    let job = plan.job.clone();
    let config = if workers == 1 { CommunicationConfig::Thread } else { CommunicationConfig::Process(workers) };
    let (builders, others) = config.try_build().map_err(Error::Dataflow)?;
    let guards = timely::execute::execute_from(builders, others, WorkerConfig::default(), move |worker| {
        let part = guarded(&plan.job, "build", || Ok(work(worker, &plan)));
        // Whatever a worker that stopped has left is dropped, or timely would wait for it.
        for dataflow in worker.installed_dataflows() {
            worker.drop_dataflow(dataflow);
        }
        part?.ok()
    })
    .map_err(Error::Dataflow)?;
    let parts: Vec<_> = guards.join().into_iter().collect();
    if let Some(error) = job.take_error() {
        return Err(error);
    }
    let stopped = || Error::Dataflow("a worker stopped without an error".to_owned());
    parts.into_iter().map(|part| part.map_err(Error::Dataflow)?.ok_or_else(stopped)).collect()
}

/// Builds a store; see the head of this file.
///
/// # Errors
/// Inputs that are not there or cannot be read, a store that another process writes, a full
/// disk. Damage inside inputs is counted in the report. After an error the store answers as before.
pub fn build(options: &BuildOptions, progress: &Progress) -> Result<BuildReport, Error> {
    let started = Instant::now();
    let workers = options.workers.max(1);
    let inputs = webstrata_datasets::inputs(&options.inputs)?;
    progress.set_inputs(inputs.len() as u64, inputs.iter().map(|input| input.bytes).sum());
    let directory = options.spill.clone().unwrap_or_else(std::env::temp_dir);
    let store = StoreWriter::open(&options.store, &format!("build, process {}", std::process::id()), None)?;
    let row = RowDir::open(&options.store, store.begin_row()?.row(), &directory);
    let spill = Spill { directory, bytes: progress.spill_counter() };
    let files = inputs.len();
    let plan = Plan {
        job: Job::new(workers, options.memory_max, spill, progress.clone()),
        inputs: Arc::new(Inputs { inputs, kinds: options.kinds, next: 0.into() }),
        in_range: options.in_range,
        min_sources: options.min_sources,
        partition_urls: options.partition_urls,
        row: row.clone(),
    };
    let parts = run(plan, workers)?;
    progress.enter("commit");
    let (mut tally, mut counts) = (Tally::default(), Counts::default());
    let firsts = parts.first().map_or(vec![0], |part| part.firsts.clone());
    let mut partitions: Vec<PartitionEntry> = (0u32..)
        .zip(firsts.windows(2))
        .map(|(partition, bounds)| PartitionEntry {
            partition,
            first_uid: bounds[0],
            urls: bounds[1] - bounds[0],
            first_key: String::new(),
            files: Vec::new(),
        })
        .collect();
    for part in parts {
        tally.add(part.tally);
        counts.add(&part.counts);
        for (partition, first_key, files) in part.urls {
            partitions[partition].first_key = first_key;
            partitions[partition].files.extend(files);
        }
        for (partition, files) in part.files {
            partitions[partition].files.extend(files);
        }
    }
    counts.urls = firsts.last().copied().unwrap_or(0);
    for partition in &mut partitions {
        partition.files.sort_by_key(|file| file.layer);
    }
    let largest = partitions.iter().map(|partition| partition.urls).max().unwrap_or(0);
    let largest_over_mean = largest as f64 * partitions.len() as f64 / (counts.urls.max(1)) as f64;
    let report_partitions = partitions.len();
    let entry = RowEntry { row: row.row(), first_uid: 0, urls: counts.urls, partitions, counts };
    let provenance = Provenance {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        inputs: files as u64,
        details: options.provenance.clone(),
    };
    let epoch = store.commit(NewEpoch { rows: vec![entry], in_range: options.in_range, provenance })?;
    Ok(BuildReport {
        epoch,
        counts,
        tally,
        partitions: report_partitions,
        largest_over_mean,
        seconds: started.elapsed().as_secs_f64(),
        spilled_bytes: progress.spilled(),
    })
}
