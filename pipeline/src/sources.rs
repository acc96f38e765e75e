//! Stage 3, only with `--min-sources`: leaves out URLs that were never captured and that too few pages link to
//! (Link Database, section 2.2: misspelt URLs that nobody ever crawled).
//!
//! URL records go to the owners of their fingerprints, where the requests for them already are: one request a page
//! that links to the URL, and one of slot 0 where it is a page itself. URLs that stay are sampled again, so that
//! boundaries depend on them alone. Requests for URLs that are left out find no UID later, and the link is dropped.

use crate::Error;
use crate::external_sort::{Sorted, Sorter};
use crate::ingest::owner;
use crate::job::{Job, Stopped};
use crate::partition::Sample;
use crate::shuffle::shuffle;
use crate::wire;
use std::cell::RefCell;
use std::rc::Rc;
use timely::worker::Worker;

/// What the stage leaves on a worker.
pub(crate) struct Kept {
    /// URL records of the URLs that stay.
    pub(crate) urls: Sorter,
    /// A sample of them.
    pub(crate) sample: Sample,
    /// The requests, as they were.
    pub(crate) requests: Sorter,
}

/// Leaves out rare URLs; see the head of this file.
pub(crate) fn sources(
    worker: &mut Worker,
    job: &Job,
    urls: Sorter,
    requests: Sorter,
    min_sources: u64,
) -> Result<Kept, Stopped> {
    let mut urls = job.check(urls.finish())?;
    let owned = Rc::new(RefCell::new(Sorter::new(job.spill(), job.budget(20))));
    let collect = Rc::clone(&owned);
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
        move |block| collect.borrow_mut().push_block(block),
    )?;
    let owned = owned.replace(Sorter::new(job.spill(), 0));
    job.check((|| keep(job, owned.finish()?, requests.finish()?, min_sources))())
}

fn keep(job: &Job, mut urls: Sorted, mut requests: Sorted, min_sources: u64) -> Result<Kept, Error> {
    let mut kept = Kept {
        urls: Sorter::new(job.spill(), job.budget(20)),
        sample: Sample::default(),
        requests: Sorter::new(job.spill(), job.budget(25)),
    };
    let (mut key, mut wanted, mut stays) = (Vec::new(), 0, false);
    let mut take_urls = |up_to: Option<&[u8]>, wanted: u64, stays: bool, kept: &mut Kept| -> Result<(), Error> {
        // URL records have one or more lines a fingerprint, all before the first line of the next one.
        while let Some((fingerprint, url_key)) = urls.peek()? {
            if up_to.is_some_and(|up_to| fingerprint > up_to) {
                break;
            }
            if stays || wanted >= min_sources {
                let mut number = fingerprint;
                kept.sample.offer(u128::from_be_bytes(wire::take_array(&mut number)), url_key);
                kept.urls.push(url_key, fingerprint)?;
            }
            urls.next()?;
        }
        Ok(())
    };
    while let Some((fingerprint, payload)) = requests.next()? {
        if fingerprint != key {
            take_urls(Some(&key), wanted, stays, &mut kept)?;
            key.clear();
            key.extend_from_slice(fingerprint);
            (wanted, stays) = (0, false);
        }
        let mut rest = payload;
        let (_worker, _number, slot) = (wire::take(&mut rest), wire::take(&mut rest), wire::take(&mut rest));
        if slot == 0 {
            stays = true;
        } else {
            wanted += 1;
        }
        kept.requests.push(fingerprint, payload)?;
    }
    take_urls(Some(&key), wanted, stays, &mut kept)?;
    Ok(kept)
}
