//! Cells in memory: what a question about links is answered from.
//!
//! A [`Cell`] is one partition of one row: a URL store, a forward and a backward link store, in the bytes of a mapped image.
//! [`Cells`] are those of an epoch, and answer as the layers do. In-links come from the backward store's own ranges; an exact
//! answer asks only those sources that link in no range that lies wholly in the window. Threads share cells freely.

use std::path::PathBuf;
use std::sync::Arc;

use webstrata_layers::manifest::PartitionEntry;
use webstrata_layers::{
    CaptureTime, Error as LayersError, InLinks, Links, Page, Precision, RangeLength, Store, Window, key,
};

use crate::backward::Wanted;
use crate::error::{Damage, Error};
use crate::image::{self, Image, Label};
use crate::load::source_of;
use crate::store::{BackwardStore, ForwardStore, open_backward, open_forward};
use crate::url_store::UrlStore;

/// One partition of one row.
pub struct Cell {
    path: PathBuf,
    label: Label,
    urls: UrlStore,
    forward: Box<dyn ForwardStore>,
    backward: Box<dyn BackwardStore>,
}

impl Cell {
    /// Opens the image of a partition; `None` when there is none, or one of other layers.
    ///
    /// # Errors
    /// An image that cannot be read, is damaged, or has another version.
    fn open(directory: &std::path::Path, row: u32, partition: &PartitionEntry) -> Result<Option<Self>, Error> {
        let path = image::path_of(directory, row, partition.partition);
        if !path.exists() {
            return Ok(None);
        }
        let Image { label, urls, forward, backward } = Image::open(&path)?;
        let expected = (row, partition.partition, partition.urls, source_of(partition));
        if (label.row, label.partition, label.nodes, label.source) != expected {
            return Ok(None);
        }
        let damaged = |damage| Error::Damaged { path: path.clone(), damage };
        let nodes = usize::try_from(label.nodes).unwrap_or(usize::MAX);
        let urls = UrlStore::open(urls).map_err(damaged)?;
        let forward = open_forward(label.codec, forward, label.first, nodes).map_err(damaged)?;
        let backward = open_backward(label.codec, backward, label.first, nodes).map_err(damaged)?;
        Ok(Some(Self { path, label, urls, forward, backward }))
    }

    /// What it is a cell of.
    pub fn label(&self) -> &Label {
        &self.label
    }

    fn damaged(&self, damage: Damage) -> LayersError {
        LayersError::Elsewhere(Box::new(Error::Damaged { path: self.path.clone(), damage }))
    }
}

/// All cells of an epoch.
pub struct Cells {
    epoch: u64,
    in_range: RangeLength,
    urls: u64,
    /// In order of UIDs, each with URLs.
    cells: Vec<(Vec<u8>, Cell)>,
}

impl Cells {
    /// Opens the images of a store's epoch; `None` where not every partition has one of its layers.
    ///
    /// # Errors
    /// Images that cannot be read, are damaged, or have another version.
    pub fn open(store: &Store) -> Result<Option<Self>, Error> {
        let manifest = store.manifest();
        let Some(directory) = store.location().directory().filter(|_| manifest.rows.len() == 1) else {
            return Ok(None);
        };
        let mut cells = Vec::new();
        for row in &manifest.rows {
            for partition in row.partitions.iter().filter(|partition| partition.urls > 0) {
                let Some(cell) = Cell::open(directory, row.row, partition)? else { return Ok(None) };
                cells.push((partition.first_key_bytes().unwrap_or_default(), cell));
            }
        }
        Ok(Some(Self { epoch: manifest.epoch, in_range: manifest.in_range, urls: manifest.counts.urls, cells }))
    }

    /// The cells, in order of UIDs.
    pub fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter().map(|(_, cell)| cell)
    }

    /// The cell of a UID, and its place there.
    fn cell_of(&self, uid: u64) -> Result<(&Cell, usize), LayersError> {
        let at = self.cells.partition_point(|(_, cell)| cell.label.first + cell.label.nodes <= uid);
        let unknown = || LayersError::UnknownUid { uid, epoch: self.epoch, urls: self.urls };
        let (_, cell) = self.cells.get(at).ok_or_else(unknown)?;
        let node = uid.checked_sub(cell.label.first).and_then(|node| usize::try_from(node).ok());
        Ok((cell, node.ok_or_else(unknown)?))
    }

    /// Replaces the contents of `links` by the links of a page in the window: [`Links::out_links`] without its allocation.
    ///
    /// # Errors
    /// See [`Links::url`].
    pub fn out_links_into(&self, uid: u64, window: Window, links: &mut Vec<u64>) -> Result<(), LayersError> {
        let (cell, node) = self.cell_of(uid)?;
        cell.forward.window(node, window, links).map_err(|damage| cell.damaged(damage))
    }

    /// Replaces the contents of `sources` by what links to the URL in the window: [`Links::in_links`] without its
    /// allocation.
    ///
    /// # Errors
    /// See [`Links::url`].
    pub fn in_links_into(
        &self,
        uid: u64,
        window: Window,
        precision: Precision,
        sources: &mut Vec<u64>,
    ) -> Result<(), LayersError> {
        sources.clear();
        let (cell, node) = self.cell_of(uid)?;
        let length = self.in_range;
        let (from, to) = match window {
            Window::Seen { from, to } if from > to => return Ok(()),
            Window::Seen { from, to } => (from, to),
            Window::AsOf(time) => (i64::MIN, time),
        };
        let wanted = |ranges: &[i64]| {
            let first = ranges.partition_point(|&start| length.end(start) < from);
            let last = ranges.partition_point(|&start| start <= to).checked_sub(1)?;
            let inner = match (precision, window) {
                (Precision::Range, _) => Some((first, last)),
                // The latest capture may be one without the link, whatever came before.
                (Precision::Exact, Window::AsOf(_)) => None,
                (Precision::Exact, Window::Seen { .. }) => {
                    let whole = ranges.partition_point(|&start| start < from);
                    let end = ranges.partition_point(|&start| length.end(start) <= to).checked_sub(1);
                    end.map(|end| (whole, end))
                }
            };
            (first <= last).then_some(Wanted { ranges: (first, last), inner })
        };
        let mut unsure = Vec::new();
        let mut visit = |source: u64, sure: bool| {
            if !sure {
                unsure.push(sources.len());
            }
            sources.push(source);
        };
        cell.backward.sources(node, &wanted, &mut visit).map_err(|damage| cell.damaged(damage))?;
        if unsure.is_empty() {
            return Ok(());
        }
        let mut links = Vec::new();
        let (mut kept, mut next) = (0, unsure.into_iter().peekable());
        for at in 0..sources.len() {
            let source = sources[at];
            let holds = match next.next_if_eq(&at) {
                None => true,
                Some(_) => {
                    self.out_links_into(source, window, &mut links)?;
                    links.binary_search(&uid).is_ok()
                }
            };
            sources[kept] = source;
            kept += usize::from(holds);
        }
        sources.truncate(kept);
        Ok(())
    }
}

impl Links for Cells {
    fn epoch(&self) -> u64 {
        self.epoch
    }

    fn uid(&self, url: &str) -> Result<Option<u64>, LayersError> {
        let mut wanted = Vec::new();
        key(url, &mut wanted);
        let after = self.cells.partition_point(|(first, _)| *first <= wanted);
        let Some((_, cell)) = after.checked_sub(1).map(|at| &self.cells[at]) else { return Ok(None) };
        let node = cell.urls.find(&wanted).map_err(|damage| cell.damaged(damage))?;
        Ok(node.map(|node| cell.label.first + node))
    }

    fn url(&self, uid: u64) -> Result<String, LayersError> {
        let (cell, node) = self.cell_of(uid)?;
        let mut url = String::new();
        cell.urls.url(node as u64, &mut url).map_err(|damage| cell.damaged(damage))?;
        Ok(url)
    }

    fn page(&self, uid: u64) -> Result<Option<Arc<Page>>, LayersError> {
        let (cell, node) = self.cell_of(uid)?;
        Ok(cell.forward.page(node).map_err(|damage| cell.damaged(damage))?.map(Arc::new))
    }

    fn in_record(&self, uid: u64) -> Result<Option<Arc<InLinks>>, LayersError> {
        let (cell, node) = self.cell_of(uid)?;
        Ok(cell.backward.record(node).map_err(|damage| cell.damaged(damage))?.map(Arc::new))
    }

    fn in_range(&self) -> RangeLength {
        self.in_range
    }

    fn captures(&self, uid: u64) -> Result<Vec<CaptureTime>, LayersError> {
        let (cell, node) = self.cell_of(uid)?;
        let mut captures = Vec::new();
        cell.forward.captures(node, &mut captures).map_err(|damage| cell.damaged(damage))?;
        Ok(captures)
    }

    fn out_links(&self, uid: u64, window: Window) -> Result<Vec<u64>, LayersError> {
        let mut links = Vec::new();
        self.out_links_into(uid, window, &mut links)?;
        Ok(links)
    }

    fn has_link(&self, uid: u64, link: u64, window: Window) -> Result<bool, LayersError> {
        Ok(self.out_links(uid, window)?.binary_search(&link).is_ok())
    }

    fn in_links(&self, uid: u64, window: Window, precision: Precision) -> Result<Vec<u64>, LayersError> {
        let mut sources = Vec::new();
        self.in_links_into(uid, window, precision, &mut sources)?;
        Ok(sources)
    }
}
