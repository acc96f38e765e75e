//! Cuts texts into tokens, for the encoder. [`Trie`] finds the tokens that start at a place; [`Parser`] finds the
//! cheapest cut.
//!
//! Memory: 8 bytes a slot; at most half of the slots are taken, one for each distinct prefix of a token. Cost: a step
//! of the trie for each place and each byte of the longest prefix found there, 6 to 8 steps a byte of URL suffixes.

use super::tokens::{SYMBOLS, TOKEN_MAX};

/// No node, no token.
const NONE: u32 = u32::MAX;

/// Texts by their prefixes. The caller numbers the texts.
#[derive(Clone, Debug)]
pub(super) struct Trie {
    /// The node of each single symbol.
    roots: Vec<u32>,
    /// Open addressing: (node << 9 | symbol, child). The child is NONE in free slots.
    slots: Vec<(u32, u32)>,
    /// For each node, the number of its text.
    ends: Vec<u32>,
}

impl Trie {
    pub(super) fn new() -> Self {
        Self { roots: vec![NONE; SYMBOLS], slots: vec![(0, NONE); 1 << 10], ends: Vec::new() }
    }

    /// Adds a text of at least one symbol.
    pub(super) fn insert(&mut self, text: &[u16], number: u32) {
        let root = &mut self.roots[usize::from(text[0])];
        if *root == NONE {
            *root = node_after(&mut self.ends);
        }
        let mut node = *root;
        for &symbol in &text[1..] {
            if (self.ends.len() + 1) * 2 > self.slots.len() {
                self.grow();
            }
            let slot = find(&self.slots, node << 9 | u32::from(symbol));
            if self.slots[slot].1 == NONE {
                self.slots[slot] = (node << 9 | u32::from(symbol), node_after(&mut self.ends));
            }
            node = self.slots[slot].1;
        }
        self.ends[node as usize] = number;
    }

    fn grow(&mut self) {
        let mut slots = vec![(0, NONE); self.slots.len() * 2];
        for &(key, child) in self.slots.iter().filter(|(_, child)| *child != NONE) {
            let slot = find(&slots, key);
            slots[slot] = (key, child);
        }
        self.slots = slots;
    }

    /// Calls `visit` with the length and the number of each text that `text` starts with, shortest first.
    #[inline]
    pub(super) fn matches(&self, text: &[u16], mut visit: impl FnMut(usize, u32)) {
        let Some((&first, rest)) = text.split_first() else { return };
        let mut node = self.roots[usize::from(first)];
        let mut length = 1;
        for &symbol in rest.iter().take(TOKEN_MAX - 1) {
            if node == NONE {
                return;
            }
            let number = self.ends[node as usize];
            if number != NONE {
                visit(length, number);
            }
            node = self.slots[find(&self.slots, node << 9 | u32::from(symbol))].1;
            length += 1;
        }
        if node != NONE && self.ends[node as usize] != NONE {
            visit(length, self.ends[node as usize]);
        }
    }
}

/// Adds a node at which no text ends.
fn node_after(ends: &mut Vec<u32>) -> u32 {
    ends.push(NONE);
    u32::try_from(ends.len() - 1).unwrap_or(NONE)
}

/// The slot of a key, or the free slot for it.
#[inline]
fn find(slots: &[(u32, u32)], key: u32) -> usize {
    let mask = slots.len() - 1;
    let mut slot = (u64::from(key).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize & mask;
    while slots[slot].1 != NONE && slots[slot].0 != key {
        slot = (slot + 1) & mask;
    }
    slot
}

/// The cheapest cut of a text. Its buffers are reused.
#[derive(Debug, Default)]
pub(super) struct Parser {
    /// For each place: the least cost of the rest, and the length and the number of the rest's first token.
    best: Vec<(u32, u32, u32)>,
}

impl Parser {
    /// Calls `visit` with the tokens of the cheapest cut, in order. Returns the cost of the cut. `cost` returns the
    /// cost of a token, or `None` for a token that must not be used. Every symbol that occurs must itself be a token.
    pub(super) fn parse(
        &mut self,
        trie: &Trie,
        text: &[u16],
        cost: impl Fn(u32) -> Option<u32>,
        mut visit: impl FnMut(u32),
    ) -> u32 {
        self.best.clear();
        self.best.resize(text.len() + 1, (0, 0, NONE));
        for at in (0..text.len()).rev() {
            let mut best = (u32::MAX, 1, NONE);
            trie.matches(&text[at..], |length, token| {
                if let Some(cost) = cost(token) {
                    let cost = cost.saturating_add(self.best[at + length].0);
                    // Of tokens with equal cost, the longest: it takes fewer steps to decode.
                    if cost <= best.0 {
                        best = (cost, u32::try_from(length).unwrap_or(1), token);
                    }
                }
            });
            self.best[at] = best;
        }
        let mut at = 0;
        while let Some(&(_, length, token)) = self.best.get(at).filter(|_| at < text.len()) {
            visit(token);
            at += length as usize;
        }
        self.best[0].0
    }
}
