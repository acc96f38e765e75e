//! `/v1/deaths`: pages that died, the statuses with which they ended, and the pages that still link to them.
//! [`mod@webstrata_layers::record::capture::fate`] has the rule.
//!
//! The series counts all deaths; the table has the deaths in an interval, up to `limit`. Cost: the captures of each
//! page with a failure, and for each row, the in-links of its page. Each page of the table costs as much as the first
//! one.

use axum::extract::{RawQuery, State};
use axum::response::Response;
use webstrata_layers::answers::Day;
use webstrata_layers::answers::deaths as answers;
use webstrata_layers::{
    DeadPage, DeathSearch, DeathsAsked, Linkers, Match, Order, RangeLength, Status as Code, StillLinking, Uid,
};
use webstrata_url::is_name;

use crate::clerk::Texts;
use crate::http::answer::text::told;
use crate::http::describe::{Call, call};
use crate::http::question::matching::{Matching, matched};
use crate::http::question::parameter::{Parameter, flag, number, text, words, words_of};
use crate::http::question::parameters::{self, EPOCH, FROM, MATCH_OF_TARGET, RESUME_KEY, TO};
use crate::http::question::params::Params;
use crate::http::question::resume::Start;
use crate::http::{Refused, pinned};
use crate::protocol::status::bad;
use crate::shared::Shared;

/// The lengths of periods, the year first: pages die more rarely than links.
const PERIODS: [(&str, RangeLength); 3] = {
    let [month, year, day] = parameters::PERIODS;
    [year, month, day]
};

const URL: Parameter =
    text("url", "Only pages that match this URL. Without it all pages of the store.").example(&["http://a.example/"]);
const PERIOD: Parameter =
    words("period", "The length of the periods.", || PERIODS.map(|(name, _)| name).to_vec()).example(&["month"]);
const MISSING: Parameter = flag(
    "missing",
    "Whether the answer is about pages that only ever failed, and their first failures, in the place of deaths.",
);
const STILL: Parameter = flag("still", "Whether only pages count that have not returned.");
const STATUS: Parameter = number("status", "Only deaths with this status.", 100, 999).example(&["404"]);
const ORDER: Parameter = words(
    "order",
    "first: what died first comes first. last: what died last. most: to what most pages link. key: in the order of \
        the store.",
    words_of::<Order>,
)
.example(&["most"]);
const LIMIT: Parameter = number(
    "limit",
    "The most rows in the answer. 0: as many as one answer may have. An answer names at most 100,000 pages, so with \
        linkers it may have fewer rows.",
    0,
    DeathSearch::ROWS_MAX,
)
.default(100)
.example(&["1"]);
const LINKERS: Parameter = number(
    "linkers",
    "Names so many of the pages that link to each page at their latest capture.",
    0,
    DeathSearch::LINKERS_MAX,
)
.default(0)
.example(&["3"]);
pub(in crate::http) const DEATHS: Call = call::<answers::Deaths>(
    "deaths",
    "Pages that died, with the statuses that ended them, and how many pages still link to them.",
    &[
        URL,
        MATCH_OF_TARGET.with(&[("url", "a.example")]),
        MISSING,
        STILL,
        STATUS,
        PERIOD,
        FROM,
        TO,
        ORDER,
        LIMIT,
        LINKERS,
        RESUME_KEY,
        EPOCH,
    ],
);

/// `/v1/deaths`.
pub(in crate::http) async fn deaths(
    State(shared): State<Shared>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refused> {
    let params = Params::of(query.as_deref(), DEATHS.parameters)?;
    let start = Start::of(shared.cluster.store(), "/v1/deaths", &params)?;
    let url = params.get("url")?;
    if url.is_none() && params.get("match")?.is_some() {
        return Err(bad("match: needs url").into());
    }
    let matching = matched(&params, "match", Match::unsaid(url.is_some_and(is_name)))?;
    let missing = params.flag("missing")?;
    let still = params.flag("still")?;
    let code = params.number("status")?;
    let status = code.and_then(|code| Code::new(u16::try_from(code).ok()?));
    let period = params.choice("period", PERIODS)?;
    let order = params.word::<Order>("order")?;
    let interval = params.interval()?.unwrap_or((i64::MIN, i64::MAX));
    let linkers_max = usize::try_from(params.number("linkers")?.unwrap_or(0)).unwrap_or(usize::MAX);
    let limit = DeathSearch::rows_max(params.limit()?, linkers_max);
    let pinned = pinned(&shared, start.epoch).await?;
    let pages = match url {
        None => std::iter::once(Uid(0)..Uid(pinned.len())).collect(),
        Some(url) => Matching::of(&pinned, matching, ("url", url)).await?.uids,
    };
    if let (Some(url), true) = (url, pages.is_empty()) {
        return Err(pinned.nothing_matches(url).into());
    }
    let asked = DeathsAsked { interval, missing, still, status, period, order, after: start.place(), limit };
    let deaths = pinned.answer(DeathSearch::new(&pages, asked)).await?;
    let dead: Vec<Uid> = deaths.rows.iter().map(|dead| dead.page).collect();
    let linkers = pinned.answer(StillLinking::new(&dead, linkers_max)).await?;
    let named = deaths.rows.iter().map(|dead| dead.page).chain(linkers.iter().flat_map(|row| row.pages.clone()));
    let texts = Texts::of(&pinned, named.collect()).await?;
    let row = |(dead, linkers): (&DeadPage, &Linkers)| {
        let text = |uid: Uid| texts.get(uid).to_owned();
        let names = (linkers_max > 0).then(|| linkers.pages.iter().map(|&page| text(page)).collect());
        answers::Row::of(dead, text(dead.page), linkers, names)
    };
    let status = |&(status, died): &(Code, u64)| answers::StatusCount { status: status.code(), died };
    let last = deaths.rows.last().zip(linkers.last()).filter(|_| deaths.left > 0);
    told(
        &pinned,
        answers::Deaths {
            epoch: pinned.epoch(),
            url: url.map(ToOwned::to_owned),
            matching: url.map(|_| matching),
            rows_total: deaths.total,
            rows_selected: deaths.selected,
            periods: deaths.periods.iter().map(|(start, _)| Day(*start)).collect(),
            columns: answers::Columns::of(&deaths.periods),
            statuses: deaths.statuses.iter().map(status).collect(),
            replay: shared.http.replay.clone(),
            rows: deaths.rows.iter().zip(&linkers).map(row).collect(),
            resume_key: last.map(|(last, linkers)| start.key_after(pinned.epoch(), asked.place(last, linkers.linking))),
        },
    )
    .await
}
