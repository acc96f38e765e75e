//! How a URL store answers: the key of a number, and the number of a key.
//!
//! Both read one node and one block. For a number, the sum of the lengths leads to the entry. A walk back from there
//! keeps the entries whose bytes are still needed. These are written oldest first, each after the bytes that it shares.
//! For a key, see `query.rs`.
//!
//! Every offset is checked against the image. Every loop is bounded by the entries of a block, the nodes, or the
//! nibbles of a block. A key is never longer than the header says.

use super::columns::{self, BLOCK_MAX, Columns};
use super::query::{self, CHUNK, Query};
use super::{NODE_BLOCKS, UrlStore};
use crate::error::Damage;
use std::cmp::Ordering;
use std::ops::Range;

const NODE: &str = "node of the URL store";
const BLOCK: &str = "block of the URL store";

/// The separators of up to 16 blocks, and the places of these blocks.
struct Node<'a> {
    /// The bytes from the node on.
    bytes: &'a [u8],
    /// The range of the first separator.
    first: Range<usize>,
    columns: Columns<'a>,
    /// The offset of the first block in the data.
    base: usize,
    /// The lengths of blocks: the start of the column in bits, and its width.
    lengths: (usize, u32),
    /// The offset of the second separator's rest.
    rests: usize,
}

impl UrlStore {
    /// The offset of a node in the image.
    #[inline]
    fn node_start(&self, node: usize) -> usize {
        // The offsets are the last part of the index.
        if self.offsets + node * 4 >= self.index.len() {
            return self.data;
        }
        self.nodes + (columns::word(&self.index, self.offsets + node * 4) & 0xffff_ffff) as usize
    }

    /// The bytes from a node on, up to the end of the image. The bytes of the node were checked.
    #[inline]
    fn node_bytes(&self, node: usize) -> Result<&[u8], Damage> {
        let at = self.node_start(node);
        if self.image.is_guarded() {
            self.image.check(at, self.node_start(node + 1))?;
        }
        let image = self.image.bytes();
        image.get(at..).ok_or(Damage::Outside { part: NODE, value: at as u64, bound: image.len() as u64 })
    }

    #[inline]
    fn node(&self, node: usize, blocks: usize) -> Result<Node<'_>, Damage> {
        let bytes = self.node_bytes(node)?;
        let (length, start) = columns::leb128(bytes, 0);
        let (base, at) = columns::leb128(bytes, start + length);
        let width = columns::width(u64::from(bytes.get(at).copied().unwrap_or(0)));
        let columns = Columns::read(bytes.get(at + 1..).unwrap_or_default(), blocks);
        let rests = columns.end + (blocks * width as usize).div_ceil(8);
        Ok(Node { bytes, first: start..start + length, columns, base, lengths: (columns.end * 8, width), rests })
    }

    /// The bytes from block `number` of a node on, up to the end of the image. The bytes of the block were checked.
    #[inline]
    fn block_bytes(&self, node: &Node<'_>, number: usize) -> Result<&[u8], Damage> {
        let before: usize = (0..number).map(|block| columns::field(node.columns.bytes, node.lengths, block)).sum();
        let at = self.data + node.base + before;
        if self.image.is_guarded() {
            self.image.check(at, at + columns::field(node.columns.bytes, node.lengths, number))?;
        }
        let image = self.image.bytes();
        image.get(at..).ok_or(Damage::Outside { part: BLOCK, value: at as u64, bound: image.len() as u64 })
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
        // Each call clears the buffer for the walk: it is small for usual blocks.
        if self.block <= 16 { self.write::<16>(at, out, reserved) } else { self.write::<BLOCK_MAX>(at, out, reserved) }
    }

    /// See [`Self::write_key`]. `N` is at least the number of keys of a block and of blocks of a node.
    fn write<const N: usize>(&self, at: u64, out: &mut Vec<u8>, reserved: usize) -> Result<(), Damage> {
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
        prefetch(bytes);

        let mut writer = Writer { store: self, out, reserved, at: 0 };
        let mut pieces = [Piece::default(); N];
        writer.plain(node.bytes, node.first.start, node.first.len())?;
        for piece in needed(&node.columns, number, node.rests, &mut pieces).iter().rev() {
            writer.back_to(piece.shared)?;
            writer.plain(node.columns.bytes, piece.start, piece.end - piece.start)?;
        }
        let block = Columns::read(bytes, self.keys_of(block));
        let (start, end) = (block.end * 2, block.end * 2 + block.first);
        let pieces = needed(&block, entry, end, &mut pieces);
        // A piece is written up to the start of the next one.
        let need = |next: Option<&Piece>| next.map_or(usize::MAX, |next| next.shared);
        writer.tokens(bytes, start, end, need(pieces.last()))?;
        for (depth, piece) in pieces.iter().enumerate().rev() {
            writer.back_to(piece.shared)?;
            let next = depth.checked_sub(1).and_then(|next| pieces.get(next));
            writer.tokens(bytes, piece.start, piece.end, need(next))?;
        }
        writer.finish()
    }

    /// The number of keys below the query, and whether the key with that number equals the query.
    pub(super) fn bound(&self, query: &mut Query<'_>) -> Result<(u64, bool), Damage> {
        if self.count == 0 {
            return Ok((0, false));
        }
        // The first separator of the store is empty, and so never above the query.
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

/// The part of a block's entry that an answer needs.
#[derive(Clone, Copy, Default)]
struct Piece {
    /// The start and the end of the piece.
    start: usize,
    end: usize,
    /// The offset in the key at which the piece begins.
    shared: usize,
}

/// Walks back from an entry and keeps the pieces that it needs, the last first, without the first entry of the block.
/// Rests begin at `start`. `N` is more than `entry`.
#[inline]
fn needed<'a, const N: usize>(
    columns: &Columns<'_>,
    entry: usize,
    start: usize,
    pieces: &'a mut [Piece; N],
) -> &'a [Piece] {
    let entry = entry.min(N - 1);
    let mut ends = [start; N];
    let mut end = start;
    for (entry, key_end) in (1..=entry).zip(&mut ends[1..]) {
        end += columns.rest(entry);
        *key_end = end;
    }
    let (mut length, mut need) = (0, usize::MAX);
    for entry in (1..=entry).rev() {
        let shared = columns.shared(entry);
        if shared < need {
            pieces[length] = Piece { start: ends[entry - 1], end: ends[entry], shared };
            length += 1;
            need = shared;
            if shared == columns.shared_least {
                break;
            }
        }
    }
    &pieces[..length]
}

/// Makes the processor prefetch the first bytes while other work goes on.
#[inline]
fn prefetch(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for line in bytes.chunks(64).take(2) {
        #[expect(unsafe_code, reason = "a hint on bytes of a slice; it reads nothing and any address would do")]
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(line.as_ptr().cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
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
            return Err(Damage::Outside { part: BLOCK, value: at as u64, bound: self.store.longest as u64 });
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

    /// Writes tokens until the key has `need` bytes.
    #[inline]
    fn tokens(&mut self, bytes: &[u8], mut nibble: usize, end: usize, need: usize) -> Result<(), Damage> {
        let (end, mut at, store) = (end.min(bytes.len() * 2), self.at, self.store);
        while nibble < end && at < need {
            let (text, length, nibbles) = store.tokens.token(columns::nibbles(bytes, nibble));
            self.chunk(at, text)?;
            at += length;
            nibble += nibbles;
        }
        self.at = at;
        Ok(())
    }

    /// Writes `length` bytes from `start` on.
    #[inline]
    fn plain(&mut self, bytes: &[u8], mut start: usize, mut length: usize) -> Result<(), Damage> {
        while length > 0 {
            let now = length.min(CHUNK);
            match bytes.get(start..).and_then(|rest| rest.first_chunk()) {
                Some(chunk) => self.chunk(self.at, chunk)?,
                None if start < bytes.len() => self.chunk(self.at, &query::chunk_at_end(bytes, start))?,
                None => return Err(Damage::Ends { part: NODE }),
            }
            self.at += now;
            (start, length) = (start + now, length - now);
        }
        Ok(())
    }

    /// Truncates the key to its first `shared` bytes.
    #[inline]
    fn back_to(&mut self, shared: usize) -> Result<(), Damage> {
        if shared > self.at {
            return Err(Damage::Outside { part: BLOCK, value: shared as u64, bound: self.at as u64 });
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
