//! Small random crawls, the same for the same seed, with the variety of real crawls.
//!
//! A crawl has pages that are captured often and once, two captures in one second, the same capture twice, empty pages,
//! repeated links, links to the page itself, fragments, and other spellings of one URL. As WARC, a crawl also has
//! revisits, some of captures that are not in the crawl. Crawls with failures have pages that are gone and come back,
//! servers that fail, redirects, and bodies that were cut.

use crate::oracle::{Ending, Oracle, Time, When};
use serde_json::json;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

/// One capture, with texts as a crawl file spells them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The URL of the page.
    pub url: String,
    /// The time of the capture.
    pub time: Time,
    /// The links of the capture.
    pub links: Links,
    /// Whether the body was not read whole. The links are those that were found.
    pub is_cut: bool,
}

/// The links of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Links {
    /// The links themselves.
    Here(Vec<String>),
    /// The same links as the capture with this index, an earlier capture of the same page.
    SameAs(usize),
    /// The same links as a capture that is not in the crawl.
    Lost,
    /// No links: the server answered with this status, and perhaps with the new URL of the page.
    Status(u16, Option<String>),
}

/// A crawl. The captures are in the order in which they were made up, which is not the order of time.
#[derive(Clone, Debug, Default)]
pub struct Crawl {
    /// The captures of the crawl.
    pub captures: Vec<Capture>,
    canonical: Vec<(String, Vec<String>)>,
}

/// The size of a crawl.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// The number of captured pages.
    pub pages: u64,
    /// The number of captures of all pages together.
    pub captures: u64,
    /// The maximum number of links of a capture.
    pub links: u64,
}

/// A sequence of numbers that looks random (splitmix64).
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.draw() % end
    }

    /// True once in `n` times.
    pub fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// A random duration below a number of seconds.
    pub fn moment(&mut self, seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds * self.below(1000) as f64 / 1000.0)
    }

    /// Shuffles a list.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            list.swap(last, self.index(last + 1));
        }
    }

    /// A random index into a list of `length` items. The list must not be empty.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).expect("an index")
    }

    /// A random item of a list. The list must not be empty.
    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.index(list.len())]
    }

    /// A random question about time, of any kind, with times of captures.
    pub fn when(&mut self, times: &[Time]) -> When {
        let (one, other) = (*self.pick(times), *self.pick(times));
        match self.below(5) {
            0 => When::AsOf(one),
            4 => {
                let age = *self.pick(&[0, (one - other).abs(), i64::MAX]);
                When::AsOfBy(one, age, *self.pick(&[Ending::Gone, Ending::None, Ending::Each]))
            }
            1 => When::Seen(one, one),
            2 => When::Seen(i64::MIN, i64::MAX),
            _ => When::Seen(one.min(other), one.max(other)),
        }
    }
}

/// URL number `n`, canonical: hosts with many and few pages, queries, both schemes, ports, non-ASCII paths.
pub fn url(n: u64) -> String {
    let host = ["www.example.org", "example.org", "a.example", "b.a.example", "example-a.org"][(n % 5) as usize];
    match n % 11 {
        0 => format!("https://{host}/{n}"),
        1 => format!("http://{host}/list?page={n}&sort=a"),
        2 => format!("http://{host}:8080/{n}"),
        3 => format!("http://{host}/caf%C3%A9/{n}.html"),
        4 if n < 100 => format!("http://{host}/"),
        _ => format!("http://{host}/d{}/{n}.html", n % 3),
    }
}

/// A random spelling of a URL, as a page may write the URL.
fn spelled(url: &str, random: &mut Random) -> String {
    match random.below(12) {
        0 => format!("{url}#part"),
        1 => url.replacen("http://", "HTTP://", 1),
        2 => url.replacen("example", "EXAMPLE", 1),
        3 => url.replacen(".html", ".html#", 1),
        4 => url.replacen("/d1/", "/x/../d1/", 1),
        5 => url.replace("caf%C3%A9", "café"),
        6 if url.starts_with("https://") => url.replacen(".org/", ".org:443/", 1),
        _ => url.to_owned(),
    }
}

impl Crawl {
    /// A crawl of captures with known links. Some links are repeated.
    pub fn random(seed: u64, size: Size) -> Crawl {
        Self::make(seed, size, false, false)
    }

    /// A crawl that also has revisits.
    pub fn with_revisits(seed: u64, size: Size) -> Crawl {
        Self::make(seed, size, true, false)
    }

    /// A crawl that also has captures with statuses other than 200 and cut captures, with or without revisits.
    pub fn with_failures(seed: u64, size: Size, revisits: bool) -> Crawl {
        Self::make(seed, size, revisits, true)
    }

    fn make(seed: u64, size: Size, revisits: bool, failures: bool) -> Crawl {
        let mut random = Random(seed);
        let mut crawl = Crawl::default();
        let mut latest = vec![None::<usize>; usize::try_from(size.pages).expect("a size")];
        let mut latest_failure = latest.clone();
        let mut clock = 1_140_000_000;
        while (crawl.captures.len() as u64) < size.captures {
            clock += i64::try_from(random.below(90_000)).expect("small");
            // Half of the captures belong to a tenth of the pages.
            let page = if random.once_in(2) { random.below(size.pages) } else { random.below(size.pages / 10 + 1) };
            let slot = usize::try_from(page).expect("an index");
            let before = latest[slot].filter(|_| !random.once_in(9));
            let time = match latest[slot] {
                // A revisit must be later than its original. Otherwise the original of the revisit is ambiguous.
                Some(before) if !revisits && random.once_in(15) => crawl.captures[before].time,
                _ => clock + 1,
            };
            let fails = failures && random.once_in(4);
            let (links, canonical) = match before {
                _ if fails && revisits && latest_failure[slot].is_some() && random.once_in(3) => {
                    (Links::SameAs(latest_failure[slot].unwrap_or(0)), Some(Vec::new()))
                }
                _ if fails => {
                    let status = *random.pick(&[404, 404, 410, 403, 429, 500, 503, 301, 302, 204]);
                    let target = (300..400).contains(&status).then(|| url(random.below(1 + size.pages * 3)));
                    (Links::Status(status, target.clone()), Some(target.into_iter().collect()))
                }
                Some(_) if revisits && random.once_in(12) => (Links::Lost, None),
                Some(before) if revisits && random.once_in(3) => {
                    (Links::SameAs(before), Some(crawl.canonical[before].1.clone()))
                }
                _ => {
                    let canonical = evolve(before.map(|index| &crawl.canonical[index].1), &size, page, &mut random);
                    (Links::Here(canonical.iter().map(|link| spelled(link, &mut random)).collect()), Some(canonical))
                }
            };
            clock = clock.max(time);
            let is_cut = failures && matches!(links, Links::Here(_)) && random.once_in(7);
            let capture = Capture { url: spelled(&url(page), &mut random), time, links, is_cut };
            if !revisits && random.once_in(30) {
                crawl.push(capture.clone(), &url(page), canonical.clone());
            }
            let is_lost = canonical.is_none();
            crawl.push(capture, &url(page), canonical);
            if fails {
                let last = crawl.captures.len() - 1;
                if matches!(crawl.captures[last].links, Links::Status(400.., _)) {
                    latest_failure[slot] = Some(last);
                }
            } else if !is_lost {
                latest[slot] = Some(crawl.captures.len() - 1);
            }
        }
        crawl
    }

    fn push(&mut self, capture: Capture, url: &str, canonical: Option<Vec<String>>) {
        self.captures.push(capture);
        self.canonical.push((url.to_owned(), canonical.unwrap_or_default()));
    }

    /// The oracle of this crawl.
    pub fn oracle(&self) -> Oracle {
        self.oracle_of(&(0..self.captures.len()).collect())
    }

    /// The crawl without the captures of removed pages, and without links to removed URLs. Both rules get a URL and the
    /// second of the capture. Only for crawls without revisits.
    #[must_use]
    pub fn without(
        &self,
        is_removed_page: impl Fn(&str, Time) -> bool,
        is_removed_target: impl Fn(&str, Time) -> bool,
    ) -> Crawl {
        let mut left = Crawl::default();
        for (capture, (url, canonical)) in self.captures.iter().zip(&self.canonical) {
            let mut capture = capture.clone();
            if is_removed_page(url, capture.time) {
                continue;
            }
            let stays: Vec<bool> = canonical.iter().map(|link| !is_removed_target(link, capture.time)).collect();
            match &mut capture.links {
                Links::Here(links) => {
                    let mut stays = stays.iter();
                    links.retain(|_| stays.next().copied().unwrap_or(true));
                }
                Links::Status(_, target) if stays.first() == Some(&false) => *target = None,
                _ => {}
            }
            let canonical = canonical.iter().zip(&stays).filter(|(_, stays)| **stays).map(|(link, _)| link.clone());
            left.push(capture, url, Some(canonical.collect()));
        }
        left
    }

    /// The oracle of some captures, given by index. Revisits of other captures have unknown links.
    pub fn oracle_of(&self, known: &BTreeSet<usize>) -> Oracle {
        let mut oracle = Oracle::default();
        for &index in known {
            let (time, (url, links)) = (self.captures[index].time, &self.canonical[index]);
            match self.origin(index) {
                Some(origin) if known.contains(&origin) => match self.captures[origin].links {
                    Links::Here(_) if self.captures[origin].is_cut => {
                        oracle.add_cut(url, time, links.iter().map(String::as_str));
                    }
                    Links::Status(status @ 400.., _) => oracle.add_failure(status, url, time),
                    Links::Status(status, _) => oracle.add_with(status, url, time, links.iter().map(String::as_str)),
                    _ => oracle.add(url, time, links.iter().map(String::as_str)),
                },
                _ => oracle.add_unknown(url, time),
            }
        }
        oracle
    }

    /// The index of the capture that spells out the links of this capture; `None` if that capture is not in the crawl.
    fn origin(&self, index: usize) -> Option<usize> {
        match self.captures[index].links {
            Links::Here(_) | Links::Status(..) => Some(index),
            Links::SameAs(before) => self.origin(before),
            Links::Lost => None,
        }
    }

    /// The crawl as JSON lines, one line per capture, with times as 14 digits or as seconds. Only for crawls without
    /// revisits.
    pub fn json_lines(&self) -> Vec<String> {
        let line = |(index, capture): (usize, &Capture)| {
            let time = if index % 3 == 0 { json!(capture.time) } else { json!(digits(capture.time)) };
            match &capture.links {
                Links::Here(links) if capture.is_cut => {
                    json!({"url": capture.url, "ts": time, "links": links, "cut": true}).to_string()
                }
                Links::Here(links) => json!({"url": capture.url, "ts": time, "links": links}).to_string(),
                Links::Status(status, target) => {
                    let links: Vec<&String> = target.iter().collect();
                    json!({"url": capture.url, "ts": time, "links": links, "status": status}).to_string()
                }
                _ => panic!("a revisit has no JSON line"),
            }
        };
        self.captures.iter().enumerate().map(line).collect()
    }

    /// The crawl as WARC, one record per capture. Revisits are revisit records.
    pub fn warc(&self) -> Vec<String> {
        let digest = |index: usize| {
            let mut random = Random(index as u64);
            (0..32)
                .map(|_| char::from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[(random.draw() % 32) as usize]))
                .collect::<String>()
        };
        let record = |(index, capture): (usize, &Capture)| {
            let mut header = String::new();
            let origin = self.origin(index).unwrap_or(index);
            let (kind, body) = match &capture.links {
                Links::Here(links) => ("response", html(links)),
                Links::Status(..) => ("response", html(&["http://not.a.link.example/".to_owned()])),
                _ => ("revisit", String::new()),
            };
            let (status, location) = match &capture.links {
                Links::Status(status, Some(target)) => (*status, format!("Location: {target}\r\n")),
                Links::Status(status, None) => (*status, String::new()),
                _ => (200, String::new()),
            };
            let http = format!(
                "HTTP/1.1 {status} So\r\n{location}Content-Type: text/html; charset=utf-8\r\n\
                 Content-Length: {}\r\n\r\n",
                body.len()
            );
            let block = match (kind, &self.captures[origin].links) {
                ("response", _) => http + &body,
                // Only a revisit without a status may be a revisit of a failure.
                (_, Links::Status(..)) => String::new(),
                _ => http,
            };
            let _ = write!(
                header,
                "WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{index:012}>\r\n"
            );
            let _ = write!(header, "WARC-Date: {}\r\nWARC-Target-URI: {}\r\n", rfc3339(capture.time), capture.url);
            if capture.is_cut {
                let _ = write!(header, "WARC-Truncated: length\r\n");
            }
            if kind == "revisit" {
                let _ = write!(
                    header,
                    "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\n"
                );
                let (url, time) = match &capture.links {
                    Links::Lost => ("http://lost.example/", 86_400),
                    _ => (self.captures[origin].url.as_str(), self.captures[origin].time),
                };
                let _ =
                    write!(header, "WARC-Refers-To-Target-URI: {url}\r\nWARC-Refers-To-Date: {}\r\n", rfc3339(time));
            }
            let digest = digest(if matches!(capture.links, Links::Lost) { index + 1_000_000 } else { origin });
            let _ = write!(
                header,
                "WARC-Payload-Digest: sha1:{digest}\r\nContent-Type: application/http;msgtype=response\r\n"
            );
            let _ = write!(header, "Content-Length: {}\r\n\r\n", block.len());
            header + &block + "\r\n\r\n"
        };
        self.captures.iter().enumerate().map(record).collect()
    }
}

/// New links of a page: mostly the links that the page had before.
fn evolve(before: Option<&Vec<String>>, size: &Size, page: u64, random: &mut Random) -> Vec<String> {
    if random.once_in(20) {
        return Vec::new();
    }
    let mut links = before.cloned().unwrap_or_default();
    if !links.is_empty() && random.once_in(2) {
        return links;
    }
    links.retain(|_| !random.once_in(10));
    let most = usize::try_from(1 + random.below(size.links)).expect("small");
    while links.len() < most {
        let target = if random.once_in(8) { page } else { random.below(1 + size.pages * 3) };
        links.push(url(target));
    }
    links
}

fn html(links: &[String]) -> String {
    let mut body = String::from("<!doctype html><title>A page</title>\n");
    for link in links {
        let _ = writeln!(body, "<p>See <a href=\"{}\">this</a>.</p>", link.replace('&', "&amp;"));
    }
    body
}

/// A time as 14 digits. The calendar here is independent of the calendars under test.
pub fn digits(time: Time) -> String {
    rfc3339(time).chars().filter(char::is_ascii_digit).collect()
}

fn rfc3339(time: Time) -> String {
    let (mut day, second) = (time.div_euclid(86_400), time.rem_euclid(86_400));
    let mut year = 1970;
    let leap = |year: i64| (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    while day >= 365 + i64::from(leap(year)) {
        day -= 365 + i64::from(leap(year));
        year += 1;
    }
    let mut month = 1;
    for days in [31, 28 + i64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if day < days {
            break;
        }
        day -= days;
        month += 1;
    }
    format!("{year:04}-{month:02}-{:02}T{:02}:{:02}:{:02}Z", day + 1, second / 3600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_as_text() {
        assert_eq!(digits(0), "19700101000000");
        assert_eq!(rfc3339(1_709_210_096), "2024-02-29T12:34:56Z");
    }

    #[test]
    fn crawls_hold_what_they_promise() {
        let size = Size { pages: 40, captures: 800, links: 12 };
        let crawl = Crawl::random(5, size);
        let totals = crawl.oracle().totals();
        assert!(totals.captures < crawl.captures.len() as u64, "no two captures in one second");
        let links = |capture: &Capture| match &capture.links {
            Links::Here(links) => links.clone(),
            _ => Vec::new(),
        };
        assert!(crawl.captures.iter().any(|capture| links(capture).is_empty()));
        assert!(crawl.captures.iter().flat_map(links).any(|link| link.contains('#')));
        let revisits = Crawl::with_revisits(5, size);
        assert!(revisits.oracle().totals().unknown_captures > 10);
        assert!(revisits.captures.iter().filter(|capture| matches!(capture.links, Links::SameAs(_))).count() > 50);
    }
}
