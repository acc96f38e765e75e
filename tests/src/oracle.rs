//! The slow oracle: captures as sets in a map, and every question answered by going through all of them.
//!
//! Two captures of one page in one second are one capture with the links of both; it is unknown only if both are.

use std::collections::{BTreeMap, BTreeSet};

/// A URL, canonical and without fragment.
pub type Url = String;
/// Seconds since 1970, UTC.
pub type Time = i64;

/// Captures with their links; `None` where the links are unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Oracle {
    captures: BTreeMap<(Url, Time), Option<BTreeSet<Url>>>,
    sources: BTreeMap<Url, BTreeSet<Url>>,
}

/// What a question about links is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Captures in the closed interval.
    Seen(Time, Time),
    /// The latest capture not after.
    AsOf(Time),
}

/// The numbers of a whole crawl.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Distinct URLs: pages and link targets.
    pub urls: u64,
    /// URLs with a capture.
    pub pages: u64,
    /// Distinct (page, second).
    pub captures: u64,
    /// Those whose links are unknown.
    pub unknown_captures: u64,
    /// Distinct (page, link).
    pub links: u64,
    /// Distinct (page, second, link).
    pub occurrences: u64,
}

impl Oracle {
    /// Adds a capture with known links.
    pub fn add<'a>(&mut self, page: &str, time: Time, links: impl IntoIterator<Item = &'a str>) {
        let all = self.captures.entry((page.to_owned(), time)).or_default().get_or_insert_default();
        for link in links {
            all.insert(link.to_owned());
            self.sources.entry(link.to_owned()).or_default().insert(page.to_owned());
        }
    }

    /// Adds a capture with unknown links.
    pub fn add_unknown(&mut self, page: &str, time: Time) {
        self.captures.entry((page.to_owned(), time)).or_default();
    }

    /// All URLs, sorted as text.
    pub fn urls(&self) -> BTreeSet<&str> {
        let pages = self.captures.keys().map(|(page, _)| page.as_str());
        pages.chain(self.sources.keys().map(String::as_str)).collect()
    }

    /// Times of all captures, rising, each once.
    pub fn times(&self) -> BTreeSet<Time> {
        self.captures.keys().map(|&(_, time)| time).collect()
    }

    fn of(&self, page: &str) -> impl DoubleEndedIterator<Item = (Time, Option<&BTreeSet<Url>>)> {
        let range = (page.to_owned(), Time::MIN)..=(page.to_owned(), Time::MAX);
        self.captures.range(range).map(|((_, time), links)| (*time, links.as_ref()))
    }

    /// Captures of a page: time, and whether the links are known.
    pub fn captures(&self, page: &str) -> Vec<(Time, bool)> {
        self.of(page).map(|(time, links)| (time, links.is_some())).collect()
    }

    /// Links of a page.
    pub fn out_links(&self, page: &str, when: When) -> BTreeSet<&str> {
        let known: Vec<_> = match when {
            When::Seen(from, to) => {
                self.of(page).filter(|(time, _)| (from..=to).contains(time)).filter_map(|(_, links)| links).collect()
            }
            When::AsOf(at) => {
                self.of(page).rfind(|(time, _)| *time <= at).and_then(|(_, links)| links).into_iter().collect()
            }
        };
        known.into_iter().flatten().map(String::as_str).collect()
    }

    /// Pages whose links hold the URL.
    pub fn in_links(&self, url: &str, when: When) -> BTreeSet<&str> {
        let sources = self.sources.get(url).into_iter().flatten().map(String::as_str);
        sources.filter(|source| self.out_links(source, when).contains(url)).collect()
    }

    /// For each link of a page, the first and last capture of each run of consecutive known captures that have it.
    pub fn lifespans(&self, page: &str) -> BTreeSet<(&str, Time, Time)> {
        let known: Vec<_> = self.of(page).filter_map(|(time, links)| Some((time, links?))).collect();
        let mut spans = BTreeSet::new();
        for link in self.out_links(page, When::Seen(Time::MIN, Time::MAX)) {
            for run in known.chunk_by(|a, b| a.1.contains(link) == b.1.contains(link)) {
                if run[0].1.contains(link) {
                    spans.insert((link, run[0].0, run[run.len() - 1].0));
                }
            }
        }
        spans
    }

    /// The numbers of the crawl.
    pub fn totals(&self) -> Totals {
        let known = || self.captures.values().flatten();
        Totals {
            urls: self.urls().len() as u64,
            pages: self.captures.keys().map(|(page, _)| page).collect::<BTreeSet<_>>().len() as u64,
            captures: self.captures.len() as u64,
            unknown_captures: (self.captures.len() - known().count()) as u64,
            links: self.sources.values().map(|sources| sources.len() as u64).sum(),
            occurrences: known().map(|links| links.len() as u64).sum(),
        }
    }

    /// The same crawl without the URLs that were never captured and that fewer than `least` pages link to.
    pub fn with_min_sources(&self, least: u64) -> Oracle {
        let pages: BTreeSet<&str> = self.captures.keys().map(|(page, _)| page.as_str()).collect();
        let kept = |url: &str| pages.contains(url) || self.sources[url].len() as u64 >= least;
        let mut oracle = Oracle::default();
        for ((page, time), links) in &self.captures {
            match links {
                Some(links) => oracle.add(page, *time, links.iter().map(String::as_str).filter(|url| kept(url))),
                None => oracle.add_unknown(page, *time),
            }
        }
        oracle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_a_small_crawl_worked_by_hand() {
        let mut oracle = Oracle::default();
        oracle.add("p", 10, ["a", "b"]);
        oracle.add("p", 20, ["b"]);
        oracle.add_unknown("p", 30);
        oracle.add("p", 40, ["a"]);
        oracle.add("p", 40, ["p"]);
        assert_eq!(oracle.out_links("p", When::Seen(15, 45)), ["a", "b", "p"].into());
        assert_eq!(oracle.out_links("p", When::AsOf(29)), ["b"].into());
        assert_eq!(oracle.out_links("p", When::AsOf(30)), [].into());
        assert_eq!(oracle.in_links("b", When::AsOf(25)), ["p"].into());
        assert_eq!(oracle.in_links("b", When::AsOf(41)), [].into());
        let spans = [("a", 10, 10), ("a", 40, 40), ("b", 10, 20), ("p", 40, 40)];
        assert_eq!(oracle.lifespans("p"), spans.into());
        let totals = Totals { urls: 3, pages: 1, captures: 4, unknown_captures: 1, links: 3, occurrences: 5 };
        assert_eq!(oracle.totals(), totals);
        assert_eq!(oracle.with_min_sources(2).totals().urls, 1);
    }
}
