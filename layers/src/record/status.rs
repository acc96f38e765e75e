//! The statuses of captures: the code that the server answered, and the rule which failures end a page.
//!
//! A capture with a status of 400 or above is a *failure*. A failure has no links, and that is known. The presence
//! matrix says nothing of a failure: the bit of a link keeps its value there, as it does if links are unknown. If a
//! page fails and comes back with the same links, this takes two changes of status, and no change of links.
//!
//! A question as of a time chooses which failures end a page ([`Failures`]):
//!
//! - 4xx says that the page is not there (404, 410) or not for this reader (401, 403). Such a failure ends the page
//!   until its next good capture.
//! - 5xx and 429 say that the server could not answer at that moment, and nothing of the page. Such a failure does not
//!   count, and the capture before it decides.
//!
//! A row may also say that a capture is *removed* ([`Status::REMOVED`]): no reader shows the capture, whatever older
//! rows say of it. A removed capture counts under no rule and in no list. When all rows are merged, it is dropped.
//!
//! Memory: 8 bytes a change of status. Cost: looking up the status of a capture is a search among the changes.

use std::fmt;
use std::str::FromStr;

use crate::word::{Word, words};

/// The status code of an HTTP response, 100 to 999; or [`Status::REMOVED`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Status(u16);

/// A change of status: captures have this status from `capture` on, until the next change. Before the first change they
/// have [`Status::OK`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StatusChange {
    /// The index of the capture.
    pub capture: u32,
    /// The new status, which differs from the status of the capture before.
    pub status: Status,
}

/// The rule which failures count and so end a page, as of a time; as text `end`, `ignore`, `all`.
///
/// ```
/// use webstrata_layers::record::capture::deciding;
/// use webstrata_layers::{AsOf, CaptureTime, Failures, Status};
///
/// let capture = |time, code| CaptureTime { time, known: true, status: Status::new(code).expect("a status") };
/// let captures = [capture(100, 200), capture(200, 404), capture(300, 503)];
/// let decides = |failures| deciding(&captures, AsOf { failures, ..AsOf::new(400) }).map(|capture| capture.time);
/// assert_eq!(decides(Failures::Ignore), Some(100));
/// assert_eq!(decides(Failures::End), Some(200));
/// assert_eq!(decides(Failures::All), Some(300));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Failures {
    /// 4xx except 429 count; other failures do not.
    #[default]
    End,
    /// No failure counts.
    Ignore,
    /// All failures count.
    All,
}

/// Text that is not one of the [`Failures`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown rule for failures {text:?} (expected end, ignore or all)")]
pub struct FailuresError {
    /// The text.
    pub text: String,
}

impl Status {
    /// 200: the default status of a capture.
    pub const OK: Status = Status(200);

    /// The status of a capture that was taken out of the store; code 0. Such a capture has no links, and no reader
    /// shows it.
    pub const REMOVED: Status = Status(0);

    /// The status of a code; `None` if the number is not a code from 100 to 999.
    pub fn new(code: u16) -> Option<Self> {
        (100..=999).contains(&code).then_some(Self(code))
    }

    /// The status that a row stores, which may also be [`Status::REMOVED`]; `None` if the number is not a status.
    pub fn stored(code: u16) -> Option<Self> {
        if code == Self::REMOVED.0 { Some(Self::REMOVED) } else { Self::new(code) }
    }

    /// The code of the status.
    pub fn code(self) -> u16 {
        self.0
    }

    /// Whether a capture with this status is a failure: it has no links, and the presence matrix says nothing of it.
    #[inline]
    pub fn is_failure(self) -> bool {
        self.0 >= 400 || self == Self::REMOVED
    }
}

impl Failures {
    /// Whether a capture with this status counts as the latest of its page.
    #[inline]
    pub fn counts(self, status: Status) -> bool {
        match self {
            Failures::All => status != Status::REMOVED,
            Failures::End => status.0 < 500 && status.0 != 429 && status != Status::REMOVED,
            Failures::Ignore => !status.is_failure(),
        }
    }
}

words!(Failures { End = "end", Ignore = "ignore", All = "all" });

impl FromStr for Failures {
    type Err = FailuresError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::of_word(text).ok_or_else(|| FailuresError { text: text.to_owned() })
    }
}

impl fmt::Display for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The status of a capture. `changes` must rise in captures.
#[inline]
pub(crate) fn status_at(changes: &[StatusChange], capture: u32) -> Status {
    let next = changes.partition_point(|change| change.capture <= capture);
    next.checked_sub(1).map_or(Status::OK, |at| changes[at].status)
}

/// Appends the status of the next capture. The statuses of all captures before it must have been appended.
pub fn push_status(changes: &mut Vec<StatusChange>, capture: u32, status: Status) {
    if changes.last().map_or(Status::OK, |change| change.status) != status {
        changes.push(StatusChange { capture, status });
    }
}

/// The stretches of consecutive captures with one status, in order, each as its first capture, the capture after its
/// last, and its status. The captures before the first change, which have [`Status::OK`], are left out.
pub fn status_stretches(changes: &[StatusChange], captures: u32) -> impl Iterator<Item = (u32, u32, Status)> + '_ {
    (0..).zip(changes).map(move |(at, change): (usize, _)| {
        let end = changes.get(at + 1).map_or(captures, |next| next.capture);
        (change.capture, end, change.status)
    })
}

/// The captures that are failures, rising.
pub(crate) fn failures(changes: &[StatusChange], captures: u32) -> impl Iterator<Item = u32> + '_ {
    status_stretches(changes, captures).filter(|stretch| stretch.2.is_failure()).flat_map(|(first, end, _)| first..end)
}

/// The latest of the captures below `end` that counts under `rule`.
#[inline]
pub(crate) fn latest(changes: &[StatusChange], end: usize, rule: Failures) -> Option<usize> {
    let mut at = end.checked_sub(1)?;
    let mut rest = changes;
    loop {
        let next = rest.partition_point(|change| change.capture as usize <= at);
        let Some(change) = next.checked_sub(1).map(|last| rest[last]) else { return Some(at) };
        if rule.counts(change.status) {
            return Some(at);
        }
        at = (change.capture as usize).checked_sub(1)?;
        rest = &rest[..next - 1];
    }
}

/// The capture of the first change that is out of order, outside the captures, or to the same status.
pub(crate) fn flaw(changes: &[StatusChange], captures: usize) -> Option<u32> {
    let mut before = (None, Status::OK);
    for change in changes {
        if before.0.is_some_and(|capture| capture >= change.capture)
            || change.capture as usize >= captures
            || before.1 == change.status
        {
            return Some(change.capture);
        }
        before = (Some(change.capture), change.status);
    }
    None
}
