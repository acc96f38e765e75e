//! `/v1/neighbourhood`: what is around a page, and when ([`webstrata_layers::read::around::neighbourhood`] has the
//! rule).
//!
//! Links are columns with places in `nodes`, so that a picture for all dates is one small answer.

use axum::Json;
use axum::extract::{RawQuery, State};
use serde_json::{Value as Shown, json};
use webstrata_layers::read::around::neighbourhood::Groups;
use webstrata_layers::record::key::host_of;
use webstrata_layers::{Edge, Near, Unit};
use webstrata_url::domain_of;

use crate::http::question::address::find;
use crate::http::question::params::Params;
use crate::http::{Refused, pinned};
use crate::server::Shared;

pub(in crate::http) const NEIGHBOURHOOD: &[&str] = &["url", "hops", "unit", "at", "limit", "epoch"];

/// The default and the largest `limit`, in nodes.
const LIMIT: u64 = 10_000;
const LIMIT_MAX: u64 = 100_000;

/// `/v1/neighbourhood`.
pub(in crate::http) async fn neighbourhood(
    State(shared): State<Shared>,
    RawQuery(query): RawQuery,
) -> Result<Json<Shown>, Refused> {
    let params = Params::of(query.as_deref(), NEIGHBOURHOOD, &[])?;
    let url = params.required("url")?;
    let is_wide = params.choice("hops", [("2", true), ("1", false)])?;
    let unit = params.choice("unit", [Unit::Page, Unit::Host, Unit::Domain].map(|unit| (unit.name(), unit)))?;
    let at = params.time("at", true)?;
    let limit = usize::try_from(params.number("limit", 1..=LIMIT_MAX)?.unwrap_or(LIMIT)).unwrap_or(usize::MAX);
    let pinned = pinned(&shared, params.number("epoch", 1..=u64::MAX)?.unwrap_or(0)).await?;
    let (url, uid) = find(&pinned, url).await?;
    let found = pinned.neighbourhood(Near { centre: uid, is_wide, at, limit }, unit).await?;
    let column = |of: fn(&Edge) -> Shown| found.edges.iter().map(of).collect::<Vec<_>>();
    let mut shown = json!({
        "epoch": pinned.epoch(), "url": url, "uid": uid, "unit": unit.name(), "hops": if is_wide { 2 } else { 1 },
        "centre": found.centre,
        "nodes": found.nodes.iter().map(|node| &node.name).collect::<Vec<_>>(),
        "links": {
            "source": column(|edge| json!(edge.source)), "target": column(|edge| json!(edge.target)),
            "from": column(|edge| json!(edge.from)), "until": column(|edge| json!(edge.until)),
        },
        "leftOut": found.left_out, "unread": found.unread,
    });
    let mut domains = Groups::default();
    for node in &found.nodes {
        domains.add(match unit {
            Unit::Page => host_of(&node.name).map_or("", domain_of),
            Unit::Host => domain_of(&node.name),
            Unit::Domain => &node.name,
        });
    }
    (shown["domains"], shown["domain"]) = (json!(domains.names), json!(domains.of));
    if unit == Unit::Page {
        let missing = found.nodes.iter().enumerate().filter(|(_, node)| !node.is_captured);
        shown["notCaptured"] = missing.map(|(place, _)| json!(place)).collect();
    } else {
        shown["urls"] = found.nodes.iter().map(|node| json!(node.urls)).collect();
    }
    Ok(Json(shown))
}
