//! ARC 1 and 2, the format of the Internet Archive before WARC.
//!
//! Reads records: a line `URL IP date type length`, then the response. Version 2 has more fields before the length.
//! Some writers leave out the IP address or the type. URLs may contain spaces, so the parser looks for the fields from
//! the right: a date after an IP address, or else a date before a type and the length. Writes a capture for each
//! response that is an HTML page. ARC has no digests.
//!
//! The `filedesc` record at the beginning of the file may be missing.
//!
//! Damage: if a length does not lead to the next header line, the record ends at the next header line that is found.
//! A capture is cut if its record has fewer bytes than its length, or if its body is not whole
//! ([`crate::formats::http::coding`]). An ARC file has no requests.
//!
//! Memory: at most 64 MiB of the block of one record. Time: linear, even if every length is wrong. The reader parses a
//! block in the text buffer, as in [`crate::formats::warc`].

use memchr::{memchr, memmem, memrchr_iter};
use std::io::BufRead;
use std::path::PathBuf;

use crate::files::compressed::Text;
use crate::files::head::Head;
use crate::formats::document::Documents;
use crate::formats::record::{self, BODY_BYTES_MAX, RecordSite};
use crate::{Capture, CaptureReader, Cut, Error, Finding, Tally};
use webstrata_url::spelt;

const LINE_BYTES_MAX: usize = 64 << 10;
/// The most fields of a header line after the URL; version 2 has nine.
const FIELDS_MAX: usize = 24;
/// How many line feeds may stand between a block and the next header line.
const GAP_BYTES: usize = 4;
/// Bytes of text that the search for a header line adds at a time.
const STEP_BYTES: usize = 64 << 10;

/// The beginnings of media types.
const TYPES: [&str; 5] = ["text/", "application/", "image/", "audio/", "video/"];

/// A header line, taken apart.
#[derive(Debug, PartialEq, Eq)]
struct Header<'a> {
    url: &'a str,
    date: &'a str,
    media_type: &'a str,
    len: Option<u64>,
}

impl<'a> Header<'a> {
    fn parse(line: &'a str) -> Option<Header<'a>> {
        let line = line.trim_end_matches(['\r', '\n', ' ']);
        let colon = line.find(':')?;
        if colon == 0 || !line[..colon].bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)) {
            return None;
        }
        // Where the last fields begin, from the right. The text before them is the URL.
        let mut starts: Vec<usize> =
            memrchr_iter(b' ', line.as_bytes()).take(FIELDS_MAX).map(|space| space + 1).collect();
        starts.reverse();
        let field = |at: usize| &line[starts[at]..starts.get(at + 1).map_or(line.len(), |next| next - 1)];
        let last = starts.len().checked_sub(1)?;
        let is_date = |at: usize| {
            let text = field(at);
            (12..=20).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
        };
        let len = field(last).parse().ok();
        let date = (1..last).rev().find(|&at| is_date(at) && ip(field(at - 1)) && (at + 1 < last || len.is_some()));
        let (date, url_end) = match date {
            Some(date) => (date, starts[date - 1]),
            // Without an address, both a type and the length are needed to know a header line.
            None => {
                let is_type = |text: &str| TYPES.iter().any(|kind| text.starts_with(kind));
                let date = last.checked_sub(2).filter(|&at| is_date(at) && is_type(field(at + 1)) && len.is_some());
                (date?, starts[date?])
            }
        };
        let media_type = if date + 1 < last { field(date + 1) } else { "" };
        Some(Header { url: line[..url_end].trim_end(), date: field(date), media_type, len })
    }
}

/// Whether a text begins like an ARC: with the record about the file, or with a header line and a line that is not a
/// header line. Lines of an index resemble header lines, but follow one another.
pub(crate) fn is_own(head: &Head<'_>) -> bool {
    let text = head.text.trim_ascii_start();
    if text.starts_with(b"filedesc://") || memmem::find(text, b"\nfiledesc://").is_some() {
        return true;
    }
    let mut lines = head.lines().map(|(line, _)| spelt(line));
    let length = |line: &str| Header::parse(line).and_then(|header| header.len);
    let Some(bytes) = lines.next().and_then(|line| length(&line)) else { return false };
    bytes == 0 || lines.next().is_none_or(|line| length(&line).is_none())
}

/// Whether a field is an IP address, or says that there is none.
fn ip(text: &str) -> bool {
    let digits = |byte: u8| byte.is_ascii_hexdigit() || matches!(byte, b'.' | b':');
    matches!(text, "" | "-") || text.contains(['.', ':']) && text.bytes().all(digits)
}

/// Whether a header line begins `at` bytes after the current offset.
fn header_next(text: &mut Text, at: usize) -> std::io::Result<bool> {
    if !text.peek(at + 1)?.get(at).is_some_and(u8::is_ascii_alphabetic) {
        return Ok(false);
    }
    let mut wanted = 512;
    loop {
        let head = &text.peek(at + wanted)?[at..];
        let end = memchr(b'\n', head);
        if end.is_some() || head.len() < wanted || wanted >= LINE_BYTES_MAX {
            let line = &head[..end.unwrap_or(head.len())];
            return Ok(Header::parse(&spelt(line)).is_some());
        }
        wanted *= 4;
    }
}

/// A reader of ARC records.
pub(crate) struct ArcReader {
    text: Text,
    path: PathBuf,
    documents: Documents,
    line: Vec<u8>,
}

impl ArcReader {
    pub(crate) fn new(text: Text, path: PathBuf, documents: Documents) -> Self {
        ArcReader { text, path, documents, line: Vec::new() }
    }

    /// Reads the next record. Returns whether the record is a capture, or `None` at the end.
    fn record(&mut self, capture: &mut Capture, tally: &mut Tally) -> std::io::Result<Option<bool>> {
        let ArcReader { text, path, documents, line } = self;
        if !record::seek(text, path, tally, |text| header_next(text, 0))? {
            return Ok(None);
        }
        let mut site = RecordSite::new(tally, path, text.offsets());
        line.clear();
        text.line(line, LINE_BYTES_MAX)?;
        let line = spelt(line);
        let Some(header) = Header::parse(&line) else { return Ok(Some(false)) };
        let Block { bytes, skipped } = block(text, header.len, &mut site)?;
        let is_capture = header.capture(&text.peek(bytes)?[..bytes], documents, capture, &mut site);
        text.consume(bytes);
        text.skip(skipped)?;
        Ok(Some(is_capture))
    }
}

/// The block of a record at the current offset of the text.
struct Block {
    /// Bytes to read; the text buffer holds all of them.
    bytes: usize,
    /// Further bytes of the block, which are skipped.
    skipped: u64,
}

/// Finds the block of a record by its length. If the length is wrong, the block ends at the next header line.
fn block(text: &mut Text, len: Option<u64>, site: &mut RecordSite<'_>) -> std::io::Result<Block> {
    let whole = |bytes| Block { bytes, skipped: 0 };
    let Some(len) = len else {
        site.damage(Finding::BadHeader, "the record length is missing or not a number");
        let next = next_header(text, 0, usize::MAX)?;
        return Ok(whole(next.unwrap_or_else(|end| end)));
    };
    let bytes = usize::try_from(len).unwrap_or(usize::MAX).min(BODY_BYTES_MAX);
    let at_hand = text.peek(bytes)?.len();
    if at_hand < bytes {
        let next = next_header_in(text, at_hand, site)?;
        site.ends_early();
        if next.is_none() && !text.ends_at_break() {
            site.damage(Finding::Truncated, "the record block is cut off");
        }
        return Ok(whole(next.unwrap_or(at_hand)));
    }
    if len > bytes as u64 {
        site.damage(Finding::Truncated, "the record block is longer than 64 MiB");
        site.cut(Cut::Truncated);
        return Ok(Block { bytes, skipped: len - bytes as u64 });
    }
    let behind = &text.peek(bytes + GAP_BYTES + 1)?[bytes..];
    let gap = behind.iter().take(GAP_BYTES).take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    if gap == behind.len() || header_next(text, bytes + gap)? {
        record::check_member(text, bytes + gap, site);
        return Ok(whole(bytes));
    }
    if let Some(next) = next_header_in(text, bytes, site)? {
        site.ends_early();
        return Ok(whole(next));
    }
    site.damage(Finding::BadLength, "the block continues after the length that its header gives");
    let next = next_header(text, bytes, usize::MAX)?;
    Ok(whole(next.unwrap_or_else(|end| end)))
}

/// Returns where a header line begins inside a block, and counts damage if one does.
fn next_header_in(text: &mut Text, bytes: usize, site: &mut RecordSite<'_>) -> std::io::Result<Option<usize>> {
    let next = next_header(text, 0, bytes)?.ok();
    if next.is_some() {
        site.damage(Finding::BadLength, "the next record begins inside the block");
    }
    Ok(next)
}

/// The offset of the next header line before `end`: at the current offset if `from` is 0, or after a line feed `from`
/// or more bytes on. Without a header line, the error is the number of bytes of the block to read.
fn next_header(text: &mut Text, mut from: usize, end: usize) -> std::io::Result<Result<usize, usize>> {
    if from == 0 && header_next(text, 0)? {
        return Ok(Ok(0));
    }
    let mut wanted = 0;
    loop {
        let ahead = text.peek(wanted)?;
        let feed = ahead.get(from..).and_then(|rest| memchr(b'\n', rest));
        if let Some(feed) = feed {
            from += feed + 1;
            if from >= end {
                return Ok(Err(end));
            }
            if header_next(text, from)? {
                return Ok(Ok(from));
            }
        } else if ahead.len() < wanted || wanted >= end.min(BODY_BYTES_MAX) {
            return Ok(Err(ahead.len().min(BODY_BYTES_MAX)));
        } else {
            from = from.max(ahead.len());
            wanted = from + STEP_BYTES;
        }
    }
}

impl Header<'_> {
    /// Turns the record into a capture, or counts why the record is not a capture.
    fn capture(
        &self,
        block: &[u8],
        documents: &mut Documents,
        capture: &mut Capture,
        site: &mut RecordSite<'_>,
    ) -> bool {
        let finding = record::without_page("response", self.url);
        if finding != Finding::OtherRecord {
            site.count(finding);
            return false;
        }
        capture.clear();
        capture.url.push_str(self.url);
        if !documents.response(block, Some(self.media_type), capture, site) {
            return false;
        }
        let Some(time) = site.time(self.date) else { return false };
        capture.time = time;
        true
    }
}

impl CaptureReader for ArcReader {
    fn read(&mut self, capture: &mut Capture, tally: &mut Tally) -> Result<bool, Error> {
        loop {
            match self.record(capture, tally) {
                Ok(Some(true)) => return Ok(true),
                Ok(Some(false)) => {}
                Ok(None) => return Ok(false),
                Err(source) => return Err(Error::io(&self.path, source)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_lines_of_both_versions() {
        let one = Header::parse("http://a/x y.z 1.2.3.4 20140102000000 text/html 12\n").unwrap();
        assert_eq!(
            one,
            Header { url: "http://a/x y.z", date: "20140102000000", media_type: "text/html", len: Some(12) }
        );
        let two = Header::parse("http://a/ 1.2.3.4 20140102000000 text/html 200 abc - 2048 a.arc 7").unwrap();
        assert_eq!(two, Header { url: "http://a/", date: "20140102000000", media_type: "text/html", len: Some(7) });
        assert_eq!(Header::parse("http://a/ 1.2.3.4 20140102000000 text/html -1").unwrap().len, None);
        assert_eq!(Header::parse("URL IP-address Archive-date Content-type Archive-length"), None);
        assert_eq!(Header::parse("http://a/ 20140102000000 b c"), None);
        assert_eq!(Header::parse("http://a/ 20140102 20140102000000 http://b/ http://c/"), None);
        assert_eq!(Header::parse("http://a/ 20140102000000 12"), None);
        assert_eq!(Header::parse("http://a/ 20140102000000 text/html x"), None);
        let html = |url| Header { url, date: "20140102000000", media_type: "text/html", len: Some(12) };
        for (line, expected) in [
            // The type is missing.
            ("http://a/ 1.2.3.4 20140102000000 12", Header { media_type: "", ..html("http://a/") }),
            ("http://a/b c 1.2.3.4 20140102000000 12\r\n", Header { media_type: "", ..html("http://a/b c") }),
            // The address is missing, or empty, or is no address of version 4.
            ("http://a/ 20140102000000 text/html 12", html("http://a/")),
            ("http://a/b c 20140102000000 text/html 12", html("http://a/b c")),
            ("http://a/  20140102000000 text/html 12", html("http://a/")),
            ("http://a/ - 20140102000000 text/html 12", html("http://a/")),
            ("http://a/ 2001:db8::7 20140102000000 text/html 12", html("http://a/")),
            // Blanks in the type, and fields of version 2 beside blanks in the URL.
            (
                "http://a/ 1.2.3.4 20140102000000 text/html; charset=x y 12",
                Header { media_type: "text/html;", ..html("http://a/") },
            ),
            ("http://a/b c d 1.2.3.4 20140102000000 text/html 200 - http://t/ 7 x.arc 12", html("http://a/b c d")),
        ] {
            assert_eq!(Header::parse(line), Some(expected), "{line}");
        }
    }
}
