//! CDXJ: one capture a line, as a key, a time, and a JSON object; or as an object alone.
//!
//! | field | names | |
//! |---|---|---|
//! | URL | `url`, `u`, `original`, `original_uri` | required: the key has lost the case and the scheme of its URL |
//! | time | second word; in an object alone `timestamp`, `ts`, `t` | 14 digits, or 17 with milliseconds |
//! | type | `mime`, `mimetype`, `mime_type`, `m` | otherwise `mime-detected` |
//! | status | `status`, `statuscode`, `status_code`, `s` | text or number |
//! | digest | `digest`, `d` | |
//! | redirect | `redirect` | the target, as Common Crawl writes it |
//! | method | `method` | also `__wb_method` in the URL, its key or `requestBody`; see [`crate::capture::method`] |
//!
//! pywb, cdxj-indexer, warcio.js, Common Crawl, ipwb and OutbackCDX write these names. The reader passes over other
//! fields. If an object has several names of a field, the first one with a text counts. Lines that begin with `!` or
//! `@` describe the file.
//!
//! Damage: lines without an object or with a broken object ([`Finding::BadJson`]), and bad dates. Old files of ipwb
//! have no URLs. [`super::kind`] recognizes such a file, and the file is not read.

use super::entry::{Damage, Entry, Form, IndexReader, known, short};
use super::is_digits;
use crate::files::json_text::json_text;
use crate::files::lines::Lines;
use crate::{CaptureReader, Finding, Tally};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::io::BufRead;
use std::path::Path;

pub(crate) fn open(text: Box<dyn BufRead + Send>, path: &Path, redirects: bool) -> Box<dyn CaptureReader> {
    Box::new(IndexReader { lines: Lines::new(text, path), form: Cdxj, redirects, not_html: None })
}

/// The names of the URL of a capture.
pub(super) const URL_NAMES: [&str; 4] = ["url", "u", "original", "original_uri"];

/// Whether a line is about the file.
pub(super) fn is_about(line: &[u8]) -> bool {
    [&b"!"[..], b"@", b" CDX"].iter().any(|begin| line.starts_with(begin))
}

/// The time and the object of a line. The time of an object alone is empty.
pub(super) fn parts(line: &str) -> Option<(&str, &str)> {
    if line.starts_with('{') {
        return Some(("", line));
    }
    // A key may have braces. The object begins after the time, so a word of digits before it decides.
    let mut first = None;
    for (at, _) in line.match_indices('{') {
        let before = line[..at].trim_ascii_end();
        let time = before.rsplit(|letter: char| letter.is_ascii_whitespace()).next().unwrap_or_default();
        if before.len() == at || time.len() == before.len() {
            continue;
        }
        if is_digits(time, 4, usize::MAX) {
            return Some((time, &line[at..]));
        }
        first = first.or(Some((time, &line[at..])));
    }
    first
}

struct Cdxj;

impl Form for Cdxj {
    const DAMAGE: Finding = Finding::BadJson;

    fn text(line: &[u8]) -> (Cow<'_, str>, bool) {
        json_text(line)
    }

    fn entry<'a>(&mut self, line: &'a str, _: &mut Tally) -> Result<Option<Entry<'a>>, Damage> {
        if is_about(line.as_bytes()) {
            return Ok(None);
        }
        let parts = parts(line.trim_ascii_end());
        let (time, object) = parts.ok_or_else(|| (Finding::BadJson, format!("no time and object: {}", short(line))))?;
        let Object(mut entry) = serde_json::from_str(object).map_err(|error| (Finding::BadJson, error.to_string()))?;
        if !time.is_empty() {
            entry.date = time.into();
        }
        Ok(Some(entry))
    }
}

/// The fields of an object.
struct Object<'a>(Entry<'a>);

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields).map(Object)
    }
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = Entry<'de>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entry<'de>, A::Error> {
        let (mut entry, mut detected) = (Entry::default(), Cow::default());
        while let Some(Scalar(name)) = map.next_key()? {
            let field = match &*name {
                name if URL_NAMES.contains(&name) => &mut entry.url,
                "timestamp" | "ts" | "t" => &mut entry.date,
                "mime" | "mimetype" | "mime_type" | "m" => &mut entry.mime,
                "mime-detected" => &mut detected,
                "status" | "statuscode" | "status_code" | "s" => &mut entry.status,
                "digest" | "d" => &mut entry.digest,
                "redirect" => &mut entry.redirect,
                "method" => &mut entry.method,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            let Scalar(text) = map.next_value()?;
            if known(field).is_none() {
                *field = text;
            }
        }
        if entry.is_html().is_none() && !detected.is_empty() {
            entry.mime = detected;
        }
        Ok(entry)
    }
}

/// A text, or a number as a text; empty for all other values.
struct Scalar<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Scalar<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor).map(Scalar)
    }
}

struct ScalarVisitor;

impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(text.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(text.to_owned().into())
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(number.to_string().into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(number.to_string().into())
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(number.to_string().into())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Cow::default())
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Cow::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Self::Value, A::Error> {
        while values.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Cow::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Cow::default())
    }
}

#[cfg(test)]
mod tests {
    use super::super::entry::tests::{counts, read_all};
    use super::*;

    fn read(text: &str) -> (Vec<String>, Tally) {
        let text = text.as_bytes().to_vec();
        read_all(open(Box::new(std::io::Cursor::new(text)), Path::new("x.cdxj"), true))
    }

    #[test]
    fn names_of_every_writer() {
        for (line, expected) in [
            // pywb and cdxj-indexer
            (
                r#"a)/ 20080430204826 {"url": "http://a/", "mime": "text/html", "status": "200", "digest": "X"}"#,
                "http://a/ 1209588506 200 unknown",
            ),
            (r#"a)/ 20080430204826 {"url": "http://a/", "mime": "warc/revisit"}"#, "http://a/ 1209588506 - revisit"),
            (r#"a)/ 20080430204826 {"url": "http://a/", "length": "468"}"#, "http://a/ 1209588506 - unknown"),
            (
                r#"a)/ 20080430204826 {"u":"http://a/","m":"text/html","s":"404","k":"x"}"#,
                "http://a/ 1209588506 404 links",
            ),
            // warcio.js
            (
                r#"a)/ 20080430204826 {"url":"http://a/","mime":"warc/revisit","status":404,"offset":7}"#,
                "http://a/ 1209588506 404 links",
            ),
            // Common Crawl
            (
                concat!(
                    r#"a)/ 20080430204826 {"url": "http://a/\u00e9", "mime": "unk", "mime-detected": "text/html", "#,
                    r#""status": "301", "redirect": "http://t/", "languages": null, "x": [{"url": 1}]}"#
                ),
                "http://a/é 1209588506 301 links http://t/",
            ),
            // ipwb
            (
                r#"a)/ 20080430204826 {"locator":"urn:ipfs/x/y","original_uri":"http://a/","status_code":"200"}"#,
                "http://a/ 1209588506 200 unknown",
            ),
            // OutbackCDX
            (
                concat!(
                    r#"{"urlkey":"a)/","timestamp":"20080430204826","original":"http://a/","mimetype":"text/html","#,
                    r#""statuscode":200,"redirecturl":"-"}"#
                ),
                "http://a/ 1209588506 200 unknown",
            ),
            // Braces and blanks in keys, and empty names.
            (r#"a)/?q={1} {x} 20080430204826 {"url":"http://a/?q={1}"}"#, "http://a/?q={1} 1209588506 - unknown"),
            (r#"a)/ 20080430204826 {"url":"-","u":"http://a/","status":"","m":"-"}"#, "http://a/ 1209588506 - unknown"),
        ] {
            let (captures, tally) = read(&format!("!meta {{}}\n@context []\n{line} \r\n\n"));
            assert_eq!((captures, tally), (vec![expected.to_owned()], Tally::default()), "{line}");
        }
        let (captures, tally) = read(r#"a)/ 20080430204826123 {"url": "http://a/", "mime-detected": "image/png"}"#);
        assert_eq!((captures.len(), counts(&tally)), (0, vec![(Finding::NotHtml, 1)]));
        let (captures, tally) = read(r#"a)/ 20080430204826123 {"url": "http://a/"}"#);
        assert_eq!((captures.len(), counts(&tally)), (1, vec![(Finding::FinerDate, 1)]));
    }

    #[test]
    fn methods_other_than_get() {
        for (line, is_capture) in [
            (r#"a)/ 20080430204826 {"url":"http://a/","method":"GET"}"#, true),
            (r#"a)/ 20080430204826 {"url":"http://a/","method":"get","requestBody":""}"#, true),
            (r#"a)/ 20080430204826 {"url":"http://a/","method":null}"#, true),
            (r#"a)/ 20080430204826 {"url":"http://a/","method":"HEAD"}"#, false),
            (r#"a)/ 20080430204826 {"url":"http://a/","mime":"warc/revisit","method":"Post"}"#, false),
            (r#"a)/?__wb_method=post&q=1 20080430204826 {"url":"http://a/"}"#, false),
            (r#"a)/?__wb_post_data=cT0x 20080430204826 {"url":"http://a/"}"#, false),
            (r#"a)/ 20080430204826 {"url":"http://a/","requestBody":"?__wb_method=PUT&q=1"}"#, false),
            (r#"a)/ 20080430204826 {"url":"http://a/?__wb_method=POST&q=1"}"#, false),
        ] {
            let (captures, tally) = read(line);
            let counted = [(Finding::OtherMethod, 1)];
            let expected = if is_capture { (1, &[][..]) } else { (0, &counted[..]) };
            assert_eq!((captures.len(), &counts(&tally)[..]), expected, "{line}");
        }
    }

    #[test]
    fn damage_is_counted_where_it_stands() {
        let good = r#"a)/ 20080430204826 {"url":"http://a/"}"#;
        let bad = [
            (r#"a)/ 20080430204826 {"url":"http://a/""#, Finding::BadJson),
            (r#"a)/ 20080430204826 {"url":"http://a/"} x"#, Finding::BadJson),
            (r#"a)/ 20080430204826 {"mime":"text/html"}"#, Finding::BadJson),
            (r#"a)/ 20080430204826 {"url":"http://a/","status":"20x"}"#, Finding::BadJson),
            (r#"a)/ 20080430204826 {"url":"http://a/","status":1.5}"#, Finding::BadJson),
            (r#"a)/ 20080430204826"#, Finding::BadJson),
            (r#"{"url":"http://a/"}"#, Finding::BadDate),
            (r#"a)/ 20081399204826 {"url":"http://a/"}"#, Finding::BadDate),
            (r#"a)/ soon {"url":"http://a/"}"#, Finding::BadDate),
            ("no index", Finding::BadJson),
        ];
        let (mut text, mut offsets) = (format!("{good}\n"), Vec::new());
        for (line, finding) in bad {
            offsets.push((finding, text.len() as u64));
            text += &format!("{line}\n{good}\n");
        }
        let (captures, tally) = read(&text);
        assert_eq!(captures.len(), 1 + bad.len());
        let mut found: Vec<_> = tally.examples().iter().map(|place| (place.finding, place.offset)).collect();
        found.sort_by_key(|place| place.1);
        assert_eq!(found, offsets);
    }
}
