//! Standing results as Parquet files in a directory: one file for the whole result of an epoch, and one for the changes
//! of each later epoch.
//!
//! ```text
//! DIR/degrees-000006.parquet           the result at epoch 6
//! DIR/degrees-000006-000007.parquet    the rows that epoch 7 changed: values now, and before (`*_before`)
//! ```
//!
//! A value is null if the row is not there now, or was not there before. A file appears when it is complete, and the
//! same step writes the same rows in the same order. Columns:
//!
//! | result | columns | in files of changes also |
//! |---|---|---|
//! | degrees | `url`, `out`, `in` | `out_before`, `in_before` |
//! | top | `url`, `in` | `in_before` |
//! | components | `url`, `component` | `component_before` |
//! | hosts | `source`, `target`, `links` | `links_before` |
//! | newlinks | `page`, `link` | `gained`: true if the link is new, false if all captures that had it were replaced |

use super::{ChangedRow, Changeset, Event, Standing, Value};
use crate::Error;
use crate::outlet::{Outlet, outside_stores};
use crate::table::column;
use crate::{TableFormat, TableWriter};
use arrow_array::{ArrayRef, BooleanArray, StringArray, UInt64Array};
use arrow_schema::{DataType, Field};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use webstrata_layers::{Draft, EpochId};

/// Writes events to files.
pub struct Tables {
    directory: PathBuf,
    name: String,
    standing: Standing,
    open: Option<Open>,
}

/// The file that is being written.
struct Open {
    table: TableWriter<'static>,
    path: PathBuf,
    /// Whether the file has changes.
    changes: bool,
}

impl Tables {
    /// Opens a directory for files whose names begin with `name`. Creates a missing directory, and removes the drafts
    /// that killed writers have left.
    ///
    /// # Errors
    /// A directory inside a store, or one that cannot be created.
    pub fn open(directory: &Path, name: &str, standing: &Standing) -> Result<Self, Error> {
        let failed = |source| Error::Output { path: directory.to_owned(), source };
        outside_stores(directory)?;
        fs::create_dir_all(directory).and_then(|()| Draft::clear(directory)).map_err(failed)?;
        Ok(Self { directory: directory.to_owned(), name: name.to_owned(), standing: standing.clone(), open: None })
    }

    /// Writes an event. Returns the path of the file that the event ended, if any.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn write(&mut self, event: &Event) -> Result<Option<PathBuf>, Error> {
        match event {
            Event::Begin(changeset) => {
                let path = self.directory.join(self.file_name(changeset));
                let about = [("epoch", changeset.id.epoch.to_string()), ("watch", self.standing.to_string())];
                let columns = columns(&self.standing, changeset.since.is_some());
                let table = TableWriter::create(Outlet::file(&path)?, TableFormat::Parquet, columns, &about)?;
                self.open = Some(Open { table, path, changes: changeset.since.is_some() });
            }
            Event::Rows(rows) => {
                if let Some(Open { table, changes, .. }) = &mut self.open {
                    table.write(arrays(&self.standing, rows, *changes))?;
                }
            }
            Event::End { .. } => {
                if let Some(Open { table, path, .. }) = self.open.take() {
                    table.finish()?;
                    return Ok(Some(path));
                }
            }
        }
        Ok(None)
    }

    fn file_name(&self, Changeset { id: EpochId { epoch, .. }, since }: &Changeset) -> String {
        let since = since.map_or(String::new(), |since| format!("{since:06}-"));
        format!("{}-{since}{epoch:06}.parquet", self.name)
    }
}

/// Returns the names of the columns of keys and of values.
fn names(standing: &Standing) -> (&'static [&'static str], &'static [&'static str]) {
    match standing {
        Standing::Degrees => (&["url"], &["out", "in"]),
        Standing::Top { .. } => (&["url"], &["in"]),
        Standing::Components => (&["url"], &["component"]),
        Standing::Hosts { .. } => (&["source", "target"], &["links"]),
        Standing::NewLinks { .. } => (&["page", "link"], &[]),
    }
}

fn columns(standing: &Standing, changes: bool) -> Vec<Field> {
    let (keys, values) = names(standing);
    let of = if matches!(standing, Standing::Components) { DataType::Utf8 } else { DataType::UInt64 };
    let mut columns: Vec<Field> = keys.iter().map(|key| column(key, DataType::Utf8)).collect();
    columns.extend(values.iter().map(|value| Field::new(*value, of.clone(), changes)));
    if changes {
        columns.extend(values.iter().map(|value| Field::new(format!("{value}_before"), of.clone(), true)));
        if values.is_empty() {
            columns.push(column("gained", DataType::Boolean));
        }
    }
    columns
}

fn arrays(standing: &Standing, rows: &[ChangedRow], changes: bool) -> Vec<ArrayRef> {
    let (keys, values) = names(standing);
    let mut arrays: Vec<ArrayRef> = Vec::new();
    for at in 0..keys.len() {
        arrays.push(Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.key[at]))));
    }
    let sides: [fn(&ChangedRow) -> Option<&Value>; 2] = [|row| row.after.as_ref(), |row| row.before.as_ref()];
    for side in &sides[..if changes { 2 } else { 1 }] {
        for at in 0..values.len() {
            if matches!(standing, Standing::Components) {
                let texts = rows.iter().map(|row| match side(row) {
                    Some(Value::Component(name)) => Some(name.as_str()),
                    _ => None,
                });
                arrays.push(Arc::new(texts.collect::<StringArray>()));
            } else {
                let numbers = rows.iter().map(|row| side(row).and_then(|value| number(value, at)));
                arrays.push(Arc::new(numbers.collect::<UInt64Array>()));
            }
        }
    }
    if changes && values.is_empty() {
        let gained: Vec<bool> = rows.iter().map(|row| row.after.is_some()).collect();
        arrays.push(Arc::new(BooleanArray::from(gained)));
    }
    arrays
}

/// Returns the number in column `at` of a value.
fn number(value: &Value, at: usize) -> Option<u64> {
    match *value {
        Value::Degrees { out, into } => Some(if at == 0 { out } else { into }),
        Value::Into(number) | Value::Links(number) => Some(number),
        Value::Component(_) | Value::There => None,
    }
}
