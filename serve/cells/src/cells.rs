//! All cells of an epoch: answers to questions about links, from memory.
//!
//! [`Cells`] give the same answers as the layers. If one row has the records of a URL, one cell answers. Otherwise the
//! records of the rows are joined ([`webstrata_layers::record::precedence::several`]). Captures are compared only where
//! the times of rows overlap, and a page is decoded only if its captures count in several stretches. Threads share
//! cells freely.

pub mod cell;
pub mod row;

use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use webstrata_layers::record::join;
use webstrata_layers::record::key::key;
use webstrata_layers::record::precedence::several::{PageInRow, PageInRows, RowCaptures};
use webstrata_layers::record::precedence::{self, Overlaps, unite};
use webstrata_layers::{
    AsOf, CaptureTime, Direction, Error as LayersError, InLinks, Lease, Lifespan, Links, Page, Precision, RangeLength,
    Spans, Spelled, Store, Uid, Window, in_order, keep_linking, still_linking,
};

use crate::cells::cell::Cell;
use crate::cells::row::{InRecord, NodeRef, Row};
use crate::error::Error;
use crate::image::label::with_cells;
use crate::image::{Image, Residence};
use crate::links::encoding::Encodings;
use crate::scratch::{RowsScratch, Scratch};

/// All cells of an epoch. The [crate documentation](crate) has an example.
pub struct Cells {
    epoch: u64,
    in_range: RangeLength,
    urls: u64,
    /// The rows, the oldest first.
    rows: Vec<Row>,
    overlaps: Overlaps,
    /// Whether some row removes content of older rows.
    removes: bool,
    /// Whether some capture may have unknown links.
    has_unknown: bool,
    /// The lease that keeps the epoch, and so the images, from being removed.
    _lease: Option<Lease>,
}

/// The records with the captures of a page.
enum Pages<'a> {
    None,
    One(NodeRef<'a>),
    /// The records of several rows, the oldest row first.
    Several(Vec<NodeRef<'a>>),
}

impl Cells {
    /// Opens the images of a store's epoch. Returns `None` if a partition that holds anything has no image made from
    /// its layers.
    ///
    /// # Errors
    /// Images that cannot be read, are damaged, or have another version.
    pub fn open(store: &Store, residence: Residence, encodings: Encodings) -> Result<Option<Self>, Error> {
        let manifest = store.manifest();
        let Some(directory) = store.location().directory() else { return Ok(None) };
        let mut rows = Vec::with_capacity(manifest.rows.len());
        for entry in &manifest.rows {
            let mut row = Row::of(entry);
            for (_, partition) in with_cells(entry) {
                let Some(cell) = Cell::open(store, directory, entry, partition, (residence, encodings))? else {
                    return Ok(None);
                };
                row = row.with(Arc::new(cell));
            }
            rows.push(row);
        }
        let cells = Self::of((manifest.epoch, manifest.in_range, manifest.counts.urls), rows, manifest.removes());
        Ok(Some(Self { _lease: store.lease().cloned(), has_unknown: manifest.counts.has_unknown(), ..cells }))
    }

    fn of((epoch, in_range, urls): (u64, RangeLength, u64), rows: Vec<Row>, removes: bool) -> Self {
        let overlaps = Overlaps::of(&rows.iter().map(Row::times).collect::<Vec<_>>(), removes);
        Self { epoch, in_range, urls, rows, overlaps, removes, has_unknown: true, _lease: None }
    }

    /// Opens one cell alone, from an image in memory. Fuzzing uses this function.
    pub fn of_image(bytes: Bytes, encodings: Encodings) -> Result<Self, Error> {
        let path = Path::new("an image");
        let image = Image::read(path, bytes)?;
        let encoding = encodings.of(path, image.label.encoding)?;
        let label = image.label;
        let end = label.end_record.max(label.first_uid + label.urls).0;
        let row = Row::alone(Cell::of(path.to_owned(), image, encoding)?);
        Ok(Self::of((0, label.in_range, end), vec![row], false))
    }

    /// The cells, row by row, in order of UIDs.
    pub fn cells(&self) -> impl Iterator<Item = &Arc<Cell>> {
        self.rows.iter().flat_map(Row::cells)
    }

    /// The rows, the oldest first, each with all its cells.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    fn unknown(&self, uid: Uid) -> LayersError {
        LayersError::UnknownUid { uid, epoch: self.epoch, urls: self.urls }
    }

    fn known(&self, uid: Uid) -> Result<(), LayersError> {
        if uid.0 < self.urls { Ok(()) } else { Err(self.unknown(uid)) }
    }

    /// The cell that holds the URL of a UID.
    fn cell_of_url(&self, uid: Uid) -> Result<&Cell, LayersError> {
        let row = self.rows.get(self.rows.partition_point(|row| row.end_uid() <= uid));
        let cell = row.map(|row| row.cell_of_url(uid)).transpose()?;
        cell.flatten().ok_or_else(|| self.unknown(uid))
    }

    /// The records with captures of a page, in the rows for which `is_relevant` is true.
    #[inline]
    fn pages_of(&self, uid: Uid, is_relevant: impl Fn(&Row) -> bool) -> Result<Pages<'_>, LayersError> {
        self.known(uid)?;
        let mut records =
            self.rows.iter().filter(|row| is_relevant(row)).filter_map(|row| row.record_of(uid).transpose());
        let Some(first) = records.next().transpose()? else { return Ok(Pages::None) };
        let Some(second) = records.next().transpose()? else { return Ok(Pages::One(first)) };
        // Some records may have in-links only.
        let mut found = Pages::None;
        for record in [Ok(first), Ok(second)].into_iter().chain(records) {
            let record = record?;
            if record.cell.has_page(record.node)? {
                found = match found {
                    Pages::None => Pages::One(record),
                    Pages::One(one) => Pages::Several(vec![one, record]),
                    Pages::Several(mut several) => {
                        several.push(record);
                        Pages::Several(several)
                    }
                };
            }
        }
        Ok(found)
    }

    /// Replaces the contents of `links` by the links of a page in the window.
    fn window_into(
        &self,
        uid: Uid,
        window: Window,
        RowsScratch { row: scratch, links: of_row, .. }: &mut RowsScratch,
        links: &mut Vec<Uid>,
    ) -> Result<(), LayersError> {
        match self.pages_of(uid, |row| row.overlaps(window))? {
            Pages::None => links.clear(),
            Pages::One(NodeRef { cell, node }) => cell.window(node, window, scratch, links)?,
            Pages::Several(pages) => self.in_rows(&pages).links_into(window, scratch, (of_row, links))?,
        }
        Ok(())
    }

    fn in_rows<'a>(&'a self, pages: &'a [NodeRef<'a>]) -> PageInRows<'a, NodeRef<'a>> {
        PageInRows { pages, overlaps: &self.overlaps }
    }

    /// Whether a page has a link in the window.
    fn has_link_with(&self, uid: Uid, link: Uid, window: Window, scratch: &mut Scratch) -> Result<bool, LayersError> {
        match self.pages_of(uid, |row| row.overlaps(window))? {
            Pages::None => Ok(false),
            Pages::One(NodeRef { cell, node }) => cell.has_link(node, link, window, scratch),
            Pages::Several(pages) => self.in_rows(&pages).has_link(link, window, scratch),
        }
    }

    /// Whether a page has a link in the window, for a page of which a row says that it has the link: in the window, or,
    /// as of a time, at any time.
    fn still_links(&self, uid: Uid, link: Uid, window: Window, scratch: &mut Scratch) -> Result<bool, LayersError> {
        match self.pages_of(uid, |row| row.overlaps(window))? {
            Pages::None => Ok(false),
            Pages::One(_) if matches!(window, Window::Seen { .. }) => Ok(true),
            Pages::One(NodeRef { cell, node }) => cell.has_link(node, link, window, scratch),
            Pages::Several(pages) => self.in_rows(&pages).still_has_link(link, window, scratch),
        }
    }

    /// Replaces the contents of `sources` by the sources that link to the URL in the window.
    fn sources_into(
        &self,
        uid: Uid,
        window: Window,
        precision: Precision,
        RowsScratch { row: scratch, links: of_row, .. }: &mut RowsScratch,
        sources: &mut Vec<Uid>,
    ) -> Result<(), LayersError> {
        self.known(uid)?;
        sources.clear();
        let exact = precision == Precision::Exact;
        let precision = if self.overlaps.each_row_decides(window) { precision } else { Precision::Range };
        // All cells of each row are here, so no sources are left unchecked.
        let (mut unchecked, all) = (Vec::new(), (Uid(0), usize::MAX));
        for row in self.rows.iter().filter(|row| !exact || row.overlaps(window)) {
            if sources.is_empty() {
                row.sources_into(uid, window, precision, all, scratch, (sources, &mut unchecked))?;
            } else {
                row.sources_into(uid, window, precision, all, scratch, (of_row, &mut unchecked))?;
                unite(sources, of_row);
            }
        }
        if let Some(window) = self.overlaps.checked(window, exact) {
            keep_linking(sources, |source| self.still_links(source, uid, window, scratch))?;
        }
        Ok(())
    }
}

impl PageInRow for NodeRef<'_> {
    type Scratch = Scratch;
    type Error = LayersError;

    fn has_statuses(&self) -> bool {
        self.cell.has_statuses()
    }

    fn captures(
        &self,
        window: Window,
        has_statuses: bool,
        scratch: &mut Scratch,
    ) -> Result<RowCaptures<'_>, LayersError> {
        let mut captures = std::mem::take(&mut scratch.captures);
        self.cell.captures(self.node, scratch, &mut captures)?;
        let until = |time: i64| captures.partition_point(|capture| capture.time <= time);
        let selected = match window {
            Window::AsOf(AsOf { time, .. }) => {
                let end = until(time);
                if has_statuses { 0..end } else { end.saturating_sub(1)..end }
            }
            Window::Seen { from, to } => {
                let first = captures.partition_point(|capture| capture.time < from);
                first..until(to).max(first)
            }
        };
        let copied = captures[selected].iter().copied().collect();
        scratch.captures = captures;
        Ok(RowCaptures::Copied(copied))
    }

    fn links_in(&self, windows: &[Window], scratch: &mut Scratch, links: &mut Vec<Uid>) -> Result<(), LayersError> {
        if let &[window] = windows {
            return self.cell.window(self.node, window, scratch, links);
        }
        links.clear();
        if let Some(page) = self.cell.page(self.node)? {
            page.links_within(&stretches_of(&page, windows), links);
        }
        Ok(())
    }

    fn has_link_in(&self, link: Uid, windows: &[Window], scratch: &mut Scratch) -> Result<bool, LayersError> {
        if let &[window] = windows {
            return self.cell.has_link(self.node, link, window, scratch);
        }
        let page = self.cell.page(self.node)?;
        Ok(page.is_some_and(|page| page.has_link_within(link, stretches_of(&page, windows))))
    }
}

/// The stretches of captures of a page that the windows select.
fn stretches_of(page: &Page, windows: &[Window]) -> Vec<(u32, u32)> {
    windows.iter().filter_map(|&window| page.captures().selected(window)).collect()
}

/// Joins the pages of these records into one page.
fn joined(records: &[NodeRef<'_>]) -> Result<Option<Page>, LayersError> {
    let pages = records.iter().filter_map(|record| record.cell.page(record.node).transpose());
    Ok(join::page_of_rows(pages.collect::<Result<_, _>>()?))
}

impl Links for Cells {
    fn epoch(&self) -> u64 {
        self.epoch
    }

    fn has_unknown(&self) -> bool {
        self.has_unknown
    }

    fn urls(&self) -> u64 {
        self.urls
    }

    fn uid(&self, url: &str) -> Result<Option<Uid>, LayersError> {
        RowsScratch::lend(|RowsScratch { key: url_key, .. }| {
            key(url, url_key);
            let found = self.rows.iter().map(|row| row.find(url_key));
            found.filter_map(Result::transpose).next().transpose()
        })
    }

    fn url(&self, uid: Uid) -> Result<String, LayersError> {
        let mut url = String::new();
        self.cell_of_url(uid)?.url(uid, &mut url)?;
        Ok(url)
    }

    fn url_into(&self, uid: Uid, url: &mut Vec<u8>) -> Result<(), LayersError> {
        let cell = self.cell_of_url(uid)?;
        url.clear();
        let mut text = String::from_utf8(std::mem::take(url)).unwrap_or_default();
        let done = cell.url(uid, &mut text);
        *url = text.into_bytes();
        done
    }

    fn page(&self, uid: Uid) -> Result<Option<Arc<Page>>, LayersError> {
        let page = match self.pages_of(uid, |_| true)? {
            Pages::None => None,
            Pages::One(record) => joined(&[record])?,
            Pages::Several(records) => joined(&records)?,
        };
        Ok(page.map(Arc::new))
    }

    fn in_record(&self, uid: Uid) -> Result<Option<Arc<InLinks>>, LayersError> {
        self.known(uid)?;
        let mut records = Vec::new();
        Scratch::lend(|scratch| {
            for row in &self.rows {
                // All cells of the row are here, so the record is whole.
                if let InRecord::Whole(record) = row.in_record(uid, scratch)? {
                    records.extend(record);
                }
            }
            Ok::<_, LayersError>(())
        })?;
        let joined = match join::in_links_of_rows(&mut records) {
            Some(joined) if self.removes => {
                still_linking(&joined, |source| self.has_link(source, uid, Window::ALWAYS))?
            }
            joined => joined,
        };
        Ok(joined.map(Arc::new))
    }

    fn in_range(&self) -> RangeLength {
        self.in_range
    }

    fn captures_into(&self, uid: Uid, captures: &mut Vec<CaptureTime>) -> Result<(), LayersError> {
        match self.pages_of(uid, |_| true)? {
            Pages::None => captures.clear(),
            Pages::One(NodeRef { cell, node }) => {
                Scratch::lend(|scratch| cell.captures(node, scratch, captures))?;
                if self.removes {
                    precedence::merge(captures);
                }
            }
            Pages::Several(records) => {
                captures.clear();
                let mut of_row = Vec::new();
                for NodeRef { cell, node } in records {
                    Scratch::lend(|scratch| cell.captures(node, scratch, &mut of_row))?;
                    captures.extend_from_slice(&of_row);
                }
                precedence::merge(captures);
            }
        }
        Ok(())
    }

    fn with_prefix(&self, prefix: &[u8]) -> Result<Vec<Range<Uid>>, LayersError> {
        self.rows.iter().filter_map(|row| row.prefix(prefix).transpose()).collect()
    }

    fn spellings(&self, page: &Spelled) -> Result<Vec<Uid>, LayersError> {
        let mut found = Vec::new();
        for cell in self.cells() {
            cell.spellings(page, &mut found)?;
        }
        Ok(in_order(found))
    }

    fn uids(
        &self,
        uids: Range<Uid>,
        (from, to): (i64, i64),
        visit: &mut dyn FnMut(Uid) -> ControlFlow<()>,
    ) -> Result<(), LayersError> {
        Scratch::lend(|scratch| {
            for uid in Uid::each(uids) {
                self.known(uid)?;
                let mut captured = false;
                for row in self.rows.iter().filter(|row| row.overlaps(Window::Seen { from, to })) {
                    if let Some(NodeRef { cell, node }) = row.record_of(uid)? {
                        captured = cell.captured(node, (from, to), scratch)?;
                    }
                    if captured {
                        break;
                    }
                }
                if captured && self.removes {
                    // A newer row may have removed the capture.
                    let in_interval = |capture: &CaptureTime| (from..=to).contains(&capture.time);
                    captured = self.captures(uid)?.iter().any(in_interval);
                }
                if captured && visit(uid).is_break() {
                    break;
                }
            }
            Ok(())
        })
    }

    fn failing(&self, uids: Range<Uid>) -> Result<Vec<Uid>, LayersError> {
        let mut failing = Vec::new();
        self.cells().try_for_each(|cell| cell.failing(uids.clone(), &mut failing))?;
        Ok(in_order(failing))
    }

    fn out_links(&self, uid: Uid, window: Window) -> Result<Vec<Uid>, LayersError> {
        self.links(uid, Direction::Out, window)
    }

    fn in_links(&self, uid: Uid, window: Window, precision: Precision) -> Result<Vec<Uid>, LayersError> {
        self.links(uid, Direction::In(precision), window)
    }

    fn links(&self, uid: Uid, direction: Direction, window: Window) -> Result<Vec<Uid>, LayersError> {
        let mut links = Vec::new();
        self.links_into(uid, direction, window, &mut links)?;
        Ok(links)
    }

    fn links_into(
        &self,
        uid: Uid,
        direction: Direction,
        window: Window,
        links: &mut Vec<Uid>,
    ) -> Result<(), LayersError> {
        RowsScratch::lend(|scratch| match direction {
            Direction::Out => self.window_into(uid, window, scratch, links),
            Direction::In(precision) => self.sources_into(uid, window, precision, scratch, links),
        })
    }

    fn degree(&self, uid: Uid, direction: Direction, window: Window) -> Result<usize, LayersError> {
        RowsScratch::lend(|scratch| {
            let mut links = std::mem::take(&mut scratch.counted);
            let found = match direction {
                Direction::Out => self.window_into(uid, window, scratch, &mut links),
                Direction::In(precision) => self.sources_into(uid, window, precision, scratch, &mut links),
            };
            let count = links.len();
            scratch.counted = links;
            found.map(|()| count)
        })
    }

    fn has_link(&self, uid: Uid, link: Uid, window: Window) -> Result<bool, LayersError> {
        Scratch::lend(|scratch| self.has_link_with(uid, link, window, scratch))
    }

    fn spans_into(&self, uid: Uid, spans: Spans, lifespans: &mut Vec<Lifespan>) -> Result<(), LayersError> {
        lifespans.clear();
        match self.pages_of(uid, |_| true)? {
            Pages::None => {}
            Pages::One(NodeRef { cell, node }) => {
                Scratch::lend(|scratch| cell.spans(node, spans, scratch, lifespans))?;
            }
            Pages::Several(records) => {
                if let Some(page) = joined(&records)? {
                    spans.of_page(&page, lifespans);
                }
            }
        }
        Ok(())
    }
}
