//! A release of a web graph as inputs: what a file belongs to, and what the readers of all its files share. The formats
//! of the files are in [`crate::formats::cc_graph`].

use crate::Error;
use crate::files::place::Place;
use std::any::Any;
use std::cmp::Ordering;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The meaning of a leading `www` in the name of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Www {
    /// Nothing, as long as the name has more than two labels: `www.example.com` is read as `example.com`.
    #[default]
    Fold,
    /// Another host.
    Keep,
}

impl Www {
    /// All values.
    pub const ALL: [Www; 2] = [Www::Fold, Www::Keep];

    /// The name of the value on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Www::Fold => "fold",
            Www::Keep => "keep",
        }
    }
}

/// A release of a web graph: its files with hosts, and the hosts themselves, which all its readers share.
pub struct Release {
    /// The files with hosts, in the order of their ids.
    pub(crate) vertices: Vec<Place>,
    /// The properties of the BVGraphs among the files.
    pub(crate) properties: Vec<Place>,
    /// The number of inputs with edges.
    pub(crate) edges: usize,
    /// The time of all captures, seconds since 1970.
    pub(crate) time: i64,
    pub(crate) www: Www,
    /// The hosts, from the first reader that needs them until [`Release::forget`].
    hosts: Mutex<Option<Arc<dyn Any + Send + Sync>>>,
}

impl Release {
    pub(crate) fn new(vertices: Vec<Place>, properties: Vec<Place>, edges: usize, time: i64, www: Www) -> Self {
        Release { vertices, properties, edges, time, www, hosts: Mutex::new(None) }
    }

    /// The hosts. The first call loads them, and other calls wait for it. All calls must ask for the same type.
    pub(crate) fn hosts<T: Any + Send + Sync>(
        &self,
        load: impl FnOnce(&Self) -> Result<T, Error>,
    ) -> Result<Arc<T>, Error> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Ok(hosts)) = hosts.clone().map(Arc::downcast) {
            return Ok(hosts);
        }
        let loaded = Arc::new(load(self)?);
        *hosts = Some(Arc::clone(&loaded) as Arc<dyn Any + Send + Sync>);
        Ok(loaded)
    }

    /// Gives back the memory of the hosts, when the open readers end. A later reader loads the hosts again.
    pub(crate) fn forget(&self) {
        *self.hosts.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// A file of a release.
#[derive(Clone)]
pub struct GraphPart {
    pub(crate) release: Arc<Release>,
    pub(crate) table: Table,
}

/// The table that a file is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Table {
    /// Hosts: the number of the file among the files with hosts.
    Vertices(usize),
    Edges,
    /// Edges as a BVGraph: the number of its properties among those of the release.
    Lists(usize),
    /// Belongs to a BVGraph: its properties, or its transpose.
    Beside,
    /// Links between names of hosts, in a row group of Parquet.
    Names(usize),
}

impl GraphPart {
    /// The values that decide about the captures of the file, besides the files of the release.
    fn meaning(&self) -> (Table, i64, Www) {
        (self.table, self.release.time, self.release.www)
    }
}

impl fmt::Debug for GraphPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GraphPart").field(&self.meaning()).finish()
    }
}

impl PartialEq for GraphPart {
    fn eq(&self, other: &Self) -> bool {
        self.meaning() == other.meaning()
    }
}

impl Eq for GraphPart {}

impl PartialOrd for GraphPart {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for GraphPart {
    fn cmp(&self, other: &Self) -> Ordering {
        self.meaning().cmp(&other.meaning())
    }
}
