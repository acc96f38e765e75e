//! S-Node: a graph of supernodes, and small graphs in and between them (Raghavan & Garcia-Molina, *Representing Web
//! Graphs*, ICDE 2003).
//!
//! A supernode is a set of pages with similar links (`partition`). Links inside a supernode are its *intranode*
//! graph. Links to another supernode are a *superedge* graph: positive, or negative, with the missing links, if these
//! are fewer. The list of a page is in the intranode graph and the superedge graphs of its supernode, which lie one
//! after the other. Each small graph is in reference encoding (`graph`). Supernodes are numbered by how many
//! superedges lead to them, so that the most frequent numbers are the lowest, and have a Huffman code.
//!
//! Bytes: a header of seven words (nodes; first UID; pages, including links that leave the cell; most pages of an
//! interval; longest chain of references; bytes of the codes; bytes of the domain index), the UIDs of links that leave
//! the cell (a word with the bytes of each, 4 or 8, then the UIDs), the codes (of small graphs; then a set for
//! intranode graphs and one for superedge graphs), the PageID index (`pages`), the domain index, and the graphs: for
//! each supernode the number of its superedges, the length of its intranode graph in bits and that graph, then for each
//! superedge the supernode, a bit that is 1 if the graph is negative, its length, and the graph. The domain index has
//! for each domain, in order, the length of its name in a word, the number of its supernodes in a word, the name, and
//! the supernodes, 4 bytes each. It is empty without keys.

mod arborescence;
mod graph;
mod pages;
mod partition;
mod read;

use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

use super::escaped::{Counts, Escaped, EscapedDecoder};
use graph::{Codes, Planned, Rows, append};
use pages::{Pages, Supernode};
use read::Graph;
use webstrata_cells::Damage;
use webstrata_cells::coding::bits::{BitReader, BitWriter};
use webstrata_cells::coding::sections::{Sections, no_such_node, push_wide, push_words, wide_at, width_of};
use webstrata_cells::links::codec::LinkCodec;
use webstrata_cells::links::lists::{Lists, Sizes};
use webstrata_cells::links::scratch::StoreScratch;

const PART: &str = "an S-Node";
const HEADER: u64 = 56;
/// The number of symbols for supernodes, and for numbers and lengths of graphs.
const SUPERNODE_SYMBOLS: usize = 4096;
const LENGTH_SYMBOLS: usize = 1024;
const BITS_MAX: u32 = 13;
/// The largest value of a size in a header.
const PAGES_MAX: u64 = 2048;

/// The options for dividing pages into supernodes.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The largest number of pages of a supernode, at most 2,048.
    pub pages_max: usize,
    /// The least number of pages of a supernode from a clustered split.
    pub pages_min: usize,
    /// Whether clustered splits are made.
    pub clustered: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { pages_max: 512, pages_min: 128, clustered: true }
    }
}

/// A superedge graph with the supernode it leads to, and whether it is negative. The first graph of a supernode is its
/// intranode graph.
struct Edge {
    target: usize,
    negative: bool,
    planned: Planned,
}

/// Encodes lists. `keys`, if given, are the URL keys of the nodes, in order.
///
/// Panics if `keys` is given without exactly one key a node, and if there are 2^32 pages.
pub fn encode(lists: &Lists, keys: Option<&[Vec<u8>]>, options: &Options) -> Vec<u8> {
    assert!(keys.is_none_or(|keys| keys.len() == lists.nodes()), "a key for each node");
    let pages_max = options.pages_max.clamp(1, 2048);
    // Neighbouring intervals are joined up to `pages_min` pages, which must not exceed the maximum of an interval.
    let options = Options { pages_max, pages_min: options.pages_min.clamp(1, pages_max), ..*options };
    let nodes = lists.nodes();
    // Pages are the nodes, then the UIDs outside the cell that the nodes link to.
    let inside = lists.first..lists.first + nodes as u64;
    let outside: BTreeSet<u64> = lists.links.iter().copied().filter(|link| !inside.contains(link)).collect();
    let outside: Vec<u64> = outside.into_iter().collect();
    assert!(u32::try_from(nodes + outside.len()).is_ok(), "fewer than 2^32 pages");
    let page = |link: &u64| {
        let page = if inside.contains(link) {
            usize::try_from(link - lists.first).unwrap_or(0)
        } else {
            nodes + outside.binary_search(link).unwrap_or(0)
        };
        u32::try_from(page).unwrap_or(u32::MAX)
    };
    let links: Vec<u32> = lists.links.iter().map(page).collect();
    let links_of = |page: usize| {
        let start = page.checked_sub(1).and_then(|before| lists.ends.get(before)).map_or(0, |&end| end);
        lists.ends.get(page).map_or(&[][..], |&end| &links[start..end])
    };
    let pages = nodes + outside.len();
    let intervals = partition::refine(pages, nodes, keys, &links_of, &options);
    let clusters: Vec<&[usize]> =
        intervals.iter().flat_map(|interval| interval.clusters.iter().map(Vec::as_slice)).collect();
    let (numbers, homes) = number(&clusters, pages, &links_of);
    let mut members: Vec<&[usize]> = vec![&[]; clusters.len()];
    clusters.iter().zip(&numbers).for_each(|(cluster, &number)| members[number] = cluster);

    let guess = Codes::guess();
    let plan = |supernode: usize| plan(supernode, &members, &homes, &links_of, &guess);
    let mut supernodes: Vec<Vec<Edge>> = (0..members.len()).map(plan).collect();
    // References are chosen again with codes that fit, and then written with codes that fit the new choice.
    let codes = fit(&supernodes);
    for edges in &mut supernodes {
        for (at, edge) in std::mem::take(edges).into_iter().enumerate() {
            let planned = edge.planned.again(&codes[usize::from(at > 0)]);
            edges.push(Edge { planned, ..edge });
        }
    }
    let depth = supernodes.iter().flatten().map(|edge| edge.planned.depth).max().unwrap_or(0);
    let (graphs, codes, starts) = write_graphs(&supernodes);

    let domains = keys.map_or_else(Vec::new, |keys| write_domains(keys, &homes));
    let mut out = Vec::new();
    push_words(&mut out, &[nodes as u64, lists.first, pages as u64, options.pages_max as u64, depth as u64]);
    push_words(&mut out, &[codes.len() as u64, domains.len() as u64]);
    let width = width_of(outside.last().copied().unwrap_or(0));
    push_words(&mut out, &[width as u64]);
    outside.iter().for_each(|&uid| push_wide(&mut out, uid, width));
    out.extend_from_slice(&codes);
    pages::write(&intervals, &numbers, &starts, &mut out);
    out.extend_from_slice(&domains);
    out.extend_from_slice(&graphs);
    out
}

/// The number of each cluster, by how many other clusters link to it; and for each page its supernode and its index
/// there.
fn number<'a>(
    clusters: &[&[usize]],
    pages: usize,
    links: &impl Fn(usize) -> &'a [u32],
) -> (Vec<usize>, Vec<(usize, usize)>) {
    let mut homes = vec![(0, 0); pages];
    for (cluster, members) in clusters.iter().enumerate() {
        members.iter().enumerate().for_each(|(local, &page)| homes[page] = (cluster, local));
    }
    let mut in_degrees = vec![0u64; clusters.len()];
    for (cluster, members) in clusters.iter().enumerate() {
        let targets: BTreeSet<usize> =
            members.iter().flat_map(|&page| links(page)).map(|&link| homes[link as usize].0).collect();
        targets.into_iter().filter(|&target| target != cluster).for_each(|target| in_degrees[target] += 1);
    }
    let mut order: Vec<usize> = (0..clusters.len()).collect();
    order.sort_by_key(|&cluster| (std::cmp::Reverse(in_degrees[cluster]), cluster));
    let mut numbers = vec![0; clusters.len()];
    order.iter().enumerate().for_each(|(number, &cluster)| numbers[cluster] = number);
    homes.iter_mut().for_each(|home| home.0 = numbers[home.0]);
    (numbers, homes)
}

/// The graphs of a supernode, the intranode graph first.
fn plan<'a>(
    supernode: usize,
    members: &[&[usize]],
    homes: &[(usize, usize)],
    links: &impl Fn(usize) -> &'a [u32],
    codes: &[Codes<Escaped>; 2],
) -> Vec<Edge> {
    let mut by_target: BTreeMap<usize, Rows> = BTreeMap::new();
    by_target.insert(supernode, Rows::new());
    for (source, &page) in members[supernode].iter().enumerate() {
        for &link in links(page) {
            let (target, local) = homes[link as usize];
            let rows = by_target.entry(target).or_default();
            match rows.last_mut().filter(|row| row.0 == source) {
                Some(row) => row.1.push(local),
                None => rows.push((source, vec![local])),
            }
        }
    }
    let inner = by_target.remove(&supernode).unwrap_or_default();
    let inner = Edge {
        target: supernode,
        negative: false,
        planned: Planned::new(inner, true, members[supernode].len(), &codes[0]),
    };
    let outer = by_target.into_iter().map(|(target, rows)| {
        let (sources, targets) = (members[supernode].len(), members[target].len());
        let edges: usize = rows.iter().map(|row| row.1.len()).sum();
        let negative = sources * targets - edges < edges;
        let rows = if negative { complement(&rows, sources, targets) } else { rows };
        Edge { target, negative, planned: Planned::new(rows, false, sources, &codes[1]) }
    });
    std::iter::once(inner).chain(outer).collect()
}

/// The links that are missing from `rows`.
fn complement(rows: &Rows, sources: usize, targets: usize) -> Rows {
    let mut rows = rows.iter().peekable();
    (0..sources)
        .map(|source| {
            let list = rows.next_if(|row| row.0 == source).map_or(&[][..], |row| &row.1);
            (source, (0..targets).filter(|target| list.binary_search(target).is_err()).collect::<Vec<_>>())
        })
        .filter(|(_, list)| !list.is_empty())
        .collect()
}

/// Codes for intranode and superedge graphs, without lengths.
fn fit(supernodes: &[Vec<Edge>]) -> [Codes<Escaped>; 2] {
    let mut counts = [Codes::new(), Codes::new()];
    for (at, edge) in supernodes.iter().flat_map(|edges| edges.iter().enumerate()) {
        edge.planned.count(&mut counts[usize::from(at > 0)]);
    }
    counts.map(|counts| counts.fit())
}

/// All graphs, the codes, and the place of each supernode in the graphs.
fn write_graphs(supernodes: &[Vec<Edge>]) -> (Vec<u8>, Vec<u8>, Vec<u64>) {
    let mut graph_codes = fit(supernodes);
    let mut counts = [Codes::new(), Codes::new()];
    for (at, edge) in supernodes.iter().flat_map(|edges| edges.iter().enumerate()) {
        let set = usize::from(at > 0);
        edge.planned.count_lengths(&graph_codes[set], &mut counts[set]);
    }
    graph_codes.iter_mut().zip(&counts).for_each(|(codes, counts)| codes.fit_lengths(counts));
    let (mut targets, mut lengths) = (Counts::new(SUPERNODE_SYMBOLS), Counts::new(LENGTH_SYMBOLS));
    let mut written: Vec<Vec<BitWriter>> = Vec::with_capacity(supernodes.len());
    for edges in supernodes {
        let write = |(at, edge): (usize, &Edge)| {
            let mut bits = BitWriter::default();
            edge.planned.write(&graph_codes[usize::from(at > 0)], &mut bits);
            bits
        };
        let bits: Vec<BitWriter> = edges.iter().enumerate().map(write).collect();
        lengths.add(edges.len() as u64 - 1);
        bits.iter().for_each(|bits| lengths.add(bits.len()));
        edges[1..].iter().for_each(|edge| targets.add(edge.target as u64));
        written.push(bits);
    }
    let (target_code, length_code) = (targets.fit(BITS_MAX), lengths.fit(BITS_MAX));
    let (mut codes, mut out, mut starts) = (BitWriter::default(), BitWriter::default(), Vec::new());
    target_code.store(&mut codes);
    length_code.store(&mut codes);
    graph_codes.iter().for_each(|set| set.store(&mut codes));
    for (edges, bits) in supernodes.iter().zip(written) {
        starts.push(out.len());
        length_code.write(edges.len() as u64 - 1, &mut out);
        for (at, (edge, bits)) in edges.iter().zip(bits).enumerate() {
            if at > 0 {
                target_code.write(edge.target as u64, &mut out);
                out.write(u64::from(edge.negative), 1);
            }
            length_code.write(bits.len(), &mut out);
            append(bits, &mut out);
        }
    }
    (out.into_bytes(), codes.into_bytes(), starts)
}

/// The domain index.
fn write_domains(keys: &[Vec<u8>], homes: &[(usize, usize)]) -> Vec<u8> {
    let mut domains: BTreeMap<&[u8], BTreeSet<usize>> = BTreeMap::new();
    for (key, home) in keys.iter().zip(homes) {
        domains.entry(partition::domain(key)).or_default().insert(home.0);
    }
    let mut out = Vec::new();
    for (domain, supernodes) in domains {
        push_words(&mut out, &[domain.len() as u64, supernodes.len() as u64]);
        out.extend_from_slice(domain);
        supernodes.into_iter().for_each(|supernode| push_wide(&mut out, supernode as u64, 4));
    }
    out
}

/// An S-Node, opened.
#[derive(Debug)]
pub struct Snode {
    nodes: usize,
    first: u64,
    depth_max: usize,
    outside: Bytes,
    outside_width: usize,
    codes_bytes: u64,
    targets: EscapedDecoder,
    lengths: EscapedDecoder,
    codes: [Codes<EscapedDecoder>; 2],
    pages: Pages,
    domains: Bytes,
    graphs: Bytes,
}

impl Snode {
    /// Opens the bytes that [`encode`] wrote.
    ///
    /// # Errors
    /// A header, codes or a PageID index that do not fit the bytes.
    pub fn open(bytes: Bytes) -> Result<Self, Damage> {
        let mut sections = Sections::new(bytes, PART);
        let (nodes, first, pages) = (sections.length()?, sections.word()?, sections.length()?);
        let mut small = || sections.word_within(PAGES_MAX).map(|value| usize::try_from(value).unwrap_or(usize::MAX));
        let (pages_max, depth_max) = (small()?, small()?);
        let (codes_bytes, domains_bytes) = (sections.length()?, sections.length()?);
        let outside_width = if sections.word_within(8)? == 4 { 4 } else { 8 };
        let count = pages.checked_sub(nodes).ok_or_else(|| no_such_node(nodes, pages))?;
        let outside = sections.take(count, outside_width)?;
        let stored = sections.take(codes_bytes, 1)?;
        let mut bits = BitReader::new(&stored, 0);
        let targets = EscapedDecoder::load(&mut bits, SUPERNODE_SYMBOLS, BITS_MAX)?;
        let lengths = EscapedDecoder::load(&mut bits, LENGTH_SYMBOLS, BITS_MAX)?;
        let codes = [Codes::load(&mut bits)?, Codes::load(&mut bits)?];
        let index = Pages::take(&mut sections, pages, pages_max)?;
        let domains = sections.take(domains_bytes, 1)?;
        let (codes_bytes, graphs) = (codes_bytes as u64, sections.rest());
        let graph = Self {
            nodes,
            first,
            depth_max,
            outside,
            outside_width,
            codes_bytes,
            targets,
            lengths,
            codes,
            pages: index,
            domains,
            graphs,
        };
        Ok(graph)
    }

    /// The supernodes with pages of a domain. A domain is the first two labels of a URL key (`com,example,`).
    ///
    /// # Errors
    /// Damaged bytes.
    pub fn domain(&self, domain: &[u8]) -> Result<Vec<usize>, Damage> {
        let mut sections = Sections::new(self.domains.clone(), "the domain index of an S-Node");
        while !sections.is_empty() {
            let (length, count) = (sections.length()?, sections.length()?);
            let (name, supernodes) = (sections.take(length, 1)?, sections.take(count, 4)?);
            if name == domain {
                let number = |at| wide_at(&supernodes, at, 4).and_then(|number| usize::try_from(number).ok());
                return Ok((0..count).filter_map(number).collect());
            }
        }
        Ok(Vec::new())
    }

    /// The nodes of a supernode.
    ///
    /// # Errors
    /// A supernode that does not exist, and damaged bytes.
    pub fn nodes_of(&self, supernode: usize) -> Result<Vec<usize>, Damage> {
        let supernode = self.pages.supernode(supernode)?;
        Ok((0..supernode.count)
            .map(|local| self.pages.page(&supernode, local))
            .filter(|&page| page < self.nodes)
            .collect())
    }

    /// The number of supernodes.
    pub fn supernodes(&self) -> usize {
        self.pages.supernodes()
    }

    fn uid(&self, page: usize) -> Result<u64, Damage> {
        let outside = page.checked_sub(self.nodes);
        let uid = outside
            .map_or(Some(self.first.wrapping_add(page as u64)), |at| wide_at(&self.outside, at, self.outside_width));
        uid.ok_or_else(|| no_such_node(page, self.nodes + self.outside.len() / self.outside_width))
    }

    /// Calls `visit` with each graph of a supernode: the start of its bits, the graph, its target, and whether it is
    /// negative.
    fn graphs_of<'a>(
        &'a self,
        number: usize,
        supernode: &Supernode,
        mut visit: impl FnMut(BitReader<'a>, &Graph<'a>, usize, bool) -> Result<(), Damage>,
    ) -> Result<(), Damage> {
        let mut bits = BitReader::new(&self.graphs, supernode.graphs);
        let edges = self.lengths.read(&mut bits);
        for edge in 0..=edges {
            if bits.overran() {
                return Err(Damage::Ends { part: PART });
            }
            let inner = edge == 0;
            let (target, negative) =
                if inner { (number as u64, false) } else { (self.targets.read(&mut bits), bits.read(1) == 1) };
            let length = self.lengths.read(&mut bits);
            let codes = &self.codes[usize::from(!inner)];
            let graph = Graph { data: &self.graphs, codes, pages: supernode.count, inner, depth_max: self.depth_max };
            visit(bits, &graph, usize::try_from(target).unwrap_or(usize::MAX), negative)?;
            bits = BitReader::new(&self.graphs, bits.position().saturating_add(length));
        }
        Ok(())
    }

    /// Appends the links of a graph, or, if it is negative, all links to its target except these.
    fn push(&self, to: &Supernode, negative: bool, local: &[usize], links: &mut Vec<u64>) -> Result<(), Damage> {
        let mut push = |local| self.uid(self.pages.page(to, local)).map(|uid| links.push(uid));
        if !negative {
            return local.iter().try_for_each(|&local| push(local));
        }
        let mut missing = local.iter().peekable();
        (0..to.count).filter(|local| missing.next_if(|&&missing| missing == *local).is_none()).try_for_each(push)
    }
}

impl LinkCodec for Snode {
    fn nodes(&self) -> usize {
        self.nodes
    }

    fn list(&self, node: usize, _: &mut StoreScratch, links: &mut Vec<u64>) -> Result<(), Damage> {
        if node >= self.nodes {
            return Err(no_such_node(node, self.nodes));
        }
        links.clear();
        let (number, supernode, page) = self.pages.find(node)?;
        let mut local = Vec::new();
        self.graphs_of(number, &supernode, |bits, graph, target, negative| {
            local.clear();
            let source = graph.source(bits, page)?;
            if source.is_none() && !negative {
                return Ok(());
            }
            let to = self.pages.supernode(target)?;
            if let Some((source, records)) = source {
                graph.list(&records, source, to.count, &mut Vec::new(), &mut local)?;
            }
            self.push(&to, negative, &local, links)
        })?;
        // The order of supernodes is not the order of UIDs.
        links.sort_unstable();
        Ok(())
    }

    /// Decodes the lists of an interval of pages together, and each small graph once.
    fn scan(&self, visit: &mut dyn FnMut(usize, &[u64])) -> Result<(), Damage> {
        let (mut local, mut from) = (Vec::new(), 0);
        while from < self.nodes {
            let (to, supernodes) = self.pages.interval_of(from)?;
            let to = to.min(self.nodes).max(from + 1);
            let mut lists = vec![Vec::new(); to - from];
            for number in supernodes {
                let supernode = self.pages.supernode(number)?;
                self.graphs_of(number, &supernode, |bits, graph, target, negative| {
                    let target = self.pages.supernode(target)?;
                    let (sources, records) = graph.sources(bits)?;
                    let mut kept = vec![None; sources.len()];
                    let mut sources = sources.into_iter().enumerate().peekable();
                    for page in 0..supernode.count {
                        let source = sources.next_if(|source| source.1 == page);
                        local.clear();
                        if let Some((at, _)) = source {
                            graph.list(&records, at, target.count, &mut kept, &mut local)?;
                        }
                        let list = self.pages.page(&supernode, page).checked_sub(from);
                        let list = list.and_then(|list| lists.get_mut(list)).filter(|_| source.is_some() || negative);
                        if let Some(list) = list {
                            self.push(&target, negative, &local, list)?;
                        }
                    }
                    Ok(())
                })?;
            }
            for (node, mut list) in (from..to).zip(lists) {
                list.sort_unstable();
                visit(node, &list);
            }
            from = to;
        }
        Ok(())
    }

    fn sizes(&self) -> Sizes {
        let tables = HEADER + 8 + self.codes_bytes + (self.outside.len() + self.domains.len()) as u64;
        Sizes { data: self.graphs.len() as u64, index: self.pages.len() as u64, tables }
    }
}
