//! The requests of a WARC file or a WAT, and the responses that belong to them.
//!
//! A response does not say which method its request had. The request record says so, and stands before the response
//! (Wget, Common Crawl) or behind it (Heritrix, warcio). A request and a response belong together
//!
//! 1. if one names the other (`WARC-Concurrent-To`), or both have one `WARC-Record-ID`;
//! 2. else, if both name the same third record, and have the same URL and second;
//! 3. else, if both have the same URL and second, and neither belongs to another one.
//!
//! One pass and bounded memory: of the records behind, the last [`RECORDS_KEPT`] requests and responses are known by
//! hashes of their fields. At a response, the reader looks at the headers of up to [`RECORDS_AHEAD`] records ahead,
//! within [`BYTES_AHEAD`] bytes of text, and reads each header ahead once. A request that is farther away is not found,
//! and the response counts as one to a GET.

use std::collections::VecDeque;
use std::io;

use memchr::memmem;
use xxhash_rust::xxh3::xxh3_64;

use super::version;
use crate::capture::method::Other;
use crate::files::compressed::Text;
use crate::formats::record::{Fields, bare_uri};
use crate::formats::wat;

/// The number of records for which requests and responses are remembered.
const RECORDS_KEPT: usize = 64;
/// The records ahead of a response that are looked at.
const RECORDS_AHEAD: usize = 8;
/// The bytes of text behind a response that are looked at.
const BYTES_AHEAD: usize = 256 << 10;
/// The most bytes of a header ahead.
const HEADER_BYTES: usize = 16 << 10;
/// The most bytes of line feeds before a header ahead.
const GAP_BYTES: usize = 10;
/// The bytes of a request that have its method.
const METHOD_BYTES: usize = 64;
/// The characters of a date down to its second.
const SECOND_CHARS: usize = 19;

/// The fields of a record that tie it to other records, as hashes.
#[derive(Debug, Default)]
pub(in crate::formats) struct Marks {
    /// Its own name, or 0.
    id: u64,
    /// The records that it names.
    names: Vec<u64>,
    /// Its URL and second.
    place: u64,
}

impl Marks {
    /// The marks of a record with these fields.
    pub(in crate::formats) fn new<'a>(
        id: Option<&str>,
        names: impl Iterator<Item = impl AsRef<str>>,
        url: &str,
        date: impl Into<Option<&'a str>>,
    ) -> Marks {
        let hash = |name: &str| xxh3_64(bare_uri(name).as_bytes());
        let id = id.map_or(0, hash);
        // Some writers name no record, or the record itself.
        let is_named = |name: &str| !name.is_empty() && !name.contains("uuid:null");
        let names = names.filter(|name| is_named(name.as_ref())).map(|name| hash(name.as_ref()));
        let date = date.into().unwrap_or_default();
        let second = date.get(..SECOND_CHARS).unwrap_or(date);
        let place = xxh3_64(format!("{second} {}", bare_uri(url)).as_bytes());
        Marks { id, names: names.filter(|&name| name != id).collect(), place }
    }

    /// The marks of a WARC record.
    pub(super) fn of(header: &Fields) -> Marks {
        let field = |name| header.get(name).unwrap_or_default();
        let date = field("warc-date");
        Marks::new(
            header.get("warc-record-id").as_deref(),
            header.all("warc-concurrent-to"),
            &field("warc-target-uri"),
            &*date,
        )
    }

    fn name(&self, other: &Marks) -> bool {
        other.id != 0 && self.names.contains(&other.id)
    }

    /// Whether the names of two records tie them together, directly.
    fn is_tied(&self, other: &Marks) -> bool {
        self.name(other) || other.name(self) || self.id != 0 && self.id == other.id
    }

    /// Whether two records of one place name the same third record.
    fn shares_a_name(&self, other: &Marks) -> bool {
        self.place == other.place && self.names.iter().any(|name| other.names.contains(name))
    }
}

/// The part of a record in an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::formats) enum Part {
    /// A request, with its method if that is not GET.
    Request(Option<Other>),
    Response,
}

/// A request or a response in the file.
#[derive(Debug)]
struct Known {
    /// The position of the record in the text.
    at: u64,
    marks: Marks,
    part: Part,
    /// Whether the other part of the exchange was found.
    is_paired: bool,
}

/// The requests and responses around the record at hand.
#[derive(Debug, Default)]
pub(in crate::formats) struct Requests {
    /// In the order of the file.
    known: VecDeque<Known>,
    /// The positions of the records ahead that were looked at, rising.
    ahead: VecDeque<u64>,
    /// The position up to which records were looked at.
    end: u64,
    fields: Fields,
}

impl Requests {
    /// Remembers a request or a response.
    pub(in crate::formats) fn see(&mut self, at: u64, marks: Marks, part: Part) {
        let place = self.known.partition_point(|known| known.at < at);
        if self.known.get(place).is_none_or(|known| known.at != at) {
            self.known.insert(place, Known { at, marks, part, is_paired: false });
        }
        while self.known.len() > RECORDS_KEPT + RECORDS_AHEAD {
            self.known.pop_front();
        }
    }

    /// The method of the request to which the response at this position belongs, if it is not GET.
    pub(in crate::formats) fn method(&mut self, at: u64) -> Option<Other> {
        let own = self.known.iter().position(|known| known.at == at)?;
        let request = self.partner(own)?;
        self.known[own].is_paired = true;
        self.known[request].is_paired = true;
        match self.known[request].part {
            Part::Request(method) => method,
            Part::Response => None,
        }
    }

    /// The method of the request to which a further record of an exchange belongs, by the names that both give.
    pub(super) fn method_by_name(&self, marks: &Marks) -> Option<Other> {
        self.known.iter().rev().find_map(|known| match known.part {
            Part::Request(method) if known.marks.is_tied(marks) || known.marks.shares_a_name(marks) => method,
            _ => None,
        })
    }

    /// The request of a response: the nearest one by the first rule that finds one.
    fn partner(&self, own: usize) -> Option<usize> {
        let response = &self.known[own];
        let by = |belongs: &dyn Fn(&Known) -> bool| {
            let is_it = |index: &usize| {
                let known = &self.known[*index];
                matches!(known.part, Part::Request(_)) && belongs(known)
            };
            let before = (0..own).rev().find(is_it);
            before.or_else(|| (own + 1..self.known.len()).find(is_it))
        };
        let marks = &response.marks;
        let is_free = |known: &Known| {
            let is_tied = |other: &Known| other.part == Part::Response && other.marks.is_tied(&known.marks);
            !known.is_paired && known.marks.place == marks.place && !self.known.iter().any(is_tied)
        };
        by(&|known| known.marks.is_tied(marks))
            .or_else(|| by(&|known| !known.is_paired && known.marks.shares_a_name(marks)))
            .or_else(|| by(&is_free))
    }

    /// Looks at the records behind the block of `block` bytes at the next byte.
    pub(super) fn look_ahead(&mut self, text: &mut Text, block: usize) -> io::Result<()> {
        let here = text.position();
        let start = here + block as u64;
        self.end = self.end.max(start);
        while self.ahead.front().is_some_and(|&at| at < start) {
            self.ahead.pop_front();
        }
        while self.ahead.len() < RECORDS_AHEAD {
            let Ok(at) = usize::try_from(self.end - here) else { break };
            if at > block + BYTES_AHEAD {
                break;
            }
            let Some(end) = self.look_at(text, at)? else { break };
            self.end = here + end as u64;
        }
        Ok(())
    }

    /// Looks at the record that begins `at` bytes ahead. Returns how far ahead the record ends; `None` if no record
    /// begins there.
    fn look_at(&mut self, text: &mut Text, at: usize) -> io::Result<Option<usize>> {
        let here = text.position();
        let Some(ahead) = text.peek(at + HEADER_BYTES)?.get(at..) else { return Ok(None) };
        let gap = ahead.iter().take(GAP_BYTES).take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let ahead = &ahead[gap..];
        let ends = [&b"\r\n\r\n"[..], b"\n\n"].map(|end| memmem::find(ahead, end).map(|at| at + end.len()));
        let Some(bytes) = ends.into_iter().flatten().min().filter(|_| version(ahead)) else { return Ok(None) };
        let line = memchr::memchr(b'\n', ahead).map_or(0, |feed| feed + 1);
        self.fields.clear();
        _ = self.fields.read(&ahead[line..bytes]);
        let len = self.fields.get("content-length").and_then(|len| len.parse::<usize>().ok());
        let Some(len) = len else { return Ok(None) };
        let (start, block) = (here + (at + gap) as u64, at + gap + bytes);
        let Some(end) = block.checked_add(len) else { return Ok(None) };
        let kind = self.fields.get("warc-type").unwrap_or_default().to_ascii_lowercase();
        match &*kind {
            "request" => {
                let head = text.peek(block + len.min(METHOD_BYTES))?.get(block..).unwrap_or_default();
                let method = Other::of_request(&head[..head.len().min(len)]);
                self.see(start, Marks::of(&self.fields), Part::Request(method));
            }
            "response" | "revisit" => self.see(start, Marks::of(&self.fields), Part::Response),
            "metadata" if len <= BYTES_AHEAD => {
                let json = text.peek(end)?.get(block..end).filter(|json| wat::may_be_request(json));
                if let Some((marks, part)) = json.and_then(wat::exchange) {
                    self.see(start, marks, part);
                }
            }
            _ => {}
        }
        self.ahead.push_back(start);
        Ok(Some(end))
    }
}
