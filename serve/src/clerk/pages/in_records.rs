//! The in-link records of URLs. Records of several rows are joined as in layers.
//!
//! If the in-links of a cell have no times, and its server does not have all pages that decide, the server names the
//! pages. The clerk then asks the cells of these pages, first which of them link, and then for the pages that do.

use tonic::Status;
use webstrata_layers::record::join;
use webstrata_layers::record::join::with_sources;
use webstrata_layers::{Change, InLinks, Uid, Window};

use crate::clerk::call::other_kind;
use crate::clerk::links::{PAIRS, chosen, taken};
use crate::clerk::pinned::Pinned;
use crate::protocol::proto::InRecord;
use crate::protocol::proto::answer::Answer as AnswerKind;
use crate::protocol::proto::question::Question as QuestionKind;

/// The most pages that are asked for in one batch.
const PAGES: usize = 1 << 8;

impl Pinned {
    /// The in-links of URLs, by time range; `None` for URLs without in-links.
    ///
    /// # Errors
    /// See [`Pinned`].
    pub async fn in_records(&self, uids: &[Uid]) -> Result<Vec<Option<InLinks>>, Status> {
        self.known(uids)?;
        let split = self.split(uids, |_| true);
        let questions = split.cell_questions(|question| QuestionKind::InRecords(chosen(uids, &question.items)));
        let lists = taken(self.ask(&questions).await?, |answer| match answer {
            AnswerKind::InRecords(records) => Some(records.records),
            _ => None,
        })?;
        let mut records = Vec::with_capacity(uids.len());
        for (item, positions) in split.by_item(uids.len()) {
            let mut row_records = Vec::new();
            for position in positions {
                let record = lists[position.question].get(position.index).ok_or_else(other_kind)?;
                row_records.extend(if record.ranges.is_empty() {
                    let row = split.questions[position.question].row;
                    self.record_of_some(row, uids[item], Uid::slice(&record.sources)).await?
                } else {
                    Some(record_of(uids[item], record)?)
                });
            }
            records.push(join::in_links_of_rows(&mut row_records));
        }
        if self.graph.removes { self.still_linking(records).await } else { Ok(records) }
    }

    /// The in-links of a URL in a row, of which only some of these pages are sources.
    async fn record_of_some(&self, row: usize, uid: Uid, candidates: &[Uid]) -> Result<Option<InLinks>, Status> {
        let mut linking = Vec::new();
        for candidates in candidates.chunks(PAIRS) {
            let pairs: Vec<(Uid, Uid)> = candidates.iter().map(|&source| (source, uid)).collect();
            let holds = self.has_links_in_row(row, &pairs, Window::ALWAYS).await?;
            linking.extend(candidates.iter().zip(holds).filter(|(_, links)| *links).map(|(&source, _)| source));
        }
        let mut sources = Vec::with_capacity(linking.len());
        let number = self.graph.rows[row].row;
        for batch in linking.chunks(PAGES) {
            let pages = self.pages_in(batch, |map| map.row == number).await?;
            let in_range = self.graph.in_range;
            sources.extend(pages.into_iter().flatten().map(|page| (page.uid, page.ranges_of(uid, in_range))));
        }
        Ok(InLinks::of_sources(uid, sources))
    }

    /// Keeps in records of in-links only the sources that ever link to the URL.
    async fn still_linking(&self, records: Vec<Option<InLinks>>) -> Result<Vec<Option<InLinks>>, Status> {
        let of_record = |record: &InLinks| {
            let uid = record.uid;
            record.sources.iter().map(move |&source| (source, uid)).collect::<Vec<_>>()
        };
        let pairs: Vec<(Uid, Uid)> = records.iter().flatten().flat_map(of_record).collect();
        let mut holds = self.has_links(&pairs, Window::ALWAYS).await?.into_iter();
        let mut left = |record: InLinks| with_sources(&record, |_| holds.next().unwrap_or(false));
        Ok(records.into_iter().map(|record| record.and_then(&mut left)).collect())
    }
}

/// The in-links in a message that has ranges.
fn record_of(uid: Uid, record: &InRecord) -> Result<InLinks, Status> {
    let changes = record.change_sources.iter().zip(&record.change_ranges);
    let record = InLinks {
        uid,
        ranges: record.ranges.clone(),
        sources: Uid::slice(&record.sources).to_vec(),
        changes: changes.map(|(&link, &capture)| Change { link, capture }).collect(),
    };
    match record.flaw() {
        None => Ok(record),
        Some(flaw) => Err(Status::internal(format!("the server sent damaged in-links for UID {uid}: {flaw}"))),
    }
}
