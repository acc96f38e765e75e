//! The jobs `build` and `update`: read crawl files, write one row of layers, and commit a new epoch.
//!
//! ```text
//! inputs -> ingest -> pages -> (sources) -> uids -> replace -> outlinks -> inlinks -> (held) -> commit
//! ```
//!
//! The same set of captures gives the same bytes for any number of workers and processes and any order of the inputs.
//! All sorting uses keys from the data, and the partitions follow from the set of URLs.
//!
//! A build makes an epoch with one row. An update adds a row to the rows of the store: `uids` finds the UIDs of URLs
//! that the store knows and gives the other URLs the next numbers, and `outlinks` compares pages with their records in
//! the store ([`crate::stages::outlinks::revisits`]).

use crate::Error;
use crate::meaning::{Digests, Meaning, MeaningOptions};
use crate::row::row_of;
use crate::stages::held::{entries, held};
use crate::stages::ingest::{Inputs, ingest, record_of_list, share};
use crate::stages::inlinks::inlinks;
use crate::stages::outlinks::{Origin, outlinks};
use crate::stages::pages::pages;
use crate::stages::replace::replace;
use crate::stages::sources::sources;
use crate::stages::state::BuildState;
use crate::stages::uids::uids;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use timely::worker::Worker;
use webstrata_datasets::{
    Example, Finding, GenerateOptions, Input, LinkKinds, NameList, RankReader, Tally, Www, graph_inputs,
    missing_containers, ranks_in, without_secrets,
};
use webstrata_engine::{
    Committing, Context, Error as JobError, Identity, JobStage, Progress, RunOptions, Stopped, Work,
};
use webstrata_layers::{
    Counts, Effort, EpochId, InputRecord, Links, Location, NewEpoch, Provenance, RangeLength, Store, read_inputs,
    write_inputs,
};

/// The options that make files of a web graph a release ([`webstrata_datasets::graph_inputs`]).
#[derive(Clone, Copy, Debug)]
pub struct GraphOptions {
    /// The time of all captures, seconds since 1970.
    pub time: i64,
    /// The meaning of a leading `www` of a host. `None` means the option of the store, or [`Www::Fold`] if it has none.
    pub www: Option<Www>,
}

/// The options of a build or an update.
#[derive(Clone, Debug)]
pub struct BuildOptions {
    /// The store, the workers and the memory.
    pub run: RunOptions,
    /// Crawl files, directories of crawl files, patterns, or `-`; every process of a cluster gets the same list.
    pub inputs: Vec<PathBuf>,
    /// Lists of more inputs. The store names them among its inputs.
    pub lists: Vec<NameList>,
    /// If the inputs are a release of a web graph, its time and the meaning of its hosts.
    pub graph: Option<GraphOptions>,
    /// Generated crawls to read in addition.
    pub generate: Vec<GenerateOptions>,
    /// Whether the job is an update, which adds a row to the store.
    pub update: bool,
    /// Whether a build may replace an existing store: the new epoch then has only the captures that this build reads. A
    /// build without `replace` fails if a store exists, unless the build resumes after it was killed.
    pub replace: bool,
    /// The kinds of links that count. `None` means anchors for a build, and the kinds of the store for an update.
    pub kinds: Option<LinkKinds>,
    /// The maximum length of a URL in bytes; pages and links with longer URLs are left out. `None` means
    /// [`webstrata_datasets::URL_BYTES`] for a build, and the maximum of the store for an update.
    pub url_bytes_max: Option<usize>,
    /// The length of the time ranges of in-links. An update uses the length of the store.
    pub in_range: RangeLength,
    /// The least number of pages that must link to a URL that was never captured; other such URLs are left out. 0 and 1
    /// leave out no URL. `None` means 0 for a build, and the number of the store for an update. All pages of the store
    /// count, whichever update added them.
    pub min_sources: Option<u64>,
    /// The approximate number of URLs in a partition. `None` means [`crate::PARTITION_URLS`] for a build, and the
    /// number of the store for an update.
    pub partition_urls: Option<u64>,
    /// The payload digests to keep. `None` means all for a build, and those that the store keeps for an update.
    pub digests: Option<Digests>,
    /// Whether inputs may bring back captures and links that were taken out of the store ([`crate::remove`]).
    pub with_removed: bool,
    /// How strongly the row is compressed.
    pub effort: Effort,
}

impl BuildOptions {
    /// A build of crawl files with the defaults of `webstrata build`.
    pub fn new(run: RunOptions, inputs: Vec<PathBuf>) -> Self {
        Self {
            run,
            inputs,
            lists: Vec::new(),
            graph: None,
            generate: Vec::new(),
            update: false,
            replace: false,
            kinds: None,
            url_bytes_max: None,
            in_range: RangeLength::Month,
            min_sources: None,
            partition_urls: None,
            digests: None,
            with_removed: false,
            effort: Effort::default(),
        }
    }

    /// The inputs that are given, and those that lists name.
    fn named(&self) -> Vec<PathBuf> {
        self.inputs.iter().chain(self.lists.iter().flat_map(|list| &list.names)).cloned().collect()
    }
}

/// The report of a build or an update, for all processes together.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BuildReport {
    /// The number of the new epoch; if an update found nothing new, the number of the current epoch.
    pub epoch: u64,
    /// The counts of the new row.
    pub counts: Counts,
    /// The findings in the inputs: damage, and parts that rules left out.
    pub tally: Tally,
    /// The number of partitions of the row.
    pub partitions: usize,
    /// The work (URLs, out-links and in-links) of the partition with the most work, divided by the mean over all
    /// partitions.
    pub largest_over_mean: f64,
    /// The number of captures that were read.
    pub captures_read: u64,
    /// The number of captures, by page and second, that the store already had.
    pub captures_stored: u64,
}

/// The work of a build or an update.
struct Build {
    /// The store that the job writes.
    store: Location,
    /// The paths of the inputs, as given by the caller.
    paths: Vec<PathBuf>,
    inputs: Arc<Inputs>,
    /// The lists that named some of the inputs.
    lists: Vec<InputRecord>,
    update: bool,
    replace: bool,
    meaning: Meaning,
    in_range: RangeLength,
    effort: Effort,
    /// The epoch with the removals that were kept out of the inputs; `None` if no store existed.
    kept_out_by: Option<EpochId>,
}

impl Build {
    /// Returns the provenance of the current epoch, with all removals so far. Fails if captures or links were taken out
    /// of the store after `kept_out_by`, because they were not kept out of the inputs.
    fn removals(&self, current: Option<EpochId>, context: &Context) -> Result<Provenance, Error> {
        let Some(current) = current else { return Ok(Provenance::default()) };
        let provenance = Store::open_known(context.row.location(), current)?.manifest().provenance.clone();
        let known = self.kept_out_by.map(|known| known.epoch);
        if provenance.removed_in > known { Err(Error::RemovedMeanwhile) } else { Ok(provenance) }
    }

    fn in_range(&self, context: &Context) -> RangeLength {
        context.base.as_ref().map_or(self.in_range, |base| base.in_range())
    }
}

/// The stages, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Ingest,
    Pages,
    Sources,
    Uids,
    Replace,
    Outlinks,
    Inlinks,
    Held,
}

impl JobStage for Stage {
    const ALL: &'static [Self] = &[
        Self::Ingest,
        Self::Pages,
        Self::Sources,
        Self::Uids,
        Self::Replace,
        Self::Outlinks,
        Self::Inlinks,
        Self::Held,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Ingest => "ingest",
            Self::Pages => "pages",
            Self::Sources => "sources",
            Self::Uids => "uids",
            Self::Replace => "replace",
            Self::Outlinks => "outlinks",
            Self::Inlinks => "inlinks",
            Self::Held => "held",
        }
    }
}

impl Work for Build {
    type Report = BuildReport;
    type Stage = Stage;
    type State = BuildState;

    const NAME: &'static str = "build";

    fn reads_store(&self) -> bool {
        self.update
    }

    fn may_begin(&self, current: impl FnOnce() -> Result<Option<EpochId>, JobError>) -> Result<(), JobError> {
        if self.update || self.replace {
            return Ok(());
        }
        match current()? {
            Some(EpochId { epoch, .. }) => Err(Error::StoreExists { store: self.store.to_string(), epoch }.into()),
            None => Ok(()),
        }
    }

    fn effort(&self) -> Effort {
        self.effort
    }

    fn input_bytes(&self, stage: Stage, state: &BuildState) -> u64 {
        match stage {
            Stage::Pages => state.captures.bytes(),
            Stage::Uids => state.urls.bytes(),
            Stage::Replace => state.requests.bytes() + state.uids.bytes() + state.pages.bytes(),
            Stage::Outlinks => state.page_records.bytes(),
            Stage::Inlinks => state.in_links.bytes(),
            Stage::Held => state.held_links.bytes(),
            Stage::Ingest | Stage::Sources => 0,
        }
    }

    fn run(&self, worker: &mut Worker, context: &Context, stage: Stage, state: &mut BuildState) -> Result<(), Stopped> {
        let job = &context.job;
        match stage {
            Stage::Ingest => ingest(worker, context, &self.inputs, state),
            Stage::Pages => pages(worker, job, state),
            // URLs that only left-out links name do not belong to the store.
            Stage::Sources if self.meaning.min_sources > 1 || state.left_out > 0 => {
                sources(worker, context, self.meaning.min_sources, state)
            }
            Stage::Sources => Ok(()),
            Stage::Uids => uids(worker, context, self.meaning.partition_urls, state),
            Stage::Replace => replace(worker, context, state),
            Stage::Outlinks => {
                let from = (Origin::Inputs(self.meaning.digests), &self.inputs.kept_out);
                outlinks(worker, context, self.in_range(context), from, state)
            }
            Stage::Inlinks => inlinks(worker, context, state),
            Stage::Held if self.meaning.min_sources > 1 => held(worker, context, state),
            Stage::Held => Ok(()),
        }
    }

    fn commit(&self, writer: Committing, context: &Context, states: &[BuildState]) -> Result<BuildReport, JobError> {
        let (mut tally, mut captures_read, mut captures_stored) = (Tally::default(), 0, 0);
        for state in states {
            tally.add(state.row.tally.clone());
            captures_read += state.captures_read;
            captures_stored += state.captures_stored;
        }
        let is_nothing = |finding: Finding| finding.is_damage() || finding.is_file() || finding.is_remark();
        if captures_read == 0 && tally.counts().all(|(finding, _)| is_nothing(finding)) {
            if let Committing::Open(writer) = writer {
                writer.abandon(&context.row)?;
            }
            let named = tally.named().map(|(finding, url)| Example::of_url(finding, url));
            let first = [tally.examples(), tally.files()].concat().into_iter().cloned().chain(named).collect();
            let inputs = states.iter().map(|state| state.inputs.len() as u64).sum();
            return Err(Error::NothingRead { paths: self.paths.clone(), inputs, first }.into());
        }
        let (entry, largest_over_mean) = row_of(context, 1, &states.iter().map(|state| &state.row).collect::<Vec<_>>());
        let (counts, partitions) = (entry.counts, entry.partitions.len());
        let epoch = match writer {
            Committing::Done(epoch) => epoch,
            // Nothing is new to the store: its epoch stays.
            Committing::Open(writer) if self.update && counts.pages == 0 && counts.urls == 0 => {
                let epoch = writer.current().map_or(0, |id| id.epoch);
                writer.abandon(&context.row)?;
                epoch
            }
            Committing::Open(writer) => {
                let manifest = context.base.as_ref().map(|base| base.store().manifest());
                let (mut rows, mut inputs) = manifest.map_or_else(Default::default, |manifest| {
                    (manifest.rows.clone(), manifest.provenance.inputs.clone())
                });
                rows.push(entry);
                let mut read: Vec<InputRecord> = states.iter().flat_map(|state| state.inputs.clone()).collect();
                let missing_containers = missing(context, &tally, &read)?;
                read.extend(self.lists.iter().cloned());
                inputs.push(write_inputs(&context.row, read)?);
                let version = env!("CARGO_PKG_VERSION").to_owned();
                let options = self.meaning.options();
                let held = entries(states.iter().map(|state| &state.held));
                let removals = self.removals(writer.current(), context)?;
                let provenance = Provenance { version, options, inputs, held, missing_containers, ..removals };
                writer.commit(NewEpoch { rows, in_range: self.in_range(context), provenance, translation: None })?
            }
        };
        Ok(BuildReport { epoch, counts, tally, partitions, largest_over_mean, captures_read, captures_stored })
    }

    fn is_final(error: &JobError) -> bool {
        let JobError::Body(error) = error else { return false };
        matches!(error.downcast_ref(), Some(Error::NothingRead { .. }))
    }
}

/// The archives that hold originals of revisits, in the store or among what was read, and that were never an input.
fn missing(context: &Context, tally: &Tally, read: &[InputRecord]) -> Result<BTreeSet<String>, JobError> {
    let base = context.base.as_ref().map(|base| base.store());
    let before = base.map(|store| &store.manifest().provenance);
    let named = || before.into_iter().flat_map(|before| before.missing_containers.iter().map(String::as_str));
    let missing = missing_containers(tally.containers().chain(named()), read.iter().map(|input| &*input.name));
    let (Some(store), Some(before), false) = (base, before, missing.is_empty()) else { return Ok(missing) };
    let mut known = Vec::new();
    for entry in &before.inputs {
        known.extend(read_inputs(store, entry)?);
    }
    Ok(missing_containers(missing.iter().map(String::as_str), known.iter().map(|input| &*input.name)))
}

/// Builds a store, or adds a row to a store; see the head of this file and [`webstrata_engine::run()`].
///
/// # Errors
/// - Inputs do not exist or cannot be read.
/// - Another process writes the store, a disk is full, or a process is gone.
/// - An update finds no store, or a build that makes a store finds one ([`Error::StoreExists`]).
/// - No record of the inputs can be read ([`Error::NothingRead`]); no store and no epoch is made.
///
/// Damage inside inputs is counted in the report. After an error, the store answers as before, and the same call
/// resumes after the last finished stage.
///
/// ```
/// use webstrata_engine::{Progress, RunOptions};
/// use webstrata_layers::{Links, Reader, Store, Window};
/// use webstrata_pipeline::{BuildOptions, build};
///
/// let dir = tempfile::tempdir()?;
/// let (crawl, store) = (dir.path().join("crawl.jsonl"), dir.path().join("store"));
/// let capture = r#"{"url":"http://example.org/","ts":"20080601000000","links":["http://example.com/"]}"#;
/// std::fs::write(&crawl, capture)?;
/// let report = build(&BuildOptions::new(RunOptions::new(&store), vec![crawl]), &Progress::default())?;
/// assert_eq!((report.counts.urls, report.counts.captures), (2, 1));
///
/// let reader = Reader::new(Store::open(&store)?, 64 << 20);
/// let page = reader.uid("http://example.org/")?.expect("a URL of the store");
/// let links = reader.out_links(page, Window::ALWAYS)?;
/// assert_eq!(reader.urls_of(&links)?, ["http://example.com/"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn build(options: &BuildOptions, progress: &Progress) -> Result<BuildReport, Error> {
    let &BuildOptions { ref run, update, replace, in_range, effort, .. } = options;
    let meaning = meaning_of(options)?;
    // Captures and links that were taken out also stay out of a build that replaces the store.
    let before = match Store::open(&run.store) {
        Ok(store) => Some(store),
        Err(webstrata_layers::Error::NotAStore { .. }) if !update => None,
        Err(error) => return Err(error.into()),
    };
    let kept_out_by = before.as_ref().map(Store::id);
    let kept_out = before.filter(|_| !options.with_removed).map(|store| store.manifest().removals());
    let kept_out = kept_out.unwrap_or_default();
    let (process, processes) = run.cluster.as_ref().map_or((0, 1), |it| (it.process, it.hosts.len()));
    let named = options.named();
    let paths: Vec<PathBuf> = named.iter().map(|path| without_secrets(path)).collect();
    let mut inputs = match options.graph {
        Some(graph) => graph_inputs(&named, graph.time, meaning.www.unwrap_or_default())?,
        None => webstrata_datasets::inputs(&named)?,
    };
    inputs.extend(options.generate.iter().flat_map(|&crawl| webstrata_datasets::generated(crawl)));
    if inputs.is_empty() {
        return Err(Error::NothingRead { paths, inputs: 0, first: Vec::new() });
    }
    let files: Vec<_> = inputs.iter().map(|input| (input.path(), &input.part, input.bytes)).collect();
    let identity = Identity {
        bytes: format!("{update} {meaning:?} {in_range:?} {effort:?} {files:?} {kept_out:?}"),
        times: times(&inputs),
    };
    let inputs = share(inputs, process, processes);
    progress.set_inputs(inputs.len() as u64, inputs.iter().map(|input| input.bytes).sum());
    let work = Build {
        store: run.store.clone(),
        paths,
        inputs: Arc::new(Inputs { inputs, meaning, kept_out, next: 0.into() }),
        lists: options.lists.iter().map(record_of_list).collect(),
        update,
        replace,
        meaning,
        in_range,
        effort,
        kept_out_by,
    };
    Ok(webstrata_engine::run(work, &identity, run, progress)?)
}

/// Returns the options of the store that a job makes or updates.
fn meaning_of(options: &BuildOptions) -> Result<Meaning, Error> {
    let &BuildOptions { ref run, kinds, url_bytes_max, min_sources, partition_urls, digests, .. } = options;
    let www = options.graph.and_then(|graph| graph.www);
    let requested = MeaningOptions { kinds, min_sources, url_bytes_max, partition_urls, www, digests };
    let mut meaning = if options.update {
        let store = Store::open(&run.store)?;
        Meaning::of_store(&run.store, &store.manifest().provenance.options, requested)?
    } else {
        requested.or(Meaning::default())
    };
    if options.graph.is_some() {
        meaning.www.get_or_insert_default();
    }
    Ok(meaning)
}

/// Opens the ranks among the inputs of a build that reads a web graph. Names of hosts mean the same as in the build.
///
/// # Errors
/// The inputs do not exist or cannot be read; an update finds no store, or one with another meaning of names.
pub fn ranks(options: &BuildOptions) -> Result<RankReader, Error> {
    let www = meaning_of(options)?.www.unwrap_or_default();
    Ok(ranks_in(&options.named(), www)?)
}

/// Returns the times at which the inputs were changed, as text.
fn times(inputs: &[Input]) -> String {
    let changed: Vec<_> = inputs.iter().map(Input::version).collect();
    // What can be read only once may differ at every start, so the current time makes the text unique.
    let once = inputs.iter().any(Input::is_read_once).then(std::time::SystemTime::now);
    format!("{changed:?} {once:?}")
}
