//! Follows a store: loads one epoch into the dataflow, then feeds the changes of each later epoch, and reports the rows
//! of the result that have changed.
//!
//! Worker 0 reads the store and leads. The other workers only compute on the data that timely brings them. Epochs are
//! taken one by one in order, and each has a lease while it is read. Epochs that garbage collection has removed are
//! skipped, and their changes come with the next epoch. Events go through a short channel to the thread of the caller.
//! The rows of an epoch are in the order of its UIDs, so the same step gives the same rows in the same order. Memory:
//! the dataflow, the keys, and the changed rows of one epoch; with `whole`, also the result.

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
use webstrata_engine::{Error as JobError, Job, Progress, Scratch, Stopped, execute, meter};
use webstrata_layers::{EpochId, Error as StoreError, Links, Location, PastEpoch, Reader, Store};

/// The maximum number of rows of an event.
const ROWS: usize = 4096;
/// The maximum number of events that wait for the caller.
const EVENTS: usize = 4;
/// The time after which a waiting worker checks for a request to stop.
const LOOK: Duration = Duration::from_millis(50);
/// The number of pairs between two steps of the dataflow while an epoch is read.
const PAIRS: u64 = 1 << 16;
/// For each of the two open epochs, decoded blocks of the store may take the memory budget divided by this number.
const READER_PART: usize = 16;

/// The result, the store, and when to begin and end.
#[derive(Clone, Debug)]
pub struct FollowOptions {
    /// The store.
    pub store: Location,
    /// The result.
    pub standing: Standing,
    /// The epoch to begin with.
    pub start: Start,
    /// The last epoch. With `None`, the run does not end by itself.
    pub until: Option<u64>,
    /// Whether the run ends when there is no later epoch.
    pub once: bool,
    /// Whether the whole result is given at every epoch, in addition to the changes.
    pub whole: bool,
    /// The time between two checks for a new epoch.
    pub every: Duration,
    /// Worker threads, at least 1.
    pub workers: usize,
    /// The bytes that this process may take in total.
    pub memory_max: usize,
}

/// The beginning of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Begins at the current epoch, and gives its whole result first.
    Now,
    /// Begins at this epoch, and gives its whole result first.
    At(u64),
    /// Begins after this epoch of the same store. An earlier run has given the result of the epoch. If a removal has
    /// deleted the epoch since, begins as [`Start::Now`].
    After(EpochId),
}

/// An event for the caller. Each part comes in this order: its beginning, its rows, its end.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The rows of this part follow.
    Begin(Changeset),
    /// Some rows of the part.
    Rows(Vec<ChangedRow>),
    /// The part has no more rows.
    End {
        /// The number of rows in the part.
        rows: u64,
        /// The time that the part took.
        seconds: Seconds,
        /// Whether the part was the last of its epoch.
        last: bool,
    },
}

/// The time that a part took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seconds {
    /// The time to read the store and to feed the dataflow.
    pub read: f64,
    /// The time until the dataflow had processed the part.
    pub dataflow: f64,
    /// The total time, including the time to name the changed rows.
    pub all: f64,
}

/// The identity of a set of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changeset {
    /// The epoch of the result.
    pub id: EpochId,
    /// The epoch since which the rows have changed; `None` for the whole result.
    pub since: Option<u64>,
}

/// Keeps a result up to date and reports it to `sink`, until the run ends by its options or `progress` is cancelled.
///
/// # Errors
/// [`JobError::Cancelled`]; a start after an epoch that is retired, or after which the store was rebuilt; too little
/// memory; files that cannot be read or are damaged; the errors of `sink`.
///
/// ```
/// use std::time::Duration;
/// use webstrata_analysis::Error;
/// use webstrata_analysis::standing::{Event, FollowOptions, Standing, Start, Value, follow};
/// use webstrata_engine::{Progress, RunOptions};
/// use webstrata_pipeline::{BuildOptions, build};
///
/// let dir = tempfile::tempdir()?;
/// let crawl = dir.path().join("crawl.jsonl");
/// std::fs::write(&crawl, r#"{"url": "http://example.org/", "ts": "2008", "links": ["http://example.com/"]}"#)?;
/// let run = RunOptions::new(dir.path().join("store"));
/// build(&BuildOptions::new(run.clone(), vec![crawl]), &Progress::default())?;
///
/// let options = FollowOptions {
///     store: run.store,
///     standing: Standing::Top { k: 1 },
///     start: Start::Now,
///     until: None,
///     once: true,
///     whole: false,
///     every: Duration::from_secs(1),
///     workers: 1,
///     memory_max: 1 << 30,
/// };
/// let mut rows = Vec::new();
/// follow(&options, &Progress::default(), |event| -> Result<(), Error> {
///     if let Event::Rows(some) = event {
///         rows.extend(some);
///     }
///     Ok(())
/// })?;
/// assert_eq!((rows[0].key[0].as_str(), &rows[0].after), ("http://example.com/", &Some(Value::Into(1))));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn follow<E: From<Error>>(
    options: &FollowOptions,
    progress: &Progress,
    mut sink: impl FnMut(Event) -> Result<(), E>,
) -> Result<(), E> {
    let workers = options.workers.max(1);
    let job = Job::new(workers, options.memory_max, Scratch::temporary(&std::env::temp_dir()), progress.clone());
    let (events, received) = sync_channel(EVENTS);
    let shared = FollowState {
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

/// The state that the workers share.
struct FollowState {
    options: FollowOptions,
    job: Job,
    /// The worker that leads takes the sender.
    events: Mutex<Option<SyncSender<Event>>>,
    labels: Labels,
    outbox: Outbox,
}

/// Runs all the work of one worker.
fn run(worker: &mut Worker, shared: &FollowState) -> Result<(), Stopped> {
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
    // The dataflow ends on all workers when the leader closes its input.
    while worker.has_dataflows() {
        job.check(job.go_on())?;
        worker.step_or_park(Some(LOOK));
    }
    Ok(())
}

/// The time at which a part began, and the time at which all of it was fed.
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
    shared: &'a FollowState,
    events: SyncSender<Event>,
    /// The number of pairs that were fed.
    pairs_given: u64,
    /// The result, if the whole result is requested.
    result: HashMap<Pair, (u64, u64)>,
}

impl Leader<'_> {
    fn lead(mut self) -> Result<(), Error> {
        let FollowState { options, job, .. } = self.shared;
        let mut began = Instant::now();
        let mut start = options.start;
        let store = match start {
            Start::Now => Store::open(&options.store)?,
            // Changes are reported from this epoch on, even if a later epoch took something out.
            Start::At(epoch) => Store::inspect(&options.store, epoch)?,
            Start::After(known) => match self.resumed(known)? {
                Some(store) => store,
                None => {
                    start = Start::Now;
                    Store::open(&options.store)?
                }
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
        if !matches!(start, Start::After(_)) {
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

    /// Opens the epoch that an earlier run has written. `None` if a removal has deleted the epoch since: what was taken
    /// out must not be read again, so nobody can say what has changed.
    fn resumed(&self, known: EpochId) -> Result<Option<Store>, Error> {
        let store = &self.shared.options.store;
        match Store::inspect(store, known.epoch) {
            Ok(store) if store.id() == known => Ok(Some(store)),
            Ok(_) => Ok(Some(Store::open_known(store, known)?)),
            Err(error) => {
                let current = Store::open(store)?;
                let is_removed = current.follows(known) && current.manifest().has_retired(known.epoch);
                if is_removed { Ok(None) } else { Err(error.into()) }
            }
        }
    }

    /// Passes a pair to the dataflow. From time to time, lets the dataflow process its input.
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

    /// Rejects a store whose result would not fit into the memory.
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

    /// Rejects a further epoch if the process has grown past its budget. Results that were written stay.
    fn still_fits(&self) -> Result<(), Error> {
        let given = self.shared.options.memory_max as u64;
        let fits = || meter::memory_bytes() <= given;
        if !fits() {
            meter::give_back();
        }
        if fits() { Ok(()) } else { Err(Error::OutgrownWatch { given, taken: meter::memory_bytes() }) }
    }

    /// Returns the next epoch that is available.
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

    /// Waits until the next check is due.
    fn wait(&mut self) -> Result<(), Error> {
        let end = Instant::now() + self.shared.options.every;
        while Instant::now() < end {
            self.shared.job.go_on()?;
            self.worker.step_or_park(Some(LOOK.min(end.saturating_duration_since(Instant::now()))));
        }
        Ok(())
    }

    /// Lets the dataflow finish its input, and takes the changes of the result.
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

    /// Sends the changes of a part to the caller.
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
            // The list of the most linked URLs is read from the top.
            (Standing::Top { .. }, None) => {
                changes.sort_by_key(|change| (std::cmp::Reverse(change.after), uids(change.key)));
            }
            // Hosts get rising numbers in the order in which they are met.
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
