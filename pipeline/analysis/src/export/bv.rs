//! BV graphs of both directions, in the files of WebGraph (Java and Rust), and the URLs of their nodes.
//!
//! ```text
//! BASENAME.graph .offsets .ef .properties        the links of the window
//! BASENAME-t.graph .offsets .ef .properties      the transpose: the nodes that link to node n
//! BASENAME.urls                                  the URL of each node, one line per node
//! ```
//!
//! `.offsets` is for the Java library and `.ef` for the crate, which opens both graphs as they are. Nodes are numbered
//! in the order of UIDs: without a window, node n is the URL with the UID n. A graph has no times; another window needs
//! another export. Files get their names when all files are complete. The `.properties` files come last, because a
//! graph does not open without them. An external sort in `memory_max` transposes the links. The index `.ef` is made in
//! memory, with at most two bytes per node.

use super::{Export, ExportReport};
use crate::Error;
use crate::outlet::{Outlet, Target, draft};
use crate::stretches::for_each_link;
use dsi_bitstream::prelude::{BE, BufBitWriter, WordAdapter};
use dsi_progress_logger::ProgressLogger;
use std::cell::RefCell;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use webgraph::prelude::{BvComp, CompFlags, ConstCodesEncoder, OffsetsWriter, store_ef_with_data};
use webstrata_engine::{Scratch, Sorted, Sorter};
use webstrata_layers::{Draft, Links};

/// The number of earlier lists that a list may copy from, the maximum number of steps from a list to one that copies
/// from none, and the shortest interval: the defaults of WebGraph.
const WINDOW: usize = 7;
const CHAIN_MAX: usize = 3;
const INTERVAL_MIN: usize = 4;

/// Writes all files.
pub(super) fn write(export: &Export<'_>) -> Result<ExportReport, Error> {
    let Target::File(basename) = &export.options.target else {
        return Err(Error::Internal("WebGraph files to a stream"));
    };
    let (window, nodes) = (export.options.window, export.count());
    let mut graph = Drafts::create(basename, nodes)?;
    let sorting =
        Draft::temporary(export.job.scratch().directory()).map_err(|source| export.job.scratch().error(source))?;
    let mut turned = Sorter::new(&Scratch::temporary(sorting.path()), "turned-links", export.job.memory_max() / 2);
    let (mut links, mut records) = (Vec::new(), 0);
    export.pages("links", |page| {
        links.clear();
        for_each_link(page, window, |link, _| {
            let (page, link) = (export.number(page.uid), export.number(link));
            links.push(index(link)?);
            turned.push(&link.to_be_bytes(), &page.to_be_bytes())?;
            Ok(())
        })?;
        records += links.len() as u64;
        // It is possible that a page without links is not a node.
        if links.is_empty() { Ok(()) } else { graph.list(export.number(page.uid), &links) }
    })?;
    let graph = graph.finish()?;
    let mut transpose = Drafts::create(&with_ending(basename, "-t"), nodes)?;
    write_transpose(export, &mut turned.finish()?, &mut transpose, records)?;
    let transpose = transpose.finish()?;
    let mut urls = Outlet::file(&with_ending(basename, ".urls"))?;
    export.urls("urls", false, |uid, url, _| {
        if export.is_node(uid) { writeln!(urls, "{url}").map_err(|source| urls.failed(source)) } else { Ok(()) }
    })?;
    urls.finish()?;
    // Files of an earlier export must not open together with files of this one.
    for ending in [".properties", "-t.properties"] {
        remove(&with_ending(basename, ending))?;
    }
    let (graph_properties, transpose_properties) = (graph.keep()?, transpose.keep()?);
    graph_properties.keep()?;
    transpose_properties.keep()?;
    Ok(ExportReport { epoch: export.reader.epoch(), records, nodes })
}

/// Writes, for each node, the list of nodes that link to it.
fn write_transpose(
    export: &Export<'_>,
    turned: &mut Sorted,
    transpose: &mut Drafts,
    records: u64,
) -> Result<(), Error> {
    export.job.progress().enter("turned", records);
    let (mut node, mut sources) = (0, Vec::new());
    while let Some((target, source)) = turned.next()? {
        let (target, source) = (number(target), number(source));
        if target != node {
            transpose.list(node, &sources)?;
            sources.clear();
            node = target;
        }
        sources.push(index(source)?);
        export.step(1)?;
    }
    // A graph without nodes has no lists.
    if !sources.is_empty() {
        transpose.list(node, &sources)?;
    }
    export.job.progress().leave();
    Ok(())
}

fn index(node: u64) -> Result<usize, Error> {
    usize::try_from(node).map_err(|_| Error::Internal("more nodes than this machine can number"))
}

fn number(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_be_bytes)
}

fn with_ending(basename: &Path, ending: &str) -> PathBuf {
    let mut path = OsString::from(basename);
    path.push(ending);
    path.into()
}

/// The first error of writing the files of a graph.
type Failure = Rc<RefCell<Option<Error>>>;

/// A file that accepts all bytes and keeps its first error for later. Writers of bits write their last bits when they
/// are dropped, even after an error, and panic if this fails.
struct Patient {
    path: PathBuf,
    file: BufWriter<File>,
    failure: Failure,
}

impl Patient {
    fn attempt(&mut self, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) {
        let mut failure = self.failure.borrow_mut();
        if failure.is_none()
            && let Err(source) = write(&mut self.file)
        {
            *failure = Some(Error::Output { path: self.path.clone(), source });
        }
    }
}

impl Write for Patient {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.attempt(|file| file.write_all(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.attempt(BufWriter::flush);
        Ok(())
    }
}

impl Drop for Patient {
    fn drop(&mut self) {
        self.attempt(BufWriter::flush);
    }
}

type Bits = BufBitWriter<BE, WordAdapter<u64, Patient>>;

/// The files of one graph while they are written.
struct Drafts {
    basename: PathBuf,
    graph: Draft,
    offsets: Draft,
    compressor: BvComp<ConstCodesEncoder<BE, Bits>, Patient, ()>,
    failure: Failure,
    /// The node of the next list, and the number of nodes.
    next: u64,
    nodes: u64,
}

impl Drafts {
    fn create(basename: &Path, nodes: u64) -> Result<Self, Error> {
        let failure = Failure::default();
        let patient = |path: PathBuf| {
            let draft = draft(&path)?;
            let file = draft.file().try_clone().map_err(|source| Error::Output { path: path.clone(), source })?;
            Ok::<_, Error>((draft, Patient { path, file: BufWriter::new(file), failure: Rc::clone(&failure) }))
        };
        let (graph, bits) = patient(with_ending(basename, ".graph"))?;
        let (offsets, starts) = patient(with_ending(basename, ".offsets"))?;
        let starts =
            OffsetsWriter::from_write(starts, true).map_err(|error| failed(&offsets, io::Error::other(error)))?;
        let encoder = ConstCodesEncoder::new(BufBitWriter::new(WordAdapter::new(bits)));
        let compressor = BvComp::new(encoder, starts, WINDOW, CHAIN_MAX, INTERVAL_MIN, 0, ());
        Ok(Self { basename: basename.to_owned(), graph, offsets, compressor, failure, next: 0, nodes })
    }

    /// Adds the links of a node. Nodes rise from call to call, and skipped nodes have no links.
    fn list(&mut self, node: u64, links: &[usize]) -> Result<(), Error> {
        while self.next < node {
            self.push(&[])?;
        }
        self.push(links)
    }

    fn push(&mut self, links: &[usize]) -> Result<(), Error> {
        self.next += 1;
        let pushed = self.compressor.push(links.iter().map(|&link| (link, ())));
        pushed.map_err(|error| failed(&self.graph, io::Error::other(error)))?;
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Ends the lists, and makes the index and the properties.
    fn finish(mut self) -> Result<FinishedFiles, Error> {
        while self.next < self.nodes {
            self.push(&[])?;
        }
        let Self { basename, graph, offsets, compressor, failure, nodes, .. } = self;
        let failed = |error| failed(&graph, io::Error::other::<Box<dyn std::error::Error + Send + Sync>>(error));
        let stats = compressor.flush().map_err(|error| failed(error.into()))?;
        failure.take().map_or(Ok(()), Err)?;
        let flags = CompFlags { compression_window: WINDOW, max_ref_count: CHAIN_MAX, ..CompFlags::default() };
        let text = flags.to_properties::<BE>(&stats).map_err(|error| failed(error.into()))?;
        let mut properties = Outlet::file(&with_ending(&basename, ".properties"))?;
        properties.write_all(text.as_bytes()).map_err(|source| properties.failed(source))?;
        let index_file = draft(&with_ending(&basename, ".ef"))?;
        let pl = &mut None::<ProgressLogger>;
        let made = store_ef_with_data(index(nodes)?, graph.path(), offsets.path(), index_file.path(), pl);
        made.map_err(|error| failed(error.into()))?;
        Ok(FinishedFiles { drafts: [graph, offsets, index_file], properties })
    }
}

/// The complete files of one graph.
struct FinishedFiles {
    drafts: [Draft; 3],
    properties: Outlet<'static>,
}

impl FinishedFiles {
    /// Puts all files except the properties in their places.
    fn keep(self) -> Result<Last, Error> {
        self.drafts.into_iter().try_for_each(keep)?;
        Ok(Last(self.properties))
    }
}

/// The file that is put in place last, and makes the graph one that opens.
struct Last(Outlet<'static>);

impl Last {
    fn keep(self) -> Result<(), Error> {
        self.0.finish()
    }
}

fn remove(path: &Path) -> Result<(), Error> {
    match std::fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(Error::Output { path: path.to_owned(), source }),
        _ => Ok(()),
    }
}

/// Puts a file in its place.
fn keep(draft: Draft) -> Result<(), Error> {
    let path = draft.target().to_owned();
    draft.finish().map_err(|source| Error::Output { path, source })
}

/// Returns the error for a failed write.
fn failed(draft: &Draft, source: io::Error) -> Error {
    Error::Output { path: draft.target().to_owned(), source }
}
