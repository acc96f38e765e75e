//! The progress of a running job, which another thread can read, and the way to stop the job.
//!
//! All numbers are about this process. In a cluster, each process shows its numbers.

use crate::meter;
use crate::state::Runs;
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
    input_records: AtomicU64,
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
    input_records: u64,
    /// The bytes of temporary files, or the records of a store, that the stage will read.
    expected: u64,
    worked: u64,
    /// Records and bytes: `taken` were read by their last reader, and `made` are for later stages.
    taken: (u64, u64),
    made: (u64, u64),
}

/// The report of a stage in this process.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StageReport {
    /// The name of the stage.
    pub stage: &'static str,
    /// The wall time in seconds.
    pub seconds: f64,
    /// The CPU time of all threads in seconds; 0 if the system does not report the time.
    pub cpu_seconds: f64,
    /// The number of records that the stage read: of inputs, or of earlier stages.
    pub records_in: u64,
    /// The bytes that the stage read: of inputs, or of temporary files that no later stage needs.
    pub bytes_in: u64,
    /// The number of records that the stage left for later stages.
    pub records_out: u64,
    /// The bytes of temporary files that the stage left for later stages.
    pub bytes_out: u64,
    /// The number of records that were sent between workers.
    pub exchanged_records: u64,
    /// The bytes that were sent between workers.
    pub exchanged_bytes: u64,
    /// The bytes that were written to temporary files in total.
    pub spilled_bytes: u64,
    /// The peak memory of the process in bytes; 0 if the system does not report memory.
    pub peak_memory_bytes: u64,
}

/// A process of the job that has not connected yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// The number of the process.
    pub process: usize,
    /// The address of the process.
    pub host: String,
}

/// The processes that a job waits for before its first stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Waiting {
    /// Processes that have not connected yet.
    pub peers: Vec<Missing>,
    /// The seconds until the job gives up.
    pub seconds_left: u64,
}

/// The state of a running job at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Moment {
    /// The current stage; empty before the first stage.
    pub stage: &'static str,
    /// Seconds since the stage began.
    pub seconds: f64,
    /// The part of the stage's input that was read, from 0 to 1; `None` if the part is unknown.
    pub part: Option<f64>,
    /// The number of records read from inputs so far.
    pub input_records: u64,
    /// The number of inputs (files, or parts of files) finished so far.
    pub inputs_done: u64,
    /// The number of all inputs.
    pub inputs_all: u64,
    /// The bytes of inputs read so far.
    pub bytes_done: u64,
    /// The bytes of all inputs.
    pub bytes_all: u64,
    /// The number of records sent between workers in this stage.
    pub exchanged_records: u64,
    /// The number of records of a store that this stage has processed.
    pub worked: u64,
    /// The bytes written to temporary files so far.
    pub spilled_bytes: u64,
    /// The current memory of the process in bytes; 0 if the system does not report memory.
    pub memory_bytes: u64,
    /// The number of finished stages.
    pub stages_done: usize,
    /// The processes that the job waits for before its first stage; `None` if the job does not wait.
    pub waiting: Option<Waiting>,
}

impl Moment {
    /// Estimates the remaining time of the stage in seconds, from the rate so far.
    pub fn seconds_left(&self) -> Option<f64> {
        let part = self.part.filter(|&part| part > 0.01 && self.seconds > 0.5)?;
        Some(self.seconds * (1.0 - part) / part)
    }
}

impl Progress {
    /// Asks the job to stop. The job ends soon after with [`crate::Error::Cancelled`].
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Relaxed);
    }

    /// Whether the job was asked to stop.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Relaxed)
    }

    /// Returns the current state of the job. Call this method several times a second: it also records peak memory.
    pub fn moment(&self) -> Moment {
        let counters = &*self.0;
        let memory_bytes = meter::memory_bytes();
        counters.peak_memory.fetch_max(memory_bytes, Relaxed);
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        let mut moment = Moment {
            input_records: read(&counters.input_records),
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

    /// Returns the reports of the finished stages.
    pub fn stages(&self) -> Vec<StageReport> {
        self.0.stages.lock().map(|stages| stages.done.clone()).unwrap_or_default()
    }

    /// Returns the bytes written to temporary files so far.
    pub fn spilled(&self) -> u64 {
        self.0.spill_written.load(Relaxed)
    }

    /// Begins a stage that will read about `expected` bytes of temporary files, or `expected` records of a store
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
                input_records: read(&counters.input_records),
                expected,
                worked: read(&counters.worked),
                taken: (0, 0),
                made: (0, 0),
            });
        }
        tracing::info!(stage = name, "stage begins");
    }

    /// Counts the runs that a worker was the last to need, and the runs that the worker leaves for later stages.
    pub(crate) fn add_stage(&self, taken: &Runs, made: &Runs) {
        if let Ok(mut stages) = self.0.stages.lock()
            && let Some(current) = &mut stages.current
        {
            current.taken = (current.taken.0 + taken.records(), current.taken.1 + taken.bytes());
            current.made = (current.made.0 + made.records(), current.made.1 + made.bytes());
        }
    }

    /// Ends the current stage and keeps its report.
    pub fn leave(&self) {
        let counters = &*self.0;
        let moment = self.moment();
        let Ok(mut stages) = counters.stages.lock() else { return };
        let Some(current) = stages.current.take() else { return };
        let read = moment.input_records - current.input_records;
        let (records_in, bytes_in) = if read > 0 { (read, moment.bytes_done) } else { current.taken };
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

    /// Sets the processes that the job waits for, and the end of the wait. An empty list means that the job does not
    /// wait.
    pub(crate) fn wait_for(&self, peers: Vec<Missing>, end: Instant) {
        if let Ok(mut waiting) = self.0.waiting.lock() {
            *waiting = Some((peers, end)).filter(|(peers, _)| !peers.is_empty());
        }
    }

    /// Counts records that were read from inputs.
    pub fn add_input_records(&self, records: u64) {
        self.0.input_records.fetch_add(records, Relaxed);
    }

    /// Counts records of a store that were processed.
    pub fn add_worked(&self, records: u64) {
        self.0.worked.fetch_add(records, Relaxed);
    }

    /// Counts records that were sent to other workers, and their bytes.
    pub(crate) fn add_exchanged(&self, records: u64, bytes: u64) {
        self.0.exchanged_records.fetch_add(records, Relaxed);
        self.0.exchanged_bytes.fetch_add(bytes, Relaxed);
    }

    /// Counts an input that was read to the end.
    pub fn add_input_done(&self) {
        self.0.inputs_done.fetch_add(1, Relaxed);
    }

    /// Sets the number of inputs that this process reads, and their bytes.
    pub fn set_inputs(&self, inputs: u64, bytes: u64) {
        self.0.inputs_all.store(inputs, Relaxed);
        self.0.bytes_all.store(bytes, Relaxed);
    }

    /// Returns the counter of the bytes that were read from inputs.
    pub fn bytes_counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.0.bytes_done)
    }

    /// Returns the counters of the bytes of temporary files: written, then read.
    pub(crate) fn spill_counters(&self) -> [Arc<AtomicU64>; 2] {
        [Arc::clone(&self.0.spill_written), Arc::clone(&self.0.spill_read)]
    }
}
