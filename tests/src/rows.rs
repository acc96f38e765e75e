//! Stores of several rows, written by plain loops over the content of each row. Rows have captures of the same pages,
//! in different orders of time. Some captures are in several rows, with other links, with unknown links, or as
//! failures. [`Rows::with_cut`] cuts some captures.
//!
//! [`Rows::random`] makes up small rows, the same for the same seed. [`Rows::write`] writes the store with the writers
//! of layers. [`Rows::oracle`] knows the right answers: if several rows have a capture of one page and second, the
//! newest row decides.

use crate::crawls::{Random, url};
use crate::oracle::{Oracle, Time, Url};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use webstrata_layers::record::key::key_of;
use webstrata_layers::{
    Change, Counts, Cut, Evidence, InLinks, InlinksWriter, NewEpoch, OutlinksWriter, Page, PartitionEntry, Provenance,
    RangeLength, RowEntry, Status, StoreWriter, Uid, UrlWriter, push_status,
};

/// The content of a capture in a row. `L` is the type of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said<L = Url> {
    /// The links of the capture.
    Links(BTreeSet<L>),
    /// The links that were found in a cut capture.
    Cut(BTreeSet<L>),
    /// The links of the capture are unknown.
    Unknown,
    /// The capture is a failure with this status.
    Failure(u16),
}

impl<L> Said<L> {
    /// The links; `None` if the capture is a failure, or its links are unknown.
    fn links(&self) -> Option<&BTreeSet<L>> {
        if let Said::Links(links) | Said::Cut(links) = self { Some(links) } else { None }
    }

    /// The links, mutable; `None` if the capture is a failure, or its links are unknown.
    pub fn links_mut(&mut self) -> Option<&mut BTreeSet<L>> {
        if let Said::Links(links) | Said::Cut(links) = self { Some(links) } else { None }
    }
}

/// The captures of a row.
pub type Captures = BTreeMap<(Url, Time), Said>;

/// The shape of random rows.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The number of rows.
    pub rows: usize,
    /// The number of URLs that may be captured.
    pub pages: u64,
    /// The maximum number of captures of a row.
    pub captures: u64,
    /// The maximum number of links of a capture.
    pub links: u64,
    /// Whether all captures of a row are later than the captures of older rows.
    pub in_order: bool,
}

/// The content of each row of a store, the oldest row first.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// The captures of each row.
    pub rows: Vec<Captures>,
    /// The URLs that each row brings without any record.
    pub bare: Vec<BTreeSet<Url>>,
}

impl Rows {
    /// Random rows.
    pub fn random(seed: u64, shape: Shape) -> Self {
        let mut random = Random(seed);
        let mut made = Self::default();
        for row in 0..shape.rows {
            let (mut captures, mut bare) = (Captures::new(), BTreeSet::new());
            // The first row has at least one capture. Other rows may be empty.
            let count = if row == 0 { 1 + random.below(shape.captures) } else { random.below(shape.captures + 1) };
            for _ in 0..count {
                let said = made.rows.iter().map(Captures::len).sum::<usize>() as u64;
                let (page, time) = if said > 0 && !shape.in_order && random.once_in(3) {
                    let again = usize::try_from(random.below(said)).expect("an index");
                    made.rows.iter().flat_map(Captures::keys).nth(again).expect("a capture").clone()
                } else {
                    // The captures have few distinct seconds in the same months, so that rows overlap in both.
                    let month = random.below(4) + if shape.in_order { 5 * row as u64 } else { 0 };
                    let second = month * 30 * 86_400 + random.below(3) * 7 * 86_400 + random.below(3);
                    (url(random.below(shape.pages)), i64::try_from(second).expect("a time"))
                };
                captures.insert((page.clone(), time), Self::links(&page, shape, &mut random));
            }
            if random.once_in(2) {
                bare.insert(format!("http://bare.example/{row}"));
            }
            made.rows.push(captures);
            made.bare.push(bare);
        }
        made
    }

    /// Random links, similar to the links of the page's other captures. Sometimes the links are unknown, or the capture
    /// is a failure.
    fn links(page: &str, Shape { pages, links, .. }: Shape, random: &mut Random) -> Said {
        if random.once_in(6) {
            return Said::Unknown;
        }
        if random.once_in(5) {
            return Said::Failure(*random.pick(&[404, 410, 429, 500, 503]));
        }
        let mut usual = Random(page.bytes().map(u64::from).sum());
        let usual: Vec<Url> = (0..usual.below(links + 1)).map(|_| url(usual.below(3 * pages))).collect();
        let mut own: BTreeSet<Url> = usual.into_iter().filter(|_| !random.once_in(4)).collect();
        (0..random.below(3)).for_each(|_| _ = own.insert(url(random.below(4 * pages))));
        Said::Links(own)
    }

    /// The same rows, in which about one capture in four with links is cut.
    #[must_use]
    pub fn with_cut(mut self, seed: u64) -> Self {
        let mut random = Random(seed);
        for said in self.rows.iter_mut().flat_map(|row| row.values_mut()) {
            if let Some(links) = said.links_mut().filter(|_| random.once_in(4)) {
                *said = Said::Cut(std::mem::take(links));
            }
        }
        self
    }

    /// The oracle of all rows together.
    pub fn oracle(&self) -> Oracle {
        let mut all = Captures::new();
        self.rows.iter().for_each(|row| all.extend(row.clone()));
        let mut oracle = Oracle::default();
        for ((page, time), said) in &all {
            match said {
                Said::Links(links) => oracle.add(page, *time, links.iter().map(String::as_str)),
                Said::Cut(links) => oracle.add_cut(page, *time, links.iter().map(String::as_str)),
                Said::Unknown => oracle.add_unknown(page, *time),
                Said::Failure(status) => oracle.add_failure(*status, page, *time),
            }
        }
        oracle
    }

    /// Writes a store, each row in `partitions` partitions.
    ///
    /// # Panics
    /// If the store cannot be written.
    pub fn write(&self, store: &Path, partitions: u32, in_range: RangeLength) {
        let writer = StoreWriter::open(store, "test", None).expect("a store");
        let mut uids: BTreeMap<&str, Uid> = BTreeMap::new();
        let mut rows = Vec::new();
        for (captures, bare) in self.rows.iter().zip(&self.bare) {
            let pages = captures.keys().map(|(page, _)| page);
            let met: BTreeSet<&str> = pages
                .chain(captures.values().filter_map(Said::links).flatten())
                .chain(bare)
                .map(String::as_str)
                .collect();
            let mut urls: Vec<&str> = met.into_iter().filter(|url| !uids.contains_key(url)).collect();
            urls.sort_by_key(|url| key_of(url));
            let first_uid = Uid(uids.len() as u64);
            uids.extend(urls.iter().copied().zip(Uid::each(first_uid..first_uid + urls.len() as u64)));
            let captures = captures.iter().map(|((page, time), said)| {
                let said = match said {
                    Said::Links(links) => Said::Links(links.iter().map(|link| uids[link.as_str()]).collect()),
                    Said::Cut(links) => Said::Cut(links.iter().map(|link| uids[link.as_str()]).collect()),
                    Said::Unknown => Said::Unknown,
                    Said::Failure(status) => Said::Failure(*status),
                };
                ((uids[page.as_str()], *time), said)
            });
            rows.push(write_row(&writer, &urls, first_uid, &captures.collect(), partitions, in_range));
        }
        let epoch = NewEpoch { rows, in_range, provenance: Provenance::default(), translation: None };
        writer.commit(epoch).expect("an epoch");
    }
}

/// The captures of a row, by UID.
type Numbered = BTreeMap<(Uid, Time), Said<Uid>>;

fn write_row(
    writer: &StoreWriter,
    urls: &[&str],
    first_uid: Uid,
    captures: &Numbered,
    partitions: u32,
    in_range: RangeLength,
) -> RowEntry {
    let row = writer.begin_row().expect("a row");
    let end = first_uid + urls.len() as u64;
    let cut = |from: Uid, partition: u32| from + (end - from) * u64::from(partition) / u64::from(partitions);
    let (pages, in_links) = (pages(captures), in_links(captures, in_range));
    let mut counts = Counts { urls: urls.len() as u64, ..Counts::default() };
    pages.iter().for_each(|page| counts.add_page(page));
    let partition = |partition: u32| {
        let own = cut(first_uid, partition)..cut(first_uid, partition + 1);
        let mut file = UrlWriter::create(&row, partition).expect("a file");
        for uid in Uid::each(own.clone()) {
            let at = uid.after(first_uid).expect("an index");
            file.push(uid, urls[at], "example)/").expect("a URL");
        }
        let first_key = file.first_key();
        // The records of all UIDs so far. For the oldest row, the cuts are the cuts of the URLs.
        let records = cut(Uid(0), partition)..cut(Uid(0), partition + 1);
        let mut out = OutlinksWriter::create(&row, partition).expect("a file");
        let own_pages = pages.iter().filter(|page| records.contains(&page.uid));
        own_pages.for_each(|page| out.push(page, &Evidence::default()).expect("a page"));
        let mut into = InlinksWriter::create(&row, partition).expect("a file");
        let own_links = in_links.iter().filter(|record| records.contains(&record.uid));
        own_links.for_each(|record| into.push(record).expect("a record"));
        let files = [file.finish(), out.finish(), into.finish()].map(|files| files.expect("files").to_vec()).concat();
        let (first_uid, urls) = (own.start, own.end - own.start);
        PartitionEntry { partition, first_uid, urls, first_record: records.start, first_key, files }
    };
    let partitions = (0..partitions).map(partition).collect();
    RowEntry {
        row: row.row(),
        first_uid,
        urls: urls.len() as u64,
        updates: 1,
        removes: false,
        displaces: false,
        elsewhere: 0,
        partitions,
        counts,
    }
}

fn pages(captures: &Numbered) -> Vec<Page> {
    let uids: BTreeSet<Uid> = captures.keys().map(|(uid, _)| *uid).collect();
    let page = |uid| {
        let own: Vec<_> = captures.range((uid, i64::MIN)..=(uid, i64::MAX)).map(|(own, said)| (own.1, said)).collect();
        let links: BTreeSet<Uid> = own.iter().filter_map(|(_, said)| said.links()).flatten().copied().collect();
        let has = |link: &Uid| own.iter().map(|(_, said)| said.links().map(|links| links.contains(link))).collect();
        let mut statuses = Vec::new();
        for (at, (_, said)) in (0..).zip(&own) {
            let status = match said {
                Said::Failure(code) => Status::new(*code),
                Said::Cut(_) => Status::cut(200, Cut::ALL[at as usize % Cut::ALL.len()]),
                _ => Some(Status::OK),
            };
            push_status(&mut statuses, at, status.expect("a status"));
        }
        Page {
            uid,
            timestamps: own.iter().map(|(time, _)| *time).collect(),
            blank: (0..).zip(&own).filter(|(_, (_, said))| said.links().is_none()).map(|(at, _)| at).collect(),
            changes: changes(links.iter().map(has)),
            links: links.into_iter().collect(),
            statuses,
        }
    };
    uids.into_iter().map(page).collect()
}

fn in_links(captures: &Numbered, in_range: RangeLength) -> Vec<InLinks> {
    let mut seen: BTreeMap<Uid, BTreeMap<Uid, BTreeSet<Time>>> = BTreeMap::new();
    for ((source, time), said) in captures {
        for link in said.links().into_iter().flatten() {
            seen.entry(*link).or_default().entry(*source).or_default().insert(in_range.start(*time));
        }
    }
    let record = |(uid, sources): (Uid, BTreeMap<Uid, BTreeSet<Time>>)| {
        let ranges: BTreeSet<Time> = sources.values().flatten().copied().collect();
        let has = |own: &BTreeSet<Time>| ranges.iter().map(|range| Some(own.contains(range))).collect();
        let changes = changes(sources.values().map(has));
        InLinks { uid, ranges: ranges.into_iter().collect(), sources: sources.into_keys().collect(), changes }
    };
    seen.into_iter().map(record).collect()
}

/// The changes of a matrix, link by link; `None` where a capture is blank.
fn changes(matrix: impl Iterator<Item = Vec<Option<bool>>>) -> Vec<Change> {
    let mut changes = Vec::new();
    for (link, row) in (0..).zip(matrix) {
        let mut before = true;
        for (capture, bit) in (0..).zip(row) {
            if bit.is_some_and(|bit| bit != before) {
                changes.push(Change { link, capture });
                before = !before;
            }
        }
    }
    changes
}
