//! What all workers of a job share: its options, its budget, its progress, and its first error.

use crate::external_sort::Spill;
use crate::{Error, Progress};
use std::sync::{Arc, Mutex, OnceLock};

/// Another worker has failed (or this one): the error stands in the [`Job`].
#[derive(Debug)]
pub(crate) struct Stopped;

/// See the head of this file; a handle, cheap to clone.
#[derive(Clone)]
pub(crate) struct Job(Arc<Shared>);

struct Shared {
    error: Mutex<Option<Error>>,
    failed: OnceLock<()>,
    progress: Progress,
    spill: Spill,
    memory_max: usize,
    workers: usize,
}

impl Job {
    pub(crate) fn new(workers: usize, memory_max: usize, spill: Spill, progress: Progress) -> Self {
        let error = Mutex::default();
        Job(Arc::new(Shared { error, failed: OnceLock::new(), progress, spill, memory_max, workers }))
    }

    /// Keeps the first error and makes all workers stop.
    pub(crate) fn fail(&self, error: Error) {
        if let Ok(mut first) = self.0.error.lock() {
            first.get_or_insert(error);
        }
        self.0.failed.get_or_init(|| ());
    }

    /// Whether any worker has failed.
    pub(crate) fn failed(&self) -> bool {
        self.0.failed.get().is_some()
    }

    /// The first error.
    pub(crate) fn take_error(&self) -> Option<Error> {
        self.0.error.lock().ok().and_then(|mut error| error.take())
    }

    /// Runs a piece of a stage outside a dataflow; its error becomes the error of the job.
    pub(crate) fn check<T>(&self, result: Result<T, Error>) -> Result<T, Stopped> {
        result.map_err(|error| {
            self.fail(error);
            Stopped
        })
    }

    pub(crate) fn progress(&self) -> &Progress {
        &self.0.progress
    }

    pub(crate) fn spill(&self) -> &Spill {
        &self.0.spill
    }

    /// `percent` of this worker's share of the memory budget, in bytes.
    pub(crate) fn budget(&self, percent: usize) -> usize {
        self.0.memory_max / self.0.workers / 100 * percent
    }
}
