//! Questions about links. The clerk joins the answers of several rows about one page, as
//! [`webstrata_layers::record::precedence::several`] does if the rows are at hand, but in batches. It asks all rows
//! first. If a capture in a newer row may replace one in an older row, it then asks for captures, and asks the rows
//! again about the windows that [`webstrata_layers::record::precedence`] gives. Without failures, the links as of a
//! time come from the row with the latest capture, and the first answer has the time of that capture.
//!
//! Internally each item of a batch has its window, so that questions about different times travel in one call.

pub(super) mod lists;
mod parts;

use std::collections::HashMap;
use std::ops::Range;

use self::lists::{Lists, latest, unite};
use tonic::Status;
use webstrata_layers::{Batch, Direction, Page, Precision, Sample, Sampling, Uid, Window};

use super::call::other_kind;
use super::pinned::Pinned;
use super::split::{ItemPosition, QuestionItems, Split};
use crate::map::RowMap;
use crate::protocol::proto::answer::Answer as AnswerKind;
use crate::protocol::proto::question::Question as QuestionKind;
use crate::protocol::proto::{Drawing, HasLinks, LinksOf, UidList};
use crate::protocol::status::fits_in_parts;
use crate::protocol::values::{direction_to, window_to};
use webstrata_cells::cells::row::deciding_window;

/// Links asked for in one call if a list is too long for one answer.
const LIST_MAX: usize = 1 << 20;

/// The most pairs of a page and a link in one batch.
pub(super) const PAIRS: usize = 1 << 13;

/// A UID, and the window of the question.
pub(crate) type UidInWindow = (Uid, Window);

impl Pinned {
    /// The links of pages, or the pages that link to URLs, in the window, in increasing order.
    ///
    /// # Errors
    /// See [`Pinned`].
    pub async fn links(&self, uids: &[Uid], direction: Direction, window: Window) -> Result<Batch<Uid>, Status> {
        self.links_in_windows(&in_window(uids, window), direction).await
    }

    /// The same, with a separate window for each item.
    pub(crate) async fn links_in_windows(
        &self,
        items: &[UidInWindow],
        direction: Direction,
    ) -> Result<Batch<Uid>, Status> {
        match direction {
            Direction::Out => self.out_links(items).await,
            Direction::In(precision) => Ok(self.in_links(items, precision, Uid(0)..Uid(0)).await?.0),
        }
    }

    /// A part of the list that [`Pinned::links`] gives for one UID: at most `links_max` links from the UID `first` on,
    /// and the UID where the list continues. This method reads lists that are too long for one answer. Cost: each part
    /// of in-links decodes the whole list, and checks only the pages of the part.
    ///
    /// # Errors
    /// See [`Pinned`].
    pub async fn links_from(
        &self,
        uid: Uid,
        direction: Direction,
        window: Window,
        first: Uid,
        links_max: usize,
    ) -> Result<(Vec<Uid>, Option<Uid>), Status> {
        match direction {
            Direction::Out => {
                let mut links = self.out_links(&[(uid, window)]).await?.into_values();
                links.drain(..links.partition_point(|&link| link < first));
                let next = cut_to(links_max, &mut links);
                Ok((links, next))
            }
            Direction::In(precision) => {
                // One answer may hold the lists of several rows.
                let mut links_max = links_max.min(LIST_MAX / self.graph.rows.len().max(1)).max(1);
                loop {
                    let uids = first..first.saturating_add(links_max as u64);
                    match self.in_links(&[(uid, window)], precision, uids).await {
                        Err(status) if links_max > 1 && fits_in_parts(&status) => links_max /= 2,
                        links => return links.map(|(links, next)| (links.into_values(), next)),
                    }
                }
            }
        }
    }

    /// All links of one UID, however long the list is.
    ///
    /// # Errors
    /// See [`Pinned`].
    pub async fn all_links(&self, uid: Uid, direction: Direction, window: Window) -> Result<Vec<Uid>, Status> {
        let (mut links, mut next) = (Vec::new(), Some(Uid(0)));
        while let Some(first) = next {
            let (page, after) = self.links_from(uid, direction, window, first, LIST_MAX).await?;
            self.charge().keep(page.len() * size_of::<Uid>()).await?;
            links.extend(page);
            next = after;
        }
        Ok(links)
    }

    /// The number of links that [`Pinned::all_links`] gives. Memory: a part of the list.
    async fn count_links(&self, uid: Uid, direction: Direction, window: Window) -> Result<u64, Status> {
        let (mut count, mut next) = (0, Some(Uid(0)));
        while let Some(first) = next {
            let (page, after) = self.links_from(uid, direction, window, first, LIST_MAX).await?;
            count += page.len() as u64;
            next = after;
        }
        Ok(count)
    }

    /// Like [`Pinned::links`], but the list of a single UID may have any length.
    pub(crate) async fn links_of_any_length(
        &self,
        uids: &[Uid],
        direction: Direction,
        window: Window,
    ) -> Result<Batch<Uid>, Status> {
        let &[uid] = uids else { return self.links(uids, direction, window).await };
        let mut links = Batch::default();
        links.push(&self.all_links(uid, direction, window).await?);
        Ok(links)
    }

    /// Like [`Pinned::links`]. If the lists are too long for one answer, asks for them one after the other.
    pub(super) async fn lists(&self, uids: &[Uid], direction: Direction, window: Window) -> Result<Batch<Uid>, Status> {
        match self.links(uids, direction, window).await {
            Err(status) if fits_in_parts(&status) => {
                let mut lists = Batch::default();
                for &uid in uids {
                    lists.push(&self.all_links(uid, direction, window).await?);
                }
                Ok(lists)
            }
            lists => lists,
        }
    }

    /// The number of links that [`Pinned::links`] gives for each UID.
    ///
    /// # Errors
    /// See [`Pinned`].
    pub async fn degrees(&self, uids: &[Uid], direction: Direction, window: Window) -> Result<Vec<u64>, Status> {
        self.known(uids)?;
        let (single, split) = self.single(uids, direction, window);
        let mut degrees = vec![0; uids.len()];
        let lists =
            self.ask_links(&in_window(uids, window), &split, |_| direction, |request| request.count = true).await?;
        let mut others: Vec<usize> = (0..uids.len()).filter(|&item| !single[item]).collect();
        for position in &split.positions {
            match lists[position.question].degrees.get(position.index) {
                Some(&degree) => degrees[position.item] = degree,
                None => others.push(position.item),
            }
        }
        let other_uids: Vec<Uid> = others.iter().map(|&item| uids[item]).collect();
        match self.links(&other_uids, direction, window).await {
            Err(status) if fits_in_parts(&status) => {
                for (&item, &uid) in others.iter().zip(&other_uids) {
                    degrees[item] = self.count_links(uid, direction, window).await?;
                }
            }
            links => {
                for (&item, list) in others.iter().zip(links?.iter()) {
                    degrees[item] = list.len() as u64;
                }
            }
        }
        Ok(degrees)
    }

    /// A sample of the lists that [`Pinned::links`] gives, in increasing order. If one cell has the whole list of a
    /// UID, its server draws the sample.
    ///
    /// # Errors
    /// See [`Pinned`].
    pub async fn samples(
        &self,
        uids: &[Uid],
        direction: Direction,
        window: Window,
        sample: Sample,
    ) -> Result<Batch<Uid>, Status> {
        self.known(uids)?;
        let (single, split) = self.single(uids, direction, window);
        let drawing = Drawing {
            samples: u32::try_from(sample.count).unwrap_or(u32::MAX),
            random: sample.sampling == Sampling::Random,
            seed: sample.seed,
        };
        let lists = self
            .ask_links(&in_window(uids, window), &split, |_| direction, |request| request.sample = Some(drawing))
            .await?;
        // Items with unsure links, and items with records in several rows.
        let mut others: Vec<usize> = (0..uids.len()).filter(|&item| !single[item]).collect();
        let mut drawn: HashMap<usize, &[Uid]> = HashMap::new();
        for position in &split.positions {
            if lists[position.question].is_sure(position.index)? {
                drawn.insert(position.item, lists[position.question].list(position.index)?);
            } else {
                others.push(position.item);
            }
        }
        let other_uids: Vec<Uid> = others.iter().map(|&item| uids[item]).collect();
        let all_links = self.lists(&other_uids, direction, window).await?;
        let all_links: HashMap<usize, &[Uid]> = others.iter().copied().zip(all_links.iter()).collect();
        let mut samples = Batch::default();
        let mut links = Vec::new();
        for (item, &uid) in uids.iter().enumerate() {
            links.clear();
            links.extend_from_slice(drawn.get(&item).or_else(|| all_links.get(&item)).copied().unwrap_or_default());
            sample.draw(uid, &mut links);
            samples.push(&links);
        }
        Ok(samples)
    }

    /// Whether pages have links in the window, for pairs of a page and a link.
    ///
    /// # Errors
    /// See [`Pinned`].
    pub async fn has_links(&self, pairs: &[(Uid, Uid)], window: Window) -> Result<Vec<bool>, Status> {
        let pairs: Vec<_> = pairs.iter().map(|&(page, link)| (page, link, window)).collect();
        self.has_links_in_windows(&pairs).await
    }

    /// The same, with a separate window for each item.
    async fn has_links_in_windows(&self, pairs: &[(Uid, Uid, Window)]) -> Result<Vec<bool>, Status> {
        let items: Vec<UidInWindow> = pairs.iter().map(|&(page, _, window)| (page, window)).collect();
        let split = self.split_in_windows(&items, RowMap::overlaps)?;
        let answers = self.ask(&split.cell_questions(|question| pairs_of(pairs, question))).await?;
        let mut rows_with_link = Vec::with_capacity(pairs.len());
        for (_, positions) in split.by_item(pairs.len()) {
            let mut rows = Vec::new();
            for position in positions {
                if truth_of(&answers, position)? {
                    rows.push(split.questions[position.question].row);
                }
            }
            rows_with_link.push(rows);
        }
        let parts = self.parts(&items, &split, |item, _| !rows_with_link[item].is_empty()).await?;
        let mut has: Vec<bool> =
            (0..pairs.len()).map(|item| rows_with_link[item].iter().any(|&row| parts.is_valid(item, row))).collect();
        // In an interval, a row without the link has it in no part.
        let asked = parts.asked(|item, row| {
            !has[item] && (matches!(items[item].1, Window::AsOf(_)) || rows_with_link[item].contains(&row))
        });
        let part_pairs: Vec<_> = asked.items.iter().map(|&(item, (page, part))| (page, pairs[item].1, part)).collect();
        let answers = self.ask(&asked.split.cell_questions(|question| pairs_of(&part_pairs, question))).await?;
        for position in &asked.split.positions {
            has[asked.items[position.item].0] |= truth_of(&answers, position)?;
        }
        let pages = self.pages_by_uid(asked.whole.iter().map(|&item| items[item].0)).await?;
        for item in asked.whole {
            let (page, link, window) = pairs[item];
            has[item] = pages.get(&page).is_some_and(|page| page.has_link(link, window));
        }
        Ok(has)
    }

    /// The pages of UIDs, by UID. The UIDs may come in any order.
    async fn pages_by_uid(&self, uids: impl Iterator<Item = Uid>) -> Result<HashMap<Uid, Page>, Status> {
        let pages = self.pages(&distinct(uids)).await?;
        Ok(pages.into_iter().flatten().map(|page| (page.uid, page)).collect())
    }

    async fn out_links(&self, items: &[UidInWindow]) -> Result<Batch<Uid>, Status> {
        let split = self.split_in_windows(items, RowMap::overlaps)?;
        let lists = self.ask_links(items, &split, |_| Direction::Out, |_| {}).await?;
        let found = |positions: &[ItemPosition]| {
            positions.iter().filter(|position| lists[position.question].is_found(position.index)).count()
        };
        let parts = self
            .parts(items, &split, |item, positions| {
                matches!(items[item].1, Window::Seen { .. }) && found(positions) > 1
            })
            .await?;
        let asked = parts.asked(|_, _| true);
        let part_items: Vec<UidInWindow> = asked.items.iter().map(|&(_, item)| item).collect();
        let part_lists = self.ask_links(&part_items, &asked.split, |_| Direction::Out, |_| {}).await?;
        let mut of_parts: HashMap<usize, Vec<ItemPosition>> = HashMap::new();
        for &position in &asked.split.positions {
            of_parts.entry(asked.items[position.item].0).or_default().push(position);
        }
        let pages = self.pages_by_uid(asked.whole.iter().map(|&item| items[item].0)).await?;
        let mut whole = asked.whole.iter().copied().peekable();
        let mut links = Batch::default();
        let mut page_links = Vec::new();
        for (item, positions) in split.by_item(items.len()) {
            let (page, window) = items[item];
            page_links.clear();
            if whole.next_if_eq(&item).is_some() {
                pages.get(&page).iter().for_each(|page| page.links_in(window, &mut page_links));
            } else if parts.are_compared(item) {
                let is_valid = |position: &&ItemPosition| parts.is_valid(item, split.questions[position.question].row);
                unite(&lists, positions.iter().filter(is_valid), &mut page_links)?;
                unite(&part_lists, of_parts.get(&item).into_iter().flatten(), &mut page_links)?;
            } else if let Window::AsOf(_) = window {
                page_links.extend_from_slice(latest(&lists, positions)?);
            } else {
                unite(&lists, positions, &mut page_links)?;
            }
            links.push(&page_links);
        }
        Ok(links)
    }

    /// The in-links of items. A non-empty `stretch` (for one UID only) asks for at most as many links as its length,
    /// from its start on. Also returns the UID where the list continues. An empty `stretch` asks for all links.
    async fn in_links(
        &self,
        items: &[UidInWindow],
        precision: Precision,
        stretch: Range<Uid>,
    ) -> Result<(Batch<Uid>, Option<Uid>), Status> {
        let exact = precision == Precision::Exact;
        let decides = |window: Window| self.graph.overlaps.each_row_decides(window);
        let precision_in = |window: Window| if decides(window) { precision } else { Precision::Range };
        let direction = |window: Window| Direction::In(precision_in(window));
        let split =
            self.split_in_windows(items, |row, window| if exact { row.overlaps(window) } else { !window.is_empty() })?;
        let links_max = stretch.end - stretch.start;
        let cut = |request: &mut LinksOf| (request.first, request.most) = (stretch.start.0, links_max);
        let mut lists = self.ask_links(items, &split, direction, cut).await?;
        // After the end of the first list that was cut, the union of the lists is incomplete.
        let is_cut = |list: &&Lists| links_max > 0 && list.links.len() as u64 >= links_max;
        let mut next =
            lists.iter().filter(is_cut).filter_map(|list| list.links.last()?.0.checked_add(1)).min().map(Uid);
        let deciding = |window: Window| deciding_window(window, precision_in(window), self.graph.in_range);
        self.settle(items, &split, &mut lists, deciding).await?;
        let mut links = Batch::default();
        let mut sources = Vec::new();
        for (_, positions) in split.by_item(items.len()) {
            sources.clear();
            unite(&lists, positions, &mut sources)?;
            links.push(&sources);
        }
        if let Ok(links_max @ 1..) = usize::try_from(links_max) {
            let mut complete = links.into_values();
            complete.truncate(next.map_or(complete.len(), |next| complete.partition_point(|&link| link < next)));
            // Each row gives so many links, so their union may have more.
            next = cut_to(links_max, &mut complete).or(next);
            links = Batch::default();
            links.push(&complete);
        }
        let checked = |window: Window| self.graph.overlaps.checked(window, exact);
        let (mut pairs, mut holds) = (Vec::new(), Vec::new());
        for (item, &(uid, window)) in items.iter().enumerate() {
            let Some(window) = checked(window) else { continue };
            for &source in links.get(item) {
                pairs.push((source, uid, window));
                if pairs.len() == PAIRS {
                    holds.append(&mut self.has_links_in_windows(&pairs).await?);
                    pairs.clear();
                }
            }
        }
        if !pairs.is_empty() {
            holds.append(&mut self.has_links_in_windows(&pairs).await?);
        }
        if holds.is_empty() {
            return Ok((links, next));
        }
        let mut holds = holds.into_iter();
        let mut sure = Batch::default();
        for (&(_, window), all_sources) in items.iter().zip(links.iter()) {
            sources.clear();
            sources.extend(
                all_sources.iter().copied().filter(|_| checked(window).is_none() || holds.next().unwrap_or(false)),
            );
            sure.push(&sources);
        }
        Ok((sure, next))
    }

    /// Asks the cells of unsure sources, and removes the sources that do not link in the window that decides.
    async fn settle(
        &self,
        items: &[UidInWindow],
        split: &Split<'_>,
        lists: &mut [Lists],
        deciding: impl Fn(Window) -> Window,
    ) -> Result<(), Status> {
        for (question_items, list) in split.questions.iter().zip(lists) {
            let (mut removed, window) = (Vec::new(), deciding(question_items.window));
            for indexes in list.unsure.chunks(PAIRS) {
                let mut pairs = Vec::with_capacity(indexes.len());
                for &index in indexes {
                    let index = index as usize;
                    let source = *list.links.get(index).ok_or_else(other_kind)?;
                    let item = question_items.items.get(list.list_with(index)).ok_or_else(other_kind)?;
                    pairs.push((source, items[*item].0));
                }
                // The in-links of a row mirror its out-links, so the page of the source is in the same row.
                let holds = self.has_links_in_row(question_items.row, &pairs, window).await?;
                removed.extend(indexes.iter().zip(holds).filter(|(_, links)| !links).map(|(&index, _)| index as usize));
            }
            list.without(&removed);
        }
        Ok(())
    }

    /// Whether pages have links in the window, as one row has them, for pairs of a page and a link. A UID without a
    /// page in the row has no links.
    pub(super) async fn has_links_in_row(
        &self,
        row: usize,
        pairs: &[(Uid, Uid)],
        window: Window,
    ) -> Result<Vec<bool>, Status> {
        let mut split = Split::of(&self.graph);
        for (item, &(page, _)) in pairs.iter().enumerate() {
            if let Some(cell) = self.graph.rows[row].cell_of(page) {
                split.add_in(row, cell, window, item);
            }
        }
        let of_question = |question: &QuestionItems| {
            let (pages, links) = question.items.iter().map(|&item| (pairs[item].0.0, pairs[item].1.0)).unzip();
            QuestionKind::HasLinks(HasLinks { pages, links, window: Some(window_to(window)) })
        };
        let answers = self.ask(&split.cell_questions(of_question)).await?;
        let mut holds = vec![false; pairs.len()];
        for position in &split.positions {
            holds[position.item] = truth_of(&answers, position)?;
        }
        Ok(holds)
    }

    /// Groups UIDs by cell, in the rows for which `is_asked` is true.
    pub(super) fn split(&self, uids: &[Uid], is_asked: impl Fn(&RowMap) -> bool) -> Split<'_> {
        let mut split = Split::of(&self.graph);
        let rows: Vec<_> = self.graph.rows.iter().enumerate().filter(|(_, row)| is_asked(row)).collect();
        for (item, &uid) in uids.iter().enumerate() {
            for &(row_index, row) in &rows {
                if let Some(cell) = row.cell_of(uid) {
                    split.add(row_index, cell, item);
                }
            }
        }
        split
    }

    /// The same, with a separate window for each item.
    ///
    /// # Errors
    /// UNKNOWN_UID.
    fn split_in_windows(
        &self,
        items: &[UidInWindow],
        is_asked: impl Fn(&RowMap, Window) -> bool,
    ) -> Result<Split<'_>, Status> {
        let mut split = Split::of(&self.graph);
        for (item, &(uid, window)) in items.iter().enumerate() {
            self.known(&[uid])?;
            for (row_index, row) in self.graph.rows.iter().enumerate() {
                if let Some(cell) = row.cell_of(uid).filter(|_| is_asked(row, window)) {
                    split.add_in(row_index, cell, window, item);
                }
            }
        }
        Ok(split)
    }

    /// For each item, whether at most one row has a record of it and the answer of one cell is final. Also returns the
    /// items that one cell answers, by cell.
    pub(super) fn single(&self, uids: &[Uid], direction: Direction, window: Window) -> (Vec<bool>, Split<'_>) {
        let by_range = direction == Direction::In(Precision::Range);
        // Another row may have a later capture of a source, without the link.
        let alone = direction == Direction::Out || self.graph.overlaps.checked(window, !by_range).is_none();
        let is_asked = |row: &RowMap| if by_range { !window.is_empty() } else { row.overlaps(window) };
        let rows: Vec<_> = self.graph.rows.iter().enumerate().filter(|(_, row)| is_asked(row)).collect();
        let mut split = Split::of(&self.graph);
        let mut single = Vec::with_capacity(uids.len());
        for (item, &uid) in uids.iter().enumerate() {
            let mut cells = rows.iter().filter_map(|&(row_index, row)| row.cell_of(uid).map(|cell| (row_index, cell)));
            let (first, second) = (cells.next(), cells.next());
            single.push(second.is_none() && (alone || first.is_none()));
            if let (Some((row_index, cell)), None, true) = (first, second, alone) {
                split.add_in(row_index, cell, window, item);
            }
        }
        (single, split)
    }

    async fn ask_links(
        &self,
        items: &[UidInWindow],
        split: &Split<'_>,
        direction: impl Fn(Window) -> Direction,
        adjust: impl Fn(&mut LinksOf),
    ) -> Result<Vec<Lists>, Status> {
        let questions = split.cell_questions(|question| {
            let mut request = LinksOf {
                uids: question.items.iter().map(|&item| items[item].0.0).collect(),
                direction: direction_to(direction(question.window)),
                window: Some(window_to(question.window)),
                ..LinksOf::default()
            };
            adjust(&mut request);
            QuestionKind::Links(request)
        });
        let lists = taken(self.ask(&questions).await?, |answer| match answer {
            AnswerKind::Links(lists) => Some(lists),
            _ => None,
        })?;
        lists.into_iter().map(Lists::of).collect()
    }
}

pub(super) fn chosen(uids: &[Uid], items: &[usize]) -> UidList {
    UidList { uids: items.iter().map(|&item| uids[item].0).collect() }
}

fn pairs_of(pairs: &[(Uid, Uid, Window)], question: &QuestionItems) -> QuestionKind {
    let (pages, links) = question.items.iter().map(|&item| (pairs[item].0.0, pairs[item].1.0)).unzip();
    QuestionKind::HasLinks(HasLinks { pages, links, window: Some(window_to(question.window)) })
}

/// Sorts values and removes duplicates.
fn distinct(uids: impl Iterator<Item = Uid>) -> Vec<Uid> {
    let mut uids: Vec<Uid> = uids.collect();
    uids.sort_unstable();
    uids.dedup();
    uids
}

fn in_window(uids: &[Uid], window: Window) -> Vec<UidInWindow> {
    uids.iter().map(|&uid| (uid, window)).collect()
}

/// Takes the content of answers, which must all be of one kind.
pub(super) fn taken<T>(answers: Vec<AnswerKind>, take: impl Fn(AnswerKind) -> Option<T>) -> Result<Vec<T>, Status> {
    answers.into_iter().map(|answer| take(answer).ok_or_else(other_kind)).collect()
}

fn truth_of(answers: &[AnswerKind], position: &ItemPosition) -> Result<bool, Status> {
    match &answers[position.question] {
        AnswerKind::Truths(truths) => truths.truths.get(position.index).copied().ok_or_else(other_kind),
        _ => Err(other_kind()),
    }
}

/// Cuts a list to `most` links. Returns the UID where the list continues.
fn cut_to(most: usize, links: &mut Vec<Uid>) -> Option<Uid> {
    let next = links.get(most).copied();
    links.truncate(most);
    next
}
