//! The origin of an image: the row, the partition, the layers that it was made from, and its path.

use std::path::{Path, PathBuf};

use webstrata_layers::{Layer, PartitionEntry, RangeLength, RowEntry, Store, Uid};
use xxhash_rust::xxh3::Xxh3;

use crate::error::Error;
use crate::links::encoding::Tag;

/// The row, the partition and the layers that an image was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// The row.
    pub row: u32,
    /// The partition.
    pub partition: u32,
    /// The encoding of links.
    pub encoding: Tag,
    /// The UID of the first URL.
    pub first_uid: Uid,
    /// The number of URLs.
    pub urls: u64,
    /// The first UID with records here, if the image has any records.
    pub first_record: Uid,
    /// The UID after the last UID with records here.
    pub end_record: Uid,
    /// The length of the ranges of in-links.
    pub in_range: RangeLength,
    /// A hash of the checksums of the layers.
    pub source: u64,
}

/// The label of a partition's cell.
pub fn label_of(store: &Store, row: &RowEntry, partition: &PartitionEntry, encoding: Tag) -> Label {
    let index = row.partitions.iter().position(|other| other.partition == partition.partition);
    let interval = row.records(index.unwrap_or(usize::MAX));
    Label {
        row: row.row,
        partition: partition.partition,
        encoding,
        first_uid: partition.first_uid,
        urls: partition.urls,
        first_record: interval.start,
        end_record: interval.end,
        in_range: store.manifest().in_range,
        source: source_of(partition),
    }
}

/// A hash of the checksums of a partition's layers. An image made from other layers has another hash and is not used.
pub fn source_of(partition: &PartitionEntry) -> u64 {
    let mut hash = Xxh3::new();
    partition.files.iter().for_each(|file| hash.update(file.checksum.as_bytes()));
    hash.digest()
}

/// The partitions that have a cell, each with its row: all partitions that hold anything.
pub fn partitions(store: &Store) -> impl Iterator<Item = (&RowEntry, &PartitionEntry)> {
    store.manifest().rows.iter().flat_map(|row| with_cells(row).map(move |(_, partition)| (row, partition)))
}

/// The partitions of a row that have a cell, each with its index among all partitions.
pub fn with_cells(row: &RowEntry) -> impl Iterator<Item = (usize, &PartitionEntry)> {
    let holds = |partition: &PartitionEntry| {
        [Layer::Url, Layer::Ol, Layer::Il].iter().any(|&layer| records(partition, layer) > 0)
    };
    row.partitions.iter().enumerate().filter(move |(_, partition)| holds(partition))
}

/// The number of records of a layer.
pub(crate) fn records(partition: &PartitionEntry, layer: Layer) -> usize {
    usize::try_from(partition.file(layer).map_or(0, |file| file.rows)).unwrap_or(usize::MAX)
}

/// The directory of a store. Its images are there, beside its layers.
///
/// # Errors
/// A store that is not in a directory.
pub fn directory(store: &Store) -> Result<&Path, Error> {
    let path = || store.location().to_string().into();
    store.location().directory().ok_or_else(|| Error::NoDirectory { path: path() })
}

/// The directory of all images, in the directory of a store or a server.
pub const CELLS: &str = "cells";

/// The row and the partition in the path of an image.
pub fn row_and_partition(path: &Path) -> Option<(u32, u32)> {
    let row = path.parent()?.file_name()?.to_str()?;
    let partition = path.file_name()?.to_str()?.strip_prefix("part-")?.strip_suffix(".cell")?;
    row.parse().ok().zip(partition.parse().ok())
}

/// The path of the image of a partition, in the directory of a store or a server.
pub fn path_of(store: &Path, row: u32, partition: u32) -> PathBuf {
    store.join(CELLS).join(format!("{row:06}")).join(format!("part-{partition:05}.cell"))
}

/// The number for a length of ranges in images and messages: 0 month, 1 year, 2 + days.
pub fn range_number(range: RangeLength) -> u64 {
    match range {
        RangeLength::Month => 0,
        RangeLength::Year => 1,
        RangeLength::Days(days) => 2 + u64::from(days),
    }
}

/// The length of ranges for a number from [`range_number`]; `None` for any other number.
pub fn number_range(number: u64) -> Option<RangeLength> {
    match number {
        0 => Some(RangeLength::Month),
        1 => Some(RangeLength::Year),
        days => u32::try_from(days - 2).ok().map(RangeLength::Days),
    }
}
