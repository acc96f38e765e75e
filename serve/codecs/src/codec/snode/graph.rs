//! Writes a small graph: links from the pages of a supernode to pages of the same or of another supernode, in reference
//! encoding (Raghavan & Garcia-Molina, *Representing Web Graphs*, section 3.1, after Adler & Mitzenmacher).
//!
//! A *source* is a page with links in this graph. Any source may be the reference of another source. A lightest
//! spanning tree of the affinity graph chooses the references. The weight of an edge is the number of bits of a list
//! given another list, or, from the root, given none. The paper leaves two points open. Here, only [`NEAR`] sources to
//! both sides are weighed. Chains of references, which would be as long as the graph if its lists are alike, are cut
//! after [`STEPS_MAX`] steps.
//!
//! Bits: the number of sources. Unless this is 0 or all pages, a bit, and then a bit a page (1) or the gaps between
//! sources (0). For more than 16 sources, 6 bits for a width and, in that width, the start of each group of 16 records
//! but the first. Then the records; before each group of 16 are their lengths, without the length of the very last
//! record. A record has the reference, as the signed distance to it among the sources, or 0. If there is a reference, a
//! bit follows, and then which of its links are shared, as a bit each (0) or as runs (1): the number of runs, and the
//! lengths of shared and other links in turn, without the last. Then come the number of other links, and these links as
//! local places: the first (in an intranode graph less the place of its source among the sources), then gaps less 1.

use std::borrow::Cow;

use super::arborescence::lightest;
use crate::codec::escaped::{Counts, Escaped, EscapedDecoder};
use crate::codec::nybble::fold;
use webstrata_cells::Damage;
use webstrata_cells::coding::bits::{BitReader, BitWriter};

pub(super) const PART: &str = "a graph of an S-Node";
/// The number of sources to both sides that are weighed as references.
const NEAR: usize = 24;
/// The longest chain of references.
const STEPS_MAX: usize = 12;
/// The number of records that share a stored start.
pub(super) const GROUP: usize = 16;
pub(super) const WIDTH_BITS: u32 = 6;
/// The number of symbols and the longest code of each [`Kind`] of number.
const SYMBOLS: [usize; KINDS] = [256, 256, 256, 256, 256, 256, 1024, 1024];
const BITS_MAX: [u32; KINDS] = [10, 10, 10, 10, 10, 10, 11, 11];
const KINDS: usize = 8;

/// The kinds of numbers that are written. Each kind has a separate code.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Sources,
    Length,
    Reference,
    RunCount,
    Run,
    LinkCount,
    First,
    Gap,
}

/// A code, or its counts, for each kind.
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

    /// Codes for intranode and superedge graphs before any counts are known.
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

    /// Fits the code of lengths once the lengths are known.
    pub(super) fn fit_lengths(&mut self, counts: &Codes<Counts>) {
        let kind = Kind::Length as usize;
        self.0[kind] = counts.0[kind].fit(BITS_MAX[kind]);
    }

    fn cost(&self, kind: Kind, value: u64) -> u64 {
        u64::from(self.of(kind).bits(value))
    }

    /// Whether runs take no more bits than a bit for each of `links` links.
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

    pub(super) fn read(&self, kind: Kind, bits: &mut BitReader<'_>) -> u64 {
        self.of(kind).read(bits)
    }

    /// Reads a number that must not exceed `bound`.
    pub(super) fn read_within(&self, kind: Kind, bound: usize, bits: &mut BitReader<'_>) -> Result<usize, Damage> {
        let value = self.read(kind, bits);
        let outside = Damage::Outside { part: PART, value, bound: bound as u64 };
        usize::try_from(value).ok().filter(|&value| value <= bound).ok_or(outside)
    }
}

/// A receiver of numbers: a writer, counts, or a sum of bits.
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

/// A graph after its references were chosen.
#[derive(Debug)]
pub(super) struct Planned {
    rows: Rows,
    /// Whether the links stay in the supernode.
    inner: bool,
    /// The number of pages of the supernode.
    pages: usize,
    /// For each source, the place of its reference among the sources, and whether the shared links are written as runs.
    references: Vec<Option<(usize, bool)>>,
    /// Whether the sources are written as gaps.
    as_gaps: bool,
    /// The steps of the longest chain.
    pub(super) depth: usize,
}

/// The runs of links of `old` that are shared with `new` and not shared, and the other links of `new`.
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

/// The parts of a list that are written.
struct Record<'a> {
    /// The place of the source.
    at: usize,
    reference: Option<CommonRuns<'a>>,
    /// The links that are not shared.
    rest: Cow<'a, [usize]>,
}

/// The links that a list shares with its reference.
struct CommonRuns<'a> {
    /// The signed distance to the reference.
    distance: i64,
    old: &'a [usize],
    runs: Vec<u64>,
    as_runs: bool,
}

impl<'a> Record<'a> {
    fn alone(at: usize, list: &'a [usize]) -> Self {
        Self { at, reference: None, rest: Cow::Borrowed(list) }
    }

    /// A record with a reference. `as_runs` decides from the runs whether shared links are written as runs.
    fn shared(at: usize, list: &[usize], other: usize, old: &'a [usize], as_runs: impl Fn(&[u64]) -> bool) -> Self {
        let (runs, rest) = differ(old, list);
        let as_runs = as_runs(&runs);
        let shared = CommonRuns { distance: other as i64 - at as i64, old, runs, as_runs };
        Self { at, reference: Some(shared), rest: Cow::Owned(rest) }
    }

    fn give(&self, inner: bool, sink: &mut impl Sink) {
        sink.number(Kind::Reference, self.reference.as_ref().map_or(0, |shared| fold(shared.distance)));
        if let Some(CommonRuns { old, runs, as_runs, .. }) = &self.reference {
            sink.bits(u64::from(*as_runs), 1);
            if *as_runs {
                sink.number(Kind::RunCount, runs.len() as u64);
                runs.iter().for_each(|&run| sink.number(Kind::Run, run));
            } else {
                // `runs` does not have the last run.
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
    /// Chooses the references by their cost in `codes`, for a supernode of `pages` pages.
    pub(super) fn new(rows: Rows, inner: bool, pages: usize, codes: &Codes<Escaped>) -> Self {
        let (mut edges, mut as_runs) = (Vec::new(), Vec::new());
        for (at, (_, list)) in rows.iter().enumerate() {
            let alone = Record::alone(at, list).cost(inner, codes);
            edges.push((0, at + 1, alone));
            as_runs.push(false);
            for other in (at.saturating_sub(NEAR)..rows.len().min(at + NEAR + 1)).filter(|&other| other != at) {
                let old = &rows[other].1;
                let record = Record::shared(at, list, other, old, |runs| codes.prefer(runs, old.len()));
                // A reference without shared links never pays.
                let cost = if record.rest.len() < list.len() { record.cost(inner, codes) } else { alone };
                if let Some(shared) = record.reference.filter(|_| cost < alone) {
                    edges.push((other + 1, at + 1, cost));
                    as_runs.push(shared.as_runs);
                }
            }
        }
        let tree = lightest(rows.len() + 1, 0, &edges);
        let reference = |edge: usize| edges[edge].0.checked_sub(1).map(|other| (other, as_runs[edge]));
        let mut references: Vec<_> = tree.into_iter().skip(1).map(|edge| edge.and_then(reference)).collect();
        let depth = cut(&mut references);
        let gaps: u64 = gaps(&rows).map(|gap| codes.cost(Kind::Sources, gap)).sum();
        Self { rows, inner, pages, references, depth, as_gaps: gaps <= pages as u64 }
    }

    /// Chooses the references again, with other codes.
    pub(super) fn again(self, codes: &Codes<Escaped>) -> Self {
        Self::new(self.rows, self.inner, self.pages, codes)
    }

    fn record(&self, at: usize) -> Record<'_> {
        match self.references[at] {
            None => Record::alone(at, &self.rows[at].1),
            Some((other, as_runs)) => Record::shared(at, &self.rows[at].1, other, &self.rows[other].1, |_| as_runs),
        }
    }

    /// Writes the sources to a sink.
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

    /// Counts everything that will be written, except lengths.
    pub(super) fn count(&self, counts: &mut Codes<Counts>) {
        self.sources(&mut ToCounts(counts));
        (0..self.rows.len()).for_each(|at| self.record(at).give(self.inner, &mut ToCounts(counts)));
    }

    /// Counts the lengths of records in the codes that will write the records.
    pub(super) fn count_lengths(&self, codes: &Codes<Escaped>, counts: &mut Codes<Counts>) {
        let records = (1..self.rows.len()).map(|at| self.record(at - 1));
        records.for_each(|record| counts.add(Kind::Length, record.cost(self.inner, codes)));
    }

    /// Writes the graph.
    pub(super) fn write(&self, codes: &Codes<Escaped>, out: &mut BitWriter) {
        self.sources(&mut ToBits(codes, out));
        let (mut groups, mut starts) = (BitWriter::default(), Vec::new());
        let records: Vec<Record<'_>> = (0..self.rows.len()).map(|at| self.record(at)).collect();
        for (number, group) in records.chunks(GROUP).enumerate() {
            starts.push(groups.len());
            let lengths = group.len().min(records.len() - 1 - number * GROUP);
            for record in &group[..lengths] {
                codes.of(Kind::Length).write(record.cost(self.inner, codes), &mut groups);
            }
            group.iter().for_each(|record| record.give(self.inner, &mut ToBits(codes, &mut groups)));
        }
        if let Some(&last) = starts.get(1..).and_then(<[u64]>::last) {
            let width = 64 - last.leading_zeros();
            out.write(u64::from(width), WIDTH_BITS);
            starts[1..].iter().for_each(|&start| out.write_wide(start, width));
        }
        append(groups, out);
    }
}

/// Removes the references of lists whose chain would have more than [`STEPS_MAX`] steps. Returns the length of the
/// longest chain then.
fn cut(references: &mut [Option<(usize, bool)>]) -> usize {
    let mut depths: Vec<Option<usize>> = vec![None; references.len()];
    for start in 0..references.len() {
        let unknown = |at: &usize| depths[*at].is_none();
        let next = |at: &usize| references[*at].map(|(other, _)| other);
        let chain: Vec<usize> = std::iter::successors(Some(start), next).take_while(unknown).collect();
        for at in chain.into_iter().rev() {
            let depth = references[at].and_then(|(other, _)| depths[other]).map_or(0, |depth| depth + 1);
            if depth > STEPS_MAX {
                references[at] = None;
            }
            depths[at] = Some(if depth > STEPS_MAX { 0 } else { depth });
        }
    }
    depths.into_iter().flatten().max().unwrap_or(0)
}

/// The numbers of pages between sources.
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
