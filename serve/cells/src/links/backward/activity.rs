//! The time ranges in which the sources of a cell link to any URL of the cell: one set a node, used while in-links are
//! encoded.
//!
//! Reads the records in order, and makes the parts of a backward store before its strata; `backward` specifies the
//! parts. Memory: the sets of all nodes, up to a bound, plus half as much while they grow, and twice the distinct sets
//! when they are written.

use std::collections::HashMap;

use webstrata_layers::record::presence;
use webstrata_layers::{Change, InLinks, Page};

use crate::coding::bits::BitWriter;
use crate::links::strata::ranks;
use crate::numbers::Number;

/// Copies sets of `words` words each into sets of `words_to` words each. Words that are cut off must be 0.
fn resized(sets: &[u64], words: usize, words_to: usize) -> Vec<u64> {
    let kept = words.min(words_to);
    let mut resized = vec![0; sets.len() / words * words_to];
    // `words_to` is 0 if there are no ranges.
    for (to, from) in resized.chunks_exact_mut(words_to.max(1)).zip(sets.chunks_exact(words)) {
        to[..kept].copy_from_slice(&from[..kept]);
    }
    resized
}

/// The time ranges in which the sources of a cell link to any URL of the cell.
pub(super) struct Activity {
    first: Number,
    /// Whether each node is a source.
    active: Vec<bool>,
    /// The starts of ranges, rising.
    table: Vec<i64>,
    /// The number of words of a set. 0 if the sets would exceed their bound: then there are no sets, and no table.
    words: usize,
    /// The words of each node's set.
    sets: Vec<u64>,
}

impl Activity {
    /// Reads the records once. Makes no sets if they would take more than `sets_bytes_max` bytes.
    pub(super) fn of<'a, E: 'a>(
        first: Number,
        nodes: usize,
        records: &dyn Fn() -> Box<dyn Iterator<Item = Result<InLinks<Number>, E>> + 'a>,
        sets_bytes_max: usize,
    ) -> Result<Self, E> {
        let node_of = |source: Number| {
            let node = source.0.checked_sub(first.0).and_then(|node| usize::try_from(node).ok());
            node.filter(|&node| node < nodes)
        };
        let words_max = sets_bytes_max / 8 / nodes.max(1);
        let mut active = vec![false; nodes];
        // The starts in rising order, each with its index; indexes are in order of appearance at first.
        let mut table: Vec<(i64, usize)> = Vec::new();
        let mut words = words_max.min(1);
        let mut sets = vec![0; words * nodes];
        let mut table_indexes = Vec::new();
        for record in records() {
            let record = record?;
            record.sources.iter().filter_map(|&source| node_of(source)).for_each(|node| active[node] = true);
            if words == 0 {
                continue;
            }
            table_indexes.clear();
            for &start in &record.ranges {
                let at = table.binary_search_by_key(&start, |&(start, _)| start).unwrap_or_else(|at| {
                    table.insert(at, (start, table.len()));
                    at
                });
                table_indexes.push(table[at].1);
            }
            if table.len() > 64 * words {
                let needed = table.len().div_ceil(64);
                if needed > words_max {
                    (words, sets, table) = (0, Vec::new(), Vec::new());
                    continue;
                }
                let wider = needed.next_power_of_two().min(words_max);
                sets = resized(&sets, words, wider);
                words = wider;
            }
            let all = table_indexes.iter().fold(vec![0u64; words], |mut all, &table_index| {
                all[table_index / 64] |= 1 << (table_index % 64);
                all
            });
            let count = u32::try_from(table_indexes.len()).unwrap_or(u32::MAX);
            let mut changes = presence::by_link(&record.changes).peekable();
            for (at, &source) in (0u32..).zip(&record.sources) {
                let changed = changes.next_if(|(link, _)| *link == at);
                let Some(node) = node_of(source) else { continue };
                let set = &mut sets[node * words..][..words];
                match changed {
                    None => set.iter_mut().zip(&all).for_each(|(word, all)| *word |= all),
                    Some((_, changes)) => {
                        for (from, to) in presence::intervals(changes, count) {
                            for &table_index in &table_indexes[from as usize..=to as usize] {
                                set[table_index / 64] |= 1 << (table_index % 64);
                            }
                        }
                    }
                }
            }
        }
        // Renumbers the sets by time.
        let fewest = table.len().div_ceil(64);
        if table.iter().enumerate().any(|(at, &(_, table_index))| at != table_index) {
            let mut order = vec![0; table.len()];
            table.iter().enumerate().for_each(|(at, &(_, table_index))| order[table_index] = at);
            let mut sorted = vec![0; words];
            for set in sets.chunks_exact_mut(words).filter(|set| set.iter().any(|&word| word != 0)) {
                sorted.fill(0);
                for (table_index, &at) in order.iter().enumerate() {
                    sorted[at / 64] |= (set[table_index / 64] >> (table_index % 64) & 1) << (at % 64);
                }
                set.copy_from_slice(&sorted);
            }
        }
        let sets = if words == fewest { sets } else { resized(&sets, words, fewest) };
        Ok(Self { first, active, table: table.into_iter().map(|(start, _)| start).collect(), words: fewest, sets })
    }

    fn node_of(&self, source: Number) -> Option<usize> {
        let node = usize::try_from(source.0.checked_sub(self.first.0)?).ok()?;
        (self.words > 0 && node < self.active.len()).then_some(node)
    }

    /// The record with changes only in ranges in which its sources are active. Without sets, changes stay as they are.
    pub(super) fn loosen(&self, record: InLinks<Number>) -> Page<Number> {
        let table_indexes: Vec<usize> =
            record.ranges.iter().map(|start| self.table.binary_search(start).unwrap_or(0)).collect();
        let count = u32::try_from(table_indexes.len()).unwrap_or(u32::MAX);
        let mut changes = Vec::new();
        for (link, link_changes) in presence::by_link(&record.changes) {
            let source = record.sources.get(link as usize).copied();
            let Some(node) = source.and_then(|source| self.node_of(source)) else {
                changes.extend_from_slice(link_changes);
                continue;
            };
            let set = &self.sets[node * self.words..][..self.words];
            let mut stretches = presence::intervals(link_changes, count).into_iter().peekable();
            let mut before = None;
            for (range, &table_index) in (0u32..).zip(&table_indexes) {
                if set[table_index / 64] >> (table_index % 64) & 1 == 0 {
                    continue;
                }
                while stretches.next_if(|&(_, to)| to < range).is_some() {}
                let now = stretches.peek().is_some_and(|&(from, _)| from <= range);
                match before {
                    // Before the source is first active, its links count as in its first active range.
                    None if !now => changes.push(Change { link, capture: 0 }),
                    Some(before) if before != now => changes.push(Change { link, capture: range }),
                    _ => {}
                }
                before = Some(now);
            }
        }
        Page { uid: record.uid, timestamps: record.ranges, links: record.sources, changes, ..Page::default() }
    }

    /// The parts before the strata, and the ranks, which are also one of the parts.
    pub(super) fn store(&self) -> (Vec<u8>, Vec<u8>) {
        let mut numbers: HashMap<&[u64], usize> = HashMap::new();
        let (mut distinct, mut of_source) = (Vec::new(), Vec::new());
        let sources: Vec<usize> = (0..self.active.len()).filter(|&node| self.active[node]).collect();
        for &node in &sources {
            let set = &self.sets[node * self.words..][..self.words];
            let next = numbers.len();
            of_source.push(*numbers.entry(set).or_insert_with(|| {
                distinct.extend_from_slice(set);
                next
            }));
        }
        let width = usize::BITS - numbers.len().saturating_sub(1).leading_zeros();
        let ranks = ranks::encode(&sources, self.active.len());
        let mut out = Vec::new();
        for value in
            [self.table.len() as u64, distinct.len() as u64, u64::from(width), ranks.len() as u64, sources.len() as u64]
        {
            out.extend_from_slice(&value.to_le_bytes());
        }
        self.table.iter().for_each(|start| out.extend_from_slice(&start.to_le_bytes()));
        distinct.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
        out.extend_from_slice(&ranks);
        let mut packed = BitWriter::default();
        of_source.iter().for_each(|&number| packed.write_wide(number as u64, width));
        out.extend(packed.into_bytes());
        (out, ranks)
    }
}
