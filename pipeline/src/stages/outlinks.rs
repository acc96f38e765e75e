//! Stage 6: writes pages in order of UID to the layers OL, TS, BV and RV (Avcular & Suel 2011, section 4).
//!
//! Pages arrive formed ([`webstrata_layers::record::form`]) and stay formed until they are written.
//!
//! Every worker writes its partitions one after the other. A partition without pages has files without rows. While a
//! page is in memory, each of its links goes to the worker that writes the in-links of the target.
//!
//! In-link record: key = UID of the target (8 bytes), UID of the page (8 bytes); payload = starts of the time ranges in
//! which a capture of the page had the link, ascending: the first as [`wire::put_signed`] days, then gaps.

mod kept_out;
mod revisits;

use crate::Error;
use crate::meaning::Digests;
use crate::row::{Offsets, partition_number, url_of};
use crate::stages::held::links::{HeldLink, is_held};
use crate::stages::held::{links, pages, push_links};
use crate::stages::records::{Day, append_starts};
use crate::stages::state::BuildState;
use crate::stages::{large_pages, page_record};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use timely::worker::Worker;
use webstrata_datasets::{Finding, Tally};
use webstrata_engine::{Collector, Context, Outbox, Sorted, Sorter, Stopped, meter, shuffle, wire};
use webstrata_layers::record::form;
use webstrata_layers::record::presence::intervals;
use webstrata_layers::{
    Counts, Evidence, FileEntry, Links, OutlinksWriter, Page, RangeLength, Reader, Removals, RowDir, Uid,
};

struct Writing {
    pages: Sorted,
    row: RowDir,
    /// The store that the row is added to.
    base: Option<Arc<Reader>>,
    records: Offsets,
    current: Option<(usize, OutlinksWriter)>,
    /// This worker's partitions that have not begun, the next partition last.
    waiting: Vec<usize>,
    files: Vec<FileEntry>,
    work: BTreeMap<u32, u64>,
    counts: Counts,
    /// The number of captures that are revisits of other URLs.
    elsewhere: u64,
    /// Whether a revisit lost links that were lent to it.
    displaces: bool,
    /// The number of captures that the store already has.
    stored: u64,
    page: Page,
    evidence: Evidence,
    /// If links are held: the key of the page, and the links that the store has held of the page.
    key: Vec<u8>,
    held: Vec<HeldLink>,
    /// The links that are held from now on.
    held_links: Sorter,
    ranges: Ranges,
    /// Whether in-links of the current page were not sent yet.
    is_sending: bool,
    origin: Origin,
    /// The UIDs of this row's URLs.
    offsets: Offsets,
    tally: Tally,
    periods: kept_out::Periods,
}

/// The source of the pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Inputs: captures that the store already has are left out, and revisits get their links. The row keeps these
    /// digests.
    Inputs(Digests),
    /// The store: captures are written as they are.
    Store,
}

/// The approximate number of bytes of in-links that are sent at once.
const SENT_BYTES: usize = 64 << 10;

/// Buffers of pages with more captures than this are freed, because the row group with such a page takes much more
/// memory.
const KEPT_CAPTURES: usize = 1 << 18;

impl Writing {
    fn begin_next(&mut self) -> Result<bool, Error> {
        if let Some((_, writer)) = self.current.take() {
            self.files.extend(writer.finish()?);
        }
        let Some(partition) = self.waiting.pop() else { return Ok(false) };
        self.current = Some((partition, OutlinksWriter::create(&self.row, partition_number(partition)?)?));
        Ok(true)
    }

    fn step(&mut self, outbox: &mut Outbox) -> Result<bool, Error> {
        if self.is_sending {
            self.send_in_links(outbox);
            return Ok(true);
        }
        let Some((mut uid, payload)) = self.pages.next()? else { return Ok(false) };
        self.page.uid = wire::take_uid(&mut uid);
        let rest = page_record::read(payload, &mut self.page, &mut self.evidence);
        links::read(rest, &mut self.key, &mut self.held);
        if !self.add()? {
            return Ok(true);
        }
        let partition = self.records.of(self.page.uid);
        while self.current.as_ref().is_none_or(|current| current.0 != partition) {
            if !self.begin_next()? {
                return Err(Error::Internal("a page of a partition that another worker writes"));
            }
        }
        self.evidence.forms = form::encode(&self.page);
        if self.origin == Origin::Inputs(Digests::None) {
            self.evidence.forget_settled(&self.page.blank);
        }
        let plain = match form::plain(&self.page) {
            Cow::Owned(plain) => Some(plain),
            Cow::Borrowed(_) => None,
        };
        self.page = plain.unwrap_or_else(|| std::mem::take(&mut self.page));
        if let Some((_, writer)) = &mut self.current {
            writer.push(&self.page, &self.evidence)?;
        }
        self.elsewhere += elsewhere(&self.evidence);
        *self.work.entry(partition_number(partition)?).or_default() += self.page.links.len() as u64;
        self.counts.add_page(&self.page);
        self.ranges.begin(&self.page);
        self.is_sending = true;
        Ok(true)
    }

    /// Turns the page into the part that the row must contain. Returns `false` if the row needs nothing of the page.
    fn add(&mut self) -> Result<bool, Error> {
        if self.origin == Origin::Store {
            return self.check();
        }
        if self.may_hold() {
            return self.add_held();
        }
        let Writing { page, evidence, base, .. } = self;
        let base = base.as_ref().filter(|base| page.uid.0 < base.urls());
        let is_apart = base.map_or(Ok(true), |base| base.stands_apart(page.uid, &page.timestamps))?;
        let is_whole = evidence.revisits.is_empty() && is_apart;
        if is_whole {
            return self.check();
        }
        let stored = base.map_or(Ok(None), |base| base.formed_page(page.uid))?;
        let added = revisits::add(stored.as_ref().map(|(page, evidence)| (page, evidence)), (page, evidence));
        self.stored += added.stored;
        self.displaces |= added.displaces;
        let is_new = added.page.is_some();
        if let Some(new) = added.page {
            (*page, *evidence) = new;
            self.keep_out()?;
            self.check()?;
        }
        Ok(is_new)
    }

    /// Whether a link of the page is held, or was held.
    fn may_hold(&self) -> bool {
        let of_revisits = self.evidence.revisits.iter().flat_map(|revisit| &revisit.links);
        let is_some_held = || self.page.links.iter().chain(of_revisits).any(|&link| is_held(link));
        !self.key.is_empty() && (!self.held.is_empty() || is_some_held())
    }

    /// Like `add`, for a page with held links: joins the page with its held links, and leaves out the links that are
    /// still held.
    fn add_held(&mut self) -> Result<bool, Error> {
        let mut released: Vec<Uid> = self.held.iter().map(|held| held.link).filter(|&link| !is_held(link)).collect();
        if self.page.timestamps.is_empty() && released.is_empty() {
            push_links(&mut self.held_links, &self.key, &self.held)?;
            return Ok(false);
        }
        released.sort_unstable();
        let base = self.base.as_ref().filter(|base| self.page.uid.0 < base.urls());
        let stored = base.map_or(Ok(None), |base| base.formed_page(self.page.uid))?;
        let stored = stored.map(|stored| pages::put_in(stored, &self.held));
        let stored = stored.as_ref().map(|(page, evidence)| (page, evidence));
        let added = revisits::add_and_release(stored, (&self.page, &self.evidence), &released);
        self.stored += added.stored;
        self.displaces |= added.displaces;
        let keeps_digests = self.origin != Origin::Inputs(Digests::None);
        if let Some((mut page, mut evidence)) = added.whole.filter(|(page, said)| !large_pages::is_left_out(page, said))
        {
            // A payload is found by its digest.
            evidence.payloads.retain(|_| keeps_digests);
            let held = pages::take_out(&mut page, &mut evidence, is_held);
            push_links(&mut self.held_links, &self.key, &held)?;
        }
        let is_new = added.page.is_some();
        if let Some(new) = added.page {
            (self.page, self.evidence) = new;
            self.keep_out()?;
            self.check()?;
            pages::take_out(&mut self.page, &mut self.evidence, is_held);
        }
        Ok(is_new)
    }

    /// Keeps links that were taken out of the store out of the revisits of the page.
    fn keep_out(&mut self) -> Result<(), Error> {
        let Writing { page, evidence, row, base, offsets, periods, tally, .. } = self;
        let taken = periods.keep_out(page, evidence, |uid| url_of(row, base.as_deref(), offsets, uid))?;
        tally.count_many(Finding::RemovedLink, taken);
        Ok(())
    }

    /// Leaves out the links of a page that is too large.
    fn check(&mut self) -> Result<bool, Error> {
        let urls = (&self.row, self.base.as_deref(), &self.offsets);
        large_pages::check(&mut self.page, &mut self.evidence, &mut self.tally, urls)?;
        Ok(true)
    }

    /// Sends some of the in-links of the page.
    fn send_in_links(&mut self, outbox: &mut Outbox) {
        let Writing { page, ranges, records, .. } = self;
        let mut key = [0; 16];
        key[8..].copy_from_slice(&page.uid.0.to_be_bytes());
        let mut sent = 0;
        while sent < SENT_BYTES {
            let Some((target, starts)) = ranges.next(page) else {
                self.is_sending = false;
                if page.timestamps.len() > KEPT_CAPTURES {
                    (self.page, self.ranges) = (Page::default(), Ranges::new(ranges.length));
                }
                return;
            };
            key[..8].copy_from_slice(&target.0.to_be_bytes());
            let worker = Offsets::inlinks_worker(records.of(target), outbox.workers());
            outbox.send(worker, &key, starts);
            sent += key.len() + starts.len();
        }
    }
}

/// Returns the number of captures that are revisits of other URLs.
pub(crate) fn elsewhere(evidence: &Evidence) -> u64 {
    evidence.revisits.iter().filter(|revisit| revisit.elsewhere).count() as u64
}

/// Finds the time ranges of the links of a page, one after the other.
pub(crate) struct Ranges {
    length: RangeLength,
    /// The start of the time range of each capture of the page; `None` for blank captures.
    ranges: Vec<Option<Day>>,
    /// The starts of the time ranges of a link that is in all captures, then those of the current link.
    starts: Vec<u8>,
    in_all: usize,
    /// The next link, and its first change.
    link: usize,
    change: usize,
}

impl Ranges {
    pub(crate) fn new(length: RangeLength) -> Self {
        Ranges { length, ranges: Vec::new(), starts: Vec::new(), in_all: 0, link: 0, change: 0 }
    }

    /// Begins a page.
    pub(crate) fn begin(&mut self, page: &Page) {
        let Ranges { length, ranges, starts, .. } = self;
        ranges.clear();
        ranges.extend(page.timestamps.iter().map(|&time| Some(Day::of(length.start(time)))));
        page.blank.iter().for_each(|&capture| ranges[capture as usize] = None);
        starts.clear();
        append_starts(starts, ranges.iter().copied());
        self.in_all = starts.len();
        (self.link, self.change) = (0, 0);
    }

    /// Returns the next link of the page and the time ranges in which the page has the link, as in in-link records.
    pub(crate) fn next(&mut self, page: &Page) -> Option<(Uid, &[u8])> {
        let Ranges { ranges, starts, in_all, link, change, .. } = self;
        let &target = page.links.get(*link)?;
        let rest = &page.changes[*change..];
        let link_changes = &rest[..rest.iter().take_while(|change| change.link as usize == *link).count()];
        *link += 1;
        *change += link_changes.len();
        if link_changes.is_empty() {
            return Some((target, &starts[..*in_all]));
        }
        starts.truncate(*in_all);
        let stretches = intervals(link_changes, u32::try_from(ranges.len()).unwrap_or(u32::MAX));
        let within = stretches.iter().flat_map(|&(first, last)| &ranges[first as usize..=last as usize]).copied();
        append_starts(starts, within);
        Some((target, &starts[*in_all..]))
    }
}

/// Writes OL, TS and BV; see the head of this file. `kept_out` has what was taken out of the store.
pub(crate) fn outlinks(
    worker: &mut Worker,
    context: &Context,
    in_range: RangeLength,
    (origin, kept_out): (Origin, &Removals),
    state: &mut BuildState,
) -> Result<(), Stopped> {
    let job = &context.job;
    let (index, peers) = (worker.index(), worker.peers());
    // The writers of out-links take most memory of all stages, and memory that was freed before still counts.
    meter::give_back();
    let records = state.row.records.clone();
    let my_partitions = (0..records.partitions()).rev().filter(|&partition| Offsets::worker(partition, peers) == index);
    let writing = Rc::new(RefCell::new(Writing {
        pages: job.check(Sorted::of(&std::mem::take(&mut state.page_records), job.scratch()))?,
        row: context.row.clone(),
        base: context.base.clone(),
        current: None,
        waiting: my_partitions.collect(),
        files: Vec::new(),
        work: std::mem::take(&mut state.row.work),
        counts: Counts::default(),
        elsewhere: 0,
        displaces: false,
        stored: 0,
        page: Page::default(),
        evidence: Evidence::default(),
        key: Vec::new(),
        held: Vec::new(),
        held_links: Sorter::new(job.scratch(), "held-links", job.budget_beside_writers(10)),
        ranges: Ranges::new(in_range),
        is_sending: false,
        origin,
        offsets: state.row.offsets.clone(),
        tally: std::mem::take(&mut state.row.tally),
        periods: kept_out::Periods::of(kept_out),
        records,
    }));
    let in_links = Sorter::new(job.scratch(), "in-links", job.budget_beside_writers(60)).giving_back();
    let in_links = Collector::new(in_links);
    let write = Rc::clone(&writing);
    shuffle(worker, job, "outlinks", move |outbox| Ok(write.borrow_mut().step(outbox)?), in_links.consumer())?;
    let mut writing = writing.borrow_mut();
    let held_links = Sorter::new(job.scratch(), "held-links", 0);
    state.held_links = job.check(std::mem::replace(&mut writing.held_links, held_links).into_runs())?;
    // This comes after the shuffle, so that workers without pages left can go on with their files in the meantime.
    while job.check(writing.begin_next())? {}
    state.row.files.append(&mut writing.files);
    state.row.work = std::mem::take(&mut writing.work);
    state.row.counts = std::mem::take(&mut writing.counts);
    state.row.elsewhere = writing.elsewhere;
    state.row.displaces = writing.displaces;
    state.captures_stored = writing.stored;
    state.row.tally = std::mem::take(&mut writing.tally);
    state.in_links = job.check(in_links.into_inner().and_then(Sorter::into_runs))?;
    Ok(())
}
