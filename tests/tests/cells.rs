//! Cells answer as the oracle and the layers do; images that are damaged, old or cut off do not open.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use webstrata_layers::{RangeLength, Store, check, key};
use webstrata_pipeline::{Progress, build};
use webstrata_serve::codec::CodecTag;
use webstrata_serve::image::{Residence, path_of};
use webstrata_serve::load::{Options, find_cell, partitions, write_cell};
use webstrata_serve::{Cells, Error, url_store};
use webstrata_tests::crawls::{Crawl, Random, Size};
use webstrata_tests::rows::{Rows, Shape};
use webstrata_tests::stores::{assert_cells, options};

/// Builds a crawl into partitions of so many URLs.
fn store_of(crawl: &Crawl, dir: &Path, partition_urls: u64) -> PathBuf {
    let input = dir.join("crawl.jsonl");
    fs::write(&input, crawl.json_lines().join("\n")).unwrap();
    let store = dir.join("store");
    let mut options = options(&store, vec![input]);
    options.partition_urls = partition_urls;
    build(&options, &Progress::default()).unwrap();
    store
}

#[test]
fn cells_answer_as_the_oracle_and_the_layers() {
    // Few and many captures a page; one partition, and several, so that sources lie in other cells.
    for (seed, size, partition_urls) in [
        (31, Size { pages: 60, captures: 700, links: 14 }, 1 << 19),
        (32, Size { pages: 60, captures: 700, links: 14 }, 20),
        (33, Size { pages: 8, captures: 1500, links: 10 }, 1 << 19),
        (34, Size { pages: 300, captures: 900, links: 30 }, 100),
    ] {
        for codec in [CodecTag::Strata, CodecTag::StrataSpeed] {
            let dir = tempfile::tempdir().unwrap();
            let crawl = Crawl::random(seed, size);
            assert_cells(&store_of(&crawl, dir.path(), partition_urls), &crawl.oracle(), codec);
        }
    }
}

#[test]
fn cells_of_every_encoding_answer_as_the_oracle_and_the_layers() {
    for (seed, partition_urls) in [(37, 1 << 19), (38, 12)] {
        let dir = tempfile::tempdir().unwrap();
        let crawl = Crawl::random(seed, Size { pages: 25, captures: 250, links: 9 });
        let (store, oracle) = (store_of(&crawl, dir.path(), partition_urls), crawl.oracle());
        CodecTag::ALL.into_iter().for_each(|codec| assert_cells(&store, &oracle, codec));
    }
}

#[test]
fn cells_of_several_rows_answer_as_the_oracle_and_the_layers() {
    for seed in 0..30 {
        let mut random = Random(seed);
        let rows = 1 + usize::try_from(seed % 5).unwrap();
        let captures = 2 + random.below(30);
        let shape = Shape { rows, pages: 2 + random.below(12), captures, links: 6, in_order: random.once_in(3) };
        let rows = Rows::random(seed, shape);
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        let partitions = if random.once_in(2) { 1 } else { 2 + u32::try_from(random.below(3)).unwrap() };
        let in_range = if random.once_in(2) { RangeLength::Month } else { RangeLength::Days(10) };
        rows.write(&store, partitions, in_range);
        let checked = check::check(&store).unwrap();
        assert!(checked.is_sound(), "{:?}", checked.problems);
        // Of each other encoding one, else strata.
        let other = CodecTag::ALL[usize::try_from(seed / 3).unwrap()];
        let codec = [other, CodecTag::Strata, CodecTag::StrataSpeed][usize::try_from(seed % 3).unwrap()];
        let asked = std::panic::catch_unwind(|| assert_cells(&store, &rows.oracle(), codec));
        assert!(asked.is_ok(), "seed {seed}: {shape:?}, {partitions} partitions, {}", codec.name());
    }
}

#[test]
fn updates_leave_the_cells_of_older_rows_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let crawl = Crawl::random(40, Size { pages: 40, captures: 300, links: 9 });
    let store = dir.path().join("store");
    let lines = crawl.json_lines();
    let mut known = BTreeSet::new();
    for step in 0..3 {
        let batch: BTreeSet<usize> = (step..lines.len()).step_by(3).collect();
        let input = dir.path().join(format!("{step}.jsonl"));
        fs::write(&input, batch.iter().map(|&at| lines[at].as_str()).collect::<Vec<_>>().join("\n")).unwrap();
        let mut options = options(&store, vec![input]);
        (options.update, options.partition_urls) = (step > 0, 50);
        build(&options, &Progress::default()).unwrap();
        known.extend(batch);
        let opened = Store::open(store.as_path()).unwrap();
        let options = Options { codec: CodecTag::Strata, urls: url_store::Options::default() };
        let newest = opened.manifest().rows.last().unwrap().row;
        for (row, partition) in partitions(&opened) {
            let there = find_cell(&opened, row, partition, options).unwrap().is_some();
            assert_eq!(there, row.row < newest, "row {}", row.row);
        }
        assert!(Cells::open(&opened, Residence::Mapped).unwrap().is_none());
        assert_cells(&store, &crawl.oracle_of(&known), CodecTag::Strata);
    }
}

#[test]
fn an_s_node_is_given_the_urls_of_its_cell() {
    let dir = tempfile::tempdir().unwrap();
    let crawl = Crawl::random(39, Size { pages: 25, captures: 250, links: 9 });
    let store = Store::open(store_of(&crawl, dir.path(), 1 << 19).as_path()).unwrap();
    let (row, urls) = (&store.manifest().rows[0], url_store::Options::default());
    let partition = &row.partitions[0];
    let mut own = Vec::new();
    key(crawl.oracle().urls().first().unwrap(), &mut own);
    let domain = own.split_inclusive(|&byte| byte == b',').take(2).collect::<Vec<_>>().concat();
    let names = |codec: CodecTag| {
        let written = write_cell(&store, row, partition, Options { codec, urls }).unwrap();
        fs::read(&written.path).unwrap().windows(domain.len()).filter(|name| *name == domain).count()
    };
    let of_urls = names(CodecTag::Csr);
    for codec in CodecTag::ALL {
        // An index of domains has their names, for out-links and for in-links.
        let of_links = if codec.reads_keys() { 2 } else { 0 };
        assert_eq!(names(codec), of_urls + of_links, "{}", codec.name());
    }
}

#[test]
fn images_open_only_when_they_are_whole_and_of_these_layers() {
    let dir = tempfile::tempdir().unwrap();
    let crawl = Crawl::random(35, Size { pages: 30, captures: 200, links: 8 });
    let store = store_of(&crawl, dir.path(), 1 << 19);
    let opened = Store::open(store.as_path()).unwrap();
    assert!(Cells::open(&opened, Residence::Mapped).unwrap().is_none(), "no image was written yet");
    assert_cells(&store, &crawl.oracle(), CodecTag::Strata);

    let row = &opened.manifest().rows[0];
    let path = path_of(&store, row.row, row.partitions[0].partition);
    let whole = fs::read(&path).unwrap();
    let open = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        Cells::open(&opened, Residence::Mapped)
    };
    for at in [0, 9, 30, 60, 130, 200, whole.len() / 2] {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        assert!(matches!(open(&damaged), Err(Error::Image { .. } | Error::Version { .. })), "byte {at}");
    }
    assert!(matches!(open(&whole[..whole.len() - 100]), Err(Error::Image { .. })));
    assert!(matches!(open(b"not a cell"), Err(Error::Image { .. })));
    assert!(open(&whole).unwrap().is_some());

    // The same partition of another build: its image is of no use here.
    let other = tempfile::tempdir().unwrap();
    let crawl = Crawl::random(36, Size { pages: 30, captures: 200, links: 8 });
    let other_store = store_of(&crawl, other.path(), 1 << 19);
    assert_cells(&other_store, &crawl.oracle(), CodecTag::Strata);
    let image = fs::read(path_of(&other_store, row.row, row.partitions[0].partition)).unwrap();
    assert!(open(&image).unwrap().is_none());
}
