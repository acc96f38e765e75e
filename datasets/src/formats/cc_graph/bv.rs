//! The edges of a release as a BVGraph: `X.graph`, a stream of bits, and `X.properties`, which says how to read it.
//!
//! ```text
//! for each node: outdegree
//!     [reference]                      how many nodes back a list is copied from; 0: from none
//!     [blocks, length, length - 1 ..]  parts of that list, by turns copied and left out; no blocks: all of it
//!     [intervals, start, length ..]    runs of consecutive nodes
//!     [first residual, gap - 1 ..]     the other nodes
//! ```
//!
//! A start or a residual that comes first is the distance from the node, with its sign in the lowest bit. The ids of a
//! table of hosts are the numbers of the nodes. Lists are read in order, so no index (`.offsets`, `.ef`) is needed, and
//! the file may come from another machine. Every number is checked against the others before it is used, because a bit
//! that is wrong makes garbage of the rest: reading ends there.
//!
//! Memory: the lists of as many nodes as references go back, each at most eight bytes a host. Source: Boldi & Vigna,
//! The WebGraph Framework I (2004); the documentation of the class `BVGraph`.

use super::edges::Edge;
use crate::{Error, Finding, Tally};
use dsi_bitstream::prelude::{BE, BufBitReader, Codes, ToInt, WordAdapter};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The longest distance of a reference that is read; WebGraph's defaults are 7 and, for archives, 16.
const WINDOW_MAX: usize = 1 << 7;
/// The bytes of zeros after the end, with which the last code can be read in whole words.
const PADDING: u64 = 16;

/// What a file of properties says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Properties {
    nodes: u64,
    arcs: u64,
    window: usize,
    interval_min: u64,
    codes: ListCodes,
}

/// The code of each kind of number in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ListCodes {
    outdegrees: Codes,
    references: Codes,
    blocks: Codes,
    intervals: Codes,
    residuals: Codes,
}

/// Whether a file with this beginning has the properties of a BVGraph.
pub(crate) fn has_properties(text: &[u8]) -> bool {
    text.starts_with(b"#BVGraph properties")
}

impl Properties {
    /// Parses a file of properties.
    ///
    /// # Errors
    /// What is missing in it, or not read.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let lines = text.lines().filter(|line| !line.starts_with(['#', '!']));
        let pairs: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once('=')).collect();
        let value = |name: &str| pairs.iter().find(|(of, _)| of.trim() == name).map(|(_, value)| value.trim());
        let number = |name: &str, default: Option<u64>| match value(name) {
            Some(text) => text.parse().map_err(|_| format!("{name} is {text:?}, not a number")),
            None => default.ok_or_else(|| format!("{name} is missing")),
        };
        if let Some(order) = value("endianness").filter(|order| *order != "big") {
            return Err(format!("the order of bits is {order:?}; only \"big\" is read"));
        }
        let zeta = number("zetak", Some(3))?;
        let zeta = usize::try_from(zeta).ok().filter(|k| (1..=7).contains(k)).ok_or(format!("zetak is {zeta}"))?;
        let (gamma, residuals) = (Codes::Gamma, Codes::Zeta(zeta));
        let mut codes =
            ListCodes { outdegrees: gamma, references: Codes::Unary, blocks: gamma, intervals: gamma, residuals };
        for flag in value("compressionflags").into_iter().flat_map(|flags| flags.split('|')).map(str::trim) {
            let unknown = || format!("the compression flag {flag:?} is not read");
            let (kind, code) = if flag.is_empty() { continue } else { flag.split_once('_').ok_or_else(unknown)? };
            let code = code_of(code, zeta).ok_or_else(unknown)?;
            match kind {
                "OUTDEGREES" => codes.outdegrees = code,
                "REFERENCES" => codes.references = code,
                "BLOCKS" => codes.blocks = code,
                "INTERVALS" => codes.intervals = code,
                "RESIDUALS" => codes.residuals = code,
                // The index is not read.
                "OFFSETS" => {}
                _ => return Err(unknown()),
            }
        }
        let window = number("windowsize", Some(7))?;
        let window = usize::try_from(window).ok().filter(|&window| window <= WINDOW_MAX);
        let window = window.ok_or(format!("windowsize is more than {WINDOW_MAX}"))?;
        let interval_min = number("minintervallength", Some(4))?;
        Ok(Self { nodes: number("nodes", None)?, arcs: number("arcs", None)?, window, interval_min, codes })
    }
}

/// A code by its name in flags.
fn code_of(name: &str, zeta: usize) -> Option<Codes> {
    let k = |text: &str| text.parse().ok().filter(|k| (1..=7).contains(k));
    Some(match name {
        "UNARY" => Codes::Unary,
        "GAMMA" => Codes::Gamma,
        "DELTA" => Codes::Delta,
        "OMEGA" => Codes::Omega,
        "ZETA" => Codes::Zeta(zeta),
        _ => match (name.strip_prefix("ZETA"), name.strip_prefix("PI")) {
            (Some(text), _) => Codes::Zeta(k(text)?),
            (_, Some(text)) => Codes::Pi(k(text)?),
            _ => return None,
        },
    })
}

type Bits = BufBitReader<BE, WordAdapter<u32, Box<dyn Read + Send>>>;

/// The lists of a BVGraph, in the order of nodes.
pub(super) struct Lists {
    bits: Bits,
    properties: Properties,
    /// The lists read last: that of node `n` is at `n % (window + 1)`.
    lists: Vec<Vec<u64>>,
    /// The node of the next list.
    next: u64,
    /// The number of edges that were read.
    arcs: u64,
}

/// Why the rest of a graph cannot be read.
pub(super) enum Flaw {
    /// The file cannot be read.
    Io(io::Error),
    Damage(Finding, String),
}

impl From<io::Error> for Flaw {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                Flaw::Damage(Finding::Truncated, "the file ends before its last list".to_owned())
            }
            _ => Flaw::Io(error),
        }
    }
}

fn damage(detail: &str) -> Flaw {
    Flaw::Damage(Finding::BadRow, detail.to_owned())
}

impl Lists {
    pub(super) fn new(bytes: Box<dyn Read + Send>, properties: Properties) -> Self {
        let padded = bytes.chain(io::repeat(0).take(PADDING));
        let lists = vec![Vec::new(); properties.window + 1];
        Self { bits: BufBitReader::new(WordAdapter::new(Box::new(padded))), properties, lists, next: 0, arcs: 0 }
    }

    /// Reads the next list. Returns its node, and the nodes that it leads to, rising; `None` after the last list. No
    /// list is longer than the number of hosts, whatever the properties claim.
    ///
    /// # Errors
    /// The list is not sound. Nothing can be read after it.
    pub(super) fn next(&mut self, hosts: u64) -> Result<Option<(u64, &[u64])>, Flaw> {
        let node = self.next;
        let Properties { nodes, arcs, .. } = self.properties;
        if node == nodes {
            return match self.arcs == arcs {
                true => Ok(None),
                false => Err(damage(&format!("the lists have {} edges, and the properties say {arcs}", self.arcs))),
            };
        }
        let at = self.place(node);
        let mut list = std::mem::take(&mut self.lists[at]);
        list.clear();
        self.read(node, hosts, &mut list)?;
        if list.windows(2).any(|pair| pair[0] >= pair[1]) || list.last().is_some_and(|&last| last >= nodes) {
            return Err(damage(&format!(
                "the list of node {node} leads to a node twice, or to a node of another graph"
            )));
        }
        (self.next, self.arcs) = (node + 1, self.arcs.saturating_add(list.len() as u64));
        self.lists[at] = list;
        Ok(Some((node, &self.lists[at])))
    }

    /// The place of the list of a node.
    fn place(&self, node: u64) -> usize {
        // The remainder is below the length of the lists.
        usize::try_from(node % self.lists.len() as u64).unwrap_or(0)
    }

    fn read(&mut self, node: u64, hosts: u64, list: &mut Vec<u64>) -> Result<(), Flaw> {
        let wrong = || damage(&format!("the list of node {node} has numbers that do not fit together"));
        let Properties { nodes, window, interval_min, codes, .. } = self.properties.clone();
        let degree = codes.outdegrees.read(&mut self.bits)?;
        if degree > nodes.min(hosts) {
            return Err(wrong());
        }
        let left = |list: &Vec<u64>| degree.checked_sub(list.len() as u64).ok_or_else(wrong);
        if degree == 0 {
            return Ok(());
        }
        let back = if window > 0 { codes.references.read(&mut self.bits)? } else { 0 };
        if back > node.min(window as u64) {
            return Err(wrong());
        }
        if back > 0 {
            let from = self.place(node - back);
            self.copy(&codes.blocks, from, list)?.then_some(()).ok_or_else(wrong)?;
        }
        let first = |distance: i64| node.checked_add_signed(distance).ok_or_else(wrong);
        if left(list)? > 0 && interval_min > 0 {
            let mut end = None;
            for _ in 0..codes.intervals.read(&mut self.bits)? {
                let start = codes.intervals.read(&mut self.bits)?;
                let start = match end {
                    None => first(start.to_int())?,
                    Some(end) => start.checked_add(1).and_then(|gap| gap.checked_add(end)).ok_or_else(wrong)?,
                };
                let length = codes.intervals.read(&mut self.bits)?.checked_add(interval_min).ok_or_else(wrong)?;
                if length > left(list)? {
                    return Err(wrong());
                }
                let after = start.checked_add(length).ok_or_else(wrong)?;
                list.extend(start..after);
                end = Some(after);
            }
        }
        let mut last = None;
        for _ in 0..left(list)? {
            let gap = codes.residuals.read(&mut self.bits)?;
            let node = match last {
                None => first(gap.to_int())?,
                Some(last) => gap.checked_add(1).and_then(|gap| gap.checked_add(last)).ok_or_else(wrong)?,
            };
            list.push(node);
            last = Some(node);
        }
        list.sort_unstable();
        Ok(())
    }

    /// Copies parts of an earlier list. Returns `false` if the parts are not parts of that list.
    fn copy(&mut self, blocks: &Codes, from: usize, list: &mut Vec<u64>) -> io::Result<bool> {
        let mut rest = &self.lists[from][..];
        let count = blocks.read(&mut self.bits)?;
        for block in 0..count {
            let length = blocks.read(&mut self.bits)?;
            // Only the first part can be empty.
            let length = usize::try_from(length).ok().and_then(|length| length.checked_add(usize::from(block > 0)));
            let Some((part, after)) = length.and_then(|length| rest.split_at_checked(length)) else {
                return Ok(false);
            };
            if block % 2 == 0 {
                list.extend_from_slice(part);
            }
            rest = after;
        }
        // The part after the last is copied if the parts before it end with one that is left out.
        if count % 2 == 0 {
            list.extend_from_slice(rest);
        }
        Ok(true)
    }
}

/// A BVGraph as edges.
pub(super) struct BvFile {
    pub(super) path: PathBuf,
    /// The node of the edge that was read last.
    pub(super) node: u64,
    /// The lists, until their end or damage.
    lists: Option<Lists>,
    /// The rest of the list at hand, in falling order.
    rest: Vec<u64>,
    /// Damage that is not counted yet.
    flaw: Option<(Finding, String)>,
}

impl BvFile {
    /// `lists` may be what is wrong with the properties.
    pub(super) fn new(lists: Result<Lists, String>, path: &Path) -> Self {
        let (lists, flaw) = match lists {
            Ok(lists) => (Some(lists), None),
            Err(flaw) => (None, Some((Finding::BadHeader, flaw))),
        };
        Self { path: path.to_owned(), node: 0, lists, rest: Vec::new(), flaw }
    }

    /// The next edge.
    pub(super) fn edge(&mut self, hosts: u64, tally: &mut Tally) -> Result<Option<Edge>, Error> {
        loop {
            if let Some(to) = self.rest.pop() {
                return Ok(Some(Edge { from: self.node, to, has_count: false }));
            }
            if let Some((finding, detail)) = self.flaw.take() {
                tally.damage(finding, &self.path, self.node, detail);
            }
            let Some(lists) = &mut self.lists else { return Ok(None) };
            match lists.next(hosts) {
                Ok(Some((node, list))) => {
                    self.node = node;
                    self.rest.extend(list.iter().rev());
                }
                Ok(None) => self.lists = None,
                Err(flaw) => {
                    self.lists = None;
                    match flaw {
                        Flaw::Io(source) => return Err(Error::io(&self.path, source)),
                        Flaw::Damage(finding, detail) => self.flaw = Some((finding, detail)),
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dsi_bitstream::prelude::{BitWrite, BufBitWriter, GammaWrite, MemWordWriterVec, ZetaWrite};
    use std::io::Cursor;

    const TEXT: &str = "#BVGraph properties\nnodes=3\narcs=4\nzetak=3\nwindowsize=7\nminintervallength=4\n\
        compressionflags=\ngraphclass=it.unimi.dsi.webgraph.BVGraph\n";

    /// Three lists: 0 to 1 and 2; 1 to the second node of that list; 2 to 0.
    fn bytes() -> Vec<u8> {
        let mut bits = BufBitWriter::<BE, _>::new(MemWordWriterVec::new(Vec::<u32>::new()));
        let gamma = |bits: &mut BufBitWriter<BE, _>, numbers: &[u64]| {
            numbers.iter().for_each(|&n| _ = bits.write_gamma(n).unwrap());
        };
        gamma(&mut bits, &[2]);
        bits.write_unary(0).unwrap();
        gamma(&mut bits, &[0]);
        bits.write_zeta3(2).unwrap();
        bits.write_zeta3(0).unwrap();
        gamma(&mut bits, &[1]);
        bits.write_unary(1).unwrap();
        gamma(&mut bits, &[2, 0, 0]);
        gamma(&mut bits, &[1]);
        bits.write_unary(0).unwrap();
        gamma(&mut bits, &[0]);
        bits.write_zeta3(3).unwrap();
        bits.into_inner().unwrap().into_inner().into_iter().flat_map(u32::to_ne_bytes).collect()
    }

    /// The lists of a file, and how reading ended.
    fn read(bytes: &[u8], text: &str) -> (Vec<Vec<u64>>, Option<Finding>) {
        let mut lists = Lists::new(Box::new(Cursor::new(bytes.to_vec())), Properties::parse(text).unwrap());
        let mut all = Vec::new();
        loop {
            match lists.next(3) {
                Ok(Some((node, list))) => {
                    assert_eq!(node, all.len() as u64);
                    all.push(list.to_vec());
                }
                Ok(None) => return (all, None),
                Err(Flaw::Damage(finding, _)) => return (all, Some(finding)),
                Err(Flaw::Io(error)) => panic!("{error}"),
            }
        }
    }

    #[test]
    fn lists_are_read_until_damage() {
        let (bytes, all) = (bytes(), vec![vec![1, 2], vec![2], vec![0]]);
        assert_eq!(read(&bytes, TEXT), (all.clone(), None));
        assert_eq!(read(&[], TEXT), (vec![], Some(Finding::Truncated)));
        assert_eq!(read(&[], &TEXT.replace("nodes=3", "nodes=0").replace("arcs=4", "arcs=0")), (vec![], None));
        // Properties may claim any number of nodes. The first list of this graph has 2^40 - 1 links.
        let mut bits = BufBitWriter::<BE, _>::new(MemWordWriterVec::new(Vec::<u32>::new()));
        bits.write_gamma((1 << 40) - 1).unwrap();
        let huge: Vec<u8> = bits.into_inner().unwrap().into_inner().into_iter().flat_map(u32::to_ne_bytes).collect();
        assert_eq!(read(&huge, &TEXT.replace("nodes=3", "nodes=9999999999999")), (vec![], Some(Finding::BadRow)));
        for (from, to) in [("nodes=3", "nodes=2"), ("arcs=4", "arcs=5")] {
            assert_eq!(read(&bytes, &TEXT.replace(from, to)).1, Some(Finding::BadRow), "{to}");
        }
        for bit in 0..8 * bytes.len() {
            let mut wrong = bytes.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            let (lists, _) = read(&wrong, TEXT);
            assert!(lists.iter().flatten().all(|&node| node < 3), "{lists:?}");
        }
    }

    #[test]
    fn properties_have_codes() {
        let parsed = Properties::parse(TEXT).unwrap();
        assert_eq!((parsed.nodes, parsed.arcs, parsed.window, parsed.interval_min), (3, 4, 7, 4));
        assert_eq!(parsed.codes.residuals, Codes::Zeta(3));
        let flags = "compressionflags=OUTDEGREES_DELTA|RESIDUALS_PI2 | REFERENCES_ZETA\nzetak=5";
        let parsed = Properties::parse(&TEXT.replace("compressionflags=\n", &format!("{flags}\n"))).unwrap();
        assert_eq!((parsed.codes.outdegrees, parsed.codes.residuals), (Codes::Delta, Codes::Pi(2)));
        for (from, to, error) in [
            ("nodes=3", "nodes=x", "nodes is \"x\", not a number"),
            ("arcs=4\n", "", "arcs is missing"),
            ("zetak=3", "zetak=8", "zetak is 8"),
            ("windowsize=7", "windowsize=5000", "windowsize is more than 128"),
            ("compressionflags=", "compressionflags=TREES_GAMMA", "the compression flag \"TREES_GAMMA\" is not read"),
            ("zetak=3", "endianness=little", "the order of bits is \"little\"; only \"big\" is read"),
        ] {
            assert_eq!(Properties::parse(&TEXT.replace(from, to)), Err(error.to_owned()));
        }
    }
}
