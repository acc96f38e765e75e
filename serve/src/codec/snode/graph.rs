//! One small graph: links from the pages of a supernode to those of the same or another one, in reference encoding
//! (Raghavan & Garcia-Molina, *Representing Web Graphs*, section 3.1, after Adler & Mitzenmacher).
//!
//! A *source* is a page with links in this graph. Any source may be the reference of another; which are is a lightest
//! spanning tree of the affinity graph, whose edges weigh the bits of a list given another one, or given none from the root.
//! In graphs of more than [`NEAR`] sources only near ones are weighed.
//!
//! Bits: the number of sources; unless it is none or all pages, a bit and then a bit a page (1) or the gaps between them (0);
//! for more than 16 sources 6 bits for a width and, in that width, where each 16 records but the first begin; the records,
//! before each 16 their lengths, but not that of the last of all. A record: the reference, as the signed distance to it
//! among the sources, or 0; if there is one, a bit and then which of its links are shared, as a bit each (0) or as runs (1):
//! their number, and lengths of shared and other links in turn without the last; then the number of other links, and these
//! as local places: the first, in an intranode graph less the place of its source among the sources, and gaps less 1.

use std::borrow::Cow;

use super::arborescence::lightest;
use crate::bits::{BitReader, BitWriter};
use crate::codec::escaped::{Counts, Escaped, EscapedDecoder};
use crate::codec::nybble::{fold, unfold};
use crate::error::Damage;

const PART: &str = "a graph of an S-Node";
/// Sources to both sides that are weighed as references.
const NEAR: usize = 48;
/// Records that share a place.
const GROUP: usize = 16;
const WIDTH_BITS: u32 = 6;
/// Symbols and longest code of each [`Kind`] of number.
const SYMBOLS: [usize; KINDS] = [256, 256, 256, 256, 256, 256, 1024, 1024];
const BITS_MAX: [u32; KINDS] = [10, 10, 10, 10, 10, 10, 11, 11];
const KINDS: usize = 8;

/// What is written, each with a code of its own.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Sources,
    Length,
    Reference,
    RunCount,
    Run,
    LinkCount,
    First,
    Gap,
}

/// A code for each kind, or what it is made of.
#[derive(Clone, Debug)]
pub(super) struct Codes<T>([T; KINDS]);

impl<T> Codes<T> {
    fn of(&self, kind: Kind) -> &T {
        &self.0[kind as usize]
    }
}

impl Codes<Counts> {
    pub(super) fn new() -> Self {
        Self(SYMBOLS.map(Counts::new))
    }

    fn add(&mut self, kind: Kind, value: u64) {
        self.0[kind as usize].add(value);
    }

    /// Codes for intranode and superedge graphs before anything is known of them.
    pub(super) fn guess() -> [Codes<Escaped>; 2] {
        [(); 2].map(|()| Self(SYMBOLS.map(Counts::guess)).fit())
    }

    pub(super) fn fit(&self) -> Codes<Escaped> {
        Codes(std::array::from_fn(|kind| self.0[kind].fit(BITS_MAX[kind])))
    }
}

impl Codes<Escaped> {
    pub(super) fn store(&self, out: &mut BitWriter) {
        self.0.iter().for_each(|code| code.store(out));
    }

    /// Fits the code of lengths, once they are known.
    pub(super) fn fit_lengths(&mut self, counts: &Codes<Counts>) {
        let kind = Kind::Length as usize;
        self.0[kind] = counts.0[kind].fit(BITS_MAX[kind]);
    }

    fn cost(&self, kind: Kind, value: u64) -> u64 {
        u64::from(self.of(kind).bits(value))
    }

    /// Whether runs are shorter than a bit for each of `links` links.
    fn prefer(&self, runs: &[u64], links: usize) -> bool {
        let lengths = runs.iter().map(|&run| self.cost(Kind::Run, run)).sum::<u64>();
        self.cost(Kind::RunCount, runs.len() as u64) + lengths <= links as u64
    }
}

impl Codes<EscapedDecoder> {
    pub(super) fn load(stored: &mut BitReader<'_>) -> Result<Self, Damage> {
        let mut codes = Vec::with_capacity(KINDS);
        for kind in 0..KINDS {
            codes.push(EscapedDecoder::load(stored, SYMBOLS[kind], BITS_MAX[kind])?);
        }
        codes.try_into().map(Codes).map_err(|_| Damage::Ends { part: PART })
    }

    fn read(&self, kind: Kind, bits: &mut BitReader<'_>) -> u64 {
        self.of(kind).read(bits)
    }

    /// Takes a number that must not exceed `bound`.
    fn read_within(&self, kind: Kind, bound: usize, bits: &mut BitReader<'_>) -> Result<usize, Damage> {
        let value = self.read(kind, bits);
        let outside = Damage::Outside { part: PART, value, bound: bound as u64 };
        usize::try_from(value).ok().filter(|&value| value <= bound).ok_or(outside)
    }
}

/// Where numbers go: to a writer, to counts, or to a sum of bits.
trait Sink {
    fn number(&mut self, kind: Kind, value: u64);
    fn bits(&mut self, value: u64, count: u32);
}

struct ToCounts<'a>(&'a mut Codes<Counts>);

impl Sink for ToCounts<'_> {
    fn number(&mut self, kind: Kind, value: u64) {
        self.0.add(kind, value);
    }

    fn bits(&mut self, _: u64, _: u32) {}
}

struct ToCost<'a>(&'a Codes<Escaped>, u64);

impl Sink for ToCost<'_> {
    fn number(&mut self, kind: Kind, value: u64) {
        self.1 += self.0.cost(kind, value);
    }

    fn bits(&mut self, _: u64, count: u32) {
        self.1 += u64::from(count);
    }
}

struct ToBits<'a>(&'a Codes<Escaped>, &'a mut BitWriter);

impl Sink for ToBits<'_> {
    fn number(&mut self, kind: Kind, value: u64) {
        self.0.of(kind).write(value, self.1);
    }

    fn bits(&mut self, value: u64, count: u32) {
        self.1.write(value, count);
    }
}

/// Sources, rising, with their links as local places.
pub(super) type Rows = Vec<(usize, Vec<usize>)>;

/// A graph with its references chosen.
#[derive(Debug)]
pub(super) struct Planned {
    rows: Rows,
    /// Whether the links stay in the supernode.
    inner: bool,
    /// Pages of the supernode.
    pages: usize,
    /// For each source the place of its reference among the sources, and whether what they share is written as runs.
    references: Vec<Option<(usize, bool)>>,
    /// Whether the sources are written as gaps.
    as_gaps: bool,
    /// Steps of the longest chain.
    pub(super) depth: usize,
}

/// What of a list is shared with a reference, and what is not.
fn differ(old: &[usize], new: &[usize]) -> (Vec<u64>, Vec<usize>) {
    let (mut runs, mut others, mut shared, mut at) = (vec![0u64], Vec::new(), true, 0);
    let mut step = |is_shared: bool| {
        if is_shared != shared {
            runs.push(0);
            shared = is_shared;
        }
        if let Some(run) = runs.last_mut() {
            *run += 1;
        }
    };
    for &link in new {
        while at < old.len() && old[at] < link {
            step(false);
            at += 1;
        }
        if at < old.len() && old[at] == link {
            step(true);
            at += 1;
        } else {
            others.push(link);
        }
    }
    (at..old.len()).for_each(|_| step(false));
    runs.pop();
    (runs, others)
}

/// What is written of a list.
struct Record<'a> {
    /// Place of the source.
    at: usize,
    reference: Option<Shared<'a>>,
    /// Links that are not shared.
    rest: Cow<'a, [usize]>,
}

/// What a list shares with its reference.
struct Shared<'a> {
    /// Signed distance to the reference.
    distance: i64,
    old: &'a [usize],
    runs: Vec<u64>,
    as_runs: bool,
}

impl<'a> Record<'a> {
    fn alone(at: usize, list: &'a [usize]) -> Self {
        Self { at, reference: None, rest: Cow::Borrowed(list) }
    }

    /// With a reference; `as_runs` is asked how shared links are written, if that is not known.
    fn shared(at: usize, list: &[usize], other: usize, old: &'a [usize], as_runs: impl Fn(&[u64]) -> bool) -> Self {
        let (runs, rest) = differ(old, list);
        let as_runs = as_runs(&runs);
        let shared = Shared { distance: other as i64 - at as i64, old, runs, as_runs };
        Self { at, reference: Some(shared), rest: Cow::Owned(rest) }
    }

    fn give(&self, inner: bool, sink: &mut impl Sink) {
        sink.number(Kind::Reference, self.reference.as_ref().map_or(0, |shared| fold(shared.distance)));
        if let Some(Shared { old, runs, as_runs, .. }) = &self.reference {
            sink.bits(u64::from(*as_runs), 1);
            if *as_runs {
                sink.number(Kind::RunCount, runs.len() as u64);
                runs.iter().for_each(|&run| sink.number(Kind::Run, run));
            } else {
                // The last run is not among them.
                let written = runs.iter().sum::<u64>();
                let all = runs.iter().copied().chain([old.len() as u64 - written]);
                for (at, run) in all.enumerate() {
                    (0..run).for_each(|_| sink.bits(u64::from(at % 2 == 0), 1));
                }
            }
        }
        sink.number(Kind::LinkCount, self.rest.len() as u64);
        if let Some(&first) = self.rest.first() {
            let first = if inner { fold(first as i64 - self.at as i64) } else { first as u64 };
            sink.number(Kind::First, first);
            self.rest.windows(2).for_each(|pair| sink.number(Kind::Gap, (pair[1] - pair[0] - 1) as u64));
        }
    }

    fn cost(&self, inner: bool, codes: &Codes<Escaped>) -> u64 {
        let mut cost = ToCost(codes, 0);
        self.give(inner, &mut cost);
        cost.1
    }
}

impl Planned {
    /// Chooses the references by what they cost in `codes`, for a supernode of `pages` pages.
    pub(super) fn new(rows: Rows, inner: bool, pages: usize, codes: &Codes<Escaped>) -> Self {
        let mut edges = Vec::new();
        let mut runs_of = Vec::new();
        let mut push = |from: usize, to: usize, record: &Record<'_>| {
            edges.push((from, to, record.cost(inner, codes)));
            runs_of.push(record.reference.as_ref().is_some_and(|shared| shared.as_runs));
        };
        for (at, (_, list)) in rows.iter().enumerate() {
            push(0, at + 1, &Record::alone(at, list));
            for other in (at.saturating_sub(NEAR)..rows.len().min(at + NEAR + 1)).filter(|&other| other != at) {
                let old = &rows[other].1;
                // A reference that shares nothing only costs.
                if old.iter().any(|link| list.binary_search(link).is_ok()) {
                    push(
                        other + 1,
                        at + 1,
                        &Record::shared(at, list, other, old, |runs| codes.prefer(runs, old.len())),
                    );
                }
            }
        }
        let tree = lightest(rows.len() + 1, 0, &edges);
        let reference = |edge: usize| edges[edge].0.checked_sub(1).map(|other| (other, runs_of[edge]));
        let references: Vec<_> = tree.into_iter().skip(1).map(|edge| edge.and_then(reference)).collect();
        let next = |at: &usize| references[*at].map(|(other, _)| other);
        let depth = (0..rows.len()).map(|start| std::iter::successors(Some(start), next).count()).max().unwrap_or(0);
        let gaps: u64 = gaps(&rows).map(|gap| codes.cost(Kind::Sources, gap)).sum();
        Self { rows, inner, pages, references, depth, as_gaps: gaps <= pages as u64 }
    }

    /// Chooses again, with other codes.
    pub(super) fn again(self, codes: &Codes<Escaped>) -> Self {
        Self::new(self.rows, self.inner, self.pages, codes)
    }

    fn record(&self, at: usize) -> Record<'_> {
        match self.references[at] {
            None => Record::alone(at, &self.rows[at].1),
            Some((other, as_runs)) => Record::shared(at, &self.rows[at].1, other, &self.rows[other].1, |_| as_runs),
        }
    }

    /// Gives the sources to a sink.
    fn sources(&self, sink: &mut impl Sink) {
        sink.number(Kind::Sources, self.rows.len() as u64);
        if self.rows.is_empty() || self.rows.len() == self.pages {
            return;
        }
        sink.bits(u64::from(!self.as_gaps), 1);
        if self.as_gaps {
            gaps(&self.rows).for_each(|gap| sink.number(Kind::Sources, gap));
        } else {
            let mut sources = self.rows.iter().map(|(source, _)| *source).peekable();
            (0..self.pages).for_each(|page| sink.bits(u64::from(sources.next_if_eq(&page).is_some()), 1));
        }
    }

    /// Counts what will be written but for lengths.
    pub(super) fn count(&self, counts: &mut Codes<Counts>) {
        self.sources(&mut ToCounts(counts));
        (0..self.rows.len()).for_each(|at| self.record(at).give(self.inner, &mut ToCounts(counts)));
    }

    /// Counts lengths of records in the codes that will write them.
    pub(super) fn count_lengths(&self, codes: &Codes<Escaped>, counts: &mut Codes<Counts>) {
        let records = (1..self.rows.len()).map(|at| self.record(at - 1));
        records.for_each(|record| counts.add(Kind::Length, record.cost(self.inner, codes)));
    }

    /// Writes the graph.
    pub(super) fn write(&self, codes: &Codes<Escaped>, out: &mut BitWriter) {
        self.sources(&mut ToBits(codes, out));
        let (mut groups, mut places) = (BitWriter::default(), Vec::new());
        let records: Vec<Record<'_>> = (0..self.rows.len()).map(|at| self.record(at)).collect();
        for (number, group) in records.chunks(GROUP).enumerate() {
            places.push(groups.len());
            let lengths = group.len().min(records.len() - 1 - number * GROUP);
            for record in &group[..lengths] {
                codes.of(Kind::Length).write(record.cost(self.inner, codes), &mut groups);
            }
            group.iter().for_each(|record| record.give(self.inner, &mut ToBits(codes, &mut groups)));
        }
        if let Some(&last) = places.get(1..).and_then(<[u64]>::last) {
            let width = 64 - last.leading_zeros();
            out.write(u64::from(width), WIDTH_BITS);
            places[1..].iter().for_each(|&place| out.write_wide(place, width));
        }
        append(groups, out);
    }
}

/// How many pages are between sources.
fn gaps(rows: &Rows) -> impl Iterator<Item = u64> {
    let mut next = 0;
    rows.iter().map(move |&(source, _)| (source - std::mem::replace(&mut next, source + 1)) as u64)
}

/// Appends bits.
pub(super) fn append(bits: BitWriter, out: &mut BitWriter) {
    let count = bits.len();
    let bytes = bits.into_bytes();
    let mut reader = BitReader::new(&bytes, 0);
    while reader.position() < count {
        let step = u32::try_from((count - reader.position()).min(56)).unwrap_or(56);
        out.write(reader.read(step), step);
    }
}

/// A graph in bits.
#[derive(Debug)]
pub(super) struct Graph<'a> {
    /// What all graphs are in.
    pub(super) data: &'a [u8],
    pub(super) codes: &'a Codes<EscapedDecoder>,
    /// Pages of the supernode that links come from, and of that which they lead to.
    pub(super) pages: usize,
    pub(super) target_pages: usize,
    pub(super) inner: bool,
    pub(super) depth_max: usize,
}

/// Where the records of a graph are.
struct Records {
    count: usize,
    /// The width of a group's place.
    width: u32,
    /// Where the places begin, and behind them the records.
    places: u64,
    records: u64,
}

impl Graph<'_> {
    /// Links of a page, as local places; none where it is no source.
    pub(super) fn list(&self, mut bits: BitReader<'_>, page: usize, links: &mut Vec<usize>) -> Result<(), Damage> {
        links.clear();
        let count = self.codes.read_within(Kind::Sources, self.pages, &mut bits)?;
        let Some((source, mut bits)) = self.source(count, page, bits) else { return Ok(()) };
        let width = if count > GROUP { u32::try_from(bits.read(WIDTH_BITS)).unwrap_or(0) } else { 0 };
        let places = bits.position();
        let records = places + (count.div_ceil(GROUP) as u64 - 1) * u64::from(width);
        self.record(&Records { count, width, places, records }, source, 0, links)
    }

    /// The place of a page among the sources, and what follows them.
    fn source<'b>(&self, count: usize, page: usize, mut bits: BitReader<'b>) -> Option<(usize, BitReader<'b>)> {
        if count == self.pages {
            return Some((page, bits));
        }
        if count == 0 {
            return None;
        }
        if bits.read(1) == 1 {
            let mut before = 0;
            let (mut whole, own) = (bits, page);
            bits.skip(u32::try_from(self.pages).ok()?);
            for _ in 0..own / 32 {
                before += whole.read(32).count_ones() as usize;
            }
            let part = whole.peek() & ((2u64 << (own % 32)) - 1);
            let is_source = part >> (own % 32) & 1 == 1;
            return is_source.then(|| (before + part.count_ones() as usize - 1, bits)).filter(|(at, _)| *at < count);
        }
        let (mut found, mut next) = (None, 0usize);
        for at in 0..count {
            next = next.saturating_add(self.codes.read_within(Kind::Sources, self.pages, &mut bits).ok()?);
            if next == page {
                found = Some(at);
            } else if next > page && found.is_none() {
                return None;
            }
            next = next.saturating_add(1);
        }
        Some((found?, bits))
    }

    /// The bits of a record.
    fn find(&self, records: &Records, at: usize) -> BitReader<'_> {
        let group = at / GROUP;
        let place = match group.checked_sub(1) {
            None => 0,
            Some(before) => {
                let place = records.places + before as u64 * u64::from(records.width);
                BitReader::new(self.data, place).read_wide(records.width)
            }
        };
        let mut bits = BitReader::new(self.data, records.records.saturating_add(place));
        let start = group * GROUP;
        // All lengths of the group, but for that of the last record.
        let lengths = GROUP.min(records.count - 1 - start);
        let mut before = 0u64;
        for record in start..start + lengths {
            let length = self.codes.read(Kind::Length, &mut bits);
            before = before.saturating_add(if record < at { length } else { 0 });
        }
        BitReader::new(self.data, bits.position().saturating_add(before))
    }

    /// Makes the list of source `at`.
    fn record(&self, records: &Records, at: usize, depth: usize, links: &mut Vec<usize>) -> Result<(), Damage> {
        let outside = |value: u64, bound: usize| Damage::Outside { part: PART, value, bound: bound as u64 };
        let mut bits = self.find(records, at);
        let reference = self.codes.read(Kind::Reference, &mut bits);
        let mut kept = 0;
        if reference != 0 {
            let distance = unfold(reference);
            let other = i64::try_from(at).ok().and_then(|at| at.checked_add(distance));
            let other = other.and_then(|other| usize::try_from(other).ok()).filter(|&other| other < records.count);
            let other = other.ok_or_else(|| outside(reference, records.count))?;
            if depth >= self.depth_max {
                return Err(outside(depth as u64, self.depth_max));
            }
            self.record(records, other, depth + 1, links)?;
            kept = self.share(&mut bits, links)?;
        }
        links.truncate(kept);
        let count = self.codes.read_within(Kind::LinkCount, self.target_pages, &mut bits)?;
        let mut next = 0;
        for number in 0..count {
            let kind = if number == 0 { Kind::First } else { Kind::Gap };
            let value = self.codes.read(kind, &mut bits);
            let link = match number {
                0 if self.inner => i64::try_from(at).ok().and_then(|at| at.checked_add(unfold(value))),
                _ => i64::try_from(value).ok().and_then(|value| value.checked_add(next)),
            };
            let link = link.filter(|&link| link >= 0).ok_or_else(|| outside(value, self.target_pages))?;
            next = link + 1;
            let link = usize::try_from(link).ok().filter(|&link| link < self.target_pages);
            links.push(link.ok_or_else(|| outside(value, self.target_pages))?);
        }
        if kept > 0 && count > 0 {
            links.sort_unstable();
        }
        if links.len() > self.target_pages {
            return Err(outside(links.len() as u64, self.target_pages));
        }
        Ok(())
    }

    /// Leaves the shared links at the front; how many they are.
    fn share(&self, bits: &mut BitReader<'_>, links: &mut [usize]) -> Result<usize, Damage> {
        let mut kept = 0;
        if bits.read(1) == 0 {
            for at in 0..links.len() {
                links[kept] = links[at];
                kept += usize::from(bits.read(1) == 1);
            }
            return Ok(kept);
        }
        let runs = self.codes.read_within(Kind::RunCount, links.len() + 1, bits)?;
        let mut from = 0;
        for run in 0..=runs {
            let length = if run < runs {
                self.codes.read_within(Kind::Run, links.len() - from, bits)?
            } else {
                links.len() - from
            };
            if run.is_multiple_of(2) {
                links.copy_within(from..from + length, kept);
                kept += length;
            }
            from += length;
        }
        Ok(kept)
    }
}
