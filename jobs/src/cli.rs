//! The command line: its subcommands.
//!
//! Help is written for 80 columns; `jobs/tests/cli.rs` holds every help page to that.

use crate::args::Outcome;
use crate::commands::{
    analyze, backlinks, bench, build, captures, cells, check, demo, diff, export, fold, gc, generate, info, links, log,
    merge, neighbourhood, overview, query, remove, serve, sql, timemap, uids, update, watch, ways,
};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::io::Write;

const OVERVIEW: &str = "\
Examples:
  webstrata demo                                  try it on a small crawl
  webstrata build --out STORE crawl/*.warc.gz     build a store from crawl files
  webstrata links STORE http://example.org/ --from 2006 --to 2008
  webstrata links STORE http://example.org/ --in --at 2008-06-01

A STORE is a directory of Parquet files. `webstrata help COMMAND` describes a
command.";

/// The subcommands as `--help` lists them: what a person wants to do, and what does that.
const GROUPS: [(&str, &[&str]); 6] = [
    (
        "Build and keep a store",
        &["build", "update", "merge", "cells", "info", "overview", "check", "log", "remove", "gc"],
    ),
    ("Ask", &["links", "backlinks", "neighbourhood", "ways", "captures", "timemap", "uids", "diff", "query"]),
    ("Compute", &["analyze", "fold", "watch"]),
    ("Serve", &["serve"]),
    ("Share with other tools", &["export", "sql"]),
    ("Try", &["demo", "generate", "bench"]),
];

/// Time-aware link graphs of web archives
#[derive(Debug, Parser)]
#[command(name = "webstrata", version, after_help = OVERVIEW, max_term_width = 80)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// Reads the command line; ends the process where it makes no sense or asks for help.
    pub(crate) fn of_process() -> Self {
        let matches = grouped(Self::command()).try_get_matches().unwrap_or_else(|error| said_missing(error).exit());
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }
}

/// A command takes its STORE from before the URL, or none with `--server`. Of `links STORE`, clap says that the STORE
/// is missing, as if the one argument were the URL. What a person left out is what follows the STORE.
fn said_missing(mut error: clap::Error) -> clap::Error {
    const STORE: &str = "<STORE>";
    let is_store =
        matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::Strings(names)) if *names == [STORE]);
    if error.kind() == ErrorKind::MissingRequiredArgument && is_store {
        let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
        let next = usage.split_whitespace().skip_while(|word| *word != STORE).nth(1);
        if let Some(next) = next.filter(|word| word.starts_with('<')) {
            error.insert(ContextKind::InvalidArg, ContextValue::Strings(vec![next.to_owned()]));
        }
    }
    error
}

/// The same command, whose help lists the subcommands by group.
fn grouped(command: clap::Command) -> clap::Command {
    let about = |name: &str| command.find_subcommand(name).and_then(clap::Command::get_about).map(ToString::to_string);
    let mut list = String::new();
    for (title, names) in GROUPS {
        list += &format!("\n{title}:\n");
        for name in names {
            list += &format!("  {name:<13} {}\n", about(name).unwrap_or_default());
        }
    }
    let template =
        format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{list}\nOptions:\n{{options}}{{after-help}}");
    command.help_template(template)
}

/// One variant a subcommand; each has a file of its name and a place in the README or the manual.
#[expect(clippy::large_enum_variant, reason = "one is made, once")]
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Build a store from crawl files
    Build(build::BuildArgs),
    /// Add the captures of another crawl to a store
    Update(update::UpdateArgs),
    /// Merge rows of a store into one
    Merge(merge::MergeArgs),
    /// Export a store to files of other tools
    Export(export::ExportArgs),
    /// Print SQL views of a store for DuckDB or Spark
    Sql(sql::SqlArgs),
    /// Write the cells of a store, which answer queries from memory
    Cells(cells::CellsArgs),
    /// Show what a store holds
    Info(info::InfoArgs),
    /// Show what a store holds by year and by host
    Overview(overview::OverviewArgs),
    /// Check every file of a store against the format
    Check(check::CheckArgs),
    /// List the epochs of a store
    Log(log::LogArgs),
    /// Show what changed between two epochs
    Diff(diff::DiffArgs),
    /// Remove pages and links from a store, and keep them out
    Remove(remove::RemoveArgs),
    /// Remove old epochs and the files that only they use
    Gc(gc::GcArgs),
    /// Keep a result up to date as a store grows
    Watch(watch::WatchArgs),
    /// Show the links of a page, or the pages that link to a URL
    Links(links::LinksArgs),
    /// Show who links to a URL, a host or a domain, and since when
    Backlinks(backlinks::BacklinksArgs),
    /// Show what is around a page, and when
    Neighbourhood(neighbourhood::NeighbourhoodArgs),
    /// Show the shortest ways of links from one page to another
    Ways(ways::WaysArgs),
    /// List the times at which a page was captured
    Captures(captures::CapturesArgs),
    /// Print the captures of a page as a Memento TimeMap
    Timemap(timemap::TimemapArgs),
    /// List URLs and UIDs by host, domain, path or time
    Uids(uids::UidsArgs),
    /// Answer JSON-lines queries from standard input
    Query(query::QueryArgs),
    /// Answer queries over the network, alone or in a cluster
    Serve(serve::ServeArgs),
    /// Run an analysis on the graph as of a date, or over time
    Analyze(analyze::AnalyzeArgs),
    /// Compute the graph of hosts, domains or paths by period
    Fold(fold::FoldArgs),
    /// Write a synthetic crawl as WARC, JSON lines or Parquet
    Generate(generate::GenerateArgs),
    /// Build a store from a made-up crawl, and draw a page over time
    Demo(demo::DemoArgs),
    /// Measure encodings of links, and the cells of a store
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
            Command::Overview(args) => overview::run(&args, out),
            Command::Check(args) => check::run(&args, out),
            Command::Log(args) => log::run(&args, out),
            Command::Diff(args) => diff::run(&args, out),
            Command::Remove(args) => remove::run(&args, out),
            Command::Gc(args) => gc::run(&args, out),
            Command::Watch(args) => watch::run(&args, out),
            Command::Links(args) => links::run(&args, out),
            Command::Backlinks(args) => backlinks::run(&args, out),
            Command::Neighbourhood(args) => neighbourhood::run(&args, out),
            Command::Ways(args) => ways::run(&args, out),
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
    use std::collections::BTreeSet;

    #[test]
    fn every_subcommand_is_in_one_group() {
        let command = Cli::command();
        let all: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        assert_eq!(listed.len(), all.len());
        listed.sort_unstable();
        assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), all.into_iter().collect());
    }

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
