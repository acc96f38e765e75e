//! `/v1/backlinks`: the pages that link to a URL, a host or a domain, and since when.
//! [`webstrata_layers::record::backlink`] has the rule.
//!
//! The series counts all rows; the table has the rows with an event in an interval, up to `limit`. Periods are columns,
//! so that a picture of many years is small. With `source`, the answer is as if the store had no other pages. Cost: the
//! stays of every page that links and counts; pages of the table add the look-ups of their URLs. Each page of the table
//! costs as much as the first one. Memory: a few thousand pages that link, and the rows of one page of the table.

use std::ops::Range;

use axum::Json;
use axum::extract::{RawQuery, State};
use serde_json::{Value as Shown, json};
use tonic::Status;
use webstrata_layers::questions::backlinks::referrers::ROWS_MAX;
use webstrata_layers::{
    Backlink, Event, Match, Order, Period, RangeLength, Ranking, Referrer, ReferringHost, Stay, Uid, Unit, format_time,
};
use webstrata_url::{domain_of, is_name};

use crate::clerk::{BacklinkAnswer, BacklinkQuestion, Pinned};
use crate::http::question::matching::{Matching, matched};
use crate::http::question::params::Params;
use crate::http::question::resume::Start;
use crate::http::{Refused, pinned};
use crate::protocol::status::{Reason, bad};
use crate::shared::Shared;

pub(in crate::http) const BACKLINKS: &[&str] = &[
    "url",
    "matchType",
    "source",
    "sourceMatch",
    "internal",
    "unit",
    "by",
    "event",
    "from",
    "to",
    "order",
    "limit",
    "resumeKey",
    "epoch",
];

/// The default `limit`, in rows.
const LIMIT: u64 = 200;

/// `/v1/backlinks`.
pub(in crate::http) async fn backlinks(
    State(shared): State<Shared>,
    RawQuery(query): RawQuery,
) -> Result<Json<Shown>, Refused> {
    let params = Params::of(query.as_deref(), BACKLINKS, &[])?;
    let start = Start::of(shared.cluster.store(), "/v1/backlinks", &params)?;
    let url = params.required("url")?;
    let matching = matched(&params, "matchType", Match::unsaid(is_name(url)))?;
    let source = source_of(&params)?;
    let internal = params.flag("internal")?;
    let unit = params.choice("unit", [Unit::Page, Unit::Host, Unit::Domain].map(|unit| (unit.name(), unit)))?;
    let period = params.choice("by", [("month", RangeLength::Month), ("year", RangeLength::Year)])?;
    let event = params.choice("event", Event::words())?;
    let order = params.choice("order", Order::words())?;
    let interval = params.interval()?.unwrap_or((i64::MIN, i64::MAX));
    let limit = params.limit(LIMIT, ROWS_MAX)?;
    let pinned = pinned(&shared, start.epoch).await?;
    let Matching { url: spelled, uids: target } = Matching::of(&pinned, matching, ("url", url)).await?;
    if target.is_empty() {
        return Err(pinned.nothing_matches(url).into());
    }
    let within = match source {
        Some(source) => Some(uids_of_source(&pinned, source).await?),
        None => None,
    };
    let scope = pinned.scope((matching, &spelled, &target), internal, within).await?;
    let targets: u64 = target.iter().map(|uids| uids.end.0 - uids.start.0).sum();
    // A page of the table begins after the last row of the page before. The key has the place of that row in the order.
    let ranking = Ranking { unit, domain_of, period, event, interval, order, after: start.place(), limit };
    let question = BacklinkQuestion { target, scope, ranking };
    let BacklinkAnswer { ranked: answer, urls } = pinned.who_links(question).await?;
    let column = |of: fn(&Period) -> u64| answer.periods.iter().map(|(_, period)| of(period)).collect::<Vec<_>>();
    let mut shown = json!({
        "epoch": pinned.epoch(), "url": url, "matchType": matching.name(), "unit": unit.name(),
        "targets": targets, "pages": answer.pages, "rowsTotal": answer.total, "rowsSelected": answer.selected,
        "periods": answer.periods.iter().map(|(start, _)| format_time(*start)[..10].to_owned()).collect::<Vec<_>>(),
        "standing": column(|period| period.standing), "unknown": column(|period| period.unknown),
        "found": column(|period| period.found), "new": column(|period| period.new),
        "returned": column(|period| period.returned), "lost": column(|period| period.lost),
        "hosts": answer.hosts.iter().map(host_shown).collect::<Vec<_>>(),
        "rows": answer.rows.iter().zip(&urls).map(|row| row_shown(row, interval.1)).collect::<Vec<_>>(),
    });
    if let Some((source, matching)) = source {
        (shown["source"], shown["sourceMatch"]) = (json!(source), json!(matching.name()));
    }
    if let Some(last) = answer.rows.last().filter(|_| answer.left > 0) {
        shown["resumeKey"] = json!(start.key_after(pinned.epoch(), order.place(last)));
    }
    Ok(Json(shown))
}

/// The source, and how URLs match it.
fn source_of(params: &Params) -> Result<Option<(&str, Match)>, Status> {
    let Some(source) = params.get("source")? else {
        return match params.get("sourceMatch")? {
            Some(_) => Err(bad("sourceMatch: needs source")),
            None => Ok(None),
        };
    };
    webstrata_url::meant(source).map_err(|error| bad(format!("source: {source:?}: {error}")))?;
    Ok(Some((source, matched(params, "sourceMatch", Match::unsaid(is_name(source)))?)))
}

/// The UIDs of the pages that count. Empty if no URL of the store matches the source.
async fn uids_of_source(pinned: &Pinned, (source, matching): (&str, Match)) -> Result<Vec<Range<Uid>>, Status> {
    match Matching::of(pinned, matching, ("source", source)).await {
        Err(status) if Reason::of(&status) == Some(Reason::NotInStore) => Ok(Vec::new()),
        found => Ok(found?.uids),
    }
}

fn host_shown(host: &ReferringHost) -> Shown {
    json!({"host": host.host, "pages": host.pages, "standing": host.standing, "first": format_time(host.first)})
}

/// A row with the URL of its page, and whether the page links as of a time.
fn row_shown((row, url): (&Referrer, &String), to: i64) -> Shown {
    let Backlink { stays, unknown, targets } = &row.backlink;
    let stay = |stay: &Stay| {
        json!({"first": format_time(stay.first), "last": format_time(stay.last), "gone": stay.gone.map(format_time),
               "began": stay.began})
    };
    let interval =
        |&(first, last): &(i64, i64)| json!([format_time(first), (last < i64::MAX).then(|| format_time(last))]);
    let mut shown = json!({"page": url, "uid": row.page, "targets": targets, "links": row.backlink.links_at(to),
                           "stays": stays.iter().map(stay).collect::<Vec<_>>()});
    if let Some(name) = &row.name {
        (shown["name"], shown["pages"]) = (json!(name), json!(row.pages));
    }
    if !unknown.is_empty() {
        shown["unknown"] = unknown.iter().map(interval).collect();
    }
    shown
}
