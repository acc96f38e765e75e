//! Streams of the records of a partition, in order of UIDs. Cells are built from these streams.
//!
//! Reads the layers of one partition side by side, a row group at a time. Checks each record ([`crate::Page::flaw`],
//! [`crate::InLinks::flaw`]). Verifies the checksums of the files when a stream begins. Memory: one row group (for a
//! store in S3, also the files). A stream ends after its first error.

use crate::error::{Damage, Error};
use crate::file::parquet::LayerFile;
use crate::file::schema::Layer;
use crate::file::uids::uids_of;
use crate::read::blocks::{Block, UrlBlock, View};
use crate::record::join;
use crate::record::page::{InLinks, Page};
use crate::record::uid::Uid;
use crate::store::Store;
use crate::store::manifest::PartitionEntry;

/// The pages of a partition.
///
/// # Errors
/// The stream yields errors: files that cannot be read, files with a wrong checksum, damaged records.
pub fn pages<'a>(store: &'a Store, partition: &'a PartitionEntry) -> impl Iterator<Item = Result<Page, Error>> + 'a {
    records(store, partition, [Layer::Ol, Layer::Ts, Layer::Bv], |view| view.page())
}

/// The in-links of the URLs of a partition.
///
/// # Errors
/// See [`pages`].
pub fn in_links<'a>(
    store: &'a Store,
    partition: &'a PartitionEntry,
) -> impl Iterator<Item = Result<InLinks, Error>> + 'a {
    let mut records = records(store, partition, [Layer::Il, Layer::Tr, Layer::Ibv], |view| view.in_links());
    let mut ahead = None;
    std::iter::from_fn(move || join::next_in_links(&mut ahead, || records.next().transpose()).transpose())
}

/// The UIDs of the records of a layer, rising, each once. Reads only the column of UIDs.
///
/// # Errors
/// See [`pages`].
pub fn uids(store: &Store, partition: &PartitionEntry, layer: Layer) -> Result<Vec<Uid>, Error> {
    let file = open(store, partition, layer)?;
    let mut all = Vec::new();
    for (group, rows) in file.groups.iter().enumerate() {
        let group_uids = uids_of(&file.read(group, 1)?, layer.has_repeated_uids())
            .map_err(|(row, damage)| file.damaged(rows.first_row + row, damage))?;
        all.extend_from_slice(&group_uids);
    }
    all.dedup();
    Ok(all)
}

/// The number of values of the records of a layer, at most: links, times, or bytes of changes. Reads the footer of the
/// file.
///
/// # Errors
/// See [`pages`].
pub fn values(store: &Store, partition: &PartitionEntry, layer: Layer) -> Result<u64, Error> {
    Ok(open(store, partition, layer)?.values())
}

/// The URLs of a partition.
///
/// # Errors
/// See [`pages`].
pub fn urls<'a>(store: &'a Store, partition: &'a PartitionEntry) -> impl Iterator<Item = Result<String, Error>> + 'a {
    let open = move || open(store, partition, Layer::Url);
    let groups = std::iter::once_with(open).flat_map(|file| match file {
        Err(error) => vec![Err(error)].into_iter(),
        Ok(file) => {
            let file = std::sync::Arc::new(file);
            let groups = (0..file.groups.len()).map(|group| Ok((std::sync::Arc::clone(&file), group)));
            groups.collect::<Vec<_>>().into_iter()
        }
    });
    until_error(groups.flat_map(|group| {
        let block = group.and_then(|(file, group)| UrlBlock::read(&file, group, false));
        let rows = block.as_ref().map_or(1, UrlBlock::len);
        let mut block = Some(block);
        let mut held = None;
        (0..rows as u64).map(move |row| {
            if let Some(block) = block.take() {
                held = Some(block?);
            }
            let url = held.as_ref().and_then(|block| block.url(block.first_uid() + row));
            Ok(url.unwrap_or_default().to_owned())
        })
    }))
}

fn open(store: &Store, partition: &PartitionEntry, layer: Layer) -> Result<LayerFile, Error> {
    let entry = partition.file(layer).ok_or_else(|| Error::Damaged {
        path: store.location().path(""),
        row: 0,
        damage: Damage::NotAligned,
    })?;
    store.verify(entry)?;
    LayerFile::open(store.location(), entry)
}

fn records<'a, T: 'a>(
    store: &'a Store,
    partition: &'a PartitionEntry,
    layers: [Layer; 3],
    make: impl Fn(View<'_>) -> Result<T, Damage> + 'a,
) -> impl Iterator<Item = Result<T, Error>> + 'a {
    let mut files: Option<[LayerFile; 3]> = None;
    let mut block: Option<Block> = None;
    let (mut group, mut row) = (0, 0);
    let mut next = move || -> Result<Option<T>, Error> {
        if files.is_none() {
            let [links, times, changes] = layers.map(|layer| open(store, partition, layer));
            files = Some([links?, times?, changes?]);
        }
        let Some([links, times, changes]) = &files else { return Ok(None) };
        loop {
            if let Some(held) = block.as_ref().filter(|held| row < held.len()) {
                let record = make(held.view(row));
                let record_row = links.groups[group - 1].first_row + row as u64;
                row += 1;
                return record.map(Some).map_err(|damage| links.damaged(record_row, damage));
            }
            if group == links.groups.len() {
                return Ok(None);
            }
            block = Some(Block::read([links, times, changes], group)?);
            (group, row) = (group + 1, 0);
        }
    };
    until_error(std::iter::from_fn(move || next().transpose()))
}

/// Ends after the first error.
fn until_error<T>(items: impl Iterator<Item = Result<T, Error>>) -> impl Iterator<Item = Result<T, Error>> {
    let mut failed = false;
    items.map_while(move |item| {
        let ended = failed;
        failed = item.is_err();
        (!ended).then_some(item)
    })
}
