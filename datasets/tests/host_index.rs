//! Host indexes of Common Crawl: the hosts of a crawl as captures with statuses and unknown links.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

#[cfg(test)]
mod reading;

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use webstrata_datasets::{Capture, Content, Finding, LinkKinds, ReadOptions, Tally, Www, inputs, open};

use crate::reading::read_all;

/// A host, and its fetches: 200, moved for good, gone, other 4xx, 5xx.
type Row = (Option<&'static str>, [Option<i64>; 5]);

const ROWS: [Row; 8] = [
    (Some("com,example"), [Some(18), Some(2), Some(1), None, Some(0)]),
    (Some("com,example,www"), [Some(0), Some(2), Some(1), Some(7), Some(0)]),
    (Some("org,example"), [Some(0), Some(0), Some(3), Some(4), None]),
    (Some("net,example"), [None, None, None, Some(1), Some(9)]),
    (Some("net,example,down"), [Some(0), Some(0), Some(0), Some(0), Some(2)]),
    (Some("com,unseen"), [Some(0); 5]),
    (None, [Some(1); 5]),
    (Some("no name"), [Some(1); 5]),
];

fn write(path: &Path, crawl: Option<&str>) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let names = ["fetch_200", "fetch_redirPerm", "fetch_gone", "fetch_4xx", "fetch_5xx"];
    let mut columns: Vec<(&str, ArrayRef)> =
        vec![("surt_host_name", Arc::new(ROWS.iter().map(|row| row.0).collect::<StringArray>()))];
    for (at, name) in names.into_iter().enumerate() {
        columns.push((name, Arc::new(ROWS.iter().map(|row| row.1[at]).collect::<Int64Array>())));
    }
    columns.push(("prank", Arc::new(Int64Array::from(vec![7; ROWS.len()]))));
    if let Some(crawl) = crawl {
        columns.push(("crawl", Arc::new(StringArray::from(vec![crawl; ROWS.len()]))));
    }
    let batch =
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true)));
    let batch = batch.unwrap();
    let mut writer = ArrowWriter::try_new(std::fs::File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

fn read(path: &Path) -> (Vec<Capture>, Tally) {
    read_all(path, LinkKinds::default())
}

#[test]
fn hosts_are_captures_with_the_best_of_their_statuses() {
    let dir = tempfile::tempdir().unwrap();
    let monday = 1_742_774_400; // 2025-03-24
    for (name, crawl) in [("x/crawl=CC-MAIN-2025-13/a.parquet", None), ("y/b.parquet", Some("CC-MAIN-2025-13"))] {
        let path = dir.path().join(name);
        write(&path, crawl);
        let (captures, tally) = read(&path);
        let found: Vec<_> = captures.iter().map(|it| (it.url.as_str(), it.status, it.time)).collect();
        let expected = [
            ("http://example.com/", Some(200), monday),
            ("http://www.example.com/", Some(301), monday),
            ("http://example.org/", Some(404), monday),
            ("http://example.net/", Some(403), monday),
            ("http://down.example.net/", Some(500), monday),
        ];
        assert_eq!(found, expected);
        assert!(captures.iter().all(|capture| capture.links.is_empty()));
        assert_eq!(captures[0].content, Content::Unknown);
        let counts: Vec<_> = tally.counts().collect();
        assert_eq!(counts, [(Finding::BadRow, 1), (Finding::BadHost, 1), (Finding::NotCrawled, 1)]);
    }
}

/// In a store whose web graphs are folded, the host index has the same pages.
#[test]
fn hosts_are_folded_as_in_the_graphs_of_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("b.parquet");
    write(&path, Some("CC-MAIN-2025-13"));
    let options = ReadOptions { kinds: LinkKinds::default(), www: Www::Fold };
    let (mut captures, mut capture, mut tally) = (Vec::new(), Capture::default(), Tally::default());
    for input in inputs(&[path]).unwrap() {
        let mut reader = open(&input, options).unwrap();
        while reader.read(&mut capture, &mut tally).unwrap() {
            captures.push((capture.url.clone(), capture.status));
        }
    }
    let folded: Vec<_> = captures.iter().filter(|(url, _)| url == "http://example.com/").collect();
    assert_eq!(folded.iter().map(|(_, status)| *status).collect::<Vec<_>>(), [Some(200), Some(301)]);
    assert_eq!((captures.len(), tally.of(Finding::FoldedHost)), (5, 1));
}

#[test]
fn rows_without_a_crawl_are_damage() {
    let dir = tempfile::tempdir().unwrap();
    for crawl in [None, Some("2025-13")] {
        let path = dir.path().join("c.parquet");
        write(&path, crawl);
        let (captures, tally) = read(&path);
        assert_eq!((captures.len(), tally.of(Finding::BadDate), tally.of(Finding::BadRow)), (0, 7, 1));
    }
}
