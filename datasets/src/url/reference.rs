//! References of pages and links: the length limit and the base URL. [`webstrata_url`] defines canonical URLs.

use crate::Finding;
use url::Url;
use webstrata_url::{NotAUrl, canonical, is_web};

/// The default limit of the bytes of a URL: browsers and servers refuse most longer URLs.
pub const URL_BYTES: usize = 64 << 10;

/// The largest limit that an option may set.
pub const URL_BYTES_MAX: usize = 1 << 20;

/// The number of bytes that a reader keeps of a text that may be a URL. A text of this length is longer than any URL
/// that is kept, so the code that reads it finds the text too long.
pub(crate) const TEXT_BYTES_MAX: usize = URL_BYTES_MAX + 8;

/// Removes an incomplete character from the end of a text that starts at `start`, if the text was cut to
/// [`TEXT_BYTES_MAX`] bytes.
pub(crate) fn cut_to_text(text: &mut Vec<u8>, start: usize) {
    if text.len() - start >= TEXT_BYTES_MAX
        && let Err(error) = str::from_utf8(&text[start..])
        && error.error_len().is_none()
    {
        text.truncate(start + error.valid_up_to());
    }
}

/// As [`canonical`], for URLs of at most `bytes_max` bytes, both as spelt and as the result. A longer text is not
/// parsed.
///
/// # Errors
/// As [`canonical`]. [`Finding::LongLink`] for a longer URL, unless its scheme is neither http nor https.
pub(crate) fn canonical_within(base: Option<&Url>, reference: &str, bytes_max: usize) -> Result<String, Finding> {
    if reference.len() > bytes_max {
        return Err(if has_other_scheme(reference) { Finding::OtherLinkScheme } else { Finding::LongLink });
    }
    canonical(base, reference)
        .map_err(Finding::from)
        .and_then(|url| if url.len() > bytes_max { Err(Finding::LongLink) } else { Ok(url) })
}

/// Whether a reference begins with a scheme other than http and https, according to its first letters.
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

/// The URL that the references of a page are relative to: its `<base>` resolved against the URL of the page. Without a
/// `<base>`, or if the `<base>` cannot be a base, this is the URL of the page (the rule of HTML).
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

impl From<NotAUrl> for Finding {
    fn from(error: NotAUrl) -> Self {
        match error {
            NotAUrl::Unparsable => Finding::BadLink,
            NotAUrl::OtherScheme => Finding::OtherLinkScheme,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
