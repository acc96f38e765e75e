//! Turns the fields of an index line into a capture, by one rule for all forms of indexes.
//!
//! A form ([`Form`]) finds the fields of a line. This module decides their meaning:
//!
//! | line | result |
//! |---|---|
//! | URL `dns:`, `filedesc:`, `warcinfo:`; type `warc/KIND` except `warc/revisit` | no capture, counted by its kind |
//! | type `warc/revisit` | a revisit; a status of the line decides as in [`crate::capture::meaning`] |
//! | status 200 or unknown, and a type that is not HTML | no capture: [`Finding::NotHtml`] |
//! | status 200 or unknown, and HTML or no type | a capture; its links are unknown |
//! | any other final status | a capture without links, except the target of a redirect |
//! | any other status | no capture: [`Finding::OtherStatus`] |
//!
//! No type is a text that is not a media type, such as `-`, `unk`, `no-type`. A revisit says nothing of its type. It
//! has the type of the line before if both have the same digest: an index is sorted, so the revisits of a URL follow
//! the capture.
//!
//! A response to a request that was not a GET gives no capture ([`crate::capture::method`]): CDXJ has a field `method`,
//! and indexers add the argument `__wb_method` to the URL, to its key, or to the field `requestBody`.

use crate::capture::date;
use crate::capture::digest::digest_of;
use crate::capture::meaning::{Meaning, ReferredTo, Seen};
use crate::capture::method::Other;
use crate::files::json_text::LONE_SURROGATES;
use crate::files::lines::Lines;
use crate::formats::{http, record};
use crate::{Capture, CaptureReader, Digest, Error, Finding, Tally};
use std::borrow::Cow;
use std::ops::Range;
use webstrata_url::spelt;

/// The fields of a line, in the spelling of the line. A field that is empty or `-` is unknown.
#[derive(Clone, Debug, Default)]
pub(super) struct Entry<'a> {
    pub(super) url: Cow<'a, str>,
    pub(super) date: Cow<'a, str>,
    pub(super) mime: Cow<'a, str>,
    pub(super) status: Cow<'a, str>,
    pub(super) digest: Cow<'a, str>,
    /// The target of a redirect.
    pub(super) redirect: Cow<'a, str>,
    /// Says that the payload was not stored again.
    pub(super) duplicate: Option<ReferredTo>,
    /// The method of the request.
    pub(super) method: Cow<'a, str>,
}

/// The damage of a line, and a description.
pub(super) type Damage = (Finding, String);

/// A form of index lines.
pub(super) trait Form: Send {
    /// The finding for a line if a field is missing or cannot be understood.
    const DAMAGE: Finding;

    /// A line as text, and whether the line was changed so that letters were lost.
    fn text(line: &[u8]) -> (Cow<'_, str>, bool) {
        (spelt(line), false)
    }

    /// Finds the fields of a line that is not blank; `None` if the line is about the file.
    ///
    /// # Errors
    /// The line is damaged.
    fn entry<'a>(&mut self, line: &'a str, tally: &mut Tally) -> Result<Option<Entry<'a>>, Damage>;

    /// Fills a further capture that the last line gave. Returns whether there was one.
    fn further(&mut self, _capture: &mut Capture, _tally: &mut Tally) -> bool {
        false
    }
}

/// A reader of the lines of an index.
pub(super) struct IndexReader<F> {
    pub(super) lines: Lines,
    pub(super) form: F,
    /// Whether redirects are links.
    pub(super) redirects: bool,
    /// The digest of the line before, if the line was not HTML.
    pub(super) not_html: Option<Digest>,
}

impl<F: Form> CaptureReader for IndexReader<F> {
    fn read(&mut self, capture: &mut Capture, tally: &mut Tally) -> Result<bool, Error> {
        let IndexReader { lines, form, redirects, not_html } = self;
        loop {
            capture.clear();
            if form.further(capture, tally) {
                return Ok(true);
            }
            if !lines.read(tally)? {
                return Ok(false);
            }
            let (line, is_changed) = F::text(lines.line());
            if line.trim_ascii().is_empty() {
                continue;
            }
            if is_changed {
                tally.damage(F::DAMAGE, &lines.path, lines.start, LONE_SURROGATES);
            }
            let entry = form.entry(&line, tally);
            let settled = entry.and_then(|entry| {
                let other = Other::of_arguments(line.as_bytes());
                entry.map_or(Ok(false), |entry| entry.settle(F::DAMAGE, *redirects, other, not_html, capture, tally))
            });
            match settled {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err((finding, detail)) => tally.damage(finding, &lines.path, lines.start, detail),
            }
        }
    }
}

/// A field that is known.
pub(super) fn known(text: &str) -> Option<&str> {
    Some(text.trim()).filter(|text| !matches!(*text, "" | "-"))
}

/// Whether a media type of an index is HTML; `None` if it says no type.
pub(super) fn is_html(mime: &str) -> Option<bool> {
    http::is_html(&http::media_type(mime))
}

/// The beginning of a text, for messages.
pub(super) fn short(text: &str) -> String {
    const SHOWN_CHARS: usize = 40;
    text.chars().take(SHOWN_CHARS).collect()
}

impl Entry<'_> {
    /// The status as a number; `None` if it is unknown.
    ///
    /// # Errors
    /// The text is not a number.
    pub(super) fn code(&self) -> Result<Option<i64>, String> {
        let code = |text: &str| text.parse().map_err(|_| format!("status: {}", short(text)));
        known(&self.status).map(code).transpose()
    }

    /// Whether the media type is HTML; `None` if the type is unknown.
    pub(super) fn is_html(&self) -> Option<bool> {
        is_html(&self.mime)
    }

    /// Makes the capture of the line. Returns `false` and counts the line if the line gives no capture.
    fn settle(
        self,
        damage: Finding,
        redirects: bool,
        other: Option<Other>,
        not_html: &mut Option<Digest>,
        capture: &mut Capture,
        tally: &mut Tally,
    ) -> Result<bool, Damage> {
        let before = not_html.take();
        let status = self.code().map_err(|detail| (damage, detail))?;
        let Some(url) = known(&self.url) else { return Err((damage, "missing field `url`".to_owned())) };
        let Some(date) = date::parse(&self.date) else {
            return Err((Finding::BadDate, format!("time: {}", short(&self.date))));
        };
        let kind = self.mime.strip_prefix("warc/").unwrap_or_default();
        let is_revisit = kind == "revisit";
        let without_page = record::without_page(kind, record::bare_uri(url));
        if without_page != Finding::OtherRecord || !(kind.is_empty() || is_revisit) {
            tally.count(without_page);
            return Ok(false);
        }
        if let Some(method) = Other::of(&self.method).or(other) {
            method.count(tally);
            return Ok(false);
        }
        capture.digest = digest_of(&self.digest);
        let is_html = self.is_html();
        let revisit = if is_revisit { Some(record::revisit(None, None, None)) } else { self.duplicate };
        let seen = Seen { status, revisit, target: known(&self.redirect), ..Seen::default() };
        let is_page = matches!(seen.meaning(), Meaning::Page | Meaning::Revisit);
        let is_html = if is_revisit {
            before.filter(|_| before == capture.digest).map(|_| false)
        } else {
            is_html.filter(|_| status != Some(304))
        };
        if is_page && is_html == Some(false) {
            *not_html = capture.digest;
            tally.count(Finding::NotHtml);
            return Ok(false);
        }
        capture.url.push_str(record::bare_uri(url));
        if !seen.settle(redirects, capture, tally) {
            return Ok(false);
        }
        capture.time = date.counted(tally);
        Ok(true)
    }
}

/// The places of the words of a line, in a buffer that lines reuse.
#[derive(Debug, Default)]
pub(super) struct Words(Vec<Range<usize>>);

impl Words {
    /// Splits a line at every delimiter, or at runs of blanks if there is none.
    pub(super) fn split(&mut self, line: &str, delimiter: Option<u8>) {
        self.0.clear();
        let is_end = |byte: u8| delimiter.map_or(byte.is_ascii_whitespace(), |delimiter| byte == delimiter);
        let mut start = 0;
        for end in line.bytes().enumerate().filter(|&(_, byte)| is_end(byte)).map(|(at, _)| at).chain([line.len()]) {
            if delimiter.is_some() || end > start {
                self.0.push(start..end);
            }
            start = end + 1;
        }
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The word at an index; empty if there is none.
    pub(super) fn get<'a>(&self, line: &'a str, at: usize) -> &'a str {
        self.0.get(at).and_then(|word| line.get(word.clone())).unwrap_or_default()
    }

    /// The text from one word to another, with the delimiters between them.
    pub(super) fn span<'a>(&self, line: &'a str, first: usize, last: usize) -> &'a str {
        let range = self.0.get(first).zip(self.0.get(last)).map(|(first, last)| first.start..last.end);
        range.and_then(|range| line.get(range)).unwrap_or_default()
    }

    /// The index of the first word, from `from` on, that has as many digits as a time.
    pub(super) fn time(&self, line: &str, from: usize) -> Option<usize> {
        (from..self.len()).find(|&at| super::is_digits(self.get(line, at), 12, 17))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::Content;
    use std::path::Path;

    /// Reads all captures of a text. A capture is `URL SECONDS STATUS CONTENT LINK...`, with `-` for no status.
    pub(in crate::formats::index) fn read_all(mut reader: Box<dyn CaptureReader>) -> (Vec<String>, Tally) {
        let (mut captures, mut capture, mut tally) = (Vec::new(), Capture::default(), Tally::default());
        while reader.read(&mut capture, &mut tally).unwrap() {
            let status = capture.status.map_or("-".to_owned(), |status| status.to_string());
            let content = match &capture.content {
                Content::Links => "links",
                Content::Unknown => "unknown",
                Content::Revisit(_) => "revisit",
            };
            let links: String = capture.links.iter().map(|link| format!(" {link}")).collect();
            captures.push(format!("{} {} {status} {content}{links}", capture.url, capture.time));
        }
        (captures, tally)
    }

    /// The counts of a tally.
    pub(in crate::formats::index) fn counts(tally: &Tally) -> Vec<(Finding, u64)> {
        tally.counts().collect()
    }

    struct One(Entry<'static>);

    impl Form for One {
        const DAMAGE: Finding = Finding::BadRow;

        fn entry<'a>(&mut self, _: &'a str, _: &mut Tally) -> Result<Option<Entry<'a>>, Damage> {
            Ok(Some(self.0.clone()))
        }
    }

    fn read(entry: Entry<'static>) -> (Vec<String>, Vec<(Finding, u64)>) {
        let lines = Lines::new(Box::new(&b"one line"[..]), Path::new("x"));
        let (captures, tally) =
            read_all(Box::new(IndexReader { lines, form: One(entry), redirects: true, not_html: None }));
        (captures, counts(&tally))
    }

    #[test]
    fn the_table() {
        let entry = |mime: &'static str, status: &'static str| Entry {
            url: "http://a/".into(),
            date: "20080430204826".into(),
            mime: mime.into(),
            status: status.into(),
            digest: "B2LTWWPUOYAH7UIPQ7ZUPQ4VMBSVC36A".into(),
            redirect: "/b".into(),
            ..Entry::default()
        };
        for (mime, status, expected) in [
            ("text/html", "200", "200 unknown"),
            ("text/html; charset=x", "", "- unknown"),
            ("unk", "200", "200 unknown"),
            ("-", "-", "- unknown"),
            ("", "200", "200 unknown"),
            ("unknown", "200", "200 unknown"),
            ("text/html", "404", "404 links"),
            ("image/png", "404", "404 links"),
            ("image/png", "302", "302 links /b"),
            ("image/png", "304", "200 revisit"),
            ("warc/revisit", "-", "- revisit"),
            ("warc/revisit", "200", "200 revisit"),
            ("warc/revisit", "404", "404 links"),
            ("warc/revisit", "301", "301 links /b"),
        ] {
            let expected = format!("http://a/ 1209588506 {expected}");
            assert_eq!(read(entry(mime, status)), (vec![expected], vec![]), "{mime} {status}");
        }
        for (mime, status, finding) in [
            ("image/png", "200", Finding::NotHtml),
            ("image/png", "-", Finding::NotHtml),
            ("warc/metadata", "-", Finding::Metadata),
            ("warc/request", "-", Finding::Request),
            ("warc/warcinfo", "-", Finding::FileInfo),
            ("warc/conversion", "-", Finding::OtherRecord),
            ("text/html", "-61", Finding::OtherStatus),
            ("text/html", "0", Finding::OtherStatus),
            ("text/html", "20x", Finding::BadRow),
        ] {
            assert_eq!(read(entry(mime, status)), (vec![], vec![(finding, 1)]), "{mime} {status}");
        }
        for method in ["HEAD", "post"] {
            let entry = Entry { method: method.into(), ..entry("text/html", "200") };
            assert_eq!(read(entry), (vec![], vec![(Finding::OtherMethod, 1)]), "{method}");
        }
        for (url, date, finding) in [
            ("dns:a", "20080430204826", Finding::Dns),
            ("filedesc:a.arc", "20080430204826", Finding::FileInfo),
            ("-", "20080430204826", Finding::BadRow),
            ("http://a/", "20081399", Finding::BadDate),
            ("http://a/", "", Finding::BadDate),
        ] {
            let entry = Entry { url: url.into(), date: date.into(), ..entry("text/html", "200") };
            assert_eq!(read(entry), (vec![], vec![(finding, 1)]), "{url} {date}");
        }
    }
}
