//! Captures as JSON lines: `{"url": "...", "ts": "20080430204826", "links": ["...", ...], "digest": "sha1:..."}`.
//!
//! | field | value |
//! |---|---|
//! | `url` | the page |
//! | `ts` | the time of the capture, see below |
//! | `links` | an array of URLs, absolute or relative to `url`; if absent or null, the line says nothing about links |
//! | `status` | a number, or text as CDX indexes have it (`"404"`, or `"-"` for none) |
//! | `digest` | the digest of the payload |
//! | `revisit` | an object with `profile`, `refers_to_target_uri` and `refers_to_date` of a WARC record, all optional |
//! | `cut` | why the body was not read whole: the name of a [`Cut`], or true for `truncated` |
//! | `method` | the method of the request, if it was not GET: then the line is no capture |
//! | `redirect` | the target of a redirect; without it, the only link of a capture with a status of 3xx |
//!
//! A time is text (14 digits, or any form of [`crate::capture::date`]) or a number of 14 digits, 10 digits (seconds
//! since 1970) or 13 digits (milliseconds).
//!
//! All fields except `url` and `ts` are optional, and may be null. The reader ignores unknown fields.
//! [`crate::capture::meaning`] decides what the fields mean. Any other line is damage: the reader counts the line with
//! its offset in the uncompressed text, and continues with the next line. A link that is null, and a text that
//! [`crate::files::json_text`] changes, count as damage too, but the line is read.
//!
//! The parser writes fields directly into the capture, and reads a line that is too long to hold as a stream. Memory: a
//! line of [`crate::files::lines::LINE_BYTES_MAX`], and the links if the capture sets no bound.

use crate::capture::date::{self, Date};
use crate::capture::digest::digest_of;
use crate::capture::meaning::{ReferredTo, Seen};
use crate::capture::method::Other;
use crate::files::head::{Head, fields};
use crate::files::json_text::{JsonStream, LONE_SURROGATES, json_text};
use crate::files::lines::Lines;
use crate::files::long_line::LongLine;
use crate::formats::record;
use crate::{Capture, CaptureReader, Cut, Error, Finding, Tally, Texts};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::io::BufRead;
use std::path::Path;

pub(crate) fn open(text: Box<dyn BufRead + Send>, path: &Path, redirects: bool) -> Box<dyn CaptureReader> {
    Box::new(JsonLines { lines: Lines::new(text, path), redirects })
}

/// Whether a text begins with such lines: at least half of the first lines are objects, and one line has two of the
/// fields `url`, `ts` and `links`. A line that is broken, or longer than the text at hand, needs only one of the
/// fields.
pub(crate) fn is_own(head: &Head<'_>) -> bool {
    let (mut lines, mut objects, mut is_own) = (0, 0, false);
    for (line, is_cut) in head.lines().take(LINES_MAX) {
        let fields = fields(line);
        let has = |name: &[u8]| fields.contains(&name);
        let known = [b"url", &b"ts"[..], b"links"].into_iter().filter(|name| has(name)).count();
        lines += 1;
        objects += usize::from(line.trim_ascii_start().starts_with(b"{"));
        let is_whole = || !is_cut && serde_json::from_slice::<IgnoredAny>(line).is_ok();
        is_own |= known >= 2 || known == 1 && !is_whole();
    }
    is_own && 2 * objects >= lines
}

/// The number of lines that [`is_own`] reads.
const LINES_MAX: usize = 40;

struct JsonLines {
    lines: Lines,
    /// Whether redirects are links.
    redirects: bool,
}

/// A status in JSON: a number or a text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Code {
    Number(i64),
    Text(String),
}

impl Code {
    /// The status, or an error message.
    fn status(&self) -> Result<i64, String> {
        match self {
            Code::Number(code) => Ok(*code),
            Code::Text(text) => text.parse().map_err(|_| format!("{text:?} is no status")),
        }
    }
}

/// The fields of a line that are not in the capture.
#[derive(Default)]
struct Said {
    /// The date, or the beginning of a text that is not a date.
    date: Option<Result<Date, String>>,
    status: Option<i64>,
    has_links: bool,
    revisit: Option<ReferredTo>,
    redirect: Option<String>,
    cut: Option<Cut>,
    null_links: u64,
    /// Whether halves of surrogate pairs were replaced.
    is_changed: bool,
    method: Option<Other>,
}

impl CaptureReader for JsonLines {
    fn read(&mut self, capture: &mut Capture, tally: &mut Tally) -> Result<bool, Error> {
        while self.lines.read_or_begin(tally)? {
            let line = self.lines.line();
            if line.trim_ascii().is_empty() && !self.lines.is_begun() {
                continue;
            }
            capture.clear();
            let parsed = if self.lines.is_begun() {
                self.lines.rest(tally, |line| parse_stream(line, capture))?
            } else {
                parse(line, capture)
            };
            let (finding, detail) = match parsed {
                Ok(Said { date: Some(Ok(_)), method: Some(method), .. }) => {
                    method.count(tally);
                    continue;
                }
                Ok(Said {
                    date: Some(Ok(date)),
                    status,
                    has_links,
                    revisit,
                    redirect,
                    cut,
                    null_links,
                    is_changed,
                    method: None,
                }) => {
                    let counted = [("a link is null", null_links), (LONE_SURROGATES, u64::from(is_changed))];
                    for detail in counted.into_iter().flat_map(|(detail, times)| (0..times).map(move |_| detail)) {
                        tally.damage(Finding::BadJson, &self.lines.path, self.lines.start, detail);
                    }
                    let target = redirect.as_deref();
                    if (Seen { status, has_links, revisit, target, cut }).settle(self.redirects, capture, tally) {
                        capture.time = date.counted(tally);
                        return Ok(true);
                    }
                    continue;
                }
                Ok(Said { date: Some(Err(ts)), .. }) => (Finding::BadDate, format!("ts: {ts}")),
                Ok(Said { date: None, .. }) => (Finding::BadJson, "missing field `ts`".to_owned()),
                Err(detail) => (Finding::BadJson, detail),
            };
            tally.damage(finding, &self.lines.path, self.lines.start, detail);
        }
        capture.clear();
        Ok(false)
    }
}

/// Fills all fields of `capture` except the time, and returns the other fields of the line.
fn parse(line: &[u8], capture: &mut Capture) -> Result<Said, String> {
    let (line, is_changed) = json_text(line);
    let mut json = serde_json::Deserializer::from_str(&line);
    let said = Fields(capture).deserialize(&mut json).map_err(|error| error.to_string())?;
    json.end().map_err(|error| error.to_string())?;
    Ok(Said { is_changed, ..said })
}

/// As [`parse`], for a line that is too long to hold.
fn parse_stream(line: &mut LongLine<'_>, capture: &mut Capture) -> Result<Said, String> {
    let mut stream = JsonStream::new(line);
    let mut json = serde_json::Deserializer::from_reader(&mut stream);
    let said = Fields(capture).deserialize(&mut json).map_err(|error| error.to_string())?;
    json.end().map_err(|error| error.to_string())?;
    Ok(Said { is_changed: stream.has_lone, ..said })
}

enum Field {
    Url,
    Time,
    Links,
    Digest,
    Status,
    Revisit,
    Redirect,
    Cut,
    Method,
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
seed!(Fields<'_>, Said, deserialize_map);

impl<'de> Visitor<'de> for Fields<'_> {
    type Value = Said;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("an object with url and ts")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Said, A::Error> {
        let (mut has_url, mut said) = (false, Said::default());
        let capture = self.0;
        while let Some(field) = map.next_key_seed(FieldName)? {
            match field {
                Field::Url => {
                    capture.url.clear();
                    map.next_value_seed(Text(&mut |text| capture.url.push_str(text)))?;
                    has_url = true;
                }
                Field::Time => said.date = Some(map.next_value_seed(Time)?),
                Field::Links => {
                    capture.links.clear();
                    said.null_links = 0;
                    said.has_links = map.next_value_seed(Links(&mut capture.links, &mut said.null_links))?;
                }
                Field::Digest => {
                    capture.digest = map.next_value::<Option<Cow<'de, str>>>()?.as_deref().and_then(digest_of)
                }
                Field::Status => {
                    said.status = match map.next_value::<Option<Code>>()? {
                        None => None,
                        Some(Code::Text(text)) if text == "-" => None,
                        Some(code) => Some(code.status().map_err(A::Error::custom)?),
                    };
                }
                Field::Revisit => {
                    said.revisit = map.next_value::<Option<RevisitFields>>()?.map(RevisitFields::referred_to)
                }
                Field::Redirect => {
                    said.redirect = map.next_value::<Option<String>>()?.filter(|url| !matches!(&url[..], "" | "-"));
                }
                Field::Method => {
                    said.method = map.next_value::<Option<Cow<'de, str>>>()?.as_deref().and_then(Other::of);
                }
                Field::Cut => said.cut = map.next_value::<Option<CutSaid>>()?.map_or(Ok(None), CutSaid::cut)?,
                Field::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        if has_url { Ok(said) } else { Err(A::Error::missing_field("url")) }
    }
}

/// The field `cut` of a line.
#[derive(Deserialize)]
#[serde(untagged)]
enum CutSaid {
    Flag(bool),
    Reason(String),
}

impl CutSaid {
    fn cut<E: serde::de::Error>(self) -> Result<Option<Cut>, E> {
        match self {
            CutSaid::Flag(is_cut) => Ok(is_cut.then_some(Cut::Truncated)),
            CutSaid::Reason(name) => Cut::of_text(&name).map(Some).map_err(E::custom),
        }
    }
}

/// The object `revisit` of a line.
#[derive(Deserialize)]
struct RevisitFields {
    profile: Option<String>,
    refers_to_target_uri: Option<String>,
    refers_to_date: Option<String>,
}

impl RevisitFields {
    fn referred_to(self) -> ReferredTo {
        let RevisitFields { profile, refers_to_target_uri, refers_to_date } = self;
        record::revisit(profile.as_deref(), refers_to_target_uri.as_deref(), refers_to_date.as_deref())
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
            "revisit" => Field::Revisit,
            "redirect" => Field::Redirect,
            "cut" => Field::Cut,
            "method" => Field::Method,
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

/// Takes a link. A link that is null is passed over and counted.
struct Link<'a>(&'a mut Texts, &'a mut u64);
seed!(Link<'_>, (), deserialize_any);

impl Visitor<'_> for Link<'_> {
    type Value = ();

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a string")
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.0.push(text);
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        *self.1 += 1;
        Ok(())
    }
}

/// Fills the texts, and counts those that are null. The value is whether there is an array, and not null.
struct Links<'a>(&'a mut Texts, &'a mut u64);
seed!(Links<'_>, bool, deserialize_any);

impl<'de> Visitor<'de> for Links<'_> {
    type Value = bool;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("an array of strings")
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut texts: A) -> Result<bool, A::Error> {
        while texts.next_element_seed(Link(self.0, self.1))?.is_some() {}
        Ok(true)
    }
}

struct Time;
seed!(Time, Result<Date, String>, deserialize_any);

/// The most characters of a text that a message shows.
const SHOWN_CHARS: usize = 40;

impl Visitor<'_> for Time {
    type Value = Result<Date, String>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a date as text or number")
    }

    fn visit_str<E>(self, text: &str) -> Result<Result<Date, String>, E> {
        Ok(date::parse(text).ok_or_else(|| text.chars().take(SHOWN_CHARS).collect()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Result<Date, String>, E> {
        Ok(date::from_number(number).ok_or_else(|| number.to_string()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Result<Date, String>, E> {
        Ok(i64::try_from(number).ok().and_then(date::from_number).ok_or_else(|| number.to_string()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Result<Date, String>, E> {
        Ok(date::from_float(number).ok_or_else(|| number.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Content, Profile, Revisit};
    use std::io::Cursor;

    fn read_all(text: &'static str) -> (Vec<Capture>, Tally) {
        let mut reader = open(Box::new(Cursor::new(text)), Path::new("x.jsonl"), true);
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
    fn what_a_link_cannot_be_is_counted_and_the_line_is_read() {
        let (captures, tally) = read_all(concat!(
            r#"{"url":"http://a/","ts":1209588506,"links":[null,"/x",null]}"#,
            "\n",
            r#"{"url":"http://b/","ts":1209588506,"links":[null]}"#,
            "\n",
            r#"{"url":"http://c/\ud800","ts":1209588506,"links":["\udc00y\ud83d\ude00",null]}"#,
            "\n",
            r#"{"url":"http://d/","ts":1209588506,"links":["x"]}"#,
        ));
        let found: Vec<(&str, Vec<&str>)> =
            captures.iter().map(|capture| (&*capture.url, capture.links.iter().collect())).collect();
        let expected = [
            ("http://a/", vec!["/x"]),
            ("http://b/", vec![]),
            ("http://c/\u{fffd}", vec!["\u{fffd}y\u{1f600}"]),
            ("http://d/", vec!["x"]),
        ];
        assert_eq!(found, expected);
        assert!(captures.iter().all(|capture| capture.content == Content::Links));
        assert_eq!((tally.of(Finding::BadJson), tally.damaged()), (5, 5));
        assert!(tally.examples()[4].detail.contains("surrogate"), "{:?}", tally.examples());
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
        for text in ["99", "1000", "-9998", "\"-1\""] {
            let (captures, tally) = read_all(line(text).leak());
            assert_eq!((captures.len(), tally.of(Finding::OtherStatus), tally.damaged()), (0, 1, 0), "{text}");
        }
        for text in ["\"\"", "\"40x\"", "200.5", "[404]", "{}", "true", "99999999999999999999"] {
            let (captures, tally) = read_all(line(text).leak());
            assert_eq!((captures.len(), tally.of(Finding::BadJson)), (0, 1), "{text}");
        }
    }

    #[test]
    fn unknown_links_revisits_and_redirects() {
        let (captures, tally) = read_all(concat!(
            r#"{"url":"u","ts":1209588506}"#,
            "\n",
            r#"{"url":"u","ts":1209588506,"links":null,"revisit":null,"redirect":null,"status":200}"#,
            "\n",
            r#"{"url":"u","ts":1209588506,"revisit":{}}"#,
            "\n",
            r#"{"url":"u","ts":1209588506,"status":304,"links":[]}"#,
            "\n",
            r#"{"url":"u","ts":1209588506,"revisit":{"profile":"http://netpreserve.org/warc/1.1/server-not-modified","#,
            r#""refers_to_target_uri":"http://a/","refers_to_date":"2008-04-30T20:48:26Z"}}"#,
            "\n",
            r#"{"url":"u","ts":1209588506,"status":302,"redirect":"http://t/","links":["x","y"]}"#,
            "\n",
            r#"{"url":"u","ts":1209588506,"status":302,"redirect":"-"}"#,
            "\n",
            r#"{"url":"u","ts":1209588506,"status":404}"#,
        ));
        let same = Revisit { profile: Profile::IdenticalDigest, url: None, time: None };
        let not_modified = Revisit { profile: Profile::NotModified, ..same.clone() };
        let (url, time) = (Some("http://a/".to_owned()), Some(1_209_588_506));
        let referring = Revisit { url, time, ..not_modified.clone() };
        let contents: Vec<&Content> = captures.iter().map(|capture| &capture.content).collect();
        let revisits = [same, not_modified, referring].map(Content::Revisit);
        let unknown = Content::Unknown;
        let links = Content::Links;
        let expected = [&unknown, &unknown, &revisits[0], &revisits[1], &revisits[2], &links, &links, &links];
        assert_eq!(contents, expected);
        let links: Vec<Vec<&str>> = captures.iter().map(|capture| capture.links.iter().collect()).collect();
        assert_eq!(links, [vec![], vec![], vec![], vec![], vec![], vec!["http://t/"], vec![], vec![]]);
        assert_eq!((tally.of(Finding::UnusedLinks), tally.damaged()), (1, 0));
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
            r#"{"url":"u","ts":1209588506,"links":"x"}"#,
            r#"{"url":"u","ts":1209588506,"links":[],"revisit":"x"}"#,
            r#"{"url":"u","links":[]}"#,
            r#"{"ts":1209588506,"links":[]}"#,
            r#"{"url":"u","ts":1209588506,"links":[7]}"#,
            r#"{"url":null,"ts":1209588506,"links":[]}"#,
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
        assert_eq!((tally.of(Finding::BadDate), tally.damaged()), (1, 12));
    }

    #[test]
    fn numbers_that_are_no_dates_are_damage_and_named() {
        let line = |ts: &str| format!("{{\"url\":\"u\",\"ts\":{ts},\"links\":[]}}\n");
        let numbers = "0 -0 7 -1 961524179 -1209588506 12095885060 201401010000 140101000000000 1401010000000000 \
                       18446744073709551615 -9223372036854775808 1e300 0.5 -1.5e9";
        let texts =
            ["\"1401010000\"", "\"1401010000000\"", "\"1996022924\"", "\" \"", "\"-20140101000000\"", "\"0000\""];
        let all: Vec<&str> = numbers.split(' ').chain(texts).collect();
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
