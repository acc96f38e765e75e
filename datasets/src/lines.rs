//! The lines of a text, with the place of each, into one buffer.
//!
//! Memory: the longest line, at most [`LINE_BYTES_MAX`]; a longer one is passed over as damage.

use crate::{Error, Finding, Tally};
use std::io::{BufRead, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Longest line that is read: a page of a million links has one of 64 MiB.
pub(crate) const LINE_BYTES_MAX: usize = 256 << 20;

pub(crate) struct Lines {
    text: Box<dyn BufRead + Send>,
    pub(crate) path: PathBuf,
    line: Vec<u8>,
    /// Offset in the text of the line held, and of the byte after it.
    pub(crate) start: u64,
    end: u64,
    line_bytes_max: usize,
}

impl Lines {
    pub(crate) fn new(text: Box<dyn BufRead + Send>, path: &Path) -> Self {
        let line = Vec::new();
        Lines { text, path: path.to_owned(), line, start: 0, end: 0, line_bytes_max: LINE_BYTES_MAX }
    }

    /// Reads the next line; `false` at the end of the text, which a break in the compression also is.
    pub(crate) fn read(&mut self, tally: &mut Tally) -> Result<bool, Error> {
        loop {
            self.line.clear();
            self.start = self.end;
            match self.read_raw() {
                Ok(0) => return Ok(false),
                Ok(bytes) if bytes <= self.line_bytes_max as u64 => return Ok(true),
                Ok(bytes) => {
                    tally.damage(Finding::BadLength, &self.path, self.start, format!("a line of {bytes} bytes"));
                }
                Err(error) => {
                    let Some(finding) = broken(&error) else { return Err(Error::io(&self.path, error)) };
                    tally.damage(finding, &self.path, self.end, error.to_string());
                    // What stands before the break is no whole line.
                    self.line.clear();
                    return Ok(false);
                }
            }
        }
    }

    /// Bytes of the next line with its end, 0 at the end of the text.
    fn read_raw(&mut self) -> std::io::Result<u64> {
        let room = self.line_bytes_max as u64 + 1;
        let mut bytes = self.text.by_ref().take(room).read_until(b'\n', &mut self.line)? as u64;
        self.end += bytes;
        if bytes == room && !self.line.ends_with(b"\n") {
            let rest = self.text.skip_until(b'\n')? as u64;
            self.end += rest;
            bytes += rest;
        }
        Ok(bytes)
    }

    /// The line without its end, and without a byte order mark at the beginning of the text.
    pub(crate) fn line(&self) -> &[u8] {
        let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if self.start == 0 { line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line) } else { line }
    }
}

/// What broke where the fault lies in the text and not in reading it: the compression below it.
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
