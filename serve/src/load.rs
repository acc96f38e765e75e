//! Layers to cells: reads the layers of a partition as streams and writes its image.
//!
//! Memory: the records of one side of one cell, or their sample where they take more than 256 MiB; the image of the cell; and one
//! row group of the layers. Passes over the layers of a partition: URLs twice, out-links once, in-links twice; where records are
//! not held, once more. Encodings of links other than strata read each once,
//! and have all links of one direction in memory; one that goes by URLs has their keys in memory, for a pass more.

use std::path::PathBuf;

use webstrata_layers::manifest::{PartitionEntry, RowEntry};
use webstrata_layers::{Layer, Store, key, scan};
use xxhash_rust::xxh3::Xxh3;

use crate::codec::CodecTag;
use crate::error::Error;
use crate::image::{self, Label};
use crate::store::{self, Given};
use crate::url_store;

/// How cells are made.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How links are coded.
    pub codec: CodecTag,
    /// How URLs are coded.
    pub urls: url_store::Options,
}

/// A cell that was written.
#[derive(Clone, Debug)]
pub struct Written {
    /// Its image.
    pub path: PathBuf,
    /// Number of URLs.
    pub urls: u64,
    /// Bytes of URLs, forward and backward links.
    pub bytes: [u64; 3],
}

/// Writes the image of a partition.
///
/// # Errors
/// Layers that cannot be read, an image that cannot be written, a store that is not in a directory.
pub fn write_cell(
    store: &Store,
    row: &RowEntry,
    partition: &PartitionEntry,
    options: Options,
) -> Result<Written, Error> {
    let Some(directory) = store.location().directory() else {
        return Err(Error::NoDirectory { path: store.location().to_string().into() });
    };
    let (mut own_key, mut first) = (Vec::new(), partition.first_uid);
    let urls = url_store::encode(
        |visit| {
            for url in scan::urls(store, partition) {
                key(&url?, &mut own_key);
                visit(&own_key)?;
            }
            Ok::<_, Error>(())
        },
        options.urls,
    )?;
    if partition.urls == 0 {
        first = 0;
    }
    let size = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let rows = |layer: Layer| size(partition.file(layer).map_or(0, |file| file.rows));
    let nodes = size(partition.urls);
    let pages = || -> Box<dyn Iterator<Item = Result<_, Error>>> {
        Box::new(scan::pages(store, partition).map(|page| page.map_err(Error::from)))
    };
    let keys =
        options.codec.reads_keys().then(|| keys_of(store, partition).collect::<Result<Vec<_>, _>>()).transpose()?;
    let given = Given { tag: options.codec, first, nodes, count: rows(Layer::Ol), keys: keys.as_deref() };
    let forward = store::encode_forward(given, &pages)?;
    let in_links = || -> Box<dyn Iterator<Item = Result<_, Error>>> {
        Box::new(scan::in_links(store, partition).map(|record| record.map_err(Error::from)))
    };
    let backward = store::encode_backward(Given { count: rows(Layer::Il), ..given }, &in_links)?;
    let label = Label {
        row: row.row,
        partition: partition.partition,
        codec: options.codec,
        first,
        nodes: partition.urls,
        in_range: store.manifest().in_range,
        source: source_of(partition),
    };
    let path = image::path_of(directory, row.row, partition.partition);
    image::write(&path, &label, [&urls, &forward, &backward])?;
    Ok(Written { path, urls: partition.urls, bytes: [urls.len(), forward.len(), backward.len()].map(|len| len as u64) })
}

/// The keys of a partition's URLs.
pub(crate) fn keys_of<'a>(
    store: &'a Store,
    partition: &'a PartitionEntry,
) -> impl Iterator<Item = Result<Vec<u8>, Error>> + 'a {
    scan::urls(store, partition).map(|url| {
        let mut own = Vec::new();
        key(&url?, &mut own);
        Ok(own)
    })
}

/// A hash of the checksums of a partition's layers: an image of other layers is of no use.
pub(crate) fn source_of(partition: &PartitionEntry) -> u64 {
    let mut hash = Xxh3::new();
    partition.files.iter().for_each(|file| hash.update(file.checksum.as_bytes()));
    hash.digest()
}
