//! The captures of a page: their times and statuses, whether their links are known, and which captures a window
//! selects.
//!
//! A capture is *blank* if the presence matrix says nothing of it: its links are unknown, or it is a failure, which has
//! no links ([`Status`](crate::Status)). A question about an interval passes over blank captures. As of a time, the
//! latest capture that counts decides. If this capture is blank, no links are known.

pub(crate) mod captures;
pub mod fate;
pub(crate) mod lifespan;

use crate::record::status::Failures;
use crate::record::time::AsOf;

pub(crate) use self::captures::{CaptureTime, Captures, Linking, first_and_last, marked_ends};

/// The capture that decides as of a time: the latest that counts. `captures` must be in order of time.
pub fn deciding(captures: &[CaptureTime], as_of: AsOf) -> Option<CaptureTime> {
    let counts = |capture: &&CaptureTime| capture.time <= as_of.time && as_of.failures.counts(capture.status);
    captures.iter().rev().find(counts).filter(|capture| capture.time >= as_of.since).copied()
}

/// Whether the links of a page are unknown as of a time.
pub(crate) fn is_unknown(captures: &[CaptureTime], as_of: AsOf) -> bool {
    Linking::of(deciding(captures, as_of), false) == Linking::Unknown
}

/// Since when the links are unknown as of a time; `None` if they are known. This is the time of the first capture in a
/// run of captures with unknown links, which ends with the capture that decides. Captures that do not count are left
/// out of the run.
pub(crate) fn unknown_since(captures: &[CaptureTime], as_of: AsOf) -> Option<i64> {
    let last = deciding(captures, as_of).filter(|capture| !capture.known)?.time;
    let before = captures[..captures.partition_point(|capture| capture.time <= last)].iter().rev();
    let counting = before.filter(|capture| as_of.failures.counts(capture.status));
    counting.take_while(|capture| !capture.known).last().map(|capture| capture.time)
}

/// The failure that ended a page which is gone as of a time: the first counting failure after the last good capture.
/// `None` if the page is not gone, or was never captured.
pub fn ended_by(captures: &[CaptureTime], as_of: AsOf) -> Option<CaptureTime> {
    let counts = |capture: &&CaptureTime| capture.time <= as_of.time && as_of.failures.counts(capture.status);
    captures.iter().rev().filter(counts).take_while(|capture| capture.status.is_failure()).last().copied()
}

/// The times of the captures that tell which links the page has, rising. Captures with unknown links and failures of
/// the server do not tell.
pub fn telling(captures: &[CaptureTime]) -> Vec<i64> {
    let tells = |capture: &&CaptureTime| capture.known && Failures::End.counts(capture.status);
    captures.iter().filter(tells).map(|capture| capture.time).collect()
}

/// The first of the [`telling`] times after `last`. If the capture at this time lacks a link of the capture at `last`,
/// the link is gone then. Cost: a search.
pub fn gone_after(telling: &[i64], last: i64) -> Option<i64> {
    telling.get(telling.partition_point(|&time| time <= last)).copied()
}
