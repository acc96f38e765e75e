//! Stage 6: pages in order of UID to the layers OL, TS and BV (Avcular & Suel 2011, section 4).
//!
//! Every worker writes its partitions, one after the other; a partition without pages has files without rows. While a
//! page is at hand, each of its links goes to the worker that writes the in-links of its target.
//!
//! In-link record: key = UID of the target (8 bytes), UID of the page (8 bytes); payload = starts of the time ranges in
//! which a capture of the page had the link, as [`crate::wire::time_key`], rising.

use crate::external_sort::{Sorted, Sorter};
use crate::job::{Job, Stopped};
use crate::shuffle::{Outbox, shuffle};
use crate::uids::Offsets;
use crate::{Error, page_record, wire};
use std::cell::RefCell;
use std::rc::Rc;
use timely::worker::Worker;
use webstrata_layers::presence::runs;
use webstrata_layers::{Counts, FileEntry, OutlinksWriter, Page, RangeLength, RowDir};

/// What the stage leaves on a worker.
pub(crate) struct Outlinks {
    /// In-link records of the partitions that this worker writes.
    pub(crate) inlinks: Sorter,
    /// Files by partition.
    pub(crate) files: Vec<(usize, Vec<FileEntry>)>,
    /// Counts of what this worker wrote; all but the number of URLs.
    pub(crate) counts: Counts,
}

struct Writing {
    pages: Sorted,
    row: RowDir,
    offsets: Offsets,
    in_range: RangeLength,
    current: Option<(usize, OutlinksWriter)>,
    /// This worker's partitions that are not yet begun, the next one last.
    waiting: Vec<usize>,
    files: Vec<(usize, Vec<FileEntry>)>,
    counts: Counts,
    page: Page,
    /// Start of the time range of each capture of the page; `None` for captures of unknown links.
    ranges: Vec<Option<i64>>,
    starts: Vec<u8>,
}

impl Writing {
    fn begin_next(&mut self) -> Result<bool, Error> {
        if let Some((partition, writer)) = self.current.take() {
            self.files.push((partition, writer.finish()?));
        }
        let Some(partition) = self.waiting.pop() else { return Ok(false) };
        let number = u32::try_from(partition).map_err(|_| Error::Internal("more than 2^32 partitions"))?;
        self.current = Some((partition, OutlinksWriter::create(&self.row, number)?));
        Ok(true)
    }

    fn step(&mut self, outbox: &mut Outbox) -> Result<bool, Error> {
        let Some((mut uid, payload)) = self.pages.next()? else { return Ok(false) };
        self.page.uid = u64::from_be_bytes(wire::take_array(&mut uid));
        page_record::read(payload, &mut self.page);
        let partition = self.offsets.of(self.page.uid);
        while self.current.as_ref().is_none_or(|current| current.0 != partition) {
            if !self.begin_next()? {
                return Err(Error::Internal("a page of a partition that another worker writes"));
            }
        }
        if let Some((_, writer)) = &mut self.current {
            writer.push(&self.page)?;
        }
        self.counts.add_page(&self.page);
        self.send_in_links(outbox);
        Ok(true)
    }

    fn send_in_links(&mut self, outbox: &mut Outbox) {
        let Writing { page, ranges, starts, in_range, offsets, .. } = self;
        ranges.clear();
        ranges.extend(page.timestamps.iter().map(|&time| Some(in_range.start(time))));
        page.unknown.iter().for_each(|&capture| ranges[capture as usize] = None);
        let captures = u32::try_from(page.timestamps.len()).unwrap_or(u32::MAX);
        let every_start = |starts: &mut Vec<u8>, ranges: &mut dyn Iterator<Item = Option<i64>>| {
            let mut last = None;
            for start in ranges.flatten() {
                if last != Some(start) {
                    starts.extend_from_slice(&wire::time_key(start));
                    last = Some(start);
                }
            }
        };
        starts.clear();
        every_start(starts, &mut ranges.iter().copied());
        let in_all = starts.len();
        let mut changes = &page.changes[..];
        let mut key = [0; 16];
        key[8..].copy_from_slice(&page.uid.to_be_bytes());
        for (number, &target) in (0u32..).zip(&page.links) {
            let (own, rest) = changes.split_at(changes.iter().take_while(|change| change.link == number).count());
            changes = rest;
            starts.truncate(in_all);
            let present = if own.is_empty() {
                0..in_all
            } else {
                let runs = runs(own, captures);
                let mut within =
                    runs.iter().flat_map(|&(first, last)| &ranges[first as usize..=last as usize]).copied();
                every_start(starts, &mut within);
                in_all..starts.len()
            };
            key[..8].copy_from_slice(&target.to_be_bytes());
            let worker = Offsets::inlinks_worker(offsets.of(target), outbox.workers());
            outbox.send(worker, &key, &starts[present]);
        }
    }
}

/// Writes OL, TS and BV; see the head of this file.
pub(crate) fn outlinks(
    worker: &mut Worker,
    job: &Job,
    pages: Sorter,
    offsets: &Offsets,
    in_range: RangeLength,
    row: &RowDir,
) -> Result<Outlinks, Stopped> {
    let (index, peers) = (worker.index(), worker.peers());
    let own = (0..offsets.partitions()).rev().filter(|&partition| Offsets::worker(partition, peers) == index);
    let writing = Rc::new(RefCell::new(Writing {
        pages: job.check(pages.finish())?,
        row: row.clone(),
        in_range,
        current: None,
        waiting: own.collect(),
        files: Vec::new(),
        counts: Counts::default(),
        page: Page::default(),
        ranges: Vec::new(),
        starts: Vec::new(),
        offsets: offsets.clone(),
    }));
    let inlinks = Rc::new(RefCell::new(Sorter::new(job.spill(), job.budget(50))));
    let (write, collect) = (Rc::clone(&writing), Rc::clone(&inlinks));
    shuffle(
        worker,
        job,
        "outlinks",
        move |outbox| write.borrow_mut().step(outbox),
        move |block| collect.borrow_mut().push_block(block),
    )?;
    let inlinks = inlinks.replace(Sorter::new(job.spill(), 0));
    let mut writing = writing.borrow_mut();
    // After the shuffle, so that workers who have no page left go on to their in-links meanwhile.
    while job.check(writing.begin_next())? {}
    Ok(Outlinks { inlinks, files: std::mem::take(&mut writing.files), counts: std::mem::take(&mut writing.counts) })
}
