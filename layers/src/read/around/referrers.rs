//! Who links to a target: backlinks by page, by host or by domain, selected and in an order, and their series.
//!
//! ```text
//! Links::backlinks -> pages, each with its Backlink -+-> Referrers::rows (a page, a host, a domain) -> keep_first
//!                        names of their hosts -------+                                        \--> series
//! ```
//!
//! The rule of stays is that of [`mod@crate::record::backlink`]. Times are seconds, UTC. Memory: the backlinks of all
//! pages, and those of their hosts or domains. Cost: linear in pages, and the sort.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashMap;

use crate::record::backlink::{Backlink, Began, Period, Series};
use crate::record::capture::Linking;
use crate::record::time::RangeLength;
use crate::record::uid::Uid;

/// What is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// Pages.
    #[default]
    Page,
    /// Hosts of pages.
    Host,
    /// Registrable domains of hosts.
    Domain,
}

impl Unit {
    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Page => "page",
            Unit::Host => "host",
            Unit::Domain => "domain",
        }
    }
}

/// Which rows are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Event {
    /// Those that came or went: all, in an interval without bounds.
    #[default]
    Any,
    /// Those that were found, new or returned.
    Came,
    /// Those that were new.
    New,
    /// Those that returned.
    Returned,
    /// Those that were lost.
    Lost,
    /// Those that stand at the end of the interval.
    Standing,
}

impl Event {
    /// Each with its word.
    pub fn words() -> [(&'static str, Event); 6] {
        [
            ("any", Event::Any),
            ("came", Event::Came),
            ("new", Event::New),
            ("returned", Event::Returned),
            ("lost", Event::Lost),
            ("standing", Event::Standing),
        ]
    }
}

/// In which order rows are shown; rows that are equal in it go by their first link, then by UID.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Who linked first comes first.
    #[default]
    First,
    /// Who linked last comes first.
    Last,
    /// Whoever has the most pages comes first, or of pages the one that links to the most URLs of the target.
    Most,
    /// In the order of the store: pages of one host stand together.
    Key,
}

impl Order {
    /// Each with its word.
    pub fn words() -> [(&'static str, Order); 4] {
        [("first", Order::First), ("last", Order::Last), ("most", Order::Most), ("key", Order::Key)]
    }

    fn compare(self, one: &Referrer<'_>, other: &Referrer<'_>) -> Ordering {
        let most = |row: &Referrer<'_>| (row.pages, row.backlink.targets);
        let own = match self {
            Order::First => Ordering::Equal,
            Order::Last => other.last().cmp(&one.last()),
            Order::Most => most(other).cmp(&most(one)),
            Order::Key => one.page.cmp(&other.page),
        };
        own.then_with(|| (one.backlink.first(), one.page).cmp(&(other.backlink.first(), other.page)))
    }
}

/// A page, a host or a domain that links to a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Referrer<'a> {
    /// The page; of a host or a domain the page that linked first.
    pub page: Uid,
    /// The host or the domain; `None` for a page.
    pub name: Option<String>,
    /// How many pages of it ever linked.
    pub pages: u64,
    /// When it linked.
    pub backlink: Cow<'a, Backlink>,
}

impl Referrer<'_> {
    /// Whether it has such an event in the closed interval.
    pub fn has(&self, event: Event, (from, to): (i64, i64)) -> bool {
        let within = |time: i64| (from..=to).contains(&time);
        let began = |word: Option<Began>| {
            let stays = self.backlink.stays.iter();
            stays.filter(|stay| word.is_none_or(|word| stay.began == word)).any(|stay| within(stay.first))
        };
        let lost = || self.backlink.stays.iter().any(|stay| stay.gone.is_some_and(within));
        match event {
            Event::Any => began(None) || lost(),
            Event::Came => began(None),
            Event::New => began(Some(Began::New)),
            Event::Returned => began(Some(Began::Returned)),
            Event::Lost => lost(),
            Event::Standing => self.backlink.links_at(to) == Linking::Yes,
        }
    }

    fn last(&self) -> i64 {
        self.backlink.stays.last().map_or(i64::MIN, |stay| stay.last)
    }
}

/// Leaves the first `count` rows in an order. Cost: linear in the rows, and the sort of those that are left.
pub fn keep_first(rows: &mut Vec<Referrer<'_>>, order: Order, count: usize) {
    let compare = |one: &Referrer<'_>, other: &Referrer<'_>| order.compare(one, other);
    if count < rows.len() {
        rows.select_nth_unstable_by(count, compare);
        rows.truncate(count);
    }
    rows.sort_unstable_by(compare);
}

/// How many of the rows link, period by period.
pub fn series(rows: &[Referrer<'_>], length: RangeLength) -> Vec<(i64, Period)> {
    let mut series = Series::new(length);
    rows.iter().for_each(|row| series.add(&row.backlink));
    series.periods()
}

/// What is said of a host of pages that link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferringHost {
    /// Its name.
    pub host: String,
    /// Pages that ever linked.
    pub pages: u64,
    /// Pages that link as of their latest captures.
    pub standing: u64,
    /// The first capture with a link.
    pub first: i64,
}

/// The pages that link to a target, and their hosts.
#[derive(Clone, Debug, Default)]
pub struct Referrers {
    pages: Vec<(Uid, Backlink)>,
    /// For each page the place of its host in `hosts`.
    host_of: Vec<u32>,
    /// Each once; empty for URLs without a host.
    hosts: Vec<String>,
}

impl Referrers {
    /// Pages as [`crate::Links::backlinks`] gives them, with the host of each: empty for a URL without one.
    pub fn new<S: AsRef<str>>(pages: Vec<(Uid, Backlink)>, hosts: impl IntoIterator<Item = S>) -> Self {
        let (mut host_of, mut names) = (Vec::with_capacity(pages.len()), Vec::<String>::new());
        let mut places: HashMap<String, u32> = HashMap::new();
        for host in hosts {
            let host = host.as_ref();
            let last = host_of.last().copied().filter(|&last: &u32| names[last as usize] == host);
            host_of.push(last.or_else(|| places.get(host).copied()).unwrap_or_else(|| {
                let place = u32::try_from(names.len()).unwrap_or(u32::MAX);
                places.insert(host.to_owned(), place);
                names.push(host.to_owned());
                place
            }));
        }
        debug_assert_eq!(pages.len(), host_of.len(), "a host for each page");
        Self { pages, host_of, hosts: names }
    }

    /// How many pages there are.
    pub fn len(&self) -> usize {
        self.pages.len()
    }

    /// Whether nothing links.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// The hosts of the pages, those with the most pages first.
    pub fn hosts(&self) -> Vec<ReferringHost> {
        let host = |name: &String| ReferringHost { host: name.clone(), pages: 0, standing: 0, first: i64::MAX };
        let mut hosts: Vec<ReferringHost> = self.hosts.iter().map(host).collect();
        for ((_, backlink), &place) in self.pages.iter().zip(&self.host_of) {
            let host = &mut hosts[place as usize];
            host.pages += 1;
            host.standing += u64::from(backlink.links_at(i64::MAX) == Linking::Yes);
            host.first = host.first.min(backlink.first());
        }
        hosts.sort_by(|one, other| (other.pages, one.first, &one.host).cmp(&(one.pages, other.first, &other.host)));
        hosts
    }

    /// A row for each page, host or domain, in order of their first pages; `domain_of` gives the registrable domain of
    /// a host.
    pub fn rows(&self, unit: Unit, domain_of: fn(&str) -> &str) -> Vec<Referrer<'_>> {
        let Self { pages, host_of, hosts } = self;
        if unit == Unit::Page {
            return pages
                .iter()
                .map(|(page, backlink)| Referrer {
                    page: *page,
                    name: None,
                    pages: 1,
                    backlink: Cow::Borrowed(backlink),
                })
                .collect();
        }
        let mut groups: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, &place) in host_of.iter().enumerate() {
            let host = hosts[place as usize].as_str();
            groups.entry(if unit == Unit::Domain { domain_of(host) } else { host }).or_default().push(at);
        }
        let row = |(name, members): (&str, Vec<usize>)| Referrer {
            page: members.iter().map(|&at| (pages[at].1.first(), pages[at].0)).min().map_or(Uid(0), |first| first.1),
            name: Some(name.to_owned()),
            pages: members.len() as u64,
            backlink: Cow::Owned(Backlink::united(members.iter().map(|&at| &pages[at].1))),
        };
        let mut rows: Vec<Referrer<'_>> = groups.into_iter().map(row).collect();
        rows.sort_unstable_by_key(|row| row.page);
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::backlink::Stay;

    fn page(uid: u64, first: i64, gone: Option<i64>) -> (Uid, Backlink) {
        let stay = Stay { first, last: first, gone, began: Began::New };
        (Uid(uid), Backlink { stays: vec![stay], unknown: vec![], targets: 1 })
    }

    #[test]
    fn rows_are_pages_hosts_or_domains() {
        let pages = vec![page(1, 50, Some(60)), page(2, 10, Some(20)), page(5, 15, None), page(9, 30, None)];
        let hosts = ["a.example", "a.example", "b.a.example", "other.test"];
        let referrers = Referrers::new(pages, hosts);
        let domain_of = |host: &str| -> &str { if host.ends_with("a.example") { "a.example" } else { "other.test" } };
        let shown = |unit| {
            let mut rows = referrers.rows(unit, domain_of);
            keep_first(&mut rows, Order::First, usize::MAX);
            rows.into_iter().map(|row| (row.name.unwrap_or_default(), row.page.0, row.pages)).collect::<Vec<_>>()
        };
        let row = |name: &str, page, pages| (name.to_owned(), page, pages);
        assert_eq!(shown(Unit::Page), [row("", 2, 1), row("", 5, 1), row("", 9, 1), row("", 1, 1)]);
        assert_eq!(shown(Unit::Host), [row("a.example", 2, 2), row("b.a.example", 5, 1), row("other.test", 9, 1)]);
        assert_eq!(shown(Unit::Domain), [row("a.example", 2, 3), row("other.test", 9, 1)]);
        let hosts = referrers.hosts();
        assert_eq!(
            (hosts[0].host.as_str(), hosts[0].pages, hosts[0].standing, hosts[0].first),
            ("a.example", 2, 0, 10)
        );
        let rows = referrers.rows(Unit::Host, domain_of);
        let with = |event, interval| rows.iter().filter(|row| row.has(event, interval)).count();
        assert_eq!(with(Event::Any, (i64::MIN, i64::MAX)), 3);
        assert_eq!((with(Event::Returned, (50, 50)), with(Event::New, (50, 50))), (1, 0));
        assert_eq!((with(Event::Lost, (0, 30)), with(Event::Came, (0, 30)), with(Event::Standing, (0, 55))), (1, 3, 3));
    }
}
