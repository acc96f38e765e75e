//! `webstrata analyze`: algorithms on the graph at a time, and statistics of its changes.

use crate::args::units::period;
use crate::args::{AsOfArgs, Format, FormatArgs, Outcome, Usage, interval, location, time_from, time_to, unfit};
use crate::running::{Run, RunArgs};
use clap::{Args, ValueEnum};
use serde_json::json;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use webstrata_analysis::Error;
use webstrata_analysis::{
    Analysis, AnalyzeOptions, AnalyzeReport, DAMPING, Dates, Fold, Iterations, LOG2_REGISTERS, NodeRule, SheetColumn,
    TableFormat, Target, analyze, format_of,
};
use webstrata_layers::{Location, RangeLength, Window, format_time};

mod text;

const EXAMPLES: &str = "\
The nodes of the graph are the URLs of that time: those with a page, and those
that a page links to. --nodes all adds the URLs of all other times.

--out writes Parquet, CSV or Arrow, depending on the ending of the file name:
.parquet, .csv, .csv.gz, .arrow or .feather. There is one row per node,
with uid, url and the values. With --period, there is one row per date and node,
and the column `at` comes first. growth writes one row per period, menus one row
per link of a menu. `--out -` writes CSV to standard output, and the report
then goes to standard error. --format is the format of the report.

Examples:
  webstrata analyze STORE pagerank --at 2010 --out ranks.parquet
  webstrata analyze STORE scc --period year
  webstrata analyze STORE degrees --from 2006 --to 2008 --out degrees.csv
  webstrata analyze STORE mortality
  webstrata analyze STORE rot --period year
  webstrata analyze STORE growth --bars
  webstrata analyze STORE rot --at 2012 --unit host --out rot.csv
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
    #[arg(long, value_name = "T", value_parser = time_to, conflicts_with_all = ["from", "to", "period"])]
    pub(crate) at: Option<i64>,
    #[command(flatten)]
    pub(crate) as_of: AsOfArgs,
    /// Links captured at or after this time; with --period, the first date
    #[arg(long, value_name = "T", value_parser = time_from)]
    pub(crate) from: Option<i64>,
    /// Links captured at or before this time; with --period, the last date
    #[arg(long, value_name = "T", value_parser = time_to)]
    pub(crate) to: Option<i64>,
    /// Analyze the graph at the end of every month, year, day, or N days; for growth, the length of
    /// a period
    #[arg(long, value_name = "LENGTH", value_parser = period)]
    pub(crate) period: Option<RangeLength>,
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
    pub(crate) unit: Option<Fold>,
    /// menus: share of the pages that must have the links together [default: 0.8]
    #[arg(long, value_name = "P", value_parser = share)]
    pub(crate) share: Option<f64>,
    /// menus: minimum number of pages of a directory [default: 5]
    #[arg(long, value_name = "N")]
    pub(crate) min_pages: Option<u64>,
    /// Draw the numbers over time, or the greatest values, as bars
    #[arg(long, conflicts_with = "format")]
    pub(crate) bars: bool,
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
    /// Links gained and lost, their lifetimes, and pages that died and returned
    Mortality,
    /// Links gained and lost from capture to capture
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

/// The analysis with its options. Rejects options of another analysis.
fn analysis(args: &AnalyzeArgs) -> Result<Analysis, Usage> {
    let AnalyzeArgs { name, .. } = *args;
    let iterates = matches!(name, Name::Pagerank | Name::Hits);
    let misplaced = [
        (args.damping.is_some() && name != Name::Pagerank, "--damping is an option of pagerank only"),
        (args.iterations.is_some() && !iterates, "--iterations is an option of pagerank and hits only"),
        (args.tolerance.is_some() && !iterates, "--tolerance is an option of pagerank and hits only"),
        (args.log2m.is_some() && name != Name::Harmonic, "--log2m is an option of harmonic only"),
        (args.share.is_some() && name != Name::Menus, "--share is an option of menus only"),
        (args.unit.is_some() && name != Name::Rot, "--unit is an option of rot only"),
        (
            name == Name::Rot && args.period.is_none() && (args.from.is_some() || args.to.is_some()),
            "rot is as of a time: use --at, or --period with --from and --to",
        ),
        (args.min_pages.is_some() && name != Name::Menus, "--min-pages is an option of menus only"),
        (
            args.period.is_some() && matches!(name, Name::Mortality | Name::Churn),
            "mortality and churn cover all dates together: omit --period",
        ),
        (
            name == Name::Growth && (args.at.is_some() || args.from.is_some() || args.to.is_some()),
            "growth covers all periods: omit --at, --from and --to",
        ),
    ];
    if let Some((_, text)) = misplaced.into_iter().find(|(wrong, _)| *wrong) {
        return Err(Usage(text.into()));
    }
    let Iterations { most, tolerance } = Iterations::default();
    let iterations =
        Iterations { most: args.iterations.unwrap_or(most), tolerance: args.tolerance.unwrap_or(tolerance) };
    Ok(match name {
        Name::Degrees => Analysis::Degrees,
        Name::Pagerank => Analysis::PageRank(args.damping.unwrap_or(DAMPING), iterations),
        Name::Hits => Analysis::Hits(iterations),
        Name::Salsa => Analysis::Salsa,
        Name::Scc => Analysis::Scc,
        Name::Wcc => Analysis::Wcc,
        Name::Harmonic => Analysis::Harmonic(args.log2m.unwrap_or(LOG2_REGISTERS)),
        Name::Triangles => Analysis::Triangles,
        Name::Mortality => Analysis::Mortality,
        Name::Churn => Analysis::Churn,
        Name::Locality => Analysis::Locality,
        Name::Rot => Analysis::Rot(args.unit),
        Name::Growth => Analysis::Growth(args.period.unwrap_or(RangeLength::Month)),
        Name::Menus => Analysis::Menus(args.share.unwrap_or(0.8), args.min_pages.unwrap_or(5)),
    })
}

fn dates(args: &AnalyzeArgs, analysis: Analysis) -> Result<Dates, Usage> {
    let (from, to) = interval(args.from, args.to)?;
    args.as_of.need(args.at.is_some() || (args.period.is_some() && analysis.is_dated()))?;
    let (max_age, failures) = (args.as_of.max_age, args.as_of.rule());
    Ok(match (args.period, args.at) {
        (Some(length), _) if analysis.is_dated() => Dates::Every { length, from, to, max_age, failures },
        (_, Some(at)) => Dates::One(args.as_of.window(at)),
        // An analysis of changes uses a whole window. Other analyses use the latest date, unless there is a window.
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
    let shape = if args.bars { Shape::Bars } else { args.format.format.into() };
    run_shown(&options, &args.run, shape, out)
}

/// The target of a table, if its name selects a format.
pub(crate) fn target(path: &Path) -> anyhow::Result<Target> {
    let target = Target::of(path);
    if let Target::File(path) = &target {
        format_of::<TableFormat>(path).map_err(unfit)?;
    }
    Ok(target)
}

/// The form in which a summary is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Numbers.
    Text,
    /// Numbers, with bars.
    Bars,
    /// One JSON object.
    Json,
}

impl From<Format> for Shape {
    fn from(format: Format) -> Self {
        match format {
            Format::Text => Self::Text,
            Format::Json => Self::Json,
        }
    }
}

/// Analyzes, and prints a summary: to standard error if the values go to standard output.
pub(crate) fn run_shown(
    options: &AnalyzeOptions,
    args: &RunArgs,
    shape: Shape,
    out: &mut dyn Write,
) -> anyhow::Result<Outcome> {
    let stream = BufWriter::new(io::stdout());
    let (analyzed, run) = args.shown(|progress| analyze(options, stream, progress))?;
    args.write_report(&run, analyzed.as_ref().err())?;
    let report = match analyzed {
        // A reader that closes the output early is not a failure.
        Err(Error::Output { source, .. }) if source.kind() == io::ErrorKind::BrokenPipe => return Err(source.into()),
        analyzed => analyzed?,
    };
    let mut aside = io::stderr();
    let out = if options.out == Some(Target::Stream) { &mut aside } else { out };
    match shape {
        Shape::Text => text::print(&report, &run, options, false, out)?,
        Shape::Bars => text::print(&report, &run, options, true, out)?,
        Shape::Json => print_json(&report, &run, &options.run.store, out)?,
    }
    Ok(Outcome::Done)
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
