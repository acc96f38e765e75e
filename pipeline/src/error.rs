//! The errors of the jobs that write a store.

use std::path::PathBuf;
use webstrata_datasets::Example;

/// Why a job ended without a store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An input cannot be read.
    #[error(transparent)]
    Input(#[from] webstrata_datasets::Error),
    /// The store cannot be written.
    #[error(transparent)]
    Store(#[from] webstrata_layers::Error),
    /// A removal selects nothing.
    #[error("a removal: {0}")]
    Removal(#[from] webstrata_layers::NotAHost),
    /// Captures or links were taken out of the store after the job had looked up what to leave out.
    #[error("something was removed from the store while this command started: run the command again")]
    RemovedMeanwhile,
    /// Temporary files cannot be written or read.
    #[error("temporary files in {}: {source}", directory.display())]
    Spill {
        /// The directory.
        directory: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The job has committed, and a process no longer has its temporary files.
    #[error(
        "the job has committed its epoch, but one process lost its temporary files; the other temporary files are \
         now removed: run the command again"
    )]
    LostState,
    /// A build that makes a store found an existing store.
    #[error(
        "{store} is already a store, and its current epoch is {epoch}: `webstrata update {store} INPUT...` adds \
         captures; `build --replace` makes a new epoch with only the captures of this build"
    )]
    StoreExists {
        /// The store.
        store: String,
        /// The current epoch of the store.
        epoch: u64,
    },
    /// An option of an update differs from the option of the store.
    #[error(
        "{store} was built with --{name} \"{store_has}\", and this update has --{name} \"{given}\": \
         unchanged links would look new or removed; omit the option, or build another store"
    )]
    OtherOption {
        /// The store.
        store: String,
        /// The name of the option.
        name: String,
        /// The value that the store was built with.
        store_has: String,
        /// The value that the update was given.
        given: String,
    },
    /// The manifest of a store has an option that this version does not know.
    #[error(
        "{store} was built with the unknown option {name} = {value:?}; update the store with the version that built it"
    )]
    UnknownOption {
        /// The store.
        store: String,
        /// The name of the option.
        name: String,
        /// The value of the option.
        value: String,
    },
    /// The directory for temporary files does not exist.
    #[error(
        "temporary files go to {}: {source}; create that directory, or choose another one with --spill",
        directory.display()
    )]
    NoSpill {
        /// The directory.
        directory: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// No input contains anything that could be read.
    #[error("no capture was read from {}; {FORMATS}", looked_at(paths, *inputs, first))]
    NothingRead {
        /// The paths that were searched.
        paths: Vec<PathBuf>,
        /// The number of inputs that were found.
        inputs: u64,
        /// The first inputs that are not crawl files, with their findings.
        first: Vec<Example>,
    },
    /// Another process uses the scratch directory.
    #[error(
        "{} is in use by another job on the same store; wait for that job, or choose another directory with --spill",
        directory.display()
    )]
    ScratchInUse {
        /// The directory.
        directory: PathBuf,
    },
    /// The memory budget is too small for the workers.
    #[error(
        "--memory of {} MiB is too little for {}: use at least {} MiB{}",
        given >> 20, counted(*workers), needed.div_ceil(1 << 20),
        if *workers > 1 { ", or fewer workers" } else { "" }
    )]
    TooLittleMemory {
        /// The given budget, in bytes.
        given: usize,
        /// The number of workers of this process.
        workers: usize,
        /// The least budget for these workers, in bytes.
        needed: usize,
    },
    /// The system gives this process less address space than the job needs.
    #[error(
        "--memory of {1} MiB with {3} needs {2} MiB of address space, and the limit (ulimit -v) is \
         {0} MiB: \
        raise the limit, or choose less memory or fewer workers",
        limit >> 20, given >> 20, needed.div_ceil(1 << 20), counted(*workers)
    )]
    TooLittleAddressSpace {
        /// The limit of the system, in bytes.
        limit: u64,
        /// The given budget, in bytes.
        given: usize,
        /// The number of workers of this process.
        workers: usize,
        /// The address space that the job needs, in bytes.
        needed: u64,
    },
    /// The hosts file is invalid.
    #[error("{}: {message}", path.display())]
    Hosts {
        /// The hosts file.
        path: PathBuf,
        /// The problem in the file.
        message: String,
    },
    /// This process cannot listen at its address in the hosts file.
    #[error("cannot listen at {host}: {source}")]
    Listen {
        /// The address.
        host: String,
        /// The error of the system.
        source: std::io::Error,
    },
    /// A process did not connect at the start.
    #[error(
        "process {process} at {host} did not connect within {seconds} s; check that it runs and can reach this process"
    )]
    NoProcess {
        /// The number of the process.
        process: usize,
        /// The address at which the process was expected.
        host: String,
        /// How long this process waited.
        seconds: u64,
    },
    /// A process works on another job.
    #[error(
        "process {process} at {host} has other inputs, options or hosts; start all processes with the same command"
    )]
    OtherJob {
        /// The number of the process.
        process: usize,
        /// The address of the process.
        host: String,
    },
    /// The connection to a process has ended.
    #[error(
        "process {process} at {host} is gone: it was killed, or printed an error of its own; \
        start all processes again with the same command to resume after the last finished stage"
    )]
    ProcessGone {
        /// The number of the process.
        process: usize,
        /// The address of the process.
        host: String,
    },
    /// The caller asked the job to stop.
    #[error("stopped; run the same command to resume after the last finished stage")]
    Cancelled,
    /// Another worker has an error; a job never reports this error.
    #[error("stopping")]
    Stopping,
    /// Two URLs have the same fingerprint: no correct links can be built from these inputs with this hash.
    #[error("two URLs have the same 128-bit fingerprint: {first} and {second}; remove one of them from the input")]
    SameFingerprint {
        /// One of the two URLs.
        first: String,
        /// The other URL.
        second: String,
    },
    /// A stage panicked, which is a fault of this program.
    #[error("stage {stage} failed: {message}; please report this with the input that caused it")]
    Panic {
        /// The stage.
        stage: &'static str,
        /// The message of the panic.
        message: String,
    },
    /// The state or a message of a worker cannot be written or read, which is a fault of this program.
    #[error("state of a worker: {0}")]
    State(serde_json::Error),
    /// The dataflow could not be started or joined.
    #[error("dataflow: {0}")]
    Dataflow(String),
    /// The caller's code that ran on the engine failed.
    #[error(transparent)]
    Body(Box<dyn std::error::Error + Send + Sync>),
    /// A limit of the program was exceeded.
    #[error("{0}")]
    Internal(&'static str),
}

/// The formats of inputs.
const FORMATS: &str = "Webstrata reads WARC, ARC, WAT, links files, JSON lines, capture Parquet, \
    Archives Unleashed tables and LGA, uncompressed or compressed with gzip or zstd";
/// The maximum number of paths and of inputs that a message names.
const NAMED: usize = 3;

/// Returns a text that names the searched paths and says what the inputs are.
fn looked_at(paths: &[PathBuf], inputs: u64, first: &[Example]) -> String {
    let mut text = paths.iter().take(NAMED).map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
    if paths.is_empty() {
        text += "made-up crawls";
    } else if paths.len() > NAMED {
        text += &format!(" and {} others", paths.len() - NAMED);
    }
    text += &match inputs {
        0 => ": no file in it (files whose names begin with a dot are passed over)".to_owned(),
        1 => ": the input has no record".to_owned(),
        _ => format!(": none of {inputs} inputs has a record"),
    };
    let examples = first.iter().take(NAMED);
    let examples =
        examples.map(|example| format!("{}: {}, {}", example.path.display(), example.finding.name(), example.detail));
    let examples = examples.collect::<Vec<_>>().join("; ");
    if examples.is_empty() { text } else { format!("{text} ({examples})") }
}

/// "1 worker", "2 workers".
fn counted(workers: usize) -> String {
    format!("{workers} worker{}", if workers == 1 { "" } else { "s" })
}
