//! What the engine must know of a job: its stages, and how it commits the row that the stages write.

use crate::Error;
use crate::job::{Job, Stopped};
use crate::state::{JobStage, JobState};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use timely::worker::Worker;
use webstrata_layers::{Effort, EpochId, Reader, RowDir, StoreWriter};

/// A job that writes a row of a store in stages; see [`run`](crate::run()).
pub trait Work: Send + Sync + 'static {
    /// The report at the end of the job, for all processes together.
    type Report: Serialize + for<'a> Deserialize<'a> + Send + 'static;

    /// The stages of the job.
    type Stage: JobStage;

    /// The state of a worker after each stage.
    type State: JobState;

    /// The name of the job.
    const NAME: &'static str;

    /// Whether the job reads the current epoch of the store, which must exist in this case.
    fn reads_store(&self) -> bool;

    /// Fails if the job may not begin on the current epoch of the store. The engine asks before it touches any file,
    /// and again when the store is locked. `current` may open the store; it returns `None` if no store exists.
    fn may_begin(&self, _current: impl FnOnce() -> Result<Option<EpochId>, Error>) -> Result<(), Error> {
        Ok(())
    }

    /// Returns how hard to compress the row.
    fn effort(&self) -> Effort;

    /// Returns the size of the temporary files that a stage reads on this worker, in bytes.
    fn input_bytes(&self, stage: Self::Stage, state: &Self::State) -> u64;

    /// Runs a stage on a worker.
    fn run(
        &self,
        worker: &mut Worker,
        context: &Context,
        stage: Self::Stage,
        state: &mut Self::State,
    ) -> Result<(), Stopped>;

    /// Commits the row that all workers have written as the current epoch. `writer` is [`Committing::Done`] if an
    /// earlier run of this job was killed after it had committed the row.
    fn commit(&self, writer: Committing, context: &Context, states: &[Self::State]) -> Result<Self::Report, Error>;

    /// Whether no later start can resume after this error of the work. The temporary files are then removed.
    fn is_final(_error: &Error) -> bool {
        false
    }
}

/// The state of a commit.
pub enum Committing {
    /// The row is not committed yet.
    Open(StoreWriter),
    /// The row was committed as this epoch.
    Done(u64),
}

/// The job, the row and the store that stages work with.
pub struct Context {
    /// The data that the workers share.
    pub job: Job,
    /// The directory of the row that the job writes.
    pub row: RowDir,
    /// The store as it was when the job began; `None` if the work reads no store.
    pub base: Option<Arc<Reader>>,
}

impl Context {
    /// Returns the store as it was when the job began.
    pub fn store(&self) -> Result<&Arc<Reader>, Error> {
        self.base.as_ref().ok_or(Error::Internal("a stage reads a store that is not open"))
    }
}

/// The identity of a job, in two parts: `bytes` decides the bytes of the row, and `times` shows whether the inputs are
/// the same again.
pub struct Identity {
    /// The options and inputs of the job.
    pub bytes: String,
    /// The times at which the inputs were changed.
    pub times: String,
}
