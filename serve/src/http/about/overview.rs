//! `/v1/overview`: the content of the store by year and by host, and its latest epochs.
//!
//! The numbers by year come from the note that `webstrata overview` writes ([`Overview`]); the server does not compute
//! them. The answer changes within an epoch when that note is written. Cost: a small file, and a manifest for each
//! epoch listed.

use axum::Json;
use axum::extract::{RawQuery, State};
use tonic::Status;
use webstrata_layers::answers::contents::{CommittedEpoch, Contents, EpochCounts};
use webstrata_layers::log::{Committed, log};
use webstrata_layers::overview::Overview;
use webstrata_layers::{Error, Store};

use crate::cluster::blocking;
use crate::http::describe::{Call, call};
use crate::http::question::parameters::EPOCH;
use crate::http::question::params::Params;
use crate::http::{Refused, pinned};
use crate::protocol::status::status_of;
use crate::shared::Shared;

pub(in crate::http) const OVERVIEW: Call =
    call::<Contents>("overview", "What the store holds by year and by host, and its latest epochs.", &[EPOCH]);
/// The number of epochs listed, from the requested one back.
const EPOCHS: usize = 12;

/// `/v1/overview`.
pub(in crate::http) async fn overview(
    State(shared): State<Shared>,
    RawQuery(query): RawQuery,
) -> Result<Json<Contents>, Refused> {
    let params = Params::of(query.as_deref(), OVERVIEW.parameters)?;
    let epoch = pinned(&shared, params.epoch()?).await?.epoch();
    let retired = || Status::unavailable(format!("epoch {epoch} is being retired; retry"));
    let store = shared.cluster.epoch_store(epoch).ok_or_else(retired)?;
    let shown = blocking(move || -> Result<Contents, Error> {
        let counts = EpochCounts::of(store.manifest());
        Ok(Contents { epoch, counts, epochs: epochs(&store)?, overview: Overview::read(&store)? })
    });
    Ok(Json(shown.await?.map_err(|error| status_of(&error))?))
}

/// The latest epochs up to the epoch of a store, newest first.
fn epochs(store: &Store) -> Result<Vec<CommittedEpoch>, Error> {
    let newest = store.manifest().epoch;
    let epochs = log(store.location())?.filter(|committed| !matches!(committed, Ok(later) if later.id.epoch > newest));
    let shown = |committed: Committed| CommittedEpoch::of(&committed.manifest, committed.time);
    epochs.take(EPOCHS).map(|committed| committed.map(shown)).collect()
}
