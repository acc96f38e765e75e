//! The union of links in any encoding, with times and presence in plain arrays beside it: link stores for encodings
//! without time.
//!
//! ```text
//! length      of the links, in bytes (64 bits)
//! links       the lists of all nodes (`codec`)
//! side        times and presence (`side`)
//! ```
//!
//! An answer decodes the list of a node and goes through its changes. For a window without a known capture, no list is
//! decoded. Encoding holds all lists in memory.

mod side;

use std::iter::Peekable;

use bytes::Bytes;
use webstrata_layers::{CaptureTime, Captures, Change, InLinks, Lifespan, Page, Status, Window, lifespans_of};

use crate::codec::{self, CodecTag};
use crate::union::side::{Side, SideWriter};
use webstrata_cells::coding::sections::{Sections, push_words};
use webstrata_cells::links::backward::{Found, Wanted};
use webstrata_cells::links::codec::LinkCodec;
use webstrata_cells::links::encoding::{BackwardStore, CellShape, ForwardStore};
use webstrata_cells::links::lists::{Lists, Sizes};
use webstrata_cells::links::scratch::StoreScratch;
use webstrata_cells::{Damage, Error, Node, Number};

const PART: &str = "links with plain times";

/// Encodes the records of a cell, in order of nodes.
pub(crate) fn encode(
    tag: CodecTag,
    CellShape { first, nodes, keys, .. }: CellShape<'_>,
    records: impl Iterator<Item = Result<Page<Number>, Error>>,
) -> Result<Vec<u8>, Error> {
    let (mut lists, mut side) = (Lists { first: first.0, ..Lists::default() }, SideWriter::default());
    let pass = |to: usize, lists: &mut Lists, side: &mut SideWriter| {
        while lists.nodes() < to {
            lists.push(&[]);
            side.push(None);
        }
    };
    for page in records {
        let page = page?.renumbered(u64::from);
        pass(usize::try_from(page.uid - first.0).unwrap_or(usize::MAX), &mut lists, &mut side);
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
    first: Number,
    links: Box<dyn LinkCodec>,
    side: Side,
}

impl Union {
    /// Opens the store of a cell of `nodes` nodes. The first node has the number `first`.
    ///
    /// # Errors
    /// Bytes whose parts do not fit together.
    pub fn open(tag: CodecTag, bytes: Bytes, first: Number, nodes: usize) -> Result<Self, Damage> {
        let mut sections = Sections::new(bytes, PART);
        let length = sections.length()?;
        let links = codec::open(tag, sections.take(length, 1)?)?;
        let side = Side::open(sections.rest())?;
        for got in [links.nodes(), side.nodes()] {
            if got != nodes {
                return Err(Damage::Outside { part: PART, value: got as u64, bound: nodes as u64 });
            }
        }
        Ok(Self { first, links, side })
    }

    /// The record of a node; `None` if the node has none.
    fn record_of(&self, Node(node): Node) -> Result<Option<Page<Number>>, Damage> {
        let mut scratch = StoreScratch::default();
        self.side.captures(node, &mut scratch)?;
        if scratch.times.is_empty() {
            return Ok(None);
        }
        let (mut links, changes) = (Vec::new(), self.side.changes(node)?.collect());
        self.links.list(node, &mut scratch, &mut links)?;
        let StoreScratch { times: timestamps, blank, .. } = scratch;
        let page = Page { uid: self.first.0 + node as u64, timestamps, blank, links, changes, statuses: Vec::new() };
        Ok(Some(page.renumbered(Number)))
    }

    fn size(&self) -> Sizes {
        let (Sizes { data, index, tables }, (values, ends)) = (self.links.sizes(), self.side.sizes());
        // The lengths of links and of arrays, the number of nodes and the least time.
        Sizes { data: data + values, index: index + ends, tables: tables + 8 + 16 + 7 * 16 }
    }
}

/// The captures that `scratch` holds.
fn captures_of(scratch: &StoreScratch) -> Captures<'_> {
    Captures { times: &scratch.times, blank: &scratch.blank, statuses: &[] }
}

/// Whether the next link, of index `link`, is present in each of the stretches of captures, given as first and last.
#[inline]
fn present<const N: usize>(
    changes: &mut Peekable<impl Iterator<Item = Change>>,
    link: u32,
    stretches: [(u32, u32); N],
) -> [bool; N] {
    let mut is_present = [true; N];
    // Damaged changes may come in any order. A change of an earlier link is consumed here.
    while let Some(change) = changes.next_if(|change| change.link <= link) {
        for (is_present, (first, last)) in is_present.iter_mut().zip(stretches) {
            if change.capture <= first {
                *is_present = !*is_present;
            } else if change.capture <= last {
                *is_present = true;
            }
        }
    }
    is_present
}

impl ForwardStore for Union {
    fn has(&self, Node(node): Node) -> Result<bool, Damage> {
        Ok(self.side.times(node)?.len() > 0)
    }

    fn window(
        &self,
        Node(node): Node,
        window: Window,
        scratch: &mut StoreScratch,
        links: &mut Vec<Number>,
    ) -> Result<(), Damage> {
        links.clear();
        self.side.captures(node, scratch)?;
        let Some(span) = captures_of(scratch).selected(window) else { return Ok(()) };
        Number::fill(links, |links| self.links.list(node, scratch, links))?;
        let mut changes = self.side.changes(node)?.peekable();
        if changes.len() > 0 {
            let mut at = 0..;
            links.retain(|_| present(&mut changes, at.next().unwrap_or(u32::MAX), [span])[0]);
        }
        Ok(())
    }

    fn captures(
        &self,
        Node(node): Node,
        scratch: &mut StoreScratch,
        captures: &mut Vec<CaptureTime>,
    ) -> Result<(), Damage> {
        captures.clear();
        self.side.captures(node, scratch)?;
        captures.extend(scratch.times.iter().map(|&time| CaptureTime { time, known: true, status: Status::OK }));
        for &at in &scratch.blank {
            let bound = scratch.times.len() as u64;
            let outside = Damage::Outside { part: PART, value: u64::from(at), bound };
            captures.get_mut(at as usize).ok_or(outside)?.known = false;
        }
        Ok(())
    }

    fn captured(&self, Node(node): Node, (from, to): (i64, i64), _: &mut StoreScratch) -> Result<bool, Damage> {
        Ok(self.side.times(node)?.any(|time| from <= time && time <= to))
    }

    fn lifespans(
        &self,
        Node(node): Node,
        scratch: &mut StoreScratch,
        lifespans: &mut Vec<Lifespan<Number>>,
    ) -> Result<(), Damage> {
        lifespans.clear();
        self.side.captures(node, scratch)?;
        let mut links = Vec::new();
        Number::fill(&mut links, |links| self.links.list(node, scratch, links))?;
        lifespans_of(captures_of(scratch), &links, self.side.changes(node)?, lifespans);
        Ok(())
    }

    fn page(&self, node: Node) -> Result<Option<Page<Number>>, Damage> {
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
        Node(node): Node,
        select_ranges: &dyn Fn(&[i64]) -> Option<Wanted>,
        scratch: &mut StoreScratch,
        visit: &mut dyn FnMut(Number, Found),
    ) -> Result<(), Damage> {
        self.side.captures(node, scratch)?;
        let Some(selected) = select_ranges(&scratch.times) else { return Ok(()) };
        let mut sources = std::mem::take(&mut scratch.links);
        self.links.list(node, scratch, &mut sources)?;
        let index = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let span = |(first, last)| (index(first), index(last));
        let inner = selected.inner.filter(|(first, last)| first <= last);
        let (edges, middle) = selected.edges();
        let edge = |edge: Option<usize>| edge.map_or((0, 0), |range| span((range, range)));
        let stretches = [span(selected.ranges), inner.map_or((0, 0), span), edge(edges[0]), edge(edges[1])];
        let mut changes = self.side.changes(node)?.peekable();
        for (at, &source) in (0..).zip(&sources) {
            let [any, sure, first, last] = present(&mut changes, at, stretches);
            if sure && inner.is_some() {
                visit(Number(source), Found::Inner);
            } else if any {
                let in_edges = [(edges[0], first), (edges[1], last)];
                let in_edges = in_edges.map(|(edge, is_present)| middle || is_present && edge.is_some());
                visit(Number(source), Found::Edges(in_edges));
            }
        }
        scratch.links = sources;
        Ok(())
    }

    fn record(&self, node: Node) -> Result<Option<InLinks<Number>>, Damage> {
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
