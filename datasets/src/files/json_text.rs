//! Lines of JSON as a parser of JSON accepts them.
//!
//! Writers write bytes that are not UTF-8, mostly in URLs, and halves of surrogate pairs (`\ud800`). No parser accepts
//! either. Such a byte is percent-encoded, as in every URL of a crawl file ([`webstrata_url::spelt`]). Half of a pair
//! becomes `\ufffd`, as in URLs of browsers (WHATWG, scalar value strings). The halves are counted. All other bytes
//! stay unchanged, so broken JSON stays broken.
//!
//! Memory: a copy of a line that is changed. A stream ([`JsonStream`]) holds one buffer.

use std::borrow::Cow;
use std::io::{self, BufRead, Read};

use webstrata_url::spelt;

/// The description of halves of surrogate pairs, for messages.
pub(crate) const LONE_SURROGATES: &str = "a text has half of a surrogate pair, which is read as U+FFFD";

/// A line of JSON as text, and whether halves of surrogate pairs were replaced.
pub(crate) fn json_text(line: &[u8]) -> (Cow<'_, str>, bool) {
    let text = std::str::from_utf8(line);
    if let Ok(text) = text
        && !may_have_surrogates(line)
    {
        return (Cow::Borrowed(text), false);
    }
    let (mut out, mut has_lone) = (Vec::with_capacity(line.len() + 16), false);
    mend(line, true, &mut out, &mut has_lone);
    match text {
        Ok(text) if !has_lone => (Cow::Borrowed(text), false),
        // The copy is UTF-8 already.
        _ => (Cow::Owned(spelt(&out).into_owned()), has_lone),
    }
}

fn may_have_surrogates(line: &[u8]) -> bool {
    memchr::memmem::find_iter(line, b"\\u").any(|at| matches!(line.get(at + 2), Some(b'd' | b'D')))
}

/// JSON as a stream.
pub(crate) struct JsonStream<R> {
    input: R,
    /// Bytes that are changed already, and how many of them were read.
    out: Vec<u8>,
    read: usize,
    /// Bytes of the input that wait for the bytes after them.
    held: Vec<u8>,
    has_ended: bool,
    /// Whether halves of surrogate pairs were replaced.
    pub(crate) has_lone: bool,
}

/// The number of bytes that are read at once.
const READ_BYTES: usize = 64 << 10;

impl<R: Read> JsonStream<R> {
    pub(crate) fn new(input: R) -> Self {
        JsonStream { input, out: Vec::new(), read: 0, held: Vec::new(), has_ended: false, has_lone: false }
    }
}

impl<R: Read> Read for JsonStream<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let bytes = self.fill_buf()?.read(out)?;
        self.consume(bytes);
        Ok(bytes)
    }
}

impl<R: Read> BufRead for JsonStream<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.read == self.out.len() && !self.has_ended {
            let start = self.held.len();
            self.held.resize(start + READ_BYTES, 0);
            let bytes = self.input.read(&mut self.held[start..])?;
            self.held.truncate(start + bytes);
            self.has_ended = bytes == 0;
            self.out.clear();
            self.read = 0;
            let used = mend(&self.held, self.has_ended, &mut self.out, &mut self.has_lone);
            self.held.drain(..used);
        }
        Ok(&self.out[self.read..])
    }

    fn consume(&mut self, bytes: usize) {
        self.read += bytes;
    }
}

/// Appends changed JSON to `out`, and returns the number of bytes that were used. Only the last bytes of all are used
/// whatever follows them.
fn mend(text: &[u8], is_last: bool, out: &mut Vec<u8>, has_lone: &mut bool) -> usize {
    /// The bytes of `\ud83d`.
    const ESCAPE: usize = 6;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let plain = rest.iter().position(|&byte| byte == b'\\' || !byte.is_ascii()).unwrap_or(rest.len());
        out.extend_from_slice(&rest[..plain]);
        at += plain;
        let rest = &text[at..];
        match rest.first() {
            None => break,
            Some(b'\\') => {
                let wanted = match (rest.get(1), unit(rest)) {
                    (Some(b'u'), Some(0xd800..=0xdbff)) => 2 * ESCAPE,
                    (Some(b'u'), _) => ESCAPE,
                    _ => 2,
                };
                if rest.len() < wanted && !is_last {
                    break;
                }
                let used = match unit(rest) {
                    Some(0xd800..=0xdbff) if matches!(unit(&rest[ESCAPE..]), Some(0xdc00..=0xdfff)) => 2 * ESCAPE,
                    Some(0xd800..=0xdfff) => {
                        *has_lone = true;
                        out.extend_from_slice(b"\\ufffd");
                        at += ESCAPE;
                        continue;
                    }
                    _ if rest.get(1).is_some_and(u8::is_ascii) => 2,
                    _ => 1,
                };
                out.extend_from_slice(&rest[..used]);
                at += used;
            }
            Some(_) => {
                let end = rest.iter().position(u8::is_ascii).unwrap_or(rest.len());
                let end = if end == rest.len() && !is_last { end - cut_bytes(rest) } else { end };
                if end == 0 {
                    break;
                }
                out.extend_from_slice(spelt(&rest[..end]).as_bytes());
                at += end;
            }
        }
    }
    at
}

/// The code unit of an escape `\u....` at the beginning of a text.
fn unit(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |unit, &digit| Some(unit << 4 | char::from(digit).to_digit(16)?))
}

/// The number of bytes at the end of a text that may be the beginning of a character.
fn cut_bytes(text: &[u8]) -> usize {
    const LEAD: u8 = 0xc0;
    (1..=text.len().min(3)).find(|&back| text[text.len() - back] >= LEAD).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The bytes as a stream that comes in pieces of some bytes.
    fn streamed(bytes: &[u8], piece: usize) -> (Vec<u8>, bool) {
        struct Pieces<'a>(&'a [u8], usize);
        impl Read for Pieces<'_> {
            fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
                let bytes = self.1.min(out.len()).min(self.0.len());
                self.0.read(&mut out[..bytes])
            }
        }
        let (mut stream, mut all) = (JsonStream::new(Pieces(bytes, piece)), Vec::new());
        stream.read_to_end(&mut all).unwrap();
        (all, stream.has_lone)
    }

    #[test]
    fn what_no_parser_accepts_is_replaced() {
        for (line, text, has_lone) in [
            (&br#"{"a":"\u00e9\ud83d\ude00\\ud800\n"}"#[..], r#"{"a":"\u00e9\ud83d\ude00\\ud800\n"}"#, false),
            (br#"["\ud800"]"#, r#"["\ufffd"]"#, true),
            (br#"["\uD800x\uDc00\udbff"]"#, r#"["\ufffdx\ufffd\ufffd"]"#, true),
            (br#"["\ud83d\ud83d\ude00\ude00"]"#, r#"["\ufffd\ud83d\ude00\ufffd"]"#, true),
            (br#"["\\\ud800"]"#, r#"["\\\ufffd"]"#, true),
            (b"[\"/\xe9\xc3\xa9\xff\"]", "[\"/%E9é%FF\"]", false),
            (b"[\"\\\xe9\"]", "[\"\\%E9\"]", false),
            (b"\xed\xa0\x80\xf0\x9f\x98", "%ED%A0%80%F0%9F%98", false),
            (br#"["\ud8"#, r#"["\ud8"#, false),
            (br#"["\ud83d\u"#, r#"["\ufffd\u"#, true),
            (b"\\", "\\", false),
            (b"", "", false),
        ] {
            let (found, lone) = json_text(line);
            assert_eq!((&*found, lone), (text, has_lone));
            assert_eq!(matches!(found, Cow::Borrowed(_)), found.as_bytes() == line);
            for piece in 1..10 {
                assert_eq!(streamed(line, piece), (text.as_bytes().to_vec(), has_lone), "{text} {piece}");
            }
        }
    }

    /// Bytes that change the meaning of the bytes around them.
    const PIECES: &[u8] = b"\\\\\\uudd8c0e\"\xc3\xa9\xe9\xf0\x9f\x98\x80";

    proptest! {
        #[test]
        fn a_stream_is_what_the_line_is(
            line in prop::collection::vec(prop::sample::select(PIECES), 0..40),
            piece in 1..8usize,
        ) {
            let (text, lone) = json_text(&line);
            prop_assert_eq!(streamed(&line, piece), (text.as_bytes().to_vec(), lone));
        }
    }
}
