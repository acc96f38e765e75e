//! Index files: they list captures and where the captures are. They say nothing about the links of a page.
//!
//! | kind | a line | read by |
//! |---|---|---|
//! | CDX | fields of captures, in columns | [`cdx`] |
//! | CDXJ | `urlkey ts {...}`; lines that begin with `!` or `@` are about the file | [`cdxj`] |
//! | crawl log of Heritrix | time, status, size, URL, discovery path, the page before, ... | [`crawl_log`] |
//! | crawl log of Browsertrix | JSON | not read |
//! | ZipNum index | `urlkey ts`, shard, offset, length, separated by tabs | not read: it names blocks of captures |
//! | list of pages | `pages.jsonl` of a WACZ | not read |
//!
//! ZipNum files (`cdx-00000.gz`) are CDX or CDXJ in gzip members of some lines each. The last line of a member may lack
//! its line feed ([`crate::files::compressed::MemberLines`]).
//!
//! A file has the kind that more than half of its first lines have. Where a URL may have spaces, fields are counted
//! from both ends. All readers make captures by one rule ([`entry`]).

pub(crate) mod cdx;
pub(crate) mod cdxj;
pub(crate) mod crawl_log;
mod entry;

use self::entry::Words;
use crate::files::head::{Head, fields};
use webstrata_url::spelt;

/// The kind of an index file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Cdx,
    Cdxj,
    CrawlLog,
    /// No captures are read; a description.
    NotRead(&'static str),
}

const ZIPNUM: Kind = Kind::NotRead("ZipNum index");
const BROWSER_LOG: Kind = Kind::NotRead("crawl log of Browsertrix");
const PAGES: Kind = Kind::NotRead("list of pages of a WACZ");
const CDX_WITHOUT_URLS: Kind = Kind::NotRead("CDX without columns for URL and time");
const CDXJ_WITHOUT_URLS: Kind = Kind::NotRead("CDXJ without the URLs of its captures");

/// The number of lines that are read.
const LINES_MAX: usize = 40;

/// The kind of an index file according to its first lines; `None` for other files.
pub(crate) fn kind(head: &Head<'_>) -> Option<Kind> {
    let lines: Vec<&[u8]> = head.whole_lines().take(LINES_MAX).collect();
    let first = lines.first()?;
    if let Some(header) = std::str::from_utf8(first).ok().filter(|first| cdx::is_header(first)) {
        return Some(cdx::Header::of(header).map_or(CDX_WITHOUT_URLS, |_| Kind::Cdx));
    }
    if first.starts_with(b"{") && memchr::memmem::find(first, b"\"json-pages-").is_some() {
        return Some(PAGES);
    }
    let kinds: Vec<Option<Kind>> = lines.iter().map(|line| kind_of(line)).collect();
    let of = |kind: Kind| kinds.iter().filter(|&&of_line| of_line == Some(kind)).count();
    let mut all = [Kind::Cdx, Kind::Cdxj, ZIPNUM, Kind::CrawlLog, BROWSER_LOG].into_iter();
    let kind = if head.text.starts_with(b"!OpenWayback-CDXJ") {
        Kind::Cdxj
    } else {
        all.find(|&kind| 2 * of(kind) > lines.len())?
    };
    let is_without_urls = kind == Kind::Cdxj && has_urls(&lines) == Some(false);
    Some(if is_without_urls { CDXJ_WITHOUT_URLS } else { kind })
}

/// Whether an object of the lines has a URL; `None` if there are no objects.
fn has_urls(lines: &[&[u8]]) -> Option<bool> {
    let has_url = |object: &str| {
        let names = fields(object.as_bytes());
        cdxj::URL_NAMES.iter().any(|name| names.contains(&name.as_bytes()))
    };
    let objects = lines.iter().filter(|line| !cdxj::is_about(line)).map(|line| spelt(line));
    let have_urls = objects.filter_map(|line| cdxj::parts(&line).map(|(_, object)| has_url(object)));
    have_urls.reduce(|one, other| one || other)
}

/// The kind of a line.
fn kind_of(line: &[u8]) -> Option<Kind> {
    if line.starts_with(b"{") {
        let fields = fields(line);
        let has = |name: &[u8]| fields.contains(&name);
        return if has(b"logLevel") {
            Some(BROWSER_LOG)
        } else if has(b"urlkey") && has(b"timestamp") {
            Some(Kind::Cdxj)
        } else {
            None
        };
    }
    if [&b"!"[..], b"@context", b"@meta", b"@id", b"@keys"].iter().any(|about| line.starts_with(about)) {
        return Some(Kind::Cdxj);
    }
    let line = &*spelt(line);
    if is_zipnum(line) {
        return Some(ZIPNUM);
    }
    let mut words = Words::default();
    words.split(line, None);
    let word = |at: usize| words.get(line, at);
    if is_digits(word(1), 12, 17) && word(2).starts_with('{') {
        Some(Kind::Cdxj)
    } else if is_cdx(&words, line) || is_netarchive_cdx(&words, line).is_some() {
        Some(Kind::Cdx)
    } else if is_log_time(word(0)) && word(1).parse::<i32>().is_ok() && words.len() >= 4 {
        Some(Kind::CrawlLog)
    } else {
        None
    }
}

fn is_digits(text: &str, least: usize, most: usize) -> bool {
    (least..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// `urlkey ts`, shard, offset, length.
fn is_zipnum(line: &str) -> bool {
    let fields: Vec<&str> = line.split('\t').collect();
    fields.len() >= 4
        && fields[0].rsplit_once(' ').is_some_and(|(_, time)| is_digits(time, 12, 17))
        && fields[2..4].iter().all(|number| is_digits(number, 1, 20))
}

/// `urlkey ts url mime status ...`.
fn is_cdx(words: &Words, line: &str) -> bool {
    let word = |at: usize| words.get(line, at);
    matches!(words.len(), 7 | 9..=WORDS_MAX)
        && is_digits(word(1), 12, 17)
        && !word(3).contains("://")
        && status_or_none(word(4))
}

/// The most words of a line of a CDX. A redirect may have spaces.
const WORDS_MAX: usize = 100;

/// Whether a word of a CDX is a status, or says that there is none.
fn status_or_none(word: &str) -> bool {
    word == "-" || is_digits(word, 3, 3)
}

/// Whether a line is `url ip ts mime length file offset [md5]`, where the URL may have spaces: whether it has the
/// digest.
fn is_netarchive_cdx(words: &Words, line: &str) -> Option<bool> {
    let word = |at: usize| words.get(line, at);
    let last = word(words.len().checked_sub(1)?);
    let has_digest = last.len() == 32 && last.bytes().all(|byte| byte.is_ascii_hexdigit());
    let first = words.len().checked_sub(6 + usize::from(has_digest))?;
    let [ip, time, _, length, file, offset] = std::array::from_fn(|at| word(first + at));
    let is_ip = ip.contains(['.', ':']) && ip.bytes().all(|byte| byte.is_ascii_hexdigit() || b".:".contains(&byte));
    let is_own = first > 0
        && is_ip
        && is_digits(time, 12, 17)
        && is_digits(length, 1, 20)
        && [".arc", ".warc"].iter().any(|end| file.contains(end))
        && is_digits(offset, 1, 20);
    is_own.then_some(has_digest)
}

/// `2007-12-27T12:51:28.532Z`, or 17 digits.
fn is_log_time(word: &str) -> bool {
    let has_year = word.get(..4).is_some_and(|year| is_digits(year, 4, 4));
    let is_iso = word.len() >= 20 && word.as_bytes()[10] == b'T' && word.ends_with('Z') && has_year;
    word.is_ascii() && (is_iso || is_digits(word, 17, 17))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_each_kind() {
        for (text, expected) in [
            (" CDX N b a m s k r M S V g\n", Some(Kind::Cdx)),
            (
                "com,example)/ 20140127171200 http://example.com text/html 200 B2LT - - 1046 334 a.warc.gz\n",
                Some(Kind::Cdx),
            ),
            ("com,example)/ 20140127171200 http://example.com warc/revisit - B2LT 1046\n", Some(Kind::Cdx)),
            ("example.com/ 20140127171200 http://example.com unk 302 B2LT http://t/ 12 a.warc\n", Some(Kind::Cdx)),
            ("dns:a.net 130.225.24.33 20040708140342 text/dns 60 x.arc 141472\n", Some(Kind::Cdx)),
            (
                "http://a/b c 1.2.3.4 20040708140342 text/html 60 x.arc.gz 7 0123456789abcdef0123456789abcdef\n",
                Some(Kind::Cdx),
            ),
            ("!meta {}\ncom,example)/ 20140127171200 {\"url\": \"http://example.com\"}\n", Some(Kind::Cdxj)),
            ("{\"urlkey\": \"com,example)/\", \"timestamp\": \"20140127171200\", \"url\": \"x\"}\n", Some(Kind::Cdxj)),
            ("com,example)/ 20140127171200\tzipnum\t0\t275\t1\n", Some(ZIPNUM)),
            ("2007-12-27T12:51:28.532Z     1         59 dns:a.dk P http://a.dk/ text/dns #017\n", Some(Kind::CrawlLog)),
            ("{\"logLevel\":\"info\",\"timestamp\":\"2023\"}\n", Some(BROWSER_LOG)),
            (" CDX N b\n", Some(CDX_WITHOUT_URLS)),
            ("!meta {}\ncom,example)/ 20140127171200 {\"locator\": \"urn:ipfs/Qm\"}\n", Some(CDXJ_WITHOUT_URLS)),
            ("!OpenWayback-CDXJ 1.0\n", Some(Kind::Cdxj)),
            ("200\u{e9}-12-27T12:51:28.532Z 1 59 dns:a.dk P http://a.dk/ text/dns #017\n", None),
            ("{\"format\": \"json-pages-1.0\"}\n{\"url\":\"http://a/\",\"ts\":\"2024\"}\n", Some(PAGES)),
            ("http://a/ 1.2.3.4 20140102030405 text/html 12\nHTTP/1.0 200 OK\n", None),
            ("http://a/ 1.2.3.4 20140102000000 text/html 200 abc - 2048 a.arc 7\nHTTP/1.0 200 OK\n", None),
            ("http://a/ 20140102030405 http://b/ http://c/ http://d/ http://e/ http://f/\n", None),
            ("{\"url\":\"http://a/\",\"ts\":\"2014\",\"links\":[]}\n", None),
            ("", None),
        ] {
            assert_eq!(kind(&Head { text: text.as_bytes(), is_all: true }), expected, "{text}");
        }
    }
}
