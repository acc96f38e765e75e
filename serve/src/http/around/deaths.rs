//! `/v1/deaths`: pages that died, the statuses with which they ended, and the pages that still link to them.
//! [`mod@webstrata_layers::record::capture::fate`] has the rule.
//!
//! The series counts all deaths; the table has the deaths in an interval, up to `limit`. Cost: the captures of each
//! page with a failure, and for each row, the in-links of its page. Each page of the table costs as much as the first
//! one.

use axum::Json;
use axum::extract::{RawQuery, State};
use serde_json::{Value as Shown, json};
use webstrata_layers::questions::deaths::{LINKERS_MAX, ROWS_MAX, rows_max};
use webstrata_layers::{
    DeadPage, DeathSearch, DeathsAsked, Linkers, Match, Order, RangeLength, Status as Code, StillLinking, Toll, Uid,
    format_time,
};
use webstrata_url::is_name;

use crate::clerk::Texts;
use crate::http::question::matching::{Matching, matched};
use crate::http::question::params::Params;
use crate::http::question::resume::Start;
use crate::http::{Refused, pinned};
use crate::protocol::status::bad;
use crate::shared::Shared;

pub(in crate::http) const DEATHS: &[&str] =
    &["url", "matchType", "still", "status", "by", "from", "to", "order", "limit", "linkers", "resumeKey", "epoch"];

/// The default `limit`, in rows.
const LIMIT: u64 = 100;

/// `/v1/deaths`.
pub(in crate::http) async fn deaths(
    State(shared): State<Shared>,
    RawQuery(query): RawQuery,
) -> Result<Json<Shown>, Refused> {
    let params = Params::of(query.as_deref(), DEATHS, &[])?;
    let start = Start::of(shared.cluster.store(), "/v1/deaths", &params)?;
    let url = params.get("url")?;
    if url.is_none() && params.get("matchType")?.is_some() {
        return Err(bad("matchType: needs url").into());
    }
    let matching = matched(&params, "matchType", Match::unsaid(url.is_some_and(is_name)))?;
    let still = params.flag("still")?;
    let code = params.number("status", 100..=999)?;
    let status = code.and_then(|code| Code::new(u16::try_from(code).ok()?));
    let period = params.choice("by", [("year", RangeLength::Year), ("month", RangeLength::Month)])?;
    let order = params.choice("order", Order::words())?;
    let interval = params.interval()?.unwrap_or((i64::MIN, i64::MAX));
    let linkers_max = usize::try_from(params.number("linkers", 0..=LINKERS_MAX)?.unwrap_or(0)).unwrap_or(usize::MAX);
    let limit = rows_max(params.limit(LIMIT, ROWS_MAX)?, linkers_max);
    let pinned = pinned(&shared, start.epoch).await?;
    let pages = match url {
        None => std::iter::once(Uid(0)..Uid(pinned.len())).collect(),
        Some(url) => Matching::of(&pinned, matching, ("url", url)).await?.uids,
    };
    if let (Some(url), true) = (url, pages.is_empty()) {
        return Err(pinned.nothing_matches(url).into());
    }
    let asked = DeathsAsked { interval, still, status, period, order, after: start.place(), limit };
    let deaths = pinned.answer(DeathSearch::new(&pages, asked)).await?;
    let dead: Vec<Uid> = deaths.rows.iter().map(|dead| dead.page).collect();
    let linkers = pinned.answer(StillLinking::new(&dead, linkers_max)).await?;
    let named = deaths.rows.iter().map(|dead| dead.page).chain(linkers.iter().flat_map(|row| row.pages.clone()));
    let texts = Texts::of(&pinned, named.collect()).await?;
    let column = |of: fn(&Toll) -> u64| deaths.periods.iter().map(|(_, toll)| of(toll)).collect::<Vec<_>>();
    let row = |(DeadPage { page, death }, linkers): (&DeadPage, &Linkers)| {
        let mut row = json!({
            "page": texts.get(*page), "uid": page, "died": format_time(death.died), "status": death.status.code(),
            "seen": format_time(death.seen), "returned": death.returned.map(format_time), "linking": linkers.linking,
        });
        if linkers.unknown > 0 {
            row["unknown"] = json!(linkers.unknown);
        }
        if linkers_max > 0 {
            row["linkers"] = linkers.pages.iter().map(|&page| texts.get(page)).collect();
        }
        row
    };
    let mut shown = json!({
        "epoch": pinned.epoch(), "rowsTotal": deaths.total, "rowsSelected": deaths.selected,
        "periods": deaths.periods.iter().map(|(start, _)| format_time(*start)[..10].to_owned()).collect::<Vec<_>>(),
        "died": column(|toll| toll.died), "returned": column(|toll| toll.returned), "gone": column(|toll| toll.gone),
        "statuses": deaths.statuses.iter().map(|(status, died)| json!({"status": status.code(), "died": died}))
            .collect::<Vec<_>>(),
        "replay": shared.http.replay,
        "rows": deaths.rows.iter().zip(&linkers).map(row).collect::<Vec<_>>(),
    });
    if let Some(url) = url {
        (shown["url"], shown["matchType"]) = (json!(url), json!(matching.name()));
    }
    if let Some((last, linkers)) = deaths.rows.last().zip(linkers.last()).filter(|_| deaths.left > 0) {
        shown["resumeKey"] = json!(start.key_after(pinned.epoch(), asked.place(last, linkers.linking)));
    }
    Ok(Json(shown))
}
