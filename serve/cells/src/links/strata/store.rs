//! Strata as a forward link store, and, with `backward`, as a backward one.

use std::ops::Range;

use webstrata_layers::{CaptureTime, Captures, InLinks, Lifespan, Page, Spans, Window};

use crate::error::Damage;
use crate::links::backward::{Backward, Found, Wanted};
use crate::links::codec::LinkCodec;
use crate::links::encoding::{BackwardStore, ForwardStore};
use crate::links::lists::Sizes;
use crate::links::scratch::StoreScratch;
use crate::numbers::{Node, Number};

use super::{PART, Strata, StrataBuffers, presence};

impl Strata {
    /// Calls `read` with the captures of a node. Returns `None` if the node has no record.
    fn with_captures<T>(
        &self,
        node: Node,
        scratch: &mut StoreScratch,
        read: impl FnOnce(Captures<'_>) -> T,
    ) -> Result<Option<T>, Damage> {
        let Some(record) = self.find_record(node.0)? else { return Ok(None) };
        let Some(level) = self.enough(&mut scratch.strata.levels).first_mut() else { return Ok(None) };
        let (_, captures) = self.head(record, &mut level.list, &mut level.events)?;
        Ok(Some(read(captures)))
    }
}

/// Appends the lifespans of links, each with its mask, from runs of phases. `known` is a buffer.
fn lifespans_of_masks<'a>(
    captures: Captures<'_>,
    events: &[u32],
    links: impl Iterator<Item = (&'a u64, &'a u64)>,
    known: &mut Vec<i64>,
    lifespans: &mut Vec<Lifespan<Number>>,
) -> Result<(), Damage> {
    known.clear();
    let mut blank = captures.blank.iter().peekable();
    let each = (0..).zip(captures.times);
    known.extend(each.filter(|(at, _)| blank.next_if_eq(&at).is_none()).map(|(_, &time)| time));
    // The known capture with which a phase begins; after the last phase, the number of known captures.
    let begin = |phase: usize| match phase.checked_sub(1) {
        None => Some(0),
        Some(at) if at == events.len() => Some(known.len()),
        Some(at) => events.get(at).map(|&event| event as usize),
    };
    let time = |at: Option<usize>| at.and_then(|at| known.get(at).copied());
    for (&link, &mask) in links {
        let mut rest = mask & presence::full(events.len() + 1);
        while rest != 0 {
            let from = rest.trailing_zeros();
            let to = from + (rest >> from).trailing_ones();
            let last = begin(to as usize).and_then(|end| end.checked_sub(1));
            let ends = time(begin(from as usize)).zip(time(last)).ok_or(Damage::Ends { part: PART })?;
            lifespans.push(Lifespan { link: Number(link), first: ends.0, last: ends.1 });
            rest &= u64::MAX.checked_shl(to).unwrap_or(0);
        }
    }
    Ok(())
}

impl LinkCodec for Strata {
    fn nodes(&self) -> usize {
        self.nodes
    }

    fn list(&self, node: usize, scratch: &mut StoreScratch, links: &mut Vec<u64>) -> Result<(), Damage> {
        links.clear();
        let Some(record) = self.find_record(node)? else { return Ok(()) };
        self.links_of(record, 0, self.enough(&mut scratch.strata.levels), links)
    }

    fn scan(&self, visit: &mut dyn FnMut(usize, &[u64])) -> Result<(), Damage> {
        self.scan_lists(visit)
    }

    fn sizes(&self) -> Sizes {
        Strata::sizes(self)
    }
}

impl ForwardStore for Strata {
    fn has(&self, node: Node) -> Result<bool, Damage> {
        Ok(self.find_record(node.0)?.is_some())
    }

    fn window(
        &self,
        node: Node,
        window: Window,
        scratch: &mut StoreScratch,
        links: &mut Vec<Number>,
    ) -> Result<(), Damage> {
        Number::fill(links, |links| Strata::window(self, node.0, window, &mut scratch.strata, links))
    }

    fn ever_links(&self, node: Node, link: Number, scratch: &mut StoreScratch) -> Result<bool, Damage> {
        let Some(record) = self.find_record(node.0)? else { return Ok(false) };
        Ok(scratch.near.list(self, record)?.binary_search(&link.0).is_ok())
    }

    fn links_in(&self, node: Node, link: Number, window: Window, scratch: &mut StoreScratch) -> Result<bool, Damage> {
        let Some(record) = self.find_record(node.0)? else { return Ok(false) };
        if let Some(links) = scratch.near.links_in(self, record, link.0, window)? {
            return Ok(links);
        }
        let mut links = Vec::new();
        self.window(node.0, window, &mut scratch.strata, &mut links)?;
        Ok(links.binary_search(&link.0).is_ok())
    }

    fn captures(&self, node: Node, scratch: &mut StoreScratch, captures: &mut Vec<CaptureTime>) -> Result<(), Damage> {
        captures.clear();
        let read = |found: Captures<'_>| {
            captures.extend(found.iter());
        };
        self.with_captures(node, scratch, read).map(|_| ())
    }

    fn captured(&self, node: Node, (from, to): (i64, i64), scratch: &mut StoreScratch) -> Result<bool, Damage> {
        let read = |found: Captures<'_>| {
            let next = found.times.partition_point(|&time| time < from);
            found.times.get(next).is_some_and(|&time| time <= to)
        };
        Ok(self.with_captures(node, scratch, read)?.unwrap_or(false))
    }

    fn lifespans(
        &self,
        node: Node,
        scratch: &mut StoreScratch,
        lifespans: &mut Vec<Lifespan<Number>>,
    ) -> Result<(), Damage> {
        lifespans.clear();
        let Some(record) = self.find_record(node.0)? else { return Ok(()) };
        let StrataBuffers { levels, masks, links, known } = &mut scratch.strata;
        let Some((level, below)) = self.enough(levels).split_first_mut() else { return Ok(()) };
        let (head, captures) = self.head(record, &mut level.list, &mut level.events)?;
        level.phases.set(captures, &level.events);
        if self.masks_after(head, 0, (&mut level.phases, below), links, masks)?.0 {
            return lifespans_of_masks(captures, &level.events, links.iter().zip(&*masks), known, lifespans);
        }
        if let Some(page) = ForwardStore::page(self, node)? {
            Spans::Lifespans.of_page(&page, lifespans);
        }
        Ok(())
    }

    fn lifespans_within(
        &self,
        node: Node,
        ranges: &[Range<Number>],
        scratch: &mut StoreScratch,
        (lifespans, captures): (&mut Vec<Lifespan<Number>>, &mut Vec<CaptureTime>),
    ) -> Result<(), Damage> {
        lifespans.clear();
        captures.clear();
        let Some(record) = self.find_record(node.0)? else { return Ok(()) };
        let StoreScratch { near, strata, .. } = scratch;
        let found = near.record(self, record)?;
        captures.extend(found.captures().iter());
        if found.has_masks {
            let within = |range: &Range<Number>| {
                let first = found.links.partition_point(|&link| Number(link) < range.start);
                first..first + found.links[first..].partition_point(|&link| Number(link) < range.end)
            };
            let places = ranges.iter().map(within);
            let links = places.flat_map(|places| found.links[places.clone()].iter().zip(&found.masks[places]));
            return lifespans_of_masks(found.captures(), &found.events, links, &mut strata.known, lifespans);
        }
        if let Some(page) = ForwardStore::page(self, node)? {
            Spans::Lifespans.of_page(&page, lifespans);
            lifespans.retain(|lifespan| ranges.iter().any(|range| range.contains(&lifespan.link)));
        }
        Ok(())
    }

    fn page(&self, node: Node) -> Result<Option<Page<Number>>, Damage> {
        Ok(Strata::page(self, node.0)?.map(|page| page.renumbered(Number)))
    }

    fn sizes(&self) -> Sizes {
        Strata::sizes(self)
    }
}

impl BackwardStore for Backward {
    fn sources(
        &self,
        node: Node,
        select_ranges: &dyn Fn(&[i64]) -> Option<Wanted>,
        scratch: &mut StoreScratch,
        visit: &mut dyn FnMut(Number, Found),
    ) -> Result<(), Damage> {
        Backward::sources(self, node, (&mut scratch.strata, &mut scratch.answer), select_ranges, visit)
    }

    fn each_source(&self, node: Node, scratch: &mut StoreScratch, visit: &mut dyn FnMut(Number)) -> Result<(), Damage> {
        let mut ranks = std::mem::take(&mut scratch.links);
        let read = self.each_source(node, scratch, &mut ranks, visit);
        scratch.links = ranks;
        read
    }

    fn each_source_of(
        &self,
        nodes: Range<Node>,
        scratch: &mut StoreScratch,
        visit: &mut dyn FnMut(Number),
    ) -> Result<(), Damage> {
        Backward::each_source_of(self, nodes, scratch, visit)
    }

    fn record(&self, node: Node) -> Result<Option<InLinks<Number>>, Damage> {
        Backward::record(self, node)
    }

    fn sizes(&self) -> Sizes {
        Backward::sizes(self)
    }
}
