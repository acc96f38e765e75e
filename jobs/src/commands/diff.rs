//! `webstrata diff`: the additions of an epoch of a store to an earlier epoch, or the changes of the graph from one
//! date to a later date.
//!
//! Prints a line for each page, capture and link when it is found, then the counts.

use crate::args::{AsOfArgs, Format, FormatArgs, Outcome, Usage, location, time_to};
use crate::ask::{self, PartArgs};
use anyhow::bail;
use clap::Args;
use indicatif::HumanCount;
use serde_json::json;
use std::io::{self, Write};
use webstrata_layers::{
    CaptureChange, ChangedPage, Changes, DateChanges, Diff, Links, Location, PageBetween, PageChange, Reader, Store,
    Uid, format_time,
};

const EXAMPLES: &str = "\
The store must still have both epochs: `webstrata log` lists them. --captures
and --links print one line per change:
  + PAGE TIME           a new capture
  ~ PAGE TIME           a capture whose links changed, and how
  + PAGE LINK           a new link, which no earlier capture of the page had
  - PAGE LINK           a lost link: the captures that had it were read again

With --from-date and --to-date, diff compares the graphs of two dates in one
epoch. A page is gained if it is there as of the second date only, and lost if
it is there as of the first date only. If the links of a page are unknown at
one of the dates, none of its links are gained or lost. --pages and --links
print one line per change:
  + PAGE, - PAGE        a page gained, lost
  ~ PAGE, ? PAGE        a page with other links, with unknown links
  + PAGE LINK           a link gained
  - PAGE LINK           a link lost

Examples:
  webstrata diff STORE --from-date 2008 --to-date 2010
  webstrata diff STORE --from-date 2008 --to-date 2010 --host example.org --links
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
    /// Earlier epoch, a number; --from-date takes a date [default: the epoch before the latest update]
    #[arg(long, value_name = "EPOCH")]
    pub(crate) from: Option<u64>,
    /// Later epoch, a number; --to-date takes a date [default: the current epoch]
    #[arg(long, value_name = "EPOCH")]
    pub(crate) to: Option<u64>,
    /// Print the captures that are new or have changed
    #[arg(long)]
    pub(crate) captures: bool,
    /// Print the links that pages gained and lost
    #[arg(long)]
    pub(crate) links: bool,
    /// Compare the graph as of this time with the graph as of --to-date
    #[arg(long, value_name = "T", value_parser = time_to, requires = "to_date",
          conflicts_with_all = ["from", "to", "captures"])]
    pub(crate) from_date: Option<i64>,
    /// The later time
    #[arg(long, value_name = "T", value_parser = time_to, requires = "from_date")]
    pub(crate) to_date: Option<i64>,
    /// With dates: print the pages that are gained, lost or changed, or whose links are unknown
    #[arg(long, requires = "from_date")]
    pub(crate) pages: bool,
    #[command(flatten)]
    pub(crate) part: PartArgs,
    #[command(flatten)]
    pub(crate) as_of: AsOfArgs,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

pub(crate) fn run(args: &DiffArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    args.as_of.need(args.from_date.is_some())?;
    let prefix = args.part.prefix()?;
    if let Some((from, to)) = args.from_date.zip(args.to_date) {
        return between_dates(args, (from, to), prefix.as_deref(), out);
    }
    if prefix.is_some() {
        return Err(Usage("--host, --domain and --prefix need dates: add --from-date and --to-date".into()).into());
    }
    if args.from.zip(args.to).is_some_and(|(from, to)| from > to) {
        return Err(Usage("--from is later than --to".into()).into());
    }
    let newer = args.to.map_or_else(|| Store::open(&args.store), |to| Store::open_epoch(&args.store, to))?;
    let to = newer.manifest().epoch;
    // A merge changes nothing that is visible here.
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

/// Prints the differences between two dates, of all pages or of pages with a key that begins with `prefix`.
fn between_dates(
    args: &DiffArgs,
    (from, to): (i64, i64),
    prefix: Option<&[u8]>,
    out: &mut dyn Write,
) -> anyhow::Result<Outcome> {
    let dates = args.as_of.dates(from, to)?;
    let reader = Reader::new(Store::open(&args.store)?, ask::READ_MEMORY);
    let uids = prefix.map_or_else(|| Ok(vec![Uid::below(reader.urls())]), |prefix| reader.with_prefix(prefix))?;
    let mut changes = DateChanges::default();
    for page in reader.between(dates, uids) {
        let page = page?;
        changes.add(&page);
        if args.pages || args.links {
            print_between(&page, &reader, args, out)?;
        }
    }
    let [from, to] = [from, to].map(format_time);
    match args.format.format {
        Format::Json => {
            let store = args.store.to_string();
            writeln!(out, "{}", json!({"store": store, "from_date": from, "to_date": to, "changes": changes}))?;
        }
        Format::Text => {
            writeln!(out, "{}: {from} to {to}", args.store)?;
            let counts = [
                ("pages gained", changes.pages_gained),
                ("pages lost", changes.pages_lost),
                ("pages, other links", changes.pages_changed),
                ("pages, unknown links", changes.pages_unknown),
                ("links gained", changes.links_gained),
                ("links lost", changes.links_lost),
            ];
            print_counts(&counts, out)?;
        }
    }
    Ok(Outcome::Done)
}

fn print_between(page: &PageBetween, reader: &Reader, args: &DiffArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let (url, is_json) = (reader.url(page.uid)?, args.format.format == Format::Json);
    if args.pages && is_json {
        writeln!(out, "{}", json!({"page": url, "change": page.change, "unknown": page.unknown}))?;
    } else if args.pages {
        let mark = match page.change {
            PageChange::Gained => '+',
            PageChange::Lost => '-',
            PageChange::Stayed if page.unknown => '?',
            PageChange::Stayed => '~',
        };
        let how = if page.unknown && mark != '?' { "  links unknown" } else { "" };
        writeln!(out, "{mark} {url}{how}")?;
    }
    let gained = page.gained.iter().map(|&link| ('+', "gained", link));
    let lost = page.lost.iter().map(|&link| ('-', "lost", link));
    for (mark, how, link) in gained.chain(lost).filter(|_| args.links) {
        let target = reader.url(link)?;
        if is_json {
            writeln!(out, "{}", json!({"page": url, "link": target, "change": how}))?;
        } else {
            writeln!(out, "{mark} {url} {target}")?;
        }
    }
    Ok(())
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
            (CaptureChange::Status, _) => ('~', "  other status"),
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
    let counts = [
        ("new pages", changes.new_pages),
        ("new captures", changes.new_captures),
        ("  with unknown links", changes.new_unknown),
        ("captures now known", changes.now_known),
        ("captures now unknown", changes.now_unknown),
        ("captures, other status", changes.other_status),
        ("captures, other links", changes.other_links),
        ("links gained", changes.links_gained),
        ("links lost", changes.links_lost),
    ];
    print_counts(&counts, out)
}

fn print_counts(counts: &[(&str, u64)], out: &mut dyn Write) -> io::Result<()> {
    for &(what, count) in counts {
        writeln!(out, "  {what:<22} {:>15}", HumanCount(count).to_string())?;
    }
    Ok(())
}
