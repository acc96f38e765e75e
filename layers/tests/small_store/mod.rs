//! A small store for tests, made by plain loops: from captures to pages to in-links to files.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]
#![allow(dead_code, reason = "each test uses a part of it")]

use std::collections::{BTreeMap, BTreeSet};

use webstrata_layers::*;

/// The links of each (page, time); `None` if they are unknown.
pub(crate) type Captures = BTreeMap<(u64, i64), Option<BTreeSet<u64>>>;

/// The links of a capture.
pub(crate) fn links(links: &[u64]) -> Option<BTreeSet<u64>> {
    Some(links.iter().copied().collect())
}

pub(crate) struct Model {
    pub(crate) captures: Captures,
    pub(crate) urls: u64,
    pub(crate) in_range: RangeLength,
    pub(crate) pages: Vec<Page>,
    pub(crate) in_links: Vec<InLinks>,
}

impl Model {
    pub(crate) fn new(captures: Captures, urls: u64, in_range: RangeLength) -> Self {
        let uids: BTreeSet<u64> = captures.keys().map(|(uid, _)| *uid).collect();
        let pages: Vec<Page> = uids.into_iter().map(|uid| page(&captures, uid)).collect();
        let mut seen: BTreeMap<Uid, BTreeMap<Uid, BTreeSet<i64>>> = BTreeMap::new();
        for ((source, time), links) in &captures {
            for link in links.iter().flatten() {
                seen.entry(Uid(*link)).or_default().entry(Uid(*source)).or_default().insert(in_range.start(*time));
            }
        }
        let in_links = seen.into_iter().map(|(uid, sources)| {
            let ranges: BTreeSet<i64> = sources.values().flatten().copied().collect();
            let matrix: Vec<Vec<bool>> =
                sources.values().map(|own| ranges.iter().map(|range| own.contains(range)).collect()).collect();
            let (sources, ranges) = (sources.into_keys().collect(), ranges.into_iter().collect());
            InLinks { uid, ranges, sources, changes: changes(&matrix, &[]) }
        });
        let in_links = in_links.collect();
        Self { captures, urls, in_range, pages, in_links }
    }

    /// URLs are in key order for UIDs up to 9.
    pub(crate) fn url(uid: u64) -> String {
        format!("http://example.com/{uid}")
    }

    pub(crate) fn counts(&self) -> Counts {
        let mut counts = Counts { urls: self.urls, ..Counts::default() };
        self.pages.iter().for_each(|page| counts.add_page(page));
        counts
    }

    /// Writes a row and returns its epoch, which is not committed yet.
    pub(crate) fn write_row(&self, writer: &StoreWriter, partitions: u32) -> NewEpoch {
        self.write_into(&[writer.begin_row().unwrap()], partitions)
    }

    /// As [`Self::write_row`], for a row that is open several times, as in several processes. Each writes some
    /// partitions.
    pub(crate) fn write_into(&self, rows: &[RowDir], partitions: u32) -> NewEpoch {
        let bound = |partition: u32| self.urls * u64::from(partition) / u64::from(partitions);
        let entry = |partition| {
            let (first_uid, end) = (bound(partition), bound(partition + 1));
            let row = &rows[partition as usize % rows.len()];
            let mut urls = UrlWriter::create(row, partition).unwrap();
            for uid in first_uid..end {
                urls.push(Uid(uid), &Self::url(uid), &format!("com,example)/{uid}")).unwrap();
            }
            let first_key = urls.first_key();
            let mut out = OutlinksWriter::create(row, partition).unwrap();
            let inside = |uid: Uid| first_uid <= uid.0 && uid.0 < end;
            self.pages
                .iter()
                .filter(|page| inside(page.uid))
                .for_each(|page| out.push(page, &Evidence::default()).unwrap());
            let mut into = InlinksWriter::create(row, partition).unwrap();
            self.in_links.iter().filter(|record| inside(record.uid)).for_each(|record| into.push(record).unwrap());
            let files = [urls.finish().unwrap(), out.finish().unwrap(), into.finish().unwrap()].concat();
            PartitionEntry {
                partition,
                first_uid: Uid(first_uid),
                urls: end - first_uid,
                first_record: Uid(first_uid),
                first_key,
                files,
            }
        };
        let (urls, counts) = (self.urls, self.counts());
        let row = RowEntry {
            row: rows[0].row(),
            first_uid: Uid(0),
            urls,
            updates: 1,
            removes: false,
            displaces: false,
            elsewhere: 0,
            partitions: (0..partitions).map(entry).collect(),
            counts,
        };
        let provenance = Provenance { version: "test".to_owned(), ..Provenance::default() };
        NewEpoch { rows: vec![row], in_range: self.in_range, provenance, translation: None }
    }

    pub(crate) fn write(&self, location: impl Into<Location>, partitions: u32) {
        let writer = StoreWriter::open(location, "test", None).unwrap();
        let epoch = self.write_row(&writer, partitions);
        writer.commit(epoch).unwrap();
    }
}

fn page(captures: &Captures, uid: u64) -> Page {
    let own: Vec<(i64, Option<&BTreeSet<u64>>)> = captures
        .iter()
        .filter(|((page, _), _)| *page == uid)
        .map(|((_, time), links)| (*time, links.as_ref()))
        .collect();
    let timestamps = own.iter().map(|(time, _)| *time).collect();
    let unknown: Vec<u32> = (0..).zip(&own).filter(|(_, (_, links))| links.is_none()).map(|(at, _)| at).collect();
    let links: BTreeSet<u64> = own.iter().filter_map(|(_, links)| *links).flatten().copied().collect();
    let has = |link: &u64| own.iter().map(|(_, links)| links.is_some_and(|links| links.contains(link))).collect();
    let matrix: Vec<Vec<bool>> = links.iter().map(has).collect();
    let changes = changes(&matrix, &unknown);
    let links = links.into_iter().map(Uid).collect();
    Page { uid: Uid(uid), timestamps, blank: unknown, links, changes, statuses: vec![] }
}

fn changes(matrix: &[Vec<bool>], unknown: &[u32]) -> Vec<Change> {
    let mut changes = Vec::new();
    for (link, row) in (0..).zip(matrix) {
        let mut before = true;
        for (capture, &bit) in (0..).zip(row) {
            if unknown.contains(&capture) {
                continue;
            }
            if bit != before {
                changes.push(Change { link, capture });
            }
            before = bit;
        }
    }
    changes
}
