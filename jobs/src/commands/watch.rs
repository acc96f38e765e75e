//! `webstrata watch`: a result that is kept up to date as a store grows.
//!
//! Follows the store until the process is told to end. For each epoch, writes tables or prints lines, and notes in the
//! store which epoch was reached.

use crate::args::{Format, FormatArgs, Outcome, Usage, location, processors, seconds, size};
use crate::ask;
use crate::running::progress::stop_when_asked;
use crate::table::{Column, Table};
use anyhow::{Context, bail};
use clap::Args;
use serde_json::{Map, Value as Json, json};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use webstrata_analysis::Error;
use webstrata_analysis::standing::{
    ChangedRow, Changeset, Event, FollowOptions, Registered, Registration, Standing, Start, Tables, Value, follow,
    registered,
};
use webstrata_analysis::{Fold, TableFormat, format_of, outside_stores};
use webstrata_engine::{Error as JobError, Progress};
use webstrata_layers::{EpochId, Error as StoreError, Location, counted};

const ABOUT: &str = "\
Results, from the latest capture of each page whose links are known:
  degrees     out-links and in-links of each URL
  top         the --k most linked URLs, and further URLs with as many links as
              the last of them
  components  for each URL with links, the URL that names its component
  hosts       links between hosts, or as --unit says
  newlinks    links to --host or --domain that no earlier capture had

watch first writes the whole result. For each later epoch it writes the rows
that changed, with their new and old values. With --out these are Parquet
files:
  DIR/top-000006.parquet          the result at epoch 6
  DIR/top-000006-000007.parquet   the changes of epoch 7
Without --out they are JSON lines; a line with \"rows\" ends each epoch.

A watch is registered in STORE/watches with the last epoch that it wrote. To
resume after that epoch, run the same command again, or give the name alone.
Ctrl-C and SIGTERM stop a watch. `webstrata watch STORE` lists all watches. In a
directory, only one process at a time can run a watch. In S3, the process that
was started last takes over, and the one before stops at its next write.

Examples:
  webstrata watch STORE degrees --out tables
  webstrata watch STORE newlinks --domain example.org --as alerts
  webstrata watch STORE alerts --once
  webstrata watch STORE";

/// Arguments of `watch`.
#[derive(Args, Debug)]
#[command(after_help = ABOUT)]
pub(crate) struct WatchArgs {
    /// Store: a directory, or s3://bucket/prefix
    #[arg(value_parser = location())]
    store: Location,
    /// degrees, top, components, hosts, newlinks, or the name of a watch
    name: Option<String>,
    /// top: number of URLs [default: 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    k: Option<u64>,
    /// hosts: group by host, domain or prefix:N [default: host]
    #[arg(long, value_name = "WHAT")]
    unit: Option<Fold>,
    /// newlinks: links to URLs of this host
    #[arg(long, value_name = "HOST", conflicts_with = "domain")]
    host: Option<String>,
    /// newlinks: links to URLs of this host and its subdomains
    #[arg(long, value_name = "HOST")]
    domain: Option<String>,
    /// Name of the watch [default: the name of the result]
    #[arg(long = "as", value_name = "NAME")]
    register: Option<String>,
    /// Directory for Parquet files [default: JSON lines to standard output]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Also write the whole result of each epoch
    #[arg(long)]
    whole: bool,
    /// First epoch of a new watch [default: the current epoch]
    #[arg(long, value_name = "EPOCH")]
    from: Option<u64>,
    /// Start again with a whole result, even if epochs were written before
    #[arg(long)]
    anew: bool,
    /// Exit when all present epochs are written
    #[arg(long)]
    once: bool,
    /// Exit when this epoch is written
    #[arg(long, value_name = "EPOCH")]
    until_epoch: Option<u64>,
    /// Remove the watch from the store; keep its tables
    #[arg(long, requires = "name")]
    forget: bool,
    /// Seconds between checks for a new epoch
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, value_parser = seconds)]
    interval: f64,
    /// Worker threads [default: number of processors]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,
    /// Memory limit of this process; watch does not start, or stops, if it needs more
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = size)]
    memory: usize,
    #[command(flatten)]
    format: FormatArgs,
}

pub(crate) fn run(args: &WatchArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let Some(name) = &args.name else {
        return list(args, out);
    };
    // No directory is made if there is no store.
    webstrata_layers::Store::open(&args.store)?;
    if let Some(out) = &args.out {
        if format_of::<TableFormat>(out).is_ok() && !out.is_dir() {
            return Err(Usage(
                "--out of watch is a directory for Parquet files: use a name without a file ending".into(),
            )
            .into());
        }
        outside_stores(out)?;
    }
    let requested = standing(name, args)?;
    let name = args.register.as_ref().unwrap_or(name);
    let is_sound =
        |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    if !is_sound(name) {
        return Err(Usage("the name of a watch may contain letters, digits, - and _ only".into()).into());
    }
    if (args.forget || requested.is_none()) && !Registered::is_there(&args.store, name)? {
        bail!("{}: there is no watch {name}; `webstrata watch STORE` lists the watches", args.store);
    }
    let registered = Registered::take(&args.store, name)?;
    if args.forget {
        registered.forget()?;
        return Ok(Outcome::Done);
    }
    let known = registered.registration()?;
    let mut registration = settled(args, name, requested, known)?;
    let start = match (registration.epoch.filter(|_| !args.anew), args.from) {
        (Some(epoch), None) => Start::After(epoch),
        (Some(_), Some(_)) => {
            return Err(Usage(
                "--from needs a new watch or --anew: this watch resumes after the epoch that it wrote last".into(),
            )
            .into());
        }
        (None, Some(epoch)) => {
            // The epoch is rejected if something was taken out of it since.
            webstrata_layers::Store::open_epoch(&args.store, epoch)?;
            Start::At(epoch)
        }
        (None, None) => Start::Now,
    };
    registered.write(&registration)?;
    let options = FollowOptions {
        store: args.store.clone(),
        standing: registration.standing.clone(),
        start,
        until: args.until_epoch,
        once: args.once,
        whole: registration.whole,
        every: Duration::from_secs_f64(args.interval),
        workers: args.workers.map_or_else(processors, usize::from),
        memory_max: args.memory,
    };
    let progress = Progress::default();
    let _acting = stop_when_asked(&progress);
    let tables = registration.out.as_ref().map(|out| Tables::open(out, name, &registration.standing)).transpose()?;
    let mut writer =
        Writer { tables, standing: registration.standing.clone(), changeset: None, format: args.format.format, out };
    let mut resumes = if let Start::After(known) = start { Some(known.epoch) } else { None };
    let ended = follow(&options, &progress, |event| -> anyhow::Result<()> {
        if let (Event::Begin(Changeset { id, since: None }), Some(written)) = (&event, resumes.take()) {
            ask::note(&format!(
                "a removal deleted epoch {written}, so the changes since then are not known; the whole result of \
                 epoch {} follows",
                id.epoch
            ));
        }
        writer.write(&event)?;
        if let (Event::End { last: true, .. }, Some(changeset)) = (&event, writer.changeset) {
            registration.epoch = Some(changeset.id);
            registered.write(&registration)?;
        }
        Ok(())
    });
    match ended.map_err(|error| explained(error, start)) {
        Err(error) if matches!(error.downcast_ref(), Some(Error::Job(JobError::Cancelled))) => {
            ask::note("stopped; run the same command to resume after the last epoch that was written");
            Ok(Outcome::Done)
        }
        ended => ended.map(|()| Outcome::Done),
    }
}

/// The result for a name and options; `None` for a name that must be registered.
fn standing(name: &str, args: &WatchArgs) -> anyhow::Result<Option<Standing>> {
    let allowed = |k: bool, unit: bool, host: bool| {
        let has_host = args.host.is_some() || args.domain.is_some();
        if (args.k.is_some() && !k) || (args.unit.is_some() && !unit) || (has_host && !host) {
            return Err(Usage("--k is an option of top, --unit of hosts, --host and --domain of newlinks".into()));
        }
        Ok(())
    };
    Ok(Some(match name {
        "degrees" | "components" => {
            allowed(false, false, false)?;
            if name == "degrees" { Standing::Degrees } else { Standing::Components }
        }
        "top" => {
            allowed(true, false, false)?;
            Standing::Top { k: args.k.unwrap_or(100) }
        }
        "hosts" => {
            allowed(false, true, false)?;
            Standing::Hosts { unit: args.unit.unwrap_or(Fold::Host) }
        }
        "newlinks" => {
            allowed(false, false, true)?;
            let Some(host) = args.host.as_ref().or(args.domain.as_ref()) else { return Ok(None) };
            let host = ask::host(host).ok_or_else(|| ask::not_a_host(host))?;
            Standing::NewLinks { host, subdomains: args.domain.is_some() }
        }
        _ => {
            allowed(false, false, false)?;
            return Ok(None);
        }
    }))
}

/// The registration of a watch: the known registration, or a new one from the options.
fn settled(
    args: &WatchArgs,
    name: &str,
    requested: Option<Standing>,
    known: Option<Registration>,
) -> anyhow::Result<Registration> {
    let out = args.out.as_deref().map(std::path::absolute).transpose()?;
    let Some(known) = known else {
        let standing = requested.with_context(|| {
            format!(
                "there is no watch {name}; newlinks needs --host or --domain, and the other results are degrees, top, \
                 components and hosts"
            )
        })?;
        return Ok(Registration { standing, out, whole: args.whole, epoch: None });
    };
    let has_options = args.k.is_some() || args.unit.is_some() || args.host.is_some() || args.domain.is_some();
    let is_same = requested.is_none_or(|requested| {
        requested == known.standing || (!has_options && requested.kind() == known.standing.kind())
    });
    if !is_same || out.is_some_and(|out| known.out != Some(out)) || (args.whole && !known.whole) {
        bail!(
            "the watch {name} exists with other options: {}; use these options, choose another name with --as, or \
             remove it with --forget",
            described(&known)
        );
    }
    Ok(known)
}

/// A registration in the words of the command line.
fn described(registration: &Registration) -> String {
    let out = registration.out.as_ref().map_or(String::new(), |out| format!(" --out {}", out.display()));
    format!("{}{out}{}", registration.standing, if registration.whole { " --whole" } else { "" })
}

/// Adds advice to an error if the epoch to continue from is lost.
fn explained(error: anyhow::Error, start: Start) -> anyhow::Error {
    let lost = matches!(
        error.downcast_ref(),
        Some(Error::Job(JobError::Store(
            StoreError::RetiredEpoch { .. }
                | StoreError::NoTranslation { .. }
                | StoreError::MissingEpoch { .. }
                | StoreError::Replaced { .. }
        )))
    );
    match start {
        Start::After(EpochId { epoch, .. }) if lost => error.context(format!(
            "the changes since epoch {epoch} are no longer known; use --anew to start again with a whole result"
        )),
        _ if lost => error.context("the changes are no longer known; use --anew to start again with a whole result"),
        _ => error,
    }
}

fn list(args: &WatchArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    webstrata_layers::Store::open(&args.store)?;
    let mut outcome = Outcome::Done;
    let mut table = Table::new([Column::word("name"), Column::word("written"), Column::rest("result")]);
    for (name, registration) in registered(&args.store)? {
        let registration = match registration {
            Ok(registration) => registration,
            // The other watches are listed nevertheless.
            Err(error) => {
                ask::note(&format!("{error:#}"));
                outcome = Outcome::Failed;
                continue;
            }
        };
        match args.format.format {
            Format::Text => {
                let epoch = registration.epoch.map_or("nothing".to_owned(), |id| format!("epoch {}", id.epoch));
                table.row([name, epoch, described(&registration)]);
            }
            Format::Json => writeln!(out, "{}", json!({"name": name, "watch": registration}))?,
        }
    }
    table.print(out)?;
    if args.format.format == Format::Text && table.is_empty() && outcome == Outcome::Done {
        ask::note(&format!("{}: no watches; `webstrata watch STORE degrees --out DIR` begins one", args.store));
    }
    Ok(outcome)
}

/// Writes events.
struct Writer<'a> {
    tables: Option<Tables>,
    standing: Standing,
    changeset: Option<Changeset>,
    format: Format,
    out: &'a mut dyn Write,
}

impl Writer<'_> {
    fn write(&mut self, event: &Event) -> anyhow::Result<()> {
        if let Event::Begin(changeset) = event {
            self.changeset = Some(*changeset);
        }
        let Some(Changeset { id: EpochId { epoch, .. }, since }) = self.changeset else { return Ok(()) };
        let table = self.tables.as_mut().map(|tables| tables.write(event)).transpose()?.flatten();
        match event {
            Event::Rows(rows) if self.tables.is_none() => {
                for row in rows {
                    writeln!(self.out, "{}", line(&self.standing, epoch, since, row))?;
                }
            }
            Event::End { rows, seconds, .. } => {
                self.end(table.as_deref(), *rows, seconds.all)?;
                self.out.flush()?;
            }
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, table: Option<&Path>, rows: u64, seconds: f64) -> io::Result<()> {
        let Some(Changeset { id: EpochId { epoch, .. }, since }) = self.changeset else { return Ok(()) };
        match (table, self.format) {
            (Some(table), Format::Text) => {
                let changed = if since.is_some() { " changed" } else { "" };
                let rows = counted(rows, "row");
                writeln!(self.out, "epoch {epoch}: {rows}{changed}, {seconds:.2} s: {}", table.display())
            }
            _ => {
                let table = table.map(|table| table.display().to_string());
                let line = json!({"epoch": epoch, "since": since, "rows": rows, "seconds": seconds, "table": table});
                writeln!(self.out, "{line}")
            }
        }
    }
}

/// A row as a JSON line: the value of a whole result, or the values before and after a change.
fn line(standing: &Standing, epoch: u64, since: Option<u64>, row: &ChangedRow) -> Json {
    let mut line = Map::new();
    line.insert("epoch".to_owned(), epoch.into());
    let keys: &[&str] = match standing {
        Standing::Hosts { .. } => &["source", "target"],
        Standing::NewLinks { .. } => &["page", "link"],
        _ => &["url"],
    };
    line.extend(keys.iter().zip(&row.key).map(|(name, key)| ((*name).to_owned(), key.as_str().into())));
    if matches!(standing, Standing::NewLinks { .. }) {
        if since.is_some() {
            line.insert("change".to_owned(), if row.after.is_some() { "gained" } else { "lost" }.into());
        }
    } else {
        line.insert("is".to_owned(), row.after.as_ref().map_or(Json::Null, value));
        if since.is_some() {
            line.insert("was".to_owned(), row.before.as_ref().map_or(Json::Null, value));
        }
    }
    line.into()
}

fn value(value: &Value) -> Json {
    match value {
        Value::Degrees { out, into } => json!({"out": out, "in": into}),
        Value::Into(into) => json!({"in": into}),
        Value::Component(name) => json!({"component": name}),
        Value::Links(links) => json!({"links": links}),
        Value::There => json!({}),
    }
}
