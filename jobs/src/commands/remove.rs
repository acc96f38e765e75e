//! `webstrata remove`: takes pages and links out of a store, and keeps them out.

use crate::args::{Format, FormatArgs, Outcome, Usage, interval, location, time_from, time_to};
use crate::ask::{host, note};
use crate::commands::merge;
use crate::running::{RunArgs, write_json};
use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};
use indicatif::HumanCount;
use serde_json::json;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use webstrata_layers::{Location, Removal, RemovedAs, Selection, Store, format_time};
use webstrata_pipeline::{MergeOptions, RemoveOptions, RemoveReport, Removed, remove};
use webstrata_url::{canonical, meant};

const EXAMPLES: &str = "\
remove makes a new epoch in which no query finds what was removed. Then it
merges all rows, so that the files of the newest epoch do not contain it either.
With --no-merge, the merge is left to a later `webstrata merge --rows all`:
until then the removed URLs stay in the list of URLs. Earlier epochs and their
cells keep everything until `webstrata gc STORE --keep 1`.

The store remembers what was removed. Builds and updates leave it out and count
it, except with --with-removed. `webstrata check STORE --removed FILE` looks
for URLs in every file of a store.

A URL without a scheme means http and https. Other spellings of the page, with
or without www, are other URLs: --prefix and --host cover more.

Examples:
  webstrata remove STORE --url http://example.org/private.html
  webstrata remove STORE --host example.org --as page --reason 'case 17'
  webstrata remove STORE --prefix http://example.org/people/ --to 2012
  webstrata remove STORE --urls list.txt --no-merge
  webstrata remove STORE --list";

/// Arguments of `remove`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RemoveArgs {
    /// Store: a directory, or s3://bucket/prefix
    #[arg(value_parser = location())]
    pub(crate) store: Location,
    /// Remove this URL; repeat for more
    #[arg(long, value_name = "URL")]
    pub(crate) url: Vec<String>,
    /// Remove the URLs in this file, one per line, or - for standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) urls: Option<PathBuf>,
    /// Remove the URLs of this host; repeat for more
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Vec<String>,
    /// Remove the URLs of this host and its subdomains; repeat for more
    #[arg(long, value_name = "HOST")]
    pub(crate) domain: Vec<String>,
    /// Remove the URLs that start with this URL, with any scheme and port; repeat for more
    #[arg(long, value_name = "URL")]
    pub(crate) prefix: Vec<String>,
    /// Only captures from this time on
    #[arg(long, value_name = "TIME", value_parser = time_from)]
    pub(crate) from: Option<i64>,
    /// Only captures up to this time
    #[arg(long, value_name = "TIME", value_parser = time_to)]
    pub(crate) to: Option<i64>,
    /// Remove the captures of the URLs, the links to them, or both
    #[arg(long = "as", value_name = "WHAT", value_enum, default_value_t = As::Both)]
    pub(crate) removed_as: As,
    /// Note with the rule, for `webstrata remove STORE --list`
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// List what was removed, and remove nothing
    #[arg(long, conflicts_with_all = ["url", "urls", "host", "domain", "prefix", "from", "to", "reason"])]
    pub(crate) list: bool,
    /// Do not merge rows after the removal
    #[arg(long)]
    pub(crate) no_merge: bool,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

/// As what URLs are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum As {
    /// Their captures; links to them stay
    Page,
    /// Links to them; their captures stay
    Target,
    /// Captures and links
    Both,
}

impl From<As> for RemovedAs {
    fn from(removed_as: As) -> Self {
        match removed_as {
            As::Page => RemovedAs::Page,
            As::Target => RemovedAs::Target,
            As::Both => RemovedAs::Both,
        }
    }
}

pub(crate) fn run(args: &RemoveArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    if args.list {
        return list(args, out);
    }
    interval(args.from, args.to)?;
    let rules: Vec<Removal> = selections(args)?.into_iter().map(|select| rule(select, args)).collect();
    if rules.is_empty() {
        return Err(Usage("say what to remove: --url, --urls, --host, --domain or --prefix").into());
    }
    let options = RemoveOptions { run: args.run.options(&args.store)?, rules };
    let (removed, run) = args.run.shown(|progress| remove(&options, progress))?;
    if let Some(path) = &args.run.report {
        let (epoch, error) = match &removed {
            Ok(report) => (Some(report.epoch), None),
            Err(error) => (None, Some(error.to_string())),
        };
        write_json(path, &json!({"epoch": epoch, "error": error, "seconds": run.seconds, "stages": run.stages}))?;
    }
    let report = removed?;
    match args.format.format {
        Format::Text => print_text(&report, run.seconds, args, out)?,
        Format::Json => {
            let RemoveReport { epoch, removed: Removed { pages, captures, sources, occurrences } } = report;
            let value = json!({
                "store": args.store.to_string(), "epoch": epoch, "seconds": run.seconds,
                "pages": pages, "captures": captures, "sources": sources, "occurrences": occurrences,
            });
            writeln!(out, "{value}")?;
        }
    }
    out.flush()?;
    if !args.no_merge {
        let options = MergeOptions { run: options.run, rows: None, partition_urls: None };
        let quiet = RunArgs { metrics: None, report: None, ..args.run.clone() };
        merge::run_shown(&options, &quiet, args.format.format, out)?;
    }
    note("earlier epochs and their cells keep what was removed until `webstrata gc STORE --keep 1`");
    Ok(Outcome::Done)
}

fn rule(select: Selection, args: &RemoveArgs) -> Removal {
    let RemoveArgs { from, to, reason, .. } = args;
    Removal { select, removed_as: args.removed_as.into(), from: *from, to: *to, reason: reason.clone() }
}

/// What the arguments select.
fn selections(args: &RemoveArgs) -> anyhow::Result<Vec<Selection>> {
    let mut selections = Vec::new();
    let listed = args.urls.as_deref().map(read_urls).transpose()?.unwrap_or_default();
    selections.extend(args.url.iter().map(|text| urls_of(text)).collect::<anyhow::Result<Vec<_>>>()?.concat());
    selections.extend(listed);
    let host_of =
        |text: &String| host(text).ok_or_else(|| anyhow!("{text:?} is not the name of a host, such as example.org"));
    for text in &args.host {
        selections.push(Selection::Host(host_of(text)?));
    }
    for text in &args.domain {
        selections.push(Selection::Domain(host_of(text)?));
    }
    for text in &args.prefix {
        let url = canonical(None, text)
            .map_err(|_| Usage("--prefix needs a URL with its scheme, for example http://example.org/news/"))?;
        selections.push(Selection::Prefix(url));
    }
    Ok(selections)
}

/// The URLs of a file, one a line; empty lines are passed over.
pub(crate) fn read_urls(path: &Path) -> anyhow::Result<Vec<Selection>> {
    let text = if path == Path::new("-") {
        io::read_to_string(io::stdin().lock()).context("reading standard input")?
    } else {
        std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?
    };
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let urls =
        lines.map(|(number, line)| urls_of(line).with_context(|| format!("line {number} of {}", path.display())));
    Ok(urls.collect::<anyhow::Result<Vec<_>>>()?.concat())
}

fn urls_of(text: &str) -> anyhow::Result<Vec<Selection>> {
    let urls = meant(text).map_err(|error| anyhow!("invalid URL {text:?}: {error}"))?;
    Ok(urls.into_iter().map(Selection::Url).collect())
}

fn print_text(report: &RemoveReport, seconds: f64, args: &RemoveArgs, out: &mut dyn Write) -> io::Result<()> {
    let RemoveReport { epoch, removed: Removed { pages, captures, sources, occurrences } } = report;
    writeln!(out, "{}: epoch {epoch}, in {seconds:.1} s", args.store)?;
    for (what, count) in [
        ("pages with removed captures", pages),
        ("removed captures", captures),
        ("pages with removed links", sources),
        ("removed links of captures", occurrences),
    ] {
        writeln!(out, "  {what:<28} {:>15}", HumanCount(*count).to_string())?;
    }
    if (*captures, *occurrences) == (0, 0) {
        writeln!(out, "  nothing in the store matches; updates will leave it out")?;
    }
    Ok(())
}

/// Prints the rules of the current epoch.
fn list(args: &RemoveArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let store = Store::open(&args.store)?;
    for Removal { select, removed_as, from, to, reason } in &store.manifest().provenance.removals {
        let (kind, text) = match select {
            Selection::Url(text) => ("url", text),
            Selection::Host(text) => ("host", text),
            Selection::Domain(text) => ("domain", text),
            Selection::Prefix(text) => ("prefix", text),
        };
        let time = |time: &Option<i64>| time.map(format_time);
        if args.format.format == Format::Json {
            let (from, to) = (time(from), time(to));
            let value = json!({"select": kind, kind: text, "as": removed_as, "from": from, "to": to, "reason": reason});
            writeln!(out, "{value}")?;
            continue;
        }
        let removed_as = match removed_as {
            RemovedAs::Page => "page",
            RemovedAs::Target => "target",
            RemovedAs::Both => "both",
        };
        write!(out, "{kind} {text} as {removed_as}")?;
        if let Some(from) = time(from) {
            write!(out, " from {from}")?;
        }
        if let Some(to) = time(to) {
            write!(out, " to {to}")?;
        }
        match reason {
            Some(reason) => writeln!(out, " ({reason})")?,
            None => writeln!(out)?,
        }
    }
    Ok(Outcome::Done)
}
