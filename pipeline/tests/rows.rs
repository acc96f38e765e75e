//! Jobs one after the other: in whatever order captures arrive, rows merge to the bytes of one build. Partitions keep
//! the size that was given when the store was built, also if URLs with few sources are left out. Records of one page in
//! one second, of all kinds, mean the same in every order, as a slow answer says.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use webstrata_datasets::LinkKinds;
use webstrata_engine::{Progress, RunOptions};
use webstrata_layers::record::presence;
use webstrata_layers::{Links, Reader, Removal, RemovedAs, Selection, Store, Window, check, format_digits};
use webstrata_pipeline::{
    BuildOptions, BuildReport, Digests, Error, MergeOptions, RemoveOptions, build, merge, remove,
};

/// A capture: page, second, links.
type Capture = (usize, i64, BTreeSet<usize>);

fn url(number: usize) -> String {
    format!("http://h{}.example/{number}", number % 7)
}

/// Returns captures of twelve pages, with links to pages and to sixty other URLs.
fn captures(seed: u64) -> Vec<Capture> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut taken = BTreeSet::new();
    let one = |random: &mut fastrand::Rng| {
        let links = (0..random.usize(..9)).map(|_| random.usize(..72)).collect();
        (random.usize(..12), 1_000_000_000 + random.i64(0..400) * 86_400, links)
    };
    let all: Vec<Capture> = (0..150).map(|_| one(&mut random)).collect();
    all.into_iter().filter(|(page, time, _)| taken.insert((*page, *time))).collect()
}

fn input(dir: &Path, name: &str, captures: &[Capture]) -> PathBuf {
    let line = |(page, time, links): &Capture| {
        let links: Vec<String> = links.iter().map(|&link| format!("\"{}\"", url(link))).collect();
        format!("{{\"url\":\"{}\",\"ts\":{time},\"links\":[{}]}}\n", url(*page), links.join(","))
    };
    let path = dir.join(name);
    fs::write(&path, captures.iter().map(line).collect::<String>()).unwrap();
    path
}

/// The options that a store is built with.
#[derive(Clone, Copy)]
struct Said {
    partition_urls: u64,
    min_sources: u64,
}

const PLAIN: Said = Said { partition_urls: 1 << 19, min_sources: 0 };

/// Builds a store with options, or adds to the store without options.
fn add(store: &Path, input: PathBuf, workers: usize, said: Said) -> BuildReport {
    let mut options = BuildOptions::new(RunOptions::new(store), vec![input]);
    options.run.workers = workers;
    options.update = store.exists();
    options.partition_urls = (!options.update).then_some(said.partition_urls);
    options.min_sources = (!options.update).then_some(said.min_sources);
    let report = build(&options, &Progress::default()).unwrap();
    sound(store);
    report
}

fn merged(store: &Path, rows: Option<usize>) {
    let options = MergeOptions { rows, ..MergeOptions::new(RunOptions::new(store)) };
    merge(&options, &Progress::default()).unwrap();
    sound(store);
}

fn sound(store: &Path) {
    let checked = check(store).unwrap();
    assert!(checked.is_sound(), "{:?}", checked.problems);
}

/// Returns the files of the only row, and the files of held links.
fn row_bytes(store: &Path) -> BTreeMap<String, Vec<u8>> {
    let opened = Store::open(store).unwrap();
    let [row] = &opened.manifest().rows[..] else { panic!("{} rows", opened.manifest().rows.len()) };
    let files = row.partitions.iter().flat_map(|partition| &partition.files);
    let content = |path: &str| fs::read(store.join(path)).unwrap();
    let layers = files.map(|file| (format!("{}/{}", file.layer, file.partition), content(&file.path)));
    let held = opened.manifest().provenance.held.iter();
    layers
        .chain(held.map(|entry| (entry.path.replacen(|c: char| c.is_ascii_digit(), "", 6), content(&entry.path))))
        .collect()
}

/// Returns the URLs that each page ever linked to, without URLs that are not pages and have fewer than `least` sources.
fn answers(captures: &[Capture], least: u64) -> BTreeMap<String, BTreeSet<String>> {
    let mut links: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (page, _, own) in captures {
        links.entry(url(*page)).or_default().extend(own.iter().map(|&link| url(link)));
    }
    let mut sources: BTreeMap<String, u64> = BTreeMap::new();
    links.values().flatten().for_each(|link| *sources.entry(link.clone()).or_default() += 1);
    let pages: BTreeSet<String> = links.keys().cloned().collect();
    links.values_mut().for_each(|links| links.retain(|link| pages.contains(link) || sources[link] >= least));
    links
}

fn assert_answers(store: &Path, captures: &[Capture], least: u64) {
    let reader = Reader::new(Store::open(store).unwrap(), 16 << 20);
    let expected = answers(captures, least);
    let urls: BTreeSet<&String> = expected.keys().chain(expected.values().flatten()).collect();
    assert_eq!(reader.urls(), urls.len() as u64);
    for (page, links) in &expected {
        let uid = reader.uid(page).unwrap().expect("a page of the store");
        let got: BTreeSet<String> =
            reader.urls_of(&reader.out_links(uid, Window::ALWAYS).unwrap()).unwrap().into_iter().collect();
        assert_eq!(got, *links, "{page}");
    }
}

#[test]
fn rows_come_to_the_bytes_of_one_build() {
    for seed in 0..12 {
        let dir = tempfile::tempdir().unwrap();
        let (store, once) = (dir.path().join("store"), dir.path().join("once"));
        let partition_urls = if seed % 3 == 0 { 1 << 19 } else { 12 };
        let min_sources = if seed < 6 { 0 } else { 2 + seed % 5 };
        let said = Said { partition_urls, min_sources };
        let mut random = fastrand::Rng::with_seed(100 + seed);
        let all = captures(seed);
        let mut batches = vec![Vec::new(); 2 + random.usize(..4)];
        for capture in &all {
            let batch = random.usize(..batches.len());
            batches[batch].push(capture.clone());
        }
        let mut known = Vec::new();
        for (number, batch) in batches.iter().filter(|batch| !batch.is_empty()).enumerate() {
            let path = input(dir.path(), &format!("batch-{number}.jsonl"), batch);
            let workers = 1 + random.usize(..2);
            add(&store, path.clone(), workers, said);
            known.extend_from_slice(batch);
            assert_answers(&store, &known, min_sources);
            if random.bool() {
                merged(&store, Some(2));
                assert_answers(&store, &known, min_sources);
            }
            if number > 0 {
                let again = add(&store, path, workers, said);
                assert_eq!((again.counts.captures, again.counts.urls), (0, 0), "seed {seed}, batch {number}");
                assert_eq!(again.captures_stored, batch.len() as u64, "seed {seed}, batch {number}");
            }
        }
        merged(&store, None);
        add(&once, input(dir.path(), "all.jsonl", &all), 1, said);
        let (got, expected) = (row_bytes(&store), row_bytes(&once));
        assert!(partition_urls > 12 || expected.len() > 8, "{} files", expected.len());
        assert!(got.keys().eq(expected.keys()), "seed {seed}: {:?}, expected {:?}", got.keys(), expected.keys());
        expected.iter().for_each(|(name, content)| assert!(got[name] == *content, "seed {seed}: {name} differs"));
        // A removal keeps the size of partitions, and so does the merge after it.
        let partitions = |store: &Path| Store::open(store).unwrap().manifest().rows[0].partitions.len();
        let rule =
            Removal { select: Selection::Url(url(3)), removed_as: RemovedAs::Both, from: None, to: None, reason: None };
        let before = partitions(&store);
        remove(
            &RemoveOptions { run: RunOptions::new(&store), rules: vec![rule], keep_names: false },
            &Progress::default(),
        )
        .unwrap();
        merged(&store, None);
        assert!(partitions(&store) + 1 >= before, "seed {seed}: {} of {before}", partitions(&store));
    }
}

/// Returns rules for pages, for links and for both, some for a period.
fn rules(random: &mut fastrand::Rng) -> Vec<Removal> {
    let rule = |random: &mut fastrand::Rng| {
        let removed_as = [RemovedAs::Page, RemovedAs::Target, RemovedAs::Both][random.usize(..3)];
        let from = random.bool().then(|| 1_000_000_000 + random.i64(0..300) * 86_400);
        let to = from.map(|from| from + 100 * 86_400);
        Removal { select: Selection::Url(url(random.usize(..72))), removed_as, from, to, reason: None }
    };
    (0..4).map(|_| rule(random)).collect()
}

/// Returns the captures without the captures and links that rules take out.
fn without(captures: &[Capture], rules: &[Removal]) -> Vec<Capture> {
    let is_out = |number: usize, time: i64, means: fn(&Removal) -> bool| {
        let selects = |rule: &&Removal| rule.select == Selection::Url(url(number)) && means(rule);
        rules.iter().filter(selects).any(|rule| rule.covers(time))
    };
    let left = captures.iter().filter(|(page, time, _)| !is_out(*page, *time, Removal::of_pages));
    let links = |(page, time, links): &Capture| {
        let links = links.iter().filter(|&&link| !is_out(link, *time, Removal::of_targets));
        (*page, *time, links.copied().collect())
    };
    left.map(links).collect()
}

#[test]
fn what_is_held_and_taken_out_comes_to_the_bytes_of_a_build_without_it() {
    for seed in 0..10 {
        let dir = tempfile::tempdir().unwrap();
        let (store, once) = (dir.path().join("store"), dir.path().join("once"));
        let mut random = fastrand::Rng::with_seed(200 + seed);
        let said = Said { partition_urls: if seed % 3 == 0 { 1 << 19 } else { 12 }, min_sources: 3 + seed % 4 };
        let all = captures(300 + seed);
        let (mut known, mut out) = (Vec::new(), Vec::new());
        for (number, batch) in all.chunks(40).enumerate() {
            let path = input(dir.path(), &format!("batch-{number}.jsonl"), batch);
            add(&store, path, 1 + random.usize(..2), said);
            known.extend_from_slice(batch);
            if number % 2 == 1 {
                let rules = rules(&mut random);
                out.extend(rules.clone());
                let options = RemoveOptions { run: RunOptions::new(&store), rules, keep_names: false };
                remove(&options, &Progress::default()).unwrap();
                sound(&store);
            }
            if random.bool() {
                merged(&store, Some(2));
            }
            if random.u8(..3) == 0 {
                merged(&store, None);
            }
        }
        merged(&store, None);
        add(&once, input(dir.path(), "all.jsonl", &without(&known, &out)), 1, said);
        let (got, expected) = (row_bytes(&store), row_bytes(&once));
        assert!(expected.keys().any(|name| name.starts_with("held")), "seed {seed}: nothing is held");
        assert!(got.keys().eq(expected.keys()), "seed {seed}: {:?}, expected {:?}", got.keys(), expected.keys());
        expected.iter().for_each(|(name, content)| assert!(got[name] == *content, "seed {seed}: {name} differs"));
    }
}

#[test]
fn a_build_over_a_store_is_refused_unless_it_replaces_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let path = input(dir.path(), "one.jsonl", &captures(1));
    add(&store, path.clone(), 1, PLAIN);
    let mut again = BuildOptions::new(RunOptions::new(&store), vec![path]);
    let error = build(&again, &Progress::default()).unwrap_err();
    assert!(matches!(error, Error::StoreExists { epoch: 1, .. }), "{error}");
    again.replace = true;
    assert_eq!(build(&again, &Progress::default()).unwrap().epoch, 2);
    assert_answers(&store, &captures(1), 0);
}
/// What one record of a random crawl says. Digests are numbers from 1, in the order in which a store orders them.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Saying {
    /// A response with status 200: its digest or 0, and its links.
    Links(usize, BTreeSet<usize>),
    /// Another status, its digest, and the target of a redirect.
    Status(u16, usize, Option<usize>),
    /// Nothing is said of links.
    Unknown,
    Revisit(Reference),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Reference {
    /// Whether the record has no status. A record with the status 304 counts as one with 200.
    is_silent: bool,
    not_modified: bool,
    digest: usize,
    elsewhere: bool,
    referred: Option<i64>,
}

/// A record: page, second, what it says.
type Record = (usize, i64, Saying);
/// The status of a capture, and its links if they are known.
type Answer = (u16, Option<BTreeSet<String>>);

const START: i64 = 1_000_000_000;
const DAY: i64 = 86_400;
const SHA1S: [&str; 3] = [
    "sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "sha1:BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB",
    "sha1:CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC",
];

/// Returns digests in the order of the numbers that a store keeps of them.
fn digests_in_order() -> Vec<&'static str> {
    let dir = tempfile::tempdir().unwrap();
    let line = |(at, digest): (usize, &&str)| {
        format!("{{\"url\":\"{}\",\"ts\":{START},\"digest\":\"{digest}\",\"links\":[]}}\n", url(at))
    };
    let path = dir.path().join("digests.jsonl");
    fs::write(&path, SHA1S.iter().enumerate().map(line).collect::<String>()).unwrap();
    add(&dir.path().join("store"), path, 1, PLAIN);
    let reader = Reader::new(Store::open(dir.path().join("store")).unwrap(), 16 << 20);
    let kept = |at: usize| {
        let uid = reader.uid(&url(at)).unwrap().unwrap();
        reader.page_with_evidence(uid).unwrap().unwrap().1.digests[0]
    };
    let mut all: Vec<(u64, &str)> = SHA1S.iter().enumerate().map(|(at, &digest)| (kept(at), digest)).collect();
    all.sort_unstable();
    all.into_iter().map(|(_, digest)| digest).collect()
}

/// The numbers of links that are relative: they have other targets under other URLs.
const RELATIVE: std::ops::Range<usize> = 26..29;

/// Returns the URL of a link of a page.
fn link_of(page: usize, link: usize) -> String {
    if RELATIVE.contains(&link) { format!("http://h{}.example/{link}", page % 7) } else { url(link) }
}

fn line((page, time, saying): &Record, digests: &[&str]) -> String {
    let mut fields = vec![format!("\"url\":\"{}\",\"ts\":{time}", url(*page))];
    let mut digest = |digest: usize| {
        if let Some(at) = digest.checked_sub(1) {
            fields.push(format!("\"digest\":\"{}\"", digests[at]));
        }
    };
    let rest = match saying {
        Saying::Links(own, links) => {
            digest(*own);
            let text = |link: usize| if link < RELATIVE.start { url(link) } else { format!("/{link}") };
            let links: Vec<String> = links.iter().map(|&link| format!("\"{}\"", text(link))).collect();
            format!("\"links\":[{}]", links.join(","))
        }
        Saying::Status(status, own, target) => {
            digest(*own);
            let target = target.map(|target| format!(",\"redirect\":\"{}\"", url(target))).unwrap_or_default();
            format!("\"status\":{status}{target}")
        }
        Saying::Unknown => "\"status\":200".to_owned(),
        Saying::Revisit(Reference { is_silent, not_modified, digest: own, elsewhere, referred }) => {
            digest(*own);
            let status =
                if *is_silent { "" } else { ["\"status\":200,", "\"status\":304,"][usize::from(*not_modified)] };
            let mut of = Vec::new();
            if *not_modified {
                of.push("\"profile\":\"http://netpreserve.org/warc/1.1/revisit/server-not-modified\"".to_owned());
            }
            if *elsewhere {
                of.push("\"refers_to_target_uri\":\"http://elsewhere.example/\"".to_owned());
            }
            of.extend(referred.map(|time| format!("\"refers_to_date\":\"{}\"", format_digits(time))));
            format!("{status}\"revisit\":{{{}}}", of.join(","))
        }
    };
    fields.push(rest);
    format!("{{{}}}\n", fields.join(","))
}

impl Saying {
    fn random(random: &mut fastrand::Rng) -> Self {
        let links = |random: &mut fastrand::Rng| (0..random.usize(..4)).map(|_| 20 + random.usize(..9)).collect();
        match random.u8(..12) {
            0..4 => Self::Links(random.usize(..4), links(random)),
            4 => Self::Status(301, random.usize(..4), random.bool().then(|| 30 + random.usize(..3))),
            5 => Self::Status([404, 410, 503][random.usize(..3)], random.usize(..4), None),
            6 => Self::Unknown,
            _ => {
                let not_modified = random.u8(..3) == 0;
                let digest = random.usize(..4);
                let elsewhere = digest > 0 && !not_modified && random.u8(..3) == 0;
                let referred = (!elsewhere && random.bool()).then(|| START + random.i64(0..5) * DAY);
                // A 304 is never silent about its status.
                let is_silent = !not_modified && random.bool();
                Self::Revisit(Reference { is_silent, not_modified, digest, elsewhere, referred })
            }
        }
    }

    /// The status that the record itself gives.
    fn status(&self) -> Option<u16> {
        match self {
            Self::Links(..) | Self::Unknown => Some(200),
            Self::Status(status, ..) => Some(*status),
            Self::Revisit(reference) => (!reference.is_silent).then_some(200),
        }
    }
}

/// A second of a page, before the links of revisits are found.
struct Second {
    status: u16,
    /// The links of each digest; for a revisit, its digest without links.
    payloads: BTreeMap<usize, BTreeSet<usize>>,
    links: Option<BTreeSet<usize>>,
    reference: Option<Reference>,
    /// Links that a revisit has in addition: the targets of redirects of its second.
    more: BTreeSet<usize>,
}

/// Returns the captures of one page, by the rules of format.md, as slowly as they read.
fn captures_of(page: usize, records: &[Record]) -> BTreeMap<i64, (u16, Option<BTreeSet<usize>>)> {
    let mut seconds = BTreeMap::<i64, Second>::new();
    let times: BTreeSet<i64> = records.iter().filter(|record| record.0 == page).map(|record| record.1).collect();
    for time in times {
        let own: Vec<&Saying> = records.iter().filter(|it| (it.0, it.1) == (page, time)).map(|it| &it.2).collect();
        let least = own.iter().filter_map(|saying| saying.status()).min();
        let is_failure = least.is_some_and(|least| least >= 400);
        let counts = |saying: &&&Saying| saying.status().map_or(least.is_none(), |status| status < 400 || is_failure);
        let counted: Vec<&Saying> = own.iter().filter(counts).copied().collect();
        let mut payloads = BTreeMap::<usize, BTreeSet<usize>>::new();
        let (mut links, mut targets) = (BTreeSet::new(), BTreeSet::new());
        for saying in &counted {
            match saying {
                Saying::Links(digest, own) if least == Some(200) => {
                    links.extend(own);
                    payloads.entry(*digest).or_default().extend(own);
                }
                Saying::Status(status, digest, target) => {
                    targets.extend(target);
                    if least == Some(*status) {
                        payloads.entry(*digest).or_default().extend(target);
                    }
                }
                _ => {}
            }
        }
        let second = if payloads.is_empty() {
            let nothing =
                Reference { is_silent: false, not_modified: false, digest: 0, elsewhere: false, referred: None };
            let references = counted.iter().filter_map(|saying| match saying {
                Saying::Revisit(reference) => Some(reference.clone()),
                Saying::Unknown => Some(nothing.clone()),
                _ => None,
            });
            let key = |it: &Reference| {
                let names_nothing = !it.not_modified && it.digest == 0 && it.referred.is_none();
                (names_nothing, it.not_modified, it.digest, it.referred.is_none(), it.referred, it.elsewhere)
            };
            let first = references.min_by_key(key).unwrap();
            let reference = Some(Reference { is_silent: least.is_none(), ..first.clone() });
            let payloads = BTreeMap::from([(first.digest, BTreeSet::new())]);
            Second { status: 200, payloads, links: None, reference, more: targets }
        } else {
            links.extend(targets);
            Second { status: least.unwrap(), payloads, links: Some(links), reference: None, more: BTreeSet::new() }
        };
        seconds.insert(time, second);
    }
    // Links from captures of all URLs come first: other revisits may refer to the captures that have them.
    for second in seconds.values_mut() {
        if let Some(Reference { elsewhere: true, digest, .. }) = second.reference {
            let lent: Vec<&BTreeSet<usize>> = records
                .iter()
                .filter_map(|record| match &record.2 {
                    Saying::Links(own, links) if *own == digest => Some(links),
                    _ => None,
                })
                .collect();
            let links = lent.iter().copied().flatten().chain(&second.more).copied().collect();
            second.links = (!lent.is_empty()).then_some(links);
        }
    }
    let times: Vec<i64> = seconds.keys().copied().collect();
    let originals: BTreeSet<i64> = times.iter().copied().filter(|time| seconds[time].links.is_some()).collect();
    for &time in &times {
        let Second { reference: Some(reference), more, .. } = &seconds[&time] else { continue };
        let digest = reference.digest;
        if reference.elsewhere {
            continue;
        }
        let fits = |time: &&i64| reference.is_silent || seconds[time].status == 200;
        let by_digest = {
            let same = |at: &&i64| digest > 0 && seconds[at].payloads.contains_key(&digest) && fits(at);
            let before = originals.iter().filter(same).rfind(|&&at| at < time);
            before.or_else(|| originals.iter().filter(same).find(|&&at| at > time)).filter(|_| !reference.not_modified)
        };
        let referred = if reference.not_modified {
            times.iter().rfind(|&&at| at < time && seconds[&at].status == 200 && seconds[&at].links.is_some())
        } else {
            by_digest.or_else(|| originals.iter().filter(fits).find(|&&at| Some(at) == reference.referred))
        };
        if let Some(referred) = referred {
            let Second { status, links, payloads, reference, .. } = &seconds[referred];
            let of_digest = by_digest.filter(|_| reference.is_none()).map(|_| payloads[&digest].clone());
            let links = of_digest.or_else(|| links.clone()).map(|links| links.union(more).copied().collect());
            let status = *status;
            let second = seconds.get_mut(&time).unwrap();
            (second.status, second.links) = (status, links);
        }
    }
    let answer = |(time, second): (i64, Second)| {
        let links = if second.status >= 400 { Some(BTreeSet::new()) } else { second.links };
        (time, (second.status, links))
    };
    seconds.into_iter().map(answer).collect()
}

/// Asserts that a store has the captures of these records.
fn assert_captures(store: &Path, records: &[Record], what: &str) {
    let reader = Reader::new(Store::open(store).unwrap(), 16 << 20);
    for page in records.iter().map(|record| record.0).collect::<BTreeSet<_>>() {
        let text = |links: BTreeSet<usize>| links.into_iter().map(|link| link_of(page, link)).collect();
        let expected = captures_of(page, records).into_iter();
        let expected: BTreeMap<i64, Answer> =
            expected.map(|(time, (status, links))| (time, (status, links.map(text)))).collect();
        let uid = reader.uid(&url(page)).unwrap().unwrap();
        let (kept, _) = reader.page_with_evidence(uid).unwrap().unwrap();
        let mut got = BTreeMap::<i64, Answer>::new();
        for (at, &time) in (0u32..).zip(&kept.timestamps) {
            let present = presence::in_any(&kept.changes, kept.links.len(), at, at);
            let links = if kept.is_blank(at) { Vec::new() } else { present };
            let links = links.into_iter().map(|link| reader.url(kept.links[link as usize]).unwrap());
            got.insert(time, (kept.status(at).code(), kept.is_known(at).then(|| links.collect())));
        }
        assert_eq!(got, expected, "{what}: page {page} of {records:?}");
    }
}

/// Returns few records in few seconds of few pages.
fn records(random: &mut fastrand::Rng, digests: Digests) -> Vec<Record> {
    let days = random.i64(2..6);
    let one =
        |random: &mut fastrand::Rng| (random.usize(..2), START + random.i64(0..days) * DAY, Saying::random(random));
    let mut all: Vec<Record> = (0..3 + random.usize(..8)).map(|_| one(random)).collect();
    all.retain(|record| match &record.2 {
        Saying::Revisit(reference) if digests == Digests::None => reference.not_modified || reference.digest == 0,
        _ => true,
    });
    all
}

#[test]
fn records_of_one_second_mean_the_same_in_every_order() {
    let order = digests_in_order();
    let seeds = std::env::var("WEBSTRATA_CRAWLS").ok().and_then(|text| text.parse().ok()).unwrap_or(24);
    // In the last two, a record is displaced to which links were lent, or which displaces a third one.
    for seed in (0..seeds).chain([155, 159]) {
        let dir = tempfile::tempdir().unwrap();
        let mut random = fastrand::Rng::with_seed(seed);
        let digests = if seed % 3 == 0 { Digests::None } else { Digests::All };
        // The slow answer does not know which links are held; the bytes show whether they come back.
        let min_sources = if seed % 4 == 3 { 2 } else { 0 };
        let assert_captures = |store: &Path, records: &[Record], what: &str| {
            if min_sources == 0 {
                assert_captures(store, records, what);
            }
        };
        let all = records(&mut random, digests);
        if all.is_empty() {
            continue;
        }
        let add = |store: &Path, name: &str, records: &[Record]| {
            let path = dir.path().join(name);
            fs::write(&path, records.iter().map(|record| line(record, &order)).collect::<String>()).unwrap();
            let mut options = BuildOptions::new(RunOptions::new(store), vec![path]);
            options.update = store.exists();
            options.kinds = (!options.update).then(|| LinkKinds { redirects: true, ..LinkKinds::default() });
            options.digests = (!options.update).then_some(digests);
            options.min_sources = (!options.update).then_some(min_sources);
            let report = build(&options, &Progress::default()).unwrap();
            assert_eq!(report.tally.damaged(), 0, "{:?}", report.tally);
            sound(store);
        };
        let once = dir.path().join("once");
        add(&once, "all.jsonl", &all);
        assert_captures(&once, &all, &format!("seed {seed}, one build"));
        for round in 0..2 {
            let store = dir.path().join(format!("store-{round}"));
            let mut shuffled = all.clone();
            random.shuffle(&mut shuffled);
            let mut done = 0;
            while done < shuffled.len() {
                let batch = done..shuffled.len().min(done + 1 + random.usize(..3));
                done = batch.end;
                add(&store, "batch.jsonl", &shuffled[batch]);
                let what = format!("seed {seed}, round {round}, {done} of {shuffled:?}");
                assert_captures(&store, &shuffled[..done], &what);
                if random.u8(..4) == 0 {
                    merged(&store, Some(2));
                    assert_captures(&store, &shuffled[..done], &format!("{what}, merged"));
                }
            }
            merged(&store, None);
            let (got, expected) = (row_bytes(&store), row_bytes(&once));
            assert!(got.keys().eq(expected.keys()), "seed {seed}: {:?}, expected {:?}", got.keys(), expected.keys());
            let what = format!("seed {seed}, round {round}: {shuffled:?}");
            expected.iter().for_each(|(name, content)| assert!(got[name] == *content, "{name} differs: {what}"));
        }
    }
}
