//! Counts the pages that link to a target while the pages arrive.
//!
//! ```text
//! pages of a row, by UID --[feed]--> in order of hosts, over all rows --+--> periods: counters
//!                                                                       +--> hosts: the HOSTS with the most pages
//!                                                                       +--> rows: a heap of the requested rows
//! ```
//!
//! Inside a row, the order of UIDs is the order of URL keys. In this order the pages of a host are neighbours. The
//! pages of a domain are neighbours, too, but domains inside it may lie between them. The pages of several rows are
//! merged by host. A host is therefore complete when the next host begins, and a domain when a host begins that is not
//! below the domain. Memory: the requested rows, the pages of rows that wait for other rows, and the intervals of the
//! open groups; never all pages. Cost: linear in the pages, times the logarithm of the number of requested rows.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::referrers::{Event, Order, Referrer, ReferringHost, Unit};
use super::top::{Place, Top};
use crate::record::backlink::united::United;
use crate::record::backlink::{Backlink, Period, Series, Stay};
use crate::record::capture::Linking;
use crate::record::key::{counted_prefix, domain_prefix};
use crate::record::time::RangeLength;
use crate::record::uid::Uid;

/// The most hosts in an answer.
const HOSTS: usize = 50;

/// A question about the pages that link to a target.
#[derive(Clone, Copy, Debug)]
pub struct Ranking {
    /// The unit that a row describes.
    pub unit: Unit,
    /// Returns the registrable domain of a host.
    pub domain_of: fn(&str) -> &str,
    /// The length of the periods.
    pub period: RangeLength,
    /// Rows without such an event in the interval are not selected.
    pub event: Event,
    /// A closed interval of seconds.
    pub interval: (i64, i64),
    /// The order of the rows.
    pub order: Order,
    /// Only rows after this place in the order.
    pub after: Option<Place>,
    /// The most rows in the answer.
    pub limit: usize,
}

/// The answer: the pages that link to a target.
#[derive(Clone, Debug, Default)]
pub struct Ranked {
    /// The counts of linking pages, with the first second of each period.
    pub periods: Vec<(i64, Period)>,
    /// The number of pages that ever linked.
    pub pages: u64,
    /// The number of rows.
    pub total: u64,
    /// The number of selected rows.
    pub selected: u64,
    /// The number of selected rows after the last row of the answer.
    pub left: u64,
    /// The hosts with the most pages.
    pub hosts: Vec<ReferringHost>,
    /// The selected rows, in order.
    pub rows: Vec<Referrer>,
}

/// Consecutive pages of one host, in one row of a store.
struct Stretch {
    prefix: Vec<u8>,
    host: String,
    pages: usize,
}

/// The pages of a row that wait for other rows.
#[derive(Default)]
struct Feed {
    stretches: VecDeque<Stretch>,
    pages: VecDeque<(Uid, Backlink)>,
    has_ended: bool,
}

/// A host or a domain, with the pages counted so far.
struct Group {
    /// The beginning of the keys of its URLs.
    prefix: Vec<u8>,
    name: String,
    pages: u64,
    first: (i64, Uid),
    united: United,
}

/// The order of the hosts in an answer: the largest number of pages first.
type HostPlace = (Reverse<u64>, i64, String, u64);

/// The count so far.
pub(crate) struct Tally {
    ranking: Ranking,
    feeds: Vec<Feed>,
    /// The host of the last page, with the beginning of the keys of its URLs.
    host: Option<(Vec<u8>, ReferringHost)>,
    /// The open groups, each inside the one before.
    groups: Vec<Group>,
    /// The top of the heap is the host that comes last.
    hosts: BinaryHeap<HostPlace>,
    rows: Top<Referrer>,
    series: Series,
    answer: Ranked,
    /// Approximate bytes of `rows` and of the pages in `feeds`.
    bytes: usize,
}

impl Tally {
    /// An empty count, for the pages of `rows` rows of a store.
    pub(crate) fn new(ranking: Ranking, rows: usize) -> Self {
        Self {
            feeds: std::iter::repeat_with(Feed::default).take(rows).collect(),
            host: None,
            groups: Vec::new(),
            hosts: BinaryHeap::new(),
            rows: Top::new(ranking.after, ranking.limit),
            series: Series::new(ranking.period),
            answer: Ranked::default(),
            bytes: 0,
            ranking,
        }
    }

    /// The row whose next pages are needed; `None` if no page is left.
    pub(crate) fn needs(&self) -> Option<usize> {
        self.feeds.iter().position(|feed| !feed.has_ended && feed.stretches.is_empty())
    }

    /// Adds the next pages of a row, in order of UIDs, and their hosts. A host is given for consecutive pages: its name
    /// (empty for URLs without a host) and the number of pages. A call without pages ends the row.
    pub(crate) fn feed(
        &mut self,
        row: usize,
        pages: impl IntoIterator<Item = (Uid, Backlink)>,
        hosts: impl IntoIterator<Item = (String, u64)>,
    ) {
        let Some(feed) = self.feeds.get_mut(row) else { return };
        let (before, mut bytes) = (feed.pages.len(), 0);
        feed.pages.extend(pages.into_iter().inspect(|(_, backlink)| bytes += bytes_of(backlink)));
        self.bytes += bytes;
        feed.stretches.extend(hosts.into_iter().map(|(host, pages)| Stretch {
            prefix: counted_prefix(&host),
            host,
            pages: usize::try_from(pages).unwrap_or(usize::MAX),
        }));
        feed.has_ended = feed.pages.len() == before;
        debug_assert_eq!(
            feed.stretches.iter().map(|stretch| stretch.pages).sum::<usize>(),
            feed.pages.len(),
            "a host for each page"
        );
        while self.needs().is_none() {
            let heads = self.feeds.iter().enumerate().filter_map(|(row, feed)| Some((feed.stretches.front()?, row)));
            let Some((_, row)) = heads.min_by(|one, other| one.0.prefix.cmp(&other.0.prefix)) else { return };
            let Some(stretch) = self.feeds[row].stretches.pop_front() else { return };
            self.enter(&stretch);
            for _ in 0..stretch.pages {
                let Some((page, backlink)) = self.feeds[row].pages.pop_front() else { break };
                self.bytes = self.bytes.saturating_sub(bytes_of(&backlink));
                self.count(page, backlink);
            }
        }
    }

    /// The answer. All rows must have ended.
    #[must_use]
    pub(crate) fn finish(mut self) -> Ranked {
        self.leave(|_| true);
        self.leave_host();
        let Self { hosts, rows, series, mut answer, .. } = self;
        answer.periods = series.periods();
        answer.hosts = hosts.into_sorted_vec().into_iter().map(referring).collect();
        (answer.rows, answer.left) = rows.finish();
        answer
    }

    /// Approximate bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes + self.groups.iter().map(|group| group.united.bytes()).sum::<usize>()
    }

    /// Begins pages of a host: ends the previous host and the groups that the new host is not in.
    fn enter(&mut self, stretch: &Stretch) {
        let Stretch { prefix, host, .. } = stretch;
        if self.host.as_ref().is_some_and(|(known, _)| known == prefix) {
            return;
        }
        self.leave_host();
        let begun = ReferringHost { host: host.clone(), pages: 0, standing: 0, first: i64::MAX };
        self.host = Some((prefix.clone(), begun));
        let (name, of_group) = match self.ranking.unit {
            Unit::Page => return,
            Unit::Host => (host.as_str(), prefix.clone()),
            Unit::Domain => {
                let domain = (self.ranking.domain_of)(host);
                (domain, domain_prefix(domain).unwrap_or_else(|| prefix.clone()))
            }
        };
        self.leave(|group| !prefix.starts_with(&group.prefix));
        // The innermost group comes last.
        let known = self.groups.iter().position(|group| group.prefix == of_group);
        let mut group = known.map(|at| self.groups.remove(at)).unwrap_or_else(|| Group {
            prefix: of_group,
            name: name.to_owned(),
            pages: 0,
            first: (i64::MAX, Uid(u64::MAX)),
            united: United::default(),
        });
        group.name = name.to_owned();
        self.groups.push(group);
    }

    fn leave_host(&mut self) {
        let Some((_, ReferringHost { host, pages, standing, first })) = self.host.take() else { return };
        self.hosts.push((Reverse(pages), first, host, standing));
        if self.hosts.len() > HOSTS {
            self.hosts.pop();
        }
    }

    /// Ends the groups for which `is_over` is true.
    fn leave(&mut self, is_over: impl Fn(&Group) -> bool) {
        let (over, open) = std::mem::take(&mut self.groups).into_iter().partition(is_over);
        self.groups = open;
        let over: Vec<Group> = over;
        for Group { name, pages, first, united, .. } in over {
            self.row(Referrer { page: first.1, name: Some(name), pages, backlink: united.backlink() });
        }
    }

    /// Counts a page of the current host.
    fn count(&mut self, page: Uid, backlink: Backlink) {
        self.answer.pages += 1;
        let first = backlink.first();
        if let Some((_, host)) = &mut self.host {
            host.pages += 1;
            host.standing += u64::from(backlink.links_at(i64::MAX) == Linking::Yes);
            host.first = host.first.min(first);
        }
        match self.groups.last_mut() {
            Some(group) => {
                group.pages += 1;
                group.first = group.first.min((first, page));
                group.united.add(&backlink);
            }
            None => self.row(Referrer { page, name: None, pages: 1, backlink }),
        }
    }

    fn row(&mut self, row: Referrer) {
        let Ranking { event, interval, order, .. } = self.ranking;
        self.answer.total += 1;
        self.series.add(&row.backlink);
        let is_all = (event, interval) == (Event::Any, (i64::MIN, i64::MAX));
        if !is_all && !row.has(event, interval) {
            return;
        }
        self.answer.selected += 1;
        self.bytes += bytes_of(&row.backlink);
        if let Some(row) = self.rows.put(order.place(&row), row) {
            self.bytes = self.bytes.saturating_sub(bytes_of(&row.backlink));
        }
    }
}

/// Approximate bytes of a page or a row in memory.
fn bytes_of(backlink: &Backlink) -> usize {
    size_of::<(Place, Referrer)>()
        + backlink.stays.capacity() * size_of::<Stay>()
        + backlink.unknown.capacity() * size_of::<(i64, i64)>()
}

fn referring((Reverse(pages), first, host, standing): HostPlace) -> ReferringHost {
    ReferringHost { host, pages, standing, first }
}

#[cfg(test)]
mod tests;
