//! Times: seconds since 1970, UTC. Windows of questions, lengths of in-link ranges, and times as text.
//!
//! A capture has a second of [`TIMES`], and so has a window that a user asks about. [`interval`] and [`as_of`] check
//! this for all ways to ask. Inside the program a window may have any seconds: [`Window::ALWAYS`] has the first and the
//! last.
//!
//! Pure functions, except that [`text`] reads the clock. The calendar is the calendar of `chrono`: Gregorian, also
//! before 1582, without leap seconds.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use chrono::{Datelike, NaiveDate};
use serde::{Deserialize, Serialize};

use crate::record::status::Failures;

pub(crate) mod text;

/// The seconds of a day.
const DAY: i64 = 86_400;

/// The seconds of the years 1 to 9999. These are the seconds that 14 digits can express.
pub const TIMES: RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// The time that a question asks about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Window {
    /// Any known capture in the closed interval.
    Seen {
        /// First second.
        from: i64,
        /// Last second.
        to: i64,
    },
    /// The latest capture that counts as of a time.
    AsOf(AsOf),
}

/// The time of a question as of a time, as in Memento: the latest capture that is not after the time decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AsOf {
    /// The last second of captures that count.
    pub time: i64,
    /// The first second of captures that count. If the latest capture is older, no capture decides.
    pub since: i64,
    /// Which failures count.
    pub failures: Failures,
}

impl AsOf {
    /// As of a second, however old the latest capture is.
    pub const fn new(time: i64) -> Self {
        Self { time, since: i64::MIN, failures: Failures::End }
    }

    /// The same time, but captures older than `age` seconds do not count.
    #[must_use]
    pub fn within(self, age: Option<i64>) -> Self {
        Self { since: age.map_or(self.since, |age| self.time.saturating_sub(age)), ..self }
    }

    /// The same time, if a user may ask about it.
    ///
    /// # Errors
    /// A second outside of [`TIMES`].
    pub fn checked(self) -> Result<Self, WindowError> {
        as_of(self.time).map(|_| self)
    }
}

impl Window {
    /// Everything ever seen.
    pub const ALWAYS: Window = Window::Seen { from: i64::MIN, to: i64::MAX };

    /// As of a second, however old the latest capture is.
    pub const fn as_of(time: i64) -> Self {
        Window::AsOf(AsOf::new(time))
    }

    /// Whether no capture can be in the window.
    pub fn is_empty(self) -> bool {
        match self {
            Window::Seen { from, to } => from > to || from > *TIMES.end() || to < *TIMES.start(),
            Window::AsOf(AsOf { time, since, .. }) => time < *TIMES.start() || since > time,
        }
    }

    /// The interval that in-links at range precision answer for: from the range of the window's first second to the
    /// range of its last. As of a time, it begins with the first second of all.
    #[must_use]
    pub fn of_ranges(self, length: RangeLength) -> Self {
        let (from, to) = match self {
            Window::Seen { from, to } if from > to => return self,
            Window::Seen { from, to } => (from, to),
            Window::AsOf(AsOf { time, .. }) => (i64::MIN, time),
        };
        let from = if from == i64::MIN { from } else { length.start(from) };
        Window::Seen { from, to: if to == i64::MAX { to } else { length.end(to) } }
    }

    /// Whether captures between these times, the first and the last, may decide the answer for the window.
    #[inline]
    pub fn overlaps(self, (first, last): (i64, i64)) -> bool {
        match self {
            Window::Seen { from, to } => from <= to && first <= to && from <= last,
            Window::AsOf(AsOf { time, since, .. }) => since <= time && first <= time && since <= last,
        }
    }
}

/// The error for a window that nobody can ask about.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// The window ends before it begins.
    #[error("from {} is later than to {}", format_time(*from), format_time(*to))]
    Backwards {
        /// The first second.
        from: i64,
        /// The last second.
        to: i64,
    },
    /// A second of the window is outside of [`TIMES`].
    #[error("{time} is outside the years 1 to 9999 (expected seconds since 1970)")]
    OutOfRange {
        /// The second.
        time: i64,
    },
}

/// The closed interval between two seconds that a user gave. A missing second leaves its side open.
///
/// # Errors
/// A second outside of [`TIMES`], and an interval that ends before it begins.
pub fn interval(from: Option<i64>, to: Option<i64>) -> Result<(i64, i64), WindowError> {
    for time in [from, to].into_iter().flatten() {
        as_of(time)?;
    }
    let (from, to) = (from.unwrap_or(i64::MIN), to.unwrap_or(i64::MAX));
    if from > to { Err(WindowError::Backwards { from, to }) } else { Ok((from, to)) }
}

/// The window as of a second that a user gave.
///
/// # Errors
/// A second outside of [`TIMES`].
pub(crate) fn as_of(time: i64) -> Result<Window, WindowError> {
    if TIMES.contains(&time) { Ok(Window::as_of(time)) } else { Err(WindowError::OutOfRange { time }) }
}

/// The length of the time ranges of the in-link layers; as text `month`, `year`, `day`, or a number of days.
///
/// ```
/// use webstrata_layers::{RangeLength, format_time, parse_time};
///
/// let start = RangeLength::Month.start(parse_time("20080615", false)?);
/// assert_eq!(format_time(start), "2008-06-01T00:00:00Z");
/// assert_eq!(format_time(RangeLength::Month.end(start)), "2008-06-30T23:59:59Z");
/// assert_eq!("7".parse(), Ok(RangeLength::Days(7)));
/// # Ok::<(), webstrata_layers::TimeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum RangeLength {
    /// Calendar months.
    Month,
    /// Calendar years.
    Year,
    /// This many days, counted from 1970-01-01; 0 counts as 1.
    Days(u32),
}

/// The error for a text that is not a length of ranges.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a range length: month, day, year or a number of days")]
pub struct RangeLengthError {
    /// The text.
    pub text: String,
}

impl RangeLength {
    /// The first second of the range that a time falls in.
    pub fn start(self, time: i64) -> i64 {
        match self {
            RangeLength::Month => {
                let date = date(time);
                first_second(date.year(), date.month())
            }
            RangeLength::Year => first_second(date(time).year(), 1),
            RangeLength::Days(count) => {
                let length = DAY * i64::from(count.max(1));
                time.div_euclid(length).saturating_mul(length)
            }
        }
    }

    /// The last second of the range that starts at `start`.
    pub fn end(self, start: i64) -> i64 {
        let next = match self {
            RangeLength::Month => {
                let date = date(start);
                let (year, month) =
                    if date.month() == 12 { (date.year() + 1, 1) } else { (date.year(), date.month() + 1) };
                first_second(year, month)
            }
            RangeLength::Year => first_second(date(start).year() + 1, 1),
            RangeLength::Days(count) => self.start(start).saturating_add(DAY * i64::from(count.max(1))),
        };
        next.saturating_sub(1)
    }

    /// The first second of each range, from the range of `first` to the range of `last`.
    pub fn starts(self, first: i64, last: i64) -> impl Iterator<Item = i64> {
        let starts = std::iter::successors(Some(self.start(first)), move |&start| Some(self.end(start) + 1));
        starts.take_while(move |&start| start <= last)
    }
}

impl fmt::Display for RangeLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RangeLength::Month => f.write_str("month"),
            RangeLength::Year => f.write_str("year"),
            RangeLength::Days(0 | 1) => f.write_str("day"),
            RangeLength::Days(count) => count.fmt(f),
        }
    }
}

impl FromStr for RangeLength {
    type Err = RangeLengthError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "month" => Ok(RangeLength::Month),
            "year" => Ok(RangeLength::Year),
            "day" => Ok(RangeLength::Days(1)),
            _ => match text.parse() {
                Ok(count) if count > 0 => Ok(RangeLength::Days(count)),
                _ => Err(RangeLengthError { text: text.to_owned() }),
            },
        }
    }
}

impl TryFrom<String> for RangeLength {
    type Error = RangeLengthError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<RangeLength> for String {
    fn from(length: RangeLength) -> Self {
        length.to_string()
    }
}

/// A time in ISO 8601, as all output has it: `2000-06-20T18:02:59Z`. Years outside 0 to 9999 have as many digits as
/// they need, and a sign. Seconds outside the calendar, some 262,000 years away, get its first or last day.
pub fn format_time(seconds: i64) -> String {
    let (day, second) = (date(seconds), seconds.rem_euclid(DAY));
    let (year, month, day) = (day.year(), day.month(), day.day());
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// A time as 14 digits, `YYYYMMDDhhmmss`, UTC, for formats that use them, such as URLs of mementos and CDX.
pub fn format_digits(seconds: i64) -> String {
    let (day, second) = (date(seconds), seconds.rem_euclid(DAY));
    let (year, month, day) = (day.year(), day.month(), day.day());
    format!("{year:04}{month:02}{day:02}{:02}{:02}{:02}", second / 3600, second / 60 % 60, second % 60)
}

/// The date of a second; the first or the last date of the calendar for seconds outside the calendar.
fn date(seconds: i64) -> NaiveDate {
    let days = i32::try_from(seconds.div_euclid(DAY)).ok().and_then(NaiveDate::from_epoch_days);
    days.unwrap_or(if seconds < 0 { NaiveDate::MIN } else { NaiveDate::MAX })
}

/// The first second of a month; [`i64::MAX`] if the calendar does not have the month.
fn first_second(year: i32, month: u32) -> i64 {
    NaiveDate::from_ymd_opt(year, month, 1).map_or(i64::MAX, |date| i64::from(date.to_epoch_days()) * DAY)
}

#[cfg(test)]
mod tests {
    use super::text::parse_time;
    use super::*;
    use chrono::DateTime;
    use proptest::prelude::*;

    #[test]
    fn times_as_iso_8601_has_them() {
        assert_eq!(format_time(0), "1970-01-01T00:00:00Z");
        assert_eq!(format_time(961_524_179), "2000-06-20T18:02:59Z");
        assert_eq!(format_time(1_180_698_245), "2007-06-01T11:44:05Z");
        assert_eq!(format_time(-1), "1969-12-31T23:59:59Z");
    }

    #[test]
    fn windows_are_of_the_years_that_captures_have_and_run_forwards() {
        let (first, last) = (*TIMES.start(), *TIMES.end());
        assert_eq!((parse_time("0001", false), parse_time("9999", true)), (Ok(first), Ok(last)));
        assert_eq!(interval(None, None), Ok((i64::MIN, i64::MAX)));
        assert_eq!(interval(Some(first), Some(last)), Ok((first, last)));
        assert_eq!(interval(Some(5), Some(5)), Ok((5, 5)));
        let backwards = interval(Some(1), Some(0)).unwrap_err();
        assert_eq!(backwards, WindowError::Backwards { from: 1, to: 0 });
        assert_eq!(backwards.to_string(), "from 1970-01-01T00:00:01Z is later than to 1970-01-01T00:00:00Z");
        for time in [first - 1, last + 1, i64::MIN, i64::MAX, 1_401_010_000_000] {
            let error = Err(WindowError::OutOfRange { time });
            assert_eq!(
                (as_of(time), interval(Some(time), None).map(|_| Window::ALWAYS)),
                (error.clone(), error.clone())
            );
            assert_eq!(interval(None, Some(time)).map(|_| Window::ALWAYS), error);
        }
        for (window, empty) in [
            (Window::ALWAYS, false),
            (Window::Seen { from: 1, to: 0 }, true),
            (Window::Seen { from: last, to: i64::MAX }, false),
            (Window::Seen { from: last + 1, to: i64::MAX }, true),
            (Window::Seen { from: i64::MIN, to: first - 1 }, true),
            (Window::as_of(i64::MAX), false),
            (Window::as_of(first - 1), true),
        ] {
            assert_eq!(window.is_empty(), empty, "{window:?}");
        }
    }

    #[test]
    fn range_lengths_as_text() {
        for (text, length) in [
            ("month", RangeLength::Month),
            ("year", RangeLength::Year),
            ("day", RangeLength::Days(1)),
            ("7", RangeLength::Days(7)),
        ] {
            assert_eq!(text.parse(), Ok(length));
            assert_eq!(length.to_string(), text);
            assert_eq!(serde_json::to_string(&length).unwrap(), format!("{text:?}"));
            assert_eq!(serde_json::from_str::<RangeLength>(&format!("{text:?}")).unwrap(), length);
        }
        for text in ["", "0", "-1", "week", "Month", "4294967296"] {
            assert_eq!(text.parse::<RangeLength>(), Err(RangeLengthError { text: text.to_owned() }));
        }
    }

    #[test]
    fn extreme_times_do_not_panic() {
        for time in [i64::MIN, i64::MIN + 1, i64::MAX - 1, i64::MAX] {
            for length in [RangeLength::Month, RangeLength::Year, RangeLength::Days(0), RangeLength::Days(u32::MAX)] {
                let start = length.start(time);
                assert!(length.end(start) >= start);
            }
            assert!(!format_digits(time).is_empty());
        }
    }

    proptest! {
        #[test]
        fn agrees_with_chrono(time in -62_135_596_800i64..253_402_300_800) {
            let date = DateTime::from_timestamp(time, 0).unwrap();
            prop_assert_eq!(format_digits(time), date.format("%Y%m%d%H%M%S").to_string());
            prop_assert_eq!(parse_time(&format_digits(time), false), Ok(time));
            prop_assert_eq!(parse_time(&format_time(time), true), Ok(time));
            let month = date.date_naive().with_day(1).unwrap().and_hms_opt(0, 0, 0).unwrap().and_utc().timestamp();
            prop_assert_eq!(RangeLength::Month.start(time), month);
        }

        #[test]
        fn ranges_cover_all_time_once(time in -99_999_999_999i64..99_999_999_999, days in 1u32..400) {
            for length in [RangeLength::Month, RangeLength::Year, RangeLength::Days(days)] {
                let start = length.start(time);
                let end = length.end(start);
                prop_assert!(start <= time && time <= end);
                prop_assert_eq!(length.start(start), start);
                prop_assert_eq!(length.start(end), start);
                prop_assert_eq!(length.start(end + 1), end + 1);
            }
        }
    }
}
