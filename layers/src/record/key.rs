//! The URL key: a URL rewritten so that byte order keeps a domain, a host and a page together. The url layer is in key
//! order.
//!
//! Input and output: the text of WHATWG-serialised URLs (no fragment) to key bytes and back. Pure functions, no state.
//!
//! ```text
//! http://www.example.com/a?b         com,example,www,)/a?b 0x01
//! https://www.example.com/a?b        com,example,www,)/a?b 0x02
//! http://www.example.com:8080/a?b    com,example,www,)/a?b 0x04 8080 0x01
//! http://192.0.2.7/                  192,0,2,7,)/ 0x01            IPv4: as written, so that a network lies together
//! http://u:p@example.com:81/a        com,example,)/a 0x04 81 0x04 http://u:p@ 0x03
//! https://a,b.example.com/           com,example,a@2cb,)/ 0x04 0x04 https:// 0x03
//! ftp://example.com/, example.com    ! and the text and 0x03      no http or https URL
//! ```
//!
//! The usual form is for http and https URLs with a host of the characters `a-z 0-9 - _ .`, with digits as the port, if
//! there is a port, and with a path that starts with `/`. The odd form is for URLs with user info, and for URLs with a
//! host that has any of the other bytes that the URL standard allows, for example an IPv6 address. `@` and two digits
//! stand for such a byte, and the part of the URL before the host comes last. Other texts have a key that begins with
//! `!`, in which a byte up to 0x04 becomes 0x04 and the byte plus 0x10. Stores have no such texts.
//!
//! [`host_of`] is the host that a URL counts for, in every question, removal, analysis and export: the host of the URL
//! standard.
//!
//! Invariants for any text: the key is injective, and [`url_of_key`] is its inverse. No key is a prefix of another key,
//! because a key ends at its first byte 0x01, 0x02 or 0x03. Invariants for serialised URLs, which have no byte below
//! 0x21: all URLs of a host are one interval (prefix `com,example,)`). All URLs of a domain are one interval, too
//! (prefix `com,example,`, which `com,example-foo,` does not begin with). A host comes before its subdomains. The forms
//! of one page (http, https, ports, user info) are neighbours, because the bytes after a path sort below every byte of
//! a longer path.
//!
//! Source: Sort-friendly URI Reordering Transform (SURT) of the web archives. Unlike SURT, keys never merge URLs.

pub(crate) mod matching;

/// Ends the key of an http URL.
const HTTP: u8 = 0x01;
/// Ends the key of an https URL.
const HTTPS: u8 = 0x02;
/// Ends the key of an odd URL, and of a text that is no http or https URL.
const ODD: u8 = 0x03;
/// Comes before the port, and before the part of an odd URL that comes before its host. In keys that begin with `!`,
/// comes before a byte that is moved.
const MARK: u8 = 0x04;
/// Added to a byte after [`MARK`] in keys that begin with `!`.
const MOVED: u8 = 0x10;
/// Comes before the two hexadecimal digits of a byte of an odd host. No host has `@`, and `@` sorts above `)`, so that
/// a host comes before its subdomains.
const ESCAPE: u8 = b'@';

/// Writes the key of a URL to `out`, which is cleared first.
///
/// ```
/// use webstrata_layers::record::key::{key, url_of_key};
///
/// let mut keys = ["http://www.example.org/b", "http://example.com/", "http://example.org/a"].map(|url| {
///     let mut out = Vec::new();
///     key(url, &mut out);
///     out
/// });
/// // Order of keys: by domain, then host, then path.
/// keys.sort();
/// let urls = keys.map(|key| url_of_key(&key).expect("a key"));
/// assert_eq!(urls, ["http://example.com/", "http://example.org/a", "http://www.example.org/b"]);
/// ```
pub fn key(url: &str, out: &mut Vec<u8>) {
    out.clear();
    let Some(components) = Components::of(url) else {
        return no_url(url, out);
    };
    out.reserve(url.len() + 3);
    let is_odd = components.end == ODD;
    let mut labels = components.host.as_bytes();
    if is_ipv4(components.host, '.') {
        out.extend(labels.iter().map(|&byte| if byte == b'.' { b',' } else { byte }));
        out.push(b',');
    } else {
        // The standard library's search from the right is slower for texts as short as labels.
        while let Some(dot) = labels.iter().rposition(|&byte| byte == b'.') {
            push_label(&labels[dot + 1..], is_odd, out);
            labels = &labels[..dot];
        }
        push_label(labels, is_odd, out);
    }
    out.push(b')');
    out.extend_from_slice(components.path.as_bytes());
    if let Some(port) = components.port {
        out.push(MARK);
        out.extend_from_slice(port.as_bytes());
    }
    if is_odd {
        let before = &url[..url.len() - components.from_host.len()];
        out.extend_from_slice(if components.port.is_none() { &[MARK, MARK] } else { &[MARK] });
        out.extend_from_slice(before.as_bytes());
    }
    out.push(components.end);
}

/// The URL of a key; `None` if the bytes are not the key of any text.
pub fn url_of_key(key: &[u8]) -> Option<String> {
    let url = match key {
        [b'!', text @ .., ODD] => {
            let mut url = Vec::with_capacity(text.len());
            let mut bytes = text.iter();
            while let Some(&byte) = bytes.next() {
                url.push(if byte == MARK { bytes.next()?.checked_sub(MOVED)? } else { byte });
            }
            String::from_utf8(url).ok()?
        }
        [text @ .., end @ (HTTP | HTTPS | ODD)] => {
            let text = std::str::from_utf8(text).ok()?;
            let (labels, rest) = text.split_once(",)")?;
            let mut parts = rest.splitn(3, char::from(MARK));
            let (path, port) = (parts.next()?, parts.next().unwrap_or_default());
            let before = match *end {
                HTTP => "http://",
                HTTPS => "https://",
                _ => parts.next()?,
            };
            let mut url = String::with_capacity(key.len() + 8);
            url.push_str(before);
            if is_ipv4(labels, ',') {
                url.extend(labels.chars().map(|letter| if letter == ',' { '.' } else { letter }));
            } else {
                for (at, label) in labels.rsplit(',').enumerate() {
                    url.push_str(if at > 0 { "." } else { "" });
                    let mut pieces = label.split(char::from(ESCAPE));
                    url.push_str(pieces.next()?);
                    for piece in pieces {
                        url.push(char::from(u8::from_str_radix(piece.get(..2)?, 16).ok()?));
                        url.push_str(&piece[2..]);
                    }
                }
            }
            url.extend([if port.is_empty() { "" } else { ":" }, port, path]);
            url
        }
        _ => return None,
    };
    let mut again = Vec::new();
    self::key(&url, &mut again);
    (again == key).then_some(url)
}

/// The common beginning of the keys of all URLs that begin with this URL, with any scheme, port and user info (all are
/// at the end of a key).
pub fn url_prefix(url: &str) -> Vec<u8> {
    let mut out = key_of(url);
    out.pop();
    if out.first() != Some(&b'!') {
        out.truncate(out.iter().position(|&byte| byte == MARK).unwrap_or(out.len()));
    }
    out
}

/// The host of an http or https URL, by the URL standard: without user info and port, and with its brackets if it is an
/// IPv6 address. `None` for any other text.
///
/// ```
/// use webstrata_layers::record::key::host_of;
///
/// assert_eq!(host_of("http://user:word@www.example.org:8080/a"), Some("www.example.org"));
/// assert_eq!(host_of("https://[::1]/"), Some("[::1]"));
/// assert_eq!(host_of("mailto:someone@example.org"), None);
/// ```
pub fn host_of(url: &str) -> Option<&str> {
    Components::of(url).map(|components| components.host)
}

/// An http or https URL from its host on: without scheme and user info.
pub fn from_host(url: &str) -> Option<&str> {
    Components::of(url).map(|components| components.from_host)
}

/// The common beginning of the keys of all URLs of a host, by its name from [`host_of`]; `None` for a text that is not
/// the name of a host.
pub fn host_prefix(host: &str) -> Option<Vec<u8>> {
    let url = format!("http://{host}/");
    let is_host = Components::of(&url).is_some_and(|components| components.host == host && components.path == "/");
    let mut out = key_of(&url);
    out.truncate(out.iter().position(|&byte| byte == b')')? + 1);
    is_host.then_some(out)
}

/// As [`host_prefix`]; for the empty name, the beginning of the keys of all texts that have no host.
pub fn counted_prefix(host: &str) -> Vec<u8> {
    host_prefix(host).unwrap_or_else(|| b"!".to_vec())
}

/// The least bytes above all bytes that begin with `prefix`; `None` if there are none.
pub(crate) fn key_after(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != u8::MAX)?;
    let mut after = prefix[..=last].to_vec();
    after[last] += 1;
    Some(after)
}

/// As [`host_prefix`], for a host and all its subdomains.
pub fn domain_prefix(host: &str) -> Option<Vec<u8>> {
    host_prefix(host).map(|mut out| {
        out.pop();
        out
    })
}

/// The key of a URL as a new vector; for tests and single look-ups.
pub fn key_of(url: &str) -> Vec<u8> {
    let mut out = Vec::new();
    key(url, &mut out);
    out
}

/// The components of an http or https URL.
struct Components<'a> {
    host: &'a str,
    port: Option<&'a str>,
    path: &'a str,
    /// The URL without scheme and user info.
    from_host: &'a str,
    end: u8,
}

impl<'a> Components<'a> {
    fn of(url: &'a str) -> Option<Self> {
        let (rest, end) = match url.strip_prefix("http://") {
            Some(rest) => (rest, HTTP),
            None => (url.strip_prefix("https://")?, HTTPS),
        };
        let (host, after) = rest.split_at(rest.bytes().position(|byte| !IN_HOST[usize::from(byte)])?);
        Self::whole(host, after, rest, end).or_else(|| Self::odd(rest))
    }

    /// The components of a URL that continues with `after` after its host.
    fn whole(host: &'a str, after: &'a str, from_host: &'a str, end: u8) -> Option<Self> {
        let (port, path) = match after.strip_prefix(':') {
            None => (None, after),
            Some(after) => {
                let (port, path) = after.split_at(after.bytes().position(|byte| !byte.is_ascii_digit())?);
                (Some(port), path)
            }
        };
        // The least byte, without a branch for each.
        let least = path.bytes().fold(u8::MAX, u8::min);
        let is_whole = !host.is_empty() && port != Some("") && path.starts_with('/') && least > MARK;
        is_whole.then_some(Self { host, port, path, from_host, end })
    }

    /// The components of a URL with user info or an odd host, without its scheme.
    #[cold]
    fn odd(rest: &'a str) -> Option<Self> {
        let authority = &rest[..rest.find(['/', '?', '#', '\\'])?];
        let user = authority.rfind('@').map_or(0, |at| at + 1);
        if authority.bytes().any(|byte| byte <= MARK) {
            return None;
        }
        let from_host = &rest[user..];
        let end = match from_host.strip_prefix('[') {
            Some(inside) => inside.find(|letter: char| !matches!(letter, 'a'..='f' | '0'..='9' | ':' | '.'))? + 1,
            None => from_host.bytes().position(|byte| !(IN_HOST[usize::from(byte)] || ALLOWED.contains(&byte)))?,
        };
        let end = end + usize::from(from_host.starts_with('[') && from_host[end..].starts_with(']'));
        let (host, after) = from_host.split_at(end);
        let is_closed = host.starts_with('[') == host.ends_with(']') && host != "[]";
        Self::whole(host, after, from_host, ODD).filter(|_| is_closed)
    }
}

/// The bytes of usual hosts.
const IN_HOST: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0u8;
    loop {
        table[byte as usize] = matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.');
        if byte == u8::MAX {
            break table;
        }
        byte += 1;
    }
};

/// The other bytes that the URL standard allows in the host of an http or https URL.
const ALLOWED: &[u8] = b"!\"$&'()*+,;=`{}~";

/// Appends a label of a host.
fn push_label(label: &[u8], is_odd: bool, out: &mut Vec<u8>) {
    if is_odd {
        for &byte in label {
            match IN_HOST[usize::from(byte)] {
                true => out.push(byte),
                false => out.extend_from_slice(format!("@{byte:02x}").as_bytes()),
            }
        }
    } else {
        out.extend_from_slice(label);
    }
    out.push(b',');
}

/// Bytes as lower-case hexadecimal digits.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of hexadecimal digits; `None` for other texts.
pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| if let [high, low] = pair { Some(digit(*high)? << 4 | digit(*low)?) } else { None }).collect()
}

/// Whether the labels of a host are four numbers. Their order does not matter, so this works for a key as for a host.
fn is_ipv4(labels: &str, separator: char) -> bool {
    if !labels.ends_with(|letter: char| letter.is_ascii_digit()) {
        return false;
    }
    let is_number = |label: &str| (1..=3).contains(&label.len()) && label.bytes().all(|byte| byte.is_ascii_digit());
    labels.split(separator).count() == 4 && labels.split(separator).all(is_number)
}

/// Writes the key of a text that is no http or https URL.
fn no_url(url: &str, out: &mut Vec<u8>) {
    out.reserve(url.len() + 2);
    out.push(b'!');
    for byte in url.bytes() {
        if byte <= MARK {
            out.extend([MARK, byte + MOVED]);
        } else {
            out.push(byte);
        }
    }
    out.push(ODD);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// URLs in the order of their keys.
    const ORDERED: &[&str] = &[
        "ftp://example.com/",
        "http://example.org",
        "mailto:a@example.com",
        "http://192.0.2.7/",
        "http://192.0.2.7/a",
        "https://u@192.0.2.7:81/b",
        "http://192.0.2.8/",
        "http://[::1]/",
        "http://[::1]/a",
        "http://[::2]/",
        "http://a,b.com/",
        "https://a,b.com:81/",
        "http://www.a,b.com/",
        "http://example.com/",
        "https://example.com/",
        "http://user@example.com/",
        "https://user:word@example.com/",
        "http://example.com:8080/",
        "http://user@example.com:8080/",
        "https://example.com:8443/",
        "http://example.com/!x",
        "http://example.com/a",
        "https://example.com/a",
        "http://example.com:81/a",
        "http://example.com/a/",
        "http://example.com/a?b",
        "http://user@example.com/b",
        "http://!.example.com/",
        "http://www.example.com/",
        "http://a.www.example.com/",
        "http://example-foo.com/",
        "http://example.org/",
        "http://a_b.example.org/",
    ];

    #[test]
    fn a_url_counts_for_the_host_of_the_standard() {
        let hosts = [
            ("http://example.com/a", "example.com"),
            ("https://example.com:81/a:b@c", "example.com"),
            ("http://www.example.com/", "www.example.com"),
            ("http://[::1]:80/", "[::1]"),
            ("http://u@[2001:db8::7]/", "[2001:db8::7]"),
            ("http://192.0.2.7/", "192.0.2.7"),
            ("http://user:word@example.com/", "example.com"),
            ("http://:word@example.com:81/@", "example.com"),
            ("http://example.com@example.org/", "example.org"),
            ("http://!\"$&'()*+,-.0_`a{}~;=/", "!\"$&'()*+,-.0_`a{}~;="),
            ("http://a,b.example/", "a,b.example"),
            ("http://a.b,example/", "a.b,example"),
            ("http://-/", "-"),
            ("http://.a..b./", ".a..b."),
            ("mailto:a@example.com", ""),
            ("ftp://example.com/a", ""),
            ("http://example.com", ""),
            ("http://example.com?a/b", ""),
            ("http://u?@example.com/", ""),
            ("http://u\u{1}@example.com/", ""),
            ("http://user@/", ""),
            ("http://a%20b/", ""),
            ("http://A/", ""),
            ("http://[::1/", ""),
            ("http://[]/", ""),
            ("http://::1]/", ""),
            ("http:///a", ""),
            ("", ""),
        ];
        for (url, host) in hosts {
            assert_eq!(host_of(url).unwrap_or_default(), host, "{url}");
            let rest = from_host(url).unwrap_or_default();
            assert!(rest.starts_with(host) && url.ends_with(rest), "{url} {rest}");
        }
        for ((one, host), (other, own)) in hosts.iter().flat_map(|one| hosts.iter().map(move |other| (one, other))) {
            assert_eq!(key_of(one).starts_with(&counted_prefix(own)), host == own, "{one} {other}");
        }
    }

    #[test]
    fn prefixes_are_those_of_hosts_domains_and_paths() {
        let urls = [
            "http://example.com/a/b",
            "https://example.com:8080/a/b?c",
            "http://www.example.com/a/",
            "http://example.community/a/",
            "http://192.0.2.7/",
            "http://user@example.com/a/",
            "http://a,b.example.com/a",
        ];
        let begins = |prefix: &[u8]| urls.map(|url| u8::from(key_of(url).starts_with(prefix)));
        assert_eq!(begins(&host_prefix("example.com").unwrap()), [1, 1, 0, 0, 0, 1, 0]);
        assert_eq!(begins(&domain_prefix("example.com").unwrap()), [1, 1, 1, 0, 0, 1, 1]);
        assert_eq!(begins(&url_prefix("https://example.com:1/a/")), [1, 1, 0, 0, 0, 1, 0]);
        assert_eq!(begins(&host_prefix("192.0.2.7").unwrap()), [0, 0, 0, 0, 1, 0, 0]);
        assert_eq!(begins(&url_prefix("http://other:word@example.com:1/")), [1, 1, 0, 0, 0, 1, 0]);
        assert_eq!(begins(&url_prefix("http://a,b.example.com/")), [0, 0, 0, 0, 0, 0, 1]);
        for host in ["user@example.com", "example.com/a", "example.com:80", "::1", "[::1]:80", "a%b", "A", ""] {
            assert_eq!(host_prefix(host), None, "{host}");
        }
    }

    #[test]
    fn domains_hosts_and_pages_lie_together() {
        for pair in ORDERED.windows(2) {
            assert!(key_of(pair[0]) < key_of(pair[1]), "{} before {}", pair[0], pair[1]);
        }
        assert!(key_of("http://example.com/a").starts_with(b"com,example,)/a"));
        assert!(!key_of("http://example-foo.com/").starts_with(b"com,example,"));
        assert_eq!(key_of("https://www.example.com:8443/a?b"), b"com,example,www,)/a?b\x048443\x02");
        assert_eq!(key_of("http://u:p@example.com:81/a"), b"com,example,)/a\x0481\x04http://u:p@\x03");
        assert_eq!(key_of("https://a,b.example.com/"), b"com,example,a@2cb,)/\x04\x04https://\x03");
    }

    #[test]
    fn no_url_comes_between_the_forms_of_one_page() {
        let forms =
            ["http://example.com/a", "https://example.com/a", "http://example.com:9/a", "https://example.com:9/a"];
        let (low, high) = (key_of(forms[0]), key_of(forms[2]).max(key_of(forms[3])));
        for url in ORDERED.iter().filter(|url| !url.ends_with("/a")) {
            let other = key_of(url);
            assert!(other < low || other > high, "{url}");
        }
    }

    #[test]
    fn every_text_comes_back() {
        let odd = [
            "",
            "!",
            "http://",
            "http:///",
            "http://example.com",
            "http://example.com:/",
            "http://EXAMPLE.com/",
            "http://example.com./",
            "http://a..b/",
            "http://./",
            "http://1.2.3/",
            "http://1.2.3.4.5/",
            "http://1.2.3.4444/",
            "http://x/\u{1}\u{4}",
            "\0\u{1}\u{2}\u{3}\u{4}\u{14}",
            "http://x/é)",
            "http://x/),)",
            "http://x:80/",
            "http://@x/",
            "http://:@x/",
            "http://u:p@x",
            "http://u@v@x:1/",
            "http://1,2,3,4/",
            "http://u@1.2.3.4/",
            "http://a,)b/",
            "http://[::1]x/",
            "http://x@2c/",
        ];
        for url in ORDERED.iter().chain(&odd) {
            assert_eq!(url_of_key(&key_of(url)).as_deref(), Some(*url));
        }
    }

    #[test]
    fn bytes_that_are_no_key_give_nothing() {
        let broken: &[&[u8]] = &[
            b"",
            b"\x01",
            b"com,example,)/a",
            b"com,example)/a\x01",
            b"!http://example.com/\x03",
            b"!\x04\x03",
            b"!\x04\x20\x03",
            b"com,)a\x01",
            b"com,\x01",
            b"com,)/\x04\x01",
            b"com,)/\x0480\x04\x01",
            b"com,)/\xff\x02",
            b"com,)/\x03",
            b"com,)/\x04\x03",
            b"com,)/\x04\x04http://\x03",
            b"com,)/\x04\x04ftp://u@\x03",
            b"a@2Cb,)/\x04\x04http://\x03",
            b"a@2,)/\x04\x04http://\x03",
            b"a@61,)/\x04\x04http://u@\x03",
            b"a@2cb,)/\x01",
        ];
        for key in broken {
            assert_eq!(url_of_key(key), None, "{key:?}");
        }
    }

    fn url() -> impl Strategy<Value = String> {
        prop_oneof![
            "(http|https)://([a-z0-9_-]{1,3}\\.){0,3}[a-z]{1,3}(:[0-9]{1,3})?/[!-~]{0,6}",
            "(http|https)://[0-9]{1,3}(\\.[0-9]{1,3}){2,4}/[a-c]{0,2}",
            "(http|https|ftp)://[ -~]{0,8}/?[\\x00-\\x20é]{0,4}",
            "(http|https)://([a:]{0,2}@)?\\[?[a-b0-1.,)!:;@]{0,5}\\]?(:[0-9]{1,2})?/[!-~]{0,3}",
            any::<String>(),
        ]
    }

    proptest! {
        #[test]
        fn reversible_injective_and_prefix_free(a in url(), b in url()) {
            let (key_a, key_b) = (key_of(&a), key_of(&b));
            prop_assert_eq!(url_of_key(&key_a), Some(a.clone()));
            if a == b {
                prop_assert_eq!(key_a, key_b);
            } else {
                prop_assert!(!key_a.starts_with(&key_b) && !key_b.starts_with(&key_a));
            }
        }

        #[test]
        fn any_bytes_are_a_key_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..12)) {
            if let Some(url) = url_of_key(&bytes) {
                prop_assert_eq!(key_of(&url), bytes);
            }
        }
    }
}
