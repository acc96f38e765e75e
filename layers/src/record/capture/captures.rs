//! A capture, the captures that a row has of a page, and the answers as of a time: whether the page is there, and
//! whether it links.

use crate::record::status::{self, Failures, Status, StatusChange};
use crate::record::time::{AsOf, Window};
use crate::word::words;

/// A capture of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureTime {
    /// The time in seconds.
    pub time: i64,
    /// Whether the links are known: all of them, or those that were found if the capture is cut. The links of a failure
    /// are known: it has none.
    pub known: bool,
    /// The status that the server answered, and why the body was cut, if it was.
    pub status: Status,
}

impl CaptureTime {
    /// Whether the capture is blank: the presence matrix says nothing of it.
    pub fn is_blank(&self) -> bool {
        !self.known || self.status.is_failure()
    }

    /// Whether the capture tells of every link whether the page had it: the links are known, and the capture is not
    /// cut.
    pub fn is_whole(&self) -> bool {
        self.known && !self.status.is_cut()
    }

    /// Whether the page had a link, given whether the capture is known to have it. This is the one rule of three values
    /// for a link and a capture.
    pub fn linking(&self, has_link: bool) -> Linking {
        match has_link {
            true => Linking::Yes,
            false if self.is_whole() => Linking::No,
            false => Linking::Unknown,
        }
    }
}

/// Whether a page links to a URL as of a time. All questions with a time use this answer, in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Linking {
    /// Yes: the capture that decides has the link.
    Yes,
    /// No: the capture that decides is whole and lacks the link, or is a failure, or no capture decides.
    No,
    /// Unknown: the links of the capture that decides are unknown, or it is cut and the link was not found.
    Unknown,
}

impl Linking {
    /// The answer, given the capture that decides ([`deciding`](super::deciding)), and whether that capture is known to
    /// have the link.
    pub fn of(decides: Option<CaptureTime>, has_link: bool) -> Self {
        decides.map_or(Linking::No, |capture| capture.linking(has_link))
    }
}

words!(Linking { Yes = "yes", No = "no", Unknown = "unknown" });

/// The state of a page as of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PageState {
    /// The page is there.
    Alive,
    /// The page is there again, after a failure had ended it.
    Back,
    /// The page was there, and a failure has ended it.
    Gone,
    /// The page was never there: only failures count.
    Missing,
}

/// The captures that one row has of a page.
#[derive(Clone, Copy, Debug, Default)]
pub struct Captures<'a> {
    /// The times in seconds, rising.
    pub times: &'a [i64],
    /// The indexes of the blank captures, rising.
    pub blank: &'a [u32],
    /// The captures at which the status changes, rising.
    pub statuses: &'a [StatusChange],
}

impl<'a> Captures<'a> {
    /// All captures, in order.
    pub fn iter(self) -> impl Iterator<Item = CaptureTime> + 'a {
        let mut blank = self.blank.iter().peekable();
        let (mut statuses, mut status) = (self.statuses.iter().peekable(), Status::OK);
        let capture = move |(at, &time): (u32, &i64)| {
            if let Some(change) = statuses.next_if(|change| change.capture == at) {
                status = change.status;
            }
            let known = blank.next_if_eq(&&at).is_none() || status.is_failure();
            CaptureTime { time, known, status }
        };
        (0..).zip(self.times).map(capture)
    }

    /// Whether any capture is cut.
    pub fn has_cut(&self) -> bool {
        self.statuses.iter().any(|change| change.status.is_cut())
    }

    /// The status of a capture.
    #[inline]
    pub fn status(&self, capture: u32) -> Status {
        status::status_at(self.statuses, capture)
    }

    /// The index of the capture that decides as of a time: the latest that counts; `None` if there is none. It may be
    /// blank.
    #[inline]
    pub fn deciding(&self, AsOf { time, since, failures }: AsOf) -> Option<u32> {
        let end = self.times.partition_point(|&other| other <= time);
        let at = status::latest(self.statuses, end, failures)?;
        (self.times[at] >= since).then_some(u32::try_from(at).ok()?)
    }

    /// The failures that end the page ([`Failures::End`]), as rising indexes.
    pub fn ends(&self) -> Vec<usize> {
        let count = u32::try_from(self.times.len()).unwrap_or(u32::MAX);
        let stretches = status::status_stretches(self.statuses, count);
        let ends = stretches.filter(|(_, _, status)| status.is_failure() && Failures::End.counts(*status));
        ends.flat_map(|(first, end, _)| first as usize..end as usize).collect()
    }

    /// Cuts the captures `first..end` at the captures that end the page. All captures in `first..end` must have a link
    /// or be blank. Returns the stretches between the cuts, each as its first and last capture that is not blank.
    /// `ends` is the result of [`Captures::ends`].
    pub fn between_ends(
        &self,
        ends: &[usize],
        first: usize,
        end: usize,
    ) -> impl Iterator<Item = (u32, u32)> + use<'_, 'a> {
        let blank = self.blank;
        let within = ends.partition_point(|&at| at < first)..ends.partition_point(|&at| at < end);
        let mut first = first;
        let stretches = ends[within].iter().copied().chain([end]).map(move |end| {
            let stretch = (first, end);
            first = end + 1;
            stretch
        });
        stretches.filter_map(move |(first, end)| marked_ends(first, end, blank)).collect::<Vec<_>>().into_iter()
    }

    /// Whether the page is there in a window. As of a time: whether the capture that decides is not a failure. In an
    /// interval: whether any capture is not a failure. The links may be unknown.
    pub fn is_alive(&self, window: Window) -> bool {
        match window {
            Window::Seen { from, to } => {
                let first = self.times.partition_point(|&time| time < from);
                let end = self.times.partition_point(|&time| time <= to);
                (first..end).any(|at| u32::try_from(at).is_ok_and(|at| !self.status(at).is_failure()))
            }
            Window::AsOf(as_of) => self.deciding(as_of).is_some_and(|at| !self.status(at).is_failure()),
        }
    }

    /// The state of the page as of a time; `None` if no capture decides. Cost: linear in the captures if any capture
    /// failed.
    pub fn state(&self, as_of: AsOf) -> Option<PageState> {
        let last = self.deciding(as_of)?;
        if self.statuses.is_empty() {
            return Some(PageState::Alive);
        }
        let ends =
            |at: u32| Some(self.status(at)).is_some_and(|status| status.is_failure() && as_of.failures.counts(status));
        let first = (0..=last).find(|&at| !self.status(at).is_failure());
        Some(match first {
            None => PageState::Missing,
            Some(_) if ends(last) => PageState::Gone,
            Some(first) if (first..last).any(ends) => PageState::Back,
            Some(_) => PageState::Alive,
        })
    }

    /// The captures that a window selects, as first and last index. Neither is blank, and blank captures between them
    /// carry the bits of a selected one. `None` if the window selects no capture that is not blank.
    #[inline]
    pub fn selected(&self, window: Window) -> Option<(u32, u32)> {
        let (first, end) = match window {
            Window::Seen { from, to } => {
                (self.times.partition_point(|&time| time < from), self.times.partition_point(|&time| time <= to))
            }
            Window::AsOf(as_of) => {
                let at = self.deciding(as_of)? as usize;
                (at, at + 1)
            }
        };
        marked_ends(first, end, self.blank)
    }
}

/// Captures that own their memory.
#[derive(Clone, Debug, Default)]
pub struct CapturesBuf {
    times: Vec<i64>,
    blank: Vec<u32>,
    statuses: Vec<StatusChange>,
}

impl CapturesBuf {
    /// A view of the captures.
    pub fn view(&self) -> Captures<'_> {
        Captures { times: &self.times, blank: &self.blank, statuses: &self.statuses }
    }
}

impl FromIterator<CaptureTime> for CapturesBuf {
    fn from_iter<I: IntoIterator<Item = CaptureTime>>(captures: I) -> Self {
        let mut collected = Self::default();
        for (at, capture) in (0..).zip(captures) {
            collected.times.push(capture.time);
            collected.blank.extend(capture.is_blank().then_some(at));
            status::push_status(&mut collected.statuses, at, capture.status);
        }
        collected
    }
}

/// The first and the last capture of `first..end` that is not blank; `None` if all are blank.
pub(crate) fn marked_ends(first: usize, end: usize, blank: &[u32]) -> Option<(u32, u32)> {
    let (mut first, mut last) = first_and_last(first, end)?;
    if !blank.is_empty() {
        let is_blank = |at: u32| blank.binary_search(&at).is_ok();
        while is_blank(first) {
            if first == last {
                return None;
            }
            first += 1;
        }
        while is_blank(last) {
            last -= 1;
        }
    }
    Some((first, last))
}

/// The first and the last index of `first..end`; `None` if the range is empty.
pub(crate) fn first_and_last(first: usize, end: usize) -> Option<(u32, u32)> {
    if first >= end {
        return None;
    }
    Some((u32::try_from(first).ok()?, u32::try_from(end - 1).ok()?))
}
