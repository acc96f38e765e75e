//! WARC 0.17 to 1.1 (ISO 28500), and WAT files: WARC files of metadata records in JSON ([`crate::formats::wat`]).
//!
//! Reads records in the order of the file. Writes a capture for each `response` and `resource` that is an HTML page,
//! for each `revisit` that may be a page, and, if the options ask for outlinks, for each `metadata` record with
//! `outlink:` lines of Heritrix.
//!
//! The response to a request that was not a GET is no capture of the page ([`requests`]). Records in segments are
//! joined ([`segments`]).
//!
//! Damage: if the length of a record does not lead to the next version line, the record ends at the next version line
//! that is found, inside the block or after the block. If the file ends or a member breaks inside a record, the reader
//! keeps the available part.
//!
//! A capture is cut if the record says so (`WARC-Truncated`), if the record has fewer bytes than its length, if a
//! segment is missing, or if its body is not whole ([`crate::formats::http::coding`]).
//!
//! Memory: at most 64 MiB of the block of one record, 16 MiB of segments, and the hashes of some requests. The rest of
//! a longer block is skipped and counted. Time: linear,
//! even if every length is wrong. The reader parses a block in the text buffer and never copies a block back. A length
//! that is too large costs one look at the end of the block, then a search for the next version line from the front.

pub(in crate::formats) mod requests;
mod segments;

use memchr::memmem;
use std::io::BufRead;
use std::path::PathBuf;

use self::requests::{Marks, Part, Requests};
use self::segments::{Segmented, Segments};
use crate::capture::digest::digest_of;
use crate::capture::meaning::Seen;
use crate::capture::method::Other;
use crate::files::compressed::Text;
use crate::files::head::Head;
use crate::formats::document::{self, Documents};
use crate::formats::record::{self, BODY_BYTES_MAX, Fields, HEADER_BYTES_MAX, RecordSite, bare_uri};
use crate::formats::wat::{self, Flavour};
use crate::{Capture, CaptureReader, Cut, Error, Finding, Tally};
use webstrata_url::spelt;

/// The most bytes of an unwanted block that are read to find the next record.
const OTHER_BYTES_MAX: usize = 1 << 20;

/// The most bytes of line feeds between a block and the next version line.
const GAP_BYTES: usize = 10;
/// Bytes after a version line that must contain the type of the record; otherwise the line is text of a block.
const TYPE_BYTES_MAX: usize = 400;

/// A reader of WARC and WAT records.
pub(crate) struct WarcReader {
    text: Text,
    path: PathBuf,
    line: Vec<u8>,
    records: Records,
    segments: Segments,
}

/// Turns records into captures.
struct Records {
    documents: Documents,
    header: Fields,
    lines: Fields,
    flavour: Flavour,
    requests: Requests,
    /// The position of the record in the text.
    at: u64,
}

impl WarcReader {
    pub(crate) fn new(text: Text, path: PathBuf, documents: Documents) -> Self {
        let (header, lines) = (Fields::default(), Fields::default());
        let (flavour, requests) = (Flavour::default(), Requests::default());
        let records = Records { documents, header, lines, flavour, requests, at: 0 };
        WarcReader { text, path, line: Vec::new(), records, segments: Segments::default() }
    }

    /// Finds the next version line and reads the header after the line; `false` at the end.
    fn header(&mut self, tally: &mut Tally, at: &mut (u64, u64)) -> std::io::Result<bool> {
        if !record::seek(&mut self.text, &self.path, tally, |text| Ok(version(text.peek(6)?)))? {
            return Ok(false);
        }
        *at = self.text.offsets();
        self.records.at = self.text.position();
        let mut site = RecordSite::new(tally, &self.path, *at);
        self.records.header.clear();
        self.line.clear();
        self.text.line(&mut self.line, HEADER_BYTES_MAX)?;
        let mut read = 0;
        let mut damaged = false;
        loop {
            if version(self.text.peek(6)?) {
                site.damage(Finding::BadHeader, "the next record begins inside the header");
                return Ok(true);
            }
            self.line.clear();
            let len = self.text.line(&mut self.line, HEADER_BYTES_MAX)?;
            read += len;
            if len == 0 {
                if !self.text.at_break() {
                    site.damage(Finding::Truncated, "the record header is cut off");
                }
                return Ok(true);
            }
            let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                return Ok(true);
            }
            if read > HEADER_BYTES_MAX {
                site.damage(Finding::BadHeader, "the header is longer than 1 MiB");
                return Ok(true);
            }
            if !self.records.header.push(line) && !damaged {
                damaged = true;
                site.damage(Finding::BadHeader, "a header line is not a field");
            }
        }
    }

    /// Reads the next record. Returns whether the record is a capture, or `None` at the end.
    fn record(&mut self, capture: &mut Capture, tally: &mut Tally) -> std::io::Result<Option<bool>> {
        if let Some(record) = self.segments.take(false) {
            return Ok(Some(self.records.segmented(record, capture, RecordSite::new(tally, &self.path, (0, 0)))));
        }
        let mut at = (0, 0);
        if !self.header(tally, &mut at)? {
            let record = self.segments.take(true);
            let site = RecordSite::new(tally, &self.path, at);
            return Ok(record.map(|record| self.records.segmented(record, capture, site)));
        }
        let WarcReader { text, path, records, segments, .. } = self;
        let mut site = RecordSite::new(tally, path, at);
        let kind = records.header.get("warc-type").unwrap_or_default().to_ascii_lowercase();
        let is_awaited = kind == "continuation" && segments.is_awaited(&records.header);
        let wanted = is_awaited || matches!(&kind[..], "response" | "resource" | "revisit" | "metadata");
        let len = records.header.get("content-length").and_then(|len| len.parse().ok());
        let Block { bytes, skipped } = block(text, len, wanted, &mut site)?;
        if skipped == 0 && matches!(&kind[..], "response" | "revisit" | "metadata") {
            records.requests.look_ahead(text, bytes)?;
        }
        let block = &text.peek(bytes)?[..bytes];
        let is_capture = if is_awaited {
            segments.add(&records.header, block, site.why_cut().is_some());
            false
        } else {
            let is_first = matches!(&kind[..], "response" | "resource") && segments::is_first(&records.header);
            match records.other_method(&kind, block) {
                Some(method) => {
                    method.count(site.tally);
                    false
                }
                None if is_first && Segments::has_room(bytes) => {
                    segments.begin(&records.header, &kind, block, at, site.why_cut().is_some());
                    false
                }
                None => {
                    if is_first {
                        site.cut(Cut::Segments);
                    }
                    records.capture(&kind, block, capture, &mut site)
                }
            }
        };
        text.consume(bytes);
        if text.skip(skipped)? < skipped && !text.at_break() {
            site.damage(Finding::Truncated, "the record block is cut off");
        }
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

/// Finds the block of a record by its length. If the length is wrong, the block ends at the next version line.
fn block(text: &mut Text, len: Option<u64>, wanted: bool, site: &mut RecordSite<'_>) -> std::io::Result<Block> {
    let whole = |bytes| Block { bytes, skipped: 0 };
    let Some(len) = len else {
        site.damage(Finding::BadHeader, "Content-Length is missing or not a number");
        let bytes = next_version(text, 0)?;
        record::check_member(text, bytes, site);
        return Ok(whole(bytes));
    };
    let bytes_max = if wanted { BODY_BYTES_MAX } else { OTHER_BYTES_MAX };
    let bytes = usize::try_from(len).unwrap_or(usize::MAX).min(bytes_max);
    let ahead = text.peek(bytes + GAP_BYTES)?;
    if ahead.len() < bytes {
        // The file ends, or a member is broken, inside the block. The length may still be too large.
        site.ends_early();
        if let Some(next) = version_line(ahead, 0) {
            site.damage(Finding::BadLength, "the next record begins inside the block");
            return Ok(whole(next));
        }
        let bytes = ahead.len();
        if !text.ends_at_break() {
            site.damage(Finding::Truncated, "the record block is cut off");
        }
        return Ok(whole(bytes));
    }
    let (block, behind) = ahead.split_at(bytes);
    if len > bytes as u64 {
        let next = version_line(block, 0);
        let is_record =
            |at: usize| memmem::find(&block[at..block.len().min(at + TYPE_BYTES_MAX)], b"WARC-Type:").is_some();
        if let Some(next) = next.filter(|&at| is_record(at)) {
            site.ends_early();
            site.damage(Finding::BadLength, "the next record begins inside the block");
            return Ok(whole(next));
        }
        if wanted {
            site.damage(Finding::Truncated, "the record block is longer than 64 MiB");
            site.cut(Cut::Truncated);
        }
        return Ok(Block { bytes, skipped: len - bytes as u64 });
    }
    let behind = behind.trim_ascii_start();
    if behind.is_empty() || version(behind) || behind.len() < 6 && b"WARC/".starts_with(&behind[..behind.len().min(5)])
    {
        record::check_member(text, bytes + GAP_BYTES, site);
        return Ok(whole(bytes));
    }
    // The version line may begin in the last bytes of the block, and end behind the block.
    if let Some(next) = version_line(ahead, 0).filter(|&at| at < bytes) {
        site.ends_early();
        site.damage(Finding::BadLength, "the next record begins inside the block");
        return Ok(whole(next));
    }
    site.damage(Finding::BadLength, "the block continues after the length that its header gives");
    Ok(whole(next_version(text, bytes)?))
}

/// The offset of the next version line, `from` or more bytes on. Without a version line, the number of bytes of
/// the block to read.
fn next_version(text: &mut Text, mut from: usize) -> std::io::Result<usize> {
    const STEP_BYTES: usize = 64 << 10;
    // The text at hand may end inside a version line: six bytes, and the line feed before them.
    const OVERLAP_BYTES: usize = 7;
    loop {
        let wanted = from + STEP_BYTES;
        let ahead = text.peek(wanted)?;
        if let Some(next) = version_line(ahead, from) {
            return Ok(next);
        }
        if ahead.len() < wanted || wanted > BODY_BYTES_MAX {
            return Ok(ahead.len().min(BODY_BYTES_MAX));
        }
        from = ahead.len() - OVERLAP_BYTES;
    }
}

/// The first version line in a text, `from` or more bytes on.
fn version_line(text: &[u8], from: usize) -> Option<usize> {
    let offsets = memmem::find_iter(text.get(from..)?, b"WARC/").map(|at| from + at);
    offsets.into_iter().find(|&at| version(&text[at..]) && (at == 0 || text[at - 1] == b'\n'))
}

impl Records {
    /// Remembers a request or a response. Returns the method of the request, if the record belongs to one that was not
    /// a GET.
    fn other_method(&mut self, kind: &str, block: &[u8]) -> Option<Other> {
        let marks = Marks::of(&self.header);
        match kind {
            "request" => {
                self.requests.see(self.at, marks, Part::Request(Other::of_request(block)));
                None
            }
            "response" | "revisit" => {
                self.requests.see(self.at, marks, Part::Response);
                self.requests.method(self.at)
            }
            "metadata" if self.documents.kinds.outlinks => self.requests.method_by_name(&marks),
            _ => None,
        }
    }

    /// Turns a record of several segments into a capture.
    fn segmented(&mut self, record: Segmented, capture: &mut Capture, mut site: RecordSite<'_>) -> bool {
        self.header = record.header;
        site.at = record.at;
        if record.is_short {
            site.ends_early();
        }
        if !record.is_whole {
            site.cut(Cut::Segments);
        }
        self.capture(&record.kind, &record.block, capture, &mut site)
    }

    /// Turns a record into a capture, or counts why the record is not a capture.
    fn capture(&mut self, kind: &str, block: &[u8], capture: &mut Capture, site: &mut RecordSite<'_>) -> bool {
        let content_type = self.header.get("content-type").unwrap_or_default();
        let json = crate::formats::http::media_type(&content_type) == "application/json";
        let url = self.header.get("warc-target-uri");
        let finding = record::without_page(kind, url.as_deref().map_or("", bare_uri));
        match kind {
            "metadata" if json => {
                let exchange = wat::Exchange { requests: &mut self.requests, at: self.at };
                return wat::capture(block, self.flavour, &mut self.documents, exchange, capture, site);
            }
            "response" | "resource" | "revisit" if finding == Finding::OtherRecord => {}
            "metadata" if self.documents.kinds.outlinks => {}
            _ => {
                if kind == "warcinfo" {
                    self.lines.clear();
                    self.lines.read(block);
                    self.flavour = Flavour::of(&self.lines);
                }
                site.count(finding);
                return false;
            }
        }
        capture.clear();
        let Some(url) = url else {
            site.damage(Finding::BadHeader, "WARC-Target-URI is missing");
            return false;
        };
        capture.url.push_str(bare_uri(&url));
        if self.header.bytes("warc-truncated").is_some() {
            site.cut(Cut::Truncated);
        }
        if kind == "metadata" {
            self.lines.clear();
            self.lines.read(block);
            for (_, value) in self.lines.iter().filter(|(name, _)| name.eq_ignore_ascii_case(b"outlink")) {
                document::outlink(&spelt(value), capture);
            }
            if capture.links.is_empty() {
                site.count(finding);
                return false;
            }
        }
        let payload_type = self.header.get("warc-identified-payload-type");
        let is_capture = match kind {
            "metadata" => {
                let seen = Seen { cut: site.why_cut(), ..Seen::links() };
                seen.settle(self.documents.kinds.redirects, capture, site.tally)
            }
            "revisit" => {
                let field = |name| self.header.get(name);
                let revisit = record::revisit(
                    field("warc-profile").as_deref(),
                    field("warc-refers-to-target-uri").as_deref(),
                    field("warc-refers-to-date").as_deref(),
                );
                if let Some(container) = field("warc-refers-to-container") {
                    site.tally.refer_to(bare_uri(&container));
                }
                self.documents.revisit(block, revisit, payload_type.as_deref(), capture, site)
            }
            "resource" => self.documents.resource(block, &content_type, capture, site),
            _ => {
                let declared_type =
                    Some(&*content_type).filter(|text| !text.is_empty() && !text.starts_with("application/http"));
                self.documents.response(block, payload_type.as_deref().or(declared_type), capture, site)
            }
        };
        if !is_capture {
            return false;
        }
        let date = self.header.get("warc-date").unwrap_or_default();
        let Some(time) = site.time(&date) else { return false };
        capture.time = time;
        if kind != "metadata" {
            capture.digest = self.header.get("warc-payload-digest").and_then(|digest| digest_of(&digest));
        }
        true
    }
}

impl CaptureReader for WarcReader {
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

/// Whether a text begins like a WARC: a version line at the beginning or, after damage, further on.
pub(crate) fn is_own(head: &Head<'_>) -> bool {
    let text = head.text.trim_ascii_start();
    let lines = memmem::find_iter(text, b"\nWARC/").map(|feed| feed + 1);
    [0].into_iter().chain(lines).any(|at| {
        let (text, rest) = (&text[at..], text.len() - at);
        let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(rest);
        let is_line = matches!(text.get(end), None | Some(b'\r' | b'\n'));
        let has_fields = memmem::find(&text[..rest.min(TYPE_BYTES_MAX)], b"\nWARC-").is_some();
        version(text) && (has_fields || is_line)
    })
}

/// Whether a version line begins here.
pub(crate) fn version(text: &[u8]) -> bool {
    text.len() >= 6 && text[..5].eq_ignore_ascii_case(b"WARC/") && text[5].is_ascii_digit()
}
