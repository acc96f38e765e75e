//! Reads the dates of crawl files and tables into seconds since 1970, UTC. All formats share these rules:
//!
//! | date | means |
//! |---|---|
//! | 14 digits, text or number | `YYYYMMDDhhmmss` |
//! | text of 4, 6, 8, 10 or 12 digits | the beginning of that year, month, day, hour or minute |
//! | text of 17 or 18 digits | 14 digits, then a fraction of a second |
//! | text `2008-04-30T20:48:26.5Z` | with `T`, `t` or a space, any offset; missing parts mean the beginning |
//! | number of 10 digits | seconds since 1970 |
//! | number of 13 digits | milliseconds since 1970 |
//! | column of type timestamp or date (Parquet) | what the type says |
//!
//! Numbers come from JSON and from integer columns. A number may have a fraction: 1.2e9 is a number of 10 digits.
//! Digits of a text never mean seconds. Every other date is damage, and so is a date outside of [`TIMES`].
//!
//! ClueWeb09 writes the day of the year after the month (`2008-10-294T...`). Such a date is accepted if day and month
//! agree.
//!
//! Fractions of a second are dropped and counted. Dates that do not name a second are counted too. A leap second counts
//! as the next second.

use crate::{Finding, Tally};
use chrono::{Datelike, NaiveDate};
use std::ops::RangeInclusive;

/// The seconds that a capture can have: the years 1 to 9999, which 14 digits can name.
pub const TIMES: RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// A date of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Date {
    /// Seconds since 1970, in [`TIMES`].
    seconds: i64,
    /// Whether the date had parts finer than a second that were not all zero.
    finer: bool,
    /// Whether the date named a second. Otherwise, missing parts mean the beginning.
    whole: bool,
}

impl Date {
    fn new(seconds: i64, finer: bool, whole: bool) -> Option<Date> {
        TIMES.contains(&seconds).then_some(Date { seconds, finer, whole })
    }

    /// The seconds. Counts a date that is finer or coarser than a second.
    pub(crate) fn counted(self, tally: &mut Tally) -> i64 {
        if self.finer {
            tally.count(Finding::FinerDate);
        }
        if !self.whole {
            tally.count(Finding::CoarserDate);
        }
        self.seconds
    }

    /// The seconds, without counting.
    pub(crate) fn seconds(self) -> i64 {
        self.seconds
    }
}

/// Reads a date from text; `None` if the text is not a date.
pub(crate) fn parse(text: &str) -> Option<Date> {
    let bytes = text.trim().as_bytes();
    if bytes.iter().all(u8::is_ascii_digit) { digits(bytes) } else { parts(bytes) }
}

/// Reads a date from a whole number; `None` if the number is not a date.
pub(crate) fn from_number(number: i64) -> Option<Date> {
    const SECONDS: RangeInclusive<i64> = 1_000_000_000..=9_999_999_999;
    match number {
        seconds if SECONDS.contains(&seconds) => from_units(seconds, 1),
        milliseconds if SECONDS.contains(&milliseconds.div_euclid(1000)) => from_units(milliseconds, 1000),
        10_000_000_000_000..=99_999_999_999_999 => digits(number.to_string().as_bytes()),
        _ => None,
    }
}

/// Reads a date from a number that may have a fraction.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a float out of range becomes the largest integer, which is no date"
)]
pub(crate) fn from_float(number: f64) -> Option<Date> {
    let date = from_number(number.floor() as i64)?;
    Some(Date { finer: date.finer || number.fract() != 0.0, ..date })
}

/// The date of a number of units since 1970; a second has `a_second` units.
pub(crate) fn from_units(units: i64, a_second: i64) -> Option<Date> {
    Date::new(units.div_euclid(a_second), units.rem_euclid(a_second) != 0, true)
}

fn digits(bytes: &[u8]) -> Option<Date> {
    let field =
        |start: usize, end: usize, missing| if bytes.len() < end { Some(missing) } else { number(&bytes[start..end]) };
    let fraction = match bytes.len() {
        4 | 6 | 8 | 10 | 12 | 14 => &[][..],
        // Not 16 or 19 digits: microseconds and nanoseconds since 1970 have these lengths.
        17 | 18 => &bytes[14..],
        _ => return None,
    };
    let [year, month, day] = [field(0, 4, 0)?, field(4, 6, 1)?, field(6, 8, 1)?];
    let seconds = seconds(year, month, day, field(8, 10, 0)?, field(10, 12, 0)?, field(12, 14, 0)?)?;
    Date::new(seconds, fraction.iter().any(|&digit| digit != b'0'), bytes.len() >= 14)
}

/// `YYYY-MM[-DD[Thh:mm[:ss[.fraction]][offset]]]`.
fn parts(bytes: &[u8]) -> Option<Date> {
    let mut rest = bytes;
    let mut take = |separators: &[u8], width: usize| -> Option<Option<i64>> {
        match rest.first() {
            Some(first) if separators.contains(first) => rest = &rest[1..],
            Some(_) if separators.is_empty() => {}
            _ => return Some(None),
        }
        let value = number(rest.get(..width)?)?;
        rest = &rest[width..];
        Some(Some(value))
    };
    let year = take(b"", 4)??;
    let month = take(b"-", 2)??;
    let day_digits = 2 + usize::from(day_is_of_year(bytes));
    let mut day = take(b"-", day_digits)?.unwrap_or(1);
    if day_digits == 3 {
        let month = u32::try_from(month).ok()?;
        day -= i64::from(NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, 1)?.ordinal0());
    }
    let hour = take(b"Tt ", 2)?.unwrap_or(0);
    let minute = take(b":", 2)?.unwrap_or(0);
    let second = take(b":", 2)?;
    let whole = second.is_some();
    let second = second.unwrap_or(0);
    let mut finer = false;
    if let Some((b'.' | b',', fraction)) = rest.split_first() {
        let end = fraction.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(fraction.len());
        finer = fraction[..end].iter().any(|&digit| digit != b'0');
        rest = &fraction[end..];
    }
    let offset = match rest {
        b"" | b"Z" | b"z" => 0,
        [sign @ (b'+' | b'-'), hours_1, hours_2, minutes @ ..] => {
            let minutes = match minutes {
                [] => 0,
                [b':', minutes @ ..] | minutes if minutes.len() == 2 => number(minutes)?,
                _ => return None,
            };
            let seconds = number(&[*hours_1, *hours_2])? * 3600 + minutes * 60;
            if *sign == b'-' { -seconds } else { seconds }
        }
        _ => return None,
    };
    Date::new(seconds(year, month, day, hour, minute, second)? - offset, finer, whole)
}

/// Whether the day has three digits, and not two.
fn day_is_of_year(bytes: &[u8]) -> bool {
    bytes.get(8..11).is_some_and(|day| day.iter().all(u8::is_ascii_digit))
}

fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |value, digit| digit.is_ascii_digit().then(|| value * 10 + i64::from(digit - b'0')))
}

/// Seconds since 1970 of a date of the Gregorian calendar; `None` if there is no such date.
pub(crate) fn seconds(year: i64, month: i64, day: i64, hour: i64, minute: i64, second: i64) -> Option<i64> {
    let unsigned = |number: i64| u32::try_from(number).ok();
    // Four digits name the years 1 to 9999. A leap second is the second after 59.
    let year = i32::try_from(year).ok().filter(|year| (1..=9999).contains(year))?;
    let date = NaiveDate::from_ymd_opt(year, unsigned(month)?, unsigned(day)?)?;
    let time = date.and_hms_opt(unsigned(hour)?, unsigned(minute)?, unsigned(second.min(59))?)?;
    (second <= 60).then(|| time.and_utc().timestamp() + i64::from(second == 60))
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::{DateTime, Utc};
    use proptest::prelude::*;

    #[test]
    fn texts() {
        let rough = |text| parse(text).map(|date| (date.seconds, date.finer));
        let whole = |text| parse(text).is_some_and(|date| date.whole);
        assert!(whole("2008-04-30T20:48:26Z") && whole("20080430204826") && whole("20080430204826123"));
        assert!(!whole("2014-01") && !whole("20140430") && !whole("2008-04-30T20:48Z"));
        for (text, expected) in [
            ("20080430204826", (1_209_588_506, false)),
            ("2008", (1_199_145_600, false)),
            ("20080430", (1_209_513_600, false)),
            ("200804302048", (1_209_588_480, false)),
            ("2008043020", (1_209_585_600, false)),
            ("20080430204826123", (1_209_588_506, true)),
            ("200804302048260000", (1_209_588_506, false)),
            ("2008-04-30T20:48:26Z", (1_209_588_506, false)),
            ("2008-04-30t20:48:26.000z", (1_209_588_506, false)),
            ("2008-04-30T22:48:26.25+02:00", (1_209_588_506, true)),
            ("2008-04-30 19:48:26-0100", (1_209_588_506, false)),
            (" 2008-04 ", (1_207_008_000, false)),
            ("2008-04-30T20:48Z", (1_209_588_480, false)),
            ("2008-10-294T05:21:46-0700", (1_224_505_306, false)),
            ("2000-02-29T00:00:00Z", (951_782_400, false)),
            ("1969-12-31T23:59:59Z", (-1, false)),
            ("20161231235960", (1_483_228_800, false)),
            ("00010101000000", (*TIMES.start(), false)),
            ("9999-12-31T23:59:59Z", (*TIMES.end(), false)),
        ] {
            assert_eq!(rough(text), Some(expected), "{text}");
        }
        for text in [
            "",
            "-",
            "2008-11-294T05:21:46-0700",
            "2014-02-29T00:00:00Z",
            "2008-13-01",
            "20080431000000",
            "2008-04-30T20:48:26X",
            "200804302048261x",
            "2008-04-30 20 48 26",
            "2008 04 30",
            "20080",
            "1",
            "2008-",
            "+20080430204826",
            "-20080430204826",
            "1996022924",
            "961524179",
            "1209588506",
            "1401010000000",
            "1401010000000000",
            "1401010000000000000",
            "1.4e9",
            "00000101000000",
            "0000",
            "99991231235960",
            "0001-01-01T00:00:00+00:01",
            "9999-12-31T23:59:59-00:01",
            "18446744073709551615",
        ] {
            assert_eq!(rough(text), None, "{text}");
        }
    }

    #[test]
    fn numbers() {
        let date = |number| from_number(number).map(|date| (date.seconds, date.finer));
        assert_eq!(date(1_209_588_506), Some((1_209_588_506, false)));
        assert_eq!(date(1_209_588_506_000), Some((1_209_588_506, false)));
        assert_eq!(date(1_401_010_000_001), Some((1_401_010_000, true)));
        assert_eq!(date(20_080_430_204_826), Some((1_209_588_506, false)));
        for number in [0, -1, -1_209_588_506, -20_080_430_204_826, 20_081_330_204_826, i64::MIN, i64::MIN + 1, i64::MAX]
        {
            assert_eq!(date(number), None, "{number}");
        }
        let date = |number| from_float(number).map(|date| (date.seconds, date.finer));
        assert_eq!(date(1.209_588_506e9), Some((1_209_588_506, false)));
        assert_eq!(date(1_209_588_506.25), Some((1_209_588_506, true)));
        assert_eq!(date(1_209_588_506_000.5), Some((1_209_588_506, true)));
        for number in [0.5, -1.0, 1e300, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e9 - 0.5, f64::MIN_POSITIVE] {
            assert_eq!(date(number), None, "{number}");
        }
    }

    proptest! {
        #[test]
        fn agrees_with_chrono(seconds in TIMES) {
            let date: DateTime<Utc> = DateTime::from_timestamp(seconds, 0).unwrap();
            let expected = Some(Date { seconds, finer: false, whole: true });
            prop_assert_eq!(parse(&date.format("%Y%m%d%H%M%S").to_string()), expected);
            prop_assert_eq!(parse(&date.to_rfc3339()), expected);
        }

        #[test]
        fn numbers_of_every_length(digits in "[1-9][0-9]{0,18}") {
            let date = digits.parse().ok().and_then(from_number);
            match digits.len() {
                10 => prop_assert_eq!(date.map(|date| date.seconds), digits.parse().ok()),
                13 => prop_assert_eq!(date.map(|date| date.seconds), digits[..10].parse().ok()),
                14 => prop_assert_eq!(date, parse(&digits)),
                _ => prop_assert_eq!(date, None),
            }
            prop_assert_eq!(format!("-{digits}").parse().ok().and_then(from_number), None);
        }

        #[test]
        fn whatever_is_read_lies_in_the_years_that_can_be_asked_for(
            text in "[0-9]{1,20}|[0-9]{4}-[0-9]{2}(-[0-9]{2}([T ][0-9]{2}:[0-9]{2}\
                     (:[0-9]{2}([+-][0-9]{2}:?[0-9]{2}|Z)?)?)?)?",
            number: i64,
            units in prop::sample::select(vec![1, 1_000, 1_000_000, 1_000_000_000]),
        ) {
            for date in [parse(&text), from_number(number), from_units(number, units)].into_iter().flatten() {
                prop_assert!(TIMES.contains(&date.seconds));
            }
        }
    }
}
