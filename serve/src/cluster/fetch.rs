//! Gets a cell: from an image on local disk, else from a server that has the image, else from the layers of the store.
//!
//! Memory: one chunk of the image while it is fetched; from layers, the memory of [`webstrata_cells::disk::load`].

use std::sync::Arc;
use std::time::Duration;

use tonic::{Request, Status};
use webstrata_layers::Store;

use super::{Cluster, blocking};
use crate::protocol::proto::cells_client::CellsClient;
use crate::protocol::proto::{CellName, FetchRequest};
use webstrata_cells::Cell;
use webstrata_cells::Error;
use webstrata_cells::image::Residence;
use webstrata_cells::image::label::{partitions, source_of};

/// A fetch fails if the server sends nothing for this long.
const SILENCE: Duration = Duration::from_secs(10);

/// A cell, and where it came from.
pub(super) struct Brought {
    pub(super) cell: Cell,
    pub(super) fetched_bytes: u64,
    pub(super) is_made: bool,
}

fn failed(error: Error) -> Status {
    crate::protocol::status::status_of(&webstrata_layers::Error::Elsewhere(Box::new(error)))
}

/// Gets a cell of a store; `None` if no server has the image and this server must not make it (`may_make`).
pub(super) async fn bring(
    cluster: Arc<Cluster>,
    store: Arc<Store>,
    name: CellName,
    residence: Residence,
    servers: Vec<String>,
    may_make: bool,
) -> Result<Option<Brought>, Status> {
    let find = |cluster: Arc<Cluster>, store: Arc<Store>| {
        blocking(move || {
            let mut all = partitions(&store);
            let found = all.find(|(row, partition)| row.row == name.row && partition.partition == name.partition);
            let (row, partition) = found.ok_or_else(|| crate::protocol::status::not_here(name.row, name.partition))?;
            let cell = cluster.shelf.find(&store, row, partition, residence).map_err(failed)?;
            Ok::<_, Status>((cell, source_of(partition)))
        })
    };
    let (cell, source) = find(cluster.clone(), store.clone()).await??;
    if let Some(cell) = cell {
        return Ok(Some(Brought { cell, fetched_bytes: 0, is_made: false }));
    }
    let (mut fetched_bytes, mut refused) = (0, None);
    for server in servers {
        match fetch(&cluster, &server, name, source).await {
            Ok(bytes) => {
                fetched_bytes = bytes;
                break;
            }
            Err(status) => {
                tracing::warn!(server, row = name.row, partition = name.partition, %status, "cannot fetch the image");
                refused = Some(status);
            }
        }
    }
    let is_made = fetched_bytes == 0;
    if is_made {
        if !may_make {
            return refused.map_or(Ok(None), Err);
        }
        let (cluster, store) = (cluster.clone(), store.clone());
        let made = blocking(move || {
            let mut all = partitions(&store);
            let found = all.find(|(row, partition)| row.row == name.row && partition.partition == name.partition);
            found.map_or(Ok(()), |(row, partition)| cluster.shelf.write(&store, row, partition, cluster.options.cells))
        });
        made.await?.map_err(failed)?;
    }
    let (cell, _) = find(cluster, store).await??;
    // The image was verified before the shelf took it.
    let damaged = || Status::data_loss("the image was verified and is now damaged; check the disk of --data");
    Ok(Some(Brought { cell: cell.ok_or_else(damaged)?, fetched_bytes, is_made }))
}

/// Receives the image of a cell from a server. Returns the number of bytes.
async fn fetch(cluster: &Arc<Cluster>, server: &str, name: CellName, source: u64) -> Result<u64, Status> {
    let channel = cluster.dialer.dial(server)?;
    let client = CellsClient::with_interceptor(channel, cluster.dialer.caller());
    let request = Request::new(FetchRequest { cell: Some(name), source });
    let mut client = client.max_decoding_message_size(usize::MAX);
    let silent = |_| Status::deadline_exceeded("the server stopped sending");
    let mut pieces = tokio::time::timeout(SILENCE, client.fetch(request)).await.map_err(silent)??.into_inner();
    let holder = cluster.clone();
    let mut receiver = blocking(move || holder.shelf.receive(name.row, name.partition)).await?.map_err(failed)?;
    let mut bytes = 0;
    while let Some(piece) = tokio::time::timeout(SILENCE, pieces.message()).await.map_err(silent)?? {
        bytes += piece.bytes.len() as u64;
        receiver = blocking(move || {
            receiver.push(&piece.bytes)?;
            Ok::<_, Error>(receiver)
        })
        .await?
        .map_err(failed)?;
    }
    blocking(move || receiver.finish(source)).await?.map_err(failed)?;
    Ok(bytes)
}
