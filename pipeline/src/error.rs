//! The errors of the jobs that write a store.

use std::path::PathBuf;
use webstrata_datasets::Example;
use webstrata_engine::Error as JobError;

/// Why a job ended without a store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The engine stopped, or the store cannot be read or written.
    #[error(transparent)]
    Job(JobError),
    /// An input cannot be read.
    #[error(transparent)]
    Input(webstrata_datasets::Error),
    /// A removal selects nothing.
    #[error("a removal: {0}")]
    Removal(#[from] webstrata_layers::NotAHost),
    /// Captures or links were taken out of the store after the job had looked up what to leave out.
    #[error("something was removed from the store while this command started: run the command again")]
    RemovedMeanwhile,
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
    /// Two URLs have the same fingerprint: no correct links can be built from these inputs with this hash.
    #[error("two URLs have the same 128-bit fingerprint: {first} and {second}; remove one of them from the input")]
    SameFingerprint {
        /// One of the two URLs.
        first: String,
        /// The other URL.
        second: String,
    },
    /// A limit of the program was exceeded.
    #[error("{0}")]
    Internal(&'static str),
}

impl From<JobError> for Error {
    /// Returns the error that a stage found, as it was.
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

impl From<webstrata_datasets::Error> for Error {
    /// Temporary files of a reader are temporary files of the job.
    fn from(error: webstrata_datasets::Error) -> Self {
        match error {
            webstrata_datasets::Error::Spill { directory, source } => Self::Job(JobError::Spill { directory, source }),
            error => Self::Input(error),
        }
    }
}

impl From<webstrata_layers::Error> for Error {
    fn from(error: webstrata_layers::Error) -> Self {
        Self::Job(error.into())
    }
}

/// The formats of inputs.
const FORMATS: &str = "Webstrata reads WARC, ARC, WAT, WACZ, links files, JSON lines, capture Parquet, \
    Archives Unleashed tables, LGA, CDX, CDXJ, crawl logs and Common Crawl's web graphs and host index, \
    uncompressed or compressed with gzip or zstd";
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
        1 => ": the input has no record that can be read".to_owned(),
        _ => format!(": none of {inputs} inputs has a record that can be read"),
    };
    let examples = first.iter().take(NAMED);
    let examples = examples.map(|Example { finding, path, detail, .. }| match path.as_os_str().is_empty() {
        true => format!("{}: {detail}", finding.name()),
        false => format!("{}: {}, {detail}", path.display(), finding.name()),
    });
    let examples = examples.collect::<Vec<_>>().join("; ");
    if examples.is_empty() { text } else { format!("{text} ({examples})") }
}
