//! Canonical URLs, and the URLs that a person may mean. Readers, queries and servers all use these rules.
//!
//! The canonical form is the WHATWG serialisation without the fragment, for http and https URLs only. No other URLs are
//! merged: `http://a/`, `https://a/`, `http://www.a/` and `http://a/?` are four URLs. The WHATWG parser drops white
//! space at the ends, and tabs and line ends inside, as browsers do with an `href`.
//!
//! A crawl file has a URL as bytes. [`spelt`] makes a text of the bytes, by one rule for all files.
//!
//! The parser of the `url` crate differs from the standard in two points, which [`canonical`] mends: since 2024 a `^`
//! in a path is escaped, and a relative reference may begin with more than two slashes.
//!
//! ```
//! use webstrata_url::{canonical, meant};
//! assert_eq!(canonical(None, "HTTP://Example.org:80/a/../b#top").as_deref(), Ok("http://example.org/b"));
//! assert_eq!(meant("example.org").unwrap(), ["http://example.org/", "https://example.org/"]);
//! ```

mod domain;
mod surt;

pub use domain::{SUFFIX_LIST, domain_of, reversed};
use std::borrow::Cow;
use std::fmt::Write;
pub use surt::surt;
use url::Url;

/// Why a text is not a URL of the web.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAUrl {
    /// The text does not parse; a relative reference without a base does not parse.
    #[error("not a URL")]
    Unparsable,
    /// The scheme is neither http nor https.
    #[error("neither an http nor an https URL")]
    OtherScheme,
}

/// The canonical text of a reference, resolved against `base` if there is a base. The canonical text of a canonical
/// text is the same text.
///
/// # Errors
/// [`NotAUrl::Unparsable`] if the reference does not parse (a relative reference without a base does not parse), and
/// [`NotAUrl::OtherScheme`] if the scheme is neither http nor https.
///
/// ```
/// use webstrata_url::{NotAUrl, canonical};
///
/// let page = url::Url::parse("http://example.org/news/index.html")?;
/// assert_eq!(canonical(Some(&page), "../about#team").as_deref(), Ok("http://example.org/about"));
/// assert_eq!(canonical(None, "../about"), Err(NotAUrl::Unparsable));
/// assert_eq!(canonical(None, "mailto:someone@example.org"), Err(NotAUrl::OtherScheme));
/// # Ok::<(), url::ParseError>(())
/// ```
pub fn canonical(base: Option<&Url>, reference: &str) -> Result<String, NotAUrl> {
    if is_plain(reference) {
        return Ok(reference.to_owned());
    }
    let parsed = Url::options().base_url(base).parse(reference);
    let mut url = parsed.or_else(|error| of_slashes(base, reference).unwrap_or(Err(error)))?;
    if !is_web(&url) {
        return Err(NotAUrl::OtherScheme);
    }
    url.set_fragment(None);
    if url.path().contains('^') {
        let path = url.path().replace('^', "%5E");
        url.set_path(&path);
    }
    Ok(url.into())
}

/// Parses a relative reference that begins with more than two slashes: the host follows the last of them (WHATWG URL,
/// special authority ignore slashes state). `None` if the reference has another form.
fn of_slashes(base: Option<&Url>, reference: &str) -> Option<Result<Url, url::ParseError>> {
    let is_dropped = |letter: char| matches!(letter, '\t' | '\n' | '\r');
    let is_slash = |letter: char| matches!(letter, '/' | '\\') || is_dropped(letter);
    let text = reference.trim_start_matches(|letter: char| letter <= ' ');
    let rest = text.trim_start_matches(is_slash);
    let slashes = text[..text.len() - rest.len()].chars().filter(|&letter| !is_dropped(letter)).count();
    let base = base.filter(|base| slashes > 2 && is_web(base))?;
    Some(base.join(&format!("//{rest}")))
}

/// The text of a URL that a file has as bytes. Bytes that are not UTF-8 are percent-encoded as they are: the byte says
/// more than U+FFFD would, which makes one URL of many.
///
/// ```
/// assert_eq!(webstrata_url::spelt(b"http://example.org/caf\xe9"), "http://example.org/caf%E9");
/// assert_eq!(webstrata_url::spelt("http://example.org/café".as_bytes()), "http://example.org/café");
/// ```
#[must_use]
pub fn spelt(bytes: &[u8]) -> Cow<'_, str> {
    let bytes = match std::str::from_utf8(bytes) {
        Ok(text) => return Cow::Borrowed(text),
        Err(_) => bytes,
    };
    let mut text = String::with_capacity(bytes.len() + 8);
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    Cow::Owned(text)
}

/// The URLs that a person may mean by `text`: one URL, or if the scheme is missing, the URLs with http and with https.
///
/// # Errors
/// The text is not a URL, neither with http before it nor without.
pub fn meant(text: &str) -> Result<Vec<String>, NotAUrl> {
    let bare = text.trim();
    match bare {
        "" => Err(NotAUrl::Unparsable),
        _ if bare.contains("://") => Ok(vec![canonical(None, bare)?]),
        _ => ["http", "https"].iter().map(|scheme| canonical(None, &format!("{scheme}://{bare}"))).collect(),
    }
}

/// Whether a text names only a host: it has no path after the host. In a question about backlinks, such a text means
/// the whole domain.
///
/// ```
/// use webstrata_url::is_name;
///
/// assert!(is_name("example.org"));
/// assert!(!is_name("example.org/about"));
/// ```
#[must_use]
pub fn is_name(text: &str) -> bool {
    let bare = text.trim().trim_end_matches('/');
    !bare.is_empty() && !bare.contains(['/', '?', '#'])
}

/// The same URLs with the other scheme, with and without `www.`, and with and without a slash at the end.
///
/// ```
/// let others = webstrata_url::other_spellings(&["http://example.org/a".to_owned()]);
/// assert!(others.contains(&"https://www.example.org/a/".to_owned()));
/// assert!(!others.contains(&"http://example.org/a".to_owned()));
/// ```
#[must_use]
pub fn other_spellings(urls: &[String]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for (_, rest) in urls.iter().filter_map(|url| url.split_once("://")) {
        let www = rest.strip_prefix("www.").map_or_else(|| format!("www.{rest}"), str::to_owned);
        for rest in [rest, &www] {
            let slash = rest.strip_suffix('/').map_or_else(|| format!("{rest}/"), str::to_owned);
            all.extend(
                [rest, &slash].iter().flat_map(|rest| ["http", "https"].map(|scheme| format!("{scheme}://{rest}"))),
            );
        }
    }
    all.retain(|url| !urls.contains(url) && canonical(None, url).as_ref() == Ok(url));
    all
}

/// Whether a reference is a canonical URL of the most common kind, without parsing: an absolute URL of lower-case
/// labels with a path, without port, escapes, dots after slashes, or any character that might be rewritten.
fn is_plain(reference: &str) -> bool {
    let rest = reference.strip_prefix("http://").or_else(|| reference.strip_prefix("https://"));
    let Some((host, path)) = rest.and_then(|rest| rest.split_at_checked(rest.find('/')?)) else { return false };
    let label = |label: &str| {
        let letters = label.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
        letters && !label.is_empty() && !label.starts_with("xn--")
    };
    // If the last label of a host begins with a digit, the host may be an address.
    let is_name =
        host.rsplit('.').next().is_some_and(|last| last.starts_with(|first: char| first.is_ascii_lowercase()));
    const KEPT: &[u8] = b"-_.~!$&()*+,;=:@/?";
    is_name
        && host.split('.').all(label)
        && path.bytes().all(|byte| byte.is_ascii_alphanumeric() || KEPT.contains(&byte))
        && !path.contains("/.")
}

impl From<url::ParseError> for NotAUrl {
    fn from(_: url::ParseError) -> Self {
        NotAUrl::Unparsable
    }
}

/// Whether stores keep URLs with the scheme of this URL.
pub fn is_web(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn identity_keeps_all_but_the_fragment() {
        for (reference, expected) in [
            ("HTTP://Example.COM:80/%7ea/../b?x=1#top", "http://example.com/b?x=1"),
            ("https://example.com", "https://example.com/"),
            ("http://example.com/?", "http://example.com/?"),
            (" http://example.com/a\n b ", "http://example.com/a%20b"),
            ("http://bücher.example/", "http://xn--bcher-kva.example/"),
            ("http://example.com//a//", "http://example.com//a//"),
            ("http:\\\\example.com\\a", "http://example.com/a"),
            ("http://u:p@example.com/", "http://u:p@example.com/"),
        ] {
            assert_eq!(canonical(None, reference).as_deref(), Ok(expected), "{reference}");
        }
    }

    /// Checks the percent-encode sets of the standard (WHATWG URL 1.3): all of ASCII in every part of a URL.
    #[test]
    fn what_is_escaped_is_what_the_standard_says() {
        let controls = |letter: char| letter <= '\x1f' || letter > '~';
        let query = |letter| controls(letter) || " \"#<>'".contains(letter);
        let path = |letter| controls(letter) || " \"#<>?^`{}".contains(letter);
        let user = |letter| path(letter) || "/:;=@[\\]|".contains(letter);
        for letter in ('\0'..='\x7f').chain(['\u{e9}']) {
            let escaped = |set: bool| match letter {
                '\u{e9}' => "%C3%A9".to_owned(),
                _ if set => format!("%{:02X}", u32::from(letter)),
                _ => letter.to_string(),
            };
            let dropped = matches!(letter, '\t' | '\n' | '\r');
            let text = |set| if dropped { String::new() } else { escaped(set) };
            let base = Url::parse("http://e.example/b^c/").unwrap();
            let canonical = |reference: &str| canonical(Some(&base), reference);
            if !matches!(letter, '#') {
                assert_eq!(
                    canonical(&format!("http://a/?x{letter}y")),
                    Ok(format!("http://a/?x{}y", text(query(letter))))
                );
            }
            if !matches!(letter, '#' | '?' | '\\') {
                assert_eq!(
                    canonical(&format!("http://a/x{letter}y")),
                    Ok(format!("http://a/x{}y", text(path(letter))))
                );
            }
            if !matches!(letter, '#' | '?' | '\\' | ':') {
                let relative = format!("http://e.example/b%5Ec/x{}y", text(path(letter)));
                assert_eq!(canonical(&format!("x{letter}y")), Ok(relative));
            }
            if !matches!(letter, '#' | '?' | '\\' | '/' | ':' | '@') {
                assert_eq!(
                    canonical(&format!("http://x{letter}y@a/")),
                    Ok(format!("http://x{}y@a/", text(user(letter))))
                );
                assert_eq!(
                    canonical(&format!("http://x:y{letter}z@a/")),
                    Ok(format!("http://x:y{}z@a/", text(user(letter))))
                );
            }
        }
    }

    #[test]
    fn plain_urls_are_what_the_parser_makes_of_them() {
        for plain in ["http://a.example/", "https://www.example.org/a/b-c_d.html?x=1&y=2/3?", "http://localhost/a..b//"]
        {
            assert!(is_plain(plain), "{plain}");
        }
        for other in [
            "http://a.example",
            "http://a.example/../b",
            "http://a.example/%2e%2e/b",
            "http://a.example/a#b",
            "http://a.example:80/",
            "http://192.0.2.7/",
            "http://a.0x7f/",
            "http://xn--a/",
            "http://a..b/",
            "http://a.example/it's",
            "HTTP://a.example/",
            "http:///a",
            "//a.example/",
        ] {
            assert!(!is_plain(other), "{other}");
        }
    }

    #[test]
    fn references_resolve_against_the_base() {
        let base = Url::parse("http://example.com/dir/page.html?q").unwrap();
        for (reference, expected) in [
            ("", "http://example.com/dir/page.html?q"),
            ("#x", "http://example.com/dir/page.html?q"),
            ("?r", "http://example.com/dir/page.html?r"),
            ("a", "http://example.com/dir/a"),
            ("http:a", "http://example.com/dir/a"),
            ("../../../a", "http://example.com/a"),
            ("//other.example", "http://other.example/"),
        ] {
            assert_eq!(canonical(Some(&base), reference).as_deref(), Ok(expected), "{reference}");
        }
    }

    /// Slashes before a host may be any number, and either slash (WHATWG URL, special authority ignore slashes state).
    #[test]
    fn slashes_before_a_host_may_be_many() {
        let bases = ["http://a.example/dir/page", "https://a.example/dir/page"].map(|base| Url::parse(base).unwrap());
        let [plain, secure] = &bases;
        for slashes in [
            "//",
            "///",
            "////",
            "\\\\",
            "/\\",
            "\\/",
            "/\\/",
            "//\\",
            "\\//",
            "\\\\\\",
            " \t//\n/",
            "/\t/",
            "/\r\n//\t\\",
        ] {
            for (rest, expected) in
                [("b.example/y", "b.example/y"), ("b.example:81", "b.example:81/"), ("u@b\\c", "u@b/c")]
            {
                let reference = format!("{slashes}{rest}");
                assert_eq!(canonical(Some(plain), &reference), Ok(format!("http://{expected}")), "{reference:?}");
                assert_eq!(canonical(Some(secure), &reference), Ok(format!("https://{expected}")), "{reference:?}");
                assert_eq!(canonical(None, &reference), Err(NotAUrl::Unparsable), "{reference:?}");
            }
            let absolute = format!("http:{}b.example/y", slashes.trim_start_matches(' '));
            for base in [None, Some(plain), Some(secure)] {
                assert_eq!(canonical(base, &absolute).as_deref(), Ok("http://b.example/y"), "{absolute:?}");
            }
        }
        for (reference, of_plain, of_secure) in [
            ("http:b", "http://a.example/dir/b", "http://b/"),
            ("http:/b", "http://a.example/b", "http://b/"),
            ("http:\\b", "http://a.example/b", "http://b/"),
            ("h\ntt\tp:b", "http://a.example/dir/b", "http://b/"),
            ("https:/b", "https://b/", "https://a.example/b"),
            ("http:", "http://a.example/dir/page", ""),
            ("http:?q", "http://a.example/dir/page?q", ""),
            ("http:#f", "http://a.example/dir/page", ""),
            ("///", "", ""),
            ("///?q", "", ""),
            ("////#b", "", ""),
            ("///:80/", "", ""),
        ] {
            for (base, expected) in [(plain, of_plain), (secure, of_secure)] {
                let expected = Some(expected).filter(|text| !text.is_empty()).ok_or(NotAUrl::Unparsable);
                assert_eq!(
                    canonical(Some(base), reference).as_deref().map_err(|error| *error),
                    expected,
                    "{reference:?}"
                );
            }
        }
    }

    #[test]
    fn bytes_that_are_not_utf8_stay_what_they_are() {
        for (bytes, text) in [
            (&b"http://a/\xe9"[..], "http://a/%E9"),
            (b"http://a/\xe8?\xff\x80#\xc3", "http://a/%E8?%FF%80#%C3"),
            ("http://a/é\u{fffd}".as_bytes(), "http://a/é\u{fffd}"),
            (b"\xc3\xa9\xe9\xc3\xa9", "é%E9é"),
            (b"\xed\xa0\x80", "%ED%A0%80"),
            (b"\xf0\x9f\x98", "%F0%9F%98"),
            (b"", ""),
        ] {
            assert_eq!(spelt(bytes), text, "{bytes:?}");
            assert_eq!(matches!(spelt(bytes), Cow::Borrowed(_)), std::str::from_utf8(bytes).is_ok());
        }
        // As if each byte had been escaped.
        let url = canonical(None, &spelt(b"http://a.example/\xe9?\xc3\xa9=\xe9"));
        assert_eq!(url.as_deref(), Ok("http://a.example/%E9?%C3%A9=%E9"));
        assert_eq!(canonical(None, &spelt(b"http://\xe9.example/")), Err(NotAUrl::Unparsable));
    }

    #[test]
    fn rejects_say_why() {
        assert_eq!(canonical(None, "page.html"), Err(NotAUrl::Unparsable));
        assert_eq!(canonical(None, "http://"), Err(NotAUrl::Unparsable));
        assert_eq!(canonical(None, "http://a%2fb/"), Err(NotAUrl::Unparsable));
        assert_eq!(canonical(None, "mailto:a@example.com"), Err(NotAUrl::OtherScheme));
        assert_eq!(canonical(None, "ftp://example.com/"), Err(NotAUrl::OtherScheme));
    }

    proptest! {
        #[test]
        fn what_is_told_without_parsing_is_so(
            url in "https?://[a-z0-9.-]{1,12}(/[a-zA-Z0-9._~!$&()*+,;=:@/?'%#-]{0,20})?",
            other in "(http|https)://.{0,20}",
        ) {
            for url in [url, other] {
                if is_plain(&url) {
                    prop_assert_eq!(Url::parse(&url).map(String::from), Ok(url));
                }
            }
        }
    }

    #[test]
    fn a_missing_scheme_is_both() {
        assert_eq!(meant(" Example.org/a#b ").unwrap(), ["http://example.org/a", "https://example.org/a"]);
        assert_eq!(meant("HTTPS://example.org").unwrap(), ["https://example.org/"]);
        for (text, name) in [
            ("example.org", true),
            (" example.org:8080/ ", true),
            ("example.org/a", false),
            ("example.org?a", false),
            ("http://example.org/", false),
            ("", false),
        ] {
            assert_eq!(is_name(text), name, "{text:?}");
        }
        for text in ["", " ", "ftp://example.org/", "http://", "http://a b/", "exa mple"] {
            assert!(meant(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn other_spellings_are_of_one_address() {
        let near = other_spellings(&["http://example.org/a".to_owned()]);
        for url in ["https://example.org/a", "http://www.example.org/a", "http://example.org/a/"] {
            assert!(near.iter().any(|found| found == url), "{url} in {near:?}");
        }
        assert!(!near.iter().any(|found| found == "http://example.org/a"));
    }

    proptest! {
        #[test]
        fn canonical_text_is_a_fixed_point(tail in "[ -~é\t]{0,40}") {
            if let Ok(url) = canonical(None, &format!("http://{tail}")) {
                prop_assert_eq!(canonical(None, &url), Ok(url.clone()));
                prop_assert!(!url.contains('#'));
            }
        }
    }
}
