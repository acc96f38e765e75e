//! How a URL store answers: the key of a number, and the number of a key.
//!
//! Both read one node and one block of it, from the start of each. For a number, each entry is written over the entry
//! before, after the bytes that it shares. For a key, see `query.rs`.
//!
//! Every offset is checked against the image. Every loop is bounded by the entries of a block, the nodes, or the bits
//! of a node. A key is never longer than the header says.

use super::entries::Entries;
use super::query::{self, CHUNK, Query};
use super::{NODE_BLOCKS, UrlStore};
use crate::coding::bits::BitReader;
use crate::error::Damage;
use std::cmp::Ordering;

const NODE: &str = "node of the URL store";

/// The parts of a node: the first keys of up to [`NODE_BLOCKS`] blocks, then each block.
struct Node<'a> {
    /// The bytes from the node on, and the number of bytes that are its own.
    bytes: &'a [u8],
    length: usize,
    /// The lengths of the parts: the start of the column in bits, and its width.
    lengths: (usize, u32),
    /// The offset of the first part.
    start: usize,
}

/// Value `index` of a column with this start in bits and this width, at most 32.
#[inline]
fn field(bytes: &[u8], (start, width): (usize, u32), index: usize) -> usize {
    let bit = start + index * width as usize;
    #[expect(clippy::cast_possible_truncation, reason = "at most 32 bits")]
    let value = BitReader::new(bytes, bit as u64).read(width) as usize;
    value
}

impl UrlStore {
    /// The bytes from the separator of a node on, and the length of the separator.
    #[inline]
    fn separator(&self, node: usize) -> (&[u8], usize) {
        let [start, end] = [0, 1].map(|more| field(&self.index, self.offsets[0], node + more));
        (self.index.get(self.separators + start..).unwrap_or_default(), end.saturating_sub(start))
    }

    /// A node, checked.
    #[inline]
    fn node(&self, node: usize) -> Result<Node<'_>, Damage> {
        let [start, end] = [0, 1].map(|more| self.data + field(&self.index, self.offsets[1], node + more));
        let image = self.image.bytes();
        let Some(bytes) = image.get(start..).filter(|_| start < end && end <= image.len()) else {
            return Err(Damage::Outside { part: NODE, value: end as u64, bound: image.len() as u64 });
        };
        if self.image.is_guarded() {
            self.image.check(start, end)?;
        }
        let width = u32::from(bytes[0]).min(32);
        let parts = 1 + self.blocks_of(node);
        Ok(Node { bytes, length: end - start, lengths: (8, width), start: 1 + (parts * width as usize).div_ceil(8) })
    }

    /// The entries of part `number` of a node, after an entry that shares `shared` bytes.
    #[inline]
    fn entries<'a>(&'a self, node: &Node<'a>, number: usize, shared: usize) -> Entries<'a> {
        let length = |part| field(node.bytes, node.lengths, part);
        let start = node.start + (0..number).map(length).sum::<usize>();
        let end = (start + length(number)).min(node.length);
        Entries::new(&self.tokens, &self.shared, node.bytes, start..end, shared)
    }

    /// The number of blocks of a node, and, in `keys_of`, the number of keys of a block. Node and block must exist.
    #[inline]
    fn blocks_of(&self, node: usize) -> usize {
        (self.blocks - node * NODE_BLOCKS).min(NODE_BLOCKS)
    }

    #[inline]
    fn keys_of(&self, block: usize) -> usize {
        usize::try_from(self.count - block as u64 * self.block as u64).map_or(self.block, |keys| keys.min(self.block))
    }

    /// Writes key number `at` after the first `reserved` bytes of `out`.
    #[inline]
    pub(super) fn write_key(&self, at: u64, out: &mut Vec<u8>, reserved: usize) -> Result<(), Damage> {
        if at >= self.count {
            return Err(Damage::Outside { part: "number of a URL", value: at, bound: self.count });
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "there are fewer blocks than bytes, and the entry is below 64"
        )]
        let (block, entry) = ((at / self.block as u64) as usize, (at % self.block as u64) as usize);
        let (node, number) = (block / NODE_BLOCKS, block % NODE_BLOCKS);
        let (separator, length) = self.separator(node);
        let node = self.node(node)?;
        let mut heads = self.entries(&node, 0, length);
        let mut writer = Writer { store: self, out, reserved, at: 0 };
        writer.plain(separator, length)?;
        writer.rest(&mut heads)?;
        writer.entries(&mut heads, number)?;
        writer.entries(&mut self.entries(&node, 1 + number, heads.shared), entry)?;
        writer.finish()
    }

    /// The number of keys below the query, and whether the key with that number equals the query.
    pub(super) fn bound(&self, query: &mut Query<'_>) -> Result<(u64, bool), Damage> {
        if self.count == 0 {
            return Ok((0, false));
        }
        // The first separator of the store is empty, and so never above the query.
        let (mut low, mut high) = (0, self.nodes);
        let (mut same_low, mut same_high) = (0, 0);
        while high - low > 1 {
            let middle = low.midpoint(high);
            let (separator, length) = self.separator(middle);
            let same = same_low.min(same_high);
            match query.compare_plain(same, separator, length) {
                (same, Ordering::Greater) => (high, same_high) = (middle, same),
                (same, _) => (low, same_low) = (middle, same),
            }
        }
        let (node, length) = (self.node(low)?, self.separator(low).1);
        let mut heads = self.entries(&node, 0, length);
        let mut same = same_low;
        if same < length {
            // The query is above the separator, and so above the first key.
            heads.skip()?;
        } else {
            let first = low as u64 * (NODE_BLOCKS * self.block) as u64;
            match query.compare_tokens(same, &mut heads)? {
                (_, Ordering::Greater) => return Ok((first, false)),
                (_, Ordering::Equal) => return Ok((first, true)),
                (now, Ordering::Less) => same = now,
            }
        }
        let (number, same, equal) = query.walk(&mut heads, self.blocks_of(low) - 1, same)?;
        let block = low * NODE_BLOCKS + number;
        let first = block as u64 * self.block as u64;
        if equal {
            return Ok((first, true));
        }
        let mut entries = self.entries(&node, 1 + number, heads.shared);
        let (last, _, equal) = query.walk(&mut entries, self.keys_of(block) - 1, same)?;
        Ok((first + last as u64 + u64::from(!equal), equal))
    }
}

/// Writes a key from its start on.
struct Writer<'a> {
    store: &'a UrlStore,
    /// The key lies after `reserved` bytes. Bytes after its end are undefined.
    out: &'a mut Vec<u8>,
    reserved: usize,
    /// The number of bytes of the key written so far.
    at: usize,
}

impl Writer<'_> {
    /// Makes room for 32 bytes at offset `at` of the key.
    #[cold]
    fn grow(&mut self, at: usize) -> Result<(), Damage> {
        self.check(at)?;
        self.out.resize((self.reserved + at + CHUNK).next_power_of_two().max(128), 0);
        Ok(())
    }

    fn check(&self, at: usize) -> Result<(), Damage> {
        if at > self.store.longest {
            return Err(Damage::Outside { part: NODE, value: at as u64, bound: self.store.longest as u64 });
        }
        Ok(())
    }

    /// Writes 32 bytes at offset `at` of the key.
    #[inline]
    fn chunk(&mut self, at: usize, bytes: &[u8; CHUNK]) -> Result<(), Damage> {
        let start = self.reserved + at;
        if start + CHUNK > self.out.len() {
            self.grow(at)?;
        }
        if let Some(start) = self.out.get_mut(start..start + CHUNK) {
            start.copy_from_slice(bytes);
        }
        Ok(())
    }

    /// Writes an entry from the end of its shared bytes on.
    #[inline]
    fn rest(&mut self, entries: &mut Entries<'_>) -> Result<(), Damage> {
        let (mut at, mut result) = (self.at, Ok(()));
        entries.each(|text, length| {
            result = self.chunk(at, text);
            at += length;
            result.is_ok()
        })?;
        self.at = at;
        result
    }

    /// Writes the next `count` entries, each over the one before.
    #[inline]
    fn entries(&mut self, entries: &mut Entries<'_>, count: usize) -> Result<(), Damage> {
        for _ in 0..count {
            let shared = entries.next_shared()?;
            self.back_to(shared)?;
            self.rest(entries)?;
        }
        Ok(())
    }

    /// Writes the first `length` bytes.
    #[inline]
    fn plain(&mut self, mut bytes: &[u8], length: usize) -> Result<(), Damage> {
        self.check(length)?;
        let mut left = length.min(bytes.len());
        while left > 0 {
            match bytes.first_chunk() {
                Some(chunk) => self.chunk(self.at, chunk)?,
                None => self.chunk(self.at, &query::chunk_at_end(bytes))?,
            }
            let now = left.min(CHUNK);
            self.at += now;
            left -= now;
            bytes = &bytes[now..];
        }
        Ok(())
    }

    /// Truncates the key to its first `shared` bytes.
    #[inline]
    fn back_to(&mut self, shared: usize) -> Result<(), Damage> {
        if shared > self.at {
            return Err(Damage::Outside { part: NODE, value: shared as u64, bound: self.at as u64 });
        }
        self.at = shared;
        Ok(())
    }

    fn finish(self) -> Result<(), Damage> {
        self.check(self.at)?;
        self.out.truncate(self.reserved + self.at);
        Ok(())
    }
}
