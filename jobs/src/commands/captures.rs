//! `webstrata captures`: the times at which a page was captured.

use crate::args::{Format, FormatArgs, Outcome};
use crate::ask::{self, SourceArgs};
use clap::Args;
use serde_json::json;
use std::io::Write;
use webstrata_layers::format_time;

/// Arguments of `captures`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  webstrata captures STORE http://example.org/\n  \
                        webstrata captures STORE example.org --format json",
    allow_missing_positional = true
)]
pub(crate) struct CapturesArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// URL of the page; without a scheme, http and https are tried
    pub(crate) url: String,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

pub(crate) fn run(args: &CapturesArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let reader = args.source.open(ask::READ_MEMORY)?;
    let page = ask::find(&*reader, &args.url)?;
    let captures = reader.captures(page.uid)?;
    match args.format.format {
        Format::Json => {
            let times: Vec<_> = captures.iter().map(|capture| format_time(capture.time)).collect();
            let unknown: Vec<_> = captures.iter().filter(|c| !c.known).map(|c| format_time(c.time)).collect();
            let answer = json!({"url": page.url, "epoch": reader.epoch(), "captures": times, "unknown": unknown});
            writeln!(out, "{answer}")?;
        }
        Format::Text => {
            for capture in &captures {
                let unknown = if capture.known { "" } else { "  links unknown" };
                writeln!(out, "{}{unknown}", format_time(capture.time))?;
            }
            if captures.is_empty() {
                ask::note(&format!("{} was never captured; other pages link to it", page.url));
            }
        }
    }
    Ok(Outcome::Done)
}
