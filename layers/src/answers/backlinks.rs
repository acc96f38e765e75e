//! The pages, hosts or domains that link to a target, and their number over time.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Day, Time};
use crate::questions::backlinks::referrers::{self, Unit};
use crate::record::backlink::{self, Began};
use crate::record::capture::Linking;
use crate::record::key::matching::Match;
use crate::record::uid::Uid;

/// The pages, hosts or domains that link to a target.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Backlinks {
    /// The epoch of the answer. UIDs are valid in this epoch only.
    pub epoch: u64,
    /// The target, as it was asked.
    pub url: String,
    /// Which URLs are the target.
    #[serde(rename = "match")]
    pub matching: Match,
    /// The pages that count, if the question has a source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Which URLs are the source, if the question has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_match: Option<Match>,
    /// The unit of rows and of the counts by period.
    pub unit: Unit,
    /// URLs of the store that are the target.
    pub targets: u64,
    /// Pages that ever linked.
    pub pages: u64,
    /// Rows that ever linked.
    pub rows_total: u64,
    /// Rows that have the event.
    pub rows_selected: u64,
    /// First days of the periods, from the first one in which something happens to the last one. All rows count in
    /// them.
    pub periods: Vec<Day>,
    /// The counts by period.
    #[serde(flatten)]
    pub columns: Columns,
    /// The hosts with the most pages, 50 at most.
    pub hosts: Vec<Host>,
    /// The rows.
    pub rows: Vec<Row>,
    /// There is more. Repeat the question with this key to continue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume_key: Option<String>,
}

/// Numbers by period.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Columns {
    /// Rows that link at the end of the period.
    pub standing: Vec<u64>,
    /// Rows that may or may not link at the end: it is unknown.
    pub unknown: Vec<u64>,
    /// Stays that began with the first known capture of a page.
    pub found: Vec<u64>,
    /// Stays that began after captures without the link.
    pub new: Vec<u64>,
    /// Stays that began after an earlier one.
    pub returned: Vec<u64>,
    /// Stays that ended.
    pub lost: Vec<u64>,
}

impl Columns {
    /// The numbers of periods.
    pub fn of(periods: &[(i64, backlink::Period)]) -> Self {
        let column = |of: fn(&backlink::Period) -> u64| periods.iter().map(|(_, period)| of(period)).collect();
        Self {
            standing: column(|period| period.standing),
            unknown: column(|period| period.unknown),
            found: column(|period| period.found),
            new: column(|period| period.new),
            returned: column(|period| period.returned),
            lost: column(|period| period.lost),
        }
    }
}

/// A host of pages that link.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "ReferringHost")]
pub struct Host {
    /// The name of the host.
    pub host: String,
    /// Its pages that ever linked.
    pub pages: u64,
    /// Its pages that link as of their latest captures.
    pub standing: u64,
    /// The first capture with a link.
    pub first: Time,
}

impl Host {
    /// A host.
    pub fn of(host: &referrers::ReferringHost) -> Self {
        Self { host: host.host.clone(), pages: host.pages, standing: host.standing, first: Time(host.first) }
    }
}

/// A page, a host or a domain that links.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "BacklinksRow")]
pub struct Row {
    /// The page. For a host or a domain, the page that linked first.
    pub page: String,
    /// The UID of the page.
    pub uid: Uid,
    /// The name of the host or the domain, if rows are such.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Pages of the host or the domain that ever linked, if rows are such.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<u64>,
    /// URLs of the target that were linked to.
    pub targets: u64,
    /// Whether it links as of the end of the interval.
    pub links: Linking,
    /// The stretches of time in which it linked.
    pub stays: Vec<Stay>,
    /// Intervals in which it is unknown whether it links, in stays or outside; the last one may have no end. Missing
    /// if there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<(Time, Option<Time>)>,
}

impl Row {
    /// A row with the URL of its page, as of a time.
    pub fn of(row: &referrers::Referrer, url: &str, to: i64) -> Self {
        let backlink::Backlink { stays, unknown, targets } = &row.backlink;
        let interval = |&(first, last): &(i64, i64)| (Time(first), (last < i64::MAX).then_some(Time(last)));
        Self {
            page: url.to_owned(),
            uid: row.page,
            name: row.name.as_deref().map(ToOwned::to_owned),
            pages: row.name.as_ref().map(|_| row.pages),
            targets: *targets,
            links: row.backlink.links_at(to),
            stays: stays.iter().map(Stay::of).collect(),
            unknown: unknown.iter().map(interval).collect(),
        }
    }
}

/// A stretch of time in which a page linked.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Stay {
    /// The first capture that links.
    pub first: Time,
    /// The last capture that links.
    pub last: Time,
    /// The first later capture that does not link; null if the store has none.
    pub until: Option<Time>,
    /// How the stay began.
    pub began: Began,
}

impl Stay {
    /// A stay.
    pub fn of(stay: &backlink::Stay) -> Self {
        let backlink::Stay { first, last, until, began } = *stay;
        Self { first: Time(first), last: Time(last), until: until.map(Time), began }
    }
}
