//! `webstrata ways`: the shortest paths of links from one page to another as of a date.

use crate::args::{Format, FormatArgs, Outcome, time_to};
use crate::ask::{self, SourceArgs};
use clap::Args;
use indicatif::HumanCount;
use std::io::Write;
use webstrata_layers::answers::around::Ways;
use webstrata_layers::read::question::limited;
use webstrata_layers::{AsOf, Uid, WaySearch, answer_of, counted};

const ABOUT: &str = "\
A way is a chain of links that all stand at --at. Each way is printed with its
pages in order; as text, an empty line is between two ways. The exit code is 1
if there is no way, or if that is unknown: pages that a way may lead over have
unknown links at that time. As JSON, `unknown` lists them.

Examples:
  webstrata ways STORE http://example.org/ http://example.net/ --at 2008
  webstrata ways STORE example.org example.net --hops 10 --limit 1";

/// Arguments of `ways`.
#[derive(Args, Debug)]
#[command(after_help = ABOUT)]
pub(crate) struct WaysArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// URL of the first page
    pub(crate) url: String,
    /// URL of the last page
    pub(crate) target: String,
    /// Only links that stand at this time [default: at the latest captures]
    #[arg(long, value_name = "T", value_parser = time_to)]
    pub(crate) at: Option<i64>,
    /// Most links of a way
    #[arg(long, value_name = "N", default_value_t = WaySearch::LINKS)]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=i64::from(WaySearch::LINKS_MAX)))]
    pub(crate) hops: u8,
    /// Print at most N ways, 0 for all, at most 1000
    #[arg(long, value_name = "N", default_value_t = WaySearch::WAYS)]
    #[arg(value_parser = clap::value_parser!(u64).range(0..=WaySearch::WAYS_MAX))]
    pub(crate) limit: u64,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

pub(crate) fn run(args: &WaysArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let links = args.source.open(ask::READ_MEMORY)?;
    let [from, to] = [&args.url, &args.target].map(|url| ask::find(&*links, url));
    let (from, to) = (from?, to?);
    let as_of = AsOf::new(args.at.unwrap_or(i64::MAX));
    let limit = usize::try_from(limited(args.limit, WaySearch::WAYS_MAX))?;
    let ends = (from.uid, to.uid);
    let search = WaySearch::new(ends, as_of, usize::from(args.hops), limit);
    let found = answer_of(&*links, search)?;
    let urls = |way: &Vec<Uid>| links.urls_of(way);
    let shown = found.ways.iter().map(urls).collect::<Result<Vec<_>, _>>()?;
    let unknown = links.urls_of(&found.unknown[..found.unknown.len().min(limit)])?;
    if args.format.format == Format::Json {
        let has_unknown = !unknown.is_empty();
        let answer = Ways {
            epoch: links.epoch(),
            url: from.url.clone(),
            target: to.url.clone(),
            links: found.links,
            is_cut: found.is_cut,
            ways: shown,
            unknown: has_unknown.then(|| unknown.clone()),
            unknown_pages: has_unknown.then_some(found.unknown.len()),
        };
        ask::print_json(&answer, out)?;
    } else {
        let texts: Vec<String> = shown.iter().map(|way| way.join("\n") + "\n").collect();
        write!(out, "{}", texts.join("\n"))?;
    }
    if found.links.is_some() {
        return Ok(Outcome::Done);
    }
    if let Some(page) = unknown.first() {
        let others = found.unknown.len() - 1;
        let more = if others > 0 { format!(" and {} more", HumanCount(others as u64)) } else { String::new() };
        let text = "unknown whether there is a way from";
        ask::note(&format!("{text} {} to {}: links unknown at that time of {page}{more}", from.url, to.url));
        return Ok(Outcome::Failed);
    }
    let bound =
        if found.is_cut { format!(" of at most {}; try --hops", counted(args.hops, "link")) } else { String::new() };
    ask::note(&format!("no way from {} to {}{bound}", from.url, to.url));
    Ok(Outcome::Failed)
}
