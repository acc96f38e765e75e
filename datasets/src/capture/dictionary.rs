//! Texts that a file stores once, for any number of captures. A capture has the keys of its links, from 0, so that a
//! link that occurs in many captures is looked up once.
//!
//! There are two stores of texts: a column of Parquet, as the file has it; and [`HostUrls`], the URLs of the hosts of a
//! web graph, which has so many that every byte of them counts.

use arrow_array::{Array, StringArray};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Texts that a file stores once, for any number of captures.
#[derive(Debug)]
pub struct Dictionary {
    id: u64,
    texts: Stored,
}

#[derive(Debug)]
enum Stored {
    Column(StringArray),
    Hosts(HostUrls),
}

impl Dictionary {
    /// Makes a dictionary of texts that are not null.
    pub(crate) fn new(texts: StringArray) -> Self {
        Self::of(Stored::Column(texts))
    }

    /// Makes a dictionary of the URLs of hosts.
    pub(crate) fn of_hosts(urls: HostUrls) -> Self {
        Self::of(Stored::Hosts(urls))
    }

    fn of(texts: Stored) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // Relaxed: numbers need to differ, nothing else.
        Dictionary { id: NEXT.fetch_add(1, Relaxed), texts }
    }

    /// The number of the dictionary, unique in this process.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The number of texts.
    pub fn len(&self) -> usize {
        match &self.texts {
            Stored::Column(texts) => texts.len(),
            Stored::Hosts(urls) => urls.lengths.len(),
        }
    }

    /// Whether the dictionary has no texts.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The text of a key; empty if the dictionary does not have the key.
    pub fn get(&self, key: u64) -> &str {
        let Some(key) = usize::try_from(key).ok().filter(|&key| key < self.len()) else { return "" };
        match &self.texts {
            Stored::Column(texts) => texts.value(key),
            Stored::Hosts(urls) => urls.get(key),
        }
    }
}

/// The URLs of hosts, `http://HOST/`, in the order in which they were added. The number of a URL is its key.
///
/// Memory: 10.5 bytes a host besides its name: 8 of the URL around the name, 2 for the length, and 8 for each 16 hosts.
#[derive(Debug, Default)]
pub(crate) struct HostUrls {
    text: String,
    /// The length of each URL.
    lengths: Vec<u16>,
    /// The place in `text` of the URLs 0, 16, 32, ...
    starts: Vec<usize>,
}

/// The number of URLs for each start.
const STRIDE: usize = 16;

impl HostUrls {
    /// The most bytes of a URL.
    pub(crate) const BYTES_MAX: usize = u16::MAX as usize;

    /// Adds a URL of at most [`Self::BYTES_MAX`] bytes. Returns its key.
    pub(crate) fn push(&mut self, url: &str) -> u64 {
        let key = self.lengths.len();
        if key.is_multiple_of(STRIDE) {
            self.starts.push(self.text.len());
        }
        self.text.push_str(url);
        self.lengths.push(u16::try_from(url.len()).unwrap_or(0));
        key as u64
    }

    /// Gives back memory that was held for more hosts.
    pub(crate) fn shrink(&mut self) {
        self.text.shrink_to_fit();
        self.lengths.shrink_to_fit();
        self.starts.shrink_to_fit();
    }

    fn get(&self, key: usize) -> &str {
        let first = key - key % STRIDE;
        let skipped: usize = self.lengths[first..key].iter().map(|&length| usize::from(length)).sum();
        let start = self.starts[key / STRIDE] + skipped;
        &self.text[start..start + usize::from(self.lengths[key])]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_hosts_come_back() {
        let names: Vec<String> = (0..100).map(|number| format!("{}.example", "é".repeat(number % 7))).collect();
        let mut urls = HostUrls::default();
        let keys: Vec<u64> = names.iter().map(|name| urls.push(&format!("http://{name}/"))).collect();
        assert_eq!(keys, (0..100).collect::<Vec<u64>>());
        urls.shrink();
        let dictionary = Dictionary::of_hosts(urls);
        for (key, name) in (0..).zip(&names) {
            assert_eq!(dictionary.get(key), format!("http://{name}/"));
        }
        assert_eq!((dictionary.len(), dictionary.get(100), dictionary.get(u64::MAX)), (100, "", ""));
    }
}
