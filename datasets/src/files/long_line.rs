//! A stream of a JSON line that is too long to hold in memory. No string in the stream is long.
//!
//! Reads the beginning of the line, which is in memory already, then the text up to the line feed. Writes the same
//! bytes, but cuts every string after [`STRING_BYTES_MAX`] bytes. A cut string is still longer than any URL that is
//! kept, so the consumer rejects the string as too long. Memory: none.

use std::io::{self, BufRead, Read};

/// The approximate limit of the bytes of a string as spelt: an escape takes six bytes for one.
pub(crate) const STRING_BYTES_MAX: usize = 8 * crate::url::reference::URL_BYTES_MAX;

/// A JSON line as a stream, with long strings cut.
pub(crate) struct LongLine<'a> {
    held: &'a [u8],
    text: &'a mut dyn BufRead,
    /// Bytes of the text that were read.
    pub(crate) read: u64,
    ended: bool,
    strings: Strings,
}

impl<'a> LongLine<'a> {
    pub(crate) fn new(held: &'a [u8], text: &'a mut dyn BufRead) -> Self {
        LongLine { held, text, read: 0, ended: false, strings: Strings::default() }
    }

    /// Passes over the rest of the line.
    pub(crate) fn skip(&mut self) -> io::Result<()> {
        self.held = &[];
        if !self.ended {
            self.ended = true;
            self.read += self.text.skip_until(b'\n')? as u64;
        }
        Ok(())
    }
}

impl Read for LongLine<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.held.is_empty() {
                let count = self.held.len().min(out.len());
                let (now, later) = self.held.split_at(count);
                self.held = later;
                let kept = self.strings.copy(now, out);
                if kept > 0 || count == 0 {
                    return Ok(kept);
                }
                continue;
            }
            if self.ended {
                return Ok(0);
            }
            let text = self.text.fill_buf()?;
            self.ended = text.is_empty();
            // Search only as far as there is room. Otherwise, small reads would search the same bytes again and again.
            let text = &text[..text.len().min(out.len())];
            let feed = memchr::memchr(b'\n', text);
            let count = feed.unwrap_or(text.len());
            self.ended |= feed.is_some();
            let kept = self.strings.copy(&text[..count], out);
            let consumed = count + usize::from(feed.is_some());
            self.text.consume(consumed);
            self.read += consumed as u64;
            if kept > 0 {
                return Ok(kept);
            }
        }
    }
}

/// The position of a stream in a JSON text.
#[derive(Default)]
struct Strings {
    inside: bool,
    /// The length of the string so far, in bytes.
    length: usize,
    /// Whether the rest of the string is left out.
    cutting: bool,
    /// How much of an escape is still to come.
    escape: Escape,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Escape {
    #[default]
    None,
    Begun,
    /// The number of digits to come, and whether this is the first half of a pair, which the second half must follow.
    Digits(u8, bool),
    /// The second half of a pair comes next.
    Paired,
}

impl Strings {
    /// Copies the bytes that are kept, and returns their number.
    fn copy(&mut self, from: &[u8], out: &mut [u8]) -> usize {
        let mut kept = 0;
        for &byte in from {
            if self.keeps(byte) {
                out[kept] = byte;
                kept += 1;
            }
        }
        kept
    }

    #[inline]
    fn keeps(&mut self, byte: u8) -> bool {
        if !self.inside {
            if byte == b'"' {
                *self = Strings { inside: true, ..Strings::default() };
            }
            return true;
        }
        let is_apart = matches!(self.escape, Escape::None) && byte & 0xc0 != 0x80;
        if is_apart && byte == b'"' {
            self.inside = false;
            return true;
        }
        // A string is cut between characters only.
        self.cutting |= is_apart && self.length >= STRING_BYTES_MAX;
        self.length += 1;
        self.escape = match (self.escape, byte) {
            (Escape::None | Escape::Paired, b'\\') => Escape::Begun,
            (Escape::Begun, b'u') => Escape::Digits(4, false),
            (Escape::Digits(4, _), b'd' | b'D') => Escape::Digits(3, true),
            (Escape::Digits(3, true), digit) => {
                Escape::Digits(2, matches!(digit, b'8' | b'9' | b'a'..=b'b' | b'A'..=b'B'))
            }
            (Escape::Digits(1, true), _) => Escape::Paired,
            (Escape::Digits(left @ 2.., pair), _) => Escape::Digits(left - 1, pair),
            _ => Escape::None,
        };
        !self.cutting
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufReader, Cursor};

    fn through(line: &str, held: usize) -> (String, u64, String) {
        let (held, rest) = line.as_bytes().split_at(held);
        let mut text = BufReader::with_capacity(7, Cursor::new([rest, b"\nnext"].concat()));
        let mut long = LongLine::new(held, &mut text);
        let mut out = String::new();
        long.read_to_string(&mut out).unwrap();
        let read = long.read;
        let mut next = String::new();
        text.read_to_string(&mut next).unwrap();
        (out, read, next)
    }

    #[test]
    fn a_line_with_short_strings_is_what_it_was() {
        let line = r#"{"a":["\"x\\","\u00e9é\ud83d\ude00"],"b":1}"#;
        for held in [0, 5, line.len()] {
            assert_eq!(through(line, held), (line.to_owned(), (line.len() - held) as u64 + 1, "next".to_owned()));
        }
    }

    #[test]
    fn long_strings_are_cut_between_characters() {
        for piece in ["x", "é", "\\\\", "\\\"", "\\u00e9", "\\ud83d\\ude00", "x\\ud83d\\ude00é"] {
            let line = format!("[\"{}\",\"y\"]", piece.repeat(STRING_BYTES_MAX / piece.len() + 1000));
            let (out, ..) = through(&line, 3);
            let texts: Vec<String> = serde_json::from_str(&out).unwrap();
            assert_eq!(texts[1], "y");
            assert!(
                texts[0].len() > crate::url::reference::URL_BYTES_MAX && out.len() < STRING_BYTES_MAX + 100,
                "{piece}"
            );
        }
    }

    #[test]
    fn the_rest_of_a_line_is_passed_over() {
        let mut text = Cursor::new(b"rest of it\nnext");
        let mut long = LongLine::new(b"held", &mut text);
        long.read_exact(&mut [0; 6]).unwrap();
        long.skip().unwrap();
        assert_eq!(long.read, 11);
        assert_eq!(text.position(), 11);
    }
}
