//! Standing results: degrees, the most linked URLs, components, the host graph, new links to a watched host. They are
//! kept up to date as a store grows, at the cost of the changes of each epoch (differential dataflow; McSherry et al.,
//! CIDR 2013).
//!
//! ```text
//! epoch 6            epoch 7 (an update)                          epoch 8 (a merge)
//! all pages --+      records of the new row --+                   nothing
//!             +1     links gone: -1, new: +1 |
//!             v                              v
//!        [Feed: UIDs to keys] --> [Circuit: one dataflow] --> rows that changed --> tables or lines
//! ```
//!
//! The collection is the archive as a set of pairs (page, link). A pair has the difference +1 where it appears and -1
//! where it goes. The times of the collection are the followed epochs. A page has the links of its *latest capture with
//! known links*. For new links, the pairs are those of all captures, so a link that comes and goes is new once.
//!
//! | result | a row | its value |
//! |---|---|---|
//! | `degrees` | a URL with links out or in | the number of links each way |
//! | `top` | one of the `k` most linked URLs, or a URL with as many links as the last of them | pages that link to it |
//! | `components` | a URL with links out or in | the URL that names its component, with links undirected |
//! | `hosts` | a host (or domain) and one that its pages link to | links |
//! | `newlinks` | a page and a link to the watched host | none |
//!
//! Each result is a function of the pairs alone, so it has the same rows whichever epoch a run begins with. The
//! dataflow is in memory only: a restarted process reads one epoch whole and continues from there. Memory: some hundred
//! bytes per link, see [`Standing::memory_needed`]. Time: see `docs/benchmarks.md`, also for the point from which plain
//! arrays are faster.

mod circuit;
mod feed;
mod follow;
mod numbers;
mod registry;
mod tables;

pub use follow::{Changeset, Event, FollowOptions, Seconds, Start, follow};
pub use registry::{Listed, Registered, Registration, registered};
pub use tables::Tables;

use crate::Error;
use crate::Fold;
use circuit::Key;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A result that is kept up to date.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Standing {
    /// The numbers of links out of and into each URL.
    Degrees,
    /// The URLs with the most links into them.
    Top {
        /// The number of URLs. The result has more if further URLs have as many links as the last one.
        k: u64,
    },
    /// Weakly connected components.
    Components,
    /// Links between hosts, domains or paths.
    Hosts {
        /// The rule that folds URLs.
        #[serde(with = "fold_text")]
        unit: Fold,
    },
    /// Links to a host that no earlier capture had.
    NewLinks {
        /// The host as URLs spell it.
        host: String,
        /// Whether its subdomains are watched, too.
        subdomains: bool,
    },
}

/// The bytes of a process that keeps a small result: code, row groups, tables in transit.
const PROCESS_BYTES: u64 = 40 << 20;

impl Standing {
    /// Returns the name of the result: the word that requests it, and the first part of the names of its tables.
    pub fn kind(&self) -> &'static str {
        match self {
            Standing::Degrees => "degrees",
            Standing::Top { .. } => "top",
            Standing::Components => "components",
            Standing::Hosts { .. } => "hosts",
            Standing::NewLinks { .. } => "newlinks",
        }
    }

    /// Returns about how many bytes keep the result up to date, for this many URLs and pairs of a page and a link, if
    /// few pairs change at a time.
    pub fn memory_needed(&self, urls: u64, links: u64) -> u64 {
        let (a_url, a_link) = match self {
            Standing::Degrees => (130, 50),
            Standing::Top { .. } => (150, 50),
            Standing::Components => (250, 150),
            Standing::Hosts { .. } => (60, 40),
            Standing::NewLinks { .. } => (40, 0),
        };
        PROCESS_BYTES + urls * a_url + links * a_link
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())?;
        match self {
            Standing::Degrees | Standing::Components => Ok(()),
            Standing::Top { k } => write!(f, " --k {k}"),
            Standing::Hosts { unit } => write!(f, " --unit {unit}"),
            Standing::NewLinks { host, subdomains: false } => write!(f, " --host {host}"),
            Standing::NewLinks { host, subdomains: true } => write!(f, " --domain {host}"),
        }
    }
}

/// A row of a result that has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedRow {
    /// The URL and an empty text, or both members of a pair.
    pub key: [String; 2],
    /// The value before; `None` if the row was not there.
    pub before: Option<Value>,
    /// The value now; `None` if the row is gone.
    pub after: Option<Value>,
}

/// The value of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// The value in `degrees`.
    Degrees {
        /// The number of URLs that the URL links to.
        out: u64,
        /// The number of pages that link to the URL.
        into: u64,
    },
    /// The value in `top`: the number of pages that link to the URL.
    Into(u64),
    /// The value in `components`: the URL that names the component.
    Component(String),
    /// The value in `hosts`: the number of links from the first host to the second.
    Links(u64),
    /// The value in `newlinks`, where the key says everything.
    There,
}

impl Standing {
    /// Returns the value of a row of the dataflow. `name` returns the URL of a number.
    fn value(&self, (a, b): (u64, u64), name: impl FnOnce(Key) -> Result<String, Error>) -> Result<Value, Error> {
        Ok(match self {
            Standing::Degrees => Value::Degrees { out: a, into: b },
            Standing::Top { .. } => Value::Into(a),
            Standing::Components => {
                let number = u32::try_from(a).map_err(|_| Error::Internal("a component without a URL"))?;
                Value::Component(name(Key(number))?)
            }
            Standing::Hosts { .. } => Value::Links(a),
            Standing::NewLinks { .. } => Value::There,
        })
    }
}

/// Folds as text.
mod fold_text {
    use crate::Fold;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(fold: &Fold, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(fold)
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Fold, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}
