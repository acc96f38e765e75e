//! The contents of a store.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::Time;
use crate::record::page::counts::{Counts, CutCaptures};
use crate::store::manifest::history::Origin;
use crate::store::manifest::{Manifest, RowEntry};
use crate::store::overview::Overview;

/// The counts of an epoch.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct EpochCounts {
    /// URLs.
    pub urls: u64,
    /// Pages. A page in two rows counts twice.
    pub pages: u64,
    /// Captures.
    pub captures: u64,
    /// Captures with unknown links.
    pub unknown_captures: u64,
    /// Cut captures by reason; absent if there are none.
    #[serde(skip_serializing_if = "CutCaptures::is_empty")]
    #[schemars(with = "BTreeMap<String, u64>")]
    pub cut_captures: CutCaptures,
    /// Captures with a status of 400 or above.
    pub failed_captures: u64,
    /// Pairs of a page and a link. A link of a page in two rows may count twice.
    pub links: u64,
    /// Links of all captures.
    pub occurrences: u64,
    /// The first capture; null without captures.
    pub first_time: Option<Time>,
    /// The last capture; null without captures.
    pub last_time: Option<Time>,
    /// Whether the counts are exact. If not, they are sums over rows, and may be too large.
    pub exact: bool,
}

impl EpochCounts {
    /// The counts of an epoch.
    pub fn of(manifest: &Manifest) -> Self {
        Self { exact: manifest.counts_are_exact(), ..Self::from(&manifest.counts) }
    }
}

impl From<&Counts> for EpochCounts {
    fn from(counts: &Counts) -> Self {
        Self {
            urls: counts.urls,
            pages: counts.pages,
            captures: counts.captures,
            unknown_captures: counts.unknown_captures,
            cut_captures: counts.cut_captures,
            failed_captures: counts.failed_captures,
            links: counts.links,
            occurrences: counts.occurrences,
            first_time: counts.first_time.map(Time),
            last_time: counts.last_time.map(Time),
            exact: true,
        }
    }
}

/// The contents of an epoch.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Overview")]
pub struct Contents {
    /// The epoch.
    pub epoch: u64,
    /// The counts of the epoch.
    pub counts: EpochCounts,
    /// The latest epochs up to this one, newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub epochs: Vec<CommittedEpoch>,
    /// The contents by year and by host; null if `webstrata overview` has not been run for this epoch.
    pub overview: Option<Overview>,
}

/// An epoch in the log of a store.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CommittedEpoch {
    /// The epoch.
    pub epoch: u64,
    /// When it was committed.
    pub committed: Time,
    /// How it was made.
    pub origin: Origin,
    /// Its captures.
    pub captures: u64,
    /// Its pairs of a page and a link.
    pub links: u64,
    /// Whether the counts are exact.
    pub exact: bool,
    /// Its rows.
    pub rows: Vec<CommittedRow>,
}

impl CommittedEpoch {
    /// An epoch with the time of its commit.
    pub fn of(manifest: &Manifest, committed: i64) -> Self {
        Self {
            epoch: manifest.epoch,
            committed: Time(committed),
            origin: manifest.origin(),
            captures: manifest.counts.captures,
            links: manifest.counts.links,
            exact: manifest.counts_are_exact(),
            rows: manifest.rows.iter().map(CommittedRow::of).collect(),
        }
    }
}

/// A row in the log of a store.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct CommittedRow {
    /// The number of the row.
    pub row: u32,
    /// Its captures.
    pub captures: u64,
    /// Its pairs of a page and a link.
    pub links: u64,
}

impl CommittedRow {
    fn of(row: &RowEntry) -> Self {
        Self { row: row.row, captures: row.counts.captures, links: row.counts.links }
    }
}
