//! WACZ files of the programs that write them, and files made from these, give the captures of the WARCs in them.

#[cfg(test)]
mod reading;
#[cfg(test)]
#[path = "../../tests/src/shared.rs"]
mod shared;

use std::io::Read;
use std::path::Path;

use Finding::{Truncated, WrongDigest};
use chrono::DateTime;
use rawzip::{CompressionMethod, ZipArchive};
use reading::read_all;
use serde_json::Value;
use shared::shared;
use webstrata_datasets::{Capture, Finding, LinkKinds, Tally};

const ALL: LinkKinds = LinkKinds { anchors: true, redirects: true, embeds: true, outlinks: true, via: true };

/// A file, the numbers of its captures and links, and how often each kind of damage occurs. Two of the made files
/// have a description that was changed, and the digest of the description before.
type Known = (&'static str, usize, usize, &'static [(Finding, u64)]);

const KNOWN: [Known; 17] = [
    ("samples/oduwsdl+ipwb/history/3ec79aa22b/samples/wacz/my-collection.wacz", 9, 4, &[]),
    ("samples2/made/cut-off.wacz", 0, 0, &[(Truncated, 1)]),
    ("samples2/made/deflated-warc.wacz", 7, 1, &[]),
    ("samples2/made/extrapages-browsertrix.wacz", 7, 1, &[(WrongDigest, 1)]),
    ("samples2/made/multi.wacz", 9, 2, &[]),
    ("samples2/made/no-manifest.wacz", 7, 1, &[]),
    ("samples2/made/wacz-1.2.0-profile.wacz", 7, 1, &[(WrongDigest, 1)]),
    ("samples2/made/zip64.wacz", 7, 1, &[]),
    ("samples2/wacz/browsertrix--example-2.wacz", 2, 1, &[]),
    ("samples2/wacz/browsertrix--example.wacz", 7, 1, &[]),
    ("samples2/wacz/py-wacz--invalid_example_1.wacz", 0, 0, &[]),
    ("samples2/wacz/py-wacz--valid_example_1.wacz", 1, 1, &[]),
    ("samples2/wacz/py-wacz--valid_example_2.wacz", 1, 1, &[]),
    ("samples2/wacz/py-wacz--valid_signed_example_1.wacz", 2, 1, &[]),
    ("samples2/wacz/replayweb.page--iframetest.wacz", 2, 1, &[]),
    ("samples2/wacz/scoop--example.com.wacz", 1, 1, &[]),
    ("samples2/wacz/wabac.js--example.zip", 23, 5358, &[]),
];

#[cfg(test)]
fn damage(tally: &Tally) -> Vec<(Finding, u64)> {
    tally.counts().filter(|(finding, _)| finding.is_damage()).collect()
}

/// Unpacks the crawl files of an archive, also of archives inside, into files. The names keep the order.
#[cfg(test)]
fn unpack(archive: &[u8], prefix: &str, directory: &Path) {
    let zip = ZipArchive::from_slice(archive).unwrap();
    for header in zip.entries() {
        let header = header.unwrap();
        let name = format!("{prefix}{}", String::from_utf8_lossy(header.file_path().as_bytes()));
        let is_inner = name.ends_with(".wacz");
        if !is_inner && ![".warc", ".warc.gz"].iter().any(|end| name.ends_with(end)) {
            continue;
        }
        let entry = zip.get_entry(header.wayfinder()).unwrap();
        let mut content = Vec::new();
        if header.compression_method() == CompressionMethod::DEFLATE {
            flate2::read::DeflateDecoder::new(entry.data()).read_to_end(&mut content).unwrap();
        } else {
            content.extend_from_slice(entry.data());
        }
        if is_inner {
            unpack(&content, &format!("{name}!"), directory);
        } else {
            std::fs::write(directory.join(name.replace('/', "!")), content).unwrap();
        }
    }
}

/// The URL, the time and the status of a capture.
type Row = (String, String, Option<u64>);

#[cfg(test)]
fn row(capture: &Capture) -> Row {
    let time = DateTime::from_timestamp(capture.time, 0).unwrap().format("%Y%m%d%H%M%S").to_string();
    (capture.url.clone(), time, capture.status.map(u64::from))
}

/// The captures that a line of an independent reader describes, as this crate counts captures: HTML pages, all
/// responses with another status than 200, and revisits of anything that may be HTML.
#[cfg(test)]
fn expected(line: &Value) -> Option<Row> {
    let (status, mime) = (line["status"].as_u64(), line["mime"].as_str());
    let is_page = match line["type"].as_str().unwrap() {
        "revisit" => mime.is_none_or(|mime| matches!(mime, "text/html" | "application/xhtml+xml" | "application/http")),
        _ => !line["links"].is_null(),
    };
    let is_capture = if status.is_none_or(|status| status == 200) { is_page } else { true };
    let text = |name: &str| line[name].as_str().unwrap().to_owned();
    // A response 304 has no status of its own: the capture before gives the status.
    is_capture.then(|| (text("url"), text("ts14"), status.filter(|&status| status != 304)))
}

#[test]
#[ignore = "needs the shared test data: WEBSTRATA_SHARED=DIR cargo test --test wacz_samples -- --ignored"]
fn a_wacz_gives_what_its_warcs_give() {
    let data = shared("data");
    for (name, captures, links, expected_damage) in KNOWN {
        let file = data.join(name);
        let (found, tally) = read_all(&file, ALL);
        let found_links = found.iter().map(|capture| capture.links.len()).sum::<usize>();
        assert_eq!((found.len(), found_links, &damage(&tally)[..]), (captures, links, expected_damage), "{name}");
        if found.is_empty() {
            continue;
        }
        let unpacked = tempfile::tempdir().unwrap();
        unpack(&std::fs::read(&file).unwrap(), "", unpacked.path());
        let (from_warcs, tally_of_warcs) = read_all(unpacked.path(), ALL);
        assert_eq!(found, from_warcs, "{name}");
        let without_digests = tally.counts().filter(|(finding, _)| *finding != WrongDigest);
        assert!(without_digests.eq(tally_of_warcs.counts()), "{name}");
    }
}

#[test]
#[ignore = "needs the shared test data: WEBSTRATA_SHARED=DIR cargo test --test wacz_samples -- --ignored"]
fn an_independent_reader_finds_the_same_captures() {
    let data = shared("data");
    let mut compared = 0;
    // The other reader takes the archive inside of the file that is cut off for the whole.
    for (name, ..) in KNOWN.into_iter().filter(|(name, ..)| !name.ends_with("cut-off.wacz")) {
        let file = data.join(name);
        let Ok(lines) = std::fs::read_to_string(data.join(format!("{name}.expected.jsonl"))) else { continue };
        let lines = lines.lines().map(|line| serde_json::from_str(line).unwrap());
        let is_web = |row: &Row| row.0.starts_with("http");
        let mut rows: Vec<Row> = lines.filter_map(|line| expected(&line)).filter(is_web).collect();
        let mut found: Vec<Row> = read_all(&file, ALL).0.iter().map(row).filter(is_web).collect();
        rows.sort();
        found.sort();
        assert_eq!(found, rows, "{name}");
        compared += found.len();
    }
    assert!(compared > 60, "{compared} captures only");
}
