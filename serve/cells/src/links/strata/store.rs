//! Strata as a forward link store, and with `backward` as a backward one.

use std::cell::RefCell;

use webstrata_layers::{CaptureTime, InLinks, Lifespan, Page, Window, lifespans_of};

use crate::error::Damage;
use crate::links::backward::{AnswerBuffers, Backward, Found, Wanted};
use crate::links::encoding::{BackwardStore, ForwardStore};
use crate::links::lists::{LinkCodec, Sizes};

use super::times::Captures;
use super::{PART, SCRATCH, Strata, presence};

thread_local! {
    static ROOM: RefCell<AnswerBuffers> = RefCell::default();
    /// Links of a page, and the times of its known captures.
    static LIVES: RefCell<(Vec<u64>, Vec<i64>)> = RefCell::default();
}

impl Strata {
    /// Calls `read` with the captures of a node; gives `None` where it has no record.
    fn with_captures<T>(&self, node: usize, read: impl FnOnce(Captures<'_>) -> T) -> Result<Option<T>, Damage> {
        let Some(place) = self.place_of(node)? else { return Ok(None) };
        SCRATCH.with_borrow_mut(|(levels, _)| {
            let Some(own) = self.enough(levels).first_mut() else { return Ok(None) };
            let (_, captures) = self.head(place, &mut own.list, &mut own.events)?;
            Ok(Some(read(captures)))
        })
    }

    /// Appends the runs of phases of each link, as times; `false`, and none, where there are too many phases for masks.
    fn lifespans_by_masks(&self, node: usize, spans: &mut Vec<Lifespan>) -> Result<bool, Damage> {
        let Some(place) = self.place_of(node)? else { return Ok(true) };
        SCRATCH.with_borrow_mut(|(levels, masks)| {
            let Some((own, below)) = self.enough(levels).split_first_mut() else { return Ok(false) };
            let (head, captures) = self.head(place, &mut own.list, &mut own.events)?;
            own.phases.set(captures, &own.events);
            LIVES.with_borrow_mut(|(links, known)| {
                if !self.masks_after(head, 0, (&mut own.phases, below), links, masks)? {
                    return Ok(false);
                }
                known.clear();
                let mut unknown = captures.unknown.iter().peekable();
                let each = (0..).zip(captures.times);
                known.extend(each.filter(|(at, _)| unknown.next_if_eq(&at).is_none()).map(|(_, &time)| time));
                // The known capture with which a phase begins; after the last phase, the end.
                let begin = |phase: usize| match phase.checked_sub(1) {
                    None => Some(0),
                    Some(at) if at == own.events.len() => Some(known.len()),
                    Some(at) => own.events.get(at).map(|&event| event as usize),
                };
                let time = |at: Option<usize>| at.and_then(|at| known.get(at).copied());
                for (&link, &mask) in links.iter().zip(masks.iter()) {
                    let mut rest = mask & presence::full(own.events.len() + 1);
                    while rest != 0 {
                        let from = rest.trailing_zeros();
                        let to = from + (rest >> from).trailing_ones();
                        let last = begin(to as usize).and_then(|end| end.checked_sub(1));
                        let ends = time(begin(from as usize)).zip(time(last)).ok_or(Damage::Ends { part: PART })?;
                        spans.push(Lifespan { link, first: ends.0, last: ends.1 });
                        rest &= u64::MAX.checked_shl(to).unwrap_or(0);
                    }
                }
                Ok(true)
            })
        })
    }
}

impl ForwardStore for Strata {
    fn has(&self, node: usize) -> Result<bool, Damage> {
        Ok(self.place_of(node)?.is_some())
    }

    fn window(&self, node: usize, window: Window, links: &mut Vec<u64>) -> Result<(), Damage> {
        Strata::window(self, node, window, links)
    }

    fn captures(&self, node: usize, captures: &mut Vec<CaptureTime>) -> Result<(), Damage> {
        captures.clear();
        let read = |own: Captures<'_>| {
            let known = |at: u32| own.unknown.binary_search(&at).is_err();
            captures.extend((0..).zip(own.times).map(|(at, &time)| CaptureTime { time, known: known(at) }));
        };
        self.with_captures(node, read).map(|_| ())
    }

    fn captured(&self, node: usize, from: i64, to: i64) -> Result<bool, Damage> {
        let read = |own: Captures<'_>| {
            let next = own.times.partition_point(|&time| time < from);
            own.times.get(next).is_some_and(|&time| time <= to)
        };
        Ok(self.with_captures(node, read)?.unwrap_or(false))
    }

    fn lifespans(&self, node: usize, spans: &mut Vec<Lifespan>) -> Result<(), Damage> {
        spans.clear();
        if !self.lifespans_by_masks(node, spans)?
            && let Some(page) = Strata::page(self, node)?
        {
            lifespans_of(&page.timestamps, &page.unknown, &page.links, page.changes.iter().copied(), spans);
        }
        Ok(())
    }

    fn page(&self, node: usize) -> Result<Option<Page>, Damage> {
        Strata::page(self, node)
    }

    fn sizes(&self) -> Sizes {
        LinkCodec::sizes(self)
    }
}

impl BackwardStore for Backward {
    fn sources(
        &self,
        node: usize,
        wanted: &dyn Fn(&[i64]) -> Option<Wanted>,
        visit: &mut dyn FnMut(u64, Found),
    ) -> Result<(), Damage> {
        ROOM.with_borrow_mut(|room| Backward::sources(self, node, room, wanted, visit))
    }

    fn record(&self, node: usize) -> Result<Option<InLinks>, Damage> {
        Backward::record(self, node)
    }

    fn sizes(&self) -> Sizes {
        Backward::sizes(self)
    }
}
