//! Captures that were not read whole, and responses to requests that were not a GET, through every format.
//!
//! Reads nothing; each test writes its inputs. The ways to be cut are a list ([`ways`]). Every file that can hold a way
//! must give the same captures as the plain WARC file.

#[cfg(test)]
mod crawls;
#[cfg(test)]
mod methods;
#[cfg(test)]
#[path = "../reading/mod.rs"]
mod reading;
#[cfg(test)]
mod reported;
#[cfg(test)]
#[path = "../zips/mod.rs"]
mod zips;

use std::collections::BTreeMap;

use crawls::{
    CutColumn, Files, START, all_shown, brotli, chunked, containers, deflate, gzip, http, json_line, page, record,
    write_table, zstd,
};
use reading::read_all;
use serde_json::json;
use webstrata_datasets::{Capture, Cut, Finding, LinkKinds, Tally};

const LINKS: usize = 400;

/// A way to store a page, whole or not: its name, the fields of the record, the response, why its capture is cut, and
/// the fewest links that are found.
#[cfg(test)]
struct Way {
    name: &'static str,
    fields: Vec<String>,
    http: Vec<u8>,
    status: u16,
    cut: Option<Cut>,
    links_min: usize,
}

/// All ways, whole and cut. A broken length is in the fields.
#[cfg(test)]
fn ways() -> Vec<Way> {
    let page = page(LINKS);
    let part = |bytes: &[u8]| bytes[..bytes.len() / 2].to_vec();
    let length = |bytes: usize| format!("Content-Length: {bytes}");
    let way = |name, cut, http_fields: &[&str], body: &[u8], links_min| {
        let http = http(200, http_fields, body);
        Way { name, fields: Vec::new(), http, status: 200, cut, links_min }
    };
    let coded = |coding: &'static str, cut, body: &[u8], links_min| {
        way(coding, cut, &[&format!("Content-Encoding: {coding}")], body, links_min)
    };
    let (whole, damaged) = (None, Some(Cut::Damaged));
    let chunks = ["Transfer-Encoding: chunked"];
    let mut ways = vec![
        way("plain", whole, &[], &page, LINKS),
        way("length", whole, &[&length(page.len())], &page, LINKS),
        way("chunked", whole, &chunks, &chunked(&page), LINKS),
        way("joined before", whole, &chunks, &page, LINKS),
        way("coded chunks", whole, &["Transfer-Encoding: gzip, chunked"], &chunked(&gzip(&page)), LINKS),
        coded("gzip", whole, &gzip(&page), LINKS),
        coded("deflate", whole, &deflate(&page), LINKS),
        coded("br", whole, &brotli(&page), LINKS),
        coded("zstd", whole, &zstd(&page), LINKS),
        coded("gzip", whole, &page, LINKS),
        way("short body", Some(Cut::Short), &[&length(page.len())], &part(&page), 190),
        way("no body", Some(Cut::Short), &[&length(page.len())], b"", 0),
        way("chunks cut", damaged, &chunks, &part(&chunked(&page)), 180),
        way("no last chunk", damaged, &chunks, chunked(&page).strip_suffix(b"0\r\n\r\n").unwrap(), LINKS),
        coded("gzip", damaged, &part(&gzip(&page)), 50),
        coded("deflate", damaged, &part(&deflate(&page)), 50),
        coded("br", damaged, &part(&brotli(&page)), 0),
        coded("zstd", damaged, &part(&zstd(&page)), 0),
        coded("sdch", Some(Cut::Encoding), &gzip(&page), 0),
        way("unread transfer", Some(Cut::Encoding), &["Transfer-Encoding: compress"], &gzip(&page), 0),
        Way { status: 206, http: http(206, &[], &part(&page)), ..way("part", Some(Cut::Partial), &[], b"", 190) },
    ];
    for value in ["length", "time", "disconnect", "unspecified", "other", ""] {
        let mut way = way("truncated", Some(Cut::Truncated), &[], &part(&page), 190);
        way.fields.push(format!("WARC-Truncated: {value}"));
        ways.push(way);
    }
    let mut several = way("several reasons", Some(Cut::Truncated), &[&length(page.len())], &part(&page), 190);
    several.fields.push("WARC-Truncated: length".to_owned());
    let mut early = way("record ends early", Some(Cut::Short), &[], &part(&page), 190);
    early.fields.push(length(http(200, &[], &page).len()));
    let mut segment = way("no second segment", Some(Cut::Segments), &[], &part(&page), 190);
    segment.fields.push("WARC-Segment-Number: 1".to_owned());
    ways.extend([several, early, segment]);
    ways
}

#[cfg(test)]
fn url(way: usize) -> String {
    format!("http://a.example/{way}")
}

#[cfg(test)]
fn records(ways: &[Way]) -> Vec<Vec<u8>> {
    let record = |(day, way): (usize, &Way)| {
        let fields: Vec<&str> = way.fields.iter().map(String::as_str).collect();
        record("response", &url(day), i64::try_from(day % 28).unwrap(), &fields, &way.http)
    };
    ways.iter().enumerate().map(record).collect()
}

/// The captures of all ways from a plain WARC file, in the order of the ways.
#[cfg(test)]
fn captures(files: &Files, ways: &[Way]) -> (Vec<Capture>, Tally) {
    let (mut captures, tally) = files.read("plain.warc", &records(ways).concat());
    captures.sort_by_key(|capture| capture.url.rsplit('/').next().unwrap().parse::<usize>().unwrap());
    (captures, tally)
}

#[test]
fn every_way_to_be_cut_is_seen_and_counted() {
    let (files, ways) = (Files::new(), ways());
    let (captures, tally) = captures(&files, &ways);
    assert_eq!(captures.len(), ways.len());
    let mut expected = BTreeMap::<&str, u64>::new();
    let (whole, _) = files.read("whole.warc", &record("response", "http://a.example/", 0, &[], &ways[0].http));
    let links: Vec<&str> = whole[0].links.iter().collect();
    for (way, capture) in ways.iter().zip(&captures) {
        let found: Vec<&str> = capture.links.iter().collect();
        assert_eq!((capture.cut, capture.status), (way.cut, Some(way.status)), "{}", way.name);
        assert!(found.len() >= way.links_min, "{}: {} links", way.name, found.len());
        // The part of a page may end inside a tag.
        let sure = found.len().saturating_sub(1);
        assert!(links.starts_with(&found[..sure]), "{}", way.name);
        if let Some(cut) = way.cut {
            *expected.entry(cut.name()).or_default() += 1;
        }
    }
    assert_eq!(tally.parts(Finding::CutCapture).collect::<BTreeMap<_, _>>(), expected);
    assert_eq!(tally.of(Finding::CutCapture), expected.values().sum::<u64>());
    assert!(expected.keys().eq(["damaged", "encoding", "partial", "segments", "short", "truncated"].iter()));
}

#[test]
fn the_same_captures_through_every_container() {
    let (files, ways) = (Files::new(), ways());
    let (expected, tally) = captures(&files, &ways);
    let mut expected = all_shown(&expected);
    expected.sort();
    for (name, bytes) in containers(&records(&ways)) {
        let (captures, found) = files.read(name, &bytes);
        let mut captures = all_shown(&captures);
        captures.sort();
        assert_eq!(captures, expected, "{name}");
        assert_eq!(found.damaged(), tally.damaged(), "{name}: {found:?}");
    }
}

#[test]
fn the_same_captures_through_lines_and_tables() {
    let (files, ways) = (Files::new(), ways());
    let (expected, _) = captures(&files, &ways);
    let lines: String = expected.iter().map(|capture| json_line(capture, None)).collect();
    let (captures, tally) = files.read("a.jsonl", lines.as_bytes());
    assert_eq!((captures, tally.damaged()), (expected.clone(), 0));
    for is_plain in [true, false] {
        for (cuts, expected) in [
            (CutColumn::Names, expected.clone()),
            // A flag does not say the reason, and status 206 does.
            (CutColumn::Flags, with_cuts(&expected, |cut| cut.map(|_| Cut::Truncated))),
            (CutColumn::None, with_cuts(&expected, |cut| cut.filter(|&cut| cut == Cut::Partial))),
        ] {
            let path = files.path("a.parquet");
            write_table(&path, &expected, &[], cuts, is_plain);
            let (captures, tally) = read_all(&path, LinkKinds::default());
            assert_eq!((captures, tally.damaged()), (expected, 0));
        }
    }
}

#[cfg(test)]
fn with_cuts(captures: &[Capture], cut: impl Fn(Option<Cut>) -> Option<Cut>) -> Vec<Capture> {
    captures.iter().map(|capture| Capture { cut: cut(capture.cut), ..capture.clone() }).collect()
}

#[test]
fn a_table_with_another_reason_is_damaged() {
    let files = Files::new();
    let path = files.path("a.parquet");
    let names: arrow_array::ArrayRef =
        std::sync::Arc::new(arrow_array::StringArray::from(vec![Some("short"), Some("torn"), Some(""), None]));
    let urls: arrow_array::ArrayRef = std::sync::Arc::new(arrow_array::StringArray::from(vec!["http://a.example/"; 4]));
    let times: arrow_array::ArrayRef = std::sync::Arc::new(arrow_array::Int64Array::from(vec![START; 4]));
    let columns = [("url", urls), ("ts", times), ("cut", names)].map(|(name, column)| (name, column, true));
    let batch = arrow_array::RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let (captures, tally) = read_all(&path, LinkKinds::default());
    assert_eq!((captures.len(), tally.of(Finding::BadRow)), (3, 1));
    assert_eq!(tally.examples()[0].offset, 1);
}

/// A WAT record as an extractor writes it of a WARC record: it gives the fields, the bytes that it read, and the links.
#[cfg(test)]
fn wat(way: &Way, capture: &Capture) -> Vec<u8> {
    let text = String::from_utf8_lossy(&way.http).into_owned();
    let header = text.split("\r\n\r\n").next().unwrap();
    let body = way.http.len() - header.len() - 4;
    let object = |lines: &mut dyn Iterator<Item = &str>| -> serde_json::Value {
        let fields = lines.filter_map(|line| line.split_once(": ").or(line.split_once(':')));
        fields.map(|(name, value)| (name.to_owned(), json!(value))).collect::<serde_json::Map<_, _>>().into()
    };
    let mut envelope = object(&mut way.fields.iter().map(String::as_str));
    envelope["WARC-Type"] = "response".into();
    envelope["WARC-Target-URI"] = capture.url.clone().into();
    envelope["WARC-Date"] = format!("2020-01-{:02}T00:00:00Z", (capture.time - START) / 86_400 + 1).into();
    if envelope.get("Content-Length").is_none() {
        envelope["Content-Length"] = way.http.len().to_string().into();
    }
    let links: Vec<_> = capture.links.iter().map(|url| json!({"path": "A@/href", "url": url})).collect();
    let json = json!({"Envelope": {
        "WARC-Header-Metadata": envelope,
        "Payload-Metadata": {
            "Actual-Content-Length": way.http.len().to_string(),
            "HTTP-Response-Metadata": {
                "Response-Message": {"Status": way.status.to_string()},
                "Headers": object(&mut header.split("\r\n").skip(1)),
                "Entity-Length": body.to_string(),
                "HTML-Metadata": {"Links": links},
            },
        },
    }});
    let more = ["WARC-Refers-To: <urn:uuid:1>", "Content-Type: application/json"];
    let record = record("metadata", &capture.url, 0, &more, json.to_string().as_bytes());
    let text = String::from_utf8(record).unwrap();
    text.replace("Content-Type: application/http; msgtype=metadata\r\n", "").into_bytes()
}

#[test]
fn the_same_captures_through_a_wat() {
    let (files, ways) = (Files::new(), ways());
    let (expected, _) = captures(&files, &ways);
    let records: Vec<_> = ways.iter().zip(&expected).map(|(way, capture)| wat(way, capture)).collect();
    let (captures, tally) = files.read("a.wat", &records.concat());
    // An extractor does not say that chunks or compressed bytes were broken.
    let expected = with_cuts(&expected, |cut| cut.filter(|&cut| cut != Cut::Damaged));
    assert_eq!((all_shown(&captures), tally.damaged()), (all_shown(&expected), 0));
}

#[test]
fn arc_records_that_end_early() {
    let (files, page) = (Files::new(), page(LINKS));
    let record = |at: usize, http: &[u8], bytes: usize| {
        let line = format!("http://a.example/{at} 1.2.3.4 2020010{}000000 text/html {bytes}\n", at + 1);
        [line.as_bytes(), http, b"\n"].concat()
    };
    let (whole, part) = (http(200, &[], &page), http(200, &[], &page[..page.len() / 2]));
    let short = http(200, &[&format!("Content-Length: {}", page.len())], &page[..page.len() / 2]);
    let records = [
        record(0, &whole, whole.len()),
        record(1, &short, short.len()),
        record(2, &part, whole.len()),
        record(3, &part, part.len()),
        record(4, &part, whole.len()),
    ];
    let cuts = [None, Some(Cut::Short), Some(Cut::Short), None, Some(Cut::Short)];
    for (name, bytes) in [
        ("a.arc", records.concat()),
        ("a.arc.gz", records.iter().flat_map(|record| gzip(record)).collect()),
        ("a.arc.zst", records.iter().flat_map(|record| zstd(record)).collect()),
    ] {
        let (captures, tally) = files.read(name, &bytes);
        assert_eq!(captures.iter().map(|capture| capture.cut).collect::<Vec<_>>(), cuts, "{name}");
        assert_eq!(captures[4].links.len(), captures[3].links.len(), "{name}");
        assert_eq!((tally.of(Finding::BadLength), tally.of(Finding::Truncated)), (1, 1), "{name}");
    }
}

#[test]
fn a_file_cut_anywhere_never_has_a_whole_page_with_fewer_links() {
    let files = Files::new();
    let page = page(12);
    let http = http(200, &[], &page);
    let warc = [0, 1].map(|day| record("response", &url(day), i64::try_from(day).unwrap(), &[], &http));
    let arc = [0, 1].map(|at| {
        let line = format!("http://a.example/{at} 1.2.3.4 2020010{}000000 text/html {}\n", at + 1, http.len());
        [line.as_bytes(), &http, b"\n"].concat()
    });
    let packed = |records: &[Vec<u8>], pack: fn(&[u8]) -> Vec<u8>| -> Vec<u8> {
        records.iter().flat_map(|record| pack(record)).collect()
    };
    let (whole, _) = files.read("all.warc", &warc.concat());
    for (name, bytes) in [
        ("a.warc", warc.concat()),
        ("a.warc.gz", packed(&warc, gzip)),
        ("a.warc.zst", packed(&warc, zstd)),
        ("a.arc", arc.concat()),
        ("a.arc.gz", packed(&arc, gzip)),
    ] {
        let (mut cut, mut counted) = (0, 0);
        for end in 1..bytes.len() {
            let (captures, tally) = files.read(name, &bytes[..end]);
            for (capture, whole) in captures.iter().zip(&whole) {
                assert_eq!((&capture.url, capture.time), (&whole.url, whole.time), "{name} {end}");
                let is_whole = capture.links == whole.links;
                assert!(is_whole || capture.cut == Some(Cut::Short), "{name} {end}: {capture:?}");
                cut += usize::from(capture.cut.is_some());
                counted += usize::from(capture.cut.is_some() && tally.damaged() > 0);
            }
        }
        // Most ends are inside a page. A frame of zstd gives no text before its block is whole.
        let cut_min = if name.ends_with("zst") { 0 } else { bytes.len() / 3 };
        assert!(cut >= cut_min && counted == cut, "{name}: {cut} of {}, {counted}", bytes.len());
    }
}

#[test]
fn only_a_page_can_be_cut() {
    let files = Files::new();
    for (status, kind) in [(301, "response"), (404, "response"), (503, "response"), (204, "response"), (200, "revisit")]
    {
        let fields = ["WARC-Truncated: length", "WARC-Profile: identical-payload-digest"];
        let http = http(status, &["Content-Length: 1000", "Location: /b"], b"<a href=/c>");
        let (captures, tally) = files.read("a.warc", &record(kind, "http://a.example/", 0, &fields, &http));
        assert_eq!((captures.len(), captures[0].cut), (1, None), "{status} {kind}");
        assert_eq!((tally.of(Finding::CutCapture), tally.damaged()), (0, 0), "{status} {kind}");
    }
}

#[test]
fn segments_are_joined_in_their_file() {
    let files = Files::new();
    let page = page(60);
    let http = http(200, &[], &page);
    let first = |id: &str, block: &[u8]| {
        record(
            "response",
            "http://a.example/",
            0,
            &[&format!("WARC-Record-ID: <{id}>"), "WARC-Segment-Number: 1"],
            block,
        )
    };
    let next = |id: &str, number: u64, total: Option<usize>, block: &[u8]| {
        let fields = [format!("WARC-Segment-Origin-ID: <{id}>"), format!("WARC-Segment-Number: {number}")];
        let total = total.map(|total| format!("WARC-Segment-Total-Length: {total}"));
        let fields: Vec<&str> = fields.iter().chain(&total).map(String::as_str).collect();
        record("continuation", "http://a.example/", 0, &fields, block)
    };
    let other = record("response", "http://b.example/", 0, &[], &http);
    let [one, two, three] = [&http[..500], &http[500..1200], &http[1200..]];
    let whole = Some(http.len());
    let cut = Some(Cut::Segments);
    for (name, records, cuts) in [
        ("in turn", vec![first("a", one), next("a", 2, None, two), next("a", 3, whole, three)], vec![None]),
        (
            "others between",
            vec![first("a", one), other.clone(), next("a", 2, None, two), other.clone(), next("a", 3, whole, three)],
            vec![None; 3],
        ),
        (
            "two at once",
            vec![
                first("a", one),
                first("b", one),
                next("b", 2, None, two),
                next("a", 2, None, two),
                next("a", 3, whole, three),
                next("b", 3, whole, three),
            ],
            vec![None; 2],
        ),
        ("one segment in all", vec![first("a", &http), next("a", 2, whole, b"")], vec![None]),
        ("no second", vec![first("a", one), next("a", 3, whole, three)], vec![cut]),
        ("out of turn", vec![first("a", one), next("a", 3, whole, three), next("a", 2, None, two)], vec![cut]),
        ("no last", vec![first("a", one), next("a", 2, None, two)], vec![cut]),
        ("wrong total", vec![first("a", one), next("a", 2, None, two), next("a", 3, Some(9), three)], vec![cut]),
        ("other origin", vec![first("a", one), next("c", 2, whole, &http[500..])], vec![cut]),
        ("first elsewhere", vec![next("a", 2, None, two), next("a", 3, whole, three)], vec![]),
    ] {
        let (captures, _) = files.read("a.warc", &records.concat());
        assert_eq!(captures.iter().map(|capture| capture.cut).collect::<Vec<_>>(), cuts, "{name}");
        for capture in captures.iter().filter(|capture| capture.cut.is_none()) {
            assert_eq!(capture.links.len(), 60, "{name}");
        }
    }
    // A record with more bytes than may wait is cut, and the records after it are read.
    let large = vec![b' '; 9 << 20];
    let head = [&http[..http.len() - 16], &large[..]].concat();
    let records = [first("a", &head), next("a", 2, None, &large), next("a", 3, whole, b""), other];
    let (mut captures, _) = files.read("a.warc", &records.concat());
    captures.sort_by(|one, two| one.url.cmp(&two.url));
    assert_eq!(captures.iter().map(|capture| capture.cut).collect::<Vec<_>>(), [cut, None]);
    assert_eq!(captures[0].links.len(), 60);
}
