//! ARC 1 and 2, the Internet Archive's format before WARC.
//!
//! Reads: `URL IP date type length`, a line, then the response; version 2 has more fields before the length. URLs may hold
//! spaces, so the fields are found from the right, by the date behind an IP address. Writes: a capture for each response
//! that is an HTML page. There is no digest.
//!
//! Damage is passed over: where a length does not lead to the next header line, the record ends at the next one found.
//!
//! Memory: the block of one record, at most 64 MiB of it.

use std::path::PathBuf;

use crate::compressed::Text;
use crate::document::Documents;
use crate::record::{self, BODY_BYTES_MAX, Place};
use crate::{Capture, CaptureReader, Error, Finding, Tally};

const LINE_BYTES_MAX: usize = 64 << 10;

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
        let starts: Vec<usize> =
            std::iter::once(0).chain(memchr::memchr_iter(b' ', line.as_bytes()).map(|at| at + 1)).collect();
        let field = |at: usize| &line[starts[at]..starts.get(at + 1).map_or(line.len(), |next| next - 1)];
        let date = (2..starts.len().saturating_sub(2)).rev().find(|&at| {
            let text = field(at);
            (12..=20).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit()) && ip(field(at - 1))
        })?;
        Some(Header {
            url: &line[..starts[date - 1] - 1],
            date: field(date),
            media_type: field(date + 1),
            len: field(starts.len() - 1).parse().ok(),
        })
    }
}

fn ip(text: &str) -> bool {
    text == "-" || !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b'.' | b':'))
}

/// Whether a header line comes next.
fn header_next(text: &mut Text) -> std::io::Result<bool> {
    if !text.peek(1)?.first().is_some_and(u8::is_ascii_alphabetic) {
        return Ok(false);
    }
    let mut wanted = 512;
    loop {
        let head = text.peek(wanted)?;
        let end = memchr::memchr(b'\n', head);
        if end.is_some() || head.len() < wanted || wanted >= LINE_BYTES_MAX {
            let line = &head[..end.unwrap_or(head.len())];
            return Ok(Header::parse(&String::from_utf8_lossy(line)).is_some());
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
    block: Vec<u8>,
}

impl ArcReader {
    pub(crate) fn new(text: Text, path: PathBuf, documents: Documents) -> Self {
        ArcReader { text, path, documents, line: Vec::new(), block: Vec::new() }
    }

    /// The next record; whether it is a capture, `None` at the end.
    fn record(&mut self, capture: &mut Capture, tally: &mut Tally) -> std::io::Result<Option<bool>> {
        if !record::seek(&mut self.text, &self.path, tally, header_next)? {
            return Ok(None);
        }
        let path = std::mem::take(&mut self.path);
        let mut place = Place { at: self.text.place(), tally, path: &path };
        self.line.clear();
        let mut line = std::mem::take(&mut self.line);
        let read = self.text.line(&mut line, LINE_BYTES_MAX);
        let text = String::from_utf8_lossy(&line);
        let is_capture = match (read, Header::parse(&text)) {
            (Ok(_), Some(header)) => {
                self.block(header.len, &mut place).map(|()| self.capture(&header, capture, &mut place))
            }
            (Ok(_), None) => Ok(false),
            (Err(error), _) => Err(error),
        };
        drop(text);
        self.line = line;
        self.path = path;
        is_capture.map(Some)
    }

    fn block(&mut self, len: Option<u64>, place: &mut Place<'_>) -> std::io::Result<()> {
        self.block.clear();
        let Some(len) = len else {
            place.damage(Finding::BadHeader, "no length");
            return self.rest_of_block();
        };
        let bytes_max = BODY_BYTES_MAX as u64;
        let read = self.text.block(len.min(bytes_max), &mut self.block)?;
        if read < len.min(bytes_max) {
            if !self.end_at_next_record(place) && !self.text.at_break() {
                place.damage(Finding::Truncated, "record block");
            }
            return Ok(());
        }
        if len > bytes_max {
            place.damage(Finding::Truncated, "record block longer than 64 MiB");
            self.text.skip(len - read)?;
        }
        let mut line_feeds = 0;
        while line_feeds < 4 && matches!(self.text.peek(1)?, [b'\r' | b'\n', ..]) {
            std::io::BufRead::consume(&mut self.text, 1);
            line_feeds += 1;
        }
        if self.text.peek(1)?.is_empty() || header_next(&mut self.text)? {
            return Ok(());
        }
        self.block.extend(std::iter::repeat_n(b'\n', line_feeds)); // they may have to be put back
        if !self.end_at_next_record(place) {
            place.damage(Finding::BadLength, "the block goes on behind its end");
            self.rest_of_block()?;
        }
        Ok(())
    }

    fn end_at_next_record(&mut self, place: &mut Place<'_>) -> bool {
        let mut at = 0;
        while let Some(feed) = memchr::memchr(b'\n', &self.block[at..]) {
            at += feed + 1;
            let rest = &self.block[at..];
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let candidate = end < LINE_BYTES_MAX && rest.first().is_some_and(u8::is_ascii_alphabetic);
            if candidate && Header::parse(&String::from_utf8_lossy(&rest[..end])).is_some() {
                place.damage(Finding::BadLength, "the next record begins inside the block");
                self.text.put_back(&self.block[at..]);
                self.block.truncate(at);
                return true;
            }
        }
        false
    }

    fn rest_of_block(&mut self) -> std::io::Result<()> {
        while !header_next(&mut self.text)? {
            self.line.clear();
            let mut line = std::mem::take(&mut self.line);
            let read = self.text.line(&mut line, LINE_BYTES_MAX);
            if self.block.len() + line.len() <= BODY_BYTES_MAX {
                self.block.extend_from_slice(&line);
            }
            self.line = line;
            if read? == 0 {
                break;
            }
        }
        Ok(())
    }

    fn capture(&mut self, header: &Header<'_>, capture: &mut Capture, place: &mut Place<'_>) -> bool {
        if ["filedesc:", "dns:", "warcinfo:"].iter().any(|scheme| header.url.starts_with(scheme)) {
            place.count(Finding::OtherRecord);
            return false;
        }
        capture.clear();
        capture.url.push_str(header.url);
        if !self.documents.response(&self.block, Some(header.media_type), capture, place) {
            return false;
        }
        let Some(time) = place.time(header.date) else { return false };
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
    }
}
