//! A query for a key, compared 32 bytes at a time, and the walk through entries for the query.
//!
//! The walk knows how many bytes the query shares with the last entry that is not above it. An entry that shares more
//! bytes than that with the entry before is not above the query either, and is skipped. An entry that shares fewer is
//! above it. Only if an entry shares equally many are its bytes compared, from there on. Each byte of the query is
//! therefore compared about once.
//!
//! Source: the usual search in front-coded lists; Martínez-Prieto et al., Practical compressed string dictionaries
//! (2016).

use super::entries::Entries;
use crate::error::Damage;
use std::cmp::Ordering;

/// The number of bytes compared at a time.
pub(super) const CHUNK: usize = 32;
/// The number of bytes of a query held at a time.
const WINDOW: usize = 224;

/// A query for a key.
pub(super) struct Query<'a> {
    key: &'a [u8],
    /// Whether keys that begin with the query count as below it: the query is the end of a range of a prefix.
    after: bool,
    /// The key from `start` on, then zeros.
    window: [u8; WINDOW + CHUNK],
    start: usize,
}

impl<'a> Query<'a> {
    pub(super) fn new(key: &'a [u8], after: bool) -> Self {
        let mut query = Self { key, after, window: [0; WINDOW + CHUNK], start: 0 };
        query.fill(0);
        query
    }

    fn fill(&mut self, start: usize) {
        self.start = start;
        let rest = self.key.get(start..).unwrap_or_default();
        let length = rest.len().min(self.window.len());
        self.window[..length].copy_from_slice(&rest[..length]);
        self.window[length..].fill(0);
    }

    /// The bytes of the query from `at` on.
    #[inline]
    fn chunk(&mut self, at: usize) -> &[u8; CHUNK] {
        if at < self.start || at > self.start + WINDOW {
            self.fill(at);
        }
        self.window[at - self.start..].first_chunk().unwrap_or(&[0; CHUNK])
    }

    /// Compares the first `length` bytes of a piece of an entry with the query from `at` on. Returns the place at which
    /// they differ, or the end of the piece, and the order of the entry relative to the query if that is known.
    #[inline]
    fn compare(&mut self, at: usize, piece: &[u8; CHUNK], length: usize) -> (usize, Option<Ordering>) {
        let keys = self.key.len();
        let query = self.chunk(at);
        let same = same(query, piece);
        if same >= length && at + length <= keys {
            return (at + length, None);
        }
        let order = piece.get(same).cmp(&query.get(same));
        if at + same.min(length) >= keys {
            return (keys, Some(self.ended()));
        }
        (at + same, Some(order))
    }

    /// The order of an entry, relative to the query, that continues where the query ends.
    #[inline]
    fn ended(&self) -> Ordering {
        if self.after { Ordering::Less } else { Ordering::Greater }
    }

    /// The order of an entry, relative to the query, that ends at `at` and is equal so far.
    #[inline]
    fn at_end(&self, at: usize) -> Ordering {
        match at.cmp(&self.key.len()) {
            Ordering::Less => Ordering::Less,
            _ if self.after => Ordering::Less,
            _ => Ordering::Equal,
        }
    }

    /// Compares the first `length` bytes, which is the text of an entry, with the query. The first `at` bytes are
    /// equal.
    #[inline]
    pub(super) fn compare_plain(&mut self, mut at: usize, bytes: &[u8], length: usize) -> (usize, Ordering) {
        let end = length.min(bytes.len());
        while at < end {
            let rest = &bytes[at..];
            let length = (end - at).min(CHUNK);
            let order = match rest.first_chunk() {
                Some(piece) => self.compare(at, piece, length),
                None => self.compare(at, &chunk_at_end(rest), length),
            };
            match order {
                (now, None) => at = now,
                (now, Some(order)) => return (now, order),
            }
        }
        (at, self.at_end(at))
    }

    /// Compares the rest of an entry with the query from `at` on. Unless the entry is above the query, reads the rest
    /// to its end.
    #[inline]
    pub(super) fn compare_tokens(
        &mut self,
        mut at: usize,
        entries: &mut Entries<'_>,
    ) -> Result<(usize, Ordering), Damage> {
        let mut order = None;
        entries.each(|text, length| {
            (at, order) = self.compare(at, text, length);
            order.is_none()
        })?;
        let order = order.unwrap_or_else(|| self.at_end(at));
        if order == Ordering::Less && !entries.ended {
            entries.skip()?;
        }
        Ok((at, order))
    }

    /// Walks through `count` entries. The entry before them is not above the query and shares `same` bytes with it.
    /// Returns how many of the entries are not above the query, the number of bytes that the last of these shares with
    /// the query, and whether it equals the query. `entries.shared` is then what that entry shares. The last of none is
    /// the entry before.
    #[inline]
    pub(super) fn walk(
        &mut self,
        entries: &mut Entries<'_>,
        count: usize,
        mut same: usize,
    ) -> Result<(usize, usize, bool), Damage> {
        let (mut below, mut kept) = (0, entries.shared);
        while below < count {
            let shared = entries.next_shared()?;
            match shared.cmp(&same) {
                Ordering::Less => break,
                Ordering::Greater => entries.skip()?,
                Ordering::Equal => match self.compare_tokens(same, entries)? {
                    (now, Ordering::Less) => same = now,
                    (now, Ordering::Equal) => return Ok((below + 1, now, true)),
                    (_, Ordering::Greater) => break,
                },
            }
            kept = shared;
            below += 1;
        }
        entries.shared = kept;
        Ok((below, same, false))
    }
}

/// The first 32 bytes, with zeros beyond the end.
#[cold]
pub(super) fn chunk_at_end(bytes: &[u8]) -> [u8; CHUNK] {
    let mut piece = [0; CHUNK];
    let length = bytes.len().min(CHUNK);
    piece[..length].copy_from_slice(&bytes[..length]);
    piece
}

/// The number of equal bytes before the first that differs.
#[inline]
fn same(a: &[u8; CHUNK], b: &[u8; CHUNK]) -> usize {
    let half =
        |bytes: &[u8; CHUNK], at: usize| u128::from_le_bytes(bytes[at..].first_chunk().copied().unwrap_or_default());
    let low = half(a, 0) ^ half(b, 0);
    if low != 0 {
        return (low.trailing_zeros() / 8) as usize;
    }
    let high = half(a, 16) ^ half(b, 16);
    16 + (high.trailing_zeros() / 8) as usize
}
