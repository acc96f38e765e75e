//! Lists the URLs that match a URL, by increasing UID. The steps are small at first and then grow, so that few URLs are
//! looked up that do not fit into the answer.
//!
//! A walk ends when the answer is full, after the last URL, or after [`LOOK`]. The answer then has the position to
//! continue from. Memory: the UIDs of one step of a listing.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;
use webstrata_layers::Uid;

use tokio::time::Instant;
use tonic::Status;

use super::Answer;
use crate::clerk::Pinned;

/// How long one answer looks for matching URLs.
const LOOK: Duration = Duration::from_secs(5);
/// The largest step, in UIDs.
const STEP_MAX: usize = 1000;
/// UIDs listed at once if the walk has no interval.
const READY: u64 = 1 << 16;

/// A walk and its position.
pub(in crate::http) struct Walk {
    pinned: Pinned,
    /// If set, only pages with a capture in this interval.
    interval: Option<(i64, i64)>,
    uid_intervals: VecDeque<Range<Uid>>,
    ready: VecDeque<Uid>,
    step: usize,
    until: Instant,
}

impl Walk {
    /// A walk through increasing intervals of UIDs, from a UID on.
    pub(in crate::http) fn new(
        pinned: Pinned,
        uid_intervals: Vec<Range<Uid>>,
        interval: Option<(i64, i64)>,
        first: Uid,
    ) -> Self {
        let rest = uid_intervals.into_iter().map(|uids| uids.start.max(first)..uids.end);
        Self {
            pinned,
            interval,
            uid_intervals: rest.filter(|uids| !uids.is_empty()).collect(),
            ready: VecDeque::new(),
            step: 1,
            until: Instant::now() + LOOK,
        }
    }

    /// The next UIDs; `None` if the answer is full, the time is over, or the walk has ended.
    pub(in crate::http) async fn next<V>(&mut self, answer: &mut Answer<V>) -> Result<Option<Vec<Uid>>, Status> {
        while !answer.is_full() {
            let Some(next_uid) = self.next_uid() else { return Ok(None) };
            if Instant::now() > self.until {
                answer.stop_at(next_uid);
                return Ok(None);
            }
            if !self.ready.is_empty() {
                let count = self.step.min(self.ready.len());
                self.step = (2 * self.step).min(STEP_MAX);
                return Ok(Some(self.ready.drain(..count).collect()));
            }
            let Some(uids) = self.uid_intervals.pop_front() else { return Ok(None) };
            let rest = match self.interval {
                Some(interval) => {
                    let (found, rest) = self.pinned.captured(uids, interval).await?;
                    self.ready = found.into();
                    rest
                }
                None => {
                    let end = uids.end.min(uids.start.saturating_add(READY));
                    self.ready = Uid::each(uids.start..end).collect();
                    end..uids.end
                }
            };
            if !rest.is_empty() {
                self.uid_intervals.push_front(rest);
            }
        }
        Ok(None)
    }

    /// Returns UIDs to the walk, which then gives them in smaller steps. Returns false for a single UID.
    pub(in crate::http) fn take_back(&mut self, uids: &[Uid]) -> bool {
        if uids.len() < 2 {
            return false;
        }
        uids.iter().rev().for_each(|&uid| self.ready.push_front(uid));
        self.step = uids.len() / 2;
        true
    }

    /// The next UID.
    fn next_uid(&self) -> Option<Uid> {
        self.ready.front().copied().or_else(|| self.uid_intervals.front().map(|uids| uids.start))
    }
}
