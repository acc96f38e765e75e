//! The result of an analysis at a date: values by URL, numbers for the whole graph, a small table.
//!
//! Each worker has the values of its URLs until worker 0 gathers them. Memory: 8 bytes per URL and column.

use super::shared_nodes::SharedNodes;
use super::{AnalysisContext, Fact, Sheet};
use crate::nodes::Nodes;
use webstrata_engine::Stopped;

/// Values by URL.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Values {
    Counts(Vec<u64>),
    Reals(Vec<f64>),
}

impl From<Vec<u64>> for Values {
    fn from(values: Vec<u64>) -> Self {
        Values::Counts(values)
    }
}

impl From<Vec<f64>> for Values {
    fn from(values: Vec<f64>) -> Self {
        Values::Reals(values)
    }
}

/// The result of an analysis at a date. It has the URLs of this worker, or all URLs in worker 0 and none in the others.
pub(super) struct Found {
    pub(super) of_all: bool,
    /// The URLs that the columns have values for; `None` if there are no columns.
    pub(super) nodes: Option<SharedNodes>,
    pub(super) columns: Vec<(&'static str, Values)>,
    pub(super) facts: Vec<Fact>,
    pub(super) sheet: Option<Sheet>,
}

impl Found {
    /// Returns an empty result whose columns have the URLs of this worker.
    pub(super) fn of_worker() -> Self {
        Self { of_all: false, nodes: None, columns: Vec::new(), facts: Vec::new(), sheet: None }
    }

    /// Returns an empty result whose columns have all URLs in worker 0. Other workers have no columns.
    pub(super) fn of_all() -> Self {
        Self { of_all: true, ..Self::of_worker() }
    }

    pub(super) fn with(mut self, name: &'static str, values: impl Into<Values>) -> Self {
        self.columns.push((name, values.into()));
        self
    }

    pub(super) fn and(mut self, facts: Vec<Fact>) -> Self {
        self.facts.extend(facts);
        self
    }

    pub(super) fn of_nodes(mut self, nodes: SharedNodes) -> Self {
        self.nodes = Some(nodes);
        self
    }

    pub(super) fn with_sheet(mut self, sheet: Option<Sheet>) -> Self {
        self.sheet = sheet;
        self
    }

    /// Returns, in worker 0, the nodes that the columns have values for.
    pub(super) fn all_nodes(&self) -> Option<&Nodes> {
        self.nodes.as_ref()?.all.as_ref()
    }

    /// Brings the columns of all workers to worker 0.
    pub(super) fn gathered(mut self, context: &mut AnalysisContext<'_>) -> Result<Self, Stopped> {
        if !self.of_all {
            let mut columns = Vec::new();
            for (name, values) in std::mem::take(&mut self.columns) {
                let all = match values {
                    Values::Counts(counts) => context.gather(&counts)?.map(Values::Counts),
                    Values::Reals(reals) => context.gather(&reals)?.map(Values::Reals),
                };
                columns.extend(all.map(|all| (name, all)));
            }
            (self.columns, self.of_all) = (columns, true);
        }
        Ok(self)
    }
}
