//! CDX: one capture a line, in columns.
//!
//! The first line of a file may name the columns by letters, after the delimiter: ` CDX N b a m s k r M S V g`. The
//! columns may have any order. Other letters are passed over. Most files have no such line:
//!
//! | columns | fields |
//! |---|---|
//! | 7 | key, time, URL, type, status, digest, length |
//! | 8 | key, time, URL, type, status, digest, offset, file |
//! | 9 | key, time, URL, type, status, digest, redirect, offset, file |
//! | 10 | the same, with robot flags after the redirect |
//! | 11 | the same, with the length after the robot flags |
//! | 12 to 14 | the same, with length, offset, file of the original of a revisit |
//! | 7 or 8, NetarchiveSuite | URL, address, time, type, length, file, offset, perhaps a digest |
//!
//! | letter | field | use |
//! |---|---|---|
//! | `a` | URL as crawled | the URL of the capture |
//! | `b` | time | the time of the capture |
//! | `m`, `s`, `k` | media type, status, digest | see [`super::entry`] |
//! | `r` | target of a redirect | the link of a capture with a status of 3xx, if redirects are links |
//! | `N` | key | not used: a key has lost the case and the scheme of its URL |
//!
//! A key, a URL or a target of a redirect may have spaces. Words that are too many belong to the key if they are before
//! the time, to the URL if a type and a status follow them, and else to the redirect: columns are counted from both
//! ends. Damage: lines with other numbers of words, and words in the place of a time or a status that cannot be read.
//! Sources: the code of pywb (`warcserver/index/cdxobject.py`), OutbackCDX, and NetarchiveSuite.

use super::entry::{Damage, Entry, Form, IndexReader, Words};
use super::{is_digits, is_netarchive_cdx, status_or_none};
use crate::files::lines::Lines;
use crate::{CaptureReader, Finding, Tally};
use std::io::BufRead;
use std::path::Path;

pub(crate) fn open(text: Box<dyn BufRead + Send>, path: &Path, redirects: bool) -> Box<dyn CaptureReader> {
    let lines = Lines::new(text, path);
    Box::new(IndexReader { lines, form: Cdx::default(), redirects, not_html: None })
}

#[derive(Default)]
struct Cdx {
    header: Option<Header>,
    words: Words,
}

/// The columns that a line of letters names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    delimiter: u8,
    columns: usize,
    time: usize,
    url: usize,
    mime: Option<usize>,
    status: Option<usize>,
    digest: Option<usize>,
    redirect: Option<usize>,
}

/// Whether a line names columns.
pub(super) fn is_header(line: &str) -> bool {
    // A header begins with its delimiter, which some writers leave out.
    [" CDX ", "\tCDX\t", "CDX A ", "CDX N "].iter().any(|begin| line.starts_with(begin)) || line == " CDX"
}

impl Header {
    /// The columns of a header line; `None` if the columns do not name the URL and the time.
    pub(super) fn of(line: &str) -> Option<Header> {
        let delimiter = if line.starts_with('\t') { b'\t' } else { b' ' };
        let letters: Vec<&str> = line.split_ascii_whitespace().skip(1).collect();
        let of = |letter: &str| letters.iter().position(|&other| other == letter);
        Some(Header {
            delimiter,
            columns: letters.len(),
            time: of("b")?,
            url: of("a")?,
            mime: of("m"),
            status: of("s"),
            digest: of("k"),
            redirect: of("r"),
        })
    }

    fn entry<'a>(self, words: &Words, line: &'a str) -> Option<Entry<'a>> {
        let more = words.len().checked_sub(self.columns)?;
        let before_time = words.time(line, self.time).map_or(0, |time| time - self.time);
        let in_key = if self.time > 0 && self.time < self.url && before_time <= more { before_time } else { 0 };
        // The words that belong to the URL beside its first. The redirect has the others, if it comes later.
        let redirect = self.redirect.filter(|&at| at > self.url);
        let behind = |in_url: usize| {
            let before = |column: Option<usize>| column.filter(|&at| redirect.is_none_or(|redirect| at < redirect));
            let at = |column: usize| column + in_key + if column > self.url { in_url } else { 0 };
            [self.mime, self.status, self.digest].map(|column| before(column).map(|column| words.get(line, at(column))))
        };
        let in_url = redirect.and_then(|_| words_of_url(more - in_key, behind)).unwrap_or(more - in_key);
        let moved = |at: usize| match at {
            at if redirect.is_some_and(|redirect| at > redirect) => at + more,
            at if at > self.url => at + in_key + in_url,
            at if at >= self.time => at + in_key,
            at => at,
        };
        let field = |at: Option<usize>| at.map_or("", |at| words.get(line, moved(at))).into();
        let target = redirect.map(|at| words.span(line, moved(at), at + more));
        Some(Entry {
            url: words.span(line, moved(self.url), self.url + in_key + in_url).into(),
            date: field(Some(self.time)),
            mime: field(self.mime),
            status: field(self.status),
            digest: field(self.digest),
            redirect: target.map_or_else(|| field(self.redirect), Into::into),
            ..Entry::default()
        })
    }
}

/// The number of words of a URL beside its first, of at most `most`: as many as are before a type, a status and a
/// digest. `behind` gives the words that stand there. `None` if no number fits.
fn words_of_url<'a>(most: usize, behind: impl Fn(usize) -> [Option<&'a str>; 3]) -> Option<usize> {
    const DIGEST_MIN: usize = 16;
    let is_type =
        |word: &str| word.contains('/') && !word.contains("://") || matches!(word, "-" | "unk" | "no-type" | "unknown");
    let is_digest = |word: &str| word == "-" || word.len() >= DIGEST_MIN;
    let fits = |more: &usize| {
        let [mime, status, digest] = behind(*more);
        mime.is_none_or(is_type) && status.is_some_and(status_or_none) && (*more == 0 || digest.is_none_or(is_digest))
    };
    let is_simple = || {
        let [mime, status, _] = behind(0);
        mime.is_none_or(|mime| !mime.contains("://")) && status.is_some_and(status_or_none)
    };
    (0..=most).find(fits).or_else(|| is_simple().then_some(0))
}

impl Form for Cdx {
    const DAMAGE: Finding = Finding::BadRow;

    fn entry<'a>(&mut self, line: &'a str, _: &mut Tally) -> Result<Option<Entry<'a>>, Damage> {
        if is_header(line) {
            self.header = Header::of(line);
            let missing = || (Finding::BadRow, "the header names no columns a and b".to_owned());
            return self.header.map(|_| None).ok_or_else(missing);
        }
        self.words.split(line, self.header.map(|header| header.delimiter));
        let entry = match self.header {
            Some(header) => header.entry(&self.words, line),
            None => entry(&self.words, line),
        };
        entry.map(Some).ok_or_else(|| (Finding::BadRow, format!("{} columns", self.words.len())))
    }
}

/// The fields of a line without header.
fn entry<'a>(words: &Words, line: &'a str) -> Option<Entry<'a>> {
    let all = words.len();
    if let Some(has_digest) = is_netarchive_cdx(words, line) {
        let digest = usize::from(has_digest);
        return Some(Entry {
            url: words.span(line, 0, all - digest - 7).into(),
            date: words.get(line, all - digest - 5).into(),
            mime: words.get(line, all - digest - 4).into(),
            digest: if has_digest { words.get(line, all - 1) } else { "" }.into(),
            ..Entry::default()
        });
    }
    let time = words.time(line, 1).unwrap_or(1);
    // The words after the time: URL, type, status, digest, ...
    let rest = all.checked_sub(time + 1)?;
    let behind = |more: usize| [2, 3, 4].map(|column| Some(words.get(line, time + more + column)));
    let columns_min = COLUMNS_MIN - 2;
    let more = words_of_url(rest.checked_sub(columns_min)?, behind).unwrap_or(0);
    let url = time + 1 + more;
    let columns = rest - more + 2;
    let redirect = url + 4;
    let behind = |at: usize| (at..all).map(|at| words.get(line, at));
    // A redirect with spaces ends before the columns that follow it.
    let end = match words.get(line, redirect) {
        "-" | "" => None,
        _ => TAILS.iter().find_map(|tail| {
            let at = all.checked_sub(tail.len()).filter(|&at| at > redirect)?;
            behind(at).zip(*tail).all(|(word, column)| column.fits(word)).then_some(at)
        }),
    };
    let columns = end.map_or(columns, |end| redirect + 1 + all - end - (url - 2));
    (COLUMNS_MIN..=COLUMNS_MAX).contains(&columns).then(|| Entry {
        url: words.span(line, time + 1, url).into(),
        date: words.get(line, time).into(),
        mime: words.get(line, url + 1).into(),
        status: words.get(line, url + 2).into(),
        digest: words.get(line, url + 3).into(),
        redirect: match end {
            Some(end) => words.span(line, redirect, end - 1),
            None if columns >= REDIRECT_COLUMNS => words.get(line, redirect),
            None => "",
        }
        .into(),
        ..Entry::default()
    })
}

/// A column after the redirect.
#[derive(Clone, Copy)]
enum Behind {
    /// `-`, or letters such as `AFI`.
    Flags,
    /// A length, which may be `-`.
    Length,
    Offset,
    File,
    /// A length, an offset or a file of the original of a revisit.
    OfOriginal,
}

/// The columns after the redirect, the longest first.
const TAILS: [&[Behind]; 6] = {
    use Behind::{File, Flags, Length, OfOriginal, Offset};
    [
        &[Flags, Length, Offset, File, OfOriginal, OfOriginal, OfOriginal],
        &[Flags, Length, Offset, File, OfOriginal, OfOriginal],
        &[Flags, Length, Offset, File, OfOriginal],
        &[Flags, Length, Offset, File],
        &[Flags, Offset, File],
        &[Offset, File],
    ]
};

impl Behind {
    fn fits(self, word: &str) -> bool {
        const FLAGS_MAX: usize = 8;
        let is_number = is_digits(word, 1, 20);
        match self {
            Behind::Flags => {
                word == "-" || word.len() <= FLAGS_MAX && word.bytes().all(|byte| byte.is_ascii_uppercase())
            }
            Behind::Length => is_number || word == "-",
            Behind::Offset => is_number,
            Behind::File => !is_number && word != "-",
            Behind::OfOriginal => true,
        }
    }
}

const COLUMNS_MIN: usize = 7;
const COLUMNS_MAX: usize = 14;
/// The number of columns from which on a line has a target of a redirect.
const REDIRECT_COLUMNS: usize = 9;

#[cfg(test)]
mod tests {
    use super::super::entry::tests::{counts, read_all};
    use super::*;

    const SHA1: &str = "B2LTWWPUOYAH7UIPQ7ZUPQ4VMBSVC36A";

    fn read(text: &str) -> (Vec<String>, Tally) {
        let text = text.replace("SHA1", SHA1).into_bytes();
        read_all(open(Box::new(std::io::Cursor::new(text)), Path::new("x.cdx"), true))
    }

    #[test]
    fn lines_of_every_number_of_columns() {
        for (line, expected) in [
            ("a)/ 20080430204826 http://a/ text/html 200 SHA1 1046", "http://a/ 1209588506 200 unknown"),
            ("a)/ 20080430204826 http://a/ text/html 200 SHA1 334 a.arc", "http://a/ 1209588506 200 unknown"),
            (
                "a/ 20080430204826 http://a/ unk 302 SHA1 http://t/ 12 a.warc",
                "http://a/ 1209588506 302 links http://t/",
            ),
            ("a)/ 20080430204826 http://a/ unk 302 SHA1 - AFI 12 a.warc", "http://a/ 1209588506 302 links"),
            ("a)/ 20080430204826 http://a/ warc/revisit - SHA1 - - 5 12 a.warc", "http://a/ 1209588506 - revisit"),
            ("a)/ 20080430204826 http://a/ warc/revisit - SHA1 - - 5 12 a 1", "http://a/ 1209588506 - revisit"),
            ("a)/ 20080430204826 http://a/ warc/revisit - SHA1 - - 5 12 a 1 2", "http://a/ 1209588506 - revisit"),
            ("a)/ 20080430204826 http://a/ warc/revisit - SHA1 - - 5 12 a 1 2 b", "http://a/ 1209588506 - revisit"),
            ("http://a/ 1.2.3.4 20080430204826 text/html 60 x.arc.gz 7", "http://a/ 1209588506 - unknown"),
            (
                "http://a/ 1.2.3.4 20080430204826 text/html 60 x.arc 7 0123456789abcdef0123456789abcdef",
                "http://a/ 1209588506 - unknown",
            ),
            // Spaces in URLs and keys.
            ("a)/b%20c 20080430204826 http://a/b c text/html 200 SHA1 12", "http://a/b c 1209588506 200 unknown"),
            ("a)/b c d 20080430204826 http://a/b c d text/html 404 SHA1 - 5 a", "http://a/b c d 1209588506 404 links"),
            ("a)/b 20080430204826 http://a/b 200 c unk - SHA1 - - 5 12 a", "http://a/b 200 c 1209588506 - unknown"),
            ("http://a/b c 1.2.3.4 20080430204826 text/html 60 x.arc.gz 7", "http://a/b c 1209588506 - unknown"),
            // Spaces in redirects, before every number of columns.
            (
                "a)/ 20080430204826 http://a/ - 302 SHA1 http://t/a b 12 a.warc",
                "http://a/ 1209588506 302 links http://t/a b",
            ),
            ("a)/ 20080430204826 http://a/ - 302 SHA1 /a b  c AF 12 a.warc", "http://a/ 1209588506 302 links /a b  c"),
            (
                "a)/ 20080430204826 http://a/ text/html 302 SHA1 /a b - d 2 - 5 12 a.warc",
                "http://a/ 1209588506 302 links /a b - d 2",
            ),
            (
                "a)/ 20080430204826 http://a/ - 302 SHA1 /a b c d e f - - 12 a.warc",
                "http://a/ 1209588506 302 links /a b c d e f",
            ),
            (
                "a)/ 20080430204826 http://a/ - 302 SHA1 /a b - 5 12 a.warc 6 13 b.warc",
                "http://a/ 1209588506 302 links /a b",
            ),
            (
                "a)/x y 20080430204826 http://a/x y - 302 SHA1 /a b - 5 12 a.warc",
                "http://a/x y 1209588506 302 links /a b",
            ),
        ] {
            let (captures, tally) = read(&format!("{line}\r\n"));
            assert_eq!((captures, tally), (vec![expected.to_owned()], Tally::default()), "{line}");
        }
        let (captures, tally) = read("dns:a.net 130.225.24.33 20040708140342 text/dns 60 x.arc 141472\n");
        assert_eq!((captures.len(), counts(&tally)), (0, vec![(Finding::Dns, 1)]));
    }

    #[test]
    fn headers_give_the_order() {
        let (captures, tally) = read(concat!(
            " CDX N b a m s k r M S V g\n",
            "a)/ 20080430204826 http://a/ text/html 301 SHA1 http://t/ - 5 12 a.warc\n",
            "a)/b c 20080430204826 http://a/b c text/html 404 SHA1 - - 5 12 a.warc\n",
            "\n",
            " CDX A b e a m s c k r V v D d g M n\n",
            "a/ 20080430204826 1.2.3.4 http://a/x y text/html 200 c0 SHA1 - 1 2 3 4 a.arc - 7\n",
            "\tCDX\ts\ta\tb\n",
            "200\thttp://a/ z\t20080430204826\n",
            "CDX N b a\n",
            "a)/ 20080430204826 http://a/\n",
            " CDX N b a m s k r M S V g\n",
            "a)/ 20080430204826 http://a/ text/html 301 SHA1 http://t/a b  c - 5 12 a.warc\n",
            "a)/b c 20080430204826 http://a/b c - 301 SHA1 /a b - 5 12 a.warc\n",
            " CDX A r b a m s\n",
            "a/ /t 20080430204826 http://a/x y text/html 301\n",
            " CDX N b a m s k M S V g r\n",
            "a)/ 20080430204826 http://a/ text/html 301 SHA1 - 5 12 a.warc /a b\n",
        ));
        let expected = [
            "http://a/ 1209588506 301 links http://t/",
            "http://a/b c 1209588506 404 links",
            "http://a/x y 1209588506 200 unknown",
            "http://a/ z 1209588506 200 unknown",
            "http://a/ 1209588506 - unknown",
            "http://a/ 1209588506 301 links http://t/a b  c",
            "http://a/b c 1209588506 301 links /a b",
            "http://a/x y 1209588506 301 links /t",
            "http://a/ 1209588506 301 links /a b",
        ];
        assert_eq!((captures, tally), (expected.map(str::to_owned).to_vec(), Tally::default()));
    }

    #[test]
    fn a_revisit_has_the_type_of_the_same_digest_before() {
        let line = |mime: &str, digest: char| {
            let status = if mime == "warc/revisit" { "-" } else { "200" };
            format!("a)/x 20080430204826 http://a/x {mime} {status} {digest}{} 7\n", &SHA1[1..])
        };
        let all = [("image/png", 'A'), ("warc/revisit", 'A'), ("warc/revisit", 'A'), ("warc/revisit", 'B')];
        let (captures, tally) = read(&all.map(|(mime, digest)| line(mime, digest)).concat());
        assert_eq!((captures.len(), counts(&tally)), (1, vec![(Finding::NotHtml, 3)]));
        let (captures, _) = read(&[line("text/html", 'A'), line("warc/revisit", 'A')].concat());
        assert_eq!(captures.len(), 2);
    }

    #[test]
    fn damage_is_counted_where_it_stands() {
        let good = "a)/ 20080430204826 http://a/ text/html 200 SHA1 1046\n";
        let bad = [
            ("a)/ 20080430204826 http://a/ text/html", Finding::BadRow),
            ("a)/ 20081399204826 http://a/ text/html 200 SHA1 1046", Finding::BadDate),
            ("a)/ yesterday http://a/ text/html 200 SHA1 1046", Finding::BadDate),
            ("a)/ 20080430204826 http://a/ text/html 2xx SHA1 1046", Finding::BadRow),
            ("a)/ 20080430204826 http://a/ - html> SHA1 - - 2479 5 a.warc", Finding::BadRow),
            ("a)/ 20080430204826 http://a/ 302 SHA1 - - 349 21033214 a.arc.gz", Finding::BadRow),
            ("a", Finding::BadRow),
        ];
        let (mut text, mut offsets) = (good.replace("SHA1", SHA1), Vec::new());
        for (line, finding) in bad {
            offsets.push((finding, text.len() as u64));
            text += &format!("{line}\n{good}").replace("SHA1", SHA1);
        }
        let (captures, tally) = read(&text);
        assert_eq!(captures.len(), 1 + bad.len());
        let mut found: Vec<_> = tally.examples().iter().map(|place| (place.finding, place.offset)).collect();
        found.sort_by_key(|place| place.1);
        assert_eq!(found, offsets);
    }
}
