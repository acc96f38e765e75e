//! Stage 3, only with `--min-sources`, or if links of pages were left out: leaves out URLs that were never captured and
//! that too few pages link to (Link Database, section 2.2: misspelt URLs that nobody ever crawled).
//!
//! URL records go to the owners of their fingerprints, which already have the requests for these URLs. The first
//! requests ([`Request::is_first`]) count: one for each page that links to the URL, and one of slot 0 if the URL is
//! itself a page. URLs that stay are sampled again, so that boundaries depend only on these URLs. A byte after the
//! fingerprint marks the records of rare URLs.
//!
//! A rare URL does not belong to the store unless the store already knows it. In that case all its links are in rows,
//! so `uids`, which looks it up, keeps it. Links to other rare URLs are held ([`crate::stages::held`]) and come back
//! with the inputs of the next update. A URL is therefore judged by all pages of the store, whichever update added
//! them.

use crate::Error;
use crate::stages::partition::Sample;
use crate::stages::records::RARE;
use crate::stages::records::Request;
use crate::stages::records::owner;
use crate::stages::state::BuildState;
use timely::worker::Worker;
use webstrata_engine::{Collector, Context, Job, Sorted, Sorter, Stopped, shuffle, wire};

/// Leaves out rare URLs; see the head of this file.
pub(crate) fn sources(
    worker: &mut Worker,
    context: &Context,
    min_sources: u64,
    state: &mut BuildState,
) -> Result<(), Stopped> {
    let job = &context.job;
    let mut urls = job.check(Sorted::of(&std::mem::take(&mut state.urls), job.scratch()))?;
    let requests = job.check(Sorted::of(&state.requests, job.scratch()))?;
    let owned = Collector::new(Sorter::new(job.scratch(), "owned-urls", job.budget(30)));
    shuffle(
        worker,
        job,
        "sources",
        move |outbox| {
            let Some((key, payload)) = urls.next()? else { return Ok(false) };
            let mut fingerprint = payload;
            let worker = owner(u128::from_be_bytes(wire::take_array(&mut fingerprint)), outbox.workers());
            outbox.send(worker, payload, key);
            Ok(true)
        },
        owned.consumer(),
    )?;
    let owned = job.check(owned.into_inner().and_then(Sorter::finish))?;
    let (urls, sample) = job.check(keep(job, owned, requests, min_sources))?;
    state.urls = job.check(urls.into_runs())?;
    state.sample = job.check(sample.into_runs(job.scratch()))?;
    Ok(())
}

/// Returns the URL records of URLs that stay and of rare URLs, which are marked; and a sample of the URLs that stay.
fn keep(job: &Job, mut urls: Sorted, mut requests: Sorted, min_sources: u64) -> Result<(Sorter, Sample), Error> {
    let mut kept = (Sorter::new(job.scratch(), "urls", job.budget(30)), Sample::default());
    let (mut key, mut sources, mut is_page) = (Vec::new(), 0, false);
    let mut take_urls = |up_to: &[u8], sources: u64, is_page: bool, kept: &mut (Sorter, Sample)| -> Result<(), Error> {
        // A fingerprint has one or more URL records, all before the first record of the next fingerprint.
        while let Some((fingerprint, url_key)) = urls.peek()? {
            if fingerprint > up_to {
                break;
            }
            // A URL that only left-out links name is not requested.
            let is_requested = fingerprint == up_to;
            if is_requested && (is_page || sources >= min_sources) {
                let mut number = fingerprint;
                kept.1.offer(u128::from_be_bytes(wire::take_array(&mut number)), url_key);
                kept.0.push(url_key, fingerprint)?;
            } else if is_requested {
                kept.0.push(url_key, &[fingerprint, &[RARE]].concat())?;
            }
            urls.next()?;
        }
        Ok(())
    };
    while let Some((fingerprint, payload)) = requests.next()? {
        if fingerprint != key {
            take_urls(&key, sources, is_page, &mut kept)?;
            key.clear();
            key.extend_from_slice(fingerprint);
            (sources, is_page) = (0, false);
        }
        let Request { slot, is_first, .. } = Request::read(payload);
        is_page |= slot == 0;
        sources += u64::from(slot > 0 && is_first);
        job.go_on()?;
    }
    take_urls(&key, sources, is_page, &mut kept)?;
    Ok(kept)
}
