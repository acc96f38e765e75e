//! What all workers of a process share in a job: its budget, its scratch directory, its progress, and its first error.

use crate::engine::scratch::Scratch;
use crate::{Error, Progress};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use webstrata_layers::Helpers;

/// Memory of a worker's share that the writers of one partition's layers take, with their compressor.
pub const WRITERS_BYTES: usize = 60 << 20;

/// Another worker has failed (or this one): the error stands in the [`Job`].
#[derive(Debug)]
pub struct Stopped;

/// See the head of this file; a handle, cheap to clone.
#[derive(Clone)]
pub struct Job(Arc<Shared>);

struct Shared {
    error: Mutex<Option<Error>>,
    failed: OnceLock<()>,
    /// A process of the cluster whose connection has ended: its error, and from when on it is one.
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
    /// `memory_max` bytes are for the `workers` of this process together.
    pub fn new(workers: usize, memory_max: usize, scratch: Scratch, progress: Progress) -> Self {
        Job(Arc::new(Shared {
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

    /// Whether the job is to stop: a worker has failed, a process has gone, or someone asked for it.
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

    /// Says that a process has gone; `error` names it, and stops the job if that is not done in time.
    pub fn gone(&self, error: Error, in_time: Duration) {
        let when = Instant::now() + in_time;
        if let Ok(mut gone) = self.0.gone.lock()
            && gone.as_ref().is_none_or(|(_, earlier)| when < *earlier)
        {
            *gone = Some((error, when));
        }
        self.0.any_gone.store(true, SeqCst);
    }

    /// Says that a worker of this process has done all.
    pub fn finish(&self) {
        self.0.finished.fetch_add(1, SeqCst);
    }

    /// Whether all workers of this process have done all.
    pub fn finished(&self) -> bool {
        self.0.finished.load(SeqCst) == self.0.workers
    }

    /// The first error.
    pub fn take_error(&self) -> Option<Error> {
        self.0.error.lock().ok().and_then(|mut error| error.take())
    }

    /// Runs a piece of a stage outside a dataflow; its error becomes the error of the job.
    pub fn check<T, E: Into<Error>>(&self, result: Result<T, E>) -> Result<T, Stopped> {
        result.map_err(|error| {
            self.fail(error.into());
            Stopped
        })
    }

    /// For long loops outside a dataflow: [`Error::Stopping`] where the job is to stop.
    pub fn go_on(&self) -> Result<(), Error> {
        if self.failed() { Err(Error::Stopping) } else { Ok(()) }
    }

    /// How far the job is.
    pub fn progress(&self) -> &Progress {
        &self.0.progress
    }

    /// Where its temporary files are.
    pub fn scratch(&self) -> &Scratch {
        &self.0.scratch
    }

    /// Workers that wait for others, and may encode row groups meanwhile.
    pub fn helpers(&self) -> &Helpers {
        &self.0.helpers
    }

    /// The budget of this process, in bytes.
    pub fn memory_max(&self) -> usize {
        self.0.memory_max
    }

    /// Workers of this process.
    pub fn workers(&self) -> usize {
        self.0.workers
    }

    /// `percent` of a worker's share of the memory budget, in bytes, while it writes layers.
    pub fn budget_beside_writers(&self, percent: usize) -> usize {
        (self.0.memory_max / self.0.workers).saturating_sub(WRITERS_BYTES) / 100 * percent
    }

    /// The same while it reads crawl files: a record and its body take what writers take later.
    pub fn budget_beside_reader(&self, percent: usize) -> usize {
        self.budget_beside_writers(percent)
    }

    /// The same while it has a record at hand that may be as large as one may be.
    pub fn budget_beside_record(&self, percent: usize) -> usize {
        self.budget_beside_writers(percent)
    }

    /// The same while it does none of these: what these take is there too.
    pub fn budget(&self, percent: usize) -> usize {
        self.0.memory_max / self.0.workers / 100 * percent
    }
}
