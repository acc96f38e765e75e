//! `webstrata check`: checks every promise of the store format, file by file, then compares the cells with the layers.

use crate::args::{Format, FormatArgs, Outcome, location};
use crate::commands::removed;
use clap::Args;
use indicatif::BinaryBytes;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;
use webstrata_cells::Error;
use webstrata_cells::disk::check::{CellsReport, check as check_cells};
use webstrata_codecs::ENCODINGS;
use webstrata_layers::{CheckReport, Error as LayersError, Location, Store, check, check_all, counted};

/// Arguments of `check`.
#[derive(Args, Debug)]
#[command(after_help = "\
check verifies every file of the current epoch, every manifest, every overview
and every watch. It also opens each cell in STORE/cells, if there are any, and
compares the cell with its layers. With --all, check also verifies the files
and cells that only earlier epochs have. The last line names what check did not
read.

Exit code 0: no problems. 1: problems, one line each, with the name of the file.

With --removed, check reads the files of all epochs, not only of the current
one, and lists the URLs that a file still contains: those of FILE, or without
FILE those that the rules of `webstrata remove STORE --list` name.

Examples:
  webstrata check STORE
  webstrata check STORE --all
  webstrata check STORE --removed list.txt")]
pub(crate) struct CheckArgs {
    /// Store: a directory, or s3://bucket/prefix
    #[arg(value_parser = location())]
    pub(crate) store: Location,
    /// Verify the files of all epochs, not only of the current one
    #[arg(long, conflicts_with = "removed")]
    pub(crate) all: bool,
    /// Look for the URLs in this file (one per line; - for standard input) in every file of the
    /// store; without FILE, for what was removed
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub(crate) removed: Option<Option<PathBuf>>,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

pub(crate) fn run(args: &CheckArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    if let Some(list) = &args.removed {
        return removed::run(&args.store, list.as_deref(), args.format.format, out);
    }
    let store = &args.store;
    let report = if args.all { check_all(store)? } else { check(store)? };
    let mut cells = CellsReport::default();
    for &epoch in &report.epochs {
        match Store::inspect(store, epoch) {
            // The epoch was removed in the meantime.
            Err(LayersError::RetiredEpoch { .. }) => {}
            opened => check_cells(&opened?, ENCODINGS, &mut cells),
        }
    }
    let unread = unread(&report);
    // A cell with broken layers cannot be compared; these problems are known.
    let is_new = |problem: &&Error| report.is_sound() || !matches!(problem, Error::Layers(_));
    let of_cells: Vec<String> = cells.problems.iter().filter(is_new).map(ToString::to_string).collect();
    let found = report.problems_found + of_cells.len() as u64;
    let problems: Vec<String> = report.problems.iter().map(ToString::to_string).chain(of_cells).collect();
    match args.format.format {
        Format::Json => writeln!(
            out,
            "{}",
            json!({
                "store": store.to_string(),
                "epoch": report.epoch,
                "files": report.files,
                "bytes": report.bytes,
                "cells": cells.cells,
                "cell_bytes": cells.bytes,
                "epochs": report.epochs,
                "not_read": {
                    "files": report.unread.files,
                    "epochs": report.unread.epochs,
                    "unnamed": report.unread.unnamed,
                },
                "problems_found": found,
                "problems": problems,
            })
        )?,
        Format::Text if found == 0 => {
            let size = BinaryBytes(report.bytes);
            let (epochs, files, cells) = (epochs(&report), counted(report.files, "file"), counted(cells.cells, "cell"));
            writeln!(out, "{store}: {epochs} ({files}, {size}; {cells}){unread}")?;
        }
        Format::Text => {
            for problem in &problems {
                writeln!(out, "{problem}")?;
            }
            let (problems, files) = (counted(found, "problem"), counted(report.files, "file"));
            writeln!(out, "{store}: {problems} ({files} and {} read){unread}", counted(cells.cells, "cell"))?;
        }
    }
    Ok(if found == 0 { Outcome::Done } else { Outcome::Failed })
}

/// Describes the sound epochs.
fn epochs(report: &CheckReport) -> String {
    match report.epochs.len() {
        1 => format!("epoch {} is sound", report.epoch),
        epochs => format!("epoch {} and {} before it are sound", report.epoch, epochs - 1),
    }
}

/// The number of file names that fit on a line.
const NAMES_SHOWN: usize = 3;

/// Describes the files that were not read, for the end of the last line; empty if all files were read.
fn unread(report: &CheckReport) -> String {
    let mut parts = Vec::new();
    if report.unread.files > 0 {
        let numbers: Vec<String> = report.unread.epochs.iter().rev().map(ToString::to_string).collect();
        let files = counted(report.unread.files, "file");
        let (epochs, have) = if numbers.len() == 1 { ("epoch", "has") } else { ("epochs", "have") };
        let numbers = numbers.join(", ");
        parts.push(format!("{files} that only {epochs} {numbers} {have} (use --all)"));
    }
    let unnamed = &report.unread.unnamed;
    if !unnamed.is_empty() {
        let shown = unnamed[..unnamed.len().min(NAMES_SHOWN)].join(", ");
        let more = unnamed.len().saturating_sub(NAMES_SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        parts.push(format!("{shown}{more}, which no epoch names"));
    }
    if parts.is_empty() { String::new() } else { format!("; not read: {}", parts.join("; ")) }
}
