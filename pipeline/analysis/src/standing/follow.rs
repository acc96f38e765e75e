//! Follows a store: loads one epoch into the dataflow, then feeds it what each later epoch has changed, and says which
//! rows of the result are not as they were.
//!
//! Worker 0 reads the store and leads; the others only compute, on what timely brings them. Epochs are taken one by one
//! in order, each under a lease while it is read; those that a collection has removed are passed over, and what they
//! changed comes with the next one that is there. Events go through a short channel to the caller's thread, rows of
//! each epoch in the order of its UIDs, so the same step gives the same rows in the same order. Memory: the dataflow,
//! keys, the changed rows of one epoch; with `whole` also the result.

use super::circuit::{Circuit, Key, Labels, Outbox, Pair};
use super::feed::Feed;
use super::numbers::Lasting;
use super::{ChangedRow, Standing};
use crate::Error;
use differential_dataflow::consolidation::consolidate;
use std::collections::HashMap;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use timely::worker::Worker;
use webstrata_layers::{EpochId, Error as StoreError, Links, Location, PastEpoch, Reader, Store};
use webstrata_pipeline::Error as JobError;
use webstrata_pipeline::Progress;
use webstrata_pipeline::engine::execute;
use webstrata_pipeline::engine::job::{Job, Stopped};
use webstrata_pipeline::engine::meter;
use webstrata_pipeline::engine::scratch::Scratch;

/// Rows of one event.
const ROWS: usize = 4096;
/// Events that wait for the caller.
const EVENTS: usize = 4;
/// How often a waiting worker looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(50);
/// Pairs between two steps of the dataflow while an epoch is read.
const PAIRS: u64 = 1 << 16;
/// The part of the memory that decoded blocks of the store may take, for each of the two epochs that are open.
const READER_PART: usize = 16;

/// What is kept right, of which store, and how long.
#[derive(Clone, Debug)]
pub struct FollowOptions {
    /// The store.
    pub store: Location,
    /// The result.
    pub standing: Standing,
    /// Where to begin.
    pub start: Start,
    /// Ends with this epoch; never where `None`.
    pub until: Option<u64>,
    /// Ends when no later epoch is there.
    pub once: bool,
    /// Whether the whole result is given at every epoch, besides what has changed.
    pub whole: bool,
    /// Time between looks for a new epoch.
    pub every: Duration,
    /// Worker threads, at least 1.
    pub workers: usize,
    /// Bytes that this process may take, all in all.
    pub memory_max: usize,
}

/// Where a run begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At the current epoch: its whole result is given first.
    Now,
    /// At this epoch, in the same way.
    At(u64),
    /// After this epoch, whose result was given in an earlier run; of this very store.
    After(EpochId),
}

/// What the caller is told, in this order: what is to come, its rows, its end.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Rows of this part follow.
    Begin(Changeset),
    /// Some of them.
    Rows(Vec<ChangedRow>),
    /// There are no more of this part.
    End {
        /// How many there were.
        rows: u64,
        /// What it took.
        seconds: Seconds,
        /// Whether this was the last part of its epoch.
        last: bool,
    },
}

/// How long a part took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seconds {
    /// To read the store, and to feed the dataflow.
    pub read: f64,
    /// Until the dataflow had done with that.
    pub dataflow: f64,
    /// All in all: also to name the rows that have changed.
    pub all: f64,
}

/// Rows that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changeset {
    /// The epoch whose result it is.
    pub id: EpochId,
    /// The epoch since which rows have changed; `None` for the whole result.
    pub since: Option<u64>,
}

/// Keeps a result right and tells `sink` of it, until the options say that it is enough or `progress` is cancelled.
///
/// # Errors
/// [`JobError::Cancelled`]; an epoch to begin after that is retired, or from which the store was built anew; too little
/// memory; files that cannot be read or are damaged; what `sink` refuses.
pub fn follow<E: From<Error>>(
    options: &FollowOptions,
    progress: &Progress,
    mut sink: impl FnMut(Event) -> Result<(), E>,
) -> Result<(), E> {
    let workers = options.workers.max(1);
    let job = Job::new(workers, options.memory_max, Scratch::temporary(&std::env::temp_dir()), progress.clone());
    let (events, received) = sync_channel(EVENTS);
    let shared = Shared {
        options: options.clone(),
        job: job.clone(),
        events: Mutex::new(Some(events)),
        labels: Labels::default(),
        outbox: Outbox::default(),
    };
    let dataflow_job = job.clone();
    let running =
        std::thread::spawn(move || execute(&dataflow_job, "", "watch", None, move |worker| run(worker, &shared)));
    let mut refused = None;
    for event in &received {
        if let Err(error) = sink(event) {
            refused = Some(error);
            job.fail(JobError::Stopping);
            break;
        }
    }
    drop(received);
    let ended = running.join().unwrap_or(Err(JobError::Internal("the thread of the workers panicked")));
    refused.map_or(ended.map_err(|error| Error::from(error).into()), Err)
}

/// What the workers have in common.
struct Shared {
    options: FollowOptions,
    job: Job,
    /// Taken by the one that leads.
    events: Mutex<Option<SyncSender<Event>>>,
    labels: Labels,
    outbox: Outbox,
}

/// All that one worker does.
fn run(worker: &mut Worker, shared: &Shared) -> Result<(), Stopped> {
    let job = &shared.job;
    let standing = &shared.options.standing;
    let circuit = Circuit::build(worker, standing, Arc::clone(&shared.labels), Arc::clone(&shared.outbox));
    if worker.index() == 0 {
        let events = shared.events.lock().unwrap_or_else(PoisonError::into_inner).take();
        let events = job.check(events.ok_or(Error::Internal("two workers lead")))?;
        job.check(Leader { worker, circuit, shared, events, pairs_given: 0, result: HashMap::new() }.lead())?;
    } else {
        drop(circuit);
    }
    // The dataflow ends everywhere when the one that leads gives it no more.
    while worker.has_dataflows() {
        job.check(job.go_on())?;
        worker.step_or_park(Some(LOOK));
    }
    Ok(())
}

/// When a part was begun, and when all of it was fed.
#[derive(Clone, Copy)]
struct Took {
    began: Instant,
    read: Instant,
}

/// A key whose value has changed.
struct Change {
    key: Pair,
    before: Option<(u64, u64)>,
    after: Option<(u64, u64)>,
}

/// The worker that reads the store.
struct Leader<'a> {
    worker: &'a mut Worker,
    circuit: Circuit,
    shared: &'a Shared,
    events: SyncSender<Event>,
    /// How many pairs went in.
    pairs_given: u64,
    /// The result, where it is asked for whole.
    result: HashMap<Pair, (u64, u64)>,
}

impl Leader<'_> {
    fn lead(mut self) -> Result<(), Error> {
        let Shared { options, job, .. } = self.shared;
        let mut began = Instant::now();
        let store = match options.start {
            Start::Now => Store::open(&options.store)?,
            // What changed since is told from there, also if something was taken out since.
            Start::At(epoch) => Store::inspect(&options.store, epoch)?,
            Start::After(known) => match Store::inspect(&options.store, known.epoch)? {
                store if store.id() == known => store,
                _ => Store::open_known(&options.store, known)?,
            },
        };
        let mut at = self.reader(store);
        self.fits(&at)?;
        job.progress().enter("load", 0);
        let labels = Arc::clone(&self.shared.labels);
        let mut feed = Feed::load(&options.standing, labels, &at, job, |pair, times| self.give(pair, times))?;
        let took = Took { began, read: Instant::now() };
        let changes = self.settle()?;
        job.progress().leave();
        meter::give_back();
        if !matches!(options.start, Start::After(_)) {
            self.send_changes(&feed, &at, None, changes, took, true)?;
        }
        loop {
            if options.until.is_some_and(|until| at.epoch() >= until) {
                return Ok(());
            }
            began = Instant::now();
            let Some(next) = self.next(&at)? else {
                if options.once {
                    return Ok(());
                }
                self.wait()?;
                continue;
            };
            self.still_fits()?;
            feed.advance(&at, &next, job, |pair, difference| self.give(pair, difference))?;
            let since = at.epoch();
            at = next;
            let took = Took { began, read: Instant::now() };
            let changes = self.settle()?;
            self.send_changes(&feed, &at, Some(since), changes, took, !options.whole)?;
            if options.whole {
                let all = self.result.iter().map(|(&key, &value)| Change { key, before: None, after: Some(value) });
                let all = all.collect();
                self.send_changes(&feed, &at, None, all, took, true)?;
            }
        }
    }

    /// Gives a pair to the dataflow, which takes in now and then what has come so far.
    fn give(&mut self, pair: Pair, difference: isize) {
        self.circuit.input.update(pair, difference);
        self.pairs_given += 1;
        if self.pairs_given.is_multiple_of(PAIRS) {
            self.worker.step();
        }
    }

    fn reader(&self, store: Store) -> Reader {
        Reader::new(store, self.shared.options.memory_max / READER_PART).for_scans(1)
    }

    /// Refuses a store whose result would not fit.
    fn fits(&self, epoch: &Reader) -> Result<(), Error> {
        let options = &self.shared.options;
        let counts = &epoch.store().manifest().counts;
        let needed = options.standing.memory_needed(counts.urls, counts.links);
        let memory_max = options.memory_max;
        match usize::try_from(needed) {
            Ok(needed) if needed <= memory_max => Ok(()),
            _ => Err(Error::TooLittleMemoryToWatch { given: memory_max as u64, needed, links: counts.links }),
        }
    }

    /// Takes no further epoch where the ones before have grown past the budget; what was written stays.
    fn still_fits(&self) -> Result<(), Error> {
        let given = self.shared.options.memory_max as u64;
        let fits = || meter::memory_bytes() <= given;
        if !fits() {
            meter::give_back();
        }
        if fits() { Ok(()) } else { Err(Error::OutgrownWatch { given, taken: meter::memory_bytes() }) }
    }

    /// The next epoch that is there.
    fn next(&self, at: &Reader) -> Result<Option<Reader>, Error> {
        let options = &self.shared.options;
        let current = Store::open(&options.store)?;
        let last = current.manifest().epoch;
        let known = at.store().id();
        if !current.follows(known) {
            let found = current.manifest().past(known.epoch);
            return Err(StoreError::Replaced { path: options.store.to_string().into(), known, found }.into());
        }
        let between = current.manifest().history.iter().map(PastEpoch::id);
        for id in between.filter(|id| id.epoch > at.epoch()) {
            match Store::open_known(&options.store, id) {
                Ok(store) => return Ok(Some(self.reader(store))),
                Err(StoreError::RetiredEpoch { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok((last > at.epoch()).then(|| self.reader(current)))
    }

    /// Waits until it is time for another look.
    fn wait(&mut self) -> Result<(), Error> {
        let end = Instant::now() + self.shared.options.every;
        while Instant::now() < end {
            self.shared.job.go_on()?;
            self.worker.step_or_park(Some(LOOK.min(end.saturating_duration_since(Instant::now()))));
        }
        Ok(())
    }

    /// Lets the dataflow finish what was given, and takes what came of it.
    fn settle(&mut self) -> Result<Vec<Change>, Error> {
        let time = *self.circuit.input.time() + 1;
        self.circuit.input.advance_to(time);
        self.circuit.input.flush();
        while self.circuit.probe.less_than(&time) {
            self.shared.job.go_on()?;
            self.worker.step_or_park(Some(LOOK));
        }
        let mut rows = std::mem::take(&mut *self.shared.outbox.lock().unwrap_or_else(PoisonError::into_inner));
        consolidate(&mut rows);
        let mut changes = Vec::new();
        for key_rows in rows.chunk_by(|a, b| a.0.0 == b.0.0) {
            let value = |sign: isize| key_rows.iter().find(|row| row.1 == sign).map(|row| row.0.1);
            let change = Change { key: key_rows[0].0.0, before: value(-1), after: value(1) };
            if key_rows.len() != usize::from(change.before.is_some()) + usize::from(change.after.is_some()) {
                return Err(Error::Internal("a key of a standing result has two values"));
            }
            changes.push(change);
        }
        if self.shared.options.whole {
            for change in &changes {
                match change.after {
                    Some(value) => self.result.insert(change.key, value),
                    None => self.result.remove(&change.key),
                };
            }
        }
        Ok(changes)
    }

    /// Tells the caller.
    fn send_changes(
        &self,
        feed: &Feed,
        at: &Reader,
        since: Option<u64>,
        mut changes: Vec<Change>,
        took: Took,
        last: bool,
    ) -> Result<(), Error> {
        let dataflow = took.read.elapsed();
        let standing = &self.shared.options.standing;
        let uid = |key: Key| feed.numbers.uid(Lasting(key.0));
        let uids = |(a, b): Pair| (uid(a), uid(b), a, b);
        match (standing, since) {
            // The order in which a list of the most linked is read.
            (Standing::Top { .. }, None) => {
                changes.sort_by_key(|change| (std::cmp::Reverse(change.after), uids(change.key)));
            }
            // Numbers of hosts rise as they are met.
            (Standing::Hosts { .. }, _) => changes.sort_by_key(|change| change.key),
            _ => changes.sort_by_key(|change| uids(change.key)),
        }
        self.send_event(Event::Begin(Changeset { id: at.store().id(), since }))?;
        let is_pair = matches!(standing, Standing::Hosts { .. } | Standing::NewLinks { .. });
        for some in changes.chunks(ROWS) {
            let rows = some.iter().map(|change| {
                let value = |value: Option<(u64, u64)>| {
                    value.map(|value| standing.value(value, |number| feed.name(number, at))).transpose()
                };
                let second = if is_pair { feed.name(change.key.1, at)? } else { String::new() };
                let key = [feed.name(change.key.0, at)?, second];
                Ok(ChangedRow { key, before: value(change.before)?, after: value(change.after)? })
            });
            self.send_event(Event::Rows(rows.collect::<Result<_, Error>>()?))?;
        }
        let seconds = Seconds {
            read: took.read.duration_since(took.began).as_secs_f64(),
            dataflow: dataflow.as_secs_f64(),
            all: took.began.elapsed().as_secs_f64(),
        };
        self.send_event(Event::End { rows: changes.len() as u64, seconds, last })
    }

    fn send_event(&self, event: Event) -> Result<(), Error> {
        self.shared.job.go_on()?;
        self.events.send(event).map_err(|_| JobError::Stopping.into())
    }
}
