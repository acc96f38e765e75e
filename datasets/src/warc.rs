//! WARC 0.17 to 1.1 (ISO 28500), and WAT files, which are WARCs of metadata records in JSON ([`crate::wat`]).
//!
//! Reads: records in the order of the file. Writes: a capture for each `response` and `resource` that is an HTML page, for
//! each `revisit` that may be one, and, where asked for, for each `metadata` record with Heritrix's `outlink:` lines.
//!
//! Damage is passed over. A record whose length does not lead to the next version line ends at the next one that is found,
//! in the block that was read or behind it. A record cut by the end or by a broken member keeps what there is.
//!
//! Memory: the block of one record, at most 64 MiB of it; a longer one is passed over and counted.

use memchr::memmem;
use std::path::PathBuf;

use crate::compressed::Text;
use crate::digest::digest_of;
use crate::document::{self, Documents};
use crate::record::{self, BODY_BYTES_MAX, Fields, HEADER_BYTES_MAX, Place, bare_uri};
use crate::wat::{self, Flavour};
use crate::{Capture, CaptureReader, Content, Error, Finding, Profile, Revisit, Tally, date};

const OTHER_BYTES_MAX: u64 = 1 << 20;

/// A reader of WARC and WAT records.
pub(crate) struct WarcReader {
    text: Text,
    path: PathBuf,
    documents: Documents,
    header: Fields,
    lines: Fields,
    line: Vec<u8>,
    block: Vec<u8>,
    flavour: Flavour,
}

impl WarcReader {
    pub(crate) fn new(text: Text, path: PathBuf, documents: Documents) -> Self {
        WarcReader {
            text,
            path,
            documents,
            header: Fields::default(),
            lines: Fields::default(),
            line: Vec::new(),
            block: Vec::new(),
            flavour: Flavour::default(),
        }
    }

    /// Finds the next version line and reads the header behind it; `false` at the end.
    fn header(&mut self, tally: &mut Tally, at: &mut (u64, u64)) -> std::io::Result<bool> {
        if !record::seek(&mut self.text, &self.path, tally, |text| Ok(version(text.peek(6)?)))? {
            return Ok(false);
        }
        *at = self.text.place();
        let mut place = Place { at: *at, tally, path: &self.path };
        self.header.clear();
        self.line.clear();
        self.text.line(&mut self.line, HEADER_BYTES_MAX)?;
        let mut read = 0;
        let mut damaged = false;
        loop {
            if version(self.text.peek(6)?) {
                place.damage(Finding::BadHeader, "the next record begins in the header");
                return Ok(true);
            }
            self.line.clear();
            let len = self.text.line(&mut self.line, HEADER_BYTES_MAX)?;
            read += len;
            if len == 0 {
                if !self.text.at_break() {
                    place.damage(Finding::Truncated, "record header");
                }
                return Ok(true);
            }
            let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                return Ok(true);
            }
            if read > HEADER_BYTES_MAX {
                place.damage(Finding::BadHeader, "longer than 1 MiB");
                return Ok(true);
            }
            if !self.header.push(line) && !damaged {
                damaged = true;
                place.damage(Finding::BadHeader, "a line that is no field");
            }
        }
    }

    /// Reads the block of the record; where its length is wrong, up to the next version line.
    fn block(&mut self, wanted: bool, place: &mut Place<'_>) -> std::io::Result<()> {
        self.block.clear();
        let len = self.header.get("content-length").and_then(|len| len.parse::<u64>().ok());
        let Some(len) = len else {
            place.damage(Finding::BadHeader, "no Content-Length");
            return self.rest_of_block();
        };
        let bytes_max = if wanted { BODY_BYTES_MAX as u64 } else { OTHER_BYTES_MAX };
        let read = self.text.block(len.min(bytes_max), &mut self.block)?;
        if read < len.min(bytes_max) {
            // The end, or a broken member, inside the block: the length may be too great all the same.
            if !self.end_at_next_record(place) && !self.text.at_break() {
                place.damage(Finding::Truncated, "record block");
            }
            return Ok(());
        }
        if len > bytes_max {
            let next = memmem::find(&self.block, b"\r\n\r\nWARC/1.");
            if next.is_some_and(|at| {
                memmem::find(&self.block[at..self.block.len().min(at + 400)], b"WARC-Type:").is_some()
            }) {
                self.end_at_next_record(place);
                return Ok(());
            }
            if wanted {
                place.damage(Finding::Truncated, "record block longer than 64 MiB");
            }
            if self.text.skip(len - read)? < len - read && !self.text.at_break() {
                place.damage(Finding::Truncated, "record block");
            }
            return Ok(());
        }
        let next = self.text.peek(10)?;
        let next = next.trim_ascii_start();
        if next.is_empty() || version(next) || next.len() < 6 && b"WARC/".starts_with(&next[..next.len().min(5)]) {
            return Ok(());
        }
        if !self.end_at_next_record(place) {
            place.damage(Finding::BadLength, "the block goes on behind its end");
            self.rest_of_block()?;
        }
        Ok(())
    }

    /// Ends the block before a version line inside it, and puts back what follows.
    fn end_at_next_record(&mut self, place: &mut Place<'_>) -> bool {
        let next = memmem::find_iter(&self.block, b"WARC/")
            .find(|&at| version(&self.block[at..]) && (at == 0 || self.block[at - 1] == b'\n'));
        let Some(next) = next else { return false };
        place.damage(Finding::BadLength, "the next record begins inside the block");
        self.text.put_back(&self.block[next..]);
        self.block.truncate(next);
        true
    }

    /// Adds to the block what comes before the next version line.
    fn rest_of_block(&mut self) -> std::io::Result<()> {
        while !version(self.text.peek(6)?) {
            self.line.clear();
            if self.text.line(&mut self.line, HEADER_BYTES_MAX)? == 0 {
                break;
            }
            if self.block.len() + self.line.len() <= BODY_BYTES_MAX {
                self.block.extend_from_slice(&self.line);
            }
        }
        Ok(())
    }

    /// The next record; whether it is a capture, `None` at the end.
    fn record(&mut self, capture: &mut Capture, tally: &mut Tally) -> std::io::Result<Option<bool>> {
        let mut at = (0, 0);
        if !self.header(tally, &mut at)? {
            return Ok(None);
        }
        let path = std::mem::take(&mut self.path);
        let mut place = Place { tally, path: &path, at };
        let kind = self.header.get("warc-type").unwrap_or_default().to_ascii_lowercase();
        let wanted = matches!(&kind[..], "response" | "resource" | "revisit" | "metadata");
        let read = self.block(wanted, &mut place);
        let is_capture = read.is_ok() && self.capture(&kind, capture, &mut place);
        self.path = path;
        read.map(|()| Some(is_capture))
    }

    /// Makes the record a capture, or counts why it is none.
    fn capture(&mut self, kind: &str, capture: &mut Capture, place: &mut Place<'_>) -> bool {
        let content_type = self.header.get("content-type").unwrap_or_default();
        let json = crate::http::media_type(&content_type) == "application/json";
        let scheme_dns = self.header.get("warc-target-uri").is_some_and(|uri| bare_uri(&uri).starts_with("dns:"));
        match kind {
            "metadata" if json => {
                return wat::capture(&self.block, self.flavour, &mut self.documents, capture, place);
            }
            "response" | "resource" | "revisit" if !scheme_dns => {}
            "metadata" if self.documents.kinds.outlinks => {}
            _ => {
                if kind == "warcinfo" {
                    self.lines.clear();
                    self.lines.read(&self.block);
                    self.flavour = Flavour::of(&self.lines);
                }
                place.count(Finding::OtherRecord);
                return false;
            }
        }
        capture.clear();
        let Some(url) = self.header.get("warc-target-uri") else {
            place.damage(Finding::BadHeader, "no WARC-Target-URI");
            return false;
        };
        capture.url.push_str(bare_uri(&url));
        if kind == "metadata" {
            self.lines.clear();
            self.lines.read(&self.block);
            for (_, value) in self.lines.iter().filter(|(name, _)| name.eq_ignore_ascii_case(b"outlink")) {
                document::outlink(&String::from_utf8_lossy(value), capture);
            }
            if capture.links.is_empty() {
                place.count(Finding::OtherRecord);
                return false;
            }
        }
        let payload_type = self.header.get("warc-identified-payload-type");
        let is_capture = match kind {
            "metadata" => true,
            "revisit" => self.documents.revisit(&self.block, payload_type.as_deref(), capture, place),
            "resource" => self.documents.resource(&self.block, &content_type, capture, place),
            _ => {
                let own = Some(&*content_type).filter(|text| !text.is_empty() && !text.starts_with("application/http"));
                self.documents.response(&self.block, payload_type.as_deref().or(own), capture, place)
            }
        };
        if !is_capture {
            return false;
        }
        let date = self.header.get("warc-date").unwrap_or_default();
        let Some(time) = place.time(&date) else { return false };
        capture.time = time;
        if kind != "metadata" {
            capture.digest = self.header.get("warc-payload-digest").and_then(|digest| digest_of(&digest));
        }
        if kind == "revisit" {
            let field = |name| self.header.get(name);
            capture.content = revisit(
                field("warc-profile").as_deref(),
                field("warc-refers-to-target-uri").as_deref(),
                field("warc-refers-to-date").as_deref(),
            );
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

/// What a revisit record says; a profile that is not known counts as one of equal digests.
pub(crate) fn revisit(profile: Option<&str>, url: Option<&str>, date: Option<&str>) -> Content {
    let not_modified =
        profile.is_some_and(|profile| profile.trim_end_matches(['/', '>']).ends_with("server-not-modified"));
    Content::Revisit(Revisit {
        profile: if not_modified { Profile::NotModified } else { Profile::IdenticalDigest },
        url: url.map(|url| bare_uri(url).to_owned()),
        time: date.and_then(date::parse).map(|date| date.seconds),
    })
}

/// Whether a version line begins here.
pub(crate) fn version(text: &[u8]) -> bool {
    text.len() >= 6 && text[..5].eq_ignore_ascii_case(b"WARC/") && text[5].is_ascii_digit()
}
