//! The BV format, written and read by the `webgraph` crate (Boldi & Vigna, *The WebGraph Framework I*, WWW 2004).
//!
//! A list copies parts of one of the `window` lists before it (in chains of at most `chain_max` steps), then has
//! intervals and residual gaps. Outdegrees, blocks and intervals are in γ, distances unary, residuals in ζ3. Node
//! numbers in the bits are UIDs, so that differences stay small wherever the cell begins. [`super::bv_files`] reads and
//! writes the crate's files.
//!
//! Bytes: the XXH3 of all that follows, then seven words (nodes, first UID, links, window, `chain_max`, bytes of the
//! graph, bytes of the offsets), the graph as in a `.graph` file, and the offsets of its lists as in an `.offsets`
//! file. Opening copies the graph into aligned words, and the offsets into an Elias-Fano list (`.ef`), which the sizes
//! count as the index. The crate trusts its bits, so bytes with a wrong checksum are not read.

use bytes::Bytes;
use dsi_bitstream::prelude::{BE, BitSeek, BufBitReader, BufBitWriter, GammaRead, MemWordReader, WordAdapter};
use sux::dict::EliasFanoBuilder;
use sux::traits::IndexedSeq;
use webgraph::prelude::{
    BvComp, BvCompZ, BvGraph, CompFlags, ConstCodesDecoder, ConstCodesEncoder, EF, MemBufReader, OffsetsWriter,
    RandomAccessDecoderFactory, RandomAccessGraph, RandomAccessLabeling, SequentialLabeling, ef_from_builder,
};
use xxhash_rust::xxh3::xxh3_64;

use webstrata_cells::coding::sections::{Sections, no_such_node, push_words};
use webstrata_cells::links::codec::LinkCodec;
use webstrata_cells::links::lists::{Lists, Sizes};
use webstrata_cells::links::scratch::StoreScratch;
use webstrata_cells::{Damage, EncodeError};

const CODEC: &str = "BV";
const HEADER: u64 = 64;
/// UIDs must be below this bound, because the crate takes differences as signed numbers.
pub(super) const UID_END: u64 = 1 << 62;
/// The shortest interval, as in the crate and in WebGraph.
const INTERVAL_MIN: usize = 4;
/// The number of lists that the second compressor weighs together.
const CHUNK: usize = 10_000;

/// The options for encoding lists.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The number of lists before a list that it may copy from.
    pub window: usize,
    /// The largest number of steps from a list to a list that copies from none.
    pub chain_max: usize,
    /// Whether choices of copies are weighed in whole chunks, as in Zuckerli.
    pub zuckerli: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { window: 7, chain_max: 3, zuckerli: false }
    }
}

pub(super) type BoxedError = Box<dyn std::error::Error + Send + Sync>;

fn failed(source: BoxedError) -> EncodeError {
    EncodeError::Library { codec: CODEC, source }
}

/// Encodes lists.
///
/// # Errors
/// UIDs from 2^62 on.
pub fn encode(lists: &Lists, options: &Options) -> Result<Vec<u8>, EncodeError> {
    let last = lists.first.saturating_add(lists.nodes() as u64);
    if let Some(uid) = lists.links.iter().copied().chain([last]).find(|&uid| uid >= UID_END) {
        return Err(EncodeError::Wide { codec: CODEC, link: uid, bound: UID_END });
    }
    let (mut graph, mut offsets) = (Vec::new(), Vec::new());
    compress(lists, options, &mut graph, &mut offsets).map_err(failed)?;
    let mut out = Vec::with_capacity(graph.len() + offsets.len() + 64);
    let (window, chain_max) = (options.window as u64, options.chain_max as u64);
    push_words(&mut out, &[0, lists.nodes() as u64, lists.first, lists.links.len() as u64, window, chain_max]);
    push_words(&mut out, &[graph.len() as u64, offsets.len() as u64]);
    out.append(&mut graph);
    out.append(&mut offsets);
    let sum = xxh3_64(&out[8..]);
    out[..8].copy_from_slice(&sum.to_le_bytes());
    Ok(out)
}

/// Writes the bits of `.graph` and `.offsets` files. Returns the text of the `.properties` file.
pub(super) fn compress(
    lists: &Lists,
    options: &Options,
    graph: &mut Vec<u8>,
    offsets: &mut Vec<u8>,
) -> Result<String, BoxedError> {
    let bits = BufBitWriter::<BE, _>::new(WordAdapter::<u64, _>::new(graph));
    let encoder = ConstCodesEncoder::<BE, _>::new(bits);
    let offsets = OffsetsWriter::from_write(offsets, true)?;
    let (window, chain_max, first) = (options.window, options.chain_max, usize::try_from(lists.first)?);
    // UIDs are below 2^62; [`encode`] rejects others before.
    let number = |&link: &u64| (usize::try_from(link).unwrap_or(usize::MAX), ());
    let mut successors = (0..lists.nodes()).map(|node| lists.list(node).iter().map(number));
    let stats = if options.zuckerli {
        let mut writer = BvCompZ::new(encoder, offsets, window, CHUNK, chain_max, INTERVAL_MIN, first, ());
        successors.try_for_each(|list| writer.push(list))?;
        writer.flush()?
    } else {
        let mut writer = BvComp::new(encoder, offsets, window, chain_max, INTERVAL_MIN, first, ());
        successors.try_for_each(|list| writer.push(list))?;
        writer.flush()?
    };
    Ok(flags(window, chain_max).to_properties::<BE>(&stats)?)
}

fn flags(window: usize, chain_max: usize) -> CompFlags {
    CompFlags { compression_window: window, max_ref_count: chain_max, ..CompFlags::default() }
}

/// The bits of a graph, and the place of each list in the bits.
#[derive(Debug)]
struct Source {
    first: usize,
    words: Box<[u32]>,
    starts: EF,
    flags: CompFlags,
}

impl RandomAccessDecoderFactory for Source {
    type Decoder<'a> = ConstCodesDecoder<BE, MemBufReader<'a, BE>>;

    fn new_decoder(&self, node: usize) -> anyhow::Result<Self::Decoder<'_>> {
        let mut bits = BufBitReader::<BE, _>::new(MemWordReader::new(&*self.words));
        bits.set_bit_pos(self.starts.get(node - self.first))?;
        ConstCodesDecoder::new(bits, &self.flags)
    }
}

/// A BV graph, ready to answer.
#[derive(Debug)]
pub struct Bv {
    nodes: usize,
    first: usize,
    graph: BvGraph<Source>,
    graph_bytes: u64,
    starts_bytes: u64,
}

impl Bv {
    /// Opens the bytes that [`encode`] wrote.
    ///
    /// # Errors
    /// Bytes with a wrong checksum, and a header that does not fit the bytes.
    pub fn open(bytes: Bytes) -> Result<Self, Damage> {
        let mut sections = Sections::new(bytes.clone(), CODEC);
        let (stored_sum, computed_sum) = (sections.word()?, xxh3_64(&bytes[8..]));
        if stored_sum != computed_sum {
            return Err(Damage::Outside { part: "sum of a BV graph", value: computed_sum, bound: stored_sum });
        }
        let (nodes, first, links) = (sections.length()?, sections.word_within(UID_END)?, sections.word()?);
        let (window, chain_max) = (sections.length()?, sections.length()?);
        let (graph_bytes, offsets_bytes) = (sections.length()?, sections.length()?);
        let (graph, offsets) = (sections.take(graph_bytes, 1)?, sections.take(offsets_bytes, 1)?);
        let outside = |value: u64, bound: u64| Damage::Outside { part: CODEC, value, bound };
        if nodes as u64 >= offsets_bytes as u64 * 8 {
            return Err(outside(nodes as u64, offsets_bytes as u64 * 8));
        }
        let starts = starts(&offsets, nodes, graph_bytes as u64 * 8)?;
        let flags = flags(window, chain_max);
        let first = usize::try_from(first).map_err(|_| outside(first, UID_END))?;
        let source = Source { first, words: words(&graph), starts, flags };
        Ok(Self {
            nodes,
            first,
            graph: BvGraph::new(source, first + nodes, links, window, INTERVAL_MIN),
            graph_bytes: graph_bytes as u64,
            starts_bytes: elias_fano_bytes(nodes as u64 + 1, graph_bytes as u64 * 8),
        })
    }
}

/// The bytes as the words that the crate reads from memory, padded with zeros.
fn words(bytes: &[u8]) -> Box<[u32]> {
    let (words, end) = bytes.as_chunks();
    let mut last = [0; 4];
    last[..end.len()].copy_from_slice(end);
    words.iter().chain([&last]).map(|word| u32::from_ne_bytes(*word)).collect()
}

/// The offsets in an `.offsets` file: of each list, and of the end.
fn starts(offsets: &[u8], nodes: usize, end: u64) -> Result<EF, Damage> {
    let damaged = |value: u64| Damage::Outside { part: "offsets of a BV graph", value, bound: end };
    let words = words(offsets);
    let mut bits = BufBitReader::<BE, _>::new(MemWordReader::new(&*words));
    let (mut builder, mut at) = (EliasFanoBuilder::new(nodes + 1, end), 0u64);
    for _ in 0..=nodes {
        at = at.saturating_add(bits.read_gamma().unwrap_or(u64::MAX));
        if at > end {
            return Err(damaged(at));
        }
        builder.push(at);
    }
    ef_from_builder(builder).map_err(|_| damaged(at))
}

/// The bytes of an Elias-Fano list of `count` numbers up to `end`: low bits, high bits, and nine words for each 2,048
/// numbers that help to find them.
fn elias_fano_bytes(count: u64, end: u64) -> u64 {
    let low = (end / count).checked_ilog2().unwrap_or(0);
    (count * u64::from(low) + count + (end >> low)).div_ceil(8) + count.div_ceil(2048) * 72
}

impl LinkCodec for Bv {
    fn nodes(&self) -> usize {
        self.nodes
    }

    fn list(&self, node: usize, _: &mut StoreScratch, links: &mut Vec<u64>) -> Result<(), Damage> {
        if node >= self.nodes {
            return Err(no_such_node(node, self.nodes));
        }
        links.clear();
        links.extend(self.graph.successors(self.first + node).map(|link| link as u64));
        Ok(())
    }

    fn degree(&self, node: usize) -> Result<usize, Damage> {
        if node >= self.nodes {
            return Err(no_such_node(node, self.nodes));
        }
        Ok(self.graph.outdegree(self.first + node))
    }

    fn scan(&self, visit: &mut dyn FnMut(usize, &[u64])) -> Result<(), Damage> {
        let (mut scratch, mut links) = (StoreScratch::default(), Vec::new());
        // The crate's iterator looks back over the window, and supports only 0 as first node.
        if self.first == 0 {
            let mut lists = self.graph.iter();
            for node in 0..self.nodes {
                let list = lists.next_successors().map_err(|_| Damage::Ends { part: CODEC })?;
                links.clear();
                links.extend(list.iter().map(|&link| link as u64));
                visit(node, &links);
            }
            return Ok(());
        }
        for node in 0..self.nodes {
            self.list(node, &mut scratch, &mut links)?;
            visit(node, &links);
        }
        Ok(())
    }

    fn sizes(&self) -> Sizes {
        Sizes { data: self.graph_bytes, index: self.starts_bytes, tables: HEADER }
    }
}
