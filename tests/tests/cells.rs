//! Cells give the same answers as the oracle and the layers. Images that are damaged, old or cut off do not open.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::BTreeSet;
use std::fs;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use webstrata_cells::cells::row::deciding_window;
use webstrata_cells::disk::load::{Options, find_cell, write_cell};
use webstrata_cells::image::label::{directory, partitions};
use webstrata_cells::image::{Residence, label::path_of};
use webstrata_cells::links::encoding::{STRATA, STRATA_SPEED, STRATA_THIN};
use webstrata_cells::{Cells, Encoding, Error, Row, Scratch, url_store};
use webstrata_codecs::CodecTag;
use webstrata_codecs::ENCODINGS;
use webstrata_datasets::LinkKinds;
use webstrata_engine::Progress;
use webstrata_layers::record::key::key;
use webstrata_layers::{Direction, Links, Precision, RangeLength, Store, Uid, Window, check};
use webstrata_pipeline::build;
use webstrata_tests::crawls::{Crawl, Random, Size};
use webstrata_tests::rows::{Rows, Shape};
use webstrata_tests::stores::{assert_cells, options};

/// Builds a crawl into partitions of `partition_urls` URLs.
fn store_of(crawl: &Crawl, dir: &Path, partition_urls: u64) -> PathBuf {
    let input = dir.join("crawl.jsonl");
    fs::write(&input, crawl.json_lines().join("\n")).unwrap();
    let store = dir.join("store");
    let mut options = options(&store, vec![input]);
    options.partition_urls = Some(partition_urls);
    options.kinds = Some(LinkKinds { redirects: true, ..LinkKinds::default() });
    build(&options, &Progress::default()).unwrap();
    store
}

#[test]
fn cells_answer_as_the_oracle_and_the_layers() {
    // Few and many captures per page; one partition, and several partitions, so that sources are in other cells.
    for (seed, size, partition_urls) in [
        (31, Size { pages: 60, captures: 700, links: 14 }, 1 << 19),
        (32, Size { pages: 60, captures: 700, links: 14 }, 20),
        (33, Size { pages: 8, captures: 1500, links: 10 }, 1 << 19),
        (34, Size { pages: 300, captures: 900, links: 30 }, 100),
        (35, Size { pages: 60, captures: 700, links: 14 }, 1 << 19),
        (36, Size { pages: 8, captures: 1500, links: 10 }, 20),
    ] {
        let codecs: [&dyn Encoding; 3] = [&STRATA, &STRATA_SPEED, &STRATA_THIN];
        for codec in codecs {
            let dir = tempfile::tempdir().unwrap();
            let crawl = if seed < 35 { Crawl::random(seed, size) } else { Crawl::with_failures(seed, size, false) };
            assert_cells(&store_of(&crawl, dir.path(), partition_urls), &crawl.oracle(), codec);
        }
    }
}

#[test]
fn cells_of_every_encoding_answer_as_the_oracle_and_the_layers() {
    for (seed, partition_urls) in [(37, 1 << 19), (38, 12)] {
        let dir = tempfile::tempdir().unwrap();
        let crawl = Crawl::with_failures(seed, Size { pages: 25, captures: 250, links: 9 }, false);
        let (store, oracle) = (store_of(&crawl, dir.path(), partition_urls), crawl.oracle());
        ENCODINGS.0.iter().for_each(|&codec| assert_cells(&store, &oracle, codec));
    }
}

#[test]
fn cells_of_several_rows_answer_as_the_oracle_and_the_layers() {
    for seed in 0..30 {
        let mut random = Random(seed);
        let rows = 1 + usize::try_from(seed % 5).unwrap();
        let captures = 2 + random.below(30);
        let shape = Shape { rows, pages: 2 + random.below(12), captures, links: 6, in_order: random.once_in(3) };
        let rows = Rows::random(seed, shape).with_cut(seed);
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        let partitions = if random.once_in(2) { 1 } else { 2 + u32::try_from(random.below(3)).unwrap() };
        let in_range = if random.once_in(2) { RangeLength::Month } else { RangeLength::Days(10) };
        rows.write(&store, partitions, in_range);
        let checked = check(&store).unwrap();
        assert!(checked.is_sound(), "{:?}", checked.problems);
        // A third of the seeds test the encodings one by one. The other seeds test strata.
        let other = CodecTag::ALL[usize::try_from(seed / 3).unwrap()].encoding();
        let codecs: &[&dyn Encoding] = match seed % 3 {
            0 => &[other],
            1 => &[&STRATA],
            _ => &[&STRATA_SPEED, &STRATA_THIN],
        };
        for &codec in codecs {
            let ask = AssertUnwindSafe(|| assert_cells(&store, &rows.oracle(), codec));
            let asked = std::panic::catch_unwind(ask);
            assert!(asked.is_ok(), "seed {seed}: {shape:?}, {partitions} partitions, {}", codec.name());
        }
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
        (options.update, options.partition_urls) = (step > 0, Some(50));
        build(&options, &Progress::default()).unwrap();
        known.extend(batch);
        let opened = Store::open(store.as_path()).unwrap();
        let options = Options { encoding: CodecTag::Strata.encoding(), urls: url_store::Options::default() };
        let newest = opened.manifest().rows.last().unwrap().row;
        for (row, partition) in partitions(&opened) {
            let there = find_cell(&opened, directory(&opened).unwrap(), row, partition, options).unwrap().is_some();
            assert_eq!(there, row.row < newest, "row {}", row.row);
        }
        assert!(Cells::open(&opened, Residence::Mapped, ENCODINGS).unwrap().is_none());
        assert_cells(&store, &crawl.oracle_of(&known), CodecTag::Strata);
    }
}

/// Random windows of all kinds in the times of random rows. The captures of a row are in four months of 30 days.
fn windows(random: &mut Random) -> Vec<Window> {
    let mut windows = vec![Window::ALWAYS, Window::as_of(i64::MAX), Window::as_of(-1)];
    let mut time = || i64::try_from(random.below(150)).unwrap() * 86_400;
    for _ in 0..6 {
        let (from, to) = (time(), time());
        windows.extend([Window::Seen { from, to }, Window::Seen { from, to: from + 2 }, Window::as_of(to)]);
    }
    windows
}

/// A stretch of the sources of a URL: the first UID, and the maximum number of sources.
type Stretch = (Uid, usize);
const WHOLE: Stretch = (Uid(0), usize::MAX);

/// The sources of a URL from two servers that each hold some cells of the row. The server with the record of the URL
/// answers, and the other server checks the sources that the first server leaves open. Also returns the number of these
/// sources, and the last source that was checked if the stretch was full.
fn sources_by(
    servers: &[Row; 2],
    uid: Uid,
    (window, precision): (Window, Precision),
    stretch: Stretch,
) -> (Vec<Uid>, usize, Option<Uid>) {
    let cell = servers.iter().find_map(|row| row.cells().next()).expect("a cell");
    let (in_range, is_thin) = (cell.label().in_range, !cell.has_in_link_times());
    let (mut sources, mut left, mut scratch) = (Vec::new(), Vec::new(), Scratch::default());
    let ask = |row: &Row| row.sources_into(uid, window, precision, stretch, &mut scratch, (&mut sources, &mut left));
    let answers = servers.iter().map(ask);
    let answered = answers.take_while(Result::is_err).inspect(assert_not_here).count();
    assert!(answered < 2, "no server has the record of {uid}");
    assert!(left.is_sorted_by(|a, b| a < b) && left.last().is_none_or(|&last| last < sources.len()));
    assert!(sources.len() <= stretch.1 && sources.first().is_none_or(|&first| first >= stretch.0));
    let last = sources.last().copied().filter(|_| sources.len() == stretch.1);
    let mut places = left.iter().copied().peekable();
    let mut place = 0;
    sources.retain(|&source| {
        let is_left = places.next_if_eq(&place).is_some();
        place += 1;
        !is_left || {
            let window = deciding_window(window, precision, in_range);
            let mut others = servers[1 - answered].cells();
            let found = others.find_map(|cell| Some((cell, cell.node(source)?)));
            // Only thin in-links name UIDs that may have no record.
            assert!(found.is_some() || is_thin, "the cell of a source");
            found.is_some_and(|(cell, node)| cell.has_link(node, uid, window, &mut scratch).unwrap())
        }
    });
    (sources, left.len(), last)
}

fn assert_not_here(answer: &Result<(), webstrata_layers::Error>) {
    let Err(webstrata_layers::Error::Elsewhere(error)) = answer else { panic!("{answer:?}") };
    assert!(matches!(error.downcast_ref(), Some(Error::NotHere { .. })), "{error}");
}

#[test]
fn a_row_in_parts_answers_as_the_whole_row_and_says_what_it_leaves() {
    let (mut all_left, mut full, mut scratch) = (0, 0, Scratch::default());
    let (mut some, mut none) = (Vec::new(), Vec::new());
    let options = |encoding| Options { encoding, urls: url_store::Options::default() };
    for seed in 50..80 {
        let mut random = Random(seed);
        let rows = 1 + usize::from(seed % 4 == 0);
        let shape = Shape { rows, pages: 8, captures: 40, links: 6, in_order: false };
        let dir = tempfile::tempdir().unwrap();
        let in_range = if random.once_in(2) { RangeLength::Month } else { RangeLength::Days(10) };
        Rows::random(seed, shape).with_cut(seed).write(
            dir.path(),
            2 + u32::try_from(random.below(5)).unwrap(),
            in_range,
        );
        let store = Store::open(dir.path()).unwrap();
        let codecs = [&STRATA as &dyn Encoding, CodecTag::Csr.encoding(), &STRATA_THIN];
        let codec = codecs[usize::try_from(seed % 3).unwrap()];
        let is_thin = codec.tag() == STRATA_THIN.tag();
        for (row, partition) in partitions(&store) {
            write_cell(&store, dir.path(), row, partition, options(codec)).unwrap();
        }
        let cells = Cells::open(&store, Residence::Mapped, ENCODINGS).unwrap().unwrap();
        for (entry, whole) in store.manifest().rows.iter().zip(cells.rows()) {
            let mut servers = [Row::of(entry), Row::of(entry)];
            for cell in whole.cells() {
                let at = usize::from(random.once_in(2));
                servers[at] = servers[at].clone().with(Arc::clone(cell));
            }
            for uid in Uid::each(Uid(0)..whole.end_uid()) {
                for window in windows(&mut random) {
                    for precision in [Precision::Exact, Precision::Range] {
                        let (mut sources, mut left) = (Vec::new(), Vec::new());
                        let into = (&mut sources, &mut left);
                        whole.sources_into(uid, window, precision, WHOLE, &mut scratch, into).unwrap();
                        assert!(left.is_empty());
                        if rows == 1 {
                            assert_eq!(sources, cells.links(uid, Direction::In(precision), window).unwrap());
                        }
                        let (by_parts, left, _) = sources_by(&servers, uid, (window, precision), WHOLE);
                        assert_eq!(by_parts, sources, "seed {seed}, row {}: {uid} {window:?}", entry.row);
                        let stretch =
                            (Uid(random.below(whole.end_uid().0 + 1)), usize::try_from(1 + random.below(4)).unwrap());
                        let from = sources.partition_point(|&source| source < stretch.0);
                        let into = (&mut some, &mut none);
                        whole.sources_into(uid, window, precision, stretch, &mut scratch, into).unwrap();
                        assert_eq!(some, sources[from..].iter().copied().take(stretch.1).collect::<Vec<_>>());
                        let (by_parts, _, last) = sources_by(&servers, uid, (window, precision), stretch);
                        let end = last.map_or(sources.len(), |last| sources.partition_point(|&source| source <= last));
                        assert_eq!(by_parts, sources[from..end], "seed {seed}: {stretch:?} of {uid} {window:?}");
                        full += usize::from(last.is_some());
                        assert!(left == 0 || is_thin || precision == Precision::Exact);
                        all_left += left;
                    }
                }
            }
        }
    }
    assert!(all_left > 100, "only {all_left} sources were left");
    assert!(full > 100, "only {full} stretches were full");
}

#[test]
fn a_row_takes_its_own_cells_and_gives_those_that_it_holds() {
    let dir = tempfile::tempdir().unwrap();
    let shape = Shape { rows: 2, pages: 8, captures: 40, links: 6, in_order: false };
    Rows::random(3, shape).write(dir.path(), 3, RangeLength::Month);
    let store = Store::open(dir.path()).unwrap();
    for (row, partition) in partitions(&store) {
        let options = Options { encoding: CodecTag::Strata.encoding(), urls: url_store::Options::default() };
        write_cell(&store, dir.path(), row, partition, options).unwrap();
    }
    let cells = Cells::open(&store, Residence::Memory, ENCODINGS).unwrap().unwrap();
    let (older, newer) = (&cells.rows()[0], &cells.rows()[1]);
    let own: Vec<u32> = newer.partitions().collect();
    assert!(own.len() > 1 && newer.cells().map(|cell| cell.label().partition).eq(own.iter().copied()));
    let empty = older.cells().fold(Row::of(&store.manifest().rows[1]), |row, cell| row.with(Arc::clone(cell)));
    assert_eq!((empty.cells().count(), empty.partitions().collect()), (0, own.clone()), "cells of another row");
    for partition in own {
        let cell = newer.cell(partition).unwrap();
        let one = empty.clone().with(Arc::clone(cell));
        assert!(Arc::ptr_eq(one.cell(partition).unwrap(), cell));
        assert_eq!(one.cells().count(), 1);
        let not_here = |row: &Row| match row.cell(partition) {
            Err(Error::NotHere { row, partition }) => (row, partition),
            other => panic!("{:?}", other.map(|cell| *cell.label())),
        };
        assert_eq!([not_here(&one.without(partition)), not_here(&empty)], [(newer.number(), partition); 2]);
    }
    assert!(matches!(newer.cell(99), Err(Error::NotHere { partition: 99, .. })));
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
        let written = write_cell(
            &store,
            directory(&store).unwrap(),
            row,
            partition,
            Options { encoding: codec.encoding(), urls },
        )
        .unwrap();
        fs::read(&written.path).unwrap().windows(domain.len()).filter(|name| *name == domain).count()
    };
    let of_urls = names(CodecTag::Csr);
    for codec in CodecTag::ALL {
        // Encodings that read keys keep an index of domains for out-links and one for in-links. Both have the names.
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
    assert!(Cells::open(&opened, Residence::Mapped, ENCODINGS).unwrap().is_none(), "no image was written yet");
    assert_cells(&store, &crawl.oracle(), CodecTag::Strata);

    let row = &opened.manifest().rows[0];
    let path = path_of(&store, row.row, row.partitions[0].partition);
    let whole = fs::read(&path).unwrap();
    let open = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        Cells::open(&opened, Residence::Mapped, ENCODINGS)
    };
    for at in [0, 9, 30, 60, 130, 200, whole.len() / 2] {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        assert!(matches!(open(&damaged), Err(Error::Image { .. } | Error::Version { .. })), "byte {at}");
    }
    assert!(matches!(open(&whole[..whole.len() - 100]), Err(Error::Image { .. })));
    assert!(matches!(open(b"not a cell"), Err(Error::Image { .. })));
    assert!(open(&whole).unwrap().is_some());

    // The image of the same partition from another build is not used here.
    let other = tempfile::tempdir().unwrap();
    let crawl = Crawl::random(36, Size { pages: 30, captures: 200, links: 8 });
    let other_store = store_of(&crawl, other.path(), 1 << 19);
    assert_cells(&other_store, &crawl.oracle(), CodecTag::Strata);
    let image = fs::read(path_of(&other_store, row.row, row.partitions[0].partition)).unwrap();
    assert!(open(&image).unwrap().is_none());
}
