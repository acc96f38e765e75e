//! Identity of a URL: the WHATWG serialisation without the fragment, http and https only.
//!
//! Nothing else is merged: `http://a/`, `https://a/`, `http://www.a/` and `http://a/?` are four URLs. White space at the
//! ends and tabs and line ends inside are dropped by the WHATWG parser, as browsers do with an `href`.
//!
//! The parser of the `url` crate is behind the standard in one thing: a `^` in a path is escaped since 2024.
//!
//! Reads a reference as a page spells it, writes an absolute URL. The result is a fixed point: it is its own canonical text.

use crate::Finding;
use url::Url;

/// The canonical text of a reference, resolved against `base` where there is one.
///
/// # Errors
/// [`Finding::BadLink`] where it does not parse (a relative reference without a base does not),
/// [`Finding::OtherLinkScheme`] where it is neither http nor https.
pub fn canonical(base: Option<&Url>, reference: &str) -> Result<String, Finding> {
    if is_plain(reference) {
        return Ok(reference.to_owned());
    }
    let mut url = Url::options().base_url(base).parse(reference).map_err(|_| Finding::BadLink)?;
    if !is_web(&url) {
        return Err(Finding::OtherLinkScheme);
    }
    url.set_fragment(None);
    if url.path().contains('^') {
        let path = url.path().replace('^', "%5E");
        url.set_path(&path);
    }
    Ok(url.into())
}

/// Bytes of a URL, where nothing else is asked for: browsers and servers refuse most that are longer.
pub const URL_BYTES: usize = 64 << 10;

/// The most that may be asked for.
pub const URL_BYTES_MAX: usize = 1 << 20;

/// As [`canonical`], for URLs of at most `bytes_max` bytes, as spelt and as the result. A longer text is not parsed.
///
/// # Errors
/// As [`canonical`]; [`Finding::LongLink`] for what is longer, if its scheme is not another one.
pub(crate) fn canonical_within(base: Option<&Url>, reference: &str, bytes_max: usize) -> Result<String, Finding> {
    if reference.len() > bytes_max {
        return Err(if has_other_scheme(reference) { Finding::OtherLinkScheme } else { Finding::LongLink });
    }
    canonical(base, reference).and_then(|url| if url.len() > bytes_max { Err(Finding::LongLink) } else { Ok(url) })
}

/// Whether a reference begins with a scheme, and neither http nor https, told by its first letters.
fn has_other_scheme(reference: &str) -> bool {
    const SCHEME_BYTES_MAX: usize = 64;
    let head = &reference.as_bytes()[..reference.len().min(SCHEME_BYTES_MAX)];
    let Some(colon) = memchr::memchr(b':', head) else { return false };
    let scheme = head[..colon].trim_ascii_start();
    scheme.first().is_some_and(u8::is_ascii_alphabetic)
        && scheme.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte))
        && !scheme.eq_ignore_ascii_case(b"http")
        && !scheme.eq_ignore_ascii_case(b"https")
}

/// Whether a reference is a canonical URL of the most common kind, told without parsing: an absolute one of lower-case
/// labels, with a path, without port, escapes, dots after slashes, or anything else that might be rewritten.
fn is_plain(reference: &str) -> bool {
    let rest = reference.strip_prefix("http://").or_else(|| reference.strip_prefix("https://"));
    let Some((host, path)) = rest.and_then(|rest| rest.split_at_checked(rest.find('/')?)) else { return false };
    let label = |label: &str| {
        let letters = label.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
        letters && !label.is_empty() && !label.starts_with("xn--")
    };
    // A host whose last label begins like a number may be an address.
    let is_name =
        host.rsplit('.').next().is_some_and(|last| last.starts_with(|first: char| first.is_ascii_lowercase()));
    const KEPT: &[u8] = b"-_.~!$&()*+,;=:@/?";
    is_name
        && host.split('.').all(label)
        && path.bytes().all(|byte| byte.is_ascii_alphanumeric() || KEPT.contains(&byte))
        && !path.contains("/.")
}

/// The URL that the references of a page are relative to: its `<base>` resolved against its own URL, or its own URL
/// where there is no `<base>`, or none that can be a base (the rule of HTML).
///
/// # Errors
/// [`Finding::BadPageUrl`] or [`Finding::OtherPageScheme`].
pub(crate) fn base_of(page_url: &str, base_href: &str) -> Result<Url, Finding> {
    let page = Url::parse(page_url).map_err(|_| Finding::BadPageUrl)?;
    if !is_web(&page) {
        return Err(Finding::OtherPageScheme);
    }
    if base_href.is_empty() {
        return Ok(page);
    }
    match page.join(base_href) {
        Ok(base) if !base.cannot_be_a_base() => Ok(base),
        _ => Ok(page),
    }
}

fn is_web(url: &Url) -> bool {
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

    /// The percent-encode sets of the standard (WHATWG URL 1.3), all of ASCII in every part of a URL.
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

    #[test]
    fn rejects_say_why() {
        assert_eq!(canonical(None, "page.html"), Err(Finding::BadLink));
        assert_eq!(canonical(None, "http://"), Err(Finding::BadLink));
        assert_eq!(canonical(None, "http://a%2fb/"), Err(Finding::BadLink));
        assert_eq!(canonical(None, "mailto:a@example.com"), Err(Finding::OtherLinkScheme));
        assert_eq!(canonical(None, "ftp://example.com/"), Err(Finding::OtherLinkScheme));
    }

    #[test]
    fn long_urls_are_told_apart_from_other_schemes() {
        let long = |start: &str| format!("{start}{}", "x".repeat(100));
        let within = |reference: &str| canonical_within(None, reference, 64);
        assert_eq!(within("http://a.example/").as_deref(), Ok("http://a.example/"));
        assert_eq!(within(&long("http://a.example/")), Err(Finding::LongLink));
        assert_eq!(within(&long("HTTPS://a.example/")), Err(Finding::LongLink));
        assert_eq!(within(&long("a/b:")), Err(Finding::LongLink));
        assert_eq!(within(&long("data:text/html,")), Err(Finding::OtherLinkScheme));
        let base = Url::parse(&format!("http://a.example/{}/", "x".repeat(50))).unwrap();
        assert_eq!(canonical_within(Some(&base), "b", 64), Err(Finding::LongLink), "what it comes to counts");
        assert_eq!(canonical_within(Some(&base), "/b", 64).as_deref(), Ok("http://a.example/b"));
    }

    #[test]
    fn a_base_that_cannot_be_one_is_passed_over() {
        let base = |href| base_of("http://example.com/a/b", href).map(String::from);
        assert_eq!(base("../c/").as_deref(), Ok("http://example.com/c/"));
        assert_eq!(base("mailto:me").as_deref(), Ok("http://example.com/a/b"));
        assert_eq!(base("http://").as_deref(), Ok("http://example.com/a/b"));
        assert_eq!(base_of("page", ""), Err(Finding::BadPageUrl));
        assert_eq!(base_of("dns:example.com", ""), Err(Finding::OtherPageScheme));
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
