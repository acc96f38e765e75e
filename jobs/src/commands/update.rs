//! `webstrata update`: adds the captures of one more crawl as a new row of a store, then runs the merge that is due.

use crate::args::release::ReleaseArgs;
use crate::args::{Format, Outcome, location};
use crate::commands::build::{ReadArgs, json_of, note_folded, outcome, print_tally, ranks, write_report};
use crate::commands::info::print_counts;
use crate::commands::merge;
use crate::running::RunArgs;
use clap::Args;
use indicatif::HumanCount;
use std::io::{self, Write};
use webstrata_layers::{Error as StoreError, Location, Store};
use webstrata_pipeline::{BuildOptions, BuildReport, MergeOptions, build, scheduled};

const EXAMPLES: &str = "\
URLs that the store has keep their UIDs, and new URLs get the next UIDs.
Captures may be older than those in the store. Captures that the store already
has are counted and change nothing.

An update makes a new epoch. Then it merges the newest rows, so that a store
has few rows: if e, the number of the update, is divisible by 2 to the power m,
it merges the m + 1 newest rows. If an update is killed, run the same command
again: it finishes the work.

Examples:
  webstrata update STORE crawl-2026-11/
  webstrata update STORE --no-merge today.warc.gz
  webstrata update STORE --format cc-graph --time 2024-08..2024-10 release/";

/// Arguments of `update`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct UpdateArgs {
    /// Store: a directory, or s3://bucket/prefix
    #[arg(value_parser = location())]
    pub(crate) store: Location,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// Do not merge rows after the update
    #[arg(long)]
    pub(crate) no_merge: bool,
    /// Approximate number of URLs per partition, from now on [default: that of the store]
    #[arg(long, value_name = "URLS")]
    pub(crate) partition_urls: Option<u64>,
    #[command(flatten)]
    pub(crate) release: ReleaseArgs,
}

pub(crate) fn run(args: &UpdateArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let options = BuildOptions {
        update: true,
        partition_urls: args.partition_urls,
        ..args.read.options(args.run.options(&args.store)?, &args.release)?
    };
    if let Some(table) = args.release.ranks() {
        ranks::write(&options, table)?;
    }
    let (updated, run) = args.run.shown(|progress| build(&options, progress))?;
    if let Some(path) = &args.run.report {
        write_report(path, &updated, &run)?;
    }
    let report = updated?;
    match args.release.report() {
        Format::Text => print_text(&report, run.seconds, args, out)?,
        Format::Json => writeln!(out, "{}", json_of(&report, &run, &args.store))?,
    }
    out.flush()?;
    // Merge even if nothing was new: an update that was killed in its merge is run again. In a cluster, every process
    // sees the epoch that all processes have made.
    let rows = match Store::open_epoch(&args.store, report.epoch) {
        Ok(store) => scheduled(&store.manifest().rows),
        // A removal has taken something out since, and merges all rows.
        Err(StoreError::RetiredEpoch { .. }) => 1,
        Err(error) => return Err(error.into()),
    };
    if rows > 1 && !args.no_merge {
        let (rows, partition_urls) = (Some(rows), args.partition_urls);
        let options = MergeOptions { rows, partition_urls, ..MergeOptions::new(options.run) };
        // The report describes the update, and the server of the figures of the update still runs.
        let quiet = RunArgs { metrics: None, report: None, ..args.run.clone() };
        merge::run_shown(&options, &quiet, args.release.report(), out)?;
    }
    note_folded(&report.tally);
    outcome(&report, args.read.strict, out)
}

fn print_text(report: &BuildReport, seconds: f64, args: &UpdateArgs, out: &mut dyn Write) -> io::Result<()> {
    let (epoch, counts) = (report.epoch, &report.counts);
    if (counts.urls, counts.pages) == (0, 0) {
        writeln!(out, "{}: nothing new, epoch {epoch} stays; {seconds:.1} s", args.store)?;
    } else {
        writeln!(out, "{}: epoch {epoch}, updated in {seconds:.1} s with a row of", args.store)?;
        print_counts(counts, out)?;
    }
    writeln!(out, "  captures read          {:>15}", HumanCount(report.captures_read).to_string())?;
    writeln!(out, "  stored before          {:>15}", HumanCount(report.captures_stored).to_string())?;
    print_tally(&report.tally, out)
}
