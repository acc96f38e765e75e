//! The URL store of a cell: its URLs, compressed, in the order of their keys. Finds the URL of a number, and the number
//! of a URL.
//!
//! [`encode`] reads the keys of a cell's URLs, rising, and returns an image. [`UrlStore`] answers from the image
//! without a decode pass. Keys are those of `webstrata_layers::record::key`, but any byte strings work, except for
//! [`UrlStore::url`]. A number is a UID less the first UID of the cell.
//!
//! # How it works
//!
//! Keys are cut into blocks of k. A key is stored as the number of bytes that it shares with the key before, and the
//! rest as codes of tokens: up to about 16,000 short texts that are trained on the cell. The *separator* of a block is
//! the shortest prefix of the block's first key that is greater than the key before. The first key is stored without
//! its separator. Sixteen separators make a *node*, front-coded with plain bytes. A search bisects the nodes by their
//! first separators, then walks through one node and one block. Decoding a key reads only the entries of node and block
//! that the key needs.
//!
//! # Bytes
//!
//! Integers are little-endian. `blocks = ceil(count / k)`, `nodes = ceil(blocks / 16)`.
//!
//! ```text
//! header      u8   version, 1
//!             u8   k, 4 to 64
//!             u16  0
//!             u32  longest key in bytes
//!             u64  count
//!             u32  bytes of the dictionary
//!             u32  bytes of all nodes
//!             u32  bytes of all blocks
//! dictionary  tokens and classes of codes          see url_store/tokens.rs
//! offsets     u32 for each node                    where it begins in the nodes
//! nodes       first separator                      LEB128 length, bytes
//!             place of its first block             LEB128, in the blocks
//!             u8   u, width in bits of the lengths of blocks; 15 means 32
//!             columns of the separators, in bytes  see url_store/columns.rs; the rest of the first is 0: it is above
//!             lengths of its blocks in bytes       u bits each, lowest first, filled up to a byte with zeros
//!             rests of the other separators        plain bytes
//! blocks      columns of the keys, in nibbles      the first key's rest is the key less its separator
//!             codes of the rests                   nibbles, low half first; filled up to a byte with zero
//! ```
//!
//! Example: the keys `com,a,)/` and `com,a,)/b`, each ended by the byte 1, in blocks of 4. Their nine bytes are the
//! tokens, in order: 1 `)` `,` `/` `a` `b` `c` `m` `o`, all with codes of two nibbles. After the header and 50 bytes of
//! dictionary:
//!
//! ```text
//! 0 0 0 0                  the one node begins at 0
//! 0                        its first separator is empty
//! 0                        its first block begins at 0
//! 4                        lengths of blocks have 4 bits
//! 0 0 0                    columns without entries
//! 15                       the block has 15 bytes
//! 0x30                     its columns have 0 and 3 bits
//! 8 18                     8 bytes are shared at least; the first key has 18 nibbles
//! 4                        the second key's rest has 4 nibbles
//! 6 8 7 2 4 2 1 3 0        com,a,)/ and 1
//! 5 0                      b and 1
//! ```
//!
//! # Cost
//!
//! Encoding takes two passes through the keys, and 5 passes over a sample in memory ([`Options::sample`]); memory is
//! about ten times the sample, plus the image. Opening expands the dictionary, in under a millisecond for 16,000
//! tokens. Answers need no memory besides the caller's buffer. Figures are in docs/benchmarks.md.
//!
//! Damaged bytes give [`Damage`] or a wrong answer. No key is longer than the header says.
//!
//! Source: Najork, The Scalable Hyperlink Store (2009), section 3: blocks of k URLs, front-coded, with an index over
//! the blocks.

mod answer;
mod columns;
mod encode;
mod parser;
mod query;
#[cfg(test)]
mod tests;
mod text;
mod tokens;
mod train;

use bytes::Bytes;
use std::ops::Range;

use crate::error::Damage;
use crate::mapped::guard::Section;
pub use encode::{Options, encode};
use query::Query;
use tokens::Tokens;

/// The number of blocks of a node.
const NODE_BLOCKS: usize = 16;
/// The size of the header in bytes.
const HEADER: usize = 28;
const VERSION: u8 = 1;
/// The largest length of a key in bytes.
const KEY_BYTES_MAX: usize = 1 << 24;

/// The URLs of a cell, compressed, ready to answer.
#[derive(Clone, Debug)]
pub struct UrlStore {
    /// Everything before the nodes.
    index: Bytes,
    /// The whole image. Reads check nodes and blocks.
    image: Section,
    tokens: Tokens,
    count: u64,
    /// The number of keys in a block, 4 to 64.
    block: usize,
    blocks: usize,
    /// The length of the longest key in bytes.
    longest: usize,
    /// The offsets of the parts in the image, each inside it.
    offsets: usize,
    nodes: usize,
    data: usize,
}

/// The sizes of the parts of a URL store in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UrlSizes {
    /// The blocks.
    pub data: u64,
    /// The separators, and the data that leads to blocks.
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
    /// Bytes that do not have the form of an image. The inside of blocks and nodes is checked only by answers.
    pub fn open(image: Bytes) -> Result<Self, Damage> {
        Self::open_section(&image.into())
    }

    /// Opens a section of the image of a cell: see [`Self::open`].
    pub(crate) fn open_section(section: &Section) -> Result<Self, Damage> {
        let image = section.bytes();
        const PART: &str = "header of the URL store";
        let header: &[u8; HEADER] = image.first_chunk().ok_or(Damage::Ends { part: PART })?;
        let u32_at = |at: usize| columns::word(header, at) & 0xffff_ffff;
        let check = |value: u64, range: Range<u64>| match range.contains(&value) {
            true => Ok(value),
            false => Err(Damage::Outside { part: PART, value, bound: range.end }),
        };
        check(u64::from(header[0]), u64::from(VERSION)..u64::from(VERSION) + 1)?;
        let block = check(u64::from(header[1]), 4..columns::BLOCK_MAX as u64 + 1)?;
        let longest = check(u32_at(4), 0..KEY_BYTES_MAX as u64 + 1)?;
        let count = columns::word(header, 8);
        let blocks = count.div_ceil(block);
        let nodes = blocks.div_ceil(NODE_BLOCKS as u64);
        // The image is as long as its parts. No part is therefore outside, and there are not more nodes than bytes.
        let sizes = [HEADER as u64, u32_at(16), nodes.saturating_mul(4), u32_at(20), u32_at(24)];
        let size = sizes.iter().fold(0u64, |sum, &size| sum.saturating_add(size));
        check(image.len() as u64, size..size.saturating_add(1))?;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "none exceeds the length of the image or a bound below 32 bits"
        )]
        let ([header, dictionary, offsets, nodes, _], longest) = (sizes.map(|size| size as usize), longest as usize);
        let [offsets_at, nodes_at] = [header + dictionary, header + dictionary + offsets];
        Ok(Self {
            tokens: Tokens::load(&image[header..offsets_at])?,
            count,
            block: usize::from(image[1]),
            blocks: usize::try_from(blocks).unwrap_or(usize::MAX),
            longest,
            offsets: offsets_at,
            nodes: nodes_at,
            data: nodes_at + nodes,
            index: section.resident(image.slice(..nodes_at)),
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
        Ok(start..self.bound(&mut Query::new(prefix, true))?.0.max(start))
    }

    /// The size of the parts in bytes.
    pub fn sizes(&self) -> UrlSizes {
        UrlSizes {
            data: (self.image.bytes().len() - self.data) as u64,
            index: (self.data - self.offsets) as u64,
            dictionary: self.offsets as u64,
            expanded: self.tokens.memory() as u64,
        }
    }
}
