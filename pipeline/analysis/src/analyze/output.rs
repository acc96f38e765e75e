//! Results of analyses: a table of values by URL, and a report of one screen.
//!
//! A table has one row for each node, in the order of UIDs, including nodes that the analysis says nothing about. The
//! columns are `uid`, `url` and the columns of the analysis. With several dates, the column `at` comes first, and rows
//! are grouped by date. Analyses that are not about URLs have a [`Sheet`] instead. The URLs are read once for each
//! date, together with the values. Memory: a batch of rows.

use super::{Analysis, AnalyzeOptions, Found, Values};
use crate::Error;
use crate::outlet::{Outlet, Target, format_of};
use crate::table::{TableFormat, TableWriter, column, time, times};
use arrow_array::builder::StringBuilder;
use arrow_array::{ArrayRef, Float64Array, StringArray, UInt64Array};
use arrow_schema::{DataType, Field};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::sync::Arc;
use webstrata_engine::Job;
use webstrata_layers::{Links, Reader, Uid};
use webstrata_url::SUFFIX_LIST;

/// The number of rows that are written at once.
const BATCH: usize = 1 << 16;
/// The number of URLs in a report.
const TOP: usize = 10;
/// The maximum number of rows of a sheet in a report.
const SHEET_ROWS: usize = 10_000;

/// A number that an analysis has found for the whole graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fact {
    /// The name of the number.
    pub name: String,
    /// The value.
    pub value: f64,
}

impl Fact {
    pub(super) fn new(name: &str, value: f64) -> Self {
        Self { name: name.to_owned(), value }
    }
}

/// A small table that is not about URLs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sheet {
    /// The subject of the table.
    pub title: String,
    /// Whether the analysis writes this table instead of values by URL.
    pub replaces_urls: bool,
    /// The columns by name, all of the same length.
    pub columns: Vec<(String, SheetColumn)>,
}

/// A column of a sheet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum SheetColumn {
    /// Integers.
    Counts(Vec<u64>),
    /// Other numbers.
    Reals(Vec<f64>),
    /// Times in seconds, UTC.
    Times(Vec<i64>),
    /// Texts.
    Texts(Vec<String>),
    /// UIDs. The output has the URLs beside them.
    Urls(Vec<Uid>),
}

impl SheetColumn {
    fn len(&self) -> usize {
        match self {
            SheetColumn::Counts(values) => values.len(),
            SheetColumn::Urls(uids) => uids.len(),
            SheetColumn::Reals(values) => values.len(),
            SheetColumn::Times(values) => values.len(),
            SheetColumn::Texts(values) => values.len(),
        }
    }

    fn truncate(&mut self, rows: usize) {
        match self {
            SheetColumn::Counts(values) => values.truncate(rows),
            SheetColumn::Urls(uids) => uids.truncate(rows),
            SheetColumn::Reals(values) => values.truncate(rows),
            SheetColumn::Times(values) => values.truncate(rows),
            SheetColumn::Texts(values) => values.truncate(rows),
        }
    }
}

impl Sheet {
    pub(super) fn new(title: &str, replaces_urls: bool, columns: Vec<(&str, SheetColumn)>) -> Self {
        let columns = columns.into_iter().map(|(name, column)| (name.to_owned(), column)).collect();
        Self { title: title.to_owned(), replaces_urls, columns }
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, column)| column.len())
    }
}

/// A URL with one of the greatest values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Top {
    /// The UID of the URL.
    pub uid: Uid,
    /// The URL.
    pub url: String,
    /// The value of the URL.
    pub value: f64,
}

/// The result of an analysis at one date or in one window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DateReport {
    /// The date in seconds, if there are several dates.
    pub at: Option<i64>,
    /// The number of nodes of the graph; `None` if the analysis is not about nodes.
    pub nodes: Option<u64>,
    /// Numbers about the whole graph.
    pub facts: Vec<Fact>,
    /// The name of the column that `top` has the greatest values of; empty if there is no such column.
    pub column: String,
    /// The URLs with the greatest values of the first column, or of the largest components.
    pub top: Vec<Top>,
    /// The first 10,000 rows of the sheet.
    pub sheet: Option<Sheet>,
    /// The number of all rows of the sheet.
    pub sheet_rows: usize,
}

/// The result of an analysis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AnalyzeReport {
    /// The epoch that was analyzed.
    pub epoch: u64,
    /// The name of the analysis.
    pub analysis: String,
    /// The number of URLs of the store.
    pub urls: u64,
    /// The result at each date.
    pub dates: Vec<DateReport>,
    /// The number of rows that were written.
    pub rows: u64,
}

impl AnalyzeReport {
    pub(super) fn new(store: &Reader, analysis: Analysis) -> Self {
        let (epoch, urls) = (store.epoch(), store.urls());
        Self { epoch, analysis: analysis.name().to_owned(), urls, dates: Vec::new(), rows: 0 }
    }

    /// Adds the result at a date.
    pub(super) fn add(&mut self, store: &Reader, at: Option<i64>, found: &Found) -> Result<(), Error> {
        let (column, ranked) = ranked(found);
        let top = ranked.into_iter().map(|(uid, value)| Ok(Top { uid, url: store.url(uid)?, value }));
        let top = top.collect::<Result<Vec<_>, Error>>()?;
        let (facts, mut sheet) = (found.facts.clone(), found.sheet.clone());
        let sheet_rows = sheet.as_ref().map_or(0, Sheet::rows);
        for (_, column) in sheet.iter_mut().flat_map(|sheet| &mut sheet.columns) {
            column.truncate(SHEET_ROWS);
        }
        let nodes = found.nodes.as_ref().map(|nodes| nodes.count);
        self.dates.push(DateReport { at, nodes, facts, column: column.to_owned(), top, sheet, sheet_rows });
        Ok(())
    }
}

/// Returns the name of a column, and the UIDs with its greatest values, the greatest first.
fn ranked(found: &Found) -> (&'static str, Vec<(Uid, f64)>) {
    let Some(nodes) = found.all_nodes() else { return ("", Vec::new()) };
    let value = |values: &Values, at: usize| match values {
        Values::Counts(values) => values[at] as f64,
        Values::Reals(values) => values[at],
    };
    let (name, mut order): (_, Vec<(Uid, f64)>) = match &found.columns[..] {
        [("component", Values::Counts(names)), (name, sizes), ..] => {
            let named = nodes.iter().filter(|uid| names[index(*uid)] == uid.0);
            (*name, named.map(|uid| (uid, value(sizes, index(uid)))).collect())
        }
        [(name, values), ..] => (*name, nodes.iter().map(|uid| (uid, value(values, index(uid)))).collect()),
        [] => return ("", Vec::new()),
    };
    let greater = |a: &(Uid, f64), b: &(Uid, f64)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
    if order.len() > TOP {
        order.select_nth_unstable_by(TOP, greater);
        order.truncate(TOP);
    }
    order.sort_unstable_by(greater);
    order.retain(|&(_, value)| value > 0.0);
    (name, order)
}

/// The writer of the table.
pub(super) struct Output {
    /// The open target, until the columns are known.
    outlet: Option<Outlet<'static>>,
    format: TableFormat,
    about: Vec<(&'static str, String)>,
    urls: bool,
    table: Option<TableWriter<'static>>,
}

impl Output {
    /// Begins a table, which is CSV if it goes to the stream. Opens the target at once, so that a target that cannot be
    /// written is reported before the analysis and not after it.
    pub(super) fn new(
        target: &Target,
        stream: impl Write + Send + 'static,
        options: &AnalyzeOptions,
        epoch: u64,
    ) -> Result<Self, Error> {
        let format = match target {
            Target::Stream => TableFormat::Csv,
            Target::File(path) => format_of(path)?,
        };
        let outlet = Some(Outlet::open(target, stream)?);
        let about = vec![
            ("webstrata.analysis", format!("{:?}", options.analysis)),
            ("webstrata.dates", format!("{:?}", options.dates)),
            ("webstrata.store", options.run.store.to_string()),
            ("webstrata.epoch", epoch.to_string()),
            ("webstrata.suffixes", SUFFIX_LIST.to_owned()),
        ];
        Ok(Self { outlet, format, about, urls: options.urls, table: None })
    }

    /// Writes the result at a date.
    pub(super) fn write(&mut self, store: &Reader, at: Option<i64>, found: &Found, job: &Job) -> Result<(), Error> {
        match &found.sheet {
            Some(sheet) if sheet.replaces_urls => self.write_sheet(store, at, sheet),
            _ => self.write_urls(store, at, found, job),
        }
    }

    fn write_rows(&mut self, columns: Vec<(Field, ArrayRef)>) -> Result<(), Error> {
        let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
        if let Some(outlet) = self.outlet.take() {
            self.table = Some(TableWriter::create(outlet, self.format, fields, &self.about)?);
        }
        self.table.as_mut().map_or(Ok(()), |table| table.write(arrays))
    }

    fn write_urls(&mut self, store: &Reader, at: Option<i64>, found: &Found, job: &Job) -> Result<(), Error> {
        let Some(nodes) = found.all_nodes() else { return Ok(()) };
        let all = Uid::below(store.urls());
        let mut rows = 0..store.rows();
        let mut urls = rows.next().map(|row| store.row_urls(row, all.clone(), false));
        let mut rest = nodes.iter().peekable();
        loop {
            job.go_on()?;
            let batch: Vec<Uid> = rest.by_ref().take(BATCH).collect();
            let mut columns = dated(at, batch.len());
            let texts = if self.urls {
                let mut texts = StringBuilder::with_capacity(batch.len(), 80 * batch.len());
                let mut wanted = batch.iter().copied().peekable();
                while let (Some(next), Some(stream)) = (wanted.peek(), &mut urls) {
                    match stream.next_url()? {
                        Some((uid, url, _)) if uid == *next => {
                            texts.append_value(url);
                            wanted.next();
                        }
                        Some(_) => {}
                        None => urls = rows.next().map(|row| store.row_urls(row, all.clone(), false)),
                    }
                }
                Some(texts.finish())
            } else {
                None
            };
            let indexes: Vec<usize> = batch.iter().map(|&uid| index(uid)).collect();
            let uids = UInt64Array::from(Uid::into_numbers(batch));
            columns.push((column("uid", DataType::UInt64), Arc::new(uids)));
            columns
                .extend(texts.map(|texts| -> (Field, ArrayRef) { (column("url", DataType::Utf8), Arc::new(texts)) }));
            columns.extend(found.columns.iter().map(|(name, values)| array(name, values, &indexes)));
            self.write_rows(columns)?;
            if rest.peek().is_none() {
                return Ok(());
            }
        }
    }

    fn write_sheet(&mut self, store: &Reader, at: Option<i64>, sheet: &Sheet) -> Result<(), Error> {
        let mut columns = dated(at, sheet.rows());
        for (name, values) in &sheet.columns {
            let (of, array): (DataType, ArrayRef) = match values {
                SheetColumn::Counts(values) => (DataType::UInt64, Arc::new(UInt64Array::from(values.clone()))),
                SheetColumn::Reals(values) => (DataType::Float64, Arc::new(Float64Array::from(values.clone()))),
                SheetColumn::Texts(values) => (DataType::Utf8, Arc::new(StringArray::from(values.clone()))),
                SheetColumn::Times(values) => (time(), times(values.iter().copied().map(Some))),
                SheetColumn::Urls(uids) => {
                    let uid: ArrayRef = Arc::new(UInt64Array::from(Uid::numbers(uids).to_vec()));
                    columns.push((column("uid", DataType::UInt64), uid));
                    (DataType::Utf8, Arc::new(StringArray::from(store.urls_of(uids)?)))
                }
            };
            let name = if matches!(values, SheetColumn::Urls(_)) { "url" } else { name };
            columns.push((column(name, of), array));
        }
        self.write_rows(columns)
    }

    /// Ends the table and returns the number of its rows.
    pub(super) fn finish(self) -> Result<u64, Error> {
        self.table.map_or(Ok(0), TableWriter::finish)
    }
}

/// Returns the column `at` if there are several dates.
fn dated(at: Option<i64>, rows: usize) -> Vec<(Field, ArrayRef)> {
    at.map(|at| (column("at", time()), times(vec![Some(at); rows]))).into_iter().collect()
}

/// Returns the values of some URLs, which are given by their UIDs.
fn array(name: &str, values: &Values, uids: &[usize]) -> (Field, ArrayRef) {
    match values {
        Values::Counts(values) => {
            let values = UInt64Array::from_iter_values(uids.iter().map(|&at| values[at]));
            (column(name, DataType::UInt64), Arc::new(values))
        }
        Values::Reals(values) => {
            let values = Float64Array::from_iter_values(uids.iter().map(|&at| values[at]));
            (column(name, DataType::Float64), Arc::new(values))
        }
    }
}

/// Converts a UID to an index into values by UID.
fn index(uid: Uid) -> usize {
    usize::try_from(uid.0).unwrap_or(usize::MAX)
}
