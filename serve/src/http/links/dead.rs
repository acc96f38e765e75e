//! `/v1/dead_links`: the links of a page to pages that are gone as of a time, each with the failure that ended the
//! page. `questions::dead_links` of `webstrata_layers` has the rule. Cost: the captures of all links of the page.

use axum::extract::{RawQuery, State};
use axum::response::Response;
use webstrata_layers::answers::links::{self as answers, About};
use webstrata_layers::{DeadLinkSearch, Way, Window};

use crate::http::answer::text::told;
use crate::http::describe::{Call, call};
use crate::http::question::address::find;
use crate::http::question::parameters::{AT, EPOCH, FAILURES, MAX_AGE, URL};
use crate::http::question::params::Params;
use crate::http::{Refused, pinned};
use crate::shared::Shared;

pub(in crate::http) const DEAD_LINKS: Call = call::<answers::DeadLinks>(
    "dead_links",
    "Links of a page to pages that are gone, as of a time or, without one, by their latest captures.",
    &[URL, AT, MAX_AGE, FAILURES, EPOCH],
);

/// `/v1/dead_links`.
pub(in crate::http) async fn dead_links(
    State(shared): State<Shared>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refused> {
    let params = Params::of(query.as_deref(), DEAD_LINKS.parameters)?;
    let as_of = params.as_of()?;
    let url = params.required("url")?;
    let pinned = pinned(&shared, params.epoch()?).await?;
    let (url, uid) = find(&pinned, url).await?;
    let found = pinned.answer(DeadLinkSearch::new(uid, as_of)).await?;
    let urls = pinned.urls(&found.dead.iter().map(|dead| dead.link).collect::<Vec<_>>()).await?;
    let about = About::of(pinned.epoch(), Way::Out, Window::AsOf(as_of));
    told(&pinned, answers::DeadLinks::of(about.url(url, uid), &found, urls)).await
}
