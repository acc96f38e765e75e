//! Questions between two dates ([`webstrata_layers::read::dates`] has the rules).

use std::collections::HashSet;

use tonic::Status;
use webstrata_layers::read::dates::{differing, is_unknown_at};
use webstrata_layers::{AsOf, Batch, ChangedLinks, Direction, Lifespan, Precision, Uid, Window};

use super::pinned::Pinned;
use crate::protocol::status::fits_in_parts;

/// The most pages in one batch of questions about captures or lifespans.
pub(super) const PAGES: usize = 1000;

impl Pinned {
    /// For each UID the links of the page that differ from one date to another, or the pages that began or ceased to
    /// link to the URL. The lists of a UID that is asked for alone may have any length.
    ///
    /// # Errors
    /// See [`Pinned`].
    pub async fn changed(&self, uids: &[Uid], is_inward: bool, dates: [AsOf; 2]) -> Result<Vec<ChangedLinks>, Status> {
        self.changed_part(uids, is_inward, dates, (Uid(0), usize::MAX)).await
    }

    /// Like [`Pinned::changed`], but returns for each UID at most `links_max` links, from the UID `first` on. Asks for
    /// captures of this part only.
    ///
    /// # Errors
    /// See [`Pinned`].
    pub async fn changed_part(
        &self,
        uids: &[Uid],
        is_inward: bool,
        dates: [AsOf; 2],
        (first, links_max): (Uid, usize),
    ) -> Result<Vec<ChangedLinks>, Status> {
        let direction = if is_inward { Direction::In(Precision::Exact) } else { Direction::Out };
        let before = self.links_of_any_length(uids, direction, Window::AsOf(dates[0])).await?;
        let after = self.links_of_any_length(uids, direction, Window::AsOf(dates[1])).await?;
        let lists = before.iter().zip(after.iter());
        let changed: Vec<ChangedLinks> =
            lists.map(|(before, after)| differing(before, after).part(first, links_max)).collect();
        self.charge().keep(24 * changed.iter().map(|changed| changed.links().len()).sum::<usize>()).await?;
        let has_unknown = self.graph().has_unknown;
        let in_doubt = |(changed, &uid): (&ChangedLinks, &Uid)| changed.in_doubt(uid, is_inward, has_unknown);
        let asked = distinct(changed.iter().zip(uids).flat_map(in_doubt));
        let mut unknown = HashSet::new();
        let (mut rest, mut step) = (&asked[..], PAGES);
        while !rest.is_empty() {
            let (batch, after) = rest.split_at(step.min(rest.len()));
            let Some(captures) = fitting(self.captures(batch).await, batch, &mut step)? else { continue };
            let pages = batch.iter().zip(captures.iter());
            unknown.extend(pages.filter(|(_, captures)| is_unknown_at(captures, dates)).map(|(&page, _)| page));
            rest = after;
        }
        let of_url = |(changed, uid): (ChangedLinks, &Uid)| {
            if is_inward {
                let apart = changed.links().into_iter().filter(|page| unknown.contains(page)).collect();
                changed.set_apart(apart)
            } else {
                changed.unless_unknown(unknown.get(uid).copied())
            }
        };
        Ok(changed.into_iter().zip(uids).map(of_url).collect())
    }

    /// For each UID the pages that ever linked to the URL, each with the time of its first capture with the link,
    /// oldest first.
    ///
    /// # Errors
    /// See [`Pinned`].
    pub async fn first(&self, uids: &[Uid]) -> Result<Vec<Vec<(i64, Uid)>>, Status> {
        let sources = self.links_of_any_length(uids, Direction::In(Precision::Exact), Window::ALWAYS).await?;
        let asked = distinct(sources.values().iter().copied());
        self.charge().keep(24 * sources.values().len()).await?;
        let mut firsts = vec![Vec::new(); uids.len()];
        let (mut rest, mut step) = (&asked[..], PAGES);
        while !rest.is_empty() {
            let (batch, after) = rest.split_at(step.min(rest.len()));
            let Some(lifespans) = fitting(self.lifespans(batch).await, batch, &mut step)? else { continue };
            for (&source, lifespans) in batch.iter().zip(lifespans.iter()) {
                for (&uid, firsts) in uids.iter().zip(&mut firsts) {
                    let to_url = lifespans.iter().filter(|lifespan: &&Lifespan| lifespan.link == uid);
                    firsts.extend(to_url.map(|lifespan| (lifespan.first, source)).min());
                }
            }
            rest = after;
        }
        firsts.iter_mut().for_each(|firsts| firsts.sort_unstable());
        Ok(firsts)
    }
}

/// The UIDs in order, each once.
pub(super) fn distinct(uids: impl Iterator<Item = Uid>) -> Vec<Uid> {
    let mut uids: Vec<Uid> = uids.collect();
    uids.sort_unstable();
    uids.dedup();
    uids
}

/// The answer about a batch; `None` if it was too large. The next batch must then be smaller: it has `step` pages.
pub(super) fn fitting<T>(
    answer: Result<Batch<T>, Status>,
    batch: &[Uid],
    step: &mut usize,
) -> Result<Option<Batch<T>>, Status> {
    match answer {
        Err(status) if fits_in_parts(&status) && batch.len() > 1 => {
            *step = batch.len() / 2;
            Ok(None)
        }
        answer => answer.map(Some),
    }
}
