//! The source of captures: one page in all its spellings, or all matching URLs, forwards or from the end.
//!
//! Archives do not count `www.` as part of a host, so a host or a prefix means the host with and without `www.`.
//! Memory: the captures of all spellings of one page; for several pages [`CHUNK`] captures, and, from the end, the
//! captures of one URL.

use std::ops::Range;
use std::sync::Arc;

use tonic::Status;
use webstrata_layers::record::key;
use webstrata_layers::{Match, Uid};

use super::field::Line;
use super::listing::Question;
use crate::clerk::Pinned;
use crate::http::answer::walk::Walk;
use crate::http::answer::{Answer, Item};
use crate::http::names::captures_of;
use crate::http::question::address::meant;
use crate::http::question::params::Params;
use crate::http::question::resume::PagePosition;

/// The largest number of captures that are looked up together.
pub(super) const CHUNK: usize = 4096;
/// The number of UIDs that are checked together from the end: at first, and at most.
const STEPS: [u64; 2] = [64, 1 << 16];

/// The pages with the listed captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// The page, in any spelling.
    Page,
    /// The URLs that begin with the URL.
    Prefix,
    /// The URLs of the same host.
    Host,
    /// The URLs of the same host and of all hosts below it.
    Domain,
    /// The URL and all URLs after it in the order of keys.
    Onward,
}

impl Reach {
    /// Reads `matchType`, or `example.org/*` and `*.example.org`. Also returns the URL.
    pub(super) fn of(params: &Params) -> Result<(Self, &str), Status> {
        let words = [
            ("exact", Self::Page),
            ("prefix", Self::Prefix),
            ("host", Self::Host),
            ("domain", Self::Domain),
            ("range", Self::Onward),
        ];
        let (text, reach) = (params.required("url")?, params.choice("matchType", words)?);
        let is_given = params.get("matchType")?.is_some();
        let before_star = text.strip_suffix('*').unwrap_or(text);
        Ok(match (text.strip_prefix("*."), reach) {
            (Some(_), Self::Page) if is_given => (reach, text),
            (Some(domain), _) => {
                let reach = if is_given { reach } else { Self::Domain };
                (reach, domain.trim_end_matches('*').trim_end_matches('/'))
            }
            (None, Self::Page) if !is_given && before_star.len() < text.len() => (Self::Prefix, before_star),
            (None, Self::Page) => (reach, text),
            (None, _) => (reach, before_star),
        })
    }

    /// The UIDs of the matching URLs, in increasing order. Empty if the URL is not in the store.
    pub(super) async fn uid_intervals(self, pinned: &Pinned, text: &str) -> Result<Vec<Range<Uid>>, Status> {
        let url = meant(text)?.swap_remove(0);
        let matched = match self {
            Self::Page => {
                let found = pinned.spellings(&url).await?;
                return Ok(found.into_iter().map(|uid| uid..uid + 1).collect());
            }
            Self::Onward => return pinned.from_key(&key::url_prefix(&url)).await,
            Self::Prefix => Match::Prefix,
            Self::Host => Match::Host,
            Self::Domain => Match::Domain,
        };
        let mut found = Vec::new();
        for url in with_and_without_www(&url) {
            found.extend(pinned.matching(matched, &url, "url").await?);
            if self == Self::Domain {
                break;
            }
        }
        found.sort_unstable_by_key(|uids| uids.start);
        Ok(found)
    }
}

/// A URL with the host of its urlkey, with `www.` before that host, and with its original host.
fn with_and_without_www(url: &str) -> Vec<String> {
    let Some((host, from_host)) = key::host_of(url).zip(key::from_host(url)) else { return vec![url.to_owned()] };
    let number =
        |label: &str| label.strip_prefix("www").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
    let bare = match host.split_once('.') {
        Some((label, rest)) if number(label) && !rest.is_empty() => rest,
        _ => host,
    };
    let (before, after) = (&url[..url.len() - from_host.len()], &from_host[host.len()..]);
    let mut hosts = vec![bare.to_owned(), format!("www.{bare}")];
    if !hosts.iter().any(|own| own == host) {
        hosts.push(host.to_owned());
    }
    hosts.iter().map(|own| format!("{before}{own}{after}")).collect()
}

/// The UIDs of intervals from index `first` on, at most `count`.
pub(super) fn slice(uid_intervals: Vec<Range<Uid>>, first: u64, count: u64) -> Vec<Range<Uid>> {
    let (mut skipped, mut left) = (first, count);
    let of_interval = uid_intervals.into_iter().map(|uids| {
        let start = uids.start.saturating_add(skipped).min(uids.end);
        skipped -= start.0 - uids.start.0;
        let end = start.saturating_add(left).min(uids.end);
        left -= end.0 - start.0;
        start..end
    });
    of_interval.filter(|uids| !uids.is_empty()).collect()
}

/// The source of captures; see the head of this file.
pub(super) enum Source {
    /// The captures of one page, once.
    Page(std::vec::IntoIter<Line>),
    /// The captures of matching URLs.
    Walk {
        uid_intervals: Vec<Range<Uid>>,
        from: PagePosition,
    },
    /// The captures of matching URLs from the end.
    Back {
        uid_intervals: Vec<Range<Uid>>,
        /// The number of UIDs to check next.
        step: u64,
        /// The first capture to list, if it is not the last one.
        from: Option<PagePosition>,
    },
    Ended,
}

impl Source {
    /// The captures of a page in an interval, in order of time.
    pub(super) async fn lines_of_page(
        pinned: &Pinned,
        spellings: &[Uid],
        (from, to): (i64, i64),
    ) -> Result<Vec<Line>, Status> {
        let (captures, urls) = tokio::try_join!(pinned.captures_of_page(spellings), pinned.urls(spellings))?;
        pinned.charge().keep(2 * captures.len() * size_of::<Line>()).await?;
        let urls: Vec<Arc<str>> = urls.into_iter().map(Arc::from).collect();
        let in_interval = captures.into_iter().filter(|(capture, _)| (from..=to).contains(&capture.time));
        let line = |(capture, spelling): (_, usize)| Line {
            url: urls[spelling].clone(),
            capture,
            position: PagePosition::default(),
        };
        Ok(in_interval.map(line).collect())
    }

    /// The captures of URLs, from a position on.
    pub(super) fn walk(uid_intervals: Vec<Range<Uid>>, from: Option<PagePosition>) -> Self {
        Self::Walk { uid_intervals, from: from.unwrap_or_default() }
    }

    /// The captures of URLs from the end, or from a position backwards.
    pub(super) fn back(uid_intervals: Vec<Range<Uid>>, from: Option<PagePosition>) -> Self {
        let end = from.map_or(Uid(u64::MAX), |from| from.uid + 1);
        let uid_intervals = uid_intervals.into_iter().map(|uids| uids.start..uids.end.min(end));
        let [step, _] = STEPS;
        Self::Back { uid_intervals: uid_intervals.filter(|uids| !uids.is_empty()).collect(), step, from }
    }

    /// The next captures, at most about `count`; `None` at the end.
    pub(super) async fn next(&mut self, question: &Question, count: usize) -> Result<Option<Vec<Line>>, Status> {
        match std::mem::replace(self, Self::Ended) {
            Self::Page(mut lines) => {
                let next: Vec<Line> = lines.by_ref().take(count).collect();
                if next.is_empty() {
                    return Ok(None);
                }
                *self = Self::Page(lines);
                Ok(Some(next))
            }
            Self::Ended => Ok(None),
            Self::Walk { uid_intervals, from } => {
                let (lines, next) = captures(question, uid_intervals.clone(), from, count).await?;
                if let Some(from) = next {
                    *self = Self::Walk { uid_intervals, from };
                }
                Ok(Some(lines))
            }
            Self::Back { mut uid_intervals, mut step, from } => {
                let Some(last) = uid_intervals.last_mut() else { return Ok(None) };
                let lines = loop {
                    let uids = Uid(last.end.0.saturating_sub(step)).max(last.start)..last.end;
                    let begin = PagePosition { uid: uids.start, sent: 0 };
                    let (mut lines, mut next) = captures(question, vec![uids.clone()], begin, CHUNK).await?;
                    let length = uids.end.0 - uids.start.0;
                    if next.is_some() && length > 1 {
                        step = length / 2;
                        continue;
                    }
                    while let Some(from) = next {
                        let (more, after) = captures(question, vec![uids.clone()], from, CHUNK).await?;
                        lines.extend(more);
                        next = after;
                    }
                    last.end = uids.start;
                    break lines;
                };
                if last.is_empty() {
                    uid_intervals.pop();
                }
                let is_listed = |line: &Line| {
                    from.is_none_or(|from| line.position.uid < from.uid || line.position.sent <= from.sent)
                };
                let lines = lines.into_iter().rev().filter(is_listed).collect();
                let [_, most] = STEPS;
                *self = Self::Back { uid_intervals, step: (2 * step).min(most), from };
                Ok(Some(lines))
            }
        }
    }
}

/// The captures of URLs from a position on, about `count`, and the position of the next captures.
async fn captures(
    question: &Question,
    uid_intervals: Vec<Range<Uid>>,
    from: PagePosition,
    count: usize,
) -> Result<(Vec<Line>, Option<PagePosition>), Status> {
    let (pinned, interval) = (&question.pinned, question.interval);
    let mut answer = Answer::sized(from, count, question.bytes);
    let mut walk = Walk::new(pinned.clone(), uid_intervals, Some(interval), from.uid);
    captures_of(pinned, &mut walk, interval, &mut answer).await?;
    let lines = answer.items.into_iter().flat_map(|Item { url, uid, values }| {
        let sent = if uid == from.uid { from.sent } else { 0 };
        let url = Arc::<str>::from(url);
        let line = move |(sent, capture)| Line { url: url.clone(), capture, position: PagePosition { uid, sent } };
        (sent..).zip(values).map(line)
    });
    Ok((lines.collect(), answer.next_page))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_meant_with_and_without_www() {
        for url in ["http://b.example/www.b.example", "http://www.b.example/www.b.example"] {
            let both = ["http://b.example/www.b.example", "http://www.b.example/www.b.example"];
            assert_eq!(with_and_without_www(url)[..2], both, "{url}");
        }
        let third = "http://www2.b.example:81/";
        assert_eq!(with_and_without_www(third), ["http://b.example:81/", "http://www.b.example:81/", third]);
        assert_eq!(with_and_without_www("mailto:a@b.example"), ["mailto:a@b.example"]);
    }

    #[test]
    fn pages_are_slices_of_all_uids() {
        let all = || vec![Uid(3)..Uid(5), Uid(10)..Uid(14), Uid(20)..Uid(21)];
        let each = |uids: Vec<Range<Uid>>| uids.into_iter().flat_map(Uid::each).collect::<Vec<_>>();
        for size in 1..9_u64 {
            let pages: Vec<Uid> = (0..8).flat_map(|page| each(slice(all(), page * size, size))).collect();
            assert_eq!(pages, each(all()), "{size}");
        }
        assert!(slice(all(), u64::MAX, u64::MAX).is_empty());
    }
}
