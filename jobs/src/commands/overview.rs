//! `webstrata overview`: the contents of a store by year and by host, computed once an epoch and kept with the store.

use crate::args::{Format, FormatArgs, Outcome, location};
use crate::ask::{self, note};
use crate::bars::Axis;
use crate::running::RunArgs;
use crate::table::{Column, Table};
use clap::Args;
use indicatif::HumanCount;
use std::io::Write;
use webstrata_analysis::{Error, overview};
use webstrata_engine::{Progress, RunOptions};
use webstrata_layers::Error as StoreError;
use webstrata_layers::answers::contents::{Contents, EpochCounts};
use webstrata_layers::overview::{Lives, Numbers, Overview};
use webstrata_layers::{Location, Manifest, RangeLength, Store, counted, format_time};

const ABOUT: &str = "\
The overview of an epoch has captures, pages, URLs and links by year, for the
whole store and for the 50 hosts with the most captures; how long links live
(Kaplan-Meier, by age in months of 30 days); and the domains that are linked to
most. A link is found at the first capture of its page, gained at a later one,
and lost at the first capture that has it no more, if none has it later.

The overview is in STORE/overviews. Servers show it. `webstrata cells` writes it
too. This command computes it if it is missing.

Examples:
  webstrata overview STORE
  webstrata overview STORE --format json | jq .overview.domains";

/// Arguments of `overview`.
#[derive(Args, Debug)]
#[command(after_help = ABOUT)]
pub(crate) struct OverviewArgs {
    /// Store: a directory, or s3://bucket/prefix
    #[arg(value_parser = location())]
    pub(crate) store: Location,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

/// The number of hosts that fit on a screen.
const HOSTS_SHOWN: usize = 8;
/// The number of domains that fit on a screen.
const DOMAINS_SHOWN: usize = 5;
/// The number of days of a month of age.
const AGE_DAYS: f64 = 30.0;

pub(crate) fn run(args: &OverviewArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let store = Store::open(&args.store)?;
    let options = args.run.options(&args.store)?;
    let (found, run) = args.run.shown(|progress| kept(&store, &options, progress))?;
    args.run.write_report(&run, found.as_ref().err())?;
    let (found, not_kept) = found?;
    if let Some(error) = not_kept {
        note(&format!("the overview is not kept: {error}"));
    }
    if args.format.format == Format::Json {
        let (epoch, counts) = (store.manifest().epoch, EpochCounts::of(store.manifest()));
        ask::print_json(&Contents { epoch, counts, epochs: Vec::new(), overview: Some(found) }, out)?;
        return Ok(Outcome::Done);
    }
    print(&args.store, store.manifest(), &found, out)?;
    Ok(Outcome::Done)
}

/// The overview of a store: the one kept with the store, or a new one, which process 0 writes there. Also returns why
/// it could not be written: a store that cannot be written to still has an overview to show.
pub(crate) fn kept(
    store: &Store,
    options: &RunOptions,
    progress: &Progress,
) -> Result<(Overview, Option<StoreError>), Error> {
    match Overview::read(store) {
        Ok(Some(found)) => return Ok((found, None)),
        Ok(None) => {}
        Err(error @ StoreError::Unsealed { .. }) => note(&format!("{error}: that is done now")),
        Err(error) => return Err(error.into()),
    }
    let found = overview(options, progress)?;
    let writes = options.cluster.as_ref().is_none_or(|cluster| cluster.process == 0);
    let not_kept = if writes { found.write(store.location()).err() } else { None };
    Ok((found, not_kept))
}

fn print(store: &Location, manifest: &Manifest, found: &Overview, out: &mut dyn Write) -> anyhow::Result<()> {
    let counts = manifest.counts;
    let day = |time: i64| format_time(time).chars().take(10).collect::<String>();
    let Some((first, last)) = counts.first_time.zip(counts.last_time) else {
        writeln!(out, "{store}: epoch {} has no captures", manifest.epoch)?;
        return Ok(());
    };
    writeln!(out, "{store}: epoch {}, captures from {} to {}", manifest.epoch, day(first), day(last))?;
    print_years(&found.all, (first, last), out)?;
    print_lives(&found.lives, out)?;
    let count = |number: u64| HumanCount(number).to_string();
    let heads = ["captures", "pages", "URLs", "links"].map(Column::number);
    let mut hosts = Table::new(std::iter::once(Column::name("host")).chain(heads)).indented(2);
    for host in found.hosts.iter().take(HOSTS_SHOWN) {
        let sum = |column: &[u64]| column.iter().sum::<u64>();
        let numbers = [sum(&host.numbers.captures), host.pages, sum(&host.numbers.urls), host.links];
        hosts.row(std::iter::once(host.host.clone()).chain(numbers.map(count)));
    }
    writeln!(out, "\n{} captured; with the most captures:", counted(found.hosts_captured, "host"))?;
    hosts.print(out)?;
    let mut domains = Table::new([Column::name("domain"), Column::number("links")]).indented(2);
    for linked in found.domains.iter().take(DOMAINS_SHOWN) {
        domains.row([linked.domain.clone(), count(linked.links)]);
    }
    if !domains.is_empty() {
        writeln!(out, "\ndomains with the most links to their URLs:")?;
    }
    domains.print(out)?;
    Ok(())
}

/// Prints a row of blocks for each number by year, on one axis, with the sum of the number.
fn print_years(all: &Numbers, (first, last): (i64, i64), out: &mut dyn Write) -> anyhow::Result<()> {
    let columns = all.columns().map(|(name, column)| {
        // A page may be captured in many years, so the numbers of pages do not add up.
        let (name, number) = match name {
            "pages" => ("pages, at most".to_owned(), column.iter().max().copied().unwrap_or(0)),
            "urls" => ("URLs".to_owned(), column.iter().sum()),
            name => (name.replace('_', " "), column.iter().sum()),
        };
        (format!("{name:<15}{:>17}", HumanCount(number).to_string()), number, column)
    });
    let shown: Vec<_> = columns.iter().filter(|(_, number, _)| *number > 0).collect();
    let axis = Axis::of_terminal((first, last), shown.iter().map(|(name, _, _)| &**name));
    writeln!(out, "{}", axis.head())?;
    for (name, _, column) in shown {
        let mut values = Vec::new();
        let mut start = RangeLength::Year.start(first);
        for &number in *column {
            let end = RangeLength::Year.end(start);
            // A year has its real width, whatever cells it covers.
            values.extend((0..366).map(|part| (start + (end - start) / 366 * part, number as f64)));
            start = end + 1;
        }
        values.retain(|(time, _)| (first..=last).contains(time));
        writeln!(out, "{}", axis.heights(name, &values))?;
    }
    Ok(())
}

fn print_lives(lives: &Lives, out: &mut dyn Write) -> anyhow::Result<()> {
    let Some(born) = lives.at_risk.first().map(|&born| counted(born, "link")) else { return Ok(()) };
    let years = |age: u64| age as f64 * AGE_DAYS / 365.25;
    match (lives.median(), lives.age.last().zip(lives.surviving.last())) {
        (Some(age), _) => {
            writeln!(out, "\nof {born} that were gained, half are gone after {:.1} years", years(age))?;
        }
        (None, Some((&age, share))) => {
            let share = 100.0 * share;
            writeln!(out, "\nof {born} that were gained, {share:.0} % live on after {:.1} years", years(age))?;
        }
        (None, None) => {}
    }
    Ok(())
}
