//! The dictionary of a URL store: up to about 16,000 short texts, and their codes.
//!
//! The stored dictionary is read once, at open, into a table. Codes are then read with the table. A code has two, three
//! or four nibbles, depending on its first two: with `first = nibble 0 | nibble 1 << 4`,
//!
//! ```text
//! first < short             2 nibbles   token first
//! short <= first < middle   3 nibbles   token short + (first - short) * 16 + nibble 2
//! middle <= first           4 nibbles   token short + (middle - short) * 16 + (first - middle) * 256
//!                                             + nibble 2 + nibble 3 * 16
//! ```
//!
//! Nibbles lie low half first, so that codes are bits of little-endian words. The stored dictionary has these parts, in
//! bits, lowest first: `short` and `middle` in 8 bits each; the numbers of tokens with codes of two, three and four
//! nibbles, in 17 bits each; three codes of [`crate::coding::huffman`], for shared lengths, for rest lengths less 1,
//! and for bytes; then for each token in order, the length that it shares with the token before, the length of the
//! rest, and the rest. The numbers of tokens have gaps if a class is not full. No code of a gap is ever written.
//!
//! Invariants of the table: each entry points to 32 bytes inside `text`, and lengths are at most 32. A token is
//! therefore copied or compared as one chunk of 32 bytes. A token that is a prefix of the next token lies inside it.
//!
//! Cost: 4 bytes a token and 2 to 4 bytes of text in memory. A code takes about 3 ns if the tables are in the
//! first-level cache.

use crate::coding::bits::{BitReader, BitWriter};
use crate::coding::huffman::{Code, Decoder};
use crate::error::Damage;

/// The length of the longest token in bytes.
pub(super) const TOKEN_MAX: usize = 32;
/// The largest number of codes of four nibbles.
const TOKENS_MAX: usize = 1 << 16;
const PART: &str = "dictionary";
const BITS_MAX: u32 = 12;

/// The starts of the classes of codes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Classes {
    /// The number of codes of two nibbles.
    pub(super) short: u32,
    /// `short` and a sixteenth of the codes of three nibbles.
    pub(super) middle: u32,
}

impl Classes {
    /// The largest numbers of tokens with codes of two, three and four nibbles.
    pub(super) fn sizes(self) -> [usize; 3] {
        [self.short as usize, (self.middle - self.short) as usize * 16, (256 - self.middle) as usize * 256]
    }

    /// For each value of the first two nibbles: the first token with these nibbles << 4 | the number of nibbles of its
    /// code.
    fn firsts(self) -> [u32; 256] {
        let before = self.short + (self.middle - self.short) * 16;
        let mut first = 0;
        [(); 256].map(|()| {
            let entry = match first {
                _ if first < self.short => first << 4 | 2,
                _ if first < self.middle => (self.short + (first - self.short) * 16) << 4 | 3,
                _ => (before + (first - self.middle) * 256) << 4 | 4,
            };
            first += 1;
            entry
        })
    }

    /// The code of a token, and its length in nibbles.
    pub(super) fn code(self, token: u32) -> (u32, u32) {
        let before = self.short + (self.middle - self.short) * 16;
        if token < self.short {
            (token, 2)
        } else if token < before {
            let rest = token - self.short;
            ((self.short + rest / 16) | ((rest & 0xf) << 8), 3)
        } else {
            let rest = token - before;
            ((self.middle + rest / 256) | ((rest & 0xff) << 8), 4)
        }
    }
}

/// The dictionary, ready to decode.
#[derive(Clone, Debug)]
pub(super) struct Tokens {
    /// See [`Classes::firsts`].
    firsts: [u32; 256],
    /// For each number of a token: offset in `text` << 6 | length. Gaps have 0, and the list ends with the last token.
    entries: Vec<u32>,
    /// The texts, and 32 bytes more.
    text: Vec<u8>,
}

impl Tokens {
    /// Reads the dictionary that [`store`] wrote.
    ///
    /// # Errors
    /// Any other bytes.
    pub(super) fn load(stored: &[u8]) -> Result<Self, Damage> {
        let outside =
            |value: usize, bound: usize| Damage::Outside { part: PART, value: value as u64, bound: bound as u64 };
        let mut bits = BitReader::new(stored, 0);
        let mut number = |count: u32| u32::try_from(bits.read(count)).unwrap_or(u32::MAX);
        let classes = Classes { short: number(8), middle: number(8) };
        if classes.middle < classes.short {
            return Err(outside(classes.middle as usize, classes.short as usize));
        }
        let counts = [(); 3].map(|()| number(17) as usize);
        let (shared_lengths, rest_lengths, byte_codes) = (
            Decoder::load(&mut bits, TOKEN_MAX, BITS_MAX)?,
            Decoder::load(&mut bits, TOKEN_MAX, BITS_MAX)?,
            Decoder::load(&mut bits, 256, BITS_MAX)?,
        );
        let sizes = classes.sizes();
        let mut entries = Vec::new();
        let (mut text, mut first) = (Vec::new(), 0);
        // The place and the length of the token before.
        let (mut start, mut length) = (0, 0);
        for (count, size) in counts.into_iter().zip(sizes) {
            if count > size || count > TOKENS_MAX {
                return Err(outside(count, size));
            }
            entries.resize(first, 0);
            for _ in 0..count {
                let (kept, added) = (shared_lengths.read(&mut bits), rest_lengths.read(&mut bits) + 1);
                if bits.overran() {
                    return Err(Damage::Ends { part: PART });
                }
                if kept > length || kept + added > TOKEN_MAX {
                    return Err(outside(kept + added, TOKEN_MAX));
                }
                if kept < length {
                    text.extend_from_within(start..start + kept);
                    start = text.len() - kept;
                }
                for _ in 0..added {
                    text.push(u8::try_from(byte_codes.read(&mut bits)).unwrap_or(0));
                }
                length = kept + added;
                entries.push(u32::try_from(start << 6 | length).map_err(|_| outside(start, TOKENS_MAX))?);
            }
            first += size;
        }
        text.resize(text.len() + TOKEN_MAX, 0);
        Ok(Self { firsts: classes.firsts(), entries, text })
    }

    /// The size in memory in bytes.
    pub(super) fn memory(&self) -> usize {
        size_of_val(&self.firsts) + self.entries.len() * 4 + self.text.len()
    }

    /// The token of the next code: its text, at the start of 32 bytes; its length; and the number of nibbles of the
    /// code.
    #[inline]
    pub(super) fn token(&self, word: u32) -> (&[u8; TOKEN_MAX], usize, usize) {
        let first = self.firsts[(word & 0xff) as usize];
        let nibbles = first & 0xf;
        let token = (first >> 4) + (word >> 8 & ((1 << (nibbles * 4 - 8)) - 1));
        let entry = self.entries.get(token as usize).copied().unwrap_or(0);
        let text = self.text.get((entry >> 6) as usize..).and_then(|text| text.first_chunk());
        (text.unwrap_or(&[0; TOKEN_MAX]), (entry & 0x3f) as usize, nibbles as usize)
    }
}

/// Writes tokens, each of 1 to [`TOKEN_MAX`] bytes, by class.
pub(super) fn store(classes: Classes, tokens: &[Vec<Vec<u8>>; 3]) -> Vec<u8> {
    let split_tokens = || {
        let before = std::iter::once(&[][..]).chain(tokens.iter().flatten().map(Vec::as_slice));
        before.zip(tokens.iter().flatten()).map(|(before, token)| {
            let shared = before.iter().zip(token).take_while(|(a, b)| a == b).count().min(token.len() - 1);
            (shared, &token[shared..])
        })
    };
    let (mut shared_lengths, mut rest_lengths, mut byte_counts) = ([0; TOKEN_MAX], [0; TOKEN_MAX], [0; 256]);
    for (kept, rest) in split_tokens() {
        shared_lengths[kept] += 1;
        rest_lengths[rest.len() - 1] += 1;
        rest.iter().for_each(|&byte| byte_counts[usize::from(byte)] += 1);
    }
    let [shared_codes, rest_codes, byte_codes] =
        [&shared_lengths[..], &rest_lengths, &byte_counts].map(|counts| Code::fit(counts, BITS_MAX));
    let mut out = BitWriter::default();
    out.write(u64::from(classes.short), 8);
    out.write(u64::from(classes.middle), 8);
    tokens.iter().for_each(|tokens| out.write(tokens.len() as u64, 17));
    [&shared_codes, &rest_codes, &byte_codes].into_iter().for_each(|code| code.store(&mut out));
    for (kept, rest) in split_tokens() {
        shared_codes.write(kept, &mut out);
        rest_codes.write(rest.len() - 1, &mut out);
        rest.iter().for_each(|&byte| byte_codes.write(usize::from(byte), &mut out));
    }
    out.into_bytes()
}
