//! The same captures give the same bytes of the store through every format. The captures are random, with statuses,
//! revisits, unknown links and redirects, and go through each reader with a format that can express them.
//!
//! | formats | captures |
//! |---|---|
//! | WARC, WAT, JSON lines, Parquet | anything |
//! | these and ARC | without digests and revisit records |
//! | these and links files, tables of Archives Unleashed, LGA | pages with links |

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, StructArray, UInt16Array};
use arrow_buffer::NullBuffer;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use webstrata_datasets::LinkKinds;
use webstrata_engine::{Progress, RunOptions};
use webstrata_layers::{Store, format_time};
use webstrata_pipeline::{BuildOptions, build};

const START: i64 = 1_209_588_506;

/// The reference of a revisit record.
#[derive(Clone, Debug)]
struct Referred {
    profile: Option<&'static str>,
    url: Option<String>,
    time: Option<i64>,
}

/// A capture as a crawler saw it.
#[derive(Clone, Debug)]
struct Seen {
    url: String,
    time: i64,
    status: Option<u16>,
    /// `None` if the links are unknown.
    links: Option<Vec<String>>,
    digest: Option<String>,
    revisit: Option<Referred>,
    target: Option<String>,
}

/// The kinds of captures that may occur.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Anything,
    WithoutRevisits,
    Links,
}

const IDENTICAL: &str = "http://netpreserve.org/warc/1.0/revisit/identical-payload-digest";
const NOT_MODIFIED: &str = "http://netpreserve.org/warc/1.0/revisit/server-not-modified";

/// Random numbers that are the same in each run.
struct Random(fastrand::Rng);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0.u64(..end)
    }

    fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.0.usize(..list.len())]
    }
}

/// Returns the files of the layers of a store that has one row, and the counts of the row.
fn layers_of(store: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let opened = Store::open(store).unwrap();
    let [row] = &opened.manifest().rows[..] else { panic!("{} rows", opened.manifest().rows.len()) };
    let files = row.partitions.iter().flat_map(|partition| &partition.files);
    let files = files.map(|file| (file.path.clone().into(), fs::read(store.join(&file.path)).unwrap()));
    files.chain([("counts".into(), format!("{:?}", row.counts).into_bytes())]).collect()
}

fn url(random: &mut Random, below: u64) -> String {
    let number = random.below(below);
    let host = match number % 3 {
        0 => "a",
        1 => "b",
        _ => "c",
    };
    format!("http://{host}.example/{number}")
}

fn captures(random: &mut Random, family: Family, count: usize) -> Vec<Seen> {
    // The first captures of a file lose the first link of its dictionary, and have it again, alone.
    let lists: [&[u64]; 4] = [&[0, 1, 2], &[1, 2], &[0], &[]];
    let lists = lists.into_iter().filter(|list| family != Family::Links || !list.is_empty());
    let link = |number: &u64| format!("http://first.example/{number}");
    let first = |(day, list): (i64, &[u64])| Seen {
        url: "http://first.example/".to_owned(),
        time: START + day * 86_400,
        status: Some(200),
        links: Some(list.iter().map(link).collect()),
        digest: None,
        revisit: None,
        target: None,
    };
    let mut all: Vec<Seen> = (0..).zip(lists).map(first).collect();
    let mut seen = BTreeSet::new();
    while all.len() < count {
        let (url_of_page, time) = (url(random, 5), START + random.below(40).cast_signed() * 86_400);
        // Formats that join rows cannot separate several captures of one second.
        if family == Family::Links && !seen.insert((url_of_page.clone(), time)) {
            continue;
        }
        let links = (0..random.below(5) + u64::from(family == Family::Links)).map(|_| url(random, 30)).collect();
        let mut own = Seen {
            url: url_of_page,
            time,
            status: Some(200),
            links: Some(links),
            digest: (family == Family::Anything).then(|| format!("sha1:{:040x}", random.below(6))),
            revisit: None,
            target: None,
        };
        if random.once_in(6) {
            own.digest = None;
        }
        match if family == Family::Links { 9 } else { random.below(14) } {
            0 | 1 => own.status = Some(*random.pick(&[404, 410, 429, 503, 999])),
            2 => own.status = Some(*random.pick(&[201, 203, 204, 206])),
            3 | 4 => {
                own.status = Some(*random.pick(&[301, 302, 307]));
                own.target = (!random.once_in(3)).then(|| url(random, 30));
            }
            5 => (own.status, own.links) = (Some(304), None),
            6 if family == Family::Anything => (own.digest, own.links) = (None, None),
            7 | 8 if family == Family::Anything => {
                own.links = None;
                own.status = *random.pick(&[None, Some(200), Some(304), Some(404)]);
                own.revisit = Some(Referred {
                    profile: *random.pick(&[None, Some(IDENTICAL), Some(NOT_MODIFIED)]),
                    url: random.once_in(2).then(|| if random.once_in(3) { url(random, 5) } else { own.url.clone() }),
                    time: random.once_in(2).then(|| START + random.below(40).cast_signed() * 86_400),
                });
            }
            _ => {}
        }
        all.push(own);
    }
    all
}

fn digits(time: i64) -> String {
    format_time(time).chars().filter(char::is_ascii_digit).collect()
}

/// Whether the response is a page with a body.
fn is_page(own: &Seen) -> bool {
    is_plain(own) && own.links.is_some()
}

/// Whether the status says that a page is there, and no revisit says whose.
fn is_plain(own: &Seen) -> bool {
    matches!(own.status, Some(200 | 203 | 206)) && own.revisit.is_none()
}

/// Returns the response of a server, if the crawler has kept the response.
fn http(own: &Seen) -> Option<String> {
    let mut text = format!("HTTP/1.1 {} Words\r\nContent-Type: text/html\r\n", own.status?);
    own.target.iter().for_each(|target| text += &format!("Location: {target}\r\n"));
    text += "\r\n";
    // The links in a response with another status are not links of the page.
    if own.revisit.is_none() {
        text += "<html>";
        own.links.iter().flatten().for_each(|link| text += &format!("<a href='{link}'>x</a>\n"));
    }
    Some(text)
}

/// Returns the type of the WARC record. A page with unknown links is a revisit that refers to nothing.
fn warc_type(own: &Seen) -> &'static str {
    let is_unknown = own.links.is_none() && own.status != Some(304);
    if own.revisit.is_some() || is_unknown { "revisit" } else { "response" }
}

fn warc_fields(own: &Seen) -> Vec<(&'static str, String)> {
    let mut fields = vec![
        ("WARC-Type", warc_type(own).to_owned()),
        ("WARC-Target-URI", own.url.clone()),
        ("WARC-Date", format_time(own.time)),
    ];
    fields.extend(own.digest.clone().map(|digest| ("WARC-Payload-Digest", digest)));
    if let Some(Referred { profile, url, time }) = &own.revisit {
        fields.extend(profile.map(|profile| ("WARC-Profile", profile.to_owned())));
        fields.extend(url.clone().map(|url| ("WARC-Refers-To-Target-URI", url)));
        fields.extend(time.map(|time| ("WARC-Refers-To-Date", format_time(time))));
    }
    fields
}

fn record(out: &mut String, fields: &[(&str, String)], content_type: &str, block: &str) {
    *out += "WARC/1.0\r\n";
    fields.iter().for_each(|(name, value)| *out += &format!("{name}: {value}\r\n"));
    write!(out, "Content-Type: {content_type}\r\nContent-Length: {}\r\n\r\n{block}\r\n\r\n", block.len()).unwrap();
}

fn warc(captures: &[Seen]) -> String {
    let mut out = String::new();
    for own in captures {
        record(&mut out, &warc_fields(own), "application/http; msgtype=response", &http(own).unwrap_or_default());
    }
    out
}

fn wat(captures: &[Seen]) -> String {
    let mut out = String::new();
    for own in captures {
        let header: serde_json::Map<String, Value> =
            warc_fields(own).into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
        let mut payload = json!({});
        if let Some(status) = own.status {
            let mut headers = json!({"Content-Type": "text/html"});
            own.target.iter().for_each(|target| headers["Location"] = json!(target));
            let links = own.links.iter().flatten().map(|link| json!({"path": "A@/href", "url": link}));
            let html = json!({"Links": links.collect::<Vec<_>>()});
            payload["HTTP-Response-Metadata"] = json!({"Headers": headers,
                "Response-Message": {"Status": status.to_string()}, "HTML-Metadata": html});
        }
        let block = json!({"Envelope": {"WARC-Header-Metadata": header, "Payload-Metadata": payload}}).to_string();
        let fields = [
            ("WARC-Type", "metadata".to_owned()),
            ("WARC-Target-URI", own.url.clone()),
            ("WARC-Date", "2020-01-01T00:00:00Z".to_owned()),
        ];
        record(&mut out, &fields, "application/json", &block);
    }
    out
}

fn arc(captures: &[Seen]) -> String {
    let mut out = String::new();
    for own in captures {
        let block = http(own).unwrap();
        writeln!(out, "{} 1.2.3.4 {} text/html {}\n{block}", own.url, digits(own.time), block.len()).unwrap();
    }
    out
}

/// Returns a line, in one of several spellings with the same meaning.
fn json_line(random: &mut Random, own: &Seen) -> String {
    let mut line = json!({"url": own.url, "ts": digits(own.time)});
    let plain = is_plain(own);
    match own.status {
        Some(200) if plain && random.once_in(2) => {}
        Some(status) if random.once_in(2) => line["status"] = json!(status.to_string()),
        status => line["status"] = json!(status),
    }
    own.digest.iter().for_each(|digest| line["digest"] = json!(digest));
    // A failure needs no links, and its links do not count.
    match &own.links {
        Some(links) if plain => line["links"] = json!(links),
        Some(links) if own.target.is_some() || !matches!(own.status, Some(300..=399)) => match random.below(4) {
            0 => line["links"] = json!(links),
            1 => line["links"] = json!([]),
            2 => line["links"] = Value::Null,
            _ => {}
        },
        _ if random.once_in(2) => line["links"] = Value::Null,
        _ => {}
    }
    if let Some(target) = &own.target {
        if random.once_in(3) { line["links"] = json!([target]) } else { line["redirect"] = json!(target) }
    }
    if let Some(Referred { profile, url, time }) = &own.revisit {
        let date = time.map(digits);
        line["revisit"] = json!({"profile": profile, "refers_to_target_uri": url, "refers_to_date": date});
    }
    line.to_string() + "\n"
}

fn parquet(path: &Path, captures: &[Seen], dictionary: bool) {
    let mut links = ListBuilder::new(StringBuilder::new());
    for own in captures {
        // The only link of a redirect would be its target.
        let is_aimless = matches!(own.status, Some(300..=399)) && own.target.is_none();
        own.links.iter().flatten().filter(|_| !is_aimless).for_each(|link| links.values().append_value(link));
        links.append(own.links.is_some());
    }
    let text = |of: &dyn Fn(&Seen) -> Option<String>| -> ArrayRef {
        Arc::new(captures.iter().map(of).collect::<StringArray>())
    };
    let referred = |of: &dyn Fn(&Referred) -> Option<String>| text(&|own| own.revisit.as_ref().and_then(of));
    let revisits = StructArray::try_from(vec![
        ("profile", referred(&|own| own.profile.map(str::to_owned))),
        ("refers_to_target_uri", referred(&|own| own.url.clone())),
        ("refers_to_date", referred(&|own| own.time.map(digits))),
    ]);
    let (fields, columns, _) = revisits.unwrap().into_parts();
    let nulls = NullBuffer::from_iter(captures.iter().map(|own| own.revisit.is_some()));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("redirect", text(&|own| own.target.clone())),
        ("status", Arc::new(captures.iter().map(|own| own.status).collect::<UInt16Array>())),
        ("url", text(&|own| Some(own.url.clone()))),
        ("revisit", Arc::new(StructArray::new(fields, columns, Some(nulls)))),
        ("links", Arc::new(links.finish())),
        ("digest", text(&|own| own.digest.clone())),
        ("ts", Arc::new(Int64Array::from_iter_values(captures.iter().map(|own| own.time)))),
    ];
    table(path, columns, dictionary);
}

fn table(path: &Path, columns: Vec<(&str, ArrayRef)>, dictionary: bool) {
    let columns = columns.into_iter().map(|(name, column)| (name, column, true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let properties = WriterProperties::builder().set_dictionary_enabled(dictionary).build();
    let file = fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

fn aut_table(path: &Path, captures: &[Seen]) {
    let rows = || captures.iter().flat_map(|own| own.links.iter().flatten().map(move |link| (own, link)));
    let dates: ArrayRef = Arc::new(rows().map(|(own, _)| Some(digits(own.time))).collect::<StringArray>());
    let sources: ArrayRef = Arc::new(rows().map(|(own, _)| Some(&own.url)).collect::<StringArray>());
    let links: ArrayRef = Arc::new(rows().map(|(_, link)| Some(link)).collect::<StringArray>());
    table(path, vec![("crawl_date", dates), ("src", sources), ("dest", links)], true);
}

fn lga(dir: &Path, captures: &[Seen]) {
    let urls = captures.iter().flat_map(|own| own.links.iter().flatten().chain([&own.url]));
    let ids: BTreeMap<&String, usize> = urls.collect::<BTreeSet<_>>().into_iter().zip(7..).collect();
    let map = ids.iter().map(|(url, id)| json!({"surt_url": "x", "url": url, "id": id}).to_string() + "\n");
    fs::write(dir.join("id.map"), map.collect::<String>()).unwrap();
    let graph = captures.iter().map(|own| {
        let links: Vec<usize> = own.links.iter().flatten().map(|link| ids[link]).collect();
        json!({"id": ids[&own.url], "timestamp": digits(own.time), "outlink_ids": links}).to_string() + "\n"
    });
    fs::write(dir.join("id.graph"), graph.collect::<String>()).unwrap();
}

/// Returns a line of a links file, in one of the forms of such lines.
fn links_line(random: &mut Random, own: &Seen) -> String {
    let time = if random.once_in(2) { digits(own.time) } else { format_time(own.time) };
    let (before, between) = if random.once_in(2) { ("\n\t", "\n  ") } else { (" ", "\t") };
    let links = own.links.iter().flatten().cloned().collect::<Vec<_>>().join(between);
    format!("{} {time}{}{links}\n", own.url, if links.is_empty() { "" } else { before })
}

/// Writes the captures in every format that can express them, one directory a format.
fn write(top: &Path, family: Family, captures: &[Seen], random: &mut Random) -> Vec<&'static str> {
    let mut formats = Vec::new();
    let mut place = |name: &'static str| {
        formats.push(name);
        fs::create_dir(top.join(name)).unwrap();
        top.join(name)
    };
    let lines: String = captures.iter().map(|own| json_line(random, own)).collect();
    fs::write(place("JSON lines").join("a"), lines).unwrap();
    fs::write(place("WARC").join("a"), warc(captures)).unwrap();
    fs::write(place("WAT").join("a"), wat(captures)).unwrap();
    parquet(&place("Parquet").join("a"), captures, false);
    parquet(&place("Parquet, dictionaries").join("a"), captures, true);
    if family != Family::Anything {
        fs::write(place("ARC").join("a"), arc(captures)).unwrap();
    }
    if family == Family::Links {
        let lines: String = captures.iter().map(|own| links_line(random, own)).collect();
        fs::write(place("links file").join("a"), lines).unwrap();
        let rows = captures.iter().flat_map(|own| {
            let row = move |link| format!("{},{},{link},\"a, b\"\n", digits(own.time), own.url);
            own.links.iter().flatten().map(row)
        });
        fs::write(place("AUT, CSV").join("a"), format!("crawl_date,src,dest,anchor\n{}", rows.collect::<String>()))
            .unwrap();
        aut_table(&place("AUT, Parquet").join("a"), captures);
        lga(&place("LGA"), captures);
    }
    formats
}

#[test]
fn the_same_captures_through_every_format_give_the_same_bytes() {
    for round in 0..3 {
        for family in [Family::Anything, Family::WithoutRevisits, Family::Links] {
            let dir = tempfile::tempdir().unwrap();
            let mut random = Random(fastrand::Rng::with_seed(round * 3 + family as u64));
            let count = 10 + random.0.usize(..60);
            let captures = captures(&mut random, family, count);
            assert!(captures.iter().any(is_page));
            let formats = write(dir.path(), family, &captures, &mut random);
            let redirects = round % 2 == 1;
            let mut expected = None;
            for format in formats {
                let (input, store) = (dir.path().join(format), dir.path().join(format!("{format} store")));
                let mut options = BuildOptions::new(RunOptions::new(&store), vec![input]);
                options.kinds = Some(LinkKinds { redirects, ..LinkKinds::default() });
                let report = build(&options, &Progress::default()).unwrap();
                assert_eq!(report.tally.damaged(), 0, "{format}: {:?}", report.tally);
                let bytes = layers_of(&store);
                let expected = expected.get_or_insert_with(|| bytes.clone());
                assert!(bytes.keys().eq(expected.keys()), "{format}");
                for (file, content) in &bytes {
                    let differs = expected.get(file) != Some(content);
                    assert!(!differs, "round {round}, {family:?}, {format}: {} differs {captures:#?}", file.display());
                }
            }
        }
    }
}
