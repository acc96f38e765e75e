//! The text of a crawl file for every compression: plain, gzip (RFC 1952), zstd (RFC 8878, and the `.warc.zst` draft).
//!
//! Reads the bytes of a file. Writes the text as a [`BufRead`]. For every position of the text, [`Text::offsets`] gives
//! the file offset of the member (gzip member, zstd frame) with the position. A crawl file has one member for each
//! record, or one member for the whole file.
//!
//! Damage: if a member cannot be decoded, the reader notes the offset, keeps the text decoded so far, and continues at
//! the next plausible member header. The text has a *break* at this position: [`Text::fill_buf`] returns nothing until
//! the caller calls [`Text::resume`]. A record that the damage cuts off therefore does not swallow the next record.
//! [`Lines`] and [`MemberLines`] read across breaks.
//!
//! Time: linear. Input of a broken member is decoded a second time, up to the file's size so far plus
//! [`KEPT_BYTES_MAX`] in total ([`Text::broken`]).
//!
//! Memory: 64 KiB of output, or twice the bytes that a caller peeks at; 64 KiB of input, and at most 1 MiB of the
//! input of the current member, for the search for the next header inside a broken member. A zstd dictionary has at
//! most 16 MiB, a zstd window at most 128 MiB.

mod members;

use flate2::{Crc, Decompress};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, BufRead, Read};
use std::path::Path;
use std::sync::{Arc, Mutex};
use zstd::stream::raw::Decoder;

use self::members::{GZIP, ZSTD, skippable};
use crate::{EXAMPLES_PER_KIND_MAX, Finding, Tally};

const CHUNK_BYTES: usize = 64 << 10;
const KEPT_BYTES_MAX: usize = 1 << 20;

/// Damage of the compression, for the tally of the reader above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) finding: Finding,
    pub(crate) offset: u64,
    pub(crate) detail: &'static str,
}

/// Notes that are not yet in a tally.
pub(crate) type Notes = Arc<Mutex<Taken>>;

/// The first notes, and the number of further notes: a file may consist of damage only.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    notes: Vec<Note>,
    more: BTreeMap<Finding, u64>,
}

impl Taken {
    pub(crate) fn add(&mut self, note: Note) {
        if self.notes.len() < EXAMPLES_PER_KIND_MAX {
            self.notes.push(note);
        } else {
            *self.more.entry(note.finding).or_default() += 1;
        }
    }

    /// The first note that is not yet in a tally.
    pub(crate) fn first(&self) -> Option<Note> {
        self.notes.first().copied()
    }

    /// Whether there are no notes that are not yet in a tally.
    pub(crate) fn is_empty(&self) -> bool {
        self.notes.is_empty()
    }

    /// Moves all notes into a tally.
    pub(crate) fn drain(&mut self, tally: &mut Tally, path: &Path) {
        for note in self.notes.drain(..) {
            tally.damage(note.finding, path, note.offset, note.detail);
        }
        for (finding, count) in std::mem::take(&mut self.more) {
            tally.count_many(finding, count);
        }
    }
}

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
    /// The buffer into which a member is decoded, piece by piece.
    piece: Box<[u8]>,
    out: Vec<u8>,
    start: usize,
    /// Position in the text of `out[start]`.
    position: u64,
    /// Position in the text and offset in the file of the members that hold `out`, rising.
    members: VecDeque<(u64, u64)>,
    /// Positions in the text, rising, and whether the member before is broken, and not only cut off.
    breaks: VecDeque<(u64, bool)>,
    notes: Notes,
    /// Bytes of input that were looked at again after damage.
    looked_again: u64,
    /// Whether the file is in the blocked form of gzip (BGZF), whose members end anywhere in the text.
    is_blocked: bool,
}

impl Text {
    /// Text of a source. The first bytes decide the compression. `notes` get the damage of the container; the source
    /// may add to them.
    pub(crate) fn new(source: Box<dyn Read + Send>, notes: Notes) -> io::Result<Text> {
        let mut text = Text {
            source,
            coding: Coding::Plain,
            state: State::Between,
            input: Vec::new(),
            input_at: 0,
            input_offset: 0,
            member: 0,
            piece: vec![0; CHUNK_BYTES].into(),
            out: Vec::new(),
            start: 0,
            position: 0,
            members: VecDeque::new(),
            breaks: VecDeque::new(),
            notes,
            looked_again: 0,
            is_blocked: false,
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

    /// Offsets of the next byte: the file offset of its member, and the uncompressed bytes from the start of the
    /// member. For plain text, the file offset of the byte and 0. Forgets earlier members.
    pub(crate) fn offsets(&mut self) -> (u64, u64) {
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

    /// The position of the next byte in the text.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Whether a gzip member begins at the next byte, and the number of bytes up to the next member, as far as the text
    /// is decoded. Members of a blocked file and zstd frames do not end at lines, so that there are none. Forgets
    /// earlier members.
    fn member(&mut self) -> (bool, usize) {
        if self.is_blocked || !matches!(self.coding, Coding::Gzip { .. }) {
            return (false, usize::MAX);
        }
        let is_begun = self.offsets().1 == 0;
        let next = self.members.get(1).map(|&(position, _)| position - self.position);
        (is_begun, next.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(usize::MAX))
    }

    /// The next `len` bytes or more; fewer only before a break or the end.
    pub(crate) fn peek(&mut self, len: usize) -> io::Result<&[u8]> {
        while self.available() < len && self.open_ended() && self.more()? {}
        Ok(&self.out[self.start..self.start + self.available()])
    }

    /// Passes over a break at the current position. Returns whether there was one.
    pub(crate) fn resume(&mut self) -> bool {
        if self.at_break() {
            self.breaks.pop_front();
            return true;
        }
        false
    }

    /// Whether the text has a break at the current position.
    pub(crate) fn at_break(&self) -> bool {
        self.breaks.front().is_some_and(|&(at, _)| at == self.position)
    }

    /// Whether the text of [`Text::peek`] ends at damage of the container, and not at the end of the text.
    pub(crate) fn ends_at_break(&self) -> bool {
        !self.breaks.is_empty()
    }

    /// Whether a broken member ends within the next `len` bytes, as far as the text is decoded.
    pub(crate) fn breaks_within(&self, len: usize) -> bool {
        self.breaks.front().is_some_and(|&(at, is_broken)| is_broken && at <= self.position + len as u64)
    }

    /// Appends a line with its line feed; nothing at a break or the end. A line longer than `bytes_max` comes in
    /// pieces.
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

    /// Passes over `len` bytes; fewer only before a break or the end.
    pub(crate) fn skip(&mut self, mut len: u64) -> io::Result<u64> {
        let wanted = len;
        while len > 0 {
            let text = self.fill_buf()?.len();
            if text == 0 {
                break;
            }
            let bytes = text.min(usize::try_from(len).unwrap_or(usize::MAX));
            self.consume(bytes);
            len -= bytes as u64;
        }
        Ok(wanted - len)
    }

    fn available(&self) -> usize {
        let have = self.out.len() - self.start;
        match self.breaks.front() {
            Some((at, _)) => have.min(usize::try_from(at - self.position).unwrap_or(usize::MAX)),
            None => have,
        }
    }

    /// Whether more decoding can make more text available, because no break is in the way.
    fn open_ended(&self) -> bool {
        self.breaks.is_empty()
    }

    fn unread_input(&self) -> &[u8] {
        &self.input[self.input_at..]
    }

    /// Offset in the file of the next byte of input.
    fn next_input_offset(&self) -> u64 {
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

    /// Makes `len` bytes of input ready; `false` if the file ends earlier.
    fn need(&mut self, len: usize) -> io::Result<bool> {
        while self.unread_input().len() < len {
            if !self.refill()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Decodes some more text; `false` at the end of the file. Text that was not yet consumed is moved only when as
    /// much text was consumed. So text is moved at most twice, however much a caller peeks at.
    fn more(&mut self) -> io::Result<bool> {
        if self.start >= CHUNK_BYTES.max(self.out.len() / 2) || self.start == self.out.len() {
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

    fn note(&mut self, finding: Finding, offset: u64, detail: &'static str) {
        let end = self.text_end();
        if self.breaks.back().is_none_or(|&(at, _)| at != end) {
            self.breaks.push_back((end, finding == Finding::BadCompression));
        }
        if let Ok(mut notes) = self.notes.lock() {
            notes.add(Note { finding, offset, detail });
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

/// Whether a file with this beginning, of four bytes, is compressed.
pub(crate) fn is_compressed(head: &[u8]) -> bool {
    head.starts_with(&GZIP) || head.starts_with(&ZSTD) || skippable(head)
}

/// A text without visible breaks, for formats of lines, where damage can only damage a line.
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

/// As [`Lines`], for indexes: the end of a gzip member ends a line, too. The last line of a ZipNum block may lack its
/// line feed. Where a member ends inside a line, [`BufRead::fill_buf`] returns nothing once, as at an end, and goes on.
pub(crate) struct MemberLines {
    text: Text,
    /// The byte before the next one.
    last: u8,
    /// Whether the end of the line before the next byte was shown.
    is_ended: bool,
}

impl MemberLines {
    pub(crate) fn new(text: Text) -> Self {
        MemberLines { text, last: b'\n', is_ended: false }
    }
}

impl Read for MemberLines {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let len = self.fill_buf()?.read(bytes)?;
        self.consume(len);
        Ok(len)
    }
}

impl BufRead for MemberLines {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.text.fill_buf()?.is_empty() && self.text.resume() {}
        let (is_begun, bytes) = self.text.member();
        if is_begun && self.last != b'\n' && !self.is_ended {
            self.is_ended = true;
            return Ok(&[]);
        }
        let text = self.text.fill_buf()?;
        Ok(&text[..text.len().min(bytes)])
    }

    fn consume(&mut self, len: usize) {
        if let Some(&last) = len.checked_sub(1).and_then(|last| self.text.out.get(self.text.start + last)) {
            self.last = last;
            self.is_ended = false;
        }
        self.text.consume(len);
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
