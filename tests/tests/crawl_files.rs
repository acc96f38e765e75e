//! Stores built from real crawl files ([`webstrata_tests::shared`]). The same sites as WARC, as WAT and as captures
//! written by another program are compared page by page and second by second. Revisits are compared with timelines.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

#[path = "../../datasets/tests/unclosed/mod.rs"]
mod unclosed;

use flate2::read::MultiGzDecoder;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use unclosed::unclosed;
use webstrata_engine::Progress;
use webstrata_layers::{Links, Reader, Uid, Window, parse_time};
use webstrata_pipeline::build;
use webstrata_tests::shared;
use webstrata_tests::stores::{options, reader};

/// The links of each capture, by page and time.
type Captures = BTreeMap<(String, i64), BTreeSet<String>>;

fn store_of(dir: &Path, name: &str, file: &Path) -> Reader {
    let store = dir.join(name);
    let report = build(&options(&store, vec![file.to_owned()]), &Progress::default()).unwrap();
    assert_eq!(report.tally.damaged(), 0, "{}: {:?}", file.display(), report.tally);
    reader(&store)
}

fn links_at(links: &impl Links, uid: Uid, time: i64) -> BTreeSet<String> {
    let window = Window::Seen { from: time, to: time };
    links.out_links(uid, window).unwrap().into_iter().map(|link| links.url(link).unwrap()).collect()
}

/// Every capture of a store, found with the questions of a user.
fn captures(links: &Reader, urls: u64) -> Captures {
    let mut all = Captures::new();
    for uid in Uid::each(Uid::below(urls)) {
        for capture in links.captures(uid).unwrap() {
            all.insert((links.url(uid).unwrap(), capture.time), links_at(links, uid, capture.time));
        }
    }
    all
}

/// The captures that another program found in the same pages.
fn listed(file: &Path) -> Captures {
    let bare = |url: &serde_json::Value| url.as_str().unwrap().split('#').next().unwrap().to_owned();
    let mut all = Captures::new();
    for line in BufReader::new(MultiGzDecoder::new(File::open(file).unwrap())).lines() {
        let capture: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        let time = parse_time(capture["ts"].as_str().unwrap(), false).unwrap();
        let links = capture["links"].as_array().unwrap().iter().map(bare);
        all.entry((bare(&capture["url"]), time)).or_default().extend(links);
    }
    all
}

fn all_urls(store: &Path) -> u64 {
    webstrata_layers::Store::open(store).unwrap().manifest().counts.urls
}

#[test]
#[ignore = "needs the shared test data: WEBSTRATA_SHARED=DIR cargo test --test crawl_files -- --ignored"]
fn warc_and_wat_give_the_links_of_the_capture_files() {
    let real = shared("data/real");
    let mut lost = BTreeMap::new();
    for (site, start) in [("gcc", "19980213160752"), ("httpd", "20210625161834"), ("openbsd-ru", "20190316222551")] {
        let dir = tempfile::tempdir().unwrap();
        let file = |kind: &str| real.join(format!("warc/{site}-captures-{start}-00000.{kind}.gz"));
        let of = |kind: &str| {
            let store = store_of(dir.path(), kind, &file(kind));
            captures(&store, all_urls(&dir.path().join(kind)))
        };
        let (warc, wat) = (of("warc"), of("wat"));
        // The WARC of gcc has only the oldest captures.
        let mut listed = listed(&real.join(format!("{site}.captures.jsonl.gz")));
        assert!(site == "gcc" || listed.len() == warc.len(), "{site}");
        listed.retain(|capture, _| warc.contains_key(capture));
        assert!(warc.len() > 500 && warc == listed, "{site}: WARC and capture file differ");
        assert!(warc.keys().eq(wat.keys()), "{site}: captures of WARC and WAT differ");
        for (((page, _), links), of_wat) in warc.iter().zip(wat.values()) {
            assert!(of_wat.is_subset(links), "{page}: the WAT has links that the WARC has not");
            for link in links.difference(of_wat) {
                *lost.entry((page.clone(), link.clone())).or_insert(0) += 1;
            }
        }
    }
    assert_eq!(lost, unclosed());
}

/// Pages for which the timeline counts other links: the page, the count in the timeline, the count here, the reason.
/// The counts here were verified with another HTML parser.
const COUNTED_OTHERWISE: [(&str, usize, usize, &str); 2] = [
    ("http://www.iana.org/protocols", 2489, 1218, "distinct with their fragments"),
    ("http://www.iana.org/time-zones", 30, 28, "one is ftp, one rsync"),
];

/// A record of a timeline.
struct Row {
    url: String,
    time: i64,
    revisit: bool,
    status: String,
    /// The number of distinct `a[href]` of the page, in its own body or inherited by a revisit; `None` if the record is
    /// not HTML, or the revisit has no original.
    links: Option<usize>,
}

fn timeline(file: &Path) -> Vec<Row> {
    let text = std::fs::read_to_string(file).unwrap();
    let row = |line: &str| {
        let fields: Vec<_> = line.split('\t').collect();
        Row {
            time: parse_time(fields[0], false).unwrap(),
            revisit: fields[1] == "revisit",
            url: webstrata_url::canonical(None, fields[2]).unwrap(),
            status: fields[4].to_owned(),
            links: fields.get(9).and_then(|count| count.parse().ok()),
        }
    };
    text.lines().skip(1).map(row).collect()
}

#[test]
#[ignore = "needs the shared test data: WEBSTRATA_SHARED=DIR cargo test --test crawl_files -- --ignored"]
fn revisits_stand_in_their_timelines() {
    let vectors = shared("data/vectors");
    let mut revisits_with_links = 0;
    for name in ["warcio-example", "pywb-dupes", "pywb-iana", "issue-493", "pywb-example-url-agnostic-revisit"] {
        let rows = timeline(&vectors.join(format!("revisit_timeline_{name}.tsv")));
        let mut file = vectors.join(format!("warc/{name}.warc.gz"));
        if !file.exists() {
            file.set_extension("");
        }
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        build(&options(&store, vec![file]), &Progress::default()).unwrap();
        let links = reader(&store);
        let captured = |row: &Row| {
            let uid = links.uid(&row.url).unwrap()?;
            let capture = links.captures(uid).unwrap().into_iter().find(|capture| capture.time == row.time)?;
            Some(capture.known.then(|| links_at(&links, uid, row.time).len()))
        };
        let mut captures = BTreeSet::new();
        for row in &rows {
            let got = captured(row);
            let what = format!("{name}: {} at {}", row.url, row.time);
            match row.links {
                // An empty script. The timeline looks at the body, and a capture depends on the content type.
                Some(0) if row.url.ends_with(".js") => assert_eq!(got, None, "{what}: a script"),
                // A response with another status is a capture without links.
                _ if row.status != "200" && !row.revisit => {
                    assert!(matches!(got, None | Some(Some(0))), "{what}: status {}: {got:?}", row.status);
                    if got.is_some() {
                        captures.insert((&row.url, row.time));
                    }
                }
                Some(count) => {
                    let otherwise = COUNTED_OTHERWISE.iter().find(|page| (page.0, page.1) == (&row.url, count));
                    let count = otherwise.map_or(count, |page| page.2);
                    assert_eq!(got, Some(Some(count)), "{what}");
                    captures.insert((&row.url, row.time));
                    revisits_with_links += usize::from(row.revisit);
                }
                // A response that is not HTML is not a page. A revisit without an original keeps its time and has
                // unknown links, unless the headers of the revisit say that it is not HTML.
                None if row.revisit => {
                    assert!(matches!(got, None | Some(None)), "{what}: {got:?}");
                    if got.is_some() {
                        captures.insert((&row.url, row.time));
                    }
                }
                None => assert_eq!(got, None, "{what}"),
            }
        }
        let counts = webstrata_layers::Store::open(&store).unwrap().manifest().counts;
        assert_eq!(counts.captures, captures.len() as u64, "{name}: captures beyond the timeline");
    }
    assert!(revisits_with_links >= 2, "{revisits_with_links}");
}

/// A revisit of a page under another URL has the links of the original, in whichever file the original is.
#[test]
#[ignore = "needs the shared test data: WEBSTRATA_SHARED=DIR cargo test --test crawl_files -- --ignored"]
fn a_revisit_under_another_url_borrows_from_another_file() {
    let vectors = shared("data/vectors/warc");
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let files = ["pywb-example-url-agnostic-revisit.warc.gz", "pywb-example-url-agnostic-orig.warc.gz"];
    build(&options(&store, files.iter().map(|file| vectors.join(file)).collect()), &Progress::default()).unwrap();
    let links = reader(&store);
    let uid = links.uid("http://test@example.com/").unwrap().unwrap();
    let captures = links.captures(uid).unwrap();
    assert_eq!(captures.iter().map(|capture| capture.known).collect::<Vec<_>>(), [true]);
    let iana = "http://www.iana.org/domains/example".to_owned();
    assert_eq!(links_at(&links, uid, captures[0].time), BTreeSet::from([iana]));
}
