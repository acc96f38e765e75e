//! Stage 5: replaces fingerprints with UIDs (the replacement step of Avcular & Suel 2011, section 3).
//!
//! At the owner of a fingerprint, requests and UIDs meet in one merge of two sorted streams. The answers go back to the
//! worker that holds the page, where they are sorted by (page, slot) and merged with the spooled pages. A finished page
//! has its links as pairs of UID and form ([`webstrata_layers::record::form`]) in order, with its changes in the same
//! order. The page goes to the worker that writes its partition.
//!
//! Answer record: key = number of the page (8 bytes), slot (8 bytes); payload = UID in LEB128.
//! Page record: key = UID (8 bytes); payload = [`crate::stages::page_record::write`].

use crate::Error;
use crate::row::{Offsets, url_of};
use crate::stages::held::links as held_links;
use crate::stages::page_record::{self, RevisitLink, SpooledLinks};
use crate::stages::records::Request;
use crate::stages::state::BuildState;
use std::sync::Arc;
use timely::worker::Worker;
use webstrata_engine::{Collector, Context, Outbox, RunReader, Sorted, Sorter, Stopped, shuffle, wire};
use webstrata_layers::record::form::formed;
use webstrata_layers::{Change, Evidence, Page, Payload, Reader, Revisit, RowDir, Uid};

/// The parts of the budget, in percent. Answers may still be in memory while page records are sorted.
const ANSWERS_PERCENT: usize = 45;
const RANGED_PERCENT: usize = 35;

struct Join {
    requests: Sorted,
    uids: Sorted,
    /// The current UID record of the merge.
    at: Option<(u128, Uid)>,
    payload: Vec<u8>,
    /// The row, the store and the offsets, to look up URLs for messages.
    row: RowDir,
    base: Option<Arc<Reader>>,
    offsets: Offsets,
}

impl Join {
    fn advance(&mut self) -> Result<(), Error> {
        let before = self.at;
        self.at = self.uids.next()?.map(|(mut fingerprint, mut uid)| {
            (u128::from_be_bytes(wire::take_array(&mut fingerprint)), Uid(wire::take(&mut uid)))
        });
        match (before, self.at) {
            (Some((a, first)), Some((b, second))) if a == b => {
                Err(Error::SameFingerprint { first: self.url(first)?, second: self.url(second)? })
            }
            _ => Ok(()),
        }
    }

    fn url(&self, uid: Uid) -> Result<String, Error> {
        if held_links::is_held(uid) {
            return Ok("a URL that is held".to_owned());
        }
        url_of(&self.row, self.base.as_deref(), &self.offsets, uid)
    }

    fn step(&mut self, outbox: &mut Outbox) -> Result<bool, Error> {
        let Some((mut fingerprint, payload)) = self.requests.next()? else {
            // The remaining UIDs are still read, to find two UIDs of one fingerprint.
            while self.at.is_some() {
                self.advance()?;
            }
            return Ok(false);
        };
        let fingerprint = u128::from_be_bytes(wire::take_array(&mut fingerprint));
        let Request { worker, number, slot, .. } = Request::read(payload);
        while self.at.is_some_and(|(at, _)| at < fingerprint) {
            self.advance()?;
        }
        if let Some((at, uid)) = self.at
            && at == fingerprint
        {
            let mut key = [0; 16];
            key[..8].copy_from_slice(&number.to_be_bytes());
            key[8..].copy_from_slice(&slot.to_be_bytes());
            self.payload.clear();
            wire::put(&mut self.payload, uid.0);
            outbox.send(worker, &key, &self.payload);
        }
        Ok(true)
    }
}

struct Assembly {
    pages: RunReader,
    answers: Sorted,
    /// The current answer of the merge: number of the page, slot, UID.
    at: Option<(u64, u64, Uid)>,
    number: u64,
    records: Offsets,
    page: Page,
    evidence: Evidence<RevisitLink>,
    /// The UIDs of the URLs of links, then of the links of revisits, then of held links; `None` for URLs that were left
    /// out.
    uids: Vec<Option<Uid>>,
    /// The UID with form, and the number, of each link of the page.
    slots: Vec<(Uid, usize)>,
    changes: Vec<Change>,
    /// The spooled data about held links.
    held: Vec<u8>,
    record: Vec<u8>,
}

impl Assembly {
    fn advance(&mut self) -> Result<(), Error> {
        self.at = self.answers.next()?.map(|(mut key, mut uid)| {
            let number = u64::from_be_bytes(wire::take_array(&mut key));
            let slot = u64::from_be_bytes(wire::take_array(&mut key));
            (number, slot, Uid(wire::take(&mut uid)))
        });
        Ok(())
    }

    fn step(&mut self, outbox: &mut Outbox) -> Result<bool, Error> {
        let Some((_, spooled)) = self.pages.next()? else { return Ok(false) };
        let (links, revisit_links, held) = page_record::read_spooled(spooled, &mut self.page, &mut self.evidence);
        let urls = links.urls();
        self.uids.clear();
        self.uids.resize(urls + revisit_links + held_links::urls_of(held), None);
        self.held.clear();
        self.held.extend_from_slice(held);
        let mut uid = None;
        while let Some((number, slot, answer)) = self.at.filter(|at| at.0 == self.number) {
            debug_assert_eq!(number, self.number);
            match slot.checked_sub(1) {
                None => uid = Some(answer),
                Some(slot) => self.uids[usize::try_from(slot).unwrap_or(usize::MAX)] = Some(answer),
            }
            self.advance()?;
        }
        self.number += 1;
        self.page.uid = uid.ok_or(Error::Internal("a page without UID"))?;
        self.slots.clear();
        self.slots.reserve_exact(links.count);
        let slot = |(number, (url, form)): (usize, (usize, u8))| Some((formed(self.uids[url]?, form), number));
        self.slots.extend(links.each().enumerate().filter_map(slot));
        self.reorder(links.count);
        let mut evidence = self.with_uids(urls);
        if !self.evidence.payloads.is_empty() {
            evidence.payloads = self.payloads(&links);
        }
        self.record.clear();
        page_record::write(&mut self.record, &self.page, &evidence);
        held_links::write_with_uids(&mut self.record, &self.held, &self.uids[urls + revisit_links..]);
        let worker = Offsets::worker(self.records.of(self.page.uid), outbox.workers());
        outbox.send(worker, &self.page.uid.0.to_be_bytes(), &self.record);
        Ok(true)
    }

    /// Returns the evidence of the page in UIDs, without links that have no UID and without payloads.
    fn with_uids(&mut self, urls: usize) -> Evidence {
        let (digests, revisits) = (&mut self.evidence.digests, &mut self.evidence.revisits);
        let (digests, revisits) = (std::mem::take(digests), std::mem::take(revisits));
        let of_revisits = self.uids.get(urls..).unwrap_or_default();
        let uid = |&RevisitLink(at): &RevisitLink| usize::try_from(at).ok().and_then(|at| *of_revisits.get(at)?);
        let with_uids = |revisit: Revisit<RevisitLink>| {
            let Revisit { capture, not_modified, without_status, elsewhere, referred, links } = revisit;
            let mut links: Vec<Uid> = links.iter().filter_map(uid).collect();
            links.sort_unstable();
            Revisit { capture, not_modified, without_status, elsewhere, referred, links }
        };
        Evidence { digests, revisits: revisits.into_iter().map(with_uids).collect(), ..Evidence::default() }
    }

    /// Returns the payloads of the page in UIDs with forms, without links that have no UID.
    fn payloads(&self, links: &SpooledLinks) -> Vec<Payload> {
        let uids: Vec<Option<Uid>> = links.each().map(|(url, form)| Some(formed(self.uids[url]?, form))).collect();
        let uid = |&RevisitLink(at): &RevisitLink| usize::try_from(at).ok().and_then(|at| *uids.get(at)?);
        let with_uids = |Payload { capture, digest, links }: &Payload<RevisitLink>| {
            let mut links: Vec<Uid> = links.iter().filter_map(uid).collect();
            links.sort_unstable();
            Payload { capture: *capture, digest: *digest, links }
        };
        self.evidence.payloads.iter().map(with_uids).collect()
    }

    /// Sorts links and changes by UID with form instead of slot; drops links that have no UID.
    fn reorder(&mut self, links: usize) {
        const DROPPED: u32 = u32::MAX;
        self.slots.sort_unstable();
        let mut positions = vec![DROPPED; links];
        self.page.links.clear();
        for (new, &(uid, slot)) in (0u32..).zip(&self.slots) {
            positions[slot] = new;
            self.page.links.push(uid);
        }
        self.changes.clear();
        self.changes.extend(self.page.changes.iter().filter_map(|change| {
            let link = positions[change.link as usize];
            (link != DROPPED).then_some(Change { link, capture: change.capture })
        }));
        self.changes.sort_unstable();
        std::mem::swap(&mut self.changes, &mut self.page.changes);
    }
}

/// Replaces fingerprints with UIDs; see the head of this file.
pub(crate) fn replace(worker: &mut Worker, context: &Context, state: &mut BuildState) -> Result<(), Stopped> {
    let job = &context.job;
    let requests = job.check(Sorted::of(&std::mem::take(&mut state.requests), job.scratch()))?;
    let uids = job.check(Sorted::of(&std::mem::take(&mut state.uids), job.scratch()))?;
    let (row, base, offsets) = (context.row.clone(), context.base.clone(), state.row.offsets.clone());
    let mut join = Join { requests, uids, at: None, payload: Vec::new(), row, base, offsets };
    job.check(join.advance())?;
    let answers = Collector::new(Sorter::new(job.scratch(), "answers", job.budget_beside_record(ANSWERS_PERCENT)));
    shuffle(worker, job, "replace", move |outbox| Ok(join.step(outbox)?), answers.consumer())?;
    let pages = std::mem::take(&mut state.pages);
    let pages = pages.0.first().ok_or(Error::Internal("a worker without a run of pages"));
    let mut assembly = Assembly {
        pages: job.check(RunReader::open(job.check(pages)?, job.scratch()))?,
        answers: job.check(answers.into_inner().and_then(Sorter::finish))?,
        at: None,
        number: 0,
        records: state.row.records.clone(),
        page: Page::default(),
        evidence: Evidence::default(),
        uids: Vec::new(),
        slots: Vec::new(),
        changes: Vec::new(),
        held: Vec::new(),
        record: Vec::new(),
    };
    job.check(assembly.advance())?;
    let ranged = Collector::new(Sorter::new(job.scratch(), "page-records", job.budget_beside_record(RANGED_PERCENT)));
    shuffle(worker, job, "replace", move |outbox| Ok(assembly.step(outbox)?), ranged.consumer())?;
    state.page_records = job.check(ranged.into_inner().and_then(Sorter::into_runs))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use webstrata_engine::Scratch;
    use webstrata_layers::{StoreWriter, UrlWriter};

    #[test]
    fn two_urls_of_one_fingerprint_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let row = StoreWriter::open(dir.path(), "test", None).unwrap().begin_row().unwrap();
        for (partition, url) in [(0, "http://a.example/"), (1, "http://b.example/")] {
            let mut urls = UrlWriter::create(&row, partition).unwrap();
            urls.push(Uid(partition.into()), url, "example)/").unwrap();
            urls.finish().unwrap();
        }
        let scratch = Scratch::temporary(&std::env::temp_dir());
        let mut uids = Sorter::new(&scratch, "test", 1 << 20);
        for uid in [0u8, 1] {
            uids.push(&7u128.to_be_bytes(), &[uid]).unwrap();
        }
        let requests = Sorter::new(&scratch, "test", 1 << 20).finish().unwrap();
        let offsets = Offsets([0, 1, 2].map(Uid).to_vec());
        let uids = uids.finish().unwrap();
        let mut join = Join { requests, uids, at: None, payload: Vec::new(), row, base: None, offsets };
        join.advance().unwrap();
        let error = join.advance().unwrap_err().to_string();
        assert!(error.contains("http://a.example/ and http://b.example/"), "{error}");
    }
}
