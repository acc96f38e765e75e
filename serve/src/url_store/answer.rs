//! How a URL store answers: from a number to the key, and from a key to its number.
//!
//! Both read one node and one block. From a number: the lengths up to the entry lead to it, then a walk back keeps the
//! entries that bytes are still needed of, and these are written oldest first, each behind the bytes that it shares. From a
//! key: see `query.rs`.
//!
//! Every place is checked against the image, every loop is bounded by the entries of a block, the nodes, or the nibbles of a
//! block, and a key is never longer than the header says.

use super::columns::{self, BLOCK_MAX, Columns};
use super::query::{CHUNK, Query};
use super::{NODE_BLOCKS, UrlStore};
use crate::error::Damage;
use std::cmp::Ordering;

const NODE: &str = "node of the URL store";
const BLOCK: &str = "block of the URL store";

/// Separators of up to 16 blocks, and where these are.
struct Node<'a> {
    /// The first separator.
    first: &'a [u8],
    columns: Columns<'a>,
    /// Where the first block begins in the data.
    base: usize,
    /// Lengths of blocks: where the column begins in bits, and its width.
    lengths: (usize, u32),
    /// Where the second separator's rest begins.
    rests: usize,
}

impl UrlStore {
    /// The bytes from a node on, up to the end of the image.
    #[inline]
    fn node_bytes(&self, node: usize) -> Result<&[u8], Damage> {
        let offset = columns::word(&self.image, self.offsets + node * 4) & 0xffff_ffff;
        let at = self.nodes + offset as usize;
        self.image.get(at..).ok_or(Damage::Outside { part: NODE, value: offset, bound: self.image.len() as u64 })
    }

    /// A node's first separator, and where it ends in the bytes of the node.
    #[inline]
    fn first_separator(bytes: &[u8]) -> Result<(&[u8], usize), Damage> {
        let (length, at) = columns::leb128(bytes, 0);
        let first = bytes.get(at..at.saturating_add(length)).ok_or(Damage::Ends { part: NODE })?;
        Ok((first, at + length))
    }

    #[inline]
    fn node(&self, node: usize, blocks: usize) -> Result<Node<'_>, Damage> {
        let bytes = self.node_bytes(node)?;
        let (first, at) = Self::first_separator(bytes)?;
        let (base, at) = columns::leb128(bytes, at);
        let width = columns::width(u64::from(bytes.get(at).copied().unwrap_or(0)));
        let columns = Columns::read(bytes.get(at + 1..).unwrap_or_default(), blocks);
        let rests = columns.end + (blocks * width as usize).div_ceil(8);
        Ok(Node { first, columns, base, lengths: (columns.end * 8, width), rests })
    }

    /// Block `number` of a node: its bytes, up to the end of the image.
    #[inline]
    fn block_bytes(&self, node: &Node<'_>, number: usize) -> Result<&[u8], Damage> {
        let before: usize = (0..number).map(|block| columns::field(node.columns.bytes, node.lengths, block)).sum();
        let at = self.data + node.base + before;
        self.image.get(at..).ok_or(Damage::Outside { part: BLOCK, value: at as u64, bound: self.image.len() as u64 })
    }

    /// How many blocks a node has, and how many keys a block; for nodes and blocks that there are.
    #[inline]
    fn blocks_of(&self, node: usize) -> usize {
        let blocks = usize::try_from(self.count.div_ceil(self.block as u64)).unwrap_or(usize::MAX);
        (blocks - node * NODE_BLOCKS).min(NODE_BLOCKS)
    }

    #[inline]
    fn keys_of(&self, block: usize) -> usize {
        usize::try_from(self.count - block as u64 * self.block as u64).map_or(self.block, |keys| keys.min(self.block))
    }

    /// Writes key number `at` behind the first `room` bytes of `out`.
    pub(super) fn write_key(&self, at: u64, out: &mut Vec<u8>, room: usize) -> Result<(), Damage> {
        if at >= self.count {
            return Err(Damage::Outside { part: "number of a URL", value: at, bound: self.count });
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "there are fewer blocks than bytes, and the entry is below 64"
        )]
        let (block, entry) = ((at / self.block as u64) as usize, (at % self.block as u64) as usize);
        let (node, number) = (block / NODE_BLOCKS, block % NODE_BLOCKS);
        let node = self.node(node, self.blocks_of(node))?;
        let bytes = self.block_bytes(&node, number)?;
        let block = Columns::read(bytes, self.keys_of(block));

        // Where the rest of each entry begins, in nibbles, and what it shares.
        let (mut starts, mut shared) = ([0; BLOCK_MAX + 1], [0; BLOCK_MAX]);
        let mut start = block.end * 2 + block.first;
        for entry in 1..=entry {
            starts[entry] = start;
            shared[entry] = block.shared(entry);
            start += block.rest(entry);
        }
        starts[entry + 1] = start;
        // Entries whose bytes are needed, the last first; `need` bytes are needed of those before.
        let (mut chain, mut length, mut need) = ([0; BLOCK_MAX], 0, usize::MAX);
        for entry in (1..=entry).rev() {
            if shared[entry] < need {
                chain[length] = entry;
                length += 1;
                need = shared[entry];
            }
        }

        let mut writer = Writer { store: self, out, room, at: 0 };
        writer.separator(&node, number, need)?;
        writer.tokens(bytes, block.end * 2, block.end * 2 + block.first, need)?;
        for place in (0..length).rev() {
            let entry = chain[place];
            writer.back_to(shared[entry])?;
            let need = if place == 0 { usize::MAX } else { shared[chain[place - 1]] };
            writer.tokens(bytes, starts[entry], starts[entry + 1], need)?;
        }
        writer.finish()
    }

    /// How many keys are below the query, and whether the key with that number equals it.
    pub(super) fn bound(&self, query: &mut Query<'_>) -> Result<(u64, bool), Damage> {
        if self.count == 0 {
            return Ok((0, false));
        }
        // The first separator of all is empty: never above the query.
        let (mut low, mut high) = (0, (self.nodes - self.offsets) / 4);
        let (mut same_low, mut same_high) = (0, 0);
        while high - low > 1 {
            let middle = low.midpoint(high);
            let bytes = self.node_bytes(middle)?;
            let (length, start) = columns::leb128(bytes, 0);
            let same = same_low.min(same_high);
            match query.compare_plain(same, bytes, start + same, start + length) {
                (same, Ordering::Greater) => (high, same_high) = (middle, same),
                (same, _) => (low, same_low) = (middle, same),
            }
        }
        let node = self.node(low, self.blocks_of(low))?;
        let separators = node.columns.bytes;
        let (number, same, _) =
            query.walk(&node.columns, self.blocks_of(low), same_low, node.rests, |query, at, start, end| {
                query.compare_plain(at, separators, start, end)
            });
        let separator = match number {
            0 => node.first.len(),
            _ => node.columns.shared(number) + node.columns.rest(number),
        };
        let bytes = self.block_bytes(&node, number)?;
        let block = low * NODE_BLOCKS + number;
        let first = block as u64 * self.block as u64;
        let keys = self.keys_of(block);
        let block = Columns::read(bytes, keys);
        let (start, end) = (block.end * 2, block.end * 2 + block.first);
        let mut same = same;
        if same == separator {
            match query.compare_tokens(same, &self.tokens, bytes, start, end) {
                (_, Ordering::Greater) => return Ok((first, false)),
                (_, Ordering::Equal) => return Ok((first, true)),
                (now, Ordering::Less) => same = now,
            }
        }
        let (last, _, equal) = query.walk(&block, keys, same, end, |query, at, start, end| {
            query.compare_tokens(at, &self.tokens, bytes, start, end)
        });
        Ok((first + last as u64 + u64::from(!equal), equal))
    }
}

/// Writes a key from its beginning on.
struct Writer<'a> {
    store: &'a UrlStore,
    /// The key lies behind `room` bytes; what is behind its end is of no meaning.
    out: &'a mut Vec<u8>,
    room: usize,
    /// Bytes of the key written.
    at: usize,
}

impl Writer<'_> {
    /// The place for the next 32 bytes.
    #[inline]
    fn place(&mut self) -> Result<&mut [u8; CHUNK], Damage> {
        let at = self.room + self.at;
        if at + CHUNK > self.out.len() {
            if self.at > self.store.longest {
                return Err(Damage::Outside { part: BLOCK, value: self.at as u64, bound: self.store.longest as u64 });
            }
            self.out.resize((at + CHUNK).next_power_of_two().max(128), 0);
        }
        self.out[at..].first_chunk_mut().ok_or(Damage::Ends { part: BLOCK })
    }

    /// Writes tokens until `need` bytes are there.
    #[inline]
    fn tokens(&mut self, bytes: &[u8], mut nibble: usize, end: usize, need: usize) -> Result<(), Damage> {
        while nibble < end && self.at < need {
            let (text, length, nibbles) = self.store.tokens.token(columns::nibbles(bytes, nibble));
            *self.place()? = *text;
            self.at += length;
            nibble += nibbles;
        }
        Ok(())
    }

    fn plain(&mut self, mut bytes: &[u8]) -> Result<(), Damage> {
        while let Some(chunk) = bytes.first_chunk() {
            *self.place()? = *chunk;
            self.at += CHUNK;
            bytes = &bytes[CHUNK..];
        }
        self.place()?[..bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
        Ok(())
    }

    /// Forgets what is behind the first `shared` bytes.
    #[inline]
    fn back_to(&mut self, shared: usize) -> Result<(), Damage> {
        if shared > self.at {
            return Err(Damage::Outside { part: BLOCK, value: shared as u64, bound: self.at as u64 });
        }
        self.at = shared;
        Ok(())
    }

    /// Writes separator `number` of a node, or its first `need` bytes if that is fewer.
    fn separator(&mut self, node: &Node<'_>, number: usize, mut need: usize) -> Result<(), Damage> {
        let (mut starts, mut chain, mut length) = ([0; NODE_BLOCKS + 1], [(0, 0); NODE_BLOCKS], 0);
        starts[1] = node.rests;
        for entry in 1..=number {
            starts[entry + 1] = starts[entry] + node.columns.rest(entry);
        }
        for entry in (1..=number).rev() {
            let shared = node.columns.shared(entry);
            if shared < need {
                chain[length] = (entry, need - shared);
                length += 1;
                need = shared;
            }
        }
        self.plain(&node.first[..need.min(node.first.len())])?;
        for &(entry, need) in chain[..length].iter().rev() {
            self.back_to(node.columns.shared(entry))?;
            let rest = node.columns.bytes.get(starts[entry]..starts[entry + 1]).ok_or(Damage::Ends { part: NODE })?;
            self.plain(&rest[..need.min(rest.len())])?;
        }
        Ok(())
    }

    fn finish(self) -> Result<(), Damage> {
        if self.at > self.store.longest {
            return Err(Damage::Outside { part: BLOCK, value: self.at as u64, bound: self.store.longest as u64 });
        }
        self.out.truncate(self.room + self.at);
        Ok(())
    }
}
