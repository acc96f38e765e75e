//! Trains the dictionary of a cell on a sample of its texts.
//!
//! Reads the texts of whole blocks, spread evenly over the cell, and returns tokens by class of code. A first pass cuts
//! greedily at the longest known token. A pair of neighbours becomes a token when it has occurred a few times, so that
//! tokens grow from single bytes. Then a few rounds cut the sample at least cost, drop each token that saves less than
//! it costs, and add pairs that would save more than they cost. Single bytes that occur in the cell always stay.
//!
//! The same texts give the same tokens: there is no random state, and ties are broken by text.
//!
//! Memory: the sample, and about 10 MB. Cost: 5 passes over the sample.
//!
//! Source: candidates as in OnPair (Gargiulo et al. 2025). Dropping by true gain after an optimal cut is the usual
//! method of unigram vocabularies (Kudo 2018), with the length of codes instead of likelihood.

use super::parser::{Parser, Trie};
use super::tokens::{Classes, TOKEN_MAX};
use std::collections::BTreeMap;

/// The largest number of candidates.
const CANDIDATES_MAX: usize = 24 << 10;
/// The rounds of cutting, dropping and adding.
const ROUNDS: usize = 4;
/// The cost of a token in the dictionary, in nibbles: lengths, its bytes, and the table in memory.
const TOKEN_NIBBLES: u64 = 10;

/// The texts to train on, in blocks.
#[derive(Debug)]
pub(super) struct Sample {
    bytes_max: usize,
    /// The number of the block, its texts, and the end of each text.
    blocks: Vec<(u64, Vec<u8>, Vec<usize>)>,
    /// One of `stride` blocks is kept.
    stride: u64,
    /// The number of blocks seen.
    seen: u64,
    bytes: usize,
    /// The size of all texts in bytes, kept or not.
    bytes_all: u64,
    /// The bytes that occur in any text.
    pub(super) alphabet: [bool; 256],
}

impl Sample {
    /// A sample of at most about `bytes_max` bytes.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, blocks: Vec::new(), stride: 1, seen: 0, bytes: 0, bytes_all: 0, alphabet: [false; 256] }
    }

    /// Adds the texts of the next block, which end at `ends`.
    pub(super) fn push(&mut self, texts: &[u8], ends: &[usize]) {
        texts.iter().for_each(|&byte| self.alphabet[usize::from(byte)] = true);
        self.bytes_all += texts.len() as u64;
        if self.seen.is_multiple_of(self.stride) {
            self.blocks.push((self.seen, texts.to_vec(), ends.to_vec()));
            self.bytes += texts.len();
        }
        self.seen += 1;
        while self.bytes > self.bytes_max && self.blocks.len() > 1 {
            self.stride *= 2;
            self.blocks.retain(|(number, ..)| number.is_multiple_of(self.stride));
            self.bytes = self.blocks.iter().map(|(_, texts, _)| texts.len()).sum();
        }
    }

    fn texts(&self) -> impl Iterator<Item = &[u8]> {
        self.blocks.iter().flat_map(|(_, texts, ends)| {
            let starts = std::iter::once(0).chain(ends.iter().copied());
            starts.zip(ends).map(|(start, &end)| &texts[start..end])
        })
    }
}

/// Tokens by class of their codes.
#[derive(Debug)]
pub(super) struct Trained {
    pub(super) classes: Classes,
    /// The tokens in order of their numbers. In each class, that is the order of their bytes.
    pub(super) tokens: [Vec<Vec<u8>>; 3],
}

/// Trains tokens on a sample.
pub(super) fn train(sample: &Sample) -> Trained {
    let mut tokens = candidates(sample);
    let mut nibbles = vec![3; tokens.len()];
    let scale = |count: u64| {
        u64::try_from(u128::from(count) * u128::from(sample.bytes_all) / (sample.bytes as u128).max(1))
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
                |token| nibbles.get(token as usize).copied(),
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
        let classes = fit(&order.iter().map(|&token| counts[token]).collect::<Vec<_>>());
        let sizes = classes.sizes();
        for (rank, &token) in order.iter().enumerate() {
            nibbles[token] = 2 + u32::from(rank >= sizes[0]) + u32::from(rank >= sizes[0] + sizes[1]);
        }
        let mut next = Vec::new();
        for (number, token) in tokens.iter().enumerate() {
            let single = token.len() == 1;
            let worth = single || {
                let token_number = u32::try_from(number).unwrap_or(u32::MAX);
                let cost = |token: u32| nibbles.get(token as usize).copied().filter(|_| token != token_number);
                let split = parser.parse(&trie, token, cost, |_| {});
                scale(counts[number]) * u64::from(split.saturating_sub(nibbles[number])) > TOKEN_NIBBLES
            };
            if worth {
                next.push((token.clone(), counts[number], nibbles[number]));
            }
        }
        for (first, second, count) in pairs.all() {
            let text = [tokens[first].as_slice(), &tokens[second]].concat();
            let cost = nibbles[first] + nibbles[second];
            if text.len() <= TOKEN_MAX
                && next.len() < CANDIDATES_MAX
                && scale(count) * u64::from(cost - 4).max(1) > 2 * TOKEN_NIBBLES
            {
                next.push((text, count, 4));
            }
        }
        let mut by_text: BTreeMap<Vec<u8>, (u64, u32)> = BTreeMap::new();
        for (text, count, cost) in next {
            by_text.entry(text).or_insert((count, cost));
        }
        nibbles = by_text.values().map(|&(_, cost)| cost).collect();
        counts = by_text.values().map(|&(count, _)| count).collect();
        tokens = by_text.into_keys().collect();
    }
    by_class(tokens, &counts)
}

/// Assigns codes to tokens by their counts.
fn by_class(tokens: Vec<Vec<u8>>, counts: &[u64]) -> Trained {
    let mut order: Vec<_> = tokens.into_iter().zip(counts).collect();
    order.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(&b.0)));
    let classes = fit(&order.iter().map(|(_, count)| **count).collect::<Vec<_>>());
    let mut order = order.into_iter().map(|(token, _)| token);
    let tokens = classes.sizes().map(|size| {
        let mut tokens: Vec<_> = order.by_ref().take(size).collect();
        tokens.sort_unstable();
        tokens
    });
    Trained { classes, tokens }
}

/// Single bytes, and pairs that occurred often enough while tokens were made.
fn candidates(sample: &Sample) -> Vec<Vec<u8>> {
    let mut tokens: Vec<Vec<u8>> =
        (0..=255u8).filter(|&byte| sample.alphabet[usize::from(byte)]).map(|byte| vec![byte]).collect();
    let mut trie = Trie::new();
    for (number, token) in (0..).zip(&tokens) {
        trie.insert(token, number);
    }
    let threshold = 4 + u32::try_from(sample.bytes >> 18).unwrap_or(0);
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

fn has(trie: &Trie, text: &[u8]) -> bool {
    let mut found = false;
    trie.matches(text, |length, _| found |= length == text.len());
    found
}

/// The classes with the shortest codes in total. Counts fall.
fn fit(counts: &[u64]) -> Classes {
    let mut sums = vec![0];
    for &count in counts {
        sums.push(sums.last().copied().unwrap_or(0) + count);
    }
    let sum = |tokens: usize| sums[tokens.min(counts.len())];
    let mut best = (u64::MAX, Classes::default());
    for short in 0..=255 {
        for middle in short..=255 {
            let classes = Classes { short, middle };
            let sizes = classes.sizes();
            let nibbles = 4 * sum(usize::MAX) - sum(sizes[0]) - sum(sizes[0] + sizes[1]);
            if sizes.iter().sum::<usize>() >= counts.len() && nibbles < best.0 {
                best = (nibbles, classes);
            }
        }
    }
    best.1
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
