//! Times and ages as people write them: one parser for the command line, lines of `query`, HTTP, and all later
//! interfaces.
//!
//! [`TIME_FORMS`] lists the forms; the book has the same list. A form names a second or a whole span (a year, a month,
//! a day). A question takes the first or the last second of a span. A time without an offset is in UTC. Words are
//! English, in upper or lower case.

use std::time::{SystemTime, UNIX_EPOCH};

use chrono::{Datelike, NaiveDate};

use super::{DAY, TIMES};

/// The forms of a time: examples, and their meaning.
pub const TIME_FORMS: [(&[&str], &str); 9] = [
    (&["2008"], "a year"),
    (&["2008-06", "2008/06", "200806", "June 2008", "Jun 2008"], "a month"),
    (&["2008-06-01", "2008/06/01", "20080601", "1 June 2008", "June 1, 2008"], "a day"),
    (&["2008-06-01T12", "2008060112"], "an hour"),
    (&["2008-06-01T12:30", "2008-06-01 12:30", "200806011230"], "a minute"),
    (&["2008-06-01T12:30:05", "2008-06-01T12:30:05.9", "20080601123005"], "a second; a fraction is dropped"),
    (&["2008-06-01T12:30Z", "2008-06-01T12:30+02:00", "2008-06-01T12:30+0200"], "the same with its offset from UTC"),
    (&["today", "yesterday"], "the day, in UTC"),
    (&["now", "-30d", "30d ago", "1y ago", "2 weeks ago"], "a second, back from now by s, h, d, w or y (365 days)"),
];

/// The months: the first three letters of each name, and the rest of the name.
const MONTHS: [(&str, &str); 12] = [
    ("jan", "uary"),
    ("feb", "ruary"),
    ("mar", "ch"),
    ("apr", "il"),
    ("may", ""),
    ("jun", "e"),
    ("jul", "y"),
    ("aug", "ust"),
    ("sep", "tember"),
    ("oct", "ober"),
    ("nov", "ember"),
    ("dec", "ember"),
];

/// Units of an age: letter, word, seconds.
const UNITS: [(&str, &str, i64); 5] =
    [("s", "second", 1), ("h", "hour", DAY / 24), ("d", "day", DAY), ("w", "week", 7 * DAY), ("y", "year", 365 * DAY)];

/// The error for a text that is not a time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    /// The text has an unknown form.
    #[error(
        "not a time: {text:?} (expected as 2008, 2008-06, 2008-06-01, 2008-06-01T12:00:00, 20080601120000, June 2008, \
         now, yesterday or 30d ago)"
    )]
    Form {
        /// The text.
        text: String,
    },
    /// The text has the form of a time, but a part of it does not exist.
    #[error("no such {part}: {text:?}")]
    NoSuch {
        /// The part: a year (1 to 9999 exist), a month, a day, an hour, a minute, a second.
        part: &'static str,
        /// The text.
        text: String,
    },
}

/// A time as it is written.
#[derive(Debug, PartialEq, Eq)]
enum Written {
    /// 4 to 14 digits, an even number of them, and their offset from UTC in seconds.
    Digits(String, i64),
    /// This many seconds before now.
    Ago(i64),
    /// The current day, or this many days before it.
    Day(i64),
}

/// Parses a time in one of the [`TIME_FORMS`].
///
/// If the text names a span (a year, month, day, hour or minute), returns its last second with `end`, else its first.
///
/// # Errors
/// The text has another form, or a day, an hour or another part does not exist.
///
/// ```
/// use webstrata_layers::{format_time, parse_time};
///
/// assert_eq!(format_time(parse_time("2008-02", false)?), "2008-02-01T00:00:00Z");
/// assert_eq!(format_time(parse_time("2008-02", true)?), "2008-02-29T23:59:59Z");
/// assert!(parse_time("2008-02-30", false).is_err());
/// # Ok::<(), webstrata_layers::TimeError>(())
/// ```
pub fn parse_time(text: &str, end: bool) -> Result<i64, TimeError> {
    let no_such = |part| TimeError::NoSuch { part, text: text.to_owned() };
    let time = match written(text).ok_or_else(|| TimeError::Form { text: text.to_owned() })? {
        Written::Digits(digits, offset) => second_of(&digits, end).map_err(no_such)? - offset,
        Written::Ago(seconds) => now() - seconds,
        Written::Day(before) => {
            let start = (now().div_euclid(DAY) - before) * DAY;
            if end { start + DAY - 1 } else { start }
        }
    };
    if TIMES.contains(&time) { Ok(time) } else { Err(no_such("year")) }
}

/// Whether the time of a text depends on the current time; `false` for a text that is not a time.
pub fn counts_from_now(text: &str) -> bool {
    matches!(written(text), Some(Written::Ago(_) | Written::Day(_)))
}

/// Parses a length of time and returns it in seconds: a whole number and a unit, `30s`, `12h`, `30d`, `4w` or `2y`. A
/// year has 365 days.
pub fn parse_age(text: &str) -> Option<i64> {
    let (digits, letter) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let (.., seconds) = UNITS.iter().find(|unit| unit.0 == letter)?;
    digits.parse::<u32>().ok().filter(|_| !digits.starts_with('+')).map(|count| i64::from(count) * seconds)
}

fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    i64::try_from(now).unwrap_or(*TIMES.end())
}

fn written(text: &str) -> Option<Written> {
    let text = &text.to_ascii_lowercase();
    match &**text {
        "now" => return Some(Written::Ago(0)),
        "today" => return Some(Written::Day(0)),
        "yesterday" => return Some(Written::Day(1)),
        _ => {}
    }
    let (digits, offset) = match ago(text) {
        Some(seconds) => return Some(Written::Ago(seconds)),
        None => digits_of(text).or_else(|| Some((with_month(text)?, 0)))?,
    };
    Some(Written::Digits(digits, offset))
}

/// The seconds of `-30d`, `30d ago` and `30 days ago`.
fn ago(text: &str) -> Option<i64> {
    let length = text.strip_prefix('-').or_else(|| text.strip_suffix(" ago"))?;
    let Some((count, unit)) = length.split_once(' ') else { return parse_age(length) };
    let (letter, ..) = UNITS.iter().find(|(_, word, _)| unit.strip_suffix('s').unwrap_or(unit) == *word)?;
    parse_age(&format!("{count}{letter}"))
}

/// The digits of `june 2008`, `1 june 2008` and `june 1, 2008`.
fn with_month(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split(' ').collect();
    let (day, month, year) = match words[..] {
        [month, year] => (None, month, year),
        [month, day, year] if day.ends_with(',') => (day.strip_suffix(','), month, year),
        [day, month, year] => (Some(day), month, year),
        _ => return None,
    };
    let is_named = |(short, rest): &(&str, &str)| {
        month.strip_prefix(short).is_some_and(|after| after.is_empty() || after == *rest)
    };
    let month = 1 + MONTHS.iter().position(is_named)?;
    let is_number = |text: &str, lengths: std::ops::RangeInclusive<usize>| {
        lengths.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_whole = is_number(year, 4..=4) && day.is_none_or(|day| is_number(day, 1..=2));
    is_whole.then(|| format!("{year}{month:02}{}", day.map_or(String::new(), |day| format!("{day:0>2}"))))
}

/// The first or last second that digits name; the error is the part that does not exist.
fn second_of(digits: &str, end: bool) -> Result<i64, &'static str> {
    // Digits come in pairs, and each pair is a number.
    let pair = |at: usize, first: u32, last: u32| {
        let number = digits.get(at..at + 2).and_then(|pair| pair.parse::<u32>().ok());
        number.unwrap_or(if end { last } else { first })
    };
    let year = digits.get(..4).and_then(|year| year.parse::<i32>().ok()).ok_or("year")?;
    let month = pair(4, 1, 12);
    let days = NaiveDate::from_ymd_opt(year, month, 1).ok_or("month")?.num_days_in_month();
    let date = NaiveDate::from_ymd_opt(year, month, pair(6, 1, days.into())).ok_or("day")?;
    let [hour, minute, second] = [pair(8, 0, 23), pair(10, 0, 59), pair(12, 0, 59)];
    let wrong = [(hour > 23, "hour"), (minute > 59, "minute"), (second > 59, "second")];
    if let Some((_, part)) = wrong.into_iter().find(|(is_wrong, _)| *is_wrong) {
        return Err(part);
    }
    Ok(i64::from(date.to_epoch_days()) * DAY + i64::from(hour * 3600 + minute * 60 + second))
}

/// The 4 to 14 digits of a time, an even number of them, and the offset from UTC in seconds.
fn digits_of(text: &str) -> Option<(String, i64)> {
    let is_even = |digits: &str| (4..=14).contains(&digits.len()) && digits.len().is_multiple_of(2);
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return is_even(text).then(|| (text.to_owned(), 0));
    }
    let (date, time) = match text.find(['t', ' ']) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, ""),
    };
    let between = if date.contains('/') { '/' } else { '-' };
    let mut digits = numbers(date, between, &[4, 2, 2])?;
    if date.len() == text.len() {
        return Some((digits, 0));
    }
    let zone = time.find(['z', '+', '-']).unwrap_or(time.len());
    let (time, zone) = time.split_at(zone);
    let offset = offset_of(zone)?;
    let (time, fraction) = time.split_once('.').map_or((time, None), |(time, fraction)| (time, Some(fraction)));
    let time = numbers(time, ':', &[2, 2, 2])?;
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if digits.len() < 8 || fraction.is_some_and(|fraction| time.len() < 6 || !is_number(fraction)) {
        return None;
    }
    digits.push_str(&time);
    Some((digits, offset))
}

/// The seconds of an offset from UTC: empty, `z`, `+02:00`, `+0200`, `+02`.
fn offset_of(zone: &str) -> Option<i64> {
    if matches!(zone, "" | "z") {
        return Some(0);
    }
    let (sign, zone) = zone.split_at(1);
    let digits = numbers(zone, ':', &[2, 2]).or_else(|| numbers(zone, ':', &[4]))?;
    let part = |at: usize, most: i64| match digits.get(at..at + 2) {
        Some(part) => part.parse::<i64>().ok().filter(|&part| part <= most),
        None => Some(0),
    };
    let seconds = part(0, 23)? * 3600 + part(2, 59)? * 60;
    match sign {
        "+" => Some(seconds),
        "-" => Some(-seconds),
        _ => None,
    }
}

/// The digits of one or more numbers with `between` between them. The numbers must have the first of the given widths.
fn numbers(text: &str, between: char, widths: &[usize]) -> Option<String> {
    let mut digits = String::new();
    let parts: Vec<&str> = text.split(between).collect();
    if parts.len() > widths.len() {
        return None;
    }
    for (part, &width) in parts.iter().zip(widths) {
        if part.len() != width || !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        digits.push_str(part);
    }
    Some(digits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::time::{AsOf, format_digits};
    use proptest::prelude::*;

    #[test]
    fn digits_name_whole_spans() {
        let cases = [
            ("2006", "20060101000000", "20061231235959"),
            ("200602", "20060201000000", "20060228235959"),
            ("200402", "20040201000000", "20040229235959"),
            ("200612", "20061201000000", "20061231235959"),
            ("20060501", "20060501000000", "20060501235959"),
            ("2004-02", "20040201000000", "20040229235959"),
            ("2006-05-01", "20060501000000", "20060501235959"),
            ("2006050112", "20060501120000", "20060501125959"),
            ("200605011234", "20060501123400", "20060501123459"),
            ("20060501123456", "20060501123456", "20060501123456"),
            ("2006-05-01T14:34:56.9+02:00", "20060501123456", "20060501123456"),
            ("2006-05-01T12:34:56", "20060501123456", "20060501123456"),
            ("2006-05-01 12:34:56", "20060501123456", "20060501123456"),
            ("2006-05-01T12:34", "20060501123400", "20060501123459"),
            ("2006-05-01T12", "20060501120000", "20060501125959"),
            ("2006-05-01t12:34:56.123456789z", "20060501123456", "20060501123456"),
            ("2006-05-01 12:34-00:30", "20060501130400", "20060501130459"),
            ("2006/05", "20060501000000", "20060531235959"),
            ("2006/05/01", "20060501000000", "20060501235959"),
            ("2006/05/01 12:34", "20060501123400", "20060501123459"),
            ("2006-05-01T14:34+0200", "20060501123400", "20060501123459"),
            ("2006-05-01T14:34:56-02", "20060501163456", "20060501163456"),
            ("May 2006", "20060501000000", "20060531235959"),
            ("february 2004", "20040201000000", "20040229235959"),
            ("SEP 2006", "20060901000000", "20060930235959"),
            ("1 May 2006", "20060501000000", "20060501235959"),
            ("May 31, 2006", "20060531000000", "20060531235959"),
        ];
        for (text, first, last) in cases {
            assert_eq!(parse_time(text, false).map(format_digits).as_deref(), Ok(first), "{text}");
            assert_eq!(parse_time(text, true).map(format_digits).as_deref(), Ok(last), "{text}");
        }
        assert_eq!(parse_time("19700101000000", false), Ok(0));
        assert!((1_700_000_000..4_000_000_000).contains(&parse_time("now", true).unwrap()));
    }

    #[test]
    fn times_that_do_not_exist_are_refused() {
        for text in [
            "",
            "2",
            "200",
            "20065",
            "200600",
            "200613",
            "20060229",
            "20060431",
            "2006050124",
            "200605011260",
            "20060501125960",
            "2006050112595900",
            "2006-5",
            "2006-13",
            "2006-05-",
            "2006-0501",
            "20-06-05-01",
            "2006-02-29",
            "mai 2006",
            "may 06",
            "may  2006",
            "may 1 2006",
            "001 may 2006",
            "sept 2006",
            "2006/05-01",
            "2006/5/1",
            "05/01/2006",
            "2006 may",
            "tomorrow",
            "-1",
            "--1d",
            "- 1d",
            "1d",
            "1 d ago",
            "1 month ago",
            "ago",
            "+1d",
            "+2006",
            "-2006",
            "0000",
            "00001231235959",
            "0001-01-01T00:00:00+00:01",
            "9999-12-31T23:59:59-00:01",
            "1209588506000",
            "２００６",
            "2006-05-01T",
            "2006-05T12:00:00",
            "2006T12",
            "2006-05-01T12:00.5",
            "2006-05-01T12:00:00.",
            "2006-05-01T12:00:00+2",
            "2006-05-01T12:00:00+02:60",
            "2006-05-01T1200",
            "2006-05-01  12:00",
            "now ",
        ] {
            assert!(parse_time(text, false).is_err() && parse_time(text, true).is_err(), "{text}");
        }
        for (text, part) in [
            ("0000", "year"),
            ("200613", "month"),
            ("19980229", "day"),
            ("2006-04-31", "day"),
            ("31 June 2006", "day"),
            ("2006-05-01T24:00", "hour"),
            ("200605011260", "minute"),
            ("2006-05-01T12:59:60Z", "second"),
        ] {
            assert_eq!(parse_time(text, true).unwrap_err().to_string(), format!("no such {part}: {text:?}"));
        }
    }

    #[test]
    fn ages_have_a_unit() {
        for (text, seconds) in
            [("12h", Some(43_200)), ("1d", Some(86_400)), ("4w", Some(2_419_200)), ("0y", Some(0)), ("7s", Some(7))]
        {
            assert_eq!(parse_age(text), seconds, "{text}");
        }
        assert_eq!(AsOf::new(100).within(parse_age("2y")).since, 100 - 2 * 365 * 86_400);
        for text in ["", "d", "30", "+1d", "-1d", "1.5d", "5m", "99999999999d", "1 d", "1é"] {
            assert_eq!(parse_age(text), None, "{text}");
        }
    }

    #[test]
    fn every_form_that_is_listed_is_read() {
        for (form, _) in TIME_FORMS.iter().flat_map(|(forms, meaning)| forms.iter().map(move |form| (form, meaning))) {
            let times = [false, true].map(|end| parse_time(form, end).unwrap_or_else(|error| panic!("{error}")));
            assert!(times[0] <= times[1], "{form}");
            assert_eq!(counts_from_now(form), !form.contains("2008"), "{form}");
        }
    }

    #[test]
    fn times_are_counted_back_from_now() {
        let (day, hour) = (DAY, DAY / 24);
        let near = |text: &str, before: i64| {
            let (first, last) = (now() - before, parse_time(text, true).unwrap());
            assert!((first..=now() - before).contains(&last) && parse_time(text, false).is_ok(), "{text}");
        };
        for (text, before) in [
            ("now", 0),
            ("Now", 0),
            ("-7s", 7),
            ("-1y", 365 * day),
            ("1y ago", 365 * day),
            ("1 year ago", 365 * day),
            ("2 Weeks Ago", 14 * day),
            ("1000 days ago", 1000 * day),
            ("12h ago", 12 * hour),
        ] {
            near(text, before);
            assert!(counts_from_now(text), "{text}");
        }
        let [first, last] = [false, true].map(|end| parse_time("today", end).unwrap());
        assert!(first % day == 0 && last == first + day - 1 && (first..=last + 1).contains(&now()));
        assert_eq!(parse_time("Yesterday", true), Ok(parse_time("today", false).unwrap() - 1));
        assert_eq!(
            parse_time("-4000000000y", true),
            Err(TimeError::NoSuch { part: "year", text: "-4000000000y".into() })
        );
        assert!(!counts_from_now("2008") && !counts_from_now("soon"));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[0-9a-zA-Z ,/:.+-]{0,24}|\\PC{0,12}") {
            let _ = (parse_time(&text, false), parse_time(&text, true), counts_from_now(&text), parse_age(&text));
        }
    }
}
