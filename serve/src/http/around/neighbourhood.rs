//! `/v1/neighbourhood`: the pages around a page over time ([`webstrata_layers::questions::neighbourhood`] has the
//! rule).
//!
//! Links are columns with indexes into `nodes`, so that a picture for all dates is one small answer. Links of a node to
//! itself are left out.

use axum::Json;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use webstrata_layers::questions::neighbourhood::NODES_MAX;
use webstrata_layers::questions::neighbourhood::folding::Groups;
use webstrata_layers::record::key::host_of;
use webstrata_layers::{Grain, NeighbourhoodQuestion, Uid};
use webstrata_url::domain_of;

use crate::http::question::address::find;
use crate::http::question::params::Params;
use crate::http::{Refused, pinned};
use crate::shared::Shared;

pub(in crate::http) const NEIGHBOURHOOD: &[&str] = &["url", "hops", "unit", "fold", "at", "limit", "epoch"];

/// The default `limit`, in nodes.
const LIMIT: u64 = 10_000;

/// The answer. It may have a hundred thousand links, so it is written without a tree of values.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    epoch: u64,
    url: String,
    uid: Uid,
    unit: &'static str,
    hops: u8,
    centre: usize,
    nodes: Vec<&'a str>,
    links: Columns,
    domains: &'a [String],
    domain: &'a [usize],
    #[serde(skip_serializing_if = "Option::is_none")]
    not_captured: Option<Vec<usize>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    urls: Option<Vec<usize>>,
    left_out: usize,
    unread: usize,
}

/// Links in columns.
#[derive(Serialize)]
struct Columns {
    source: Vec<usize>,
    target: Vec<usize>,
    from: Vec<i64>,
    until: Vec<Option<i64>>,
    /// The time since which it is unknown whether the link is there. Left out if that is known for all links.
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown: Option<Vec<Option<i64>>>,
}

/// `/v1/neighbourhood`.
pub(in crate::http) async fn neighbourhood(
    State(shared): State<Shared>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refused> {
    let params = Params::of(query.as_deref(), NEIGHBOURHOOD, &[])?;
    let url = params.required("url")?;
    let is_wide = params.choice("hops", [("2", true), ("1", false)])?;
    let unit = params.choice("unit", Grain::ALL.map(|grain| (grain.name(), grain)))?;
    let fold = params.number("fold", 1..=NODES_MAX)?.map(|most| usize::try_from(most).unwrap_or(usize::MAX));
    let at = params.time("at", true)?;
    let limit = params.limit(LIMIT, NODES_MAX)?;
    let pinned = pinned(&shared, params.number("epoch", 1..=u64::MAX)?.unwrap_or(0)).await?;
    let (url, uid) = find(&pinned, url).await?;
    let found = pinned.neighbourhood(NeighbourhoodQuestion { centre: uid, is_wide, at, limit }, unit, fold).await?;
    let unit = found.grain;
    let mut domains = Groups::default();
    for node in &found.nodes {
        domains.add(match unit {
            Grain::Page => host_of(&node.name).map_or("", domain_of),
            // A directory begins with a host, and optionally a port.
            Grain::Directory => domain_of(node.name.split(['/', ':']).next().unwrap_or_default()),
            Grain::Host => domain_of(&node.name),
            Grain::Domain => &node.name,
        });
    }
    let is_page = unit == Grain::Page;
    let missing = || found.nodes.iter().enumerate().filter(|(_, node)| !node.is_captured).map(|(place, _)| place);
    Ok(Json(Shown {
        epoch: pinned.epoch(),
        url,
        uid,
        unit: unit.name(),
        hops: if is_wide { 2 } else { 1 },
        centre: found.centre,
        not_captured: is_page.then(|| missing().collect()),
        urls: (!is_page).then(|| found.nodes.iter().map(|node| node.urls).collect()),
        nodes: found.nodes.iter().map(|node| node.name.as_str()).collect(),
        links: Columns {
            source: found.edges.iter().map(|edge| edge.source).collect(),
            target: found.edges.iter().map(|edge| edge.target).collect(),
            from: found.edges.iter().map(|edge| edge.from).collect(),
            until: found.edges.iter().map(|edge| edge.until).collect(),
            unknown: found
                .edges
                .iter()
                .any(|edge| edge.unknown.is_some())
                .then(|| found.edges.iter().map(|edge| edge.unknown).collect()),
        },
        domains: &domains.names,
        domain: &domains.of,
        left_out: found.left_out,
        unread: found.unread,
    })
    .into_response())
}
