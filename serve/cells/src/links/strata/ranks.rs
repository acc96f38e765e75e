//! Which nodes have a record: a bit a node, and for every 512 nodes the number of records before them.

use crate::error::Damage;

const SPAN: usize = 512;
/// The size of a span in bytes: a count in 32 bits, then the bits, the first node lowest.
const BYTES: usize = 4 + SPAN / 8;

/// Encodes the rising nodes below `nodes` that have a record.
pub(crate) fn encode(present: &[usize], nodes: usize) -> Vec<u8> {
    let mut out = vec![0; nodes.div_ceil(SPAN) * BYTES];
    let mut rest = present.iter().copied().peekable();
    let mut before = 0u32;
    for (at, span) in out.chunks_exact_mut(BYTES).enumerate() {
        span[..4].copy_from_slice(&before.to_le_bytes());
        while let Some(node) = rest.next_if(|&node| node < (at + 1) * SPAN) {
            let bit = node % SPAN;
            span[4 + bit / 8] |= 1 << (bit % 8);
            before += 1;
        }
    }
    out
}

/// Checks the size and the counts: `records` of `nodes` nodes have a record.
pub(crate) fn check(ranks: &[u8], nodes: usize, records: usize) -> Result<(), Damage> {
    let wrong = Damage::Outside { part: "strata ranks", value: ranks.len() as u64, bound: nodes as u64 };
    if ranks.len() != nodes.div_ceil(SPAN) * BYTES {
        return Err(wrong);
    }
    let mut before = 0usize;
    for span in ranks.chunks_exact(BYTES) {
        if number(span) != before {
            return Err(wrong);
        }
        before += span[4..].iter().map(|byte| byte.count_ones() as usize).sum::<usize>();
    }
    if before == records { Ok(()) } else { Err(wrong) }
}

/// The number of nodes that have a record.
pub(crate) fn count(ranks: &[u8]) -> usize {
    ranks.chunks_exact(BYTES).flat_map(|span| &span[4..]).map(|byte| byte.count_ones() as usize).sum()
}

fn number(span: &[u8]) -> usize {
    span.first_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize)
}

/// The words of a node's span, the count before the span, and the node's place in the span.
#[inline]
fn span_of(ranks: &[u8], node: usize) -> Option<(&[u8], usize, usize)> {
    let span = ranks.get(node / SPAN * BYTES..)?.get(..BYTES)?;
    Some((&span[4..], number(span), node % SPAN))
}

#[inline]
fn word(words: &[u8], at: usize) -> u64 {
    words.get(8 * at..).and_then(|rest| rest.first_chunk::<8>()).map_or(0, |word| u64::from_le_bytes(*word))
}

/// The number of records before a node's, and whether the node has a record.
#[inline]
pub(crate) fn rank(ranks: &[u8], node: usize) -> Option<(usize, bool)> {
    let (words, mut before, bit) = span_of(ranks, node)?;
    for at in 0..bit / 64 {
        before += word(words, at).count_ones() as usize;
    }
    let last_word = word(words, bit / 64);
    before += (last_word & ((1 << (bit % 64)) - 1)).count_ones() as usize;
    Some((before, last_word >> (bit % 64) & 1 == 1))
}

/// The index of the record of a node.
#[inline]
pub(crate) fn record_of(ranks: &[u8], node: usize) -> Option<usize> {
    rank(ranks, node).and_then(|(before, has_record)| has_record.then_some(before))
}

/// The node of a record. Cost: a binary search in the counts.
#[inline]
pub(crate) fn node_of(ranks: &[u8], record: usize) -> Option<usize> {
    let (mut low, mut high) = (0, ranks.len() / BYTES);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if number(&ranks[middle * BYTES..]) <= record { low = middle } else { high = middle }
    }
    let span = ranks.get(low * BYTES..)?.get(..BYTES)?;
    let mut remaining = record.checked_sub(number(span))?;
    for at in 0..SPAN / 64 {
        let node_word = word(&span[4..], at);
        let count = node_word.count_ones() as usize;
        if remaining < count {
            return Some(low * SPAN + at * 64 + select(node_word, remaining));
        }
        remaining -= count;
    }
    None
}

/// The number of words after which a binary search is faster than further steps.
const WORDS_MAX: usize = 16;

/// The node of record `other`, which is near a record with a known node.
#[inline]
pub(crate) fn node_near(ranks: &[u8], (record, node): (usize, usize), other: usize) -> Option<usize> {
    let mut at = node / 64;
    let mut before = record.checked_sub((word_at(ranks, at) & ((1 << (node % 64)) - 1)).count_ones() as usize)?;
    for _ in 0..WORDS_MAX {
        if other < before {
            at = at.checked_sub(1)?;
            before = before.checked_sub(word_at(ranks, at).count_ones() as usize)?;
        } else {
            let node_word = word_at(ranks, at);
            let count = node_word.count_ones() as usize;
            if other - before < count {
                return Some(at * 64 + select(node_word, other - before));
            }
            before += count;
            at += 1;
        }
    }
    node_of(ranks, other)
}

/// The word of 64 nodes from `64 * at` on; 0 beyond the end.
#[inline]
fn word_at(ranks: &[u8], at: usize) -> u64 {
    let span = at / (SPAN / 64);
    ranks.get(span * BYTES + 4..).map_or(0, |words| word(words, at % (SPAN / 64)))
}

/// Nodes of rising records. Each search begins where the last one ended.
pub(crate) struct Nodes<'a> {
    ranks: &'a [u8],
    /// The index of a word of 64 nodes, and that word without the nodes before the last record asked for.
    at: usize,
    word: u64,
    /// The record of the lowest bit of `word`.
    record: usize,
}

impl<'a> Nodes<'a> {
    pub(crate) fn new(ranks: &'a [u8]) -> Self {
        Self { ranks, at: 0, word: 0, record: usize::MAX }
    }

    /// The node of a record. Rising records are cheapest.
    #[inline]
    pub(crate) fn node(&mut self, record: usize) -> Option<usize> {
        if record < self.record || record - self.record >= SPAN {
            let node = node_of(self.ranks, record)?;
            (self.at, self.record) = (node / 64, record);
            self.word = word_at(self.ranks, self.at) & (!0 << (node % 64));
            return Some(node);
        }
        loop {
            let count = self.word.count_ones() as usize;
            if record - self.record < count {
                break;
            }
            self.record += count;
            self.at += 1;
            if self.at / (SPAN / 64) * BYTES >= self.ranks.len() {
                self.record = usize::MAX;
                return None;
            }
            self.word = word_at(self.ranks, self.at);
        }
        while self.record < record {
            self.word &= self.word - 1;
            self.record += 1;
        }
        Some(self.at * 64 + self.word.trailing_zeros() as usize)
    }
}

/// The place of the set bit with `rank` set bits below it. The word has more than `rank` set bits.
#[inline]
fn select(word: u64, rank: usize) -> usize {
    let mut word = word;
    for _ in 0..rank {
        word &= word - 1;
    }
    word.trailing_zeros() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranks_are_those_of_a_list(present in proptest::collection::btree_set(0usize..3000, 0..600)) {
            let nodes = 3000;
            let list: Vec<usize> = present.iter().copied().collect();
            let ranks = encode(&list, nodes);
            prop_assert!(check(&ranks, nodes, list.len()).is_ok());
            for node in 0..nodes {
                prop_assert_eq!(record_of(&ranks, node), list.binary_search(&node).ok());
                prop_assert_eq!(rank(&ranks, node).unwrap().0, list.partition_point(|&other| other < node));
            }
            for (record, &node) in list.iter().enumerate() {
                prop_assert_eq!(node_of(&ranks, record), Some(node));
            }
            for (record, &node) in list.iter().enumerate() {
                for (other, &expected) in list.iter().enumerate().skip(record.saturating_sub(40)).take(80) {
                    prop_assert_eq!(node_near(&ranks, (record, node), other), Some(expected));
                }
            }
            let mut rising = Nodes::new(&ranks);
            for (record, &node) in list.iter().enumerate().filter(|(at, _)| at % 3 != 1) {
                prop_assert_eq!(rising.node(record), Some(node));
            }
        }
    }
}
