//! What a worker has when a stage ends: all that the stages after it need, and what a killed job goes on from.
//!
//! Each stage takes the collections that it reads out of the state and puts in those that it makes. Records stand in
//! files of the scratch directory and are only named here; the state itself is small, and is written as JSON.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use webstrata_layers::FileEntry;

/// One run: a file of the job's scratch directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Its name in the directory.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// How many records it has.
    pub records: u64,
}

/// The runs of one collection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runs(pub(crate) Vec<Run>);

/// A stage of a job.
pub trait JobStage: Copy + 'static {
    /// The stages of the job, in order.
    const ALL: &'static [Self];

    /// What reports and logs call it.
    fn name(self) -> &'static str;
}

/// See the head of this file.
pub trait JobState: Clone + Default + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The records in files of the scratch directory.
    fn collections(&self) -> Vec<&Runs>;

    /// The files of layers that the worker wrote.
    fn files(&self) -> &[FileEntry];

    /// The runs of `self` that `other` does not name.
    fn without(&self, other: &Self) -> Runs {
        let others: BTreeSet<&str> = runs(other).map(|run| run.name.as_str()).collect();
        Runs(runs(self).filter(|run| !others.contains(run.name.as_str())).cloned().collect())
    }
}

/// The files of the scratch directory that a state names.
pub(crate) fn runs(state: &impl JobState) -> impl Iterator<Item = &Run> {
    state.collections().into_iter().flat_map(|runs| &runs.0)
}
