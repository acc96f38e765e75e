//! `webstrata log`: the epochs that a store has, newest first.

use crate::args::{Format, FormatArgs, Outcome, location};
use clap::Args;
use serde_json::json;
use std::io::Write;
use webstrata_layers::store::log::{Committed, log};
use webstrata_layers::{Location, Manifest, Origin, format_time};

const ABOUT: &str = "\
An epoch is a committed state of the store. Its origin is one of these:
  built     a new set of rows, from crawl files
  updated   the rows of the epoch before, and one new row
  merged    the rows of the epoch before, some of them merged, with new UIDs
Times are the modification times of the files, in UTC: a copy of a store shows
the times of the copy.

Examples:
  webstrata log STORE
  webstrata log STORE --format json | jq .provenance";

/// Arguments of `log`.
#[derive(Args, Debug)]
#[command(after_help = ABOUT)]
pub(crate) struct LogArgs {
    /// Store: a directory, or s3://bucket/prefix
    #[arg(value_parser = location())]
    pub(crate) store: Location,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

pub(crate) fn run(args: &LogArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let epochs = log(&args.store)?;
    if args.format.format == Format::Json {
        for committed in epochs {
            let Committed { id, manifest, time } = committed?;
            let rows: Vec<u32> = manifest.rows.iter().map(|row| row.row).collect();
            let value = json!({
                "epoch": manifest.epoch,
                "committed": format_time(time),
                "origin": manifest.origin(),
                "id": id,
                "inputs": inputs_of(&manifest),
                "rows": rows,
                "counts": manifest.counts,
                "provenance": manifest.provenance,
            });
            writeln!(out, "{value}")?;
        }
        return Ok(Outcome::Done);
    }
    let heads = ["epoch", "committed", "origin", "inputs", "rows", "URLs", "captures", "links"].map(str::to_owned);
    let lines = epochs.map(|committed| committed.map(|committed| cells(&committed)));
    let lines = std::iter::once(Ok(heads)).chain(lines).collect::<Result<Vec<_>, _>>()?;
    let width = |column: usize| lines.iter().map(|line| line[column].len()).max().unwrap_or(0);
    let widths: [usize; 8] = std::array::from_fn(width);
    for line in &lines {
        let padded = line.iter().zip(widths).map(|(cell, width)| format!("{cell:>width$}"));
        writeln!(out, "{}", padded.collect::<Vec<_>>().join(" "))?;
    }
    Ok(Outcome::Done)
}

/// How many inputs are inside.
fn inputs_of(manifest: &Manifest) -> u64 {
    manifest.provenance.inputs.iter().map(|entry| entry.inputs).sum()
}

/// The columns of an epoch's line.
fn cells(committed: &Committed) -> [String; 8] {
    let Committed { manifest, time, .. } = committed;
    let origin = match manifest.origin() {
        Origin::Built => "built",
        Origin::Updated => "updated",
        Origin::Merged => "merged",
    };
    let counts = &manifest.counts;
    let numbers = [inputs_of(manifest), manifest.rows.len() as u64, counts.urls, counts.captures, counts.links];
    let [inputs, rows, urls, captures, links] = numbers.map(|number| number.to_string());
    [manifest.epoch.to_string(), format_time(*time), origin.to_owned(), inputs, rows, urls, captures, links]
}
