//! The fate of a page: when it was first there, when it died, and when it came back.
//!
//! A page *dies* at the first failure that ends it ([`Failures::End`]) after a capture in which it was there. The page
//! has *returned* at the next capture in which it is there. Captures that say nothing of the page, such as outages, are
//! passed over. A page that was never there cannot die: with a failure that ends pages, it is *missing* ([`missing`]).
//! As of a time, a page is gone if its last event is a death, and back if it has returned
//! ([`PageState`](crate::PageState)).
//!
//! Times are seconds, UTC. Cost: linear in the captures.

use super::CaptureTime;
use crate::record::status::{Failures, Status};

/// An event in the life of a page, at one capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The page is there for the first time.
    Born,
    /// A failure ends the page.
    Died {
        /// The status of the failure.
        status: Status,
        /// The last capture before the failure in which the page was there.
        seen: i64,
    },
    /// The page is there again.
    Returned,
}

/// The death of a page and its return, or the first failure of a page that was never there.
///
/// ```
/// use webstrata_layers::record::capture::fate::{Death, deaths};
/// use webstrata_layers::{CaptureTime, Status};
///
/// let gone = Status::new(404).expect("a status");
/// let capture = |time, status| CaptureTime { time, known: true, status };
/// let captures = [capture(100, Status::OK), capture(200, gone), capture(300, gone), capture(400, Status::OK)];
/// assert_eq!(deaths(captures), [Death { died: 200, seen: Some(100), status: gone, returned: Some(400) }]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Death {
    /// The time of the failure that ended the page.
    pub died: i64,
    /// The time of the last capture before the failure in which the page was there; `None` if it was never there.
    pub seen: Option<i64>,
    /// The status of the failure.
    pub status: Status,
    /// The time of the next capture in which the page is there; `None` if the store has none.
    pub returned: Option<i64>,
}

/// The fates of a page with their times, in order. `captures` must be in order of time.
pub fn fates(captures: impl IntoIterator<Item = CaptureTime>) -> Vec<(i64, Fate)> {
    let mut fates: Vec<(i64, Fate)> = Vec::new();
    let mut seen = None;
    for CaptureTime { time, status, .. } in captures {
        if !Failures::End.counts(status) {
            continue;
        }
        let is_dead = matches!(fates.last(), Some((_, Fate::Died { .. })));
        match (seen, status.is_failure()) {
            (None, false) => fates.push((time, Fate::Born)),
            (Some(_), false) if is_dead => fates.push((time, Fate::Returned)),
            (Some(seen), true) if !is_dead => fates.push((time, Fate::Died { status, seen })),
            _ => {}
        }
        seen = if status.is_failure() { seen } else { Some(time) };
    }
    fates
}

/// The deaths of a page, in order. `captures` must be in order of time.
pub fn deaths(captures: impl IntoIterator<Item = CaptureTime>) -> Vec<Death> {
    let mut deaths: Vec<Death> = Vec::new();
    for (time, fate) in fates(captures) {
        match (fate, deaths.last_mut()) {
            (Fate::Died { status, seen }, _) => {
                deaths.push(Death { died: time, seen: Some(seen), status, returned: None });
            }
            (Fate::Returned, Some(death)) => death.returned = Some(time),
            _ => {}
        }
    }
    deaths
}

/// The first failure of a page that was never there: each of its captures that counts is a failure. `None` if the page
/// was there, or if no capture counts. `captures` must be in order of time.
///
/// ```
/// use webstrata_layers::record::capture::fate::missing;
/// use webstrata_layers::{CaptureTime, Status};
///
/// let gone = Status::new(410).expect("a status");
/// let capture = |time, status| CaptureTime { time, known: true, status };
/// let found = missing([capture(100, gone), capture(200, gone)]).expect("a failure");
/// assert_eq!((found.died, found.seen, found.status), (100, None, gone));
/// assert_eq!(missing([capture(100, gone), capture(200, Status::OK)]), None);
/// ```
pub fn missing(captures: impl IntoIterator<Item = CaptureTime>) -> Option<Death> {
    let mut first = None;
    let counting = captures.into_iter().filter(|capture| Failures::End.counts(capture.status));
    for CaptureTime { time, status, .. } in counting {
        if !status.is_failure() {
            return None;
        }
        first.get_or_insert(Death { died: time, seen: None, status, returned: None });
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::capture::ended_by;
    use crate::record::time::AsOf;
    use proptest::prelude::*;

    fn captures(codes: &[u16]) -> Vec<CaptureTime> {
        let status = |&code: &u16| Status::stored(code).unwrap();
        (1..).zip(codes).map(|(at, code)| CaptureTime { time: 10 * at, known: true, status: status(code) }).collect()
    }

    #[test]
    fn a_page_dies_at_the_first_failure_that_ends_it_and_returns() {
        let died =
            |died, seen, code, returned| Death { died, seen: Some(seen), status: Status::new(code).unwrap(), returned };
        assert_eq!(deaths(captures(&[404, 503, 404])), []);
        assert_eq!(deaths(captures(&[200, 503, 429, 0, 200])), []);
        assert_eq!(deaths(captures(&[200, 200, 503, 410, 404, 500])), [died(40, 20, 410, None)]);
        let twice = [died(30, 20, 404, Some(60)), died(80, 70, 403, None)];
        assert_eq!(deaths(captures(&[404, 200, 404, 404, 500, 302, 200, 403])), twice);
    }

    #[test]
    fn a_page_is_missing_if_it_was_never_there() {
        let first = |died, code| Some(Death { died, seen: None, status: Status::new(code).unwrap(), returned: None });
        assert_eq!(missing(captures(&[404, 503, 410])), first(10, 404));
        assert_eq!(missing(captures(&[503, 429, 410, 404])), first(30, 410));
        assert_eq!(missing(captures(&[404, 404, 200])), None);
        assert_eq!(missing(captures(&[200, 404])), None);
        assert_eq!(missing(captures(&[503, 429])), None);
        assert_eq!(missing(captures(&[])), None);
    }

    proptest! {
        /// A page with a capture that counts was there once, or it is missing.
        #[test]
        fn a_page_that_failed_is_in_one_list_at_most(
            codes in prop::collection::vec(prop::sample::select(vec![0, 200, 301, 404, 410, 429, 503]), 0..12),
        ) {
            let captures = captures(&codes);
            let counting = captures.iter().filter(|capture| Failures::End.counts(capture.status));
            let is_missing = missing(captures.iter().copied()).is_some();
            let has_failed = counting.clone().all(|capture| capture.status.is_failure());
            prop_assert_eq!(is_missing, has_failed && counting.clone().count() > 0);
            prop_assert!(!is_missing || deaths(captures.iter().copied()).is_empty());
        }

        /// The last death without a return is the failure that ended a page that is gone.
        #[test]
        fn a_page_that_died_last_is_gone(
            codes in prop::collection::vec(prop::sample::select(vec![0, 200, 301, 404, 410, 429, 503]), 0..12),
        ) {
            let captures = captures(&codes);
            let was_there = captures.iter().any(|capture| Failures::Ignore.counts(capture.status));
            let ended = ended_by(&captures, AsOf::new(i64::MAX)).filter(|_| was_there);
            let last = deaths(captures.iter().copied()).last().filter(|death| death.returned.is_none()).copied();
            // A failure before the page was there for the first time does not end the page.
            prop_assert_eq!(last.map(|death| (death.died, death.status)), ended.map(|end| (end.time, end.status)));
        }
    }
}
