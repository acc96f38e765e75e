//! Reads entries, one after the other: how many bytes an entry shares, then the tokens of its rest.
//!
//! Nothing but the codes says where an entry ends, so entries can only be read in their order. A walk is therefore
//! bounded by the bits of its part of the image: each code takes a bit at least.

use super::shared::Reader;
use super::tokens::{TOKEN_MAX, Token, Tokens};
use crate::coding::bits::BitReader;
use crate::error::Damage;
use std::ops::Range;

const PART: &str = "entries of the URL store";

/// Entries from some place on.
pub(super) struct Entries<'a> {
    tokens: &'a Tokens,
    reader: &'a Reader,
    bytes: &'a [u8],
    /// The next bits, the first lowest, and how many they are.
    word: u64,
    count: u32,
    /// The offset of the byte after these bits.
    next: usize,
    /// The end of the entries in bytes.
    end: usize,
    /// The number of bytes that the last entry shares.
    pub(super) shared: usize,
    /// Whether the last token ends its entry.
    pub(super) ended: bool,
}

impl<'a> Entries<'a> {
    /// Entries in a range of `bytes`, after one that shares `shared` bytes. Bytes after the range may be read, but do
    /// not count.
    #[inline]
    pub(super) fn new(
        tokens: &'a Tokens,
        reader: &'a Reader,
        bytes: &'a [u8],
        range: Range<usize>,
        shared: usize,
    ) -> Self {
        Self { tokens, reader, bytes, word: 0, count: 0, next: range.start, end: range.end, shared, ended: false }
    }

    /// Provides 56 bits: more than the longest code, of a shared length or of a token.
    #[inline(always)]
    fn fill(&mut self) {
        self.word |= BitReader::new(self.bytes, 8 * self.next as u64).peek() << self.count;
        self.next += ((63 - self.count) >> 3) as usize;
        self.count |= 56;
    }

    #[inline(always)]
    fn skip_bits(&mut self, bits: u32) {
        self.word >>= bits;
        self.count -= bits;
    }

    /// Reads the number of bytes that the next entry shares.
    #[inline(always)]
    pub(super) fn next_shared(&mut self) -> Result<usize, Damage> {
        self.fill();
        let (shared, bits) = self.reader.look(self.shared, self.word);
        self.skip_bits(bits);
        self.shared = shared.ok_or(Damage::Outside { part: PART, value: 0, bound: self.shared as u64 })?;
        Ok(self.shared)
    }

    /// Reads the next token.
    #[inline(always)]
    fn token(&mut self) -> Result<Token, Damage> {
        self.fill();
        let (token, bits) = self.tokens.look(self.word);
        self.skip_bits(bits);
        if self.next > self.end + (self.count >> 3) as usize {
            return Err(Damage::Ends { part: PART });
        }
        Ok(token)
    }

    /// Calls `visit` with each token's text, at the start of 32 bytes, and length, up to the end of the entry or until
    /// `visit` returns false.
    #[inline(always)]
    pub(super) fn each(&mut self, mut visit: impl FnMut(&'a [u8; TOKEN_MAX], usize) -> bool) -> Result<(), Damage> {
        loop {
            let token = self.token()?;
            self.ended = token.ends();
            // One branch for both: where an entry ends is hard to predict.
            if !visit(self.tokens.text(token), token.length()) | self.ended {
                return Ok(());
            }
        }
    }

    /// Reads the entry's other tokens.
    #[inline(always)]
    pub(super) fn skip(&mut self) -> Result<(), Damage> {
        while !self.token()?.ends() {}
        Ok(())
    }
}
