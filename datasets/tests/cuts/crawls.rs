//! Writes small crawls for the tests of cut captures and of methods: the same exchanges in every format.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::{WriterProperties, WriterVersion};
use serde_json::json;
use webstrata_datasets::{Capture, Content, Cut, LinkKinds, Tally};

use crate::reading::read_all;
use crate::zips;

/// The time of the first capture: 2020-01-01. Each further capture is a day later.
pub(crate) const START: i64 = 1_577_836_800;

/// A page with links of random names, so that compressed pages have their links all along.
pub(crate) fn page(links: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(links as u64);
    let link = |_| format!("<p><a href=\"/{:016x}\">x</a></p>\n", random.u64(..));
    format!("<html><body>\n{}</body></html>\n", (0..links).map(link).collect::<String>()).into_bytes()
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

pub(crate) fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    zlib.write_all(bytes).unwrap();
    zlib.finish().unwrap()
}

pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

/// Brotli with one stored block (RFC 7932, 9.1 and 9.2) and an empty last block.
pub(crate) fn brotli(bytes: &[u8]) -> Vec<u8> {
    // WBITS 16, not the last, four nibbles of length, the length less 1, uncompressed.
    let head = (u32::try_from(bytes.len()).unwrap() - 1) << 4 | 1 << 20;
    [&head.to_le_bytes()[..3], bytes, &[3]].concat()
}

pub(crate) fn chunked(bytes: &[u8]) -> Vec<u8> {
    let chunk = |part: &[u8]| [format!("{:X}\r\n", part.len()).as_bytes(), part, b"\r\n"].concat();
    [bytes.chunks(100).flat_map(chunk).collect::<Vec<u8>>(), b"0\r\n\r\n".to_vec()].concat()
}

/// An HTTP response.
pub(crate) fn http(status: u16, fields: &[&str], body: &[u8]) -> Vec<u8> {
    let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
    [format!("HTTP/1.1 {status} OK\r\nContent-Type: text/html\r\n{fields}\r\n").as_bytes(), body].concat()
}

/// A WARC record. `more` are further fields. The length is that of the block unless `more` has one.
pub(crate) fn record(kind: &str, url: &str, day: i64, more: &[&str], block: &[u8]) -> Vec<u8> {
    let mut fields = vec![
        format!("WARC-Type: {kind}"),
        format!("WARC-Target-URI: {url}"),
        format!("WARC-Date: 2020-01-{:02}T00:00:00Z", day + 1),
        format!("Content-Type: application/http; msgtype={kind}"),
    ];
    if !more.iter().any(|field| field.starts_with("Content-Length")) {
        fields.push(format!("Content-Length: {}", block.len()));
    }
    fields.extend(more.iter().map(|&field| field.to_owned()));
    [format!("WARC/1.0\r\n{}\r\n\r\n", fields.join("\r\n")).as_bytes(), block, b"\r\n\r\n"].concat()
}

pub(crate) fn request(url: &str, day: i64, more: &[&str], method: &str) -> Vec<u8> {
    record("request", url, day, more, format!("{method} / HTTP/1.1\r\nHost: a.example\r\n\r\n").as_bytes())
}

/// A directory for the files of a test.
pub(crate) struct Files(tempfile::TempDir);

impl Files {
    pub(crate) fn new() -> Files {
        Files(tempfile::tempdir().unwrap())
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    /// The captures and the tally of a file with these bytes.
    pub(crate) fn read(&self, name: &str, bytes: &[u8]) -> (Vec<Capture>, Tally) {
        read_all(&self.write(name, bytes), LinkKinds::default())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// Records as WARC files of every kind.
pub(crate) fn containers(records: &[Vec<u8>]) -> Vec<(&'static str, Vec<u8>)> {
    let all = records.concat();
    let members = records.iter().flat_map(|record| gzip(record)).collect::<Vec<u8>>();
    let frames = records.iter().flat_map(|record| zstd(record)).collect();
    let wacz = [zips::stored("archive/a.warc.gz", &members), zips::deflated("archive/b.txt", b"no crawl file")];
    vec![
        ("a.warc.gz", members.clone()),
        ("whole.warc.gz", gzip(&all)),
        ("a.warc.zst", frames),
        ("a.wacz", zips::zip(&wacz)),
        ("deflated.wacz", zips::zip(&[zips::deflated("archive/a.warc", &all)])),
        ("a.warc", all),
    ]
}

/// A capture as a JSON line.
pub(crate) fn json_line(capture: &Capture, method: Option<&str>) -> String {
    let links: Vec<&str> = capture.links.iter().collect();
    let mut line = json!({"url": capture.url, "ts": capture.time, "status": capture.status, "links": links});
    if let Some(cut) = capture.cut {
        line["cut"] = cut.name().into();
    }
    if let Some(method) = method {
        line["method"] = method.into();
    }
    format!("{line}\n")
}

/// The form of the column `cut` of a table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CutColumn {
    Names,
    Flags,
    None,
}

/// Writes captures as a table, with some settings of the writer.
pub(crate) fn write_table(
    path: &Path,
    captures: &[Capture],
    methods: &[Option<&str>],
    cuts: CutColumn,
    is_plain: bool,
) {
    let mut links = ListBuilder::new(StringBuilder::new());
    for capture in captures {
        capture.links.iter().for_each(|link| links.values().append_value(link));
        links.append(true);
    }
    let texts = |texts: Vec<Option<&str>>| Arc::new(StringArray::from(texts)) as ArrayRef;
    let mut columns = vec![
        ("url", texts(captures.iter().map(|capture| Some(&*capture.url)).collect())),
        ("ts", Arc::new(Int64Array::from_iter_values(captures.iter().map(|capture| capture.time))) as ArrayRef),
        ("links", Arc::new(links.finish())),
        ("status", Arc::new(Int64Array::from_iter(captures.iter().map(|capture| capture.status.map(i64::from))))),
    ];
    match cuts {
        CutColumn::Names => {
            columns.push(("cut", texts(captures.iter().map(|capture| capture.cut.map(Cut::name)).collect())));
        }
        CutColumn::Flags => {
            // A capture that is whole says so by false or by null.
            let flag = |(index, capture): (usize, &Capture)| {
                (capture.cut.is_some() || index % 2 == 0).then_some(capture.cut.is_some())
            };
            let flags: BooleanArray = captures.iter().enumerate().map(flag).collect();
            columns.push(("cut", Arc::new(flags)));
        }
        CutColumn::None => {}
    }
    if !methods.is_empty() {
        columns.push(("method", texts(methods.to_vec())));
    }
    let columns = columns.into_iter().map(|(name, column)| (name, column, true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let version = if is_plain { WriterVersion::PARQUET_1_0 } else { WriterVersion::PARQUET_2_0 };
    let properties = WriterProperties::builder()
        .set_writer_version(version)
        .set_dictionary_enabled(!is_plain)
        .set_data_page_row_count_limit(3)
        .set_write_batch_size(3);
    let file = fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties.build())).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// The part of a capture that all formats have, as a text.
pub(crate) fn shown(capture: &Capture) -> String {
    let content = match &capture.content {
        Content::Links => format!("{:?}", capture.links.iter().collect::<Vec<_>>()),
        Content::Unknown => "unknown".to_owned(),
        Content::Revisit(_) => "revisit".to_owned(),
    };
    let cut = capture.cut.map_or("whole", Cut::name);
    format!("{} {} {:?} {cut} {content}", capture.url, capture.time, capture.status)
}

pub(crate) fn all_shown(captures: &[Capture]) -> Vec<String> {
    captures.iter().map(shown).collect()
}
