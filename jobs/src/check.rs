//! `webstrata check`: every promise of the store format, verified file by file.

use crate::cli::{Format, FormatArgs, Outcome, location};
use clap::Args;
use indicatif::BinaryBytes;
use serde_json::json;
use std::io::Write;
use webstrata_layers::Location;

/// Arguments of `check`.
#[derive(Args, Debug)]
#[command(
    after_help = "Exit code 0: sound. 1: problems, each named with file and row.\n\nExample:\n  webstrata check STORE"
)]
pub(crate) struct CheckArgs {
    /// Store: a directory, or s3://bucket/prefix
    #[arg(value_parser = location())]
    pub(crate) store: Location,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

pub(crate) fn run(args: &CheckArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let report = webstrata_layers::check::check(&args.store)?;
    let problems: Vec<String> = report.problems.iter().map(ToString::to_string).collect();
    let found = report.problems_found;
    let store = &args.store;
    match args.format.format {
        Format::Json => writeln!(
            out,
            "{}",
            json!({
                "store": store.to_string(),
                "epoch": report.epoch,
                "files": report.files,
                "bytes": report.bytes,
                "problems_found": found,
                "problems": problems,
            })
        )?,
        Format::Text if found == 0 => {
            let size = BinaryBytes(report.bytes);
            writeln!(out, "{store}: epoch {} is sound ({} files, {size})", report.epoch, report.files)?;
        }
        Format::Text => {
            for problem in &problems {
                writeln!(out, "{problem}")?;
            }
            writeln!(out, "{store}: epoch {} has {found} problems", report.epoch)?;
        }
    }
    Ok(if report.is_sound() { Outcome::Done } else { Outcome::Failed })
}
