//! The nodes of the graph of a window: the URLs of pages that are there in the window ([`Captures::is_alive`]), and the
//! URLs that a link leads to in the window.
//!
//! A store has the URLs of all times. Without this set, a graph as of 2000 would have URLs that were first seen in 2020
//! as nodes without links. Each update would then change every count and every share among nodes.
//!
//! A set covers a range of UIDs. In all sets of a store, a word covers the same UIDs, so workers unite sets word by
//! word, whatever their ranges. Memory: one bit for each URL of the range, or two with numbers.
//!
//! [`Captures::is_alive`]: webstrata_layers::Captures::is_alive

use std::ops::Range;
use webstrata_layers::Uid;

/// A set of nodes in a range of UIDs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Nodes {
    uids: Range<u64>,
    /// The bit of UID n is bit n % 64 of word n / 64, counted from the word of the first UID of the range.
    words: Vec<u64>,
}

/// Nodes with the number of each node among them.
pub(crate) struct NumberedNodes {
    nodes: Nodes,
    /// The number of nodes before each word.
    before: Vec<u64>,
}

impl Nodes {
    /// Returns a set with none of these URLs.
    pub(crate) fn none(uids: &Range<Uid>) -> Self {
        let uids = uids.start.0..uids.end.0.max(uids.start.0);
        let words = if uids.is_empty() { 0 } else { uids.end.div_ceil(64) - uids.start / 64 };
        Self { words: vec![0; usize::try_from(words).unwrap_or(usize::MAX)], uids }
    }

    /// Returns a set with all of these URLs.
    pub(crate) fn all(uids: &Range<Uid>) -> Self {
        let mut nodes = Self::none(uids);
        nodes.words.fill(u64::MAX);
        nodes.keep_in_range();
        nodes
    }

    fn place(&self, uid: Uid) -> (usize, u64) {
        (usize::try_from(uid.0 / 64 - self.uids.start / 64).unwrap_or(usize::MAX), 1 << (uid.0 % 64))
    }

    /// Adds a URL of the range.
    pub(crate) fn insert(&mut self, uid: Uid) {
        let (word, bit) = self.place(uid);
        self.words[word] |= bit;
    }

    /// Whether a URL of the range is a node.
    pub(crate) fn holds(&self, uid: Uid) -> bool {
        let (word, bit) = self.place(uid);
        self.words[word] & bit != 0
    }

    /// Returns the number of nodes.
    pub(crate) fn len(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Returns the nodes, rising.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Uid> + '_ {
        let first = self.uids.start / 64 * 64;
        (0u64..).zip(&self.words).flat_map(move |(at, &word)| {
            let bits = (0..64).filter(move |bit| word & (1 << bit) != 0);
            bits.map(move |bit| Uid(first + 64 * at + bit))
        })
    }

    /// Returns the words for a range of UIDs inside the range of this set, as [`Nodes::unite`] takes them.
    pub(crate) fn words_of(&self, uids: &Range<Uid>) -> &[u64] {
        if uids.is_empty() {
            return &[];
        }
        let first = usize::try_from(uids.start.0 / 64 - self.uids.start / 64).unwrap_or(usize::MAX);
        let end = usize::try_from(uids.end.0.div_ceil(64) - self.uids.start / 64).unwrap_or(usize::MAX);
        &self.words[first..end]
    }

    /// Adds the nodes of another set that are in the range of this set. `words` are those of the other set, and `first`
    /// is the UID at which their range begins.
    pub(crate) fn unite(&mut self, first: Uid, words: &[u64]) {
        let offset = usize::try_from((first.0 / 64).saturating_sub(self.uids.start / 64)).unwrap_or(usize::MAX);
        self.words.iter_mut().skip(offset).zip(words).for_each(|(word, other)| *word |= other);
        self.keep_in_range();
    }

    /// Clears bits of URLs outside the range, in the first and the last word.
    fn keep_in_range(&mut self) {
        if let Some(first) = self.words.first_mut() {
            *first &= u64::MAX << (self.uids.start % 64);
        }
        if let (Some(last), rest @ 1..) = (self.words.last_mut(), self.uids.end % 64) {
            *last &= u64::MAX >> (64 - rest);
        }
    }

    /// Adds numbers to the nodes.
    pub(crate) fn numbered(self) -> NumberedNodes {
        let mut count = 0;
        let before = self.words.iter().map(|word| {
            let before = count;
            count += u64::from(word.count_ones());
            before
        });
        let before = before.collect();
        NumberedNodes { nodes: self, before }
    }
}

impl NumberedNodes {
    /// Returns the number of nodes.
    pub(crate) fn len(&self) -> u64 {
        self.nodes.len()
    }

    /// Returns the number of nodes before this URL of the range, which is the number of the URL if it is a node.
    pub(crate) fn number(&self, uid: Uid) -> u64 {
        let (word, bit) = self.nodes.place(uid);
        self.before[word] + u64::from((self.nodes.words[word] & (bit - 1)).count_ones())
    }

    /// Whether a URL of the range is a node.
    pub(crate) fn holds(&self, uid: Uid) -> bool {
        self.nodes.holds(uid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn set(uids: Range<u64>, nodes: &BTreeSet<u64>) -> Nodes {
        let mut set = Nodes::none(&(Uid(uids.start)..Uid(uids.end)));
        nodes.range(uids).for_each(|&uid| set.insert(Uid(uid)));
        set
    }

    proptest! {
        #[test]
        fn workers_unite_what_each_has_found(
            nodes in proptest::collection::btree_set(0u64..400, 0..100),
            cut in 0u64..400,
            more in proptest::collection::btree_set(0u64..400, 0..100),
        ) {
            let all: BTreeSet<u64> = nodes.union(&more).copied().collect();
            let (one, other) = (set(0..400, &nodes), set(0..400, &more));
            for range in [0..cut, cut..400] {
                let uids = Uid(range.start)..Uid(range.end);
                let mut mine = Nodes::none(&uids);
                for words in [one.words_of(&uids), other.words_of(&uids)] {
                    mine.unite(uids.start, words);
                }
                prop_assert_eq!(&mine, &set(range.clone(), &all));
                prop_assert_eq!(mine.len(), all.range(range.clone()).count() as u64);
                let mut whole = Nodes::none(&(Uid(0)..Uid(400)));
                whole.unite(uids.start, mine.words_of(&uids));
                let of_range: Vec<u64> = all.range(range).copied().collect();
                prop_assert_eq!(whole.iter().map(|uid| uid.0).collect::<Vec<_>>(), of_range);
            }
            let numbered = set(0..400, &all).numbered();
            for (number, &uid) in (0..).zip(&all) {
                prop_assert!(numbered.holds(Uid(uid)));
                prop_assert_eq!(numbered.number(Uid(uid)), number);
            }
            prop_assert_eq!(numbered.len(), all.len() as u64);
        }
    }

    #[test]
    fn all_are_those_of_the_range() {
        for range in [0..0, 5..5, 0..64, 3..64, 3..65, 63..128, 70..75] {
            let all = Nodes::all(&(Uid(range.start)..Uid(range.end)));
            assert_eq!(all.len(), range.end - range.start, "{range:?}");
            assert_eq!(all.iter().map(|uid| uid.0).collect::<Vec<_>>(), range.collect::<Vec<_>>());
        }
    }
}
