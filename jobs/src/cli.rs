//! The command line: its subcommands.
//!
//! Help is written for 80 columns; `jobs/tests/cli.rs` holds every help page to that.

use crate::args::Outcome;
use crate::commands::{
    analyze, bench, build, captures, cells, check, demo, diff, export, fold, gc, generate, info, links, log, merge,
    query, serve, sql, timemap, uids, update, watch,
};
use clap::{Parser, Subcommand};
use std::io::Write;

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

/// One variant a subcommand; each has a file of its name and a place in the README or the manual.
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
