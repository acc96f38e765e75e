//! The `urlkey` of CDX indexes: SURT by the rules of the Internet Archive and pywb, for joins with their indexes.
//!
//! A urlkey merges URLs that differ in scheme, `www.`, letter case or session id. It is not an identity; the identity
//! of a URL is [`crate::canonical`]. Reads any URL as a crawl file spells it. Writes `com,example)/path?query`. Never
//! fails.
//!
//! The steps, in this order:
//!
//! - Text: white space at the ends is dropped, and tabs and line ends everywhere. The empty text becomes `-`. URLs of
//!   `filedesc` and `warcinfo` stay unchanged.
//! - Scheme: a missing scheme means http. `http:host` and `http:///host` mean `http://host`.
//! - Escapes: `%XX` are decoded until no escape is left. Then bytes up to 0x20, bytes from 0x7f, `#` and `%` are
//!   escaped once. Host, path and query are decoded separately.
//! - Host: IDNA and lower case. Dots at the ends are dropped, and `..` becomes one dot (once). Numeric IPv4 forms
//!   become four bytes. One `www` with digits is dropped.
//! - User and port: user and password are dropped, as are port 80 of http, port 443 of https, and a port without
//!   digits.
//! - Path: lower case, without a slash at the end. `.` and empty segments are dropped. `..` removes the segment before
//!   (even a `..`), or stays at the root.
//! - Session: `/(S(24 letters))/x.aspx` loses the part in brackets. The query loses `jsessionid`, `phpsessid` and `sid`
//!   with 32 letters, `aspsessionid********` with 24 letters, and `cfid&cftoken`.
//! - Query: lower case, arguments sorted by name and value. An empty query is dropped.
//! - Form: the labels of the host (also of an IPv4 address) from the right, joined by commas, then `:port`, `)`, path
//!   and query. The scheme is dropped.
//! - A URL without a host: `scheme:rest` in lower case, without a slash at the end.
//!
//! Known oddities are kept, because the indexes have them: `%26` in a query is decoded before arguments are sorted,
//! `sid=` is found inside `foosid=`, and `www1355544.com` becomes `com)/`.
//! Source: the published behaviour of these tools on their test vectors.

use crate::domain::append_reversed;
use std::borrow::Cow;
use std::fmt::Write;

/// The SURT of a URL.
///
/// ```
/// use webstrata_url::surt;
///
/// assert_eq!(surt("https://www.Example.org:443/About/?b=2&a=1"), "org,example)/about?a=1&b=2");
/// assert_eq!(surt("http://example.org/about?a=1&b=2"), "org,example)/about?a=1&b=2");
/// ```
pub fn surt(url: &str) -> String {
    let is_dropped = |letter: char| matches!(letter, '\t' | '\r' | '\n');
    let text: Cow<'_, str> =
        if url.contains(is_dropped) { url.replace(is_dropped, "").into() } else { Cow::Borrowed(url) };
    let text = text.trim_ascii();
    if text.is_empty() {
        return "-".to_owned();
    }
    if text.starts_with("filedesc") || text.starts_with("warcinfo") {
        return text.to_owned();
    }
    let (scheme, rest) = split_scheme(text).unwrap_or(("http", text));
    let is_web = ["http", "https"].iter().any(|web| scheme.eq_ignore_ascii_case(web));
    let has_scheme = scheme.len() < text.len() && rest.len() < text.len();
    let authority = match rest.strip_prefix("//") {
        _ if !has_scheme => Some(rest),
        Some(rest) if is_web && !rest.starts_with('/') => Some(rest),
        Some(rest) if !is_web => Some(rest),
        _ => None,
    };
    let mut out = String::with_capacity(text.len() + 2);
    let Some(authority) = authority else {
        if is_web {
            hostless_web(scheme, rest, &mut out);
        } else {
            out.extend([scheme, ":"]);
            tail(rest, false, &mut out);
        }
        return out;
    };
    let end = authority.find(['/', '?', '#']).unwrap_or(authority.len());
    let (authority, rest) = authority.split_at(end);
    let host_port = authority.rsplit_once('@').map_or(authority, |(_, host_port)| host_port);
    let (host, port) = match host_port.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (host, port),
        _ => (host_port, ""),
    };
    let host = canonical_host(host);
    if host.is_empty() {
        out.extend([scheme, ":"]);
        tail(rest, false, &mut out);
        return out;
    }
    let default_port = if scheme.eq_ignore_ascii_case("https") { "443" } else { "80" };
    let port = if is_web && port == default_port { "" } else { port };
    reversed(&host, &mut out);
    if !port.is_empty() {
        out.extend([":", port]);
    }
    out.push(')');
    tail(rest, true, &mut out);
    out
}

/// For `http:a/b` and `http:/a/b`: the text after the slashes begins with the host, which stays unchanged.
fn hostless_web(scheme: &str, rest: &str, out: &mut String) {
    let rest = rest.trim_start_matches('/');
    if rest.is_empty() {
        return out.extend([scheme, ":"]);
    }
    let (host, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let host = lower(escape(unescape(host.as_bytes())));
    let host = host.trim_matches('.');
    if host.is_empty() {
        out.extend([scheme, ":"]);
    } else {
        reversed(host, out);
        out.push(')');
    }
    tail(path, true, out);
}

fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let mut letters = scheme.bytes();
    let is_scheme = letters.next()?.is_ascii_alphabetic()
        && letters.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
    is_scheme.then_some((scheme, rest))
}

/// Appends the labels from the right, joined by commas. Brackets of IPv6 are dropped.
fn reversed(host: &str, out: &mut String) {
    append_reversed(host.trim_matches(['[', ']']), ",", out);
}

/// Appends the path and the query. The path of a URL with a host is walked, and is at least `/`.
fn tail(text: &str, has_host: bool, out: &mut String) {
    let text = text.split_once('#').map_or(text, |(text, _)| text);
    let (path, query) = text.split_once('?').unwrap_or((text, ""));
    let mut path = unescape(path.as_bytes());
    if has_host {
        path = walk(path);
    }
    let mut path = lower(escape(path));
    if has_host {
        path = without_path_session(path);
    }
    let path = path.strip_suffix('/').filter(|path| !path.is_empty()).unwrap_or(&path);
    out.push_str(path);
    let query = lower(escape(unescape(query.as_bytes())));
    let query = sorted(without_query_sessions(query));
    if !query.is_empty() {
        out.push_str(if path.is_empty() { "/?" } else { "?" });
        out.push_str(&query);
    }
}

fn walk(path: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    let is_empty_or_dots = |pair: &[u8]| pair[0] == b'/' && matches!(pair[1], b'/' | b'.');
    if path.first() == Some(&b'/')
        && (path.len() == 1 || path.last() != Some(&b'/'))
        && !path.windows(2).any(is_empty_or_dots)
    {
        return path;
    }
    let mut kept: Vec<&[u8]> = Vec::new();
    for segment in path.strip_prefix(b"/").unwrap_or(&path).split(|&byte| byte == b'/') {
        match segment {
            b"." => {}
            b".." if !kept.is_empty() => {
                kept.pop();
            }
            // A later `..` can take back an empty segment, so empty segments are dropped afterwards.
            segment => kept.push(segment),
        }
    }
    let mut walked = Vec::with_capacity(path.len() + 1);
    for segment in kept.iter().filter(|segment| !segment.is_empty()) {
        walked.push(b'/');
        walked.extend_from_slice(segment);
    }
    if walked.is_empty() {
        walked.push(b'/');
    }
    walked.into()
}

fn unescape(text: &[u8]) -> Cow<'_, [u8]> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut text = Cow::Borrowed(text);
    while text.contains(&b'%') {
        let (mut out, mut offset) = (Vec::with_capacity(text.len()), 0);
        while offset < text.len() {
            match (text[offset], text.get(offset + 1).and_then(digit), text.get(offset + 2).and_then(digit)) {
                (b'%', Some(high), Some(low)) => {
                    out.push(high * 16 + low);
                    offset += 3;
                }
                (byte, ..) => {
                    out.push(byte);
                    offset += 1;
                }
            }
        }
        if out.len() == text.len() {
            break;
        }
        text = out.into();
    }
    text
}

fn escape(bytes: Cow<'_, [u8]>) -> Cow<'_, str> {
    let is_escaped = |byte: u8| byte <= 0x20 || byte >= 0x7f || byte == b'#' || byte == b'%';
    if !bytes.iter().any(|&byte| is_escaped(byte)) {
        return match bytes {
            Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
            Cow::Owned(bytes) => String::from_utf8_lossy(&bytes).into_owned().into(),
        };
    }
    let mut out = String::with_capacity(bytes.len());
    for &byte in &*bytes {
        if is_escaped(byte) {
            let _ = write!(out, "%{byte:02X}");
        } else {
            out.push(char::from(byte));
        }
    }
    out.into()
}

fn lower(mut text: Cow<'_, str>) -> Cow<'_, str> {
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        text.to_mut().make_ascii_lowercase();
    }
    text
}

fn canonical_host(host: &str) -> String {
    let bytes = unescape(host.as_bytes());
    let ascii = match std::str::from_utf8(&bytes) {
        // IDNA 2003 wrote these two letters differently.
        Ok(text) if !text.is_ascii() => idna::domain_to_ascii(&text.replace('ß', "ss").replace('ς', "σ")).ok(),
        _ => None,
    };
    let host = lower(escape(ascii.map_or(bytes, |ascii| ascii.into_bytes().into())));
    let host = host.trim_matches('.').replace("..", ".");
    if let Some(address) = ipv4(&host) {
        return address.to_string();
    }
    match host.strip_prefix("www").map(|rest| rest.trim_start_matches(|letter: char| letter.is_ascii_digit())) {
        Some(rest) if rest.starts_with('.') => rest[1..].to_owned(),
        _ => host,
    }
}

/// Reads the numeric forms of an IPv4 address: one to four parts, decimal or octal. The last part fills the rest.
fn ipv4(host: &str) -> Option<std::net::Ipv4Addr> {
    if !host.ends_with(|letter: char| letter.is_ascii_digit()) {
        return None;
    }
    let parts: Vec<&str> = host.split('.').collect();
    let (last, first) = parts.split_last()?;
    if first.len() > 3 {
        return None;
    }
    let number = |part: &str| -> Option<u64> {
        let octal = part.len() > 1 && part.starts_with('0');
        if part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        u64::from_str_radix(part, if octal { 8 } else { 10 }).ok()
    };
    let mut address = 0u64;
    for part in first {
        address = address << 8 | number(part).filter(|&byte| byte < 256)?;
    }
    let bits = 8 * (4 - first.len());
    let address = address << bits | number(last).filter(|&rest| rest < 1 << bits)?;
    Some(u32::try_from(address).ok()?.into())
}

/// A path `/(S(...))/page.aspx` or `/(...)/page.aspx` without the directory in brackets.
fn without_path_session(path: Cow<'_, str>) -> Cow<'_, str> {
    if !path.contains('(') {
        return path;
    }
    let is_id = |text: &str| text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let is_session = |segment: &str| {
        let Some(mut inner) = segment.strip_prefix('(').and_then(|segment| segment.strip_suffix(')')) else {
            return false;
        };
        if is_id(inner) {
            return true;
        }
        while let Some((id, rest)) =
            inner.get(1..).and_then(|inner| inner.strip_prefix('(')).and_then(|inner| inner.split_once(')'))
        {
            if !is_id(id) {
                return false;
            }
            if rest.is_empty() {
                return true;
            }
            inner = rest;
        }
        false
    };
    let segments: Vec<&str> = path.split('/').collect();
    let found = segments.iter().rposition(|segment| is_session(segment));
    match found {
        Some(index) if segments[index + 1..].join("/").find(".aspx").is_some_and(|name| name > 0) => {
            [&segments[..index], &segments[index + 1..]].concat().join("/").into()
        }
        _ => path,
    }
}

/// A query (in lower case) without session ids. Of each kind, the last id is removed once.
fn without_query_sessions(mut query: Cow<'_, str>) -> Cow<'_, str> {
    if !query.contains("id") {
        return query;
    }
    let letters = |text: &str| text.bytes().take_while(u8::is_ascii_alphanumeric).count();
    let of_length = |prefix: &str, length: usize, text: &str| {
        let rest = text.strip_prefix(prefix)?;
        (letters(rest) == length).then_some(prefix.len() + length)
    };
    /// The length of a session id at the beginning of a text.
    type Kind<'a> = &'a dyn Fn(&str) -> Option<usize>;
    let kinds: [Kind<'_>; 5] = [
        &|text| of_length("jsessionid=", 32, text),
        &|text| of_length("phpsessid=", 32, text),
        &|text| of_length("sid=", 32, text),
        &|text| {
            let rest = text.strip_prefix("aspsessionid")?;
            (letters(rest) == 8).then_some(())?;
            Some(20 + of_length("=", 24, &rest[8..])?)
        },
        &|text| {
            let (id, rest) = text.strip_prefix("cfid=")?.split_once('&')?;
            let token = rest.strip_prefix("cftoken=")?;
            let token = token.find('&').unwrap_or(token.len());
            (!id.is_empty() && token > 0).then_some(5 + id.len() + 1 + 8 + token)
        },
    ];
    for kind in kinds {
        let found = (0..query.len()).rev().find_map(|start| {
            let end = start + kind(query.get(start..)?)?;
            matches!(query.as_bytes().get(end), None | Some(b'&')).then_some((start, end))
        });
        if let Some((start, end)) = found {
            let end = (end + 1).min(query.len());
            query.to_mut().replace_range(start..end, "");
        }
    }
    query
}

/// The arguments sorted by name, then by value. An argument without a value comes before one with an empty value.
fn sorted(query: Cow<'_, str>) -> Cow<'_, str> {
    if !query.contains('&') {
        return query;
    }
    let mut arguments: Vec<&str> = query.split('&').collect();
    arguments.sort_by_key(|argument| {
        argument.split_once('=').map_or((*argument, None), |(name, value)| (name, Some(value)))
    });
    arguments.join("&").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rules() {
        for (url, expected) in [
            ("", "-"),
            ("http://www.Example.com:80/A/../b/./c//?z=1&a=2&a=1#x", "com,example)/b/c?a=1&a=2&z=1"),
            ("https://www2.example.com:443", "com,example)/"),
            ("https://example.com:80/", "com,example:80)/"),
            ("example.com/a/", "com,example)/a"),
            ("http:/example.com/a", "com,example)/a"),
            ("http://me:pw@192.168.1.254:8080/", "254,1,168,192:8080)/"),
            ("http://0300.0250.510/", "254,1,168,192)/"),
            ("http://[2001:db8::1]:80/", "2001:db8::1)/"),
            ("http://bücher.example/ü%2541", "example,xn--bcher-kva)/%c3%bca"),
            ("http://example.com/../a/x//..", "com,example)/../a/x"),
            ("http://example.com/a/../../..", "com,example)/"),
            ("http://example.com/(S(4hqa0555fwsecu455xqckv45))/a.aspx?x", "com,example)/a.aspx?x"),
            ("http://example.com/?b=1&PHPSESSID=0123456789abcdef0123456789abcdef", "com,example)/?&b=1"),
            ("http://example.com/?CFID=1&CFTOKEN=2&x", "com,example)/?x"),
            ("http://example.com/?a=&a&A=%26", "com,example)/?&a&a=&a="),
            ("dns:Example.com", "dns:example.com"),
            ("filedesc://x.arc.gz", "filedesc://x.arc.gz"),
            ("screenshot:http://example.com/A/", "screenshot:http://example.com/a"),
        ] {
            assert_eq!(surt(url), expected, "{url}");
        }
    }

    proptest! {
        /// Any text has a key. The key of a web page is one word of ASCII without capitals.
        #[test]
        fn any_text_has_a_key(text in ".{0,40}", web in "[ -~é%./?&=:@()]{0,40}|[sid=&?%0-9é]{0,80}") {
            prop_assert!(!surt(&text).is_empty());
            let key = surt(&format!("http://example.com/{web}"));
            prop_assert!(key.bytes().all(|byte| byte.is_ascii_graphic() && !byte.is_ascii_uppercase()), "{}", key);
        }
    }
}
