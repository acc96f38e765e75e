//! Stage 1: reads crawl files and emits captures, with fingerprints for URLs.
//!
//! Every worker takes inputs from a common list and reads them. A capture goes to the worker that owns its page. The
//! hash of the page decides the owner, so that one worker does not get all pages of a large host. The text of each URL
//! that was not seen recently stays on the reading worker, as the URL key with the fingerprint.
//!
//! If the links of a capture do not fit into one record, the capture becomes several capture records with the same page
//! and time. Together these records are one capture, like any captures of one second.
//!
//! Capture record: key = fingerprint of the page (16 bytes), time (8 bytes, [`wire::time_key`]); payload = kind, the
//! data of the kind, then the fingerprints of at most [`LINKS_MAX`] links, 16 bytes each, ascending, each once. A
//! fingerprint has 121 bits. The last 7 bits hold the form of a link ([`webstrata_datasets::Form`]) if the capture has
//! a digest, so that a later revisit of another URL can have the links. Otherwise these bits are 0.
//! URL record: key = the URL key of the layers crate, payload = fingerprint.
//!
//! If a revisit refers to a capture of another URL, the links of that capture are resolved against the URL of the
//! revisit: see [`lending`].

mod held;
mod kept_out;
pub(crate) mod known_links;
mod lending;

use crate::Error;
use crate::meaning::Meaning;
use crate::stages::ingest::held::Names;
use crate::stages::ingest::kept_out::KeptOut;
use crate::stages::ingest::known_links::{Known, KnownLinks, Memo, Missed, hash_of};
use crate::stages::ingest::lending::{Offering, StoredRevisit, Want, lend};
use crate::stages::partition::Sample;
use crate::stages::records::{form_of, kind, owner, short, with_form, without_form};
use crate::stages::state::BuildState;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use timely::worker::Worker;
use webstrata_datasets::{
    Base, Capture, CaptureReader, Content, DigestCell, Finding, Fingerprint, Form, Input, InputDigest, Interner,
    NameList, Profile, Spill, Tally, Texts, open_metered,
};
use webstrata_engine::{Collector, Context, Job, Outbox, Sorter, Stopped, shuffle, wire};
use webstrata_layers::{Cut, InputRecord, Removals, Status};
use webstrata_url::canonical;
use xxhash_rust::xxh3::xxh3_128;

type SharedMaker = Rc<RefCell<Option<RecordMaker>>>;

const HASH_BYTES: usize = 16;

/// The maximum number of links of a capture record: a merge of runs holds many records at once.
const LINKS_MAX: usize = 1 << 14;
/// The maximum size of the link texts that are resolved at once, in bytes; further links of a capture go to disk.
const TEXT_BYTES_MAX: usize = 4 << 20;

/// The least number of slots in the cache of recently seen URLs.
const INTERNER_SLOTS_MIN: usize = 1 << 12;
/// The size of a slot in bytes.
const INTERNER_SLOT_BYTES: usize = 32;

/// The inputs that a process reads, shared by its workers.
pub(crate) struct Inputs {
    pub(crate) inputs: Vec<Input>,
    pub(crate) meaning: Meaning,
    /// The removals of the store: their pages and links are not read.
    pub(crate) kept_out: Removals,
    pub(crate) next: AtomicUsize,
}

/// Returns the inputs of one of several processes. The large inputs are assigned first, each to the process with the
/// fewest bytes so far.
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
    /// The length of the payload before the links, in bytes.
    head: usize,
    known: KnownLinks,
    memo: Memo,
    url_bytes_max: usize,
    kept_out: KeptOut,
    /// If links are held, the pages that were recently named.
    names: Option<Names>,
    /// The number of links of the last capture with the form [`Form::OTHER`].
    other_forms: usize,
}

/// How a capture names a URL: as its page or as a link, and the time of the capture.
#[derive(Clone, Copy)]
struct Use {
    is_page: bool,
    time: i64,
}

impl RecordMaker {
    fn new(job: &Job, meaning: &Meaning, removals: &Removals) -> Self {
        let url_bytes_max = meaning.url_bytes_max;
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
            names: (meaning.min_sources > 1).then(Names::new),
            other_forms: 0,
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
            webstrata_layers::record::key::key(url, key);
            // If a removal selects this URL, the URL may not belong to the store: the way in which it is named decides.
            if kept_out.is_named(fingerprint, key) {
                return;
            }
            let fingerprint = without_form(fingerprint);
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
            let fingerprint = without_form(fingerprint);
            sample.offer(fingerprint, &named.key);
            urls.push(&named.key, &fingerprint.to_be_bytes())?;
        }
        Ok(Ok(without_form(fingerprint)))
    }

    /// Sends a capture to the owner of its page. Returns `false` if the URL of the capture is not the URL of a page.
    fn send(&mut self, capture: &Capture, outbox: &mut Outbox) -> Result<bool, Error> {
        let page = match self.fingerprint(None, &capture.url, Use { is_page: true, time: capture.time })? {
            Ok(page) => page,
            Err(finding) => {
                match finding {
                    Finding::RemovedPage => self.tally.count(Finding::RemovedPage),
                    Finding::OtherLinkScheme => self.tally.count(Finding::OtherPageScheme),
                    Finding::LongLink => self.tally.count(Finding::LongPageUrl),
                    _ => {
                        const SHOWN_CHARS: usize = 200;
                        self.tally.name(Finding::BadPageUrl, capture.url.chars().take(SHOWN_CHARS).collect());
                    }
                }
                return Ok(false);
            }
        };
        self.name_page(page, &capture.url, outbox);
        let digest = capture.digest.map_or(0, |digest| digest.0).to_be_bytes();
        let mut key = [0; 24];
        key[..16].copy_from_slice(&page.to_be_bytes());
        key[16..].copy_from_slice(&wire::time_key(capture.time));
        self.payload.clear();
        let status = status_of(capture);
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
                // The same texts give other links if other links are kept out, and give no forms without a digest.
                let texts = texts.wrapping_add(self.kept_out.period(capture.time));
                let texts = if capture.digest.is_some() { !texts } else { texts };
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
                self.append_links(capture)?.count(&mut self.tally);
            }
            (Content::Revisit(revisit), _) => {
                let is_elsewhere = lending::refers_elsewhere(capture);
                self.payload.push(match revisit.profile {
                    Profile::IdenticalDigest if is_elsewhere => kind::ELSEWHERE,
                    Profile::IdenticalDigest => kind::IDENTICAL,
                    Profile::NotModified => kind::NOT_MODIFIED,
                });
                self.payload.extend_from_slice(&digest);
                // The time of a capture of another page says nothing about the captures of this page.
                let time = revisit.time.filter(|_| !lending::names_another_page(capture));
                self.payload.extend_from_slice(&time.map_or([0; 8], wire::time_key));
                let without_status = revisit.profile == Profile::IdenticalDigest && capture.status.is_none();
                self.payload.push(u8::from(without_status));
                self.append_links(capture)?.count(&mut self.tally);
            }
        }
        self.send_split(owner(page, outbox.workers()), &key, outbox);
        Ok(true)
    }

    /// Sends the key of a page to the owner of the page, if links are held.
    #[inline]
    fn name_page(&mut self, page: u128, url: &str, outbox: &mut Outbox) {
        if self.names.as_mut().is_some_and(|names| names.is_new(page))
            && let Ok(url) = canonical(None, url)
        {
            let mut key = Vec::new();
            webstrata_layers::record::key::key(&url, &mut key);
            self.name(page, &key, outbox);
        }
    }

    /// Appends the status, the digest and the links of a capture.
    fn append_with_status(&mut self, capture: &Capture, status: Status, digest: [u8; 16]) -> Result<(), Error> {
        self.payload.extend_from_slice(&status.number().to_be_bytes());
        self.payload.extend_from_slice(&digest);
        self.append_links(capture).map(|missed| missed.count(&mut self.tally))
    }

    /// Sends the finished payload, as several records if it has too many links for one record.
    fn send_split(&self, owner: usize, key: &[u8], outbox: &mut Outbox) {
        let record_max = self.head + LINKS_MAX * HASH_BYTES;
        let (first, rest) = self.payload.split_at(self.payload.len().min(record_max));
        outbox.send(owner, key, first);
        for links in rest.chunks(LINKS_MAX * HASH_BYTES) {
            outbox.send(owner, key, &[&first[..self.head], links].concat());
        }
    }

    /// Makes the payload of a capture with its links and returns `None`. If the page was last sent with the same links,
    /// leaves the payload empty and returns the hash of the links.
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
        missed.count(&mut self.tally);
        let links = &self.payload[start..];
        // One link takes no more space than a hash, and fewer captures to resolve leave fewer things to go wrong. A
        // hash refers to the links of one record.
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

    /// Appends the links of a capture to the payload, ascending, each once. Returns the counts of texts that were left
    /// out.
    fn append_links(&mut self, capture: &Capture) -> Result<Missed, Error> {
        self.head = self.payload.len();
        self.links.clear();
        // A capture without a digest lends its links to no revisit, and a revisit lends no links.
        let has_forms = capture.digest.is_some() && capture.content == Content::Links;
        let form = |text: &str| if has_forms { Form::of(&capture.base, text).code() } else { 0 };
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
                        self.links.push(with_form(link, form(text)));
                    }
                    Err(finding) => missed.add(finding),
                }
            }
        } else {
            for link in capture.links.iter() {
                match self.fingerprint(base.as_ref(), link, named_as)? {
                    Ok(fingerprint) => self.links.push(with_form(fingerprint, form(link))),
                    Err(finding) => missed.add(finding),
                }
            }
        }
        self.links.sort_unstable();
        self.links.dedup();
        self.links.iter().for_each(|link| self.payload.extend_from_slice(&link.to_be_bytes()));
        self.other_forms = self.links.iter().filter(|&&link| form_of(link) == Form::OTHER.code()).count();
        Ok(missed)
    }

    /// Whether a capture lends its links to revisits: its status is 200 or it is cut, its page is not kept out, and its
    /// links under other URLs are known.
    fn lends(&mut self, capture: &Capture) -> Result<bool, Error> {
        if capture.content != Content::Links || !status_of(capture).has_page() {
            return Ok(false);
        }
        if self.fingerprint(None, &capture.url, Use { is_page: true, time: capture.time })?.is_err() {
            return Ok(false);
        }
        self.payload.clear();
        self.append_links(capture)?;
        Ok(self.other_forms == 0)
    }

    /// Whether a removal takes a link out of a capture. Then the capture does not lend the link, as a capture of the
    /// store does not have it.
    fn keeps_out(&mut self, capture: &Capture, link: &str) -> Result<bool, Error> {
        if self.kept_out.is_empty() {
            return Ok(false);
        }
        let base = Base::within(&capture.url, &capture.base, self.url_bytes_max).ok();
        let found = self.fingerprint(base.as_ref(), link, Use { is_page: false, time: capture.time })?;
        Ok(matches!(found, Err(Finding::RemovedLink)))
    }

    /// Sends the links of captures with a status to a revisit of another URL, which the store may have. `capture` has
    /// the links, and the URL, the time and the digest of the revisit.
    fn lend(
        &mut self,
        capture: &Capture,
        status: Status,
        stored: Option<StoredRevisit>,
        outbox: &mut Outbox,
    ) -> Result<(), Error> {
        let Ok(page) = self.fingerprint(None, &capture.url, Use { is_page: true, time: capture.time })? else {
            return Ok(());
        };
        self.name_page(page, &capture.url, outbox);
        let mut key = [0; 24];
        key[..16].copy_from_slice(&page.to_be_bytes());
        key[16..].copy_from_slice(&wire::time_key(capture.time));
        let owner = owner(page, outbox.workers());
        let digest = capture.digest.map_or(0, |digest| digest.0).to_be_bytes();
        if let Some(StoredRevisit { without_status }) = stored {
            // The stored revisit once more, for the links to belong to.
            let revisit = [&[kind::ELSEWHERE], &digest[..], &[0; 8], &[u8::from(without_status)]].concat();
            outbox.send(owner, &key, &revisit);
        }
        self.payload.clear();
        self.payload.push(kind::LENT);
        self.payload.extend_from_slice(&status.number().to_be_bytes());
        self.payload.extend_from_slice(&digest);
        self.append_links(capture)?;
        self.send_split(owner, &key, outbox);
        Ok(())
    }
}

/// Returns the record of an input before anything was read from the input.
fn record_of(input: &Input) -> InputRecord {
    let name = input.name().display().to_string();
    InputRecord { name, bytes: input.bytes, captures: 0, first: None, last: None, digest: None }
}

fn set_digest(record: &mut InputRecord, InputDigest { xxh3, bytes }: InputDigest) {
    (record.digest, record.bytes) = (Some(format!("{xxh3:032x}")), bytes);
}

/// Returns the record of a list that named inputs.
pub(crate) fn record_of_list(list: &NameList) -> InputRecord {
    let name = list.path.display().to_string();
    let mut record = InputRecord { name, bytes: 0, captures: 0, first: None, last: None, digest: None };
    if let Some(digest) = list.digest {
        set_digest(&mut record, digest);
    }
    record
}

/// Reads inputs, one capture a call.
struct Reading {
    inputs: Arc<Inputs>,
    job: Job,
    record_maker: Rc<RefCell<Option<RecordMaker>>>,
    current: Option<(Input, Box<dyn CaptureReader>)>,
    /// The digest of the current input.
    digest: DigestCell,
    /// The records of the inputs read so far, the current input last.
    read: Vec<InputRecord>,
    capture: Capture,
    /// Whether the capture has links that were not sent yet.
    is_sending: bool,
    offering: Offering,
    wants: Vec<Want>,
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
            let inputs = &self.inputs.inputs;
            let Some(input) = inputs.get(number) else {
                // Each worker comes here once, after its last input. The last worker leaves no reader behind.
                if number + 1 == inputs.len() + self.job.workers() {
                    inputs.iter().for_each(Input::forget);
                }
                return Ok(false);
            };
            let bytes_read = self.job.progress().bytes_counter();
            self.digest = DigestCell::default();
            let (options, spill) = (self.inputs.meaning.reading(), spill_of(&self.job));
            // Revisits of other URLs are known at the end of all inputs, and may need this input again.
            let input = input.kept(&spill)?;
            let reader = open_metered(&input, options, bytes_read, Arc::clone(&self.digest), &spill)?;
            self.read.push(record_of(&input));
            self.current = Some((input, reader));
            return Ok(true);
        };
        let mut record_maker = self.record_maker.borrow_mut();
        let record_maker = record_maker.as_mut().ok_or(Error::Internal("reading goes on after its end"))?;
        if !reader.read(&mut self.capture, &mut record_maker.tally)? {
            self.current = None;
            if let (Some(read), Some(digest)) = (self.read.last_mut(), self.digest.get()) {
                set_digest(read, *digest);
            }
            self.job.progress().add_input_done();
            return Ok(true);
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
        self.job.progress().add_input_records(1);
        match self.capture.digest.map(|digest| short(digest.0)) {
            Some(digest) if self.capture.content == Content::Links => self.offering.add(input, digest)?,
            Some(digest) if lending::refers_elsewhere(&self.capture) => {
                let (time, url) = (self.capture.time, self.capture.url.clone());
                self.wants.push(Want { digest, time, url });
            }
            _ => {}
        }
        Ok(true)
    }
}

/// Sends the links of a capture that wait for their turn. Returns whether there were any.
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

/// Where readers keep what they read only once, and when they stop waiting for it.
fn spill_of(job: &Job) -> Spill {
    let waiting = job.clone();
    Spill::new(job.scratch().directory(), move || waiting.failed())
}

/// Returns a capture to read into, which keeps a bounded amount of its links in memory.
fn bounded(job: &Job) -> Capture {
    Capture { links: Texts::within(TEXT_BYTES_MAX, job.scratch().directory()), ..Capture::default() }
}

/// Reads the inputs; see the head of this file.
pub(crate) fn ingest(
    worker: &mut Worker,
    context: &Context,
    inputs: &Arc<Inputs>,
    state: &mut BuildState,
) -> Result<(), Stopped> {
    let job = &context.job;
    let record_maker = Rc::new(RefCell::new(Some(RecordMaker::new(job, &inputs.meaning, &inputs.kept_out))));
    let captures = Collector::new(Sorter::new(job.scratch(), "captures", job.budget_beside_reader(50)));
    let reading = Rc::new(RefCell::new(Reading {
        inputs: Arc::clone(inputs),
        job: job.clone(),
        record_maker: Rc::clone(&record_maker),
        current: None,
        digest: DigestCell::default(),
        capture: bounded(job),
        is_sending: false,
        offering: Offering::new(context),
        wants: Vec::new(),
        captures: 0,
        read: Vec::new(),
    }));
    let read = Rc::clone(&reading);
    shuffle(worker, job, "ingest", move |outbox| Ok(read.borrow_mut().step(outbox)?), captures.consumer())?;
    let (wants, offering) = {
        let mut reading = reading.borrow_mut();
        state.captures_read = reading.captures;
        state.inputs = std::mem::take(&mut reading.read);
        (std::mem::take(&mut reading.wants), std::mem::take(&mut reading.offering))
    };
    lend(worker, context, inputs.meaning.reading(), (&record_maker, &captures), wants, offering)?;
    held::bring_back(worker, context, (&record_maker, &captures))?;
    let RecordMaker { urls, sample, tally, .. } = record_maker.take().ok_or(Stopped)?;
    state.row.tally = tally;
    state.captures = job.check(captures.into_inner().and_then(Sorter::into_runs))?;
    state.urls = job.check(urls.into_runs())?;
    state.sample = job.check(sample.into_runs(job.scratch()))?;
    Ok(())
}

/// The status of a capture, with the reason why it is cut.
fn status_of(capture: &Capture) -> Status {
    let code = capture.status.unwrap_or(Status::OK.code());
    let status = capture.cut.map_or(Status::new(code), |cut| Status::cut(code, reason_of(cut)));
    status.unwrap_or(Status::OK)
}

/// The reason of a reader, as a store has it.
fn reason_of(cut: webstrata_datasets::Cut) -> Cut {
    match cut {
        webstrata_datasets::Cut::Truncated => Cut::Truncated,
        webstrata_datasets::Cut::Short => Cut::Short,
        webstrata_datasets::Cut::Damaged => Cut::Damaged,
        webstrata_datasets::Cut::Encoding => Cut::Encoding,
        webstrata_datasets::Cut::Segments => Cut::Segments,
        webstrata_datasets::Cut::Partial => Cut::Partial,
    }
}
