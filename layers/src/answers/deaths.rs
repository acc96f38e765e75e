//! Pages that died, and the pages that still link to them.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Day, Time};
use crate::questions::deaths::{DeadPage, Linkers, Toll};
use crate::record::key::matching::Match;
use crate::record::uid::Uid;

/// Pages that died.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Deaths {
    /// The epoch of the answer. UIDs are valid in this epoch only.
    pub epoch: u64,
    /// The URL, if the question has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Which pages the question is about, if it has a URL.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub matching: Option<Match>,
    /// Deaths of the pages in question. A page that died twice counts twice.
    pub rows_total: u64,
    /// Deaths in the interval, with the status, and of pages that have not returned if only these were asked.
    pub rows_selected: u64,
    /// First days of the periods, from the first one with a death to the last one with a death or a return. All deaths
    /// count in them.
    pub periods: Vec<Day>,
    /// The counts by period.
    #[serde(flatten)]
    pub columns: Columns,
    /// The number of selected deaths by status.
    pub statuses: Vec<StatusCount>,
    /// The prefix of the URLs of mementos. After it come the 14 digits of a capture, a slash, and the URL.
    pub replay: String,
    /// The deaths.
    pub rows: Vec<Row>,
    /// There is more. Repeat the question with this key to continue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume_key: Option<String>,
}

/// Numbers by period.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Columns {
    /// Pages that died in the period.
    pub died: Vec<u64>,
    /// Pages that returned in it.
    pub returned: Vec<u64>,
    /// Pages that are gone at its end.
    pub gone: Vec<u64>,
}

impl Columns {
    /// The numbers of periods.
    pub fn of(periods: &[(i64, Toll)]) -> Self {
        let column = |of: fn(&Toll) -> u64| periods.iter().map(|(_, toll)| of(toll)).collect();
        Self { died: column(|toll| toll.died), returned: column(|toll| toll.returned), gone: column(|toll| toll.gone) }
    }
}

/// The deaths with one status.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct StatusCount {
    /// The status.
    pub status: u16,
    /// The number of deaths.
    pub died: u64,
}

/// A death.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "DeadPage")]
pub struct Row {
    /// The page.
    pub page: String,
    /// Its UID.
    pub uid: Uid,
    /// The failure that ended the page; the first failure of a page that was never there.
    pub died: Time,
    /// The status of that failure.
    pub status: u16,
    /// The last capture before in which the page was there; null if it was never there.
    pub seen: Option<Time>,
    /// The next capture in which it is there; null if there is none.
    pub returned: Option<Time>,
    /// Pages that link to it at their latest capture.
    pub linking: u64,
    /// The number of pages that may or may not link. Missing if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<u64>,
    /// The first pages that link, if these were asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub linkers: Option<Vec<String>>,
}

impl Row {
    /// A death, with the URL of the page, and the pages that link if these were asked.
    pub fn of(dead: &DeadPage, page: String, linkers: &Linkers, names: Option<Vec<String>>) -> Self {
        let death = &dead.death;
        Self {
            page,
            uid: dead.page,
            died: Time(death.died),
            status: death.status.code(),
            seen: death.seen.map(Time),
            returned: death.returned.map(Time),
            linking: linkers.linking,
            unknown: Some(linkers.unknown).filter(|unknown| *unknown > 0),
            linkers: names,
        }
    }
}
