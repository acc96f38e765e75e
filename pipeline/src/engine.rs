//! Runs a job: all workers of all processes run the stages of its `Work` one after the other, and then the commit.
//!
//! The [`JobState`] of a worker names what a stage left there. A stage ends when all workers have saved their states.
//! Only then are the files removed that no later stage reads. A killed job therefore resumes with the stage that was
//! interrupted, if the job is started again with the same work, on the same epoch of the store, and with as many
//! workers and processes. Any other job removes the files that it finds. No reader sees the row before the commit.

mod agree;
pub mod cluster;
pub mod external_sort;
pub mod job;
pub mod meter;
pub mod progress;
pub mod runs;
pub mod scratch;
pub mod shuffle;
pub mod state;
pub mod wire;

use crate::engine::agree::{Start, agree, wait_for_all};
use crate::engine::cluster::Cluster;
use crate::engine::job::{Job, Stopped, WRITERS_BYTES};
use crate::engine::scratch::{JobFile, Scratch};
use crate::engine::shuffle::{guarded, shuffle};
use crate::engine::state::{JobStage, JobState};
use crate::{Error, Progress};
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex, OnceLock};
use timely::communication::Hooks;
use timely::communication::allocator::zero_copy::initialize::initialize_networking_from_sockets;
use timely::communication::allocator::{AllocatorBuilder, ProcessBuilder};
use timely::worker::Worker;
use timely::{CommunicationConfig, WorkerConfig};
use webstrata_layers::{Effort, EpochId, FileEntry, Location, Reader, RowDir, Store, StoreWriter, verify_file};
use xxhash_rust::xxh3::xxh3_128;

/// The store and the resources of a job.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The location of the store.
    pub store: Location,
    /// The number of worker threads, at least 1.
    pub workers: usize,
    /// The memory that this process may take in total, in bytes.
    pub memory_max: usize,
    /// The directory for temporary files; `None` for the system's temporary directory.
    pub spill: Option<PathBuf>,
    /// The processes that work together; `None` if this process works alone.
    pub cluster: Option<Cluster>,
}

impl RunOptions {
    /// Options with one worker in this process and 1 GiB of memory.
    pub fn new(store: impl Into<Location>) -> Self {
        Self { store: store.into(), workers: 1, memory_max: 1 << 30, spill: None, cluster: None }
    }

    /// Returns the number of processes.
    pub fn processes(&self) -> usize {
        self.cluster.as_ref().map_or(1, |cluster| cluster.hosts.len())
    }

    /// Returns the [`Job`] of work that cannot be resumed: the temporary files of the work disappear with the job.
    pub fn job(&self, progress: &Progress) -> Result<Job, Error> {
        let scratch = Scratch::temporary(&self.spill()?);
        Ok(Job::new(self.workers.max(1), self.memory_max, scratch, progress.clone()))
    }

    /// Returns the directory for temporary files. The directory must exist: a directory created where a disk is not
    /// mounted would fill another disk.
    fn spill(&self) -> Result<PathBuf, Error> {
        let directory = self.spill.clone().unwrap_or_else(std::env::temp_dir);
        match std::fs::metadata(&directory) {
            Ok(found) if found.is_dir() => Ok(directory),
            Ok(_) => Err(Error::NoSpill { directory, source: std::io::ErrorKind::NotADirectory.into() }),
            Err(source) => Err(Error::NoSpill { directory, source }),
        }
    }
}

/// The work of a job.
pub(crate) trait Work: Send + Sync + 'static {
    /// The report at the end of the job, for all processes together.
    type Report: Serialize + for<'a> Deserialize<'a> + Send + 'static;

    /// The stages of the job.
    type Stage: JobStage;

    /// The state of a worker after each stage.
    type State: JobState;

    /// The name of the job.
    const NAME: &'static str;

    /// Whether the job reads the current epoch of the store, which must exist in this case.
    fn reads_store(&self) -> bool;

    /// Whether the job makes a store, and may begin only if no store exists.
    fn needs_no_store(&self) -> bool {
        false
    }

    /// Returns how hard to compress the row.
    fn effort(&self, base: Option<&Reader>) -> Effort;

    /// Returns the size of the temporary files that a stage reads on this worker, in bytes.
    fn input_bytes(&self, stage: Self::Stage, state: &Self::State) -> u64;

    /// Runs a stage on a worker.
    fn run(
        &self,
        worker: &mut Worker,
        context: &Context,
        stage: Self::Stage,
        state: &mut Self::State,
    ) -> Result<(), Stopped>;

    /// Commits the row that all workers have written as the current epoch. `writer` is [`Committing::Done`] if an
    /// earlier run of this job was killed after it had committed the row.
    fn commit(&self, writer: Committing, context: &Context, states: &[Self::State]) -> Result<Self::Report, Error>;
}

/// The state of a commit.
pub(crate) enum Committing {
    /// The row is not committed yet.
    Open(StoreWriter),
    /// The row was committed as this epoch.
    Done(u64),
}

/// The job, the row and the store that stages work with.
pub(crate) struct Context {
    pub(crate) job: Job,
    pub(crate) row: RowDir,
    /// The store as it was when the job began; `None` if the work reads no store.
    pub(crate) base: Option<Arc<Reader>>,
}

impl Context {
    /// Returns the store as it was when the job began.
    pub(crate) fn store(&self) -> Result<&Arc<Reader>, Error> {
        self.base.as_ref().ok_or(Error::Internal("a stage reads a store that is not open"))
    }
}

/// The data that all workers of a process share.
struct Plan<W> {
    work: W,
    job: Job,
    /// The hash by which a later start recognizes the job.
    known_as: String,
    store: Location,
    known: Known,
    /// The store, once a worker has opened it.
    base: OnceLock<Option<Arc<Reader>>>,
    /// The writer of the store: only in process 0, and only until the commit.
    writer: Mutex<Option<StoreWriter>>,
}

/// The row of the job as one process knows it, before the processes compare.
#[derive(Clone, Copy)]
struct Known {
    row: Option<u32>,
    /// The epoch that was current when the job began.
    base: Option<EpochId>,
    /// Whether the job was killed after its commit.
    committed: bool,
}

/// Returns the row as process 0 knows it. The process resumes the row that it began, unless another job has made
/// another epoch.
fn know<W: Work>(
    work: &W,
    store: &Location,
    writer: &StoreWriter,
    scratch: &Scratch,
    kept: Option<JobFile>,
    workers: usize,
) -> Result<Known, Error> {
    let current = writer.current();
    let begin = || -> Result<Known, Error> {
        may_begin(work, store, current)?;
        scratch.retain(&BTreeSet::new())?;
        Ok(Known { row: Some(writer.begin_row()?.row()), base: current, committed: false })
    };
    let Some(JobFile { row, base, .. }) = kept else { return begin() };
    let known = |committed| Known { row: Some(row), base, committed };
    let Some((_, entry)) = writer.committed(row)? else {
        return if base == current && writer.resume_row(row).is_ok() { Ok(known(false)) } else { begin() };
    };
    let is_in_epoch = |file: &FileEntry| entry.partitions.iter().any(|partition| partition.files.contains(file));
    let all = W::Stage::ALL.len();
    let states: Option<Vec<_>> = (0..workers).map(|worker| scratch.load::<W::State>(worker, all)).collect();
    let ours = states.is_some_and(|states| states.iter().flat_map(W::State::files).all(is_in_epoch));
    if ours { Ok(known(true)) } else { begin() }
}

/// Fails if the work may begin only where no store exists, and the store has the epoch `current`.
fn may_begin<W: Work>(work: &W, store: &Location, current: Option<EpochId>) -> Result<(), Error> {
    match current.filter(|_| work.needs_no_store()) {
        Some(EpochId { epoch, .. }) => Err(Error::StoreExists { store: store.to_string(), epoch }),
        None => Ok(()),
    }
}

/// Returns the current epoch of a store; `None` if no store exists.
fn current_epoch(store: &Location) -> Result<Option<EpochId>, Error> {
    match Store::open(store) {
        Ok(store) => Ok(Some(store.id())),
        Err(webstrata_layers::Error::NotAStore { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Blocks of the store may take 1 / `BASE_PART` of the memory, in addition to the blocks that are needed at the same
/// time.
const BASE_PART: usize = 10;

impl<W: Work> Plan<W> {
    /// Returns the store as the job found it; `None` if the work reads no store.
    fn base(&self, known: Option<EpochId>) -> Result<Option<Arc<Reader>>, Error> {
        if let Some(base) = self.base.get() {
            return Ok(base.clone());
        }
        let base = if self.work.reads_store() {
            let known = known.ok_or(Error::Internal("a job reads a store without an epoch"))?;
            let store = Store::open_known(&self.store, known)?;
            let reader = Reader::new(store, self.job.memory_max() / BASE_PART);
            Some(Arc::new(reader.for_scans(self.job.workers())))
        } else {
            None
        };
        Ok(self.base.get_or_init(|| base).clone())
    }
}

/// Runs all remaining stages on one worker, then the commit.
fn run_stages<W: Work>(worker: &mut Worker, plan: &Plan<W>) -> Result<W::Report, Stopped> {
    let (job, index) = (&plan.job, worker.index());
    let scratch = job.scratch();
    let Start { row, base, stages } = resume(worker, plan)?;
    let row = RowDir::open(&plan.store, row, scratch.directory()).with_helpers(job.helpers().clone());
    // A worker that has no stage left and does not commit needs no store: the epoch may be gone since the commit.
    let is_done = stages == W::Stage::ALL.len() && (plan.known.committed || index >= job.workers());
    let base = if is_done { None } else { job.check(plan.base(base))? };
    let row = row.with_effort(plan.work.effort(base.as_deref()));
    let context = Context { job: job.clone(), row, base };
    let mut state =
        if stages == 0 { W::State::default() } else { scratch.load::<W::State>(index, stages).ok_or(Stopped)? };
    let reports = index % job.workers() == 0;
    for (done, &stage) in W::Stage::ALL.iter().enumerate().skip(stages) {
        let before = state.clone();
        if reports {
            // Work is shared evenly, and this worker cannot know when the others begin.
            job.progress().enter(stage.name(), plan.work.input_bytes(stage, &state) * job.workers() as u64);
        }
        plan.work.run(worker, &context, stage, &mut state)?;
        job.check(scratch.save((index, done + 1), &state))?;
        let (taken, made) = (before.without(&state), state.without(&before));
        job.progress().add_stage(&taken, &made);
        wait_for_all(worker, job)?;
        if reports {
            job.progress().leave();
        }
        job.check(taken.remove(scratch))?;
        if done > 0 {
            job.check(scratch.forget(index, done))?;
        }
    }
    commit(worker, plan, &context, state)
}

/// Agrees with all workers on the stage to resume with, and removes all files that this start does not need.
fn resume<W: Work>(worker: &mut Worker, plan: &Plan<W>) -> Result<Start, Stopped> {
    let (job, scratch) = (&plan.job, plan.job.scratch());
    // Layers that differ from what was written, as in a store that was restored from a copy, are written again.
    let is_whole = |file: &FileEntry| plan.known.committed || verify_file(&plan.store, file).is_ok();
    let stands = |stages| {
        scratch.load::<W::State>(worker.index(), stages).is_some_and(|state| state.files().iter().all(is_whole))
    };
    let finished = (1..=W::Stage::ALL.len()).filter(|&stages| stands(stages));
    // A job that has committed cannot start from the beginning.
    let begin = u64::from(!plan.known.committed);
    let bits = finished.fold(begin, |bits, stages| bits | 1u64 << stages);
    let start = agree(worker, job, plan.known.row.unwrap_or(0), plan.known.base, bits)?;
    if worker.index().is_multiple_of(job.workers()) {
        let process_workers = worker.index()..worker.index() + job.workers();
        let at = |worker| scratch.load::<W::State>(worker, start.stages).map(|state| ((worker, start.stages), state));
        let states: Option<Vec<_>> = process_workers.map(at).collect();
        let states = if start.stages == 0 { Vec::new() } else { states.ok_or(Stopped)? };
        job.check(scratch.retain(&Scratch::needed(states.iter().map(|(at, state)| (*at, state)))))?;
        let file = JobFile { id: plan.known_as.clone(), row: start.row, base: start.base };
        job.check(scratch.set_job(&file))?;
        if start.stages > 0 {
            let stage = W::Stage::ALL.get(start.stages).map_or("commit", |stage| stage.name());
            tracing::info!(stage, "going on with an unfinished job");
        }
    }
    wait_for_all(worker, job)?;
    Ok(start)
}

/// Gathers the states of all workers, commits the epoch, and sends the report to all workers.
fn commit<W: Work>(
    worker: &mut Worker,
    plan: &Plan<W>,
    context: &Context,
    state: W::State,
) -> Result<W::Report, Stopped> {
    let job = &plan.job;
    if worker.index().is_multiple_of(job.workers()) {
        job.progress().enter("commit", 0);
    }
    let states = gather(worker, job, Some(0), &state)?;
    let writer = if worker.index() == 0 { plan.writer.lock().ok().and_then(|mut writer| writer.take()) } else { None };
    let report = match writer {
        Some(writer) => {
            let committed = job.check(writer.committed(context.row.row()).map_err(Error::from))?;
            let committing = committed.map_or_else(|| Committing::Open(writer), |(epoch, _)| Committing::Done(epoch));
            Some(job.check(plan.work.commit(committing, context, &states))?)
        }
        None => None,
    };
    let reports = gather(worker, job, None, &report)?;
    reports.into_iter().flatten().next().ok_or(Stopped)
}

/// Sends the value of each worker to the worker `to`, or to all workers if `to` is `None`. Returns the received values.
pub fn gather<T: Serialize + for<'a> Deserialize<'a> + 'static>(
    worker: &mut Worker,
    job: &Job,
    to: Option<usize>,
    value: &T,
) -> Result<Vec<T>, Stopped> {
    let received = Rc::new(RefCell::new(Vec::new()));
    let collect = Rc::clone(&received);
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
    Ok(received.take())
}

/// Runs `body` on the timely workers of this process and returns the report of the first worker. The processes of a job
/// compare `id` (32 bytes) when they connect.
pub fn execute<T: Send + 'static>(
    job: &Job,
    id: &str,
    name: &'static str,
    cluster: Option<&Cluster>,
    body: impl Fn(&mut Worker) -> Result<T, Stopped> + Send + Sync + 'static,
) -> Result<T, Error> {
    let workers = job.workers();
    let (builders, connections) = match cluster {
        None => {
            let config = if workers == 1 { CommunicationConfig::Thread } else { CommunicationConfig::Process(workers) };
            config.try_build().map_err(Error::Dataflow)?
        }
        Some(cluster) => {
            let peers = cluster::connect(cluster, id, job)?;
            let process_builders = ProcessBuilder::new_bytes_vector(workers, Hooks::default().refill, None);
            initialize_networking_from_sockets(process_builders, peers, cluster.process, workers, Hooks::default())
                .map(|(builders, guard)| {
                    let builders = builders.into_iter().map(AllocatorBuilder::Tcp).collect();
                    (builders, Box::new(guard) as Box<dyn Any + Send>)
                })
                .map_err(|error| Error::Dataflow(error.to_string()))?
        }
    };
    let shared = job.clone();
    let guards = timely::execute::execute_from(builders, Box::new(()), WorkerConfig::default(), move |worker| {
        let report = guarded(&shared, name, || Ok(body(worker)));
        // Drop everything that a stopped worker left behind, or timely would wait for it.
        for dataflow in worker.installed_dataflows() {
            worker.drop_dataflow(dataflow);
        }
        let report = report?.ok();
        if report.is_some() {
            shared.finish();
        }
        report
    })
    .map_err(Error::Dataflow)?;
    let reports: Vec<_> = guards.join().into_iter().collect();
    if !job.finished() {
        // Threads that hold connections to processes that are gone would never end.
        std::mem::forget(connections);
        return Err(job.take_error().unwrap_or(Error::Internal("a worker stopped without an error")));
    }
    drop(connections);
    let stopped = || Error::Dataflow("no worker has reported".to_owned());
    reports.into_iter().next().ok_or_else(stopped)?.map_err(Error::Dataflow)?.ok_or_else(stopped)
}

/// Runs `body` on the workers of all processes, for a job that reads a store and cannot be resumed. `identity`
/// describes the job; a process that was started for another job gets an error that says so.
pub fn work_together<T: Send + 'static>(
    run: &RunOptions,
    job: &Job,
    name: &'static str,
    identity: &str,
    body: impl Fn(&mut Worker) -> Result<T, Stopped> + Send + Sync + 'static,
) -> Result<T, Error> {
    check_limits(run.memory_max, job.workers())?;
    let (version, workers, processes) = (env!("CARGO_PKG_VERSION"), job.workers(), run.processes());
    let identity = format!("{name} {version} {workers} {processes} {} {identity}", run.store);
    let id = format!("{:032x}", xxh3_128(identity.as_bytes()));
    execute(job, &id, name, run.cluster.as_ref(), body)
}

/// The memory of a worker beyond the memory for sorting and [`WRITERS_BYTES`]: the batch of a reader, row groups on
/// their way to the writers, and blocks on their way to other workers.
const WORKER_BYTES: usize = 50 << 20;
/// The memory of a process beyond the memory of its workers.
const PROCESS_BYTES: usize = 30 << 20;
/// The least memory that a worker needs to sort in.
const SORTING_BYTES_MIN: usize = 16 << 20;

/// If each worker has this much memory, the allocator may keep large buffers that are freed. The pages of these buffers
/// then need not be cleared again, which takes a twentieth of the time of a job.
const PLENTY_BYTES: usize = 1 << 30;

/// Returns the least memory that a process with this number of workers needs, in bytes.
pub fn memory_needed(workers: usize) -> usize {
    PROCESS_BYTES + workers * (WORKER_BYTES + WRITERS_BYTES + SORTING_BYTES_MIN)
}

/// Returns the number of workers that can work within `memory_max` bytes, at least 1.
pub fn workers_within(memory_max: usize) -> usize {
    (memory_max.saturating_sub(memory_needed(0)) / (memory_needed(1) - memory_needed(0))).max(1)
}

/// The address space of a process beyond its memory: the program, mapped files, and space that allocators reserve and
/// do not use.
const ADDRESS_BYTES: u64 = 512 << 20;
/// The address space of a worker beyond its memory: an arena of the allocator and a stack.
const ADDRESS_BYTES_A_WORKER: u64 = 192 << 20;

/// Fails if a limit of the system would stop the job on the way; warns if a limit might stop it.
fn check_limits(memory_max: usize, workers: usize) -> Result<(), Error> {
    let needed = memory_max as u64 + ADDRESS_BYTES + workers as u64 * ADDRESS_BYTES_A_WORKER;
    if let Some(limit) = meter::address_space_max().filter(|&limit| limit < needed) {
        return Err(Error::TooLittleAddressSpace { limit, given: memory_max, workers, needed });
    }
    if let Some(limit) = meter::group_memory_max().filter(|&limit| limit < memory_max as u64) {
        tracing::warn!(limit, memory_max, "the control group of this process may have less memory than it was given");
    }
    Ok(())
}

/// Returns the part of the memory for sorting and for writers, in bytes.
fn budget(memory_max: usize, workers: usize) -> Result<usize, Error> {
    let needed = memory_needed(workers);
    if memory_max < needed {
        return Err(Error::TooLittleMemory { given: memory_max, workers, needed });
    }
    Ok(memory_max - PROCESS_BYTES - workers * WORKER_BYTES)
}

/// Returns the directory that contains the scratch directories of the processes.
fn scratch_directory(options: &RunOptions) -> Result<PathBuf, Error> {
    let store = PathBuf::from(options.store.to_string());
    // A URL is absolute already. A directory gets the same name wherever the job is started.
    let is_url = options.store.to_string().contains("://");
    let store = std::path::absolute(&store).ok().filter(|_| !is_url).unwrap_or(store);
    let name = format!("webstrata-{:016x}", xxh3_128(store.as_os_str().as_encoded_bytes()) >> 64);
    Ok(options.spill()?.join(name))
}

/// The identity of a job, in two parts: `bytes` decides the bytes of the row, and `times` shows whether the inputs are
/// the same again.
pub(crate) struct Identity {
    /// The options and inputs of the job.
    pub(crate) bytes: String,
    /// The times at which the inputs were changed.
    pub(crate) times: String,
}

/// Runs work. In a cluster, every process calls this function with the same work and options; only the number of the
/// process, its memory and its directory for temporary files may differ. All processes return the same report.
///
/// # Errors
/// Another process writes the store, a disk is full, a process is gone, or the work finds something wrong. After an
/// error, the store answers as before, and the same call resumes after the last finished stage.
pub(crate) fn run<W: Work>(
    work: W,
    identity: &Identity,
    options: &RunOptions,
    progress: &Progress,
) -> Result<W::Report, Error> {
    let workers = options.workers.max(1);
    if options.memory_max / workers < PLENTY_BYTES {
        meter::give_back_large();
    }
    let (process, processes) = options.cluster.as_ref().map_or((0, 1), |it| (it.process, it.hosts.len()));
    let memory_max = budget(options.memory_max, workers)?;
    check_limits(options.memory_max, workers)?;
    // A crash of the machine loses data that is not on disk yet, so a job of an earlier boot is not resumed.
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let version = env!("CARGO_PKG_VERSION");
    let job = format!("{} {version} {} {workers} {processes} {}", W::NAME, options.store, identity.bytes);
    let hash = |text: &str| format!("{:032x}", xxh3_128(text.as_bytes()));
    let (id, known_as) = (hash(&job), hash(&format!("{job} {} {boot}", identity.times)));
    let directory = scratch_directory(options)?;
    // This check comes before anything is touched: the files from which another job can resume stay.
    if work.needs_no_store() && !Scratch::is_of(&directory, process, &known_as) {
        may_begin(&work, &options.store, current_epoch(&options.store)?)?;
    }
    let scratch = Scratch::open(&directory, process, &known_as, progress.spill_counters())?;
    scratch.clear_others(processes);
    let kept = scratch.job();
    let row = kept.as_ref().map(|job| job.row);
    let mut known = Known { row, base: kept.as_ref().and_then(|job| job.base), committed: false };
    let mut writer = None;
    if process == 0 {
        if work.reads_store() {
            // A job that reads a store never creates a store.
            Store::open(&options.store)?;
        }
        let opened = StoreWriter::open(&options.store, &format!("{} {known_as}", W::NAME), row)?;
        known = know(&work, &options.store, &opened, &scratch, kept, workers)?;
        writer = Some(opened);
    }
    let plan = Plan {
        work,
        job: Job::new(workers, memory_max, scratch.clone(), progress.clone()),
        known_as,
        store: options.store.clone(),
        known,
        base: OnceLock::new(),
        writer: Mutex::new(writer),
    };
    let job = plan.job.clone();
    let report = execute(&job, &id, W::NAME, options.cluster.as_ref(), move |worker| run_stages(worker, &plan));
    // No later start can resume if nothing was read or the states are lost.
    let cleared = if matches!(report, Ok(_) | Err(Error::NothingRead { .. } | Error::LostState)) {
        scratch.remove_all()
    } else {
        scratch.tidy::<W::State>(workers * process..workers * (process + 1), W::Stage::ALL.len())
    };
    if let Err(error) = cleared {
        // The result of the job matters more than this error, and the next job removes the files.
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
            assert_eq!(budget(memory_max, workers).is_ok(), memory_max >= memory_needed(1), "{memory_max} {workers}");
            assert!(budget(memory_max, workers + 1).is_err(), "{memory_max} {workers}");
        }
    }
}
