//! Bytes of URLs that are not UTF-8, in every format that has bytes: each byte stays what it is, so that two URLs stay
//! two. The same pages with escaped URLs give the same fingerprints.

#[cfg(test)]
mod reading;

use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, ListBuilder};
use arrow_array::{ArrayRef, BinaryArray, Int64Array, RecordBatch};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use reading::read_all;
use webstrata_datasets::{Capture, Content, LinkKinds};
use webstrata_url::canonical;

const ALL: LinkKinds = LinkKinds { anchors: true, redirects: true, embeds: false, outlinks: true, via: true };

/// The URLs and the links of all captures of a file, canonical, and in order. Nothing may be damaged.
#[cfg(test)]
fn read(name: &str, bytes: &[u8]) -> Vec<(String, Vec<String>)> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    pages(&path)
}

#[cfg(test)]
fn pages(path: &Path) -> Vec<(String, Vec<String>)> {
    let (captures, tally) = read_all(path, ALL);
    assert_eq!((tally.damaged(), tally.files().len()), (0, 0), "{}: {:?}", path.display(), tally.examples());
    let mut pages: Vec<_> = captures.iter().map(page).collect();
    pages.sort();
    pages
}

#[cfg(test)]
fn page(capture: &Capture) -> (String, Vec<String>) {
    let url = canonical(None, &capture.url).unwrap();
    let base = url.parse().unwrap();
    let links = capture.links.iter().map(|link| canonical(Some(&base), link).unwrap());
    let referred = match &capture.content {
        Content::Revisit(revisit) => revisit.url.as_deref().map(|url| canonical(None, url).unwrap()),
        _ => None,
    };
    (url, links.chain(referred).collect())
}

#[cfg(test)]
fn expected(pages: &[(&str, &[&str])]) -> Vec<(String, Vec<String>)> {
    let url = |path: &&str| format!("http://a.example/{path}");
    pages.iter().map(|(page, links)| (url(page), links.iter().map(url).collect())).collect()
}

/// The bytes of a text in Latin-1.
#[cfg(test)]
fn latin1(text: &str) -> Vec<u8> {
    text.chars().map(|letter| u8::try_from(u32::from(letter)).unwrap()).collect()
}

#[cfg(test)]
fn warc(kind: &str, url: &str, fields: &str, block: &str) -> String {
    format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\nWARC-Date: 2020-01-01T00:00:00Z\r\n{fields}\
         Content-Length: {}\r\n\r\n{block}\r\n\r\n",
        block.chars().count()
    )
}

#[test]
fn warc_and_arc() {
    let html = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n";
    let records = [
        warc("response", "http://a.example/\u{e9}", "", &format!("{html}\r\n<a href=/1>")),
        warc("response", "<http://a.example/\u{e8}?\u{e8}>", "", &format!("{html}Refresh: 0;url=/\u{ff}\r\n\r\n<p>")),
        warc("response", "http://a.example/x\u{e9}", "", "HTTP/1.1 301 x\r\nLocation: /to/\u{e9}\r\n\r\n"),
        warc("revisit", "http://a.example/y", "WARC-Refers-To-Target-URI: http://a.example/\u{e8}\r\n", ""),
        warc("metadata", "http://a.example/z", "", "outlink: http://a.example/\u{e8} L a/@href\r\n"),
    ];
    let all: &[(&str, &[&str])] =
        &[("%E8?%E8", &["%FF"]), ("%E9", &["1"]), ("x%E9", &["to/%E9"]), ("y", &["%E8"]), ("z", &["%E8"])];
    assert_eq!(read("a.warc", &latin1(&records.concat())), expected(all));
    let arc = |path: &str, block: &str| {
        format!("http://a.example/{path} 1.2.3.4 20200101000000 text/html {}\n{block}\n", block.chars().count())
    };
    let page = format!("{html}\r\n<a href=/1>");
    let records = [arc("\u{e9} b", &page), arc("\u{e8}", &page)].concat();
    assert_eq!(read("a.arc", &latin1(&records)), expected(&[("%E8", &["1"]), ("%E9%20b", &["1"])]));
}

#[test]
fn indexes_and_logs() {
    let pages = expected(&[("%E8", &[]), ("%E9", &[])]);
    let line =
        |byte: char| format!("a)/{byte} 20200101000000 http://a.example/{byte} text/html 200 - - - 1 1 f.warc\n");
    let lines = [line('\u{e8}'), line('\u{e9}')].concat();
    assert_eq!(read("a.cdx", &latin1(&lines)), pages);
    assert_eq!(read("a.cdx", &latin1(&format!(" CDX N b a m s k r M S V g\n{lines}"))), pages);
    let line = |byte: char| format!("a)/{byte} 20200101000000 {{\"url\":\"http://a.example/{byte}\"}}\n");
    assert_eq!(read("a.cdxj", &latin1(&[line('\u{e8}'), line('\u{e9}')].concat())), pages);
    let redirect = "a)/ 20200101000000 http://a.example/\u{e9} - 301 - /\u{e8} - 1 1 f.warc\n";
    assert_eq!(read("a.cdx", &latin1(redirect)), expected(&[("%E9", &["%E8"])]));
    let log = |path: char, via: &str| {
        format!(
            "2020-01-01T00:00:00.000Z 200 1 http://a.example/{path} L {via} text/html #1 20200101000000000+1 - - - -\n"
        )
    };
    let log = [log('\u{e9}', "-"), log('\u{e8}', "http://a.example/\u{e9}")].concat();
    assert_eq!(read("crawl.log", &latin1(&log)), expected(&[("%E8", &[]), ("%E9", &[]), ("%E9", &["%E8"])]));
}

#[test]
fn texts_of_links() {
    let all = expected(&[("%E8", &["%FF", "\u{fffd}"]), ("%E9", &["1"])]);
    let all: Vec<_> = all
        .iter()
        .map(|(url, links)| (url.clone(), links.iter().map(|link| canonical(None, link).unwrap()).collect()))
        .collect();
    let utf8 = b"\xef\xbf\xbd";
    let of = |form: &[u8]| {
        // U+FFFD that the file itself has stays U+FFFD.
        let mut bytes = Vec::new();
        for &byte in form {
            if byte == b'@' { bytes.extend_from_slice(utf8) } else { bytes.push(byte) }
        }
        bytes
    };
    let jsonl = b"{\"url\":\"http://a.example/\xe9\",\"ts\":\"2020\",\"links\":[\"/1\"]}\n\
                  {\"url\":\"http://a.example/\xe8\",\"ts\":\"2020\",\"links\":[\"/\xff\",\"/@\"]}\n";
    assert_eq!(read("a.jsonl", &of(jsonl)), all);
    let links = b"http://a.example/\xe9 2020 /1\nhttp://a.example/\xe8 2020\n\t/\xff\n\t/@\n";
    assert_eq!(read("a.links", &of(links)), all);
    for delimiter in [",", "\t"] {
        let rows = b"crawl_date,src,dest\n20200101,http://a.example/\xe9,/1\n20200101,http://a.example/\xe8,/\xff\n\
                     20200101,http://a.example/\xe8,/@\n";
        let rows: Vec<u8> =
            rows.iter().map(|&byte| if byte == b',' { delimiter.as_bytes()[0] } else { byte }).collect();
        assert_eq!(read("a.csv", &of(&rows)), all);
    }
    let dir = tempfile::tempdir().unwrap();
    let map = b"{\"id\":1,\"url\":\"http://a.example/\xe9\"}\n{\"id\":2,\"url\":\"http://a.example/\xe8\"}\n\
                {\"id\":3,\"url\":\"http://a.example/1\"}\n{\"id\":4,\"url\":\"http://a.example/\xff\"}\n\
                {\"id\":5,\"url\":\"http://a.example/@\"}\n";
    let graph = "{\"id\":1,\"timestamp\":\"2020\",\"outlink_ids\":[3]}\n\
                 {\"id\":2,\"timestamp\":\"2020\",\"outlink_ids\":[4,5]}\n";
    std::fs::write(dir.path().join("id.map"), of(map)).unwrap();
    std::fs::write(dir.path().join("id.graph"), graph).unwrap();
    assert_eq!(pages(&dir.path().join("id.graph")), all);
    let wat = |byte: char, links: &str| {
        let json = format!(
            "{{\"Envelope\":{{\"WARC-Header-Metadata\":{{\"WARC-Type\":\"response\",\
             \"WARC-Date\":\"2020-01-01T00:00:00Z\",\
             \"WARC-Target-URI\":\"http://a.example/{byte}\"}},\"Payload-Metadata\":{{\"HTTP-Response-Metadata\":\
             {{\"Response-Message\":{{\"Status\":\"200\"}},\"Headers\":{{\"Content-Type\":\"text/html\"}},\
             \"HTML-Metadata\":{{\"Links\":[{links}]}}}}}}}}}}"
        );
        warc("metadata", "http://a.example/", "Content-Type: application/json\r\n", &json)
    };
    let link = |path: &str| format!("{{\"path\":\"A@/href\",\"url\":\"{path}\"}}");
    let records =
        [wat('\u{e9}', &link("/1")), wat('\u{e8}', &[link("/\u{ff}"), link("/%EF%BF%BD")].join(","))].concat();
    assert_eq!(read("a.warc.wat", &latin1(&records)), all);
}

#[test]
fn tables() {
    let all = expected(&[("%E8", &["%E9", "%FF"]), ("%E9", &["%E9"])]);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    let urls = BinaryArray::from(vec![&b"http://a.example/\xe9"[..], b"http://a.example/\xe8"]);
    let mut links = ListBuilder::new(BinaryBuilder::new());
    links.append_value([Some(b"/\xe9")]);
    links.append_value([Some(b"/\xe9"), Some(b"/\xff")]);
    let columns: [(&str, ArrayRef); 3] = [
        ("url", Arc::new(urls)),
        ("ts", Arc::new(Int64Array::from(vec![1_577_836_800; 2]))),
        ("links", Arc::new(links.finish())),
    ];
    for dictionary in [false, true] {
        let batch = RecordBatch::try_from_iter(columns.clone()).unwrap();
        let properties = WriterProperties::builder().set_dictionary_enabled(dictionary).build();
        let file = std::fs::File::create(&path).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        assert_eq!(pages(&path), all, "dictionary: {dictionary}");
    }
}

/// The text of a page has the rules of HTML: bytes that its charset does not have are U+FFFD.
#[test]
fn links_of_pages_have_the_charset_of_the_page() {
    for (charset, links) in [("utf-8", "%EF%BF%BD"), ("windows-1252", "%C3%A9")] {
        let html = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset={charset}\r\n\r\n<a href=/\u{e9}>");
        let record = warc("response", "http://a.example/\u{e9}", "", &html);
        assert_eq!(read("a.warc", &latin1(&record)), expected(&[("%E9", &[links])]));
    }
}
