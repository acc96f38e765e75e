//! The captures of a page: their times, whether their links are known, and which of them a window selects.

use crate::record::time::Window;

/// A capture of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureTime {
    /// When, in seconds.
    pub time: i64,
    /// Whether its links are known.
    pub known: bool,
}

/// The captures that one row has of a page.
#[derive(Clone, Copy, Debug, Default)]
pub struct Captures<'a> {
    /// Seconds, rising.
    pub times: &'a [i64],
    /// Indexes of the captures whose links are unknown, rising.
    pub unknown: &'a [u32],
}

impl<'a> Captures<'a> {
    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = CaptureTime> + 'a {
        let mut unknown = self.unknown.iter().peekable();
        let capture = move |(at, &time): (u32, &i64)| {
            let known = unknown.next_if_eq(&&at).is_none();
            CaptureTime { time, known }
        };
        (0..).zip(self.times).map(capture)
    }
}

/// Captures with memory of their own.
#[derive(Clone, Debug, Default)]
pub struct CapturesBuf {
    times: Vec<i64>,
    unknown: Vec<u32>,
}

impl CapturesBuf {
    /// The same captures.
    pub fn view(&self) -> Captures<'_> {
        Captures { times: &self.times, unknown: &self.unknown }
    }
}

impl FromIterator<CaptureTime> for CapturesBuf {
    fn from_iter<I: IntoIterator<Item = CaptureTime>>(captures: I) -> Self {
        let mut collected = Self::default();
        for (at, capture) in (0..).zip(captures) {
            collected.times.push(capture.time);
            collected.unknown.extend((!capture.known).then_some(at));
        }
        collected
    }
}

/// The captures that a window selects, as first and last index, both known; unknown ones between them carry the bits of
/// a selected one. `None` when no known capture is selected. `times` and `unknown` rise.
pub fn captures_in(times: &[i64], unknown: &[u32], window: Window) -> Option<(u32, u32)> {
    let (first, end) = match window {
        Window::Seen { from, to } => {
            (times.partition_point(|&time| time < from), times.partition_point(|&time| time <= to))
        }
        Window::AsOf(time) => {
            let end = times.partition_point(|&other| other <= time);
            (end.checked_sub(1)?, end)
        }
    };
    known_ends(first, end, unknown)
}

/// The first and the last known capture of `first..end`.
pub(crate) fn known_ends(first: usize, end: usize, unknown: &[u32]) -> Option<(u32, u32)> {
    let (mut first, mut last) = first_and_last(first, end)?;
    if !unknown.is_empty() {
        let is_unknown = |at: u32| unknown.binary_search(&at).is_ok();
        while is_unknown(first) {
            if first == last {
                return None;
            }
            first += 1;
        }
        while is_unknown(last) {
            last -= 1;
        }
    }
    Some((first, last))
}

/// `first..end` as first and last, where it is not empty.
pub(crate) fn first_and_last(first: usize, end: usize) -> Option<(u32, u32)> {
    if first >= end {
        return None;
    }
    Some((u32::try_from(first).ok()?, u32::try_from(end - 1).ok()?))
}
