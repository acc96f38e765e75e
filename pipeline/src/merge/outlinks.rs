//! Stage 3 of a merge: writes pages of all rows in the order of their new UIDs to the layers OL, TS, BV and RV.
//!
//! If a newer row states other links for a capture than an older row, the in-links of the older row may contain links
//! that do not exist any more. The correct time ranges then go to the worker that writes the in-links of the target.
//!
//! Pages are formed while their records are joined ([`webstrata_layers::record::form`]).
//!
//! A page that is too large in any row, or becomes too large when rows are joined, has captures and no links
//! ([`crate::stages::large_pages`]).
//!
//! Correction: an in-link record as in [`crate::stages::outlinks`], for every link that the page has or had. The record
//! has no time range if the page no longer has the link.

use super::MergeState;
use super::held::Holding;
use super::streams::{DROPPED, Records, Replacing, Streams, intervals};
use super::translation::Translation;
use crate::Error;
use crate::row::{Offsets, partition_number, url_of};
use crate::stages::large_pages::{self, VALUES_MAX};
use crate::stages::outlinks::{Ranges, elsewhere};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use timely::worker::Worker;
use webstrata_datasets::Finding;
use webstrata_engine::{Collector, Context, Outbox, Sorter, Stopped, shuffle};
use webstrata_layers::read::rows::RowPages;
use webstrata_layers::record::form::{self, link_of};
use webstrata_layers::record::join::Joined;
use webstrata_layers::record::join::without_removed;
use webstrata_layers::record::{join, precedence};
use webstrata_layers::{
    Error as LayersError, Evidence, Flaw, Links, OutlinksWriter, Page, Reader, Status, Uid, push_status,
};

impl Replacing<'_> {
    /// Replaces all old UIDs of a page with new UIDs; `uid` is the new UID of the page.
    fn page(&mut self, uid: Uid, (page, evidence): &mut (Page, Evidence)) {
        page.uid = uid;
        page.links = self.links(std::mem::take(&mut page.links), &mut page.changes);
        for revisit in &mut evidence.revisits {
            revisit.links = self.links(std::mem::take(&mut revisit.links), &mut []);
        }
        for payload in &mut evidence.payloads {
            payload.links = self.links(std::mem::take(&mut payload.links), &mut []);
        }
    }
}

/// Writes the out-links of this worker's partitions; see the head of this file.
pub(super) fn outlinks(
    worker: &mut Worker,
    context: &Context,
    store: &Arc<Reader>,
    rows: Range<usize>,
    translation: &Arc<Translation>,
    holds: bool,
    state: &mut MergeState,
) -> Result<(), Stopped> {
    let job = &context.job;
    let (index, peers) = (worker.index(), worker.peers());
    let below = store.row_uids(rows.start).start;
    let records = state.row.records.clone();
    let my_partitions = (0..records.partitions()).rev().filter(|&partition| Offsets::worker(partition, peers) == index);
    let waiting: Vec<usize> = my_partitions.collect();
    // The producer of a shuffle owns the data that it uses.
    let corrections = Collector::new(Sorter::new(job.scratch(), "corrections", job.budget_beside_writers(40)));
    let written = Rc::new(RefCell::new(std::mem::take(state)));
    let holding = Rc::new(RefCell::new(holds.then(|| Holding::new(job, store))));
    let hold = Rc::clone(&holding);
    let (out, store, translation, context) =
        (Rc::clone(&written), Arc::clone(store), Arc::clone(translation), (context.row.clone(), job.clone()));
    let mut waiting = waiting;
    shuffle(
        worker,
        job,
        "outlinks",
        move |outbox| {
            let Some(partition) = waiting.pop() else { return Ok(false) };
            let uids = records.0[partition]..records.0[partition + 1];
            let sources = intervals(&store, &rows, &translation, below, &uids);
            let streams = sources.into_iter().map(|(row, uids)| store.row_pages(row, uids));
            let streams: Streams<'_, RowPages<'_>> = Streams::new(&translation, streams)?;
            let mut writer = OutlinksWriter::create(&context.0, partition_number(partition)?)?;
            let mut state = out.borrow_mut();
            let mut ranges = Ranges::new(store.in_range());
            let hold = &mut *hold.borrow_mut();
            let work = merge(streams, &translation, rows.start == 0, hold, |page, evidence, replaced| {
                if page.links.last().is_some_and(|&link| link >= DROPPED) {
                    return Err(Error::Internal("a link to a UID that is gone"));
                }
                if page.timestamps.is_empty() {
                    correct(page, replaced, &mut ranges, &records, outbox);
                    return Ok(context.1.go_on()?);
                }
                if large_pages::is_left_out(page, evidence) {
                    let stays = Some(&*store).filter(|_| page.uid < below);
                    let url = url_of(&context.0, stays, &state.row.offsets, page.uid)?;
                    state.row.tally.name(Finding::LargePage, url);
                }
                writer.push(page, evidence)?;
                state.row.counts.add_page(page);
                state.row.elsewhere += elsewhere(evidence);
                correct(page, replaced, &mut ranges, &records, outbox);
                Ok(context.1.go_on()?)
            })?;
            *state.row.work.entry(partition_number(partition)?).or_default() += work;
            state.row.files.extend(writer.finish()?);
            Ok(true)
        },
        corrections.consumer(),
    )?;
    *state = written.take();
    let held = holding.take().map(|holding| holding.into_sorter().into_runs()).transpose();
    state.held_records = job.check(held)?.unwrap_or_default();
    state.corrections = job.check(corrections.into_inner().and_then(Sorter::into_runs))?;
    Ok(())
}

/// Calls `visit` with each page. If a newer row changed captures of the page, `visit` also gets all links that the page
/// has or had. Returns the number of links. If all rows are merged, removed captures are dropped, and a page may have
/// no capture left.
fn merge<S: Records<Record = (Page, Evidence)>>(
    mut streams: Streams<'_, S>,
    translation: &Translation,
    is_all: bool,
    holding: &mut Option<Holding>,
    mut visit: impl FnMut(&Page, &Evidence, Option<BTreeSet<Uid>>) -> Result<(), Error>,
) -> Result<u64, Error> {
    let (mut replacing, mut records) = (Replacing::new(translation), Vec::new());
    let mut links = 0;
    while let Some(uid) = streams.next(&mut records)? {
        let mut before = None;
        for record in &mut records {
            let (page, evidence) = (std::mem::take(&mut record.0), &mut record.1);
            let old = page.uid;
            before = Some(old);
            let formed = form::restore(page, &std::mem::take(&mut evidence.forms));
            record.0 = formed.ok_or(LayersError::BadRecord { uid: old, flaw: Flaw::Forms })?;
            replacing.page(uid, record);
        }
        let mut visit = |page: &Page, evidence: &mut Evidence, had| {
            let mut page = Cow::Borrowed(page);
            if let (Some(holding), Some(before)) = (&mut *holding, before)
                && has_dropped(&page, evidence)
            {
                holding.hold(before, page.to_mut(), evidence)?;
            }
            // A newer row says that these links do not exist.
            evidence.revisits.iter_mut().for_each(|revisit| revisit.links.retain(|&link| link < DROPPED));
            evidence.payloads.iter_mut().for_each(|payload| payload.links.retain(|&link| link < DROPPED));
            let page = &*page;
            evidence.forms = form::encode(page);
            let page = form::plain(page);
            links += page.links.len() as u64;
            visit(&page, evidence, had)
        };
        let kept = |page, evidence: &mut Evidence| {
            let left = if is_all { without_removed(page, evidence) } else { Some(page) };
            left.unwrap_or_else(|| Page { uid, ..Page::default() })
        };
        if let [(page, evidence)] = &mut records[..] {
            // A merge of newer rows leaves the removed captures, and no older row need have the page.
            let page = kept(std::mem::take(page), evidence);
            visit(&page, evidence, None)?;
            continue;
        }
        let pages: Vec<&Page> = records.iter().map(|record| &record.0).collect();
        let borrowed: Vec<_> = records.iter().map(|(page, evidence)| (page, evidence)).collect();
        let mut evidence = join::evidence(&borrowed);
        let all = || pages.iter().flat_map(|page| &page.links).map(|&link| link_of(link)).collect();
        let joined = join::pages_within(&pages, VALUES_MAX);
        let fits = |joined: &Joined| {
            borrowed.iter().all(|(page, evidence)| !large_pages::is_left_out(page, evidence))
                && large_pages::values(&joined.page, &evidence) <= VALUES_MAX
        };
        let Some(joined) = joined.filter(fits) else {
            let mut page = Page { uid, ..Page::default() };
            let times: Vec<_> = pages.iter().map(|page| &page.timestamps[..]).collect();
            precedence::for_each_time(&times, |time, captures| {
                let newest = captures.last().map_or(Status::OK, |&(row, at)| pages[row].status(at));
                if !is_all || newest != Status::REMOVED {
                    let capture = u32::try_from(page.timestamps.len()).unwrap_or(u32::MAX);
                    page.timestamps.push(time);
                    push_status(&mut page.statuses, capture, newest);
                }
            });
            large_pages::leave_out(&mut page, &mut evidence);
            visit(&page, &mut evidence, Some(all()))?;
            continue;
        };
        let Joined { page, replaced } = joined;
        let page = kept(page, &mut evidence);
        visit(&page, &mut evidence, replaced.then(all))?;
    }
    Ok(links)
}

/// Whether captures or revisits of a page have links to URLs that are dropped.
fn has_dropped(page: &Page, evidence: &Evidence) -> bool {
    let is_dropped = |link: Option<&Uid>| link.is_some_and(|&link| link >= DROPPED);
    is_dropped(page.links.last()) || evidence.revisits.iter().any(|revisit| is_dropped(revisit.links.last()))
}

/// Sends the correct time ranges of all links that the page has or had.
fn correct(page: &Page, had: Option<BTreeSet<Uid>>, ranges: &mut Ranges, records: &Offsets, outbox: &mut Outbox) {
    let Some(mut gone) = had else { return };
    let mut key = [0; 16];
    key[8..].copy_from_slice(&page.uid.0.to_be_bytes());
    let mut send = |target: Uid, starts: &[u8]| {
        key[..8].copy_from_slice(&target.0.to_be_bytes());
        outbox.send(Offsets::inlinks_worker(records.of(target), outbox.workers()), &key, starts);
    };
    ranges.begin(page);
    while let Some((target, starts)) = ranges.next(page) {
        gone.remove(&target);
        send(target, starts);
    }
    // In-links of dropped URLs are dropped with the URLs.
    gone.into_iter().filter(|&target| target < DROPPED).for_each(|target| send(target, &[]));
}
