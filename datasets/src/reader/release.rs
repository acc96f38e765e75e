//! The inputs of one release of a web graph: which files hold its hosts, and which its edges.

use std::path::PathBuf;
use std::sync::Arc;

use super::{detect, inputs, without_secrets};
use crate::Error;
use crate::files::compressed::{Notes, Text};
use crate::files::head::Head;
use crate::files::place::Place;
use crate::formats::cc_graph::{Kind, kind};
use crate::formats::tables;
use crate::input::{Input, InputSplit};
use crate::release::{GraphPart, Release, Table, Www};

/// Expands paths as [`inputs`] does, and reads the files of a web graph among them as one release of Common Crawl's
/// host or domain graphs: files with hosts, and files with edges, in any order and number; or Parquet with links
/// between names of hosts. All captures have the time `time`. Standard input and pipes are edges. Other files keep
/// their own formats.
///
/// # Errors
/// As [`inputs`]; no file has hosts, or none has edges.
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
    for (at, input) in all.iter().enumerate() {
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
    let is_whole = vertices.is_empty() && edges.is_empty() && !names.is_empty();
    if vertices.is_empty() && !is_whole {
        return Err(Error::NoHosts { paths: paths() });
    }
    if edges.is_empty() && !is_whole {
        return Err(Error::NoEdges { paths: paths() });
    }
    let files = vertices.iter().map(|&(_, at)| all[at].place.clone()).collect();
    let release = Arc::new(Release::new(files, edges.len(), time, www));
    let hosts = vertices.iter().enumerate().map(|(number, &(_, at))| (at, Table::Vertices(number)));
    let names = names.into_iter().map(|(at, group)| (at, Table::Names(group)));
    for (at, table) in hosts.chain(edges.iter().map(|&at| (at, Table::Edges))).chain(names) {
        all[at].part = InputSplit::Graph(GraphPart { release: Arc::clone(&release), table });
    }
    Ok(all)
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
    let io = |error| Error::io(&place.path, error);
    // Compressed text is shorter than its text, so that these bytes have the whole head or are all.
    let bytes = place.beginning(2 * detect::HEAD_BYTES as u64).map_err(io)?;
    let mut text = Text::new(bytes, Notes::default()).map_err(io)?;
    while text.peek(1).map_err(io)?.is_empty() && text.resume() {}
    let text = text.peek(detect::HEAD_BYTES).map_err(io)?;
    Ok(kind(&Head { text, is_all: text.len() < detect::HEAD_BYTES }))
}
