//! `webstrata log`: the epochs of a store, newest first, or the inputs of an epoch.

use crate::args::{Format, FormatArgs, Outcome, location};
use crate::ask::note;
use crate::table::{Column, Table};
use clap::Args;
use serde_json::json;
use std::io::Write;
use webstrata_layers::answers::contents::EpochCounts;
use webstrata_layers::log::{Committed, log};
use webstrata_layers::{InputRecord, Location, Manifest, Origin, Store, format_time, read_inputs};

const ABOUT: &str = "\
An epoch is a committed state of the store. Its origin is one of these:
  built     a new set of rows, from crawl files
  updated   the rows of the epoch before, and one new row
  removed   the same; the new row takes pages and links out
  merged    the rows of the epoch before, some of them merged, with new UIDs
Times are the modification times of the files, in UTC: a copy of a store shows
the times of the copy. Captures and links are sums over rows; `at most` says
that several rows may have the same ones.

--inputs lists the crawl files that an epoch contains: captures, the first and
the last capture, bytes, XXH3-128 digest, name. `xxhsum -H2 FILE` prints the
same digest. The name of a part of a Parquet file ends with # and a number.

Examples:
  webstrata log STORE
  webstrata log STORE --inputs
  webstrata log STORE --format json | jq .provenance";

/// Arguments of `log`.
#[derive(Args, Debug)]
#[command(after_help = ABOUT)]
pub(crate) struct LogArgs {
    /// Store: a directory, or s3://bucket/prefix
    #[arg(value_parser = location())]
    pub(crate) store: Location,
    /// List the inputs of an epoch
    #[arg(long)]
    pub(crate) inputs: bool,
    /// With --inputs: this epoch [default: the current one]
    #[arg(long, value_name = "N", requires = "inputs")]
    pub(crate) epoch: Option<u64>,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

pub(crate) fn run(args: &LogArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    if args.inputs {
        return print_inputs(args, out);
    }
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
                "counts": EpochCounts::of(&manifest),
                "provenance": manifest.provenance,
            });
            writeln!(out, "{value}")?;
        }
        return Ok(Outcome::Done);
    }
    let numbers = ["inputs", "rows", "URLs", "captures", "links"].map(Column::number);
    let words = [Column::number("epoch"), Column::word("committed"), Column::word("origin")];
    let mut table = Table::new(words.into_iter().chain(numbers));
    for committed in epochs {
        table.row(cells(&committed?));
    }
    table.print(out)?;
    Ok(Outcome::Done)
}

/// Prints the inputs of an epoch, job after job.
fn print_inputs(args: &LogArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let store = match args.epoch {
        Some(epoch) => Store::open_epoch(&args.store, epoch)?,
        None => Store::open(&args.store)?,
    };
    let mut inputs = Vec::new();
    for entry in &store.manifest().provenance.inputs {
        inputs.extend(read_inputs(&store, entry)?);
    }
    let time = |time: Option<i64>| time.map(format_time);
    if args.format.format == Format::Json {
        for InputRecord { name, bytes, captures, first, last, digest } in inputs {
            let (first, last) = (time(first), time(last));
            let value = json!({"name": name, "bytes": bytes, "captures": captures, "first": first, "last": last,
                               "digest": digest});
            writeln!(out, "{value}")?;
        }
        return Ok(Outcome::Done);
    }
    let columns = [
        Column::number("captures"),
        Column::word("first"),
        Column::word("last"),
        Column::number("bytes"),
        Column::word("digest"),
        Column::rest("name"),
    ];
    let mut table = Table::new(columns);
    let text = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    for InputRecord { name, bytes, captures, first, last, digest } in inputs {
        table.row([captures.to_string(), text(time(first)), text(time(last)), bytes.to_string(), text(digest), name]);
    }
    table.print(out)?;
    if table.is_empty() {
        note("this epoch names no inputs");
    }
    Ok(Outcome::Done)
}

/// The number of inputs of an epoch.
fn inputs_of(manifest: &Manifest) -> u64 {
    manifest.provenance.inputs.iter().map(|entry| entry.inputs).sum()
}

/// The columns of the line of an epoch.
fn cells(committed: &Committed) -> [String; 8] {
    let Committed { manifest, time, .. } = committed;
    let origin = match manifest.origin() {
        Origin::Built => "built",
        Origin::Updated => "updated",
        Origin::Removed => "removed",
        Origin::Merged => "merged",
    };
    let counts = &manifest.counts;
    let [inputs, rows, urls] = [inputs_of(manifest), manifest.rows.len() as u64, counts.urls].map(|n| n.to_string());
    let word = if manifest.counts_are_exact() { "" } else { "at most " };
    let [captures, links] = [counts.captures, counts.links].map(|number| format!("{word}{number}"));
    [manifest.epoch.to_string(), format_time(*time), origin.to_owned(), inputs, rows, urls, captures, links]
}
