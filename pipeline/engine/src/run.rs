//! Runs a job: all workers of all processes run the stages of its [`Work`] one after the other, and then the commit.
//!
//! The [`JobState`] of a worker names what a stage left there. A stage ends when all workers have saved their states.
//! Only then are the files removed that no later stage reads. A killed job therefore resumes with the stage that was
//! interrupted, if the job is started again with the same work, on the same epoch of the store, and with as many
//! workers and processes. Any other job removes the files that it finds. No reader sees the row before the commit.

mod agree;
pub(crate) mod work;

use crate::job::{Job, Stopped};
use crate::options::{RunOptions, budget, check_limits};
use crate::run::agree::{Start, agree, wait_for_all};
use crate::run::work::{Committing, Context, Identity, Work};
use crate::scratch::{JobFile, Scratch};
use crate::state::{JobStage, JobState};
use crate::workers::{execute, gather};
use crate::{Error, Progress, meter};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock};
use timely::worker::Worker;
use webstrata_layers::{EpochId, FileEntry, Location, Reader, RowDir, Store, StoreWriter, verify_file};
use xxhash_rust::xxh3::xxh3_128;

/// If each worker has this much memory, the allocator may keep large buffers that are freed. The pages of these buffers
/// then need not be cleared again, which takes a twentieth of the time of a job.
const PLENTY_BYTES: usize = 1 << 30;

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
    writer: &StoreWriter,
    scratch: &Scratch,
    kept: Option<JobFile>,
    workers: usize,
) -> Result<Known, Error> {
    let current = writer.current();
    let begin = || -> Result<Known, Error> {
        work.may_begin(|| Ok(current))?;
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
    /// Opens the store, in the first process for writing, and finds out where the job goes on.
    fn new(work: W, job: Job, options: &RunOptions, known_as: String, process: usize) -> Result<Self, Error> {
        let scratch = job.scratch();
        let kept = scratch.job();
        let row = kept.as_ref().map(|job| job.row);
        let mut known = Known { row, base: kept.as_ref().and_then(|job| job.base), committed: false };
        let mut writer = None;
        if process == 0 {
            if work.reads_store() {
                // A job that reads a store never creates a store.
                Store::open(&options.store)?;
            }
            // The same job in another container has another directory.
            let owner = format!("{} {known_as} {}", W::NAME, scratch.name());
            let opened = StoreWriter::open(&options.store, &owner, row)?;
            known = know(&work, &opened, scratch, kept, job.workers())?;
            writer = Some(opened);
        }
        let (store, base, writer) = (options.store.clone(), OnceLock::new(), Mutex::new(writer));
        Ok(Self { work, job, known_as, store, known, base, writer })
    }

    /// Removes a store that the job has begun and never committed, if nothing is left to resume from.
    fn forsake(&self) -> Result<(), Error> {
        let writer = self.writer.lock().ok().and_then(|mut writer| writer.take());
        match (writer, self.known.row) {
            (Some(writer), Some(row)) if writer.current().is_none() => {
                Ok(writer.abandon(&RowDir::open(&self.store, row, self.job.scratch().directory()))?)
            }
            _ => Ok(()),
        }
    }

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
    let row = row.with_effort(plan.work.effort());
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
        if index == 0
            && let Ok(writer) = plan.writer.lock()
            && let Some(writer) = &*writer
        {
            // A job that was given up ends here, and not after hours.
            job.check(writer.check().map_err(Error::from))?;
        }
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

/// Runs work. In a cluster, every process calls this function with the same work and options; only the number of the
/// process, its memory and its directory for temporary files may differ. All processes return the same report.
///
/// # Errors
/// Another process writes the store, a disk is full, a process is gone, or the work finds something wrong. After an
/// error, the store answers as before, and the same call resumes after the last finished stage.
pub fn run<W: Work>(
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
    let text = format!("{} {version} {} {workers} {processes} {}", W::NAME, options.store, identity.bytes);
    let hash = |text: &str| format!("{:032x}", xxh3_128(text.as_bytes()));
    let (id, known_as) = (hash(&text), hash(&format!("{text} {} {boot}", identity.times)));
    let directory = options.scratch_directory()?;
    // This check comes before anything is touched: the files from which another job can resume stay.
    if !Scratch::is_of(&directory, process, &known_as) {
        work.may_begin(|| current_epoch(&options.store)).inspect_err(|_| Scratch::clear_left(&directory, process))?;
    }
    let scratch = Scratch::open(&directory, process, &known_as, progress.spill_counters())?;
    scratch.clear_others(processes);
    let job = Job::new(workers, memory_max, scratch.clone(), progress.clone());
    let planned = Plan::new(work, job.clone(), options, known_as, process).map(Arc::new);
    let plan = planned.as_ref().ok().map(Arc::clone);
    let report = planned.and_then(|plan| {
        execute(&job, &id, W::NAME, options.cluster.as_ref(), move |worker| run_stages(worker, &plan))
    });
    let is_over = match &report {
        Ok(_) | Err(Error::LostState) => true,
        // A damaged store does not mend itself.
        Err(Error::Store(error)) if error.is_damage() => true,
        Err(error) => W::is_final(error),
    };
    let resumes = if is_over {
        scratch.remove_all().map(|()| false)
    } else {
        scratch.tidy::<W::State>(workers * process..workers * (process + 1), W::Stage::ALL.len())
    };
    let is_left = match (&resumes, plan) {
        (Ok(false), Some(plan)) if report.is_err() => plan.forsake(),
        _ => Ok(()),
    };
    if let Err(error) = resumes.map(drop).and(is_left) {
        // The result of the job matters more than this error, and the next job removes the files.
        tracing::warn!(%error, "files are left");
    }
    report
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
