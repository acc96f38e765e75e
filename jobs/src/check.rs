//! `webstrata check`: every promise of the store format, verified file by file.

use crate::cli::{Format, FormatArgs, Outcome};
use clap::Args;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

/// Arguments of `check`.
#[derive(Args, Debug)]
#[command(
    after_help = "Exit code 0: sound. 1: problems, each named with file and row.\n\nExample:\n  webstrata check STORE"
)]
pub(crate) struct CheckArgs {
    /// Directory of the store
    pub(crate) store: PathBuf,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

pub(crate) fn run(args: &CheckArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let report = webstrata_layers::check(&args.store)?;
    let problems: Vec<String> = report.problems.iter().map(ToString::to_string).collect();
    let store = args.store.display();
    match args.format.format {
        Format::Json => writeln!(out, "{}", json!({"store": store.to_string(), "problems": problems}))?,
        Format::Text if problems.is_empty() => writeln!(out, "{store}: sound")?,
        Format::Text => {
            for problem in &problems {
                writeln!(out, "{problem}")?;
            }
            writeln!(out, "{store}: {} problems", problems.len())?;
        }
    }
    Ok(if problems.is_empty() { Outcome::Done } else { Outcome::Failed })
}
