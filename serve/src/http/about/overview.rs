//! `/v1/overview`: the content of the store by year and by host, and its latest epochs.
//!
//! The numbers by year come from the note that `webstrata overview` writes ([`Overview`]); the server does not compute
//! them. The answer changes within an epoch when that note is written. Cost: a small file, and a manifest for each
//! epoch listed.

use axum::Json;
use axum::extract::{RawQuery, State};
use serde_json::{Value as Shown, json};
use tonic::Status;
use webstrata_layers::store::log::{Committed, log};
use webstrata_layers::store::overview::Overview;
use webstrata_layers::{Error, Manifest, Store, format_time};

use crate::cluster::blocking;
use crate::http::question::params::Params;
use crate::http::{Refused, pinned};
use crate::protocol::status::status_of;
use crate::shared::Shared;

pub(in crate::http) const OVERVIEW: &[&str] = &["epoch"];
/// The number of epochs listed, from the requested one back.
const EPOCHS: usize = 12;

/// `/v1/overview`.
pub(in crate::http) async fn overview(
    State(shared): State<Shared>,
    RawQuery(query): RawQuery,
) -> Result<Json<Shown>, Refused> {
    let params = Params::of(query.as_deref(), OVERVIEW, &[])?;
    let epoch = pinned(&shared, params.number("epoch", 1..=u64::MAX)?.unwrap_or(0)).await?.epoch();
    let retired = || Status::unavailable(format!("epoch {epoch} is being retired; retry"));
    let store = shared.cluster.epoch_store(epoch).ok_or_else(retired)?;
    let shown = blocking(move || -> Result<Shown, Error> {
        Ok(json!({
            "epoch": epoch,
            "counts": counts(store.manifest()),
            "epochs": epochs(&store)?,
            "overview": Overview::read(&store)?,
        }))
    });
    Ok(Json(shown.await?.map_err(|error| status_of(&error))?))
}

fn counts(manifest: &Manifest) -> Shown {
    let counts = &manifest.counts;
    json!({
        "exact": manifest.counts_are_exact(),
        "urls": counts.urls,
        "pages": counts.pages,
        "captures": counts.captures,
        "unknownCaptures": counts.unknown_captures,
        "failedCaptures": counts.failed_captures,
        "links": counts.links,
        "occurrences": counts.occurrences,
        "from": counts.first_time.map(format_time),
        "to": counts.last_time.map(format_time),
    })
}

/// The latest epochs up to the epoch of a store, newest first.
fn epochs(store: &Store) -> Result<Vec<Shown>, Error> {
    let newest = store.manifest().epoch;
    let epochs = log(store.location())?.filter(|committed| !matches!(committed, Ok(later) if later.id.epoch > newest));
    let shown = |Committed { id, manifest, time }: Committed| {
        let rows: Vec<Shown> = manifest
            .rows
            .iter()
            .map(|row| json!({"row": row.row, "captures": row.counts.captures, "links": row.counts.links}))
            .collect();
        json!({
            "epoch": id.epoch,
            "committed": format_time(time),
            "origin": manifest.origin(),
            "captures": manifest.counts.captures,
            "links": manifest.counts.links,
            "exact": manifest.counts_are_exact(),
            "rows": rows,
        })
    };
    epochs.take(EPOCHS).map(|committed| committed.map(shown)).collect()
}
