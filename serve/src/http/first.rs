//! `/v1/first`: who linked first to a URL, oldest first. The answer has the first pages only, as many as `limit` says,
//! and how many there are in all.

use axum::Json;
use axum::extract::{RawQuery, State};
use serde_json::{Value as Shown, json};
use webstrata_layers::format_time;

use super::question::address::find;
use super::question::params::Params;
use super::{Refused, pinned};
use crate::server::Shared;

pub(super) const FIRST: &[&str] = &["url", "limit", "epoch"];

/// The default and the largest `limit`, in pages.
const LIMIT: u64 = 100;
const LIMIT_MAX: u64 = 10_000;

/// `/v1/first`.
pub(super) async fn first(State(shared): State<Shared>, RawQuery(query): RawQuery) -> Result<Json<Shown>, Refused> {
    let params = Params::of(query.as_deref(), FIRST, &[])?;
    let limit = params.number("limit", 1..=LIMIT_MAX)?.unwrap_or(LIMIT);
    let url = params.required("url")?;
    let pinned = pinned(&shared, params.number("epoch", 1..=u64::MAX)?.unwrap_or(0)).await?;
    let (url, uid) = find(&pinned, url).await?;
    let mut pages = pinned.first(&[uid]).await?.pop().unwrap_or_default();
    let count = pages.len();
    pages.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    let urls = pinned.urls(&pages.iter().map(|(_, page)| *page).collect::<Vec<_>>()).await?;
    let lines = pages.iter().zip(urls).map(|((first, _), page)| json!({"first": format_time(*first), "page": page}));
    let lines: Vec<Shown> = lines.collect();
    Ok(Json(json!({"epoch": pinned.epoch(), "url": url, "uid": uid, "pages": count, "first": lines})))
}
