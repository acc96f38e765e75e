//! Histories of real sites ([`webstrata_tests::shared`]), all in one store. A sample of the URLs is compared with the
//! oracle.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use webstrata_engine::Progress;
use webstrata_layers::{Links, parse_time};
use webstrata_pipeline::build;
use webstrata_tests::crawls::Random;
use webstrata_tests::oracle::Oracle;
use webstrata_tests::stores::{compare_url, options, reader, totals, windows};

/// The number of URLs to ask about. Each URL gives about 20 to 40 questions.
const URLS_ASKED: usize = 400;

/// The capture files of the sites.
fn capture_files() -> Vec<PathBuf> {
    let dir = webstrata_tests::shared("data/real");
    let mut files: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.to_string_lossy().ends_with(".captures.jsonl.gz"));
    files.sort();
    assert!(!files.is_empty(), "the shared test data holds no capture files");
    files
}

fn oracle(files: &[PathBuf]) -> Oracle {
    let bare = |url: &str| url.split('#').next().unwrap_or_default().to_owned();
    let mut oracle = Oracle::default();
    for path in files {
        for line in BufReader::new(MultiGzDecoder::new(File::open(path).unwrap())).lines() {
            let capture: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
            let time = parse_time(capture["ts"].as_str().unwrap(), false).unwrap();
            let links: Vec<_> =
                capture["links"].as_array().unwrap().iter().map(|link| bare(link.as_str().unwrap())).collect();
            oracle.add(&bare(capture["url"].as_str().unwrap()), time, links.iter().map(String::as_str));
        }
    }
    oracle
}

#[test]
#[ignore = "needs the shared test data: WEBSTRATA_SHARED=DIR cargo test --test real_data -- --ignored"]
fn histories_of_real_sites_are_answered_as_the_oracle_answers() {
    let files = capture_files();
    let oracle = oracle(&files);
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let mut options = options(&store, files);
    options.run.workers = 2;
    let report = build(&options, &Progress::default()).unwrap();
    assert_eq!(totals(&report.counts), oracle.totals());
    assert_eq!(report.tally.damaged(), 0, "{:?}", report.tally);

    let reader = reader(&store);
    let mut urls: Vec<_> = oracle.urls().into_iter().collect();
    Random(2011).shuffle(&mut urls);
    for url in urls.iter().take(URLS_ASKED) {
        let asked = windows(&oracle, url);
        if let Err(difference) = compare_url(&reader, &oracle, url, &asked) {
            panic!("{difference}");
        }
    }
    assert_eq!(reader.uid("http://not-in-store.example/").unwrap(), None);
}
