//! `webstrata deaths`: pages that died, the statuses that ended them, and the pages that still link to them.
//!
//! Without `--period` it prints deaths. With `--period` it prints the number of deaths in each period. Memory: the rows
//! that are printed.

use crate::args::units::PeriodArg;
use crate::args::{Outcome, interval, limit, time_from, time_to};
use crate::ask::{self, PartArgs, SourceArgs};
use crate::commands::backlinks::TableFormat;
use crate::table::{Column, Table};
use clap::{Args, ValueEnum};
use indicatif::HumanCount;
use serde_json::json;
use std::io::Write;
use webstrata_layers::answers::deaths::Row;
use webstrata_layers::{
    DeadPage, DeathSearch, DeathsAsked, Linkers, Links, Order, RangeLength, Status, StillLinking, Toll, Uid, answer_of,
    counted, format_time,
};

/// The number of deaths that are printed together.
const PART: usize = 1000;

const ABOUT: &str = "\
A page dies at the first failure that ends it (4xx, but not 429) after a capture
in which it was there. It has returned at the next capture in which it is there.
A page that died twice has two rows. --missing lists the pages that were never
there instead: their captures are such failures. --linkers names pages that link
to a dead page at their latest capture, as `links URL --in --at now` does.

Rows:   when the page died, the status, the last capture before in which it was
        there, when it returned, how many pages link to it at their latest
        capture (with a ? if it is unknown whether more do), and the page. JSON
        and CSV have the number of these pages in `unknown`
--period:
        how many pages died and returned in each period, and how many are gone
        at its end

Examples:
  webstrata deaths STORE --period year
  webstrata deaths STORE --domain example.org --from 2019 --to 2019
  webstrata deaths STORE --still --order most
  webstrata deaths STORE --missing --order most
  webstrata deaths STORE --still --from 2019 --to 2019 --linkers 100 --format csv";

/// Arguments of `deaths`.
#[derive(Args, Debug)]
#[command(after_help = ABOUT)]
pub(crate) struct DeathsArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) part: PartArgs,
    /// Print how many pages died, period by period
    #[arg(long, value_name = "PERIOD", value_enum)]
    pub(crate) period: Option<PeriodArg>,
    /// Only deaths at or after this time
    #[arg(long, value_name = "T", value_parser = time_from, conflicts_with = "period")]
    pub(crate) from: Option<i64>,
    /// Only deaths at or before this time
    #[arg(long, value_name = "T", value_parser = time_to, conflicts_with = "period")]
    pub(crate) to: Option<i64>,
    /// List pages that only ever failed, with their first failures
    #[arg(long)]
    pub(crate) missing: bool,
    /// Only pages that are still gone
    #[arg(long, conflicts_with = "period")]
    pub(crate) still: bool,
    /// Only deaths with this status
    #[arg(long, value_name = "CODE", value_parser = status, conflicts_with = "period")]
    pub(crate) status: Option<Status>,
    /// Which deaths are printed first
    #[arg(long, value_name = "WHICH", value_enum, default_value_t, conflicts_with = "period")]
    pub(crate) order: DeathOrder,
    /// Print at most N deaths, 0 for all [default: 20 as text, else all]
    #[arg(long, value_name = "N", value_parser = limit, conflicts_with = "period")]
    pub(crate) limit: Option<usize>,
    /// Print so many of the pages that link to each dead page, at most 100
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "period")]
    #[arg(value_parser = clap::value_parser!(u64).range(0..=DeathSearch::LINKERS_MAX))]
    pub(crate) linkers: u64,
    /// How to print the result
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) format: TableFormat,
}

/// Which deaths are printed first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DeathOrder {
    /// What died first
    #[default]
    First,
    /// What died last
    Last,
    /// To what most pages link
    Most,
    /// By URL: pages of one host together
    Key,
}

fn status(text: &str) -> Result<Status, String> {
    let status = text.parse().ok().and_then(Status::new);
    status.ok_or_else(|| format!("not a status: {text:?} (expected 100 to 999)"))
}

pub(crate) fn run(args: &DeathsArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let interval = match (args.from, args.to) {
        (None, None) => (i64::MIN, i64::MAX),
        (from, to) => interval(from, to)?,
    };
    let prefix = args.part.prefix()?;
    let links = args.source.open(ask::READ_MEMORY)?;
    let pages = match prefix {
        Some(prefix) => links.with_prefix(&prefix)?,
        None => std::iter::once(Uid::below(links.urls())).collect(),
    };
    let limit = args.limit.unwrap_or(if args.format == TableFormat::Text { 20 } else { usize::MAX });
    let order = match args.order {
        DeathOrder::First => Order::First,
        DeathOrder::Last => Order::Last,
        DeathOrder::Most => Order::Most,
        DeathOrder::Key => Order::Key,
    };
    let asked = DeathsAsked {
        interval,
        missing: args.missing,
        still: args.still,
        status: args.status,
        period: args.period.map_or(RangeLength::Year, PeriodArg::length),
        order,
        after: None,
        limit: if args.period.is_some() { 0 } else { limit },
    };
    let found = answer_of(&*links, DeathSearch::new(&pages, asked))?;
    if let Some(period) = args.period {
        print_series(&found.periods, (period, args.format), out)?;
    } else {
        print_rows(&*links, &found.rows, args, out)?;
    }
    if args.format == TableFormat::Text {
        let noun = if args.missing { "missing page" } else { "death" };
        match (found.total, found.selected, found.rows.len() as u64) {
            (0, ..) if args.missing => ask::note("each page of this selection was there at some time"),
            (0, ..) => ask::note("no page of this selection died"),
            _ if args.period.is_some() => {}
            (total, 0, _) => ask::note(&format!("none of {} is among those asked for", counted(total, noun))),
            (_, selected, shown) if shown < selected => {
                ask::note(&format!("{shown} of {} are shown; --limit 0 prints all", counted(selected, noun)));
            }
            _ => {}
        }
    }
    Ok(Outcome::Done)
}

fn print_series(
    periods: &[(i64, Toll)],
    (length, format): (PeriodArg, TableFormat),
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    const NAMES: [&str; 3] = ["died", "returned", "gone"];
    let counts = |toll: &Toll| [toll.died, toll.returned, toll.gone];
    let mut table = Table::new(std::iter::once(Column::word("period")).chain(NAMES.map(Column::number)));
    if format == TableFormat::Csv {
        writeln!(out, "period,{}", NAMES.join(","))?;
    }
    for (start, toll) in periods {
        let name = length.name(*start);
        let [died, returned, gone] = counts(toll);
        match format {
            TableFormat::Text => {
                let counts = counts(toll).map(|count| HumanCount(count).to_string());
                table.row(std::iter::once(name).chain(counts));
            }
            TableFormat::Csv => writeln!(out, "{name},{died},{returned},{gone}")?,
            TableFormat::Json => {
                writeln!(out, "{}", json!({"period": name, "died": died, "returned": returned, "gone": gone}))?;
            }
        }
    }
    table.print(out)?;
    Ok(())
}

/// Prints deaths, each with the pages that link to the dead page.
fn print_rows(links: &dyn Links, rows: &[DeadPage], args: &DeathsArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let most = usize::try_from(args.linkers)?;
    let mut printer = Printer::new(args.format, most > 0, out)?;
    for part in rows.chunks(PART) {
        let pages: Vec<Uid> = part.iter().map(|dead| dead.page).collect();
        let (urls, linkers) = (links.urls_of(&pages)?, answer_of(links, StillLinking::new(&pages, most))?);
        for ((dead, url), linkers) in part.iter().zip(&urls).zip(&linkers) {
            printer.row(dead, url, linkers, &links.urls_of(&linkers.pages)?)?;
        }
    }
    printer.finish()
}

/// The format of printed deaths.
enum Format<'a> {
    Text(Table, &'a mut dyn Write),
    Json(&'a mut dyn Write),
    Csv(Box<csv::Writer<&'a mut dyn Write>>),
}

struct Printer<'a> {
    format: Format<'a>,
    /// Whether pages that link are named.
    names_linkers: bool,
}

impl<'a> Printer<'a> {
    fn new(format: TableFormat, names_linkers: bool, out: &'a mut dyn Write) -> anyhow::Result<Self> {
        let format = match format {
            TableFormat::Text => {
                let words = [Column::word("died"), Column::number("status"), Column::word("last seen")];
                let others = [Column::word("returned"), Column::number("linking"), Column::rest("page")];
                Format::Text(Table::new(words.into_iter().chain(others)), out)
            }
            TableFormat::Json => Format::Json(out),
            TableFormat::Csv => {
                let names = ["page", "died", "status", "seen", "returned", "linking", "unknown", "linker"];
                let mut csv = csv::Writer::from_writer(out);
                csv.write_record(&names[..names.len() - usize::from(!names_linkers)])?;
                Format::Csv(Box::new(csv))
            }
        };
        Ok(Self { format, names_linkers })
    }

    /// Prints a death of a page, and the pages that link to it.
    fn row(&mut self, dead: &DeadPage, page: &str, linkers: &Linkers, names: &[String]) -> anyhow::Result<()> {
        let death = &dead.death;
        let Linkers { linking, unknown, .. } = linkers;
        let (status, died) = (death.status.code(), format_time(death.died));
        let [seen, returned] = [death.seen, death.returned].map(|time| time.map(format_time).unwrap_or_default());
        match &mut self.format {
            Format::Text(table, _) => {
                let day = |time: &str| time.chars().take(10).collect::<String>();
                let sign = if *unknown > 0 { "?" } else { "" };
                let linking = format!("{}{sign}", HumanCount(*linking));
                table.row([day(&died), status.to_string(), day(&seen), day(&returned), linking, page.to_owned()]);
                for name in names {
                    table.row([const { String::new() }; 5].into_iter().chain([format!("<- {name}")]));
                }
            }
            Format::Json(out) => {
                let names = self.names_linkers.then(|| names.to_vec());
                ask::print_json(&Row::of(dead, page.to_owned(), linkers, names), out)?;
            }
            Format::Csv(csv) => {
                let [status, linking, unknown] = [status.to_string(), linking.to_string(), unknown.to_string()];
                let record = [page, &died, &status, &seen, &returned, &linking, &unknown];
                // A page without linking pages has a line, too.
                let names = if names.is_empty() { &[String::new()] } else { names };
                match self.names_linkers {
                    false => csv.write_record(record)?,
                    true => names.iter().try_for_each(|name| csv.write_record(record.into_iter().chain([&**name])))?,
                }
            }
        }
        Ok(())
    }

    fn finish(self) -> anyhow::Result<()> {
        match self.format {
            Format::Text(table, out) => table.print(out)?,
            Format::Json(_) => {}
            Format::Csv(mut csv) => csv.flush()?,
        }
        Ok(())
    }
}
