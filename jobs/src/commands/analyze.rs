//! `webstrata analyze`: algorithms on the graph at a time, and statistics of how it changes.

use crate::args::{Format, FormatArgs, Outcome, Usage, interval, location, time_from, time_to, unfit};
use crate::running::{Run, RunArgs};
use clap::{Args, ValueEnum};
use indicatif::HumanCount;
use serde_json::json;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use webstrata_analysis::Error;
use webstrata_analysis::{
    Analysis, AnalyzeOptions, AnalyzeReport, DateReport, Dates, Fact, Iterations, Sheet, SheetColumn, TableFormat,
    Target, analyze, format_of,
};
use webstrata_layers::{Location, RangeLength, Window, format_time};

const EXAMPLES: &str = "\
The graph has every URL of the store, including URLs without links at that time.

--out writes Parquet, CSV or Arrow, depending on the ending of the file name:
.parquet, .csv, .csv.gz, .arrow or .feather. There is one row per URL, with
uid, url and the values. With --every, there is one row per date and URL, and
the column `at` comes first. growth writes one row per period, menus one row
per link of a menu. `--out -` writes CSV to standard output, and the report
then goes to standard error. --format is the format of the report.

Examples:
  webstrata analyze STORE pagerank --at 2010 --out ranks.parquet
  webstrata analyze STORE scc --every year
  webstrata analyze STORE degrees --from 2006 --to 2008 --out degrees.csv
  webstrata analyze STORE mortality
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
    /// Captures, pages, URLs and links by period
    Growth,
    /// Links that occur together on most pages of a directory
    Menus,
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
        Name::Growth => Analysis::Growth(args.every.unwrap_or(RangeLength::Month)),
        Name::Menus => Analysis::Menus(args.share.unwrap_or(0.8), args.min_pages.unwrap_or(5)),
    })
}

fn dates(args: &AnalyzeArgs, analysis: Analysis) -> Result<Dates, Usage> {
    let (from, to) = interval(args.from, args.to)?;
    Ok(match (args.every, args.at) {
        (Some(length), _) if analysis.is_dated() => Dates::Every { length, from, to },
        (_, Some(at)) => Dates::One(Window::AsOf(at)),
        // What changes is seen in all of a time, what is there is there at its end.
        _ if args.from.is_some() || args.to.is_some() || !analysis.is_dated() => Dates::One(Window::Seen { from, to }),
        _ => Dates::One(Window::AsOf(i64::MAX)),
    })
}

pub(crate) fn run(args: &AnalyzeArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let analysis = analysis(args)?;
    let options = AnalyzeOptions {
        run: args.run.options(&args.store)?,
        analysis,
        dates: dates(args, analysis)?,
        out: args.out.as_deref().map(target).transpose()?,
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

/// A line a date: the first numbers of the whole graph, or the first URL.
fn print_dates(dates: &[DateReport], out: &mut dyn Write) -> anyhow::Result<()> {
    let hidden = dates.len().saturating_sub(DATES_SHOWN);
    if hidden > 0 {
        writeln!(out, "  {hidden} dates before these")?;
    }
    for date in &dates[hidden..] {
        let at = date.at.map(format_time).unwrap_or_default();
        let facts = date.facts.iter().map(|fact| format!("{} {}", fact.name, number(fact.value)));
        let facts = facts.collect::<Vec<_>>().join(", ");
        let first = date.top.first().map_or(String::new(), |top| format!("{} {}", number(top.value), top.url));
        let line: String = format!("  {} {}", at.get(..8).unwrap_or(&at), if facts.is_empty() { first } else { facts })
            .chars()
            .take(80)
            .collect();
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn print_sheet(sheet: &Sheet, rows: usize, out: &mut dyn Write) -> anyhow::Result<()> {
    writeln!(out, "  {}", sheet.title)?;
    // Texts come last, as long as they are.
    let mut columns: Vec<&(String, SheetColumn)> = sheet.columns.iter().collect();
    columns.sort_by_key(|(_, column)| matches!(column, SheetColumn::Texts(_)));
    let head: Vec<String> = columns.iter().map(|(name, _)| format!("{name:>10}")).collect();
    writeln!(out, "  {}", head.join(" "))?;
    // Long ones are shown by rows that lie as far apart.
    let step = sheet.rows().div_ceil(ROWS_SHOWN).max(1);
    for row in (0..sheet.rows()).step_by(step) {
        let cells = columns.iter().map(|(_, column)| format!("{:>10}", cell(column, row)));
        let line: String = cells.collect::<Vec<_>>().join(" ").chars().take(78).collect();
        writeln!(out, "  {line}")?;
    }
    if rows > sheet.rows().min(ROWS_SHOWN) {
        writeln!(out, "  of {} rows", HumanCount(rows as u64))?;
    }
    Ok(())
}

fn cell(column: &SheetColumn, row: usize) -> String {
    match column {
        SheetColumn::Counts(values) => HumanCount(values[row]).to_string(),
        SheetColumn::Urls(uids) => HumanCount(uids[row].0).to_string(),
        SheetColumn::Reals(values) => number(values[row]),
        SheetColumn::Times(values) => format_time(values[row]).chars().take(8).collect(),
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
