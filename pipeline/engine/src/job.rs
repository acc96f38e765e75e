//! The data that all workers of a process share in a job: memory budget, scratch directory, progress, and first error.

use crate::scratch::Scratch;
use crate::{Error, Progress};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use webstrata_layers::Helpers;

/// The part of a worker's memory that the writers of one partition's layers take, with their compressor.
pub(crate) const WRITERS_BYTES: usize = 60 << 20;

/// A worker has failed, and the job must stop; the error is in the [`Job`].
#[derive(Debug)]
pub struct Stopped;

/// The shared data of a job; see the head of this file. A handle, cheap to clone.
#[derive(Clone)]
pub struct Job(Arc<JobState>);

struct JobState {
    error: Mutex<Option<Error>>,
    failed: OnceLock<()>,
    /// The error of a process of the cluster whose connection has ended, and the time from which on the error counts.
    gone: Mutex<Option<(Error, Instant)>>,
    any_gone: AtomicBool,
    progress: Progress,
    scratch: Scratch,
    memory_max: usize,
    workers: usize,
    finished: AtomicUsize,
    helpers: Helpers,
}

impl Job {
    /// `memory_max` is the memory for all `workers` of this process together, in bytes.
    pub fn new(workers: usize, memory_max: usize, scratch: Scratch, progress: Progress) -> Self {
        Job(Arc::new(JobState {
            error: Mutex::default(),
            failed: OnceLock::new(),
            gone: Mutex::default(),
            any_gone: false.into(),
            progress,
            scratch,
            memory_max,
            workers,
            finished: 0.into(),
            helpers: Helpers::default(),
        }))
    }

    /// Keeps the first error and makes all workers stop.
    pub fn fail(&self, error: Error) {
        if let Ok(mut first) = self.0.error.lock() {
            first.get_or_insert(error);
        }
        self.0.failed.get_or_init(|| ());
    }

    /// Whether the job must stop: a worker has failed, a process is gone, or the caller has asked the job to stop.
    pub fn failed(&self) -> bool {
        if self.0.failed.get().is_some() {
            return true;
        }
        if self.0.progress.is_cancelled() {
            self.fail(Error::Cancelled);
        } else if self.0.any_gone.load(SeqCst)
            && let Ok(mut gone) = self.0.gone.lock()
            && let Some((error, _)) = gone.take_if(|(_, when)| *when <= Instant::now())
        {
            self.fail(error);
        }
        self.0.failed.get().is_some()
    }

    /// Records that a process is gone. `error` names the process, and stops the job if the job is not done after
    /// `in_time`.
    pub(crate) fn gone(&self, error: Error, in_time: Duration) {
        let when = Instant::now() + in_time;
        if let Ok(mut gone) = self.0.gone.lock()
            && gone.as_ref().is_none_or(|(_, earlier)| when < *earlier)
        {
            *gone = Some((error, when));
        }
        self.0.any_gone.store(true, SeqCst);
    }

    /// Records that a worker of this process has finished its work.
    pub(crate) fn finish(&self) {
        self.0.finished.fetch_add(1, SeqCst);
    }

    /// Whether all workers of this process have finished their work.
    pub(crate) fn finished(&self) -> bool {
        self.0.finished.load(SeqCst) == self.0.workers
    }

    /// Takes the first error.
    pub fn take_error(&self) -> Option<Error> {
        self.0.error.lock().ok().and_then(|mut error| error.take())
    }

    /// Returns the value of a `result` from outside a dataflow; an error becomes the error of the job.
    pub fn check<T, E: Into<Error>>(&self, result: Result<T, E>) -> Result<T, Stopped> {
        result.map_err(|error| {
            self.fail(error.into());
            Stopped
        })
    }

    /// Returns [`Error::Stopping`] if the job must stop; for long loops outside a dataflow.
    pub fn go_on(&self) -> Result<(), Error> {
        if self.failed() { Err(Error::Stopping) } else { Ok(()) }
    }

    /// Returns the progress of the job.
    pub fn progress(&self) -> &Progress {
        &self.0.progress
    }

    /// Returns the scratch directory of the job.
    pub fn scratch(&self) -> &Scratch {
        &self.0.scratch
    }

    /// Returns the workers that wait for other workers and may encode row groups in the meantime.
    pub(crate) fn helpers(&self) -> &Helpers {
        &self.0.helpers
    }

    /// Returns the memory budget of this process, in bytes.
    pub fn memory_max(&self) -> usize {
        self.0.memory_max
    }

    /// Returns the number of workers of this process.
    pub fn workers(&self) -> usize {
        self.0.workers
    }

    /// Returns `percent` of a worker's share of the memory budget, in bytes, while the worker writes layers.
    pub fn budget_beside_writers(&self, percent: usize) -> usize {
        (self.0.memory_max / self.0.workers).saturating_sub(WRITERS_BYTES) / 100 * percent
    }

    /// Like [`Job::budget_beside_writers`], while the worker reads inputs: what it reads takes the memory that writers
    /// take later.
    pub fn budget_beside_reader(&self, percent: usize) -> usize {
        self.budget_beside_writers(percent)
    }

    /// Like [`Job::budget_beside_writers`], while the worker holds a record of the maximum size.
    pub fn budget_beside_record(&self, percent: usize) -> usize {
        self.budget_beside_writers(percent)
    }

    /// Like [`Job::budget_beside_writers`], while the worker does none of these: the memory of writers is available
    /// too.
    pub fn budget(&self, percent: usize) -> usize {
        self.0.memory_max / self.0.workers / 100 * percent
    }
}
