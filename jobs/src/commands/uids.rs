//! `webstrata uids`: the URLs of a store, a host, a domain or a path, or the URLs captured in a time, in order of UIDs;
//! or UIDs of one epoch translated to another epoch (`translate`).
//!
//! Prints each URL on a line when it is found, and keeps nothing in memory.

use crate::args::{Format, FormatArgs, Outcome, interval, location, time_from, time_to};
use crate::ask::{self, PartArgs};
use crate::commands::translate::{self, TranslateArgs};
use clap::Args;
use serde_json::json;
use std::cell::Cell;
use std::io::Write;
use std::ops::ControlFlow;
use webstrata_layers::Location;
use webstrata_layers::Uid;

const EXAMPLES: &str = "\
Each line is a UID and a URL. A UID is the number of a URL in this store; URLs
of one host are close together. Another build may assign other UIDs. For times,
see `webstrata help links`.

A merge assigns new UIDs. --translate prints the current UID for each UID of an
earlier epoch, one per line, or `-` if there is none. It also works for epochs
that gc removed.

Examples:
  webstrata uids STORE --from 2006 --to 2008-03
  webstrata uids STORE --domain example.org --all
  webstrata uids STORE --prefix http://example.org/news/
  webstrata uids STORE --translate 6 < uids-of-epoch-6.txt
  webstrata uids STORE --translate 6 --back 0 3";

/// Arguments of `uids`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct UidsArgs {
    /// Store: a directory, or s3://bucket/prefix
    #[arg(value_parser = location())]
    pub(crate) store: Location,
    /// Pages with a capture at or after this time
    #[arg(long, value_name = "T", value_parser = time_from)]
    pub(crate) from: Option<i64>,
    /// Pages with a capture at or before this time
    #[arg(long, value_name = "T", value_parser = time_to)]
    pub(crate) to: Option<i64>,
    /// Include URLs that pages link to, but that were never captured
    #[arg(long, conflicts_with_all = ["from", "to"])]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) part: PartArgs,
    #[command(flatten)]
    pub(crate) translate: TranslateArgs,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

pub(crate) fn run(args: &UidsArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    if let Some(epoch) = args.translate.translate {
        translate::run(&args.store, epoch, &args.translate, args.format, std::io::stdin().lock(), out)?;
        return Ok(Outcome::Done);
    }
    let (from, to) = interval(args.from, args.to)?;
    let prefix = args.part.prefix()?;
    let links = ask::open(&args.store, ask::READ_MEMORY)?;
    let uids = match prefix {
        Some(prefix) => links.with_prefix(&prefix)?,
        None => std::iter::once(Uid::below(links.urls())).collect(),
    };
    let (mut url, mut failed, epoch, count) = (Vec::new(), None, links.epoch(), Cell::new(0_u64));
    let mut line = |uid: Uid| -> anyhow::Result<()> {
        count.set(count.get() + 1);
        links.url_into(uid, &mut url)?;
        match args.format.format {
            Format::Text => {
                write!(out, "{uid} ")?;
                out.write_all(&url)?;
                out.write_all(b"\n")?;
            }
            Format::Json => {
                writeln!(out, "{}", json!({"uid": uid, "epoch": epoch, "url": String::from_utf8_lossy(&url)}))?
            }
        }
        Ok(())
    };
    for uids in uids {
        if args.all {
            Uid::each(uids).try_for_each(&mut line)?;
            continue;
        }
        links.uids(uids, (from, to), &mut |uid| match line(uid) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        })?;
        failed.take().map_or(Ok(()), Err)?;
    }
    if count.get() == 0 && args.format.format == Format::Text {
        let others = if args.all { "" } else { "; --all also lists URLs that were never captured" };
        ask::note(&format!("no page of the store is in this selection{others}"));
    }
    Ok(Outcome::Done)
}
