//! The options of a build that change what its store means: which links count, and which URLs are left out.
//!
//! They stand in the manifest, under `provenance.options`, and hold for all rows of a store: an update takes them from
//! there. Were a page's links of another kind from one crawl to the next, they would seem to have died.

use crate::Error;
use std::collections::BTreeMap;
use webstrata_datasets::LinkKinds;
use webstrata_layers::Location;

/// What an option is in the manifest of a store that does not name it.
const DEFAULT_LINKS: &str = "anchors";

const LINKS: &str = "links";
const MIN_SOURCES: &str = "min-sources";

/// See the head of this file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meaning {
    /// Which links of a page count.
    pub(crate) kinds: LinkKinds,
    /// URLs that were never captured and that fewer pages link to are left out.
    pub(crate) min_sources: u64,
}

impl Meaning {
    /// What the options of a new store say; where they are not given, the defaults.
    pub(crate) fn new(kinds: Option<LinkKinds>, min_sources: Option<u64>) -> Self {
        Self { kinds: kinds.unwrap_or_default(), min_sources: min_sources.unwrap_or(0) }
    }

    /// What the options of a store say.
    ///
    /// # Errors
    /// Options of the caller that are others, and options of the store that this version does not know.
    pub(crate) fn of_store(
        store: &Location,
        options: &BTreeMap<String, String>,
        kinds: Option<LinkKinds>,
        min_sources: Option<u64>,
    ) -> Result<Self, Error> {
        let unknown = |name: &str, value: &str| Error::UnknownOption {
            store: store.to_string(),
            name: name.to_owned(),
            value: value.to_owned(),
        };
        if let Some((name, value)) = options.iter().find(|(name, _)| ![LINKS, MIN_SOURCES].contains(&name.as_str())) {
            return Err(unknown(name, value));
        }
        let links = options.get(LINKS).map_or(DEFAULT_LINKS, String::as_str);
        let least = options.get(MIN_SOURCES).map_or("0", String::as_str);
        let known = Self {
            kinds: kinds_of(links).ok_or_else(|| unknown(LINKS, links))?,
            min_sources: least.parse().map_err(|_| unknown(MIN_SOURCES, least))?,
        };
        let given = Self { kinds: kinds.unwrap_or(known.kinds), min_sources: min_sources.unwrap_or(known.min_sources) };
        let (have, want) = (known.options(), given.options());
        match have.into_iter().zip(want).find(|(have, want)| have != want) {
            Some(((name, store_has), (_, given))) => {
                Err(Error::OtherOption { store: store.to_string(), name, store_has, given })
            }
            None => Ok(known),
        }
    }

    /// As manifests have them.
    pub(crate) fn options(&self) -> BTreeMap<String, String> {
        let links = names(self.kinds).join(",");
        BTreeMap::from([(LINKS.to_owned(), links), (MIN_SOURCES.to_owned(), self.min_sources.to_string())])
    }
}

/// The kinds of links that count, by the names of the command line; `none` where none does.
fn names(kinds: LinkKinds) -> Vec<&'static str> {
    let LinkKinds { anchors, redirects, embeds, outlinks } = kinds;
    let all = [("anchors", anchors), ("redirects", redirects), ("embeds", embeds), ("outlinks", outlinks)];
    let names: Vec<_> = all.into_iter().filter(|(_, counts)| *counts).map(|(name, _)| name).collect();
    if names.is_empty() { vec!["none"] } else { names }
}

fn kinds_of(text: &str) -> Option<LinkKinds> {
    let has = |name| text.split(',').any(|own| own == name);
    let kinds = LinkKinds {
        anchors: has("anchors"),
        redirects: has("redirects"),
        embeds: has("embeds"),
        outlinks: has("outlinks"),
    };
    (names(kinds).join(",") == text).then_some(kinds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_kinds() -> impl Iterator<Item = LinkKinds> {
        (0..16).map(|bits| LinkKinds {
            anchors: bits & 1 != 0,
            redirects: bits & 2 != 0,
            embeds: bits & 4 != 0,
            outlinks: bits & 8 != 0,
        })
    }

    #[test]
    fn options_come_back_from_a_manifest() {
        let store = Location::from(std::path::Path::new("store"));
        for kinds in all_kinds() {
            for min_sources in [0, 4, u64::MAX] {
                let meaning = Meaning { kinds, min_sources };
                let options = meaning.options();
                assert_eq!(Meaning::of_store(&store, &options, None, None).unwrap(), meaning);
                let same = Meaning::of_store(&store, &options, Some(kinds), Some(min_sources));
                assert_eq!(same.unwrap(), meaning);
            }
        }
        let default = Meaning::of_store(&store, &BTreeMap::new(), None, None).unwrap();
        assert_eq!(default, Meaning::new(None, None));
    }

    #[test]
    fn other_options_are_refused_with_both_values() {
        let store = Location::from(std::path::Path::new("store"));
        let options = Meaning { kinds: LinkKinds::default(), min_sources: 4 }.options();
        let embeds = LinkKinds { embeds: true, ..LinkKinds::default() };
        let message = |kinds, least| Meaning::of_store(&store, &options, kinds, least).unwrap_err().to_string();
        let text = message(Some(embeds), None);
        assert!(text.contains("--links") && text.contains("anchors,embeds") && text.contains("\"anchors\""), "{text}");
        let text = message(None, Some(3));
        assert!(text.contains("--min-sources") && text.contains("\"3\"") && text.contains("\"4\""), "{text}");
        for (name, value) in [("links", "anchors,frames"), ("min-sources", "few"), ("colour", "blue")] {
            let options = BTreeMap::from([(name.to_owned(), value.to_owned())]);
            let error = Meaning::of_store(&store, &options, None, None).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains(value), "{error}");
        }
    }
}
