//! Precedence of rows: if several rows have the same page, in each second the captures of the newest row count.
//!
//! This file is the one rule. Joins of whole records ([`crate::record::join`]), answers from layers and answers from
//! cells follow it. If a row writes a capture again, it replaces the older row's capture of the same second, even if
//! the links of the newer capture are unknown.
//!
//! Input: the captures that each row has of one page, the oldest row first ([`Captures`]). Output: the captures of all
//! rows in order of time ([`for_each_time`], [`merge`]), or the windows about which each row is asked alone
//! ([`windows`]). Links are not read. Cost: one pass over the captures. The cost of `windows` is one pass over the
//! row's captures in the window that lie among the captures of a newer row. [`several`] asks the rows that are at hand.

pub mod several;

use std::ops::Range;

use crate::record::capture::{CaptureTime, Captures, marked_ends};
use crate::record::status::{self, Status};
use crate::record::time::{AsOf, Window};
use crate::record::uid::Uid;

/// The windows about which one of the rows is asked alone. The answers of all rows together are the answer about
/// `window`. No window: the row has nothing that counts. `[window]`: all captures of the row in the window count.
/// Otherwise, the stretches of captures that count. Captures that the row has outside of the window may be left out of
/// `rows`. If the window is as of a time and no row has a change of status, each row needs only its latest capture up
/// to then.
pub fn windows(rows: &[Captures<'_>], row: usize, window: Window) -> Vec<Window> {
    let stretches: Vec<_> = stretches(rows, row, window).collect();
    match stretches[..] {
        [] => Vec::new(),
        [only] if rows[row].selected(window) == Some(only) => vec![window],
        _ => {
            let time = |at: u32| rows[row].times[at as usize];
            stretches.into_iter().map(|(first, last)| Window::Seen { from: time(first), to: time(last) }).collect()
        }
    }
}

/// Whether no row replaces a capture of an older row in the window; blank captures of the older row do not matter. Then
/// the answer of each row alone about the window is valid.
pub(crate) fn all_count(rows: &[Captures<'_>], window: Window) -> bool {
    (0..rows.len()).all(|row| match windows(rows, row, window)[..] {
        [] => rows[row].selected(window).is_none(),
        ref windows => windows == [window],
    })
}

/// The times at which captures of several rows may be in the same second. At all other times, the answers of rows can
/// be combined unchanged.
#[derive(Clone, Debug, Default)]
pub struct Overlaps {
    rows: usize,
    /// Whether a row takes out content of older rows.
    removes: bool,
    /// The first and the last second of each interval in which two rows have captures.
    times: Vec<(i64, i64)>,
}

impl Overlaps {
    /// The overlaps of rows, given the first and the last second of each. A row with a first second above its last has
    /// no captures. `removes`: whether a row takes out content of older rows.
    pub fn of(rows: &[(i64, i64)], removes: bool) -> Self {
        let both = |one: (i64, i64), other: (i64, i64)| (one.0.max(other.0), one.1.min(other.1));
        let pairs =
            rows.iter().enumerate().flat_map(|(at, &row)| rows[..at].iter().map(move |&older| both(older, row)));
        Self { rows: rows.len(), removes, times: pairs.filter(|(first, last)| first <= last).collect() }
    }

    /// Whether the answer of each row about the window is valid, except for captures that a newer row replaces. As of a
    /// time, it is not valid if there are several rows: another row may have the latest capture.
    #[inline]
    pub fn each_row_decides(&self, window: Window) -> bool {
        matches!(window, Window::Seen { .. }) || self.rows < 2
    }

    /// Whether no row can replace a capture of an older row in the window, so that the answers of all rows are valid.
    #[inline]
    pub fn none_in(&self, window: Window) -> bool {
        match window {
            Window::Seen { from, to } => self.times.iter().all(|&(first, last)| last < from || to < first),
            Window::AsOf(_) => self.rows < 2,
        }
    }

    /// The window in which each source of in-links is asked whether it links, given the sources that the rows have
    /// together; `None` if all sources are right. `is_exact`: the rows answered for the window as exactly as
    /// [`Overlaps::each_row_decides`] allows; otherwise they answered for its time ranges, which cannot record that a
    /// row takes a link out.
    pub fn checked(&self, window: Window, is_exact: bool) -> Option<Window> {
        if is_exact { (!self.none_in(window)).then_some(window) } else { self.removes.then_some(Window::ALWAYS) }
    }
}

/// Merges the rising values `added` into the rising values `all`; a value in both is kept once.
pub fn unite(all: &mut Vec<Uid>, added: &[Uid]) {
    let (mut old_count, mut new_count) = (all.len(), added.len());
    all.extend_from_slice(added);
    if old_count == 0 || new_count == 0 || all[old_count - 1] < added[0] {
        return;
    }
    // Go backward, so that no value is overwritten that is still needed.
    for at in (0..all.len()).rev() {
        if new_count == 0 {
            break;
        }
        if old_count > 0 && all[old_count - 1] > added[new_count - 1] {
            old_count -= 1;
            all[at] = all[old_count];
        } else {
            new_count -= 1;
            all[at] = added[new_count];
        }
    }
    all.dedup();
}

/// Calls `visit` with each time that any row has, rising, and with the captures of that second as (row, index), the
/// oldest row first. The last of these captures counts.
pub fn for_each_time(rows: &[&[i64]], mut visit: impl FnMut(i64, &[(usize, u32)])) {
    let mut next = vec![0u32; rows.len()];
    let mut captures = Vec::new();
    let time_of = |row: usize, next: &[u32]| rows[row].get(next[row] as usize).copied();
    while let Some(time) = (0..rows.len()).filter_map(|row| time_of(row, &next)).min() {
        captures.clear();
        for row in 0..rows.len() {
            if time_of(row, &next) == Some(time) {
                captures.push((row, next[row]));
                next[row] += 1;
            }
        }
        visit(time, &captures);
    }
}

/// Keeps the captures that count, given the captures of several rows, the oldest row first. Sorts them by time, and
/// drops removed captures.
pub fn merge(captures: &mut Vec<CaptureTime>) {
    // The sort is stable, so captures in one second stay in the order of rows.
    captures.sort_by_key(|capture| capture.time);
    captures.dedup_by(|newer, kept| {
        let is_same = newer.time == kept.time;
        if is_same {
            *kept = *newer;
        }
        is_same
    });
    captures.retain(|capture| capture.status != Status::REMOVED);
}

/// The captures of one of the rows that count in a window, as rising stretches of indexes. A stretch is given by its
/// first and its last capture, which are not blank. A blank capture between them carries the bits of the capture
/// before.
fn stretches<'a>(rows: &[Captures<'a>], row: usize, window: Window) -> Stretches<'a> {
    let captures = rows[row];
    let newer = &rows[row + 1..];
    let none = Stretches { captures, unvisited: 0..0, newer: Vec::new() };
    match window {
        Window::AsOf(as_of) => match deciding(rows, as_of) {
            Some((decides, at)) if decides == row && captures.blank.binary_search(&at).is_err() => {
                Stretches { unvisited: at as usize..at as usize + 1, ..none }
            }
            _ => none,
        },
        Window::Seen { from, to } => {
            let unvisited = between(captures.times, from, to);
            let (Some(&first), Some(&last)) =
                (captures.times[unvisited.clone()].first(), captures.times[unvisited.clone()].last())
            else {
                return none;
            };
            let among = newer.iter().map(|newer| &newer.times[between(newer.times, first, last)]);
            Stretches { unvisited, newer: among.filter(|times| !times.is_empty()).collect(), ..none }
        }
    }
}

/// The capture that decides as of a time, as row and index. It is the latest capture that counts and that no newer row
/// replaces. It may be blank.
pub fn deciding(rows: &[Captures<'_>], as_of: AsOf) -> Option<(usize, u32)> {
    let AsOf { time, since, failures } = as_of;
    // For each row, the number of captures that were not looked at yet. These come before the captures that were.
    let mut ends: Vec<usize> = rows.iter().map(|row| row.times.partition_point(|&at| at <= time)).collect();
    loop {
        let latest = |row: usize| ends[row].checked_sub(1).map(|at| (rows[row].times[at], row, at));
        let (time, row, at) = (0..rows.len()).filter_map(latest).max()?;
        let at = u32::try_from(at).ok()?;
        if failures.counts(status::status_at(rows[row].statuses, at)) {
            return (time >= since).then_some((row, at));
        }
        for (end, row) in ends.iter_mut().zip(rows) {
            *end -= usize::from(end.checked_sub(1).is_some_and(|at| row.times[at] == time));
        }
    }
}

/// The indexes of the times in a closed interval.
fn between(times: &[i64], from: i64, to: i64) -> Range<usize> {
    let first = times.partition_point(|&time| time < from);
    first..first + times[first..].partition_point(|&time| time <= to)
}

/// The stretches that [`stretches`] returns.
#[derive(Clone, Debug)]
struct Stretches<'a> {
    captures: Captures<'a>,
    /// The captures in the window that were not looked at yet.
    unvisited: Range<usize>,
    /// The remaining times of each newer row; none of these lists is empty.
    newer: Vec<&'a [i64]>,
}

impl Stretches<'_> {
    /// The next remaining capture that is not blank and that a newer row replaces, or the end.
    fn next_replaced(&mut self) -> usize {
        for at in self.unvisited.clone() {
            let time = self.captures.times[at];
            let mut is_replaced = false;
            self.newer.retain_mut(|times| {
                while times.first().is_some_and(|&first| first < time) {
                    *times = &times[1..];
                }
                is_replaced |= times.first() == Some(&time);
                !times.is_empty()
            });
            if is_replaced && !self.is_blank(at) {
                return at;
            }
            if self.newer.is_empty() {
                break;
            }
        }
        self.unvisited.end
    }
}

impl Stretches<'_> {
    fn is_blank(&self, at: usize) -> bool {
        u32::try_from(at).is_ok_and(|at| self.captures.blank.binary_search(&at).is_ok())
    }
}

impl Iterator for Stretches<'_> {
    type Item = (u32, u32);

    fn next(&mut self) -> Option<(u32, u32)> {
        while !self.unvisited.is_empty() {
            let (first, end) = (self.unvisited.start, self.next_replaced());
            self.unvisited.start = (end + 1).min(self.unvisited.end);
            if let Some(stretch) = marked_ends(first, end, self.captures.blank) {
                return Some(stretch);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::join;
    use crate::record::join::tests::{Plain, page_of, plain};
    use crate::record::page::Page;
    use crate::record::status::{Failures, push_status};
    use proptest::prelude::*;

    fn window() -> impl Strategy<Value = Window> {
        let failures = prop_oneof![Just(Failures::End), Just(Failures::Ignore), Just(Failures::All)];
        prop_oneof![
            (-1i64..31, -1i64..31).prop_map(|(from, to)| Window::Seen { from, to }),
            (-1i64..31, -1i64..31, failures).prop_map(|(time, since, failures)| Window::AsOf(AsOf {
                time,
                since,
                failures
            })),
            (-1i64..31).prop_map(Window::as_of),
            Just(Window::ALWAYS),
        ]
    }

    /// The page of these captures. Captures without links have the statuses one after the other.
    fn page_with(plain: &Plain, codes: &[u16]) -> Page {
        let mut page = page_of(plain);
        let mut codes = codes.iter().cycle();
        for (capture, links) in (0..).zip(plain.values()) {
            let code = if links.is_none() { codes.next() } else { None };
            let status = code.and_then(|&code| Status::stored(code)).unwrap_or(Status::OK);
            push_status(&mut page.statuses, capture, status);
        }
        page
    }

    /// The captures of each page.
    fn captures(pages: &[Page]) -> Vec<Captures<'_>> {
        pages.iter().map(Page::captures).collect()
    }

    proptest! {
        /// Compares with the join of the pages of all rows, which is slow and asks no row alone.
        #[test]
        fn a_look_at_each_row_finds_what_the_joined_page_has(
            rows in proptest::collection::vec(plain(), 1..5),
            codes in proptest::collection::vec(prop_oneof![Just(200u16), Just(404), Just(503), Just(0)], 1..6),
            window in window(),
        ) {
            let pages: Vec<Page> = rows.iter().map(|row| page_with(row, &codes)).collect();
            let joined = join::pages(&pages.iter().collect::<Vec<_>>()).map(|joined| joined.page).unwrap_or_default();
            let captures = captures(&pages);
            let asked = || (0..pages.len()).flat_map(|row| {
                windows(&captures, row, window).into_iter().map(move |window| (row, window))
            });
            for link in 0..13 {
                let found = asked().any(|(row, window)| pages[row].has_link(Uid(link), window));
                prop_assert_eq!(found, joined.has_link(Uid(link), window), "link {}", link);
            }
            let (mut of_row, mut links) = (Vec::new(), Vec::new());
            for (row, window) in asked() {
                pages[row].links_in(window, &mut of_row);
                unite(&mut links, &of_row);
            }
            let mut expected = Vec::new();
            joined.links_in(window, &mut expected);
            prop_assert_eq!(links, expected);
        }

        #[test]
        fn where_all_captures_of_a_row_count_it_is_not_looked_at_more_closely(
            rows in proptest::collection::vec(plain(), 1..4),
            window in window(),
        ) {
            let pages: Vec<Page> = rows.iter().map(page_of).collect();
            let captures = captures(&pages);
            let replaced = |row: usize, time| rows[row + 1..].iter().any(|newer| newer.contains_key(time));
            let Window::Seen { from, to } = window else { return Ok(()) };
            for (row, own) in rows.iter().enumerate() {
                let known = own.iter().filter(|(time, links)| (from..=to).contains(*time) && links.is_some());
                let expected = known.clone().count();
                let left = known.filter(|(time, _)| !replaced(row, time)).count();
                let windows = windows(&captures, row, window);
                match windows[..] {
                    [] => prop_assert_eq!(left, 0),
                    [only] if only == window => prop_assert!(left == expected && left > 0),
                    _ => {
                        prop_assert!(left > 0 && left < expected);
                        let counts = |time: &i64| {
                            let of_time = Captures { times: &[*time], ..Captures::default() };
                            windows.iter().any(|&window| of_time.selected(window).is_some())
                        };
                        let known = own.iter().filter(|(_, links)| links.is_some()).map(|(time, _)| time);
                        let expected: Vec<_> =
                            known.clone().filter(|time| (from..=to).contains(*time) && !replaced(row, time)).collect();
                        prop_assert_eq!(known.filter(|time| counts(time)).collect::<Vec<_>>(), expected);
                    }
                }
                if all_count(&captures, window) {
                    prop_assert_eq!(left, expected);
                }
            }
        }

        #[test]
        fn merged_captures_are_those_of_the_joined_page(rows in proptest::collection::vec(plain(), 1..5)) {
            let times = |row: &Plain| -> Vec<CaptureTime> {
                let capture = |(&time, links): (&i64, &Option<_>)| (time, links.is_some());
                let captures = row.iter().map(capture);
                captures.map(|(time, known)| CaptureTime { time, known, status: Status::OK }).collect()
            };
            let mut merged: Vec<CaptureTime> = rows.iter().flat_map(times).collect();
            merge(&mut merged);
            let mut all = Plain::new();
            rows.iter().for_each(|row| all.extend(row.clone()));
            prop_assert_eq!(merged, times(&all));
        }
    }

    #[test]
    fn a_capture_that_was_written_again_with_unknown_links_counts_as_unknown() {
        let old = Captures { times: &[10, 20, 30], ..Captures::default() };
        let new = Captures { times: &[20], blank: &[0], statuses: &[] };
        let said = |row, window| stretches(&[old, new], row, window).collect::<Vec<_>>();
        assert_eq!(said(0, Window::ALWAYS), [(0, 0), (2, 2)]);
        assert_eq!(said(1, Window::ALWAYS), []);
        assert_eq!((said(0, Window::as_of(20)), said(1, Window::as_of(20))), (vec![], vec![]));
        assert_eq!(said(0, Window::as_of(19)), [(0, 0)]);
        assert_eq!(said(0, Window::Seen { from: 30, to: 20 }), []);
    }
}
