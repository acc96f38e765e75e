//! Backlinks: the pages that link to a target, when they did, and their hosts, asked of cells.
//! `questions::backlinks` of `webstrata_layers` has the question and its steps.
//!
//! ```text
//! UIDs of the target --[cells of the target]--> pages that link
//! pages --[cells of the pages]--> their stays, --[cells of their URLs]--> their hosts
//! ```
//!
//! If a page has captures in one row only, the cell of the page answers. A page with captures in several rows is
//! fetched and joined here. Cost: each part of the sources reads all in-links of the target.

pub(super) mod remembered;

use std::ops::Range;
use std::sync::Arc;

use self::remembered::{TARGET_PAGES, TargetKey};
use futures_util::future::try_join_all;
use tonic::Status;
use webstrata_layers::{
    Backlink, Direction, Given, LinkingPage, Match, Question, Ranked, Ranking, Referrer, Referrers, Scope, Spans, Uid,
    Window, in_order, times_of,
};

use super::call::{CellQuestion, other_kind};
use super::drive::BATCHES;
use super::links::lists::Lists;
use super::links::{chosen, taken};
use super::lock;
use super::pinned::Pinned;
use super::split::Split;
use crate::protocol::backlinks::take_backlinks;
use crate::protocol::proto::answer::Answer as AnswerKind;
use crate::protocol::proto::question::Question as QuestionKind;
use crate::protocol::proto::{self, BacklinksOf, CellName, SourcesOf};
use crate::protocol::status::fits_in_parts;

/// A question about backlinks.
#[derive(Clone, Debug)]
pub struct BacklinkQuestion {
    /// UIDs of the URLs of the target.
    pub target: Vec<Range<Uid>>,
    /// The pages that count.
    pub scope: Scope,
    /// How the pages that link are counted, selected and ordered.
    pub ranking: Ranking,
}

/// The pages, hosts or domains that link to a target.
#[derive(Clone, Debug)]
pub struct BacklinkAnswer {
    /// Counts, hosts and rows.
    pub ranked: Ranked,
    /// The URL of the page of each row.
    pub urls: Vec<String>,
}

/// URLs looked up in one batch.
const URLS: usize = 4096;
/// The number of sources that a call holds for all rows together, and the fewest sources that it asks for in one
/// answer.
const SOURCES: usize = 1 << 20;
/// The fewest URLs of a part of a target about which a cell is asked alone.
const TARGET_PART_MIN: u64 = 1 << 10;
const SOURCES_MIN: usize = 1 << 14;

impl Pinned {
    /// The pages that count: the pages of the source (`within`), or all pages if there is no source. The target's own
    /// pages do not count, unless `is_internal` is set. `url` is the target as the store spells it, and `target` the
    /// UIDs that match it.
    ///
    /// # Errors
    /// See [`Pinned`].
    pub(crate) async fn scope(
        &self,
        (matched, url, target): (Match, &str, &[Range<Uid>]),
        is_internal: bool,
        within: Option<Vec<Range<Uid>>>,
    ) -> Result<Scope, Status> {
        let except = match matched.own_pages(url) {
            _ if is_internal => Vec::new(),
            Some(prefix) => self.with_prefix(&prefix).await?,
            None => target.to_vec(),
        };
        Ok(Scope { within, except })
    }

    /// Returns the pages, hosts or domains that link to a target, with their times.
    ///
    /// # Errors
    /// See [`Pinned`].
    pub async fn who_links(&self, question: BacklinkQuestion) -> Result<BacklinkAnswer, Status> {
        let BacklinkQuestion { target, scope, ranking } = question;
        let mut asked = Referrers::new(&target, &scope, ranking).keeping(TARGET_PAGES);
        let key = TargetKey { store: self.map.store.clone(), epoch: self.graph.epoch, target, scope };
        // People ask about one target in many ways, and an epoch never changes.
        let known = lock(&self.clerk.shared.remembered).get(&key);
        let ranked = if let Some(parts) = known {
            Referrers::ranked(ranking, self.graph.rows.len(), &parts)
        } else {
            self.drive(&mut asked).await?;
            if let Some(parts) = asked.kept() {
                lock(&self.clerk.shared.remembered).put(key, Arc::new(parts));
            }
            asked.answer()
        };
        let mut urls = Vec::with_capacity(ranked.rows.len());
        for rows in ranked.rows.chunks(URLS) {
            urls.extend(self.urls(&rows.iter().map(|row: &Referrer| row.page).collect::<Vec<_>>()).await?);
        }
        Ok(BacklinkAnswer { ranked, urls })
    }

    /// The pages of an interval of UIDs that link to URLs of the target in some row, in order, and the UID where the
    /// list continues.
    pub(super) async fn sources_of(&self, target: &[Range<Uid>], uids: &Range<Uid>) -> Result<(Vec<Uid>, Uid), Status> {
        // A cell with much of the target is asked about several parts of it at once.
        let urls: u64 = target.iter().map(|uids| uids.end - uids.start).sum();
        let part_urls = urls.div_ceil(BATCHES as u64).max(TARGET_PART_MIN);
        let mut parts = Vec::new();
        for row in &self.graph.rows {
            for cell in &row.cells {
                let name = CellName { row: row.row, partition: cell.partition };
                parts.extend(parts_within(target, &cell.records, part_urls).into_iter().map(|target| (name, target)));
            }
        }
        let lists_max = parts.len().max(1) * self.graph.rows.len().max(1);
        let mut most = (SOURCES / lists_max).max(SOURCES_MIN);
        loop {
            let (first, end) = (uids.start.0, uids.end.0);
            let question = |(cell, target): &(CellName, Vec<Range<Uid>>)| {
                let request = SourcesOf { target: ranges_of(target), first, most: most as u64, end };
                CellQuestion { cell: *cell, question: QuestionKind::Sources(request) }
            };
            let questions: Vec<CellQuestion> = parts.iter().map(question).collect();
            // Asked one by one, so that a server answers several at once.
            let answers = match try_join_all(questions.chunks(1).map(|question| self.ask(question))).await {
                Err(status) if most > 1 && fits_in_parts(&status) => {
                    most /= 4;
                    continue;
                }
                answers => answers?,
            };
            let lists = taken(answers.concat(), |answer| match answer {
                AnswerKind::Sources(lists) => Some(lists),
                _ => None,
            })?;
            let lists = lists.into_iter().map(Lists::of).collect::<Result<Vec<_>, _>>()?;
            // After the end of the first list that was cut, the union is incomplete.
            let cut = lists.iter().filter(|list| list.links.len() >= most);
            let next = cut.filter_map(|list| list.links.last()?.0.checked_add(1)).min().map_or(uids.end, Uid);
            let end = next.min(uids.end);
            let within = |link: &Uid| *link < end;
            let sources = lists.iter().flat_map(|list| &list.links).copied().filter(within).collect();
            return Ok((in_order(sources), end));
        }
    }

    /// The pages, each with its backlink. The backlink of a page that never linked has no stays.
    async fn backlinks_of(&self, pages: &[Uid], target: &[Range<Uid>]) -> Result<Vec<LinkingPage>, Status> {
        let (single, split) = self.single(pages, Direction::Out, Window::ALWAYS);
        let ranges = ranges_of(target);
        let questions = split.cell_questions(|question| {
            let pages = question.items.iter().map(|&item| pages[item].0).collect();
            QuestionKind::Backlinks(BacklinksOf { pages, target: ranges.clone() })
        });
        let mut answers = taken(self.ask(&questions).await?, |answer| match answer {
            AnswerKind::Backlinks(lists) => take_backlinks(&lists),
            _ => None,
        })?;
        let mut backlinks: Vec<LinkingPage> = pages.iter().map(|&page| (page, Backlink::default())).collect();
        for position in &split.positions {
            let found = answers[position.question].get_mut(position.index).ok_or_else(other_kind)?;
            backlinks[position.item].1 = std::mem::take(found);
        }
        let several: Vec<usize> = (0..pages.len()).filter(|&item| !single[item]).collect();
        let others: Vec<Uid> = several.iter().map(|&item| pages[item]).collect();
        let (mut runs, mut times) = (Vec::new(), Vec::new());
        for (item, page) in several.into_iter().zip(self.pages(&others).await?) {
            let Some(page) = page else { continue };
            runs.clear();
            Spans::Runs.of_page(&page, &mut runs);
            let backlink = &mut backlinks[item].1;
            backlink.targets = times_of(&runs, target, &mut times);
            backlink.set(page.captures().iter(), &mut times);
        }
        Ok(backlinks)
    }

    /// The pages that linked to a target, and their hosts if these are wanted: [`Given::Referrers`] or
    /// [`Given::Backlinks`].
    pub(super) async fn linking(&self, pages: &[Uid], target: &[Range<Uid>], has_hosts: bool) -> Result<Given, Status> {
        let mut linking = self.backlinks_of(pages, target).await?;
        linking.retain(|(_, backlink)| !backlink.stays.is_empty());
        if !has_hosts {
            return Ok(Given::Backlinks(pages.len(), linking));
        }
        let uids: Vec<Uid> = linking.iter().map(|(page, _)| *page).collect();
        let hosts = self.hosts_of(&uids).await?;
        Ok(Given::Referrers(pages.len(), linking, hosts))
    }

    /// The hosts of URLs, which are given in order of UIDs. Each run of neighbouring items of `uids` with one host
    /// gives the host and the length of the run. The host is empty for URLs without a host.
    pub(super) async fn hosts_of(&self, uids: &[Uid]) -> Result<Vec<(String, u64)>, Status> {
        let mut split = Split::of(&self.graph);
        let mut row = 0;
        for (item, &uid) in uids.iter().enumerate() {
            while self.graph.rows.get(row).is_some_and(|row| row.end_uid <= uid) {
                row += 1;
            }
            let cell = self.graph.rows.get(row).and_then(|row| row.cell_of_url(uid));
            split.add(row, cell.ok_or_else(|| Status::internal(format!("no cell covers UID {uid}")))?, item);
        }
        // The UIDs increase, so the questions are in the order of the cells, and each question has a contiguous part of
        // `uids`.
        let questions = split.cell_questions(|question| QuestionKind::HostsOf(chosen(uids, &question.items)));
        let lists = taken(self.ask_apart(&questions).await?, |answer| match answer {
            AnswerKind::Stretches(hosts) => Some(hosts.hosts),
            _ => None,
        })?;
        Ok(lists.into_iter().flatten().map(|found| (found.host, found.urls)).collect())
    }
}

/// The intervals of `target` that are in `bounds`, in parts of about `urls` URLs.
fn parts_within(target: &[Range<Uid>], bounds: &Range<Uid>, urls: u64) -> Vec<Vec<Range<Uid>>> {
    let (mut parts, mut part, mut room) = (Vec::new(), Vec::new(), urls);
    for uids in target {
        let (mut start, end) = (uids.start.max(bounds.start), uids.end.min(bounds.end));
        while start < end {
            let next = end.min(start + room);
            part.push(start..next);
            room -= next - start;
            start = next;
            if room == 0 {
                parts.push(std::mem::take(&mut part));
                room = urls;
            }
        }
    }
    parts.extend(Some(part).filter(|part| !part.is_empty()));
    parts
}

fn ranges_of(target: &[Range<Uid>]) -> Vec<proto::Range> {
    target.iter().map(|uids| proto::Range { first: uids.start.0, end: uids.end.0 }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_target_are_its_intervals_within_a_cell() {
        let uids = |bounds: &[(u64, u64)]| bounds.iter().map(|&(start, end)| Uid(start)..Uid(end)).collect::<Vec<_>>();
        let target = uids(&[(0, 10), (20, 25), (40, 50)]);
        let parts = |start, end, urls| parts_within(&target, &(Uid(start)..Uid(end)), urls);
        assert_eq!(parts(5, 24, 4), [uids(&[(5, 9)]), uids(&[(9, 10), (20, 23)]), uids(&[(23, 24)])]);
        assert_eq!(parts(0, 60, 25), std::slice::from_ref(&target));
        assert!(parts(12, 20, 4).is_empty());
    }
}
