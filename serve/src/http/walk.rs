//! Walks through the URLs that match one: rising UIDs, a few at first and then more, so that what an answer has no room
//! for is hardly looked at.
//!
//! A walk ends with its answer, at the last URL, or after [`LOOK`], and the answer then has the place where it goes on.
//! Memory: the UIDs of one step of a listing.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use tokio::time::Instant;
use tonic::Status;
use webstrata_layers::record::key;

use super::address::{find, meant};
use super::answer::Answer;
use super::params::Params;
use super::resume::Start;
use crate::clerk::Pinned;
use crate::protocol::status::bad;

/// How long one answer looks for what it may say.
const LOOK: Duration = Duration::from_secs(5);
/// UIDs that are given at once, at most.
const STEP_MAX: usize = 1000;
/// UIDs of all URLs that are made ready at once.
const READY: u64 = 1 << 16;

/// Which URLs are meant by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Match {
    /// That one.
    Exact,
    /// Those that begin with it, of any scheme and port.
    Prefix,
    /// Those of its host.
    Host,
    /// Those of its host and of hosts below.
    Domain,
}

impl Match {
    /// From `matchType`.
    pub(super) fn of(params: &Params) -> Result<Self, Status> {
        let words = [("exact", Self::Exact), ("prefix", Self::Prefix), ("host", Self::Host), ("domain", Self::Domain)];
        params.choice("matchType", words)
    }

    /// The name that callers give it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Prefix => "prefix",
            Self::Host => "host",
            Self::Domain => "domain",
        }
    }

    /// The UIDs of the URLs that match, rising.
    pub(super) async fn ranges(self, pinned: &Pinned, text: &str) -> Result<Vec<Range<u64>>, Status> {
        match self {
            Self::Exact => {
                let (_, uid) = find(pinned, text).await?;
                Ok(std::iter::once(uid..uid + 1).collect())
            }
            Self::Prefix | Self::Host | Self::Domain => pinned.with_prefix(&self.prefix(text)?).await,
        }
    }

    /// With what the keys of the URLs begin that match.
    fn prefix(self, text: &str) -> Result<Vec<u8>, Status> {
        // The key's prefix is the same for both schemes.
        let url = meant(text)?.swap_remove(0);
        let prefix = match self {
            Self::Exact | Self::Prefix => Some(key::url_prefix(&url)),
            Self::Host => key::host_of(&url).and_then(key::host_prefix),
            Self::Domain => key::host_of(&url).and_then(key::domain_prefix),
        };
        prefix.ok_or_else(|| bad(format!("url: cannot list the URLs of {url}: no host name")))
    }
}

/// A walk that has come to some place.
pub(super) struct Walk {
    pinned: Pinned,
    /// Only pages with a capture in it.
    interval: Option<(i64, i64)>,
    ranges: VecDeque<Range<u64>>,
    ready: VecDeque<u64>,
    step: usize,
    until: Instant,
}

impl Walk {
    /// Through ranges of UIDs that rise, from the place of a question on.
    pub(super) fn new(pinned: Pinned, ranges: Vec<Range<u64>>, interval: Option<(i64, i64)>, start: &Start) -> Self {
        let first = start.place.unwrap_or_default().uid;
        let rest = ranges.into_iter().map(|range| range.start.max(first)..range.end);
        Self {
            pinned,
            interval,
            ranges: rest.filter(|range| !range.is_empty()).collect(),
            ready: VecDeque::new(),
            step: 1,
            until: Instant::now() + LOOK,
        }
    }

    /// The next UIDs; none where the answer is full, or time or the walk has come to an end.
    pub(super) async fn next<V>(&mut self, answer: &mut Answer<V>) -> Result<Option<Vec<u64>>, Status> {
        while !answer.is_full() {
            let Some(here) = self.here() else { return Ok(None) };
            if Instant::now() > self.until {
                answer.stop_at(here);
                return Ok(None);
            }
            if !self.ready.is_empty() {
                let count = self.step.min(self.ready.len());
                self.step = (2 * self.step).min(STEP_MAX);
                return Ok(Some(self.ready.drain(..count).collect()));
            }
            let Some(range) = self.ranges.pop_front() else { return Ok(None) };
            let rest = match self.interval {
                Some(interval) => {
                    let (found, rest) = self.pinned.captured(range, interval).await?;
                    self.ready = found.into();
                    rest
                }
                None => {
                    let end = range.end.min(range.start.saturating_add(READY));
                    self.ready = (range.start..end).collect();
                    end..range.end
                }
            };
            if !rest.is_empty() {
                self.ranges.push_front(rest);
            }
        }
        Ok(None)
    }

    /// Takes UIDs back, to give them in smaller steps; false for one alone.
    pub(super) fn take_back(&mut self, uids: &[u64]) -> bool {
        if uids.len() < 2 {
            return false;
        }
        uids.iter().rev().for_each(|&uid| self.ready.push_front(uid));
        self.step = uids.len() / 2;
        true
    }

    /// The UID that is next looked at.
    fn here(&self) -> Option<u64> {
        self.ready.front().copied().or_else(|| self.ranges.front().map(|range| range.start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_of_hosts_domains_and_paths() {
        let prefix = |matched: Match, text| matched.prefix(text).map(|prefix| String::from_utf8(prefix).unwrap());
        assert_eq!(prefix(Match::Host, "Example.com").unwrap(), "com,example,)");
        assert_eq!(prefix(Match::Host, "https://example.com:81/a/b").unwrap(), "com,example,)");
        assert_eq!(prefix(Match::Domain, "http://example.com").unwrap(), "com,example,");
        assert_eq!(prefix(Match::Prefix, "example.com/a").unwrap(), "com,example,)/a");
        assert_eq!(prefix(Match::Prefix, "https://example.com:81/a").unwrap(), "com,example,)/a");
        for text in ["", "http://[::1]/", "http://user@example.com/", "mailto:a@example.com"] {
            assert!(prefix(Match::Host, text).is_err(), "{text}");
        }
    }
}
