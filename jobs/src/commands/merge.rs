//! `webstrata merge`: merges the newest rows of a store, or all rows, into one row.

use crate::args::{EffortArgs, Format, FormatArgs, Outcome, location};
use crate::commands::build::{findings, left_out, print_tally};
use crate::commands::info::print_counts;
use crate::running::{Run, RunArgs, write_json};
use clap::Args;
use indicatif::HumanCount;
use serde_json::json;
use std::io::Write;
use webstrata_layers::answers::contents::EpochCounts;
use webstrata_layers::{Effort, Location, Store, counted};
use webstrata_pipeline::{MergeOptions, MergeReport, merge, scheduled};

const EXAMPLES: &str = "\
A merge makes a new epoch, with fewer rows and the same answers. URLs of the
merged rows get new UIDs; `webstrata uids STORE --translate EPOCH` translates
the UIDs of an earlier epoch.

With --compact, merge merges all rows unless --rows is given, and writes a
single row anew.

Examples:
  webstrata merge STORE                   merge the rows that are due, if any
  webstrata merge STORE --rows all        merge all rows, as in a new build
  webstrata merge STORE --rows 3          merge the three newest rows
  webstrata merge STORE --compact         merge all rows into the smallest files";

/// Arguments of `merge`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct MergeArgs {
    /// Store: a directory, or s3://bucket/prefix
    #[arg(value_parser = location())]
    pub(crate) store: Location,
    /// Number of newest rows to merge, or all [default: the rows that are due, see `webstrata help
    /// update`]
    #[arg(long, value_name = "N|all", value_parser = rows)]
    pub(crate) rows: Option<Rows>,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// Approximate number of URLs per partition, from now on [default: that of the store]
    #[arg(long, value_name = "URLS")]
    pub(crate) partition_urls: Option<u64>,
    #[command(flatten)]
    pub(crate) effort: EffortArgs,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

/// The rows to merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rows {
    All,
    Newest(usize),
}

fn rows(text: &str) -> Result<Rows, String> {
    match text.parse() {
        _ if text == "all" => Ok(Rows::All),
        Ok(count) if count > 1 => Ok(Rows::Newest(count)),
        _ => Err("expected a number of rows, at least 2, or all".to_owned()),
    }
}

pub(crate) fn run(args: &MergeArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let effort = args.effort.effort();
    let rows = match args.rows {
        Some(Rows::All) => None,
        Some(Rows::Newest(count)) => Some(count),
        None if effort == Effort::Compact => None,
        None => Some(scheduled(&Store::open(&args.store)?.manifest().rows)),
    };
    let (run, partition_urls) = (args.run.options(&args.store)?, args.partition_urls);
    let options = MergeOptions { run, rows, partition_urls, effort };
    run_shown(&options, &args.run, args.format.format, out)?;
    Ok(Outcome::Done)
}

/// Merges rows, and prints the result.
pub(crate) fn run_shown(
    options: &MergeOptions,
    args: &RunArgs,
    format: Format,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let (merged, run) = args.shown(|progress| merge(options, progress))?;
    if let Some(path) = &args.report {
        let (epoch, error) = match &merged {
            Ok(report) => (Some(report.epoch), None),
            Err(error) => (None, Some(error.to_string())),
        };
        let value = json!({
            "epoch": epoch, "error": error, "seconds": run.seconds, "spilled_bytes": run.spilled, "stages": run.stages
        });
        write_json(path, &value)?;
    }
    let report = merged?;
    match format {
        Format::Text => print_text(&report, &run, &options.run.store, out),
        Format::Json => print_json(&report, &run, &options.run.store, out),
    }
}

fn print_text(report: &MergeReport, run: &Run, store: &Location, out: &mut dyn Write) -> anyhow::Result<()> {
    let (epoch, seconds) = (report.epoch, run.seconds);
    if report.rows == 0 {
        writeln!(out, "{store}: nothing to merge, epoch {epoch} stays")?;
        return Ok(());
    }
    match report.rows {
        1 => writeln!(out, "{store}: epoch {epoch}, the row written anew in {seconds:.1} s with")?,
        rows => writeln!(out, "{store}: epoch {epoch}, {} merged in {seconds:.1} s to one of", counted(rows, "row"))?,
    }
    print_counts(&report.counts, out)?;
    if report.dropped > 0 {
        writeln!(out, "  URLs dropped           {:>15}", HumanCount(report.dropped).to_string())?;
    }
    print_tally(&report.tally, out)?;
    Ok(())
}

fn print_json(report: &MergeReport, run: &Run, store: &Location, out: &mut dyn Write) -> anyhow::Result<()> {
    let value = json!({
        "store": store.to_string(),
        "epoch": report.epoch,
        "rows_merged": report.rows,
        "seconds": run.seconds,
        "counts": EpochCounts::from(&report.counts),
        "partitions": report.partitions,
        "urls_dropped": report.dropped,
        "findings": findings(&report.tally),
        "left_out": left_out(&report.tally),
        "spilled_bytes": run.spilled,
    });
    writeln!(out, "{value}")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_a_number_or_all() {
        assert_eq!(rows("all"), Ok(Rows::All));
        assert_eq!(rows("2"), Ok(Rows::Newest(2)));
        for wrong in ["1", "0", "-1", "some", ""] {
            assert!(rows(wrong).is_err(), "{wrong}");
        }
    }
}
