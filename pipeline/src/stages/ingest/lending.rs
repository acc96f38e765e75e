//! Links for revisits of other URLs. A revisit that refers to a capture of another URL gets the links of all captures
//! with its digest, whatever their URLs. The links are resolved against the URL of the revisit.
//!
//! Revisits and captures meet by digest. 64 bits of each digest are compared, because the store keeps no more:
//!
//! ```text
//! new revisits, revisits of the store, digests of inputs -> wanted and offered digests -> links for these digests
//! ```
//!
//! A new revisit wants the captures of the inputs and of the store. A revisit of the store wants only the captures of
//! the inputs, because it already has the links of the store's captures. The order of batches of captures and revisits
//! therefore does not matter. Texts of links are not kept. Inputs that have captures with digests are read a second
//! time if any digest is wanted. What can be read only once was copied for this ([`Input::kept`]). For captures of the
//! store, the texts are made again from links and forms ([`webstrata_datasets::Form`]). A capture lends its links if
//! its status is 200 or it is cut, and no link has the form [`Form::OTHER`], which does not tell the link under another
//! URL. A page that is too large and a capture that was taken out have no links to lend. Held links are lent like all
//! other links. A revisit is cut if all that lend to it are cut, for the least reason.
//!
//! Records that meet: key = digest (8 bytes), a byte; payload = nothing for [`OFFERED`]; UID of the page for
//! [`STORED`]; time in [`wire::time_key`] and URL of the page for [`NEW`]. Offer: key = digest, hash of the payload (16
//! bytes), so that a payload that many captures have is lent once; payload = status (2 bytes), length and text of the
//! `<base>`, then of each link.
//!
//! Memory: the wanted digests, and the revisits that want one payload. Cost: nothing without revisits of other URLs.
//! With such revisits in the store, a sort of the digests of the inputs, and the layer rv of the rows that have such
//! revisits. With new ones, the layer rv of all rows that have digests, and the pages with wanted captures.

use super::{SharedMaker, status_of};
use crate::Error;
use crate::row::share;
use crate::stages::page_links::links_at;
use crate::stages::records::short;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;
use timely::worker::Worker;
use webstrata_datasets::{
    Capture, CaptureReader, Content, Digest, Form, Input, Profile, ReadOptions, Tally, Texts, open_metered,
};
use webstrata_engine::{
    Collector, Context, Error as JobError, Job, Outbox, Run, RunReader, RunWriter, Sorted, Sorter, Stopped, gather,
    shuffle, wire,
};
use webstrata_layers::held::{HeldLink, HeldPages};
use webstrata_layers::record::form::{form_of, link_of};
use webstrata_layers::{Error as LayersError, Evidence, Flaw, Links, Page, Payload, Reader, Status, Uid};
use webstrata_url::canonical;
use xxhash_rust::xxh3::xxh3_128;

/// An input has a capture with this digest.
const OFFERED: u8 = 0;
/// A revisit of the store wants this digest.
const STORED: u8 = 1;
/// A new revisit wants this digest.
const NEW: u8 = 2;

/// The approximate size of the texts of an offer, in bytes; further links of a capture become another offer.
const OFFER_BYTES: usize = 64 << 10;

/// A new revisit of another URL.
pub(super) struct Want {
    pub(super) digest: u64,
    pub(super) time: i64,
    pub(super) url: String,
}

/// A revisit of another URL that the store has.
#[derive(Clone, Copy)]
pub(super) struct StoredRevisit {
    /// Whether its record gives no status.
    pub(super) without_status: bool,
}

/// The captures that were read and may lend their links.
#[derive(Default)]
pub(super) struct Offering {
    inputs: Vec<Input>,
    /// The digests of these captures, if revisits of the store may want them.
    digests: Option<Sorter>,
}

impl Offering {
    pub(super) fn new(context: &Context) -> Self {
        let job = &context.job;
        let is_wanted = waiting(context).next().is_some();
        let digests = is_wanted.then(|| Sorter::new(job.scratch(), "digests", job.budget_beside_reader(4)));
        Self { inputs: Vec::new(), digests }
    }

    /// Adds a capture, given by its input and its digest.
    pub(super) fn add(&mut self, input: &Input, digest: u64) -> Result<(), Error> {
        if self.inputs.last() != Some(input) {
            self.inputs.push(input.clone());
        }
        if let Some(digests) = &mut self.digests {
            digests.push(&key_of(digest, OFFERED), &[])?;
        }
        Ok(())
    }
}

/// Returns the rows that have revisits of other URLs.
fn waiting(context: &Context) -> impl Iterator<Item = usize> + '_ {
    let rows = context.base.iter().flat_map(|base| (0..).zip(&base.store().manifest().rows));
    rows.filter(|(_, row)| row.elsewhere > 0).map(|(at, _)| at)
}

/// Whether a capture is a revisit that refers to a capture of another URL. The other URL is not interned: a reference
/// makes the URL neither a page nor a link.
pub(super) fn names_another_page(capture: &Capture) -> bool {
    let Content::Revisit(revisit) = &capture.content else { return false };
    let referred = revisit.url.as_ref().and_then(|url| canonical(None, url).ok());
    referred.is_some() && referred != canonical(None, &capture.url).ok()
}

/// Whether a capture is a revisit that takes the links of captures of any URL that have its digest.
pub(super) fn refers_elsewhere(capture: &Capture) -> bool {
    let is_of_digest =
        matches!(&capture.content, Content::Revisit(revisit) if revisit.profile == Profile::IdenticalDigest);
    is_of_digest && capture.digest.is_some_and(|digest| short(digest.0) != 0) && names_another_page(capture)
}

fn key_of(digest: u64, tag: u8) -> [u8; 9] {
    let mut key = [tag; 9];
    key[..8].copy_from_slice(&digest.to_be_bytes());
    key
}

fn digest_of(key: &[u8]) -> u64 {
    let mut key = key;
    u64::from_be_bytes(wire::take_array(&mut key))
}

fn owner_of(key: &[u8], workers: usize) -> usize {
    usize::try_from(digest_of(key) % workers as u64).unwrap_or(0)
}

/// Sends links to revisits of other URLs, as capture records; see the head of this file.
pub(super) fn lend(
    worker: &mut Worker,
    context: &Context,
    options: ReadOptions,
    (record_maker, captures): (&SharedMaker, &Collector),
    wants: Vec<Want>,
    offering: Offering,
) -> Result<(), Stopped> {
    let job = &context.job;
    let Offering { inputs, digests } = offering;
    let has_some = !wants.is_empty() || digests.is_some() && !inputs.is_empty();
    if !gather(worker, job, None, &has_some)?.contains(&true) {
        return Ok(());
    }
    let mine = job.check(all_wants(worker, context, &wants, digests))?;
    drop(wants);
    let (wanted, digests) = meet(worker, job, mine)?;
    if digests.is_empty() {
        return job.check(job.scratch().remove(&wanted.name));
    }
    let base = context.base.clone();
    let offers = Collector::new(Sorter::new(job.scratch(), "offers", job.budget_beside_reader(6)));
    let mut source = Source {
        inputs,
        options,
        current: None,
        capture: super::bounded(job),
        counted_already: Tally::default(),
        has_more: false,
        base: base.clone(),
        pages: None,
        last: None,
        digests: Rc::new(digests),
        record_maker: Rc::clone(record_maker),
        job: job.clone(),
        share: (worker.index(), worker.peers()),
        held: None,
    };
    shuffle(worker, job, "ingest", move |outbox| Ok(source.step(outbox)?), offers.consumer())?;
    let offers = job.check(offers.into_inner().and_then(Sorter::finish))?;
    let mut wants = job.check(RunReader::open(&wanted, job.scratch()))?;
    job.check(job.scratch().remove(&wanted.name))?;
    let has_want = job.check(wants.advance())?;
    let capture = Capture { links: Texts::default(), ..Capture::default() };
    let record_maker = Rc::clone(record_maker);
    let (last, pages, status) = (Vec::new(), Vec::new(), Status::OK);
    let mut handing = Handing { wants, has_want, offers, last, pages, at: 0, capture, status, base, record_maker };
    shuffle(worker, job, "ingest", move |outbox| Ok(handing.step(outbox)?), captures.consumer())
}

/// Returns the wanted and the offered digests that this worker knows, sorted.
fn all_wants(worker: &Worker, context: &Context, wants: &[Want], digests: Option<Sorter>) -> Result<Sorted, Error> {
    let job = &context.job;
    let mut all = Sorter::new(job.scratch(), "wants", job.budget_beside_reader(4));
    for Want { digest, time, url } in wants {
        all.push(&key_of(*digest, NEW), &[&wire::time_key(*time), url.as_bytes()].concat())?;
    }
    let Some(digests) = digests else { return Ok(all.finish()?) };
    let (mut digests, mut last) = (digests.finish()?, [0; 9]);
    while let Some((key, _)) = digests.next()? {
        if key != last {
            last.copy_from_slice(key);
            all.push(key, &[])?;
        }
    }
    if let Some(base) = &context.base {
        let uids = share(base.urls(), worker.index(), worker.peers());
        for row in waiting(context) {
            let mut pushed = Ok(());
            base.row_elsewhere(row, Uid(uids.start)..Uid(uids.end), |uid, digest| {
                if pushed.is_ok() {
                    pushed = all.push(&key_of(digest, STORED), &uid.0.to_be_bytes());
                }
                Ok(())
            })?;
            pushed?;
        }
    }
    Ok(all.finish()?)
}

/// Joins wanted and offered digests. Returns the revisits that may get links, by digest, on the worker that owns the
/// digest. Also returns, on all workers, the digests, each with whether a new revisit wants it.
fn meet(worker: &mut Worker, job: &Job, mut mine: Sorted) -> Result<(Run, HashMap<u64, bool>), Stopped> {
    let met = Collector::new(Sorter::new(job.scratch(), "wants", job.budget_beside_reader(4)));
    let produce = move |outbox: &mut Outbox| {
        let Some((key, payload)) = mine.next()? else { return Ok(false) };
        outbox.send(owner_of(key, outbox.workers()), key, payload);
        Ok(true)
    };
    shuffle(worker, job, "ingest", produce, met.consumer())?;
    let select = |mut met: Sorted| {
        let mut wanted = RunWriter::create("wanted", job.scratch())?;
        let (mut digests, mut offered) = (HashMap::<u64, bool>::new(), None);
        while let Some((key, payload)) = met.next()? {
            let digest = digest_of(key);
            match key.last() {
                Some(&OFFERED) => offered = Some(digest),
                Some(&STORED) if offered != Some(digest) => {}
                tag => {
                    wanted.push(key, payload)?;
                    *digests.entry(digest).or_default() |= tag == Some(&NEW);
                }
            }
        }
        Ok::<_, JobError>((wanted.finish()?, digests))
    };
    let (wanted, found) = job.check(met.into_inner().and_then(Sorter::finish).and_then(select))?;
    let mut found: Vec<(u64, bool)> = found.into_iter().collect();
    let all = Rc::new(RefCell::new(HashMap::new()));
    let received = Rc::clone(&all);
    shuffle(
        worker,
        job,
        "ingest",
        move |outbox| {
            let Some((digest, is_new)) = found.pop() else { return Ok(false) };
            outbox.send_to_all(&digest.to_be_bytes(), &[u8::from(is_new)]);
            Ok(true)
        },
        move |block| {
            wire::for_each(&block, |key, is_new| {
                received.borrow_mut().insert(digest_of(key), is_new == [1]);
            });
            Ok(())
        },
    )?;
    Ok((wanted, all.take()))
}

/// Offers the links of captures with wanted digests: first from the inputs, then from the store.
struct Source {
    inputs: Vec<Input>,
    options: ReadOptions,
    current: Option<Box<dyn CaptureReader>>,
    capture: Capture,
    counted_already: Tally,
    /// Whether the capture has links that wait for their turn.
    has_more: bool,
    base: Option<Arc<Reader>>,
    /// The pages of the store that may have such captures, once the inputs are read; and the last page that was
    /// offered.
    pages: Option<Sorted>,
    last: Option<Uid>,
    digests: Rc<HashMap<u64, bool>>,
    record_maker: SharedMaker,
    job: Job,
    share: (usize, usize),
    /// The held links of the store, once they were looked up.
    held: Option<HeldPages>,
}

impl Source {
    fn step(&mut self, outbox: &mut Outbox) -> Result<bool, Error> {
        if self.has_more {
            self.has_more = self.capture.links.turn().map_err(|source| self.job.scratch().error(source))?;
            return if self.has_more { self.offer(outbox) } else { Ok(true) };
        }
        if self.pages.is_some() {
            return self.offer_page(outbox);
        }
        let Some(reader) = &mut self.current else {
            match self.inputs.pop() {
                Some(input) => {
                    let spill = super::spill_of(&self.job);
                    let reader = open_metered(&input, self.options, Arc::default(), Arc::default(), &spill)?;
                    self.current = Some(reader);
                }
                None => self.pages = Some(self.find_pages()?),
            }
            return Ok(true);
        };
        if !reader.read(&mut self.capture, &mut self.counted_already)? {
            self.current = None;
            return Ok(true);
        }
        self.has_more = self.digest().is_some();
        if self.has_more { self.offer(outbox) } else { Ok(true) }
    }

    /// Returns the digest of the capture, if the digest is wanted.
    fn digest(&self) -> Option<u64> {
        self.capture.digest.map(|digest| short(digest.0)).filter(|digest| self.digests.contains_key(digest))
    }

    /// Offers the links of the capture that are in memory.
    fn offer(&mut self, outbox: &mut Outbox) -> Result<bool, Error> {
        let Some(digest) = self.digest() else { return Ok(true) };
        let mut record_maker = self.record_maker.borrow_mut();
        let record_maker = record_maker.as_mut().ok_or(Error::Internal("reading goes on after its end"))?;
        if record_maker.lends(&self.capture)? {
            let mut offer = Offer::new(digest, status_of(&self.capture), &self.capture.base);
            for text in self.capture.links.iter() {
                if !record_maker.keeps_out(&self.capture, text)? {
                    offer.push(text, outbox);
                }
            }
            offer.end(outbox);
        }
        Ok(true)
    }

    /// Returns the pages of this worker's share of the store that may have captures which new revisits want.
    fn find_pages(&self) -> Result<Sorted, Error> {
        let mut pages = Sorter::new(self.job.scratch(), "originals", self.job.budget_beside_reader(2));
        let is_wanted = |digest| self.digests.get(&digest) == Some(&true);
        if let Some(base) = self.base.as_ref().filter(|_| self.digests.values().any(|&is_new| is_new)) {
            let uids = share(base.urls(), self.share.0, self.share.1);
            for row in 0..base.rows() {
                let mut pushed = Ok(());
                base.row_with_digest(row, Uid(uids.start)..Uid(uids.end), is_wanted, |uid| {
                    if pushed.is_ok() {
                        pushed = pages.push(&uid.0.to_be_bytes(), &[]);
                    }
                    Ok(())
                })?;
                pushed?;
                self.job.go_on()?;
            }
        }
        Ok(pages.finish()?)
    }

    /// Returns the held links of a page of the store.
    fn held_of(&mut self, url: &str) -> Result<Vec<HeldLink>, Error> {
        let store = self.base.as_ref().map(|base| base.store());
        let Some(store) = store.filter(|store| !store.manifest().provenance.held.is_empty()) else {
            return Ok(Vec::new());
        };
        let held = match &mut self.held {
            Some(held) => held,
            none => none.insert(HeldPages::open(store.location(), &store.manifest().provenance.held)?),
        };
        Ok(held.of_page(url)?)
    }

    /// Offers the links of the next page of the store. Returns `false` if no page is left.
    fn offer_page(&mut self, outbox: &mut Outbox) -> Result<bool, Error> {
        let Some((mut key, _)) = self.pages.as_mut().map_or(Ok(None), Sorted::next)? else { return Ok(false) };
        let uid = wire::take_uid(&mut key);
        let Some(base) = self.base.clone().filter(|_| self.last != Some(uid)) else { return Ok(true) };
        self.last = Some(uid);
        let Some((page, evidence)) = base.formed_page(uid)? else { return Ok(true) };
        let url = base.url(uid)?;
        let held = self.held_of(&url)?;
        let mut offered = HashSet::new();
        let captures = (0u32..).zip(&page.timestamps).filter(|&(at, _)| lends(&page, &evidence, at));
        for (at, digest, payload) in captures.flat_map(|(at, _)| payloads(&evidence, at)) {
            if self.digests.get(&digest) != Some(&true) {
                continue;
            }
            let links = payload.map_or_else(|| links_at(&page, at), |payload| payload.links.clone());
            let time = page.timestamps[at as usize];
            let held: Vec<&HeldLink> = held
                .iter()
                .filter(|held| if payload.is_some() { held.is_of(digest, time) } else { held.is_at(time) })
                .collect();
            let is_other = |form: u8| form == Form::OTHER.code();
            if links.iter().any(|&link| is_other(form_of(link)))
                || held.iter().any(|held| is_other(held.form))
                || !offered.insert((digest, page.status(at), links.clone(), held.clone()))
            {
                continue;
            }
            let mut offer = Offer::new(digest, page.status(at), "");
            let mut push = |form: u8, target: &str| {
                let text = Form::of_code(form).and_then(|form| form.reference(&url, target));
                offer.push(&text.ok_or(LayersError::BadRecord { uid, flaw: Flaw::Forms })?, outbox);
                Ok::<_, Error>(())
            };
            for link in links {
                push(form_of(link), &base.url(link_of(link))?)?;
            }
            for held in held {
                push(held.form, &held.link)?;
            }
            offer.end(outbox);
        }
        Ok(true)
    }
}

/// Returns the digests of a capture, each with its payload if its links are not all links of the capture.
fn payloads(evidence: &Evidence, capture: u32) -> Vec<(u32, u64, Option<&Payload>)> {
    match evidence.payloads_of(capture) {
        [] => vec![(capture, evidence.digest(capture as usize), None)],
        payloads => payloads.iter().map(|payload| (capture, payload.digest, Some(payload))).collect(),
    }
}

/// Whether a capture of the store lends its links; the forms of the links are not checked here.
fn lends(page: &Page, evidence: &Evidence, capture: u32) -> bool {
    evidence.revisit(capture).is_none() && !page.is_blank(capture) && page.status(capture).has_page()
}

/// The links of a capture, on the way to the owner of its digest.
struct Offer<'a> {
    digest: u64,
    status: Status,
    base: &'a str,
    payload: Vec<u8>,
    is_begun: bool,
}

impl<'a> Offer<'a> {
    fn new(digest: u64, status: Status, base: &'a str) -> Self {
        let mut offer = Self { digest, status, base, payload: Vec::new(), is_begun: true };
        offer.begin();
        offer
    }

    fn begin(&mut self) {
        self.payload.extend_from_slice(&self.status.number().to_be_bytes());
        self.put(self.base);
    }

    fn put(&mut self, text: &str) {
        wire::put(&mut self.payload, text.len() as u64);
        self.payload.extend_from_slice(text.as_bytes());
    }

    fn push(&mut self, text: &str, outbox: &mut Outbox) {
        self.put(text);
        self.is_begun = true;
        if self.payload.len() >= OFFER_BYTES {
            self.send(outbox);
            self.begin();
        }
    }

    fn send(&mut self, outbox: &mut Outbox) {
        let mut key = [0; 24];
        key[..8].copy_from_slice(&self.digest.to_be_bytes());
        key[8..].copy_from_slice(&xxh3_128(&self.payload).to_be_bytes());
        outbox.send(owner_of(&key, outbox.workers()), &key, &self.payload);
        self.payload.clear();
        self.is_begun = false;
    }

    /// Sends the rest of the links. A capture without links sends an empty offer.
    fn end(mut self, outbox: &mut Outbox) {
        if self.is_begun {
            self.send(outbox);
        }
    }
}

/// Hands out offered links to the revisits that want them.
struct Handing {
    wants: RunReader,
    has_want: bool,
    offers: Sorted,
    /// The key of the last offer.
    last: Vec<u8>,
    /// The revisits that want the current payload, as (URL, time, revisit of the store); and the next of these
    /// revisits.
    pages: Vec<(String, i64, Option<StoredRevisit>)>,
    at: usize,
    /// The links of the offer, and the status of the captures that have them.
    capture: Capture,
    status: Status,
    base: Option<Arc<Reader>>,
    record_maker: SharedMaker,
}

impl Handing {
    fn step(&mut self, outbox: &mut Outbox) -> Result<bool, Error> {
        if let Some((url, time, stored)) = self.pages.get(self.at) {
            self.at += 1;
            self.capture.url.clone_from(url);
            self.capture.time = *time;
            let mut record_maker = self.record_maker.borrow_mut();
            let record_maker = record_maker.as_mut().ok_or(Error::Internal("reading goes on after its end"))?;
            record_maker.lend(&self.capture, self.status, *stored, outbox)?;
            return Ok(true);
        }
        let Some((key, mut payload)) = self.offers.next()? else { return Ok(false) };
        if key == self.last {
            return Ok(true);
        }
        let is_same = !self.last.is_empty() && digest_of(&self.last) == digest_of(key);
        self.last.clear();
        self.last.extend_from_slice(key);
        self.status = Status::stored(u16::from_be_bytes(wire::take_array(&mut payload))).unwrap_or(Status::OK);
        let mut next = || {
            let length = wire::take_usize(&mut payload);
            let (text, rest) = payload.split_at(length.min(payload.len()));
            payload = rest;
            (String::from_utf8_lossy(text), !rest.is_empty())
        };
        let (base, mut has_more) = next();
        self.capture.clear();
        self.capture.base.push_str(&base);
        while has_more {
            let (text, rest) = next();
            self.capture.links.push(&text);
            has_more = rest;
        }
        self.capture.digest = Some(Digest(digest_of(&self.last).into()));
        self.at = 0;
        if !is_same {
            self.gather_pages()?;
        }
        Ok(true)
    }

    /// Finds the revisits that want the current payload.
    fn gather_pages(&mut self) -> Result<(), Error> {
        self.pages.clear();
        let (digest, mut last) = (digest_of(&self.last), None);
        while self.has_want {
            let (key, mut payload) = self.wants.record();
            if digest_of(key) > digest {
                break;
            }
            if digest_of(key) < digest {
            } else if key.last() == Some(&NEW) {
                let time = wire::key_time(wire::take_array(&mut payload));
                self.pages.push((String::from_utf8_lossy(payload).into_owned(), time, None));
            } else if let Some(base) = &self.base {
                let uid = wire::take_uid(&mut payload);
                // A revisit that a newer row changes or takes out wants nothing any more.
                if last.replace(uid) != Some(uid)
                    && let Some((page, evidence)) = base.page_with_evidence(uid)?
                {
                    let url = base.url(uid)?;
                    let wants = evidence.revisits.iter().filter(|revisit| revisit.elsewhere);
                    let wants = wants.filter(|revisit| evidence.digest(revisit.capture as usize) == digest);
                    self.pages.extend(wants.map(|revisit| {
                        let stored = StoredRevisit { without_status: revisit.without_status };
                        (url.clone(), page.timestamps[revisit.capture as usize], Some(stored))
                    }));
                }
            }
            self.has_want = self.wants.advance()?;
        }
        Ok(())
    }
}
