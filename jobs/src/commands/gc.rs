//! `webstrata gc`: removes old epochs of a store, and the files that only these epochs had.

use crate::args::{Format, FormatArgs, Outcome, location};
use clap::Args;
use indicatif::BinaryBytes;
use serde_json::json;
use std::io::Write;
use webstrata_layers::gc::{Collected, collect, foretell};
use webstrata_layers::{Location, unique};

const ABOUT: &str = "\
gc keeps the newest epochs, and older epochs that a reader has open. It removes
all other epochs: first their manifests, then rows and cells that no remaining
epoch uses. It can be stopped at any time; the next gc, build or update finishes
the removal. It fails while another command writes to the store. UIDs of removed
epochs can still be translated: see `webstrata help uids`.

In S3, the epoch of a reader that was killed is kept for 15 minutes.

Examples:
  webstrata gc STORE --dry-run
  webstrata gc STORE --keep 10";

/// Arguments of `gc`.
#[derive(Args, Debug)]
#[command(after_help = ABOUT)]
pub(crate) struct GcArgs {
    /// Store: a directory, or s3://bucket/prefix
    #[arg(value_parser = location())]
    pub(crate) store: Location,
    /// Number of newest epochs to keep, at least 1
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) keep: u32,
    /// Print what gc would remove, and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

pub(crate) fn run(args: &GcArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let keep = usize::try_from(args.keep).unwrap_or(usize::MAX);
    let collected = if args.dry_run {
        foretell(&args.store, keep)?
    } else {
        collect(&args.store, &format!("gc, process {}, {}", std::process::id(), unique()), keep)?
    };
    match args.format.format {
        Format::Text => print_text(&collected, args, out)?,
        Format::Json => {
            let Collected { current, kept, leased, removed, rows, cells, translations, bytes } = collected;
            let value = json!({
                "store": args.store.to_string(),
                "dry_run": args.dry_run,
                "current": current,
                "kept": kept,
                "kept_for_readers": leased,
                "removed": {
                    "epochs": removed,
                    "rows": rows,
                    "cells": cells,
                    "translations": translations,
                    "bytes": bytes,
                },
            });
            writeln!(out, "{value}")?;
        }
    }
    Ok(Outcome::Done)
}

fn print_text(collected: &Collected, args: &GcArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let Collected { current, kept, leased, removed, rows, cells, translations, bytes } = collected;
    writeln!(out, "{}: the current epoch is {current}", args.store)?;
    let numbers = |rows: &[u32]| rows.iter().copied().map(u64::from).collect::<Vec<_>>();
    let verb = if args.dry_run { "would remove" } else { "removed" };
    for (what, list) in [
        (format!("{verb} epochs"), ranges(removed)),
        (format!("{verb} rows"), ranges(&numbers(rows))),
        (format!("{verb} cells of rows"), ranges(&numbers(cells))),
        (
            format!("{verb} translations"),
            if translations.is_empty() { "none".into() } else { translations.len().to_string() },
        ),
        (format!("{verb} in all"), BinaryBytes(*bytes).to_string()),
        ("kept epochs".to_owned(), ranges(kept)),
        ("kept for readers".to_owned(), ranges(leased)),
    ] {
        writeln!(out, "  {what:<27} {list}")?;
    }
    Ok(())
}

/// Formats rising numbers as text: `1-4 6`.
pub(crate) fn ranges(numbers: &[u64]) -> String {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let texts =
        ranges.iter().map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") });
    let text = texts.collect::<Vec<_>>().join(" ");
    if text.is_empty() { "none".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_range() {
        for (numbers, text) in [
            (vec![], "none"),
            (vec![7], "7"),
            (vec![1, 2, 3, 5, 8, 9], "1-3 5 8-9"),
            (vec![u64::MAX], "18446744073709551615"),
        ] {
            assert_eq!(ranges(&numbers), text);
        }
    }
}
