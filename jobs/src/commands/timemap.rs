//! `webstrata timemap`: the captures of a page as a Memento TimeMap (RFC 7089).
//!
//! Another archive replays the captures. `--replay` gives the beginning of the URLs of its mementos. The URLs of its
//! TimeGate and TimeMaps follow from that, as in pywb and the Wayback Machine.

use crate::args::{Outcome, interval, time_from, time_to};
use crate::ask::{self, SourceArgs};
use anyhow::bail;
use clap::{Args, ValueEnum};
use std::io::Write;
use webstrata_layers::captures_of_page;
use webstrata_serve::memento::TimeMap;
use webstrata_url::meant;

const ABOUT: &str = "\
The URL of a memento is REPLAY, the 14 digits of the capture time, a slash, and
the URL of the page. Formats:
  link   application/link-format (RFC 7089)
  json   the JSON of MemGator: original_uri, self, mementos, timemap_uri,
         timegate_uri
  text   one memento URL per line

Examples:
  webstrata timemap STORE http://example.org/
  webstrata timemap STORE http://example.org/ --format json --from 2006
  webstrata timemap STORE example.org/ --replay http://localhost:8080/all/";

/// Arguments of `timemap`.
#[derive(Args, Debug)]
#[command(after_help = ABOUT)]
pub(crate) struct TimemapArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// URL of the page, in any spelling
    pub(crate) url: String,
    /// Format of the TimeMap
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) format: TimemapFormat,
    /// What URLs of mementos begin with: the replay service of an archive
    #[arg(long, value_name = "URL", default_value = "https://web.archive.org/web/")]
    pub(crate) replay: String,
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
    let (spellings, urls) = ask::find_page(&*links, &args.url)?;
    let lists = spellings.iter().map(|&uid| links.captures(uid)).collect::<Result<Vec<_>, _>>()?;
    let captures = captures_of_page(lists.iter().map(Vec::as_slice)).into_iter();
    let in_window = captures.filter(|(capture, _)| (from..=to).contains(&capture.time));
    let mementos: Vec<_> = in_window.map(|(capture, spelling)| (capture.time, urls[spelling].as_str())).collect();
    // Without a scheme, the URL that the store has is meant.
    let meant = meant(&args.url)?;
    let original = meant.iter().find(|url| urls.contains(url)).unwrap_or(&meant[0]);
    if mementos.is_empty() {
        bail!("{original} has no capture in this window, so there is no TimeMap");
    }
    let timemap = TimeMap {
        original,
        mementos: &mementos,
        replay: &args.replay,
        timegate: &args.replay,
        timemap: &format!("{}timemap/", args.replay),
    };
    match args.format {
        TimemapFormat::Link => write!(out, "{}", timemap.link_format())?,
        TimemapFormat::Json => writeln!(out, "{:#}", timemap.json())?,
        TimemapFormat::Text => {
            mementos.iter().try_for_each(|&memento| writeln!(out, "{}", timemap.memento(memento)))?;
        }
    }
    Ok(Outcome::Done)
}
