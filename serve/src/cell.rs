//! Cells in memory: what a question about links is answered from.
//!
//! A [`Cell`] is one partition of one row: a URL store, a forward and a backward link store, in the bytes of a mapped image.
//! [`Cells`] are those of an epoch, and answer as the layers do. In-links come from the backward store's own ranges; an exact
//! answer asks only those sources that link in no range that lies wholly in the window. Threads share cells freely; what an
//! answer is made in is kept for each thread, so that strata allocate the answer alone.

use std::cell::RefCell;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use webstrata_layers::manifest::PartitionEntry;
use webstrata_layers::{
    CaptureTime, Direction, Error as LayersError, InLinks, Lease, Lifespan, Links, Page, Precision, RangeLength, Store,
    Window, key,
};

use crate::backward::{Found, Wanted};
use crate::error::{Damage, Error};
use crate::image::{self, Image, Label, Residence};
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
    fn open(
        directory: &Path,
        row: u32,
        partition: &PartitionEntry,
        residence: Residence,
    ) -> Result<Option<Self>, Error> {
        let path = image::path_of(directory, row, partition.partition);
        if !path.exists() {
            return Ok(None);
        }
        let image = Image::open(&path, residence)?;
        let label = image.label;
        let expected = (row, partition.partition, partition.urls, source_of(partition));
        if (label.row, label.partition, label.nodes, label.source) != expected {
            return Ok(None);
        }
        Self::of(path, image).map(Some)
    }

    fn of(path: PathBuf, image: Image) -> Result<Self, Error> {
        let Image { label, urls, forward, backward } = image;
        let damaged = |damage| Error::Damaged { path: path.clone(), damage };
        let nodes = usize::try_from(label.nodes).unwrap_or(usize::MAX);
        let urls = UrlStore::open(urls).map_err(damaged)?;
        if urls.len() != label.nodes {
            return Err(damaged(Damage::Outside { part: "URLs", value: urls.len(), bound: label.nodes }));
        }
        let forward = open_forward(label.codec, forward, label.first, nodes).map_err(damaged)?;
        let backward = open_backward(label.codec, backward, label.first, nodes).map_err(damaged)?;
        Ok(Self { path, label, urls, forward, backward })
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
    /// Keeps the epoch, and so the images, from being removed.
    _lease: Option<Lease>,
}

impl Cells {
    /// Opens the images of a store's epoch; `None` where not every partition has one of its layers.
    ///
    /// # Errors
    /// Images that cannot be read, are damaged, or have another version.
    pub fn open(store: &Store, residence: Residence) -> Result<Option<Self>, Error> {
        let manifest = store.manifest();
        let Some(directory) = store.location().directory().filter(|_| manifest.rows.len() == 1) else {
            return Ok(None);
        };
        let mut cells = Vec::new();
        for row in &manifest.rows {
            for partition in row.partitions.iter().filter(|partition| partition.urls > 0) {
                let Some(cell) = Cell::open(directory, row.row, partition, residence)? else { return Ok(None) };
                cells.push((partition.first_key_bytes().unwrap_or_default(), cell));
            }
        }
        let (epoch, in_range, urls) = (manifest.epoch, manifest.in_range, manifest.counts.urls);
        Ok(Some(Self { epoch, in_range, urls, cells, _lease: store.lease().cloned() }))
    }

    /// One cell alone, from an image in memory: what is fuzzed.
    pub(crate) fn of_image(bytes: Bytes) -> Result<Self, Error> {
        let image = Image::read(Path::new("an image"), bytes)?;
        let (in_range, urls) = (image.label.in_range, image.label.first + image.label.nodes);
        let cell = Cell::of(PathBuf::new(), image)?;
        Ok(Self { epoch: 0, in_range, urls, cells: vec![(Vec::new(), cell)], _lease: None })
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

    /// Asks the forward store of a UID's cell.
    fn forward<T>(
        &self,
        uid: u64,
        ask: impl FnOnce(&dyn ForwardStore, usize) -> Result<T, Damage>,
    ) -> Result<T, LayersError> {
        let (cell, node) = self.cell_of(uid)?;
        ask(&*cell.forward, node).map_err(|damage| cell.damaged(damage))
    }

    /// Replaces the contents of `sources` by what links to the URL in the window.
    fn sources_into(
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
        // The first and the last range that is asked for, each from its first second to its last.
        let edges = std::cell::Cell::new([(0, 0); 2]);
        let wanted = |ranges: &[i64]| {
            let from_start = length.start(from);
            let first = ranges.partition_point(|&start| start < from_start);
            let last = ranges.partition_point(|&start| start <= to).checked_sub(1)?;
            edges.set([*ranges.get(first)?, ranges[last]].map(|start| (start, length.end(start))));
            let inner = match (precision, window) {
                (Precision::Range, _) => Some((first, last)),
                // The latest capture may be one without the link, whatever came before.
                (Precision::Exact, Window::AsOf(_)) => None,
                (Precision::Exact, Window::Seen { .. }) => {
                    let [(start, _), (_, end)] = edges.get();
                    last.checked_sub(usize::from(end > to)).map(|last| (first + usize::from(start < from), last))
                }
            };
            (first <= last).then_some(Wanted { ranges: (first, last), inner })
        };
        with_scratch(|Scratch { unsure, links, captures, .. }| {
            unsure.clear();
            let mut visit = |source: u64, found: Found| {
                if let Found::Edges(edges) = found {
                    unsure.push((sources.len(), edges));
                }
                sources.push(source);
            };
            cell.backward.sources(node, &wanted, &mut visit).map_err(|damage| cell.damaged(damage))?;
            let Some(&(first, _)) = unsure.first() else { return Ok(()) };
            let (mut kept, mut next) = (first, unsure.iter().peekable());
            for at in first..sources.len() {
                let source = sources[at];
                let mut holds = true;
                if let Some((_, own)) = next.next_if(|(unsure, _)| *unsure == at) {
                    let mut by_captures = None;
                    if let Window::Seen { from, to } = window {
                        self.forward(source, |store, node| store.captures(node, captures))?;
                        let ranges = edges.get().into_iter().zip(own).filter_map(|(edge, own)| own.then_some(edge));
                        by_captures = linked(ranges, (from, to), captures);
                    }
                    holds = match by_captures {
                        Some(holds) => holds,
                        None => {
                            self.forward(source, |store, node| store.window(node, window, links))?;
                            links.binary_search(&uid).is_ok()
                        }
                    };
                }
                sources[kept] = source;
                kept += usize::from(holds);
            }
            sources.truncate(kept);
            Ok(())
        })
    }
}

/// Whether a page that links to something in each of the ranges does in the window, as far as its captures tell: it does where
/// all captures of a range lie in the window, it does not where none does. `None`: they do not tell.
fn linked(ranges: impl Iterator<Item = (i64, i64)>, (from, to): (i64, i64), captures: &[CaptureTime]) -> Option<bool> {
    let mut told = Some(false);
    for (start, end) in ranges {
        let (mut inside, mut outside) = (false, false);
        let first = captures.partition_point(|capture| capture.time < start);
        for capture in captures[first..].iter().take_while(|capture| capture.time <= end).filter(|own| own.known) {
            let is_inside = from <= capture.time && capture.time <= to;
            inside |= is_inside;
            outside |= !is_inside;
        }
        match (inside, outside) {
            (true, false) => return Some(true),
            (true, true) => told = None,
            (false, _) => {}
        }
    }
    told
}

/// What answers are made in.
#[derive(Default)]
struct Scratch {
    key: Vec<u8>,
    links: Vec<u64>,
    captures: Vec<CaptureTime>,
    /// Places of sources that are not sure, and in which edges of the window they link.
    unsure: Vec<(usize, [bool; 2])>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
    /// A list that is only counted or looked through.
    static LOOKED_AT: RefCell<Vec<u64>> = RefCell::default();
}

/// Gives the scratch of this thread to one who does not ask cells with it in hand.
fn with_scratch<T>(work: impl FnOnce(&mut Scratch) -> T) -> T {
    SCRATCH.with_borrow_mut(work)
}

impl Links for Cells {
    fn epoch(&self) -> u64 {
        self.epoch
    }

    fn urls(&self) -> u64 {
        self.urls
    }

    fn uid(&self, url: &str) -> Result<Option<u64>, LayersError> {
        with_scratch(|Scratch { key: wanted, .. }| {
            wanted.clear();
            key(url, wanted);
            let after = self.cells.partition_point(|(first, _)| *first <= *wanted);
            let Some((_, cell)) = after.checked_sub(1).map(|at| &self.cells[at]) else { return Ok(None) };
            let node = cell.urls.find(wanted).map_err(|damage| cell.damaged(damage))?;
            Ok(node.map(|node| cell.label.first + node))
        })
    }

    fn url(&self, uid: u64) -> Result<String, LayersError> {
        let (cell, node) = self.cell_of(uid)?;
        let mut url = String::new();
        cell.urls.url(node as u64, &mut url).map_err(|damage| cell.damaged(damage))?;
        Ok(url)
    }

    fn url_into(&self, uid: u64, url: &mut Vec<u8>) -> Result<(), LayersError> {
        let (cell, node) = self.cell_of(uid)?;
        url.clear();
        let mut text = String::from_utf8(std::mem::take(url)).unwrap_or_default();
        let done = cell.urls.url(node as u64, &mut text);
        *url = text.into_bytes();
        done.map_err(|damage| cell.damaged(damage))
    }

    fn page(&self, uid: u64) -> Result<Option<Arc<Page>>, LayersError> {
        Ok(self.forward(uid, |store, node| store.page(node))?.map(Arc::new))
    }

    fn in_record(&self, uid: u64) -> Result<Option<Arc<InLinks>>, LayersError> {
        let (cell, node) = self.cell_of(uid)?;
        Ok(cell.backward.record(node).map_err(|damage| cell.damaged(damage))?.map(Arc::new))
    }

    fn in_range(&self) -> RangeLength {
        self.in_range
    }

    fn captures_into(&self, uid: u64, captures: &mut Vec<CaptureTime>) -> Result<(), LayersError> {
        self.forward(uid, |store, node| store.captures(node, captures))
    }

    fn with_prefix(&self, prefix: &[u8]) -> Result<Vec<Range<u64>>, LayersError> {
        // The last cell that begins before the prefix may end in it.
        let begin = self.cells.partition_point(|(first, _)| first.as_slice() < prefix).saturating_sub(1);
        let mut found: Option<Range<u64>> = None;
        for (first, cell) in &self.cells[begin..] {
            if first.as_slice() > prefix && !first.starts_with(prefix) {
                break;
            }
            let own = cell.urls.prefix(prefix).map_err(|damage| cell.damaged(damage))?;
            let own = cell.label.first + own.start..cell.label.first + own.end;
            found = Some(found.filter(|found| !found.is_empty()).map_or(own.clone(), |found| found.start..own.end));
        }
        Ok(found.into_iter().filter(|found| !found.is_empty()).collect())
    }

    fn uids(
        &self,
        uids: Range<u64>,
        (from, to): (i64, i64),
        visit: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<(), LayersError> {
        for uid in uids {
            if self.forward(uid, |store, node| store.captured(node, from, to))? && visit(uid).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn out_links(&self, uid: u64, window: Window) -> Result<Vec<u64>, LayersError> {
        self.links(uid, Direction::Out, window)
    }

    fn in_links(&self, uid: u64, window: Window, precision: Precision) -> Result<Vec<u64>, LayersError> {
        self.links(uid, Direction::In(precision), window)
    }

    fn links(&self, uid: u64, direction: Direction, window: Window) -> Result<Vec<u64>, LayersError> {
        let mut links = Vec::new();
        self.links_into(uid, direction, window, &mut links)?;
        Ok(links)
    }

    fn links_into(
        &self,
        uid: u64,
        direction: Direction,
        window: Window,
        links: &mut Vec<u64>,
    ) -> Result<(), LayersError> {
        match direction {
            Direction::Out => self.forward(uid, |store, node| store.window(node, window, links)),
            Direction::In(precision) => self.sources_into(uid, window, precision, links),
        }
    }

    fn degree(&self, uid: u64, direction: Direction, window: Window) -> Result<usize, LayersError> {
        LOOKED_AT.with_borrow_mut(|links| {
            self.links_into(uid, direction, window, links)?;
            Ok(links.len())
        })
    }

    fn has_link(&self, uid: u64, link: u64, window: Window) -> Result<bool, LayersError> {
        LOOKED_AT.with_borrow_mut(|links| {
            self.links_into(uid, Direction::Out, window, links)?;
            Ok(links.binary_search(&link).is_ok())
        })
    }

    fn lifespans_into(&self, uid: u64, spans: &mut Vec<Lifespan>) -> Result<(), LayersError> {
        self.forward(uid, |store, node| store.lifespans(node, spans))
    }
}
