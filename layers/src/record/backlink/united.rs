//! United backlinks: when any of several pages linked to a target, such as the pages of a host. Pages are added one by
//! one.
//!
//! Three sets of half-open intervals grow with each page: the seconds in which a page is in a stay, the seconds in
//! which a page stands, and the seconds in which it is unknown whether a page links. For all pages together the answer
//! is unknown if it is unknown for one of them and none stands. Memory: the intervals of the sets, which do not touch.
//! Cost of a page: a look-up for each of its intervals.

use std::collections::BTreeMap;

use super::{Backlink, Began, Stay};

/// The union of the pages that were added so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct United {
    /// Intervals with a page in a stay, by first second. The value is the second after the interval, and the last
    /// capture that links in it.
    stays: BTreeMap<i64, (i64, i64)>,
    /// Intervals with a page that stands, by first second. The value begins with the second after the interval.
    standing: BTreeMap<i64, (i64, i64)>,
    /// Intervals with a page for which it is unknown whether it links, as `standing`.
    unknown: BTreeMap<i64, (i64, i64)>,
    first: Option<(i64, Began)>,
    targets: u64,
}

impl United {
    /// Adds a page.
    pub(crate) fn add(&mut self, page: &Backlink) {
        self.targets = self.targets.max(page.targets);
        for stay in &page.stays {
            if self.first.is_none_or(|first| (stay.first, stay.began) < first) {
                self.first = Some((stay.first, stay.began));
            }
            insert(&mut self.stays, stay.first, (stay.until.unwrap_or(i64::MAX), stay.last));
        }
        page.each_standing(|first, end| insert(&mut self.standing, first, (end, first)));
        for &(since, until) in &page.unknown {
            insert(&mut self.unknown, since, (until.saturating_add(1), since));
        }
    }

    /// The stays of all pages together. The first stay began as it did for the page that began it, and all others have
    /// returned. `targets` is the largest number of any page.
    #[must_use]
    pub(crate) fn backlink(&self) -> Backlink {
        let mut united = Backlink { targets: self.targets, ..Backlink::default() };
        for (&first, &(end, last)) in &self.stays {
            let began = if united.stays.is_empty() { self.first.map(|first| first.1) } else { None };
            let until = (end < i64::MAX).then_some(end);
            united.stays.push(Stay { first, last, until, began: began.unwrap_or(Began::Returned) });
        }
        for (&since, &(end, _)) in &self.unknown {
            let mut from = since;
            // The previous standing interval may reach into this one.
            let before = self.standing.range(..since).next_back();
            for (&first, &(until, _)) in before.into_iter().chain(self.standing.range(since..end)) {
                united.unknown.extend((from < first).then(|| (from, first - 1)));
                from = from.max(until);
            }
            let last = if end < i64::MAX { end - 1 } else { i64::MAX };
            united.unknown.extend((from < end).then_some((from, last)));
        }
        united
    }

    /// The memory in bytes, approximately.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + 40 * (self.stays.len() + self.standing.len() + self.unknown.len())
    }
}

/// Adds an interval, unless it is empty. Intervals that overlap or touch become one, with the larger of their values.
fn insert(intervals: &mut BTreeMap<i64, (i64, i64)>, mut first: i64, (mut end, mut value): (i64, i64)) {
    if first >= end {
        return;
    }
    if let Some((&before, &(before_end, before_value))) = intervals.range(..=first).next_back()
        && before_end >= first
    {
        if before_end >= end && before_value >= value {
            return;
        }
        (first, end, value) = (before, end.max(before_end), value.max(before_value));
    }
    while let Some((&next, &(next_end, next_value))) = intervals.range(first..=end).next() {
        intervals.remove(&next);
        (end, value) = (end.max(next_end), value.max(next_value));
    }
    intervals.insert(first, (end, value));
}
