//! Compares exports of random stores of several rows, in windows of time, with exports made from sets. WebGraph opens
//! the exported graphs.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use webgraph::prelude::{BvGraph, RandomAccessGraph, RandomAccessLabeling, SequentialLabeling};
use webstrata_analysis::Error;
use webstrata_analysis::{ExportOptions, Fold, Format, Names, NodeRule, Target, Unfit, What, export};
use webstrata_engine::{Progress, RunOptions};
use webstrata_layers::{Links, RangeLength, Uid, Window, format_digits, parse_time};
use webstrata_tests::crawls::Random;
use webstrata_tests::oracle::{Ending, Oracle, Time, When};
use webstrata_tests::rows::{Rows, Shape};
use webstrata_tests::stores::reader;
use webstrata_url::domain_of;

const SHAPE: Shape = Shape { rows: 3, pages: 12, captures: 60, links: 6, in_order: false };

fn options(store: &Path) -> ExportOptions {
    ExportOptions {
        run: RunOptions { workers: 3, memory_max: 16 << 20, ..RunOptions::new(store) },
        what: What::Edges,
        format: Format::Csv,
        names: Names::Default,
        target: Target::Stream,
        window: Window::ALWAYS,
        nodes: NodeRule::All,
        fold: None,
        urls: false,
        parts: false,
    }
}

/// The rows of a table, each as texts by column.
fn table(options: &ExportOptions) -> Vec<BTreeMap<String, String>> {
    let mut text = Vec::new();
    let report = export(options, &mut text, &Progress::default()).unwrap();
    let rows: Vec<_> = csv::Reader::from_reader(&text[..]).deserialize().map(Result::unwrap).collect();
    assert_eq!(report.records, rows.len() as u64);
    rows
}

fn text(options: &ExportOptions) -> String {
    let mut text = Vec::new();
    export(options, &mut text, &Progress::default()).unwrap();
    String::from_utf8(text).unwrap()
}

fn time(text: &str) -> Time {
    parse_time(text, false).unwrap()
}

fn store_of(seed: u64) -> (tempfile::TempDir, PathBuf, Oracle) {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let rows = Rows::random(seed, SHAPE);
    rows.write(&store, 2, RangeLength::Month);
    (dir, store, rows.oracle())
}

/// All time, an empty window, and random windows.
fn windows(oracle: &Oracle, random: &mut Random) -> Vec<Window> {
    let times: Vec<Time> = oracle.times().into_iter().collect();
    let mut any = || *random.pick(&times);
    let mut windows =
        vec![Window::ALWAYS, Window::as_of(any()), Window::as_of(any() - 1), Window::Seen { from: 1, to: 0 }];
    for _ in 0..3 {
        let (a, b) = (any(), any());
        windows.push(Window::Seen { from: a.min(b), to: a.max(b) });
    }
    windows
}

/// The window of the oracle for a window of the layers.
fn when(window: Window) -> When {
    match window {
        Window::Seen { from, to } => When::Seen(from, to),
        Window::AsOf(as_of) => When::AsOf(as_of.time),
    }
}

/// The captures of a page in a window, with their links if the links are known.
fn captures<'a>(oracle: &'a Oracle, page: &str, window: Window) -> Vec<(Time, Option<BTreeSet<&'a str>>)> {
    let mut own: Vec<_> = oracle.captures(page);
    match window {
        Window::Seen { from, to } => own.retain(|(time, _)| (from..=to).contains(time)),
        Window::AsOf(at) => {
            let statuses = oracle.statuses(page);
            let counts = |((time, _), status): &((Time, bool), u16)| *time <= at.time && Ending::Gone.counts(*status);
            own = own.into_iter().zip(statuses).rfind(counts).map(|(capture, _)| capture).into_iter().collect();
        }
    }
    let links = |(time, known): (Time, bool)| (time, known.then(|| oracle.out_links(page, When::Seen(time, time))));
    own.into_iter().map(links).collect()
}

/// The first and the last time, the number of captures with known links, and the number of captures with the link.
type Edge = (Time, Time, usize, usize);

fn edges(oracle: &Oracle, window: Window) -> BTreeMap<(&str, &str), Edge> {
    let mut edges = BTreeMap::new();
    for page in oracle.urls() {
        let own = captures(oracle, page, window);
        let all = oracle.captures(page).into_iter().map(|capture| capture.0).zip(oracle.statuses(page));
        let of_server: BTreeSet<Time> = all.filter(|own| !Ending::Gone.counts(own.1)).map(|own| own.0).collect();
        let telling = own.iter().filter(|(time, _)| !of_server.contains(time));
        let known: Vec<_> = telling.filter_map(|(time, links)| Some((*time, links.as_ref()?))).collect();
        let links: BTreeSet<&str> = known.iter().flat_map(|(_, links)| links.iter().copied()).collect();
        for link in links {
            let with: Vec<Time> = known.iter().filter(|(_, links)| links.contains(link)).map(|own| own.0).collect();
            edges.insert((page, link), (with[0], with[with.len() - 1], known.len(), with.len()));
        }
    }
    edges
}

/// Checks edges, and their occurrences in the columns of AUT.
fn check_edges(seed: u64, store: &Path, oracle: &Oracle) {
    let reader = reader(store);
    for window in windows(oracle, &mut Random(seed)) {
        let expected = edges(oracle, window);
        for (names, urls, [src, dst]) in
            [(Names::Default, true, ["src", "dst"]), (Names::Networkx, false, ["source", "target"])]
        {
            let rows = table(&ExportOptions { window, names, urls, ..options(store) });
            assert_eq!(rows.len(), expected.len(), "seed {seed}, {window:?}");
            for row in rows {
                let url = |end: &str| {
                    if urls { row[end].clone() } else { reader.url(row[end].parse().unwrap()).unwrap() }
                };
                let count = |name: &str| row[name].parse::<usize>().unwrap();
                let got =
                    (time(&row["first_seen"]), time(&row["last_seen"]), count("captures"), count("captures_with_link"));
                let edge = (url(src), url(dst));
                assert_eq!(expected[&(edge.0.as_str(), edge.1.as_str())], got, "seed {seed}, {window:?}: {edge:?}");
            }
        }
        let mut expected = 0;
        let rows = table(&ExportOptions { window, names: Names::Aut, ..options(store) });
        let got: BTreeSet<_> = rows.iter().map(|row| (&*row["crawl_date"], &*row["src"], &*row["dest"])).collect();
        for page in oracle.urls() {
            for (time, links) in captures(oracle, page, window) {
                for link in links.into_iter().flatten() {
                    expected += 1;
                    assert!(got.contains(&(&*format_digits(time), page, link)), "seed {seed}: {page} {time} {link}");
                }
            }
        }
        assert_eq!((rows.len(), got.len()), (expected, expected));
    }
}

/// Checks that events are the changes between known captures.
fn check_events(seed: u64, store: &Path, oracle: &Oracle) {
    let mut expected = BTreeSet::new();
    for page in oracle.urls() {
        let mut before = BTreeSet::new();
        for ((time, links), status) in captures(oracle, page, Window::ALWAYS).into_iter().zip(oracle.statuses(page)) {
            let Some(links) = links.filter(|_| Ending::Gone.counts(status)) else { continue };
            expected.extend(links.difference(&before).map(|&link| (page, link, time, true)));
            expected.extend(before.difference(&links).map(|&link| (page, link, time, false)));
            before = links;
        }
    }
    for window in windows(oracle, &mut Random(seed)) {
        let options = ExportOptions { what: What::Events, window, urls: true, ..options(store) };
        let Window::Seen { from, to } = window else {
            assert!(matches!(export(&options, &mut io::sink(), &Progress::default()), Err(Error::Unfit(Unfit::AsOf))));
            continue;
        };
        let rows = table(&options);
        let got: BTreeSet<_> = rows
            .iter()
            .map(|row| (&*row["src"], &*row["dst"], time(&row["timestamp"]), row["present"] == "true"))
            .collect();
        let expected: BTreeSet<_> =
            expected.iter().copied().filter(|(_, _, time, _)| (from..=to).contains(time)).collect();
        assert_eq!(got, expected, "seed {seed}, {window:?}");
        assert_eq!(rows.len(), got.len());
    }
}

/// Checks that every URL is a node.
fn check_nodes(seed: u64, store: &Path, oracle: &Oracle) {
    let reader = reader(store);
    for window in windows(oracle, &mut Random(seed)) {
        let rows = table(&ExportOptions { what: What::Nodes, window, ..options(store) });
        assert_eq!(rows.len() as u64, reader.urls());
        for (uid, row) in (0..).zip(rows) {
            let url = reader.url(Uid(uid)).unwrap();
            let own = captures(oracle, &url, window);
            let text = |time: Option<&(Time, _)>| time.map_or(String::new(), |own| format_digits(own.0));
            let is = |name: &str| {
                Some(&*row[name])
                    .filter(|text| !text.is_empty())
                    .map_or(String::new(), |text| format_digits(time(text)))
            };
            assert_eq!((row["id"].parse(), &row["url"]), (Ok(uid), &url));
            assert_eq!(row["captures"], own.len().to_string(), "{url}");
            assert_eq!(is("first_capture"), text(own.first()), "{url}");
            assert_eq!(is("last_capture"), text(own.last()), "{url}");
            let host = url.split('/').nth(2).and_then(|host| host.split(':').next()).unwrap();
            assert_eq!((&*row["host"], &*row["domain"]), (host, domain_of(host)));
        }
    }
}

/// Checks that the nodes of a window are the URLs that are there in the window. Formats that number nodes use the same
/// order.
fn check_nodes_of_windows(seed: u64, store: &Path, oracle: &Oracle) {
    for window in windows(oracle, &mut Random(seed)).into_iter().filter(|window| *window != Window::ALWAYS) {
        let dated = ExportOptions { nodes: NodeRule::OfDate, window, ..options(store) };
        let rows = table(&ExportOptions { what: What::Nodes, ..dated.clone() });
        let urls: Vec<&str> = rows.iter().map(|row| &*row["url"]).collect();
        let nodes = oracle.nodes(when(window));
        assert_eq!((urls.len(), urls.iter().copied().collect::<BTreeSet<_>>()), (nodes.len(), nodes), "{window:?}");
        assert!(rows.is_sorted_by_key(|row| row["id"].parse::<u64>().unwrap()));
        let expected: BTreeSet<(&str, &str)> = edges(oracle, window).into_keys().collect();
        let matrix = text(&ExportOptions { format: Format::Mtx, ..dated.clone() });
        let mut lines = matrix.lines().skip(2);
        assert_eq!(lines.next(), Some(&*format!("{0} {0} {1}", urls.len(), expected.len())));
        let url = |number: &str| urls[number.parse::<usize>().unwrap() - 1];
        let got = lines.map(|line| line.split_once(' ').map(|(page, link)| (url(page), url(link))).unwrap());
        assert_eq!(got.collect::<BTreeSet<_>>(), expected, "seed {seed}, {window:?}");
        let parts = tempfile::tempdir().unwrap();
        let out = parts.path().join("nodes");
        let in_parts = ExportOptions { what: What::Nodes, target: Target::File(out.clone()), parts: true, ..dated };
        export(&in_parts, &mut io::sink(), &Progress::default()).unwrap();
        let mut files: Vec<_> = fs::read_dir(&out).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        let of_parts = files.iter().flat_map(|file| {
            csv::Reader::from_path(file).unwrap().into_deserialize().map(Result::unwrap).collect::<Vec<_>>()
        });
        assert_eq!(of_parts.collect::<Vec<BTreeMap<String, String>>>(), rows, "seed {seed}, {window:?}");
    }
}

/// Checks that hosts count pages, links and occurrences.
fn check_hosts(seed: u64, store: &Path, oracle: &Oracle) {
    for window in windows(oracle, &mut Random(seed)) {
        for fold in [Fold::Host, Fold::Domain, Fold::Prefix(1)] {
            let mut expected: BTreeMap<_, (BTreeSet<&str>, usize, usize, Time, Time)> = BTreeMap::new();
            for ((page, link), (first, last, _, with)) in edges(oracle, window) {
                let pair = (fold.name_of(page).into_owned(), fold.name_of(link).into_owned());
                let own = expected.entry(pair).or_insert_with(|| (BTreeSet::new(), 0, 0, first, last));
                own.0.insert(page);
                (own.1, own.2) = (own.1 + 1, own.2 + with);
                (own.3, own.4) = (own.3.min(first), own.4.max(last));
            }
            let rows = table(&ExportOptions { what: What::Hosts, window, fold: Some(fold), ..options(store) });
            let got = rows.iter().map(|row| {
                let count = |name: &str| row[name].parse::<usize>().unwrap();
                let times = (time(&row["first_seen"]), time(&row["last_seen"]));
                let pair = (row["src"].clone(), row["dst"].clone());
                (pair, (count("pages"), count("links"), count("occurrences"), times.0, times.1))
            });
            let expected = expected.into_iter().map(|(pair, own)| (pair, (own.0.len(), own.1, own.2, own.3, own.4)));
            assert!(got.eq(expected), "seed {seed}, {window:?}, {fold}: {rows:?}");
        }
    }
}

#[test]
fn exports_are_what_sets_say() {
    for seed in 0..6 {
        let (_dir, store, oracle) = store_of(seed);
        for check in [
            check_edges,
            check_events,
            check_nodes,
            check_nodes_of_windows,
            check_hosts,
            check_numbered,
            check_drawings,
        ] {
            check(seed, &store, &oracle);
        }
    }
}

/// The parts, one after the other, are equal to the table in one file.
#[test]
fn parts_are_the_table() {
    let kinds = [(What::Edges, Names::Default), (What::Edges, Names::Aut), (What::Events, Names::Networkx)];
    let kinds = kinds.into_iter().chain([(What::Nodes, Names::Gephi)]);
    for (seed, (what, names)) in (0..).zip(kinds) {
        let (dir, store, _) = store_of(seed);
        for urls in [false, true].into_iter().take(if what == What::Nodes { 1 } else { 2 }) {
            let options = ExportOptions { what, names, urls, ..options(&store) };
            let whole = text(&options);
            let (head, rows) = whole.split_once('\n').unwrap();
            assert!(rows.len() > 100);
            let out = dir.path().join(format!("{urls}"));
            let in_parts = ExportOptions { target: Target::File(out.clone()), parts: true, ..options };
            let report = export(&in_parts, &mut io::sink(), &Progress::default()).unwrap();
            let parts = [0, 1, 2].map(|part| fs::read_to_string(out.join(format!("part-0000{part}.csv"))).unwrap());
            assert_eq!(fs::read_dir(&out).unwrap().count(), parts.len());
            assert!(parts.iter().filter(|part| part.lines().count() > 1).count() > 1, "one worker had all to do");
            let joined: String = parts.iter().map(|part| part.strip_prefix(head).unwrap().trim_start()).collect();
            assert_eq!(joined, rows);
            assert_eq!(report.records, rows.lines().count() as u64);
            // An existing directory is not replaced.
            assert!(matches!(export(&in_parts, &mut io::sink(), &Progress::default()), Err(Error::Output { .. })));
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), if urls { 3 } else { 2 }, "a draft is left");
        }
    }
}

#[test]
fn webgraph_opens_both_directions() {
    for seed in 0..3 {
        let (dir, store, oracle) = store_of(seed);
        let reader = reader(&store);
        let rules = [NodeRule::All, NodeRule::OfDate].into_iter();
        let each = windows(&oracle, &mut Random(seed))
            .into_iter()
            .flat_map(|window| rules.clone().map(move |rule| (window, rule)));
        for (window, rule) in each {
            let basename = dir.path().join("graph");
            let target = Target::File(basename.clone());
            // With little memory, links are sorted on disk.
            let options = ExportOptions {
                format: Format::Webgraph,
                target,
                window,
                nodes: rule,
                run: RunOptions { memory_max: 1 << 16, ..RunOptions::new(&*store) },
                ..options(&store)
            };
            let report = export(&options, &mut io::sink(), &Progress::default()).unwrap();
            let urls = fs::read_to_string(dir.path().join("graph.urls")).unwrap();
            let urls: Vec<&str> = urls.lines().collect();
            let is_all = rule == NodeRule::All || window == Window::ALWAYS;
            let mut nodes = oracle.nodes(when(window));
            let all: Vec<String> = Uid::each(Uid::below(reader.urls())).map(|uid| reader.url(uid).unwrap()).collect();
            nodes.extend(all.iter().filter(|_| is_all).map(String::as_str));
            assert_eq!(urls.iter().copied().collect::<BTreeSet<_>>(), nodes);
            assert_eq!(urls.len(), nodes.len());
            let expected: BTreeSet<(&str, &str)> = edges(&oracle, window).into_keys().collect();
            for (name, is_turned) in [("graph", false), ("graph-t", true)] {
                let graph = BvGraph::with_basename(dir.path().join(name)).load().unwrap();
                assert_eq!(graph.num_nodes(), urls.len());
                let mut got = BTreeSet::new();
                for node in 0..graph.num_nodes() {
                    for link in graph.successors(node) {
                        got.insert(if is_turned { (urls[link], urls[node]) } else { (urls[node], urls[link]) });
                    }
                }
                assert_eq!(got, expected, "seed {seed}, {window:?}, {name}");
                assert_eq!((graph.num_arcs(), report.records), (expected.len() as u64, expected.len() as u64));
            }
            let left = fs::read_dir(dir.path()).unwrap().count();
            assert_eq!(left, 10, "the store, nine files and nothing else");
        }
    }
}

/// Checks that matrices and edge lists count from one.
fn check_numbered(seed: u64, store: &Path, oracle: &Oracle) {
    let reader = reader(store);
    let urls = reader.urls();
    for window in windows(oracle, &mut Random(seed)) {
        let expected = edges(oracle, window);
        let matrix = text(&ExportOptions { format: Format::Mtx, window, ..options(store) });
        let mut lines = matrix.lines();
        assert_eq!(lines.next(), Some("%%MatrixMarket matrix coordinate pattern general"));
        assert!(lines.next().unwrap().starts_with('%'));
        assert_eq!(lines.next(), Some(&*format!("{urls} {urls} {}", expected.len())));
        let list = text(&ExportOptions { format: Format::Networkit, window, ..options(store) });
        assert!(lines.clone().map(|line| line.replace(' ', "\t")).eq(list.lines()));
        let url = |number: &str| reader.url(Uid(number.parse::<u64>().unwrap() - 1)).unwrap();
        let got = lines.map(|line| line.split_once(' ').map(|(page, link)| (url(page), url(link))).unwrap());
        let got: BTreeSet<_> = got.collect();
        let is_same = got.iter().all(|(page, link)| expected.contains_key(&(page.as_str(), link.as_str())));
        assert!(is_same && got.len() == expected.len(), "seed {seed}, {window:?}");
    }
}

/// Checks that drawings have each node and each edge once.
fn check_drawings(seed: u64, store: &Path, oracle: &Oracle) {
    for window in windows(oracle, &mut Random(seed)) {
        let expected = edges(oracle, window);
        let mut nodes: BTreeSet<&str> = expected.keys().flat_map(|(page, link)| [*page, *link]).collect();
        let is_captured = |page: &str| window == Window::ALWAYS && !oracle.captures(page).is_empty();
        let pages = oracle.urls().into_iter();
        nodes.extend(pages.filter(|page| oracle.is_alive(page, when(window)) || is_captured(page)));
        for format in [Format::Graphml, Format::Gexf] {
            let xml = text(&ExportOptions { format, window, ..options(store) });
            assert_eq!(xml.matches("<node ").count(), nodes.len(), "seed {seed}, {window:?}");
            assert_eq!(xml.matches("<edge ").count(), expected.len(), "seed {seed}, {window:?}");
            let hosts = text(&ExportOptions { format, window, what: What::Hosts, ..options(store) });
            assert_eq!(hosts.contains("<edge "), !expected.is_empty());
        }
    }
}

#[test]
fn an_export_that_is_stopped_leaves_nothing() {
    let (dir, store, _) = store_of(1);
    let progress = Progress::default();
    progress.cancel();
    let in_parts = |format: &Format| format.is_table().then_some((*format, true));
    let all = Format::ALL.iter().flat_map(|format| [Some((*format, false)), in_parts(format)].into_iter().flatten());
    for (format, parts) in all {
        let target = Target::File(dir.path().join("out"));
        let what = if format == Format::CcGraph { What::Hosts } else { What::Edges };
        let options = ExportOptions { what, format, target, parts, ..options(&store) };
        let error = export(&options, &mut io::sink(), &progress).unwrap_err();
        assert!(matches!(error, Error::Interrupted), "{format}: {error}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "{format}");
    }
}
