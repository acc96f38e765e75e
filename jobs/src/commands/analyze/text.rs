//! The summary of an analysis for people: numbers, tables that fit on a screen, and bars.
//!
//! A table by time shows its latest rows, any other table its largest rows. Both say how many rows there are. With
//! bars, each number over time is a row of blocks on one axis, as high as the largest value in each cell, and each of
//! the greatest values has a bar. Output is as wide as the terminal, or 80 columns.

use std::cmp::Reverse;
use std::io::Write;

use indicatif::HumanCount;
use webstrata_analysis::{AnalyzeOptions, AnalyzeReport, DateReport, Sheet, SheetColumn, Target, Top};
use webstrata_layers::{RangeLength, counted, format_time};

use crate::bars::{self, Axis};
use crate::running::Run;
use crate::table::{Column, Table, print_numbers};

/// The number of rows of a table that fit on a screen.
const ROWS_SHOWN: usize = 12;
/// The number of dates that fit on a screen. The latest dates are shown.
const DATES_SHOWN: usize = 24;
/// The number of cells of the bar of a greatest value.
const BAR: usize = 20;

/// Numbers over time: the name of each number, and its values with their times.
type Numbers = Vec<(String, Vec<(i64, f64)>)>;

/// Prints the summary.
pub(super) fn print(
    report: &AnalyzeReport,
    run: &Run,
    options: &AnalyzeOptions,
    has_bars: bool,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let AnalyzeReport { analysis, epoch, urls, .. } = report;
    let (store, seconds) = (&options.run.store, run.seconds);
    writeln!(out, "{store}: {analysis} of epoch {epoch}, {}, in {seconds:.1} s", counted(*urls, "URL"))?;
    match &report.dates[..] {
        [date] => print_date(date, has_bars, out)?,
        dates if has_bars && dates.iter().any(|date| !date.facts.is_empty()) => print_over_time(&facts_of(dates), out)?,
        dates => print_dates(dates, out)?,
    }
    if let Some(Target::File(path)) = &options.out
        && report.rows > 0
    {
        writeln!(out, "{}: {}", path.display(), counted(report.rows, "row"))?;
    }
    Ok(())
}

/// The facts of all dates.
fn facts_of(dates: &[DateReport]) -> Numbers {
    let names: Vec<String> = dates[0].facts.iter().map(|fact| fact.name.to_string()).collect();
    let of = |name: &String| {
        let value = |date: &DateReport| {
            let fact = date.facts.iter().find(|fact| *fact.name == **name);
            Some((date.at?, fact?.value))
        };
        dates.iter().filter_map(value).collect()
    };
    names.iter().map(|name| (name.clone(), of(name))).collect()
}

/// Prints a row of blocks for each number, on one axis.
fn print_over_time(numbers: &Numbers, out: &mut dyn Write) -> anyhow::Result<()> {
    let most = |values: &[(i64, f64)]| values.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    let name = |(name, values): &(String, Vec<(i64, f64)>)| format!("{name} (to {})", number(most(values)));
    let names: Vec<String> = numbers.iter().map(name).collect();
    let times = || numbers.iter().flat_map(|(_, values)| values.iter().map(|(time, _)| *time));
    let (Some(first), Some(last)) = (times().min(), times().max()) else { return Ok(()) };
    let axis = Axis::of_terminal((first, last), names.iter().map(String::as_str));
    writeln!(out, "{}", axis.head())?;
    for (name, (_, values)) in names.iter().zip(numbers) {
        writeln!(out, "{}", axis.heights(name, values))?;
    }
    Ok(())
}

fn print_date(date: &DateReport, has_bars: bool, out: &mut dyn Write) -> anyhow::Result<()> {
    let nodes = date.nodes.map(|nodes| ("nodes", HumanCount(nodes).to_string()));
    print_numbers(nodes.into_iter().chain(date.facts.iter().map(|fact| (&*fact.name, number(fact.value)))), out)?;
    if !date.top.is_empty() {
        writeln!(out, "  greatest:")?;
    }
    let most = date.top.first().map_or(1.0, |top| top.value);
    let bar = has_bars.then(|| Column::word(""));
    let columns = std::iter::once(Column::number(&date.column)).chain(bar).chain([Column::name("URL")]);
    let mut table = Table::new(columns).indented(2);
    for Top { url, value, .. } in &date.top {
        let bar = has_bars.then(|| format!("{:<BAR$}", bars::bar(*value / most, BAR)));
        table.row(std::iter::once(number(*value)).chain(bar).chain([url.clone()]));
    }
    table.print(out)?;
    let Some(sheet) = &date.sheet else { return Ok(()) };
    match numbers_of(sheet).filter(|_| has_bars) {
        Some(numbers) => {
            writeln!(out, "  {}", sheet.title)?;
            print_over_time(&numbers, out)
        }
        None => print_sheet(sheet, date.sheet_rows, out),
    }
}

/// The columns of a sheet by time; `None` for any other sheet.
fn numbers_of(sheet: &Sheet) -> Option<Numbers> {
    let times = sheet.columns.iter().find_map(|(_, column)| match column {
        SheetColumn::Times(times) => Some(times),
        _ => None,
    })?;
    let values = |column: &SheetColumn| -> Option<Vec<f64>> {
        match column {
            SheetColumn::Counts(values) => Some(values.iter().map(|&value| value as f64).collect()),
            SheetColumn::Reals(values) => Some(values.clone()),
            _ => None,
        }
    };
    let numbers = sheet.columns.iter().filter_map(|(name, column)| {
        Some((name.replace('_', " "), times.iter().copied().zip(values(column)?).collect()))
    });
    Some(numbers.collect())
}

/// Prints a line for each date: the numbers of the whole graph, or the first URL.
fn print_dates(dates: &[DateReport], out: &mut dyn Write) -> anyhow::Result<()> {
    let hidden = dates.len().saturating_sub(DATES_SHOWN);
    if hidden > 0 {
        writeln!(out, "  {} before these", counted(hidden, "date"))?;
    }
    let shown = &dates[hidden..];
    let day = |date: &DateReport| date.at.map(format_time).unwrap_or_default().chars().take(10).collect::<String>();
    if shown.iter().all(|date| date.facts.is_empty()) {
        let greatest = shown.first().map_or("", |date| &date.column);
        let columns = [Column::word("date"), Column::number(greatest), Column::name("greatest")];
        let mut table = Table::new(columns).indented(2);
        for date in shown {
            let (value, url) =
                date.top.first().map_or_else(Default::default, |top| (number(top.value), top.url.clone()));
            table.row([day(date), value, url]);
        }
        return Ok(table.print(out)?);
    }
    let names = shown[0].facts.iter().map(|fact| Column::number(&fact.name));
    let mut table = Table::new(std::iter::once(Column::word("date")).chain(names)).indented(2);
    for date in shown {
        table.row(std::iter::once(day(date)).chain(date.facts.iter().map(|fact| number(fact.value))));
    }
    Ok(table.print(out)?)
}

fn print_sheet(sheet: &Sheet, sheet_rows: usize, out: &mut dyn Write) -> anyhow::Result<()> {
    writeln!(out, "  {}", sheet.title)?;
    let column = |(name, column): &(String, SheetColumn)| match column {
        SheetColumn::Texts(_) => Column::name(name),
        SheetColumn::Times(_) => Column::word(name),
        SheetColumn::Counts(_) | SheetColumn::Urls(_) | SheetColumn::Reals(_) => Column::number(name),
    };
    let mut table = Table::new(sheet.columns.iter().map(column)).indented(2);
    let (selected, which) = selected(sheet, sheet_rows);
    for row in selected {
        table.row(sheet.columns.iter().map(|(_, column)| cell(column, row)));
    }
    table.print(out)?;
    if sheet_rows > sheet.rows().min(ROWS_SHOWN) {
        writeln!(out, "  {which} of {}; --format json has more, --out FILE all", counted(sheet_rows, "row"))?;
    }
    Ok(())
}

/// The rows to show, and a word for them. A table by time shows the last rows, a table with texts the largest rows, and
/// any other table the first rows.
fn selected(sheet: &Sheet, sheet_rows: usize) -> (Vec<usize>, &'static str) {
    let rows = sheet.rows();
    let has = |is: fn(&SheetColumn) -> bool| sheet.columns.iter().any(|(_, column)| is(column));
    if has(|column| matches!(column, SheetColumn::Times(_))) && !has(|column| matches!(column, SheetColumn::Texts(_))) {
        return ((rows.saturating_sub(ROWS_SHOWN)..rows).collect(), "the last");
    }
    // If a sheet was cut, its largest rows are unknown.
    let size = sheet.columns.iter().rev().find_map(|(name, column)| match column {
        SheetColumn::Counts(values) if ["pages", "links"].contains(&name.as_str()) => Some(values),
        _ => None,
    });
    match size.filter(|_| rows == sheet_rows && has(|column| matches!(column, SheetColumn::Texts(_)))) {
        Some(size) => {
            let mut order: Vec<usize> = (0..rows).collect();
            order.sort_by_key(|&row| (Reverse(size[row]), row));
            order.truncate(ROWS_SHOWN);
            (order, "the largest")
        }
        None => ((0..rows.min(ROWS_SHOWN)).collect(), "the first"),
    }
}

fn cell(column: &SheetColumn, row: usize) -> String {
    match column {
        SheetColumn::Counts(values) => HumanCount(values[row]).to_string(),
        SheetColumn::Urls(uids) => HumanCount(uids[row].0).to_string(),
        SheetColumn::Reals(values) => number(values[row]),
        SheetColumn::Times(values) => {
            let is_monthly = values.iter().all(|&time| RangeLength::Month.start(time) == time);
            format_time(values[row]).chars().take(if is_monthly { 7 } else { 10 }).collect()
        }
        SheetColumn::Texts(values) => values[row].clone(),
    }
}

/// Formats whole numbers with separators. Other numbers have six decimal places, or an exponent if they are small.
fn number(value: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and in the range")]
    if (0.0..9e15).contains(&value) && value.fract() == 0.0 {
        return HumanCount(value as u64).to_string();
    }
    if value.abs() < 1e-3 { format!("{value:.5e}") } else { format!("{value:.6}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(number(1234567.0), "1,234,567");
        assert_eq!(number(0.25), "0.250000");
        assert_eq!(number(0.000_012_345), "1.23450e-5");
        assert_eq!(number(0.0), "0");
    }
}
