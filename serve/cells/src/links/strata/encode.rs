//! Writes a cell's records: counts, fits codes on samples, chooses references, lays out.
//!
//! The first pass over the records counts lists of timestamps and takes a sample. A second pass writes, unless all
//! records fit the memory (256 MiB) and were held. Memory: the held records or the sample, the costs of the pairs of
//! one segment, and the bytes written. Cost: about 20 nanoseconds a link to decode, count and write; the rest of the
//! time weighs pairs.

mod candidates;

use webstrata_layers::Page;

use crate::coding::bits::BitWriter;
use crate::links::lists::Lists;

use super::blocks::{BLOCK, BlocksWriter};
use super::ranks;
use super::symbols::{Counts, Model, Sink, Writer};
use super::times::{TimesCounter, TimesWriter};
use super::{Before, DEPTH_MAX, GROUP_MAX, Numbering, WINDOW_MAX, is_last};
use crate::links::strata::encode::candidates::Candidates;
use crate::links::strata::record::{Record, RecordBuffers, Spot};
use crate::links::strata::references::{Costs, choose, neighbour};

/// The trade-off between size and speed of an encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The largest depth of references; 0 means no references.
    pub depth_max: u8,
    /// The farthest neighbour that may be a reference, at most 64.
    pub window: usize,
    /// Bits that a reference must save beyond its cost in bits: the time to follow it, expressed as size.
    pub reference_bits: u32,
    /// A group has 2 to this power records, at most 8. Large groups have fewer lengths to store. Reading a record
    /// passes over those before it in its group.
    pub group_bits: u32,
}

impl Profile {
    /// For small size.
    pub const ARCHIVE: Self = Self { depth_max: 4, window: 64, reference_bits: 1, group_bits: 3 };
    /// For speed.
    pub const SPEED: Self = Self { depth_max: 1, window: 32, reference_bits: 5, group_bits: 0 };
}

/// The number of records that are searched together. References stay inside a segment. A multiple of the group.
const SEGMENT: usize = 1 << 14;
/// The number of records in a piece of the sample, a multiple of the group.
const SAMPLE_PIECE: usize = 1 << 10;
/// The bytes of records to hold, approximately. For larger cells, the encoder holds the sample only.
pub(crate) const HELD_BYTES_MAX: usize = 256 << 20;
/// Rounds of fitting codes to choices and choices to codes, before the last choice.
const ROUNDS: usize = 2;

/// Limits on what the encoder holds and weighs.
#[derive(Clone, Copy)]
struct Effort {
    /// See [`HELD_BYTES_MAX`].
    held_max: usize,
    /// The number of records in the sample for fitting codes, approximately.
    sample: usize,
    /// The largest number of neighbours that are weighed as the reference of a record.
    kept: usize,
}

impl Effort {
    /// For records with time, where weighing a pair is expensive.
    const TIMED: Self = Self { held_max: HELD_BYTES_MAX, sample: 2 * SEGMENT, kept: 16 };
    const TIMELESS: Self = Self { kept: 24, ..Self::TIMED };
}

/// Encodes lists without time.
pub fn encode_lists(lists: &Lists, profile: Profile) -> Vec<u8> {
    encode_lists_with(lists, profile, Effort::TIMELESS)
}

fn encode_lists_with(lists: &Lists, profile: Profile, effort: Effort) -> Vec<u8> {
    let empty =
        lists.ends.iter().scan(0, |before, &end| Some(std::mem::replace(before, end) == end)).filter(|&e| e).count();
    // An empty list takes three to four bits as a record. Leaving empty lists out takes one bit a node.
    let dense = empty * 3 < lists.nodes();
    let nodes: Vec<usize> = (0..lists.nodes()).filter(|&node| dense || !lists.list(node).is_empty()).collect();
    let record = |&node: &usize| {
        Ok::<_, std::convert::Infallible>((
            node,
            Record::timeless(lists.first + node as u64, lists.list(node).to_vec()),
        ))
    };
    let head = Head { first: lists.first, nodes: lists.nodes(), timed: false };
    encode_records(head, nodes.len(), &|| Box::new(nodes.iter().map(record)), profile, effort)
        .unwrap_or_else(|never| match never {})
}

/// Encodes `records` pages, or in-links as pages. Their UIDs rise from `first` on, below `first + nodes`, and each page
/// is sound (see [`Page::flaw`]).
///
/// # Errors
/// The errors of the iterators that `pages` returns. `pages` is called once or twice, and must return the same pages.
pub fn encode_pages<'a, E: 'a>(
    first: u64,
    (nodes, records): (usize, usize),
    pages: &dyn Fn() -> Box<dyn Iterator<Item = Result<Page<u64>, E>> + 'a>,
    profile: Profile,
) -> Result<Vec<u8>, E> {
    encode_numbered(first, (nodes, records), pages, &Numbering { first, ..Numbering::default() }, profile)
}

/// Like [`encode_pages`], but links are numbers other than UIDs.
pub(crate) fn encode_numbered<'a: 'b, 'b, E: 'b>(
    first: u64,
    (nodes, records): (usize, usize),
    pages: &dyn Fn() -> Box<dyn Iterator<Item = Result<Page<u64>, E>> + 'a>,
    numbering: &'b Numbering,
    profile: Profile,
) -> Result<Vec<u8>, E> {
    let record = move |page: Result<Page<u64>, E>| {
        page.map(|page| {
            let node = usize::try_from(page.uid - first).unwrap_or(usize::MAX);
            (node, Record::of(page, numbering.of(node)))
        })
    };
    let head = Head { first, nodes, timed: true };
    encode_records(head, records, &|| Box::new(pages().map(record)), profile, Effort::TIMED)
}

/// A node and its list.
pub(crate) type NodeList = (usize, Vec<u64>);

/// Like [`encode_numbered`], for lists without time that are never all in memory. Lists are not empty, and come in
/// order of nodes.
pub(crate) fn encode_streamed<'a: 'b, 'b, E: 'b>(
    first: u64,
    (nodes, records): (usize, usize),
    lists: &dyn Fn() -> Box<dyn Iterator<Item = Result<NodeList, E>> + 'a>,
    numbering: &'b Numbering,
    profile: Profile,
) -> Result<Vec<u8>, E> {
    let record =
        move |list: Result<NodeList, E>| list.map(|(node, list)| (node, Record::timeless(numbering.of(node), list)));
    let head = Head { first, nodes, timed: false };
    encode_records(head, records, &|| Box::new(lists().map(record)), profile, Effort::TIMELESS)
}

struct Head {
    first: u64,
    nodes: usize,
    timed: bool,
}

type Records<'a, E> = Box<dyn Iterator<Item = Result<(usize, Record), E>> + 'a>;

fn encode_records<'a, E>(
    head: Head,
    count: usize,
    records: &dyn Fn() -> Records<'a, E>,
    profile: Profile,
    effort: Effort,
) -> Result<Vec<u8>, E> {
    assert!(profile.window <= WINDOW_MAX, "a window of {}", profile.window);
    assert!(profile.depth_max <= DEPTH_MAX, "references of depth {}", profile.depth_max);
    assert!(1 << profile.group_bits <= GROUP_MAX, "groups of 2^{} records", profile.group_bits);
    let mut nodes = Vec::with_capacity(count);
    let mut times = TimesCounter::default();
    let (mut links_max, mut captures_max) = (0, 0);
    // The sample is all of a small cell, and every n-th piece of a large one.
    let step = count.div_ceil(effort.sample).max(1);
    let sampled = |at: usize| (at / SAMPLE_PIECE).is_multiple_of(step);
    let (mut held, mut held_bytes, mut all_held) = (Vec::new(), 0, true);
    for (at, record) in records().enumerate() {
        let (node, record) = record?;
        nodes.push(node);
        links_max = links_max.max(record.links.len());
        if let Some(list) = &record.captures {
            captures_max = captures_max.max(list.0.len());
            times.add(list);
        }
        held_bytes += record.bytes();
        if all_held && held_bytes > effort.held_max && step > 1 {
            all_held = false;
            let mut indexes = 0..;
            held.retain(|_| indexes.next().is_some_and(sampled));
            held.shrink_to_fit();
        }
        if all_held || sampled(at) {
            held.push(record);
        }
    }
    let times = head.timed.then(|| times.finish());
    let mut buffers = RecordBuffers::default();
    let piece_len = if step == 1 { SEGMENT } else { SAMPLE_PIECE };
    let pieces: Vec<(&[Record], Candidates)> = held
        .chunks(piece_len)
        .step_by(if all_held { step } else { 1 })
        .map(|piece| (piece, candidates_of(piece, profile, effort.kept)))
        .collect();
    // `choices` weighs one way of writing against another; `codes` write.
    let mut choices = None;
    for _ in 0..ROUNDS {
        let model = choices.as_ref().unwrap_or(Model::usual());
        let mut counts = counts_of(times.as_ref());
        for (piece, candidates) in &pieces {
            let chosen = references_of(piece, candidates, profile, model, &mut buffers);
            let manner = Manner { times: times.as_ref(), profile, model };
            write_all(piece, &chosen, manner, &mut buffers, &mut counts, &mut |_| {});
        }
        choices = Some(counts.fit(step > 1));
    }
    let choices = choices.as_ref().unwrap_or(Model::usual());
    let manner = Manner { times: times.as_ref(), profile, model: choices };
    let mut chosen = Vec::new();
    // If all records are held, `codes` are fitted to the final choices.
    let codes = all_held.then(|| {
        let mut counts = counts_of(times.as_ref());
        for segment in held.chunks(SEGMENT) {
            let segment_references =
                references_of(segment, &candidates_of(segment, profile, effort.kept), profile, choices, &mut buffers);
            write_all(segment, &segment_references, manner, &mut buffers, &mut counts, &mut |_| {});
            chosen.push(segment_references);
        }
        counts.fit(false)
    });
    let codes = codes.as_ref().unwrap_or(choices);
    let mut writer = Writer { model: codes, out: BitWriter::default() };
    let mut blocks = BlocksWriter::default();
    let mut write = |segment: &[Record], chosen: &[Option<u8>], buffers: &mut RecordBuffers| {
        let mut before = writer.out.len();
        write_all(segment, chosen, manner, buffers, &mut writer, &mut |writer: &Writer<'_>| {
            blocks.push(u32::try_from(writer.out.len() - before).unwrap_or(u32::MAX));
            before = writer.out.len();
        });
    };
    if all_held {
        held.chunks(SEGMENT).zip(&chosen).for_each(|(segment, chosen)| write(segment, chosen, &mut buffers));
    } else {
        drop(pieces);
        drop(held);
        let mut rest = records();
        loop {
            let segment = rest.by_ref().take(SEGMENT).map(|record| record.map(|(_, record)| record));
            let segment: Vec<Record> = segment.collect::<Result<_, E>>()?;
            if segment.is_empty() {
                break;
            }
            let chosen =
                references_of(&segment, &candidates_of(&segment, profile, effort.kept), profile, choices, &mut buffers);
            write(&segment, &chosen, &mut buffers);
        }
    }
    let layout = blocks.finish(&writer.out.into_bytes());
    let mut tables = Writer { model: codes, out: BitWriter::default() };
    for value in [head.first, head.nodes as u64, nodes.len() as u64, links_max as u64, captures_max as u64] {
        tables.out.write_sized(value);
    }
    tables.raw(u64::from(profile.depth_max), 7);
    tables.raw(u64::from(head.timed), 1);
    tables.raw(u64::from(profile.group_bits), 3);
    codes.store(&mut tables.out);
    layout.header.store(&mut tables.out);
    if let Some(times) = &times {
        times.store(&mut tables);
    }
    let ranks = if nodes.len() == head.nodes { Vec::new() } else { ranks::encode(&nodes, head.nodes) };
    let tables = tables.out.into_bytes();
    let mut out = Vec::new();
    for section in [&tables, &ranks, &layout.pointers, &layout.blocks] {
        out.extend_from_slice(&(section.len() as u64).to_le_bytes());
    }
    for section in [tables, ranks, layout.pointers, layout.blocks] {
        out.extend(section);
    }
    Ok(out)
}

/// Chooses the references of a segment.
fn references_of(
    records: &[Record],
    candidates: &Candidates,
    profile: Profile,
    model: &Model,
    buffers: &mut RecordBuffers,
) -> Vec<Option<u8>> {
    let mut costs = Costs::default();
    for (at, record) in records.iter().enumerate() {
        // What the record before says is not known yet.
        let spot = Spot { before: Before::NOTHING, last: is_last(at, profile.group_bits) };
        let (alone, columns) = record.bits_alone(spot, model, buffers);
        let others = candidates.of(at).iter().filter_map(|&slot| {
            let slot = usize::from(slot);
            let other = neighbour(at, slot, records.len())?;
            let bits = record.bits_against((slot, &records[other]), spot, columns, alone, model, buffers)?;
            // A reference in another block costs another look-up.
            let block = |record: usize| (record >> profile.group_bits) / BLOCK;
            let far = if block(other) == block(at) { 0 } else { 2 };
            Some((other, bits + far + profile.reference_bits))
        });
        costs.push(alone, others);
    }
    choose(&costs, profile.depth_max)
}

fn candidates_of(records: &[Record], profile: Profile, kept: usize) -> Candidates {
    let window = if profile.depth_max == 0 { 0 } else { profile.window };
    Candidates::find(records.iter().map(|record| record.links.as_slice()), window, kept)
}

/// Counts that include what is stored before the records.
fn counts_of(times: Option<&TimesWriter>) -> Counts {
    let mut counts = Counts::new();
    if let Some(times) = times {
        times.store(&mut counts);
    }
    counts
}

/// How records are written.
#[derive(Clone, Copy)]
struct Manner<'a> {
    times: Option<&'a TimesWriter>,
    profile: Profile,
    /// Weighs shapes.
    model: &'a Model,
}

/// Writes records from the first of a group on. Calls `written` after each group.
fn write_all<S: Sink>(
    records: &[Record],
    chosen: &[Option<u8>],
    Manner { times, profile, model }: Manner<'_>,
    buffers: &mut RecordBuffers,
    sink: &mut S,
    written: &mut dyn FnMut(&S),
) {
    let mut before = Before::NOTHING;
    for (at, record) in records.iter().enumerate() {
        let reference = chosen[at].map(usize::from).and_then(|slot| Some((slot, neighbour(at, slot, records.len())?)));
        let spot = Spot { before, last: is_last(at, profile.group_bits) };
        if times.is_some() || !record.links.is_empty() || !spot.last {
            let reference = reference.map(|(slot, other)| (slot, &records[other]));
            before = record.write(times, reference, spot, model, buffers, sink);
        }
        if spot.last {
            before = Before::NOTHING;
        }
        if spot.last || at + 1 == records.len() {
            written(sink);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::Random;
    use crate::links::codec::LinkCodec;
    use crate::links::scratch::StoreScratch;
    use crate::links::strata::Strata;

    /// Lists that copy parts of earlier lists, near and far.
    fn lists(nodes: u64) -> Lists {
        let mut random = Random::new(11);
        let mut lists = Lists::default();
        for node in 0..nodes {
            let mut list: Vec<u64> = (0..random.below(8)).map(|_| node / 2 + random.below(1000)).collect();
            for _ in 0..random.below(3) {
                let from = node.saturating_sub(1 + random.below(40));
                if from < node {
                    let from = lists.list(usize::try_from(from).unwrap());
                    list.extend(from.iter().filter(|_| random.below(6) > 0));
                }
            }
            list.sort_unstable();
            list.dedup();
            list.truncate(60);
            lists.push(&list);
        }
        lists
    }

    #[test]
    fn few_neighbours_are_nearly_as_good_as_all() {
        let lists = lists(4000);
        for profile in [Profile::ARCHIVE, Profile::SPEED] {
            let size = |kept| encode_lists_with(&lists, profile, Effort { kept, ..Effort::TIMED }).len();
            let all = size(2 * super::super::WINDOW_MAX);
            assert!(size(Effort::TIMELESS.kept) * 1000 <= all * 1005, "{} of {all}", size(Effort::TIMELESS.kept));
            assert!(size(Effort::TIMED.kept) * 100 <= all * 101, "{} of {all}", size(Effort::TIMED.kept));
        }
    }

    #[test]
    fn what_is_not_held_is_streamed() {
        let lists = lists(10_000);
        let held = encode_lists(&lists, Profile::ARCHIVE);
        let effort = Effort { held_max: 10_000, sample: 2 * SAMPLE_PIECE, ..Effort::TIMELESS };
        let sampled = encode_lists_with(&lists, Profile::ARCHIVE, Effort { held_max: usize::MAX, ..effort });
        let streamed = encode_lists_with(&lists, Profile::ARCHIVE, effort);
        for bytes in [sampled, streamed] {
            // The codes come from a fifth of the lists, and are open to any symbol.
            assert!(bytes.len() * 100 <= held.len() * 110, "{} for {}", bytes.len(), held.len());
            let strata = Strata::open(bytes.into()).unwrap();
            let (mut scratch, mut found) = (StoreScratch::default(), Vec::new());
            for node in 0..lists.nodes() {
                strata.list(node, &mut scratch, &mut found).unwrap();
                assert_eq!(found, lists.list(node));
            }
        }
    }
}
