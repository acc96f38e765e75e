//! The slow oracle: it keeps captures as sets in a map, and goes through all captures to answer a question.
//!
//! Two captures of one page in one second are one capture with the links of both. The links of that capture are unknown
//! only if the links of both are unknown. A failure (a status of 400 or above, and no links) does not count beside
//! another capture of the same second.
//!
//! A cut capture has the links that were found. Of other links, it is unknown whether the page had them, unless another
//! record of the same second was read whole.

use std::collections::{BTreeMap, BTreeSet};

/// A canonical URL without a fragment.
pub type Url = String;
/// Seconds since 1970, UTC.
pub type Time = i64;

/// Captures with their links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Oracle {
    captures: BTreeMap<(Url, Time), Records>,
    sources: BTreeMap<Url, BTreeSet<Url>>,
}

/// The records of one page and second.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Records {
    /// The links of all records with known links that are not cut, and the lowest status of these records.
    links: Option<(u16, BTreeSet<Url>)>,
    /// The links that were found in all cut records, and the lowest status of these records.
    cut: Option<(u16, BTreeSet<Url>)>,
    /// Whether one of the records is a revisit with unknown links.
    is_unknown: bool,
    /// The lowest status of the failures.
    failure: Option<u16>,
}

/// A capture of a page.
struct Capture<'a> {
    time: Time,
    /// `None` if the links are unknown.
    links: Option<BTreeSet<&'a str>>,
    status: u16,
    is_cut: bool,
}

impl Records {
    fn at(&self, time: Time) -> Capture<'_> {
        let all = [&self.links, &self.cut].into_iter().flatten();
        let links = Some(all.flat_map(|(_, links)| links).map(String::as_str).collect());
        match (&self.links, &self.cut, self.failure) {
            (Some((status @ (200 | 203), _)), ..) | (Some((status, _)), None, _) => {
                Capture { time, links, status: *status, is_cut: false }
            }
            (_, Some((status, _)), _) => Capture { time, links, status: *status, is_cut: true },
            (None, None, Some(status)) if !self.is_unknown => Capture { time, links, status, is_cut: false },
            _ => Capture { time, links: None, status: 200, is_cut: false },
        }
    }
}

impl Capture<'_> {
    /// Whether the capture tells of every link whether the page had it.
    fn is_whole(&self) -> bool {
        self.links.is_some() && !self.is_cut
    }

    /// Whether the page had any of some links; `None` if this is unknown.
    fn has(&self, link: impl Fn(&str) -> bool) -> Option<bool> {
        let found = self.links.iter().flatten().any(|own| link(own));
        (found || self.is_whole()).then_some(found)
    }
}

/// The failures that end a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// 4xx, except 429.
    #[default]
    Gone,
    /// No failure.
    None,
    /// All failures.
    Each,
}

impl Ending {
    /// Whether a capture with this status counts as the latest capture.
    pub fn counts(self, status: u16) -> bool {
        let is_of_server = status == 429 || status >= 500;
        match self {
            Ending::Gone => !is_of_server,
            Ending::None => status < 400,
            Ending::Each => true,
        }
    }
}

/// The time that a question about links refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// All captures in the closed interval.
    Seen(Time, Time),
    /// The latest capture that is not after this time.
    AsOf(Time),
    /// Like `AsOf`, but the capture is at most this number of seconds old, and this rule for failures applies.
    AsOfBy(Time, Time, Ending),
}

/// The counts of a whole crawl.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// The number of distinct URLs: pages and link targets.
    pub urls: u64,
    /// The number of URLs with a capture.
    pub pages: u64,
    /// The number of distinct (page, second).
    pub captures: u64,
    /// The number of captures with unknown links.
    pub unknown_captures: u64,
    /// The number of cut captures.
    pub cut_captures: u64,
    /// The number of captures that are failures.
    pub failed_captures: u64,
    /// The number of distinct (page, link).
    pub links: u64,
    /// The number of distinct (page, second, link).
    pub occurrences: u64,
}

/// A stretch of time in which a page linked: the first and the last capture with a link, the first capture without a
/// link, and how the stay began.
pub type Stay = (Time, Time, Option<Time>, &'static str);

impl Oracle {
    /// Adds a capture with known links.
    pub fn add<'a>(&mut self, page: &str, time: Time, links: impl IntoIterator<Item = &'a str>) {
        self.add_with(200, page, time, links);
    }

    /// Adds a capture with known links and a status below 400.
    pub fn add_with<'a>(&mut self, status: u16, page: &str, time: Time, links: impl IntoIterator<Item = &'a str>) {
        let records = self.captures.entry((page.to_owned(), time)).or_default();
        let (least, all) = records.links.get_or_insert_with(|| (status, BTreeSet::new()));
        *least = status.min(*least);
        for link in links {
            all.insert(link.to_owned());
            self.sources.entry(link.to_owned()).or_default().insert(page.to_owned());
        }
    }

    /// Adds a cut capture with the links that were found, and the status 200.
    pub fn add_cut<'a>(&mut self, page: &str, time: Time, links: impl IntoIterator<Item = &'a str>) {
        let records = self.captures.entry((page.to_owned(), time)).or_default();
        let (_, all) = records.cut.get_or_insert_with(|| (200, BTreeSet::new()));
        for link in links {
            all.insert(link.to_owned());
            self.sources.entry(link.to_owned()).or_default().insert(page.to_owned());
        }
    }

    /// Adds a capture with unknown links.
    pub fn add_unknown(&mut self, page: &str, time: Time) {
        self.captures.entry((page.to_owned(), time)).or_default().is_unknown = true;
    }

    /// Adds a failure.
    pub fn add_failure(&mut self, status: u16, page: &str, time: Time) {
        let records = self.captures.entry((page.to_owned(), time)).or_default();
        records.failure = Some(records.failure.map_or(status, |least| least.min(status)));
    }

    /// All URLs, sorted as text.
    pub fn urls(&self) -> BTreeSet<&str> {
        let pages = self.captures.keys().map(|(page, _)| page.as_str());
        pages.chain(self.sources.keys().map(String::as_str)).collect()
    }

    /// The distinct times of all captures, ascending.
    pub fn times(&self) -> BTreeSet<Time> {
        self.captures.keys().map(|&(_, time)| time).collect()
    }

    fn of(&self, page: &str) -> impl DoubleEndedIterator<Item = Capture<'_>> {
        let range = (page.to_owned(), Time::MIN)..=(page.to_owned(), Time::MAX);
        self.captures.range(range).map(|((_, time), records)| records.at(*time))
    }

    /// The captures of a page: the time, and whether the links are known.
    pub fn captures(&self, page: &str) -> Vec<(Time, bool)> {
        self.of(page).map(|capture| (capture.time, capture.links.is_some())).collect()
    }

    /// The statuses of the captures of a page, in the order of [`Oracle::captures`].
    pub fn statuses(&self, page: &str) -> Vec<u16> {
        self.of(page).map(|capture| capture.status).collect()
    }

    /// The links of a page in a window.
    pub fn out_links(&self, page: &str, when: When) -> BTreeSet<&str> {
        self.selected(page, when).into_iter().filter_map(|capture| capture.links).flatten().collect()
    }

    /// The captures of a page that a question is about.
    fn selected(&self, page: &str, when: When) -> Vec<Capture<'_>> {
        let (at, age, ending) = match when {
            When::Seen(from, to) => {
                return self.of(page).filter(|capture| (from..=to).contains(&capture.time)).collect();
            }
            When::AsOf(at) => (at, Time::MAX, Ending::Gone),
            When::AsOfBy(at, age, ending) => (at, age, ending),
        };
        let counts = |capture: &Capture<'_>| capture.time <= at && ending.counts(capture.status);
        let latest = self.of(page).rfind(counts).filter(|capture| at.saturating_sub(capture.time) <= age);
        latest.into_iter().collect()
    }

    /// Whether a page is there: one of the captures that the question is about is not a failure.
    pub fn is_alive(&self, page: &str, when: When) -> bool {
        self.selected(page, when).iter().any(|capture| capture.status < 400)
    }

    /// Whether a capture that the question is about leaves links of the page unknown.
    pub fn is_unknown(&self, page: &str, when: When) -> bool {
        self.selected(page, when).iter().any(|capture| !capture.is_whole())
    }

    /// The links that a page is known to have gained and lost between two dates. A link is gained only if it is known
    /// that the page lacked it at the first date, and lost only if it is known that the page lacks it at the second.
    pub fn changed(&self, page: &str, dates: [When; 2]) -> [BTreeSet<&str>; 2] {
        let [before, after] = dates.map(|date| self.out_links(page, date));
        let known = |links: BTreeSet<_>, date| if self.is_unknown(page, date) { BTreeSet::new() } else { links };
        [known(&after - &before, dates[0]), known(&before - &after, dates[1])]
    }

    /// The links that a page may have as of a time: the capture that decides leaves them unknown, and in the last
    /// capture that tells of them they are there.
    pub fn last_known(&self, page: &str, when: When) -> BTreeSet<&str> {
        let Some(decides) = self.selected(page, when).pop() else { return BTreeSet::new() };
        let (since, ending) = match when {
            When::AsOfBy(at, age, ending) => (at.saturating_sub(age), ending),
            _ => (Time::MIN, Ending::Gone),
        };
        let told = |link: &str| {
            let before = self.of(page).filter(|capture| capture.time <= decides.time && ending.counts(capture.status));
            let mut telling = before.filter_map(|capture| Some((capture.time, capture.has(|own| own == link)?)));
            telling.next_back().is_some_and(|(time, has)| has && time >= since)
        };
        let ever = self.out_links(page, When::Seen(Time::MIN, Time::MAX));
        ever.into_iter().filter(|&link| decides.has(|own| own == link).is_none() && told(link)).collect()
    }

    /// The pages that ever linked to a URL, each with the time of the first capture that has the link.
    pub fn first(&self, url: &str) -> BTreeSet<(Time, &str)> {
        let sources = self.in_links(url, When::Seen(Time::MIN, Time::MAX)).into_iter();
        let has = |capture: &Capture<'_>| capture.has(|link| link == url) == Some(true);
        sources.filter_map(|source| Some((self.of(source).find(has)?.time, source))).collect()
    }

    /// The stays of each page that ever linked to one of some URLs: the first and the last capture with a link, the
    /// first later capture without a link, and how the stay began.
    pub fn backlinks(&self, target: &BTreeSet<&str>) -> BTreeMap<&str, Vec<Stay>> {
        let pages: BTreeSet<&str> =
            target.iter().filter_map(|url| self.sources.get(*url)).flatten().map(String::as_str).collect();
        let stays = |page: &str| {
            let counting = self.of(page).filter(|capture| Ending::Gone.counts(capture.status));
            let telling: Vec<(Time, bool)> = counting
                .filter_map(|capture| Some((capture.time, capture.has(|link| target.contains(link))?)))
                .collect();
            let stretches: Vec<&[(Time, bool)]> = telling.chunk_by(|one, other| one.1 == other.1).collect();
            let mut stays: Vec<Stay> = Vec::new();
            for (number, stretch) in stretches.iter().enumerate().filter(|(_, stretch)| stretch[0].1) {
                let began = if number == 0 {
                    "found"
                } else if stays.is_empty() {
                    "new"
                } else {
                    "returned"
                };
                let gone = stretches.get(number + 1).map(|next| next[0].0);
                stays.push((stretch[0].0, stretch[stretch.len() - 1].0, gone, began));
            }
            stays
        };
        pages.into_iter().map(|page| (page, stays(page))).filter(|(_, stays)| !stays.is_empty()).collect()
    }

    /// The deaths of a page: the time of the death, the status, the last earlier capture in which the page was there,
    /// and the time of the return.
    pub fn deaths(&self, page: &str) -> Vec<(Time, u16, Time, Option<Time>)> {
        let counting = self.of(page).filter(|capture| Ending::Gone.counts(capture.status));
        let counting: Vec<(Time, u16)> = counting.map(|capture| (capture.time, capture.status)).collect();
        let is_death = |pair: &&[(Time, u16)]| pair[0].1 < 400 && pair[1].1 >= 400;
        let death = |pair: &[(Time, u16)]| {
            let returned = counting.iter().find(|capture| capture.0 > pair[1].0 && capture.1 < 400);
            (pair[1].0, pair[1].1, pair[0].0, returned.map(|capture| capture.0))
        };
        counting.windows(2).filter(is_death).map(death).collect()
    }

    /// The time and the status of the first failure of a page whose captures that count are all failures.
    pub fn missing(&self, page: &str) -> Option<(Time, u16)> {
        let counting = self.of(page).filter(|capture| Ending::Gone.counts(capture.status));
        let counting: Vec<(Time, u16)> = counting.map(|capture| (capture.time, capture.status)).collect();
        counting.first().filter(|_| counting.iter().all(|capture| capture.1 >= 400)).copied()
    }

    /// The nodes of the graph that a question is about: pages that are there, and link targets.
    pub fn nodes(&self, when: When) -> BTreeSet<&str> {
        let urls = self.urls().into_iter();
        urls.filter(|url| self.is_alive(url, when) || !self.in_links(url, when).is_empty()).collect()
    }

    /// The pages that link to the URL in a window.
    pub fn in_links(&self, url: &str, when: When) -> BTreeSet<&str> {
        let sources = self.sources.get(url).into_iter().flatten().map(String::as_str);
        sources.filter(|source| self.out_links(source, when).contains(url)).collect()
    }

    /// The pages for which it is unknown whether they link. Outward, this is the page itself if a capture that the
    /// question is about leaves its links unknown. Inward, these are the pages that ever linked to the URL, have such a
    /// capture, and are not known to link.
    pub fn unknown<'a>(&'a self, url: &'a str, is_inward: bool, when: When) -> BTreeSet<&'a str> {
        let sources = self.sources.get(url).into_iter().flatten().map(String::as_str);
        let pages: BTreeSet<&str> = if is_inward { sources.collect() } else { BTreeSet::from([url]) };
        let links = |page: &str| is_inward && self.out_links(page, when).contains(url);
        pages.into_iter().filter(|page| self.is_unknown(page, when) && !links(page)).collect()
    }

    /// For each link of a page, the first and the last capture of each lifespan: captures that have the link, without
    /// a capture between them that is known to lack it. Failures of the server tell nothing.
    pub fn lifespans(&self, page: &str) -> BTreeSet<(&str, Time, Time)> {
        let mut spans = BTreeSet::new();
        for link in self.out_links(page, When::Seen(Time::MIN, Time::MAX)) {
            let counting = self.of(page).filter(|capture| Ending::Gone.counts(capture.status));
            let telling: Vec<(Time, bool)> =
                counting.filter_map(|capture| Some((capture.time, capture.has(|own| own == link)?))).collect();
            for run in telling.chunk_by(|a, b| a.1 == b.1).filter(|run| run[0].1) {
                spans.insert((link, run[0].0, run[run.len() - 1].0));
            }
        }
        spans
    }

    /// The counts of the crawl.
    pub fn totals(&self) -> Totals {
        let captures = || self.captures.iter().map(|((_, time), records)| records.at(*time));
        let known = || captures().filter_map(|capture| capture.links);
        Totals {
            urls: self.urls().len() as u64,
            pages: self.captures.keys().map(|(page, _)| page).collect::<BTreeSet<_>>().len() as u64,
            captures: self.captures.len() as u64,
            unknown_captures: (self.captures.len() - known().count()) as u64,
            cut_captures: captures().filter(|capture| capture.is_cut).count() as u64,
            failed_captures: captures().filter(|capture| capture.status >= 400).count() as u64,
            links: self.sources.values().map(|sources| sources.len() as u64).sum(),
            occurrences: known().map(|links| links.len() as u64).sum(),
        }
    }

    /// The same crawl without the captures of removed pages, and without links to removed URLs. Both rules get a URL
    /// and the second of the capture.
    #[must_use]
    pub fn without(
        &self,
        is_removed_page: impl Fn(&str, Time) -> bool,
        is_removed_target: impl Fn(&str, Time) -> bool,
    ) -> Oracle {
        let mut oracle = Oracle::default();
        for ((page, time), records) in self.captures.iter().filter(|((page, time), _)| !is_removed_page(page, *time)) {
            if let Some((status, links)) = &records.links {
                let left = links.iter().filter(|link| !is_removed_target(link, *time));
                oracle.add_with(*status, page, *time, left.map(String::as_str));
            }
            if let Some((_, links)) = &records.cut {
                oracle.add_cut(
                    page,
                    *time,
                    links.iter().map(String::as_str).filter(|link| !is_removed_target(link, *time)),
                );
            }
            if records.is_unknown {
                oracle.add_unknown(page, *time);
            }
            records.failure.into_iter().for_each(|status| oracle.add_failure(status, page, *time));
        }
        oracle
    }

    /// The same crawl without URLs that were never captured and have fewer than `least` linking pages.
    pub fn with_min_sources(&self, least: u64) -> Oracle {
        let pages: BTreeSet<&str> = self.captures.keys().map(|(page, _)| page.as_str()).collect();
        let kept = |url: &str| pages.contains(url) || self.sources[url].len() as u64 >= least;
        let mut oracle = Oracle::default();
        for ((page, time), records) in &self.captures {
            if let Some((status, links)) = &records.links {
                oracle.add_with(*status, page, *time, links.iter().map(String::as_str).filter(|url| kept(url)));
            }
            if let Some((_, links)) = &records.cut {
                oracle.add_cut(page, *time, links.iter().map(String::as_str).filter(|url| kept(url)));
            }
            if records.is_unknown {
                oracle.add_unknown(page, *time);
            }
            records.failure.into_iter().for_each(|status| oracle.add_failure(status, page, *time));
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
        let totals = Totals {
            urls: 3,
            pages: 1,
            captures: 4,
            unknown_captures: 1,
            cut_captures: 0,
            failed_captures: 0,
            links: 3,
            occurrences: 5,
        };
        assert_eq!(oracle.totals(), totals);
        assert_eq!(oracle.with_min_sources(2).totals().urls, 1);
        let mut cut = oracle.clone();
        cut.add_cut("p", 35, ["a"]);
        assert_eq!((cut.out_links("p", When::AsOf(35)), cut.is_unknown("p", When::AsOf(35))), (["a"].into(), true));
        assert_eq!(cut.last_known("p", When::AsOf(35)), ["b"].into());
        assert_eq!(cut.lifespans("p"), [("a", 10, 10), ("a", 35, 40), ("b", 10, 20), ("p", 40, 40)].into());
        assert_eq!(cut.changed("p", [20, 35].map(When::AsOf)), [["a"].into(), [].into()]);
        assert_eq!(cut.backlinks(&["b"].into())["p"], [(10, 20, Some(40), "found")]);
        oracle.add_failure(404, "p", 20);
        oracle.add_failure(503, "p", 50);
        oracle.add_failure(410, "p", 60);
        oracle.add_failure(404, "p", 60);
        assert_eq!(oracle.statuses("p"), [200, 200, 200, 200, 503, 404]);
        let by = |at, age, ending| oracle.out_links("p", When::AsOfBy(at, age, ending)).len();
        assert_eq!((by(59, 100, Ending::Gone), by(59, 100, Ending::Each), by(60, 100, Ending::Gone)), (2, 0, 0));
        assert_eq!((by(60, 100, Ending::None), by(60, 20, Ending::None), by(60, 19, Ending::None)), (2, 2, 0));
    }
}
