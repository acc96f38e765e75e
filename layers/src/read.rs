//! Answers from the layers on disk: [`Reader`].
//!
//! A file is read whole once, against its checksum, when a question first needs it; so damage is an error, never an
//! answer. Reads row groups on demand and keeps those used last, decoded, up to a bound of memory; files fetched from
//! S3 count and go as they do, and are fetched again when needed. A UID leads to its partition through the manifest and
//! to its row group through the file's statistics; a URL by its key, through first keys. Threads may share a reader:
//! the cache is locked for look-ups, not while decoding (two threads may decode the same block; one is kept).

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::blocks::{Block, Cache, UrlBlock, View};
use crate::body::Body;
use crate::error::{Damage, Error};
use crate::key::key;
use crate::manifest::{FileEntry, PartitionEntry};
use crate::page::{InLinks, Page};
use crate::parquet::{Footer, LayerFile};
use crate::presence::{self, Change};
use crate::query::{Links, captures_in};
use crate::schema::Layer;
use crate::store::Store;
use crate::time::{RangeLength, Window};

/// Answers questions about one epoch of a store from its files.
pub struct Reader {
    store: Store,
    /// Those that have URLs, in order.
    partitions: Vec<Partition>,
    urls: u64,
    cache: Mutex<Cache<BlockId, Cached>>,
}

struct Partition {
    entry: PartitionEntry,
    first_key: Vec<u8>,
    /// Of the files that were needed so far.
    footers: [OnceLock<Arc<Footer>>; 7],
    /// First keys of the row groups of the url layer, as far as known.
    group_keys: OnceLock<Vec<OnceLock<Vec<u8>>>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct BlockId {
    kind: Kind,
    partition: usize,
    group: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Urls,
    Out,
    In,
    /// A file that was fetched; it has no groups here.
    File(Layer),
}

impl Kind {
    const OUT: [Layer; 3] = [Layer::Ol, Layer::Ts, Layer::Bv];
    const IN: [Layer; 3] = [Layer::Il, Layer::Tr, Layer::Ibv];
}

#[derive(Clone)]
enum Cached {
    Urls(Arc<UrlBlock>),
    Records(Arc<Block>),
    File(Body),
}

impl Reader {
    /// A reader that keeps up to `memory_max` bytes of decoded blocks (at least the one in use).
    ///
    /// # Errors
    /// Stores of several rows, which this version cannot read as one.
    pub fn new(store: Store, memory_max: usize) -> Result<Self, Error> {
        let rows = &store.manifest().rows;
        if rows.len() > 1 {
            return Err(Error::SeveralRows { path: store.location().path(""), rows: rows.len() });
        }
        let partition = |entry: &PartitionEntry| Partition {
            entry: entry.clone(),
            first_key: entry.first_key_bytes().unwrap_or_default(),
            footers: Default::default(),
            group_keys: OnceLock::new(),
        };
        let entries = rows.iter().flat_map(|row| &row.partitions).filter(|entry| entry.urls > 0);
        let partitions = entries.map(partition).collect();
        let urls = store.manifest().counts.urls;
        Ok(Self { store, partitions, urls, cache: Mutex::new(Cache::new(memory_max)) })
    }

    /// The store that it reads.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The partition of a UID.
    fn partition_of(&self, uid: u64) -> Result<usize, Error> {
        let at = self.partitions.partition_point(|partition| partition.entry.first_uid + partition.entry.urls <= uid);
        let unknown = || Error::UnknownUid { uid, epoch: self.epoch(), urls: self.urls };
        if at < self.partitions.len() { Ok(at) } else { Err(unknown()) }
    }

    fn entry(&self, partition: usize, layer: Layer) -> &FileEntry {
        // The manifest was checked: each partition has each layer, in this order.
        &self.partitions[partition].entry.files[layer as usize]
    }

    /// The bytes of a file. Checksum first: a damaged file must not give a wrong answer, and the Parquet library panics
    /// on some. A file of this machine is verified once, one of elsewhere whenever it is fetched.
    fn body(&self, partition: usize, layer: Layer) -> Result<Body, Error> {
        let entry = self.entry(partition, layer);
        if self.store.location().directory().is_some() {
            let known = self.partitions[partition].footers[layer as usize].get().is_some();
            return if known { self.store.location().place().body(&entry.path) } else { self.store.body(entry) };
        }
        let id = BlockId { kind: Kind::File(layer), partition, group: 0 };
        let read = || {
            let body = self.store.body(entry)?;
            let held = body.held();
            Ok((Cached::File(body), held))
        };
        match self.cached(id, read)? {
            Cached::File(body) => Ok(body),
            Cached::Urls(_) | Cached::Records(_) => Err(self.misplaced(partition, layer)),
        }
    }

    fn footer(&self, partition: usize, layer: Layer) -> Result<&Arc<Footer>, Error> {
        let place = &self.partitions[partition].footers[layer as usize];
        if let Some(footer) = place.get() {
            return Ok(footer);
        }
        let entry = self.entry(partition, layer);
        let footer = Footer::read(self.store.location().path(&entry.path), &self.body(partition, layer)?, entry)?;
        Ok(place.get_or_init(|| Arc::new(footer)))
    }

    fn file(&self, partition: usize, layer: Layer) -> Result<LayerFile, Error> {
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

    fn url_block(&self, partition: usize, group: usize) -> Result<Arc<UrlBlock>, Error> {
        let id = BlockId { kind: Kind::Urls, partition, group };
        let read = || {
            let block = UrlBlock::read(&self.file(partition, Layer::Url)?, group, false)?;
            let bytes = block.bytes();
            Ok((Cached::Urls(Arc::new(block)), bytes))
        };
        match self.cached(id, read)? {
            Cached::Urls(block) => Ok(block),
            Cached::Records(_) | Cached::File(_) => Err(self.misplaced(partition, Layer::Url)),
        }
    }

    /// The block and the row of a UID's record; `None` when it has no record.
    fn record(&self, kind: Kind, uid: u64) -> Result<Option<(Arc<Block>, usize)>, Error> {
        let partition = self.partition_of(uid)?;
        let layers = if kind == Kind::Out { Kind::OUT } else { Kind::IN };
        let Some(group) = self.footer(partition, layers[0])?.group_of(uid) else { return Ok(None) };
        let id = BlockId { kind, partition, group };
        let read = || {
            let [links, times, changes] = layers.map(|layer| self.file(partition, layer));
            let block = Block::read([&links?, &times?, &changes?], group)?;
            let bytes = block.bytes();
            Ok((Cached::Records(Arc::new(block)), bytes))
        };
        match self.cached(id, read)? {
            Cached::Records(block) => Ok(block.row_of(uid).map(|row| (block, row))),
            Cached::Urls(_) | Cached::File(_) => Err(self.misplaced(partition, layers[0])),
        }
    }

    /// Cannot happen: the kind of a block follows from its id.
    fn misplaced(&self, partition: usize, layer: Layer) -> Error {
        let path = self.store.location().path(&self.entry(partition, layer).path);
        Error::Damaged { path, row: 0, damage: Damage::NotAligned }
    }

    /// Decodes and checks a record.
    fn decode<T>(
        &self,
        kind: Kind,
        view: View<'_>,
        make: impl FnOnce(Vec<Change>) -> Result<T, Damage>,
    ) -> Result<T, Error> {
        let mut changes = Vec::new();
        let decoded = presence::decode(view.changes, view.links.len(), view.times.len(), &mut changes);
        decoded.map_err(Damage::from).and_then(|()| make(changes)).or_else(|damage| {
            let layers = if kind == Kind::Out { Kind::OUT } else { Kind::IN };
            let file = self.footer(self.partition_of(view.uid)?, layers[0])?;
            let first_row = file.group_of(view.uid).map_or(0, |group| file.groups[group].first_row);
            let row = self.record(kind, view.uid)?.map_or(0, |(_, row)| row);
            Err(file.damaged(first_row + row as u64, damage))
        })
    }

    /// The first key of a row group of the url layer.
    fn group_key(&self, partition: usize, group: usize) -> Result<&[u8], Error> {
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

    fn uid(&self, url: &str) -> Result<Option<u64>, Error> {
        let (mut wanted, mut probe) = (Vec::new(), Vec::new());
        key(url, &mut wanted);
        let after = self.partitions.partition_point(|partition| partition.first_key <= wanted);
        let Some(partition) = after.checked_sub(1) else { return Ok(None) };
        // The last row group whose first key is not above the wanted one; the first one's is the partition's.
        let (mut group, mut end) = (0, self.footer(partition, Layer::Url)?.groups.len());
        while end - group > 1 {
            let middle = group + (end - group) / 2;
            if self.group_key(partition, middle)? <= wanted.as_slice() { group = middle } else { end = middle }
        }
        let block = self.url_block(partition, group)?;
        let (mut low, mut high) = (block.first_uid(), block.first_uid() + block.len() as u64);
        while low < high {
            let middle = low + (high - low) / 2;
            key(block.url(middle).unwrap_or_default(), &mut probe);
            match probe.cmp(&wanted) {
                std::cmp::Ordering::Equal => return Ok(Some(middle)),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Ok(None)
    }

    fn url(&self, uid: u64) -> Result<String, Error> {
        let partition = self.partition_of(uid)?;
        let group = self.footer(partition, Layer::Url)?.group_of(uid);
        let block = group.map(|group| self.url_block(partition, group)).transpose()?;
        let url = block.as_ref().and_then(|block| block.url(uid));
        url.map(str::to_owned).ok_or_else(|| self.misplaced(partition, Layer::Url))
    }

    fn page(&self, uid: u64) -> Result<Option<Arc<Page>>, Error> {
        let Some((block, row)) = self.record(Kind::Out, uid)? else { return Ok(None) };
        let view = block.view(row);
        let page = self.decode(Kind::Out, view, |changes| view.page(changes))?;
        Ok(Some(Arc::new(page)))
    }

    fn in_record(&self, uid: u64) -> Result<Option<Arc<InLinks>>, Error> {
        let Some((block, row)) = self.record(Kind::In, uid)? else { return Ok(None) };
        let view = block.view(row);
        let record = self.decode(Kind::In, view, |changes| view.in_links(changes))?;
        Ok(Some(Arc::new(record)))
    }

    fn in_range(&self) -> RangeLength {
        self.store.manifest().in_range
    }

    /// As the provided method, but on the block: no page is built.
    fn has_link(&self, uid: u64, link: u64, window: Window) -> Result<bool, Error> {
        let Some((block, row)) = self.record(Kind::Out, uid)? else { return Ok(false) };
        let view = block.view(row);
        let Ok(at) = view.links.binary_search(&link) else { return Ok(false) };
        let Some((first, last)) = captures_in(view.times, view.unknown, window) else { return Ok(false) };
        let (mut before, mut inside) = (0u32, false);
        for change in presence::decoded(view.changes, view.links.len(), view.times.len()) {
            let Ok(change) = change else {
                return self.page(uid).map(|_| false);
            };
            if change.link as usize >= at {
                if change.link as usize > at || change.capture > last {
                    break;
                }
                before += u32::from(change.capture <= first);
                inside |= change.capture > first;
            }
        }
        Ok(before % 2 == 0 || inside)
    }
}
