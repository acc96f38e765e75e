//! The errors of building a store.

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
    #[error("temporary files in {}: {source}; choose another place with --spill", directory.display())]
    Spill {
        /// The directory.
        directory: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
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
    /// The dataflow could not be started or joined.
    #[error("dataflow: {0}")]
    Dataflow(String),
    /// A bound of the program was passed.
    #[error("{0}")]
    Internal(&'static str),
}
