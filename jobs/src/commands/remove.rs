//! `webstrata remove`: takes pages and links out of a store, and keeps them out.

use crate::args::{Format, FormatArgs, Outcome, Usage, interval, location, seconds, time_from, time_to};
use crate::ask::{host, not_a_host, not_a_prefix, note};
use crate::commands::gc::ranges;
use crate::commands::merge;
use crate::commands::removed::{Search, read_urls, urls_of};
use crate::running::{RunArgs, write_json};
use crate::table::{Column, Table};
use clap::{Args, ValueEnum};
use indicatif::HumanCount;
use serde_json::json;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use webstrata_engine::{Error as JobError, RunOptions};
use webstrata_layers::gc::{collect, holders};
use webstrata_layers::{Error as StoreError, Location, Removal, RemovalRule, RemovedAs, Selection, Store, format_time};
use webstrata_pipeline::{Error, MergeOptions, RemoveOptions, RemoveReport, Removed, remove};
use webstrata_url::canonical;

const EXAMPLES: &str = "\
remove makes a new epoch in which no query finds what was removed, and merges
all rows, so that no file of the newest epoch contains it. Earlier epochs are
retired: servers stop to answer them and drop their cells, and remove deletes
their files when no reader has them open. At the end, remove searches every file
of the store for what was removed. Exit code 1: a reader still has an earlier
epoch open after --wait seconds, or a file still contains what was removed.

With --no-merge, the files keep what was removed until `webstrata remove STORE
--finish`, which also goes on after a remove that was stopped.

The store remembers what was removed, as hashes without the names. Builds and
updates leave it out and count it, except with --with-removed.

A URL without a scheme means http and https. Other spellings of the page, with
or without www, are other URLs: --prefix and --host cover more.

Examples:
  webstrata remove STORE --url http://example.org/private.html
  webstrata remove STORE --host example.org --as page --reason 'case 17'
  webstrata remove STORE --prefix http://example.org/people/ --to 2012
  webstrata remove STORE --urls list.txt --wait 60
  webstrata remove STORE --finish
  webstrata remove STORE --list";

/// The first and the longest wait between two looks at the readers of epochs.
const LOOKS: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(2)];

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
    /// Remove the URLs that start with this URL, with any scheme, port and user info;
    /// repeat for more
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
    /// Keep the URLs and hosts themselves with the rule, not only hashes of them
    #[arg(long)]
    pub(crate) keep_names: bool,
    /// List what was removed, and remove nothing
    #[arg(long, conflicts_with_all = ["url", "urls", "host", "domain", "prefix", "from", "to", "reason"])]
    #[arg(conflicts_with_all = ["keep_names", "no_merge", "finish", "wait"])]
    pub(crate) list: bool,
    /// Do not merge rows after the removal
    #[arg(long)]
    pub(crate) no_merge: bool,
    /// Finish earlier removals: merge, delete earlier epochs and search the files
    #[arg(long, conflicts_with_all = ["url", "urls", "host", "domain", "prefix", "from", "to", "reason"])]
    #[arg(conflicts_with_all = ["keep_names", "no_merge"])]
    pub(crate) finish: bool,
    /// Maximum seconds to wait for another writer, and for the readers of earlier epochs
    #[arg(long, value_name = "SECONDS", default_value_t = 300.0, value_parser = seconds)]
    pub(crate) wait: f64,
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
    if rules.is_empty() && !args.finish {
        return Err(Usage("say what to remove: --url, --urls, --host, --domain or --prefix".into()).into());
    }
    let run = args.run.options(&args.store)?;
    if !args.finish {
        take_out(&run, rules.clone(), args, out)?;
    }
    let started = Instant::now();
    let manifest = Store::open(&args.store)?.manifest().clone();
    if !args.no_merge && (manifest.rows.len() > 1 || manifest.removes()) {
        let options = MergeOptions::new(run);
        let quiet = RunArgs { metrics: None, report: None, ..args.run.clone() };
        args.patiently(|| merge::run_shown(&options, &quiet, args.format.format, out))?;
    }
    let held = collect_all(args, started, out)?;
    let store = Store::open(&args.store)?;
    let mut search = if args.finish { Search::of_store(&store, |_| true) } else { Search::of_rules(&store, &rules) };
    if !args.no_merge {
        search.run(&args.store)?;
        match args.format.format {
            Format::Text => search.print(&args.store, out)?,
            Format::Json => writeln!(out, "{}", search.as_json(&args.store))?,
        }
    }
    out.flush()?;
    if args.no_merge {
        note("the files keep what was removed until `webstrata remove STORE --finish`");
    } else if held {
        note("when these readers are gone, run `webstrata remove STORE --finish`");
    }
    Ok(if held || !args.no_merge && !search.is_clean() { Outcome::Failed } else { Outcome::Done })
}

impl RemoveArgs {
    /// Runs a step that needs the lock of the store. While another process writes, repeats the step for a limited time.
    fn patiently<T>(&self, mut run: impl FnMut() -> anyhow::Result<T>) -> anyhow::Result<T> {
        let until = Instant::now() + Duration::from_secs_f64(self.wait);
        loop {
            match run() {
                Err(error) if is_locked(&error) && Instant::now() < until => std::thread::sleep(LOOKS[0]),
                done => return done,
            }
        }
    }
}

/// Whether another process writes the store, or has the temporary files of a process that writes it.
fn is_locked(error: &anyhow::Error) -> bool {
    let is = |error: &StoreError| matches!(error, StoreError::Locked { .. });
    error.chain().any(|cause| match cause.downcast_ref() {
        Some(Error::Job(JobError::Store(error))) => is(error),
        Some(Error::Job(JobError::ScratchInUse { .. })) => true,
        _ => cause.downcast_ref().is_some_and(is),
    })
}

/// Commits the epoch that takes captures or links out.
fn take_out(run: &RunOptions, rules: Vec<Removal>, args: &RemoveArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let options = RemoveOptions { run: run.clone(), rules, keep_names: args.keep_names };
    let (report, run) = args.patiently(|| {
        let (removed, run) = args.run.shown(|progress| remove(&options, progress))?;
        if let Some(path) = &args.run.report {
            let (epoch, error) = match &removed {
                Ok(report) => (Some(report.epoch), None),
                Err(error) => (None, Some(error.to_string())),
            };
            write_json(path, &json!({"epoch": epoch, "error": error, "seconds": run.seconds, "stages": run.stages}))?;
        }
        Ok((removed?, run))
    })?;
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
    Ok(out.flush()?)
}

/// Deletes all epochs except the current one when their readers are gone. Returns whether some epochs stay after the
/// time to wait.
fn collect_all(args: &RemoveArgs, started: Instant, out: &mut dyn Write) -> anyhow::Result<bool> {
    let until = Instant::now() + Duration::from_secs_f64(args.wait);
    let (mut removed, mut pause) = (Vec::new(), LOOKS[0]);
    let owner = format!("remove, process {}", std::process::id());
    let leased = loop {
        let collected = args.patiently(|| Ok(collect(&args.store, &owner, 1)?))?;
        removed.extend(collected.removed);
        if collected.leased.is_empty() || Instant::now() >= until {
            break collected.leased;
        }
        std::thread::sleep(pause.min(until.saturating_duration_since(Instant::now())));
        pause = (pause * 2).min(LOOKS[1]);
    };
    let mut held = Vec::new();
    for epoch in leased {
        held.push((epoch, holders(&args.store, epoch)?));
    }
    let seconds = started.elapsed().as_secs_f64();
    match args.format.format {
        Format::Text => {
            let epochs = ranges(&removed);
            writeln!(out, "{}: earlier epochs deleted: {epochs}, {seconds:.1} s after the removal", args.store)?;
            for (epoch, by) in &held {
                let by = if by.is_empty() { "a reader".to_owned() } else { by.join(", ") };
                writeln!(out, "{}: epoch {epoch} is still open: {by}", args.store)?;
            }
        }
        Format::Json => {
            let held: Vec<_> = held.iter().map(|(epoch, by)| json!({"epoch": epoch, "by": by})).collect();
            let value = json!({
                "store": args.store.to_string(), "removed_epochs": removed, "seconds": seconds, "still_open": held,
            });
            writeln!(out, "{value}")?;
        }
    }
    Ok(!held.is_empty())
}

fn rule(select: Selection, args: &RemoveArgs) -> Removal {
    let RemoveArgs { from, to, reason, .. } = args;
    Removal { select, removed_as: args.removed_as.into(), from: *from, to: *to, reason: reason.clone() }
}

/// The selections of the arguments.
fn selections(args: &RemoveArgs) -> anyhow::Result<Vec<Selection>> {
    let mut selections = Vec::new();
    let listed = args.urls.as_deref().map(read_urls).transpose()?.unwrap_or_default();
    selections.extend(args.url.iter().map(|text| urls_of(text)).collect::<anyhow::Result<Vec<_>>>()?.concat());
    selections.extend(listed);
    let host_of = |text: &String| host(text).ok_or_else(|| not_a_host(text));
    for text in &args.host {
        selections.push(Selection::Host(host_of(text)?));
    }
    for text in &args.domain {
        selections.push(Selection::Domain(host_of(text)?));
    }
    for text in &args.prefix {
        let url = canonical(None, text).map_err(|_| not_a_prefix(text))?;
        selections.push(Selection::Prefix(url));
    }
    Ok(selections)
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
    let heads = ["selects", "name or hash", "as", "from", "to"].map(Column::word);
    let mut table = Table::new(heads.into_iter().chain([Column::rest("reason")]));
    for rule in &store.manifest().provenance.removals {
        let RemovalRule { select, hash, bytes: _, name, removed_as, from, to, reason } = rule;
        let kind = select.name();
        let time = |time: &Option<i64>| time.map(format_time);
        if args.format.format == Format::Json {
            let (from, to) = (time(from), time(to));
            let value = json!({
                "select": kind, "hash": hash, "name": name, "as": removed_as, "from": from, "to": to, "reason": reason,
            });
            writeln!(out, "{value}")?;
            continue;
        }
        let text = name.clone().unwrap_or_else(|| hash.to_string());
        let removed_as = match removed_as {
            RemovedAs::Page => "page",
            RemovedAs::Target => "target",
            RemovedAs::Both => "both",
        };
        let [from, to] = [from, to].map(|end| time(end).unwrap_or_else(|| "-".to_owned()));
        let reason = reason.clone().unwrap_or_default();
        table.row([kind.to_owned(), text, removed_as.to_owned(), from, to, reason]);
    }
    table.print(out)?;
    if args.format.format == Format::Text && table.is_empty() {
        note(&format!("{}: nothing was removed", args.store));
    }
    Ok(Outcome::Done)
}
