//! Strata as a forward link store, and with `backward` as a backward one.

use std::cell::RefCell;

use webstrata_layers::{CaptureTime, InLinks, Page, Window};

use crate::backward::{Backward, Room, Wanted};
use crate::codec::{LinkCodec, Sizes};
use crate::error::Damage;
use crate::store::{BackwardStore, ForwardStore};

use super::times::Captures;
use super::{SCRATCH, Strata};

thread_local! {
    static ROOM: RefCell<Room> = RefCell::default();
}

impl Strata {
    /// Calls `read` with the captures of a node; gives `None` where it has no record.
    fn with_captures<T>(&self, node: usize, read: impl FnOnce(Captures<'_>) -> T) -> Result<Option<T>, Damage> {
        let Some(record) = self.record_of(node)? else { return Ok(None) };
        SCRATCH.with_borrow_mut(|(levels, _)| {
            let Some(own) = self.enough(levels).first_mut() else { return Ok(None) };
            let (_, captures) = self.head(record, 0, &mut own.list, &mut own.events)?;
            Ok(Some(read(captures)))
        })
    }
}

impl ForwardStore for Strata {
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
        visit: &mut dyn FnMut(u64, bool),
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
