//! The errors of the jobs that write a store.

use std::path::PathBuf;

/// Why a job ended without a store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An input cannot be read.
    #[error(transparent)]
    Input(#[from] webstrata_datasets::Error),
    /// The store cannot be written.
    #[error(transparent)]
    Store(#[from] webstrata_layers::Error),
    /// Temporary files cannot be written or read.
    #[error("temporary files in {}: {source}; make room there or choose another place with --spill", directory.display())]
    Spill {
        /// The directory.
        directory: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A result cannot be written.
    #[error("{} cannot be written: {source}", path.display())]
    Output {
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// What is asked of an export does not go together.
    #[error(transparent)]
    Unfit(#[from] crate::export::Unfit),
    /// What is watched of a store makes no sense.
    #[error("{}: {source}; what is watched stands there", path.display())]
    Watch {
        /// The note.
        path: PathBuf,
        /// What is wrong in it.
        source: serde_json::Error,
    },
    /// Another process follows the store under this name.
    #[error("{} is locked: another process keeps this result right; end that one, or take another name", path.display())]
    Watched {
        /// The lock.
        path: PathBuf,
    },
    /// A standing result would not fit.
    #[error(
        "to keep this result right over {links} links takes about {} MiB, and --memory is {} MiB: give more",
        needed.div_ceil(1 << 20), given >> 20
    )]
    TooLittleMemoryToWatch {
        /// What was given, in bytes.
        given: u64,
        /// What it takes, in bytes.
        needed: u64,
        /// Pairs of a page and a link.
        links: u64,
    },
    /// A standing result has grown past its budget.
    #[error(
        "this result has grown to {} MiB, and --memory is {} MiB: begin again with more, and it goes on after the epoch \
        that was written last",
        taken.div_ceil(1 << 20), given >> 20
    )]
    OutgrownWatch {
        /// What was given, in bytes.
        given: u64,
        /// What the process holds, in bytes.
        taken: u64,
    },
    /// Another process uses the scratch directory.
    #[error("{} is in use by another job on the same store", directory.display())]
    ScratchInUse {
        /// The directory.
        directory: PathBuf,
    },
    /// A graph does not fit.
    #[error(
        "--memory of {} MiB is too little for this analysis of {links} links and {urls} URLs: give at least {} MiB",
        given >> 20, needed.div_ceil(1 << 20)
    )]
    GraphTooLarge {
        /// What was given, in bytes.
        given: usize,
        /// What this process needs, in bytes.
        needed: usize,
        /// Links of the store.
        links: u64,
        /// URLs of the store.
        urls: u64,
    },
    /// There is no time at which to look.
    #[error("the store has no capture in this time, so there is no date to analyze")]
    NoDates,
    /// The budget is too small to work in.
    #[error(
        "--memory of {} MiB is too little for {workers} workers: give at least {} MiB, or fewer workers",
        given >> 20, needed.div_ceil(1 << 20)
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
        "this process may have {} MiB of address space (ulimit -v), and --memory of {} MiB with {workers} workers needs {} MiB: \
        raise the limit, or give less memory or fewer workers",
        limit >> 20, given >> 20, needed.div_ceil(1 << 20)
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
    #[error("process {process} at {host} did not come within {seconds} s; is it started, and does it reach this one?")]
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
        "process {process} at {host} has gone: killed, or stopped by an error that it names itself; \
        start all processes again with the same command to go on from the last finished stage"
    )]
    ProcessGone {
        /// Its number.
        process: usize,
        /// Where it was.
        host: String,
    },
    /// Someone asked the job to stop.
    #[error("stopped; the same command goes on from the last finished stage")]
    Cancelled,
    /// Someone asked a job to stop that nothing goes on from.
    #[error("stopped; nothing was written")]
    Interrupted,
    /// Another worker has an error; never what a job reports.
    #[error("stopping")]
    Stopping,
    /// Two URLs have one fingerprint: no right links can be built from these inputs with this hash.
    #[error("two URLs have one 128-bit fingerprint: {first} and {second}; leave one of them out of the input")]
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
    /// A bound of the program was passed.
    #[error("{0}")]
    Internal(&'static str),
}
