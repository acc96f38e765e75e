//! `webstrata fold`: the graph of hosts, domains or paths, by year or month.

use crate::args::units::period;
use crate::args::{FormatArgs, Outcome, interval, location, time_from, time_to};
use crate::commands::analyze::{run_shown, target};
use crate::running::RunArgs;
use clap::Args;
use std::io::Write;
use std::path::PathBuf;
use webstrata_analysis::{Analysis, AnalyzeOptions, Dates, Fold, NodeRule};
use webstrata_layers::{Location, RangeLength, Window};

const EXAMPLES: &str = "\
Each row is one period and two hosts (or what --unit says) with links from src
to dst. Its columns are:
  period, src, dst
  pages         pages of src that linked to dst
  links         links from a page to a URL
  captures      captures that had such a link
  occurrences   links in captures
--unit domain means registrable domains, by the public suffix list. Parquet
files record the version of the list.

Examples:
  webstrata fold STORE --unit domain --period year --out domains.parquet
  webstrata fold STORE --unit host --period month --from 2006 --out hosts.csv
  webstrata fold STORE --unit prefix:1 --period year --out paths.parquet";

/// Arguments of `fold`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct FoldArgs {
    /// Store: a directory, or s3://bucket/prefix
    #[arg(value_parser = location())]
    pub(crate) store: Location,
    /// Group URLs by host, domain, or prefix:N, which is the host and N directories
    #[arg(long, value_name = "WHAT", default_value = "host")]
    pub(crate) unit: Fold,
    /// Length of a period: year, month, day, or a number of days
    #[arg(long, value_name = "LENGTH", default_value = "year", value_parser = period)]
    pub(crate) period: RangeLength,
    /// Captures at or after this time
    #[arg(long, value_name = "T", value_parser = time_from)]
    pub(crate) from: Option<i64>,
    /// Captures at or before this time
    #[arg(long, value_name = "T", value_parser = time_to)]
    pub(crate) to: Option<i64>,
    /// File for the rows, or - for standard output (as CSV): .parquet, .csv,
    /// .csv.gz, .arrow or .feather
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

pub(crate) fn run(args: &FoldArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let (from, to) = interval(args.from, args.to)?;
    let options = AnalyzeOptions {
        run: args.run.options(&args.store)?,
        analysis: Analysis::Folded(args.unit, args.period),
        dates: Dates::One(Window::Seen { from, to }),
        out: args.out.as_deref().map(target).transpose()?,
        nodes: NodeRule::All,
        urls: true,
    };
    run_shown(&options, &args.run, args.format.format.into(), out)
}
