//! Index files: they list captures and where the captures are, and say nothing about links. The reader names index
//! files and reads no captures from them.
//!
//! | kind | a line |
//! |---|---|
//! | CDX | fields of captures, in the orders of 7 and of 9 to 14 fields; or with a line ` CDX N b a ...` before them |
//! | CDX of NetarchiveSuite | `url ip ts mime length file offset [md5]` |
//! | CDXJ | `urlkey ts {...}`; lines that begin with `!` or `@` are about the file |
//! | ZipNum | `urlkey ts`, shard, offset, length, separated by tabs |
//! | crawl log | of Heritrix: time, status, size, URL; of Browsertrix: JSON |
//! | list of pages | `pages.jsonl` of a WACZ |
//!
//! A file has the kind that more than half of its first lines have. Where a URL may have spaces, fields are counted
//! from both ends.

use crate::files::head::{Head, fields};

const CDX: &str = "CDX";
const CDXJ: &str = "CDXJ";
const ZIPNUM: &str = "ZipNum index";
const LOG: &str = "crawl log";
const PAGES: &str = "list of pages of a WACZ";

/// The number of lines that are read.
const LINES_MAX: usize = 40;

/// The kind of an index file according to its first lines; `None` for other files.
pub(crate) fn kind(head: &Head<'_>) -> Option<&'static str> {
    // A CDX begins with its delimiter, which some writers leave out.
    if [&b" CDX"[..], b"CDX A ", b"CDX N ", b"\tCDX"].iter().any(|magic| head.text.starts_with(magic)) {
        return Some(CDX);
    }
    if head.text.starts_with(b"!OpenWayback-CDXJ") {
        return Some(CDXJ);
    }
    let lines: Vec<&[u8]> = head.whole_lines().take(LINES_MAX).collect();
    let first = lines.first()?;
    if first.starts_with(b"{") && memchr::memmem::find(first, b"\"json-pages-").is_some() {
        return Some(PAGES);
    }
    let kinds: Vec<Option<&str>> = lines.iter().map(|line| kind_of(line)).collect();
    let of = |kind: &str| kinds.iter().filter(|&&of_line| of_line == Some(kind)).count();
    [CDX, CDXJ, ZIPNUM, LOG].into_iter().find(|kind| 2 * of(kind) > lines.len())
}

/// The kind of a line.
fn kind_of(line: &[u8]) -> Option<&'static str> {
    if line.starts_with(b"{") {
        let fields = fields(line);
        let has = |name: &[u8]| fields.contains(&name);
        return if has(b"logLevel") {
            Some(LOG)
        } else if has(b"urlkey") && has(b"timestamp") {
            Some(CDXJ)
        } else {
            None
        };
    }
    if [&b"!"[..], b"@context", b"@meta", b"@id", b"@keys"].iter().any(|about| line.starts_with(about)) {
        return Some(CDXJ);
    }
    let line = std::str::from_utf8(line).ok()?;
    if is_zipnum(line) {
        return Some(ZIPNUM);
    }
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let word = |at: usize| words.get(at).copied().unwrap_or_default();
    if is_digits(word(1), 12, 17) && word(2).starts_with('{') {
        Some(CDXJ)
    } else if is_cdx(&words) || is_netarchive_cdx(&words) {
        Some(CDX)
    } else if is_log_time(word(0)) && word(1).parse::<i32>().is_ok() && words.len() >= 4 {
        Some(LOG)
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
fn is_cdx(words: &[&str]) -> bool {
    matches!(words.len(), 7 | 9..=14)
        && is_digits(words[1], 12, 17)
        && !words[3].contains("://")
        && (words[4] == "-" || is_digits(words[4], 3, 3))
}

/// `url ip ts mime length file offset [md5]`, where the URL may have spaces.
fn is_netarchive_cdx(words: &[&str]) -> bool {
    let with_digest = words.last().is_some_and(|last| last.len() == 32 && last.bytes().all(|b| b.is_ascii_hexdigit()));
    let words = &words[..words.len() - usize::from(with_digest)];
    let [.., ip, time, _, length, file, offset] = words else { return false };
    let is_ip = ip.contains(['.', ':']) && ip.bytes().all(|byte| byte.is_ascii_hexdigit() || b".:".contains(&byte));
    words.len() >= 7
        && is_ip
        && is_digits(time, 12, 17)
        && is_digits(length, 1, 20)
        && [".arc", ".warc"].iter().any(|end| file.contains(end))
        && is_digits(offset, 1, 20)
}

/// `2007-12-27T12:51:28.532Z`, or 17 digits.
fn is_log_time(word: &str) -> bool {
    let is_iso = word.len() >= 20 && word.as_bytes()[10] == b'T' && word.ends_with('Z') && is_digits(&word[..4], 4, 4);
    word.is_ascii() && (is_iso || is_digits(word, 17, 17))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_each_kind() {
        for (text, expected) in [
            (" CDX N b a m s k r M S V g\n", Some(CDX)),
            ("com,example)/ 20140127171200 http://example.com text/html 200 B2LT - - 1046 334 a.warc.gz\n", Some(CDX)),
            ("com,example)/ 20140127171200 http://example.com warc/revisit - B2LT 1046\n", Some(CDX)),
            ("example.com/ 20140127171200 http://example.com unk 302 B2LT http://t/ 12 a.warc\n", Some(CDX)),
            ("dns:a.net 130.225.24.33 20040708140342 text/dns 60 x.arc 141472\n", Some(CDX)),
            (
                "http://a/b c 1.2.3.4 20040708140342 text/html 60 x.arc.gz 7 0123456789abcdef0123456789abcdef\n",
                Some(CDX),
            ),
            ("!meta {}\ncom,example)/ 20140127171200 {\"url\": \"http://example.com\"}\n", Some(CDXJ)),
            ("{\"urlkey\": \"com,example)/\", \"timestamp\": \"20140127171200\", \"url\": \"x\"}\n", Some(CDXJ)),
            ("com,example)/ 20140127171200\tzipnum\t0\t275\t1\n", Some(ZIPNUM)),
            ("2007-12-27T12:51:28.532Z     1         59 dns:a.dk P http://a.dk/ text/dns #017\n", Some(LOG)),
            ("{\"logLevel\":\"info\",\"timestamp\":\"2023\"}\n", Some(LOG)),
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
