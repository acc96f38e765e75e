//! Values of the graph in messages: windows, directions, matches, samples and statuses, in both directions.

use tonic::Status;
use webstrata_layers::{
    AsOf, CaptureTime, Direction as LinkDirection, Failures as FailureRule, Match, Precision, Sample, Sampling,
    Status as CaptureStatus, TIMES, Window as TimeWindow, interval,
};

use crate::protocol::proto::{self, Direction, Drawing, Failures, Window, window};
use crate::protocol::status::bad;

/// The window of a message.
///
/// # Errors
/// BAD_REQUEST for an interval that ends before it begins, and for seconds outside the years of captures.
pub fn window_of(window: Option<&Window>) -> Result<TimeWindow, Status> {
    let refused = |error| bad(format!("window: {error}"));
    match window.and_then(|window| window.window.as_ref()) {
        None => Ok(TimeWindow::ALWAYS),
        Some(window::Window::AsOf(time)) => {
            let (since, failures) = window.map_or((None, 0), |window| (window.since, window.failures));
            let failures = match Failures::try_from(failures) {
                Ok(Failures::End) => FailureRule::End,
                Ok(Failures::Ignore) => FailureRule::Ignore,
                Ok(Failures::All) => FailureRule::All,
                Err(_) => return Err(bad(format!("window: unknown failures {failures} (expected 0 to 2)"))),
            };
            let as_of = AsOf { since: since.unwrap_or(i64::MIN), failures, ..AsOf::new(*time) };
            as_of.checked().map(TimeWindow::AsOf).map_err(refused)
        }
        Some(window::Window::Seen(window::Seen { from, to })) => {
            let (from, to) = interval(*from, *to).map_err(refused)?;
            Ok(TimeWindow::Seen { from, to })
        }
    }
}

/// The message for a window. Seconds outside the years of captures are clamped.
pub fn window_to(window: TimeWindow) -> Window {
    let (mut first, mut failures) = (None, Failures::End);
    let window = match window {
        TimeWindow::AsOf(as_of) => {
            first = Some(as_of.since).filter(|since| since > TIMES.start()).map(|since| since.min(*TIMES.end()));
            failures = match as_of.failures {
                FailureRule::End => Failures::End,
                FailureRule::Ignore => Failures::Ignore,
                FailureRule::All => Failures::All,
            };
            window::Window::AsOf(as_of.time.clamp(*TIMES.start(), *TIMES.end()))
        }
        TimeWindow::Seen { from, to } => window::Window::Seen(window::Seen {
            from: (from > *TIMES.start()).then_some(from.min(*TIMES.end())),
            to: (to < *TIMES.end()).then_some(to.max(*TIMES.start())),
        }),
    };
    Window { window: Some(window), since: first, failures: failures.into() }
}

/// The direction of a message.
///
/// # Errors
/// BAD_REQUEST for a number that is not a direction.
pub fn direction_of(direction: i32) -> Result<LinkDirection, Status> {
    match Direction::try_from(direction) {
        Ok(Direction::Out) => Ok(LinkDirection::Out),
        Ok(Direction::In) => Ok(LinkDirection::In(Precision::Exact)),
        Ok(Direction::InByRange) => Ok(LinkDirection::In(Precision::Range)),
        Err(_) => Err(bad(format!("unknown direction {direction} (expected 0 = out, 1 = in, 2 = in by range)"))),
    }
}

/// The number of a direction.
pub fn direction_to(direction: LinkDirection) -> i32 {
    (match direction {
        LinkDirection::Out => Direction::Out,
        LinkDirection::In(Precision::Exact) => Direction::In,
        LinkDirection::In(Precision::Range) => Direction::InByRange,
    })
    .into()
}

/// The rule by which URLs match a URL, from a number of [`proto::Match`].
pub(crate) fn match_of(number: i32) -> Result<Match, Status> {
    Ok(match proto::Match::try_from(number).map_err(|_| bad(format!("match: {number} is none")))? {
        proto::Match::Exact => Match::Exact,
        proto::Match::Surt => Match::Surt,
        proto::Match::Prefix => Match::Prefix,
        proto::Match::Host => Match::Host,
        proto::Match::Domain => Match::Domain,
    })
}

/// The sample of a message.
pub fn sample_of(drawing: &Drawing) -> Sample {
    let sampling = if drawing.random { Sampling::Random } else { Sampling::Consistent };
    Sample { count: usize::try_from(drawing.samples).unwrap_or(usize::MAX), sampling, seed: drawing.seed }
}

/// The statuses of captures as messages have them: empty if all are 200.
pub fn statuses_of(captures: &[CaptureTime]) -> Vec<u32> {
    let mut codes = captures.iter().map(|capture| capture.status.code().into()).collect();
    clear_if_ok(&mut codes);
    codes
}

/// The indexes of cut captures, and why each was cut, as messages have them.
pub(crate) fn cut_of(captures: &[CaptureTime]) -> (Vec<u32>, Vec<i32>) {
    let cut = (0..).zip(captures).filter_map(|(index, capture)| Some((index, capture.status.reason()? as i32)));
    cut.unzip()
}

/// The numbers of the statuses of captures.
pub(crate) fn numbers_of(captures: &[CaptureTime]) -> impl Iterator<Item = u32> + '_ {
    captures.iter().map(|capture| capture.status.number().into())
}

/// Empties statuses that are all 200, as messages have them.
pub(crate) fn clear_if_ok(codes: &mut Vec<u32>) {
    if codes.iter().all(|&code| code == u32::from(CaptureStatus::OK.number())) {
        codes.clear();
    }
}

/// Narrows a count; answers are bounded, so their counts are below 2^32.
pub(crate) fn narrow(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}
