//! Which nodes have a record: a bit a node, and for every 512 nodes how many records come before.

use crate::error::Damage;

const SPAN: usize = 512;
/// Bytes of a span: a count in 32 bits, then the bits, the first node lowest.
const BYTES: usize = 4 + SPAN / 8;

/// Writes the ranks of rising nodes below `nodes`.
pub(super) fn encode(present: &[usize], nodes: usize) -> Vec<u8> {
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
pub(super) fn check(ranks: &[u8], nodes: usize, records: usize) -> Result<(), Damage> {
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

fn number(span: &[u8]) -> usize {
    span.first_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize)
}

/// The record of a node.
#[inline]
pub(super) fn record_of(ranks: &[u8], node: usize) -> Option<usize> {
    let span = ranks.get(node / SPAN * BYTES..)?.get(..BYTES)?;
    let bit = node % SPAN;
    let mut words =
        span[4..].chunks_exact(8).map(|word| word.first_chunk::<8>().map_or(0, |word| u64::from_le_bytes(*word)));
    let mut rank = number(span);
    for _ in 0..bit / 64 {
        rank += words.next()?.count_ones() as usize;
    }
    let word = words.next()?;
    (word >> (bit % 64) & 1 == 1).then(|| rank + (word & ((1 << (bit % 64)) - 1)).count_ones() as usize)
}

/// The node of a record, by bisection of the counts.
pub(super) fn node_of(ranks: &[u8], record: usize) -> Option<usize> {
    let (mut low, mut high) = (0, ranks.len() / BYTES);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if number(&ranks[middle * BYTES..]) <= record { low = middle } else { high = middle }
    }
    let span = ranks.get(low * BYTES..)?.get(..BYTES)?;
    let mut left = record.checked_sub(number(span))?;
    (0..SPAN)
        .find(|bit| {
            let set = span[4 + bit / 8] >> (bit % 8) & 1 == 1;
            let found = set && left == 0;
            left -= usize::from(set && left > 0);
            found
        })
        .map(|bit| low * SPAN + bit)
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
            }
            for (record, &node) in list.iter().enumerate() {
                prop_assert_eq!(node_of(&ranks, record), Some(node));
            }
        }
    }
}
