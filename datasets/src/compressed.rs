//! The text of a crawl file, whatever its compression: plain, gzip (RFC 1952), zstd (RFC 8878, and the `.warc.zst` draft).
//!
//! Reads: bytes of a file. Writes: the text as a [`BufRead`], and for every position the offset in the file of the member
//! (gzip member, zstd frame) that holds it. A crawl file has one member per record or one for the whole file.
//!
//! Damage: a member that cannot be decoded is noted with its offset; what came out of it stays, and reading goes on at the
//! next plausible member header. There the text has a *break*: [`Text::fill_buf`] gives nothing until [`Text::resume`] is
//! called, so that a record cut by the damage does not swallow the next one. [`Lines`] passes over breaks.
//!
//! Memory: 64 KiB of output, 64 KiB of input and at most 1 MiB of the current member's input (to look for the next header
//! inside a broken one). A zstd dictionary is at most 16 MiB, a zstd window at most 128 MiB.

use flate2::{Crc, Decompress, FlushDecompress, Status};
use memchr::memmem;
use std::collections::VecDeque;
use std::io::{self, BufRead, Read};
use std::sync::{Arc, Mutex};
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use crate::Finding;

const CHUNK_BYTES: usize = 64 << 10;
const KEPT_BYTES_MAX: usize = 1 << 20;
const DICTIONARY_BYTES_MAX: usize = 16 << 20;
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Damage of the container, for the tally of the reader above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) finding: Finding,
    pub(crate) offset: u64,
    pub(crate) detail: &'static str,
}

/// Notes not yet taken over into a tally.
pub(crate) type Notes = Arc<Mutex<Vec<Note>>>;

enum Coding {
    Plain,
    Gzip { inflate: Box<Decompress>, crc: Crc },
    Zstd { decoder: Decoder<'static>, begun: bool },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Between,
    Inside,
    Resync,
    End,
}

/// The decoded text of one file.
pub(crate) struct Text {
    source: Box<dyn Read + Send>,
    coding: Coding,
    state: State,
    input: Vec<u8>,
    input_at: usize,
    /// Offset in the file of `input[0]`.
    input_offset: u64,
    /// Offset in the file of the current member.
    member: u64,
    out: Vec<u8>,
    start: usize,
    /// Position in the text of `out[start]`.
    position: u64,
    /// Position in the text and offset in the file of the members that hold `out`, rising.
    members: VecDeque<(u64, u64)>,
    breaks: VecDeque<u64>,
    notes: Notes,
}

impl Text {
    /// Text of a source; its compression is told by its first bytes.
    pub(crate) fn new(source: Box<dyn Read + Send>) -> io::Result<Text> {
        let mut text = Text {
            source,
            coding: Coding::Plain,
            state: State::Between,
            input: Vec::new(),
            input_at: 0,
            input_offset: 0,
            member: 0,
            out: Vec::new(),
            start: 0,
            position: 0,
            members: VecDeque::new(),
            breaks: VecDeque::new(),
            notes: Notes::default(),
        };
        text.need(4)?;
        let head = text.unread_input();
        if head.starts_with(&GZIP) {
            text.coding = Coding::Gzip { inflate: Box::new(Decompress::new(false)), crc: Crc::new() };
        } else if head.starts_with(&ZSTD) || skippable(head) {
            text.coding = Coding::Zstd { decoder: Decoder::new()?, begun: false };
        }
        Ok(text)
    }

    /// Where the damage of the container is noted.
    pub(crate) fn notes(&self) -> Notes {
        self.notes.clone()
    }

    /// Place of the next byte: offset in the file of the member that holds it, and its distance from the member's first
    /// byte, uncompressed. For plain text the offset alone. Forgets earlier members.
    pub(crate) fn place(&mut self) -> (u64, u64) {
        if matches!(self.coding, Coding::Plain) {
            return (self.position, 0);
        }
        while self.members.get(1).is_some_and(|&(position, _)| position <= self.position) {
            self.members.pop_front();
        }
        match self.members.front() {
            Some(&(position, offset)) => (offset, self.position.saturating_sub(position)),
            None => (0, self.position),
        }
    }

    /// At least `len` bytes of what comes, fewer only before a break or the end.
    pub(crate) fn peek(&mut self, len: usize) -> io::Result<&[u8]> {
        while self.available() < len && self.open_ended() && self.more()? {}
        Ok(&self.out[self.start..self.start + self.available()])
    }

    /// Whether the text is at a break, and goes on behind it.
    pub(crate) fn resume(&mut self) -> bool {
        if self.breaks.front() == Some(&self.position) {
            self.breaks.pop_front();
            return true;
        }
        false
    }

    /// Whether the text was cut here by damage of the container.
    pub(crate) fn at_break(&self) -> bool {
        self.breaks.front() == Some(&self.position)
    }

    /// Appends a line with its line feed; nothing at a break or the end. A line longer than `bytes_max` comes in pieces.
    pub(crate) fn line(&mut self, line: &mut Vec<u8>, bytes_max: usize) -> io::Result<usize> {
        let mut read = 0;
        while read < bytes_max {
            let text = self.fill_buf()?;
            if text.is_empty() {
                break;
            }
            let text = &text[..text.len().min(bytes_max - read)];
            let feed = memchr::memchr(b'\n', text);
            let len = feed.map_or(text.len(), |at| at + 1);
            line.extend_from_slice(&text[..len]);
            self.consume(len);
            read += len;
            if feed.is_some() {
                break;
            }
        }
        Ok(read)
    }

    /// Appends `len` bytes, fewer only before a break or the end.
    pub(crate) fn block(&mut self, mut len: u64, block: &mut Vec<u8>) -> io::Result<u64> {
        let wanted = len;
        while len > 0 {
            let text = self.fill_buf()?;
            if text.is_empty() {
                break;
            }
            let part = text.len().min(usize::try_from(len).unwrap_or(usize::MAX));
            block.extend_from_slice(&text[..part]);
            self.consume(part);
            len -= part as u64;
        }
        Ok(wanted - len)
    }

    /// Passes over `len` bytes, fewer only before a break or the end.
    pub(crate) fn skip(&mut self, mut len: u64) -> io::Result<u64> {
        let wanted = len;
        while len > 0 {
            let text = self.fill_buf()?.len();
            if text == 0 {
                break;
            }
            let part = text.min(usize::try_from(len).unwrap_or(usize::MAX));
            self.consume(part);
            len -= part as u64;
        }
        Ok(wanted - len)
    }

    /// Puts back bytes that were just read.
    pub(crate) fn put_back(&mut self, bytes: &[u8]) {
        self.position -= bytes.len() as u64;
        if self.start >= bytes.len() && &self.out[self.start - bytes.len()..self.start] == bytes {
            self.start -= bytes.len();
            return;
        }
        self.out.splice(..self.start, bytes.iter().copied());
        self.start = 0;
    }

    fn available(&self) -> usize {
        let have = self.out.len() - self.start;
        match self.breaks.front() {
            Some(at) => have.min(usize::try_from(at - self.position).unwrap_or(usize::MAX)),
            None => have,
        }
    }

    /// Whether more decoding can make more available: no break stands in the way.
    fn open_ended(&self) -> bool {
        self.breaks.is_empty()
    }

    fn unread_input(&self) -> &[u8] {
        &self.input[self.input_at..]
    }

    /// Offset in the file of the next byte of input.
    fn input_place(&self) -> u64 {
        self.input_offset + self.input_at as u64
    }

    fn text_end(&self) -> u64 {
        self.position + (self.out.len() - self.start) as u64
    }

    /// Reads on in the file; `false` at its end. Keeps the input of the current member while it is short.
    fn refill(&mut self) -> io::Result<bool> {
        let mut keep = self.input_at;
        let coded = !matches!(self.coding, Coding::Plain);
        if coded && self.state == State::Inside && self.member >= self.input_offset {
            let member = usize::try_from(self.member - self.input_offset).unwrap_or(keep);
            if keep.saturating_sub(member) <= KEPT_BYTES_MAX {
                keep = member.min(keep);
            }
        }
        self.input.drain(..keep);
        self.input_at -= keep;
        self.input_offset += keep as u64;
        let len = self.input.len();
        self.input.resize(len + CHUNK_BYTES, 0);
        let read = read_some(&mut *self.source, &mut self.input[len..]);
        self.input.truncate(len + read.as_ref().copied().unwrap_or(0));
        Ok(read? > 0)
    }

    /// Makes `len` bytes of input ready; `false` if the file ends before.
    fn need(&mut self, len: usize) -> io::Result<bool> {
        while self.unread_input().len() < len {
            if !self.refill()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Decodes some more; `false` at the end of the file.
    fn more(&mut self) -> io::Result<bool> {
        if self.start == self.out.len() {
            self.out.clear();
            self.start = 0;
        } else if self.start >= CHUNK_BYTES {
            self.out.drain(..self.start);
            self.start = 0;
        }
        let before = self.out.len();
        while self.out.len() == before {
            match self.state {
                State::End => return Ok(false),
                State::Between => self.begin()?,
                State::Inside => self.decode()?,
                State::Resync => self.resync()?,
            }
        }
        Ok(true)
    }

    /// Between members: begins the next one.
    fn begin(&mut self) -> io::Result<()> {
        self.need(4)?;
        while self.unread_input().first() == Some(&0) && !matches!(self.coding, Coding::Plain) {
            self.input_at += 1; // padding
            self.need(4)?;
        }
        let head = &self.input[self.input_at..];
        if head.is_empty() {
            self.state = State::End;
            return Ok(());
        }
        match &mut self.coding {
            Coding::Plain => self.state = State::Inside,
            Coding::Gzip { .. } if head.starts_with(&GZIP) => {
                self.enter();
                if let Some(len) = self.gzip_header()? {
                    self.input_at += len;
                    if let Coding::Gzip { inflate, crc } = &mut self.coding {
                        inflate.reset(false);
                        crc.reset();
                    }
                } else {
                    self.broken("gzip header");
                }
            }
            Coding::Zstd { .. } if skippable(head) => self.skippable_frame()?,
            Coding::Zstd { decoder, begun } if head.starts_with(&ZSTD) => {
                decoder.reinit()?;
                *begun = true;
                self.enter();
            }
            _ => {
                self.note(Finding::BadCompression, self.input_place(), "no member begins here");
                self.state = State::Resync;
            }
        }
        Ok(())
    }

    fn enter(&mut self) {
        self.member = self.input_place();
        self.members.push_back((self.text_end(), self.member));
        self.state = State::Inside;
    }

    /// Length of the gzip header at hand, `None` if it is none.
    fn gzip_header(&mut self) -> io::Result<Option<usize>> {
        let mut wanted = 10;
        loop {
            let whole = self.need(wanted)?;
            match gzip_header_len(self.unread_input()) {
                HeaderLen::Bytes(len) => return Ok(Some(len)),
                HeaderLen::Bad => return Ok(None),
                HeaderLen::More if !whole || wanted > KEPT_BYTES_MAX => return Ok(None),
                HeaderLen::More => wanted = self.unread_input().len() + 1,
            }
        }
    }

    /// A zstd frame without text; the first one of a `.warc.zst` holds the dictionary.
    fn skippable_frame(&mut self) -> io::Result<()> {
        self.need(8)?;
        let head = self.unread_input();
        let dictionary = head[0] == 0x5d;
        let Some(len) = head.get(4..8).and_then(|len| len.try_into().ok()).map(u32::from_le_bytes) else {
            self.note(Finding::Truncated, self.input_place(), "zstd frame header");
            self.state = State::End;
            return Ok(());
        };
        let first = matches!(self.coding, Coding::Zstd { begun: false, .. });
        let place = self.input_place();
        self.input_at += 8;
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        if dictionary && first && len <= DICTIONARY_BYTES_MAX {
            let whole = self.need(len)?;
            let frame = &self.unread_input()[..len.min(self.unread_input().len())];
            let unpacked;
            let frame = if frame.starts_with(&ZSTD) {
                let mut bytes = Vec::new();
                let mut decoder = zstd::stream::read::Decoder::with_buffer(frame)?;
                let ok = (&mut decoder).take(DICTIONARY_BYTES_MAX as u64).read_to_end(&mut bytes).is_ok();
                unpacked = if ok { bytes } else { Vec::new() };
                &unpacked[..]
            } else {
                frame
            };
            match Decoder::with_dictionary(frame) {
                Ok(decoder) if whole => self.coding = Coding::Zstd { decoder, begun: true },
                _ => self.note(Finding::BadCompression, place, "zstd dictionary"),
            }
            self.input_at = self.input.len().min(self.input_at + len);
            return Ok(());
        }
        let mut left = len;
        while left > 0 {
            if !self.need(1)? {
                self.note(Finding::Truncated, place, "zstd frame");
                break;
            }
            let part = left.min(self.unread_input().len());
            self.input_at += part;
            left -= part;
        }
        Ok(())
    }

    /// Inside a member: decodes a piece of it.
    fn decode(&mut self) -> io::Result<()> {
        let more = !self.unread_input().is_empty() || self.refill()?;
        let input = &self.input[self.input_at..];
        let before = self.out.len();
        match &mut self.coding {
            Coding::Plain => {
                self.out.extend_from_slice(input);
                self.input_at = self.input.len();
                if !more {
                    self.state = State::End;
                }
            }
            Coding::Gzip { inflate, crc } => {
                self.out.reserve(CHUNK_BYTES);
                let taken = inflate.total_in();
                let status = inflate.decompress_vec(input, &mut self.out, FlushDecompress::None);
                let taken = usize::try_from(inflate.total_in() - taken).unwrap_or(0);
                self.input_at += taken;
                crc.update(&self.out[before..]);
                let sums = (crc.sum(), crc.amount());
                match status {
                    Ok(Status::StreamEnd) => self.gzip_trailer(sums)?,
                    Err(_) => self.broken("deflate data"),
                    Ok(_) if !more && taken == 0 && self.out.len() == before => self.cut(),
                    Ok(_) => {}
                }
            }
            Coding::Zstd { decoder, .. } => {
                self.out.resize(before + CHUNK_BYTES, 0);
                let mut from = InBuffer::around(input);
                let mut to = OutBuffer::around(&mut self.out[before..]);
                let status = decoder.run(&mut from, &mut to);
                let (taken, made) = (from.pos(), to.pos());
                self.out.truncate(before + made);
                self.input_at += taken;
                match status {
                    Ok(0) => self.state = State::Between,
                    Err(_) => self.broken("zstd data"),
                    Ok(_) if !more && taken == 0 && made == 0 => self.cut(),
                    Ok(_) => {}
                }
            }
        }
        Ok(())
    }

    fn gzip_trailer(&mut self, (sum, amount): (u32, u32)) -> io::Result<()> {
        if !self.need(8)? {
            self.cut();
            return Ok(());
        }
        let trailer = self.unread_input();
        let good = trailer[..4] == sum.to_le_bytes() && trailer[4..8] == amount.to_le_bytes();
        if good {
            self.input_at += 8;
            self.state = State::Between;
        } else {
            self.broken("gzip checksum");
        }
        Ok(())
    }

    /// The file ends inside a member.
    fn cut(&mut self) {
        self.note(Finding::Truncated, self.member, "the file ends inside a compressed member");
        self.state = State::End;
    }

    /// The current member is broken: looks for the next one from its second byte on, where that is still at hand.
    fn broken(&mut self, detail: &'static str) {
        self.note(Finding::BadCompression, self.member, detail);
        if self.member >= self.input_offset {
            self.input_at = usize::try_from(self.member + 1 - self.input_offset).unwrap_or(self.input_at);
        }
        self.state = State::Resync;
    }

    /// Looks for the next plausible member header.
    fn resync(&mut self) -> io::Result<()> {
        loop {
            let head_bytes = if matches!(self.coding, Coding::Zstd { .. }) { 4 } else { 10 };
            let whole = self.need(head_bytes)?;
            let input = self.unread_input();
            let found = match self.coding {
                Coding::Zstd { .. } => memmem::find(input, &ZSTD),
                _ => memmem::find_iter(input, &GZIP).find(|&at| plausible_gzip(&input[at..])),
            };
            if let Some(at) = found {
                self.input_at += at;
                self.state = State::Between;
                return Ok(());
            }
            if !whole {
                self.state = State::End;
                return Ok(());
            }
            self.input_at += input.len() - (head_bytes - 1);
        }
    }

    fn note(&mut self, finding: Finding, offset: u64, detail: &'static str) {
        let end = self.text_end();
        if self.breaks.back() != Some(&end) {
            self.breaks.push_back(end);
        }
        if let Ok(mut notes) = self.notes.lock() {
            notes.push(Note { finding, offset, detail });
        }
    }
}

impl Read for Text {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let len = self.fill_buf()?.read(bytes)?;
        self.consume(len);
        Ok(len)
    }
}

impl BufRead for Text {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.peek(1)
    }

    fn consume(&mut self, len: usize) {
        self.start += len;
        self.position += len as u64;
    }
}

/// A text whose breaks do not show: for formats of lines, where a damaged line is all that damage can do.
pub(crate) struct Lines(pub(crate) Text);

impl Read for Lines {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let len = self.fill_buf()?.read(bytes)?;
        self.consume(len);
        Ok(len)
    }
}

impl BufRead for Lines {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.0.fill_buf()?.is_empty() && self.0.resume() {}
        self.0.fill_buf()
    }

    fn consume(&mut self, len: usize) {
        self.0.consume(len);
    }
}

fn read_some(source: &mut dyn Read, bytes: &mut [u8]) -> io::Result<usize> {
    loop {
        match source.read(bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

fn skippable(head: &[u8]) -> bool {
    head.len() >= 4 && head[0] & 0xf0 == 0x50 && head[1..4] == [0x2a, 0x4d, 0x18]
}

/// Whether a gzip header that crawlers write may begin here: deflate, no reserved flags, known level and system.
fn plausible_gzip(head: &[u8]) -> bool {
    head.len() >= 10
        && head[2] == 8
        && head[3] & 0xe0 == 0
        && matches!(head[8], 0 | 2 | 4)
        && (head[9] < 20 || head[9] == 255)
}

enum HeaderLen {
    Bytes(usize),
    More,
    Bad,
}

fn gzip_header_len(head: &[u8]) -> HeaderLen {
    if head.len() < 10 {
        return HeaderLen::More;
    }
    if head[2] != 8 || head[3] & 0xe0 != 0 {
        return HeaderLen::Bad;
    }
    let flags = head[3];
    let mut at = 10;
    if flags & 4 != 0 {
        let Some(len) = head.get(at..at + 2) else { return HeaderLen::More };
        at += 2 + usize::from(u16::from_le_bytes([len[0], len[1]]));
    }
    for text in [8, 16] {
        if flags & text != 0 {
            let Some(end) = head.get(at..).and_then(|rest| memchr::memchr(0, rest)) else { return HeaderLen::More };
            at += end + 1;
        }
    }
    if flags & 2 != 0 {
        at += 2;
    }
    if head.len() < at { HeaderLen::More } else { HeaderLen::Bytes(at) }
}
