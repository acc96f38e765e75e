//! The errors of the engine. An error of the work itself travels as [`Error::Body`].

use std::path::PathBuf;

/// Why a job ended without a result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] webstrata_layers::Error),
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
    /// The work that ran on the engine failed; see [`Error::into_body`].
    #[error(transparent)]
    Body(Box<dyn std::error::Error + Send + Sync>),
    /// A limit of the program was exceeded.
    #[error("{0}")]
    Internal(&'static str),
}

impl Error {
    /// Wraps an error of the work, so that the error travels through the engine.
    pub fn from_body(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Body(Box::new(error))
    }

    /// Returns the error of the work as it was. The result is `Err` for errors of the engine, and for errors of the
    /// work of another type.
    pub fn into_body<E: std::error::Error + Send + Sync + 'static>(self) -> Result<E, Self> {
        match self {
            Self::Body(body) => body.downcast().map(|body| *body).map_err(Self::Body),
            error => Err(error),
        }
    }
}

/// "1 worker", "2 workers".
fn counted(workers: usize) -> String {
    format!("{workers} worker{}", if workers == 1 { "" } else { "s" })
}
