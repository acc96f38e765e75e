//! Stage 2: captures to pages over time, and a request for the UID of every URL that a page names.
//!
//! Reads the capture records of the pages that this worker owns in order of (page, time) and folds them
//! ([`crate::fold`]). A folded page waits in a spool, in order of its number on this worker; the fingerprints of the
//! page and of its distinct links go as requests to their owners, where the UIDs will be.
//!
//! Request record: key = fingerprint; payload = [`Request`], each number in LEB128.
//! Spooled page: timestamps, unknown captures, number of links, changes, evidence ([`crate::page_record`] without UIDs),
//! number of links that revisits have.

use crate::external_sort::{Collector, Sorted, Sorter};
use crate::fold::{Fold, FoldedPage};
use crate::ingest::owner;
use crate::job::{Job, Stopped};
use crate::runs::{RunReader, RunWriter, Runs};
use crate::shuffle::{Outbox, shuffle};
use crate::state::State;
use crate::{Error, page_record, wire};
use std::cell::RefCell;
use std::rc::Rc;
use timely::worker::Worker;
use webstrata_datasets::Finding;
use webstrata_layers::url_of_key;

/// A request for the UID of a URL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Request {
    /// The worker that has the page.
    pub(crate) worker: usize,
    /// The number of the page on that worker.
    pub(crate) number: u64,
    /// 0 is the page itself, n + 1 its n-th link; after these come the links that only revisits have.
    pub(crate) slot: u64,
    /// For the page itself: how many links it has; else 1 for a link of a capture, 0 for one of a revisit.
    pub(crate) links: u64,
}

impl Request {
    fn write(self, out: &mut Vec<u8>) {
        out.clear();
        wire::put(out, self.worker as u64);
        wire::put(out, self.number);
        wire::put(out, self.slot);
        // One link is the rule, and takes no byte.
        if self.slot == 0 || self.links == 0 {
            wire::put(out, self.links);
        }
    }

    pub(crate) fn read(mut bytes: &[u8]) -> Self {
        let (worker, number) = (wire::take_usize(&mut bytes), wire::take(&mut bytes));
        let slot = wire::take(&mut bytes);
        let links = if slot > 0 && bytes.is_empty() { 1 } else { wire::take(&mut bytes) };
        Request { worker, number, slot, links }
    }

    /// What the URL has to do for this request: an in-link, or its out-links.
    pub(crate) fn weight(self) -> u64 {
        self.links
    }
}

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
        page_record::write_evidence(&mut self.record, &page.evidence);
        wire::put(&mut self.record, page.own.len() as u64);
        let number = self.spool.push(&[], &self.record)?;
        let all = page.links.len() as u64;
        for (slot, fingerprint) in (0u64..).zip([fingerprint].iter().chain(&page.links).chain(&page.own)) {
            let links = if slot == 0 { all } else { u64::from(slot <= all) };
            Request { worker: self.worker, number, slot, links }.write(&mut self.record);
            let owner = owner(*fingerprint, outbox.workers());
            outbox.send(owner, &fingerprint.to_be_bytes(), &self.record);
        }
        Ok(())
    }
}

/// The URL of a fingerprint, for messages: looked for in all that workers of this process have read.
fn url_of(fingerprint: u128, job: &Job, workers: usize) -> Option<String> {
    let states = (0..workers).filter_map(|worker| job.scratch().load(worker, 1));
    for run in states.flat_map(|state| state.urls.0) {
        let mut urls = RunReader::open(&run, job.scratch()).ok()?;
        while let Some((key, payload)) = urls.next().ok()? {
            if payload == fingerprint.to_be_bytes() {
                return url_of_key(key);
            }
        }
    }
    None
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
    let names = (job.clone(), worker.peers());
    let produce = move |outbox: &mut Outbox| {
        let Some(folding) = &mut *fold.borrow_mut() else { return Ok(false) };
        folding.step(outbox).map_err(|error| match error {
            Error::PageTooLarge { page, captures, bytes } => {
                let url = folding.current.and_then(|fingerprint| url_of(fingerprint, &names.0, names.1));
                Error::PageTooLarge { page: url.unwrap_or(page), captures, bytes }
            }
            error => error,
        })
    };
    shuffle(worker, job, "pages", produce, requests.consumer())?;
    let folding = folding.take().ok_or(Stopped)?;
    state.tally.count_many(Finding::OlderUndated, folding.fold.older_undated);
    state.pages = Runs(vec![job.check(folding.spool.finish())?]);
    state.requests = job.check(requests.into_inner().and_then(Sorter::into_runs))?;
    Ok(())
}
