//! One answer under construction: counts lines, and knows where the next page begins.
//!
//! The size of an answer in bytes bounds its lines ([`LINE`]), and [`LOOK`] the time for finding them. If more lines
//! may follow, the answer ends with a resume key, whether or not the client asked for one, so that no client takes it
//! for the whole. Lines that must all be known before the first is sent are refused if they take longer.
//!
//! Memory: the last lines, with a negative limit; the nearest lines, with `sort=closest` for several pages.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::{Duration, Instant};

use tonic::Status;
use webstrata_layers::Uid;

use super::field::Line;
use super::nearest::Nearest;
use super::parameters::{Asked, Limit, Order};
use super::selection::{Collapse, Filter, keep};
use super::shape::{Column, Links, Shape};
use super::source::{CHUNK, Reach, Source};
use crate::clerk::Pinned;
use crate::http::question::address::meant;
use crate::http::question::resume::{PagePosition, Start};
use crate::protocol::status::{Reason, refuse};

/// Bytes of an answer for each line that it may have.
const LINE: usize = 128;
/// How long one answer looks for lines.
const LOOK: Duration = Duration::from_secs(5);

/// The parameters of a source for its questions to the clerk.
pub(super) struct Question {
    pub(super) pinned: Pinned,
    pub(super) interval: (i64, i64),
    /// The size of the text of a chunk in bytes.
    pub(super) bytes: usize,
}

/// One answer under construction; see the head of this file.
pub(super) struct Listing {
    question: Question,
    source: Source,
    filters: Vec<Filter>,
    collapses: Vec<Collapse>,
    nearest: Option<Nearest>,
    /// The number of lines that are skipped before the first.
    skips: u64,
    limit: Limit,
    /// The number of lines that the answer may still have, whatever the limit.
    lines_left: usize,
    /// How long the answer has looked for lines.
    looked: Duration,
    /// The position of the last line that was looked at.
    seen: Option<PagePosition>,
    /// Whether the answer ends before its limit.
    is_cut: bool,
    /// Whether the source returns lines from the end although the answer is in the order of the store.
    is_from_end: bool,
    /// Whether the first line from the source was the last line of the page before.
    continues: bool,
    /// The position of the last line.
    last: Option<PagePosition>,
    /// The last lines seen, with a negative limit.
    kept: VecDeque<Line>,
    columns: Vec<Column>,
    shape: Shape,
    links: Links,
    start: Start,
    /// Whether the answer ends with the key of the next page.
    shows_key: bool,
    has_lines: bool,
    is_ended: bool,
}

impl Listing {
    /// The answer to a question about these UIDs.
    pub(super) async fn of(
        mut asked: Asked,
        pinned: Pinned,
        uid_intervals: Vec<Range<Uid>>,
        replay: &str,
        bytes: usize,
    ) -> Result<Self, Status> {
        let question = Question { pinned, interval: asked.interval, bytes };
        let (position, is_page) = (asked.start.position, asked.reach == Reach::Page);
        let is_empty = asked.interval.0 > asked.interval.1;
        let is_from_end = !is_page
            && asked.order == Order::Stored
            && asked.collapses.is_empty()
            && matches!(asked.limit, Limit::Last(_));
        let mut nearest = None;
        let source = match asked.order {
            _ if is_empty => Source::Ended,
            _ if is_page => {
                let spellings: Vec<Uid> = uid_intervals.iter().map(|uids| uids.start).collect();
                let mut lines = Source::lines_of_page(&question.pinned, &spellings, question.interval).await?;
                // All lines are known, so adjacency does not depend on the order or on the page.
                let (filters, mut collapses) =
                    (std::mem::take(&mut asked.filters), std::mem::take(&mut asked.collapses));
                lines.retain(|line| keep(&filters, &mut collapses, line));
                match asked.order {
                    Order::Stored => {}
                    Order::Reverse => lines.reverse(),
                    Order::Nearest(time) => lines.sort_by_key(|line| line.capture.time.abs_diff(time)),
                }
                (0..).zip(&mut lines).for_each(|(sent, line)| line.position.sent = sent);
                lines.drain(..position.unwrap_or_default().sent.min(lines.len()));
                Source::Page(lines.into_iter())
            }
            Order::Reverse => Source::back(uid_intervals, position),
            Order::Stored if is_from_end => Source::back(uid_intervals, position),
            Order::Stored => Source::walk(uid_intervals, position),
            Order::Nearest(time) => {
                nearest = asked.nearest_lines().map(|lines| Nearest::new(time, lines));
                Source::walk(uid_intervals, None)
            }
        };
        let original = if is_page { meant(&asked.url)?.into_iter().next() } else { None };
        Ok(Self {
            question,
            source,
            skips: if position.is_none() { asked.offset } else { 0 },
            limit: asked.limit,
            lines_left: (bytes / LINE).max(1),
            looked: Duration::ZERO,
            seen: None,
            is_cut: false,
            is_from_end,
            continues: position.is_some() && nearest.is_none(),
            nearest,
            last: None,
            kept: VecDeque::new(),
            filters: asked.filters,
            collapses: asked.collapses,
            columns: asked.columns,
            shape: asked.shape,
            links: Links { replay: replay.to_owned(), original },
            start: asked.start,
            shows_key: asked.shows_key,
            has_lines: false,
            is_ended: false,
        })
    }

    /// The text of the next lines; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<String>, Status> {
        let mut out = String::new();
        while out.is_empty() {
            if self.is_ended {
                return Ok(None);
            }
            let begun = Instant::now();
            match self.source.next(&self.question, self.count()).await? {
                Some(lines) => self.take(lines, &mut out),
                None => self.finish(&mut out),
            }
            self.looked += begun.elapsed();
            if self.looked > LOOK && !self.is_ended {
                self.stop(&mut out)?;
            }
            if self.is_cut && self.shape == Shape::Link {
                let message = "more lines follow, and link format has no place for a resume key; set limit";
                return Err(refuse(Reason::AnswerTooLarge, message, &[]));
            }
        }
        Ok(Some(out))
    }

    /// Ends an answer that has looked for lines for too long.
    fn stop(&mut self, out: &mut String) -> Result<(), Status> {
        if self.nearest.is_some() || self.skips > 0 || matches!(self.limit, Limit::Last(_)) {
            let message = format!(
                "all lines must be known before the first, and {LOOK:?} are not enough; ask for fewer URLs or a \
                 shorter interval"
            );
            return Err(refuse(Reason::AnswerTooLarge, message, &[]));
        }
        if self.seen.is_some() {
            self.is_cut = true;
            self.end(self.seen, out);
        }
        Ok(())
    }

    /// The number of captures to look up next.
    fn count(&self) -> usize {
        match self.limit {
            Limit::First(left) if self.filters.is_empty() && self.collapses.is_empty() && self.nearest.is_none() => {
                usize::try_from(left.saturating_add(self.skips)).unwrap_or(CHUNK).saturating_add(2).min(CHUNK)
            }
            _ => CHUNK,
        }
    }

    fn take(&mut self, lines: Vec<Line>, out: &mut String) {
        for line in lines {
            if std::mem::take(&mut self.continues) {
                self.last = Some(line.position);
                keep(&self.filters, &mut self.collapses, &line);
                continue;
            }
            self.seen = Some(line.position);
            if !keep(&self.filters, &mut self.collapses, &line) {
                continue;
            }
            match &mut self.nearest {
                Some(nearest) => nearest.push(line),
                None => self.admit(line, out),
            }
            if self.is_ended {
                return;
            }
        }
    }

    /// Lists a line, unless it is beyond the limit.
    fn admit(&mut self, line: Line, out: &mut String) {
        if self.skips > 0 {
            self.skips -= 1;
            return;
        }
        if self.lines_left == 0 {
            self.is_cut = true;
            return self.end(self.last, out);
        }
        match &mut self.limit {
            Limit::All => self.write(&line, out),
            Limit::Last(count) if self.is_from_end => {
                let count = *count;
                self.kept.push_front(line);
                if self.kept.len() == count {
                    self.finish(out);
                }
            }
            Limit::Last(count) => {
                if self.kept.len() == *count {
                    self.kept.pop_front();
                }
                self.kept.push_back(line);
            }
            Limit::First(0) => self.end(self.last, out),
            Limit::First(left) => {
                *left -= 1;
                let is_enough = *left == 0 && !self.shows_key;
                self.write(&line, out);
                if is_enough {
                    self.end(None, out);
                }
            }
        }
    }

    /// Writes the lines that were kept until all lines were known.
    fn finish(&mut self, out: &mut String) {
        if let Some(nearest) = self.nearest.take() {
            let sent = self.start.position.map_or(0, |position| position.sent.saturating_add(1));
            for (place, mut line) in nearest.sorted().enumerate().skip(sent) {
                line.position = PagePosition { uid: Uid(0), sent: place };
                self.admit(line, out);
                if self.is_ended {
                    return;
                }
            }
        }
        let kept = std::mem::take(&mut self.kept);
        kept.iter().for_each(|line| self.write(line, out));
        self.end(None, out);
    }

    fn write(&mut self, line: &Line, out: &mut String) {
        self.last = Some(line.position);
        self.lines_left = self.lines_left.saturating_sub(1);
        self.shape.write(&self.columns, line, !self.has_lines, &self.links, out);
        self.has_lines = true;
    }

    /// Ends the answer, with the key of the lines after a position.
    fn end(&mut self, after: Option<PagePosition>, out: &mut String) {
        let key = after.map(|position| self.start.key(self.question.pinned.epoch(), position));
        self.shape.end(!self.has_lines, key, out);
        self.is_ended = true;
    }
}
