//! The fate of a page: when it was first there, when it died, and when it came back.
//!
//! A page *dies* at the first failure that ends it ([`Failures::End`]) after a capture in which it was there. The page
//! has *returned* at the next capture in which it is there. Captures that say nothing of the page, such as outages, are
//! passed over. A page that was never there cannot die. As of a time, a page is gone if its last event is a death, and
//! back if it has returned ([`PageState`](crate::PageState)).
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

/// The death of a page, and its return.
///
/// ```
/// use webstrata_layers::record::capture::fate::{Death, deaths};
/// use webstrata_layers::{CaptureTime, Status};
///
/// let gone = Status::new(404).expect("a status");
/// let capture = |time, status| CaptureTime { time, known: true, status };
/// let captures = [capture(100, Status::OK), capture(200, gone), capture(300, gone), capture(400, Status::OK)];
/// assert_eq!(deaths(captures), [Death { died: 200, seen: 100, status: gone, returned: Some(400) }]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Death {
    /// The time of the failure that ended the page.
    pub died: i64,
    /// The time of the last capture before the failure in which the page was there.
    pub seen: i64,
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
            (Fate::Died { status, seen }, _) => deaths.push(Death { died: time, seen, status, returned: None }),
            (Fate::Returned, Some(death)) => death.returned = Some(time),
            _ => {}
        }
    }
    deaths
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
        let died = |died, seen, code, returned| Death { died, seen, status: Status::new(code).unwrap(), returned };
        assert_eq!(deaths(captures(&[404, 503, 404])), []);
        assert_eq!(deaths(captures(&[200, 503, 429, 0, 200])), []);
        assert_eq!(deaths(captures(&[200, 200, 503, 410, 404, 500])), [died(40, 20, 410, None)]);
        let twice = [died(30, 20, 404, Some(60)), died(80, 70, 403, None)];
        assert_eq!(deaths(captures(&[404, 200, 404, 404, 500, 302, 200, 403])), twice);
    }

    proptest! {
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
