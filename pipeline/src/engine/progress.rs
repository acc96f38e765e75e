//! How far a job is, readable from another thread while it runs, and the way to stop it.
//!
//! Figures are of this process; in a cluster each process shows its own.

use crate::engine::meter;
use crate::engine::state::Runs;
use serde::Serialize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Counters of a running job; a handle, cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    cancelled: AtomicBool,
    captures: AtomicU64,
    inputs_done: AtomicU64,
    inputs_all: AtomicU64,
    bytes_done: Arc<AtomicU64>,
    bytes_all: AtomicU64,
    spill_written: Arc<AtomicU64>,
    spill_read: Arc<AtomicU64>,
    worked: AtomicU64,
    exchanged_records: AtomicU64,
    exchanged_bytes: AtomicU64,
    peak_memory: AtomicU64,
    stages: Mutex<Stages>,
    waiting: Mutex<Option<(Vec<Missing>, Instant)>>,
}

#[derive(Debug, Default)]
struct Stages {
    done: Vec<StageReport>,
    current: Option<Current>,
}

#[derive(Debug)]
struct Current {
    name: &'static str,
    started: Instant,
    cpu_seconds: f64,
    spill_written: u64,
    spill_read: u64,
    exchanged_records: u64,
    exchanged_bytes: u64,
    captures: u64,
    /// Bytes of temporary files, or records of a store, that are to be read.
    expected: u64,
    worked: u64,
    /// Records and bytes that were read up, and made.
    taken: (u64, u64),
    made: (u64, u64),
}

/// What a stage did in this process.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StageReport {
    /// Its name.
    pub stage: &'static str,
    /// Wall time.
    pub seconds: f64,
    /// CPU time of all threads; 0 where the system does not tell.
    pub cpu_seconds: f64,
    /// Records that it read: captures for `ingest`, else those of the stages before.
    pub records_in: u64,
    /// Bytes that it read: of inputs for `ingest`, else of temporary files that it was the last to need.
    pub bytes_in: u64,
    /// Records that it left for stages after it.
    pub records_out: u64,
    /// Bytes of temporary files that it left for stages after it.
    pub bytes_out: u64,
    /// Records sent between workers.
    pub exchanged_records: u64,
    /// Bytes sent between workers.
    pub exchanged_bytes: u64,
    /// All bytes written to temporary files.
    pub spilled_bytes: u64,
    /// The most memory that the process held, in bytes; 0 where the system does not tell.
    pub peak_memory_bytes: u64,
}

/// A process of the job that has not connected yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// Its number.
    pub process: usize,
    /// Where it is, or should be.
    pub host: String,
}

/// What a job waits for before its first stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Waiting {
    /// Processes that have not connected yet.
    pub peers: Vec<Missing>,
    /// Seconds until the job gives up.
    pub seconds_left: u64,
}

/// Where a job is at a moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Moment {
    /// The stage that the job is in; empty before the first.
    pub stage: &'static str,
    /// Seconds since the stage began.
    pub seconds: f64,
    /// How much of the stage's input is read, 0 to 1; `None` where that cannot be told.
    pub part: Option<f64>,
    /// Captures read so far.
    pub captures: u64,
    /// Inputs (files, or parts of them) finished so far.
    pub inputs_done: u64,
    /// All inputs.
    pub inputs_all: u64,
    /// Bytes of inputs read so far.
    pub bytes_done: u64,
    /// Bytes of all inputs.
    pub bytes_all: u64,
    /// Records sent between workers in this stage.
    pub exchanged_records: u64,
    /// Records of a store that this stage has worked through: pages, captures or URLs.
    pub worked: u64,
    /// Bytes written to temporary files so far.
    pub spilled_bytes: u64,
    /// Memory held now, in bytes; 0 where the system does not tell.
    pub memory_bytes: u64,
    /// Stages done.
    pub stages_done: usize,
    /// What it waits for, before the first stage.
    pub waiting: Option<Waiting>,
}

impl Moment {
    /// How much longer the stage takes at the rate so far, in seconds.
    pub fn seconds_left(&self) -> Option<f64> {
        let part = self.part.filter(|&part| part > 0.01 && self.seconds > 0.5)?;
        Some(self.seconds * (1.0 - part) / part)
    }
}

impl Progress {
    /// Asks the job to stop; it ends with [`crate::Error::Cancelled`] soon after.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Relaxed);
    }

    /// Whether the job was asked to stop.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Relaxed)
    }

    /// Where the job is. Call it some times a second: it also notes how much memory is held.
    pub fn moment(&self) -> Moment {
        let counters = &*self.0;
        let memory_bytes = meter::memory_bytes();
        counters.peak_memory.fetch_max(memory_bytes, Relaxed);
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        let mut moment = Moment {
            captures: read(&counters.captures),
            inputs_done: read(&counters.inputs_done),
            inputs_all: read(&counters.inputs_all),
            bytes_done: read(&counters.bytes_done),
            bytes_all: read(&counters.bytes_all),
            spilled_bytes: read(&counters.spill_written),
            memory_bytes,
            ..Moment::default()
        };
        if let Ok(waiting) = counters.waiting.lock() {
            moment.waiting = waiting.as_ref().map(|(peers, end)| Waiting {
                peers: peers.clone(),
                seconds_left: end.saturating_duration_since(Instant::now()).as_secs(),
            });
        }
        let Ok(stages) = counters.stages.lock() else { return moment };
        moment.stages_done = stages.done.len();
        if let Some(current) = &stages.current {
            moment.stage = current.name;
            moment.seconds = current.started.elapsed().as_secs_f64();
            moment.worked = read(&counters.worked) - current.worked;
            moment.exchanged_records = read(&counters.exchanged_records) - current.exchanged_records;
            let (done, all) = if current.expected == 0 && moment.stages_done == 0 {
                (moment.bytes_done, moment.bytes_all)
            } else {
                (read(&counters.spill_read) - current.spill_read + moment.worked, current.expected)
            };
            moment.part = (all > 0).then(|| (done as f64 / all as f64).min(1.0));
        }
        moment
    }

    /// The stages that are done.
    pub fn stages(&self) -> Vec<StageReport> {
        self.0.stages.lock().map(|stages| stages.done.clone()).unwrap_or_default()
    }

    /// Bytes written to temporary files so far.
    pub fn spilled(&self) -> u64 {
        self.0.spill_written.load(Relaxed)
    }

    /// Begins a stage, which reads about `expected` bytes of temporary files, or records of a store
    /// ([`Progress::add_worked`]).
    pub fn enter(&self, name: &'static str, expected: u64) {
        let counters = &*self.0;
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        counters.peak_memory.store(meter::memory_bytes(), Relaxed);
        if let Ok(mut stages) = counters.stages.lock() {
            stages.current = Some(Current {
                name,
                started: Instant::now(),
                cpu_seconds: meter::cpu_seconds(),
                spill_written: read(&counters.spill_written),
                spill_read: read(&counters.spill_read),
                exchanged_records: read(&counters.exchanged_records),
                exchanged_bytes: read(&counters.exchanged_bytes),
                captures: read(&counters.captures),
                expected,
                worked: read(&counters.worked),
                taken: (0, 0),
                made: (0, 0),
            });
        }
        tracing::info!(stage = name, "stage begins");
    }

    /// Says what a worker has read up, and what it leaves for other stages.
    pub fn add_stage(&self, taken: &Runs, made: &Runs) {
        if let Ok(mut stages) = self.0.stages.lock()
            && let Some(current) = &mut stages.current
        {
            current.taken = (current.taken.0 + taken.records(), current.taken.1 + taken.bytes());
            current.made = (current.made.0 + made.records(), current.made.1 + made.bytes());
        }
    }

    /// Ends the stage.
    pub fn leave(&self) {
        let counters = &*self.0;
        let moment = self.moment();
        let Ok(mut stages) = counters.stages.lock() else { return };
        let Some(current) = stages.current.take() else { return };
        let captures = moment.captures - current.captures;
        let (records_in, bytes_in) = if captures > 0 { (captures, moment.bytes_done) } else { current.taken };
        let (records_out, bytes_out) = current.made;
        let report = StageReport {
            stage: current.name,
            seconds: current.started.elapsed().as_secs_f64(),
            cpu_seconds: meter::cpu_seconds() - current.cpu_seconds,
            records_in,
            bytes_in,
            records_out,
            bytes_out,
            exchanged_records: moment.exchanged_records,
            exchanged_bytes: counters.exchanged_bytes.load(Relaxed) - current.exchanged_bytes,
            spilled_bytes: moment.spilled_bytes - current.spill_written,
            peak_memory_bytes: counters.peak_memory.load(Relaxed),
        };
        tracing::info!(
            stage = report.stage,
            seconds = report.seconds,
            cpu_seconds = report.cpu_seconds,
            records_in = report.records_in,
            records_out,
            spilled_bytes = report.spilled_bytes,
            "stage done"
        );
        stages.done.push(report);
    }

    /// Says for which processes the job waits, and until when; for none when they are there.
    pub fn wait_for(&self, peers: Vec<Missing>, end: Instant) {
        if let Ok(mut waiting) = self.0.waiting.lock() {
            *waiting = Some((peers, end)).filter(|(peers, _)| !peers.is_empty());
        }
    }

    /// Counts captures that were read.
    pub fn add_captures(&self, captures: u64) {
        self.0.captures.fetch_add(captures, Relaxed);
    }

    /// Counts records of a store that were worked through.
    pub fn add_worked(&self, records: u64) {
        self.0.worked.fetch_add(records, Relaxed);
    }

    /// Counts records that went to other workers, and their bytes.
    pub fn add_exchanged(&self, records: u64, bytes: u64) {
        self.0.exchanged_records.fetch_add(records, Relaxed);
        self.0.exchanged_bytes.fetch_add(bytes, Relaxed);
    }

    /// Counts an input that was read to its end.
    pub fn add_input_done(&self) {
        self.0.inputs_done.fetch_add(1, Relaxed);
    }

    /// How many inputs this process reads, and their bytes.
    pub fn set_inputs(&self, inputs: u64, bytes: u64) {
        self.0.inputs_all.store(inputs, Relaxed);
        self.0.bytes_all.store(bytes, Relaxed);
    }

    /// Where bytes that were read of inputs are counted.
    pub fn bytes_counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.0.bytes_done)
    }

    /// Where bytes of temporary files are counted, written and read.
    pub fn spill_counters(&self) -> [Arc<AtomicU64>; 2] {
        [Arc::clone(&self.0.spill_written), Arc::clone(&self.0.spill_read)]
    }
}
