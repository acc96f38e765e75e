//! Compares gone pages, the links to gone pages, and deaths of pages by period with the oracle: on stores of several
//! rows, and on generated crawls with known deaths.
//!
//! Real sites: `tests/interop/dates.py`.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use webstrata_analysis::{Analysis, AnalyzeOptions, AnalyzeReport, Dates, Fold, NodeRule, Sheet, SheetColumn, analyze};
use webstrata_datasets::{Capture, CaptureReader, GenerateOptions, Generator, Tally};
use webstrata_engine::{Progress, RunOptions};
use webstrata_layers::{AsOf, Failures, RangeLength, Window, parse_time};
use webstrata_pipeline::build;
use webstrata_tests::oracle::{Ending, Oracle, Time, When};
use webstrata_tests::rows::{Rows, Shape};
use webstrata_tests::stores;

const SHAPE: Shape = Shape { rows: 3, pages: 14, captures: 50, links: 6, in_order: false };

/// The columns of a row by host, without the first column.
const COLUMNS: [&str; 9] =
    ["pages", "gone", "missing", "back", "links", "dead_links", "unknown_links", "linking_pages", "broken_pages"];

/// The captures that count as of a time: the time and the status of each.
fn counting(oracle: &Oracle, page: &str, at: Time, ending: Ending) -> Vec<(Time, u16)> {
    let all = oracle.captures(page).into_iter().map(|capture| capture.0).zip(oracle.statuses(page));
    all.filter(|&(time, status)| time <= at && ending.counts(status)).collect()
}

/// The counts as of a time, by host, in the order of [`COLUMNS`].
fn rot_of(oracle: &Oracle, at: Time, age: Time, ending: Ending) -> BTreeMap<String, [u64; COLUMNS.len()]> {
    let latest = |page: &str| {
        let captures = counting(oracle, page, at, ending);
        captures.last().filter(|capture| at - capture.0 <= age).map(|capture| capture.1)
    };
    let mut hosts: BTreeMap<String, [u64; COLUMNS.len()]> = BTreeMap::new();
    for page in oracle.urls() {
        let Some(status) = latest(page) else { continue };
        let captures = counting(oracle, page, at, ending);
        let good = captures.iter().position(|capture| capture.1 < 400);
        let was_gone = good.is_some_and(|good| captures[good..].iter().any(|capture| capture.1 >= 400));
        let links = oracle.out_links(page, When::AsOfBy(at, age, ending));
        let count = |dead: bool| {
            let lead =
                |link: &&&str| if dead { latest(link).is_some_and(|s| s >= 400) } else { latest(link).is_none() };
            links.iter().filter(lead).count() as u64
        };
        let is = u64::from;
        let counts = [
            1,
            is(status >= 400 && good.is_some()),
            is(status >= 400 && good.is_none()),
            is(status < 400 && was_gone),
            links.len() as u64,
            count(true),
            count(false),
            is(!links.is_empty()),
            is(count(true) > 0),
        ];
        let host = Fold::Host.name_of(page).into_owned();
        hosts.entry(host).or_default().iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    hosts
}

fn report(store: &Path, analysis: Analysis, dates: Dates, workers: usize) -> AnalyzeReport {
    let run = RunOptions { workers, ..RunOptions::new(store) };
    let options = AnalyzeOptions { run, analysis, dates, nodes: NodeRule::OfDate, out: None, urls: true };
    analyze(&options, io::sink(), &Progress::default()).unwrap()
}

fn counts<'a>(sheet: &'a Sheet, name: &str) -> &'a [u64] {
    match &sheet.columns.iter().find(|column| column.0 == name).unwrap().1 {
        SheetColumn::Counts(counts) => counts,
        other => panic!("{name} has {other:?}"),
    }
}

fn check_rot(what: &str, store: &Path, oracle: &Oracle, (at, age, ending): (Time, Time, Ending), workers: usize) {
    let failures = match ending {
        Ending::Gone => Failures::End,
        Ending::None => Failures::Ignore,
        Ending::Each => Failures::All,
    };
    let window = Window::AsOf(AsOf { failures, ..AsOf::new(at).within(Some(age)) });
    let report = report(store, Analysis::Rot(Some(Fold::Host)), Dates::One(window), workers);
    let (date, want) = (&report.dates[0], rot_of(oracle, at, age, ending));
    let sheet = date.sheet.as_ref().unwrap();
    let SheetColumn::Texts(hosts) = &sheet.columns[0].1 else { panic!("hosts are texts") };
    assert_eq!(hosts.iter().collect::<Vec<_>>(), want.keys().collect::<Vec<_>>(), "{what}");
    let facts: BTreeMap<&str, f64> = date.facts.iter().map(|fact| (&*fact.name, fact.value)).collect();
    for (column, name) in COLUMNS.into_iter().enumerate() {
        let of_hosts: Vec<u64> = want.values().map(|counts| counts[column]).collect();
        assert_eq!(counts(sheet, name), of_hosts, "{what}: {name}");
        assert_eq!(facts[&*name.replace('_', " ")], of_hosts.iter().sum::<u64>() as f64, "{what}: {name}");
    }
    let gone = want.values().filter(|counts| counts[1] > 0 && counts[1] + counts[2] == counts[0]).count();
    assert_eq!((facts["hosts"], facts["hosts gone"]), (want.len() as f64, gone as f64), "{what}");
}

/// Checks rot at some dates by each rule for failures, and growth and deaths by month.
fn check(what: &str, store: &Path, oracle: &Oracle) {
    let times: Vec<Time> = oracle.times().into_iter().collect();
    for (at, workers) in [(times[0] - 1, 1), (times[times.len() / 2], 3), (times[times.len() - 1], 2)] {
        for (age, ending) in
            [(i64::MAX, Ending::Gone), (i64::MAX, Ending::Each), (i64::MAX, Ending::None), (40 * 86_400, Ending::Gone)]
        {
            check_rot(&format!("{what} at {at}, {age}, {ending:?}"), store, oracle, (at, age, ending), workers);
        }
    }
    // Each date of a series has the result of this date alone.
    let (length, max_age, failures) = (RangeLength::Month, None, Failures::End);
    let every = Dates::Every { length, from: i64::MIN, to: i64::MAX, max_age, failures };
    let together = report(store, Analysis::Rot(None), every, 3);
    for date in &together.dates {
        let alone = report(store, Analysis::Rot(None), Dates::One(Window::as_of(date.at.unwrap())), 1);
        assert_eq!((&date.facts, &date.top), (&alone.dates[0].facts, &alone.dates[0].top), "{what}");
    }
    check_deaths(what, store, oracle, length);
}

/// Checks the deaths, returns and living pages by month.
fn check_deaths(what: &str, store: &Path, oracle: &Oracle, length: RangeLength) {
    let mut deaths: BTreeMap<Time, [u64; 2]> = BTreeMap::new();
    for page in oracle.urls() {
        let mut was: Option<bool> = None;
        for (time, status) in counting(oracle, page, i64::MAX, Ending::Gone) {
            let is_alive = status < 400;
            let month = deaths.entry(length.start(time)).or_default();
            month[0] += u64::from(was == Some(true) && !is_alive);
            month[1] += u64::from(was == Some(false) && is_alive);
            // A page that was never there does not come back.
            was = if is_alive { Some(true) } else { was.map(|_| false) };
        }
    }
    let growth = report(store, Analysis::Growth(length), Dates::One(Window::ALWAYS), 2);
    let sheet = growth.dates[0].sheet.as_ref().unwrap();
    let SheetColumn::Times(periods) = &sheet.columns[0].1 else { panic!("periods are times") };
    for (at, period) in periods.iter().enumerate() {
        let [lost, back] = deaths.get(period).copied().unwrap_or_default();
        let end = When::AsOf(length.end(*period));
        let there = oracle.urls().into_iter().filter(|page| oracle.is_alive(page, end)).count() as u64;
        let unknown = oracle.urls().into_iter().filter(|page| oracle.is_unknown(page, end)).count() as u64;
        let links = oracle.urls().into_iter().map(|page| oracle.out_links(page, end).len() as u64).sum();
        let got = ["pages_died", "pages_returned", "living_pages", "unknown_pages", "links"]
            .map(|name| counts(sheet, name)[at]);
        assert_eq!(got, [lost, back, there, unknown, links], "{what}: month {period}");
    }
    let mortality = report(store, Analysis::Mortality, Dates::One(Window::ALWAYS), 2);
    let facts: BTreeMap<&str, f64> = mortality.dates[0].facts.iter().map(|fact| (&*fact.name, fact.value)).collect();
    let sum = |at: usize| deaths.values().map(|month| month[at]).sum::<u64>() as f64;
    assert_eq!((facts["pages died"], facts["pages returned"]), (sum(0), sum(1)), "{what}");
}

#[test]
fn rows_with_failures() {
    for seed in 0..6 {
        let (directory, rows) = (tempfile::tempdir().unwrap(), Rows::random(seed, SHAPE));
        rows.write(&directory.path().join("store"), 3, RangeLength::Month);
        check(&format!("seed {seed}"), &directory.path().join("store"), &rows.oracle());
    }
}

#[test]
fn generated_crawls_with_known_deaths() {
    for crawl in ["uk:occurrences=60000,months=18,deaths=300", "irregular:occurrences=30000,months=30,deaths=2000"] {
        let generated: GenerateOptions = crawl.parse().unwrap();
        let (mut reader, mut oracle, mut capture) = (Generator::new(generated), Oracle::default(), Capture::default());
        let mut failed = BTreeSet::new();
        while reader.read(&mut capture, &mut Tally::default()).unwrap() {
            match capture.status {
                Some(status) => {
                    failed.insert(status);
                    oracle.add_failure(status, &capture.url, capture.time);
                }
                None => oracle.add(&capture.url, capture.time, capture.links.iter()),
            }
        }
        assert_eq!(failed, BTreeSet::from([404, 410, 503]));
        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join("store");
        let mut options = stores::options(&store, Vec::new());
        options.generate = vec![generated];
        build(&options, &Progress::default()).unwrap();
        assert!(oracle.times().contains(&parse_time("20060501", false).unwrap()) || crawl.starts_with("irregular"));
        check(crawl, &store, &oracle);
    }
}
