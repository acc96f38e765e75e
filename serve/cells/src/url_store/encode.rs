//! Encodes the keys of a cell in two passes: the first samples and trains, the second writes.
//!
//! Invariants: keys rise, and the second pass sees the keys of the first. The same keys and options give the same
//! bytes.

use super::parser::{Parser, Trie};
use super::train::{self, Sample, Trained};
use super::{HEADER, KEY_BYTES_MAX, NODE_BLOCKS, VERSION, columns, tokens};
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
    if !(4..=columns::BLOCK_MAX).contains(&options.block) {
        return Err(UrlsError::Block { block: options.block }.into());
    }
    let (mut sample, mut blocks) = (Sample::new(options.sample), Blocks::new(options.block));
    keys(&mut |key| {
        if blocks.push(key)? {
            sample.push(&blocks.texts, &blocks.ends);
            blocks.clear();
        }
        Ok(())
    })?;
    if !blocks.ends.is_empty() {
        sample.push(&blocks.texts, &blocks.ends);
    }
    let count = blocks.count;
    let mut image = Image::new(train::train(&sample), sample.alphabet);
    drop(sample);

    let mut blocks = Blocks::new(options.block);
    keys(&mut |key| {
        if blocks.push(key)? {
            image.block(&blocks)?;
            blocks.clear();
        }
        Ok(())
    })?;
    if !blocks.ends.is_empty() {
        image.block(&blocks)?;
    }
    if blocks.count != count {
        return Err(UrlsError::Changed.into());
    }
    Ok(image.finish(&blocks)?)
}

/// Cuts keys into blocks.
struct Blocks {
    size: usize,
    /// The number of keys so far.
    count: u64,
    longest: usize,
    previous: Vec<u8>,
    /// The block's separator.
    separator: Vec<u8>,
    /// For each key of the block, the length that it shares with the key before; for the first key, the length of the
    /// separator.
    shared: Vec<usize>,
    /// The rest of each key, and the end of each rest.
    texts: Vec<u8>,
    ends: Vec<usize>,
}

impl Blocks {
    fn new(size: usize) -> Self {
        Self {
            size,
            count: 0,
            longest: 0,
            previous: Vec::new(),
            separator: Vec::new(),
            shared: Vec::new(),
            texts: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Adds a key. Returns whether the block is full.
    fn push(&mut self, key: &[u8]) -> Result<bool, UrlsError> {
        if key.len() > KEY_BYTES_MAX {
            return Err(UrlsError::TooLong { bytes: key.len() });
        }
        let mut shared = self.previous.iter().zip(key).take_while(|(a, b)| a == b).count();
        if self.count > 0 && self.previous.get(shared) >= key.get(shared) {
            return Err(UrlsError::OutOfOrder { previous: self.previous.clone(), got: key.to_vec() });
        }
        if self.ends.is_empty() {
            // The byte that differs from the key before belongs to the separator.
            shared += usize::from(self.count > 0);
            self.separator.clear();
            self.separator.extend_from_slice(&key[..shared]);
        }
        self.shared.push(shared);
        self.texts.extend_from_slice(&key[shared..]);
        self.ends.push(self.texts.len());
        self.previous.clear();
        self.previous.extend_from_slice(key);
        self.longest = self.longest.max(key.len());
        self.count += 1;
        Ok(self.ends.len() == self.size)
    }

    /// Begins the next block.
    fn clear(&mut self) {
        self.shared.clear();
        self.texts.clear();
        self.ends.clear();
    }
}

/// The image under construction.
struct Image {
    trained: Trained,
    trie: Trie,
    /// The code of each token in the trie, and the code's length in nibbles.
    codes: Vec<(u32, u32)>,
    alphabet: [bool; 256],
    parser: Parser,
    data: Vec<u8>,
    nodes: Vec<u8>,
    offsets: Vec<u8>,
    /// The separators of the node under construction, one after the other, and the end of each.
    separators: Vec<u8>,
    separator_ends: Vec<usize>,
    /// The offset in the data of each block of that node.
    block_starts: Vec<usize>,
    /// The shared length and the length of the rest of each entry of a block; reused.
    entries: Vec<(usize, usize)>,
}

impl Image {
    fn new(trained: Trained, alphabet: [bool; 256]) -> Self {
        let (mut trie, mut codes, mut first) = (Trie::new(), Vec::new(), 0);
        for (tokens, size) in trained.tokens.iter().zip(trained.classes.sizes()) {
            for (index, token) in tokens.iter().enumerate() {
                trie.insert(token, u32::try_from(codes.len()).unwrap_or(u32::MAX));
                codes.push(trained.classes.code(u32::try_from(first + index).unwrap_or(u32::MAX)));
            }
            first += size;
        }
        Self {
            trained,
            trie,
            codes,
            alphabet,
            parser: Parser::default(),
            data: Vec::new(),
            nodes: Vec::new(),
            offsets: Vec::new(),
            separators: Vec::new(),
            separator_ends: Vec::new(),
            block_starts: Vec::new(),
            entries: Vec::new(),
        }
    }

    /// Adds a block.
    fn block(&mut self, block: &Blocks) -> Result<(), UrlsError> {
        if block.texts.iter().any(|&byte| !self.alphabet[usize::from(byte)]) {
            return Err(UrlsError::Changed);
        }
        self.separators.extend_from_slice(&block.separator);
        self.separator_ends.push(self.separators.len());
        self.block_starts.push(self.data.len());
        self.entries.clear();
        let (mut bits, mut start) = (BitWriter::default(), 0);
        for (&shared, &end) in block.shared.iter().zip(&block.ends) {
            let (mut nibbles, codes) = (0, &self.codes);
            let cost = |token: u32| codes.get(token as usize).map(|&(_, nibbles)| nibbles);
            self.parser.parse(&self.trie, &block.texts[start..end], cost, |token| {
                let (code, length) = codes[token as usize];
                bits.write(u64::from(code), length * 4);
                nibbles += length as usize;
            });
            self.entries.push((shared, nibbles));
            start = end;
        }
        columns::write(&self.entries, &mut self.data);
        self.data.extend(bits.into_bytes());
        if self.block_starts.len() == NODE_BLOCKS { self.node() } else { Ok(()) }
    }

    /// Writes the node of the blocks since the last node.
    fn node(&mut self) -> Result<(), UrlsError> {
        let offset = u32::try_from(self.nodes.len()).map_err(|_| UrlsError::Full)?;
        u32::try_from(self.data.len()).map_err(|_| UrlsError::Full)?;
        self.offsets.extend(offset.to_le_bytes());
        let starts = std::iter::once(0).chain(self.separator_ends.iter().copied());
        let separators: Vec<_> =
            starts.zip(&self.separator_ends).map(|(start, &end)| &self.separators[start..end]).collect();
        columns::write_leb128(separators[0].len(), &mut self.nodes);
        self.nodes.extend_from_slice(separators[0]);
        columns::write_leb128(self.block_starts[0], &mut self.nodes);
        let ends = self.block_starts[1..].iter().copied().chain([self.data.len()]);
        let lengths: Vec<_> = ends.zip(&self.block_starts).map(|(end, start)| end - start).collect();
        let (width, code) = columns::width_for(lengths.iter().copied().max());
        self.nodes.push(code);
        let (mut entries, mut rests) = (vec![(0, 0)], Vec::new());
        for pair in separators.windows(2) {
            let shared = pair[0].iter().zip(pair[1]).take_while(|(a, b)| a == b).count();
            entries.push((shared, pair[1].len() - shared));
            rests.extend_from_slice(&pair[1][shared..]);
        }
        columns::write(&entries, &mut self.nodes);
        let mut bits = BitWriter::default();
        lengths.iter().for_each(|&length| bits.write(length as u64, width));
        self.nodes.extend(bits.into_bytes());
        self.nodes.extend(rests);
        self.separators.clear();
        self.separator_ends.clear();
        self.block_starts.clear();
        Ok(())
    }

    fn finish(mut self, blocks: &Blocks) -> Result<Vec<u8>, UrlsError> {
        if !self.block_starts.is_empty() {
            self.node()?;
        }
        let dictionary = tokens::store(self.trained.classes, &self.trained.tokens);
        let mut image =
            Vec::with_capacity(HEADER + dictionary.len() + self.offsets.len() + self.nodes.len() + self.data.len());
        image.extend([VERSION, u8::try_from(blocks.size).unwrap_or(0), 0, 0]);
        let u32_out = |value: usize, image: &mut Vec<u8>| {
            image.extend(u32::try_from(value).map_err(|_| UrlsError::Full)?.to_le_bytes());
            Ok(())
        };
        u32_out(blocks.longest, &mut image)?;
        image.extend(blocks.count.to_le_bytes());
        for section in [&dictionary, &self.nodes, &self.data] {
            u32_out(section.len(), &mut image)?;
        }
        for section in [&dictionary, &self.offsets, &self.nodes, &self.data] {
            image.extend_from_slice(section);
        }
        Ok(image)
    }
}
