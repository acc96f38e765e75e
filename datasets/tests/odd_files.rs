//! Files from practice: the samples and test files of projects that read and write WARC, ARC and WAT.

#[cfg(test)]
mod reading;
#[cfg(test)]
#[path = "../../tests/src/shared.rs"]
mod shared;

use Finding::{BadCompression, BadContentEncoding, BadDate, BadHeader, BadJson, BadLength, Truncated};
use reading::{read_all, read_pages};
use shared::shared;
use webstrata_datasets::{Finding, LinkKinds, Tally, inputs};

/// A file, the number of its captures, and how often each kind of damage occurs. Captures were counted by hand or by
/// the tests of the project.
type Known = (&'static str, usize, &'static [(Finding, u64)]);

const KNOWN: [Known; 33] = [
    ("samples/N0taN3rd+node-warc/test/files/parseMe.warc", 1, &[]),
    ("samples/N0taN3rd+node-warc/test/files/parseMe.warc.gz", 1, &[]),
    (
        "samples/chatnoir-eu+chatnoir-resiliparse/history/2e3cdb482b/tests/data/warcfile.warc",
        16,
        &[(Truncated, 1), (BadLength, 49)],
    ),
    ("samples/chatnoir-eu+chatnoir-resiliparse/history/2e3cdb482b/tests/data/warcfile.warc.gz", 16, &[]),
    ("samples/chatnoir-eu+chatnoir-resiliparse/tests/data/clipped.warc.gz", 1, &[(Truncated, 1)]),
    ("samples/chatnoir-eu+chatnoir-resiliparse/tests/data/clueweb-quirk.warc.gz", 29, &[(BadContentEncoding, 29)]),
    ("samples/chatnoir-eu+chatnoir-resiliparse/tests/data/warcfile.warc.gz", 16, &[]),
    ("samples/chatnoir-eu+chatnoir-resiliparse/tests/data/warcfile.warc.lz4", 0, &[]),
    ("samples/commoncrawl+whirlwind-python/whirlwind.warc.gz", 1, &[]),
    ("samples/commoncrawl+whirlwind-python/whirlwind.warc.wet.gz", 0, &[]),
    ("samples/iipc+webarchive-commons/src/test/resources/org/archive/format/gzip/hi.gz", 0, &[]),
    (
        "samples/iipc+webarchive-commons/src/test/resources/org/archive/format/gzip/double-single-inflate-error.gz",
        0,
        &[(BadCompression, 1)],
    ),
    (
        "samples/iipc+openwayback/history/d860dade49/wayback-core/src/test/java/\
         org/archive/wayback/resourcestore/testdata/testdata1.arc",
        20,
        &[],
    ),
    ("samples/oduwsdl+ipwb/samples/warcs/broken.warc", 1, &[(BadLength, 1)]),
    ("samples/oduwsdl+ipwb/samples/warcs/sample-1.warc.gz", 64, &[]),
    ("samples/oduwsdl+ipwb/samples/warcs/variableSizedDates.warc", 4, &[]),
    ("samples/wat-by-iipc/sample-1.warc.wat.gz", 64, &[]),
    ("samples/wat-by-iipc/example.arc.wat.gz", 94, &[]),
    ("samples/wat-by-iipc/example.warc.wat.gz", 94, &[]),
    ("samples/webrecorder+warcio/history/9eb7ee045b/test/data/space-in-url.arc", 1, &[(Truncated, 1)]),
    ("vectors/warc/aut-badexample.arc.gz", 2, &[(Truncated, 1), (BadLength, 2)]),
    ("vectors/warc/issue-493.warc", 4, &[]),
    ("vectors/warc/iipc-dedup-20141124-heritrix-server-not-modified.warc.gz", 1, &[]),
    ("vectors/warc/pywb-example-url-agnostic-revisit.warc.gz", 1, &[]),
    ("vectors/warc/pywb-iana.warc.gz", 16, &[]),
    ("vectors/warc/warcio-bad.arc", 2, &[(BadHeader, 3)]),
    ("vectors/warc/warcio-example-bad-non-chunked.warc.gz", 2, &[]),
    ("vectors/warc/warcio-example-iana.org-chunked.warc", 1, &[]),
    ("vectors/warc/warcio-example-space-in-url.arc", 1, &[(Truncated, 1)]),
    ("vectors/warc/warcio-example-trunc.warc", 1, &[(BadLength, 1)]),
    ("vectors/warc/warcio-example-wget-bad-target-uri.warc.gz", 1, &[]),
    ("vectors/warc/warcio-example-wrong-chunks.warc.gz", 1, &[]),
    ("vectors/warc/warcio-example.warc.gz", 2, &[]),
];

#[cfg(test)]
fn damage(tally: &Tally) -> Vec<(Finding, u64)> {
    tally.counts().filter(|(finding, _)| finding.is_damage()).collect()
}

#[test]
#[ignore = "needs the shared test data: WEBSTRATA_SHARED=DIR cargo test --test odd_files -- --ignored"]
fn known_files() {
    let directory = shared("data");
    for (name, captures, expected) in KNOWN {
        let file = directory.join(name);
        let (found, tally) = read_pages(&file);
        assert_eq!(found.len(), captures, "{name}");
        assert_eq!(damage(&tally), expected, "{name}");
        let len = std::fs::metadata(&file).unwrap().len();
        assert!(tally.examples().iter().all(|place| place.path == file && place.offset < len), "{name}");
    }
}

#[test]
#[ignore = "needs the shared test data: WEBSTRATA_SHARED=DIR cargo test --test odd_files -- --ignored"]
fn damage_has_its_place() {
    let directory = shared("data");
    for (name, finding, offset) in [
        ("vectors/warc/warcio-example-trunc.warc", BadLength, 1197),
        ("samples/oduwsdl+ipwb/samples/warcs/broken.warc", BadLength, 3058),
    ] {
        let file = directory.join(name);
        let (_, tally) = read_all(&file, LinkKinds::default());
        let place = tally.examples().into_iter().find(|place| place.finding == finding).unwrap().offset;
        assert_eq!(place, offset, "{name}");
        let at = usize::try_from(place).unwrap();
        let bytes = std::fs::read(&file).unwrap();
        assert!(bytes[at..].starts_with(b"WARC/") || bytes[at..].starts_with(b"\x1f\x8b\x08"), "{name}");
    }
}

/// Indexes and crawl logs are recognized, whatever program wrote them. Every file gives captures, or is named.
#[test]
#[ignore = "needs the shared test data: WEBSTRATA_SHARED=DIR cargo test --test odd_files -- --ignored"]
fn index_files_give_captures_or_are_named() {
    let directory = shared("data");
    let (mut files, mut named, mut pages) = (0, 0, 0);
    for input in inputs(&["samples", "samples2"].map(|name| directory.join(name))).unwrap() {
        let name = input.path().to_string_lossy().into_owned();
        let is_index =
            [".cdx", ".cdxj", ".idx", "crawl.log", "crawl-9.log", ".cdx.gz"].iter().any(|end| name.ends_with(end));
        // A text that a test of another project does not take for an index.
        if !is_index || name.ends_with("notcdx.cdx") {
            continue;
        }
        files += 1;
        let (captures, tally) = read_all(input.path(), LinkKinds::default());
        assert_eq!(tally.of(Finding::OtherFile) + tally.of(Finding::UnreadFile), 0, "{name}: {tally:?}");
        assert!(tally.of(Finding::IndexFile) == 0 || captures.is_empty(), "{name}");
        named += tally.of(Finding::IndexFile);
        pages += captures.len();
        let is_counted = !captures.is_empty() || tally.counts().next().is_some();
        assert!(is_counted, "{name}: {tally:?}");
    }
    assert!(files > 60 && pages > 2000, "{files} files, {pages} captures");
    assert!(named < 20, "{named} files without captures");
}

/// Pages with status 200 and an HTML type, as another program counted them, are all captures.
#[test]
#[ignore = "needs the shared test data: WEBSTRATA_SHARED=DIR cargo test --test odd_files -- --ignored"]
fn every_file_ends_and_keeps_its_pages() {
    let directory = shared("data/samples");
    let manifest = std::fs::read_to_string(directory.join("MANIFEST.tsv")).unwrap();
    let mut files = 0;
    for line in manifest.lines().skip(1) {
        let fields: Vec<_> = line.split('\t').collect();
        let [repository, commit, path, _, _, _, what] = fields[..] else { continue };
        let home = directory.join(repository.replace('/', "+"));
        let history = home.join("history").join(&commit[..10]).join(path);
        let file = if what.starts_with("[history]") { history } else { home.join(path) };
        let pages = what.split("html200=").nth(1).and_then(|rest| rest.split([';', ' ']).next()?.parse::<usize>().ok());
        let (Some(pages), true) = (pages, file.is_file()) else { continue };
        let (captures, tally) = read_all(&file, LinkKinds::default());
        files += 1;
        assert_eq!(tally.of(BadDate), 0, "{}", file.display());
        assert!(captures.len() >= pages, "{}: {} of {pages}", file.display(), captures.len());
    }
    assert!(files > 60, "{files} files only");
    // With all kinds of links, and the files that the manifest does not describe.
    let all = LinkKinds { anchors: true, redirects: true, embeds: true, outlinks: true, via: true };
    for input in inputs(&[directory.clone(), directory.join("../vectors/warc")]).unwrap() {
        let (_, tally) = read_all(input.path(), all);
        let json_lines = [".cdxj", ".json"].iter().any(|end| input.path().to_string_lossy().ends_with(end));
        assert!(tally.of(BadJson) == 0 || json_lines, "{}", input.path().display());
    }
}

/// The link extraction test of the WAT extractor of Common Crawl: the same links from the same WARC.
#[test]
#[ignore = "needs the shared test data: WEBSTRATA_SHARED=DIR cargo test --test odd_files -- --ignored"]
fn links_of_every_record() {
    const ALL: LinkKinds = LinkKinds { anchors: true, redirects: true, embeds: true, outlinks: true, via: true };
    const ANCHORS: [&str; 4] = ["A@/href", "AREA@/href", "FRAME@/src", "IFRAME@/src"];
    let (list, file) =
        (shared("data/vectors/wat_link_extraction.json"), shared("data/vectors/warc/link-extraction-test.warc"));
    let list: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(list).unwrap()).unwrap();
    let (anchors, _) = read_all(&file, LinkKinds::default());
    let (all, _) = read_all(&file, ALL);
    let records = list["records"].as_array().unwrap();
    assert_eq!((records.len(), anchors.len(), all.len()), (9, 9, 9));
    for ((record, anchors), all) in records.iter().zip(&anchors).zip(&all) {
        let links = record["links"].as_array().unwrap().iter();
        let links: Vec<_> = links.map(|link| (link["path"].as_str().unwrap(), link["url"].as_str().unwrap())).collect();
        let of = |wanted: &dyn Fn(&str) -> bool| -> Vec<&str> {
            links.iter().filter(|(path, _)| wanted(path)).map(|(_, url)| *url).collect()
        };
        let name = &record["name"];
        assert_eq!(anchors.links.iter().collect::<Vec<_>>(), of(&|path| ANCHORS.contains(&path)), "{name}");
        assert_eq!(all.base, of(&|path| path == "__base__").concat(), "{name}");
        // Scripts and style sheets are not read.
        let unread = |path: &str| path.ends_with("@/onclick") || path == "STYLE/#text" || path == "__base__";
        let mut expected = of(&|path| !unread(path));
        let mut found: Vec<_> = all.links.iter().collect();
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected, "{name}");
    }
}
