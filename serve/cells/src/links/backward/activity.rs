//! The time ranges in which the sources of a cell link to any URL of the cell: one set a node, used while in-links are
//! encoded.
//!
//! Reads the records in order, and makes the parts of a backward store before its strata; `backward` specifies the
//! parts. Memory: the sets of all nodes, up to a bound, plus half as much while they grow, and twice the distinct sets
//! when they are written.

use std::collections::HashMap;

use webstrata_layers::record::presence;
use webstrata_layers::{Change, InLinks, Page};

use crate::coding::bits::{BitReader, BitWriter};
use crate::coding::number_codes::{NumberCodes, NumberDecoders};
use crate::coding::sections::push_words;
use crate::error::Damage;
use crate::links::strata::ranks;
use crate::numbers::Number;

use super::{PART, SETS_BYTES_MAX};

/// Copies sets of `words` words each into sets of `words_to` words each. Words that are cut off must be 0.
fn resized(sets: &[u64], words: usize, words_to: usize) -> Vec<u64> {
    let kept = words.min(words_to);
    let mut resized = vec![0; sets.len() / words * words_to];
    // Without ranges, `words_to` is 0.
    for (to, from) in resized.chunks_exact_mut(words_to.max(1)).zip(sets.chunks_exact(words)) {
        to[..kept].copy_from_slice(&from[..kept]);
    }
    resized
}

/// The kinds of runs: ranges outside a set, and ranges in it.
const KINDS: usize = 2;
/// Runs of up to this many bits are symbols themselves.
const DIRECT_BITS: u32 = 4;

/// Whether a range is in a set.
fn is_in(set: &[u64], range: usize) -> bool {
    set[range / 64] >> (range % 64) & 1 == 1
}

/// Calls `visit` with the lengths of the runs of a set, in turn: of ranges outside it first, maybe 0. The last run ends
/// with the table.
fn each_run(set: &[u64], ranges: usize, visit: &mut dyn FnMut(usize, u64)) {
    let (mut begin, mut kind) = (0, 0);
    for range in 0..ranges {
        if usize::from(is_in(set, range)) != kind {
            visit(kind, (range - begin) as u64);
            (begin, kind) = (range, 1 - kind);
        }
    }
    visit(kind, (ranges - begin) as u64);
}

/// The bytes of the table and the sets.
fn store_sets(table: &[i64], sets: &[&[u64]]) -> Vec<u8> {
    let mut out = BitWriter::default();
    let mut before = 0;
    for &start in table {
        out.write_sized(if out.is_empty() { start.cast_unsigned() } else { start.abs_diff(before) });
        before = start;
    }
    if !table.is_empty() {
        let codes = NumberCodes::<DIRECT_BITS, KINDS>::fit(|visit| {
            sets.iter().for_each(|set| each_run(set, table.len(), visit));
        });
        codes.store(&mut out);
        sets.iter().for_each(|set| each_run(set, table.len(), &mut |kind, run| codes.write(kind, run, &mut out)));
    }
    out.into_bytes()
}

/// The table and the sets that [`store_sets`] wrote: `ranges` starts, and `sets` sets of `ranges.div_ceil(64)` words.
///
/// # Errors
/// Damaged bytes.
pub(super) fn load_sets(bytes: &[u8], ranges: usize, sets: usize) -> Result<(Vec<i64>, Vec<u64>), Damage> {
    let ends = Damage::Ends { part: PART };
    let mut bits = BitReader::new(bytes, 0);
    let mut table: Vec<i64> = Vec::new();
    for _ in 0..ranges {
        let number = bits.read_sized();
        let start = table.last().map_or(Some(number.cast_signed()), |last| last.checked_add_unsigned(number));
        table.push(start.filter(|_| !bits.overran()).ok_or(ends)?);
    }
    let words = ranges.div_ceil(64);
    if words == 0 {
        return Ok((table, Vec::new()));
    }
    // A set takes a bit at least.
    if sets as u64 > bits.left() || sets.saturating_mul(words) > SETS_BYTES_MAX / 8 {
        return Err(ends);
    }
    let codes = NumberDecoders::<DIRECT_BITS, KINDS>::load(&mut bits)?;
    let mut words_of_sets = vec![0; sets * words];
    for set in words_of_sets.chunks_exact_mut(words) {
        let (mut range, mut kind) = (0, 0);
        while range < ranges {
            let run = usize::try_from(codes.read(kind, &mut bits)).unwrap_or(usize::MAX);
            let end = range.saturating_add(run);
            // Only the first run may be empty.
            if end > ranges || bits.overran() || run == 0 && (range, kind) != (0, 0) {
                return Err(ends);
            }
            if kind == 1 {
                (range..end).for_each(|range| set[range / 64] |= 1 << (range % 64));
            }
            (range, kind) = (end, 1 - kind);
        }
    }
    Ok((table, words_of_sets))
}

/// The time ranges in which the sources of a cell link to any URL of the cell.
pub(super) struct Activity {
    first: Number,
    /// Whether each node is a source.
    active: Vec<bool>,
    /// The starts of ranges, rising.
    table: Vec<i64>,
    /// The number of words of a set. 0 if the sets would exceed their bound: sets and table are then empty.
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
                if !is_in(set, table_index) {
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
        let (mut distinct, mut of_source): (Vec<&[u64]>, _) = (Vec::new(), Vec::new());
        let sources: Vec<usize> = (0..self.active.len()).filter(|&node| self.active[node]).collect();
        for &node in &sources {
            let set = &self.sets[node * self.words..][..self.words];
            let next = numbers.len();
            of_source.push(*numbers.entry(set).or_insert_with(|| {
                distinct.push(set);
                next
            }));
        }
        let width = usize::BITS - numbers.len().saturating_sub(1).leading_zeros();
        let ranks = ranks::encode(&sources, self.active.len());
        let sets = store_sets(&self.table, &distinct);
        let lengths = [self.table.len(), distinct.len(), width as usize, ranks.len(), sources.len(), sets.len()];
        let mut out = Vec::new();
        push_words(&mut out, &lengths.map(|length| length as u64));
        out.extend(sets);
        out.extend_from_slice(&ranks);
        let mut packed = BitWriter::default();
        of_source.iter().for_each(|&number| packed.write_wide(number as u64, width));
        out.extend(packed.into_bytes());
        (out, ranks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::Random;

    #[test]
    fn sets_come_back() {
        let mut random = Random::new(1);
        for ranges in [0, 1, 63, 64, 65, 300] {
            let words = usize::div_ceil(ranges, 64);
            let months = |at: usize| at as i64 * 30 * 24 * 3600 - 1_000_000_000;
            let table: Vec<i64> = (0..ranges).map(months).collect();
            let mut set = |share: u64| -> Vec<u64> {
                let mut set = vec![0; words];
                (0..ranges).filter(|_| random.below(100) < share).for_each(|at| set[at / 64] |= 1 << (at % 64));
                set
            };
            let none = Vec::new();
            let sets: Vec<Vec<u64>> = [0, 2, 50, 98, 100].map(&mut set).into();
            for sets in [&none, &sets] {
                let slices: Vec<&[u64]> = sets.iter().map(Vec::as_slice).collect();
                let bytes = store_sets(&table, &slices);
                let (read_table, read) = load_sets(&bytes, ranges, sets.len()).unwrap();
                assert_eq!((read_table, read), (table.clone(), sets.concat()), "{ranges} ranges");
                for cut in 0..bytes.len() {
                    let read = load_sets(&bytes[..cut], ranges, sets.len());
                    assert!(read.is_err() || read.is_ok_and(|(_, read)| read.len() == sets.len() * words));
                }
            }
        }
    }

    #[test]
    fn sets_that_would_not_fit_are_damage() {
        let table: Vec<i64> = (0..1 << 16).collect();
        let bytes = [store_sets(&table, &[]), vec![0xff; 1 << 20]].concat();
        assert!(load_sets(&bytes, table.len(), 1 << 16).is_err(), "512 MiB of sets");
        assert!(load_sets(&bytes, table.len(), usize::MAX).is_err());
    }
}
