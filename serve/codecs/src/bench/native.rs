//! WebGraph's native rows: only its crate and its files, without code of this workspace in between.

use super::{BenchError, Row, ns_a_link, timed};
use crate::codec::{bv, bv_files};
use dsi_bitstream::prelude::BE;
use std::path::Path;
use webgraph::prelude::{BvGraph, LoadMem, RandomAccessGraph, SequentialLabeling, Static};
use webstrata_cells::links::lists::Lists;

/// WebGraph's rows: name and options.
pub(super) const NATIVE: [(&str, bv::Options); 3] = [
    ("webgraph (7,3)", bv::Options { window: 7, chain_max: 3, zuckerli: false }),
    ("webgraph (7,1)", bv::Options { window: 7, chain_max: 1, zuckerli: false }),
    ("webgraph z(16,3)", bv::Options { window: 16, chain_max: 3, zuckerli: true }),
];

/// Measures the compressor, files, loader and iterators of the crate.
pub(super) fn measure(name: &str, options: &bv::Options, lists: &Lists, order: &[usize]) -> Result<Row, BenchError> {
    let dir = tempfile::tempdir()?;
    let basename = dir.path().join("graph");
    let (written, build) = timed(|| bv_files::export(lists, &basename, options));
    written?;
    let failed =
        |source: Box<dyn std::error::Error + Send + Sync>| bv_files::FileError { path: basename.clone(), source };
    let graph = BvGraph::with_basename(&basename).endianness::<BE>().dispatch::<Static>().mode::<LoadMem>().load();
    let graph = graph.map_err(|error| failed(error.into()))?;
    let wrong = order
        .iter()
        .find(|&&node| !graph.successors(node).map(|link| link as u64).eq(lists.list(node).iter().copied()));
    if let Some(&node) = wrong {
        return Err(BenchError::Differs { codec: name.to_owned(), node });
    }
    let sequential_ns = ns_a_link(lists.links.len(), || {
        let mut all = graph.iter();
        (0..lists.nodes()).fold(0, |sum, _| match all.next_successors() {
            Ok(list) => list.iter().fold(sum, |sum, &link| sum ^ link as u64),
            Err(_) => sum,
        })
    });
    let random_ns = ns_a_link(lists.links.len(), || {
        order.iter().fold(0, |sum, &node| graph.successors(node).fold(sum, |sum, link| sum ^ link as u64))
    });
    let bytes = |path: &Path| std::fs::metadata(path).map(|file| file.len());
    let (data_bytes, index_bytes) = (bytes(&basename.with_extension("graph"))?, bytes(&basename.with_extension("ef"))?);
    Ok(Row { codec: name.to_owned(), data_bytes, index_bytes, timed_bytes: None, build, sequential_ns, random_ns })
}
