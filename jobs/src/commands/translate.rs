//! `webstrata uids --translate`: translates UIDs of one epoch into UIDs of another epoch.
//!
//! Reads UIDs from the command line, else from standard input, one a line. Memory: the translations of the merges
//! between the two epochs.

use crate::args::{Format, FormatArgs};
use anyhow::{Context, anyhow};
use clap::Args;
use serde_json::json;
use std::io::{BufRead, Write};
use webstrata_layers::{Location, Store, Translations, Uid};

/// The options of `uids` that are about translation.
#[derive(Args, Debug)]
pub(crate) struct TranslateArgs {
    /// Translate UIDs of this epoch to UIDs of the current epoch
    #[arg(
        long,
        value_name = "EPOCH",
        conflicts_with_all = ["from", "to", "all", "part"],
        help_heading = "Translation"
    )]
    pub(crate) translate: Option<u64>,
    /// Translate from the current epoch to that epoch instead
    #[arg(long, requires = "translate", help_heading = "Translation")]
    pub(crate) back: bool,
    /// UIDs to translate [default: read them from standard input]
    #[arg(value_name = "UID", requires = "translate")]
    pub(crate) uids: Vec<Uid>,
}

/// Translates UIDs between the epoch `from` and the current epoch.
pub(crate) fn run(
    store: &Location,
    from: u64,
    args: &TranslateArgs,
    format: FormatArgs,
    input: impl BufRead,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let translations = Translations::between(&Store::open(store)?, from)?;
    let mut answer = |uid: Uid| -> anyhow::Result<()> {
        let translated = translations.translate(uid, args.back)?;
        match (format.format, translated) {
            (Format::Text, Some(translated)) => writeln!(out, "{translated}")?,
            (Format::Text, None) => writeln!(out, "-")?,
            (Format::Json, translated) => writeln!(out, "{}", json!({"uid": uid, "translated": translated}))?,
        }
        Ok(())
    };
    if !args.uids.is_empty() {
        return args.uids.iter().try_for_each(|&uid| answer(uid));
    }
    for (number, line) in (1u64..).zip(input.lines()) {
        let line = line.with_context(|| format!("standard input, line {number}"))?;
        let uid = line.trim().parse().map_err(|_| anyhow!("standard input, line {number}: not a UID: {line:?}"))?;
        answer(uid)?;
    }
    Ok(())
}
