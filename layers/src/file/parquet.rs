//! Layer files as Parquet. No other file knows Parquet.
//!
//! Reads and writes one file of one layer, a row group at a time, as Arrow arrays in the schema of the layer.
//!
//! The following choices were measured for size on monthly crawls (bits for each link occurrence). The golden test
//! keeps them.
//! - Data pages have version 1: version 2 leaves the levels of lists uncompressed (+0.1 bit). Each column chunk has one
//!   page, so that the compressor sees the whole chunk. There is therefore no page index. Row groups bound the memory,
//!   see [`crate::file::records`].
//! - Links are split byte streams, a third smaller than plain values under zstd, and times have a dictionary, unless a
//!   row group takes fewer bytes otherwise ([`values_of`]): plain values win where whole lists repeat. UIDs are delta
//!   packed. Changes have delta packed lengths. URLs are front coded.
//! - Only `uid` has statistics, for look-ups. There is no embedded Arrow schema and no date, so that the same rows give
//!   the same bytes.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, ListArray, RecordBatch};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, ArrowWriter, ArrowWriterOptions, compute_leaves,
};
use parquet::basic::{Compression, Encoding, Type as PhysicalType, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{
    DeltaBinaryPackedEncoderOptions, EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterVersion,
};
use parquet::file::statistics::Statistics;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;
use xxhash_rust::xxh3::Xxh3;

use crate::error::{Damage, Error};
use crate::file::entry::FileEntry;
use crate::file::helpers::{Answer, Helpers};
use crate::file::row_dir::{Effort, RowDir};
use crate::file::schema::Layer;
use crate::location::Location;
use crate::location::body::Body;
use crate::record::uid::Uid;

pub(crate) mod lent;
mod reading;
mod table;

use lent::Lent;
use reading::{Reading, reading};
pub(crate) use table::{TableFile, TableWriter, read_table};

/// Larger than any page: pages end where row groups end.
const PAGE_MAX: usize = 1 << 30;

/// The maximum length of a list with a dictionary. Parquet adds all values of a list to a dictionary before it finds
/// that the dictionary is too large, and a value in the dictionary takes 40 bytes.
const DICTIONARY_LIST_MAX: i32 = 1 << 18;

/// The number of values of a row group that are encoded in all ways, to choose one.
const TRIAL_VALUES: i32 = 1 << 14;

/// How the links or the times of a row group are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Values {
    /// As split byte streams: for values that differ.
    Split,
    /// As they are: for whole lists that repeat.
    Plain,
    /// By a dictionary, and as split byte streams where it is too large: for few values.
    Dictionary,
}

impl Values {
    /// The encodings of which a row group has the smallest; the first one if nothing is tried.
    fn candidates(layer: Layer, effort: Effort) -> &'static [Values] {
        match (layer, effort) {
            (Layer::Ol, Effort::Quick) => &[Values::Split, Values::Plain],
            (Layer::Ts, _) => &[Values::Dictionary, Values::Plain, Values::Split],
            (Layer::Tr, _) => &[Values::Dictionary, Values::Plain],
            // With more effort, zstd finds in split byte streams what repeats.
            _ => &[Values::Split],
        }
    }
}

/// The encodings and the compression of a layer.
fn properties(layer: Layer, effort: Effort, values: Values) -> Result<WriterProperties, ParquetError> {
    let level = match effort {
        // Level 9 takes a twentieth more of the time of a build than this level, for 0.8 % of the bytes.
        Effort::Quick => 6,
        // Level 19 needs more memory than a job reserves for writers, for 1 % of the bytes.
        Effort::Compact => 18,
    };
    let column = |path: &[&str]| ColumnPath::new(path.iter().map(|&name| name.to_owned()).collect());
    // Mini blocks of 32: UIDs of pages come in bursts, so their widths change often.
    let delta = DeltaBinaryPackedEncoderOptions::try_new(128, 4)?;
    let builder = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_created_by("webstrata layers format 5".to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(level)?))
        .set_statistics_enabled(EnabledStatistics::None)
        .set_column_statistics_enabled(column(&["uid"]), EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_data_page_size_limit(PAGE_MAX)
        .set_data_page_row_count_limit(PAGE_MAX)
        .set_max_row_group_row_count(None)
        .set_dictionary_enabled(false)
        .set_delta_binary_packed_encoder_options(delta)
        .set_column_encoding(column(&["uid"]), Encoding::DELTA_BINARY_PACKED);
    let lists = |builder: WriterPropertiesBuilder, name| {
        let elements = column(&[name, "list", "element"]);
        let encoding = if values == Values::Plain { Encoding::PLAIN } else { Encoding::BYTE_STREAM_SPLIT };
        builder
            .set_column_dictionary_enabled(elements.clone(), values == Values::Dictionary)
            // With more values than fit into it, a dictionary takes more bytes than it saves.
            .set_column_dictionary_page_size_limit(elements.clone(), 1 << 17)
            .set_column_encoding(elements, encoding)
    };
    Ok(match layer {
        Layer::Url => builder
            .set_column_encoding(column(&["url"]), Encoding::DELTA_BYTE_ARRAY)
            .set_column_encoding(column(&["surt"]), Encoding::DELTA_BYTE_ARRAY),
        Layer::Ol | Layer::Il => lists(builder, "links"),
        Layer::Ts => lists(builder, "timestamps"),
        Layer::Tr => lists(builder, "ranges"),
        Layer::Bv | Layer::Ibv => builder.set_column_encoding(column(&["changes"]), Encoding::DELTA_LENGTH_BYTE_ARRAY),
        // Nearly all digests differ. A dictionary adds an index to each, and zstd finds the equal ones of a page.
        Layer::Rv => builder.set_column_encoding(column(&["digests", "list", "element"]), Encoding::PLAIN),
    }
    .build())
}

/// Writes the file of one layer and partition. The file is complete when it is finished. In a directory, a part of the
/// file is visible before that.
pub(crate) struct LayerWriter {
    file: SerializedFileWriter<Lent<Sink>>,
    effort: Effort,
    /// Writers of columns, for each encoding that a row group has.
    columns: Vec<(Values, ArrowRowGroupWriterFactory)>,
    helpers: Helpers,
    /// A row group that may not be encoded yet.
    waiting: Option<Answer<Result<Vec<ArrowColumnChunk>, ParquetError>>>,
    schema: Arc<Schema>,
    location: Location,
    /// The path in errors of writing.
    path: PathBuf,
    entry: FileEntry,
}

impl LayerWriter {
    /// Begins the file of a row. An existing file with the same name is replaced.
    pub(crate) fn create(row: &RowDir, layer: Layer, partition: u32) -> Result<Self, Error> {
        let name = row.file(layer, partition);
        let location = row.location().clone();
        let (file, path) = location.storage().begin(&name, row.staging())?;
        let schema = layer.schema();
        let sink = Sink { file: BufWriter::with_capacity(1 << 16, file), hash: Xxh3::new(), bytes: 0 };
        let usual = Values::candidates(layer, row.effort())[0];
        let begun = begin(Lent::new(sink), layer, row.effort(), usual);
        let (file, columns) = begun.map_err(Error::parquet(&path))?;
        let checksum = String::new();
        let entry = FileEntry { layer, partition, path: name, rows: 0, bytes: 0, checksum };
        let helpers = row.helpers().clone();
        let effort = row.effort();
        let columns = vec![(usual, columns)];
        Ok(Self { file, effort, columns, helpers, waiting: None, schema, location, path, entry })
    }

    /// The path of the file, for messages.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Accepts one row group. The row group is written to the file before the next one.
    pub(crate) fn write_group(&mut self, columns: Vec<ArrayRef>) -> Result<(), Error> {
        self.settle()?;
        let group = self.file.flushed_row_groups().len();
        let values = values_of(self.entry.layer, self.effort, &columns);
        let writers = values.and_then(|values| self.columns_of(values)?.create_column_writers(group));
        let writers = writers.map_err(Error::parquet(&self.path))?;
        self.entry.rows += columns.first().map_or(0, |column| column.len() as u64);
        let schema = Arc::clone(&self.schema);
        self.waiting = Some(self.helpers.ask(move || encode(&schema, columns, writers)));
        Ok(())
    }

    fn columns_of(&mut self, values: Values) -> Result<&ArrowRowGroupWriterFactory, ParquetError> {
        let at = match self.columns.iter().position(|(known, _)| *known == values) {
            Some(at) => at,
            None => {
                // The properties of columns belong to a file, so a file that nobody reads is begun.
                self.columns.push((values, begin(io::sink(), self.entry.layer, self.effort, values)?.1));
                self.columns.len() - 1
            }
        };
        Ok(&self.columns[at].1)
    }

    /// Writes the waiting row group.
    fn settle(&mut self) -> Result<(), Error> {
        let Some(waiting) = self.waiting.take() else { return Ok(()) };
        let lost = || Err(ParquetError::General("a row group was not encoded".to_owned()));
        let write = || {
            let chunks = waiting.get(&self.helpers).unwrap_or_else(lost)?;
            let mut group = self.file.next_row_group()?;
            chunks.into_iter().try_for_each(|chunk| chunk.append_to_row_group(&mut group))?;
            group.close().map(|_| ())
        };
        write().map_err(Error::parquet(&self.path))
    }

    /// Writes the footer, puts the file in its place, and returns the entry of the file.
    pub(crate) fn finish(mut self) -> Result<FileEntry, Error> {
        self.settle()?;
        let Self { mut file, location, path, mut entry, .. } = self;
        file.finish().map_err(Error::parquet(&path))?;
        let sink = file.inner_mut().take().map_err(Error::io(&path))?;
        let file = sink.file.into_inner().map_err(|error| Error::io(&path)(error.into_error()))?;
        location.storage().finish(&entry.path, file)?;
        entry.bytes = sink.bytes;
        entry.checksum = format!("{:016x}", sink.hash.digest());
        Ok(entry)
    }
}

/// Chooses the encoding of the lists of a row group: the one that takes the fewest bytes for the first values.
/// Cost: [`TRIAL_VALUES`] values are encoded in each way.
fn values_of(layer: Layer, effort: Effort, columns: &[ArrayRef]) -> Result<Values, ParquetError> {
    let candidates = Values::candidates(layer, effort);
    let at = columns.iter().position(|column| column.as_list_opt::<i32>().is_some());
    let (Some(at), true) = (at, candidates.len() > 1) else { return Ok(candidates[0]) };
    let lists = columns[at].as_list::<i32>();
    let first: ArrayRef = Arc::new(first_values(lists, TRIAL_VALUES)?);
    let bytes = |values| {
        let mut writer = begin(io::sink(), layer, effort, values)?.1.create_column_writers(0)?.swap_remove(at);
        let leaves = compute_leaves(&layer.schema().fields()[at], &first)?;
        leaves.into_iter().try_for_each(|leaf| writer.write(&leaf))?;
        Ok::<u64, ParquetError>(writer.close()?.close().bytes_written)
    };
    let is_long = lists.value_offsets().windows(2).any(|ends| ends[1] - ends[0] > DICTIONARY_LIST_MAX);
    let mut best = None;
    for &values in candidates.iter().filter(|values| !is_long || **values != Values::Dictionary) {
        let bytes = bytes(values)?;
        if best.is_none_or(|(least, _)| bytes < least) {
            best = Some((bytes, values));
        }
    }
    Ok(best.map_or(candidates[0], |(_, values)| values))
}

/// The first values, in their lists.
fn first_values(lists: &ListArray, count: i32) -> Result<ListArray, ParquetError> {
    let begin = lists.value_offsets()[0];
    let end = count.saturating_add(begin).min(lists.value_offsets()[lists.len()]);
    let whole = lists.value_offsets().partition_point(|&offset| offset < end);
    let offsets = lists.value_offsets()[..whole].iter().copied().chain([end]).map(|offset| offset - begin);
    let DataType::List(element) = lists.data_type() else { return Err(ParquetError::General("no list".to_owned())) };
    let values = lists.values().slice(begin as usize, (end - begin) as usize);
    Ok(ListArray::try_new(Arc::clone(element), OffsetBuffer::new(offsets.collect()), values, None)?)
}

/// Begins a file of a layer.
fn begin<W: Write + Send>(
    sink: W,
    layer: Layer,
    effort: Effort,
    values: Values,
) -> Result<(SerializedFileWriter<W>, ArrowRowGroupWriterFactory), ParquetError> {
    let options = ArrowWriterOptions::new()
        .with_properties(properties(layer, effort, values)?)
        .with_skip_arrow_metadata(true)
        .with_schema_root("webstrata".to_owned());
    ArrowWriter::try_new_with_options(sink, layer.schema(), options)?.into_serialized_writer()
}

/// Encodes a row group, column after column. Each array is freed before its values are compressed, because compression
/// takes the most memory.
fn encode(
    schema: &Schema,
    columns: Vec<ArrayRef>,
    writers: Vec<ArrowColumnWriter>,
) -> Result<Vec<ArrowColumnChunk>, ParquetError> {
    let columns = schema.fields().iter().zip(columns).zip(writers);
    let encoded = columns.map(|((field, column), mut writer)| {
        let leaves = compute_leaves(field, &column)?;
        drop(column);
        // A column of any layer has one leaf.
        leaves.into_iter().try_for_each(|leaf| writer.write(&leaf))?;
        writer.close()
    });
    encoded.collect()
}

/// A file that is hashed and measured while it is written.
struct Sink {
    file: BufWriter<File>,
    hash: Xxh3,
    bytes: u64,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A row group: its place in the file, and its range of UIDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// The number of rows of the file before the row group.
    pub(crate) first_row: u64,
    /// The number of rows; never 0.
    pub(crate) rows: usize,
    /// The lowest UID.
    pub(crate) first_uid: Uid,
    /// The highest UID.
    pub(crate) last_uid: Uid,
}

/// The names and types of columns, for messages.
fn columns_of(schema: &Schema) -> String {
    let column = |field: &Arc<Field>| {
        let null = if field.is_nullable() { " or null" } else { "" };
        format!("{} {}{null}", field.name(), field.data_type())
    };
    schema.fields().iter().map(column).collect::<Vec<_>>().join(", ")
}

/// The contents of the footer of a layer file.
pub(crate) struct Footer {
    path: PathBuf,
    metadata: ArrowReaderMetadata,
    /// The row groups, in UID order.
    pub(crate) groups: Vec<Group>,
}

impl Footer {
    /// Reads the footer. Compares size, rows and columns with the expected values. The checksum of the file must have
    /// been verified, because the Parquet library panics on some damaged files.
    pub(crate) fn read(path: PathBuf, body: &Body, entry: &FileEntry) -> Result<Self, Error> {
        let got = body.len(&path)?;
        if got != entry.bytes {
            return Err(Error::Size { path, expected: entry.bytes, got });
        }
        let load = |file| ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).map_err(Error::parquet(&path));
        let metadata = reading(&path, body, load)?;
        let expected = entry.layer.schema();
        if metadata.schema().fields() != expected.fields() {
            return Err(Error::Schema { got: columns_of(metadata.schema()), expected: columns_of(&expected), path });
        }
        let repeats = entry.layer.has_repeated_uids();
        let (mut groups, mut first_row, mut next_uid) = (Vec::new(), 0u64, 0u64);
        for group in metadata.metadata().row_groups() {
            let damaged = |damage| Error::Damaged { path: path.clone(), row: first_row, damage };
            let rows = u64::try_from(group.num_rows()).map_err(|_| damaged(Damage::NotAligned))?;
            let Some(Statistics::Int64(uids)) = group.columns().first().and_then(|column| column.statistics()) else {
                return Err(damaged(Damage::Null));
            };
            let bound = |bound: Option<&i64>| bound.copied().and_then(|uid| u64::try_from(uid).ok());
            let (Some(first_uid), Some(last_uid)) = (bound(uids.min_opt()), bound(uids.max_opt())) else {
                return Err(damaged(Damage::Null));
            };
            let dense = repeats || last_uid.saturating_sub(first_uid) >= rows.saturating_sub(1);
            if first_uid < next_uid || last_uid < first_uid || !dense || rows == 0 {
                return Err(damaged(Damage::Order { previous: next_uid.max(last_uid), got: first_uid }));
            }
            let fits = rows <= entry.rows - first_row;
            let rows = usize::try_from(rows).ok().filter(|_| fits).ok_or_else(|| damaged(Damage::NotAligned))?;
            groups.push(Group { first_row, rows, first_uid: Uid(first_uid), last_uid: Uid(last_uid) });
            first_row += rows as u64;
            next_uid = if repeats { last_uid } else { last_uid.saturating_add(1) };
        }
        if first_row != entry.rows {
            return Err(Error::Damaged { path, row: first_row, damage: Damage::NotAligned });
        }
        Ok(Self { path, metadata, groups })
    }

    /// An error about a row of the file.
    pub(crate) fn damaged(&self, row: u64, damage: Damage) -> Error {
        Error::Damaged { path: self.path.clone(), row, damage }
    }

    /// The number of values of all records at most: elements of lists, where an empty list counts as one, or bytes of
    /// changes.
    pub(crate) fn values(&self) -> u64 {
        let columns = self.metadata.metadata().row_groups().iter().filter_map(|group| group.columns().get(1));
        let values = columns.map(|column| match column.column_type() {
            PhysicalType::BYTE_ARRAY => column.uncompressed_size(),
            _ => column.num_values(),
        });
        values.map(i64::unsigned_abs).sum()
    }

    /// The number of the first row group that has a UID; `None` if no row group has the UID.
    pub(crate) fn group_of(&self, uid: Uid) -> Option<usize> {
        let at = self.groups.partition_point(|group| group.last_uid < uid);
        self.groups.get(at).filter(|group| group.first_uid <= uid).map(|_| at)
    }

    /// See [`LayerFile::read`].
    fn batch(&self, from: Reading, group: usize, columns: usize) -> Result<RecordBatch, Error> {
        let Group { first_row, rows, .. } = self.groups[group];
        let mask = ProjectionMask::roots(
            self.metadata.metadata().file_metadata().schema_descr(),
            0..columns.min(self.metadata.schema().fields().len()),
        );
        let mut batches = ParquetRecordBatchReaderBuilder::new_with_metadata(from, self.metadata.clone())
            .with_row_groups(vec![group])
            .with_batch_size(rows)
            .with_projection(mask)
            .build()
            .map_err(Error::parquet(&self.path))?;
        let short = || Error::Damaged { path: self.path.clone(), row: first_row, damage: Damage::NotAligned };
        let batch = batches.next().ok_or_else(short)?.map_err(Error::arrow(&self.path))?;
        if batch.num_rows() == rows { Ok(batch) } else { Err(short()) }
    }
}

/// A file of one layer, open for reading.
pub(crate) struct LayerFile {
    pub(crate) footer: Arc<Footer>,
    pub(crate) body: Body,
}

impl Deref for LayerFile {
    type Target = Footer;

    fn deref(&self) -> &Footer {
        &self.footer
    }
}

impl LayerFile {
    /// Opens a file whose checksum was verified; see [`Footer::read`].
    pub(crate) fn open(location: &Location, entry: &FileEntry) -> Result<Self, Error> {
        let body = location.storage().body(&entry.path)?;
        let footer = Arc::new(Footer::read(location.path(&entry.path), &body, entry)?);
        Ok(Self { footer, body })
    }

    /// Reads the first `columns` columns of a row group, or all if the row group has fewer.
    pub(crate) fn read(&self, group: usize, columns: usize) -> Result<RecordBatch, Error> {
        reading(&self.footer.path, &self.body, |file| self.footer.batch(file, group, columns))
    }
}
