//! The job `build`: crawl files in, one row of layers and a new epoch out.
//!
//! ```text
//! inputs -> ingest -> pages -> (sources) -> uids -> replace -> outlinks -> inlinks -> commit
//! ```
//!
//! Every worker of every process runs the stages one after the other; what a stage leaves on a worker stands in its
//! [`State`]. The same set of captures gives the same bytes whatever the number of workers and processes and the order of the
//! inputs: everything is sorted by keys that come from the data, and partitions follow from the set of URLs. Until the
//! commit nothing of a row can be seen.
//!
//! A stage ends when all workers have saved their states; only then are the files removed that no later stage reads. So
//! a job that was killed goes on with the stage that it was in, if it is started again with the same inputs (path, size and
//! time of change), options, workers and processes. Any other job clears away what it finds.

use crate::cluster::{self, Cluster};
use crate::ingest::{Inputs, ingest, share};
use crate::inlinks::inlinks;
use crate::job::{Job, Stopped, WRITERS_BYTES};
use crate::outlinks::outlinks;
use crate::pages::pages;
use crate::replace::replace;
use crate::scratch::{JobFile, Scratch};
use crate::shuffle::{guarded, shuffle};
use crate::sources::sources;
use crate::state::{Start, State, agree, wait_for_all};
use crate::uids::uids;
use crate::{Error, Progress, meter, wire};
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::UNIX_EPOCH;
use timely::communication::Hooks;
use timely::communication::allocator::zero_copy::initialize::initialize_networking_from_sockets;
use timely::communication::allocator::{AllocatorBuilder, ProcessBuilder};
use timely::worker::Worker;
use timely::{CommunicationConfig, WorkerConfig};
use webstrata_datasets::{GenerateOptions, Input, LinkKinds, Tally};
use webstrata_layers::{
    Counts, FileEntry, Location, NewEpoch, PartitionEntry, Provenance, RangeLength, RowDir, RowEntry, StoreWriter,
};
use xxhash_rust::xxh3::xxh3_128;

/// What to build, from what, with what.
#[derive(Clone, Debug)]
pub struct BuildOptions {
    /// Crawl files, directories of them, patterns, or `-`; every process of a cluster is given the same.
    pub inputs: Vec<PathBuf>,
    /// Made-up crawls to read besides.
    pub generate: Vec<GenerateOptions>,
    /// Where the store is; a store that is there gets a new epoch, which replaces what the old one answers.
    pub store: Location,
    /// Worker threads, at least 1.
    pub workers: usize,
    /// Bytes that this process may take, all in all.
    pub memory_max: usize,
    /// Where temporary files go; the system's directory for them where `None`.
    pub spill: Option<PathBuf>,
    /// The processes that work together; `None` for this one alone.
    pub cluster: Option<Cluster>,
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
pub const PARTITION_URLS: u64 = 1 << 19;

/// What a build did, all processes together.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BuildReport {
    /// The new epoch.
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
}

/// The stages, in order.
const STAGES: [&str; 7] = ["ingest", "pages", "sources", "uids", "replace", "outlinks", "inlinks"];

/// What all workers of a process know.
struct Plan {
    job: Job,
    /// What the processes of the job compare.
    id: String,
    /// What a later start of the job compares.
    known_as: String,
    inputs: Arc<Inputs>,
    in_range: RangeLength,
    min_sources: u64,
    partition_urls: u64,
    inputs_all: u64,
    provenance: BTreeMap<String, String>,
    store: Location,
    known: Known,
    /// Only in process 0, until the commit.
    writer: Mutex<Option<StoreWriter>>,
}

/// What a process knows of the row of the job before it has heard the others.
#[derive(Clone, Copy)]
struct Known {
    row: Option<u32>,
    /// The job was killed after its commit.
    committed: bool,
}

/// What process 0 knows: it goes on with the row that it had begun, unless another job has made that number an epoch.
fn know(writer: &StoreWriter, scratch: &Scratch, kept: Option<u32>, workers: usize) -> Result<Known, Error> {
    let begin = || -> Result<Known, Error> {
        scratch.retain(&BTreeSet::new())?;
        Ok(Known { row: Some(writer.begin_row()?.row()), committed: false })
    };
    let Some(row) = kept else { return begin() };
    let Some((_, entry)) = writer.committed(row)? else {
        return if writer.resume_row(row).is_ok() { Ok(Known { row: kept, committed: false }) } else { begin() };
    };
    let is_in_epoch = |file: &FileEntry| entry.partitions.iter().any(|partition| partition.files.contains(file));
    let states: Option<Vec<_>> = (0..workers).map(|worker| scratch.load(worker, STAGES.len())).collect();
    let ours = states.is_some_and(|states| states.iter().flat_map(|state| &state.files).all(is_in_epoch));
    if ours { Ok(Known { row: kept, committed: true }) } else { begin() }
}

fn run_stage(worker: &mut Worker, plan: &Plan, row: &RowDir, stage: usize, state: &mut State) -> Result<(), Stopped> {
    let job = &plan.job;
    match STAGES[stage] {
        "ingest" => ingest(worker, job, &plan.inputs, state),
        "pages" => pages(worker, job, state),
        "sources" if plan.min_sources > 1 => sources(worker, job, plan.min_sources, state),
        "uids" => uids(worker, job, plan.partition_urls, row, state),
        "replace" => replace(worker, job, row, state),
        "outlinks" => outlinks(worker, job, plan.in_range, row, state),
        "inlinks" => inlinks(worker, job, row, state),
        _ => Ok(()),
    }
}

/// Bytes of temporary files that a stage reads.
fn input_bytes(stage: &str, state: &State) -> u64 {
    match stage {
        "pages" => state.captures.bytes(),
        "uids" => state.urls.bytes(),
        "replace" => state.requests.bytes() + state.uids.bytes() + state.pages.bytes(),
        "outlinks" => state.page_records.bytes(),
        "inlinks" => state.in_links.bytes(),
        _ => 0,
    }
}

/// All that one worker does.
fn work(worker: &mut Worker, plan: &Plan) -> Result<BuildReport, Stopped> {
    let (job, index) = (&plan.job, worker.index());
    let scratch = job.scratch();
    let Start { row, stages } = resume(worker, plan)?;
    let row = RowDir::open(&plan.store, row, scratch.directory()).with_helpers(job.helpers().clone());
    let mut state = if stages == 0 { State::default() } else { scratch.load(index, stages).ok_or(Stopped)? };
    let reports = index % job.workers() == 0;
    for (stage, name) in STAGES.iter().enumerate().skip(stages) {
        let before = state.clone();
        if reports {
            // Work is shared out evenly, and this worker cannot know when the others begin.
            job.progress().enter(name, input_bytes(name, &state) * job.workers() as u64);
        }
        run_stage(worker, plan, &row, stage, &mut state)?;
        state.stages = stage + 1;
        job.check(scratch.save(index, &state))?;
        let (taken, made) = (before.without(&state), state.without(&before));
        job.progress().add_stage(&taken, &made);
        wait_for_all(worker, job)?;
        if reports {
            job.progress().leave();
        }
        job.check(taken.remove(scratch))?;
        if stage > 0 {
            job.check(scratch.forget(index, stage))?;
        }
    }
    commit(worker, plan, &row, state)
}

/// Agrees on where to go on, and clears away all that is not needed for that.
fn resume(worker: &mut Worker, plan: &Plan) -> Result<Start, Stopped> {
    let (job, scratch) = (&plan.job, plan.job.scratch());
    let finished = (1..=STAGES.len()).filter(|&stages| scratch.load(worker.index(), stages).is_some());
    // What is committed cannot be begun again.
    let begin = u64::from(!plan.known.committed);
    let bits = finished.fold(begin, |bits, stages| bits | 1u64 << stages);
    let start = agree(worker, job, (plan.known.row.unwrap_or(0), bits))?;
    if worker.index().is_multiple_of(job.workers()) {
        let own = worker.index()..worker.index() + job.workers();
        let states: Option<Vec<_>> =
            own.map(|worker| scratch.load(worker, start.stages).map(|state| (worker, state))).collect();
        let states = if start.stages == 0 { Vec::new() } else { states.ok_or(Stopped)? };
        job.check(scratch.retain(&Scratch::needed(states.iter().map(|(worker, state)| (*worker, state)))))?;
        job.check(scratch.set_job(&JobFile { id: plan.known_as.clone(), row: start.row }))?;
        if start.stages > 0 {
            tracing::info!(stage = STAGES.get(start.stages).unwrap_or(&"commit"), "going on with an unfinished job");
        }
    }
    wait_for_all(worker, job)?;
    Ok(start)
}

/// Gathers what all workers have written, makes it an epoch, and tells all.
fn commit(worker: &mut Worker, plan: &Plan, row: &RowDir, state: State) -> Result<BuildReport, Stopped> {
    let job = &plan.job;
    if worker.index().is_multiple_of(job.workers()) {
        job.progress().enter("commit", 0);
    }
    let states = gather(worker, job, Some(0), &state)?;
    let writer = if worker.index() == 0 { plan.writer.lock().ok().and_then(|mut writer| writer.take()) } else { None };
    let report = match writer {
        Some(writer) => Some(job.check(make_epoch(plan, writer, row, &states))?),
        None => None,
    };
    let reports = gather(worker, job, None, &report)?;
    reports.into_iter().flatten().next().ok_or(Stopped)
}

/// Sends a value of each worker to one worker, or to all.
fn gather<T: Serialize + for<'a> Deserialize<'a> + 'static>(
    worker: &mut Worker,
    job: &Job,
    to: Option<usize>,
    value: &T,
) -> Result<Vec<T>, Stopped> {
    let heard = Rc::new(RefCell::new(Vec::new()));
    let collect = Rc::clone(&heard);
    let mut json = Some(job.check(serde_json::to_vec(value).map_err(Error::State))?);
    shuffle(
        worker,
        job,
        "commit",
        move |outbox| {
            let Some(json) = json.take() else { return Ok(false) };
            match to {
                Some(worker) => outbox.send(worker, &[], &json),
                None => outbox.send_to_all(&[], &json),
            }
            Ok(true)
        },
        move |block| {
            let mut read = Ok(());
            wire::for_each(&block, |_, json| match serde_json::from_slice(json) {
                Ok(value) => collect.borrow_mut().push(value),
                Err(error) => read = Err(Error::State(error)),
            });
            read
        },
    )?;
    Ok(heard.take())
}

/// Makes the row of all workers' files the current epoch.
fn make_epoch(plan: &Plan, writer: StoreWriter, row: &RowDir, states: &[State]) -> Result<BuildReport, Error> {
    let (mut tally, mut counts, mut captures_read) = (Tally::default(), Counts::default(), 0);
    let firsts = states.first().map_or(&[0][..], |state| &state.offsets.0);
    let mut partitions: Vec<PartitionEntry> = (0u32..)
        .zip(firsts.windows(2))
        .map(|(partition, bounds)| PartitionEntry {
            partition,
            first_uid: bounds[0],
            urls: bounds[1] - bounds[0],
            first_key: states.iter().find_map(|state| state.first_keys.get(&partition)).cloned().unwrap_or_default(),
            files: Vec::new(),
        })
        .collect();
    for state in states {
        tally.add(state.tally.clone());
        counts.add(&state.counts);
        captures_read += state.captures_read;
        for file in &state.files {
            partitions[file.partition as usize].files.push(file.clone());
        }
    }
    counts.urls = firsts.last().copied().unwrap_or(0);
    for partition in &mut partitions {
        partition.files.sort_by_key(|file| file.layer);
    }
    let mut work = vec![0; partitions.len()];
    for (&partition, own) in states.iter().flat_map(|state| &state.work) {
        work[partition as usize] += own;
    }
    let (largest, all) = (work.iter().max().copied().unwrap_or(0), work.iter().sum::<u64>().max(1));
    let largest_over_mean = largest as f64 * work.len() as f64 / all as f64;
    let count = partitions.len();
    let epoch = match writer.committed(row.row())? {
        // This job was killed after its commit.
        Some((epoch, _)) => epoch,
        None => {
            let entry = RowEntry { row: row.row(), first_uid: 0, urls: counts.urls, partitions, counts };
            let version = env!("CARGO_PKG_VERSION").to_owned();
            let provenance = Provenance { version, inputs: plan.inputs_all, details: plan.provenance.clone() };
            writer.commit(NewEpoch { rows: vec![entry], in_range: plan.in_range, provenance, translation: None })?
        }
    };
    Ok(BuildReport { epoch, counts, tally, partitions: count, largest_over_mean, captures_read })
}

/// Starts timely's workers, runs them, and returns what the first of them reports.
fn run(plan: Plan, workers: usize, cluster: Option<&Cluster>) -> Result<BuildReport, Error> {
    let job = plan.job.clone();
    let (builders, connections) = match cluster {
        None => {
            let config = if workers == 1 { CommunicationConfig::Thread } else { CommunicationConfig::Process(workers) };
            config.try_build().map_err(Error::Dataflow)?
        }
        Some(cluster) => {
            let peers = cluster::connect(cluster, &plan.id, &job)?;
            let own = ProcessBuilder::new_bytes_vector(workers, Hooks::default().refill, None);
            initialize_networking_from_sockets(own, peers, cluster.process, workers, Hooks::default())
                .map(|(builders, guard)| {
                    let builders = builders.into_iter().map(AllocatorBuilder::Tcp).collect();
                    (builders, Box::new(guard) as Box<dyn Any + Send>)
                })
                .map_err(|error| Error::Dataflow(error.to_string()))?
        }
    };
    let guards = timely::execute::execute_from(builders, Box::new(()), WorkerConfig::default(), move |worker| {
        let report = guarded(&plan.job, "build", || Ok(work(worker, &plan)));
        // Whatever a worker that stopped has left is dropped, or timely would wait for it.
        for dataflow in worker.installed_dataflows() {
            worker.drop_dataflow(dataflow);
        }
        let report = report?.ok();
        if report.is_some() {
            plan.job.finish();
        }
        report
    })
    .map_err(Error::Dataflow)?;
    let reports: Vec<_> = guards.join().into_iter().collect();
    if !job.finished() {
        // Threads that hold connections to processes that have gone would not end.
        std::mem::forget(connections);
        return Err(job.take_error().unwrap_or(Error::Internal("a worker stopped without an error")));
    }
    drop(connections);
    let stopped = || Error::Dataflow("no worker has reported".to_owned());
    reports.into_iter().next().ok_or_else(stopped)?.map_err(Error::Dataflow)?.ok_or_else(stopped)
}

/// What decides the bytes of a job, and how its temporary files are laid out: hashed without, and with what tells whether
/// it is the same inputs as before.
fn ids(options: &BuildOptions, inputs: &[Input]) -> (String, String) {
    let BuildOptions { store, workers, kinds, in_range, min_sources, partition_urls, cluster, .. } = options;
    let processes = cluster.as_ref().map_or(1, |cluster| cluster.hosts.len());
    let version = env!("CARGO_PKG_VERSION");
    let files: Vec<_> = inputs.iter().map(|input| (&input.path, &input.part, input.bytes)).collect();
    let job = format!(
        "{version} {store} {workers} {processes} {kinds:?} {in_range:?} {min_sources} {partition_urls} {files:?}"
    );
    let changed: Vec<_> = inputs
        .iter()
        .map(|input| {
            let changed = std::fs::metadata(&input.path).and_then(|file| file.modified()).ok();
            changed.and_then(|changed| changed.duration_since(UNIX_EPOCH).ok())
        })
        .collect();
    // What was not written to disk is lost with the machine.
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    // Standard input cannot be known to be the same.
    let once = inputs.iter().any(|input| input.path == Path::new("-")).then(std::time::SystemTime::now);
    let hash = |text: &str| format!("{:032x}", xxh3_128(text.as_bytes()));
    (hash(&job), hash(&format!("{job} {changed:?} {boot} {once:?}")))
}

/// Memory that a worker takes besides what it sorts, and besides [`WRITERS_BYTES`]: the batch of a reader, the row groups on
/// their way to the writers, blocks on the way to other workers.
const WORKER_BYTES: usize = 50 << 20;
/// The same for a process.
const PROCESS_BYTES: usize = 30 << 20;
/// What a worker needs to sort in.
const SORTING_BYTES_MIN: usize = 16 << 20;

/// How many workers can work within so much memory, at least 1.
pub fn workers_within(memory_max: usize) -> usize {
    let worker = WORKER_BYTES + WRITERS_BYTES + SORTING_BYTES_MIN;
    (memory_max.saturating_sub(PROCESS_BYTES) / worker).max(1)
}

/// The part of the memory that is for sorting and for writers.
fn budget(memory_max: usize, workers: usize) -> Result<usize, Error> {
    let fixed = PROCESS_BYTES + workers * WORKER_BYTES;
    let needed = fixed + workers * (WRITERS_BYTES + SORTING_BYTES_MIN);
    if memory_max < needed {
        return Err(Error::TooLittleMemory { given: memory_max, workers, needed });
    }
    Ok(memory_max - fixed)
}

/// Where the scratch directories of the processes are.
fn scratch_directory(options: &BuildOptions) -> PathBuf {
    let store = PathBuf::from(options.store.to_string());
    // A URL is absolute as it is; a directory has one name wherever the job is started.
    let is_url = options.store.to_string().contains("://");
    let store = std::path::absolute(&store).ok().filter(|_| !is_url).unwrap_or(store);
    let directory = options.spill.clone().unwrap_or_else(std::env::temp_dir);
    directory.join(format!("webstrata-{:016x}", xxh3_128(store.as_os_str().as_encoded_bytes()) >> 64))
}

/// Builds a store; see the head of this file. In a cluster every process calls it, with the same options but for its number,
/// memory and place of temporary files; all return the same report.
///
/// # Errors
/// Inputs that are not there or cannot be read, a store that another process writes, a full disk, a process that has
/// gone. Damage inside inputs is counted in the report. After an error the store answers as before, and the same
/// call goes on after the last finished stage.
pub fn build(options: &BuildOptions, progress: &Progress) -> Result<BuildReport, Error> {
    meter::give_back_large();
    let workers = options.workers.max(1);
    let (process, processes) = options.cluster.as_ref().map_or((0, 1), |it| (it.process, it.hosts.len()));
    let memory_max = budget(options.memory_max, workers)?;
    let mut inputs = webstrata_datasets::inputs(&options.inputs)?;
    inputs.extend(options.generate.iter().flat_map(|&crawl| webstrata_datasets::generate::inputs(crawl)));
    let inputs_all = inputs.len() as u64;
    let (id, known_as) = ids(options, &inputs);
    let inputs = share(inputs, process, processes);
    progress.set_inputs(inputs.len() as u64, inputs.iter().map(|input| input.bytes).sum());
    let scratch = Scratch::open(&scratch_directory(options), process, &known_as, progress.spill_counters())?;
    scratch.clear_others(processes);
    let kept = scratch.job().map(|job| job.row);
    let mut known = Known { row: kept, committed: false };
    let mut writer = None;
    if process == 0 {
        let opened = StoreWriter::open(&options.store, &format!("build {known_as}"), kept)?;
        known = know(&opened, &scratch, kept, workers)?;
        writer = Some(opened);
    }
    let plan = Plan {
        job: Job::new(workers, memory_max, scratch.clone(), progress.clone()),
        id,
        known_as,
        inputs: Arc::new(Inputs { inputs, kinds: options.kinds, next: 0.into() }),
        in_range: options.in_range,
        min_sources: options.min_sources,
        partition_urls: options.partition_urls,
        inputs_all,
        provenance: options.provenance.clone(),
        store: options.store.clone(),
        known,
        writer: Mutex::new(writer),
    };
    let report = run(plan, workers, options.cluster.as_ref());
    let cleared = if report.is_ok() {
        scratch.remove_all()
    } else {
        scratch.tidy(workers * process..workers * (process + 1), STAGES.len())
    };
    if let Err(error) = cleared {
        // What the job came to says more; the next one clears this away.
        tracing::warn!(%error, "temporary files are left");
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_workers_as_fit_are_enough() {
        for memory_max in [1 << 20, 160 << 20, 1 << 30, 64 << 30] {
            let workers = workers_within(memory_max);
            assert_eq!(budget(memory_max, workers).is_ok(), memory_max >= 160 << 20, "{memory_max} {workers}");
            assert!(budget(memory_max, workers + 1).is_err(), "{memory_max} {workers}");
        }
    }
}
