//! Which URLs match a URL: the options of every question about the URLs of a page, a path, a host or a domain.
//!
//! A pure rule on texts. It says how to find the URLs that match; the caller looks them up.

use super::{domain_prefix, host_of, host_prefix, url_prefix};
use crate::word::words;

/// Which URLs match a URL.
///
/// ```
/// use webstrata_layers::{Lookup, Match};
///
/// // All keys of a domain begin alike, so that its URLs are one interval of UIDs.
/// let domain = Match::Domain.lookup("http://www.example.org/a");
/// assert_eq!(domain, Some(Lookup::Keys(b"org,example,www,".to_vec())));
/// assert_eq!(Match::Exact.lookup("http://example.org/a"), Some(Lookup::Url));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Match {
    /// The URL itself.
    #[default]
    Exact,
    /// The URLs with the same urlkey: all spellings of the page.
    Surt,
    /// URLs that begin with the URL, with any scheme, port and user info.
    Prefix,
    /// URLs of the host.
    Host,
    /// URLs of the host and of all hosts below it.
    Domain,
}

/// How to find the URLs that match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// Look up the URL.
    Url,
    /// Look up the spellings of the page.
    Spellings,
    /// Scan the keys that begin with these bytes.
    Keys(Vec<u8>),
}

words!(Match { Exact = "exact", Surt = "surt", Prefix = "prefix", Host = "host", Domain = "domain" });

impl Match {
    /// The default for a question about backlinks: the domain for a name without a path, else the URL.
    #[must_use]
    pub fn unsaid(is_name: bool) -> Self {
        if is_name { Self::Domain } else { Self::Exact }
    }

    /// How to find the URLs that match a canonical URL. `None` for the host or the domain of a URL without a host name.
    #[must_use]
    pub fn lookup(self, url: &str) -> Option<Lookup> {
        match self {
            Self::Exact => Some(Lookup::Url),
            Self::Surt => Some(Lookup::Spellings),
            Self::Prefix => Some(Lookup::Keys(url_prefix(url))),
            Self::Host => named(url, host_prefix).map(Lookup::Keys),
            Self::Domain => named(url, domain_prefix).map(Lookup::Keys),
        }
    }

    /// The beginning of the keys of a target's own pages: the pages of its host. `None` if the URLs of the target are
    /// its own pages: for a host, a domain, and a URL without a host name.
    #[must_use]
    pub fn own_pages(self, url: &str) -> Option<Vec<u8>> {
        match self {
            Self::Exact | Self::Surt | Self::Prefix => named(url, host_prefix),
            Self::Host | Self::Domain => None,
        }
    }
}

/// The beginning of the keys for the host of a URL. The text may also be the name of the host, or a URL without a path.
fn named(url: &str, prefix: fn(&str) -> Option<Vec<u8>>) -> Option<Vec<u8>> {
    if let Some(host) = host_of(url) {
        return prefix(host);
    }
    let rest = ["http://", "https://"].iter().find_map(|scheme| url.strip_prefix(scheme)).unwrap_or(url);
    let authority = rest.split(['/', '?', '#']).next().filter(|authority| !authority.contains('@'))?;
    host_of(&format!("http://{authority}/")).and_then(prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(matched: Match, url: &str) -> Option<String> {
        match matched.lookup(url)? {
            Lookup::Keys(prefix) => String::from_utf8(prefix).ok(),
            Lookup::Url | Lookup::Spellings => None,
        }
    }

    #[test]
    fn keys_are_of_hosts_domains_and_paths() {
        let is = |matched, url, prefix: &str| assert_eq!(keys(matched, url).as_deref(), Some(prefix), "{url}");
        is(Match::Host, "https://example.com:81/a/b", "com,example,)");
        is(Match::Domain, "http://example.com/", "com,example,");
        is(Match::Prefix, "http://example.com/a", "com,example,)/a");
        is(Match::Prefix, "https://example.com:81/a", "com,example,)/a");
        is(Match::Host, "http://user@example.com:81/a", "com,example,)");
        is(Match::Domain, "http://user@www.example.com/a", "com,example,www,");
        is(Match::Host, "http://[::1]/a", "@5b@3a@3a1@5d,)");
        is(Match::Prefix, "http://[::1]:81/a", "@5b@3a@3a1@5d,)/a");
        is(Match::Host, "example.com:81", "com,example,)");
        is(Match::Domain, "https://[::1]:81", "@5b@3a@3a1@5d,");
        for url in ["", "http://", "?", "ftp://example.com/", "mailto:a@example.com"] {
            assert_eq!((Match::Host.lookup(url), Match::Domain.lookup(url)), (None, None), "{url}");
        }
    }

    #[test]
    fn own_pages_are_of_the_host_or_the_target_itself() {
        for matched in Match::ALL {
            let is_host = !matches!(matched, Match::Host | Match::Domain);
            let own = is_host.then(|| b"org,a,)".to_vec());
            assert_eq!(matched.own_pages("http://a.org/x"), own, "{}", matched.name());
            assert_eq!(matched.own_pages("http://user@a.org/x"), own, "{}", matched.name());
            assert_eq!(matched.own_pages("mailto:user@a.org"), None, "{}", matched.name());
        }
    }
}
