//! Links files: plain text with pages and their links.
//!
//! ```text
//! http://a.example/            a page; its links stand indented on the lines below (the Link Database's form)
//!     http://a.example/x
//!     http://b.example/
//! http://a.example/x 20080430204826 http://a.example/ http://b.example/     a page, a time, links (tabs or spaces)
//! # a comment
//! ```
//!
//! A file may mix both forms: `SOURCE [TIME] [LINK...]`, then any number of indented lines of links. The time is any
//! text form of [`crate::capture::date`]. A page without a time has the time in the name of the file
//! (`crawl-20080430.links`: 14 or 8 digits). Without such a name, the page is undated and has the time 1970-01-01
//! 00:00:00. If a page has several undated records, the newest record is kept, and the others are counted. A record is
//! newer if its file was modified later, then if the name of its file sorts later, then if the record is later in the
//! file. Modification times have no other use: copying a file must not change when a page was captured.
//!
//! Damage: pages whose time has digits but is not a date, links before the first page.
//! Offsets count bytes of the uncompressed text. Source: SRC-RR-175 (2001), section 2.

use crate::capture::date::{self, Date};
use crate::capture::meaning::Seen;
use crate::files::head::Head;
use crate::files::lines::Lines;
use crate::{Capture, CaptureReader, Error, Finding, Tally};
use memchr::memmem;
use std::io::BufRead;
use std::path::Path;
use std::time::UNIX_EPOCH;
use webstrata_url::spelt;

pub(crate) fn open(text: Box<dyn BufRead + Send>, path: &Path) -> Box<dyn CaptureReader> {
    let undated = time_of_name(path).is_none().then(|| age(path));
    let time = time_of_name(path).unwrap_or(0);
    let lines = Lines::new(text, path);
    Box::new(LinksFile { lines, time, undated, is_source_held: false, is_comment: false })
}

/// Whether a text begins with such lines: some page has a link or a time, and at most as many lines are something else.
/// A list of URLs alone is not a links file.
pub(crate) fn is_own(head: &Head<'_>) -> bool {
    let (mut own, mut other, mut has_page) = (0, 0, false);
    for (line, _) in head.lines().take(LINES_MAX).filter(|(line, _)| !line.starts_with(b"#")) {
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let first = words.next().unwrap_or_default();
        if line[0].is_ascii_whitespace() {
            own += usize::from(has_page && is_link(first));
        } else if is_url(first) {
            has_page = true;
            own += usize::from(words.next().is_some_and(|second| is_link(second) || is_time(second)));
        } else {
            other += 1;
        }
    }
    own > 0 && own >= other
}

/// The number of lines that [`is_own`] reads.
const LINES_MAX: usize = 200;

/// Whether a word is a URL with a scheme and a host.
pub(crate) fn is_url(word: &[u8]) -> bool {
    let scheme = memmem::find(word, b"://").map_or(&b""[..], |at| &word[..at]);
    !scheme.is_empty() && scheme.iter().all(u8::is_ascii_alphanumeric) && !word.contains(&b' ')
}

/// Whether a word is a URL, or a path that cannot be a word of a text.
fn is_link(word: &[u8]) -> bool {
    let paths = [&b"/"[..], b"./", b"../", b"#", b"?", b"mailto:"];
    is_url(word) || paths.iter().any(|path| word.starts_with(path))
}

/// Whether a word is a date, or 4 to 14 digits in the place of a date.
fn is_time(word: &[u8]) -> bool {
    std::str::from_utf8(word).is_ok_and(|word| date::parse(word).is_some())
        || (4..=14).contains(&word.len()) && word.iter().all(u8::is_ascii_digit)
}

struct LinksFile {
    lines: Lines,
    /// The time of pages without a time.
    time: i64,
    /// How new the file is, if no time is known for pages without a time.
    undated: Option<Vec<u8>>,
    /// Whether the line at hand is the next page.
    is_source_held: bool,
    is_comment: bool,
}

impl CaptureReader for LinksFile {
    fn read(&mut self, capture: &mut Capture, tally: &mut Tally) -> Result<bool, Error> {
        capture.clear();
        let mut is_begun = false;
        loop {
            let mut goes_on = false;
            if !std::mem::take(&mut self.is_source_held) {
                let Some(read) = self.lines.read_words(tally)? else {
                    return Ok(is_begun && Seen::links().settle(false, capture, tally));
                };
                goes_on = read;
            }
            let line = self.lines.line();
            let is_indented = goes_on || line.first().is_some_and(|byte| matches!(byte, b' ' | b'\t'));
            self.is_comment = if goes_on { self.is_comment } else { line.starts_with(b"#") };
            if self.is_comment || line.trim_ascii().is_empty() {
                continue;
            }
            if is_begun && !is_indented {
                self.is_source_held = true;
                return Ok(Seen::links().settle(false, capture, tally));
            }
            if is_indented && !is_begun {
                tally.damage(Finding::BadRow, &self.lines.path, self.lines.start, "links before the first page");
                continue;
            }
            let text = spelt(line);
            let mut words = text.split_ascii_whitespace();
            if !is_indented {
                if let Err(time) = self.begin(&mut words, capture, tally) {
                    tally.damage(Finding::BadDate, &self.lines.path, self.lines.start, time);
                    capture.clear();
                    continue;
                }
                is_begun = true;
            }
            for word in words {
                capture.links.push(word);
            }
        }
    }
}

impl LinksFile {
    /// Takes the page and the time from the words of a line. If the second word is not a date, it is the first link.
    ///
    /// # Errors
    /// The second word consists of digits and is not a date.
    fn begin<'a>(
        &self,
        words: &mut impl Iterator<Item = &'a str>,
        capture: &mut Capture,
        tally: &mut Tally,
    ) -> Result<(), &'a str> {
        capture.url.push_str(words.next().unwrap_or_default());
        let word = words.next();
        match word.and_then(date::parse) {
            Some(date) => capture.time = date.counted(tally),
            None if word.is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit())) => {
                return Err(word.unwrap_or_default());
            }
            None => {
                capture.time = self.time;
                let age_and_offset = |age: &Vec<u8>| [&age[..], &self.lines.start.to_be_bytes()].concat();
                capture.undated = self.undated.as_ref().map(age_and_offset);
                word.into_iter().for_each(|word| capture.links.push(word));
            }
        }
        Ok(())
    }
}

fn time_of_name(path: &Path) -> Option<i64> {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let numbers = name.split(|letter: char| !letter.is_ascii_digit()).filter(|digits| matches!(digits.len(), 8 | 14));
    numbers.filter_map(date::parse).map(Date::seconds).next()
}

/// The age of a file as bytes that sort newer files later: the time of modification, then the name. A path that is not
/// a file is the newest.
fn age(path: &Path) -> Vec<u8> {
    let modified = std::fs::metadata(path).and_then(|file| file.modified()).ok();
    let nanoseconds =
        modified.map_or(u128::MAX, |time| time.duration_since(UNIX_EPOCH).map_or(0, |age| age.as_nanos()));
    // No name has a NUL byte, so a name sorts before the longer names that begin with it.
    [&nanoseconds.to_be_bytes(), path.as_os_str().as_encoded_bytes(), b"\0"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn read_all(text: &'static [u8], name: &str) -> (Vec<(String, i64, Vec<String>)>, Tally) {
        let mut reader = open(Box::new(Cursor::new(text)), Path::new(name));
        let (mut captures, mut capture, mut tally) = (Vec::new(), Capture::default(), Tally::default());
        while reader.read(&mut capture, &mut tally).unwrap() {
            captures.push((capture.url.clone(), capture.time, capture.links.iter().map(String::from).collect()));
        }
        (captures, tally)
    }

    fn row(url: &str, time: i64, links: &[&str]) -> (String, i64, Vec<String>) {
        (url.to_owned(), time, links.iter().map(|&link| link.to_owned()).collect())
    }

    #[test]
    fn both_forms_mix() {
        let text = b"# links\nhttp://a/\n\thttp://b/\n  x y\n\nhttp://c/\r\n\
            http://d/\t20080430204826 x\ty \n http://z/\nhttp://e/ x";
        let (captures, tally) = read_all(text, "links.txt");
        let expected = [
            row("http://a/", 0, &["http://b/", "x", "y"]),
            row("http://c/", 0, &[]),
            row("http://d/", 1_209_588_506, &["x", "y", "http://z/"]),
            row("http://e/", 0, &["x"]),
        ];
        assert_eq!(captures, expected);
        assert_eq!(tally, Tally::default());
    }

    #[test]
    fn the_name_tells_the_time() {
        for (name, time) in [
            ("crawl-20080430.links", 1_209_513_600),
            ("20080430204826.gz", 1_209_588_506),
            ("part-00000001-20080430", 1_209_513_600),
            ("20089930.links", 0),
            ("links", 0),
        ] {
            assert_eq!(read_all(b"http://a/\n x", name).0, [row("http://a/", time, &["x"])], "{name}");
        }
    }

    #[test]
    fn what_has_no_date_says_how_new_it_is() {
        let ages = |text: &'static [u8], path: &Path| -> Vec<Option<Vec<u8>>> {
            let mut reader = open(Box::new(Cursor::new(text)), path);
            let (mut ages, mut capture, mut tally) = (Vec::new(), Capture::default(), Tally::default());
            while reader.read(&mut capture, &mut tally).unwrap() {
                ages.push(capture.undated.clone());
            }
            ages
        };
        let text = b"http://a/ x\nhttp://a/ 2008 y\nhttp://a/\n z\n";
        let dir = tempfile::tempdir().unwrap();
        let mut all = Vec::new();
        for (name, seconds) in [("b", 1_000), ("bb", 1_000), ("c", 1_000), ("a", 1_001)] {
            let path = dir.path().join(name);
            let file = std::fs::File::create(&path).unwrap();
            file.set_modified(UNIX_EPOCH + std::time::Duration::from_secs(seconds)).unwrap();
            let file_ages = ages(text, &path);
            assert_eq!(file_ages.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, true]);
            all.extend(file_ages.into_iter().flatten());
        }
        all.extend(ages(text, Path::new("-")).into_iter().flatten());
        assert!(all.is_sorted_by(|one, other| one < other));
        assert_eq!(ages(text, Path::new("crawl-20080430.links")), [None, None, None]);
    }

    #[test]
    fn digits_that_are_no_date_are_damage() {
        let text = b"http://a/ 1209588506 x\n y\nhttp://b/ 20081301 x\nhttp://c/ 20080101 x\nhttp://d/ -5\n";
        let (captures, tally) = read_all(text, "links");
        assert_eq!(captures, [row("http://c/", 1_199_145_600, &["x"]), row("http://d/", 0, &["-5"])]);
        let counts = [Finding::BadDate, Finding::BadRow, Finding::CoarserDate].map(|finding| tally.of(finding));
        assert_eq!((counts, tally.damaged()), ([2, 1, 1], 3));
    }

    #[test]
    fn damage_is_counted_where_it_stands() {
        let (captures, tally) = read_all(b" x\nhttp://a/\n x\nhttp://c/ 99\n y\nhttp://b/\n", "links");
        assert_eq!(captures, [row("http://a/", 0, &["x"]), row("http://b/", 0, &[])]);
        let offsets: Vec<u64> = tally.examples().iter().map(|example| example.offset).collect();
        assert_eq!((offsets, tally.of(Finding::BadRow), tally.damaged()), (vec![16, 0, 29], 2, 3));
    }
}
