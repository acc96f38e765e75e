//! Trains the dictionary of a cell on a sample of its texts.
//!
//! Reads the texts of whole blocks, spread evenly over the cell, and returns tokens with the lengths of their codes. A
//! first pass cuts greedily at the longest known token. A pair of neighbours becomes a token when it has occurred a few
//! times, so that tokens grow from single symbols. Then a few rounds cut the sample at least cost, drop each token that
//! saves less than it costs, and add pairs that would save more than they cost. Single symbols that occur in the cell
//! always stay. The end of a text is a symbol, so that the usual ends of keys become tokens.
//!
//! The same texts give the same tokens: there is no random state, and ties are broken by text.
//!
//! Memory: twice the sample, and about 10 MB. Cost: 5 passes over the sample.
//!
//! Source: candidates as in OnPair (Gargiulo et al. 2025). Dropping by true gain after an optimal cut is the usual
//! method of unigram vocabularies (Kudo 2018), with the length of codes instead of likelihood.

use super::codes::Lengths;
use super::parser::{Parser, Trie};
use super::tokens::{END, SYMBOLS, TOKEN_MAX, Trained};
use std::collections::BTreeMap;

/// The largest number of candidates.
const CANDIDATES_MAX: usize = 24 << 10;
/// The rounds of cutting, dropping and adding.
const ROUNDS: usize = 4;
/// The cost of a token in bits. In the dictionary it takes about 18: lengths, and its symbols. The rest is for the
/// table in memory.
const TOKEN_BITS: u64 = 40;
/// The assumed length of all codes in the first round.
const FIRST_BITS: u32 = 11;

/// The texts to train on, in blocks.
#[derive(Debug)]
pub(super) struct Sample {
    symbols_max: usize,
    /// The number of the block, and its texts, each with the end.
    blocks: Vec<(u64, Vec<u16>)>,
    /// One of `stride` blocks is kept.
    stride: u64,
    /// The number of blocks seen.
    seen: u64,
    symbols: usize,
    /// The size of all texts in symbols, kept or not.
    symbols_all: u64,
    /// The symbols that occur in any text.
    pub(super) alphabet: [bool; SYMBOLS],
}

impl Sample {
    /// A sample of at most about `symbols_max` symbols.
    pub(super) fn new(symbols_max: usize) -> Self {
        let alphabet = [false; SYMBOLS];
        Self { symbols_max, blocks: Vec::new(), stride: 1, seen: 0, symbols: 0, symbols_all: 0, alphabet }
    }

    /// Adds the texts of the next block.
    pub(super) fn push(&mut self, texts: &[u16]) {
        texts.iter().for_each(|&symbol| self.alphabet[usize::from(symbol)] = true);
        self.symbols_all += texts.len() as u64;
        if self.seen.is_multiple_of(self.stride) {
            self.blocks.push((self.seen, texts.to_vec()));
            self.symbols += texts.len();
        }
        self.seen += 1;
        while self.symbols > self.symbols_max && self.blocks.len() > 1 {
            self.stride *= 2;
            self.blocks.retain(|(number, ..)| number.is_multiple_of(self.stride));
            self.symbols = self.blocks.iter().map(|(_, texts)| texts.len()).sum();
        }
    }

    fn texts(&self) -> impl Iterator<Item = &[u16]> {
        self.blocks.iter().flat_map(|(_, texts)| texts.split_inclusive(|&symbol| symbol == END))
    }
}

/// Trains tokens on a sample.
pub(super) fn train(sample: &Sample) -> Trained {
    let mut tokens = candidates(sample);
    let mut bits = vec![FIRST_BITS; tokens.len()];
    let scale = |count: u64| {
        u64::try_from(u128::from(count) * u128::from(sample.symbols_all) / (sample.symbols as u128).max(1))
            .unwrap_or(u64::MAX)
    };
    let mut counts = Vec::new();
    for round in 0..ROUNDS {
        let mut trie = Trie::new();
        for (number, token) in (0..).zip(&tokens) {
            trie.insert(token, number);
        }
        let mut parser = Parser::default();
        let mut pairs = Pairs::new();
        counts = vec![0u64; tokens.len()];
        for text in sample.texts() {
            let mut before = None;
            parser.parse(
                &trie,
                text,
                |token| bits.get(token as usize).copied(),
                |token| {
                    counts[token as usize] += 1;
                    if let Some(before) = before.filter(|_| round + 2 < ROUNDS) {
                        pairs.add(before, token);
                    }
                    before = Some(token);
                },
            );
        }
        let mut order: Vec<usize> = (0..tokens.len()).collect();
        order.sort_unstable_by_key(|&token| (std::cmp::Reverse(counts[token]), token));
        let lengths = Lengths::fit(&order.iter().map(|&token| counts[token]).collect::<Vec<_>>());
        let longest = lengths.each().last().map_or(1, bits_of);
        for (&token, length) in order.iter().zip(lengths.each()) {
            bits[token] = bits_of(length);
        }
        let mut next = Vec::new();
        for (number, token) in tokens.iter().enumerate() {
            let single = token.len() == 1;
            let worth = single || {
                let token_number = u32::try_from(number).unwrap_or(u32::MAX);
                let cost = |token: u32| bits.get(token as usize).copied().filter(|_| token != token_number);
                let split = parser.parse(&trie, token, cost, |_| {});
                scale(counts[number]) * u64::from(split.saturating_sub(bits[number])) > TOKEN_BITS
            };
            if worth {
                next.push((token.clone(), counts[number], bits[number]));
            }
        }
        for (first, second, count) in pairs.all() {
            let text = [tokens[first].as_slice(), &tokens[second]].concat();
            let cost = bits[first] + bits[second];
            if text.len() <= TOKEN_MAX
                && next.len() < CANDIDATES_MAX
                && scale(count) * u64::from(cost.saturating_sub(longest)).max(1) > 2 * TOKEN_BITS
            {
                next.push((text, count, longest));
            }
        }
        let mut by_text: BTreeMap<Vec<u16>, (u64, u32)> = BTreeMap::new();
        for (text, count, cost) in next {
            by_text.entry(text).or_insert((count, cost));
        }
        bits = by_text.values().map(|&(_, cost)| cost).collect();
        counts = by_text.values().map(|&(count, _)| count).collect();
        tokens = by_text.into_keys().collect();
    }
    with_lengths(tokens, &counts)
}

/// The length of a code, of at most 16 bits.
fn bits_of(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(0)
}

/// Assigns lengths of codes to tokens by their counts. Tokens rise.
fn with_lengths(tokens: Vec<Vec<u16>>, counts: &[u64]) -> Trained {
    let mut order: Vec<usize> = (0..tokens.len()).collect();
    order.sort_unstable_by_key(|&token| (std::cmp::Reverse(counts[token]), token));
    let lengths = Lengths::fit(&order.iter().map(|&token| counts[token]).collect::<Vec<_>>());
    let mut bits = vec![0; tokens.len()];
    order.into_iter().zip(lengths.each()).for_each(|(token, length)| bits[token] = length);
    tokens.into_iter().zip(bits).collect()
}

/// Single symbols, and pairs that occurred often enough while tokens were made.
fn candidates(sample: &Sample) -> Vec<Vec<u16>> {
    let mut tokens: Vec<Vec<u16>> =
        (0..=END).filter(|&symbol| sample.alphabet[usize::from(symbol)]).map(|symbol| vec![symbol]).collect();
    let mut trie = Trie::new();
    for (number, token) in (0..).zip(&tokens) {
        trie.insert(token, number);
    }
    let threshold = 4 + u32::try_from(sample.symbols >> 18).unwrap_or(0);
    let mut pairs = Pairs::new();
    for text in sample.texts() {
        let (mut at, mut before) = (0, None::<u32>);
        while at < text.len() && tokens.len() < CANDIDATES_MAX {
            let mut longest = (1, 0);
            trie.matches(&text[at..], |length, token| longest = (length, token));
            let (length, token) = longest;
            at += length;
            let pair = before.filter(|&before| tokens[before as usize].len() + length <= TOKEN_MAX);
            before = Some(token);
            if let Some(first) = pair
                && pairs.add(first, token) >= threshold
            {
                let text = [tokens[first as usize].as_slice(), &tokens[token as usize]].concat();
                let number = u32::try_from(tokens.len()).unwrap_or(u32::MAX);
                // Another pair may have given the same text.
                if !has(&trie, &text) {
                    trie.insert(&text, number);
                    tokens.push(text);
                    before = Some(number);
                }
            }
        }
    }
    tokens
}

fn has(trie: &Trie, text: &[u16]) -> bool {
    let mut found = false;
    trie.matches(text, |length, _| found |= length == text.len());
    found
}

/// Counts of pairs of tokens.
struct Pairs {
    /// Open addressing: (first << 16 | second, count). The count is 0 in free slots.
    slots: Vec<(u32, u32)>,
    taken: usize,
}

impl Pairs {
    fn new() -> Self {
        Self { slots: vec![(0, 0); 1 << 12], taken: 0 }
    }

    /// Counts a pair of tokens below 2^16. Returns its count.
    fn add(&mut self, first: u32, second: u32) -> u32 {
        if (self.taken + 1) * 2 > self.slots.len() {
            let old = std::mem::take(&mut self.slots);
            self.slots = vec![(0, 0); old.len() * 2];
            for (key, count) in old.into_iter().filter(|(_, count)| *count > 0) {
                let slot = self.find(key);
                self.slots[slot] = (key, count);
            }
        }
        let slot = self.find(first << 16 | second);
        if self.slots[slot].1 == 0 {
            self.taken += 1;
        }
        self.slots[slot] = (first << 16 | second, self.slots[slot].1 + 1);
        self.slots[slot].1
    }

    fn find(&self, key: u32) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = (u64::from(key).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize & mask;
        while self.slots[slot].1 > 0 && self.slots[slot].0 != key {
            slot = (slot + 1) & mask;
        }
        slot
    }

    /// Pairs with their counts, the most frequent first.
    fn all(&self) -> Vec<(usize, usize, u64)> {
        let mut all: Vec<_> = self.slots.iter().filter(|(_, count)| *count > 0).copied().collect();
        all.sort_unstable_by_key(|&(key, count)| (std::cmp::Reverse(count), key));
        all.into_iter().map(|(key, count)| ((key >> 16) as usize, (key & 0xffff) as usize, u64::from(count))).collect()
    }
}
