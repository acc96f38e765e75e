//! WACZ files in every form of ZIP, whole and damaged: the captures that they give, and the damage that is counted.

#[cfg(test)]
mod reading;
#[cfg(test)]
mod zips;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use reading::read_all;
use sha2::{Digest, Sha256};
use webstrata_datasets::{Capture, DigestCell, Finding, LinkKinds, Tally, inputs, missing_containers, open_metered};
use xxhash_rust::xxh3::xxh3_128;
use zips::{Around, Part, deflated, stored, zip, zip_around};

/// A WARC with one page for each name; each page links to `/NAME-link`.
#[cfg(test)]
fn warc(pages: &[&str]) -> Vec<u8> {
    let record = |page: &&str| {
        let html = format!("<a href=/{page}-link>x</a>");
        let http = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{html}");
        format!(
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://example.org/{page}\r\n\
             WARC-Date: 2020-01-01T00:00:00Z\r\nContent-Type: application/http; msgtype=response\r\n\
             Content-Length: {}\r\n\r\n{http}\r\n\r\n",
            http.len(),
        )
    };
    pages.iter().map(record).collect::<String>().into_bytes()
}

#[cfg(test)]
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    flate2::read::GzEncoder::new(bytes, flate2::Compression::fast()).read_to_end(&mut packed).unwrap();
    packed
}

#[cfg(test)]
fn hash(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    "sha256:".to_owned() + &digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
}

/// A `datapackage.json` that lists these members.
#[cfg(test)]
fn description(parts: &[(&str, &[u8])]) -> Vec<u8> {
    let resources = parts.iter().map(
        |(path, bytes)| serde_json::json!({"name": path, "path": path, "hash": hash(bytes), "bytes": bytes.len()}),
    );
    serde_json::json!({"profile": "data-package", "resources": resources.collect::<Vec<_>>()}).to_string().into_bytes()
}

/// A `datapackage-digest.json`.
#[cfg(test)]
fn digest_of(description: &[u8]) -> Vec<u8> {
    serde_json::json!({"path": "datapackage.json", "hash": hash(description)}).to_string().into_bytes()
}

/// The members of a whole WACZ with two crawl files.
#[cfg(test)]
fn parts() -> Vec<Part> {
    let (one, two) = (gzip(&warc(&["a", "b"])), warc(&["c"]));
    let pages = b"{\"format\":\"json-pages-1.0\"}\n";
    let files: [(&str, &[u8]); 3] =
        [("archive/one.warc.gz", &one), ("archive/two.warc", &two), ("pages/pages.jsonl", pages)];
    let text = description(&files);
    let mut parts = vec![stored("archive/", b"")];
    parts.extend(files.map(|(name, bytes)| stored(name, bytes)));
    parts.push(stored("datapackage.json", &text));
    parts.push(stored("datapackage-digest.json", &digest_of(&text)));
    parts
}

/// The members of a whole WACZ, changed.
#[cfg(test)]
fn changed(change: impl Fn(&mut Part)) -> Vec<Part> {
    let mut parts = parts();
    parts.iter_mut().for_each(change);
    parts
}

/// Reads an archive. Returns the pages without their host, and the tally.
#[cfg(test)]
fn read(archive: &[u8]) -> (Vec<String>, Tally) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.wacz");
    std::fs::write(&path, archive).unwrap();
    let (captures, tally) = read_all(&path, LinkKinds::default());
    let page = |capture: &Capture| {
        let page = capture.url.strip_prefix("http://example.org/").unwrap().to_owned();
        assert_eq!(capture.links.iter().collect::<Vec<_>>(), [format!("/{page}-link")]);
        page
    };
    (captures.iter().map(page).collect(), tally)
}

/// The findings of an archive: the kind, the name behind `x.wacz`, and the description.
#[cfg(test)]
fn found(tally: &Tally) -> Vec<(Finding, String, String)> {
    let all = [tally.examples(), tally.files()].concat();
    let name = |path: &Path| path.to_string_lossy().split_once("x.wacz").unwrap().1.to_owned();
    all.into_iter().map(|place| (place.finding, name(&place.path), place.detail.clone())).collect()
}

#[test]
fn every_form_of_zip_gives_the_same() {
    let deflate = |part: &mut Part| *part = deflated(&part.name, &part.stored);
    let end_record = zip(&[]);
    let around = |prefix: &[u8], counts_prefix, comment: &[u8]| Around {
        prefix: prefix.to_vec(),
        counts_prefix,
        comment: comment.to_vec(),
    };
    let reversed: Vec<Part> = parts().into_iter().rev().collect();
    for (form, archive) in [
        ("stored", zip(&parts())),
        ("deflated", zip(&changed(deflate))),
        ("zip64", zip(&changed(|part| part.is_zip64 = true))),
        ("data descriptors", zip(&changed(|part| part.flags = 8))),
        ("deflated with data descriptors", zip(&changed(|part| (deflate(part), part.flags = 8).1))),
        ("names in UTF-8", zip(&changed(|part| part.flags = 0x808))),
        ("local extra fields", zip(&changed(|part| part.local_extra = b"UT\x05\0\x01abcd".to_vec()))),
        ("another order", zip(&reversed)),
        ("a prefix", zip_around(&parts(), &around(b"#!/bin/sh\nexit\n", false, b""))),
        ("a prefix that counts", zip_around(&parts(), &around(b"#!/bin/sh\nexit\n", true, b""))),
        ("a comment", zip_around(&parts(), &around(b"", false, b"a comment"))),
        ("an end record as comment", zip_around(&parts(), &around(b"", false, &end_record))),
        ("a prefix and a comment", zip_around(&parts(), &around(b"\0prefix", false, &[b'x'; 65_535]))),
    ] {
        let (pages, tally) = read(&archive);
        assert_eq!(
            (pages, tally.counts().collect::<Vec<_>>()),
            (vec!["a".into(), "b".into(), "c".into()], vec![]),
            "{form}"
        );
    }
}

#[test]
fn members_are_inputs_with_names_and_digests() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("below")).unwrap();
    let path = directory.path().join("below/x.zip");
    let mut all = parts();
    all[1] = deflated("archive/one.warc.gz", &all[1].stored);
    std::fs::write(&path, zip(&all)).unwrap();
    for named in [directory.path().to_owned(), path.clone(), directory.path().join("*/*.zip")] {
        let inputs = inputs(&[named]).unwrap();
        let names: Vec<PathBuf> = inputs.iter().map(webstrata_datasets::Input::name).collect();
        let base = path.display();
        let expected = ["archive/one.warc.gz", "archive/two.warc"].map(|name| PathBuf::from(format!("{base}!{name}")));
        assert_eq!(names, expected);
        for (input, part) in inputs.iter().zip(&all[1..]) {
            assert_eq!((input.path(), input.bytes), (path.as_path(), part.stored.len() as u64));
            let (bytes_read, digest) = (Arc::new(AtomicU64::new(0)), DigestCell::default());
            let (mut capture, mut tally) = (Capture::default(), Tally::default());
            let mut reader = open_metered(
                input,
                LinkKinds::default().into(),
                bytes_read.clone(),
                digest.clone(),
                &webstrata_datasets::Spill::default(),
            )
            .unwrap();
            while reader.read(&mut capture, &mut tally).unwrap() {}
            assert_eq!(bytes_read.load(Ordering::Relaxed), input.bytes);
            assert_eq!(digest.get().map(|it| (it.xxh3, it.bytes)), Some((xxh3_128(&part.stored), input.bytes)));
        }
    }
}

#[test]
fn only_crawl_files_are_read() {
    let one = warc(&["a"]);
    let names = ["deep/er/x.WARC", "warcs/any.name", "archive/below/b", "x.arc.gz", "y.warc.zst"];
    let others = ["archive/.hidden.warc", "__MACOSX/archive/._x.warc", "indexes/index.cdx", "raw/x", "archive/dir/"];
    let parts: Vec<Part> = [&names[..], &others].concat().into_iter().map(|name| stored(name, &one)).collect();
    let (pages, tally) = read(&zip(&parts));
    assert_eq!((pages.len(), found(&tally)), (names.len(), vec![]));
    for others in [&["word/document.xml", "[Content_Types].xml"][..], &["data/archive/test.txt"], &[]] {
        let parts: Vec<Part> = others.iter().map(|name| stored(name, &one)).collect();
        let (pages, tally) = read(&zip(&parts));
        let detail = if others.is_empty() { "ZIP without members" } else { "ZIP" };
        assert_eq!((pages.len(), found(&tally)), (0, vec![(Finding::OtherFile, String::new(), detail.to_owned())]));
    }
}

#[test]
fn archives_in_archives() {
    let inner = zip(&parts());
    let middle = zip(&[stored("inner.wacz", &inner), stored("archive/own.warc", &warc(&["d"]))]);
    let outer = zip(&changed(|part| part.is_zip64 = true));
    let (pages, tally) = read(&zip(&[stored("1.wacz", &middle), stored("2.wacz", &outer)]));
    assert_eq!((pages.concat(), found(&tally)), ("dabcabc".to_owned(), vec![]));
    let deep = zip(&[stored("3.wacz", &zip(&[stored("2.wacz", &zip(&[stored("1.wacz", &inner)]))]))]);
    let (pages, tally) = read(&deep);
    let detail = "more than 3 WACZ files are in each other".to_owned();
    assert_eq!(pages.len(), 0);
    assert_eq!(found(&tally), [(Finding::UnreadFile, "!3.wacz!2.wacz!1.wacz".to_owned(), detail)]);
    let mut broken = zip(&parts());
    broken.pop();
    let parts = [
        deflated("deflated.wacz", &inner),
        stored("broken.wacz", &broken),
        stored("other.wacz", &zip(&[stored("x", b"")])),
        stored("good.wacz", &inner),
    ];
    let (pages, tally) = read(&zip(&parts));
    assert_eq!(pages.concat(), "abc");
    let kinds: Vec<_> = found(&tally).into_iter().map(|(finding, name, _)| (finding, name)).collect();
    assert_eq!(
        kinds,
        [
            (Finding::Truncated, "!broken.wacz".to_owned()),
            (Finding::UnreadFile, "!deflated.wacz".to_owned()),
            (Finding::OtherFile, "!other.wacz".to_owned()),
        ]
    );
}

/// The members of an archive, the pages that are read, and the kind and the name of the damage.
#[cfg(test)]
type Case = (Vec<Part>, &'static str, Option<(Finding, &'static str)>);

#[test]
fn damage_of_the_archive_is_counted() {
    let set = |name: &'static str, change: fn(&mut Part)| {
        changed(move |part| {
            if part.name.ends_with(name) {
                change(part)
            }
        })
    };
    let with = |text: &[u8]| {
        let text = text.to_vec();
        changed(move |part| match &part.name[..] {
            "datapackage.json" => *part = stored("datapackage.json", &text),
            "datapackage-digest.json" => *part = stored("datapackage-digest.json", &digest_of(&text)),
            _ => {}
        })
    };
    let mut again = parts();
    again.push(stored("archive/two.warc", &warc(&["c"])));
    let json = String::from_utf8(description(&[("archive/two.warc", &warc(&["c"]))])).unwrap();
    let (two, package) = ("!archive/two.warc", "!datapackage.json");
    let flip = |part: &mut Part| part.stored[40] ^= 1;
    let cut = |part: &mut Part| {
        *part = deflated(&part.name, &part.stored);
        part.stored.truncate(4);
    };
    let garbage = |part: &mut Part| {
        *part = deflated(&part.name, &part.stored);
        part.stored.fill(0xff);
    };
    let cases: [Case; 17] = [
        (set("two.warc", |part| part.flags = 1), "ab", Some((Finding::UnreadFile, two))),
        (set("two.warc", |part| part.method = 12), "ab", Some((Finding::UnreadFile, two))),
        (set("two.warc", |part| part.method = 93), "ab", Some((Finding::UnreadFile, two))),
        (set("two.warc", |part| part.crc32 ^= 1), "abc", Some((Finding::WrongDigest, two))),
        (set("two.warc", |part| part.bytes += 1), "ab", Some((Finding::BadLength, two))),
        (set("two.warc", |part| part.offset_error = 1), "ab", Some((Finding::BadHeader, two))),
        (set("two.warc", |part| part.offset_error = 1 << 20), "ab", Some((Finding::BadHeader, two))),
        (set("two.warc", cut), "ab", Some((Finding::Truncated, two))),
        (set("two.warc", garbage), "ab", Some((Finding::BadCompression, two))),
        (set("datapackage.json", flip), "abc", Some((Finding::WrongDigest, package))),
        (
            set("digest.json", |part| *part = stored(&part.name, &digest_of(b"x"))),
            "abc",
            Some((Finding::WrongDigest, package)),
        ),
        (with(b"{"), "abc", Some((Finding::BadJson, package))),
        (with(b"[1]"), "abc", None),
        (with(json.replace("\"bytes\":", "\"bytes\":1").as_bytes()), "abc", Some((Finding::WrongDigest, two))),
        (
            with(json.replace("two.warc", "none.warc").as_bytes()),
            "abc",
            Some((Finding::MissingFile, "!archive/none.warc")),
        ),
        (with(json.replace("archive/two.warc", "z.wacz").as_bytes()), "abc", Some((Finding::UnreadFile, "!z.wacz"))),
        (again, "abc", Some((Finding::UnreadFile, two))),
    ];
    for (number, (parts, pages, expected)) in cases.into_iter().enumerate() {
        let (read, tally) = read(&zip(&parts));
        assert_eq!(read.concat(), pages, "case {number}: {tally:?}");
        // A member without any readable byte is a file without a format, too.
        let kinds = found(&tally).into_iter().map(|(finding, name, _)| (finding, name));
        let kinds: Vec<_> = kinds.filter(|(finding, _)| *finding != Finding::OtherFile).collect();
        let expected: Vec<_> = expected.into_iter().map(|(finding, name)| (finding, name.to_owned())).collect();
        assert_eq!(kinds, expected, "case {number}");
    }
}

/// A wrong SHA-256, with the right length.
#[test]
fn each_crawl_file_has_the_digest_of_the_description() {
    let json = description(&[("archive/a.warc", &warc(&["a"])), ("archive/b.warc", &warc(&["b"]))]);
    let upper = String::from_utf8(json.clone()).unwrap();
    for (json, wrong) in [
        (json.clone(), ""),
        (upper.replace("sha256:", "md5:").into_bytes(), ""),
        (upper.replace(&hash(&warc(&["b"]))[7..], &"0".repeat(64)).into_bytes(), "!archive/b.warc"),
        (upper.replace(&hash(&warc(&["b"]))[7..], &hash(&warc(&["b"]))[7..].to_uppercase()).into_bytes(), ""),
    ] {
        let parts = [
            stored("archive/a.warc", &warc(&["a"])),
            deflated("archive/b.warc", &warc(&["b"])),
            stored("datapackage.json", &json),
        ];
        let (pages, tally) = read(&zip(&parts));
        assert_eq!(pages.concat(), "ab");
        let names: Vec<String> = found(&tally).into_iter().map(|(_, name, _)| name).collect();
        assert_eq!(names.concat(), wrong);
        assert_eq!(tally.of(Finding::WrongDigest), u64::from(!wrong.is_empty()));
    }
}

#[test]
fn members_that_overlap_are_read_once() {
    let mut archive = zip(&[stored("a.warc", &warc(&["a"])), stored("b.warc", &warc(&["b"]))]);
    // The second entry of the directory points to the first member.
    let second = archive.windows(4).rposition(|window| window == b"PK\x01\x02").unwrap();
    archive[second + 42..second + 46].fill(0);
    let (pages, tally) = read(&archive);
    assert_eq!((pages.concat(), tally.of(Finding::BadHeader)), ("a".to_owned(), 1));
}

/// Archives that end too early give no captures, not even the captures of an archive inside.
#[test]
fn archives_that_are_cut_off() {
    let inner = zip(&parts());
    let prefix = Around { prefix: b"prefix".to_vec(), ..Around::default() };
    let multi = [stored("datapackage.json", b"{}"), stored("1.wacz", &inner), stored("2.wacz", &inner)];
    for archive in [zip(&parts()), zip(&multi), zip_around(&multi, &prefix), zip(&changed(|it| it.is_zip64 = true))] {
        let ends = (0..archive.len()).step_by(100).chain([archive.len() - 1, archive.len() - 22]);
        let inner_ends = archive.windows(4).enumerate().filter(|(_, it)| it == b"PK\x05\x06").map(|(at, _)| at + 22);
        for end in ends.chain(inner_ends).filter(|&end| end < archive.len()) {
            let (pages, tally) = read(&archive[..end]);
            assert_eq!((pages.len(), tally.counts().map(|(_, count)| count).sum::<u64>()), (0, 1), "{end} {tally:?}");
            let is_named = end >= 100 && archive.starts_with(b"PK");
            assert!(!is_named || tally.of(Finding::Truncated) == 1, "{end} {tally:?}");
        }
    }
    let (pages, tally) = read(&[zip(&parts()), b"more".to_vec()].concat());
    assert_eq!((pages.len(), tally.of(Finding::Truncated)), (0, 1));
}

#[test]
fn random_damage_never_panics() {
    let mut random = fastrand::Rng::with_seed(7);
    let inner = zip(&changed(|part| *part = deflated(&part.name, &part.stored)));
    let archives = [zip(&parts()), zip(&[stored("1.wacz", &inner)]), zip(&changed(|part| part.is_zip64 = true))];
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.wacz");
    for round in 0..1000 {
        let mut archive = archives[round % archives.len()].clone();
        for _ in 0..random.usize(1..4) {
            // The directory is at the end.
            let at = if random.bool() { random.usize(0..archive.len()) } else { archive.len() - random.usize(1..400) };
            archive[at] = random.u8(..);
        }
        std::fs::write(&path, archive).unwrap();
        read_all(&path, LinkKinds::default());
    }
}

#[test]
fn a_wacz_that_is_compressed_is_read() {
    let plain = zip(&parts());
    let (pages, tally) = read(&gzip(&plain));
    let (expected, _) = read(&plain);
    assert!(!pages.is_empty());
    assert_eq!((pages, tally.damaged()), (expected, 0));
    // A file that the compression cuts off is damage of the compression and of the archive.
    let pressed = gzip(&plain);
    let (pages, tally) = read(&pressed[..pressed.len() / 2]);
    assert!(pages.is_empty() && tally.of(Finding::Truncated) >= 2, "{:?}", found(&tally));
    // A ZIP that is no WACZ is named as such.
    let (pages, tally) = read(&gzip(&zip(&[stored("word/document.xml", b"<w/>")])));
    assert_eq!((pages.len(), tally.of(Finding::OtherFile), tally.damaged()), (0, 1, 0));
}

/// A crawl file that ends with a record of a ZIP is a crawl file.
#[test]
fn a_warc_that_holds_an_archive() {
    let payload = zip(&parts());
    let mut text = warc(&["z"]);
    text.extend(
        format!(
            "WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: http://example.org/x.wacz\r\n\
             WARC-Date: 2020-01-01T00:00:00Z\r\nContent-Type: application/wacz\r\nContent-Length: {}\r\n\r\n",
            payload.len()
        )
        .bytes(),
    );
    text.extend(payload);
    for text in [text.clone(), [b"\r\n", &text[..]].concat()] {
        let (pages, tally) = read(&text);
        assert_eq!((pages.concat(), tally.damaged()), ("z".to_owned(), 0));
    }
}

#[test]
fn required_archives_that_are_missing() {
    let directory = tempfile::tempdir().unwrap();
    let requires = |names: &[&str]| -> Vec<u8> {
        let names: Vec<_> = names.iter().map(|name| serde_json::json!({"filename": name, "hash": "x"})).collect();
        serde_json::json!({"resources": [], "relation": {"requires": names}}).to_string().into_bytes()
    };
    let wacz =
        |names: &[&str]| zip(&[stored("archive/a.warc", &warc(&["a"])), stored("datapackage.json", &requires(names))]);
    let inner = wacz(&["gone.wacz", "one.wacz"]);
    for (name, archive) in [
        ("one.wacz", wacz(&["two.wacz", "inner.wacz", "lost.wacz"])),
        ("two.wacz", wacz(&[])),
        ("multi.wacz", zip(&[stored("inner.wacz", &inner)])),
    ] {
        std::fs::write(directory.path().join(name), archive).unwrap();
    }
    let (captures, tally) = read_all(directory.path(), LinkKinds::default());
    assert_eq!((captures.len(), tally.damaged()), (3, 0));
    let names: Vec<String> = inputs(&[directory.path().to_owned()])
        .unwrap()
        .iter()
        .map(|input| input.name().to_str().unwrap().to_owned())
        .collect();
    let missing = missing_containers(tally.containers(), names.iter().map(String::as_str));
    assert_eq!(missing.into_iter().collect::<Vec<_>>(), ["gone.wacz", "lost.wacz"]);
}

#[test]
fn revisits_name_the_archive_of_their_original() {
    let revisit = "WARC/1.1\r\nWARC-Type: revisit\r\nWARC-Target-URI: http://example.org/a\r\n\
                   WARC-Date: 2020-01-01T00:00:00Z\r\nWARC-Refers-To-Container: <file://first.wacz>\r\n\
                   WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\n\
                   Content-Length: 0\r\n\r\n\r\n\r\n";
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.wacz");
    std::fs::write(&path, zip(&[stored("archive/a.warc", revisit.as_bytes())])).unwrap();
    let (captures, tally) = read_all(&path, LinkKinds::default());
    assert_eq!((captures.len(), tally.containers().collect::<Vec<_>>()), (1, vec!["file://first.wacz"]));
    let mut sum = Tally::default();
    sum.add(tally);
    assert_eq!(sum.containers().count(), 1);
}
