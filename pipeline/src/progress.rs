//! How far a job is, readable from another thread while it runs.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// Counters of a running job; a handle, cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    stage: Mutex<&'static str>,
    captures: AtomicU64,
    inputs_done: AtomicU64,
    inputs_all: AtomicU64,
    bytes_done: Arc<AtomicU64>,
    bytes_all: AtomicU64,
    spilled: Arc<AtomicU64>,
}

impl Progress {
    /// The stage that the job is in; empty before the first.
    pub fn stage(&self) -> &'static str {
        self.0.stage.lock().map_or("", |stage| *stage)
    }

    /// Captures read so far.
    pub fn captures(&self) -> u64 {
        self.0.captures.load(Relaxed)
    }

    /// Inputs (files, or row groups of Parquet files) finished so far.
    pub fn inputs_done(&self) -> u64 {
        self.0.inputs_done.load(Relaxed)
    }

    /// All inputs.
    pub fn inputs_all(&self) -> u64 {
        self.0.inputs_all.load(Relaxed)
    }

    /// Bytes of input files read so far.
    pub fn bytes_done(&self) -> u64 {
        self.0.bytes_done.load(Relaxed)
    }

    /// Bytes of all input files.
    pub fn bytes_all(&self) -> u64 {
        self.0.bytes_all.load(Relaxed)
    }

    /// Bytes written to temporary files so far.
    pub fn spilled(&self) -> u64 {
        self.0.spilled.load(Relaxed)
    }

    pub(crate) fn enter(&self, stage: &'static str) {
        if let Ok(mut current) = self.0.stage.lock() {
            *current = stage;
        }
    }

    pub(crate) fn add_captures(&self, captures: u64) {
        self.0.captures.fetch_add(captures, Relaxed);
    }

    pub(crate) fn add_input_done(&self) {
        self.0.inputs_done.fetch_add(1, Relaxed);
    }

    pub(crate) fn set_inputs(&self, inputs: u64, bytes: u64) {
        self.0.inputs_all.store(inputs, Relaxed);
        self.0.bytes_all.store(bytes, Relaxed);
    }

    pub(crate) fn bytes_counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.0.bytes_done)
    }

    pub(crate) fn spill_counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.0.spilled)
    }
}
