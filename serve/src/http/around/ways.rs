//! `/v1/ways`: the shortest ways of links from one page to another at a date.

use axum::Json;
use axum::extract::{RawQuery, State};
use serde_json::{Value as Shown, json};
use webstrata_layers::questions::ways::{LINKS, LINKS_MAX, WAYS as WAYS_SHOWN, WAYS_MAX};
use webstrata_layers::{AsOf, Uid, WaySearch};

use crate::clerk::Texts;
use crate::http::question::address::find;
use crate::http::question::params::Params;
use crate::http::{Refused, pinned};
use crate::shared::Shared;

pub(in crate::http) const WAYS: &[&str] = &["url", "target", "at", "hops", "limit", "epoch"];

/// `/v1/ways`.
pub(in crate::http) async fn ways(
    State(shared): State<Shared>,
    RawQuery(query): RawQuery,
) -> Result<Json<Shown>, Refused> {
    let params = Params::of(query.as_deref(), WAYS, &[])?;
    let (url, target) = (params.required("url")?, params.required("target")?);
    let at = params.time("at", true)?.unwrap_or(i64::MAX);
    let hops = params.number("hops", 1..=LINKS_MAX.into())?.unwrap_or(LINKS.into());
    let (hops, limit) = (usize::try_from(hops).unwrap_or(usize::MAX), params.limit(WAYS_SHOWN, WAYS_MAX)?);
    let pinned = pinned(&shared, params.number("epoch", 1..=u64::MAX)?.unwrap_or(0)).await?;
    let ((url, from), (target, to)) = tokio::try_join!(find(&pinned, url), find(&pinned, target))?;
    let search = WaySearch::new((from, to), AsOf::new(at), hops, limit);
    let found = pinned.answer(search).await?;
    let unknown = &found.unknown[..found.unknown.len().min(limit)];
    let texts = Texts::of(&pinned, [&found.ways.concat(), unknown].concat()).await?;
    let way = |way: &Vec<Uid>| way.iter().map(|&uid| texts.get(uid)).collect::<Vec<_>>();
    let mut shown = json!({
        "epoch": pinned.epoch(), "url": url, "target": target, "links": found.links, "isCut": found.is_cut,
        "ways": found.ways.iter().map(way).collect::<Vec<_>>(),
    });
    if !unknown.is_empty() {
        shown["unknown"] = unknown.iter().map(|&uid| texts.get(uid)).collect();
        shown["unknownPages"] = json!(found.unknown.len());
    }
    Ok(Json(shown))
}
