//! The union of links in any encoding, with times and presence in plain arrays beside it: link stores of encodings that
//! know no time.
//!
//! ```text
//! length      of the links, in bytes (64 bits)
//! links       the lists of all nodes (`codec`)
//! side        times and presence (`side`)
//! ```
//!
//! An answer decodes the list of a node and goes through its changes; one for a window without a known capture decodes
//! no list. Encoding holds all lists in memory.

mod side;

use std::cell::RefCell;
use std::iter::Peekable;

use bytes::Bytes;
use webstrata_layers::{CaptureTime, Change, InLinks, Lifespan, Page, Window, captures_in, lifespans_of};

use crate::codec::{self, CodecTag};
use crate::union::side::{Captures, Side, SideWriter};
use webstrata_cells::coding::parts::{Parts, push_words};
use webstrata_cells::links::backward::{Found, Wanted};
use webstrata_cells::links::encoding::{BackwardStore, CellShape, ForwardStore};
use webstrata_cells::links::lists::{LinkCodec, Lists, Sizes};
use webstrata_cells::{Damage, Error};

const PART: &str = "links with plain times";

/// Encodes the records of a cell, in order of UIDs.
pub(crate) fn encode(
    tag: CodecTag,
    CellShape { first, nodes, keys, .. }: CellShape<'_>,
    records: impl Iterator<Item = Result<Page, Error>>,
) -> Result<Vec<u8>, Error> {
    let (mut lists, mut side) = (Lists { first, ..Lists::default() }, SideWriter::default());
    let pass = |to: usize, lists: &mut Lists, side: &mut SideWriter| {
        while lists.nodes() < to {
            lists.push(&[]);
            side.push(None);
        }
    };
    for page in records {
        let page = page?;
        pass(usize::try_from(page.uid - first).unwrap_or(usize::MAX), &mut lists, &mut side);
        lists.push(&page.links);
        side.push(Some(&page));
    }
    pass(nodes, &mut lists, &mut side);
    let links = codec::encode(tag, &lists, keys)?;
    let mut out = Vec::new();
    push_words(&mut out, &[links.len() as u64]);
    out.extend(links);
    out.extend(side.finish());
    Ok(out)
}

/// Links with plain times, ready to answer.
pub struct Union {
    first: u64,
    links: Box<dyn LinkCodec>,
    side: Side,
}

thread_local! {
    /// Captures, and a list of links or sources.
    static SCRATCH: RefCell<(Captures, Vec<u64>)> = RefCell::default();
}

impl Union {
    /// Opens the store of a cell of `nodes` nodes from UID `first` on.
    ///
    /// # Errors
    /// Bytes whose parts do not fit together.
    pub fn open(tag: CodecTag, bytes: Bytes, first: u64, nodes: usize) -> Result<Self, Damage> {
        let mut parts = Parts::new(bytes, PART);
        let length = parts.length()?;
        let links = codec::open(tag, parts.take(length, 1)?)?;
        let side = Side::open(parts.rest())?;
        for got in [links.nodes(), side.nodes()] {
            if got != nodes {
                return Err(Damage::Outside { part: PART, value: got as u64, bound: nodes as u64 });
            }
        }
        Ok(Self { first, links, side })
    }

    /// The record of a node; `None` where it has none.
    fn record_of(&self, node: usize) -> Result<Option<Page>, Damage> {
        let (mut captures, mut links) = (Captures::default(), Vec::new());
        self.side.captures(node, &mut captures)?;
        if captures.times.is_empty() {
            return Ok(None);
        }
        self.links.list(node, &mut links)?;
        let changes = self.side.changes(node)?.collect();
        let (uid, Captures { times, unknown }) = (self.first + node as u64, captures);
        Ok(Some(Page { uid, timestamps: times, unknown, links, changes }))
    }

    fn size(&self) -> Sizes {
        let (Sizes { data, index, tables }, (values, ends)) = (self.links.sizes(), self.side.sizes());
        // Lengths of links and of arrays, number of nodes and least time.
        Sizes { data: data + values, index: index + ends, tables: tables + 8 + 16 + 7 * 16 }
    }
}

/// Whether the next link, of index `link`, is there in each of the spans of captures, first and last.
#[inline]
fn present<const N: usize>(
    changes: &mut Peekable<impl Iterator<Item = Change>>,
    link: u32,
    spans: [(u32, u32); N],
) -> [bool; N] {
    let mut there = [true; N];
    // Damaged changes may come in any order; one of a link that has passed is of no use.
    while let Some(change) = changes.next_if(|change| change.link <= link) {
        for (there, (first, last)) in there.iter_mut().zip(spans) {
            if change.capture <= first {
                *there = !*there;
            } else if change.capture <= last {
                *there = true;
            }
        }
    }
    there
}

impl ForwardStore for Union {
    fn has(&self, node: usize) -> Result<bool, Damage> {
        Ok(self.side.times(node)?.len() > 0)
    }

    fn window(&self, node: usize, window: Window, links: &mut Vec<u64>) -> Result<(), Damage> {
        links.clear();
        let span = SCRATCH.with_borrow_mut(|(captures, _)| {
            self.side.captures(node, captures)?;
            Ok(captures_in(&captures.times, &captures.unknown, window))
        })?;
        let Some(span) = span else { return Ok(()) };
        self.links.list(node, links)?;
        let mut changes = self.side.changes(node)?.peekable();
        if changes.len() > 0 {
            let mut at = 0..;
            links.retain(|_| present(&mut changes, at.next().unwrap_or(u32::MAX), [span])[0]);
        }
        Ok(())
    }

    fn captures(&self, node: usize, captures: &mut Vec<CaptureTime>) -> Result<(), Damage> {
        captures.clear();
        SCRATCH.with_borrow_mut(|(own, _)| {
            self.side.captures(node, own)?;
            captures.extend(own.times.iter().map(|&time| CaptureTime { time, known: true }));
            for &at in &own.unknown {
                let bound = own.times.len() as u64;
                let outside = Damage::Outside { part: PART, value: u64::from(at), bound };
                captures.get_mut(at as usize).ok_or(outside)?.known = false;
            }
            Ok(())
        })
    }

    fn captured(&self, node: usize, from: i64, to: i64) -> Result<bool, Damage> {
        Ok(self.side.times(node)?.any(|time| from <= time && time <= to))
    }

    fn lifespans(&self, node: usize, spans: &mut Vec<Lifespan>) -> Result<(), Damage> {
        spans.clear();
        SCRATCH.with_borrow_mut(|(captures, links)| {
            self.side.captures(node, captures)?;
            self.links.list(node, links)?;
            lifespans_of(&captures.times, &captures.unknown, links, self.side.changes(node)?, spans);
            Ok(())
        })
    }

    fn page(&self, node: usize) -> Result<Option<Page>, Damage> {
        let page = self.record_of(node)?;
        match page.as_ref().and_then(Page::flaw) {
            Some(flaw) => Err(Damage::Record { part: PART, flaw }),
            None => Ok(page),
        }
    }

    fn sizes(&self) -> Sizes {
        self.size()
    }
}

impl BackwardStore for Union {
    fn sources(
        &self,
        node: usize,
        wanted: &dyn Fn(&[i64]) -> Option<Wanted>,
        visit: &mut dyn FnMut(u64, Found),
    ) -> Result<(), Damage> {
        SCRATCH.with_borrow_mut(|(ranges, sources)| {
            self.side.captures(node, ranges)?;
            let Some(wanted) = wanted(&ranges.times) else { return Ok(()) };
            self.links.list(node, sources)?;
            let index = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
            let span = |(first, last)| (index(first), index(last));
            let inner = wanted.inner.filter(|(first, last)| first <= last);
            let (edges, middle) = wanted.edges();
            let edge = |edge: Option<usize>| edge.map_or((0, 0), |range| span((range, range)));
            let spans = [span(wanted.ranges), inner.map_or((0, 0), span), edge(edges[0]), edge(edges[1])];
            let mut changes = self.side.changes(node)?.peekable();
            for (at, &source) in (0..).zip(sources.iter()) {
                let [any, sure, first, last] = present(&mut changes, at, spans);
                if sure && inner.is_some() {
                    visit(source, Found::Inner);
                } else if any {
                    visit(
                        source,
                        Found::Edges(
                            [(edges[0], first), (edges[1], last)]
                                .map(|(edge, there)| middle || there && edge.is_some()),
                        ),
                    );
                }
            }
            Ok(())
        })
    }

    fn record(&self, node: usize) -> Result<Option<InLinks>, Damage> {
        let Some(Page { uid, timestamps, links, changes, .. }) = self.record_of(node)? else { return Ok(None) };
        let record = InLinks { uid, ranges: timestamps, sources: links, changes };
        match record.flaw() {
            Some(flaw) => Err(Damage::Record { part: PART, flaw }),
            None => Ok(Some(record)),
        }
    }

    fn sizes(&self) -> Sizes {
        self.size()
    }
}
