//! Graphs as WebGraph's files. Reads `BASENAME.graph` and `.properties`; writes these, `.offsets` and `.ef`.
//!
//! Reading passes through the graph in order, for which the crate needs neither `.offsets` nor `.ef`. Writing makes all
//! four, so that the crate can open them in any of its ways. The files have no checksums and the crate trusts them, so
//! damaged files may make it panic. Such a panic is returned as an error.

use dsi_bitstream::prelude::BE;
use dsi_progress_logger::ProgressLogger;
use std::path::{Path, PathBuf};
use webgraph::prelude::{BvGraphSeq, SequentialLabeling, store_ef_with_data};

use super::bv::{BoxedError, Options, compress};
use webstrata_cells::EncodeError;
use webstrata_cells::links::lists::Lists;

/// Files of a graph that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{}: not a readable or writable BV graph", path.display())]
pub struct FileError {
    /// The basename.
    pub path: PathBuf,
    /// The error.
    pub source: BoxedError,
}

/// Reads a graph whose nodes are `0..nodes`.
///
/// # Errors
/// Files that are missing or damaged, or in an encoding that is not big-endian.
pub fn import(basename: &Path) -> Result<Lists, FileError> {
    // Only the message outlives a panic.
    let read = std::panic::catch_unwind(|| read(basename));
    let read = read.unwrap_or_else(|_| Err("the graph is damaged".into()));
    read.map_err(|source| FileError { path: basename.to_owned(), source })
}

fn read(basename: &Path) -> Result<Lists, BoxedError> {
    let graph = BvGraphSeq::with_basename(basename).endianness::<BE>().load()?;
    let mut lists = Lists::default();
    let mut successors = graph.iter();
    for _ in 0..graph.num_nodes() {
        lists.links.extend(successors.next_successors()?.iter().map(|&link| link as u64));
        lists.ends.push(lists.links.len());
    }
    Ok(lists)
}

/// Writes lists of links between the nodes `0..nodes`.
///
/// # Errors
/// A first UID that is not 0, links to other nodes, and files that cannot be written.
pub fn export(lists: &Lists, basename: &Path, options: &Options) -> Result<(), FileError> {
    write(lists, basename, options).map_err(|source| FileError { path: basename.to_owned(), source })
}

fn write(lists: &Lists, basename: &Path, options: &Options) -> Result<(), BoxedError> {
    let nodes = lists.nodes() as u64;
    if let Some(uid) = lists.links.iter().copied().chain([lists.first]).find(|&uid| uid > 0 && uid >= nodes) {
        return Err(EncodeError::Wide { codec: "a BV graph", link: uid, bound: nodes }.into());
    }
    if lists.first != 0 {
        return Err(EncodeError::Wide { codec: "the first node of a BV graph", link: lists.first, bound: 1 }.into());
    }
    let (mut graph, mut offsets) = (Vec::new(), Vec::new());
    let properties = compress(lists, options, &mut graph, &mut offsets)?;
    let path = |extension| basename.with_extension(extension);
    std::fs::write(path("graph"), &graph)?;
    std::fs::write(path("offsets"), &offsets)?;
    std::fs::write(path("properties"), properties)?;
    store_ef_with_data(lists.nodes(), path("graph"), path("offsets"), path("ef"), &mut None::<ProgressLogger>)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use webgraph::prelude::{BvGraph, RandomAccessGraph};

    fn lists() -> Lists {
        let mut lists = Lists::default();
        for list in [&[1u64, 2, 3, 4, 5, 6][..], &[], &[1, 2, 3, 4, 5], &[0, 3], &[], &[6], &[0]] {
            lists.push(list);
        }
        lists
    }

    #[test]
    fn what_is_exported_is_imported_and_opened_by_the_crate() {
        let dir = tempfile::tempdir().unwrap();
        let basename = dir.path().join("small");
        for zuckerli in [false, true] {
            export(&lists(), &basename, &Options { zuckerli, ..Options::default() }).unwrap();
            assert_eq!(import(&basename).unwrap(), lists());
            let graph = BvGraph::with_basename(&basename).load().unwrap();
            assert_eq!(graph.successors(2).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        }
        std::fs::remove_file(basename.with_extension("graph")).unwrap();
        assert!(import(&basename).is_err());
    }

    #[test]
    fn links_that_leave_the_graph_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut lists = lists();
        lists.links[5] = 7;
        assert!(export(&lists, &dir.path().join("small"), &Options::default()).is_err());
    }
}
