//! The inputs of one release of a web graph: which files hold its hosts, and which its edges.
//!
//! The content of a file says which it is, except for a BVGraph: its graph has no beginning of its own, so the name
//! says that it belongs to properties.

use std::path::PathBuf;
use std::sync::Arc;

use super::{detect, inputs, without_secrets};
use crate::Error;
use crate::files::compressed::{Notes, Text};
use crate::files::head::Head;
use crate::files::place::Place;
use crate::formats::cc_graph::ranks::RankReader;
use crate::formats::cc_graph::{Kind, bv, kind};
use crate::formats::tables;
use crate::input::{Input, InputSplit};
use crate::release::{GraphPart, Release, Table, Www};

/// Expands paths as [`inputs`] does, and reads the files of a web graph among them as one release of Common Crawl's
/// host or domain graphs: files with hosts, and files with edges or a BVGraph (`X.graph` and `X.properties`), in any
/// order and number; or Parquet with links between names of hosts. All captures have the time `time`. Standard input
/// and pipes are edges. Other files keep their own formats.
///
/// # Errors
/// As [`inputs`]; no file has hosts, or none has edges; properties of a BVGraph without its graph.
///
/// ```
/// use webstrata_datasets::{Capture, LinkKinds, Tally, Www, graph_inputs, open};
///
/// let dir = tempfile::tempdir()?;
/// std::fs::write(dir.path().join("vertices.txt"), "0\tcom.example\n1\torg.example\n2\torg.example.www\n")?;
/// std::fs::write(dir.path().join("edges.txt"), "0\t1\n0\t2\n")?;
/// let (mut capture, mut tally, mut captures) = (Capture::default(), Tally::default(), Vec::new());
/// for input in graph_inputs(&[dir.path().to_owned()], 1_714_521_600, Www::Keep)? {
///     let mut reader = open(&input, LinkKinds::default())?;
///     while reader.read(&mut capture, &mut tally)? {
///         captures.push(capture.clone());
///     }
/// }
/// let [capture] = &captures[..] else { panic!("one host has edges") };
/// assert_eq!((capture.url.as_str(), capture.time), ("http://example.com/", 1_714_521_600));
/// assert_eq!(capture.links.iter().collect::<Vec<_>>(), ["http://example.org/", "http://www.example.org/"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn graph_inputs(paths: &[PathBuf], time: i64, www: Www) -> Result<Vec<Input>, Error> {
    let mut all = inputs(paths)?;
    let (mut vertices, mut edges, mut names) = (Vec::new(), Vec::new(), Vec::new());
    let graphs = bv_graphs(&all)?;
    let is_bv = |at| graphs.iter().any(|graph| graph.files.contains(&at));
    for (at, input) in all.iter().enumerate().filter(|&(at, _)| !is_bv(at)) {
        match input.part {
            InputSplit::RowGroup(group) if has_host_links(&input.place)? => names.push((at, group)),
            InputSplit::Whole => match kind_of(&input.place)? {
                Some(Kind::Vertices(first)) => vertices.push((first, at)),
                Some(Kind::Edges) => edges.push(at),
                Some(Kind::Ranks) | None => {}
            },
            _ => {}
        }
    }
    // Inputs are sorted by path, so that parts with the same first id have an order, too.
    vertices.sort_unstable();
    let paths = || paths.iter().map(|path| without_secrets(path)).collect();
    let (transposes, lists): (Vec<BvFiles>, Vec<_>) = graphs.into_iter().partition(|graph| graph.is_transpose);
    let has_edges = !edges.is_empty() || !lists.is_empty();
    let is_whole = vertices.is_empty() && !has_edges && !names.is_empty();
    if vertices.is_empty() && !is_whole {
        return Err(Error::NoHosts { paths: paths() });
    }
    if !has_edges && !is_whole {
        return Err(Error::NoEdges { paths: paths() });
    }
    let files = vertices.iter().map(|&(_, at)| all[at].place.clone()).collect();
    let properties = lists.iter().map(|graph| all[graph.files[1]].place.clone()).collect();
    let release = Arc::new(Release::new(files, properties, edges.len() + lists.len(), time, www));
    let hosts = vertices.iter().enumerate().map(|(number, &(_, at))| (at, Table::Vertices(number)));
    let names = names.into_iter().map(|(at, group)| (at, Table::Names(group)));
    let edges = edges.iter().map(|&at| (at, Table::Edges));
    let graphs = lists.iter().enumerate().map(|(number, graph)| (graph.files[0], Table::Lists(number)));
    let beside = lists.iter().map(|graph| graph.files[1]).chain(transposes.iter().flat_map(|graph| graph.files));
    let beside = beside.map(|at| (at, Table::Beside));
    for (at, table) in hosts.chain(edges).chain(names).chain(graphs).chain(beside) {
        all[at].part = InputSplit::Graph(GraphPart { release: Arc::clone(&release), table });
    }
    Ok(all)
}

/// Reads the ranks among the files of a web graph. Paths are expanded as [`inputs`] does. Without files of ranks, the
/// reader is at its end.
///
/// # Errors
/// As [`inputs`].
///
/// ```
/// use webstrata_datasets::{Tally, Www, ranks_in};
///
/// let dir = tempfile::tempdir()?;
/// let text = "#harmonicc_pos\t#harmonicc_val\t#pr_pos\t#pr_val\t#host_rev\n1\t32.5\t---\t---\tcom.example.www\n";
/// std::fs::write(dir.path().join("ranks.txt"), text)?;
/// let rank = ranks_in(&[dir.path().to_owned()], Www::Fold)?.read(&mut Tally::default())?.expect("a host");
/// assert_eq!((rank.host.as_str(), rank.url.as_str()), ("com.example.www", "http://example.com/"));
/// assert_eq!((rank.harmonic_position, rank.harmonic, rank.pagerank), (Some(1), Some(32.5), None));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn ranks_in(paths: &[PathBuf], www: Www) -> Result<RankReader, Error> {
    let mut places = Vec::new();
    for input in inputs(paths)? {
        if input.part == InputSplit::Whole && input.place.is_file() && kind_of(&input.place)? == Some(Kind::Ranks) {
            places.push(input.place);
        }
    }
    Ok(RankReader::new(places, www))
}

/// A BVGraph among inputs.
struct BvFiles {
    /// The numbers of the graph and of its properties.
    files: [usize; 2],
    /// Whether the graph is the transpose of another: its name ends with `-t`.
    is_transpose: bool,
}

/// The BVGraphs among inputs: properties, and beside them the graph.
fn bv_graphs(all: &[Input]) -> Result<Vec<BvFiles>, Error> {
    let mut graphs = Vec::new();
    for (at, input) in all.iter().enumerate() {
        if input.path().extension().is_none_or(|ending| ending != "properties") || !has_properties(&input.place)? {
            continue;
        }
        let path = input.path().with_extension("graph");
        let Some(graph) = all.iter().position(|input| input.path() == path) else {
            return Err(Error::NoGraph { properties: input.path().to_owned(), graph: path });
        };
        let is_transpose = path.file_stem().is_some_and(|name| name.as_encoded_bytes().ends_with(b"-t"));
        graphs.push(BvFiles { files: [graph, at], is_transpose });
    }
    Ok(graphs)
}

fn has_properties(place: &Place) -> Result<bool, Error> {
    let text = beginning(place)?;
    Ok(bv::has_properties(&text))
}

fn has_host_links(place: &Place) -> Result<bool, Error> {
    let source = place.source().map_err(|error| Error::io(&place.path, error))?;
    tables::has_host_links(&place.path, &source)
}

/// The kind of a file, by its beginning. The beginning of a pipe cannot be read twice.
fn kind_of(place: &Place) -> Result<Option<Kind>, Error> {
    if !place.is_file() {
        return Ok(Some(Kind::Edges));
    }
    let text = beginning(place)?;
    Ok(kind(&Head { text: &text, is_all: text.len() < detect::HEAD_BYTES }))
}

/// The first bytes of the text of a file, which may be compressed.
fn beginning(place: &Place) -> Result<Vec<u8>, Error> {
    let io = |error| Error::io(&place.path, error);
    // Compressed text is shorter than its text, so that these bytes have the whole head or are all.
    let bytes = place.beginning(2 * detect::HEAD_BYTES as u64).map_err(io)?;
    let mut text = Text::new(bytes, Notes::default()).map_err(io)?;
    while text.peek(1).map_err(io)?.is_empty() && text.resume() {}
    Ok(text.peek(detect::HEAD_BYTES).map_err(io)?.to_vec())
}
