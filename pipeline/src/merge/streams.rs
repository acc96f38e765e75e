//! Records of several rows in the order of their new UIDs.
//!
//! In one row, old UIDs are in the order of the new UIDs. The records of a row are therefore a few sorted streams: one
//! of the UIDs that stay, and one of the UIDs of each merged row. The streams return the records of one new UID
//! together, the oldest row first.

use super::translation::Translation;
use crate::Error;
use std::ops::Range;
use webstrata_layers::Reader;
use webstrata_layers::read::rows::{RowInLinks, RowPages};
use webstrata_layers::record::form::{form_of, formed, link_of};
use webstrata_layers::{Change, Evidence, InLinks, Page, Uid};

/// A sorted stream of records.
pub(super) trait Records {
    type Record;

    /// Returns the next record and its old UID.
    fn next(&mut self) -> Result<Option<(Uid, Self::Record)>, Error>;
}

impl Records for RowPages<'_> {
    type Record = (Page, Evidence);

    fn next(&mut self) -> Result<Option<(Uid, Self::Record)>, Error> {
        Ok(Iterator::next(self).transpose()?.map(|record| (record.0.uid, record)))
    }
}

impl Records for RowInLinks<'_> {
    type Record = InLinks;

    fn next(&mut self) -> Result<Option<(Uid, Self::Record)>, Error> {
        Ok(Iterator::next(self).transpose()?.map(|record| (record.uid, record)))
    }
}

/// One of the streams, and the record at its head with the new UID of the record.
struct Stream<S: Records> {
    records: S,
    head: Option<(Uid, S::Record)>,
}

/// Merged streams of records; see the head of this file.
pub(super) struct Streams<'a, S: Records> {
    streams: Vec<Stream<S>>,
    translation: &'a Translation,
}

/// Returns the old UIDs that become the UIDs of `records`, for each stream of each merged row, as (row, UIDs), the
/// oldest row first.
pub(super) fn intervals(
    store: &Reader,
    rows: &Range<usize>,
    translation: &Translation,
    below: Uid,
    records: &Range<Uid>,
) -> Vec<(usize, Range<Uid>)> {
    let stay = records.start.min(below)..records.end.min(below);
    let of_row = |owner: usize| {
        let uids = store.row_uids(owner);
        translation.first_at_least(uids.clone(), records.start)..translation.first_at_least(uids, records.end)
    };
    let segments: Vec<(usize, Range<Uid>)> =
        [(rows.start, stay)].into_iter().chain(rows.clone().map(|owner| (owner, of_row(owner)))).collect();
    rows.clone()
        .flat_map(|row| {
            let row_segments = segments.iter().filter(move |(owner, uids)| *owner <= row && !uids.is_empty());
            row_segments.map(move |(_, uids)| (row, uids.clone()))
        })
        .collect()
}

impl<'a, S: Records> Streams<'a, S> {
    /// Merges the streams in `records`, given in order of rows, the oldest row first.
    pub(super) fn new(translation: &'a Translation, records: impl Iterator<Item = S>) -> Result<Self, Error> {
        let mut streams = Self { streams: Vec::new(), translation };
        for records in records {
            let mut stream = Stream { records, head: None };
            stream.advance(translation)?;
            streams.streams.push(stream);
        }
        Ok(streams)
    }

    /// Replaces the contents of `records` with the records of the least new UID, and returns this UID; `None` at the
    /// end.
    pub(super) fn next(&mut self, records: &mut Vec<S::Record>) -> Result<Option<Uid>, Error> {
        records.clear();
        let Some(uid) = self.streams.iter().filter_map(|stream| Some(stream.head.as_ref()?.0)).min() else {
            return Ok(None);
        };
        for stream in &mut self.streams {
            if stream.head.as_ref().is_some_and(|head| head.0 == uid) {
                records.extend(stream.head.take().map(|head| head.1));
                stream.advance(self.translation)?;
            }
        }
        Ok(Some(uid))
    }
}

impl<S: Records> Stream<S> {
    fn advance(&mut self, translation: &Translation) -> Result<(), Error> {
        // Nothing in a record of a dropped URL still holds.
        self.head = None;
        while let Some((old, record)) = self.records.next()? {
            if let Some(new) = translation.get(old) {
                self.head = Some((new, record));
                break;
            }
        }
        Ok(())
    }
}

/// Dropped links have UIDs from this number on; no store has that many URLs.
pub(super) const DROPPED: Uid = Uid(1 << 63);

/// Replaces the old UIDs of lists of links with the new UIDs.
pub(super) struct Replacing<'a> {
    translation: &'a Translation,
    /// The new UIDs, each with the old place of its link.
    order: Vec<(Uid, u32)>,
    /// The new place of each link of the last list.
    places: Vec<u32>,
}

impl<'a> Replacing<'a> {
    pub(super) fn new(translation: &'a Translation) -> Self {
        Self { translation, order: Vec::new(), places: Vec::new() }
    }

    /// Returns the links as new UIDs with their forms, ascending, and moves `changes` with them. Dropped links have
    /// UIDs from [`DROPPED`] on: a newer row says that these links do not exist.
    pub(super) fn links(&mut self, old: Vec<Uid>, changes: &mut [Change]) -> Vec<Uid> {
        let Self { translation, order, places } = self;
        let new = |old: Uid| match translation.get(link_of(old)) {
            Some(new) => formed(new, form_of(old)),
            None => Uid(DROPPED.0 | old.0),
        };
        let mut links: Vec<Uid> = old.into_iter().map(new).collect();
        if links.is_sorted_by(|one, other| one < other) {
            return links;
        }
        order.clear();
        order.extend(links.drain(..).zip(0u32..));
        order.sort_unstable();
        places.clear();
        places.resize(order.len(), 0);
        for (now, (uid, before)) in (0u32..).zip(&*order) {
            links.push(*uid);
            places[*before as usize] = now;
        }
        changes.iter_mut().for_each(|change| change.link = places[change.link as usize]);
        changes.sort_unstable();
        links
    }
}
