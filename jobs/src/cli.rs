//! The command line: its subcommands.
//!
//! Help is written for 80 columns; `jobs/tests/cli.rs` checks every help page.

use crate::args::{Outcome, Usage};
use crate::commands::{
    analyze, backlinks, bench, build, captures, cells, check, completions, deaths, demo, diff, export, fold, gc,
    generate, info, links, log, merge, neighbourhood, overview, query, remove, serve, sql, timemap, uids, update,
    watch, ways,
};
use crate::settings::{self, STORE};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::any::TypeId;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

const OVERVIEW: &str = "\
Examples:
  webstrata demo                                  try it on a small crawl
  webstrata build --out STORE crawl/*.warc.gz     build a store from crawl files
  webstrata links STORE http://example.org/ --from 2006 --to 2008
  webstrata links STORE http://example.org/ --in --at 2008-06-01

A STORE is a directory of Parquet files. `webstrata help COMMAND` describes a
command.";

/// The subcommands as `--help` lists them: the task of a person, and the commands for the task.
const GROUPS: [(&str, &[&str]); 7] = [
    (
        "Build and keep a store",
        &["build", "update", "merge", "cells", "info", "overview", "check", "log", "remove", "gc"],
    ),
    ("Ask", &["links", "backlinks", "deaths", "neighbourhood", "ways", "captures", "timemap", "uids", "diff", "query"]),
    ("Compute", &["analyze", "fold", "watch"]),
    ("Serve", &["serve"]),
    ("Share with other tools", &["export", "sql"]),
    ("Try", &["demo", "generate", "bench"]),
    ("Install", &["completions"]),
];

/// The argument of [`crate::ask::SourceArgs`] that names servers.
const SERVER: &str = "server";

/// Time-aware link graphs of web archives
#[derive(Debug, Parser)]
#[command(name = "webstrata", version, after_help = OVERVIEW, max_term_width = 80)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Read options from this TOML file, which has a table for each command; options of the command
    /// line and of the environment come first
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// Print the options in effect as a file for --config, and do nothing else
    #[arg(long, global = true)]
    print_config: bool,
    /// What `--print-config` prints.
    #[arg(skip)]
    effective: String,
}

/// Why a command line cannot be run.
#[derive(Debug)]
pub(crate) enum Wrong {
    /// The words make no sense, or ask for help.
    Words(clap::Error),
    /// The file of settings makes no sense.
    Settings(Usage),
}

impl Cli {
    /// Reads the command line. Returns an error if the line makes no sense, or asks for help.
    pub(crate) fn of(words: Vec<OsString>) -> Result<Self, Wrong> {
        let words = settings::completed(&Self::command(), words).map_err(Wrong::Settings)?;
        let mut command = grouped(prepared(Self::command(), &words));
        let matches = command.try_get_matches_from_mut(words).map_err(|error| Wrong::Words(said_missing(error)))?;
        let mut cli = Self::from_arg_matches(&matches).map_err(Wrong::Words)?;
        if cli.print_config {
            cli.effective = settings::effective(&command, &matches);
        }
        Ok(cli)
    }

    /// Runs the command.
    pub(crate) fn run(self, out: &mut dyn Write) -> anyhow::Result<Outcome> {
        if self.print_config {
            out.write_all(self.effective.as_bytes())?;
            return Ok(Outcome::Done);
        }
        self.command.run(out)
    }
}

/// The command line for these words. With `--server` there is no STORE, and the first word after the command has the
/// meaning of the word after the STORE. So all commands that ask servers take their words alike. The same holds if a
/// setting names the store. Times may begin with a hyphen (`--at -30d`).
fn prepared(command: clap::Command, words: &[OsString]) -> clap::Command {
    let options = || words.iter().take_while(|word| *word != "--").filter_map(|word| word.to_str());
    let is_of_servers = options().any(|word| word == "--server" || word.starts_with("--server="));
    let is_named = settings::names_store(words);
    let is_time = |arg: &clap::Arg| arg.get_value_parser().type_id() == TypeId::of::<i64>();
    command.mut_subcommands(|command| {
        let has_server = command.get_arguments().any(|arg| arg.get_id() == SERVER);
        command.mut_args(|arg| match () {
            // As a hidden option, STORE takes no word.
            () if has_server && is_of_servers && arg.get_id() == STORE => {
                arg.long("no-store").hide(true).required(false)
            }
            () if is_named && arg.get_id() == STORE && arg.get_long().is_none() => {
                arg.long(STORE).hide(true).required(false)
            }
            () if is_time(&arg) => arg.allow_hyphen_values(true),
            () => arg,
        })
    })
}

/// Corrects the name of a missing argument. A command takes its STORE before the URL, or no STORE with `--server`. For
/// `links STORE`, clap says that the STORE is missing, as if the one argument were the URL. In fact, the argument after
/// the STORE is missing.
fn said_missing(mut error: clap::Error) -> clap::Error {
    const SHOWN: &str = "<STORE>";
    let is_store =
        matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::Strings(names)) if *names == [SHOWN]);
    if error.kind() == ErrorKind::MissingRequiredArgument && is_store {
        let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
        let next = usage.split_whitespace().skip_while(|word| *word != SHOWN).nth(1);
        if let Some(next) = next.filter(|word| word.starts_with('<')) {
            error.insert(ContextKind::InvalidArg, ContextValue::Strings(vec![next.to_owned()]));
        }
    }
    error
}

/// The same command, with help that lists the subcommands by group.
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

/// One variant a subcommand; each has a file of its name and a place in the README or the book.
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
    /// Show which pages died, and who still links to them
    Deaths(deaths::DeathsArgs),
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
    /// Print completions for a shell, or write manual pages
    Completions(completions::CompletionsArgs),
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
            Command::Deaths(args) => deaths::run(&args, out),
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
            Command::Completions(args) => completions::run(&args, Cli::command(), out),
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

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    fn parsed(text: &str) -> Result<clap::ArgMatches, clap::Error> {
        prepared(Cli::command(), &words(text)).try_get_matches_from(words(text))
    }

    #[test]
    fn the_command_line_is_sound() {
        for text in ["webstrata", "webstrata links --server a:1"] {
            prepared(Cli::command(), &words(text)).debug_assert();
        }
    }

    /// The commands with this argument, and their required words after the STORE.
    fn commands_with(name: &str) -> Vec<(String, Vec<String>)> {
        let commands = Cli::command();
        let has = |command: &&clap::Command| command.get_arguments().any(|arg| arg.get_id() == name);
        let words = |command: &clap::Command| {
            let words = command.get_positionals().filter(|arg| arg.get_id() != STORE && arg.is_required_set());
            words.map(|arg| arg.get_id().to_string()).collect()
        };
        commands.get_subcommands().filter(has).map(|command| (command.get_name().to_owned(), words(command))).collect()
    }

    #[test]
    fn every_question_takes_its_words_alike_from_a_store_and_from_servers() {
        let commands = commands_with(SERVER);
        assert!(commands.len() > 6, "{commands:?}");
        for (name, words) in commands {
            let given: Vec<String> = (0..words.len()).map(|at| format!(" word{at}")).collect();
            let given = given.concat();
            for line in [
                format!("webstrata {name} STORE{given}"),
                format!("webstrata {name} --server a:1{given}"),
                format!("webstrata {name}{given} --server a:1 --server=b:2"),
            ] {
                let matches = parsed(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
                let matches = matches.subcommand().unwrap().1;
                for (at, word) in words.iter().enumerate() {
                    assert_eq!(matches.get_one::<String>(word), Some(&format!("word{at}")), "{line}");
                }
            }
            assert!(parsed(&format!("webstrata {name} --server a:1 STORE{given}")).is_err(), "{name}");
        }
    }

    #[test]
    fn a_limit_of_0_is_all_in_every_command() {
        let commands = commands_with("limit");
        assert!(commands.len() >= 4, "{commands:?}");
        for (name, words) in commands {
            let command = Cli::command();
            let limit = command.find_subcommand(&name).and_then(|command| {
                command.get_arguments().find(|arg| arg.get_id() == "limit").and_then(clap::Arg::get_help)
            });
            let help = limit.map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("0 for all"), "{name}: {help}");
            let needed = if name == "links" { " --in --first" } else { "" };
            let line = format!("webstrata {name} STORE{}{needed} --limit 0", " word".repeat(words.len()));
            assert!(parsed(&line).is_ok(), "{line}");
        }
    }

    #[test]
    fn times_may_begin_with_a_hyphen() {
        for line in ["links STORE a --at -30d", "links STORE a --from -2y --to -1y", "backlinks STORE a --from -1y"] {
            assert!(parsed(&format!("webstrata {line}")).is_ok(), "{line}");
        }
        assert!(parsed("webstrata links STORE a --at -x").is_err());
    }
}
