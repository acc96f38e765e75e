//! The difference between an older and a newer epoch: captures, links of captures, links of pages.
//!
//! Reads two epochs of one store; the newer epoch must follow from the older one by updates and merges. Yields page by
//! page, in the order of UIDs of the newer epoch: new captures, captures in both epochs whose links differ, and links
//! that the page as a whole has gained or lost. Captures never disappear. A link disappears if an update has replaced
//! the captures that had the link.
//!
//! Reads only pages with a record in a row that the older epoch does not have; all other pages are equal. After an
//! update, these are the pages that the update has written. A merge writes every page of its rows again, so all these
//! pages are compared and found equal. Cost: these records, and for each such page its records in all rows, in both
//! epochs. Memory: a row group of each of these rows, the translations between the epochs, a page of each side, and the
//! caches of the readers.

use serde::Serialize;

use crate::error::Error;
use crate::read::query::Links;
use crate::read::reader::Reader;
use crate::read::rows::RowPages;
use crate::record::page::Page;
use crate::record::precedence::for_each_time;
use crate::record::presence::{self, Change};
use crate::record::uid::Uid;
use crate::store::translation::Translations;

/// How a capture differs from the same capture in the older epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CaptureChange {
    /// The older epoch does not have the capture.
    New,
    /// The links of the capture were unknown and are now known.
    Known,
    /// The links of the capture were known and are now unknown.
    Unknown,
    /// The capture has another status.
    Status,
    /// The capture has other links.
    Links,
}

/// A new or changed capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangedCapture {
    /// The time of the capture, in seconds.
    pub time: i64,
    /// Whether the links of the capture are known now.
    pub known: bool,
    /// How the capture has changed.
    pub change: CaptureChange,
}

/// A new or changed page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangedPage {
    /// The page: a UID of the newer epoch.
    pub uid: Uid,
    /// Whether the older epoch has no capture of the page.
    pub is_new: bool,
    /// The new or changed captures, rising in time.
    pub captures: Vec<ChangedCapture>,
    /// Links that the older epoch has in no capture of the page: UIDs of the newer epoch, rising.
    pub gained: Vec<Uid>,
    /// Links that the newer epoch has in no capture of the page: UIDs of the older epoch, rising. The newer epoch may
    /// not have these URLs.
    pub lost: Vec<Uid>,
}

impl ChangedPage {
    /// Whether nothing has changed.
    fn is_empty(&self) -> bool {
        self.captures.is_empty() && self.gained.is_empty() && self.lost.is_empty()
    }
}

/// The numbers of changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Changes {
    /// New or changed pages.
    pub pages: u64,
    /// Pages without a capture in the older epoch.
    pub new_pages: u64,
    /// New captures.
    pub new_captures: u64,
    /// New captures with unknown links.
    pub new_unknown: u64,
    /// Captures with links that were unknown and are now known.
    pub now_known: u64,
    /// Captures with links that were known and are now unknown.
    pub now_unknown: u64,
    /// Captures with another status.
    pub other_status: u64,
    /// Captures with other links.
    pub other_links: u64,
    /// Pairs of a page and a link that no capture of the older epoch has.
    pub links_gained: u64,
    /// Pairs of a page and a link that no capture of the newer epoch has.
    pub links_lost: u64,
}

impl Changes {
    /// Adds a page to the counts.
    pub fn add(&mut self, page: &ChangedPage) {
        self.pages += 1;
        self.new_pages += u64::from(page.is_new);
        for capture in &page.captures {
            match capture.change {
                CaptureChange::New => {
                    self.new_captures += 1;
                    self.new_unknown += u64::from(!capture.known);
                }
                CaptureChange::Known => self.now_known += 1,
                CaptureChange::Unknown => self.now_unknown += 1,
                CaptureChange::Status => self.other_status += 1,
                CaptureChange::Links => self.other_links += 1,
            }
        }
        self.links_gained += page.gained.len() as u64;
        self.links_lost += page.lost.len() as u64;
    }
}

/// A stream of the pages that have changed from one epoch to another; see the head of this file. The stream ends after
/// the first error. Errors: files that cannot be read, files with a wrong checksum, damaged records.
pub struct Diff<'a> {
    older: &'a Reader,
    newer: &'a Reader,
    translations: Translations,
    /// The rows that the older epoch does not have, each with the UID of its next page.
    rows: Vec<(RowPages<'a>, Option<Uid>)>,
}

impl<'a> Diff<'a> {
    /// Compares `older` and `newer`, two epochs of one store.
    ///
    /// # Errors
    /// [`Error::ReplacedBetween`] if a build has replaced all rows since the older epoch. [`Error::MissingEpoch`] if
    /// `older` is the later epoch. Translations and files that cannot be read or are damaged.
    pub fn between(older: &'a Reader, newer: &'a Reader) -> Result<Self, Error> {
        let translations = Translations::between(newer.store(), older.epoch()).map_err(|error| match error {
            Error::NoTranslation { path, from, first } => Error::ReplacedBetween { path, from, first },
            error => error,
        })?;
        let before = &older.store().manifest().rows;
        let rows = newer.store().manifest().rows.iter().enumerate();
        let is_new = |row: u32| before.iter().all(|before| before.row != row);
        let new = rows.filter(|(_, row)| is_new(row.row)).map(|(at, _)| newer.row_pages(at, Uid::below(newer.urls())));
        let rows = new.map(|mut pages| Ok(next_uid(&mut pages)?.map(|uid| (pages, Some(uid)))));
        let rows = rows.collect::<Result<Vec<_>, Error>>()?.into_iter().flatten().collect();
        Ok(Self { older, newer, translations, rows })
    }

    /// The next page that has changed.
    fn changed(&mut self) -> Result<Option<ChangedPage>, Error> {
        while let Some(uid) = self.rows.iter().filter_map(|(_, next)| *next).min() {
            for (pages, next) in self.rows.iter_mut().filter(|(_, next)| *next == Some(uid)) {
                *next = next_uid(pages)?;
            }
            let Some(new) = self.newer.page(uid)? else { continue };
            let old = self.translations.backward(uid).map_or(Ok(None), |old| self.older.page(old))?;
            let page = match old {
                Some(old) => compare(&old, &new, |link| self.translations.forward(link)),
                None => ChangedPage { is_new: true, ..compare(&Page::default(), &new, |_| None) },
            };
            if !page.is_empty() {
                return Ok(Some(page));
            }
        }
        Ok(None)
    }
}

impl Iterator for Diff<'_> {
    type Item = Result<ChangedPage, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let changed = self.changed();
        if changed.is_err() {
            self.rows.clear();
        }
        changed.transpose()
    }
}

fn next_uid(pages: &mut RowPages<'_>) -> Result<Option<Uid>, Error> {
    Ok(pages.next().transpose()?.map(|(page, _)| page.uid))
}

/// Compares two records of a page. `now` maps the UID of an old link to its UID in the newer epoch.
///
/// Cost: captures and links of the two records, and for each link its stretches of captures, sorted.
fn compare(old: &Page, new: &Page, now: impl Fn(Uid) -> Option<Uid>) -> ChangedPage {
    let mut changed = ChangedPage { uid: new.uid, ..ChangedPage::default() };
    // Captures that both records have, with links that are known in both: index in the old page, index in the new page,
    // time.
    let mut both: [Vec<u32>; 2] = Default::default();
    let mut times = Vec::new();
    for_each_time(&[&old.timestamps, &new.timestamps], |time, captures| {
        let (change, known) = match *captures {
            [(1, at)] => (CaptureChange::New, new.is_known(at)),
            [(_, before), (_, at)] => match (old.is_known(before), new.is_known(at)) {
                (false, true) => (CaptureChange::Known, true),
                (true, false) => (CaptureChange::Unknown, false),
                (false, false) => return,
                (true, true) if old.status(before) != new.status(at) => (CaptureChange::Status, true),
                (true, true) if old.is_blank(before) => return,
                (true, true) => {
                    both[0].push(before);
                    both[1].push(at);
                    times.push(time);
                    return;
                }
            },
            _ => return,
        };
        changed.captures.push(ChangedCapture { time, known, change });
    });
    let mut differing = Differing { both, depths: vec![0; times.len() + 1], edges: Vec::new() };
    let sides = [Side::new(old), Side::new(new)];
    // The old links by their new UIDs. A URL that is gone is no longer a link.
    let mut before: Vec<(Uid, usize)> = Vec::new();
    for (at, &link) in old.links.iter().enumerate() {
        match now(link).filter(|link| new.links.binary_search(link).is_ok()) {
            Some(link) => before.push((link, at)),
            None => {
                changed.lost.push(link);
                differing.link([Some(sides[0].stretches(at)), None]);
            }
        }
    }
    before.sort_unstable();
    let mut before = before.into_iter().peekable();
    for (at, &link) in new.links.iter().enumerate() {
        let old = before.next_if(|&(old, _)| old == link).map(|(_, at)| sides[0].stretches(at));
        if old.is_none() {
            changed.gained.push(link);
        }
        differing.link([old, Some(sides[1].stretches(at))]);
    }
    let change_times = differing.times(&times);
    changed.captures.extend(change_times.map(|time| ChangedCapture {
        time,
        known: true,
        change: CaptureChange::Links,
    }));
    changed.captures.sort_unstable_by_key(|capture| capture.time);
    changed
}

/// The changes of each link of a page, by the index of the link.
struct Side<'a> {
    changes: Vec<&'a [Change]>,
    captures: u32,
}

impl<'a> Side<'a> {
    fn new(page: &'a Page) -> Self {
        let mut changes: Vec<&[Change]> = vec![&[]; page.links.len()];
        for (link, link_changes) in presence::by_link(&page.changes) {
            changes[link as usize] = link_changes;
        }
        Self { changes, captures: u32::try_from(page.timestamps.len()).unwrap_or(u32::MAX) }
    }

    fn stretches(&self, link: usize) -> Vec<(u32, u32)> {
        presence::intervals(self.changes[link], self.captures)
    }
}

/// Finds the captures, among the captures that two pages share, at which the links of the two pages differ.
struct Differing {
    /// The indexes of the shared captures in each page, rising.
    both: [Vec<u32>; 2],
    /// For each shared capture: the number of links that begin to differ there, minus the number that cease to differ.
    depths: Vec<i64>,
    edges: Vec<usize>,
}

impl Differing {
    /// Adds a link, given the stretches of captures that have the link in each page.
    fn link(&mut self, stretches: [Option<Vec<(u32, u32)>>; 2]) {
        // A page has the link between two consecutive edges of the page. If the edges of both pages are sorted
        // together, only one page has the link between the two edges of each pair.
        self.edges.clear();
        for (both, stretches) in self.both.iter().zip(stretches) {
            let rank = |capture: u32| both.partition_point(|&at| at < capture);
            let edges = stretches.into_iter().flatten().flat_map(|(first, last)| [rank(first), rank(last + 1)]);
            self.edges.extend(edges);
        }
        self.edges.sort_unstable();
        for pair in self.edges.chunks_exact(2) {
            self.depths[pair[0]] += 1;
            self.depths[pair[1]] -= 1;
        }
    }

    /// The times of the shared captures with different links. `times` has the times of all shared captures.
    fn times(self, times: &[i64]) -> impl Iterator<Item = i64> {
        let depth = self.depths.into_iter().scan(0, |depth, step| {
            *depth += step;
            Some(*depth)
        });
        times.iter().zip(depth).filter(|(_, depth)| *depth > 0).map(|(&time, _)| time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::join::tests::{Plain, page_named};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn plain() -> impl Strategy<Value = Plain> {
        let links = proptest::option::weighted(0.8, proptest::collection::btree_set((0u64..10).prop_map(Uid), 0..6));
        proptest::collection::btree_map(0i64..16, links, 0..12)
    }

    fn links_of(plain: &Plain) -> BTreeSet<Uid> {
        plain.values().flatten().flatten().copied().collect()
    }

    proptest! {
        #[test]
        fn pages_differ_as_sets_do(old in plain(), more in plain(), gone in (0u64..10).prop_map(Uid)) {
            let mut new = old.clone();
            new.extend(more);
            if new.is_empty() {
                return Ok(());
            }
            // The order of the new UIDs is the reverse of the old order. One URL is gone if nothing links to the URL.
            let is_gone = |link| link == gone && !links_of(&new).contains(&gone);
            let turned = |uid: Uid| Uid(100 - uid.0);
            let (before, after) = (page_named(&old, turned), page_named(&new, |link| link));
            let changed = compare(&before, &after, |uid| Some(turned(uid)).filter(|&link| !is_gone(link)));
            let mut captures = Vec::new();
            for (&time, links) in &new {
                let change = match (old.get(&time), links) {
                    (None, _) => CaptureChange::New,
                    (Some(None), Some(_)) => CaptureChange::Known,
                    (Some(Some(_)), None) => CaptureChange::Unknown,
                    (Some(Some(before)), Some(links)) if before != links => CaptureChange::Links,
                    _ => continue,
                };
                captures.push(ChangedCapture { time, known: links.is_some(), change });
            }
            let (was, is) = (links_of(&old), links_of(&new));
            let gained = is.difference(&was).copied().collect();
            let mut lost: Vec<Uid> = was.difference(&is).map(|&link| turned(link)).collect();
            lost.sort_unstable();
            prop_assert_eq!(changed, ChangedPage { uid: Uid(5), is_new: false, captures, gained, lost });
        }
    }
}
