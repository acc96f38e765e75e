//! Parquet files that are no layer: columns of uint64 without nulls, written and read a batch at a time.
//!
//! Columns are delta packed and compressed, a row group a batch. Memory: a batch and what Parquet holds of it; of a
//! file in S3 that is read, the file. The same rows in the same batches give the same bytes.

use super::*;

use arrow_array::UInt64Array;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_schema::DataType;

/// What was written.
pub(crate) struct Table {
    pub(crate) path: String,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) checksum: String,
}

/// Columns of uint64.
fn schema_of(columns: &[&str]) -> Arc<Schema> {
    Arc::new(Schema::new(columns.iter().map(|&name| Field::new(name, DataType::UInt64, false)).collect::<Vec<_>>()))
}

/// Writes a file. It is there when it is finished; in a directory, a part of it is before.
pub(crate) struct TableWriter {
    file: ArrowWriter<Sink>,
    schema: Arc<Schema>,
    location: Location,
    name: String,
    /// What errors of writing are about.
    path: PathBuf,
    rows: u64,
}

impl TableWriter {
    /// Begins the file `name` in the store of `row`; a file of that name is replaced.
    pub(crate) fn create(row: &RowDir, name: String, columns: &[&str]) -> Result<Self, Error> {
        let location = row.location().clone();
        let (file, path) = location.storage().begin(&name, row.staging())?;
        let schema = schema_of(columns);
        let options = || -> Result<_, ParquetError> {
            let properties = WriterProperties::builder()
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
            Ok(ArrowWriterOptions::new()
                .with_properties(properties.build())
                .with_skip_arrow_metadata(true)
                .with_schema_root("webstrata".to_owned()))
        };
        let sink = Sink { file: BufWriter::with_capacity(1 << 16, file), hash: Xxh3::new(), bytes: 0 };
        let file = options()
            .and_then(|options| ArrowWriter::try_new_with_options(sink, Arc::clone(&schema), options))
            .map_err(Error::parquet(&path))?;
        Ok(Self { file, schema, location, name, path, rows: 0 })
    }

    /// Writes rows, given by columns of one length.
    pub(crate) fn write(&mut self, columns: impl IntoIterator<Item = Vec<u64>>) -> Result<(), Error> {
        let columns = columns.into_iter().map(|column| Arc::new(UInt64Array::from(column)) as ArrayRef).collect();
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns).map_err(Error::arrow(&self.path))?;
        self.rows += batch.num_rows() as u64;
        let written = self.file.write(&batch).and_then(|()| self.file.flush());
        written.map_err(Error::parquet(&self.path))
    }

    /// Writes the footer, puts the file where it belongs, and says what was written.
    pub(crate) fn finish(self) -> Result<Table, Error> {
        let Self { file, location, name, path, rows, .. } = self;
        let sink = file.into_inner().map_err(Error::parquet(&path))?;
        let file = sink.file.into_inner().map_err(|error| Error::io(&path)(error.into_error()))?;
        location.storage().finish(&name, file)?;
        Ok(Table { path: name, rows, bytes: sink.bytes, checksum: format!("{:016x}", sink.hash.digest()) })
    }
}

/// Reads a file whose checksum was verified (see [`Footer::read`]), and shows its `N` columns, some rows at a time.
pub(crate) fn read_table<const N: usize>(
    path: &Path,
    body: &Body,
    columns: [&str; N],
    visit: impl FnMut([&[u64]; N]) -> Result<(), Error>,
) -> Result<(), Error> {
    reading(path, body, |file| read_from(file, path, columns, visit))
}

fn read_from<const N: usize>(
    from: Reading,
    path: &Path,
    columns: [&str; N],
    mut visit: impl FnMut([&[u64]; N]) -> Result<(), Error>,
) -> Result<(), Error> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(from).map_err(Error::parquet(path))?;
    let expected = schema_of(&columns);
    if reader.schema().fields() != expected.fields() {
        return Err(Error::Schema {
            got: columns_of(reader.schema()),
            expected: columns_of(&expected),
            path: path.into(),
        });
    }
    let mut row = 0;
    for batch in reader.with_batch_size(1 << 16).build().map_err(Error::parquet(path))? {
        let batch = batch.map_err(Error::arrow(path))?;
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
