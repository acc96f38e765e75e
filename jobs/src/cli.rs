//! The command line: its subcommands, and the kinds of values that several of them take.
//!
//! Help is written for 80 columns; `jobs/tests/cli.rs` holds every help page to that.

use crate::{
    analyze, bench, build, captures, cells, check, demo, diff, export, fold, gc, generate, info, links, log, merge,
    query, serve, sql, timemap, uids, update, watch,
};
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::io::Write;
use std::thread::available_parallelism;
use webstrata_layers::{Location, parse_time};

const OVERVIEW: &str = "\
Examples:
  webstrata demo                                  see it work on a small crawl
  webstrata build --out STORE crawl/*.warc.gz     build a store from crawl files
  webstrata links STORE http://example.org/ --from 2006 --to 2008
  webstrata links STORE http://example.org/ --in --at 20070601

A STORE is a directory of Parquet files. `webstrata help COMMAND` tells more.";

/// Time-aware link graphs of web archives
#[derive(Debug, Parser)]
#[command(name = "webstrata", version, after_help = OVERVIEW, max_term_width = 80)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// One variant a subcommand; each has a file of its name and a place in the README.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Build a store from crawl files
    Build(build::BuildArgs),
    /// Add the captures of another crawl to a store
    Update(update::UpdateArgs),
    /// Make one row of several
    Merge(merge::MergeArgs),
    /// Write a store as files of other tools
    Export(export::ExportArgs),
    /// Print views of a store for DuckDB or Spark
    Sql(sql::SqlArgs),
    /// Write the cells of a store, to answer questions from memory
    Cells(cells::CellsArgs),
    /// Say what a store holds
    Info(info::InfoArgs),
    /// Check every file of a store against the format
    Check(check::CheckArgs),
    /// List the epochs of a store
    Log(log::LogArgs),
    /// Say what an epoch has that an earlier one had not
    Diff(diff::DiffArgs),
    /// Remove old epochs, and the files that only they had
    Gc(gc::GcArgs),
    /// Keep a result right as a store grows: degrees, components, new links
    Watch(watch::WatchArgs),
    /// Links of a page, or pages that link to a URL, at a time
    Links(links::LinksArgs),
    /// Times at which a page was captured
    Captures(captures::CapturesArgs),
    /// Captures of a page as a Memento TimeMap
    Timemap(timemap::TimemapArgs),
    /// URLs with their numbers: of a host, domain or path, or captured in a time
    Uids(uids::UidsArgs),
    /// Answer questions from standard input, as JSON lines
    Query(query::QueryArgs),
    /// Answer questions over the network, alone or in a cluster
    Serve(serve::ServeArgs),
    /// Compute on the graph at a time, and on how it changes
    Analyze(analyze::AnalyzeArgs),
    /// The graph of hosts, domains or paths by period
    Fold(fold::FoldArgs),
    /// Write a made-up crawl as WARC, JSON lines or Parquet
    Generate(generate::GenerateArgs),
    /// Generate a small crawl, build it, ask it three questions
    Demo(demo::DemoArgs),
    /// Measure parts of Webstrata beside others of their kind
    Bench(bench::BenchArgs),
}

impl Command {
    /// Runs the subcommand; its results go to `out`.
    pub(crate) fn run(self, out: &mut dyn Write) -> anyhow::Result<Outcome> {
        match self {
            Command::Build(args) => build::run(&args, out),
            Command::Update(args) => update::run(&args, out),
            Command::Merge(args) => merge::run(&args, out),
            Command::Export(args) => export::run(&args, out),
            Command::Sql(args) => sql::run(&args, out),
            Command::Cells(args) => cells::run(&args, out),
            Command::Info(args) => info::run(&args, out),
            Command::Check(args) => check::run(&args, out),
            Command::Log(args) => log::run(&args, out),
            Command::Diff(args) => diff::run(&args, out),
            Command::Gc(args) => gc::run(&args, out),
            Command::Watch(args) => watch::run(&args, out),
            Command::Links(args) => links::run(&args, out),
            Command::Captures(args) => captures::run(&args, out),
            Command::Timemap(args) => timemap::run(&args, out),
            Command::Uids(args) => uids::run(&args, out),
            Command::Query(args) => query::run(&args, std::io::stdin().lock(), out),
            Command::Serve(args) => serve::run(&args, out),
            Command::Analyze(args) => analyze::run(&args, out),
            Command::Fold(args) => fold::run(&args, out),
            Command::Generate(args) => generate::run(&args, out),
            Command::Demo(args) => demo::run(&args, out),
            Command::Bench(args) => bench::run(&args, out),
        }
    }
}

/// How a subcommand ended that printed all it had to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Exit code 0.
    Done,
    /// Exit code 1.
    Failed,
}

/// A command line that parses and yet makes no sense: exit code 2.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) &'static str);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Usage {}

/// What does not go together is an error of the command line.
pub(crate) fn unfit(error: impl std::error::Error + Send + Sync + 'static) -> anyhow::Error {
    anyhow::Error::new(error).context(Usage("this cannot be written so"))
}

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}

/// The option that all subcommands with results have.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct FormatArgs {
    /// How to print the result
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// Where a store lies: a path, `file:///path` or `s3://bucket/prefix`.
pub(crate) fn location() -> impl TypedValueParser<Value = Location> {
    OsStringValueParser::new().try_map(Location::parse)
}

/// The first second of a time with 4 to 14 digits, or an RFC 3339 time.
pub(crate) fn time_from(text: &str) -> Result<i64, String> {
    parse_time(text, false).ok_or_else(|| time_error(text))
}

/// The last second of a time with 4 to 14 digits, or an RFC 3339 time.
pub(crate) fn time_to(text: &str) -> Result<i64, String> {
    parse_time(text, true).ok_or_else(|| time_error(text))
}

fn time_error(text: &str) -> String {
    format!("not a time of the years 1 to 9999: {text:?}; write 2006, 200606, 20060615120000 or 2006-06-15T12:00:00Z")
}

/// The seconds between two that may be left out.
pub(crate) fn interval(from: Option<i64>, to: Option<i64>) -> Result<(i64, i64), Usage> {
    webstrata_layers::interval(from, to).map_err(|_| Usage("--from is later than --to"))
}

/// As many threads as there are processors.
pub(crate) fn processors() -> usize {
    available_parallelism().map_or(1, usize::from)
}

/// A number of bytes: `512M`, `2G`, `64 KiB`; the units are powers of 1024.
pub(crate) fn size(text: &str) -> Result<usize, String> {
    let wrong = || format!("{text:?} is no size; write a number of bytes, or for example 512M or 2G");
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim().to_ascii_lowercase().trim_end_matches('b').trim_end_matches('i') {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return Err(wrong()),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let bytes = number * f64::from(2u32).powi(shift);
    if bytes < 1.0 || bytes > isize::MAX as f64 {
        return Err(wrong());
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and isize::MAX, see above")]
    Ok(bytes as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn sizes_have_units_of_1024() {
        assert_eq!(size("512M"), Ok(512 << 20));
        assert_eq!(size("1.5g"), Ok(3 << 29));
        assert_eq!(size("64 KiB"), Ok(64 << 10));
        assert_eq!(size("100"), Ok(100));
        for wrong in ["", "G", "0", "-1", "12Q", "1e3", "99999999T"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_short_time_is_a_whole_period() {
        assert_eq!(time_from("1970"), Ok(0));
        assert_eq!(time_to("1970"), Ok(365 * 86_400 - 1));
        assert_eq!(time_to("197001"), Ok(31 * 86_400 - 1));
        assert_eq!(time_from("1970-01-02T00:00:00Z"), Ok(86_400));
        for wrong in ["yesterday", "0000", "1209588506000", "0001-01-01T00:00:00+12:00"] {
            assert!(
                [time_from(wrong), time_to(wrong)].into_iter().all(|time| time.is_err_and(|text| text.contains(wrong)))
            );
        }
    }
}
