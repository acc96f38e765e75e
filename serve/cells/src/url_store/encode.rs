//! Encodes the keys of a cell in two passes: the first samples and trains, the second writes.
//!
//! Invariants: keys rise, and the second pass sees the keys of the first. The same keys and options give the same
//! bytes.

use super::parser::{Parser, Trie};
use super::shared::{Counts, Writer};
use super::tokens::{END, SYMBOLS, Trained};
use super::train::{self, Sample};
use super::{BLOCK_MAX, KEY_BYTES_MAX, NODE_BLOCKS, VERSION, codes, tokens};
use crate::coding::bits::BitWriter;
use crate::error::UrlsError;

/// The options of a URL store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The number of keys in a block, 4 to 64: more keys take less room and more time.
    pub block: usize,
    /// The approximate size in bytes of the texts that the dictionary is trained on.
    pub sample: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { block: 16, sample: 1 << 20 }
    }
}

/// Encodes keys. `keys` calls its argument with each key, rising, and stops at the first error that the call returns.
/// `keys` is called twice and must give the same keys.
///
/// ```
/// use webstrata_cells::UrlsError;
/// use webstrata_cells::url_store::{Options, UrlStore, encode};
///
/// let keys = ["com,example,)/\x01", "com,example,)/a\x02"];
/// let image = encode(|each| keys.iter().try_for_each(|key| each(key.as_bytes())), Options::default())?;
/// let store = UrlStore::open(image.into()).expect("an image");
/// let mut url = String::new();
/// store.url(1, &mut url).expect("a URL");
/// assert_eq!(url, "https://example.com/a");
/// assert_eq!(store.find(b"com,example,)/a\x02"), Ok(Some(1)));
/// # Ok::<(), UrlsError>(())
/// ```
///
/// # Errors
/// The errors of `keys`, and an [`UrlsError`].
pub fn encode<E: From<UrlsError>>(
    mut keys: impl FnMut(&mut dyn FnMut(&[u8]) -> Result<(), UrlsError>) -> Result<(), E>,
    options: Options,
) -> Result<Vec<u8>, E> {
    if !(4..=BLOCK_MAX).contains(&options.block) {
        return Err(UrlsError::Block { block: options.block }.into());
    }
    let (mut sample, mut counts, mut texts) = (Sample::new(options.sample), Counts::new(), Vec::new());
    let mut cutter = Cutter::new(options.block);
    keys(&mut |key| {
        let cut = cutter.push(key)?;
        if cut.starts != Starts::Entry && !texts.is_empty() {
            sample.push(&texts);
            texts.clear();
        }
        if cut.starts != Starts::Node {
            counts.add(cut.before, cut.shared);
        }
        texts.extend_from_slice(&cut.rest);
        Ok(())
    })?;
    sample.push(&texts);
    let count = cutter.count;
    let mut image = Image::new(&train::train(&sample), &counts, sample.alphabet);
    drop((sample, texts));

    let mut cutter = Cutter::new(options.block);
    keys(&mut |key| image.push(cutter.push(key)?))?;
    if cutter.count != count {
        return Err(UrlsError::Changed.into());
    }
    Ok(image.finish(&cutter)?)
}

/// What a key is the first of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Starts {
    Node,
    Block,
    Entry,
}

/// A key as it is stored.
#[derive(Debug)]
struct Cut {
    starts: Starts,
    /// The bytes shared with the key before (for the first key of a block, with the first key of the block before), or
    /// the length of the node's separator; and the same of the entry before.
    shared: usize,
    before: usize,
    /// The separator of a node.
    separator: Vec<u8>,
    /// The rest of the key, and the end.
    rest: Vec<u16>,
}

/// Cuts keys.
struct Cutter {
    /// The number of keys in a block.
    block: usize,
    /// The number of keys so far.
    count: u64,
    longest: usize,
    previous: Vec<u8>,
    /// The first key of the block, and the length that it shares.
    head: Vec<u8>,
    head_shared: usize,
    cut: Cut,
}

impl Cutter {
    fn new(block: usize) -> Self {
        let cut = Cut { starts: Starts::Node, shared: 0, before: 0, separator: Vec::new(), rest: Vec::new() };
        Self { block, count: 0, longest: 0, previous: Vec::new(), head: Vec::new(), head_shared: 0, cut }
    }

    /// Cuts the next key.
    fn push(&mut self, key: &[u8]) -> Result<&Cut, UrlsError> {
        if key.len() > KEY_BYTES_MAX {
            return Err(UrlsError::TooLong { bytes: key.len() });
        }
        let shared = shared_length(&self.previous, key);
        if self.count > 0 && self.previous.get(shared) >= key.get(shared) {
            return Err(UrlsError::OutOfOrder { previous: self.previous.clone(), got: key.to_vec() });
        }
        let (block, cut) = (self.block as u64, &mut self.cut);
        cut.starts = match self.count {
            count if count.is_multiple_of(block * NODE_BLOCKS as u64) => Starts::Node,
            count if count.is_multiple_of(block) => Starts::Block,
            _ => Starts::Entry,
        };
        (cut.before, cut.shared) = match cut.starts {
            Starts::Entry => (cut.shared, shared),
            Starts::Block => (self.head_shared, shared_length(&self.head, key)),
            // The byte that differs from the key before belongs to the separator.
            Starts::Node => (0, shared + usize::from(self.count > 0)),
        };
        if cut.starts != Starts::Entry {
            self.head.clear();
            self.head.extend_from_slice(key);
            self.head_shared = cut.shared;
        }
        if cut.starts == Starts::Node {
            cut.separator.clear();
            cut.separator.extend_from_slice(&key[..cut.shared]);
        }
        cut.rest.clear();
        cut.rest.extend(key[cut.shared..].iter().map(|&byte| u16::from(byte)).chain([END]));
        self.previous.truncate(shared);
        self.previous.extend_from_slice(&key[shared..]);
        self.longest = self.longest.max(key.len());
        self.count += 1;
        Ok(cut)
    }
}

fn shared_length(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// The image under construction.
struct Image {
    /// The dictionary, and the code of shared lengths.
    dictionary: Vec<u8>,
    trie: Trie,
    /// The code of each token in the trie, and the code's length in bits.
    codes: Vec<(u32, u32)>,
    shared: Writer,
    alphabet: [bool; SYMBOLS],
    parser: Parser,
    separators: Vec<u8>,
    nodes: Vec<u8>,
    /// The offset of each separator and of each node.
    separator_starts: Vec<usize>,
    node_starts: Vec<usize>,
    /// The first keys of the node under construction, and its blocks.
    heads: BitWriter,
    blocks: Vec<Vec<u8>>,
    /// The block under construction.
    block: BitWriter,
}

impl Image {
    fn new(trained: &Trained, counts: &Counts, alphabet: [bool; SYMBOLS]) -> Self {
        let (mut trie, shared, mut bits) = (Trie::new(), counts.fit(), BitWriter::default());
        tokens::store(trained, &mut bits);
        shared.store(&mut bits);
        for (number, (token, _)) in (0..).zip(trained) {
            trie.insert(token, number);
        }
        Self {
            dictionary: bits.into_bytes(),
            trie,
            codes: codes::codes(trained),
            shared,
            alphabet,
            parser: Parser::default(),
            separators: Vec::new(),
            nodes: Vec::new(),
            separator_starts: Vec::new(),
            node_starts: Vec::new(),
            heads: BitWriter::default(),
            blocks: Vec::new(),
            block: BitWriter::default(),
        }
    }

    /// Adds a key.
    fn push(&mut self, cut: &Cut) -> Result<(), UrlsError> {
        if cut.rest.iter().any(|&symbol| !self.alphabet[usize::from(symbol)]) {
            return Err(UrlsError::Changed);
        }
        match cut.starts {
            Starts::Entry => {}
            Starts::Block => self.end_block(),
            Starts::Node => {
                self.end_node();
                self.separator_starts.push(self.separators.len());
                self.node_starts.push(self.nodes.len());
                self.separators.extend_from_slice(&cut.separator);
            }
        }
        let bits = if cut.starts == Starts::Entry { &mut self.block } else { &mut self.heads };
        if cut.starts != Starts::Node && !self.shared.write(cut.before, cut.shared, bits) {
            return Err(UrlsError::Changed);
        }
        let codes = &self.codes;
        let cost = |token: u32| codes.get(token as usize).map(|&(_, bits)| bits);
        self.parser.parse(&self.trie, &cut.rest, cost, |token| {
            let (code, length) = codes[token as usize];
            bits.write(u64::from(code), length);
        });
        Ok(())
    }

    fn end_block(&mut self) {
        self.blocks.push(std::mem::take(&mut self.block).into_bytes());
    }

    /// Writes the node of the blocks since the last node, if there are any.
    fn end_node(&mut self) {
        if self.heads.is_empty() {
            return;
        }
        self.end_block();
        let heads = std::mem::take(&mut self.heads).into_bytes();
        let parts = || std::iter::once(&heads).chain(&self.blocks);
        let width = width_for(parts().map(Vec::len).max().unwrap_or(0));
        let mut lengths = BitWriter::default();
        parts().for_each(|part| lengths.write(part.len() as u64, u32::from(width)));
        self.nodes.push(width);
        self.nodes.extend(lengths.into_bytes());
        parts().for_each(|part| self.nodes.extend_from_slice(part));
        self.blocks.clear();
    }

    fn finish(mut self, keys: &Cutter) -> Result<Vec<u8>, UrlsError> {
        self.end_node();
        self.separator_starts.push(self.separators.len());
        self.node_starts.push(self.nodes.len());
        let u32_of = |value: usize| u32::try_from(value).map(u32::to_le_bytes).map_err(|_| UrlsError::Full);
        let mut header = vec![VERSION, u8::try_from(keys.block).unwrap_or(0), 0, 0];
        header.extend(u32_of(keys.longest)?);
        header.extend(keys.count.to_le_bytes());
        for part in [&self.dictionary, &self.separators, &self.nodes] {
            header.extend(u32_of(part.len())?);
        }
        let mut offsets = BitWriter::default();
        for (width_out, starts) in header[2..4].iter_mut().zip([&self.separator_starts, &self.node_starts]) {
            let width = width_for(starts.last().copied().unwrap_or(0)).max(1);
            starts.iter().for_each(|&start| offsets.write(start as u64, u32::from(width)));
            *width_out = width;
        }
        let parts = [header, self.dictionary, offsets.into_bytes(), self.separators, self.nodes];
        Ok(parts.concat())
    }
}

/// The width in bits for values up to `max`, at most 32.
fn width_for(max: usize) -> u8 {
    u8::try_from(usize::BITS - max.leading_zeros()).map_or(32, |bits| bits.min(32))
}
