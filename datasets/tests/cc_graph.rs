//! Reads releases of web graphs, whole and damaged: everything that is left out is counted with its place.

use std::path::{Path, PathBuf};

use webstrata_datasets::{Capture, Error, Finding, LinkKinds, Tally, Www, graph_inputs, inputs, open, ranks_in};

const TIME: i64 = 1_714_521_600;

/// A capture as a test compares it: the page and its links.
type Read = (String, Vec<String>);

#[cfg(test)]
fn files(directory: &Path, files: &[(&str, &[u8])]) -> Vec<PathBuf> {
    let write = |(name, bytes): &(&str, &[u8])| {
        let path = directory.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    files.iter().map(write).collect()
}

/// Reads a release from files in a directory. Returns its captures in the order of the inputs.
#[cfg(test)]
fn read(texts: &[(&str, &[u8])], www: Www) -> (Vec<Read>, Tally) {
    let directory = tempfile::tempdir().unwrap();
    read_paths(&files(directory.path(), texts), www)
}

#[cfg(test)]
fn read_paths(paths: &[PathBuf], www: Www) -> (Vec<Read>, Tally) {
    let (mut captures, mut capture, mut tally) = (Vec::new(), Capture::default(), Tally::default());
    for input in graph_inputs(paths, TIME, www).unwrap() {
        let mut reader = open(&input, LinkKinds::default()).unwrap();
        while reader.read(&mut capture, &mut tally).unwrap() {
            assert_eq!(capture.time, TIME);
            captures.push((capture.url.clone(), capture.links.iter().map(str::to_owned).collect()));
        }
        assert!(!reader.read(&mut capture, &mut tally).unwrap());
    }
    (captures, tally)
}

/// The capture of a host with links to hosts.
#[cfg(test)]
fn page(host: &str, links: &[&str]) -> Read {
    let url = |host: &str| format!("http://{host}/");
    (url(host), links.iter().map(|link| url(link)).collect())
}

/// The counts of a tally.
#[cfg(test)]
fn counts(tally: &Tally) -> Vec<(Finding, u64)> {
    tally.counts().collect()
}

/// The places of damage: kind, file and offset.
#[cfg(test)]
fn places(tally: &Tally) -> Vec<(Finding, String, u64)> {
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    tally.examples().iter().map(|place| (place.finding, name(&place.path), place.offset)).collect()
}

#[test]
fn hosts_with_www_are_folded_or_kept() {
    let vertices: &[u8] = b"0\tcom.example\n1\tcom.example-a\n2\tcom.example.a\n3\tcom.example.www\n\
        4\tcom.example.www.www\n5\tcom.www\n6\torg.example.www\n7\torg.example.www.www\n8\torg.lone\n";
    let edges: &[u8] = b"0\t1\n0\t3\n3\t0\n3\t2\n4\t3\n5\t6\n6\t5\n";
    let release: [(&str, &[u8]); 2] = [("v", vertices), ("e", edges)];
    let (captures, tally) = read(&release, Www::Fold);
    let expected = [
        page("example.com", &["example-a.com", "a.example.com"]),
        page("www.example.com", &["example.com"]),
        page("www.com", &["example.org"]),
        page("example.org", &["www.com"]),
    ];
    assert_eq!(captures, expected);
    assert_eq!(counts(&tally), [(Finding::LoneHost, 2), (Finding::FoldedHost, 4), (Finding::FoldedEdge, 2)]);
    let alone = ["http://lone.org/", "http://www.example.org/"].map(|url| (Finding::LoneHost, url));
    assert_eq!(tally.named().collect::<Vec<_>>(), alone);
    let (captures, tally) = read(&release, Www::Keep);
    let expected = [
        page("example.com", &["example-a.com", "www.example.com"]),
        page("www.example.com", &["example.com", "a.example.com"]),
        page("www.www.example.com", &["www.example.com"]),
        page("www.com", &["www.example.org"]),
        page("www.example.org", &["www.com"]),
    ];
    assert_eq!(captures, expected);
    assert_eq!(counts(&tally), [(Finding::LoneHost, 2)]);
}

/// The registrable domain `www.co.uk` is not `co.uk`, and a name that occurs twice is one page.
#[test]
fn domains_are_not_folded() {
    let vertices: &[u8] = b"7\tuk.co.one\t3\n8\tuk.co.one\t1\n9\tuk.co.www\t12\n";
    let (captures, tally) = read(&[("v", vertices), ("e", b"7\t9\t4\n8\t9\t1\n")], Www::Fold);
    assert_eq!(captures, [page("one.co.uk", &["www.co.uk", "www.co.uk"])]);
    assert_eq!(counts(&tally), [(Finding::EdgeCount, 2)]);
}

#[test]
fn parts_are_in_the_order_of_their_ids() {
    let large = u64::MAX - 1;
    let last = format!("{large}\torg.example\n");
    let edges = format!("0\t{large}\n");
    let back = format!("{large}\t0\n");
    let release: [(&str, &[u8]); 6] = [
        ("a", last.as_bytes()),
        ("b", b"0\tcom.example\n1\tnet.example\n"),
        ("edges-1", edges.as_bytes()),
        ("edges-2", back.as_bytes()),
        ("edges-3", b"0\t1\n"),
        ("ranks", b"#harmonicc_pos\t#harmonicc_val\t#pr_pos\t#pr_val\t#host_rev\n"),
    ];
    let (captures, tally) = read(&release, Www::Fold);
    let expected = [
        page("example.com", &["example.org"]),
        page("example.org", &["example.com"]),
        page("example.com", &["example.net"]),
    ];
    assert_eq!(captures, expected);
    assert_eq!(counts(&tally), [(Finding::IndexFile, 1)]);
}

#[test]
fn damage_is_counted_with_its_place() {
    let vertices: &[u8] = b"0\tcom.example\nx\tcom.bad\n2\tcom.?\n0\tcom.late\n9\tnet.example\n9\tnet.twice\n10\t\n\
        3\t\xff\n18446744073709551616\tcom.long\n";
    let edges: &[u8] = b"0\t9\n0\t2\n9\t0\n5\t0\n0 9\n0\t9\tx\n0\t9\n\n-1\t0\n";
    let (captures, tally) = read(&[("v", vertices), ("e", edges)], Www::Fold);
    let expected = [
        page("example.com", &["example.net"]),
        page("example.net", &["example.com"]),
        page("example.com", &["example.net"]),
    ];
    assert_eq!(captures, expected);
    let place = |finding, name: &str, offset| (finding, name.to_owned(), offset);
    let expected = [
        place(Finding::BadRow, "e", 16),
        place(Finding::BadRow, "e", 20),
        place(Finding::BadRow, "e", 31),
        place(Finding::BadRow, "v", 14),
        place(Finding::BadRow, "v", 69),
        place(Finding::BadRow, "v", 77),
        place(Finding::BadHost, "v", 24),
        place(Finding::UnknownHost, "e", 4),
        place(Finding::UnknownHost, "e", 12),
        place(Finding::Unsorted, "e", 4),
        place(Finding::Unsorted, "e", 12),
        place(Finding::Unsorted, "e", 26),
        place(Finding::Unsorted, "v", 32),
        place(Finding::Unsorted, "v", 57),
        place(Finding::Unsorted, "v", 73),
    ];
    assert_eq!(places(&tally), expected);
}

#[test]
fn cut_files_lose_only_what_is_cut() {
    use std::io::Write as _;
    let gzip = |text: &str| {
        let mut file = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        file.write_all(text.as_bytes()).unwrap();
        file.finish().unwrap()
    };
    let vertices: String = (0..2000).map(|id| format!("{id}\tcom.example{:04}\n", id * 7919 % 10_000)).collect();
    let edges: String = (0..20_000).map(|at| format!("{}\t{}\n", at / 10, at * at % 2000)).collect();
    let (vertices, edges) = (gzip(&vertices), gzip(&edges));
    let whole = read(&[("v", &vertices), ("e", &edges)], Www::Fold);
    let (captures, tally) = read(&[("v", &vertices), ("e", &edges[..edges.len() / 2])], Www::Fold);
    assert!(captures.len() > 500 && captures.len() < whole.0.len() && tally.of(Finding::Truncated) == 1, "{tally:?}");
    let (captures, tally) = read(&[("v", &vertices[..vertices.len() / 2]), ("e", &edges)], Www::Fold);
    assert!(captures.len() > 200 && tally.of(Finding::Truncated) == 1, "{tally:?}");
    assert!(tally.of(Finding::UnknownHost) > 5000 && places(&tally)[0] == (Finding::Truncated, "v".to_owned(), 0));
}

/// Without the option, the files of a graph are named with what to do, and are no damage.
#[test]
fn a_graph_needs_both_tables_and_the_option() {
    let directory = tempfile::tempdir().unwrap();
    let paths = files(directory.path(), &[("v", b"0\tcom.example\n1\tcom.a\n"), ("e", b"0\t1\n")]);
    let graph = |paths: &[PathBuf]| graph_inputs(paths, TIME, Www::Fold).map(|inputs| inputs.len());
    assert!(matches!(graph(&paths[..1]), Err(Error::NoEdges { .. })));
    assert!(matches!(graph(&paths[1..]), Err(Error::NoHosts { .. })));
    assert!(matches!(graph(&paths), Ok(2)));
    let (mut capture, mut tally) = (Capture::default(), Tally::default());
    for input in inputs(&paths).unwrap() {
        assert!(!open(&input, LinkKinds::default()).unwrap().read(&mut capture, &mut tally).unwrap());
    }
    assert_eq!(counts(&tally), [(Finding::UnreadFile, 2)]);
    assert!(tally.files().iter().all(|file| file.detail.contains("--format cc-graph")));
}

/// A BVGraph has no names and its graph no beginning of its own: the three files belong together.
#[test]
fn a_bv_graph_needs_its_properties_and_its_hosts() {
    let directory = tempfile::tempdir().unwrap();
    let properties: &[u8] = b"#BVGraph properties\nnodes=2\narcs=0\ncompressionflags=\n";
    let wrong: &[u8] = b"#BVGraph properties\nnodes=2\narcs=0\ncompressionflags=TREES_GAMMA\n";
    // Two lists without links.
    let graph: &[u8] = b"\xc0\0\0\0";
    let vertices: &[u8] = b"0\tcom.example\n1\tcom.a\n";
    let texts =
        [("x.graph", graph), ("x.properties", properties), ("x-t.graph", graph), ("x-t.properties", properties)];
    let paths = files(directory.path(), &texts);
    let names = files(directory.path(), &[("v", vertices), ("w.graph", graph), ("w.properties", wrong)]);
    let read = |paths: &[PathBuf]| graph_inputs(paths, TIME, Www::Fold).map(|inputs| inputs.len());
    assert!(matches!(read(&paths), Err(Error::NoHosts { .. })));
    assert!(matches!(read(&[paths[1].clone(), names[0].clone()]), Err(Error::NoGraph { .. })));
    assert!(matches!(read(&[paths[0].clone(), names[0].clone()]), Err(Error::NoEdges { .. })));
    assert!(matches!(read(&[&paths[2..], &names[..1]].concat()), Err(Error::NoEdges { .. })), "a transpose alone");
    let (captures, tally) = read_paths(&[&paths[..], &names[..1]].concat(), Www::Fold);
    assert_eq!((captures.len(), counts(&tally)), (0, vec![(Finding::LoneHost, 2)]));
    let (_, tally) = read_paths(&names, Www::Fold);
    assert_eq!(counts(&tally), [(Finding::BadHeader, 1), (Finding::LoneHost, 2)]);
    let (mut capture, mut tally) = (Capture::default(), Tally::default());
    assert!(
        !open(&inputs(&paths[1..2]).unwrap()[0], LinkKinds::default()).unwrap().read(&mut capture, &mut tally).unwrap()
    );
    assert_eq!(counts(&tally), [(Finding::UnreadFile, 1)], "without the option");
}

#[test]
fn ranks_are_a_table_of_their_own() {
    let directory = tempfile::tempdir().unwrap();
    let hosts: &[u8] = b"#harmonicc_pos\t#harmonicc_val\t#pr_pos\t#pr_val\t#host_rev\n\
        1\t3.2E7\t2\t0.5\tcom.example.www\n---\t---\t1\t1e-9\tcom.a\n\
        x\t1\t1\t1\tcom.b\n1\t1\t1\tNaN\tcom.c\n\n2\t1\t1\t1\t\n";
    // Columns are found by their names. Names of domains are never folded.
    let domains: &[u8] = b"#harmonicc_pos\t#n_hosts\t#host_rev\n7\t12\tcom.example.www\n";
    let paths = files(directory.path(), &[("a", hosts), ("b", domains), ("v", b"0\tcom.example\n")]);
    let (mut reader, mut tally, mut found) = (ranks_in(&paths, Www::Fold).unwrap(), Tally::default(), Vec::new());
    while let Some(rank) = reader.read(&mut tally).unwrap() {
        found.push(rank);
    }
    let urls: Vec<&str> = found.iter().map(|rank| rank.url.as_str()).collect();
    assert_eq!(urls, ["http://example.com/", "http://a.com/", "http://www.example.com/"]);
    assert_eq!((found[0].harmonic, found[0].pagerank_position, found[0].hosts), (Some(3.2e7), Some(2), None));
    assert_eq!((found[1].harmonic_position, found[1].harmonic, found[1].pagerank), (None, None, Some(1e-9)));
    assert_eq!((found[2].harmonic_position, found[2].pagerank, found[2].hosts), (Some(7), None, Some(12)));
    assert_eq!(counts(&tally), [(Finding::BadRow, 2), (Finding::BadHost, 1), (Finding::FoldedHost, 1)]);
    assert_eq!(places(&tally)[0].2, 107);
}

/// The table of cc-pyspark has names in both columns, and needs no vertices.
#[test]
fn links_between_names_are_a_release() {
    use arrow_array::{ArrayRef, RecordBatch, StringArray};
    use std::sync::Arc;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("host-links.parquet");
    let names = |names: &[Option<&str>]| -> ArrayRef { Arc::new(StringArray::from(names.to_vec())) };
    let sources = ["com.example", "com.example", "com.example.www", "org.example", "org.example", "org.b?cher"];
    let targets = ["com.example.www", "org.example", "com.example", "com.www", "net.example", "com.example"];
    let sources = names(&sources.map(Some));
    let mut targets = targets.map(Some);
    targets[4] = None;
    let batch = RecordBatch::try_from_iter_with_nullable([("s", sources, true), ("t", names(&targets), true)]).unwrap();
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let (captures, tally) = read_paths(std::slice::from_ref(&path), Www::Fold);
    assert_eq!(captures, [page("example.com", &["example.org"]), page("example.org", &["www.com"])]);
    let expected = [(Finding::BadRow, 1), (Finding::BadHost, 1), (Finding::FoldedHost, 2), (Finding::FoldedEdge, 2)];
    assert_eq!(counts(&tally), expected);
    let (captures, _) = read_paths(std::slice::from_ref(&path), Www::Keep);
    assert_eq!(captures[0], page("example.com", &["www.example.com", "example.org"]));
    let (mut capture, mut tally) = (Capture::default(), Tally::default());
    let input = &inputs(&[path]).unwrap()[0];
    assert!(!open(input, LinkKinds::default()).unwrap().read(&mut capture, &mut tally).unwrap());
    assert_eq!(counts(&tally), [(Finding::UnreadFile, 1)]);
}
