//! The pages that count among the pages that link to a target: one rule for layers, cells and servers.

use std::ops::Range;

use crate::record::uid::Uid;

/// The pages that count; by default, all pages. Intervals of UIDs rise and do not overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Only pages in these intervals; `None` for all pages.
    pub within: Option<Vec<Range<Uid>>>,
    /// Pages that do not count.
    pub except: Vec<Range<Uid>>,
}

impl Scope {
    /// Whether a page counts.
    #[must_use]
    pub fn has(&self, page: Uid) -> bool {
        self.within.as_deref().is_none_or(|within| is_in(within, page)) && !is_in(&self.except, page)
    }

    /// The part of an interval that contains all its pages that count. The part may also have pages that do not count.
    #[must_use]
    pub fn span(&self, uids: Range<Uid>) -> Range<Uid> {
        let Some(within) = &self.within else { return uids };
        let first = within.partition_point(|interval| interval.end <= uids.start);
        let end = within.partition_point(|interval| interval.start < uids.end);
        match within.get(first..end) {
            Some([first, .., last]) => first.start.max(uids.start)..last.end.min(uids.end),
            Some([only]) => only.start.max(uids.start)..only.end.min(uids.end),
            _ => uids.start..uids.start,
        }
    }
}

fn is_in(intervals: &[Range<Uid>], page: Uid) -> bool {
    intervals.get(intervals.partition_point(|uids| uids.end <= page)).is_some_and(|uids| uids.start <= page)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intervals(all: &[(u64, u64)]) -> Vec<Range<Uid>> {
        all.iter().map(|&(start, end)| Uid(start)..Uid(end)).collect()
    }

    #[test]
    fn a_span_is_the_least_interval_with_all_pages_that_count() {
        let sets: [&[(u64, u64)]; 4] = [&[], &[(2, 4)], &[(3, 4), (8, 12)], &[(0, 1), (3, 5), (7, 9)]];
        let withins = sets.map(Some).into_iter().chain([None]);
        for (within, except) in withins.flat_map(|within| sets.map(|except| (within, except))) {
            let scope = Scope { within: within.map(intervals), except: intervals(except) };
            for (start, end) in (0..12).flat_map(|start| (start..12).map(move |end| (start, end))) {
                let is_within = |page: u64| {
                    within.is_none_or(|within| within.iter().any(|&(start, end)| (start..end).contains(&page)))
                };
                let pages: Vec<u64> = (start..end).filter(|&page| is_within(page)).collect();
                let span = scope.span(Uid(start)..Uid(end));
                match (pages.first(), pages.last()) {
                    (Some(&first), Some(&last)) => assert_eq!(span, Uid(first)..Uid(last + 1), "{within:?}"),
                    _ => assert!(span.is_empty(), "{within:?}"),
                }
                for page in start..end {
                    let is_except = except.iter().any(|&(start, end)| (start..end).contains(&page));
                    assert_eq!(scope.has(Uid(page)), is_within(page) && !is_except, "{page} of {scope:?}");
                }
            }
        }
    }
}
