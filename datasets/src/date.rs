//! Dates as crawl files and tables spell them, read leniently into seconds since 1970, UTC.
//!
//! Texts: 4 to 14 digits (`YYYY[MM[DD[hh[mm[ss]]]]]`, what is missing is the beginning), more than 14 digits (a
//! fraction of a second follows), `2008-04-30T20:48:26.5Z` with `T`, `t` or a space, any offset, and parts missing from the
//! end, epoch seconds of 9 or 10 digits. Ten digits that read as an hour since 1990 are one.
//! Numbers: epoch seconds, or 14 digits.
//!
//! ClueWeb09 writes the day of the year behind the month (`2008-10-294T...`); that is understood where both agree.
//!
//! Parts finer than a second are dropped and said so. A leap second counts as the second after it.

use chrono::{Datelike, NaiveDate};

/// A date as a text has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Date {
    pub(crate) seconds: i64,
    /// It had parts finer than a second, not all zero.
    pub(crate) finer: bool,
    /// It named its second; otherwise missing parts are the beginning.
    pub(crate) whole: bool,
}

/// Reads a date from text; `None` where it is none.
pub(crate) fn parse(text: &str) -> Option<Date> {
    let bytes = text.trim().as_bytes();
    if bytes.iter().all(u8::is_ascii_digit) { digits(bytes) } else { parts(bytes) }
}

/// Reads a date from an integer: epoch seconds, or 14 digits.
pub(crate) fn from_number(number: i64) -> Option<i64> {
    const SECONDS_MAX: i64 = 100_000_000_000;
    if (-SECONDS_MAX..SECONDS_MAX).contains(&number) {
        return Some(number);
    }
    let two = |place: i64| number / place % 100;
    let year = number / 10_000_000_000;
    seconds(year, two(100_000_000), two(1_000_000), two(10_000), two(100), two(1))
}

fn digits(bytes: &[u8]) -> Option<Date> {
    let field =
        |start: usize, end: usize, missing| if bytes.len() < end { Some(missing) } else { number(&bytes[start..end]) };
    let compact = || {
        let [year, month, day] = [field(0, 4, 0)?, field(4, 6, 1)?, field(6, 8, 1)?];
        seconds(year, month, day, field(8, 10, 0)?, field(10, 12, 0)?, field(12, 14, 0)?)
    };
    let exact = |seconds| Date { seconds, finer: false, whole: true };
    let rough = |seconds| Date { seconds, finer: false, whole: false };
    match bytes.len() {
        9 => number(bytes).map(exact),
        10 if bytes < b"1990".as_slice() => number(bytes).map(exact),
        10 => compact().map(rough).or_else(|| number(bytes).map(exact)),
        4 | 6 | 8 | 12 => compact().map(rough),
        14 => compact().map(exact),
        15..=23 => {
            compact().map(|seconds| Date { finer: bytes[14..].iter().any(|&digit| digit != b'0'), ..exact(seconds) })
        }
        _ => None,
    }
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
    Some(Date { seconds: seconds(year, month, day, hour, minute, second)? - offset, finer, whole })
}

/// Whether three digits stand where the two of the day are.
fn day_is_of_year(bytes: &[u8]) -> bool {
    bytes.get(8..11).is_some_and(|day| day.iter().all(u8::is_ascii_digit))
}

fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |value, digit| digit.is_ascii_digit().then(|| value * 10 + i64::from(digit - b'0')))
}

/// Seconds since 1970 of a date of the Gregorian calendar; `None` where there is no such date.
pub(crate) fn seconds(year: i64, month: i64, day: i64, hour: i64, minute: i64, second: i64) -> Option<i64> {
    let part = |number: i64| u32::try_from(number).ok();
    // The years that four digits name; a leap second is the second after 59.
    let year = i32::try_from(year).ok().filter(|year| (1..=9999).contains(year))?;
    let date = NaiveDate::from_ymd_opt(year, part(month)?, part(day)?)?;
    let time = date.and_hms_opt(part(hour)?, part(minute)?, part(second.min(59))?)?;
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
            ("20080430", (1_209_513_600, false)),
            ("200804302048", (1_209_588_480, false)),
            ("2008043020", (1_209_585_600, false)),
            ("1209588506", (1_209_588_506, false)),
            ("20080430204826123", (1_209_588_506, true)),
            ("200804302048260000", (1_209_588_506, false)),
            ("2008-04-30T20:48:26Z", (1_209_588_506, false)),
            ("2008-04-30t20:48:26.000z", (1_209_588_506, false)),
            ("2008-04-30T22:48:26.25+02:00", (1_209_588_506, true)),
            ("2008-04-30 19:48:26-0100", (1_209_588_506, false)),
            (" 2008-04 ", (1_207_008_000, false)),
            ("2008-10-294T05:21:46-0700", (1_224_505_306, false)),
            ("2000-02-29T00:00:00Z", (951_782_400, false)),
            ("1969-12-31T23:59:59Z", (-1, false)),
            ("20161231235960", (1_483_228_800, false)),
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
            "20080",
            "1",
            "2008-",
        ] {
            assert_eq!(rough(text), None, "{text}");
        }
    }

    #[test]
    fn numbers() {
        assert_eq!(from_number(1_209_588_506), Some(1_209_588_506));
        assert_eq!(from_number(20_080_430_204_826), Some(1_209_588_506));
        assert_eq!(from_number(-1), Some(-1));
        assert_eq!(from_number(1_209_588_506_000), None);
        assert_eq!(from_number(i64::MIN + 1), None);
    }

    proptest! {
        #[test]
        fn agrees_with_chrono(seconds in -62_135_596_800i64..253_402_300_800) {
            let date: DateTime<Utc> = DateTime::from_timestamp(seconds, 0).unwrap();
            let expected = Some(Date { seconds, finer: false, whole: true });
            prop_assert_eq!(parse(&date.format("%Y%m%d%H%M%S").to_string()), expected);
            prop_assert_eq!(parse(&date.to_rfc3339()), expected);
        }
    }
}
