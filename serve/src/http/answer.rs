//! Collects the values of one answer, in order of UIDs, until the limit or the size of an answer is reached.
//!
//! Lists of values come in by increasing UID. The values that fit become items with their URLs. If not all values fit,
//! the answer keeps the position for the next page. Memory: the bytes of text that a server allows in an answer, and
//! one batch of values.

use std::mem::size_of;
use webstrata_layers::Uid;

use tonic::Status;
use webstrata_layers::Batch;

use super::question::params::Params;
use super::question::resume::{PagePosition, Start};
use crate::clerk::{Pinned, Texts};
use crate::protocol::status::bad;
use crate::shared::Shared;

pub(in crate::http) mod text;
pub(in crate::http) mod walk;

/// Values whose URLs are looked up in one batch.
const BATCH: usize = 4096;
/// Bytes of memory for each counted byte: the values, and their text in JSON.
const SHOWN: usize = 4;
/// Bytes counted for a value in addition to its texts.
const BESIDE: usize = 32;

/// The values of one URL.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::http) struct Item<V> {
    pub(in crate::http) url: String,
    pub(in crate::http) uid: Uid,
    pub(in crate::http) values: Vec<V>,
}

/// The items so far, and how much still fits.
pub(in crate::http) struct Answer<V> {
    pub(in crate::http) items: Vec<Item<V>>,
    /// The position of the next page; `None` as long as more values fit.
    pub(in crate::http) next_page: Option<PagePosition>,
    begin: PagePosition,
    values_left: usize,
    bytes_left: usize,
    bytes_max: usize,
}

/// The values of one list that go into the answer.
struct Piece {
    list: usize,
    first: usize,
    end: usize,
}

/// A value that an answer can show.
pub(in crate::http) trait Value: Copy {
    /// The form in the answer.
    type Shown;

    /// The UID whose URL the answer shows, if any.
    fn uid(self) -> Option<Uid>;

    /// Converts the value, given the URL of its UID.
    fn show(self, url: &str) -> Self::Shown;
}

impl<V> Answer<V> {
    /// An empty answer to a question.
    ///
    /// # Errors
    /// BAD_REQUEST if `limit` is invalid.
    pub(in crate::http) fn of(shared: &Shared, params: &Params, start: &Start) -> Result<Self, Status> {
        let limit = params.limit()?;
        let bytes = shared.bounds.values.saturating_mul(size_of::<u64>());
        Ok(Self::sized(start.position.unwrap_or_default(), limit, bytes))
    }

    /// An empty answer from a position on, of at most `limit` values and about `bytes` bytes.
    pub(in crate::http) fn sized(begin: PagePosition, limit: usize, bytes: usize) -> Self {
        Self { items: Vec::new(), next_page: None, begin, values_left: limit, bytes_left: bytes, bytes_max: bytes }
    }

    /// Whether no more values fit.
    pub(in crate::http) fn is_full(&self) -> bool {
        self.next_page.is_some()
    }

    /// Whether the answer is still below its limit.
    pub(in crate::http) fn has_room(&self) -> bool {
        self.values_left > 0
    }

    /// The number of next values that fit, given the lengths of their texts. The first one always fits if any bytes are
    /// left.
    pub(in crate::http) fn fitting(&self, texts: impl Iterator<Item = usize>) -> usize {
        let mut bytes = 0;
        let fits = |length: &usize| {
            let has_room = bytes < self.bytes_left;
            bytes += BESIDE + length;
            has_room
        };
        texts.take(self.values_left).take_while(fits).count()
    }

    /// The number of values to ask for: one above the limit, to learn whether there are more.
    pub(in crate::http) fn values_max(&self) -> usize {
        self.values_left.saturating_add(1)
    }

    /// Ends the answer before a UID, unless the answer has already ended.
    pub(in crate::http) fn stop_at(&mut self, uid: Uid) {
        self.next_page.get_or_insert(PagePosition { uid, sent: 0 });
    }

    /// Adds lists of increasing UIDs; later calls continue with higher UIDs. Empty lists add no item.
    pub(in crate::http) async fn add<T: Value<Shown = V>>(
        &mut self,
        pinned: &Pinned,
        uids: &[Uid],
        lists: &Batch<T>,
    ) -> Result<(), Status> {
        let pieces = self.pieces(uids, lists)?;
        let mut rest = pieces.as_slice();
        while let Some(first) = rest.first() {
            if self.bytes_left == 0 {
                // The size ends the answer before the limit does.
                self.next_page = Some(PagePosition { uid: uids[first.list], sent: first.first });
                return Ok(());
            }
            let mut size = 0;
            let batch = rest.iter().take_while(|piece| {
                size += piece.end - piece.first;
                size <= BATCH
            });
            // No piece is longer than a batch.
            let (batch, others) = rest.split_at(batch.count().max(1));
            rest = others;
            let values = |piece: &Piece| lists.get(piece.list)[piece.first..piece.end].iter();
            let value_uids = batch.iter().flat_map(|piece| values(piece).filter_map(|value| value.uid()));
            let texts =
                Texts::of(pinned, value_uids.chain(batch.iter().map(|piece| uids[piece.list])).collect()).await?;
            for piece in batch {
                self.put(uids[piece.list], values(piece), &texts);
            }
            pinned.charge().cover(SHOWN * (self.bytes_max - self.bytes_left)).await?;
        }
        Ok(())
    }

    /// The values of the lists that fit below the limit, in pieces of at most one batch.
    fn pieces<T>(&mut self, uids: &[Uid], lists: &Batch<T>) -> Result<Vec<Piece>, Status> {
        let mut pieces = Vec::new();
        for (list, (&uid, values)) in uids.iter().zip(lists.iter()).enumerate() {
            if self.is_full() {
                break;
            }
            let first = if uid == self.begin.uid { self.begin.sent } else { 0 };
            if first > values.len() {
                return Err(bad("resume_key: not copied from an earlier answer"));
            }
            let end = values.len().min(first.saturating_add(self.values_left));
            self.values_left -= end - first;
            if end < values.len() {
                self.next_page = Some(PagePosition { uid, sent: end });
            }
            pieces.extend((first..end).step_by(BATCH).map(|first| Piece { list, first, end: end.min(first + BATCH) }));
        }
        Ok(pieces)
    }

    fn put<'a, T: Value<Shown = V> + 'a>(&mut self, uid: Uid, values: impl Iterator<Item = &'a T>, texts: &Texts) {
        let mut bytes = 0;
        if self.items.last().is_none_or(|last| last.uid != uid) {
            let url = texts.get(uid).to_owned();
            bytes += BESIDE + url.len();
            self.items.push(Item { url, uid, values: Vec::new() });
        }
        let Some(item) = self.items.last_mut() else { return };
        for value in values {
            let url = value.uid().map_or("", |uid| texts.get(uid));
            bytes += BESIDE + url.len();
            item.values.push(value.show(url));
        }
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
    }
}
