//! Questions about whole pages: captures, lifespans, records, and in [`in_records`] the records of in-links. Records of
//! several rows are joined as in layers.

mod in_records;

use std::collections::HashMap;

use tonic::Status;
use webstrata_layers::record::join;
use webstrata_layers::record::precedence;
use webstrata_layers::{
    Batch, CaptureTime, CapturesBuf, Change, Direction, Lifespan, Page, Spans, Status as CaptureStatus, StatusChange,
    Uid, Window,
};

use super::call::{CellQuestion, other_kind};
use super::links::{chosen, taken};
use super::pinned::Pinned;
use super::split::{ItemPosition, Split, bounds};
use crate::map::RowMap;
use crate::protocol::proto::answer::Answer as AnswerKind;
use crate::protocol::proto::question::Question as QuestionKind;
use crate::protocol::proto::{CellName, CellStats, SpanLists, TimeLists};

impl Pinned {
    /// The captures of pages, in order of time.
    ///
    /// # Errors
    /// See [`Pinned`].
    pub async fn captures(&self, uids: &[Uid]) -> Result<Batch<CaptureTime>, Status> {
        let (split, lists) = self.capture_lists(uids).await?;
        let ends: Vec<Vec<usize>> = lists.iter().map(|lists| bounds(&lists.counts)).collect();
        let mut captures = Batch::default();
        let mut page_captures: Vec<CaptureTime> = Vec::new();
        for (_, positions) in split.by_item(uids.len()) {
            page_captures.clear();
            for position in positions {
                page_captures.extend(captures_of(&lists[position.question], &ends[position.question], position)?);
            }
            precedence::merge(&mut page_captures);
            captures.push(&page_captures);
        }
        Ok(captures)
    }

    /// The captures of pages in each row, by UID.
    pub(super) async fn captures_by_row(&self, uids: &[Uid]) -> Result<HashMap<Uid, RowCaptures>, Status> {
        let (split, lists) = self.capture_lists(uids).await?;
        let ends: Vec<Vec<usize>> = lists.iter().map(|lists| bounds(&lists.counts)).collect();
        let mut captures = HashMap::with_capacity(uids.len());
        for (item, positions) in split.by_item(uids.len()) {
            let mut row_captures = RowCaptures(Vec::new());
            for position in positions {
                let of_row = captures_of(&lists[position.question], &ends[position.question], position)?.collect();
                row_captures.0.push((split.questions[position.question].row, of_row));
            }
            captures.insert(uids[item], row_captures);
        }
        Ok(captures)
    }

    async fn capture_lists(&self, uids: &[Uid]) -> Result<(Split<'_>, Vec<TimeLists>), Status> {
        self.known(uids)?;
        let split = self.split(uids, |_| true);
        let questions = split.cell_questions(|question| QuestionKind::Captures(chosen(uids, &question.items)));
        let lists = taken(self.ask(&questions).await?, |answer| match answer {
            AnswerKind::Captures(lists) => Some(lists),
            _ => None,
        })?;
        Ok((split, lists))
    }

    /// For each link of each page, in order, its lifespans.
    ///
    /// # Errors
    /// See [`Pinned`].
    pub async fn lifespans(&self, uids: &[Uid]) -> Result<Batch<Lifespan>, Status> {
        self.spans(uids, Spans::Lifespans).await
    }

    /// For each link of each page, in order, its lifespans or runs.
    ///
    /// # Errors
    /// See [`Pinned`].
    pub async fn spans(&self, uids: &[Uid], spans: Spans) -> Result<Batch<Lifespan>, Status> {
        self.known(uids)?;
        // Only captures that leave links unknown end a run inside of a lifespan.
        let spans = if self.graph.has_unknown { spans } else { Spans::Lifespans };
        let (single, split) = self.single(uids, Direction::Out, Window::ALWAYS);
        let questions = split.cell_questions(|question| {
            let uids = chosen(uids, &question.items);
            match spans {
                Spans::Lifespans => QuestionKind::Lifespans(uids),
                Spans::Runs => QuestionKind::Runs(uids),
            }
        });
        let lists = taken(self.ask(&questions).await?, |answer| match answer {
            AnswerKind::Lifespans(lists) => Some(lists),
            _ => None,
        })?;
        let ends: Vec<Vec<usize>> = lists.iter().map(|lists| bounds(&lists.counts)).collect();
        let several: Vec<usize> = (0..uids.len()).filter(|&item| !single[item]).collect();
        let others: Vec<Uid> = several.iter().map(|&item| uids[item]).collect();
        let mut pages = self.pages(&others).await?.into_iter();
        let mut lifespans = Batch::default();
        let mut page_lifespans = Vec::new();
        for (item, positions) in split.by_item(uids.len()) {
            page_lifespans.clear();
            if single[item] {
                for position in positions {
                    page_lifespans.extend(lifespans_in(&lists[position.question], &ends[position.question], position)?);
                }
            } else if let Some(page) = pages.next().flatten() {
                spans.of_page(&page, &mut page_lifespans);
            }
            lifespans.push(&page_lifespans);
        }
        Ok(lifespans)
    }

    /// Whole pages: all captures with all links; `None` for URLs that were never captured.
    ///
    /// # Errors
    /// See [`Pinned`].
    pub async fn pages(&self, uids: &[Uid]) -> Result<Vec<Option<Page>>, Status> {
        self.known(uids)?;
        self.pages_in(uids, |_| true).await
    }

    /// The same, as some rows have the pages.
    pub(super) async fn pages_in(
        &self,
        uids: &[Uid],
        is_asked: impl Fn(&RowMap) -> bool,
    ) -> Result<Vec<Option<Page>>, Status> {
        let split = self.split(uids, is_asked);
        let questions = split.cell_questions(|question| QuestionKind::Pages(chosen(uids, &question.items)));
        let lists = taken(self.ask_apart(&questions).await?, |answer| match answer {
            AnswerKind::Pages(pages) => Some(pages.pages),
            _ => None,
        })?;
        let mut pages = Vec::with_capacity(uids.len());
        for (item, positions) in split.by_item(uids.len()) {
            let mut row_pages = Vec::new();
            for position in positions {
                row_pages
                    .extend(page_of(uids[item], lists[position.question].get(position.index).ok_or_else(other_kind)?)?);
            }
            pages.push(join::page_of_rows(row_pages));
        }
        Ok(pages)
    }

    /// The counts of each cell, by row (oldest first) and in order of UIDs.
    ///
    /// # Errors
    /// See [`Pinned`].
    pub async fn counts(&self) -> Result<Vec<CellStats>, Status> {
        let cells = || self.graph.rows.iter().flat_map(|row| row.cells.iter().map(|cell| (row.row, cell)));
        let name = |row: u32, cell: &crate::map::CellMap| CellName { row, partition: cell.partition };
        let questions: Vec<CellQuestion> = cells()
            .map(|(row, cell)| CellQuestion { cell: name(row, cell), question: QuestionKind::Counts(true) })
            .collect();
        let counts = taken(self.ask(&questions).await?, |answer| match answer {
            AnswerKind::Counts(counts) => Some(counts),
            _ => None,
        })?;
        let stats = |((row, cell), counts): ((u32, &crate::map::CellMap), _)| {
            // An empty range is sent with the last UID below the first.
            let (start, end) = (cell.urls.start.0, cell.urls.end.0);
            let (min_uid, max_uid) = if start < end { (start, end - 1) } else { (start + 1, start) };
            CellStats { cell: Some(name(row, cell)), min_uid, max_uid, counts: Some(counts) }
        };
        Ok(cells().zip(counts).map(stats).collect())
    }
}

/// The captures of a page in each row, with the index of the row, oldest first.
pub(super) struct RowCaptures(Vec<(usize, CapturesBuf)>);

impl RowCaptures {
    /// The windows about which each row is asked alone ([`precedence::windows`]).
    pub(super) fn windows(&self, window: Window) -> Vec<(usize, Vec<Window>)> {
        let views: Vec<_> = self.0.iter().map(|(_, captures)| captures.view()).collect();
        let windows = |(at, (row, _)): (usize, &(usize, _))| (*row, precedence::windows(&views, at, window));
        self.0.iter().enumerate().map(windows).collect()
    }
}

fn captures_of<'a>(
    lists: &'a TimeLists,
    ends: &[usize],
    position: &ItemPosition,
) -> Result<impl Iterator<Item = CaptureTime> + 'a, Status> {
    let bounds = ends.get(position.index).zip(ends.get(position.index + 1)).ok_or_else(other_kind)?;
    let (start, end) = (*bounds.0, *bounds.1);
    let times = lists.times.get(start..end).ok_or_else(other_kind)?;
    let mut unknown =
        lists.unknown[lists.unknown.partition_point(|&index| (index as usize) < start)..].iter().peekable();
    Ok((start..).zip(times).map(move |(index, &time)| {
        let known = unknown.next_if(|&&next| next as usize == index).is_none();
        let status = lists.statuses.get(index).and_then(|&code| CaptureStatus::stored(u16::try_from(code).ok()?));
        CaptureTime { time, known, status: status.unwrap_or(CaptureStatus::OK) }
    }))
}

fn lifespans_in<'a>(
    lists: &'a SpanLists,
    ends: &[usize],
    position: &ItemPosition,
) -> Result<impl Iterator<Item = Lifespan> + 'a, Status> {
    let bounds = ends
        .get(position.index)
        .zip(ends.get(position.index + 1))
        .map(|(&start, &end)| start..end)
        .ok_or_else(other_kind)?;
    let links = lists.links.get(bounds.clone()).ok_or_else(other_kind)?;
    let firsts = lists.firsts.get(bounds.clone()).ok_or_else(other_kind)?;
    let lasts = lists.lasts.get(bounds).ok_or_else(other_kind)?;
    let times = firsts.iter().zip(lasts);
    Ok(links.iter().zip(times).map(|(&link, (&first, &last))| Lifespan { link: Uid(link), first, last }))
}

/// The page in a message; `None` if it has no captures.
fn page_of(uid: Uid, page: &crate::protocol::proto::Page) -> Result<Option<Page>, Status> {
    if page.timestamps.is_empty() {
        return Ok(None);
    }
    let changes = page.change_links.iter().zip(&page.change_captures);
    let statuses = page.status_captures.iter().zip(&page.statuses).map(|(&capture, &code)| {
        let status = u16::try_from(code).ok().and_then(CaptureStatus::stored);
        let wrong = || Status::internal(format!("the server sent the status {code} for UID {uid}"));
        Ok(StatusChange { capture, status: status.ok_or_else(wrong)? })
    });
    let page = Page {
        uid,
        timestamps: page.timestamps.clone(),
        blank: page.blank.clone(),
        links: Uid::slice(&page.links).to_vec(),
        changes: changes.map(|(&link, &capture)| Change { link, capture }).collect(),
        statuses: statuses.collect::<Result<_, Status>>()?,
    };
    match page.flaw() {
        None => Ok(Some(page)),
        Some(flaw) => Err(Status::internal(format!("the server sent a damaged page for UID {uid}: {flaw}"))),
    }
}
