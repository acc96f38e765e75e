//! The content of a cell as a few digests, to compare the bytes of a cell with the layers that it was made from.
//!
//! The digests of the layers are computed while a cell is made, or when the layers are read again. The digests of the
//! cell come from decoding every URL and every record. Equal digests mean equal URLs and records in the same order.
//! In-links without times are compared record by record, with the layers read once more. Memory: one record. Cost: a
//! decode of the whole cell.

use webstrata_layers::read::scan;
use webstrata_layers::{Change, Error as LayersError, InLinks, Page, PartitionEntry, StatusChange, Store, Uid};
use xxhash_rust::xxh3::Xxh3;

use super::Cell;
use crate::error::Error;
use crate::image::Counts;
use crate::links::encoding::InLinkStore;
use crate::links::scratch::StoreScratch;
use crate::links::thin::Thin;
use crate::numbers::Node;

/// The content of a cell, or of the layers that a cell was made from.
#[derive(Clone, Default)]
pub(crate) struct Content {
    urls: Xxh3,
    pages: Xxh3,
    in_links: Xxh3,
    counts: Counts,
}

impl Content {
    /// Adds the next URL.
    pub(crate) fn add_url(&mut self, url: &str) {
        self.urls.update(&(url.len() as u64).to_le_bytes());
        self.urls.update(url.as_bytes());
    }

    /// Adds the next page. Its links are UIDs.
    pub(crate) fn add_page(&mut self, page: &Page) {
        self.counts.add_page(page);
        let Page { uid, timestamps, blank, links, changes, statuses } = page;
        add_record(&mut self.pages, *uid, timestamps, links, changes);
        add(&mut self.pages, blank, |at| at.to_le_bytes());
        add(&mut self.pages, statuses, |StatusChange { capture, status }| {
            (u64::from(capture) << 16 | u64::from(status.number())).to_le_bytes()
        });
    }

    /// Adds the in-links of the next URL. Sources are UIDs.
    pub(crate) fn add_in_links(&mut self, record: &InLinks) {
        self.counts.add_in_links(record);
        let InLinks { uid, ranges, sources, changes } = record;
        add_record(&mut self.in_links, *uid, ranges, sources, changes);
    }

    /// The counts of the content.
    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The content of the layers of a partition.
    ///
    /// # Errors
    /// Layers that cannot be read.
    pub(crate) fn of_layers(store: &Store, partition: &PartitionEntry) -> Result<Self, Error> {
        let mut content = Self::default();
        for url in scan::urls(store, partition) {
            content.add_url(&url?);
        }
        for page in scan::pages(store, partition) {
            content.add_page(&page?);
        }
        for record in scan::in_links(store, partition) {
            content.add_in_links(&record?);
        }
        Ok(content)
    }

    /// The content of a cell.
    ///
    /// # Errors
    /// URLs and records that do not decode.
    pub(crate) fn of(cell: &Cell) -> Result<Self, Error> {
        let damaged = |damage| Error::Damaged { path: cell.path.clone(), damage };
        let (mut content, mut url) = (Self::default(), String::new());
        for at in 0..cell.urls.len() {
            cell.urls.url(at, &mut url).map_err(damaged)?;
            content.add_url(&url);
        }
        for node in (0..cell.numbers.len()).map(Node) {
            cell.page_of(node).map_err(damaged)?.iter().for_each(|page| content.add_page(page));
        }
        for node in (0..cell.numbers.len()).map(Node) {
            cell.in_record_of(node).map_err(damaged)?.iter().for_each(|record| content.add_in_links(record));
        }
        Ok(content)
    }

    /// Compares a cell with this content of layers, whose in-links are `in_links`.
    ///
    /// # Errors
    /// The part of the cell that differs, or that does not decode; layers that cannot be read.
    pub(crate) fn compare(
        &self,
        cell: &Cell,
        in_links: impl Iterator<Item = Result<InLinks, LayersError>>,
    ) -> Result<(), Error> {
        let mut decoded = Self::of(cell)?;
        let has_in_links = match &cell.backward {
            InLinkStore::Timed(_) => self.in_links.digest() == decoded.in_links.digest(),
            InLinkStore::Thin(thin) => {
                // What the cell does not say, its head has from the layers.
                decoded.counts.max_in_degree = self.counts.max_in_degree;
                is_thin_of(thin, cell, in_links)?
            }
        };
        let comparisons = [
            ("URLs", self.urls.digest() == decoded.urls.digest()),
            ("out-links", self.pages.digest() == decoded.pages.digest()),
            ("in-links", has_in_links),
            ("counts", self.counts == decoded.counts && self.counts == cell.counts),
        ];
        let differs = comparisons.into_iter().find(|(_, same)| !same);
        differs.map_or(Ok(()), |(part, _)| Err(Error::Differs { path: cell.path.clone(), part }))
    }
}

/// Whether the thin in-links of a cell are those of these records, no more and no fewer.
fn is_thin_of(
    thin: &Thin,
    cell: &Cell,
    in_links: impl Iterator<Item = Result<InLinks, LayersError>>,
) -> Result<bool, Error> {
    let damaged = |damage| Error::Damaged { path: cell.path.clone(), damage };
    let (mut scratch, mut count) = (StoreScratch::default(), 0);
    for record in in_links {
        let record = record?;
        let node = cell.numbers.node(record.uid);
        let numbered = record.try_renumbered(|uid| cell.numbers.number(uid).ok_or(()));
        let (Some(node), Ok(numbered)) = (node, numbered) else { return Ok(false) };
        if !thin.has(node, &numbered, &mut scratch).map_err(damaged)? {
            return Ok(false);
        }
        count += 1;
    }
    Ok(count == thin.records())
}

impl Cell {
    /// Checks that each URL is found by its key.
    ///
    /// # Errors
    /// URLs that do not decode, or that are not found.
    pub(crate) fn check_keys(&self) -> Result<(), Error> {
        let damaged = |damage| Error::Damaged { path: self.path.clone(), damage };
        let mut key = Vec::new();
        for at in 0..self.urls.len() {
            self.urls.key(at, &mut key).map_err(damaged)?;
            if self.urls.find(&key).map_err(damaged)? != Some(at) {
                return Err(Error::Differs { path: self.path.clone(), part: "URLs" });
            }
        }
        Ok(())
    }
}

/// Adds a record to a hash, each list after its length.
fn add_record(hash: &mut Xxh3, uid: Uid, times: &[i64], links: &[Uid], changes: &[Change]) {
    let lengths = [times.len(), links.len(), changes.len()].map(|length| length as u64);
    add(hash, &[lengths[0], lengths[1], lengths[2], uid.0], u64::to_le_bytes);
    add(hash, times, i64::to_le_bytes);
    add(hash, links, |link| link.0.to_le_bytes());
    add(hash, changes, |Change { link, capture }| (u64::from(link) << 32 | u64::from(capture)).to_le_bytes());
}

/// Adds values to a hash as bytes, a few values at a time: a list may be as long as the memory is large.
fn add<T: Copy, const BYTES: usize>(hash: &mut Xxh3, values: &[T], bytes_of: impl Fn(T) -> [u8; BYTES]) {
    let mut bytes = [[0; BYTES]; 64];
    for values in values.chunks(bytes.len()) {
        bytes.iter_mut().zip(values).for_each(|(bytes, &value)| *bytes = bytes_of(value));
        hash.update(bytes[..values.len()].as_flattened());
    }
}
