//! The memory that writing a cell takes, from the sizes of its layers. A job writes as many cells at once as fit.
//!
//! The estimate is a bound. It adds what [`super::load`] and the encoders hold at the same time. Strata hold the
//! records of one side, up to a bound of their own, and copies of the longest list. The longest list is not known
//! before the records are read. It has no more links than the side has beyond one link for each record, and a URL has
//! no more sources than the row has pages.

use webstrata_layers::read::scan;
use webstrata_layers::{Layer, PartitionEntry, RowEntry, Store};

use crate::error::Error;
use crate::image::label::records;
use crate::links::backward::SETS_BYTES_MAX;
use crate::links::encoding::{Encoding, Encodings};
use crate::links::strata::HELD_BYTES_MAX;

/// The bytes for any cell: a row group of the layers, the training of the URL store, and the records that are weighed
/// together.
const CELL_BYTES: u64 = 80 << 20;
/// The bytes for a record: its lists, with what the allocator adds, its index, and its list of times in a table.
const RECORD_BYTES: u64 = 400;
/// The bytes for each time or change of a record: in the record, in the table of times, and as phases.
const TIME_BYTES: u64 = 24;
/// The bytes of a link.
const LINK_BYTES: u64 = 8;
/// The bytes for a link of the longest list, beyond the bytes of any link: the list as it is read, and as it is
/// compared with a neighbour.
const LONGEST_BYTES: u64 = 32;
/// The lists of an encoding that holds all links: as read, as lists, and as bytes.
const COPIES: u64 = 3;

/// The bytes of memory that [`super::load::write_cell`] takes for a partition, at most.
///
/// # Errors
/// Layers that cannot be read.
pub fn memory_needed(
    store: &Store,
    row: &RowEntry,
    partition: &PartitionEntry,
    encoding: &dyn Encoding,
) -> Result<u64, Error> {
    let streams = Encodings::STRATA.0.iter().any(|strata| strata.tag() == encoding.tag());
    let side = |[links, times, changes]: [Layer; 3], longest: u64| {
        let count = records(partition, links) as u64;
        let [links, times, changes] = [links, times, changes].map(|layer| scan::values(store, partition, layer));
        let (links, marks) = (links?, times? + changes?);
        let all = count * RECORD_BYTES + links * LINK_BYTES + marks * TIME_BYTES;
        // The allocator adds half.
        let held = if streams { all.min(HELD_BYTES_MAX as u64 / 2 * 3) } else { all * COPIES };
        let longest = longest.min((links + 1).saturating_sub(count));
        Ok::<_, Error>(held + longest * LONGEST_BYTES)
    };
    let out = side([Layer::Ol, Layer::Ts, Layer::Bv], row.counts.urls)?;
    let into = side([Layer::Il, Layer::Tr, Layer::Ibv], row.counts.pages)?;
    // In-links have the sets of ranges of all URLs with a record, and again while they grow.
    let count = [Layer::Ol, Layer::Il].map(|layer| records(partition, layer) as u64).iter().sum::<u64>();
    let words = store.manifest().counts.periods(store.manifest().in_range).len().div_ceil(64) as u64;
    let sets = 2 * (8 * count * words).min(SETS_BYTES_MAX as u64);
    // The parts of the image, and the parts that they are put together from.
    let image: u64 = 2 * partition.files.iter().map(|file| file.bytes).sum::<u64>();
    Ok(CELL_BYTES + image + out.max(into + sets))
}
