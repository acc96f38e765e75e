//! A store of a WACZ is the store of its crawl files, also through a pipe, and its records of inputs name the crawl
//! files in the WACZ.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

#[allow(dead_code, reason = "the tests of the reader write all forms of ZIP")]
#[path = "../../datasets/tests/zips/mod.rs"]
mod zips;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use webstrata_datasets::Finding;
use webstrata_engine::{Progress, RunOptions};
use webstrata_layers::{Direction, InputRecord, Layer, Links, Reader, Store, Window, read_inputs};
use webstrata_pipeline::{BuildOptions, BuildReport, build};
use xxhash_rust::xxh3::xxh3_128;
use zips::{deflated, stored, zip};

/// A WARC with one page, and a revisit of a page that may be in another file.
fn warc(page: &str, original: &str) -> Vec<u8> {
    let http = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<a href=/{page}-link>x</a>");
    let head = |kind: &str, page: &str, digest: &str, bytes: usize| {
        let refers = match kind {
            "revisit" => format!("WARC-Refers-To-Target-URI: http://example.org/{original}\r\n"),
            _ => String::new(),
        };
        format!(
            "WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Target-URI: http://example.org/{page}\r\n\
             WARC-Date: 2020-01-01T00:00:00Z\r\nWARC-Payload-Digest: sha1:{digest}\r\n{refers}\
             Content-Type: application/http; msgtype=response\r\nContent-Length: {bytes}\r\n\r\n",
        )
    };
    let digest = |page: &str| page.repeat(32).to_uppercase();
    let response = head("response", page, &digest(page), http.len()) + &http + "\r\n\r\n";
    let revisit = head("revisit", &format!("{page}-again"), &digest(original), 0) + "\r\n\r\n";
    (response + &revisit).into_bytes()
}

/// Builds a store. Returns the report, the URLs and layers as bytes, and the records of inputs.
fn built(directory: &Path, name: &str, input: PathBuf) -> (BuildReport, BTreeMap<String, Vec<u8>>, Vec<InputRecord>) {
    let path = directory.join(name);
    let options = BuildOptions::new(RunOptions::new(&path), vec![input]);
    let report = build(&options, &Progress::default()).unwrap();
    let store = Store::open(&path).unwrap();
    let manifest = store.manifest();
    let files = manifest.files().filter(|file| file.layer != Layer::Url || file.bytes > 0);
    let files = files.map(|file| (file.path.clone(), fs::read(path.join(&file.path)).unwrap())).collect();
    let records = read_inputs(&store, &manifest.provenance.inputs[0]).unwrap();
    (report, files, records)
}

#[test]
fn a_wacz_gives_the_store_of_its_crawl_files() {
    let directory = tempfile::tempdir().unwrap();
    let (one, two) = (warc("a", "b"), warc("b", "a"));
    let crawl = directory.path().join("crawl");
    fs::create_dir(&crawl).unwrap();
    fs::write(crawl.join("one.warc"), &one).unwrap();
    fs::write(crawl.join("two.warc"), &two).unwrap();
    let parts = [stored("archive/one.warc", &one), deflated("archive/two.warc", &two)];
    let wacz = directory.path().join("x.wacz");
    fs::write(&wacz, zip(&parts)).unwrap();
    let (report, files, _) = built(directory.path(), "of-files", crawl);
    let (report_of_wacz, files_of_wacz, records) = built(directory.path(), "of-wacz", wacz.clone());
    assert_eq!((report.counts, report.tally), (report_of_wacz.counts, report_of_wacz.tally));
    assert_eq!(report.counts.captures, 4);
    assert_eq!(files.keys().collect::<Vec<_>>(), files_of_wacz.keys().collect::<Vec<_>>());
    assert!(files == files_of_wacz, "the layers differ");
    let expected = parts.map(|part| {
        let (name, bytes) = (format!("{}!{}", wacz.display(), part.name), part.stored.len() as u64);
        (name, bytes, 2, Some(format!("{:032x}", xxh3_128(&part.stored))))
    });
    let records = records.into_iter().map(|record| (record.name, record.bytes, record.captures, record.digest));
    assert_eq!(records.collect::<Vec<_>>(), expected);
}

/// A pipe is read once, and the revisits need the crawl files a second time.
#[cfg(unix)]
#[test]
fn a_wacz_through_a_pipe_gives_the_same_store() {
    let directory = tempfile::tempdir().unwrap();
    let wacz = zip(&[stored("archive/one.warc", &warc("a", "b")), deflated("archive/two.warc", &warc("b", "a"))]);
    let file = directory.path().join("x.wacz");
    fs::write(&file, &wacz).unwrap();
    let (report, files, _) = built(directory.path(), "of-file", file);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&wacz).unwrap();
    for (name, bytes) in [("plain", wacz), ("packed", packed.finish().unwrap())] {
        let pipe = directory.path().join(name);
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let digest = format!("{:032x}", xxh3_128(&bytes));
        let path = pipe.clone();
        let feeding = std::thread::spawn(move || fs::File::options().write(true).open(path).unwrap().write_all(&bytes));
        let (of_pipe, files_of_pipe, records) = built(directory.path(), &format!("of-{name}"), pipe);
        feeding.join().unwrap().unwrap();
        assert_eq!((of_pipe.counts, of_pipe.tally), (report.counts, report.tally.clone()), "{name}");
        assert!(files == files_of_pipe, "{name}: the layers differ");
        assert_eq!(records[0].digest, Some(digest), "{name}");
    }
}

#[test]
fn damage_of_a_wacz_is_in_the_report() {
    let directory = tempfile::tempdir().unwrap();
    let list = br#"{"resources": [{"path": "archive/gone.warc"}]}"#;
    let archive = zip(&[stored("archive/one.warc", &warc("a", "a")), stored("datapackage.json", list)]);
    let wacz = directory.path().join("x.wacz");
    fs::write(&wacz, &archive).unwrap();
    let (report, _, records) = built(directory.path(), "store", wacz.clone());
    assert_eq!((report.counts.captures, report.tally.of(Finding::MissingFile), records.len()), (2, 1, 2));
    let place = PathBuf::from(format!("{}!archive/gone.warc", wacz.display()));
    assert_eq!(report.tally.examples()[0].path, place);
    fs::write(&wacz, &archive[..archive.len() - 1]).unwrap();
    let options = BuildOptions::new(RunOptions::new(directory.path().join("none")), vec![wacz]);
    let error = build(&options, &Progress::default()).unwrap_err().to_string();
    assert!(error.contains("the file is cut off"), "{error}");
}

#[test]
fn an_archive_with_originals_of_revisits_is_missing_until_it_is_an_input() {
    let directory = tempfile::tempdir().unwrap();
    let (one, two) = (directory.path().join("one.wacz"), directory.path().join("two.wacz"));
    let description = br#"{"resources": [], "relation": {"requires": [{"filename": "two.wacz"}]}}"#;
    let archives = [
        (&one, zip(&[stored("archive/a.warc", &warc("a", "b")), stored("datapackage.json", description)])),
        (&two, zip(&[stored("archive/b.warc", &warc("b", "b"))])),
    ];
    archives.iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
    let path = directory.path().join("store");
    let run = |input: &PathBuf, update: bool| {
        let options = BuildOptions { update, ..BuildOptions::new(RunOptions::new(&path), vec![input.clone()]) };
        build(&options, &Progress::default()).unwrap();
        let reader = Reader::new(Store::open(&path).unwrap(), 1 << 20);
        let revisit = reader.uid("http://example.org/a-again").unwrap().unwrap();
        let missing: Vec<String> = reader.store().manifest().provenance.missing_containers.iter().cloned().collect();
        let links = reader.links(revisit, Direction::Out, Window::ALWAYS).unwrap();
        (missing, reader.captures(revisit).unwrap()[0].known, reader.urls_of(&links).unwrap())
    };
    assert_eq!(run(&one, false), (vec!["two.wacz".to_owned()], false, vec![]));
    assert_eq!(run(&two, true), (vec![], true, vec!["http://example.org/b-link".to_owned()]));
}
