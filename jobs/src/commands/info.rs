//! `webstrata info`: the contents of a store, from its manifest alone.

use crate::args::{Format, FormatArgs, Outcome, location};
use clap::Args;
use indicatif::{BinaryBytes, HumanCount};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};
use webstrata_layers::answers::contents::EpochCounts;
use webstrata_layers::{Counts, Layer, Location, Manifest, Store, counted, format_time};

const ABOUT: &str = "\
Counts are sums over the rows of the store. If more than one row has captures,
the same page, capture or link may be in several rows, and counts twice: such
counts have the words `at most`, and `exact` is false as JSON. After a merge of
all rows, counts are exact.

Examples:
  webstrata info STORE
  webstrata info STORE --format json | jq .counts.links";

/// Arguments of `info`.
#[derive(Args, Debug)]
#[command(after_help = ABOUT)]
pub(crate) struct InfoArgs {
    /// Store: a directory, or s3://bucket/prefix
    #[arg(value_parser = location())]
    pub(crate) store: Location,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

pub(crate) fn run(args: &InfoArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let store = Store::open(&args.store)?;
    match args.format.format {
        Format::Text => print_text(store.manifest(), args, out)?,
        Format::Json => print_json(store.manifest(), args, out)?,
    }
    Ok(Outcome::Done)
}

/// The number of files and bytes of each layer.
fn layers(manifest: &Manifest) -> BTreeMap<Layer, (u64, u64)> {
    let mut layers = BTreeMap::<Layer, (u64, u64)>::new();
    for file in manifest.rows.iter().flat_map(|row| &row.partitions).flat_map(|partition| &partition.files) {
        let sum = layers.entry(file.layer).or_default();
        sum.0 += 1;
        sum.1 += file.bytes;
    }
    layers
}

/// Replaces times by text in JSON that is or contains counts.
fn with_times(mut value: Value) -> Value {
    fn say(value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(say),
            Value::Object(fields) => {
                for (name, value) in fields {
                    match value.as_i64().filter(|_| name == "first_time" || name == "last_time") {
                        Some(time) => *value = json!(format_time(time)),
                        None => say(value),
                    }
                }
            }
            _ => {}
        }
    }
    say(&mut value);
    value
}

/// The words after a number that is a sum over rows.
const AT_MOST: &str = " at most";

/// Prints the counts of a row, each on a line.
pub(crate) fn print_counts(counts: &Counts, out: &mut dyn Write) -> io::Result<()> {
    print_sums(counts, "", out)
}

/// Prints the counts of several rows together. `word` follows each number except the number of URLs.
fn print_sums(counts: &Counts, word: &str, out: &mut dyn Write) -> io::Result<()> {
    // Most archives have neither cut nor failed captures.
    let cut: Vec<(String, u64)> =
        counts.cut_captures.reasons().map(|(reason, count)| (format!("  cut ({})", reason.name()), count)).collect();
    let cut = cut.iter().map(|(name, count)| (&**name, *count));
    let failed = (counts.failed_captures > 0).then_some(("  with status 400 on", counts.failed_captures));
    let lines = [
        ("URLs", counts.urls),
        ("pages", counts.pages),
        ("captures", counts.captures),
        ("  with unknown links", counts.unknown_captures),
        ("links (page to URL)", counts.links),
        ("links in captures", counts.occurrences),
    ];
    let (of_captures, of_links) = lines.split_at(4);
    for (name, count) in of_captures.iter().copied().chain(cut).chain(failed).chain(of_links.iter().copied()) {
        let word = if name == "URLs" { "" } else { word };
        writeln!(out, "  {name:<22} {:>15}{word}", HumanCount(count).to_string())?;
    }
    Ok(())
}

fn print_text(manifest: &Manifest, args: &InfoArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let counts = &manifest.counts;
    let rows: Vec<_> = manifest.rows.iter().map(|row| format!("{:06}", row.row)).collect();
    let partitions: usize = manifest.rows.iter().map(|row| row.partitions.len()).sum();
    writeln!(out, "{}: format {}, epoch {}", args.store, manifest.format, manifest.epoch)?;
    writeln!(out, "  rows {}, partitions {partitions}, in-link ranges {}", rows.join(" "), manifest.in_range)?;
    if let (Some(first), Some(last)) = (counts.first_time, counts.last_time) {
        writeln!(out, "  captures from {} to {}", format_time(first), format_time(last))?;
    }
    print_sums(counts, if manifest.counts_are_exact() { "" } else { AT_MOST }, out)?;
    let missing = &manifest.provenance.missing_containers;
    if !missing.is_empty() {
        let archives = counted(missing.len(), "archive");
        writeln!(out, "  {archives} with originals of revisits, never an input (add them by `webstrata update`):")?;
        missing.iter().try_for_each(|name| writeln!(out, "    {name}"))?;
    }
    writeln!(out, "  {:<10} {:>6} {:>20} {:>24}", "layer", "files", "size", "bits a link in a capture")?;
    for (layer, (files, bytes)) in layers(manifest) {
        let bits = match counts.occurrences {
            0 => "-".to_owned(),
            occurrences => format!("{:.3}", bytes as f64 * 8.0 / occurrences as f64),
        };
        let layer = layer.name();
        writeln!(out, "  {layer:<10} {files:>6} {:>20} {bits:>24}", BinaryBytes(bytes).to_string())?;
    }
    Ok(())
}

fn print_json(manifest: &Manifest, args: &InfoArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let layers: serde_json::Map<_, _> = layers(manifest)
        .into_iter()
        .map(|(layer, (files, bytes))| (layer.name().to_owned(), json!({"files": files, "bytes": bytes})))
        .collect();
    let value = json!({
        "store": args.store.to_string(),
        "format": manifest.format,
        "epoch": manifest.epoch,
        "in_range": manifest.in_range.to_string(),
        "counts": EpochCounts::of(manifest),
        "rows": with_times(json!(manifest.rows)),
        "layers": layers,
        "provenance": manifest.provenance,
    });
    writeln!(out, "{value}")?;
    Ok(())
}
