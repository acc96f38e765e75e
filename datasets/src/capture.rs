//! A capture: one retrieval of one page, as a reader hands it on. The only type that leaves this crate's readers.
//!
//! URLs and links stand here as the crawl file spells them (entities decoded, white space trimmed); they become
//! identities in [`crate::interner`]. Relative links stay relative, because a revisit found under another URL takes
//! the links of the first retrieval resolved against its own URL.
//!
//! Readers fill one `Capture` again and again, so that its buffers are allocated once.

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

/// Many short texts in one allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts {
    text: String,
    ends: Vec<usize>,
}

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

    /// The texts in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let text = &self.text[start..end];
            start = end;
            text
        })
    }

    /// A hash of the texts in their order: the same for the same texts, by all odds another for others.
    pub fn hash(&self) -> u128 {
        // Where the texts end tells `a bc` from `ab c`.
        let mix = |hash: u64, &end: &usize| (hash.rotate_left(5) ^ end as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        xxh3_128_with_seed(self.text.as_bytes(), self.ends.iter().fold(0, mix))
    }

    /// How many texts there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Removes all texts and keeps the allocation.
    pub fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
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
