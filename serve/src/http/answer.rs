//! An answer that grows: values in order of UIDs, until it has as many as were wanted or has become long enough.
//!
//! Lists of values come in, of rising UIDs; what fits goes on as items with their URLs, and where it does not all fit
//! the place is kept where the next answer goes on. Memory: as many bytes of text as a server lets an answer have, and
//! one run of values more; nothing is begun that cannot be carried on.

use std::mem::size_of;

use tonic::Status;
use webstrata_layers::Batch;

use super::params::Params;
use super::resume::{PagePosition, Start};
use crate::clerk::{Pinned, Texts};
use crate::protocol::status::bad;
use crate::server::Shared;

/// Values in an answer where nothing else is said, and the most that may be wanted.
const LIMIT: u64 = 10_000;
const LIMIT_MAX: u64 = 1_000_000;
/// Values whose URLs are asked for at once.
const RUN: usize = 4096;
/// What a value weighs beside its texts.
const BESIDE: usize = 32;

/// The values of one URL.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Item<V> {
    pub(super) url: String,
    pub(super) uid: u64,
    pub(super) values: Vec<V>,
}

/// Items so far, and what is left to give.
pub(super) struct Answer<V> {
    pub(super) items: Vec<Item<V>>,
    /// Where the next answer goes on; nothing as long as there is room.
    pub(super) more: Option<PagePosition>,
    begin: PagePosition,
    left: usize,
    bytes_left: usize,
}

/// Values of one list that go into the answer.
struct Piece {
    list: usize,
    first: usize,
    end: usize,
}

/// What values of an answer are made of.
pub(super) trait Value: Copy {
    /// What they become.
    type Shown;

    /// The UID whose URL they show.
    fn uid(self) -> Option<u64>;

    /// With that URL.
    fn show(self, url: &str) -> Self::Shown;
}

impl<V> Answer<V> {
    /// An empty answer to a question.
    ///
    /// # Errors
    /// BAD_REQUEST of `limit`.
    pub(super) fn of(shared: &Shared, params: &Params, start: &Start) -> Result<Self, Status> {
        let limit = params.number("limit", 1..=LIMIT_MAX)?.unwrap_or(LIMIT);
        let bytes = shared.bounds.values.saturating_mul(size_of::<u64>());
        Ok(Self::sized(start.place.unwrap_or_default(), usize::try_from(limit).unwrap_or(usize::MAX), bytes))
    }

    fn sized(begin: PagePosition, limit: usize, bytes: usize) -> Self {
        Self { items: Vec::new(), more: None, begin, left: limit, bytes_left: bytes }
    }

    /// Whether nothing more fits.
    pub(super) fn is_full(&self) -> bool {
        self.more.is_some()
    }

    /// Whether as many values as were wanted are not there yet.
    pub(super) fn has_room(&self) -> bool {
        self.left > 0
    }

    /// How many more values to ask for, to know whether there are more than are wanted.
    pub(super) fn room(&self) -> usize {
        self.left.saturating_add(1)
    }

    /// Ends the answer before a UID, where it does not end already.
    pub(super) fn stop_at(&mut self, uid: u64) {
        self.more.get_or_insert(PagePosition { uid, given: 0 });
    }

    /// Takes in the lists of UIDs that rise, also from call to call. Lists without values leave nothing behind.
    pub(super) async fn add<T: Value<Shown = V>>(
        &mut self,
        pinned: &Pinned,
        uids: &[u64],
        lists: &Batch<T>,
    ) -> Result<(), Status> {
        let pieces = self.pieces(uids, lists)?;
        let mut rest = pieces.as_slice();
        while let Some(first) = rest.first() {
            if self.bytes_left == 0 {
                // Sooner than where the limit ends it.
                self.more = Some(PagePosition { uid: uids[first.list], given: first.first });
                return Ok(());
            }
            let mut size = 0;
            let run = rest.iter().take_while(|piece| {
                size += piece.end - piece.first;
                size <= RUN
            });
            // No piece is longer than a run.
            let (run, after) = rest.split_at(run.count().max(1));
            rest = after;
            let values = |piece: &Piece| lists.get(piece.list)[piece.first..piece.end].iter();
            let wanted = run.iter().flat_map(|piece| values(piece).filter_map(|value| value.uid()));
            let texts = Texts::of(pinned, wanted.chain(run.iter().map(|piece| uids[piece.list])).collect()).await?;
            for piece in run {
                self.put(uids[piece.list], values(piece), &texts);
            }
        }
        Ok(())
    }

    /// What fits of lists, by number of values, in pieces that are not longer than a run.
    fn pieces<T>(&mut self, uids: &[u64], lists: &Batch<T>) -> Result<Vec<Piece>, Status> {
        let mut pieces = Vec::new();
        for (list, (&uid, values)) in uids.iter().zip(lists.iter()).enumerate() {
            if self.is_full() {
                break;
            }
            let first = if uid == self.begin.uid { self.begin.given } else { 0 };
            if first > values.len() {
                return Err(bad("resumeKey: not copied from an earlier answer"));
            }
            let end = values.len().min(first.saturating_add(self.left));
            self.left -= end - first;
            if end < values.len() {
                self.more = Some(PagePosition { uid, given: end });
            }
            pieces.extend((first..end).step_by(RUN).map(|first| Piece { list, first, end: end.min(first + RUN) }));
        }
        Ok(pieces)
    }

    fn put<'a, T: Value<Shown = V> + 'a>(&mut self, uid: u64, values: impl Iterator<Item = &'a T>, texts: &Texts) {
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
