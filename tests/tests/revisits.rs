//! Revisits of other URLs. In any order of revisits and originals, and with any merges of rows, a store answers as the
//! oracle does, and in the end has the bytes of one build.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use webstrata_datasets::{Base, Interner, LinkKinds, URL_BYTES};
use webstrata_engine::Progress;
use webstrata_layers::{Links, Precision, Removal, RemovedAs, Selection, Store, Window, check, format_digits};
use webstrata_pipeline::{BuildReport, Digests, MergeOptions, RemoveOptions, build, remove};
use webstrata_tests::crawls::Random;
use webstrata_tests::number;
use webstrata_tests::oracle::Oracle;
use webstrata_tests::stores::{assert_urls, options, reader, row_bytes, run_options};

const PAGES: [&str; 6] = [
    "http://a.example/",
    "http://a.example/d/e/x?q",
    "https://a.example/d/y",
    "http://b.example/d/e/f/",
    "https://b.example/z",
    "http://c.example/?q=/1",
];
const REFERENCES: [&str; 16] = [
    "http://a.example/",
    "https://c.example/far?x#y",
    "//d.example/of/scheme",
    "/of/host?a",
    "/.//two",
    "?of=path",
    "#itself",
    "of-directory",
    "./a:b",
    "s/../t/u?v/w",
    "../up",
    "../../../up/far",
    "..",
    "%2e%2e/dots",
    "\u{fc}ber",
    // This reference has no form, so its target under another URL is unknown.
    "//c.example:80/port",
];
const BASES: [&str; 6] = ["", "/", "s/", "../r/", "//c.example/k/", "http://c.example/l/m"];

/// A body that was crawled. Its digest is its index in a list.
#[derive(Clone, Debug)]
struct Payload {
    base: &'static str,
    references: Vec<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Good,
    NotFound,
    /// The only link is this target.
    Moved(&'static str),
    /// A revisit of another URL.
    Elsewhere,
    /// A revisit of its own URL.
    Here,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Record {
    page: &'static str,
    time: i64,
    kind: Kind,
    payload: usize,
}

impl Payload {
    fn random(random: &mut Random) -> Self {
        let base = if random.once_in(3) { *random.pick(&BASES) } else { "" };
        let count = random.below(5);
        Payload { base, references: (0..count).map(|_| *random.pick(&REFERENCES)).collect() }
    }

    fn links(&self, page: &str) -> BTreeSet<String> {
        self.references.iter().map(|reference| resolve(page, self.base, reference)).collect()
    }

    /// Whether the links are known under every URL.
    fn lends(&self) -> bool {
        self.base.starts_with("http:") || !self.references.iter().any(|reference| reference.contains(":80"))
    }
}

fn resolve(page: &str, base: &str, reference: &str) -> String {
    let mut resolved = String::new();
    let base = Base::new(page, base).unwrap();
    Interner::new(4, URL_BYTES).intern(Some(&base), reference, &mut |_, text| resolved = text.to_owned()).unwrap();
    resolved
}

impl Record {
    fn random(payloads: &[Payload], random: &mut Random) -> Self {
        let payload = random.index(payloads.len());
        // A page and a second have one payload, because a store keeps one digest for them.
        let page = *random.pick(&PAGES);
        let time = 1_200_000_000 + i64::try_from(random.below(6) * 16 + payload as u64).unwrap() * 86_400;
        let kind = match random.below(12) {
            0 => Kind::NotFound,
            1 => Kind::Moved(REFERENCES[random.index(8)]),
            2..=4 => Kind::Elsewhere,
            5 => Kind::Here,
            _ => Kind::Good,
        };
        // A redirect has its own payload.
        let time = if matches!(kind, Kind::Moved(_)) { time + 3600 } else { time };
        Record { page, time, kind, payload }
    }

    fn warc(&self, payloads: &[Payload]) -> String {
        let Payload { base, references } = &payloads[self.payload];
        let anchors = references.iter().map(|reference| format!("<a href=\"{reference}\">x</a>"));
        let base = if base.is_empty() { String::new() } else { format!("<base href=\"{base}\">") };
        let html = format!("<html><head>{base}</head><body>{}</body></html>", anchors.collect::<String>());
        let (status, location, body) = match self.kind {
            Kind::Good => ("200 OK", String::new(), html),
            Kind::NotFound => ("404 Not Found", String::new(), html),
            Kind::Moved(target) => ("301 Moved", format!("Location: {target}\r\n"), String::new()),
            Kind::Elsewhere | Kind::Here => ("200 OK", String::new(), String::new()),
        };
        let block = format!(
            "HTTP/1.1 {status}\r\n{location}Content-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let date = |time: i64| {
            let digits = format_digits(time);
            let parts: Vec<&str> = [0..4, 4..6, 6..8, 8..10, 10..12, 12..14].map(|part| &digits[part]).to_vec();
            format!("{}-{}-{}T{}:{}:{}Z", parts[0], parts[1], parts[2], parts[3], parts[4], parts[5])
        };
        let revisit = |of: &str| {
            format!(
                "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\n\
                 WARC-Refers-To-Target-URI: {of}\r\nWARC-Refers-To-Date: {}\r\n",
                date(self.time - 1000)
            )
        };
        let (kind, refers) = match self.kind {
            Kind::Elsewhere => ("revisit", revisit("http://original.example/")),
            Kind::Here => ("revisit", revisit(self.page)),
            _ => ("response", String::new()),
        };
        format!(
            "WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {}\r\nWARC-Date: {}\r\n{refers}\
             WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-000000000000>\r\n\
             WARC-Payload-Digest: sha1:{}\r\nContent-Type: application/http;msgtype=response\r\n\
             Content-Length: {}\r\n\r\n{block}\r\n\r\n",
            self.page,
            date(self.time),
            char::from(b'A' + u8::try_from(self.payload).unwrap()).to_string().repeat(32),
            block.len()
        )
    }
}

/// The oracle of captures and revisits, by the rules of format.md.
fn oracle(records: &[Record], payloads: &[Payload]) -> Oracle {
    let mut oracle = Oracle::default();
    let mut by_second = BTreeMap::<(&str, i64), Vec<&Record>>::new();
    records.iter().for_each(|record| by_second.entry((record.page, record.time)).or_default().push(record));
    let lent: BTreeSet<usize> =
        records.iter().filter(|record| record.kind == Kind::Good).map(|it| it.payload).collect();
    // The captures that other revisits of the page may refer to.
    let mut known = BTreeMap::<(&str, i64), BTreeSet<String>>::new();
    for (&(page, time), own) in &by_second {
        for record in own {
            let payload = &payloads[record.payload];
            match record.kind {
                Kind::Good => {
                    oracle.add(page, time, payload.links(page).iter().map(String::as_str));
                    known.insert((page, time), payload.links(page));
                }
                Kind::NotFound => oracle.add_failure(404, page, time),
                Kind::Moved(target) => oracle.add_with(301, page, time, [&*resolve(page, "", target)]),
                Kind::Elsewhere | Kind::Here => {}
            }
        }
        let has = |kind: fn(&Kind) -> bool| own.iter().any(|record| kind(&record.kind));
        let is_revisit = !has(|kind| matches!(kind, Kind::Good | Kind::Moved(_)));
        // If several revisits have the same second, the least counts, and a revisit of its own URL names a time.
        if is_revisit && has(|kind| *kind == Kind::Elsewhere) {
            let payload = own[0].payload;
            if lent.contains(&payload) && payloads[payload].lends() {
                let links = payloads[payload].links(page);
                oracle.add(page, time, links.iter().map(String::as_str));
                known.insert((page, time), links);
            } else {
                oracle.add_unknown(page, time);
            }
        }
    }
    for (&(page, time), own) in &by_second {
        let has = |kind: fn(&Kind) -> bool| own.iter().any(|record| kind(&record.kind));
        if has(|kind| matches!(kind, Kind::Good | Kind::Moved(_) | Kind::Elsewhere)) || !has(|kind| *kind == Kind::Here)
        {
            continue;
        }
        let payload = own[0].payload;
        let same = |(other, at): &(&str, i64)| *other == page && by_second[&(*other, *at)][0].payload == payload;
        let found: Vec<_> = known.iter().filter(|(key, _)| same(key)).collect();
        let before = found.iter().rfind(|((_, at), _)| *at < time);
        match before.or_else(|| found.iter().find(|((_, at), _)| *at > time)) {
            Some((_, links)) => oracle.add(page, time, links.iter().map(String::as_str)),
            None => oracle.add_unknown(page, time),
        }
    }
    oracle
}

fn add(store: &Path, inputs: Vec<PathBuf>, workers: usize, partition_urls: u64) -> BuildReport {
    add_with(store, inputs, workers, partition_urls, 0)
}

fn add_with(store: &Path, inputs: Vec<PathBuf>, workers: usize, partition_urls: u64, min_sources: u64) -> BuildReport {
    let mut options = options(store, inputs);
    options.update = store.exists();
    options.kinds = (!options.update).then(|| LinkKinds { redirects: true, ..LinkKinds::default() });
    options.run.workers = workers;
    options.partition_urls = Some(partition_urls);
    options.min_sources = Some(min_sources);
    let report = build(&options, &Progress::default()).unwrap();
    assert_eq!(report.tally.damaged(), 0, "{:?}", report.tally);
    let checked = check(store).unwrap();
    assert!(checked.is_sound(), "{:?}", checked.problems);
    report
}

fn merge(store: &Path, rows: Option<usize>, workers: usize, partition_urls: u64) {
    let mut run = run_options(store);
    run.workers = workers;
    let options = MergeOptions { rows, partition_urls: Some(partition_urls), ..MergeOptions::new(run) };
    webstrata_pipeline::merge(&options, &Progress::default()).unwrap();
    let checked = check(store).unwrap();
    assert!(checked.is_sound(), "{:?}", checked.problems);
}

fn assert_same(got: &Path, expected: &Path, what: &str) {
    let (got, expected) = (row_bytes(got), row_bytes(expected));
    assert!(got.keys().eq(expected.keys()), "{what}: {:?}, expected {:?}", got.keys(), expected.keys());
    for (name, content) in &expected {
        assert!(got[name] == *content, "{what}: {name} differs");
    }
}

#[test]
fn batches_in_any_order_come_to_the_bytes_of_one_build() {
    for seed in 0..number("WEBSTRATA_CRAWLS", 16) {
        let mut random = Random(seed);
        let dir = tempfile::tempdir().unwrap();
        let (workers, partition_urls) = (1 + random.index(2), [4, 16, 1 << 20][random.index(3)]);
        // Half of the stores leave out URLs with few sources.
        let least = if seed % 2 == 0 { 0 } else { 2 + random.below(2) };
        let oracle = |records: &[Record], payloads: &[Payload]| oracle(records, payloads).with_min_sources(least);
        let payloads: Vec<Payload> = (0..5).map(|_| Payload::random(&mut random)).collect();
        let count = 4 + random.below(30);
        let records: Vec<Record> = (0..count).map(|_| Record::random(&payloads, &mut random)).collect();
        let write = |name: &str, records: &[Record]| {
            let file = dir.path().join(format!("{name}.warc"));
            fs::write(&file, records.iter().map(|record| record.warc(&payloads)).collect::<String>()).unwrap();
            file
        };
        let mut batches = vec![Vec::new(); 1 + random.index(4)];
        for record in &records {
            let batch = random.index(batches.len());
            batches[batch].push(*record);
        }
        batches.retain(|batch| !batch.is_empty());
        let (store, mut so_far) = (dir.path().join("store"), Vec::new());
        for (step, batch) in batches.iter().enumerate() {
            add_with(&store, vec![write(&format!("batch-{step}"), batch)], workers, partition_urls, least);
            so_far.extend_from_slice(batch);
            assert_urls(&store, &oracle(&so_far, &payloads));
            let rows = Store::open(&store).unwrap().manifest().rows.len();
            if random.once_in(3) && rows > 1 {
                merge(&store, Some(2 + random.index(rows - 1)), workers, partition_urls);
                assert_urls(&store, &oracle(&so_far, &payloads));
            }
            if random.once_in(4) {
                let again = add_with(&store, vec![write("again", batch)], workers, partition_urls, least);
                assert_eq!((again.counts.captures, again.counts.urls), (0, 0), "seed {seed}, step {step}");
            }
        }
        merge(&store, None, workers, partition_urls);
        assert_urls(&store, &oracle(&records, &payloads));
        let scratch = dir.path().join("scratch");
        add_with(&scratch, vec![write("all", &records)], 1, partition_urls, least);
        assert_same(&store, &scratch, &format!("seed {seed}"));
    }
}

/// A page, and a copy under another URL as Browsertrix writes it.
fn copied() -> ([Record; 2], Vec<Payload>) {
    let payloads = vec![Payload { base: "", references: vec!["http://a.example/", "/of/host?a", "../up"] }];
    let record = |page, time, kind| Record { page, time, kind, payload: 0 };
    let records = [record(PAGES[1], 1_200_000_000, Kind::Good), record(PAGES[3], 1_300_000_000, Kind::Elsewhere)];
    (records, payloads)
}

#[test]
fn a_copy_has_its_links_whichever_comes_first() {
    let (records, payloads) = copied();
    let dir = tempfile::tempdir().unwrap();
    let [one, other] = [0, 1].map(|at| {
        let file = dir.path().join(format!("{at}.warc"));
        fs::write(&file, records[at].warc(&payloads)).unwrap();
        file
    });
    let once = dir.path().join("once");
    add(&once, vec![one.clone(), other.clone()], 1, 1 << 20);
    for (name, order) in [("one", [&one, &other]), ("other", [&other, &one])] {
        let store = dir.path().join(name);
        order.into_iter().for_each(|input| drop(add(&store, vec![input.clone()], 1, 1 << 20)));
        let opened = reader(&store);
        let copy = opened.uid(PAGES[3]).unwrap().unwrap();
        let links = opened.urls_of(&opened.out_links(copy, Window::ALWAYS).unwrap()).unwrap();
        assert_eq!(links, ["http://a.example/", "http://b.example/d/e/up", "http://b.example/of/host?a"], "{name}");
        let up = opened.uid("http://b.example/d/e/up").unwrap().unwrap();
        assert_eq!(opened.in_links(up, Window::ALWAYS, Precision::Exact).unwrap(), [copy]);
        drop(opened);
        merge(&store, None, 1, 1 << 20);
        assert_same(&store, &once, name);
    }
}

#[test]
fn what_was_taken_out_lends_nothing() {
    let (records, payloads) = copied();
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, records: &[Record]| {
        let file = dir.path().join(name);
        fs::write(&file, records.iter().map(|record| record.warc(&payloads)).collect::<String>()).unwrap();
        file
    };
    let store = dir.path().join("store");
    add(&store, vec![write("one.warc", &records[..1])], 1, 1 << 20);
    let rule = |select| Removal { select, removed_as: RemovedAs::Both, from: None, to: None, reason: None };
    let rules = vec![rule(Selection::Url(PAGES[1].to_owned()))];
    remove(&RemoveOptions { run: run_options(&store), rules, keep_names: false }, &Progress::default()).unwrap();
    for inputs in [vec![write("other.warc", &records[1..])], vec![write("both.warc", &records)]] {
        add(&store, inputs, 1, 1 << 20);
        let opened = reader(&store);
        let copy = opened.uid(PAGES[3]).unwrap().unwrap();
        assert!(!opened.captures(copy).unwrap()[0].known);
    }
    // A removed revisit does not come back with its original.
    let store = dir.path().join("copies");
    add(&store, vec![write("copy.warc", &records[1..])], 1, 1 << 20);
    let rules = vec![rule(Selection::Url(PAGES[3].to_owned()))];
    remove(&RemoveOptions { run: run_options(&store), rules, keep_names: false }, &Progress::default()).unwrap();
    let mut again = options(&store, vec![write("original.warc", &records[..1])]);
    (again.update, again.with_removed) = (true, true);
    build(&again, &Progress::default()).unwrap();
    let opened = reader(&store);
    let copy = opened.uid(PAGES[3]).unwrap().unwrap();
    assert_eq!(opened.captures(copy).unwrap(), []);
}

/// Builds or updates a store without digests.
fn add_bare(store: &Path, input: PathBuf, min_sources: u64) {
    let mut options = options(store, vec![input]);
    options.min_sources = Some(min_sources);
    options.update = store.exists();
    options.kinds = (!options.update).then(|| LinkKinds { redirects: true, ..LinkKinds::default() });
    options.digests = (!options.update).then_some(Digests::None);
    build(&options, &Progress::default()).unwrap();
    let checked = check(store).unwrap();
    assert!(checked.is_sound(), "{:?}", checked.problems);
}

#[test]
fn a_build_without_digests_has_the_same_links_and_no_digest_of_a_capture_with_links() {
    let mut kept = 0;
    for seed in 0..number("WEBSTRATA_CRAWLS", 16) {
        let mut random = Random(seed + 1000);
        let dir = tempfile::tempdir().unwrap();
        let payloads: Vec<Payload> = (0..5).map(|_| Payload::random(&mut random)).collect();
        let records = (0..30).map(|_| Record::random(&payloads, &mut random));
        // One record a page and second.
        let records: BTreeMap<(&str, i64), Record> =
            records.map(|record| ((record.page, record.time), record)).collect();
        let records: Vec<Record> = records.into_values().collect();
        let (input, store) = (dir.path().join("all.warc"), dir.path().join("store"));
        fs::write(&input, records.iter().map(|record| record.warc(&payloads)).collect::<String>()).unwrap();
        let least = if seed % 2 == 0 { 0 } else { 2 };
        add_bare(&store, input, least);
        assert_urls(&store, &oracle(&records, &payloads).with_min_sources(least));
        let opened = reader(&store);
        for url in PAGES {
            let Some(uid) = opened.uid(url).unwrap() else { continue };
            let Some((page, evidence)) = opened.formed_page(uid).unwrap() else { continue };
            let revisits: Vec<u32> = evidence.revisits.iter().map(|revisit| revisit.capture).collect();
            assert!(revisits.iter().all(|capture| page.blank.contains(capture)), "seed {seed}, {url}");
            let with_digest = (0u32..).zip(&evidence.digests).filter(|(_, digest)| **digest != 0);
            let with_digest: Vec<u32> = with_digest.map(|(capture, _)| capture).collect();
            assert!(with_digest.iter().all(|capture| revisits.contains(capture)), "seed {seed}, {url}");
            kept += with_digest.len();
        }
    }
    assert!(kept > 10, "{kept} digests of unsettled revisits");
}

#[test]
fn without_digests_an_original_in_an_update_settles_and_one_in_the_store_does_not() {
    let (records, payloads) = copied();
    let dir = tempfile::tempdir().unwrap();
    let [original, copy] = [0, 1].map(|at| {
        let file = dir.path().join(format!("{at}.warc"));
        fs::write(&file, records[at].warc(&payloads)).unwrap();
        file
    });
    for (name, order, is_known) in [("later", [&copy, &original], true), ("before", [&original, &copy], false)] {
        let store = dir.path().join(name);
        order.into_iter().for_each(|input| add_bare(&store, input.clone(), 0));
        let known = |store: &Path| {
            let opened = reader(store);
            let copy = opened.uid(PAGES[3]).unwrap().unwrap();
            opened.captures(copy).unwrap()[0].known
        };
        assert_eq!(known(&store), is_known, "{name}");
        merge(&store, None, 1, 1 << 20);
        assert_eq!(known(&store), is_known, "{name}, merged");
    }
    // A revisit of its own URL that names the time of its original needs no digest in the store.
    let digest = format!("sha1:{}", "A".repeat(32));
    let write = |name: &str, time: &str, rest: &str| {
        let file = dir.path().join(name);
        let line = format!(r#"{{"url":"http://a.example/","ts":"{time}","digest":"{digest}",{rest}}}"#);
        fs::write(&file, line + "\n").unwrap();
        file
    };
    let store = dir.path().join("dated");
    add_bare(&store, write("first.jsonl", "2008", r#""links":["/of"]"#), 0);
    add_bare(&store, write("dated.jsonl", "2009", r#""revisit":{"refers_to_date":"2008"}"#), 0);
    add_bare(&store, write("undated.jsonl", "2010", r#""revisit":{}"#), 0);
    let opened = reader(&store);
    let page = opened.uid("http://a.example/").unwrap().unwrap();
    assert_eq!(opened.captures(page).unwrap().iter().map(|it| it.known).collect::<Vec<_>>(), [true, true, false]);
    drop(opened);
    let mut other = options(&dir.path().join("later"), vec![original]);
    (other.update, other.digests) = (true, Some(Digests::All));
    let error = build(&other, &Progress::default()).unwrap_err().to_string();
    assert!(error.contains("--digests") && error.contains("none"), "{error}");
}
