//! Stage 1: crawl files to captures, as fingerprints.
//!
//! Every worker takes inputs from a common list and reads them. A capture goes to the worker that owns its page (by
//! the hash of the page, so that a large host is no burden for one worker); the text of each URL not lately seen stays
//! here, as its key, with its fingerprint.
//!
//! A capture whose links do not fit comes in pieces, each a capture record of the same page and time: together they are
//! one capture, as any captures of one second are.
//!
//! Capture record: key = fingerprint of the page (16 bytes), time (8 bytes, [`wire::time_key`]); payload = kind, what
//! the kind has, then the fingerprints of at most [`LINKS_MAX`] links, 16 bytes each, rising, each once.
//! URL record: key = the URL key of the layers crate, payload = fingerprint.
//!
//! A revisit under another URL than that of the capture that it refers to needs that capture's links resolved against
//! its own URL. Texts of links are not kept, so the files that may hold the payload are read a second time, with an
//! eye for the digests that are wanted; only where there are such revisits. Standard input cannot be read twice.

mod kept_out;
pub(crate) mod known_links;

use crate::Error;
use crate::engine::external_sort::{Collector, Sorter};
use crate::engine::job::{Job, Stopped};
use crate::engine::shuffle::{Outbox, shuffle};
use crate::engine::wire;
use crate::meaning::Meaning;
use crate::stages::ingest::kept_out::KeptOut;
use crate::stages::ingest::known_links::{Known, KnownLinks, Memo, Missed, hash_of};
use crate::stages::partition::Sample;
use crate::stages::records::{kind, owner};
use crate::stages::state::BuildState;
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use timely::worker::Worker;
use webstrata_datasets::{
    Base, Capture, CaptureReader, Content, DigestCell, Finding, Fingerprint, Input, InputDigest, InputSplit, Interner,
    LinkKinds, Profile, Tally, Texts, open, open_metered,
};
use webstrata_layers::{InputRecord, Removals, Status};
use webstrata_url::canonical;
use xxhash_rust::xxh3::xxh3_128;

const HASH_BYTES: usize = 16;

/// Links of a capture record: many records are at hand at once where runs are merged.
const LINKS_MAX: usize = 1 << 14;
/// Bytes of link texts that are resolved at once; what a capture has beyond goes to disk.
const TEXT_BYTES_MAX: usize = 4 << 20;

/// Slots of the cache of URLs lately seen, at least.
const INTERNER_SLOTS_MIN: usize = 1 << 12;
/// Bytes of a slot.
const INTERNER_SLOT_BYTES: usize = 32;

/// The inputs that a process reads, shared by its workers.
pub(crate) struct Inputs {
    pub(crate) inputs: Vec<Input>,
    pub(crate) meaning: Meaning,
    /// What is not to be read.
    pub(crate) kept_out: Removals,
    pub(crate) next: AtomicUsize,
}

/// The inputs of one of several processes: the large ones first, each to the process that has least so far.
pub(crate) fn share(mut inputs: Vec<Input>, process: usize, processes: usize) -> Vec<Input> {
    inputs.sort_by(|one, other| other.bytes.cmp(&one.bytes).then_with(|| one.cmp(other)));
    let mut bytes = vec![0; processes];
    inputs.retain(|input| {
        let least = (0..processes).min_by_key(|&process| bytes[process]).unwrap_or(0);
        bytes[least] += input.bytes + 1;
        least == process
    });
    inputs
}

const _: () = assert!(
    *webstrata_datasets::TIMES.start() == *webstrata_layers::TIMES.start()
        && *webstrata_datasets::TIMES.end() == *webstrata_layers::TIMES.end(),
    "inputs are read with other years than stores can be asked about"
);

/// Turns captures into records.
struct RecordMaker {
    interner: Interner,
    urls: Sorter,
    sample: Sample,
    tally: Tally,
    key: Vec<u8>,
    links: Vec<u128>,
    payload: Vec<u8>,
    /// Bytes of the payload before the links.
    head: usize,
    known: KnownLinks,
    memo: Memo,
    url_bytes_max: usize,
    kept_out: KeptOut,
}

/// What a URL is named as, in a capture of a second.
#[derive(Clone, Copy)]
struct Use {
    is_page: bool,
    time: i64,
}

impl RecordMaker {
    fn new(job: &Job, url_bytes_max: usize, removals: &Removals) -> Self {
        let slots = (job.budget_beside_reader(10) / INTERNER_SLOT_BYTES).max(INTERNER_SLOTS_MIN);
        RecordMaker {
            interner: Interner::new(slots, url_bytes_max),
            urls: Sorter::new(job.scratch(), "urls", job.budget_beside_reader(20)),
            sample: Sample::default(),
            tally: Tally::default(),
            key: Vec::new(),
            links: Vec::new(),
            payload: Vec::new(),
            head: 0,
            known: KnownLinks::new(job.budget_beside_reader(4)),
            memo: Memo::default(),
            url_bytes_max,
            kept_out: KeptOut::new(removals),
        }
    }

    fn fingerprint(
        &mut self,
        base: Option<&Base>,
        text: &str,
        Use { is_page, time }: Use,
    ) -> Result<Result<u128, Finding>, Error> {
        let RecordMaker { interner, urls, sample, key, kept_out, .. } = self;
        let mut pushed = Ok(());
        let found = interner.intern(base, text, &mut |Fingerprint(fingerprint), url| {
            webstrata_layers::key(url, key);
            // A URL of which something is kept out may be none of the store: how it is named decides.
            if kept_out.is_named(fingerprint, key) {
                return;
            }
            sample.offer(fingerprint, key);
            if pushed.is_ok() {
                pushed = urls.push(key, &fingerprint.to_be_bytes());
            }
        });
        pushed?;
        let Ok(Fingerprint(fingerprint)) = found else { return Ok(found.map(|Fingerprint(fingerprint)| fingerprint)) };
        if let Some(named) = kept_out.of(fingerprint) {
            if named.is_kept_out(is_page, time) {
                return Ok(Err(if is_page { Finding::RemovedPage } else { Finding::RemovedLink }));
            }
            sample.offer(fingerprint, &named.key);
            urls.push(&named.key, &fingerprint.to_be_bytes())?;
        }
        Ok(Ok(fingerprint))
    }

    /// Sends a capture to the owner of its page; `false` where its URL is not one of a page.
    fn send(&mut self, capture: &Capture, outbox: &mut Outbox) -> Result<bool, Error> {
        let page = match self.fingerprint(None, &capture.url, Use { is_page: true, time: capture.time })? {
            Ok(page) => page,
            Err(finding) => {
                self.tally.count(match finding {
                    Finding::RemovedPage => Finding::RemovedPage,
                    Finding::OtherLinkScheme => Finding::OtherPageScheme,
                    Finding::LongLink => Finding::LongPageUrl,
                    _ => Finding::BadPageUrl,
                });
                return Ok(false);
            }
        };
        let digest = capture.digest.map_or(0, |digest| digest.0).to_be_bytes();
        let mut key = [0; 24];
        key[..16].copy_from_slice(&page.to_be_bytes());
        key[16..].copy_from_slice(&wire::time_key(capture.time));
        self.payload.clear();
        let status = capture.status.and_then(Status::new).unwrap_or(Status::OK);
        match (&capture.content, &capture.undated) {
            (Content::Links, Some(undated)) => {
                self.payload.push(kind::UNDATED);
                wire::put_falling(&mut self.payload, undated);
                self.append_with_status(capture, status, digest)?;
            }
            (Content::Links, None) if status != Status::OK => {
                self.payload.push(kind::STATUS);
                self.append_with_status(capture, status, digest)?;
            }
            (Content::Links, None) => {
                let texts = capture.links.hash() ^ xxh3_128(capture.base.as_bytes());
                // The same texts come to other links where other ones are kept out.
                let texts = texts.wrapping_add(self.kept_out.period(capture.time));
                let same = match self.known.of(page, texts) {
                    Some(known) => {
                        known.missed.count(&mut self.tally);
                        Some(known.links)
                    }
                    None => self.look_up_links(capture, page, texts, digest)?,
                };
                if let Some(links) = same {
                    self.payload.push(kind::SAME);
                    self.payload.extend_from_slice(&digest);
                    self.payload.extend_from_slice(&links.to_be_bytes());
                }
            }
            // A revisit that refers to nothing.
            (Content::Unknown, _) => {
                self.payload.push(kind::IDENTICAL);
                self.payload.extend_from_slice(&[0; 25]);
                self.append_links(capture)?;
            }
            (Content::Revisit(revisit), _) => {
                self.payload.push(match revisit.profile {
                    Profile::IdenticalDigest => kind::IDENTICAL,
                    Profile::NotModified => kind::NOT_MODIFIED,
                });
                self.payload.extend_from_slice(&digest);
                self.payload.extend_from_slice(&revisit.time.map_or([0; 8], wire::time_key));
                let without_status = revisit.profile == Profile::IdenticalDigest && capture.status.is_none();
                self.payload.push(u8::from(without_status));
                self.append_links(capture)?;
            }
        }
        self.send_split(owner(page, outbox.workers()), &key, outbox);
        Ok(true)
    }

    /// Appends the status, the digest and the links of a capture.
    fn append_with_status(&mut self, capture: &Capture, status: Status, digest: [u8; 16]) -> Result<(), Error> {
        self.payload.extend_from_slice(&status.code().to_be_bytes());
        self.payload.extend_from_slice(&digest);
        self.append_links(capture).map(|_| ())
    }

    /// Sends the payload that was made; what has too many links for one record in several.
    fn send_split(&self, owner: usize, key: &[u8], outbox: &mut Outbox) {
        let record_max = self.head + LINKS_MAX * HASH_BYTES;
        let (first, rest) = self.payload.split_at(self.payload.len().min(record_max));
        outbox.send(owner, key, first);
        for links in rest.chunks(LINKS_MAX * HASH_BYTES) {
            outbox.send(owner, key, &[&first[..self.head], links].concat());
        }
    }

    /// Makes the payload of a capture with its links; `None` if it did, their hash if the page was last sent with them.
    fn look_up_links(
        &mut self,
        capture: &Capture,
        page: u128,
        texts: u128,
        digest: [u8; 16],
    ) -> Result<Option<u128>, Error> {
        self.payload.push(kind::LINKS);
        self.payload.extend_from_slice(&digest);
        let start = self.payload.len();
        let missed = self.append_links(capture)?;
        let links = &self.payload[start..];
        // One link takes no more than a hash; fewer captures to resolve are fewer things to go wrong. A hash stands for
        // the links of one record.
        if links.len() <= HASH_BYTES || links.len() > LINKS_MAX * HASH_BYTES {
            return Ok(None);
        }
        let links = hash_of(links);
        let same = self.known.keep(page, texts, Known { links, missed });
        if same {
            self.payload.clear();
        }
        Ok(same.then_some(links))
    }

    /// Appends the links of a capture to the payload, rising, each once; gives what was left out.
    fn append_links(&mut self, capture: &Capture) -> Result<Missed, Error> {
        self.head = self.payload.len();
        self.links.clear();
        let base = Base::within(&capture.url, &capture.base, self.url_bytes_max).ok();
        let mut missed = Missed::default();
        let named_as = Use { is_page: false, time: capture.time };
        let has_periods = self.kept_out.has_periods();
        if let Some((dictionary, keys)) = capture.links.keys() {
            self.memo.turn_to(dictionary);
            for &key in keys {
                if let Some(link) = self.memo.get(key).filter(|_| !has_periods) {
                    self.links.push(link);
                    continue;
                }
                let text = dictionary.get(key);
                match self.fingerprint(base.as_ref(), text, named_as)? {
                    Ok(link) => {
                        self.memo.keep(key, text, link);
                        self.links.push(link);
                    }
                    Err(finding) => missed.add(finding),
                }
            }
        } else {
            for link in capture.links.iter() {
                match self.fingerprint(base.as_ref(), link, named_as)? {
                    Ok(link) => self.links.push(link),
                    Err(finding) => missed.add(finding),
                }
            }
        }
        self.links.sort_unstable();
        self.links.dedup();
        self.links.iter().for_each(|link| self.payload.extend_from_slice(&link.to_be_bytes()));
        missed.count(&mut self.tally);
        Ok(missed)
    }
}

/// A revisit whose payload stands under another URL.
struct Borrow {
    digest: u128,
    time: i64,
    url: String,
}

/// Whether a capture is a revisit that refers to a capture of another URL. That URL is not interned: it is neither a
/// page nor a link by being named here.
fn refers_elsewhere(capture: &Capture) -> bool {
    let Content::Revisit(revisit) = &capture.content else { return false };
    let referred = revisit.url.as_ref().and_then(|url| canonical(None, url).ok());
    referred.is_some() && referred != canonical(None, &capture.url).ok()
}

/// An input of which nothing was read yet.
fn record_of(input: &Input) -> InputRecord {
    let name = match input.part {
        InputSplit::RowGroup(group) => format!("{}#{group}", input.path.display()),
        _ => input.path.display().to_string(),
    };
    InputRecord { name, bytes: input.bytes, captures: 0, first: None, last: None, digest: None }
}

/// Reads inputs, one capture a call.
struct Reading {
    inputs: Arc<Inputs>,
    job: Job,
    record_maker: Rc<RefCell<Option<RecordMaker>>>,
    current: Option<(Input, Box<dyn CaptureReader>)>,
    /// Of the current one.
    digest: DigestCell,
    /// What was read of each input so far, the current one last.
    read: Vec<InputRecord>,
    capture: Capture,
    /// Links of the capture are still to be sent.
    is_sending: bool,
    with_digests: Vec<Input>,
    borrows: Vec<Borrow>,
    captures: u64,
}

impl Reading {
    fn step(&mut self, outbox: &mut Outbox) -> Result<bool, Error> {
        if self.is_sending {
            self.is_sending = send_next_links(&mut self.capture, &self.job, &self.record_maker, outbox)?;
            return Ok(true);
        }
        let Some((input, reader)) = &mut self.current else {
            let number = self.inputs.next.fetch_add(1, Relaxed);
            let Some(input) = self.inputs.inputs.get(number) else { return Ok(false) };
            let bytes_read = self.job.progress().bytes_counter();
            self.digest = DigestCell::default();
            let reader = open_metered(input, self.inputs.meaning.kinds, bytes_read, Arc::clone(&self.digest))?;
            self.current = Some((input.clone(), reader));
            self.read.push(record_of(input));
            return Ok(true);
        };
        let mut record_maker = self.record_maker.borrow_mut();
        let record_maker = record_maker.as_mut().ok_or(Error::Internal("reading goes on after its end"))?;
        if !reader.read(&mut self.capture, &mut record_maker.tally)? {
            self.current = None;
            if let (Some(read), Some(InputDigest { xxh3, bytes })) = (self.read.last_mut(), self.digest.get()) {
                (read.digest, read.bytes) = (Some(format!("{xxh3:032x}")), *bytes);
            }
            self.job.progress().add_input_done();
            return Ok(true);
        }
        let elsewhere = refers_elsewhere(&self.capture);
        if elsewhere && let Content::Revisit(revisit) = &mut self.capture.content {
            // The time of a capture of another page says nothing about the captures of this one.
            revisit.time = None;
        }
        if !record_maker.send(&self.capture, outbox)? {
            return Ok(true);
        }
        self.is_sending = true;
        self.captures += 1;
        if let Some(read) = self.read.last_mut() {
            let time = Some(self.capture.time);
            read.captures += 1;
            read.first = read.first.min(time).or(time);
            read.last = read.last.max(time);
        }
        self.job.progress().add_captures(1);
        let Some(digest) = self.capture.digest else { return Ok(true) };
        match &self.capture.content {
            Content::Links => {
                if self.with_digests.last() != Some(input) {
                    self.with_digests.push(input.clone());
                }
            }
            Content::Revisit(_) if elsewhere => {
                let (time, url) = (self.capture.time, self.capture.url.clone());
                self.borrows.push(Borrow { digest: digest.0, time, url });
            }
            Content::Revisit(_) | Content::Unknown => {}
        }
        Ok(true)
    }
}

/// Sends the links of a capture that wait for their turn; whether there were any.
fn send_next_links(
    capture: &mut Capture,
    job: &Job,
    record_maker: &RefCell<Option<RecordMaker>>,
    outbox: &mut Outbox,
) -> Result<bool, Error> {
    let has_links = capture.links.turn().map_err(|source| job.scratch().error(source))?;
    if has_links && let Some(record_maker) = &mut *record_maker.borrow_mut() {
        record_maker.send(capture, outbox)?;
    }
    Ok(has_links)
}

/// A capture to read into, whose links are within a bound.
fn bounded(job: &Job) -> Capture {
    Capture { links: Texts::within(TEXT_BYTES_MAX, job.scratch().directory()), ..Capture::default() }
}

/// Reads the inputs; see the head of this file.
pub(crate) fn ingest(
    worker: &mut Worker,
    job: &Job,
    inputs: &Arc<Inputs>,
    state: &mut BuildState,
) -> Result<(), Stopped> {
    let record_maker =
        Rc::new(RefCell::new(Some(RecordMaker::new(job, inputs.meaning.url_bytes_max, &inputs.kept_out))));
    let captures = Collector::new(Sorter::new(job.scratch(), "captures", job.budget_beside_reader(50)));
    let reading = Rc::new(RefCell::new(Reading {
        inputs: Arc::clone(inputs),
        job: job.clone(),
        record_maker: Rc::clone(&record_maker),
        current: None,
        digest: DigestCell::default(),
        capture: bounded(job),
        is_sending: false,
        with_digests: Vec::new(),
        borrows: Vec::new(),
        captures: 0,
        read: Vec::new(),
    }));
    let read = Rc::clone(&reading);
    shuffle(worker, job, "ingest", move |outbox| read.borrow_mut().step(outbox), captures.consumer())?;
    let (borrows, again) = {
        let mut reading = reading.borrow_mut();
        state.captures_read = reading.captures;
        state.inputs = std::mem::take(&mut reading.read);
        (std::mem::take(&mut reading.borrows), std::mem::take(&mut reading.with_digests))
    };
    let requested = tell_all(worker, job, borrows)?;
    if !requested.is_empty() {
        read_again(worker, job, inputs.meaning.kinds, &record_maker, &captures, again, requested)?;
    }
    let RecordMaker { urls, sample, tally, .. } = record_maker.take().ok_or(Stopped)?;
    state.row.tally = tally;
    state.captures = job.check(captures.into_inner().and_then(Sorter::into_runs))?;
    state.urls = job.check(urls.into_runs())?;
    state.sample = job.check(sample.into_runs(job.scratch()))?;
    Ok(())
}

type Requested = HashMap<u128, Vec<(String, i64)>>;

/// Tells every worker which payloads are wanted, and for which pages and times.
fn tell_all(worker: &mut Worker, job: &Job, mut borrows: Vec<Borrow>) -> Result<Requested, Stopped> {
    let requested = Rc::new(RefCell::new(Requested::new()));
    let received = Rc::clone(&requested);
    shuffle(
        worker,
        job,
        "ingest",
        move |outbox| {
            let Some(Borrow { digest, time, url }) = borrows.pop() else { return Ok(false) };
            outbox.send_to_all(&digest.to_be_bytes(), &[&wire::time_key(time), url.as_bytes()].concat());
            Ok(true)
        },
        move |block| {
            let mut received = received.borrow_mut();
            wire::for_each(&block, |mut key, mut payload| {
                let digest = u128::from_be_bytes(wire::take_array(&mut key));
                let time = wire::key_time(wire::take_array(&mut payload));
                received.entry(digest).or_default().push((String::from_utf8_lossy(payload).into_owned(), time));
            });
            Ok(())
        },
    )?;
    Ok(requested.take())
}

/// Reads inputs again and lends the links of wanted payloads to the pages that want them.
fn read_again(
    worker: &mut Worker,
    job: &Job,
    kinds: LinkKinds,
    record_maker: &Rc<RefCell<Option<RecordMaker>>>,
    captures: &Collector,
    mut again: Vec<Input>,
    requested: Requested,
) -> Result<(), Stopped> {
    let record_maker = Rc::clone(record_maker);
    let mut current: Option<Box<dyn CaptureReader>> = None;
    let (mut capture, mut counted_already) = (bounded(job), Tally::default());
    // Whom the payload that was read goes to, and whether they are to have more of it.
    let (mut lent, mut is_lending) = (Vec::new(), false);
    let names = job.clone();
    again.retain(|input| input.path != Path::new("-"));
    shuffle(
        worker,
        job,
        "ingest",
        move |outbox| {
            if is_lending {
                is_lending = capture.links.turn().map_err(|source| names.scratch().error(source))?;
                if is_lending {
                    lend(&mut capture, &lent, &record_maker, outbox)?;
                }
                return Ok(true);
            }
            let Some(reader) = &mut current else {
                let Some(input) = again.pop() else { return Ok(false) };
                current = Some(open(&input, kinds)?);
                return Ok(true);
            };
            if !reader.read(&mut capture, &mut counted_already)? {
                current = None;
                return Ok(true);
            }
            if capture.content == Content::Links
                && let Some(pages) = capture.digest.and_then(|digest| requested.get(&digest.0))
            {
                lent.clone_from(pages);
                lend(&mut capture, &lent, &record_maker, outbox)?;
                is_lending = true;
            }
            Ok(true)
        },
        captures.consumer(),
    )
}

/// Sends the links that are held of a payload to the pages that want it.
fn lend(
    capture: &mut Capture,
    pages: &[(String, i64)],
    record_maker: &RefCell<Option<RecordMaker>>,
    outbox: &mut Outbox,
) -> Result<(), Error> {
    let mut record_maker = record_maker.borrow_mut();
    let record_maker = record_maker.as_mut().ok_or(Error::Internal("reading goes on after its end"))?;
    for (url, time) in pages {
        capture.url.clone_from(url);
        capture.time = *time;
        record_maker.send(capture, outbox)?;
    }
    Ok(())
}
