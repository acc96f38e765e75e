//! `/v1/neighbourhood`: the pages around a page over time (`questions::neighbourhood` of `webstrata_layers` has the
//! rule).
//!
//! Links are columns with indexes into `nodes`, so that a picture for all dates is one small answer. Links of a node to
//! itself are left out.

use axum::extract::{RawQuery, State};
use axum::response::Response;
use webstrata_layers::answers::around as answers;
use webstrata_layers::record::key::host_of;
use webstrata_layers::{Grain, Groups, NeighbourhoodQuestion, NeighbourhoodSearch};
use webstrata_url::domain_of;

use crate::http::answer::text::told;
use crate::http::describe::{Call, call};
use crate::http::question::address::find;
use crate::http::question::parameter::{Parameter, number, text, words, words_of};
use crate::http::question::parameters::EPOCH;
use crate::http::question::params::Params;
use crate::http::{Refused, pinned};
use crate::shared::Shared;

const PAGE: Parameter = text("url", "The page. Without a scheme, the one that the store has is meant.")
    .required()
    .example(&["http://a.example/"]);
const UNIT: Parameter = words(
    "unit",
    "What a node is: a page, a directory (a host with the first step of the path), a host or a registrable domain.",
    words_of::<Grain>,
)
.example(&["host"]);
const FOLD: Parameter = number(
    "fold",
    "If the unit has more nodes than this, a coarser one: the finest with at most so many, or domains.",
    1,
    NeighbourhoodSearch::NODES_MAX,
)
.example(&["300"]);
const AT: Parameter =
    text("at", "Only links that stand at this time, or of which that is unknown; a short time means its last second.")
        .example(&["20060515"]);
const LIMIT: Parameter =
    number("limit", "Nodes, at most. 0: as many as one answer may have.", 0, NeighbourhoodSearch::NODES_MAX)
        .default(10_000)
        .example(&["100"]);
const HOPS: Parameter = number("hops", "Rings around the page.", 1, 2).default(2).example(&["1"]);
pub(in crate::http) const NEIGHBOURHOOD: Call = Call {
    about: Some(
        "Of more nodes than limit allows, the longest-lived are kept; those next to the page have at most half of the \
            room if hops is 2. Between directories, hosts or domains, a link of another page counts while that page \
            has a link with the page asked for.",
    ),
    ..call::<answers::Neighbourhood>(
        "neighbourhood",
        "What is around a page: what it links to or what links to it, what those link to, and when.",
        &[PAGE, HOPS, UNIT, FOLD, AT, LIMIT, EPOCH],
    )
};

/// `/v1/neighbourhood`.
pub(in crate::http) async fn neighbourhood(
    State(shared): State<Shared>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refused> {
    let params = Params::of(query.as_deref(), NEIGHBOURHOOD.parameters)?;
    let url = params.required("url")?;
    let is_wide = params.number("hops")? == Some(2);
    let unit = params.word::<Grain>("unit")?;
    let fold = params.number("fold")?.map(|most| usize::try_from(most).unwrap_or(usize::MAX));
    let at = params.time("at", true)?;
    let limit = params.limit()?;
    let pinned = pinned(&shared, params.epoch()?).await?;
    let (url, uid) = find(&pinned, url).await?;
    let found = pinned.neighbourhood(NeighbourhoodQuestion { centre: uid, is_wide, at, limit }, unit, fold).await?;
    let unit = found.grain;
    let mut domains = Groups::default();
    for node in &found.nodes {
        let url_of_directory;
        domains.add(match unit {
            Grain::Page => host_of(&node.name).map_or("", domain_of),
            // The name of a directory is a URL without its scheme.
            Grain::Directory => {
                url_of_directory = format!("http://{}", node.name);
                host_of(&url_of_directory).map_or("", domain_of)
            }
            Grain::Host => domain_of(&node.name),
            Grain::Domain => &node.name,
        });
    }
    let is_page = unit == Grain::Page;
    let missing = || found.nodes.iter().enumerate().filter(|(_, node)| !node.is_captured).map(|(place, _)| place);
    told(
        &pinned,
        answers::Neighbourhood {
            epoch: pinned.epoch(),
            url,
            uid,
            unit,
            hops: if is_wide { 2 } else { 1 },
            centre: found.centre,
            not_captured: is_page.then(|| missing().collect()),
            urls: (!is_page).then(|| found.nodes.iter().map(|node| node.urls).collect()),
            links: answers::Edges::of(&found.edges),
            domains: domains.names,
            domain: domains.of,
            left_out: found.left_out,
            unread: found.unread,
            unknown_pages: (found.unknown_pages > 0).then_some(found.unknown_pages),
            nodes: found.nodes.into_iter().map(|node| node.name).collect(),
        },
    )
    .await
}
