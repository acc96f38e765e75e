//! Turns references into fingerprints. Each text is parsed once, and later found by its hash.
//!
//! A capture has about 40 links, and the capture before had nearly all of them. A look-up therefore costs one xxh3-128
//! of the raw text and one probe of a cache. The cache has sets of four slots; when a set is full, the least recently
//! used slot is dropped. (A direct-mapped cache lost 9 % of look-ups to collisions with a tenth of the slots in use.)
//! Only a miss parses the URL.
//!
//! Reads references and the [`Base`] of relative references. Returns [`Fingerprint`]s. Calls `fresh` with each
//! canonical text, at the latest when the fingerprint is returned for the first time. The cache forgets texts, so
//! `fresh` may be called again for a text.
//!
//! Keys of the cache:
//! - `http://...` and `https://...` resolve alike against every base: the hash of the reference;
//! - other references depend on the base: the hash of the reference, xor the hash of the base's directory, or of the
//!   whole base if file name or query matter (empty, `?x`, `#x`, `scheme:x`). So menus of a directory are parsed once;
//! - the canonical text is cached under its hash, which is the fingerprint, so that two spellings of one URL call
//!   `fresh` once.
//!
//! Slots hold all 128 bits of the raw hash: an answer is wrong only if two texts of one crawl agree in 128 bits.
//! Memory: 32 bytes a slot. The cache begins small and doubles while it loses slots that are still needed, up to the
//! bound: a table larger than the frequent URLs of the crawl would only cost cache misses. Source: the fingerprints of
//! SRC-RR-175 (2001), section 2.

use crate::Finding;
use crate::url::reference::{base_of, canonical_within};
use std::cell::OnceCell;
use url::Url;
use xxhash_rust::xxh3::{xxh3_128, xxh3_128_with_seed};

/// The identity of a URL, used without its text: xxh3-128 of the canonical text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub u128);

impl Fingerprint {
    /// The fingerprint of a text that is canonical already.
    pub fn of(canonical: &str) -> Self {
        Fingerprint(xxh3_128(canonical.as_bytes()))
    }
}

/// The base URL of the references of one capture.
///
/// A base is cheap until a reference needs it: the URL is parsed at the first relative reference.
#[derive(Clone, Debug)]
pub struct Base {
    page_url: String,
    base_href: String,
    /// Whether every relative reference becomes a URL that is too long.
    is_long: bool,
    parsed: OnceCell<Option<ParsedBase>>,
}

#[derive(Clone, Debug)]
struct ParsedBase {
    url: Url,
    /// The hash of the URL up to the last slash of the path.
    directory: u128,
    /// The hash of the URL without the fragment.
    whole: u128,
}

/// Bases are hashed apart from references, so that a base and a reference with one text do not cancel out.
const BASE_SEED: u64 = 0x6261_7365;
/// The hash of all bases that are too long.
const LONG_BASE: u128 = 0x6c6f_6e67;

impl Base {
    /// The base of a page, from its URL and the `href` of its `<base>` (empty if there is none).
    ///
    /// # Errors
    /// [`Finding::BadPageUrl`] or [`Finding::OtherPageScheme`]. A URL that begins like a web address but does not parse
    /// is found only when a relative reference needs it. That reference is then a bad link.
    pub fn new(page_url: &str, base_href: &str) -> Result<Self, Finding> {
        if !is_absolute(page_url) {
            base_of(page_url, "")?;
        }
        let (page_url, base_href) = (page_url.to_owned(), base_href.to_owned());
        Ok(Base { page_url, base_href, is_long: false, parsed: OnceCell::new() })
    }

    /// As [`Base::new`]. A `<base>` beyond the length limit is not parsed, and makes every relative reference too long.
    ///
    /// # Errors
    /// As [`Base::new`].
    pub fn within(page_url: &str, base_href: &str, url_bytes_max: usize) -> Result<Self, Finding> {
        let is_long = base_href.len() > url_bytes_max;
        Ok(Base { is_long, ..Base::new(page_url, if is_long { "" } else { base_href })? })
    }

    fn parsed(&self) -> Option<&ParsedBase> {
        let parse = || {
            let mut url = base_of(&self.page_url, &self.base_href).ok()?;
            url.set_fragment(None);
            let path_end = url.as_str().len() - url.query().map_or(0, |query| query.len() + 1);
            let directory_end = url.as_str()[..path_end].rfind('/').map_or(0, |slash| slash + 1);
            let hash = |text: &str| xxh3_128_with_seed(text.as_bytes(), BASE_SEED);
            Some(ParsedBase { directory: hash(&url.as_str()[..directory_end]), whole: hash(url.as_str()), url })
        };
        self.parsed.get_or_init(parse).as_ref()
    }

    /// The hash that is combined with the hash of a relative reference.
    fn hash_for(&self, reference: &str) -> u128 {
        if self.is_long {
            return LONG_BASE;
        }
        // If the base does not parse, every relative reference is bad, as without a base.
        let Some(parsed) = self.parsed() else { return 0 };
        let by_directory = reference.bytes().next().is_some_and(|first| first > b' ' && first != b'?' && first != b'#')
            && !reference.contains(':');
        if by_directory { parsed.directory } else { parsed.whole }
    }
}

/// Whether a reference resolves alike against every base, according to its first letters.
fn is_absolute(reference: &str) -> bool {
    reference.starts_with("http://") || reference.starts_with("https://")
}

#[derive(Clone, Copy)]
struct Slot {
    raw: u128,
    /// The fingerprint, or one of the small numbers below.
    answer: u128,
}

const EMPTY: u128 = 0;
const BAD_LINK: u128 = 1;
const OTHER_LINK_SCHEME: u128 = 2;
const LONG_LINK: u128 = 3;
/// Smaller answers are not fingerprints. A URL with such a fingerprint is not cached.
const FINGERPRINT_MIN: u128 = 4;

/// The slots for raw hashes with the same end, the most recently used slot first; two cache lines.
#[derive(Clone, Copy)]
#[repr(align(128))]
struct Set([Slot; 4]);

impl Set {
    /// The answer to a raw hash. The slot of the answer becomes the most recently used.
    #[inline]
    fn get(&mut self, raw: u128) -> Option<u128> {
        let slots = &mut self.0;
        if slots[0].raw == raw {
            return Some(slots[0].answer);
        }
        let index = 1 + slots[1..].iter().position(|slot| slot.raw == raw)?;
        slots[..=index].rotate_right(1);
        Some(slots[0].answer)
    }

    /// Puts a slot first, and returns whether another slot was dropped.
    fn put(&mut self, slot: Slot) -> bool {
        let new = self.get(slot.raw).is_none();
        if new {
            self.0.rotate_right(1);
        }
        let before = std::mem::replace(&mut self.0[0], slot);
        new && before.answer != EMPTY
    }
}

/// The most sets of a new cache.
const FIRST_SETS_MAX: usize = 1 << 12;
/// A cache doubles when it has lost one slot for each group of so many sets.
const SETS_A_LOSS: usize = 16;

fn empty_sets(sets: usize) -> Box<[Set]> {
    vec![Set([Slot { raw: 0, answer: EMPTY }; 4]); sets].into_boxed_slice()
}

/// Cache of bounded size from raw references to fingerprints.
///
/// ```
/// use webstrata_datasets::{Base, Fingerprint, Interner, URL_BYTES};
///
/// let mut interner = Interner::new(1 << 10, URL_BYTES);
/// let page = Base::new("http://example.org/news/", "")?;
/// let mut texts = Vec::new();
/// for reference in ["../about", "/about#team", "http://EXAMPLE.org/about"] {
///     let link = interner.intern(Some(&page), reference, &mut |_, text| texts.push(text.to_owned()))?;
///     assert_eq!(link, Fingerprint::of("http://example.org/about"));
/// }
/// // Three spellings of one URL: its text is handed over once.
/// assert_eq!(texts, ["http://example.org/about"]);
/// # Ok::<(), webstrata_datasets::Finding>(())
/// ```
pub struct Interner {
    sets: Box<[Set]>,
    sets_max: usize,
    /// The number of slots that were dropped since the cache has this size.
    lost: usize,
    url_bytes_max: usize,
}

impl Interner {
    /// An empty cache for URLs of at most `url_bytes_max` bytes. The cache grows up to `slots_max` slots, rounded up to
    /// a power of two.
    pub fn new(slots_max: usize, url_bytes_max: usize) -> Self {
        let sets_max = slots_max.div_ceil(4).next_power_of_two();
        Interner { sets: empty_sets(sets_max.min(FIRST_SETS_MAX)), sets_max, lost: 0, url_bytes_max }
    }

    /// The fingerprint of a reference, resolved against `base`. Calls `fresh` with each canonical text that was not
    /// seen recently, at the latest when its fingerprint is returned for the first time. A recently seen text that
    /// begins with `http://` or `https://` costs one xxh3-128 and one probe: no allocation, no URL parsing.
    ///
    /// # Errors
    /// [`Finding::BadLink`], [`Finding::OtherLinkScheme`] or [`Finding::LongLink`].
    #[inline]
    pub fn intern(
        &mut self,
        base: Option<&Base>,
        reference: &str,
        fresh: &mut dyn FnMut(Fingerprint, &str),
    ) -> Result<Fingerprint, Finding> {
        let mut raw = xxh3_128(reference.as_bytes());
        if let Some(base) = base
            && !is_absolute(reference)
        {
            raw ^= base.hash_for(reference);
        }
        match self.set(raw).get(raw) {
            None | Some(EMPTY) => {}
            Some(BAD_LINK) => return Err(Finding::BadLink),
            Some(OTHER_LINK_SCHEME) => return Err(Finding::OtherLinkScheme),
            Some(LONG_LINK) => return Err(Finding::LongLink),
            Some(fingerprint) => return Ok(Fingerprint(fingerprint)),
        }
        self.miss(raw, base, reference, fresh)
    }

    #[cold]
    #[inline(never)]
    fn miss(
        &mut self,
        raw: u128,
        base: Option<&Base>,
        reference: &str,
        fresh: &mut dyn FnMut(Fingerprint, &str),
    ) -> Result<Fingerprint, Finding> {
        let bytes_max = self.url_bytes_max;
        let base = base.filter(|_| !is_absolute(reference));
        let found = if base.is_some_and(|base| base.is_long) {
            canonical_within(None, reference, bytes_max).map_err(|finding| match finding {
                Finding::BadLink => Finding::LongLink,
                finding => finding,
            })
        } else {
            canonical_within(base.and_then(Base::parsed).map(|parsed| &parsed.url), reference, bytes_max)
        };
        match found {
            Ok(text) => {
                let fingerprint = Fingerprint::of(&text);
                let answer = fingerprint.0;
                let cacheable = answer >= FINGERPRINT_MIN;
                if !cacheable || self.set(answer).get(answer) != Some(answer) {
                    fresh(fingerprint, &text);
                }
                if cacheable {
                    self.put(Slot { raw: answer, answer });
                    self.put(Slot { raw, answer });
                }
                Ok(fingerprint)
            }
            Err(finding) => {
                let answer = match finding {
                    Finding::OtherLinkScheme => OTHER_LINK_SCHEME,
                    Finding::LongLink => LONG_LINK,
                    _ => BAD_LINK,
                };
                self.put(Slot { raw, answer });
                Err(finding)
            }
        }
    }

    fn put(&mut self, slot: Slot) {
        self.lost += usize::from(self.set(slot.raw).put(slot));
        if self.lost * SETS_A_LOSS > self.sets.len() && self.sets.len() < self.sets_max {
            self.lost = 0;
            let large = empty_sets(self.sets.len() * 2);
            let small = std::mem::replace(&mut self.sets, large);
            // The recently used slots are put last, so that they stay recently used.
            for slot in small.iter().flat_map(|set| set.0.iter().rev()).filter(|slot| slot.answer != EMPTY) {
                self.set(slot.raw).put(*slot);
            }
        }
    }

    #[inline]
    fn set(&mut self, raw: u128) -> &mut Set {
        let mask = self.sets.len() - 1;
        &mut self.sets[raw as usize & mask]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url::reference::URL_BYTES;
    use proptest::prelude::*;
    use std::collections::HashMap;
    use webstrata_url::canonical;

    fn intern(
        interner: &mut Interner,
        base: Option<&Base>,
        reference: &str,
    ) -> (Result<Fingerprint, Finding>, Vec<String>) {
        let mut texts = Vec::new();
        let answer = interner.intern(base, reference, &mut |fingerprint, text| {
            assert_eq!(fingerprint, Fingerprint::of(text));
            texts.push(text.to_owned());
        });
        (answer, texts)
    }

    #[test]
    fn spellings_of_one_url_share_a_fingerprint_and_one_text() {
        let mut interner = Interner::new(1024, URL_BYTES);
        let base = Base::new("http://example.com/dir/page", "").unwrap();
        let (first, texts) = intern(&mut interner, None, "http://EXAMPLE.com/dir/a#x");
        assert_eq!(texts, ["http://example.com/dir/a"]);
        assert_eq!(first, Ok(Fingerprint::of("http://example.com/dir/a")));
        for reference in ["http://example.com/dir/a", "a", "../dir/a", "./a#y", "http://EXAMPLE.com/dir/a#x"] {
            assert_eq!(intern(&mut interner, Some(&base), reference), (first, vec![]), "{reference}");
        }
    }

    #[test]
    fn the_cache_grows_with_its_urls_up_to_its_bound() {
        let urls: Vec<String> = (0..40_000).map(|number| format!("http://example.com/{number}")).collect();
        let fresh_again = |slots_max| {
            let mut interner = Interner::new(slots_max, URL_BYTES);
            urls.iter().for_each(|url| assert_eq!(intern(&mut interner, None, url).1.len(), 1));
            assert!(interner.sets.len() * 4 <= slots_max);
            urls.iter().filter(|url| !intern(&mut interner, None, url).1.is_empty()).count()
        };
        let forgotten = fresh_again(1 << 18);
        assert!(forgotten < 4_000, "{forgotten} of 40,000 were forgotten with room for 260,000");
        assert!(fresh_again(1 << 12) > 35_000, "a small bound is kept");
    }

    #[test]
    fn the_same_reference_differs_by_base() {
        let mut interner = Interner::new(1 << 12, URL_BYTES);
        let mut resolve = |page: &str, href: &str, reference: &str| {
            intern(&mut interner, Some(&Base::new(page, href).unwrap()), reference).0
        };
        for (page, href, reference, expected) in [
            ("http://example.com/a/b", "", "c", "http://example.com/a/c"),
            ("http://example.com/a/z?q", "", "c", "http://example.com/a/c"),
            ("http://example.com/x/b", "", "c", "http://example.com/x/c"),
            ("http://example.com/a/b", "/x/", "c", "http://example.com/x/c"),
            ("http://example.com", "", "c", "http://example.com/c"),
            ("http://example.org", "", "c", "http://example.org/c"),
            ("http://example.com/a/b", "", "?c", "http://example.com/a/b?c"),
            ("http://example.com/a/z", "", "?c", "http://example.com/a/z?c"),
            ("http://example.com/a/z?q/r", "", "", "http://example.com/a/z?q/r"),
            ("http://example.com/a/z?q/r", "", "c", "http://example.com/a/c"),
            ("http://example.com/a/b", "", "http:?c", "http://example.com/a/b?c"),
            ("http://example.com/a/z", "", "http:?c", "http://example.com/a/z?c"),
            ("http://example.com/a/..", "", "c", "http://example.com/c"),
            ("http://example.com/a\\b\\c", "", "c", "http://example.com/a/b/c"),
        ] {
            assert_eq!(resolve(page, href, reference), Ok(Fingerprint::of(expected)), "{page} {href} {reference}");
        }
    }

    #[test]
    fn rejects_are_remembered() {
        let mut interner = Interner::new(16, URL_BYTES);
        for _ in 0..2 {
            assert_eq!(intern(&mut interner, None, "mailto:a@example.com").0, Err(Finding::OtherLinkScheme));
            assert_eq!(intern(&mut interner, None, "a/b").0, Err(Finding::BadLink));
            assert_eq!(intern(&mut interner, None, "").0, Err(Finding::BadLink));
        }
        let base = Base::new("http://example.com:99999/", "").unwrap();
        assert_eq!(intern(&mut interner, Some(&base), "a/b").0, Err(Finding::BadLink));
        assert_eq!(Base::new("a/b", "").err(), Some(Finding::BadPageUrl));
        assert_eq!(Base::new("dns:example.com", "").err(), Some(Finding::OtherPageScheme));
    }

    #[test]
    fn long_urls_are_left_out_whatever_makes_them_long() {
        let mut interner = Interner::new(16, 40);
        let base = Base::within("http://example.com/", &"x".repeat(41), 40).unwrap();
        let long = format!("http://example.com/{}", "y".repeat(30));
        for _ in 0..2 {
            assert_eq!(intern(&mut interner, None, &long).0, Err(Finding::LongLink));
            assert_eq!(intern(&mut interner, Some(&base), "a").0, Err(Finding::LongLink));
            assert_eq!(intern(&mut interner, Some(&base), "mailto:a").0, Err(Finding::OtherLinkScheme));
            assert!(intern(&mut interner, Some(&base), "http://example.com/a").0.is_ok());
        }
    }

    proptest! {
        /// With a cache that is far too small: answers equal those of `canonical`, and no fingerprint comes before its
        /// text.
        #[test]
        fn a_forgetful_cache_is_still_right(
            captures in prop::collection::vec(
                (
                    "https?://[ab]\\.example(/[ab]{0,2}){0,2}(\\?[ab])?",
                    prop::collection::vec("[ab/.?#:]{0,4}|https?://[ab]\\.example/[ab]?", 0..6),
                ),
                0..40,
            ),
        ) {
            let mut interner = Interner::new(4, URL_BYTES);
            let mut texts = HashMap::new();
            for (page, references) in &captures {
                let base = Base::new(page, "").unwrap();
                let parsed = Url::parse(page).unwrap();
                for reference in references {
                    let answer = interner.intern(Some(&base), reference, &mut |fingerprint, text| {
                        texts.insert(fingerprint, text.to_owned());
                    });
                    let expected = canonical(Some(&parsed), reference);
                    let fingerprint = expected.as_deref().map(Fingerprint::of);
                    prop_assert_eq!(answer, fingerprint.map_err(|&error| Finding::from(error)));
                    if let Ok(fingerprint) = answer {
                        prop_assert_eq!(texts.get(&fingerprint), expected.as_ref().ok());
                    }
                }
            }
        }
    }
}
