//! `webstrata timemap`: the captures of a page as a Memento TimeMap (RFC 7089).
//!
//! The archive that replays them is not ours: `--prefix` says with what the URLs of its mementos begin, and those of
//! its TimeGate and TimeMaps follow from that as pywb and the Wayback Machine have them. Printed as it goes; memory:
//! the times of one page.

use crate::args::{Outcome, interval, time_from, time_to};
use crate::ask::{self, SourceArgs};
use anyhow::bail;
use chrono::DateTime;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use std::io::{self, Write};
use webstrata_layers::{format_digits, format_time};

const ABOUT: &str = "\
The URL of a memento is PREFIX, the 14 digits of the capture time, a slash, and
the URL of the page. Formats:
  link   application/link-format (RFC 7089)
  json   the JSON of MemGator: original_uri, self, mementos, timemap_uri,
         timegate_uri
  text   one memento URL per line

Examples:
  webstrata timemap STORE http://example.org/
  webstrata timemap STORE http://example.org/ --format json --from 2006
  webstrata timemap STORE example.org/ --prefix http://localhost:8080/all/";

/// Arguments of `timemap`.
#[derive(Args, Debug)]
#[command(after_help = ABOUT, allow_missing_positional = true)]
pub(crate) struct TimemapArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// URL of the page; without a scheme, http and https are tried
    pub(crate) url: String,
    /// Format of the TimeMap
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) format: TimemapFormat,
    /// Prefix of memento URLs: the replay service of an archive
    #[arg(long, value_name = "URL", default_value = "https://web.archive.org/web/")]
    pub(crate) prefix: String,
    /// Captures at or after this time
    #[arg(long, value_name = "T", value_parser = time_from)]
    pub(crate) from: Option<i64>,
    /// Captures at or before this time
    #[arg(long, value_name = "T", value_parser = time_to)]
    pub(crate) to: Option<i64>,
}

/// How a TimeMap is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TimemapFormat {
    /// application/link-format (RFC 7089)
    #[default]
    Link,
    /// The JSON of MemGator
    Json,
    /// One memento URL per line
    Text,
}

pub(crate) fn run(args: &TimemapArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let (from, to) = interval(args.from, args.to)?;
    let links = args.source.open(ask::READ_MEMORY)?;
    let page = ask::find(&*links, &args.url)?;
    let captures = links.captures(page.uid)?.into_iter().map(|capture| capture.time);
    let times: Vec<i64> = captures.filter(|time| (from..=to).contains(time)).collect();
    let archive = Archive { prefix: &args.prefix, url: &page.url };
    let (Some(&first), Some(&last)) = (times.first(), times.last()) else {
        bail!("{} has no capture in this window, so there is no TimeMap", page.url);
    };
    match args.format {
        TimemapFormat::Link => link_format(&archive, &times, (first, last), out)?,
        TimemapFormat::Json => writeln!(out, "{:#}", memgator(&archive, &times, (first, last)))?,
        TimemapFormat::Text => times.iter().try_for_each(|&time| writeln!(out, "{}", archive.memento(time)))?,
    }
    Ok(Outcome::Done)
}

/// Where an archive has what of a page.
struct Archive<'a> {
    prefix: &'a str,
    url: &'a str,
}

impl Archive<'_> {
    fn memento(&self, time: i64) -> String {
        format!("{}{}/{}", self.prefix, format_digits(time), self.url)
    }

    fn timegate(&self) -> String {
        format!("{}{}", self.prefix, self.url)
    }

    fn timemap(&self, format: &str) -> String {
        format!("{}timemap/{format}/{}", self.prefix, self.url)
    }
}

fn link_format(archive: &Archive<'_>, times: &[i64], (first, last): (i64, i64), out: &mut dyn Write) -> io::Result<()> {
    let target = |url: &str| format!("<{}>", url.replace('<', "%3C").replace('>', "%3E"));
    writeln!(out, "{}; rel=\"original\",", target(archive.url))?;
    let (from, until) = (http_date(first), http_date(last));
    let timemap = target(&archive.timemap("link"));
    writeln!(out, "{timemap}; rel=\"self\"; type=\"application/link-format\"; from=\"{from}\"; until=\"{until}\",")?;
    writeln!(out, "{}; rel=\"timegate\",", target(&archive.timegate()))?;
    for (index, &time) in times.iter().enumerate() {
        let is_last = index + 1 == times.len();
        let rel = match (index == 0, is_last) {
            (true, true) => "first last memento",
            (true, false) => "first memento",
            (false, true) => "last memento",
            (false, false) => "memento",
        };
        let end = if is_last { "" } else { "," };
        writeln!(out, "{}; rel=\"{rel}\"; datetime=\"{}\"{end}", target(&archive.memento(time)), http_date(time))?;
    }
    Ok(())
}

fn memgator(archive: &Archive<'_>, times: &[i64], (first, last): (i64, i64)) -> Value {
    let memento = |time: i64| json!({"datetime": format_time(time), "uri": archive.memento(time)});
    json!({
        "original_uri": archive.url,
        "self": archive.timemap("json"),
        "mementos": {
            "list": times.iter().map(|&time| memento(time)).collect::<Vec<_>>(),
            "first": memento(first),
            "last": memento(last),
        },
        "timemap_uri": {"link_format": archive.timemap("link"), "json_format": archive.timemap("json")},
        "timegate_uri": archive.timegate(),
    })
}

/// A time as HTTP writes it: `Tue, 20 Jun 2000 18:02:59 GMT`.
fn http_date(time: i64) -> String {
    let time = DateTime::from_timestamp(time, 0).unwrap_or_default();
    time.format("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    // The dates of the example in RFC 7089, section 5.
    const FIRST: i64 = 961_524_179;
    const LAST: i64 = 1_207_773_051;

    #[test]
    fn dates_are_those_of_http() {
        assert_eq!(http_date(FIRST), "Tue, 20 Jun 2000 18:02:59 GMT");
        assert_eq!(http_date(LAST), "Wed, 09 Apr 2008 20:30:51 GMT");
        assert_eq!(http_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(http_date(-1), "Wed, 31 Dec 1969 23:59:59 GMT");
    }

    #[test]
    fn a_timemap_is_as_the_standard_has_it() {
        let archive = Archive { prefix: "http://arxiv.example.net/web/", url: "http://a.example.org/" };
        let mut out = Vec::new();
        link_format(&archive, &[FIRST, LAST], (FIRST, LAST), &mut out).unwrap();
        let expected = "\
<http://a.example.org/>; rel=\"original\",
<http://arxiv.example.net/web/timemap/link/http://a.example.org/>; rel=\"self\"; type=\"application/link-format\"; \
from=\"Tue, 20 Jun 2000 18:02:59 GMT\"; until=\"Wed, 09 Apr 2008 20:30:51 GMT\",
<http://arxiv.example.net/web/http://a.example.org/>; rel=\"timegate\",
<http://arxiv.example.net/web/20000620180259/http://a.example.org/>; rel=\"first memento\"; \
datetime=\"Tue, 20 Jun 2000 18:02:59 GMT\",
<http://arxiv.example.net/web/20080409203051/http://a.example.org/>; rel=\"last memento\"; \
datetime=\"Wed, 09 Apr 2008 20:30:51 GMT\"
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
        let json = memgator(&archive, &[FIRST], (FIRST, FIRST));
        assert_eq!(json["mementos"]["first"], json["mementos"]["list"][0]);
        assert_eq!(
            json["mementos"]["last"]["uri"],
            "http://arxiv.example.net/web/20000620180259/http://a.example.org/"
        );
    }
}
