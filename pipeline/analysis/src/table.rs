//! Tables for other programs: columns as Parquet, CSV or Arrow, written in batches of rows to an [`Outlet`].
//!
//! A table takes arrays in the order of the schema. DuckDB, pandas, Polars and Spark read the result directly. The
//! result is in place when [`TableWriter::finish`] returns. Parquet has zstd at level 3, row groups of [`ROW_GROUP`]
//! rows, and the encodings that `parquet` chooses. Memory: a row group.

mod csv_sheet;

use self::csv_sheet::CsvSheet;
pub(crate) use self::csv_sheet::csv_error;
pub use self::csv_sheet::csv_text;
use crate::Error;
use crate::outlet::{Ending, Outlet};
use arrow_array::{ArrayRef, RecordBatch, TimestampMillisecondArray};
use arrow_ipc as ipc;
use arrow_schema::{ArrowError, DataType, Field, Schema, TimeUnit};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use webstrata_layers::{Lent, system_error};

/// The number of rows of a row group.
const ROW_GROUP: usize = 1 << 17;

/// The format of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    /// Apache Parquet.
    Parquet,
    /// Comma-separated values with a header; times as RFC 3339.
    Csv,
    /// An Arrow IPC file (Feather version 2).
    Arrow,
}

impl Ending for TableFormat {
    const ENDINGS: &'static [(&'static str, Self, bool)] = &[
        ("parquet", TableFormat::Parquet, false),
        ("csv", TableFormat::Csv, true),
        ("arrow", TableFormat::Arrow, false),
        ("feather", TableFormat::Arrow, false),
    ];
}

/// The type of times: milliseconds in UTC, which every reader supports.
pub fn time() -> DataType {
    DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()))
}

/// Returns a column of times, which are given in seconds.
pub fn times(seconds: impl IntoIterator<Item = Option<i64>>) -> ArrayRef {
    let milliseconds = seconds.into_iter().map(|time| time.map(|time| time.saturating_mul(1000)));
    Arc::new(milliseconds.collect::<TimestampMillisecondArray>().with_timezone("UTC"))
}

/// Returns the field of a column without nulls.
pub(crate) fn column(name: &str, of: DataType) -> Field {
    Field::new(name, of, false)
}

/// Writes one table; see the head of this file.
///
/// ```
/// use std::sync::Arc;
/// use arrow_array::{ArrayRef, StringArray, UInt64Array};
/// use arrow_schema::{DataType, Field};
/// use webstrata_analysis::{Outlet, TableFormat, TableWriter};
///
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("hosts.csv");
/// let columns = vec![Field::new("host", DataType::Utf8, false), Field::new("pages", DataType::UInt64, false)];
/// let mut table = TableWriter::create(Outlet::file(&path)?, TableFormat::Csv, columns, &[])?;
/// let hosts: ArrayRef = Arc::new(StringArray::from(vec!["example.com", "example.org"]));
/// table.write(vec![hosts, Arc::new(UInt64Array::from(vec![3, 5]))])?;
/// assert_eq!(table.finish()?, 2);
/// assert_eq!(std::fs::read_to_string(&path)?, "host,pages\nexample.com,3\nexample.org,5\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TableWriter<'a> {
    sheet: Sheet<'a>,
    schema: Arc<Schema>,
    /// The name of the target in messages.
    path: PathBuf,
    rows: u64,
}

enum Sheet<'a> {
    Parquet(Box<ArrowWriter<Lent<Outlet<'a>>>>),
    Csv(Box<CsvSheet<Outlet<'a>>>),
    Arrow(Box<ipc::writer::FileWriter<Outlet<'a>>>),
}

impl<'a> TableWriter<'a> {
    /// Begins a table. `about` goes into the footer of Parquet files, as names and values.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn create(
        outlet: Outlet<'a>,
        format: TableFormat,
        columns: Vec<Field>,
        about: &[(&str, String)],
    ) -> Result<Self, Error> {
        let schema = Arc::new(Schema::new(columns));
        let path = outlet.path().to_owned();
        let failed = |source| Error::Output { path: path.clone(), source };
        let sheet = match format {
            TableFormat::Parquet => {
                let about =
                    about.iter().map(|(name, value)| KeyValue::new((*name).to_owned(), value.clone())).collect();
                let properties = WriterProperties::builder()
                    .set_created_by(concat!("webstrata ", env!("CARGO_PKG_VERSION")).to_owned())
                    .set_compression(Compression::ZSTD(ZstdLevel::try_new(3).map_err(parquet_error).map_err(failed)?))
                    .set_max_row_group_row_count(Some(ROW_GROUP))
                    .set_key_value_metadata(Some(about))
                    .build();
                let writer = ArrowWriter::try_new(Lent::new(outlet), Arc::clone(&schema), Some(properties));
                Sheet::Parquet(Box::new(writer.map_err(parquet_error).map_err(failed)?))
            }
            TableFormat::Csv => Sheet::Csv(Box::new(CsvSheet::new(outlet))),
            TableFormat::Arrow => {
                let writer = ipc::writer::FileWriter::try_new(outlet, &schema);
                Sheet::Arrow(Box::new(writer.map_err(arrow_error).map_err(failed)?))
            }
        };
        Ok(Self { sheet, schema, path, rows: 0 })
    }

    /// Writes rows, given as columns of equal length.
    ///
    /// # Errors
    /// Errors of the system; columns that do not match the schema.
    pub fn write(&mut self, columns: Vec<ArrayRef>) -> Result<(), Error> {
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns).map_err(arrow_error);
        let written = batch.and_then(|batch| {
            self.rows += batch.num_rows() as u64;
            match &mut self.sheet {
                Sheet::Parquet(writer) => writer.write(&batch).map_err(parquet_error),
                Sheet::Csv(writer) => writer.write(&batch),
                Sheet::Arrow(writer) => writer.write(&batch).map_err(arrow_error),
            }
        });
        written.map_err(|source| Error::Output { path: self.path.clone(), source })
    }

    /// Ends the table, puts it in its place, and returns the number of its rows.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn finish(self) -> Result<u64, Error> {
        let Self { sheet, schema, path, rows } = self;
        let outlet = match sheet {
            Sheet::Parquet(mut writer) => {
                writer.finish().map_err(parquet_error).and_then(|_| writer.inner_mut().take())
            }
            Sheet::Csv(sheet) => sheet.finish(&schema),
            Sheet::Arrow(writer) => writer.into_inner().map_err(arrow_error),
        };
        outlet.map_err(|source| Error::Output { path, source })?.finish()?;
        Ok(rows)
    }
}

fn arrow_error(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, source) => source,
        other => io::Error::other(other),
    }
}

fn parquet_error(error: ParquetError) -> io::Error {
    system_error(error).unwrap_or_else(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outlet::format_of;
    use arrow_array::{StringArray, TimestampMillisecondArray, UInt64Array};
    use std::fs::{self, File};
    use std::path::Path;

    fn columns() -> Vec<Field> {
        vec![column("uid", DataType::UInt64), column("url", DataType::Utf8)]
    }

    fn create(path: &Path, columns: Vec<Field>) -> Result<TableWriter<'static>, Error> {
        TableWriter::create(Outlet::file(path)?, format_of(path).unwrap(), columns, &[])
    }

    #[test]
    fn a_table_is_there_when_it_is_whole() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["a.parquet", "a.csv", "a.arrow"] {
            let path = directory.path().join(name);
            let mut table = create(&path, columns()).unwrap();
            let urls = ["http://a/", "http://b/?x=\"1,2\""];
            table
                .write(vec![Arc::new(UInt64Array::from(vec![1, 2])), Arc::new(StringArray::from(urls.to_vec()))])
                .unwrap();
            assert!(!path.exists());
            assert_eq!(table.finish().unwrap(), 2);
            assert!(path.exists());
        }
        let csv = fs::read_to_string(directory.path().join("a.csv")).unwrap();
        assert_eq!(csv, "uid,url\n1,http://a/\n2,\"http://b/?x=\"\"1,2\"\"\"\n");
        drop(create(&directory.path().join("b.csv"), columns()).unwrap());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 3, "a draft is left");
    }

    #[test]
    fn times_are_the_same_in_every_format() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["a.parquet", "a.csv", "a.arrow"] {
            let path = directory.path().join(name);
            let fields = vec![column("time", time())];
            let mut table = create(&path, fields).unwrap();
            let times = TimestampMillisecondArray::from(vec![1_180_698_245_000]).with_timezone("UTC");
            table.write(vec![Arc::new(times)]).unwrap();
            table.finish().unwrap();
        }
        let csv = fs::read_to_string(directory.path().join("a.csv")).unwrap();
        assert_eq!(csv, "time\n2007-06-01T11:44:05Z\n");
        let arrow = ipc::reader::FileReader::try_new(File::open(directory.path().join("a.arrow")).unwrap(), None);
        assert_eq!(arrow.unwrap().schema().field(0).data_type(), &time());
    }

    #[test]
    fn an_empty_table_has_its_header() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.csv");
        create(&path, columns()).unwrap().finish().unwrap();
        assert_eq!(fs::read_to_string(path).unwrap(), "uid,url\n");
    }

    #[test]
    fn a_place_that_cannot_be_written_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("none").join("a.csv");
        let error = create(&path, columns()).err().unwrap().to_string();
        assert!(error.contains("none"), "{error}");
        assert!(Outlet::file(directory.path()).is_err());
    }
}
