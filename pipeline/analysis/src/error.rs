//! The errors of analyses, standing results and exports.

use std::path::PathBuf;

use webstrata_engine::Error as JobError;

/// The reasons why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The engine stopped, or the store cannot be read.
    #[error(transparent)]
    Job(JobError),
    /// A result cannot be written.
    #[error("{} cannot be written: {source}", path.display())]
    Output {
        /// The path of the result.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The directory of a result does not exist.
    #[error("{} cannot be written: make the directory {} first", path.display(), directory.display())]
    NoDirectory {
        /// The path of the result.
        path: PathBuf,
        /// The directory that is missing.
        directory: PathBuf,
    },
    /// The name of a result does not say its format.
    #[error(transparent)]
    Ending(#[from] crate::outlet::UnknownEnding),
    /// The options of an export do not fit together.
    #[error(transparent)]
    Unfit(#[from] crate::export::Unfit),
    /// Another process follows the store under this name.
    #[error(
        "{} is locked: another process watches this result; stop that process, or choose another name",
        path.display()
    )]
    Watched {
        /// The lock.
        path: PathBuf,
    },
    /// A standing result does not fit into the memory.
    #[error(
        "watching this result over {links} links needs about {} MiB, and --memory is {} MiB: use more",
        needed.div_ceil(1 << 20), given >> 20
    )]
    TooLittleMemoryToWatch {
        /// The budget, in bytes.
        given: u64,
        /// The required memory, in bytes.
        needed: u64,
        /// The number of pairs of a page and a link.
        links: u64,
    },
    /// A standing result has grown past its budget.
    #[error(
        "this result has grown to {} MiB, and --memory is {} MiB: start again with more memory; \
        the watch resumes after the last epoch that was written",
        taken.div_ceil(1 << 20), given >> 20
    )]
    OutgrownWatch {
        /// The budget, in bytes.
        given: u64,
        /// The memory that the process holds, in bytes.
        taken: u64,
    },
    /// A graph does not fit into the memory.
    #[error(
        "--memory of {} MiB is too little for this analysis of {links} links and {urls} URLs: use at least {} MiB",
        given >> 20, needed.div_ceil(1 << 20)
    )]
    GraphTooLarge {
        /// The budget, in bytes.
        given: usize,
        /// The memory that this process needs, in bytes.
        needed: usize,
        /// The number of links of the store.
        links: u64,
        /// The number of URLs of the store.
        urls: u64,
    },
    /// The window has no date to analyze.
    #[error("the store has no capture in this window, so there is no date to analyze")]
    NoDates,
    /// A stop was requested.
    #[error("stopped; nothing was written")]
    Interrupted,
    /// A limit of the program was exceeded.
    #[error("{0}")]
    Internal(&'static str),
}

impl Error {
    /// Converts the error of a job that leaves no state to resume from.
    pub(crate) fn without_state(error: JobError) -> Self {
        if matches!(error, JobError::Cancelled) { Self::Interrupted } else { error.into() }
    }
}

impl From<JobError> for Error {
    /// Returns the error that a worker found, as it was.
    fn from(error: JobError) -> Self {
        error.into_body().unwrap_or_else(Self::Job)
    }
}

impl From<Error> for JobError {
    fn from(error: Error) -> Self {
        match error {
            Error::Job(error) => error,
            error => Self::from_body(error),
        }
    }
}

impl From<webstrata_layers::Error> for Error {
    fn from(error: webstrata_layers::Error) -> Self {
        Self::Job(error.into())
    }
}
