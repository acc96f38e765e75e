//! Answers from the layers on disk: [`Reader`].
//!
//! A [`Reader`] reads each file whole and compares its checksum when a question first needs the file. Damage is
//! therefore an error and never an answer. The reader then decodes row groups on demand and keeps the row groups used
//! last, up to a bound of memory. Files fetched from S3 count towards the bound and are dropped in the same way; they
//! are fetched again when needed.
//!
//! The manifest maps a UID to its partitions, and the statistics of the files map the UID to row groups. A URL is found
//! by its key, through first keys. Each row may have a record of a UID, and the answer joins the records of all rows
//! ([`crate::record::join`]). Threads may share a reader. The cache is locked for look-ups, but not during decoding:
//! two threads may decode the same block, and one copy is kept.

mod in_rows;

use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::error::{Damage, Error};
use crate::file::entry::FileEntry;
use crate::file::evidence::EvidenceBlock;
use crate::file::parquet::{Footer, LayerFile};
use crate::file::schema::Layer;
use crate::location::body::Body;
use crate::questions::Precision;
use crate::read::blocks::{Block, Cache, TimesBlock, UrlBlock, View};
use crate::read::cached::{BlockId, Cached, Kind};
use crate::read::query::{Links, keep_linking, sources_in, still_linking};
use crate::read::spellings::Spelled;
use crate::record::capture::CaptureTime;
use crate::record::form;
use crate::record::join;
use crate::record::join::without_removed;
use crate::record::key::{key, key_after};
use crate::record::page::evidence::Evidence;
use crate::record::page::{Flaw, InLinks, Page};
use crate::record::precedence::{self, Overlaps};
use crate::record::time::{RangeLength, Window};
use crate::record::uid::{Uid, in_order};
use crate::store::Store;
use crate::store::manifest::PartitionEntry;

/// Answers questions about one epoch of a store from its files.
///
/// The [example of the crate](crate#example) writes a store, and asks it with a reader.
pub struct Reader {
    pub(crate) store: Store,
    /// The partitions of all rows, row after row.
    pub(crate) partitions: Vec<Partition>,
    pub(crate) rows: Vec<Row>,
    urls: u64,
    /// Whether some row takes out captures or links of older rows.
    removes: bool,
    /// The times in which rows may replace captures of each other.
    overlaps: Overlaps,
    cache: Mutex<Cache<BlockId, Cached>>,
}

/// The files and the bounds of a row.
pub(crate) struct Row {
    pub(crate) partitions: Range<usize>,
    /// The partitions with URLs.
    with_urls: Vec<usize>,
    end_uid: Uid,
    /// The times of the first and the last capture; the first is above the last if the row has no captures.
    times: (i64, i64),
}

pub(crate) struct Partition {
    pub(crate) entry: PartitionEntry,
    first_key: Vec<u8>,
    /// The footers of the files that were needed so far.
    footers: [OnceLock<Arc<Footer>>; Layer::ALL.len()],
    /// The local files with a verified checksum.
    verified: [OnceLock<Body>; Layer::ALL.len()],
    /// The first keys of the row groups of the url layer that were needed so far.
    group_keys: OnceLock<Vec<OnceLock<Vec<u8>>>>,
}

/// A record: its partition, its row group, and its row in the row group.
type RecordRef = (usize, Arc<Block>, usize);

impl Reader {
    /// Creates a reader that keeps up to `memory_max` bytes of decoded blocks, and at least the block in use.
    pub fn new(store: Store, memory_max: usize) -> Self {
        let manifest = store.manifest();
        let (mut partitions, mut rows) = (Vec::new(), Vec::new());
        for row in &manifest.rows {
            let first = partitions.len();
            partitions.extend(row.partitions.iter().map(|entry| Partition {
                entry: entry.clone(),
                first_key: entry.first_key_bytes().unwrap_or_default(),
                footers: Default::default(),
                verified: Default::default(),
                group_keys: OnceLock::new(),
            }));
            let row_partitions = first..partitions.len();
            let with_urls = row_partitions.clone().filter(|&at| partitions[at].entry.urls > 0).collect();
            let times = row.counts.first_time.zip(row.counts.last_time).unwrap_or((i64::MAX, i64::MIN));
            rows.push(Row { partitions: row_partitions, with_urls, end_uid: row.end_uid(), times });
        }
        let (urls, removes) = (manifest.counts.urls, manifest.removes());
        let overlaps = Overlaps::of(&rows.iter().map(|row: &Row| row.times).collect::<Vec<_>>(), removes);
        Self { store, partitions, rows, overlaps, urls, removes, cache: Mutex::new(Cache::new(memory_max)) }
    }

    /// Returns the same reader, set up for `threads` threads that each ask UID after UID. It keeps the blocks that
    /// these threads need at once (one of each kind and row) even above the bound of memory. Otherwise each question
    /// would decode blocks again.
    pub fn for_scans(self, threads: usize) -> Self {
        const KINDS: usize = 4;
        let cache = self.cache.into_inner().unwrap_or_else(PoisonError::into_inner);
        let values_min = threads * self.rows.len() * KINDS;
        Self { cache: Mutex::new(cache.keeping(values_min)), ..self }
    }

    /// The store that the reader answers from.
    pub fn store(&self) -> &Store {
        &self.store
    }

    fn known(&self, uid: Uid) -> Result<(), Error> {
        let unknown = || Error::UnknownUid { uid, epoch: self.epoch(), urls: self.urls };
        if uid.0 < self.urls { Ok(()) } else { Err(unknown()) }
    }

    /// The partition that has the URL of a UID.
    fn partition_of(&self, uid: Uid) -> Result<usize, Error> {
        self.known(uid)?;
        Ok(self.partitions.partition_point(|partition| partition.entry.first_uid + partition.entry.urls <= uid))
    }

    /// The partition of a row that has the records of a UID; `None` if the row is older than the UID.
    fn partition_of_records(&self, row: &Row, uid: Uid) -> Option<usize> {
        let row_partitions = &self.partitions[row.partitions.clone()];
        let at = row_partitions.partition_point(|partition| partition.entry.first_record <= uid).checked_sub(1)?;
        (uid < row.end_uid).then_some(row.partitions.start + at)
    }

    fn entry(&self, partition: usize, layer: Layer) -> &FileEntry {
        // The manifest was checked: each partition has each layer, in this order.
        &self.partitions[partition].entry.files[layer as usize]
    }

    /// The bytes of a file, after its checksum is verified: a damaged file must not give a wrong answer, and the
    /// Parquet library panics on some damaged files. A local file is verified once, a remote file whenever it is
    /// fetched.
    fn body(&self, partition: usize, layer: Layer) -> Result<Body, Error> {
        let entry = self.entry(partition, layer);
        if self.store.location().directory().is_some() {
            let body_slot = &self.partitions[partition].verified[layer as usize];
            if let Some(body) = body_slot.get() {
                return Ok(body.clone());
            }
            let body = self.store.body(entry)?;
            return Ok(body_slot.get_or_init(|| body).clone());
        }
        let id = BlockId { kind: Kind::File(layer), partition, group: 0 };
        let read = || {
            let body = self.store.body(entry)?;
            let held = body.held();
            Ok((Cached::File(body), held))
        };
        match self.cached(id, read)? {
            Cached::File(body) => Ok(body),
            _ => Err(self.misplaced(partition, layer)),
        }
    }

    pub(crate) fn footer(&self, partition: usize, layer: Layer) -> Result<&Arc<Footer>, Error> {
        let footer_slot = &self.partitions[partition].footers[layer as usize];
        if let Some(footer) = footer_slot.get() {
            return Ok(footer);
        }
        let entry = self.entry(partition, layer);
        let footer = Footer::read(self.store.location().path(&entry.path), &self.body(partition, layer)?, entry)?;
        Ok(footer_slot.get_or_init(|| Arc::new(footer)))
    }

    pub(crate) fn file(&self, partition: usize, layer: Layer) -> Result<LayerFile, Error> {
        Ok(LayerFile { footer: Arc::clone(self.footer(partition, layer)?), body: self.body(partition, layer)? })
    }

    fn cached(&self, id: BlockId, read: impl FnOnce() -> Result<(Cached, usize), Error>) -> Result<Cached, Error> {
        let cache = || self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = cache().get(id) {
            return Ok(found);
        }
        let (block, bytes) = read()?;
        cache().put(id, block.clone(), bytes);
        Ok(block)
    }

    pub(crate) fn url_block(&self, partition: usize, group: usize) -> Result<Arc<UrlBlock>, Error> {
        let id = BlockId { kind: Kind::Urls, partition, group };
        let read = || {
            let block = UrlBlock::read(&self.file(partition, Layer::Url)?, group, false)?;
            let bytes = block.bytes();
            Ok((Cached::Urls(Arc::new(block)), bytes))
        };
        match self.cached(id, read)? {
            Cached::Urls(block) => Ok(block),
            _ => Err(self.misplaced(partition, Layer::Url)),
        }
    }

    /// Adds the records of a UID in a partition: one of a page, one or more of in-links.
    fn add_records(&self, kind: Kind, partition: usize, uid: Uid, records: &mut Vec<RecordRef>) -> Result<(), Error> {
        let footer = self.footer(partition, kind.layers()[0])?;
        let Some(first) = footer.group_of(uid) else { return Ok(()) };
        for (group, _) in footer.groups.iter().enumerate().skip(first).take_while(|(_, group)| group.first_uid <= uid) {
            let block = self.record_block(kind, partition, group)?;
            records.extend(block.rows_of(uid).map(|row| (partition, Arc::clone(&block), row)));
        }
        Ok(())
    }

    /// A row group of records, from the cache if it is there.
    fn record_block(&self, kind: Kind, partition: usize, group: usize) -> Result<Arc<Block>, Error> {
        let layers = kind.layers();
        let id = BlockId { kind, partition, group };
        let read = || {
            let block = self.block(kind, partition, group)?;
            let bytes = block.bytes();
            Ok((Cached::Records(Arc::new(block)), bytes))
        };
        match self.cached(id, read)? {
            Cached::Records(block) => Ok(block),
            _ => Err(self.misplaced(partition, layers[0])),
        }
    }

    /// A row group of records for a stream, which needs it once: from the cache if it is there, and not kept in it.
    pub(crate) fn passing_block(&self, kind: Kind, partition: usize, group: usize) -> Result<Arc<Block>, Error> {
        let id = BlockId { kind, partition, group };
        let held = self.cache.lock().unwrap_or_else(PoisonError::into_inner).get(id);
        match held {
            Some(Cached::Records(block)) => Ok(block),
            _ => Ok(Arc::new(self.block(kind, partition, group)?)),
        }
    }

    /// Reads a row group of the out-links or of the in-links.
    fn block(&self, kind: Kind, partition: usize, group: usize) -> Result<Block, Error> {
        let [links, times, changes] = kind.layers().map(|layer| self.file(partition, layer));
        Block::read([&links?, &times?, &changes?], group)
    }

    /// The records of a UID in all rows, the oldest row first.
    fn records_of(&self, kind: Kind, uid: Uid) -> Result<Vec<RecordRef>, Error> {
        self.records_in(kind, uid, |_| true)
    }

    /// The records of a UID in the relevant rows, the oldest row first.
    fn records_in(&self, kind: Kind, uid: Uid, is_relevant: impl Fn(&Row) -> bool) -> Result<Vec<RecordRef>, Error> {
        self.known(uid)?;
        let mut records = Vec::new();
        for partition in
            self.rows.iter().filter(|row| is_relevant(row)).filter_map(|row| self.partition_of_records(row, uid))
        {
            self.add_records(kind, partition, uid, &mut records)?;
        }
        Ok(records)
    }

    /// The records of a page in the rows with captures that may decide the answer for a window.
    fn pages_in(&self, uid: Uid, window: Window) -> Result<Vec<RecordRef>, Error> {
        self.records_in(Kind::Out, uid, |row| window.overlaps(row.times))
    }

    /// An error that cannot happen: the kind of a block follows from its id.
    fn misplaced(&self, partition: usize, layer: Layer) -> Error {
        let path = self.store.location().path(&self.entry(partition, layer).path);
        Error::Damaged { path, row: 0, damage: Damage::NotAligned }
    }

    /// Decodes and checks a record.
    fn decode<T>(
        &self,
        kind: Kind,
        (partition, block, row): &RecordRef,
        make: impl FnOnce(View<'_>) -> Result<T, Damage>,
    ) -> Result<T, Error> {
        let view = block.view(*row);
        make(view).or_else(|damage| {
            let file = self.footer(*partition, kind.layers()[0])?;
            let first_row = file.group_of(view.uid).map_or(0, |group| file.groups[group].first_row);
            Err(file.damaged(first_row + *row as u64, damage))
        })
    }

    fn page_of_record(&self, record: &RecordRef) -> Result<Page, Error> {
        self.decode(Kind::Out, record, |view| view.page())
    }

    /// The number of URLs that a page ever linked to, and the number of pages that ever linked to its URL.
    ///
    /// # Errors
    /// See [`Links::url`].
    pub fn degrees(&self, uid: Uid) -> Result<(usize, usize), Error> {
        let pages = self.records_of(Kind::Out, uid)?;
        let views: Vec<View<'_>> = pages.iter().map(|(_, block, row)| block.view(*row)).collect();
        // A capture that several rows have may have lost links.
        let are_apart = views.windows(2).all(|two| two[0].times.last() < two[1].times.first());
        let out = if are_apart { distinct_links(&views) } else { self.page(uid)?.map_or(0, |page| page.links.len()) };
        let records = self.records_of(Kind::In, uid)?;
        let into = if records.len() > 1 && self.removes {
            self.in_record(uid)?.map_or(0, |record| record.sources.len())
        } else {
            distinct_links(&records.iter().map(|(_, block, row)| block.view(*row)).collect::<Vec<_>>())
        };
        Ok((out, into))
    }

    fn evidence_block(&self, partition: usize, group: usize) -> Result<Arc<EvidenceBlock>, Error> {
        let read = || {
            let block = EvidenceBlock::read(&self.file(partition, Layer::Rv)?, group)?;
            let bytes = block.bytes();
            Ok((Cached::Evidence(Arc::new(block)), bytes))
        };
        match self.cached(BlockId { kind: Kind::Evidence, partition, group }, read)? {
            Cached::Evidence(block) => Ok(block),
            _ => Err(self.misplaced(partition, Layer::Rv)),
        }
    }

    /// Whether the captures of a page are independent of captures at these times: no capture of the page is at one of
    /// the times, and none is a revisit. True for a URL that was never captured. Reads neither links nor changes.
    ///
    /// # Errors
    /// See [`Links::url`].
    pub fn stands_apart(&self, uid: Uid, times: &[i64]) -> Result<bool, Error> {
        self.known(uid)?;
        for partition in self.rows.iter().filter_map(|row| self.partition_of_records(row, uid)) {
            let Some(group) = self.footer(partition, Layer::Ts)?.group_of(uid) else { continue };
            let read = || {
                let block = TimesBlock::read(&self.file(partition, Layer::Ts)?, group)?;
                let bytes = block.bytes();
                Ok((Cached::Times(Arc::new(block)), bytes))
            };
            let Cached::Times(block) = self.cached(BlockId { kind: Kind::Times, partition, group }, read)? else {
                return Err(self.misplaced(partition, Layer::Ts));
            };
            let Some(mut capture_times) = block.times(uid) else { continue };
            if capture_times.any(|time| times.binary_search(&time).is_ok())
                || self.evidence_block(partition, group)?.has_revisit(uid)
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The page and its evidence, or `None` if the URL was never captured. The page has plain links without forms.
    ///
    /// # Errors
    /// See [`Links::url`].
    pub fn page_with_evidence(&self, uid: Uid) -> Result<Option<(Page, Evidence)>, Error> {
        let plain = |(page, evidence): (Page, Evidence)| (form::plain(&page).into_owned(), evidence);
        Ok(self.formed_page(uid)?.map(plain))
    }

    /// Like [`Reader::page_with_evidence`], with the page formed ([`crate::record::form`]), for jobs that add captures
    /// to the page.
    ///
    /// # Errors
    /// See [`Links::url`].
    pub fn formed_page(&self, uid: Uid) -> Result<Option<(Page, Evidence)>, Error> {
        let mut pages = Vec::new();
        for (page, mut evidence) in self.pages_with_evidence(uid)? {
            let forms = std::mem::take(&mut evidence.forms);
            let restored = form::restore(page, &forms);
            pages.push((restored.ok_or(Error::BadRecord { uid, flaw: Flaw::Forms })?, evidence));
        }
        if pages.len() > 1 {
            let joined = join::pages_within(&pages.iter().map(|(page, _)| page).collect::<Vec<_>>(), usize::MAX);
            let evidence = join::evidence(&pages.iter().map(|(page, evidence)| (page, evidence)).collect::<Vec<_>>());
            pages = joined.map(|joined| (joined.page, evidence)).into_iter().collect();
        }
        let left = |(page, mut evidence)| Some((without_removed(page, &mut evidence)?, evidence));
        Ok(pages.pop().and_then(left))
    }

    /// The record of a page and its evidence in each row, the oldest row first. Newer rows do not change older records.
    ///
    /// # Errors
    /// See [`Links::url`].
    pub fn pages_with_evidence(&self, uid: Uid) -> Result<Vec<(Page, Evidence)>, Error> {
        let mut pages = Vec::new();
        for record @ (partition, block, row) in &self.records_of(Kind::Out, uid)? {
            let Some(group) = self.footer(*partition, Layer::Ol)?.group_of(uid) else { continue };
            let found = self.evidence_block(*partition, group)?;
            let file = self.footer(*partition, Layer::Rv)?;
            let damaged =
                |damage| file.damaged(file.groups.get(group).map_or(0, |group| group.first_row) + *row as u64, damage);
            let evidence = found.of(*row, uid, block.view(*row).times).map_err(damaged)?;
            pages.push((self.page_of_record(record)?, evidence));
        }
        Ok(pages)
    }

    /// The row group of the url layer in which a row may have a key: the last one whose first key is not above the key.
    pub(crate) fn url_group(&self, row: usize, url_key: &[u8]) -> Result<Option<(usize, usize)>, Error> {
        let with_urls = &self.rows[row].with_urls;
        let after = with_urls.partition_point(|&at| self.partitions[at].first_key.as_slice() <= url_key);
        let Some(&partition) = after.checked_sub(1).and_then(|at| with_urls.get(at)) else { return Ok(None) };
        // The first key of the first row group is the first key of the partition.
        let (mut group, mut end) = (0, self.footer(partition, Layer::Url)?.groups.len());
        while end - group > 1 {
            let middle = group + (end - group) / 2;
            if self.group_key(partition, middle)? <= url_key { group = middle } else { end = middle }
        }
        Ok(Some((partition, group)))
    }

    /// The first key of a row group of the url layer.
    pub(crate) fn group_key(&self, partition: usize, group: usize) -> Result<&[u8], Error> {
        let groups = self.footer(partition, Layer::Url)?.groups.len();
        let keys = self.partitions[partition].group_keys.get_or_init(|| vec![OnceLock::new(); groups]);
        if let Some(found) = keys[group].get() {
            return Ok(found);
        }
        let block = self.url_block(partition, group)?;
        let mut first = Vec::new();
        key(block.url(block.first_uid()).unwrap_or_default(), &mut first);
        Ok(keys[group].get_or_init(|| first))
    }
}

impl Links for Reader {
    fn epoch(&self) -> u64 {
        self.store.manifest().epoch
    }

    fn urls(&self) -> u64 {
        self.urls
    }

    fn uid(&self, url: &str) -> Result<Option<Uid>, Error> {
        let mut url_key = Vec::new();
        key(url, &mut url_key);
        for row in 0..self.rows.len() {
            let (uid, found) = self.first_at_least(row, &url_key)?;
            if found {
                return Ok(Some(uid));
            }
        }
        Ok(None)
    }

    fn url(&self, uid: Uid) -> Result<String, Error> {
        let partition = self.partition_of(uid)?;
        let group = self.footer(partition, Layer::Url)?.group_of(uid);
        let block = group.map(|group| self.url_block(partition, group)).transpose()?;
        let url = block.as_ref().and_then(|block| block.url(uid));
        url.map(str::to_owned).ok_or_else(|| self.misplaced(partition, Layer::Url))
    }

    fn page(&self, uid: Uid) -> Result<Option<Arc<Page>>, Error> {
        let records = self.records_of(Kind::Out, uid)?;
        let pages = records.iter().map(|record| self.page_of_record(record)).collect::<Result<_, _>>()?;
        Ok(join::page_of_rows(pages).map(Arc::new))
    }

    fn in_record(&self, uid: Uid) -> Result<Option<Arc<InLinks>>, Error> {
        let records = self.records_of(Kind::In, uid)?;
        let decode = |record| self.decode(Kind::In, record, |view| view.in_links());
        let mut decoded = records.iter().map(decode).collect::<Result<_, _>>()?;
        let joined = match join::in_links_of_rows(&mut decoded) {
            Some(joined) if self.removes => {
                still_linking(&joined, |source| self.has_link(source, uid, Window::ALWAYS))?
            }
            joined => joined,
        };
        Ok(joined.map(Arc::new))
    }

    fn in_range(&self) -> RangeLength {
        self.store.manifest().in_range
    }

    fn has_unknown(&self) -> bool {
        self.store.manifest().counts.has_unknown()
    }

    /// The keys with a prefix are neighbours in each row.
    fn with_prefix(&self, prefix: &[u8]) -> Result<Vec<Range<Uid>>, Error> {
        let above = key_after(prefix);
        let mut found = Vec::new();
        for row in 0..self.rows.len() {
            let (first, _) = self.first_at_least(row, prefix)?;
            let end = above
                .as_ref()
                .map_or(Ok(self.rows[row].end_uid), |above| self.first_at_least(row, above).map(|(uid, _)| uid))?;
            if first < end {
                found.push(first..end);
            }
        }
        Ok(found)
    }

    fn spellings(&self, page: &Spelled) -> Result<Vec<Uid>, Error> {
        self.spellings_in_rows(page)
    }

    fn captures_into(&self, uid: Uid, captures: &mut Vec<CaptureTime>) -> Result<(), Error> {
        captures.clear();
        let records = self.records_of(Kind::Out, uid)?;
        records.iter().for_each(|(_, block, row)| captures.extend(block.view(*row).captures().iter()));
        if records.len() > 1 || self.removes {
            precedence::merge(captures);
        }
        Ok(())
    }

    fn uids(
        &self,
        uids: Range<Uid>,
        (from, to): (i64, i64),
        visit: &mut dyn FnMut(Uid) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        for uid in Uid::each(uids) {
            let records = self.pages_in(uid, Window::Seen { from, to })?;
            let is_captured = |(_, block, row): &RecordRef| {
                let times = block.view(*row).times;
                times.get(times.partition_point(|&time| time < from)).is_some_and(|&time| time <= to)
            };
            let counts =
                |captures: Vec<CaptureTime>| captures.iter().any(|capture| (from..=to).contains(&capture.time));
            if records.iter().any(is_captured)
                && (!self.removes || counts(self.captures(uid)?))
                && visit(uid).is_break()
            {
                break;
            }
        }
        Ok(())
    }

    fn out_links(&self, uid: Uid, window: Window) -> Result<Vec<Uid>, Error> {
        let (mut of_row, mut links) = (Vec::new(), Vec::new());
        self.page_in_rows(uid, window, |page| page.links_into(window, &mut (), (&mut of_row, &mut links)))?;
        Ok(links)
    }

    /// Takes the sources from the record of each row; joins no record. The records know time ranges, so the captures of
    /// each source are checked for an exact answer.
    fn in_links(&self, uid: Uid, window: Window, precision: Precision) -> Result<Vec<Uid>, Error> {
        let exact = precision == Precision::Exact;
        let mut sources = Vec::new();
        for record in self.records_in(Kind::In, uid, |row| !exact || window.overlaps(row.times))? {
            let record = self.decode(Kind::In, &record, |view| view.in_links())?;
            sources_in(&record, self.in_range(), window, &mut sources);
        }
        rising(&mut sources);
        if let Some(window) = if exact { Some(window) } else { self.overlaps.checked(window, false) } {
            keep_linking(&mut sources, |source| self.has_link(source, uid, window))?;
        }
        Ok(sources)
    }

    fn has_link(&self, uid: Uid, link: Uid, window: Window) -> Result<bool, Error> {
        self.page_in_rows(uid, window, |page| page.has_link(link, window, &mut ()))
    }
}

/// The number of different links of some records.
fn distinct_links(records: &[View<'_>]) -> usize {
    match records {
        [] => 0,
        [record] => record.links.len(),
        records => in_order(records.iter().flat_map(|record| record.links).copied().collect()).len(),
    }
}

/// Sorts the UIDs that several rows gave one after the other, and removes duplicates.
fn rising(values: &mut Vec<Uid>) {
    if !values.is_sorted_by(|one, other| one < other) {
        values.sort_unstable();
        values.dedup();
    }
}
