//! The nodes of a network: URLs, or groups of URLs by directory, host or domain.

use std::collections::HashMap;

use crate::record::key::{from_host, host_of};
use crate::word::words;

/// The kind of a node, from the finest to the coarsest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grain {
    /// A URL.
    #[default]
    Page,
    /// The URLs of a host with the same first step of the path: `example.org/news/`, or `example.org/` for URLs in no
    /// directory.
    Directory,
    /// The URLs of a host.
    Host,
    /// The URLs of a registrable domain.
    Domain,
}

words!(Grain { Page = "page", Directory = "directory", Host = "host", Domain = "domain" });

impl Grain {
    /// The node of a URL. A URL without a host is a node by itself.
    pub fn node_of(self, url: &str, domain_of: fn(&str) -> &str) -> &str {
        let Some(host) = host_of(url).filter(|_| self != Self::Page) else { return url };
        match self {
            Self::Page => url,
            Self::Host => host,
            Self::Domain => domain_of(host),
            Self::Directory => {
                let rest = from_host(url).unwrap_or(url);
                let path = rest.find('/').map_or(rest.len(), |at| at + 1);
                let step = rest[path..].find(['/', '?']).map(|at| path + at).filter(|&at| rest[at..].starts_with('/'));
                &rest[..step.map_or(path, |at| at + 1)]
            }
        }
    }
}

/// Assigns URLs to nodes of a grain as the URLs arrive. With `nodes_max`, the grain is the finest one, from the given
/// one on, with at most `nodes_max` nodes. If no grain is coarse enough, it is the domain.
///
/// Memory: the names of the nodes, for each grain that is still possible.
pub struct Folding {
    /// The grains that are still possible, the finest first.
    grains: Vec<(Grain, Groups)>,
    /// The host of the last URL. URLs of a host mostly arrive one after the other.
    host: Option<String>,
    nodes_max: usize,
    domain_of: fn(&str) -> &str,
}

impl Folding {
    /// Starts without URLs.
    pub fn new(grain: Grain, nodes_max: Option<usize>, domain_of: fn(&str) -> &str) -> Self {
        let grains = Grain::ALL.into_iter().filter(|other| *other == grain || (nodes_max.is_some() && *other > grain));
        let grains = grains.map(|grain| (grain, Groups::default())).collect();
        Self { grains, host: None, nodes_max: nodes_max.unwrap_or(usize::MAX), domain_of }
    }

    /// Adds the next URL.
    pub fn add(&mut self, url: &str) {
        let host = host_of(url);
        let is_next = host.is_some() && host == self.host.as_deref();
        for (grain, groups) in &mut self.grains {
            if is_next && *grain >= Grain::Host {
                groups.add_to_last();
            } else {
                groups.add(grain.node_of(url, self.domain_of));
            }
        }
        if !is_next {
            self.host = host.map(str::to_owned);
        }
        while self.grains.len() > 1 && self.grains[0].1.names.len() > self.nodes_max {
            self.grains.remove(0);
        }
    }

    /// The grain and its groups.
    #[must_use]
    pub fn finish(mut self) -> (Grain, Groups) {
        self.grains.swap_remove(0)
    }
}

/// Groups of URLs, such as hosts, in the order of their first URLs.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    /// The group of each URL.
    pub of: Vec<usize>,
    /// The name of each group.
    pub names: Vec<String>,
    /// The number of URLs of each group.
    pub urls: Vec<usize>,
    known: HashMap<String, usize>,
}

impl Groups {
    /// Adds the next URL to the group with this name.
    pub fn add(&mut self, name: &str) {
        let group = self.known.get(name).copied().unwrap_or_else(|| {
            self.known.insert(name.to_owned(), self.names.len());
            self.names.push(name.to_owned());
            self.urls.push(0);
            self.names.len() - 1
        });
        self.urls[group] += 1;
        self.of.push(group);
    }

    /// Adds the next URL to the group of the last URL.
    fn add_to_last(&mut self) {
        if let Some(&group) = self.of.last() {
            self.urls[group] += 1;
            self.of.push(group);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_fold_to_the_finest_grain_that_fits() {
        let inside = ["http://a.test/x/1", "https://a.test/x/2?b=/c", "http://a.test/y?z=/1"];
        let outside = ["http://b.a.test:81/", "file:///c"];
        let urls: Vec<String> = inside.into_iter().chain(outside).map(str::to_owned).collect();
        let names = |grain: Grain, most| {
            let mut folding = Folding::new(grain, most, |host| host.trim_start_matches("b."));
            urls.iter().for_each(|url| folding.add(url));
            folding.finish()
        };
        let of = |(grain, groups): (Grain, Groups)| (grain, groups.names.join(" "));
        let directories = "a.test/x/ a.test/ b.a.test:81/ file:///c";
        assert_eq!(of(names(Grain::Directory, None)), (Grain::Directory, directories.to_owned()));
        assert_eq!(names(Grain::Page, Some(5)).0, Grain::Page);
        assert_eq!(of(names(Grain::Page, Some(4))), (Grain::Directory, directories.to_owned()));
        assert_eq!(of(names(Grain::Page, Some(3))), (Grain::Host, "a.test b.a.test file:///c".to_owned()));
        assert_eq!(of(names(Grain::Page, Some(1))), (Grain::Domain, "a.test file:///c".to_owned()));
        assert_eq!(names(Grain::Host, Some(100)).1.of, [0, 0, 0, 1, 2]);
    }
}
