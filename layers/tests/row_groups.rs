//! Stores larger than a row group: bounds of row groups, times without a dictionary, look-ups across groups and
//! partitions.

use std::path::Path;

use parquet::basic::Encoding;
use parquet::file::reader::{FileReader, SerializedFileReader};
use webstrata_layers::*;

const PAGES: u64 = 70_000;

fn url(uid: u64) -> String {
    format!("http://example.com/{uid:06}")
}

/// Numbers that look random, the same in every run.
fn scatter(number: u64) -> u64 {
    let mixed = (number ^ 0x5851_f42d_4c95_7f2d).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}

/// Pages with 28 links and 4 captures at arbitrary seconds, so that neither rows nor values fit one row group.
fn page(uid: u64) -> Page {
    let first = scatter(uid) % (PAGES - 30);
    let time = |at: u32| {
        1_000_000_000
            + i64::from(at) * 40_000_000
            + i64::try_from(scatter(uid + u64::from(at)) % 40_000_000).unwrap_or(0)
    };
    let changes = if uid.is_multiple_of(3) {
        vec![Change { link: 5, capture: 2 }, Change { link: 27, capture: 0 }, Change { link: 27, capture: 3 }]
    } else {
        vec![]
    };
    let blank = if uid.is_multiple_of(7) { vec![1] } else { vec![] };
    Page {
        uid: Uid(uid),
        timestamps: (0..4).map(time).collect(),
        blank,
        links: (first..first + 28).map(Uid).collect(),
        changes,
        statuses: vec![],
    }
}

fn write(dir: &Path) -> Result<(), Error> {
    let writer = StoreWriter::open(dir, "test", None)?;
    let row = writer.begin_row()?;
    let (mut partitions, mut counts) = (Vec::new(), Counts { urls: PAGES, ..Counts::default() });
    for (partition, uids) in [(0, 0..500), (1, 500..500), (2, 500..PAGES)] {
        let mut urls = UrlWriter::create(&row, partition)?;
        let mut out = OutlinksWriter::create(&row, partition)?;
        for uid in uids.clone() {
            urls.push(Uid(uid), &url(uid), "x")?;
            let page = page(uid);
            counts.add_page(&page);
            out.push(&page, &Evidence::default())?;
        }
        let first_key = urls.first_key();
        let files = [urls.finish()?, out.finish()?, InlinksWriter::create(&row, partition)?.finish()?].concat();
        partitions.push(PartitionEntry {
            partition,
            first_uid: Uid(uids.start),
            urls: uids.end - uids.start,
            first_record: Uid(uids.start),
            first_key,
            files,
        });
    }
    let row = RowEntry {
        row: row.row(),
        first_uid: Uid(0),
        urls: PAGES,
        updates: 1,
        removes: false,
        displaces: false,
        elsewhere: 0,
        partitions,
        counts,
    };
    writer.commit(NewEpoch {
        rows: vec![row],
        in_range: RangeLength::Month,
        provenance: Provenance::default(),
        translation: None,
    })?;
    Ok(())
}

#[test]
fn all_pages_come_back_from_many_row_groups() -> Result<(), Error> {
    let dir = tempfile::tempdir().map_err(|source| Error::Io { path: "temporary".into(), source })?;
    write(dir.path())?;
    // The cache has room for about two blocks, so it drops and reads blocks again.
    let reader = Reader::new(Store::open(dir.path())?, 48 << 20);
    for uid in 0..PAGES {
        assert_eq!(reader.page(Uid(uid))?.as_deref(), Some(&page(uid)));
    }
    for uid in (0..PAGES).step_by(997).chain([499, 500, PAGES - 1]) {
        assert_eq!((reader.uid(&url(uid))?, reader.url(Uid(uid))?), (Some(Uid(uid)), url(uid)));
        assert_eq!(reader.uid(&format!("{}x", url(uid)))?, None);
    }
    let report = check(dir.path())?;
    // The out-link layers are sound; only the in-links are missing.
    assert!(matches!(report.problems[..], [Error::NotMirrored { in_links: 0, .. }]), "{:?}", report.problems);
    assert_eq!(report.counts, reader.store().manifest().counts);
    Ok(())
}

/// How the second column of a layer of 2,000 pages is encoded, links or times, and the bytes of the file.
fn encodings(layer: Layer, page: impl Fn(u64) -> Page) -> Result<(Vec<Encoding>, u64), Error> {
    let dir = tempfile::tempdir().map_err(|source| Error::Io { path: "temporary".into(), source })?;
    let row = StoreWriter::open(dir.path(), "test", None)?.begin_row()?;
    let mut out = OutlinksWriter::create(&row, 0)?;
    for uid in 0..2000 {
        out.push(&page(uid), &Evidence::default())?;
    }
    let files = out.finish()?;
    let written = files.iter().find(|file| file.layer == layer).expect("the file of the layer");
    let path = dir.path().join(&written.path);
    let file = std::fs::File::open(&path).map_err(|source| Error::Io { path: path.clone(), source })?;
    let parquet = |source| Error::Parquet { path: path.clone(), source: Box::new(source) };
    let reader = SerializedFileReader::new(file).map_err(parquet)?;
    Ok((reader.metadata().row_group(0).column(1).encodings().collect(), written.bytes))
}

/// 39 numbers below a million, of which a page has all but one in common with other pages.
fn nearly_common(page: u64) -> Vec<u64> {
    let mut numbers: Vec<u64> = (0..39).map(|at| scatter(at) % 1_000_000).collect();
    numbers[usize::try_from(page % 39).unwrap_or(0)] = scatter(page) % 1_000_000;
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

#[test]
fn out_links_are_plain_only_where_whole_lists_repeat() -> Result<(), Error> {
    let page = |uid: u64, links: Vec<u64>| Page {
        uid: Uid(uid),
        timestamps: vec![0],
        links: links.into_iter().map(Uid).collect(),
        ..Page::default()
    };
    // What repeats are whole UIDs.
    let (plain, bytes) = encodings(Layer::Ol, |uid| page(uid, nearly_common(uid)))?;
    assert!(plain.contains(&Encoding::PLAIN) && !plain.contains(&Encoding::BYTE_STREAM_SPLIT), "{plain:?}");
    // Links to the pages that follow: what repeats are the high bytes.
    let (split, _) = encodings(Layer::Ol, |uid| page(uid, (uid * 40 + 1..uid * 40 + 40).collect()))?;
    assert!(split.contains(&Encoding::BYTE_STREAM_SPLIT) && !split.contains(&Encoding::PLAIN), "{split:?}");
    assert!(bytes < 2000 * 39 * 8 / 20, "{bytes}");
    Ok(())
}

#[test]
fn times_have_the_encoding_that_takes_the_fewest_bytes() -> Result<(), Error> {
    let page = |uid: u64, times: Vec<u64>| Page {
        uid: Uid(uid),
        timestamps: times.into_iter().map(|time| 1_000_000_000 + i64::try_from(time).unwrap_or(0)).collect(),
        ..Page::default()
    };
    let encodings = |times: &dyn Fn(u64) -> Vec<u64>| encodings(Layer::Ts, |uid| page(uid, times(uid)));
    let has_dictionary = |encodings: &[Encoding]| encodings.contains(&Encoding::RLE_DICTIONARY);
    // Pages of a crawl of twelve months, some of them in some months.
    let months = |uid: u64| {
        (0..12).filter(move |month| scatter(uid) >> month & 1 == 0 || *month == 5).map(|month| month * 2_592_000)
    };
    let (few, _) = encodings(&|uid| months(uid).collect())?;
    assert!(has_dictionary(&few), "{few:?}");
    // Pages that were captured at the same irregular times.
    let (plain, bytes) = encodings(&nearly_common)?;
    assert!(!has_dictionary(&plain) && !plain.contains(&Encoding::BYTE_STREAM_SPLIT), "{plain:?}");
    assert!(bytes < 2000 * 39, "{bytes}");
    // Pages that have their own times.
    let own = |uid: u64| (0..4).map(|at| at * 40_000_000 + scatter(uid * 4 + at) % 40_000_000).collect();
    let (split, _) = encodings(&own)?;
    assert!(!has_dictionary(&split) && split.contains(&Encoding::BYTE_STREAM_SPLIT), "{split:?}");
    Ok(())
}
