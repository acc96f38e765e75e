//! A capture: one retrieval of one page, as a reader hands it on. The only type that leaves this crate's readers.
//!
//! URLs and links stand here as the crawl file spells them (entities decoded, white space trimmed); they become
//! identities in [`crate::interner`]. Relative links stay relative, because a revisit found under another URL takes
//! the links of the first retrieval resolved against its own URL.
//!
//! Readers fill one `Capture` again and again, so that its buffers are allocated once.

use arrow::array::{Array, StringArray};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use xxhash_rust::xxh3::xxh3_128_with_seed;

/// One retrieval of one page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capture {
    /// URL of the page, absolute, as the crawl file spells it.
    pub url: String,
    /// Time of the retrieval, seconds since 1970 in UTC; finer parts are dropped.
    pub time: i64,
    /// The `href` of the page's `<base>`, empty where it has none; may be relative to `url`.
    pub base: String,
    /// What the page links to, in the order of the page, with repetitions. For a revisit: only what the revisit
    /// record itself says (a `Location` header), the rest comes from the capture that it refers to.
    pub links: Texts,
    /// Whether the links are here or in another capture.
    pub content: Content,
    /// Digest of the payload, where the crawl file has one.
    pub digest: Option<Digest>,
    /// Where the record has no date, and `time` stands for none: how new it is. Of such records of one page the newest
    /// counts, that is the one with the greatest bytes here.
    pub undated: Option<Vec<u8>>,
}

impl Capture {
    /// Makes the capture empty and keeps its buffers.
    pub fn clear(&mut self) {
        self.url.clear();
        self.time = 0;
        self.base.clear();
        self.links.clear();
        self.content = Content::Links;
        self.digest = None;
        self.undated = None;
    }
}

/// Whether a capture carries its links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Content {
    /// [`Capture::links`] holds every link of the page.
    #[default]
    Links,
    /// The page had not changed: its links are those of the capture that this refers to.
    Revisit(Revisit),
}

/// What a revisit record says of the capture that it refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revisit {
    /// Why the payload was not stored.
    pub profile: Profile,
    /// `WARC-Refers-To-Target-URI`, as spelt in the record.
    pub url: Option<String>,
    /// `WARC-Refers-To-Date`, seconds since 1970.
    pub time: Option<i64>,
}

/// The revisit profiles of WARC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// The payload has the digest of an earlier one.
    IdenticalDigest,
    /// The server answered 304.
    NotModified,
}

/// A payload digest: a 128-bit hash of its algorithm and its bytes, so that hexadecimal and base 32 spellings agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub u128);

/// Many short texts: in one allocation, or as keys into a dictionary that many captures share.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    text: String,
    ends: Vec<usize>,
    /// After those above.
    keys: Vec<i32>,
    dictionary: Option<Arc<Dictionary>>,
}

/// Texts that stand once in a file however many captures have them.
#[derive(Debug)]
pub struct Dictionary {
    id: u64,
    texts: StringArray,
}

impl Dictionary {
    /// The texts must not be null.
    pub(crate) fn new(texts: StringArray) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // Relaxed: numbers need to differ, nothing else.
        Dictionary { id: NEXT.fetch_add(1, Relaxed), texts }
    }

    /// Whether it is of these very texts, in memory.
    pub(crate) fn is(&self, texts: &StringArray) -> bool {
        self.texts.value_data().as_ptr() == texts.value_data().as_ptr() && self.texts.len() == texts.len()
    }

    /// Unique in this process.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// How many texts there are.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// The text of a key; empty for one that is not in here.
    pub fn get(&self, key: i32) -> &str {
        let key = usize::try_from(key).unwrap_or(usize::MAX);
        if key < self.texts.len() { self.texts.value(key) } else { "" }
    }
}

impl PartialEq for Texts {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Texts {}

impl Texts {
    /// Adds a text at the end.
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends.push(self.text.len());
    }

    /// Adds many texts: `text` is all of them end to end, `lengths` their lengths in bytes.
    pub(crate) fn extend(&mut self, text: &str, lengths: impl IntoIterator<Item = usize>) {
        let start = self.text.len();
        self.text.push_str(text);
        let mut end = start;
        self.ends.extend(lengths.into_iter().map(|length| {
            end += length;
            end
        }));
        debug_assert_eq!(end, self.text.len());
    }

    /// Makes these the texts of keys.
    pub(crate) fn set_keys(&mut self, dictionary: &Arc<Dictionary>, keys: &[i32]) {
        self.clear();
        self.keys.extend_from_slice(keys);
        if self.dictionary.as_ref().is_none_or(|own| own.id != dictionary.id) {
            self.dictionary = Some(Arc::clone(dictionary));
        }
    }

    /// The dictionary and the keys of all texts; `None` where they stand here as texts.
    pub fn keys(&self) -> Option<(&Dictionary, &[i32])> {
        self.dictionary.as_deref().filter(|_| self.ends.is_empty()).map(|dictionary| (dictionary, &self.keys[..]))
    }

    /// The texts in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let mut start = 0;
        let own = self.ends.iter().map(move |&end| {
            let text = &self.text[start..end];
            start = end;
            text
        });
        let dictionary = self.dictionary.iter();
        own.chain(dictionary.flat_map(|dictionary| self.keys.iter().map(|&key| dictionary.get(key))))
    }

    /// A hash of the texts in their order: by all odds another for other texts. The same texts have the same hash where
    /// they stand here as texts, or are keys of one dictionary.
    pub fn hash(&self) -> u128 {
        let mix = |hash: u64, number: u64| (hash.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        if let Some((dictionary, keys)) = self.keys() {
            let keys = keys.iter().fold(0, |hash, &key| mix(hash, u64::from(key.cast_unsigned())));
            return xxh3_128_with_seed(&dictionary.id.to_le_bytes(), keys);
        }
        // Where the texts end tells `a bc` from `ab c`.
        xxh3_128_with_seed(self.text.as_bytes(), self.ends.iter().fold(0, |hash, &end| mix(hash, end as u64)))
    }

    /// How many texts there are.
    pub fn len(&self) -> usize {
        self.ends.len() + self.keys.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty() && self.keys.is_empty()
    }

    /// Removes all texts and keeps the allocation.
    pub fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
        self.keys.clear();
    }
}

impl<'a> FromIterator<&'a str> for Texts {
    fn from_iter<I: IntoIterator<Item = &'a str>>(texts: I) -> Self {
        let mut all = Texts::default();
        for text in texts {
            all.push(text);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_as_good_as_texts() {
        let dictionary = Arc::new(Dictionary::new(StringArray::from_iter_values(["a", "bc", ""])));
        let mut keys = Texts::default();
        keys.push("forgotten");
        keys.set_keys(&dictionary, &[1, 0, 2, 1]);
        let texts: Texts = ["bc", "a", "", "bc"].into_iter().collect();
        assert_eq!(keys, texts);
        assert!(keys.len() == 4 && !keys.is_empty() && keys.keys().is_some() && texts.keys().is_none());
        let hash = keys.hash();
        keys.set_keys(&dictionary, &[1, 0, 2, 2]);
        assert!(keys != texts && keys.hash() != hash);
        keys.set_keys(&dictionary, &[1, 0, 2, 1]);
        assert_eq!(keys.hash(), hash);
        keys.clear();
        assert!(keys.is_empty() && keys.iter().next().is_none());
    }

    #[test]
    fn where_texts_end_is_in_their_hash() {
        let [one, other] = [["ab", "c"], ["a", "bc"]].map(|texts| texts.into_iter().collect::<Texts>());
        assert_ne!(one.hash(), other.hash());
    }
}
