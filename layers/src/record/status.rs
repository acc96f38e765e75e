//! What the server answered to each capture: its status, and which failures end a page.
//!
//! A capture with a status of 400 or above is a *failure*. A failure has no links, and that is known. The presence
//! matrix says nothing of a failure: there the bit of a link keeps its value, as it does where links are unknown. A
//! page that fails and comes back with the links that it had costs two changes of status, and no change of links.
//!
//! Which failures end a page as of a time is asked with the question ([`Failures`]):
//!
//! - 4xx says that the page is not there (404, 410) or not for this reader (401, 403). Such a failure ends the page
//!   until its next good capture.
//! - 5xx and 429 say that the server could not answer at that moment, and nothing of the page. Such a failure does not
//!   count; the capture before it does.
//!
//! A row may also say that a capture is *removed* ([`Status::REMOVED`]): it is not to be seen any more, whatever older
//! rows say of it. Such a capture counts under no rule and in no list; when all rows become one, it is gone.
//!
//! Memory: 8 bytes a change of status. Cost: a search among the changes for the status of a capture.

use std::fmt;
use std::str::FromStr;

/// The status code of an HTTP response, 100 to 999; or [`Status::REMOVED`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Status(u16);

/// From a capture on, until the next change, captures have this status. Before the first change it is [`Status::OK`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StatusChange {
    /// Index of the capture.
    pub capture: u32,
    /// Other than that of the capture before.
    pub status: Status,
}

/// Which failures end a page, as of a time; as text `end`, `ignore`, `all`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Failures {
    /// Those with 4xx but 429; the others do not count.
    #[default]
    End,
    /// None: no failure counts.
    Ignore,
    /// Each.
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
    /// 200: what a capture has for which nothing else is said.
    pub const OK: Status = Status(200);

    /// That of a capture that was taken out of the store; code 0. It has no links, and is not to be seen.
    pub const REMOVED: Status = Status(0);

    /// The status of a code; `None` for numbers that are no code.
    pub fn new(code: u16) -> Option<Self> {
        (100..=999).contains(&code).then_some(Self(code))
    }

    /// The status that a row has; `None` for numbers that are none.
    pub fn stored(code: u16) -> Option<Self> {
        if code == Self::REMOVED.0 { Some(Self::REMOVED) } else { Self::new(code) }
    }

    /// Its code.
    pub fn code(self) -> u16 {
        self.0
    }

    /// Whether the capture is a failure: a capture without links, of which the presence matrix says nothing.
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

    /// Its text.
    pub fn name(self) -> &'static str {
        match self {
            Failures::End => "end",
            Failures::Ignore => "ignore",
            Failures::All => "all",
        }
    }
}

impl FromStr for Failures {
    type Err = FailuresError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let all = [Failures::End, Failures::Ignore, Failures::All];
        all.into_iter().find(|rule| rule.name() == text).ok_or_else(|| FailuresError { text: text.to_owned() })
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

/// The status of a capture. `changes` rise in captures.
#[inline]
pub fn status_at(changes: &[StatusChange], capture: u32) -> Status {
    let next = changes.partition_point(|change| change.capture <= capture);
    next.checked_sub(1).map_or(Status::OK, |at| changes[at].status)
}

/// Appends the status of the next capture, after those of all captures before it.
pub fn push_status(changes: &mut Vec<StatusChange>, capture: u32, status: Status) {
    if changes.last().map_or(Status::OK, |change| change.status) != status {
        changes.push(StatusChange { capture, status });
    }
}

/// The stretches of consecutive captures of one status, in order, but those at the end and the beginning with
/// [`Status::OK`]: first capture, the one after the last, status.
pub fn stretches(changes: &[StatusChange], captures: u32) -> impl Iterator<Item = (u32, u32, Status)> + '_ {
    (0..).zip(changes).map(move |(at, change): (usize, _)| {
        let end = changes.get(at + 1).map_or(captures, |next| next.capture);
        (change.capture, end, change.status)
    })
}

/// The captures that are failures, rising.
pub fn failures(changes: &[StatusChange], captures: u32) -> impl Iterator<Item = u32> + '_ {
    stretches(changes, captures).filter(|stretch| stretch.2.is_failure()).flat_map(|(first, end, _)| first..end)
}

/// The latest of the captures below `end` that counts as of a time.
#[inline]
pub fn latest(changes: &[StatusChange], end: usize, rule: Failures) -> Option<usize> {
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

/// The capture of the first change that is out of order, outside the captures, or no change.
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
