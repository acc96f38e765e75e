//! The answers of a cluster to many questions: asked together, as many as wait, and given in order.
//!
//! ```text
//! push --> questions that wait --> the first [step] of them: UIDs, links and captures in one call each --> next: answers, with URLs
//! ```
//!
//! A question never waits for others: what is there is asked. How many are asked together follows from how long that
//! takes: so many that it stays below the time after which a clerk takes a server for slow. Questions that fail
//! together are asked again in smaller numbers, so that what fails is the question that would fail alone. Memory:
//! [`BATCH`] questions, and the lists of those that were asked together, which one answer of servers bounds.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use tonic::{Code, Status};
use tonic_types::StatusExt;
use webstrata_layers::{Batch, CaptureTime, Direction, Precision, Window};

use crate::clerk::{At, Pinned, Texts};
use crate::protocol::status::{Reason, refuse};
use webstrata_layers::read::question::{Asked, Kind, Way, captures_of, error_of, is_unknown, links_of, not_there};

/// Questions that are asked together, at most.
pub const BATCH: usize = 256;
/// Those that are asked together at first; fewer only where so many fail.
const FIRST: usize = 64;
/// How long questions that are asked together may take before fewer are.
const PATIENCE: Duration = Duration::from_millis(50);
/// Links whose URLs are asked for at once.
const RUN: usize = 1 << 14;

/// What is done about a list that is too long for one answer of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Long {
    /// It is fetched in parts and given whole.
    Whole,
    /// It is refused; so is one whose URLs have more bytes than this.
    Refused {
        /// Bytes of URLs in one answer, at most.
        bytes_max: usize,
    },
}

/// What is known of a question.
#[derive(Clone, Debug)]
enum Found {
    Links { uids: Vec<u64>, unknown: bool },
    Captures(Vec<CaptureTime>),
    NotThere,
    Failed(Status),
}

impl Found {
    fn links(&self) -> usize {
        if let Self::Links { uids, .. } = self { uids.len() } else { 0 }
    }
}

/// Questions that wait, and answers that are ready, all of one epoch.
pub struct Answering {
    pinned: Pinned,
    long: Long,
    waiting: VecDeque<Asked>,
    /// Questions that were asked, with what is known of them.
    found: VecDeque<(Asked, Found)>,
    /// Questions that are asked together the next time.
    step: usize,
    /// Questions that failed together, of which the first is asked alone.
    failed: usize,
}

impl Answering {
    /// Answers of an epoch.
    pub fn new(pinned: Pinned, long: Long) -> Self {
        let (waiting, found) = (VecDeque::new(), VecDeque::new());
        Self { pinned, long, waiting, found, step: FIRST, failed: 0 }
    }

    /// The epoch of all answers.
    pub fn epoch(&self) -> u64 {
        self.pinned.epoch()
    }

    /// Asks a question. [`BATCH`] of them may wait.
    pub fn push(&mut self, asked: Asked) {
        self.waiting.push_back(asked);
    }

    /// The answers to the next questions, in order: of one at least where any waits, else none. An error is that of one
    /// question.
    pub async fn next(&mut self) -> Vec<(Asked, Result<Value, Status>)> {
        while self.found.is_empty() && !self.waiting.is_empty() {
            self.ask().await;
        }
        self.write().await
    }

    /// Asks questions, as many together as is good; where that fails, none is taken that may be answered in smaller
    /// company.
    async fn ask(&mut self) {
        let count = self.step.min(self.waiting.len());
        let begun = Instant::now();
        match at_once(&self.pinned, &self.waiting.make_contiguous()[..count], self.long).await {
            Ok(found) => {
                self.found = self.waiting.drain(..count).zip(found).collect();
                self.failed = 0;
                let (fewer, more) = ((self.step / 2).max(FIRST).min(self.step), (2 * self.step).min(BATCH));
                self.step = if begun.elapsed() > PATIENCE { fewer } else { more };
            }
            Err(status) if count > 1 && Reason::of(&status) == Some(Reason::AnswerTooLarge) => self.step = count / 2,
            Err(_) if count > 1 => (self.step, self.failed) = (1, count),
            Err(status) => {
                // Where nobody answers even one question, those that failed with it are not asked one by one.
                let is_of_all = matches!(status.code(), Code::Unavailable | Code::DeadlineExceeded);
                let count = if is_of_all { self.failed.clamp(1, self.waiting.len()) } else { 1 };
                self.found = self.waiting.drain(..count).map(|asked| (asked, Found::Failed(status.clone()))).collect();
                self.failed = 0;
            }
        }
    }

    /// One answer, or as many as their URLs can be asked for together.
    async fn write(&mut self) -> Vec<(Asked, Result<Value, Status>)> {
        let mut size = 0;
        let fitting = self.found.iter().take_while(|(_, found)| {
            size += found.links();
            size <= RUN
        });
        let count = fitting.count().max(1).min(self.found.len());
        let run: Vec<_> = self.found.drain(..count).collect();
        let wanted = run.iter().filter(|(_, found)| found.links() <= RUN).flat_map(|(_, found)| match found {
            Found::Links { uids, .. } => uids.as_slice(),
            _ => &[],
        });
        let texts = Texts::of(&self.pinned, wanted.copied().collect()).await;
        let mut answers = Vec::with_capacity(count);
        for (asked, found) in run {
            let answer = match (found, &texts) {
                (Found::Links { uids, unknown }, _) if uids.len() > RUN => {
                    self.long(&uids).await.map(|urls| links_of(urls, unknown))
                }
                (Found::Links { uids, unknown }, Ok(texts)) => {
                    Ok(links_of(uids.iter().map(|&uid| texts.get(uid).to_owned()).collect(), unknown))
                }
                (Found::Links { .. }, Err(status)) => Err(status.clone()),
                (Found::Captures(captures), _) => Ok(captures_of(&captures)),
                (Found::NotThere, _) => Ok(asked.question().err().map_or_else(not_there, error_of)),
                (Found::Failed(status), _) => Err(status),
            };
            answers.push((asked, answer));
        }
        answers
    }

    /// The URLs of very many links.
    async fn long(&self, uids: &[u64]) -> Result<Vec<String>, Status> {
        let bytes_max = match self.long {
            Long::Whole => usize::MAX,
            Long::Refused { bytes_max } => bytes_max,
        };
        let (mut urls, mut bytes) = (Vec::new(), 0);
        for uids in uids.chunks(RUN) {
            let own = self.pinned.urls(uids).await?;
            bytes += own.iter().map(String::len).sum::<usize>();
            if bytes > bytes_max {
                let message = format!("more than {bytes_max} bytes of links; ask /v1/links for pages");
                return Err(refuse(Reason::AnswerTooLarge, message, &[("most", bytes_max as u64)]));
            }
            urls.extend(own);
        }
        Ok(urls)
    }
}

/// The answer to a question that failed, where others are still answered.
pub fn failure_of(status: &Status) -> Value {
    let mut answer = error_of(status.message());
    if let Some(info) = status.get_details_error_info() {
        answer["reason"] = json!(info.reason);
    }
    answer
}

/// What the clerk says of questions, asked together: all of it, or why not.
async fn at_once(pinned: &Pinned, asked: &[Asked], long: Long) -> Result<Vec<Found>, Status> {
    let mut found = vec![Found::NotThere; asked.len()];
    let good: Vec<(usize, (Kind, &str))> =
        asked.iter().enumerate().filter_map(|(at, asked)| Some((at, asked.question().ok()?))).collect();
    let urls: Vec<&str> = good.iter().map(|&(_, (_, url))| url).collect();
    let uids = pinned.uids(&urls).await?;
    // Questions by what they ask; those as of a time may want captures, too.
    let (mut out, mut into, mut times) = (Vec::new(), Vec::new(), Vec::new());
    for (&(at, (kind, _)), uid) in good.iter().zip(uids) {
        match (kind, uid) {
            (_, None) => {}
            (Kind::Captures, Some(uid)) => times.push((at, uid)),
            (Kind::Links(Way::In, window), Some(uid)) => into.push((at, (uid, window))),
            (Kind::Links(Way::Out, window), Some(uid)) => {
                out.push((at, (uid, window)));
                if let Window::AsOf(_) = window {
                    times.push((at, uid));
                }
            }
        }
    }
    let uids: Vec<u64> = times.iter().map(|&(_, uid)| uid).collect();
    let (out_links, in_links, captures) = tokio::try_join!(
        links(pinned, &out, Direction::Out, long),
        links(pinned, &into, Direction::In(Precision::Exact), long),
        pinned.captures(&uids),
    )?;
    for (own, lists) in [(out, out_links), (into, in_links)] {
        for ((at, _), uids) in own.into_iter().zip(lists.iter()) {
            found[at] = Found::Links { uids: uids.to_vec(), unknown: false };
        }
    }
    for ((at, _), captures) in times.into_iter().zip(captures.iter()) {
        match (&mut found[at], asked[at].question()) {
            (Found::Links { unknown, .. }, Ok((Kind::Links(_, Window::AsOf(time)), _))) => {
                *unknown = is_unknown(captures, time);
            }
            (found, _) => *found = Found::Captures(captures.to_vec()),
        }
    }
    Ok(found)
}

/// The links of each.
async fn links(pinned: &Pinned, asked: &[(usize, At)], direction: Direction, long: Long) -> Result<Batch<u64>, Status> {
    match *asked {
        [(_, (uid, window))] if long == Long::Whole => pinned.whole(&[uid], direction, window).await,
        _ => {
            let asked: Vec<At> = asked.iter().map(|&(_, at)| at).collect();
            pinned.links_at(&asked, direction).await
        }
    }
}
