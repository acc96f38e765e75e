//! `webstrata captures`: the times at which a page was captured.

use crate::args::{Format, FormatArgs, Outcome};
use crate::ask::matching::{MatchArg, MatchArgs};
use crate::ask::{self, SourceArgs};
use crate::bars;
use clap::Args;
use std::io::Write;
use webstrata_layers::answers::captures::{Capture, Captures};
use webstrata_layers::{CaptureTime, Links, captures_of_page, format_time};

/// Arguments of `captures`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  webstrata captures STORE http://example.org/\n  \
                        webstrata captures STORE example.org --match surt\n  \
                        webstrata captures STORE example.org --bars\n  \
                        webstrata captures STORE example.org --format json")]
pub(crate) struct CapturesArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// URL of the page; without a scheme, http and https are tried
    pub(crate) url: String,
    #[command(flatten)]
    pub(crate) spelled: MatchArgs,
    /// Draw a calendar: a row a year, a column a week, as dark as there are captures in it
    #[arg(long, conflicts_with_all = ["format", "matching"])]
    pub(crate) bars: bool,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

pub(crate) fn run(args: &CapturesArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let reader = args.source.open(ask::READ_MEMORY)?;
    if args.spelled.matching == MatchArg::Surt {
        return of_page(&*reader, args, out);
    }
    let page = ask::find(&*reader, &args.url)?;
    let others = ask::count_others(&*reader, &page)?;
    let captures = reader.captures(page.uid)?;
    match args.format.format {
        Format::Json => {
            let answer = Captures {
                epoch: reader.epoch(),
                url: Some(page.url.clone()),
                uid: Some(page.uid),
                captures: captures.iter().map(|&capture| Capture::of(&page.url, capture)).collect(),
                ..Captures::default()
            };
            ask::print_json(&ask::WithSpellings { answer, other_spellings: others }, out)?;
        }
        Format::Text if args.bars => {
            bars::calendar(&captures).iter().try_for_each(|line| writeln!(out, "{line}"))?;
            if captures.is_empty() {
                ask::note(&format!("{} was never captured; other pages link to it", page.url));
            }
        }
        Format::Text => {
            for capture in &captures {
                writeln!(out, "{} {}{}", format_time(capture.time), capture.status, remark(capture))?;
            }
            if captures.is_empty() {
                ask::note(&format!("{} was never captured; other pages link to it", page.url));
            }
            ask::note_others(others);
        }
    }
    Ok(Outcome::Done)
}

/// The remark on a capture that leaves links unknown.
fn remark(capture: &CaptureTime) -> String {
    match capture.status.reason() {
        _ if !capture.known => "  links unknown".to_owned(),
        Some(reason) => format!("  cut ({})", reason.name()),
        None => String::new(),
    }
}

/// Prints the captures of all spellings of a page, each with its URL.
fn of_page(links: &dyn Links, args: &CapturesArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let (uids, urls) = ask::find_page(links, &args.url)?;
    let lists = uids.iter().map(|&uid| links.captures(uid)).collect::<Result<Vec<_>, _>>()?;
    let captures = captures_of_page(lists.iter().map(Vec::as_slice));
    if args.format.format == Format::Json {
        let captures = captures.iter().map(|(capture, url)| Capture::of(&urls[*url], *capture)).collect();
        let answer = Captures { epoch: links.epoch(), captures, spellings: Some(urls), ..Captures::default() };
        ask::print_json(&answer, out)?;
        return Ok(Outcome::Done);
    }
    for (capture, url) in &captures {
        let remark = remark(capture);
        writeln!(out, "{} {} {}{remark}", format_time(capture.time), capture.status, urls[*url])?;
    }
    if captures.is_empty() {
        ask::note("no spelling of the page was captured; other pages link to it");
    }
    Ok(Outcome::Done)
}
