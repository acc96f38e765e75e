//! Standing results: degrees, the most linked URLs, components, the host graph, new links to a watched host, kept right
//! as a store grows, at the cost of what each epoch has changed (differential dataflow; McSherry et al., CIDR 2013).
//!
//! ```text
//! epoch 6            epoch 7 (an update)                          epoch 8 (a merge)
//! all pages --+      records of the new row --+                   nothing
//!             +1     links gone: -1, new: +1 |
//!             v                              v
//!        [Feed: UIDs to keys] --> [Circuit: one dataflow] --> rows that changed --> tables or lines
//! ```
//!
//! The collection is the archive as a set of pairs (page, link), with a difference of +1 where one appears and -1 where
//! it goes; its times are the epochs that were followed. A page has the links of its *latest capture whose links are
//! known*. For new links the pairs are those of all captures, so that a link that comes and goes is new once.
//!
//! | result | a row | its value |
//! |---|---|---|
//! | `degrees` | a URL with links out or in | how many, each way |
//! | `top` | one of the `k` most linked URLs, or as much linked as the last of them | pages that link to it |
//! | `components` | a URL with links out or in | the URL that names its component, taken as undirected |
//! | `hosts` | a host (or domain) and one that its pages link to | links |
//! | `newlinks` | a page and a link to the watched host | none |
//!
//! Each is a function of the pairs alone, so whoever begins at whichever epoch has the same rows. The dataflow is in
//! memory and nowhere else: who is started again reads one epoch whole and goes on from there. Memory: some hundred
//! bytes a link, see [`Standing::memory_needed`]; time: `docs/benchmarks.md`, with the line from which on plain arrays
//! are faster.

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

/// A result that is kept right.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Standing {
    /// Links out of and into each URL.
    Degrees,
    /// The URLs with the most links into them.
    Top {
        /// How many; more where others are linked as much as the last of them.
        k: u64,
    },
    /// Weakly connected components.
    Components,
    /// Links between hosts, domains or paths.
    Hosts {
        /// What a URL is folded into.
        #[serde(with = "fold_text")]
        by: Fold,
    },
    /// Links to a host that no capture had before.
    NewLinks {
        /// The host as URLs spell it.
        host: String,
        /// Whether its subdomains are watched, too.
        subdomains: bool,
    },
}

/// What a process takes that keeps a small result: code, row groups, tables on their way.
const PROCESS_BYTES: u64 = 40 << 20;

impl Standing {
    /// Its name: what is asked for, and the first part of its tables' names.
    pub fn kind(&self) -> &'static str {
        match self {
            Standing::Degrees => "degrees",
            Standing::Top { .. } => "top",
            Standing::Components => "components",
            Standing::Hosts { .. } => "hosts",
            Standing::NewLinks { .. } => "newlinks",
        }
    }

    /// About how many bytes it takes to keep it right over so many URLs and pairs of a page and a link, where few of
    /// them change at a time.
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
            Standing::Hosts { by } => write!(f, " --by {by}"),
            Standing::NewLinks { host, subdomains: false } => write!(f, " --host {host}"),
            Standing::NewLinks { host, subdomains: true } => write!(f, " --domain {host}"),
        }
    }
}

/// A row of a result that is not as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedRow {
    /// The URL, with an empty text after it; of pairs both.
    pub key: [String; 2],
    /// Its value before; `None` where it was not there.
    pub before: Option<Value>,
    /// Its value now; `None` where it is gone.
    pub after: Option<Value>,
}

/// What a row says of its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Of `degrees`.
    Degrees {
        /// URLs that it links to.
        out: u64,
        /// Pages that link to it.
        into: u64,
    },
    /// Of `top`: pages that link to it.
    Into(u64),
    /// Of `components`: the URL that names the component.
    Component(String),
    /// Of `hosts`: links from the one to the other.
    Links(u64),
    /// Of `newlinks`, which says no more.
    There,
}

impl Standing {
    /// The value of a row of the dataflow; `name` gives the URL of a number.
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

/// Ways to fold as text.
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
