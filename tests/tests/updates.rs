//! Crawls that come in batches. After every update, a store answers as the oracle of the captures so far. After a
//! merge, it has the bytes of a store that was built from all captures at once.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use webstrata_datasets::LinkKinds;
use webstrata_engine::Progress;
use webstrata_layers::{
    Counts, Evidence, InLinks, InlinksWriter, Links, NewEpoch, OutlinksWriter, Page, PartitionEntry, Precision,
    Provenance, RangeLength, Reader, RowEntry, Store, StoreWriter, Translations, Uid, UrlWriter, Window, check,
};
use webstrata_pipeline::{BuildReport, MergeOptions, MergeReport, build};
use webstrata_tests::crawls::{Crawl, Random, Size};
use webstrata_tests::seeds;
use webstrata_tests::stores::{assert_urls, options, reader, row_bytes, run_options};

const SMALL: Size = Size { pages: 60, captures: 700, links: 14 };

/// Adds captures to a store. The first call builds the store and sets the size of partitions, which later jobs use,
/// too.
fn add(store: &Path, input: PathBuf, workers: usize, partition_urls: u64) -> BuildReport {
    let mut options = options(store, vec![input]);
    options.update = store.exists();
    options.kinds = (!options.update).then(|| LinkKinds { redirects: true, ..LinkKinds::default() });
    options.run.workers = workers;
    options.partition_urls = (!options.update).then_some(partition_urls);
    let report = build(&options, &Progress::default()).unwrap();
    assert_eq!(report.tally.damaged(), 0, "{:?}", report.tally);
    let checked = check(store).unwrap();
    assert!(checked.is_sound(), "{:?}", checked.problems);
    report
}

/// Merges rows of a store.
fn merge(store: &Path, rows: Option<usize>, workers: usize) -> MergeReport {
    let mut run = run_options(store);
    run.workers = workers;
    let options = MergeOptions { rows, ..MergeOptions::new(run) };
    let report = webstrata_pipeline::merge(&options, &Progress::default()).unwrap();
    let checked = check(store).unwrap();
    assert!(checked.is_sound(), "{:?}", checked.problems);
    report
}

/// The captures of a crawl in random batches, by index.
fn batches(captures: usize, count: u64, random: &mut Random) -> Vec<BTreeSet<usize>> {
    let mut batches = vec![BTreeSet::new(); usize::try_from(count).unwrap()];
    for capture in 0..captures {
        batches[usize::try_from(random.below(count)).unwrap()].insert(capture);
    }
    batches
}

#[test]
fn random_batches_in_any_order_are_answered_as_the_oracle_answers() {
    for seed in seeds(0..10) {
        let mut random = Random(seed);
        let dir = tempfile::tempdir().unwrap();
        let revisits = seed % 2 == 1;
        let crawl = match seed {
            6.. => Crawl::with_failures(seed, SMALL, revisits),
            _ if revisits => Crawl::with_revisits(seed, SMALL),
            _ => Crawl::random(seed, SMALL),
        };
        let records =
            if revisits { crawl.warc() } else { crawl.json_lines().into_iter().map(|line| line + "\n").collect() };
        let store = dir.path().join("store");
        let (workers, partition_urls) = if seed < 3 { (1, 1 << 19) } else { (2, 40) };
        let mut known = BTreeSet::new();
        for (step, batch) in batches(records.len(), 2 + seed, &mut random).into_iter().enumerate() {
            let path = dir.path().join(format!("batch-{step}"));
            fs::write(&path, batch.iter().map(|&at| records[at].as_str()).collect::<String>()).unwrap();
            add(&store, path.clone(), workers, partition_urls);
            known.extend(batch);
            assert_urls(&store, &crawl.oracle_of(&known));
            if random.once_in(3) {
                let rows = usize::try_from(2 + random.below(2)).unwrap();
                merge(&store, Some(rows), workers);
                assert_urls(&store, &crawl.oracle_of(&known));
            }
            if step > 0 {
                let again = add(&store, path, workers, partition_urls);
                assert_eq!((again.counts.captures, again.counts.urls), (0, 0), "seed {seed}, step {step}");
                assert!(again.captures_stored > 0);
            }
        }
        merge(&store, None, workers);
        assert_urls(&store, &crawl.oracle());
        let (all, scratch) = (dir.path().join("all"), dir.path().join("scratch"));
        fs::write(&all, records.concat()).unwrap();
        add(&scratch, all, workers, partition_urls);
        let (got, expected) = (row_bytes(&store), row_bytes(&scratch));
        assert!(got.keys().eq(expected.keys()), "seed {seed}: {:?}, expected {:?}", got.keys(), expected.keys());
        for (name, content) in &expected {
            assert!(got[name] == *content, "seed {seed}: {name} differs");
        }
    }
}

/// Pages with thousands of captures. Most captures of a page have the same links. The captures are in random batches.
fn captured_often(batches: u64) -> Vec<String> {
    let (mut random, mut texts) = (Random(9), vec![String::new(); usize::try_from(batches).unwrap()]);
    for page in 0..6 {
        for capture in 0..2000 {
            let links: Vec<String> = (0..20)
                .filter(|_| !random.once_in(10))
                .map(|link| format!("\"http://link.example/{}\"", page + link))
                .collect();
            let text = &mut texts[usize::try_from(random.below(batches)).unwrap()];
            let (time, links) = (1_000_000_000 + capture * 3600, links.join(","));
            *text += &format!("{{\"url\":\"http://page.example/{page}\",\"ts\":{time},\"links\":[{links}]}}\n");
        }
    }
    texts
}

#[test]
fn exact_in_links_cost_about_the_same_in_several_rows_as_in_one() {
    let dir = tempfile::tempdir().unwrap();
    let readers = [1, 3].map(|batches| {
        let store = dir.path().join(format!("store-{batches}"));
        for (step, text) in captured_often(batches).into_iter().enumerate() {
            let path = dir.path().join(format!("{batches}-{step}.jsonl"));
            fs::write(&path, text).unwrap();
            add(&store, path, 1, 1 << 19);
        }
        let reader = reader(&store);
        assert_eq!(reader.store().manifest().rows.len() as u64, batches);
        reader
    });
    let windows = (0..10).flat_map(|step| {
        let time = 1_000_000_000 + step * 700_000;
        [
            Window::as_of(time),
            Window::Seen { from: time, to: time + 5 * 3600 },
            Window::Seen { from: time, to: i64::MAX },
        ]
    });
    let windows: Vec<Window> = windows.collect();
    let ask = |reader: &Reader| {
        let begun = Instant::now();
        let mut found = Vec::new();
        for link in 0..25 {
            let uid = reader.uid(&format!("http://link.example/{link}")).unwrap().unwrap();
            for &window in &windows {
                let sources = reader.in_links(uid, window, Precision::Exact).unwrap();
                let mut sources: Vec<String> = sources.iter().map(|&source| reader.url(source).unwrap()).collect();
                sources.sort_unstable();
                found.push(sources);
            }
        }
        (found, begun.elapsed())
    };
    // The minimum of several measurements, because other work on the machine only makes a measurement longer.
    let mut least = [Duration::MAX; 2];
    for _ in 0..7 {
        let [(of_one, one), (of_three, three)] = [ask(&readers[0]), ask(&readers[1])];
        assert_eq!(of_one, of_three);
        least = [least[0].min(one), least[1].min(three)];
    }
    assert!(least[1] < 10 * least[0], "{least:?}");
}

/// Makes a store of one page `a`, which links to `c`, and of an unused URL `b`.
fn with_unused(store: &Path) {
    let writer = StoreWriter::open(store, "test", None).unwrap();
    let row = writer.begin_row().unwrap();
    let mut urls = UrlWriter::create(&row, 0).unwrap();
    for (uid, name) in [(0, "a"), (1, "b"), (2, "c")] {
        urls.push(Uid(uid), &format!("http://{name}.example/"), &format!("example,{name})/")).unwrap();
    }
    let first_key = urls.first_key();
    let page = Page { uid: Uid(0), timestamps: vec![10], links: vec![Uid(2)], ..Page::default() };
    let (mut out, mut into) = (OutlinksWriter::create(&row, 0).unwrap(), InlinksWriter::create(&row, 0).unwrap());
    out.push(&page, &Evidence::default()).unwrap();
    into.push(&InLinks { uid: Uid(2), ranges: vec![0], sources: vec![Uid(0)], changes: vec![] }).unwrap();
    let mut counts = Counts { urls: 3, ..Counts::default() };
    counts.add_page(&page);
    let files = [urls.finish().unwrap(), out.finish().unwrap(), into.finish().unwrap()].concat();
    let first_uid = Uid(0);
    let partition = PartitionEntry { partition: 0, first_uid, urls: 3, first_record: first_uid, first_key, files };
    let partitions = vec![partition];
    let rows = vec![RowEntry {
        row: row.row(),
        first_uid,
        urls: 3,
        updates: 1,
        removes: false,
        displaces: false,
        elsewhere: 0,
        partitions,
        counts,
    }];
    let (in_range, provenance) = (RangeLength::Month, Provenance::default());
    writer.commit(NewEpoch { rows, in_range, provenance, translation: None }).unwrap();
}

#[test]
fn urls_that_nothing_uses_go_in_a_merge() {
    let dir = tempfile::tempdir().unwrap();
    let (store, batch) = (dir.path().join("store"), dir.path().join("batch.jsonl"));
    with_unused(&store);
    fs::write(&batch, r#"{"url":"http://bb.example/","ts":"19700101000020","links":["http://a.example/"]}"#).unwrap();
    add(&store, batch, 1, 1 << 19);
    assert_eq!(merge(&store, None, 1).dropped, 1);
    let merged = reader(&store);
    let uids = ["a", "b", "bb", "c"].map(|name| merged.uid(&format!("http://{name}.example/")).unwrap());
    assert_eq!(uids, [Some(0), None, Some(1), Some(2)].map(|uid| uid.map(Uid)));
    assert_eq!(merged.out_links(Uid(0), Window::ALWAYS).unwrap(), [Uid(2)]);
    assert_eq!(merged.out_links(Uid(1), Window::as_of(20)).unwrap(), [Uid(0)]);
    let old = Translations::between(&Store::open(&store).unwrap(), 2).unwrap();
    let forward = [0, 1, 2, 3].map(|uid| old.forward(Uid(uid)));
    assert_eq!(forward, [Some(0), None, Some(2), Some(1)].map(|uid| uid.map(Uid)));
    assert_eq!(merge(&store, None, 1).rows, 0, "one row is merged already");
}
