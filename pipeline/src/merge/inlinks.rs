//! Stage 4 of a merge: writes in-links of all rows in the order of their new UIDs to the layers IL, TR and IBV.
//!
//! Records of one URL are joined by union, except for pages that [`crate::merge::outlinks`] has corrected. The joined
//! records are then cut as in [`crate::stages::inlinks`]. Memory: all in-links of one URL.

use super::MergeState;
use super::streams::{DROPPED, Replacing, Streams, intervals};
use super::translation::Translation;
use crate::Error;
use crate::row::{Offsets, partition_number};
use crate::stages::inlinks::{Gathering, is_small};
use crate::stages::records::read_starts;
use std::collections::BTreeMap;
use std::ops::Range;
use timely::worker::Worker;
use webstrata_engine::{Context, Sorted, wire};
use webstrata_layers::read::rows::RowInLinks;
use webstrata_layers::record::join;
use webstrata_layers::record::presence;
use webstrata_layers::{InLinks, InlinksWriter, Reader, Uid};

/// Writes the in-links of this worker's partitions; see the head of this file.
pub(super) fn inlinks(
    worker: &Worker,
    context: &Context,
    store: &Reader,
    rows: Range<usize>,
    translation: &Translation,
    state: &mut MergeState,
) -> Result<(), Error> {
    let (index, peers) = (worker.index(), worker.peers());
    let below = store.row_uids(rows.start).start;
    let mut corrections = Sorted::of(&std::mem::take(&mut state.corrections), context.job.scratch())?;
    let my_partitions = 0..state.row.records.partitions();
    for partition in my_partitions.filter(|&partition| Offsets::inlinks_worker(partition, peers) == index) {
        let uids = state.row.records.0[partition]..state.row.records.0[partition + 1];
        let sources = intervals(store, &rows, translation, below, &uids);
        let streams = sources.into_iter().map(|(row, uids)| store.row_in_links(row, uids));
        let streams: Streams<'_, RowInLinks<'_>> = Streams::new(translation, streams)?;
        let mut writer = InlinksWriter::create(&context.row, partition_number(partition)?)?;
        let mut work = 0;
        merge(streams, translation, &mut corrections, |record| {
            writer.push(record)?;
            work += record.sources.len() as u64;
            Ok(context.job.go_on()?)
        })?;
        *state.row.work.entry(partition_number(partition)?).or_default() += work;
        state.row.files.extend(writer.finish()?);
    }
    Ok(())
}

/// Calls `visit` with each record.
fn merge(
    mut streams: Streams<'_, RowInLinks<'_>>,
    translation: &Translation,
    corrections: &mut Sorted,
    mut visit: impl FnMut(&InLinks) -> Result<(), Error>,
) -> Result<(), Error> {
    let (mut replacing, mut records) = (Replacing::new(translation), Vec::new());
    let (mut gathering, mut corrected) = (Gathering::default(), InLinks::default());
    while let Some(uid) = streams.next(&mut records)? {
        for record in &mut records {
            record.uid = uid;
            record.sources = replacing.links(std::mem::take(&mut record.sources), &mut record.changes);
        }
        let Some(joined) = join::in_links_of_rows(&mut records) else { continue };
        let mut target_corrections = corrections_of(corrections, uid)?;
        let dropped = joined.sources.partition_point(|&source| source < DROPPED);
        target_corrections.extend(joined.sources[dropped..].iter().map(|&source| (source, Vec::new())));
        if target_corrections.is_empty() && is_small(&joined) {
            visit(&joined)?;
            continue;
        }
        for_each_source(&joined, target_corrections, |source, starts| {
            if gathering.is_full() {
                gathering.finish(uid, &mut corrected);
                visit(&corrected)?;
            }
            gathering.add(source, starts);
            Ok(())
        })?;
        if !gathering.is_empty() {
            gathering.finish(uid, &mut corrected);
            visit(&corrected)?;
        }
    }
    Ok(())
}

/// Returns the corrections of one target, by page. Corrections of earlier targets are skipped: they are about links
/// that no row has.
fn corrections_of(corrections: &mut Sorted, target: Uid) -> Result<BTreeMap<Uid, Vec<u8>>, Error> {
    let mut target_corrections = BTreeMap::new();
    while let Some((mut key, starts)) = corrections.peek()? {
        let of = wire::take_uid(&mut key);
        if of > target {
            break;
        }
        if of == target {
            target_corrections.insert(wire::take_uid(&mut key), starts.to_vec());
        }
        corrections.next()?;
    }
    Ok(target_corrections)
}

/// Calls `visit` with the sources of a record and the starts of their ranges, after the corrections.
fn for_each_source(
    record: &InLinks,
    mut corrections: BTreeMap<Uid, Vec<u8>>,
    mut visit: impl FnMut(Uid, &[i64]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut changes = &record.changes[..];
    let ranges = u32::try_from(record.ranges.len()).unwrap_or(u32::MAX);
    let mut starts = Vec::new();
    for (at, &source) in (0u32..).zip(&record.sources) {
        let (source_changes, rest) = changes.split_at(changes.iter().take_while(|change| change.link == at).count());
        changes = rest;
        starts.clear();
        match corrections.remove(&source) {
            Some(corrected) => read_starts(&corrected, &mut starts),
            None => {
                for (first, last) in presence::intervals(source_changes, ranges) {
                    starts.extend_from_slice(&record.ranges[first as usize..=last as usize]);
                }
            }
        }
        if !starts.is_empty() {
            visit(source, &starts)?;
        }
    }
    Ok(())
}
