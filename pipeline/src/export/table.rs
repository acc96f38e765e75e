//! A table of an export: a file of any table format, or CSV to a stream; and columns that several of them have.

use super::text::failed_stream;
use super::{Export, Format, Target};
use crate::Error;
use crate::table::{TableFormat, TableWriter, csv_columns, csv_fields};
use arrow::array::{ArrayRef, RecordBatch};
use arrow::csv;
use arrow::datatypes::{Field, Schema};
use arrow::error::ArrowError;
use std::io::{self, Write};
use std::sync::Arc;
use webstrata_layers::{Links, Window, format_iso};

/// Rows that are written at a time, so that no column of texts gets too long.
pub(super) const CHUNK: usize = 1 << 13;

/// See the head of this file.
pub(super) enum Table<'a> {
    File(Box<TableWriter>),
    Stream { csv: Box<csv::Writer<&'a mut dyn Write>>, schema: Arc<Schema>, rows: u64 },
}

impl<'a> Table<'a> {
    pub(super) fn create(export: &Export<'_>, stream: &'a mut dyn Write, columns: Vec<Field>) -> Result<Self, Error> {
        let options = export.options;
        let path = match &options.target {
            Target::Stream => {
                let csv = Box::new(csv::WriterBuilder::new().with_header(true).build(stream));
                return Ok(Table::Stream { csv, schema: Arc::new(Schema::new(csv_fields(columns))), rows: 0 });
            }
            Target::File(path) => path,
        };
        let format = match options.format {
            Format::Csv => TableFormat::Csv,
            Format::Arrow => TableFormat::Arrow,
            _ => TableFormat::Parquet,
        };
        let about = [
            ("webstrata.what", options.what.to_string()),
            ("webstrata.epoch", export.reader.epoch().to_string()),
            ("webstrata.window", in_words(options.window)),
        ];
        Ok(Table::File(Box::new(TableWriter::create(path, format, columns, &about)?)))
    }

    pub(super) fn write(&mut self, columns: Vec<ArrayRef>) -> Result<(), Error> {
        match self {
            Table::File(table) => table.write(columns),
            Table::Stream { csv, schema, rows } => {
                let batch = RecordBatch::try_new(Arc::clone(schema), csv_columns(columns));
                let written = batch.and_then(|batch| {
                    *rows += batch.num_rows() as u64;
                    csv.write(&batch)
                });
                written.map_err(failed)
            }
        }
    }

    /// Ends the table; the number of its rows.
    pub(super) fn finish(self) -> Result<u64, Error> {
        match self {
            Table::File(table) => table.finish(),
            Table::Stream { mut csv, schema, rows } => {
                if rows == 0 {
                    csv.write(&RecordBatch::new_empty(schema)).map_err(failed)?;
                }
                csv.into_inner().flush().map_err(failed_stream)?;
                Ok(rows)
            }
        }
    }
}

fn failed(error: ArrowError) -> Error {
    failed_stream(match error {
        ArrowError::IoError(_, source) => source,
        // The CSV writer hides the error of the system in its own.
        ArrowError::CsvError(text) if text.contains("Broken pipe") => io::ErrorKind::BrokenPipe.into(),
        other => io::Error::other(other),
    })
}

/// Intervals of time in the way of Gephi, closed.
pub(super) fn intervals(spans: impl Iterator<Item = (i64, i64)>) -> String {
    let spans: Vec<_> = spans.map(|(first, last)| format!("[{}, {}]", format_iso(first), format_iso(last))).collect();
    format!("<{}>", spans.join("; "))
}

/// A window in words.
pub(super) fn in_words(window: Window) -> String {
    match window {
        Window::AsOf(at) => format!("as of {}", format_iso(at)),
        Window::ALWAYS => "always".to_owned(),
        Window::Seen { from: i64::MIN, to } => format!("to {}", format_iso(to)),
        Window::Seen { from, to: i64::MAX } => format!("from {}", format_iso(from)),
        Window::Seen { from, to } => format!("from {} to {}", format_iso(from), format_iso(to)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_as_other_tools_write_them() {
        assert_eq!(intervals([(0, 1), (60, 60)].into_iter()).matches("; ").count(), 1);
        assert_eq!(intervals([(0, 1)].into_iter()), "<[1970-01-01T00:00:00Z, 1970-01-01T00:00:01Z]>");
        assert_eq!(in_words(Window::ALWAYS), "always");
        assert_eq!(in_words(Window::AsOf(0)), "as of 1970-01-01T00:00:00Z");
    }
}
