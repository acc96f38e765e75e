//! Stage 1 of a merge: finds the URLs that nothing uses, and the boundaries of the new row's partitions.
//!
//! With `--min-sources`, URLs that too few pages link to after a removal are dropped too, and their links are held
//! ([`super::held`]).
//!
//! After a row that takes something out ([`crate::remove`]), or whose records displace revisits with lent links, older
//! rows still name URLs that nothing may use any more. A merge of all rows checks such URLs one by one: each page with
//! a record in that row, and each URL that the page ever named.
//!
//! Each worker reads a share of the UIDs of every merged row. If all rows are merged, the boundaries are the same as in
//! a build of everything: they come from the same sample of URLs, weighted by the same work
//! ([`crate::stages::partition`]). If only some rows are merged, their records may be of URLs of older rows. Then all
//! URLs have the same weight, and records are cut by their row groups.

use super::{MergeState, held};
use crate::Error;
use crate::meaning::Meaning;
use crate::row::{Offsets, share};
use crate::stages::partition::{Sample, Weights, join_sample, record_bounds, share_weights};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use timely::worker::Worker;
use webstrata_datasets::Fingerprint;
use webstrata_engine::{Job, Stopped, gather};
use webstrata_layers::record::key;
use webstrata_layers::{Links, Precision, Reader, RowEntry, Uid, Window};

/// Returns one worker's share of UIDs.
fn share_of(uids: Range<Uid>, index: usize, peers: usize) -> Range<Uid> {
    let share = share(uids.end - uids.start, index, peers);
    uids.start + share.start..uids.start + share.end
}

/// Returns the UIDs of this worker's share that nothing uses, and the own links of revisits that this worker saw. Pages
/// of older rows have revisits in the merged rows, too, so `pages` is the share of all pages.
fn unused(
    store: &Reader,
    rows: &Range<usize>,
    share: &[Range<Uid>],
    pages: &Range<Uid>,
) -> Result<(Vec<Uid>, BTreeSet<Uid>), Error> {
    let (mut unused, mut seen) = (Vec::new(), BTreeSet::new());
    for uids in share {
        let mut used = vec![false; usize::try_from(uids.end - uids.start).unwrap_or(usize::MAX)];
        for row in rows.clone() {
            store.row_used(row, uids.clone(), |uid| {
                let at = uid.after(uids.start).and_then(|at| used.get_mut(at));
                at.into_iter().for_each(|used| *used = true);
            })?;
        }
        unused.extend(Uid::each(uids.clone()).zip(&used).filter(|(_, used)| !**used).map(|(uid, _)| uid));
    }
    for row in rows.clone() {
        store.row_links_of_revisits(row, pages.clone(), |uid| {
            seen.insert(uid);
        })?;
    }
    Ok((unused, seen))
}

/// Returns URLs that may have lost their last use: for this worker's share, the pages with records in rows after which
/// this is possible, and all URLs that these pages ever named.
fn doubtful(store: &Reader, rows: &Range<usize>, index: usize, peers: usize) -> Result<BTreeSet<Uid>, Error> {
    let mut doubtful = BTreeSet::new();
    let manifest = store.store().manifest();
    let share = share_of(Uid(0)..Uid(store.urls()), index, peers);
    for row in rows.clone().filter(|&row| manifest.rows[row].takes_uses()) {
        for page in store.pages_with_records(row, share.clone()) {
            let uid = page?;
            doubtful.insert(uid);
            for (page, evidence) in store.pages_with_evidence(uid)? {
                doubtful.extend(page.links);
                doubtful.extend(evidence.revisits.into_iter().flat_map(|revisit| revisit.links));
            }
        }
    }
    Ok(doubtful)
}

/// Returns the pages that link to a URL after removals, if the URL is not a page and fewer than `least` pages link to
/// it; otherwise `None`. The links in records of revisits are not considered.
fn few_sources(store: &Reader, uid: Uid, least: usize) -> Result<Option<BTreeSet<Uid>>, Error> {
    let mut sources = BTreeSet::new();
    if store.page(uid)?.is_some() {
        return Ok(None);
    }
    let Some(record) = store.in_record(uid)? else { return Ok(Some(sources)) };
    for &source in &record.sources {
        if store.has_link(source, uid, Window::ALWAYS)? {
            sources.insert(source);
            if sources.len() >= least {
                return Ok(None);
            }
        }
    }
    Ok(Some(sources))
}

/// Returns (URL, page) for the URLs in `few` that records of revisits name, for pages of this worker's share.
fn used_by_revisits(
    store: &Reader,
    rows: &Range<usize>,
    few: &BTreeMap<Uid, BTreeSet<Uid>>,
    (index, peers): (usize, usize),
) -> Result<BTreeSet<(Uid, Uid)>, Error> {
    let (mut used, mut pages) = (BTreeSet::new(), BTreeSet::new());
    let share = share_of(Uid(0)..Uid(store.urls()), index, peers);
    for row in rows.clone() {
        store.row_named_by_revisits(
            row,
            share.clone(),
            |uid| few.contains_key(&uid),
            |page, _| {
                pages.insert(page);
            },
        )?;
    }
    for page in pages {
        let Some((_, evidence)) = store.page_with_evidence(page)? else { continue };
        let links = evidence.revisits.iter().flat_map(|revisit| &revisit.links);
        used.extend(links.filter(|uid| few.contains_key(uid)).map(|&uid| (uid, page)));
    }
    Ok(used)
}

/// Returns the URLs that a merge of all rows has to check closely: the URLs that may have lost a use, and the URLs
/// among them that nothing uses any more or that fewer pages link to than the store asks for. Both sets are empty if no
/// row takes uses from URLs, or if older rows stay.
fn lost(
    worker: &mut Worker,
    job: &Job,
    store: &Reader,
    rows: &Range<usize>,
    min_sources: u64,
) -> Result<(BTreeSet<Uid>, BTreeSet<Uid>), Stopped> {
    let least = usize::try_from(min_sources).unwrap_or(usize::MAX).max(1);
    let (index, peers) = (worker.index(), worker.peers());
    if rows.start > 0 || !store.store().manifest().rows.iter().any(RowEntry::takes_uses) {
        return Ok(Default::default());
    }
    let my_doubtful = job.check(doubtful(store, rows, index, peers))?;
    let doubtful: BTreeSet<Uid> = gather(worker, job, None, &my_doubtful)?.into_iter().flatten().collect();
    let my_share = share(doubtful.len() as u64, index, peers);
    let my_doubtful = (0..).zip(&doubtful).filter(|(at, _)| my_share.contains(at));
    let my_few = my_doubtful
        .map(|(_, &uid)| Ok(few_sources(store, uid, least)?.map(|sources| (uid, sources))))
        .filter_map(Result::transpose)
        .collect::<Result<Vec<(Uid, BTreeSet<Uid>)>, Error>>();
    let my_few = job.check(my_few)?;
    let mut few: BTreeMap<Uid, BTreeSet<Uid>> = gather(worker, job, None, &my_few)?.into_iter().flatten().collect();
    let my_used = job.check(used_by_revisits(store, rows, &few, (index, peers)))?;
    for (uid, page) in gather(worker, job, None, &my_used)?.into_iter().flatten() {
        few.entry(uid).or_default().insert(page);
    }
    few.retain(|_, sources| sources.len() < least);
    Ok((doubtful, few.into_keys().collect()))
}

/// Runs the stage: sets `state.boundaries`, and the UIDs to drop in `state.unused`.
pub(super) fn sample(
    worker: &mut Worker,
    job: &Job,
    store: &Reader,
    rows: Range<usize>,
    meaning: &Meaning,
    state: &mut MergeState,
) -> Result<(), Stopped> {
    let (index, peers) = (worker.index(), worker.peers());
    let my_uids: Vec<Range<Uid>> = rows.clone().map(|row| share_of(store.row_uids(row), index, peers)).collect();
    let my_pages = share_of(Uid(0)..Uid(store.urls()), index, peers);
    let found = job.check(unused(store, &rows, &my_uids, &my_pages))?;
    let all = gather(worker, job, None, &found)?;
    let mut dropped: BTreeSet<Uid> = all.iter().flat_map(|(unused, _)| unused).copied().collect();
    for uid in all.iter().flat_map(|(_, seen)| seen) {
        dropped.remove(uid);
    }
    let (doubtful, lost) = lost(worker, job, store, &rows, meaning.min_sources)?;
    dropped.extend(lost);
    let mut sample = Sample::default();
    // The URLs that were once in the sample: with n URLs, about the size of the sample times the logarithm of n.
    let mut offered = Vec::new();
    job.check::<_, Error>((|| {
        let mut url_key = Vec::new();
        for (row, uids) in rows.clone().zip(my_uids) {
            let mut urls = store.row_urls(row, uids, false);
            while let Some((uid, url, _)) = urls.next_url()? {
                let fingerprint = Fingerprint::of(url).0;
                if sample.may_have(fingerprint) && !dropped.contains(&uid) {
                    key::key(url, &mut url_key);
                    sample.offer(fingerprint, &url_key);
                    offered.push((uid, fingerprint));
                }
                job.go_on()?;
            }
        }
        Ok(())
    })())?;
    let sample = join_sample(worker, job, &job.check(sample.into_runs(job.scratch()))?)?;
    let weights = if rows.start == 0 {
        offered.retain(|&(_, fingerprint)| sample.has(fingerprint));
        let mut my_weights = job.check(weights(store, offered, &doubtful))?;
        my_weights.extend(job.check(held::degrees(worker, store, &sample))?);
        share_weights(worker, job, my_weights)?
    } else {
        Weights::new()
    };
    state.boundaries = sample.boundaries(meaning.partition_urls, &weights).keys();
    state.unused = dropped.into_iter().collect();
    Ok(())
}

/// Returns the work of sampled URLs, by fingerprint.
fn weights(store: &Reader, mut sampled: Vec<(Uid, u128)>, doubtful: &BTreeSet<Uid>) -> Result<Vec<(u128, u64)>, Error> {
    // In the order of UIDs, each row group is read once.
    sampled.sort_unstable();
    sampled
        .into_iter()
        .map(|(uid, fingerprint)| {
            let (out, into) = if doubtful.contains(&uid) {
                let into = store.in_links(uid, Window::ALWAYS, Precision::Exact)?;
                (store.page(uid)?.map_or(0, |page| page.links.len()), into.len())
            } else {
                store.degrees(uid)?
            };
            Ok((fingerprint, (out + into) as u64))
        })
        .collect()
}

/// Returns the bounds of the records of the new row. If all rows are merged, these are the bounds of its URLs.
pub(super) fn records(store: &Reader, rows: &Range<usize>, offsets: &Offsets) -> Result<Offsets, Error> {
    if rows.start == 0 {
        return Ok(offsets.clone());
    }
    // Among UIDs that change, only the relative order matters here, and the rows mix evenly enough.
    let mut sampled = Vec::new();
    for row in rows.clone() {
        for (first, last, count) in store.row_groups(row)? {
            sampled.extend([(first, count as u64), (last, count as u64)]);
        }
    }
    let end = offsets.0.last().copied().unwrap_or_default();
    sampled.retain(|(uid, _)| *uid < end);
    Ok(Offsets(record_bounds(sampled, offsets.partitions(), end)))
}
