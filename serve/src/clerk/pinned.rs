//! One epoch, to ask questions of: what [`super::Clerk::at`] gives. Its questions are in `urls` and `links`.

use std::sync::Arc;

use tonic::Status;

use super::Clerk;
use super::call::CellQuestion;
use crate::map::{Graph, Map};
use crate::protocol::proto::answer::Answer as AnswerKind;
use crate::protocol::status::{Reason, refuse};

/// One epoch of a cluster. Answers stand in the order of what was asked; UIDs are those of the epoch.
///
/// All questions fail alike: UNKNOWN_UID; NOT_READY where no server has a cell until the deadline; DEADLINE_EXCEEDED;
/// ANSWER_TOO_LARGE where less is to be asked at once; DATA_LOSS where every server's cell is damaged.
#[derive(Clone)]
pub struct Pinned {
    pub(super) clerk: Clerk,
    pub(super) graph: Arc<Graph>,
    /// Who had its cells then.
    pub(super) map: Arc<Map>,
}

impl Pinned {
    /// The epoch.
    pub fn epoch(&self) -> u64 {
        self.graph.epoch
    }

    /// How many URLs it has; UIDs are below that.
    pub fn len(&self) -> u64 {
        self.graph.urls
    }

    /// Whether it has no URLs.
    pub fn is_empty(&self) -> bool {
        self.graph.urls == 0
    }

    /// Its rows and cells.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Asks cells of the epoch. Gives the answers in order.
    pub(super) async fn ask(&self, parts: &[CellQuestion]) -> Result<Vec<AnswerKind>, Status> {
        self.clerk.ask(&self.map, parts).await
    }

    /// Refuses UIDs that the epoch does not have.
    pub(crate) fn known(&self, uids: &[u64]) -> Result<(), Status> {
        let Graph { epoch, urls, .. } = *self.graph;
        let Some(&uid) = uids.iter().find(|&&uid| uid >= urls) else { return Ok(()) };
        let message = format!("UID {uid} is not in epoch {epoch} (expected a UID below {urls})");
        Err(refuse(Reason::UnknownUid, message, &[("uid", uid), ("epoch", epoch), ("urls", urls)]))
    }
}
