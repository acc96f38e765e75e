//! Tables that leave the house: Parquet, CSV or Arrow files of columns, written a batch of rows at a time.
//!
//! Takes arrays in the schema's order; gives a file that DuckDB, pandas, Polars and Spark read with no help. It is a draft beside
//! its place until [`TableWriter::finish`], so that nothing half-written opens; a writer that is dropped removes its draft.
//! Parquet: zstd 3, row groups of [`ROW_GROUP`] rows, encodings as `parquet` chooses them. Memory: a row group.

use crate::Error;
use arrow::array::{ArrayRef, AsArray, RecordBatch, TimestampMillisecondArray};
use arrow::csv;
use arrow::datatypes::{DataType, Field, Schema, TimeUnit, TimestampMillisecondType};
use arrow::error::ArrowError;
use arrow::ipc;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows of a row group.
const ROW_GROUP: usize = 1 << 17;

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    /// Apache Parquet.
    Parquet,
    /// Comma-separated values with a header; times as RFC 3339.
    Csv,
    /// An Arrow IPC file (Feather version 2).
    Arrow,
}

impl TableFormat {
    /// The format that the name of a file asks for: `.csv`, `.arrow` or `.feather`, else Parquet.
    pub fn of(path: &Path) -> Self {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("csv") => TableFormat::Csv,
            Some("arrow" | "feather") => TableFormat::Arrow,
            _ => TableFormat::Parquet,
        }
    }
}

/// The type of times: milliseconds, UTC, which every reader knows.
pub(crate) fn time() -> DataType {
    DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()))
}

/// A column of times, given in seconds.
pub(crate) fn times(seconds: impl IntoIterator<Item = Option<i64>>) -> ArrayRef {
    let milliseconds = seconds.into_iter().map(|time| time.map(|time| time.saturating_mul(1000)));
    Arc::new(milliseconds.collect::<TimestampMillisecondArray>().with_timezone("UTC"))
}

/// UTC for the CSV writer, which knows no names of time zones; it writes `Z`.
const UTC_OFFSET: &str = "+00:00";

/// Columns as the CSV writer takes them.
pub(crate) fn csv_fields(columns: Vec<Field>) -> Vec<Field> {
    let as_offset = |field: Field| match field.data_type() {
        DataType::Timestamp(unit, Some(_)) => {
            let offset = DataType::Timestamp(*unit, Some(UTC_OFFSET.into()));
            field.with_data_type(offset)
        }
        _ => field,
    };
    columns.into_iter().map(as_offset).collect()
}

/// The same for their values.
pub(crate) fn csv_columns(columns: Vec<ArrayRef>) -> Vec<ArrayRef> {
    let as_offset = |column: ArrayRef| match column.as_primitive_opt::<TimestampMillisecondType>() {
        Some(times) => Arc::new(times.clone().with_timezone(UTC_OFFSET)),
        None => column,
    };
    columns.into_iter().map(as_offset).collect()
}

/// A column without nulls.
pub(crate) fn column(name: &str, of: DataType) -> Field {
    Field::new(name, of, false)
}

/// Writes one table; see the head of this file.
pub struct TableWriter {
    file: Option<Sheet>,
    schema: Arc<Schema>,
    place: Draft,
    rows: u64,
}

enum Sheet {
    Parquet(Box<ArrowWriter<BufWriter<File>>>),
    Csv(Box<csv::Writer<BufWriter<File>>>),
    Arrow(Box<ipc::writer::FileWriter<BufWriter<File>>>),
}

impl TableWriter {
    /// Begins a table. `about` goes into the footer of Parquet files, as names and values.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn create(
        path: &Path,
        format: TableFormat,
        columns: Vec<Field>,
        about: &[(&str, String)],
    ) -> Result<Self, Error> {
        let columns = if format == TableFormat::Csv { csv_fields(columns) } else { columns };
        let schema = Arc::new(Schema::new(columns));
        let (place, file) = Draft::create(path)?;
        let failed = |source| Error::Output { path: path.to_owned(), source };
        let file = match format {
            TableFormat::Parquet => {
                let about =
                    about.iter().map(|(name, value)| KeyValue::new((*name).to_owned(), value.clone())).collect();
                let properties = WriterProperties::builder()
                    .set_created_by(concat!("webstrata ", env!("CARGO_PKG_VERSION")).to_owned())
                    .set_compression(Compression::ZSTD(ZstdLevel::try_new(3).map_err(parquet_error).map_err(failed)?))
                    .set_max_row_group_row_count(Some(ROW_GROUP))
                    .set_key_value_metadata(Some(about))
                    .build();
                let writer = ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties));
                Sheet::Parquet(Box::new(writer.map_err(parquet_error).map_err(failed)?))
            }
            TableFormat::Csv => Sheet::Csv(Box::new(csv::WriterBuilder::new().with_header(true).build(file))),
            TableFormat::Arrow => {
                let writer = ipc::writer::FileWriter::try_new(file, &schema);
                Sheet::Arrow(Box::new(writer.map_err(arrow_error).map_err(failed)?))
            }
        };
        Ok(Self { file: Some(file), schema, place, rows: 0 })
    }

    /// Writes rows, given by columns of one length.
    ///
    /// # Errors
    /// What the system refuses; columns that are not of the schema.
    pub fn write(&mut self, columns: Vec<ArrayRef>) -> Result<(), Error> {
        let columns = if matches!(self.file, Some(Sheet::Csv(_))) { csv_columns(columns) } else { columns };
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns).map_err(arrow_error);
        let written = batch.and_then(|batch| {
            self.rows += batch.num_rows() as u64;
            match &mut self.file {
                Some(Sheet::Parquet(writer)) => writer.write(&batch).map_err(parquet_error),
                Some(Sheet::Csv(writer)) => writer.write(&batch).map_err(arrow_error),
                Some(Sheet::Arrow(writer)) => writer.write(&batch).map_err(arrow_error),
                None => Ok(()),
            }
        });
        written.map_err(|source| self.place.failed(source))
    }

    /// Ends the table and puts it in its place; the number of its rows.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn finish(mut self) -> Result<u64, Error> {
        let file = match self.file.take() {
            Some(Sheet::Parquet(writer)) => writer.into_inner().map_err(parquet_error),
            Some(Sheet::Csv(mut writer)) => {
                // A table without rows has its header, too.
                let empty = RecordBatch::new_empty(Arc::clone(&self.schema));
                let header = if self.rows == 0 { writer.write(&empty) } else { Ok(()) };
                header.map(|()| (*writer).into_inner()).map_err(arrow_error)
            }
            Some(Sheet::Arrow(writer)) => writer.into_inner().map_err(arrow_error),
            None => return Ok(self.rows),
        };
        let file = file.and_then(|file| file.into_inner().map_err(io::IntoInnerError::into_error));
        file.map_err(|source| self.place.failed(source)).and_then(|file| self.place.keep(file))?;
        Ok(self.rows)
    }
}

/// Writes a file that is whole or not there.
///
/// # Errors
/// What the system refuses.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let (mut draft, mut file) = Draft::create(path)?;
    let file = file.write_all(bytes).and_then(|()| file.into_inner().map_err(io::IntoInnerError::into_error));
    file.map_err(|source| draft.failed(source)).and_then(|file| draft.keep(file))
}

/// A file that is there when it is whole: until then it has another name, and it goes where it is not kept.
pub(crate) struct Draft {
    path: PathBuf,
    draft: PathBuf,
    kept: bool,
}

impl Draft {
    /// Begins a file.
    pub(crate) fn create(path: &Path) -> Result<(Self, BufWriter<File>), Error> {
        let failed = |source| Error::Output { path: path.to_owned(), source };
        let name = path.file_name().ok_or_else(|| failed(io::ErrorKind::IsADirectory.into()))?;
        if path.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        let mut draft = std::ffi::OsString::from(".");
        draft.push(name);
        draft.push(format!(".{}.draft", std::process::id()));
        let draft = path.with_file_name(draft);
        let file = File::create(&draft).map_err(failed)?;
        Ok((Self { path: path.to_owned(), draft, kept: false }, BufWriter::with_capacity(1 << 16, file)))
    }

    /// Where the file is until it is kept.
    pub(crate) fn draft(&self) -> &Path {
        &self.draft
    }

    /// What an error of writing is.
    pub(crate) fn failed(&self, source: io::Error) -> Error {
        Error::Output { path: self.path.clone(), source }
    }

    /// Puts the file in its place.
    pub(crate) fn keep(&mut self, mut file: File) -> Result<(), Error> {
        let kept = file.flush().and_then(|()| file.sync_all()).and_then(|()| fs::rename(&self.draft, &self.path));
        kept.map_err(|source| self.failed(source))?;
        self.kept = true;
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.kept {
            // What else could be done about it?
            let _ = fs::remove_file(&self.draft);
        }
    }
}

fn arrow_error(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, source) => source,
        other => io::Error::other(other),
    }
}

fn parquet_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(source) => *source,
            Err(source) => io::Error::other(source),
        },
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{StringArray, TimestampMillisecondArray, UInt64Array};

    fn columns() -> Vec<Field> {
        vec![column("uid", DataType::UInt64), column("url", DataType::Utf8)]
    }

    #[test]
    fn a_table_is_there_when_it_is_whole() {
        let directory = tempfile::tempdir().unwrap();
        for (name, format) in
            [("a.parquet", TableFormat::Parquet), ("a.csv", TableFormat::Csv), ("a.arrow", TableFormat::Arrow)]
        {
            let path = directory.path().join(name);
            assert_eq!(TableFormat::of(&path), format);
            let mut table = TableWriter::create(&path, format, columns(), &[]).unwrap();
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
        drop(TableWriter::create(&directory.path().join("b.csv"), TableFormat::Csv, columns(), &[]).unwrap());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 3, "a draft is left");
    }

    #[test]
    fn times_are_the_same_in_every_format() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["a.parquet", "a.csv", "a.arrow"] {
            let path = directory.path().join(name);
            let fields = vec![column("time", time())];
            let mut table = TableWriter::create(&path, TableFormat::of(&path), fields, &[]).unwrap();
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
        TableWriter::create(&path, TableFormat::Csv, columns(), &[]).unwrap().finish().unwrap();
        assert_eq!(fs::read_to_string(path).unwrap(), "uid,url\n");
    }

    #[test]
    fn a_place_that_cannot_be_written_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("none").join("a.csv");
        let error = TableWriter::create(&path, TableFormat::Csv, columns(), &[]).err().unwrap().to_string();
        assert!(error.contains("none"), "{error}");
        assert!(TableWriter::create(directory.path(), TableFormat::Csv, columns(), &[]).is_err());
    }
}
