//! The crawl log of Heritrix: one line for each URL that the crawler tried.
//!
//! | column | field | use |
//! |---|---|---|
//! | 1 | time of the line | the time of the capture, if column 9 has none |
//! | 2 | status | see [`super::entry`]; statuses below 200 are the crawler's own, and give no capture |
//! | 3 | size | |
//! | 4 | URL | the URL of the capture |
//! | 5 | discovery path | the last letter says how the URL was found |
//! | 6 | `via`, the page before, or `-` | the page of a link, see below |
//! | 7 | media type | |
//! | 8 | thread | |
//! | 9 | `yyyyMMddHHmmssSSS+milliseconds`, or `-` | the time of the fetch |
//! | 10 | digest | |
//! | 11 | seed | |
//! | 12 | annotations | `duplicate:...` is a revisit |
//! | 13 | JSON | |
//!
//! Columns are separated by runs of blanks. Old logs end after column 10 or 11. Commas inside quotes do not separate
//! annotations. A log that was cut out of an ARC file may begin with the header of its record.
//!
//! # Links
//!
//! A line gives one link, from `via` to its URL. The letter `L` is a link of a page, and `R` is a redirect of `via`
//! (`Location` or meta refresh). The reader leaves out all other letters: embeds, guesses from scripts, forms.
//!
//! With [`LinkKinds::via`], a link belongs to the last page or redirect at `via` before the line, because a crawler
//! finds links in pages that the crawler has just fetched. The reader returns the link as one more capture of `via`,
//! with the time and the status of the line of `via`. The pipeline joins the captures of a URL in one second, and keeps
//! all their links. The time of the line with the link would be wrong: nobody captured `via` then, and each such
//! capture would end the links of the capture before.
//!
//! The links of a log are a spanning forest: a URL is in the log once, with the first page that linked to it. All other
//! links to the URL are missing. A page from which nothing was found first has unknown links.
//!
//! Links count as [`Finding::UnusedLinks`] if the log has no page or redirect of `via` before the line, or if that is a
//! duplicate. The original of a duplicate may have more links in the WARC files.
//!
//! Damage: lines with fewer than 10 columns, and columns in the place of a status or a time that cannot be read.
//!
//! Memory: with `via`, the times of up to twice [`TABLE_PAGES_MAX`] pages, 50 MiB. The pages before them are forgotten.
//! Source: `UriProcessingFormatter.java` and `Hop.java` of Heritrix 3.

use super::entry::{Damage, Entry, Form, IndexReader, Words, known};
use super::is_digits;
use crate::capture::date;
use crate::capture::meaning::{Meaning, ReferredTo, Seen};
use crate::files::lines::Lines;
use crate::formats::record;
use crate::{Capture, CaptureReader, Finding, LinkKinds, Tally};
use std::collections::HashMap;
use std::io::BufRead;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

pub(crate) fn open(text: Box<dyn BufRead + Send>, path: &Path, kinds: LinkKinds) -> Box<dyn CaptureReader> {
    let log = CrawlLog { words: Words::default(), links: kinds.via.then(ViaLinks::default), is_begun: false };
    Box::new(IndexReader { lines: Lines::new(text, path), form: log, redirects: kinds.redirects, not_html: None })
}

/// The fewest columns of a line.
const COLUMNS_MIN: usize = 10;

struct CrawlLog {
    words: Words,
    /// `None` if links are not asked for.
    links: Option<ViaLinks>,
    /// Whether a line was read.
    is_begun: bool,
}

impl Form for CrawlLog {
    const DAMAGE: Finding = Finding::BadRow;

    fn entry<'a>(&mut self, line: &'a str, tally: &mut Tally) -> Result<Option<Entry<'a>>, Damage> {
        let is_first = !std::mem::replace(&mut self.is_begun, true);
        self.words.split(line, None);
        let word = |at: usize| self.words.get(line, at);
        // The header of an ARC record: URL, address, time, type, length.
        if is_first && self.words.len() == 5 && is_digits(word(2), 14, 14) {
            tally.count(Finding::FileInfo);
            return Ok(None);
        }
        if self.words.len() < COLUMNS_MIN {
            return Err((Finding::BadRow, format!("{} columns", self.words.len())));
        }
        let begin = word(8).split_once('+').map(|(begin, _)| begin).filter(|begin| is_digits(begin, 17, 17));
        let entry = Entry {
            url: word(3).into(),
            date: begin.unwrap_or(word(0)).into(),
            mime: word(6).into(),
            status: word(1).into(),
            digest: word(9).into(),
            redirect: "".into(),
            duplicate: duplicate(self.words.span(line, 11, self.words.len().saturating_sub(1))),
            ..Entry::default()
        };
        if let Some(links) = &mut self.links {
            let hop = word(4).bytes().last();
            links.take(&entry, known(word(5)).filter(|via| is_http(via)), hop, tally);
        }
        Ok(Some(entry))
    }

    fn further(&mut self, capture: &mut Capture, tally: &mut Tally) -> bool {
        self.links.as_mut().is_some_and(|links| links.give(capture, tally))
    }
}

fn is_http(url: &str) -> bool {
    ["http://", "https://"]
        .iter()
        .any(|scheme| url.get(..scheme.len()).is_some_and(|at| at.eq_ignore_ascii_case(scheme)))
}

/// The revisit that the annotations of a line say: `duplicate:digest`, `duplicate:server-not-modified`, or
/// `duplicate:"FILE,OFFSET,TIME"` with the time of the original.
fn duplicate(annotations: &str) -> Option<ReferredTo> {
    let what = annotation(annotations, "duplicate:")?;
    let time = what.trim_matches('"').rsplit(',').next().filter(|time| is_digits(time, 14, 17));
    Some(record::revisit(Some(what), None, time))
}

/// The rest of the first annotation with this beginning. Blanks outside quotes end the annotations.
fn annotation<'a>(annotations: &'a str, begin: &str) -> Option<&'a str> {
    let mut is_quoted = false;
    let ends = |letter: char| {
        is_quoted ^= letter == '"';
        !is_quoted && (letter == ',' || letter.is_ascii_whitespace())
    };
    let mut parts = annotations.split_inclusive(ends);
    loop {
        let part = parts.next()?;
        let is_last = part.ends_with(|letter: char| letter.is_ascii_whitespace());
        let part = part.trim_end_matches([',', ' ', '\t']);
        match part.strip_prefix(begin) {
            Some(rest) => return Some(rest),
            None if is_last => return None,
            None => {}
        }
    }
}

/// The most pages in one of the two tables. Such a table has 2^20 places with 25 bytes each.
const TABLE_PAGES_MAX: usize = (1 << 20) / 8 * 7;

/// The links from pages before to URLs of the log.
#[derive(Default)]
struct ViaLinks {
    /// The pages that were seen last, by the hash of their URL.
    pages: HashMap<u64, Page>,
    /// The pages before them.
    older: HashMap<u64, Page>,
    /// The page with the link of the line at hand. The URLs of the page and of the link follow.
    next: Option<Page>,
    from: String,
    to: String,
}

/// The last capture of a URL.
#[derive(Clone, Copy, Debug)]
struct Page {
    time: i64,
    status: u16,
    is_duplicate: bool,
}

impl ViaLinks {
    /// Takes the link of a line, and remembers its URL as a page that may have links.
    fn take(&mut self, entry: &Entry<'_>, via: Option<&str>, hop: Option<u8>, tally: &mut Tally) {
        if let Some(via) = via.filter(|_| matches!(hop, Some(b'L' | b'R'))) {
            let key = xxh3_64(via.as_bytes());
            let page = self.pages.get(&key).or_else(|| self.older.get(&key)).filter(|page| !page.is_duplicate);
            self.next = page.copied();
            if self.next.is_some() {
                self.from.clear();
                self.from.push_str(via);
                self.to.clear();
                self.to.push_str(&entry.url);
            } else {
                tally.count(Finding::UnusedLinks);
            }
        }
        let status = entry.code().ok().flatten().unwrap_or(0);
        let may_link = match (Seen { status: Some(status), ..Seen::default() }).meaning() {
            Meaning::Page => entry.is_html() != Some(false),
            meaning => meaning == Meaning::Redirect,
        };
        if let (true, Some(date), Ok(status)) =
            (may_link && is_http(&entry.url), date::parse(&entry.date), u16::try_from(status))
        {
            if self.pages.len() >= TABLE_PAGES_MAX {
                self.older = std::mem::take(&mut self.pages);
            }
            let page = Page { time: date.seconds(), status, is_duplicate: entry.duplicate.is_some() };
            self.pages.insert(xxh3_64(entry.url.as_bytes()), page);
        }
    }

    /// Fills the capture of the page with the link of the line at hand.
    fn give(&mut self, capture: &mut Capture, tally: &mut Tally) -> bool {
        let Some(Page { time, status, .. }) = self.next.take() else { return false };
        capture.url.push_str(&self.from);
        capture.time = time;
        capture.links.push(&self.to);
        Seen { status: Some(status.into()), ..Seen::links() }.settle(true, capture, tally)
    }
}

#[cfg(test)]
mod tests {
    use super::super::entry::tests::{counts, read_all};
    use super::*;

    fn read(text: &str, via: bool) -> (Vec<String>, Vec<(Finding, u64)>) {
        let kinds = LinkKinds { via, ..LinkKinds::default() };
        let text = text.as_bytes().to_vec();
        let (captures, tally) = read_all(open(Box::new(std::io::Cursor::new(text)), Path::new("crawl.log"), kinds));
        (captures, counts(&tally))
    }

    /// A line: status, URL, path, via, type, begin of the fetch, annotations.
    fn line(status: i32, url: &str, path: &str, via: &str, mime: &str, begin: &str, notes: &str) -> String {
        format!("2008-04-30T20:50:00.123Z {status:5} {:>10} {url} {path} {via} {mime} #001 {begin} - - {notes}\n", 7)
    }

    #[test]
    fn the_time_is_that_of_the_fetch() {
        let begin = "20080430204826000+70";
        for (text, captures, findings) in [
            (
                line(200, "http://a/", "-", "-", "text/html", begin, "-"),
                vec!["http://a/ 1209588506 200 unknown"],
                vec![],
            ),
            (
                line(200, "http://a/", "-", "-", "text/html", "-", "-"),
                vec!["http://a/ 1209588600 200 unknown"],
                vec![(Finding::FinerDate, 1)],
            ),
            (
                line(404, "http://a/", "L", "http://b/", "image/png", begin, "3t"),
                vec!["http://a/ 1209588506 404 links"],
                vec![],
            ),
            (
                line(302, "http://a/", "LR", "http://b/", "no-type", begin, "-"),
                vec!["http://a/ 1209588506 302 links"],
                vec![],
            ),
            (line(200, "http://a/x", "E", "http://a/", "image/png", begin, "-"), vec![], vec![(Finding::NotHtml, 1)]),
            (line(1, "dns:a", "P", "http://a/", "text/dns", begin, "-"), vec![], vec![(Finding::Dns, 1)]),
            (line(-2, "http://a/", "L", "http://b/", "unknown", "-", "-"), vec![], vec![(Finding::OtherStatus, 1)]),
            (line(-9998, "http://a/", "L", "http://b/", "unknown", "-", "-"), vec![], vec![(Finding::OtherStatus, 1)]),
            (line(0, "http://a/", "L", "http://b/", "unknown", "-", "-"), vec![], vec![(Finding::OtherStatus, 1)]),
            (
                line(200, "http://a/", "-", "-", "text/html", begin, "duplicate:\"x.arc,7\",content-size:9"),
                vec!["http://a/ 1209588506 200 revisit"],
                vec![],
            ),
            // Old logs end after column 10, and new ones have an object in column 13.
            (
                "2008-04-30T20:48:26Z 200 7 http://a/ - - text/html #1 - -\n".to_owned(),
                vec!["http://a/ 1209588506 200 unknown"],
                vec![],
            ),
            (
                line(200, "http://a/", "-", "-", "text/html", begin, "3t {\"contentSize\": 7}"),
                vec!["http://a/ 1209588506 200 unknown"],
                vec![],
            ),
            (
                "metadata://a/crawl.log 1.2.3.4 20080430204826 text/plain 7\n".to_owned(),
                vec![],
                vec![(Finding::FileInfo, 1)],
            ),
            ("2008-04-30T20:48:26Z 200 7 http://a/\n".to_owned(), vec![], vec![(Finding::BadRow, 1)]),
            (
                "2008-04-30T20:48:26Z OK 7 http://a/ - - text/html #1 - -\n".to_owned(),
                vec![],
                vec![(Finding::BadRow, 1)],
            ),
            (
                "2008-13-30T20:48:26Z 200 7 http://a/ - - text/html #1 - -\n".to_owned(),
                vec![],
                vec![(Finding::BadDate, 1)],
            ),
        ] {
            let captures: Vec<String> = captures.into_iter().map(str::to_owned).collect();
            for via in [false, true] {
                let (found, counts) = read(&text, via);
                let counts: Vec<_> = counts.into_iter().filter(|count| count.0 != Finding::UnusedLinks).collect();
                assert_eq!((&found, &counts), (&captures, &findings), "{text}");
            }
        }
    }

    #[test]
    fn annotations_and_their_commas() {
        let original = |text| duplicate(text).map(|revisit| (revisit.profile, revisit.time));
        let same = crate::Profile::IdenticalDigest;
        assert_eq!(original("3t,duplicate:\"a.arc,7,20080430204826123\",x"), Some((Some(same), Some(1_209_588_506))));
        assert_eq!(original("duplicate:\"a b.arc,7\""), Some((Some(same), None)));
        assert_eq!(original("content-size:7,duplicate:digest {\"x\":1}"), Some((Some(same), None)));
        assert_eq!(original("duplicate:server-not-modified"), Some((Some(crate::Profile::NotModified), None)));
        for none in ["", "-", "3t", "le:\"x,duplicate:digest\"", "3t duplicate:digest", "duplicat", "\"", ",,,"] {
            assert_eq!(original(none), None, "{none}");
        }
    }

    #[test]
    fn links_belong_to_the_last_capture_of_their_page() {
        let [one, two, three] = ["20080430204826000+1", "20080430204827000+1", "20080430204828000+1"];
        let text = [
            line(200, "http://a/", "-", "-", "text/html", one, "-"),
            line(302, "http://a/old", "L", "http://a/", "text/html", two, "-"),
            line(200, "http://a/new", "LR", "http://a/old", "text/html", three, "-"),
            line(200, "http://a/x.png", "E", "http://a/", "image/png", three, "-"),
            line(-9998, "http://a/b", "L", "http://a/", "unknown", "-", "-"),
            line(200, "http://a/", "L", "http://a/new", "text/html", three, "-"),
            line(404, "http://a/c", "L", "http://a/", "text/html", three, "-"),
            line(404, "http://a/d", "L", "http://a/c", "text/html", three, "-"),
            line(404, "http://a/e", "X", "http://a/", "text/html", three, "-"),
            line(404, "http://a/f", "L", "dns:a", "text/html", three, "-"),
            line(200, "http://a/same", "L", "http://a/", "text/html", three, "duplicate:digest"),
            line(404, "http://a/g", "L", "http://a/same", "text/html", three, "-"),
        ]
        .concat();
        let (captures, findings) = read(&text, true);
        let links: Vec<&str> =
            captures.iter().filter(|line| line.split(' ').count() == 5).map(|line| &**line).collect();
        let expected = [
            "http://a/ 1209588506 200 links http://a/old",
            "http://a/old 1209588507 302 links http://a/new",
            "http://a/ 1209588506 200 links http://a/b",
            "http://a/new 1209588508 200 links http://a/",
            "http://a/ 1209588508 200 links http://a/c",
            "http://a/ 1209588508 200 links http://a/same",
        ];
        assert_eq!(links, expected);
        assert_eq!(captures[..2], ["http://a/ 1209588506 200 unknown", "http://a/old 1209588507 302 links"]);
        let counted = |finding| findings.iter().find(|count| count.0 == finding).map_or(0, |count| count.1);
        // The page with status 404, and the duplicate.
        assert_eq!((counted(Finding::UnusedLinks), captures.len()), (2, 10 + expected.len()));
        assert!(read(&text, false).0.iter().all(|capture| capture.split(' ').count() == 4));
    }
}
