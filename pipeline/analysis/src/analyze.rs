//! Analyses of a store: algorithms on the graph as of a date or in a window, and statistics of how the graph changes.
//!
//! ```text
//! layers -> each worker reads its pages -> [Timed] links at all dates -> [Adjacency] links at one -> algorithm
//!                                                                             values by UID -> table, summary
//! ```
//!
//! The nodes of a graph are the URLs that are there at its date ([`crate::nodes`]). A URL that was first seen later is
//! not a node. Captures of later dates therefore do not change the result at a date. [`NodeRule::All`] makes all URLs
//! nodes.
//!
//! An analysis runs on workers, as a build does. Workers are threads of one process or of several
//! ([`webstrata_engine::Cluster`]). Each worker has the pages of a range of UIDs. An analysis that sends values along
//! links sends one value per linked URL ([`slice`]). An analysis that must walk the graph walks it in worker 0
//! ([`whole`]). Worker 0 also gathers and writes the results. The layers are read once, for any number of dates.
//!
//! | file | analysis | source |
//! |---|---|---|
//! | `degrees`, `pagerank` | values that travel along links | Brin & Page 1998 |
//! | `hits`, `salsa`, `harmonic` | the same | Kleinberg 1999, Lempel & Moran 2001, Boldi & Vigna 2013 |
//! | `wcc` (on `union_find`), `scc`, `triangles` | connectivity | Pearce 2005, Schank & Wagner 2005 |
//! | `mortality`, `churn`, `growth` | links and pages that come and go | Avcular & Suel 2011, section 8 |
//! | `rot` | pages that are gone, links that lead to them | Pew Research Center 2024; Perma.cc 2014 |
//! | `locality`, `menus` | links inside hosts; links that occur together on the pages of a directory | the same |
//! | `overview` | the content of an epoch, by year and by host | |
//! | `folded` | the graph of hosts, domains or paths by period | Common Crawl, Archives Unleashed |
//! | `adjacency`, `shared_nodes`, `exchange`, `slice`, `whole`, `survey`, `found`, `output` | shared parts | |
//!
//! The head of each file states the memory of the analysis. The need of an analysis is compared with the budget before
//! anything is read.

mod adjacency;
mod churn;
mod degrees;
mod exchange;
mod folded;
mod found;
mod growth;
pub(crate) mod harmonic;
mod hits;
mod locality;
mod menus;
mod mortality;
mod output;
mod overview;
pub(crate) mod pagerank;
mod rot;
mod salsa;
mod scc;
mod shared_nodes;
mod slice;
mod survey;
mod triangles;
mod union_find;
mod wcc;
mod whole;

use crate::Error;
use crate::hosts::{Fold, UrlGroups};
use crate::outlet::Target;
use adjacency::{Adjacency, Timed};
use exchange::{Number, exchange, from_bytes, to_bytes};
use found::{Found, Values};
pub use harmonic::LOG2_REGISTERS;
use output::Output;
pub use output::{AnalyzeReport, DateReport, Fact, Sheet, SheetColumn, Top};
pub use overview::overview;
pub use pagerank::DAMPING;
pub use scc::strongly_connected;
use serde::{Deserialize, Serialize};
use shared_nodes::SharedNodes;
use slice::{Slice, TimedSlice};
use std::io::Write;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use timely::worker::Worker;
use union_find::UnionFind;
use webstrata_engine::{Error as JobError, Job, Progress, RunOptions, Stopped, gather, work_together};
use webstrata_layers::{AsOf, Counts, Failures, Links, Manifest, Page, RangeLength, Reader, Store, Uid, Window};

/// The conditions that end an iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Iterations {
    /// The maximum number of steps.
    pub most: usize,
    /// The iteration ends when all values together have moved by at most this much.
    pub tolerance: f64,
}

/// An analysis and its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Analysis {
    /// In-links and out-links of each URL.
    Degrees,
    /// PageRank: the damping factor, which is the probability that a link is followed.
    PageRank(f64, Iterations),
    /// Hubs and authorities.
    Hits(Iterations),
    /// Hubs and authorities by a walk that goes back and forth.
    Salsa,
    /// Strongly connected components.
    Scc,
    /// Weakly connected components.
    Wcc,
    /// Harmonic centrality, from counters with 2 to the power of this number registers (4 to 14).
    Harmonic(u32),
    /// Triangles.
    Triangles,
    /// Links that appear and disappear, by page, and how long they live.
    Mortality,
    /// Links gained and lost from capture to capture.
    Churn,
    /// Links inside the host and the domain of their page.
    Locality,
    /// Pages that are gone and links that lead to them; by host, domain or path, or by URL.
    Rot(Option<Fold>),
    /// Pages, captures, URLs and links by period.
    Growth(RangeLength),
    /// Links that occur together on the pages of a directory: the least share of its pages, and the least number of
    /// pages of a directory.
    Menus(f64, u64),
    /// Links between hosts, domains or paths by period.
    Folded(Fold, RangeLength),
}

impl Analysis {
    /// Returns the name of the analysis.
    pub fn name(&self) -> &'static str {
        match self {
            Analysis::Degrees => "degrees",
            Analysis::PageRank(..) => "pagerank",
            Analysis::Hits(_) => "hits",
            Analysis::Salsa => "salsa",
            Analysis::Scc => "scc",
            Analysis::Wcc => "wcc",
            Analysis::Harmonic(_) => "harmonic",
            Analysis::Triangles => "triangles",
            Analysis::Mortality => "mortality",
            Analysis::Churn => "churn",
            Analysis::Locality => "locality",
            Analysis::Rot(_) => "rot",
            Analysis::Growth(_) => "growth",
            Analysis::Menus(..) => "menus",
            Analysis::Folded(..) => "fold",
        }
    }

    /// Whether the analysis is about the graph at one date. Such an analysis can run at many dates. No result depends
    /// on captures after its date.
    pub fn is_dated(&self) -> bool {
        !matches!(self, Analysis::Mortality | Analysis::Churn | Analysis::Growth(_) | Analysis::Folded(..))
    }

    /// Whether the analysis takes links as UIDs and sends no values along them.
    fn walks(&self) -> bool {
        matches!(self, Analysis::Scc | Analysis::Wcc | Analysis::Triangles | Analysis::Menus(..))
    }

    /// Returns about how many bytes a process needs for each link and for each URL of the store.
    fn bytes(&self, many: bool) -> (u64, u64) {
        let slice = if many { 16 } else { 4 };
        match self {
            Analysis::Degrees => (slice, 48),
            Analysis::PageRank(..) => (slice, 64),
            Analysis::Hits(_) => (slice, 80),
            Analysis::Salsa => (slice, 100),
            Analysis::Wcc => (slice, 60),
            Analysis::Scc => (slice + 4, 80),
            Analysis::Triangles => (slice + 28, 64),
            Analysis::Harmonic(bits) => (slice, 64 + (2 << bits)),
            Analysis::Rot(_) => (slice, 130),
            Analysis::Growth(_) => (4, 32),
            Analysis::Menus(..) => (48, 16),
            // The number of pairs of groups is a fraction of the number of links.
            Analysis::Folded(..) => (8, 8),
            Analysis::Mortality | Analysis::Churn | Analysis::Locality => (0, 64),
        }
    }
}

/// The dates of an analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dates {
    /// One graph.
    One(Window),
    /// The graph at the end of every period from the first capture to the last, or of the periods that end between
    /// `from` and `to`.
    Every {
        /// The length of the periods.
        length: RangeLength,
        /// No period ends before this second.
        from: i64,
        /// No period begins after this second.
        to: i64,
        /// At each end, a page counts only if its latest capture is at most this many seconds old.
        max_age: Option<i64>,
        /// The failures that end a page.
        failures: Failures,
    },
}

/// The rule that selects the nodes of a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeRule {
    /// The URLs of pages that are there at the date or in the window, and the URLs that a link leads to at that time.
    #[default]
    OfDate,
    /// All URLs of the store.
    All,
}

/// The analysis, its store and its output.
#[derive(Clone, Debug)]
pub struct AnalyzeOptions {
    /// The store and the resources: workers, memory, processes.
    pub run: RunOptions,
    /// The analysis.
    pub analysis: Analysis,
    /// The dates, or the window.
    pub dates: Dates,
    /// The rule that selects the URLs that are nodes and have values.
    pub nodes: NodeRule,
    /// The target of the values: a file in the format that its name ends with ([`crate::TableFormat`]), or CSV to the
    /// stream. `None` writes no values.
    pub out: Option<Target>,
    /// Whether a column of URLs is written beside the UIDs.
    pub urls: bool,
}

/// Everything that one worker works with.
pub(crate) struct AnalysisContext<'a> {
    worker: &'a mut Worker,
    job: &'a Job,
    store: &'a Reader,
    /// The UIDs of each worker.
    ranges: &'a [Range<Uid>],
    shared: &'a ProcessState,
    nodes: NodeRule,
    /// The number of analyses that were done before.
    round: usize,
    stage: &'static str,
}

/// The state that the workers of a process share.
#[derive(Default)]
struct ProcessState {
    sets: Mutex<Option<(usize, Arc<UnionFind>)>>,
    groups: Mutex<Vec<(Fold, Arc<UrlGroups>)>>,
}

/// The number of pages between two checks for a request to stop.
const STRIDE: u64 = 1024;

impl AnalysisContext<'_> {
    /// Returns the UIDs of this worker.
    fn my_uids(&self) -> Range<Uid> {
        self.ranges[self.worker.index()].clone()
    }

    /// Returns the number of UIDs of this worker.
    fn my_urls(&self) -> usize {
        let uids = self.my_uids();
        usize::try_from(uids.end - uids.start).unwrap_or(usize::MAX)
    }

    /// Calls `visit` with each page of this worker, in the order of UIDs.
    fn each_page(&self, mut visit: impl FnMut(&Page) -> Result<(), Error>) -> Result<(), Stopped> {
        let (mut pages, mut page, mut count) = (self.store.pages(self.my_uids()), Page::default(), 0);
        let mut all = || -> Result<(), Error> {
            while pages.read(&mut page)? {
                visit(&page)?;
                count += 1;
                if count % STRIDE == 0 {
                    self.job.progress().add_worked(STRIDE);
                    self.job.go_on()?;
                }
            }
            self.job.progress().add_worked(count % STRIDE);
            Ok(())
        };
        self.job.check(all())
    }

    /// Returns the sets of URLs that all workers of this process share in a round. At first each set has one URL.
    fn union_find(&self) -> Arc<UnionFind> {
        let mut cached = self.shared.sets.lock().unwrap_or_else(PoisonError::into_inner);
        match &*cached {
            Some((round, sets)) if *round == self.round => Arc::clone(sets),
            _ => {
                let sets = Arc::new(UnionFind::new(adjacency::low(self.store.urls())));
                *cached = Some((self.round, Arc::clone(&sets)));
                sets
            }
        }
    }

    /// Returns the groups that the URLs of the store are folded into. Each process reads them once.
    fn groups(&self, fold: Fold) -> Result<Arc<UrlGroups>, Stopped> {
        let mut cached = self.shared.groups.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, groups)) = cached.iter().find(|(by, _)| *by == fold) {
            return Ok(Arc::clone(groups));
        }
        let groups = Arc::new(self.job.check(UrlGroups::read(self.store, fold, self.job))?);
        cached.push((fold, Arc::clone(&groups)));
        Ok(groups)
    }

    /// Waits until all workers have arrived here.
    fn wait(&mut self) -> Result<(), Stopped> {
        let peers = self.worker.peers();
        exchange(self, vec![vec![0]; peers]).map(|_| ())
    }

    /// Brings the numbers of all workers to worker 0, in the order of workers. Other workers get `None`.
    fn gather<T: Number>(&mut self, numbers: &[T]) -> Result<Option<Vec<T>>, Stopped> {
        let peers = self.worker.peers();
        if peers == 1 {
            return Ok(Some(numbers.to_vec()));
        }
        let mut outgoing = vec![Vec::new(); peers];
        outgoing[0] = to_bytes(numbers);
        let received = exchange(self, outgoing)?;
        Ok((self.worker.index() == 0).then(|| received.iter().flat_map(|bytes| from_bytes::<T>(bytes)).collect()))
    }

    /// Brings one value of each worker to worker 0. Other workers get an empty list.
    fn gather_values<T: Serialize + for<'a> Deserialize<'a>>(&mut self, value: &T) -> Result<Vec<T>, Stopped> {
        let mut outgoing = vec![Vec::new(); self.worker.peers()];
        outgoing[0] = self.job.check(serde_json::to_vec(value).map_err(JobError::State))?;
        let received = exchange(self, outgoing)?;
        let values = received.iter().filter(|bytes| !bytes.is_empty());
        let values = values.map(|bytes| serde_json::from_slice(bytes).map_err(JobError::State));
        self.job.check(values.collect::<Result<Vec<T>, JobError>>())
    }
}

/// Returns the number of elements with each label, by label.
fn sizes(labels: &[u32]) -> Vec<u64> {
    let mut sizes = vec![0; labels.len()];
    labels.iter().for_each(|&label| sizes[label as usize] += 1);
    sizes
}

/// The bytes that a worker and a process need besides the analyzed data: row groups and blocks in transit.
const FIXED_BYTES: u64 = 64 << 20;

/// Analyzes a store and returns the report.
///
/// In a cluster, every process calls this function with the same options, except for its number and its memory. Process
/// 0 writes the values, and all processes return the report. `stream` takes the output of [`Target::Stream`].
///
/// # Errors
/// A store that cannot be read or is damaged, more URLs or links than fit into the memory or into 32 bits, a process
/// that is gone, a target that cannot be written.
pub fn analyze(
    options: &AnalyzeOptions,
    stream: impl Write + Send + 'static,
    progress: &Progress,
) -> Result<AnalyzeReport, Error> {
    let run = &options.run;
    let workers = run.workers.max(1);
    let (process, processes) = (run.cluster.as_ref().map_or(0, |cluster| cluster.process), run.processes());
    let store = Store::open(&run.store)?;
    let dates = dates(options.dates, store.manifest())?;
    if dates.len() > usize::from(u16::MAX) {
        return Err(Error::Internal("more than 65,535 dates cannot be analyzed at once"));
    }
    fits(run, store.manifest(), options.analysis.bytes(dates.len() > 1))?;
    let epoch = store.manifest().epoch;
    let job = run.job(progress)?;
    let reader = Arc::new(Reader::new(store, 32 << 20).for_scans(workers));
    let ranges = reader.ranges(workers * processes)?;
    let output = match &options.out {
        Some(target) if process == 0 => Some(Mutex::new(Some(Output::new(target, stream, options, epoch)?))),
        _ => None,
    };
    let AnalyzeOptions { analysis, nodes, .. } = *options;
    let plan =
        Plan { job: job.clone(), reader, ranges, dates, nodes, analysis, output, shared: ProcessState::default() };
    let identity = format!("{epoch} {analysis:?} {:?} {nodes:?}", options.dates);
    let done = work_together(run, &job, options.analysis.name(), &identity, move |worker| plan.work(worker));
    done.map_err(Error::without_state)
}

/// Rejects a store that needs more memory than the budget. `by` has the bytes for each link and for each URL.
fn fits(run: &RunOptions, manifest: &Manifest, by: (u64, u64)) -> Result<(), Error> {
    let Counts { links, urls, .. } = manifest.counts;
    if u32::try_from(urls).is_err() {
        return Err(Error::Internal("more than 4,294,967,295 URLs cannot be analyzed at once"));
    }
    let workers = run.workers.max(1) as u64;
    // Slices are divided among the processes. A graph that is walked and results that are written are whole in process
    // 0.
    let is_first = run.cluster.as_ref().is_none_or(|cluster| cluster.process == 0);
    let parts = if is_first { 1 } else { run.processes() as u64 };
    let needed = (links * by.0 + urls * by.1) / parts + FIXED_BYTES * (1 + workers);
    match usize::try_from(needed).unwrap_or(usize::MAX) {
        needed if needed > run.memory_max => Err(Error::GraphTooLarge { given: run.memory_max, needed, links, urls }),
        _ => Ok(()),
    }
}

/// Returns the window of each date. Each window has its time if there are several dates.
fn dates(dates: Dates, manifest: &Manifest) -> Result<Vec<(Option<i64>, Window)>, Error> {
    let (length, from, to, max_age, failures) = match dates {
        Dates::One(window) => return Ok(vec![(None, window)]),
        Dates::Every { length, from, to, max_age, failures } => (length, from, to, max_age, failures),
    };
    let (Some(first), Some(last)) = (manifest.counts.first_time, manifest.counts.last_time) else {
        return Err(Error::NoDates);
    };
    let (mut start, mut ends) = (length.start(first.max(from)), Vec::new());
    while start <= last.min(to) && ends.len() <= usize::from(u16::MAX) {
        let end = length.end(start);
        ends.push((Some(end), Window::AsOf(AsOf { failures, ..AsOf::new(end).within(max_age) })));
        start = end + 1;
    }
    if ends.is_empty() { Err(Error::NoDates) } else { Ok(ends) }
}

/// The links at all dates, in the form that an analysis takes.
enum TimedGraph {
    /// Links as UIDs.
    Uids(Timed),
    /// Links as mirrors, for an analysis that sends values along links.
    Mirrors(TimedSlice),
}

/// A [`TimedGraph`] at one date.
enum DateGraph {
    Uids(Adjacency),
    Mirrors(Slice),
}

impl TimedGraph {
    /// Returns the graph at one of several dates.
    fn at(&self, date: usize) -> DateGraph {
        match self {
            Self::Uids(timed) => DateGraph::Uids(timed.at(date)),
            Self::Mirrors(slice) => DateGraph::Mirrors(slice.at(date)),
        }
    }

    /// Returns the graph at the only date, or at one of several dates.
    fn into_at(self, date: usize) -> DateGraph {
        match self {
            Self::Uids(timed) => DateGraph::Uids(timed.into_at(date)),
            Self::Mirrors(slice) => DateGraph::Mirrors(slice.into_at(date)),
        }
    }
}

impl DateGraph {
    /// Returns the nodes of the graph. With `with_gone`, pages that are gone are nodes, too.
    fn nodes(&self, context: &mut AnalysisContext<'_>, with_gone: bool) -> Result<SharedNodes, Stopped> {
        let first = context.my_uids().start;
        let uid = |page: u32| first + u64::from(page);
        match self {
            Self::Uids(graph) => {
                let pages = graph.alive.iter().copied().map(uid);
                SharedNodes::of(context, pages, graph.links.iter().copied())
            }
            Self::Mirrors(Slice { graph, mirrors }) => {
                let marked = graph.marked.iter().filter(|_| with_gone).map(|mark| mark.0);
                let pages = graph.alive.iter().copied().chain(marked).map(uid);
                SharedNodes::of(context, pages, graph.links.iter().map(|link| mirrors.uids[link.index()]))
            }
        }
    }
}

/// The data that all workers of a process know.
struct Plan {
    job: Job,
    reader: Arc<Reader>,
    ranges: Vec<Range<Uid>>,
    dates: Vec<(Option<i64>, Window)>,
    nodes: NodeRule,
    analysis: Analysis,
    /// Present in process 0 only.
    output: Option<Mutex<Option<Output>>>,
    shared: ProcessState,
}

impl Plan {
    /// Runs all the work of one worker.
    fn work(&self, worker: &mut Worker) -> Result<AnalyzeReport, Stopped> {
        let (job, store) = (&self.job, &*self.reader);
        let index = worker.index();
        let reports = index.is_multiple_of(job.workers());
        let stage = self.analysis.name();
        let (ranges, shared, nodes) = (&self.ranges, &self.shared, self.nodes);
        let mut context = AnalysisContext { worker, job, store, ranges, shared, nodes, round: 0, stage };
        if reports {
            let pages = store.store().manifest().counts.pages;
            job.progress().enter("read", pages * job.workers() as u64 / self.ranges.len() as u64);
        }
        let windows: Vec<Window> = self.dates.iter().map(|date| date.1).collect();
        let mut surveyed = match (self.analysis, &windows[..]) {
            (Analysis::Mortality, [window, ..]) => Some(mortality::mortality(&mut context, *window)?),
            (Analysis::Churn, [window, ..]) => Some(churn::churn(&mut context, *window)?),
            (Analysis::Growth(length), _) => Some(growth::growth(&mut context, length)?),
            (Analysis::Folded(fold, length), [window, ..]) => {
                Some(folded::folded(&mut context, fold, length, *window)?)
            }
            _ => None,
        };
        let mut timed = match surveyed {
            Some(_) => None,
            None if self.analysis.walks() => Some(TimedGraph::Uids(adjacency::read(&context, &windows)?)),
            None => {
                let timed = adjacency::read(&context, &windows)?;
                Some(TimedGraph::Mirrors(TimedSlice::of(&mut context, timed)?))
            }
        };
        if reports {
            job.progress().leave();
            job.progress().enter(stage, 0);
        }
        let output = self.output.as_ref().filter(|_| index == 0);
        let mut output = output.and_then(|output| output.lock().ok()?.take());
        let mut report = AnalyzeReport::new(store, self.analysis);
        let mut warm: Option<Vec<f64>> = None;
        for (date, (at, _)) in self.dates.iter().enumerate() {
            context.round = date;
            let graph = match (&timed, date + 1 == self.dates.len()) {
                (Some(_), true) => timed.take().map(|timed| timed.into_at(date)),
                (Some(timed), false) => Some(timed.at(date)),
                (None, _) => None,
            };
            let found = match (surveyed.take(), graph) {
                (Some(found), _) => found,
                (None, Some(graph)) => {
                    let nodes = graph.nodes(&mut context, matches!(self.analysis, Analysis::Rot(_)))?;
                    self.at_date(&mut context, graph, &nodes, &mut warm)?.of_nodes(nodes)
                }
                (None, None) => break,
            };
            let found = found.gathered(&mut context)?;
            if index == 0 {
                job.check(report.add(store, *at, &found))?;
                if let Some(output) = &mut output {
                    job.check(output.write(store, *at, &found, job))?;
                }
            }
        }
        if let Some(output) = output {
            report.rows = job.check(output.finish())?;
        }
        if reports {
            job.progress().leave();
        }
        let report = (index == 0).then_some(report);
        let reports = gather(context.worker, job, None, &report)?;
        reports.into_iter().flatten().next().ok_or(Stopped)
    }

    /// Runs the algorithm on the graph of one date. PageRank begins with the ranks of the date before.
    fn at_date(
        &self,
        context: &mut AnalysisContext<'_>,
        graph: DateGraph,
        nodes: &SharedNodes,
        warm: &mut Option<Vec<f64>>,
    ) -> Result<Found, Stopped> {
        let slice = match graph {
            DateGraph::Mirrors(slice) => slice,
            DateGraph::Uids(graph) => {
                return match self.analysis {
                    Analysis::Wcc => wcc::wcc(context, &graph, nodes),
                    Analysis::Triangles => triangles::triangles(context, graph, nodes),
                    Analysis::Menus(share, pages) => menus::menus(context, &graph, share, pages),
                    Analysis::Scc => scc::scc(context, graph, nodes),
                    _ => context.job.check(Err(Error::Internal("an analysis without a computation over UIDs"))),
                };
            }
        };
        let slice = &slice;
        match self.analysis {
            Analysis::PageRank(damping, iterations) => {
                let found = pagerank::pagerank(context, slice, nodes, damping, iterations, warm.take())?;
                if let (Some((_, Values::Reals(ranks))), true) = (found.columns.first(), self.dates.len() > 1) {
                    *warm = Some(ranks.clone());
                }
                Ok(found)
            }
            // Hubs of an earlier date would hide a part of the graph that was not there then and has become dominant.
            Analysis::Hits(iterations) => hits::hits(context, slice, iterations),
            Analysis::Salsa => salsa::salsa(context, slice),
            Analysis::Harmonic(bits) => harmonic::harmonic(context, slice, bits),
            Analysis::Locality => locality::locality(context, slice),
            Analysis::Rot(fold) => rot::rot(context, slice, fold),
            Analysis::Degrees => degrees::degrees(context, slice),
            _ => context.job.check(Err(Error::Internal("an analysis without a computation over links"))),
        }
    }
}
