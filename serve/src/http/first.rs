//! `/v1/first`: the pages that linked first to a URL, oldest first. An answer has up to `limit` pages, the number of
//! all pages, and where the next answer continues. Each answer costs as much as the first one.

use axum::Json;
use axum::extract::{RawQuery, State};
use serde_json::{Value as Shown, json};
use webstrata_layers::{First, format_time};

use super::question::address::find;
use super::question::params::Params;
use super::question::resume::{PagePosition, Start};
use super::{Refused, pinned, resume_key};
use crate::shared::Shared;

pub(super) const FIRST: &[&str] = &["url", "limit", "resumeKey", "epoch"];

/// The default and the largest `limit`, in pages.
const LIMIT: u64 = 100;
const LIMIT_MAX: u64 = 10_000;

/// `/v1/first`.
pub(super) async fn first(State(shared): State<Shared>, RawQuery(query): RawQuery) -> Result<Json<Shown>, Refused> {
    let params = Params::of(query.as_deref(), FIRST, &[])?;
    let start = Start::of(shared.cluster.store(), "/v1/first", &params)?;
    let limit = params.limit(LIMIT, LIMIT_MAX)?;
    let url = params.required("url")?;
    let pinned = pinned(&shared, start.epoch).await?;
    let (url, uid) = find(&pinned, url).await?;
    let pages = pinned.answer(First::new(&[uid])).await?.pop().unwrap_or_default();
    let sent = start.position.unwrap_or_default().sent.min(pages.len());
    let end = sent.saturating_add(limit).min(pages.len());
    let urls = pinned.urls(&pages[sent..end].iter().map(|(_, page)| *page).collect::<Vec<_>>()).await?;
    let lines = pages[sent..end].iter().zip(urls);
    let lines: Vec<Shown> =
        lines.map(|((first, _), page)| json!({"first": format_time(*first), "page": page})).collect();
    let mut shown = json!({"epoch": pinned.epoch(), "url": url, "uid": uid, "pages": pages.len(), "first": lines});
    let next = PagePosition { sent: end, ..PagePosition::default() };
    resume_key(&mut shown, &start, &pinned, (end < pages.len()).then_some(next));
    Ok(Json(shown))
}
