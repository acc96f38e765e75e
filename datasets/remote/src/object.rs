//! A file on another machine.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Bytes, BytesMut};
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};
use object_store::path::Path as Key;
use object_store::{Error as StoreError, GetOptions, GetRange, GetResult, ObjectMeta, ObjectStore};

use crate::patience::{Unanswered, patiently};
use crate::{Address, Failure, Reader, runtime, servers};

/// The bytes of the first request, which show the format. There may be hundreds of thousands of files.
const HEAD_BYTES: u64 = 1 << 10;
/// The bytes that one request at a single place reads.
const BLOCK_BYTES: u64 = 64 << 10;
/// The number of such blocks that are kept: the places are the end, the directory, and some members.
const BLOCKS_KEPT: usize = 16;
/// The number of objects that are opened at the same time.
const OPENED_AT_ONCE: usize = 32;
/// A file on another machine that was there when it was opened.
#[derive(Debug)]
pub struct Object {
    address: Address,
    server: Arc<dyn ObjectStore>,
    key: Key,
    bytes: u64,
    /// A text that changes with the contents; empty if the server does not tell.
    version: String,
    /// Whether the server answers requests for ranges.
    has_ranges: bool,
    head: Bytes,
    /// The blocks that were read last at single places, by number, the latest last.
    blocks: Mutex<VecDeque<(u64, Bytes)>>,
}

impl Object {
    /// Asks the server for the first bytes of a file. Cost: one request.
    ///
    /// # Errors
    /// The file is missing, or the server does not give it, after many attempts.
    pub fn open(address: &Address) -> io::Result<Self> {
        runtime()?.block_on(Self::asked(address))
    }

    /// An object with the properties that an earlier [`Object::open`] found. This call sends no request.
    ///
    /// # Errors
    /// The environment does not configure a server.
    pub fn known(address: &Address, bytes: u64, version: &str, has_ranges: bool) -> io::Result<Self> {
        let (server, key) = servers::server_of(address)?;
        let (address, version) = (address.clone(), version.to_owned());
        Ok(Self { address, server, key, bytes, version, has_ranges, head: Bytes::new(), blocks: Mutex::default() })
    }

    async fn asked(address: &Address) -> io::Result<Self> {
        let mut object = Self::known(address, 0, "", true)?;
        // An empty object has no range, and some servers know no ranges.
        if let Some((head, meta)) = patiently(|| object.first(0..HEAD_BYTES)).await? {
            (object.head, object.bytes, object.version) = (head, meta.size, version(&meta));
        } else {
            let whole = patiently(|| object.get(None)).await?;
            (object.bytes, object.version) = (whole.meta.size, version(&whole.meta));
            object.has_ranges = object.bytes == 0;
        }
        Ok(object)
    }

    /// The address.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The number of bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// A text that changes with the contents, or else with the time of the last change; empty if the server tells
    /// neither.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Whether the server answers requests for ranges. If not, only a [`reader`](Self::reader) of all bytes works.
    pub fn has_ranges(&self) -> bool {
        self.has_ranges
    }

    /// Reads bytes at an offset; fewer than the buffer has room for only at the end. Neighbouring places of few bytes
    /// share a request.
    ///
    /// # Errors
    /// The server does not give the bytes, after many attempts.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let end = self.bytes.min(offset.saturating_add(buffer.len() as u64));
        if end <= self.head.len() as u64 && offset < end {
            let (from, until) = (usize::try_from(offset).unwrap_or(0), usize::try_from(end).unwrap_or(0));
            fill(buffer, 0, &self.head[from..until]);
            return Ok(until - from);
        }
        let mut at = offset;
        while at < end {
            let number = at / BLOCK_BYTES;
            let start = number * BLOCK_BYTES;
            let block = if end - at >= BLOCK_BYTES {
                let got = runtime()?.block_on(self.fetch(at..end))?;
                fill(buffer, at - offset, &got);
                break;
            } else {
                self.block(number)?
            };
            let from = usize::try_from(at - start).unwrap_or(usize::MAX);
            let until = block.len().min(usize::try_from(end - start).unwrap_or(usize::MAX));
            fill(buffer, at - offset, &block[from..until]);
            at = start + until as u64;
        }
        Ok(usize::try_from(end.saturating_sub(offset)).unwrap_or(usize::MAX))
    }

    /// Reads a range in order, with several requests in flight.
    ///
    /// # Errors
    /// The server has no ranges, and the range is not the whole object.
    pub fn reader(self: &Arc<Self>, range: Range<u64>) -> io::Result<Reader> {
        if !self.has_ranges && range != (0..self.bytes) {
            return Err(self.failure(ErrorKind::Unsupported, "its server answers no requests for ranges of bytes"));
        }
        Ok(Reader::new(Arc::clone(self), range))
    }

    fn block(&self, number: u64) -> io::Result<Bytes> {
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = blocks.iter().position(|(known, _)| *known == number)
            && let Some(block) = blocks.remove(at)
        {
            blocks.push_back(block.clone());
            return Ok(block.1);
        }
        let start = number * BLOCK_BYTES;
        let block = runtime()?.block_on(self.fetch(start..self.bytes.min(start + BLOCK_BYTES)))?;
        if blocks.len() == BLOCKS_KEPT {
            blocks.pop_front();
        }
        blocks.push_back((number, block.clone()));
        Ok(block)
    }

    /// All bytes of a range inside the object.
    pub(crate) async fn fetch(&self, range: Range<u64>) -> io::Result<Bytes> {
        patiently(|| self.get_part(range.clone())).await
    }

    /// The bytes of the whole object, in order. The stream ends with an error if the connection breaks.
    pub(crate) async fn stream(&self) -> io::Result<BoxStream<'static, Result<Bytes, StoreError>>> {
        Ok(patiently(|| self.get_same(None)).await?.into_stream())
    }

    async fn get_part(&self, range: Range<u64>) -> Result<Bytes, Unanswered> {
        let bytes = range.end - range.start;
        let got = self.get_same(Some(range)).await?;
        self.collect(got, bytes).await
    }

    /// As [`get`](Self::get), of the object that was opened.
    async fn get_same(&self, range: Option<Range<u64>>) -> Result<GetResult, Unanswered> {
        let got = self.get(range).await?;
        self.compare(&got.meta).map(|()| got)
    }

    /// The first bytes and the properties of the object; `None` if the server gives no ranges of it.
    async fn first(&self, range: Range<u64>) -> Result<Option<(Bytes, ObjectMeta)>, Unanswered> {
        let options = GetOptions::new().with_range(Some(GetRange::Bounded(range.clone())));
        let got = match self.server.get_opts(&self.key, options).await {
            Ok(got) => got,
            Err(error) if has_no_range(&error) => return Ok(None),
            Err(error) => return Err(Unanswered::of(&error, &self.address)),
        };
        let (meta, bytes) = (got.meta.clone(), got.range.end - got.range.start);
        Ok(Some((self.collect(got, bytes).await?, meta)))
    }

    async fn get(&self, range: Option<Range<u64>>) -> Result<GetResult, Unanswered> {
        let options = GetOptions::new().with_range(range.map(GetRange::Bounded));
        self.server.get_opts(&self.key, options).await.map_err(|error| Unanswered::of(&error, &self.address))
    }

    /// The body of an answer, which must have this number of bytes.
    async fn collect(&self, got: GetResult, bytes: u64) -> Result<Bytes, Unanswered> {
        let mut body = BytesMut::with_capacity(usize::try_from(bytes).unwrap_or(0));
        let mut parts = got.into_stream();
        while let Some(part) = parts.try_next().await.map_err(|error| Unanswered::of(&error, &self.address))? {
            body.extend_from_slice(&part);
        }
        if body.len() as u64 == bytes {
            return Ok(body.freeze());
        }
        let text = format!("the server sent {} bytes instead of {bytes}", body.len());
        Err(Unanswered::ForNow(self.failure(ErrorKind::UnexpectedEof, &text)))
    }

    /// Compares the properties of an answer with the properties of the opened object.
    fn compare(&self, meta: &ObjectMeta) -> Result<(), Unanswered> {
        if meta.size == self.bytes && (self.version.is_empty() || version(meta) == self.version) {
            return Ok(());
        }
        let text = "the file changed while it was read; begin again";
        Err(Unanswered::ForGood(self.failure(ErrorKind::InvalidData, text)))
    }

    pub(crate) fn failure(&self, kind: ErrorKind, text: &str) -> io::Error {
        Failure::error(kind, self.address.without_secrets(text))
    }
}

/// Opens objects, many at the same time, in the given order.
///
/// # Errors
/// The operating system refuses a thread.
pub fn open_all(addresses: &[Address]) -> io::Result<Vec<io::Result<Object>>> {
    let opened = stream::iter(addresses).map(Object::asked).buffered(OPENED_AT_ONCE);
    Ok(runtime()?.block_on(opened.collect()))
}

fn version(meta: &ObjectMeta) -> String {
    let changed = (meta.last_modified.timestamp() > 0).then(|| meta.last_modified.to_rfc3339());
    meta.e_tag.clone().or(changed).unwrap_or_default()
}

/// Copies bytes into a buffer.
fn fill(buffer: &mut [u8], at: u64, bytes: &[u8]) {
    let at = usize::try_from(at).unwrap_or(usize::MAX);
    buffer[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Whether the server has refused a range: it gives whole files only, or the object is empty (status 416).
fn has_no_range(error: &StoreError) -> bool {
    matches!(error, StoreError::NotSupported { .. }) || error.to_string().contains("status code: 416")
}
