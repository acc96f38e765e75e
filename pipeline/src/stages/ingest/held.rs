//! Brings the held links of the store ([`webstrata_layers::held`]) back, so that they are judged again together
//! with the inputs. Each link gives the URL records of its page and its target, a record with the key of the page, and
//! a record of the link. The last two records travel with the captures of the page.
//!
//! Every worker reads some of the files. Memory: a row group.

use super::{Context, Error, RecordMaker, SharedMaker, Stopped};
use crate::stages::held::links::write_record;
use crate::stages::records::{kind, owner, without_form};
use timely::worker::Worker;
use webstrata_datasets::Fingerprint;
use webstrata_engine::{Collector, Outbox, shuffle, wire};
use webstrata_layers::Location;
use webstrata_layers::held::{HeldEntry, HeldFile, HeldLink};

/// The number of links that are sent at once.
const LINKS: usize = 1 << 10;

/// The pages that were recently named to their owners. The slots are direct-mapped, so a page may be named again.
pub(super) struct Names(Vec<u128>);

impl Names {
    const SLOTS: usize = 1 << 12;

    pub(super) fn new() -> Self {
        Self(vec![0; Self::SLOTS])
    }

    /// Whether a page was not named recently; afterwards, the page counts as named.
    pub(super) fn is_new(&mut self, page: u128) -> bool {
        let slot = usize::try_from(page >> 64 & (Self::SLOTS as u128 - 1)).unwrap_or(0);
        self.0.get_mut(slot).is_some_and(|named| std::mem::replace(named, page) != page)
    }
}

impl RecordMaker {
    /// Sends the key of a page to the owner of the page.
    pub(super) fn name(&mut self, page: u128, key: &[u8], outbox: &mut Outbox) {
        let record = [&[kind::NAME], key].concat();
        outbox.send(owner(page, outbox.workers()), &key_of(page), &record);
    }

    fn bring_back(&mut self, held: &HeldLink, outbox: &mut Outbox) -> Result<(), Error> {
        let HeldLink { page, link, form, digest, times } = held;
        let [page_fingerprint, link_fingerprint] = [page, link].map(|url| without_form(Fingerprint::of(url).0));
        let mut key = Vec::new();
        webstrata_layers::record::key::key(page, &mut key);
        if self.names.as_mut().is_some_and(|names| names.is_new(page_fingerprint)) {
            self.name(page_fingerprint, &key, outbox);
            self.urls.push(&key, &page_fingerprint.to_be_bytes())?;
        }
        webstrata_layers::record::key::key(link, &mut key);
        self.urls.push(&key, &link_fingerprint.to_be_bytes())?;
        let mut record = vec![kind::HELD];
        write_record(&mut record, link_fingerprint, (*form, *digest), times);
        outbox.send(owner(page_fingerprint, outbox.workers()), &key_of(page_fingerprint), &record);
        Ok(())
    }
}

/// Returns the key of a record that belongs to a page and is not a capture.
fn key_of(page: u128) -> [u8; 24] {
    let mut key = [0; 24];
    key[..16].copy_from_slice(&page.to_be_bytes());
    key[16..].copy_from_slice(&wire::time_key(0));
    key
}

/// Sends the held links of this worker's files.
pub(super) fn bring_back(
    worker: &mut Worker,
    context: &Context,
    (record_maker, captures): (&SharedMaker, &Collector),
) -> Result<(), Stopped> {
    let Some(base) = &context.base else { return Ok(()) };
    let held = &base.store().manifest().provenance.held;
    if held.is_empty() {
        return Ok(());
    }
    let (index, peers, record_maker) = (worker.index(), worker.peers(), record_maker.clone());
    let mine = (0..).zip(held).filter(|(number, _)| number % peers == index).map(|(_, entry)| entry.clone());
    let mut reading = Reading {
        store: base.store().location().clone(),
        waiting: mine.collect(),
        file: None,
        links: Vec::new().into_iter(),
    };
    let produce = move |outbox: &mut Outbox| {
        let mut record_maker = record_maker.borrow_mut();
        let record_maker = record_maker.as_mut().ok_or(Error::Internal("reading goes on after its end"))?;
        for _ in 0..LINKS {
            let Some(held) = reading.next()? else { return Ok(false) };
            record_maker.bring_back(&held, outbox)?;
        }
        Ok(true)
    };
    shuffle(worker, &context.job, "ingest", produce, captures.consumer())
}

struct Reading {
    store: Location,
    waiting: Vec<HeldEntry>,
    /// The current file and the number of its next row group.
    file: Option<(HeldFile, usize)>,
    links: std::vec::IntoIter<HeldLink>,
}

impl Reading {
    fn next(&mut self) -> Result<Option<HeldLink>, Error> {
        loop {
            if let Some(held) = self.links.next() {
                return Ok(Some(held));
            }
            match &mut self.file {
                Some((file, group)) if *group < file.groups() => {
                    self.links = file.read(*group)?.into_iter();
                    *group += 1;
                }
                _ => {
                    let Some(entry) = self.waiting.pop() else { return Ok(None) };
                    self.file = Some((HeldFile::open(&self.store, &entry)?, 0));
                }
            }
        }
    }
}
