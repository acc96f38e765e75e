//! Links files: plain text, a page and what it links to.
//!
//! ```text
//! http://a.example/            a page; its links stand indented on the lines below (the Link Database's form)
//!     http://a.example/x
//!     http://b.example/
//! http://a.example/x 20080430204826 http://a.example/ http://b.example/     a page, a time, links (tabs or spaces)
//! # a comment
//! ```
//!
//! Both forms mix: `SOURCE [TIME] [LINK...]`, then any number of indented lines of links. The time is any form of
//! [`crate::date`] text. A page without one has the time that the file's name tells (`crawl-20080430.links`:
//! 14 or 8 digits), and otherwise 1970-01-01 00:00:00. The file's own modification time is not used: copying
//! a file must not change what is built from it.
//!
//! Damage: lines that are no UTF-8, links before the first page. Offsets are bytes of the uncompressed text.
//! Source: SRC-RR-175 (2001), section 2.

use crate::date::{self, Date};
use crate::lines::Lines;
use crate::{Capture, CaptureReader, Error, Finding, Tally};
use std::io::BufRead;
use std::path::Path;

pub(crate) fn open(text: Box<dyn BufRead + Send>, path: &Path) -> Box<dyn CaptureReader> {
    Box::new(LinksFile {
        lines: Lines::new(text, path),
        time: time_of_name(path),
        is_source_held: false,
        is_comment: false,
    })
}

struct LinksFile {
    lines: Lines,
    /// Time of pages without one.
    time: i64,
    /// The line held is the next page's.
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
                let Some(read) = self.lines.read_words(tally)? else { return Ok(is_begun) };
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
                return Ok(true);
            }
            let text = match std::str::from_utf8(line) {
                Ok(_) if is_indented && !is_begun => Err("links of no page".to_owned()),
                Ok(text) => Ok(text),
                Err(error) => Err(error.to_string()),
            };
            match text {
                Ok(text) => {
                    let mut words = text.split_ascii_whitespace();
                    if !is_indented {
                        is_begun = true;
                        self.begin(&mut words, capture, tally);
                    }
                    for word in words {
                        capture.links.push(word);
                    }
                }
                Err(detail) => tally.damage(Finding::BadRow, &self.lines.path, self.lines.start, detail),
            }
        }
    }
}

impl LinksFile {
    /// Takes the page and its time from the words of a line; a second word that is no date is its first link.
    fn begin<'a>(&self, words: &mut impl Iterator<Item = &'a str>, capture: &mut Capture, tally: &mut Tally) {
        capture.url.push_str(words.next().unwrap_or_default());
        capture.time = self.time;
        let Some(word) = words.next() else { return };
        match date::parse(word) {
            Some(Date { seconds, finer, .. }) => {
                capture.time = seconds;
                if finer {
                    tally.count(Finding::FinerDate);
                }
            }
            None => capture.links.push(word),
        }
    }
}

fn time_of_name(path: &Path) -> i64 {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let runs = name.split(|letter: char| !letter.is_ascii_digit()).filter(|run| matches!(run.len(), 8 | 14));
    runs.filter_map(date::parse).map(|date| date.seconds).next().unwrap_or(0)
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
        let text = b"# links\nhttp://a/\n\thttp://b/\n  x y\n\nhttp://c/\r\nhttp://d/\t20080430204826 x\ty \n http://z/\nhttp://e/ x";
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
    fn damage_is_counted_where_it_stands() {
        let (captures, tally) = read_all(b" x\nhttp://a/\n x\nhttp://\xff/\n y\nhttp://b/\n", "links");
        assert_eq!(captures, [row("http://a/", 0, &["x"]), row("http://b/", 0, &[])]);
        let places: Vec<u64> = tally.examples().iter().map(|example| example.offset).collect();
        assert_eq!((places, tally.of(Finding::BadRow)), (vec![0, 16, 26], 3));
    }
}
