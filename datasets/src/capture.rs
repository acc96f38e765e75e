//! A capture: one retrieval of one page. Every reader returns captures.
//!
//! A capture holds URLs and links as the crawl file spells them, with entities decoded and white space trimmed.
//! [`crate::url::interner`] turns the URLs into identities. Relative links stay relative: a revisit under another URL
//! takes the links of the first retrieval and resolves the links against the URL of the revisit.
//!
//! A reader fills the same `Capture` again and again, so that the buffers are allocated once.

pub(crate) mod cut;
pub(crate) mod date;
pub(crate) mod dictionary;
pub(crate) mod digest;
pub(crate) mod meaning;
pub(crate) mod method;
pub(crate) mod overflow;

use crate::capture::cut::Cut;
use crate::capture::dictionary::Dictionary;
use crate::capture::overflow::Overflow;
use std::io;
use std::path::Path;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_128_with_seed;

/// One retrieval of one page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capture {
    /// URL of the page, absolute, as the crawl file spells it.
    pub url: String,
    /// Time of the retrieval, seconds since 1970 in UTC; finer parts are dropped.
    pub time: i64,
    /// The `href` of the `<base>` of the page; empty if there is none. It may be relative to `url`.
    pub base: String,
    /// Links in the order of the page, with repetitions; empty if `content` says that they are elsewhere or unknown.
    pub links: Texts,
    /// Whether the links are here, in another capture, or unknown.
    pub content: Content,
    /// Digest of the payload, if the crawl file has one.
    pub digest: Option<Digest>,
    /// Status code of the response, 200 to 999, if the crawl file has one. Captures without a status count as 200. A
    /// revisit has a status only if its record gives one.
    pub status: Option<u16>,
    /// Why the body was not read whole; `None` if the body was read whole, or if `content` is not [`Content::Links`].
    /// The status of a cut capture is none, 200, 203 or 206.
    pub cut: Option<Cut>,
    /// The age of a record without a date; its `time` means nothing. If a page has several undated records, the record
    /// with the greatest bytes here is the newest, and only the newest counts.
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
        self.status = None;
        self.cut = None;
        self.undated = None;
    }
}

/// Whether a capture carries its links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Content {
    /// [`Capture::links`] holds every link of the page, or the links that were found if the capture is cut. A response
    /// that is not a page has no links, except the target of a redirect.
    #[default]
    Links,
    /// The links are unknown, which is not the same as no links.
    Unknown,
    /// The page had not changed. Its links are the links of the capture that the revisit refers to.
    Revisit(Revisit),
}

/// The fields of a revisit record about the capture that it refers to.
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
    /// The payload has the digest of an earlier payload.
    IdenticalDigest,
    /// The server answered 304.
    NotModified,
}

/// A payload digest: a 128-bit hash of its algorithm and its bytes, so that hexadecimal and base 32 spellings agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub u128);

/// Many short texts: in one allocation, or as keys into a dictionary that many captures share.
///
/// With a bound, texts beyond the bound are on disk until [`Texts::turn`] loads them. All other methods see only the
/// texts in memory.
///
/// ```
/// use webstrata_datasets::Texts;
///
/// let mut links = Texts::default();
/// links.push("/about");
/// links.push("http://example.com/");
/// assert_eq!(links.iter().collect::<Vec<_>>(), ["/about", "http://example.com/"]);
/// ```
#[derive(Debug, Default)]
pub struct Texts {
    text: String,
    ends: Vec<usize>,
    /// The keys of further texts, which follow the texts above.
    keys: Vec<u64>,
    dictionary: Option<Arc<Dictionary>>,
    /// Keys that wait for their turn. The next keys are last.
    waiting: Vec<u64>,
    overflow: Option<Box<Overflow>>,
}

/// The bytes that a text takes besides its letters, here and as a fingerprint.
const TEXT_BYTES: usize = 24;

impl Clone for Texts {
    /// The copy has neither the texts on disk nor a bound.
    fn clone(&self) -> Self {
        let Texts { text, ends, keys, dictionary, .. } = self;
        let (text, ends, keys, dictionary) = (text.clone(), ends.clone(), keys.clone(), dictionary.clone());
        Texts { text, ends, keys, dictionary, ..Texts::default() }
    }
}

impl PartialEq for Texts {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Texts {}

impl Texts {
    /// No texts yet. Texts beyond about `bytes_max` bytes will go to a temporary file in `directory`.
    pub fn within(bytes_max: usize, directory: &Path) -> Self {
        Texts { overflow: Some(Box::new(Overflow::new(directory, bytes_max))), ..Texts::default() }
    }

    /// Adds a text at the end.
    pub fn push(&mut self, text: &str) {
        if let Some(overflow) = &mut self.overflow
            && self.text.len() + text.len() + self.ends.len() * TEXT_BYTES > overflow.bytes_max
            && !self.ends.is_empty()
        {
            overflow.add(&self.text, &self.ends);
            self.text.clear();
            self.ends.clear();
        }
        self.text.push_str(text);
        self.ends.push(self.text.len());
    }

    /// Replaces the texts in memory by the next texts of the same list. Returns `false` after each text was in memory
    /// once.
    ///
    /// # Errors
    /// I/O errors of the temporary file, also of earlier writes.
    pub fn turn(&mut self) -> io::Result<bool> {
        self.keys.clear();
        if !self.waiting.is_empty() {
            let keys = self.overflow.as_ref().map_or(usize::MAX, |overflow| overflow.bytes_max / TEXT_BYTES);
            let rest = self.waiting.len().saturating_sub(keys.max(1));
            self.keys.extend(self.waiting.drain(rest..));
            return Ok(true);
        }
        let Texts { text, ends, overflow, .. } = self;
        text.clear();
        ends.clear();
        overflow.as_mut().map_or(Ok(false), |overflow| overflow.next(text, ends))
    }

    /// Replaces the texts by the texts of keys.
    pub(crate) fn set_keys(&mut self, dictionary: &Arc<Dictionary>, keys: &[u64]) {
        self.clear();
        let held = self.overflow.as_ref().map_or(usize::MAX, |overflow| overflow.bytes_max / TEXT_BYTES);
        let (keys, waiting) = keys.split_at(keys.len().min(held.max(1)));
        self.waiting.extend_from_slice(waiting);
        self.keys.extend_from_slice(keys);
        if self.dictionary.as_ref().is_none_or(|held| held.id() != dictionary.id()) {
            self.dictionary = Some(Arc::clone(dictionary));
        }
    }

    /// The dictionary and the keys of all texts; `None` if texts are held as letters.
    pub fn keys(&self) -> Option<(&Dictionary, &[u64])> {
        self.dictionary.as_deref().filter(|_| self.ends.is_empty()).map(|dictionary| (dictionary, &self.keys[..]))
    }

    /// The texts in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let mut start = 0;
        let spelt = self.ends.iter().map(move |&end| {
            let text = &self.text[start..end];
            start = end;
            text
        });
        let dictionary = self.dictionary.iter();
        spelt.chain(dictionary.flat_map(|dictionary| self.keys.iter().map(|&key| dictionary.get(key))))
    }

    /// A hash of the texts in their order. Two lists of different texts almost surely have different hashes. Two lists
    /// of the same texts have the same hash if both hold letters, or both hold keys of one dictionary.
    pub fn hash(&self) -> u128 {
        let mix = |hash: u64, number: u64| (hash.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // Not 0, which the key 0 and the end of an empty text would leave as it is.
        let begin = self.len() as u64 + 1;
        if let Some((dictionary, keys)) = self.keys() {
            let keys = keys.iter().fold(begin, |hash, &key| mix(hash, key));
            return xxh3_128_with_seed(&dictionary.id().to_le_bytes(), keys);
        }
        // The ends of the texts distinguish `a bc` from `ab c`.
        xxh3_128_with_seed(self.text.as_bytes(), self.ends.iter().fold(begin, |hash, &end| mix(hash, end as u64)))
    }

    /// The number of texts in memory.
    pub fn len(&self) -> usize {
        self.ends.len() + self.keys.len()
    }

    /// The text, if there is exactly one.
    pub(crate) fn sole(&self) -> Option<&str> {
        let is_alone = self.len() == 1
            && self.waiting.is_empty()
            && self.overflow.as_ref().is_none_or(|overflow| overflow.is_empty());
        self.iter().next().filter(|_| is_alone)
    }

    /// Whether the list is empty, on disk too.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
            && self.keys.is_empty()
            && self.overflow.as_ref().is_none_or(|overflow| overflow.is_empty())
    }

    /// Removes all texts and keeps the allocation.
    pub fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
        self.keys.clear();
        self.waiting.clear();
        if let Some(overflow) = &mut self.overflow {
            overflow.clear();
        }
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
    use arrow_array::StringArray;

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
        // Keys of 0 in front are texts, too.
        let hashes = [&[][..], &[0], &[0, 0], &[1, 2], &[0, 1, 2]].map(|list| {
            keys.set_keys(&dictionary, list);
            keys.hash()
        });
        assert_eq!(hashes.into_iter().collect::<std::collections::HashSet<u128>>().len(), 5);
        keys.set_keys(&dictionary, &[1, 0, 2, 1]);
        assert_eq!(keys.hash(), hash);
        keys.clear();
        assert!(keys.is_empty() && keys.iter().next().is_none());
    }

    #[test]
    fn texts_beyond_the_bound_come_back_in_turn() {
        let directory = tempfile::tempdir().unwrap();
        let all: Vec<String> = (0..500).map(|number| "é".repeat(number % 40)).collect();
        let dictionary = Arc::new(Dictionary::new(StringArray::from_iter_values(&all)));
        let mut texts = Texts::within(1000, directory.path());
        for turn in 0..2 {
            texts.clear();
            match turn {
                0 => all.iter().for_each(|text| texts.push(text)),
                _ => texts.set_keys(&dictionary, &(0..500).collect::<Vec<_>>()),
            }
            let (mut got, mut turns) = (Vec::new(), 0);
            loop {
                assert!(texts.len() < 50 && !texts.is_empty());
                got.extend(texts.iter().map(str::to_owned));
                turns += 1;
                if !texts.turn().unwrap() {
                    break;
                }
            }
            got.sort();
            let mut expected = all.clone();
            expected.sort();
            assert_eq!(got, expected);
            assert!(turns > 10 && texts.is_empty() && !texts.turn().unwrap());
        }
        texts = Texts::within(100, &directory.path().join("none"));
        all.iter().for_each(|text| texts.push(text));
        assert!(texts.turn().is_err(), "the full disk is reported");
    }

    #[test]
    fn where_texts_end_is_in_their_hash() {
        let [one, other] = [["ab", "c"], ["a", "bc"]].map(|texts| texts.into_iter().collect::<Texts>());
        assert_ne!(one.hash(), other.hash());
        let [one, other] = [&["", "a"][..], &["a"]].map(|texts| texts.iter().copied().collect::<Texts>());
        assert_ne!(one.hash(), other.hash(), "an empty text in front");
    }
}
