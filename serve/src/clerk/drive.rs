//! Drives a [`webstrata_layers::Program`] with the answers of servers.
//!
//! All that a question needs of a network stands here, once: batches, smaller batches if an answer would be too large,
//! and the memory of the call. Retries and hedges are in [`super::call`]. Memory, charged to the call: what the program
//! holds, and the answers to one batch, or to the batches that are asked for at once.

use std::sync::Arc;

use futures_util::TryStreamExt;
use futures_util::stream::FuturesOrdered;
use tonic::Status;
use webstrata_layers::{Ask, Batch, Direction, Facts, Given, Precision, Program, Question, Spans, Uid, Window};

use super::pinned::Pinned;
use crate::protocol::status::{Reason, fits_in_parts, refuse};

/// The most items in one batch of questions.
const ITEMS: usize = 1000;
/// The most pages in one batch of questions for both lifespans and captures.
const LIVES: usize = 512;
/// The most pages in one batch of questions about backlinks.
const PAGES: usize = 1 << 13;
/// The number of batches of questions about backlinks that are asked for at once.
pub(super) const BATCHES: usize = 4;
/// The most pages in all batches until the program is asked again. All batches are answered before.
const ROUND: usize = 1 << 18;
/// Approximate bytes of the answer about a page: when it linked, and its host.
const PAGE_BYTES: usize = 512;
/// If more pages than this link to a URL, its in-link record is not fetched.
const RECORD_SOURCES_MAX: u64 = 1 << 15;

impl Pinned {
    /// The answer to a question.
    ///
    /// # Errors
    /// See [`Pinned`].
    pub async fn answer<Q: Question>(&self, mut question: Q) -> Result<Q::Answer, Status> {
        self.drive(&mut question).await?;
        Ok(question.answer())
    }

    /// Takes a program through its steps.
    pub(super) async fn drive(&self, program: &mut dyn Program) -> Result<(), Status> {
        let facts = Facts { has_unknown: self.graph.has_unknown, in_range: self.graph.in_range };
        let (mut held, mut kind, mut most) = (0, None, usize::MAX);
        while let Some(ask) = program.asks(facts) {
            if kind.replace(ask.name()) != Some(ask.name()) {
                most = usize::MAX;
            }
            let batch = batch_of(&ask).min(most);
            if let Ask::Backlinks(pages, target) | Ask::Referrers(pages, target) = ask {
                let has_hosts = matches!(ask, Ask::Referrers(..));
                let (pages, target) = (pages[..pages.len().min(ROUND)].to_vec(), target.to_vec());
                let asks = pages.chunks(batch).map(|pages| match has_hosts {
                    true => Ask::Referrers(pages, &target),
                    false => Ask::Backlinks(pages, &target),
                });
                let waiting = pages.len().min(BATCHES * batch) * PAGE_BYTES;
                match self.hand_each(asks.collect(), waiting, program, &mut held).await {
                    Err(status) if fits_in_parts(&status) && batch > 1 => most = batch / 2,
                    done => done?,
                }
                continue;
            }
            let given = match self.given(&ask, batch).await {
                Err(status) if fits_in_parts(&status) && batch > 1 => {
                    most = batch / 2;
                    continue;
                }
                // One list that is too long for an answer is read in parts, unless the program can do without it.
                Err(status) if fits_in_parts(&status) => {
                    let one = if let Ask::Links(&[uid, ..], direction, window) = ask {
                        Ok((uid, direction, window))
                    } else {
                        Err(status)
                    };
                    if program.skip() {
                        continue;
                    }
                    let (uid, direction, window) = one?;
                    let mut links = Batch::default();
                    links.push(&self.all_links(uid, direction, window).await?);
                    Given::Lists(links)
                }
                given => given?,
            };
            self.hand(given, program, &mut held).await?;
        }
        Ok(())
    }

    /// Hands an answer to the program, and charges what the program holds then. `held` is what was charged before.
    async fn hand(&self, given: Given, program: &mut dyn Program, held: &mut usize) -> Result<(), Status> {
        program.take(given);
        let holds = program.bytes();
        self.charge().change(std::mem::replace(held, holds), holds).await
    }

    /// Hands the answers to batches to the program, in order. The program takes an answer while servers make the next
    /// ones. `waiting` is the approximate size of the answers that are on the way.
    async fn hand_each(
        &self,
        asks: Vec<Ask<'_>>,
        waiting: usize,
        program: &mut dyn Program,
        held: &mut usize,
    ) -> Result<(), Status> {
        self.charge().cover(waiting).await?;
        let (mut asks, mut answers) = (asks.iter(), FuturesOrdered::new());
        loop {
            let free = asks.by_ref().take(BATCHES - answers.len());
            answers.extend(free.map(|ask| self.given(ask, batch_of(ask))));
            let Some(given) = answers.try_next().await? else { return Ok(()) };
            self.hand(given, program, held).await?;
        }
    }

    /// The answer about the first `batch` items.
    async fn given(&self, ask: &Ask<'_>, batch: usize) -> Result<Given, Status> {
        Ok(match *ask {
            Ask::Rows => {
                let starts = [Uid(0)].into_iter().chain(self.graph.rows.iter().map(|row| row.end_uid));
                Given::Rows(
                    starts.zip(self.graph.rows.iter().map(|row| row.end_uid)).map(|(start, end)| start..end).collect(),
                )
            }
            Ask::Links(items, direction, window) => Given::Lists(self.links(&items[..batch], direction, window).await?),
            Ask::Degrees(items, direction, window) => {
                Given::Counts(self.degrees(&items[..batch], direction, window).await?)
            }
            Ask::Begin(items, direction, window, most) => self.begin(&items[..batch], direction, window, most).await?,
            Ask::Captures(pages) => Given::Captures(self.captures(&pages[..batch]).await?),
            Ask::Lifespans(pages) => Given::Lifespans(self.lifespans(&pages[..batch]).await?),
            Ask::Lives(pages) => {
                let pages = &pages[..batch];
                let (runs, captures) = tokio::try_join!(self.spans(pages, Spans::Runs), self.captures(pages))?;
                Given::Lives(runs, captures)
            }
            Ask::Backlinks(pages, target) => self.linking(&pages[..batch], target, false).await?,
            Ask::Referrers(pages, target) => self.linking(&pages[..batch], target, true).await?,
            Ask::Sources(target, ref uids) => {
                let (sources, next) = self.sources_of(target, uids).await?;
                Given::Part(sources, Some(next))
            }
            Ask::Failing(ref uids) => {
                let (failing, rest) = self.failing(uids.clone()).await?;
                Given::Part(failing, (!rest.is_empty()).then_some(rest.start))
            }
            Ask::InRecord(url) => {
                let by_range = Direction::In(Precision::Range);
                let sources = self.degrees(&[url], by_range, Window::ALWAYS).await?;
                if sources.iter().any(|&sources| sources > RECORD_SOURCES_MAX) {
                    return Err(refuse(Reason::AnswerTooLarge, format!("too many pages link to UID {url}"), &[]));
                }
                Given::Record(self.in_records(&[url]).await?.pop().flatten().map(Arc::new))
            }
        })
    }

    /// The first links of each UID, and the number of all its links.
    async fn begin(&self, uids: &[Uid], direction: Direction, window: Window, most: usize) -> Result<Given, Status> {
        let counts = self.degrees(uids, direction, window).await?;
        let mut lists = Batch::default();
        for (&uid, &count) in uids.iter().zip(&counts) {
            let most = most.min(usize::try_from(count).unwrap_or(usize::MAX));
            let (mut links, mut next) = (Vec::new(), Some(Uid(0)));
            while let Some(first) = next.filter(|_| links.len() < most) {
                let found;
                (found, next) = self.links_from(uid, direction, window, first, most - links.len()).await?;
                links.extend(found);
            }
            lists.push(&links);
        }
        Ok(Given::Begun(lists, counts))
    }
}

/// The number of items in a batch of answers of a usual size.
fn batch_of(ask: &Ask<'_>) -> usize {
    match *ask {
        Ask::Links(items, ..) | Ask::Degrees(items, ..) | Ask::Begin(items, ..) => items.len().min(ITEMS),
        Ask::Captures(pages) | Ask::Lifespans(pages) => pages.len().min(ITEMS),
        Ask::Lives(pages) => pages.len().min(LIVES),
        Ask::Backlinks(pages, _) | Ask::Referrers(pages, _) => pages.len().min(PAGES),
        Ask::Rows | Ask::Sources(..) | Ask::Failing(_) | Ask::InRecord(_) => 1,
    }
}
