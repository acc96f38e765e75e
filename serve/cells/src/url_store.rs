//! The URL store of a cell: its URLs, compressed, in the order of their keys. Finds the URL of a number, and the number
//! of a URL.
//!
//! [`encode`] reads the keys of a cell's URLs, rising, and returns an image. [`UrlStore`] answers from the image
//! without a decode pass. Keys are those of `webstrata_layers::record::key`, but any byte strings work, except for
//! [`UrlStore::url`]. A number is a UID less the first UID of the cell.
//!
//! # How it works
//!
//! Keys are cut into blocks of k, and eight blocks make a *node*. A key is stored as an *entry*: the number of bytes
//! that it shares with the key before, and the rest as codes of tokens. Tokens are up to about 24,000 short texts that
//! are trained on the cell. Some of them include the end of a key, so that no length of the rest is stored. Both codes
//! are Huffman codes, and the shared length is stored as its change from the entry before.
//!
//! The first keys of a node's blocks are entries, too, apart from the blocks: such a key shares bytes with the first
//! key of the block before. The *separator* of a node is the shortest prefix of the node's first key that is greater
//! than the key before. The first key is stored without its separator. Separators are plain bytes.
//!
//! A search bisects the separators, then walks through the first keys of one node, then through one block.
//!
//! # Bytes
//!
//! Integers are little-endian. `blocks = ceil(count / k)`, `nodes = ceil(blocks / 8)`.
//!
//! ```text
//! header      u8   version, 2
//!             u8   k, 4 to 64
//!             u8   s, width in bits of offsets of separators, 1 to 32
//!             u8   n, width in bits of offsets of nodes, 1 to 32
//!             u32  longest key in bytes
//!             u64  count
//!             u32  bytes of the dictionary
//!             u32  bytes of all separators
//!             u32  bytes of all nodes
//! dictionary  tokens and lengths of their codes    see url_store/tokens.rs and url_store/codes.rs
//!             code of shared lengths               see url_store/shared.rs; filled up to a byte with zeros
//! offsets     s bits for each node, and s more     where its separator begins in the separators; their end
//!             n bits for each node, and n more     where it begins in the nodes; their end; lowest first, filled up
//!                                                  to a byte with zeros
//! separators  plain bytes
//! nodes       u8   u, width in bits of the lengths, at most 32
//!             lengths of the parts in bytes        u bits each, lowest first, filled up to a byte with zeros
//!             part 0: the first keys               entries; the first has no shared length, but counts as sharing
//!                                                  its separator
//!             part 1 to 8: the blocks              entries, without the block's first key, which is in part 0
//! entry       shared length                        code of the change from the entry before; for the first entry
//!                                                  of a block, from the entry of the block's first key
//!             rest                                 codes of tokens, up to one that includes the end
//! ```
//!
//! Entries follow each other without a gap, lowest bit first. The last byte of a part is filled up with zeros.
//!
//! Example: the keys `com,a,)/` and `com,a,)/b`, each ended by the byte 1, in blocks of 4. The tokens are their nine
//! bytes and the end. In the order of their numbers, 1 `)` `,` `/` `a` and the end have codes of three bits, 000 to 101
//! with the first bit to the left, and `b` `c` `m` `o` have codes of four bits, 1100 to 1111. After the header and 71
//! bytes of dictionary:
//!
//! ```text
//! 64 2                     the one separator begins and ends at 0, in one bit each; the one node begins at 0 and ends
//!                          at 9, in four bits each: 9 * 2^6 = 64 + 2 * 256
//! 3                        lengths of parts have 3 bits
//! 21                       the first keys have 5 bytes, the block has 2: 5 + 2 * 8
//! 251 167 136 70 1         com,a,)/, 1 and the end: 1101 1111 1110 010 100 010 001 011 000 101
//! 6 5                      the second key shares 8 bytes more than the first: 0, as no other change occurs;
//!                          b, 1 and the end: 1100 000 101
//! ```
//!
//! # Cost
//!
//! Encoding takes two passes through the keys, and 5 passes over a sample in memory ([`Options::sample`]); memory is
//! about ten times the sample, plus the image. Opening expands the dictionary, in under a millisecond for 16,000
//! tokens. An answer decodes about half of the first keys of a node and half of a block, and needs no memory besides
//! the caller's buffer. Of a mapped image, the offsets and separators are kept in memory: half a byte a URL. Figures
//! are in docs/benchmarks.md.
//!
//! Damaged bytes give [`Damage`] or a wrong answer. No key is longer than the header says.
//!
//! Source: Najork, The Scalable Hyperlink Store (2009), section 3: blocks of k URLs, front-coded, with an index over
//! the blocks.

mod answer;
mod codes;
mod encode;
mod entries;
mod parser;
mod query;
mod shared;
#[cfg(test)]
mod tests;
mod text;
mod tokens;
mod train;

use bytes::Bytes;
use std::ops::Range;

use crate::coding::bits::BitReader;
use crate::error::Damage;
use crate::mapped::guard::Section;
pub use encode::{Options, encode};
use query::Query;
use shared::Reader;
use tokens::Tokens;

/// The number of blocks of a node.
const NODE_BLOCKS: usize = 8;
/// The largest number of keys in a block.
const BLOCK_MAX: usize = 64;
/// The size of the header in bytes.
const HEADER: usize = 28;
const VERSION: u8 = 2;
/// The largest length of a key in bytes.
const KEY_BYTES_MAX: usize = 1 << 24;

/// The URLs of a cell, compressed, ready to answer.
#[derive(Clone, Debug)]
pub struct UrlStore {
    /// The offsets and the separators.
    index: Bytes,
    /// The whole image. Reads check nodes.
    image: Section,
    tokens: Tokens,
    shared: Reader,
    count: u64,
    /// The number of keys in a block, 4 to 64.
    block: usize,
    blocks: usize,
    nodes: usize,
    /// The length of the longest key in bytes.
    longest: usize,
    /// The offsets of separators and of nodes: the start of each column in bits, and its width.
    offsets: [(usize, u32); 2],
    /// The offset of the separators in the index.
    separators: usize,
    /// The offset of the nodes in the image.
    data: usize,
}

/// The sizes of the parts of a URL store in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UrlSizes {
    /// The nodes: all keys, but for the separators.
    pub data: u64,
    /// The separators, and the offsets that lead to nodes.
    pub index: u64,
    /// The dictionary in the image, and the header.
    pub dictionary: u64,
    /// The expanded dictionary: memory besides the image.
    pub expanded: u64,
}

impl UrlStore {
    /// Opens an image that [`encode`] made.
    ///
    /// # Errors
    /// Bytes that do not have the form of an image. The inside of nodes is checked only by answers.
    pub fn open(image: Bytes) -> Result<Self, Damage> {
        Self::open_section(&image.into())
    }

    /// Opens a section of the image of a cell: see [`Self::open`].
    pub(crate) fn open_section(section: &Section) -> Result<Self, Damage> {
        let image = section.bytes();
        const PART: &str = "header of the URL store";
        let header: &[u8; HEADER] = image.first_chunk().ok_or(Damage::Ends { part: PART })?;
        let u32_at = |at: u64| BitReader::new(header, 8 * at).read(32);
        let check = |value: u64, range: Range<u64>| match range.contains(&value) {
            true => Ok(value),
            false => Err(Damage::Outside { part: PART, value, bound: range.end }),
        };
        check(u64::from(header[0]), u64::from(VERSION)..u64::from(VERSION) + 1)?;
        let block = check(u64::from(header[1]), 4..BLOCK_MAX as u64 + 1)?;
        let longest = check(u32_at(4), 0..KEY_BYTES_MAX as u64 + 1)?;
        let count = BitReader::new(header, 64).read_wide(64);
        let blocks = count.div_ceil(block);
        let nodes = blocks.div_ceil(NODE_BLOCKS as u64);
        let [s, n] = [header[2], header[3]].map(u32::from);
        check(u64::from(s), 1..33)?;
        check(u64::from(n), 1..33)?;
        // The image is as long as its parts. No part is therefore outside, and there are not more nodes than bits.
        let offsets = nodes.saturating_add(1).saturating_mul(u64::from(s + n)).div_ceil(8);
        let sizes = [HEADER as u64, u32_at(16), offsets, u32_at(20), u32_at(24)];
        let size = sizes.iter().fold(0u64, |sum, &size| sum.saturating_add(size));
        check(image.len() as u64, size..size.saturating_add(1))?;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "none exceeds 64 times the bits of the image, or a bound below 32 bits"
        )]
        let ([header, dictionary, offsets, separators, _], [longest, nodes, blocks]) =
            (sizes.map(|size| size as usize), [longest, nodes, blocks].map(|value| value as usize));
        let index = header + dictionary;
        let data = index + offsets + separators;
        let mut bits = BitReader::new(&image[header..index], 0);
        Ok(Self {
            tokens: Tokens::load(&mut bits)?,
            shared: Reader::load(&mut bits)?,
            count,
            block: usize::from(image[1]),
            blocks,
            nodes,
            longest,
            offsets: [(0, s), ((nodes + 1) * s as usize, n)],
            separators: offsets,
            data,
            index: section.resident(image.slice(index..data)),
            image: section.clone(),
        })
    }

    /// The number of URLs.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether there are no URLs.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The number of keys in a block, as in [`Options::block`].
    pub fn block(&self) -> usize {
        self.block
    }

    /// Replaces the contents of `out` by key number `at`.
    ///
    /// # Errors
    /// A number that is not below [`Self::len`], and damaged bytes. The contents of `out` are then undefined.
    pub fn key(&self, at: u64, out: &mut Vec<u8>) -> Result<(), Damage> {
        self.write_key(at, out, 0)
    }

    /// Replaces the contents of `out` by URL number `at`.
    ///
    /// # Errors
    /// See [`Self::key`]; also a key that `webstrata_layers::record::key` does not make.
    pub fn url(&self, at: u64, out: &mut String) -> Result<(), Damage> {
        let mut buffer = std::mem::take(out).into_bytes();
        self.write_key(at, &mut buffer, text::ROOM)?;
        let is_url = text::url_in_place(&mut buffer);
        let damage = Damage::Outside { part: "form of a key", value: at, bound: self.count };
        *out = String::from_utf8(buffer).ok().filter(|_| is_url).ok_or(damage)?;
        Ok(())
    }

    /// The number of a key; `None` if the key is not in the cell.
    ///
    /// # Errors
    /// Damaged bytes.
    pub fn find(&self, key: &[u8]) -> Result<Option<u64>, Damage> {
        let (below, found) = self.bound(&mut Query::new(key, false))?;
        Ok(found.then_some(below))
    }

    /// The number of keys below `key`, which may be any bytes.
    ///
    /// # Errors
    /// Damaged bytes.
    pub fn lower_bound(&self, key: &[u8]) -> Result<u64, Damage> {
        Ok(self.bound(&mut Query::new(key, false))?.0)
    }

    /// The numbers of the keys that begin with `prefix`, for example of a domain, a host, or a part of a site.
    ///
    /// # Errors
    /// Damaged bytes.
    pub fn prefix(&self, prefix: &[u8]) -> Result<Range<u64>, Damage> {
        let start = self.lower_bound(prefix)?;
        Ok(start..self.prefix_end(prefix)?.max(start))
    }

    /// The number of the first key above all keys that begin with `prefix`.
    ///
    /// # Errors
    /// Damaged bytes.
    pub fn prefix_end(&self, prefix: &[u8]) -> Result<u64, Damage> {
        Ok(self.bound(&mut Query::new(prefix, true))?.0)
    }

    /// The size of the parts in bytes.
    pub fn sizes(&self) -> UrlSizes {
        UrlSizes {
            data: (self.image.bytes().len() - self.data) as u64,
            index: self.index.len() as u64,
            dictionary: (self.data - self.index.len()) as u64,
            expanded: (self.tokens.memory() + self.shared.memory()) as u64,
        }
    }
}
