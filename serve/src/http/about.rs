//! `/v1/stats`, `/v1/topology`, `/v1/epochs`: counts of the store, and the servers that hold each cell. [`overview`]
//! has the store by year.

use axum::Json;
use axum::extract::{RawQuery, State};
use serde_json::{Value as Shown, json};
use webstrata_layers::format_time;

use super::Refused;
use super::question::params::Params;
use crate::clerk::graph_of;
use crate::protocol::proto::{Cell, CellStats, Counts, Epoch, Row, Server, ServerStats};
use crate::shared::Shared;
use webstrata_cells::image::label::number_range;

pub(super) mod overview;

pub(super) const STATS: &[&str] = &["epoch"];
pub(super) const TOPOLOGY: &[&str] = &[];
pub(super) const EPOCHS: &[&str] = &[];

fn counts(counts: &Counts) -> Shown {
    json!({
        "urls": counts.urls,
        "pages": counts.pages,
        "captures": counts.captures,
        "links": counts.links,
        "maxOutDegree": counts.max_out_degree,
        "maxInDegree": counts.max_in_degree,
        "bytes": counts.bytes,
    })
}

/// `/v1/stats`.
pub(super) async fn stats(State(shared): State<Shared>, RawQuery(query): RawQuery) -> Result<Json<Shown>, Refused> {
    let params = Params::of(query.as_deref(), STATS, &[])?;
    let epoch = params.number("epoch", 1..=u64::MAX)?.unwrap_or(0);
    let stats = shared.stats(epoch).await?;
    let server = |server: &ServerStats| {
        let server_counts = counts(&server.counts.unwrap_or_default());
        json!({"server": server.server, "cells": server.cells, "counts": server_counts})
    };
    let cell = |cell: &CellStats| {
        let name = cell.cell.unwrap_or_default();
        let cell_counts = counts(&cell.counts.unwrap_or_default());
        json!({
            "row": name.row, "partition": name.partition, "minUid": cell.min_uid, "maxUid": cell.max_uid,
            "counts": cell_counts
        })
    };
    Ok(Json(json!({
        "epoch": stats.epoch,
        "total": counts(&stats.total.unwrap_or_default()),
        "servers": stats.servers.iter().map(server).collect::<Vec<_>>(),
        "cells": stats.cells.iter().map(cell).collect::<Vec<_>>(),
    })))
}

/// `/v1/topology`.
pub(super) async fn topology(State(shared): State<Shared>, RawQuery(query): RawQuery) -> Result<Json<Shown>, Refused> {
    Params::of(query.as_deref(), TOPOLOGY, &[])?;
    let topology = shared.topology().borrow().clone();
    graph_of(&shared.clerk.map(), None)?;
    let epoch = |epoch: &Epoch| {
        let in_range = number_range(epoch.in_range).map(|range| range.to_string());
        json!({"epoch": epoch.epoch, "urls": epoch.urls, "inRange": in_range, "rows": epoch.rows})
    };
    let server = |server: &Server| json!({"name": server.name, "address": server.address});
    let cell = |cell: &Cell| {
        let name = |index: &u32| topology.servers.get(usize::try_from(*index).ok()?).map(|server| server.name.as_str());
        let servers: Vec<_> = cell.servers.iter().filter_map(name).collect();
        json!({"partition": cell.partition, "firstUid": cell.first_uid, "urls": cell.urls, "servers": servers})
    };
    let row = |row: &Row| {
        let mut shown = json!({"row": row.row, "endUid": row.end_uid});
        if row.first_time <= row.last_time {
            shown["from"] = json!(format_time(row.first_time));
            shown["to"] = json!(format_time(row.last_time));
        }
        shown["cells"] = row.cells.iter().map(cell).collect();
        shown
    };
    let counts = *shared.cluster.counts().borrow();
    Ok(Json(json!({
        "epoch": topology.current,
        "newest": counts.newest,
        "unsettled": counts.unsettled,
        "epochs": topology.epochs.iter().map(epoch).collect::<Vec<_>>(),
        "servers": topology.servers.iter().map(server).collect::<Vec<_>>(),
        "rows": topology.rows.iter().map(row).collect::<Vec<_>>(),
    })))
}

/// `/v1/epochs`.
pub(super) async fn epochs(State(shared): State<Shared>, RawQuery(query): RawQuery) -> Result<Json<Shown>, Refused> {
    Params::of(query.as_deref(), EPOCHS, &[])?;
    let map = shared.clerk.map();
    graph_of(&map, None)?;
    let answered: Vec<u64> = map.epochs.keys().copied().collect();
    Ok(Json(json!({"epoch": map.current, "epochs": answered})))
}
