//! A pinned epoch, made by [`super::Clerk::at`]. Its questions are in `urls`, `links` and `pages`.

use std::sync::Arc;
use webstrata_layers::Uid;

use tonic::Status;

use super::Clerk;
use super::call::CellQuestion;
use crate::guard::memory::Charge;
use crate::map::{Graph, Map};
use crate::protocol::measure::{memory_of, memory_of_question};
use crate::protocol::proto::answer::Answer as AnswerKind;
use crate::protocol::status::{Reason, fits_in_parts, refuse};

/// One epoch of a cluster. Answers are in the order of the questions. All UIDs are UIDs of this epoch.
///
/// All questions fail in the same ways: UNKNOWN_UID; NOT_READY if no server answers for a cell before the deadline;
/// DEADLINE_EXCEEDED; ANSWER_TOO_LARGE: ask for less at once; DATA_LOSS if every replica of a cell is damaged.
#[derive(Clone)]
pub struct Pinned {
    pub(super) clerk: Clerk,
    pub(super) graph: Arc<Graph>,
    /// The map when the epoch was pinned.
    pub(super) map: Arc<Map>,
    /// The memory of the call that pinned the epoch.
    pub(super) charge: Arc<Charge>,
}

impl Pinned {
    /// The number of the epoch.
    pub fn epoch(&self) -> u64 {
        self.graph.epoch
    }

    /// The number of URLs. All UIDs are below this number.
    pub fn len(&self) -> u64 {
        self.graph.urls
    }

    /// Whether the epoch has no URLs.
    pub fn is_empty(&self) -> bool {
        self.graph.urls == 0
    }

    /// The rows and cells of the epoch.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Asks cells of the epoch. Returns the answers in order.
    pub(super) async fn ask(&self, questions: &[CellQuestion]) -> Result<Vec<AnswerKind>, Status> {
        let asked: usize = questions.iter().map(|question| memory_of_question(&question.question)).sum();
        self.charge.cover(asked).await?;
        let answers = self.clerk.ask(&self.map, questions).await?;
        self.charge.cover(asked + answers.iter().map(memory_of).sum::<usize>()).await?;
        Ok(answers)
    }

    /// The memory of the call.
    pub(crate) fn charge(&self) -> &Charge {
        &self.charge
    }

    /// Like [`Pinned::ask`]. If the answers together are too large, sends each question in a separate call. Records of
    /// one page in several rows may lie on one server, and a caller cannot ask for less than one page.
    pub(super) async fn ask_apart(&self, questions: &[CellQuestion]) -> Result<Vec<AnswerKind>, Status> {
        match self.ask(questions).await {
            Err(status) if questions.len() > 1 && fits_in_parts(&status) => {
                let mut answers = Vec::with_capacity(questions.len());
                for question in questions.chunks(1) {
                    answers.extend(self.ask(question).await?);
                }
                Ok(answers)
            }
            answers => answers,
        }
    }

    /// The error for a URL, a host or a domain that no URL of the epoch matches.
    pub(crate) fn nothing_matches(&self, url: &str) -> Status {
        let message = format!("nothing in the store matches {url}, neither as a page nor as the target of a link");
        refuse(Reason::NotInStore, message, &[("epoch", self.epoch())])
    }

    /// Refuses UIDs that the epoch does not have.
    pub(crate) fn known(&self, uids: &[Uid]) -> Result<(), Status> {
        let Graph { epoch, urls, .. } = *self.graph;
        let Some(&uid) = uids.iter().find(|&&uid| uid.0 >= urls) else { return Ok(()) };
        let message = format!("UID {uid} is not in epoch {epoch} (expected a UID below {urls})");
        Err(refuse(Reason::UnknownUid, message, &[("uid", uid.0), ("epoch", epoch), ("urls", urls)]))
    }
}
