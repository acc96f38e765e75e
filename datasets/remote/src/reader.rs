//! Reads an object in order, with several requests in flight.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use tokio::task::JoinHandle;

use crate::{Failure, Object, runtime};

/// The bytes of a request.
const PART_BYTES: u64 = 2 << 20;
/// The number of requests of a reader in flight.
const PARTS_AT_ONCE: usize = 4;
/// The number of times that a whole file is asked for again after its connection broke without progress.
const TRIES_MAX: usize = 5;

type Part = JoinHandle<io::Result<Bytes>>;

/// A range of an object, read in order; see [`Object::reader`].
///
/// From a server without ranges, the whole object comes through one connection. If the connection breaks, the object
/// is asked for again, and the bytes that were read before are passed over.
pub struct Reader {
    object: Arc<Object>,
    source: Source,
    current: Bytes,
}

enum Source {
    Ranges {
        /// The bytes that were not asked for yet.
        rest: Range<u64>,
        coming: VecDeque<Part>,
    },
    Whole {
        stream: Option<BoxStream<'static, Result<Bytes, object_store::Error>>>,
        /// The number of bytes that were read.
        read: u64,
        tries: usize,
    },
}

impl Reader {
    pub(crate) fn new(object: Arc<Object>, range: Range<u64>) -> Self {
        let source = if object.has_ranges() {
            Source::Ranges { rest: range, coming: VecDeque::new() }
        } else {
            Source::Whole { stream: None, read: 0, tries: 0 }
        };
        Reader { object, source, current: Bytes::new() }
    }

    /// The next bytes; none at the end.
    fn next(&mut self) -> io::Result<Bytes> {
        match &mut self.source {
            Source::Ranges { rest, coming } => next_part(&self.object, rest, coming),
            Source::Whole { stream, read, tries } => {
                if *read == self.object.bytes() {
                    return Ok(Bytes::new());
                }
                runtime()?.block_on(next_of_whole(&self.object, stream, read, tries))
            }
        }
    }
}

/// Asks for the next parts, and waits for the first of them.
fn next_part(object: &Arc<Object>, rest: &mut Range<u64>, coming: &mut VecDeque<Part>) -> io::Result<Bytes> {
    while coming.len() < PARTS_AT_ONCE && !rest.is_empty() {
        let part = rest.start..rest.end.min(rest.start + PART_BYTES);
        rest.start = part.end;
        let object = Arc::clone(object);
        coming.push_back(runtime()?.spawn(async move { object.fetch(part).await }));
    }
    let Some(part) = coming.pop_front() else { return Ok(Bytes::new()) };
    let ended = runtime()?.block_on(part);
    ended.unwrap_or_else(|ended| Err(Failure::error(ErrorKind::Other, format!("a request ended early: {ended}"))))
}

/// Reads on in the whole object, through a new connection if the last one broke.
async fn next_of_whole(
    object: &Object,
    stream: &mut Option<BoxStream<'static, Result<Bytes, object_store::Error>>>,
    read: &mut u64,
    tries: &mut usize,
) -> io::Result<Bytes> {
    let mut passed = *read;
    loop {
        let open = match stream {
            Some(open) => open,
            None => {
                passed = 0;
                stream.insert(object.stream().await?)
            }
        };
        match open.next().await {
            Some(Ok(part)) if passed + (part.len() as u64) <= *read => passed += part.len() as u64,
            Some(Ok(mut part)) => {
                part.advance(usize::try_from(*read - passed).unwrap_or(usize::MAX));
                *read += part.len() as u64;
                *tries = 0;
                return Ok(part);
            }
            broken => {
                *stream = None;
                *tries += 1;
                if *tries == TRIES_MAX {
                    let why = broken.and_then(Result::err).map_or("it ended".to_owned(), |error| error.to_string());
                    let text = format!("the connection broke after {read} of {} bytes: {why}", object.bytes());
                    return Err(object.failure(ErrorKind::UnexpectedEof, &text));
                }
            }
        }
    }
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.current.is_empty() && !buffer.is_empty() {
            self.current = self.next()?;
        }
        let count = self.current.len().min(buffer.len());
        self.current.copy_to_slice(&mut buffer[..count]);
        Ok(count)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if let Source::Ranges { coming, .. } = &mut self.source {
            coming.drain(..).for_each(|part| part.abort());
        }
    }
}
