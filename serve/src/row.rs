//! The cells of one row: which of them has a URL or a record, and what links to a URL as far as the row alone tells.
//!
//! In-links come from the backward store's own ranges; an exact answer asks only those sources that link in no range that
//! lies wholly in the window. A row mirrors its out-links by its in-links, so its sources have their pages in the row, too.

use std::cell::RefCell;
use std::ops::Range;

use webstrata_layers::{CaptureTime, Error as LayersError, Precision, RangeLength, RowEntry, Window};

use crate::backward::{Found, Wanted};
use crate::cell::Cell;

/// The cells of a row.
pub(crate) struct Row {
    /// The UID after those of its URLs; it has no records of higher ones.
    pub(crate) end_uid: u64,
    /// The times of its first and its last capture; the first is above the last where there are none.
    pub(crate) times: (i64, i64),
    /// In order of UIDs.
    pub(crate) cells: Vec<Cell>,
    /// The cells with URLs, each with its first key.
    pub(crate) keys: Vec<(Vec<u8>, usize)>,
}

/// A record of a URL: its cell, and its node there.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) cell: &'a Cell,
    pub(crate) node: usize,
}

impl Row {
    /// A row without cells yet.
    pub(crate) fn of(entry: &RowEntry) -> Self {
        let times = entry.counts.first_time.zip(entry.counts.last_time).unwrap_or((i64::MAX, i64::MIN));
        Self { end_uid: entry.end_uid(), times, cells: Vec::new(), keys: Vec::new() }
    }

    /// Adds its next cell, whose first URL has this key, if it has any.
    pub(crate) fn push(&mut self, cell: Cell, first_key: Vec<u8>) {
        if cell.label().urls > 0 {
            self.keys.push((first_key, self.cells.len()));
        }
        self.cells.push(cell);
    }

    /// Whether captures of the row may decide what a window shows.
    #[inline]
    pub(crate) fn meets(&self, window: Window) -> bool {
        match window {
            Window::Seen { from, to } => self.times.0 <= to && from <= self.times.1,
            Window::AsOf(time) => self.times.0 <= time,
        }
    }

    /// The record of a UID, of out-links, in-links or both.
    #[inline]
    pub(crate) fn place(&self, uid: u64) -> Option<Place<'_>> {
        let cell = self.cells.get(self.cells.partition_point(|cell| cell.label().end_record <= uid))?;
        cell.node(uid).map(|node| Place { cell, node })
    }

    /// The cell with the URL of a UID.
    pub(crate) fn cell_of_url(&self, uid: u64) -> Option<&Cell> {
        let end = |cell: &Cell| cell.label().first_uid + cell.label().urls;
        let at = self.cells.partition_point(|cell| end(cell) <= uid);
        self.cells.get(at).filter(|cell| cell.label().first_uid <= uid)
    }

    /// The UID of a key.
    pub(crate) fn find(&self, key: &[u8]) -> Result<Option<u64>, LayersError> {
        let after = self.keys.partition_point(|(first, _)| first.as_slice() <= key);
        let Some((_, cell)) = after.checked_sub(1).map(|at| &self.keys[at]) else { return Ok(None) };
        self.cells[*cell].find(key)
    }

    /// The UIDs of its URLs whose keys begin with `prefix`; they lie together.
    pub(crate) fn prefix(&self, prefix: &[u8]) -> Result<Option<Range<u64>>, LayersError> {
        // The last cell that begins before the prefix may end in it.
        let begin = self.keys.partition_point(|(first, _)| first.as_slice() < prefix).saturating_sub(1);
        let mut found: Option<Range<u64>> = None;
        for (first, cell) in &self.keys[begin..] {
            if first.as_slice() > prefix && !first.starts_with(prefix) {
                break;
            }
            let own = self.cells[*cell].prefix(prefix)?;
            if !own.is_empty() {
                found = Some(found.map_or(own.start, |found| found.start)..own.end);
            }
        }
        Ok(found)
    }

    /// Replaces the contents of `sources` by what links to the URL of `uid`, which has its record at `place`, in the window,
    /// as far as this row tells.
    pub(crate) fn sources_into(
        &self,
        uid: u64,
        place: Place<'_>,
        window: Window,
        (precision, length): (Precision, RangeLength),
        sources: &mut Vec<u64>,
    ) -> Result<(), LayersError> {
        sources.clear();
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
        SCRATCH.with_borrow_mut(|Scratch { unsure, links, captures }| {
            unsure.clear();
            let mut visit = |source: u64, found: Found| {
                if let Found::Edges(edges) = found {
                    unsure.push((sources.len(), edges));
                }
                sources.push(source);
            };
            place.cell.sources(place.node, &wanted, &mut visit)?;
            let Some(&(first, _)) = unsure.first() else { return Ok(()) };
            let (mut kept, mut next) = (first, unsure.iter().peekable());
            for at in first..sources.len() {
                let source = sources[at];
                let mut holds = true;
                if let Some((_, own)) = next.next_if(|(unsure, _)| *unsure == at) {
                    let ranges = edges.get().into_iter().zip(own).filter_map(|(edge, own)| own.then_some(edge));
                    holds = match self.place(source) {
                        Some(Place { cell, node }) => {
                            let mut by_captures = None;
                            if let Window::Seen { from, to } = window {
                                cell.captures(node, captures)?;
                                by_captures = linked(ranges, (from, to), captures);
                            }
                            by_captures.map_or_else(|| cell.has_link(node, uid, window, links), Ok)?
                        }
                        None => false,
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
    links: Vec<u64>,
    captures: Vec<CaptureTime>,
    /// Places of sources that are not sure, and in which edges of the window they link.
    unsure: Vec<(usize, [bool; 2])>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}
