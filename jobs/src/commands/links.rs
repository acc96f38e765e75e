//! `webstrata links`: what a page linked to, or what linked to a URL, at a time.
//!
//! Printed in the order of the store: URLs of one host stand together.

use crate::args::{Format, FormatArgs, Outcome, interval, time_from, time_to};
use crate::ask::{self, FoundUrl, SourceArgs};
use clap::Args;
use serde_json::{Value, json};
use std::io::Write;
use webstrata_layers::{Direction, Lifespan, Links, Precision, Sample, Sampling, Window, format_time};

const EXAMPLES: &str = "\
A time is written 2008, 2008-06, 2008-06-01, 20080601120000 or
2008-06-01T12:00:00Z. A year, month or day is a whole period: --from means its
first second, --to and --at mean its last. Both ends are included. Without a
time, every capture counts.

Examples:
  webstrata links STORE http://example.org/ --from 2006 --to 2008-03
  webstrata links STORE http://example.org/ --in --at 2008-06-01
  webstrata links STORE http://example.org/ --lifespans
  webstrata links STORE http://example.org/ --in --sample 100
  webstrata links --server 127.0.0.1:7400 http://example.org/";

/// Arguments of `links`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, allow_missing_positional = true)]
pub(crate) struct LinksArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// URL to look up; without a scheme, http and https are tried
    pub(crate) url: String,
    /// Show the pages that link to the URL, not the links of the page
    #[arg(long = "in")]
    pub(crate) inward: bool,
    /// Links of captures at or after this time
    #[arg(long, value_name = "T", value_parser = time_from, conflicts_with = "at")]
    pub(crate) from: Option<i64>,
    /// Links of captures at or before this time
    #[arg(long, value_name = "T", value_parser = time_to, conflicts_with = "at")]
    pub(crate) to: Option<i64>,
    /// Links of the latest capture at or before this time
    #[arg(long, value_name = "T", value_parser = time_to)]
    pub(crate) at: Option<i64>,
    /// Show when each link existed: the first and last capture of each run of captures with the
    /// link
    #[arg(long, conflicts_with = "at")]
    pub(crate) lifespans: bool,
    /// With --in: answer faster, to the precision of time ranges; the answer may have extra pages
    #[arg(long, requires = "inward", conflicts_with = "lifespans")]
    pub(crate) range_precision: bool,
    /// Print only the number of links
    #[arg(long, conflicts_with = "lifespans")]
    pub(crate) count: bool,
    /// Show a sample of N links; pages with similar links give similar samples
    #[arg(long, value_name = "N", conflicts_with_all = ["lifespans", "count"])]
    pub(crate) sample: Option<usize>,
    /// Draw a new sample on each call, unless --seed is given
    #[arg(long, requires = "sample")]
    pub(crate) random: bool,
    /// Seed of the sample: the same seed draws the same sample [default: 0 without --random]
    #[arg(long, value_name = "S", requires = "sample")]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

pub(crate) fn run(args: &LinksArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let (from, to) = interval(args.from, args.to)?;
    let window = args.at.map_or(Window::Seen { from, to }, Window::AsOf);
    let reader = args.source.open(ask::READ_MEMORY)?;
    let found = ask::find(&*reader, &args.url)?;
    if args.lifespans {
        print_lifespans(&*reader, args, &found, out)?;
    } else {
        print_links(&*reader, args, &found, window, out)?;
    }
    if args.format.format == Format::Text {
        remarks(&*reader, args, &found, window)?;
    }
    Ok(Outcome::Done)
}

fn print_links(
    links: &dyn Links,
    args: &LinksArgs,
    found: &FoundUrl,
    window: Window,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let direction = match (args.inward, args.range_precision) {
        (false, _) => Direction::Out,
        (true, false) => Direction::In(Precision::Exact),
        (true, true) => Direction::In(Precision::Range),
    };
    if args.count {
        let count = links.degree(found.uid, direction, window)?;
        if args.format.format == Format::Json {
            let mut answer = header(links, args, found);
            answer["count"] = json!(count);
            writeln!(out, "{answer}")?;
        } else {
            writeln!(out, "{count}")?;
        }
        return Ok(());
    }
    let mut uids = links.links(found.uid, direction, window)?;
    if let Some(count) = args.sample {
        let sampling = if args.random { Sampling::Random } else { Sampling::Consistent };
        Sample { count, sampling, seed: sampling.seed(args.seed) }.draw(found.uid, &mut uids);
    }
    if args.format.format == Format::Json {
        let urls = links.urls_of(&uids)?;
        let mut answer = header(links, args, found);
        answer["links"] = json!(urls);
        if !args.inward && ask::is_unknown(links, found.uid, window)? {
            answer["unknown"] = json!(true);
        }
        writeln!(out, "{answer}")?;
    } else {
        for url in links.urls_of(&uids)? {
            writeln!(out, "{url}")?;
        }
    }
    Ok(())
}

fn print_lifespans(links: &dyn Links, args: &LinksArgs, found: &FoundUrl, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut lifespans = if args.inward {
        let mut lifespans = Vec::new();
        for source in links.in_links(found.uid, Window::Seen { from: i64::MIN, to: i64::MAX }, Precision::Exact)? {
            let to_url = links.lifespans(source)?.into_iter().filter(|lifespan| lifespan.link == found.uid);
            lifespans.extend(to_url.map(|lifespan| Lifespan { link: source, ..lifespan }));
        }
        lifespans
    } else {
        links.lifespans(found.uid)?
    };
    let (from, to) = interval(args.from, args.to)?;
    lifespans.retain(|lifespan| lifespan.first <= to && lifespan.last >= from);
    let mut list = Vec::new();
    let urls = links.urls_of(&lifespans.iter().map(|lifespan| lifespan.link).collect::<Vec<_>>())?;
    for (lifespan, url) in lifespans.into_iter().zip(urls) {
        let (first, last) = (format_time(lifespan.first), format_time(lifespan.last));
        if args.format.format == Format::Json {
            list.push(json!({"link": url, "first": first, "last": last}));
        } else {
            writeln!(out, "{first} {last} {url}")?;
        }
    }
    if args.format.format == Format::Json {
        let mut answer = header(links, args, found);
        answer["lifespans"] = Value::Array(list);
        writeln!(out, "{answer}")?;
    }
    Ok(())
}

fn header(links: &dyn Links, args: &LinksArgs, found: &FoundUrl) -> Value {
    let mut answer =
        json!({"url": found.url, "epoch": links.epoch(), "direction": if args.inward { "in" } else { "out" }});
    for (name, time) in [("from", args.from), ("to", args.to), ("at", args.at)] {
        if let Some(time) = time {
            answer[name] = json!(format_time(time));
        }
    }
    answer
}

/// Says, to people, why an answer about a page's links may be empty.
fn remarks(links: &dyn Links, args: &LinksArgs, found: &FoundUrl, window: Window) -> anyhow::Result<()> {
    if args.inward {
        return Ok(());
    }
    let captures = links.captures(found.uid)?;
    let is_in_window = |time: i64| match window {
        Window::Seen { from, to } => from <= time && time <= to,
        Window::AsOf(at) => time <= at,
    };
    if captures.is_empty() {
        ask::note(&format!("{} was never captured; use --in to see the pages that link to it", found.url));
    } else if !captures.iter().any(|capture| is_in_window(capture.time)) {
        ask::note(&format!("{} has {} captures, none of them in this window", found.url, captures.len()));
    } else if ask::is_unknown(links, found.uid, window)? {
        ask::note("the latest capture is a revisit whose original is not in the store: its links are unknown");
    }
    Ok(())
}
