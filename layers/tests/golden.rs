//! The worked example of the specification, byte for byte.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use webstrata_layers::*;

const MAY: i64 = 1_146_441_600;
const JUNE: i64 = 1_149_120_000;

/// Writes the store of the worked example.
fn write(dir: &Path) {
    let writer = StoreWriter::open(dir, "test", None).unwrap();
    let row = writer.begin_row().unwrap();
    let mut urls = UrlWriter::create(&row, 0).unwrap();
    urls.push(Uid(0), "http://a.example/", "example,a)/").unwrap();
    urls.push(Uid(1), "http://b.example/", "example,b)/").unwrap();
    urls.push(Uid(2), "http://b.example/x", "example,b)/x").unwrap();
    let first_key = urls.first_key();
    let pages = [
        Page {
            uid: Uid(0),
            timestamps: vec![MAY, JUNE],
            blank: vec![],
            links: [0, 1].map(Uid).to_vec(),
            changes: vec![Change { link: 1, capture: 1 }],
            statuses: vec![],
        },
        Page { uid: Uid(2), timestamps: vec![JUNE], blank: vec![0], ..Page::default() },
    ];
    let mut counts = Counts { urls: 3, ..Counts::default() };
    let mut out = OutlinksWriter::create(&row, 0).unwrap();
    let lost = Revisit { capture: 0, referred: Some(MAY), ..Revisit::default() };
    let evidence = [Evidence::default(), Evidence { digests: vec![0x1f], revisits: vec![lost], ..Evidence::default() }];
    for (page, evidence) in pages.iter().zip(&evidence) {
        out.push(page, evidence).unwrap();
        counts.add_page(page);
    }
    let mut into = InlinksWriter::create(&row, 0).unwrap();
    into.push(&InLinks { uid: Uid(0), ranges: vec![MAY, JUNE], sources: [0].map(Uid).to_vec(), changes: vec![] })
        .unwrap();
    into.push(&InLinks { uid: Uid(1), ranges: vec![MAY], sources: [0].map(Uid).to_vec(), changes: vec![] }).unwrap();
    let files = [urls.finish().unwrap(), out.finish().unwrap(), into.finish().unwrap()].concat();
    let partition = PartitionEntry { partition: 0, first_uid: Uid(0), urls: 3, first_record: Uid(0), first_key, files };
    let of_row = row;
    let row = RowEntry {
        row: of_row.row(),
        first_uid: Uid(0),
        urls: 3,
        updates: 1,
        removes: false,
        displaces: false,
        elsewhere: 0,
        partitions: vec![partition],
        counts,
    };
    let inputs = [("b.warc", 1, JUNE), ("a.warc", 2, MAY)].map(|(name, captures, first)| InputRecord {
        name: name.to_owned(),
        bytes: 1000,
        captures,
        first: Some(first),
        last: Some(JUNE),
        digest: Some("99aa06d3014798d86001c324468d497f".to_owned()),
    });
    let inputs = vec![write_inputs(&of_row, inputs.to_vec()).unwrap()];
    let options = BTreeMap::from([("example".to_owned(), "format.md".to_owned())]);
    let provenance = Provenance {
        version: "0.1.0".to_owned(),
        options,
        removals: Vec::new(),
        removed_in: None,
        retires_before: None,
        inputs,
        missing_containers: BTreeSet::new(),
        held: Vec::new(),
    };
    writer.commit(NewEpoch { rows: vec![row], in_range: RangeLength::Month, provenance, translation: None }).unwrap();
}

#[test]
fn the_worked_example_answers_as_told() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path());
    let reader = Reader::new(Store::open(dir.path()).unwrap(), 1 << 20);
    assert_eq!(reader.uid("http://b.example/").unwrap(), Some(Uid(1)));
    assert_eq!(reader.url(Uid(2)).unwrap(), "http://b.example/x");
    let june = Window::Seen { from: JUNE, to: JUNE + 86_399 };
    assert_eq!(reader.out_links(Uid(0), Window::ALWAYS).unwrap(), [0, 1].map(Uid));
    assert_eq!(reader.out_links(Uid(0), june).unwrap(), [0].map(Uid));
    assert_eq!(reader.out_links(Uid(0), Window::as_of(JUNE - 1)).unwrap(), [0, 1].map(Uid));
    assert_eq!(reader.captures(Uid(2)).unwrap(), [CaptureTime { time: JUNE, known: false, status: Status::OK }]);
    assert_eq!(reader.out_links(Uid(2), Window::ALWAYS).unwrap(), [] as [Uid; 0]);
    assert!(reader.page(Uid(1)).unwrap().is_none());
    assert_eq!(reader.in_links(Uid(1), june, Precision::Range).unwrap(), [] as [Uid; 0]);
    assert_eq!(reader.in_links(Uid(1), Window::as_of(JUNE), Precision::Range).unwrap(), [0].map(Uid));
    assert_eq!(reader.in_links(Uid(1), Window::as_of(JUNE), Precision::Exact).unwrap(), [] as [Uid; 0]);
    let spans = [(Uid(0), JUNE), (Uid(1), MAY)].map(|(link, last)| Lifespan { link, first: MAY, last });
    assert_eq!(reader.lifespans(Uid(0)).unwrap(), spans);
    let report = check(dir.path()).unwrap();
    assert!(report.is_sound(), "{:?}", report.problems);
    assert_eq!(report.files, 9, "eight layers, one list of inputs");
}

/// If these checksums change, the bytes of every store change: the format or an encoder has changed.
#[test]
fn the_worked_example_has_always_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path());
    let store = Store::open(dir.path()).unwrap();
    let checksums: Vec<String> =
        store.manifest().files().map(|file| format!("{} {} {}", file.layer, file.bytes, file.checksum)).collect();
    let expected = [
        "url 459 fc797f3a9c92cfd8",
        "ol 349 a944a19a560c5072",
        "ts 838 86be489ab325d920",
        "bv 293 5bc4d70892c96fc1",
        "rv 1694 53560e5b0fe9b1cc",
        "il 347 16c05b2d60737004",
        "tr 371 e4a5a128e38757e5",
        "ibv 292 5285cff2fbd2170a",
    ];
    assert_eq!(checksums, expected);
    let manifest = std::fs::read_to_string(dir.path().join("epochs/000001.json")).unwrap();
    let id = store.id();
    assert_eq!((id.epoch, id.digest), (1, Digest::of(manifest.as_bytes())));
    assert_eq!(std::fs::read_to_string(dir.path().join("CURRENT")).unwrap(), format!("1 {}\n", id.digest));
    let inputs = std::fs::read_to_string(dir.path().join("inputs/000001.jsonl")).unwrap();
    let line = |name: &str, captures: u32, first: i64| {
        format!(
            "{{\"name\":\"{name}\",\"bytes\":1000,\"captures\":{captures},\"first\":{first},\"last\":1149120000,\
             \"digest\":\"99aa06d3014798d86001c324468d497f\"}}\n"
        )
    };
    let lines = line("a.warc", 2, 1_146_441_600) + &line("b.warc", 1, 1_149_120_000);
    assert_eq!(inputs, lines);
    assert!(manifest.starts_with("{\n  \"format\": 5,\n  \"epoch\": 1,\n  \"in_range\": \"month\",\n"), "{manifest}");
}
