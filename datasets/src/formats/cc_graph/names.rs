//! Names of hosts in web graphs: their labels are reversed, a leading `www` may count or not, and each has a page.

use crate::capture::dictionary::HostUrls;
use crate::{Finding, Tally, Www};
use webstrata_url::reversed;

/// The most bytes of a name.
const NAME_BYTES_MAX: usize = 1000;
/// [`page`] adds 8 bytes to a name.
const _: () = assert!(NAME_BYTES_MAX + 8 <= HostUrls::BYTES_MAX);
/// The end of a reversed name of a host that folding changes.
const LABEL: &str = ".www";

/// A reversed name without the `www` that folding leaves out, if folding changes the name: its last label is `www`, and
/// it has more than two. Only one label is left out, as in the releases that Common Crawl has folded: `www.www.a.org`
/// is the host `www.a.org`.
pub(crate) fn folded(name: &str, www: Www) -> Option<&str> {
    name.strip_suffix(LABEL).filter(|rest| www == Www::Fold && rest.contains('.'))
}

/// The URL of the page of a host. Counts the host if it was folded.
///
/// # Errors
/// No host can have the name.
pub(crate) fn url(name: &[u8], www: Www, tally: &mut Tally) -> Result<String, (Finding, String)> {
    let name = checked(name)?;
    let short = folded(name, www);
    tally.count_many(Finding::FoldedHost, u64::from(short.is_some()));
    Ok(page(short.unwrap_or(name)))
}

/// The URL of the page of the host with a reversed name.
pub(crate) fn page(name: &str) -> String {
    format!("http://{}/", reversed(name))
}

/// The text of a name.
///
/// # Errors
/// No host can have the name. Before 2022, names that are not ASCII have question marks.
pub(crate) fn checked(name: &[u8]) -> Result<&str, (Finding, String)> {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || !byte.is_ascii() || b".-_[:]".contains(&byte);
    let is_name = |name: &&str| name.len() <= NAME_BYTES_MAX && name.bytes().all(is_letter);
    let text = str::from_utf8(name).ok().filter(|name| !name.is_empty()).filter(is_name);
    text.ok_or_else(|| (Finding::BadHost, format!("not a name of a host: {}", name.escape_ascii())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_www_is_folded_if_a_host_remains() {
        for (name, short) in [
            ("com.example.www", Some("com.example")),
            ("com.example.www.www", Some("com.example.www")),
            ("com.www.www", Some("com.www")),
            ("com.www", None),
            ("com.example.wwww", None),
            ("com.example", None),
            ("www", None),
        ] {
            assert_eq!((folded(name, Www::Fold), folded(name, Www::Keep)), (short, None), "{name}");
        }
    }

    #[test]
    fn names_that_no_host_has() {
        for name in ["com.example", "com.b\u{fc}cher", "[::1]", "com.a_b", "com.xn--bcher-kva", "com..a"] {
            assert_eq!(checked(name.as_bytes()), Ok(name));
        }
        let long = "a".repeat(1001);
        for name in ["", "com.b?cher", "com.a/b", "com.a b", "com.a@b", "com.a%20", &long] {
            assert!(checked(name.as_bytes()).is_err_and(|(finding, _)| finding == Finding::BadHost), "{name}");
        }
        assert!(checked(b"com.\xff").is_err_and(|(_, detail)| detail.contains("\\xff")));
    }
}
