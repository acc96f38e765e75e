//! Stage 3, only with `--min-sources`, or where links of captures do not count: leaves out URLs that were never
//! captured and that too few pages link to (Link Database, section 2.2: misspelt URLs that nobody ever crawled).
//!
//! URL records go to the owners of their fingerprints, where the requests for them already are: one request a page
//! that links to the URL, and one of slot 0 where it is a page itself. URLs that stay are sampled again, so that
//! boundaries depend on them alone. Requests for URLs that are left out find no UID later, and the link is dropped.
//!
//! URLs that are left out are counted; those of an update by `uids`, which knows whether the store has them.
//!
//! An update leaves out no URL that the store knows: its links would seem to have died. So it marks records of rare
//! URLs, by a byte after the fingerprint, and `uids`, which looks them up, leaves out those that the store does not
//! have.

use crate::Error;
use crate::engine::Context;
use crate::engine::external_sort::{Collector, Sorted, Sorter};
use crate::engine::job::{Job, Stopped};
use crate::engine::shuffle::shuffle;
use crate::engine::wire;
use crate::stages::partition::Sample;
use crate::stages::records::RARE;
use crate::stages::records::Request;
use crate::stages::records::owner;
use crate::stages::state::BuildState;
use timely::worker::Worker;
use webstrata_datasets::Finding;

/// Leaves out rare URLs; see the head of this file.
pub(crate) fn sources(
    worker: &mut Worker,
    context: &Context,
    min_sources: u64,
    state: &mut BuildState,
) -> Result<(), Stopped> {
    let (job, update) = (&context.job, context.base.is_some());
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
    let kept = owned.into_inner().and_then(|owned| keep(job, owned.finish()?, requests, min_sources, update));
    let ((urls, sample), rare) = job.check(kept)?;
    state.row.tally.count_many(Finding::FewSources, rare);
    state.urls = job.check(urls.into_runs())?;
    state.sample = job.check(sample.into_runs(job.scratch()))?;
    Ok(())
}

/// The URL records of the URLs that stay, and a sample of them; for an update also those of rare ones, marked. Else how
/// many these are.
fn keep(
    job: &Job,
    mut urls: Sorted,
    mut requests: Sorted,
    min_sources: u64,
    update: bool,
) -> Result<((Sorter, Sample), u64), Error> {
    let mut kept = (Sorter::new(job.scratch(), "urls", job.budget(30)), Sample::default());
    let (mut key, mut sources, mut is_page, mut rare) = (Vec::new(), 0, false, 0);
    let mut take_urls = |up_to: &[u8], sources: u64, is_page: bool, kept: &mut (Sorter, Sample)| -> Result<(), Error> {
        // URL records have one or more lines a fingerprint, all before the first line of the next one.
        let mut is_rare = false;
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
            } else if is_requested && update {
                kept.0.push(url_key, &[fingerprint, &[RARE]].concat())?;
            } else {
                is_rare |= is_requested;
            }
            urls.next()?;
        }
        rare += u64::from(is_rare);
        Ok(())
    };
    while let Some((fingerprint, payload)) = requests.next()? {
        if fingerprint != key {
            take_urls(&key, sources, is_page, &mut kept)?;
            key.clear();
            key.extend_from_slice(fingerprint);
            (sources, is_page) = (0, false);
        }
        if Request::read(payload).slot == 0 {
            is_page = true;
        } else {
            sources += 1;
        }
        job.go_on()?;
    }
    take_urls(&key, sources, is_page, &mut kept)?;
    Ok((kept, rare))
}
