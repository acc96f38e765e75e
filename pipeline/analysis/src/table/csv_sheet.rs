//! A table as comma-separated values: a header, then a line for each row, with line feeds.
//!
//! | column | text |
//! |---|---|
//! | `Utf8` | the text as [`csv_text`] gives it, in quotes if it has a comma, a quote or a line break |
//! | `UInt32`, `UInt64` | decimal digits |
//! | `Float64` | the fewest digits that read back as the same number; exponents below `0.00001` and from `1e16` |
//! | `Boolean` | `true`, `false` |
//! | `Timestamp` in milliseconds | RFC 3339 in UTC, with `Z`; with milliseconds if they are not 0 |
//!
//! A null is empty. [`CsvSheet::write`] passes on the text of a whole batch before it returns. A compressed file gets a
//! block for each batch, and a reader of a stream need not wait.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, TimestampMillisecondType, UInt32Type, UInt64Type};
use arrow_array::{
    Array, BooleanArray, Float64Array, RecordBatch, StringArray, TimestampMillisecondArray, UInt32Array, UInt64Array,
};
use arrow_schema::{DataType, Schema, TimeUnit};
use chrono::{DateTime, SecondsFormat};
use csv::ByteRecord;
use std::borrow::Cow;
use std::io::{self, Write};

/// Writes batches of one schema; see the head of this file.
pub(super) struct CsvSheet<W: Write> {
    writer: csv::Writer<W>,
    /// Whether the header is written.
    begun: bool,
    record: ByteRecord,
}

/// A column of a type that has a text.
enum Column<'a> {
    Texts(&'a StringArray),
    Long(&'a UInt64Array),
    Short(&'a UInt32Array),
    Reals(&'a Float64Array),
    Truths(&'a BooleanArray),
    Times(&'a TimestampMillisecondArray),
}

impl<'a> Column<'a> {
    fn new(name: &str, column: &'a dyn Array) -> io::Result<Self> {
        let known = match column.data_type() {
            DataType::Utf8 => column.as_string_opt().map(Column::Texts),
            DataType::UInt64 => column.as_primitive_opt::<UInt64Type>().map(Column::Long),
            DataType::UInt32 => column.as_primitive_opt::<UInt32Type>().map(Column::Short),
            DataType::Float64 => column.as_primitive_opt::<Float64Type>().map(Column::Reals),
            DataType::Boolean => column.as_boolean_opt().map(Column::Truths),
            DataType::Timestamp(TimeUnit::Millisecond, _) => {
                column.as_primitive_opt::<TimestampMillisecondType>().map(Column::Times)
            }
            _ => None,
        };
        let unknown = || io::Error::other(format!("column {name} of type {} is not for CSV", column.data_type()));
        known.ok_or_else(unknown)
    }

    /// Appends the text of a value.
    fn push(&self, row: usize, record: &mut ByteRecord) -> io::Result<()> {
        let column: &dyn Array = match *self {
            Column::Texts(values) => values,
            Column::Long(values) => values,
            Column::Short(values) => values,
            Column::Reals(values) => values,
            Column::Truths(values) => values,
            Column::Times(values) => values,
        };
        if column.is_null(row) {
            record.push_field(b"");
            return Ok(());
        }
        match self {
            Column::Texts(values) => record.push_field(csv_text(values.value(row)).as_bytes()),
            Column::Long(values) => record.push_field(itoa::Buffer::new().format(values.value(row)).as_bytes()),
            Column::Short(values) => record.push_field(itoa::Buffer::new().format(values.value(row)).as_bytes()),
            Column::Reals(values) => record.push_field(ryu::Buffer::new().format(values.value(row)).as_bytes()),
            Column::Truths(values) => record.push_field(if values.value(row) { b"true" } else { b"false" }),
            Column::Times(values) => {
                let milliseconds = values.value(row);
                let time = DateTime::from_timestamp_millis(milliseconds).ok_or_else(|| {
                    io::Error::other(format!("{milliseconds} ms since 1970 are no date of a calendar"))
                })?;
                record.push_field(time.to_rfc3339_opts(SecondsFormat::AutoSi, true).as_bytes());
            }
        }
        Ok(())
    }
}

impl<W: Write> CsvSheet<W> {
    pub(super) fn new(to: W) -> Self {
        Self { writer: csv::Writer::from_writer(to), begun: false, record: ByteRecord::new() }
    }

    fn begin(&mut self, schema: &Schema) -> io::Result<()> {
        if self.begun {
            return Ok(());
        }
        self.begun = true;
        self.writer.write_record(schema.fields().iter().map(|field| field.name())).map_err(csv_error)
    }

    /// Writes rows, with the header before the first row.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        self.begin(batch.schema_ref())?;
        let named = batch.schema_ref().fields().iter().zip(batch.columns());
        let columns = named.map(|(field, column)| Column::new(field.name(), column)).collect::<io::Result<Vec<_>>>()?;
        for row in 0..batch.num_rows() {
            self.record.clear();
            columns.iter().try_for_each(|column| column.push(row, &mut self.record))?;
            self.writer.write_byte_record(&self.record).map_err(csv_error)?;
        }
        self.writer.flush()
    }

    /// Ends the table, which has its header even without rows. Returns the writer.
    pub(super) fn finish(mut self, schema: &Schema) -> io::Result<W> {
        self.begin(schema)?;
        self.writer.into_inner().map_err(|error| error.into_error())
    }
}

/// A text as a field of CSV, before quotes. A text that a spreadsheet would run as a formula, such as a host that
/// begins with `=` or `-`, gets an apostrophe before it. URLs begin with their scheme and stay as they are.
///
/// ```
/// use webstrata_analysis::csv_text;
///
/// assert_eq!(csv_text("=1+1.example"), "'=1+1.example");
/// assert_eq!(csv_text("http://example.org/=1"), "http://example.org/=1");
/// ```
#[must_use]
pub fn csv_text(text: &str) -> Cow<'_, str> {
    match text.as_bytes().first() {
        Some(b'=' | b'+' | b'-' | b'@' | b'\t' | b'\r') => format!("'{text}").into(),
        _ => text.into(),
    }
}

/// The error of the system, with its kind, in an error of the library.
pub(crate) fn csv_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(source) => source,
        other => io::Error::other(format!("{other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{ArrayRef, Int8Array};
    use std::sync::Arc;

    fn written(columns: Vec<(&str, ArrayRef)>) -> io::Result<String> {
        let batch =
            RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true)));
        let batch = batch.unwrap();
        let mut sheet = CsvSheet::new(Vec::new());
        sheet.write(&batch)?;
        Ok(String::from_utf8(sheet.finish(batch.schema_ref())?).unwrap())
    }

    #[test]
    fn every_type_has_its_text() {
        let texts = StringArray::from(vec![Some("a"), Some("a,b"), Some("\"c\"\n"), Some(" d "), None, Some("é\r")]);
        let long = UInt64Array::from(vec![Some(u64::MAX), Some(0), None, Some(7), Some(8), Some(9)]);
        let short = UInt32Array::from(vec![Some(u32::MAX), None, Some(1), Some(2), Some(3), Some(4)]);
        let truths = BooleanArray::from(vec![Some(true), Some(false), None, None, None, None]);
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("te,xt", Arc::new(texts)),
            ("long", Arc::new(long)),
            ("short", Arc::new(short)),
            ("truth", Arc::new(truths)),
        ];
        let expected = "\"te,xt\",long,short,truth\na,18446744073709551615,4294967295,true\n\"a,b\",0,,false\n\
                        \"\"\"c\"\"\n\",,1,\n d ,7,2,\n,8,3,\n\"é\r\",9,4,\n";
        assert_eq!(written(columns).unwrap(), expected);
    }

    #[test]
    fn no_text_is_a_formula() {
        let texts = ["=1+1", "+a.example", "-a.example", "@a", "\tb", "a=b", "", "'=1"];
        let texts: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
        let negative: ArrayRef = Arc::new(Float64Array::from(vec![-1.0; 8]));
        let expected = "host,n\n'=1+1,-1.0\n'+a.example,-1.0\n'-a.example,-1.0\n'@a,-1.0\n'\tb,-1.0\na=b,-1.0\n\
                        ,-1.0\n'=1,-1.0\n";
        assert_eq!(written(vec![("host", texts), ("n", negative)]).unwrap(), expected);
    }

    #[test]
    fn numbers_and_times_are_as_arrow_writes_them() {
        let reals = [0.0, -0.0, 1.0, 0.1, 1e-5, 9.9e-6, 123_456.789, 1e15, 1e16, 1e300, f64::NAN, f64::INFINITY];
        let reals: ArrayRef = Arc::new(Float64Array::from(reals.to_vec()));
        let expected = "real\n0.0\n-0.0\n1.0\n0.1\n0.00001\n9.9e-6\n123456.789\n1000000000000000.0\n1e16\n1e300\n\
                        NaN\ninf\n";
        assert_eq!(written(vec![("real", reals)]).unwrap(), expected);
        let times = [Some(1_180_698_245_000), Some(1), Some(-62_135_596_800_000), Some(253_402_300_799_999), None];
        let times: ArrayRef = Arc::new(TimestampMillisecondArray::from(times.to_vec()).with_timezone("UTC"));
        let expected = "time\n2007-06-01T11:44:05Z\n1970-01-01T00:00:00.001Z\n0001-01-01T00:00:00Z\n\
                        9999-12-31T23:59:59.999Z\n\"\"\n";
        assert_eq!(written(vec![("time", times)]).unwrap(), expected);
    }

    #[test]
    fn what_has_no_text_is_refused() {
        let times: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![i64::MAX]));
        assert!(written(vec![("time", times)]).unwrap_err().to_string().contains("no date"));
        let bytes: ArrayRef = Arc::new(Int8Array::from(vec![1]));
        assert!(written(vec![("byte", bytes)]).unwrap_err().to_string().contains("column byte of type Int8"));
    }
}
