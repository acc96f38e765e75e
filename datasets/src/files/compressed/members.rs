//! Decodes one compressed member after the other, and finds the next member after a broken one.
//!
//! gzip: this module parses the header, inflates the raw data and compares the checksum, so that one decoder serves all
//! members. zstd: frames and skippable frames. The first skippable frame may hold a dictionary.

use flate2::{FlushDecompress, Status};
use memchr::memmem;
use std::io::{self, Read};
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use super::{Coding, KEPT_BYTES_MAX, State, Text};
use crate::Finding;

const DICTIONARY_BYTES_MAX: usize = 16 << 20;
const ZSTD_STEP_BYTES: usize = 4 << 10;
/// The largest window that the decoder takes.
const ZSTD_WINDOW_BYTES_MAX: u64 = 128 << 20;
/// The message about a frame with a larger window.
const LARGE_WINDOW: &str =
    "the zstd frame needs a window of more than 128 MiB; decompress it with zstd --long=31 -d, or compress it again";
pub(super) const GZIP: [u8; 2] = [0x1f, 0x8b];
pub(super) const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

impl Text {
    /// Between members: begins the next member.
    pub(super) fn begin(&mut self) -> io::Result<()> {
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
                let (len, looked) = self.gzip_header()?;
                if let Some(len) = len {
                    self.is_blocked |= is_block(self.unread_input());
                    self.input_at += len;
                    if let Coding::Gzip { inflate, crc } = &mut self.coding {
                        inflate.reset(false);
                        crc.reset();
                    }
                } else {
                    self.broken("invalid gzip header", looked);
                }
            }
            Coding::Zstd { .. } if skippable(head) => self.skippable_frame()?,
            Coding::Zstd { decoder, begun } if head.starts_with(&ZSTD) => {
                decoder.reinit()?;
                *begun = true;
                self.enter();
            }
            _ => {
                self.note(Finding::BadCompression, self.next_input_offset(), "expected a compressed member");
                self.state = State::Resync;
            }
        }
        Ok(())
    }

    fn enter(&mut self) {
        self.member = self.next_input_offset();
        let position = self.text_end();
        // If consecutive members have no text, only the last one counts.
        if self.members.back().is_some_and(|last| last.0 == position) {
            self.members.pop_back();
        }
        self.members.push_back((position, self.member));
        self.state = State::Inside;
    }

    /// The length of the gzip header at hand (`None` if it is invalid), and the number of bytes that were looked at.
    fn gzip_header(&mut self) -> io::Result<(Option<usize>, usize)> {
        let mut wanted = 10;
        loop {
            let whole = self.need(wanted)?;
            let head = self.unread_input();
            let head = &head[..head.len().min(wanted)];
            match gzip_header_len(head) {
                HeaderLen::Bytes(len) => return Ok((Some(len), len)),
                HeaderLen::Bad => return Ok((None, 10)),
                HeaderLen::More if !whole || wanted > KEPT_BYTES_MAX => return Ok((None, head.len())),
                HeaderLen::More => wanted *= 4,
            }
        }
    }

    /// Passes over a zstd frame without text. The first frame of a `.warc.zst` may hold the dictionary.
    fn skippable_frame(&mut self) -> io::Result<()> {
        self.need(8)?;
        let head = self.unread_input();
        let dictionary = head[0] == 0x5d;
        let Some(len) = head.get(4..8).and_then(|len| len.try_into().ok()).map(u32::from_le_bytes) else {
            self.note(Finding::Truncated, self.next_input_offset(), "the file ends inside a zstd frame header");
            self.state = State::End;
            return Ok(());
        };
        let first = matches!(self.coding, Coding::Zstd { begun: false, .. });
        let frame_offset = self.next_input_offset();
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
                _ => {
                    // Only the first frame can be a dictionary. Otherwise, a file of such frames would unpack 16 MiB
                    // for each.
                    if let Coding::Zstd { begun, .. } = &mut self.coding {
                        *begun = true;
                    }
                    self.note(Finding::BadCompression, frame_offset, "invalid zstd dictionary");
                }
            }
            self.input_at = self.input.len().min(self.input_at + len);
            return Ok(());
        }
        let mut left = len;
        while left > 0 {
            if !self.need(1)? {
                self.note(Finding::Truncated, frame_offset, "the file ends inside a zstd frame");
                break;
            }
            let bytes = left.min(self.unread_input().len());
            self.input_at += bytes;
            left -= bytes;
        }
        Ok(())
    }

    /// Inside a member: decodes a piece of the member.
    pub(super) fn decode(&mut self) -> io::Result<()> {
        let more = !self.unread_input().is_empty() || self.refill()?;
        let input = &self.input[self.input_at..];
        match &mut self.coding {
            Coding::Plain => {
                self.out.extend_from_slice(input);
                self.input_at = self.input.len();
                if !more {
                    self.state = State::End;
                }
            }
            Coding::Gzip { inflate, crc } => {
                let (taken, made) = (inflate.total_in(), inflate.total_out());
                let status = inflate.decompress(input, &mut self.piece, FlushDecompress::None);
                let taken = usize::try_from(inflate.total_in() - taken).unwrap_or(0);
                let made = usize::try_from(inflate.total_out() - made).unwrap_or(0);
                self.input_at += taken;
                self.out.extend_from_slice(&self.piece[..made]);
                crc.update(&self.piece[..made]);
                let sums = (crc.sum(), crc.amount());
                match status {
                    Ok(Status::StreamEnd) => self.gzip_trailer(sums)?,
                    Err(_) => self.broken("invalid deflate data", 0),
                    Ok(_) if !more && taken == 0 && made == 0 => self.cut(),
                    Ok(_) => {}
                }
            }
            Coding::Zstd { decoder, .. } => {
                // On failure the decoder does not say how much it read, so each call gets a small piece of input.
                let step = input.len().min(ZSTD_STEP_BYTES);
                let mut from = InBuffer::around(&input[..step]);
                let mut to = OutBuffer::around(&mut self.piece[..]);
                let status = decoder.run(&mut from, &mut to);
                let (taken, made) = (from.pos(), to.pos());
                self.input_at += taken;
                self.out.extend_from_slice(&self.piece[..made]);
                match status {
                    Ok(0) => self.state = State::Between,
                    Err(_) if self.needs_large_window() => self.broken(LARGE_WINDOW, step),
                    Err(_) => self.broken("invalid zstd data", step),
                    Ok(_) if !more && taken == 0 && made == 0 => self.cut(),
                    Ok(_) => {}
                }
            }
        }
        Ok(())
    }

    /// Whether the current zstd frame needs more memory than the decoder takes.
    fn needs_large_window(&self) -> bool {
        let member = self.member.checked_sub(self.input_offset).and_then(|at| usize::try_from(at).ok());
        let frame = member.and_then(|at| self.input.get(at..));
        frame.and_then(zstd_window).is_some_and(|bytes| bytes > ZSTD_WINDOW_BYTES_MAX)
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
            self.broken("wrong gzip checksum", 0);
        }
        Ok(())
    }

    /// The file ends inside a member.
    fn cut(&mut self) {
        self.note(Finding::Truncated, self.member, "the file ends inside a compressed member");
        self.state = State::End;
    }

    /// The current member is broken; `ahead` bytes of unread input were looked at.
    ///
    /// Looks for the next member from the second byte of the broken member on, if this byte is still in memory: the
    /// decoded input may contain the next members. In a file of nested headers each byte would be decoded again and
    /// again. The total of bytes that are read again is therefore limited to the bytes of the file so far; beyond the
    /// limit, the search continues from the current offset.
    fn broken(&mut self, detail: &'static str, ahead: usize) {
        self.note(Finding::BadCompression, self.member, detail);
        let reached = self.next_input_offset() + ahead as u64;
        let looked_again = self.looked_again + (reached - self.member);
        if self.member < self.input_offset || looked_again > reached + KEPT_BYTES_MAX as u64 {
            self.input_at = self.input.len().min(self.input_at + ahead.max(1));
        } else {
            self.looked_again = looked_again;
            self.input_at = usize::try_from(self.member + 1 - self.input_offset).unwrap_or(self.input_at);
        }
        self.state = State::Resync;
    }

    /// Looks for the next plausible member header.
    pub(super) fn resync(&mut self) -> io::Result<()> {
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
}

/// The window of a zstd frame, in bytes (RFC 8878, 3.1.1.1.2); `None` if the frame names only the size of its text.
fn zstd_window(frame: &[u8]) -> Option<u64> {
    let (descriptor, window) = (frame.get(4)?, frame.get(5)?);
    if descriptor & 0x20 != 0 {
        return None;
    }
    let base = 1_u64 << (10 + (window >> 3));
    Some(base + base / 8 * u64::from(window & 7))
}

/// Whether a zstd frame without text begins here.
pub(super) fn skippable(head: &[u8]) -> bool {
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

/// Whether a gzip header has the field `BC` of the blocked form (SAM specification, 4.1) as its first extra field.
fn is_block(header: &[u8]) -> bool {
    header.get(3).is_some_and(|flags| flags & 4 != 0) && header.get(12..14) == Some(b"BC")
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

#[cfg(test)]
mod tests {
    use super::super::*;
    use std::io::Write;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut coder = flate2::GzBuilder::new().filename("name").write(Vec::new(), flate2::Compression::fast());
        coder.write_all(text).unwrap();
        coder.finish().unwrap()
    }

    fn read(bytes: Vec<u8>) -> (Vec<u8>, Vec<Note>) {
        let notes = Notes::default();
        let text = Text::new(Box::new(io::Cursor::new(bytes)), Notes::clone(&notes)).unwrap();
        let mut all = Vec::new();
        Lines(text).read_to_end(&mut all).unwrap();
        let notes = notes.lock().unwrap().notes.clone();
        (all, notes)
    }

    #[test]
    fn a_window_that_is_too_large_is_named() {
        let mut coder = zstd::Encoder::new(Vec::new(), 1).unwrap();
        coder.window_log(30).unwrap();
        coder.write_all(b"some text").unwrap();
        let (text, notes) = read(coder.finish().unwrap());
        assert_eq!((text.len(), notes.len()), (0, 1));
        assert_eq!((notes[0].finding, notes[0].detail), (Finding::BadCompression, super::LARGE_WINDOW));
        // A frame with a window that fits, and with wrong data.
        let mut bytes = zstd::encode_all(&b"one two three four".repeat(100)[..], 1).unwrap();
        bytes.truncate(12);
        bytes.extend([0xff; 40]);
        assert!(read(bytes).1.iter().all(|note| note.detail != super::LARGE_WINDOW));
    }

    #[test]
    fn members_padding_and_plain_text() {
        let mut bytes = gzip(b"one ");
        bytes.extend(gzip(&b"two ".repeat(100_000)));
        bytes.extend([0; 100]);
        let (text, notes) = read(bytes);
        assert_eq!((text.len(), notes.len()), (400_004, 0));
        assert_eq!(read(b"plain".to_vec()), (b"plain".to_vec(), vec![]));
        assert_eq!(read(Vec::new()), (Vec::new(), vec![]));
        let mut bytes = zstd::encode_all(&b"one "[..], 1).unwrap();
        bytes.extend([0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]);
        bytes.extend(zstd::encode_all(&b"two"[..], 1).unwrap());
        assert_eq!(read(bytes), (b"one two".to_vec(), vec![]));
    }

    #[test]
    fn damage_costs_one_member_and_has_a_place() {
        let parts = [gzip(b"one "), gzip(b"two "), gzip(b"three")];
        let mut bytes = parts.concat();
        let second = parts[0].len();
        let checksum = second + parts[1].len() - 8;
        bytes[checksum] ^= 1;
        let (text, notes) = read(bytes);
        assert_eq!(text, b"one two three");
        let note = Note { finding: Finding::BadCompression, offset: second as u64, detail: "wrong gzip checksum" };
        assert_eq!(notes, [note]);

        let mut bytes = parts.concat();
        bytes.splice(second..second, *b"garbage");
        let (text, notes) = read(bytes);
        assert_eq!((&text[..], notes[0].offset, notes.len()), (&b"one two three"[..], second as u64, 1));

        let mut bytes = parts.concat();
        bytes.truncate(bytes.len() - 3);
        let (text, notes) = read(bytes);
        assert_eq!((&text[..], notes[0].finding), (&b"one two three"[..], Finding::Truncated));

        let parts = [b"one ", b"two "].map(|text| zstd::encode_all(&text[..], 1).unwrap());
        let mut bytes = parts.concat();
        bytes[5] = 0xff;
        let (text, notes) = read(bytes);
        assert!(text.ends_with(b"two ") && notes[0].finding == Finding::BadCompression);
    }

    #[test]
    fn breaks_stop_a_record_and_places_name_the_member() {
        let mut first = gzip(b"one ");
        let len = first.len();
        first[len - 1] ^= 1;
        let mut text = Text::new(Box::new(io::Cursor::new([first, gzip(b"two ")].concat())), Notes::default()).unwrap();
        assert_eq!(text.offsets(), (0, 0));
        assert_eq!(text.peek(100).unwrap(), b"one ");
        assert!(text.ends_at_break());
        assert_eq!((text.skip(100).unwrap(), text.at_break()), (4, true));
        assert!(text.resume() && !text.resume());
        assert_eq!(text.peek(100).unwrap(), b"two ");
        assert_eq!(text.offsets(), (len as u64, 0));
        text.consume(2);
        assert_eq!(text.offsets(), (len as u64, 2));
    }
    #[test]
    fn members_end_lines_of_indexes_only() {
        let lines = |bytes: Vec<u8>| {
            let text = Text::new(Box::new(io::Cursor::new(bytes)), Notes::default()).unwrap();
            let mut lines = crate::files::lines::Lines::new(Box::new(MemberLines::new(text)), Path::new("x"));
            let (mut tally, mut found) = (Tally::default(), Vec::new());
            while lines.read(&mut tally).unwrap() {
                found.push((lines.start, String::from_utf8(lines.line().to_vec()).unwrap()));
            }
            assert_eq!(tally, Tally::default());
            found
        };
        let members = [&b"one\ntwo"[..], b"", b"three\n", b"four\n\n", b"five", b""].map(gzip).concat();
        let expected = [(0, "one"), (4, "two"), (7, "three"), (13, "four"), (18, ""), (19, "five")];
        assert_eq!(lines(members), expected.map(|(start, line)| (start, line.to_owned())));
        // A member that is longer than the buffer, and lines that go on in the next piece.
        let long = "x".repeat(3 * CHUNK_BYTES);
        let found = lines([gzip(long.as_bytes()), gzip(b"y")].concat());
        assert_eq!(found, [(0, long.clone()), (long.len() as u64, "y".to_owned())]);
        // Blocks and frames end anywhere.
        let block = |text: &[u8]| {
            let mut coder = flate2::GzBuilder::new()
                .extra(&b"BC\x02\x00\x00\x00"[..])
                .write(Vec::new(), flate2::Compression::fast());
            coder.write_all(text).unwrap();
            coder.finish().unwrap()
        };
        let one = [(0, "one two".to_owned())];
        assert_eq!(lines([block(b"one "), block(b"two")].concat()), one);
        assert_eq!(lines([&b"one "[..], b"two"].map(|text| zstd::encode_all(text, 1).unwrap()).concat()), one);
        assert_eq!(lines(b"one two".to_vec()), one);
    }
}
