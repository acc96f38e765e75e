//! The errors of reading crawl files.

use std::path::{Path, PathBuf};

use crate::Finding;
use crate::files::spool::SpillFailed;

/// Why an input cannot be read. Damage inside an input is not an error, see [`crate::Tally`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file system or a server returned an error.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system or of the server.
        source: std::io::Error,
    },
    /// Temporary files cannot be written or read.
    #[error("temporary files in {}: {source}", directory.display())]
    Spill {
        /// The directory.
        directory: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// A path is a URL with another scheme.
    #[error("{}: unknown scheme; inputs are paths, s3://bucket/key, http:// and https:// addresses", path.display())]
    UnknownScheme {
        /// The URL.
        path: PathBuf,
    },
    /// A list of inputs is damaged.
    #[error("{} {offset}: {}; half a list would be half a crawl; get it again", path.display(), finding.name())]
    BadList {
        /// The list.
        path: PathBuf,
        /// The offset of the damage.
        offset: u64,
        /// The damage.
        finding: Finding,
    },
    /// Among the files of a web graph, none has hosts.
    #[error(
        "no file with the hosts of a web graph (vertices, lines of an id and a name) in {}: edges name hosts by \
         number, so give the vertices and the edges of one release together",
        listed(paths)
    )]
    NoHosts {
        /// The paths that were searched.
        paths: Vec<PathBuf>,
    },
    /// Among the files of a web graph, none has edges.
    #[error(
        "no file with the edges of a web graph (lines of two ids) in {}: give the vertices and the edges of one \
         release together",
        listed(paths)
    )]
    NoEdges {
        /// The paths that were searched.
        paths: Vec<PathBuf>,
    },
    /// The properties of a graph are an input, and the graph is none.
    #[error(
        "{} describes a graph in {}, which is no input: give both, and the vertices",
        properties.display(), graph.display()
    )]
    NoGraph {
        /// The file of properties.
        properties: PathBuf,
        /// The graph that is missing.
        graph: PathBuf,
    },
    /// A path or pattern names no file.
    #[error("{}: no such file", path.display())]
    NoSuchFile {
        /// The path or pattern.
        path: PathBuf,
    },
}

/// The first paths.
fn listed(paths: &[PathBuf]) -> String {
    const NAMED: usize = 3;
    let first: Vec<_> = paths.iter().take(NAMED).map(|path| path.display().to_string()).collect();
    first.join(", ") + if paths.len() > NAMED { ", ..." } else { "" }
}

impl Error {
    /// An I/O error at a path, or of the temporary file with the bytes of that path.
    pub fn io(path: &Path, source: std::io::Error) -> Self {
        match source.downcast() {
            Ok(SpillFailed { directory, source }) => Error::Spill { directory, source },
            Err(source) => Error::Io { path: path.to_owned(), source },
        }
    }
}
