//! Runs jobs on timely dataflow: on the threads of one or more processes, within a budget of memory, and so that a
//! killed job resumes. The engine does not know what a job computes.
//!
//! ```text
//!          worker 0                       worker 1, in this process or another one
//! stage 1  produce -> shuffle, by key --> consume -> sorter -> runs on disk
//!          save state, wait for all       save state, wait for all    <- a killed job resumes here
//! stage 2  runs -> merge -> shuffle ----> consume -> files of layers
//!          save state, wait for all       save state, wait for all    <- or here
//! commit   states of all workers -> report
//! ```
//!
//! A caller has two ways to use the engine. [`run()`] runs [`Work`], which writes a row of a store in stages.
//! [`work_together`] runs a closure on all workers, for a computation that begins again if it is killed.
//!
//! | module | contents |
//! |---|---|
//! | `run` | stages of [`Work`], resuming and commit; computations without stages |
//! | `workers` | threads and processes: how they start, and the shuffle that carries records between them |
//! | `options` | what a job is given: store, workers, memory, directory for temporary files |
//! | `job` | what the workers of a process share: budget, first error, progress |
//! | `external_sort` | sorted records that do not fit into memory |
//! | `runs`, `state` | records in files, and the states that name these files |
//! | `scratch` | the directory of these files, which a killed job finds again |
//! | [`wire`] | how records and numbers are encoded |
//! | `progress`, [`meter`] | what other threads see of a job, and what the system says about the process |
//!
//! # Example
//! Words in order. Memory for sorting is half of the budget, and more words would be sorted in files:
//!
//! ```
//! use webstrata_engine::{Collector, Error, Outbox, Progress, RunOptions, Sorter, shuffle, work_together};
//!
//! let directory = std::env::temp_dir();
//! let options = RunOptions::new(directory.as_path());
//! let job = options.job(&Progress::default())?;
//! let shared = job.clone();
//! let sorted = work_together(&options, &job, "words", "warc wat arc", move |worker| {
//!     let sorter = Collector::new(Sorter::new(shared.scratch(), "words", shared.budget(50)));
//!     // Every worker runs this closure. Only the first worker has words, and it sends them to itself.
//!     let is_first = worker.index() == 0;
//!     let mut words = ["warc", "wat", "arc"].into_iter().filter(move |_| is_first);
//!     let produce = move |outbox: &mut Outbox| {
//!         let Some(word) = words.next() else { return Ok(false) };
//!         outbox.send(0, word.as_bytes(), &[]);
//!         Ok(true)
//!     };
//!     shuffle(worker, &shared, "words", produce, sorter.consumer())?;
//!     let mut records = shared.check(sorter.into_inner().and_then(Sorter::finish))?;
//!     let mut sorted = Vec::new();
//!     while let Some((word, _)) = shared.check(records.next())? {
//!         sorted.push(String::from_utf8_lossy(word).into_owned());
//!     }
//!     Ok(sorted)
//! })?;
//! assert_eq!(sorted, ["arc", "warc", "wat"]);
//! # Ok::<(), Error>(())
//! ```

mod error;
mod external_sort;
mod job;
pub mod meter;
mod options;
mod progress;
mod run;
mod runs;
mod scratch;
mod state;
pub mod wire;
mod workers;

pub use error::Error;
pub use external_sort::{Collector, Sorted, Sorter};
pub use job::{Job, Stopped};
pub use options::{RunOptions, memory_needed, workers_within};
pub use progress::{Missing, Moment, Progress, StageReport, Waiting};
pub use run::work::{Committing, Context, Identity, Work};
pub use run::{run, work_together};
pub use runs::{Merge, RunReader, RunWriter};
pub use scratch::Scratch;
pub use state::{JobStage, JobState, Run, Runs};
pub use workers::cluster::{CLUSTER_WAIT, Cluster};
pub use workers::shuffle::{Outbox, shuffle};
pub use workers::{execute, gather};
