//! HTTP responses as crawlers store them: status line, header fields, media types. [`coding`] reads the body.
//!
//! Reads the block of a record. Writes the status and the fields. The parser is tolerant.

pub(crate) mod coding;

use crate::formats::record::Fields;

/// The status and the raw body of a block that begins like a response. Reads the header into `fields`. Responses before
/// the final one are passed over: interim ones (RFC 9110, 15.2), and that of a proxy, `200 Connection established`.
pub(crate) fn response<'a>(block: &'a [u8], fields: &mut Fields) -> Option<(u16, &'a [u8])> {
    let mut block = block;
    loop {
        fields.clear();
        block = block.trim_ascii_start();
        let end = memchr::memchr(b'\n', block).unwrap_or(block.len());
        let code = status(&block[..end])?;
        let rest = &block[block.len().min(end + 1)..];
        let body = &rest[fields.read(rest)..];
        let may_go_on = (100..200).contains(&code) || code == 200 && fields.bytes("content-type").is_none();
        if !may_go_on || status(body.trim_ascii_start()).is_none_or(|code| code == 0) {
            return Some((code, body));
        }
        block = body;
    }
}

/// Whether a block ends with the empty line that ends a header.
pub(crate) fn ends_header(block: &[u8]) -> bool {
    let without_line_end = |text: &[u8]| {
        let text = text.strip_suffix(b"\n")?;
        Some(text.strip_suffix(b"\r").unwrap_or(text).len())
    };
    without_line_end(block).is_some_and(|end| block[..end].ends_with(b"\n"))
}

/// The status of a text that begins with a status line; 0 if the line has none, and `None` if this is no status line.
/// The blanks before and after the status may be missing or many.
fn status(line: &[u8]) -> Option<u16> {
    const DIGITS: usize = 3;
    let is_word = |word: &[u8]| line.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    if !is_word(b"HTTP") && !is_word(b"ICY ") {
        return None;
    }
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut rest = line[3..].strip_prefix(b"P").or_else(|| line[3..].strip_prefix(b"p")).unwrap_or(&line[3..]);
    if let Some(version) = rest.strip_prefix(b"/") {
        rest = &version[digits(version)..];
        rest = rest.strip_prefix(b".").map_or(rest, |minor| &minor[digits(minor).min(1)..]);
    }
    let is_blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
    let rest = &rest[rest.iter().take_while(is_blank).count()..];
    let code = rest.get(..DIGITS).filter(|_| digits(rest) == DIGITS);
    Some(code.map_or(0, |code| code.iter().fold(0, |code, digit| code * 10 + u16::from(digit - b'0'))))
}

/// The media type of a `Content-Type`, in lower case, without parameters; empty if there is none.
pub(crate) fn media_type(content_type: &str) -> String {
    extracted(content_type).0
}

/// The `charset` parameter of a `Content-Type`.
pub(crate) fn charset(content_type: &str) -> Option<String> {
    extracted(content_type).1
}

/// The media type and the charset of a `Content-Type`. The field may have several values, separated by commas: the last
/// that is a type counts, with the charset of the values before it of the same type (Fetch, "extract a MIME type"). A
/// value that is no type counts as missing. Words after a type are passed over.
fn extracted(content_type: &str) -> (String, Option<String>) {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let (mut essence, mut charset) = (String::new(), None);
    let mut is_quoted = false;
    let values = content_type.split(|letter| {
        is_quoted ^= letter == '"';
        letter == ',' && !is_quoted
    });
    for value in values {
        let mut parts = value.split(';');
        let name = parts.next().unwrap_or_default().split_ascii_whitespace().next().unwrap_or_default();
        let is_type = name
            .split_once('/')
            .is_some_and(|(one, other)| [one, other].iter().all(|part| !part.is_empty() && part.bytes().all(is_token)));
        if !is_type || name == "*/*" {
            continue;
        }
        let name = name.to_ascii_lowercase();
        let own = parts.find_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches(['"', '\'']).to_owned())
        });
        charset = own.or(charset.filter(|_| name == essence));
        essence = name;
    }
    (essence, charset)
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
    fn a_header_ends_with_an_empty_line() {
        for whole in ["HTTP/1.1 200\r\nA: b\r\n\r\n", "HTTP/1.1 200\n\n", "HTTP/1.1 200\nA: b\n\r\n"] {
            assert!(ends_header(whole.as_bytes()), "{whole:?}");
        }
        for cut in ["", "\n", "HTTP/1.1 200", "HTTP/1.1 200\r\nA: b\r\n", "HTTP/1.1 200\r\nA: b\r\n\r"] {
            assert!(!ends_header(cut.as_bytes()), "{cut:?}");
        }
    }

    #[test]
    fn status_lines() {
        let mut fields = Fields::default();
        let (status, body) = response(b"HTTP/1.0 200\r\nA: b\r\n\r\nbody", &mut fields).unwrap();
        assert_eq!((status, body, fields.get("a").as_deref()), (200, &b"body"[..], Some("b")));
        assert_eq!(response(b"HTTP/1.1 404 Not Found\n\nx", &mut fields).unwrap(), (404, &b"x"[..]));
        assert_eq!(response(b"HTTP/1.1", &mut fields).unwrap(), (0, &b""[..]));
        assert!(response(b"<html>", &mut fields).is_none());
        for line in [
            "HTTP/1.1 200OK",
            "HTTP/1.1  200   OK",
            "HTTP/1.1\t200",
            "HTTP/2 200",
            "HTTP/2.0 200 ",
            "HTTP/1.1200 OK",
            "HTTP 200 OK",
            "http/1.1 200 ok",
            "ICY 200 OK",
            "icy  200",
            "\r\n\n HTTP/1.1 200 OK",
        ] {
            let (status, body) = response(format!("{line}\nA: b\n\nx").leak().as_bytes(), &mut fields).unwrap();
            assert_eq!((status, body, fields.get("a").as_deref()), (200, &b"x"[..], Some("b")), "{line:?}");
        }
        for line in ["HTTP/1.1 OK", "HTTP/1.1 20", "HTTP/1.1 2000 OK", "HTTP/1.1 -200", "HTTP is a protocol"] {
            assert_eq!(response(line.as_bytes(), &mut fields).unwrap().0, 0, "{line:?}");
        }
    }

    #[test]
    fn interim_responses_come_before_the_final_one() {
        let mut fields = Fields::default();
        let last = "HTTP/1.1 404 Not Found\r\nA: b\r\n\r\nx";
        for first in [
            "HTTP/1.1 100 Continue\r\n\r\n",
            "HTTP/1.1 103 Early Hints\r\nA: other\r\nLink: </x>\r\n\r\nHTTP/1.1 100 Continue\n\n",
            "HTTP/1.1 100 Continue\r\n\r\n\r\n",
            "HTTP/1.0 200 Connection established\r\nProxy-Agent: x\r\n\r\n",
        ] {
            let (status, body) = response([first, last].concat().leak().as_bytes(), &mut fields).unwrap();
            assert_eq!((status, body, fields.get("a").as_deref()), (404, &b"x"[..], Some("b")), "{first:?}");
        }
        let alone = b"HTTP/1.1 100 Continue\r\n\r\n";
        assert_eq!(response(alone, &mut fields).unwrap(), (100, &b""[..]));
        let page = b"HTTP/1.1 200 OK\nContent-Type: text/html\n\nHTTP/1.1 404\n\n";
        assert_eq!(response(page, &mut fields).unwrap().0, 200);
        assert_eq!(response(b"HTTP/1.1 200 OK\n\nHTTP is a protocol", &mut fields).unwrap().0, 200);
    }

    #[test]
    fn content_types() {
        assert_eq!(media_type("Text/HTML; charset=x"), "text/html");
        assert_eq!(media_type("text/html Last-modified: Sat,10 Aug 1996"), "text/html");
        assert_eq!(charset("text/html; a=b; Charset=\"koi8-r\"").as_deref(), Some("koi8-r"));
        for (content_type, expected, of) in [
            ("\"text/html\"", "", None),
            ("'text/html'", "'text/html'", None),
            ("html", "", None),
            ("text/", "", None),
            ("/html", "", None),
            ("", "", None),
            ("text/html,", "text/html", None),
            ("text/plain, text/html", "text/html", None),
            ("text/html, text/plain", "text/plain", None),
            ("text/html, \"x\", */*, nonsense", "text/html", None),
            ("text/html; charset=a, text/html; charset=b", "text/html", Some("b")),
            ("text/html; charset=a, TEXT/HTML", "text/html", Some("a")),
            ("text/plain; charset=a, text/html", "text/html", None),
            ("text/html; x=\"a, text/plain\"; charset=b", "text/html", Some("b")),
            ("text/html;Charset=utf-8;charset=x", "text/html", Some("utf-8")),
            ("text/html;ISO-8859-1;charset = 'x' ", "text/html", Some("x")),
            ("application/xhtml+xml ; charset=x", "application/xhtml+xml", Some("x")),
        ] {
            assert_eq!(
                (media_type(content_type), charset(content_type).as_deref()),
                (expected.to_owned(), of),
                "{content_type}"
            );
        }
        assert!(looks_like_html(b" \n<!DOCTYPE HTML PUBLIC") && looks_like_html(b"<p>") && !looks_like_html(b"<pre>"));
    }
}
