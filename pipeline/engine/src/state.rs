//! The state of a worker at the end of a stage. Later stages need only this state, and a killed job resumes from it.
//!
//! Each stage takes the collections that it reads out of the state, and adds the collections that it makes. Records are
//! in files of the scratch directory, and the state only names the files. The state itself is small and is written as
//! JSON.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use webstrata_layers::FileEntry;

/// One run: a file of the job's scratch directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The name of the file in the directory.
    pub name: String,
    /// The size of the file in bytes.
    pub bytes: u64,
    /// The number of records in the file.
    pub records: u64,
}

/// The runs of one collection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runs(pub Vec<Run>);

/// A stage of a job.
pub trait JobStage: Copy + 'static {
    /// The stages of the job, in order.
    const ALL: &'static [Self];

    /// Returns the name of the stage in reports and logs.
    fn name(self) -> &'static str;
}

/// The state of a worker; see the head of this file.
pub trait JobState: Clone + Default + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Returns the collections whose records are in files of the scratch directory.
    fn collections(&self) -> Vec<&Runs>;

    /// Returns the files of layers that the worker wrote.
    fn files(&self) -> &[FileEntry];

    /// Returns the runs of `self` that `other` does not name.
    fn without(&self, other: &Self) -> Runs {
        let others: BTreeSet<&str> = runs(other).map(|run| run.name.as_str()).collect();
        Runs(runs(self).filter(|run| !others.contains(run.name.as_str())).cloned().collect())
    }
}

/// Returns the files of the scratch directory that a state names.
pub(crate) fn runs(state: &impl JobState) -> impl Iterator<Item = &Run> {
    state.collections().into_iter().flat_map(|runs| &runs.0)
}
