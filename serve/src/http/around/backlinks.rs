//! `/v1/backlinks`: the pages that link to a URL, a host or a domain, and since when.
//! `record::backlink` of `webstrata_layers` has the rule.
//!
//! The series counts all rows; the table has the rows with an event in an interval, up to `limit`. Periods are columns,
//! so that a picture of many years is small. With `source`, the answer is as if the store had no other pages. Cost: the
//! stays of every page that links and counts; pages of the table add the look-ups of their URLs. Each page of the table
//! costs as much as the first one. Memory: a few thousand pages that link, and the rows of one page of the table.

use std::ops::Range;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use tonic::Status;
use webstrata_layers::answers::Day;
use webstrata_layers::answers::backlinks as answers;
use webstrata_layers::{Event, Match, Order, Ranking, Referrers, Uid, Unit};
use webstrata_url::{domain_of, is_name};

use crate::clerk::{BacklinkAnswer, BacklinkQuestion, Pinned};
use crate::http::answer::text::told;
use crate::http::describe::{Call, call};
use crate::http::question::matching::{Matching, matched};
use crate::http::question::parameter::{Parameter, flag, number, text, words, words_of};
use crate::http::question::parameters::{EPOCH, FROM, MATCH_OF_TARGET, PERIODS, RESUME_KEY, TO, URL};
use crate::http::question::params::Params;
use crate::http::question::resume::Start;
use crate::http::{Refused, pinned};
use crate::protocol::status::{Reason, bad};
use crate::shared::Shared;

const SOURCE: Parameter = text(
    "source",
    "Only pages that match this URL count: rows, hosts, periods and totals are as if the store had no others. If no \
        page matches, the answer has no rows.",
)
.example(&["b.example"]);
const SOURCE_MATCH: Parameter = words(
    "source_match",
    "Only with source: which pages match it. Values and default are those of match.",
    words_of::<Match>,
)
.unsaid()
.example(&["host"])
.with(&[("source", "b.example")]);
const INTERNAL: Parameter = flag(
    "internal",
    "Whether pages count that are of the host of the URL, or that match themselves. Pages of the source do not count \
        without it if they are such pages.",
);
const UNIT: Parameter =
    words("unit", "What a row is, and what the periods count. Domains are registrable domains.", words_of::<Unit>)
        .example(&["host"]);
const PERIOD: Parameter =
    words("period", "The length of the periods.", || PERIODS.map(|(name, _)| name).to_vec()).example(&["year"]);
const EVENT: Parameter = words(
    "event",
    "Only rows with such an event between from and to. any: they were gained or lost. gained: found, new or \
        returned. standing: they link at the end.",
    words_of::<Event>,
)
.example(&["lost"]);
const ORDER: Parameter = words(
    "order",
    "first: who linked first comes first. last: who linked last. most: whoever has the most pages, or links to the \
        most URLs. key: in the order of the store.",
    words_of::<Order>,
)
.example(&["most"]);
const LIMIT: Parameter =
    number("limit", "The most rows in the answer. 0: as many as one answer may have.", 0, Referrers::ROWS_MAX)
        .default(200)
        .example(&["1"]);
pub(in crate::http) const BACKLINKS: Call = call::<answers::Backlinks>(
    "backlinks",
    "Who links to a URL, a host or a domain, how many over time, and since when.",
    &[
        URL,
        MATCH_OF_TARGET,
        SOURCE,
        SOURCE_MATCH,
        INTERNAL,
        UNIT,
        PERIOD,
        EVENT,
        FROM,
        TO,
        ORDER,
        LIMIT,
        RESUME_KEY,
        EPOCH,
    ],
);

/// `/v1/backlinks`.
pub(in crate::http) async fn backlinks(
    State(shared): State<Shared>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refused> {
    let params = Params::of(query.as_deref(), BACKLINKS.parameters)?;
    let start = Start::of(shared.cluster.store(), "/v1/backlinks", &params)?;
    let url = params.required("url")?;
    let matching = matched(&params, "match", Match::unsaid(is_name(url)))?;
    let source = source_of(&params)?;
    let internal = params.flag("internal")?;
    let unit = params.word::<Unit>("unit")?;
    let period = params.choice("period", PERIODS)?;
    let event = params.word::<Event>("event")?;
    let order = params.word::<Order>("order")?;
    let interval = params.interval()?.unwrap_or((i64::MIN, i64::MAX));
    let limit = params.limit()?;
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
    let resume_key = answer.rows.last().filter(|_| answer.left > 0);
    let resume_key = resume_key.map(|last| start.key_after(pinned.epoch(), order.place(last)));
    told(
        &pinned,
        answers::Backlinks {
            epoch: pinned.epoch(),
            url: url.to_owned(),
            matching,
            source: source.map(|(source, _)| source.to_owned()),
            source_match: source.map(|(_, matching)| matching),
            unit,
            targets,
            pages: answer.pages,
            rows_total: answer.total,
            rows_selected: answer.selected,
            periods: answer.periods.iter().map(|(start, _)| Day(*start)).collect(),
            columns: answers::Columns::of(&answer.periods),
            hosts: answer.hosts.iter().map(answers::Host::of).collect(),
            rows: answer.rows.iter().zip(&urls).map(|(row, url)| answers::Row::of(row, url, interval.1)).collect(),
            resume_key,
        },
    )
    .await
}

/// The source, and how URLs match it.
fn source_of(params: &Params) -> Result<Option<(&str, Match)>, Status> {
    let Some(source) = params.get("source")? else {
        return match params.get("source_match")? {
            Some(_) => Err(bad("source_match: needs source")),
            None => Ok(None),
        };
    };
    webstrata_url::meant(source).map_err(|error| bad(format!("source: {source:?}: {error}")))?;
    Ok(Some((source, matched(params, "source_match", Match::unsaid(is_name(source)))?)))
}

/// The UIDs of the pages that count. Empty if no URL of the store matches the source.
async fn uids_of_source(pinned: &Pinned, (source, matching): (&str, Match)) -> Result<Vec<Range<Uid>>, Status> {
    match Matching::of(pinned, matching, ("source", source)).await {
        Err(status) if Reason::of(&status) == Some(Reason::NotInStore) => Ok(Vec::new()),
        found => Ok(found?.uids),
    }
}
