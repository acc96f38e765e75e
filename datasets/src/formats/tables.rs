//! Parquet tables: captures with lists of links, and the web graphs of the Archives Unleashed Toolkit and of ARCH.
//!
//! | columns | one row is | file |
//! |---|---|---|
//! | `url`, `ts`, and some of the optional columns below | a capture | `captures` |
//! | `crawl_date`, `src`, `dest` | a link; consecutive rows of one source and date are one capture | `webgraph` |
//! | `crawl_date`, `source`, `target` | the same | `webgraph` |
//!
//! The optional columns of a capture mean what the fields of JSON lines mean ([`crate::formats::jsonl`]): `links` (list
//! of strings), `status` (integer), `digest`, `redirect` (strings), `revisit` (struct of `profile`,
//! `refers_to_target_uri`, both strings, and `refers_to_date`).
//!
//! If all pages of the links have dictionary encoding, links stay keys: each text is decoded once a row group.
//!
//! The reader reads only these columns, never others such as `anchor`. Some writers store an Arrow schema in the file.
//! The reader ignores the Arrow schema, so dictionary, large and view types arrive as plain strings and lists.
//!
//! Dates: timestamps of any unit, integers of 10 digits (seconds since 1970), 13 (milliseconds) or 14
//! (`YYYYMMDDhhmmss`), texts as in [`crate::capture::date`]; crawl dates are digits of a text or an integer, 8 or 14 of
//! them. Null cells are damage: a row without URL or date is left out, as is a link that is null. In optional columns
//! null is as if the column was not there.
//!
//! Unit of work: one row group. Memory: a batch of at most [`BATCH_ROWS`] rows, fewer where rows are long, and the
//! pages that are being decoded. Offsets of damage are row numbers in the file, from 0.

mod captures;
mod cells;
mod webgraph;

use crate::files::hashed::{DigestCell, digest_of};
use crate::{Capture, CaptureReader, Error, Finding, Tally};
use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Fields, Schema};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::{ConvertedType, Encoding};
use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Most rows in a batch, and the approximate bytes of a batch.
const BATCH_ROWS: usize = 1024;
const BATCH_BYTES: u64 = 8 << 20;

/// Bytes of each row group. An invalid Parquet file counts as one row group, so that [`open`] reports the file.
pub(crate) fn row_groups(path: &Path) -> Result<Vec<u64>, Error> {
    let file = File::open(path).map_err(|source| Error::io(path, source))?;
    let Ok(metadata) = metadata(&file) else {
        let bytes = file.metadata().map_err(|source| Error::io(path, source))?.len();
        return Ok(vec![bytes]);
    };
    let groups = metadata.metadata().row_groups();
    Ok(groups.iter().map(|group| u64::try_from(group.compressed_size()).unwrap_or(0)).collect())
}

/// Opens one row group; `digest` gets the digest of the bytes from its first column to its last.
pub(crate) fn open(
    path: &Path,
    row_group: usize,
    redirects: bool,
    digest: &DigestCell,
) -> Result<Box<dyn CaptureReader>, Error> {
    let file = File::open(path).map_err(|source| Error::io(path, source))?;
    let broken = |finding, detail| -> Result<Box<dyn CaptureReader>, Error> {
        Ok(Box::new(Broken { path: path.to_owned(), report: Some((finding, detail)) }))
    };
    let metadata = match metadata(&file) {
        Ok(metadata) => metadata,
        Err(error) => return broken(Finding::BadHeader, format!("Parquet footer: {error}")),
    };
    let columns: Vec<&str> = metadata.schema().fields().iter().map(|field| field.name().as_str()).collect();
    let index_of = |name: &str| columns.iter().position(|column| column.trim() == name);
    let (roots, optional) = match (
        [index_of("url"), index_of("ts")],
        [index_of("crawl_date"), index_of("src").or(index_of("source")), index_of("dest").or(index_of("target"))],
    ) {
        ([Some(url), Some(time)], _) => {
            let mut roots = vec![url, time];
            let optional = captures::OPTIONAL.map(|name| {
                let root = index_of(name)?;
                roots.push(root);
                Some(roots.len() - 1)
            });
            (roots, Some(optional))
        }
        (_, [Some(date), Some(source), Some(target)]) => (vec![source, date, target], None),
        // Each row group is an input; the file is named once.
        _ if row_group > 0 => return Ok(Box::new(Broken { path: path.to_owned(), report: None })),
        _ if index_of("url_surtkey").is_some() => {
            return broken(Finding::IndexFile, "columnar index of Common Crawl".to_owned());
        }
        _ => return broken(Finding::OtherFile, format!("a table with the columns {}", columns.join(", "))),
    };
    let groups = metadata.metadata().row_groups();
    let Some(group) = groups.get(row_group) else {
        return broken(
            Finding::BadHeader,
            format!("row group {row_group} does not exist, the file has {}", groups.len()),
        );
    };
    let ranges = || group.columns().iter().map(|column| column.byte_range());
    let first = ranges().map(|(start, _)| start).min().unwrap_or(0);
    let end = ranges().map(|(start, bytes)| start.saturating_add(bytes)).max().unwrap_or(0);
    // A file that ends too early is reported when the group is read.
    if let Ok(of_group) = digest_of(&file, first..end.max(first)) {
        digest.get_or_init(|| of_group);
    }
    let rows = |rows: i64| u64::try_from(rows).unwrap_or(0);
    let row = groups[..row_group].iter().map(|group| rows(group.num_rows())).sum();
    let row_end = row + rows(group.num_rows());
    let row_bytes = rows(group.total_byte_size()) / rows(group.num_rows()).max(1);
    let batch_rows = usize::try_from(BATCH_BYTES / row_bytes.max(1)).unwrap_or(BATCH_ROWS).clamp(1, BATCH_ROWS);
    let names = roots.iter().map(|&root| columns[root].to_owned()).collect();
    let links = optional.and_then(|[links, ..]| links).map(|index| roots[index]);
    let as_keys = links.and_then(|root| with_keys(&metadata, group, root));
    let metadata = as_keys.unwrap_or(metadata);
    let mask = ProjectionMask::roots(metadata.parquet_schema(), roots);
    let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata)
        .with_projection(mask)
        .with_row_groups(vec![row_group])
        .with_batch_size(batch_rows)
        .build();
    let batches = match reader {
        Ok(reader) => Batches { reader, names, path: path.to_owned(), row, row_end, ended: false },
        Err(error) => return broken(Finding::BadHeader, format!("Parquet row group {row_group}: {error}")),
    };
    match optional {
        Some(optional) => Ok(Box::new(captures::Captures::new(batches, optional, redirects))),
        None => Ok(Box::new(webgraph::Webgraph::new(batches))),
    }
}

fn metadata(file: &File) -> Result<ArrowReaderMetadata, ParquetError> {
    ArrowReaderMetadata::load(file, ArrowReaderOptions::new().with_skip_arrow_metadata(true))
}

/// Makes the reader return a column of lists of texts as keys of a dictionary; `None` if a page has no keys.
fn with_keys(metadata: &ArrowReaderMetadata, group: &RowGroupMetaData, root: usize) -> Option<ArrowReaderMetadata> {
    let schema = metadata.parquet_schema();
    let mut leaves = (0..schema.num_columns()).filter(|&leaf| schema.get_column_root_idx(leaf) == root);
    let chunk = group.column(leaves.next()?);
    let pages = chunk.page_encoding_stats_mask()?;
    let DataType::List(item) = metadata.schema().field(root).data_type() else { return None };
    // The dictionary of other texts (JSON) is read as bytes, and its list then panics.
    let is_text = *item.data_type() == DataType::Utf8 && chunk.column_descr().converted_type() == ConvertedType::UTF8;
    if !is_text || !(pages.is_only(Encoding::RLE_DICTIONARY) || pages.is_only(Encoding::PLAIN_DICTIONARY)) {
        return None;
    }
    let keys = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let list = DataType::List(Arc::new(Field::clone(item).with_data_type(keys)));
    let fields = metadata.schema().fields().iter().enumerate().map(|(index, field)| {
        if index == root { Arc::new(Field::clone(field).with_data_type(list.clone())) } else { Arc::clone(field) }
    });
    let options = ArrowReaderOptions::new().with_schema(Arc::new(Schema::new(fields.collect::<Fields>())));
    ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), options).ok()
}

/// The batches of one row group, with the columns in the requested order.
struct Batches {
    reader: ParquetRecordBatchReader,
    names: Vec<String>,
    path: PathBuf,
    /// Row number in the file of the next batch's first row.
    row: u64,
    row_end: u64,
    /// The rest of the row group cannot be read.
    ended: bool,
}

impl Batches {
    /// The next batch, and the row number in the file of its first row. A batch that cannot be decoded counts as damage
    /// and ends the row group.
    fn next(&mut self, tally: &mut Tally) -> Option<(u64, RecordBatch)> {
        let row = self.row;
        if self.ended {
            return None;
        }
        match self.reader.next()? {
            Ok(batch) => {
                self.row += batch.num_rows() as u64;
                let columns =
                    self.names.iter().map(|name| batch.schema_ref().index_of(name)).collect::<Result<Vec<_>, _>>();
                match columns.and_then(|columns| batch.project(&columns)) {
                    Ok(batch) => Some((row, batch)),
                    Err(error) => self.give_up(Finding::BadRow, error.to_string(), tally),
                }
            }
            Err(error) => {
                let detail = format!("rows {row} to {} cannot be decoded: {error}", self.row_end);
                self.give_up(Finding::BadRow, detail, tally)
            }
        }
    }

    /// Counts columns of the wrong types, and ends the row group.
    fn wrong_types<T>(&mut self, batch: &RecordBatch, tally: &mut Tally) -> Option<T> {
        let types: Vec<String> = batch.columns().iter().map(|column| column.data_type().to_string()).collect();
        self.give_up(
            Finding::BadRow,
            format!("columns {} have the types {}", self.names.join(", "), types.join(", ")),
            tally,
        )
    }

    fn give_up<T>(&mut self, finding: Finding, detail: String, tally: &mut Tally) -> Option<T> {
        tally.damage(finding, &self.path, self.row, detail);
        self.ended = true;
        None
    }
}

/// A file without readable captures: reports the reason once.
struct Broken {
    path: PathBuf,
    report: Option<(Finding, String)>,
}

impl CaptureReader for Broken {
    fn read(&mut self, capture: &mut Capture, tally: &mut Tally) -> Result<bool, Error> {
        capture.clear();
        if let Some((finding, detail)) = self.report.take() {
            // A place of damage, or a file of another kind.
            tally.damage(finding, &self.path, 0, detail);
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::builder::{ListBuilder, StringBuilder};
    use arrow_array::types::Int32Type;
    use arrow_array::{
        ArrayRef, DictionaryArray, Int64Array, LargeStringArray, StringArray, StringViewArray,
        TimestampMicrosecondArray, TimestampMillisecondArray, TimestampSecondArray, UInt64Array,
    };
    use parquet::arrow::ArrowWriter;
    use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    type Row = (String, i64, Vec<String>);

    fn write(columns: Vec<(&str, ArrayRef)>, dictionary: bool, rows_a_group: usize) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        let batch =
            RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true)))
                .unwrap();
        let properties = WriterProperties::builder()
            .set_dictionary_enabled(dictionary)
            .set_max_row_group_row_count(Some(rows_a_group))
            .build();
        let mut writer = ArrowWriter::try_new(file.reopen().unwrap(), batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        file
    }

    fn read_all(path: &Path) -> (Vec<Row>, Tally) {
        let (mut rows, mut tally, mut capture) = (Vec::new(), Tally::default(), Capture::default());
        for group in 0..row_groups(path).unwrap().len() {
            let mut reader = open(path, group, true, &DigestCell::default()).unwrap();
            while reader.read(&mut capture, &mut tally).unwrap() {
                rows.push((capture.url.clone(), capture.time, capture.links.iter().map(String::from).collect()));
            }
            assert!(!reader.read(&mut capture, &mut tally).unwrap());
        }
        (rows, tally)
    }

    fn lists(rows: &[Option<Vec<Option<&str>>>]) -> ArrayRef {
        let mut lists = ListBuilder::new(StringBuilder::new());
        for row in rows {
            for link in row.iter().flatten() {
                lists.values().append_option(*link);
            }
            lists.append(row.is_some());
        }
        Arc::new(lists.finish())
    }

    fn row(url: &str, time: i64, links: &[&str]) -> Row {
        (url.to_owned(), time, links.iter().map(|&link| link.to_owned()).collect())
    }

    #[test]
    fn captures_of_every_type_of_column() {
        let urls = ["http://a/", "http://b/é", "http://a/"];
        let seconds = [1_209_588_506i64, 1_000_000_000, 4_102_444_800];
        let digits = ["20080430204826", "20010909014640", "21000101000000"];
        let url_columns: [ArrayRef; 4] = [
            Arc::new(StringArray::from_iter_values(urls)),
            Arc::new(LargeStringArray::from_iter_values(urls)),
            Arc::new(StringViewArray::from_iter_values(urls)),
            Arc::new(urls.into_iter().collect::<DictionaryArray<Int32Type>>()),
        ];
        let time_columns: [ArrayRef; 6] = [
            Arc::new(Int64Array::from_iter_values(seconds)),
            Arc::new(Int64Array::from_iter_values(seconds.map(|second| second * 1_000))),
            Arc::new(Int64Array::from_iter_values(digits.map(|digits| digits.parse::<i64>().unwrap()))),
            Arc::new(TimestampSecondArray::from_iter_values(seconds)),
            Arc::new(
                TimestampMicrosecondArray::from_iter_values(seconds.map(|second| second * 1_000_000))
                    .with_timezone("UTC"),
            ),
            Arc::new(StringArray::from_iter_values(digits)),
        ];
        let links = lists(&[Some(vec![Some("x"), Some(""), Some("http://ü/")]), Some(vec![]), Some(vec![Some("x")])]);
        let expected = [
            row(urls[0], seconds[0], &["x", "", "http://ü/"]),
            row(urls[1], seconds[1], &[]),
            row(urls[2], seconds[2], &["x"]),
        ];
        for url in &url_columns {
            for time in &time_columns {
                for (dictionary, rows_a_group) in [(true, 1000), (false, 2)] {
                    let columns =
                        vec![("n", time.clone()), ("links", links.clone()), ("url", url.clone()), ("ts", time.clone())];
                    let file = write(columns, dictionary, rows_a_group);
                    let (rows, tally) = read_all(file.path());
                    assert_eq!(rows, expected);
                    assert_eq!(tally, Tally::default());
                }
            }
        }
    }

    #[test]
    fn times_that_no_capture_can_have_are_damage() {
        let numbers = [0, -1, 961_524_179, 12_095_885_060, 1_401_010_000_000_000, i64::MIN, i64::MAX];
        let milliseconds =
            [-62_135_596_800_001, 253_402_300_800_000, i64::MIN, i64::MAX, -62_135_596_800_000, 0, 253_402_300_799_000];
        let unsigned = [u64::MAX, 0, 1 << 63, 7, 8, 9, 10];
        for (column, sound) in [
            (Arc::new(Int64Array::from_iter_values(numbers)) as ArrayRef, 0),
            (Arc::new(UInt64Array::from_iter_values(unsigned)), 0),
            (Arc::new(TimestampMillisecondArray::from_iter_values(milliseconds)), 3),
        ] {
            let urls: ArrayRef = Arc::new(StringArray::from_iter_values(["http://a/"; 7]));
            let links = lists(&vec![Some(vec![]); 7]);
            let file = write(vec![("url", urls), ("ts", column), ("links", links)], true, 1000);
            let (rows, tally) = read_all(file.path());
            assert_eq!((rows.len(), tally.damaged()), (sound, 7 - sound as u64), "{tally:?}");
        }
    }

    #[test]
    fn null_cells_are_counted_with_their_row() {
        let urls: ArrayRef = Arc::new(StringArray::from(vec![
            Some("http://a/"),
            None,
            Some("http://c/"),
            Some("http://d/"),
            Some("http://e/"),
        ]));
        let times: ArrayRef = Arc::new(StringArray::from(vec![
            Some("20080101"),
            Some("20080101"),
            None,
            Some("2008x"),
            Some("20080101"),
        ]));
        let links = lists(&[Some(vec![None, Some("x"), None]), Some(vec![]), Some(vec![]), Some(vec![]), None]);
        let file = write(vec![("url", urls), ("ts", times), ("links", links)], true, 2);
        let (rows, tally) = read_all(file.path());
        assert_eq!(rows, [row("http://a/", 1_199_145_600, &["x"]), row("http://e/", 1_199_145_600, &[])]);
        assert_eq!((tally.of(Finding::BadRow), tally.of(Finding::BadDate), tally.damaged()), (4, 1, 5));
        let offsets: Vec<u64> = tally.examples().iter().map(|example| example.offset).collect();
        assert_eq!(offsets, [3, 0, 0, 1, 2]);
    }

    #[test]
    fn web_graph_rows_become_captures() {
        let text = |texts: &[Option<&str>]| -> ArrayRef { Arc::new(StringArray::from(texts.to_vec())) };
        let digits = [20_080_430_204_826, 20_080_430_204_826, 20_080_501, 20_080_501, 20_080_501];
        let dates = text(&digits.map(|digits| digits.to_string()).each_ref().map(|digits| Some(digits.as_str())));
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(digits));
        let sources = text(&["http://a/", "http://a/", "http://a/", "http://b/", "http://b/"].map(Some));
        let links = text(&[Some("x"), Some("y"), Some("x"), None, Some("z")]);
        for (names, dates) in [(["crawl_date", "src", "dest"], dates), (["crawl_date", "source", "target"], numbers)] {
            let columns = [dates, sources.clone(), links.clone(), links.clone()];
            let file = write(names.into_iter().chain(["anchor"]).zip(columns).collect(), true, 1000);
            let (rows, tally) = read_all(file.path());
            let expected = [
                row("http://a/", 1_209_588_506, &["x", "y"]),
                row("http://a/", 1_209_600_000, &["x"]),
                row("http://b/", 1_209_600_000, &["z"]),
            ];
            assert_eq!(rows, expected);
            assert_eq!((tally.of(Finding::BadRow), tally.damaged()), (1, 1));
        }
    }

    #[test]
    fn other_tables_are_reported() {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
        for names in [["a", "b", "c"], ["url", "ts", "links"], ["crawl_date", "src", "dest"]] {
            let file = write(names.into_iter().map(|name| (name, numbers.clone())).collect(), true, 1000);
            let (rows, tally) = read_all(file.path());
            let is_other = names[0] == "a";
            let found = (tally.of(Finding::OtherFile), tally.of(Finding::BadRow));
            assert_eq!((rows.len(), found), (0, if is_other { (1, 0) } else { (0, 1) }), "{names:?}");
        }
    }

    #[test]
    fn broken_files_are_reported() {
        let urls: ArrayRef = Arc::new(StringArray::from_iter_values((0..5000).map(|n| format!("http://a/{n}"))));
        let times: ArrayRef = Arc::new(Int64Array::from_iter_values(0..5000));
        let links = lists(&vec![Some(vec![Some("x")]); 5000]);
        let file = write(vec![("url", urls), ("ts", times), ("links", links)], false, 100_000);
        let sound = std::fs::read(file.path()).unwrap();
        std::fs::write(file.path(), &sound[..sound.len() - 10]).unwrap();
        let (rows, tally) = read_all(file.path());
        assert_eq!((rows.len(), tally.of(Finding::BadHeader)), (0, 1));
        let mut bytes = sound.clone();
        bytes[4..40].fill(0xff);
        std::fs::write(file.path(), &bytes).unwrap();
        let (rows, tally) = read_all(file.path());
        assert_eq!((rows.len(), tally.of(Finding::BadRow)), (0, 1));
        assert!(matches!(open(Path::new("/nowhere"), 0, true, &DigestCell::default()), Err(Error::Io { .. })));
    }

    /// Items that are texts of another kind are no texts to the reader of dictionaries.
    #[test]
    fn links_marked_as_json_are_read_as_texts() {
        let schema = parse_message_type(
            "message captures { required binary url (UTF8); required int64 ts;
             required group links (LIST) { repeated group list { required binary item (JSON); } } }",
        );
        let file = tempfile::NamedTempFile::new().unwrap();
        let properties = Arc::new(WriterProperties::builder().set_dictionary_enabled(true).build());
        let schema = Arc::new(schema.unwrap());
        let mut writer = SerializedFileWriter::new(file.reopen().unwrap(), schema, properties).unwrap();
        let mut group = writer.next_row_group().unwrap();
        let text = |text: &str| ByteArray::from(text);
        let mut url = group.next_column().unwrap().unwrap();
        url.typed::<ByteArrayType>().write_batch(&[text("http://a/")], None, None).unwrap();
        url.close().unwrap();
        let mut ts = group.next_column().unwrap().unwrap();
        ts.typed::<Int64Type>().write_batch(&[1_209_588_506], None, None).unwrap();
        ts.close().unwrap();
        let mut links = group.next_column().unwrap().unwrap();
        let items = [text("http://b/"), text("http://b/")];
        links.typed::<ByteArrayType>().write_batch(&items, Some(&[1, 1]), Some(&[0, 1])).unwrap();
        links.close().unwrap();
        group.close().unwrap();
        writer.close().unwrap();
        let (rows, tally) = read_all(file.path());
        assert_eq!(rows, [row("http://a/", 1_209_588_506, &["http://b/", "http://b/"])]);
        assert_eq!(tally, Tally::default());
    }
}
