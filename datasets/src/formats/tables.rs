//! Parquet tables: captures with lists of links, and the web graphs of the Archives Unleashed Toolkit and of ARCH.
//!
//! | columns | one row is | file |
//! |---|---|---|
//! | `url`, `ts`, and some of the optional columns below | a capture | `captures` |
//! | `crawl_date`, `src`, `dest` | a link; consecutive rows of one source and date are one capture | `webgraph` |
//! | `crawl_date`, `source`, `target` | the same | `webgraph` |
//! | `s`, `t` | a link between two hosts, in a table with one time for all | `host_links` |
//! | `surt_host_name`, `fetch_200` and others | a host in a crawl, with its fetches by result | `host_index` |
//!
//! The optional columns of a capture mean what the fields of JSON lines mean ([`crate::formats::jsonl`]): `links` (list
//! of strings), `status` (integer), `digest`, `redirect`, `method` (strings), `cut` (string or boolean), `revisit`
//! (struct of `profile`, `refers_to_target_uri`, both strings, and `refers_to_date`).
//!
//! The reader reads only these columns, never others such as `anchor`. Some writers store an Arrow schema in the file.
//! The reader ignores the Arrow schema, so dictionary, large and view types are plain strings and lists. The library
//! `parquet` reads the footer. The columns are read here, value by value (`pages`, `numbers`, `column`), because the
//! library holds whole pages, whole rows, and a long text once for each time that it occurs.
//!
//! Dates are timestamps of any unit, integers of 10 digits (seconds since 1970), 13 (milliseconds) or 14
//! (`YYYYMMDDhhmmss`), or texts as in [`crate::capture::date`]. Crawl dates have 8 or 14 digits, as text or integer.
//! Null cells are damage: a row without URL or date is left out, and so is a link that is null. In an optional column,
//! null means that the row does not have the value.
//!
//! Unit of work: one row group. Memory: some buffers and a dictionary for each column, whatever the sizes of pages,
//! rows and texts; and the footer. Offsets of damage are row numbers in the file, from 0.

mod captures;
mod cells;
mod column;
mod host_index;
mod host_links;
mod numbers;
mod pages;
mod snappy;
mod webgraph;

use self::column::Column;
use self::pages::Chunk;
use crate::files::hashed::{DigestCell, digest_of};
use crate::files::source::Source;
use crate::formats::cc_graph;
use crate::{Capture, CaptureReader, Error, Finding, ReadOptions, Tally};
use arrow_schema::Field;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::errors::ParquetError;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use webstrata_remote::{again, is_failure};

/// The number of bytes of each row group. An invalid Parquet file counts as one row group, so that [`open`] reports the
/// file.
pub(crate) fn row_groups(path: &Path, source: &Source) -> Result<Vec<u64>, Error> {
    let Ok(metadata) = metadata(path, source)? else { return Ok(vec![source.bytes()]) };
    let groups = metadata.metadata().row_groups();
    Ok(groups.iter().map(|group| u64::try_from(group.compressed_size()).unwrap_or(0)).collect())
}

/// Whether a file has links between hosts.
pub(crate) fn has_host_links(path: &Path, source: &Source) -> Result<bool, Error> {
    let Ok(metadata) = metadata(path, source)? else { return Ok(false) };
    let has = |name: &str| metadata.schema().fields().iter().any(|field| field.name().trim() == name);
    Ok(HOST_LINKS.into_iter().all(has))
}

/// The columns of links between hosts.
const HOST_LINKS: [&str; 2] = ["s", "t"];

/// Opens one row group. `digest` gets the digest of the bytes from its first column to its last, unless the file is on
/// another machine: only the columns that are read come over the network. `time` is that of links between hosts, if the
/// inputs are a web graph.
pub(crate) fn open(
    path: &Path,
    source: &Source,
    row_group: usize,
    options: ReadOptions,
    time: Option<i64>,
    digest: &DigestCell,
) -> Result<Box<dyn CaptureReader>, Error> {
    let broken = |finding, detail| -> Result<Box<dyn CaptureReader>, Error> {
        Ok(Box::new(Broken { path: path.to_owned(), report: Some((finding, detail)) }))
    };
    let metadata = match metadata(path, source)? {
        Ok(metadata) => metadata,
        Err(error) => return broken(Finding::BadHeader, format!("Parquet footer: {error}")),
    };
    let fields = metadata.schema().fields().clone();
    let index_of = |name: &str| fields.iter().position(|field| field.name().trim() == name);
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
    let rows = |rows: i64| u64::try_from(rows).unwrap_or(0);
    let row = groups[..row_group].iter().map(|group| rows(group.num_rows())).sum();
    let row_end = row + rows(group.num_rows());
    let columns = Columns {
        metadata: metadata.clone(),
        row_group,
        path: path.to_owned(),
        source: source.clone(),
        row,
        row_end,
        ended: false,
    };
    let (opened, roots): (Result<Box<dyn CaptureReader>, Columns>, Vec<usize>) = match (
        [index_of("url"), index_of("ts")],
        [index_of("src").or(index_of("source")), index_of("crawl_date"), index_of("dest").or(index_of("target"))],
        (HOST_LINKS.map(index_of), time),
    ) {
        ([Some(url), Some(time)], ..) => {
            let optional = captures::OPTIONAL.map(index_of);
            let opened = captures::Captures::new(columns, [url, time], optional, options.kinds.redirects);
            let roots = [url, time].into_iter().chain(optional.into_iter().flatten());
            (opened.map(|own| Box::new(own) as Box<dyn CaptureReader>), roots.collect())
        }
        (_, [Some(source), Some(date), Some(target)], _) => {
            let roots = [source, date, target];
            let opened = webgraph::Webgraph::new(columns, roots);
            (opened.map(|own| Box::new(own) as Box<dyn CaptureReader>), roots.to_vec())
        }
        (_, _, ([Some(source), Some(target)], Some(time))) => {
            let roots = [source, target];
            let opened = host_links::HostLinks::new(columns, roots, time, options.www);
            (opened.map(|own| Box::new(own) as Box<dyn CaptureReader>), roots.to_vec())
        }
        _ if let Some(host) = index_of(host_index::HOST)
            && index_of(host_index::FETCHES[0].0).is_some() =>
        {
            let crawl = index_of("crawl");
            let fetches = host_index::FETCHES.iter().filter_map(|&(name, status)| Some((index_of(name)?, status)));
            let fetches: Vec<(usize, i64)> = fetches.collect();
            let opened = host_index::HostIndex::new(columns, host, crawl, &fetches, options.www);
            let roots = [host].into_iter().chain(crawl).chain(fetches.into_iter().map(|(root, _)| root)).collect();
            (opened.map(|own| Box::new(own) as Box<dyn CaptureReader>), roots)
        }
        // Each row group is an input, and the file is reported once.
        _ if row_group > 0 => return Ok(Box::new(Broken { path: path.to_owned(), report: None })),
        (_, _, ([Some(_), Some(_)], None)) => {
            return broken(Finding::UnreadFile, cc_graph::NEEDS_OPTIONS.to_owned());
        }
        _ if index_of("url_surtkey").is_some() => {
            return broken(Finding::IndexFile, "columnar index of Common Crawl".to_owned());
        }
        _ => {
            let names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
            return broken(Finding::OtherFile, format!("a table with the columns {}", names.join(", ")));
        }
    };
    if let Source::File { .. } = source {
        match digest_of(source, first..end.max(first)) {
            Ok(of_group) => _ = digest.get_or_init(|| of_group),
            Err(source) if is_failure(&source) => return Err(Error::io(path, source)),
            // A file that ends too early is reported when the group is read.
            Err(_) => {}
        }
    }
    opened.or_else(|_| {
        let types = roots.iter().map(|&root| format!("{} {}", fields[root].name(), fields[root].data_type()));
        let types = types.collect::<Vec<_>>().join(", ");
        broken(Finding::BadRow, format!("the columns have types that are not read: {types}"))
    })
}

/// The footer of a file that was read: path, length and version of the file, and the footer.
type Read = (PathBuf, u64, String, ArrowReaderMetadata);

/// The number of footers that are kept.
const FOOTERS_KEPT: usize = 4;

/// Reads the footer of a file; the inner error says why the footer is invalid. Each row group of a file is an input, so
/// the footers that were read last are kept.
///
/// # Errors
/// Failures to read, which are not damage.
fn metadata(path: &Path, source: &Source) -> Result<Result<ArrowReaderMetadata, ParquetError>, Error> {
    static LAST: Mutex<Vec<Read>> = Mutex::new(Vec::new());
    let (bytes, version) = (source.bytes(), source.version());
    let is_it = |read: &Read| read.0 == path && read.1 == bytes && read.2 == version && !version.is_empty();
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(at) = last.iter().position(is_it) {
        let read = last.remove(at);
        last.push(read.clone());
        return Ok(Ok(read.3));
    }
    let metadata = match ArrowReaderMetadata::load(source, ArrowReaderOptions::new().with_skip_arrow_metadata(true)) {
        Ok(metadata) => metadata,
        Err(flaw) => return failure(&flaw).map_or(Ok(Err(flaw)), |source| Err(Error::io(path, source))),
    };
    if last.len() == FOOTERS_KEPT {
        last.remove(0);
    }
    last.push((path.to_owned(), bytes, version.to_owned(), metadata.clone()));
    Ok(Ok(metadata))
}

/// The failure to read that caused an error of the Parquet library, if there is one.
fn failure(flaw: &ParquetError) -> Option<io::Error> {
    let ParquetError::External(inner) = flaw else { return None };
    again(inner.downcast_ref::<io::Error>()?)
}

/// A row group and the position of its reader.
struct Columns {
    metadata: ArrowReaderMetadata,
    row_group: usize,
    path: PathBuf,
    source: Source,
    /// The row number in the file of the next row.
    row: u64,
    row_end: u64,
    /// Whether the rest of the row group cannot be read.
    ended: bool,
}

impl Columns {
    fn field(&self, root: usize) -> &Field {
        &self.metadata.schema().fields()[root]
    }

    /// Opens the column of a root, or the column of one of its fields. Returns `None` if there is not exactly one such
    /// column.
    fn leaf(&self, root: usize, field: Option<&str>) -> Option<Column> {
        let schema = self.metadata.parquet_schema();
        let mut leaves = (0..schema.num_columns()).filter(|&leaf| {
            let column = schema.column(leaf);
            let parts = column.path().parts();
            let is_field = field.is_none_or(|field| parts.len() == 2 && parts[1].trim() == field);
            schema.get_column_root_idx(leaf) == root && is_field
        });
        let leaf = leaves.next().filter(|_| leaves.next().is_none())?;
        let column = schema.column(leaf);
        let chunk = self.metadata.metadata().row_group(self.row_group).column(leaf);
        let (start, bytes) = chunk.byte_range();
        let source = self.source.clone();
        let (max_repetition, max_definition) = (column.max_rep_level(), column.max_def_level());
        let compression = chunk.compression();
        let chunk = Chunk { source, start, bytes, compression, max_repetition, max_definition };
        Some(Column::new(chunk, column.physical_type())).filter(|_| max_repetition <= 1)
    }

    /// Moves to the next row, if there is one.
    fn begin_row(&mut self) -> bool {
        let is_there = !self.ended && self.row < self.row_end;
        self.row += u64::from(is_there);
        is_there
    }

    /// Counts damage of the row at hand.
    fn damage(&self, finding: Finding, detail: String, tally: &mut Tally) {
        tally.damage(finding, &self.path, self.row - 1, detail);
    }

    /// Counts the rest of the row group, from the row at hand on, as damage.
    ///
    /// # Errors
    /// Failures to read, which are not damage.
    fn give_up(&mut self, error: &io::Error, tally: &mut Tally) -> Result<(), Error> {
        if let Some(failure) = again(error) {
            return Err(Error::io(&self.path, failure));
        }
        let (row, last) = (self.row - 1, self.row_end);
        self.damage(Finding::BadRow, format!("rows {row} to {last} cannot be decoded: {error}"), tally);
        self.ended = true;
        Ok(())
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
            // Damage in the footer, or a file of another kind.
            tally.damage(finding, &self.path, 0, detail);
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LinkKinds;
    use arrow_array::builder::{ListBuilder, StringBuilder};
    use arrow_array::types::Int32Type;
    use arrow_array::{
        ArrayRef, DictionaryArray, Int64Array, LargeStringArray, RecordBatch, StringArray, StringViewArray,
        TimestampMicrosecondArray, TimestampMillisecondArray, TimestampSecondArray, UInt64Array,
    };
    use parquet::arrow::ArrowWriter;
    use parquet::basic::{Compression, Encoding, ZstdLevel};
    use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
    use parquet::file::properties::{WriterProperties, WriterVersion};
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;
    use parquet::schema::types::ColumnPath;
    use std::fs::File;
    use std::sync::Arc;

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
        let options = LinkKinds { redirects: true, ..LinkKinds::default() }.into();
        let source = Source::of_file(File::open(path).unwrap()).unwrap();
        for group in 0..row_groups(path, &source).unwrap().len() {
            let mut reader = open(path, &source, group, options, None, &DigestCell::default()).unwrap();
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
    }

    /// The reader of dictionaries does not treat items with another text type as texts.
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

    /// Writes tables of random captures in every encoding, compression and version, and reads them back.
    #[test]
    fn every_encoding_is_read_back() {
        let mut random = fastrand::Rng::with_seed(3);
        let text = |random: &mut fastrand::Rng| "é".repeat(random.usize(..40)) + &random.u32(..900).to_string();
        for round in 0..60 {
            let count = 1 + random.usize(..3000);
            let urls: Vec<String> = (0..count).map(|_| text(&mut random)).collect();
            let times: Vec<i64> = (0..count).map(|_| 1_209_588_506 + random.i64(0..100_000_000)).collect();
            let links: Vec<Vec<String>> = (0..count)
                .map(|_| {
                    let links = if random.usize(..400) == 0 { 3000 } else { random.usize(..6) };
                    (0..links).map(|_| text(&mut random)).collect()
                })
                .collect();
            let rows: Vec<Option<Vec<Option<&str>>>> =
                links.iter().map(|links| Some(links.iter().map(|link| Some(link.as_str())).collect())).collect();
            let columns: Vec<(&str, ArrayRef)> = vec![
                ("url", Arc::new(StringArray::from_iter_values(&urls))),
                ("ts", Arc::new(Int64Array::from_iter_values(times.iter().copied()))),
                ("links", lists(&rows)),
            ];
            let batch = RecordBatch::try_from_iter_with_nullable(
                columns.into_iter().map(|(name, column)| (name, column, random.bool())),
            );
            let batch = batch.unwrap();
            let compressions =
                [Compression::UNCOMPRESSED, Compression::SNAPPY, Compression::ZSTD(ZstdLevel::default())];
            let texts = [Encoding::PLAIN, Encoding::DELTA_LENGTH_BYTE_ARRAY, Encoding::DELTA_BYTE_ARRAY];
            let (links_path, dictionary) = (ColumnPath::from("links.list.item"), random.bool());
            let properties = WriterProperties::builder()
                .set_writer_version([WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0][random.usize(..2)])
                .set_compression(compressions[random.usize(..3)])
                .set_dictionary_enabled(dictionary)
                // Pages become plain when the dictionary is full.
                .set_dictionary_page_size_limit([1 << 20, 2000][random.usize(..2)])
                .set_data_page_size_limit([1 << 20, 500][random.usize(..2)])
                .set_write_batch_size([1024, 7][random.usize(..2)])
                .set_max_row_group_row_count(Some([1 << 20, 700][random.usize(..2)]))
                .set_column_encoding("url".into(), texts[random.usize(..3)])
                .set_column_encoding("ts".into(), [Encoding::PLAIN, Encoding::DELTA_BINARY_PACKED][random.usize(..2)])
                .set_column_encoding(links_path, texts[random.usize(..3)])
                .build();
            let shape = format!("{properties:?}");
            let file = tempfile::NamedTempFile::new().unwrap();
            let mut writer = ArrowWriter::try_new(file.reopen().unwrap(), batch.schema(), Some(properties)).unwrap();
            writer.write(&batch).unwrap();
            writer.close().unwrap();
            let (read, tally) = read_all(file.path());
            assert_eq!(tally, Tally::default(), "round {round}: {shape}");
            assert_eq!(read.len(), count, "round {round}");
            for (number, row) in read.into_iter().enumerate() {
                let expected = (urls[number].clone(), times[number], links[number].clone());
                assert_eq!(row, expected, "round {round}, row {number}");
            }
        }
    }
}
