//! Stage 7: writes in-link records in order of (target, page) to the layers IL, TR and IBV (Avcular & Suel 2011,
//! section 4).
//!
//! Times are ranges here: captures of different pages share no timestamps, so exact times would make the matrix as long
//! as it is empty. This stage is local to each worker.
//!
//! A URL may have any number of in-links. A record ends with the source that brings the record to [`VALUES_MAX`] values
//! (sources, and the ranges of each source). The next record continues with the following sources. Memory: one record.

use crate::Error;
use crate::row::{Offsets, partition_number};
use crate::stages::records::read_starts;
use crate::stages::state::BuildState;
use timely::worker::Worker;
use webstrata_engine::{Context, Sorted, Stopped, wire};
use webstrata_layers::{Change, InLinks, InlinksWriter, Uid};

/// The approximate number of values of a full record of in-links.
const VALUES_MAX: usize = 1 << 20;

/// The in-links of one URL as they arrive: sources, and the ranges of each source.
#[derive(Default)]
pub(crate) struct Gathering {
    sources: Vec<Uid>,
    /// The starts of the ranges of all sources, source after source.
    starts: Vec<i64>,
    /// For each source, the place in `starts` where its ranges end.
    ends: Vec<usize>,
    ranges: Vec<i64>,
}

impl Gathering {
    fn add_coded(&mut self, source: Uid, starts: &[u8]) {
        self.sources.push(source);
        read_starts(starts, &mut self.starts);
        self.ends.push(self.starts.len());
    }

    /// Adds a source with the starts of its ranges, ascending. Sources must come in ascending order.
    pub(crate) fn add(&mut self, source: Uid, starts: &[i64]) {
        self.sources.push(source);
        self.starts.extend_from_slice(starts);
        self.ends.push(self.starts.len());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Whether the record must end here.
    pub(crate) fn is_full(&self) -> bool {
        self.sources.len() + self.starts.len() >= VALUES_MAX
    }

    /// Makes the record of `uid`, and empties this collection.
    pub(crate) fn finish(&mut self, uid: Uid, record: &mut InLinks) {
        self.ranges.clear();
        let mut last: &[i64] = &[];
        let mut start = 0;
        for &end in &self.ends {
            let source_starts = &self.starts[start..end];
            if source_starts != last {
                self.ranges.extend_from_slice(source_starts);
                last = source_starts;
            }
            start = end;
        }
        self.ranges.sort_unstable();
        self.ranges.dedup();
        record.uid = uid;
        record.ranges.clear();
        record.ranges.extend_from_slice(&self.ranges);
        record.changes.clear();
        let mut start = 0;
        for (link, &end) in (0u32..).zip(&self.ends) {
            let mut source_starts = self.starts[start..end].iter().peekable();
            start = end;
            if source_starts.len() == self.ranges.len() {
                continue;
            }
            let mut present = true;
            for (capture, range) in (0u32..).zip(&self.ranges) {
                let now = source_starts.next_if_eq(&range).is_some();
                if now != present {
                    record.changes.push(Change { link, capture });
                }
                present = now;
            }
        }
        std::mem::swap(&mut record.sources, &mut self.sources);
        self.sources.clear();
        self.starts.clear();
        self.ends.clear();
    }
}

/// Whether a joined record surely stays one record: its values are few even if each source has each range.
pub(crate) fn is_small(record: &InLinks) -> bool {
    record.sources.len().saturating_mul(1 + record.ranges.len()) < VALUES_MAX
}

/// Writes IL, TR and IBV of this worker's partitions; see the head of this file.
pub(crate) fn inlinks(worker: &Worker, context: &Context, state: &mut BuildState) -> Result<(), Stopped> {
    let job = &context.job;
    let (index, peers) = (worker.index(), worker.peers());
    let records = job.check(Sorted::of(&std::mem::take(&mut state.in_links), job.scratch()))?;
    let my_partitions = 0..state.row.records.partitions();
    let my_partitions = my_partitions.filter(|&partition| Offsets::inlinks_worker(partition, peers) == index);
    job.check(write(my_partitions, context, records, state))?;
    Ok(())
}

fn write(
    partitions: impl Iterator<Item = usize>,
    context: &Context,
    mut records: Sorted,
    state: &mut BuildState,
) -> Result<(), Error> {
    let Context { job, row, .. } = context;
    let (mut gathering, mut record) = (Gathering::default(), InLinks::default());
    for partition in partitions {
        let mut writer = InlinksWriter::create(row, partition_number(partition)?)?;
        let mut current = None;
        let mut work = 0;
        while let Some((mut key, starts)) = records.peek()? {
            let (target, source) = (wire::take_uid(&mut key), wire::take_uid(&mut key));
            if target >= state.row.records.0[partition + 1] {
                break;
            }
            if let Some(uid) = current.filter(|&uid| uid != target || gathering.is_full()) {
                gathering.finish(uid, &mut record);
                writer.push(&record)?;
                job.go_on()?;
            }
            current = Some(target);
            gathering.add_coded(source, starts);
            work += 1;
            records.next()?;
        }
        if let Some(uid) = current {
            gathering.finish(uid, &mut record);
            writer.push(&record)?;
        }
        *state.row.work.entry(partition_number(partition)?).or_default() += work;
        state.row.files.extend(writer.finish()?);
    }
    Ok(())
}
