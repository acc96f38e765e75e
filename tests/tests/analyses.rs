//! Compares analyses of small stores of several rows with slow analyses over the oracle's links, with one worker and
//! with three.
//!
//! Large graphs and implementations by other people: `tests/interop/analyses.py`.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use webstrata_analysis::Error;
use webstrata_analysis::{Analysis, AnalyzeOptions, Dates, Fold, Iterations, NodeRule, Target, analyze};
use webstrata_engine::{Progress, RunOptions};
use webstrata_layers::{Failures, Links, Location, RangeLength, Reader, Store, Uid, Window};
use webstrata_tests::oracle::{Oracle, When};
use webstrata_tests::rows::{Rows, Shape};

const SHAPE: Shape = Shape { rows: 3, pages: 12, captures: 30, links: 6, in_order: false };
const ITERATIONS: Iterations = Iterations { most: 2000, tolerance: 1e-14 };

/// A store and its oracle.
struct Setting {
    directory: tempfile::TempDir,
    oracle: Oracle,
    /// URLs by UID.
    urls: Vec<String>,
}

/// The columns of a result, by name, as texts.
type Table = BTreeMap<String, Vec<String>>;

impl Setting {
    fn random(seed: u64) -> Self {
        Self::of(&Rows::random(seed, SHAPE).with_cut(seed))
    }

    fn of(rows: &Rows) -> Self {
        let directory = tempfile::tempdir().unwrap();
        rows.write(&directory.path().join("store"), 3, RangeLength::Month);
        let reader = Reader::new(Store::open(directory.path().join("store").as_path()).unwrap(), 1 << 20);
        let urls = Uid::each(Uid::below(reader.urls())).map(|uid| reader.url(uid).unwrap()).collect();
        Self { oracle: rows.oracle(), urls, directory }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    fn analyze(&self, analysis: Analysis, dates: Dates, workers: usize) -> Table {
        let out = self.path("values.csv");
        analyze(&self.options(analysis, dates, workers, Some(&out)), io::sink(), &Progress::default()).unwrap();
        read(&out)
    }

    /// The result for the nodes of the date only, with URLs.
    fn analyze_dated(&self, analysis: Analysis, dates: Dates, workers: usize) -> Table {
        let out = self.path("values.csv");
        let options = self.options(analysis, dates, workers, Some(&out));
        let options = AnalyzeOptions { nodes: NodeRule::OfDate, urls: true, ..options };
        analyze(&options, io::sink(), &Progress::default()).unwrap();
        read(&out)
    }

    fn options(&self, analysis: Analysis, dates: Dates, workers: usize, out: Option<&Path>) -> AnalyzeOptions {
        let store: Location = self.path("store").into();
        let run = RunOptions { store, workers, memory_max: 1 << 30, spill: None, cluster: None };
        let out = out.map(|path| Target::File(path.to_owned()));
        AnalyzeOptions { run, analysis, dates, nodes: NodeRule::All, out, urls: false }
    }

    /// The links of each page in a window, by UID.
    fn links(&self, when: When) -> Vec<BTreeSet<usize>> {
        let uids: BTreeMap<&str, usize> = self.urls.iter().enumerate().map(|(uid, url)| (url.as_str(), uid)).collect();
        let links = |url: &String| self.oracle.out_links(url, when).into_iter().map(|link| uids[link]).collect();
        self.urls.iter().map(links).collect()
    }
}

fn read(path: &Path) -> Table {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    names
        .iter()
        .enumerate()
        .map(|(at, name)| ((*name).to_owned(), rows.iter().map(|row| row[at].to_owned()).collect()))
        .collect()
}

fn counts(table: &Table, name: &str) -> Vec<usize> {
    table[name].iter().map(|text| text.parse().unwrap()).collect()
}

fn reals(table: &Table, name: &str) -> Vec<f64> {
    table[name].iter().map(|text| text.parse().unwrap()).collect()
}

fn assert_close(what: &str, got: &[f64], want: &[f64], error: f64) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (uid, (got, want)) in got.iter().zip(want).enumerate() {
        assert!((got - want).abs() <= error, "{what} of {uid}: {got}, expected {want}");
    }
}

/// The graph at the end of every period.
fn every(length: RangeLength, from: i64) -> Dates {
    Dates::Every { length, from, to: i64::MAX, max_age: None, failures: Failures::End }
}

/// Visits several random stores, each with several windows, and with one worker and three.
fn each(mut visit: impl FnMut(&Setting, When, Window, usize)) {
    for seed in 0..6 {
        let setting = Setting::random(seed);
        let times: Vec<i64> = setting.oracle.times().into_iter().collect();
        let (middle, last) = (times[times.len() / 2], times[times.len() - 1]);
        for (when, window) in [
            (When::AsOf(middle), Window::as_of(middle)),
            (When::Seen(middle, last), Window::Seen { from: middle, to: last }),
            (When::AsOf(times[0] - 1), Window::as_of(times[0] - 1)),
        ] {
            [1, 3].into_iter().for_each(|workers| visit(&setting, when, window, workers));
        }
    }
}

/// The distance in links from each URL to each URL; `None` if there is no path.
fn distances(links: &[BTreeSet<usize>]) -> Vec<Vec<Option<usize>>> {
    let from = |start: usize| {
        let mut distances = vec![None; links.len()];
        let (mut reached, mut distance) = (BTreeSet::from([start]), 0);
        while !reached.is_empty() {
            reached.iter().for_each(|&uid| distances[uid] = Some(distance));
            reached =
                reached.iter().flat_map(|&uid| &links[uid]).copied().filter(|&uid| distances[uid].is_none()).collect();
            distance += 1;
        }
        distances
    };
    (0..links.len()).map(from).collect()
}

#[test]
fn degrees_components_and_triangles() {
    each(|setting, when, window, workers| {
        let links = setting.links(when);
        let found = |analysis| setting.analyze(analysis, Dates::One(window), workers);
        let degrees = found(Analysis::Degrees);
        assert_eq!(counts(&degrees, "uid"), (0..links.len()).collect::<Vec<_>>());
        assert_eq!(counts(&degrees, "out_degree"), links.iter().map(BTreeSet::len).collect::<Vec<_>>());
        let into = |uid: usize| links.iter().filter(|links| links.contains(&uid)).count();
        assert_eq!(counts(&degrees, "in_degree"), (0..links.len()).map(into).collect::<Vec<_>>());

        let strong = distances(&links);
        let least =
            |uid: usize| (0..links.len()).find(|&other| strong[uid][other].is_some() && strong[other][uid].is_some());
        let want: Vec<usize> = (0..links.len()).map(|uid| least(uid).unwrap()).collect();
        let scc = found(Analysis::Scc);
        assert_eq!(counts(&scc, "component"), want);
        let size = |least: &usize| want.iter().filter(|other| *other == least).count();
        assert_eq!(counts(&scc, "size"), want.iter().map(size).collect::<Vec<_>>());

        let mut both = links.clone();
        (0..links.len()).for_each(|uid| links[uid].iter().for_each(|&link| _ = both[link].insert(uid)));
        let weak = distances(&both);
        let least = |uid: usize| (0..links.len()).find(|&other| weak[uid][other].is_some()).unwrap();
        assert_eq!(counts(&found(Analysis::Wcc), "component"), (0..links.len()).map(least).collect::<Vec<_>>());

        let triangles = |uid: usize| {
            let near: Vec<usize> = both[uid].iter().copied().filter(|&other| other != uid).collect();
            let pairs = near.iter().enumerate().flat_map(|(at, &a)| near[at + 1..].iter().map(move |&b| (a, b)));
            pairs.filter(|(a, b)| both[*a].contains(b)).count()
        };
        assert_eq!(
            counts(&found(Analysis::Triangles), "triangles"),
            (0..links.len()).map(triangles).collect::<Vec<_>>()
        );
    });
}

#[test]
fn ranks_hubs_and_centralities() {
    each(|setting, when, window, workers| {
        let links = setting.links(when);
        let all = links.len() as f64;
        let found = |analysis| setting.analyze(analysis, Dates::One(window), workers);
        let mut ranks = vec![1.0 / all; links.len()];
        for _ in 0..500 {
            let lost: f64 = ranks.iter().zip(&links).filter(|(_, links)| links.is_empty()).map(|(rank, _)| rank).sum();
            let mut next = vec![0.15 / all + 0.85 * lost / all; links.len()];
            for (uid, own) in links.iter().enumerate() {
                own.iter().for_each(|&link| next[link] += 0.85 * ranks[uid] / own.len() as f64);
            }
            ranks = next;
        }
        assert_close("pagerank", &reals(&found(Analysis::PageRank(0.85, ITERATIONS)), "pagerank"), &ranks, 1e-12);

        // The random walk of SALSA: forward along a link, back along another, from a uniform distribution over
        // authorities.
        let into: Vec<f64> =
            (0..links.len()).map(|uid| links.iter().filter(|links| links.contains(&uid)).count() as f64).collect();
        let linked = into.iter().filter(|&&count| count > 0.0).count() as f64;
        let mut authorities: Vec<f64> =
            into.iter().map(|&count| if count > 0.0 { 1.0 / linked } else { 0.0 }).collect();
        let mut hubs = vec![0.0; links.len()];
        for _ in 0..3000 {
            hubs = links.iter().map(|own| own.iter().map(|&link| authorities[link] / into[link]).sum()).collect();
            let mut next = vec![0.0; links.len()];
            for (hub, own) in hubs.iter().zip(&links) {
                own.iter().for_each(|&link| next[link] += hub / own.len() as f64);
            }
            authorities = next;
        }
        let salsa = found(Analysis::Salsa);
        assert_close("salsa", &reals(&salsa, "authority"), &authorities, 1e-9);
        // Hubs start uniformly, too. A component has the share of its hubs among all hubs, and the walk divides this
        // share.
        assert_close(
            "hubs that have links",
            &[reals(&salsa, "hub").iter().sum()],
            &[f64::from(u8::from(linked > 0.0))],
            1e-12,
        );
        for (hub, (got, own)) in hubs.iter().zip(reals(&salsa, "hub").iter().zip(&links)) {
            assert_eq!(*got > 0.0, !own.is_empty(), "{hub}");
        }

        let mut hubs = vec![1.0; links.len()];
        let mut authorities = vec![0.0; links.len()];
        for _ in 0..4000 {
            authorities.fill(0.0);
            for (hub, own) in hubs.iter().zip(&links) {
                own.iter().for_each(|&link| authorities[link] += hub);
            }
            let sum: f64 = authorities.iter().sum::<f64>().max(1e-300);
            authorities.iter_mut().for_each(|value| *value /= sum);
            hubs = links.iter().map(|own| own.iter().map(|&link| authorities[link]).sum()).collect();
            let sum: f64 = hubs.iter().sum::<f64>().max(1e-300);
            hubs.iter_mut().for_each(|value| *value /= sum);
        }
        let hits = found(Analysis::Hits(Iterations { most: 4000, tolerance: 1e-15 }));
        assert_close("hubs", &reals(&hits, "hub"), &hubs, 1e-6);
        assert_close("authorities", &reals(&hits, "authority"), &authorities, 1e-6);

        let distances = distances(&links);
        let harmonic = |uid: usize| {
            (0..links.len())
                .filter_map(|other| distances[other][uid].filter(|&far| far > 0))
                .map(|far| 1.0 / far as f64)
                .sum()
        };
        let want: Vec<f64> = (0..links.len()).map(harmonic).collect();
        assert_close("harmonic", &reals(&found(Analysis::Harmonic(14)), "harmonic"), &want, 0.15);
    });
}

#[test]
fn many_dates_at_once_are_each_date_alone() {
    for seed in 10..14 {
        let setting = Setting::random(seed);
        for analysis in [Analysis::Degrees, Analysis::Wcc, Analysis::Scc, Analysis::PageRank(0.85, ITERATIONS)] {
            for workers in [1, 3] {
                let every = every(RangeLength::Days(20), i64::MIN);
                let together = setting.analyze(analysis, every, workers);
                let (name, ends) =
                    (together.keys().find(|name| !["at", "uid"].contains(&name.as_str())).unwrap(), &together["at"]);
                assert!(ends[0] < ends[ends.len() - 1]);
                for (row, (end, value)) in ends.iter().zip(&together[name]).enumerate().step_by(setting.urls.len()) {
                    let at = webstrata_layers::parse_time(end, true).unwrap();
                    let alone = setting.analyze(analysis, Dates::One(Window::as_of(at)), 1);
                    let got = together[name][row..row + setting.urls.len()].iter().map(|text| text.parse().unwrap());
                    assert_close(analysis.name(), &got.collect::<Vec<f64>>(), &reals(&alone, name), 1e-9);
                    assert_eq!(value, &together[name][row]);
                }
            }
        }
    }
}

/// The rows of a table by date and URL. Components are named by UIDs in the table, and by all their URLs here.
fn by_url(table: &Table) -> BTreeMap<(String, String), Vec<String>> {
    let members = |component: &String| -> String {
        let all = table["component"].iter().zip(&table["url"]).filter(|(other, _)| *other == component);
        all.map(|(_, url)| url.as_str()).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(" ")
    };
    let mut rows = BTreeMap::new();
    for (at, url) in table["url"].iter().enumerate() {
        let date = table.get("at").map_or(String::new(), |dates| dates[at].clone());
        let names = table.keys().filter(|name| !["uid", "url", "at"].contains(&name.as_str()));
        let value =
            |name: &String| if name == "component" { members(&table[name][at]) } else { table[name][at].clone() };
        rows.insert((date, url.clone()), names.map(value).collect());
    }
    rows
}

fn assert_alike(
    what: &str,
    got: &BTreeMap<(String, String), Vec<String>>,
    want: &BTreeMap<(String, String), Vec<String>>,
) {
    assert_eq!(got.keys().collect::<Vec<_>>(), want.keys().collect::<Vec<_>>(), "{what}");
    for (row, values) in got {
        for (got, want) in values.iter().zip(&want[row]) {
            let near = || (got.parse::<f64>().unwrap() - want.parse::<f64>().unwrap()).abs() <= 1e-9;
            assert!(got == want || near(), "{what} of {row:?}: {got}, expected {want}");
        }
    }
}

/// The graph as of a date is equal to the graph of a store without captures after this date.
#[test]
fn later_captures_change_nothing() {
    const DATED: [Analysis; 9] = [
        Analysis::Degrees,
        Analysis::PageRank(0.85, ITERATIONS),
        Analysis::Hits(ITERATIONS),
        Analysis::Salsa,
        Analysis::Scc,
        Analysis::Wcc,
        Analysis::Harmonic(8),
        Analysis::Triangles,
        Analysis::Locality,
    ];
    for seed in 50..54 {
        let rows = Rows::random(seed, SHAPE).with_cut(seed);
        let store = Setting::of(&rows);
        let times: Vec<i64> = store.oracle.times().into_iter().collect();
        for time in [times[times.len() / 3], times[times.len() * 2 / 3]] {
            let mut until = rows.clone();
            until.rows.iter_mut().for_each(|row| row.retain(|capture, _| capture.1 <= time));
            until.bare.clone_from(&vec![BTreeSet::new(); rows.bare.len()]);
            let until = Setting::of(&until);
            let (as_of, seen) =
                (Dates::One(Window::as_of(time)), Dates::One(Window::Seen { from: i64::MIN, to: time }));
            for analysis in DATED {
                let what = format!("seed {seed}, {analysis:?} at {time}");
                let got = by_url(&store.analyze_dated(analysis, as_of, 3));
                let nodes = store.oracle.nodes(When::AsOf(time));
                assert_eq!(got.keys().map(|row| row.1.as_str()).collect::<BTreeSet<_>>(), nodes, "{what}");
                assert_alike(&what, &got, &by_url(&until.analyze_dated(analysis, as_of, 1)));
            }
            for analysis in [Analysis::Mortality, Analysis::Churn] {
                let (got, want) = (store.analyze_dated(analysis, seen, 3), until.analyze_dated(analysis, seen, 1));
                assert_alike(&format!("seed {seed}, {analysis:?} to {time}"), &by_url(&got), &by_url(&want));
            }
            let menus = |setting: &Setting| {
                let table = setting.analyze_dated(Analysis::Menus(0.5, 2), as_of, 1);
                let columns = ["directory", "menu", "pages", "pages_with", "url"].map(|name| table[name].clone());
                let row = |at: usize| columns.each_ref().map(|column| column[at].clone());
                (0..columns[0].len()).map(row).collect::<BTreeSet<_>>()
            };
            assert_eq!(menus(&store), menus(&until), "seed {seed}: menus at {time}");
            let folded = Analysis::Folded(Fold::Host, RangeLength::Month);
            assert_eq!(store.analyze(folded, seen, 1), until.analyze(folded, seen, 3));
        }
        // Each date of a series of dates.
        let together =
            store.analyze_dated(Analysis::PageRank(0.85, ITERATIONS), every(RangeLength::Days(20), i64::MIN), 3);
        let together = by_url(&together);
        for end in together.keys().map(|row| row.0.clone()).collect::<BTreeSet<_>>() {
            let time = webstrata_layers::parse_time(&end, true).unwrap();
            let alone =
                by_url(&store.analyze_dated(Analysis::PageRank(0.85, ITERATIONS), Dates::One(Window::as_of(time)), 1));
            let alone = alone.into_iter().map(|((_, url), values)| ((end.clone(), url), values)).collect();
            let this_end =
                together.iter().filter(|(row, _)| row.0 == end).map(|(row, values)| (row.clone(), values.clone()));
            assert_alike(&format!("seed {seed} at {end}"), &this_end.collect(), &alone);
        }
    }
}

#[test]
fn links_between_hosts_by_period() {
    for seed in 20..26 {
        let setting = Setting::random(seed);
        for (fold, length, workers) in [(Fold::Host, RangeLength::Month, 1), (Fold::Prefix(1), RangeLength::Days(9), 3)]
        {
            let table = setting.analyze(Analysis::Folded(fold, length), Dates::One(Window::ALWAYS), workers);
            // By period, source and target: the pages, the links, the captures, the occurrences.
            let mut want: BTreeMap<(i64, String, String), [BTreeSet<String>; 4]> = BTreeMap::new();
            for url in &setting.urls {
                for (time, _) in setting.oracle.captures(url) {
                    for link in setting.oracle.out_links(url, When::Seen(time, time)) {
                        let names =
                            (length.start(time), fold.name_of(url).into_owned(), fold.name_of(link).into_owned());
                        let sets = want.entry(names).or_default();
                        sets[0].insert(url.clone());
                        sets[1].insert(format!("{url} {link}"));
                        sets[2].insert(format!("{url} {time}"));
                        sets[3].insert(format!("{url} {link} {time}"));
                    }
                }
            }
            let periods: Vec<i64> =
                table["period"].iter().map(|text| webstrata_layers::parse_time(text, false).unwrap()).collect();
            let pairs = periods.into_iter().zip(table["src"].iter().cloned().zip(table["dst"].iter().cloned()));
            let pairs: Vec<_> = pairs.map(|(period, (src, dst))| (period, src, dst)).collect();
            assert_eq!(pairs, want.keys().cloned().collect::<Vec<_>>());
            for (at, name) in ["pages", "links", "captures", "occurrences"].into_iter().enumerate() {
                assert_eq!(
                    counts(&table, name),
                    want.values().map(|sets| sets[at].len()).collect::<Vec<_>>(),
                    "{name}"
                );
            }
        }
    }
}

#[test]
fn workers_find_the_same() {
    for seed in 30..34 {
        let setting = Setting::random(seed);
        for analysis in [
            Analysis::Mortality,
            Analysis::Churn,
            Analysis::Locality,
            Analysis::Growth(RangeLength::Month),
            Analysis::Menus(0.5, 2),
            Analysis::Harmonic(6),
        ] {
            let alone = setting.analyze(analysis, Dates::One(Window::ALWAYS), 1);
            assert!(!alone.is_empty());
            assert_eq!(setting.analyze(analysis, Dates::One(Window::ALWAYS), 4), alone, "{analysis:?}");
        }
    }
}

#[test]
fn what_cannot_be_done_is_said_before_anything_is_read() {
    let setting = Setting::random(40);
    let mut options = setting.options(Analysis::Harmonic(14), Dates::One(Window::ALWAYS), 2, None);
    options.run.memory_max = 1 << 20;
    let error = analyze(&options, io::sink(), &Progress::default()).unwrap_err();
    assert!(matches!(error, Error::GraphTooLarge { .. }), "{error}");
    let path = setting.path("none").join("values.csv");
    let options = setting.options(Analysis::Scc, Dates::One(Window::ALWAYS), 1, Some(&path));
    let error = analyze(&options, io::sink(), &Progress::default());
    assert!(matches!(error.unwrap_err(), Error::NoDirectory { .. }));
    let late = every(RangeLength::Month, i64::MAX - 1);
    let error = analyze(&setting.options(Analysis::Scc, late, 1, None), io::sink(), &Progress::default()).unwrap_err();
    assert!(matches!(error, Error::NoDates), "{error}");
    let progress = Progress::default();
    progress.cancel();
    let out = setting.path("stopped.csv");
    let options = setting.options(Analysis::Scc, Dates::One(Window::ALWAYS), 2, Some(&out));
    let error = analyze(&options, io::sink(), &progress).unwrap_err();
    assert!(matches!(error, Error::Interrupted), "{error}");
    let left = std::fs::read_dir(setting.directory.path()).unwrap().count();
    assert_eq!(left, 1, "only the store is there");
}
