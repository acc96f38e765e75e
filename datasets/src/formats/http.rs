//! HTTP responses as crawlers store them: status line, header fields, media types. [`coding`] reads the body.
//!
//! Reads the block of a record. Writes the status and the fields. The parser is tolerant.

pub(crate) mod coding;

use crate::formats::record::Fields;

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
    fn content_types() {
        assert_eq!(media_type("Text/HTML; charset=x"), "text/html");
        assert_eq!(media_type("text/html Last-modified: Sat,10 Aug 1996"), "text/html");
        assert_eq!(charset("text/html; a=b; Charset=\"koi8-r\""), Some("koi8-r"));
        assert!(looks_like_html(b" \n<!DOCTYPE HTML PUBLIC") && looks_like_html(b"<p>") && !looks_like_html(b"<pre>"));
    }
}
