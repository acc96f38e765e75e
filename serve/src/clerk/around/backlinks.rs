//! When pages linked to a target, and from which hosts ([`webstrata_layers::record::backlink`] has the rule).
//!
//! ```text
//! UIDs of the target --[cells of the target]--> pages that link --[cells of the pages]--> their stays
//!                                                        \--[a few of their URLs]--> their hosts
//! ```
//!
//! A page with captures in one row is answered by its cell; pages of several rows are fetched and joined here. Pages
//! are asked for in batches of [`PAGES`], several at once. Memory: the stays of all pages.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Weak};

use futures_util::future::try_join_all;
use tonic::Status;
use webstrata_layers::read::around::referrers::{keep_first, series};
use webstrata_layers::read::query::times_of;
use webstrata_layers::read::spellings::in_order;
use webstrata_layers::{
    Backlink, Direction, Event, Order, Period, RangeLength, Referrer, Referrers, ReferringHost, Uid, Unit, Window,
    lifespans_of,
};
use webstrata_url::domain_of;

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
use crate::protocol::status::Reason;

/// A question about backlinks.
#[derive(Clone, Debug)]
pub struct BacklinkQuestion {
    /// UIDs of the URLs of the target.
    pub target: Vec<Range<Uid>>,
    /// UIDs of pages that do not count.
    pub except: Vec<Range<Uid>>,
    /// What a row is.
    pub unit: Unit,
    /// The length of the periods.
    pub period: RangeLength,
    /// Rows without such an event in the interval are not selected.
    pub event: Event,
    /// A closed interval of seconds.
    pub interval: (i64, i64),
    /// The order of the rows.
    pub order: Order,
    /// Rows to skip.
    pub offset: usize,
    /// The most rows in the answer.
    pub limit: usize,
}

/// A row of an answer, and the URL of its page.
#[derive(Clone, Debug)]
pub struct BacklinkRow {
    /// The page; of a host or a domain the page that linked first.
    pub page: Uid,
    /// Its URL.
    pub url: String,
    /// The host or the domain; `None` for a page.
    pub name: Option<String>,
    /// How many pages of it ever linked.
    pub pages: u64,
    /// When it linked.
    pub backlink: Backlink,
}

/// Who links to a target.
#[derive(Clone, Debug)]
pub struct BacklinkAnswer {
    /// How many link, by the first second of each period.
    pub periods: Vec<(i64, Period)>,
    /// How many pages ever linked.
    pub pages: usize,
    /// How many rows there are.
    pub total: usize,
    /// How many of these are selected.
    pub selected: usize,
    /// The hosts with the most pages, at most 50.
    pub hosts: Vec<ReferringHost>,
    /// Selected rows.
    pub rows: Vec<BacklinkRow>,
}

/// What a target is in one epoch of one store.
#[derive(PartialEq, Eq)]
struct TargetKey {
    store: String,
    epoch: u64,
    target: Vec<Range<Uid>>,
    except: Vec<Range<Uid>>,
}

/// The referrers of the targets that were asked for last, the latest at the end.
#[derive(Default)]
pub(in crate::clerk) struct Remembered(VecDeque<(TargetKey, Arc<Referrers>)>);

impl Remembered {
    fn get(&mut self, key: &TargetKey) -> Option<Arc<Referrers>> {
        let at = self.0.iter().position(|(known, _)| known == key)?;
        let entry = self.0.remove(at)?;
        let found = entry.1.clone();
        self.0.push_back(entry);
        Some(found)
    }

    fn put(&mut self, key: TargetKey, referrers: Arc<Referrers>) {
        self.0.retain(|(known, _)| *known != key);
        self.0.push_back((key, referrers));
        let pages = |entries: &VecDeque<(TargetKey, Arc<Referrers>)>| {
            entries.iter().map(|(_, referrers)| referrers.len()).sum::<usize>()
        };
        while self.0.len() > REMEMBERED_TARGETS || pages(&self.0) > REMEMBERED_PAGES && !self.0.is_empty() {
            self.0.pop_front();
        }
    }
}

/// Forgets targets of epochs that are no longer served, as the map changes.
pub(in crate::clerk) async fn forget_retired(clerk: Weak<Shared>) {
    let Some(mut maps) = clerk.upgrade().map(|shared| shared.map.clone()) else { return };
    while maps.changed().await.is_ok() {
        let Some(shared) = clerk.upgrade() else { return };
        let map = maps.borrow_and_update().clone();
        lock(&shared.remembered).0.retain(|(known, _)| map.epochs.contains_key(&known.epoch));
    }
}

/// The most targets that are remembered, and the most pages of all of them; a page takes about 150 bytes.
const REMEMBERED_TARGETS: usize = 32;
const REMEMBERED_PAGES: usize = 1 << 19;
/// The most hosts in an answer.
const HOSTS: usize = 50;
/// URLs looked up in one batch.
const URLS: usize = 4096;
/// Pages asked for in one batch.
const PAGES: usize = 1 << 14;
/// Batches that are asked for at once.
const BATCHES: usize = 4;
/// Sources asked for in one answer.
const SOURCES_MAX: usize = 1 << 20;

impl Pinned {
    /// When each page linked to URLs of the target, by UID; without pages that never did, and without those in
    /// `except`.
    ///
    /// # Errors
    /// See [`Pinned`].
    pub async fn backlinks(
        &self,
        target: &[Range<Uid>],
        except: &[Range<Uid>],
    ) -> Result<Vec<(Uid, Backlink)>, Status> {
        let mut pages = self.sources_of(target).await?;
        pages.retain(|page| !except.iter().any(|uids| uids.contains(page)));
        let mut found = Vec::with_capacity(pages.len());
        for some in pages.chunks(PAGES * BATCHES) {
            let batches = some.chunks(PAGES).map(|pages| self.backlinks_of_any_size(pages, target));
            let backlinks = try_join_all(batches).await?.into_iter().flatten();
            let linking = |(_, backlink): &(Uid, Backlink)| !backlink.stays.is_empty();
            found.extend(some.iter().copied().zip(backlinks).filter(linking));
        }
        Ok(found)
    }

    /// Who links to a target, and since when.
    ///
    /// # Errors
    /// See [`Pinned`].
    pub async fn who_links(&self, question: BacklinkQuestion) -> Result<BacklinkAnswer, Status> {
        let BacklinkQuestion { target, except, unit, period, event, interval, order, offset, limit } = question;
        let referrers = self.remembered(target, except).await?;
        let (pages, mut hosts) = (referrers.len(), referrers.hosts());
        hosts.truncate(HOSTS);
        let mut rows = referrers.rows(unit, domain_of);
        let (periods, total) = (series(&rows, period), rows.len());
        if (event, interval) != (Event::Any, (i64::MIN, i64::MAX)) {
            rows.retain(|row| row.has(event, interval));
        }
        let selected = rows.len();
        keep_first(&mut rows, order, offset.saturating_add(limit));
        rows.drain(..offset.min(rows.len()));
        let mut urls = Vec::with_capacity(rows.len());
        for rows in rows.chunks(URLS) {
            urls.extend(self.urls(&rows.iter().map(|row| row.page).collect::<Vec<_>>()).await?);
        }
        let row = |(row, url): (Referrer<'_>, String)| {
            let Referrer { page, name, pages, backlink } = row;
            BacklinkRow { page, url, name, pages, backlink: backlink.into_owned() }
        };
        let rows = rows.into_iter().zip(urls).map(row).collect();
        Ok(BacklinkAnswer { periods, pages, total, selected, hosts, rows })
    }

    /// The referrers of a target; those of the last targets are kept, since people ask about one target in many ways,
    /// and an epoch never changes.
    async fn remembered(&self, target: Vec<Range<Uid>>, except: Vec<Range<Uid>>) -> Result<Arc<Referrers>, Status> {
        let key = TargetKey { store: self.map.store.clone(), epoch: self.graph.epoch, target, except };
        let known = lock(&self.clerk.shared.remembered).get(&key);
        if let Some(known) = known {
            return Ok(known);
        }
        let found = Arc::new(self.referrers(&key.target, &key.except).await?);
        lock(&self.clerk.shared.remembered).put(key, found.clone());
        Ok(found)
    }

    /// As [`Pinned::backlinks`], with the host of each page.
    ///
    /// # Errors
    /// See [`Pinned`].
    pub async fn referrers(&self, target: &[Range<Uid>], except: &[Range<Uid>]) -> Result<Referrers, Status> {
        let pages = self.backlinks(target, except).await?;
        let hosts = self.hosts_of(&pages.iter().map(|(page, _)| *page).collect::<Vec<_>>()).await?;
        Ok(Referrers::new(pages, hosts.iter().flat_map(|(host, count)| (0..*count).map(move |_| host))))
    }

    /// The pages that link to URLs of these UIDs in some row, in order.
    async fn sources_of(&self, target: &[Range<Uid>]) -> Result<Vec<Uid>, Status> {
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
        let (mut sources, mut first, mut most) = (Vec::new(), Some(Uid(0)), SOURCES_MAX);
        while let Some(from) = first {
            let request = SourcesOf { target: target.clone(), first: from.0, most: most as u64 };
            let question = |&cell: &CellName| CellQuestion { cell, question: QuestionKind::Sources(request.clone()) };
            let questions: Vec<CellQuestion> = cells.iter().map(question).collect();
            // Asked one by one, so that a server answers several at once.
            let answers = match try_join_all(questions.chunks(1).map(|question| self.ask(question))).await {
                Err(status) if most > 1 && Reason::of(&status) == Some(Reason::AnswerTooLarge) => {
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
            first = cut.filter_map(|list| list.links.last()?.0.checked_add(1)).min().map(Uid);
            let complete = |link: &Uid| first.is_none_or(|first| *link < first);
            sources.extend(lists.iter().flat_map(|list| &list.links).copied().filter(complete));
        }
        Ok(in_order(sources))
    }

    /// The backlinks of pages, in smaller batches if an answer would be too large.
    async fn backlinks_of_any_size(&self, pages: &[Uid], target: &[Range<Uid>]) -> Result<Vec<Backlink>, Status> {
        let (mut backlinks, mut rest, mut step) = (Vec::with_capacity(pages.len()), pages, pages.len());
        while !rest.is_empty() {
            let (batch, after) = rest.split_at(step.min(rest.len()));
            match self.backlinks_of(batch, target).await {
                Err(status) if Reason::of(&status) == Some(Reason::AnswerTooLarge) && batch.len() > 1 => {
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

    /// One backlink for each page; without stays where it never linked.
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

    /// The hosts of URLs, given in order of UIDs: stretches of UIDs of one host, with the length of each. Empty for
    /// URLs without a host.
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
        // UIDs rise, so the questions are in the order of the cells, and each is about UIDs that follow one another.
        let questions = split.cell_questions(|question| QuestionKind::HostsOf(chosen(uids, &question.items)));
        let lists = taken(self.ask(&questions).await?, |answer| match answer {
            AnswerKind::Stretches(hosts) => Some(hosts.hosts),
            _ => None,
        })?;
        Ok(lists.into_iter().flatten().map(|found| (found.host, found.urls)).collect())
    }
}

fn ranges_of(target: &[Range<Uid>]) -> Vec<proto::Range> {
    target.iter().map(|uids| proto::Range { first: uids.start.0, end: uids.end.0 }).collect()
}
