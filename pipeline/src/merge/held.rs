//! Stage 5 of a merge: writes the held links, if the merge adds to them.
//!
//! After removed data is gone, a URL may have too few sources. A merge of all rows then takes the URL out of the
//! layers, and holds its links from then on ([`webstrata_layers::held`]). If there is no such URL, the files of
//! held links stay: they name URLs, and no merge changes URLs.
//!
//! Record: key = key of the page, key of the target, form, digest; payload = length of the page's key, times: as in
//! [`crate::stages::held`].

use super::MergeState;
use super::streams::DROPPED;
use crate::Error;
use crate::stages::held::pages::take_out;
use crate::stages::held::{self, HeldRecords};
use crate::stages::partition::Sample;
use std::collections::HashMap;
use std::sync::Arc;
use timely::worker::Worker;
use webstrata_datasets::Fingerprint;
use webstrata_engine::{Context, Job, Sorted, Sorter, Stopped, gather};
use webstrata_layers::held::{HeldEntry, HeldFile, OF_REVISITS};
use webstrata_layers::record::form::{form_of, link_of};
use webstrata_layers::record::key::key_of;
use webstrata_layers::{Evidence, Links, Page, Reader, Uid};

/// The links of pages that this worker must hold.
pub(super) struct Holding {
    store: Arc<Reader>,
    records: HeldRecords,
}

impl Holding {
    pub(super) fn new(job: &Job, store: &Arc<Reader>) -> Self {
        Self { store: Arc::clone(store), records: HeldRecords::new(job, 10) }
    }

    /// Takes the links to dropped URLs out of a formed page; `uid` is the old UID of the page.
    pub(super) fn hold(&mut self, uid: Uid, page: &mut Page, evidence: &mut Evidence) -> Result<(), Error> {
        let taken = take_out(page, evidence, |link| link >= DROPPED);
        if taken.is_empty() {
            return Ok(());
        }
        let page_key = key_of(&self.store.url(uid)?);
        for held in taken {
            let old = Uid(held.link.0 & !DROPPED.0);
            let form = if held.of_revisits { OF_REVISITS } else { form_of(old) };
            let link_key = key_of(&self.store.url(link_of(old))?);
            self.records.push(&page_key, &link_key, (form, held.digest), &held.times)?;
        }
        Ok(())
    }

    pub(super) fn into_sorter(self) -> Sorter {
        self.records.into_sorter()
    }
}

/// Returns this worker's share of the files.
fn share<'a>(worker: &Worker, store: &'a Reader) -> Vec<&'a HeldEntry> {
    let (index, peers) = (worker.index(), worker.peers());
    let all = (0..).zip(&store.store().manifest().provenance.held);
    all.filter(|(at, _)| at % peers == index).map(|(_, entry)| entry).collect()
}

/// Returns the number of held links of each sampled page in this worker's files, by fingerprint.
pub(super) fn degrees(worker: &Worker, store: &Reader, sample: &Sample) -> Result<Vec<(u128, u64)>, Error> {
    let mut counts: HashMap<u128, u64> = HashMap::new();
    let mut last = (String::new(), String::new());
    for entry in share(worker, store) {
        let file = HeldFile::open(store.store().location(), entry)?;
        for group in 0..file.groups() {
            for held in file.read(group)?.into_iter().filter(|held| held.form != OF_REVISITS && held.digest == 0) {
                let fingerprint = Fingerprint::of(&held.page).0;
                // Several forms of a link are one link.
                if sample.has(fingerprint) && (&held.page, &held.link) != (&last.0, &last.1) {
                    *counts.entry(fingerprint).or_default() += 1;
                    last = (held.page, held.link);
                }
            }
        }
    }
    Ok(counts.into_iter().collect())
}

/// Writes the files of held links again; see the head of this file.
pub(super) fn held(
    worker: &mut Worker,
    context: &Context,
    store: &Reader,
    state: &mut MergeState,
) -> Result<(), Stopped> {
    let job = &context.job;
    let added = std::mem::take(&mut state.held_records);
    if !gather(worker, job, None, &(added.records() > 0))?.contains(&true) {
        return Ok(());
    }
    let mut records = HeldRecords::new(job, 40);
    let mine = share(worker, store);
    job.check::<_, Error>((|| {
        let mut added = Sorted::of(&added, job.scratch())?;
        while let Some((key, payload)) = added.next()? {
            records.push_record(key, payload)?;
        }
        for entry in mine {
            let file = HeldFile::open(store.store().location(), entry)?;
            for group in 0..file.groups() {
                for held in file.read(group)? {
                    records.push(&key_of(&held.page), &key_of(&held.link), (held.form, held.digest), &held.times)?;
                    job.go_on()?;
                }
            }
        }
        Ok(())
    })())?;
    state.held = Some(held::write(worker, job, &context.row, records)?);
    Ok(())
}
