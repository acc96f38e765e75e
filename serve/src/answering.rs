//! Answers many questions of a cluster in batches, in the order of the questions.
//!
//! ```text
//! push --> waiting questions --> the first [step]: UIDs, links and captures in one call each --> next: answers, URLs
//! ```
//!
//! A question never waits for later questions: a batch has the questions that wait already. The size of a batch adapts,
//! so that a batch takes at most about 50 ms, near the time after which a clerk considers a server slow. A batch that
//! fails is split, so that only a question that also fails alone is answered with an error. Memory: [`BATCH`]
//! questions, and the lists of one batch, which the bounds of a server's answer limit.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;
use tonic::{Code, Status};
use tonic_types::StatusExt;
use webstrata_layers::{
    Batch, CaptureTime, Direction, LastKnown, PageLinks, Precision, Uid, Unknown, Window, in_order,
};

use crate::clerk::{Pinned, Texts, UidInWindow};
use crate::protocol::status::{Reason, fits_in_parts, refuse};
use webstrata_layers::Way;
use webstrata_layers::answers::lines::Answered;
use webstrata_layers::read::question::{Asked, Kind, Matching};

/// The largest batch, in questions.
pub const BATCH: usize = 256;
/// The first batch, in questions. Later batches are smaller only after a failure.
const FIRST: usize = 64;
/// The time after which the next batch is smaller.
const PATIENCE: Duration = Duration::from_millis(50);
/// Links whose URLs are looked up in one batch.
const LINKS: usize = 1 << 14;

/// How to treat a list that is too long for one answer of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Long {
    /// Fetch the list in several calls and return all of it.
    Whole,
    /// Refuse the list, and any list whose URLs have more than `bytes_max` bytes.
    Refused {
        /// The most bytes of URLs in one answer.
        bytes_max: usize,
    },
}

/// The result of a question.
#[derive(Clone, Debug)]
enum QuestionResult {
    Links {
        uids: Vec<Uid>,
        way: Way,
        /// Pages that may or may not link: the answer is unknown.
        unknown: Vec<Uid>,
        /// Links that the page may have, as it had them when they were last known.
        last_known: Vec<Uid>,
    },
    Captures(Vec<CaptureTime>),
    /// Captures of all spellings of a page, each with the place of its URL.
    Page {
        captures: Vec<(CaptureTime, usize)>,
        urls: Vec<String>,
    },
    NotThere,
    Failed(Status),
}

impl QuestionResult {
    fn links(&self) -> usize {
        let Self::Links { uids, unknown, last_known, .. } = self else { return 0 };
        uids.len() + unknown.len() + last_known.len()
    }
}

/// Waiting questions and ready answers, all of one epoch.
pub struct Answering {
    pinned: Pinned,
    long: Long,
    waiting: VecDeque<Asked>,
    /// Questions with known results.
    found: VecDeque<(Asked, QuestionResult)>,
    /// The size of the next batch.
    step: usize,
    /// The size of the batch that failed, while its first question is asked alone.
    failed: usize,
}

impl Answering {
    /// Answers questions about one epoch.
    pub fn new(pinned: Pinned, long: Long) -> Self {
        let (waiting, found) = (VecDeque::new(), VecDeque::new());
        Self { pinned, long, waiting, found, step: FIRST, failed: 0 }
    }

    /// The epoch, and the servers that answer.
    pub(crate) fn pinned(&self) -> &Pinned {
        &self.pinned
    }

    /// The epoch of all answers.
    pub fn epoch(&self) -> u64 {
        self.pinned.epoch()
    }

    /// Adds a question. At most [`BATCH`] questions may wait.
    pub fn push(&mut self, question: Asked) {
        self.waiting.push_back(question);
    }

    /// The answers to the next questions, in order: at least one if any question waits. Each error is of one question.
    pub async fn next(&mut self) -> Vec<(Asked, Result<Answered, Status>)> {
        while self.found.is_empty() && !self.waiting.is_empty() {
            self.ask().await;
        }
        self.write().await
    }

    /// Asks one batch. If a batch of several questions fails, its questions keep waiting for a smaller batch.
    async fn ask(&mut self) {
        let count = self.step.min(self.waiting.len());
        let begun = Instant::now();
        match at_once(&self.pinned, &self.waiting.make_contiguous()[..count], self.long).await {
            Ok(found) => {
                self.found = self.waiting.drain(..count).zip(found).collect();
                self.failed = 0;
                let (smaller, larger) = ((self.step / 2).max(FIRST).min(self.step), (2 * self.step).min(BATCH));
                self.step = if begun.elapsed() > PATIENCE { smaller } else { larger };
            }
            Err(status) if count > 1 && fits_in_parts(&status) => self.step = count / 2,
            Err(_) if count > 1 => (self.step, self.failed) = (1, count),
            Err(status) => {
                // If no server answers even one question, the rest of the failed batch is not asked one by one.
                let is_of_all = matches!(status.code(), Code::Unavailable | Code::DeadlineExceeded);
                let count = if is_of_all { self.failed.clamp(1, self.waiting.len()) } else { 1 };
                self.found = self
                    .waiting
                    .drain(..count)
                    .map(|question| (question, QuestionResult::Failed(status.clone())))
                    .collect();
                self.failed = 0;
            }
        }
    }

    /// The next answers: as many as one look-up of URLs may have, and at least one.
    async fn write(&mut self) -> Vec<(Asked, Result<Answered, Status>)> {
        let mut size = 0;
        let fitting = self.found.iter().take_while(|(_, found)| {
            size += found.links();
            size <= LINKS
        });
        let count = fitting.count().max(1).min(self.found.len());
        let ready: Vec<_> = self.found.drain(..count).collect();
        let ready_uids = ready.iter().filter(|(_, found)| found.links() <= LINKS).flat_map(|(_, found)| match found {
            QuestionResult::Links { uids, unknown, last_known, .. } => {
                [uids.as_slice(), unknown.as_slice(), last_known.as_slice()]
            }
            _ => [&[][..], &[], &[]],
        });
        let texts = Texts::of(&self.pinned, ready_uids.flatten().copied().collect()).await;
        let mut answers = Vec::with_capacity(count);
        for (question, found) in ready {
            let answer = match (found, &texts) {
                (found @ QuestionResult::Links { .. }, _) if found.links() > LINKS => {
                    let QuestionResult::Links { uids, way, unknown, last_known } = found else { continue };
                    self.long(&[&uids[..], &unknown, &last_known].concat()).await.map(|mut urls| {
                        let last_known = urls.split_off(uids.len() + unknown.len());
                        let unknown = urls.split_off(uids.len());
                        Answered::links(urls, way, unknown, last_known)
                    })
                }
                (QuestionResult::Links { uids, way, unknown, last_known }, Ok(texts)) => {
                    let urls = |uids: &[Uid]| uids.iter().map(|&uid| texts.get(uid).to_owned()).collect();
                    Ok(Answered::links(urls(&uids), way, urls(&unknown), urls(&last_known)))
                }
                (QuestionResult::Links { .. }, Err(status)) => Err(status.clone()),
                (QuestionResult::Captures(captures), _) => Ok(Answered::captures(&captures)),
                (QuestionResult::Page { captures, urls }, _) => Ok(Answered::captures_of_page(&captures, &urls)),
                (QuestionResult::NotThere, _) => {
                    Ok(question.question().err().map_or_else(Answered::not_there, Answered::error))
                }
                (QuestionResult::Failed(status), _) => Err(status),
            };
            answers.push((question, answer));
        }
        answers
    }

    /// The URLs of a list that is longer than [`LINKS`].
    async fn long(&self, uids: &[Uid]) -> Result<Vec<String>, Status> {
        let bytes_max = match self.long {
            Long::Whole => usize::MAX,
            Long::Refused { bytes_max } => bytes_max,
        };
        let (mut urls, mut bytes) = (Vec::new(), 0);
        for uids in uids.chunks(LINKS) {
            let chunk_urls = self.pinned.urls(uids).await?;
            bytes += chunk_urls.iter().map(String::len).sum::<usize>();
            if bytes > bytes_max {
                let message = format!("more than {bytes_max} bytes of links; ask /v1/links for pages");
                return Err(refuse(Reason::AnswerTooLarge, message, &[("most", bytes_max as u64)]));
            }
            urls.extend(chunk_urls);
        }
        Ok(urls)
    }
}

/// The answer to a question that failed, in a stream of answers.
pub fn failure_of(status: &Status) -> Answered {
    let reason = status.get_details_error_info().map(|info| info.reason);
    Answered { reason, ..Answered::error(status.message()) }
}

/// Asks one batch: the results of all its questions, or the first error.
async fn at_once(pinned: &Pinned, questions: &[Asked], long: Long) -> Result<Vec<QuestionResult>, Status> {
    let mut found = vec![QuestionResult::NotThere; questions.len()];
    let mut good: Vec<(usize, (Kind, &str))> = Vec::new();
    for (index, question) in questions.iter().enumerate() {
        match (question.question(), question.matching()) {
            (Ok((kind, url)), Matching::Surt) => found[index] = of_page(pinned, kind, url).await?,
            (Ok(kind_and_url), Matching::Exact) => good.push((index, kind_and_url)),
            (Err(_), _) => {}
        }
    }
    let urls: Vec<&str> = good.iter().map(|&(_, (_, url))| url).collect();
    let uids = pinned.uids(&urls).await?;
    // Questions grouped by kind.
    let (mut out, mut into, mut times) = (Vec::new(), Vec::new(), Vec::new());
    for (&(index, (kind, _)), uid) in good.iter().zip(uids) {
        match (kind, uid) {
            (_, None) => {}
            (Kind::Captures, Some(uid)) => times.push((index, uid)),
            (Kind::Links(Way::In, window), Some(uid)) => into.push((index, (uid, window))),
            (Kind::Links(Way::Out, window), Some(uid)) => {
                out.push((index, (uid, window)));
            }
        }
    }
    let uids: Vec<Uid> = times.iter().map(|&(_, uid)| uid).collect();
    let (out_links, in_links, captures) = tokio::try_join!(
        links(pinned, &out, Direction::Out, long),
        links(pinned, &into, Direction::In(Precision::Exact), long),
        pinned.captures(&uids),
    )?;
    for (way, items, (lists, unknown)) in [(Way::Out, out, out_links), (Way::In, into, in_links)] {
        for (((index, (_, window)), uids), unknown) in items.into_iter().zip(lists.iter()).zip(unknown.iter()) {
            let last_known =
                if way == Way::Out { last_known(pinned, unknown, uids, window).await? } else { Vec::new() };
            found[index] = QuestionResult::Links { uids: uids.to_vec(), way, unknown: unknown.to_vec(), last_known };
        }
    }
    for ((index, _), captures) in times.into_iter().zip(captures.iter()) {
        found[index] = QuestionResult::Captures(captures.to_vec());
    }
    Ok(found)
}

/// The result of a question about all spellings of a page.
async fn of_page(pinned: &Pinned, kind: Kind, url: &str) -> Result<QuestionResult, Status> {
    let spellings = pinned.spellings(url).await?;
    if spellings.is_empty() {
        return Ok(QuestionResult::NotThere);
    }
    let (way, window) = match kind {
        Kind::Captures => {
            let captures = pinned.captures_of_page(&spellings).await?;
            return Ok(QuestionResult::Page { captures, urls: pinned.urls(&spellings).await? });
        }
        Kind::Links(way, window) => (way, window),
    };
    let direction = if way == Way::Out { Direction::Out } else { Direction::In(Precision::Exact) };
    let (uids, unknown) = pinned.answer(PageLinks::new(&spellings, direction, window)).await?;
    let last_known = if way == Way::Out { last_known(pinned, &unknown, &uids, window).await? } else { Vec::new() };
    Ok(QuestionResult::Links { uids, way, unknown, last_known })
}

/// The links that pages with unknown links may have as of a time ([`LastKnown`]), without the links that are known.
pub(crate) async fn last_known(
    pinned: &Pinned,
    unknown: &[Uid],
    known: &[Uid],
    window: Window,
) -> Result<Vec<Uid>, Status> {
    let Window::AsOf(as_of) = window else { return Ok(Vec::new()) };
    let mut links = in_order(pinned.answer(LastKnown::new(unknown, as_of)).await?.into_values());
    links.retain(|link| known.binary_search(link).is_err());
    Ok(links)
}

/// The links of each item, and the pages for which it is unknown whether they link.
async fn links(
    pinned: &Pinned,
    items: &[(usize, UidInWindow)],
    direction: Direction,
    long: Long,
) -> Result<(Batch<Uid>, Batch<Uid>), Status> {
    let items: Vec<UidInWindow> = items.iter().map(|&(_, item)| item).collect();
    let links = match items[..] {
        [(uid, window)] if long == Long::Whole => pinned.links_of_any_length(&[uid], direction, window).await,
        _ => pinned.links_in_windows(&items, direction).await,
    };
    let links = links?;
    let unknown = pinned.answer(Unknown::in_windows(&items, direction, Some(&links))).await?;
    Ok((links, unknown))
}
