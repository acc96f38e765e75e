//! HTTP responses as crawlers store them: status line, header fields, transfer coding, content encoding.
//!
//! Reads the block of a record. Writes the status, the fields and the decoded body. The parser is tolerant and counts
//! two faults: a body that is not compressed although the header says so is kept unchanged, and a broken body is kept
//! up to the fault. A body without chunks is sound although the header says chunked: Webrecorder and other tools join
//! the chunks and keep the header field.
//!
//! Memory: at most [`BODY_BYTES_MAX`] of decoded body.

use std::borrow::Cow;
use std::io::Read;

use crate::Finding;
use crate::formats::record::{BODY_BYTES_MAX, Fields, RecordSite};

/// The status and the raw body of a block that begins like a response. Reads the header into `fields`.
pub(crate) fn response<'a>(block: &'a [u8], fields: &mut Fields) -> Option<(u16, &'a [u8])> {
    fields.clear();
    let block = block.trim_ascii_start();
    let end = memchr::memchr(b'\n', block).unwrap_or(block.len());
    let line = &block[..end];
    if !line.get(..4).is_some_and(|word| word.eq_ignore_ascii_case(b"HTTP") || word.eq_ignore_ascii_case(b"ICY ")) {
        return None;
    }
    let code = line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty()).nth(1);
    let code = code.and_then(|code| std::str::from_utf8(code).ok()).and_then(|code| code.parse().ok()).unwrap_or(0);
    let rest = &block[block.len().min(end + 1)..];
    let body = fields.read(rest);
    Some((code, &rest[body..]))
}

/// The body without transfer coding and content encoding.
pub(crate) fn body<'a>(raw: &'a [u8], fields: &Fields, site: &mut RecordSite<'_>) -> Cow<'a, [u8]> {
    let mut body = Cow::Borrowed(raw);
    let names = |value: &str| value.to_ascii_lowercase();
    if fields.get("transfer-encoding").is_some_and(|value| names(&value).contains("chunked"))
        && !raw.is_empty()
        && let (Some(whole), good) = unchunk(raw)
    {
        if !good {
            site.damage(Finding::BadChunks, "a chunk is broken");
        }
        body = Cow::Owned(whole);
    }
    let encodings = fields.get("content-encoding").map(|value| names(&value)).unwrap_or_default();
    for encoding in encodings.rsplit(',').map(str::trim).take(4) {
        if body.is_empty() || matches!(encoding, "" | "identity" | "none" | "utf-8" | "utf8") {
            continue;
        }
        let (decoded, good) = decode(encoding, &body);
        if !good {
            site.damage(Finding::BadContentEncoding, encoding.get(..40).unwrap_or(encoding));
        }
        if let Some(decoded) = decoded.filter(|_| good || !looks_like_html(&body)) {
            body = Cow::Owned(decoded);
        }
    }
    body
}

/// The joined chunks (empty if the body does not begin with a chunk), and whether all chunks were valid.
fn unchunk(mut raw: &[u8]) -> (Option<Vec<u8>>, bool) {
    let mut whole: Option<Vec<u8>> = None;
    loop {
        let line = memchr::memchr(b'\n', &raw[..raw.len().min(4096)]);
        let size = line.and_then(|end| chunk_size(&raw[..end]));
        let (Some(end), Some(size)) = (line, size) else {
            if let Some(whole) = &mut whole {
                whole.extend_from_slice(raw);
            }
            return (whole, false);
        };
        raw = &raw[end + 1..];
        let body = whole.get_or_insert_default();
        if size == 0 {
            return (whole, true); // trailing fields may follow
        }
        body.extend_from_slice(&raw[..size.min(raw.len())]);
        if size >= raw.len() {
            return (whole, size == raw.len());
        }
        raw = &raw[size..];
        raw = raw.strip_prefix(b"\r\n").or_else(|| raw.strip_prefix(b"\n")).unwrap_or(raw);
        if raw.is_empty() {
            return (whole, false);
        }
    }
}

fn chunk_size(line: &[u8]) -> Option<usize> {
    let size = line.split(|byte| *byte == b';').next()?.trim_ascii();
    if size.is_empty() || !size.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    usize::from_str_radix(std::str::from_utf8(size).ok()?, 16).ok()
}

/// The body decoded up to the first fault (empty if the body has another encoding), and whether there was no fault.
fn decode(encoding: &str, body: &[u8]) -> (Option<Vec<u8>>, bool) {
    match encoding {
        "gzip" | "x-gzip" if body.starts_with(&[0x1f, 0x8b]) => read_all(flate2::bufread::MultiGzDecoder::new(body)),
        "zstd" if body.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) => {
            zstd::stream::read::Decoder::with_buffer(body).map_or((None, false), read_all)
        }
        "br" => read_all(brotli_decompressor::Decompressor::new(body, 4096)),
        "deflate" => {
            let (zlib, good) = read_all(flate2::bufread::ZlibDecoder::new(body));
            if good {
                return (zlib, true);
            }
            let (raw, raw_good) = read_all(flate2::bufread::DeflateDecoder::new(body));
            if raw_good || zlib.is_none() { (raw, raw_good) } else { (zlib, false) }
        }
        _ => (None, false),
    }
}

fn read_all(decoder: impl Read) -> (Option<Vec<u8>>, bool) {
    let mut bytes = Vec::new();
    let good = decoder.take(BODY_BYTES_MAX as u64).read_to_end(&mut bytes).is_ok() && bytes.len() < BODY_BYTES_MAX;
    (Some(bytes).filter(|bytes| good || !bytes.is_empty()), good)
}

/// The media type of a `Content-Type`, in lower case, without parameters.
pub(crate) fn media_type(content_type: &str) -> String {
    let end = |c: char| matches!(c, ';' | ',') || c.is_ascii_whitespace();
    content_type.trim().split(end).next().unwrap_or_default().to_ascii_lowercase()
}

/// The `charset` parameter of a `Content-Type`.
pub(crate) fn charset(content_type: &str) -> Option<&str> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches(['"', '\'']))
    })
}

/// Whether a document with this media type is HTML; `None` if the type does not decide.
pub(crate) fn is_html(media_type: &str) -> Option<bool> {
    match media_type {
        "text/html" | "application/xhtml+xml" => Some(true),
        "" | "unknown/unknown" | "application/unknown" | "unk" | "no-type" | "*/*" => None,
        _ => Some(false),
    }
}

/// Whether a document looks like HTML (WHATWG MIME Sniffing 7.1).
pub(crate) fn looks_like_html(document: &[u8]) -> bool {
    const TAGS: [&[u8]; 17] = [
        b"<!doctype html",
        b"<html",
        b"<head",
        b"<script",
        b"<iframe",
        b"<h1",
        b"<div",
        b"<font",
        b"<table",
        b"<a",
        b"<style",
        b"<title",
        b"<b",
        b"<body",
        b"<br",
        b"<p",
        b"<meta",
    ];
    let document = document.strip_prefix(b"\xef\xbb\xbf").unwrap_or(document).trim_ascii_start();
    document.starts_with(b"<!--")
        || TAGS.iter().any(|tag| {
            document.get(..tag.len()).is_some_and(|head| head.eq_ignore_ascii_case(tag))
                && matches!(document.get(tag.len()), Some(b' ' | b'>' | b'\t' | b'\r' | b'\n'))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tally;
    use std::io::Write;
    use std::path::Path;

    fn decoded(head: &str, raw: &[u8]) -> (Vec<u8>, Tally) {
        let mut tally = Tally::default();
        let mut fields = Fields::default();
        fields.read(head.as_bytes());
        let mut site = RecordSite { tally: &mut tally, path: Path::new("test"), at: (0, 0) };
        let body = body(raw, &fields, &mut site).into_owned();
        (body, tally)
    }

    #[test]
    fn status_lines() {
        let mut fields = Fields::default();
        let (status, body) = response(b"HTTP/1.0 200\r\nA: b\r\n\r\nbody", &mut fields).unwrap();
        assert_eq!((status, body, fields.get("a").as_deref()), (200, &b"body"[..], Some("b")));
        assert_eq!(response(b"HTTP/1.1 404 Not Found\n\nx", &mut fields).unwrap(), (404, &b"x"[..]));
        assert_eq!(response(b"HTTP/1.1", &mut fields).unwrap(), (0, &b""[..]));
        assert!(response(b"<html>", &mut fields).is_none());
    }

    #[test]
    fn chunks_good_broken_and_absent() {
        let head = "Transfer-Encoding: chunked";
        assert_eq!(decoded(head, b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: t\r\n\r\n").0, b"abcde");
        let (body, tally) = decoded(head, b"<html> not chunked\r\n");
        assert_eq!((&body[..], tally.damaged()), (&b"<html> not chunked\r\n"[..], 0));
        let (body, tally) = decoded(head, b"3\r\nabc\r\nff\r\nde");
        assert_eq!((&body[..], tally.of(Finding::BadChunks)), (&b"abcde"[..], 1));
    }

    #[test]
    fn encodings_and_bodies_wrongly_flagged() {
        let text = b"<a href=x>".repeat(50);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&text).unwrap();
        let gzip = gzip.finish().unwrap();
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        zlib.write_all(&text).unwrap();
        let zlib = zlib.finish().unwrap();
        assert_eq!(decoded("Content-Encoding: gzip", &gzip).0, text);
        assert_eq!(decoded("Content-Encoding: deflate", &zlib).0, text);
        assert_eq!(decoded("Content-Encoding: deflate", &zlib[2..zlib.len() - 4]).0, text);
        assert_eq!(decoded("Content-Encoding: zstd", &zstd::encode_all(&text[..], 1).unwrap()).0, text);
        for name in ["gzip", "br", "deflate", "zstd", "nonsense"] {
            let (body, tally) = decoded(&format!("Content-Encoding: {name}"), &text);
            assert_eq!(tally.of(Finding::BadContentEncoding), 1, "{name}");
            assert_eq!(body, text, "{name}");
        }
        let (body, tally) = decoded("Content-Encoding: gzip", &gzip[..gzip.len() - 9]);
        assert!(text.starts_with(&body) && tally.of(Finding::BadContentEncoding) == 1);
    }

    #[test]
    fn content_types() {
        assert_eq!(media_type("Text/HTML; charset=x"), "text/html");
        assert_eq!(media_type("text/html Last-modified: Sat,10 Aug 1996"), "text/html");
        assert_eq!(charset("text/html; a=b; Charset=\"koi8-r\""), Some("koi8-r"));
        assert!(looks_like_html(b" \n<!DOCTYPE HTML PUBLIC") && looks_like_html(b"<p>") && !looks_like_html(b"<pre>"));
    }
}
