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
    /// A removal that selects nothing.
    #[error("a removal: {0}")]
    Removal(#[from] webstrata_layers::NotAHost),
    /// Something was taken out of the store after the job had looked at what to leave out.
    #[error("something was removed from the store while this command started: run the command again")]
    RemovedMeanwhile,
    /// Temporary files cannot be written or read.
    #[error("temporary files in {}: {source}", directory.display())]
    Spill {
        /// The directory.
        directory: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The job was committed, and a process has none of its temporary files any more.
    #[error(
        "the job has committed its epoch, but one process lost its temporary files; the other temporary files are \
         now removed: run the command again"
    )]
    LostState,
    /// A build was to make a store where there is one.
    #[error(
        "{store} is already a store, and its current epoch is {epoch}: `webstrata update {store} INPUT...` adds \
         captures; `build --replace` makes a new epoch with only the captures of this build"
    )]
    StoreExists {
        /// The store.
        store: String,
        /// Its current epoch.
        epoch: u64,
    },
    /// An option of an update is not that of the store.
    #[error(
        "{store} was built with --{name} \"{store_has}\", and this update has --{name} \"{given}\": \
         unchanged links would look new or removed; omit the option, or build another store"
    )]
    OtherOption {
        /// The store.
        store: String,
        /// The option.
        name: String,
        /// What the store was built with.
        store_has: String,
        /// What is given.
        given: String,
    },
    /// The manifest of a store has an option that this version does not know.
    #[error(
        "{store} was built with the unknown option {name} = {value:?}; update the store with the version that built it"
    )]
    UnknownOption {
        /// The store.
        store: String,
        /// The option.
        name: String,
        /// Its value.
        value: String,
    },
    /// The place for temporary files is not there.
    #[error(
        "temporary files go to {}: {source}; create that directory, or choose another one with --spill",
        directory.display()
    )]
    NoSpill {
        /// The directory.
        directory: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// No input holds anything that could be read.
    #[error("no capture was read from {}; {FORMATS}", looked_at(paths, *inputs, first))]
    NothingRead {
        /// Where was looked.
        paths: Vec<PathBuf>,
        /// How many inputs were there.
        inputs: u64,
        /// The first of them that are no crawl files, and what they are.
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
    /// The budget is too small to work in.
    #[error(
        "--memory of {} MiB is too little for {}: use at least {} MiB{}",
        given >> 20, counted(*workers), needed.div_ceil(1 << 20),
        if *workers > 1 { ", or fewer workers" } else { "" }
    )]
    TooLittleMemory {
        /// What was given, in bytes.
        given: usize,
        /// Workers of this process.
        workers: usize,
        /// What they need, in bytes.
        needed: usize,
    },
    /// The system lets this process have less than it was given.
    #[error(
        "--memory of {1} MiB with {3} needs {2} MiB of address space, and the limit (ulimit -v) is \
         {0} MiB: \
        raise the limit, or choose less memory or fewer workers",
        limit >> 20, given >> 20, needed.div_ceil(1 << 20), counted(*workers)
    )]
    TooLittleAddressSpace {
        /// What the process may have, in bytes.
        limit: u64,
        /// What was given, in bytes.
        given: usize,
        /// Workers of this process.
        workers: usize,
        /// What they need, in bytes.
        needed: u64,
    },
    /// The hosts file makes no sense.
    #[error("{}: {message}", path.display())]
    Hosts {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// This process cannot listen where the hosts file says.
    #[error("cannot listen at {host}: {source}")]
    Listen {
        /// Where.
        host: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A process did not come at the start.
    #[error(
        "process {process} at {host} did not connect within {seconds} s; check that it runs and can reach this process"
    )]
    NoProcess {
        /// Its number.
        process: usize,
        /// Where it should be.
        host: String,
        /// How long it was waited for.
        seconds: u64,
    },
    /// A process works on something else.
    #[error(
        "process {process} at {host} has other inputs, options or hosts; start all processes with the same command"
    )]
    OtherJob {
        /// Its number.
        process: usize,
        /// Where it is.
        host: String,
    },
    /// The connection to a process has ended.
    #[error(
        "process {process} at {host} is gone: it was killed, or printed an error of its own; \
        start all processes again with the same command to resume after the last finished stage"
    )]
    ProcessGone {
        /// Its number.
        process: usize,
        /// Where it was.
        host: String,
    },
    /// Someone asked the job to stop.
    #[error("stopped; run the same command to resume after the last finished stage")]
    Cancelled,
    /// Another worker has an error; never what a job reports.
    #[error("stopping")]
    Stopping,
    /// Two URLs have one fingerprint: no right links can be built from these inputs with this hash.
    #[error("two URLs have the same 128-bit fingerprint: {first} and {second}; remove one of them from the input")]
    SameFingerprint {
        /// One of them.
        first: String,
        /// The other.
        second: String,
    },
    /// A stage panicked: a fault of this program.
    #[error("stage {stage} failed: {message}; please report this with the input that caused it")]
    Panic {
        /// The stage.
        stage: &'static str,
        /// The message of the panic.
        message: String,
    },
    /// What workers keep or tell each other cannot be written or read: a fault of this program.
    #[error("state of a worker: {0}")]
    State(serde_json::Error),
    /// The dataflow could not be started or joined.
    #[error("dataflow: {0}")]
    Dataflow(String),
    /// What is run on the engine found something wrong.
    #[error(transparent)]
    Body(Box<dyn std::error::Error + Send + Sync>),
    /// A bound of the program was passed.
    #[error("{0}")]
    Internal(&'static str),
}

/// What inputs can be.
const FORMATS: &str = "Webstrata reads WARC, ARC, WAT, links files, JSON lines, capture Parquet, \
    Archives Unleashed tables and LGA, uncompressed or compressed with gzip or zstd";
/// How many paths and inputs a message names.
const NAMED: usize = 3;

/// What was looked at, and what it is.
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
