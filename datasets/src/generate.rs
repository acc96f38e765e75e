//! A seeded crawl that never was: the input of demonstrations, tests and measurements.
//!
//! The same options give the same captures on every machine: whole numbers only, and a generator (SplitMix64) of its own.
//!
//! The model, from the measured crawls (FACTS 3 and 4):
//! - hosts of Zipf size, the `r`-th has `largest / r` URLs, at most [`HOST_URLS_MAX`]; a URL is a pure function of host and
//!   number, so links to other hosts need no table;
//! - directories form a tree, each with an index page and [`DIRECTORY_URLS`] URLs, some with a query; a fifth of the URLs
//!   is crawled;
//! - a page shares the menu of its directory, copies links of the page before it in URL order, and makes up the rest;
//!   about 37 links, 80 % of them inside the host;
//! - each place of a link on the page has a class that tells how long a link lives there; a new one follows it;
//! - monthly crawls: pages are born (8 % a month) and die (0.4 %); irregular ones: 1 to 50 captures a page at any second.
//!
//! Order: host by host, inside by URL, inside by time. Memory: the crawled URLs of one host.

use crate::{Capture, CaptureReader, Error, Tally, date};
use std::fmt::Write;

pub use crate::generate_write::{write_jsonl, write_warc};

/// URLs of the largest host, at most.
const HOST_URLS_MAX: u64 = 60_000;
/// URLs of the smallest host.
const HOST_URLS_MIN: u64 = 3;
/// URLs of a directory, the index page among them.
const DIRECTORY_URLS: u64 = 12;
/// Directories in a directory.
const BRANCHES: u64 = 6;
/// Of ten thousand: URLs that are crawled.
const CRAWLED: u64 = 2_000;
/// Of ten thousand a month: pages that are born, that die.
const BIRTHS: u64 = 800;
const DEATHS: u64 = 40;
/// Of ten thousand a month (or capture): links that live on, by class.
const SURVIVAL: [u64; 3] = [9_980, 9_700, 8_400];
/// Of ten thousand: links outside the menu that leave the host.
const OUTSIDE: u64 = 2_600;
/// Most captures of a page of an irregular crawl.
const IRREGULAR_CAPTURES_MAX: u64 = 50;
/// Links of a capture that sizes are reckoned with: a little low, so that the hosts never run out.
const LINKS_RECKONED: u64 = 28;
/// The crawl begins in May 2006.
const FIRST_MONTH: i64 = 2006 * 12 + 4;
const DAY: u64 = 24 * 60 * 60;

/// What kind of crawl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Monthly, with much in common between neighbours, like the crawls of the UK in 2006 and 2007.
    Uk,
    /// Monthly, with links that are less alike and live shorter.
    Hard,
    /// 1 to 50 captures a page, at any second.
    Irregular,
}

impl Profile {
    /// Of ten thousand: links copied from the page before.
    fn copied(self) -> u64 {
        match self {
            Profile::Uk => 7_000,
            Profile::Hard => 3_000,
            Profile::Irregular => 5_000,
        }
    }

    /// Of a hundred: links of the first class, of the first two.
    fn classes(self) -> [u64; 2] {
        match self {
            Profile::Uk | Profile::Irregular => [75, 93],
            Profile::Hard => [50, 80],
        }
    }
}

/// What to generate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GenerateOptions {
    /// What kind of crawl.
    pub profile: Profile,
    /// Links of all captures together; the last capture may go beyond it.
    pub occurrences: u64,
    /// Other seeds give other crawls.
    pub seed: u64,
    /// Length of the crawl, at least one month.
    pub months: u32,
}

/// SplitMix64.
struct Random(u64);

impl Random {
    /// A generator for one thing of the model: `parts` name it.
    fn of(seed: u64, parts: &[u64]) -> Self {
        let mut random = Random(seed);
        for part in parts {
            random.0 = random.next() ^ part.wrapping_mul(0xd6e8_feb8_6659_fd93);
        }
        random
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, 0 where `end` is 0.
    fn below(&mut self, end: u64) -> u64 {
        u64::try_from((u128::from(self.next()) * u128::from(end)) >> 64).unwrap_or(0)
    }

    /// A number below `end`, small ones more often.
    fn small_below(&mut self, end: u64) -> u64 {
        let end = self.below(end) + 1;
        self.below(end)
    }

    /// True `of_ten_thousand` times out of ten thousand.
    fn chance(&mut self, of_ten_thousand: u64) -> bool {
        self.below(10_000) < of_ten_thousand
    }
}

/// A URL: host and number.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Target {
    host: u64,
    number: u64,
}

/// A link that stands on its page in the steps `from..to`; steps are months, or captures of an irregular crawl.
struct Link {
    target: Target,
    from: u64,
    to: u64,
}

/// The page whose captures are being handed out.
#[derive(Default)]
struct Page {
    url: String,
    /// Links of the directory, by month.
    menu: Vec<Link>,
    /// Links of its own, by step.
    own: Vec<Link>,
    /// Time, month and step of each capture still to come, last first.
    captures: Vec<(i64, u64, u64)>,
}

/// A synthetic crawl, as a reader of captures.
pub struct Generator {
    options: GenerateOptions,
    /// Number of URLs of the largest host, before it is cut.
    largest: u64,
    hosts: u64,
    /// The next host.
    host: u64,
    /// URLs of the current host that are crawled, and their numbers, in order, last first.
    pages: Vec<(String, u64)>,
    page: Page,
    /// Links that the page before had at first, for copying.
    neighbour: Vec<Target>,
    occurrences: u64,
}

impl Generator {
    /// Starts a crawl.
    pub fn new(options: GenerateOptions) -> Self {
        let options = GenerateOptions { months: options.months.max(1), ..options };
        // Captures a page, in thousandths: over the months, those alive by those ever born.
        let captures = if options.profile == Profile::Irregular {
            (IRREGULAR_CAPTURES_MAX + 1) * 1000 / 2
        } else {
            let born: u64 = births(options.months).iter().sum();
            let (mut alive, mut sum) = (0, 0);
            for births in births(options.months) {
                alive += births - alive * DEATHS / 10_000;
                sum += alive;
            }
            sum * 1000 / born
        };
        let pages = (u128::from(options.occurrences) * 1000 / u128::from(captures * LINKS_RECKONED)) + 1;
        let urls = u64::try_from(pages * 10_000 / u128::from(CRAWLED)).unwrap_or(u64::MAX);
        // The smallest size of the largest host with which all hosts together have so many URLs.
        let hosts = |largest: u64| largest / HOST_URLS_MIN;
        let sum = |largest: u64| (0..hosts(largest)).map(|host| host_urls(largest, host)).sum::<u64>();
        let mut largest = 4 * HOST_URLS_MIN;
        while sum(largest) < urls {
            largest += largest / 8 + 1;
        }
        Generator {
            options,
            largest,
            hosts: hosts(largest),
            host: 0,
            pages: Vec::new(),
            page: Page::default(),
            neighbour: Vec::new(),
            occurrences: 0,
        }
    }

    fn random(&self, parts: &[u64]) -> Random {
        Random::of(self.options.seed, parts)
    }

    /// Lists the crawled URLs of the next host.
    fn begin_host(&mut self) {
        let host = self.host;
        self.host += 1;
        self.neighbour.clear();
        let mut random = self.random(&[1, host]);
        for number in 0..host_urls(self.largest, host) {
            if random.chance(CRAWLED) || number == 0 {
                let mut url = String::new();
                self.write_url(Target { host, number }, &mut url);
                self.pages.push((url, number));
            }
        }
        self.pages.sort_unstable_by(|one, other| other.cmp(one));
    }

    /// Makes up a page: its captures and its links over time.
    fn begin_page(&mut self, url: String, number: u64) {
        let host = self.host - 1;
        let mut random = self.random(&[2, host, number]);
        let mut page = Page { url, captures: self.captures(host, &mut random), ..Page::default() };
        let steps = page.captures.first().map_or(0, |(_, _, step)| step + 1);
        let first = page.captures.last().map_or(0, |(_, _, step)| *step);
        self.menu(host, number / DIRECTORY_URLS, &mut page.menu);
        let own = match self.options.profile {
            Profile::Irregular if random.chance(100) => 0,
            _ => 8 + random.below(22) + random.below(22),
        };
        let mut targets = Vec::new();
        for place in 0..own {
            let copied = usize::try_from(place).ok().and_then(|place| self.neighbour.get(place));
            let target = match copied {
                Some(target) if random.chance(self.options.profile.copied()) => *target,
                _ => self.target(host, number, &mut random),
            };
            targets.push(target);
            let [stable, middling] = self.options.profile.classes();
            let class = random.below(100);
            let class = usize::from(class >= stable) + usize::from(class >= middling);
            let next = |random: &mut Random| self.target(host, number, random);
            chain(target, SURVIVAL[class], first, steps, &mut random, next, &mut page.own);
        }
        self.neighbour = targets;
        self.page = page;
    }

    /// When a page was captured: time, month and step, last first.
    fn captures(&self, host: u64, random: &mut Random) -> Vec<(i64, u64, u64)> {
        let months = u64::from(self.options.months);
        let mut captures = Vec::new();
        if self.options.profile == Profile::Irregular {
            for _ in 0..=random.below(IRREGULAR_CAPTURES_MAX) {
                let month = random.below(months);
                captures.push((time(month, random.below(28 * DAY)), month, 0));
            }
            captures.sort_unstable();
            for (step, capture) in (0..).zip(&mut captures) {
                capture.2 = step;
            }
        } else {
            let births = births(self.options.months);
            let mut left = random.below(births.iter().sum());
            let birth = (0..).zip(&births).find(|(_, births)| {
                let is_it = left < **births;
                left = left.saturating_sub(**births);
                is_it
            });
            // A host is crawled on its days of the month.
            let days = self.random(&[3, host]).below(24);
            for month in birth.map_or(0, |(month, _)| month)..months {
                if !captures.is_empty() && random.chance(DEATHS) {
                    break;
                }
                captures.push((time(month, days * DAY + random.below(3 * DAY)), month, month));
            }
        }
        captures.reverse();
        captures
    }

    /// The links that all pages of a directory have: up the tree, beside it, and its own first pages.
    fn menu(&self, host: u64, directory: u64, menu: &mut Vec<Link>) {
        let urls = host_urls(self.largest, host);
        let parent = directory.saturating_sub(1) / BRANCHES;
        let beside = (parent * BRANCHES + 1..=parent * BRANCHES + BRANCHES).map(|directory| directory * DIRECTORY_URLS);
        let pages = (1..4).map(|place| directory * DIRECTORY_URLS + place);
        let numbers = [0, parent * DIRECTORY_URLS].into_iter().chain(beside).chain(pages);
        let mut random = self.random(&[4, host, directory]);
        for number in numbers.filter(|&number| number < urls) {
            let next = |random: &mut Random| Target { host, number: random.small_below(urls) };
            chain(Target { host, number }, SURVIVAL[0], 0, u64::from(self.options.months), &mut random, next, menu);
        }
    }

    /// A link that is not copied.
    fn target(&self, host: u64, number: u64, random: &mut Random) -> Target {
        if random.chance(OUTSIDE) {
            let host = random.small_below(self.hosts);
            let urls = host_urls(self.largest, host);
            return Target { host, number: if random.chance(5_000) { 0 } else { random.small_below(urls) } };
        }
        let urls = host_urls(self.largest, host);
        // Half of them near the page, half of them anywhere.
        let near = (number + random.small_below(40)).saturating_sub(random.small_below(40));
        Target { host, number: if near < urls && random.chance(5_000) { near } else { random.small_below(urls) } }
    }

    /// The URL of a host and number.
    fn write_url(&self, Target { host, number }: Target, out: &mut String) {
        const DOMAINS: [&str; 4] = ["co.uk", "org.uk", "ac.uk", "gov.uk"];
        let mut random = self.random(&[5, host]);
        let name = word(&mut random);
        let domain = DOMAINS[usize::try_from(random.small_below(4)).unwrap_or(0)];
        let _ = write!(out, "http://www.{name}{host}.{domain}/");
        let directory = number / DIRECTORY_URLS;
        let mut up = vec![directory];
        while let Some(&last) = up.last().filter(|&&last| last > 0) {
            up.push((last - 1) / BRANCHES);
        }
        for directory in up.iter().rev().skip(1) {
            let _ = write!(out, "{}{directory}/", word(&mut self.random(&[6, host, *directory])));
        }
        if number % DIRECTORY_URLS > 0 {
            let mut random = self.random(&[7, host, number]);
            let (name, other) = (word(&mut random), word(&mut random));
            let _ = match random.below(10) {
                0 => write!(out, "{name}.php?id={number}&view={other}"),
                1 => write!(out, "{name}.php?page={number}"),
                _ => write!(out, "{name}-{other}-{number}.html"),
            };
        }
    }
}

impl CaptureReader for Generator {
    fn read(&mut self, capture: &mut Capture, _tally: &mut Tally) -> Result<bool, Error> {
        capture.clear();
        if self.occurrences >= self.options.occurrences {
            return Ok(false);
        }
        let (time, month, step) = loop {
            if let Some(next) = self.page.captures.pop() {
                break next;
            }
            match self.pages.pop() {
                Some((url, number)) => self.begin_page(url, number),
                None if self.host < self.hosts => self.begin_host(),
                None => return Ok(false),
            }
        };
        capture.url.push_str(&self.page.url);
        capture.time = time;
        let menu = self.page.menu.iter().filter(|link| (link.from..link.to).contains(&month));
        let own = self.page.own.iter().filter(|link| (link.from..link.to).contains(&step));
        let mut url = String::new();
        for link in menu.chain(own) {
            url.clear();
            self.write_url(link.target, &mut url);
            capture.links.push(&url);
        }
        self.occurrences += capture.links.len() as u64;
        Ok(true)
    }
}

/// Fills one place of a page for the steps `from..to`: a link and those that follow it.
fn chain(
    mut target: Target,
    survival: u64,
    mut from: u64,
    to: u64,
    random: &mut Random,
    next: impl Fn(&mut Random) -> Target,
    links: &mut Vec<Link>,
) {
    for step in from + 1..=to {
        if step == to || !random.chance(survival) {
            links.push(Link { target, from, to: step });
            (target, from) = (next(random), step);
        }
    }
}

fn host_urls(largest: u64, host: u64) -> u64 {
    (largest / (host + 1)).clamp(HOST_URLS_MIN, HOST_URLS_MAX)
}

/// Pages born in each month, in proportion.
fn births(months: u32) -> Vec<u64> {
    let mut alive = 1_000_000;
    let mut births = vec![alive];
    for _ in 1..months {
        births.push(alive * BIRTHS / 10_000);
        alive += alive * BIRTHS / 10_000 - alive * DEATHS / 10_000;
    }
    births
}

/// Seconds since 1970 of a second of a month of the crawl.
fn time(month: u64, second: u64) -> i64 {
    let month = FIRST_MONTH + i64::try_from(month).unwrap_or(0);
    let start = date::seconds(month / 12, month % 12 + 1, 1, 0, 0, 0).unwrap_or(i64::MAX / 2);
    start + i64::try_from(second).unwrap_or(0)
}

/// Two to four syllables.
fn word(random: &mut Random) -> String {
    const CONSONANTS: &[u8] = b"bcdfghklmnprstvw";
    const VOWELS: &[u8] = b"aeiou";
    let letter = |letters: &[u8], random: &mut Random| {
        char::from(letters[usize::try_from(random.below(letters.len() as u64)).unwrap_or(0)])
    };
    let mut word = String::new();
    for _ in 0..2 + random.below(3) {
        word.push(letter(CONSONANTS, random));
        word.push(letter(VOWELS, random));
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical;
    use std::collections::{BTreeMap, BTreeSet};
    use xxhash_rust::xxh3::Xxh3;

    fn all(profile: Profile, occurrences: u64, seed: u64) -> Vec<Capture> {
        let mut generator = Generator::new(GenerateOptions { profile, occurrences, seed, months: 12 });
        let (mut captures, mut capture, mut tally) = (Vec::new(), Capture::default(), Tally::default());
        while generator.read(&mut capture, &mut tally).unwrap() {
            captures.push(capture.clone());
        }
        captures
    }

    fn host(url: &str) -> &str {
        url.split('/').nth(2).unwrap()
    }

    #[test]
    fn the_crawl_is_as_described() {
        for profile in [Profile::Uk, Profile::Hard, Profile::Irregular] {
            let captures = all(profile, 200_000, 1);
            let links: u64 = captures.iter().map(|capture| capture.links.len() as u64).sum();
            assert!((200_000..200_200).contains(&links), "{profile:?} {links}");
            let a_capture = links / captures.len() as u64;
            assert!((33..42).contains(&a_capture), "{profile:?}: {a_capture} links a capture");
            let inside =
                captures.iter().flat_map(|capture| capture.links.iter().map(|link| host(link) == host(&capture.url)));
            let inside = inside.filter(|&inside| inside).count() as u64 * 100 / links;
            assert!((74..86).contains(&inside), "{profile:?}: {inside} % inside");
            let pages: BTreeSet<&str> = captures.iter().map(|capture| capture.url.as_str()).collect();
            let urls: BTreeSet<&str> =
                captures.iter().flat_map(|capture| capture.links.iter()).chain(pages.iter().copied()).collect();
            let crawled = pages.len() * 100 / urls.len();
            assert!((12..35).contains(&crawled), "{profile:?}: {crawled} % crawled");
            assert!(urls.iter().all(|url| canonical(None, url).as_deref() == Ok(*url)));
            let mut times = BTreeMap::<&str, Vec<i64>>::new();
            for capture in &captures {
                times.entry(&capture.url).or_default().push(capture.time);
            }
            assert!(times.values().all(|times| times.is_sorted() && times.len() <= 50));
        }
    }

    #[test]
    fn monthly_links_live_long() {
        let captures = all(Profile::Uk, 200_000, 2);
        let (mut kept, mut links) = (0, 0);
        for pair in captures.windows(2).filter(|pair| pair[0].url == pair[1].url) {
            let next: BTreeSet<&str> = pair[1].links.iter().collect();
            kept += pair[0].links.iter().filter(|link| next.contains(link)).count();
            links += pair[0].links.len();
        }
        assert!(
            (960..995).contains(&(kept * 1000 / links)),
            "{} of 1000 links are in the next capture",
            kept * 1000 / links
        );
    }

    /// The captures of one seed on every machine: a change here changes every measurement made before it.
    #[test]
    fn the_same_seed_gives_the_same_crawl() {
        let hash = |captures: &[Capture]| {
            let mut hash = Xxh3::new();
            for capture in captures {
                hash.update(
                    format!("{} {} {:?}\n", capture.url, capture.time, capture.links.iter().collect::<Vec<_>>())
                        .as_bytes(),
                );
            }
            hash.digest()
        };
        let hashes = [Profile::Uk, Profile::Hard, Profile::Irregular].map(|profile| hash(&all(profile, 20_000, 7)));
        assert_eq!(hashes, [8_104_726_394_684_877_994, 16_940_215_297_431_737_177, 8_158_969_705_863_627_534]);
        assert_ne!(hash(&all(Profile::Uk, 20_000, 8)), hashes[0]);
    }
}
