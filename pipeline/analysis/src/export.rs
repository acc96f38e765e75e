//! Stores as files of other tools: tables of links, changes, URLs, hosts and pages; graphs; matrices.
//!
//! An export reads the current epoch of a store. It writes one file, several files for some formats, a directory of
//! parts on request, or text to a stream. Files are complete or absent. [`What`] selects the records,
//! [`Format`] the file format, and [`Names`] the names of columns. [`ExportOptions::fits`] says which of these fit
//! together. Records are in the order of UIDs, so the same store gives the same bytes.
//!
//! A time window selects captures, and only the content of these captures is written. Nodes are the URLs that are there
//! in the window ([`crate::nodes`]). Formats that number nodes number only these nodes. UIDs are valid in the epoch
//! that was read, and a merge changes them ([`webstrata_layers::Translations`]).
//!
//! Memory: a row group of each row and a batch of records. Exports that write URLs for UIDs also take at most
//! `memory_max` for decoded URLs. The head of each format's file states further memory. One thread writes a file. All
//! threads and processes write parts ([`parts`]). Each layer is read once, and by some formats twice.

#[cfg(feature = "webgraph")]
mod bv;
mod cc_graph;
mod edges;
mod events;
mod gexf;
mod graph;
mod graphml;
mod hosts;
mod icebug;
mod neo4j;
mod nodes;
mod numbered;
mod occurrences;
mod options;
mod pages;
mod parts;
mod ranks;
mod table;
mod texts;
mod xml;

use crate::Error;
use crate::analyze::NodeRule;
use crate::nodes::{Nodes, NumberedNodes};
use crate::outlet::Target;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::ops::Range;
use webstrata_engine::{Error as JobError, Job, Progress};
use webstrata_layers::{Links, Page, Reader, Store, Uid, Window};

pub use options::{ExportOptions, Format, Names, Unfit, What};

/// The stream that takes the text of [`Target::Stream`].
type Stream = dyn Write + Send;

/// The result of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportReport {
    /// The epoch that was read.
    pub epoch: u64,
    /// The number of rows of a table, or of edges of a graph.
    pub records: u64,
    /// The number of nodes of a graph; 0 for tables.
    pub nodes: u64,
}

/// The number of nodes from which the tools that draw a graph become slow.
pub const DRAWN_MAX: u64 = 50_000;

/// Writes a store in another format. `stream` takes the output of [`Target::Stream`].
///
/// # Errors
/// [`Unfit`] if the options do not fit together; errors of the store or of the output file; [`Error::Interrupted`].
///
/// ```
/// use webstrata_analysis::{ExportOptions, Format, Names, NodeRule, Target, What, export};
/// use webstrata_layers::Window;
/// use webstrata_engine::{Progress, RunOptions};
/// use webstrata_pipeline::{BuildOptions, build};
///
/// let dir = tempfile::tempdir()?;
/// let crawl = dir.path().join("crawl.jsonl");
/// std::fs::write(&crawl, r#"{"url": "http://example.org/", "ts": "2008", "links": ["http://example.com/"]}"#)?;
/// let run = RunOptions::new(dir.path().join("store"));
/// build(&BuildOptions::new(run.clone(), vec![crawl]), &Progress::default())?;
///
/// let out = dir.path().join("edges.csv");
/// let options = ExportOptions {
///     run,
///     what: What::Edges,
///     format: Format::Csv,
///     names: Names::Networkx,
///     target: Target::File(out.clone()),
///     window: Window::ALWAYS,
///     nodes: NodeRule::OfDate,
///     fold: None,
///     urls: true,
///     parts: false,
/// };
/// let report = export(&options, &mut std::io::sink(), &Progress::default())?;
/// assert_eq!(report.records, 1);
/// assert!(std::fs::read_to_string(out)?.starts_with("source,target"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn export(
    options: &ExportOptions,
    stream: &mut (dyn Write + Send + 'static),
    progress: &Progress,
) -> Result<ExportReport, Error> {
    options.fits()?;
    let reader = Reader::new(Store::open(&options.run.store)?, options.run.memory_max / 2);
    let nodes = nodes_of(options, &reader)?;
    if let (true, Target::File(directory)) = (options.parts, &options.target) {
        return parts::write(options, reader, nodes, directory, progress);
    }
    let job = options.run.job(progress)?;
    let export = Export { reader: &reader, options, job: &job, part: None, nodes: nodes.as_ref() };
    let written = match (options.what, options.format) {
        (_, Format::Graphml) => graph::write(&export, graphml::Graphml::create(&export, stream)?),
        (_, Format::Gexf) => graph::write(&export, gexf::Gexf::create(&export, stream)?),
        #[cfg(feature = "webgraph")]
        (_, Format::Webgraph) => bv::write(&export),
        #[cfg(not(feature = "webgraph"))]
        (_, Format::Webgraph) => Err(Unfit::Absent(Format::Webgraph).into()),
        (_, Format::Mtx | Format::Networkit) => numbered::write(&export, stream),
        (_, Format::CcGraph) => cc_graph::write(&export),
        (_, Format::Neo4j) => graph::write(&export, neo4j::Neo4j::create(&export)?),
        (_, Format::Icebug) => graph::write(&export, icebug::Icebug::create(&export)?),
        _ => table(&export, stream),
    };
    written.map_err(|error| match error {
        Error::Job(JobError::Stopping) => job.take_error().map_or(error, Error::without_state),
        error => error,
    })
}

/// Returns the nodes of the window, if the export has a row or a number for each node. `None` means that all URLs are
/// nodes, or that the export has no need of nodes. One pass over the pages.
fn nodes_of(options: &ExportOptions, reader: &Reader) -> Result<Option<NumberedNodes>, Error> {
    let of_each = options.what == What::Nodes || options.format.numbers_nodes();
    if !of_each || options.nodes == NodeRule::All || options.window == Window::ALWAYS {
        return Ok(None);
    }
    let all = Uid::below(reader.urls());
    let (mut nodes, mut links) = (Nodes::none(&all), Vec::new());
    let (mut pages, mut page) = (reader.pages(all), Page::default());
    while pages.read(&mut page)? {
        if page.captures().is_alive(options.window) {
            nodes.insert(page.uid);
        }
        page.links_in(options.window, &mut links);
        links.iter().for_each(|&link| nodes.insert(link));
    }
    Ok(Some(nodes.numbered()))
}

/// Writes a table, or a part of a table.
fn table(export: &Export<'_>, stream: &mut Stream) -> Result<ExportReport, Error> {
    match export.options.what {
        What::Edges if export.options.names == Names::Aut => occurrences::write(export, stream),
        What::Edges => edges::write(export, stream),
        What::Events => events::write(export, stream),
        What::Nodes => nodes::write(export, stream),
        What::Hosts => hosts::write(export, stream),
        What::Layers => pages::write(export, stream),
    }
}

/// The data that all kinds of exports share.
struct Export<'a> {
    reader: &'a Reader,
    options: &'a ExportOptions,
    job: &'a Job,
    /// The UIDs of the records, if the export is a part of a table.
    part: Option<Range<Uid>>,
    /// The nodes, if these are not all URLs.
    nodes: Option<&'a NumberedNodes>,
}

impl Export<'_> {
    /// Returns the UIDs of the records.
    fn uids(&self) -> Range<Uid> {
        self.part.clone().unwrap_or(Uid::below(self.reader.urls()))
    }

    /// Returns the number of nodes.
    fn count(&self) -> u64 {
        self.nodes.map_or(self.reader.urls(), NumberedNodes::len)
    }

    /// Returns the number of a node among the nodes, from 0.
    fn number(&self, uid: Uid) -> u64 {
        self.nodes.map_or(uid.0, |nodes| nodes.number(uid))
    }

    /// Whether a URL is a node.
    fn is_node(&self, uid: Uid) -> bool {
        self.nodes.is_none_or(|nodes| nodes.holds(uid))
    }

    /// Runs a pass over `records` records and shows its progress. A part shows no pass, because all workers share one.
    fn pass(&self, name: &'static str, records: u64, run: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
        if self.part.is_some() {
            return run();
        }
        self.job.progress().enter(name, records);
        run()?;
        self.job.progress().leave();
        Ok(())
    }

    /// Calls `visit` with all pages in the order of UIDs. `name` is the name of the pass in the progress.
    fn pages(&self, name: &'static str, mut visit: impl FnMut(&Page) -> Result<(), Error>) -> Result<(), Error> {
        self.pass(name, self.reader.store().manifest().counts.captures, || {
            let (mut pages, mut page) = (self.reader.pages(self.uids()), Page::default());
            while pages.read(&mut page)? {
                visit(&page)?;
                self.step(page.timestamps.len())?;
            }
            Ok(())
        })
    }

    /// Calls `visit` with all URLs in the order of UIDs, with or without their urlkeys.
    fn urls(
        &self,
        name: &'static str,
        with_surts: bool,
        mut visit: impl FnMut(Uid, &str, &str) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.pass(name, self.reader.urls(), || {
            for row in 0..self.reader.rows() {
                let mut urls = self.reader.row_urls(row, self.uids(), with_surts);
                while let Some((uid, url, surt)) = urls.next_url()? {
                    visit(uid, url, surt)?;
                    self.step(1)?;
                }
            }
            Ok(())
        })
    }

    /// Reports the number of records that are done, and stops on request.
    fn step(&self, done: usize) -> Result<(), Error> {
        self.job.progress().add_worked(done as u64);
        Ok(self.job.go_on()?)
    }
}
