//! Pages that died, and the pages that still link to them ([`webstrata_layers::read::around::deaths`] has the rules).
//!
//! Cells list the pages with failures, for one part of the UIDs at a time. The captures of these pages show the deaths.
//! Memory, charged to the call: one part, and the rows of the answer.

use std::ops::Range;

use tonic::Status;
use webstrata_layers::read::around::deaths::{LINKERS, TODAY};
use webstrata_layers::{DeathCount, Deaths, DeathsAsked, Linkers, Uid, Window};

use crate::clerk::between::{PAGES, fitting};
use crate::clerk::pinned::Pinned;

impl Pinned {
    /// The deaths of pages with these UIDs.
    ///
    /// # Errors
    /// See [`Pinned`].
    pub async fn deaths(&self, pages: &[Range<Uid>], asked: DeathsAsked) -> Result<Deaths, Status> {
        let mut count = DeathCount::new(asked);
        for uids in pages {
            let mut rest = uids.clone();
            while !rest.is_empty() {
                let failing;
                (failing, rest) = self.failing(rest).await?;
                self.count_deaths(&failing, &mut count).await?;
            }
        }
        self.charge().keep(count.bytes()).await?;
        Ok(count.finish())
    }

    /// Counts the deaths of pages.
    async fn count_deaths(&self, pages: &[Uid], count: &mut DeathCount) -> Result<(), Status> {
        let (mut rest, mut step) = (pages, PAGES);
        while !rest.is_empty() {
            let (batch, after) = rest.split_at(step.min(rest.len()));
            let Some(captures) = fitting(self.captures(batch).await, batch, &mut step)? else { continue };
            batch.iter().zip(captures.iter()).for_each(|(&page, captures)| count.take(page, captures));
            count.answer(self.degrees(&count.asks(), LINKERS, Window::AsOf(TODAY)).await?);
            self.charge().cover(size_of_val(pages) + count.bytes()).await?;
            rest = after;
        }
        Ok(())
    }

    /// For each page, the number of pages that link to it as of the latest captures, the number of pages for which this
    /// is unknown, and the first `most` pages that link.
    ///
    /// # Errors
    /// See [`Pinned`].
    pub async fn linkers(&self, pages: &[Uid], most: usize) -> Result<Vec<Linkers>, Status> {
        let mut linkers = Vec::with_capacity(pages.len());
        let (mut rest, mut step) = (pages, PAGES);
        while !rest.is_empty() {
            let (batch, after) = rest.split_at(step.min(rest.len()));
            let unknown = self.unknown(batch, LINKERS, TODAY).await;
            let Some(unknown) = fitting(unknown, batch, &mut step)? else { continue };
            let linking = self.degrees(batch, LINKERS, Window::AsOf(TODAY)).await?;
            for ((&page, linking), unknown) in batch.iter().zip(linking).zip(unknown.iter()) {
                let most = most.min(usize::try_from(linking).unwrap_or(usize::MAX));
                let pages = self.first_linkers(page, most).await?;
                linkers.push(Linkers { linking, unknown: unknown.len() as u64, pages });
            }
            rest = after;
        }
        Ok(linkers)
    }

    /// The first `most` pages that link to a page as of the latest captures. At least `most` pages must link to it.
    async fn first_linkers(&self, page: Uid, most: usize) -> Result<Vec<Uid>, Status> {
        let (mut pages, mut next) = (Vec::new(), Some(Uid(0)));
        while let Some(first) = next.filter(|_| pages.len() < most) {
            let found;
            (found, next) = self.links_from(page, LINKERS, Window::AsOf(TODAY), first, most - pages.len()).await?;
            pages.extend(found);
        }
        Ok(pages)
    }
}
