//! Suggestions for a search field: hosts with names that contain a text, and the pages with the most captures.

use std::cmp::Reverse;
use std::collections::HashMap;

use tonic::Status;
use webstrata_layers::record::key;
use webstrata_layers::{CaptureTime, Uid};

use super::call::{CellQuestion, other_kind};
use super::pinned::Pinned;
use crate::protocol::proto::answer::Answer as AnswerKind;
use crate::protocol::proto::question::Question as QuestionKind;
use crate::protocol::proto::{CellName, HostSearch};

impl Pinned {
    /// The hosts with names that contain `text`, at most `limit`, each with the number of its URLs, the host with the
    /// most URLs first. Each cell lists its `limit` largest hosts. If a host has URLs in several cells, only its parts
    /// in these lists decide whether the host is in the answer. The returned number counts all URLs of the host.
    ///
    /// # Errors
    /// See [`Pinned`].
    pub async fn hosts(&self, text: &str, limit: u32) -> Result<Vec<(String, u64)>, Status> {
        let search = HostSearch { contains: text.to_lowercase(), limit };
        let mut urls_of: HashMap<String, u64> = HashMap::new();
        for answer in self.ask_all(&QuestionKind::Hosts(search)).await? {
            let AnswerKind::Hosts(found) = answer else { return Err(other_kind()) };
            for found in found.hosts {
                *urls_of.entry(found.host).or_default() += found.urls;
            }
        }
        let mut hosts: Vec<(String, u64)> = urls_of.into_iter().collect();
        let order =
            |hosts: &mut Vec<(String, u64)>| hosts.sort_by_cached_key(|(host, urls)| (Reverse(*urls), host.clone()));
        order(&mut hosts);
        hosts.truncate(limit as usize);
        for (host, urls) in &mut hosts {
            if let Some(prefix) = key::host_prefix(host) {
                let intervals = self.with_prefix(&prefix).await?;
                *urls = intervals.into_iter().map(|uids| uids.end.0 - uids.start.0).sum();
            }
        }
        order(&mut hosts);
        Ok(hosts)
    }

    /// The busiest pages of each cell, joined, with their captures: the page with the most captures first, at most
    /// `limit` pages.
    ///
    /// # Errors
    /// See [`Pinned`].
    pub async fn busiest(&self, limit: usize) -> Result<Vec<(Uid, Vec<CaptureTime>)>, Status> {
        let mut uids = Vec::new();
        for answer in self.ask_all(&QuestionKind::Busiest(true)).await? {
            let AnswerKind::Listing(found) = answer else { return Err(other_kind()) };
            uids.extend(Uid::of_numbers(found.uids));
        }
        uids.sort_unstable();
        uids.dedup();
        let captures = self.captures(&uids).await?;
        let mut pages: Vec<(Uid, Vec<CaptureTime>)> =
            uids.into_iter().zip(captures.iter().map(<[CaptureTime]>::to_vec)).collect();
        pages.retain(|(_, captures)| !captures.is_empty());
        pages.sort_by_key(|(uid, captures)| (Reverse(captures.len()), *uid));
        pages.truncate(limit);
        Ok(pages)
    }

    /// Asks every cell the same question.
    async fn ask_all(&self, question: &QuestionKind) -> Result<Vec<AnswerKind>, Status> {
        let cells = self.graph.rows.iter().flat_map(|row| row.cells.iter().map(|cell| (row.row, cell.partition)));
        let questions: Vec<CellQuestion> = cells
            .map(|(row, partition)| CellQuestion { cell: CellName { row, partition }, question: question.clone() })
            .collect();
        self.ask(&questions).await
    }
}
