//! Verifies every promise of the format on a whole store. `webstrata check` runs this module.
//!
//! Reads the current epoch, or all epochs that are present. First compares all files with their checksums. Then reads
//! the layers of each partition side by side, a row group at a time. Always reads every manifest and every sealed file
//! (overviews, watches). A row that several epochs share is read once. Memory: one row group of a side, the names of
//! files, and the first [`CheckReport::PROBLEMS_MAX`] problems; for a store in S3, also the files of one partition.
//! Passes: each file is read twice. The report also lists unread files (`coverage`).
//!
//! In-links are compared with out-links without a join. Both sides must give the same set of (source, link, range)
//! triples, each once. The sets are compared by the sum of the hashes of their members and by their size.

mod coverage;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Damage, Error};
use crate::file::evidence::EvidenceBlock;
use crate::file::parquet::LayerFile;
use crate::file::schema::Layer;
use crate::identity::Digest;
use crate::location::Location;
use crate::read::blocks::{Block, TimesBlock, UrlBlock, View};
use crate::record::key::key;
use crate::record::page::counts::Counts;
use crate::record::page::{InLinks, Page};
use crate::record::presence;
use crate::record::time::RangeLength;
use crate::record::uid::Uid;
use crate::store::held::HeldFile;
use crate::store::inputs::read_inputs;
use crate::store::manifest::{PartitionEntry, RowEntry};
use crate::store::sealed::Sealed;
use crate::store::translation::Translations;
use crate::store::{Store, epochs, read_manifest};

pub use coverage::Unread;

/// The result of a check.
#[derive(Debug, Default)]
pub struct CheckReport {
    /// The current epoch.
    pub epoch: u64,
    /// The number of files that were read.
    pub files: u64,
    /// The number of bytes that were read.
    pub bytes: u64,
    /// The counts of the current epoch, counted from its files.
    pub counts: Counts,
    /// The epochs whose files were read, newest first.
    pub epochs: Vec<u64>,
    /// The files that were not read.
    pub unread: Unread,
    /// The problems, each with file and row; at most [`Self::PROBLEMS_MAX`].
    pub problems: Vec<Error>,
    /// The number of all problems.
    pub problems_found: u64,
}

impl CheckReport {
    /// The number of problems that are kept with their place; further problems are only counted.
    pub const PROBLEMS_MAX: usize = 1000;

    /// Whether there is no problem.
    pub fn is_sound(&self) -> bool {
        self.problems_found == 0
    }

    fn problem(&mut self, problem: Error) {
        self.problems_found += 1;
        if self.problems.len() < Self::PROBLEMS_MAX {
            self.problems.push(problem);
        }
    }

    /// Returns the value, or records a problem.
    fn keep<T>(&mut self, result: Result<T, Error>) -> Option<T> {
        result.map_err(|problem| self.problem(problem)).ok()
    }
}

/// Checks the current epoch of a store.
///
/// # Errors
/// A directory that is not a store; a manifest that cannot be read. All other problems are in the report.
pub fn check(location: impl Into<Location>) -> Result<CheckReport, Error> {
    check_epochs(&location.into(), false)
}

/// Checks all epochs of a store that are present, including rows that only earlier epochs have.
///
/// # Errors
/// As for [`check`], for the current epoch. Problems of other manifests are in the report.
pub fn check_all(location: impl Into<Location>) -> Result<CheckReport, Error> {
    check_epochs(&location.into(), true)
}

fn check_epochs(location: &Location, all: bool) -> Result<CheckReport, Error> {
    let store = Store::open(location)?;
    let mut report = CheckReport { epoch: store.manifest().epoch, ..CheckReport::default() };
    let (mut checked, mut named) = (Checked::default(), coverage::Named::of(store.manifest()));
    report.counts = checked.epoch(&store, &mut report);
    let kept = epochs(location)?;
    for past in store.manifest().history.iter().rev().filter(|past| kept.contains(&past.epoch)) {
        let manifest = match read_manifest(location, past.id()) {
            // The epoch was removed in the meantime.
            Err(Error::MissingEpoch { .. }) => continue,
            read => report.keep(read),
        };
        let Some(manifest) = manifest else { continue };
        named.add(&manifest);
        if all {
            match Store::inspect(location, past.epoch) {
                Err(Error::RetiredEpoch { .. }) => {}
                opened => _ = report.keep(opened).map(|earlier| checked.epoch(&earlier, &mut report)),
            }
        }
    }
    for kind in Sealed::ALL {
        for name in kind.names(location)? {
            report.files += 1;
            let read = report.keep(kind.read(location, &name)).flatten();
            report.bytes += read.map_or(0, |bytes| bytes.len() as u64);
        }
    }
    report.unread = named.unread(location, &checked.files, &report.epochs)?;
    Ok(report)
}

/// The files and rows checked so far, so that data of several epochs is checked once.
#[derive(Default)]
struct Checked {
    /// The paths of files.
    files: BTreeSet<String>,
    /// The paths of the files with a wrong checksum.
    broken: BTreeSet<String>,
    rows: BTreeMap<(u32, Digest), CheckedRow>,
}

/// The result of checking a row.
#[derive(Clone, Copy)]
struct CheckedRow {
    counts: Counts,
    out: Triples,
    into: Triples,
    incomplete: bool,
}

impl Checked {
    /// Checks an epoch, and returns its counts from its files.
    fn epoch(&mut self, store: &Store, report: &mut CheckReport) -> Counts {
        let manifest = store.manifest();
        report.epochs.push(manifest.epoch);
        for entry in manifest.files() {
            if self.is_new(&entry.path, entry.bytes, report) && report.keep(store.verify(entry)).is_none() {
                self.broken.insert(entry.path.clone());
            }
        }
        let mut whole = true;
        for entry in manifest.translations() {
            if self.is_new(&entry.path, entry.bytes, report) {
                whole &= report.keep(entry.verify(store.location())).is_some();
            }
        }
        if let Some(past) = manifest.lineage().first().filter(|_| whole) {
            report.keep(Translations::between(store, past.epoch));
        }
        for entry in &manifest.provenance.inputs {
            if self.is_new(&entry.path, entry.bytes, report) {
                report.keep(read_inputs(store, entry));
            }
        }
        for entry in &manifest.provenance.held {
            if self.is_new(&entry.path, entry.bytes, report) {
                report.keep(HeldFile::check(store.location(), entry));
            }
        }
        let (mut counts, mut out, mut into, mut incomplete) = <(Counts, Triples, Triples, bool)>::default();
        for row in &manifest.rows {
            let key = (row.row, row.digest());
            let found = match self.rows.get(&key) {
                Some(found) => *found,
                None => check_row((store, row, manifest.in_range), &self.broken, report),
            };
            self.rows.insert(key, found);
            counts.add(&found.counts);
            out.join(found.out);
            into.join(found.into);
            incomplete |= found.incomplete;
        }
        if out != into && !incomplete {
            report.problem(Error::NotMirrored { out_links: out.count, in_links: into.count });
        }
        counts
    }

    /// Whether a file was not checked yet. If so, adds it to the report.
    fn is_new(&mut self, path: &str, bytes: u64, report: &mut CheckReport) -> bool {
        let is_new = self.files.insert(path.to_owned());
        report.files += u64::from(is_new);
        report.bytes += if is_new { bytes } else { 0 };
        is_new
    }
}

/// Checks the layers of a row. Skips `broken` files, because their wrong checksum is already a problem.
fn check_row(
    (store, row, in_range): (&Store, &RowEntry, RangeLength),
    broken: &BTreeSet<String>,
    report: &mut CheckReport,
) -> CheckedRow {
    let mut counts = Counts::default();
    let mut sides = Sides { in_range, urls: row.end_uid(), ..Sides::default() };
    for (at, partition) in row.partitions.iter().enumerate() {
        sides.records = row.records(at);
        let open = |layer: Layer| {
            let entry = partition.file(layer).filter(|entry| !broken.contains(&entry.path))?;
            Some(LayerFile::open(store.location(), entry))
        };
        let mut files = |layers: [Layer; 3]| -> Option<[LayerFile; 3]> {
            let [links, times, changes] = layers.map(open);
            Some([report.keep(links?)?, report.keep(times?)?, report.keep(changes?)?])
        };
        let (out, into) = (files([Layer::Ol, Layer::Ts, Layer::Bv]), files([Layer::Il, Layer::Tr, Layer::Ibv]));
        match open(Layer::Url).and_then(|file| report.keep(file)) {
            Some(file) => counts.urls += check_urls(&file, partition, report),
            None => sides.incomplete = true,
        }
        sides.incomplete |= out.is_none() || into.is_none();
        if let Some(files) = &out {
            let evidence = open(Layer::Rv).and_then(|file| report.keep(file));
            sides.incomplete |= evidence.is_none();
            if let Some(evidence) = evidence {
                check_evidence(&evidence, files, sides.urls, report);
            }
            sides.check(files, report, |sides, view| {
                let page = view.page()?;
                counts.add_page(&page);
                sides.add_page(&page)
            });
        }
        if let Some(files) = &into {
            sides.check(files, report, |sides, view| sides.add_in_links(&view.in_links()?));
        }
    }
    if counts != row.counts && !sides.incomplete {
        report.problem(Error::Counts { row: row.row, expected: Box::new(row.counts), got: Box::new(counts) });
    }
    CheckedRow { counts, out: sides.out, into: sides.into, incomplete: sides.incomplete }
}

/// Checks the url layer of a partition: dense UIDs from the first UID of the partition, rising keys, no empty text.
/// Returns the number of rows.
fn check_urls(file: &LayerFile, partition: &PartitionEntry, report: &mut CheckReport) -> u64 {
    let (mut rows, mut key_before, mut key_now, mut url_before) = (0u64, Vec::new(), Vec::new(), String::new());
    for group in 0..file.groups.len() {
        let Some(block) = report.keep(UrlBlock::read(file, group, true)) else { continue };
        let (expected, got) = (partition.first_uid + file.groups[group].first_row, block.first_uid());
        if expected != got {
            report.problem(
                file.damaged(file.groups[group].first_row, Damage::NotDense { expected: expected.0, got: got.0 }),
            );
        }
        for at in 0..block.len() as u64 {
            let row = file.groups[group].first_row + at;
            let uid = block.first_uid() + at;
            let (url, surt) = (block.url(uid).unwrap_or_default(), block.surt(uid).unwrap_or_default());
            if url.is_empty() || surt.is_empty() {
                report.problem(file.damaged(row, Damage::EmptyUrl));
            }
            key(url, &mut key_now);
            let first_wrong = row == 0 && partition.first_key_bytes().is_none_or(|first| first != key_now);
            if first_wrong || key_now <= key_before {
                report.problem(file.damaged(row, Damage::Keys { previous: url_before.clone(), got: url.to_owned() }));
            }
            std::mem::swap(&mut key_before, &mut key_now);
            url_before.clear();
            url_before.push_str(url);
        }
        rows += block.len() as u64;
    }
    rows
}

/// Checks the layer rv of a partition beside the layers ol, ts and bv.
fn check_evidence(file: &LayerFile, out: &[LayerFile; 3], urls: Uid, report: &mut CheckReport) {
    let [links, times, changes] = out;
    if file.groups != times.groups {
        return report.problem(file.damaged(0, Damage::NotAligned));
    }
    for (group, group_info) in file.groups.iter().enumerate() {
        let Some(block) = report.keep(EvidenceBlock::read(file, group)) else { continue };
        // The other layers are checked separately.
        let Ok(captures) = TimesBlock::read(times, group) else { continue };
        // Few row groups have payloads, which are links of their captures.
        let mut pages = None;
        for (row, (uid, captures)) in captures.captures().enumerate() {
            let sound = block.of(row, uid, &captures).and_then(|page_evidence| {
                let last = page_evidence.revisits.iter().filter_map(|revisit| revisit.links.last()).max();
                outside(last, Uid(0)..urls)?;
                if page_evidence.payloads.is_empty() {
                    return Ok(());
                }
                let pages = pages.get_or_insert_with(|| Block::read([links, times, changes], group).ok());
                let Some(pages) = pages else { return Ok(()) };
                let foreign = page_evidence.foreign_payload(pages.view(row).links);
                foreign.map_or(Ok(()), |flaw| Err(flaw.into()))
            });
            if let Err(damage) = sound {
                report.problem(file.damaged(group_info.first_row + row as u64, damage));
            }
        }
    }
}

/// A set of triples, represented by the sum of their hashes and their number.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Triples {
    sum: u64,
    count: u64,
}

impl Triples {
    fn add(&mut self, source: Uid, link: Uid, range: i64) {
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&source.0.to_le_bytes());
        bytes[8..16].copy_from_slice(&link.0.to_le_bytes());
        bytes[16..].copy_from_slice(&range.to_le_bytes());
        self.sum = self.sum.wrapping_add(xxh3_64(&bytes));
        self.count += 1;
    }

    fn join(&mut self, other: Self) {
        self.sum = self.sum.wrapping_add(other.sum);
        self.count += other.count;
    }
}

/// The sums over both sides of all partitions.
struct Sides {
    /// The UID after the last URL that the current row may name.
    urls: Uid,
    /// The UIDs with records in the current partition.
    records: Range<Uid>,
    in_range: RangeLength,
    out: Triples,
    into: Triples,
    /// Whether a part could not be read, so that the sums have no meaning.
    incomplete: bool,
}

impl Default for Sides {
    fn default() -> Self {
        let (out, into) = (Triples::default(), Triples::default());
        Self { urls: Uid(0), records: Uid(0)..Uid(0), in_range: RangeLength::Month, out, into, incomplete: false }
    }
}

impl Sides {
    /// Checks one side of a partition, record by record.
    fn check(
        &mut self,
        files: &[LayerFile; 3],
        report: &mut CheckReport,
        mut record: impl FnMut(&mut Self, View<'_>) -> Result<(), Damage>,
    ) {
        let [links, times, changes] = files;
        if links.groups.len() != times.groups.len() || links.groups.len() != changes.groups.len() {
            report.problem(links.damaged(0, Damage::NotAligned));
            self.incomplete = true;
        }
        for (group, group_info) in links.groups.iter().enumerate() {
            let Some(block) = report.keep(Block::read([links, times, changes], group)) else {
                self.incomplete = true;
                continue;
            };
            for row in 0..block.len() {
                let view = block.view(row);
                let inside = outside(Some(&view.uid), self.records.clone())
                    .and_then(|()| outside(view.links.last(), Uid(0)..self.urls))
                    .and_then(|()| record(self, view));
                if let Err(damage) = inside {
                    report.problem(links.damaged(group_info.first_row + row as u64, damage));
                }
            }
        }
    }

    fn add_page(&mut self, page: &Page) -> Result<(), Damage> {
        let ranges: Vec<i64> = page.timestamps.iter().map(|&time| self.in_range.start(time)).collect();
        let captures = u32::try_from(ranges.len()).unwrap_or(u32::MAX);
        let mut rest = page.changes.as_slice();
        for (at, &link) in (0u32..).zip(&page.links) {
            let (link_changes, after) = rest.split_at(rest.partition_point(|change| change.link <= at));
            rest = after;
            let mut before = None;
            for (first, last) in presence::intervals(link_changes, captures) {
                for capture in (first..=last).filter(|&capture| !page.is_blank(capture)) {
                    let range = ranges[capture as usize];
                    if before.replace(range) != Some(range) {
                        self.out.add(page.uid, link, range);
                    }
                }
            }
        }
        Ok(())
    }

    fn add_in_links(&mut self, record: &InLinks) -> Result<(), Damage> {
        if let Some(&start) = record.ranges.iter().find(|&&start| self.in_range.start(start) != start) {
            return Err(Damage::NotRangeStart(start));
        }
        let ranges = u32::try_from(record.ranges.len()).unwrap_or(u32::MAX);
        let mut rest = record.changes.as_slice();
        for (at, &source) in (0u32..).zip(&record.sources) {
            let (link_changes, after) = rest.split_at(rest.partition_point(|change| change.link <= at));
            rest = after;
            for (first, last) in presence::intervals(link_changes, ranges) {
                record.ranges[first as usize..=last as usize]
                    .iter()
                    .for_each(|&range| self.into.add(source, record.uid, range));
            }
        }
        Ok(())
    }
}

/// Fails if a UID is outside of an interval.
fn outside(uid: Option<&Uid>, Range { start: first, end }: Range<Uid>) -> Result<(), Damage> {
    match uid {
        Some(&uid) if uid < first || uid >= end => Err(Damage::UidOutside { uid, first, end }),
        _ => Ok(()),
    }
}
