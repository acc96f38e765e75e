//! Questions about all spellings of one page (`read::spellings` of `webstrata_layers` has the rules).

use tonic::Status;
use webstrata_layers::{CaptureTime, Spelled, Uid, captures_of_page, in_order};

use super::call::other_kind;
use super::pinned::Pinned;
use super::split::Split;
use crate::protocol::proto::Spelling;
use crate::protocol::proto::answer::Answer as AnswerKind;
use crate::protocol::proto::question::Question as QuestionKind;

impl Pinned {
    /// The UIDs of the URLs that are spellings of the page that a canonical URL names, in order.
    ///
    /// # Errors
    /// See [`Pinned`].
    pub async fn spellings(&self, url: &str) -> Result<Vec<Uid>, Status> {
        let prefixes = Spelled::new(url, webstrata_url::surt).prefixes();
        let mut split = Split::of(&self.graph);
        for (row, cells) in self.graph.rows.iter().enumerate() {
            let cells = in_order_of_places(prefixes.iter().flat_map(|prefix| cells.cells_of_prefix(prefix)));
            cells.into_iter().for_each(|cell| split.add(row, cell, 0));
        }
        let question = Spelling { url: url.to_owned() };
        let answers = self.ask(&split.cell_questions(|_| QuestionKind::Spellings(question.clone()))).await?;
        let mut found = Vec::new();
        for answer in answers {
            let AnswerKind::Listing(uids) = answer else { return Err(other_kind()) };
            found.extend_from_slice(Uid::slice(&uids.uids));
        }
        Ok(in_order(found))
    }

    /// The captures of a page, in order of time, each with the place of its spelling.
    ///
    /// # Errors
    /// See [`Pinned`].
    pub async fn captures_of_page(&self, spellings: &[Uid]) -> Result<Vec<(CaptureTime, usize)>, Status> {
        Ok(captures_of_page(self.captures(spellings).await?.iter()))
    }
}

/// The indexes of cells in order, each once.
fn in_order_of_places(places: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut places: Vec<usize> = places.collect();
    places.sort_unstable();
    places.dedup();
    places
}
