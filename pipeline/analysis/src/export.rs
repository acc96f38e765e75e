//! Stores as files of other tools: tables of links, changes, URLs, hosts and pages; graphs; matrices.
//!
//! Reads the current epoch of a store; gives one file (for [`Format::Webgraph`] several; a directory of parts where
//! that is asked for), which is whole or not there, or text to a stream. [`What`] says what its records are, [`Format`]
//! how they are written, [`Names`] what columns are called; [`ExportOptions::fits`] says which of these go together.
//! Records are in order of UIDs, so the same store gives the same bytes.
//!
//! A time window selects captures, and only what they say is written: nodes are the URLs that are there in it
//! ([`crate::nodes`]), and formats that number nodes number these alone. UIDs are true in the epoch that was read; a
//! merge gives others ([`webstrata_layers::store::translation`]).
//!
//! Memory: a row group of each row, a batch of records, and `memory_max` at most for decoded URLs where these are
//! written for UIDs. What more a format takes is said in the head of its file. One thread writes a file; parts are
//! written by as many threads and processes as there are ([`parts`]). Each layer is read once, by some formats twice.

#[cfg(feature = "webgraph")]
mod bv;
mod edges;
mod events;
mod gexf;
mod graph;
mod graphml;
mod hosts;
mod nodes;
mod numbered;
mod occurrences;
mod options;
mod pages;
mod parts;
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
use webstrata_layers::{Links, Page, Reader, Store, Uid, Window};
use webstrata_pipeline::Error as JobError;
use webstrata_pipeline::Progress;
use webstrata_pipeline::engine::job::Job;

pub use options::{ExportOptions, Format, Names, Unfit, What};

/// What takes the text of [`Target::Stream`].
type Stream = dyn Write + Send;

/// What an export has written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportReport {
    /// The epoch that was read.
    pub epoch: u64,
    /// Rows of a table, or edges of a graph.
    pub records: u64,
    /// Nodes of a graph; 0 for tables.
    pub nodes: u64,
}

/// Nodes of a drawing from which on the tools that draw it get slow.
pub const DRAWN_MAX: u64 = 50_000;

/// Writes a store in another form; `stream` is for [`Target::Stream`].
///
/// # Errors
/// [`Unfit`] where what is asked for does not go together; what the store or the place of the file refuses;
/// [`Error::Interrupted`].
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
        _ => table(&export, stream),
    };
    written.map_err(|error| match error {
        Error::Job(JobError::Stopping) => job.take_error().map_or(error, Error::without_state),
        error => error,
    })
}

/// The nodes of the window, where the export has a row or a number for each; `None` where these are all URLs. One pass
/// over the pages.
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

/// Writes a table, or a part of one.
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

/// What all kinds of exports share.
struct Export<'a> {
    reader: &'a Reader,
    options: &'a ExportOptions,
    job: &'a Job,
    /// The UIDs of its records, where it is a part of a table.
    part: Option<Range<Uid>>,
    /// The nodes, where these are not all URLs.
    nodes: Option<&'a NumberedNodes>,
}

impl Export<'_> {
    /// The UIDs of its records.
    fn uids(&self) -> Range<Uid> {
        self.part.clone().unwrap_or(Uid::below(self.reader.urls()))
    }

    /// How many nodes there are.
    fn count(&self) -> u64 {
        self.nodes.map_or(self.reader.urls(), NumberedNodes::len)
    }

    /// The number of a node among them, from 0.
    fn number(&self, uid: Uid) -> u64 {
        self.nodes.map_or(uid.0, |nodes| nodes.number(uid))
    }

    /// Whether a URL is a node.
    fn is_node(&self, uid: Uid) -> bool {
        self.nodes.is_none_or(|nodes| nodes.holds(uid))
    }

    /// Runs a pass over so many records; of parts there is only one, which all workers share.
    fn pass(&self, name: &'static str, records: u64, run: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
        if self.part.is_some() {
            return run();
        }
        self.job.progress().enter(name, records);
        run()?;
        self.job.progress().leave();
        Ok(())
    }

    /// Visits all pages in order of UIDs; `name` is what the pass is called where progress is shown.
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

    /// Visits all URLs in order of UIDs, with their urlkeys or without.
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

    /// Says that so much more of a pass is done, and stops where that is asked for.
    fn step(&self, done: usize) -> Result<(), Error> {
        self.job.progress().add_worked(done as u64);
        Ok(self.job.go_on()?)
    }
}
