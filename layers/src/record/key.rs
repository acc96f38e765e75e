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
//! ftp://example.com/, http://u@h/    ! and the URL and 0x03       everything unusual
//! ```
//!
//! The usual form is for http and https URLs with a host of the characters `a-z 0-9 - _ .`, with digits as the port, if
//! there is a port, and with a path that starts with `/`. Other texts get the unusual form: user info, other schemes,
//! IPv6, other characters in the host, text that is not a URL at all. In the unusual form, a byte up to 0x04 becomes
//! 0x04 and the byte plus 0x10.
//!
//! Invariants for any text: the key is injective, and [`url_of_key`] is its inverse. No key is a prefix of another key,
//! because a key ends at its first byte 0x01, 0x02 or 0x03. Invariants for serialised URLs, which have no byte below
//! 0x21: all URLs of a host are one interval (prefix `com,example,)`). All URLs of a domain are one interval, too
//! (prefix `com,example,`, which `com,example-foo,` does not begin with). A host comes before its subdomains. The forms
//! of one page (http, https, ports) are neighbours, because the bytes after a path sort below every byte of a longer
//! path.
//!
//! Source: Sort-friendly URI Reordering Transform (SURT) of the web archives. Unlike SURT, keys never merge URLs.

pub(crate) mod matching;

/// Ends the key of an http URL.
const HTTP: u8 = 0x01;
/// Ends the key of an https URL.
const HTTPS: u8 = 0x02;
/// Ends the key of an unusual URL.
const UNUSUAL: u8 = 0x03;
/// Comes before the port. In unusual keys, comes before a byte that is moved.
const MARK: u8 = 0x04;
/// Added to a byte after [`MARK`] in unusual keys.
const MOVED: u8 = 0x10;

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
        return unusual(url, out);
    };
    out.reserve(url.len() + 3);
    let mut labels = components.host.as_bytes();
    if is_ipv4(components.host, '.') {
        out.extend(labels.iter().map(|&byte| if byte == b'.' { b',' } else { byte }));
        out.push(b',');
    } else {
        // The standard library's search from the right is slower for texts as short as labels.
        while let Some(dot) = labels.iter().rposition(|&byte| byte == b'.') {
            out.extend_from_slice(&labels[dot + 1..]);
            out.push(b',');
            labels = &labels[..dot];
        }
        out.extend_from_slice(labels);
        out.push(b',');
    }
    out.push(b')');
    out.extend_from_slice(components.path.as_bytes());
    if let Some(port) = components.port {
        out.push(MARK);
        out.extend_from_slice(port.as_bytes());
    }
    out.push(components.end);
}

/// The URL of a key; `None` if the bytes are not the key of any text.
pub fn url_of_key(key: &[u8]) -> Option<String> {
    let url = match key {
        [b'!', text @ .., UNUSUAL] => {
            let mut url = Vec::with_capacity(text.len());
            let mut bytes = text.iter();
            while let Some(&byte) = bytes.next() {
                url.push(if byte == MARK { bytes.next()?.checked_sub(MOVED)? } else { byte });
            }
            String::from_utf8(url).ok()?
        }
        [text @ .., end @ (HTTP | HTTPS)] => {
            let text = std::str::from_utf8(text).ok()?;
            let (labels, path) = text.split_once(",)")?;
            let mut url = String::with_capacity(key.len() + 8);
            url.push_str(if *end == HTTP { "http://" } else { "https://" });
            if is_ipv4(labels, ',') {
                url.extend(labels.chars().map(|letter| if letter == ',' { '.' } else { letter }));
            } else {
                for (at, label) in labels.rsplit(',').enumerate() {
                    url.push_str(if at > 0 { "." } else { "" });
                    url.push_str(label);
                }
            }
            match path.split_once(char::from(MARK)) {
                Some((path, port)) => url.extend([":", port, path]),
                None => url.push_str(path),
            }
            url
        }
        _ => return None,
    };
    let mut again = Vec::new();
    self::key(&url, &mut again);
    (again == key).then_some(url)
}

/// The common beginning of the keys of all URLs that begin with this URL, with any scheme and port (both are at the end
/// of a key).
pub fn url_prefix(url: &str) -> Vec<u8> {
    let mut out = key_of(url);
    out.pop();
    let digits = out.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    if out.len() > digits && out[out.len() - digits - 1] == MARK {
        out.truncate(out.len() - digits - 1);
    }
    out
}

/// The host of a URL, or of the beginning of a URL. `None` if there is no host, or if the URL has user info.
pub fn host_of(url: &str) -> Option<&str> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let port = authority.rfind(':').filter(|_| !authority.ends_with(']')).unwrap_or(authority.len());
    Some(&authority[..port]).filter(|host| !host.is_empty() && !authority.contains('@'))
}

/// The common beginning of the keys of all URLs of a host; `None` for a host without usual keys.
pub fn host_prefix(host: &str) -> Option<Vec<u8>> {
    let mut out = key_of(&format!("http://{host}/"));
    let is_host = out[0] != b'!' && out.ends_with(&[b')', b'/', HTTP]) && !host.contains(['/', ':', '?']);
    out.truncate(out.len() - 2);
    is_host.then_some(out)
}

/// The name of the host that a URL counts for; empty if there is none. A URL with an unusual key, for example of ftp,
/// counts for no host, since its key is not among the keys of the host.
pub fn counted_host(url: &str) -> &str {
    Components::of(url).map_or("", |components| components.host)
}

/// The common beginning of the keys of all URLs that count for a host, by its name from [`counted_host`]. Only unusual
/// keys begin with "!".
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

/// The components of a usual URL.
struct Components<'a> {
    host: &'a str,
    port: Option<&'a str>,
    path: &'a str,
    end: u8,
}

impl<'a> Components<'a> {
    fn of(url: &'a str) -> Option<Self> {
        let (rest, end) = match url.strip_prefix("http://") {
            Some(rest) => (rest, HTTP),
            None => (url.strip_prefix("https://")?, HTTPS),
        };
        let (host, after) = rest.split_at(rest.bytes().position(|byte| !IN_HOST[usize::from(byte)])?);
        let (port, path) = match after.strip_prefix(':') {
            None => (None, after),
            Some(after) => {
                let (port, path) = after.split_at(after.bytes().position(|byte| !byte.is_ascii_digit())?);
                (Some(port), path)
            }
        };
        // The least byte, without a branch for each.
        let least = path.bytes().fold(u8::MAX, u8::min);
        let usual = !host.is_empty() && port != Some("") && path.starts_with('/') && least > MARK;
        usual.then_some(Self { host, port, path, end })
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

fn unusual(url: &str, out: &mut Vec<u8>) {
    out.reserve(url.len() + 2);
    out.push(b'!');
    for byte in url.bytes() {
        if byte <= MARK {
            out.extend([MARK, byte + MOVED]);
        } else {
            out.push(byte);
        }
    }
    out.push(UNUSUAL);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// URLs in the order of their keys.
    const ORDERED: &[&str] = &[
        "ftp://example.com/",
        "http://[::1]/",
        "http://a,b.com/",
        "http://user@example.com/",
        "mailto:a@example.com",
        "http://192.0.2.7/",
        "http://192.0.2.7/a",
        "http://192.0.2.8/",
        "http://example.com/",
        "https://example.com/",
        "http://example.com:8080/",
        "https://example.com:8443/",
        "http://example.com/!x",
        "http://example.com/a",
        "https://example.com/a",
        "http://example.com:81/a",
        "http://example.com/a/",
        "http://example.com/a?b",
        "http://www.example.com/",
        "http://a.www.example.com/",
        "http://example-foo.com/",
        "http://example.org/",
        "http://a_b.example.org/",
    ];

    #[test]
    fn hosts_are_found_in_urls() {
        let hosts = [
            ("http://example.com", Some("example.com")),
            ("https://example.com:81/a:b@c", Some("example.com")),
            ("example.com?a/b", Some("example.com")),
            ("http://[::1]:80/", Some("[::1]")),
            ("http://[::1]/", Some("[::1]")),
            ("http://user:word@example.com/", None),
            ("mailto:a@example.com", None),
            ("http:///a", None),
            ("", None),
        ];
        hosts.into_iter().for_each(|(url, host)| assert_eq!(host_of(url), host, "{url}"));
    }

    #[test]
    fn a_url_counts_for_one_host() {
        let urls = [
            "http://example.com/a",
            "https://example.com:81/b?c",
            "http://www.example.com/",
            "http://[::1]:80/",
            "http://192.0.2.7/",
            "http://user@example.com/",
            "http://-/",
            "mailto:a@example.com",
            "",
            "ftp://example.com/a",
            "http://example.com",
        ];
        assert_eq!(urls.map(counted_host)[..3], ["example.com", "example.com", "www.example.com"]);
        assert_eq!(urls.map(counted_host)[5..], ["", "-", "", "", "", ""]);
        for (one, other) in urls.iter().flat_map(|one| urls.map(|other| (one, other))) {
            let is_counted = key_of(one).starts_with(&counted_prefix(counted_host(other)));
            assert_eq!(is_counted, counted_host(one) == counted_host(other), "{one} {other}");
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
            "http://user@example.com/a",
        ];
        let begins = |prefix: &[u8]| urls.map(|url| key_of(url).starts_with(prefix));
        assert_eq!(begins(&host_prefix("example.com").unwrap()), [true, true, false, false, false, false]);
        assert_eq!(begins(&domain_prefix("example.com").unwrap()), [true, true, true, false, false, false]);
        assert_eq!(begins(&url_prefix("https://example.com:1/a/")), [true, true, false, false, false, false]);
        assert_eq!(begins(&host_prefix("192.0.2.7").unwrap()), [false, false, false, false, true, false]);
        assert_eq!(begins(&url_prefix("http://user@example.com/")), [false, false, false, false, false, true]);
        for host in ["user@example.com", "example.com/a", "example.com:80", ""] {
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
