//! `webstrata neighbourhood`: the pages, directories, hosts or domains around a page, the links between them, and when
//! these were there.
//!
//! Memory: the links of the pages next to the page, and the URLs of everything that is found.

use crate::args::units::UnitArg;
use crate::args::{Outcome, limit, time_to};
use crate::ask::{self, SourceArgs};
use crate::commands::backlinks::TableFormat;
use crate::table::{Column, Table};
use clap::Args;
use indicatif::HumanCount;
use serde_json::json;
use std::io::Write;
use webstrata_analysis::csv_text;
use webstrata_layers::{Folding, Linking, NeighbourhoodQuestion, NeighbourhoodSearch, answer_of, counted, format_time};
use webstrata_url::domain_of;

const ABOUT: &str = "\
The first ring is what the page links to and what links to it, the second what
pages of the first link to. A link stands from the first capture that has it
until the first one that has it no more. Links of a page to itself, and with
--unit inside a directory, host or domain, are left out. Of more nodes than
--limit allows, the longest-lived are kept.

Columns: first second of the link, first second at which it no longer stood
(empty if no capture shows that), the page that links, the page linked to, and
whether it links as of --at, or at its latest capture: yes, no or unknown. Text
marks with ? what is unknown, because the latest capture of the page has
unknown links; JSON and CSV have the time since when as `unknown`.

Examples:
  webstrata neighbourhood STORE http://example.org/ --at 2008
  webstrata neighbourhood STORE http://example.org/ --unit host
  webstrata neighbourhood STORE http://example.org/ --limit 0 --format csv";

/// Arguments of `neighbourhood`.
#[derive(Args, Debug)]
#[command(after_help = ABOUT)]
pub(crate) struct NeighbourhoodArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// URL of the page
    pub(crate) url: String,
    /// Only links that stand at this time, or of which that is unknown
    #[arg(long, value_name = "T", value_parser = time_to)]
    pub(crate) at: Option<i64>,
    /// Rings around the page: 1 or 2
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=2))]
    pub(crate) hops: u8,
    /// What a node is
    #[arg(long, value_name = "WHAT", value_enum, default_value_t)]
    pub(crate) unit: UnitArg,
    /// If there are more than N nodes, take directories, hosts or domains: the finest with at most N
    #[arg(long, value_name = "N", value_parser = limit)]
    pub(crate) fold: Option<usize>,
    /// Keep at most N nodes, 0 for all [default: 20 as text, else all]
    #[arg(long, value_name = "N", value_parser = limit)]
    pub(crate) limit: Option<usize>,
    /// How to print the result
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) format: TableFormat,
}

pub(crate) fn run(args: &NeighbourhoodArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let links = args.source.open(ask::READ_MEMORY)?;
    let page = ask::find(&*links, &args.url)?;
    let limit = args.limit.unwrap_or(if args.format == TableFormat::Text { 20 } else { usize::MAX });
    let question = NeighbourhoodQuestion { centre: page.uid, is_wide: args.hops == 2, at: args.at, limit };
    let found = answer_of(&*links, NeighbourhoodSearch::new(question))?;
    let uids = found.nodes();
    let mut folding = Folding::new(args.unit.grain(), args.fold, domain_of);
    links.urls_of(uids)?.iter().for_each(|url| folding.add(url));
    let (grain, groups) = folding.finish();
    let (around, names) = (found.by_group(grain, &groups.of), groups.names);
    let name = |place: usize| names[around.nodes[place]].as_str();
    let mut csv = csv::Writer::from_writer(Vec::new());
    if args.format == TableFormat::Csv {
        csv.write_record(["from", "until", "source", "target", "links", "unknown"])?;
    }
    let mut table = Table::new([Column::word("from"), Column::word("until"), Column::rest("link")]);
    for edge in &around.edges {
        let (from, until) = (format_time(edge.from), edge.until.map(format_time));
        let (source, target) = (name(edge.source), name(edge.target));
        let (linking, unknown) = (edge.linking(args.at), edge.unknown.map(format_time));
        match args.format {
            TableFormat::Text => {
                let until = until.as_deref().map_or("", |until| &until[..10]);
                let sign = if linking == Linking::Unknown { "?" } else { " " };
                table.row([from[..10].to_owned(), format!("{until:<10}{sign}"), format!("{source} -> {target}")]);
            }
            TableFormat::Json => {
                let mut line = json!({"from": from, "until": until, "source": source, "target": target});
                line["links"] = json!(linking);
                if let Some(since) = unknown {
                    line["unknown"] = json!(since);
                }
                writeln!(out, "{line}")?;
            }
            TableFormat::Csv => {
                let (until, unknown) = (until.unwrap_or_default(), unknown.unwrap_or_default());
                let (source, target) = (csv_text(source), csv_text(target));
                csv.write_record([from.as_str(), &until, &source, &target, linking.name(), &unknown])?;
            }
        }
    }
    table.print(out)?;
    out.write_all(&csv.into_inner()?)?;
    let unknown = found.unknown();
    if around.edges.is_empty() && args.format == TableFormat::Text {
        let link = if unknown.is_empty() { "link" } else { "known link" };
        ask::note(&format!("no {link} of {} to or from another node; --at asks about one date", page.url));
    }
    if let Some(first) = links.urls_of(&unknown[..unknown.len().min(1)])?.first() {
        let when = if args.at.is_some() { "at that time" } else { "in some captures" };
        let others = unknown.len() - 1;
        let more = if others > 0 { format!(" and of {}", counted(others, "other page")) } else { String::new() };
        ask::note(&format!("links unknown {when} of {first}{more}: there may be more links"));
    }
    if around.left_out > 0 {
        let nodes = counted(around.nodes.len(), "node");
        ask::note(&format!("{nodes}; {} more are left out, --limit 0 keeps all", HumanCount(around.left_out as u64)));
    }
    if found.unread() > 0 {
        let pages = counted(found.unread(), "page");
        ask::note(&format!("the links of {pages} next to it were not read; --at asks for one date"));
    }
    Ok(Outcome::Done)
}
