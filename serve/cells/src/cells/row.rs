//! The cells of one row, all or some: look-ups of URLs and records, and the in-links of a URL as the row alone has
//! them.
//!
//! A row knows the UIDs and keys of all its cells, and holds the cells that are in memory here: all of them on one
//! machine, some on a server of a cluster. If a question needs a cell that is not held, the answer is
//! [`Error::NotHere`], and never "no record".
//!
//! In-links come from the ranges of the backward store. An exact answer checks only sources that link in no range that
//! lies wholly in the window; if the backward store has no times, every answer checks all sources. In-links of a row
//! mirror its out-links, so the pages of its sources are in the row, too. Sources whose cells are not held are
//! reported, so that the caller can ask another server.

use std::ops::Range;
use std::sync::Arc;

use webstrata_layers::{
    AsOf, CaptureTime, Error as LayersError, InLinks, Precision, RangeLength, RowEntry, Uid, Window,
};

use crate::cells::cell::Cell;
use crate::error::{Away, Error};
use crate::image::label::with_cells;
use crate::links::backward::{Found, Wanted};
use crate::numbers::Node;
use crate::scratch::Scratch;

/// The cells of a row that are held. A clone shares the cells.
#[derive(Clone)]
pub struct Row {
    number: u32,
    /// The UID after the row's URLs. The row has no records of this UID or higher ones.
    end_uid: Uid,
    /// The times of the first and the last capture. If there are no captures, the first time is above the last.
    times: (i64, i64),
    /// For each cell, in order of UIDs, the UID after its records.
    ends: Arc<[Uid]>,
    /// The partition of each cell, and the UIDs of its URLs.
    partitions: Arc<[(u32, Range<Uid>)]>,
    /// The cells with URLs, each with its first key.
    keys: Arc<[(Vec<u8>, usize)]>,
    cells: Vec<Option<Arc<Cell>>>,
}

/// A record of a URL: its cell, and its node in the cell.
#[derive(Clone, Copy)]
pub(crate) struct NodeRef<'a> {
    pub(crate) cell: &'a Cell,
    pub(crate) node: Node,
}

/// The in-link record of a URL in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InRecord {
    /// The record; `None` if nothing links to the URL.
    Whole(Option<InLinks>),
    /// Only some of these pages link, and not all of their cells are held. Rising.
    OfSome(Vec<Uid>),
}

impl Row {
    /// A row that holds no cells yet.
    pub fn of(entry: &RowEntry) -> Self {
        let (mut ends, mut partitions, mut keys) = (Vec::new(), Vec::new(), Vec::new());
        for (index, partition) in with_cells(entry) {
            if partition.urls > 0 {
                keys.push((partition.first_key_bytes().unwrap_or_default(), ends.len()));
            }
            ends.push(entry.records(index).end);
            partitions.push((partition.partition, partition.first_uid..partition.first_uid + partition.urls));
        }
        let times = entry.counts.first_time.zip(entry.counts.last_time).unwrap_or((i64::MAX, i64::MIN));
        let cells = vec![None; ends.len()];
        let (ends, partitions, keys) = (ends.into(), partitions.into(), keys.into());
        Self { number: entry.row, end_uid: entry.end_uid(), times, ends, partitions, keys, cells }
    }

    /// A row of one cell, of which nothing else is known.
    pub(crate) fn alone(cell: Cell) -> Self {
        let label = *cell.label();
        let urls = label.first_uid..label.first_uid + label.urls;
        let keys = if label.urls > 0 { vec![(Vec::new(), 0)] } else { Vec::new() };
        Self {
            number: label.row,
            end_uid: urls.end,
            times: (i64::MIN, i64::MAX),
            ends: [label.end_record].into(),
            partitions: [(label.partition, urls)].into(),
            keys: keys.into(),
            cells: vec![Some(Arc::new(cell))],
        }
    }

    /// The row with one more cell, which replaces the held cell of the same partition. A cell of another row changes
    /// nothing.
    #[must_use]
    pub fn with(mut self, cell: Arc<Cell>) -> Self {
        let label = cell.label();
        let cell_partition = (label.partition, label.first_uid..label.first_uid + label.urls);
        let at = self.partitions.iter().position(|other| *other == cell_partition);
        if let Some(at) = at.filter(|&at| label.row == self.number && label.end_record == self.ends[at]) {
            self.cells[at] = Some(cell);
        }
        self
    }

    /// The row without the cell of a partition.
    #[must_use]
    pub fn without(mut self, partition: u32) -> Self {
        if let Some(at) = self.partitions.iter().position(|other| other.0 == partition) {
            self.cells[at] = None;
        }
        self
    }

    /// The number of the row.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The UID after the row's URLs. The row has no records of this UID or higher ones.
    pub fn end_uid(&self) -> Uid {
        self.end_uid
    }

    /// The times of the first and the last capture. If there are no captures, the first time is above the last.
    pub fn times(&self) -> (i64, i64) {
        self.times
    }

    /// The partitions that have a cell, held or not, in order of UIDs.
    pub fn partitions(&self) -> impl Iterator<Item = u32> {
        self.partitions.iter().map(|(partition, _)| *partition)
    }

    /// The cells that are held, in order of UIDs.
    pub fn cells(&self) -> impl Iterator<Item = &Arc<Cell>> {
        self.cells.iter().flatten()
    }

    /// The cell of a partition.
    ///
    /// # Errors
    /// [`Error::NotHere`] if the cell is not held, or does not exist.
    pub fn cell(&self, partition: u32) -> Result<&Arc<Cell>, Error> {
        let at = self.partitions.iter().position(|other| other.0 == partition);
        let cell = at.and_then(|at| self.cells[at].as_ref());
        cell.ok_or_else(|| Away { row: self.number, partition }.into())
    }

    /// The cell at an index of this row.
    #[inline]
    fn held(&self, at: usize) -> Result<&Cell, Away> {
        let away = || Away { row: self.number, partition: self.partitions[at].0 };
        self.cells[at].as_deref().ok_or_else(away)
    }

    /// Whether captures of the row may decide what a window shows.
    #[inline]
    pub fn overlaps(&self, window: Window) -> bool {
        window.overlaps(self.times)
    }

    /// The record of a UID, with out-links, in-links or both; `None` if the row has none.
    #[inline]
    pub(crate) fn record_of(&self, uid: Uid) -> Result<Option<NodeRef<'_>>, Away> {
        let at = self.ends.partition_point(|&end| end <= uid);
        if at == self.ends.len() {
            return Ok(None);
        }
        let cell = self.held(at)?;
        Ok(cell.node(uid).map(|node| NodeRef { cell, node }))
    }

    /// The cell with the URL of a UID; `None` if the URL is not one of this row.
    pub(crate) fn cell_of_url(&self, uid: Uid) -> Result<Option<&Cell>, Away> {
        let at = self.partitions.partition_point(|(_, urls)| urls.end <= uid);
        let is_own = self.partitions.get(at).is_some_and(|(_, urls)| urls.contains(&uid));
        is_own.then(|| self.held(at)).transpose()
    }

    /// The UID of a key.
    pub(crate) fn find(&self, key: &[u8]) -> Result<Option<Uid>, LayersError> {
        let after = self.keys.partition_point(|(first, _)| first.as_slice() <= key);
        let Some((_, cell)) = after.checked_sub(1).map(|at| &self.keys[at]) else { return Ok(None) };
        self.held(*cell)?.find(key)
    }

    /// The UIDs of the row's URLs whose keys begin with `prefix`. These UIDs are contiguous.
    pub(crate) fn prefix(&self, prefix: &[u8]) -> Result<Option<Range<Uid>>, LayersError> {
        // The last cell that begins before the prefix may contain keys with the prefix.
        let begin = self.keys.partition_point(|(first, _)| first.as_slice() < prefix).saturating_sub(1);
        let mut found: Option<Range<Uid>> = None;
        for (first, cell) in &self.keys[begin..] {
            if first.as_slice() > prefix && !first.starts_with(prefix) {
                break;
            }
            let cell_uids = self.held(*cell)?.prefix(prefix)?;
            if !cell_uids.is_empty() {
                found = Some(found.map_or(cell_uids.start, |found| found.start)..cell_uids.end);
            }
        }
        Ok(found)
    }

    /// Calls `visit` with each page that links to the URL of `uid` in any range of this row, in rising order; if the
    /// cell of the URL has in-links without times, with each page that may link.
    ///
    /// # Errors
    /// [`Error::NotHere`] if the cell with the in-links of `uid` is not held, and damaged images.
    pub fn each_source(&self, uid: Uid, scratch: &mut Scratch, visit: &mut dyn FnMut(Uid)) -> Result<(), LayersError> {
        let Some(record) = self.record_of(uid)? else { return Ok(()) };
        record.cell.each_source(record.node, &mut scratch.store, visit)
    }

    /// The in-link record of a URL. If the cell of the URL has in-links without times, the record is made from the
    /// pages.
    ///
    /// # Errors
    /// [`Error::NotHere`] if the cell with the in-links of `uid` is not held, and damaged images.
    pub fn in_record(&self, uid: Uid, scratch: &mut Scratch) -> Result<InRecord, LayersError> {
        let Some(record) = self.record_of(uid)? else { return Ok(InRecord::Whole(None)) };
        if record.cell.has_in_link_times() {
            return Ok(InRecord::Whole(record.cell.in_record(record.node)?));
        }
        let mut candidates = Vec::new();
        record.cell.each_source(record.node, &mut scratch.store, &mut |source| candidates.push(source))?;
        let mut sources = Vec::new();
        for &source in &candidates {
            match self.record_of(source) {
                Ok(None) => {}
                Ok(Some(page)) => sources.push((source, page.cell.ranges_of(page.node, uid, scratch)?)),
                Err(Away { .. }) => return Ok(InRecord::OfSome(candidates)),
            }
        }
        Ok(InRecord::Whole(InLinks::of_sources(uid, sources)))
    }

    /// Replaces the contents of `sources` by the sources in this row that link to the URL of `uid` in the window, in
    /// rising order, from the UID `first` on, at most `sources_max`. All sources are decoded, but only these are
    /// checked. Replaces the contents of `unsure_sources` by the rising indexes in `sources` of sources that may or may
    /// not link, because their cell is not held: [`Cell::has_link`] of that cell decides, in the window that
    /// [`deciding_window`] gives. If all cells are held there are none, and at range precision only if the in-links
    /// have no times.
    ///
    /// # Errors
    /// [`Error::NotHere`] if the cell with the in-links of `uid` is not held, and damaged images.
    pub fn sources_into(
        &self,
        uid: Uid,
        window: Window,
        precision: Precision,
        (first, sources_max): (Uid, usize),
        scratch: &mut Scratch,
        (sources, unsure_sources): (&mut Vec<Uid>, &mut Vec<usize>),
    ) -> Result<(), LayersError> {
        unsure_sources.clear();
        sources.clear();
        let (from, to) = match window {
            Window::Seen { from, to } if from > to => return Ok(()),
            Window::Seen { from, to } => (from, to),
            Window::AsOf(AsOf { time, .. }) => (i64::MIN, time),
        };
        let Some(record) = self.record_of(uid)? else { return Ok(()) };
        let length = record.cell.label().in_range;
        // Only in-links without times ask for it.
        let decides = if record.cell.has_in_link_times() { window } else { deciding_window(window, precision, length) };
        // The first and the last range asked for, each from its first second to its last.
        let edges = std::cell::Cell::new([(0, 0); 2]);
        let select_ranges = |ranges: &[i64]| {
            let from_start = length.start(from);
            let first = ranges.partition_point(|&start| start < from_start);
            let last = ranges.partition_point(|&start| start <= to).checked_sub(1)?;
            edges.set([*ranges.get(first)?, ranges[last]].map(|start| (start, length.end(start))));
            let inner = match (precision, window) {
                (Precision::Range, _) => Some((first, last)),
                // The latest capture may lack the link even if earlier captures have it.
                (Precision::Exact, Window::AsOf(_)) => None,
                (Precision::Exact, Window::Seen { .. }) => {
                    let [(start, _), (_, end)] = edges.get();
                    last.checked_sub(usize::from(end > to)).map(|last| (first + usize::from(start < from), last))
                }
            };
            (first <= last).then_some(Wanted { ranges: (first, last), inner })
        };
        scratch.unsure.clear();
        let Scratch { store, unsure, .. } = &mut *scratch;
        let mut visit = |source: Uid, found: Found| {
            if source < first {
                return;
            }
            if found != Found::Inner {
                unsure.push((sources.len(), found));
            }
            sources.push(source);
        };
        record.cell.sources(record.node, &select_ranges, store, &mut visit)?;
        let sure = scratch.unsure.first().map_or(sources.len(), |&(at, _)| at);
        let unsure = std::mem::take(&mut scratch.unsure);
        let (mut kept, mut next) = (sure, unsure.iter().peekable());
        for at in sure..sources.len() {
            if kept >= sources_max {
                break;
            }
            let source = sources[at];
            let mut holds = true;
            if let Some((_, found)) = next.next_if(|(unsure, _)| *unsure == at) {
                holds = match self.record_of(source) {
                    Ok(Some(page)) => match found {
                        Found::Inner => true,
                        Found::Edges(linking) => {
                            let edges = edges.get().into_iter().zip(linking);
                            let ranges = edges.filter_map(|(edge, links)| links.then_some(edge));
                            page.links_in_edges(uid, window, ranges, scratch)?
                        }
                        Found::Perhaps => page.cell.perhaps_has_link(page.node, uid, decides, scratch)?,
                    },
                    Ok(None) => false,
                    Err(Away { .. }) => {
                        unsure_sources.push(kept);
                        true
                    }
                };
            }
            sources[kept] = source;
            kept += usize::from(holds);
        }
        sources.truncate(kept.min(sources_max));
        scratch.unsure = unsure;
        Ok(())
    }
}

/// The window in which a source must link, if the in-links do not say that it does.
pub fn deciding_window(window: Window, precision: Precision, length: RangeLength) -> Window {
    match precision {
        Precision::Exact => window,
        Precision::Range => window.of_ranges(length),
    }
}

impl NodeRef<'_> {
    /// Whether a page that links to a URL in each of these ranges does so in the window. Its captures usually decide;
    /// otherwise its links are read.
    fn links_in_edges(
        &self,
        link: Uid,
        window: Window,
        ranges: impl Iterator<Item = (i64, i64)>,
        scratch: &mut Scratch,
    ) -> Result<bool, LayersError> {
        if let Window::Seen { from, to } = window {
            let mut captures = std::mem::take(&mut scratch.captures);
            self.cell.captures(self.node, scratch, &mut captures)?;
            let answer = linked(ranges, (from, to), &captures);
            scratch.captures = captures;
            if let Some(answer) = answer {
                return Ok(answer);
            }
        }
        self.cell.has_link(self.node, link, window, scratch)
    }
}

/// Whether a page that links to a URL in each of the ranges does so in the window, as far as its captures decide. It
/// does if all captures of some range lie in the window, and it does not if no capture does. `None` if the captures do
/// not decide.
fn linked(ranges: impl Iterator<Item = (i64, i64)>, (from, to): (i64, i64), captures: &[CaptureTime]) -> Option<bool> {
    let mut answer = Some(false);
    for (start, end) in ranges {
        let (mut inside, mut outside) = (false, false);
        let first = captures.partition_point(|capture| capture.time < start);
        for capture in
            captures[first..].iter().take_while(|capture| capture.time <= end).filter(|capture| !capture.is_blank())
        {
            let is_inside = from <= capture.time && capture.time <= to;
            inside |= is_inside;
            outside |= !is_inside;
        }
        match (inside, outside) {
            (true, false) => return Some(true),
            (true, true) => answer = None,
            (false, _) => {}
        }
    }
    answer
}
