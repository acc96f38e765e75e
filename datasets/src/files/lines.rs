//! Reads the lines of a text into one buffer, with the offset of each line.
//!
//! Memory: the longest line, at most [`LINE_BYTES_MAX`]. There are three ways to read a longer line:
//!
//! - [`Lines::read`] counts the line as damage and skips the line;
//! - [`Lines::read_words`] returns the line in pieces that end between words;
//! - [`Lines::read_or_begin`] returns the line as a stream.

use crate::files::long_line::LongLine;
use crate::{Error, Finding, Tally};
use std::io::{BufRead, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// The longest line that is held: longer than any spelling of a URL that is kept.
pub(crate) const LINE_BYTES_MAX: usize = 16 << 20;

pub(crate) struct Lines {
    text: Box<dyn BufRead + Send>,
    pub(crate) path: PathBuf,
    line: Vec<u8>,
    /// The offsets in the text of the line at hand, and of the byte after it.
    pub(crate) start: u64,
    end: u64,
    line_bytes_max: usize,
    /// Whether the line at hand goes on in the text.
    is_open: bool,
    /// The bytes of the line at hand that were handed out as words.
    used: usize,
}

impl Lines {
    pub(crate) fn new(text: Box<dyn BufRead + Send>, path: &Path) -> Self {
        let line = Vec::new();
        let path = path.to_owned();
        Lines { text, path, line, start: 0, end: 0, line_bytes_max: LINE_BYTES_MAX, is_open: false, used: 0 }
    }

    /// Reads the next line. Returns `false` at the end of the text, and also where the compression is broken.
    pub(crate) fn read(&mut self, tally: &mut Tally) -> Result<bool, Error> {
        while self.read_or_begin(tally)? {
            if !self.is_open {
                return Ok(true);
            }
            let skipped = self.text.skip_until(b'\n');
            self.is_open = false;
            let bytes = self.line.len() as u64 + self.held_to(skipped.map(|bytes| bytes as u64), tally)?;
            tally.damage(Finding::BadLength, &self.path, self.start, format!("the line is too long: {bytes} bytes"));
        }
        Ok(false)
    }

    /// Reads the next line, or the beginning of a line that is too long to hold. After such a beginning, the caller
    /// must call [`Lines::rest`] before the next line. Returns `false` at the end.
    pub(crate) fn read_or_begin(&mut self, tally: &mut Tally) -> Result<bool, Error> {
        self.line.clear();
        self.used = 0;
        self.start = self.end;
        self.is_open = false;
        self.fill(tally)
    }

    /// Whether the line at hand is the beginning of a longer line.
    pub(crate) fn is_begun(&self) -> bool {
        self.is_open
    }

    /// Lets `read` read the line that was begun as a stream, and passes over the rest of the line.
    pub(crate) fn rest<T>(&mut self, tally: &mut Tally, read: impl FnOnce(&mut LongLine<'_>) -> T) -> Result<T, Error> {
        let held = std::mem::take(&mut self.line);
        let mut long = LongLine::new(if self.start == 0 { without_mark(&held) } else { &held }, &mut self.text);
        let done = read(&mut long);
        let skipped = long.skip().map(|()| long.read);
        self.line = held;
        self.is_open = false;
        self.held_to(skipped, tally)?;
        Ok(done)
    }

    /// As [`Lines::read`]. A line that is too long to hold comes in pieces of whole words. Returns whether the piece
    /// continues the line of the piece before, or `None` at the end.
    pub(crate) fn read_words(&mut self, tally: &mut Tally) -> Result<Option<bool>, Error> {
        let goes_on = self.is_open;
        if goes_on {
            self.line.drain(..self.used);
            self.is_open = false;
            self.fill(tally)?;
        } else if !self.read_or_begin(tally)? {
            return Ok(None);
        }
        self.used = self.line.len();
        if self.is_open {
            match self.line.iter().rposition(|byte| matches!(byte, b' ' | b'\t')) {
                Some(space) if space > 0 => self.used = space,
                // The word is longer than any URL that is kept, and stays so when its end is skipped.
                _ => self.skip_word(tally)?,
            }
        }
        Ok(Some(goes_on))
    }

    fn skip_word(&mut self, tally: &mut Tally) -> Result<(), Error> {
        loop {
            let text = match self.text.fill_buf() {
                Ok(text) => text,
                Err(error) => return self.held_to(Err(error), tally).map(drop),
            };
            let end = text.iter().position(u8::is_ascii_whitespace);
            let skipped = end.unwrap_or(text.len());
            let ended = text.is_empty() || end.is_some();
            self.text.consume(skipped);
            self.end += skipped as u64;
            if ended {
                return Ok(());
            }
        }
    }

    /// Extends the line at hand until it is whole or too long.
    fn fill(&mut self, tally: &mut Tally) -> Result<bool, Error> {
        let bytes_left = (self.line_bytes_max + 1).saturating_sub(self.line.len()) as u64;
        let read = self.text.by_ref().take(bytes_left).read_until(b'\n', &mut self.line).map(|bytes| bytes as u64);
        let failed = read.is_err();
        let bytes = self.held_to(read, tally)?;
        if failed {
            // The text before the break is not a whole line.
            self.line.clear();
            return Ok(false);
        }
        self.is_open = bytes == bytes_left && !self.line.ends_with(b"\n");
        Ok(!self.line.is_empty())
    }

    /// Counts bytes that were read. A break in the compression is damage and not an error.
    fn held_to(&mut self, read: std::io::Result<u64>, tally: &mut Tally) -> Result<u64, Error> {
        match read {
            Ok(bytes) => {
                self.end += bytes;
                Ok(bytes)
            }
            Err(error) => {
                let Some(finding) = broken(&error) else { return Err(Error::io(&self.path, error)) };
                tally.damage(finding, &self.path, self.end, error.to_string());
                Ok(0)
            }
        }
    }

    /// The line without its end, and without a byte order mark at the beginning of the text.
    pub(crate) fn line(&self) -> &[u8] {
        let line = if self.used > 0 { &self.line[..self.used] } else { &self.line };
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if self.start == 0 { without_mark(line) } else { line }
    }
}

/// A line without a byte order mark.
fn without_mark(line: &[u8]) -> &[u8] {
    line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line)
}

/// The finding for an error that damaged compression causes; `None` for an error of reading.
pub(crate) fn broken(error: &std::io::Error) -> Option<Finding> {
    match error.kind() {
        ErrorKind::UnexpectedEof => Some(Finding::Truncated),
        ErrorKind::InvalidData | ErrorKind::InvalidInput => Some(Finding::BadCompression),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufReader, Cursor};

    #[test]
    fn lines_and_their_places() {
        let text = Cursor::new("\u{feff}a\r\n\nlong line\nb");
        let mut lines = Lines::new(Box::new(BufReader::with_capacity(2, text)), Path::new("x"));
        lines.line_bytes_max = 6;
        let (mut tally, mut found) = (Tally::default(), Vec::new());
        while lines.read(&mut tally).unwrap() {
            found.push((lines.start, String::from_utf8(lines.line().to_vec()).unwrap()));
        }
        assert_eq!(found, [(0, "a".to_owned()), (6, String::new()), (17, "b".to_owned())]);
        assert_eq!((tally.of(Finding::BadLength), tally.examples()[0].offset), (1, 7));
    }

    #[test]
    fn broken_compression_ends_the_text() {
        let mut whole = Vec::new();
        let text: String = (0..200_000).map(|n: u64| format!("{}\n", n * n)).collect();
        flate2::read::GzEncoder::new(text.as_bytes(), flate2::Compression::fast()).read_to_end(&mut whole).unwrap();
        for (bytes, finding) in [
            (whole[..whole.len() / 2].to_vec(), Finding::Truncated),
            ([&whole[..whole.len() / 2], &[0xff; 500]].concat(), Finding::BadCompression),
        ] {
            let decoder = flate2::read::MultiGzDecoder::new(Cursor::new(bytes));
            let mut lines = Lines::new(Box::new(BufReader::new(decoder)), Path::new("x"));
            let (mut tally, mut count) = (Tally::default(), 0);
            while lines.read(&mut tally).unwrap() {
                count += 1;
            }
            assert!(count > 100, "{finding:?} {count}");
            assert_eq!((tally.of(finding), tally.damaged()), (1, 1));
        }
    }
}
