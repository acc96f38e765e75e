//! Compares streams of pages, over stores of several rows, with the answers UID by UID. Ranges cut such a stream.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use webstrata_layers::{Links, Page, RangeLength, Reader, Store, Uid};
use webstrata_tests::crawls::Random;
use webstrata_tests::rows::{Rows, Shape};

fn reader(store: &Path) -> Reader {
    Reader::new(Store::open(store).unwrap(), 1 << 20)
}

/// The pages of a range, asked for one by one.
fn asked(reader: &Reader, uids: Range<Uid>) -> Vec<Page> {
    Uid::each(uids).filter_map(|uid| reader.page(uid).unwrap()).map(Arc::unwrap_or_clone).collect()
}

fn streamed(reader: &Reader, uids: Range<Uid>) -> Vec<Page> {
    reader.pages(uids).map(Result::unwrap).collect()
}

#[test]
fn a_stream_has_the_pages_that_are_asked_for_one_by_one() {
    let mut joined = 0;
    for seed in 0..40 {
        let dir = tempfile::tempdir().unwrap();
        let mut random = Random(seed);
        let shape = Shape {
            rows: usize::try_from(1 + random.below(4)).unwrap(),
            pages: 1 + random.below(30),
            captures: 60,
            links: 8,
            in_order: seed % 3 == 0,
        };
        let rows = Rows::random(seed, shape);
        let partitions = u32::try_from(1 + random.below(3)).unwrap();
        rows.write(dir.path(), partitions, RangeLength::Month);
        let reader = reader(dir.path());
        let all = asked(&reader, Uid::below(reader.urls()));
        assert_eq!(streamed(&reader, Uid::below(reader.urls())), all, "seed {seed}");
        joined += usize::from(reader.rows() > 1 && !all.is_empty());
        for _ in 0..8 {
            let [a, b] = [1, 2].map(|more| Uid(random.below(reader.urls() + more)));
            let range = a.min(b)..a.max(b);
            let expected = asked(&reader, range.start..range.end.min(Uid(reader.urls())));
            assert_eq!(streamed(&reader, range.clone()), expected, "seed {seed}, {range:?}");
        }
        for parts in 1..6 {
            let ranges = reader.ranges(parts).unwrap();
            assert_eq!(ranges.len(), parts);
            assert_eq!(ranges.first().map(|range| range.start), Some(Uid(0)));
            assert_eq!(ranges.last().map(|range| range.end), Some(Uid(reader.urls())));
            assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start), "seed {seed}: {ranges:?}");
            let pages: Vec<Page> = ranges.into_iter().flat_map(|range| streamed(&reader, range)).collect();
            assert_eq!(pages, all, "seed {seed}, {parts} parts");
        }
    }
    assert!(joined > 10, "{joined} stores of several rows are too few to say anything");
}

#[test]
fn a_stream_ends_after_its_first_error() {
    let dir = tempfile::tempdir().unwrap();
    let rows = Rows::random(3, Shape { rows: 2, pages: 20, captures: 60, links: 8, in_order: false });
    rows.write(dir.path(), 1, RangeLength::Month);
    let path = dir.path().join("rows/000001/bv/part-00000.parquet");
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let reader = reader(dir.path());
    let mut pages = reader.pages(Uid::below(reader.urls()));
    assert!(pages.by_ref().any(|page| page.is_err()), "damage is read as pages");
    assert!(pages.next().is_none());
}
