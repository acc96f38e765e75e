//! `webstrata uids`: the pages of a store that were captured in a time, in order of UIDs.
//!
//! Printed as they are found, a line each; nothing is kept.

use crate::ask;
use crate::cli::{Format, FormatArgs, Outcome, Usage, location, time_from, time_to};
use clap::Args;
use serde_json::json;
use std::io::Write;
use std::ops::ControlFlow;
use webstrata_layers::Location;

const EXAMPLES: &str = "\
A line is a UID and a URL. UIDs are numbers in the order of the store, which
keeps URLs of one host together; another build may give others. Times are as in
`webstrata links`.

Example:
  webstrata uids STORE --from 2006 --to 200803";

/// Arguments of `uids`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct UidsArgs {
    /// Store: a directory, or s3://bucket/prefix
    #[arg(value_parser = location())]
    pub(crate) store: Location,
    /// Pages with a capture from this time on
    #[arg(long, value_name = "T", value_parser = time_from)]
    pub(crate) from: Option<i64>,
    /// Pages with a capture up to this time
    #[arg(long, value_name = "T", value_parser = time_to)]
    pub(crate) to: Option<i64>,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

pub(crate) fn run(args: &UidsArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let (from, to) = (args.from.unwrap_or(i64::MIN), args.to.unwrap_or(i64::MAX));
    if from > to {
        return Err(Usage("--from is later than --to").into());
    }
    let links = ask::open(&args.store, ask::READ_MEMORY)?;
    let (mut url, mut failed) = (Vec::new(), None);
    let mut line = |uid: u64| -> anyhow::Result<()> {
        links.url_into(uid, &mut url)?;
        match args.format.format {
            Format::Text => {
                write!(out, "{uid} ")?;
                out.write_all(&url)?;
                out.write_all(b"\n")?;
            }
            Format::Json => writeln!(out, "{}", json!({"uid": uid, "url": String::from_utf8_lossy(&url)}))?,
        }
        Ok(())
    };
    links.uids(from, to, &mut |uid| match line(uid) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            failed = Some(error);
            ControlFlow::Break(())
        }
    })?;
    failed.map_or(Ok(Outcome::Done), Err)
}
