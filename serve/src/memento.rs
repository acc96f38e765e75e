//! Mementos of a page (RFC 7089): the captures of a page as a TimeMap, and the capture nearest to a date.
//!
//! Another archive replays captures: the URL of a memento is that archive's prefix, the 14 digits of the capture time,
//! a slash, and the URL. A TimeMap is written in parts, so that a server holds a part of its text.

use std::fmt::Write;

use chrono::DateTime;
use serde_json::{Value, json};
use webstrata_layers::{format_digits, format_time};

/// A capture of a page: its time, and the spelling of the URL that was captured.
pub type Memento<'a> = (i64, &'a str);

/// The format of a TimeMap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// `application/link-format` (RFC 7089).
    Link,
    /// The JSON of MemGator.
    Json,
}

/// The TimeMap of a page, with at least one memento.
///
/// ```
/// use webstrata_serve::memento::{TimeMap, http_date, time_of_http_date};
///
/// let page = "http://example.org/";
/// let times = TimeMap {
///     original: page,
///     mementos: &[(1_212_321_600, page), (1_243_857_600, page)],
///     replay: "https://archive.example/web/",
///     timegate: "https://links.example/timegate/",
///     timemap: "https://links.example/timemap/",
/// };
/// let wanted = time_of_http_date("Sun, 15 Jun 2008 12:00:00 GMT").expect("a date");
/// let nearest = times.nearest(wanted).expect("a memento");
/// assert_eq!(http_date(nearest.0), "Sun, 01 Jun 2008 12:00:00 GMT");
/// assert_eq!(times.memento(nearest), "https://archive.example/web/20080601120000/http://example.org/");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TimeMap<'a> {
    /// The URL of the page.
    pub original: &'a str,
    /// The captures, in order of time.
    pub mementos: &'a [Memento<'a>],
    /// The prefix of the URLs of mementos.
    pub replay: &'a str,
    /// The prefix of the URL of the TimeGate; the URL of the page follows.
    pub timegate: &'a str,
    /// The prefix of the URLs of TimeMaps; `link/` or `json/` and the URL of the page follow.
    pub timemap: &'a str,
}

impl TimeMap<'_> {
    /// The URL of a memento.
    #[must_use]
    pub fn memento(&self, memento: Memento<'_>) -> String {
        url_of(self.replay, memento)
    }

    fn timegate(&self) -> String {
        format!("{}{}", self.timegate, self.original)
    }

    fn timemap(&self, format: &str) -> String {
        format!("{}{format}/{}", self.timemap, self.original)
    }

    /// The first and the last memento; `None` without mementos.
    fn ends(&self) -> Option<[Memento<'_>; 2]> {
        Some([*self.mementos.first()?, *self.mementos.last()?])
    }

    /// The memento nearest to a time; of two equally near ones, the earlier.
    #[must_use]
    pub fn nearest(&self, time: i64) -> Option<Memento<'_>> {
        let after = self.mementos.partition_point(|(of, _)| *of < time);
        let around = self.mementos[after.saturating_sub(1)..].iter().take(2);
        around.copied().min_by_key(|(of, _)| of.abs_diff(time))
    }

    /// The TimeMap in the format of RFC 7089 (`application/link-format`).
    #[must_use]
    pub fn link_format(&self) -> String {
        self.part(Format::Link, self.ends(), [true, true])
    }

    /// A part of the text of a TimeMap, of which this one has some of the mementos. `ends` are the first and the last
    /// memento of all, and `is_end` says whether the part begins and whether it ends the text.
    pub(crate) fn part(&self, format: Format, ends: Option<[Memento<'_>; 2]>, is_end: [bool; 2]) -> String {
        let mut out = String::new();
        let [is_first, is_last] = is_end;
        if is_first {
            self.begin(format, ends, &mut out);
        }
        for (index, &memento) in self.mementos.iter().enumerate() {
            let is_first = is_first && index == 0;
            let rel = match (is_first, is_last && index + 1 == self.mementos.len()) {
                (true, true) => "first last memento",
                (true, false) => "first memento",
                (false, true) => "last memento",
                (false, false) => "memento",
            };
            // Writing to a string does not fail.
            let _ = match format {
                Format::Link => write!(out, ",\n{}", self.link(memento, rel)),
                Format::Json => write!(out, "{}{}", if is_first { "" } else { "," }, self.object(memento)),
            };
        }
        if is_last {
            self.end(format, &mut out);
        }
        out
    }

    /// Writes the text before the mementos.
    fn begin(&self, format: Format, ends: Option<[Memento<'_>; 2]>, out: &mut String) {
        let _ = match (format, ends) {
            (Format::Link, ends) => {
                let [from, until] = ends.map(|ends| ends.map(|end| http_date(end.0))).unwrap_or_default();
                let _ = writeln!(out, "{}; rel=\"original\",", target(self.original));
                let itself = target(&self.timemap("link"));
                if ends.is_some() {
                    let _ = writeln!(
                        out,
                        "{itself}; rel=\"self\"; type=\"application/link-format\"; from=\"{from}\"; \
                         until=\"{until}\","
                    );
                }
                write!(out, "{}; rel=\"timegate\"", target(&self.timegate()))
            }
            (Format::Json, None) => write!(out, r#"{{"mementos":{{"first":null,"last":null,"list":["#),
            (Format::Json, Some(ends)) => {
                let [first, last] = ends.map(|memento| self.object(memento));
                write!(out, r#"{{"mementos":{{"first":{first},"last":{last},"list":["#)
            }
        };
    }

    /// Writes the text behind the mementos.
    fn end(&self, format: Format, out: &mut String) {
        let _ = match format {
            Format::Link => writeln!(out),
            Format::Json => {
                let texts = [self.original.to_owned(), self.timemap("json"), self.timegate(), self.timemap("link")];
                let [original, itself, timegate, link] = texts.map(|text| json!(text));
                write!(
                    out,
                    "]}},\"original_uri\":{original},\"self\":{itself},\"timegate_uri\":{timegate},\"timemap_uri\":\
                     {{\"json_format\":{itself},\"link_format\":{link}}}}}"
                )
            }
        };
    }

    /// A memento in JSON.
    fn object(&self, memento: Memento<'_>) -> Value {
        json!({"datetime": format_time(memento.0), "uri": self.memento(memento)})
    }

    fn link(&self, memento: Memento<'_>, rel: &str) -> String {
        link(self.replay, memento, rel)
    }

    /// The links of a TimeGate's answer (the field `Link`): the page, its TimeMap, the first, the last and the chosen
    /// memento.
    #[must_use]
    pub fn links_of(&self, chosen: Memento<'_>) -> String {
        let (original, timegate) = (target(self.original), target(&self.timegate()));
        let timemap = target(&self.timemap("link"));
        let mut out = format!(
            "{original}; rel=\"original\", {timegate}; rel=\"timegate\", \
             {timemap}; rel=\"timemap\"; type=\"application/link-format\""
        );
        let [first, last] = self.ends().unwrap_or([chosen; 2]);
        for (memento, rel) in [(first, "first memento"), (chosen, "memento"), (last, "last memento")] {
            let _ = write!(out, ", {}", self.link(memento, rel));
        }
        out
    }

    /// The TimeMap in the JSON of MemGator.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.part(Format::Json, self.ends(), [true, true])).unwrap_or_default()
    }
}

/// The URL of a memento in the archive that replays it.
fn url_of(replay: &str, (time, url): Memento<'_>) -> String {
    format!("{replay}{}/{url}", format_digits(time))
}

/// A memento in link format.
pub(crate) fn link(replay: &str, memento: Memento<'_>, rel: &str) -> String {
    format!("{}; rel=\"{rel}\"; datetime=\"{}\"", target(&url_of(replay, memento)), http_date(memento.0))
}

/// A URL as a target in link format. The target ends at `>`.
pub(crate) fn target(url: &str) -> String {
    format!("<{}>", url.replace('<', "%3C").replace('>', "%3E"))
}

/// A time as HTTP writes it: `Tue, 20 Jun 2000 18:02:59 GMT`.
#[must_use]
pub fn http_date(time: i64) -> String {
    let time = DateTime::from_timestamp(time, 0).unwrap_or_default();
    time.format("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

/// The time of [`http_date`]; `None` if the text is not such a date.
#[must_use]
pub fn time_of_http_date(text: &str) -> Option<i64> {
    let time = chrono::NaiveDateTime::parse_from_str(text.trim(), "%a, %d %b %Y %H:%M:%S GMT").ok()?;
    Some(time.and_utc().timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // The dates of the example in RFC 7089, section 5.
    const FIRST: i64 = 961_524_179;
    const LAST: i64 = 1_207_773_051;
    const URL: &str = "http://a.example.org/";

    fn timemap<'a>(mementos: &'a [Memento<'a>]) -> TimeMap<'a> {
        TimeMap {
            original: URL,
            mementos,
            replay: "http://arxiv.example.net/web/",
            timegate: "http://arxiv.example.net/timegate/",
            timemap: "http://arxiv.example.net/timemap/",
        }
    }

    #[test]
    fn dates_are_those_of_http() {
        assert_eq!(http_date(FIRST), "Tue, 20 Jun 2000 18:02:59 GMT");
        assert_eq!(http_date(LAST), "Wed, 09 Apr 2008 20:30:51 GMT");
        assert_eq!(http_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(http_date(-1), "Wed, 31 Dec 1969 23:59:59 GMT");
        for text in ["", "2008", "Wed, 09 Apr 2008", "Tue, 09 Apr 2008 20:30:51 GMT", "Wed, 09 Apr 2008 20:30:51 CET"] {
            assert_eq!(time_of_http_date(text), None, "{text}");
        }
    }

    #[test]
    fn a_timemap_is_as_the_standard_has_it() {
        let expected = "\
<http://a.example.org/>; rel=\"original\",
<http://arxiv.example.net/timemap/link/http://a.example.org/>; rel=\"self\"; type=\"application/link-format\"; \
from=\"Tue, 20 Jun 2000 18:02:59 GMT\"; until=\"Wed, 09 Apr 2008 20:30:51 GMT\",
<http://arxiv.example.net/timegate/http://a.example.org/>; rel=\"timegate\",
<http://arxiv.example.net/web/20000620180259/http://a.example.org/>; rel=\"first memento\"; \
datetime=\"Tue, 20 Jun 2000 18:02:59 GMT\",
<http://arxiv.example.net/web/20080409203051/http://a.example.org/>; rel=\"last memento\"; \
datetime=\"Wed, 09 Apr 2008 20:30:51 GMT\"
";
        assert_eq!(timemap(&[(FIRST, URL), (LAST, URL)]).link_format(), expected);
        let json = timemap(&[(FIRST, URL)]).json();
        assert_eq!(json["mementos"]["first"], json["mementos"]["list"][0]);
        assert_eq!(
            json["mementos"]["last"]["uri"],
            "http://arxiv.example.net/web/20000620180259/http://a.example.org/"
        );
    }

    #[test]
    fn the_parts_of_a_timemap_are_its_text() {
        let all: Vec<Memento<'_>> = (0..7).map(|day| (FIRST + 86_400 * day, URL)).collect();
        let whole = timemap(&all);
        for format in [Format::Link, Format::Json] {
            let text = whole.part(format, whole.ends(), [true, true]);
            for size in 1..8 {
                let parts = all.chunks(size).enumerate().map(|(at, part)| {
                    timemap(part).part(format, whole.ends(), [at == 0, (at + 1) * size >= all.len()])
                });
                assert_eq!(parts.collect::<String>(), text, "{format:?} by {size}");
            }
        }
        assert_eq!(whole.json()["mementos"]["list"].as_array().map(Vec::len), Some(7));
    }

    proptest! {
        #[test]
        fn the_nearest_memento_is_the_first_of_the_nearest(
            mut times in proptest::collection::vec(-50..50_i64, 1..8), time in -60..60_i64,
        ) {
            times.sort_unstable();
            let mementos: Vec<Memento<'_>> = times.iter().map(|&time| (time, URL)).collect();
            let expected = times.iter().copied().min_by_key(|of| of.abs_diff(time));
            prop_assert_eq!(timemap(&mementos).nearest(time).map(|(time, _)| time), expected);
        }

        #[test]
        fn dates_come_back(time in -62_000_000_000..250_000_000_000_i64) {
            prop_assert_eq!(time_of_http_date(&http_date(time)), Some(time));
        }
    }
}
