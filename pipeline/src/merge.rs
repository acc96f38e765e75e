//! The job `merge`: merges the newest rows of a store into one row, in one pass over each layer (Avcular & Suel 2011,
//! section 5; Najork 2009, section 4).
//!
//! ```text
//! url layers -> sample -> urls -----------> outlinks -> inlinks -> held -> commit
//!                          \ translation ->/          ->/
//! ```
//!
//! Layers are already sorted by UID, and therefore by key inside each row. A partition of the new row is one interval
//! of each old row. One worker merges a partition from these intervals, without a sort and without an exchange.
//! `sample` finds the URLs that nothing uses any more and the boundaries of the partitions. `urls` merges URLs by key,
//! which gives each old UID its new UID ([`Translation`]). `outlinks` and `inlinks` merge records by new UID, join the
//! records of one URL ([`webstrata_layers::record::join`]), and write them. If all rows are merged, the new row has the
//! bytes of a store that was built at once from everything that was added and not taken out again ([`crate::remove`]).
//!
//! Memory: the translation, which takes 9 bytes a shift (UIDs that stay together), one row group of each row that is
//! read, and the row groups that `sample` decoded, as far as the cache of the reader holds them.

mod held;
mod inlinks;
mod outlinks;
mod sample;
mod streams;
mod translation;
mod urls;

use crate::Error;
use crate::meaning::{Meaning, MeaningOptions};
use crate::row::{RowState, row_of};
use crate::stages::held::entries;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use timely::worker::Worker;
use translation::Translation;
use webstrata_datasets::Tally;
use webstrata_engine::{
    Committing, Context, Error as JobError, Identity, JobStage, JobState, Progress, RunOptions, Runs, Scratch, Stopped,
    Work, wire,
};
use webstrata_layers::held::HeldEntry;
use webstrata_layers::{
    Counts, Effort, FileEntry, NewEpoch, Provenance, Reader, RowEntry, Store, TranslationWriter, Uid,
};

/// The options of a merge.
#[derive(Clone, Debug)]
pub struct MergeOptions {
    /// The store, the workers and the memory.
    pub run: RunOptions,
    /// The number of newest rows to merge; `None` for all rows.
    pub rows: Option<usize>,
    /// The approximate number of URLs in a partition from now on; `None` for the number of the store.
    pub partition_urls: Option<u64>,
    /// How strongly the row is compressed. A single row is written anew to be compact.
    pub effort: Effort,
}

impl MergeOptions {
    /// A merge of all rows with the defaults of `webstrata merge`.
    pub fn new(run: RunOptions) -> Self {
        Self { run, rows: None, partition_urls: None, effort: Effort::default() }
    }
}

/// The report of a merge, for all processes together.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MergeReport {
    /// The number of the new epoch; if there was nothing to merge, the number of the current epoch.
    pub epoch: u64,
    /// The number of rows that were merged.
    pub rows: usize,
    /// The counts of the new row.
    pub counts: Counts,
    /// The number of partitions of the new row.
    pub partitions: usize,
    /// The number of URLs that were dropped because nothing used them.
    pub dropped: u64,
    /// The counts of what was left out of pages.
    pub tally: Tally,
}

/// Returns the number of newest rows to merge after an update, by the schedule of Najork 2009 (section 4): after update
/// number e, with m trailing zeros in e, the m + 1 newest rows. The code uses an equivalent rule that holds whatever
/// was merged before: a row is merged if it holds no more updates than all newer rows together. Returns 1 if nothing is
/// to be merged.
pub fn scheduled(rows: &[RowEntry]) -> usize {
    let (mut count, mut updates) = (0, 0);
    for row in rows.iter().rev() {
        if count > 0 && row.updates > updates {
            break;
        }
        updates += row.updates;
        count += 1;
    }
    count.max(1)
}

/// The state of a worker of a merge after a stage.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct MergeState {
    row: RowState,
    /// The number of rows that become one row.
    rows_merged: usize,
    /// The first keys of all partitions except the first; from `sample` to `urls`.
    boundaries: Vec<Box<[u8]>>,
    /// The UIDs that nothing uses; from `sample` to `urls`.
    unused: Vec<Uid>,
    /// The number of unused UIDs, on one of the workers only.
    dropped: u64,
    /// The replacement of UIDs, the same on every worker; from `urls` on.
    translation: Runs,
    /// The links that are held from now on; from `outlinks` to `held`.
    held_records: Runs,
    /// The files of held links that this worker has written; `None` if the files of the store stay.
    held: Option<Vec<HeldEntry>>,
    /// The corrections of in-link records of the partitions that this worker writes; from `outlinks` to `inlinks`.
    corrections: Runs,
}

impl JobState for MergeState {
    fn collections(&self) -> Vec<&Runs> {
        vec![&self.translation, &self.corrections, &self.held_records]
    }

    fn files(&self) -> &[FileEntry] {
        &self.row.files
    }
}

/// The stages, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Sample,
    Urls,
    Outlinks,
    Inlinks,
    Held,
}

impl JobStage for Stage {
    const ALL: &'static [Self] = &[Self::Sample, Self::Urls, Self::Outlinks, Self::Inlinks, Self::Held];

    fn name(self) -> &'static str {
        match self {
            Self::Sample => "sample",
            Self::Urls => "urls",
            Self::Outlinks => "outlinks",
            Self::Inlinks => "inlinks",
            Self::Held => "held",
        }
    }
}

/// The work of a merge.
struct Merge {
    /// The number of newest rows to merge; `None` for all rows.
    rows: Option<usize>,
    /// The options of the store and of its next epoch.
    meaning: Meaning,
    effort: Effort,
    /// The translation of this process, shared by the stages.
    translation: Mutex<Option<Arc<Translation>>>,
}

impl Merge {
    /// Whether this number of rows stays as it is.
    fn keeps(&self, rows: usize) -> bool {
        rows < 1 || (rows < 2 && self.effort == Effort::Quick)
    }

    /// Returns the indexes of the merged rows in the store.
    fn rows(&self, store: &Reader) -> Range<usize> {
        let rows = store.rows();
        rows - self.rows.unwrap_or(rows).min(rows)..rows
    }

    /// Returns the replacement of UIDs; a process reads the translation once.
    fn translation(&self, context: &Context, store: &Reader, state: &MergeState) -> Result<Arc<Translation>, Error> {
        let mut cached = self.translation.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cached) = &*cached {
            return Ok(Arc::clone(cached));
        }
        let below = self.below(store);
        let mut translation = Translation::new(below);
        for_each_run(context.job.scratch(), state, |old, new, count| {
            translation.push(old, new, count);
            Ok(())
        })?;
        Ok(Arc::clone(cached.insert(Arc::new(translation))))
    }

    /// Returns the first UID that may change.
    fn below(&self, store: &Reader) -> Uid {
        store.row_uids(self.rows(store).start).start
    }
}

/// Calls `visit` with each run of the translation (old UID, new UID, count), in ascending order of old UIDs.
fn for_each_run(
    scratch: &Scratch,
    state: &MergeState,
    mut visit: impl FnMut(Uid, Uid, u64) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut runs = webstrata_engine::Merge::open(&state.translation, scratch)?;
    while let Some((mut old, mut run)) = runs.next()? {
        visit(wire::take_uid(&mut old), Uid(wire::take(&mut run)), wire::take(&mut run))?;
    }
    Ok(())
}

impl Work for Merge {
    type Report = MergeReport;
    type Stage = Stage;
    type State = MergeState;

    const NAME: &'static str = "merge";

    fn reads_store(&self) -> bool {
        true
    }

    fn effort(&self) -> Effort {
        self.effort
    }

    fn input_bytes(&self, stage: Stage, state: &MergeState) -> u64 {
        if stage == Stage::Inlinks { state.corrections.bytes() } else { 0 }
    }

    fn run(&self, worker: &mut Worker, context: &Context, stage: Stage, state: &mut MergeState) -> Result<(), Stopped> {
        let job = &context.job;
        let store = Arc::clone(job.check(context.store())?);
        let rows = self.rows(&store);
        state.rows_merged = rows.len();
        if self.keeps(rows.len()) {
            return Ok(());
        }
        match stage {
            Stage::Sample => sample::sample(worker, job, &store, rows, &self.meaning, state),
            Stage::Urls => urls::urls(worker, context, &store, rows, state),
            Stage::Outlinks => {
                let translation = job.check(self.translation(context, &store, state))?;
                outlinks::outlinks(worker, context, &store, rows, &translation, self.meaning.min_sources > 1, state)
            }
            Stage::Inlinks => {
                let translation = job.check(self.translation(context, &store, state))?;
                job.check(inlinks::inlinks(worker, context, &store, rows, &translation, state))
            }
            Stage::Held => held::held(worker, context, &store, state),
        }
    }

    fn commit(&self, writer: Committing, context: &Context, states: &[MergeState]) -> Result<MergeReport, JobError> {
        let dropped = states.iter().map(|state| state.dropped).sum();
        let mut tally = Tally::default();
        states.iter().for_each(|state| tally.add(state.row.tally.clone()));
        let (mut entry, _) = row_of(context, 0, &states.iter().map(|state| &state.row).collect::<Vec<_>>());
        let report = |epoch, rows, entry: &RowEntry| {
            let (counts, partitions) = (entry.counts, entry.partitions.len());
            MergeReport { epoch, rows, counts, partitions, dropped, tally: tally.clone() }
        };
        let writer = match writer {
            Committing::Open(writer) => writer,
            // The previous epoch may be gone by now.
            Committing::Done(epoch) => {
                let merged = states.first().map_or(0, |state| state.rows_merged);
                return Ok(report(epoch, merged, &entry));
            }
        };
        let store = context.store()?;
        let rows = self.rows(store);
        let manifest = store.store().manifest();
        if self.keeps(rows.len()) {
            return Ok(report(manifest.epoch, 0, manifest.rows.last().unwrap_or(&entry)));
        }
        entry.updates = manifest.rows[rows.clone()].iter().map(|row| row.updates).sum();
        let is_any = |is_one: fn(&RowEntry) -> bool| rows.start > 0 && manifest.rows[rows.clone()].iter().any(is_one);
        (entry.removes, entry.displaces) = (is_any(|row| row.removes), is_any(|row| row.displaces));
        let mut translation = TranslationWriter::create(&context.row, self.below(store))?;
        let none = MergeState::default();
        for_each_run(context.job.scratch(), states.first().unwrap_or(&none), |old, new, count| {
            Ok(translation.push(old, new, count)?)
        })?;
        let translation = Some(translation.finish()?);
        let report = report(manifest.epoch + 1, rows.len(), &entry);
        let all: Vec<RowEntry> = manifest.rows[..rows.start].iter().cloned().chain([entry]).collect();
        let version = env!("CARGO_PKG_VERSION").to_owned();
        // The files no longer contain the data that older rows had in their files and that no answer has.
        let cleans = manifest.removes() && !all.iter().any(|row| row.removes);
        let retires_before = if cleans { Some(manifest.epoch + 1) } else { manifest.provenance.retires_before };
        let options = self.meaning.options();
        let mut provenance = Provenance { version, options, retires_before, ..manifest.provenance.clone() };
        if states.iter().any(|state| state.held.is_some()) {
            provenance.held = entries(states.iter().flat_map(|state| &state.held));
        }
        let epoch = writer.commit(NewEpoch { rows: all, in_range: manifest.in_range, provenance, translation })?;
        Ok(MergeReport { epoch, ..report })
    }
}

/// Merges the newest rows of a store; see the head of this file and [`webstrata_engine::run()`].
///
/// # Errors
/// The store does not exist, is damaged, or is being written by another process; a disk is full; a process is gone.
/// After an error, the store answers as before, and the same call resumes after the last finished stage.
pub fn merge(options: &MergeOptions, progress: &Progress) -> Result<MergeReport, Error> {
    let &MergeOptions { ref run, rows, partition_urls, effort } = options;
    let store = Store::open(&run.store)?;
    let requested = MeaningOptions { partition_urls, ..MeaningOptions::default() };
    let meaning = Meaning::of_store(&run.store, &store.manifest().provenance.options, requested)?;
    let bytes = format!("{rows:?} {:?} {effort:?}", meaning.partition_urls);
    let identity = Identity { bytes, times: String::new() };
    let work = Merge { rows, meaning, effort, translation: Mutex::new(None) };
    Ok(webstrata_engine::run(work, &identity, run, progress)?)
}
