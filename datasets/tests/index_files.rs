//! CDX, CDXJ, ZipNum files and crawl logs of other projects, line by line with what an independent program reads
//! (`FILE.expected.jsonl`, of `tools/lists_expected.py`), and damaged lines.

#[cfg(test)]
mod reading;
#[cfg(test)]
#[path = "../../tests/src/shared.rs"]
mod shared;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Write;
use std::path::{Path, PathBuf};

use reading::read_all;
use serde_json::Value;
use shared::shared;
use webstrata_datasets::{Capture, Content, Digest, Finding, LinkKinds, Tally, probe};

/// The files that have captures, and the files that give none because of what they are.
#[cfg(test)]
fn samples() -> Vec<PathBuf> {
    let directory = shared("data/samples2");
    let mut files = Vec::new();
    for folder in ["cdx", "cdxj", "zipnum", "crawllog"] {
        for entry in std::fs::read_dir(directory.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.with_file_name(format!("{}.expected.jsonl", path.file_name().unwrap().to_str().unwrap())).is_file()
            {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// The lines of the reference, and its summary.
#[cfg(test)]
fn expected(file: &Path) -> (Vec<Value>, Value) {
    let name = format!("{}.expected.jsonl", file.file_name().unwrap().to_str().unwrap());
    let text = std::fs::read_to_string(file.with_file_name(name)).unwrap();
    let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let summary = lines.pop().unwrap();
    (lines, summary)
}

#[cfg(test)]
fn text<'a>(line: &'a Value, name: &str) -> &'a str {
    line[name].as_str().unwrap_or_default()
}

/// What a line must give: a capture, or a finding.
#[cfg(test)]
fn outcome(line: &Value) -> Option<Finding> {
    let (url, mime) = (text(line, if line["uri"].is_string() { "uri" } else { "url" }), text(line, "mime"));
    match line["status"].as_i64() {
        _ if line["bad"].is_string() => Some(Finding::BadRow),
        _ if url.starts_with("dns:") => Some(Finding::Dns),
        _ if url.starts_with("filedesc:") => Some(Finding::FileInfo),
        _ if text(line, "key").contains("__wb_method=post") => Some(Finding::OtherMethod),
        Some(..=199 | 1000..) => Some(Finding::OtherStatus),
        None | Some(200) if mime != "warc/revisit" && !may_be_html(mime) => Some(Finding::NotHtml),
        _ => None,
    }
}

#[cfg(test)]
fn may_be_html(mime: &str) -> bool {
    matches!(mime, "" | "-" | "unk" | "no-type" | "unknown" | "text/html" | "application/xhtml+xml")
}

#[cfg(test)]
fn digits(time: i64) -> String {
    chrono::DateTime::from_timestamp(time, 0).unwrap().format("%Y%m%d%H%M%S").to_string()
}

#[test]
#[ignore = "needs the shared test data: WEBSTRATA_SHARED=DIR cargo test --test index_files -- --ignored"]
#[expect(clippy::print_stdout, reason = "the table is what it is for")]
fn every_line_of_the_reference_is_a_capture_or_counted() {
    let (mut files, mut all) = (0, 0);
    for file in samples() {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        let (lines, summary) = expected(&file);
        let (captures, tally) = read_all(&file, LinkKinds { redirects: true, ..LinkKinds::default() });
        let counts: Vec<String> =
            tally.counts().map(|(finding, count)| format!("{} {count}", finding.name())).collect();
        println!("{name}: {} lines, {} captures, {}", summary["lines"], captures.len(), counts.join(", "));
        files += 1;
        if ["ipwb--sample-1.cdxj", "py-wacz--wr-crawl.log"].contains(&&*name) {
            assert_eq!((captures.len(), tally.of(Finding::IndexFile)), (0, 1), "{name}");
            continue;
        }
        all += captures.len();
        let others: HashSet<&str> = lines
            .iter()
            .filter(|line| outcome(line) == Some(Finding::NotHtml))
            .map(|line| text(line, "digest"))
            .collect();
        let (mut captures, mut counted) = (captures.into_iter().peekable(), BTreeMap::<Finding, u64>::new());
        let mut digests: HashMap<String, Digest> = HashMap::new();
        for line in &lines {
            let is_revisit = text(line, "mime") == "warc/revisit" || line["notes"].to_string().contains("duplicate:");
            let url = text(line, if line["uri"].is_string() { "uri" } else { "url" });
            let is_line = |capture: &Capture| capture.url == url && text(line, "ts").starts_with(&digits(capture.time));
            let capture = match outcome(line) {
                Some(finding) => Err(finding),
                None if captures.peek().is_some_and(is_line) => Ok(captures.next().unwrap()),
                None if is_revisit && others.contains(text(line, "digest")) => Err(Finding::NotHtml),
                None => panic!("{name}: {line} gives {:?}", captures.peek()),
            };
            let capture = match capture {
                Ok(capture) => capture,
                Err(finding) => {
                    *counted.entry(finding).or_default() += 1;
                    continue;
                }
            };
            let status = line["status"].as_i64().and_then(|status| u16::try_from(status).ok());
            assert!(capture.status == status || status == Some(304), "{name}: {line}");
            assert_eq!(capture.digest.is_some(), !text(line, "digest").is_empty(), "{name}: {line}");
            if let Some(digest) = capture.digest {
                assert_eq!(*digests.entry(text(line, "digest").to_owned()).or_insert(digest), digest, "{name}: {line}");
            }
            let is_page = status.is_none_or(|status| status == 200);
            match &capture.content {
                Content::Unknown => assert!(is_page && !is_revisit, "{name}: {line}"),
                Content::Revisit(_) => assert!(is_page && is_revisit || status == Some(304), "{name}: {line}"),
                Content::Links => assert!(!is_page, "{name}: {line}"),
            }
            let redirect = line["redirect"].as_str().into_iter().collect::<Vec<_>>();
            assert_eq!(capture.links.iter().collect::<Vec<_>>(), redirect, "{name}: {line}");
        }
        assert_eq!(captures.next(), None, "{name}");
        let is_dated = |finding: &Finding| !matches!(finding, Finding::FinerDate | Finding::CoarserDate);
        assert_eq!(counted.into_iter().collect::<Vec<_>>(), {
            let counts = tally.counts().filter(|(finding, _)| is_dated(finding));
            counts.collect::<Vec<_>>()
        });
        let distinct: HashSet<Digest> = digests.values().copied().collect();
        assert_eq!(distinct.len(), digests.len(), "{name}");
    }
    assert_eq!((files, all), (FILES, CAPTURES));
}

/// Each link from `via` is in the last capture of `via` before the line that is a page or a redirect.
#[test]
#[ignore = "needs the shared test data: WEBSTRATA_SHARED=DIR cargo test --test index_files -- --ignored"]
fn links_of_logs_are_those_of_the_reference() {
    let (mut all, mut all_unused) = (0, 0);
    for file in samples().iter().filter(|file| file.parent().unwrap().ends_with("crawllog")) {
        let (captures, tally) = read_all(file, LinkKinds { via: true, ..LinkKinds::default() });
        let with_links = captures.iter().filter(|capture| !capture.links.is_empty());
        let found: Vec<(String, String, String)> = with_links
            .map(|capture| (digits(capture.time), capture.url.clone(), capture.links.iter().collect::<String>()))
            .collect();
        let (lines, _) = expected(file);
        let (mut pages, mut wanted, mut unused) = (HashMap::new(), Vec::new(), 0);
        for line in lines.iter().filter(|line| line["uri"].is_string()) {
            let (uri, via) = (text(line, "uri"), text(line, "via"));
            if ["L", "R"].contains(&text(line, "hop")) && via.starts_with("http") {
                match pages.get(via) {
                    Some(Some(time)) => wanted.push((String::clone(time), via.to_owned(), uri.to_owned())),
                    _ => unused += 1,
                }
            }
            let is_page = |status| status == 200 && may_be_html(text(line, "mime"));
            if line["status"].as_i64().is_some_and(|status| is_page(status) || (300..400).contains(&status)) {
                let is_duplicate = line["notes"].to_string().contains("duplicate:");
                pages.insert(uri, (!is_duplicate).then(|| text(line, "ts")[..14].to_owned()));
            }
        }
        let first = found.iter().zip(&wanted).find(|(found, wanted)| found != wanted);
        assert_eq!((first, found.len()), (None, wanted.len()), "{}", file.display());
        assert_eq!(tally.of(Finding::UnusedLinks), unused);
        all += found.len();
        all_unused += unused;
    }
    assert_eq!((all, all_unused), (LINKS, UNUSED));
}

/// The files of the reference, and the captures that they give.
const FILES: usize = 22;
const CAPTURES: usize = 542;

/// The links of all logs. The redirects of two images belong to no page.
const LINKS: usize = 380;
const UNUSED: u64 = 2;

const LINES: [&str; 6] = [
    " CDX N b a m s k r M S V g",
    "com,example)/a 20140127171200 http://example.com/a text/html 302 B2LTWWPUOYAH http://t/ - 9 7 a",
    "http://example.com/a b 1.2.3.4 20040708140342 text/html 60 x.arc.gz 7 0123456789abcdef0123456789abcdef",
    r#"com,example)/ 20140127171200 {"url": "http://example.com/\u00e9", "mime": "text/html", "status": "200"}"#,
    r#"{"urlkey": "com,example)/", "timestamp": "20140127171200", "url": "http://example.com/", "status": 200}"#,
    "2007-12-27T12:51:28.532Z   200  59 http://a.dk/ LR http://b.dk/ text/html #017 20071227125127759+115 \
     sha1:YSVHFJENFP5MACCNTLG2TZZKOFSLB7LQ - duplicate:\"a b,7,20071227125127\",3t {\"x\":1}",
];

/// Lines with random changes are read or counted. Nothing panics.
#[test]
fn damaged_lines_end_nothing() {
    let mut random = fastrand::Rng::with_seed(7);
    for first in LINES {
        for _ in 0..2_000 {
            // Most lines stay whole, so that the format is detected.
            let mut text = format!("{first}\n").repeat(3).into_bytes();
            for _ in 0..2 {
                let mut line = random.choice(LINES).unwrap().as_bytes().to_vec();
                for _ in 0..random.usize(..4) {
                    let at = random.usize(..line.len());
                    match random.u8(..4) {
                        0 => line[at] = random.u8(..),
                        1 => line.truncate(at.max(1)),
                        2 => line.insert(at, *random.choice(b" \t{}\"\\,:+-\xff\xc3").unwrap()),
                        _ => {
                            line.remove(at);
                            line.push(b'7');
                        }
                    }
                }
                text.extend(line);
                text.push(b'\n');
            }
            probe::crawl(&text);
        }
    }
}

/// A line that is longer than any line is not held, and the lines after it are read.
#[test]
fn a_line_that_is_too_long_is_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    for (name, line) in [("x.cdx", LINES[1]), ("x.cdxj", LINES[3]), ("crawl.log", LINES[5])] {
        let path = dir.path().join(name);
        let mut file = std::fs::File::create(&path).unwrap();
        writeln!(file, "{line}\n{line}").unwrap();
        let piece = "x {\"y ".repeat(1 << 17);
        for _ in 0..80 {
            file.write_all(piece.as_bytes()).unwrap();
        }
        writeln!(file, "\n{line}").unwrap();
        let (captures, tally): (Vec<Capture>, Tally) = read_all(&path, LinkKinds::default());
        assert_eq!((captures.len(), tally.of(Finding::BadLength), tally.damaged()), (3, 1, 1), "{name}: {tally:?}");
    }
}

/// The last line of a ZipNum block has no line feed.
#[test]
fn blocks_of_zipnum_end_lines() {
    let dir = tempfile::tempdir().unwrap();
    for line in [LINES[1], LINES[3], LINES[5]] {
        let path = dir.path().join("cdx-00000.gz");
        let mut file = std::fs::File::create(&path).unwrap();
        for lines in [3, 1, 4, 1, 2] {
            let block = vec![line; lines].join("\n");
            let mut member = flate2::write::GzEncoder::new(&mut file, flate2::Compression::fast());
            member.write_all(block.as_bytes()).unwrap();
            member.finish().unwrap();
        }
        let (captures, tally) = read_all(&path, LinkKinds::default());
        assert_eq!((captures.len(), tally.damaged()), (11, 0), "{tally:?}");
    }
}
