//! Verifies the cells beside the layers of a store: the part of `webstrata check` that layers cannot do.
//!
//! Reads each image of an epoch's rows completely, with its checksums, its parts, and every URL and record in both
//! directions. Compares all of these with the layers ([`crate::cells::cell`]). Missing cells are not problems, and
//! images of other rows are ignored. Memory: one record, and one row group of the layers. Passes over the layers of a
//! partition that has a cell: one, and another over in-links if the cell has no times of them.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;

use webstrata_layers::read::scan;
use webstrata_layers::{PartitionEntry, RowEntry, Store, Uid};

use crate::cells::cell::{Cell, Content};
use crate::error::Error;
use crate::image::label::{label_of, partitions, path_of};
use crate::image::{Image, Residence};
use crate::links::encoding::Encodings;

/// The result of a check of cells.
#[derive(Debug, Default)]
pub struct CellsReport {
    /// The number of cells that exist.
    pub cells: u64,
    /// The number of partitions that could have a cell.
    pub partitions: u64,
    /// The size of the cells in bytes.
    pub bytes: u64,
    /// The problems, at most one a cell.
    pub problems: Vec<Error>,
    /// The partitions that were checked, by row and partition.
    checked: BTreeSet<(u32, u32)>,
}

/// Checks the cells of a store's epoch that are not in the report yet.
pub fn check(store: &Store, encodings: Encodings, report: &mut CellsReport) {
    for (row, partition) in partitions(store) {
        if !report.checked.insert((row.row, partition.partition)) {
            continue;
        }
        report.partitions += 1;
        let Some(directory) = store.location().directory() else { continue };
        let path = path_of(directory, row.row, partition.partition);
        match path.metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(source) => report.problems.push(Error::Io { path, source }),
            Ok(metadata) => {
                report.cells += 1;
                report.bytes += metadata.len();
                report.problems.extend(check_cell(store, row, partition, &path, encodings).err());
            }
        }
    }
}

/// Calls `visit` with each URL of each cell beside an epoch's rows, and with the path of the cell. Does not compare
/// with the layers.
///
/// # Errors
/// A cell that cannot be read, or is damaged.
pub fn for_each_url(store: &Store, encodings: Encodings, mut visit: impl FnMut(&Path, &str)) -> Result<(), Error> {
    let Some(directory) = store.location().directory() else { return Ok(()) };
    for (row, partition) in partitions(store) {
        let path = path_of(directory, row.row, partition.partition);
        if !path.try_exists().map_err(|source| Error::Io { path: path.clone(), source })? {
            continue;
        }
        let image = Image::open(&path, Residence::Mapped)?;
        let (label, encoding) = (image.label, encodings.of(&path, image.label.encoding)?);
        let cell = Cell::of(path.clone(), image, encoding)?;
        let mut url = String::new();
        for uid in Uid::each(label.first_uid..label.first_uid + label.urls) {
            cell.url(uid, &mut url)?;
            visit(&path, &url);
        }
    }
    Ok(())
}

/// Checks one cell.
fn check_cell(
    store: &Store,
    row: &RowEntry,
    partition: &PartitionEntry,
    path: &Path,
    encodings: Encodings,
) -> Result<(), Error> {
    let image = Image::open(path, Residence::Mapped)?;
    if image.label != label_of(store, row, partition, image.label.encoding) {
        return Err(Error::OtherLayers { path: path.to_owned() });
    }
    let encoding = encodings.of(path, image.label.encoding)?;
    let cell = Cell::of(path.to_owned(), image, encoding)?;
    Content::of_layers(store, partition)?.compare(&cell, scan::in_links(store, partition))?;
    cell.check_keys()
}
