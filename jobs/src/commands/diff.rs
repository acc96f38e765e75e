//! `webstrata diff`: what an epoch of a store has that an earlier one had not.
//!
//! Printed as it is found, a line for each capture and link, then the counts.

use crate::args::{Format, FormatArgs, Outcome, Usage, location};
use crate::ask;
use anyhow::bail;
use clap::Args;
use indicatif::HumanCount;
use serde_json::json;
use std::io::{self, Write};
use webstrata_layers::{CaptureChange, ChangedPage, Changes, Diff, Links, Location, Reader, Store, format_time};

const EXAMPLES: &str = "\
The store must still have both epochs: `webstrata log` lists them. --captures
and --links print one line per change:
  + PAGE TIME           a new capture
  ~ PAGE TIME           a capture whose links changed, and how
  + PAGE LINK           a new link, which no earlier capture of the page had
  - PAGE LINK           a lost link: the captures that had it were read again

Examples:
  webstrata diff STORE
  webstrata diff STORE --from 6 --to 8 --captures
  webstrata diff STORE --from 6 --links --format json";

/// Arguments of `diff`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DiffArgs {
    /// Store: a directory, or s3://bucket/prefix
    #[arg(value_parser = location())]
    pub(crate) store: Location,
    /// Earlier epoch [default: the epoch before the latest update]
    #[arg(long, value_name = "EPOCH")]
    pub(crate) from: Option<u64>,
    /// Later epoch [default: the current epoch]
    #[arg(long, value_name = "EPOCH")]
    pub(crate) to: Option<u64>,
    /// Print the captures that are new or have changed
    #[arg(long)]
    pub(crate) captures: bool,
    /// Print the links that pages gained and lost
    #[arg(long)]
    pub(crate) links: bool,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

pub(crate) fn run(args: &DiffArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    if args.from.zip(args.to).is_some_and(|(from, to)| from > to) {
        return Err(Usage("--from is later than --to").into());
    }
    let newer = args.to.map_or_else(|| Store::open(&args.store), |to| Store::open_epoch(&args.store, to))?;
    let to = newer.manifest().epoch;
    // A merge changes nothing that could be seen here.
    let update = newer.manifest().history.iter().rev().find(|past| past.translation.is_none());
    let from = args.from.unwrap_or_else(|| update.map_or(to - 1, |past| past.epoch));
    if from == 0 {
        bail!("{}: epoch {to} is the first epoch, so there is no earlier epoch to compare with", args.store);
    }
    let older = Store::open_epoch(&args.store, from)?;
    let [older, newer] = [older, newer].map(|store| Reader::new(store, ask::READ_MEMORY / 2));
    let mut changes = Changes::default();
    for page in Diff::between(&older, &newer)? {
        let page = page?;
        changes.add(&page);
        if args.captures || args.links {
            print_page(&page, &older, &newer, args, out)?;
        }
    }
    match args.format.format {
        Format::Json => {
            writeln!(out, "{}", json!({"store": args.store.to_string(), "from": from, "to": to, "changes": changes}))?;
        }
        Format::Text => print_changes(&changes, &format!("{}: epoch {from} to {to}", args.store), out)?,
    }
    Ok(Outcome::Done)
}

fn print_page(
    page: &ChangedPage,
    older: &Reader,
    newer: &Reader,
    args: &DiffArgs,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let (url, is_json) = (newer.url(page.uid)?, args.format.format == Format::Json);
    for capture in page.captures.iter().filter(|_| args.captures) {
        let time = format_time(capture.time);
        if is_json {
            let line = json!({"page": url, "time": time, "capture": capture.change, "known": capture.known});
            writeln!(out, "{line}")?;
            continue;
        }
        let (mark, how) = match (capture.change, capture.known) {
            (CaptureChange::New, true) => ('+', ""),
            (CaptureChange::New, false) => ('+', "  links unknown"),
            (CaptureChange::Known, _) => ('~', "  links now known"),
            (CaptureChange::Unknown, _) => ('~', "  links now unknown"),
            (CaptureChange::Links, _) => ('~', "  other links"),
        };
        writeln!(out, "{mark} {url} {time}{how}")?;
    }
    let gained = page.gained.iter().map(|&link| ('+', "gained", newer, link));
    let lost = page.lost.iter().map(|&link| ('-', "lost", older, link));
    for (mark, how, reader, link) in gained.chain(lost).filter(|_| args.links) {
        let target = reader.url(link)?;
        if is_json {
            writeln!(out, "{}", json!({"page": url, "link": target, "change": how}))?;
        } else {
            writeln!(out, "{mark} {url} {target}")?;
        }
    }
    Ok(())
}

fn print_changes(changes: &Changes, title: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{title}")?;
    for (what, count) in [
        ("new pages", changes.new_pages),
        ("new captures", changes.new_captures),
        ("  with unknown links", changes.new_unknown),
        ("captures now known", changes.now_known),
        ("captures now unknown", changes.now_unknown),
        ("captures, other links", changes.other_links),
        ("links gained", changes.links_gained),
        ("links lost", changes.links_lost),
    ] {
        writeln!(out, "  {what:<22} {:>15}", HumanCount(count).to_string())?;
    }
    Ok(())
}
