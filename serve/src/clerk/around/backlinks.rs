//! Backlinks: the times at which pages linked to a target, and the hosts of these pages.
//! [`webstrata_layers::record::backlink`] has the rule.
//!
//! ```text
//! UIDs of the target --[cells of the target]--> pages that link --[cells of the pages]--> their stays --+--> Tally
//!      (a part at a time, for each row of URLs)            \--[cells of their URLs]--> their hosts ------/
//! ```
//!
//! If a page has captures in one row only, the cell of the page answers. A page with captures in several rows is
//! fetched and joined here. The clerk asks for pages in batches of [`PAGES`], several at once, and
//! [`webstrata_layers::Tally`] counts the pages as they come. Memory, charged to the call: [`SOURCES`] UIDs, a few
//! batches, and the rows of the answer, however many pages link. Cost: each part of the sources reads all in-links of
//! the target. Only pages in the scope of the question are asked for their stays, and only rows of URLs with such pages
//! have parts.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Weak};

use futures_util::future::try_join_all;
use tonic::Status;
use webstrata_layers::read::query::times_of;
use webstrata_layers::read::spellings::in_order;
use webstrata_layers::{
    Backlink, Direction, Match, Ranked, Ranking, Referrer, Scope, Tally, Uid, Window, lifespans_of,
};

use crate::clerk::call::{CellQuestion, other_kind};
use crate::clerk::links::{chosen, taken};
use crate::clerk::lists::Lists;
use crate::clerk::pinned::Pinned;
use crate::clerk::split::Split;
use crate::clerk::{Shared, lock};
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

/// The key of a target in [`Remembered`]: the store, the epoch, the UIDs and the scope.
#[derive(PartialEq, Eq)]
struct TargetKey {
    store: String,
    epoch: u64,
    target: Vec<Range<Uid>>,
    scope: Scope,
}

/// Consecutive linking pages of one row, and their hosts. Each host comes with the number of its consecutive pages.
#[derive(Default)]
struct Part {
    pages: Vec<(Uid, Backlink)>,
    hosts: Vec<(String, u64)>,
}

/// All pages that link to a target, each part with the row of its URLs.
type Parts = Vec<(usize, Part)>;

/// The linking pages of the targets that were asked for last, the latest target at the end. Only targets with few pages
/// are remembered.
#[derive(Default)]
pub(in crate::clerk) struct Remembered(VecDeque<(TargetKey, Arc<Parts>)>);

impl Remembered {
    fn get(&mut self, key: &TargetKey) -> Option<Arc<Parts>> {
        let at = self.0.iter().position(|(known, _)| known == key)?;
        let entry = self.0.remove(at)?;
        let found = entry.1.clone();
        self.0.push_back(entry);
        Some(found)
    }

    fn put(&mut self, key: TargetKey, parts: Arc<Parts>) {
        self.0.retain(|(known, _)| *known != key);
        self.0.push_back((key, parts));
        let pages = |entries: &VecDeque<(TargetKey, Arc<Parts>)>| {
            entries.iter().flat_map(|(_, parts)| &**parts).map(|(_, part)| part.pages.len()).sum::<usize>()
        };
        while self.0.len() > REMEMBERED_TARGETS || pages(&self.0) > REMEMBERED_PAGES && !self.0.is_empty() {
            self.0.pop_front();
        }
    }
}

/// Forgets the targets of epochs that are no longer served, whenever the map changes.
pub(in crate::clerk) async fn forget_retired(clerk: Weak<Shared>) {
    let Some(mut maps) = clerk.upgrade().map(|shared| shared.map.clone()) else { return };
    while maps.changed().await.is_ok() {
        let Some(shared) = clerk.upgrade() else { return };
        let map = maps.borrow_and_update().clone();
        lock(&shared.remembered).0.retain(|(known, _)| map.epochs.contains_key(&known.epoch));
    }
}

/// The most remembered targets, the most pages of one remembered target, and the most pages of all remembered targets.
/// A page takes about 200 bytes.
const REMEMBERED_TARGETS: usize = 32;
const TARGET_PAGES: usize = 1 << 14;
const REMEMBERED_PAGES: usize = 1 << 17;
/// URLs looked up in one batch.
const URLS: usize = 4096;
/// The most pages in one batch of questions about backlinks.
const PAGES: usize = 1 << 12;
/// The number of batches that are asked for at once.
const BATCHES: usize = 4;
/// Approximate bytes of a page while the clerk asks for it.
const PAGE_BYTES: usize = 512;
/// The number of sources that a call holds for all rows together, and the fewest sources that it asks for in one
/// answer.
const SOURCES: usize = 1 << 20;
const SOURCES_MIN: usize = 1 << 14;

/// The progress through the linking pages of one row of URLs.
struct Sources {
    /// The UIDs that the clerk has not asked about yet.
    uids: Range<Uid>,
    /// Pages that link in some row and whose backlinks the clerk has not asked for yet.
    waiting: VecDeque<Uid>,
}

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
        let key = TargetKey { store: self.map.store.clone(), epoch: self.graph.epoch, target, scope };
        let mut tally = Tally::new(ranking, self.graph.rows.len());
        // People ask about one target in many ways, and an epoch never changes.
        let known = lock(&self.clerk.shared.remembered).get(&key);
        if let Some(parts) = known {
            for (row, Part { pages, hosts }) in parts.iter() {
                tally.feed(*row, pages.iter().cloned(), hosts.iter().cloned());
            }
            (0..self.graph.rows.len()).for_each(|row| tally.feed(row, [], []));
        } else {
            self.count_into(&mut tally, key).await?;
        }
        let ranked = tally.finish();
        let mut urls = Vec::with_capacity(ranked.rows.len());
        for rows in ranked.rows.chunks(URLS) {
            urls.extend(self.urls(&rows.iter().map(|row: &Referrer| row.page).collect::<Vec<_>>()).await?);
        }
        Ok(BacklinkAnswer { ranked, urls })
    }

    /// Counts all pages that link to a target, and remembers them if they are few.
    async fn count_into(&self, tally: &mut Tally, key: TargetKey) -> Result<(), Status> {
        let (mut parts, mut sources) = (Some(Parts::new()), self.sources_by_row(&key.scope));
        while let Some(row) = tally.needs() {
            let part = self.next_pages(&mut sources[row], (&key.target, &key.scope)).await?;
            let waiting: usize = sources.iter().map(|sources| sources.waiting.len()).sum();
            let needed = tally.bytes() + waiting * size_of::<Uid>() + part.pages.len() * PAGE_BYTES;
            self.charge().cover(needed).await?;
            if let Some(known) = &mut parts {
                known.push((row, Part { pages: part.pages.clone(), hosts: part.hosts.clone() }));
                if known.iter().map(|(_, part)| part.pages.len()).sum::<usize>() > TARGET_PAGES {
                    parts = None;
                }
            }
            tally.feed(row, part.pages, part.hosts);
        }
        if let Some(mut parts) = parts {
            parts.retain(|(_, part)| !part.pages.is_empty());
            lock(&self.clerk.shared.remembered).put(key, Arc::new(parts));
        }
        Ok(())
    }

    /// Calls `visit` with each page in a scope that ever linked to URLs of the target, and with the times of its links:
    /// row by row, in order of UIDs.
    ///
    /// # Errors
    /// See [`Pinned`].
    pub async fn backlinks(
        &self,
        target: &[Range<Uid>],
        scope: &Scope,
        mut visit: impl FnMut(Uid, Backlink),
    ) -> Result<(), Status> {
        for mut sources in self.sources_by_row(scope) {
            loop {
                let found = self.next_backlinks(&mut sources, (target, scope)).await?;
                if found.is_empty() {
                    break;
                }
                found.into_iter().for_each(|(page, backlink)| visit(page, backlink));
            }
        }
        Ok(())
    }

    /// For each row, the part of the UIDs of its URLs in which there may be pages of the scope.
    fn sources_by_row(&self, scope: &Scope) -> Vec<Sources> {
        let mut start = Uid(0);
        let rows = self.graph.rows.iter().map(|row| {
            let uids = scope.span(start..row.end_uid);
            start = row.end_uid;
            Sources { uids, waiting: VecDeque::new() }
        });
        rows.collect()
    }

    /// The next pages that link, with their hosts; none at the end.
    async fn next_pages(&self, sources: &mut Sources, target: (&[Range<Uid>], &Scope)) -> Result<Part, Status> {
        let pages = self.next_backlinks(sources, target).await?;
        let mut hosts = Vec::new();
        for some in pages.chunks(PAGES) {
            hosts.extend(self.hosts_of(&some.iter().map(|(page, _)| *page).collect::<Vec<_>>()).await?);
        }
        Ok(Part { pages, hosts })
    }

    /// The next pages in a scope that link to URLs of the target; none at the end.
    async fn next_backlinks(
        &self,
        sources: &mut Sources,
        (target, scope): (&[Range<Uid>], &Scope),
    ) -> Result<Vec<(Uid, Backlink)>, Status> {
        let mut found = Vec::new();
        while found.is_empty() {
            if sources.waiting.is_empty() {
                if sources.uids.is_empty() {
                    break;
                }
                let (some, next) = self.sources_of(target, &sources.uids).await?;
                sources.uids.start = next;
                sources.waiting = some.into();
            }
            let end = sources.waiting.len().min(PAGES * BATCHES);
            let pages = sources.waiting.drain(..end);
            let pages: Vec<Uid> = pages.filter(|&page| scope.has(page)).collect();
            let batches = pages.chunks(PAGES).map(|pages| self.backlinks_of_any_size(pages, target));
            let backlinks = try_join_all(batches).await?.into_iter().flatten();
            let linking = |(_, backlink): &(Uid, Backlink)| !backlink.stays.is_empty();
            found.extend(pages.iter().copied().zip(backlinks).filter(linking));
        }
        Ok(found)
    }

    /// The pages of an interval of UIDs that link to URLs of the target in some row, in order, and the UID where the
    /// list continues.
    async fn sources_of(&self, target: &[Range<Uid>], uids: &Range<Uid>) -> Result<(Vec<Uid>, Uid), Status> {
        let mut cells = Vec::new();
        for row in &self.graph.rows {
            for cell in &row.cells {
                let meets = |uids: &Range<Uid>| uids.start < cell.records.end && cell.records.start < uids.end;
                if target.iter().any(meets) {
                    cells.push(CellName { row: row.row, partition: cell.partition });
                }
            }
        }
        let target = ranges_of(target);
        let lists_max = cells.len().max(1) * self.graph.rows.len().max(1);
        let mut most = (SOURCES / lists_max).max(SOURCES_MIN);
        loop {
            let (first, end) = (uids.start.0, uids.end.0);
            let request = SourcesOf { target: target.clone(), first, most: most as u64, end };
            let question = |&cell: &CellName| CellQuestion { cell, question: QuestionKind::Sources(request.clone()) };
            let questions: Vec<CellQuestion> = cells.iter().map(question).collect();
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

    /// The backlinks of pages, in smaller batches if an answer would be too large.
    async fn backlinks_of_any_size(&self, pages: &[Uid], target: &[Range<Uid>]) -> Result<Vec<Backlink>, Status> {
        let (mut backlinks, mut rest, mut step) = (Vec::with_capacity(pages.len()), pages, pages.len());
        while !rest.is_empty() {
            let (batch, after) = rest.split_at(step.min(rest.len()));
            match self.backlinks_of(batch, target).await {
                Err(status) if fits_in_parts(&status) && batch.len() > 1 => {
                    step = batch.len() / 2;
                }
                found => {
                    backlinks.extend(found?);
                    rest = after;
                }
            }
        }
        Ok(backlinks)
    }

    /// One backlink for each page. The backlink of a page that never linked has no stays.
    async fn backlinks_of(&self, pages: &[Uid], target: &[Range<Uid>]) -> Result<Vec<Backlink>, Status> {
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
        let mut backlinks = vec![Backlink::default(); pages.len()];
        for position in &split.positions {
            let found = answers[position.question].get_mut(position.index).ok_or_else(other_kind)?;
            backlinks[position.item] = std::mem::take(found);
        }
        let several: Vec<usize> = (0..pages.len()).filter(|&item| !single[item]).collect();
        let others: Vec<Uid> = several.iter().map(|&item| pages[item]).collect();
        let (mut lifespans, mut times) = (Vec::new(), Vec::new());
        for (item, page) in several.into_iter().zip(self.pages(&others).await?) {
            let Some(page) = page else { continue };
            lifespans.clear();
            lifespans_of(page.captures(), &page.links, page.changes.iter().copied(), &mut lifespans);
            backlinks[item].targets = times_of(&lifespans, target, &mut times);
            backlinks[item].set(page.captures().iter(), &mut times);
        }
        Ok(backlinks)
    }

    /// The hosts of URLs, which are given in order of UIDs. Each run of neighbouring items of `uids` with one host
    /// gives the host and the length of the run. The host is empty for URLs without a host.
    async fn hosts_of(&self, uids: &[Uid]) -> Result<Vec<(String, u64)>, Status> {
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

fn ranges_of(target: &[Range<Uid>]) -> Vec<proto::Range> {
    target.iter().map(|uids| proto::Range { first: uids.start.0, end: uids.end.0 }).collect()
}
