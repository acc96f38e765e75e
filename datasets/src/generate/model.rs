//! The model of a generated crawl. Hosts are generated one after the other, and each host page by page.
//!
//! The model imitates the crawls of the UK in 2006 and 2007, and harder crawls:
//! - Host sizes follow Zipf's law. The URLs of a host form a tree of directories. A quarter of the URLs is crawled, and
//!   a quarter of the hosts.
//! - A page has the menu of its host, the menu of its directory, and body links. Many pages copy links of the preceding
//!   page in URL order as of that time, some of the links with all later changes. The rest of the links lead to pages
//!   near by, anywhere in the host, or outside.
//! - A link fills a slot of the page. The link lives for some months, short or long by its class. Then another link
//!   takes the slot, or sometimes the link that was there at first.
//! - A monthly crawl captures pages in the first second of a month. Pages are born and die, and sometimes a capture is
//!   missed. In an irregular crawl, the numbers of captures follow Zipf's law, some hours apart and some months apart.
//!
//! If pages die ([`GenerateOptions::deaths`]), the rest of the crawl stays the same: a dead page is captured at the
//! times of a living page, with another status and without links.
//!
//! Links change with the months, whenever a page is captured. The model uses integers only, see `random`.
//!
//! Order: by host, then by URL, then by time. Memory: the URLs of one host, two pages and a menu.

use super::names::{DIRECTORY_URLS, Target, write_url};
use super::profiles::{BIRTHS, DEATHS, MISSED, irregular_weights};
use super::random::Random;
use super::{GenerateOptions, Profile, Share};
use crate::capture::date;
use crate::{Capture, CaptureReader, Error, Tally};
use std::ops::Range;

/// One in [`CRAWLED`] URLs of a host is crawled, and one in [`CRAWLED`] hosts.
const CRAWLED: u64 = 4;
/// The number of URLs of a host that is not crawled.
const FOREIGN_URLS: u64 = 24;
/// How many of ten thousand links inside the host, outside the menus, lead to pages near by.
const NEAR: u64 = 7_500;
/// The number of groups of [`CRAWLED`] URLs that count as near.
const NEAR_GROUPS: u64 = 8;
/// How many of ten thousand links to other hosts lead to crawled hosts, and how many lead to home pages.
const TO_CRAWLED_HOSTS: u64 = 4_700;
const TO_HOME: u64 = 3_000;
/// How many of ten thousand links that die are replaced by the first link of their slot.
const RETURNS: u64 = 1_500;
/// At how many of ten thousand captures a dead page is back, and how many of ten thousand dead pages have status 410.
const RETURNED: u64 = 500;
const REMOVED: u64 = 2_500;
/// How many of ten thousand captures of a page of an irregular crawl follow soon. The most days until these, and until
/// the others.
const SOON: u64 = 3_500;
const SOON_DAYS: u64 = 4;
const LATER_DAYS: u64 = 300;
/// How many of ten thousand pages of an irregular crawl have no links.
const EMPTY: u64 = 45;
/// How often another target is tried for a link that the page already has.
const TRIES: u32 = 6;
/// How many of ten thousand directories are quiet, and how many are lively. The number of links of higher classes in
/// quiet, other and lively directories, in percent of the number in the profile.
const QUIET: u64 = 6_000;
const LIVELY: u64 = 1_500;
const TEMPERS: [u64; 3] = [25, 100, 600];
/// The crawl begins in May 2006.
const FIRST_MONTH: i64 = 2006 * 12 + 4;
const DAY: u64 = 24 * 60 * 60;

/// A link that fills a slot of its page in the months `from..to`.
#[derive(Clone, Copy)]
struct Link {
    target: Target,
    slot: usize,
    class: usize,
    from: u64,
    to: u64,
}

/// Links, slot by slot.
#[derive(Default)]
struct Links {
    links: Vec<Link>,
    /// The keys of the targets, close together, because each new link searches them.
    targets: Vec<u64>,
}

impl Links {
    fn clear(&mut self) {
        self.links.clear();
        self.targets.clear();
    }

    fn push(&mut self, link: Link) {
        self.links.push(link);
        self.targets.push(Links::key(link.target));
    }

    /// Whether some link has the target, in any month. In rare cases, another target has the same key.
    fn have(&self, target: Target) -> bool {
        self.targets.contains(&Links::key(target))
    }

    fn key(target: Target) -> u64 {
        target.host.rotate_left(32) ^ target.number
    }
}

/// A synthetic crawl or a share of one, as a reader of captures.
pub struct Generator {
    seed: u64,
    months: u64,
    /// The months of which captures are generated.
    only: Range<u64>,
    profile: Profile,
    deaths: u64,
    share: Share,
    /// The life of links in months, by class: how many of 2^64 links live longer than 1, 2, 3 ... months.
    lives: [Vec<u64>; 3],
    /// For each month, the pages that are born up to that month. In an irregular crawl, for each number of captures
    /// (from 1), the pages with at most that number. The last item counts all pages.
    choices: Vec<u64>,
    /// The next host.
    next_host: u64,
    host: u64,
    /// The URLs of the host by number, and the numbers of the crawled URLs in URL order, last first.
    urls: Vec<String>,
    pages: Vec<u64>,
    /// The links of the latest menu, and its directory.
    menu: Links,
    menu_directory: u64,
    page: Page,
    /// The page before, for copying.
    neighbour: Links,
}

/// The page at hand. Its captures are handed out one by one.
#[derive(Default)]
struct Page {
    number: u64,
    /// Links outside of the menus.
    body: Links,
    /// The texts of all links of the page end to end. For each link, the months in which it is there and the place of
    /// its text.
    texts: String,
    links: Vec<(Range<u64>, Range<usize>)>,
    /// The captures that are still to come, last first.
    captures: Vec<Planned>,
}

/// A capture that is still to come.
#[derive(Clone, Copy)]
struct Planned {
    time: i64,
    month: u64,
    /// The status of the response, if the capture is a failure.
    failure: Option<u16>,
}

impl Generator {
    /// Starts a crawl.
    pub fn new(options: GenerateOptions) -> Self {
        Generator::of(Share::whole(options))
    }

    /// Starts a share of a crawl.
    pub(crate) fn of(share: Share) -> Self {
        let GenerateOptions { profile, seed, months, only, deaths, .. } = share.options;
        let months = u64::from(months.max(1));
        let only = only.map_or(0..months, |(from, to)| u64::from(from.saturating_sub(1))..to.into());
        let lives = profile.constants().survival.map(|survival| {
            let mut living = u128::from(u64::MAX);
            let month = |_| {
                living = living * u128::from(survival) / 10_000;
                u64::try_from(living).unwrap_or(0)
            };
            (0..months).map(month).collect()
        });
        let weights = match profile {
            Profile::Irregular => irregular_weights(),
            _ => (0..months).map(|month| if month == 0 { 10_000 } else { BIRTHS }).collect(),
        };
        let mut sum = 0;
        let choices = weights.into_iter().map(|weight| {
            sum += weight;
            sum
        });
        Generator {
            seed,
            months,
            only,
            profile,
            deaths: deaths.into(),
            share,
            lives,
            choices: choices.collect(),
            next_host: share.first,
            host: 0,
            urls: Vec::new(),
            pages: Vec::new(),
            menu: Links::default(),
            menu_directory: 0,
            page: Page::default(),
            neighbour: Links::default(),
        }
    }

    fn random(&self, parts: &[u64]) -> Random {
        Random::of(self.seed, parts)
    }

    fn pages_of(&self, host: u64) -> u64 {
        self.share.sizes.pages(host)
    }

    /// Makes up the URLs of the next host.
    fn begin_host(&mut self) {
        self.host = self.next_host;
        self.next_host += 1;
        self.page.body.clear();
        let pages = self.pages_of(self.host);
        self.urls.clear();
        for number in 0..pages * CRAWLED {
            let mut url = String::with_capacity(80);
            write_url(self.seed, Target { host: self.host, number }, &mut url);
            self.urls.push(url);
        }
        let mut crawled: Vec<u64> = (0..pages).map(|group| self.crawled(self.host, group)).collect();
        crawled.sort_unstable_by(|&one, &other| self.url(other).cmp(self.url(one)));
        self.pages = crawled;
        self.make_menu(0);
    }

    fn url(&self, number: u64) -> &str {
        usize::try_from(number).ok().and_then(|number| self.urls.get(number)).map_or("", String::as_str)
    }

    /// The number of the crawled URL in a group of [`CRAWLED`] URLs of a host. In the first group, this is the home
    /// page.
    fn crawled(&self, host: u64, group: u64) -> u64 {
        group * CRAWLED + if group == 0 { 0 } else { self.random(&[11, host, group]).below(CRAWLED) }
    }

    /// Makes up a page: its captures and its links over time.
    fn begin_page(&mut self, number: u64) {
        std::mem::swap(&mut self.page.body, &mut self.neighbour);
        let mut page = std::mem::take(&mut self.page);
        let mut random = self.random(&[12, self.host, number]);
        page.number = number;
        self.captures(&mut random, &mut page.captures);
        self.fail(number, &mut page.captures);
        page.body.clear();
        page.links.clear();
        page.texts.clear();
        let (Some(first), Some(last)) = (page.captures.last(), page.captures.first()) else { return };
        let (first, last) = (first.month, last.month);
        if number / DIRECTORY_URLS != self.menu_directory {
            self.make_menu(number / DIRECTORY_URLS);
        }
        let is_empty = self.profile == Profile::Irregular && random.chance(EMPTY);
        if !is_empty {
            self.body_links(number, first..last + 1, &mut random, &mut page.body);
        }
        let menu = self.menu.links.iter().filter(|_| !is_empty);
        for link in menu.chain(&page.body.links) {
            if link.from <= last && link.to > first {
                let start = page.texts.len();
                if link.target.host == self.host {
                    page.texts.push_str(self.url(link.target.number));
                } else {
                    write_url(self.seed, link.target, &mut page.texts);
                }
                page.links.push((link.from..link.to, start..page.texts.len()));
            }
        }
        self.page = page;
    }

    /// Makes up the links of a page outside the menu, for the months in which the page is captured.
    fn body_links(&self, number: u64, months: Range<u64>, random: &mut Random, links: &mut Links) {
        let constants = self.profile.constants();
        let mut slots = constants.body_min + random.below(constants.body_spread) + random.below(constants.body_spread);
        if random.chance(constants.long) {
            slots += random.below(constants.long_more);
        }
        let copies = random.chance(constants.copying);
        let temper = self.temper(number / DIRECTORY_URLS);
        let mut originals = self.neighbour.links.chunk_by(|one, other| one.slot == other.slot);
        for slot in 0..usize::try_from(slots).unwrap_or(0) {
            let original = originals.next().filter(|_| copies && random.chance(constants.copied)).unwrap_or(&[]);
            let shares = random.chance(constants.shared);
            let mut from = months.start;
            let mut class = self.class(temper, random);
            for original in original.iter().filter(|original| original.to > months.start) {
                if self.is_there(original.target, links) {
                    break;
                }
                class = original.class;
                let to = if shares { original.to } else { from + self.life(class, random) };
                links.push(Link { target: original.target, slot, class, from, to });
                from = to;
                if !shares || from >= months.end {
                    break;
                }
            }
            let next = |tried, random: &mut Random| self.target(number, tried, random);
            self.follow(slot, class, from..months.end, random, next, links);
        }
    }

    /// Fills a slot of a page with one link after the other, from a month on.
    fn follow(
        &self,
        slot: usize,
        class: usize,
        months: Range<u64>,
        random: &mut Random,
        next: impl Fn(u32, &mut Random) -> Target,
        links: &mut Links,
    ) {
        let start = links.links.iter().rposition(|link| link.slot != slot).map_or(0, |before| before + 1);
        let mut from = months.start;
        while from < months.end {
            let first = links.links.get(start).filter(|_| links.links.len() > start + 1);
            let target = match first {
                Some(first) if random.chance(RETURNS) => first.target,
                _ => {
                    let mut tries = (0..TRIES).map(|tried| next(tried, random));
                    tries.find(|&target| !self.is_there(target, links)).unwrap_or_else(|| next(TRIES, random))
                }
            };
            let to = from + self.life(class, random);
            links.push(Link { target, slot, class, from, to });
            from = to;
        }
    }

    /// Whether the menu or the body links of a page have a target.
    fn is_there(&self, target: Target, links: &Links) -> bool {
        self.menu.have(target) || links.have(target)
    }

    /// The number of links of higher classes of a directory, in percent of the usual number.
    fn temper(&self, directory: u64) -> u64 {
        match self.random(&[14, self.host, directory]).below(10_000) {
            rank if rank < QUIET => TEMPERS[0],
            rank if rank < 10_000 - LIVELY => TEMPERS[1],
            _ => TEMPERS[2],
        }
    }

    fn class(&self, temper: u64, random: &mut Random) -> usize {
        let higher = self.profile.constants().higher_classes;
        let draw = random.below(10_000) * 100;
        higher.iter().filter(|&&class| draw < class * temper).count()
    }

    /// How many months a link lives, at least one.
    fn life(&self, class: usize, random: &mut Random) -> u64 {
        let draw = random.next();
        1 + self.lives[class].partition_point(|&living| draw < living) as u64
    }

    /// Makes up the captures of a page, last first.
    fn captures(&self, random: &mut Random, captures: &mut Vec<Planned>) {
        captures.clear();
        let choice = random.below(self.choices.last().copied().unwrap_or(0));
        let choice = self.choices.partition_point(|&sum| sum <= choice) as u64;
        if self.profile == Profile::Irregular {
            return self.irregular_captures(choice, random, captures);
        }
        for month in choice..self.months {
            if month > choice && random.chance(DEATHS) {
                break;
            }
            if month == choice || !random.chance(MISSED) {
                captures.push(Planned { time: time(month, 0), month, failure: None });
            }
        }
        captures.reverse();
    }

    /// Makes up one capture and `more` captures: a third of these within a day or two, the others after weeks or
    /// months.
    fn irregular_captures(&self, more: u64, random: &mut Random, captures: &mut Vec<Planned>) {
        let gap = |random: &mut Random| {
            let days = if random.chance(SOON) { SOON_DAYS } else { LATER_DAYS };
            random.small_below(days * DAY)
        };
        let gaps: Vec<u64> = (0..more).map(|_| gap(random)).collect();
        // If all gaps together are longer than the crawl, they are made shorter.
        let days = self.months * 28;
        let span = gaps.iter().sum::<u64>().max(1);
        let length = span.min(days * DAY - 1);
        let start = random.below(days * DAY - length);
        let mut passed = 0;
        for gap in std::iter::once(0).chain(gaps) {
            passed += gap;
            let second = start + u64::try_from(u128::from(passed) * u128::from(length) / u128::from(span)).unwrap_or(0);
            let month = second / (28 * DAY);
            captures.push(Planned { time: time(month, second % (28 * DAY)), month, failure: None });
        }
        captures.reverse();
    }

    /// Lets a page die, come back, and be out of reach. `captures` has the captures of the page, last first.
    fn fail(&self, number: u64, captures: &mut [Planned]) {
        if self.deaths == 0 {
            return;
        }
        let mut random = self.random(&[15, self.host, number]);
        let mut gone = None;
        for (at, capture) in captures.iter_mut().rev().enumerate() {
            gone = match gone {
                Some(_) if random.chance(RETURNED) => None,
                None if at > 0 && random.chance(self.deaths) => Some(if random.chance(REMOVED) { 410 } else { 404 }),
                as_before => as_before,
            };
            capture.failure = if random.chance(self.deaths / 4) { Some(503) } else { gone };
        }
    }

    /// Whether captures may fail.
    pub(super) fn has_failures(&self) -> bool {
        self.deaths > 0
    }

    /// Makes up the links that all pages of a directory have: to the home page, to some pages of the host, and to some
    /// near by.
    fn make_menu(&mut self, directory: u64) {
        let constants = self.profile.constants();
        let mut menu = std::mem::take(&mut self.menu);
        menu.clear();
        let pages = self.pages_of(self.host);
        for (key, count) in [(0, constants.host_menu), (directory + 1, constants.directory_menu)] {
            let mut random = self.random(&[13, self.host, key]);
            let first = directory * DIRECTORY_URLS / CRAWLED;
            for _ in 0..count {
                let slot = menu.links.len();
                let next = |tried: u32, random: &mut Random| {
                    let group = match key {
                        0 if slot == 0 => 0,
                        0 => random.small_below(pages),
                        _ => (first + random.below((DIRECTORY_URLS / CRAWLED) << tried)) % pages,
                    };
                    Target { host: self.host, number: self.crawled(self.host, group) }
                };
                let class = self.class(TEMPERS[1], &mut random).min(1);
                self.follow(slot, class, 0..self.months, &mut random, next, &mut menu);
            }
        }
        self.menu = menu;
        self.menu_directory = directory;
    }

    /// Makes up a link that is not copied. The more often links near the page were tried, the farther away the next one
    /// is.
    fn target(&self, number: u64, tried: u32, random: &mut Random) -> Target {
        if random.chance(self.profile.constants().outside) {
            return self.target_outside(random);
        }
        let pages = self.pages_of(self.host);
        let group = number / CRAWLED;
        let groups = NEAR_GROUPS << tried;
        let near = (group + random.small_below(groups)).saturating_sub(random.small_below(groups));
        let near = Some(near).filter(|&near| near < pages && random.chance(NEAR));
        let number = if random.chance(self.profile.constants().to_crawled) {
            self.crawled(self.host, near.unwrap_or_else(|| random.small_below(pages)))
        } else {
            near.unwrap_or_else(|| random.below(pages)) * CRAWLED + random.below(CRAWLED)
        };
        Target { host: self.host, number }
    }

    /// Makes up a link to another host.
    fn target_outside(&self, random: &mut Random) -> Target {
        let hosts = self.share.sizes.hosts;
        let home = random.chance(TO_HOME);
        if random.chance(TO_CRAWLED_HOSTS) {
            let most = random.small_below(hosts) + 1;
            let host = random.small_below(most);
            let group = if home { 0 } else { random.small_below(self.pages_of(host)) };
            return Target { host, number: self.crawled(host, group) };
        }
        let host = hosts + random.below(hosts * (CRAWLED - 1));
        Target { host, number: if home { 0 } else { random.below(FOREIGN_URLS) } }
    }
}

impl CaptureReader for Generator {
    fn read(&mut self, capture: &mut Capture, _tally: &mut Tally) -> Result<bool, Error> {
        capture.clear();
        let Planned { time, month, failure } = loop {
            if let Some(next) = self.page.captures.pop() {
                if self.only.contains(&next.month) {
                    break next;
                }
                continue;
            }
            match self.pages.pop() {
                Some(number) => self.begin_page(number),
                None if self.next_host < self.share.end => self.begin_host(),
                None => return Ok(false),
            }
        };
        capture.url.push_str(self.url(self.page.number));
        capture.time = time;
        capture.status = failure;
        for (months, text) in self.page.links.iter().filter(|_| failure.is_none()) {
            if months.contains(&month) {
                capture.links.push(&self.page.texts[text.clone()]);
            }
        }
        Ok(true)
    }
}

/// The time of a second of a month of the crawl, in seconds since 1970.
fn time(month: u64, second: u64) -> i64 {
    let month = FIRST_MONTH + i64::try_from(month).unwrap_or(0);
    let start = date::seconds(month / 12, month % 12 + 1, 1, 0, 0, 0).unwrap_or(i64::MAX / 2);
    start + i64::try_from(second).unwrap_or(0)
}
