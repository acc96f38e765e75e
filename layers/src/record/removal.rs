//! What is taken out of a store: which URLs, in which time, as pages or as targets of links.
//!
//! A rule ([`Removal`]) stands in the manifest ([`crate::Manifest::removals`]) from the epoch on that carries it out,
//! so that a later update does not bring back what was taken out. Rules select URLs by the order of their keys
//! ([`crate::record::key`]): one URL, or all whose keys begin alike.
//!
//! A row carries a rule out as it says everything, by saying captures again ([`crate::record::precedence`]): removed
//! ones with [`crate::record::status::Status::REMOVED`], and those that linked to a removed URL without the link. When
//! all rows become one, removed captures are dropped ([`crate::record::join::without_removed`]), and so are URLs that
//! nothing uses any more.
//!
//! Cost of a look-up: searches among the rules, as many as there are rules that begin alike.

use serde::{Deserialize, Serialize};

use crate::record::key::{domain_prefix, host_prefix, key_of, url_prefix};

/// Which URLs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Selection {
    /// This one.
    Url(String),
    /// Those of this host.
    Host(String),
    /// Those of this host and its subdomains.
    Domain(String),
    /// Those that begin with this URL, with any scheme and port.
    Prefix(String),
}

/// As what URLs are taken out; as text `page`, `target`, `both`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RemovedAs {
    /// Their captures.
    Page,
    /// Links to them.
    Target,
    /// Both.
    #[default]
    Both,
}

/// A rule: what is taken out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Removal {
    /// Which URLs.
    pub select: Selection,
    /// As what.
    #[serde(rename = "as")]
    pub removed_as: RemovedAs,
    /// Captures from this second on; all where `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<i64>,
    /// Captures up to this second; all where `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<i64>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A rule that selects nothing: its host is no host that URLs can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the name of a host")]
pub struct NotAHost(pub String);

impl Removal {
    /// Whether a capture of this second is meant.
    pub fn covers(&self, time: i64) -> bool {
        self.from.is_none_or(|from| from <= time) && self.to.is_none_or(|to| time <= to)
    }

    /// Whether captures of the URLs are meant.
    pub fn of_pages(&self) -> bool {
        self.removed_as != RemovedAs::Target
    }

    /// Whether links to the URLs are meant.
    pub fn of_targets(&self) -> bool {
        self.removed_as != RemovedAs::Page
    }
}

impl Selection {
    /// With what the keys of its URLs begin, and whether one is that whole key.
    ///
    /// # Errors
    /// A text that is no host.
    pub fn keys(&self) -> Result<(Vec<u8>, bool), NotAHost> {
        let host = |host: &String, prefix: fn(&str) -> Option<Vec<u8>>| {
            prefix(host).map(|prefix| (prefix, false)).ok_or_else(|| NotAHost(host.clone()))
        };
        match self {
            Selection::Url(url) => Ok((key_of(url), true)),
            Selection::Host(name) => host(name, host_prefix),
            Selection::Domain(name) => host(name, domain_prefix),
            Selection::Prefix(url) => Ok((url_prefix(url), false)),
        }
    }
}

/// Rules, ready to be looked up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removals {
    /// In order of the beginnings of keys.
    rules: Vec<(Vec<u8>, bool, Removal)>,
}

impl Removals {
    /// Makes rules ready.
    ///
    /// # Errors
    /// A rule of something that is no host.
    pub fn new(rules: impl IntoIterator<Item = Removal>) -> Result<Self, NotAHost> {
        let ready = |rule: Removal| rule.select.keys().map(|(prefix, is_whole)| (prefix, is_whole, rule));
        let mut rules = rules.into_iter().map(ready).collect::<Result<Vec<_>, _>>()?;
        rules.sort();
        Ok(Self { rules })
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The rules, with the beginnings of the keys that each selects, and whether that is one whole key.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], bool, &Removal)> {
        self.rules.iter().map(|(prefix, is_whole, rule)| (&prefix[..], *is_whole, rule))
    }

    /// The rules that select the URL with this key.
    pub fn of<'a>(&'a self, url_key: &'a [u8]) -> impl Iterator<Item = &'a Removal> {
        let mut end = self.rules.partition_point(|(prefix, ..)| &prefix[..] <= url_key);
        std::iter::from_fn(move || {
            loop {
                let (prefix, is_whole, rule) = &self.rules[end.checked_sub(1)?];
                if url_key.starts_with(prefix) {
                    end -= 1;
                    if !is_whole || prefix.len() == url_key.len() {
                        return Some(rule);
                    }
                    continue;
                }
                // What begins the key and lies before this begins what the two share.
                let shared = prefix.iter().zip(url_key).take_while(|(one, other)| one == other).count();
                end = self.rules[..end].partition_point(|(prefix, ..)| prefix[..] <= url_key[..shared]);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rule(select: Selection) -> Removal {
        Removal { select, removed_as: RemovedAs::Both, from: None, to: None, reason: None }
    }

    fn selection() -> impl Strategy<Value = Selection> {
        let host = prop_oneof![Just("a.example"), Just("b.a.example"), Just("example"), Just("ab.example")];
        (host, 0u8..4, prop_oneof![Just(""), Just("x"), Just("x/y"), Just("xy")]).prop_map(|(host, kind, path)| {
            match kind {
                0 => Selection::Url(format!("http://{host}/{path}")),
                1 => Selection::Host(host.to_owned()),
                2 => Selection::Domain(host.to_owned()),
                _ => Selection::Prefix(format!("http://{host}/{path}")),
            }
        })
    }

    proptest! {
        /// Against each rule by itself.
        #[test]
        fn rules_are_found_among_others(
            selections in proptest::collection::vec(selection(), 0..12),
            host in prop_oneof![Just("a.example"), Just("c.b.a.example"), Just("b.a.example"), Just("ab.example")],
            path in "[xy/]{0,4}",
            scheme in prop_oneof![Just("http"), Just("https")],
        ) {
            let rules = Removals::new(selections.iter().cloned().map(rule)).unwrap();
            let url_key = key_of(&format!("{scheme}://{host}/{path}"));
            let mut found: Vec<Selection> = rules.of(&url_key).map(|rule| rule.select.clone()).collect();
            found.sort();
            let selects = |selection: &&Selection| {
                let (prefix, is_whole) = selection.keys().unwrap();
                if is_whole { prefix == url_key } else { url_key.starts_with(&prefix) }
            };
            let mut expected: Vec<Selection> = selections.iter().filter(selects).cloned().collect();
            expected.sort();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn what_is_no_host_is_refused() {
        let not_a_host = Selection::Host("a b".to_owned());
        assert_eq!(Removals::new([rule(not_a_host)]), Err(NotAHost("a b".to_owned())));
    }
}
