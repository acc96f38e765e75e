//! Pages that died, and who still links to them ([`webstrata_layers::read::around::deaths`] has the rules).
//!
//! Cells list the pages with failures, a part of the UIDs at a time; the captures of these tell the deaths. Memory,
//! charged to the call: one part, and the rows of the answer.

use std::ops::Range;

use tonic::Status;
use webstrata_layers::read::around::deaths::{LINKERS, TODAY};
use webstrata_layers::{DeathCount, Deaths, DeathsAsked, Linkers, Uid, Window};

use crate::clerk::between::{PAGES, fitting};
use crate::clerk::pinned::Pinned;

/// Pages that died.
#[derive(Clone, Debug)]
pub struct DeathAnswer {
    /// Counts and rows.
    pub deaths: Deaths,
    /// For each row who links to its page to this day.
    pub linkers: Vec<Linkers>,
}

/// Bytes of a row in memory, about.
const ROW_BYTES: usize = 256;

impl Pinned {
    /// The deaths of pages with these UIDs, and of each row of the answer the first `linkers_max` pages that link.
    ///
    /// # Errors
    /// See [`Pinned`].
    pub async fn deaths(
        &self,
        pages: &[Range<Uid>],
        asked: DeathsAsked,
        linkers_max: usize,
    ) -> Result<DeathAnswer, Status> {
        let mut count = DeathCount::new(asked);
        for uids in pages {
            let mut rest = uids.clone();
            while !rest.is_empty() {
                let failing;
                (failing, rest) = self.failing(rest).await?;
                self.count_deaths(&failing, &mut count).await?;
            }
        }
        let deaths = count.finish();
        self.charge().keep(deaths.rows.len() * ROW_BYTES).await?;
        let pages: Vec<Uid> = deaths.rows.iter().map(|dead| dead.page).collect();
        let linkers = self.linkers(&pages, linkers_max).await?;
        Ok(DeathAnswer { deaths, linkers })
    }

    /// Counts the deaths of pages.
    async fn count_deaths(&self, pages: &[Uid], count: &mut DeathCount) -> Result<(), Status> {
        let (mut rest, mut step) = (pages, PAGES);
        while !rest.is_empty() {
            let (batch, after) = rest.split_at(step.min(rest.len()));
            let Some(captures) = fitting(self.captures(batch).await, batch, &mut step)? else { continue };
            batch.iter().zip(captures.iter()).for_each(|(&page, captures)| count.take(page, captures));
            count.answer(self.degrees(&count.asks(), LINKERS, Window::AsOf(TODAY)).await?);
            rest = after;
        }
        Ok(())
    }

    /// Who links to pages to this day, with the first `most` pages.
    async fn linkers(&self, pages: &[Uid], most: usize) -> Result<Vec<Linkers>, Status> {
        let mut linkers = Vec::with_capacity(pages.len());
        for batch in pages.chunks(PAGES) {
            let linking = self.degrees(batch, LINKERS, Window::AsOf(TODAY)).await?;
            let unknown = self.unknown(batch, LINKERS, TODAY).await?;
            for ((&page, linking), unknown) in batch.iter().zip(linking).zip(unknown.iter()) {
                let (unknown, is_named) = (unknown.len() as u64, linking > 0 && most > 0);
                let pages = match is_named {
                    true => self.links_from(page, LINKERS, Window::AsOf(TODAY), Uid(0), most).await?.0,
                    false => Vec::new(),
                };
                linkers.push(Linkers { linking, unknown, pages });
            }
        }
        Ok(linkers)
    }
}
