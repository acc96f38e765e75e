//! Compares encodings of links on the same graphs: size, speed, and equal answers.
//!
//! [`measure`] takes named lists from any source. Each encoding encodes the lists, and must give back every list, in
//! order and in random order, before it is measured. Times are CPU times of this thread: the median of three
//! measurements, each repeated until it takes long enough. Random means all nodes in an order drawn from a seed.
//! WebGraph's native rows use only its crate and its files; they and `bv` need the feature `webgraph`.
//! [`measure_store`] does the same with the links of a store, and counts the bytes of each encoding with time.

#[cfg(feature = "webgraph")]
mod native;
mod picture;
mod timed;

pub use picture::picture;
pub use timed::measure_store;

use std::path::Path;
use std::time::Duration;

use crate::codec::{self, CodecTag, snode};
use webstrata_cells::bench::Random;
use webstrata_cells::links::codec::LinkCodec;
use webstrata_cells::links::lists::Lists;
use webstrata_cells::links::scratch::StoreScratch;
use webstrata_cells::{Absent, Damage, EncodeError, Error};

/// The least duration of a measurement.
const LEAST: Duration = Duration::from_millis(150);
/// One encoding of one graph.
#[derive(Clone, Debug)]
pub struct Row {
    /// The encoding.
    pub codec: String,
    /// The bytes of links and of tables.
    pub data_bytes: u64,
    /// The bytes that lead to lists.
    pub index_bytes: u64,
    /// The bytes of the lists with their times, if times were encoded.
    pub timed_bytes: Option<u64>,
    /// The time to encode.
    pub build: Duration,
    /// Nanoseconds a link, for all nodes in order.
    pub sequential_ns: f64,
    /// Nanoseconds a link, for all nodes in random order.
    pub random_ns: f64,
}

/// All encodings of one graph.
#[derive(Clone, Debug)]
pub struct Table {
    /// The name of the graph.
    pub graph: String,
    /// The number of nodes.
    pub nodes: u64,
    /// The number of links.
    pub links: u64,
    /// The number of occurrences: links counted once a capture. `None` if the graph has no captures.
    pub occurrences: Option<u64>,
    /// The encodings. All give the same answers.
    pub rows: Vec<Row>,
}

impl Table {
    /// `bytes` as bits a link.
    pub fn bits_a_link(&self, bytes: u64) -> f64 {
        bytes as f64 * 8.0 / self.links.max(1) as f64
    }

    /// The bits an occurrence of a link that an encoding takes with time.
    pub fn bits_an_occurrence(&self, row: &Row) -> Option<f64> {
        Some(row.timed_bytes? as f64 * 8.0 / self.occurrences?.max(1) as f64)
    }
}

/// The next measurement.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// The graph, or the store and the direction.
    pub graph: &'a str,
    /// The encoding.
    pub codec: &'a str,
    /// Whether the lists are encoded with their times.
    pub with_time: bool,
    /// The number of the encoding among all, from 1.
    pub number: usize,
    /// The number of encodings.
    pub count: usize,
}

/// Receives each step before it begins.
pub type Tell<'a> = &'a dyn Fn(Step<'_>);

/// A measurement that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// An encoding cannot hold the graph.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// An encoding does not read what it wrote.
    #[error("{codec} does not read what it wrote")]
    Damage {
        /// The encoding.
        codec: String,
        /// The damage that the encoding reports.
        source: Damage,
    },
    /// An encoding returns a list that differs from its input.
    #[error("{codec} gives another list for node {node} than it was given")]
    Differs {
        /// The encoding.
        codec: String,
        /// The first node with another list.
        node: usize,
    },
    /// WebGraph's files cannot be written or read.
    #[cfg(feature = "webgraph")]
    #[error(transparent)]
    Files(#[from] codec::bv_files::FileError),
    /// This binary does not read WebGraph's files.
    #[error(transparent)]
    Absent(#[from] Absent),
    /// There is no directory for temporary files.
    #[error("no place for temporary files")]
    Temporary(#[from] std::io::Error),
    /// The layers of a store cannot be read, or their records cannot be encoded.
    #[error(transparent)]
    Store(#[from] Error),
    /// Links lead out of the graph, so there is no transpose.
    #[error("a link leads to {uid}, outside the graph")]
    Outside {
        /// The link.
        uid: u64,
    },
}

/// The CPU time of this thread.
fn on_processor() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = on_processor();
    let result = work();
    (result, on_processor() - start)
}

/// Nanoseconds a link of `work`, which reads all links: the median of three.
fn ns_a_link(links: usize, mut work: impl FnMut() -> u64) -> f64 {
    let mut measured = [0.0; 3].map(|_: f64| {
        let (mut times, mut spent) = (0, Duration::ZERO);
        while spent < LEAST {
            let (sum, time) = timed(&mut work);
            std::hint::black_box(sum);
            spent += time;
            times += 1;
        }
        spent.as_nanos() as f64 / (f64::from(times) * links.max(1) as f64)
    });
    measured.sort_by(f64::total_cmp);
    measured[1]
}

/// All nodes in an order drawn from a fixed seed.
fn random_order(nodes: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..nodes).collect();
    Random::new(1).shuffle(&mut order);
    order
}

/// A graph without time, from files of WebGraph.
///
/// # Errors
/// Files that cannot be read; [`Absent`] without the feature `webgraph`.
#[cfg_attr(not(feature = "webgraph"), expect(unused_variables, reason = "no such file can be read"))]
pub fn graph(basename: &Path) -> Result<Lists, BenchError> {
    #[cfg(feature = "webgraph")]
    let read = codec::bv_files::import(basename).map_err(BenchError::from);
    #[cfg(not(feature = "webgraph"))]
    let read = Err(codec::BV_ABSENT.into());
    read
}

/// The transpose of a graph: for each node, the nodes that link to it.
///
/// # Errors
/// Links that lead out of the graph.
pub fn transpose(lists: &Lists) -> Result<Lists, BenchError> {
    let nodes = lists.nodes();
    let node_of = |&uid: &u64| {
        let node = uid.checked_sub(lists.first).and_then(|node| usize::try_from(node).ok());
        node.filter(|&node| node < nodes).ok_or(BenchError::Outside { uid })
    };
    let mut ends = vec![0; nodes + 1];
    for link in &lists.links {
        ends[node_of(link)? + 1] += 1;
    }
    (0..nodes).for_each(|node| ends[node + 1] += ends[node]);
    let mut links = vec![0; lists.links.len()];
    for (node, uid) in (0..nodes).zip(lists.first..) {
        for link in lists.list(node) {
            // `ends` has the start of each node's list at first, and its end after all links are placed.
            let end = &mut ends[node_of(link)?];
            links[*end] = uid;
            *end += 1;
        }
    }
    ends.truncate(nodes);
    Ok(Lists { first: lists.first, ends, links })
}

/// Measures all encodings on one graph, which takes from seconds to many minutes. `keys`, if given, are the URL keys of
/// its nodes, in order.
///
/// # Errors
/// An encoding that fails or answers wrongly.
pub fn measure(graph: &str, lists: &Lists, keys: Option<&[Vec<u8>]>, tell: Tell<'_>) -> Result<Table, BenchError> {
    type Work<'a> = Box<dyn Fn() -> Result<Row, BenchError> + 'a>;
    let order = random_order(lists.nodes());
    let order = &order[..];
    let present = CodecTag::ALL.into_iter().filter(|tag| tag.present().is_ok());
    let encodings = present.map(|tag| -> (&str, Work<'_>) {
        let encode = move || codec::encode(tag, lists, keys);
        (tag.name(), Box::new(move || measure_codec(tag.name(), tag, encode, lists, order)))
    });
    let snode = |name: &'static str, keys, clustered| -> (&str, Work<'_>) {
        let encode = move || {
            let options = snode::Options { clustered, ..snode::Options::default() };
            Ok(snode::encode(lists, keys, &options))
        };
        (name, Box::new(move || measure_codec(name, CodecTag::Snode, encode, lists, order)))
    };
    let encodings = encodings.chain([snode("snode, no clusters", keys, false)]);
    let encodings = encodings.chain(keys.map(|_| snode("snode, no URLs", None, true)));
    let encodings = encodings.chain(keys.map(|_| snode("snode, no URLs, no clusters", None, false)));
    #[cfg(feature = "webgraph")]
    let encodings = encodings.chain(native::NATIVE.iter().map(|(name, options)| -> (&str, Work<'_>) {
        (name, Box::new(move || native::measure(name, options, lists, order)))
    }));
    let all: Vec<_> = encodings.collect();
    let mut rows = Vec::with_capacity(all.len());
    for (number, (codec, work)) in (1..).zip(&all) {
        tell(Step { graph, codec, with_time: false, number, count: all.len() });
        rows.push(work()?);
    }
    Ok(Table {
        graph: graph.to_owned(),
        nodes: lists.nodes() as u64,
        links: lists.links.len() as u64,
        occurrences: None,
        rows,
    })
}

fn measure_codec(
    name: &str,
    tag: CodecTag,
    encode: impl Fn() -> Result<Vec<u8>, EncodeError>,
    lists: &Lists,
    order: &[usize],
) -> Result<Row, BenchError> {
    let damage = |source| BenchError::Damage { codec: name.to_owned(), source };
    let (bytes, build) = timed(encode);
    let codec = codec::open(tag, bytes?.into()).map_err(damage)?;
    verify(name, &*codec, lists, order)?;
    let sequential_ns = ns_a_link(lists.links.len(), || {
        let mut sum = 0u64;
        let all = codec.scan(&mut |_, links| sum = links.iter().fold(sum, |sum, link| sum ^ link));
        all.map_or(0, |()| sum)
    });
    let (mut scratch, mut links) = (StoreScratch::default(), Vec::new());
    let random_ns = ns_a_link(lists.links.len(), || {
        let each = order.iter().map(|&node| match codec.list(node, &mut scratch, &mut links) {
            Ok(()) => links.iter().fold(0, |sum, link| sum ^ link),
            Err(_) => 0,
        });
        each.fold(0, |sum, list| sum ^ list)
    });
    let sizes = codec.sizes();
    let data_bytes = sizes.data + sizes.tables;
    Ok(Row {
        codec: name.to_owned(),
        data_bytes,
        index_bytes: sizes.index,
        timed_bytes: None,
        build,
        sequential_ns,
        random_ns,
    })
}

/// Compares every list, in order and in random order.
fn verify(name: &str, codec: &dyn LinkCodec, lists: &Lists, order: &[usize]) -> Result<(), BenchError> {
    let differs = |node| BenchError::Differs { codec: name.to_owned(), node };
    let damage = |source| BenchError::Damage { codec: name.to_owned(), source };
    let (mut wrong, mut seen) = (None, 0);
    let compare = &mut |node, links: &[u64]| {
        seen += 1;
        if wrong.is_none() && (node >= lists.nodes() || links != lists.list(node)) {
            wrong = Some(node);
        }
    };
    codec.scan(compare).map_err(damage)?;
    if let Some(node) = wrong.or((seen != lists.nodes()).then_some(seen)) {
        return Err(differs(node));
    }
    let (mut scratch, mut links) = (StoreScratch::default(), Vec::new());
    for &node in order {
        codec.list(node, &mut scratch, &mut links).map_err(damage)?;
        if links != lists.list(node) {
            return Err(differs(node));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transpose_turns_links_around() {
        let mut lists = Lists { first: 10, ..Lists::default() };
        [&[11u64, 12][..], &[12], &[]].into_iter().for_each(|list| lists.push(list));
        let back = transpose(&lists).unwrap();
        assert_eq!((back.list(0), back.list(1), back.list(2)), (&[][..], &[10][..], &[10, 11][..]));
        assert_eq!(transpose(&back).unwrap(), lists);
        lists.links[0] = 13;
        assert!(matches!(transpose(&lists), Err(BenchError::Outside { uid: 13 })));
    }

    #[test]
    fn an_order_has_each_node_once() {
        let mut order = random_order(1000);
        assert!(!order.is_sorted());
        order.sort_unstable();
        assert!(order.into_iter().eq(0..1000));
    }
}
