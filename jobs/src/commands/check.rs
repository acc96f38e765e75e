//! `webstrata check`: every promise of the store format, verified file by file; then the cells beside the layers.

use crate::args::{Format, FormatArgs, Outcome, location};
use crate::commands::removed;
use clap::Args;
use indicatif::BinaryBytes;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;
use webstrata_cells::Error;
use webstrata_cells::image::check::check as check_cells;
use webstrata_codecs::ENCODINGS;
use webstrata_layers::{Location, Store};

/// Arguments of `check`.
#[derive(Args, Debug)]
#[command(after_help = "\
check verifies every layer file of the current epoch. It also opens each cell in
STORE/cells, if there are any, and compares the cell with its layers.

Exit code 0: no problems. 1: problems, one line each, with the name of the file.

With --removed, check reads the files of all epochs, not only of the current
one, and lists the URLs of FILE that a file still contains.

Examples:
  webstrata check STORE
  webstrata check STORE --removed list.txt")]
pub(crate) struct CheckArgs {
    /// Store: a directory, or s3://bucket/prefix
    #[arg(value_parser = location())]
    pub(crate) store: Location,
    /// Look for the URLs in this file, one per line, in every file of the store, or - for standard
    /// input
    #[arg(long, value_name = "FILE")]
    pub(crate) removed: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

pub(crate) fn run(args: &CheckArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    if let Some(list) = &args.removed {
        return removed::run(&args.store, list, args.format.format, out);
    }
    let report = webstrata_layers::read::check::check(&args.store)?;
    let store = &args.store;
    let cells = check_cells(&Store::open_epoch(store, report.epoch)?, ENCODINGS);
    // A cell whose layers are broken cannot be compared; these problems are known.
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
                "problems_found": found,
                "problems": problems,
            })
        )?,
        Format::Text if found == 0 => {
            let size = BinaryBytes(report.bytes);
            let (epoch, files, cells) = (report.epoch, report.files, cells.cells);
            writeln!(out, "{store}: epoch {epoch} is sound ({files} files, {size}; {cells} cells)")?;
        }
        Format::Text => {
            for problem in &problems {
                writeln!(out, "{problem}")?;
            }
            writeln!(out, "{store}: epoch {} has {found} problems ({} cells checked)", report.epoch, cells.cells)?;
        }
    }
    Ok(if found == 0 { Outcome::Done } else { Outcome::Failed })
}
