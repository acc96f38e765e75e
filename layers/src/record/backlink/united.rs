//! When any of several pages linked to a target: the pages of a host, say, which come one after the other.
//!
//! Three sets of half-open intervals grow with each page: the seconds in which a page is in a stay, those in which a
//! page stands, and those in which it is unknown whether a page links. It is unknown of all pages together while it is
//! so of one of them and none stands. Memory: the intervals of the sets, which do not touch. Cost of a page: a look-up
//! for each of its intervals.

use std::collections::BTreeMap;

use super::{Backlink, Began, Stay};

/// The pages so far.
#[derive(Clone, Debug, Default)]
pub struct United {
    /// By its first second: the second after an interval with a page in a stay, and the last capture that links in it.
    stays: BTreeMap<i64, (i64, i64)>,
    /// By its first second: the second after an interval with a page that stands.
    standing: BTreeMap<i64, (i64, i64)>,
    /// The same of pages of which it is unknown whether they link.
    unknown: BTreeMap<i64, (i64, i64)>,
    first: Option<(i64, Began)>,
    targets: u64,
}

impl United {
    /// Adds a page.
    pub fn add(&mut self, page: &Backlink) {
        self.targets = self.targets.max(page.targets);
        for stay in &page.stays {
            if self.first.is_none_or(|first| (stay.first, stay.began) < first) {
                self.first = Some((stay.first, stay.began));
            }
            insert(&mut self.stays, stay.first, (stay.gone.unwrap_or(i64::MAX), stay.last));
        }
        page.each_standing(|first, end| insert(&mut self.standing, first, (end, first)));
        for &(since, until) in &page.unknown {
            insert(&mut self.unknown, since, (until.saturating_add(1), since));
        }
    }

    /// When any of the pages linked. The first stay began as that of the page that began it, all others have returned.
    /// `targets` is the largest number of one page.
    #[must_use]
    pub fn backlink(&self) -> Backlink {
        let mut united = Backlink { targets: self.targets, ..Backlink::default() };
        for (&first, &(end, last)) in &self.stays {
            let began = if united.stays.is_empty() { self.first.map(|first| first.1) } else { None };
            let gone = (end < i64::MAX).then_some(end);
            united.stays.push(Stay { first, last, gone, began: began.unwrap_or(Began::Returned) });
        }
        for (&since, &(end, _)) in &self.unknown {
            let mut from = since;
            // The interval that begins before may reach into this one.
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

    /// Bytes of memory, about.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + 40 * (self.stays.len() + self.standing.len() + self.unknown.len())
    }
}

/// Adds an interval, unless it is empty. Intervals that meet or touch become one, with the larger of their values.
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
