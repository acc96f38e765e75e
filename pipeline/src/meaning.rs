//! The options of a build that change what its store means: which links count, and which URLs are left out.
//!
//! The manifest holds these options under `provenance.options`. The options hold for all rows of a store, so an update
//! takes them from the manifest. If links of other kinds counted from one crawl to the next, links would seem to have
//! died.
//!
//! A store of web graphs also holds the meaning of a leading `www` of a host. A store takes this option from the first
//! web graph that it reads.
//!
//! The manifest also holds the size of partitions, which changes only the bytes. A job may therefore be given another
//! size, which becomes the size of the store. A job without a given size uses the size of the store; otherwise merged
//! rows would not have the bytes of one build.

use crate::Error;
use std::collections::BTreeMap;
use webstrata_datasets::{LinkKinds, ReadOptions, URL_BYTES, Www};
use webstrata_layers::Location;

/// The kinds of links of a store with a manifest that has no option `links`.
const DEFAULT_LINKS: &str = "anchors";

const LINKS: &str = "links";
const MIN_SOURCES: &str = "min-sources";
const URL_BYTES_MAX: &str = "url-bytes";
const PARTITION_URLS: &str = "partition-urls";
const WWW: &str = "www";
const DIGESTS: &str = "digests";

const NAMES: [&str; 6] = [LINKS, MIN_SOURCES, URL_BYTES_MAX, PARTITION_URLS, WWW, DIGESTS];

/// The payload digests that a store keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digests {
    /// Those of all captures. A revisit in a later update finds its original by digest.
    All,
    /// Those of revisits whose links are unknown. Other revisits become captures like any. A revisit in a later update
    /// finds an original in the store only by the URL and the time that it names.
    None,
}

impl Digests {
    /// All values.
    pub const CHOICES: [Self; 2] = [Self::All, Self::None];

    /// The name on the command line and in manifests.
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::None => "none",
        }
    }
}

/// The options of a store; see the head of this file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meaning {
    /// The kinds of links that count.
    pub(crate) kinds: LinkKinds,
    /// The least number of pages that must link to a URL that was never captured; other such URLs are left out.
    pub(crate) min_sources: u64,
    /// The maximum length of a URL that is kept, in bytes.
    pub(crate) url_bytes_max: usize,
    /// The approximate number of URLs in a partition; `None` is not written to the manifest.
    pub(crate) partition_urls: Option<u64>,
    /// The meaning of a leading `www` of a host of a web graph; `None` if the store has read no web graph.
    pub(crate) www: Option<Www>,
    /// The digests that are kept.
    pub(crate) digests: Digests,
}

/// The options that the caller gave.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MeaningOptions {
    pub(crate) kinds: Option<LinkKinds>,
    pub(crate) min_sources: Option<u64>,
    pub(crate) url_bytes_max: Option<usize>,
    pub(crate) partition_urls: Option<u64>,
    pub(crate) www: Option<Www>,
    pub(crate) digests: Option<Digests>,
}

impl MeaningOptions {
    /// Returns these options, with the values of `other` for options that were not given.
    pub(crate) fn or(self, other: Meaning) -> Meaning {
        Meaning {
            kinds: self.kinds.unwrap_or(other.kinds),
            min_sources: self.min_sources.unwrap_or(other.min_sources),
            url_bytes_max: self.url_bytes_max.unwrap_or(other.url_bytes_max),
            partition_urls: self.partition_urls.or(other.partition_urls),
            www: self.www.or(other.www),
            digests: self.digests.unwrap_or(other.digests),
        }
    }
}

/// The options of a new store if the caller gives none.
impl Default for Meaning {
    fn default() -> Self {
        let (kinds, url_bytes_max) = (LinkKinds::default(), URL_BYTES);
        Self { kinds, min_sources: 0, url_bytes_max, partition_urls: None, www: None, digests: Digests::All }
    }
}

impl Meaning {
    /// How inputs are read. In a store without web graphs, names of hosts are kept as they are.
    pub(crate) fn reading(&self) -> ReadOptions {
        ReadOptions { kinds: self.kinds, www: self.www.unwrap_or(Www::Keep) }
    }

    /// Returns the options of a store, with the options that the caller gives and the store does not hold yet, and with
    /// the size of partitions that the caller gives.
    ///
    /// # Errors
    /// An option that the caller gives differs from the option of the store, or this version does not know an option of
    /// the store.
    pub(crate) fn of_store(
        store: &Location,
        options: &BTreeMap<String, String>,
        requested: MeaningOptions,
    ) -> Result<Self, Error> {
        let unknown = |name: &str, value: &str| Error::UnknownOption {
            store: store.to_string(),
            name: name.to_owned(),
            value: value.to_owned(),
        };
        if let Some((name, value)) = options.iter().find(|(name, _)| !NAMES.contains(&name.as_str())) {
            return Err(unknown(name, value));
        }
        let links = options.get(LINKS).map_or(DEFAULT_LINKS, String::as_str);
        let (mut known, read) = (Self::default(), |name| options.get(name).map(|value| (name, value.as_str())));
        known.kinds = kinds_of(links).ok_or_else(|| unknown(LINKS, links))?;
        if let Some((name, least)) = read(MIN_SOURCES) {
            known.min_sources = least.parse().map_err(|_| unknown(name, least))?;
        }
        if let Some((name, bytes)) = read(URL_BYTES_MAX) {
            known.url_bytes_max = bytes.parse().map_err(|_| unknown(name, bytes))?;
        }
        if let Some((name, urls)) = read(PARTITION_URLS) {
            known.partition_urls = Some(urls.parse().map_err(|_| unknown(name, urls))?);
        }
        if let Some((name, value)) = read(WWW) {
            let www = Www::ALL.into_iter().find(|www| www.name() == value);
            known.www = Some(www.ok_or_else(|| unknown(name, value))?);
        }
        if let Some((name, value)) = read(DIGESTS) {
            let digests = Digests::CHOICES.into_iter().find(|digests| digests.name() == value);
            known.digests = digests.ok_or_else(|| unknown(name, value))?;
        }
        known.www = known.www.or(requested.www);
        known.partition_urls = requested.partition_urls.or(known.partition_urls);
        let (have, want) = (known.options(), requested.or(known).options());
        match have.into_iter().zip(want).find(|(have, want)| have != want) {
            Some(((name, store_has), (_, given))) => {
                Err(Error::OtherOption { store: store.to_string(), name, store_has, given })
            }
            None => Ok(known),
        }
    }

    /// Returns the options as the manifest holds them.
    pub(crate) fn options(&self) -> BTreeMap<String, String> {
        let Self { kinds, min_sources, url_bytes_max, partition_urls, www, digests } = self;
        let options = [
            Some((LINKS, names(*kinds).join(","))),
            Some((MIN_SOURCES, min_sources.to_string())),
            Some((URL_BYTES_MAX, url_bytes_max.to_string())),
            partition_urls.map(|urls| (PARTITION_URLS, urls.to_string())),
            www.map(|www| (WWW, www.name().to_owned())),
            Some((DIGESTS, digests.name().to_owned())),
        ];
        options.into_iter().flatten().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// Returns the names on the command line of the kinds that count; `none` if no kind counts.
fn names(kinds: LinkKinds) -> Vec<&'static str> {
    let LinkKinds { anchors, redirects, embeds, outlinks, via } = kinds;
    let all =
        [("anchors", anchors), ("redirects", redirects), ("embeds", embeds), ("outlinks", outlinks), ("via", via)];
    let names: Vec<_> = all.into_iter().filter(|(_, counts)| *counts).map(|(name, _)| name).collect();
    if names.is_empty() { vec!["none"] } else { names }
}

fn kinds_of(text: &str) -> Option<LinkKinds> {
    let has = |name| text.split(',').any(|kind| kind == name);
    let kinds = LinkKinds {
        anchors: has("anchors"),
        redirects: has("redirects"),
        embeds: has("embeds"),
        outlinks: has("outlinks"),
        via: has("via"),
    };
    (names(kinds).join(",") == text).then_some(kinds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_kinds() -> impl Iterator<Item = LinkKinds> {
        (0..32).map(|bits| LinkKinds {
            anchors: bits & 1 != 0,
            redirects: bits & 2 != 0,
            embeds: bits & 4 != 0,
            outlinks: bits & 8 != 0,
            via: bits & 16 != 0,
        })
    }

    #[test]
    fn options_come_back_from_a_manifest() {
        let store = Location::from(std::path::Path::new("store"));
        for kinds in all_kinds() {
            for (min_sources, partition_urls, www, digests) in [
                (0, None, None, Digests::All),
                (4, Some(40), Some(Www::Fold), Digests::None),
                (u64::MAX, Some(1), Some(Www::Keep), Digests::All),
            ] {
                let meaning = Meaning { kinds, min_sources, url_bytes_max: 7, partition_urls, www, digests };
                let options = meaning.options();
                assert_eq!(Meaning::of_store(&store, &options, MeaningOptions::default()).unwrap(), meaning);
                let same = MeaningOptions {
                    kinds: Some(kinds),
                    min_sources: Some(min_sources),
                    url_bytes_max: Some(7),
                    partition_urls,
                    www,
                    digests: Some(digests),
                };
                assert_eq!(Meaning::of_store(&store, &options, same).unwrap(), meaning);
                let other = MeaningOptions { partition_urls: Some(9), ..MeaningOptions::default() };
                let expected = Meaning { partition_urls: Some(9), ..meaning };
                assert_eq!(Meaning::of_store(&store, &options, other).unwrap(), expected);
            }
        }
        let default = Meaning::of_store(&store, &BTreeMap::new(), MeaningOptions::default()).unwrap();
        assert_eq!(default, Meaning::default());
    }

    #[test]
    fn other_options_are_refused_with_both_values() {
        let store = Location::from(std::path::Path::new("store"));
        let options = Meaning { min_sources: 4, ..Meaning::default() }.options();
        let embeds = LinkKinds { embeds: true, ..LinkKinds::default() };
        let message = |given| Meaning::of_store(&store, &options, given).unwrap_err().to_string();
        let text = message(MeaningOptions { kinds: Some(embeds), ..MeaningOptions::default() });
        assert!(text.contains("--links") && text.contains("anchors,embeds") && text.contains("\"anchors\""), "{text}");
        let text = message(MeaningOptions { min_sources: Some(3), ..MeaningOptions::default() });
        assert!(text.contains("--min-sources") && text.contains("\"3\"") && text.contains("\"4\""), "{text}");
        let text = message(MeaningOptions { url_bytes_max: Some(9), ..MeaningOptions::default() });
        assert!(text.contains("--url-bytes") && text.contains("\"9\"") && text.contains("\"65536\""), "{text}");
        let keep = MeaningOptions { www: Some(Www::Keep), ..MeaningOptions::default() };
        assert_eq!(Meaning::of_store(&store, &options, keep).unwrap().www, Some(Www::Keep), "the first web graph");
        let folded = Meaning { www: Some(Www::Fold), ..Meaning::default() }.options();
        let text = Meaning::of_store(&store, &folded, keep).unwrap_err().to_string();
        assert!(text.contains("--www") && text.contains("\"fold\"") && text.contains("\"keep\""), "{text}");
        for (name, value) in [
            ("www", "drop"),
            ("links", "anchors,frames"),
            ("min-sources", "few"),
            ("url-bytes", "-1"),
            ("partition-urls", "x"),
            ("digests", "some"),
            ("colour", "blue"),
        ] {
            let options = BTreeMap::from([(name.to_owned(), value.to_owned())]);
            let error = Meaning::of_store(&store, &options, MeaningOptions::default()).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains(value), "{error}");
        }
    }
}
