//! The body of an HTTP message without its codings, and whether the body is whole.
//!
//! Reads the bytes after the header. Undoes `Transfer-Encoding`, then `Content-Encoding`, each from the last coding to
//! the first one. Crawlers often undo a coding and keep the field, so that a coding only counts if it is there:
//!
//! | body | meaning |
//! |---|---|
//! | not in chunks, although the header says so | whole, and no damage: many tools join chunks and keep the field |
//! | not coded, although the header says so | whole, and damage: [`Finding::BadContentEncoding`] |
//! | a chunk or coded bytes are broken, or end early | cut ([`Cut::Damaged`]): the part before the fault, and damage |
//! | in a coding that is not read here | cut ([`Cut::Encoding`]): no bytes, and damage |
//! | longer than [`BODY_BYTES_MAX`] without its codings | cut ([`Cut::Truncated`]): the first bytes, and damage |
//! | fewer bytes than `Content-Length`, without transfer codings | cut ([`Cut::Short`]) |
//! | the header before it has no end | cut ([`Cut::Short`]): no bytes |
//!
//! `Content-Length` counts the coded bytes. If a content coding was undone before the body was stored, the number says
//! nothing, except of an empty body. If there are several numbers, the least one counts.
//!
//! A message that shows its own end is whole even if its record ends early: by the last chunk, by the end of a coding,
//! or by `Content-Length`.
//!
//! Memory: at most [`BODY_BYTES_MAX`] of decoded body.

use std::borrow::Cow;
use std::io::Read;

use super::looks_like_html;
use crate::formats::record::{BODY_BYTES_MAX, Fields, RecordSite};
use crate::{Cut, Finding};

/// The most codings that are undone.
const CODINGS_MAX: usize = 4;
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The body without transfer codings and content codings. Tells `site` whether the body is whole.
pub(crate) fn body<'a>(raw: &'a [u8], fields: &Fields, site: &mut RecordSite<'_>) -> Cow<'a, [u8]> {
    let mut body = Cow::Borrowed(raw);
    let transfer = codings(fields, "transfer-encoding");
    let (mut is_undone, mut shows_its_end) = (false, false);
    for coding in transfer.iter().rev() {
        if coding != "chunked" {
            _ = undo(coding, &mut body, site);
            continue;
        }
        match unchunk(&body) {
            Chunks::Absent => {}
            Chunks::Whole(joined) => {
                shows_its_end = true;
                body = Cow::Owned(joined);
            }
            Chunks::Broken(joined) => {
                site.damage(Finding::BadChunks, "a chunk is broken");
                site.cut(Cut::Damaged);
                body = Cow::Owned(joined);
            }
        }
    }
    for coding in codings(fields, "content-encoding").iter().rev() {
        match undo(coding, &mut body, site) {
            Undone::Whole => shows_its_end = true,
            Undone::Part => {}
            Undone::Before => is_undone = true,
        }
    }
    if let Some(bytes) = content_length(fields).filter(|_| transfer.is_empty()) {
        let is_there = raw.len() as u64 >= bytes;
        if !is_there && (!is_undone || raw.is_empty()) {
            site.cut(Cut::Short);
        }
        shows_its_end |= is_there && !is_undone;
    }
    if shows_its_end {
        site.shows_its_end();
    }
    body
}

/// The codings of all fields with this name, in their order, without those that change nothing.
fn codings(fields: &Fields, name: &str) -> Vec<String> {
    let mut codings = Vec::new();
    for value in fields.all(name) {
        let names = value.split(',').map(|name| name.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
        codings.extend(names.filter(|name| !matches!(&**name, "" | "identity" | "none" | "utf-8" | "utf8")));
    }
    if codings.len() > CODINGS_MAX {
        codings = vec![format!("{} codings", codings.len())];
    }
    codings
}

/// The number of bytes of the body by `Content-Length`.
pub(crate) fn content_length(fields: &Fields) -> Option<u64> {
    let values = fields.all("content-length");
    values.filter_map(|value| value.split(',').filter_map(|number| number.trim().parse().ok()).min()).min()
}

/// Whether a body in this coding can be read.
pub(crate) fn is_read(coding: &str) -> bool {
    matches!(
        &*coding.trim().to_ascii_lowercase(),
        "" | "identity" | "none" | "utf-8" | "utf8" | "chunked" | "gzip" | "x-gzip" | "deflate" | "br" | "zstd"
    )
}

/// The end of a coding.
enum Undone {
    /// The coded bytes end where their coding says.
    Whole,
    /// The body is empty, or a part of it was decoded.
    Part,
    /// The body did not have the coding.
    Before,
}

/// Undoes one coding.
fn undo(coding: &str, body: &mut Cow<'_, [u8]>, site: &mut RecordSite<'_>) -> Undone {
    if body.is_empty() {
        return Undone::Part;
    }
    let (decoded, reason) = match decode(coding, body) {
        Decoded::Whole(decoded) => {
            *body = Cow::Owned(decoded);
            return Undone::Whole;
        }
        Decoded::Broken(decoded) => (decoded, Cut::Damaged),
        Decoded::TooLong(decoded) => (decoded, Cut::Truncated),
        Decoded::NotRead => (Vec::new(), Cut::Encoding),
    };
    let is_plain = reason != Cut::Truncated && is_plain(body);
    let coding = coding.get(..40).unwrap_or(coding);
    let what = match reason {
        _ if is_plain => "the body is not in it",
        Cut::Truncated => &format!("only the first {} MiB of the text are read", BODY_BYTES_MAX >> 20),
        Cut::Encoding => "this coding is not read here",
        _ => "the data are broken or end early",
    };
    site.damage(Finding::BadContentEncoding, &format!("{coding}: {what}"));
    if is_plain {
        return Undone::Before;
    }
    site.cut(reason);
    *body = Cow::Owned(decoded);
    Undone::Part
}

/// Whether a body is a text, and so in no coding: it has no control characters (WHATWG MIME Sniffing 7). A short body
/// is a text only if it is UTF-8, because a few coded bytes may have no control character by chance.
fn is_plain(body: &[u8]) -> bool {
    const HEAD_BYTES: usize = 1024;
    const SURE_BYTES: usize = 256;
    if looks_like_html(body) || body.starts_with(b"\xff\xfe") || body.starts_with(b"\xfe\xff") {
        return true;
    }
    let head = &body[..body.len().min(HEAD_BYTES)];
    let is_control = |byte: &u8| matches!(byte, 0..=8 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f);
    let is_utf8 = || std::str::from_utf8(head).map_or_else(|error| error.error_len().is_none(), |_| true);
    !head.iter().any(is_control) && (head.len() >= SURE_BYTES || is_utf8())
}

enum Chunks {
    /// The body does not begin with a chunk.
    Absent,
    Whole(Vec<u8>),
    /// The joined chunks, and the bytes after the fault.
    Broken(Vec<u8>),
}

/// Joins chunks. Fields after the last chunk are left out.
fn unchunk(mut raw: &[u8]) -> Chunks {
    let mut whole: Option<Vec<u8>> = None;
    loop {
        let line = memchr::memchr(b'\n', &raw[..raw.len().min(4096)]);
        // The last line may lack its line feed.
        let is_end = line.is_none() && whole.is_some() && !raw.is_empty() && raw.iter().all(|&byte| byte == b'0');
        let size = line.and_then(|end| chunk_size(&raw[..end]));
        let (Some(end), Some(size)) = (line, size) else {
            let Some(mut whole) = whole else { return Chunks::Absent };
            if is_end {
                return Chunks::Whole(whole);
            }
            whole.extend_from_slice(raw);
            return Chunks::Broken(whole);
        };
        raw = &raw[end + 1..];
        let body = whole.get_or_insert_default();
        if size == 0 {
            return Chunks::Whole(std::mem::take(body)); // trailing fields may follow
        }
        body.extend_from_slice(&raw[..size.min(raw.len())]);
        if size >= raw.len() {
            return Chunks::Broken(std::mem::take(body));
        }
        raw = &raw[size..];
        raw = raw.strip_prefix(b"\r\n").or_else(|| raw.strip_prefix(b"\n")).unwrap_or(raw);
    }
}

fn chunk_size(line: &[u8]) -> Option<usize> {
    let size = line.split(|byte| *byte == b';').next()?.trim_ascii();
    if size.is_empty() || !size.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    usize::from_str_radix(std::str::from_utf8(size).ok()?, 16).ok()
}

enum Decoded {
    Whole(Vec<u8>),
    /// The bytes up to the fault.
    Broken(Vec<u8>),
    /// The first [`BODY_BYTES_MAX`] bytes.
    TooLong(Vec<u8>),
    /// The coding is not read.
    NotRead,
}

fn decode(coding: &str, body: &[u8]) -> Decoded {
    match coding {
        "gzip" | "x-gzip" => members(body, &GZIP, |member, bytes| {
            let mut decoder = flate2::bufread::GzDecoder::new(member);
            let is_good = fill(bytes, &mut decoder);
            is_good.then(|| decoder.into_inner())
        }),
        "zstd" => members(body, &ZSTD, |frame, bytes| {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(frame).ok()?.single_frame();
            let is_good = fill(bytes, &mut decoder);
            is_good.then(|| decoder.finish())
        }),
        "br" => once(brotli_decompressor::Decompressor::new(body, 4096)),
        "deflate" => match once(flate2::bufread::ZlibDecoder::new(body)) {
            Decoded::Broken(zlib) => match once(flate2::bufread::DeflateDecoder::new(body)) {
                Decoded::Broken(raw) => Decoded::Broken(if zlib.is_empty() { raw } else { zlib }),
                raw => raw,
            },
            zlib => zlib,
        },
        _ => Decoded::NotRead,
    }
}

/// Appends the bytes of a decoder, up to the limit. Returns whether there was no fault.
fn fill(bytes: &mut Vec<u8>, decoder: &mut impl Read) -> bool {
    let room = BODY_BYTES_MAX.saturating_sub(bytes.len());
    decoder.take(room as u64).read_to_end(bytes).is_ok()
}

/// Decodes a body that has one end.
fn once(mut decoder: impl Read) -> Decoded {
    let mut bytes = Vec::new();
    match fill(&mut bytes, &mut decoder) {
        _ if bytes.len() >= BODY_BYTES_MAX => Decoded::TooLong(bytes),
        true => Decoded::Whole(bytes),
        false => Decoded::Broken(bytes),
    }
}

/// Decodes members one after the other. `decode` appends the text of one, and returns the bytes after it unless it is
/// broken. Bytes after the last member do no harm: servers add line feeds and zeros.
fn members<'a>(
    mut rest: &'a [u8],
    magic: &[u8],
    decode: impl Fn(&'a [u8], &mut Vec<u8>) -> Option<&'a [u8]>,
) -> Decoded {
    let mut bytes = Vec::new();
    if !rest.starts_with(magic) {
        return Decoded::Broken(bytes);
    }
    while rest.starts_with(magic) {
        let after = decode(rest, &mut bytes);
        if bytes.len() >= BODY_BYTES_MAX {
            return Decoded::TooLong(bytes);
        }
        let Some(after) = after else { return Decoded::Broken(bytes) };
        rest = after;
    }
    Decoded::Whole(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tally;
    use std::io::Write;
    use std::path::Path;

    /// Undoes the codings of a body. Returns the body, why it is cut, and the tally.
    fn decoded(head: &str, raw: &[u8]) -> (Vec<u8>, Option<Cut>, Tally) {
        let mut tally = Tally::default();
        let mut fields = Fields::default();
        fields.read(head.as_bytes());
        let mut site = RecordSite::new(&mut tally, Path::new("test"), (0, 0));
        let body = body(raw, &fields, &mut site).into_owned();
        let cut = site.why_cut();
        (body, cut, tally)
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text).unwrap();
        gzip.finish().unwrap()
    }

    fn zlib(text: &[u8]) -> Vec<u8> {
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        zlib.write_all(text).unwrap();
        zlib.finish().unwrap()
    }

    #[test]
    fn chunks_good_broken_and_absent() {
        let head = "Transfer-Encoding: chunked";
        for good in [
            &b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: t\r\n\r\n"[..],
            b"3\r\nabc\r\n2\r\nde\r\n00000000\r\n\r\n",
            b"00000005\r\nabcde\r\n0\r\n\r\n\r",
            b"5\nabcde\n0",
        ] {
            let (body, cut, tally) = decoded(head, good);
            assert_eq!((&body[..], cut, tally.damaged()), (&b"abcde"[..], None, 0));
        }
        for plain in [&b"<html> not chunked\r\n"[..], b""] {
            let (body, cut, tally) = decoded(head, plain);
            assert_eq!((&body[..], cut, tally.damaged()), (plain, None, 0));
        }
        for cut_off in [&b"3\r\nabc\r\nff\r\nde"[..], b"3\r\nabc\r\n2\r\nde\r\n", b"3\r\nabc\r\n2\r\nde", b"8\r\nabcde"]
        {
            let (body, cut, tally) = decoded(head, cut_off);
            assert_eq!((&body[..], cut, tally.of(Finding::BadChunks)), (&b"abcde"[..], Some(Cut::Damaged), 1));
        }
    }

    #[test]
    fn codings_and_bodies_wrongly_flagged() {
        let text = b"<a href=x>".repeat(50);
        let (packed, deflated) = (gzip(&text), zlib(&text));
        let joined = [gzip(&text[..200]), gzip(&text[200..])].concat();
        let frames = [&text[..70], &text[70..]].map(|part| zstd::encode_all(part, 1).unwrap()).concat();
        let chunks = |bytes: &[u8]| [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n0\r\n\r\n"].concat();
        for (head, raw) in [
            ("Content-Encoding: gzip", packed.clone()),
            ("Content-Encoding: x-gzip, identity", packed.clone()),
            ("Content-Encoding: gzip", joined),
            ("Content-Encoding: gzip", [&packed[..], b"\0\0\r\n"].concat()),
            ("Content-Encoding: gzip, gzip", gzip(&packed)),
            ("Content-Encoding: gzip\r\nContent-Encoding: deflate", zlib(&packed)),
            ("Content-Encoding: deflate", deflated.clone()),
            ("Content-Encoding: deflate", deflated[2..deflated.len() - 4].to_vec()),
            ("Content-Encoding: zstd", frames),
            ("Transfer-Encoding: gzip, chunked", chunks(&packed)),
            ("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked", chunks(&packed)),
            ("Transfer-Encoding: chunked\r\nContent-Encoding: gzip", chunks(&packed)),
            ("Transfer-Encoding: gzip", packed.clone()),
            ("Content-Encoding: utf-8", text.clone()),
        ] {
            let (body, cut, tally) = decoded(head, &raw);
            assert_eq!((body, cut, tally), (text.clone(), None, Tally::default()), "{head}");
        }
        let words = "Words without a tag, then <a href=x>.".repeat(9).into_bytes();
        for name in ["gzip", "br", "deflate", "zstd", "nonsense"] {
            for plain in [&text, &words] {
                let (body, cut, tally) = decoded(&format!("Content-Encoding: {name}"), plain);
                assert_eq!((&body, cut, tally.of(Finding::BadContentEncoding)), (plain, None, 1), "{name}");
            }
        }
    }

    #[test]
    fn broken_and_unread_codings_cut_the_body() {
        let text: Vec<u8> = (0..500).flat_map(|at| format!("<a href=/{at}>").into_bytes()).collect();
        let (packed, deflated) = (gzip(&text), zlib(&text));
        let frame = zstd::encode_all(&text[..], 1).unwrap();
        let mut flipped = packed.clone();
        *flipped.last_mut().unwrap() ^= 1;
        let part = |bytes: &[u8]| bytes[..bytes.len() / 2].to_vec();
        for (head, raw, least) in [
            ("Content-Encoding: gzip", part(&packed), 100),
            ("Content-Encoding: gzip", packed[..packed.len() - 3].to_vec(), 100),
            ("Content-Encoding: gzip", flipped, 100),
            ("Content-Encoding: gzip", packed[..5].to_vec(), 0),
            ("Content-Encoding: deflate", part(&deflated), 100),
            ("Content-Encoding: zstd", part(&frame), 0),
            ("Transfer-Encoding: gzip", part(&packed), 100),
        ] {
            let (body, cut, tally) = decoded(head, &raw);
            assert!(text.starts_with(&body) && body.len() >= least, "{head}: {} bytes", body.len());
            assert_eq!((cut, tally.of(Finding::BadContentEncoding)), (Some(Cut::Damaged), 1), "{head}");
        }
        for head in ["Content-Encoding: sdch", "Transfer-Encoding: compress", "Content-Encoding: a, a, a, a, a"] {
            let (body, cut, tally) = decoded(head, &packed);
            assert_eq!((&body[..], cut), (&b""[..], Some(Cut::Encoding)), "{head}");
            assert_eq!(tally.of(Finding::BadContentEncoding), 1, "{head}");
        }
    }

    #[test]
    fn bodies_shorter_than_their_length() {
        let text = b"<a href=x>".repeat(50);
        let packed = gzip(&text);
        let short = Some(Cut::Short);
        for (head, raw, cut) in [
            ("Content-Length: 500", &text[..], None),
            ("Content-Length: 499", &text, None),
            ("Content-Length: 501", &text, short),
            ("Content-Length: 501, 501", &text, short),
            ("Content-Length: 501\r\nContent-Length: 500", &text, None),
            ("Content-Length: many", &text, None),
            ("Content-Length: 1", b"", short),
            ("Content-Length: 0", b"", None),
            ("Content-Length: 1\r\nContent-Encoding: gzip", b"", short),
            // Chunks and other transfer codings make the number void.
            ("Content-Length: 501\r\nTransfer-Encoding: chunked", &text, None),
            ("Content-Length: 501\r\nTransfer-Encoding: identity", &text, short),
            // The number counts coded bytes, which are gone.
            ("Content-Length: 501\r\nContent-Encoding: gzip", &text, None),
            ("Content-Length: 20\r\nContent-Encoding: gzip", &packed, None),
            // Both the length and the coding show the fault, and the least reason counts.
            ("Content-Length: 500\r\nContent-Encoding: gzip", &packed[..20], short),
        ] {
            assert_eq!(decoded(head, raw).1, cut, "{head}");
        }
    }
}
