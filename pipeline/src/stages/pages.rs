//! Stage 2: folds captures into pages over time, and requests the UID of every URL that a page names.
//!
//! Reads the capture records of the pages that this worker owns in order of (page, time) and accumulates them
//! ([`crate::stages::pages::accumulator`]). A page that is too large has its captures and no links. An accumulated page
//! waits in a spool, in order of its number on this worker. The fingerprints of the page and of its distinct links go
//! as requests to their owners, where the UIDs will be.
//!
//! Request record: key = fingerprint; payload = [`Request`], each number in LEB128. Spooled page: timestamps, blank
//! captures, statuses, links without URLs, changes, evidence ([`crate::stages::page_record`] without UIDs), number of
//! links of revisits, and data about held links ([`crate::stages::held::links`]). A URL is requested once, however many
//! forms captures spell it in.

pub(crate) mod accumulator;

use crate::Error;
use crate::stages::page_record;
use crate::stages::pages::accumulator::{AccumulatedPage, PageAccumulator};
use crate::stages::records::{Request, form_of, owner, without_form};
use crate::stages::state::BuildState;
use std::cell::RefCell;
use std::rc::Rc;
use timely::worker::Worker;
use webstrata_datasets::Finding;
use webstrata_engine::{Collector, Job, Outbox, RunWriter, Runs, Sorted, Sorter, Stopped, gather, shuffle, wire};

struct PageStage {
    worker: usize,
    captures: Sorted,
    accumulator: PageAccumulator,
    current: Option<u128>,
    page: AccumulatedPage,
    /// The number of the accumulated page and the next slot to ask for.
    asking: Option<(u64, usize)>,
    ended: bool,
    left_out: u64,
    spool: RunWriter,
    record: Vec<u8>,
}

/// The number of requests that are sent at once.
const REQUESTS: usize = 1 << 12;

impl PageStage {
    fn step(&mut self, outbox: &mut Outbox) -> Result<bool, Error> {
        if let Some((number, slot)) = self.asking {
            self.asking = self.ask(number, slot, outbox);
            return Ok(true);
        }
        let next = if self.ended { None } else { self.captures.peek()? };
        let Some((mut key, payload)) = next else {
            self.ended = true;
            return self.finish_page();
        };
        let page = u128::from_be_bytes(wire::take_array(&mut key));
        let time = wire::key_time(wire::take_array(&mut key));
        if self.current.is_none_or(|current| current == page) {
            self.current = Some(page);
            self.accumulator.add(time, payload)?;
            self.captures.next()?;
            return Ok(true);
        }
        self.finish_page()
    }

    /// Spools the current page. Returns `false` if there is no page.
    fn finish_page(&mut self) -> Result<bool, Error> {
        let Some(fingerprint) = self.current.take() else { return Ok(false) };
        self.accumulator.finish(fingerprint, &mut self.page)?;
        let page = &self.page;
        self.left_out += u64::from(page.is_left_out);
        self.record.clear();
        page_record::write_times(&mut self.record, &page.timestamps, &page.blank, &page.statuses);
        page_record::write_forms(&mut self.record, &page.links);
        page_record::write_changes(&mut self.record, &page.changes);
        page_record::write_evidence(&mut self.record, &page.evidence);
        wire::put(&mut self.record, page.revisit_links.len() as u64);
        page.held.write(&mut self.record);
        let number = self.spool.push(&[], &self.record)?;
        self.asking = Some((number, 0));
        Ok(true)
    }

    /// Sends requests for a page, from a slot on. Returns the page and the next slot, or `None` when all requests are
    /// sent.
    fn ask(&mut self, number: u64, from: usize, outbox: &mut Outbox) -> Option<(u64, usize)> {
        let AccumulatedPage { fingerprint, links, revisit_links, held, .. } = &self.page;
        let forms = links.chunk_by(|one, other| without_form(*one) == without_form(*other));
        let urls = forms.map(|forms| without_form(forms[0]));
        let all = if links.iter().all(|&link| form_of(link) == 0) { links.len() } else { urls.clone().count() } as u64;
        let slots = [*fingerprint].into_iter().chain(urls).chain(revisit_links.iter().copied());
        let slots = (0u64..).zip(slots.chain(held.urls.iter().copied()));
        let of_held = 1 + all + revisit_links.len() as u64;
        let is_in = |list: &[u128], url: u128| {
            list.get(list.partition_point(|&link| without_form(link) < url))
                .is_some_and(|&link| without_form(link) == url)
        };
        for (slot, fingerprint) in slots.skip(from).take(REQUESTS) {
            let links = if slot == 0 { all } else { u64::from(slot <= all) };
            let is_again = slot > all
                && (is_in(&self.page.links, fingerprint) || slot >= of_held && is_in(revisit_links, fingerprint));
            Request { worker: self.worker, number, slot, links, is_first: !is_again }.write(&mut self.record);
            let owner = owner(fingerprint, outbox.workers());
            outbox.send(owner, &fingerprint.to_be_bytes(), &self.record);
        }
        let next = from + REQUESTS;
        (next as u64 <= all + (revisit_links.len() + held.urls.len()) as u64).then_some((number, next))
    }
}

/// Accumulates the captures of this worker; see the head of this file.
pub(crate) fn pages(worker: &mut Worker, job: &Job, state: &mut BuildState) -> Result<(), Stopped> {
    let captures = std::mem::take(&mut state.captures);
    let stage = Rc::new(RefCell::new(Some(PageStage {
        worker: worker.index(),
        captures: job.check(Sorted::of(&captures, job.scratch()))?,
        accumulator: PageAccumulator::new(job.budget_beside_record(40), job.scratch()),
        current: None,
        page: AccumulatedPage::default(),
        asking: None,
        ended: false,
        left_out: 0,
        spool: job.check(RunWriter::create("pages", job.scratch()))?,
        record: Vec::new(),
    })));
    let requests = Collector::new(Sorter::new(job.scratch(), "requests", job.budget_beside_record(40)));
    let shared = Rc::clone(&stage);
    let produce = move |outbox: &mut Outbox| match &mut *shared.borrow_mut() {
        Some(stage) => Ok(stage.step(outbox)?),
        None => Ok(false),
    };
    shuffle(worker, job, "pages", produce, requests.consumer())?;
    let stage = stage.take().ok_or(Stopped)?;
    let PageStage { left_out, accumulator: PageAccumulator { older_undated, displaced, .. }, .. } = stage;
    state.row.tally.count_many(Finding::OlderUndated, older_undated);
    state.pages = Runs(vec![job.check(stage.spool.finish())?]);
    state.requests = job.check(requests.into_inner().and_then(Sorter::into_runs))?;
    state.left_out = gather(worker, job, None, &(left_out + older_undated + displaced))?.into_iter().sum();
    Ok(())
}
