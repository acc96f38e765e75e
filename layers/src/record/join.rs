//! Joins what several rows hold of one URL into one record.
//!
//! Input: sound records of the same URL, the record of the oldest row first. Output: the union of their captures and
//! links, and which link was in which capture. If several rows have a capture, the newest row alone decides
//! ([`crate::record::precedence`]). An update that writes a capture again therefore writes everything that all rows
//! know of the capture. In-links join by union: a source is marked in a range if any record marks the source there.
//! Ranges may therefore be too wide if a capture was written again, and never too narrow.
//!
//! Invariants: the result is sound, and joining in steps gives the same result as joining at once. Cost: linear in the
//! captures and, for each link, in the stretches of captures that come from the same record.

use crate::record::page::evidence::{Evidence, Payload, Revisit, revisit_order};
use crate::record::page::{InLinks, Page};
use crate::record::precedence::for_each_time;
use crate::record::presence::{self, Change};
use crate::record::status::{Status, push_status};
use crate::record::uid::Uid;
use std::ops::Range;

/// A source of links for captures: links and the captures that have them.
#[derive(Clone, Copy, Debug)]
pub struct Contribution<'a> {
    links: &'a [Uid],
    changes: &'a [Change],
}

impl<'a> Contribution<'a> {
    /// Links that all captures have.
    pub fn always(links: &'a [Uid]) -> Self {
        Self { links, changes: &[] }
    }
}

impl<'a> From<&'a Page> for Contribution<'a> {
    fn from(page: &'a Page) -> Self {
        Self { links: &page.links, changes: &page.changes }
    }
}

impl<'a> From<&'a InLinks> for Contribution<'a> {
    fn from(record: &'a InLinks) -> Self {
        Self { links: &record.sources, changes: &record.changes }
    }
}

/// Where known captures get their links: for each capture, its origins, which are pairs of the number of a contribution
/// and the index of a capture in this contribution.
#[derive(Clone, Debug, Default)]
pub struct Weave {
    stretches: Vec<Stretch>,
    /// The origins of the first captures of all stretches.
    origins: Vec<(usize, u32)>,
}

/// Consecutive captures.
#[derive(Clone, Debug)]
struct Stretch {
    first: u32,
    count: u32,
    /// Whether the captures have the links of consecutive captures of one contribution. Otherwise, all have the same
    /// origins.
    steps: bool,
    /// The place of the origins of the first capture.
    origins: Range<usize>,
}

impl Weave {
    /// Adds the known capture with this index, which must be above those before. The capture has the links of all
    /// `origins` together.
    pub fn push(&mut self, capture: u32, origins: &[(usize, u32)]) {
        if let Some(last) = self.stretches.last_mut().filter(|last| capture == last.first + last.count) {
            let of_last = &self.origins[last.origins.clone()];
            let steps = match (of_last, origins) {
                (&[(contribution, first)], &[(other, at)]) => contribution == other && at == first + last.count,
                _ => false,
            };
            if steps && (last.steps || last.count == 1) {
                (last.steps, last.count) = (true, last.count + 1);
                return;
            }
            if !last.steps && of_last == origins {
                last.count += 1;
                return;
            }
        }
        let from = self.origins.len();
        self.origins.extend_from_slice(origins);
        self.stretches.push(Stretch { first: capture, count: 1, steps: false, origins: from..self.origins.len() });
    }

    /// The union of the links of all captures, and the changes of these links from capture to capture. Links that no
    /// capture has are left out.
    pub fn links(&self, contributions: &[Contribution<'_>]) -> (Vec<Uid>, Vec<Change>) {
        self.links_within(contributions, usize::MAX).unwrap_or_default()
    }

    /// As [`Weave::links`]; `None` if links and changes together are more than `max_values`.
    pub fn links_within(
        &self,
        contributions: &[Contribution<'_>],
        max_values: usize,
    ) -> Option<(Vec<Uid>, Vec<Change>)> {
        // The longest list of links is usually nearly all of them.
        let longest = contributions.iter().map(|contribution| contribution.links.len()).max().unwrap_or(0);
        let (mut links, mut changes) = (Vec::with_capacity(longest), Vec::new());
        let mut cursors: Vec<Cursor<'_>> = contributions.iter().map(|&rest| Cursor { rest, number: 0 }).collect();
        // For each contribution, the changes of the link; `None` if the contribution does not have the link.
        let mut changes_of_each: Vec<Option<&[Change]>> = vec![None; contributions.len()];
        while let Some(&link) = cursors.iter().filter_map(|cursor| cursor.rest.links.first()).min() {
            for (link_changes, cursor) in changes_of_each.iter_mut().zip(&mut cursors) {
                *link_changes = cursor.take(link);
            }
            let number = u32::try_from(links.len()).unwrap_or(u32::MAX);
            let before = changes.len();
            // Most links are in all captures of all contributions, and then in all captures here, which have origins.
            let is_always = changes_of_each.iter().all(|link_changes| link_changes.is_some_and(<[_]>::is_empty));
            if is_always && !self.stretches.is_empty() || self.changes(&changes_of_each, number, &mut changes) {
                links.push(link);
            } else {
                changes.truncate(before);
            }
            if links.len() + changes.len() > max_values {
                return None;
            }
        }
        Some((links, changes))
    }

    /// Appends the changes of one link, given its changes in each contribution. Returns whether any capture has the
    /// link.
    fn changes(&self, changes_of_each: &[Option<&[Change]>], link: u32, changes: &mut Vec<Change>) -> bool {
        let (mut present, mut ever) = (true, false);
        let mut set_presence = |now: bool, capture: u32| {
            if now != present {
                changes.push(Change { link, capture });
                present = now;
            }
            ever |= now;
        };
        for Stretch { first, count, steps, origins } in &self.stretches {
            let origins = &self.origins[origins.clone()];
            let is_present = |&(contribution, at): &(usize, u32)| {
                changes_of_each[contribution].is_some_and(|link_changes| presence::any_in(link_changes, at, at))
            };
            set_presence(origins.iter().any(is_present), *first);
            if let (&[(contribution, at)], true) = (origins, *steps) {
                let link_changes = changes_of_each[contribution].unwrap_or_default();
                let later = link_changes.partition_point(|change| change.capture <= at);
                for change in link_changes[later..].iter().take_while(|change| change.capture < at + count) {
                    set_presence(!present_before(link_changes, change.capture), first + (change.capture - at));
                }
            }
        }
        ever
    }
}

/// The rest of a contribution: its links from `number` on, and their changes.
struct Cursor<'a> {
    rest: Contribution<'a>,
    number: u32,
}

impl<'a> Cursor<'a> {
    /// Takes the changes of `link` if it is the next link.
    #[inline]
    fn take(&mut self, link: Uid) -> Option<&'a [Change]> {
        let (_, links) = self.rest.links.split_first().filter(|(first, _)| **first == link)?;
        let changes = self.rest.changes;
        let count = changes.iter().take_while(|change| change.link == self.number).count();
        let (link_changes, changes) = changes.split_at(count);
        self.rest = Contribution { links, changes };
        self.number += 1;
        Some(link_changes)
    }
}

/// Whether a link is present just before one of its changes.
fn present_before(link_changes: &[Change], capture: u32) -> bool {
    link_changes.partition_point(|change| change.capture < capture).is_multiple_of(2)
}

/// Several pages of one URL, joined into one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Joined {
    /// The page. It has the UID of the joined pages.
    pub page: Page,
    /// Whether a newer row replaced the links of a capture of an older row.
    pub replaced: bool,
}

/// The capture times of each page.
fn times_of<'a>(pages: &[&'a Page]) -> Vec<&'a [i64]> {
    pages.iter().map(|page| &page.timestamps[..]).collect()
}

/// Joins the pages that all rows have of one URL, the oldest row first. `None` if there is no page, or if all captures
/// are removed.
pub fn pages(pages: &[&Page]) -> Option<Joined> {
    let Joined { page, replaced } = pages_within(pages, usize::MAX)?;
    without_removed(page, &mut Evidence::default()).map(|page| Joined { page, replaced })
}

/// The page that all rows have together, given the page of each row, the oldest row first. `None` as for [`pages`].
pub fn page_of_rows(mut pages: Vec<Page>) -> Option<Page> {
    match pages.len() {
        0 | 1 => pages.pop().and_then(|page| without_removed(page, &mut Evidence::default())),
        _ => self::pages(&pages.iter().collect::<Vec<_>>()).map(|joined| joined.page),
    }
}

/// As [`pages`], for some of the rows. Removed captures stay, so that they hide captures of older rows. `None` if there
/// is no page, or if the joined page has more than `max_values` links and changes together.
pub fn pages_within(pages: &[&Page], max_values: usize) -> Option<Joined> {
    let mut page = Page { uid: pages.first()?.uid, ..Page::default() };
    let (mut weave, mut replaced) = (Weave::default(), false);
    for_each_time(&times_of(pages), |time, captures| {
        let index = u32::try_from(page.timestamps.len()).unwrap_or(u32::MAX);
        page.timestamps.push(time);
        let is_blank = |(row, at): &(usize, u32)| pages[*row].is_blank(*at);
        let [older @ .., newest] = captures else { return };
        if is_blank(newest) {
            page.blank.push(index);
        } else {
            weave.push(index, &[*newest]);
        }
        push_status(&mut page.statuses, index, pages[newest.0].status(newest.1));
        replaced |= older.iter().any(|capture| !is_blank(capture));
    });
    let links: Vec<Contribution<'_>> = pages.iter().map(|&page| page.into()).collect();
    (page.links, page.changes) = weave.links_within(&links, max_values)?;
    Some(Joined { page, replaced })
}

/// Joins in-links of one URL; `None` if there are no records.
pub fn in_links(records: &[&InLinks]) -> Option<InLinks> {
    let mut joined = InLinks { uid: records.first()?.uid, ..InLinks::default() };
    let mut weave = Weave::default();
    let ranges: Vec<&[i64]> = records.iter().map(|record| &record.ranges[..]).collect();
    for_each_time(&ranges, |start, origins| {
        weave.push(u32::try_from(joined.ranges.len()).unwrap_or(u32::MAX), origins);
        joined.ranges.push(start);
    });
    let links: Vec<Contribution<'_>> = records.iter().map(|&record| record.into()).collect();
    (joined.sources, joined.changes) = weave.links(&links);
    Some(joined)
}

/// The in-links that several records of one URL have together; `None` if there are no records. May take a record out of
/// `records`, which the caller can fill again.
pub fn in_links_of_rows(records: &mut Vec<InLinks>) -> Option<InLinks> {
    match records.len() {
        0 | 1 => records.pop(),
        _ => in_links(&records.iter().collect::<Vec<_>>()),
    }
}

/// The in-links of the next URL in a stream of records. Several consecutive records may be of one URL. `ahead` holds a
/// record that was read already and is of the URL after that.
pub(crate) fn next_in_links<E>(
    ahead: &mut Option<InLinks>,
    mut next: impl FnMut() -> Result<Option<InLinks>, E>,
) -> Result<Option<InLinks>, E> {
    let Some(first) = ahead.take().map_or_else(&mut next, |first| Ok(Some(first)))? else { return Ok(None) };
    let mut records = vec![first];
    while let Some(record) = next()? {
        if record.uid != records[0].uid {
            *ahead = Some(record);
            break;
        }
        records.push(record);
    }
    Ok(in_links_of_rows(&mut records))
}

/// Joins the evidence of a page, as [`pages_within`] joins pages. If a capture is not a revisit in one row, it is not a
/// revisit in the result. If a row removes the capture, rows before this row do not count. The payloads of a capture
/// are those of the newest row, as its links are. Otherwise the order of rows does not matter.
pub fn evidence(records: &[(&Page, &Evidence)]) -> Evidence {
    let pages: Vec<&Page> = records.iter().map(|record| record.0).collect();
    let mut joined = Evidence::default();
    let mut index = 0;
    for_each_time(&times_of(&pages), |_, captures| {
        let removed = captures.iter().rposition(|&(row, at)| pages[row].status(at) == Status::REMOVED);
        let first = removed.map_or(0, |at| (at + 1).min(captures.len() - 1));
        let same_capture = captures[first..].iter().map(|&(row, at)| {
            let (page, evidence) = records[row];
            (evidence.revisit(at), evidence.digest(at as usize), page.status(at))
        });
        let (digest, revisit, _) = one_capture(index, same_capture);
        joined.digests.push(digest);
        if let (None, Some(&(row, at))) = (&revisit, captures.last()) {
            let payloads = records[row].1.payloads_of(at).iter();
            joined.payloads.extend(payloads.map(|payload| Payload { capture: index, ..payload.clone() }));
        }
        joined.revisits.extend(revisit);
        index += 1;
    });
    if joined.digests.iter().all(|&digest| digest == 0) {
        joined.digests.clear();
    }
    joined
}

/// Drops the removed captures of a page; `None` if no capture is left. The page must be the join of all rows.
pub fn without_removed(mut page: Page, evidence: &mut Evidence) -> Option<Page> {
    if !has_removed(&page) {
        return Some(page);
    }
    let count = u32::try_from(page.timestamps.len()).unwrap_or(u32::MAX);
    let kept: Vec<u32> = (0..count).filter(|&at| page.status(at) != Status::REMOVED).collect();
    let index = |at: u32| kept.binary_search(&at).ok().and_then(|at| u32::try_from(at).ok());
    let mut statuses = Vec::new();
    for (at, &before) in (0u32..).zip(&kept) {
        push_status(&mut statuses, at, page.status(before));
    }
    page.statuses = statuses;
    page.timestamps = kept.iter().map(|&at| page.timestamps[at as usize]).collect();
    page.blank = page.blank.into_iter().filter_map(index).collect();
    // The matrix has no change at a removed capture, so no change is lost.
    let moved = |change: Change| index(change.capture).map(|capture| Change { capture, ..change });
    page.changes = page.changes.into_iter().filter_map(moved).collect();
    if !evidence.digests.is_empty() {
        evidence.digests = kept.iter().map(|&at| evidence.digests[at as usize]).collect();
        if evidence.digests.iter().all(|&digest| digest == 0) {
            evidence.digests.clear();
        }
    }
    let payloads = std::mem::take(&mut evidence.payloads).into_iter();
    let moved = |payload: Payload| index(payload.capture).map(|capture| Payload { capture, ..payload });
    evidence.payloads = payloads.filter_map(moved).collect();
    let revisits = std::mem::take(&mut evidence.revisits).into_iter();
    let moved = |revisit: Revisit| index(revisit.capture).map(|capture| Revisit { capture, ..revisit });
    evidence.revisits = revisits.filter_map(moved).collect();
    (!page.timestamps.is_empty()).then_some(page)
}

/// Keeps only the sources of in-links for which `stays` is true, and the ranges of these sources. `None` if no source
/// is left. A row that takes links out cannot express this in ranges. While there is such a row, each source of
/// in-links is therefore checked.
///
/// Cost: sources times ranges.
pub fn with_sources(record: &InLinks, mut stays: impl FnMut(Uid) -> bool) -> Option<InLinks> {
    let count = u32::try_from(record.ranges.len()).unwrap_or(u32::MAX);
    let mut changes = &record.changes[..];
    let (mut sources, mut is_used) = (Vec::new(), vec![false; record.ranges.len()]);
    for (at, &source) in (0u32..).zip(&record.sources) {
        let (of_source, rest) = changes.split_at(changes.iter().take_while(|change| change.link == at).count());
        changes = rest;
        if stays(source) {
            let intervals = presence::intervals(of_source, count);
            intervals.iter().for_each(|&(first, last)| is_used[first as usize..=last as usize].fill(true));
            sources.push((source, intervals));
        }
    }
    let kept: Vec<u32> = (0..count).filter(|&range| is_used[range as usize]).collect();
    let mut left = InLinks { uid: record.uid, ..InLinks::default() };
    left.ranges = kept.iter().map(|&range| record.ranges[range as usize]).collect();
    for (link, (source, intervals)) in (0u32..).zip(sources) {
        let mut was_there = true;
        for (capture, range) in (0u32..).zip(&kept) {
            let is_there = intervals.iter().any(|(first, last)| (first..=last).contains(&range));
            if is_there != was_there {
                left.changes.push(Change { link, capture });
            }
            was_there = is_there;
        }
        left.sources.push(source);
    }
    (!left.sources.is_empty()).then_some(left)
}

/// Whether a capture of the page is removed.
pub(crate) fn has_removed(page: &Page) -> bool {
    page.statuses.iter().any(|change| change.status == Status::REMOVED)
}

/// Joins several records of one capture. Each record is given by its revisit, if it is one, its digest, and its status.
/// Returns the digest, the revisit if the capture is one, and the status.
///
/// The status is the least status that the records give; records that do not count beside it are left out
/// ([`counted`]). The capture is a revisit if only revisits give that status. Links of a response with another status
/// are then links of the revisit's own, which the caller adds: they are not in the evidence.
pub fn one_capture<'a>(
    index: u32,
    records: impl Iterator<Item = (Option<&'a Revisit>, u64, Status)> + Clone,
) -> (u64, Option<Revisit>, Status) {
    let least = |digests: &mut dyn Iterator<Item = u64>| digests.filter(|&digest| digest != 0).min().unwrap_or(0);
    let least_status = records.clone().filter_map(|(revisit, _, status)| own_status(revisit, status)).min();
    let status = least_status.unwrap_or(Status::OK);
    let counts = counting(records.clone());
    let records = records.filter(|&(revisit, _, of_record)| counts(revisit, of_record));
    let is_real = |&(revisit, _, of_record): &(Option<&Revisit>, u64, Status)| revisit.is_none() && of_record == status;
    let mut real = records.clone().filter(is_real).map(|(_, digest, _)| digest).peekable();
    if real.peek().is_some() {
        return (least(&mut real), None, status);
    }
    let revisits = records.clone().filter_map(|(revisit, digest, _)| Some((revisit?, digest)));
    let first = revisits.min_by(|one, other| revisit_order(one.0, one.1).cmp(&revisit_order(other.0, other.1)));
    let (first, digest) = first.map(|(first, digest)| (first.clone(), digest)).unwrap_or_default();
    let mut links: Vec<Uid> =
        records.flat_map(|(revisit, ..)| revisit.map_or(&[][..], |revisit| &revisit.links)).copied().collect();
    links.sort_unstable();
    links.dedup();
    (digest, Some(Revisit { capture: index, links, ..first }), status)
}

/// Returns whether a record of one capture counts, given all its records ([`counted`]).
pub fn counting<'a>(
    records: impl Iterator<Item = (Option<&'a Revisit>, u64, Status)>,
) -> impl Fn(Option<&Revisit>, Status) -> bool {
    let least = records.filter_map(|(revisit, _, status)| own_status(revisit, status)).min();
    move |revisit, status| counted(own_status(revisit, status), least)
}

/// The status that a record itself gives. A revisit has its status from the capture that it refers to, so it counts as
/// [`Status::OK`]; `None` if the record of the revisit gives no status.
fn own_status(revisit: Option<&Revisit>, status: Status) -> Option<Status> {
    match revisit {
        Some(revisit) if revisit.without_status => None,
        Some(_) => Some(Status::OK),
        None => Some(status),
    }
}

/// Whether a record with this status of its own counts in a capture, given the least status that the records of the
/// capture give, if any: a failure counts only beside failures, and a record without a status only beside its like.
/// What does not count beside a record does not count beside any that displaces this record, so that the order of
/// records does not matter.
pub fn counted(own: Option<Status>, least: Option<Status>) -> bool {
    match (own, least) {
        (Some(own), Some(least)) => !own.is_failure() || least.is_failure(),
        (own, least) => own == least,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    /// Captures by time; `None` if the links are unknown.
    pub(crate) type Plain = BTreeMap<i64, Option<BTreeSet<Uid>>>;

    pub(crate) fn page_of(plain: &Plain) -> Page {
        page_named(plain, |link| link)
    }

    /// The page of these captures, with renamed links.
    pub(crate) fn page_named(plain: &Plain, name: impl Fn(Uid) -> Uid) -> Page {
        let links: BTreeSet<Uid> = plain.values().flatten().flatten().copied().collect();
        let names: BTreeMap<Uid, Uid> = links.into_iter().map(|link| (name(link), link)).collect();
        let mut page = Page { uid: Uid(5), links: names.keys().copied().collect(), ..Page::default() };
        for (at, (&time, links)) in (0..).zip(plain) {
            page.timestamps.push(time);
            if links.is_none() {
                page.blank.push(at);
            }
        }
        for (link, uid) in (0..).zip(names.values()) {
            let mut before = true;
            for (capture, links) in (0..).zip(plain.values()) {
                let Some(links) = links else { continue };
                if links.contains(uid) != before {
                    page.changes.push(Change { link, capture });
                    before = !before;
                }
            }
        }
        page
    }

    pub(crate) fn plain() -> impl Strategy<Value = Plain> {
        let links = proptest::option::weighted(0.9, proptest::collection::btree_set((0u64..12).prop_map(Uid), 0..6));
        proptest::collection::btree_map(0i64..30, links, 1..12)
    }

    proptest! {
        #[test]
        fn joined_pages_are_those_of_all_captures(rows in proptest::collection::vec(plain(), 1..5)) {
            let mut all = Plain::new();
            rows.iter().for_each(|row| all.extend(row.clone()));
            let parts: Vec<Page> = rows.iter().map(page_of).collect();
            prop_assert!(parts.iter().all(|page| page.flaw().is_none()));
            let newer = |row: usize, time: &i64| rows[row + 1..].iter().any(|newer| newer.contains_key(time));
            let replaced = |(row, captures): (usize, &Plain)| {
                captures.iter().any(|(time, links)| links.is_some() && newer(row, time))
            };
            let replaced = rows.iter().enumerate().any(replaced);
            let joined = pages(&parts.iter().collect::<Vec<_>>()).unwrap();
            prop_assert_eq!(joined.page.flaw(), None);
            prop_assert_eq!(&joined, &Joined { page: page_of(&all), replaced });
            let steps = parts.iter().cloned().reduce(|one, other| pages(&[&one, &other]).unwrap().page);
            prop_assert_eq!(steps, Some(joined.page));
        }

        #[test]
        fn joined_in_links_are_those_of_all_rows(rows in proptest::collection::vec(plain(), 1..4)) {
            let mut all = BTreeMap::<i64, BTreeSet<Uid>>::new();
            let mut parts = Vec::new();
            for row in &rows {
                let known: Plain = row.iter().filter(|(_, own)| own.as_ref().is_some_and(|own| !own.is_empty()))
                    .map(|(&time, own)| (time, own.clone())).collect();
                if known.is_empty() {
                    continue;
                }
                known.iter().for_each(|(&time, own)| all.entry(time).or_default().extend(own.iter().flatten()));
                let Page { uid, timestamps, links, changes, .. } = page_of(&known);
                parts.push(InLinks { uid, ranges: timestamps, sources: links, changes });
            }
            let expected = page_of(&all.into_iter().map(|(time, own)| (time, Some(own))).collect());
            let joined = in_links(&parts.iter().collect::<Vec<_>>());
            prop_assert_eq!(joined.is_none(), parts.is_empty());
            if let Some(InLinks { ranges, sources, changes, .. }) = joined {
                prop_assert_eq!((ranges, sources, changes), (expected.timestamps, expected.links, expected.changes));
            }
        }
    }

    #[test]
    fn nothing_joins_to_nothing() {
        assert_eq!((pages(&[]), in_links(&[])), (None, None));
    }

    #[test]
    fn captures_may_take_the_links_of_one_and_of_several() {
        // Capture 0 of the page has links 1 and 2, capture 1 has link 2. Some captures also get link 3.
        let page = page_of(&BTreeMap::from([(10, Some([1, 2].map(Uid).into())), (20, Some([Uid(2)].into()))]));
        let parts = [Contribution::from(&page), Contribution::always(&[Uid(3)])];
        let mut weave = Weave::default();
        weave.push(0, &[(0, 0)]);
        weave.push(1, &[(0, 1)]);
        weave.push(2, &[(0, 1)]);
        weave.push(4, &[(0, 0), (1, 0)]);
        weave.push(5, &[(0, 0), (1, 0)]);
        let (links, changes) = weave.links(&parts);
        let at = |link, capture| Change { link, capture };
        assert_eq!(links, [1, 2, 3].map(Uid));
        assert_eq!(changes, [at(0, 1), at(0, 4), at(2, 0), at(2, 4)]);
    }

    #[test]
    fn what_is_no_revisit_in_one_row_is_none() {
        let page = |times: &[i64]| Page { uid: Uid(1), timestamps: times.to_vec(), ..Page::default() };
        let revisit = |capture, not_modified, referred, links: &[u64]| Revisit {
            capture,
            not_modified,
            referred,
            links: Uid::slice(links).to_vec(),
            ..Revisit::default()
        };
        let said = |digests, revisits| Evidence { digests, revisits, ..Evidence::default() };
        let old = said(vec![7, 9], vec![revisit(0, true, None, &[4]), revisit(1, false, Some(5), &[3])]);
        let new = said(vec![6, 8], vec![revisit(1, false, None, &[2])]);
        let (one, other) = (page(&[10, 20]), page(&[10, 20]));
        let expected = said(vec![6, 8], vec![revisit(1, false, None, &[2, 3])]);
        assert_eq!(evidence(&[(&one, &old), (&other, &new)]), expected);
        assert_eq!(evidence(&[(&other, &new), (&one, &old)]), expected);
        assert_eq!(expected.flaw(2), None);
    }
}
