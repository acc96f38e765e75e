//! Stage 2 of a merge: merges URLs by key, which gives new UIDs; writes the URL layer and the translation.
//!
//! A partition is an interval of keys, and therefore an interval of UIDs in each row. The URLs of a partition are
//! merged from these intervals. The intervals also give the number of URLs, and with it the first UID of each
//! partition, before any URL is read.
//!
//! Translation record: key = old UID (8 bytes); payload = new UID, number of UIDs in the run, in LEB128. Every worker
//! gets all records.

use super::MergeState;
use super::sample;
use crate::Error;
use crate::row::{Offsets, partition_number};
use crate::stages::partition::Boundaries;
use std::ops::Range;
use timely::worker::Worker;
use webstrata_engine::{Collector, Context, Sorter, Stopped, shuffle, wire};
use webstrata_layers::read::rows::{RowUrls, UrlCursor};
use webstrata_layers::record::key;
use webstrata_layers::{Reader, Uid, UrlWriter};

/// Returns the UIDs of each row, cut by partition: the first UID of each partition, and the end of the row.
fn cuts(store: &Reader, rows: &Range<usize>, boundaries: &Boundaries) -> Result<Vec<Vec<Uid>>, Error> {
    rows.clone()
        .map(|row| {
            let (uids, mut cursor) = (store.row_uids(row), UrlCursor::new(store, row));
            let inner = boundaries.firsts().map(|first| Ok(cursor.seek(first)?.0));
            std::iter::once(Ok(uids.start)).chain(inner).chain([Ok(uids.end)]).collect()
        })
        .collect()
}

/// The URLs of one row that go into a partition.
struct UrlStream<'a> {
    urls: RowUrls<'a>,
    unused: &'a [Uid],
    /// The UID, key, URL and urlkey at the head of the stream; the UID is `None` at the end.
    uid: Option<Uid>,
    key: Vec<u8>,
    url: String,
    surt: String,
}

impl UrlStream<'_> {
    fn advance(&mut self) -> Result<(), Error> {
        self.uid = None;
        while let Some((uid, url, surt)) = self.urls.next_url()? {
            if self.unused.binary_search(&uid).is_ok() {
                continue;
            }
            self.uid = Some(uid);
            key::key(url, &mut self.key);
            self.url.clear();
            self.url.push_str(url);
            self.surt.clear();
            self.surt.push_str(surt);
            break;
        }
        Ok(())
    }
}

/// Writes the URL layer of this worker's partitions; see the head of this file.
pub(super) fn urls(
    worker: &mut Worker,
    context: &Context,
    store: &Reader,
    rows: Range<usize>,
    state: &mut MergeState,
) -> Result<(), Stopped> {
    let job = &context.job;
    let boundaries = Boundaries::of_keys(std::mem::take(&mut state.boundaries));
    let unused = std::mem::take(&mut state.unused);
    let cuts = job.check(cuts(store, &rows, &boundaries))?;
    let count = |uids: Range<Uid>| {
        let gone = unused.partition_point(|&uid| uid < uids.end) - unused.partition_point(|&uid| uid < uids.start);
        uids.end - uids.start - gone as u64
    };
    let mut next = store.row_uids(rows.start).start;
    let mut offsets = vec![next];
    for partition in 0..boundaries.partitions() {
        next += cuts.iter().map(|cuts| count(cuts[partition]..cuts[partition + 1])).sum::<u64>();
        offsets.push(next);
    }
    state.row.offsets = Offsets(offsets);
    state.row.records = job.check(sample::records(store, &rows, &state.row.offsets))?;
    let (index, peers) = (worker.index(), worker.peers());
    if index == 0 {
        state.dropped = unused.len() as u64;
    }
    let my_partitions = (0..boundaries.partitions()).filter(|&partition| Offsets::worker(partition, peers) == index);
    let mut runs: Vec<(Uid, Uid, u64)> = Vec::new();
    for partition in my_partitions {
        let streams = rows.clone().zip(&cuts).map(|(row, cuts)| UrlStream {
            urls: store.row_urls(row, cuts[partition]..cuts[partition + 1], true),
            unused: &unused,
            uid: None,
            key: Vec::new(),
            url: String::new(),
            surt: String::new(),
        });
        job.check(write(context, partition, streams.collect(), state, &mut runs))?;
    }
    let all = Collector::new(Sorter::new(job.scratch(), "translation", job.budget(20)));
    let mut runs = runs.into_iter();
    let mut payload = Vec::new();
    shuffle(
        worker,
        job,
        "urls",
        move |outbox| {
            let Some((old, new, count)) = runs.next() else { return Ok(false) };
            payload.clear();
            wire::put(&mut payload, new.0);
            wire::put(&mut payload, count);
            outbox.send_to_all(&old.0.to_be_bytes(), &payload);
            Ok(true)
        },
        all.consumer(),
    )?;
    state.translation = job.check(all.into_inner().and_then(Sorter::into_runs))?;
    Ok(())
}

/// Writes a partition from its streams.
fn write(
    context: &Context,
    partition: usize,
    mut streams: Vec<UrlStream<'_>>,
    state: &mut MergeState,
    runs: &mut Vec<(Uid, Uid, u64)>,
) -> Result<(), Error> {
    let number = partition_number(partition)?;
    let mut writer = UrlWriter::create(&context.row, number)?;
    let mut uid = state.row.offsets.0[partition];
    streams.iter_mut().try_for_each(UrlStream::advance)?;
    // The last run of each stream.
    let mut open: Vec<Option<(Uid, Uid, u64)>> = vec![None; streams.len()];
    loop {
        let with_url = streams.iter_mut().zip(&mut open).filter(|(stream, _)| stream.uid.is_some());
        let Some((stream, open)) = with_url.min_by(|one, other| one.0.key.cmp(&other.0.key)) else { break };
        let Some(old) = stream.uid else { break };
        writer.push(uid, &stream.url, &stream.surt)?;
        match open {
            Some((first, new, count)) if *first + *count == old && *new + *count == uid => *count += 1,
            open => runs.extend(open.replace((old, uid, 1))),
        }
        uid += 1;
        stream.advance()?;
        context.job.go_on()?;
    }
    runs.extend(open.into_iter().flatten());
    if uid != state.row.offsets.0[partition + 1] {
        return Err(Error::Internal("a merge of URLs found others than it had counted"));
    }
    state.row.first_keys.insert(number, writer.first_key());
    let files = writer.finish()?;
    state.row.work.insert(number, files.iter().map(|file| file.rows).sum());
    state.row.files.extend(files);
    Ok(())
}
