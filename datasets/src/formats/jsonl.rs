//! Captures as JSON lines: `{"url": "...", "ts": "20080430204826", "links": ["...", ...], "digest": "sha1:..."}`.
//!
//! `ts` is text (14 digits, or any form of [`crate::capture::date`]) or a number of 14 digits, 10 digits (seconds since
//! 1970) or 13 digits (milliseconds). `digest` is optional, and so is `status`: a number, or text as CDX indexes have
//! it (`"404"`, or `"-"` for none). The reader ignores other fields. Links may be relative to
//! `url`. Any other line is damage: the reader counts the line with its offset in the uncompressed text, and continues
//! with the next line.
//!
//! The parser writes fields directly into the capture, and reads a line that is too long to hold as a stream. Memory: a
//! line of [`crate::files::lines::LINE_BYTES_MAX`], and the links if the capture sets no bound.

use crate::capture::date::{self, Date};
use crate::capture::digest::digest_of;
use crate::files::lines::Lines;
use crate::files::long_line::LongLine;
use crate::{Capture, CaptureReader, Error, Finding, Tally, Texts};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::io::{BufRead, BufReader};
use std::path::Path;

pub(crate) fn open(text: Box<dyn BufRead + Send>, path: &Path) -> Box<dyn CaptureReader> {
    Box::new(JsonLines(Lines::new(text, path)))
}

struct JsonLines(Lines);

/// A status as a line has it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Code {
    Number(i64),
    Text(String),
}

impl Code {
    /// The status, or what is wrong.
    fn status(&self) -> Result<u16, String> {
        let (code, text) = match self {
            Code::Number(code) => (u16::try_from(*code).ok(), code.to_string()),
            Code::Text(text) => (text.parse().ok(), format!("{text:?}")),
        };
        let in_range = code.filter(|code| (200..=999).contains(code));
        in_range.ok_or_else(|| format!("{text} is no status (expected 200 to 999)"))
    }
}

impl CaptureReader for JsonLines {
    fn read(&mut self, capture: &mut Capture, tally: &mut Tally) -> Result<bool, Error> {
        while self.0.read_or_begin(tally)? {
            let line = self.0.line();
            if line.trim_ascii().is_empty() && !self.0.is_begun() {
                continue;
            }
            capture.clear();
            let parsed = if self.0.is_begun() {
                self.0.rest(tally, |line| parse_stream(line, capture))?
            } else {
                parse(line, capture)
            };
            match parsed {
                Ok(Ok(date)) => {
                    capture.time = date.counted(tally);
                    return Ok(true);
                }
                Ok(Err(ts)) => tally.damage(Finding::BadDate, &self.0.path, self.0.start, format!("ts: {ts}")),
                Err(detail) => tally.damage(Finding::BadJson, &self.0.path, self.0.start, detail),
            }
        }
        capture.clear();
        Ok(false)
    }
}

/// The date, or the beginning of what stands in its place.
type Dated = Result<Date, String>;

/// Fills all of `capture` but its time.
fn parse(line: &[u8], capture: &mut Capture) -> Result<Dated, String> {
    let line = std::str::from_utf8(line).map_err(|error| error.to_string())?;
    let mut json = serde_json::Deserializer::from_str(line);
    let date = Fields(capture).deserialize(&mut json).map_err(|error| error.to_string())?;
    json.end().map_err(|error| error.to_string())?;
    Ok(date)
}

/// The same of a line that is too long to hold.
fn parse_stream(line: &mut LongLine<'_>, capture: &mut Capture) -> Result<Dated, String> {
    let mut json = serde_json::Deserializer::from_reader(BufReader::with_capacity(READ_BYTES, line));
    let date = Fields(capture).deserialize(&mut json).map_err(|error| error.to_string())?;
    json.end().map_err(|error| error.to_string())?;
    Ok(date)
}

/// Bytes that are read at once of a line that is too long to hold.
const READ_BYTES: usize = 64 << 10;

enum Field {
    Url,
    Time,
    Links,
    Digest,
    Status,
    Other,
}

/// Implements a serde seed that is its own visitor.
macro_rules! seed {
    ($name:ident $(<$life:lifetime>)?, $value:ty, $method:ident) => {
        impl<'de> DeserializeSeed<'de> for $name $(<$life>)? {
            type Value = $value;
            fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<$value, D::Error> {
                deserializer.$method(self)
            }
        }
    };
}

struct Fields<'a>(&'a mut Capture);
seed!(Fields<'_>, Dated, deserialize_map);

impl<'de> Visitor<'de> for Fields<'_> {
    type Value = Dated;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("an object with url, ts and links")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut url, mut date, mut links) = (false, None, false);
        let capture = self.0;
        while let Some(field) = map.next_key_seed(FieldName)? {
            match field {
                Field::Url => {
                    capture.url.clear();
                    map.next_value_seed(Text(&mut |text| capture.url.push_str(text)))?;
                    url = true;
                }
                Field::Time => date = Some(map.next_value_seed(Time)?),
                Field::Links => {
                    capture.links.clear();
                    map.next_value_seed(Links(&mut capture.links))?;
                    links = true;
                }
                Field::Digest => {
                    capture.digest = map.next_value::<Option<Cow<'de, str>>>()?.as_deref().and_then(digest_of)
                }
                Field::Status => {
                    capture.status = match map.next_value::<Option<Code>>()? {
                        None => None,
                        Some(Code::Text(text)) if text == "-" => None,
                        Some(code) => Some(code.status().map_err(A::Error::custom)?),
                    };
                }
                Field::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        if !url {
            return Err(A::Error::missing_field("url"));
        }
        if !links {
            return Err(A::Error::missing_field("links"));
        }
        date.ok_or_else(|| A::Error::missing_field("ts"))
    }
}

struct FieldName;
seed!(FieldName, Field, deserialize_identifier);

impl Visitor<'_> for FieldName {
    type Value = Field;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a field name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Field, E> {
        Ok(match name {
            "url" => Field::Url,
            "ts" => Field::Time,
            "links" => Field::Links,
            "digest" => Field::Digest,
            "status" => Field::Status,
            _ => Field::Other,
        })
    }
}

struct Text<'a>(&'a mut dyn FnMut(&str));
seed!(Text<'_>, (), deserialize_any);

impl Visitor<'_> for Text<'_> {
    type Value = ();

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a string")
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        (self.0)(text);
        Ok(())
    }
}

struct Links<'a>(&'a mut Texts);
seed!(Links<'_>, (), deserialize_seq);

impl<'de> Visitor<'de> for Links<'_> {
    type Value = ();

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("an array of strings")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut texts: A) -> Result<(), A::Error> {
        while texts.next_element_seed(Text(&mut |text| self.0.push(text)))?.is_some() {}
        Ok(())
    }
}

struct Time;
seed!(Time, Dated, deserialize_any);

/// The most of a text that a message shows.
const SHOWN_CHARS: usize = 40;

impl Visitor<'_> for Time {
    type Value = Dated;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a date as text or number")
    }

    fn visit_str<E>(self, text: &str) -> Result<Dated, E> {
        Ok(date::parse(text).ok_or_else(|| text.chars().take(SHOWN_CHARS).collect()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Dated, E> {
        Ok(date::from_number(number).ok_or_else(|| number.to_string()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Dated, E> {
        Ok(i64::try_from(number).ok().and_then(date::from_number).ok_or_else(|| number.to_string()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Dated, E> {
        Ok(date::from_float(number).ok_or_else(|| number.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn read_all(text: &'static str) -> (Vec<Capture>, Tally) {
        let mut reader = open(Box::new(Cursor::new(text)), Path::new("x.jsonl"));
        let (mut captures, mut capture, mut tally) = (Vec::new(), Capture::default(), Tally::default());
        while reader.read(&mut capture, &mut tally).unwrap() {
            captures.push(capture.clone());
        }
        (captures, tally)
    }

    #[test]
    fn captures_of_every_spelling() {
        let (captures, tally) = read_all(concat!(
            concat!(
                r#"{"url":"http://a/","ts":"20080430204826","links":["x","","é\u00e9\n"],"#,
                r#""digest":"sha1:B2LTWWPUOYAH7UIPQ7ZUPQ4VMBSVC36A"}"#,
            ),
            "\n\n",
            r#" {"other":{"url":[1,null]},"links":[],"ts":1209588506,"url":"http:\/\/b/"} "#,
            "\r\n",
            r#"{"url":"u","ts":20080430204826,"links":["x"]}"#,
            "\n",
            r#"{"url":"u","ts":"2008-04-30T20:48:26.5Z","links":[]}"#,
            "\n",
            r#"{"url":"u","ts":1209588506.25,"links":[],"digest":null}"#,
        ));
        assert!(captures.iter().all(|capture| capture.time == 1_209_588_506));
        let links: Vec<Vec<&str>> = captures.iter().map(|capture| capture.links.iter().collect()).collect();
        assert_eq!(links, [vec!["x", "", "éé\n"], vec![], vec!["x"], vec![], vec![]]);
        let urls: Vec<&str> = captures.iter().map(|capture| capture.url.as_str()).collect();
        assert_eq!(urls, ["http://a/", "http://b/", "u", "u", "u"]);
        assert!(captures[0].digest.is_some() && captures[1].digest.is_none());
        assert_eq!((tally.of(Finding::FinerDate), tally.damaged()), (2, 0));
    }

    #[test]
    fn a_status_is_a_number_or_its_text() {
        let line = |status: &str| format!("{{\"url\":\"u\",\"ts\":1209588506,\"links\":[],\"status\":{status}}}\n");
        for (text, status) in
            [("404", Some(404)), ("\"404\"", Some(404)), ("200", Some(200)), ("null", None), ("\"-\"", None)]
        {
            let (captures, tally) = read_all(line(text).leak());
            assert_eq!((captures[0].status, tally.damaged()), (status, 0), "{text}");
        }
        for text in ["99", "1000", "-1", "\"\"", "\"40x\"", "200.5", "[404]", "{}", "true", "99999999999999999999"] {
            let (captures, tally) = read_all(line(text).leak());
            assert_eq!((captures.len(), tally.of(Finding::BadJson)), (0, 1), "{text}");
        }
    }

    #[test]
    fn lines_too_long_to_hold_are_read_like_others() {
        let links: Vec<String> = (0..1_000_000).map(|number| format!("\"http://b.example/{number}\"")).collect();
        let good = r#"{"url":"u","ts":1209588506,"links":["x"]}"#;
        let long = format!(r#"{{"links":[{}],"url":"http://a/","ts":1209588506}}"#, links.join(","));
        assert!(long.len() > crate::files::lines::LINE_BYTES_MAX);
        let cut = &long[..long.len() - 9];
        let text = format!("{good}\n{long}\r\n{good}\n{cut}\n{long}").leak();
        let (captures, tally) = read_all(text);
        let counts: Vec<usize> = captures.iter().map(|capture| capture.links.len()).collect();
        assert_eq!(counts, [1, 1_000_000, 1, 1_000_000]);
        assert_eq!(captures[1].url, "http://a/");
        assert_eq!((tally.of(Finding::BadJson), tally.damaged()), (1, 1));
        assert_eq!(tally.examples()[0].offset, (2 * good.len() + long.len() + 4) as u64);
    }

    #[test]
    fn bad_lines_are_counted_where_they_stand() {
        let good = r#"{"url":"u","ts":1209588506,"links":["x"]}"#;
        let bad = [
            "no json",
            r#"{"url":"u","ts":1209588506,"links":["x""#,
            r#"{"url":"u","ts":1209588506}"#,
            r#"{"url":"u","links":[]}"#,
            r#"{"ts":1209588506,"links":[]}"#,
            r#"{"url":"u","ts":1209588506,"links":[null]}"#,
            r#"{"url":7,"ts":1209588506,"links":[]}"#,
            r#"{"url":"u","ts":1209588506,"links":[]} x"#,
            r#"["u"]"#,
        ];
        let (mut text, mut offsets) = (format!("{good}\n"), Vec::new());
        for line in bad {
            offsets.push(text.len() as u64);
            text += &format!("{line}\n{good}\n");
        }
        text += "{\"url\":\"u\",\"ts\":\"soon\",\"links\":[]}\n";
        let (captures, tally) = read_all(text.leak());
        assert_eq!(captures.len(), bad.len() + 1);
        assert!(captures.iter().all(|capture| capture.links.len() == 1));
        let found: Vec<u64> =
            tally.examples().iter().filter(|e| e.finding == Finding::BadJson).map(|e| e.offset).collect();
        assert_eq!(found, offsets);
        assert_eq!((tally.of(Finding::BadDate), tally.damaged()), (1, 10));
    }

    #[test]
    fn numbers_that_are_no_dates_are_damage_and_named() {
        let line = |ts: &str| format!("{{\"url\":\"u\",\"ts\":{ts},\"links\":[]}}\n");
        let numbers = [
            "0",
            "-0",
            "7",
            "-1",
            "961524179",
            "-1209588506",
            "12095885060",
            "201401010000",
            "140101000000000",
            "1401010000000000",
            "18446744073709551615",
            "-9223372036854775808",
            "1e300",
            "0.5",
            "-1.5e9",
        ];
        let texts =
            ["\"1401010000\"", "\"1401010000000\"", "\"1996022924\"", "\" \"", "\"-20140101000000\"", "\"0000\""];
        let all = [&numbers[..], &texts[..]].concat();
        let text: String = all.iter().map(|ts| line(ts)).collect();
        let (captures, tally) = read_all(text.leak());
        assert_eq!(captures, []);
        assert_eq!((tally.of(Finding::BadDate), tally.damaged()), (all.len() as u64, all.len() as u64));
        assert!(tally.examples().iter().any(|example| example.detail == "ts: 961524179"), "{:?}", tally.examples());
        let good =
            ["1401010000", "1401010000000", "1.40101e9", "1401010000000.0", "20140525092640", "\"20140525092640\""];
        let (captures, tally) = read_all(good.map(line).concat().leak());
        let times: Vec<i64> = captures.iter().map(|capture| capture.time).collect();
        assert_eq!((times, tally), (vec![1_401_010_000; good.len()], Tally::default()));
    }
}
