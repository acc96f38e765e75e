//! Releases of Common Crawl's graphs become stores, and stores become such releases again: the same captures, and so
//! the same bytes, as from JSON lines and as from an export. WebGraph opens the same graph.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use dsi_bitstream::traits::BE;
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use webgraph::prelude::{BvComp, BvGraph, BvGraphSeq, RandomAccessGraph, SequentialLabeling, VecGraph};
use webstrata_analysis::{
    Analysis, AnalyzeOptions, Dates, ExportOptions, Fold, Format, Iterations, Names, NodeRule, Target, What, analyze,
    export,
};
use webstrata_datasets::{Capture, Finding, LinkKinds, Tally, Www, graph_inputs, open};
use webstrata_engine::{Progress, RunOptions};
use webstrata_layers::{Store, Window, format_time, parse_time};
use webstrata_pipeline::{BuildOptions, BuildReport, GraphOptions, MergeOptions, build, merge};
use webstrata_tests::crawls::Random;
use webstrata_url::{domain_of, reversed};

const RELEASES: [&str; 3] = ["2024-05", "2024-08", "2024-11"];

/// The links of each host that has some.
type Links = BTreeMap<String, BTreeSet<String>>;

/// The two columns of a table.
type Pairs = Vec<(String, String)>;

fn time(month: &str) -> i64 {
    parse_time(month, false).unwrap()
}

/// A name of a host; some begin with `www`, some are beginnings of others.
fn host(random: &mut Random) -> String {
    let domains = ["example.com", "example-a.com", "a.example.com", "xn--bcher-kva.example", "co.uk", "com"];
    let names = ["x", "x", "x-y", "y"];
    let prefixes = ["", "", "www.", "www.", "www.www.", "b."];
    format!("{}{}.{}", random.pick(&prefixes), random.pick(&names), random.pick(&domains))
}

/// A random graph: some hosts have links, some are only linked to.
fn graph(random: &mut Random) -> Links {
    let mut links = Links::new();
    for _ in 0..30 {
        let own: BTreeSet<String> = (0..1 + random.below(6)).map(|_| host(random)).collect();
        links.entry(host(random)).or_default().extend(own);
    }
    for (page, own) in &mut links {
        own.remove(page);
    }
    links.retain(|_, own| !own.is_empty());
    links
}

fn gzip(path: &Path, text: &str) {
    let mut file = GzEncoder::new(File::create(path).unwrap(), Compression::fast());
    file.write_all(text.as_bytes()).unwrap();
    file.finish().unwrap();
}

/// Writes a release in several parts: hosts in two files, edges in three, a host's edges in any of them. Returns the
/// directory.
fn write(directory: &Path, graph: &Links, lone: &[&str], random: &mut Random) -> PathBuf {
    fs::create_dir_all(directory.join("vertices")).unwrap();
    fs::create_dir_all(directory.join("edges")).unwrap();
    let hosts = graph.iter().flat_map(|(page, links)| links.iter().chain([page])).map(String::as_str);
    let names: BTreeSet<String> = hosts.chain(lone.iter().copied()).map(reversed).collect();
    let ids: BTreeMap<&str, usize> = names.iter().map(String::as_str).zip(0..).collect();
    let (mut vertices, mut edges) = ([String::new(), String::new()], [String::new(), String::new(), String::new()]);
    for (name, id) in &ids {
        writeln!(vertices[usize::from(*id > names.len() / 2)], "{id}\t{name}").unwrap();
    }
    let id = |host: &str| ids[reversed(host).as_str()];
    let mut pairs: Vec<(usize, usize)> =
        graph.iter().flat_map(|(page, links)| links.iter().map(move |link| (id(page), id(link)))).collect();
    pairs.sort_unstable();
    for (from, to) in &pairs {
        writeln!(edges[usize::try_from(random.below(3)).unwrap()], "{from}\t{to}").unwrap();
    }
    // The names of files say nothing about their order.
    for (name, text) in ["part-b", "part-a"].iter().zip(&vertices) {
        gzip(&directory.join("vertices").join(name), text);
    }
    match random.below(2) {
        0 => write_bv(&directory.join("edges/graph"), names.len(), &pairs),
        _ => {
            for (name, text) in ["part-0.gz", "part-1.gz", "part-2.gz"].iter().zip(&edges) {
                gzip(&directory.join("edges").join(name), text);
            }
        }
    }
    fs::write(directory.join("ranks.txt"), "#harmonicc_pos\t#harmonicc_val\t#pr_pos\t#pr_val\t#host_rev\n").unwrap();
    directory.to_owned()
}

/// Writes edges as WebGraph does, and the transpose beside them.
fn write_bv(basename: &Path, nodes: usize, edges: &[(usize, usize)]) {
    for (ending, turns) in [("", false), ("-t", true)] {
        let arcs = edges.iter().map(|&(from, to)| if turns { (to, from) } else { (from, to) });
        let mut graph = VecGraph::empty(nodes);
        graph.add_arcs(arcs);
        let mut path = basename.as_os_str().to_owned();
        path.push(ending);
        BvComp::with_basename(path).comp_graph::<BE>(&graph).unwrap();
    }
}

fn run(store: &Path) -> RunOptions {
    RunOptions { workers: 2, memory_max: 512 << 20, ..RunOptions::new(store) }
}

/// Adds a release to a store, which it makes if there is none.
fn add(store: &Path, inputs: PathBuf, month: &str, www: Www) -> BuildReport {
    let graph = Some(GraphOptions { time: time(month), www: Some(www) });
    let update = store.join("CURRENT").exists();
    let options = BuildOptions { graph, update, ..BuildOptions::new(run(store), vec![inputs]) };
    build(&options, &Progress::default()).unwrap()
}

/// Merges a store into one row. Returns the files of its layers.
fn layers(store: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    merge(&MergeOptions::new(run(store)), &Progress::default()).unwrap();
    let opened = Store::open(store).unwrap();
    let [row] = &opened.manifest().rows[..] else { panic!("{} rows", opened.manifest().rows.len()) };
    let files = row.partitions.iter().flat_map(|partition| &partition.files);
    let name = |path: &str| PathBuf::from(path).components().skip(2).collect::<PathBuf>();
    files.map(|file| (name(&file.path), fs::read(store.join(&file.path)).unwrap())).collect()
}

/// A host as folding reads it.
fn folded(host: &str, www: Www) -> String {
    host.strip_prefix("www.").filter(|rest| www == Www::Fold && rest.contains('.')).unwrap_or(host).to_owned()
}

/// The links of a release with hosts as folding reads them.
fn meant(graph: &Links, www: Www) -> Links {
    let mut meant = Links::new();
    for (page, links) in graph {
        let page = folded(page, www);
        let links = links.iter().map(|link| folded(link, www)).filter(|link| *link != page);
        meant.entry(page.clone()).or_default().extend(links);
    }
    meant.retain(|_, links| !links.is_empty());
    meant
}

/// Writes the captures of releases as JSON lines.
fn json_lines(path: &Path, releases: &[(&str, Links)]) {
    let mut text = String::new();
    for (month, graph) in releases {
        for (page, links) in graph {
            let links = links.iter().map(|link| format!("\"http://{link}/\"")).collect::<Vec<_>>().join(",");
            let time = format_time(time(month));
            writeln!(text, "{{\"url\":\"http://{page}/\",\"ts\":\"{time}\",\"links\":[{links}]}}").unwrap();
        }
    }
    fs::write(path, text).unwrap();
}

fn graph_options(store: &Path, out: &Path, month: &str, fold: Fold) -> ExportOptions {
    let from = time(month);
    ExportOptions {
        run: run(store),
        what: What::Hosts,
        format: Format::CcGraph,
        names: Names::Default,
        target: Target::File(out.to_owned()),
        window: Window::Seen { from, to: from },
        nodes: NodeRule::OfDate,
        fold: Some(fold),
        urls: false,
        parts: false,
    }
}

/// Reads an export as plain text: the names of the vertices with their other columns, and the edges by name.
fn read(directory: &Path) -> (Pairs, Pairs) {
    let text = |name: &str| {
        let mut text = String::new();
        MultiGzDecoder::new(File::open(directory.join(name)).unwrap()).read_to_string(&mut text).unwrap();
        text
    };
    let split = |line: &str| line.split_once('\t').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let mut vertices = Vec::new();
    for (at, line) in text("vertices.txt.gz").lines().enumerate() {
        let (id, rest) = split(line);
        assert_eq!(id, at.to_string());
        let (name, count) = rest.split_once('\t').unwrap_or((&rest, ""));
        let last = vertices.last().map(|(last, _): &(String, String)| reversed(last));
        assert!(last.is_none_or(|last| last.as_str() < name), "names rise");
        vertices.push((reversed(name), count.to_owned()));
    }
    let mut last = None;
    let edges = text("edges.txt.gz");
    let edges = edges.lines().map(|line| {
        let ends = split(line);
        let ids: (usize, usize) = (ends.0.parse().unwrap(), ends.1.parse().unwrap());
        assert!(last.replace(ids) < Some(ids) && ids.0 != ids.1, "edges rise, and none is a loop");
        (vertices[ids.0].0.clone(), vertices[ids.1].0.clone())
    });
    (vertices.clone(), edges.collect())
}

#[test]
fn releases_and_stores_become_each_other() {
    for (seed, www) in [(1, Www::Fold), (2, Www::Keep), (3, Www::Fold), (4, Www::Keep)] {
        let dir = tempfile::tempdir().unwrap();
        let (mut random, path) = (Random(seed), |name: &str| dir.path().join(name));
        let mut graphs: Vec<(&str, Links)> = RELEASES.map(|month| (month, graph(&mut random))).into();
        // A host of the first release has no links in the second, and is linked to in the third.
        let lost = graphs[0].1.keys().next().unwrap().clone();
        graphs[1].1.remove(&lost);
        graphs[2].1.entry("x.example.net".to_owned()).or_default().insert(lost);
        let mut pages = 0;
        for (month, graph) in &graphs {
            let release = write(&path(month), graph, &["lone.example.net"], &mut random);
            let report = add(&path("store"), release, month, www);
            pages += meant(graph, www).len() as u64;
            let tally = report.tally;
            assert_eq!(tally.of(Finding::LoneHost), 1 + twins(graph, www), "seed {seed}: {tally:?}");
            assert_eq!((tally.damaged(), tally.of(Finding::IndexFile)), (0, 1), "{tally:?}");
            assert!(tally.named().any(|(_, url)| url == "http://lone.example.net/"));
        }
        let expected = layers(&path("store"));
        assert_eq!(Store::open(path("store")).unwrap().manifest().counts.captures, pages);

        let of_releases: Vec<_> = graphs.iter().map(|(month, graph)| (*month, meant(graph, www))).collect();
        json_lines(&path("captures.jsonl"), &of_releases);
        build(&BuildOptions::new(run(&path("plain")), vec![path("captures.jsonl")]), &Progress::default()).unwrap();
        assert!(layers(&path("plain")) == expected, "seed {seed}: the captures of JSON lines");

        for (month, graph) in &of_releases {
            let out = path(&format!("again-{month}"));
            let options = graph_options(&path("store"), &out, month, Fold::Host);
            let report = export(&options, &mut io::sink(), &Progress::default()).unwrap();
            let (vertices, edges) = read(&out);
            let links: BTreeSet<(&str, &str)> =
                graph.iter().flat_map(|(page, links)| links.iter().map(move |link| (&**page, &**link))).collect();
            assert_eq!(edges.iter().map(|(a, b)| (&**a, &**b)).collect::<BTreeSet<_>>(), links);
            assert_eq!((report.records, report.nodes), (links.len() as u64, vertices.len() as u64));
            let nodes: BTreeSet<&str> = links.iter().flat_map(|(page, link)| [*page, *link]).collect();
            assert_eq!(vertices.iter().map(|(name, _)| &**name).collect::<BTreeSet<_>>(), nodes);
            check_bv(&path("store"), &path(&format!("bv-{month}")), month, &links);
            check_ranks(&path("store"), &out, month);
            check_domains(&path("store"), &path(&format!("domains-{month}")), month, &links);
            // An export is folded already.
            add(&path("built-again"), out, month, Www::Keep);
        }
        assert!(layers(&path("built-again")) == expected, "seed {seed}: built from exports");
    }
}

/// The number of hosts that have no links because all their edges lead to their own names with or without `www`.
fn twins(graph: &Links, www: Www) -> u64 {
    let meant = meant(graph, www);
    let linked: BTreeSet<&String> = meant.iter().flat_map(|(page, links)| links.iter().chain([page])).collect();
    let all = graph.iter().flat_map(|(page, links)| links.iter().chain([page]));
    let read = |host: &String| folded(host, www);
    all.map(read).filter(|host| !linked.contains(host)).collect::<BTreeSet<_>>().len() as u64
}

/// The BV files of the same window have the same arcs.
fn check_bv(store: &Path, basename: &Path, month: &str, links: &BTreeSet<(&str, &str)>) {
    let (what, format, target) = (What::Edges, Format::Webgraph, Target::File(basename.to_owned()));
    let plain = graph_options(store, basename, month, Fold::Host);
    let options = ExportOptions { what, format, target, fold: None, ..plain };
    export(&options, &mut io::sink(), &Progress::default()).unwrap();
    let urls = fs::read_to_string(basename.with_extension("urls")).unwrap();
    let urls: Vec<&str> = urls.lines().map(|url| url.trim_start_matches("http://").trim_end_matches('/')).collect();
    let graph = BvGraph::with_basename(basename).load().unwrap();
    let arcs = (0..graph.num_nodes()).flat_map(|node| graph.successors(node).map(move |link| (node, link)));
    assert_eq!(arcs.map(|(page, link)| (urls[page], urls[link])).collect::<BTreeSet<_>>(), *links);
}

/// The ranks of an export are those of the analyses of the same window, in order.
fn check_ranks(store: &Path, out: &Path, month: &str) {
    let mut text = String::new();
    MultiGzDecoder::new(File::open(out.join("ranks.txt.gz")).unwrap()).read_to_string(&mut text).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("#harmonicc_pos\t#harmonicc_val\t#pr_pos\t#pr_val\t#host_rev"));
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split('\t').collect()).collect();
    let (from, to) = (time(month), time(month));
    let values = |analysis| -> BTreeMap<String, f64> {
        let table = out.with_extension("csv");
        let dates = Dates::One(Window::Seen { from, to });
        let (nodes, target) = (NodeRule::OfDate, Some(Target::File(table.clone())));
        let options = AnalyzeOptions { run: run(store), analysis, dates, nodes, out: target, urls: true };
        analyze(&options, io::sink(), &Progress::default()).unwrap();
        let text = fs::read_to_string(&table).unwrap();
        let cells = text.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
        cells.map(|cells| (cells[1].to_owned(), cells[2].parse().unwrap())).collect()
    };
    let iterations = Iterations { most: 1000, tolerance: 1e-10 };
    for (analysis, position, value) in [(Analysis::Harmonic(8), 0, 1), (Analysis::PageRank(0.85, iterations), 2, 3)] {
        let expected = values(analysis);
        assert_eq!(rows.len(), expected.len());
        let mut ordered = Vec::new();
        for row in &rows {
            let got: f64 = row[value].parse().unwrap();
            let other = expected[&format!("http://{}/", reversed(row[4]))];
            assert!((got - other).abs() <= 1e-12 * got.abs().max(1.0), "{row:?} {other}");
            ordered.push((row[position].parse::<usize>().unwrap(), got));
        }
        ordered.sort_by_key(|rank| rank.0);
        assert!(ordered.iter().map(|rank| rank.0).eq(1..=rows.len()));
        assert!(ordered.is_sorted_by(|a, b| a.1 >= b.1));
    }
}

/// A graph of domains has the edges between the domains of the hosts, and the number of hosts of each domain.
fn check_domains(store: &Path, out: &Path, month: &str, links: &BTreeSet<(&str, &str)>) {
    let options = graph_options(store, out, month, Fold::Domain);
    export(&options, &mut io::sink(), &Progress::default()).unwrap();
    let (vertices, edges) = read(out);
    let mut hosts = BTreeMap::<&str, BTreeSet<&str>>::new();
    for host in links.iter().flat_map(|(page, link)| [*page, *link]) {
        hosts.entry(domain_of(host)).or_default().insert(host);
    }
    let expected: BTreeMap<String, String> =
        hosts.iter().map(|(domain, hosts)| ((*domain).to_owned(), hosts.len().to_string())).collect();
    assert_eq!(vertices.into_iter().collect::<BTreeMap<_, _>>(), expected);
    let expected: BTreeSet<(String, String)> = links
        .iter()
        .map(|(page, link)| (domain_of(page).to_owned(), domain_of(link).to_owned()))
        .filter(|(page, link)| page != link)
        .collect();
    assert_eq!(edges.into_iter().collect::<BTreeSet<_>>(), expected);
}

/// An update that gives `www` another meaning would make hosts appear and disappear.
#[test]
fn the_meaning_of_www_belongs_to_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = Random(7);
    let release = write(&dir.path().join("release"), &graph(&mut random), &[], &mut random);
    let store = dir.path().join("store");
    add(&store, release.clone(), RELEASES[0], Www::Fold);
    let graph = |www| Some(GraphOptions { time: time(RELEASES[1]), www });
    let options =
        |www| BuildOptions { graph: graph(www), update: true, ..BuildOptions::new(run(&store), vec![release.clone()]) };
    let error = build(&options(Some(Www::Keep)), &Progress::default()).unwrap_err().to_string();
    assert!(error.contains("--www \"fold\"") && error.contains("--www \"keep\""), "{error}");
    let report = build(&options(None), &Progress::default()).unwrap();
    assert!(report.tally.of(Finding::FoldedHost) > 0);
}

/// The numbers of the nodes of each edge of a graph with hosts `host-N.example`, and what was found.
fn edges_of(graph: &Path, vertices: &Path) -> (Vec<(usize, usize)>, Tally) {
    let paths = [graph.with_extension("graph"), graph.with_extension("properties"), vertices.to_owned()];
    let number = |url: &str| -> usize {
        url.trim_start_matches("http://host-").trim_end_matches(".example/").parse().expect("a host")
    };
    let (mut edges, mut capture, mut tally) = (Vec::new(), Capture::default(), Tally::default());
    for input in graph_inputs(&paths, 0, Www::Fold).unwrap() {
        let mut reader = open(&input, LinkKinds::default()).unwrap();
        while reader.read(&mut capture, &mut tally).unwrap() {
            let from = number(&capture.url);
            edges.extend(capture.links.iter().map(|link| (from, number(link))));
        }
    }
    (edges, tally)
}

/// Real graphs have the edges that WebGraph reads in them. Damage is counted, whatever it makes of the numbers, and
/// what is before it is read.
#[test]
#[ignore = "needs the shared test data: WEBSTRATA_SHARED=DIR cargo test --test cc_graph -- --ignored"]
fn real_bv_graphs() {
    let dir = tempfile::tempdir().unwrap();
    let vertices = dir.path().join("vertices.txt");
    for (name, damages) in [("cnr-2000", 40), ("uk-2007-05@100000", 10)] {
        let path = webstrata_tests::shared("data/graphs").join(name);
        let graph = BvGraphSeq::with_basename(&path).endianness::<BE>().load().unwrap();
        let mut lists = graph.iter();
        let mut expected = Vec::new();
        for node in 0..graph.num_nodes() {
            expected.extend(lists.next_successors().unwrap().iter().map(|&link| (node, link)));
        }
        let names: String = (0..graph.num_nodes()).map(|node| format!("{node}\texample.host-{node}\n")).collect();
        fs::write(&vertices, names).unwrap();
        let (edges, tally) = edges_of(&path, &vertices);
        assert!(edges == expected, "{name}: {} and {} edges", edges.len(), expected.len());
        assert_eq!(tally.damaged(), 0, "{tally:?}");

        let bytes = fs::read(path.with_extension("graph")).unwrap();
        let damaged = dir.path().join("damaged");
        fs::copy(path.with_extension("properties"), damaged.with_extension("properties")).unwrap();
        let mut random = Random(9);
        for round in 0..damages {
            let mut bytes = bytes.clone();
            let at = usize::try_from(random.below(bytes.len() as u64)).unwrap();
            match round % 2 {
                0 => bytes.truncate(at),
                _ => bytes[at] ^= 1 << random.below(8),
            }
            fs::write(damaged.with_extension("graph"), bytes).unwrap();
            let (edges, tally) = edges_of(&damaged, &vertices);
            assert!(tally.damaged() == 1 || tally.damaged() == 0 && round % 2 == 1, "{round}: {tally:?}");
            let sound = edges.iter().zip(&expected).take_while(|(a, b)| a == b).count() as u64;
            let share = at as u64 * expected.len() as u64 / bytes_of(&path);
            assert!(sound > share / 2, "{round}: {sound} edges before the damage, of about {share}");
        }
    }
}

fn bytes_of(path: &Path) -> u64 {
    fs::metadata(path.with_extension("graph")).unwrap().len()
}
