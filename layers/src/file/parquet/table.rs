//! Parquet files other than layers: columns without nulls, written and read a row group at a time.
//!
//! Numbers are delta packed, texts are front coded, and lists have dictionaries. Everything is compressed. Memory: a
//! row group and the buffers of Parquet for it; for reading a file in S3, the file. The same rows in the same row
//! groups give the same bytes.

use super::*;

use arrow_array::UInt64Array;
use arrow_array::types::UInt64Type;
use arrow_schema::DataType;

/// The description of a file that was written.
pub(crate) struct Table {
    pub(crate) path: String,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) checksum: String,
}

/// A schema with columns of uint64.
fn schema_of(columns: &[&str]) -> Arc<Schema> {
    Arc::new(Schema::new(columns.iter().map(|&name| Field::new(name, DataType::UInt64, false)).collect::<Vec<_>>()))
}

fn properties_of(schema: &Schema) -> Result<WriterProperties, ParquetError> {
    let mut builder = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_created_by("webstrata layers".to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(9)?))
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_data_page_size_limit(PAGE_MAX)
        .set_data_page_row_count_limit(PAGE_MAX)
        .set_max_row_group_row_count(None)
        .set_dictionary_enabled(false)
        .set_encoding(Encoding::DELTA_BINARY_PACKED);
    for field in schema.fields() {
        let column = |path: &[&str]| ColumnPath::new(path.iter().map(|&name| name.to_owned()).collect());
        builder = match field.data_type() {
            DataType::Utf8 => builder.set_column_encoding(column(&[field.name()]), Encoding::DELTA_BYTE_ARRAY),
            DataType::List(_) => {
                builder.set_column_dictionary_enabled(column(&[field.name(), "list", "element"]), true)
            }
            _ => builder,
        };
    }
    Ok(builder.build())
}

/// Writes a file. The file is complete when it is finished. In a directory, a part of the file is visible before that.
pub(crate) struct TableWriter {
    file: ArrowWriter<Lent<Sink>>,
    schema: Arc<Schema>,
    location: Location,
    name: String,
    /// The path in errors of writing.
    path: PathBuf,
    rows: u64,
}

impl TableWriter {
    /// Begins the file `name` with columns of uint64 in the store of `row`. An existing file with the same name is
    /// replaced.
    pub(crate) fn create(row: &RowDir, name: String, columns: &[&str]) -> Result<Self, Error> {
        Self::with_schema(row, name, schema_of(columns))
    }

    /// The same for columns of any type.
    pub(crate) fn with_schema(row: &RowDir, name: String, schema: Arc<Schema>) -> Result<Self, Error> {
        let location = row.location().clone();
        let (file, path) = location.storage().begin(&name, row.staging())?;
        let options = || -> Result<_, ParquetError> {
            Ok(ArrowWriterOptions::new()
                .with_properties(properties_of(&schema)?)
                .with_skip_arrow_metadata(true)
                .with_schema_root("webstrata".to_owned()))
        };
        let sink = Sink { file: BufWriter::with_capacity(1 << 16, file), hash: Xxh3::new(), bytes: 0 };
        let file = options()
            .and_then(|options| ArrowWriter::try_new_with_options(Lent::new(sink), Arc::clone(&schema), options))
            .map_err(Error::parquet(&path))?;
        Ok(Self { file, schema, location, name, path, rows: 0 })
    }

    /// Writes rows, given as columns of the same length.
    pub(crate) fn write(&mut self, columns: impl IntoIterator<Item = Vec<u64>>) -> Result<(), Error> {
        self.write_group(columns.into_iter().map(|column| Arc::new(UInt64Array::from(column)) as ArrayRef).collect())
    }

    /// Writes a row group.
    pub(crate) fn write_group(&mut self, columns: Vec<ArrayRef>) -> Result<(), Error> {
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns).map_err(Error::arrow(&self.path))?;
        self.rows += batch.num_rows() as u64;
        let written = self.file.write(&batch).and_then(|()| self.file.flush());
        written.map_err(Error::parquet(&self.path))
    }

    /// The path of the file, for errors.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the footer, puts the file in its place, and returns its description.
    pub(crate) fn finish(self) -> Result<Table, Error> {
        let Self { mut file, location, name, path, rows, .. } = self;
        file.finish().map_err(Error::parquet(&path))?;
        let sink = file.inner_mut().take().map_err(Error::io(&path))?;
        let file = sink.file.into_inner().map_err(|error| Error::io(&path)(error.into_error()))?;
        location.storage().finish(&name, file)?;
        Ok(Table { path: name, rows, bytes: sink.bytes, checksum: format!("{:016x}", sink.hash.digest()) })
    }
}

/// A file that is open for reading.
pub(crate) struct TableFile {
    path: PathBuf,
    body: Body,
    metadata: ArrowReaderMetadata,
}

impl TableFile {
    /// Opens a file with a verified checksum (see [`Footer::read`]). Fails if the file has other columns.
    pub(crate) fn open(path: PathBuf, body: Body, expected: &Schema) -> Result<Self, Error> {
        let load = |file| ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).map_err(Error::parquet(&path));
        let metadata = reading(&path, &body, load)?;
        if metadata.schema().fields() != expected.fields() {
            return Err(Error::Schema { got: columns_of(metadata.schema()), expected: columns_of(expected), path });
        }
        Ok(Self { path, body, metadata })
    }

    /// The number of row groups.
    pub(crate) fn groups(&self) -> usize {
        self.metadata.metadata().num_row_groups()
    }

    /// The path of the file, for errors.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads a row group.
    pub(crate) fn read(&self, group: usize) -> Result<RecordBatch, Error> {
        reading(&self.path, &self.body, |file| self.batch(file, group))
    }

    fn batch(&self, from: Reading, group: usize) -> Result<RecordBatch, Error> {
        let rows = self.metadata.metadata().row_group(group).num_rows();
        let rows = usize::try_from(rows).unwrap_or(usize::MAX);
        let damaged = || Error::Damaged { path: self.path.clone(), row: 0, damage: Damage::NotAligned };
        let mut batches = ParquetRecordBatchReaderBuilder::new_with_metadata(from, self.metadata.clone())
            .with_row_groups(vec![group])
            .with_batch_size(rows.max(1))
            .build()
            .map_err(Error::parquet(&self.path))?;
        batches.next().ok_or_else(damaged)?.map_err(Error::arrow(&self.path))
    }
}

/// Reads a file of columns of uint64 with a verified checksum. Calls `visit` with the `N` columns of each row group.
pub(crate) fn read_table<const N: usize>(
    path: &Path,
    body: &Body,
    columns: [&str; N],
    mut visit: impl FnMut([&[u64]; N]) -> Result<(), Error>,
) -> Result<(), Error> {
    let file = TableFile::open(path.to_owned(), body.clone(), &schema_of(&columns))?;
    let mut row = 0;
    for group in 0..file.groups() {
        let batch = file.read(group)?;
        let mut values: [&[u64]; N] = [&[]; N];
        for (values, column) in values.iter_mut().zip(batch.columns()) {
            let column = column.as_primitive_opt::<UInt64Type>().filter(|column| column.null_count() == 0);
            let null = || Error::Damaged { path: path.into(), row, damage: Damage::Null };
            *values = column.ok_or_else(null)?.values();
        }
        visit(values)?;
        row += batch.num_rows() as u64;
    }
    Ok(())
}
