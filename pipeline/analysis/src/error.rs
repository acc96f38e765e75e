//! The errors of analyses, standing results and exports.

use std::path::PathBuf;

use webstrata_pipeline::Error as JobError;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The engine stopped, or the store cannot be read.
    #[error(transparent)]
    Job(JobError),
    /// A result cannot be written.
    #[error("{} cannot be written: {source}", path.display())]
    Output {
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A result is to be written into a directory that is not there.
    #[error("{} cannot be written: make the directory {} first", path.display(), directory.display())]
    NoDirectory {
        /// Where.
        path: PathBuf,
        /// The directory that is missing.
        directory: PathBuf,
    },
    /// The name of a result does not say how it is to be written.
    #[error(transparent)]
    Ending(#[from] crate::outlet::UnknownEnding),
    /// What is asked of an export does not go together.
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
    /// A standing result would not fit.
    #[error(
        "watching this result over {links} links needs about {} MiB, and --memory is {} MiB: use more",
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
        "this result has grown to {} MiB, and --memory is {} MiB: start again with more memory; \
        the watch resumes after the last epoch that was written",
        taken.div_ceil(1 << 20), given >> 20
    )]
    OutgrownWatch {
        /// What was given, in bytes.
        given: u64,
        /// What the process holds, in bytes.
        taken: u64,
    },
    /// A graph does not fit.
    #[error(
        "--memory of {} MiB is too little for this analysis of {links} links and {urls} URLs: use at least {} MiB",
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
    #[error("the store has no capture in this window, so there is no date to analyze")]
    NoDates,
    /// Someone asked for a stop.
    #[error("stopped; nothing was written")]
    Interrupted,
    /// A bound of the program was passed.
    #[error("{0}")]
    Internal(&'static str),
}

impl Error {
    /// The error of a job that leaves nothing to go on from.
    pub(crate) fn without_state(error: JobError) -> Self {
        if matches!(error, JobError::Cancelled) { Self::Interrupted } else { error.into() }
    }
}

impl From<JobError> for Error {
    /// What a worker found wrong comes back as it was.
    fn from(error: JobError) -> Self {
        match error {
            JobError::Body(body) => match body.downcast::<Error>() {
                Ok(error) => *error,
                Err(other) => Self::Job(JobError::Body(other)),
            },
            error => Self::Job(error),
        }
    }
}

impl From<Error> for JobError {
    fn from(error: Error) -> Self {
        match error {
            Error::Job(error) => error,
            error => Self::Body(Box::new(error)),
        }
    }
}

impl From<webstrata_layers::Error> for Error {
    fn from(error: webstrata_layers::Error) -> Self {
        Self::Job(error.into())
    }
}
