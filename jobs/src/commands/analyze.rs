//! `webstrata analyze`: algorithms on the graph at a time, and statistics of how it changes.

use crate::args::{AsOfArgs, Format, FormatArgs, Outcome, Usage, interval, location, time_from, time_to, unfit};
use crate::running::{Run, RunArgs};
use clap::{Args, ValueEnum};
use indicatif::HumanCount;
use serde_json::json;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use webstrata_analysis::Error;
use webstrata_analysis::{
    Analysis, AnalyzeOptions, AnalyzeReport, DateReport, Dates, Fact, Fold, Iterations, NodeRule, Sheet, SheetColumn,
    TableFormat, Target, analyze, format_of,
};
use webstrata_layers::{Location, RangeLength, Window, format_time};

const EXAMPLES: &str = "\
The nodes of the graph are the URLs of that time: those with a page, and those
that a page links to. --nodes all adds the URLs of all other times.

--out writes Parquet, CSV or Arrow, depending on the ending of the file name:
.parquet, .csv, .csv.gz, .arrow or .feather. There is one row per node,
with uid, url and the values. With --every, there is one row per date and node, and
the column `at` comes first. growth writes one row per period, menus one row
per link of a menu. `--out -` writes CSV to standard output, and the report
then goes to standard error. --format is the format of the report.

Examples:
  webstrata analyze STORE pagerank --at 2010 --out ranks.parquet
  webstrata analyze STORE scc --every year
  webstrata analyze STORE degrees --from 2006 --to 2008 --out degrees.csv
  webstrata analyze STORE mortality
  webstrata analyze STORE rot --every year
  webstrata analyze STORE rot --at 2012 --by host --out rot.csv
  webstrata analyze STORE menus --share 0.5 --min-pages 20 --out menus.parquet";

/// Arguments of `analyze`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AnalyzeArgs {
    /// Store: a directory, or s3://bucket/prefix
    #[arg(value_parser = location())]
    pub(crate) store: Location,
    /// Analysis to run
    #[arg(value_enum)]
    pub(crate) name: Name,
    /// Graph as of this time [default: the latest]
    #[arg(long, value_name = "T", value_parser = time_to, conflicts_with_all = ["from", "to", "every"])]
    pub(crate) at: Option<i64>,
    #[command(flatten)]
    pub(crate) as_of: AsOfArgs,
    /// Links captured at or after this time; with --every, the first date
    #[arg(long, value_name = "T", value_parser = time_from)]
    pub(crate) from: Option<i64>,
    /// Links captured at or before this time; with --every, the last date
    #[arg(long, value_name = "T", value_parser = time_to)]
    pub(crate) to: Option<i64>,
    /// Analyze the graph at the end of every month, year, day, or N days; for growth, the length of
    /// a period
    #[arg(long, value_name = "LENGTH")]
    pub(crate) every: Option<RangeLength>,
    /// File for the values, or - for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Nodes of the graph: URLs of that time, or all URLs of the store
    #[arg(long, value_name = "NODES", value_enum, default_value_t)]
    pub(crate) nodes: NodesArg,
    /// Omit the column url
    #[arg(long, requires = "out")]
    pub(crate) no_urls: bool,
    /// pagerank: probability of following a link [default: 0.85]
    #[arg(long, value_name = "P", value_parser = share)]
    pub(crate) damping: Option<f64>,
    /// pagerank, hits: maximum number of iterations [default: 1000]
    #[arg(long, value_name = "N")]
    pub(crate) iterations: Option<usize>,
    /// pagerank, hits: stop when the sum of all changes is at most this [default: 1e-10]
    #[arg(long, value_name = "D")]
    pub(crate) tolerance: Option<f64>,
    /// harmonic: each counter has 2 to the power B registers of one byte [default: 8]
    #[arg(long, value_name = "B", value_parser = clap::value_parser!(u32).range(4..=14))]
    pub(crate) log2m: Option<u32>,
    /// rot: a row for each host, domain, or prefix:N, not for each URL
    #[arg(long, value_name = "WHAT")]
    pub(crate) by: Option<Fold>,
    /// menus: share of the pages that must have the links together [default: 0.8]
    #[arg(long, value_name = "P", value_parser = share)]
    pub(crate) share: Option<f64>,
    /// menus: minimum number of pages of a directory [default: 5]
    #[arg(long, value_name = "N")]
    pub(crate) min_pages: Option<u64>,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

/// What can be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Name {
    /// In-links and out-links of each URL
    Degrees,
    /// Probability that a random surfer is at a URL
    Pagerank,
    /// Hubs and authorities (HITS, Kleinberg)
    Hits,
    /// Hubs and authorities (SALSA, Lempel and Moran)
    Salsa,
    /// Strongly connected components
    Scc,
    /// Weakly connected components
    Wcc,
    /// Harmonic centrality, with HyperLogLog counters
    Harmonic,
    /// Triangles of links, without direction
    Triangles,
    /// Births and deaths of links, and their lifetimes
    Mortality,
    /// Links added and removed from capture to capture
    Churn,
    /// Links inside hosts and domains
    Locality,
    /// Pages that are gone, and links that lead to them
    Rot,
    /// Captures, pages, URLs and links by period
    Growth,
    /// Links that occur together on most pages of a directory
    Menus,
}

/// Which URLs are nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum NodesArg {
    /// URLs with a page at that time, and URLs that a page links to
    #[default]
    Dated,
    /// All URLs of the store
    All,
}

impl From<NodesArg> for NodeRule {
    fn from(nodes: NodesArg) -> Self {
        match nodes {
            NodesArg::Dated => NodeRule::OfDate,
            NodesArg::All => NodeRule::All,
        }
    }
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share: &f64| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

/// The analysis with its options. Options of another analysis are refused.
fn analysis(args: &AnalyzeArgs) -> Result<Analysis, Usage> {
    let AnalyzeArgs { name, .. } = *args;
    let iterates = matches!(name, Name::Pagerank | Name::Hits);
    let misplaced = [
        (args.damping.is_some() && name != Name::Pagerank, "--damping is an option of pagerank only"),
        (args.iterations.is_some() && !iterates, "--iterations is an option of pagerank and hits only"),
        (args.tolerance.is_some() && !iterates, "--tolerance is an option of pagerank and hits only"),
        (args.log2m.is_some() && name != Name::Harmonic, "--log2m is an option of harmonic only"),
        (args.share.is_some() && name != Name::Menus, "--share is an option of menus only"),
        (args.by.is_some() && name != Name::Rot, "--by is an option of rot only"),
        (
            name == Name::Rot && args.every.is_none() && (args.from.is_some() || args.to.is_some()),
            "rot is as of a time: use --at, or --every with --from and --to",
        ),
        (args.min_pages.is_some() && name != Name::Menus, "--min-pages is an option of menus only"),
        (
            args.every.is_some() && matches!(name, Name::Mortality | Name::Churn),
            "mortality and churn cover all dates together: omit --every",
        ),
        (
            name == Name::Growth && (args.at.is_some() || args.from.is_some() || args.to.is_some()),
            "growth covers all periods: omit --at, --from and --to",
        ),
    ];
    if let Some((_, text)) = misplaced.into_iter().find(|(wrong, _)| *wrong) {
        return Err(Usage(text));
    }
    let iterations = Iterations { most: args.iterations.unwrap_or(1000), tolerance: args.tolerance.unwrap_or(1e-10) };
    Ok(match name {
        Name::Degrees => Analysis::Degrees,
        Name::Pagerank => Analysis::PageRank(args.damping.unwrap_or(0.85), iterations),
        Name::Hits => Analysis::Hits(iterations),
        Name::Salsa => Analysis::Salsa,
        Name::Scc => Analysis::Scc,
        Name::Wcc => Analysis::Wcc,
        Name::Harmonic => Analysis::Harmonic(args.log2m.unwrap_or(8)),
        Name::Triangles => Analysis::Triangles,
        Name::Mortality => Analysis::Mortality,
        Name::Churn => Analysis::Churn,
        Name::Locality => Analysis::Locality,
        Name::Rot => Analysis::Rot(args.by),
        Name::Growth => Analysis::Growth(args.every.unwrap_or(RangeLength::Month)),
        Name::Menus => Analysis::Menus(args.share.unwrap_or(0.8), args.min_pages.unwrap_or(5)),
    })
}

fn dates(args: &AnalyzeArgs, analysis: Analysis) -> Result<Dates, Usage> {
    let (from, to) = interval(args.from, args.to)?;
    args.as_of.need(args.at.is_some() || (args.every.is_some() && analysis.is_dated()))?;
    let (max_age, failures) = (args.as_of.max_age, args.as_of.rule());
    Ok(match (args.every, args.at) {
        (Some(length), _) if analysis.is_dated() => Dates::Every { length, from, to, max_age, failures },
        (_, Some(at)) => Dates::One(args.as_of.window(at)),
        // What changes is seen in all of a time, what is there is there at its end.
        _ if args.from.is_some() || args.to.is_some() || !analysis.is_dated() => Dates::One(Window::Seen { from, to }),
        _ => Dates::One(Window::as_of(i64::MAX)),
    })
}

pub(crate) fn run(args: &AnalyzeArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let analysis = analysis(args)?;
    let options = AnalyzeOptions {
        run: args.run.options(&args.store)?,
        analysis,
        dates: dates(args, analysis)?,
        out: args.out.as_deref().map(target).transpose()?,
        nodes: args.nodes.into(),
        urls: !args.no_urls,
    };
    run_shown(&options, &args.run, args.format.format, out)
}

/// The target of a table, if its name selects a format.
pub(crate) fn target(path: &Path) -> anyhow::Result<Target> {
    let target = Target::of(path);
    if let Target::File(path) = &target {
        format_of::<TableFormat>(path).map_err(unfit)?;
    }
    Ok(target)
}

/// Analyzes, and prints a summary: to standard error if the values go to standard output.
pub(crate) fn run_shown(
    options: &AnalyzeOptions,
    args: &RunArgs,
    format: Format,
    out: &mut dyn Write,
) -> anyhow::Result<Outcome> {
    let stream = BufWriter::new(io::stdout());
    let (analyzed, run) = args.shown(|progress| analyze(options, stream, progress))?;
    args.write_report(&run, analyzed.as_ref().err())?;
    let report = match analyzed {
        // A reader that closes the output early is no failure.
        Err(Error::Output { source, .. }) if source.kind() == io::ErrorKind::BrokenPipe => return Err(source.into()),
        analyzed => analyzed?,
    };
    let mut aside = io::stderr();
    let out = if options.out == Some(Target::Stream) { &mut aside } else { out };
    match format {
        Format::Text => print_text(&report, &run, options, out)?,
        Format::Json => print_json(&report, &run, &options.run.store, out)?,
    }
    Ok(Outcome::Done)
}

/// Characters of the head of a row, at most.
const HEAD_COLUMNS_MAX: usize = 40;
/// Rows of a sheet that fit on a screen.
const ROWS_SHOWN: usize = 12;
/// Dates that fit on a screen, from the last one back.
const DATES_SHOWN: usize = 24;

fn print_text(report: &AnalyzeReport, run: &Run, options: &AnalyzeOptions, out: &mut dyn Write) -> anyhow::Result<()> {
    let AnalyzeReport { analysis, epoch, urls, .. } = report;
    writeln!(
        out,
        "{}: {analysis} of epoch {epoch}, {} URLs, in {:.1} s",
        options.run.store,
        HumanCount(*urls),
        run.seconds
    )?;
    match &report.dates[..] {
        [date] => print_date(date, out)?,
        dates => print_dates(dates, out)?,
    }
    if let Some(Target::File(path)) = &options.out
        && report.rows > 0
    {
        writeln!(out, "{}: {} rows", path.display(), HumanCount(report.rows))?;
    }
    Ok(())
}

fn print_date(date: &DateReport, out: &mut dyn Write) -> anyhow::Result<()> {
    if let Some(nodes) = date.nodes {
        writeln!(out, "  {:<26}{:>16}", "nodes", HumanCount(nodes))?;
    }
    for Fact { name, value } in &date.facts {
        writeln!(out, "  {name:<26}{:>16}", number(*value))?;
    }
    if !date.top.is_empty() {
        writeln!(out, "  greatest {}", date.column)?;
    }
    for top in &date.top {
        let url: String = if top.url.chars().count() > 60 {
            top.url.chars().take(59).chain(['…']).collect()
        } else {
            top.url.clone()
        };
        writeln!(out, "  {:>14}  {url}", number(top.value))?;
    }
    if let Some(sheet) = &date.sheet {
        print_sheet(sheet, date.sheet_rows, out)?;
    }
    Ok(())
}

/// A line a date: the numbers of the whole graph, or the first URL.
fn print_dates(dates: &[DateReport], out: &mut dyn Write) -> anyhow::Result<()> {
    let hidden = dates.len().saturating_sub(DATES_SHOWN);
    if hidden > 0 {
        writeln!(out, "  {hidden} dates before these")?;
    }
    let shown = &dates[hidden..];
    let day = |date: &DateReport| date.at.map(format_time).unwrap_or_default().chars().take(10).collect::<String>();
    if shown.iter().all(|date| date.facts.is_empty()) {
        for date in shown {
            let first = date.top.first().map_or(String::new(), |top| format!("{} {}", number(top.value), top.url));
            writeln!(out, "{}", format!("  {} {first}", day(date)).chars().take(80).collect::<String>())?;
        }
        return Ok(());
    }
    let names: Vec<&str> = shown[0].facts.iter().map(|fact| &*fact.name).collect();
    let rows = shown.iter().map(|date| {
        let values = date.facts.iter().map(|fact| number(fact.value));
        (day(date), values.collect())
    });
    print_table(&names, &rows.collect::<Vec<_>>(), out)
}

/// Prints rows with a head each, and values in columns. The name of a column stands above it, in short lines.
fn print_table(names: &[&str], rows: &[(String, Vec<String>)], out: &mut dyn Write) -> anyhow::Result<()> {
    let names: Vec<Vec<String>> = names.iter().map(|name| short_lines(name)).collect();
    let head = rows.iter().map(|row| row.0.chars().count()).max().unwrap_or(0).min(HEAD_COLUMNS_MAX);
    let widths = names.iter().enumerate().map(|(at, words)| {
        let texts = rows.iter().filter_map(|(_, values)| values.get(at)).map(String::len);
        texts.chain(words.iter().map(|word| word.len())).max().unwrap_or(0)
    });
    let widths: Vec<usize> = widths.collect();
    let lines = names.iter().map(Vec::len).max().unwrap_or(0);
    for line in 0..lines {
        let words =
            names.iter().map(|words| words.get((line + words.len()).wrapping_sub(lines)).map_or("", |word| word));
        let words: Vec<String> = words.zip(&widths).map(|(word, width)| format!(" {word:>width$}")).collect();
        writeln!(out, "  {:head$}{}", "", words.concat().trim_end())?;
    }
    for (name, values) in rows {
        let values: Vec<String> =
            values.iter().zip(&widths).map(|(value, width)| format!(" {value:>width$}")).collect();
        let name = if name.chars().count() > head {
            name.chars().take(head - 1).chain(['…']).collect()
        } else {
            name.clone()
        };
        writeln!(out, "  {name:head$}{}", values.concat())?;
    }
    Ok(())
}

/// A name in lines of about eight characters, broken between words.
fn short_lines(name: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in name.split([' ', '_']) {
        match lines.last_mut().filter(|line| line.len() + 1 + word.len() <= 8) {
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

fn print_sheet(sheet: &Sheet, sheet_rows: usize, out: &mut dyn Write) -> anyhow::Result<()> {
    writeln!(out, "  {}", sheet.title)?;
    // Texts and times are the heads of rows.
    let is_head = |column: &SheetColumn| matches!(column, SheetColumn::Texts(_) | SheetColumn::Times(_));
    let (heads, columns): (Vec<_>, Vec<_>) = sheet.columns.iter().partition(|(_, column)| is_head(column));
    let names: Vec<&str> = columns.iter().map(|(name, _)| &**name).collect();
    // Long ones are shown by rows that lie as far apart.
    let step = sheet.rows().div_ceil(ROWS_SHOWN).max(1);
    let rows = (0..sheet.rows()).step_by(step).map(|row| {
        let head: Vec<String> = heads.iter().map(|(_, column)| cell(column, row)).collect();
        (head.join(" "), columns.iter().map(|(_, column)| cell(column, row)).collect())
    });
    print_table(&names, &rows.collect::<Vec<_>>(), out)?;
    if sheet_rows > sheet.rows().min(ROWS_SHOWN) {
        writeln!(out, "  of {} rows", HumanCount(sheet_rows as u64))?;
    }
    Ok(())
}

fn cell(column: &SheetColumn, row: usize) -> String {
    match column {
        SheetColumn::Counts(values) => HumanCount(values[row]).to_string(),
        SheetColumn::Urls(uids) => HumanCount(uids[row].0).to_string(),
        SheetColumn::Reals(values) => number(values[row]),
        SheetColumn::Times(values) => format_time(values[row]).chars().take(10).collect(),
        SheetColumn::Texts(values) => values[row].clone(),
    }
}

/// Whole numbers with separators, others with six digits that count.
fn number(value: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and in the range")]
    if (0.0..9e15).contains(&value) && value.fract() == 0.0 {
        return HumanCount(value as u64).to_string();
    }
    if value.abs() < 1e-3 { format!("{value:.5e}") } else { format!("{value:.6}") }
}

fn json_of(column: &SheetColumn) -> serde_json::Value {
    match column {
        SheetColumn::Counts(values) => json!(values),
        SheetColumn::Urls(uids) => json!(uids),
        SheetColumn::Reals(values) => json!(values),
        SheetColumn::Times(values) => values.iter().map(|&time| format_time(time)).collect(),
        SheetColumn::Texts(values) => json!(values),
    }
}

fn print_json(report: &AnalyzeReport, run: &Run, store: &Location, out: &mut dyn Write) -> anyhow::Result<()> {
    let dates = report.dates.iter().map(|date| {
        let facts: serde_json::Map<_, _> =
            date.facts.iter().map(|fact| (fact.name.replace(' ', "_"), json!(fact.value))).collect();
        let sheet = date.sheet.as_ref().map(|sheet| {
            let columns: serde_json::Map<_, _> =
                sheet.columns.iter().map(|(name, column)| (name.clone(), json_of(column))).collect();
            json!({"title": sheet.title, "rows": date.sheet_rows, "columns": columns})
        });
        json!({
            "at": date.at.map(format_time),
            "nodes": date.nodes,
            "facts": facts,
            "top": {"by": date.column, "urls": date.top},
            "sheet": sheet,
        })
    });
    let value = json!({
        "store": store.to_string(),
        "analysis": report.analysis,
        "epoch": report.epoch,
        "urls": report.urls,
        "seconds": run.seconds,
        "dates": dates.collect::<Vec<_>>(),
        "rows": report.rows,
    });
    writeln!(out, "{value}")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(number(1234567.0), "1,234,567");
        assert_eq!(number(0.25), "0.250000");
        assert_eq!(number(0.000_012_345), "1.23450e-5");
        assert_eq!(number(0.0), "0");
    }
}
