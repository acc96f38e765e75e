//! Lists as changes of lists shortly before them: the common part of [`super::link3`] and [`super::iir7`]. These two
//! differ in the list that they choose, and in how its distance and the links are written.
//!
//! The record of a list that is not empty has up to three parts. *Ref* is the distance to the list that this list
//! changes (its representative), or 0. Unless ref is 0, *deletes* follow: the number of links of the representative
//! that are not in this list, then the place of each in the representative, as the difference from the place before
//! (less 1). *Adds* are the other links as in [`super::link2`], up to the end of the record. Chains of representatives
//! have at most `hops_max` steps, in the bytes and in the reader.
//!
//! Bytes: a header of six words (nodes, first UID, longest distance, `hops_max`, 1 if adds have a Huffman code and 0 if
//! they are nybbles, bytes of the codes), the codes of ref, number of deletes, deletes and adds, then starts, in
//! nybbles or, with a code for adds, in bits. Numbers and places of deletes from 255 on are escaped, and adds from
//! 4,095 on ([`super::escaped`]).
//!
//! Codes are fitted in three steps. A choice of representatives with guessed codes gives counts. Codes fitted to these
//! counts give the final choice. Codes fitted to the counts of the final choice write.

use bytes::Bytes;

use super::escaped::{Counts, Escaped, EscapedDecoder};
use super::link2::{first_link, step};
use super::nybble;
use super::starts::{Starts, StartsWriter};
use webstrata_cells::Damage;
use webstrata_cells::coding::bits::{BitReader, BitWriter};
use webstrata_cells::coding::sections::{Sections, push_words};
use webstrata_cells::links::codec::LinkCodec;
use webstrata_cells::links::lists::{Lists, Sizes};
use webstrata_cells::links::scratch::StoreScratch;

const HEADER: u64 = 48;
const PART_HOPS: &str = "steps to a list";
/// The longest distance that a header may contain.
const DISTANCE_MAX: u64 = 255;
const HOPS_MAX: u64 = 255;
/// The number of symbols of the codes for numbers and places of deletes, and for adds.
const DELETE_SYMBOLS: usize = 256;
const ADD_SYMBOLS: usize = 4096;
/// The longest codes in bits. Decoding looks codes up in tables, so frequently used tables stay small.
const DELETE_BITS: u32 = 12;
const ADD_BITS: u32 = 15;

/// The rule that chooses a representative.
#[derive(Clone, Copy, Debug)]
pub(super) enum Choice {
    /// The representative with the shortest record.
    Shortest,
    /// The most similar representative: shared links divided by the links of either list, at least the threshold. Of
    /// equally similar ones, the one with fewer hops.
    MostSimilar {
        /// The threshold, from 0 to 1.
        threshold: f64,
    },
}

/// The options for encoding lists.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    pub(super) choice: Choice,
    /// The number of lists before a list that may be its representative; at most 255.
    pub(super) distance_max: u8,
    /// The largest number of steps from a list to a list without a representative.
    pub(super) hops_max: u8,
    /// Whether all distances take the same number of bits.
    pub(super) fixed_refs: bool,
    /// Whether adds have a Huffman code.
    pub(super) huffman_adds: bool,
}

/// A list as a change of another list.
#[derive(Debug, Default)]
struct Change {
    deletes: Vec<u64>,
    adds: Vec<u64>,
    shared: usize,
}

impl Change {
    /// Finds the change from `old`, which is empty without a representative, to `new`.
    fn find(&mut self, old: &[u64], new: &[u64]) {
        self.deletes.clear();
        self.adds.clear();
        self.shared = 0;
        let (mut at, mut kept_from) = (0, 0);
        for &link in new {
            while at < old.len() && old[at] < link {
                self.deletes.push((at - kept_from) as u64);
                at += 1;
                kept_from = at;
            }
            if at < old.len() && old[at] == link {
                at += 1;
                self.shared += 1;
            } else {
                self.adds.push(link);
            }
        }
        for index in at..old.len() {
            self.deletes.push((index - kept_from) as u64);
            kept_from = index + 1;
        }
    }

    /// The adds as the numbers that are written.
    fn add_steps(&self, uid: u64) -> impl Iterator<Item = u64> {
        let mut before = None;
        self.adds.iter().map(move |&link| step(before.replace(link), link, uid))
    }
}

/// The codes, or their counts.
#[derive(Clone, Debug)]
struct Codes<T> {
    refs: T,
    numbers: T,
    deletes: T,
    adds: Option<T>,
}

impl Codes<Counts> {
    fn with(options: &Options, counts: impl Fn(usize) -> Counts) -> Self {
        let refs = usize::from(options.distance_max) + 1;
        let adds = options.huffman_adds.then(|| counts(ADD_SYMBOLS));
        Self { refs: counts(refs), numbers: counts(DELETE_SYMBOLS), deletes: counts(DELETE_SYMBOLS), adds }
    }

    fn count(&mut self, distance: usize, change: &Change, uid: u64) {
        self.refs.add(distance as u64);
        if distance > 0 {
            self.numbers.add(change.deletes.len() as u64);
            change.deletes.iter().for_each(|&delete| self.deletes.add(delete));
        }
        if let Some(adds) = &mut self.adds {
            change.add_steps(uid).for_each(|add| adds.add(add));
        }
    }

    fn fit(&self, options: &Options) -> Codes<Escaped> {
        let refs = if options.fixed_refs {
            let mut even = Counts::new(usize::from(options.distance_max) + 1);
            (0..=u64::from(options.distance_max)).for_each(|distance| even.add(distance));
            even.fit_plain(DELETE_BITS)
        } else {
            self.refs.fit_plain(DELETE_BITS)
        };
        Codes {
            refs,
            numbers: self.numbers.fit(DELETE_BITS),
            deletes: self.deletes.fit(DELETE_BITS),
            adds: self.adds.as_ref().map(|adds| adds.fit(ADD_BITS)),
        }
    }
}

impl Codes<Escaped> {
    fn bits(&self, distance: usize, change: &Change, uid: u64) -> u64 {
        let mut bits = u64::from(self.refs.bits(distance as u64));
        if distance > 0 {
            bits += u64::from(self.numbers.bits(change.deletes.len() as u64));
            bits += change.deletes.iter().map(|&delete| u64::from(self.deletes.bits(delete))).sum::<u64>();
        }
        bits + match &self.adds {
            Some(adds) => change.add_steps(uid).map(|add| u64::from(adds.bits(add))).sum::<u64>(),
            None => change.add_steps(uid).map(|add| u64::from(nybble::bits(add))).sum::<u64>(),
        }
    }

    fn write(&self, distance: usize, change: &Change, uid: u64, out: &mut BitWriter) {
        self.refs.write(distance as u64, out);
        if distance > 0 {
            self.numbers.write(change.deletes.len() as u64, out);
            change.deletes.iter().for_each(|&delete| self.deletes.write(delete, out));
        }
        match &self.adds {
            Some(adds) => change.add_steps(uid).for_each(|add| adds.write(add, out)),
            None => change.add_steps(uid).for_each(|add| nybble::write(add, out)),
        }
    }

    fn store(&self) -> Vec<u8> {
        let mut out = BitWriter::default();
        [Some(&self.refs), Some(&self.numbers), Some(&self.deletes), self.adds.as_ref()]
            .into_iter()
            .flatten()
            .for_each(|code| code.store(&mut out));
        out.into_bytes()
    }
}

/// The distance to each list's representative, and the counts of this choice.
fn choose(lists: &Lists, options: &Options, codes: &Codes<Escaped>) -> (Vec<u8>, Codes<Counts>) {
    let mut counts = Codes::with(options, Counts::new);
    let (mut distances, mut hops) = (Vec::with_capacity(lists.nodes()), vec![0u8; lists.nodes()]);
    let (mut change, mut best_change) = (Change::default(), Change::default());
    for (node, uid) in (0..lists.nodes()).zip(lists.first..) {
        let list = lists.list(node);
        let mut best = 0u8;
        if !list.is_empty() {
            best_change.find(&[], list);
            let mut bits = codes.bits(0, &best_change, uid);
            let mut likeness = (0.0, 0);
            for distance in (1..=options.distance_max).take_while(|&distance| usize::from(distance) <= node) {
                let other = node - usize::from(distance);
                let old = lists.list(other);
                if old.is_empty() || hops[other] >= options.hops_max {
                    continue;
                }
                change.find(old, list);
                let better = match options.choice {
                    Choice::Shortest => {
                        let candidate_bits = codes.bits(usize::from(distance), &change, uid);
                        candidate_bits < bits && {
                            bits = candidate_bits;
                            true
                        }
                    }
                    Choice::MostSimilar { threshold } => {
                        let similarity = change.shared as f64 / (old.len() + change.adds.len()) as f64;
                        let candidate_likeness = (similarity, HOPS_MAX - u64::from(hops[other]));
                        similarity >= threshold && candidate_likeness > likeness && {
                            likeness = candidate_likeness;
                            true
                        }
                    }
                };
                if better {
                    best = distance;
                    std::mem::swap(&mut change, &mut best_change);
                }
            }
            counts.count(usize::from(best), &best_change, uid);
        }
        hops[node] = if best == 0 { 0 } else { hops[node - usize::from(best)] + 1 };
        distances.push(best);
    }
    (distances, counts)
}

/// Encodes lists.
pub(super) fn encode(lists: &Lists, options: &Options) -> Vec<u8> {
    let guess = Codes::with(options, Counts::guess).fit(options);
    let (_, counts) = choose(lists, options, &guess);
    let (distances, counts) = choose(lists, options, &counts.fit(options));
    let codes = counts.fit(options);
    let mut starts = StartsWriter::new(if options.huffman_adds { 1 } else { 4 });
    let mut change = Change::default();
    for ((node, uid), distance) in (0..lists.nodes()).zip(lists.first..).zip(distances) {
        let distance = usize::from(distance);
        if !lists.list(node).is_empty() {
            let old = if distance == 0 { &[] } else { lists.list(node - distance) };
            change.find(old, lists.list(node));
            codes.write(distance, &change, uid, starts.bits());
        }
        starts.end_list();
    }
    let mut stored = codes.store();
    let (mut directory, mut data) = starts.finish();
    let mut out = Vec::new();
    let (distance_max, hops_max) = (u64::from(options.distance_max), u64::from(options.hops_max));
    let words = [lists.nodes() as u64, lists.first, distance_max, hops_max];
    push_words(&mut out, &words);
    push_words(&mut out, &[u64::from(options.huffman_adds), stored.len() as u64]);
    out.append(&mut stored);
    out.append(&mut directory);
    out.append(&mut data);
    out
}

/// Lists as changes, ready to answer.
#[derive(Clone, Debug)]
pub struct Referenced {
    first: u64,
    distance_max: usize,
    hops_max: u64,
    codes: Codes<EscapedDecoder>,
    codes_bytes: u64,
    starts: Starts,
}

impl Referenced {
    /// Opens the bytes that [`super::link3::encode`] or [`super::iir7::encode`] wrote.
    ///
    /// # Errors
    /// A header or codes that do not fit the bytes.
    pub fn open(bytes: Bytes) -> Result<Self, Damage> {
        let mut sections = Sections::new(bytes, "lists as changes");
        let (nodes, first) = (sections.length()?, sections.word()?);
        let distance_max = usize::try_from(sections.word_within(DISTANCE_MAX)?).unwrap_or(usize::MAX);
        let hops_max = sections.word_within(HOPS_MAX)?;
        let huffman_adds = sections.word_within(1)? == 1;
        let length = sections.length()?;
        let stored = sections.take(length, 1)?;
        let mut bits = BitReader::new(&stored, 0);
        let refs = EscapedDecoder::load_plain(&mut bits, distance_max + 1, DELETE_BITS)?;
        let numbers = EscapedDecoder::load(&mut bits, DELETE_SYMBOLS, DELETE_BITS)?;
        let deletes = EscapedDecoder::load(&mut bits, DELETE_SYMBOLS, DELETE_BITS)?;
        let adds = huffman_adds.then(|| EscapedDecoder::load(&mut bits, ADD_SYMBOLS, ADD_BITS)).transpose()?;
        let starts = Starts::take(sections, nodes, if huffman_adds { 1 } else { 4 })?;
        let codes = Codes { refs, numbers, deletes, adds };
        Ok(Self { first, distance_max, hops_max, codes, codes_bytes: stored.len() as u64, starts })
    }

    /// Decodes the list of a node into `list`. `adds` is a buffer for its adds.
    fn read(&self, node: usize, hops: u64, list: &mut Vec<u64>, adds: &mut Vec<u64>) -> Result<(), Damage> {
        let (mut bits, end) = self.starts.find(node)?;
        list.clear();
        if bits.position() >= end {
            return Ok(());
        }
        let distance = self.codes.refs.read(&mut bits);
        if distance > 0 {
            if hops >= self.hops_max {
                return Err(Damage::Outside { part: PART_HOPS, value: hops + 1, bound: self.hops_max });
            }
            self.read(self.before(node, distance)?, hops + 1, list, adds)?;
        }
        self.change(bits, end, node, distance > 0, list, adds)
    }

    /// The node at `distance` before a node.
    fn before(&self, node: usize, distance: u64) -> Result<usize, Damage> {
        let outside = Damage::Outside { part: "distance to a list", value: distance, bound: self.distance_max as u64 };
        usize::try_from(distance).ok().and_then(|distance| node.checked_sub(distance)).ok_or(outside)
    }

    /// Changes the list of the representative in `list` into the node's list. `bits` begin after *ref*.
    fn change(
        &self,
        mut bits: BitReader<'_>,
        end: u64,
        node: usize,
        refers: bool,
        list: &mut Vec<u64>,
        adds: &mut Vec<u64>,
    ) -> Result<(), Damage> {
        if refers {
            self.delete(&mut bits, list)?;
        }
        let uid = self.first.wrapping_add(node as u64);
        if list.is_empty() {
            self.add(bits, end, uid, list);
        } else {
            adds.clear();
            self.add(bits, end, uid, adds);
            merge(list, adds);
        }
        Ok(())
    }

    /// Appends the links in *adds*.
    fn add(&self, bits: BitReader<'_>, end: u64, uid: u64, links: &mut Vec<u64>) {
        match &self.codes.adds {
            // A record is padded to whole nybbles.
            None => push_links(bits, end.saturating_sub(3), uid, links, nybble::read),
            Some(code) => push_links(bits, end, uid, links, |bits| code.read(bits)),
        }
    }

    /// Removes the deleted links from a representative.
    fn delete(&self, bits: &mut BitReader<'_>, list: &mut Vec<u64>) -> Result<(), Damage> {
        let number = self.codes.numbers.read(bits);
        let (mut kept, mut from) = (0, 0usize);
        for _ in 0..number {
            let gap = usize::try_from(self.codes.deletes.read(bits)).unwrap_or(usize::MAX);
            let index = from.saturating_add(gap);
            if index >= list.len() {
                return Err(Damage::Outside { part: "deletes", value: index as u64, bound: list.len() as u64 });
            }
            list.copy_within(from..index, kept);
            kept += index - from;
            from = index + 1;
        }
        if from > 0 {
            list.copy_within(from.., kept);
            list.truncate(kept + list.len() - from);
        }
        Ok(())
    }
}

/// Appends links until the bits reach `end`.
#[inline]
fn push_links(
    mut bits: BitReader<'_>,
    end: u64,
    uid: u64,
    links: &mut Vec<u64>,
    read: impl Fn(&mut BitReader<'_>) -> u64,
) {
    if bits.position() < end {
        let mut link = first_link(read(&mut bits), uid);
        links.push(link);
        while bits.position() < end {
            link = link.wrapping_add(read(&mut bits));
            links.push(link);
        }
    }
}

/// Merges rising links into a rising list.
fn merge(list: &mut Vec<u64>, adds: &[u64]) {
    let (mut kept, mut added) = (list.len(), adds.len());
    list.resize(kept + added, 0);
    // Merges from the end: a write never overtakes a link that is still to be read.
    while added > 0 {
        if kept > 0 && list[kept - 1] > adds[added - 1] {
            kept -= 1;
            list[kept + added] = list[kept];
        } else {
            added -= 1;
            list[kept + added] = adds[added];
        }
    }
}

impl LinkCodec for Referenced {
    fn nodes(&self) -> usize {
        self.starts.nodes()
    }

    fn list(&self, node: usize, _: &mut StoreScratch, links: &mut Vec<u64>) -> Result<(), Damage> {
        self.read(node, 0, links, &mut Vec::new())
    }

    /// Keeps the lists that may be representatives, so that no list is decoded twice.
    fn scan(&self, visit: &mut dyn FnMut(usize, &[u64])) -> Result<(), Damage> {
        let mut recent: Vec<(Vec<u64>, u64)> = vec![Default::default(); self.distance_max + 1];
        let (slots, mut adds) = (recent.len(), Vec::new());
        for node in 0..self.nodes() {
            let (mut bits, end) = self.starts.find(node)?;
            let (mut list, _) = std::mem::take(&mut recent[node % slots]);
            let mut hops = 0;
            list.clear();
            if bits.position() < end {
                let distance = self.codes.refs.read(&mut bits);
                if distance > 0 {
                    let (old, old_hops) = &recent[self.before(node, distance)? % slots];
                    hops = old_hops + 1;
                    if hops > self.hops_max {
                        return Err(Damage::Outside { part: PART_HOPS, value: hops, bound: self.hops_max });
                    }
                    list.extend_from_slice(old);
                }
                self.change(bits, end, node, distance > 0, &mut list, &mut adds)?;
            }
            visit(node, &list);
            recent[node % slots] = (list, hops);
        }
        Ok(())
    }

    fn sizes(&self) -> Sizes {
        let (data, index) = self.starts.sizes();
        Sizes { data, index, tables: HEADER + self.codes_bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn a_change_leads_from_one_list_to_another(old: BTreeSet<u8>, new: BTreeSet<u8>) {
            let (old, new): (Vec<u64>, Vec<u64>) =
                (old.into_iter().map(u64::from).collect(), new.into_iter().map(u64::from).collect());
            let mut change = Change::default();
            change.find(&old, &new);
            let mut place = 0;
            let mut deleted = BTreeSet::new();
            for delete in &change.deletes {
                place += usize::try_from(*delete).unwrap();
                deleted.insert(old[place]);
                place += 1;
            }
            let mut list: Vec<u64> = old.iter().copied().filter(|link| !deleted.contains(link)).collect();
            prop_assert_eq!(list.len(), change.shared);
            merge(&mut list, &change.adds);
            prop_assert_eq!(list, new);
        }
    }
}
