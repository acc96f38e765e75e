//! Stores built for tests in temporary directories. They are compared with the oracle question by question, and with
//! one another byte by byte.

use crate::crawls::{Crawl, Size};
use crate::oracle::{Ending, Oracle, Totals, When};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use webstrata_cells::Encoding;
use webstrata_cells::disk::load::{Options, find_cell, write_cell};
use webstrata_cells::image::Residence;
use webstrata_cells::image::label::{directory, partitions};
use webstrata_cells::links::encoding::STRATA;
use webstrata_cells::{Cells, url_store};
use webstrata_codecs::ENCODINGS;
use webstrata_datasets::LinkKinds;
use webstrata_engine::{Progress, RunOptions};
use webstrata_layers::record::key::{host_of, key_of};
use webstrata_layers::{
    AsOf, Batch, Counts, Direction, Error, Failures, Links, Precision, Reader, Removal, RemovedAs, Sample, Sampling,
    Selection, Store, Uid, Window,
};
use webstrata_pipeline::{BuildOptions, RemoveOptions, build, remove};

/// The options of a plain build.
pub fn options(store: &Path, inputs: Vec<PathBuf>) -> BuildOptions {
    BuildOptions::new(run_options(store), inputs)
}

/// Options with the defaults: one worker and a gigabyte.
pub fn run_options(store: &Path) -> RunOptions {
    RunOptions::new(store)
}

/// Opens a store for questions.
pub fn reader(store: &Path) -> Reader {
    Reader::new(Store::open(store).expect("a store"), 64 << 20)
}

/// The counts of a store, in the form of the oracle.
pub fn totals(counts: &Counts) -> Totals {
    Totals {
        urls: counts.urls,
        pages: counts.pages,
        captures: counts.captures,
        unknown_captures: counts.unknown_captures,
        cut_captures: counts.cut_captures.sum(),
        failed_captures: counts.failed_captures,
        links: counts.links,
        occurrences: counts.occurrences,
    }
}

/// Windows worth asking about a page: an empty window, all time, single captures, the seconds beside captures, and
/// intervals.
pub fn windows(oracle: &Oracle, url: &str) -> Vec<When> {
    let mut own: Vec<i64> = oracle.captures(url).iter().map(|capture| capture.0).collect();
    if own.is_empty() {
        let times = oracle.times();
        own.extend(times.iter().step_by(times.len() / 5 + 1));
    }
    let own: Vec<i64> = own.iter().step_by(own.len() / 6 + 1).copied().chain(own.last().copied()).collect();
    let (first, last) = (own[0], own[own.len() - 1]);
    let mut windows = vec![When::Seen(i64::MIN, i64::MAX), When::Seen(last + 1, i64::MAX), When::AsOf(first - 1)];
    for (index, &time) in own.iter().enumerate() {
        windows.extend([
            When::Seen(time, time),
            When::Seen(time + 1, time + 1),
            When::AsOf(time),
            When::AsOf(time - 1),
        ]);
        windows.push(When::Seen(own[index / 2], time));
    }
    for (ending, age) in [(Ending::None, i64::MAX), (Ending::Each, i64::MAX), (Ending::Gone, last - own[own.len() / 2])]
    {
        windows.extend([When::AsOfBy(last, age, ending), When::AsOfBy(own[own.len() / 2], age, ending)]);
    }
    windows
}

/// Writes the images of a store, and opens them.
///
/// # Panics
/// If an image cannot be written or opened.
pub fn cells_of(store: &Path, codec: impl Into<&'static dyn Encoding>) -> Cells {
    let (opened, codec) = (Store::open(store).expect("a store"), codec.into());
    let options = Options { encoding: codec, urls: url_store::Options::default() };
    for (row, partition) in partitions(&opened) {
        write_cell(&opened, directory(&opened).expect("a directory"), row, partition, options).expect("a cell");
    }
    opened_cells(&opened, codec)
}

fn opened_cells(store: &Store, codec: &'static dyn Encoding) -> Cells {
    let residence = if codec.tag() == STRATA.tag() { Residence::Mapped } else { Residence::Memory };
    Cells::open(store, residence, ENCODINGS).expect("sound cells").expect("a cell for each partition")
}

/// Asks every question about one URL. The error is the first difference from the oracle.
pub fn compare_url(links: &impl Links, oracle: &Oracle, url: &str, windows: &[When]) -> Result<(), String> {
    let fail = |what: String| Err(format!("{url}: {what}"));
    let failed = |error: webstrata_layers::Error| format!("{url}: {error}");
    let Some(uid) = links.uid(url).map_err(failed)? else { return fail("not in the store".into()) };
    if links.url(uid).map_err(failed)? != url {
        return fail(format!("UID {uid} is {:?}", links.url(uid)));
    }
    let captures: Vec<_> = links.captures(uid).map_err(failed)?.iter().map(|c| (c.time, c.known)).collect();
    if captures != oracle.captures(url) {
        return fail(format!("captures {captures:?}, expected {:?}", oracle.captures(url)));
    }
    let statuses: Vec<u16> = links.captures(uid).map_err(failed)?.iter().map(|c| c.status.code()).collect();
    if statuses != oracle.statuses(url) {
        return fail(format!("statuses {statuses:?}, expected {:?}", oracle.statuses(url)));
    }
    let texts = |uids: Vec<Uid>| -> Result<BTreeSet<String>, String> {
        if !uids.is_sorted_by(|a, b| a < b) {
            return Err(format!("{url}: UIDs do not rise: {uids:?}"));
        }
        uids.into_iter().map(|uid| links.url(uid).map_err(failed)).collect()
    };
    for &when in windows {
        let window = window(when);
        let (got, want) = (texts(links.out_links(uid, window).map_err(failed)?)?, oracle.out_links(url, when));
        if !got.iter().eq(want.iter().copied()) {
            return fail(format!("{when:?}: links {got:?}, expected {want:?}"));
        }
        let got = texts(links.in_links(uid, window, Precision::Exact).map_err(failed)?)?;
        let want = oracle.in_links(url, when);
        if !got.iter().eq(want.iter().copied()) {
            return fail(format!("{when:?}: linked from {got:?}, expected {want:?}"));
        }
        let wide = texts(links.in_links(uid, window, Precision::Range).map_err(failed)?)?;
        if let Some(lost) = got.iter().find(|source| !wide.contains(*source)) {
            return fail(format!("{when:?}: range precision loses {lost}"));
        }
    }
    let mut spans = BTreeSet::new();
    for span in links.lifespans(uid).map_err(failed)? {
        spans.insert((links.url(span.link).map_err(failed)?, span.first, span.last));
    }
    let want = oracle.lifespans(url);
    if !spans.iter().map(|(url, first, last)| (url.as_str(), *first, *last)).eq(want.iter().copied()) {
        return fail(format!("lifespans {spans:?}, expected {want:?}"));
    }
    Ok(())
}

/// Asks a store every question about every URL of the oracle, and compares the totals.
///
/// # Panics
/// At the first difference.
pub fn assert_answers(store: &Path, oracle: &Oracle) {
    let counts = Store::open(store).expect("a store").manifest().counts;
    assert_eq!(totals(&counts), oracle.totals());
    assert_urls(store, oracle);
}

/// The pages among `uids` that have a capture in an interval, in the order of the answer.
///
/// # Errors
/// See [`Links::uids`].
pub fn uids_in(links: &dyn Links, uids: Range<Uid>, interval: (i64, i64)) -> Result<Vec<Uid>, Error> {
    let mut found = Vec::new();
    links.uids(uids, interval, &mut |uid| {
        found.push(uid);
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

/// Asks a store every question about every URL of the oracle, and compares the number of URLs.
///
/// # Panics
/// At the first difference.
pub fn assert_urls(store: &Path, oracle: &Oracle) {
    let reader = reader(store);
    assert_eq!(reader.urls(), oracle.urls().len() as u64);
    for url in oracle.urls() {
        if let Err(difference) = compare_url(&reader, oracle, url, &windows(oracle, url)) {
            panic!("{difference}");
        }
    }
}

/// Writes the cells of a store and asks the cells every question about every URL of the oracle. Whole records, and
/// in-links at range precision, must be equal to the records and in-links of the layers.
///
/// # Panics
/// At the first difference.
pub fn assert_cells(store: &Path, oracle: &Oracle, codec: impl Into<&'static dyn Encoding>) {
    let (opened, codec) = (Store::open(store).expect("a store"), codec.into());
    let options = Options { encoding: codec, urls: url_store::Options::default() };
    for (row, partition) in partitions(&opened) {
        write_cell(&opened, directory(&opened).expect("a directory"), row, partition, options).expect("a cell");
        assert!(
            find_cell(&opened, directory(&opened).expect("a directory"), row, partition, options)
                .expect("a cell")
                .is_some()
        );
    }
    let cells = opened_cells(&opened, codec);
    let reader = reader(store);
    for uid in Uid::each(Uid::below(reader.urls())) {
        let url = &reader.url(uid).expect("layers");
        let windows = windows(oracle, url);
        for difference in [compare_url(&cells, oracle, url, &windows), compare_url(&reader, oracle, url, &windows)] {
            if let Err(difference) = difference {
                panic!("{difference}");
            }
        }
        assert_eq!(cells.page(uid).expect("cells"), reader.page(uid).expect("layers"), "{url}");
        assert_eq!(cells.in_record(uid).expect("cells"), reader.in_record(uid).expect("layers"), "{url}");
        for when in windows {
            let window = window(when);
            let ranges = |links: &dyn Links| links.in_links(uid, window, Precision::Range).expect("in-links");
            assert_eq!(ranges(&cells), ranges(&reader), "{url} {window:?}");
            let links = cells.out_links(uid, window).expect("links");
            for link in (uid.0 % 7..reader.urls()).step_by(7).map(Uid).chain(links.first().copied()) {
                let has = |own: &dyn Links| own.has_link(uid, link, window).expect("an answer");
                assert_eq!([has(&cells), has(&reader)], [links.contains(&link); 2], "{url} {link} {window:?}");
            }
        }
    }
    assert_pieces(&cells, &reader, oracle);
    assert!(cells.uid("http://nobody.example/").expect("cells").is_none());
    assert!(cells.url(Uid(opened.manifest().counts.urls)).is_err());
}

/// Compares degrees, samples, batches and pages of an interval with lists of the layers.
fn assert_pieces(cells: &Cells, reader: &Reader, oracle: &Oracle) {
    let uids: Vec<Uid> = Uid::each(Uid::below(reader.urls())).rev().collect();
    let times: Vec<i64> = oracle.times().into_iter().collect();
    let (from, to) = (times[times.len() / 3], times[times.len() / 2]);
    let window = Window::Seen { from, to };
    let (mut lists, mut samples, mut texts) = (Batch::default(), Batch::default(), Batch::default());
    for direction in [Direction::Out, Direction::In(Precision::Exact), Direction::In(Precision::Range)] {
        for sampling in [Sampling::Consistent, Sampling::Random] {
            let sample = Sample { count: 3, sampling, seed: 5 };
            lists.fill(&uids, |&uid, list| cells.links_into(uid, direction, window, list)).expect("cells");
            samples.fill(&uids, |&uid, list| cells.sample_into(uid, direction, window, sample, list)).expect("cells");
            for ((&uid, list), drawn) in uids.iter().zip(lists.iter()).zip(samples.iter()) {
                assert_eq!(list, reader.links(uid, direction, window).expect("layers"), "{uid} {direction:?}");
                assert_eq!(cells.degree(uid, direction, window).expect("cells"), list.len());
                assert_eq!(
                    drawn,
                    reader.sample(uid, direction, window, sample).expect("layers"),
                    "{uid} {direction:?}"
                );
            }
        }
    }
    texts.fill(&uids, |&uid, text| cells.url_into(uid, text)).expect("cells");
    assert!(texts.iter().zip(&uids).all(|(text, &uid)| reader.url(uid).expect("layers").as_bytes() == text));
    for (from, to) in [(from, to), (i64::MIN, i64::MAX), (from, from), (to, from), (i64::MIN, times[0] - 1)] {
        let expected = oracle.urls().into_iter().filter(|url| {
            let captures = oracle.captures(url);
            captures.iter().any(|&(time, _)| from <= time && time <= to)
        });
        let mut expected: Vec<Uid> = expected.map(|url| reader.uid(url).expect("layers").expect("a UID")).collect();
        expected.sort_unstable();
        for links in [cells as &dyn Links, reader] {
            let found = uids_in(links, Uid::below(links.urls()), (from, to)).expect("an answer");
            assert_eq!(found, expected, "{from} to {to}");
        }
    }
    let every = Uid::each(Uid::below(reader.urls()));
    let keys: Vec<Vec<u8>> = every.clone().map(|uid| key_of(&reader.url(uid).expect("layers"))).collect();
    for prefix in keys.iter().flat_map(|key| [1, key.len() / 3, key.len() / 2, key.len()].map(|end| &key[..end])) {
        let mut other = prefix.to_vec();
        other.push(b'~');
        for prefix in [prefix, &other] {
            let matching = || every.clone().zip(&keys).filter(|(_, key)| key.starts_with(prefix)).map(|(uid, _)| uid);
            for links in [cells as &dyn Links, reader] {
                let found = links.with_prefix(prefix).expect("an answer");
                assert!(found.into_iter().flat_map(Uid::each).eq(matching()), "{prefix:?}");
            }
        }
    }
    let mut first = None;
    let visit = &mut |uid| {
        assert_eq!(first.replace(uid), None, "called after a break");
        ControlFlow::Break(())
    };
    cells.uids(Uid::below(cells.urls()), (i64::MIN, i64::MAX), visit).expect("an answer");
}

/// The window of layers for a window of the oracle.
pub fn window(when: When) -> Window {
    match when {
        When::Seen(from, to) => Window::Seen { from, to },
        When::AsOf(at) => Window::as_of(at),
        When::AsOfBy(at, age, ending) => {
            let failures = match ending {
                Ending::Gone => Failures::End,
                Ending::None => Failures::Ignore,
                Ending::Each => Failures::All,
            };
            Window::AsOf(AsOf { failures, ..AsOf::new(at).within(Some(age)) })
        }
    }
}

/// The content of the only row of a store's epoch, without its number and history: the counts, the bounds of
/// partitions, and the bytes of the files.
///
/// # Panics
/// If the store cannot be read, or has several rows.
pub fn row_bytes(store: &Path) -> BTreeMap<String, Vec<u8>> {
    let opened = Store::open(store).expect("a store");
    let [row] = &opened.manifest().rows[..] else { panic!("{} rows", opened.manifest().rows.len()) };
    let mut files = BTreeMap::from([("counts".to_owned(), format!("{:?}", row.counts).into_bytes())]);
    for partition in &row.partitions {
        let bounds = (partition.first_uid, partition.urls, partition.first_record, &partition.first_key);
        files.insert(format!("partition {}", partition.partition), format!("{bounds:?}").into_bytes());
        for file in &partition.files {
            let content = fs::read(store.join(&file.path)).expect("a file");
            files.insert(format!("{}/{}", file.layer, file.partition), content);
        }
    }
    // The names of held files contain the number of the job.
    for held in &opened.manifest().provenance.held {
        let part = held.path.split_once('-').map_or("", |(_, part)| part);
        files.insert(format!("held/{part}"), fs::read(store.join(&held.path)).expect("a file"));
    }
    files
}

/// The bytes of a store, by path inside the store, without the lock. Data about the inputs is left out, because
/// captures may be cut into inputs in many ways. Left out are the lists of inputs, `provenance` in manifests, and the
/// digests that cover `provenance`.
///
/// # Panics
/// If the store cannot be read.
pub fn bytes(store: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut open = vec![store.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let mut content = fs::read(&path).expect("a file");
            let name = path.strip_prefix(store).expect("below the store").to_owned();
            if name.starts_with("epochs") {
                let mut manifest: serde_json::Value = serde_json::from_slice(&content).expect("a manifest");
                manifest["provenance"] = serde_json::Value::Null;
                for past in manifest["history"].as_array_mut().into_iter().flatten() {
                    past["digest"] = serde_json::Value::Null;
                }
                content = manifest.to_string().into_bytes();
            }
            if name == Path::new("CURRENT") {
                content.truncate(content.iter().position(|&byte| byte == b' ').expect("a digest"));
            }
            if name != Path::new("LOCK") && !name.starts_with("inputs") {
                files.insert(name, content);
            }
        }
    }
    files
}

/// Builds a random store of several rows with failures, and removes a host. Returns the oracle of the store without
/// that host.
///
/// # Panics
/// If the store cannot be built.
pub fn store_with_removal(store: &Path, seed: u64) -> Oracle {
    let crawl = Crawl::with_failures(seed, Size { pages: 40, captures: 240, links: 8 }, false);
    let input = store.with_file_name("lines.jsonl");
    for lines in crawl.json_lines().chunks(80) {
        fs::write(&input, lines.join("\n") + "\n").expect("a store");
        let mut options = options(store, vec![input.clone()]);
        options.update = store.exists();
        let redirects = LinkKinds { anchors: true, redirects: true, embeds: false, outlinks: false, via: false };
        options.kinds = (!options.update).then_some(redirects);
        options.partition_urls = (!options.update).then_some(30);
        build(&options, &Progress::default()).expect("a store");
    }
    let (gone, removed_as) = ("example-a.org", RemovedAs::Page);
    let rule = Removal { select: Selection::Host(gone.to_owned()), removed_as, from: None, to: None, reason: None };
    let options = RemoveOptions { run: run_options(store), rules: vec![rule], keep_names: false };
    remove(&options, &Progress::default()).expect("a store");
    assert!(Store::open(store).expect("a store").manifest().rows.len() > 1, "several rows");
    crawl.oracle().without(|url, _| host_of(url) == Some(gone), |_, _| false)
}
