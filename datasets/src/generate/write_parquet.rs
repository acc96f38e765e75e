//! Writes a generated crawl as the capture table that `tables` reads: `url` text, `ts` seconds since 1970, `links` list
//! of texts. If captures may fail, the table also has `status`, which is null for 200.
//!
//! The columns use dictionaries and zstd. A row group has at most [`GROUP_CAPTURES_MAX`] captures, and at most about
//! [`GROUP_BYTES_MAX`] bytes of text.
//!
//! The file keeps the order of the captures. Memory: a compressed row group, and the text of a batch.

use super::Generator;
use super::write::next;
use crate::Capture;
use arrow_array::builder::{Int64Builder, ListBuilder, StringBuilder, UInt16Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::io::{self, Write};
use std::sync::Arc;

/// The most captures of a row group.
const GROUP_CAPTURES_MAX: u64 = 65_536;
/// The number of bytes of URLs and links at which a row group ends.
const GROUP_BYTES_MAX: usize = 128 << 20;
/// The number of bytes of URLs and links that are handed to the writer at once.
const BATCH_BYTES: usize = 2 << 20;
/// The most bytes of a dictionary: the URLs of a row group.
const DICTIONARY_BYTES_MAX: usize = 8 << 20;

/// Writes the rest of a crawl as Parquet, and returns the number of captures.
///
/// # Errors
/// Errors of `out`.
pub fn write_parquet(out: impl Write + Send, crawl: &mut Generator) -> io::Result<u64> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_dictionary_page_size_limit(DICTIONARY_BYTES_MAX)
        .build();
    let mut batch = CaptureColumns { has_statuses: crawl.has_failures(), ..CaptureColumns::default() };
    let mut writer = ArrowWriter::try_new(out, batch.schema(), Some(properties))?;
    let (mut capture, mut captures) = (Capture::default(), 0);
    let (mut group_captures, mut group_bytes) = (0, 0);
    while next(crawl, &mut capture)? {
        captures += 1;
        group_captures += 1;
        group_bytes += batch.push(&capture);
        let group_ends = group_captures == GROUP_CAPTURES_MAX || group_bytes >= GROUP_BYTES_MAX;
        if group_ends || batch.bytes >= BATCH_BYTES {
            writer.write(&batch.finish()?)?;
        }
        if group_ends {
            writer.flush()?;
            (group_captures, group_bytes) = (0, 0);
        }
    }
    writer.write(&batch.finish()?)?;
    writer.close()?;
    Ok(captures)
}

#[derive(Default)]
struct CaptureColumns {
    has_statuses: bool,
    statuses: UInt16Builder,
    urls: StringBuilder,
    times: Int64Builder,
    links: ListBuilder<StringBuilder>,
    bytes: usize,
}

impl CaptureColumns {
    fn schema(&self) -> Arc<Schema> {
        let links = DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true)));
        let status = self.has_statuses.then(|| Field::new("status", DataType::UInt16, true));
        let always = [
            Field::new("url", DataType::Utf8, false),
            Field::new("ts", DataType::Int64, false),
            Field::new("links", links, false),
        ];
        Arc::new(Schema::new(always.into_iter().chain(status).collect::<Vec<_>>()))
    }

    /// Adds a capture, and returns the number of bytes of its texts.
    fn push(&mut self, capture: &Capture) -> usize {
        self.urls.append_value(&capture.url);
        self.times.append_value(capture.time);
        let mut bytes = capture.url.len();
        for link in capture.links.iter() {
            self.links.values().append_value(link);
            bytes += link.len();
        }
        self.links.append(true);
        self.statuses.append_option(capture.status);
        self.bytes += bytes;
        bytes
    }

    /// Takes all captures out of the batch.
    fn finish(&mut self) -> io::Result<RecordBatch> {
        self.bytes = 0;
        let mut columns: Vec<ArrayRef> =
            vec![Arc::new(self.urls.finish()), Arc::new(self.times.finish()), Arc::new(self.links.finish())];
        let statuses = self.statuses.finish();
        if self.has_statuses {
            columns.push(Arc::new(statuses));
        }
        RecordBatch::try_new(self.schema(), columns).map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::Profile;
    use crate::{CaptureReader, GenerateOptions, LinkKinds, Tally, inputs, open};

    #[test]
    fn parquet_reads_back_the_same() {
        let options = GenerateOptions { profile: Profile::Irregular, occurrences: 30_000, ..Default::default() };
        let file = tempfile::Builder::new().suffix(".parquet").tempfile().unwrap();
        let captures = write_parquet(file.reopen().unwrap(), &mut Generator::new(options)).unwrap();
        let (mut crawl, mut tally, mut read) = (Generator::new(options), Tally::default(), 0);
        let (mut capture, mut expected) = (Capture::default(), Capture::default());
        for input in inputs(&[file.path().to_owned()]).unwrap() {
            let mut reader = open(&input, LinkKinds::default()).unwrap();
            while reader.read(&mut capture, &mut tally).unwrap() {
                assert!(crawl.read(&mut expected, &mut tally).unwrap());
                assert_eq!(capture, expected);
                read += 1;
            }
        }
        assert!(captures > 500 && read == captures && !crawl.read(&mut expected, &mut tally).unwrap());
        assert_eq!(tally, Tally::default());
    }

    #[test]
    fn row_groups_are_bounded() {
        let options = GenerateOptions { occurrences: 3_000_000, ..Default::default() };
        let file = tempfile::Builder::new().suffix(".parquet").tempfile().unwrap();
        let captures = write_parquet(file.reopen().unwrap(), &mut Generator::new(options)).unwrap();
        let groups = inputs(&[file.path().to_owned()]).unwrap();
        assert_eq!(groups.len() as u64, captures.div_ceil(GROUP_CAPTURES_MAX));
        assert!(groups.iter().all(|group| group.bytes < 8 << 20), "{groups:?}");
    }
}
