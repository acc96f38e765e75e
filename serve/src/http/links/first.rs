//! `/v1/first`: the pages that linked first to a URL, oldest first. An answer has up to `limit` pages, the number of
//! all pages, and where the next answer continues. Each answer costs as much as the first one.

use axum::extract::{RawQuery, State};
use axum::response::Response;
use webstrata_layers::First;
use webstrata_layers::answers::Time;
use webstrata_layers::answers::links::{self as answers, FirstLink};

use crate::http::answer::text::told;
use crate::http::describe::{Call, call};
use crate::http::question::address::find;
use crate::http::question::parameter::{Parameter, number};
use crate::http::question::parameters::{EPOCH, RESUME_KEY, URL};
use crate::http::question::params::Params;
use crate::http::question::resume::{PagePosition, Start};
use crate::http::{Refused, pinned, resume_key};
use crate::shared::Shared;

const LIMIT: Parameter = number("limit", "The most pages in the answer. 0: as many as one answer may have.", 0, 10_000)
    .default(100)
    .example(&["10"]);
pub(in crate::http) const FIRST: Call = call::<answers::First>(
    "first",
    "Who linked first to a URL: pages, oldest first, with the time of the first capture with the link.",
    &[URL, LIMIT, RESUME_KEY, EPOCH],
);

/// `/v1/first`.
pub(in crate::http) async fn first(
    State(shared): State<Shared>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refused> {
    let params = Params::of(query.as_deref(), FIRST.parameters)?;
    let start = Start::of(shared.cluster.store(), "/v1/first", &params)?;
    let limit = params.limit()?;
    let url = params.required("url")?;
    let pinned = pinned(&shared, start.epoch).await?;
    let (url, uid) = find(&pinned, url).await?;
    let pages = pinned.answer(First::new(&[uid])).await?.pop().unwrap_or_default();
    let sent = start.position.unwrap_or_default().sent.min(pages.len());
    let end = sent.saturating_add(limit).min(pages.len());
    let urls = pinned.urls(&pages[sent..end].iter().map(|(_, page)| *page).collect::<Vec<_>>()).await?;
    let lines = pages[sent..end].iter().zip(urls);
    let first = lines.map(|((first, _), page)| FirstLink { first: Time(*first), page, name: None }).collect();
    let next = PagePosition { sent: end, ..PagePosition::default() };
    let resume_key = resume_key(&start, &pinned, (end < pages.len()).then_some(next));
    told(&pinned, answers::First { epoch: pinned.epoch(), url, uid, pages: pages.len(), first, resume_key }).await
}
