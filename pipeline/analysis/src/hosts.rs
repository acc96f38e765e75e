//! URLs folded into hosts, domains or paths: the group of each URL, and the UIDs of each group.
//!
//! A fold takes URLs in the spelling of the store. It returns names of groups ([`Fold::name_of`]) and, for a whole
//! store, numbers of groups by UID ([`UrlGroups`]). Domains are registrable domains ([`domain_of`]).
//!
//! In the order of keys, the URLs of a host or domain are adjacent in each row, and mostly those of a path, too.
//! [`UrlGroups`] therefore keeps stretches of UIDs, and its memory grows with the number of hosts and not of URLs. One
//! pass over the url layer.

use crate::Error;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use webstrata_engine::Job;
use webstrata_layers::record::key::{from_host, host_of};
use webstrata_layers::{Links, Reader, Uid};
use webstrata_url::domain_of;

/// The kind of groups that URLs are folded into.
///
/// ```
/// use webstrata_analysis::Fold;
///
/// let url = "http://news.example.co.uk/2008/06/page.html";
/// assert_eq!(Fold::Host.name_of(url), "news.example.co.uk");
/// assert_eq!(Fold::Domain.name_of(url), "example.co.uk");
/// assert_eq!("prefix:1".parse::<Fold>()?.name_of(url), "news.example.co.uk/2008/");
/// # Ok::<(), webstrata_analysis::FoldError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fold {
    /// Hosts as they are: `www.example.org` is not `example.org`.
    Host,
    /// Registrable domains.
    Domain,
    /// Hosts with this number of directories of the path.
    Prefix(usize),
}

/// A text that names no fold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a unit: {0:?}; write host, domain or prefix:N")]
pub struct FoldError(String);

impl Fold {
    /// Returns the name of the group of a URL. A URL without a host belongs to its scheme, such as `urn:`.
    pub fn name_of(self, url: &str) -> Cow<'_, str> {
        let Some(host) = host_of(url) else {
            let scheme = url.find(':').map_or(url.len(), |at| at + 1);
            return url[..scheme].into();
        };
        match self {
            Fold::Host => host.into(),
            Fold::Domain => domain_of(host).into(),
            Fold::Prefix(directories) => {
                let path = from_host(url).and_then(|rest| rest.split('?').next()).unwrap_or_default();
                let ends = path.match_indices('/').map(|(at, _)| at);
                // The first slash ends the host. The text after the last slash is not a directory.
                let cut = ends.take(directories + 1).last().map_or("", |end| &path[..end]);
                let from_path = cut.find('/').map_or("", |at| &cut[at..]);
                format!("{host}{from_path}/").into()
            }
        }
    }
}

impl FromStr for Fold {
    type Err = FoldError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':') {
            None if text == "host" => Ok(Fold::Host),
            None if text == "domain" => Ok(Fold::Domain),
            Some(("prefix", count)) => count.parse().map(Fold::Prefix).map_err(|_| FoldError(text.to_owned())),
            _ => Err(FoldError(text.to_owned())),
        }
    }
}

impl fmt::Display for Fold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fold::Host => f.write_str("host"),
            Fold::Domain => f.write_str("domain"),
            Fold::Prefix(count) => write!(f, "prefix:{count}"),
        }
    }
}

/// The groups of the URLs of a store. Groups are numbered in the order in which they are met.
#[derive(Clone, Debug, Default)]
pub struct UrlGroups {
    /// The names, by number.
    names: Vec<String>,
    /// The first UID of each stretch of UIDs of one group, rising, and the number of the group.
    stretches: Vec<(Uid, u32)>,
    /// The number of URLs of each group, by number.
    urls: Vec<u64>,
}

impl UrlGroups {
    /// Reads the URLs of a store into groups.
    pub(crate) fn read(store: &Reader, fold: Fold, job: &Job) -> Result<Self, Error> {
        let (mut groups, mut numbers) = (Self::default(), HashMap::new());
        for row in 0..store.rows() {
            let mut urls = store.row_urls(row, Uid::below(store.urls()), false);
            let mut last: Option<u32> = None;
            while let Some((uid, url, _)) = urls.next_url()? {
                let name = fold.name_of(url);
                let group = match last.filter(|&group| groups.names[group as usize] == *name) {
                    Some(group) => group,
                    None => {
                        job.go_on()?;
                        let next = u32::try_from(groups.names.len()).map_err(|_| Error::Internal("too many hosts"))?;
                        let group = *numbers.entry(name.clone().into_owned()).or_insert(next);
                        if group == next {
                            groups.names.push(name.into_owned());
                            groups.urls.push(0);
                        }
                        groups.stretches.push((uid, group));
                        group
                    }
                };
                groups.urls[group as usize] += 1;
                last = Some(group);
            }
        }
        Ok(groups)
    }

    /// Returns the number of groups.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are no groups.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the name of a group.
    pub fn name(&self, group: u32) -> &str {
        &self.names[group as usize]
    }

    /// Returns the number of URLs of a group.
    pub fn urls(&self, group: u32) -> u64 {
        self.urls[group as usize]
    }

    /// Returns the group of a URL. Cost: a search among the stretches, or nothing if the URL is in the stretch `near`.
    /// `near` is set to the stretch of the URL, as a hint for the next call.
    pub fn of(&self, uid: Uid, near: &mut usize) -> u32 {
        let holds = |at: usize| {
            let begins = self.stretches.get(at).is_some_and(|stretch| stretch.0 <= uid);
            begins && self.stretches.get(at + 1).is_none_or(|next| uid < next.0)
        };
        if !holds(*near) {
            *near = self.stretches.partition_point(|stretch| stretch.0 <= uid).saturating_sub(1);
        }
        self.stretches.get(*near).map_or(0, |stretch| stretch.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_belong_to_hosts_domains_and_paths() {
        let cases = [
            (
                "http://www.example.co.uk/a/b/c.html?x=/y",
                "www.example.co.uk",
                "example.co.uk",
                "www.example.co.uk/a/b/",
            ),
            ("https://example.org:8080/", "example.org", "example.org", "example.org/"),
            ("http://a.github.io/x/y", "a.github.io", "a.github.io", "a.github.io/x/"),
            ("http://192.168.0.1/a/b/c/d", "192.168.0.1", "192.168.0.1", "192.168.0.1/a/b/"),
            ("http://localhost/a", "localhost", "localhost", "localhost/"),
            ("http://[::1]/a/", "[::1]", "[::1]", "[::1]/a/"),
            ("http://me:x@www.example.org/a/", "www.example.org", "example.org", "www.example.org/a/"),
            ("http://a,b.example.org:81/a/", "a,b.example.org", "example.org", "a,b.example.org/a/"),
            ("urn:isbn:1", "urn:", "urn:", "urn:"),
            ("file:///a/b", "file:", "file:", "file:"),
        ];
        for (url, host, domain, prefix) in cases {
            assert_eq!(Fold::Host.name_of(url), host);
            assert_eq!(Fold::Domain.name_of(url), domain, "{url}");
            assert_eq!(Fold::Prefix(2).name_of(url), prefix);
        }
        assert_eq!(Fold::Prefix(0).name_of("http://a/b/c"), "a/");
    }

    #[test]
    fn ways_to_fold_as_text() {
        for fold in [Fold::Host, Fold::Domain, Fold::Prefix(3)] {
            assert_eq!(fold.to_string().parse(), Ok(fold));
        }
        for wrong in ["", "hosts", "prefix", "prefix:", "prefix:x", "host:1"] {
            assert!(wrong.parse::<Fold>().is_err(), "{wrong}");
        }
    }
}
