//! The dictionary of a URL store: up to about 24,000 short texts, and their codes.
//!
//! A text is a string of symbols: bytes, and at its end perhaps [`END`]. A token with this symbol ends the key, so that
//! no other code has to say where a key ends.
//!
//! The stored dictionary is read once, at open, into tables. It has these parts, in bits, lowest first. First come the
//! numbers of tokens with codes of 1 to 16 bits, in the form of [`BitWriter::write_sized`]. Then come four codes of
//! [`crate::coding::huffman`]: for lengths of tokens' codes, for shared lengths, for rest lengths less 1, and for
//! symbols. Then each token, in the order of symbols: the length of its code, the number of symbols that it shares with
//! the token before, the length of the rest, and the rest. Its own code follows from the lengths of all: see
//! `codes.rs`.
//!
//! Invariants of the tables: each token points to 32 bytes inside `text`, and lengths are at most 32. A token is
//! therefore copied or compared as one chunk of 32 bytes. A token that is a prefix of the next token lies inside it.
//!
//! Cost: in memory, 1 KiB, 4 bytes a token, and 2 to 4 bytes of text a token. A code takes about 4 ns if the tables are
//! in the first-level cache.

use super::codes::{BITS_MAX, Lengths, SLOTS, Slots};
use crate::coding::bits::{BitReader, BitWriter};
use crate::coding::huffman::{Code, Decoder};
use crate::error::Damage;

/// The length of the longest token in symbols.
pub(super) const TOKEN_MAX: usize = 32;
/// The symbol after the last byte of a key.
pub(super) const END: u16 = 256;
/// The number of symbols.
pub(super) const SYMBOLS: usize = 257;
/// The largest number of tokens.
const TOKENS_MAX: usize = 1 << 16;
const PART: &str = "dictionary";
/// The longest code in the dictionary in bits.
const STORED_BITS: u32 = 12;
/// The tokens of a cell, in the order of their symbols, each with the length of its code in bits.
pub(super) type Trained = Vec<(Vec<u16>, usize)>;

/// Where the text of a token lies, and what it is: offset in the texts << 7 | whether the key ends << 6 | length.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token(u32);

impl Token {
    /// The end alone, which is also what codes without a token mean.
    const END: Self = Self(1 << 6);

    fn new(start: usize, length: usize, ends: bool) -> Option<Self> {
        let (start, length) = (u32::try_from(start).ok()?, u32::try_from(length).ok()?);
        (start < 1 << 25).then_some(Self(start << 7 | u32::from(ends) << 6 | length))
    }

    fn start(self) -> usize {
        (self.0 >> 7) as usize
    }

    /// Whether the key ends after the token.
    #[inline]
    pub(super) fn ends(self) -> bool {
        self.0 & 1 << 6 != 0
    }

    /// The length of the text in bytes.
    #[inline]
    pub(super) fn length(self) -> usize {
        (self.0 & 0x3f) as usize
    }
}

/// The dictionary, ready to decode.
#[derive(Clone, Debug)]
pub(super) struct Tokens {
    slots: Slots,
    /// By number.
    tokens: Vec<Token>,
    /// The texts, and 32 bytes more.
    text: Vec<u8>,
}

impl Tokens {
    /// Reads the dictionary that [`store`] wrote.
    ///
    /// # Errors
    /// Any other bytes.
    pub(super) fn load(bits: &mut BitReader<'_>) -> Result<Self, Damage> {
        let outside =
            |value: usize, bound: usize| Damage::Outside { part: PART, value: value as u64, bound: bound as u64 };
        let mut lengths = Lengths::default();
        // The next number of each length of codes.
        let (mut numbers, mut count) = ([0; BITS_MAX + 1], 0);
        for (codes, number) in lengths.0.iter_mut().zip(&mut numbers).skip(1) {
            (*codes, *number) = (usize::try_from(bits.read_sized()).unwrap_or(usize::MAX).min(TOKENS_MAX), count);
            count += *codes;
        }
        if count > TOKENS_MAX {
            return Err(outside(count, TOKENS_MAX));
        }
        let slots = lengths.slots().ok_or(outside(count, SLOTS))?;
        let mut code = |symbols: usize| Decoder::load(bits, symbols, STORED_BITS);
        let (code_lengths, shared_lengths) = (code(BITS_MAX + 1)?, code(TOKEN_MAX)?);
        let (rest_lengths, symbols) = (code(TOKEN_MAX)?, code(SYMBOLS)?);
        let (mut tokens, mut text) = (vec![Token::END; count], Vec::new());
        // The token before, without the end.
        let (mut start, mut length) = (0, 0);
        for _ in 0..count {
            let code = code_lengths.read(bits);
            let (kept, added) = (shared_lengths.read(bits), rest_lengths.read(bits) + 1);
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
            let mut ends = false;
            for _ in 0..added {
                match u8::try_from(symbols.read(bits)) {
                    _ if ends => return Err(outside(kept + added, text.len() - start)),
                    Ok(byte) => text.push(byte),
                    Err(_) => ends = true,
                }
            }
            length = kept + added - usize::from(ends);
            let number = numbers.get_mut(code).ok_or(outside(code, BITS_MAX))?;
            let token = tokens.get_mut(*number).ok_or(outside(*number, count))?;
            *token = Token::new(start, length, ends).ok_or(outside(start, TOKENS_MAX))?;
            *number += 1;
        }
        text.resize(text.len() + TOKEN_MAX, 0);
        Ok(Self { slots, tokens, text })
    }

    /// The size in memory in bytes.
    pub(super) fn memory(&self) -> usize {
        size_of_val(&self.slots) + size_of_val(self.tokens.as_slice()) + self.text.len()
    }

    /// The token of the next code, and the length of the code in bits, 1 to 16.
    #[inline]
    pub(super) fn look(&self, bits: u64) -> (Token, u32) {
        let (number, length) = self.slots.look(bits);
        (self.tokens.get(number).copied().unwrap_or(Token::END), length)
    }

    /// The text of a token, at the start of 32 bytes.
    #[inline]
    pub(super) fn text(&self, token: Token) -> &[u8; TOKEN_MAX] {
        self.text.get(token.start()..).and_then(|text| text.first_chunk()).unwrap_or(&[0; TOKEN_MAX])
    }
}

/// Writes tokens, each of 1 to [`TOKEN_MAX`] symbols.
pub(super) fn store(tokens: &Trained, out: &mut BitWriter) {
    let split_tokens = || {
        let before = std::iter::once(&[][..]).chain(tokens.iter().map(|(token, _)| token.as_slice()));
        before.zip(tokens).map(|(before, (token, code))| {
            let shared = before.iter().zip(token).take_while(|(a, b)| a == b).count().min(token.len() - 1);
            (*code, shared, &token[shared..])
        })
    };
    let (mut codes, mut shared_lengths, mut rest_lengths, mut symbols) =
        ([0; BITS_MAX + 1], [0; TOKEN_MAX], [0; TOKEN_MAX], [0; SYMBOLS]);
    for (code, kept, rest) in split_tokens() {
        codes[code] += 1;
        shared_lengths[kept] += 1;
        rest_lengths[rest.len() - 1] += 1;
        rest.iter().for_each(|&symbol| symbols[usize::from(symbol)] += 1);
    }
    codes[1..].iter().for_each(|&count| out.write_sized(count));
    let [code_lengths, shared_lengths, rest_lengths, symbols] =
        [&codes[..], &shared_lengths, &rest_lengths, &symbols].map(|counts| Code::fit(counts, STORED_BITS));
    [&code_lengths, &shared_lengths, &rest_lengths, &symbols].into_iter().for_each(|code| code.store(out));
    for (code, kept, rest) in split_tokens() {
        code_lengths.write(code, out);
        shared_lengths.write(kept, out);
        rest_lengths.write(rest.len() - 1, out);
        rest.iter().for_each(|&symbol| symbols.write(usize::from(symbol), out));
    }
}
