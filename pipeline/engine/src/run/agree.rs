//! Agrees on the stage with which all workers of a job resume, and lets workers wait for one another.

use crate::Error;
use crate::job::{Job, Stopped};
use crate::workers::gather;
use crate::workers::shuffle::shuffle;
use timely::worker::Worker;
use webstrata_layers::EpochId;

/// The point from which all workers of a job resume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    /// The row that the job writes.
    pub(crate) row: u32,
    /// The epoch that was current when the job began.
    pub(crate) base: Option<EpochId>,
    /// The number of finished stages.
    pub(crate) stages: usize,
}

/// Agrees with all workers on the last stage that every worker has finished. `row` and `base` are the job as this
/// process knows it; process 0 decides. `stages` is a set of bits: the stages after which this worker has a state.
pub(crate) fn agree(
    worker: &mut Worker,
    job: &Job,
    row: u32,
    base: Option<EpochId>,
    stages: u64,
) -> Result<Start, Stopped> {
    let proposals = gather(worker, job, None, &(worker.index(), (row, base), stages))?;
    let first = proposals.iter().min_by_key(|(index, ..)| *index).map_or((0, None), |(_, known, _)| *known);
    let common = proposals.iter().fold(u64::MAX, |common, (_, _, stages)| common & stages);
    let same_row = proposals.iter().all(|(_, known, _)| *known == first);
    let common = if same_row { common } else { common & 1 };
    let stages = job.check(common.checked_ilog2().ok_or(Error::LostState))? as usize;
    Ok(Start { row: first.0, base: first.1, stages })
}

/// Waits until all workers reach this call.
pub(crate) fn wait_for_all(worker: &mut Worker, job: &Job) -> Result<(), Stopped> {
    shuffle(worker, job, "wait", |_| Ok(false), |_| Ok(()))
}
