//! The captures of a page: their times and statuses, whether their links are known, and which captures a window
//! selects.
//!
//! For a link and a capture there are three values ([`CaptureTime::linking`]): *yes* if the link was found, *no* if the
//! capture is whole and lacks it, and *unknown* otherwise: the links of the capture are unknown, or its body was cut.
//!
//! A capture is *blank* if the presence matrix says nothing of it: its links are unknown, or it is a failure, which has
//! no links ([`Status`](crate::Status)). A question about an interval passes over blank captures. As of a time, the
//! latest capture that counts decides. If this capture is blank, no links are known.

pub(crate) mod captures;
pub mod fate;
pub(crate) mod lifespan;

use crate::record::status::Failures;
use crate::record::time::{AsOf, Window};

pub(crate) use self::captures::{CaptureTime, Captures, Linking, first_and_last, marked_ends};

/// The capture that decides as of a time: the latest that counts. `captures` must be in order of time.
pub fn deciding(captures: &[CaptureTime], as_of: AsOf) -> Option<CaptureTime> {
    let counts = |capture: &&CaptureTime| capture.time <= as_of.time && as_of.failures.counts(capture.status);
    captures.iter().rev().find(counts).filter(|capture| capture.time >= as_of.since).copied()
}

/// Whether it is unknown in a window whether the page had a link that is not known to be there. As of a time: whether
/// the capture that decides is not whole. In an interval: whether any capture is not.
pub fn is_unknown(captures: &[CaptureTime], window: Window) -> bool {
    match window {
        Window::AsOf(as_of) => Linking::of(deciding(captures, as_of), false) == Linking::Unknown,
        Window::Seen { from, to } => {
            captures.iter().any(|capture| (from..=to).contains(&capture.time) && !capture.is_whole())
        }
    }
}

/// The captures at the end of a history that leave links unknown: those up to the capture that decides, and after the
/// last whole capture. Captures that do not count are left out. Links of these captures are known where they were
/// found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unclear {
    /// The times, rising.
    times: Vec<i64>,
    /// The time of the last cut one among them.
    last_cut: Option<i64>,
}

impl Unclear {
    /// The captures that leave links unknown as of a time; none if the capture that decides is whole.
    pub(crate) fn of(captures: &[CaptureTime], as_of: AsOf) -> Self {
        let Some(decides) = deciding(captures, as_of) else { return Self::default() };
        let before = captures[..captures.partition_point(|capture| capture.time <= decides.time)].iter().rev();
        let counting = before.filter(|capture| as_of.failures.counts(capture.status));
        let unclear: Vec<&CaptureTime> = counting.take_while(|capture| !capture.is_whole()).collect();
        let last_cut = unclear.iter().find(|capture| capture.known).map(|capture| capture.time);
        Self { times: unclear.iter().rev().map(|capture| capture.time).collect(), last_cut }
    }

    /// Since when it is unknown whether the page has a link, as of the time; `None` if this is known. `run` is the
    /// latest run of the link ([`lifespan::runs_of`]) that began by then, as its first and last capture.
    pub(crate) fn since(&self, run: Option<(i64, i64)>) -> Option<i64> {
        let decides = *self.times.last()?;
        let found = run.map(|(first, last)| match last <= decides {
            true => last,
            // The run goes on behind the time. In it, each cut capture has the link, and unknown ones say nothing.
            false => self.last_cut.map_or(first, |cut| cut.max(first)),
        });
        self.times.get(found.map_or(0, |found| self.times.partition_point(|&time| time <= found))).copied()
    }
}

/// The failure that ended a page which is gone as of a time: the first counting failure after the last good capture.
/// `None` if the page is not gone, or was never captured.
pub fn ended_by(captures: &[CaptureTime], as_of: AsOf) -> Option<CaptureTime> {
    let counts = |capture: &&CaptureTime| capture.time <= as_of.time && as_of.failures.counts(capture.status);
    captures.iter().rev().filter(counts).take_while(|capture| capture.status.is_failure()).last().copied()
}

/// The times of the captures that tell which links the page lacks, rising. Captures that are cut or have unknown links
/// and failures of the server do not tell.
pub fn telling(captures: &[CaptureTime]) -> Vec<i64> {
    let tells = |capture: &&CaptureTime| capture.is_whole() && Failures::End.counts(capture.status);
    captures.iter().filter(tells).map(|capture| capture.time).collect()
}

/// The first of the [`telling`] times after `last`. If the capture at this time lacks a link of the capture at `last`,
/// the link is gone then. Cost: a search.
pub fn gone_after(telling: &[i64], last: i64) -> Option<i64> {
    telling.get(telling.partition_point(|&time| time <= last)).copied()
}
