//! `webstrata links`: what a page linked to, or what linked to a URL, at a time.
//!
//! Printed in the order of the store: URLs of one host stand together.

use crate::args::{Format, FormatArgs, Outcome, interval, time_from, time_to};
use crate::ask::{self, Found, SourceArgs};
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
    let asked = ask::find(&*reader, &args.url)?;
    if args.lifespans {
        print_lifespans(&*reader, args, &asked, out)?;
    } else {
        print_links(&*reader, args, &asked, window, out)?;
    }
    if args.format.format == Format::Text {
        remarks(&*reader, args, &asked, window)?;
    }
    Ok(Outcome::Done)
}

fn print_links(
    links: &dyn Links,
    args: &LinksArgs,
    asked: &Found,
    window: Window,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let direction = match (args.inward, args.range_precision) {
        (false, _) => Direction::Out,
        (true, false) => Direction::In(Precision::Exact),
        (true, true) => Direction::In(Precision::Range),
    };
    if args.count {
        let count = links.degree(asked.uid, direction, window)?;
        if args.format.format == Format::Json {
            let mut answer = header(links, args, asked);
            answer["count"] = json!(count);
            writeln!(out, "{answer}")?;
        } else {
            writeln!(out, "{count}")?;
        }
        return Ok(());
    }
    let mut found = links.links(asked.uid, direction, window)?;
    if let Some(count) = args.sample {
        let sampling = if args.random { Sampling::Random } else { Sampling::Consistent };
        Sample { count, sampling, seed: sampling.seed(args.seed) }.draw(asked.uid, &mut found);
    }
    if args.format.format == Format::Json {
        let urls = links.urls_of(&found)?;
        let mut answer = header(links, args, asked);
        answer["links"] = json!(urls);
        if !args.inward && ask::is_unknown(links, asked.uid, window)? {
            answer["unknown"] = json!(true);
        }
        writeln!(out, "{answer}")?;
    } else {
        for url in links.urls_of(&found)? {
            writeln!(out, "{url}")?;
        }
    }
    Ok(())
}

fn print_lifespans(links: &dyn Links, args: &LinksArgs, asked: &Found, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut spans = if args.inward {
        let mut spans = Vec::new();
        for source in links.in_links(asked.uid, Window::Seen { from: i64::MIN, to: i64::MAX }, Precision::Exact)? {
            let own = links.lifespans(source)?.into_iter().filter(|span| span.link == asked.uid);
            spans.extend(own.map(|span| Lifespan { link: source, ..span }));
        }
        spans
    } else {
        links.lifespans(asked.uid)?
    };
    let (from, to) = interval(args.from, args.to)?;
    spans.retain(|span| span.first <= to && span.last >= from);
    let mut list = Vec::new();
    let urls = links.urls_of(&spans.iter().map(|span| span.link).collect::<Vec<_>>())?;
    for (span, url) in spans.into_iter().zip(urls) {
        let (first, last) = (format_time(span.first), format_time(span.last));
        if args.format.format == Format::Json {
            list.push(json!({"link": url, "first": first, "last": last}));
        } else {
            writeln!(out, "{first} {last} {url}")?;
        }
    }
    if args.format.format == Format::Json {
        let mut answer = header(links, args, asked);
        answer["lifespans"] = Value::Array(list);
        writeln!(out, "{answer}")?;
    }
    Ok(())
}

fn header(links: &dyn Links, args: &LinksArgs, asked: &Found) -> Value {
    let mut answer =
        json!({"url": asked.url, "epoch": links.epoch(), "direction": if args.inward { "in" } else { "out" }});
    for (name, time) in [("from", args.from), ("to", args.to), ("at", args.at)] {
        if let Some(time) = time {
            answer[name] = json!(format_time(time));
        }
    }
    answer
}

/// Says, to people, why an answer about a page's links may be empty.
fn remarks(links: &dyn Links, args: &LinksArgs, asked: &Found, window: Window) -> anyhow::Result<()> {
    if args.inward {
        return Ok(());
    }
    let captures = links.captures(asked.uid)?;
    let inside = |time: i64| match window {
        Window::Seen { from, to } => from <= time && time <= to,
        Window::AsOf(at) => time <= at,
    };
    if captures.is_empty() {
        ask::note(&format!("{} was never captured; use --in to see the pages that link to it", asked.url));
    } else if !captures.iter().any(|capture| inside(capture.time)) {
        ask::note(&format!("{} has {} captures, none of them in this window", asked.url, captures.len()));
    } else if ask::is_unknown(links, asked.uid, window)? {
        ask::note("the latest capture is a revisit whose original is not in the store: its links are unknown");
    }
    Ok(())
}
