//! `webstrata backlinks`: the pages, hosts or domains that link to a URL, a host or a domain, and since when.
//!
//! Without `--period` it prints rows: pages, hosts or domains. With `--period` it prints how many of these link in each
//! period. Memory: the UIDs of the pages that link, and the rows that are printed.

use crate::args::units::{PeriodArg, UnitArg, page_host_or_domain};
use crate::args::{Outcome, interval, limit, time_from, time_to};
use crate::ask::matching::{Matching, TargetArg};
use crate::ask::{self, SourceArgs};
use crate::table::{Column, Table};
use anyhow::bail;
use clap::{Args, ValueEnum};
use indicatif::HumanCount;
use serde_json::json;
use std::io::Write;
use std::ops::Range;
use webstrata_analysis::csv_text;
use webstrata_layers::answers::backlinks::Row;
use webstrata_layers::{
    Event, Linking, Links, Order, Period, RangeLength, Ranking, Referrer, Referrers, Scope, Uid, Unit, answer_of,
    counted, format_time,
};
use webstrata_url::domain_of;

const ABOUT: &str = "\
A stay is a stretch of time in which a page links to the target. It is found if
the first capture of the page has the link already, new if earlier captures did
not have it, returned if the page had linked before, and lost when a capture
has the link no more. While the latest capture has unknown links, it is unknown
whether the page links; a stay is not lost by that.

Rows:   first and last capture with a link, a + if it links at its latest
        capture (or as of --to), a ? if that is unknown, the referrer, its
        pages or its links to the target. JSON and CSV say yes, no or unknown
        in `links`, and since when it is unknown in `unknown`
--period:
        at the end of each period, how many link and of how many that is
        unknown; and in it, how many were found, new, returned, lost

Examples:
  webstrata backlinks STORE example.org
  webstrata backlinks STORE example.org --unit domain --order most
  webstrata backlinks STORE example.org --period month --format csv
  webstrata backlinks STORE example.org --lost --from 2008 --to 2008
  webstrata backlinks STORE http://example.org/news/ --match prefix
  webstrata backlinks STORE http://example.org/ --match surt
  webstrata backlinks STORE example.org --source blog.example.com --source-match host";

/// Arguments of `backlinks`.
#[derive(Args, Debug)]
#[command(after_help = ABOUT)]
pub(crate) struct BacklinksArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Target of the links: a domain, or a URL with its scheme or path
    pub(crate) target: String,
    /// Which URLs are the target [default: domain for a name without a path, else exact]
    #[arg(long = "match", value_name = "WHAT", value_enum)]
    pub(crate) matching: Option<TargetArg>,
    /// Count only pages of this domain or URL, as if the store had no others
    #[arg(id = "source", long = "source", value_name = "SOURCE")]
    pub(crate) of_source: Option<String>,
    /// Which pages are the source [default: as for --match]
    #[arg(long = "source-match", value_name = "WHAT", value_enum, requires = "source")]
    pub(crate) source_matching: Option<TargetArg>,
    /// Count pages of the target's own host or domain, too
    #[arg(long)]
    pub(crate) internal: bool,
    /// What is counted and listed
    #[arg(long, value_name = "WHAT", default_value = "page", value_parser = page_host_or_domain())]
    pub(crate) unit: UnitArg,
    /// Print how many link, period by period
    #[arg(long, value_name = "PERIOD", value_enum)]
    pub(crate) period: Option<PeriodArg>,
    /// Only rows that began to link, after captures without the link
    #[arg(long, group = "event", conflicts_with = "period")]
    pub(crate) new: bool,
    /// Only rows that linked again
    #[arg(long, group = "event", conflicts_with = "period")]
    pub(crate) returned: bool,
    /// Only rows that ceased to link
    #[arg(long, group = "event", conflicts_with = "period")]
    pub(crate) lost: bool,
    /// Only rows that link as of --to
    #[arg(long, group = "event", conflicts_with = "period")]
    pub(crate) standing: bool,
    /// Only rows that began or ceased to link at or after this time
    #[arg(long, value_name = "T", value_parser = time_from, conflicts_with = "period")]
    pub(crate) from: Option<i64>,
    /// Only rows that began or ceased to link at or before this time
    #[arg(long, value_name = "T", value_parser = time_to, conflicts_with = "period")]
    pub(crate) to: Option<i64>,
    /// Which rows are printed first
    #[arg(long, value_name = "WHICH", value_enum, default_value_t, conflicts_with = "period")]
    pub(crate) order: OrderArg,
    /// Print at most N rows, 0 for all [default: 20 as text, else all]
    #[arg(long, value_name = "N", value_parser = limit, conflicts_with = "period")]
    pub(crate) limit: Option<usize>,
    /// How to print the result
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) format: TableFormat,
}

/// Which rows are printed first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OrderArg {
    /// Who linked first
    #[default]
    First,
    /// Who linked last
    Last,
    /// Who has the most pages, or links to the target
    Most,
    /// By URL: pages of one host together
    Key,
}

impl From<OrderArg> for Order {
    fn from(order: OrderArg) -> Self {
        match order {
            OrderArg::First => Self::First,
            OrderArg::Last => Self::Last,
            OrderArg::Most => Self::Most,
            OrderArg::Key => Self::Key,
        }
    }
}

/// How a table is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TableFormat {
    /// Text, for people
    #[default]
    Text,
    /// JSON, one object per line
    Json,
    /// CSV with a header
    Csv,
}

pub(crate) fn run(args: &BacklinksArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let interval = match (args.from, args.to) {
        (None, None) => (i64::MIN, i64::MAX),
        (from, to) => interval(from, to)?,
    };
    let links = args.source.open(ask::READ_MEMORY)?;
    let (target, scope) = target_of(&*links, args)?;
    let unit = args.unit.of_backlinks();
    let period = args.period.map_or(RangeLength::Month, PeriodArg::length);
    let limit = args.limit.unwrap_or(if args.format == TableFormat::Text { 20 } else { usize::MAX });
    let limit = if args.period.is_some() { 0 } else { limit };
    let (event, order) = (event_of(args), args.order.into());
    let ranking = Ranking { unit, domain_of, period, event, interval, order, after: None, limit };
    let found = answer_of(&*links, Referrers::new(&target, &scope, ranking))?;
    if let Some(period) = args.period {
        print_series(&found.periods, (period, args.format), out)?;
        return Ok(Outcome::Done);
    }
    let rows = &found.rows;
    let urls = links.urls_of(&rows.iter().map(|row| row.page).collect::<Vec<_>>())?;
    print_rows(rows, &urls, (args.format, interval.1), out)?;
    if args.format == TableFormat::Text {
        let (selected, of) = (found.selected, counted(found.total, unit.name()));
        let with = if unit == Unit::Page { String::new() } else { format!(" with {}", counted(found.pages, "page")) };
        let text = match rows.len() {
            // A note has already given the reason.
            0 if scope.within.as_ref().is_some_and(Vec::is_empty) => return Ok(Outcome::Done),
            0 if found.total == 0 => {
                let source =
                    args.of_source.as_ref().map_or_else(String::new, |source| format!(" of {}", source.trim()));
                let own = if args.internal { "" } else { "; --internal also counts the target's own pages" };
                format!("no page{source} links there{own}")
            }
            shown if (shown as u64) < selected => {
                format!("{shown} of {} are shown; --limit 0 prints all", counted(selected, "row"))
            }
            _ if selected < found.total => format!("{} of {of}{with}", HumanCount(selected)),
            _ => return Ok(Outcome::Done),
        };
        ask::note(&text);
    }
    Ok(Outcome::Done)
}

fn event_of(args: &BacklinksArgs) -> Event {
    match (args.new, args.returned, args.lost, args.standing) {
        (true, ..) => Event::New,
        (_, true, ..) => Event::Returned,
        (_, _, true, _) => Event::Lost,
        (.., true) => Event::Standing,
        _ => Event::Any,
    }
}

/// The UIDs of the target, and the pages that count.
fn target_of(links: &dyn Links, args: &BacklinksArgs) -> anyhow::Result<(Vec<Range<Uid>>, Scope)> {
    let Matching { matched, url, uids: target } =
        Matching::of(links, (&args.target, args.matching), ["target", "--match"])?;
    if target.is_empty() {
        bail!("nothing in the store matches {}, neither as a page nor as the target of a link", args.target.trim());
    }
    let within = args.of_source.as_deref().map(|source| uids_of_source(links, (source, args.source_matching)));
    let except = match matched.own_pages(&url) {
        _ if args.internal => Vec::new(),
        Some(prefix) => links.with_prefix(&prefix)?,
        None => target.clone(),
    };
    Ok((target, Scope { within: within.transpose()?, except }))
}

/// The UIDs of the source. If the source is not in the store, returns no UIDs and prints a note.
fn uids_of_source(links: &dyn Links, source: (&str, Option<TargetArg>)) -> anyhow::Result<Vec<Range<Uid>>> {
    let found = Matching::of(links, source, ["--source", "--source-match"]);
    let uids = match found {
        Err(error) if error.is::<ask::NotInStore>() => {
            ask::note(&error.to_string());
            return Ok(Vec::new());
        }
        found => found?.uids,
    };
    if uids.is_empty() {
        ask::note(&format!("nothing in the store matches --source {}", source.0.trim()));
    }
    Ok(uids)
}

fn print_series(
    periods: &[(i64, Period)],
    (length, format): (PeriodArg, TableFormat),
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let counts =
        |period: &Period| [period.standing, period.unknown, period.found, period.new, period.returned, period.lost];
    const NAMES: [&str; 6] = ["standing", "unknown", "found", "new", "returned", "lost"];
    match format {
        TableFormat::Text => {
            let mut table = Table::new(std::iter::once(Column::word("period")).chain(NAMES.map(Column::number)));
            for (start, period) in periods {
                let counts = counts(period).map(|count| HumanCount(count).to_string());
                table.row(std::iter::once(length.name(*start)).chain(counts));
            }
            table.print(out)?;
        }
        TableFormat::Csv => {
            writeln!(out, "period,{}", NAMES.join(","))?;
            for (start, period) in periods {
                writeln!(out, "{},{}", length.name(*start), counts(period).map(|count| count.to_string()).join(","))?;
            }
        }
        TableFormat::Json => {
            for (start, period) in periods {
                let mut line = json!(period);
                line["period"] = json!(length.name(*start));
                writeln!(out, "{line}")?;
            }
        }
    }
    Ok(())
}

/// Prints rows. Each row says whether it links as of a time.
fn print_rows(
    rows: &[Referrer],
    urls: &[String],
    (format, to): (TableFormat, i64),
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let mut csv = csv::Writer::from_writer(Vec::new());
    let count = if rows.first().is_some_and(|row| row.name.is_some()) { "pages" } else { "links" };
    let columns = [Column::word("first"), Column::word("last"), Column::number(count), Column::rest("referrer")];
    let mut table = Table::new(columns);
    if format == TableFormat::Csv {
        csv.write_record([
            "referrer", "page", "pages", "targets", "began", "first", "last", "until", "links", "unknown",
        ])?;
    }
    for (row, url) in rows.iter().zip(urls) {
        let name = row.name.as_deref().unwrap_or(url);
        let (stays, linking) = (&row.backlink.stays, row.backlink.links_at(to));
        match format {
            TableFormat::Text => {
                let day =
                    |time: Option<i64>| time.map(format_time).unwrap_or_default().chars().take(10).collect::<String>();
                let (first, last) = (stays.first().map(|stay| stay.first), stays.last().map(|stay| stay.last));
                let sign = match linking {
                    Linking::Yes => "+",
                    Linking::No => " ",
                    Linking::Unknown => "?",
                };
                let count = if row.name.is_some() { row.pages } else { row.backlink.targets };
                table.row([day(first), day(last) + sign, HumanCount(count).to_string(), name.to_owned()]);
            }
            TableFormat::Json => {
                ask::print_json(&Row::of(row, url, to), out)?;
            }
            TableFormat::Csv => {
                // Intervals as in ISO 8601; two dots mean an open end.
                let end = |until: i64| if until < i64::MAX { format_time(until) } else { "..".to_owned() };
                let interval = |&(since, until): &(i64, i64)| format!("{}/{}", format_time(since), end(until));
                let unknown: Vec<String> = row.backlink.unknown.iter().map(interval).collect();
                for stay in stays {
                    csv.write_record([
                        &*csv_text(name),
                        url,
                        &row.pages.to_string(),
                        &row.backlink.targets.to_string(),
                        stay.began.name(),
                        &format_time(stay.first),
                        &format_time(stay.last),
                        &stay.until.map(format_time).unwrap_or_default(),
                        linking.name(),
                        &unknown.join(" "),
                    ])?;
                }
            }
        }
    }
    table.print(out)?;
    out.write_all(&csv.into_inner()?)?;
    Ok(())
}
