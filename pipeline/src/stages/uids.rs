//! Stage 4: gives distinct URLs their UIDs, by range partition, and writes the URL layer (Avcular & Suel 2011,
//! section 3).
//!
//! URL records go by range of the key to the worker of their partition, which sorts them and keeps each URL once. The
//! UID of a URL is the number of URLs in the earlier partitions plus the place of the URL in its partition. Every
//! worker tells the other workers how many URLs its partitions have, so each worker knows all offsets. Then the URL
//! layer is written, and each (fingerprint, UID) goes to the owner of the fingerprint.
//!
//! Rare URLs ([`crate::stages::sources`]) that the store does not have get separate numbers, and are in no layer.
//!
//! An update looks each URL up in the rows of the store, in a merge of sorted streams. URLs of the store keep their
//! UIDs, and the other URLs get the UIDs after the last UID of the store.
//!
//! UID record: key = fingerprint; payload = UID in LEB128.

use crate::Error;
use crate::row::{Offsets, partition_number};
use crate::stages::held::links::held_number;
use crate::stages::partition::{Boundaries, Weights, boundaries, record_bounds};
use crate::stages::records::fingerprint_of;
use crate::stages::records::owner;
use crate::stages::state::BuildState;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use timely::worker::Worker;
use webstrata_datasets::Finding;
use webstrata_engine::{
    Collector, Context, Job, Run, RunReader, RunWriter, Runs, Sorted, Sorter, Stopped, gather, shuffle,
    wire::{self, for_each},
};
use webstrata_layers::read::rows::UrlCursor;
use webstrata_layers::record::key::url_of_key;
use webstrata_layers::{FileEntry, Links, Reader, RowDir, Uid, UrlWriter};

/// Sends a sorted, distinct copy of `urls` to the workers of their ranges.
fn by_range(worker: &mut Worker, job: &Job, urls: &Runs, boundaries: &Boundaries) -> Result<Sorter, Stopped> {
    let mut urls = job.check(Sorted::of(urls, job.scratch()))?;
    let (mut last, boundaries) = (Vec::new(), boundaries.clone());
    let ranged = Collector::new(Sorter::new(job.scratch(), "ranged-urls", job.budget(60)));
    shuffle(
        worker,
        job,
        "uids",
        move |outbox| {
            let Some((key, fingerprint)) = urls.next()? else { return Ok(false) };
            if key != last {
                last.clear();
                last.extend_from_slice(key);
                let worker = Offsets::worker(boundaries.of(key), outbox.workers());
                outbox.send(worker, key, fingerprint);
            }
            Ok(true)
        },
        ranged.consumer(),
    )?;
    job.check(ranged.into_inner())
}

/// The distinct URLs of a worker's ranges.
struct Distinct {
    /// The URLs that the store does not have: key and fingerprint, in order.
    new: Run,
    /// The number of these URLs, by partition.
    counts: Vec<u64>,
    /// The URLs that the store has: fingerprint and UID, in LEB128.
    known: Run,
    /// The sampled URLs that the store has, as (UID, work), and the other sampled URLs, as (partition, place there,
    /// work).
    sampled_known: Vec<(Uid, u64)>,
    sampled_new: Vec<(usize, u64, u64)>,
    /// The URLs that neither the store nor the row has, because too few pages link to them: key and fingerprint, in
    /// order.
    held: Option<Run>,
}

/// Keeps each URL once, and looks it up in the store.
fn distinct(
    job: &Job,
    mut urls: Sorted,
    boundaries: &Boundaries,
    weights: &Weights,
    base: Option<&Reader>,
) -> Result<Distinct, Error> {
    let mut new = RunWriter::create("distinct-urls", job.scratch())?;
    let mut known = RunWriter::create("known-urls", job.scratch())?;
    let mut cursors: Vec<_> =
        base.iter().flat_map(|base| (0..base.rows()).map(|row| UrlCursor::new(base, row))).collect();
    let mut counts = vec![0; boundaries.partitions()];
    let (mut sampled_known, mut sampled_new, mut held) = (Vec::new(), Vec::new(), None);
    let (mut last, mut payload) = (Vec::new(), Vec::new());
    while let Some((key, record)) = urls.next()? {
        if key == last {
            continue;
        }
        let (fingerprint, rare) = fingerprint_of(record);
        last.clear();
        last.extend_from_slice(key);
        let mut number = fingerprint;
        let weight = weights.get(&u128::from_be_bytes(wire::take_array(&mut number))).map(|weight| weight + 1);
        let mut stored = None;
        for cursor in &mut cursors {
            let (uid, found) = cursor.seek(key)?;
            if found {
                stored = Some(uid);
                break;
            }
        }
        if let Some(uid) = stored {
            payload.clear();
            wire::put(&mut payload, uid.0);
            known.push(fingerprint, &payload)?;
            sampled_known.extend(weight.map(|weight| (uid, weight)));
        } else if rare {
            let held = match &mut held {
                Some(held) => held,
                none => none.insert(RunWriter::create("held-urls", job.scratch())?),
            };
            held.push(key, fingerprint)?;
        } else {
            let partition = boundaries.of(key);
            new.push(key, fingerprint)?;
            sampled_new.extend(weight.map(|weight| (partition, counts[partition], weight)));
            counts[partition] += 1;
        }
        job.go_on()?;
    }
    let held = held.map(RunWriter::finish).transpose()?;
    Ok(Distinct { new: new.finish()?, counts, known: known.finish()?, sampled_known, sampled_new, held })
}

/// Adds up the counts of all workers, and returns the first UIDs of all partitions.
fn offsets(worker: &mut Worker, job: &Job, first: Uid, counts: Vec<u64>) -> Result<Offsets, Stopped> {
    let all = Rc::new(RefCell::new(vec![0; counts.len()]));
    let received = Rc::clone(&all);
    let mut my_counts = counts.into_iter().enumerate();
    shuffle(
        worker,
        job,
        "uids",
        move |outbox| {
            let Some((partition, count)) = my_counts.next() else { return Ok(false) };
            outbox.send_to_all(&partition.to_be_bytes(), &u64::to_be_bytes(count));
            Ok(true)
        },
        move |block| {
            for_each(&block, |mut partition, mut count| {
                let partition = usize::from_be_bytes(wire::take_array(&mut partition));
                received.borrow_mut()[partition] += u64::from_be_bytes(wire::take_array(&mut count));
            });
            Ok(())
        },
    )?;
    let counts = all.take();
    let firsts = counts.iter().scan(first, |sum, count| {
        *sum += *count;
        Some(*sum)
    });
    Ok(Offsets(std::iter::once(first).chain(firsts).collect()))
}

/// Returns the bounds of the records of an update, from the sampled UIDs of all workers.
fn records(worker: &mut Worker, job: &Job, sampled: Vec<(Uid, u64)>, offsets: &Offsets) -> Result<Offsets, Stopped> {
    let all = gather(worker, job, None, &sampled)?;
    let end = offsets.0.last().copied().unwrap_or_default();
    Ok(Offsets(record_bounds(all.into_iter().flatten().collect(), offsets.partitions(), end)))
}

/// Writes the URL layer of this worker's partitions, one URL a call.
struct Writing {
    row: RowDir,
    urls: RunReader,
    /// The URLs that the store has, which come first.
    known: RunReader,
    /// The held URLs, which come next, and the number of the next held URL.
    held: Option<RunReader>,
    next_held: Uid,
    offsets: Offsets,
    /// The partition being written, its writer, and the UID of its next URL.
    current: Option<(usize, UrlWriter, Uid)>,
    /// This worker's partitions that have not begun, the next partition last.
    waiting: Vec<usize>,
    first_keys: BTreeMap<u32, String>,
    files: Vec<FileEntry>,
}

impl Writing {
    /// Returns the next URL, as fingerprint and UID.
    fn next(&mut self) -> Result<Option<(u128, Uid)>, Error> {
        if let Some((mut fingerprint, mut uid)) = self.known.next()? {
            return Ok(Some((u128::from_be_bytes(wire::take_array(&mut fingerprint)), Uid(wire::take(&mut uid)))));
        }
        if let Some((_, mut fingerprint)) = self.held.as_mut().map_or(Ok(None), RunReader::next)? {
            let number = self.next_held;
            self.next_held += 1;
            return Ok(Some((u128::from_be_bytes(wire::take_array(&mut fingerprint)), number)));
        }
        while self.current.as_ref().is_none_or(|current| current.2 == self.offsets.0[current.0 + 1]) {
            if let Some((partition, writer, _)) = self.current.take() {
                self.first_keys.insert(partition_number(partition)?, writer.first_key());
                self.files.extend(writer.finish()?);
            }
            let Some(partition) = self.waiting.pop() else { return Ok(None) };
            let writer = UrlWriter::create(&self.row, partition_number(partition)?)?;
            self.current = Some((partition, writer, self.offsets.0[partition]));
        }
        let (Some((_, writer, next)), Some((key, mut fingerprint))) = (&mut self.current, self.urls.next()?) else {
            return Err(Error::Internal("fewer URLs than were counted"));
        };
        let fingerprint = u128::from_be_bytes(wire::take_array(&mut fingerprint));
        let url = url_of_key(key).ok_or(Error::Internal("a URL key that is no URL"))?;
        let uid = *next;
        writer.push(uid, &url, &webstrata_datasets::surt(&url))?;
        *next += 1;
        Ok(Some((fingerprint, uid)))
    }
}

/// Gives every URL its UID; see the head of this file.
pub(crate) fn uids(
    worker: &mut Worker,
    context: &Context,
    partition_urls: Option<u64>,
    state: &mut BuildState,
) -> Result<(), Stopped> {
    let (job, base) = (&context.job, context.base.as_deref());
    let (boundaries, weights) =
        boundaries(worker, job, &std::mem::take(&mut state.sample), &state.requests, partition_urls)?;
    let ranged = by_range(worker, job, &std::mem::take(&mut state.urls), &boundaries)?;
    let ranged = job.check(ranged.finish())?;
    let distinct = job.check(distinct(job, ranged, &boundaries, &weights, base))?;
    let Distinct { new, counts, known, sampled_known: mut sampled, sampled_new, held } = distinct;
    state.row.tally.count_many(Finding::FewSources, held.as_ref().map_or(0, |held| held.records));
    let offsets = offsets(worker, job, Uid(base.map_or(0, Links::urls)), counts)?;
    state.row.records = if base.is_some() {
        sampled.extend(sampled_new.into_iter().map(|(partition, at, weight)| (offsets.0[partition] + at, weight)));
        records(worker, job, sampled, &offsets)?
    } else {
        offsets.clone()
    };
    let (index, peers) = (worker.index(), worker.peers());
    let my_partitions = (0..offsets.partitions()).rev().filter(|&partition| Offsets::worker(partition, peers) == index);
    let writing = Rc::new(RefCell::new(Writing {
        row: context.row.clone(),
        urls: job.check(RunReader::open(&new, job.scratch()))?,
        known: job.check(RunReader::open(&known, job.scratch()))?,
        held: job.check(held.as_ref().map(|held| RunReader::open(held, job.scratch())).transpose())?,
        next_held: held_number(index, 0),
        current: None,
        waiting: my_partitions.collect(),
        first_keys: BTreeMap::new(),
        files: Vec::new(),
        offsets: offsets.clone(),
    }));
    job.check(job.scratch().remove(&new.name))?;
    job.check(job.scratch().remove(&known.name))?;
    let uids = Collector::new(Sorter::new(job.scratch(), "uids", job.budget_beside_writers(40)));
    let write = Rc::clone(&writing);
    let mut payload = Vec::new();
    shuffle(
        worker,
        job,
        "uids",
        move |outbox| {
            let Some((fingerprint, uid)) = write.borrow_mut().next()? else { return Ok(false) };
            payload.clear();
            wire::put(&mut payload, uid.0);
            outbox.send(owner(fingerprint, outbox.workers()), &fingerprint.to_be_bytes(), &payload);
            Ok(true)
        },
        uids.consumer(),
    )?;
    state.uids = job.check(uids.into_inner().and_then(Sorter::into_runs))?;
    state.held_urls = Runs(held.into_iter().collect());
    state.row.offsets = offsets;
    state.row.first_keys = std::mem::take(&mut writing.borrow_mut().first_keys);
    state.row.files = std::mem::take(&mut writing.borrow_mut().files);
    for file in &state.row.files {
        state.row.work.insert(file.partition, file.rows);
    }
    Ok(())
}
