//! Stage 2: captures to pages over time, and a request for the UID of every URL that a page names.
//!
//! Reads the capture records of the pages that this worker owns in order of (page, time) and folds them
//! ([`crate::fold`]). A folded page waits in a spool, in order of its number on this worker; the fingerprints of the
//! page and of its distinct links go as requests to their owners, where the UIDs will be.
//!
//! Request record: key = fingerprint; payload = worker, number of the page, slot (0 is the page itself, n + 1 its n-th
//! link), each LEB128.
//! Spooled page: number of timestamps, timestamps, unknown captures, number of links, changes ([`crate::page_record`]
//! without UIDs).

use crate::external_sort::{Collector, Sorted, Sorter};
use crate::fold::{Fold, FoldedPage};
use crate::ingest::owner;
use crate::job::{Job, Stopped};
use crate::runs::{RunWriter, Runs};
use crate::shuffle::{Outbox, shuffle};
use crate::state::State;
use crate::{Error, page_record, wire};
use std::cell::RefCell;
use std::rc::Rc;
use timely::worker::Worker;

struct Folding {
    worker: usize,
    captures: Sorted,
    fold: Fold,
    current: Option<u128>,
    page: FoldedPage,
    spool: RunWriter,
    record: Vec<u8>,
}

impl Folding {
    fn step(&mut self, outbox: &mut Outbox) -> Result<bool, Error> {
        let Some((mut key, payload)) = self.captures.next()? else {
            self.finish_page(outbox)?;
            return Ok(false);
        };
        let page = u128::from_be_bytes(wire::take_array(&mut key));
        let time = wire::key_time(wire::take_array(&mut key));
        if self.current == Some(page) {
            self.fold.add(page, time, payload)?;
            return Ok(true);
        }
        let payload = payload.to_vec();
        self.finish_page(outbox)?;
        self.current = Some(page);
        self.fold.add(page, time, &payload)?;
        Ok(true)
    }

    fn finish_page(&mut self, outbox: &mut Outbox) -> Result<(), Error> {
        let Some(fingerprint) = self.current.take() else { return Ok(()) };
        self.fold.finish(fingerprint, &mut self.page);
        let page = &self.page;
        self.record.clear();
        page_record::write_times(&mut self.record, &page.timestamps, &page.unknown);
        wire::put(&mut self.record, page.links.len() as u64);
        page_record::write_changes(&mut self.record, &page.changes);
        let number = self.spool.push(&[], &self.record)?;
        for (slot, fingerprint) in (0u64..).zip(std::iter::once(&fingerprint).chain(&page.links)) {
            self.record.clear();
            wire::put(&mut self.record, self.worker as u64);
            wire::put(&mut self.record, number);
            wire::put(&mut self.record, slot);
            let owner = owner(*fingerprint, outbox.workers());
            outbox.send(owner, &fingerprint.to_be_bytes(), &self.record);
        }
        Ok(())
    }
}

/// Folds the captures of this worker; see the head of this file.
pub(crate) fn pages(worker: &mut Worker, job: &Job, state: &mut State) -> Result<(), Stopped> {
    let captures = std::mem::take(&mut state.captures);
    let folding = Rc::new(RefCell::new(Some(Folding {
        worker: worker.index(),
        captures: job.check(Sorted::of(&captures, job.scratch()))?,
        fold: Fold::new(job.budget(40)),
        current: None,
        page: FoldedPage::default(),
        spool: job.check(RunWriter::create("pages", job.scratch()))?,
        record: Vec::new(),
    })));
    let requests = Collector::new(Sorter::new(job.scratch(), "requests", job.budget(40)));
    let fold = Rc::clone(&folding);
    let produce =
        move |outbox: &mut Outbox| fold.borrow_mut().as_mut().map_or(Ok(false), |folding| folding.step(outbox));
    shuffle(worker, job, "pages", produce, requests.consumer())?;
    let folding = folding.take().ok_or(Stopped)?;
    state.pages = Runs(vec![job.check(folding.spool.finish())?]);
    state.requests = job.check(requests.into_inner().and_then(Sorter::into_runs))?;
    Ok(())
}
