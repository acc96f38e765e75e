//! The statuses of captures: the code that the server answered, whether the body was read whole, and the rule which
//! failures end a page.
//!
//! A capture is *cut* if its body was not read whole ([`Cut`]). The presence matrix has the links that were found. Of
//! every other link, it is unknown whether the page had it. Only a capture of a page (200, 203, 206) is cut. The number
//! of its status says why: 1000 times the number of the reason, plus the code.
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

/// The status code of an HTTP response, 100 to 999, and why its body was cut, if it was; or [`Status::REMOVED`].
///
/// If a capture has several records, the least of their statuses counts: pages that were read whole come first, then
/// cut pages, then all other statuses, by code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Status(u16);

/// Why the body of a capture was not read whole. If several reasons hold, the least one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cut {
    /// The record says that it was truncated.
    Truncated = 1,
    /// The record or the body has fewer bytes than announced.
    Short = 2,
    /// Chunks or compressed bytes are broken, or end early.
    Damaged = 3,
    /// The body has an encoding that cannot be undone.
    Encoding = 4,
    /// Segments of the record are missing.
    Segments = 5,
    /// The server sent a part of the page.
    Partial = 6,
}

words!(Cut {
    Truncated = "truncated",
    Short = "short",
    Damaged = "damaged",
    Encoding = "encoding",
    Segments = "segments",
    Partial = "partial",
});

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

    /// The status of a page with this code whose body was cut; `None` if the code is not that of a page.
    ///
    /// ```
    /// use webstrata_layers::{Cut, Status};
    ///
    /// let status = Status::cut(200, Cut::Short).expect("the status of a page");
    /// assert_eq!((status.number(), status.code(), status.reason()), (2200, 200, Some(Cut::Short)));
    /// assert_eq!(Status::cut(404, Cut::Short), None);
    /// ```
    pub fn cut(code: u16, reason: Cut) -> Option<Self> {
        Self::is_page(code).then_some(Self(CUT_STEP * reason as u16 + code))
    }

    /// The status with this number, as a row stores it; `None` if no status has the number.
    pub fn stored(number: u16) -> Option<Self> {
        let (reason, code) = (number / CUT_STEP, number % CUT_STEP);
        match reason {
            0 if code == Self::REMOVED.0 => Some(Self::REMOVED),
            0 => Self::new(code),
            _ => Cut::ALL.into_iter().find(|&cut| cut as u16 == reason).and_then(|cut| Self::cut(code, cut)),
        }
    }

    /// The number that a row stores: the code, plus 1000 times the number of the reason if the capture is cut.
    pub fn number(self) -> u16 {
        self.0
    }

    /// The code of the status.
    pub fn code(self) -> u16 {
        self.0 % CUT_STEP
    }

    /// Why the capture is cut; `None` if it is not.
    pub fn reason(self) -> Option<Cut> {
        Cut::ALL.into_iter().find(|&cut| self.0 / CUT_STEP == cut as u16)
    }

    /// Whether the capture is cut.
    #[inline]
    pub fn is_cut(self) -> bool {
        self.0 >= CUT_STEP
    }

    /// Whether a capture with this status is a failure: it has no links, and the presence matrix says nothing of it.
    #[inline]
    pub fn is_failure(self) -> bool {
        (400..CUT_STEP).contains(&self.0) || self == Self::REMOVED
    }

    /// Whether the capture has a page that revisits with a status refer to. The page may be cut: then the revisit is
    /// cut, too.
    #[inline]
    pub fn has_page(self) -> bool {
        self == Self::OK || self.is_cut()
    }

    /// Whether a response with this code is a page. Its body may be cut.
    fn is_page(code: u16) -> bool {
        matches!(code, 200 | 203 | 206)
    }

    /// What the order of statuses compares.
    fn order(self) -> (u8, u16, u16) {
        let class = match self.0 {
            200 | 203 => 0,
            _ if self.is_cut() => 1,
            _ => 2,
        };
        (class, self.code(), self.0 / CUT_STEP)
    }
}

impl Ord for Status {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order().cmp(&other.order())
    }
}

impl PartialOrd for Status {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// What the number of a reason is multiplied with in the number of a status. Codes are below it.
const CUT_STEP: u16 = 1000;

impl Failures {
    /// Whether a capture with this status counts as the latest of its page.
    #[inline]
    pub fn counts(self, status: Status) -> bool {
        match self {
            Failures::All => status != Status::REMOVED,
            Failures::End => !(500..CUT_STEP).contains(&status.0) && status.0 != 429 && status != Status::REMOVED,
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
        self.code().fmt(f)
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
