//! Removals: which URLs are taken out of a store, for which time, and as pages or as targets of links.
//!
//! A request for a removal is a [`Removal`], which has the text of the URLs that must go. From the epoch that carries
//! it out, the manifest ([`crate::Provenance::removals`]) keeps it as a [`RemovalRule`], so that later updates do not
//! bring back what was taken out. A kept rule has a hash in the place of the text, because a list of the removed URLs
//! would be a copy of what must go.
//!
//! Rules select URLs by their keys ([`crate::record::key`]): one URL, or all URLs with keys that begin alike. The hash
//! is of this beginning. To find the rules of a URL, a look-up hashes each beginning of its key where a rule can end.
//! These are the whole key for a URL, the end of the host for a host, the end of each label for a domain, and the
//! number of bytes in the rule for a prefix. The hash is SHA-256, salted with the digest of the first epoch. Neither a
//! table of hashes that was made beforehand nor another store shows what a rule means. But whoever guesses a URL can
//! test the guess.
//!
//! A row carries out a rule by writing captures again ([`crate::record::precedence`]). It writes removed captures with
//! [`crate::record::status::Status::REMOVED`], and captures that linked to a removed URL without the link. When all
//! rows are merged, removed captures are dropped ([`crate::record::join::without_removed`]), and so are URLs that
//! nothing uses any more.
//!
//! Cost of a look-up: a hash of the whole key, one hash for each label of its host, and one for each length of
//! prefixes. A kind costs nothing if no rule has it.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

use crate::record::key::{domain_prefix, host_prefix, key_of, url_prefix};

/// The URLs that a removal selects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Selection {
    /// This URL.
    Url(String),
    /// The URLs of this host.
    Host(String),
    /// The URLs of this host and its subdomains.
    Domain(String),
    /// The URLs that begin with this URL, with any scheme, port and user info.
    Prefix(String),
}

/// Whether URLs are taken out as pages, as targets or both; as text `page`, `target`, `both`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RemovedAs {
    /// The captures of the URLs.
    Page,
    /// The links to the URLs.
    Target,
    /// The captures of the URLs and the links to them.
    #[default]
    Both,
}

/// How a rule selects URLs; as text `url`, `host`, `domain`, `prefix`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SelectedBy {
    /// One URL.
    Url,
    /// The URLs of a host.
    Host,
    /// The URLs of a host and its subdomains.
    Domain,
    /// The URLs that begin alike.
    Prefix,
}

impl SelectedBy {
    /// The text in the manifest.
    pub fn name(self) -> &'static str {
        match self {
            Self::Url => "url",
            Self::Host => "host",
            Self::Domain => "domain",
            Self::Prefix => "prefix",
        }
    }
}

/// A request for a removal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Removal {
    /// The URLs that are taken out.
    pub select: Selection,
    /// Whether they are taken out as pages, as targets or both.
    pub removed_as: RemovedAs,
    /// Applies to captures from this second on; `None`: from the first on.
    pub from: Option<i64>,
    /// Applies to captures up to this second; `None`: up to the last.
    pub to: Option<i64>,
    /// The reason, in the words of the operator.
    pub reason: Option<String>,
}

/// A rule as the manifest keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovalRule {
    /// How the rule selects URLs.
    pub select: SelectedBy,
    /// The hash of the beginning of the keys of the selected URLs.
    pub hash: KeyHash,
    /// The number of bytes that are hashed; only for a prefix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u32>,
    /// The selected host, domain, URL or prefix in plain text, for people who list the rules; only written on request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether URLs are taken out as pages, as targets or both.
    #[serde(rename = "as")]
    pub removed_as: RemovedAs,
    /// Applies to captures from this second on; `None`: from the first on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<i64>,
    /// Applies to captures up to this second; `None`: up to the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<i64>,
    /// The reason, in the words of the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The hash of the beginning of a key; as text 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash([u8; 32]);

impl fmt::Display for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for KeyHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'a> Deserialize<'a> for KeyHash {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digit = |digit: u8| b"0123456789abcdef".iter().zip(0u8..).find(|(known, _)| **known == digit);
        let byte = |pair: &[u8]| Some(digit(pair[0])?.1 << 4 | digit(*pair.get(1)?)?.1);
        let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(byte).collect();
        let hash = bytes.and_then(|bytes| bytes.try_into().ok()).map(Self);
        hash.ok_or_else(|| serde::de::Error::custom("not a hash: expected 64 hexadecimal digits in lower case"))
    }
}

/// The error for a rule that selects nothing: no URL can have its host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the name of a host")]
pub struct NotAHost(pub String);

/// The times and kinds that a rule applies to; the same for requested and kept rules.
macro_rules! scope {
    ($rule:ty) => {
        impl $rule {
            /// Whether the rule applies to captures of this second.
            pub fn covers(&self, time: i64) -> bool {
                self.from.is_none_or(|from| from <= time) && self.to.is_none_or(|to| time <= to)
            }

            /// Whether the rule takes out captures of the URLs.
            pub fn of_pages(&self) -> bool {
                self.removed_as != RemovedAs::Target
            }

            /// Whether the rule takes out links to the URLs.
            pub fn of_targets(&self) -> bool {
                self.removed_as != RemovedAs::Page
            }
        }
    };
}

scope!(Removal);
scope!(RemovalRule);

impl Removal {
    /// The rule as the manifest of a store keeps it. `root` is the digest of the first epoch of the store.
    ///
    /// # Errors
    /// A text that is not a host.
    pub fn kept(&self, root: &str, with_name: bool) -> Result<RemovalRule, NotAHost> {
        let (beginning, _) = self.select.keys()?;
        let (select, name) = match &self.select {
            Selection::Url(text) => (SelectedBy::Url, text),
            Selection::Host(text) => (SelectedBy::Host, text),
            Selection::Domain(text) => (SelectedBy::Domain, text),
            Selection::Prefix(text) => (SelectedBy::Prefix, text),
        };
        let length = || u32::try_from(beginning.len()).unwrap_or(u32::MAX);
        Ok(RemovalRule {
            select,
            hash: Salted::of(root).with(&beginning).hash(),
            bytes: (select == SelectedBy::Prefix).then(length),
            name: with_name.then(|| name.clone()),
            removed_as: self.removed_as,
            from: self.from,
            to: self.to,
            reason: self.reason.clone(),
        })
    }
}

impl RemovalRule {
    /// Whether the other rule takes out the same captures and links.
    pub fn is_same(&self, other: &Self) -> bool {
        let what = |rule: &Self| (rule.select, rule.hash, rule.bytes, rule.removed_as, rule.from, rule.to);
        what(self) == what(other)
    }

    /// Whether the rule takes out all captures of the URLs and all links to them, at all times.
    pub fn is_whole(&self) -> bool {
        self.removed_as == RemovedAs::Both && self.from.is_none() && self.to.is_none()
    }
}

/// A hash in progress: SHA-256 of the digits of a digest, a space, and bytes.
#[derive(Clone, Default)]
struct Salted(Sha256);

impl Salted {
    fn of(root: &str) -> Self {
        Self(Sha256::new_with_prefix(format!("{root} ")))
    }

    fn with(mut self, bytes: &[u8]) -> Self {
        self.0.update(bytes);
        self
    }

    fn hash(self) -> KeyHash {
        KeyHash(self.0.finalize().into())
    }
}

impl Selection {
    /// The beginning of the keys of the selected URLs, and whether it is a whole key.
    ///
    /// # Errors
    /// A text that is not a host.
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

/// Rules of one store, ready to be looked up.
///
/// ```
/// use webstrata_layers::{Removal, Removals, RemovedAs, Selection};
/// use webstrata_layers::record::key::key;
///
/// let rule = Removal {
///     select: Selection::Host("www.example.org".to_owned()),
///     removed_as: RemovedAs::Both,
///     from: None,
///     to: None,
///     reason: None,
/// };
/// // The kept rule has a hash in the place of the name, salted with the identity of the store.
/// let removals = Removals::new("a store", [rule.kept("a store", false)?]);
/// let rules = |url| {
///     let mut url_key = Vec::new();
///     key(url, &mut url_key);
///     removals.of(&url_key).len()
/// };
/// assert_eq!((rules("http://www.example.org/a"), rules("http://example.org/a")), (1, 0));
/// # Ok::<(), webstrata_layers::NotAHost>(())
/// ```
#[derive(Clone, Default)]
pub struct Removals {
    salted: Salted,
    whole: ByHash,
    hosts: ByHash,
    domains: ByHash,
    /// The rules for prefixes, by the length of the prefix.
    prefixes: BTreeMap<usize, ByHash>,
}

/// Appends the rules with this hash.
fn look<'a>(found: &mut Vec<&'a RemovalRule>, rules: &'a ByHash, salted: Salted) {
    found.extend(rules.get(&salted.hash()).into_iter().flatten());
}

impl fmt::Debug for Removals {
    /// Lists the rules sorted by their text, whatever the order in which they were added.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rules: Vec<String> = self.iter().map(|rule| format!("{rule:?}")).collect();
        rules.sort();
        f.debug_list().entries(rules).finish()
    }
}

/// Rules by their hash.
type ByHash = HashMap<KeyHash, Vec<RemovalRule>>;

impl Removals {
    /// Makes the rules of a store ready. `root` is the digest of the first epoch of the store.
    pub fn new(root: &str, rules: impl IntoIterator<Item = RemovalRule>) -> Self {
        let mut removals = Self { salted: Salted::of(root), ..Self::default() };
        for rule in rules {
            let by_hash = match rule.select {
                SelectedBy::Url => &mut removals.whole,
                SelectedBy::Host => &mut removals.hosts,
                SelectedBy::Domain => &mut removals.domains,
                SelectedBy::Prefix => removals.prefixes.entry(rule.bytes.unwrap_or(0) as usize).or_default(),
            };
            by_hash.entry(rule.hash).or_default().push(rule);
        }
        removals
    }

    /// Whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// The rules, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &RemovalRule> {
        let [whole, hosts, domains] = [&self.whole, &self.hosts, &self.domains];
        [whole, hosts, domains].into_iter().chain(self.prefixes.values()).flat_map(HashMap::values).flatten()
    }

    /// The rules that select the URL with this key.
    pub fn of(&self, url_key: &[u8]) -> Vec<&RemovalRule> {
        let mut found = Vec::new();
        if !self.whole.is_empty() {
            look(&mut found, &self.whole, self.salted.clone().with(url_key));
        }
        let host = if url_key.first() == Some(&b'!') { None } else { url_key.iter().position(|&byte| byte == b')') };
        if let Some(end) = host.filter(|_| !self.hosts.is_empty()) {
            look(&mut found, &self.hosts, self.salted.clone().with(&url_key[..=end]));
        }
        if let Some(end) = host.filter(|_| !self.domains.is_empty()) {
            let mut salted = self.salted.clone();
            for label in url_key[..end].split_inclusive(|&byte| byte == b',') {
                salted = salted.with(label);
                look(&mut found, &self.domains, salted.clone());
            }
        }
        let (mut salted, mut hashed) = (self.salted.clone(), 0);
        for (&length, rules) in self.prefixes.range(..=url_key.len()) {
            salted = salted.with(&url_key[hashed..length]);
            hashed = length;
            look(&mut found, rules, salted.clone());
        }
        found
    }

    /// The rules that select all URLs of a host.
    pub fn of_host(&self, host: &str) -> Vec<&RemovalRule> {
        host_prefix(host).map(|beginning| self.of(&beginning)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FORMAT: &str = include_str!("../format.md");
    const ROOT: &str = "0123456789abcdef0123456789abcdef";

    fn rule(select: Selection) -> RemovalRule {
        let removal = Removal { select, removed_as: RemovedAs::Both, from: None, to: None, reason: None };
        removal.kept(ROOT, true).unwrap()
    }

    fn selection() -> impl Strategy<Value = Selection> {
        let host =
            prop_oneof![Just("a.example"), Just("b.a.example"), Just("example"), Just("[::1]"), Just("a,b.example")];
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
        /// Compares the look-up with a test of each rule by its text.
        #[test]
        fn rules_are_found_among_others(
            selections in proptest::collection::vec(selection(), 0..12),
            host in prop_oneof![Just("a.example"), Just("c.b.a.example"), Just("a,b.example"), Just("[::1]")],
            user in prop_oneof![Just(""), Just("u@"), Just("u:w@")],
            path in "[xy/),]{0,4}",
            scheme in prop_oneof![Just("http"), Just("https"), Just("ftp")],
        ) {
            let rules = Removals::new(ROOT, selections.iter().cloned().map(rule));
            let url_key = key_of(&format!("{scheme}://{user}{host}/{path}"));
            let shown = |rule: &RemovalRule| (rule.select, rule.name.clone());
            let mut found: Vec<_> = rules.of(&url_key).into_iter().map(shown).collect();
            found.sort();
            let selects = |selection: &&Selection| {
                let (prefix, is_whole) = selection.keys().unwrap();
                if is_whole { prefix == url_key } else { url_key.starts_with(&prefix) }
            };
            let mut expected: Vec<_> =
                selections.iter().filter(selects).map(|selection| shown(&rule(selection.clone()))).collect();
            expected.sort();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_rule_for_a_host_selects_its_urls_with_user_info_and_odd_names() {
        let selects = |select: Selection, url: &str| !Removals::new(ROOT, [rule(select)]).of(&key_of(url)).is_empty();
        let of = |text: &str, url: &str| {
            let [host, domain] =
                [Selection::Host, Selection::Domain].map(|select| selects(select(text.to_owned()), url));
            let prefix = Selection::Prefix(format!("https://{text}:81/"));
            (host, domain, selects(prefix, url))
        };
        assert_eq!(of("auth.example", "http://u:p@auth.example/secret"), (true, true, true));
        assert_eq!(of("auth.example", "http://u:p@www.auth.example/secret"), (false, true, false));
        assert_eq!(of("auth.example", "http://auth.example@other.example/"), (false, false, false));
        assert_eq!(of("[::1]", "https://u@[::1]:8080/a"), (true, true, true));
        assert_eq!(of("a,b.example", "http://a,b.example/a"), (true, true, true));
        assert_eq!(of("b.example", "http://a,b.example/a"), (false, false, false));
        assert_eq!(of("b.example", "http://a!.b.example/a"), (false, true, false));
    }

    #[test]
    fn what_is_no_host_is_refused() {
        let select = Selection::Host("a b".to_owned());
        let removal = Removal { select, removed_as: RemovedAs::Both, from: None, to: None, reason: None };
        assert_eq!(removal.kept(ROOT, false), Err(NotAHost("a b".to_owned())));
    }

    /// The example of the format: `printf '%s example,b,)' DIGEST | sha256sum`.
    #[test]
    fn the_hash_is_the_one_of_the_format() {
        let mut host = rule(Selection::Host("b.example".to_owned()));
        host.name = None;
        let json = serde_json::to_string(&host).unwrap();
        let hash = "994734a8f5fd4544811ea4fc6e6b6eb1c0e3f536e090cecc32f613d8dc749e4a";
        let expected = &format!(r#"{{"select":"host","hash":"{hash}","as":"both"}}"#);
        assert_eq!(json, *expected);
        assert!(FORMAT.contains(expected) && FORMAT.contains(ROOT));
        assert_eq!(serde_json::from_str::<RemovalRule>(&json).unwrap(), host);
        let prefix = rule(Selection::Prefix("http://b.example/people/".to_owned()));
        assert_eq!(prefix.bytes, Some(19));
        for wrong in [&expected.replace("both\"", "none\""), &expected.replace("\"hash\":\"", "\"hash\":\"A")] {
            assert!(serde_json::from_str::<RemovalRule>(wrong).is_err(), "{wrong}");
        }
    }
}
