//! `/v1/ways`: the shortest ways of links from one page to another at a date.

use axum::extract::{RawQuery, State};
use axum::response::Response;
use webstrata_layers::answers::around as answers;
use webstrata_layers::{AsOf, Uid, WaySearch};

use crate::clerk::Texts;
use crate::http::answer::text::told;
use crate::http::describe::{Call, call};
use crate::http::question::address::find;
use crate::http::question::parameter::{Parameter, number, text};
use crate::http::question::parameters::EPOCH;
use crate::http::question::params::Params;
use crate::http::{Refused, pinned};
use crate::shared::Shared;

const PAGE: Parameter = text("url", "The page. Without a scheme, the one that the store has is meant.")
    .required()
    .example(&["http://a.example/"]);
const TARGET: Parameter = text("target", "The page at the end.").required().example(&["http://b.example/"]);
const AT: Parameter =
    text("at", "Only links that stand at this time; a short time means its last second.").example(&["20060515"]);
const HOPS: Parameter = number("hops", "Links of a way, at most.", 1, WaySearch::LINKS_MAX as u64)
    .default(WaySearch::LINKS as u64)
    .example(&["2"]);
const LIMIT: Parameter = number("limit", "Ways, at most. 0: as many as one answer may have.", 0, WaySearch::WAYS_MAX)
    .default(WaySearch::WAYS)
    .example(&["1"]);
pub(in crate::http) const WAYS: Call = call::<answers::Ways>(
    "ways",
    "The shortest ways of links from one page to another.",
    &[PAGE, TARGET, AT, HOPS, LIMIT, EPOCH],
);

/// `/v1/ways`.
pub(in crate::http) async fn ways(
    State(shared): State<Shared>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refused> {
    let params = Params::of(query.as_deref(), WAYS.parameters)?;
    let (url, target) = (params.required("url")?, params.required("target")?);
    let at = params.time("at", true)?.unwrap_or(i64::MAX);
    let hops = params.number("hops")?.unwrap_or(WaySearch::LINKS.into());
    let (hops, limit) = (usize::try_from(hops).unwrap_or(usize::MAX), params.limit()?);
    let pinned = pinned(&shared, params.epoch()?).await?;
    let ((url, from), (target, to)) = tokio::try_join!(find(&pinned, url), find(&pinned, target))?;
    let search = WaySearch::new((from, to), AsOf::new(at), hops, limit);
    let found = pinned.answer(search).await?;
    let unknown = &found.unknown[..found.unknown.len().min(limit)];
    let texts = Texts::of(&pinned, [&found.ways.concat(), unknown].concat()).await?;
    let urls = |uids: &[Uid]| uids.iter().map(|&uid| texts.get(uid).to_owned()).collect::<Vec<_>>();
    told(
        &pinned,
        answers::Ways {
            epoch: pinned.epoch(),
            url,
            target,
            links: found.links,
            is_cut: found.is_cut,
            ways: found.ways.iter().map(|way| urls(way)).collect(),
            unknown: (!unknown.is_empty()).then(|| urls(unknown)),
            unknown_pages: (!unknown.is_empty()).then_some(found.unknown.len()),
        },
    )
    .await
}
