//! Stage 4: distinct URLs to UIDs, by range partition, and the URL layer (Avcular & Suel 2011, section 3).
//!
//! URL records go by range of the key to the worker of their partition, are sorted and each kept once. The UID of a URL
//! is the number of URLs in the partitions before it plus its place in its own. Every worker tells the others how
//! many URLs its partitions have, so each knows all offsets. Then the URL layer is written and each (fingerprint, UID)
//! goes to the owner of the fingerprint.
//!
//! UID record: key = fingerprint; payload = UID in LEB128.

use crate::external_sort::{Sorted, Sorter, for_each};
use crate::ingest::owner;
use crate::job::{Job, Stopped};
use crate::partition::Boundaries;
use crate::shuffle::shuffle;
use crate::spool::{Spool, SpoolReader};
use crate::{Error, wire};
use std::cell::RefCell;
use std::rc::Rc;
use timely::worker::Worker;
use webstrata_layers::{FileEntry, RowDir, UrlWriter, url_of_key};

/// First UIDs of the partitions; the last number is the number of URLs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offsets(pub(crate) Vec<u64>);

impl Offsets {
    /// How many partitions there are.
    pub(crate) fn partitions(&self) -> usize {
        self.0.len() - 1
    }

    /// The partition of a UID.
    pub(crate) fn of(&self, uid: u64) -> usize {
        self.0.partition_point(|&first| first <= uid) - 1
    }

    /// The worker that writes URLs and out-links of a partition.
    pub(crate) fn worker(partition: usize, workers: usize) -> usize {
        partition % workers
    }

    /// The worker that writes in-links of a partition: another one, so that few partitions keep more workers busy.
    pub(crate) fn inlinks_worker(partition: usize, workers: usize) -> usize {
        (partition + 1) % workers
    }
}

/// What the stage leaves on a worker.
pub(crate) struct Uids {
    /// UID records of the fingerprints that this worker owns.
    pub(crate) uids: Sorter,
    /// All partitions.
    pub(crate) offsets: Offsets,
    /// The partitions that this worker wrote: number, first key as the manifest has it, files.
    pub(crate) written: Vec<(usize, String, Vec<FileEntry>)>,
}

/// Sends a sorted, distinct copy of `urls` to the workers of their ranges.
fn by_range(worker: &mut Worker, job: &Job, urls: Sorter, boundaries: &Boundaries) -> Result<Sorter, Stopped> {
    let mut urls = job.check(urls.finish())?;
    let (mut last, boundaries) = (Vec::new(), boundaries.clone());
    let ranged = Rc::new(RefCell::new(Sorter::new(job.spill(), job.budget(30))));
    let collect = Rc::clone(&ranged);
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
        move |block| collect.borrow_mut().push_block(block),
    )?;
    Ok(ranged.replace(Sorter::new(job.spill(), 0)))
}

/// Keeps each URL once and counts them by partition; a spooled URL is its fingerprint and its key.
fn distinct(job: &Job, mut urls: Sorted, boundaries: &Boundaries) -> Result<(SpoolReader, Vec<u64>), Error> {
    let mut spool = Spool::new(job.spill(), job.budget(20));
    let mut counts = vec![0; boundaries.partitions()];
    let (mut last, mut record) = (Vec::new(), Vec::new());
    while let Some((key, fingerprint)) = urls.next()? {
        if key != last {
            last.clear();
            last.extend_from_slice(key);
            record.clear();
            record.extend_from_slice(fingerprint);
            record.extend_from_slice(key);
            spool.push(&record)?;
            counts[boundaries.of(key)] += 1;
        }
    }
    Ok((spool.finish()?, counts))
}

/// Adds up the counts of all workers.
fn offsets(worker: &mut Worker, job: &Job, counts: Vec<u64>) -> Result<Offsets, Stopped> {
    let all = Rc::new(RefCell::new(vec![0; counts.len()]));
    let heard = Rc::clone(&all);
    let mut own = counts.into_iter().enumerate();
    shuffle(
        worker,
        job,
        "uids",
        move |outbox| {
            let Some((partition, count)) = own.next() else { return Ok(false) };
            outbox.send_to_all(&partition.to_be_bytes(), &u64::to_be_bytes(count));
            Ok(true)
        },
        move |block| {
            for_each(&block, |mut partition, mut count| {
                let partition = usize::from_be_bytes(wire::take_array(&mut partition));
                heard.borrow_mut()[partition] += u64::from_be_bytes(wire::take_array(&mut count));
            });
            Ok(())
        },
    )?;
    let counts = all.take();
    let firsts = counts.iter().scan(0, |sum, count| {
        *sum += count;
        Some(*sum)
    });
    Ok(Offsets(std::iter::once(0).chain(firsts).collect()))
}

/// Writes the URL layer of this worker's partitions, one URL a call.
struct Writing {
    row: RowDir,
    urls: SpoolReader,
    offsets: Offsets,
    /// The partition being written, its writer, and the UID of its next URL.
    current: Option<(usize, UrlWriter, u64)>,
    /// This worker's partitions that are not yet begun, the next one last.
    waiting: Vec<usize>,
    written: Vec<(usize, String, Vec<FileEntry>)>,
}

impl Writing {
    /// The next URL: its key is in `key`; returns fingerprint and UID.
    fn next(&mut self) -> Result<Option<(u128, u64)>, Error> {
        while self.current.as_ref().is_none_or(|current| current.2 == self.offsets.0[current.0 + 1]) {
            if let Some((partition, writer, _)) = self.current.take() {
                self.written.push((partition, writer.first_key(), writer.finish()?));
            }
            let Some(partition) = self.waiting.pop() else { return Ok(None) };
            let number = u32::try_from(partition).map_err(|_| Error::Internal("more than 2^32 partitions"))?;
            let writer = UrlWriter::create(&self.row, number)?;
            self.current = Some((partition, writer, self.offsets.0[partition]));
        }
        let (Some((_, writer, next)), Some(mut record)) = (&mut self.current, self.urls.next()?) else {
            return Err(Error::Internal("fewer URLs than were counted"));
        };
        let fingerprint = u128::from_be_bytes(wire::take_array(&mut record));
        let url = url_of_key(record).ok_or(Error::Internal("a URL key that is no URL"))?;
        let uid = *next;
        writer.push(uid, &url, &webstrata_datasets::surt(&url))?;
        *next += 1;
        Ok(Some((fingerprint, uid)))
    }
}

/// Gives every URL its UID; see the head of this file.
pub(crate) fn uids(
    worker: &mut Worker,
    job: &Job,
    urls: Sorter,
    boundaries: &Boundaries,
    row: &RowDir,
) -> Result<Uids, Stopped> {
    let ranged = by_range(worker, job, urls, boundaries)?;
    let ranged = job.check(ranged.finish())?;
    let (urls, counts) = job.check(distinct(job, ranged, boundaries))?;
    let offsets = offsets(worker, job, counts)?;
    let (index, peers) = (worker.index(), worker.peers());
    let own = (0..offsets.partitions()).rev().filter(|&partition| Offsets::worker(partition, peers) == index);
    let writing = Rc::new(RefCell::new(Writing {
        row: row.clone(),
        urls,
        current: None,
        waiting: own.collect(),
        written: Vec::new(),
        offsets: offsets.clone(),
    }));
    let uids = Rc::new(RefCell::new(Sorter::new(job.spill(), job.budget(20))));
    let (write, collect) = (Rc::clone(&writing), Rc::clone(&uids));
    let mut payload = Vec::new();
    shuffle(
        worker,
        job,
        "uids",
        move |outbox| {
            let Some((fingerprint, uid)) = write.borrow_mut().next()? else { return Ok(false) };
            payload.clear();
            wire::put(&mut payload, uid);
            outbox.send(owner(fingerprint, outbox.workers()), &fingerprint.to_be_bytes(), &payload);
            Ok(true)
        },
        move |block| collect.borrow_mut().push_block(block),
    )?;
    let uids = uids.replace(Sorter::new(job.spill(), 0));
    let written = std::mem::take(&mut writing.borrow_mut().written);
    Ok(Uids { uids, offsets, written })
}
