//! `webstrata watch`: a result that is kept right as a store grows.
//!
//! Follows the store until it is told to end; writes tables, or prints lines, of each epoch, and notes in the store how
//! far that is.

use crate::args::{Format, FormatArgs, Outcome, Usage, location, processors, size};
use crate::ask;
use crate::progress::stop_when_asked;
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
use webstrata_layers::{EpochId, Error as StoreError, Location};
use webstrata_pipeline::{Error as JobError, Progress};

const ABOUT: &str = "\
A page counts with the links of its latest capture whose links are known.
  degrees     links out of and into each URL
  top         the --k most linked URLs, and those linked as much as the last
  components  for each URL with links the URL that names its component
  hosts       links between hosts, or as --by says
  newlinks    links to --host or --domain that no capture had before

The whole result comes first, then of each epoch the rows that have changed,
with their values now and before. With --out these are Parquet files:
  DIR/top-000006.parquet          the result at epoch 6
  DIR/top-000006-000007.parquet   what epoch 7 changed of it
Without --out they are JSON lines, each part ended by a line with its \"rows\".

What is watched stands in STORE/watches with the last epoch that was written;
given again, also by its name alone, a watch goes on after that. Ctrl-C and
SIGTERM end it. Without a name, all that are registered are listed. In a
directory a name is followed by one process at a time; in S3 by the one that
was started last, and the one before ends when it has something to write.

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
    /// degrees, top, components, hosts, newlinks, or a registered name
    name: Option<String>,
    /// How many URLs are the top [default: 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    k: Option<u64>,
    /// Of hosts: host, domain or prefix:N [default: host]
    #[arg(long, value_name = "FOLD")]
    by: Option<Fold>,
    /// New links to URLs of this host
    #[arg(long, value_name = "HOST", conflicts_with = "domain")]
    host: Option<String>,
    /// New links to URLs of this host and its subdomains
    #[arg(long, value_name = "HOST")]
    domain: Option<String>,
    /// Name to register it under [default: what it is]
    #[arg(long = "as", value_name = "NAME")]
    register: Option<String>,
    /// Directory for tables; JSON lines if not given
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write each epoch's whole result, too
    #[arg(long)]
    whole: bool,
    /// Epoch to begin with, for a new watch [default: the current one]
    #[arg(long, value_name = "EPOCH")]
    from: Option<u64>,
    /// Begin again with a whole result, whatever was written
    #[arg(long)]
    anew: bool,
    /// End when all epochs that are there are written
    #[arg(long)]
    once: bool,
    /// End when this epoch is written
    #[arg(long, value_name = "EPOCH")]
    until_epoch: Option<u64>,
    /// Forget a registered watch; its tables stay
    #[arg(long, requires = "name")]
    forget: bool,
    /// Seconds between looks for a new epoch
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, value_parser = seconds)]
    every: f64,
    /// Threads that work; if not given, as many as there are processors
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,
    /// Memory of this process; a store that needs more is refused, and one that
    /// comes to need more ends it
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = size)]
    memory: usize,
    #[command(flatten)]
    format: FormatArgs,
}

/// A number of seconds.
fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| (0.001..=1e6).contains(seconds));
    seconds.ok_or_else(|| format!("not a number of seconds from 0.001 to 1000000: {text:?}"))
}

pub(crate) fn run(args: &WatchArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let Some(name) = &args.name else {
        list(args, out)?;
        return Ok(Outcome::Done);
    };
    // No directory is made where there is no store.
    webstrata_layers::Store::open(&args.store)?;
    if let Some(out) = &args.out {
        if format_of::<TableFormat>(out).is_ok() && !out.is_dir() {
            return Err(Usage(
                "--out of watch is a directory, for Parquet files: give a name without the ending of a file",
            )
            .into());
        }
        outside_stores(out)?;
    }
    let wanted = standing(name, args)?;
    let name = args.register.as_ref().unwrap_or(name);
    let is_sound =
        |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    if !is_sound(name) {
        return Err(Usage("a watch is named by letters, digits, - and _").into());
    }
    if args.forget || wanted.is_none() {
        let all = registered(&args.store)?;
        if all.iter().all(|(known, _)| known != name) {
            bail!("{}: nothing is registered as {name}; `webstrata watch STORE` lists what is", args.store);
        }
    }
    let (registered, known) = Registered::take(&args.store, name)?;
    if args.forget {
        registered.forget()?;
        return Ok(Outcome::Done);
    }
    let mut registration = settled(args, name, wanted, known)?;
    let start = match (registration.epoch.filter(|_| !args.anew), args.from) {
        (Some(epoch), None) => Start::After(epoch),
        (Some(_), Some(_)) => return Err(Usage("--from is for a new watch, or with --anew").into()),
        (None, Some(epoch)) => Start::At(epoch),
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
        every: Duration::from_secs_f64(args.every),
        workers: args.workers.map_or_else(processors, usize::from),
        memory_max: args.memory,
    };
    let progress = Progress::default();
    stop_when_asked(&progress);
    let tables = registration.out.as_ref().map(|out| Tables::open(out, name, &registration.standing)).transpose()?;
    let mut writer =
        Writer { tables, standing: registration.standing.clone(), part: None, format: args.format.format, out };
    let ended = follow(&options, &progress, |event| -> anyhow::Result<()> {
        writer.write(&event)?;
        if let (Event::End { last: true, .. }, Some(part)) = (&event, writer.part) {
            registration.epoch = Some(part.id);
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

/// What a name and options ask for; `None` for a name that must be registered.
fn standing(name: &str, args: &WatchArgs) -> anyhow::Result<Option<Standing>> {
    let allowed = |k: bool, by: bool, host: bool| {
        let has_host = args.host.is_some() || args.domain.is_some();
        if (args.k.is_some() && !k) || (args.by.is_some() && !by) || (has_host && !host) {
            return Err(Usage("--k is for top, --by for hosts, --host and --domain for newlinks"));
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
            Standing::Hosts { by: args.by.unwrap_or(Fold::Host) }
        }
        "newlinks" => {
            allowed(false, false, true)?;
            let Some(host) = args.host.as_ref().or(args.domain.as_ref()) else { return Ok(None) };
            let host = ask::host(host).ok_or(Usage("--host and --domain want the name of a host"))?;
            Standing::NewLinks { host, subdomains: args.domain.is_some() }
        }
        _ => {
            allowed(false, false, false)?;
            return Ok(None);
        }
    }))
}

/// What is to be kept: as registered, if it is, and as the options say.
fn settled(
    args: &WatchArgs,
    name: &str,
    wanted: Option<Standing>,
    known: Option<Registration>,
) -> anyhow::Result<Registration> {
    let out = args.out.as_deref().map(std::path::absolute).transpose()?;
    let Some(known) = known else {
        let standing = wanted.with_context(|| format!("nothing is registered as {name}"))?;
        return Ok(Registration { standing, out, whole: args.whole, epoch: None });
    };
    let has_options = args.k.is_some() || args.by.is_some() || args.host.is_some() || args.domain.is_some();
    let same = wanted
        .is_none_or(|wanted| wanted == known.standing || (!has_options && wanted.kind() == known.standing.kind()));
    if !same || out.is_some_and(|out| known.out != Some(out)) || (args.whole && !known.whole) {
        bail!("{name} is registered as {}; give that, another name with --as, or --forget it first", described(&known));
    }
    Ok(known)
}

/// A registration in the words of the command line.
fn described(registration: &Registration) -> String {
    let out = registration.out.as_ref().map_or(String::new(), |out| format!(" --out {}", out.display()));
    format!("{}{out}{}", registration.standing, if registration.whole { " --whole" } else { "" })
}

/// Adds what to do where an epoch to go on from is lost.
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
            "what has changed since epoch {epoch} cannot be told any more; --anew begins again with a whole result"
        )),
        _ if lost => error.context("what has changed cannot be told; --anew begins again with a whole result"),
        _ => error,
    }
}

fn list(args: &WatchArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    webstrata_layers::Store::open(&args.store)?;
    for (name, registration) in registered(&args.store)? {
        match args.format.format {
            Format::Text => {
                let epoch = registration.epoch.map_or("nothing written".to_owned(), |id| format!("epoch {}", id.epoch));
                writeln!(out, "{name:<16} {epoch:<16} {}", described(&registration))?;
            }
            Format::Json => writeln!(out, "{}", json!({"name": name, "watch": registration}))?,
        }
    }
    Ok(())
}

/// Where events go.
struct Writer<'a> {
    tables: Option<Tables>,
    standing: Standing,
    part: Option<Changeset>,
    format: Format,
    out: &'a mut dyn Write,
}

impl Writer<'_> {
    fn write(&mut self, event: &Event) -> anyhow::Result<()> {
        if let Event::Begin(part) = event {
            self.part = Some(*part);
        }
        let Some(Changeset { id: EpochId { epoch, .. }, since }) = self.part else { return Ok(()) };
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
        let Some(Changeset { id: EpochId { epoch, .. }, since }) = self.part else { return Ok(()) };
        match (table, self.format) {
            (Some(table), Format::Text) => {
                let changed = if since.is_some() { " changed" } else { "" };
                writeln!(self.out, "epoch {epoch}: {rows} rows{changed}, {seconds:.2} s: {}", table.display())
            }
            _ => {
                let table = table.map(|table| table.display().to_string());
                let line = json!({"epoch": epoch, "since": since, "rows": rows, "seconds": seconds, "table": table});
                writeln!(self.out, "{line}")
            }
        }
    }
}

/// A row as a line: of a whole result what it is, of changes what it is and was.
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
